"""Conversions between orders of colours, greys, and colours with opacity."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from mycel._src.engines.routines import are_on
from mycel._src.foundation import arguments
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.vision.base import FLOATS, ImageTransform, flat_by_routine, is_read, name_of
from mycel.dataset.vision.kernels import color_values, float_images


class ConvertMode(IntEnum):
    """The conversions of `ConvertColor`; A is opacity."""

    COLOR_BGR2BGRA = COLOR_RGB2RGBA = 0
    COLOR_BGRA2BGR = COLOR_RGBA2RGB = 1
    COLOR_BGR2RGBA = COLOR_RGB2BGRA = 2
    COLOR_RGBA2BGR = COLOR_BGRA2RGB = 3
    COLOR_BGR2RGB = COLOR_RGB2BGR = 4
    COLOR_BGRA2RGBA = COLOR_RGBA2BGRA = 5
    COLOR_BGR2GRAY = 6
    COLOR_RGB2GRAY = 7
    COLOR_GRAY2BGR = COLOR_GRAY2RGB = 8
    COLOR_GRAY2BGRA = COLOR_GRAY2RGBA = 9
    COLOR_BGRA2GRAY = 10
    COLOR_RGBA2GRAY = 11


class ConvertColor(ImageTransform):
    """Conversion of the colours of an image.

    It changes their order, adds (full) or removes opacity, or converts to or from greys, which have
    no axis of channels.
    """

    # Where results come from: channels, where 3 is the opacity.
    _PLANS = {
        0: (0, 1, 2, 3),
        1: (0, 1, 2),
        2: (2, 1, 0, 3),
        3: (2, 1, 0),
        4: (2, 1, 0),
        5: (2, 1, 0, 3),
        8: (0, 1, 2),
        9: (0, 1, 2, 3),
    }
    _GREYS = {6: (2, 1, 0), 7: (0, 1, 2), 10: (2, 1, 0), 11: (0, 1, 2)}

    keeps = True

    def __init__(self, convert_mode: ConvertMode) -> None:
        arguments.instance("ConvertColor", "convert_mode", convert_mode, ConvertMode)
        self.convert_mode = convert_mode
        mode = int(convert_mode)
        self._greys, self._plan = self._GREYS.get(mode), self._PLANS.get(mode, ())
        self._wanted = (1,) if mode in (8, 9) else (3, 4) if mode in self._GREYS else (1, 3, 4)

    def compute(self, array: Array, lead: int) -> Array:
        self.check_image(array, lead)
        dtype = array.dtype
        of_bytes = dtype == np.uint8
        if not of_bytes and dtype.kind != "f":
            raise TypeError(f"ConvertColor: the image must be uint8 or floats, not {array.dtype}")
        image = array[..., None] if array.ndim - lead == 2 else array
        found = image.shape[-1]
        if found not in self._wanted:
            raise ValueError(
                f"ConvertColor: the image must have {' or '.join(map(str, self._wanted))} channels for "
                f"{self.convert_mode.name}, not shape {array.shape[lead:]}"
            )
        if self._greys is not None:
            if of_bytes and array.size and are_on():
                weights = (9798, 19235, 3735) if self._greys[0] == 0 else (3735, 19235, 9798)
                made = np.empty(image.shape[:-1], np.uint8)
                color_values.weigh(np.ascontiguousarray(image), made.size, found, *weights, made)
                return made
            if flat_by_routine(image, FLOATS):
                shades = np.empty(image.shape[:-1], dtype)
                source, first = np.ascontiguousarray(image), self._greys[0]
                float_images.weigh(source, name_of(array), shades.size, found, first, shades)
                return shades
            red, green, blue = (image[..., c] for c in self._greys)
            if not of_bytes:
                return (0.299 * red + 0.587 * green + 0.114 * blue).astype(array.dtype)
            sums = 9798 * red.astype(np.int64) + 19235 * green.astype(np.int64) + 3735 * blue.astype(np.int64)
            return ((sums + (1 << 14)) >> 15).astype(np.uint8)
        if is_read(array):
            opacity = 255 if of_bytes else 1
            order = self._plan if found > 1 else tuple([0 if c < 3 else c for c in self._plan])
            made = np.empty((*image.shape[:-1], len(order)), dtype)
            color_values.reorder(np.ascontiguousarray(image), array.size // found, found, order, opacity, made)
            return made
        opaque = np.full(image.shape[:-1], 255 if array.dtype == np.uint8 else 1, array.dtype)
        parts = [image[..., c if found > 1 else 0] for c in range(3)]
        parts.append(image[..., 3] if found == 4 else opaque)
        return np.stack([parts[c] for c in self._plan], -1)
