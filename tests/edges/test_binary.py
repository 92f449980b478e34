"""Functions of two elements: every type and pairs of types, broadcasting with sizes of zero and no
dimensions, NaN, infinities, signed zeros, the ends of integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
from hypothesis import example, given
from hypothesis import strategies as st

import mycel as ms
from mycel import Tensor, mint, ops
from mycel._src.foundation import dtype
from tests.edges.support import (
    BROADCASTING,
    COMPLEX,
    FLOATS,
    INTEGERS,
    SEEDS,
    as_array,
    close,
    examples,
    in_both_modes,
    numbers,
    numpy_type,
    quiet,
    tensor,
)

MODES = st.integers(0, 2)


def floor_mod(a: Any, b: Any) -> Any:
    return np.mod(a, b)


def truncated(a: Any, b: Any) -> Any:
    return np.trunc(a / b)


# Name: (oracle in float64, how many times the usual tolerance).
REAL: dict[str, tuple[Callable[[Any, Any], Any], float]] = {
    "add": (np.add, 1),
    "sub": (np.subtract, 1),
    "mul": (np.multiply, 1),
    "div": (np.divide, 1),
    "maximum": (np.maximum, 0),
    "minimum": (np.minimum, 0),
    "atan2": (np.arctan2, 1),
    "hypot": (np.hypot, 1),
    "fmod": (np.fmod, 0),
    "squared_difference": (lambda a, b: np.square(a - b), 4),
    "pow": (np.power, 2),
    "logaddexp": (np.logaddexp, 2),
    "logaddexp2": (np.logaddexp2, 2),
    "xlogy": (scipy.special.xlogy, 1),
    "floor_div": (np.floor_divide, 0),
    "floor_mod": (floor_mod, 0),
    "copysign": (np.copysign, 0),
    "fmax": (np.fmax, 0),
    "fmin": (np.fmin, 0),
    "heaviside": (np.heaviside, 0),
    "nextafter": (np.nextafter, 0),
    "divide": (np.divide, 1),
    "multiply": (np.multiply, 1),
    "subtract": (np.subtract, 1),
    "true_divide": (np.divide, 1),
}
WHOLE: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "floor_div": np.floor_divide,
    "floor_mod": np.mod,
    "fmod": np.fmod,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "gcd": np.gcd,
}
ASKING: dict[str, Callable[[Any, Any], Any]] = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}


def function_of(name: str) -> Any:
    return (
        ops.SquaredDifference() if name == "squared_difference" else getattr(ops, name, None) or getattr(ms.numpy, name)
    )


@pytest.mark.parametrize("name", REAL)
@examples(14)
@given(dtype=st.sampled_from(FLOATS), shapes=st.sampled_from(BROADCASTING), seed=SEEDS)
@example(dtype="float32", shapes=((3, 4), (4,)), seed=794)  # logaddexp2 of 1 and -3e38 was 0
@example(dtype="float32", shapes=((), ()), seed=102)  # floor_div of -2 and inf was NaN
def test_real_functions(name: str, dtype: str, shapes: Any, seed: int) -> None:
    oracle, times = REAL[name]
    if name == "nextafter" and "16" in dtype:
        dtype = "float32"
    x, y = (numbers(shape, dtype, seed + k, 0.4) for k, shape in enumerate(shapes))
    result = in_both_modes(function_of(name), tensor(x), tensor(y), what=name, compiled=seed % 3 == 0)
    with quiet():
        if name in ("nextafter", "floor_div", "floor_mod", "fmod", "heaviside"):
            if dtype in ("float16", "bfloat16"):
                return
            want = oracle(x, y)
        else:
            want = oracle(x.astype(np.float64), y.astype(np.float64))
        close(result, want, f"{name}({x!r}, {y!r})", times, dtype)


@pytest.mark.parametrize("name", WHOLE)
@examples(10)
@given(dtype=st.sampled_from(INTEGERS), shapes=st.sampled_from(BROADCASTING), seed=SEEDS)
@example(dtype="int32", shapes=((3, 4), (3, 4)), seed=0)  # gcd of -3 and the least integer was -1
def test_whole_functions(name: str, dtype: str, shapes: Any, seed: int) -> None:
    """Sums and products wrap; quotients by 0 are 0 as NumPy's."""
    x, y = (numbers(shape, dtype, seed + k, 0.5) for k, shape in enumerate(shapes))
    result = in_both_modes(function_of(name), tensor(x), tensor(y), what=name, compiled=seed % 3 == 0)
    with quiet():
        close(result, WHOLE[name](x, y), f"{name}({x!r}, {y!r})", 0, dtype)


