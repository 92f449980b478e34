"""Activation functions against their definitions in NumPy and SciPy, and their derivatives."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special as special

import mycel as ms
from mycel import Tensor, ops

from .checks import check_gradient, close, numbers

SOFTPLUS = lambda x: np.logaddexp(x, 0)
HARD = lambda x: np.clip((x + 3) / 6, 0, 1)
CASES = {
    "relu": (lambda t: ops.relu(t), lambda x: np.maximum(x, 0)),
    "relu6": (lambda t: ops.relu6(t * 4), lambda x: np.clip(4 * x, 0, 6)),
    "leaky_relu": (lambda t: ops.leaky_relu(t), lambda x: np.where(x > 0, x, 0.2 * x)),
    "elu": (lambda t: ops.elu(t, 1.5), lambda x: np.where(x > 0, x, 1.5 * np.expm1(x))),
    "celu": (lambda t: ops.celu(t, 2.0), lambda x: np.where(x > 0, x, 2 * np.expm1(x / 2))),
    "selu": (
        lambda t: ops.selu(t),
        lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    ),
    "gelu": (lambda t: ops.gelu(t), lambda x: x * special.ndtr(x)),
    "gelu_tanh": (
        lambda t: ops.gelu(t, "tanh"),
        lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    ),
    "fast_gelu": (
        lambda t: ops.fast_gelu(t),
        lambda x: x / (1 + np.exp(-1.702 * np.abs(x))) * np.exp(0.851 * (x - np.abs(x))),
    ),
    "silu": (lambda t: ops.silu(t), lambda x: x * special.expit(x)),
    "mish": (lambda t: ops.mish(t), lambda x: x * np.tanh(SOFTPLUS(x))),
    "softplus": (lambda t: ops.softplus(t, 2), lambda x: SOFTPLUS(2 * x) / 2),
    "logsigmoid": (lambda t: ops.logsigmoid(t), lambda x: -SOFTPLUS(-x)),
    "softsign": (lambda t: ops.softsign(t), lambda x: x / (1 + np.abs(x))),
    "hardsigmoid": (lambda t: ops.hardsigmoid(t * 2), lambda x: HARD(2 * x)),
    "hardswish": (lambda t: ops.hardswish(t * 2), lambda x: 2 * x * HARD(2 * x)),
    "hardtanh": (lambda t: ops.hardtanh(t), lambda x: np.clip(x, -1, 1)),
    "hardshrink": (lambda t: ops.hardshrink(t), lambda x: np.where(np.abs(x) > 0.5, x, 0)),
    "softshrink": (lambda t: ops.softshrink(t), lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0)),
    "tanhshrink": (lambda t: ops.tanhshrink(t), lambda x: x - np.tanh(x)),
    "threshold": (lambda t: ops.threshold(t, 0.1, -3.0), lambda x: np.where(x > 0.1, x, -3)),
    "glu": (lambda t: ops.glu(t, 1), lambda x: x[:, :2] * special.expit(x[:, 2:])),
    "swiglu": (lambda t: ops.swiglu(t, 1), lambda x: x[:, :2] * special.expit(x[:, :2]) * x[:, 2:]),
    "softmax": (lambda t: ops.softmax(t, 0), lambda x: special.softmax(x, 0)),
    "log_softmax": (lambda t: ops.log_softmax(t), lambda x: special.log_softmax(x, -1)),
    "softmin": (lambda t: ops.softmin(t, 1), lambda x: special.softmax(-x, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_activations(name: str) -> None:
    function, definition = CASES[name]
    x = numbers(3, 4, seed=3)
    close(function(Tensor(x)), definition(x), 1e-12)
    check_gradient(function, x, tolerance=1e-5)


def test_prelu_by_channel() -> None:
    x, w = numbers(2, 3, 2), np.array([0.1, 0.2, 0.3])
    close(ops.prelu(Tensor(x), Tensor(w)), np.where(x > 0, x, x * w[:, None]))
    check_gradient(lambda a, b: ops.prelu(a, b), x, w)
    close(ops.prelu(Tensor(x), Tensor(np.array([0.5]))), np.where(x > 0, x, x * 0.5))
    with pytest.raises(ValueError, match="prelu: the weight must have 1 or 3 elements"):
        ops.prelu(Tensor(x), Tensor(np.array([0.1, 0.2])))


@pytest.mark.parametrize(
    "name", ["relu", "relu6", "leaky_relu", "elu", "selu", "gelu", "silu", "mish", "softplus", "hardswish", "softsign"]
)
def test_nan_passes_and_nothing_overflows(name: str) -> None:
    x = np.array([np.nan, 1e4, -1e4])
    value = getattr(ops, name)(Tensor(x)).asnumpy()
    assert np.isnan(value[0]) and np.isfinite(value[1:]).all()
    slope = ms.grad(lambda t: getattr(ops, name)(t).sum())(Tensor(x[1:])).asnumpy()
    assert np.isfinite(slope).all()


def test_the_derivative_at_the_kink() -> None:
    assert ms.grad(lambda t: ops.relu(t).sum())(Tensor([0.0, -0.0])).tolist() == [0.0, 0.0]
    assert ms.grad(lambda t: ops.relu6(t).sum())(Tensor([0.0, 6.0, 3.0])).tolist() == [0.0, 0.0, 1.0]


def test_softmax_of_large_and_16_bit_numbers() -> None:
    assert ops.softmax(Tensor([1e4, 1e4])).tolist() == [0.5, 0.5]
    assert ops.log_softmax(Tensor([0.0, 1e4])).tolist() == [-1e4, 0.0]
    half = ops.softmax(Tensor(np.zeros(5000, np.float16)))
    assert half.dtype is ms.float16 and half.tolist()[0] == pytest.approx(1 / 5000, rel=1e-3)
    assert ops.softmax(Tensor([-np.inf, 0.0])).tolist() == [0.0, 1.0]


def test_relu_keeps_integers_and_writes_in_place() -> None:
    x = Tensor([-1, 2])
    assert ops.relu(x).dtype is ms.int64
    assert ops.relu(x, inplace=True) is x and x.tolist() == [0, 2]
    with pytest.raises(ValueError, match="gelu: approximate must be one of 'none', 'tanh'"):
        ops.gelu(Tensor([1.0]), "sigmoid")
    with pytest.raises(ValueError, match="does not split into halves"):
        ops.glu(Tensor([1.0, 2.0, 3.0]))


def test_bounds_that_an_integer_type_has_not():
    x = ms.Tensor([0, 1, 255], ms.uint8)
    for function in (ops.hardtanh, ms.jit(lambda t: ops.hardtanh(t))):
        assert function(x).tolist() == [0, 1, 1]
    assert ops.hardtanh(x, -2, 1000).tolist() == [0, 1, 255]
