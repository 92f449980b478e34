"""Operations as objects over sparse matrices given by their parts: indices (N, 2), values (N,) and
a shape.
"""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.mask_indices import flat_positions
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops import gather_scatter
from mycel.ops._operands import (
    cast_index,
    constant_like,
    operand,
    operands,
    permuted,
    run,
    shape_of,
)
from mycel.ops.complex_numbers import conj
from mycel.ops.creation import zeros
from mycel.ops.operations.inputs import SIZES, WHOLE
from mycel.ops.operations.primitive import Primitive, operations_of
from mycel.ops.sparse import sparse_matrices as sparse
from mycel.ops.sparse.tensors import differ

__all__: list[str] = []


class Coalesce(Primitive, compute=sparse.coalesce): ...


class SparseGatherV2(Primitive, compute=gather_scatter.gather, inputs=(Tensor, Tensor, WHOLE)): ...


def _parts(name: str, indices: Any, values: Any, shape: Any) -> tuple[Tensor, Tensor, tuple[Any, ...]]:
    """Return the indices, values and shape of a sparse tensor.

    Raises ShapeError where they do not fit.
    """
    places, held, sizes = cast_index(name, indices), operand(name, values), shape_of(name, shape)
    if held.ndim != 1 or differ(places.shape, (held.shape[0], len(sizes))):
        raise ShapeError(
            f"{name}: takes indices (N, {len(sizes)}) and values (N,) for shape {sizes}, not {places._type} and "
            f"{held._type}"
        )
    return places, held, sizes


def sparse_to_dense(indices: Any, values: Any, sparse_shape: Any) -> Tensor:
    """Return the dense tensor of a sparse one.

    Of values at one place the last stays, as in MindSpore (`COOTensor.to_dense` adds them up).

    >>> import mycel as ms
    >>> ms.ops.SparseToDense()(ms.Tensor([[0, 1]]), ms.Tensor([3.0]), (1, 2)).tolist()
    [[0.0, 3.0]]
    """
    places, held, sizes = _parts("SparseToDense", indices, values, sparse_shape)
    return run(I.scatter_nd, zeros(sizes, held.dtype), places, held, mode="set", bounds="front")


def sparse_dense_add(x1_indices: Any, x1_values: Any, x1_shape: Any, x2: Any) -> Tensor:
    """Return the sum of a sparse and a dense tensor of one shape, which is dense.

    `x1_indices`, `x1_values` and `x1_shape` are the parts of the sparse tensor, and `x2` is the
    dense one.

    >>> import mycel as ms
    >>> indices, dense = ms.Tensor([[0, 1]]), ms.Tensor([[1.0, 1.0]])
    >>> ms.ops.SparseTensorDenseAdd()(indices, ms.Tensor([3.0]), (1, 2), dense).tolist()
    [[1.0, 4.0]]
    """
    places, held, sizes = _parts("SparseTensorDenseAdd", x1_indices, x1_values, x1_shape)
    values, dense = operands("SparseTensorDenseAdd", held, x2)
    if differ(dense.shape, sizes):
        raise ShapeError(f"SparseTensorDenseAdd: x1_shape {sizes} and x2 {dense._type} must be the same")
    return gather_scatter.tensor_scatter_add(dense, places, values)


def sparse_dense_matmul(
    indices: Any, values: Any, sparse_shape: Any, dense: Any, adjoint_st: bool = False, adjoint_dt: bool = False
) -> Tensor:
    """Return a sparse matrix times a dense one.

    `indices`, `values` and `sparse_shape` are the parts of the sparse matrix. `adjoint_st`
    transposes and conjugates it, `adjoint_dt` the dense one. The work is that of the stored values.

    >>> import mycel as ms
    >>> x = ms.Tensor([[1.0], [5.0]])
    >>> ms.ops.SparseTensorDenseMatmul()(ms.Tensor([[0, 1]]), ms.Tensor([3.0]), (1, 2), x).tolist()
    [[15.0]]
    """
    name = "SparseTensorDenseMatmul"
    places, held, sizes = _parts(name, indices, values, sparse_shape)
    if len(sizes) != 2:
        raise ShapeError(f"{name}: takes a sparse matrix, not one of shape {sizes}")
    y = operand(name, dense)
    if adjoint_dt and y.ndim == 2:
        y = permuted(conj(y), (1, 0))
    rows, columns = sparse.column_of(places, 0), sparse.column_of(places, 1)
    return sparse.product(name, sizes, held, rows, columns, y, adjoint=adjoint_st)


