"""Decompositions of matrices: Cholesky, QR, LU, singular values, eigenvalues, and the matrix
exponential.

Matrices are the last two axes; axes before them are a batch. LAPACK does the work, and every
function that has a derivative has it, of any order.
"""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.linear_algebra import decompositions, spectral
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops._operands import broadcast, floating, iota, operand, reshaped, run, take_slice
from mycel.ops.algebra.linalg import matmul
from mycel.ops.algebra.matrices import adjoint_of, matrices, order_of, triangle
from mycel.ops.complex_numbers import conj
from mycel.ops.creation import eye

__all__ = [
    "cholesky",
    "eig",
    "eigvals",
    "geqrf",
    "lu_unpack",
    "matrix_exp",
    "orgqr",
    "ormqr",
    "qr",
    "svd",
]


def cholesky(input_x: Any, upper: bool = False) -> Tensor:
    """Return the Cholesky factor of Hermitian positive definite matrices A: lower triangular L with
    L L^H = A, or with `upper` U with U^H U = A.

    Only the lower triangle is read. Matrices that are not positive definite give NaN.

    Raises ShapeError for matrices that are not square.

    >>> import mycel as ms
    >>> ms.ops.cholesky(ms.Tensor([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    arguments.flag("cholesky", "upper", upper)
    found = run(decompositions.cholesky, matrices("cholesky", input_x))
    return adjoint_of(found) if upper else found


def qr(input: Any, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """Return orthonormal columns Q and upper triangular R with Q R = A.

    With `mode` "complete" Q is square; then the derivative is known for matrices with at least as
    many columns as rows.

    >>> import mycel as ms
    >>> [t.shape for t in ms.ops.qr(ms.ops.ones((3, 2)))]
    [(3, 2), (2, 2)]
    """
    arguments.choice("qr", "mode", mode, ("reduced", "complete"))
    q, r = run(decompositions.qr, matrices("qr", input, square=False), full=mode == "complete")
    return q, r


def svd(input: Any, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    """Return singular values s in descending order, U and V with A = U diag(s) V^H.

    Without `compute_uv` the result is s alone; with `full_matrices` U and V are square.

    >>> import mycel as ms
    >>> ms.ops.svd(ms.Tensor([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False).tolist()
    [4.0, 3.0]
    """
    arguments.flag("svd", "full_matrices", full_matrices)
    arguments.flag("svd", "compute_uv", compute_uv)
    a = matrices("svd", input, square=False)
    if not compute_uv:
        return run(spectral.svd, a, full=False, vectors=False)
    u, s, vh = run(spectral.svd, a, full=bool(full_matrices), vectors=True)
    return s, u, adjoint_of(vh)


def eig(A: Any) -> tuple[Tensor, Tensor]:
    """Return complex eigenvalues, in no particular order, and eigenvectors of length 1, as columns.

    >>> import mycel as ms
    >>> ms.ops.eig(ms.Tensor([[2.0]]))[0].tolist()
    [(2+0j)]
    """
    values, vectors = run(spectral.eig, matrices("eig", A))
    return values, vectors


def eigvals(A: Any) -> Tensor:
    """Return the complex eigenvalues of square matrices, in no particular order.

    >>> import mycel as ms
    >>> ms.ops.eigvals(ms.Tensor([[2.0]])).tolist()
    [(2+0j)]
    """
    return eig(A)[0]


def geqrf(input: Any) -> tuple[Tensor, Tensor]:
    """Return LAPACK's form of a QR decomposition: one matrix with R above and the vectors of
    reflections below the diagonal, and the factors tau of the reflections.

    It has no derivative; `qr` has one.

    >>> import mycel as ms
    >>> [t.shape for t in ms.ops.geqrf(ms.ops.ones((3, 2)))]
    [(3, 2), (2,)]
    """
    packed, tau = run(decompositions.householder, matrices("geqrf", input, square=False))
    return packed, tau


def orgqr(input: Any, input2: Any) -> Tensor:
    """Return the first columns of the product of reflections.

    `input` holds the vectors of the reflections and `input2` their factors, as `geqrf` gives them.

    >>> import mycel as ms
    >>> ms.ops.orgqr(*ms.ops.geqrf(ms.ops.ones((3, 2)))).shape
    (3, 2)
    """
    columns, factors = _reflections("orgqr", input, input2)
    a = matrices("orgqr", input, square=False)
    if a.shape[-2] < a.shape[-1]:
        raise ShapeError(f"orgqr: takes matrices with at least as many rows as columns, not of shape {a.shape}")
    x = broadcast(eye(a.shape[-2], a.shape[-1], dtype=a.dtype), tuple(a.shape))
    for v, tau in zip(reversed(columns), reversed(factors)):
        x = _reflected(x, v, tau)
    return x


def ormqr(input: Any, tau: Any, other: Any, left: bool = True, transpose: bool = False) -> Tensor:
    """Return a tensor multiplied by the product Q of reflections.

    Args:
        input (Tensor): Holds the vectors of the reflections.
        tau (Tensor): Holds their factors, as `geqrf` gives them.
        other (Tensor): What is multiplied.
        left (bool): Whether the product comes from the left instead of the right. Default: True.
        transpose (bool): Whether it is Q^H. Default: False.

    Returns:
        Tensor: The product, of the shape of what is multiplied.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.ormqr(*ms.ops.geqrf(ms.ops.ones((3, 2))), ms.ops.ones((3, 1))).shape
        (3, 1)
    """
    arguments.flag("ormqr", "left", left)
    arguments.flag("ormqr", "transpose", transpose)
    columns, factors = _reflections("ormqr", input, tau)
    x = matrices("ormqr", other, square=False)
    if not left:
        # x Q = (Q^H x^H)^H.
        x = adjoint_of(x)
    pairs = list(zip(columns, factors))
    backward = transpose if left else not transpose
    for v, factor in pairs if backward else reversed(pairs):
        x = _reflected(x, v, conj(factor) if backward and factor.dtype.is_complex else factor)
    return x if left else adjoint_of(x)


def _reflections(name: str, input: Any, tau: Any) -> tuple[list[Tensor], list[Tensor]]:
    """Return the vectors (..., m, 1) of reflections and their factors (..., 1, 1), one by one."""
    a, factors = matrices(name, input, square=False), floating(name, tau)
    count = factors.shape[-1] if factors.ndim else 0
    if factors.ndim != a.ndim - 1 or count > a.shape[-1]:
        raise ShapeError(f"{name}: factors of shape {factors.shape} do not fit reflections of shape {a.shape}")
    vectors = triangle(a, True, 1.0)
    columns = [take_slice(vectors, a.ndim - 1, k, k + 1) for k in range(count)]
    parts = [take_slice(factors, factors.ndim - 1, k, k + 1) for k in range(count)]
    return columns, [reshaped(cast(p, a.dtype), (*p.shape[:-1], 1, 1)) for p in parts]


def _reflected(x: Tensor, v: Tensor, tau: Tensor) -> Tensor:
    """Return `x` after a reflection: (1 - tau v v^H) x."""
    return run(E.sub, x, run(E.mul, tau, matmul(v, matmul(adjoint_of(v), x))))


def lu_unpack(LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """Return P, L and U with A = P L U.

    Args:
        LU_data (Tensor): Holds both triangles in one matrix.
        LU_pivots (Tensor): Holds the row exchanges, counted from 1.
        unpack_data (bool): Whether L and U are wanted. Default: True.
        unpack_pivots (bool): Whether P is wanted. Default: True.

    Returns:
        tuple[Tensor, Tensor, Tensor]: P, L and U; what is not wanted is an empty tensor.

    Examples:
        >>> import mycel as ms
        >>> [t.tolist() for t in ms.ops.lu_unpack(ms.Tensor([[2.0]]), ms.Tensor([1], ms.int32))]
        [[[1.0]], [[1.0]], [[2.0]]]
    """
    packed = matrices("lu_unpack", LU_data, square=False)
    rows, columns = packed.shape[-2:]
    least = rows if rows <= columns else columns
    nothing = eye(0, dtype=packed.dtype)
    p = lower = upper = nothing
    if unpack_pivots:
        order = order_of("lu_unpack", LU_pivots, rows)
        one = run(E.eq, reshaped(order, (*order.shape[:-1], 1, rows)), iota((rows, 1), 0, D.int32))
        p = cast(one, packed.dtype)
    if unpack_data:
        lower = triangle(take_slice(packed, packed.ndim - 1, 0, least), True, 1.0)
        upper = triangle(take_slice(packed, packed.ndim - 2, 0, least), False)
    return p, lower, upper


def matrix_exp(input: Any) -> Tensor:
    """Return the exponential of square matrices, the sum of A^k / k!.

    >>> import mycel as ms
    >>> ms.ops.matrix_exp(ms.ops.zeros((2, 2))).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    x = operand("matrix_exp", input)
    return run(spectral.matrix_exponential, matrices("matrix_exp", x))
