"""Reductions of segments whose numbers are sorted.

There are as many segments as the last number says, so its value is needed. An empty segment gives
0, or 1 for a product.
"""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops import segments
from mycel.ops._operands import cast_index, constant_like, operand, reshaped, run, select
from mycel.ops.creation import ones

__all__ = ["segment_max", "segment_mean", "segment_min", "segment_prod", "segment_sum"]


def _given(name: str, input_x: Any, segment_ids: Any) -> tuple[Tensor, Tensor, int]:
    x, ids = operand(name, input_x), cast_index(name, segment_ids)
    if ids.ndim != 1 or x.ndim < 1 or ids.shape[0] != x.shape[0]:
        raise ShapeError(f"{name}: the segment ids must be ({x.shape[0] if x.ndim else 1},), not {ids._type}")
    return x, ids, int(ids[-1].item()) + 1 if ids.shape[0] else 0


def _members(ids: Tensor, count: int, x: Tensor) -> Tensor:
    """Return how many slices each segment has, in a shape that broadcasts with the results."""
    found = segments.unsorted_segment_sum(ones(ids.shape, ids.dtype), ids, count)
    return reshaped(found, (count, *(1,) * (x.ndim - 1)))


def _extreme(name: str, input_x: Any, segment_ids: Any, function: Any) -> Tensor:
    x, ids, count = _given(name, input_x, segment_ids)
    return select(_members(ids, count, x) > 0, function(x, ids, count), constant_like(0, x))


def segment_max(input_x: Any, segment_ids: Any) -> Tensor:
    """Return the largest element of each segment of axis 0; 0 for an empty one.

    >>> import mycel as ms
    >>> from mycel.ops.sorted_segments import segment_max
    >>> segment_max(ms.Tensor([1.0, 2.0, -3.0]), ms.Tensor([0, 0, 2])).tolist()
    [2.0, 0.0, -3.0]
    """
    return _extreme("SegmentMax", input_x, segment_ids, segments.unsorted_segment_max)


def segment_min(input_x: Any, segment_ids: Any) -> Tensor:
    """Return the smallest element of each segment of axis 0; 0 for an empty one.

    >>> import mycel as ms
    >>> from mycel.ops.sorted_segments import segment_min
    >>> segment_min(ms.Tensor([1.0, 2.0, -3.0]), ms.Tensor([0, 0, 2])).tolist()
    [1.0, 0.0, -3.0]
    """
    return _extreme("SegmentMin", input_x, segment_ids, segments.unsorted_segment_min)


def segment_sum(input_x: Any, segment_ids: Any) -> Tensor:
    """Return the sum of each segment of axis 0.

    >>> import mycel as ms
    >>> from mycel.ops.sorted_segments import segment_sum
    >>> segment_sum(ms.Tensor([1.0, 2.0, -3.0]), ms.Tensor([0, 0, 2])).tolist()
    [3.0, 0.0, -3.0]
    """
    return segments.unsorted_segment_sum(*_given("SegmentSum", input_x, segment_ids))


def segment_prod(input_x: Any, segment_ids: Any) -> Tensor:
    """Return the product of each segment of axis 0; 1 for an empty one.

    >>> import mycel as ms
    >>> from mycel.ops.sorted_segments import segment_prod
    >>> segment_prod(ms.Tensor([3.0, 2.0, -3.0]), ms.Tensor([0, 0, 2])).tolist()
    [6.0, 1.0, -3.0]
    """
    return segments.unsorted_segment_prod(*_given("SegmentProd", input_x, segment_ids))


def segment_mean(input_x: Any, segment_ids: Any) -> Tensor:
    """Return the mean of each segment of axis 0, in the type of `input_x` (of integers rounded
    towards 0); 0 for an empty one.

    >>> import mycel as ms
    >>> from mycel.ops.sorted_segments import segment_mean
    >>> segment_mean(ms.Tensor([1.0, 2.0, -3.0]), ms.Tensor([0, 0, 2])).tolist()
    [1.5, 0.0, -3.0]
    """
    x, ids, count = _given("SegmentMean", input_x, segment_ids)
    members = _members(ids, count, x)
    divisor = cast(run(E.maximum, members, constant_like(1, members)), x.dtype)
    total = segments.unsorted_segment_sum(x, ids, count)
    return cast(total / divisor, x.dtype)
