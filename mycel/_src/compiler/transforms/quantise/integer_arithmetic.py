"""Integer arithmetic of quantised operators: float operations on quantised operands and results.

Quantised values are called *levels*: integers with a scale and a zero point.

Sums of products are exact in 32 bits. A sum of n terms stands for real numbers with the product of
the operands' scales, so a bias has that scale too, and one multiplier takes the sum to the scale of
the result (`requantize`). What gives 8 bits for 8 bits by any function of one number is a table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.convolution.conv import conv
from mycel._src.compiler.prims.indexing.index import take
from mycel._src.compiler.prims.neural.quantisation import int_conv, int_matmul, requantize
from mycel._src.compiler.prims.reduce import reduce_max, reduce_sum
from mycel._src.compiler.transforms.quantise.graph_freezing import literal
from mycel._src.compiler.transforms.quantise.quantisable_regions import Range
from mycel._src.compiler.transforms.quantise.scales import Scale, levels_of, multipliers
from mycel._src.foundation.dtype import int32

__all__ = [
    "Levels",
    "Total",
    "averaged",
    "cut",
    "joined",
    "product_of",
    "rescaled",
    "soft_maximum",
    "summed",
    "table",
    "total_of",
]

Array = np.ndarray[Any, Any]
INT32 = (-(1 << 31), (1 << 31) - 1)
MOST_BIAS = 1 << 30
ANY = Range()


class Levels(NamedTuple):
    """A value as levels: the integers, and what they stand for."""

    node: Node
    scale: Scale

    @property
    def size(self) -> float:
        """The size of a level, which is the same for all."""
        return float(self.scale.size)


class Total(NamedTuple):
    """A sum in 32 bits: the integers and the size of their levels, of zero point 0."""

    node: Node
    size: Array


def total_of(base: Node, bias: Array | None, x: Levels, weight: Array, scale: Scale) -> Total | None:
    """Return a convolution or product with constant weights, as a sum.

    `base` is the operation of floats, `x` its operand, `weight` the array of its weights, which get
    the levels of `scale`, and `bias` has a number for each channel. Returns None where the sum may
    not fit in 32 bits.
    """
    is_conv = base.prim is conv
    spread = (-1,) + (1,) * (weight.ndim - 1) if is_conv else (1, -1)
    channel = 0 if is_conv else 1
    count = weight.shape[channel]
    if scale.size.size > 1 and ((1,) * weight.ndim + scale.size.shape)[-weight.ndim :][channel] != scale.size.size:
        # A scale for each input, or for groups of them: no factor of the sum.
        return None
    size = np.broadcast_to(np.asarray(scale.size, np.float64).reshape(-1), (count,)) * x.size
    whole = np.zeros(count, np.int64)
    if bias is not None:
        least = np.abs(bias.astype(np.float64)) / MOST_BIAS
        if (np.abs(size) < least).any():
            # Weights beside which the bias is out of reach of 32 bits: larger levels are as good.
            size = np.where(np.abs(size) < least, least * np.sign(size), size)
            scale = scale._replace(size=(size / x.size).astype(np.float32).reshape(spread))
        whole = np.rint(bias.astype(np.float64) / size).astype(np.int64)
    levels = levels_of(weight, scale)
    axes = tuple(range(1, weight.ndim)) if is_conv else (0,)
    reach = max(x.scale.high - x.scale.zero, x.scale.zero - x.scale.low)
    if (np.abs(levels.astype(np.int64)).sum(axes) * reach + np.abs(whole) > INT32[1]).any():
        return None
    held = literal(levels, base.inputs[1])
    if is_conv:
        made = int_conv(x.node, held, zero=x.scale.zero, **base.params)
        places = (-1,) + (1,) * (base.type.rank - 2)
    else:
        made = int_matmul(x.node, held, a_zero=x.scale.zero, b_zero=0)
        places = (-1,)
    if whole.any():
        made = E.add(made, literal(whole.astype(np.int32).reshape(places)))
    return Total(made, size.reshape(places) if scale.size.size > 1 or (size != size[0]).any() else size[:1].reshape(()))


def product_of(a: Levels, b: Levels) -> Total | None:
    """Return the product of two values, as a sum; None where it may not fit in 32 bits."""
    reach = [max(s.scale.high - s.scale.zero, s.scale.zero - s.scale.low) for s in (a, b)]
    count = a.node.shape[-1]
    if not isinstance(count, int) or reach[0] * reach[1] * count > INT32[1]:
        return None
    return Total(int_matmul(a.node, b.node, a_zero=a.scale.zero, b_zero=b.scale.zero), np.asarray(a.size * b.size))


def rescaled(total: Total, scale: Scale, rounding: str, ends: Range = ANY) -> Node:
    """Return a sum, `total`, in the levels of `scale`, of which `ends` may cut some off.

    `rounding` is that of `requantize`.
    """
    whole, shift = multipliers(total.size / float(scale.size))
    low, high = cut(scale, ends)
    return requantize(
        total.node,
        literal(whole),
        literal(shift),
        zero=scale.zero,
        low=low,
        high=high,
        rounding=rounding,
        dtype=scale.dtype,
    )


def cut(scale: Scale, ends: Range) -> tuple[int, int]:
    """Return the lowest and the highest level of a clamp."""

    def level(value: float, otherwise: int) -> int:
        if math.isinf(value):
            return otherwise
        return int(np.clip(np.rint(value / float(scale.size)) + scale.zero, scale.low, scale.high))

    low, high = level(ends.low, scale.low), level(ends.high, scale.high)
    # A clamp to one number is two equal levels, which no range is.
    return (low, high) if low < high else (low - 1, low) if low > scale.low else (low, low + 1)


def _whole(x: Levels) -> Node:
    """Return levels in 32 bits with their zero at 0."""
    wide = E.cast(x.node, dtype=int32)
    return E.sub(wide, x.scale.zero) if x.scale.zero else wide


def summed(a: Levels, b: Levels, sign: int, scale: Scale, rounding: str, ends: Range) -> Node:
    """Return the sum of `a` and `b`, or with a negative `sign` the difference, in levels of
    `scale`.

    `rounding` and `ends` are as for `rescaled`.
    As TFLite does, both are taken to half of the larger one's level over 2**20 and added there.
    """
    room = 20 if max(a.scale.high - a.scale.low, b.scale.high - b.scale.low) < 1 << 10 else 13
    twice = 2 * max(a.size, b.size)
    parts = []
    for x, factor in ((a, 1), (b, sign)):
        moved = E.shift_left(_whole(x), room)
        whole, shift = multipliers(np.asarray(factor * x.size / twice))
        parts.append(
            requantize(
                moved,
                literal(whole),
                literal(shift),
                zero=0,
                low=INT32[0],
                high=INT32[1],
                rounding=rounding,
                dtype=int32,
            )
        )
    return rescaled(Total(E.add(*parts), np.asarray(twice / (1 << room))), scale, rounding, ends)


def averaged(
    x: Levels, apply: Callable[[Node], Node], factor: float | Array, scale: Scale, rounding: str, ends: Range
) -> Node:
    """Return the sum of a value over windows or axes, times a number, in the levels of `scale`.

    `apply` sums the integers of `x`, and `factor` is the number, or has those of all positions;
    `rounding` and `ends` are as for `rescaled`.
    """
    return rescaled(Total(apply(_whole(x)), np.asarray(x.size * factor)), scale, rounding, ends)


def table(x: Levels, values: Callable[[Array], Array], scale: Scale) -> Node:
    """Return a function of one number, which `values` computes, in the levels of `scale`."""
    numbers = np.arange(x.scale.low, x.scale.high + 1)
    real = ((numbers - x.scale.zero) * x.size).astype(np.float32)
    with np.errstate(all="ignore"):
        found = np.nan_to_num(np.asarray(values(real), np.float64), nan=0.0)
    held = literal(levels_of(found, scale))
    index = E.sub(E.cast(x.node, dtype=int32), x.scale.low)
    return take(held, index, axis=0, bounds="drop")


def joined(x: Levels, scale: Scale, rounding: str) -> Node:
    """Return a value in the levels of another scale."""
    if x.scale == scale:
        return x.node
    return rescaled(Total(_whole(x), np.asarray(x.size)), scale, rounding)


def soft_maximum(x: Levels, axis: int, scale: Scale) -> Node:
    """Return a soft-max in levels of 1/256 from -128 on, by a table of exponentials.

    Their sum fits in 32 bits: an exponential has 22 bits, or fewer for more than 256 terms.
    """
    count = x.node.shape[axis]
    bits = min(22, 30 - max(int(count) - 1, 0).bit_length())
    span = x.scale.high - x.scale.low
    powers = np.rint(np.exp(-np.arange(span + 1) * x.size) * (1 << bits)).astype(np.int32)
    wide = E.cast(x.node, dtype=int32)
    apart = E.sub(reduce_max(wide, axes=(axis,), keepdims=True), wide)
    power = take(literal(powers), apart, axis=0, bounds="drop")
    total = reduce_sum(power, axes=(axis,), keepdims=True)
    half = E.shift_right(total, 1)
    parts = E.floor_div(E.add(E.shift_left(power, 8), half), total)
    return E.cast(E.minimum(E.add(parts, scale.low), scale.high), dtype=scale.dtype)