@pytest.mark.parametrize("name", ASKING)
@examples(10)
@given(dtype=st.sampled_from(("bool", *FLOATS, *INTEGERS)), shapes=st.sampled_from(BROADCASTING), seed=SEEDS)
def test_questions(name: str, dtype: str, shapes: Any, seed: int) -> None:
    x, y = (numbers(shape, dtype, seed + k, 0.5) for k, shape in enumerate(shapes))
    result = in_both_modes(function_of(name), tensor(x), tensor(y), what=name, compiled=seed % 3 == 0)
    with quiet():
        want = ASKING[name](x, y)
    close(result, want, f"{name}({x!r}, {y!r})", 0, "bool")


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
@examples(5)
@given(dtype=st.sampled_from(COMPLEX), shapes=st.sampled_from(BROADCASTING), seed=SEEDS)
def test_complex_functions(name: str, dtype: str, shapes: Any, seed: int) -> None:
    x, y = (numbers(shape, dtype, seed + k) for k, shape in enumerate(shapes))
    oracle = REAL[name][0]
    result = in_both_modes(function_of(name), tensor(x), tensor(y), what=name, compiled=seed % 3 == 0)
    with quiet():
        close(result, oracle(x.astype(np.complex128), y.astype(np.complex128)), f"{name}({x!r}, {y!r})", 8, dtype)


MIXED = ("bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64")


@pytest.mark.parametrize("name", ["add", "mul", "div", "maximum", "less", "pow"])
@examples(12)
@given(first=st.sampled_from(MIXED), second=st.sampled_from(MIXED), shapes=st.sampled_from(BROADCASTING), seed=SEEDS)
def test_two_types_meet_in_their_common_one(name: str, first: str, second: str, shapes: Any, seed: int) -> None:
    """The value is that of both operands cast first; compiled it is the same."""
    if name == "mul" and () in shapes:
        # in products a tensor of no dimensions yields to the type of the other one
        shapes = ((3,), (3,))
    x, y = numbers(shapes[0], first, seed, 0.2), numbers(shapes[1], second, seed + 1, 0.2)
    common = dtype.promote(tensor(x).dtype, tensor(y).dtype)
    function = function_of(name)
    try:
        result = in_both_modes(function, tensor(x), tensor(y), what=name, compiled=seed % 3 == 0)
    except TypeError as error:
        assert first == second == "bool" and name in str(error)
        return
    want = function(tensor(x).astype(common), tensor(y).astype(common))
    np.testing.assert_array_equal(as_array(result), as_array(want))
    assert result.dtype is want.dtype


SPELLINGS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "floor_div": lambda a, b: a // b,
    "floor_mod": lambda a, b: a % b,
    "pow": lambda a, b: a**b,
    "less": lambda a, b: a < b,
    "equal": lambda a, b: a == b,
    "greater_equal": lambda a, b: a >= b,
}


@pytest.mark.parametrize("name", SPELLINGS)
@examples(14)
@given(
    dtype=st.sampled_from(("float32", "int32", "float16", "uint8", "float64")),
    shape=st.sampled_from(((3,), (), (0,), (2, 3))),
    seed=SEEDS,
    left=st.booleans(),
    number=st.sampled_from((2, -1, 0, 0.5, -1.5, float("inf"), float("nan"), True, 7)),
)
@example(dtype="uint8", shape=(3,), seed=0, left=False, number=-1)  # ops.less refused what the operator compared
def test_python_numbers(name: str, dtype: str, shape: Any, seed: int, left: bool, number: Any) -> None:
    """A Python number takes the tensor's type, or float32 beside integers where it is a float;
    operators and functions agree, eager and compiled.
    """
    x = numbers(shape, dtype, seed, 0.2)
    if x.dtype.kind in "iu" and name == "pow":
        x = np.abs(x) % 5
    operator = SPELLINGS[name]
    pair = (number, tensor(x)) if left else (tensor(x), number)
    if x.dtype.kind == "u" and number == -1 and name not in ("less", "equal", "greater_equal", "div"):
        with pytest.raises(OverflowError, match="-1 does not fit uint8"):
            operator(*pair)
        return
    # Compiled, a power with a constant exponent is products and quotients, whose last bit may
    # differ.
    result = in_both_modes(
        lambda t: operator(number, t) if left else operator(t, number),
        tensor(x),
        what=name,
        compiled=seed % 3 == 0 and name != "pow",
    )
    again = function_of(name)(*pair)
    assert isinstance(again, Tensor) and again.dtype is result.dtype
    if name == "pow":  # a power with a constant exponent may be a root or a quotient
        close(again, as_array(result), name, 2)
    else:
        np.testing.assert_array_equal(as_array(again), as_array(result))
    if x.dtype.kind == "u" and number == -1:
        x = x.astype(np.int32)
    kind = np.float32 if x.dtype.kind in "iu" and isinstance(number, float) else x.dtype
    if name == "pow" and kind != np.float32 and x.dtype.kind in "iu":
        return
    arrays = [np.asarray(v).astype(kind) for v in ((number, x) if left else (x, number))]
    with quiet():
        want = operator(*arrays)
        if name == "div" and np.dtype(kind).kind in "iu":
            want = arrays[0].astype(np.float32) / arrays[1].astype(np.float32)
        close(result, want, f"{name} of {x!r} and {number!r}", 2)


