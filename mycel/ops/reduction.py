"""Reductions over axes: sums, means, extremes, spreads, norms, and tests that all or any elements
hold.

Integers are summed and multiplied in int64. Means and spreads of 16-bit floats are computed in
float32 and rounded once. Those of integers follow MindSpore: a mean keeps the type (rounded towards
0), a spread is float32. Variance takes two passes, the mean and then the mean of the squared
deviations, so that no digits cancel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims.base import broadcast_shapes
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType
from mycel._src.foundation.errors import ShapeError, operation_called
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops._operands import (
    all_axes,
    axis_of,
    broadcast,
    certainly,
    constant_like,
    flat,
    floating,
    operand,
    reshaped,
    run,
    select,
    term,
    whole,
    wide,
)
from mycel.ops.creation import zeros
from mycel.ops.elementwise import truncate_div
from mycel.ops.vector_norms import root

__all__ = [
    "all",
    "amax",
    "amin",
    "aminmax",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "logsumexp",
    "max",
    "mean",
    "min",
    "nanmean",
    "nansum",
    "prod",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_sum",
    "std",
    "std_mean",
    "sum",
    "var",
    "var_mean",
]

Pair = tuple[Tensor, Tensor]


def _reduce(primitive: Any, x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    kept = keep if keep is True or keep is False else arguments.flag(operation_called(), "keepdims", keep)
    return run(primitive, x, axes=axes, keepdims=kept)


def _countable(x: Tensor) -> Tensor:
    """Convert booleans and integers to int64, the type of their sums and products."""
    return cast(x, D.int64) if x.dtype.kind in "iub" else x


def _total(x: Tensor, axes: tuple[int, ...], keep: bool, dtype: DType | None) -> Tensor:
    x = cast(x, dtype) if dtype is not None else _countable(x)
    if x.dtype is D.bool_:
        return _reduce(R.reduce_any, x, axes, keep)
    return _reduce(R.reduce_sum, x, axes, keep)


@fused
def sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the sum of `input` over the axes `dim` (None: all), kept at size 1 with `keepdim`.

    Args:
        input (Tensor): The tensor.
        dim (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        keepdim (bool): Whether reduced axes stay with size 1. Default: False.
        dtype (DType | None): The element type of the result; None for that of the input, int64 of
            integers and booleans. Default: None.

    Returns:
        Tensor: The sums.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.sum(ms.Tensor([[1.0, 2.0], [3.0, 4.0]]), 0).tolist()
        [4.0, 6.0]
    """
    x = operand("sum", input)
    return _total(x, all_axes("sum", dim, x.ndim), keepdim, None if dtype is None else D.from_any(dtype))


