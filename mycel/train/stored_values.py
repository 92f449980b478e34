"""Values that lie in files, of which any part is read by itself.

A `StoredTensor` is what a safetensors or ckpt file has of one tensor. Its file stays open, so that
another one may take its name, or the name may go. `JoinedValues` are put together from boxes of
others, as the files of several ranks have them. Both are what a parameter may reserve
(`core.parameter.Reserved`): each rank reads its part once its layout is known.

A part consists of stretches of the file. They are read straight into the part's memory where its
type is the file's and it is contiguous, else through a block of at most `BLOCK` bytes. Where
stretches are shorter than a page and begin less than a page apart, every page has some of them, and
many are read at once. Places and sizes were checked against the length of the file before.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import struct
import sys
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from mycel._src.compiler.transforms.partition import blocks
from mycel._src.foundation.python_runtime.finalization import when_gone
from mycel._src.foundation.system import locks
from mycel.common.block_draws import runs
from mycel.train.checkpoint_format import (
    MAX_RANK,
    CheckpointError,
    ckpt_places,
    file_checksum,
    titles_of_safetensors,
    unchecked,
    unknown_type,
)

__all__ = [
    "ArrayValues",
    "JoinedValues",
    "OpenFile",
    "Place",
    "StoredTensor",
    "StoredValues",
    "safetensors_header",
    "stored_ckpt",
    "stored_safetensors",
]

Array = np.ndarray[Any, Any]
Places = Sequence[Array | None]
Bounds = tuple[tuple[int, int], ...]

BLOCK = 1 << 20
_PAGE = 4096
# So many short stretches are read one by one, which takes no time to speak of.
_FEW = 256
_MOST_AT_ONCE = 1 << 28


class OpenFile:
    """A file that is open for reading at any place; raises OSError where it cannot be opened."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        self.descriptor = os.open(self.path, flags)
        when_gone(self, os.close, self.descriptor, at_exit=False)
        self.size = os.fstat(self.descriptor).st_size
        self._seeking = locks.lock()

    def read(self, into: memoryview, start: int) -> None:
        """Fill `into`, a view of bytes, with those from `start` on; raise CheckpointError where the
        file ends before.
        """
        done = 0
        while done < len(into):
            count = self._read(into[done : done + _MOST_AT_ONCE], start + done)
            if not count:
                raise CheckpointError(f"{self.path}: damaged: the file grew shorter while it was read")
            done += count

    def _read(self, into: memoryview, start: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self.descriptor, [into], start)
        with self._seeking:
            os.lseek(self.descriptor, start, os.SEEK_SET)
            found = os.read(self.descriptor, min(len(into), BLOCK))
        into[: len(found)] = found
        return len(found)


