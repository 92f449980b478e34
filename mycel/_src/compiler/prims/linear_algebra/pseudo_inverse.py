"""Pseudo-inverse: the Moore-Penrose inverse p of the matrices a in the last two axes.

    pseudo_inverse(a, atol, rtol; hermitian)

Singular values, or with `hermitian` magnitudes of eigenvalues, of at most max(atol, rtol * the
largest) count as 0; `atol` and `rtol` have one number for each matrix. The derivative is that of
matrices of one rank (Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least
squares problems whose variables separate", 1973),

    d p = -p (d a) p + p p^H (d a)^H (1 - a p) + (1 - p a) (d a)^H p^H p

which has no quotients by differences of singular values, so they may coincide.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import same
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import Primitive, Sample, register
from mycel._src.compiler.prims.factors import Factor, named
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.compiler.prims.linear_algebra import lapack
from mycel._src.compiler.prims.linear_algebra.decompositions import KINDS, _matrix, _part, adjoint
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.foundation.errors import ShapeError

__all__ = ["pseudo_inverse"]


def _infer(a: TensorType, atol: TensorType, rtol: TensorType, *, hermitian: bool) -> TensorType:
    _matrix("pseudo_inverse", a, square=hermitian)
    for t in (atol, rtol):
        if t.dtype is not _part(a) or not same(t.shape, a.shape[:-2]):
            raise ShapeError(f"pseudo_inverse: tolerances must be one number for each matrix of {a}, not {t}")
    return tensor_type((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)


def _reference(a: Any, atol: Any, rtol: Any, *, hermitian: bool) -> Any:
    if not a.size:
        return np.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    found = np.full((*a.shape[:-2], a.shape[-1], a.shape[-2]), np.nan, a.dtype)
    good = np.isfinite(a).all((-1, -2))
    with lapack.alone(), np.errstate(all="ignore"):
        u, s, vh = np.linalg.svd(a[good], full_matrices=False, hermitian=hermitian)
        limit = np.maximum(atol[good][..., None], rtol[good][..., None] * s[..., :1])
        inverse = np.where(s > limit, 1 / np.where(s > limit, s, 1), 0)
        back = [np.conj(np.swapaxes(x, -1, -2)) for x in (u, vh)]
        found[good] = np.matmul(back[1] * inverse[..., None, :], back[0])
    return found


def _vjp(ct: Node, out: Node, a: Node, atol: Node, rtol: Node, *, hermitian: bool) -> tuple[Any, None, None]:
    p, turned, g = out, adjoint(out), adjoint(ct)
    first = matmul(matmul(turned, ct), turned)
    wide = matmul(matmul(g, p), turned)
    second = E.sub(wide, matmul(a, matmul(p, wide)))
    tall = matmul(matmul(turned, p), g)
    third = E.sub(tall, matmul(matmul(tall, p), a))
    found = E.add(E.sub(second, first), third)
    return (E.mul(E.add(found, adjoint(found)), 0.5) if hermitian else found), None, None


def _batch(size: Any, values: Any, axes: Any, *, hermitian: bool) -> Any:
    return pseudo_inverse(*[I._front(v, axis, size) for v, axis in zip(values, axes)], hermitian=hermitian), 0


def _factors(node: Node) -> tuple[Factor, ...]:
    labels = range(node.type.rank - 2)
    return named(node, [labels] * 3, [labels])


_LOW = np.array([[1.0, 2, 0], [2, 4, 0], [0, 0, 1], [1, 2, 1]])
pseudo_inverse: Primitive = register(
    Primitive(
        "pseudo_inverse",
        _infer,
        _reference,
        _vjp,
        _batch,
        samples=(
            Sample(((4, 3), np.array(0.0), np.array(1e-9)), {"hermitian": False}, dtypes=("float64",) * 3),
            Sample(((2, 2, 3), np.zeros(2), np.full(2, 1e-9)), {"hermitian": False}, dtypes=("float64",) * 3),
            Sample(
                (_LOW, np.array(0.0), np.array(1e-9)),
                {"hermitian": False},
                dtypes=("float64",) * 3,
                differentiable=False,
            ),
            Sample(
                (np.eye(3), np.array(0.0), np.array(1e-9)),
                {"hermitian": True},
                dtypes=("float64",) * 3,
                differentiable=False,
            ),
        ),
        dtypes=KINDS,
        factors=_factors,
        doc="The Moore-Penrose inverses of matrices whose small singular values count as 0.",
    )
)
