"""Linear algebra with SciPy's functions and conventions, as MindSpore offers them: matrices are the
last two axes, and LAPACK computes.

Integers are computed in float64, as MindSpore does here and not in `ops`.

`overwrite_a`, `overwrite_b` and `turbo` have no effect: no operand is overwritten. With
`check_finite` (the default) numbers that are not finite raise ValueError if they are known; while a
function is compiled they are not.
"""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.linear_algebra import decompositions as decompositions_prims
from mycel._src.compiler.prims.linear_algebra import spectral
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import NeedsValue, ShapeError
from mycel._src.foundation.public_names import listing as _listing
from mycel._src.tensors.core.binary_operators import promoted
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast
from mycel.ops._operands import iota, operand, reshaped, run, size_of, term
from mycel.ops.algebra import decompositions, linear_systems, matrices
from mycel.ops.algebra.linalg import matmul
from mycel.ops.arrange import block_diag as _block_diag
from mycel.ops.creation import zeros
from mycel.ops.vector_norms import vector_norm

__all__ = [
    "Cholesky",
    "Eigh",
    "LU",
    "SolveTriangular",
    "block_diag",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "det",
    "eigh",
    "inv",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_pivots_to_permutation",
    "lu_solve",
    "solve_triangular",
]


def _finite(name: str, check: bool, *values: Tensor) -> None:
    if not check:
        return
    for x in values:
        try:
            good = bool(run(E.is_finite, x).all()) if x.dtype.kind in "fc" else True
        except NeedsValue:
            return
        if not good:
            raise ValueError(f"{name}: the array holds infinities or NaN; pass check_finite=False to compute with them")


def _flags(name: str, **given: Any) -> None:
    for parameter, value in given.items():
        arguments.flag(name, parameter, value)


def _real(name: str, value: Any) -> Tensor:
    """Return an operand whose booleans and integers are float64."""
    x = operand(name, value)
    return promoted(x, D.float64) if x.dtype.kind in "iub" else x


def _matrix(name: str, value: Any, check: bool, square: bool = True) -> Tensor:
    x = matrices.matrices(name, _real(name, value), square)
    _finite(name, check, x)
    return x


