"""Random networks: a smaller one computes what the masked one does, or is refused with a reason."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.foundation.errors import Unsupported
from mycel.compression import Structure, prune_channels
from mycel.compression.channel_removal import mask_removed

KINDS = (
    "conv",
    "depth",
    "group",
    "norm",
    "groups",
    "act",
    "add",
    "cat",
    "half",
    "gate",
    "pool",
    "shuffle",
    "scale",
    "pad",
    "stats",
)


class Random(nn.Cell):
    """A network of random operations on images, some of which meet earlier values."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        rng = np.random.default_rng(seed)
        self.plan: list[tuple[str, Any, Any]] = []
        self.layers = nn.CellList()
        sizes = [8]
        self.stem = nn.Conv2d(3, 8, 3, has_bias=True)
        for _ in range(int(rng.integers(4, 11))):
            kind = str(rng.choice(KINDS))
            size, layer, other = sizes[-1], None, None
            if kind in ("conv", "scale"):
                new = int(rng.choice([4, 8, 12, 16]))
                layer = nn.Conv2d(
                    size, new if kind == "conv" else size, int(rng.choice([1, 3])), has_bias=bool(rng.integers(2))
                )
                size = new if kind == "conv" else size
            elif kind == "depth":
                layer = nn.Conv2d(size, size * int(rng.integers(1, 3)), 3, group=size)
                size = layer.out_channels
            elif kind == "group":
                layer = nn.Conv2d(size, 8, 3, group=2)
                size = 8
            elif kind == "norm":
                layer = nn.BatchNorm2d(size)
            elif kind == "groups":
                layer = nn.GroupNorm(size // 4, size)
            elif kind in ("add", "gate", "cat"):
                same = [k for k, s in enumerate(sizes) if s == size or kind == "cat"]
                other = int(rng.choice(same))
                size = size + sizes[other] if kind == "cat" else size
            elif kind == "half":
                other, size = bool(rng.integers(2)), size // 2
            elif kind == "act":
                other = str(rng.choice(["relu", "sigmoid", "tanh", "gelu", "silu"]))
            elif kind == "pad":
                other = int(rng.integers(0, 2))
            if size % 4 or size > 48:
                continue
            self.plan.append((kind, None if layer is None else len(self.layers), other))
            if layer is not None:
                self.layers.append(layer)
            sizes.append(size)
        self.head = nn.Dense(size if (size := sizes[-1]) else 1, 3)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        values = [self.stem(x)]
        for kind, number, other in self.plan:
            y = values[-1]
            if kind in ("conv", "depth", "group", "norm", "groups"):
                y = self.layers[number](y)
            elif kind == "scale":
                y = y * ops.sigmoid(self.layers[number](y).mean((2, 3), keep_dims=True))
            elif kind == "act":
                y = getattr(ops, other)(y)
            elif kind == "add":
                y = y - values[other] if other % 2 else y + values[other]
            elif kind == "gate":
                y = y * ops.sigmoid(values[other])
            elif kind == "cat":
                y = ops.cat([values[other], y], 1)
            elif kind == "half":
                y = ops.chunk(y, 2, 1)[int(other)]
            elif kind == "pool":
                y = ops.max_pool2d(ops.pad(y, (1, 1, 1, 1)), 3, 1)
            elif kind == "shuffle":
                n, c, h, w = y.shape
                y = y.reshape(n, 2, c // 2, h, w).swapaxes(1, 2).reshape(n, c, h, w)
            elif kind == "pad" and other:
                y = ops.pad(y[:, 1:], (0, 0, 0, 0, 1, 0))
            elif kind == "stats":
                y = y / (1.0 + (y * y).mean(1, keep_dims=True))
            values.append(y)
        return self.head(values[-1].mean((2, 3)))


@pytest.mark.parametrize("seed", [3, 9, 11, 14, 18, 26])
def test_random_networks(seed: int) -> None:
    ms.set_seed(seed)
    net = Random(seed)
    rng = np.random.default_rng(seed)
    for p in net.get_parameters():
        if p.ndim == 1:
            p.set_data(ms.Tensor(rng.uniform(0.5, 1.5, p.shape).astype(np.float32)))
    net.set_train(False)
    x = ops.randn(2, 3, 6, 6)
    if not Structure(net, (x,)).groups:
        with pytest.raises(ValueError, match="can be removed: "):
            prune_channels(net, x, ratio=0.5)
        return
    try:
        small = prune_channels(net, x, ratio=0.5, scope="group", form="graph")
    except ValueError as error:
        assert "removes nothing of the groups of channels: 1 of " in str(error)
        return
    masked = copy.deepcopy(net)
    mask_removed(masked, small.pruned.removed)
    assert small.pruned.removed
    np.testing.assert_allclose(small(x).asnumpy(), masked(x).asnumpy(), rtol=1e-4, atol=1e-4)
    try:
        cell = prune_channels(net, x, ratio=0.5, scope="group", form="cell")
    except Unsupported:
        # Halves of what is left are others.
        assert {kind for kind, _, _ in net.plan} & {"half", "shuffle"}
        return
    np.testing.assert_allclose(cell(x).asnumpy(), masked(x).asnumpy(), rtol=1e-4, atol=1e-4)
