"""Networks of integers with masks of attention are as near to those of floats as without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel.quantisation import quantise

LATER = np.triu(np.ones((6, 6), bool), 1)
WAYS = ("none", "fill", "where", "add", "scaled", "infinite", "before", "input", "padded")


class Attending(nn.Cell):
    """Attention with a mask in one of several ways; `kept` are the keys that count."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.query, self.key, self.value, self.out = (nn.Dense(16, n) for n in (16, 16, 16, 8))
        self.later = ms.Tensor(LATER)
        self.low, self.lowest = (ms.Tensor(np.where(LATER, n, 0).astype(np.float32)) for n in (-1e9, -np.inf))

    def construct(self, x: Any, kept: Any) -> Any:
        scores = ops.matmul(self.query(x), self.key(x).transpose(0, 2, 1))
        if self.way == "fill":
            scores = scores.masked_fill(self.later, -1e9)
        elif self.way == "where":
            scores = ops.where(self.later, ms.Tensor(-1e30, ms.float32), scores)
        elif self.way == "add":
            scores = scores + self.low
        elif self.way == "scaled":
            scores = scores / 4 + self.low
        elif self.way == "infinite":
            scores = scores * 0.25 + self.lowest
        elif self.way == "before":
            scores = self.low + scores
        elif self.way == "input":
            scores = scores / 4 + ((1.0 - kept) * -10000.0).reshape(-1, 1, 6)
        elif self.way == "padded":
            scores = (scores / 4).masked_fill((kept == 0).reshape(-1, 1, 6), -1e9)
        return self.out(ops.matmul(ops.softmax(scores, -1), self.value(x)))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("options", [{}, {"method": "percentile"}, {"correct_biases": True}])
def test_masks_take_no_steps_from_scores(way: str, options: dict[str, Any]) -> None:
    ms.set_seed(3)
    np.random.seed(3)
    draw = np.random.RandomState(0)
    net = Attending(way).set_train(False)
    x = ms.Tensor(draw.randn(32, 6, 16).astype(np.float32) * 2)
    kept = (draw.rand(32, 6) < 0.7).astype(np.float32)
    kept[:, 0] = 1
    given = x, ms.Tensor(kept)
    small = quantise(net, [given], **options)
    want, found = net(*given).asnumpy(), small(*given).asnumpy()
    assert np.sqrt(((found - want) ** 2).mean() / (want**2).mean()) < 0.05
    if way not in ("none", "input", "padded"):
        # What comes later does not count at all.
        other = x.asnumpy().copy()
        other[:, -1] *= -1
        np.testing.assert_array_equal(small(ms.Tensor(other), given[1]).asnumpy()[:, :-1], found[:, :-1])


def test_a_constant_that_is_more_than_a_mask_stays() -> None:
    low = np.where(LATER, -2000, 0).astype(np.float32)
    mask = ms.Tensor(low)

    def net(x: Any, w: Any) -> Any:
        return ops.softmax(ops.matmul(x, ops.ones((6, 6))) + mask, -1), w + mask

    x = ops.rand(4, 6, 6)
    small = quantise(net, [(x, x * 0)])
    assert abs(small(x, x * 0)[1].asnumpy() - low).max() < 2000 / 255
