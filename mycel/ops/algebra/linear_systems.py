"""Systems of linear equations, inverses and determinants.

LAPACK does the work, and every function has derivatives of any order.
"""

from __future__ import annotations

import math
from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims.linear_algebra.determinant import determinant
from mycel._src.compiler.prims.linear_algebra.pseudo_inverse import pseudo_inverse
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast
from mycel.ops._operands import broadcast, constant_like, floating, iota, number_of, reshaped, run, select
from mycel.ops.algebra.decompositions import qr
from mycel.ops.algebra.linalg import matmul
from mycel.ops.algebra.matrices import (
    adjoint_of,
    broadcast_lead,
    decomposed,
    diagonal_of,
    matrices,
    order_of,
    ordered_rows,
    solve,
    triangular,
)
from mycel.ops.complex_numbers import absolute_value, direction, real
from mycel.ops.creation import eye

__all__ = [
    "cholesky_inverse",
    "cholesky_solve",
    "det",
    "inverse",
    "log_matrix_determinant",
    "logdet",
    "lstsq",
    "lu_solve",
    "matrix_determinant",
    "matrix_solve",
    "pinv",
    "slogdet",
]


def triangular_solve(
    b: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the solution x of the triangular system A x = b, or of A^T x = b with `transpose`, and
    A.

    With `unitriangular` the diagonal of `A` counts as ones.

    Args:
        b (Tensor): (..., n, k).
        A (Tensor): (..., n, n) is upper triangular, or lower without `upper`.
        upper (bool): Whether `A` is an upper triangle. Default: True.
        transpose (bool): Whether A^T is meant. Default: False.
        unitriangular (bool): Whether the diagonal counts as ones. Default: False.

    Returns:
        tuple[Tensor, Tensor]: The solution, (..., n, k), and `A`.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.triangular_solve(ms.Tensor([[4.0]]), ms.Tensor([[2.0]]))[0].tolist()
        [[2.0]]
    """
    name = "triangular_solve"
    matrix, right = matrices(name, A), matrices(name, b, square=False)
    lower, turned = not arguments.flag(name, "upper", upper), arguments.flag(name, "transpose", transpose)
    unit = arguments.flag(name, "unitriangular", unitriangular)
    return triangular(matrix, right, lower, "T" if turned else "N", unit), matrix


def cholesky_solve(input: Any, input2: Any, upper: bool = False) -> Tensor:
    """Return the solution x of A x = `input`, where `input2` is the Cholesky factor of A.

    The factor is lower triangular, or upper triangular if `upper`.

    >>> import mycel as ms
    >>> ms.ops.cholesky_solve(ms.Tensor([[8.0]]), ms.Tensor([[2.0]])).tolist()
    [[2.0]]
    """
    arguments.flag("cholesky_solve", "upper", upper)
    factor, right = matrices("cholesky_solve", input2), matrices("cholesky_solve", input, square=False)
    first = triangular(factor, right, not upper, "C" if upper else "N")
    return triangular(factor, first, not upper, "N" if upper else "C")


def cholesky_inverse(input_x: Any, upper: bool = False) -> Tensor:
    """Return the inverse of A, where `input_x` is the Cholesky factor of A.

    The factor is lower triangular, or upper triangular if `upper`.

    >>> import mycel as ms
    >>> ms.ops.cholesky_inverse(ms.Tensor([[2.0]])).tolist()
    [[0.25]]
    """
    arguments.flag("cholesky_inverse", "upper", upper)
    factor = matrices("cholesky_inverse", input_x)
    return cholesky_solve(broadcast(eye(factor.shape[-1], dtype=factor.dtype), tuple(factor.shape)), factor, upper)


def lu_solve(b: Any, LU_data: Any, LU_pivots: Any) -> Tensor:
    """Return the solution x of A x = `b` from the LU decomposition of A.

    `LU_data` holds both triangles, and `LU_pivots` the row exchanges, counted from 1.

    >>> import mycel as ms
    >>> ms.ops.lu_solve(ms.Tensor([[4.0]]), ms.Tensor([[2.0]]), ms.Tensor([1], ms.int32)).tolist()
    [[2.0]]
    """
    packed, right = matrices("lu_solve", LU_data), matrices("lu_solve", b, square=False)
    order = order_of("lu_solve", LU_pivots, packed.shape[-1])
    lead = broadcast_lead(packed, right)
    rows = ordered_rows(broadcast(right, (*lead, *right.shape[-2:])), broadcast(order, (*lead, order.shape[-1])))
    return triangular(packed, triangular(packed, rows, True, unit=True), False)


def matrix_solve(matrix: Any, rhs: Any, adjoint: bool = False) -> Tensor:
    """Return the solution x of A x = `rhs` for square matrices `matrix` = A, or of A^H x = `rhs`
    with `adjoint`.

    >>> import mycel as ms
    >>> ms.ops.matrix_solve(ms.Tensor([[2.0]]), ms.Tensor([[4.0]])).tolist()
    [[2.0]]
    """
    arguments.flag("matrix_solve", "adjoint", adjoint)
    a, b = matrices("matrix_solve", matrix), matrices("matrix_solve", rhs, square=False)
    if a.shape[-1] != b.shape[-2]:
        raise ShapeError(f"matrix_solve: the right side of shape {b.shape} does not fit matrices of shape {a.shape}")
    return solve(adjoint_of(a) if adjoint else a, b)


def inverse(input: Any) -> Tensor:
    """Return the inverses of square matrices; singular ones give infinities or NaN.

    >>> import mycel as ms
    >>> ms.ops.inverse(ms.Tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    a = matrices("inverse", input)
    return solve(a, broadcast(eye(a.shape[-1], dtype=a.dtype), tuple(a.shape)))


def pinv(x: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """Return the Moore-Penrose inverse of matrices.

    Singular values of at most max(atol, rtol * the largest) count as 0, in derivatives as well.

    Args:
        x (Tensor): (..., m, n).
        atol (float | None): The singular value at or below which one counts as 0. Default: None.
        rtol (float | None): The same relative to the largest; None for max(m, n) times the type's
            precision, or for 0 where only `atol` is given. Default: None.
        hermitian (bool): Whether the matrices are Hermitian: then the eigenvalues are used.
            Default: False.

    Returns:
        Tensor: (..., n, m).

    Examples:
        >>> import mycel as ms
        >>> ms.ops.pinv(ms.Tensor([[2.0], [0.0]])).tolist()
        [[0.5, 0.0]]
    """
    arguments.flag("pinv", "hermitian", hermitian)
    a = matrices("pinv", x, square=bool(hermitian))
    kind = real(a).dtype
    given = {}
    for word, value in (("atol", atol), ("rtol", rtol)):
        if value is not None:
            number_of("pinv", word, value)
            found = cast(value, kind) if isinstance(value, Tensor) else as_tensor(value, kind)
            given[word] = broadcast(found, tuple(a.shape[:-2]))
    if rtol is None:
        digits = 2.0**-52 if kind is D.float64 else 2.0**-23
        usual = as_tensor(max(a.shape[-2:]) * digits if atol is None else 0.0, kind)
        given["rtol"] = broadcast(usual, tuple(a.shape[:-2]))
    none = broadcast(as_tensor(0.0, kind), tuple(a.shape[:-2]))
    return run(pseudo_inverse, a, given.get("atol", none), given["rtol"], hermitian=bool(hermitian))


def lstsq(input: Any, A: Any) -> Tensor:
    """Return the x that minimises ||`input` x - `A`||, and of several the shortest.

    `input` (m, n) has full rank, `A` is (m,) or (m, k); the result is (n, k).

    >>> import mycel as ms
    >>> ms.ops.lstsq(ms.Tensor([[1.0], [1.0]]), ms.Tensor([[1.0], [3.0]])).shape
    (1, 1)
    """
    a, b = matrices("lstsq", input, square=False), floating("lstsq", A)
    b = reshaped(b, (*b.shape, 1)) if b.ndim == 1 else b
    if a.ndim != 2 or b.ndim != 2 or a.shape[0] != b.shape[0]:
        raise ShapeError(f"lstsq: takes matrices of as many rows each, not of shapes {a.shape} and {b.shape}")
    if a.shape[0] >= a.shape[1]:
        q, r = qr(a)
        return triangular(r, matmul(adjoint_of(q), cast(b, a.dtype)), False)
    q, r = qr(adjoint_of(a))
    return matmul(q, triangular(r, cast(b, a.dtype), False, "C"))


def slogdet(input: Any) -> tuple[Tensor, Tensor]:
    """Return the sign of determinants (for complex matrices their direction) and the logarithm of
    their magnitude.

    Singular matrices give 0 and -inf.

    >>> import mycel as ms
    >>> [t.item() for t in ms.ops.slogdet(ms.Tensor([[0.0, 1.0], [1.0, 0.0]]))]
    [-1.0, 0.0]
    """
    packed, pivots, _ = decomposed(matrices("slogdet", input))
    values = diagonal_of(packed)
    last = (values.ndim - 1,)
    if values.dtype.is_complex:
        size, side = absolute_value(values), direction(values)
    else:
        size, side = run(E.abs_, values), run(E.sign, values)
    sign = run(E.mul, run(R.reduce_prod, side, axes=last, keepdims=False), _sign_of(pivots, side))
    return sign, run(R.reduce_sum, run(E.log, size), axes=last, keepdims=False)


def log_matrix_determinant(input: Any) -> tuple[Tensor, Tensor]:
    """Return the sign and the logarithm of the magnitude of determinants, as `slogdet`.

    >>> import mycel as ms
    >>> ms.ops.log_matrix_determinant(ms.Tensor([[2.0]]))[0].item()
    1.0
    """
    return slogdet(input)


def logdet(input: Any) -> Tensor:
    """Return the logarithm of determinants: NaN where a real one is negative, -inf where it is 0.

    >>> import mycel as ms
    >>> ms.ops.logdet(ms.Tensor([[1.0]])).item()
    0.0
    """
    sign, size = slogdet(input)
    if sign.dtype.is_complex:
        return run(E.add, cast(size, sign.dtype), run(E.log, sign))
    return select(run(E.lt, sign, constant_like(0, sign)), constant_like(math.nan, size), size)


def det(input: Any) -> Tensor:
    """Return the determinants of square matrices.

    The derivative is the matrix of cofactors, also where there is no inverse.

    >>> import mycel as ms
    >>> ms.ops.det(ms.Tensor([[2.0, 0.0], [0.0, 3.0]])).item()
    6.0
    """
    return run(determinant, matrices("det", input))


def matrix_determinant(input: Any) -> Tensor:
    """Return the determinants of square matrices, as `det`.

    >>> import mycel as ms
    >>> ms.ops.matrix_determinant(ms.Tensor([[2.0]])).item()
    2.0
    """
    return det(input)


def _sign_of(pivots: Tensor, like: Tensor) -> Tensor:
    """Return 1 where the number of row exchanges is even, else -1."""
    moved = run(E.ne, pivots, iota((pivots.shape[-1],), 0, pivots.dtype))
    count = run(R.reduce_sum, cast(moved, D.int32), axes=(pivots.ndim - 1,), keepdims=False)
    odd = run(E.eq, run(E.mod, count, constant_like(2, count)), constant_like(1, count))
    return select(odd, constant_like(-1, like), constant_like(1, like))
