"""Transforms that move pixels: flips, crops, padding, and the order of axes.

All accept [H, W] and [H, W, C]. A random transform draws its parameters from the stream of the row,
so a block of rows gets what its rows would get one by one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel.dataset.random_numbers.random_streams import current_stream, first_uniform
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.transforms.base import Keys, check_probability
from mycel.dataset.vision.base import (
    BYTE,
    ImageTransform,
    by_routine,
    channels_of,
    check_border,
    parse_fill,
    parse_padding,
    parse_size,
)
from mycel.dataset.vision.border_padding import PADDED, fill_of, pad_image, pixel_of
from mycel.dataset.vision.enums import Border, Inter
from mycel.dataset.vision.kernels import pixelwise
from mycel.dataset.vision.lazy_regions import Part, cut, is_cut, mirror, mirrors, write
from mycel.dataset.vision.resize import resize_part


class HWC2CHW(ImageTransform):
    """The order of axes with channels first: [H, W, C] becomes [C, H, W]; [H, W] stays.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.HWC2CHW()(np.zeros((4, 5, 3))).shape
    (3, 4, 5)
    """

    keeps = True

    def compute(self, array: Array, lead: int) -> Array:
        self.check_image(array, lead)
        if array.ndim - lead == 2:
            return array
        if array.shape[-1] == 1:
            return array.reshape(*array.shape[:lead], 1, *array.shape[lead:-1])
        if lead == 0 and by_routine(array):
            result = np.empty((array.shape[2], *array.shape[:2]), np.uint8)
            write(Part.of(np.ascontiguousarray(array)), result, planes=True)
            return result
        return np.ascontiguousarray(np.moveaxis(array, -1, lead))


class HorizontalFlip(ImageTransform):
    """A horizontal flip: left and right exchanged.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.HorizontalFlip()(np.array([[1, 2, 3]])).tolist()
    [[3, 2, 1]]
    """

    _axis = 1
    keeps = True

    def compute(self, array: Array, lead: int) -> Array:
        if lead or array.ndim not in (2, 3):
            lead = self.leading(array, lead)
            self.check_image(array, lead)
        if lead == 0:
            if self._axis == 0:
                if is_cut(array):
                    return cut(array, 0, 0, array.shape[0], array.shape[1], upwards=True)
            elif mirrors(array):
                mirrored: Array = np.empty(array.shape, array.dtype)
                mirror(np.ascontiguousarray(array), mirrored)
                return mirrored
        order: tuple[slice, ...] = (slice(None),) * (lead + self._axis) + (slice(None, None, -1),)
        flipped: Array = array[order].copy()
        return flipped


class VerticalFlip(HorizontalFlip):
    """A vertical flip: top and bottom exchanged.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.VerticalFlip()(np.array([[1], [2]])).tolist()
    [[2], [1]]
    """

    _axis = 0


class RandomHorizontalFlip(HorizontalFlip):
    """A horizontal flip with probability `prob`.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.RandomHorizontalFlip(1.0)(np.array([[1, 2, 3]])).tolist()
    [[3, 2, 1]]
    """

    keeps = False
    random = True

    def __init__(self, prob: float = 0.5) -> None:
        self.prob = check_probability(type(self).__name__, prob)

    def compute(self, array: Array, lead: int) -> Array:
        if current_stream().uniform() >= self.prob:
            return array
        flipped: Array = super().compute(array, lead) if lead else self.again(self._flip, array)
        return flipped

    _flip = HorizontalFlip.compute

    def apply_block(self, block: Array, keys: Keys | None) -> Array:
        if keys is None:
            raise ValueError(f"{type(self).__name__}: a block of rows needs a key for each")
        mirrored = first_uniform(keys) < self.prob
        if mirrored.any():
            block[mirrored] = np.flip(block[mirrored], 1 + self._axis)
        return block


class RandomVerticalFlip(RandomHorizontalFlip):
    """A vertical flip with probability `prob`.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.RandomVerticalFlip(1.0)(np.array([[1], [2]])).tolist()
    [[2], [1]]
    """

    _axis = 0


class Pad(ImageTransform):
    """An image with more pixels at its sides.

    `padding` is one number, (left and right, top and bottom), or (left, top, right, bottom).

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.Pad(1, fill_value=9)(np.array([[5]], np.uint8)).tolist()
    [[9, 9, 9], [9, 5, 9], [9, 9, 9]]
    """

    keeps = True

    def __init__(
        self, padding: int | Sequence[int], fill_value: Any = 0, padding_mode: Border = Border.CONSTANT
    ) -> None:
        self.padding = parse_padding("Pad", padding)
        self.fill_value = parse_fill("Pad", fill_value)
        self.padding_mode = check_border("Pad", padding_mode)

    def compute(self, array: Array, lead: int) -> Array:
        self.check_image(array, lead)
        return pad_image(array, self.padding, self.fill_value, self.padding_mode, lead)


class PadToSize(ImageTransform):
    """An image padded to a size.

    Args:
        size (int | Sequence[int]): (height, width), or one number for both.
        offset (int | Sequence[int] | None): The (top, left) of the image; None puts it in the
            middle. Default: None.
        fill_value (float): The value of the padding for the border CONSTANT. Default: 0.
        padding_mode (Border): The border.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import vision
        >>> vision.PadToSize((1, 4))(np.array([[1, 2]])).tolist()
        [[0, 1, 2, 0]]
    """

    keeps = True

    def __init__(
        self,
        size: int | Sequence[int],
        offset: int | Sequence[int] | None = None,
        fill_value: Any = 0,
        padding_mode: Border = Border.CONSTANT,
    ) -> None:
        if isinstance(size, (list, tuple)) and len(size) != 2:
            raise ValueError(f"PadToSize: size must be one or two counts, not {size!r}")
        self.size = parse_size("PadToSize", size)
        pair: Any = offset if isinstance(offset, (list, tuple)) or offset is None else [offset, offset]
        for count in pair or ():
            arguments.integer("PadToSize", "offset", count, 0)
        if pair is not None and len(pair) not in (0, 2):
            raise ValueError(f"PadToSize: offset must be two counts, not {offset!r}")
        self.offset = None if not pair else (pair[0], pair[1])
        self.fill_value = parse_fill("PadToSize", fill_value)
        self.padding_mode = check_border("PadToSize", padding_mode)

    def compute(self, array: Array, lead: int) -> Array:
        self.check_image(array, lead)
        extra = [wanted - found for wanted, found in zip(self.size, array.shape[lead:])]
        top, left = self.offset if self.offset is not None else (extra[0] // 2, extra[1] // 2)
        if extra[0] < top or extra[1] < left or min(extra) < 0:
            raise ValueError(
                f"PadToSize: an image of shape {array.shape[lead:]} at offset {(top, left)} "
                f"does not fit into {self.size}"
            )
        sides = (left, top, extra[1] - left, extra[0] - top)
        return pad_image(array, sides, self.fill_value, self.padding_mode, lead)


class CenterCrop(ImageTransform):
    """The middle (height, width) of an image; a smaller image is padded with zeros.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.CenterCrop(1)(np.arange(9).reshape(3, 3)).tolist()
    [[4]]
    """

    keeps = True

    def __init__(self, size: int | Sequence[int]) -> None:
        self.size = parse_size("CenterCrop", size)

    def compute(self, array: Array, lead: int) -> Array:
        lead = self.leading(array, lead)
        self.check_image(array, lead)
        height, width = array.shape[lead : lead + 2]
        missing_h, missing_w = self.size[0] - height, self.size[1] - width
        if missing_h > 0 or missing_w > 0:
            missing_h, missing_w = max(0, missing_h), max(0, missing_w)
            # The odd pixel goes to the top and to the left, as in MindSpore.
            top, left = (missing_h + 1) // 2, (missing_w + 1) // 2
            array = pad_image(array, (left, top, missing_w - left, missing_h - top), 0, Border.CONSTANT, lead)
            height, width = array.shape[lead : lead + 2]
            if (height, width) == self.size:
                return array
        top, left = (height - self.size[0]) // 2, (width - self.size[1]) // 2
        if not lead and is_cut(array):
            return cut(array, top, left, *self.size)
        return crop(array, top, left, *self.size, lead)


def crop(array: Array, top: int, left: int, height: int, width: int, lead: int) -> Array:
    """Return a copy of the part of `array` of size `height` and `width` from (`top`, `left`) on.

    The first `lead` axes of the array number rows; the next two are those of the image.
    """
    if lead == 0:
        return np.ascontiguousarray(array[top : top + height, left : left + width])
    part = array[(slice(None),) * lead + (slice(top, top + height), slice(left, left + width))]
    return np.ascontiguousarray(part)


class Crop(ImageTransform):
    """The part of an image of `size` (height, width), from `coordinates` (top, left) on.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.Crop((0, 1), (1, 2))(np.array([[1, 2, 3], [4, 5, 6]])).tolist()
    [[2, 3]]
    """

    keeps = True

    def __init__(self, coordinates: Sequence[int], size: int | Sequence[int]) -> None:
        if len(coordinates) != 2 or any(isinstance(n, bool) or not isinstance(n, int) for n in coordinates):
            raise TypeError(f"Crop: coordinates must be two integers (top, left), not {coordinates!r}")
        if min(coordinates) < 0:
            raise ValueError(f"Crop: coordinates must be at least 0, not {coordinates!r}")
        self.coordinates = (coordinates[0], coordinates[1])
        self.size = parse_size("Crop", size)

    def compute(self, array: Array, lead: int) -> Array:
        self.check_image(array, lead)
        (top, left), (height, width) = self.coordinates, self.size
        if top + height > array.shape[lead] or left + width > array.shape[lead + 1]:
            check_inside("Crop", array.shape[lead:], top, left, height, width)
        if not lead and is_cut(array):
            return cut(array, top, left, height, width)
        return crop(array, top, left, height, width, lead)


def check_inside(operation: str, shape: Sequence[int], top: int, left: int, height: int, width: int) -> None:
    """Raise ValueError unless a rectangle lies within an image of this `shape`.

    The rectangle has size `height` and `width`, and its first pixel is (`top`, `left`); `operation`
    is named in messages.
    """
    if top + height > shape[0] or left + width > shape[1]:
        raise ValueError(
            f"{operation}: the rectangle {height}x{width} at {(top, left)} is not inside the image "
            f"of {shape[0]}x{shape[1]}"
        )


class ResizedCrop(ImageTransform):
    """A part of an image, resized.

    Args:
        top (int): The first row.
        left (int): The first column.
        height (int): The number of rows.
        width (int): The number of columns.
        size (int | Sequence[int]): The size of the result.
        interpolation (Inter): The interpolation.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import vision
        >>> vision.ResizedCrop(0, 0, 2, 2, 4)(np.full((3, 3, 1), 5, np.uint8)).shape
        (4, 4, 1)
    """

    keeps = True

    def __init__(
        self,
        top: int,
        left: int,
        height: int,
        width: int,
        size: int | Sequence[int],
        interpolation: Inter = Inter.BILINEAR,
    ) -> None:
        if min(top, left) < 0 or min(height, width) < 1:
            raise ValueError(f"ResizedCrop: {height}x{width} at {(top, left)} is not a rectangle of an image")
        self.top, self.left, self.height, self.width = top, left, height, width
        self.size = parse_size("ResizedCrop", size)
        self.interpolation = arguments.instance("ResizedCrop", "interpolation", interpolation, Inter)

    def compute(self, array: Array, lead: int) -> Array:
        self.check_image(array, lead)
        check_inside("ResizedCrop", array.shape[lead:], self.top, self.left, self.height, self.width)
        place = self.top, self.left, self.height, self.width
        return resize_part(array, place, self.size, self.interpolation, lead)


class RandomCrop(ImageTransform):
    """A random part of an image.

    Args:
        size (int | Sequence[int]): The (height, width) of the part, or one number for both.
        padding (int | Sequence[int] | None): The padding of the image before the crop, as in `Pad`.
            Default: None.
        pad_if_needed (bool): Whether to pad a smaller image to at least `size`. Default: False.
        fill_value (float): The value of the padding for the border CONSTANT. Default: 0.
        padding_mode (Border): The border.

    Raises:
        ValueError: If the image is smaller than `size`.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import vision
        >>> vision.RandomCrop(4)(np.zeros((6, 8, 3), np.uint8)).shape
        (4, 4, 3)
    """

    vectorised = False
    random = True

    def __init__(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill_value: Any = 0,
        padding_mode: Border = Border.CONSTANT,
    ) -> None:
        self.size = parse_size("RandomCrop", size)
        self.padding = None if padding is None else parse_padding("RandomCrop", padding)
        arguments.flag("RandomCrop", "pad_if_needed", pad_if_needed)
        self.pad_if_needed = pad_if_needed
        self.fill_value = parse_fill("RandomCrop", fill_value)
        self.padding_mode = check_border("RandomCrop", padding_mode)

    def compute(self, array: Array, lead: int) -> Array:
        if lead or array.ndim not in (2, 3):
            lead = self.leading(array, lead)
            self.check_image(array, lead)
        elif self.padding_mode is Border.CONSTANT and not self.pad_if_needed and array.shape[-1]:
            left, top, right, bottom = self.padding or _NO_SIDES
            place = draw_place(array.shape[0] + top + bottom, array.shape[1] + left + right, self.size)
            part: Array = self.again(self.part, array, *place)
            return part
        if self.padding is not None:
            array = pad_image(array, self.padding, self.fill_value, self.padding_mode, lead)
        height, width = array.shape[lead : lead + 2]
        if self.pad_if_needed:
            down, across = max(0, self.size[0] - height), max(0, self.size[1] - width)
            if down or across:
                array = pad_image(array, (across, down, across, down), self.fill_value, self.padding_mode, lead)
                height, width = array.shape[lead : lead + 2]
        return crop(array, *draw_place(height, width, self.size), *self.size, lead)

    def part(self, array: Array, lead: int, top: int, left: int) -> Array:
        """Return the part of the padded image from a place on.

        Args:
            array (numpy.ndarray[Any, numpy.dtype[Any]]): The image.
            lead (int): The axes before its rows and columns.
            top (int): The first row.
            left (int): The first column.

        Returns:
            numpy.ndarray[Any, numpy.dtype[Any]]: The part.
        """
        before, above = (self.padding or _NO_SIDES)[:2]
        fill = self.fill_value if self.padding is None else fill_of(array, self.fill_value, lead)
        if by_routine(array, PADDED) and (self.padding is not None or is_cut(array)):
            height, width, *channels = array.shape
            result: Array = np.empty((*self.size, *channels), array.dtype)
            pixel, even, _ = pixel_of(array.dtype, channels_of(array), fill if self.padding is not None else 0)
            source, into = np.ascontiguousarray(array).view(BYTE), result.view(BYTE)
            pixelwise.window(source, height, width, len(pixel), top, left, above, before, *self.size, pixel, even, into)
            return result
        if self.padding is not None:
            array = pad_image(array, self.padding, self.fill_value, self.padding_mode, lead)
        return crop(array, top, left, *self.size, lead)


_NO_SIDES = (0, 0, 0, 0)


def draw_place(height: int, width: int, size: Sequence[int]) -> tuple[int, int]:
    """Draw the (top, left) of a part of `size` in an image of `height` and `width`.

    Raises ValueError where the image is smaller.
    """
    if height < size[0] or width < size[1]:
        raise ValueError(
            f"RandomCrop: the image of {height}x{width} is smaller than size {tuple(size)}; "
            "set padding or pad_if_needed"
        )
    stream = current_stream()
    return stream.integer(0, height - size[0]), stream.integer(0, width - size[1])


def draw_rectangle(
    height: int, width: int, scale: Sequence[float], ratio: Sequence[float], attempts: int
) -> tuple[int, int, int, int] | None:
    """Draw (top, left, height, width), or return None if no rectangle fits.

    * `height`, `width`: the size of the image.
    * `scale`: the range of the rectangle's part of the area.
    * `ratio`: the range of its aspect ratio, which is log-uniform.
    * `attempts`: the number of rectangles to try.
    """
    stream = current_stream()
    for _ in range(attempts):
        area = height * width * stream.uniform(scale[0], scale[1])
        aspect = math.exp(stream.uniform(math.log(ratio[0]), math.log(ratio[1])))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return stream.integer(0, height - h), stream.integer(0, width - w), h, w
    return None


def check_range(operation: str, argument: str, values: Sequence[float], positive: bool = True) -> tuple[float, float]:
    """Return `values` as an ordered pair of numbers that are positive, or without `positive` at
    least 0.

    `operation` and `argument` are named in messages. Raises TypeError or ValueError otherwise.
    """
    if not isinstance(values, (list, tuple)) or len(values) != 2:
        raise TypeError(f"{operation}: {argument} must be a pair of numbers, not {values!r}")
    low, high = (arguments.number(operation, argument, value) for value in values)
    if not low <= high or low < 0 or (positive and high <= 0):
        raise ValueError(f"{operation}: {argument} must be an increasing pair of positive numbers, not {values!r}")
    return low, high


class RandomResizedCrop(ImageTransform):
    """A random part of an image, resized (Szegedy et al., 2015).

    Args:
        size (int | Sequence[int]): The size of the result.
        scale (Sequence[float]): The range of the part's fraction of the area. Default: (0.08, 1.0).
        ratio (Sequence[float]): The range of its aspect ratio. Default: (0.75, 1.3333333333333333).
        interpolation (Inter): The interpolation.
        max_attempts (int): After this many rectangles that do not fit, the part is the largest one
            in the middle whose aspect ratio is within `ratio`. Default: 10.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import vision
        >>> vision.RandomResizedCrop(4)(np.zeros((6, 8, 3), np.uint8)).shape
        (4, 4, 3)
    """

    vectorised = False
    random = True

    def __init__(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Inter = Inter.BILINEAR,
        max_attempts: int = 10,
    ) -> None:
        if interpolation is not None:
            arguments.instance("RandomResizedCrop", "interpolation", interpolation, Inter)
        self.size = parse_size("RandomResizedCrop", size)
        self.scale = check_range("RandomResizedCrop", "scale", scale)
        self.ratio = check_range("RandomResizedCrop", "ratio", ratio)
        if not self.ratio[0]:
            raise ValueError(f"RandomResizedCrop: ratio must be positive, not {ratio!r}")
        if max_attempts < 1:
            raise ValueError(f"RandomResizedCrop: max_attempts must be positive, not {max_attempts}")
        self.interpolation = interpolation
        self.max_attempts = max_attempts

    def compute(self, array: Array, lead: int) -> Array:
        if lead or array.ndim not in (2, 3):
            lead = self.leading(array, lead)
            self.check_image(array, lead)
        place = self.draw(*array.shape[lead : lead + 2])
        return resize_part(array, place, self.size, self.interpolation, lead)

    def draw(self, height: int, width: int) -> tuple[int, int, int, int]:
        """Draw the (top, left, height, width) of a part of an image of this size."""
        if not height * width:
            raise ValueError(f"{type(self).__name__}: an image of {height} x {width} has no part to crop")
        found = draw_rectangle(height, width, self.scale, self.ratio, self.max_attempts)
        if found is None:
            aspect = min(max(width / height, self.ratio[0]), self.ratio[1])
            h, w = min(height, round(width / aspect)), min(width, round(height * aspect))
            found = ((height - h) // 2, (width - w) // 2, h, w)
        return found
