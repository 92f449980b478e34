"""MindSpore's inner primitives: conversions, questions about values, tables of embeddings, linear
algebra of second-order optimisers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycel import ops
from mycel._src.foundation.dtype import DType
from mycel._src.foundation.errors import Unsupported
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops._operands import shape_of
from mycel.scipy import linalg
from mycel.scipy.optimize import linear_sum_assignment

__all__ = ["INNER"]

Work = Callable[..., Any]


def _same(p: Any, x: Any, *rest: Any) -> Any:
    return x


def _clip_by_norm(p: Any, x: Any, most: Any) -> Any:
    axes = tuple(range(x.ndim)) if p.axis is None else p.axis
    norm = ops.sqrt((x * x).sum(axes, keepdims=True))
    return x * most / ops.maximum(norm, most)


def _quant(p: Any, x: Any) -> Any:
    """Return int8 steps of `x`."""
    scaled = x * p.scale * (p.scale if p.sqrt_mode else 1.0) + p.offset
    return ops.clip(_ROUNDING[p.round_mode.upper()](scaled), -128, 127).astype("int8")


def _dequant(p: Any, x: Any, scale: Any) -> Any:
    found = x.astype(scale.dtype) * scale * (scale if p.sqrt_mode else 1.0)
    return (ops.relu(found) if p.relu_flag else found).astype(p.dtype)


def _antiquant(p: Any, x: Any, scale: Any, offset: Any) -> Any:
    found = (x.astype(scale.dtype) + offset) * scale * (scale if p.sqrt_mode else 1.0)
    return found.astype(p.dtype)


_ROUNDING = {"ROUND": ops.round, "FLOOR": ops.floor, "CEIL": ops.ceil, "TRUNC": ops.trunc}


def _gradient_axes(p: Any, first: Any, second: Any) -> Any:
    """Return the axes along which each of two shapes is broadcast to the other."""
    shapes = [shape_of(p.name, s) for s in (first, second)]
    rank = max(map(len, shapes))
    full = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    found = []
    for own, other, shape in ((full[0], full[1], shapes[0]), (full[1], full[0], shapes[1])):
        axes = [i for i in range(rank) if i < rank - len(shape) or (own[i] == 1 and other[i] != 1)]
        found.append(Tensor(np.array(axes, np.int64)))
    return tuple(found)


def _stitched(p: Any, indices: Sequence[Any], data: Sequence[Any]) -> Any:
    """Return rows at the places that indices name; of several for one place, the last."""
    places = np.concatenate([np.asarray(i.asnumpy()).reshape(-1) for i in indices])
    rows = ops.cat([d.reshape((-1, *d.shape[i.ndim :])) for i, d in zip(indices, data)])
    chosen = np.zeros(int(places.max(initial=-1)) + 1, np.int64)
    chosen[places] = np.arange(len(places))
    return ops.gather(rows, Tensor(chosen), 0)


def _is_instance(p: Any, value: Any, kind: Any) -> bool:
    if isinstance(value, Tensor):
        return isinstance(kind, DType) and value.dtype == kind or kind is Tensor
    names = {bool: "bool", int: "int", float: "float"}
    if isinstance(kind, DType):
        return str(kind).lower().startswith(names.get(type(value), "no number"))
    return isinstance(kind, type) and isinstance(value, kind)


def _is_subclass(p: Any, kind: Any, base: Any) -> bool:
    """Return whether an element type is another one, or one of a family, as int32 of the ints."""
    if isinstance(kind, type) and isinstance(base, type):
        return issubclass(kind, base)
    return kind == base or str(kind).lower().startswith(str(base).lower().rstrip("_"))


def _same_type_and_shape(p: Any, x: Any, y: Any) -> Any:
    if x.dtype != y.dtype or tuple(x.shape) != tuple(y.shape):
        raise TypeError(
            f"SameTypeShape: the operands must be alike, not {x.dtype} of {tuple(x.shape)} and {y.dtype} of "
            f"{tuple(y.shape)}"
        )
    return x


def _clusters(p: Any, x: Any, centres: Any, square_centres: Any, square_x: Any) -> Any:
    """Return sums and counts of the rows nearest to each centre, and the sum of their distances."""
    distances = square_centres - 2.0 * ops.matmul(x, centres.swapaxes(0, 1))
    if p.use_actual_distance:
        distances = distances + square_x
    nearest = distances.argmin(1)
    hot = ops.one_hot(nearest, centres.shape[0], ops.ones((), x.dtype), ops.zeros((), x.dtype))
    return ops.matmul(hot.swapaxes(0, 1), x), hot.sum(0).reshape((-1, 1)), ops.amin(distances, 1).sum().reshape((1,))


def _diagonal_part(p: Any, x: Any, assist: Any) -> Any:
    return (x * assist).sum(-1 if x.shape[-2] <= x.shape[-1] else -2)


def _diagonal_set(p: Any, x: Any, diagonal: Any, assist: Any) -> Any:
    spread = ops.expand_dims(diagonal, -1 if x.shape[-2] <= x.shape[-1] else -2)
    return ops.where(assist.astype("bool"), spread * assist, x)


def _narrowed(p: Any, dtype: Any, value: Any) -> Any:
    """Return floating tensors, also in tuples, lists and dicts, in another floating type."""
    if isinstance(value, dict):
        return {k: _narrowed(p, dtype, v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(_narrowed(p, dtype, v) for v in value)
    return value.astype(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value


def _mask(p: Any, lengths: Any, longest: Any) -> Any:
    size = int(longest)
    return ops.arange(size) < ops.expand_dims(lengths, -1)


def _tiles(p: Any, shape: Sequence[int], wanted: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return how often each axis is repeated to get a shape: once where it has that size."""
    sizes = [1] * (rank - len(shape)) + list(shape)
    return tuple(b if a != b else 1 for a, b in zip(sizes, wanted))


