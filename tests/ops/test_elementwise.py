"""Element-wise functions against NumPy and SciPy; their types and derivatives."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import mycel as ms
from mycel import Tensor, ops

from .checks import check_gradient, close, numbers

UNARY = {
    "abs": np.abs,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "erf": scipy.special.erf,
    "erfc": scipy.special.erfc,
    "sigmoid": scipy.special.expit,
    "square": np.square,
    "neg": np.negative,
    "deg2rad": np.deg2rad,
    "rad2deg": np.rad2deg,
    "sinc": np.sinc,
    "frac": lambda x: x - np.trunc(x),
}
POSITIVE = {
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "lgamma": scipy.special.gammaln,
    "digamma": scipy.special.digamma,
}
UNIT = {"asin": np.arcsin, "acos": np.arccos, "atanh": np.arctanh, "erfinv": scipy.special.erfinv}
ROUNDINGS = {
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.round,
    "sign": np.sign,
    "signbit": np.signbit,
}


@pytest.mark.parametrize("name", [*UNARY, *POSITIVE, *UNIT])
def test_functions_of_one_operand(name: str) -> None:
    low, high = (0.2, 3.0) if name in POSITIVE else (-0.9, 0.9) if name in UNIT else (-2.0, 2.0)
    x = numbers(3, 4, low=low, high=high)
    want = {**UNARY, **POSITIVE, **UNIT}[name](x)
    close(getattr(ops, name)(Tensor(x)), want, 1e-10)
    close(getattr(ops, name)(Tensor(x.astype(np.float32))), want.astype(np.float32), 2e-5)
    check_gradient(getattr(ops, name), x, tolerance=1e-5)


@pytest.mark.parametrize("name", ROUNDINGS)
def test_roundings(name: str) -> None:
    x = np.array([-2.5, -1.5, -0.4, -0.0, 0.0, 0.5, 1.5, 2.7])
    close(getattr(ops, name)(Tensor(x)), ROUNDINGS[name](x))
    if name not in ("sign", "signbit"):
        assert getattr(ops, name)(Tensor([1, -2])).dtype is ms.int64


BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "pow": np.power,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "logaddexp": np.logaddexp,
    "logaddexp2": np.logaddexp2,
    "remainder": np.mod,
    "fmod": np.fmod,
    "xlogy": scipy.special.xlogy,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "copysign": np.copysign,
    "floor_divide": np.floor_divide,
    "xdivy": np.divide,
    "truncate_div": lambda x, y: np.trunc(x / y),
}


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_operands(name: str) -> None:
    x, y = numbers(3, 1, low=0.3, high=2.5), numbers(4, seed=1, low=0.4, high=1.9)
    close(getattr(ops, name)(Tensor(x), Tensor(y)), BINARY[name](x, y), 1e-12)
    check_gradient(getattr(ops, name), x, y, tolerance=1e-5)


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons_are_boolean(name: str) -> None:
    x, y = np.array([1.0, 2.0, np.nan]), np.array([[1.0], [3.0]])
    got = getattr(ops, name)(Tensor(x), Tensor(y))
    assert got.dtype is ms.bool_
    numpy_name = {
        "eq": "equal",
        "ne": "not_equal",
        "lt": "less",
        "le": "less_equal",
        "gt": "greater",
        "ge": "greater_equal",
    }[name]
    np.testing.assert_array_equal(got.asnumpy(), getattr(np, numpy_name)(x, y))


def test_logic_takes_numbers_as_true_where_not_zero() -> None:
    a, b = np.array([0, 2, 0]), np.array([False, True, True])
    np.testing.assert_array_equal(ops.logical_and(Tensor(a), Tensor(b)).asnumpy(), [False, True, False])
    np.testing.assert_array_equal(ops.logical_xor(Tensor(a), Tensor(b)).asnumpy(), [False, False, True])
    np.testing.assert_array_equal(ops.logical_not(Tensor(a)).asnumpy(), [True, False, True])


def test_integers_become_float32_in_real_functions_and_stay_elsewhere() -> None:
    x = Tensor(np.array([1, 4], np.int32))
    assert ops.sqrt(x).dtype is ms.float32 and ops.sqrt(x).tolist() == [1.0, 2.0]
    assert ops.div(x, x).dtype is ms.float32
    assert ops.square(x).dtype is ms.int32
    assert ops.abs(x).dtype is ms.int32
    assert ops.add(x, 1.5).dtype is ms.float32
    assert ops.add(x, 2).dtype is ms.int32
    assert ops.add(x, Tensor(np.array([1], np.int8))).dtype is ms.int32
    assert ops.exp(Tensor(np.float16(1.0))).dtype is ms.float16


@pytest.mark.parametrize("mode", ["floor", "trunc"])
def test_division_that_rounds(mode: str) -> None:
    x, y = np.array([-7, 7, -8, 5]), np.array([2, -2, 4, 5])
    want = np.floor(x / y) if mode == "floor" else np.trunc(x / y)
    got = ops.div(Tensor(x), Tensor(y), rounding_mode=mode)
    assert got.dtype is ms.int64
    np.testing.assert_array_equal(got.asnumpy(), want)


def test_values_at_the_edges() -> None:
    np.testing.assert_array_equal(ops.xlogy(Tensor([0.0, 0.0]), Tensor([0.0, np.nan])).asnumpy(), [0.0, np.nan])
    assert ops.hypot(Tensor(1e30), Tensor(1e30)).item() == pytest.approx(2**0.5 * 1e30, rel=1e-6)
    assert ops.logaddexp(Tensor(-np.inf), Tensor(-np.inf)).item() == -np.inf
    assert ops.logaddexp(Tensor(1e4), Tensor(-1e4)).item() == 1e4
    assert float(ms.grad(ops.hypot)(Tensor(0.0), Tensor(0.0))) == 0.0
    assert float(ms.grad(ops.xlogy, 1)(Tensor(0.0), Tensor(0.0))) == 0.0
    np.testing.assert_array_equal(
        ops.nan_to_num(Tensor([np.nan, np.inf, -np.inf, 1.0]), 7.0, 8.0, -8.0).asnumpy(),
        np.array([7, 8, -8, 1], np.float32),
    )
    assert ops.nan_to_num(Tensor([np.inf])).item() == np.finfo(np.float32).max


def test_limits() -> None:
    x = np.array([-2.0, 0.5, 3.0, np.nan])
    np.testing.assert_array_equal(ops.clamp(Tensor(x), -1, 1).asnumpy(), np.clip(x, -1, 1))
    np.testing.assert_array_equal(ops.clamp(Tensor(x[:3]), Tensor([0.0, 1.0, 2.0]), 2.5).asnumpy(), [0.0, 1.0, 2.5])
    assert ops.clamp(Tensor([1, 5]), 2, 4).dtype is ms.int64
    assert ops.clamp(Tensor(np.array([1, 5], np.int32)), 1.5, 4).dtype is ms.float32
    assert ms.grad(lambda t: ops.clamp(t, 0, 1).sum())(Tensor([0.0, 0.5, 1.0, 2.0])).tolist() == [1.0, 1.0, 1.0, 0.0]
    with pytest.raises(ValueError, match="clamp: min and max are both None"):
        ops.clamp(Tensor([1.0]))


def test_whole_numbers() -> None:
    a, b = np.array([12, -18, 0, 7, 2**40]), np.array([18, 12, 5, 0, 6 * 2**38])
    np.testing.assert_array_equal(ops.gcd(Tensor(a), Tensor(b)).asnumpy(), np.gcd(a, b))
    np.testing.assert_array_equal(ops.lcm(Tensor(a), Tensor(b)).asnumpy(), np.lcm(a, b))
    np.testing.assert_array_equal(ops.bitwise_xor(Tensor(a), Tensor(b)).asnumpy(), a ^ b)
    np.testing.assert_array_equal(ops.bitwise_left_shift(Tensor([1, 3]), 2).asnumpy(), [4, 12])
    with pytest.raises(TypeError, match="bitwise_and: takes integers and booleans, not float32"):
        ops.bitwise_and(Tensor([1.0]), Tensor([1.0]))


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="exp: an operand must be a tensor, not str"):
        ops.exp("x")
    with pytest.raises(TypeError, match="add: an operand must be a tensor or a number, not NoneType"):
        ops.add(Tensor([1.0]), None)
    with pytest.raises(ValueError, match="rounding_mode must be None, 'floor' or 'trunc'"):
        ops.div(1.0, 2.0, rounding_mode="up")
    with pytest.raises(TypeError, match="neg: takes numbers, not booleans"):
        ops.neg(Tensor([True]))
    with pytest.raises(ValueError, match="do not broadcast"):
        ops.add(Tensor([1.0, 2.0]), Tensor([1.0, 2.0, 3.0]))


def test_distances() -> None:
    from scipy.spatial import distance

    x, y = numbers(3, 4), numbers(5, 4, seed=1)
    for p, metric in ((1.0, "cityblock"), (2.0, "euclidean"), (float("inf"), "chebyshev")):
        close(ops.cdist(Tensor(x), Tensor(y), p), distance.cdist(x, y, metric))
        close(ops.pdist(Tensor(x), p), distance.pdist(x, metric))
    close(ops.cov(Tensor(x)), np.cov(x))
    weights, counts = np.array([0.2, 1.0, 0.5, 0.3]), np.array([1.0, 2.0, 1.0, 3.0])
    close(
        ops.cov(Tensor(x), fweights=Tensor(counts), aweights=Tensor(weights)),
        np.cov(x, fweights=counts.astype(int), aweights=weights),
    )
    check_gradient(lambda a, b: ops.cdist(a, b), x[:2], y[:2])
