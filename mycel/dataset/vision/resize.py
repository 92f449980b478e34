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

from mycel._src.engines.routines import are_on
from mycel._src.foundation import arguments
from mycel._src.foundation.bounded_caches import FEW, SOME, Remembered
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.vision.base import ImageTransform, by_routine, channels_of, dtypes_of, parse_size
from mycel.dataset.vision.enums import Inter
from mycel.dataset.vision.kernels import resize_interpolation, separable_filters
from mycel.dataset.vision.kernels.pixel_store import PIXELS
from mycel.dataset.vision.lazy_regions import cut, is_cut, places

_BITS = 11
_PILLOW_BITS = 22
# The element types of images that routines resize.
_READ = dtypes_of("uint8", "float32", "uint16", "int16")
_NO_TABLE = np.zeros(1, np.uint8)
Taps = tuple[np.ndarray[Any, np.dtype[np.int64]], np.ndarray[Any, np.dtype[np.float64]]]


def taps(source: int, target: int, kind: Inter, shrinks: bool = False) -> Taps:
    """Return which input positions every output position reads, and their weights.

    Both are [target, k], int64 and float64.

    * `source`, `target`: the lengths of the axis before and after.
    * `kind`: the interpolation.
    * `shrinks`: whether the image shrinks along both axes, in which case AREA averages cells;
      otherwise it interpolates between neighbours.
    """
    # OpenCV rounds twice.
    scale = 1.0 / (target / source)
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
        near = ((place + 1) - (start + 1) * (target / source)).astype(np.float32)
        fraction = np.where(near <= 0, 0.0, near - np.floor(near)).astype(np.float64)
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
    place, scale = np.arange(target), source / target
    low, high = place * scale, np.minimum((place + 1) * scale, source)
    start, stop = np.floor(low + 1e-9).astype(np.int64), np.ceil(high - 1e-9).astype(np.int64)
    cells = start[:, None] + np.arange((stop - start).max())
    shared = np.minimum(high[:, None], cells + 1) - np.maximum(low[:, None], cells)
    weights = np.where(cells < stop[:, None], shared / (high - low)[:, None], 0.0)
    return np.minimum(cells, source - 1), weights


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
        return cut(array, 0, 0, *size) if not axis and is_cut(array) else np.array(array)
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
    if not axis:
        if not by_routine(array, _READ):
            return None
        made: Array = np.empty((*size, *array.shape[2:]), array.dtype)
        _write(np.ascontiguousarray(array), (0, 0, *array.shape[:2]), made, kind, shrinks)
        return made
    images = array.reshape(-1, *array.shape[axis:])
    if not len(images) or not by_routine(images[0], _READ):
        return None
    result = np.empty((len(images), *size, *array.shape[axis + 2 :]), array.dtype)
    if kind is Inter.BILINEAR and images.dtype == np.uint8:
        _bilinear_of_all(np.ascontiguousarray(images), result)
    else:
        for image, into in zip(images, result):
            _write(np.ascontiguousarray(image), (0, 0, *image.shape[:2]), into, kind, shrinks)
    together: Array = result.reshape(*array.shape[:axis], *result.shape[1:])
    return together


def resize_part(array: Array, place: tuple[int, int, int, int], size: tuple[int, int], kind: Inter, axis: int) -> Array:
    """Resize a part of an image.

    * `array`, `size`, `kind`, `axis`: those of `resize`.
    * `place`: the (top, left, height, width) of the part.
    """
    top, left, height, width = place
    if axis or (height, width) == size or not height or not width or not by_routine(array, _READ) or min(size) < 1:
        rows, columns = slice(top, top + height), slice(left, left + width)
        return resize(array[(slice(None),) * axis + (rows, columns)], size, kind, axis)
    if kind is Inter.BILINEAR and (height, width) == (2 * size[0], 2 * size[1]):
        kind = Inter.AREA
    made: Array = np.empty((*size, *array.shape[2:]), array.dtype)
    _write(np.ascontiguousarray(array), place, made, kind, height >= size[0] and width >= size[1])
    return made


