"""Resizing by a separable filter.

For each axis the filter is given by a few input positions and weights for every output position.
Bilinear, bicubic, area and nearest follow OpenCV: pixel centres at half coordinates (nearest: at
corners) and repeated edges. For uint8, weights are rounded to multiples of 2**-11, both passes are
exact in integers, and the second bilinear pass drops the bits that OpenCV drops, so that results
are equal to the last bit (bicubic: within one, as OpenCV sums in floating point). ANTIALIAS and
PILCUBIC follow Pillow: the filter is widened by the scale when an image shrinks, weights have 22
bits, and the horizontal pass is rounded to uint8 before the vertical one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mycel.base.remembered import SOME, Remembered
from mycel.dataset.blocks import Array
from mycel.dataset.vision.base import ImageTransform, by_routine, channels_of, parse_size
from mycel.dataset.vision.enums import Inter
from mycel.dataset.vision.nests import filtering, resizing
from mycel.dataset.vision.taking import Part, write
from mycel.engines.routines import are_on

_BITS = 11
_PILLOW_BITS = 22
Taps = tuple[np.ndarray[Any, np.dtype[np.int64]], np.ndarray[Any, np.dtype[np.float64]]]


@Remembered("weights of resizing", SOME).calls
def taps(source: int, target: int, kind: Inter, shrinks: bool = False) -> Taps:
    """Return which input positions every output position reads, and their weights.

    Both are [target, k], int64 and float64.

    * `source`, `target`: the lengths of the axis before and after.
    * `kind`: the interpolation.
    * `shrinks`: whether the image shrinks along both axes, in which case AREA averages cells;
      otherwise it interpolates between neighbours.
    """
    scale = source / target
    place = np.arange(target)
    if kind is Inter.NEAREST:
        nearest = np.minimum(np.floor(place * scale).astype(np.int64), source - 1)
        return nearest[:, None], np.ones((target, 1))
    if kind is Inter.AREA and shrinks:
        return _area_taps(source, target)
    if kind in (Inter.ANTIALIAS, Inter.PILCUBIC):
        return _pillow_taps(source, target, kind)
    if kind is Inter.AREA:
        start = np.floor(place * scale).astype(np.int64)
        fraction = (place + 1) - (start + 1) / scale
        fraction = np.where(fraction <= 0, 0.0, fraction - np.floor(fraction))
    else:
        centre = ((place + 0.5) * scale - 0.5).astype(np.float32)
        start = np.floor(centre).astype(np.int64)
        fraction = (centre - start).astype(np.float64)
    if kind is Inter.BICUBIC:
        weights = _cubic_weights(fraction)
        positions = start[:, None] + np.arange(-1, 3)
    else:
        weights = np.stack([1 - fraction, fraction], 1)
        positions = start[:, None] + np.arange(2)
    return np.clip(positions, 0, source - 1), weights


def _cubic_weights(x: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the weights of Keys' cubic convolution (1981) with a = -0.75.

    The taps are at -1, 0, 1 and 2 from the fraction x.
    """
    a = -0.75
    first = ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a
    second = ((a + 2) * x - (a + 3)) * x * x + 1
    third = ((a + 2) * (1 - x) - (a + 3)) * (1 - x) * (1 - x) + 1
    return np.stack([first, second, third, 1 - first - second - third], 1)


def _padded(rows: list[tuple[int, list[float]]], source: int) -> Taps:
    width = max(len(weights) for _, weights in rows)
    positions = np.zeros((len(rows), width), np.int64)
    values = np.zeros((len(rows), width))
    for index, (start, weights) in enumerate(rows):
        positions[index] = np.minimum(start + np.arange(width), source - 1)
        values[index, : len(weights)] = weights
    return positions, values


