"""Row tensors, sparse tensors made of their parts and taken apart, and means of chosen rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import ShapeError
from mycel._src.foundation.log import logger
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops._operands import cast_index, operand, operands, reshaped, run, wide
from mycel.ops.gather_scatter import tensor_scatter_add
from mycel.ops.sparse.sparse_matrices import check_shapes
from mycel.ops.sparse.tensors import COOTensor, CSRTensor, RowTensor, differ

__all__ = [
    "coo_tensor_get_dense_shape",
    "coo_tensor_get_indices",
    "coo_tensor_get_values",
    "csr_tensor_get_dense_shape",
    "csr_tensor_get_indices",
    "csr_tensor_get_indptr",
    "csr_tensor_get_values",
    "make_coo_tensor",
    "make_csr_tensor",
    "make_row_tensor",
    "make_row_tensor_inner",
    "make_sparse_tensor",
    "row_tensor_add",
    "row_tensor_get_dense_shape",
    "row_tensor_get_indices",
    "row_tensor_get_values",
    "sparse_segment_mean",
]


def make_coo_tensor(indices: Any, values: Any, dense_shape: Any) -> COOTensor:
    """Return `COOTensor(indices, values, dense_shape)`.

    >>> import mycel as ms
    >>> ms.ops.make_coo_tensor(ms.Tensor([[0, 1]]), ms.Tensor([3.0]), (1, 2)).to_dense().tolist()
    [[0.0, 3.0]]
    """
    return COOTensor(indices, values, dense_shape)


def make_csr_tensor(indptr: Any, indices: Any, values: Any, dense_shape: Any) -> CSRTensor:
    """Return `CSRTensor(indptr, indices, values, dense_shape)`.

    Args:
        indptr (Tensor): The row pointers, (rows + 1,).
        indices (Tensor): The columns of the values.
        values (Tensor): The values.
        dense_shape (tuple[int, ...]): The shape.

    Returns:
        CSRTensor: The tensor.

    Examples:
        >>> import mycel as ms
        >>> indptr, indices = ms.Tensor([0, 1]), ms.Tensor([1])
        >>> ms.ops.make_csr_tensor(indptr, indices, ms.Tensor([3.0]), (1, 2)).to_dense().tolist()
        [[0.0, 3.0]]
    """
    return CSRTensor(indptr, indices, values, dense_shape)


def make_sparse_tensor(indices: Any, values: Any, dense_shape: Any) -> COOTensor:
    """Return `make_coo_tensor` of the arguments, after a warning: this name is deprecated.

    >>> import mycel as ms
    >>> ms.ops.make_sparse_tensor(ms.Tensor([[0, 1]]), ms.Tensor([3.0]), (1, 2)).shape
    (1, 2)
    """
    logger.warning("make_sparse_tensor is deprecated; use make_coo_tensor instead")
    return make_coo_tensor(indices, values, dense_shape)


def make_row_tensor_inner(indices: Any, values: Any, dense_shape: Any) -> RowTensor:
    """Return a `RowTensor` of these parts.

    >>> import mycel as ms
    >>> ms.ops.make_row_tensor_inner(ms.Tensor([0]), ms.Tensor([[1.0, 2.0]]), (3, 2)).dense_shape
    (3, 2)
    """
    made = object.__new__(RowTensor)
    made._fill(indices, values, dense_shape)
    return made


def make_row_tensor(indices: Any, values: Any, dense_shape: Any) -> RowTensor:
    """Return a `RowTensor` of these parts, after a warning: the class is deprecated.

    >>> import mycel as ms
    >>> ms.ops.make_row_tensor(ms.Tensor([0]), ms.Tensor([[1.0, 2.0]]), (3, 2)).dense_shape
    (3, 2)
    """
    logger.warning("make_row_tensor is deprecated; use a Tensor, or COOTensor for a sparse matrix")
    return make_row_tensor_inner(indices, values, dense_shape)


def _getter(name: str, kind: type, part: str) -> Callable[[Any], Any]:
    """Return the function `name` that returns a part of a sparse tensor of a class."""

    def call(x: Any) -> Any:
        return getattr(arguments.instance(name, "x", x, kind), part)

    call.__name__ = call.__qualname__ = name
    sample = "ms.Tensor([[0.0, 2.0]]).to_csr()" if kind is CSRTensor else "ms.Tensor([[0.0, 2.0]]).to_coo()"
    if kind is RowTensor:
        sample = "ms.ops.make_row_tensor_inner(ms.Tensor([1]), ms.Tensor([[0.0, 2.0]]), (2, 2))"
    call.__doc__ = f"""Return `x.{part}` of a {kind.__name__}.

    Raises TypeError for any other argument.

    >>> import mycel as ms
    >>> x = {sample}
    >>> ms.ops.{name}(x) is x.{part}
    True
    """
    return call


coo_tensor_get_dense_shape = _getter("coo_tensor_get_dense_shape", COOTensor, "shape")
coo_tensor_get_indices = _getter("coo_tensor_get_indices", COOTensor, "indices")
coo_tensor_get_values = _getter("coo_tensor_get_values", COOTensor, "values")
csr_tensor_get_dense_shape = _getter("csr_tensor_get_dense_shape", CSRTensor, "shape")
csr_tensor_get_indices = _getter("csr_tensor_get_indices", CSRTensor, "indices")
csr_tensor_get_indptr = _getter("csr_tensor_get_indptr", CSRTensor, "indptr")
csr_tensor_get_values = _getter("csr_tensor_get_values", CSRTensor, "values")
row_tensor_get_dense_shape = _getter("row_tensor_get_dense_shape", RowTensor, "shape")
row_tensor_get_indices = _getter("row_tensor_get_indices", RowTensor, "indices")
row_tensor_get_values = _getter("row_tensor_get_values", RowTensor, "values")


def row_tensor_add(x: Any, y: Any) -> Any:
    """Return the sum of a row tensor and another one, or a tensor of its shape.

    The rows of another row tensor are put after the own ones; a tensor gives a tensor.

    >>> import mycel as ms
    >>> x = ms.ops.make_row_tensor_inner(ms.Tensor([1]), ms.Tensor([[1.0, 2.0]]), (2, 2))
    >>> ms.ops.row_tensor_add(x, ms.Tensor([[1.0, 1.0], [1.0, 1.0]])).tolist()
    [[1.0, 1.0], [2.0, 3.0]]
    """
    a = arguments.instance("row_tensor_add", "x", x, RowTensor)
    arguments.instance("row_tensor_add", "y", y, (RowTensor, Tensor))
    check_shapes("row_tensor_add", a, y)
    if isinstance(y, Tensor):
        values, dense = operands("row_tensor_add", a.values, y)
        return tensor_scatter_add(dense, reshaped(a.indices, (*a.indices.shape, 1)), values)
    v, w = operands("row_tensor_add", a.values, y.values)
    rows = operands("row_tensor_add", a.indices, y.indices)
    return make_row_tensor_inner(run(S.CONCAT, *rows, axis=0), run(S.CONCAT, v, w, axis=0), a.shape)


def sparse_segment_mean(x: Any, indices: Any, segment_ids: Any) -> Tensor:
    """Return for each segment the mean of the rows of `x` that `indices` names for it, 0 for a
    segment without rows.

    `indices` and the sorted `segment_ids` are (N,) integers. The number of segments is the last of
    `segment_ids` + 1, so its value is needed.

    >>> import mycel as ms
    >>> x = ms.Tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    >>> ms.ops.sparse_segment_mean(x, ms.Tensor([0, 1, 2]), ms.Tensor([0, 0, 1])).tolist()
    [[1.0, 2.0], [4.0, 5.0]]
    """
    rows, places = operand("sparse_segment_mean", x), cast_index("sparse_segment_mean", indices)
    numbers = cast_index("sparse_segment_mean", segment_ids)
    if rows.ndim < 1 or places.ndim != 1 or differ(numbers.shape, places.shape):
        raise ShapeError(
            f"sparse_segment_mean: takes x of at least 1 dimension and (N,) indices and segment_ids, not {rows._type}, "
            f"{places._type} and {numbers._type}"
        )
    if not rows.dtype.is_floating:
        raise TypeError(f"sparse_segment_mean: x must be of a floating type, not {rows.dtype.name}")
    given = numbers.asnumpy()
    if (np.diff(given) < 0).any() or (given < 0).any():
        raise ValueError(
            f"sparse_segment_mean: segment_ids must be sorted and not negative, got {given.tolist()!s:.60}"
        )
    count = int(given[-1]) + 1 if given.size else 0
    sums = run(I.take_add, wide(run(I.take, rows, places, axis=0)), numbers, axis=0, size=count)
    shares = np.maximum(np.bincount(given, minlength=count), 1).reshape(-1, *[1] * (rows.ndim - 1))
    return cast(sums / Tensor(shares).astype(sums.dtype), rows.dtype)