def _write(image: Array, place: tuple[int, int, int, int], result: Array, kind: Inter, shrinks: bool) -> None:
    """Resize a part of an image [H, W] or [H, W, C] in C order into a result.

    * `place`: the (top, left, height, width) of the part.
    * `kind`, `shrinks`: the interpolation, and whether both axes shrink.
    """
    top, left, height, width = place
    key = height, width, image.shape[1:], result.shape, result.dtype, kind, shrinks
    plan = _plans.recent.get(key) or _plans.recall(key, lambda: _planned(*key))
    pitch = image.shape[1]
    if image.ndim == 3:
        pitch, left = pitch * image.shape[2], left * image.shape[2]
    plan(image, top * pitch + left, result)


# What resizes a part of an image, which begins at an element, into a result.
_Plan = Callable[[Array, int, Array], None]
# Images of one size are resized alike.
_plans = Remembered[tuple[Any, ...], _Plan]("resizing of images", FEW)


def _planned(
    height: int,
    width: int,
    line: tuple[int, ...],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    kind: Inter,
    shrinks: bool,
) -> _Plan:
    """Return what resizes parts of `height` and `width` of images.

    * `line`: the width of images, and how many channels they have, if it is said.
    * `shape`, `dtype`: those of results.
    * `kind`, `shrinks`: the interpolation, and whether both axes shrink.
    """
    channels = line[1] if len(line) == 2 else 1
    size, pitch = (shape[0], shape[1]), line[0] * channels
    frame = height, width, pitch, channels, size
    if kind is Inter.NEAREST:
        rows = places(height, size[0], pitch, kind)[0]
        columns = places(width, size[1], channels, kind)[0]
        table = np.zeros(1, dtype)
        return lambda image, start, result: resize_interpolation.nearest(
            image, start, rows, columns, *size, channels, table, PIXELS, result, 0
        )
    if dtype != np.uint8:
        return _separably(frame, kind, shrinks, "float", "float" if dtype.kind == "f" else dtype.name)
    if kind is Inter.AREA and shrinks:
        down, across = height // size[0], width // size[1]
        if (height, width) != (down * size[0], across * size[1]):
            return _separably(frame, kind, shrinks, "float", "uint8")
        share = float(np.float32(1.0 / (down * across)))
        return lambda image, start, result: separable_filters.cells(
            image, start, pitch, down, across, channels, *size, np.empty(size[1] * channels, np.int32), share, result
        )
    if kind is Inter.BICUBIC:
        return _separably(frame, kind, shrinks, "sum", "sum")
    if kind in (Inter.ANTIALIAS, Inter.PILCUBIC):
        return _as_pillow(frame, kind)
    return _bilinear(frame, kind)


# The height and width of a part, the elements of a row of its image and of a pixel, and the size of
# the result.
_Frame = tuple[int, int, int, int, tuple[int, int]]


def _bilinear(frame: _Frame, kind: Inter) -> _Plan:
    """Return what resizes bytes between two neighbours along each axis."""
    height, width, pitch, channels, size = frame
    if kind is Inter.BILINEAR:
        rows, row_weights = places(height, size[0], pitch, kind)
        columns, column_weights = places(width, size[1], channels, kind)
    else:
        rows, row_weights = _axis(height, size[0], kind, False, "sum")
        columns, column_weights = _axis(width, size[1], kind, False, "sum")
        rows, columns = rows * pitch, columns * channels
    room = 2 * (size[1] * channels + 4)

    def plan(image: Array, start: int, result: Array) -> None:
        resize_interpolation.bilinear(
            image,
            image.size,
            start,
            rows,
            row_weights,
            columns,
            column_weights,
            *size,
            channels,
            np.empty(room, np.int16),
            _NO_TABLE,
            PIXELS,
            result,
            0,
        )

    return plan


def _bilinear_of_all(images: Array, result: Array) -> None:
    """Resize bytes of several images [N, H, W] or [N, H, W, C] into a result."""
    count, height, width = images.shape[:3]
    rows, columns = result.shape[1:3]
    channels = channels_of(images[0])
    row_places, row_weights = places(height, rows, width * channels, Inter.BILINEAR)
    column_places, column_weights = places(width, columns, channels, Inter.BILINEAR)
    resize_interpolation.bilinear_of_all(
        images,
        images.size,
        count,
        images.size // count,
        row_places,
        row_weights,
        column_places,
        column_weights,
        rows,
        columns,
        channels,
        np.empty(2 * (columns * channels + 4), np.int16),
        _NO_TABLE,
        PIXELS,
        result,
    )


