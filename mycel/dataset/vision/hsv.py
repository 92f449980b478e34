"""Conversions between colours and hue, saturation and value."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.engines.routines import are_on
from mycel._src.foundation import arguments
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.vision.base import ImageTransform
from mycel.dataset.vision.kernels import color_values

# The element types that routines read.
_READ = frozenset(map(np.dtype, ("uint8", "uint16", "float32", "float64")))


def rgb_to_hsv(image: Array) -> Array:
    """Return hue, saturation and value, from 0 to 1, of colours [..., 3] from 0 to 1."""
    high, low = image.max(-1), image.min(-1)
    span = high - low
    safe = np.where(span == 0, 1, span)
    r, g, b = ((high - image[..., c]) / safe for c in range(3))
    hue = np.where(image[..., 0] == high, b - g, np.where(image[..., 1] == high, 2 + r - b, 4 + g - r)) / 6 % 1
    saturation = span / np.where(high == 0, 1, high)
    return np.stack([np.where(span == 0, 0, hue), saturation, high], -1)


def hsv_to_rgb(image: Array) -> Array:
    """Return the colours [..., 3] from 0 to 1 of hue, saturation and value."""
    hue, saturation, value = image[..., 0], image[..., 1], image[..., 2]
    sector = np.floor(hue * 6)
    rest = hue * 6 - sector
    p, q, t = value * (1 - saturation), value * (1 - saturation * rest), value * (1 - saturation * (1 - rest))
    choice = (sector % 6).astype(np.int64)
    orders = ((value, t, p), (q, value, p), (p, value, t), (p, q, value), (t, p, value), (value, p, q))
    return np.stack([np.choose(choice, [order[c] for order in orders]) for c in range(3)], -1)


class _ColourSpace(ImageTransform):
    in_python = True
    vectorised = False

    def __init__(self, is_hwc: bool = False) -> None:
        arguments.flag(type(self).__name__, "is_hwc", is_hwc)
        self.is_hwc = is_hwc

    def _apply(self, image: Array) -> Array:
        raise NotImplementedError(f"{type(self).__name__} must define _apply")

    def _loop(self, source: Array, count: int, result: Array, large: Array) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define _loop")

    def accepts(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
        return False

    def compute(self, array: Array, lead: int) -> Array:
        axis = -1 if self.is_hwc else -3
        if array.ndim not in (3, 4) or array.shape[axis] != 3:
            form = "[H, W, 3]" if self.is_hwc else "[3, H, W]"
            raise TypeError(
                f"{type(self).__name__}: the image must be {form}, or several of them, not of shape {array.shape}"
            )
        if array.dtype in _READ and array.size and are_on():
            if array.ndim == 3 and not lead:
                image, large = self.again(self._tried, array)
                if not large[0]:
                    alone: Array = image
                    return alone
            made: Array = np.empty(array.shape)
            if self._computed(np.ascontiguousarray(array), made):
                return made
        result = self._apply(np.moveaxis(array.astype(np.float64), axis, -1))
        return np.ascontiguousarray(np.moveaxis(result, -1, axis))

    def _tried(self, array: Array, lead: int) -> tuple[Array, Array]:
        """Return the result for one image, and whether numbers are too large, or none, for it."""
        image, large = np.empty(array.shape), np.empty(1, np.int64)
        self._loop(np.ascontiguousarray(array), array.size // 3, image, large)
        return image, large

    def _computed(self, source: Array, result: Array) -> bool:
        """Write the result; return False where numbers are too large, or none, for a routine."""
        large = np.empty(1, np.int64)
        if self.is_hwc or source.ndim == 3:
            self._loop(source, source.size // 3, result, large)
            return not large[0]
        for image, into in zip(source, result):
            self._loop(image, image.size // 3, into, large)
            if large[0]:
                return False
        return True


class RgbToHsv(_ColourSpace):
    """Hue, saturation and value, float64 from 0 to 1, of colours from 0 to 1.

    An image is [H, W, 3] with `is_hwc`, else [3, H, W].
    """

    def _apply(self, image: Array) -> Array:
        return rgb_to_hsv(image)

    def _loop(self, source: Array, count: int, result: Array, large: Array) -> None:
        color_values.to_hsv(source, source.dtype.name, count, self.is_hwc, result, large)


class HsvToRgb(_ColourSpace):
    """Colours, float64 from 0 to 1, of hue, saturation and value.

    An image is [H, W, 3] with `is_hwc`, else [3, H, W].
    """

    def _apply(self, image: Array) -> Array:
        return hsv_to_rgb(image)

    def _loop(self, source: Array, count: int, result: Array, large: Array) -> None:
        color_values.from_hsv(source, count, self.is_hwc, result, large)
