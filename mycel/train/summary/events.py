"""Files of events as TensorBoard reads them: records of protocol buffers.

A file is a sequence of TFRecords: the length (64 bits, little-endian), its checksum, the data, and its checksum; checksums are CRC-32C (Castagnoli; RFC 3720), turned right by 15 bits, plus
0xa282ead8. The data is a protocol buffer `Event`: wall_time = 1 (double), step = 2 (int64), file_version = 3 (string), summary = 5, which is a sequence of values = 1 with
tag = 1, simple_value = 2 (float), image = 4, histo = 5, tensor = 8 and metadata = 9. The first event of a file names the version, "brain.Event:2".
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["crc32c", "event", "histogram", "image", "masked", "png", "record", "scalar", "tensor"]

Array = NDArray[Any]


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _table()


def crc32c(data: bytes) -> int:
    """The CRC-32C of bytes.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    """The checksum of a TFRecord, four bytes."""
    crc = crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data: bytes) -> bytes:
    """A TFRecord."""
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


# Protocol buffers.


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _whole(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _value(tag: str, content: bytes, plugin: str = "") -> bytes:
    about = _bytes(9, _bytes(1, _bytes(1, plugin.encode()))) if plugin else b""
    return _bytes(1, _bytes(1, tag.encode()) + about + content)


def event(wall_time: float, step: int = 0, summary: bytes = b"", version: str = "") -> bytes:
    """An event: of values that `scalar` and the others made, or the first of a file."""
    body = _double(1, wall_time) + (_whole(2, step) if step else b"")
    return body + (_bytes(3, version.encode()) if version else _bytes(5, summary))


def scalar(tag: str, value: float) -> bytes:
    """One number."""
    return _value(tag, _varint(2 << 3 | 5) + struct.pack("<f", value), "scalars")


_KINDS = {
    "float32": 1,
    "float64": 2,
    "int32": 3,
    "uint8": 4,
    "int16": 5,
    "int8": 6,
    "int64": 9,
    "bool": 10,
    "uint16": 17,
    "float16": 19,
    "uint32": 22,
    "uint64": 23,
}


def tensor(tag: str, values: Array) -> bytes:
    """An array with its type and shape."""
    kind = _KINDS.get(values.dtype.name)
    if kind is None:
        raise TypeError(f"SummaryRecord: {tag!r} has type {values.dtype}; tensors may be of {', '.join(_KINDS)}")
    shape = b"".join(_bytes(2, _whole(1, n)) for n in values.shape)
    content = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<")).tobytes()
    return _value(tag, _bytes(8, _whole(1, kind) + _bytes(2, shape) + _bytes(4, content)), "tensors")


def histogram(tag: str, values: Array, buckets: int = 30) -> bytes:
    """How values are distributed: extremes, sums and counts below each limit; what is not finite does not count."""
    flat = values.astype(np.float64).reshape(-1)
    flat = flat[np.isfinite(flat)]
    if not flat.size:
        flat = np.zeros(0)
    low, high = (flat.min(), flat.max()) if flat.size else (0.0, 0.0)
    counts, edges = np.histogram(flat, buckets, (low, high if high > low else low + 1))
    numbers = (low, high, flat.size, flat.sum(), (flat * flat).sum())
    content = b"".join(_double(1 + k, float(v)) for k, v in enumerate(numbers))
    for field, column in ((6, edges[1:]), (7, counts)):
        content += _bytes(field, np.asarray(column, "<f8").tobytes())
    return _value(tag, _bytes(5, content), "histograms")


def image(tag: str, pixels: Array) -> bytes:
    """A picture: uint8 [H, W, C] with 1, 3 or 4 channels."""
    height, width, channels = pixels.shape
    body = _whole(1, height) + _whole(2, width) + _whole(3, channels) + _bytes(4, png(pixels))
    return _value(tag, _bytes(4, body), "images")


def png(pixels: Array) -> bytes:
    """A picture as a PNG file (ISO/IEC 15948), without filters."""
    height, width, channels = pixels.shape
    kind = {1: 0, 3: 2, 4: 6}[channels]
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, width * channels)], axis=1)

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows.tobytes()))
        + chunk(b"IEND", b"")
    )
