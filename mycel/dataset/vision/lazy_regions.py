"""Lazy crops, flips and resizes of images, computed when written to a result.

A `Part` says which pixels of an image are wanted and in which order, and copies none. `write` has
them computed into a result by one routine. All results are those of NumPy's code in `resize.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mycel._src.foundation.bounded_caches import SOME, Remembered
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.vision.base import BYTE, MOST_CHANNELS, by_routine, channels_of, flat_by_routine
from mycel.dataset.vision.codecs.jpeg import Encoded
from mycel.dataset.vision.enums import Inter
from mycel.dataset.vision.kernels import resize_interpolation
from mycel.dataset.vision.kernels.pixel_store import FOUND_PIXELS, FOUND_PLANES, PIXELS, PLANES

WORDS = {1: np.uint8, 2: np.uint16, 4: np.int32, 8: np.int64}
_NO_TABLE = np.zeros(1, np.uint8)


class Part(NamedTuple):
    """A rectangle of an image in C order [H, W, C], resized, of which a rectangle is taken.

    * `source`: the image, which may be a file that is not decoded yet.
    * `top`, `left`, `height`, `width`: the first rectangle.
    * `size`: the (height, width) after resizing, or None where it is not resized.
    * `kind`: the interpolation, NEAREST or BILINEAR.
    * `inner`: the (top, left, height, width) that is taken of what was resized, or None for all.
    * `mirrored`, `reversed`: whether columns and rows are in reverse order.
    """

    source: Array | Encoded
    top: int
    left: int
    height: int
    width: int
    size: tuple[int, int] | None = None
    kind: Inter = Inter.BILINEAR
    inner: tuple[int, int, int, int] | None = None
    mirrored: bool = False
    reversed: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """The height and width of the result."""
        if self.inner is not None:
            return self.inner[2], self.inner[3]
        return self.size or (self.height, self.width)

    @staticmethod
    def of(source: Array | Encoded) -> Part:
        """Return the whole of an image."""
        return Part(source, 0, 0, source.shape[0], source.shape[1])

    def decoded(self) -> Part | None:
        """Return the part of an image whose pixels are there; None where they are not decoded."""
        if not isinstance(self.source, Encoded):
            return self
        (top, height), (left, width) = (0, self.height), (0, self.width)
        if self.size is not None and self.inner is not None:
            top, height = _span(self.height, self.size[0], self.inner[0], self.inner[2])
            left, width = _span(self.width, self.size[1], self.inner[1], self.inner[3])
        found = self.source.pixels(self.top + top, self.left + left, height, width)
        return (
            None
            if found is None
            else self._replace(source=found[0], top=self.top - found[1], left=self.left - found[2])
        )

    def crop(self, top: int, left: int, height: int, width: int) -> Part:
        """Return a rectangle of this part, of `height` and `width` from (`top`, `left`) on."""
        whole = self.shape
        top = whole[0] - top - height if self.reversed else top
        left = whole[1] - left - width if self.mirrored else left
        if self.size is None:
            return self._replace(top=self.top + top, left=self.left + left, height=height, width=width)
        before = self.inner or (0, 0, *self.size)
        return self._replace(inner=(before[0] + top, before[1] + left, height, width))


def _span(source: int, target: int, first: int, count: int) -> tuple[int, int]:
    """Return the first of the places, and how many, that a part of a resized axis is made of.

    * `source`, `target`: the lengths of the axis before and after.
    * `first`, `count`: the part.
    """
    scale = source / target
    begin = max(0, int((first + 0.5) * scale - 0.5) - 2)
    end = min(source, int((first + count + 0.5) * scale) + 3)
    return begin, end - begin


def writes(array: Array, channels: int) -> bool:
    """Return whether routines take images such as this one."""
    return array.dtype == np.uint8 and array.flags.c_contiguous and 1 <= channels <= MOST_CHANNELS and array.size > 0


def forms(table: Array | None, planes: bool) -> tuple[Array, int]:
    """Return the table to look up in, and how `put` is to put pixels."""
    if table is None:
        return _NO_TABLE, PLANES if planes else PIXELS
    return table, FOUND_PLANES if planes else FOUND_PIXELS


def write(part: Part, result: Array, place: int = 0, table: Array | None = None, planes: bool = False) -> None:
    """Write a part of an image into a result in C order.

    * `part`: the part, of an image for which `writes` holds and that is decoded.
    * `result`: an array that has room for it from the element number `place` on.
    * `table`: values [channels, 256] for the pixels, or None for the pixels themselves.
    * `planes`: whether channels come first.
    """
    source = part.source
    if isinstance(source, Encoded):
        raise ValueError("write: the image has to be decoded first")
    channels = source.shape[2]
    pitch = source.shape[1] * channels
    start = part.top * pitch + part.left * channels
    height, width = part.shape
    found, form = forms(table, planes)
    if table is not None:
        # Values are moved as they are, whatever they mean.
        found, result = found.view(WORDS[table.itemsize]), result.view(WORDS[table.itemsize])
    if part.size is None:
        row, pixel = pitch, channels
        if part.reversed:
            start, row = start + (height - 1) * pitch, -pitch
        if part.mirrored:
            start, pixel = start + (width - 1) * channels, -channels
        resize_interpolation.pick(source, start, row, pixel, height, width, channels, found, form, result, place)
        return
    rows, row_weights = places(part.height, part.size[0], pitch, part.kind)
    columns, column_weights = places(part.width, part.size[1], channels, part.kind)
    top, left = part.inner[:2] if part.inner is not None else (0, 0)
    rows, row_weights = (_taken(a, top, height, part.reversed) for a in (rows, row_weights))
    columns, column_weights = (_taken(a, left, width, part.mirrored) for a in (columns, column_weights))
    if part.kind is Inter.NEAREST:
        resize_interpolation.nearest(source, start, rows, columns, height, width, channels, found, form, result, place)
        return
    memory = np.empty(2 * (width * channels + 4), np.int16)
    resize_interpolation.bilinear(
        source,
        source.size,
        start,
        rows,
        row_weights,
        columns,
        column_weights,
        height,
        width,
        channels,
        memory,
        found,
        form,
        result,
        place,
    )


def mirrors(array: Array) -> bool:
    """Return whether `mirror` takes images such as this one."""
    return array.dtype.kind in "biuf" and array.itemsize in WORDS and by_routine(array, (array.dtype,))


def mirror(source: Array, result: Array, top: int = 0, left: int = 0) -> None:
    """Write a part of an image [H, W] or [H, W, C] in C order with its columns in reverse order.

    * `source`, `result`: the image, and where the part goes.
    * `top`, `left`: where it begins.

    The part is as large as `result`.
    """
    height, width = result.shape[:2]
    channels = result.shape[2] if result.ndim == 3 else 1
    pitch = source.shape[1] * channels
    start = top * pitch + (left + width - 1) * channels
    if source.dtype != BYTE:
        # Elements are moved as they are, whatever they mean.
        word = WORDS[source.itemsize]
        source, result = source.view(word), result.view(word)
    resize_interpolation.pick(source, start, pitch, -channels, height, width, channels, _NO_TABLE, PIXELS, result, 0)


def is_cut(array: Array) -> bool:
    """Return whether `cut` takes images such as this one."""
    return array.dtype.kind in "biuf" and array.itemsize in WORDS and flat_by_routine(array, (array.dtype,))


def cut(array: Array, top: int, left: int, height: int, width: int, upwards: bool = False) -> Array:
    """Return a copy of a part of an image, with its rows in reverse order if they go `upwards`.

    * `array`: the image, [H, W] or [H, W, C].
    * `top`, `left`, `height`, `width`: the part, which lies inside.
    """
    source = np.ascontiguousarray(array)
    result: Array = np.empty((height, width, *array.shape[2:]), array.dtype)
    channels = channels_of(array)
    pitch, count = source.shape[1] * channels, width * channels
    start, step = (top + height - 1, -pitch) if upwards else (top, pitch)
    word = WORDS[array.itemsize]
    source, into = source.view(word), result.view(word)
    resize_interpolation.pick(
        source, start * pitch + left * channels, step, 1, height, count, 1, _NO_TABLE, PIXELS, into, 0
    )
    return result


def _taken(array: Array, first: int, count: int, backwards: bool) -> Array:
    part = array[first : first + count]
    return np.ascontiguousarray(part[::-1]) if backwards else part


def places(source: int, target: int, step: int, kind: Inter) -> tuple[Array, Array]:
    """Return offsets and weights of the places that each place of a resized axis is made of.

    * `source`, `target`: the lengths of the axis before and after.
    * `step`: the offset from one place to the next.
    * `kind`: NEAREST, which has no weights, or BILINEAR, with weights of 11 bits.
    """
    key = source, target, step, kind
    found = _axes.recent.get(key)
    return found or _axes.recall(key, lambda: _found_places(source, target, step, kind))


# Images of one size are resized alike, and parts of any size have one of few lengths.
_axes = Remembered[tuple[int, int, int, Inter], tuple[Array, Array]]("axes of resized images", SOME)


def _found_places(source: int, target: int, step: int, kind: Inter) -> tuple[Array, Array]:
    if kind is Inter.NEAREST:
        near = np.minimum(np.floor(np.arange(target) * (1.0 / (target / source))).astype(np.int64), source - 1) * step
        return near, near
    offsets, weights = np.empty((target, 2), np.int64), np.empty((target, 2), np.int16)
    resize_interpolation.two_taps(source, target, step, False, offsets, weights)
    return offsets, weights


def can_resize(source: tuple[int, int], target: tuple[int, int], kind: Any) -> bool:
    """Return whether `write` resizes so: nearest, or bilinear unless each axis is halved, which
    averages.
    """
    if kind is Inter.BILINEAR:
        return source != (2 * target[0], 2 * target[1])
    return kind is Inter.NEAREST
