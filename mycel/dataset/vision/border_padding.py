"""Padding of images: constant, edge, reflected and mirrored borders."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from mycel._src.foundation.bounded_caches import FEW, Remembered
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.vision.base import BYTE, by_routine, dtypes_of
from mycel.dataset.vision.enums import Border
from mycel.dataset.vision.kernels import border_filling

_NUMPY_MODES: dict[Border, Literal["edge", "reflect", "symmetric"]] = {
    Border.EDGE: "edge",
    Border.REFLECT: "reflect",
    Border.SYMMETRIC: "symmetric",
}


@Remembered("places beyond edges", FEW).calls
def beyond(count: int, before: int, after: int, mode: Border) -> Array:
    """Return which places of an axis stand at `before` places before it, at it and `after` it.

    * `count`: the length of the axis, at least 1.
    * `mode`: EDGE, REFLECT or SYMMETRIC.
    """
    places = np.arange(-before, count + after)
    if mode is Border.EDGE or count == 1:
        return np.minimum(np.maximum(places, 0), count - 1)
    period = 2 * count - (2 if mode is Border.REFLECT else 0)
    places %= period
    last = period - (0 if mode is Border.REFLECT else 1)
    return np.where(places < count, places, last - places)


_MODES = {
    Border.CONSTANT: border_filling.FILL,
    Border.EDGE: border_filling.EDGE,
    Border.REFLECT: border_filling.REFLECT,
    Border.SYMMETRIC: border_filling.SYMMETRIC,
}


def _padded(array: Array, sides: tuple[int, int, int, int], fill: Any, mode: Border) -> Array:
    """Return an image with (left, top, right, bottom) more pixels, by a routine."""
    left, top, right, bottom = sides
    shape, dtype = array.shape, array.dtype
    height, width = shape[:2]
    columns = left + width + right
    result: Array = np.empty((top + height + bottom, columns, *shape[2:]), dtype)
    # Elements are moved as bytes.
    source, into = np.ascontiguousarray(array), result
    if dtype != BYTE:
        source, into = source.view(BYTE), result.view(BYTE)
    pixel, even, fixed = pixel_of(dtype, shape[2] if len(shape) == 3 else 1, fill)
    places, each = _NOWHERE if mode is Border.CONSTANT else np.empty(columns, np.int64), len(pixel)
    kind = _MODES[mode]
    border_filling.pad(source, height, width, each, fixed, left, top, right, bottom, kind, pixel, even, places, into)
    return result


# The types of images that have all values that fill.
PADDED = dtypes_of("uint8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64")
_NOWHERE = np.empty(1, np.int64)


@Remembered("pixels of padding", FEW).calls
def pixel_of(dtype: np.dtype[Any], channels: int, fill: Any) -> tuple[Array, bool, int]:
    """Return the bytes of a pixel, whether all are the same, and how many, or 0 for many."""
    pixel = np.empty(channels, dtype)
    pixel[:] = fill
    content = pixel.tobytes()
    each = len(content)
    return np.frombuffer(content, np.uint8), len(set(content)) == 1, each if each in (1, 2, 3, 4, 8, 12) else 0


def pad_image(
    array: Array,
    sides: tuple[int, int, int, int],
    fill_value: int | tuple[int, int, int],
    mode: Border,
    lead: int,
) -> Array:
    """Return an image with (left, top, right, bottom) more pixels at its sides.

    * `array`: the image, whose first `lead` axes number rows.
    * `sides`: the numbers of pixels.
    * `fill_value`: their value for the border CONSTANT.
    * `mode`: the border.
    """
    left, top, right, bottom = sides
    moved = not lead and array.dtype.kind in "biufc" and by_routine(array, (array.dtype,))
    if mode is not Border.CONSTANT:
        if moved:
            return _padded(array, sides, 0, mode)
        around = [(0, 0)] * lead + [(top, bottom), (left, right)] + [(0, 0)] * (array.ndim - lead - 2)
        padded: Array = np.pad(array, around, mode=_NUMPY_MODES[mode])
        return padded
    fill_value = fill_of(array, fill_value, lead)
    # Booleans and bytes with signs do not have all values that fill.
    if moved and array.dtype.char not in "?b":
        return _padded(array, sides, fill_value, mode)
    widths = [(0, 0)] * lead + [(top, bottom), (left, right)] + [(0, 0)] * (array.ndim - lead - 2)
    shape = [n + before + after for n, (before, after) in zip(array.shape, widths)]
    result = np.empty(shape, array.dtype)
    before, rows = (slice(None),) * lead, slice(top, shape[lead] - bottom)
    # The bands at the sides; the rest is the image.
    bands: list[tuple[slice, ...]] = [(slice(0, top),), (slice(rows.stop, None),)]
    bands += [(rows, slice(0, left)), (rows, slice(shape[lead + 1] - right, None))]
    for band in bands:
        result[before + band] = fill_value
    inner = tuple(slice(before, before + n) for n, (before, _) in zip(array.shape, widths))
    result[inner] = array
    return result


def fill_of(array: Array, fill_value: int | tuple[int, int, int], lead: int) -> int | tuple[int, int, int]:
    """Return a value of padding for an image: three colours are for three channels, the first for
    one.
    """
    if isinstance(fill_value, tuple) and (array.ndim - lead != 3 or array.shape[-1] != 3):
        if array.ndim - lead == 3 and array.shape[-1] != 1:
            raise ValueError(
                f"Pad: fill_value {fill_value} has three colours, but the image has shape {array.shape[lead:]}"
            )
        return fill_value[0]
    return fill_value
