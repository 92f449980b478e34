"""Eigenvalues, singular values and exponentials of matrices, which lie in the last two axes.

As in `prims.linear_algebra.decompositions`, whose description names the sources, one formula serves
real and complex matrices. Where eigenvalues or singular values coincide, the vectors are not
differentiable; their terms are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive, Sample, register
from mycel._src.compiler.prims.complex import complex_of, conjugate, real
from mycel._src.compiler.prims.factors import leading_factors
from mycel._src.compiler.prims.linear_algebra import lapack
from mycel._src.compiler.prims.linear_algebra.decompositions import (
    KINDS,
    _as,
    _batch,
    _columns,
    _diagonal_of,
    _matrix,
    _on_diagonal,
    _part,
    _positive,
    _rows,
    _stacked,
    adjoint,
    solve,
)
from mycel._src.compiler.prims.matrix_product import matmul

__all__ = ["eig", "eigh", "matrix_exponential", "svd"]


def _over_differences(x: Node, values: Node) -> Node:
    """Return x[i, j] / (values[j] - values[i]), 0 where the difference is 0."""
    difference = E.sub(_columns(values), _rows(values))
    zero = E.eq(difference, 0)
    return E.select(zero, 0, E.div(x, _as(E.select(zero, 1, difference), x)))


# Eigenvalues.


def _eigh_infer(a: TensorType, *, lower: bool) -> tuple[TensorType, TensorType]:
    _matrix("eigh", a)
    return tensor_type(a.shape[:-1], _part(a)), a


def _eigh_reference(a: Any, *, lower: bool) -> Any:
    found = lapack.eigh(a, lower)
    if found is not None:
        return found
    with lapack.alone():
        return tuple(np.linalg.eigh(a, "L" if lower else "U"))


def _eigh_vjp(ct: Any, out: Any, a: Node, *, lower: bool) -> tuple[Node | None]:
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
        _eigh_reference,
        _eigh_vjp,
        _batch(lambda: eigh),
        samples=tuple(Sample((_positive(3, k),), {"lower": True}, dtypes=(k,), differentiable=False) for k in KINDS),
        dtypes=KINDS,
        factors=lambda node: leading_factors(node, node.inputs[0].type.rank - 2),
        doc="The eigenvalues, ascending, and the orthonormal eigenvectors, as columns, of Hermitian matrices, of which "
        "one triangle is read.",
    )
)


def _eig_infer(a: TensorType) -> tuple[TensorType, TensorType]:
    _matrix("eig", a)
    kind = a.dtype if a.dtype.is_complex else complex_of(a.dtype)
    return tensor_type(a.shape[:-1], kind), tensor_type(a.shape, kind)


def _eig_reference(a: Any) -> Any:
    kind = np.result_type(a.dtype, np.complex64)
    with lapack.alone():
        w, v = np.linalg.eig(a)
    return w.astype(kind), v.astype(kind)


def _eig_vjp(ct: Any, out: Any, a: Node) -> tuple[Node | None]:
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


eig: Primitive = register(
    Primitive(
        "eig",
        _eig_infer,
        _eig_reference,
        _eig_vjp,
        _batch(lambda: eig),
        samples=tuple(Sample((_positive(3, k),), dtypes=(k,), differentiable=False) for k in KINDS),
        dtypes=KINDS,
        factors=lambda node: leading_factors(node, node.inputs[0].type.rank - 2),
        doc="The complex eigenvalues, in no particular order, and the eigenvectors of length 1, as columns.",
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
        found = lapack.singular_values(a)
        return np.linalg.svd(a, compute_uv=False) if found is None else found
    with lapack.alone():
        return tuple(np.linalg.svd(a, full_matrices=full))


def _svd_vjp(ct: Any, out: Any, a: Node, *, full: bool, vectors: bool) -> tuple[Node | None]:
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
    rest: Node | None = None
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
        factors=lambda node: leading_factors(node, node.inputs[0].type.rank - 2),
        doc="u, the singular values in descending order, and v^H with u diag(s) v^H = a; or the values alone.",
    )
)


# Exponentials.


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
        factors=lambda node: leading_factors(node, node.inputs[0].type.rank - 2),
        doc="The sum of a^k / k! over k.",
    )
)
