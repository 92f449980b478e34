"""Simplification rules of arithmetic, comparisons, selection and conversion."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import constant
from mycel._src.compiler.prims.parameter_assignment import assigned
from mycel._src.compiler.transforms.optimisation.rewrite_rules import (
    Context,
    full,
    is_close_under_rounding,
    rule,
    uniform,
)
from mycel._src.foundation.dtype import DType, bool_

__all__ = ["is_lossless"]


def _is(value: Any, number: float) -> bool:
    return value is not None and bool(value == number)


def _constant_operand(node: Node) -> tuple[Node | None, Any]:
    """Return the other operand and the value of a uniform one; None if neither is uniform."""
    x, y = node.inputs
    value = uniform(y)
    if value is not None:
        return x, value
    value = uniform(x)
    return (None, None) if value is None else (y, value)


def _negated(value: Any, dtype: DType) -> Node:
    with np.errstate(all="ignore"):
        return constant(np.negative(np.asarray(value, dtype.numpy)), dtype)


@rule(E.add)
def _add(node: Node, context: Context) -> Node | None:
    x, y = node.inputs
    rest, value = _constant_operand(node)
    if rest is not None and _is(value, 0):
        return context.broadcast(rest, node.shape)
    if y.prim is E.neg:
        return E.sub.node(x, y.inputs[0])
    if x.prim is E.neg:
        return E.sub.node(y, x.inputs[0])
    return _joined(node, context) if node.dtype.is_integer else None


@rule(E.sub)
def _sub(node: Node, context: Context) -> Node | None:
    x, y = node.inputs
    if _is(uniform(y), 0):
        return context.broadcast(x, node.shape)
    if _is(uniform(x), 0):
        return context.broadcast(context.make(E.neg, y), node.shape)
    if y.prim is E.neg:
        return E.add.node(x, y.inputs[0])
    if x is y and node.dtype.is_integer:
        return full(node, 0, context)
    return None


@rule(E.mul)
def _mul(node: Node, context: Context) -> Node | None:
    if node.dtype.is_complex:
        return None
    x, y = node.inputs
    rest, value = _constant_operand(node)
    if rest is None:
        if x.prim is E.neg and y.prim is E.neg:
            return E.mul.node(x.inputs[0], y.inputs[0])
        return None
    if _is(value, 1):
        return context.broadcast(rest, node.shape)
    if node.dtype.is_signed and _is(value, -1):
        return context.broadcast(context.make(E.neg, rest), node.shape)
    if node.dtype.is_integer and _is(value, 0):
        return full(node, 0, context)
    if rest.prim is E.neg:
        return E.mul.node(context.broadcast(rest.inputs[0], node.shape), _negated(value, node.dtype))
    return _joined(node, context)


def _joined(node: Node, context: Context) -> Node | None:
    """Return ``(x * a) * b`` as ``x * (a * b)``, and sums of integers likewise."""
    if not is_close_under_rounding(node):
        return None
    inner, outer = _constant_operand(node)
    if inner is None or inner.prim is not node.prim or not context.is_single(inner):
        return None
    x, first = _constant_operand(inner)
    if x is None:
        return None
    value = _combined(np.asarray(first), np.asarray(outer), node)
    if value is None:
        return None
    assert node.prim is not None
    joined = node.prim.node(x, constant(value, node.dtype))
    return joined if joined.type is node.type else context.broadcast(context.simplify(joined), node.shape)


def _combined(a: Any, b: Any, node: Node) -> Any:
    """Return ``a * b`` or ``a + b``, as the operation of `node` is.

    Returns None for a product that overflows or underflows, as the two factors in turn may not.
    """
    with np.errstate(all="ignore"):
        value = np.add(a, b) if node.prim is E.add else np.multiply(a, b)
    return value if node.dtype.is_integer or _is_ordinary(value, node.dtype) else None


def _is_ordinary(value: Any, dtype: DType) -> bool:
    return bool(np.isfinite(value)) and abs(value) >= np.finfo(dtype.numpy).tiny


@rule(E.div)
def _div(node: Node, context: Context) -> Node | None:
    if node.dtype.is_complex:
        return None
    x, y = node.inputs
    value = uniform(y)
    if _is(value, 1):
        return context.broadcast(x, node.shape)
    if _is(value, -1):
        return context.broadcast(context.make(E.neg, x), node.shape)
    if x.prim is E.neg and y.prim is E.neg:
        return E.div.node(x.inputs[0], y.inputs[0])
    if value is not None and node.dtype.name in ("float32", "float64"):
        significand, exponent = math.frexp(abs(float(value)))
        # The reciprocal of a power of two is exact, so that the product rounds as the quotient
        # does.
        if significand == 0.5 and _is_ordinary(np.asarray(1 / float(value), node.dtype.numpy), node.dtype):
            return E.mul.node(x, context.broadcast(constant(1 / float(value), node.dtype), y.shape))
    return None


@rule(E.pow_)
def _pow(node: Node, context: Context) -> Node | None:
    x, y = node.inputs
    value = uniform(y)
    if value is None:
        return None
    if _is(value, 0):
        return full(node, 1, context)
    if _is(value, 1):
        return context.broadcast(x, node.shape)
    if _is(value, 2):
        return context.broadcast(context.make(E.mul, x, x), node.shape)
    if value in (3, 4) and is_close_under_rounding(node):
        square = context.make(E.mul, x, x)
        return context.broadcast(context.make(E.mul, square, x if _is(value, 3) else square), node.shape)
    # The other operations round better than the power does, and so otherwise in 16 bits.
    if not node.dtype.is_floating or not is_close_under_rounding(node):
        return None
    if _is(value, -1):
        return context.broadcast(context.make(E.div, constant(1, x.dtype), x), node.shape)
    if _is(value, 0.5):
        root = context.make(E.sqrt, x)
        if not _is_above_minus_infinity(x, 6):
            # (-inf) ** 0.5 is inf.
            low = context.make(E.eq, x, constant(-math.inf, x.dtype))
            root = context.make(E.SELECT, low, constant(math.inf, x.dtype), root)
        return context.broadcast(root, node.shape)
    if _is(value, -0.5) and _is_above_zero(x):
        return context.broadcast(context.make(E.rsqrt, x), node.shape)
    return None


def _is_above_zero(x: Node) -> bool:
    """Return whether a value is evidently above 0, NaN aside.

    It is where a positive constant is added to a value that is not negative.
    """
    if x.prim is not E.add:
        return False
    rest, value = _constant_operand(x)
    return rest is not None and bool(value > 0) and _is_above_minus_infinity(rest, 6)


_NEVER_NEGATIVE = frozenset({E.abs_, E.exp, E.exp2, E.sigmoid, E.sqrt})
_KEEPS_SIGN = frozenset(
    {
        E.add,
        E.mul,
        E.minimum,
        R.reduce_sum,
        R.reduce_max,
        R.reduce_min,
        R.reduce_prod,
        S.RESHAPE,
        S.TRANSPOSE,
        S.BROADCAST_TO,
        S.SLICE,
        S.reverse,
    }
)


def _is_above_minus_infinity(x: Node, depth: int) -> bool:
    """Return whether a value is evidently not negative, NaN aside."""
    if x.prim in _NEVER_NEGATIVE or (x.prim is E.mul and x.inputs[0] is x.inputs[1]):
        return True
    value = uniform(x)
    if value is not None:
        return bool(value >= 0)
    if not depth:
        return False
    if x.prim is E.maximum:
        return any(_is_above_minus_infinity(i, depth - 1) for i in x.inputs)
    if x.prim is E.div:
        divisor = uniform(x.inputs[1])
        return divisor is not None and bool(divisor > 0) and _is_above_minus_infinity(x.inputs[0], depth - 1)
    if x.prim is R.reduce_max and not (x.inputs[0].type.is_static and x.inputs[0].type.size):
        return False
    return x.prim in _KEEPS_SIGN and all(_is_above_minus_infinity(i, depth - 1) for i in x.inputs)


@rule(E.neg)
def _neg(node: Node, context: Context) -> Node | None:
    (x,) = node.inputs
    if x.prim is E.neg:
        return x.inputs[0]
    if x.prim is E.sub and context.is_single(x):
        return E.sub.node(x.inputs[1], x.inputs[0])
    if x.prim is E.mul and context.is_single(x) and not x.dtype.is_complex:
        rest, value = _constant_operand(x)
        if rest is not None:
            return E.mul.node(context.broadcast(rest, node.shape), _negated(value, node.dtype))
    return None


@rule(E.abs_)
def _abs(node: Node, context: Context) -> Node | None:
    (x,) = node.inputs
    if x.prim is E.abs_:
        return x
    return E.abs_.node(x.inputs[0]) if x.prim is E.neg and x.dtype.is_signed else None


_OPPOSITE = {E.eq: E.ne, E.ne: E.eq}
_OPPOSITE_ORDER = {E.lt: E.ge, E.ge: E.lt, E.gt: E.le, E.le: E.gt}


@rule(E.logical_not)
def _logical_not(node: Node, context: Context) -> Node | None:
    (x,) = node.inputs
    if x.prim is E.logical_not:
        return x.inputs[0]
    if x.prim in _OPPOSITE:
        return _OPPOSITE[x.prim].node(*x.inputs)
    # NaN is neither below nor above: only types without it have opposite orders.
    if x.prim in _OPPOSITE_ORDER and x.inputs[0].dtype.kind in "iub":
        return _OPPOSITE_ORDER[x.prim].node(*x.inputs)
    return None


@rule(E.maximum, E.minimum, E.logical_and, E.logical_or, E.bitwise_and, E.bitwise_or)
def _idempotent(node: Node, context: Context) -> Node | None:
    return node.inputs[0] if node.inputs[0] is node.inputs[1] else None


@rule(E.logical_and, E.logical_or)
def _logical(node: Node, context: Context) -> Node | None:
    rest, value = _constant_operand(node)
    if rest is None:
        return None
    neutral = node.prim is E.logical_and
    return context.broadcast(rest, node.shape) if bool(value) is neutral else full(node, not neutral, context)


@rule(E.SELECT)
def _select(node: Node, context: Context) -> Node | None:
    condition, x, y = node.inputs
    value = uniform(condition)
    if value is not None:
        return context.broadcast(x if value else y, node.shape)
    if x is y:
        return context.broadcast(x, node.shape)
    return E.SELECT.node(condition.inputs[0], y, x) if condition.prim is E.logical_not else None


@rule(E.cast)
def _cast(node: Node, context: Context) -> Node | None:
    (x,) = node.inputs
    target = node.dtype
    if x.dtype is target:
        return x
    if x.prim is E.cast:
        source = x.inputs[0].dtype
        # Which integer a float outside the range becomes depends on the types on the way.
        settled = x.dtype.kind not in "fc" or target.kind in "fcb" or source in (target, bool_)
        if settled and is_lossless(source, x.dtype):
            return x.inputs[0] if source is target else E.cast.node(x.inputs[0], dtype=target)
    return None


@functools.cache
def is_lossless(source: DType, target: DType) -> bool:
    """Return whether every value of one type is a value of another.

    >>> from mycel._src.foundation.dtype import float32, int16, int32, uint16
    >>> is_lossless(uint16, int32), is_lossless(uint16, int16)
    (True, False)
    >>> is_lossless(int16, float32), is_lossless(int32, float32)
    (True, False)
    """
    if source is target or source is bool_:
        return True
    if target is bool_:
        return False
    if source.kind in "iu":
        bits: int = source.bits - (source.kind == "i")
        if target.kind in "iu":
            return (target.kind == "i" or source.kind == "u") and bits <= target.bits - (target.kind == "i")
        return bits <= _significand(target)
    if target.kind in "iu" or (source.kind == "c" and target.kind != "c"):
        return False
    return _significand(source) <= _significand(target) and _exponent(source) <= _exponent(target)


_FLOAT = {
    "float16": (11, 5),
    "bfloat16": (8, 8),
    "float32": (24, 8),
    "float64": (53, 11),
    "complex64": (24, 8),
    "complex128": (53, 11),
}


def _significand(dtype: DType) -> int:
    return _FLOAT[dtype.name][0]


def _exponent(dtype: DType) -> int:
    return _FLOAT[dtype.name][1]


@rule(E.identity, E.stop_gradient, assigned)
def _copy(node: Node, context: Context) -> Node | None:
    return node.inputs[0]
