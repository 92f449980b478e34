"""Determinants of the matrices in the last two axes.

    determinant(a)          det(a)
    det_slope(a, *along)    the derivative by a of D^k det(a)[along]

A determinant is a polynomial of the elements, so all its derivatives are defined for singular
matrices as well. D^k det(a)[g1 ... gk] is the coefficient of t1 ... tk in det(a + t1 g1 + ... + tk
gk), and `det_slope` of no direction is the matrix of cofactors. It is its own derivative: by `a` it
takes the cotangent as one more direction, and by a direction as that direction.

Cofactors of a matrix that has an inverse are det(a) a^-T. With a = u s v those of a singular one
are det(u) det(v) conj(u) c conj(v), where c_i is the product of all s but s_i; the next derivative
has the products of all but two. Further ones are read from values at roots of unity, which for a
polynomial is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive, Sample, constant, register, same_dtype
from mycel._src.compiler.prims.factors import Factor, named
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.compiler.prims.linear_algebra import lapack
from mycel._src.compiler.prims.linear_algebra.decompositions import KINDS, _matrix, lu
from mycel._src.foundation.dtype import int32
from mycel._src.foundation.errors import ShapeError

__all__ = ["det_slope", "determinant"]

Array = Any


def _infer(a: TensorType) -> TensorType:
    _matrix("determinant", a)
    return tensor_type(a.shape[:-2], a.dtype)


def _reference(a: Array) -> Array:
    with lapack.alone(), np.errstate(all="ignore"):
        return np.asarray(np.linalg.det(a), a.dtype)


def diagonal(x: Node) -> Node:
    """Return the diagonals of square matrices."""
    n = x.shape[-1]
    row, column = (S.iota(shape=(n, n), axis=axis, dtype=int32) for axis in (0, 1))
    return R.reduce_sum(E.select(E.eq(row, column), x, 0), axes=(x.type.rank - 1,), keepdims=False)


def _expand(a: Node) -> Node:
    packed, pivots, _ = lu.outputs(a)
    values = diagonal(packed)
    last = (values.type.rank - 1,)
    moved = E.ne(pivots, S.iota(shape=(pivots.shape[-1],), axis=0, dtype=pivots.dtype))
    odd = E.eq(E.mod(R.reduce_sum(E.cast(moved, dtype=int32), axes=last, keepdims=False), 2), 1)
    product = R.reduce_prod(values, axes=last, keepdims=False)
    return E.mul(product, E.select(odd, constant(-1, a.dtype), constant(1, a.dtype)))


def _vjp(ct: Node, out: Node, a: Node) -> tuple[Node]:
    return (E.mul(S.reshape(ct, (*ct.shape, 1, 1)), det_slope(a)),)


def _batch(size: Any, values: Any, axes: Any) -> Any:
    return determinant(S.move_axis(values[0], axes[0], 0)), 0


def _factors(node: Node) -> tuple[Factor, ...]:
    labels = range(node.type.rank)
    return named(node, [labels], [labels])


# Derivatives.


def _slope_infer(a: TensorType, *along: TensorType) -> TensorType:
    _matrix("det_slope", a)
    same_dtype("det_slope", a, *along)
    for g in along:
        if g.shape != a.shape:
            raise ShapeError(f"det_slope: the direction {g} must have the shape of the matrices {a}")
    return a


def _others(x: Array) -> Array:
    """Return the product of all elements along the last axis but the one at each place."""
    ones = np.ones((*x.shape[:-1], 1), x.dtype)
    before = np.concatenate([ones, np.cumprod(x[..., :-1], -1)], -1)
    behind = np.concatenate([np.cumprod(x[..., :0:-1], -1)[..., ::-1], ones], -1)
    return before * behind


def _cofactors(a: Array) -> Array:
    value = np.linalg.det(a)
    singular = value == 0
    if not singular.any():
        return value[..., None, None] * np.swapaxes(np.linalg.inv(a), -1, -2)
    made = np.empty_like(a)
    if not singular.all():
        made[~singular] = _cofactors(a[~singular])
    u, s, v = np.linalg.svd(a[singular].astype(np.result_type(a.dtype, np.float64)))
    scale = (np.linalg.det(u) * np.linalg.det(v))[:, None]
    made[singular] = np.matmul(np.conj(u) * (scale * _others(s))[:, None, :], np.conj(v))
    return made


def _second(a: Array, g: Array) -> Array:
    """Return the derivative by `a` of the sum of `g` times the cofactors."""
    u, s, v = np.linalg.svd(a.astype(np.result_type(a.dtype, np.float64)))
    n = s.shape[-1]
    single = np.eye(n, dtype=bool)
    pairs = np.where(single, 0.0, _others(np.where(single, 1.0, s[..., None, :])))
    inner = np.conj(np.swapaxes(u, -1, -2)) @ g @ np.conj(np.swapaxes(v, -1, -2))
    along = np.einsum("...ij,...ii->...j", pairs, inner)
    turned = np.where(single, along[..., None, :], -pairs * np.swapaxes(inner, -1, -2))
    scale = np.linalg.det(u) * np.linalg.det(v)
    return (np.conj(u) @ (scale[..., None, None] * turned) @ np.conj(v)).astype(a.dtype)


def _slope(a: Array, *along: Array) -> Array:
    if not along:
        return _cofactors(a)
    if len(along) == 1:
        return _second(a, along[0])
    # The coefficient of t in a polynomial of a lower degree than there are points.
    *first, g = along
    sizes = [np.sqrt((np.abs(x) ** 2).sum((-1, -2), keepdims=True)) for x in (a, g)]
    step = np.where(sizes[1] > 0, np.where(sizes[0] > 0, sizes[0], 1) / np.where(sizes[1] > 0, sizes[1], 1), 1)
    count = a.shape[-1]
    total = np.zeros(a.shape, np.complex128)
    for k in range(count):
        turn = np.exp(2j * np.pi * k / count)
        total += _slope((a + step * turn * g).astype(np.complex128), *first) / turn
    found = total / (count * step)
    return (found if a.dtype.kind == "c" else found.real).astype(a.dtype)


def _slope_reference(a: Array, *along: Array) -> Array:
    n = a.shape[-1]
    if not a.size:
        return a
    if len(along) >= n:
        return np.zeros_like(a)  # the polynomial is of degree n
    flat = [x.reshape(-1, n, n) for x in (a, *along)]
    with lapack.alone(), np.errstate(all="ignore"):
        found: Array = np.full(flat[0].shape, np.nan, a.dtype)
        good = np.isfinite(sum(x.sum((-1, -2)) for x in flat))
        found[good] = _slope(*[x[good] for x in flat])
    return found.reshape(a.shape)


def _slope_vjp(ct: Node, out: Node, a: Node, *along: Node) -> tuple[Node | None, ...]:
    rest = [det_slope(a, *along[:i], *along[i + 1 :], ct) for i in range(len(along))]
    return det_slope(a, *along, ct), *rest


def _slope_batch(size: Any, values: Any, axes: Any) -> Any:
    return det_slope(*[I._front(v, axis, size) for v, axis in zip(values, axes)]), 0


def _slope_factors(node: Node) -> tuple[Factor, ...]:
    labels = range(node.type.rank - 2)
    return named(node, [labels] * len(node.inputs), [labels])


_SINGULAR = np.array([[[1.0, 2, 3], [4, 5, 6], [5, 7, 9]], [[2, 0, 1], [0, 3, 0], [1, 0, 1]]])
determinant: Primitive = register(
    Primitive(
        "determinant",
        _infer,
        _reference,
        _vjp,
        _batch,
        _expand,
        samples=(
            Sample(((3, 3),)),
            Sample(((2, 2, 2),)),
            Sample((_SINGULAR,), dtypes=("float64",)),
            Sample(((2, 0, 0),)),
        ),
        dtypes=KINDS,
        holomorphic=True,
        factors=_factors,
        doc="The determinants of square matrices.",
    )
)
det_slope: Primitive = register(
    Primitive(
        "det_slope",
        _slope_infer,
        _slope_reference,
        _slope_vjp,
        _slope_batch,
        samples=(
            Sample(((3, 3),)),
            Sample(((2, 3, 3), (2, 3, 3))),
            Sample((_SINGULAR, (2, 3, 3)), dtypes=("float64",) * 2),
            Sample(((3, 3),) * 3),
            Sample(((2, 0, 0),)),
        ),
        dtypes=KINDS,
        holomorphic=True,
        factors=_slope_factors,
        doc="The derivative of a determinant's derivative along directions, of which there may be none.",
    )
)
