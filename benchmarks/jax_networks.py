"""The networks as functions of named parameters, which have PyTorch's names and shapes.

`NETWORKS[name](layout, kind)` gives the function and the parameters' shapes. Filters are turned to
the layout inside, which XLA folds into the step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

__all__ = ["NETWORKS"]

Shapes = dict[str, tuple[int, ...]]


class Layers:
    """What the networks are made of, in one layout, computing in one type; `shapes` collects the
    parameters.
    """

    def __init__(self, layout: str, kind: Any) -> None:
        self.layout, self.kind, self.shapes = layout, kind, Shapes()
        self.spatial = (2, 3) if layout == "NCHW" else (1, 2)

    def conv(
        self, name: str, inputs: int, outputs: int, size: int, stride: int = 1, padding: int = 0, bias: bool = False
    ) -> Any:
        self.shapes[name + ".weight"] = (outputs, inputs, size, size)
        if bias:
            self.shapes[name + ".bias"] = (outputs,)

        def run(p: Any, x: Any) -> Any:
            w = p[name + ".weight"].astype(self.kind)
            w = w if self.layout == "NCHW" else w.transpose(2, 3, 1, 0)
            numbers = (self.layout, "OIHW" if self.layout == "NCHW" else "HWIO", self.layout)
            x = lax.conv_general_dilated(x, w, (stride, stride), ((padding, padding),) * 2, dimension_numbers=numbers)
            return x + self.channels(p[name + ".bias"].astype(self.kind)) if bias else x

        return run

    def channels(self, v: Any) -> Any:
        return v[:, None, None] if self.layout == "NCHW" else v

    def dense(self, name: str, inputs: int, outputs: int) -> Any:
        self.shapes |= {name + ".weight": (outputs, inputs), name + ".bias": (outputs,)}
        return lambda p, x: x @ p[name + ".weight"].astype(self.kind).T + p[name + ".bias"].astype(self.kind)

    def batch_norm(self, name: str, width: int) -> Any:
        self.shapes |= {name + ".weight": (width,), name + ".bias": (width,)}
        axes = (0, *self.spatial)

        def run(p: Any, x: Any) -> Any:
            y = jax.nn.standardize(x.astype(jnp.float32), axes, epsilon=1e-5)
            return (y * self.channels(p[name + ".weight"]) + self.channels(p[name + ".bias"])).astype(self.kind)

        return run

    def layer_norm(self, name: str, width: int) -> Any:
        self.shapes |= {name + ".weight": (width,), name + ".bias": (width,)}

        def run(p: Any, x: Any) -> Any:
            y = jax.nn.standardize(x.astype(jnp.float32), -1, epsilon=1e-5)
            return (y * p[name + ".weight"] + p[name + ".bias"]).astype(self.kind)

        return run

    def pool(self, x: Any, window: int) -> Any:
        inside = lambda a, b: (1, 1, a, b) if self.layout == "NCHW" else (1, a, b, 1)
        return lax.reduce_window(x, -jnp.inf, lax.max, inside(window, window), inside(2, 2), "VALID")


def lenet5(layout: str, kind: Any) -> tuple[Callable[..., Any], Shapes]:
    net = Layers(layout, kind)
    conv1, conv2 = net.conv("conv1", 1, 6, 5, bias=True), net.conv("conv2", 6, 16, 5, bias=True)
    fc1, fc2, fc3 = net.dense("fc1", 400, 120), net.dense("fc2", 120, 84), net.dense("fc3", 84, 10)

    def forward(p: Any, x: Any) -> Any:
        x = net.pool(jax.nn.relu(conv1(p, x.astype(kind))), 2)
        x = net.pool(jax.nn.relu(conv2(p, x)), 2)
        x = x if layout == "NCHW" else x.transpose(0, 3, 1, 2)
        return fc3(p, jax.nn.relu(fc2(p, jax.nn.relu(fc1(p, x.reshape(x.shape[0], -1))))))

    return forward, net.shapes


def resnet50(layout: str, kind: Any) -> tuple[Callable[..., Any], Shapes]:
    net = Layers(layout, kind)
    stem, stem_norm = net.conv("conv", 3, 64, 7, 2, 3), net.batch_norm("bn", 64)
    blocks, width = [], 64
    for count, outputs, step in ((3, 256, 1), (4, 512, 2), (6, 1024, 2), (3, 2048, 2)):
        for i in range(count):
            stride, inner, name = step if i == 0 else 1, outputs // 4, f"blocks.{len(blocks)}"
            parts = [
                (net.conv(f"{name}.conv1", width, inner, 1), net.batch_norm(f"{name}.bn1", inner)),
                (net.conv(f"{name}.conv2", inner, inner, 3, stride, 1), net.batch_norm(f"{name}.bn2", inner)),
                (net.conv(f"{name}.conv3", inner, outputs, 1), net.batch_norm(f"{name}.bn3", outputs)),
            ]
            if i == 0:
                parts.append(
                    (net.conv(f"{name}.down.0", width, outputs, 1, stride), net.batch_norm(f"{name}.down.1", outputs))
                )
            blocks.append(parts)
            width = outputs
    fc = net.dense("fc", 2048, 1000)

    def forward(p: Any, x: Any) -> Any:
        x = net.pool(jax.nn.relu(stem_norm(p, stem(p, x.astype(kind)))), 3)
        for parts in blocks:
            y = x
            for conv, norm in parts[:2]:
                y = jax.nn.relu(norm(p, conv(p, y)))
            y = parts[2][1](p, parts[2][0](p, y))
            shortcut = parts[3][1](p, parts[3][0](p, x)) if len(parts) == 4 else x
            x = jax.nn.relu(shortcut + y)
        return fc(p, x.mean(net.spatial))

    return forward, net.shapes


def bert_small(layout: str, kind: Any) -> tuple[Callable[..., Any], Shapes]:
    net = Layers(layout, kind)
    net.shapes |= {"pos": (128, 256), "embed.weight": (8000, 256)}
    layers = []
    for i in range(4):
        dense = lambda part, inputs=256, outputs=256, i=i: net.dense(f"layers.{i}.{part}", inputs, outputs)
        norms = net.layer_norm(f"layers.{i}.norm1", 256), net.layer_norm(f"layers.{i}.norm2", 256)
        layers.append(([dense(part) for part in "qkvo"], norms, dense("up", 256, 1024), dense("down", 1024, 256)))
    out = net.dense("out", 256, 8000)

    def forward(p: Any, x: Any) -> Any:
        x = (p["embed.weight"][x] + p["pos"]).astype(kind)
        b, t, d = x.shape
        for (q, k, v, o), (norm1, norm2), up, down in layers:
            heads = [f(p, x).reshape(b, t, 4, d // 4).transpose(0, 2, 1, 3) for f in (q, k, v)]
            weights = jax.nn.softmax((heads[0] @ heads[1].swapaxes(-1, -2) / (d // 4) ** 0.5).astype(jnp.float32))
            y = (weights.astype(kind) @ heads[2]).transpose(0, 2, 1, 3).reshape(b, t, d)
            x = norm1(p, x + o(p, y))
            x = norm2(p, x + down(p, jax.nn.gelu(up(p, x), approximate=False)))
        return out(p, x).reshape(-1, 8000)

    return forward, net.shapes


NETWORKS = {"lenet5": lenet5, "bert_small": bert_small, "resnet50": resnet50}
