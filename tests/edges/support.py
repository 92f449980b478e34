"""What the property tests share: how many examples are drawn, arrays with every special value, and
the comparison of results.

Tests draw shapes and element types from small tables, so that few kernels are compiled, and numbers
from a seed. They are the same in every run unless MYCEL_EDGES is set: MYCEL_EDGES=20 draws twenty
times as many examples, anew at random.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

import mycel as ms
from mycel import Tensor
from mycel._src.foundation.pytree import flatten

__all__ = [
    "BROADCASTING",
    "COMPLEX",
    "FLOATS",
    "INTEGERS",
    "SEEDS",
    "SHAPES",
    "as_array",
    "close",
    "examples",
    "in_both_modes",
    "numbers",
    "numpy_type",
    "quiet",
    "same_bits",
    "tensor",
    "tensors_of",
]

TIMES = int(os.environ.get("MYCEL_EDGES", "1"))
FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64")
COMPLEX = ("complex64", "complex128")
SHAPES = ((5,), (3, 4), (), (0,), (1,), (2, 1, 3), (0, 3), (3, 0, 2), (17,))
BROADCASTING = (
    ((3, 4), (3, 4)),
    ((3, 4), (4,)),
    ((2, 1, 3), (5, 1)),
    ((), (4,)),
    ((), ()),
    ((0, 3), (1, 3)),
    ((0,), ()),
    ((1,), (0,)),
    ((2, 0, 1), (1, 5)),
    ((1,), (3, 1)),
    ((7,), (7,)),
)
SEEDS = st.integers(0, 999)
DIGITS = {
    "float64": 1e-12,
    "float32": 4e-6,
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
    "complex64": 1e-5,
    "complex128": 1e-11,
}


def examples(count: int) -> settings:
    """`count` examples, always the same ones.

    MYCEL_EDGES times as many, at random, where that is set.
    """
    return settings(
        max_examples=count * TIMES,
        derandomize=TIMES == 1,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )


def numpy_type(dtype: str) -> np.dtype[Any]:
    """NumPy's type of this name."""
    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def _specials(kind: np.dtype[Any]) -> list[Any]:
    if kind.kind in "iu":
        ends = np.iinfo(kind)
        return [ends.min, ends.max, 0, 1, ends.max - 1, 2]
    limits = ml_dtypes.finfo(kind)
    return [
        np.nan,
        np.inf,
        -np.inf,
        0.0,
        -0.0,
        float(limits.max),
        float(-limits.max),
        float(limits.tiny),
        float(limits.smallest_subnormal),
        1.0,
        -1.0,
        0.5,
        2.0,
        88.0,
        -1e-3,
    ]


def numbers(shape: Sequence[int], dtype: str, seed: int, special: float = 0.4, low: float = -3, high: float = 3) -> Any:
    """An array of the element type.

    Each element is with probability `special` one of the type's special values, else from [low,
    high).
    """
    random = np.random.default_rng([seed, len(shape), *shape])
    kind = numpy_type(dtype)
    if kind.kind == "b":
        return random.uniform(size=shape) < 0.5
    if kind.kind == "c":
        part = "float32" if dtype == "complex64" else "float64"
        parts = [numbers(shape, part, seed + k, 0, low, high) for k in (0, 1)]
        return (parts[0] + 1j * parts[1]).astype(kind)
    if kind.kind in "iu":
        drawn = random.integers(max(low, 0) if kind.kind == "u" else low, high + 1, shape).astype(kind)
    else:
        drawn = random.uniform(low, high, shape).astype(kind)
    chosen = np.array(_specials(kind), kind)[random.integers(0, len(_specials(kind)), shape)]
    return np.where(random.uniform(size=shape) < special, chosen, drawn).astype(kind)


def tensor(array: Any) -> Tensor:
    """The array as a tensor of its own type."""
    array = np.asarray(array)
    if array.dtype == ml_dtypes.bfloat16:
        return Tensor(array.astype(np.float32)).astype(ms.bfloat16)
    return Tensor(array)


def as_array(value: Any) -> Any:
    """A tensor's values as an array of the type of the same name."""
    if not isinstance(value, Tensor):
        return np.asarray(value)
    if value.dtype is ms.bfloat16:
        return value.astype(ms.float32).asnumpy().astype(ml_dtypes.bfloat16)
    return value.asnumpy()


def tensors_of(result: Any) -> list[Any]:
    """The tensors and numbers of a result, in order."""
    return [x for x in flatten(result)[0] if x is not None]


def same_bits(first: Any, second: Any, what: str) -> None:
    """Two results have the same types, shapes and values; of 16-bit floats nearly, as compiled
    programs round once where eager ones round at each step.
    """
    a, b = tensors_of(first), tensors_of(second)
    assert len(a) == len(b), what
    for x, y in zip(a, b):
        p, q = as_array(x), as_array(y)
        assert p.dtype == q.dtype and p.shape == q.shape, f"{what}: {p.dtype}{p.shape} and {q.dtype}{q.shape}"
        if p.dtype.itemsize == 2 and p.dtype.kind not in "iu":
            near = 2 * DIGITS[p.dtype.name]
            np.testing.assert_allclose(
                p.astype(np.float64), q.astype(np.float64), rtol=near, atol=near * 1e-2, err_msg=what
            )
            continue
        np.testing.assert_array_equal(p, q, err_msg=what)


def close(got: Any, want: Any, what: str, times: float = 1.0, dtype: str = "") -> None:
    """A result has the oracle's shape and its values, rounded to the result's type.

    NaN where that has NaN.
    """
    result, want = as_array(got), np.asarray(want)
    assert result.shape == want.shape, f"{what}: shape {result.shape}, not {want.shape}"
    if dtype:
        assert result.dtype == numpy_type(dtype), f"{what}: {result.dtype}, not {dtype}"
    if result.dtype.kind in "biu":
        np.testing.assert_array_equal(result, want, err_msg=what)
        return
    name = result.dtype.name
    wide = np.complex128 if result.dtype.kind == "c" else np.float64
    with quiet():
        rounded = want.astype(wide).astype(result.dtype).astype(wide)
    near = DIGITS[name] * times
    least = 0.0 if result.dtype.kind == "c" else float(ml_dtypes.finfo(result.dtype).smallest_subnormal)
    np.testing.assert_allclose(result.astype(wide), rounded, rtol=near, atol=max(near * 1e-3, 4 * least), err_msg=what)


def quiet() -> Any:
    """NumPy's own warnings about NaN and overflow are no concern of ours."""

    class Quiet(warnings.catch_warnings):
        def __enter__(self) -> Any:
            found = super().__enter__()
            warnings.simplefilter("ignore")
            return found

    return Quiet()


def in_both_modes(function: Callable[..., Any], *args: Any, what: str = "", compiled: bool = True) -> Any:
    """The eager result, after a look that compiled it is the same."""
    result = function(*args)
    if compiled:
        same_bits(result, ms.jit(lambda *given: function(*given))(*args), f"{what} compiled")
    return result
