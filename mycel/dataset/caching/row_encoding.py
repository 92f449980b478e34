"""Binary encoding of rows: type, shape and elements of each column, without pickled code."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

Row = tuple[np.ndarray[Any, np.dtype[Any]], ...]

_COUNT = struct.Struct("<H")
_HEAD = struct.Struct("<HHQ")
# NumPy's own limit of axes.
_AXES = 64
# Elements begin at multiples of this.
_ALIGNED = 16


def encoded(row: Sequence[np.ndarray[Any, np.dtype[Any]]], where: str) -> bytes:
    """Return a row as bytes; raise TypeError for columns of Python objects, naming `where`."""
    parts = [_COUNT.pack(len(row))]
    at = _COUNT.size
    for array in row:
        if array.dtype.kind not in "biufcSU" or array.dtype.name == "bfloat16":
            raise TypeError(f"{where}: a cache holds numbers, text and bytes, not columns of type {array.dtype}")
        kind = array.dtype.str.encode()
        head = _HEAD.pack(len(kind), array.ndim, array.nbytes) + struct.pack(f"<{array.ndim}Q", *array.shape) + kind
        gap = -(at + len(head)) % _ALIGNED
        parts += [head, bytes(gap), array.tobytes()]
        at += len(head) + gap + array.nbytes
    return b"".join(parts)


def decoded(content: bytearray) -> Row:
    """Return the row of these bytes, whose arrays lie in them.

    Raises ValueError where the bytes are no row.
    """
    try:
        (count,) = _COUNT.unpack_from(content, 0)
        at = _COUNT.size
        row = []
        for _ in range(count):
            kind, axes, size = _HEAD.unpack_from(content, at)
            if axes > _AXES:
                raise ValueError(f"{axes} axes")
            shape = struct.unpack_from(f"<{axes}Q", content, at + _HEAD.size)
            at += _HEAD.size + 8 * axes
            dtype = np.dtype(bytes(content[at : at + kind]).decode())
            at += kind
            at += -at % _ALIGNED
            if at + size > len(content) or dtype.kind not in "biufcSU" or dtype.itemsize * math.prod(shape) != size:
                raise ValueError("a column that does not fit")
            row.append(np.ndarray(shape, dtype, content, at))
            at += size
        return tuple(row)
    except (struct.error, TypeError, ValueError, UnicodeDecodeError) as error:
        raise ValueError(f"these bytes are not a cached row: {error}") from error
