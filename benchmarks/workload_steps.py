"""Workloads with a course of their own: loops that depend on data, caches, derivatives of
derivatives, sizes that are new each time. Written once for PyTorch and for Mycel.

Each is a function of tensors that gives a function without arguments: one repetition, which returns
tensors. `T` is as for functions and networks, with `jit`, `gradient`, `trainer` and what else a
framework says in its own way.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["steps"]


def _loops(T: Any) -> Mapping[str, Callable[..., Callable[[], Any]]]:
    def newton(a):
        solve = T.newton_per_sample()
        return lambda: solve(a)

    def pinn(w1, b1, w2, b2, w3, points):
        def u(x, t, w1, b1, w2, b2, w3):
            h = T.tanh(T.matmul(T.stack((x, t), 1), w1) + b1)
            return T.matmul(T.tanh(T.matmul(h, w2) + b2), w3)[:, 0]

        def total(x, t, *w):
            return u(x, t, *w).sum()

        slope_x, slope_t = T.gradient(total, 0), T.gradient(total, 1)

        def total_slope(x, t, *w):
            return slope_x(x, t, *w).sum()

        curve = T.gradient(total_slope, 0)

        def loss(x, t, w1, b1, w2, b2, w3):
            w = (w1, b1, w2, b2, w3)
            residual = slope_t(x, t, *w) + u(x, t, *w) * slope_x(x, t, *w) - 0.01 * curve(x, t, *w)
            return T.mean(residual * residual)

        step = T.jit(T.gradient(loss, (2, 3, 4, 5, 6)))
        x, t = points[:, 0], points[:, 1]
        return lambda: step(x, t, w1, b1, w2, b2, w3)

    def suppress(boxes, scores):
        n = 300

        def keep(boxes, scores):
            score, order = T.sort_down(scores)
            chosen = T.take(boxes[0], order[0])
            low, high = chosen[:, :2] - chosen[:, 2:] / 2.0, chosen[:, :2] + chosen[:, 2:] / 2.0
            corner = T.minimum(T.unsqueeze(high, 1), high) - T.maximum(T.unsqueeze(low, 1), low)
            corner = T.clamp(corner, 0.0, 1e9)
            common = corner[..., 0] * corner[..., 1]
            area = chosen[:, 2] * chosen[:, 3]
            over = T.to_float(common > 0.5 * (T.unsqueeze(area, 1) + area - common))
            later = T.triu(over, 1)
            kept = T.ones_like(area)
            for i in range(n):
                kept = kept * (1.0 - kept[i] * later[i])
            return kept * score[0]

        run = T.jit(keep)
        return lambda: run(boxes, scores)

    return {"wl_newton": newton, "wl_pinn": pinn, "wl_nms": suppress}


def _trees(nn: Any, T: Any) -> Mapping[str, Callable[..., Callable[[], Any]]]:
    class Tree(nn.Module):
        def __init__(self):
            super().__init__()
            self.leaf, self.gates, self.out = nn.Linear(100, 100), nn.Linear(200, 500), nn.Linear(100, 1)

        def node(self, tree, words):
            if isinstance(tree, int):
                c = self.leaf(words[tree : tree + 1])
                return T.tanh(c), c
            (ha, ca), (hb, cb) = self.node(tree[0], words), self.node(tree[1], words)
            i, fa, fb, o, g = T.chunk(self.gates(T.cat((ha, hb), 1)), 5, 1)
            c = T.sigmoid(i) * T.tanh(g) + T.sigmoid(fa) * ca + T.sigmoid(fb) * cb
            return T.sigmoid(o) * T.tanh(c), c

    def build(draw, words):
        parts = list(range(words))
        while len(parts) > 1:
            i = draw.randrange(len(parts) - 1)
            parts[i : i + 2] = [(parts[i], parts[i + 1])]
        return parts[0]

    def trees(words):
        net, draw = T.started(Tree()), random.Random(5)
        step = T.tree_step(net)
        return lambda: step(build(draw, draw.randrange(8, 24)), words)

    return {"wl_trees": trees}


def _decoding(nn: Any, F: Any, T: Any) -> Mapping[str, Callable[..., Callable[[], Any]]]:
    class Cached(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k = nn.Linear(256, 256), nn.Linear(256, 256)
            self.v, self.o = nn.Linear(256, 256), nn.Linear(256, 256)
            self.norm1, self.norm2 = nn.LayerNorm(256), nn.LayerNorm(256)
            self.up, self.down = nn.Linear(256, 1024), nn.Linear(1024, 256)
            self.keys, self.values = T.state((512, 8, 32)), T.state((512, 8, 32))

        def forward(self, x, at, seen):
            y = self.norm1(x)
            keys = T.put(self.keys, at, T.reshape(self.k(y), (1, 8, 32)))
            values = T.put(self.values, at, T.reshape(self.v(y), (1, 8, 32)))
            q = T.reshape(self.q(y), (1, 8, 32))
            weight = T.softmax((q * keys).sum(2) * 32**-0.5 + T.unsqueeze(seen, 1), 0)
            y = (T.unsqueeze(weight, 2) * values).sum(0)
            x = x + self.o(T.reshape(y, (1, 256)))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.out = nn.ModuleList([Cached() for _ in range(4)]), nn.Linear(256, 8000)

        def forward(self, x, at, seen):
            for layer in self.layers:
                x = layer(x, at, seen)
            return self.out(x)

    def decode(x, seen):
        net = T.inference(T.started(Decoder()))
        at = 0

        def step():
            nonlocal at
            at = (at + 1) % 500
            return net(x, T.number(at), seen)

        return step

    return {"wl_decode": decode}


def _lengths(nn: Any, T: Any, gpt: Callable[[], Any]) -> Mapping[str, Callable[..., Callable[[], Any]]]:
    def lengths_gru(x, y):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn, self.out = T.gru(32, 128), nn.Linear(128, 1)

            def forward(self, x, y):
                return T.mean((self.out(self.rnn(x)[0][:, -1]) - y) ** 2)

        step = T.trainer(T.started(Net()), "sgd")
        parts = [T.copy(x[:, : 10 + 3 * i]) for i in range(20)]
        return lambda: [step(part, y) for part in parts]

    def lengths_gpt(tokens, labels):
        step = T.trainer(T.started(gpt()), "adam")
        parts = [(T.copy(tokens[:, : 16 + 7 * i]), T.copy(labels[:, : 16 + 7 * i])) for i in range(16)]
        return lambda: [step(*part) for part in parts]

    return {"wl_lengths_gru": lengths_gru, "wl_lengths_gpt": lengths_gpt}


def _large(nn: Any, T: Any) -> Mapping[str, Callable[..., Callable[[], Any]]]:
    def dense_bf16(x, w1, w2, w3):
        weights = [T.to_bf16(w) for w in (w1, w2, w3)]
        x = T.to_bf16(x)

        def forward(x, *weights):
            for w in weights:
                x = T.relu(T.matmul(x, w))
            return T.to_float(x)

        run = T.inference(forward)
        return lambda: run(x, *weights)

    def adam_25m(x):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Linear(2500, 2500), nn.Linear(2500, 2500)
                self.c, self.d = nn.Linear(2500, 2500), nn.Linear(2500, 2500)

            def forward(self, x):
                return T.mean(self.d(T.tanh(self.c(T.tanh(self.b(T.tanh(self.a(x))))))) ** 2)

        step = T.trainer(T.started(Net()), "adam")
        return lambda: step(x)

    return {"wl_bf16": dense_bf16, "wl_adam": adam_25m}


def _rivals(nn: Any, F: Any, T: Any) -> Mapping[str, Callable[..., Callable[[], Any]]]:
    def adversarial(noise, images):
        class Generator(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.ConvTranspose2d(64, 128, 4), nn.ConvTranspose2d(128, 64, 4, 2, 1)
                self.c, self.d = nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ConvTranspose2d(32, 3, 4, 2, 1)
                self.bn1, self.bn2, self.bn3 = nn.BatchNorm2d(128), nn.BatchNorm2d(64), nn.BatchNorm2d(32)

            def forward(self, z):
                x = F.relu(self.bn2(self.b(F.relu(self.bn1(self.a(z))))))
                return T.tanh(self.d(F.relu(self.bn3(self.c(x)))))

        class Critic(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Conv2d(3, 32, 4, 2, 1), nn.Conv2d(32, 64, 4, 2, 1)
                self.c, self.d = nn.Conv2d(64, 128, 4, 2, 1), nn.Conv2d(128, 1, 4)

            def forward(self, x):
                x = F.leaky_relu(self.b(F.leaky_relu(self.a(x), 0.2)), 0.2)
                return T.reshape(self.d(F.leaky_relu(self.c(x), 0.2)), (-1,))

        class Judge(nn.Module):
            def __init__(self, critic):
                super().__init__()
                self.critic = critic

            def forward(self, real, made):
                return T.mean(F.softplus(-self.critic(real))) + T.mean(F.softplus(self.critic(made)))

        class Forge(nn.Module):
            def __init__(self, maker, critic):
                super().__init__()
                self.maker, self.critic = maker, critic

            def forward(self, z):
                return T.mean(F.softplus(-self.critic(self.maker(z))))

        maker, critic = T.started(Generator()), T.started(Critic())
        judge = T.trainer(Judge(critic), "sgd", critic)
        forge = T.trainer(Forge(maker, critic), "sgd", maker)
        make = T.inference(maker)
        return lambda: [judge(images, make(noise)), forge(noise)]

    return {"wl_gan": adversarial}


def steps(nn: Any, F: Any, T: Any, gpt: Callable[[], Any]) -> Mapping[str, Callable[..., Callable[[], Any]]]:
    """Return what makes each workload ready, by their cases' names; `gpt` makes that network."""
    found = {**_loops(T), **_trees(nn, T), **_decoding(nn, F, T)}
    return {**found, **_lengths(nn, T, gpt), **_large(nn, T), **_rivals(nn, F, T)}