def block_diag(*arrs: Any) -> Tensor:
    """Return a matrix with the given ones along its diagonal and zeros elsewhere; a vector is one
    row.

    >>> import mycel as ms
    >>> ms.scipy.linalg.block_diag(ms.Tensor([[1.0]]), ms.Tensor([[2.0]])).tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    return _block_diag(*arrs) if arrs else zeros((1, 0), D.float32)


def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Tensor:
    """Return the Cholesky factor of Hermitian positive definite matrices: U with U^H U = a, or with
    `lower` L with L L^H = a.

    Matrices that are not positive definite give NaN.

    Args:
        a (Tensor): (..., n, n).
        lower (bool): Whether it is the lower triangle. Default: False.
        overwrite_a (bool): Has no effect. Default: False.
        check_finite (bool): Whether numbers that are not finite are refused. Default: True.

    Returns:
        Tensor: The factor, (..., n, n).

    Examples:
        >>> import mycel as ms
        >>> ms.scipy.linalg.cholesky(ms.Tensor([[4.0]])).tolist()
        [[2.0]]
    """
    _flags("cholesky", lower=lower, overwrite_a=overwrite_a, check_finite=check_finite)
    return decompositions.cholesky(_matrix("cholesky", a, check_finite), not lower)


def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Tensor, bool]:
    """Return the result of `cholesky` for `cho_solve`.

    Args:
        a (Tensor): (..., n, n).
        lower (bool): Whether it is the lower triangle. Default: False.
        overwrite_a (bool): Has no effect. Default: False.
        check_finite (bool): Whether numbers that are not finite are refused. Default: True.

    Returns:
        tuple[Tensor, bool]: The factor, and `lower`.

    Examples:
        >>> import mycel as ms
        >>> ms.scipy.linalg.cho_factor(ms.Tensor([[4.0]]))[1]
        False
    """
    return cholesky(a, lower, overwrite_a, check_finite), lower


def _two(name: str, word: str, value: Any) -> Any:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise TypeError(f"{name}: {word} must be a pair, not {value!r:.80}")
    return value


def _columns(b: Tensor) -> Tensor:
    if b.ndim == 0:
        raise ShapeError("scipy.linalg: the right side must be a vector or matrices, not a number")
    return reshaped(b, (*b.shape, 1)) if b.ndim == 1 else b


def _as_given(x: Tensor, b: Tensor) -> Tensor:
    return reshaped(x, tuple(x.shape[:-1])) if b.ndim == 1 else x


def cho_solve(c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Tensor:
    """Return the solution x of a x = b.

    Args:
        c_and_lower (tuple[Tensor, bool]): The result of `cho_factor` for a.
        b (Tensor): (..., n) or (..., n, k).
        overwrite_b (bool): Has no effect. Default: False.
        check_finite (bool): Whether numbers that are not finite are refused. Default: True.

    Returns:
        Tensor: The solution, of the shape of `b`.

    Examples:
        >>> import mycel as ms
        >>> factor = ms.scipy.linalg.cho_factor(ms.Tensor([[4.0]]))
        >>> ms.scipy.linalg.cho_solve(factor, ms.Tensor([8.0])).tolist()
        [2.0]
    """
    factor, lower = _two("cho_solve", "c_and_lower", c_and_lower)
    _flags("cho_solve", lower=lower, overwrite_b=overwrite_b, check_finite=check_finite)
    right = _real("cho_solve", b)
    _finite("cho_solve", check_finite, right)
    return _as_given(linear_systems.cholesky_solve(_columns(right), factor, not lower), right)


def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Tensor:
    """Return determinants of square matrices.

    >>> import mycel as ms
    >>> ms.scipy.linalg.det(ms.Tensor([[2.0]])).item()
    2.0
    """
    _flags("det", overwrite_a=overwrite_a, check_finite=check_finite)
    return linear_systems.det(_matrix("det", a, check_finite))


def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Tensor:
    """Return the inverses of square matrices.

    >>> import mycel as ms
    >>> ms.scipy.linalg.inv(ms.Tensor([[2.0]])).tolist()
    [[0.5]]
    """
    _flags("inv", overwrite_a=overwrite_a, check_finite=check_finite)
    return linear_systems.inverse(_matrix("inv", a, check_finite))


def eigh(
    a: Any,
    b: Any = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: Any = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """Return the eigenvalues and eigenvectors of Hermitian matrices.

    Args:
        a (Tensor): (..., n, n).
        b (Tensor | None): Hermitian positive definite matrices of the generalised problem; None for
            none. Default: None.
        lower (bool): Whether the lower triangle is read instead of the upper. Default: True.
        eigvals_only (bool): Whether no eigenvectors are returned. Default: False.
        overwrite_a (bool): Has no effect. Default: False.
        overwrite_b (bool): Has no effect. Default: False.
        turbo (bool): Has no effect. Default: True.
        eigvals (tuple[int, int] | None): The positions (first, last) of the eigenvalues to return;
            None for all. Default: None.
        type (int): The generalised problem: 1 (a v = w b v), 2 (a b v = w v) or 3 (b a v = w v).
            Default: 1.
        check_finite (bool): Whether numbers that are not finite are refused. Default: True.

    Returns:
        Tensor | tuple[Tensor, Tensor]: The eigenvalues, ascending, (..., n), and the orthonormal
            eigenvectors, as columns, (..., n, n).

    Examples:
        >>> import mycel as ms
        >>> ms.scipy.linalg.eigh(ms.Tensor([[2.0, 0.0], [0.0, 1.0]]), eigvals_only=True).tolist()
        [1.0, 2.0]
    """
    _flags("eigh", lower=lower, eigvals_only=eigvals_only, overwrite_a=overwrite_a, overwrite_b=overwrite_b)
    _flags("eigh", turbo=turbo, check_finite=check_finite)
    arguments.integer("eigh", "type", type, 1, 3)
    if b is not None and not isinstance(b, Tensor):
        raise arguments.wrong_value("eigh", "b", "matrices or None", b)
    x = _matrix("eigh", a, check_finite)
    factor: Tensor | None = None
    if b is not None:
        # With b = L L^H types 1 and the others are problems of L^-1 a L^-H and L^H a L.
        given = _matrix("eigh", term("eigh", b), check_finite)
        x = _whole(x, lower)
        factor = run(decompositions_prims.cholesky, given if lower else matrices.adjoint_of(given))
        if type == 1:
            half = matrices.triangular(factor, x, True)
            x = matrices.adjoint_of(matrices.triangular(factor, matrices.adjoint_of(half), True))
        else:
            x = matmul(matrices.adjoint_of(factor), matmul(x, factor))
        lower = True
    values, vectors = run(spectral.eigh, x, lower=bool(lower))
    if factor is not None:
        vectors = matmul(factor, vectors) if type == 3 else matrices.triangular(factor, vectors, True, "C")
    if eigvals is not None:
        if not isinstance(eigvals, (tuple, list)) or len(eigvals) != 2:
            raise arguments.wrong_value("eigh", "eigvals", "a pair of positions or None", eigvals)
        first, last = (size_of("eigh", v) for v in eigvals)
        values, vectors = values[..., first : last + 1], vectors[..., first : last + 1]
    return values if eigvals_only else (values, vectors)


def _whole(x: Tensor, lower: bool) -> Tensor:
    """Return the Hermitian matrices of which one triangle is given."""
    half = matrices.triangle(x, lower)
    return run(E.add, half, matrices.adjoint_of(matrices.triangle(x, lower, 0.0)))


def lu(a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Return the factors of a = P L U.

    Args:
        a (Tensor): (..., m, n).
        permute_l (bool): Whether P L is returned. Default: False.
        overwrite_a (bool): Has no effect. Default: False.
        check_finite (bool): Whether numbers that are not finite are refused. Default: True.

    Returns:
        tuple[Tensor, ...]: P (int32), L and U, or P L and U.

    Examples:
        >>> import mycel as ms
        >>> [t.tolist() for t in ms.scipy.linalg.lu(ms.Tensor([[2.0]]))]
        [[[1]], [[1.0]], [[2.0]]]
    """
    _flags("lu", permute_l=permute_l, overwrite_a=overwrite_a, check_finite=check_finite)
    x = _matrix("lu", a, check_finite, square=False)
    packed, pivots, _ = matrices.decomposed(x)
    p, lower, upper = decompositions.lu_unpack(packed, pivots + 1)
    return (matmul(p, lower), upper) if permute_l else (cast(p, D.int32), lower, upper)


