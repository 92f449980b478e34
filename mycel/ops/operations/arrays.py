"""Operations on the elements and shapes of arrays as objects: positions, diagonals, segments, sets,
sequences and views.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops import array, creation, gather_scatter, masked_selection, sorted_segments, sorting
from mycel.ops._operands import (
    axis_of,
    cast_index,
    flat,
    iota,
    operand,
    operands,
    reshaped,
    run,
    sizes_of,
    take_slice,
)
from mycel.ops._operands import constant_like as like
from mycel.ops.algebra.matrices import diagonal_of
from mycel.ops.operations.attributes import element_type, integer, numbers, real
from mycel.ops.operations.inputs import NUMBER, SIZES, WHOLE
from mycel.ops.operations.primitive import NEEDED, Primitive, operations_of
from mycel.ops.sequences import token_sequences
from mycel.ops.variants import fill_diagonal, inplace_index_add, unique_with_pad

__all__: list[str] = []


class SegmentMax(Primitive, compute=sorted_segments.segment_max): ...


class SegmentMean(Primitive, compute=sorted_segments.segment_mean): ...


class SegmentMin(Primitive, compute=sorted_segments.segment_min): ...


class SegmentProd(Primitive, compute=sorted_segments.segment_prod): ...


class SegmentSum(Primitive, compute=sorted_segments.segment_sum): ...


def _lists(name: str, values: Any) -> list[int]:
    return list(sizes_of(name, "the argument", values))


# Shapes and views.


def _expand(x: Any, shape: Any) -> Tensor:
    return array.broadcast_to(x, tuple(_lists("Expand", shape)))


def _select_view(input_tensor: Any, input_indices: Any, axis: int) -> Tensor:
    x = operand("SelectView", input_tensor)
    where = axis_of("SelectView", axis, x.ndim)
    return x[(slice(None),) * where + (input_indices,)]


def _parallel_concat(values: Any) -> Tensor:
    parts = [operand("ParallelConcat", v) for v in values]
    if any(p.ndim == 0 or p.shape[0] != 1 for p in parts):
        raise ShapeError(f"ParallelConcat: the first size of each tensor must be 1, not {[p.shape for p in parts]}")
    return array.concat(parts, 0)


def _diag_part(x: Any) -> Tensor:
    value = operand("DiagPart", x)
    half = value.ndim // 2
    lead = value.shape[:half]
    if value.ndim == 0 or value.ndim % 2 or lead != value.shape[half:]:
        raise ShapeError(f"DiagPart: the shape must be some sizes twice, as (2, 3, 2, 3), not {value.shape}")
    size = 1
    for d in lead:
        size = size * d
    return reshaped(diagonal_of(reshaped(value, (size, size))), lead)


def _copy_with_slice(x: Any, y: Any) -> Tensor:
    return x.copy_(operand("CopyWithSlice", y, x.dtype))


def _tuple_of(x: Any) -> tuple[Any, ...]:
    value = operand("TensorToTuple", x)
    if value.ndim != 1:
        raise ShapeError(f"TensorToTuple: takes a tensor of one dimension, not {value._type}")
    return tuple(value.tolist())


class CopyWithSlice(Primitive, compute=_copy_with_slice, inputs=(Tensor, NUMBER)):
    """The tensor x, which may be a view, after y was written into it."""


class DiagPart(Primitive, compute=_diag_part):
    """The diagonal elements of a tensor (d.., d..): those at positions whose two halves
    are equal.
    """


class Expand(Primitive, compute=_expand, inputs=(Tensor, SIZES)):
    """The tensor broadcast to a shape, in which -1 keeps a size."""


class FillDiagonal(
    Primitive, compute=lambda p, x: fill_diagonal(x, p.fill_value, p.wrap), fill_value=real(), wrap=False
): ...


class IdentityN(
    Primitive, compute=lambda xs: tuple(run(E.identity, operand("IdentityN", x)) for x in xs), inputs=((tuple, list),)
):
    """Tensors as they are."""


class ParallelConcat(Primitive, compute=_parallel_concat, inputs=((tuple, list),)):
    """Tensors whose first size is 1, concatenated along axis 0."""


class SelectView(Primitive, compute=_select_view, inputs=(Tensor, WHOLE, int)):
    """The part at one position along an axis, without the axis."""


class TensorToTuple(Primitive, compute=_tuple_of):
    """The elements of a tensor of one dimension as a tuple of numbers."""


class TransposeExtView(
    Primitive, compute=lambda x, dim0, dim1: array.swapaxes(x, dim0, dim1), inputs=(Tensor, int, int)
):
    """The tensor with two axes exchanged."""


class TransposeView(
    Primitive, compute=lambda x, input_perm: array.transpose(x, tuple(input_perm)), inputs=(Tensor, SIZES)
):
    """The tensor with its axes in another order."""


# Positions and values.


def _in_place_index_add(p: Any, var: Any, indices: Any, updates: Any) -> Tensor:
    return inplace_index_add(var, indices, updates, p.axis)


def _put(p: Any, x1: Any, x2: Any, indices: Any) -> Tensor:
    if p.accumulate not in (0, 1):
        raise ValueError(f"IndexPut: accumulate must be 0 or 1, not {p.accumulate}")
    return operand("IndexPut", x1).index_put(tuple(indices), x2, bool(p.accumulate))


def _inverted(input_x: Any) -> tuple[int, ...]:
    given = _lists("InvertPermutation", input_x)
    order = np.asarray(given if max(given, default=0) < 1 << 63 else [-1], np.int64)
    if not np.array_equal(np.sort(order), np.arange(order.size)):
        raise ValueError(
            f"InvertPermutation: the values must be 0 .. {order.size - 1} in some order, not {order.tolist()}"
        )
    return tuple(np.argsort(order).tolist())


def _scatter_add(p: Any, x: Any, indices: Any, update: Any) -> Tensor:
    return gather_scatter.write_elements(p.name, x, indices, update, p.axis, "add")


def _unravel(indices: Any, dims: Any) -> Tensor:
    index, sizes = cast_index("UnravelIndex", indices), cast_index("UnravelIndex", dims)
    if index.ndim > 1 or sizes.ndim != 1:
        raise ShapeError(
            f"UnravelIndex: takes indices of at most one dimension and dims (n,), not {index._type} and {sizes._type}"
        )
    sizes, parts, rest = cast(sizes, index.dtype), [], index
    for k in reversed(range(sizes.shape[0])):
        size = reshaped(take_slice(sizes, 0, k, k + 1), ())
        parts.append(run(E.mod, rest, size))
        rest = run(E.floor_div, rest, size)
    return array.stack(parts[::-1], 0)


def _bound(side: str) -> Any:
    def compute(p: Any, sorted_x: Any, values: Any) -> Tensor:
        rows, wanted = operands(p.name, sorted_x, values)
        if rows.ndim != 2 or wanted.ndim != 2 or rows.shape[0] != wanted.shape[0]:
            raise ShapeError(f"{p.name}: takes two matrices of as many rows, not {rows._type} and {wanted._type}")
        return cast(sorting.searchsorted(rows, wanted, side=side), p.out_type)

    return compute


class Bucketize(
    Primitive,
    compute=lambda p, x: sorting.bucketize(x, p.boundaries, right=True),
    boundaries=numbers(kinds=(tuple, list)),
):
    """The number of sorted boundaries that are not above each element, int32."""


class IndexPut(Primitive, compute=_put, accumulate=0, inputs=(Tensor, Tensor, (tuple, list))):
    """x1 with x2 written, or added if `accumulate` is 1, at the places that index tensors name."""


class InplaceIndexAdd(Primitive, compute=_in_place_index_add, axis=integer()):
    """`mycel.ops.inplace_index_add` along an axis."""


class InplaceUpdateV2(
    Primitive,
    compute=lambda x, indices, v: gather_scatter.inplace_update(x, v, indices),
    inputs=(Tensor, (int, tuple, list, Tensor), Tensor),
):
    """x with the rows that `indices` names replaced by those of v."""


class InvertPermutation(Primitive, compute=_inverted, inputs=(SIZES,)):
    """The inverse of a permutation of 0 .. n - 1, as a tuple."""


class LowerBound(Primitive, compute=_bound("left"), out_type=element_type(D.int32, D.int64)):
    """The number of elements below each value, in each row."""


class UpperBound(Primitive, compute=_bound("right"), out_type=element_type(D.int32, D.int64)):
    """The number of elements not above each value, in each row."""


class MapUniform(
    Primitive,
    compute=lambda x, per_group_size, group_num: run(
        E.add, _uniform(x, group_num, True) * per_group_size, _uniform(x, group_num, False)
    ),
    inputs=(Tensor, WHOLE, WHOLE),
):
    """The numbers key % groups * size + key // groups."""


