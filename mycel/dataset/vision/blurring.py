"""Gaussian blur.

Bytes are blurred by weights of 8 bits, as OpenCV's; all other numbers in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.foundation.bounded_caches import FEW, Remembered
from mycel.dataset.rows.column_blocks import Array, aligned
from mycel.dataset.vision.base import ImageTransform, by_routine, channels_of, dtypes_of, name_of
from mycel.dataset.vision.border_padding import beyond
from mycel.dataset.vision.enums import Border
from mycel.dataset.vision.kernels import float_images, separable_filters

# The element types of images whose sums are exact.
_EXACT = dtypes_of("uint16", "int16", "float32", "float64")
# Longer sums of neighbours are left to NumPy, as each length has code of its own.
_MOST_BLURRED = 31
# Sums of other numbers that have code of their own.
_FEW = 15
_DOUBLE = np.dtype(np.float64)


def _pair(operation: str, argument: str, value: Any, whole: bool) -> tuple[Any, Any]:
    pair = tuple(value) if isinstance(value, (list, tuple)) else (value, value)
    kinds = int if whole else (int, float)
    if len(pair) != 2 or any(isinstance(n, bool) or not isinstance(n, kinds) for n in pair):
        raise TypeError(f"{operation}: {argument} must be one or two numbers, not {value!r}")
    return pair[0], pair[1]


def gaussian_weights(size: int, sigma: float) -> Array:
    """Return `size` weights of a normal curve that add up to 1."""
    places = np.arange(size) - (size - 1) / 2
    weights = np.exp(-(places**2) / (2 * sigma * sigma))
    normalised: Array = weights / weights.sum()
    return normalised


_exact_weights = Remembered[Any, Array]("weights of blurs", FEW).calls(gaussian_weights)


@Remembered("weights of blurs of bytes", FEW).calls
def _bit_weights(size: int, sigma: float) -> Array:
    return _in_256ths(gaussian_weights(size, sigma)).astype(np.int32)


@Remembered("blurs of images", FEW).calls
def _blur(
    height: int, width: int, sizes: tuple[int, int], sigmas: tuple[float, float], exactly: bool
) -> tuple[list[Array], Array, Array]:
    """Return the weights along columns and rows, and the places of columns and rows, beyond them,
    too.

    * `height`, `width`: the size of the image.
    * `sizes`, `sigmas`: those of `gaussian_weights`.
    * `exactly`: whether weights are as they are, else whole 256ths.
    """
    found = _exact_weights if exactly else _bit_weights
    weights = [found(size, sigma) for size, sigma in zip(sizes, sigmas)]
    across, down = sizes
    columns = beyond(width, across // 2, across // 2, Border.REFLECT)
    return weights, columns, beyond(height, down // 2, down // 2, Border.REFLECT)


class GaussianBlur(ImageTransform):
    """Gaussian blur over `kernel_size` (across, down) pixels with deviation `sigma`.

    `sigma`, one or a pair, is `0.3 * ((size - 1) / 2 - 1) + 0.8` where it is 0. By default it is
    that of the size across in both directions. The image is continued by mirroring at
    its outermost pixels.
    """

    keeps = True
    vectorised = False

    def __init__(self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] | None = None) -> None:
        self.kernel_size = _pair("GaussianBlur", "kernel_size", kernel_size, True)
        if any(size < 1 or size % 2 == 0 for size in self.kernel_size):
            raise ValueError(f"GaussianBlur: kernel_size must be odd and positive, not {kernel_size!r}")
        given = (0.0, 0.0) if sigma is None else _pair("GaussianBlur", "sigma", sigma, False)
        if min(given) < 0:
            raise ValueError(f"GaussianBlur: sigma must be at least 0, not {sigma!r}")
        # As in MindSpore, both directions have one deviation unless two are given.
        sizes = self.kernel_size if isinstance(sigma, (list, tuple)) else (self.kernel_size[0],) * 2
        self.sigma = tuple(s or 0.3 * ((size - 1) * 0.5 - 1) + 0.8 for s, size in zip(given, sizes))

    def compute(self, array: Array, lead: int) -> Array:
        self.check_image(array, lead)
        exactly = array.dtype != np.uint8
        if by_routine(array) and max(self.kernel_size) <= _MOST_BLURRED:
            return self._by_routine(np.ascontiguousarray(array))
        if exactly and by_routine(array, _EXACT):
            return self._exactly(np.ascontiguousarray(array))
        result: Array = array.astype(np.float64 if exactly else np.int64)
        for axis, size, sigma in zip((1, 0), self.kernel_size, self.sigma):
            half = size // 2
            weights = gaussian_weights(size, sigma)
            if not exactly:
                weights = _in_256ths(weights)
            widths = [(half, half) if a == axis else (0, 0) for a in range(array.ndim)]
            padded = np.pad(result, widths, mode="reflect")
            result = np.zeros_like(result)
            for place, weight in enumerate(weights):
                result += weight * padded.take(np.arange(place, place + array.shape[axis]), axis)
        if not exactly:
            rounded: Array = np.right_shift(result + (1 << 15), 16).astype(np.uint8)
            return rounded
        if array.dtype.kind == "f":
            return result.astype(array.dtype)
        limits = np.iinfo(array.dtype)
        return np.clip(np.rint(result), limits.min, limits.max).astype(array.dtype)

    def _by_routine(self, array: Array) -> Array:
        """Blur an image of bytes."""
        height, width = array.shape[:2]
        channels, (across, down) = channels_of(array), self.kernel_size
        weights, columns, rows = _blur(height, width, self.kernel_size, self.sigma, False)
        line, part = np.empty(len(columns) * channels, np.uint16), np.empty(array.shape, np.uint16)
        result = np.empty(array.shape, np.uint8)
        separable_filters.blur(
            array, height, width, channels, rows, weights[1], down, columns, weights[0], across, line, part, result
        )
        return result

    def _exactly(self, array: Array) -> Array:
        """Blur an image of other numbers."""
        height, width = array.shape[:2]
        channels, (across, down) = channels_of(array), self.kernel_size
        weights, columns, rows = _blur(height, width, self.kernel_size, self.sigma, True)
        pitch = width * channels
        held, lines, total = np.empty(down, np.int64), aligned([down * pitch], _DOUBLE), np.empty(pitch)
        result = np.empty(array.shape, array.dtype)
        float_images.blur(
            array,
            name_of(array),
            height,
            width,
            channels,
            rows,
            weights[1],
            down,
            down if down <= _FEW else 0,
            columns,
            weights[0],
            across,
            across if across <= _FEW else 0,
            held,
            lines,
            total,
            result,
        )
        return result


def _in_256ths(weights: Array) -> Array:
    """Return symmetric weights as integers that add up to 256.

    The error of rounding is carried over to the next weight, and finally to the middle one.
    """
    half = len(weights) // 2
    result = np.zeros(len(weights), np.int64)
    left = 0.0
    for place in range(half):
        wanted = 256 * weights[place] + left
        result[place] = result[-1 - place] = np.rint(wanted)
        left = wanted - result[place]
    result[half] = 256 - result.sum()
    return result
