"""Decompositions of matrices and what follows from them: determinants, inverses, systems of
equations, norms.

Matrices are the last two axes; axes before them are a batch. float16, bfloat16 and integers are
computed in float32 and float64 in its own precision. LAPACK does the work, and every function that
has a derivative has it, of any order.
"""

from __future__ import annotations

import math
from typing import Any, Optional

from mycel.base import arguments
from mycel.base import dtype as D
from mycel.base.errors import ShapeError
from mycel.core.tensor import Tensor, cast
from mycel.ops._operands import (
    axis_of,
    broadcast,
    constant_like,
    floating,
    iota,
    number_of,
    operand,
    permuted,
    reshaped,
    run,
    select,
    take_slice,
)
from mycel.ops.algebra.linalg import matmul
from mycel.ops.complex_numbers import absolute_value, conj
from mycel.ops.creation import eye
from mycel.ops.reduction import norm as plain_norm
from mycel.ops.reduction import vector_norm
from mycel.prims import decompositions as L
from mycel.prims import elementwise as E
from mycel.prims import index as I
from mycel.prims import reduce as R
from mycel.prims import spectral

__all__ = [
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "cond",
    "det",
    "eig",
    "eigvals",
    "geqrf",
    "inverse",
    "log_matrix_determinant",
    "logdet",
    "lstsq",
    "lu_solve",
    "lu_unpack",
    "matrix_determinant",
    "matrix_exp",
    "matrix_norm",
    "matrix_solve",
    "norm",
    "orgqr",
    "ormqr",
    "pinv",
    "qr",
    "slogdet",
    "svd",
]


def matrices(name: str, value: Any, square: bool = True) -> Tensor:
    """Return an operand of LAPACK: at least two axes, float32 or wider.

    Raises ShapeError where it has fewer or is not square.
    """
    x = floating(name, value)
    if x.dtype.is_floating and x.dtype.itemsize < 4:
        x = cast(x, D.float32)
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        raise ShapeError(
            f"{name}: takes {'square ' if square else ''}matrices in the last two axes, not a tensor of shape {x.shape}"
        )
    return x


