"""Files of MATLAB, version 5 to 7: numbers, text, cells, structs and sparse matrices.

A file is a header of 128 bytes followed by elements. An element is a type and a size in four bytes
each, then the content, padded to a multiple of eight; content that fits into four bytes stands in
place of the size. It holds a matrix, possibly compressed. A matrix consists of elements: flags with
its class, its sizes, its name and its values, by columns. Values have the type that they are stored
as. Sizes that a file states are compared with the bytes that are there before memory is allocated;
whatever is wrong with a file is a ValueError.
"""

from __future__ import annotations

import math
import os
import struct
import zlib
from typing import Any

import numpy as np

from mycel._src.foundation.files import decompression as inflate
from mycel.dataset.rows.column_blocks import Array

_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_TEXT = {16: "utf-8", 17: "utf-16", 18: "utf-32", 4: "utf-16", 2: "latin-1", 1: "latin-1"}
_MATRIX, _COMPRESSED = 14, 15
_CELL, _STRUCT, _CHARACTERS, _SPARSE, _LAST = 1, 2, 4, 5, 15
_COMPLEX = 8
# How deep cells and structs may be within each other.
_DEEPEST = 20


class _Elements:
    """A reader of the elements within some bytes, from the first to the last."""

    def __init__(self, content: memoryview, order: str, most: int) -> None:
        self.content = content
        self.order = order
        self.most = most
        self.at = 0

    def next(self, *kinds: int) -> tuple[int, memoryview]:
        """Return type and content of the next element.

        Raises ValueError where there is none, or one of another type.
        """
        if self.at + 8 > len(self.content):
            raise ValueError("it is cut off")
        kind, size = struct.unpack_from(self.order + "II", self.content, self.at)
        if kind >> 16:
            kind, size = kind & 0xFFFF, kind >> 16
            if size > 4:
                raise ValueError(f"an element of 4 bytes or less has {size}")
            start, self.at = self.at + 4, self.at + 8
        else:
            start = self.at + 8
            self.at = start + size + (-size % 8 if kind != _COMPRESSED else 0)
        if start + size > len(self.content):
            raise ValueError(f"an element of {size} bytes ends beyond the file")
        if kinds and kind not in kinds:
            raise ValueError(f"an element is of type {kind}, not {' or '.join(map(str, kinds))}")
        return kind, self.content[start : start + size]

    def numbers(self, *kinds: int) -> Array:
        """Return the next element as numbers."""
        kind, content = self.next(*(kinds or _NUMBERS))
        found: Array = np.frombuffer(content, np.dtype(self.order + _NUMBERS[kind]))
        return found.astype(found.dtype.newbyteorder("="))

    def matrix(self, depth: int = 0) -> tuple[str, Any]:
        """Return name and value of the next element, a matrix."""
        _, content = self.next(_MATRIX)
        return self.within(content).described(depth) if len(content) else ("", np.zeros((0, 0)))

    def within(self, content: memoryview) -> _Elements:
        """Return a reader of the elements of an element."""
        return _Elements(content, self.order, self.most)

    def described(self, depth: int) -> tuple[str, Any]:
        """Return name and value of the matrix that these elements describe."""
        if depth > _DEEPEST:
            raise ValueError(f"cells and structs are more than {_DEEPEST} deep")
        flags = self.numbers(6)
        sizes = tuple(int(n) for n in self.numbers(5))
        name = bytes(self.next(1, 2)[1]).decode("latin-1")
        kind = int(flags[0]) & 255 if flags.size == 2 else 0
        if not 1 <= kind <= _LAST or not 2 <= len(sizes) <= 16 or min(sizes) < 0:
            raise ValueError(f"the variable {name!r:.40} is of class {kind} and has sizes {sizes}")
        count = math.prod(sizes)
        if kind == _CELL:
            return name, self._cells(count, sizes, depth)
        if kind == _STRUCT:
            return name, self._fields(count, sizes, depth)
        if kind == _SPARSE:
            return name, self._sparse(sizes)
        if kind == _CHARACTERS:
            form, content = self.next(*_TEXT)
            codec = _TEXT[form] + ({"<": "-le", ">": "-be"}[self.order] if form in (4, 17, 18) else "")
            return name, bytes(content).decode(codec)
        values = self.numbers()
        if int(flags[0]) >> 8 & _COMPLEX:
            values = values + 1j * self.numbers()
        if values.size != count:
            raise ValueError(f"the variable {name!r:.40} has {values.size} values for sizes {sizes}")
        return name, values.reshape(sizes, order="F")

    def _cells(self, count: int, sizes: tuple[int, ...], depth: int) -> Array:
        if 8 * count > len(self.content):
            raise ValueError(f"{count} cells do not fit into {len(self.content)} bytes")
        cells = np.empty(count, object)
        for place in range(count):
            cells[place] = self.matrix(depth + 1)[1]
        return cells.reshape(sizes, order="F")

    def _fields(self, count: int, sizes: tuple[int, ...], depth: int) -> dict[str, Array]:
        width = int(self.numbers(5).sum())
        names = bytes(self.next(1, 2)[1])
        if not 1 <= width <= len(names) or len(names) % width:
            raise ValueError(f"names of fields take {width} bytes each, of {len(names)}")
        fields = [names[at : at + width].partition(b"\0")[0].decode("latin-1") for at in range(0, len(names), width)]
        if 8 * count * len(fields) > len(self.content):
            raise ValueError(f"{count} structs of {len(fields)} fields do not fit into {len(self.content)} bytes")
        found = {field: np.empty(count, object) for field in fields}
        for place in range(count):
            for field in fields:
                found[field][place] = self.matrix(depth + 1)[1]
        return {field: values.reshape(sizes, order="F") for field, values in found.items()}

    def _sparse(self, sizes: tuple[int, ...]) -> Array:
        rows, starts, values = self.numbers(5, 6).astype(np.int64), self.numbers(5, 6).astype(np.int64), self.numbers()
        height, width = sizes[0], math.prod(sizes[1:])
        # MATLAB may leave room behind the last value.
        used = int(starts[-1]) if starts.size else 0
        rows, values = rows[:used], values[:used]
        steps = np.diff(starts)
        if starts.size != width + 1 or starts[0] != 0 or (steps < 0).any() or not used == rows.size == values.size:
            raise ValueError(f"a sparse matrix of sizes {sizes} has columns that do not fit its {values.size} values")
        if rows.size and not 0 <= rows.min() <= rows.max() < height:
            raise ValueError(f"a sparse matrix of {height} rows has one beyond them")
        if values.itemsize * height * width > self.most:
            raise ValueError(f"a sparse matrix of sizes {sizes} takes more than {self.most >> 20} MiB")
        dense = np.zeros((height, width), values.dtype)
        dense[rows, np.repeat(np.arange(width), steps)] = values
        return dense