def _mean(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    kind = x.dtype
    if kind is D.bool_:
        raise TypeError("mean: takes numbers, not booleans; cast the tensor to a floating type first")
    count = whole(x, axes)
    if kind.is_integer:
        if isinstance(count, int) and count == 0:
            raise ShapeError(f"mean: there is nothing to average in integers of shape {x.shape}")
        total = _reduce(R.reduce_sum, cast(x, D.int64), axes, keep)
        return cast(truncate_div(total, constant_like(count, total)), kind)
    total = _reduce(R.reduce_sum, wide(x), axes, keep)
    return cast(run(E.div, total, constant_like(count, total)), kind)


@fused
def mean(x: Any, axis: Any = None, keep_dims: bool = False) -> Tensor:
    """Return the mean over `axis` (None: all axes), in the type of the tensor; for integers it is
    rounded towards 0.

    The mean of no elements is NaN. Raises TypeError for booleans.

    >>> import mycel as ms
    >>> ms.ops.mean(ms.Tensor([[1.0, 2.0], [3.0, 5.0]]), 1).tolist()
    [1.5, 4.0]
    """
    value = operand("mean", x)
    return _mean(value, all_axes("mean", axis, value.ndim), keep_dims)


@fused
def prod(input: Any, axis: Any = None, keep_dims: bool = False, dtype: Any = None) -> Tensor:
    """Return the product of `input` over `axis` (None: all axes), kept at size 1 with `keep_dims`.

    Args:
        input (Tensor): The tensor.
        axis (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        keep_dims (bool): Whether reduced axes stay with size 1. Default: False.
        dtype (DType | None): The element type of the result; None for that of the input, int64 of
            integers and booleans. Default: None.

    Returns:
        Tensor: The products.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.prod(ms.Tensor([2.0, 3.0, 4.0])).item()
        24.0
    """
    x = operand("prod", input)
    x = cast(x, D.from_any(dtype)) if dtype is not None else _countable(x)
    return _reduce(R.reduce_prod, x, all_axes("prod", axis, x.ndim), keep_dims)


def _extreme(name: str, input: Any, axis: Any, keep: bool, initial: Any, where: Any, largest: bool) -> Tensor:
    x = operand(name, input)
    if where is not None and where is not True:
        if initial is None:
            raise ValueError(f"{name}: with `where` an `initial` value is needed for places where nothing is chosen")
        mask = operand(name, where, D.bool_)
        shape = broadcast_shapes(x.shape, mask.shape)
        x = select(mask, broadcast(x, shape), constant_like(initial, x))
    axes = all_axes(name, axis, x.ndim)
    if initial is None and certainly(lambda: whole(x, axes) == 0):
        raise ValueError(f"{name}: there is nothing to choose from in shape {x.shape} over axes {axes}; give `initial`")
    result = _reduce(R.reduce_max if largest else R.reduce_min, x, axes, keep)
    if initial is None:
        return result
    return run(E.maximum if largest else E.minimum, result, term(name, initial, x.dtype))


@fused
def amax(input: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Tensor:
    """Return the largest element of `input` over `axis` (None: all axes), kept at size 1 with
    `keepdims`.

    NaN wins. Equal extremes share the derivative.

    Args:
        input (Tensor): The tensor.
        axis (int | tuple[int, ...] | None): The axes; None or () for all. Default: None.
        keepdims (bool): Whether reduced axes stay with size 1. Default: False.
        initial (Tensor | float | None): One more value to choose from. Default: None.
        where (Tensor | bool | None): Which elements count. Default: None.

    Returns:
        Tensor: The extremes, in the type of the input.

    Raises:
        ValueError: If there is nothing to choose from.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.amax(ms.Tensor([[1.0, 5.0], [3.0, 4.0]]), 1).tolist()
        [5.0, 4.0]
    """
    return _extreme("amax", input, axis, keepdims, initial, where, True)


@fused
def amin(input: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Tensor:
    """Return the smallest element of `input` over `axis` (None: all axes), kept at size 1 with
    `keepdims`.

    NaN wins. Equal extremes share the derivative.

    Args:
        input (Tensor): The tensor.
        axis (int | tuple[int, ...] | None): The axes; None or () for all. Default: None.
        keepdims (bool): Whether reduced axes stay with size 1. Default: False.
        initial (Tensor | float | None): One more value to choose from. Default: None.
        where (Tensor | bool | None): Which elements count. Default: None.

    Returns:
        Tensor: The extremes, in the type of the input.

    Raises:
        ValueError: If there is nothing to choose from.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.amin(ms.Tensor([[1.0, 5.0], [3.0, 4.0]]), 1).tolist()
        [1.0, 3.0]
    """
    return _extreme("amin", input, axis, keepdims, initial, where, False)


@fused
def aminmax(input: Any, *, axis: int | None = 0, keepdims: bool = False) -> Pair:
    """Return the smallest and the largest element over `axis` (None: all axes).

    >>> import mycel as ms
    >>> [t.item() for t in ms.ops.aminmax(ms.Tensor([3.0, 1.0, 2.0]))]
    [1.0, 3.0]
    """
    keep = keepdims if axis is not None or isinstance(keepdims, Tensor) else bool(keepdims)
    return amin(input, axis, keep), amax(input, axis, keep)


def _arg(name: str, primitive: Any, input: Any, axis: Any, keep: bool, dtype: DType) -> Tensor:
    x = operand(name, input)
    x = cast(x, D.int8) if x.dtype is D.bool_ else x
    if axis is None or x.ndim == 0:
        result = run(primitive, flat(x), axis=0)
        return cast(reshaped(result, (1,) * x.ndim) if keep else result, _reaching(result, dtype))
    where = axis_of(name, axis, x.ndim)
    result = run(primitive, x, axis=where)
    if keep:
        result = reshaped(result, (*x.shape[:where], 1, *x.shape[where + 1 :]))
    return cast(result, _reaching(result, dtype))


def _reaching(positions: Tensor, dtype: DType) -> DType:
    """Return int64 for positions if they already are int64 because the axis is too long for int32,
    else the usual type.
    """
    return D.int64 if positions.dtype is D.int64 else dtype


@fused
def argmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Return the int64 position of the first largest element along `dim`, or without `dim` among
    all elements in row-major order.

    The first NaN wins.

    >>> import mycel as ms
    >>> ms.ops.argmax(ms.Tensor([[1.0, 5.0], [3.0, 2.0]]), 1).tolist()
    [1, 0]
    """
    arguments.flag("argmax", "keepdim", keepdim)
    return _arg("argmax", R.argmax, input, dim, keepdim, D.int64)


@fused
def argmin(input: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the int32 position of the first smallest element along `axis`, or without `axis` among
    all elements in row-major order.

    The first NaN wins. The position is int64 where the axis is too long for int32.

    >>> import mycel as ms
    >>> ms.ops.argmin(ms.Tensor([[1.0, 5.0], [3.0, 2.0]]), 1).tolist()
    [0, 1]
    """
    return _arg("argmin", R.argmin, input, axis, keepdims, D.int32)


def _with_position(
    name: str, primitive: Any, input: Any, axis: Any, keep: bool, initial: Any, where: Any, largest: bool
) -> Pair:
    x = operand(name, input)
    if axis is None:
        return _extreme(name, x, None, False, None, None, largest), zeros((), D.int64)
    if initial is None and (where is None or where is True) and x.ndim and x.dtype.is_floating:
        at = axis_of(name, axis, x.ndim)
        position = _arg(name, primitive, x, axis, True, D.int64)
        value = run(I.take_along, x, position, axis=at, bounds="drop")
        if arguments.flag(name, "keepdims", keep):
            return value, position
        rest = (*x.shape[:at], *x.shape[at + 1 :])
        return reshaped(value, rest), reshaped(position, rest)
    value = _extreme(name, x, arguments.index(name, "axis", axis), keep, initial, where, largest)
    if where is not None and where is not True:
        x = select(operand(name, where, D.bool_), x, constant_like(initial, x))
    position = _arg(name, primitive, x, axis, keep, D.int64)
    if initial is not None:
        position = select(run(E.eq, value, term(name, initial, value.dtype)), constant_like(0, position), position)
    return value, position


@fused
def max(input: Any, axis: int | None = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Pair:
    """Return the largest element along an axis and its position.

    Without `axis` it is the largest of all, with position 0. Of equal elements the first has the
    derivative, or all share it with `initial` or `where`.

    Args:
        input (Tensor): The tensor.
        axis (int | None): The axis; None for all elements. Default: None.
        keepdims (bool): Whether the axis stays with size 1. Default: False.
        initial (Tensor | float | None): One more value to choose from; the position is 0 where no
            element beats it. Default: None.
        where (Tensor | bool | None): Which elements count. Default: None.

    Returns:
        tuple[Tensor, Tensor]: The values, in the type of the input, and the positions, int64.

    Examples:
        >>> import mycel as ms
        >>> values, positions = ms.ops.max(ms.Tensor([[1.0, 5.0], [3.0, 2.0]]), 1)
        >>> values.tolist(), positions.tolist()
        ([5.0, 3.0], [1, 0])
    """
    return _with_position("max", R.argmax, input, axis, keepdims, initial, where, True)


@fused
def min(input: Any, axis: int | None = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Pair:
    """Return the smallest element along an axis and its position.

    Without `axis` it is the smallest of all, with position 0. Of equal elements the first has the
    derivative, or all share it with `initial` or `where`.

    Args:
        input (Tensor): The tensor.
        axis (int | None): The axis; None for all elements. Default: None.
        keepdims (bool): Whether the axis stays with size 1. Default: False.
        initial (Tensor | float | None): One more value to choose from; the position is 0 where no
            element beats it. Default: None.
        where (Tensor | bool | None): Which elements count. Default: None.

    Returns:
        tuple[Tensor, Tensor]: The values, in the type of the input, and the positions, int64.

    Examples:
        >>> import mycel as ms
        >>> values, positions = ms.ops.min(ms.Tensor([[1.0, 5.0], [3.0, 2.0]]), 1)
        >>> values.tolist(), positions.tolist()
        ([1.0, 2.0], [0, 1])
    """
    return _with_position("min", R.argmin, input, axis, keepdims, initial, where, False)


@fused
def any(input: Any, axis: Any = None, keep_dims: bool = False) -> Tensor:
    """Return whether any element over `axis` (None: all axes) is true; numbers are true where they
    are not 0.

    >>> import mycel as ms
    >>> ms.ops.any(ms.Tensor([[True, False], [False, False]]), 1).tolist()
    [True, False]
    """
    x = operand("any", input, D.bool_)
    return _reduce(R.reduce_any, x, all_axes("any", axis, x.ndim), keep_dims)


@fused
def all(input: Any, axis: Any = None, keep_dims: bool = False) -> Tensor:
    """Return whether all elements over `axis` (None: all axes) are true; numbers are true where
    they are not 0.

    >>> import mycel as ms
    >>> ms.ops.all(ms.Tensor([[True, False], [True, True]]), 1).tolist()
    [False, True]
    """
    x = operand("all", input, D.bool_)
    return _reduce(R.reduce_all, x, all_axes("all", axis, x.ndim), keep_dims)


@fused
def count_nonzero(x: Any, axis: Any = (), keep_dims: bool = False, dtype: Any = D.int32) -> Tensor:
    """Return how many elements of `x` over `axis` (all axes by default) are not 0.

    Args:
        x (Tensor): The tensor.
        axis (int | tuple[int, ...] | None): The axes; None or () for all. Default: ().
        keep_dims (bool): Whether the axes stay with size 1. Default: False.
        dtype (DType | None): The element type of the result; None for int32. Default: int32.

    Returns:
        Tensor: The counts.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.count_nonzero(ms.Tensor([0.0, 2.0, 3.0])).item()
        2
    """
    value = operand("count_nonzero", x, None)
    here = cast(run(E.stop_gradient, cast(value, D.bool_)), D.int64)
    axes, kind = all_axes("count_nonzero", axis, value.ndim), D.from_any(dtype)
    count = whole(value, axes)
    if kind.is_integer and isinstance(count, int) and count > np.iinfo(kind.numpy).max and kind.itemsize >= 4:
        raise ValueError(f"count_nonzero: {kind.name} cannot count {count} elements; give dtype=mindspore.int64")
    return cast(_reduce(R.reduce_sum, here, axes, keep_dims), kind)


def _moments(name: str, input: Any, axis: Any, ddof: Any, keep: bool) -> Pair:
    """Return the variance and the mean, computed in float32 for 16-bit floats."""
    if isinstance(axis, list):
        raise arguments.wrong_type(name, "axis", "an int or a tuple of ints", axis)
    x = floating(name, input)
    axes, full = all_axes(name, axis, x.ndim), wide(x)
    centre = _mean(full, axes, True)
    deviation = run(E.sub, full, centre)
    total = _reduce(R.reduce_sum, run(E.mul, deviation, deviation), axes, keep)
    count = whole(x, axes) - arguments.int64(name, "ddof", ddof)
    if isinstance(count, int) and count < 0:
        count = 0
    spread = run(E.div, total, constant_like(count, total))
    return cast(spread, x.dtype), cast(centre if keep else reshaped(centre, total.shape), x.dtype)


@fused
def var(input: Any, axis: Any = None, ddof: int | bool = 0, keepdims: bool = False) -> Tensor:
    """Return the variance of `input` over `axis` (None: all axes): squared deviations from the
    mean, summed and divided by the count minus `ddof`.

    Args:
        input (Tensor): The tensor.
        axis (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        ddof (int | bool): What is subtracted from the count; a bool is 0 or 1. Default: 0.
        keepdims (bool): Whether the axes stay with size 1. Default: False.

    Returns:
        Tensor: The variances.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.var(ms.Tensor([1.0, 2.0, 3.0]), ddof=1).item()
        1.0
    """
    return _moments("var", input, axis, ddof, keepdims)[0]


@fused
def std(input: Any, axis: Any = None, ddof: int | bool = 0, keepdims: bool = False) -> Tensor:
    """Return the standard deviation, the square root of `var`; its derivative is 0 where that is 0.

    Args:
        input (Tensor): The tensor.
        axis (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        ddof (int | bool): What is subtracted from the count; a bool is 0 or 1. Default: 0.
        keepdims (bool): Whether the axes stay with size 1. Default: False.

    Returns:
        Tensor: The deviations.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.std(ms.Tensor([1.0, 2.0, 3.0]), ddof=1).item()
        1.0
    """
    return root(_moments("std", input, axis, ddof, keepdims)[0], 2.0)


@fused
def var_mean(input: Any, axis: Any = None, ddof: int | bool = 0, keepdims: bool = False) -> Pair:
    """Return `var` and `mean` together.

    Args:
        input (Tensor): The tensor.
        axis (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        ddof (int | bool): What is subtracted from the count; a bool is 0 or 1. Default: 0.
        keepdims (bool): Whether the axes stay with size 1. Default: False.

    Returns:
        tuple[Tensor, Tensor]: The variances and the means.

    Examples:
        >>> import mycel as ms
        >>> [t.item() for t in ms.ops.var_mean(ms.Tensor([1.0, 2.0, 3.0]), ddof=1)]
        [1.0, 2.0]
    """
    return _moments("var_mean", input, axis, ddof, keepdims)


@fused
def std_mean(input: Any, axis: Any = None, ddof: int | bool = 0, keepdims: bool = False) -> Pair:
    """Return `std` and `mean` together.

    Args:
        input (Tensor): The tensor.
        axis (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        ddof (int | bool): What is subtracted from the count; a bool is 0 or 1. Default: 0.
        keepdims (bool): Whether the axes stay with size 1. Default: False.

    Returns:
        tuple[Tensor, Tensor]: The deviations and the means.

    Examples:
        >>> import mycel as ms
        >>> [t.item() for t in ms.ops.std_mean(ms.Tensor([1.0, 2.0, 3.0]), ddof=1)]
        [1.0, 2.0]
    """
    spread, centre = _moments("std_mean", input, axis, ddof, keepdims)
    return root(spread, 2.0), centre


@fused
def logsumexp(input: Any, dim: Any, keepdim: bool = False) -> Tensor:
    """Return the logarithm of the sum of exponentials over `dim`.

    The maximum is subtracted first, so that nothing overflows.

    >>> import mycel as ms
    >>> ms.ops.logsumexp(ms.Tensor([1000.0, 1000.0]), 0).item()
    1000.6931762695312
    """
    arguments.flag("logsumexp", "keepdim", keepdim)
    x = floating("logsumexp", input)
    axes, full = all_axes("logsumexp", dim, x.ndim), wide(x)
    top = run(E.stop_gradient, _reduce(R.reduce_max, full, axes, True))
    top = select(run(E.is_finite, top), top, 0.0)
    total = _reduce(R.reduce_sum, run(E.exp, run(E.sub, full, top)), axes, True)
    result = run(E.add, run(E.log, total), top)
    return cast(result if keepdim else reshaped(result, R.reduced_shape(x._type, axes, False)), x.dtype)


@fused
def nansum(input: Any, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the sum of `input` over `axis` (None: all axes) with NaN counted as 0.

    Args:
        input (Tensor): The tensor.
        axis (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        keepdims (bool): `keepdim`. Default: False.
        dtype (DType | None): The element type of the result; None for that of the input. Default:
            None.

    Returns:
        Tensor: The sums.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.nansum(ms.Tensor([1.0, float("nan"), 2.0])).item()
        3.0
    """
    x = operand("nansum", input)
    if x.dtype.is_floating:
        x = select(run(E.is_nan, x), 0.0, x)
    return sum(x, axis, keepdims, dtype=x.dtype if dtype is None and x.dtype.is_integer else dtype)


@fused
def nanmean(input: Any, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the mean of those elements of `input` over `axis` (None: all axes) that are not NaN.

    Args:
        input (Tensor): The tensor.
        axis (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        keepdims (bool): Keeps the axes at size 1. Default: False.
        dtype (DType | None): The element type of the result; None for that of the input. Default:
            None.

    Returns:
        Tensor: The means, NaN where all elements are.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.nanmean(ms.Tensor([1.0, float("nan"), 2.0])).item()
        1.5
    """
    x = floating("nanmean", input)
    here = run(E.logical_not, run(E.is_nan, x))
    axes = all_axes("nanmean", axis, x.ndim)
    full = wide(x)
    count = _reduce(R.reduce_sum, cast(here, full.dtype), axes, keepdims)
    total = _reduce(R.reduce_sum, select(here, full, 0.0), axes, keepdims)
    return cast(run(E.div, total, count), x.dtype if dtype is None else D.from_any(dtype))


@fused
def reduce_sum(x: Any, axis: Any = ()) -> Tensor:
    """Return the sum over `axis` (all axes by default), in the type of the tensor.

    >>> import mycel as ms
    >>> ms.ops.reduce_sum(ms.Tensor([1.0, 2.0])).item()
    3.0
    """
    value = operand("reduce_sum", x)
    return _total(value, all_axes("reduce_sum", axis, value.ndim), False, value.dtype)


@fused
def reduce_mean(x: Any, axis: Any = ()) -> Tensor:
    """Return the mean over `axis` (all axes by default).

    >>> import mycel as ms
    >>> ms.ops.reduce_mean(ms.Tensor([1.0, 2.0])).item()
    1.5
    """
    return mean(x, axis)


@fused
def reduce_max(x: Any, axis: Any = ()) -> Tensor:
    """Return the largest element over `axis` (all axes by default).

    >>> import mycel as ms
    >>> ms.ops.reduce_max(ms.Tensor([1.0, 2.0])).item()
    2.0
    """
    return amax(x, axis)


@fused
def reduce_min(x: Any, axis: Any = ()) -> Tensor:
    """Return the smallest element over `axis` (all axes by default).

    >>> import mycel as ms
    >>> ms.ops.reduce_min(ms.Tensor([1.0, 2.0])).item()
    1.0
    """
    return amin(x, axis)
