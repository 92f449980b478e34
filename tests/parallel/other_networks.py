"""Networks of other kinds, with what training has beside gradients: `OTHER_TASKS`.

Recurrence, transposed convolutions, graphs, noise, shared weights, losses over sequences; clipping
by the norm of all gradients, schedules of the learning rate, averages of weights, scaled losses;
batches of several sizes, some smaller than the number of ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import mycel as ms
from mycel import nn, ops
from tests.parallel.networks import ROWS, Task, adam, classified, momentum, training

MICRO_BATCHED = ("accumulation", "zero2", "pipeline", "adasum")


class Clipped(nn.Cell):
    """An optimizer of gradients whose norm together is bounded."""

    def __init__(self, optimizer: nn.Cell, norm: float) -> None:
        super().__init__(auto_prefix=False)
        self.optimizer, self.norm = optimizer, norm

    def construct(self, gradients: Any) -> Any:
        return self.optimizer(ops.clip_by_global_norm(gradients, self.norm))


class Averaged(nn.Cell):
    """An optimizer that keeps a moving average of the weights."""

    def __init__(self, optimizer: nn.Cell, weights: Any) -> None:
        super().__init__(auto_prefix=False)
        self.optimizer, self.weights = optimizer, ms.ParameterTuple(weights)
        self.average = self.weights.clone("average")

    def construct(self, gradients: Any) -> Any:
        result = self.optimizer(gradients)
        for mean, weight in zip(self.average, self.weights):
            ops.assign(mean, 0.9 * mean + 0.1 * weight)
        return result


class Language(nn.Cell):
    """A model of language with two layers of recurrence."""

    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(words, width), nn.Dense(width, words)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True)

    def construct(self, tokens: Any) -> Any:
        found, _ = self.lstm(self.words(tokens))
        return self.head(found)


def language(steps: int) -> Task:
    random, words, length = np.random.RandomState(0), 30, 6
    net = Language(words, 12)
    batches = [tuple(random.randint(0, words, (ROWS, length)) for _ in range(2)) for _ in range(steps)]
    rate = nn.exponential_decay_lr(0.5, 0.9, 20, 1, 1)
    operators = {"words.embedding_table": ("tp",), "head.weight": ("tp",), "head.bias": ("tp",)}

    def loss(n: Any, tokens: Any, labels: Any) -> Any:
        return ops.cross_entropy(n(tokens).reshape(-1, words), labels.reshape(-1))

    return training(
        net, loss, lambda w: Clipped(nn.SGD(w, rate, momentum=0.9), 0.5), batches, operators=operators, excluded=ADASUM
    )


ADASUM = ("adasum",)


class UNet(nn.Cell):
    """Pictures made smaller and larger again, with a shortcut; normalised in groups and alone."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.down = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 16, 3, 2)
        self.group, self.alone = nn.GroupNorm(4, 16), nn.InstanceNorm2d(8)
        self.middle = nn.Conv2d(16, 16, 3, has_bias=True)
        self.up, self.last = nn.Conv2dTranspose(16, 8, 2, 2), nn.Conv2d(16, 1, 1, has_bias=True)

    def construct(self, x: Any) -> Any:
        wide = ops.silu(self.alone(self.first(x)))
        deep = ops.silu(self.group(self.down(wide)))
        deep = deep + ops.silu(self.middle(deep))
        return self.last(ops.cat([wide, self.up(deep)], 1))


def unet(steps: int) -> Task:
    random, net = np.random.RandomState(0), UNet()
    net.set_train()
    shape = (ROWS, 1, 12, 12)
    batches = [(random.randn(*shape).astype("f4"), random.randint(0, 2, shape).astype("f4")) for _ in range(steps)]

    def loss(n: Any, x: Any, y: Any) -> Any:
        found = n(x)
        return ops.binary_cross_entropy_with_logits(found, y, ops.ones_like(y), ops.ones_like(y))

    operators = {"middle.weight": ("tp",), "middle.bias": ("tp",), "up.weight": ("tp",), "first.weight": ("tp",)}
    return training(net, loss, lambda w: Averaged(adam(w), w), batches, operators=operators, excluded=ADASUM)


class Graphs(nn.Cell):
    """Two rounds of messages along the edges of one graph."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.enter, self.message, self.head = nn.Dense(5, width), nn.Dense(2 * width, width), nn.Dense(width, 3)

    def construct(self, x: Any, edges: Any) -> Any:
        x = ops.tanh(self.enter(x))
        source, target = edges[:, 0], edges[:, 1]
        for _ in range(2):
            sent = ops.tanh(self.message(ops.cat([ops.gather(x, source, 0), ops.gather(x, target, 0)], 1)))
            x = x + ops.tensor_scatter_add(ops.zeros_like(x), target.expand_dims(-1), sent)
        return self.head(x)


def graphs(steps: int) -> Task:
    random, net = np.random.RandomState(0), Graphs(8)
    batches = [
        (random.randn(ROWS, 5).astype("f4"), random.randint(0, ROWS, (3 * ROWS, 2)), random.randint(0, 3, ROWS))
        for _ in range(steps)
    ]

    def loss(n: Any, x: Any, edges: Any, labels: Any) -> Any:
        return ops.cross_entropy(n(x, edges), labels)

    operators = {"message.weight": ("tp",), "message.bias": ("tp",), "head.weight": (None, "tp")}
    # Edges are between rows, which micro-batches would part.
    more = {"excluded": MICRO_BATCHED, "is_bounded": False}
    return training(net, loss, adam, batches, operators=operators, **more)


class Denoiser(nn.Cell):
    """What noise was added to pictures, at a time of each."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.times, self.enter, self.leave = nn.Embedding(10, width), nn.Conv2d(1, width, 3), nn.Conv2d(width, 1, 3)
        self.norm = nn.GroupNorm(2, width)

    def construct(self, x: Any, times: Any) -> Any:
        y = self.enter(x) + self.times(times).reshape(x.shape[0], -1, 1, 1)
        return self.leave(ops.silu(self.norm(y)))


