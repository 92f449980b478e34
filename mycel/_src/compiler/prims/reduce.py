"""Reductions over axes.

Sums of 16-bit floats accumulate in float32; reductions of no elements give the operation's
identity.

`max` and `min` divide their derivative equally among equal extremes, and are NaN if any element is.
Sums of integers keep their type and are modular.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import product
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Cost, Primitive, Rounding, Sample, need_kind, register
from mycel._src.compiler.prims.elementwise_records import NUMBERS, kind_of
from mycel._src.compiler.prims.factors import Factor, named, other_axes_factors
from mycel._src.foundation.dtype import bool_
from mycel._src.foundation.errors import ShapeError

Axes = tuple[int, ...]


def reduced_shape(x: TensorType, axes: Axes, keepdims: bool) -> tuple[Any, ...]:
    """Return the shape after reducing `axes` (counted from the front)."""
    for a in axes:
        if not 0 <= a < x.rank:
            raise ShapeError(f"axis {a} is out of range for {x}")
    if len(set(axes)) != len(axes):
        raise ShapeError(f"axes {axes} name a dimension of {x} twice")
    if keepdims:
        return tuple(1 if i in axes else d for i, d in enumerate(x.shape))
    return tuple(d for i, d in enumerate(x.shape) if i not in axes)


def restore(y: Node, x: Node, axes: Axes) -> Node:
    """Return a reduced value with the reduced axes back as size 1, to broadcast against `x`."""
    return S.reshape(y, tuple(1 if i in axes else d for i, d in enumerate(x.shape)))


def _batch(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    def rule(size: Any, values: Any, batch_axes: Any, *, axes: Axes, keepdims: bool) -> Any:
        x = S.move_axis(values[0], batch_axes[0], 0)
        return primitive()(x, axes=tuple(a + 1 for a in axes), keepdims=keepdims), 0

    return rule


def _factors(combine: str) -> Callable[[Node], tuple[Factor, ...]]:
    """Return the rule by which each axis is a factor, and reduced ones are combined likewise."""

    def rule(node: Node) -> tuple[Factor, ...]:
        axes, labels = node.params["axes"], range(node.inputs[0].type.rank)
        kept = [None if a in axes else a for a in labels if node.params["keepdims"] or a not in axes]
        return named(node, [labels], [kept], dict.fromkeys(axes, combine))

    return rule


def _reference(function: Any, identity: Any) -> Callable[..., Any]:
    def run(x: Any, *, axes: Axes, keepdims: bool) -> Any:
        kind = x.dtype
        wide = x.astype(np.float32) if kind.itemsize == 2 and kind.kind not in "iub" else x
        with np.errstate(all="ignore"):
            start = {} if identity is None else {"initial": identity(wide.dtype)}
            return np.asarray(function(wide, axis=axes, keepdims=keepdims, **start)).astype(kind)

    return run


def _lowest(kind: Any) -> Any:
    return -np.inf if kind.kind == "f" else (False if kind.kind == "b" else np.iinfo(kind).min)


def _highest(kind: Any) -> Any:
    return np.inf if kind.kind == "f" else (True if kind.kind == "b" else np.iinfo(kind).max)


def _define(
    name: str,
    function: Any,
    identity: Any,
    vjp: Any,
    kinds: str,
    doc: str,
    rounding: Rounding = Rounding.OWN,
    linear: bool = False,
    holomorphic: bool = False,
) -> Primitive:
    def infer(x: TensorType, *, axes: Axes, keepdims: bool) -> TensorType:
        need_kind(name, kinds, x)
        return tensor_type(reduced_shape(x, axes, keepdims), x.dtype)

    dtypes = tuple(n for n in (*NUMBERS, "bool") if kind_of(n) in kinds)
    samples = tuple(
        Sample((shape,), {"axes": axes, "keepdims": keep})
        for shape, axes, keep in (
            ((2, 3, 4), (1,), False),
            ((2, 3, 4), (0, 2), True),
            ((5,), (0,), False),
            ((3, 4), (0,), False),
            ((2, 3), (), False),
            ((), (), False),
            ((2, 0), (1,), False),
            ((2, 37), (1,), False),
        )
    )
    primitive = Primitive(
        name,
        infer,
        _reference(function, identity),
        vjp,
        _batch(lambda: primitive),
        None,
        samples,
        dtypes,
        linear=linear,
        holomorphic=holomorphic,
        cost=Cost.PASS,
        rounding=rounding,
        factors=_factors(name.removeprefix("reduce_")),
        doc=doc,
    )
    return register(primitive)


def _extreme_vjp(ct: Node, out: Node, x: Node, *, axes: Axes, keepdims: bool) -> tuple[Node | None]:
    hit = E.cast(E.eq(x, restore(out, x, axes)), dtype=x.dtype)
    count = reduce_sum(hit, axes=axes, keepdims=True)
    return (E.mul(restore(ct, x, axes), E.div(hit, count)),)


def _prod_vjp(ct: Node, out: Node, x: Node, *, axes: Axes, keepdims: bool) -> tuple[Node | None]:
    # The product of the others is out / x except where x holds zeros: with one zero only that
    # element has a derivative, the product of the rest; with more there is none. Terms that are 0
    # by a factor of such an element stay, for the next derivative: `none` is their sum.
    zero = E.eq(x, 0.0)
    zeros = reduce_sum(E.cast(zero, dtype=x.dtype), axes=axes, keepdims=True)
    rest = reduce_prod(E.select(zero, 1.0, x), axes=axes, keepdims=True)
    none = reduce_sum(E.select(zero, x, 0.0), axes=axes, keepdims=True)
    quotient = E.div(rest, E.select(zero, 1.0, x))
    known = E.select(E.is_finite(rest), rest, 0.0)
    single, pair = E.eq(zeros, 1.0), E.eq(zeros, 2.0)
    alone = E.select(single, rest, E.select(pair, E.mul(E.sub(none, x), known), 0.0))
    beside = E.select(single, E.mul(none, E.select(E.is_finite(quotient), quotient, 0.0)), 0.0)
    others = E.select(E.eq(zeros, 0.0), quotient, E.select(zero, alone, beside))
    return (E.mul(restore(ct, x, axes), others),)


def _sum_vjp(ct: Node, out: Node, x: Node, *, axes: Axes, keepdims: bool) -> tuple[Node]:
    return (S.broadcast_to(restore(ct, x, axes), x.shape),)


reduce_sum: Primitive = _define(
    "reduce_sum",
    np.sum,
    lambda k: k.type(0),
    _sum_vjp,
    "ifuc",
    "The sum over axes; integers wrap.",
    Rounding.SUM,
    linear=True,
)
reduce_max: Primitive = _define(
    "reduce_max", np.max, _lowest, E.in_floats(_extreme_vjp), "ifub", "The largest over axes."
)
reduce_min: Primitive = _define(
    "reduce_min", np.min, _highest, E.in_floats(_extreme_vjp), "ifub", "The smallest over axes."
)
reduce_prod: Primitive = _define(
    "reduce_prod",
    np.prod,
    lambda k: k.type(1),
    E.in_floats(_prod_vjp),
    "ifuc",
    "The product over axes.",
    Rounding.SUM,
    holomorphic=True,
)
reduce_any: Primitive = _define("reduce_any", np.any, None, lambda ct, out, x, **_: (None,), "b", "Whether any holds.")
reduce_all: Primitive = _define("reduce_all", np.all, None, lambda ct, out, x, **_: (None,), "b", "Whether all hold.")


def _define_arg(name: str, function: Any, doc: str) -> Primitive:
    def infer(x: TensorType, *, axis: int) -> TensorType:
        need_kind(name, "fiucb", x)
        if not 0 <= axis < x.rank:
            raise ShapeError(f"{name}: axis {axis} is not an axis of {x}")
        if x.shape[axis] == 0:
            raise ShapeError(f"{name} over axis {axis} of {x}: there is nothing to choose from")
        return tensor_type(x.shape[:axis] + x.shape[axis + 1 :], S.position_type(x.shape[axis]))

    def reference(x: Any, *, axis: int) -> Any:
        return function(x, axis=axis).astype(S.position_type(x.shape[axis]).numpy)

    def batch(size: Any, values: Any, axes: Any, *, axis: int) -> Any:
        return primitive(S.move_axis(values[0], axes[0], 0), axis=axis + 1), 0

    primitive = Primitive(
        name,
        infer,
        reference,
        lambda ct, out, x, **_: (None,),
        batch,
        None,
        (Sample(((2, 5),), {"axis": 1}), Sample(((4, 3),), {"axis": 0}), Sample(((2, 3, 2),), {"axis": 1})),
        (*NUMBERS,),
        factors=lambda node: other_axes_factors(node, (node.params["axis"],)),
        doc=doc,
    )
    return register(primitive)


argmax: Primitive = _define_arg(
    "argmax",
    np.argmax,
    "The index, int32 while that is enough, of the first largest along an axis; the first NaN wins.",
)
argmin: Primitive = _define_arg(
    "argmin",
    np.argmin,
    "The index, int32 while that is enough, of the first smallest along an axis; the first NaN wins.",
)


def count(x: Node, axes: Axes) -> Any:
    """Return how many elements of `x` a reduction over `axes` combines into one."""
    return product(x.shape[a] for a in axes)


def reduce_mean(x: Node, *, axes: Axes, keepdims: bool = False) -> Node:
    """Return the mean over axes, as the sum divided by the count."""
    return E.div(reduce_sum(x, axes=axes, keepdims=keepdims), S.constant_like(count(x, axes), x))


__all__ = [
    "argmax",
    "argmin",
    "bool_",
    "count",
    "reduce_all",
    "reduce_any",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "reduced_shape",
    "restore",
]
