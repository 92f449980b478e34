"""Decompositions of matrices and triangular systems, by LAPACK, for matrices in the last two axes.

The derivatives are the adjoints of the differentials of the defining equations (Giles, "An extended
collection of matrix derivative results", 2008; Seeger et al., "Auto-differentiating linear
algebra", 2017; Boeddeker et al., "On the computation of complex-valued gradients", 2017). `H` is
the conjugate transpose throughout, so one formula serves real and complex matrices. Where
eigenvalues or singular values coincide, the vectors are not differentiable; their terms are left
out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive, Sample, need_kind, outputs_of, register, same_dtype
from mycel._src.compiler.prims.complex import conjugate, part_of, real
from mycel._src.compiler.prims.factors import Factor, leading_factors, named
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.compiler.prims.linear_algebra import lapack
from mycel._src.compiler.prims.matrix_product import matmul, swap_last
from mycel._src.foundation import arguments
from mycel._src.foundation.dtype import int32
from mycel._src.foundation.errors import ShapeError

__all__ = ["cholesky", "householder", "lu", "qr", "solve", "triangular_solve"]


KINDS = ("float32", "float64")


def _matrix(name: str, a: TensorType, square: bool = True) -> None:
    need_kind(name, "fc", a)
    if a.dtype.kind == "f" and a.dtype.itemsize < 4:
        raise TypeError(
            f"{name} takes float32, float64, complex64 or complex128 matrices, not {a.dtype.name}; cast the tensor "
            "first"
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
    """Return the conjugate transpose of the last two axes."""
    return swap_last(conjugate(x))


def _triangle(x: Node, lower: bool, diagonal: float = 1.0) -> Node:
    """Return one triangle of each matrix, with the diagonal multiplied by `diagonal`."""
    shape = tuple(x.shape[-2:])
    row, column = (S.iota(shape=shape, axis=axis, dtype=int32) for axis in (0, 1))
    kept = E.gt(row, column) if lower else E.lt(row, column)
    on = E.mul(x, diagonal) if diagonal != 1 else x
    return E.select(kept, x, E.select(E.eq(row, column), on, 0))


def _diagonal_of(values: Node) -> Node:
    """Return diagonal matrices with the vectors `values` on their diagonals."""
    n = values.shape[-1]
    row, column = (S.iota(shape=(n, n), axis=axis, dtype=int32) for axis in (0, 1))
    return E.select(E.eq(row, column), S.reshape(values, (*values.shape, 1)), 0)


def _eye_like(x: Node) -> Node:
    return _diagonal_of(S.full(x.shape[:-1], 1, x.dtype))


def _as(x: Node, like: Node) -> Node:
    return x if x.dtype is like.dtype else E.cast(x, dtype=like.dtype)


def _columns(values: Node) -> Node:
    return S.reshape(values, (*values.shape[:-1], 1, values.shape[-1]))


def _rows(values: Node) -> Node:
    return S.reshape(values, (*values.shape, 1))


def _on_diagonal(x: Node) -> Node:
    row, column = (S.iota(shape=tuple(x.shape[-2:]), axis=axis, dtype=int32) for axis in (0, 1))
    return E.eq(row, column)


# Triangular systems.


def _solve_infer(a: TensorType, b: TensorType, *, lower: bool, trans: str, unit: bool) -> TensorType:
    _matrix("triangular_solve", a)
    same_dtype("triangular_solve", a, b)
    arguments.one_of("triangular_solve", "trans", trans, ("N", "T", "C"))
    if b.rank != a.rank or a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2]:
        raise ShapeError(f"triangular_solve: the right side {b} does not fit the matrices {a}")
    return b


def _stacked(function: Callable[..., Any], *arrays: Any) -> Any:
    """Apply a function of matrices to each of a stack, and stack each of its results."""
    lead = arrays[0].shape[:-2]
    flat = [a.reshape(-1, *a.shape[-2:]) for a in arrays]
    found = [function(*matrices) for matrices in zip(*flat)]
    results = [np.stack([np.asarray(f[k]) for f in found]) for k in range(len(found[0]))]
    return tuple(r.reshape(*lead, *r.shape[1:]) for r in results)


def _solve_reference(a: Any, b: Any, *, lower: bool, trans: str, unit: bool) -> Any:
    from scipy.linalg import solve_triangular

    if not b.size:
        return b

    if a.dtype == b.dtype:
        found = lapack.solve_triangle(a, b, lower, trans != "N", unit)
        if found is not None:
            return found

    def one(p: Any, q: Any) -> Any:
        diagonal = np.diagonal(p)
        if not unit and np.any(diagonal == 0):
            return (np.full(q.shape, np.nan, q.dtype),)
        return (solve_triangular(p, q, trans=trans, lower=lower, unit_diagonal=unit, check_finite=False),)

    return _stacked(one, a, b)[0]


def _solve_factors(node: Node) -> tuple[Factor, ...]:
    sides = (*range(node.type.rank - 2), None, "side")
    return named(node, [sides[:-2], sides], [sides])


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
        factors=_solve_factors,
        doc="The solution x of op(a) x = b for triangular a, of which the other triangle is not read; NaN where a is "
        "singular.",
    )
)


# Cholesky.


def _cholesky_infer(a: TensorType) -> TensorType:
    _matrix("cholesky", a)
    return a


def _cholesky_reference(a: Any) -> Any:
    found = lapack.cholesky(a)
    if found is not None:
        return found
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
        factors=lambda node: leading_factors(node, node.inputs[0].type.rank - 2),
        doc="The lower triangular L with positive diagonal and L L^H = a, of which the lower triangle is read; NaN "
        "where there is none.",
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
        with warnings.catch_warnings(), lapack.alone():
            warnings.simplefilter("ignore", LinAlgWarning)
            packed, pivots = lu_factor(m, check_finite=False)
        order = np.arange(rows)
        for i, p in enumerate(pivots):
            order[[i, p]] = order[[p, i]]
        return packed, pivots.astype(np.int32), order.astype(np.int32)

    return _stacked(one, a)


def _lu_vjp(ct: Any, out: Any, a: Node) -> tuple[Node | None]:
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
        factors=lambda node: leading_factors(node, node.inputs[0].type.rank - 2),
        doc="L (unit diagonal) and U in one matrix, the row exchanges in LAPACK's form counted from 0, and the order "
        "of rows: a[order] = L U.",
    )
)


def solve(a: Node, b: Node) -> Node:
    """Return the solution x of a x = b for square matrices a."""
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


def _qr_vjp(ct: Any, out: Any, a: Node, *, full: bool) -> tuple[Node | None]:
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
    with lapack.alone():
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
        factors=lambda node: leading_factors(node, node.inputs[0].type.rank - 2),
        doc="Orthonormal columns q and upper triangular r with q r = a.",
    )
)


def _householder_infer(a: TensorType) -> tuple[TensorType, TensorType]:
    _matrix("householder", a, square=False)
    rows, columns = a.shape[-2:]
    return a, tensor_type((*a.shape[:-2], rows if rows <= columns else columns), a.dtype)


def _householder_reference(a: Any) -> Any:
    if not a.size:
        return a, np.zeros((*a.shape[:-2], min(a.shape[-2:])), a.dtype)
    with lapack.alone():
        turned, tau = np.linalg.qr(a, "raw")
    return np.swapaxes(turned, -1, -2), tau


def _householder_vjp(ct: Any, out: Any, a: Node) -> tuple[Node | None]:
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
        factors=lambda node: leading_factors(node, node.inputs[0].type.rank - 2),
        doc="LAPACK's form of a = q r: r above, and below the diagonal the vectors of the reflections whose product is "
        "q; their factors.",
    )
)
