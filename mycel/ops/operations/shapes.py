"""The operations of shapes, positions, new tensors and writes into parameters as objects."""

from __future__ import annotations

from typing import Any

from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops import arrange, array, assignment, creation, gather_scatter, masked_selection, properties, splits
from mycel.ops._operands import axis_of, cast_index, operand, select
from mycel.ops._operands import constant_like as like
from mycel.ops.images.patches import mirror_pad
from mycel.ops.operations.attributes import anything, element_type, integer, integers, one_of, optional, pairs, word
from mycel.ops.operations.inputs import NUMBER, SIZES, WHOLE
from mycel.ops.operations.primitive import Primitive, need_dimensions, operations_of

__all__: list[str] = []


class ExpandDims(Primitive, compute=array.expand_dims, inputs=(Tensor, WHOLE)): ...


class Reshape(Primitive, compute=array.reshape, inputs=(Tensor, SIZES)): ...


class Transpose(Primitive, compute=array.transpose, inputs=(Tensor, (tuple, list))): ...


class Cast(Primitive, compute=properties.cast, inputs=(NUMBER, object)): ...


class Diag(Primitive, compute=arrange.diag): ...


class Identity(Primitive, compute=properties.identity, inputs=(object,)): ...


class Rank(Primitive, compute=properties.rank): ...


class Shape(Primitive, compute=properties.shape): ...


class TensorShape(Primitive, compute=properties.dyn_shape): ...


class DType(Primitive, compute=properties.dtype): ...


class Size(Primitive, compute=properties.size): ...


class Slice(Primitive, compute=arrange.slice, inputs=(Tensor, SIZES, SIZES)): ...


class Tile(Primitive, compute=arrange.tile, inputs=(Tensor, SIZES)): ...


class Eye(Primitive, compute=lambda n, m, t: creation.eye(n, m, t), inputs=(int, int, D.DType)): ...


class Fill(Primitive, compute=creation.fill, inputs=(object, SIZES, object)): ...


class Fills(Primitive, compute=creation.fills, inputs=(Tensor, (float, Tensor))): ...


def _line(start: Any, stop: Any, num: Any) -> Tensor:
    need_dimensions("LinSpace", 0, start=start, stop=stop)
    return creation.linspace(start, stop, num)


class LinSpace(Primitive, compute=_line, inputs=(Tensor, Tensor, WHOLE)): ...


class Ones(Primitive, compute=creation.ones, inputs=((int, tuple, list, Tensor), object)): ...


class OnesLike(Primitive, compute=creation.ones_like): ...


class Zeros(Primitive, compute=creation.zeros, inputs=((int, tuple, list, Tensor), object)): ...


class ZerosLike(Primitive, compute=creation.zeros_like): ...


class FillV2(Primitive, compute=creation.full, inputs=(SIZES,)): ...


class GatherD(Primitive, compute=gather_scatter.gather_d, inputs=(Tensor, WHOLE, Tensor)): ...


class GatherNd(Primitive, compute=gather_scatter.gather_nd): ...


class MaskedFill(Primitive, compute=masked_selection.masked_fill, inputs=(Tensor, Tensor, NUMBER)): ...


class MaskedSelect(Primitive, compute=masked_selection.masked_select): ...


class NonZero(Primitive, compute=masked_selection.nonzero): ...


class ScatterNd(Primitive, compute=gather_scatter.scatter_nd, inputs=(Tensor, Tensor, tuple)): ...


class Select(Primitive, compute=masked_selection.select, inputs=(Tensor, NUMBER, NUMBER)): ...


class TensorScatterUpdate(Primitive, compute=gather_scatter.tensor_scatter_update): ...


class TensorScatterAdd(Primitive, compute=gather_scatter.tensor_scatter_add): ...


class TensorScatterSub(Primitive, compute=gather_scatter.tensor_scatter_sub): ...


class TensorScatterMul(Primitive, compute=gather_scatter.tensor_scatter_mul): ...


class TensorScatterDiv(Primitive, compute=gather_scatter.tensor_scatter_div): ...


