"""Functions of one element: every type, NaN, infinities, signed zeros, denormal numbers, the ends
of integers, empty tensors and tensors of no dimensions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st

from mycel import Tensor, mint, ops
from tests.edges.support import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    SEEDS,
    SHAPES,
    as_array,
    close,
    examples,
    in_both_modes,
    numbers,
    numpy_type,
    quiet,
    tensor,
)

# Name: (oracle, least and greatest ordinary operand, how many times the usual tolerance).
REAL: dict[str, tuple[Any, float, float, float]] = {
    "exp": (np.exp, -3, 3, 1),
    "exp2": (np.exp2, -3, 3, 1),
    "expm1": (np.expm1, -3, 3, 1),
    "log": (np.log, 0.1, 9, 1),
    "log2": (np.log2, 0.1, 9, 1),
    "log10": (np.log10, 0.1, 9, 1),
    "log1p": (np.log1p, -0.9, 5, 1),
    "sqrt": (np.sqrt, 0, 9, 1),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0.1, 9, 1),
    "reciprocal": (np.reciprocal, 0.2, 3, 1),
    "sin": (np.sin, -9, 9, 1),
    "cos": (np.cos, -9, 9, 1),
    "tan": (np.tan, -1.4, 1.4, 3),
    "asin": (np.arcsin, -1, 1, 1),
    "acos": (np.arccos, -1, 1, 1),
    "atan": (np.arctan, -9, 9, 1),
    "sinh": (np.sinh, -3, 3, 1),
    "cosh": (np.cosh, -3, 3, 1),
    "tanh": (np.tanh, -3, 3, 1),
    "asinh": (np.arcsinh, -9, 9, 1),
    "acosh": (np.arccosh, 1, 9, 1),
    "atanh": (np.arctanh, -0.9, 0.9, 1),
    "sigmoid": (scipy.special.expit, -9, 9, 1),
    "erf": (scipy.special.erf, -3, 3, 1),
    "erfc": (scipy.special.erfc, -3, 3, 3),
    "erfinv": (scipy.special.erfinv, -0.9, 0.9, 3),
    "lgamma": (lambda x: np.where(np.isinf(x), np.inf, scipy.special.gammaln(x)), 0.1, 9, 5),
    "digamma": (scipy.special.digamma, 0.1, 9, 9),
    "deg2rad": (np.deg2rad, -9, 9, 1),
    "rad2deg": (np.rad2deg, -9, 9, 1),
    "sinc": (lambda x: np.where(np.abs(x) > 1e300, 0 * x, np.sinc(np.clip(x, -1e300, 1e300))), -3, 3, 9),
    "i0": (scipy.special.i0, -3, 3, 5),
    "bessel_i0e": (scipy.special.i0e, -3, 3, 5),
    "bessel_i1": (scipy.special.i1, -3, 3, 5),
    "logit": (scipy.special.logit, 0.1, 0.9, 3),
    "softsign": (lambda x: x / (1 + np.abs(x)), -3, 3, 1),
    "logsigmoid": (lambda x: -np.logaddexp(0, -x), -9, 9, 1),
}
KEEPING: dict[str, Any] = {
    "abs": np.abs,
    "neg": np.negative,
    "square": np.square,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "positive": np.positive,
    "relu": lambda x: np.where(np.isnan(x), x, np.maximum(x, np.zeros_like(x))),
    "nan_to_num": np.nan_to_num,
    "relu6": lambda x: np.where(np.isnan(x), x, np.clip(x, np.zeros_like(x), np.full_like(x, 6))),
}
ASKING: dict[str, Any] = {
    "isfinite": np.isfinite,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "signbit": np.signbit,
    "logical_not": np.logical_not,
}
PERIODIC = ("sin", "cos", "tan")
ANALYTIC = "exp log sqrt sin cos tan sinh cosh tanh asinh atan reciprocal square abs neg angle real imag conj sigmoid"


@pytest.mark.parametrize("name", REAL)
@examples(9)
@given(dtype=st.sampled_from(FLOATS), shape=st.sampled_from(SHAPES), seed=SEEDS)
def test_real_functions(name: str, dtype: str, shape: tuple[int, ...], seed: int) -> None:
    oracle, low, high, times = REAL[name]
    x = numbers(shape, dtype, seed, 0.4, low, high)
    result = in_both_modes(getattr(ops, name), tensor(x), what=name, compiled=seed % 3 == 0)
    wide = x.astype(np.float64)
    if name in PERIODIC:
        # Beyond a million the absolute error grows (`native.math.trigonometric`);
        # what stays is that the result is a sine or cosine.
        far = np.isfinite(wide) & (np.abs(wide) > 1e6)
        assert np.all(np.isfinite(as_array(result)[far])) and (
            name == "tan" or np.all(np.abs(as_array(result)[far]) <= 1)
        )
        wide, result = wide[~far], tensor(as_array(result)[~far])
    with quiet():
        close(result, oracle(wide), f"{name}({x!r})", times, dtype)


@pytest.mark.parametrize("name", [n for n in REAL if n not in PERIODIC])
@examples(3)
@given(dtype=st.sampled_from(("bool", *INTEGERS)), seed=SEEDS)
def test_real_functions_of_integers(name: str, dtype: str, seed: int) -> None:
    oracle, _, _, times = REAL[name]
    x = numbers((7,), dtype, seed)
    try:
        result = getattr(ops, name)(tensor(x))
    except TypeError as error:
        assert name in str(error) and "int" in str(error).lower() or "bool" in str(error).lower()
        return
    with quiet():
        close(result, oracle(x.astype(np.float32).astype(np.float64)), f"{name}({x!r})", times, "float32")


@pytest.mark.parametrize("name", KEEPING)
@examples(14)
@given(dtype=st.sampled_from((*FLOATS, *INTEGERS)), shape=st.sampled_from(SHAPES), seed=SEEDS)
def test_functions_that_keep_the_type(name: str, dtype: str, shape: tuple[int, ...], seed: int) -> None:
    x = numbers(shape, dtype, seed)
    result = in_both_modes(getattr(ops, name), tensor(x), what=name, compiled=seed % 3 == 0)
    with quiet():
        want = KEEPING[name](x)
    close(result, want, f"{name}({x!r})", 0, dtype)
    if x.dtype.kind == "f" and name not in ("square", "relu", "relu6"):
        with quiet():
            signs = np.signbit(want.astype(np.float64)), np.signbit(as_array(result).astype(np.float64))
        there = ~np.isnan(want.astype(np.float64))
        np.testing.assert_array_equal(signs[0][there], signs[1][there], err_msg=f"signs of {name}({x!r})")


@pytest.mark.parametrize("name", ASKING)
@examples(8)
@given(dtype=st.sampled_from(("bool", *FLOATS, *INTEGERS)), shape=st.sampled_from(SHAPES), seed=SEEDS)
def test_questions(name: str, dtype: str, shape: tuple[int, ...], seed: int) -> None:
    x = numbers(shape, dtype, seed)
    result = in_both_modes(getattr(ops, name), tensor(x), what=name, compiled=seed % 3 == 0)
    there = ~np.isnan(x.astype(np.float64)) if name == "signbit" else np.ones(shape, bool)
    np.testing.assert_array_equal(as_array(result)[there], ASKING[name](x)[there])
    assert as_array(result).dtype == np.bool_


@pytest.mark.parametrize("name", ANALYTIC.split())
@examples(4)
@given(dtype=st.sampled_from(COMPLEX), shape=st.sampled_from(SHAPES), seed=SEEDS)
def test_complex_functions(name: str, dtype: str, shape: tuple[int, ...], seed: int) -> None:
    x = numbers(shape, dtype, seed)
    oracle = {
        "neg": np.negative,
        "asinh": np.arcsinh,
        "atan": np.arctan,
        "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    }.get(name) or getattr(np, name)
    result = in_both_modes(getattr(ops, name), tensor(x), what=name, compiled=seed % 3 == 0)
    with quiet():
        close(result, oracle(x.astype(np.complex128)), f"{name}({x!r})", 8)


@pytest.mark.parametrize("dtype", ["bool", *FLOATS, *INTEGERS])
@examples(6)
@given(other=st.sampled_from(("bool", *FLOATS, *INTEGERS)), shape=st.sampled_from(SHAPES), seed=SEEDS)
def test_casts(dtype: str, other: str, shape: tuple[int, ...], seed: int) -> None:
    """Integers wrap, as NumPy's do.

    Floats that no integer holds go to its nearest end and NaN to zero.
    """
    x = numbers(shape, dtype, seed)
    kind = numpy_type(other)
    result = in_both_modes(
        lambda t: t.astype("bool_" if other == "bool" else other),
        tensor(x),
        what=f"{dtype} as {other}",
        compiled=seed % 3 == 0,
    )
    with quiet():
        if kind.kind in "iu" and x.dtype.kind not in "biu":
            ends, wide = np.iinfo(kind), x.astype(np.float64)
            want = np.array(
                [
                    0 if np.isnan(v) else ends.max if v >= ends.max else ends.min if v <= ends.min else int(v)
                    for v in wide.flat
                ],
                kind,
            ).reshape(shape)
        else:
            want = x.astype(kind)
    close(result, want, f"{x!r} as {other}", 0)


@pytest.mark.parametrize("name", ["exp", "abs", "sin", "floor", "neg", "sqrt"])
@examples(4)
@given(dtype=st.sampled_from(FLOATS), shape=st.sampled_from(SHAPES), seed=SEEDS)
def test_every_spelling_is_the_same(name: str, dtype: str, shape: tuple[int, ...], seed: int) -> None:
    x = numbers(shape, dtype, seed)
    first = getattr(ops, name)(tensor(x))
    for other in (getattr(mint, name)(tensor(x)), getattr(tensor(x), name)()):
        assert isinstance(other, Tensor) and other.dtype is first.dtype
        np.testing.assert_array_equal(as_array(other).astype(np.float64), as_array(first).astype(np.float64))