def _offsets(axis: int, shapes: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return where each of several tensors begins in their concatenation."""
    found, start = [], 0
    for shape in shapes:
        found.append([start if i == axis % len(shape) else 0 for i in range(len(shape))])
        start += shape[axis]
    return found


def _concat_offset(p: Any, tensors: Sequence[Any]) -> Any:
    return Tensor(np.array(_offsets(p.axis, [tuple(t.shape) for t in tensors]), np.int64))


def _concat_offset_v1(p: Any, axis: Any, shapes: Sequence[Any]) -> Any:
    places = _offsets(int(axis), [shape_of(p.name, s) for s in shapes])
    return tuple(Tensor(np.array(place, np.int32)) for place in places)


# Tables of embeddings.


def _parameter(p: Any, value: Any) -> Any:
    if not isinstance(value, Parameter):
        raise TypeError(f"{p.name}: the table that is changed must be a Parameter, not {type(value).__name__}")
    return value


def _swapped(p: Any, table: Any, places: Any, rows: Any) -> Any:
    """Put rows into a table and return those that were there."""
    old = ops.gather(_parameter(p, table), places, 0)
    ops.scatter_update(table, places, rows)
    return old


def _cache_updated(p: Any, table: Any, indices: Any, rows: Any, most: Any) -> Any:
    flat, wide = indices.reshape(-1), rows.reshape((-1, *table.shape[1:]))
    kept = np.flatnonzero((flat.asnumpy() >= 0) & (flat.asnumpy() < int(most)))
    chosen = Tensor(kept)
    ops.scatter_update(_parameter(p, table), ops.gather(flat, chosen, 0), ops.gather(wide, chosen, 0))
    return ops.zeros((1,), rows.dtype)


def _padded(p: Any, x: Any, ends: Any, number: Any) -> Any:
    """Return -1 up to the last end, with the first values in the part of a number."""
    bounds, part = ends.asnumpy(), int(number)
    start, stop = int(bounds[part]), int(bounds[part + 1])
    found = np.full(int(bounds[-1]), -1)
    found[start:stop] = x.asnumpy()[: stop - start]
    return Tensor(found).astype(x.dtype)


def _filtered(p: Any, x: Any, most: Any, offset: Any) -> Any:
    moved = x.asnumpy() - int(offset)
    kept = np.flatnonzero((moved >= 0) & (moved < int(most)))
    return Tensor(moved[kept]).astype(x.dtype), Tensor(kept).astype(x.dtype)


def _map_get(p: Any, table: Any, keys: Any, *default: Any) -> Any:
    return table.get(keys, p.insert_default_value)


# Linear algebra.


def _eigen(p: Any, a: Any) -> Any:
    found = linalg.eigh(a, lower=p.lower, eigvals_only=not p.compute_eigenvectors)
    return found


def _lu(p: Any, a: Any) -> Any:
    packed, pivots = linalg.lu_factor(a)
    return packed, linalg.lu_pivots_to_permutation(pivots, a.shape[-1]).astype(p.output_idx_type)


def _tridiagonal(p: Any, diagonals: Any, rhs: Any) -> Any:
    """Solve with the diagonals above, on and below the main one, each as long as that."""
    above, on, below = (diagonals[..., i, :] for i in range(3))
    size = diagonals.shape[-1]
    whole = ops.diag_embed(on)
    if size > 1:
        whole = whole + ops.diag_embed(above[..., :-1], 1) + ops.diag_embed(below[..., 1:], -1)
    return ops.matmul(ops.inverse(whole), rhs)


def _combined(p: Any, blocks: Any) -> Any:
    """Return a matrix with the blocks along its diagonal."""
    count, size = blocks.shape[0], blocks.shape[1]
    hot = ops.eye(count, count, blocks.dtype)
    return ops.einsum("ij,iab->iajb", hot, blocks).reshape((count * size, count * size))


def _thor_gradient(p: Any, a: Any, gradient: Any, g: Any) -> Any:
    """Multiply the blocks of a gradient by those of the factors of its preconditioner."""
    count, size = g.shape[-3], g.shape[-1]
    rows, columns = a.shape[0] * a.shape[1], count * size
    padded = ops.pad(gradient, [0, columns - gradient.shape[1], 0, rows - gradient.shape[0]])
    blocks = padded.reshape((a.shape[0], a.shape[1], count, size))
    found = ops.einsum("iab,ibjc,ijcd->iajd" if g.ndim == 4 else "iab,ibjc,jcd->iajd", a, blocks, g)
    return found.reshape((rows, columns))[: gradient.shape[0], : gradient.shape[1]]


def _refuse_more(p: Any) -> None:
    count = getattr(p, "device_num", None) or getattr(p, "dev_num", None) or 1
    if count > 1:
        raise Unsupported(f"{p.name}: tensors divided among {count} devices; use the collectives of mindspore.ops")


def _here(p: Any, x: Any, *rest: Any) -> Any:
    """Return the operand: with one device there is nothing to gather or to add up."""
    _refuse_more(p)
    return x


def _part(p: Any, x: Any, devices: Any, *layout: Any) -> Any:
    if int(np.prod(devices)) > 1:
        raise Unsupported("_GetTensorSlice: a part of a tensor divided among devices; use indices of tensors")
    return x


INNER: dict[str, Work] = {
    "AddV2": lambda p, x, y: ops.add(x, y),
    "AntiQuant": _antiquant,
    "ArgminV2": lambda p, x, axis=-1: ops.argmin(x, int(axis)).astype("int32"),
    "CacheSwapTable": _swapped,
    "Centralization": lambda p, x, axes: x - x.mean(tuple(axes), keep_dims=True),
    "CheckBprop": lambda p, gradients, *operands: gradients,
    "ClipByNorm": _clip_by_norm,
    "ConcatOffset": _concat_offset,
    "ConcatOffsetV1": _concat_offset_v1,
    "ConvertToDynamic": _same,
    "CusBatchMatMul": lambda p, x, y: ops.matmul(x, y.swapaxes(-1, -2)),
    "CusMatMulCube": lambda p, x, y: ops.MatMul(p.transpose_a, p.transpose_b)(x, y),
    "CusMatrixCombine": _combined,
    "CusTranspose02314": lambda p, x: ops.transpose(x, (0, 2, 3, 1, 4)),
    "Dequant": _dequant,
    "DetTriangle": lambda p, x: ops.prod(ops.diagonal(x, 0, -2, -1), -1),
    "DynamicAssign": lambda p, table, value: ops.assign(_parameter(p, table), value),
    "DynamicBroadcastGradientArgs": _gradient_axes,
    "DynamicBroadcastTo": lambda p, x, shape: ops.broadcast_to(x, shape_of(p.name, shape)),
    "DynamicStitch": _stitched,
    "Eig": lambda p, a: linalg.Eig(p.compute_v)(a),
    "Eigh": _eigen,
    "ErrorOnDynamicShapeInput": _same,
    "Format": lambda p, text, *values: text.format(*values),
    "GetGrad": lambda p, gradients, x: ops.get_grad(gradients, x),
    "GpuConvertToDynamicShape": _same,
    "IsConstant": lambda p, x: not isinstance(x, Tensor),
    "IsInstance": _is_instance,
    "IsParameter": lambda p, x: isinstance(x, Parameter),
    "IsSubClass": _is_subclass,
    "KMeansCentroids": _clusters,
    "LU": lambda p, a: linalg.LU()(a),
    "LinearSumAssignment": lambda p, costs, limit, maximize: linear_sum_assignment(costs, maximize, limit),
    "Load": _same,
    "Lu": _lu,
    "MapTensorErase": lambda p, table, keys: table.erase(keys),
    "MapTensorGet": _map_get,
    "MapTensorGetData": lambda p, table: table.get_data(),
    "MapTensorGetKeys": lambda p, table: table.get_keys(),
    "MapTensorGetValues": lambda p, table: table.get_values(),
    "MapTensorPut": lambda p, table, keys, values: table.put(keys, values),
    "MapUniform": lambda p, x, size, count: x % int(count) * int(size) + x // int(count),
    "MatrixDiag": lambda p, x, assist: ops.expand_dims(x, -1) * assist,
    "MatrixDiagPart": _diagonal_part,
    "MatrixSetDiag": _diagonal_set,
    "MixedPrecisionCast": _narrowed,
    "PadAndShift": _padded,
    "Quant": _quant,
    "RangeV2": lambda p, start, limit, delta: ops.range(start, limit, delta).astype(start.dtype),
    "SameTypeShape": _same_type_and_shape,
    "ScalarCast": lambda p, x, dtype: ops.scalar_cast(x, dtype),
    "ScaleGrad": lambda p, gradients, scale: tuple(g * scale for g in gradients),
    "SelfAdjointEig": lambda p, a: linalg.eigh(a),
    "RefToEmbed": lambda p, parameter: ops.ref_to_embed(parameter),
    "SequenceMask": _mask,
    "SliceGetItem": lambda p, value, attribute: getattr(value, attribute),
    "SubAndFilter": _filtered,
    "TileSize": _tiles,
    "TopTypeof": lambda p, x: ops.typeof(x),
    "TransShape": lambda p, x, shape: ops.reshape(x, tuple(shape)),
    "TridiagonalSolve": _tridiagonal,
    "Uniform": lambda p, x: (ops.rand(tuple(x.shape)) * (p.maxval - p.minval) + p.minval).astype(x.dtype),
    "Unsqueeze": lambda p, x: ops.expand_dims(x, p.axis),
    "UpdateCache": _cache_updated,
    "UpdateThorGradient": _thor_gradient,
    "_GetTensorSlice": _part,
    "_MicroStepAllGather": _here,
    "_MiniStepAllGather": _here,
    "_MirrorMicroStepOperator": _here,
    "_MirrorMiniStepOperator": _here,
    "_MirrorOperator": _here,
    "_VirtualAccuGrad": _same,
    "_VirtualAdd": _same,
    "_VirtualAssignAdd": _same,
    "_VirtualConverterBegin": lambda p, x: (x,) * p.output_nums,
    "_VirtualConverterEnd": lambda p, *values: values[0],
    "_VirtualDataset": lambda p, *values: values[0] if len(values) == 1 else values,
    "_VirtualOutput": _same,
    "_VirtualPipelineEnd": _same,
}
