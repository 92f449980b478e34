"""What a record batch of an Arrow file becomes in memory, told before anything is decompressed.

Buffers of a batch may be compressed, each by itself, and begin with how long they become. pyarrow
takes as much memory as they say. So their beginnings are read here, where the tables of the file
(Flatbuffers) say that they are; what they say together may be no more than `limit` allows.

Source: the format's `File.fbs`, `Message.fbs` and `Schema.fbs` (Apache Arrow columnar format 1.5).
"""

from __future__ import annotations

import struct
from typing import IO, Any

from mycel.base.decompression import limit

_MAGIC = b"ARROW1"
# Tables of a file with a million batches are a few ten MiB.
_MOST = 1 << 28
_DICTIONARY = 2


class Refused(ValueError):
    """Batches that take too much memory, or tables that are damaged."""


class _Table:
    """A table of Flatbuffers at a place in its content."""

    def __init__(self, content: bytes, at: int) -> None:
        self.content, self.at = content, at
        vtable = at - self._number("<i", at)
        size = self._number("<H", vtable)
        self.fields = [self._number("<H", vtable + place) for place in range(4, size - 1, 2)]

    @staticmethod
    def root(content: bytes) -> _Table:
        """Return the table that a content is of."""
        if len(content) < 4:
            raise Refused("a table of the file is too short")
        return _Table(content, struct.unpack_from("<I", content)[0])

    def _number(self, form: str, at: int) -> int:
        if not 0 <= at <= len(self.content) - struct.calcsize(form):
            raise Refused("a table of the file points out of itself")
        return int(struct.unpack_from(form, self.content, at)[0])

    def _place(self, field: int) -> int:
        offset = self.fields[field] if field < len(self.fields) else 0
        return self.at + offset if offset else 0

    def number(self, field: int, form: str) -> int:
        """Return a number, 0 where it is left out."""
        place = self._place(field)
        return self._number(form, place) if place else 0

    def table(self, field: int) -> Any:
        """Return another table, or None."""
        place = self._place(field)
        return _Table(self.content, place + self._number("<I", place)) if place else None

    def structures(self, field: int, form: str) -> list[tuple[int, ...]]:
        """Return a list of structures of numbers."""
        place = self._place(field)
        if not place:
            return []
        start = place + self._number("<I", place)
        count, size = self._number("<I", start), struct.calcsize(form)
        if count * size > len(self.content) - start - 4:
            raise Refused("a list of the file ends beyond its table")
        return list(struct.iter_unpack(form, self.content[start + 4 : start + 4 + count * size]))


def _read(handle: IO[bytes], start: int, size: int, end: int) -> bytes:
    if not 0 <= size <= _MOST or not 0 <= start <= end - size:
        raise Refused(f"{size} bytes of tables at offset {start} are not in a file of {end} bytes")
    handle.seek(start)
    content = handle.read(size)
    if len(content) < size:
        raise Refused(f"it ends after {start + len(content)} bytes, before {end}")
    return content


class Sizes:
    """Where the batches of an Arrow file lie.

    `handle` is the open file, `size` how many bytes it has.
    """

    def __init__(self, handle: IO[bytes], size: int) -> None:
        self.size = size
        ending = _read(handle, size - 10, 10, size)
        if ending[4:] != _MAGIC:
            raise Refused("it has no end mark: it was cut off, or its writer was not closed")
        length = int(struct.unpack("<i", ending[:4])[0])
        footer = _Table.root(_read(handle, size - 10 - length, length, size))
        self._dictionaries = footer.structures(2, "<qi4xq")
        self.batches = footer.structures(3, "<qi4xq")
        self._of_dictionaries = sum(self._becomes(handle, block) for block in self._dictionaries)
        self._check(self._of_dictionaries, "its dictionaries")

    def check(self, handle: IO[bytes], number: int) -> None:
        """Raise Refused where a batch becomes too much, with the dictionaries of all."""
        if number >= len(self.batches):
            raise Refused(f"there is no record batch {number}; there are {len(self.batches)}")
        self._check(self._of_dictionaries + self._becomes(handle, self.batches[number]), f"record batch {number}")

    def _check(self, becomes: int, what: str) -> None:
        if becomes > limit(self.size):
            raise Refused(
                f"{what} would become {becomes >> 20} MiB of a file of {self.size} bytes, and {limit(self.size) >> 20} "
                "MiB are allowed; MYCEL_INFLATE sets how much"
            )

    def _becomes(self, handle: IO[bytes], block: tuple[int, ...]) -> int:
        """Return how many bytes the compressed buffers of a batch become."""
        offset, head, body = block
        prefix = _read(handle, offset, 8, self.size)
        own = 8 if prefix[:4] == b"\xff\xff\xff\xff" else 4
        message = _Table.root(_read(handle, offset + own, head - own, self.size))
        batch = message.table(2)
        if batch is not None and message.number(1, "<B") == _DICTIONARY:
            batch = batch.table(1)
        if batch is None or batch.table(3) is None:
            return 0
        total = 0
        for start, length in batch.structures(2, "<qq"):
            if length < 0 or start < 0 or start + length > body:
                raise Refused(f"a buffer of {length} bytes at {start} is not in its batch of {body} bytes")
            if length >= 8:
                said = int(struct.unpack("<q", _read(handle, offset + head + start, 8, self.size))[0])
                # Those that did not become smaller are there as they are.
                total += length - 8 if said == -1 else said
                if said < -1:
                    raise Refused(f"a compressed buffer says that it becomes {said} bytes")
        return total