def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Tensor, Tensor]:
    """Return both triangles of the LU decomposition in one matrix, and the row exchanges, counted
    from 0.

    >>> import mycel as ms
    >>> [t.tolist() for t in ms.scipy.linalg.lu_factor(ms.Tensor([[2.0]]))]
    [[[2.0]], [0]]
    """
    _flags("lu_factor", overwrite_a=overwrite_a, check_finite=check_finite)
    packed, pivots, _ = matrices.decomposed(_matrix("lu_factor", a, check_finite))
    return packed, pivots


def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Tensor:
    """Return the order of `permutation_size` rows after the exchanges of row i with row pivots[i],
    counted from 0.

    >>> import mycel as ms
    >>> ms.scipy.linalg.lu_pivots_to_permutation(ms.Tensor([1, 1], ms.int32), 2).tolist()
    [1, 0]
    """
    name = "lu_pivots_to_permutation"
    return matrices.order_of(name, pivots, size_of(name, permutation_size), 0)


def lu_solve(lu_and_piv: Any, b: Any, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True) -> Tensor:
    """Return the solution x of a linear system whose matrix is factored.

    Args:
        lu_and_piv (tuple[Tensor, Tensor]): The result of `lu_factor` for a.
        b (Tensor): (..., n) or (..., n, k).
        trans (int): 0 for a x = b, 1 for a^T x = b, 2 for a^H x = b. Default: 0.
        overwrite_b (bool): Has no effect. Default: False.
        check_finite (bool): Whether numbers that are not finite are refused. Default: True.

    Returns:
        Tensor: The solution, of the shape of `b`.

    Examples:
        >>> import mycel as ms
        >>> factors = ms.scipy.linalg.lu_factor(ms.Tensor([[2.0]]))
        >>> ms.scipy.linalg.lu_solve(factors, ms.Tensor([4.0])).tolist()
        [2.0]
    """
    arguments.integer("lu_solve", "trans", trans, 0, 2)
    _flags("lu_solve", overwrite_b=overwrite_b, check_finite=check_finite)
    packed, pivots = _two("lu_solve", "lu_and_piv", lu_and_piv)
    right = _real("lu_solve", b)
    _finite("lu_solve", check_finite, right)
    columns = _columns(right)
    if trans == 0:
        return _as_given(linear_systems.lu_solve(columns, packed, operand("lu_solve", pivots) + 1), right)
    matrix = matrices.matrices("lu_solve", packed)
    letter = "T" if trans == 1 else "C"
    first = matrices.triangular(matrix, columns, False, letter)
    second = matrices.triangular(matrix, first, True, letter, unit=True)
    order = matrices.order_of("lu_solve", pivots, matrix.shape[-1], 0)
    back = run(E.eq, reshaped(order, (*order.shape[:-1], 1, order.shape[-1])), iota((order.shape[-1], 1), 0, D.int32))
    return _as_given(matmul(cast(back, second.dtype), second), right)