class TensorScatterMax(Primitive, compute=gather_scatter.tensor_scatter_max): ...


class TensorScatterMin(Primitive, compute=gather_scatter.tensor_scatter_min): ...


class MaskedScatter(Primitive, compute=masked_selection.masked_scatter): ...


class IndexFill(Primitive, compute=gather_scatter.index_fill, inputs=(Tensor, WHOLE)): ...


class Assign(Primitive, compute=assignment.assign, inputs=(Tensor, NUMBER)): ...


class AssignAdd(Primitive, compute=assignment.assign_add, inputs=(Tensor, NUMBER)): ...


class AssignSub(Primitive, compute=assignment.assign_sub, inputs=(Tensor, NUMBER)): ...


class Depend(Primitive, compute=assignment.depend, inputs=(object, object)): ...


# Scatters into parameters; locking has no meaning here.


class ScatterAdd(Primitive, compute=lambda p, x, i, u: gather_scatter.scatter_add(x, i, u), use_locking=False): ...


class ScatterNdAdd(Primitive, compute=lambda p, x, i, u: gather_scatter.scatter_nd_add(x, i, u), use_locking=False): ...


class ScatterSub(Primitive, compute=lambda p, x, i, u: gather_scatter.scatter_sub(x, i, u), use_locking=False): ...


class ScatterNdSub(Primitive, compute=lambda p, x, i, u: gather_scatter.scatter_nd_sub(x, i, u), use_locking=False): ...


class ScatterMul(Primitive, compute=lambda p, x, i, u: gather_scatter.scatter_mul(x, i, u), use_locking=False): ...


class ScatterNdMul(Primitive, compute=lambda p, x, i, u: gather_scatter.scatter_nd_mul(x, i, u), use_locking=False): ...


class ScatterDiv(Primitive, compute=lambda p, x, i, u: gather_scatter.scatter_div(x, i, u), use_locking=False): ...


class ScatterNdDiv(Primitive, compute=lambda p, x, i, u: gather_scatter.scatter_nd_div(x, i, u), use_locking=False): ...


class ScatterMax(Primitive, compute=lambda p, x, i, u: gather_scatter.scatter_max(x, i, u), use_locking=False): ...


class ScatterNdMax(Primitive, compute=lambda p, x, i, u: gather_scatter.scatter_nd_max(x, i, u), use_locking=False): ...


class ScatterMin(Primitive, compute=lambda p, x, i, u: gather_scatter.scatter_min(x, i, u), use_locking=False): ...


class ScatterNdMin(Primitive, compute=lambda p, x, i, u: gather_scatter.scatter_nd_min(x, i, u), use_locking=False): ...


class ScatterUpdate(Primitive, compute=lambda p, x, i, u: gather_scatter.scatter_update(x, i, u), use_locking=True): ...


class ScatterNdUpdate(
    Primitive, compute=lambda p, x, i, u: gather_scatter.scatter_nd_update(x, i, u), use_locking=True
): ...


# Shapes and positions.


class BroadcastTo(
    Primitive,
    compute=lambda p, x: array.broadcast_to(x, p.shape),
    shape=integers(alone=False, kinds=(tuple, list, Tensor)),
): ...


class Concat(Primitive, compute=lambda p, xs: array.concat(xs, p.axis), axis=0, inputs=((tuple, list),)): ...


class Stack(Primitive, compute=lambda p, xs: array.stack(xs, p.axis), axis=0, inputs=((tuple, list, Tensor),)): ...


class Pack(Primitive, compute=lambda p, xs: array.stack(xs, p.axis), axis=0, inputs=((tuple, list),)): ...


class Unstack(Primitive, compute=lambda p, x: splits.unstack(x, p.axis), axis=0, num=optional(integer())): ...


class Unpack(Primitive, compute=lambda p, x: splits.unstack(x, p.axis), axis=0): ...


class Squeeze(Primitive, compute=lambda p, x: array.squeeze(x, p.axis), axis=integers((), kinds=(tuple, list))): ...


class Flatten(Primitive, compute=lambda x: array.flatten(x)):
    """The tensor with all axes but the first joined."""