class StoredValues(ABC):
    """The values of a tensor of a `shape`, whose elements are of the `kind` (NumPy's type)."""

    shape: tuple[int, ...]
    kind: np.dtype[Any]
    fills: ClassVar[bool]
    draws = False

    def __init_subclass__(cls) -> None:
        # As initializers say it: every element is written.
        cls.fills = True

    @abstractmethod
    def read(self, part: Array, places: Places) -> None:
        """Fill an array of the same kind with the elements at `places`: for each axis the numbers
        of what the part has of it, none smaller than the one before, or None for all.
        """

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements, as arrays name it."""
        return self.kind

    @property
    def nbytes(self) -> int:
        """The number of bytes that all values take."""
        return math.prod(self.shape) * self.kind.itemsize

    def array(self) -> Array:
        """Return all values in a new array."""
        made = np.empty(self.shape, self.kind)
        self.read(made, [None] * made.ndim)
        return made

    def fill(self, array: Array) -> None:
        """Fill an array with all values, converted to its type."""
        self.fill_part(array, array.shape, [None] * array.ndim)

    __call__ = fill

    def fill_part(self, part: Array, shape: Sequence[int], places: Places) -> None:
        """Fill a part of a tensor of `shape` with its values, converted to its type.

        Trailing dimensions of size 1 may be missing in `shape`.
        """
        missing = len(self.shape) - len(shape)
        if (*shape, *[1] * missing) != self.shape:
            raise ValueError(f"stored values of shape {self.shape} are asked for as {tuple(shape)}")
        places = [*places, *[None] * missing]
        for axis, own in enumerate(places):
            # Padding repeats places of before where it is inside of an axis.
            falls = [] if own is None else (1 + np.flatnonzero(np.diff(own) < 0)).tolist()
            if falls and own is not None:
                for start, stop in zip([0, *falls], [*falls, len(own)]):
                    some = part[(slice(None),) * axis + (slice(start, stop),)]
                    self.fill_part(some, shape, [*places[:axis], own[start:stop], *places[axis + 1 : len(shape)]])
                return
        part = part[(Ellipsis,) + (None,) * missing]
        if part.dtype == self.kind:
            self.read(part, places)
            return
        for block, own in self.blocks(part.shape, places):
            with np.errstate(over="ignore"):
                part[block] = own

    def blocks(self, shape: Sequence[int], places: Places) -> Iterator[tuple[tuple[slice, ...], Array]]:
        """Yield what a part of `shape` has at `places`, by blocks, with their slices of the part;
        all are in the same memory, one after the other.
        """
        most = max(1, BLOCK // self.kind.itemsize)
        room = np.empty(min(most, math.prod(shape)), self.kind)
        for block in blocks(shape, most):
            sizes = [s.stop - s.start for s in block]
            made = room[: math.prod(sizes)].reshape(sizes)
            self.read(made, [_cut(own, s, size) for own, s, size in zip(places, block, shape)])
            yield block, made

    def as_type(self, old: Any, new: Any) -> StoredValues | None:
        """Return the values of a tensor of the type `old` after a conversion to `new`; None where
        they would not be those that the file converts to.
        """
        return self if old.numpy == self.kind else None


def _cut(own: Array | None, stretch: slice, size: int) -> Array | None:
    if own is not None:
        return own[stretch]
    return None if stretch == slice(0, size) else np.arange(stretch.start, stretch.stop)


class StoredTensor(StoredValues):
    """A tensor in a `file`, of a `shape` and a `kind` of elements: `pieces` are the places and
    lengths of its bytes, in order.
    """

    def __init__(
        self, file: OpenFile, shape: tuple[int, ...], kind: np.dtype[Any], pieces: Sequence[tuple[int, int]]
    ) -> None:
        self.file, self.shape, self.kind = file, shape, kind
        self.starts = [0, *itertools.accumulate(length for _, length in pieces)]
        self.places = [place for place, _ in pieces]
        if self.starts[-1] != self.nbytes or any(min(p) < 0 or sum(p) > file.size for p in pieces):
            raise CheckpointError(f"{file.path}: damaged: {self.nbytes} bytes of a tensor are not where it says")

    def read(self, part: Array, places: Places) -> None:
        if not part.size:
            return
        if not part.flags.c_contiguous:
            for block, own in self.blocks(part.shape, places):
                part[block] = own
            return
        flat = part.reshape(-1).view(np.uint8)
        cut = max((axis for axis, own in enumerate(places) if own is not None), default=-1)
        if cut < 0 or not self._read_many(flat, cut, places):
            done, target = 0, flat.data
            for first, count in runs(self.shape, places):
                length = count * self.kind.itemsize
                self._read(target[done : done + length], first * self.kind.itemsize)
                done += length
        if self.kind.kind == "b":
            np.not_equal(flat, 0, out=flat.view(np.bool_))
        elif sys.byteorder == "big" and self.kind.itemsize > 1:
            (part.view(f"u{self.kind.itemsize}") if self.kind.kind == "V" else part).byteswap(inplace=True)

    def _read(self, into: memoryview, start: int) -> None:
        """Read bytes of the tensor from `start` on, out of as many pieces as have them."""
        done = 0
        while done < len(into):
            number = bisect_right(self.starts, start + done) - 1
            length = min(len(into) - done, self.starts[number + 1] - start - done)
            place = self.places[number] + start + done - self.starts[number]
            self.file.read(into[done : done + length], place)
            done += length

    def _read_many(self, flat: Array, cut: int, places: Places) -> bool:
        """Read a part that consists of many short stretches close to each other, and return whether
        it does.

        Rows are seen as what lies within one place of the axes before `cut`, the last axis of which
        the part has some.
        """
        own = places[cut]
        assert own is not None
        unit = math.prod(self.shape[cut + 1 :]) * self.kind.itemsize
        row = self.shape[cut] * unit
        stretches = 1 + np.count_nonzero(np.diff(own) != 1)
        rows = flat.size // (len(own) * unit)
        extent = int(own[-1] - own[0] + 1) * unit
        apart = row if stretches == 1 and rows > 1 else extent // stretches
        if rows * stretches <= _FEW or apart > _PAGE:
            return False
        target = flat.reshape(rows, len(own), unit)
        # Rows one behind the other are read together where a few of them fit into a block.
        most = max(1, BLOCK // row)
        room = np.empty(max(BLOCK, min(row, BLOCK + unit)), np.uint8)
        done = 0
        for first, count in runs(self.shape[:cut], places[:cut]):
            for start in range(first, first + count, most):
                taken = min(most, first + count - start)
                for begin, end in _within(own, max(1, BLOCK // unit)):
                    low, high = int(own[begin]), int(own[end - 1]) + 1
                    length = (taken - 1) * row + (high - low) * unit
                    self._read(room[:length].data, start * row + low * unit)
                    found = np.ndarray((taken, high - low, unit), np.uint8, room, 0, (row, unit, 1))
                    plain = high - low == end - begin
                    chosen = found if plain else found.take(own[begin:end] - low, 1)
                    target[done : done + taken, begin:end] = chosen
                done += taken
        return True


def _within(own: Array, most: int) -> Iterator[tuple[int, int]]:
    """Yield stretches of ascending numbers whose first and last are less than `most` apart."""
    begin = 0
    while begin < len(own):
        end = int(np.searchsorted(own, own[begin] + most))
        yield begin, end
        begin = end


class ArrayValues(StoredValues):
    """Values that are in memory, in an array."""

    def __init__(self, values: Array) -> None:
        self.values, self.shape, self.kind = values, values.shape, values.dtype

    def read(self, part: Array, places: Places) -> None:
        found = self.values
        for axis, own in enumerate(places):
            found = found if own is None else found.take(own, axis)
        part[...] = found

    def array(self) -> Array:
        return self.values


class JoinedValues(StoredValues):
    """A tensor of which others have boxes: for each the bounds of the box here, the number along
    each axis that its first element has there, and the values.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        kind: np.dtype[Any],
        boxes: Sequence[tuple[Bounds, tuple[int, ...], StoredValues]],
    ) -> None:
        self.shape, self.kind, self.boxes = shape, kind, boxes

    def read(self, part: Array, places: Places) -> None:
        for bounds, firsts, values in self.boxes:
            into: list[slice] = []
            wanted: list[Array | None] = []
            for axis, ((start, stop), first, own) in enumerate(zip(bounds, firsts, places)):
                if own is None:
                    into.append(slice(start, stop))
                    wanted.append(_cut(None, slice(first, first + stop - start), values.shape[axis]))
                else:
                    low, high = (int(n) for n in np.searchsorted(own, (start, stop)))
                    into.append(slice(low, high))
                    there, size = own[low:high] - (start - first), values.shape[axis]
                    is_all = len(there) == size and np.array_equal(there, np.arange(size))
                    wanted.append(None if is_all else there)
            if all(s.start < s.stop for s in into):
                values.read(part[tuple(into)], wanted)


