"""Event files for TensorBoard: records of protocol buffers.

A file is a sequence of TFRecords: the length (64 bits, little-endian), its checksum, the data, and
its checksum; checksums are CRC-32C (Castagnoli; RFC 3720), turned right by 15 bits, plus
0xa282ead8. The data is a protocol buffer `Event`: wall_time = 1 (double), step = 2 (int64),
file_version = 3 (string), summary = 5, which is a sequence of values = 1 with tag = 1, simple_value
= 2 (float), image = 4, histo = 5, tensor = 8 and metadata = 9. The first event of a file names the
version, "brain.Event:2".
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mycel._src.foundation.files.protobuf_wire import field, varint
from mycel.mindrecord.tfrecord import masked_checksum

__all__ = ["event", "histogram", "image", "masked", "png", "record", "scalar", "tensor"]

Array = NDArray[Any]


def masked(data: bytes) -> bytes:
    """Return the checksum of a TFRecord, four bytes."""
    return struct.pack("<I", masked_checksum(data))


def record(data: bytes) -> bytes:
    """Return data as a TFRecord."""
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


# Protocol buffers.


def _double(number: int, value: float) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<d", value)


def _value(tag: str, content: bytes, plugin: str = "") -> bytes:
    about = field(9, field(1, field(1, plugin.encode()))) if plugin else b""
    return field(1, field(1, tag.encode()) + about + content)


def event(wall_time: float, step: int = 0, summary: bytes = b"", version: str = "") -> bytes:
    """Return an encoded event.

    `wall_time` is seconds since 1970, `step` the number of the training step, `summary` the joined
    values of `scalar` and the other functions. The first event of a file has a `version` instead.
    """
    body = _double(1, wall_time) + (field(2, step) if step else b"")
    return body + (field(3, version.encode()) if version else field(5, summary))


def scalar(tag: str, value: float) -> bytes:
    """Return the encoded value of one number."""
    return _value(tag, varint(2 << 3 | 5) + struct.pack("<f", value), "scalars")


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
    """Return the encoded value of an array, with its type and shape."""
    kind = _KINDS.get(values.dtype.name)
    if kind is None:
        raise TypeError(f"SummaryRecord: {tag!r} has type {values.dtype}; tensors may be of {', '.join(_KINDS)}")
    shape = b"".join(field(2, field(1, n)) for n in values.shape)
    content = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<")).tobytes()
    return _value(tag, field(8, field(1, kind) + field(2, shape) + field(4, content)), "tensors")


def histogram(tag: str, values: Array, buckets: int = 30) -> bytes:
    """Return the encoded distribution of values: extremes, sums, and counts in each of `buckets`
    buckets.

    Values that are not finite do not count.
    """
    flat = values.astype(np.float64).reshape(-1)
    flat = flat[np.isfinite(flat)]
    if not flat.size:
        flat = np.zeros(0)
    low, high = (flat.min(), flat.max()) if flat.size else (0.0, 0.0)
    counts, edges = np.histogram(flat, buckets, (low, high if high > low else low + 1))
    numbers = (low, high, flat.size, flat.sum(), (flat * flat).sum())
    content = b"".join(_double(1 + k, float(v)) for k, v in enumerate(numbers))
    for number, column in ((6, edges[1:]), (7, counts)):
        content += field(number, np.asarray(column, "<f8").tobytes())
    return _value(tag, field(5, content), "histograms")


def image(tag: str, pixels: Array) -> bytes:
    """Return the encoded picture: uint8 [H, W, C] with 1, 3 or 4 channels."""
    height, width, channels = pixels.shape
    body = field(1, height) + field(2, width) + field(3, channels) + field(4, png(pixels))
    return _value(tag, field(4, body), "images")


def png(pixels: Array) -> bytes:
    """Return a picture as a PNG file (ISO/IEC 15948), without filters."""
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