class Split(Primitive, compute=lambda p, x: _even_parts(p, x), axis=0, output_num=integer(1, at_least=1)):
    """The `output_num` parts, of one size, of a tensor along an axis.

    Raises ValueError where its size does not divide.
    """


def _split(p: Any, x: Any) -> tuple[Tensor, ...]:
    if p.num_split not in (-1, len(p.size_splits)):
        raise ValueError(f"SplitV: num_split must be {len(p.size_splits)}, the number of sizes, not {p.num_split}")
    return splits.split(x, list(p.size_splits), p.split_dim)


class SplitV(
    Primitive,
    compute=_split,
    size_splits=integers(alone=False, kinds=(tuple, list)),
    split_dim=integer(),
    num_split=integer(at_least=1),
): ...


class ReverseV2(
    Primitive, compute=lambda p, x: arrange.flip(x, p.axis), axis=integers(alone=False, kinds=(tuple, list))
): ...


class Roll(
    Primitive,
    compute=lambda p, x: arrange.roll(x, p.shifts, p.dims),
    shifts=integers(kinds=(tuple, list)),
    dims=optional(integers(kinds=(tuple, list))),
): ...


class Tril(Primitive, compute=lambda p, x: arrange.tril(x, p.diagonal), diagonal=0): ...


class Triu(Primitive, compute=lambda p, x: arrange.triu(x, p.diagonal), diagonal=integer(0, tensors=True)): ...


class Meshgrid(
    Primitive,
    compute=lambda p, xs: arrange.meshgrid(*xs, indexing=p.indexing),
    indexing=word("xy", "ij"),
    inputs=((tuple, list),),
): ...


class Gather(
    Primitive,
    compute=lambda p, x, i, axis: gather_scatter.gather(x, i, axis, p.batch_dims),
    batch_dims=0,
    inputs=(Tensor, Tensor, WHOLE),
): ...


class GatherV2(Primitive, compute=gather_scatter.gather, inputs=(Tensor, Tensor, WHOLE)): ...


class IndexAdd(
    Primitive,
    compute=lambda p, x, i, y: gather_scatter.index_add(x, i, y, p.axis),
    axis=integer(),
    use_lock=anything(True),
    check_index_bound=anything(True),
): ...


class InplaceUpdate(
    Primitive, compute=lambda p, x, v: gather_scatter.inplace_update(x, v, p.indices), indices=integers()
): ...


class InplaceAdd(
    Primitive, compute=lambda p, x, v: gather_scatter.inplace_add(x, v, p.indices), indices=integers()
): ...


class InplaceSub(
    Primitive, compute=lambda p, x, v: gather_scatter.inplace_sub(x, v, p.indices), indices=integers()
): ...


def _rows_or_beyond(x: Any, rows: Tensor) -> Tensor:
    """Return indices of rows, with negative ones moved beyond the last row."""
    table = operand("EmbeddingLookup", x)
    if table.ndim == 0:
        raise ShapeError("EmbeddingLookup: takes a table with an axis of rows, not a single number")
    return select(rows < 0, like(table.shape[0], rows), rows)


class EmbeddingLookup(
    Primitive,
    compute=lambda x, i, offset: gather_scatter.read_or_zeros(
        operand("EmbeddingLookup", x), _rows_or_beyond(x, cast_index("EmbeddingLookup", i) - offset)
    ),
    inputs=(Tensor, Tensor, WHOLE),
):
    """The rows that indices less an offset name; zeros where there is no such row."""


class TensorScatterElements(
    Primitive,
    compute=lambda p, x, i, u: gather_scatter.tensor_scatter_elements(x, i, u, p.axis, p.reduction),
    axis=0,
    reduction=word("none", "add", "mul", "max", "min"),
): ...


class OneHot(
    Primitive,
    compute=lambda p, i, depth, on, off: creation.one_hot(i, depth, on, off, p.axis),
    axis=-1,
    inputs=(Tensor, WHOLE),
): ...


