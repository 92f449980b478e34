"""Simplification rules of reductions, and their normal form.

The normal form has ``keepdims=False`` (a reshape puts the axes back), no axis of size 1, and one
reduction in place of successive ones of the same kind. A reduction of a reshaped value may reduce
the value before the reshape: both shapes are cut into the shortest runs of axes with equally many
elements, and a run that is reduced as a whole in one shape is so in the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim, DimLike, product
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import constant
from mycel._src.compiler.transforms.optimisation.arithmetic_rules import _is_ordinary
from mycel._src.compiler.transforms.optimisation.rewrite_rules import (
    Context,
    is_close_under_rounding,
    rule,
    runs_of,
    uniform,
)
from mycel._src.foundation.dtype import DType

__all__ = ["REDUCTIONS"]

REDUCTIONS = (R.reduce_sum, R.reduce_max, R.reduce_min, R.reduce_prod, R.reduce_any, R.reduce_all)
Shape = tuple[DimLike, ...]


def _is_exact(node: Node) -> bool:
    """Return whether a reduction may be cut or joined without another rounding.

    Sums and products of 16-bit floats may not: they round once, at the end.
    """
    return node.prim not in (R.reduce_sum, R.reduce_prod) or is_close_under_rounding(node)


def _reduced(prim: Any, x: Node, axes: tuple[int, ...], context: Context) -> Node:
    return context.make(prim, x, axes=axes, keepdims=False) if axes else x


@rule(*REDUCTIONS)
def _normal_form(node: Node, context: Context) -> Node | None:
    (x,) = node.inputs
    axes = node.params["axes"]
    joined = tuple([a for a in sorted(axes) if x.shape[a] != 1])
    if joined == axes and not node.params["keepdims"] and axes:
        return None
    if not axes:
        return x
    return context.reshape(_reduced(node.prim, x, joined, context), node.shape)


@rule(*REDUCTIONS)
def _twice(node: Node, context: Context) -> Node | None:
    """Return a reduction of a reduction of the same kind as one."""
    (x,) = node.inputs
    if x.prim is not node.prim or x.params["keepdims"] or not context.is_single(x) or not _is_exact(node):
        return None
    inner = x.params["axes"]
    left = [a for a in range(x.inputs[0].type.rank) if a not in inner]
    axes = tuple(sorted([*inner, *[left[a] for a in node.params["axes"]]]))
    assert node.prim is not None
    return node.prim.node(x.inputs[0], axes=axes, keepdims=False)


@rule(*REDUCTIONS)
def _of_reshape(node: Node, context: Context) -> Node | None:
    (x,) = node.inputs
    if x.prim is not S.RESHAPE:
        return None
    source, axes = x.inputs[0], node.params["axes"]
    runs = runs_of(source.shape, x.shape)
    if runs is None:
        return None
    whole: list[int] = []
    for old, new in runs:
        hit = [a in axes for a in new]
        if any(hit) and not all(hit):
            return _neighbours_joined(node, x, context)
        if any(hit):
            whole.extend(old)
    # Who else uses the reshape uses what is below it.
    context.uses[source] = max(context.uses.get(source, 1), context.uses.get(x, 1))
    return context.reshape(_reduced(node.prim, source, tuple(sorted(whole)), context), node.shape)


def _neighbours_joined(node: Node, x: Node, context: Context) -> Node | None:
    """Return a reduction of neighbouring axes as the reduction of one axis of a reshape."""
    axes = node.params["axes"]
    shape: list[DimLike] = []
    merged: list[int] = []
    for a, d in enumerate(x.shape):
        if a in axes and a - 1 in axes:
            shape[-1] = shape[-1] * d
            continue
        if a in axes:
            merged.append(len(shape))
        shape.append(d)
    if len(shape) == x.type.rank:
        return None
    assert node.prim is not None
    return node.prim.node(context.reshape(x.inputs[0], tuple(shape)), axes=tuple(merged), keepdims=False)


@rule(R.reduce_sum, R.reduce_max, R.reduce_min, R.reduce_any, R.reduce_all)
def _of_broadcast(node: Node, context: Context) -> Node | None:
    """Return a reduction without the repeated axes.

    For a sum it is a multiple, for an extreme the value itself.
    """
    (x,) = node.inputs
    if x.prim is not S.BROADCAST_TO:
        return None
    source, axes = x.inputs[0], node.params["axes"]
    extra = x.type.rank - source.type.rank
    repeated = [a for a in axes if a < extra or (source.shape[a - extra] == 1 and x.shape[a] != 1)]
    if not repeated or not all(_is_positive(x.shape[a]) for a in repeated):
        return None
    times = product(x.shape[a] for a in repeated)
    if node.prim is R.reduce_sum and not _can_count(times, node):
        return None
    rest = tuple([a - extra for a in axes if a not in repeated])
    y = _reduced(node.prim, source, rest, context)
    # What is left: the kept axes of the source, of which the repeated ones are reduced as size 1.
    kept = [a for a in range(x.type.rank) if a not in axes]
    y = context.reshape(y, tuple([source.shape[a - extra] for a in kept if a >= extra]))
    if node.prim is R.reduce_sum:
        y = context.make(E.mul, y, constant(times, node.dtype))
    return context.broadcast(y, node.shape)


def _is_positive(size: DimLike) -> bool:
    return size.bounds()[0] >= 1 if isinstance(size, Dim) else size >= 1


def _can_count(times: DimLike, node: Node) -> bool:
    """Return whether multiplying by a count is as accurate as summing, in the type of `node`."""
    if not is_close_under_rounding(node):
        return False
    if isinstance(times, Dim):
        return node.dtype.name in ("float64", "int64", "float32")
    return times <= (np.iinfo(node.dtype.numpy).max if node.dtype.is_integer else _largest_count(node.dtype))


def _largest_count(dtype: DType) -> int:
    return 1 << (53 if dtype.name == "float64" else 24)


@rule(R.reduce_sum)
def _of_multiple(node: Node, context: Context) -> Node | None:
    """Take constant factors and signs out of a sum."""
    (x,) = node.inputs
    if not is_close_under_rounding(node):
        return None
    factors: list[tuple[Any, tuple[Node, ...]]] = []
    while context.is_single(x):
        factor = _factor(x)
        if factor is None:
            break
        factors.append((x.prim, factor))
        x = x.inputs[1] if x.prim is E.mul and uniform(x.inputs[1]) is None else x.inputs[0]
    if not factors:
        return None
    total = _reduced(node.prim, x, node.params["axes"], context)
    for prim, factor in reversed(factors):
        total = context.make(prim, total, *factor)
    return total


@rule(R.reduce_sum)
def _of_row_factors(node: Node, context: Context) -> Node | None:
    """Take factors that are the same along the summed axes out of a sum.

    Sums of one value with several such factors then become one.
    """
    (x,) = node.inputs
    axes = node.params["axes"]
    if not is_close_under_rounding(node) or not x.dtype.is_floating:
        return None
    factors: list[tuple[Any, Node]] = []
    rest = _without_row_factors(x, axes, factors, context, DEEPEST)
    if not factors:
        return None
    total = _reduced(node.prim, rest, axes, context)
    for prim, factor in factors:
        padded = (1,) * (x.type.rank - factor.type.rank) + factor.shape
        total = context.make(
            prim, total, context.reshape(factor, tuple([d for a, d in enumerate(padded) if a not in axes]))
        )
    return total


DEEPEST = 6


def _without_row_factors(
    x: Node, axes: tuple[int, ...], factors: list[tuple[Any, Node]], context: Context, depth: int
) -> Node:
    """Return the rest of a product when factors that are constant along `axes` are taken out.

    The factors are added to `factors`.
    """
    if x.prim not in (E.mul, E.div) or depth == 0:
        return x
    for k in (1, 0) if x.prim is E.mul else (1,):
        factor, other = x.inputs[k], x.inputs[1 - k]
        if other.shape == x.shape and factor.shape != x.shape and _is_same_along(factor, x.type.rank, axes):
            factors.append((x.prim, factor))
            return _without_row_factors(other, axes, factors, context, depth - 1)
    before = len(factors)
    if x.prim is E.div or any(i.shape != x.shape for i in x.inputs):
        if x.inputs[0].shape != x.shape:
            return x
        inner = _without_row_factors(x.inputs[0], axes, factors, context, depth - 1)
        return x if len(factors) == before else context.make(x.prim, inner, x.inputs[1])
    left, right = [_without_row_factors(i, axes, factors, context, depth - 1) for i in x.inputs]
    return x if len(factors) == before else context.make(E.mul, left, right)


def _is_same_along(factor: Node, rank: int, axes: tuple[int, ...]) -> bool:
    """Return whether a factor has one value along the axes.

    Scalars are left to `_of_multiple`.
    """
    missing = rank - factor.type.rank
    return any(d != 1 for d in factor.shape) and all(a < missing or factor.shape[a - missing] == 1 for a in axes)


def _factor(x: Node) -> tuple[Node, ...] | None:
    """Return the scalar that the rest of a product is multiplied, or of a quotient divided, by.

    The tuple is empty for a change of sign; None where there is no such scalar.
    """
    if x.prim is E.neg:
        return ()
    if x.prim not in (E.mul, E.div):
        return None
    for k in (1, 0) if x.prim is E.mul else (1,):
        value = uniform(x.inputs[k])
        if (
            value is not None
            and x.inputs[1 - k].shape == x.shape
            and (x.dtype.is_integer or _is_ordinary(value, x.dtype))
        ):
            return (constant(value, x.dtype),)
    return None