def _separably(frame: _Frame, kind: Inter, shrinks: bool, across: str, down: str) -> _Plan:
    """Return what filters along rows, and what these give along columns.

    `across` and `down` are how routines add up along rows and columns.
    """
    height, width, pitch, channels, size = frame
    element = np.float32 if across == "float" else np.int32
    columns, column_weights = _axis(width, size[1], kind, shrinks, across)
    rows, row_weights = _axis(height, size[0], kind, shrinks, across)
    column_taps, row_taps = columns.shape[1], rows.shape[1]
    few, few_rows = column_taps if column_taps <= 4 else 0, row_taps if row_taps in (2, 4) else 0
    room = size[1] * channels

    def plan(image: Array, start: int, result: Array) -> None:
        separable_filters.filtered(
            image,
            image.size,
            start,
            pitch,
            channels,
            columns,
            column_weights,
            column_taps,
            few,
            across,
            rows,
            row_weights,
            row_taps,
            few_rows,
            down,
            *size,
            np.empty(row_taps, np.int64),
            np.empty(row_taps * (room + 4), element),
            np.empty(room, element),
            result,
        )

    return plan


def _as_pillow(frame: _Frame, kind: Inter) -> _Plan:
    """Return what filters along the axes whose lengths change, and rounds to bytes after each."""
    height, width, pitch, channels, size = frame
    if height != size[0] and width != size[1]:
        return _separably(frame, kind, False, "bytes", "bytes")

    def part(image: Array, start: int) -> Array:
        lines = image.reshape(-1)[start : start + (height - 1) * pitch + width * channels]
        return np.ascontiguousarray(np.lib.stride_tricks.as_strided(lines, (height, width * channels), (pitch, 1)))

    if width != size[1]:
        columns, column_weights = _axis(width, size[1], kind, False, "bytes")
        count = columns.shape[1]
        few, room = count if count <= 4 else 0, size[0] * size[1] * channels

        def along_rows(image: Array, start: int, result: Array) -> None:
            # Four channels are written at once, so there is room for more.
            source, once = part(image, start), np.empty(room + 4, np.uint8)
            separable_filters.along_rows(
                source,
                source.size,
                height,
                width,
                channels,
                columns,
                column_weights,
                count,
                few,
                "bytes",
                size[1],
                once,
            )
            result[...] = once[:room].reshape(result.shape)

        return along_rows
    rows, row_weights = _axis(height, size[0], kind, False, "bytes")

    def along_columns(image: Array, start: int, result: Array) -> None:
        source, memory = part(image, start), np.empty(width * channels, np.int32)
        separable_filters.along_columns(
            source, height, width * channels, rows, row_weights, rows.shape[1], "bytes", size[0], memory, result
        )

    return along_columns


@Remembered("axes of filtered images", SOME).calls
def _axis(source: int, target: int, kind: Inter, shrinks: bool, form: str) -> tuple[Array, Array]:
    """Return what `taps` gives, with weights as routines take them.

    They are float32 for the `form` "float", of 22 bits for "bytes", and of 11 for "sum".
    """
    if kind is Inter.BILINEAR and form == "float":
        near, shares = np.empty((target, 2), np.int64), np.empty((target, 2), np.float32)
        resize_interpolation.two_taps(source, target, 1, True, near, shares)
        return near, shares
    positions, weights = taps(source, target, kind, shrinks)
    if form == "float":
        return positions, weights.astype(np.float32)
    if form == "bytes":
        return positions, _in_bits(weights)
    return positions, np.rint(weights.astype(np.float32) * 2**_BITS).astype(np.int16)


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

    keeps = True

    def __init__(self, size: int | tuple[int, int] | list[int], interpolation: Inter = Inter.BILINEAR) -> None:
        parse_size("Resize", size)
        arguments.instance("Resize", "interpolation", interpolation, Inter)
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
        if lead or array.ndim not in (2, 3):
            # Further leading axes are batches, as when it follows `batch`.
            lead = self.leading(array, lead)
            self.check_image(array, lead)
        if array.dtype not in _READ and (
            array.dtype.kind not in "iuf" or array.dtype.itemsize > 4 and array.dtype.kind != "f"
        ):
            raise TypeError(
                f"Resize: the image must be uint8, another small integer type or floats, not {array.dtype}; use "
                "TypeCast first"
            )
        return resize(array, self.target(*array.shape[lead : lead + 2]), self.interpolation, lead)