class Range(
    Primitive,
    compute=lambda p, start, end, step: creation.range(start, end, step, p.maxlen),
    maxlen=1000000,
    inputs=(NUMBER, NUMBER, NUMBER),
): ...


class TrilIndices(
    Primitive,
    compute=lambda p: creation.tril_indices(p.row, p.col, p.offset, dtype=p.dtype),
    row=integer(at_least=0),
    col=integer(at_least=0),
    offset=0,
    dtype=element_type(D.int32, D.int64),
):
    """`mycel.ops.tril_indices` as an object: the row and column indices (2 x count) of the elements
    of a `row` x `col` matrix on and below a diagonal.

    It is called without inputs.

    Args:
        row (int): The number of rows, at least 0.
        col (int): The number of columns, at least 0.
        offset (int): The diagonal, 0 for the main one and positive above it. Default: 0.
        dtype (DType): The element type: int32 or int64. Default: int32.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.TrilIndices(2, 2)().tolist()
        [[0, 1, 1], [0, 0, 1]]
    """


class TriuIndices(
    Primitive,
    compute=lambda p: creation.triu_indices(p.row, p.col, p.offset, dtype=p.dtype),
    row=integer(at_least=0),
    col=integer(at_least=0),
    offset=0,
    dtype=element_type(D.int32, D.int64),
):
    """`mycel.ops.triu_indices` as an object: the row and column indices (2 x count) of the elements
    of a `row` x `col` matrix on and above a diagonal.

    It is called without inputs.

    Args:
        row (int): The number of rows, at least 0.
        col (int): The number of columns, at least 0.
        offset (int): The diagonal, 0 for the main one and positive above it. Default: 0.
        dtype (DType): The element type: int32 or int64. Default: int32.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.TriuIndices(2, 2)().tolist()
        [[0, 0, 1], [0, 1, 1]]
    """


class StridedSlice(
    Primitive,
    compute=lambda p, x, begin, end, strides: arrange.strided_slice(
        x, begin, end, strides, p.begin_mask, p.end_mask, p.ellipsis_mask, p.new_axis_mask, p.shrink_axis_mask
    ),
    begin_mask=0,
    end_mask=0,
    ellipsis_mask=0,
    new_axis_mask=0,
    shrink_axis_mask=0,
    inputs=(Tensor, SIZES, SIZES, SIZES),
):
    """`mycel.ops.strided_slice` as an object: ``input_x[begin[0]:end[0]:strides[0], ...]``.

    It is called with (input_x, begin, end, strides). Bit i of a mask changes entry i.

    Args:
        begin_mask (int): The axes, as bits, whose `begin` is left out. Default: 0.
        end_mask (int): The axes whose `end` is left out. Default: 0.
        ellipsis_mask (int): The entry that is "...". Default: 0.
        new_axis_mask (int): The entries that are a new axis. Default: 0.
        shrink_axis_mask (int): The entries that are an index, which removes the axis. Default: 0.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.StridedSlice(begin_mask=1)(ms.ops.arange(6), (1,), (6,), (2,)).tolist()
        [0, 2, 4]
    """


def _even_parts(p: Any, x: Any) -> tuple[Tensor, ...]:
    value = operand("Split", x)
    size = value.shape[axis_of("Split", p.axis, value.ndim)]
    if isinstance(size, int) and size % p.output_num:
        raise ValueError(f"Split: axis {p.axis} of size {size} does not divide into {p.output_num} parts")
    return splits.split(value, size // p.output_num, p.axis)


def _padded_around(p: Any, x: Any) -> Tensor:
    if len(p.paddings) != x.ndim:
        raise ShapeError(f"Pad: paddings must be {x.ndim} pairs, one for each axis, not {p.paddings!r:.80}")
    return arrange.pad(x, tuple([v for pair in reversed(p.paddings) for v in pair]))


class Pad(Primitive, compute=_padded_around, paddings=pairs(kinds=tuple)): ...


class MirrorPad(
    Primitive,
    compute=lambda p, x, paddings: mirror_pad(x, paddings, p.mode),
    mode=one_of("REFLECT", "SYMMETRIC"),
): ...


__all__.extend(operations_of(globals()))