# Files.


class Place(NamedTuple):
    """The place, element type (with its title) and shape of a tensor in a safetensors file."""

    title: str
    kind: np.dtype[Any]
    shape: tuple[int, ...]
    start: int


def safetensors_header(file: OpenFile) -> tuple[dict[str, Place], dict[str, str]]:
    """Return the tensors of a safetensors file, and its metadata, from its header alone.

    Raises CheckpointError for a file that is damaged.
    """
    path, size = file.path, file.size
    try:
        (length,) = struct.unpack("<Q", _bytes(file, 0, min(8, size)))
        if length > size - 8:
            raise ValueError("its header is longer than the file")
        header = json.loads(_bytes(file, 8, length))
        metadata = header.pop("__metadata__", None) or {}
        if not isinstance(metadata, dict):
            raise ValueError("its metadata is no object")
        titles = titles_of_safetensors()
        found, places = {}, []
        for name, entry in header.items():
            if isinstance(entry["dtype"], str) and entry["dtype"] not in titles:
                raise unknown_type(path, name, entry["dtype"])
            title, kind = titles[entry["dtype"]]
            shape, (start, stop) = tuple(entry["shape"]), entry["data_offsets"]
            if not all(type(n) is int and n >= 0 for n in (*shape, start, stop)) or len(shape) > MAX_RANK:
                raise ValueError(
                    f"{name!r} has an impossible shape or place: {shape!r:.100}, {start!r:.30}, {stop!r:.30}"
                )
            if stop - start != math.prod(shape) * kind.itemsize:
                raise ValueError(f"{name!r} has {stop - start} bytes for {title} of shape {shape}")
            found[name] = Place(title, kind, shape, 8 + length + start)
            places.append((start, stop))
    except CheckpointError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, struct.error, RecursionError) as error:
        raise CheckpointError(f"{path}: damaged, or not a safetensors file: {error}") from error
    end = 0
    for start, stop in sorted(places):
        # One behind the other, so that they take no more memory than the file.
        if start != end:
            raise CheckpointError(
                f"{path}: damaged: bytes {min(start, end)} to {max(start, end)} of its tensors are two's or nobody's"
            )
        end = stop
    if end != size - 8 - length:
        raise CheckpointError(f"{path}: damaged: its tensors take {end} bytes, and the file has {size - 8 - length}")
    return found, metadata