class ScatterAddWithAxis(Primitive, compute=_scatter_add, axis=0):
    """x with updates added at the positions along an axis that indices name."""


class ScatterNonAliasingAdd(Primitive, compute=lambda x, i, u: gather_scatter.scatter_nd_add(x, i, u)):
    """The parameter after updates were added at positions (.., n)."""


class UnravelIndex(Primitive, compute=_unravel):
    """The positions (n, ..) in a shape of positions in the flattened array."""


def _uniform(x: Any, groups: int, rest: bool) -> Tensor:
    value = cast_index("MapUniform", x)
    return run(E.mod if rest else E.floor_div, value, like(groups, value))


# Sets and ranges.


def _hits(p: Any, true_classes: Any, sampled_candidates: Any) -> tuple[Tensor, Tensor, Tensor]:
    true, sampled = cast_index(p.name, true_classes), cast_index(p.name, sampled_candidates)
    if true.ndim != 2 or true.shape[1] != p.num_true or sampled.ndim != 1:
        raise ShapeError(f"{p.name}: takes (batch, {p.num_true}) and (n,), not {true._type} and {sampled._type}")
    where = masked_selection.nonzero(run(E.eq, reshaped(true, (*true.shape, 1)), cast(sampled, true.dtype)))
    rows, ids = (reshaped(take_slice(where, 1, k, k + 1), where.shape[:1]) for k in (0, 2))
    lowest = -float(np.finfo(np.float32).max)
    return cast(rows, D.int32), cast(ids, D.int64), creation.full(rows.shape, lowest, dtype=D.float32)


