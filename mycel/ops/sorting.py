"""Order: sorting, largest and smallest elements, running sums, products and extremes, medians and
quantiles, searches and counts.

Sorting is stable, puts NaN above every number (first in a descending order), as `max` does, and
returns int32 positions. Its derivative moves cotangents back to where the elements came from.
"""

from __future__ import annotations

import builtins
from typing import Any, NamedTuple

import numpy as np

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims import sort_and_scan
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast, scalar
from mycel.ops._operands import (
    apply,
    axis_of,
    broadcast,
    certainly,
    constant_like,
    flat,
    floating,
    iota,
    move_axis,
    need_room,
    number_of,
    operand,
    operands,
    reshaped,
    run,
    select,
    size_of,
    take_slice,
    term,
    wide,
)
from mycel.ops.activation import log_of_sum
from mycel.ops.array import concat
from mycel.ops.creation import zeros

__all__ = [
    "argsort",
    "bincount",
    "bucketize",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "diff",
    "histc",
    "logcumsumexp",
    "median",
    "msort",
    "nanmedian",
    "nanquantile",
    "quantile",
    "searchsorted",
    "sort",
    "top_k",
    "topk",
    "trapz",
]

Pair = tuple[Tensor, Tensor]


def sort(input_x: Any, axis: int = -1, descending: bool = False) -> Pair:
    """Return the sorted elements along an axis and their int32 positions.

    Equal elements keep their order, and NaN counts as the largest.

    >>> import mycel as ms
    >>> [t.tolist() for t in ms.ops.sort(ms.Tensor([3.0, 1.0, 2.0]))]
    [[1.0, 2.0, 3.0], [1, 2, 0]]
    """
    arguments.flag("sort", "descending", descending)
    x = operand("sort", input_x)
    if x.ndim == 0:
        return x, cast(x * 0, D.int32)
    values, positions = apply(sort_and_scan.sort, x, axis=axis_of("sort", axis, x.ndim), descending=bool(descending))
    return values, positions


def argsort(input: Any, axis: int = -1, descending: bool = False) -> Tensor:
    """Return the int32 positions that sort the elements along an axis.

    >>> import mycel as ms
    >>> ms.ops.argsort(ms.Tensor([3.0, 1.0, 2.0])).tolist()
    [1, 2, 0]
    """
    arguments.flag("argsort", "descending", descending)
    return sort(input, axis, descending)[1]


def msort(input: Any) -> Tensor:
    """Return the elements sorted along axis 0.

    >>> import mycel as ms
    >>> ms.ops.msort(ms.Tensor([3.0, 1.0])).tolist()
    [1.0, 3.0]
    """
    return sort(input, 0)[0]


def topk(input: Any, k: int, dim: int | None = None, largest: bool = True, sorted: bool = True) -> Pair:
    """Return the `k` largest elements along an axis, in order, and their positions.

    NaN counts as the largest.

    Args:
        input (Tensor): The tensor.
        k (int): How many.
        dim (int | None): The axis; None for the last. Default: None.
        largest (bool): Whether they are the largest instead of the smallest. Default: True.
        sorted (bool): Has no effect: they are in order always. Default: True.

    Returns:
        tuple[Tensor, Tensor]: The elements, and their positions, int32.

    Raises:
        ValueError: For `k` larger than the axis.

    Examples:
        >>> import mycel as ms
        >>> [t.tolist() for t in ms.ops.topk(ms.Tensor([3.0, 1.0, 2.0]), 2)]
        [[3.0, 2.0], [0, 2]]
    """
    arguments.flag("topk", "largest", largest)
    arguments.flag("topk", "sorted", sorted)
    x = operand("topk", input)
    axis = axis_of("topk", -1 if dim is None else dim, x.ndim)
    size = x.shape[axis]
    count = size_of("topk", k)
    if count < 0 or (isinstance(size, int) and count > size):
        raise ValueError(f"topk: k must lie between 0 and {size}, the size of axis {axis}, not {k}")
    values, positions = apply(sort_and_scan.top_k, x, k=count, axis=axis, largest=bool(largest))
    return values, positions


def top_k(input_x: Any, k: int, sorted: bool = True) -> Pair:
    """Return the k largest elements along the last axis in order, and their int32 positions.

    >>> import mycel as ms
    >>> [t.tolist() for t in ms.ops.top_k(ms.Tensor([3.0, 1.0, 2.0]), 1)]
    [[3.0], [0]]
    """
    return topk(input_x, k, -1, True, sorted)


