"""Diagonals, triangles and rotations as layers, which MindSpore keeps for older programs."""

from __future__ import annotations

from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor
from mycel.nn.layer.argument_free import Plain
from mycel.ops._operands import input_of

__all__ = ["MatrixDiag", "MatrixDiagPart", "MatrixSetDiag", "Roll", "Tril", "Triu"]


class MatrixDiag(Cell):
    """Square matrices (..., n, n) with the vectors (..., n) on their diagonals.

    Raises ValueError for a scalar.

    >>> import mycel as ms
    >>> ms.nn.MatrixDiag()(ms.Tensor([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """

    def construct(self, input_x: Tensor) -> Tensor:
        """Return the matrices."""
        input_x = input_of(self, input_x)
        if input_x.ndim < 1:
            raise ValueError("MatrixDiag: the input must have one axis at least, not be a scalar")
        return ops.matrix_diag(input_x)


def _matrices(owner: str, x: Tensor) -> None:
    if x.ndim < 2:
        raise ValueError(f"{owner}: the input must be matrices (..., m, n), not of shape {x.shape}")


class MatrixDiagPart(Cell):
    """The diagonals (..., min(m, n)) of matrices (..., m, n); a vector raises ValueError.

    >>> import mycel as ms
    >>> ms.nn.MatrixDiagPart()(ms.Tensor([[1, 2, 3], [4, 5, 6]])).tolist()
    [1, 5]
    """

    def construct(self, input_x: Tensor) -> Tensor:
        """Return the diagonals."""
        _matrices("MatrixDiagPart", input_x)
        return ops.diagonal(input_x, 0, -2, -1)


class MatrixSetDiag(Plain):
    """Matrices (..., m, n) with other numbers, (..., min(m, n)), on their diagonals.

    Raises ValueError for other shapes.

    >>> import mycel as ms
    >>> ms.nn.MatrixSetDiag()(ms.Tensor([[1, 2], [3, 4]]), ms.Tensor([8, 9])).tolist()
    [[8, 2], [3, 9]]
    """

    def construct(self, input_x: Tensor, diagonal: Tensor) -> Tensor:
        """Return the matrices."""
        input_x = input_of(self, input_x)
        diagonal = input_of(self, diagonal)
        _matrices("MatrixSetDiag", input_x)
        *batch, rows, columns = input_x.shape
        if tuple(diagonal.shape) != (*batch, min(rows, columns)):
            raise ValueError(
                f"MatrixSetDiag: the diagonal must have shape {(*batch, min(rows, columns))} for matrices of shape "
                f"{input_x.shape}, "
                f"not {diagonal.shape}"
            )
        return ops.matrix_set_diag(input_x, diagonal)


class Tril(Cell):
    """The triangle on and below the diagonal `k` of the last two axes, with zeros above.

    Raises ValueError for a vector.

    >>> import mycel as ms
    >>> ms.nn.Tril()(ms.Tensor([[1, 2], [3, 4]])).tolist()
    [[1, 0], [3, 4]]
    """

    def construct(self, x: Tensor, k: int = 0) -> Tensor:
        """Return the triangle."""
        _matrices("Tril", x)
        return ops.tril(x, arguments.integer("Tril", "k", k))


class Triu(Cell):
    """The triangle on and above the diagonal `k` of the last two axes, with zeros below.

    Raises ValueError for a vector.

    >>> import mycel as ms
    >>> ms.nn.Triu()(ms.Tensor([[1, 2], [3, 4]])).tolist()
    [[1, 2], [0, 4]]
    """

    def construct(self, x: Tensor, k: int = 0) -> Tensor:
        """Return the triangle."""
        _matrices("Triu", x)
        return ops.triu(x, arguments.integer("Triu", "k", k))


class Roll(Cell):
    """Elements moved `shift` positions along `axis`, where those pushed out at one end enter at the
    other.

    `shift` and `axis` are ints, or tuples of the same length.

    >>> import mycel as ms
    >>> ms.nn.Roll(1, 0)(ms.Tensor([1, 2, 3])).tolist()
    [3, 1, 2]
    """

    def __init__(self, shift: Any, axis: Any) -> None:
        super().__init__()
        self.shift, self.axis = (
            tuple(arguments.integer("Roll", f"each of {name}", v) for v in given)
            if isinstance(given, (tuple, list))
            else (arguments.integer("Roll", name, given),)
            for name, given in (("shift", shift), ("axis", axis))
        )
        if len(self.shift) != len(self.axis):
            raise ValueError(
                f"Roll: shift and axis must have as many elements as each other, not {self.shift} and {self.axis}"
            )

    def construct(self, input_x: Tensor) -> Tensor:
        """Return the rotated tensor."""
        return ops.roll(input_x, self.shift, self.axis)