_TRANS = {0: "N", "N": "N", 1: "T", "T": "T", 2: "C", "C": "C"}


def solve_triangular(
    a: Any,
    b: Any,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Tensor:
    """Return the solution x of a triangular system.

    Args:
        a (Tensor): (..., n, n).
        b (Tensor): (n,), (..., n) with the axes of a before its last one, or (..., n, k); the axes
            in front broadcast.
        trans (int | str): 0 for a x = b, 1 or "T" for a^T x = b, 2 or "C" for a^H x = b. Default:
            0.
        lower (bool): Whether the lower triangle of a is read. Default: False.
        unit_diagonal (bool): Whether the diagonal counts as ones. Default: False.
        overwrite_b (bool): Has no effect. Default: False.
        debug (object | None): Has no effect. Default: None.
        check_finite (bool): Whether numbers that are not finite are refused. Default: True.

    Returns:
        Tensor: The solution.

    Examples:
        >>> import mycel as ms
        >>> ms.scipy.linalg.solve_triangular(ms.Tensor([[2.0]]), ms.Tensor([4.0])).tolist()
        [2.0]
    """
    _flags("solve_triangular", lower=lower, unit_diagonal=unit_diagonal)
    if not isinstance(trans, (int, str)) or isinstance(trans, bool):
        raise arguments.wrong_type("solve_triangular", "trans", "an int or a string", trans)
    if trans not in _TRANS:
        raise arguments.wrong_value("solve_triangular", "trans", "0, 1, 2, 'N', 'T' or 'C'", trans)
    given, right = _real("solve_triangular", a), _real("solve_triangular", b)
    matrix = _matrix("solve_triangular", given, check_finite)
    _finite("solve_triangular", check_finite, right)
    # A side with one axis less than a batch of matrices is a batch of vectors.
    vectors = right.ndim == 1 or right.ndim == matrix.ndim - 1 and right.shape == matrix.shape[:-1]
    columns = reshaped(right, (*right.shape, 1)) if vectors else _columns(right)
    if columns.shape[-2] != matrix.shape[-1]:
        raise ShapeError(
            f"solve_triangular: the right side of shape {right.shape} does not fit matrices of shape {matrix.shape}"
        )
    found = matrices.triangular(matrix, columns, bool(lower), _TRANS[trans], bool(unit_diagonal))
    kind = D.promote(given.dtype, right.dtype)
    found = reshaped(found, tuple(found.shape[:-1])) if vectors else found
    return cast(found, kind) if kind.is_floating else found


def lstsq(A: Any, B: Any, rcond: Any = None, driver: str | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the shortest x that minimises ||A x - B||, the squared residuals, the rank of A, and
    its singular values.

    Singular values of at most `rcond` times the largest count as 0 (default: the type's precision
    times the larger size of `A`).

    Args:
        A (Tensor): (m, n).
        B (Tensor): (m,) or (m, k).
        rcond (float | None): The singular value, relative to the largest, at or below which one
            counts as 0; None for the type's precision times the larger size of `A`. Default: None.
        driver (str | None): "gelsd", "gelss" or None; singular values are used in any case.
            Default: None.

    Returns:
        tuple[Tensor, Tensor, Tensor, Tensor]: X; the squared residuals, empty unless `A` has full
            rank and more rows than columns; the rank; and the singular values.

    Examples:
        >>> import mycel as ms
        >>> ms.scipy.linalg.lstsq(ms.Tensor([[2.0]]), ms.Tensor([[4.0]]))[0].tolist()
        [[2.0]]
    """
    arguments.optional("lstsq", "driver", driver, str)
    arguments.one_of("lstsq", "driver", driver, (None, "gelsd", "gelss"))
    a, b = matrices.matrices("lstsq", A, square=False), _real("lstsq", B)
    columns = _columns(b)
    values = run(spectral.svd, a, full=False, vectors=False)
    digits = 2.0**-52 if values.dtype is D.float64 else 2.0**-23
    limit = float(rcond) if rcond is not None else digits * max(a.shape)
    x = matmul(linear_systems.pinv(a, rtol=limit), cast(columns, a.dtype))
    rank = cast(run(E.gt, values, values.max() * limit), D.int64).sum()
    tall = a.shape[-2] > a.shape[-1]
    residuals = reshaped(as_tensor([], values.dtype), (0,))
    if tall:
        rest = matmul(a, x) - cast(columns, a.dtype)
        squares = vector_norm(rest, 2, (rest.ndim - 2,)) ** 2
        residuals = squares if b.ndim > 1 else reshaped(squares, ())
    return _as_given(x, b), residuals, rank, values


class Cholesky:
    """The function `cholesky` as an object: a call with matrices returns the lower factor, or the
    upper one.

    >>> import mycel as ms
    >>> ms.scipy.linalg.Cholesky()(ms.Tensor([[4.0]])).tolist()
    [[2.0]]
    """

    def __init__(self, upper: bool = False) -> None:
        self.upper = upper

    def __call__(self, a: Any) -> Tensor:
        return decompositions.cholesky(a, self.upper)


class Eigh:
    """The function `eigh` as an object: a call with matrices returns eigenvalues and, by default,
    eigenvectors.

    >>> import mycel as ms
    >>> ms.scipy.linalg.Eigh(False)(ms.Tensor([[4.0]])).tolist()
    [4.0]
    """

    def __init__(self, compute_eigenvectors: bool = True, lower: bool = True) -> None:
        self.compute_eigenvectors, self.lower = compute_eigenvectors, lower

    def __call__(self, a: Any) -> Any:
        return eigh(a, lower=self.lower, eigvals_only=not self.compute_eigenvectors, check_finite=False)


class Eig:
    """The complex eigenvalues of matrices, in no particular order, and the eigenvectors of length
    1, as columns; without `compute_v` a zero stands for these.

    >>> import mycel as ms
    >>> from mycel.scipy.linalg import Eig
    >>> Eig(False)(ms.Tensor([[4.0]]))[0].tolist()
    [(4+0j)]
    """

    def __init__(self, compute_v: bool = True) -> None:
        self.compute_v = arguments.flag("Eig", "compute_v", compute_v)

    def __call__(self, a: Any) -> tuple[Tensor, Tensor]:
        values, vectors = run(spectral.eig, _matrix("Eig", a, False))
        return values, vectors if self.compute_v else zeros((), values.dtype)


class LU:
    """The function `lu_factor` as an object: a call with matrices returns both triangles, the row
    exchanges counted from 0, and the order of the rows.

    >>> import mycel as ms
    >>> ms.scipy.linalg.LU()(ms.Tensor([[4.0]]))[2].tolist()
    [0]
    """

    def __call__(self, a: Any) -> tuple[Tensor, Tensor, Tensor]:
        return matrices.decomposed(matrices.matrices("LU", a, square=False))


class SolveTriangular:
    """The function `solve_triangular` as an object, called with triangular matrices and right-hand
    sides.

    >>> import mycel as ms
    >>> ms.scipy.linalg.SolveTriangular(lower=True)(ms.Tensor([[2.0]]), ms.Tensor([[4.0]])).tolist()
    [[2.0]]
    """

    def __init__(self, lower: bool = False, unit_diagonal: bool = False, trans: str = "N") -> None:
        if not isinstance(trans, (int, str)) or trans not in _TRANS:
            raise ValueError(f"SolveTriangular: trans must be 'N', 'T' or 'C', not {trans!r}")
        self.lower, self.unit_diagonal, self.trans = lower, unit_diagonal, trans

    def __call__(self, a: Any, b: Any) -> Tensor:
        return solve_triangular(a, b, self.trans, self.lower, self.unit_diagonal, check_finite=False)


__dir__ = _listing(__name__)
