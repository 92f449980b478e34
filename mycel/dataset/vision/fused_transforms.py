"""Fusion of successive image transforms of a `map` into one routine.

Operations of a `map` that follow one another and only move pixels, resize them or change each value
by itself become a `Chain`. For each row it goes through them without computing anything: crops and
flips are numbers of a `Part`, and random operations draw as they do when they are called, from the
same keys. A JPEG file is decoded once it is known which pixels are needed. What changes values is
tabulated for the 256 values of each channel, by the operations themselves. One routine then writes
the result into the row's place in the block. An operation that the part cannot express, as a second
resizing, has what came before it computed.

A chain gives what its operations give one by one, bit for bit. Rows that it is not made for, and
rows for which an operation raises an error, are left to the operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycel._src.engines.routines import are_on
from mycel.dataset.random_numbers.random_streams import Stream, current_stream, operation_keys, using
from mycel.dataset.rows.column_blocks import Array, Column, column_rows, try_stack
from mycel.dataset.transforms.base import Joined, Keys, Transform
from mycel.dataset.transforms.generic import TypeCast
from mycel.dataset.vision import color, composition, geometry
from mycel.dataset.vision.batched_regions import MOVES as WINDOWS
from mycel.dataset.vision.batched_regions import Unlike, Windows
from mycel.dataset.vision.codecs import jpeg
from mycel.dataset.vision.enums import Inter
from mycel.dataset.vision.lazy_regions import Part, can_resize, write, writes
from mycel.dataset.vision.resize import Resize, resize

Operation = Callable[..., Any]


class _Left(Exception):
    """The chain is not made for this row."""


# What moves pixels: functions of the operation and the part before it.


def _resized(part: Part, size: tuple[int, int], kind: Inter) -> Part:
    if part.shape == size:
        return part
    if part.size is not None or part.mirrored or part.reversed:
        part = Part.of(_computed(part))
    if not part.height or not part.width:
        raise _Left
    if can_resize(part.shape, size, kind):
        return part._replace(size=size, kind=kind)
    return Part.of(resize(_computed(part), size, kind, 0))


def _decoded(part: Part) -> Part:
    found = part.decoded()
    if found is None:
        raise _Left
    return found


def _computed(part: Part) -> Array:
    result = np.empty((*part.shape, part.source.shape[2]), np.uint8)
    write(_decoded(part), result)
    return result


def _resize(operation: Resize, part: Part) -> Part:
    if 0 in part.shape:
        raise _Left
    return _resized(part, operation.target(*part.shape), operation.interpolation)


def _random_resized_crop(operation: geometry.RandomResizedCrop, part: Part) -> Part:
    return _resized(part.crop(*operation.draw(*part.shape)), operation.size, operation.interpolation)


def _resized_crop(operation: geometry.ResizedCrop, part: Part) -> Part:
    place = operation.top, operation.left, operation.height, operation.width
    geometry.check_inside("ResizedCrop", part.shape, *place)
    return _resized(part.crop(*place), operation.size, operation.interpolation)


def _random_crop(operation: geometry.RandomCrop, part: Part) -> Part:
    size = operation.size
    if operation.padding is not None or operation.pad_if_needed and min(a - b for a, b in zip(part.shape, size)) < 0:
        raise _Left
    return part.crop(*geometry.draw_place(*part.shape, size), *size)


def _center_crop(operation: geometry.CenterCrop, part: Part) -> Part:
    over = [found - wanted for found, wanted in zip(part.shape, operation.size)]
    if min(over) < 0:
        raise _Left
    return part.crop(over[0] // 2, over[1] // 2, *operation.size)


def _crop(operation: geometry.Crop, part: Part) -> Part:
    geometry.check_inside("Crop", part.shape, *operation.coordinates, *operation.size)
    return part.crop(*operation.coordinates, *operation.size)


def _mirror(operation: Any, part: Part) -> Part:
    return part._replace(mirrored=not part.mirrored) if operation._axis else part._replace(reversed=not part.reversed)


def _random_mirror(operation: Any, part: Part) -> Part:
    return _mirror(operation, part) if current_stream().uniform() < operation.prob else part


_MOVES: dict[type, Callable[[Any, Part], Part]] = {
    Resize: _resize,
    geometry.RandomResizedCrop: _random_resized_crop,
    composition.RandomCropDecodeResize: _random_resized_crop,
    geometry.ResizedCrop: _resized_crop,
    geometry.RandomCrop: _random_crop,
    geometry.CenterCrop: _center_crop,
    geometry.Crop: _crop,
    geometry.HorizontalFlip: _mirror,
    geometry.VerticalFlip: _mirror,
    geometry.RandomHorizontalFlip: _random_mirror,
    geometry.RandomVerticalFlip: _random_mirror,
}
# What changes each value by itself, and the order of axes.
_VALUES = (
    color.Rescale,
    color.Normalize,
    color.ToTensor,
    color.ToType,
    color.Invert,
    color.AdjustBrightness,
    geometry.HWC2CHW,
    TypeCast,
)


# How many rows are computed at once at least, and the bytes of a row for which calling a routine
# takes as long as its work.
_SEVERAL, _SMALL = 8, 1 << 13


class Chain(Joined):
    """Operations that are computed at once, of a `map` in which they are the ones from `first` on.

    `operations` are decoding or not, what moves pixels, and what changes their values, in this
    order.
    """

    def __init__(self, first: int, operations: Sequence[Operation]) -> None:
        self.first, self.operations = first, list(operations)
        kinds = [type(operation) for operation in operations]
        self.decode = operations[0] if kinds[0] is color.Decode else None
        begin = int(self.decode is not None)
        if kinds[0] is composition.RandomCropDecodeResize:
            self.decode = color.Decode()
        end = begin
        while end < len(kinds) and (end == 0 or _moves(operations[end])) and kinds[end] in _MOVES:
            end += 1
        self.moves = list(enumerate(operations))[begin:end]
        self._by_windows = self.decode is None and all(kind is Resize or kind in WINDOWS for kind in kinds[begin:end])
        # By the number of channels, which is at most `MOST_CHANNELS`.
        self._known: dict[int, tuple[str, tuple[Array | None, bool]]] = {}
        self.values = [operation for operation in operations[end:] if isinstance(operation, Transform)]

    def apply(self, columns: Sequence[Column], count: int, keys: Keys | None) -> list[Column] | None:
        """Return the column that the operations make of one, or None where they are to be called.

        * `columns`: the columns, of `count` rows.
        * `keys`: the keys of the rows, or None where nothing is random.
        """
        if len(columns) != 1 or not are_on():
            return None
        together = self.at_once(columns[0], keys)
        if together is not None:
            return [together]
        if self.is_better_apart(columns[0]):
            return None
        rows = column_rows(columns[0], count)
        if not all(isinstance(row, np.ndarray) for row in rows):
            return None
        seeds: dict[int, list[int]] = {}
        for n, operation in self.moves:
            if keys is not None and getattr(operation, "random", False):
                seeds[n] = operation_keys(keys, self.first + n).tolist()
        made = _Rows(self, rows, seeds)
        try:
            made.work()
        except (_Left, ValueError, TypeError, IndexError, RuntimeError, FloatingPointError):
            # The operations, called one by one, raise the error that names the row.
            return None
        return [made.column()]

    def at_once(self, column: Column, keys: Keys | None) -> Array | None:
        """Return what is made of a block of small images; None where they are not to be computed at
        once.
        """
        if len(column) < _SEVERAL or not self._by_windows or getattr(column[0], "nbytes", _SMALL) >= _SMALL:
            return None
        if isinstance(column, list) and not all(type(row) is np.ndarray for row in column):
            return None
        block = try_stack(column)
        if block is None or block.ndim != 4 or not writes(block[0], block.shape[3]):
            return None
        try:
            parts = Windows(np.ascontiguousarray(block))
            for n, operation in self.moves:
                own = (
                    operation_keys(keys, self.first + n)
                    if keys is not None and getattr(operation, "random", False)
                    else None
                )
                if type(operation) is Resize:
                    images = parts.images if parts.is_whole else parts.taken(None, False)
                    parts = Windows(operation.apply_block(images, None))
                else:
                    parts = WINDOWS[type(operation)](operation, parts, own)
            return parts.taken(*self.known_table(parts.images.shape[3]))
        except (Unlike, _Left, ValueError, TypeError, IndexError, RuntimeError, FloatingPointError):
            # The operations, called one by one, raise the error that names the row.
            return None

    def is_better_apart(self, column: Column) -> bool:
        """Return whether operations on whole blocks take less time than a routine for each row."""
        if not isinstance(column, np.ndarray) or len(column) < _SEVERAL or column.nbytes > _SMALL * len(column):
            return False
        return all(getattr(operation, "vectorised", False) for operation in self.operations)

    def part(self, row: Array) -> Part:
        """Return the image of a row."""
        if self.decode is not None:
            file = (
                jpeg.opened(row.tobytes()) if row.ndim == 1 and row.dtype.kind in "ui" and row.itemsize == 1 else None
            )
            if file is not None:
                return Part.of(file)
            row = self.decode(row)
        if row.ndim != 3 or not writes(row, row.shape[2]):
            raise _Left
        return Part.of(row)

    def known_table(self, channels: int) -> tuple[Array | None, bool]:
        """Return the table for so many channels, made anew where an operation was changed."""
        now = repr(self.values)
        before = self._known.get(channels)
        if before is None or before[0] != now:
            before = self._known[channels] = now, self.table(channels)
        return before[1]

    def table(self, channels: int) -> tuple[Array | None, bool]:
        """Return what becomes of each value of each channel, and whether channels come first."""
        if not self.values:
            return None, False
        found = np.repeat(np.arange(256, dtype=np.uint8)[:, None, None], channels, 2)
        with np.errstate(divide="raise", over="raise", invalid="raise"):
            for operation in self.values:
                planes = found.shape == (channels, 256, 1)
                if isinstance(operation, color.Normalize) and operation.is_hwc is planes and len(operation.mean) > 1:
                    raise _Left
                found = operation(found)
        planes = found.shape == (channels, 256, 1)
        if not planes and found.shape != (256, 1, channels) or found.dtype.kind not in "iufb":
            raise _Left
        table = found[..., 0] if planes else found[:, 0].T
        if table.dtype == np.uint8 and (table == np.arange(256)).all():
            return None, planes
        return np.ascontiguousarray(table), planes


class _Rows:
    """The results of a chain for the rows of a block: in one array if they are of one shape."""

    def __init__(self, chain: Chain, rows: Sequence[Array], seeds: dict[int, list[int]]) -> None:
        self.chain, self.rows, self.seeds = chain, rows, seeds
        self.tables: dict[int, tuple[Array | None, bool]] = {}
        self.together: Array | None = None
        self.apart: dict[int, Array] = {}

    def work(self) -> None:
        """Compute the rows."""
        chain, seeds = self.chain, self.seeds
        with using(Stream() if seeds else None) as stream:
            for number, row in enumerate(self.rows):
                part = chain.part(row)
                for n, operation in chain.moves:
                    if stream is not None and n in seeds:
                        stream.begin(seeds[n][number])
                    part = _MOVES[type(operation)](operation, part)
                self.write(number, part)

    def write(self, number: int, part: Part) -> None:
        part = _decoded(part)
        channels = part.source.shape[2]
        if channels not in self.tables:
            self.tables[channels] = self.chain.known_table(channels)
        table, planes = self.tables[channels]
        shape = (channels, *part.shape) if planes else (*part.shape, channels)
        dtype = np.dtype(np.uint8) if table is None else table.dtype
        if not number:
            self.together = np.empty((len(self.rows), *shape), dtype)
        if self.together is not None and self.together.shape[1:] == shape:
            write(part, self.together, number * (self.together.size // len(self.rows)), table, planes)
        else:
            self.apart[number] = np.empty(shape, dtype)
            write(part, self.apart[number], 0, table, planes)

    def column(self) -> Column:
        """Return the rows."""
        if self.together is None:
            raise _Left
        if not self.apart:
            return self.together
        return [self.apart.get(number, row) for number, row in enumerate(self.together)]


def _moves(operation: Operation) -> bool:
    """Return whether an operation moves pixels, of an image that is decoded."""
    return type(operation) in _MOVES and type(operation) is not composition.RandomCropDecodeResize


def steps(operations: Sequence[Operation]) -> list[tuple[int, Operation | Chain]]:
    """Return the operations of a `map` with their numbers, those of a chain as one `Chain`.

    A chain has at least two operations, or decodes and resizes. Subclasses of the transforms are
    not part of any.
    """
    found: list[tuple[int, Operation | Chain]] = []
    number = 0
    while number < len(operations):
        first = operations[number]
        both = type(first) is composition.RandomCropDecodeResize
        end = number + (both or type(first) is color.Decode and not first.to_pil)
        while end < len(operations) and _moves(operations[end]):
            end += 1
        while end < len(operations) and type(operations[end]) in _VALUES:
            end += 1
        if end - number > 1 or both:
            found.append((number, Chain(number, operations[number:end])))
            number = end
        else:
            found.append((number, operations[number]))
            number += 1
    return found
