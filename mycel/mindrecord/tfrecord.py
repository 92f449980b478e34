"""TFRecord files: records, and the `Example` messages in them.

A record is its length in eight bytes, little-endian, four bytes of checksum of these, the content, and four bytes of checksum of that. The checksum is CRC-32C, turned by
15 bits and increased by a constant. Lengths are checked by it before they are believed; contents are not. An `Example` is a Protocol Buffers message: field 1
holds `Features`, whose field 1 is a map from names to `Feature`, whose field 1, 2 or 3 is a list, in field 1, of bytes, floats or integers.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import IO, Any, Union

import numpy as np

from mycel.base.decompression import PIECE, Inflated

Values = Union[list[bytes], np.ndarray[Any, np.dtype[Any]]]
_MASK = (1 << 64) - 1


def _table() -> list[int]:
    rows = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        rows.append(byte)
    return rows


_TABLE = _table()


def checksum(content: bytes) -> int:
    """The CRC-32C (Castagnoli; RFC 3720) of some bytes.

    >>> from mycel.mindrecord.tfrecord import checksum
    >>> hex(checksum(b"123456789"))
    '0xe3069283'
    """
    state = 0xFFFFFFFF
    for byte in content:
        state = _TABLE[(state ^ byte) & 255] ^ state >> 8
    return state ^ 0xFFFFFFFF


def masked_checksum(content: bytes) -> int:
    """The checksum of some bytes as TFRecord files have it.

    >>> from mycel.mindrecord.tfrecord import masked_checksum
    >>> hex(masked_checksum(b"123456789"))
    '0xc78ab0e5'
    """
    state = checksum(content)
    return ((state >> 15 | state << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _open(path: str, compression: str) -> IO[bytes] | Inflated:
    return Inflated(path, compression) if compression else open(path, "rb")


def _content(handle: IO[bytes] | Inflated, size: int) -> bytes:
    """The next `size` bytes, fewer at the end: what a record claims to have is not allocated before it is there."""
    parts: list[bytes] = []
    while size and (part := handle.read(min(size, PIECE))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _size(path: str, number: int, head: bytes) -> int:
    """How long a record is, from its first twelve bytes."""
    if len(head) < 12:
        raise ValueError(f"{path!r} ends within record {number}")
    size, check = struct.unpack("<QI", head)
    if masked_checksum(head[:8]) != check:
        raise ValueError(
            f"{path!r} is not a TFRecord file, or is damaged at record {number}, or its compression is another one"
        )
    return int(size)


def read_records(path: str, compression: str = "") -> Iterator[bytes]:
    """The contents of the records of a file; `compression` is "", "GZIP" or "ZLIB". ValueError where the file is none or is cut off."""
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
    """Where the contents of the records of an uncompressed file start, and how long they are; ValueError where the file is none or is cut off."""
    spans: list[tuple[int, int]] = []
    with open(path, "rb") as handle:
        total = os.fstat(handle.fileno()).st_size
        at = 0
        while at < total:
            head = handle.read(12)
            size = _size(path, len(spans), head)
            if at + 16 + size > total:
                raise ValueError(f"{path!r} ends within record {len(spans)}")
            spans.append((at + 12, size))
            at += 16 + size
            handle.seek(at)
    return spans


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & _MASK, at
        shift += 7
        if shift > 63:
            raise ValueError("a number takes more than ten bytes")


def _fields(content: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message: number, and an integer, or bytes."""
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(content, at)
            yield key >> 3, value
            continue
        if kind == 2:
            size, at = _varint(content, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"a field is of wire type {kind}")
        if at + size > len(content):
            raise ValueError("a field ends beyond its message")
        yield key >> 3, content[at : at + size]
        at += size


def _feature(content: bytes) -> Values:
    for kind, packed in _fields(content):
        values = [value for number, value in _fields(packed) if number == 1]
        if kind == 1:
            if any(isinstance(value, int) for value in values):
                raise ValueError("a list of bytes has a number in it")
            return values
        if kind == 2:
            return np.frombuffer(b"".join(values), "<f4").astype(np.float32)
        if kind == 3:
            numbers: list[int] = []
            for value in values:
                if isinstance(value, int):
                    numbers.append(value)
                    continue
                at = 0
                while at < len(value):
                    number, at = _varint(value, at)
                    numbers.append(number)
            return np.array(numbers, np.uint64).view(np.int64)
    return []


def parse_example(content: bytes) -> dict[str, Values]:
    """The features of an `Example`: lists of bytes, float32 or int64 arrays of one axis. ValueError where it is none.

    >>> from mycel.mindrecord.tfrecord import parse_example
    >>> parse_example(bytes.fromhex("0a0c0a0a0a01781205") + bytes.fromhex("1a030a0105"))
    {'x': array([5])}
    """
    found: dict[str, Values] = {}
    try:
        for number, features in _fields(content):
            if number != 1:
                continue
            for entry_number, entry in _fields(features):
                if entry_number == 1:
                    pair = dict(_fields(entry))
                    found[pair[1].decode()] = _feature(pair.get(2, b""))
    except (IndexError, KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
        raise ValueError(f"the {len(content)} bytes of a record are not an Example: {error!r}") from error
    return found
