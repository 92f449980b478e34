"""Groups of elements: segments that share a number, runs of equal elements, masks of lengths, and
ranks of targets.

`unique` and `unique_consecutive` have shapes that depend on values (`core.mask_indices`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.mask_indices import flat_positions, is_open
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops import sorting
from mycel.ops._operands import (
    axis_of,
    cast_index,
    constant_like,
    finfo,
    flat,
    iota,
    move_axis,
    operand,
    reshaped,
    run,
    select,
    size_of,
    take_slice,
)
from mycel.ops.creation import full
from mycel.ops.gather_scatter import write
from mycel.ops.reduction import sum

__all__ = [
    "intopk",
    "sequence_mask",
    "unique",
    "unique_consecutive",
    "unsorted_segment_max",
    "unsorted_segment_min",
    "unsorted_segment_prod",
    "unsorted_segment_sum",
]


def unsorted_segment_sum(input_x: Any, segment_ids: Any, num_segments: Any) -> Tensor:
    """Return, for each segment, the sum of the slices of `input_x` with its number in
    `segment_ids`.

    It is 0 for an empty segment. Slices with a negative number belong to no segment.

    >>> import mycel as ms
    >>> ms.ops.unsorted_segment_sum(ms.Tensor([1.0, 2.0, 3.0]), ms.Tensor([0, 1, 0]), 3).tolist()
    [4.0, 2.0, 0.0]
    """
    return _segments("unsorted_segment_sum", input_x, segment_ids, num_segments, "add", lambda kind: 0)


def unsorted_segment_prod(x: Any, segment_ids: Any, num_segments: Any) -> Tensor:
    """Return, for each segment, the product of the slices of `x` with its number in `segment_ids`;
    1 for an empty segment.

    >>> import mycel as ms
    >>> ms.ops.unsorted_segment_prod(ms.Tensor([1.0, 2.0, 3.0]), ms.Tensor([0, 1, 0]), 2).tolist()
    [3.0, 2.0]
    """
    return _segments("unsorted_segment_prod", x, segment_ids, num_segments, "mul", lambda kind: 1)


def unsorted_segment_max(x: Any, segment_ids: Any, num_segments: Any) -> Tensor:
    """Return, for each segment, the maximum of the slices of `x` with its number in `segment_ids`.

    It is the smallest value of the type for an empty segment.

    >>> import mycel as ms
    >>> ms.ops.unsorted_segment_max(ms.Tensor([1.0, 2.0, 3.0]), ms.Tensor([0, 1, 0]), 2).tolist()
    [3.0, 2.0]
    """
    return _segments("unsorted_segment_max", x, segment_ids, num_segments, "max", _lowest)


def unsorted_segment_min(x: Any, segment_ids: Any, num_segments: Any) -> Tensor:
    """Return, for each segment, the minimum of the slices of `x` with its number in `segment_ids`.

    It is the largest value of the type for an empty segment.

    >>> import mycel as ms
    >>> ms.ops.unsorted_segment_min(ms.Tensor([1.0, 2.0, 3.0]), ms.Tensor([0, 1, 0]), 2).tolist()
    [1.0, 2.0]
    """
    return _segments("unsorted_segment_min", x, segment_ids, num_segments, "min", _highest)


def _segments(name: str, x: Any, segment_ids: Any, num_segments: Any, mode: str, start: Any) -> Tensor:
    value, ids = operand(name, x), cast_index(name, segment_ids)
    count = size_of(name, num_segments)
    if ids.ndim > value.ndim or value.shape[: ids.ndim] != ids.shape:
        raise ShapeError(f"{name}: the segment ids {ids._type} must have the leading sizes of {value._type}")
    initial = full((count, *value.shape[ids.ndim :]), start(value.dtype), dtype=value.dtype)
    # Only here does a negative number mean that an element belongs nowhere: one that is beyond the
    # last is none, and checked no more.
    nowhere = run(E.lt, ids, constant_like(0, ids))
    ids = run(I.checked, select(nowhere, constant_like(0, ids), ids), axis=0, size=count, bounds="front")
    ids = select(nowhere, constant_like(2**31 - 1, ids), ids)
    return write(name, initial, reshaped(ids, (*ids.shape, 1)), value, mode, "drop")


def _highest(kind: DType) -> Any:
    if kind.is_floating:
        return float(finfo(kind.numpy).max)
    return int(np.iinfo(kind.numpy).max)


def _lowest(kind: DType) -> Any:
    return -_highest(kind) if kind.is_floating else int(np.iinfo(kind.numpy).min)


def unique(input: Any) -> tuple[Tensor, Tensor]:
    """Return the distinct elements in the order of their first occurrence, and for each element of
    `input` its position among them.

    The positions are int64 for an int64 input, else int32.

    >>> import mycel as ms
    >>> [t.tolist() for t in ms.ops.unique(ms.Tensor([3, 1, 3]))]
    [[3, 1], [0, 1, 0]]
    """
    x = operand("unique", input)
    kind = D.int64 if x.dtype is D.int64 else D.int32
    if is_open(x):
        elements, places, _, first = distinct(x)
        order = sorting.argsort(first)
        ranks = cast(sorting.argsort(order), kind)
        return run(I.take, elements, order, axis=0), run(I.take, ranks, places, axis=0)
    _, starts, inverse = np.unique(x.asnumpy(), return_index=True, return_inverse=True)
    by_start = np.argsort(starts)
    return run(I.take, flat(x), Tensor(starts[by_start]), axis=0), Tensor(
        np.argsort(by_start)[inverse].reshape(x.shape).astype(kind.numpy)
    )


def distinct(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the distinct elements in increasing order, by sorting, where the values are not known.

    Also returns, as int64, each element's position among them, their counts, and the position of
    their first occurrence.
    """
    line = flat(x)
    order = sorting.argsort(line)
    ordered = run(I.take, line, order, axis=0)
    size = line.shape[0]
    before = take_slice(run(S.CONCAT, Tensor([0], x.dtype), ordered, axis=0), 0, 0, size)
    changed = run(E.ne, before, ordered)
    if x.dtype.is_floating:
        both = run(E.logical_and, run(E.is_nan, before), run(E.is_nan, ordered))
        changed = run(E.logical_and, changed, run(E.logical_not, both))
    place = iota((size,), 0, D.int64)
    changed = run(E.logical_or, changed, run(E.eq, place, constant_like(0, place)))
    starts = flat_positions(changed, 1 if (size.bounds()[0] if isinstance(size, Dim) else size) >= 1 else 0)
    numbers = sorting.cumsum(cast(changed, D.int64), 0) - 1
    places = reshaped(order, (line.shape[0], 1))
    nothing = numbers * 0
    inverse = run(I.scatter_nd, nothing, cast(places, D.int64), numbers, mode="set")
    counts = run(I.take_add, nothing + 1, numbers, axis=0, size=starts.shape[0])
    first = run(I.take, order, starts, axis=0)
    return run(I.take, ordered, starts, axis=0), reshaped(inverse, x.shape), counts, first


