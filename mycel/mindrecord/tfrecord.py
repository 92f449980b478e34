"""TFRecord files: records, and the `Example` messages in them.

A record is its length in eight bytes, little-endian, four bytes of checksum of these, the content,
and four bytes of checksum of that. The checksum is CRC-32C, rotated by 15 bits and increased by a
constant. Lengths are checked by it before they are trusted; contents are not checked. An `Example`
is a Protocol Buffers message: field 1 holds `Features`, whose field 1 is a map from names to
`Feature`, whose field 1, 2 or 3 is a list, in field 1, of bytes, floats or integers.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np

from mycel._src.engines.routines import are_on
from mycel._src.foundation.files import fsspec_files
from mycel._src.foundation.files.decompression import PIECE, Inflated
from mycel._src.foundation.files.protobuf_wire import fields, integers
from mycel._src.foundation.python_runtime import finalization
from mycel.mindrecord.tfrecord_parsing import find_records

# How many files stay open for reading records by their places.
_OPEN = 16
Values = list[bytes] | np.ndarray[Any, np.dtype[Any]]


def _table() -> list[int]:
    rows = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        rows.append(byte)
    return rows


_TABLE = _table()


def checksum(content: bytes) -> int:
    """Return the CRC-32C (Castagnoli; RFC 3720) of some bytes.

    >>> from mycel.mindrecord.tfrecord import checksum
    >>> hex(checksum(b"123456789"))
    '0xe3069283'
    """
    state = 0xFFFFFFFF
    for byte in content:
        state = _TABLE[(state ^ byte) & 255] ^ state >> 8
    return state ^ 0xFFFFFFFF


def masked_checksum(content: bytes) -> int:
    """Return the checksum of some bytes in the form of TFRecord files.

    >>> from mycel.mindrecord.tfrecord import masked_checksum
    >>> hex(masked_checksum(b"123456789"))
    '0xc78ab0e5'
    """
    state = checksum(content)
    return ((state >> 15 | state << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _open(path: str, compression: str) -> IO[bytes] | Inflated:
    if compression:
        return Inflated(path, compression, (fsspec_files.opened(path), fsspec_files.size_of(path)))
    return fsspec_files.opened(path)


def _content(handle: IO[bytes] | Inflated, size: int) -> bytes:
    """Return the next `size` bytes, fewer at the end.

    What a record claims to have is not allocated before it is there.
    """
    parts: list[bytes] = []
    while size and (part := handle.read(min(size, PIECE))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _size(path: str, number: int, head: bytes) -> int:
    """Return the length of a record, from its first twelve bytes."""
    if len(head) < 12:
        raise ValueError(f"{path!r} ends within record {number}")
    size, check = struct.unpack("<QI", head)
    if masked_checksum(head[:8]) != check:
        raise ValueError(
            f"{path!r} is not a TFRecord file, or is damaged at record {number}, or its compression is another one"
        )
    return int(size)


def read_records(path: str, compression: str = "") -> Iterator[bytes]:
    """Yield the contents of the records of a file.

    `compression` is "", "GZIP" or "ZLIB". Raises ValueError where the file is of another format or
    is cut off.
    """
    with _open(path, compression) as handle:
        number = 0
        while head := handle.read(12):
            size = _size(path, number, head)
            content = _content(handle, size)
            if len(content) < size or len(handle.read(4)) < 4:
                raise ValueError(f"{path!r} ends within record {number}")
            yield content
            number += 1


def record_spans(path: str) -> list[tuple[int, int]]:
    """Return where the contents of the records of an uncompressed file start, and their lengths.

    Raises ValueError where the file is of another format or is cut off.
    """
    spans: list[tuple[int, int]] = []
    with fsspec_files.opened(path) as handle:
        total = fsspec_files.size_of(path)
        at = 0
        if are_on() and total and not fsspec_files.is_remote(path):
            with mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as whole:
                spans, at = find_records(np.frombuffer(whole, np.uint8), _TABLE)
            handle.seek(at)
        # What is not in the form of records, of which there is an error.
        while at < total:
            head = handle.read(12)
            size = _size(path, len(spans), head)
            if at + 16 + size > total:
                raise ValueError(f"{path!r} ends within record {len(spans)}")
            spans.append((at + 12, size))
            at += 16 + size
            handle.seek(at)
    return spans


class _Opened:
    """A file that is closed with its last reader."""

    __slots__ = ("number", "__weakref__")

    def __init__(self, path: str) -> None:
        self.number = os.open(path, os.O_RDONLY)
        finalization.when_gone(self, os.close, self.number, at_exit=False)


class Places:
    """Records by their places in files, which are opened when they are first read.

    Any thread may read, as no position of a file is used; at most `_OPEN` files stay open.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = list(paths)
        self._files: dict[int, _Opened] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Places, (self.paths,)

    def read(self, file: int, start: int, size: int) -> bytes:
        """Return the `size` bytes from `start` on of a file, by its number."""
        if fsspec_files.is_remote(self.paths[file]):
            content = fsspec_files.read(self.paths[file], start, size)
            if len(content) < size:
                raise ValueError(f"{self.paths[file]!r} has become shorter: it ends within a record")
            return content
        handle = self._files.get(file)
        if handle is None:
            while len(self._files) >= _OPEN:
                self._files.pop(next(iter(self._files.copy())), None)
            handle = self._files[file] = _Opened(self.paths[file])
        content = os.pread(handle.number, size, start)
        while len(content) < size:
            more = os.pread(handle.number, size - len(content), start + len(content))
            if not more:
                raise ValueError(f"{self.paths[file]!r} has become shorter: it ends within a record")
            content += more
        return content


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number stands where bytes should")
    return value


def _feature(content: bytes) -> Values:
    for kind, packed in fields(content):
        values = [value for number, value in fields(_bytes(packed)) if number == 1]
        if kind == 1:
            return [_bytes(value) for value in values]
        if kind == 2:
            return np.frombuffer(b"".join(map(_bytes, values)), "<f4").astype(np.float32)
        if kind == 3:
            return np.array([n for value in values for n in integers(value)], np.uint64).view(np.int64)
    return []


def parse_example(content: bytes) -> dict[str, Values]:
    """Return the features of an `Example`: lists of bytes, or float32 or int64 arrays of one axis.

    Raises ValueError for other messages.

    >>> from mycel.mindrecord.tfrecord import parse_example
    >>> parse_example(bytes.fromhex("0a0c0a0a0a01781205") + bytes.fromhex("1a030a0105"))
    {'x': array([5])}
    """
    found: dict[str, Values] = {}
    try:
        for number, features in fields(content):
            if number != 1:
                continue
            for entry_number, entry in fields(_bytes(features)):
                if entry_number == 1:
                    pair = dict(fields(_bytes(entry)))
                    found[_bytes(pair[1]).decode()] = _feature(_bytes(pair.get(2, b"")))
    except (KeyError, UnicodeDecodeError) as error:
        raise ValueError(f"the {len(content)} bytes of a record are not an Example: {error!r}") from error
    return found
