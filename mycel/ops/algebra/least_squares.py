"""Least squares with a penalty, and products with tridiagonal matrices."""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops._operands import constant_like, floating, iota, run, select, take_slice
from mycel.ops.algebra.decompositions import cholesky, qr
from mycel.ops.algebra.linalg import matmul
from mycel.ops.algebra.linear_systems import cholesky_solve
from mycel.ops.algebra.matrices import adjoint_of, matrices, swap, triangular
from mycel.ops.creation import eye

__all__ = ["matrix_solve_ls", "tridiagonal_product"]


def matrix_solve_ls(name: str, matrix: Any, rhs: Any, penalty: float = 0.0) -> Tensor:
    """Return the x (.., n, k) that minimises ||A x - b||^2 + `penalty` ||x||^2.

    A is `matrix` (.., m, n) of full rank, and b is `rhs` (.., m, k). `name` is the operation, for
    errors. Without a penalty the solution is by QR, and the shortest x where there are more columns
    than rows; with one it is by Cholesky's decomposition of the smaller of A^H A and A A^H.

    >>> import mycel as ms
    >>> from mycel.ops.algebra.least_squares import matrix_solve_ls
    >>> matrix_solve_ls("lstsq", ms.Tensor([[1.0], [1.0]]), ms.Tensor([[1.0], [3.0]]), 2.0).tolist()
    [[1.0]]
    """
    a, b = matrices(name, matrix, square=False), matrices(name, rhs, square=False)
    if a.shape[-2] != b.shape[-2]:
        raise ShapeError(f"{name}: the matrices {a.shape} and {b.shape} must have as many rows each")
    if penalty < 0:
        raise ValueError(f"{name}: the penalty must not be negative, not {penalty}")
    b = cast(b, a.dtype)
    tall = a.shape[-2] >= a.shape[-1]
    adjoint = adjoint_of(a)
    if not penalty:
        q, r = qr(a if tall else adjoint)
        if tall:
            return triangular(r, matmul(adjoint_of(q), b), False)
        return matmul(q, triangular(r, b, False, "C"))
    least = a.shape[-1] if tall else a.shape[-2]
    square = matmul(adjoint, a) if tall else matmul(a, adjoint)
    factor = cholesky(run(E.add, square, cast(eye(least, dtype=a.dtype) * penalty, a.dtype)))
    if tall:
        return cholesky_solve(matmul(adjoint, b), factor)
    return matmul(adjoint, cholesky_solve(b, factor))


def tridiagonal_product(superdiag: Any, maindiag: Any, subdiag: Any, rhs: Any) -> Tensor:
    """Return the product of tridiagonal matrices with `rhs` (.., m, n).

    The diagonals `superdiag`, `maindiag` and `subdiag` are (.., 1, m) each; the last element of the
    upper and the first of the lower do not count.

    >>> import mycel as ms
    >>> from mycel.ops.algebra.least_squares import tridiagonal_product
    >>> d = ms.Tensor([[1.0, 2.0]])
    >>> tridiagonal_product(d, d, d, ms.Tensor([[1.0], [1.0]])).tolist()
    [[2.0], [4.0]]
    """
    name = "TridiagonalMatMul"
    x = floating(name, rhs)
    above, main, below = (floating(name, d) for d in (superdiag, maindiag, subdiag))
    rows: Any = x.shape[-2] if x.ndim > 1 else 0
    for d in (above, main, below):
        if d.shape != (*x.shape[:-2], 1, rows):
            raise ShapeError(f"{name}: diagonals must be (.., 1, {rows}) for a right side {x._type}, not {d._type}")
    columns = [swap(d) for d in (above, main, below)]
    axis = x.ndim - 2
    around = tuple(1 if d == axis else 0 for d in range(x.ndim))
    wide = run(S.PAD, x, constant_like(0, x), low=around, high=around, interior=(0,) * x.ndim)
    after, before = take_slice(wide, axis, 2, rows + 2), take_slice(wide, axis, 0, rows)
    place = iota((rows, 1), 0, D.int32)
    up, down = select(place < rows - 1, columns[0], 0), select(place > 0, columns[2], 0)
    return up * after + columns[1] * x + down * before