def _area_taps(source: int, target: int) -> Taps:
    """Return weights proportional to the overlap of each input cell with the output cell."""
    scale = source / target
    rows = []
    for index in range(target):
        low, high = index * scale, min((index + 1) * scale, source)
        start, stop = math.floor(low + 1e-9), math.ceil(high - 1e-9)
        rows.append((start, [(min(high, i + 1) - max(low, i)) / (high - low) for i in range(start, stop)]))
    return _padded(rows, source)


def _lanczos(x: float) -> float:
    return 1.0 if x == 0 else math.sin(math.pi * x) * math.sin(math.pi * x / 3) * 3 / (math.pi * x) ** 2


def _pillow_cubic(x: float) -> float:
    x = abs(x)
    return (1.5 * x - 2.5) * x * x + 1 if x < 1 else ((x - 5) * x + 8) * x * -0.5 + 2 if x < 2 else 0.0


def _pillow_taps(source: int, target: int, kind: Inter) -> Taps:
    kernel: Callable[[float], float] = _lanczos if kind is Inter.ANTIALIAS else _pillow_cubic
    scale = source / target
    stretch = max(scale, 1.0)
    support = (3.0 if kind is Inter.ANTIALIAS else 2.0) * stretch
    rows = []
    for index in range(target):
        centre = (index + 0.5) * scale
        start, stop = max(0, int(centre - support + 0.5)), min(source, int(centre + support + 0.5))
        weights = [kernel((i - centre + 0.5) / stretch) for i in range(start, stop)]
        total = sum(weights)
        rows.append((start, [weight / total for weight in weights]))
    return _padded(rows, source)


def _filter(array: Array, axis: int, positions: Array, weights: Array) -> Array:
    """Return the weighted sum of the array's slices at `positions`, in the type of the weights."""
    shape = [1] * array.ndim
    shape[axis] = len(positions)
    total: Array = array.take(positions[:, 0], axis).astype(weights.dtype) * weights[:, 0].reshape(shape)
    for tap in range(1, positions.shape[1]):
        total += array.take(positions[:, tap], axis) * weights[:, tap].reshape(shape)
    return total


