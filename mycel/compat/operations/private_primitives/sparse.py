"""MindSpore's primitives on the parts of sparse tensors and on matrices of compressed rows.

How many entries a result has is in the values of the operands. Positions are therefore worked out
in NumPy, and values are gathered and added up by operations, which have derivatives. A sparse
matrix has its shape, where the entries of each matrix of a batch begin, where the rows begin, and
the columns. `p` is the primitive, with its parameters as attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycel import ops
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops._operands import shape_of
from mycel.ops.sparse.tensors import CSRTensor

__all__ = ["SPARSE"]

Work = Callable[..., Any]
Array = Any  # a NumPy array


def _host(value: Any) -> Array:
    return value.asnumpy() if isinstance(value, Tensor) else np.asarray(value)


def _made(array: Array, like: Any) -> Tensor:
    """Return a tensor of positions in the element type of another."""
    return Tensor(np.asarray(array).astype(_host(like).dtype))


def _gathered(values: Any, places: Array) -> Any:
    return ops.gather(values, Tensor(np.asarray(places, np.int64)), 0)


def _added(values: Any, numbers: Array, count: int) -> Any:
    """Add up values of the same number."""
    return ops.unsorted_segment_sum(values, Tensor(np.asarray(numbers, np.int64)), count)


def _numbered(indices: Array, shape: Sequence[int]) -> Array:
    return np.ravel_multi_index(tuple(indices.T), tuple(int(n) for n in shape))


def _dense(indices: Array, values: Any, shape: Sequence[int], default: Any = None) -> Any:
    sizes = tuple(int(n) for n in shape)
    count = int(np.prod(sizes))
    numbers = _numbered(indices, sizes)
    found = _added(values, numbers, count)
    if default is not None:
        there = np.zeros(count, bool)
        there[numbers] = True
        found = ops.where(Tensor(there), found, ops.zeros_like(found) + default)
    return found.reshape(sizes)


# Matrices of compressed rows.


def _entries(shape: Array, batches: Array, rows: Array, columns: Array) -> Array:
    """Return the positions of the entries, one a row."""
    height, found = int(shape[-2]), []
    for number in range(len(batches) - 1):
        begins = rows[number * (height + 1) : (number + 1) * (height + 1)]
        found.append(np.repeat(np.arange(height), np.diff(begins)) + number * height)
    joined = np.concatenate(found)
    parts = [joined % height, columns]
    return np.stack(parts if len(shape) == 2 else [joined // height, *parts], 1).astype(np.int64)


def _compressed(indices: Array, shape: Array) -> tuple[Array, Array, Array]:
    """Return where batches and rows begin, and the columns, of sorted positions."""
    height = int(shape[-2])
    count = int(shape[0]) if len(shape) == 3 else 1
    batch = indices[:, 0] if len(shape) == 3 else np.zeros(len(indices), np.int64)
    sizes = np.bincount(batch * height + indices[:, -2], minlength=count * height).reshape(count, height)
    rows = np.concatenate([np.zeros((count, 1), np.int64), sizes.cumsum(1)], 1).reshape(-1)
    return np.concatenate([[0], sizes.sum(1).cumsum()]), rows, indices[:, -1]


def _read(shape: Any, batches: Any, rows: Any, columns: Any) -> tuple[Array, Array]:
    sizes = _host(shape)
    return _entries(sizes, _host(batches), _host(rows), _host(columns)), sizes


def _written(indices: Array, values: Any, shape: Array, like: Any) -> tuple[Any, ...]:
    batches, rows, columns = _compressed(indices, shape)
    return (*(_made(v, like) for v in (shape, batches, rows, columns)), values)


def _matrix_to_dense(p: Any, *parts: Any) -> Any:
    indices, shape = _read(*parts[:4])
    return _dense(indices, parts[4], shape)


def _matrix_to_sparse(p: Any, *parts: Any) -> Any:
    indices, shape = _read(*parts[:4])
    return _made(indices, parts[0]), parts[4], _made(shape, parts[0])


def _dense_to_matrix(p: Any, dense: Any, indices: Any) -> Any:
    places = _host(indices)
    return _written(places, ops.gather_nd(dense, indices), np.array(dense.shape), indices)


def _sparse_to_matrix(p: Any, indices: Any, values: Any, shape: Any) -> Any:
    return _written(_host(indices), values, _host(shape), indices)


def _matrix_add(p: Any, *parts: Any) -> Any:
    first, shape = _read(*parts[:4])
    second, _ = _read(*parts[5:9])
    indices, values = _joined(first, parts[4] * parts[10], second, parts[9] * parts[11], shape)
    return _written(indices, values, shape, parts[0])


def _joined(first: Array, x: Any, second: Array, y: Any, shape: Array) -> tuple[Array, Any]:
    """Return the sorted positions that either has, and the sum of what is there."""
    numbers = _numbered(np.concatenate([first, second]), shape)
    found, inverse = np.unique(numbers, return_inverse=True)
    indices = np.stack(np.unravel_index(found, tuple(int(n) for n in shape)), 1)
    return indices, _added(ops.cat((x, y)), inverse.reshape(-1), len(found))


def _turned(x: Any, transpose: bool, adjoint: bool) -> Any:
    x = ops.conj(x) if adjoint and x.is_complex() else x
    return x.swapaxes(-1, -2) if transpose or adjoint else x


def _matrix_mat_mul(p: Any, *parts: Any) -> Any:
    dense = _matrix_to_dense(p, *parts[:5])
    other = _turned(parts[5], p.transpose_x2, p.adjoint_x2)
    found = ops.matmul(_turned(dense, p.transpose_x1, p.adjoint_x1), other)
    found = found.swapaxes(-1, -2) if p.transpose_output else found
    return ops.conj(found) if p.conjugate_output and found.is_complex() else found


def _matrix_matrix(p: Any, *parts: Any) -> Any:
    first = _turned(_matrix_to_dense(p, *parts[:5]), p.transpose_a, p.adjoint_a)
    second = _turned(_matrix_to_dense(p, *parts[5:10]), p.transpose_b, p.adjoint_b)
    found = ops.matmul(first, second)
    indices = np.argwhere(_host(found) != 0)
    values = ops.gather_nd(found, Tensor(indices))
    return _written(indices, values, np.array(found.shape), parts[0])


def _matrix_transposed(p: Any, *parts: Any) -> Any:
    indices, shape = _read(*parts[:4])
    indices, shape = indices.copy(), shape.copy()
    indices[:, [-2, -1]], shape[[-2, -1]] = indices[:, [-1, -2]], shape[[-1, -2]]
    order = np.argsort(_numbered(indices, shape), kind="stable")
    values = _gathered(parts[4], order)
    return _written(indices[order], ops.conj(values) if p.conjugate else values, shape, parts[0])


def _matrix_softmax(p: Any, *parts: Any) -> Any:
    indices, _ = _read(*parts[:4])
    return (*parts[:4], _softmaxed(indices, parts[4], _host(parts[0])))


def _softmaxed(indices: Array, values: Any, shape: Array) -> Any:
    _, numbers = np.unique(_numbered(indices[:, :-1], shape[:-1]), return_inverse=True)
    numbers = numbers.reshape(-1)
    count = int(numbers.max(initial=-1)) + 1
    greatest = ops.unsorted_segment_max(values, Tensor(numbers), count)
    powers = ops.exp(values - _gathered(ops.stop_gradient(greatest), numbers))
    return powers / _gathered(_added(powers, numbers, count), numbers)


def _matrix_count(p: Any, *parts: Any) -> Any:
    return Tensor(np.diff(_host(parts[1])).astype(np.int32))


# Tensors of positions and values.


def _add(p: Any, i1: Any, v1: Any, s1: Any, i2: Any, v2: Any, s2: Any, least: Any) -> Any:
    indices, values = _joined(_host(i1), v1, _host(i2), v2, _host(s1))
    large = np.flatnonzero(np.abs(_host(values)) >= _host(least))
    return _made(indices[large], i1), _gathered(values, large), s1


def _addmm(p: Any, indices: Any, values: Any, shape: Any, x2: Any, x3: Any, alpha: Any, beta: Any) -> Any:
    return alpha * ops.matmul(_dense(_host(indices), values, _host(shape)), x2) + beta * x3


def _concat(p: Any, indices: Any, values: Any, shapes: Any) -> Any:
    sizes = [_host(s) for s in shapes]
    axis = p.concat_dim % len(sizes[0])
    moved, start = [], 0
    for places, size in zip(indices, sizes):
        places = _host(places).copy()
        places[:, axis] += start
        start += int(size[axis])
        moved.append(places)
    whole = sizes[0].copy()
    whole[axis] = start
    joined = np.concatenate(moved)
    order = np.argsort(_numbered(joined, whole), kind="stable")
    return _made(joined[order], indices[0]), _gathered(ops.cat(tuple(values)), order), _made(whole, shapes[0])


def _count_output(p: Any, indices: Any, values: Any, shape: Any, weights: Any) -> Any:
    places, kept = _host(indices), _host(values)
    known = np.flatnonzero(kept < p.maxlength) if p.maxlength >= 0 else np.arange(len(kept))
    lead = places[known][:, :-1]
    pairs = np.concatenate([lead, kept[known][:, None]], 1)
    found, inverse = np.unique(pairs, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    if p.binary_output:
        counted = ops.ones((len(found),), weights.dtype)
    elif weights.size:
        counted = _added(_gathered(weights, known), inverse, len(found))
    else:
        counted = Tensor(np.bincount(inverse, minlength=len(found)).astype(_host(weights).dtype))
    width = max(int(kept[known].max(initial=-1)) + 1, p.minlength)
    return Tensor(found), counted, Tensor(np.array([*_host(shape)[:-1], width], np.int64))


def _elementwise(work: Work) -> Work:
    def compute(p: Any, indices: Any, values: Any, shape: Any, dense: Any) -> Any:
        met = ops.broadcast_to(dense, tuple(int(n) for n in _host(shape)))
        return work(values, ops.gather_nd(met, indices))

    return compute


def _fill_empty_rows(p: Any, indices: Any, values: Any, shape: Any, default: Any) -> Any:
    places, height = _host(indices), int(_host(shape)[0])
    empty = np.ones(height, bool)
    empty[places[:, 0]] = False
    added = np.zeros((int(empty.sum()), places.shape[1]), places.dtype)
    added[:, 0] = np.flatnonzero(empty)
    joined = np.concatenate([places, added])
    order = np.argsort(joined[:, 0], kind="stable")
    filled = ops.cat((values, ops.zeros((len(added),), values.dtype) + default))
    reverse = np.argsort(order, kind="stable")[: len(places)]
    return _made(joined[order], indices), _gathered(filled, order), Tensor(empty), _made(reverse, indices)


def _reorder(p: Any, indices: Any, values: Any, shape: Any) -> Any:
    places = _host(indices)
    order = np.argsort(_numbered(places, _host(shape)), kind="stable")
    return _made(places[order], indices), _gathered(values, order)


def _reshape(p: Any, indices: Any, shape: Any, new_shape: Any) -> Any:
    sizes, wanted = _host(shape), _host(new_shape).copy()
    wanted[wanted < 0] = sizes.prod() // max(-wanted.prod(), 1)
    numbers = _numbered(_host(indices), sizes)
    return _made(np.stack(np.unravel_index(numbers, tuple(wanted)), 1), indices), _made(wanted, new_shape)


def _segments(kind: str) -> Work:
    """Return a reduction over the rows that indices name, by segment."""

    def compute(p: Any, x: Any, indices: Any, segments: Any, count: Any = None) -> Any:
        numbers = _host(segments)
        total = int(numbers[-1]) + 1 if count is None else int(_host(count).reshape(-1)[0])
        found = _added(ops.gather(x, indices, 0), numbers, total)
        if kind == "sum":
            return found
        sizes = np.maximum(np.bincount(numbers, minlength=total), 1).astype(np.float64)
        sizes = (sizes if kind == "mean" else np.sqrt(sizes)).reshape((-1, *[1] * (x.ndim - 1)))
        return found / Tensor(sizes).astype(x.dtype)

    return compute


def _slice(p: Any, indices: Any, values: Any, shape: Any, start: Any, size: Any) -> Any:
    places, begin, wanted = _host(indices), _host(start), _host(size)
    sizes = np.minimum(begin + wanted, _host(shape)) - begin
    inside = np.flatnonzero(((places >= begin) & (places < begin + sizes)).all(1))
    return _made(places[inside] - begin, indices), _gathered(values, inside), _made(sizes, shape)


def _extreme(first: Work) -> Work:
    """Return the elementwise extreme of two tensors; what one lacks is zero."""

    def compute(p: Any, i1: Any, v1: Any, s1: Any, i2: Any, v2: Any, s2: Any) -> Any:
        one, two = _host(i1), _host(i2)
        indices, x = _joined(one, v1, two, ops.zeros_like(v2), _host(s1))
        _, y = _joined(one, ops.zeros_like(v1), two, v2, _host(s1))
        return _made(indices, i1), first(x, y)

    return compute


def _split(p: Any, axis: Any, indices: Any, values: Any, shape: Any) -> Any:
    places, sizes, along = _host(indices), _host(shape), int(_host(axis).reshape(-1)[0])
    long, parts, start = int(sizes[along]), [], 0
    for number in range(p.num_split):
        count = long // p.num_split + (number < long % p.num_split)
        inside = np.flatnonzero((places[:, along] >= start) & (places[:, along] < start + count))
        moved, part = places[inside].copy(), sizes.copy()
        moved[:, along] -= start
        part[along] = count
        parts.append((_made(moved, indices), _gathered(values, inside), _made(part, shape)))
        start += count
    return tuple(tuple(kind) for kind in zip(*parts))


def _to_dense(p: Any, indices: Any, shape: Any, values: Any, default: Any) -> Any:
    places = _host(indices)
    return _dense(places.reshape(len(places), -1), values, _host(shape), default)


def _sspaddmm(p: Any, *parts: Any) -> Any:
    """Add a multiple of a sparse tensor to that of the product of another one and a matrix."""
    (i1, v1, s1), (i2, v2, _), (dense, alpha, beta) = parts[:3], parts[3:6], parts[6:]
    first, second = _host(i1), _host(i2)
    width = dense.shape[1]
    rows = ops.gather(dense, Tensor(second[1].astype(np.int64)), 0) * v2.reshape((-1, 1)) * alpha
    added = np.stack([np.repeat(second[0], width), np.tile(np.arange(width), second.shape[1])])
    return _made(np.concatenate([first, added], 1), i1), ops.cat((v1 * beta, rows.reshape(-1))), s1


# Sets and ragged tensors.


def _set_operation(kind: str, first: list[list[Any]], second: list[list[Any]]) -> list[list[Any]]:
    work: dict[str, Callable[[set[Any], set[Any]], set[Any]]] = {
        "a-b": lambda a, b: a - b,
        "b-a": lambda a, b: b - a,
        "intersection": lambda a, b: a & b,
        "union": lambda a, b: a | b,
    }
    return [sorted(work[kind](set(a), set(b))) for a, b in zip(first, second)]


def _sets_written(rows: list[list[Any]], lead: tuple[int, ...], like: Any) -> Any:
    places = [(*np.unravel_index(number, lead), k) for number, row in enumerate(rows) for k in range(len(row))]
    indices = np.array(places, np.int64).reshape(-1, len(lead) + 1)
    values = np.array([v for row in rows for v in row], _host(like).dtype)
    return Tensor(indices), Tensor(values), Tensor(np.array([*lead, max(map(len, rows), default=0)], np.int64))


def _sets_of(indices: Any, values: Any, lead: tuple[int, ...]) -> list[list[Any]]:
    rows: list[list[Any]] = [[] for _ in range(int(np.prod(lead)))]
    for place, value in zip(_host(indices), _host(values).tolist()):
        rows[int(np.ravel_multi_index(tuple(place[:-1]), lead))].append(value)
    return rows


def _dense_sets(p: Any, x1: Any, x2: Any) -> Any:
    lead = tuple(x1.shape[:-1])
    first, second = (_host(x).reshape(-1, x.shape[-1]).tolist() for x in (x1, x2))
    return _sets_written(_set_operation(p.set_operation, first, second), lead, x1)


def _mixed_sets(p: Any, x1: Any, indices: Any, values: Any, shape: Any) -> Any:
    lead = tuple(x1.shape[:-1])
    first = _host(x1).reshape(-1, x1.shape[-1]).tolist()
    return _sets_written(_set_operation(p.set_operation, first, _sets_of(indices, values, lead)), lead, x1)


def _set_size(p: Any, indices: Any, values: Any, shape: Any) -> Any:
    lead = tuple(int(n) for n in _host(shape)[:-1])
    return Tensor(np.array([len(set(row)) for row in _sets_of(indices, values, lead)], np.int32).reshape(lead))


def _ragged_places(splits: Sequence[Any]) -> Array:
    """Return the position of each value, given where the rows of each level begin."""
    places = np.zeros((1, 0), np.int64)
    for level, begins in enumerate(map(_host, splits)):
        sizes = np.diff(begins)
        if level == 0:
            places = np.arange(len(sizes)).reshape(-1, 1)
        within = np.concatenate([np.arange(n) for n in sizes]) if len(sizes) else np.zeros(0, np.int64)
        places = np.concatenate([np.repeat(places, sizes, 0), within.reshape(-1, 1)], 1)
    return places.astype(np.int64)


def _ragged_to_sparse(p: Any, splits: Sequence[Any], values: Any) -> Any:
    places = _ragged_places(splits)
    shape = [len(_host(splits[0])) - 1, *(int(c.max(initial=-1)) + 1 for c in places[:, 1:].T)]
    return Tensor(places), values, Tensor(np.array(shape, np.int64))


# Tensors of compressed rows, by their parts.


def _parts(work: str, attribute: str = "") -> Work:
    def compute(p: Any, indptr: Any, indices: Any, values: Any, shape: Any, *rest: Any) -> Any:
        found = getattr(ops, work)(CSRTensor(indptr, indices, values, shape_of(p.name, shape)), *rest)
        return getattr(found, attribute) if attribute else found

    return compute


SPARSE: dict[str, Work] = {
    "COO2CSR": lambda p, rows, height: ops.coo2csr(rows, height),
    "CSR2COO": lambda p, indptr, count: ops.csr2coo(indptr, count),
    "CSRDiv": _parts("csr_div", "values"),
    "CSRGather": lambda p, indptr, indices, dense, shape: ops.csr_gather(indptr, indices, dense, shape),
    "CSRMM": _parts("csr_mm"),
    "CSRMV": _parts("csr_mv"),
    "CSRMul": _parts("csr_mul", "values"),
    "CSRReduceSum": _parts("csr_reduce_sum"),
    "CSRSparseMatrixToDense": _matrix_to_dense,
    "CSRSparseMatrixToSparseTensor": _matrix_to_sparse,
    "DenseToCSRSparseMatrix": _dense_to_matrix,
    "DenseToDenseSetOperation": _dense_sets,
    "DenseToSparseSetOperation": _mixed_sets,
    "RaggedTensorToSparse": _ragged_to_sparse,
    "SetSize": _set_size,
    "SparseAdd": _add,
    "SparseAddmm": _addmm,
    "SparseConcat": _concat,
    "SparseCountSparseOutput": _count_output,
    "SparseDenseCwiseAdd": _elementwise(lambda x, y: x + y),
    "SparseDenseCwiseDiv": _elementwise(lambda x, y: x / y),
    "SparseDenseCwiseMul": _elementwise(lambda x, y: x * y),
    "SparseFillEmptyRows": _fill_empty_rows,
    "SparseMatrixAdd": _matrix_add,
    "SparseMatrixMatMul": _matrix_mat_mul,
    "SparseMatrixNNZ": _matrix_count,
    "SparseMatrixSoftmax": _matrix_softmax,
    "SparseMatrixSparseMatMul": _matrix_matrix,
    "SparseMatrixTranspose": _matrix_transposed,
    "SparseReorder": _reorder,
    "SparseReshape": _reshape,
    "SparseSegmentMean": _segments("mean"),
    "SparseSegmentMeanWithNumSegments": _segments("mean"),
    "SparseSegmentSqrtN": _segments("sqrt"),
    "SparseSegmentSqrtNWithNumSegments": _segments("sqrt"),
    "SparseSegmentSum": _segments("sum"),
    "SparseSegmentSumWithNumSegments": _segments("sum"),
    "SparseSlice": _slice,
    "SparseSoftmax": lambda p, indices, values, shape: _softmaxed(_host(indices), values, _host(shape)),
    "SparseSparseMaximum": _extreme(ops.maximum),
    "SparseSparseMinimum": _extreme(ops.minimum),
    "SparseSplit": _split,
    "SparseTensorToCSRSparseMatrix": _sparse_to_matrix,
    "SparseToDenseV2": _to_dense,
    "Sspaddmm": _sspaddmm,
}
