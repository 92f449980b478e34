"""The wire format of Protocol Buffers, as much of it as small messages need: `fields` takes a message apart, `field` and `packed` make the parts of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Union

__all__ = ["WireError", "field", "fields", "integers", "packed", "signed", "varint"]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class WireError(ValueError):
    """Bytes that are no message."""


def fields(content: bytes) -> Iterator[tuple[int, Union[int, bytes]]]:
    """The numbers and values of a message's fields: an int for a number, bytes for anything else.

    >>> list(fields(field(1, 300) + field(2, "ab")))
    [(1, 300), (2, b'ab')]
    """
    position = 0
    while position < len(content):
        key, position = _varint(content, position)
        number, kind = key >> 3, key & 7
        if not number:
            raise WireError(f"a field numbered 0 at byte {position}")
        if kind == _VARINT:
            value, position = _varint(content, position)
            yield number, value
            continue
        if kind == _BYTES:
            length, position = _varint(content, position)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise WireError(f"field {number} is of the unknown kind {kind}")
        if length > len(content) - position:
            raise WireError(f"{length} bytes announced at byte {position} where {len(content) - position} are left")
        yield number, content[position : position + length]
        position += length


def _varint(content: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(content):
            raise WireError("a number runs past the end of the message")
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise WireError(f"a number of more than 10 bytes at byte {position - 10}")


def integers(value: Union[int, bytes]) -> list[int]:
    """The numbers in a repeated field: one, or several that are packed."""
    if isinstance(value, int):
        return [value]
    found, position = [], 0
    while position < len(value):
        number, position = _varint(value, position)
        found.append(number)
    return found


def signed(value: int) -> int:
    """A number of an int32 or int64 field."""
    return value - (1 << 64) if value >= 1 << 63 else value


def varint(value: int) -> bytes:
    """A number in as many groups of seven bits as it takes, the lowest first; negative ones modulo 2**64."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, value: Union[int, str, bytes]) -> bytes:
    """A field that holds a number, a text, or bytes such as a message."""
    if isinstance(value, int):
        return varint(number << 3 | _VARINT) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | _BYTES) + varint(len(content)) + content


def packed(number: int, values: Iterable[int]) -> bytes:
    """A repeated field of numbers; nothing where there are none."""
    content = b"".join([varint(v) for v in values])
    return field(number, content) if content else b""