def _running(name: str, primitive: Any, input: Any, axis: Any, dtype: Any) -> Tensor:
    x = operand(name, input)
    kind = None if dtype is None else D.from_any(dtype)
    x = cast(x, kind) if kind is not None else cast(x, D.int64) if x.dtype is D.bool_ else x
    return run(primitive, x, axis=axis_of(name, axis, x.ndim), reverse=False)


def cumsum(x: Any, axis: int, dtype: Any = None) -> Tensor:
    """Return the running sums along an axis, in the type of `x` or in `dtype`.

    >>> import mycel as ms
    >>> ms.ops.cumsum(ms.Tensor([1.0, 2.0, 3.0]), 0).tolist()
    [1.0, 3.0, 6.0]
    """
    return _running("cumsum", sort_and_scan.cumsum, x, axis, dtype)


def cumprod(input: Any, dim: int, dtype: Any = None) -> Tensor:
    """Return the running products along an axis, in `dtype` or the type of `input`; integers are
    multiplied in int64.

    >>> import mycel as ms
    >>> ms.ops.cumprod(ms.Tensor([1.0, 2.0, 3.0]), 0).tolist()
    [1.0, 2.0, 6.0]
    """
    x = operand("cumprod", input)
    return _running(
        "cumprod", sort_and_scan.cumprod, x, dim, D.int64 if dtype is None and x.dtype.is_integer else dtype
    )


def _running_extreme(name: str, primitive: Any, input: Any, axis: int) -> Pair:
    x = operand(name, input)
    where = axis_of(name, axis, x.ndim)
    best = run(primitive, x, axis=where, reverse=False)
    # The latest place that equals the running extreme is where it comes from; NaN equals nothing
    # but itself.
    hit = run(E.eq, x, best)
    if x.dtype.is_floating:
        hit = run(E.logical_or, hit, run(E.is_nan, x))
    kind = S.position_type(x.shape[where])
    places = select(hit, iota(x.shape, where, kind), -1)
    return best, cast(run(sort_and_scan.cummax, cast(places, kind), axis=where, reverse=False), D.int64)


def cummax(input: Any, axis: int) -> Pair:
    """Return the largest element so far along an axis, and its int64 position (the last of equal
    ones).

    >>> import mycel as ms
    >>> [t.tolist() for t in ms.ops.cummax(ms.Tensor([1.0, 3.0, 2.0]), 0)]
    [[1.0, 3.0, 3.0], [0, 1, 1]]
    """
    return _running_extreme("cummax", sort_and_scan.cummax, input, axis)


def cummin(input: Any, axis: int) -> Pair:
    """Return the smallest element so far along an axis, and its int32 position (the last of equal
    ones).

    The position is int64 where the axis is too long for int32.

    >>> import mycel as ms
    >>> [t.tolist() for t in ms.ops.cummin(ms.Tensor([3.0, 1.0, 2.0]), 0)]
    [[3.0, 1.0, 1.0], [0, 1, 1]]
    """
    least, place = _running_extreme("cummin", sort_and_scan.cummin, input, axis)
    x = operand("cummin", input)
    return least, cast(place, S.position_type(x.shape[axis_of("cummin", axis, x.ndim)]))


def logcumsumexp(input: Any, axis: int) -> Tensor:
    """Return the logarithms of the running sums of exponentials along an axis, without overflow.

    >>> import mycel as ms
    >>> ms.ops.logcumsumexp(ms.Tensor([0.0, float("-inf")]), 0).tolist()
    [0.0, 0.0]
    """
    x = floating("logcumsumexp", input)
    where, full = axis_of("logcumsumexp", axis, x.ndim), wide(x)
    if type(x.shape[where]) is int:
        return cast(_doubled(full, where), x.dtype)
    # Of an open size. Pairs (i, j <= i): each running sum takes out its own running maximum, so
    # nothing underflows.
    line = move_axis(full, where, x.ndim - 1)
    size = line.shape[-1]
    top = run(E.stop_gradient, run(sort_and_scan.cummax, line, axis=x.ndim - 1, reverse=False))
    top = select(run(E.is_finite, top), top, 0.0)
    gaps = run(E.sub, reshaped(line, (*line.shape[:-1], 1, size)), reshaped(top, (*top.shape, 1)))
    below = run(E.ge, iota((size, size), 0, D.int32), iota((size, size), 1, D.int32))
    # Places above the diagonal may be far larger than the running maximum: they must not reach exp.
    powers = select(below, run(E.exp, select(below, gaps, 0.0)), 0.0)
    total = run(R.reduce_sum, powers, axes=(powers.ndim - 1,), keepdims=False)
    return cast(move_axis(run(E.add, run(E.log, total), top), x.ndim - 1, where), x.dtype)


