"""Mean and variance, softmax and its logarithm, with derivatives that use values already in memory.

Compositions of simpler primitives would be correct as well, but their derivatives, made rule by
rule, would keep and read more values than these:

    moments       d x = d mean / n + d variance * 2 (x - mean) / n
    softmax       d x = p (d p - sum(p d p))            with p the result
    log_softmax   d x = d y - exp(y) sum(d y)           with y the result

`moments` are taken of chunks that fit a cache, each around its own mean, and joined (Chan, Golub
and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979): one
pass over memory, and as exact as two.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import DimLike, product
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive, Rounding, Sample, need_kind, register
from mycel._src.compiler.prims.factors import other_axes_factors
from mycel._src.compiler.prims.reduce import Axes, count, reduce_max, reduce_sum, reduced_shape, restore

__all__ = ["log_softmax", "moments", "moments_apart", "softmax"]

CHUNK = 1024  # elements of one result
TOGETHER = 32768  # elements of all results side by side
ROW = 16384  # elements that follow each other in memory


def _moments_infer(x: TensorType, *, axes: Axes) -> tuple[TensorType, TensorType]:
    need_kind("moments", "f", x)
    made = tensor_type(reduced_shape(x, axes, False), x.dtype)
    return made, made


def _moments_reference(x: Any, *, axes: Axes) -> tuple[Any, Any]:
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 else x
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(wide.mean(axes)).astype(x.dtype), np.asarray(wide.var(axes)).astype(x.dtype)


def _moments_vjp(ct: Any, out: Any, x: Node, *, axes: Axes) -> tuple[Node | None]:
    number = S.constant_like(count(x, axes), x)
    result: Node | None = None
    if ct[0] is not None:
        result = S.broadcast_to(restore(E.div(ct[0], number), x, axes), x.shape)
    if ct[1] is not None:
        slope = restore(E.div(E.mul(ct[1], 2.0), number), x, axes)
        part = E.mul(slope, E.sub(x, restore(out[0], x, axes)))
        result = part if result is None else E.add(result, part)
    return (result,)


def _moments_batch(size: Any, values: Any, batch_axes: Any, *, axes: Axes) -> Any:
    return moments(S.move_axis(values[0], batch_axes[0], 0), axes=tuple(a + 1 for a in axes)), (0, 0)


def _moments_expand(x: Node, *, axes: Axes) -> tuple[Node, Node]:
    """Return the moments of chunks that fit a cache, joined.

    Each chunk is reduced around its own mean (Chan, Golub and LeVeque, 1979).
    """
    axes = tuple(sorted(axes))
    kept = tuple([d for a, d in enumerate(x.shape) if a not in axes])
    return _joined(*_chunks(x, axes), kept)


def moments_apart(x: Node, axes: Axes, apart: Axes) -> tuple[Node, Node]:
    """Return the moments of `x` over `axes`, in a form whose axes can be divided.

    Those of `axes` that are in `apart` are reduced as they are, after the others.
    """
    kept = tuple([d for a, d in enumerate(x.shape) if a not in axes])
    outer = tuple([a for a in sorted(axes) if a in apart])
    return _joined(x, tuple([a for a in sorted(axes) if a not in apart]), outer, kept)


def _joined(x: Node, inner: Axes, outer: Axes, kept: tuple[DimLike, ...]) -> tuple[Node, Node]:
    """Return moments of shape `kept`, of chunks over the axes `inner`, joined over `outer`."""
    if not inner:
        inner, outer = outer, ()
    number = S.constant_like(count(x, inner), x)
    means = E.div(reduce_sum(x, axes=inner, keepdims=True), number)
    apart = E.sub(x, means)
    squares = reduce_sum(E.mul(apart, apart), axes=inner, keepdims=True)
    if not outer:
        return S.reshape(means, kept), S.reshape(E.div(squares, number), kept)
    chunks = S.constant_like(count(x, outer), x)
    mean = E.div(reduce_sum(means, axes=outer, keepdims=True), chunks)
    between = E.sub(means, mean)
    within = E.div(reduce_sum(squares, axes=outer, keepdims=True), E.mul(chunks, number))
    variance = E.add(within, E.div(reduce_sum(E.mul(between, between), axes=outer, keepdims=True), chunks))
    return S.reshape(mean, kept), S.reshape(variance, kept)


def _chunks(x: Node, axes: Axes) -> tuple[Node, Axes, Axes]:
    """Return `x` reshaped into chunks, its reduced axes within a chunk, and its axes of chunks.

    Neighbouring axes of a chunk are joined, and one axis may be cut.
    """
    kept = product(d for a, d in enumerate(x.shape) if a not in axes)
    limit = max(min(CHUNK, TOGETHER // max(kept, 1)), 8) if isinstance(kept, int) else CHUNK
    if axes == tuple(range(x.type.rank - len(axes), x.type.rank)):
        limit = ROW
    size = 1
    for k in reversed(range(len(axes))):
        at, d = axes[k], x.shape[axes[k]]
        if isinstance(d, int) and size * d <= limit:
            size *= d
            continue
        room = limit // size
        cut = max([g for g in range(2, room + 1) if d % g == 0], default=1) if isinstance(d, int) else 1
        if size * cut < limit // 16:
            break
        joined = k + 1
        while joined < len(axes) and axes[joined] == at + joined - k:
            joined += 1
        if cut > 1:
            # What is left of the axis, then the rest of it with the axes behind it.
            together = product(x.shape[a] for a in axes[k + 1 : joined]) * cut
            x = S.reshape(x, (*x.shape[:at], d // cut, together, *x.shape[at + joined - k :]))
            behind = [a + 2 - joined + k for a in axes[joined:]]
            return x, (at + 1, *behind), axes[: k + 1]
        return x, axes[k + 1 :], axes[: k + 1]
    return x, axes, ()


moments: Primitive = register(
    Primitive(
        "moments",
        _moments_infer,
        _moments_reference,
        _moments_vjp,
        _moments_batch,
        _moments_expand,
        samples=tuple(
            Sample((shape,), {"axes": axes})
            for shape, axes in (
                ((2, 3, 4), (1,)),
                ((2, 3, 4), (0, 2)),
                ((5,), (0,)),
                ((3, 2, 40, 30), (0, 2, 3)),
                ((2, 2500), (1,)),
                ((3, 4), ()),
            )
        ),
        dtypes=("float32", "float64"),
        rounding=Rounding.ONCE,
        factors=lambda node: other_axes_factors(node, node.params["axes"]),
        doc="The mean and the biased variance over axes.",
    )
)


# Soft-max.


def _soft_infer(name: str) -> Any:
    def infer(x: TensorType, *, axis: int) -> TensorType:
        need_kind(name, "f", x)
        reduced_shape(x, (axis,), False)
        return x

    return infer


def _shifted(x: Any, axis: int) -> Any:
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 else x
    return wide - np.max(wide, axis, keepdims=True, initial=-np.inf)


def _softmax_reference(x: Any, *, axis: int) -> Any:
    with np.errstate(all="ignore"):
        power = np.exp(_shifted(x, axis))
        return (power / power.sum(axis, keepdims=True)).astype(x.dtype)


def _log_softmax_reference(x: Any, *, axis: int) -> Any:
    with np.errstate(all="ignore"):
        shifted = _shifted(x, axis)
        return (shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))).astype(x.dtype)


def _softmax_vjp(ct: Node, out: Node, x: Node, *, axis: int) -> tuple[Node]:
    weighted = E.mul(out, ct)
    return (E.sub(weighted, E.mul(out, reduce_sum(weighted, axes=(axis,), keepdims=True))),)


def _log_softmax_vjp(ct: Node, out: Node, x: Node, *, axis: int) -> tuple[Node]:
    return (E.sub(ct, E.mul(E.exp(out), reduce_sum(ct, axes=(axis,), keepdims=True))),)


def _from_largest(x: Node, axis: int) -> Node:
    return E.sub(x, reduce_max(x, axes=(axis,), keepdims=True))


def _softmax_expand(x: Node, *, axis: int) -> tuple[Node]:
    power = E.exp(_from_largest(x, axis))
    return (E.div(power, reduce_sum(power, axes=(axis,), keepdims=True)),)


def _log_softmax_expand(x: Node, *, axis: int) -> tuple[Node]:
    shifted = _from_largest(x, axis)
    return (E.sub(shifted, E.log(reduce_sum(E.exp(shifted), axes=(axis,), keepdims=True))),)


def _soft(name: str, reference: Any, vjp: Any, expand: Any, doc: str) -> Primitive:
    def batch(size: Any, values: Any, axes: Any, *, axis: int) -> Any:
        return primitive(S.move_axis(values[0], axes[0], 0), axis=axis + 1), 0

    primitive = Primitive(
        name,
        _soft_infer(name),
        reference,
        vjp,
        batch,
        expand,
        samples=tuple(
            Sample((s,), {"axis": a}) for s, a in (((5,), 0), ((3, 7), 1), ((4, 3), 0), ((2, 3, 4), 1), ((2, 0), 0))
        ),
        dtypes=("float32", "float64"),
        rounding=Rounding.ONCE,
        factors=lambda node: other_axes_factors(node, (node.params["axis"],)),
        doc=doc,
    )
    return register(primitive)


softmax: Primitive = _soft(
    "softmax", _softmax_reference, _softmax_vjp, _softmax_expand, "exp(x) / sum(exp(x)) along an axis."
)
log_softmax: Primitive = _soft(
    "log_softmax", _log_softmax_reference, _log_softmax_vjp, _log_softmax_expand, "x - log(sum(exp(x))) along an axis."
)
