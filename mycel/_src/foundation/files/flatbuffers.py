"""A reader of the FlatBuffers format.

A buffer holds tables, vectors and texts at offsets. A table begins with the distance to its vtable,
which has the place of each field, 0 for one that is absent. Every offset and length is checked
against the buffer before it is used, and a vector may have no more elements than bytes are left.
"""

from __future__ import annotations

import struct

__all__ = ["FlatBufferError", "Table", "root"]


class FlatBufferError(ValueError):
    """The error for bytes that are no FlatBuffer."""


def root(content: bytes) -> Table:
    """Return the root table of a buffer."""
    return Table(content, _offset(content, 0))


def _unpack(content: bytes, form: str, position: int) -> int:
    if position < 0 or position + struct.calcsize(form) > len(content):
        raise FlatBufferError(f"an offset points to byte {position} of {len(content)}")
    found: int = struct.unpack_from(form, content, position)[0]
    return found


def _offset(content: bytes, position: int) -> int:
    return position + _unpack(content, "<I", position)


class Table:
    """A table at a position of a buffer; fields are asked for by their number."""

    __slots__ = ("content", "position", "vtable", "count")

    def __init__(self, content: bytes, position: int) -> None:
        self.content, self.position = content, position
        self.vtable = position - _unpack(content, "<i", position)
        self.count = (_unpack(content, "<H", self.vtable) - 4) // 2

    def _place(self, number: int) -> int:
        if number >= self.count:
            return 0
        offset = _unpack(self.content, "<H", self.vtable + 4 + 2 * number)
        return self.position + offset if offset else 0

    def number(self, field: int, form: str = "<i", default: int = 0) -> int:
        """Return a number of a `struct` form."""
        place = self._place(field)
        return _unpack(self.content, form, place) if place else default

    def table(self, field: int) -> Table | None:
        """Return a table, None where there is none."""
        place = self._place(field)
        return Table(self.content, _offset(self.content, place)) if place else None

    def _vector(self, field: int, size: int) -> tuple[int, int]:
        place = self._place(field)
        if not place:
            return 0, 0
        start = _offset(self.content, place)
        count = _unpack(self.content, "<I", start)
        if count * size > len(self.content) - start - 4:
            raise FlatBufferError(f"a vector at byte {start} announces {count} elements, more than there are bytes")
        return start + 4, count

    def tables(self, field: int) -> list[Table]:
        """Return the tables of a vector."""
        start, count = self._vector(field, 4)
        return [Table(self.content, _offset(self.content, start + 4 * i)) for i in range(count)]

    def numbers(self, field: int, form: str = "i") -> list[int]:
        """Return the numbers of a vector, of a `struct` letter."""
        start, count = self._vector(field, struct.calcsize(f"<{form}"))
        return list(struct.unpack_from(f"<{count}{form}", self.content, start)) if count else []

    def records(self, field: int, form: str) -> list[tuple[int, ...]]:
        """Return the structures of a vector, each the numbers of a `struct` form."""
        size = struct.calcsize(form)
        start, count = self._vector(field, size)
        return list(struct.iter_unpack(form, self.content[start : start + count * size]))

    def data(self, field: int) -> bytes:
        """Return the bytes of a vector."""
        start, count = self._vector(field, 1)
        return self.content[start : start + count]

    def text(self, field: int) -> str:
        """Return a text; what is not UTF-8 is replaced."""
        return self.data(field).decode("utf-8", "replace")
