"""Lazy crops and flips of all images of a block at once, computed when written to a result.

`Windows` says for every image of a block of small ones which part of it is wanted and whether it is
flipped, and copies none. What random operations draw is computed for all rows at once, from their
keys, and is what each would draw alone. `taken` has all parts written by one routine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mycel.dataset.random_numbers.random_streams import drawn_integers, first_uniform
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.vision import geometry
from mycel.dataset.vision.border_padding import fill_of
from mycel.dataset.vision.enums import Border
from mycel.dataset.vision.kernels import region_copies as nest
from mycel.dataset.vision.lazy_regions import WORDS, forms

Keys = np.ndarray[Any, np.dtype[np.uint64]]


class Unlike(Exception):
    """The parts are not ones that windows can say."""


class Windows:
    """Parts of the images of a block, uint8 [N, H, W, C] in C order; the whole of each at first."""

    def __init__(self, images: Array) -> None:
        self.images = images
        count, self.rows, self.columns = images.shape[:3]
        self.tops, self.lefts = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.mirrored, self.turned = np.zeros(count, bool), np.zeros(count, bool)
        self.fill = np.zeros(images.shape[3], np.uint8)
        self.is_whole = True

    def crop(self, tops: Any, lefts: Any, rows: int, columns: int) -> None:
        """Take a part of each part: of `rows` and `columns` from (`tops`, `lefts`) on."""
        self.tops += np.where(self.turned, self.rows - tops - rows, tops)
        self.lefts += np.where(self.mirrored, self.columns - lefts - columns, lefts)
        self.rows, self.columns = rows, columns
        self.is_whole = False

    def inside(self, top: int, left: int, rows: int, columns: int) -> None:
        """Take the same part of each part, as in `crop`; raise Unlike unless it lies inside.

        It has `rows` and `columns` from (`top`, `left`) on.
        """
        if min(top, left) < 0 or top + rows > self.rows or left + columns > self.columns:
            raise Unlike
        self.crop(top, left, rows, columns)

    def taken(self, table: Array | None, planes: bool) -> Array:
        """Return the parts, looked up in a table unless it is None, with channels first or last."""
        count, height, width, channels = self.images.shape
        size = (channels, self.rows, self.columns) if planes else (self.rows, self.columns, channels)
        result: Array = np.empty((count, *size), np.uint8 if table is None else table.dtype)
        found, form = forms(table, planes)
        word = WORDS[result.itemsize]
        nest.take(
            self.images,
            count,
            height,
            width,
            channels,
            self.tops,
            self.lefts,
            self.mirrored.view(np.uint8),
            self.turned.view(np.uint8),
            self.rows,
            self.columns,
            self.fill,
            found.view(word),
            form,
            result.view(word),
        )
        return result


def _random_crop(operation: geometry.RandomCrop, parts: Windows, keys: Keys) -> Windows:
    rows, columns = operation.size
    left, top, right, bottom = operation.padding or (0, 0, 0, 0)
    height, width = parts.rows + top + bottom, parts.columns + left + right
    if operation.padding is not None:
        if operation.padding_mode is not Border.CONSTANT:
            raise Unlike
        if not parts.is_whole:
            parts = Windows(parts.taken(None, False))
        parts.fill[:] = fill_of(parts.images, operation.fill_value, 1)
    if height < rows or width < columns:
        raise Unlike
    tops, lefts = drawn_integers(keys, (height - rows, width - columns))
    parts.crop(tops - top, lefts - left, rows, columns)
    return parts


def _center_crop(operation: geometry.CenterCrop, parts: Windows, keys: Keys) -> Windows:
    rows, columns = operation.size
    parts.inside((parts.rows - rows) // 2, (parts.columns - columns) // 2, rows, columns)
    return parts


def _crop(operation: geometry.Crop, parts: Windows, keys: Keys) -> Windows:
    parts.inside(*operation.coordinates, *operation.size)
    return parts


def _flip(operation: geometry.HorizontalFlip, parts: Windows, chosen: Any) -> Windows:
    parts.is_whole = False
    if operation._axis:
        parts.mirrored ^= chosen
    else:
        parts.turned ^= chosen
    return parts


def _random_flip(operation: geometry.RandomHorizontalFlip, parts: Windows, keys: Keys) -> Windows:
    return _flip(operation, parts, first_uniform(keys) < operation.prob)


# What becomes of the parts by an operation, which random ones draw from keys.
MOVES: dict[type, Callable[[Any, Windows, Any], Windows]] = {
    geometry.RandomCrop: _random_crop,
    geometry.CenterCrop: _center_crop,
    geometry.Crop: _crop,
    geometry.HorizontalFlip: lambda operation, parts, keys: _flip(operation, parts, True),
    geometry.VerticalFlip: lambda operation, parts, keys: _flip(operation, parts, True),
    geometry.RandomHorizontalFlip: _random_flip,
    geometry.RandomVerticalFlip: _random_flip,
}