def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return the elements (or slices along an axis) without those equal to the one before.

    Args:
        input (Tensor): The tensor.
        return_inverse (bool): Whether the position of each element's run in the result is returned,
            int64. Default: False.
        return_counts (bool): Whether the length of each run is returned, int64. Default: False.
        dim (int | None): The axis of the slices; None for all elements. Default: None.

    Returns:
        Tensor | tuple[Tensor, ...]: The elements, and what else is asked for.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.unique_consecutive(ms.Tensor([1, 1, 2, 1])).tolist()
        [1, 2, 1]
    """
    arguments.flag("unique_consecutive", "return_inverse", return_inverse)
    arguments.flag("unique_consecutive", "return_counts", return_counts)
    x = operand("unique_consecutive", input)
    if is_open(x):
        return _runs(
            x, None if dim is None else axis_of("unique_consecutive", dim, x.ndim), return_inverse, return_counts
        )
    array = (
        x.asnumpy().reshape(-1)
        if dim is None
        else np.moveaxis(x.asnumpy(), axis_of("unique_consecutive", dim, x.ndim), 0)
    )
    count = array.shape[0]
    changed = np.ones(count, bool)
    if count > 1:
        changed[1:] = (array[1:] != array[:-1]).reshape(count - 1, -1).any(axis=1)
    starts = np.flatnonzero(changed)
    axis = 0 if dim is None else axis_of("unique_consecutive", dim, x.ndim)
    kept = run(I.take, flat(x) if dim is None else x, Tensor(starts), axis=axis)
    inverse = np.cumsum(changed) - 1
    extra = [Tensor((inverse.reshape(x.shape) if dim is None else inverse).astype(np.int64))] if return_inverse else []
    extra += [Tensor(np.diff(np.append(starts, count)).astype(np.int64))] if return_counts else []
    return (kept, *extra) if extra else kept


def _runs(x: Tensor, axis: int | None, return_inverse: bool, return_counts: bool) -> Any:
    """Return `unique_consecutive` for a tensor whose values are not known."""
    parts = flat(x) if axis is None else move_axis(x, axis, 0)
    count = parts.shape[0]
    changed = run(E.ne, take_slice(parts, 0, 0, count - 1), take_slice(parts, 0, 1, count))
    if changed.ndim > 1:
        changed = run(R.reduce_any, changed, axes=tuple(range(1, changed.ndim)), keepdims=False)
    changed = run(S.CONCAT, Tensor([True]), changed, axis=0)
    starts = flat_positions(changed, 1)
    numbers = sorting.cumsum(cast(changed, D.int64), 0) - 1
    kept = run(I.take, parts, starts, axis=0)
    results = [kept if axis is None else move_axis(kept, 0, axis)]
    if return_inverse:
        results.append(reshaped(numbers, x.shape) if axis is None else numbers)
    if return_counts:
        results.append(run(I.take_add, numbers * 0 + 1, numbers, axis=0, size=starts.shape[0]))
    return tuple(results) if len(results) > 1 else results[0]


def sequence_mask(lengths: Any, maxlen: int | None = None) -> Tensor:
    """Return a row of `maxlen` booleans for each length n, of which the first n are True.

    Without `maxlen` a row is as long as the largest length, whose value is needed.

    >>> import mycel as ms
    >>> ms.ops.sequence_mask(ms.Tensor([1, 2]), 3).tolist()
    [[True, False, False], [True, True, False]]
    """
    x = operand("sequence_mask", lengths)
    if maxlen is None and not x.size:
        raise ShapeError(f"sequence_mask: lengths of shape {x.shape} have no largest; give maxlen")
    size = int(x.asnumpy().max()) if maxlen is None else size_of("sequence_mask", maxlen)
    # Narrower types might not have all positions.
    x = cast(x, D.int32) if x.dtype.is_integer and x.dtype.itemsize < 4 else x
    return run(E.gt, reshaped(x, (*x.shape, 1)), iota((size,), 0, x.dtype))


def intopk(x1: Any, x2: Any, k: int) -> Tensor:
    """Return whether the target class in `x2` is among the `k` largest elements of its row of `x1`.

    Classes with equal elements all count as among the largest. A class that does not exist gives
    False.

    >>> import mycel as ms
    >>> ms.ops.intopk(ms.Tensor([[1.0, 3.0, 2.0]]), ms.Tensor([2]), 2).tolist()
    [True]
    """
    arguments.integer("intopk", "k", k)
    x, index = operand("intopk", x1), cast_index("intopk", x2)
    if x.ndim != 2 or index.shape != x.shape[:1]:
        raise ShapeError(f"intopk: the input must be (N, C) and the target (N,), not {x._type} and {index._type}")
    own = run(I.take_along, x, reshaped(index, (index.shape[0], 1)), axis=1, bounds="drop")
    larger = sum(run(E.gt, x, own), 1)
    inside = run(
        E.logical_and, run(E.ge, index, constant_like(0, index)), run(E.lt, index, constant_like(x.shape[1], index))
    )
    return run(E.logical_and, inside, run(E.lt, larger, constant_like(k, larger)))