def _bytes(file: OpenFile, start: int, length: int) -> bytes:
    found = bytearray(length)
    file.read(memoryview(found), start)
    return bytes(found)


def stored_safetensors(
    path: str | os.PathLike[str], wanted: Callable[[str], bool] | None = None, verify: bool = False
) -> dict[str, StoredValues | str]:
    """Return the tensors of a safetensors file whose names `wanted` accepts (default: all).

    With `verify`, the checksum in the metadata is compared; a file without one is refused. Raises
    CheckpointError for a file that is damaged, OSError where it cannot be read.
    """
    file = OpenFile(path)
    found, metadata = safetensors_header(file)
    if verify:
        stored = metadata.get("crc_num")
        if stored is None:
            raise unchecked(file.path)
        with open(os.dup(file.descriptor), "rb") as whole:
            crc = file_checksum(whole, {name: (place.shape, place.kind, place.start) for name, place in found.items()})
        if str(crc) != stored:
            raise CheckpointError(f"{file.path}: damaged: its checksum is {crc}, and {stored} was saved with it")
    return {
        name: StoredTensor(file, place.shape, place.kind, [(place.start, math.prod(place.shape) * place.kind.itemsize)])
        for name, place in found.items()
        if wanted is None or wanted(name)
    }


def stored_ckpt(
    path: str | os.PathLike[str], wanted: Callable[[str], bool] | None = None, verify: bool = False
) -> dict[str, StoredValues | str]:
    """Return the tensors and strings of a ckpt file whose names `wanted` accepts (default: all).

    With `verify` the checksum is compared. Raises CheckpointError for a file that is damaged or
    encrypted, OSError where it cannot be read.
    """
    file = OpenFile(path)
    with open(os.dup(file.descriptor), "rb") as whole:
        found = ckpt_places(whole, file.path, wanted, verify)
    return {name: entry if isinstance(entry, str) else StoredTensor(file, *entry) for name, entry in found.items()}
