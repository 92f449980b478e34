"""Arrays of integers in the blobs of rows, each in as few bytes as it takes.

Their number in four bytes, big-endian; two bits for each, four to a byte from the high bits down,
that say whether it takes 1, 2, 4 or 8 bytes; then the integers, little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.engines.routines import are_on, routine
from mycel._src.engines.routines.routine_language import Bytes, Int, Longs, i32, i64

__all__ = ["pack_integers", "unpack_arrays", "unpack_integers"]

_WIDTHS = (1, 2, 4, 8)
_TOGETHER = 1 << 18


def pack_integers(values: np.ndarray[Any, np.dtype[Any]]) -> bytes:
    """Pack the integers of a flat array, each into as few bytes as it takes.

    >>> import numpy as np
    >>> from mycel.mindrecord.packed_integers import pack_integers, unpack_integers
    >>> pack_integers(np.array([1, 1000, -7])).hex()
    '000000031001e803f9'
    >>> unpack_integers(bytes.fromhex("000000031001e803f9"), "int32").tolist()
    [1, 1000, -7]
    """
    count = values.size
    wide = np.ascontiguousarray(values, "<i8").reshape(-1)
    kinds = np.zeros(count, np.uint8)
    for width in _WIDTHS[:3]:
        limit = 1 << (8 * width - 1)
        kinds += ((wide < -limit) | (wide >= limit)).astype(np.uint8)
    padded = np.zeros(-(-count // 4) * 4, np.uint8)
    padded[:count] = kinds
    fours = padded.reshape(-1, 4)
    codes = fours[:, 0] << 6 | fours[:, 1] << 4 | fours[:, 2] << 2 | fours[:, 3]
    kept = np.arange(8) < np.array(_WIDTHS)[kinds][:, None]
    return struct.pack(">I", count) + codes.tobytes() + wide.view(np.uint8).reshape(-1, 8)[kept].tobytes()


def unpack_integers(content: bytes, dtype: str) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the array that `pack_integers` packed; raise ValueError for other bytes."""
    if len(content) < 4:
        raise ValueError(f"{len(content)} bytes are too few for an array of integers")
    (count,) = struct.unpack_from(">I", content)
    start = 4 + -(-count // 4)
    if start > len(content):
        raise ValueError(f"an array says that it has {count} integers, but takes {len(content)} bytes")
    short = ValueError(f"an array of {count} integers should take more than the {len(content)} bytes that it has")
    if count > len(content) - start:
        raise short
    result: np.ndarray[Any, np.dtype[Any]] = np.empty(count, "<i8")
    if are_on():
        ends = np.array([len(content)])
        _unpack(content, start, ends, 1, count, result)
        at = int(ends[0])
    else:
        at = _unpacked(content, start, result)
    if at > len(content):
        raise short
    if at != len(content):
        raise ValueError(f"an array of {count} integers should take {at} bytes, not {len(content)}")
    return result.astype(dtype, copy=False)


def _unpacked(content: bytes, at: int, result: np.ndarray[Any, np.dtype[Any]]) -> int:
    """Write the integers to `result`, and return where they end: the same as `_unpack` in NumPy."""
    # In pieces, as what lies between takes thirty times the bytes of the file.
    for first in range(0, len(result), _TOGETHER):
        last = min(first + _TOGETHER, len(result))
        codes = np.frombuffer(content, np.uint8, -(-(last - first) // 4), 4 + first // 4)
        kinds = (codes[:, None] >> np.array([6, 4, 2, 0], np.uint8) & 3).reshape(-1)[: last - first]
        widths = np.array(_WIDTHS)[kinds]
        size = int(widths.sum())
        if at + size > len(content):
            return at + size
        wide = np.zeros((last - first, 8), np.uint8)
        wide[np.arange(8) < widths[:, None]] = np.frombuffer(content, np.uint8, size, at)
        # Sign bits beyond the bytes that were kept.
        spare = (64 - 8 * widths).astype(np.int64)
        result[first:last] = wide.view("<i8").reshape(-1) << spare >> spare
        at += size
    return at


def unpack_arrays(parts: Sequence[bytes], count: int, dtype: str) -> np.ndarray[Any, np.dtype[Any]] | None:
    """Return arrays of `count` integers as the rows of one, or None where one of them is damaged or
    has another number.
    """
    sizes = [len(part) for part in parts]
    head, start = struct.pack(">I", count), 4 + -(-count // 4)
    if min(sizes) < start or any(part[:4] != head for part in parts):
        return None
    if not are_on():
        try:
            return np.stack([unpack_integers(part, dtype) for part in parts])
        except ValueError:
            return None
    if min(sizes) < start + count:
        return None
    result: np.ndarray[Any, np.dtype[Any]] = np.empty((len(parts), count), "<i8")
    ends = np.cumsum(sizes)
    _unpack(b"".join(parts), start, ends, len(parts), count, result)
    return result.astype(dtype, copy=False) if (ends == np.cumsum(sizes)).all() else None


@routine
def _unpack(content: Bytes, start: Int, ends: Longs, arrays: Int, count: Int, result: Longs) -> None:
    """Write `count` integers of each of some packed arrays to `result`.

    * `content`: what `pack_integers` made of the arrays, one after the other.
    * `start`: where, in what is made of an array, the integers begin.
    * `ends`: where the bytes of each array end. It becomes where they should, which is beyond that
      where bytes are missing.
    """
    first = i64(0)
    for a in range(arrays):
        end = ends[a]
        at = first + start
        for k in range(count):
            kind = (i32(content[first + 4 + k // 4]) >> (6 - 2 * i32(k & 3))) & 3
            width = 1 << kind
            if at + width <= end:
                # The last byte has the sign.
                value = i64((i32(content[at + width - 1]) ^ 128) - 128)
                for b in range(2, width + 1):
                    value = (value << 8) | i64(content[at + width - b])
                result[a * count + k] = value
            at = at + width
        ends[a] = at
        first = end