def diffusion(steps: int) -> Task:
    random, net = np.random.RandomState(0), Denoiser(6)
    batches = [(random.randn(ROWS, 1, 8, 8).astype("f4"),) for _ in range(steps)]

    def noise(x: Any) -> Any:
        return ops.randn(*x.shape), ops.randint(0, 10, (x.shape[0],))

    def loss(n: Any, x: Any) -> Any:
        added, times = noise(x)
        kept = (1 - times.astype(ms.float32) / 10).reshape(-1, 1, 1, 1)
        return ((n(x * ops.sqrt(kept) + added * ops.sqrt(1 - kept), times) - added) ** 2).mean()

    def shown(x: Any) -> Any:
        gradients = noted(x)[1]
        return (*noise(x), gradients[0].sum())

    noted = ms.value_and_grad(lambda x: loss(net, x), None, net.trainable_params())
    rate = nn.CosineDecayLR(1e-4, 1e-2, 20)
    operators = {"enter.weight": ("tp",), "leave.weight": (None, "tp"), "times.embedding_table": (None, "tp")}
    make = lambda w: Averaged(nn.AdamWeightDecay(w, rate, weight_decay=0.01), w)
    return training(net, loss, make, batches, operators=operators, excluded=ADASUM, shown=shown)


class Tied(nn.Cell):
    """An autoencoder whose decoder has the weights of the encoder."""

    def __init__(self, wide: int, narrow: int) -> None:
        super().__init__()
        self.encode, self.code = nn.Dense(wide, narrow), nn.Dense(narrow, narrow)
        self.bias = ms.Parameter(ms.Tensor(np.zeros(wide, "f4")), name="bias")

    def construct(self, x: Any) -> Any:
        return ops.matmul(ops.tanh(self.code(ops.tanh(self.encode(x)))), self.encode.weight) + self.bias


def autoencoder(steps: int) -> Task:
    random, net = np.random.RandomState(0), Tied(20, 12)
    batches = [(random.randn(ROWS, 20).astype("f4"),) for _ in range(steps)]
    operators = {"encode.weight": ("tp",), "encode.bias": ("tp",), "code.weight": (None, "tp"), "bias": ("tp",)}
    return training(net, lambda n, x: ((n(x) - x) ** 2).mean(), adam, batches, operators=operators)


def speech(steps: int) -> Task:
    """Convolutions along time, and the loss of all alignments."""
    random, length, letters = np.random.RandomState(0), 12, 6
    net = nn.SequentialCell(nn.Conv1d(4, 16, 3), nn.Tanh(), nn.Conv1d(16, letters, 3, has_bias=True))
    batches = [
        (random.randn(ROWS, 4, length).astype("f4"), random.randint(1, letters, (ROWS, 4)), random.randint(1, 5, ROWS))
        for _ in range(steps)
    ]

    def loss(n: Any, x: Any, labels: Any, lengths: Any) -> Any:
        scores = ops.log_softmax(n(x).transpose(2, 0, 1), -1)
        whole = ops.full((x.shape[0],), length, dtype=ms.int32)
        losses, _ = ops.ctc_loss(scores, labels, whole, lengths, 0, "none")
        return losses.mean()

    operators = {"0.weight": ("tp",), "2.weight": (None, "tp")}
    return training(net, loss, adam, batches, operators=operators)


def uneven(steps: int) -> Task:
    """Batches of several sizes."""
    random = np.random.RandomState(0)
    net = nn.SequentialCell(nn.Dense(6, 12), nn.LayerNorm((12,)), nn.Tanh(), nn.Dense(12, 5))
    rows = [(ROWS, ROWS - 5, 3, 1)[k % 4] for k in range(steps)]
    batches = [(random.randn(n, 6).astype("f4"), random.randint(0, 5, n)) for n in rows]
    operators = {"0.weight": ("tp",), "0.bias": ("tp",), "3.weight": (None, "tp")}
    return training(net, classified, momentum, batches, operators=operators, excluded=MICRO_BATCHED)


def scaled(steps: int) -> Task:
    """A scaled loss, whose scale a step adjusts: some gradients overflow, and are left out."""
    random = np.random.RandomState(0)
    net = nn.SequentialCell(nn.Dense(6, 12), nn.Tanh(), nn.Dense(12, 5))
    batches = [(random.randn(ROWS, 6).astype("f4"), random.randint(0, 5, ROWS)) for _ in range(steps)]
    # What a condition has is whole on every rank.
    task = training(net, classified, momentum, batches, excluded=ADASUM, is_bounded=False)
    scale = ms.Parameter(ms.Tensor(2.0**122, ms.float32), name="scale", requires_grad=False)

    def both(x: Any, y: Any) -> Any:
        loss = classified(net, x, y)
        return loss * scale, loss

    derive = ms.value_and_grad(both, None, net.trainable_params(), has_aux=True)

    def step(x: Any, y: Any) -> Any:
        now = scale.value() * 1
        (_, loss), gradients = derive(x, y)
        gradients = [g / now for g in gradients]
        finite = ms.amp.all_finite(gradients)
        if finite:
            task.update(gradients)
        ops.assign(scale, ops.select(finite, now * 4, now / 16))
        return loss

    return task.with_step(step)


OTHER_TASKS: dict[str, Callable[[int], Task]] = {
    "language": language,
    "unet": unet,
    "graphs": graphs,
    "diffusion": diffusion,
    "autoencoder": autoencoder,
    "speech": speech,
    "uneven": uneven,
    "scaled": scaled,
}
