"""The operands of the functions of `mycel.numpy`: array-like arguments become tensors.

Python ints become int32 and floats float32, as in MindSpore; NumPy arrays keep their type.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast
from mycel.ops._operands import term
from mycel.ops.array import stack

__all__ = ["as_axis", "as_flag", "as_kind", "asarray", "axes_of", "both", "check_flags", "named_kind"]


def asarray(a: Any, dtype: Any = None) -> Tensor:
    """Return `a` as a tensor, or `a` itself if it is a tensor of that type.

    Raises TypeError for anything not array-like.

    >>> import mycel.numpy as mnp
    >>> mnp.asarray([1, 2]).dtype
    mindspore.int32
    """
    kind = kind_of(dtype)
    if isinstance(a, Tensor):
        return a if kind is None else cast(a, kind)
    if isinstance(a, (list, tuple)) and any(isinstance(v, Tensor) for v in a):
        made = stack([asarray(v) for v in a])
        return made if kind is None else cast(made, kind)
    made = as_tensor(a) if isinstance(a, (list, tuple, np.ndarray)) else term("asarray", a)
    if kind is None and made.dtype is D.int64 and not isinstance(a, (np.ndarray, np.generic)):
        kind = D.int32
    return made if kind is None else cast(made, kind)


def as_axis(axis: Any) -> Any:
    """Return an axis, of which True stands for 1 and False for 0."""
    return int(axis) if isinstance(axis, bool) else axis


def as_flag(keepdims: Any) -> Any:
    """Return `keepdims`, of which an int stands for its truth."""
    return bool(keepdims) if isinstance(keepdims, int) else keepdims


def axes_of(name: str, x: Tensor, axis: Any) -> Any:
    """Return axes of `x`. Raises ShapeError for any of a number."""
    if x.ndim == 0 and axis is not None and axis != ():
        raise ShapeError(f"{name}: a number has no axis {axis!r}")
    return as_axis(axis)


def check_flags(name: str, **given: Any) -> None:
    """Check that all of the arguments are bools; `name` is the function that the user called."""
    for parameter, value in given.items():
        arguments.flag(name, parameter, value)


def both(x: Any, y: Any) -> tuple[Any, Any]:
    """Return two operands, of which at least one is a tensor.

    A Python number beside a tensor stays a number.
    """
    if isinstance(x, Tensor):
        return x, y if isinstance(y, (bool, int, float)) else asarray(y)
    if isinstance(y, Tensor):
        return (x if isinstance(x, (bool, int, float)) else asarray(x)), y
    return asarray(x), asarray(y)


def as_kind(x: Tensor, dtype: Any) -> Tensor:
    """Return `x` in a type, or unchanged for None."""
    return x if dtype is None else cast(x, named_kind(dtype))


def kind_of(dtype: Any) -> DType | None:
    """Return the data type for any spelling of it, or None for None."""
    return None if dtype is None else named_kind(dtype)


def named_kind(dtype: Any) -> DType:
    """Return the data type for any spelling of it; Python's `int` is int32 here, as its numbers
    are.
    """
    return D.int32 if dtype is int or isinstance(dtype, str) and dtype.lower() == "int" else D.from_any(dtype)
