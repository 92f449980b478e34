"""Decompressed size of a record batch of an Arrow file, known before decompressing it.

Buffers of a batch may be compressed, each by itself, and begin with how long they become. pyarrow
takes as much memory as they say. So their beginnings are read here, where the tables of the file
(Flatbuffers) say that they are; what they say together may be no more than `limit` allows.

Source: the format's `File.fbs`, `Message.fbs` and `Schema.fbs` (Apache Arrow columnar format 1.5).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from mycel._src.foundation.files.decompression import limit
from mycel._src.foundation.files.flatbuffers import FlatBufferError, Table, root

_MAGIC = b"ARROW1"
# Tables of a file with a million batches are a few ten MiB.
_MOST = 1 << 28
_DICTIONARY = 2


class Refused(ValueError):
    """Batches that take too much memory, or tables that are damaged."""


@contextmanager
def _tables() -> Iterator[None]:
    try:
        yield
    except FlatBufferError as error:
        raise Refused(f"its tables are damaged: {error}") from None


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
        with _tables():
            footer = root(_read(handle, size - 10 - length, length, size))
            dictionaries, self.batches = (footer.records(field, "<qi4xq") for field in (2, 3))
            self._of_dictionaries = sum(self._becomes(handle, block) for block in dictionaries)
        self._check(self._of_dictionaries, "its dictionaries")

    def check(self, handle: IO[bytes], number: int) -> None:
        """Raise Refused where a batch becomes too much, with the dictionaries of all."""
        if number >= len(self.batches):
            raise Refused(f"there is no record batch {number}; there are {len(self.batches)}")
        with _tables():
            becomes = self._becomes(handle, self.batches[number])
        self._check(self._of_dictionaries + becomes, f"record batch {number}")

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
        message = root(_read(handle, offset + own, head - own, self.size))
        batch: Table | None = message.table(2)
        if batch is not None and message.number(1, "<B") == _DICTIONARY:
            batch = batch.table(1)
        if batch is None or batch.table(3) is None:
            return 0
        total = 0
        for start, length in batch.records(2, "<qq"):
            if length < 0 or start < 0 or start + length > body:
                raise Refused(f"a buffer of {length} bytes at {start} is not in its batch of {body} bytes")
            if length >= 8:
                said = int(struct.unpack("<q", _read(handle, offset + head + start, 8, self.size))[0])
                # Those that did not become smaller are there as they are.
                total += length - 8 if said == -1 else said
                if said < -1:
                    raise Refused(f"a compressed buffer says that it becomes {said} bytes")
        return total
