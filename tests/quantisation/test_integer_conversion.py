"""Networks that say their levels themselves, as integers."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.prims.neural.quantisation import dequantize, quantize
from mycel._src.foundation.errors import Unsupported
from mycel._src.tensors.core.eager import apply
from mycel.quantisation import integers


def tensor(value: Any) -> Any:
    return ms.Tensor(np.asarray(value, np.float32))


def rounded(x: Any, scale: float, zero: int, low: int, high: int, dtype: Any) -> Any:
    levels = apply(quantize, x, tensor(scale), tensor(zero), low=low, high=high, ties="even", dtype=dtype)
    return apply(dequantize, levels, tensor(scale), tensor(zero))


class Layer(nn.Cell):
    """A product with constant levels as weights, of zero points that may not be 0."""

    def __init__(self, weight: Any, scale: Any, zero: Any) -> None:
        super().__init__()
        self.weight, self.scale, self.zero = ms.Tensor(weight), tensor(scale), tensor(zero)

    def construct(self, x: Any) -> Any:
        x = rounded(x, 0.03, 100, 0, 255, ms.uint8)
        y = ops.matmul(x, apply(dequantize, self.weight, self.scale, self.zero))
        return rounded(y, 0.1, 3, -128, 127, ms.int8)


@pytest.mark.parametrize(
    "kind, scale, zero",
    [
        (np.int8, 0.02, 0),
        (np.uint8, 0.02, 128),
        (np.uint8, 0.02, 37),
        (np.int8, np.linspace(0.01, 0.03, 8)[None], np.arange(8)[None]),
    ],
)
def test_weights_have_any_zero_point(kind: Any, scale: Any, zero: Any) -> None:
    draw, ends = np.random.default_rng(0), np.iinfo(kind)
    net = Layer(draw.integers(ends.min, ends.max + 1, (8, 8)).astype(kind), scale, zero)
    x = tensor(draw.normal(size=(5, 8)) * 2)
    small = integers(net, x)
    assert Counter(n.op for n in small.model.graph.nodes)["int_matmul"] == 1 and small.report.floats == []
    assert np.abs(small(x).asnumpy() - net(x).asnumpy()).max() <= 0.1001


def test_a_scale_for_each_input_stays_in_floats() -> None:
    """No factor of the sums is one of them, also where there are as many inputs as results."""
    draw = np.random.default_rng(0)
    weight = draw.integers(-128, 128, (8, 8)).astype(np.int8)
    net = Layer(weight, np.linspace(0.01, 0.03, 8)[:, None], np.zeros((8, 1)))
    x = tensor(draw.normal(size=(5, 8)))
    small = integers(net, x)
    assert "matmul" in small.report.floats[0]
    assert np.abs(small(x).asnumpy() - net(x).asnumpy()).max() <= 0.1001


def test_a_network_without_steps_is_refused() -> None:
    with pytest.raises(Unsupported, match="nothing of the network is computed with integers"):
        integers(nn.Dense(3, 2), ms.Tensor(np.ones((1, 3), np.float32)))
    with pytest.raises(ValueError, match="rounding must be one of"):
        integers(nn.Dense(3, 2), ms.Tensor(np.ones((1, 3), np.float32)), rounding="up")
