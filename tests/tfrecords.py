"""A writer of TFRecord files, independent of the reader: bit by bit, from the definitions of
CRC-32C and of Protocol Buffers.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def checksum(content: bytes) -> int:
    """CRC-32C, masked."""
    state = 0xFFFFFFFF
    for byte in content:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    state ^= 0xFFFFFFFF
    return ((state >> 15 | state << 17) + 0xA282EAD8) % 2**32


def varint(value: int) -> bytes:
    value %= 2**64
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def feature(values: Sequence[Any]) -> bytes:
    if isinstance(values[0], bytes):
        return field(1, b"".join(field(1, value) for value in values))
    if isinstance(values[0], float):
        return field(2, field(1, struct.pack(f"<{len(values)}f", *values)))
    return field(3, field(1, b"".join(map(varint, values))))


def example(features: Mapping[str, Sequence[Any]]) -> bytes:
    pairs = (field(1, field(1, name.encode()) + field(2, feature(values))) for name, values in features.items())
    return field(1, b"".join(pairs))


def records(rows: Sequence[Mapping[str, Sequence[Any]]]) -> bytes:
    out = b""
    for row in rows:
        content = example(row)
        head = struct.pack("<Q", len(content))
        out += head + struct.pack("<I", checksum(head)) + content + struct.pack("<I", checksum(content))
    return out


def write(path: Path, rows: Sequence[Mapping[str, Sequence[Any]]]) -> str:
    path.write_bytes(records(rows))
    return str(path)
