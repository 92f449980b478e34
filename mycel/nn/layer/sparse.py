"""Layers over sparse matrices."""

from __future__ import annotations

from typing import Any

from mycel._src.foundation import arguments
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor
from mycel.nn.layer.argument_free import Plain
from mycel.ops.operations.sparse import sparse_dense_matmul, sparse_to_dense
from mycel.ops.sparse.tensors import COOTensor

__all__ = ["SparseTensorDenseMatmul", "SparseToDense"]


class SparseToDense(Plain):
    """The tensor of a COOTensor; of several values at one position the last is kept.

    Raises TypeError for an argument that is no COOTensor.

    >>> import mycel as ms
    >>> ms.nn.SparseToDense()(ms.COOTensor(ms.Tensor([[0, 1]]), ms.Tensor([3.0]), (1, 2))).tolist()
    [[0.0, 3.0]]
    """

    def construct(self, coo_tensor: Any) -> Tensor:
        arguments.instance("SparseToDense", "coo_tensor", coo_tensor, COOTensor)
        return sparse_to_dense(coo_tensor.indices, coo_tensor.values, coo_tensor.shape)


class SparseTensorDenseMatmul(Cell):
    """The product of a sparse matrix, given as indices (N, 2), values (N,) and a shape of two
    sizes, and a dense matrix.

    `adjoint_st` transposes and conjugates the sparse matrix, `adjoint_dt` the dense one. Raises
    ShapeError where the two do not fit.

    >>> import mycel as ms
    >>> x = ms.Tensor([[1.0], [5.0]])
    >>> ms.nn.SparseTensorDenseMatmul()(ms.Tensor([[0, 1]]), ms.Tensor([3.0]), (1, 2), x).tolist()
    [[15.0]]
    """

    def __init__(self, adjoint_st: bool = False, adjoint_dt: bool = False) -> None:
        super().__init__()
        for word, value in (("adjoint_st", adjoint_st), ("adjoint_dt", adjoint_dt)):
            arguments.flag("SparseTensorDenseMatmul", word, value)
        self.adjoint_st, self.adjoint_dt = adjoint_st, adjoint_dt

    def construct(self, indices: Any, values: Any, sparse_shape: Any, dense: Any) -> Tensor:
        """Return the product of the sparse and the dense matrix.

        Args:
            indices (Tensor): The positions of the stored values, integers (N, 2).
            values (Tensor): The stored values, (N,).
            sparse_shape (tuple[int, int] | list[int] | Tensor): The rows and columns of the sparse
                matrix, two sizes.
            dense (Tensor): The dense matrix, which has as many rows as the sparse one has columns,
                after those are transposed that `adjoint_st` and `adjoint_dt` name.

        Returns:
            Tensor: (rows of the sparse matrix, columns of the dense one).

        Raises:
            ShapeError: If the two matrices do not fit.

        Examples:
            >>> import mycel as ms
            >>> product, x = ms.nn.SparseTensorDenseMatmul(), ms.Tensor([[1.0], [5.0]])
            >>> product.construct(ms.Tensor([[0, 1]]), ms.Tensor([3.0]), (1, 2), x).tolist()
            [[15.0]]
        """
        return sparse_dense_matmul(indices, values, sparse_shape, dense, self.adjoint_st, self.adjoint_dt)