def _difference(p: Any, x: Any, y: Any) -> tuple[Tensor, Tensor]:
    value, other = operands("ListDiff", x, y)
    if value.ndim != 1 or other.ndim != 1:
        raise ShapeError(f"ListDiff: takes tensors of one dimension, not {value._type} and {other._type}")
    kept = run(E.eq, value, value)
    if other.size:
        ordered = sorting.sort(other, 0)[0]
        place = sorting.searchsorted(ordered, value)
        last = other.shape[0] - 1
        kept = run(E.ne, run(I.take, ordered, run(E.minimum, place, like(last, place)), axis=0), value)
    where = flat(masked_selection.nonzero(kept))
    return masked_selection.masked_select(value, kept), cast(where, p.out_idx)


def _distance(
    p: Any,
    hypothesis_indices: Any,
    hypothesis_values: Any,
    hypothesis_shape: Any,
    truth_indices: Any,
    truth_values: Any,
    truth_shape: Any,
) -> Tensor:
    said = hypothesis_indices, hypothesis_values, hypothesis_shape
    return token_sequences.edit_distance(*said, truth_indices, truth_values, truth_shape, p.normalize)


def _filtered(x: Any, max_num: Any, offset: Any) -> tuple[Tensor, Tensor]:
    value = operand("SubAndFilter", x)
    moved = value - offset
    kept = run(E.logical_and, moved >= 0, moved < max_num)
    return masked_selection.masked_select(moved, kept), cast(flat(masked_selection.nonzero(kept)), D.int32)


def _ranges(p: Any, starts: Any, limits: Any, deltas: Any) -> tuple[Tensor, Tensor]:
    begin, end = operands("RaggedRange", starts, limits)
    begin, step = operands("RaggedRange", begin, deltas)
    begin, end, step = (flat(array.broadcast_to(v, begin.shape)) for v in (begin, end, step))
    count = begin.shape[0]
    if begin.dtype.is_integer:
        sizes = run(E.neg, run(E.floor_div, begin - end, step))
    else:
        sizes = cast(run(E.ceil, (end - begin) / step), D.int64)
    sizes = cast(run(E.maximum, sizes, like(0, sizes)), D.int64)
    splits = array.concat((creation.zeros((1,), D.int64), sorting.cumsum(sizes, 0)), 0)
    place = iota((int(splits[-1].item()),), 0, D.int64)
    row = sorting.searchsorted(splits, place, right=True) - 1
    own, first, by = (run(I.take, v, row, axis=0) for v in (take_slice(splits, 0, 0, count), begin, step))
    return cast(splits, p.Tsplits), first + cast(place - own, begin.dtype) * by


class ComputeAccidentalHits(Primitive, compute=_hits, num_true=integer(1, at_least=1)):
    """The places where sampled classes are true ones: rows, positions of samples, and float32's
    lowest number for each.
    """


class EditDistance(Primitive, compute=_distance, normalize=True):
    """The number of edits between the sequences of two sparse tensors, as
    `mycel.ops.sequences.token_sequences.edit_distance` counts them.
    """


class ListDiff(Primitive, compute=_difference, out_idx=element_type(D.int32, D.int64)):
    """The elements of x that are not in y, in their order, and their positions."""


class NoRepeatNGram(
    Primitive,
    compute=lambda p, said, x: token_sequences.no_repeat_ngram(said, x, p.ngram_size),
    ngram_size=integer(1, at_least=1),
): ...


class RaggedRange(Primitive, compute=_ranges, Tsplits=element_type(NEEDED, D.int32, D.int64)):
    """Ranges, one after the other: where each begins, and their elements."""


class SubAndFilter(Primitive, compute=_filtered, inputs=(Tensor, WHOLE, WHOLE)):
    """The elements of x - offset that lie in [0, max_num), and their positions (int32); called with
    (x, max_num, offset).
    """


class UniqueWithPad(Primitive, compute=unique_with_pad, inputs=(Tensor, NUMBER)): ...


__all__.extend(operations_of(globals()))