def swap(x: Tensor) -> Tensor:
    """Return the last two axes exchanged."""
    return permuted(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def adjoint_of(x: Tensor) -> Tensor:
    """Return the conjugate transpose of the last two axes."""
    return swap(conj(x)) if x.dtype.is_complex else swap(x)


def triangle(x: Tensor, lower: bool, diagonal: Optional[float] = None) -> Tensor:
    """Return one triangle of matrices; the diagonal as it is, or replaced by a number."""
    rows, columns = (iota(tuple(x.shape[-2:]), axis, D.int32) for axis in (0, 1))
    kept = select(run(E.gt if lower else E.lt, rows, columns), x, constant_like(0, x))
    return select(run(E.eq, rows, columns), x if diagonal is None else constant_like(diagonal, x), kept)


def diagonal_of(x: Tensor) -> Tensor:
    """Return the diagonals of matrices, along a last axis."""
    rows, columns = (iota(tuple(x.shape[-2:]), axis, D.int32) for axis in (0, 1))
    least = min(x.shape[-2:])
    kept = select(run(E.eq, rows, columns), x, constant_like(0, x))
    axis = x.ndim - 2 if x.shape[-2] >= x.shape[-1] else x.ndim - 1
    return take_slice(run(R.reduce_sum, kept, axes=(axis,), keepdims=False), x.ndim - 2, 0, least)


def triangular(a: Tensor, b: Tensor, lower: bool, trans: str = "N", unit: bool = False) -> Tensor:
    """Return the solution of a triangular system; the axes before the last two broadcast, and types
    meet.
    """
    kind = D.promote(a.dtype, b.dtype)
    a, b = cast(a, kind), cast(b, kind)
    lead = broadcast_lead(a, b)
    a, b = broadcast(a, (*lead, *a.shape[-2:])), broadcast(b, (*lead, *b.shape[-2:]))
    return run(L.triangular_solve, a, b, lower=lower, trans=trans, unit=unit)


def triangular_solve(
    b: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the solution x of the triangular system A x = b, or of A^T x = b with `transpose`, and
    A.

    >>> import mycel as ms
    >>> ms.mint.triangular_solve(ms.Tensor([[4.0]]), ms.Tensor([[2.0]]))[0].tolist()
    [[2.0]]
    """
    name = "triangular_solve"
    matrix, right = matrices(name, A), matrices(name, b, square=False)
    lower, turned = (
        not arguments.flag(name, "upper", upper, integers=True),
        arguments.flag(name, "transpose", transpose, integers=True),
    )
    unit = arguments.flag(name, "unitriangular", unitriangular, integers=True)
    return triangular(matrix, right, lower, "T" if turned else "N", unit), matrix


def broadcast_lead(a: Tensor, b: Tensor) -> tuple[Any, ...]:
    """Return the common shape of the axes before the last two."""
    from mycel.prims.base import broadcast_shapes

    return broadcast_shapes(tuple(a.shape[:-2]), tuple(b.shape[:-2]), name="the batches of the matrices")


def ordered_rows(x: Tensor, order: Tensor) -> Tensor:
    """Return the rows of matrices in an order."""
    places = reshaped(order, (*order.shape, 1))
    return run(I.take_along, x, broadcast(places, (*order.shape, x.shape[-1])), axis=x.ndim - 2)


def decomposed(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return LU: both triangles in one matrix, the row exchanges counted from 0, the order of the
    rows.
    """
    packed, pivots, order = run(L.lu, a)
    return packed, pivots, order


def solve(a: Tensor, b: Tensor) -> Tensor:
    """Return the solution x of a x = b for square matrices; types meet and batches broadcast."""
    kind = D.promote(a.dtype, b.dtype)
    packed, _, order = decomposed(cast(a, kind))
    lead = broadcast_lead(a, b)
    b = broadcast(cast(b, kind), (*lead, *b.shape[-2:]))
    rows = ordered_rows(b, broadcast(order, (*lead, order.shape[-1])))
    return triangular(packed, triangular(packed, rows, True, unit=True), False)


def _sign_of(pivots: Tensor, like: Tensor) -> Tensor:
    """Return 1 or -1 as the number of row exchanges is even or odd."""
    moved = run(E.ne, pivots, iota((pivots.shape[-1],), 0, pivots.dtype))
    count = run(R.reduce_sum, cast(moved, D.int32), axes=(pivots.ndim - 1,), keepdims=False)
    odd = run(E.eq, run(E.mod, count, constant_like(2, count)), constant_like(1, count))
    return select(odd, constant_like(-1, like), constant_like(1, like))


def cholesky(input_x: Any, upper: bool = False) -> Tensor:
    """Return the Cholesky factor of Hermitian positive definite matrices: lower triangular L with L
    L^H = A, or with `upper` U with U^H U = A.

    Only the lower triangle is read. Matrices that are not positive definite give NaN. ShapeError
    for matrices that are not square.

    >>> import mycel as ms
    >>> ms.ops.cholesky(ms.Tensor([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    found = run(L.cholesky, matrices("cholesky", input_x))
    return adjoint_of(found) if upper else found


def cholesky_solve(input: Any, input2: Any, upper: bool = False) -> Tensor:
    """Return the solution x of A x = `input`, where `input2` is the Cholesky factor of A, lower
    triangular or `upper`.

    >>> import mycel as ms
    >>> ms.ops.cholesky_solve(ms.Tensor([[8.0]]), ms.Tensor([[2.0]])).tolist()
    [[2.0]]
    """
    factor, right = matrices("cholesky_solve", input2), matrices("cholesky_solve", input, square=False)
    first = triangular(factor, right, not upper, "C" if upper else "N")
    return triangular(factor, first, not upper, "N" if upper else "C")


def cholesky_inverse(input_x: Any, upper: bool = False) -> Tensor:
    """Return the inverse of A, where `input_x` is its Cholesky factor, lower triangular or `upper`.

    >>> import mycel as ms
    >>> ms.ops.cholesky_inverse(ms.Tensor([[2.0]])).tolist()
    [[0.25]]
    """
    factor = matrices("cholesky_inverse", input_x)
    return cholesky_solve(broadcast(eye(factor.shape[-1], dtype=factor.dtype), tuple(factor.shape)), factor, upper)


def slogdet(input: Any) -> tuple[Tensor, Tensor]:
    """Return the sign (or the direction, for complex matrices) and the logarithm of the magnitude
    of determinants.

    Singular matrices give 0 and -inf.

    >>> import mycel as ms
    >>> [t.item() for t in ms.ops.slogdet(ms.Tensor([[0.0, 1.0], [1.0, 0.0]]))]
    [-1.0, 0.0]
    """
    packed, pivots, _ = decomposed(matrices("slogdet", input))
    values = diagonal_of(packed)
    last = (values.ndim - 1,)
    if values.dtype.is_complex:
        from mycel.ops.complex_numbers import direction

        size, side = absolute_value(values), direction(values)
    else:
        size, side = run(E.abs_, values), run(E.sign, values)
    sign = run(E.mul, run(R.reduce_prod, side, axes=last, keepdims=False), _sign_of(pivots, side))
    return sign, run(R.reduce_sum, run(E.log, size), axes=last, keepdims=False)


def log_matrix_determinant(input: Any) -> tuple[Tensor, Tensor]:
    """Return the sign and the logarithm of the magnitude of determinants: `slogdet`.

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
    """Return determinants of square matrices. The derivative is that of matrices with an inverse.

    >>> import mycel as ms
    >>> ms.ops.det(ms.Tensor([[2.0, 0.0], [0.0, 3.0]])).item()
    6.0
    """
    packed, pivots, _ = decomposed(matrices("det", input))
    values = diagonal_of(packed)
    return run(E.mul, run(R.reduce_prod, values, axes=(values.ndim - 1,), keepdims=False), _sign_of(pivots, values))


def matrix_determinant(input: Any) -> Tensor:
    """Return determinants of square matrices: `det`.

    >>> import mycel as ms
    >>> ms.ops.matrix_determinant(ms.Tensor([[2.0]])).item()
    2.0
    """
    return det(input)


def inverse(input: Any) -> Tensor:
    """Return the inverses of square matrices; singular ones give infinities or NaN.

    >>> import mycel as ms
    >>> ms.ops.inverse(ms.Tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    a = matrices("inverse", input)
    return solve(a, broadcast(eye(a.shape[-1], dtype=a.dtype), tuple(a.shape)))


def matrix_solve(matrix: Any, rhs: Any, adjoint: bool = False) -> Tensor:
    """Return the solution x of A x = `rhs` for square matrices A, or of A^H x = `rhs` with
    `adjoint`.

    >>> import mycel as ms
    >>> ms.ops.matrix_solve(ms.Tensor([[2.0]]), ms.Tensor([[4.0]])).tolist()
    [[2.0]]
    """
    a, b = matrices("matrix_solve", matrix), matrices("matrix_solve", rhs, square=False)
    if a.shape[-1] != b.shape[-2]:
        raise ShapeError(f"matrix_solve: the right side of shape {b.shape} does not fit matrices of shape {a.shape}")
    return solve(adjoint_of(a) if adjoint else a, b)


def qr(input: Any, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """Return orthonormal columns Q and upper triangular R with Q R = A; with mode "complete" Q is
    square.

    The derivative of "complete" is known for matrices with at least as many columns as rows.

    >>> import mycel as ms
    >>> [t.shape for t in ms.ops.qr(ms.ops.ones((3, 2)))]
    [(3, 2), (2, 2)]
    """
    arguments.one_of("qr", "mode", mode, ("reduced", "complete"))
    q, r = run(L.qr, matrices("qr", input, square=False), full=mode == "complete")
    return q, r


def svd(input: Any, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    """Return singular values s in descending order, U and V with A = U diag(s) V^H; without
    `compute_uv` s alone.

    With `full_matrices` U and V are square.

    >>> import mycel as ms
    >>> ms.ops.svd(ms.Tensor([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False).tolist()
    [4.0, 3.0]
    """
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
    """Return LAPACK's form of a QR decomposition: R above, the reflections' vectors below the
    diagonal, and their factors tau.

    It has no derivative; `qr` has one.

    >>> import mycel as ms
    >>> [t.shape for t in ms.ops.geqrf(ms.ops.ones((3, 2)))]
    [(3, 2), (2,)]
    """
    packed, tau = run(L.householder, matrices("geqrf", input, square=False))
    return packed, tau


def _reflections(name: str, input: Any, tau: Any) -> tuple[list[Tensor], list[Tensor]]:
    """Return the vectors (..., m, 1) of reflections and their factors (..., 1, 1)."""
    a, factors = matrices(name, input, square=False), floating(name, tau)
    count = factors.shape[-1] if factors.ndim else 0
    if factors.ndim != a.ndim - 1 or count > a.shape[-1]:
        raise ShapeError(f"{name}: factors of shape {factors.shape} do not fit reflections of shape {a.shape}")
    vectors = triangle(a, True, 1.0)
    columns = [take_slice(vectors, a.ndim - 1, k, k + 1) for k in range(count)]
    parts = [take_slice(factors, factors.ndim - 1, k, k + 1) for k in range(count)]
    return columns, [reshaped(cast(p, a.dtype), (*p.shape[:-1], 1, 1)) for p in parts]


def _reflected(x: Tensor, v: Tensor, tau: Tensor) -> Tensor:
    """Return (1 - tau v v^H) x."""
    return run(E.sub, x, run(E.mul, tau, matmul(v, matmul(adjoint_of(v), x))))


def orgqr(input: Any, input2: Any) -> Tensor:
    """Return the first columns of the product of the reflections that `geqrf` gives, `input` with
    their vectors and `input2` their factors.

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
    """Return `other` multiplied by the product Q of reflections, from the left or the right; with
    `transpose` by Q^H.

    `input` and `tau` are what `geqrf` gives.

    >>> import mycel as ms
    >>> ms.ops.ormqr(*ms.ops.geqrf(ms.ops.ones((3, 2))), ms.ops.ones((3, 1))).shape
    (3, 1)
    """
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


def lu_solve(b: Any, LU_data: Any, LU_pivots: Any) -> Tensor:
    """Return the solution x of A x = `b`, where `LU_data` holds both triangles of A's LU
    decomposition and `LU_pivots` its row exchanges, counted from 1.

    >>> import mycel as ms
    >>> ms.ops.lu_solve(ms.Tensor([[4.0]]), ms.Tensor([[2.0]]), ms.Tensor([1], ms.int32)).tolist()
    [[2.0]]
    """
    packed, right = matrices("lu_solve", LU_data), matrices("lu_solve", b, square=False)
    order = order_of("lu_solve", LU_pivots, packed.shape[-1])
    lead = broadcast_lead(packed, right)
    rows = ordered_rows(broadcast(right, (*lead, *right.shape[-2:])), broadcast(order, (*lead, order.shape[-1])))
    return triangular(packed, triangular(packed, rows, True, unit=True), False)


def order_of(name: str, pivots: Any, size: int, first: int = 1) -> Tensor:
    """Return the order of rows after the exchanges of row i with row pivots[i], counted from
    `first`.
    """
    given = operand(name, pivots)
    if not given.dtype.is_integer:
        raise TypeError(f"{name}: pivots must be integers, not {given.dtype.name}")
    if given.ndim == 0:
        raise ShapeError(f"{name}: pivots must have an axis for the rows, not be a single number")
    given = cast(given, D.int32) - first if first else cast(given, D.int32)
    count = given.shape[-1]
    order = broadcast(iota((size,), 0, D.int32), (*given.shape[:-1], size))
    place = iota((size,), 0, D.int32)
    for k in range(count):
        other = take_slice(given, given.ndim - 1, k, k + 1)
        mine = take_slice(order, order.ndim - 1, k, k + 1)
        its = run(I.take_along, order, other, axis=order.ndim - 1, bounds="front")
        at_other = run(E.eq, place, other)
        order = select(run(E.eq, place, constant_like(k, place)), its, select(at_other, mine, order))
    return order


def lu_unpack(LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """Return P, L and U with A = P L U, from both triangles in one matrix and the row exchanges,
    counted from 1.

    What is not asked for is an empty tensor.

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


def pinv(x: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """Return the Moore-Penrose inverse.

    Singular values of at most max(atol, rtol * the largest) count as 0.

    `rtol` is max(rows, columns) times the type's precision where neither is given, and 0 where only
    `atol` is. With `hermitian` the eigenvalues are used.

    >>> import mycel as ms
    >>> ms.ops.pinv(ms.Tensor([[2.0], [0.0]])).tolist()
    [[0.5, 0.0]]
    """
    a = matrices("pinv", x, square=bool(hermitian))
    if hermitian:
        values, vectors = run(spectral.eigh, a, lower=True)
        sizes = run(E.abs_, values)
    else:
        u, values, vh = run(spectral.svd, a, full=False, vectors=True)
        sizes = values
    for word, value in (("atol", atol), ("rtol", rtol)):
        if value is not None:
            number_of("pinv", word, value)
    if rtol is None:
        digits = 2.0**-52 if values.dtype is D.float64 else 2.0**-23
        rtol = max(a.shape[-2:]) * digits if atol is None else 0.0
    largest = run(R.reduce_max, sizes, axes=(sizes.ndim - 1,), keepdims=True)
    limits = [
        largest * (reshaped(r, (*r.shape, 1)) if isinstance(r, Tensor) else r) if of_largest else r
        for r, of_largest in ((rtol, True), (atol, False))
        if r is not None
    ]
    limit = limits[0]
    for other in limits[1:]:
        other = reshaped(other, (*other.shape, 1)) if isinstance(other, Tensor) else constant_like(other, sizes)
        limit = run(E.maximum, limit, cast(other, limit.dtype))
    kept = run(E.gt, sizes, cast(limit, sizes.dtype))
    one = constant_like(1, values)
    factors = select(kept, run(E.div, one, select(kept, values, one)), constant_like(0, values))
    row = cast(reshaped(factors, (*factors.shape[:-1], 1, factors.shape[-1])), a.dtype)
    if hermitian:
        return matmul(run(E.mul, vectors, row), adjoint_of(vectors))
    return matmul(run(E.mul, adjoint_of(vh), row), adjoint_of(u))


def lstsq(input: Any, A: Any) -> Tensor:
    """Return the x that makes ||`input` x - `A`|| least; of several, where there are more columns
    than rows, the shortest.

    `input` (m, n) of full rank, `A` (m,) or (m, k); the result is (n, k).

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


def matrix_exp(input: Any) -> Tensor:
    """Return the exponential of square matrices: the sum of A^k / k!.

    >>> import mycel as ms
    >>> ms.ops.matrix_exp(ms.ops.zeros((2, 2))).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    x = operand("matrix_exp", input)
    return run(spectral.matrix_exponential, matrices("matrix_exp", x))


def matrix_norm(A: Any, ord: Any = "fro", axis: Any = (-2, -1), keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the norm of matrices: "fro", "nuc" (sum of singular values), 2 and -2 (largest and
    smallest), 1 and -1 (of column sums), inf and -inf (row sums).

    >>> import mycel as ms
    >>> ms.ops.matrix_norm(ms.Tensor([[3.0, 0.0], [0.0, 4.0]]), 2).item()
    4.0
    """
    x = floating("matrix_norm", A)
    x = x if dtype is None else cast(x, D.from_any(dtype))
    if not isinstance(axis, (tuple, list)) or len(axis) != 2:
        raise ShapeError(f"matrix_norm: axis must be two axes, not {axis!r}")
    rows, columns = (axis_of("matrix_norm", a, x.ndim) for a in axis)
    if rows == columns:
        raise ShapeError(f"matrix_norm: axis {axis} names one axis twice")
    if ord == "fro":
        return vector_norm(x, 2, (rows, columns), keepdims)
    if ord not in ("nuc", 2, -2):
        if isinstance(ord, str):
            raise ValueError(f"matrix_norm: ord must be 'fro', 'nuc', 2, -2, 1, -1, inf or -inf, not {ord!r}")
        return plain_norm(x, ord, (rows, columns), keepdims)
    rest = [a for a in range(x.ndim) if a not in (rows, columns)]
    values = run(
        spectral.svd,
        matrices("matrix_norm", permuted(x, (*rest, rows, columns)), square=False),
        full=False,
        vectors=False,
    )
    reduce = R.reduce_sum if ord == "nuc" else R.reduce_max if ord == 2 else R.reduce_min
    found = cast(run(reduce, values, axes=(values.ndim - 1,), keepdims=False), x.dtype)
    if keepdims:
        found = reshaped(found, tuple(1 if a in (rows, columns) else x.shape[a] for a in range(x.ndim)))
    return found


def norm(A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the norm of vectors (one axis, or all elements where `dim` is None) or of matrices
    (two axes).

    Without `ord` the 2-norm of all elements over `dim`. For vectors any number; for matrices what
    `matrix_norm` knows. ValueError for other orders.

    >>> import mycel as ms
    >>> ms.ops.norm(ms.Tensor([[3.0], [4.0]])).item()
    5.0
    """
    if ord in ("nuc", 2, -2) and (ord == "nuc" or not isinstance(ord, str)):
        x = floating("norm", A)
        axes = tuple(dim) if isinstance(dim, (tuple, list)) else dim
        if (axes is None and x.ndim == 2) or (isinstance(axes, tuple) and len(axes) == 2):
            return matrix_norm(x, ord, axes or (0, 1), keepdim, dtype=dtype)
    return plain_norm(A, ord, dim, keepdim, dtype=dtype)


def cond(A: Any, p: Any = None) -> Tensor:
    """Return the condition number ||A|| ||A^-1|| in a norm of `matrix_norm`; the ratio of the
    extreme singular values by default.

    >>> import mycel as ms
    >>> ms.ops.cond(ms.Tensor([[2.0, 0.0], [0.0, 1.0]])).item()
    2.0
    """
    x = matrices("cond", A, square=p not in (None, 2, -2))
    if p in (None, 2, -2):
        values = run(spectral.svd, x, full=False, vectors=False)
        last = values.ndim - 1
        ends = [
            reshaped(take_slice(values, last, k, k + 1), tuple(values.shape[:-1])) for k in (0, values.shape[-1] - 1)
        ]
        return run(E.div, *(reversed(ends) if p == -2 else ends))
    return run(E.mul, matrix_norm(x, p), matrix_norm(inverse(x), p))
