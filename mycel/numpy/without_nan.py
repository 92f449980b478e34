"""Sums and extremes under NumPy's names that leave out NaN."""

from __future__ import annotations

from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.numpy._operands import as_flag, as_kind, asarray, axes_of
from mycel.numpy.math import cumsum
from mycel.ops.vector_norms import root

__all__ = ["nancumsum", "nanmax", "nanmean", "nanmin", "nanstd", "nansum", "nanvar"]


def nancumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Return the cumulative sums, with NaN counted as 0.

    >>> import mycel.numpy as mnp
    >>> mnp.nancumsum([1.0, mnp.nan]).tolist()
    [1.0, 1.0]
    """
    x = asarray(a)
    return cumsum(ops.where(ops.isnan(x), 0, x), axis, dtype)


def nansum(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the sum of `a` over axes, with NaN counted as 0.

    Args:
        a (Tensor | float | list | tuple): The array.
        axis (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        dtype (DType | None): The element type of the result; None for that of the input. Default:
            None.
        keepdims (bool): Whether reduced axes stay with size 1. Default: False.

    Returns:
        Tensor: The results.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.nansum([1.0, mnp.nan]).item()
        1.0
    """
    x = asarray(a)
    return ops.nansum(x, axes_of("nansum", x, axis), bool(keepdims), dtype=dtype)


def nanmean(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the mean over axes of the elements of `a` that are not NaN.

    Args:
        a (Tensor | float | list | tuple): The array.
        axis (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        dtype (DType | None): The element type of the result; None for that of the input. Default:
            None.
        keepdims (bool): Whether reduced axes stay with size 1. Default: False.

    Returns:
        Tensor: The results.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.nanmean([1.0, mnp.nan]).item()
        1.0
    """
    x = asarray(a)
    return ops.nanmean(x, axes_of("nanmean", x, axis), bool(keepdims), dtype=dtype)


def nanmax(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the largest element of `a` over axes, ignoring NaN; NaN if there is no other.

    Args:
        a (Tensor | float | list | tuple): The array.
        axis (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        dtype (DType | None): The type of the result. Default: None.
        keepdims (bool): Whether reduced axes stay with size 1. Default: False.

    Returns:
        Tensor: The results.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.nanmax([1.0, mnp.nan]).item()
        1.0
    """
    return _nan_extreme(a, axis, dtype, keepdims, ops.amax, -float("inf"))


def nanmin(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the smallest element of `a` over axes, ignoring NaN; NaN if there is no other.

    Args:
        a (Tensor | float | list | tuple): The array.
        axis (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        dtype (DType | None): The element type of the result; None for that of the input. Default:
            None.
        keepdims (bool): Whether reduced axes stay with size 1. Default: False.

    Returns:
        Tensor: The results.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.nanmin([1.0, mnp.nan]).item()
        1.0
    """
    return _nan_extreme(a, axis, dtype, keepdims, ops.amin, float("inf"))


def _nan_extreme(a: Any, axis: Any, dtype: Any, keepdims: bool, function: Any, least: float) -> Tensor:
    x, keepdims = as_kind(asarray(a), dtype), as_flag(keepdims)
    axis = axes_of(function.__name__, x, axis)
    if not x.dtype.is_floating:
        return function(x, axis, keepdims)
    empty = ops.isnan(x)
    return ops.where(ops.all(empty, axis, keepdims), float("nan"), function(ops.where(empty, least, x), axis, keepdims))


def nanvar(a: Any, axis: Any = None, dtype: Any = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """Return the variance over axes of the elements of `a` that are not NaN.

    Args:
        a (Tensor | float | list | tuple): The array.
        axis (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        dtype (DType | None): The element type of the result; None for that of the input. Default:
            None.
        ddof (int): What is subtracted from the number that squared deviations are divided by.
            Default: 0.
        keepdims (bool): Whether reduced axes stay with size 1. Default: False.

    Returns:
        Tensor: The results.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.nanvar([1.0, 3.0, mnp.nan]).item()
        1.0
    """
    degrees = ddof if isinstance(ddof, (bool, Tensor)) else arguments.number("nanvar", "ddof", ddof)
    x, keepdims = as_kind(asarray(a), dtype), bool(keepdims)
    axis = axes_of("nanvar", x, axis)
    x = x if x.dtype.is_floating else cast(x, D.float32)
    good = ops.logical_not(ops.isnan(x))
    gaps = ops.where(good, x - ops.nanmean(x, axis, True), 0.0)
    return ops.sum(gaps * gaps, axis, keepdims) / (ops.sum(cast(good, x.dtype), axis, keepdims) - degrees)


def nanstd(a: Any, axis: Any = None, dtype: Any = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """Return the square root of `nanvar`.

    Args:
        a (Tensor | float | list | tuple): The array.
        axis (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        dtype (DType | None): The element type of the result; None for that of the input. Default:
            None.
        ddof (int): What is subtracted from the number that squared deviations are divided by.
            Default: 0.
        keepdims (bool): Whether reduced axes stay with size 1. Default: False.

    Returns:
        Tensor: The results.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.nanstd([1.0, 3.0, mnp.nan]).item()
        1.0
    """
    return root(nanvar(a, axis, dtype, ddof, keepdims), 2)
