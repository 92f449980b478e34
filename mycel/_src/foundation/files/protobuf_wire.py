"""The wire format of Protocol Buffers.

`fields` parses a message in memory, `Cursor` one in a file; `field` and `packed` encode fields. A
field is a number (field number times 8 plus kind) and a value: a number in groups of seven bits,
four or eight bytes, or a length and as many bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

__all__ = ["BYTES", "VARINT", "Cursor", "WireError", "field", "fields", "integers", "packed", "signed", "varint"]

VARINT, BYTES = 0, 2
# The kinds of values of a fixed number of bytes.
FIXED = {1: 8, 5: 4}
MASK = (1 << 64) - 1
Content = bytes | memoryview


class WireError(ValueError):
    """The error for bytes that are not a message."""


def fields(content: Content) -> Iterator[tuple[int, Any]]:
    """Yield the numbers and values of a message's fields.

    A value is an int for a number, bytes for anything else: a view of them where `content` is a
    view.

    >>> list(fields(field(1, 300) + field(2, "ab")))
    [(1, 300), (2, b'ab')]
    """
    position, end = 0, len(content)
    while position < end:
        key = content[position]
        position += 1
        if key > 0x7F:
            key, position = _number(content, position - 1)
        number, kind = key >> 3, key & 7
        if not number:
            raise WireError(f"a field numbered 0 at byte {position}")
        if kind == BYTES:
            # Most are shorter than 128 bytes.
            if position < end and content[position] < 0x80:
                length = content[position]
                position += 1
            else:
                length, position = _number(content, position)
        elif kind == VARINT:
            value, position = _number(content, position)
            yield number, value
            continue
        elif kind in FIXED:
            length = FIXED[kind]
        else:
            raise WireError(f"field {number} is of the unknown kind {kind}")
        if length > end - position:
            raise WireError(f"{length} bytes announced at byte {position} where {end - position} are left")
        yield number, content[position : position + length]
        position += length


def _number(content: Content, position: int) -> tuple[int, int]:
    """Read the number that begins at a position; return it and the position where it ends."""
    value, end = 0, len(content)
    for shift in range(0, 70, 7):
        if position >= end:
            raise WireError("a number runs past the end of the message")
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & MASK, position
    raise WireError(f"a number of more than 10 bytes at byte {position - 10}")


class Cursor:
    """A position in a file of messages too long to be held in memory.

    Every method takes the end of the message that it is in and never reads beyond it. Errors of the
    file are those that `damaged` makes.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.size = file.seek(0, os.SEEK_END)
        self.position = 0
        file.seek(0)

    def damaged(self, what: str) -> Exception:
        """Return the error for a file that is wrong at this position."""
        return WireError(f"{what} at byte {self.position} of {self.size}")

    def field(self, end: int) -> tuple[int, int]:
        """Read the number and kind of a field."""
        key = self.number(end)
        if key >> 3 == 0:
            raise self.damaged("a field numbered 0")
        return key >> 3, key & 7

    def number(self, end: int) -> int:
        """Read a number."""
        value = 0
        for shift in range(0, 70, 7):
            if self.position >= end:
                raise self.damaged("a number that runs past the end of its message")
            byte = self.file.read(1)
            if not byte:
                raise self.damaged("the file grew shorter while it was read")
            self.position += 1
            value |= (byte[0] & 0x7F) << shift
            if byte[0] < 0x80:
                return value & MASK
        raise self.damaged("a number of more than 10 bytes")

    def length(self, end: int) -> int:
        """Read a length; return the position where that many bytes end."""
        length = self.number(end)
        if length > end - self.position:
            raise self.damaged(f"{length} bytes announced where {end - self.position} are left")
        return self.position + length

    def text(self, end: int, what: str) -> str:
        """Read text up to `end`; errors call it `what`."""
        content = self.file.read(end - self.position)
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise self.damaged(f"{what} that is not UTF-8") from error
        self.position = end
        return text

    def skip(self, number: int, kind: int, end: int) -> None:
        """Skip the value of field `number` of a `kind`, in a message that ends at `end`."""
        if kind == VARINT:
            self.number(end)
        elif kind == BYTES:
            self.seek(self.length(end))
        elif kind in FIXED:
            stop = self.position + FIXED[kind]
            if stop > end:
                raise self.damaged("a number that runs past the end of its message")
            self.seek(stop)
        else:
            raise self.damaged(f"field {number} of unknown kind {kind}")

    def seek(self, position: int) -> None:
        """Go to a position."""
        self.file.seek(position)
        self.position = position


def integers(value: int | Content) -> list[int]:
    """List the numbers in a repeated field: one, or several that are packed."""
    if isinstance(value, int):
        return [value]
    found, position, end = [], 0, len(value)
    while position < end:
        number = value[position]
        position += 1
        if number > 0x7F:
            number, position = _number(value, position - 1)
        found.append(number)
    return found


def signed(value: int) -> int:
    """Return the signed value of an int32 or int64 field."""
    return value - (1 << 64) if value >= 1 << 63 else value


def varint(value: int) -> bytes:
    """Encode a number in as many groups of seven bits as it takes, the lowest first.

    Negative numbers are taken modulo 2**64.
    """
    value &= MASK
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, value: int | str | bytes) -> bytes:
    """Encode a field that holds a number, a text, or bytes such as a message."""
    if isinstance(value, int):
        return varint(number << 3 | VARINT) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | BYTES) + varint(len(content)) + content


def packed(number: int, values: Iterable[int]) -> bytes:
    """Encode a repeated field of numbers; empty where there are none."""
    content = b"".join([varint(v) for v in values])
    return field(number, content) if content else b""