@pytest.mark.parametrize("name", ["bitwise_left_shift", "bitwise_right_shift"])
@examples(8)
@given(dtype=st.sampled_from(INTEGERS), seed=SEEDS)
def test_shifts(name: str, dtype: str, seed: int) -> None:
    x = numbers((9,), dtype, seed, 0.5)
    y = np.random.default_rng(seed).integers(0, numpy_type(dtype).itemsize * 8, 9).astype(x.dtype)
    result = in_both_modes(function_of(name), tensor(x), tensor(y), what=name, compiled=seed % 3 == 0)
    close(result, np.left_shift(x, y) if "left" in name else np.right_shift(x, y), name, 0, dtype)


@pytest.mark.parametrize("name", ["where", "clamp", "lerp", "addcmul", "addcdiv", "masked_fill", "isclose"])
@examples(8)
@given(dtype=st.sampled_from(("float32", "float64", "float16")), shapes=st.sampled_from(BROADCASTING), seed=SEEDS)
def test_functions_of_three(name: str, dtype: str, shapes: Any, seed: int) -> None:
    x, y = (numbers(shape, dtype, seed + k, 0.3) for k, shape in enumerate(shapes))
    mask = np.random.default_rng(seed).uniform(size=shapes[0]) < 0.5
    full = np.broadcast_shapes(*shapes)
    a, b, m = tensor(x), tensor(y), tensor(mask)
    p, q = x.astype(np.float64), y.astype(np.float64)
    cases: dict[str, Any] = {
        "where": (lambda: ops.where(m, a, b), lambda: np.where(mask, x, y)),
        "clamp": (lambda: ops.clamp(a, -1.0, 2.0), lambda: np.clip(x, -1.0, 2.0)),
        "lerp": (lambda: ops.lerp(a, b, 0.25), lambda: p + (q - p) * 0.25),
        "addcmul": (lambda: ops.addcmul(a, b, a, 0.5), lambda: p + 0.5 * q * p),
        "addcdiv": (lambda: ops.addcdiv(a, b, b, 0.5), lambda: p + 0.5 * (q / q)),
        "masked_fill": (
            lambda: ops.masked_fill(ops.broadcast_to(a, full), m, 7.0),
            lambda: np.where(mask, np.asarray(7, x.dtype), np.broadcast_to(x, full)),
        ),
        "isclose": (lambda: ops.isclose(a, b, equal_nan=True), lambda: np.isclose(x, y, equal_nan=True)),
    }
    if name in ("lerp", "addcmul", "addcdiv"):
        x, y = (numbers(shape, dtype, seed + k, 0.0) for k, shape in enumerate(shapes))
        a, b, p, q = tensor(x), tensor(y), x.astype(np.float64), y.astype(np.float64)
    call, oracle = cases[name]
    with quiet():
        want = oracle()
    close(call(), want, f"{name}({x!r}, {y!r})", 9)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "less", "atan2", "pow"])
@examples(4)
@given(dtype=st.sampled_from(("float32", "float16")), shapes=st.sampled_from(BROADCASTING), seed=SEEDS)
def test_every_spelling_is_the_same(name: str, dtype: str, shapes: Any, seed: int) -> None:
    x, y = (tensor(numbers(shape, dtype, seed + k)) for k, shape in enumerate(shapes))
    first = getattr(ops, name)(x, y)
    for other in (getattr(mint, name)(x, y), getattr(x, name)(y)):
        assert other.dtype is first.dtype
        np.testing.assert_array_equal(as_array(other), as_array(first))
