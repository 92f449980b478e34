"""Transforms of pixel values, and the decoding of image files.

Adjustments blend an image with a simpler one: black (brightness), its mean grey (contrast), or its
own greys (saturation). A factor of 0 gives the simpler image and 1 the image itself. Greys are
0.299 R + 0.587 G + 0.114 B (ITU-R BT.601).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycel._src.engines.routines import are_on
from mycel._src.foundation import arguments
from mycel.dataset.random_numbers.random_streams import current_stream
from mycel.dataset.rows.column_blocks import Array, as_array
from mycel.dataset.transforms.base import Transform, check_probability, numpy_type
from mycel.dataset.vision.base import (
    FLOATS,
    MOST_CHANNELS,
    ImageTransform,
    by_routine,
    dtypes_of,
    flat_by_routine,
    is_read,
    name_of,
)
from mycel.dataset.vision.codecs.image_io import decode_image, decode_picture
from mycel.dataset.vision.kernels import color_values, float_images
from mycel.dataset.vision.kernels import pixelwise as plain
from mycel.dataset.vision.lazy_regions import Part, write

_SHORTS = dtypes_of("uint16", "int16")
# The types of which routines make floats, and those from which 255 can be taken.
_FLOATED = dtypes_of("uint8", "int8", "uint16", "int16", "int32", "float32", "float64")
_INVERTED = dtypes_of("uint8", "uint16", "int16", "int32", "int64", "float32", "float64")


# Bytes of an array that stays in the cache of a core.
_CACHED = 1 << 20


def to_uint8(values: Array) -> Array:
    """Round values towards zero and limit them to 0 .. 255."""
    return np.clip(values, 0, 255).astype(np.uint8)


def looked_up(array: Array, table: Array) -> Array:
    """Return an image's values looked up in a table [256] or, for each channel, [C, 256]."""
    if table.ndim == 1 and array.dtype == np.uint8 and array.size and are_on():
        result = np.empty(array.shape, table.dtype)
        color_values.look_up(np.ascontiguousarray(array), array.size, 1, table.dtype.name, table, result)
        return result
    if not by_routine(array):
        return table[array] if table.ndim == 1 else np.stack([t[array[..., c]] for c, t in enumerate(table)], -1)
    channels = len(table)
    result = np.empty(array.shape, table.dtype)
    color_values.look_up(np.ascontiguousarray(array), array.size // channels, channels, table.dtype.name, table, result)
    return result


def grey(array: Array) -> Array:
    """Convert colours [..., H, W, 3] to greys, uint8 [..., H, W].

    Arithmetic is in fixed point, as Pillow's.
    """
    if array.dtype == np.uint8 and array.size and are_on():
        result = np.empty(array.shape[:-1], np.uint8)
        color_values.greys(np.ascontiguousarray(array), result.size, 1, result)
        return result
    weights = np.array([19595, 38470, 7471], np.int64)
    return ((array.astype(np.int64) @ weights + 0x8000) >> 16).astype(np.uint8)


class Decode(ImageTransform):
    """The pixels, uint8 [H, W, 3], of an image file's content, uint8 [N] or bytes; needs Pillow.

    Raises ValueError for content that is not an image, and ImportError without Pillow.
    """

    vectorised = False

    def __init__(self, to_pil: bool = False) -> None:
        arguments.flag("Decode", "to_pil", to_pil)
        self.to_pil = to_pil

    def convert(self, value: Any) -> Array:
        """Convert the content of a file, bytes or an array, to an array."""
        return as_array(value) if isinstance(value, bytes) else super().convert(value)

    def compute(self, array: Array, lead: int) -> Any:
        if array.dtype.kind == "S" and array.size == 1:
            content = array.tobytes()
        elif array.ndim == 1 and array.dtype.itemsize == 1:
            content = array.tobytes()
        else:
            raise TypeError(
                f"Decode: the input must be the bytes of a file, uint8 of one axis, not {array.dtype} of shape "
                f"{array.shape}"
            )
        return decode_picture(content) if self.to_pil else decode_image(content)


class ToPIL(ImageTransform):
    """A Pillow image made of uint8 [H, W] or [H, W, C], or of float32 [H, W].

    Other transforms accept it as they accept an array.
    """

    in_python = True
    vectorised = False

    def compute(self, array: Array, lead: int) -> Any:
        try:
            from PIL import Image
        except ImportError as error:
            raise ImportError("ToPIL: needs Pillow; pip install 'mycel[image]'") from error

        self.check_image(array, lead)
        if array.dtype != np.uint8 and not (array.dtype == np.float32 and array.ndim == 2):
            raise TypeError(f"ToPIL: the image must be uint8, or float32 of one channel, not {array.dtype}")
        return Image.fromarray(array[..., 0] if array.ndim == 3 and array.shape[2] == 1 else array)


class ToNumpy(ImageTransform):
    """The array of a Pillow image.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.ToNumpy()(np.array([[1, 2]], np.uint8)).tolist()
    [[1, 2]]
    """

    in_python = True
    vectorised = False

    def convert(self, value: Any) -> Array:
        return as_array(value)

    def compute(self, array: Array, lead: int) -> Array:
        return array


class Rescale(Transform):
    """`image * rescale + shift`, as float32.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.Rescale(0.5, 1.0)(np.array([[2, 4]], np.uint8)).tolist()
    [[2.0, 3.0]]
    """

    vectorised = True
    keeps = True

    def __init__(self, rescale: float, shift: float) -> None:
        for argument, value in (("rescale", rescale), ("shift", shift)):
            arguments.number("Rescale", argument, value, numpy=False)
        self.rescale = rescale
        self.shift = shift

    def compute(self, array: Array, lead: int) -> Array:
        if array.dtype.kind not in "iufb":
            raise TypeError(f"Rescale: the image must be of numbers, not {array.dtype}")
        if is_read(array):
            result: Array = np.empty(array.shape, np.float32)
            color_values.rescale(np.ascontiguousarray(array), array.size, self.rescale, self.shift, result)
            return result
        result = np.multiply(array, np.float32(self.rescale), dtype=np.float32)
        if self.shift:
            result += np.float32(self.shift)
        return result


class Normalize(ImageTransform):
    """`(image - mean) / std` for each channel, as float32.

    `mean` and `std` have one value, or one for each channel. Channels are last, or first with
    `is_hwc` False. Raises ValueError where lengths do not fit.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.Normalize([1.0], [2.0])(np.array([[[3], [5]]], np.uint8)).tolist()
    [[[1.0], [2.0]]]
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], is_hwc: bool = True) -> None:
        for argument, values in (("mean", mean), ("std", std)):
            for value in arguments.sequence(type(self).__name__, argument, values):
                arguments.number(type(self).__name__, argument, value)
        arguments.flag(type(self).__name__, "is_hwc", is_hwc)
        if len(mean) != len(std):
            raise ValueError(f"Normalize: {len(mean)} means but {len(std)} standard deviations")
        if any(not 0 <= m <= 255 for m in mean):
            raise ValueError(f"Normalize: means must be within [0, 255], not {list(mean)}")
        if any(not 0 < s <= 255 for s in std):
            raise ValueError(f"Normalize: standard deviations must be within (0, 255], not {list(std)}")
        self.mean = list(mean)
        self.std = list(std)
        self.is_hwc = is_hwc

    def compute(self, array: Array, lead: int) -> Array:
        lead = self.leading(array, lead)
        self.check_image(array, lead)
        plain = array.ndim - lead == 2
        channels = self._channels(array, lead)
        if (plain or self.is_hwc and channels <= MOST_CHANNELS) and is_read(array):
            result = np.empty(array.shape, np.float32)
            source = np.ascontiguousarray(array)
            color_values.normalise(source, array.size // channels, channels, *self._numbers(channels), 0, result)
            return result
        shape = (-1,) if plain or self.is_hwc else (-1, 1, 1)
        mean = np.array(self.mean, np.float32).reshape(shape)
        std = np.array(self.std, np.float32).reshape(shape)
        result = np.subtract(array, mean, dtype=np.float32)
        result /= std
        return result

    def _numbers(self, channels: int) -> tuple[Array, Array]:
        """Return the mean and the standard deviation of each channel."""
        times = channels if len(self.mean) == 1 else 1
        return np.array(self.mean * times, np.float32), np.array(self.std * times, np.float32)

    def _channels(self, array: Array, lead: int) -> int:
        """Return the number of channels; raise ValueError where there are not as many means."""
        channels = 1 if array.ndim - lead == 2 else int(array.shape[-1 if self.is_hwc else lead])
        if len(self.mean) not in (1, channels):
            raise ValueError(f"Normalize: {len(self.mean)} means for an image of {channels} channels")
        return channels


class ToTensor(ImageTransform):
    """A conversion of [H, W] or [H, W, C] of 0 .. 255 to [C, H, W] of 0 .. 1, as `output_type`.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.ToTensor()(np.full((2, 3, 1), 255, np.uint8)).shape
    (1, 2, 3)
    """

    keeps = True

    def __init__(self, output_type: Any = np.float32) -> None:
        self.output_type = numpy_type("ToTensor", output_type)

    def compute(self, array: Array, lead: int) -> Array:
        self.check_image(array, lead)
        if array.ndim - lead == 2:
            array = array[..., None]
        if lead == 0 and by_routine(array):
            # Values are divided once each, as there are no more than 256.
            found = np.divide(np.arange(256, dtype=np.uint8), np.float32(255), dtype=np.float32)
            divided = np.empty((array.shape[2], *array.shape[:2]), np.float32)
            table = np.ascontiguousarray(np.broadcast_to(found, (array.shape[2], 256)))
            write(Part.of(np.ascontiguousarray(array)), divided, 0, table, planes=True)
            return divided.astype(self.output_type, copy=False)
        moved = np.moveaxis(array, -1, lead)
        result: Array = np.divide(moved, np.float32(255), dtype=np.float32, order="C")
        return result.astype(self.output_type, copy=False)


class ToType(Transform):
    """Conversion to a type, as by `transforms.TypeCast`.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.ToType(np.float32)(np.array([1, 2])).dtype
    dtype('float32')
    """

    vectorised = True
    keeps = True

    def __init__(self, data_type: Any) -> None:
        self.data_type = numpy_type("ToType", data_type)

    def compute(self, array: Array, lead: int) -> Array:
        return converted(array, self.data_type)


def converted(array: Array, dtype: np.dtype[Any]) -> Array:
    """Return a copy of an array in a type."""
    # The C library copies what is large past the cache.
    only_copies = array.dtype == dtype and array.nbytes > _CACHED
    if dtype in FLOATS and not only_copies and flat_by_routine(array, _FLOATED):
        made: Array = np.empty(array.shape, dtype)
        plain.convert(np.ascontiguousarray(array), array.size, name_of(made), made)
        return made
    return array.astype(dtype)


class Invert(ImageTransform):
    """255 - image, in its type.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.Invert()(np.array([[[0, 10, 255]]], np.uint8)).tolist()
    [[[255, 245, 0]]]
    """

    keeps = True

    def compute(self, array: Array, lead: int) -> Array:
        self.check_image(array, lead)
        if flat_by_routine(array, _INVERTED):
            made: Array = np.empty(array.shape, array.dtype)
            plain.invert(np.ascontiguousarray(array), array.size, made)
            return made
        inverted: Array = np.invert(array) if array.dtype == np.uint8 else np.subtract(255, array, dtype=array.dtype)
        return inverted


def check_uint8(transform: Transform, array: Array) -> None:
    """Raise TypeError unless the array is uint8."""
    if array.dtype != np.uint8:
        raise TypeError(
            f"{type(transform).__name__}: the image must be uint8, not {array.dtype}; use it before Rescale or "
            "Normalize"
        )


def check_colours(transform: Transform, array: Array) -> None:
    """Raise ValueError or TypeError unless the array is uint8 with three channels."""
    check_uint8(transform, array)
    if array.shape[-1] != 3:
        raise ValueError(f"{type(transform).__name__}: the image must have three channels, not shape {array.shape}")


def grey_of_floats(transform: Transform, array: Array) -> Array:
    """Return the greys, float64 [..., H, W], of colours; raise ValueError for other images."""
    if array.shape[-1] != 3:
        raise ValueError(f"{type(transform).__name__}: the image must have three channels, not shape {array.shape}")
    if flat_by_routine(array, FLOATS):
        greys: Array = _EXACT_GREYS.again(_exact_greys, array)
        return greys
    red, green, blue = (array[..., c].astype(np.float64) for c in range(3))
    sums: Array = (red * 0.299 + green * 0.587) + blue * 0.114
    return sums


def _exact_greys(array: Array, lead: int) -> Array:
    greys: Array = np.empty(array.shape[:-1])
    float_images.greys(np.ascontiguousarray(array), greys.size, greys)
    return greys


def mean_of(values: Array) -> Any:
    """Return what `values.mean()` gives of floats, in less time."""
    return np.add.reduce(values, None) / values.size if values.size else values.mean()


def blended(array: Array, simple: Any, factor: float) -> Array:
    """Return a blend of an image and a simpler one, in the type of the image."""
    mixed: Array = simple + (array - simple) * factor
    return mixed.astype(array.dtype)


class Grayscale(ImageTransform):
    """The greys of colours [H, W, 3]: [H, W] with one output channel, [H, W, 3] with three.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.Grayscale()(np.array([[[255, 0, 0], [0, 255, 0]]], np.uint8)).tolist()
    [[76, 150]]
    """

    in_python = True
    keeps = True

    def __init__(self, num_output_channels: int = 1) -> None:
        arguments.integer(type(self).__name__, "num_output_channels", num_output_channels)
        if num_output_channels not in (1, 3):
            raise ValueError(f"Grayscale: num_output_channels must be 1 or 3, not {num_output_channels}")
        self.num_output_channels = num_output_channels

    def accepts(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
        return len(shape) == 3

    def compute(self, array: Array, lead: int) -> Array:
        self.check_image(array, lead)
        if array.ndim - lead == 2 or array.shape[-1] == 1:
            check_uint8(self, array)
            flat = array if array.ndim - lead == 2 else array[..., 0]
        else:
            check_colours(self, array)
            if array.size and are_on():
                count = self.num_output_channels
                repeated = np.empty(array.shape[:-1] if count == 1 else array.shape, np.uint8)
                color_values.greys(np.ascontiguousarray(array), array.size // 3, count, repeated)
                return repeated
            flat = grey(array)
        return flat if self.num_output_channels == 1 else np.repeat(flat[..., None], 3, -1)


class RandomGrayscale(Grayscale):
    """The greys of colours, as three equal channels, with probability `prob`.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.RandomGrayscale(1.0)(np.full((1, 1, 3), 50, np.uint8)).tolist()
    [[[50, 50, 50]]]
    """

    keeps = False
    vectorised = False
    random = True

    def __init__(self, prob: float = 0.1) -> None:
        super().__init__(3)
        self.prob = check_probability("RandomGrayscale", prob)

    def compute(self, array: Array, lead: int) -> Array:
        return sometimes(self, self._greyed, array, lead)

    _greyed = Grayscale.compute


def sometimes(transform: Any, function: Callable[[Array, int], Array], array: Array, lead: int) -> Array:
    """Return what a `function` of a `transform` gives with its probability, else the `array`.

    `lead` is that of `ImageTransform.compute`.
    """
    if current_stream().uniform() >= transform.prob:
        return array
    changed: Array = function(array, lead) if lead else transform.again(function, array)
    return changed


class RandomInvert(Invert):
    """255 - image, with probability `prob`.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.RandomInvert(1.0)(np.array([[[255, 0, 5]]], np.uint8)).tolist()
    [[[0, 255, 250]]]
    """

    keeps = False
    vectorised = False
    random = True

    def __init__(self, prob: float = 0.5) -> None:
        self.prob = check_probability("RandomInvert", prob)

    def compute(self, array: Array, lead: int) -> Array:
        return sometimes(self, self._inverted, array, lead)

    _inverted = Invert.compute


def check_factor(operation: str, factor: Any) -> float:
    """Return a non-negative number; raise TypeError or ValueError otherwise."""
    arguments.number(operation, "the factor", factor, numpy=False)
    if factor < 0:
        raise ValueError(f"{operation}: the factor must be at least 0, not {factor}")
    return float(factor)


class AdjustBrightness(ImageTransform):
    """A blend of an image with black, in its type: factor 0 is black, 1 the image.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.AdjustBrightness(0.5)(np.full((1, 1, 3), 100, np.uint8)).tolist()
    [[[50, 50, 50]]]
    """

    keeps = True

    def __init__(self, brightness_factor: float) -> None:
        self.factor = check_factor("AdjustBrightness", brightness_factor)

    def compute(self, array: Array, lead: int) -> Array:
        return self.changed(array, lead, self.factor)

    def changed(self, array: Array, lead: int, factor: float) -> Array:
        """Return an image blended by a factor."""
        self.check_image(array, lead)
        if array.dtype.kind == "f":
            bright: Array = array * np.asarray(factor, array.dtype)
            return bright
        if array.dtype == np.uint8:
            if array.size and are_on():
                result = np.empty(array.shape, np.uint8)
                color_values.brighten(np.ascontiguousarray(array), array.size, factor, np.empty(256, np.uint8), result)
                return result
            return to_uint8(np.rint(array.astype(np.float32) * np.float32(factor)))
        if flat_by_routine(array, _SHORTS):
            scaled: Array = np.empty(array.shape, array.dtype)
            float_images.blend(np.ascontiguousarray(array), name_of(array), array.size, 0.0, factor, scaled)
            return scaled
        limits = np.iinfo(array.dtype)
        return np.clip(np.rint(array * factor), limits.min, limits.max).astype(array.dtype)


class AdjustContrast(ImageTransform):
    """A blend of a uint8 image of three channels with its mean grey.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.AdjustContrast(0.0)(np.array([[[10] * 3, [30] * 3]], np.uint8)).tolist()
    [[[20, 20, 20], [20, 20, 20]]]
    """

    vectorised = False

    def __init__(self, contrast_factor: float) -> None:
        self.factor = check_factor("AdjustContrast", contrast_factor)

    def compute(self, array: Array, lead: int) -> Array:
        return self.changed(array, lead, self.factor)

    def changed(self, array: Array, lead: int, factor: float) -> Array:
        """Return an image blended by a factor."""
        self.check_image(array, lead, (3,))
        if array.dtype.kind == "f":
            mean = mean_of(grey_of_floats(self, array))
            if not by_routine(array, FLOATS):
                return blended(array, mean, factor)
            made: Array = _CONTRASTS.again(_contrast, array, float(mean), factor)
            return made
        check_colours(self, array)
        if by_routine(array):
            total: Array = _GREYS.again(_sum_of_greys, array)
            changed: Array = _CONTRASTS.again(_contrast, array, np.rint(total[0] / (array.size // 3)), factor)
            return changed
        mean = np.rint(grey(array).mean())
        return to_uint8(np.rint(mean + (array.astype(np.float64) - mean) * factor))


def _sum_of_greys(array: Array, lead: int) -> Array:
    total = np.zeros(1, np.int64)
    color_values.sum_of_greys(np.ascontiguousarray(array), array.size // 3, total)
    return total


def _contrast(array: Array, lead: int, mean: float, factor: float) -> Array:
    result: Array = np.empty(array.shape, array.dtype)
    source = np.ascontiguousarray(array)
    if array.dtype == np.uint8:
        color_values.contrast(source, array.size, mean, factor, np.empty(256, np.uint8), result)
    else:
        float_images.blend(source, name_of(array), array.size, mean, factor, result)
    return result


# What keeps the calls of parts of transforms.
_GREYS, _EXACT_GREYS, _CONTRASTS = Transform(), Transform(), Transform()


class AdjustSaturation(ImageTransform):
    """A blend of a uint8 image of three channels with its greys.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.AdjustSaturation(0.0)(np.array([[[100, 100, 200]]], np.uint8)).tolist()
    [[[111, 111, 111]]]
    """

    keeps = True

    def __init__(self, saturation_factor: float) -> None:
        self.factor = check_factor("AdjustSaturation", saturation_factor)

    def compute(self, array: Array, lead: int) -> Array:
        return self.changed(array, lead, self.factor)

    def changed(self, array: Array, lead: int, factor: float) -> Array:
        """Return an image blended by a factor."""
        self.check_image(array, lead, (3,))
        if array.dtype.kind == "f":
            if array.shape[-1] != 3 or not flat_by_routine(array, FLOATS):
                return blended(array, grey_of_floats(self, array)[..., None], factor)
            made: Array = np.empty(array.shape, array.dtype)
            source = np.ascontiguousarray(array)
            float_images.saturate(source, name_of(array), array.size // 3, factor, made)
            return made
        check_colours(self, array)
        if array.size and are_on():
            result = np.empty(array.shape, np.uint8)
            color_values.saturate(np.ascontiguousarray(array), array.size // 3, factor, result)
            return result
        greys = grey(array).astype(np.float64)[..., None]
        return to_uint8(np.rint(greys + (array - greys) * factor))
