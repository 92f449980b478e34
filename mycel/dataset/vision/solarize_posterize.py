"""Transforms that invert high values, or drop lower bits."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mycel._src.engines.routines import are_on
from mycel._src.foundation import arguments
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.vision.base import ImageTransform
from mycel.dataset.vision.color import check_uint8
from mycel.dataset.vision.kernels import float_images, pixelwise


class Solarize(ImageTransform):
    """Inversion of the high pixels of an image.

    They are those of at least `threshold`, or within (low, high).

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.Solarize(128)(np.array([[[100, 200, 255]]], np.uint8)).tolist()
    [[[100, 55, 0]]]
    """

    keeps = True

    def __init__(self, threshold: float | Sequence[float]) -> None:
        pair = tuple(threshold) if isinstance(threshold, (list, tuple)) else (threshold, 255)
        for number in pair:
            arguments.number("Solarize", "threshold", number)
        if len(pair) != 2:
            raise TypeError(f"Solarize: threshold must be one or two numbers, not {threshold!r}")
        if not 0 <= pair[0] <= pair[1] <= 255:
            raise ValueError(
                f"Solarize: threshold must be one or two increasing numbers within [0, 255], not {threshold!r}"
            )
        self.threshold = pair

    def compute(self, array: Array, lead: int) -> Array:
        self.check_image(array, lead)
        return solarised(array, *self.threshold)


def solarised(array: Array, low: float, high: float) -> Array:
    """Return an image with the values from `low` to `high` inverted."""
    if array.dtype == np.uint8 and array.size and are_on():
        made: Array = np.empty(array.shape, np.uint8)
        # Integers are given as they are, as they may be other ones in a call that is kept.
        ends = low if isinstance(low, int) else math.ceil(low), high if isinstance(high, int) else math.floor(high)
        float_images.solarise(np.ascontiguousarray(array), array.size, *ends, made)
        return made
    return np.where((array >= low) & (array <= high), np.subtract(255, array, dtype=array.dtype), array)


class Posterize(ImageTransform):
    """Reduction of every uint8 value to its upper `bits` bits.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.Posterize(4)(np.array([[255, 17]], np.uint8)).tolist()
    [[240, 16]]
    """

    keeps = True

    def __init__(self, bits: int) -> None:
        self.bits = arguments.integer("Posterize", "bits", bits, 0, 8)

    def compute(self, array: Array, lead: int) -> Array:
        self.check_image(array, lead)
        check_uint8(self, array)
        return posterised(array, UPPER[self.bits])


def posterised(array: Array, upper: int) -> Array:
    """Return bytes with their upper bits, which are those of `upper`."""
    if array.size and are_on():
        made: Array = np.empty(array.shape, np.uint8)
        pixelwise.cut_bits(np.ascontiguousarray(array), array.size, upper, made)
        return made
    kept: Array = array & np.uint8(upper)
    return kept


# The upper bits, by their number.
UPPER = [0xFF << (8 - bits) & 0xFF for bits in range(9)]
