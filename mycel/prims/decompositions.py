"""Decompositions of matrices and systems of triangular ones: LAPACK's, for stacks of matrices in the last two axes.

The derivatives are the adjoints of the differentials of the defining equations (Giles, "An extended collection of matrix derivative results", 2008;
Seeger et al., "Auto-differentiating linear algebra", 2017; Boeddeker et al., "On the computation of complex-valued gradients", 2017). `H` is the
conjugate transpose throughout, so one formula serves real and complex matrices. Where eigenvalues or singular values coincide, vectors are not
differentiable; the terms in question are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import numpy as np

from mycel.base import arguments
from mycel.base.dtype import int32
from mycel.base.errors import ShapeError
from mycel.ir.graph import Node
from mycel.ir.types import TensorType, tensor_type
from mycel.prims import elementwise as E
from mycel.prims import index as I
from mycel.prims import shape as S
from mycel.prims.base import Primitive, Sample, need_kind, outputs_of, register, same_dtype
from mycel.prims.complex import complex_of, conjugate, part_of, real
from mycel.prims.linalg import matmul, swap_last

__all__ = [
    "cholesky",
    "eig",
    "eigh",
    "householder",
    "lu",
    "matrix_exponential",
    "qr",
    "solve",
    "svd",
    "triangular_solve",
]

KINDS = ("float32", "float64")


def _matrix(name: str, a: TensorType, square: bool = True) -> None:
    need_kind(name, "fc", a)
    if a.dtype.kind == "f" and a.dtype.itemsize < 4:
        raise TypeError(
            f"{name} takes float32, float64, complex64 or complex128 matrices, not {a.dtype.name}; cast the tensor first"
        )
    if a.rank < 2 or (square and a.shape[-1] != a.shape[-2]):
        raise ShapeError(f"{name}: takes {'square ' if square else ''}matrices in the last two axes, not {a}")


def _part(a: TensorType) -> Any:
    return part_of(a.dtype) if a.dtype.is_complex else a.dtype


def _batch(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    def rule(size: Any, values: Any, axes: Any, **params: Any) -> Any:
        out = outputs_of(primitive().node(S.move_axis(values[0], axes[0], 0), **params))
        return (out, (0,) * len(out)) if isinstance(out, tuple) else (out, 0)

    return rule


def adjoint(x: Node) -> Node:
    """The conjugate transpose of the last two axes."""
    return swap_last(conjugate(x))


def _triangle(x: Node, lower: bool, diagonal: float = 1.0) -> Node:
    """One triangle of matrices, the diagonal multiplied."""
    shape = tuple(x.shape[-2:])
    row, column = (S.iota(shape=shape, axis=axis, dtype=int32) for axis in (0, 1))
    kept = E.gt(row, column) if lower else E.lt(row, column)
    on = E.mul(x, diagonal) if diagonal != 1 else x
    return E.select(kept, x, E.select(E.eq(row, column), on, 0))


def _diagonal_of(values: Node) -> Node:
    """Vectors as diagonal matrices."""
    n = values.shape[-1]
    row, column = (S.iota(shape=(n, n), axis=axis, dtype=int32) for axis in (0, 1))
    return E.select(E.eq(row, column), S.reshape(values, (*values.shape, 1)), 0)


def _eye_like(x: Node) -> Node:
    return _diagonal_of(S.full(x.shape[:-1], 1, x.dtype))


def _columns(values: Node) -> Node:
    return S.reshape(values, (*values.shape[:-1], 1, values.shape[-1]))


def _rows(values: Node) -> Node:
    return S.reshape(values, (*values.shape, 1))


def _as(x: Node, like: Node) -> Node:
    return x if x.dtype is like.dtype else E.cast(x, dtype=like.dtype)


def _over_differences(x: Node, values: Node) -> Node:
    """x[i, j] / (values[j] - values[i]), 0 where the difference is 0."""
    difference = E.sub(_columns(values), _rows(values))
    zero = E.eq(difference, 0)
    return E.select(zero, 0, E.div(x, _as(E.select(zero, 1, difference), x)))


# Triangular systems.


def _solve_infer(a: TensorType, b: TensorType, *, lower: bool, trans: str, unit: bool) -> TensorType:
    _matrix("triangular_solve", a)
    same_dtype("triangular_solve", a, b)
    arguments.one_of("triangular_solve", "trans", trans, ("N", "T", "C"))
    if b.rank != a.rank or a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2]:
        raise ShapeError(f"triangular_solve: the right side {b} does not fit the matrices {a}")
    return b


def _stacked(function: Callable[..., Any], *arrays: Any) -> Any:
    """A function of matrices over stacks of them; results stacked, each by itself."""
    lead = arrays[0].shape[:-2]
    flat = [a.reshape(-1, *a.shape[-2:]) for a in arrays]
    found = [function(*matrices) for matrices in zip(*flat)]
    results = [np.stack([np.asarray(f[k]) for f in found]) for k in range(len(found[0]))]
    return tuple(r.reshape(*lead, *r.shape[1:]) for r in results)


def _solve_reference(a: Any, b: Any, *, lower: bool, trans: str, unit: bool) -> Any:
    from scipy.linalg import solve_triangular

    if not b.size:
        return b

    def one(p: Any, q: Any) -> Any:
        diagonal = np.diagonal(p)
        if not unit and np.any(diagonal == 0):
            return (np.full(q.shape, np.nan, q.dtype),)
        return (solve_triangular(p, q, trans=trans, lower=lower, unit_diagonal=unit, check_finite=False),)

    return _stacked(one, a, b)[0]


def _solve_vjp(ct: Node, out: Node, a: Node, b: Node, *, lower: bool, trans: str, unit: bool) -> tuple[Node, Node]:
    back = {"N": "C", "C": "N", "T": "N"}[trans]
    given = conjugate(ct) if trans == "T" else ct
    db = triangular_solve(a, given, lower=lower, trans=back, unit=unit)
    if trans == "T":
        db = conjugate(db)
    product = matmul(db, adjoint(out)) if trans == "N" else matmul(out, adjoint(db))
    if trans == "T":
        product = conjugate(product)
    return _triangle(E.neg(product), lower, 0.0 if unit else 1.0), db


def _solve_batch(size: Any, values: Any, axes: Any, **params: Any) -> Any:
    return triangular_solve(*[I._front(v, a, size) for v, a in zip(values, axes)], **params), 0


_TRIANGLE = np.tril(np.cos(np.arange(9.0)).reshape(3, 3)) + 3 * np.eye(3)
triangular_solve: Primitive = register(
    Primitive(
        "triangular_solve",
        _solve_infer,
        _solve_reference,
        _solve_vjp,
        _solve_batch,
        samples=tuple(
            Sample((m.astype(k), (3, 2)), {"lower": lower, "trans": trans, "unit": unit}, dtypes=(k, k))
            for k in KINDS
            for lower, m in ((True, _TRIANGLE), (False, _TRIANGLE.T.copy()))
            for trans, unit in (("N", False), ("T", False), ("N", True))
        )
        + (Sample(((2, 0, 0), (2, 0, 3)), {"lower": True, "trans": "N", "unit": False}),),
        dtypes=KINDS,
        doc="The solution x of op(a) x = b for triangular a, of which the other triangle is not read; NaN where a is singular.",
    )
)


# Cholesky.


def _cholesky_infer(a: TensorType) -> TensorType:
    _matrix("cholesky", a)
    return a


def _cholesky_reference(a: Any) -> Any:
    try:
        return np.linalg.cholesky(a)
    except np.linalg.LinAlgError:

        def one(m: Any) -> Any:
            try:
                return (np.linalg.cholesky(m),)
            except np.linalg.LinAlgError:
                return (np.full(m.shape, np.nan, m.dtype),)

        return _stacked(one, a)[0]


def _cholesky_vjp(ct: Node, out: Node, a: Node) -> tuple[Node]:
    # S = L^-H phi(L^H ct) L^-1, and its Hermitian part.
    phi = _triangle(matmul(adjoint(out), ct), True, 0.5)
    left = triangular_solve(out, phi, lower=True, trans="C", unit=False)
    both = adjoint(triangular_solve(out, adjoint(left), lower=True, trans="C", unit=False))
    return (E.mul(E.add(both, adjoint(both)), 0.5),)


def _positive(n: int, k: str) -> Any:
    m = np.sin(np.arange(float(n * n))).reshape(n, n)
    return (m @ m.T + n * np.eye(n)).astype(k)


cholesky: Primitive = register(
    Primitive(
        "cholesky",
        _cholesky_infer,
        _cholesky_reference,
        _cholesky_vjp,
        _batch(lambda: cholesky),
        samples=tuple(Sample((_positive(3, k),), dtypes=(k,), differentiable=False) for k in KINDS)
        + (Sample(((2, 0, 0),)),),
        dtypes=KINDS,
        doc="The lower triangular L with positive diagonal and L L^H = a, of which the lower triangle is read; NaN where there is none.",
    )
)


# Eigenvalues.


def _eigh_infer(a: TensorType, *, lower: bool) -> tuple[TensorType, TensorType]:
    _matrix("eigh", a)
    return tensor_type(a.shape[:-1], _part(a)), a


def _eigh_vjp(ct: Any, out: Any, a: Node, *, lower: bool) -> tuple[Optional[Node]]:
    w, v = out
    if ct[0] is None and ct[1] is None:
        return (None,)
    middle = _diagonal_of(_as(ct[0], a)) if ct[0] is not None else None
    if ct[1] is not None:
        turned = _over_differences(matmul(adjoint(v), ct[1]), w)
        middle = turned if middle is None else E.add(middle, turned)
    return (matmul(matmul(v, middle), adjoint(v)),)


eigh: Primitive = register(
    Primitive(
        "eigh",
        _eigh_infer,
        lambda a, *, lower: tuple(np.linalg.eigh(a, "L" if lower else "U")),
        _eigh_vjp,
        _batch(lambda: eigh),
        samples=tuple(Sample((_positive(3, k),), {"lower": True}, dtypes=(k,), differentiable=False) for k in KINDS),
        dtypes=KINDS,
        doc="The eigenvalues, ascending, and the orthonormal eigenvectors, as columns, of Hermitian matrices, of which one triangle is read.",
    )
)


def _eig_infer(a: TensorType) -> tuple[TensorType, TensorType]:
    _matrix("eig", a)
    kind = a.dtype if a.dtype.is_complex else complex_of(a.dtype)
    return tensor_type(a.shape[:-1], kind), tensor_type(a.shape, kind)


def _eig_reference(a: Any) -> Any:
    kind = np.result_type(a.dtype, np.complex64)
    w, v = np.linalg.eig(a)
    return w.astype(kind), v.astype(kind)


def _eig_vjp(ct: Any, out: Any, a: Node) -> tuple[Optional[Node]]:
    w, v = out
    if ct[0] is None and ct[1] is None:
        return (None,)
    middle: Any = None if ct[0] is None else _diagonal_of(ct[0])
    if ct[1] is not None:
        inner = matmul(adjoint(v), ct[1])
        scale = E.select(_on_diagonal(inner), E.cast(real(inner), dtype=inner.dtype), 0)
        free = E.sub(inner, matmul(matmul(adjoint(v), v), scale))
        turned = _over_differences(free, conjugate(w))
        middle = turned if middle is None else E.add(middle, turned)
    # v^-H m v^H, by the decomposition of v^H.
    found = matmul(solve(adjoint(v), middle), adjoint(v))
    return (found if a.dtype.is_complex else real(found),)


def _on_diagonal(x: Node) -> Node:
    row, column = (S.iota(shape=tuple(x.shape[-2:]), axis=axis, dtype=int32) for axis in (0, 1))
    return E.eq(row, column)


eig: Primitive = register(
    Primitive(
        "eig",
        _eig_infer,
        _eig_reference,
        _eig_vjp,
        _batch(lambda: eig),
        samples=tuple(Sample((_positive(3, k),), dtypes=(k,), differentiable=False) for k in KINDS),
        dtypes=KINDS,
        doc="The complex eigenvalues, in no particular order, and the eigenvectors of length 1, as columns.",
    )
)


# LU.


def _lu_infer(a: TensorType) -> tuple[TensorType, ...]:
    _matrix("lu", a, square=False)
    rows, columns = a.shape[-2:]
    least = rows if rows <= columns else columns
    return a, tensor_type((*a.shape[:-2], least), int32), tensor_type((*a.shape[:-2], rows), int32)


def _lu_reference(a: Any) -> Any:
    import warnings

    from scipy.linalg import LinAlgWarning, lu_factor

    rows, columns = a.shape[-2:]
    if not a.size:
        lead = a.shape[:-2]
        order = np.broadcast_to(np.arange(rows, dtype=np.int32), (*lead, rows))
        return a, np.zeros((*lead, min(rows, columns)), np.int32), np.array(order)

    def one(m: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LinAlgWarning)
            packed, pivots = lu_factor(m, check_finite=False)
        order = np.arange(rows)
        for i, p in enumerate(pivots):
            order[[i, p]] = order[[p, i]]
        return packed, pivots.astype(np.int32), order.astype(np.int32)

    return _stacked(one, a)


def _lu_vjp(ct: Any, out: Any, a: Node) -> tuple[Optional[Node]]:
    if ct[0] is None:
        return (None,)
    if a.shape[-1] != a.shape[-2]:
        raise NotImplementedError(f"lu: the derivative is known for square matrices only, not for {a.type}")
    packed, _, order = out
    lower = E.add(_triangle(packed, True, 0.0), _eye_like(packed))
    upper = _triangle(packed, False)
    inner = E.add(
        _triangle(matmul(adjoint(lower), _triangle(ct[0], True, 0.0)), True, 0.0),
        _triangle(matmul(_triangle(ct[0], False), adjoint(upper)), False),
    )
    left = triangular_solve(lower, inner, lower=True, trans="C", unit=True)
    rows = adjoint(triangular_solve(upper, adjoint(left), lower=False, trans="N", unit=False))
    return (
        I.put_along(
            S.full(rows.shape, 0, rows.dtype),
            _spread(order, rows),
            rows,
            axis=rows.type.rank - 2,
            mode="set",
            bounds="drop",
        ),
    )


def _spread(order: Node, like: Node) -> Node:
    return S.broadcast_to(_rows(order), like.shape)


lu: Primitive = register(
    Primitive(
        "lu",
        _lu_infer,
        _lu_reference,
        _lu_vjp,
        _batch(lambda: lu),
        samples=tuple(Sample((_positive(3, k),), dtypes=(k,)) for k in KINDS)
        + (Sample(((2, 3, 4),), differentiable=False),),
        dtypes=KINDS,
        doc="L (unit diagonal) and U in one matrix, the row exchanges in LAPACK's form counted from 0, and the order of rows: a[order] = L U.",
    )
)


def solve(a: Node, b: Node) -> Node:
    """The solution x of a x = b for square matrices."""
    packed, _, order = lu.outputs(a)
    turned = I.take_along(b, _spread(order, b), axis=b.type.rank - 2, bounds="drop")
    middle = triangular_solve(packed, turned, lower=True, trans="N", unit=True)
    return triangular_solve(packed, middle, lower=False, trans="N", unit=False)


# QR.


def _qr_infer(a: TensorType, *, full: bool) -> tuple[TensorType, TensorType]:
    _matrix("qr", a, square=False)
    rows, columns = a.shape[-2:]
    inner = rows if full or rows <= columns else columns
    return tensor_type((*a.shape[:-2], rows, inner), a.dtype), tensor_type((*a.shape[:-2], inner, columns), a.dtype)


def _qr_vjp(ct: Any, out: Any, a: Node, *, full: bool) -> tuple[Optional[Node]]:
    q, r = out
    rows, columns = a.shape[-2:]
    if ct[0] is None and ct[1] is None:
        return (None,)
    if full and rows > columns:
        raise NotImplementedError(
            f"qr: the derivative of the complete decomposition of {a.type} is not unique; use the reduced one"
        )
    dq = ct[0] if ct[0] is not None else S.zeros_like(q)
    dr = ct[1] if ct[1] is not None else S.zeros_like(r)
    if rows < columns:
        # a = [a1 a2] = q [r1 r2]: a1 as a square matrix, and a2 = q r2.
        last = a.type.rank - 1
        r1, d1, d2, a2 = (
            S.slice_axis(x, last, *b)
            for x, b in ((r, (0, rows)), (dr, (0, rows)), (dr, (rows, columns)), (a, (rows, columns)))
        )
        first = _qr_square(E.add(dq, matmul(a2, adjoint(d2))), d1, q, r1)
        return (S.concat([first, matmul(q, d2)], axis=last),)
    return (_qr_square(dq, dr, q, r),)


def _qr_square(dq: Node, dr: Node, q: Node, r: Node) -> Node:
    m = E.sub(matmul(r, adjoint(dr)), matmul(adjoint(dq), q))
    below = _triangle(m, True, 0.0)
    diagonal = E.select(_on_diagonal(m), _as(real(m), m) if m.dtype.is_complex else m, 0)
    inner = E.add(dq, matmul(q, E.add(E.add(below, adjoint(below)), diagonal)))
    return adjoint(triangular_solve(r, adjoint(inner), lower=False, trans="N", unit=False))


def _qr_reference(a: Any, *, full: bool) -> Any:
    return tuple(np.linalg.qr(a, "complete" if full else "reduced"))


qr: Primitive = register(
    Primitive(
        "qr",
        _qr_infer,
        _qr_reference,
        _qr_vjp,
        _batch(lambda: qr),
        samples=tuple(
            Sample(
                (np.sin(np.arange(1.0, 13.0) ** 2).reshape(s).astype(k),),
                {"full": f},
                dtypes=(k,),
                differentiable=not f,
            )
            for k in KINDS
            for s in ((4, 3), (3, 4), (1, 4, 3))
            for f in (False, True)
        ),
        dtypes=KINDS,
        doc="Orthonormal columns q and upper triangular r with q r = a.",
    )
)


# Singular values.


def _svd_infer(a: TensorType, *, full: bool, vectors: bool) -> Any:
    _matrix("svd", a, square=False)
    rows, columns = a.shape[-2:]
    least = rows if rows <= columns else columns
    values = tensor_type((*a.shape[:-2], least), _part(a))
    if not vectors:
        return values
    u = tensor_type((*a.shape[:-2], rows, rows if full else least), a.dtype)
    return u, values, tensor_type((*a.shape[:-2], columns if full else least, columns), a.dtype)


def _svd_reference(a: Any, *, full: bool, vectors: bool) -> Any:
    if not vectors:
        return np.linalg.svd(a, compute_uv=False)
    return tuple(np.linalg.svd(a, full_matrices=full))


def _svd_vjp(ct: Any, out: Any, a: Node, *, full: bool, vectors: bool) -> tuple[Optional[Node]]:
    if not vectors:
        u, _, vh = svd.outputs(a, full=False, vectors=True)
        return (matmul(E.mul(u, _as(_columns(ct), a)), vh),)
    if all(c is None for c in ct):
        return (None,)
    rows, columns = a.shape[-2:]
    if (ct[0] is not None or ct[2] is not None) and (a.dtype.is_complex or (full and rows != columns)):
        what = "complex matrices" if a.dtype.is_complex else "full matrices that are not square"
        raise NotImplementedError(
            f"svd: the derivative by the vectors of {what} is not unique; use the singular values"
        )
    u, s, vh = out
    least = s.shape[-1]
    u = S.slice_axis(u, u.type.rank - 1, 0, least)
    vh = S.slice_axis(vh, vh.type.rank - 2, 0, least)
    inner = _diagonal_of(_as(ct[1], a)) if ct[1] is not None else S.zeros_like(matmul(adjoint(u), u))
    squares, scale = E.mul(s, s), _as(s, a)
    safe = E.select(E.eq(scale, 0), 1, scale)
    rest: Optional[Node] = None
    if ct[0] is not None:
        turn = matmul(adjoint(u), ct[0])
        inner = E.add(inner, E.mul(_over_differences(E.sub(turn, adjoint(turn)), squares), _columns(scale)))
        if rows > columns:
            rest = matmul(E.div(E.sub(ct[0], matmul(u, turn)), _columns(safe)), vh)
    if ct[2] is not None:
        turn = matmul(vh, adjoint(ct[2]))
        inner = E.add(inner, E.mul(_rows(scale), _over_differences(E.sub(turn, adjoint(turn)), squares)))
        if columns > rows:
            more = matmul(u, E.div(E.sub(ct[2], matmul(adjoint(turn), vh)), _rows(safe)))
            rest = more if rest is None else E.add(rest, more)
    found = matmul(matmul(u, inner), vh)
    return (found if rest is None else E.add(found, rest),)


svd: Primitive = register(
    Primitive(
        "svd",
        _svd_infer,
        _svd_reference,
        _svd_vjp,
        _batch(lambda: svd),
        samples=tuple(
            Sample(
                (np.sin(np.arange(1.0, 13.0) ** 2).reshape(4, 3).astype(k),),
                {"full": f, "vectors": v},
                dtypes=(k,),
                differentiable=not v,
            )
            for k in KINDS
            for f, v in ((False, False), (False, True), (True, True))
        ),
        dtypes=KINDS,
        doc="u, the singular values in descending order, and v^H with u diag(s) v^H = a; or the values alone.",
    )
)


# Exponentials, and products of reflections.


def _exponential_reference(a: Any) -> Any:
    from scipy.linalg import expm

    return _stacked(lambda m: (expm(m).astype(m.dtype),), a)[0] if a.size else a


def _exponential_vjp(ct: Node, out: Node, a: Node) -> tuple[Node]:
    # The upper right block of exp [[a^H, ct], [0, a^H]].
    rank, n = a.type.rank, a.shape[-1]
    turned = adjoint(a)
    upper = S.concat([turned, ct], axis=rank - 1)
    lower = S.concat([S.zeros_like(turned), turned], axis=rank - 1)
    both = matrix_exponential(S.concat([upper, lower], axis=rank - 2))
    top = S.slice_axis(both, rank - 2, 0, n)
    return (S.slice_axis(top, rank - 1, n, n + n),)


def _square_infer(a: TensorType) -> TensorType:
    _matrix("matrix_exponential", a)
    return a


matrix_exponential: Primitive = register(
    Primitive(
        "matrix_exponential",
        _square_infer,
        _exponential_reference,
        _exponential_vjp,
        _batch(lambda: matrix_exponential),
        samples=(Sample(((3, 3),)), Sample(((2, 2, 2),)), Sample(((2, 0, 0),))),
        dtypes=KINDS,
        doc="The sum of a^k / k! over k.",
    )
)


def _householder_infer(a: TensorType) -> tuple[TensorType, TensorType]:
    _matrix("householder", a, square=False)
    rows, columns = a.shape[-2:]
    return a, tensor_type((*a.shape[:-2], rows if rows <= columns else columns), a.dtype)


def _householder_reference(a: Any) -> Any:
    if not a.size:
        return a, np.zeros((*a.shape[:-2], min(a.shape[-2:])), a.dtype)
    turned, tau = np.linalg.qr(a, "raw")
    return np.swapaxes(turned, -1, -2), tau


def _householder_vjp(ct: Any, out: Any, a: Node) -> tuple[Optional[Node]]:
    raise NotImplementedError("geqrf has no derivative; qr has one")


householder: Primitive = register(
    Primitive(
        "householder",
        _householder_infer,
        _householder_reference,
        _householder_vjp,
        _batch(lambda: householder),
        samples=tuple(Sample((s,), differentiable=False) for s in ((4, 3), (3, 4), (2, 3, 3))),
        dtypes=KINDS,
        doc="LAPACK's form of a = q r: r above, and below the diagonal the vectors of the reflections whose product is q; their factors.",
    )
)