def sparse_slice(indices: Any, values: Any, shape: Any, start: Any, size: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Return the part of a sparse tensor that begins at `start` and has at most `size`: indices
    from its start, values and shape.

    The part ends where the tensor does. How many values it has is decided by data; `shape`, `start`
    and `size` are vectors of as many numbers as there are dimensions. `indices` and `values` are
    those of the tensor.

    >>> import mycel as ms
    >>> ends = ms.Tensor([3, 4]), ms.Tensor([0, 1]), ms.Tensor([2, 9])
    >>> found = ms.ops.SparseSlice()(ms.Tensor([[0, 1], [2, 2]]), ms.Tensor([5.0, 6.0]), *ends)
    >>> [t.tolist() for t in found]
    [[[0, 0]], [5.0], [2, 3]]
    """
    places, held = cast(cast_index("SparseSlice", indices), D.int64), operand("SparseSlice", values)
    whole, first, most = [cast(cast_index("SparseSlice", v), D.int64) for v in (shape, start, size)]
    if (
        places.ndim != 2
        or held.ndim != 1
        or differ(places.shape[0], held.shape[0])
        or any(differ(v.shape, (places.shape[1],)) for v in (whole, first, most))
    ):
        raise ShapeError(
            f"SparseSlice: takes indices (N, D), values (N,) and vectors of D numbers, not {places._type}, "
            f"{held._type} and "
            f"{whole._type}, {first._type}, {most._type}"
        )
    left = run(E.maximum, run(E.minimum, most, whole - first), constant_like(0, most))
    moved = places - first
    inside = run(E.logical_and, run(E.ge, moved, constant_like(0, moved)), run(E.lt, moved, left))
    kept = flat_positions(run(R.reduce_all, inside, axes=(1,), keepdims=False))
    return run(I.take, moved, kept, axis=0), run(I.take, held, kept, axis=0), left


class SparseToDense(Primitive, compute=sparse_to_dense, inputs=(Tensor, Tensor, SIZES)):
    """The dense tensor of a sparse one.

    Of values at one place the last stays, as in MindSpore (`COOTensor.to_dense` adds them up).

    >>> import mycel as ms
    >>> ms.ops.SparseToDense()(ms.Tensor([[0, 1]]), ms.Tensor([3.0]), (1, 2)).tolist()
    [[0.0, 3.0]]
    """


class SparseTensorDenseAdd(Primitive, compute=sparse_dense_add, inputs=(Tensor, Tensor, (tuple, Tensor))):
    """The sum of a sparse and a dense tensor of one shape, which is dense.

    >>> import mycel as ms
    >>> indices, dense = ms.Tensor([[0, 1]]), ms.Tensor([[1.0, 1.0]])
    >>> ms.ops.SparseTensorDenseAdd()(indices, ms.Tensor([3.0]), (1, 2), dense).tolist()
    [[1.0, 4.0]]
    """


class SparseSlice(Primitive, compute=sparse_slice):
    """The part of a sparse tensor that begins at `start` and has at most `size`: indices from its
    start, values and shape.

    The part ends where the tensor does. How many values it has is decided by data; `shape`, `start`
    and `size` are vectors of as many numbers as there are dimensions.

    >>> import mycel as ms
    >>> ends = ms.Tensor([3, 4]), ms.Tensor([0, 1]), ms.Tensor([2, 9])
    >>> found = ms.ops.SparseSlice()(ms.Tensor([[0, 1], [2, 2]]), ms.Tensor([5.0, 6.0]), *ends)
    >>> [t.tolist() for t in found]
    [[[0, 0]], [5.0], [2, 3]]
    """


class SparseTensorDenseMatmul(
    Primitive,
    compute=lambda p, i, v, shape, y: sparse_dense_matmul(i, v, shape, y, p.adjoint_st, p.adjoint_dt),
    adjoint_st=False,
    adjoint_dt=False,
    inputs=(Tensor, Tensor, SIZES),
):
    """A sparse matrix times a dense one.

    `adjoint_st` transposes and conjugates the sparse one, `adjoint_dt` the dense one. The work is
    that of the stored values.

    >>> import mycel as ms
    >>> x = ms.Tensor([[1.0], [5.0]])
    >>> ms.ops.SparseTensorDenseMatmul()(ms.Tensor([[0, 1]]), ms.Tensor([3.0]), (1, 2), x).tolist()
    [[15.0]]
    """


__all__.extend(operations_of(globals()))
