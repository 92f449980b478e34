"""Interpolation of warped images: the weights of neighbouring pixels, and values outside.

Positions are in units of 1/32 of a pixel, or whole pixels for the nearest one; for uint8, weights
of bilinear and bicubic interpolation are multiples of 2**-15.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from mycel._src.foundation.bounded_caches import FEW, Remembered
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.vision.base import channels_of, dtypes_of, name_of
from mycel.dataset.vision.enums import Inter

# How many positions a pixel has along an axis.
FRACTIONS = 32
_BITS = 15
# The element types that routines read.
READ = dtypes_of("uint8", "uint16", "int16", "float32", "float64")


@functools.cache
def _weights(kind: Inter) -> Array:
    """Return the weights of the neighbours for each of 32 fractions."""
    x = np.arange(FRACTIONS) / FRACTIONS
    if kind is Inter.BILINEAR:
        return np.stack([1 - x, x], 1)
    a = -0.75
    first = ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a
    second = ((a + 2) * x - (a + 3)) * x * x + 1
    third = ((a + 2) * (1 - x) - (a + 3)) * (1 - x) * (1 - x) + 1
    return np.stack([first, second, third, 1 - first - second - third], 1)


@functools.cache
def _table(kind: Inter, exact: bool) -> Array:
    """Return the weights of all neighbours for each of 32 x 32 fractions (y, x).

    They are with 15 bits, or `exact` as they are.
    """
    if kind is Inter.NEAREST:
        return np.ones(1, np.int32)
    line = _weights(kind)
    products = line[:, None, :, None] * line[None, :, None, :]
    if exact:
        return np.ascontiguousarray(products)
    table: Array = np.rint(products * (1 << _BITS)).astype(np.int32)
    # Weights add up to one: what is too much or missing is taken from the least, or added to the
    # largest, of four in the middle, as in OpenCV.
    taps = line.shape[1]
    middle = [taps * row + column for row in (taps // 2, taps // 2 + 1) for column in (taps // 2, taps // 2 + 1)]
    for weights in table.reshape(FRACTIONS * FRACTIONS, -1) if kind is Inter.BICUBIC else ():
        more = int(weights.sum()) - (1 << _BITS)
        chosen = weights[middle]
        weights[middle[int(chosen.argmin() if more > 0 else chosen.argmax())]] -= more
    return table


class Reading(NamedTuple):
    """What routines are given to read images with.

    * `channels`, `element`: the number of channels, and the name of the element type.
    * `fills`, `even`: the value of what lies outside for each channel, and whether all
      are the same.
    * `weights`, `taps`: those of neighbours, and how many there are along an axis.
    """

    channels: int
    element: str
    fills: Array
    even: bool
    weights: Array
    taps: int


_readings = Remembered[tuple[Any, ...], Reading]("warps of images", FEW)


def reading_of(image: Array, kind: Inter, fill: Any) -> Reading:
    """Return how an image is read.

    `kind` is the interpolation, `fill` the value of what lies outside, or one for each channel.
    """
    key = image.shape[2:], image.dtype, kind, fill
    return _readings.recent.get(key) or _readings.recall(key, lambda: _found_reading(image, kind, fill))


def _found_reading(image: Array, kind: Inter, fill: Any) -> Reading:
    channels, element = channels_of(image), name_of(image)
    fills = np.empty(channels, image.dtype)
    fills[:] = fill
    even = len(set(fills.tolist())) == 1
    return Reading(channels, element, fills, even, _table(kind, element != "uint8"), _TAPS[kind])


_TAPS = {Inter.NEAREST: 1, Inter.BILINEAR: 2, Inter.BICUBIC: 4}


def sample(image: Array, places: tuple[Array, Array], kind: Inter, fill: Any) -> Array:
    """Return the image at positions.

    * `places`: (x, y), integers in units of 1/32 pixel, or of whole pixels for NEAREST.
    * `kind`: the interpolation.
    * `fill`: a value, or one for each channel, of what lies outside of the image.
    """
    height, width = image.shape[:2]
    flat = image.reshape(height, width, -1)
    filled = np.broadcast_to(np.asarray(fill, image.dtype), flat.shape[2:])
    x, y = places

    def at(column: Array, row: Array) -> Array:
        inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
        found = flat[np.clip(row, 0, height - 1), np.clip(column, 0, width - 1)]
        return np.where(inside[..., None], found, filled)

    if kind is Inter.NEAREST:
        result = at(x, y)
    else:
        exact = image.dtype != np.uint8
        taps = _TAPS[kind]
        weights = _table(kind, exact)[y & (FRACTIONS - 1), x & (FRACTIONS - 1)]
        start = taps // 2 - 1
        total = np.zeros((*x.shape, flat.shape[2]), np.float64 if exact else np.int64)
        for i in range(taps):
            for j in range(taps):
                total += at((x >> 5) + j - start, (y >> 5) + i - start) * weights[..., i, j, None]
        if image.dtype.kind == "f":
            result = total.astype(image.dtype)
        else:
            limits = np.iinfo(image.dtype)
            rounded = np.rint(total) if exact else (total + (1 << (_BITS - 1))) >> _BITS
            result = np.clip(rounded, limits.min, limits.max).astype(image.dtype)
    return result.reshape(*x.shape, *image.shape[2:])