def read_variables(path: str | os.PathLike[str], wanted: frozenset[str]) -> dict[str, Any]:
    """Return the wanted variables of a file.

    They are arrays, text, arrays of objects for cells, and dictionaries of such arrays for structs.
    Sparse matrices become dense ones.
    """
    size = os.path.getsize(path)
    most = inflate.limit(size)
    with open(path, "rb") as handle:
        content = memoryview(handle.read())
    orders = {b"IM": "<", b"MI": ">"}
    mark = bytes(content[126:128])
    if len(content) < 128 or mark not in orders:
        raise ValueError("it has not the header of version 5 to 7")
    order = orders[mark]
    (version,) = struct.unpack_from(order + "H", content, 124)
    if version != 0x0100:
        raise ValueError(f"it is of version {version:#06x}; save it with -v7")
    elements = _Elements(content[128:], order, most)
    found: dict[str, Any] = {}
    left = most
    while elements.at < len(elements.content) and not wanted <= found.keys():
        kind, part = elements.next()
        if kind == _COMPRESSED:
            inner = _inflated(part, left)
            left -= len(inner)
            kind, part = _Elements(memoryview(inner), order, most).next(_MATRIX)
        if kind == _MATRIX and len(part):
            name, value = elements.within(part).described(0)
            if name in wanted:
                found[name] = value
    return found


def _inflated(content: memoryview, most: int) -> bytes:
    machine = zlib.decompressobj()
    found = machine.decompress(content, most + 1)
    if len(found) > most:
        raise ValueError(
            f"it becomes more than {most >> 20} MiB when it is decompressed; if it may, set the environment "
            'variable MYCEL_INFLATE to a size such as "8GB"'
        )
    if not machine.eof:
        raise ValueError("a compressed part of it is cut off")
    return found
