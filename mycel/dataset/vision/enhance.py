"""Adjustments of brightness, contrast, colour and sharpness, and their random forms.

Simpler ones are in `color`. Look-up tables (gamma, contrast, equalisation) are those of OpenCV.
Sharpness blends an image with its mean over 3 x 3 pixels, of which the middle one counts five
times. Hue is changed in HSV.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.engines.routines import Routine
from mycel._src.foundation import arguments
from mycel._src.foundation.bounded_caches import FEW, Remembered
from mycel.dataset.random_numbers.random_streams import current_stream
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.transforms.base import check_probability
from mycel.dataset.vision.base import ImageTransform, by_routine, channels_of, dtypes_of, name_of
from mycel.dataset.vision.color import (
    AdjustBrightness,
    AdjustContrast,
    AdjustSaturation,
    check_colours,
    check_factor,
    check_uint8,
    looked_up,
    sometimes,
    to_uint8,
)
from mycel.dataset.vision.hsv import hsv_to_rgb
from mycel.dataset.vision.kernels import color_values, float_images, separable_filters
from mycel.dataset.vision.solarize_posterize import (
    UPPER,
    posterised,
    solarised,
)
from mycel.dataset.vision.warp import interval

_WIDE = dtypes_of("uint16", "int16", "float32", "float64")


def _channels(array: Array) -> list[Array]:
    """Return the channels of an image [H, W] or [H, W, C]."""
    return [array] if array.ndim == 2 else [array[..., c] for c in range(array.shape[2])]


def _by_channel(array: Array, tables: Sequence[Array]) -> Array:
    """Look up every channel in its table."""
    if by_routine(array):
        return looked_up(array, np.stack(tables))
    if array.ndim == 2:
        return tables[0][array]
    return np.stack([table[channel] for table, channel in zip(tables, _channels(array))], -1)


def _histograms(array: Array) -> list[Array]:
    """Return how often each value is in each channel."""
    if by_routine(array):
        counts = np.zeros((channels_of(array), 256), np.int64)
        color_values.histogram(np.ascontiguousarray(array), array.size // len(counts), len(counts), counts)
        return list(counts)
    return [np.bincount(channel.reshape(-1), minlength=256) for channel in _channels(array)]


def _by_tables(array: Array, make: Routine, *numbers: float) -> Array:
    """Look up every channel in the table that a routine makes of its counts and of `numbers`."""
    channels, source = channels_of(array), np.ascontiguousarray(array)
    counts, tables = np.zeros((channels, 256), np.int64), np.empty((channels, 256), np.uint8)
    color_values.histogram(source, array.size // channels, channels, counts)
    make(counts, channels, *numbers, tables)
    result: Array = np.empty(array.shape, np.uint8)
    color_values.look_up(source, array.size // channels, channels, "uint8", tables, result)
    return result


class _OfBytes(ImageTransform):
    """The base class of transforms of uint8 images with one channel or three."""

    vectorised = False

    def _check(self, array: Array, lead: int) -> None:
        self.check_image(array, lead)
        check_uint8(self, array)
        if array.ndim == 3 and array.shape[2] not in (1, 3):
            raise ValueError(
                f"{type(self).__name__}: the image must have one channel or three, not shape {array.shape}"
            )


class AdjustGamma(ImageTransform):
    """`gain * image ** gamma` of a uint8 image, as if its values were from 0 to 1.

    An image of floats, from 0 to 1, becomes `(gain * image) ** gamma` in float32, as in MindSpore.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.AdjustGamma(2.0)(np.array([[0, 128, 255]], np.uint8)).tolist()
    [[0, 64, 255]]
    """

    keeps = True
    vectorised = False

    def __init__(self, gamma: float, gain: float = 1) -> None:
        self.gamma = check_factor("AdjustGamma", gamma)
        self.gain = check_factor("AdjustGamma", gain)

    def compute(self, array: Array, lead: int) -> Array:
        self.check_image(array, self.leading(array, lead))
        if array.dtype.kind == "f":
            bright: Array = np.clip(np.power(self.gain * array.astype(np.float64), self.gamma), 0, 1)
            return bright.astype(np.float32)
        check_uint8(self, array)
        return looked_up(array, _gamma_table(self.gamma, self.gain))


@Remembered("tables of gamma", FEW).calls
def _gamma_table(gamma: float, gain: float) -> Array:
    return to_uint8(np.trunc((256 - 1e-3) * gain * (np.arange(256) / 255) ** gamma))


class AdjustHue(ImageTransform):
    """An image of three channels with its hue turned by `hue_factor`.

    The factor is from -0.5 to 0.5, where 1 is a whole turn.
    """

    vectorised = False

    def __init__(self, hue_factor: float) -> None:
        arguments.number("AdjustHue", "hue_factor", hue_factor, numpy=False)
        if not -0.5 <= hue_factor <= 0.5:
            raise ValueError(f"AdjustHue: hue_factor must be within [-0.5, 0.5], not {hue_factor}")
        self.hue_factor = float(hue_factor)

    def compute(self, array: Array, lead: int) -> Array:
        self.check_image(array, lead, (3,))
        check_colours(self, array)
        turn = int(self.hue_factor * 255)
        turned: Array = _turned_hue(array, lead, turn) if lead else _HUES.again(_turned_hue, array, turn)
        return turned


def _turned_hue(array: Array, lead: int, turn: int) -> Array:
    """Return an image of three channels with its hue turned, 256 of which are a whole turn."""
    if by_routine(array):
        result: Array = np.empty(array.shape, np.uint8)
        color_values.turn_hue(np.ascontiguousarray(array), result.size // 3, turn, result)
        return result
    hue, saturation = _byte_hsv(array)
    turned = (hue + turn) % 256
    back = hsv_to_rgb(np.stack([turned / 255, saturation / 255, array.max(-1) / 255], -1))
    return to_uint8(np.rint(back * 255))


# What keeps the calls, whatever is the turn.
_HUES = ImageTransform()


@functools.cache
def _hue_tables() -> tuple[Array, Array]:
    """Return one over each value, with 12 bits, in units of saturation and of hue."""
    shares = np.rint((255 << 12) / np.maximum(1, np.arange(256))).astype(np.int64)
    turns = np.rint((256 << 12) / (6.0 * np.maximum(1, np.arange(256)))).astype(np.int64)
    shares[0] = turns[0] = 0
    return shares, turns


def _byte_hsv(array: Array) -> tuple[Array, Array]:
    """Return hue, 256 for a turn, and saturation, from 0 to 255, of bytes.

    They are computed as OpenCV does: by tables with 12 fractional bits.
    """
    red, green, blue = (array[..., c].astype(np.int64) for c in range(3))
    value = array.max(-1).astype(np.int64)
    span = value - array.min(-1)
    shares, turns = _hue_tables()
    others = np.where(value == green, blue - red + 2 * span, red - green + 4 * span)
    hue = (np.where(value == red, green - blue, others) * turns[span] + (1 << 11)) >> 12
    return hue % 256, (span * shares[value] + (1 << 11)) >> 12


def blurred(array: Array) -> Array:
    """Return the mean over 3 x 3 pixels, with the middle one counted five times.

    Pixels at the edges stay.
    """
    image = array.astype(np.float64)
    result: Array = image.copy()
    if min(array.shape[:2]) > 2:
        total = 4 * image[1:-1, 1:-1]
        for i in range(3):
            for j in range(3):
                total = total + image[i : i + array.shape[0] - 2, j : j + array.shape[1] - 2]
        result[1:-1, 1:-1] = total / 13
        if array.dtype.kind != "f":
            result = np.rint(result)
    return result


class AdjustSharpness(ImageTransform):
    """A blend of an image with its blurred form.

    A factor of 0 gives the blurred image, 1 the image itself, 2 one that is twice as sharp.
    """

    keeps = True
    vectorised = False

    def __init__(self, sharpness_factor: float) -> None:
        self.factor = check_factor(type(self).__name__, sharpness_factor)

    def compute(self, array: Array, lead: int) -> Array:
        return self.changed(array, lead, self.factor)

    def changed(self, array: Array, lead: int, factor: float) -> Array:
        """Return an image blended by a factor."""
        self.check_image(array, lead)
        if array.dtype.kind not in "biuf":
            raise TypeError(f"{type(self).__name__}: the image must be of real numbers, not {array.dtype}")
        if array.dtype.kind == "b":
            array = array.view(np.uint8)
        if by_routine(array) and min(array.shape[:2]) > 2:
            sharp: Array = array.copy()
            source = np.ascontiguousarray(array)
            separable_filters.sharpen(source, *array.shape[:2], channels_of(array), factor, sharp)
            return sharp
        if by_routine(array, _WIDE) and min(array.shape[:2]) > 2:
            result: Array = np.empty(array.shape, array.dtype)
            source, element = np.ascontiguousarray(array), name_of(array)
            float_images.sharpen(source, element, *array.shape[:2], channels_of(array), factor, result)
            return result
        soft = blurred(array)
        result = soft + (array - soft) * factor
        if array.dtype.kind == "f":
            return result.astype(array.dtype)
        limits = np.iinfo(array.dtype)
        sharpened: Array = np.clip(np.rint(result), limits.min, limits.max).astype(array.dtype)
        return sharpened


class RandomSharpness(AdjustSharpness):
    """`AdjustSharpness` by a random factor from the range `degrees`."""

    keeps = False
    random = True

    def __init__(self, degrees: Sequence[float] = (0.1, 1.9)) -> None:
        self.degrees = _range("RandomSharpness", "degrees", degrees)
        if self.degrees[0] < 0:
            raise ValueError(f"RandomSharpness: degrees must be at least 0, not {degrees!r}")

    def compute(self, array: Array, lead: int) -> Array:
        factor = current_stream().uniform(*self.degrees)
        sharp: Array = self.changed(array, lead, factor) if lead else self.again(self.changed, array, factor)
        return sharp


class RandomAdjustSharpness(AdjustSharpness):
    """`AdjustSharpness` by the factor `degree`, with probability `prob`."""

    keeps = False
    random = True

    def __init__(self, degree: float, prob: float = 0.5) -> None:
        super().__init__(degree)
        self.prob = check_probability("RandomAdjustSharpness", prob)

    def compute(self, array: Array, lead: int) -> Array:
        return sometimes(self, self._sharpened, array, lead)

    _sharpened = AdjustSharpness.compute


class AutoContrast(_OfBytes):
    """Contrast stretched in every channel: its darkest value becomes 0 and its brightest 255.

    `cutoff` percent at both ends are left out first. Values in `ignore` do not count.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.AutoContrast()(np.array([[50, 60, 100]], np.uint8)).tolist()
    [[0, 51, 255]]
    """

    def __init__(self, cutoff: float = 0.0, ignore: int | Sequence[int] | None = None) -> None:
        kind = type(self).__name__
        arguments.number(kind, "cutoff", cutoff, numpy=False)
        if not 0 <= cutoff < 50:
            raise ValueError(f"{kind}: cutoff must be within [0, 50), not {cutoff}")
        self.cutoff = float(cutoff)
        given = ignore if isinstance(ignore, (list, tuple)) else [] if ignore is None else [ignore]
        self.ignore = [arguments.integer(kind, "ignore", n, 0, 255) for n in given]

    def compute(self, array: Array, lead: int) -> Array:
        self._check(array, lead)
        if by_routine(array) and not self.ignore:
            return _by_tables(array, color_values.stretch, self.cutoff)
        return _by_channel(array, [self._table(counts) for counts in _histograms(array)])

    def _table(self, histogram: Array) -> Array:
        histogram[self.ignore] = 0
        cut = int(histogram.sum() * self.cutoff / 100)
        ends = []
        for counts in (histogram, histogram[::-1]):
            kept = np.flatnonzero(np.cumsum(counts) > cut)
            ends.append(int(kept[0]) if kept.size else 0)
        low, high = ends[0], 255 - ends[1]
        if high <= low:
            return np.arange(256, dtype=np.uint8)
        scale = np.float32(255) / np.float32(high - low)
        return to_uint8(np.trunc(np.arange(256, dtype=np.float32) * scale - np.float32(low) * scale))


class RandomAutoContrast(AutoContrast):
    """`AutoContrast` with probability `prob`."""

    random = True

    def __init__(self, cutoff: float = 0.0, ignore: int | Sequence[int] | None = None, prob: float = 0.5) -> None:
        super().__init__(cutoff, ignore)
        self.prob = check_probability("RandomAutoContrast", prob)

    def compute(self, array: Array, lead: int) -> Array:
        return super().compute(array, lead) if current_stream().uniform() < self.prob else array


class Equalize(_OfBytes):
    """Histogram equalisation: values as evenly distributed in each channel as a table allows."""

    keeps = True

    def compute(self, array: Array, lead: int) -> Array:
        self._check(array, lead)
        if by_routine(array):
            return _by_tables(array, color_values.equalise)
        return _by_channel(array, [self._table(counts) for counts in _histograms(array)])

    @staticmethod
    def _table(histogram: Array) -> Array:
        found = np.flatnonzero(histogram)
        first = int(found[0]) if found.size else 0
        rest = histogram.sum() - histogram[first]
        if not rest:
            return np.arange(256, dtype=np.uint8)
        histogram[: first + 1] = 0
        return to_uint8(np.rint(np.cumsum(histogram).astype(np.float32) * np.float32(255.0 / rest)))


class RandomEqualize(Equalize):
    """`Equalize` with probability `prob`."""

    keeps = False
    random = True

    def __init__(self, prob: float = 0.5) -> None:
        self.prob = check_probability("RandomEqualize", prob)

    def compute(self, array: Array, lead: int) -> Array:
        return sometimes(self, self._equalised, array, lead)

    _equalised = Equalize.compute


def _range(operation: str, argument: str, value: Any) -> tuple[float, float]:
    """Return two increasing numbers; ValueError for another number of them."""
    if isinstance(value, (tuple, list)) and len(value) != 2:
        raise arguments.wrong_value(operation, argument, "two numbers", value)
    return interval(operation, argument, value, symmetric=False)


class RandomColor(ImageTransform):
    """A blend of an image of three channels with its greys by a random factor.

    `degrees` is the range of the factor; see `AdjustSaturation`.
    """

    vectorised = False
    random = True

    def __init__(self, degrees: Sequence[float] = (0.1, 1.9)) -> None:
        self.degrees = _range("RandomColor", "degrees", degrees)
        if self.degrees[0] < 0:
            raise ValueError(f"RandomColor: degrees must be at least 0, not {degrees!r}")

    def compute(self, array: Array, lead: int) -> Array:
        factor = current_stream().uniform(*self.degrees)
        if factor == 1:
            return array
        changed: Array = _changed(_SATURATION, array, lead, factor)
        return changed


def _changed(transform: Any, array: Array, lead: int, factor: float) -> Any:
    """Return an image that a transform changes by a factor, by a call that was kept if there is
    one.
    """
    if lead:
        return transform.changed(array, lead, factor)
    return transform.again(transform.changed, array, factor)


# What random changes are made by, whatever their factors.
_BRIGHTNESS, _SATURATION = AdjustBrightness(1.0), AdjustSaturation(1.0)


class RandomColorAdjust(ImageTransform):
    """Random changes of brightness, contrast, saturation and hue, in random order.

    Args:
        brightness (float | Sequence[float]): A range of factors, (1, 1) for no change, or one
            number n for max(0, 1 - n) to 1 + n. Default: (1, 1).
        contrast (float | Sequence[float]): A range of factors, (1, 1) for no change, or one number
            n for max(0, 1 - n) to 1 + n. Default: (1, 1).
        saturation (float | Sequence[float]): A range of factors, (1, 1) for no change, or one
            number n for max(0, 1 - n) to 1 + n. Default: (1, 1).
        hue (float | Sequence[float]): A range within [-0.5, 0.5], or n for -n to n. Default: (0,
            0).
    """

    vectorised = False
    random = True

    def __init__(
        self,
        brightness: float | Sequence[float] = (1, 1),
        contrast: float | Sequence[float] = (1, 1),
        saturation: float | Sequence[float] = (1, 1),
        hue: float | Sequence[float] = (0, 0),
    ) -> None:
        self.brightness = self._range("brightness", brightness)
        self.contrast = self._range("contrast", contrast)
        self.saturation = self._range("saturation", saturation)
        self.hue = interval("RandomColorAdjust", "hue", hue)
        if self.hue[0] < -0.5 or self.hue[1] > 0.5:
            raise ValueError(f"RandomColorAdjust: hue must be within [-0.5, 0.5], not {hue!r}")

    @staticmethod
    def _range(argument: str, value: Any) -> tuple[float, float]:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            if value < 0:
                raise ValueError(f"RandomColorAdjust: {argument} must be at least 0, not {value}")
            return max(0.0, 1.0 - value), 1.0 + value
        low, high = interval("RandomColorAdjust", argument, value, symmetric=False)
        if low < 0:
            raise ValueError(f"RandomColorAdjust: {argument} must be at least 0, not {value!r}")
        return low, high

    def compute(self, array: Array, lead: int) -> Array:
        self.check_image(array, lead, (3,))
        for step in self.draw():
            if isinstance(step, AdjustBrightness):
                array = _changed(_BRIGHTNESS, array, lead, step.factor)
            elif isinstance(step, AdjustSaturation):
                array = _changed(_SATURATION, array, lead, step.factor)
            else:
                array = step.compute(array, lead)
        return array

    def draw(self, all_four: bool = False) -> list[ImageTransform]:
        """Draw the changes of one image, in their order; with `all_four` those that change nothing
        too.
        """
        stream = current_stream()
        steps: list[ImageTransform] = []
        if all_four or self.brightness != (1, 1):
            steps.append(AdjustBrightness(stream.uniform(*self.brightness)))
        if all_four or self.contrast != (1, 1):
            steps.append(AdjustContrast(stream.uniform(*self.contrast)))
        if all_four or self.saturation != (1, 1):
            steps.append(AdjustSaturation(stream.uniform(*self.saturation)))
        if all_four or self.hue != (0, 0):
            steps.append(AdjustHue(stream.uniform(*self.hue)))
        return [steps[place] for place in stream.permutation(len(steps))]


class RandomSolarize(ImageTransform):
    """Inversion of the values within a random part of the range `threshold` (low, high).

    Where the part is one value, those from it on are inverted.
    """

    vectorised = False
    random = True

    def __init__(self, threshold: Sequence[int] = (0, 255)) -> None:
        arguments.instance("RandomSolarize", "threshold", threshold, tuple)
        for number in threshold:
            arguments.integer("RandomSolarize", "threshold", number)
        low, high = _range("RandomSolarize", "threshold", threshold)
        if low < 0 or high > 255:
            raise ValueError(f"RandomSolarize: threshold must be within [0, 255], not {threshold!r}")
        self.threshold = (int(low), int(high))

    def compute(self, array: Array, lead: int) -> Array:
        stream = current_stream()
        ends = [stream.integer(*self.threshold) for _ in range(2)]
        low, high = min(ends), max(ends)
        self.check_image(array, lead)
        high = 255 if low == high else high
        made: Array = solarised(array, low, high) if lead else self.again(_solarised, array, low, high)
        return made


def _solarised(array: Array, lead: int, low: int, high: int) -> Array:
    return solarised(array, low, high)


class RandomPosterize(ImageTransform):
    """Reduction of every value to a random number of bits.

    The number is from the range `bits`, or from 1 to `bits`.
    """

    vectorised = False
    random = True

    def __init__(self, bits: int | Sequence[int] = (8, 8)) -> None:
        pair = (bits, bits) if isinstance(bits, int) and not isinstance(bits, bool) else bits
        if (
            not isinstance(pair, (list, tuple))
            or len(pair) != 2
            or any(isinstance(n, bool) or not isinstance(n, int) for n in pair)
        ):
            raise TypeError(f"RandomPosterize: bits must be an integer or two of them, not {bits!r}")
        if not 1 <= pair[0] <= pair[1] <= 8:
            raise ValueError(
                f"RandomPosterize: bits must be within [1, 8], the first not above the second, not {bits!r}"
            )
        self.bits = (pair[0], pair[1])

    def compute(self, array: Array, lead: int) -> Array:
        bits = current_stream().integer(*self.bits)
        self.check_image(array, lead)
        check_uint8(self, array)
        made: Array = posterised(array, UPPER[bits]) if lead else self.again(_posterised, array, UPPER[bits])
        return made


def _posterised(array: Array, lead: int, upper: int) -> Array:
    return posterised(array, upper)
