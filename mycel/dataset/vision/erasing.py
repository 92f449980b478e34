"""Transforms that set rectangles of an image to a value or to noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.engines.routines import are_on
from mycel._src.foundation import arguments
from mycel.dataset.random_numbers.random_streams import current_stream
from mycel.dataset.rows.column_blocks import Array, as_array
from mycel.dataset.transforms.base import check_probability
from mycel.dataset.vision.base import ImageTransform, channels_of, dtypes_of
from mycel.dataset.vision.geometry import check_inside, check_range, draw_rectangle
from mycel.dataset.vision.kernels import float_images, pixelwise
from mycel.dataset.vision.lazy_regions import WORDS, is_cut

# Integers that hold all values that rectangles are set to.
_HOLD = dtypes_of("uint8", "uint16", "uint32", "uint64", "int16", "int32", "int64")


class Erase(ImageTransform):
    """A rectangle of an image set to one value.

    Args:
        top (int): The first row.
        left (int): The first column.
        height (int): The number of rows.
        width (int): The number of columns.
        value (float | Sequence[float]): A number, or one for each channel. Default: 0.0.
        inplace (bool): Whether to write into the image instead of a copy. Default: False.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import vision
        >>> vision.Erase(0, 1, 1, 2, value=9)(np.zeros((2, 3, 1), np.uint8))[..., 0].tolist()
        [[0, 9, 9], [0, 0, 0]]
    """

    keeps = True
    vectorised = False

    def __init__(
        self, top: int, left: int, height: int, width: int, value: float | Sequence[float] = 0.0, inplace: bool = False
    ) -> None:
        for argument, number in (("top", top), ("left", left), ("height", height), ("width", width)):
            arguments.integer("Erase", argument, number)
        if min(top, left) < 0 or min(height, width) < 1:
            raise ValueError(f"Erase: {height}x{width} at {(top, left)} is not a rectangle of an image")
        for part in value if isinstance(value, tuple) else (value,):
            arguments.number("Erase", "value", part, 0, at_most=255)
        arguments.flag("Erase", "inplace", inplace)
        self.top, self.left, self.height, self.width = top, left, height, width
        self.value = value
        self.inplace = inplace

    def compute(self, array: Array, lead: int) -> Array:
        self.check_image(array, lead)
        check_inside("Erase", array.shape, self.top, self.left, self.height, self.width)
        if array.dtype.kind in "iu" and array.dtype not in _HOLD:
            low, high = np.iinfo(array.dtype).min, np.iinfo(array.dtype).max
            values = self.value if isinstance(self.value, (tuple, list)) else (self.value,)
            if not low <= min(values) <= max(values) <= high:
                raise ValueError(
                    f"Erase: value {self.value!r:.80} is not between {low} and {high}, as elements of {array.dtype} are"
                )
        result = array if self.inplace else array.copy()
        each = channels_of(array)
        if not self.inplace and is_cut(array) and (not isinstance(self.value, tuple) or len(self.value) == each):
            filled = np.empty(each, array.dtype)
            filled[...] = self.value
            erase(result, (1, *array.shape[:2], each), self.top, self.left, 0, self.height, self.width, filled, False)
            return result
        result[self.top : self.top + self.height, self.left : self.left + self.width] = self.value
        return result


def erase(
    result: Array,
    shape: tuple[int, int, int, int],
    top: int,
    left: int,
    back: int,
    height: int,
    width: int,
    filled: Array,
    planes: bool,
) -> None:
    """Set as much of a rectangle as lies within an image in C order to values.

    * `result`, `shape`: the image, and its shape as [planes, height, width, values of a pixel].
    * `top`, `left`, `back`, `height`, `width`: the rectangle, which begins `back` before the place.
    * `filled`: one value, or one for each plane or, without `planes`, value of a pixel.
    """
    word, steps = WORDS[result.itemsize], int(filled.size > 1)
    by = (steps, 0) if planes else (0, steps)
    pixelwise.erase(result.view(word), *shape, top, left, back, height, width, filled.reshape(-1).view(word), *by)


def normals(count: int) -> Array:
    """Draw `count` numbers as `Stream.normal` draws them one by one."""
    uniform = current_stream().uniforms(2 * count)
    if are_on():
        result = np.empty(count)
        float_images.normals(uniform, count, 2.0 * math.pi, result)
        return result
    pairs = uniform.reshape(-1, 2).tolist()
    return np.array([math.sqrt(-2.0 * math.log(1.0 - u)) * math.cos(2.0 * math.pi * v) for u, v in pairs])


class RandomErasing(ImageTransform):
    """A random rectangle of [C, H, W] set to a value or to noise (Zhong et al., 2020).

    Args:
        prob (float): The probability of doing so. Default: 0.5.
        scale (Sequence[float]): The range of the rectangle's part of the area. Default: (0.02,
            0.33).
        ratio (Sequence[float]): The range of its aspect ratio. Default: (0.3, 3.3).
        value (float): A number, three of them, or "random" for standard normal noise. Default: 0.
        inplace (bool): Whether to write into the image instead of a copy. Default: False.
        max_attempts (int): How many rectangles to draw at most until one fits. Default: 10.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import vision
        >>> vision.RandomErasing(prob=1.0)(np.ones((1, 8, 8), np.float32)).shape
        (1, 8, 8)
    """

    in_python = True
    vectorised = False
    random = True

    def __init__(
        self,
        prob: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: Any = 0,
        inplace: bool = False,
        max_attempts: int = 10,
    ) -> None:
        self.prob = check_probability("RandomErasing", prob)
        if isinstance(value, bool) or not isinstance(value, (int, str, list, tuple)):
            raise arguments.wrong_type("RandomErasing", "value", "an int, several of them or 'random'", value)
        arguments.flag("RandomErasing", "inplace", inplace)
        arguments.integer("RandomErasing", "max_attempts", max_attempts, 1)
        if isinstance(value, str) and value != "random":
            raise ValueError(f"RandomErasing: value must be numbers or 'random', not {value!r}")
        self.scale = check_range("RandomErasing", "scale", scale)
        self.ratio = check_range("RandomErasing", "ratio", ratio)
        self.value = value
        if not isinstance(value, str):
            self._values = np.reshape(as_array(value), (-1, 1, 1))
        self.inplace = inplace
        self.max_attempts = max_attempts

    def compute(self, array: Array, lead: int) -> Array:
        stream = current_stream()
        if stream.uniform() >= self.prob:
            return array
        self.check_image(array, lead, (3,))
        found = draw_rectangle(array.shape[1], array.shape[2], self.scale, self.ratio, self.max_attempts)
        if found is None:
            return array
        if not self.inplace and not isinstance(self.value, str):
            erased: Array = self.again(self._erased, array, *found)
            return erased
        return self._erased(array, lead, *found)

    def _erased(self, array: Array, lead: int, top: int, left: int, height: int, width: int) -> Array:
        result = array if self.inplace else array.copy()
        if not self.inplace and not isinstance(self.value, str) and is_cut(array):
            filled = self._values.astype(array.dtype)
            if filled.size in (1, len(array)):
                erase(result, (*array.shape, 1), top, left, 0, height, width, filled, True)
                return result
        target = result[:, top : top + height, left : left + width]
        if isinstance(self.value, str):
            target[...] = np.reshape(normals(target.size), target.shape)
        else:
            # Elements of the type are spread several times as fast as they are converted.
            target[...] = self._values.astype(target.dtype)
        return result


# How many patches are given to a call that is kept.
_FEW_PATCHES = 4


class CutOut(ImageTransform):
    """`num_patches` random squares of side `length` set to zero (DeVries and Taylor, 2017).

    Squares are clipped at the borders.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> int(vision.CutOut(4)(np.ones((8, 8, 1), np.uint8)).min())
    0
    """

    vectorised = False
    random = True

    def __init__(self, length: int, num_patches: int = 1, is_hwc: bool = True) -> None:
        self.length = arguments.integer("CutOut", "length", length, 1)
        self.num_patches = arguments.integer("CutOut", "num_patches", num_patches, 1)
        self.is_hwc = arguments.flag("CutOut", "is_hwc", is_hwc)

    def compute(self, array: Array, lead: int) -> Array:
        self.check_image(array, lead, (3,))
        stream = current_stream()
        height, width = array.shape[:2] if self.is_hwc else array.shape[1:]
        if self.num_patches <= _FEW_PATCHES:
            places = [stream.integer(0, side - 1) for _ in range(self.num_patches) for side in (height, width)]
            cut: Array = self.again(self._cut, array, *places)
            return cut
        return self._cut(
            array, lead, *(stream.integer(0, side - 1) for _ in range(self.num_patches) for side in (height, width))
        )

    def _cut(self, array: Array, lead: int, *places: int) -> Array:
        result: Array = array.copy()
        pairs = zip(places[::2], places[1::2])
        if is_cut(array):
            planes, each = (1, array.shape[2]) if self.is_hwc else (array.shape[0], 1)
            height, width = array.shape[:2] if self.is_hwc else array.shape[1:]
            nothing, back = np.zeros(1, array.dtype), self.length // 2
            for top, left in pairs:
                erase(result, (planes, height, width, each), top, left, back, self.length, self.length, nothing, False)
            return result
        view = result if self.is_hwc else np.moveaxis(result, 0, -1)
        for middle, centre in pairs:
            top, left = middle - self.length // 2, centre - self.length // 2
            view[max(0, top) : max(0, top + self.length), max(0, left) : max(0, left + self.length)] = 0
        return result