@fused
def _doubled(x: Tensor, axis: int) -> Tensor:
    """Return the logarithms of running sums of exponentials, by sums of 1, 2, 4, ... of them."""
    size, step = x.shape[axis], 1
    none = (0,) * x.ndim
    while step < size:
        low = tuple([step if a == axis else 0 for a in range(x.ndim)])
        kept = take_slice(x, axis, 0, size - step)
        other = run(S.PAD, kept, constant_like(-float("inf"), x), low=low, high=none, interior=none)
        x = log_of_sum(x, other)
        step *= 2
    return x


def diff(x: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Return the `n`-th differences of neighbours in `x` along `axis`.

    Args:
        x (Tensor): The tensor.
        n (int): How many times differences are taken. Default: 1.
        axis (int): The axis. Default: -1.
        prepend (Tensor | None): What is joined to the tensor first. Default: None.
        append (Tensor | None): What is joined to the tensor first. Default: None.

    Returns:
        Tensor: The input with `n` elements less along the axis.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.diff(ms.Tensor([1.0, 4.0, 9.0])).tolist()
        [3.0, 5.0]
    """
    value = operand("diff", x)
    where = axis_of("diff", axis, value.ndim)
    parts = [operand("diff", v, value.dtype) for v in (prepend, value, append) if v is not None]
    parts = [broadcast(v, (*value.shape[:where], 1, *value.shape[where + 1 :])) if v.ndim == 0 else v for v in parts]
    value = concat(parts, where)
    for _ in builtins.range(size_of("diff", n)):
        size = value.shape[where]
        if isinstance(size, int) and size == 0:
            break
        later, earlier = take_slice(value, where, 1, size), take_slice(value, where, 0, size - 1)
        value = run(E.logical_xor if value.dtype is D.bool_ else E.sub, later, earlier)
    return value


def trapz(y: Any, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """Return the integral by the trapezoid rule along an axis.

    Args:
        y (Tensor): The values.
        x (Tensor | None): The points; None for distances `dx`. Default: None.
        dx (float): The distance of the points. Default: 1.0.
        dim (int): The axis. Default: -1.

    Returns:
        Tensor: The integrals, without the axis.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.trapz(ms.Tensor([1.0, 2.0, 3.0])).item()
        4.0
    """
    arguments.instance("trapz", "dx", dx, float)
    value = floating("trapz", y)
    where = axis_of("trapz", dim, value.ndim)
    size = value.shape[where]
    pairs = take_slice(value, where, 1, size) + take_slice(value, where, 0, size - 1)
    if x is not None:
        points = operand("trapz", x, value.dtype)
        gaps = diff(points, axis=-1 if points.ndim == 1 else dim)
        pairs = pairs * (reshaped(gaps, (gaps.size, *(1,) * (value.ndim - 1 - where))) if points.ndim == 1 else gaps)
        dx = 1.0
    return run(R.reduce_sum, pairs, axes=(where,), keepdims=False) * (0.5 * dx)


def _kth(values: Tensor, positions: Tensor, axis: int, k: Any, keep: bool) -> Pair:
    result = []
    for t in (values, positions):
        part = take_slice(t, axis, k, k + 1)
        result.append(part if keep else reshaped(part, part.shape[:axis] + part.shape[axis + 1 :]))
    return result[0], cast(result[1], D.int64)


def _axis_with_elements(name: str, axis: Any, x: Tensor) -> int:
    """Return the axis, counted from the front. Raises ShapeError where it has no elements."""
    where = axis_of(name, axis, x.ndim)
    if certainly(lambda: x.shape[where] == 0):
        raise ShapeError(f"{name}: nothing lies along axis {axis} of a tensor of shape {tuple(x.shape)}")
    return where


class Chosen(NamedTuple):
    """Values and their int64 positions."""

    values: Tensor
    indices: Tensor

    def __repr__(self) -> str:
        return tuple.__repr__(self)


def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> Chosen:
    """Return the `k`-th smallest element of `input` along `dim`, counted from 1, with its int64
    position.

    Args:
        input (Tensor): The tensor.
        k (int): Which one, from 1.
        dim (int): The axis. Default: -1.
        keepdim (bool): Whether the axis stays with size 1. Default: False.

    Returns:
        tuple[Tensor, Tensor]: The values, and their positions, int64.

    Raises:
        ValueError: For `k` out of range.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.kthvalue(ms.Tensor([3.0, 1.0, 2.0]), 2).values.item()
        2.0
    """
    x = operand("kthvalue", input)
    axis = axis_of("kthvalue", dim, x.ndim)
    k = size_of("kthvalue", k)
    if not 1 <= k <= x.shape[axis]:
        raise ValueError(f"kthvalue: k must be in [1, {x.shape[axis]}], not {k}")
    values, indices = sort(x, axis)
    return Chosen(*_kth(values, cast(indices, D.int64), axis, k - 1, keepdim))


def median(input: Any, axis: int = -1, keepdims: bool = False) -> Pair:
    """Return the lower median along an axis and its int64 position; NaN where an element is NaN.

    >>> import mycel as ms
    >>> [t.item() for t in ms.ops.median(ms.Tensor([3.0, 1.0, 2.0, 4.0]))]
    [2.0, 2]
    """
    arguments.flag("median", "keepdims", keepdims)
    x = operand("median", input)
    where = _axis_with_elements("median", axis, x)
    values, positions = sort(x, where)
    middle, place = _kth(values, positions, where, (x.shape[where] - 1) // 2, keepdims)
    if not x.dtype.is_floating:
        return middle, place
    # NaN sorts last, so the last element tells.
    last, last_place = _kth(values, positions, where, x.shape[where] - 1, keepdims)
    broken = run(E.is_nan, last)
    return select(broken, last, middle), select(broken, last_place, place)


def nanmedian(input: Any, axis: int = -1, keepdims: bool = False) -> Pair:
    """Return the lower median of the elements along an axis that are not NaN, and its int64
    position.

    >>> import mycel as ms
    >>> [t.item() for t in ms.ops.nanmedian(ms.Tensor([3.0, float("nan"), 2.0]))]
    [2.0, 2]
    """
    arguments.flag("nanmedian", "keepdims", keepdims)
    x = operand("nanmedian", input)
    where = _axis_with_elements("nanmedian", axis, x)
    if not x.dtype.is_floating:
        return median(x, axis, keepdims)
    values, positions = sort(x, where)
    count = run(R.reduce_sum, cast(run(E.logical_not, run(E.is_nan, x)), D.int32), axes=(where,), keepdims=True)
    place = run(E.maximum, (count - 1) // 2, constant_like(0, count))
    result = []
    for t in (values, positions):
        part = run(I.take_along, t, place, axis=where)
        result.append(part if keepdims else reshaped(part, part.shape[:where] + part.shape[where + 1 :]))
    return result[0], cast(result[1], D.int64)


def _quantile(name: str, input: Any, q: Any, axis: int | None, keepdims: bool, skip_nan: bool) -> Tensor:
    x = floating(name, input)
    levels = term(name, q, x.dtype)
    if levels.ndim > 1:
        raise ShapeError(f"{name}: q must be a number or a vector, not {levels._type}")
    line, where = (flat(x), 0) if axis is None else (x, axis)
    where = _axis_with_elements(name, where, line)
    values = move_axis(sort(line, where)[0], where, line.ndim - 1)
    good = run(E.logical_not, run(E.is_nan, values))
    count = run(R.reduce_sum, cast(good, x.dtype), axes=(values.ndim - 1,), keepdims=True)
    at = reshaped(levels, (levels.size, *(1,) * values.ndim)) * (count - 1.0)
    low = run(E.maximum, run(E.floor, at), constant_like(0.0, at))
    high = run(E.minimum, low + 1.0, run(E.maximum, broadcast(count, low.shape) - 1.0, constant_like(0.0, at)))
    table = broadcast(reshaped(values, (1, *values.shape)), (levels.size, *values.shape))
    below, above = (run(I.take_along, table, cast(p, D.int32), axis=table.ndim - 1) for p in (low, high))
    result = below + (above - below) * (at - low)
    if not skip_nan:
        last = take_slice(values, values.ndim - 1, values.shape[-1] - 1, values.shape[-1])
        result = select(run(E.is_nan, last), last, result)
    lead = () if levels.ndim == 0 else (levels.size,)
    body = values.shape[:-1]
    if keepdims:
        body = (1,) * x.ndim if axis is None else (*body[:where], 1, *body[where:])
    return reshaped(result, (*lead, *body))


def quantile(input: Any, q: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return quantiles along an axis, by linear interpolation between neighbours.

    The result is NaN where an element is NaN.

    Args:
        input (Tensor): The tensor.
        q (float | Tensor): A fraction in [0, 1], or a vector of them.
        axis (int | None): The axis; None for all elements. Default: None.
        keepdims (bool): Whether the axis stays with size 1. Default: False.

    Returns:
        Tensor: The quantiles; a vector `q` adds a leading axis.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.quantile(ms.Tensor([1.0, 2.0, 4.0]), 0.75).item()
        3.0
    """
    arguments.flag("quantile", "keepdims", keepdims)
    return _quantile("quantile", input, q, axis, keepdims, False)


def nanquantile(input: Any, q: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the `q`-quantiles of those elements of `input` along `axis` that are not NaN.

    Args:
        input (Tensor): The tensor.
        q (float | Tensor): A fraction in [0, 1], or a vector of them.
        axis (int | None): The axis; None for all elements. Default: None.
        keepdims (bool): Whether the axis stays with size 1. Default: False.

    Returns:
        Tensor: The quantiles; a vector `q` adds a leading axis.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.nanquantile(ms.Tensor([1.0, float("nan"), 3.0]), 0.5).item()
        2.0
    """
    arguments.flag("nanquantile", "keepdims", keepdims)
    return _quantile("nanquantile", input, q, axis, keepdims, True)


def _index_type(out_int32: bool) -> DType:
    return D.int32 if out_int32 else D.int64


def searchsorted(
    sorted_sequence: Any,
    values: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Tensor:
    """Return the positions at which values would be inserted into sorted rows (the last axis).

    Args:
        sorted_sequence (Tensor): The sorted rows; a single row serves all values.
        values (Tensor | float): The values.
        out_int32 (bool): Whether the result is int32 instead of int64. Default: False.
        right (bool): Whether values are inserted behind equal elements. Default: False.
        side (str | None): "left" or "right", which is the same as `right`. Default: None.
        sorter (Tensor | None): The positions that sort the rows. Default: None.

    Returns:
        Tensor: The positions, of the shape of the values.

    Raises:
        ValueError: If shapes or `side` do not fit.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.searchsorted(ms.Tensor([1.0, 3.0, 5.0]), ms.Tensor([3.0, 4.0])).tolist()
        [1, 2]
    """
    arguments.flag("searchsorted", "out_int32", out_int32)
    arguments.flag("searchsorted", "right", right)
    rows, wanted = operands("searchsorted", sorted_sequence, values)
    if side not in (None, "left", "right") or (side == "left" and right):
        raise ValueError(
            f"searchsorted: side must be None, 'left' or 'right' and agree with right={right}, not {side!r}"
        )
    if sorter is not None:
        rows = run(I.take_along, rows, operand("searchsorted", sorter, D.int64), axis=rows.ndim - 1)
    shape = wanted.shape
    if rows.ndim == 1:
        wanted = flat(wanted)
    found = run(sort_and_scan.search_sorted, rows, wanted, side="right" if right or side == "right" else "left")
    if out_int32 and found.dtype is D.int64:
        raise ValueError(f"searchsorted: int32 has no numbers for the positions in {rows._type}; leave out_int32 False")
    return cast(reshaped(found, shape), _index_type(out_int32))


def bucketize(input: Any, boundaries: Any, *, right: bool = False) -> Tensor:
    """Return, for each element, the int32 number of the interval between sorted boundaries that
    contains it.

    With `right` the intervals include their left boundary instead of the right one.

    >>> import mycel as ms
    >>> ms.ops.bucketize(ms.Tensor([0.0, 2.0, 9.0]), [1.0, 2.0, 3.0]).tolist()
    [0, 1, 3]
    """
    arguments.flag("bucketize", "right", right)
    if isinstance(boundaries, (tuple, list)):
        boundaries = as_tensor([arguments.number("bucketize", "each boundary", v) for v in boundaries])
    limits = term("bucketize", boundaries)
    return searchsorted(limits, operand("bucketize", input), out_int32=True, right=right)


def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Tensor:
    """Return how often each number 0, 1, ... occurs (float32), or the sum of the `weights` at its
    places.

    The largest value is needed.

    >>> import mycel as ms
    >>> ms.ops.bincount(ms.Tensor([1, 1, 2])).tolist()
    [0.0, 2.0, 1.0]
    """
    x = operand("bincount", input)
    if size_of("bincount", minlength) < 0:
        raise arguments.wrong_value("bincount", "minlength", "at least 0", minlength)
    if not x.dtype.is_integer or x.ndim != 1:
        raise TypeError(f"bincount: takes a vector of integers, not {x._type}")
    array = x.asnumpy()
    if array.size and array.min() < 0:
        raise arguments.wrong_value("bincount", "every number", "at least 0", array.min())
    count = builtins.max(int(array.max()) + 1 if array.size else 0, int(minlength))
    if weights is None:
        return cast(_occurrences(x, count), D.float32)
    shares = operand("bincount", weights)
    start = zeros((count,), shares.dtype)
    return run(I.scatter_nd, start, reshaped(cast(x, D.int64), (x.shape[0], 1)), shares, mode="add")


def histc(input: Any, bins: int = 100, min: float = 0.0, max: float = 0.0) -> Tensor:
    """Return how many elements fall into each of `bins` equal intervals.

    With `min` and `max` 0 the ends are those of the elements, whose values are then needed.

    Args:
        input (Tensor): The tensor.
        bins (int): The number of intervals, the last of which includes its end. Default: 100.
        min (float): The lower end. Default: 0.0.
        max (float): The upper end. Default: 0.0.

    Returns:
        Tensor: (bins,), in the type of the input.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.histc(ms.Tensor([1.0, 2.0, 1.0]), 4, 0.0, 3.0).tolist()
        [0.0, 2.0, 1.0, 0.0]
    """
    arguments.integer("histc", "bins", bins)
    arguments.instance("histc", "min", min, (int, float))
    arguments.instance("histc", "max", max, (int, float))
    x = operand("histc", input)
    number_of("histc", "min", min)
    number_of("histc", "max", max)
    if bins < 1 or not -np.inf < min <= max < np.inf:
        raise ValueError(f"histc: bins must be at least 1 and min at most max, not {bins}, {min}, {max}")
    need_room("histc", (size_of("histc", bins),), D.float64)
    low, high = float(min), float(max)
    if low == high and x.size:
        array = x.asnumpy()
        low, high = float(array.min()), float(array.max())
        if not np.isfinite(high - low):
            raise ValueError(f"histc: the elements lie in [{low}, {high}], which is not finite")
    low, high = (low - 1, high + 1) if low == high else (low, high)
    return cast(_histogram(x, as_tensor(np.linspace(low, high, bins + 1))), x.dtype)


@fused
def _histogram(x: Tensor, edges: Tensor) -> Tensor:
    """Return how many elements lie in each interval between neighbouring `edges`, which are equally
    far from each other; the last one includes its end.
    """
    bins = edges.shape[0] - 1
    value = cast(flat(x), D.float64)
    low, high = (reshaped(take_slice(edges, 0, k, k + 1), (1,)) for k in (0, bins))
    inside = run(E.logical_and, run(E.ge, value, low), run(E.le, value, high))
    place = run(E.floor, select(inside, value - low, 0.0) / (high - low) * float(bins))
    at = run(E.minimum, cast(place, D.int32), scalar(bins - 1, D.int32))
    # What rounding moved across an edge is moved back.
    at = at - cast(run(E.lt, value, run(I.take, edges, at, axis=0, bounds="drop")), D.int32)
    at = run(E.maximum, at, scalar(0, D.int32))
    beyond = run(E.ge, value, run(I.take, edges, at + scalar(1, D.int32), axis=0, bounds="drop"))
    at = run(E.minimum, at + cast(beyond, D.int32), scalar(bins - 1, D.int32))
    return _counts(select(inside, at, scalar(bins, D.int32)), bins)


def _counts(at: Tensor, size: int) -> Tensor:
    """Return how often each number below `size` occurs in a vector."""
    one = broadcast(scalar(1, D.int32), at.shape)
    start = broadcast(scalar(0, D.int32), (size,))
    return run(I.scatter_nd, start, reshaped(at, (*at.shape, 1)), one, mode="add", bounds="drop")


_occurrences = fused(_counts)