def resize(array: Array, size: tuple[int, int], kind: Inter, axis: int) -> Array:
    """Resize two axes of an array and keep its type.

    * `size`: their new lengths.
    * `kind`: the interpolation.
    * `axis`: the axis of the height; that of the width follows it.
    """
    height, width = array.shape[axis : axis + 2]
    if (height, width) == size:
        return np.array(array)
    if not height or not width:
        raise ValueError(f"Resize: the image is empty, its shape is {array.shape}")
    if kind is Inter.BILINEAR and (height, width) == (2 * size[0], 2 * size[1]):
        # OpenCV takes the mean of four pixels in this case.
        kind = Inter.AREA
    shrinks = height >= size[0] and width >= size[1]
    if array.ndim - axis in (2, 3) and are_on() and min(size) > 0:
        made = _by_routines(array, size, kind, axis, shrinks)
        if made is not None:
            return made
    rows, row_weights = taps(height, size[0], kind, shrinks)
    columns, column_weights = taps(width, size[1], kind, shrinks)
    if kind is Inter.NEAREST:
        return array.take(rows[:, 0], axis).take(columns[:, 0], axis + 1)
    if array.dtype != np.uint8:
        exact = array.dtype if array.dtype == np.float64 else np.dtype(np.float32)
        part = _filter(array, axis + 1, columns, column_weights.astype(exact))
        result = _filter(part, axis, rows, row_weights.astype(exact))
        return result.astype(array.dtype) if array.dtype.kind == "f" else _saturate(np.rint(result), array.dtype)
    if kind in (Inter.ANTIALIAS, Inter.PILCUBIC):
        part = array
        for along, positions, weights, same in (
            (axis + 1, columns, column_weights, width == size[1]),
            (axis, rows, row_weights, height == size[0]),
        ):
            if not same:
                fixed = np.where(weights < 0, weights * 2**_PILLOW_BITS - 0.5, weights * 2**_PILLOW_BITS + 0.5)
                sums = _filter(part, along, positions, np.trunc(fixed).astype(np.int64))
                part = _saturate((sums + (1 << (_PILLOW_BITS - 1))) >> _PILLOW_BITS, array.dtype)
        return part
    if kind is Inter.AREA and shrinks:
        if height % size[0] == 0 and width % size[1] == 0:
            cells = (height // size[0], width // size[1])
            shape = (*array.shape[:axis], size[0], cells[0], size[1], cells[1], *array.shape[axis + 2 :])
            sums = array.reshape(shape).sum((axis + 1, axis + 3), dtype=np.int32)
            if cells == (2, 2):
                return _saturate((sums + 2) >> 2, array.dtype)
            return _saturate(np.rint(sums * np.float32(1.0 / (cells[0] * cells[1]))), array.dtype)
        part = _filter(array, axis + 1, columns, column_weights.astype(np.float32))
        return _saturate(np.rint(_filter(part, axis, rows, row_weights.astype(np.float32))), array.dtype)
    fixed_columns = np.rint(column_weights.astype(np.float32) * 2**_BITS).astype(np.int32)
    fixed_rows = np.rint(row_weights.astype(np.float32) * 2**_BITS).astype(np.int32)
    part = _filter(array, axis + 1, columns, fixed_columns)
    if rows.shape[1] == 2:
        along_rows = [1] * array.ndim
        along_rows[axis] = size[0]
        part >>= 4
        upper = (part.take(rows[:, 0], axis) * fixed_rows[:, 0].reshape(along_rows)) >> 16
        lower = (part.take(rows[:, 1], axis) * fixed_rows[:, 1].reshape(along_rows)) >> 16
        return _saturate((upper + lower + 2) >> 2, array.dtype)
    sums = _filter(part, axis, rows, fixed_rows)
    return _saturate((sums + (1 << (2 * _BITS - 1))) >> (2 * _BITS), array.dtype)


def _by_routines(array: Array, size: tuple[int, int], kind: Inter, axis: int, shrinks: bool) -> Array | None:
    """Resize the last axes but channels of an array by routines; None where there are none for it.

    * `array`, `size`, `kind`, `axis`: those of `resize`.
    * `shrinks`: whether both axes shrink.
    """
    images = array.reshape(-1, *array.shape[axis:])
    if not all(by_routine(image, np.uint8, np.float32) for image in images[:1]) or not len(images):
        return None
    result = np.empty((len(images), *size, *array.shape[axis + 2 :]), array.dtype)
    made = [_one_by_routines(np.ascontiguousarray(image), into, kind, shrinks) for image, into in zip(images, result)]
    return result.reshape(*array.shape[:axis], *result.shape[1:]) if all(made) else None


def _one_by_routines(image: Array, result: Array, kind: Inter, shrinks: bool) -> bool:
    """Resize one image into a result; return whether there is a routine for it."""
    channels = channels_of(image)
    source, size = image.shape[:2], result.shape[:2]
    is_bytes = image.dtype == np.uint8
    if kind is Inter.NEAREST or kind is Inter.BILINEAR and is_bytes:
        part = Part.of(image.reshape(*source, channels))._replace(size=(size[0], size[1]), kind=kind)
        write(part, result)
        return True
    if is_bytes and kind is Inter.AREA and shrinks and not source[0] % size[0] and not source[1] % size[1]:
        down, across = source[0] // size[0], source[1] // size[1]
        sums = np.empty(size[1] * channels, np.int32)
        share = float(np.float32(1.0 / (down * across)))
        filtering.cells(image, down, across, channels, *size, sums, share, result)
        return True
    rows, row_weights = taps(source[0], size[0], kind, shrinks)
    columns, column_weights = taps(source[1], size[1], kind, shrinks)
    element: Any = np.int32
    along, down_kind = "sum", "sum"
    if not is_bytes or kind is Inter.AREA and shrinks:
        element, along, down_kind = np.float32, "float", "rounded" if is_bytes else "float"
        row_weights, column_weights = row_weights.astype(element), column_weights.astype(element)
    elif kind in (Inter.ANTIALIAS, Inter.PILCUBIC):
        along = down_kind = "bytes"
        row_weights, column_weights = _in_bits(row_weights), _in_bits(column_weights)
    else:
        row_weights, column_weights = (
            np.rint(weights.astype(np.float32) * 2**_BITS).astype(element) for weights in (row_weights, column_weights)
        )
        if rows.shape[1] == 2:
            flat, places = np.zeros(1, np.uint8), (rows * source[1] * channels, columns * channels)
            memory = np.empty(2 * (size[1] * channels + 4), element)
            resizing.bilinear(
                image,
                image.size,
                0,
                places[0],
                row_weights,
                places[1],
                column_weights,
                *size,
                channels,
                memory,
                flat,
                0,
                result,
                0,
            )
            return True
    once: Array = image
    if along != "bytes" or source[1] != size[1]:
        count = columns.shape[1]
        # Four channels are written at once, so there is room for more.
        once = np.empty(source[0] * size[1] * channels + 4, np.uint8 if along == "bytes" else element)
        filtering.along_rows(
            image,
            image.size,
            *source,
            channels,
            columns,
            column_weights,
            count,
            count if count <= 4 else 0,
            along,
            size[1],
            once,
        )
    if along == "bytes" and source[0] == size[0]:
        result[...] = once[: result.size].reshape(result.shape)
        return True
    memory = np.empty(size[1] * channels, element)
    few = rows.shape[1] if rows.shape[1] in (2, 4) else 0
    filtering.along_columns(
        once, size[1] * channels, rows, row_weights, rows.shape[1], few, down_kind, size[0], memory, result
    )
    return True


def _in_bits(weights: Array) -> Array:
    """Return Pillow's weights of 22 bits."""
    fixed = np.where(weights < 0, weights * 2**_PILLOW_BITS - 0.5, weights * 2**_PILLOW_BITS + 0.5)
    whole: Array = np.trunc(fixed).astype(np.int32)
    return whole


def _saturate(values: Array, dtype: np.dtype[Any]) -> Array:
    limits = np.iinfo(dtype)
    return np.clip(values, limits.min, limits.max).astype(dtype)


class Resize(ImageTransform):
    """An image [H, W] or [H, W, C], resized in its type.

    `size` is (height, width), or the length of the shorter edge, where the longer one keeps the
    aspect ratio. For uint8, nearest, bilinear, bicubic and area give OpenCV's results, ANTIALIAS
    and PILCUBIC Pillow's.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.Resize((2, 4))(np.array([[0, 100], [200, 255]], np.uint8)).tolist()
    [[0, 25, 75, 100], [200, 214, 241, 255]]
    """

    def __init__(self, size: int | tuple[int, int] | list[int], interpolation: Inter = Inter.BILINEAR) -> None:
        parse_size("Resize", size)
        if not isinstance(interpolation, Inter):
            raise TypeError(
                f"Resize: interpolation must be an Inter, got {interpolation!r} of type {type(interpolation).__name__}"
            )
        self.size = size
        self.interpolation = interpolation

    def target(self, height: int, width: int) -> tuple[int, int]:
        """Return the size of the result for an image of this size."""
        if not isinstance(self.size, int):
            return self.size[0], self.size[1]
        if height < width:
            return self.size, int(self.size * width / height)
        return int(self.size * height / width), self.size

    def accepts(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
        return len(shape) in (2, 3) and 0 not in shape

    def compute(self, array: Array, lead: int) -> Array:
        # Further leading axes are batches, as when it follows `batch`.
        lead = self.leading(array, lead)
        self.check_image(array, lead)
        if array.dtype.kind not in "iuf" or array.dtype.itemsize > 4 and array.dtype.kind != "f":
            raise TypeError(
                f"Resize: expected uint8, another small integer type or floats, got {array.dtype}; use TypeCast first"
            )
        return resize(array, self.target(*array.shape[lead : lead + 2]), self.interpolation, lead)
