"""Quantisation scales: scale and zero point for a range of reals, and fixed-point multipliers.

For a range from a to b that has 0 in it, and levels from low to high:

    S = (b - a) / (high - low)        Z = round(low - a / S)

so that 0 is a level. Symmetric levels have Z = 0 and S = max(|a|, |b|) / high.

Where all values are 0, as those of a rectifier that is never open, any scale is exact. It is then
that of values up to 1: a tiny one would be beyond all ratio to the scales around it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from mycel._src.foundation.dtype import DType, int8, int16, uint8

__all__ = ["Scale", "multipliers", "scale_for", "levels_of", "weight_scale"]

Array = np.ndarray[Any, Any]
LEAST = 2.0**-100
EMPTY = 1.0  # the range that stands for one without extent


class Scale(NamedTuple):
    """What levels stand for: `size` is S, for each channel or for all, `zero` is Z."""

    size: Array
    zero: int
    low: int
    high: int

    @property
    def dtype(self) -> DType:
        """The smallest type that holds the levels."""
        for kind in (int8, uint8, int16):
            ends = np.iinfo(kind.numpy)
            if ends.min <= self.low and self.high <= ends.max:
                return kind
        raise ValueError(f"levels from {self.low} to {self.high} have no type; up to 16 bits are supported")


def scale_for(low: float, high: float, bits: int = 8, symmetric: bool = False, narrow: bool = False) -> Scale:
    """Return the scale of values between `low` and `high`, a range that is widened to have 0 in it.

    Levels are signed numbers of `bits` bits, without the lowest where `narrow`; where `symmetric`
    the zero point is 0. Raises ValueError for ends that are not finite.
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"quantise: values from {low} to {high} have no scale; the calibration gives infinity or NaN")
    low, high = min(low, 0.0), max(high, 0.0)
    high = EMPTY if low == high else high
    first, last = -(1 << (bits - 1)) + narrow, (1 << (bits - 1)) - 1
    if symmetric:
        size = max(-low, high) / last
        return Scale(np.float32(max(size, LEAST)).reshape(()), 0, first, last)
    size = np.float32(max((high - low) / (last - first), LEAST))
    zero = int(np.clip(np.rint(first - low / float(size)), first, last))
    return Scale(size.reshape(()), zero, first, last)


def weight_scale(weight: Array, axis: int | None, bits: int = 8, largest: Array | None = None) -> Scale:
    """Return the symmetric scale of weights in `bits` bits, for each channel along `axis` or (None)
    for all.

    `largest` has the greatest magnitudes where they are not those of `weight`.
    """
    last = (1 << (bits - 1)) - 1
    axes = tuple(k for k in range(weight.ndim) if axis is None or k != axis % weight.ndim)
    if largest is None:
        largest = np.abs(weight).max(axes, keepdims=True, initial=0.0) if weight.size else np.zeros((1,) * weight.ndim)
    real = np.asarray(largest, np.float64)
    size = np.maximum(np.where(real == 0, EMPTY, real) / last, LEAST).astype(np.float32)
    return Scale(size if axis is not None else size.reshape(()), 0, -last, last)


def levels_of(values: Array, scale: Scale) -> Array:
    """Return the levels nearest to values, halves to even, in the smallest type."""
    real = values.astype(np.float32) / np.asarray(scale.size, np.float32)
    levels: Array = np.clip(np.rint(real) + scale.zero, scale.low, scale.high).astype(scale.dtype.numpy)
    return levels


def multipliers(real: Array) -> tuple[Array, Array]:
    """Return the multipliers of 31 bits and the shifts that stand for real numbers.

    real = multiplier * 2**(shift - 31), with the multiplier's magnitude in [2**30, 2**31). Numbers
    below 2**-31 become 0. Raises ValueError for 2**30 and more, which no two scales of a network
    are apart.
    """
    fraction, shift = np.frexp(np.asarray(real, np.float64))
    whole = np.rint(fraction * 2.0**31).astype(np.int64)
    over = np.abs(whole) == 1 << 31
    whole, shift = np.where(over, whole // 2, whole), shift + over
    if (shift > 30).any() or not np.isfinite(real).all():
        raise ValueError(f"requantize: the ratio of scales {np.max(np.abs(real))} is beyond 2**30")
    tiny = shift < -30
    return np.where(tiny, 0, whole).astype(np.int32), np.where(tiny, 0, shift).astype(np.int32)
