"""The IDX format of the MNIST files: big-endian sizes, then the values, row by row.

A file starts with two zero bytes, a type code, the number of axes and, for each axis, its length
in four bytes. Nothing is allocated by what a header claims before the file has been found to
hold it: raw files are compared in size, compressed ones are read in pieces until they are long
enough, and no further than `foundation.files.decompression` allows.
"""

from __future__ import annotations

import gzip
import os
import struct
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation.files.atomic_files import write
from mycel._src.foundation.files.decompression import Inflated

_TYPES: dict[int, str] = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_PIECE = 1 << 20


def _read_header(handle: Any, path: str | os.PathLike[str]) -> tuple[np.dtype[Any], tuple[int, ...]]:
    magic = handle.read(4)
    if len(magic) < 4:
        raise ValueError(f"read_idx: {path} is truncated: {len(magic)} bytes, too few for a header")
    if magic[:2] != b"\0\0" or magic[2] not in _TYPES or not 1 <= magic[3] <= 8:
        raise ValueError(f"read_idx: {path} is not an IDX file: it starts with the bytes {magic.hex()}")
    sizes = handle.read(4 * magic[3])
    if len(sizes) < 4 * magic[3]:
        raise ValueError(f"read_idx: {path} is truncated within its header")
    return np.dtype(_TYPES[magic[2]]), struct.unpack(f">{magic[3]}I", sizes)


def read_idx(path: str | os.PathLike[str]) -> np.ndarray[Any, np.dtype[Any]]:
    """Read the array in an IDX file, compressed by gzip if its name ends in `.gz`.

    Raw files are mapped, not read. Raises ValueError for a file that is not IDX, is truncated, or
    has bytes left over.

    >>> import tempfile, os, numpy as np
    >>> from mycel._src.foundation.files.idx_format import read_idx, write_idx
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = os.path.join(folder, "a.idx.gz")
    ...     write_idx(name, np.arange(6, dtype=np.uint8).reshape(2, 3))
    ...     read_idx(name).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    compressed = str(path).endswith(".gz")
    handle: Any
    with Inflated(path, "GZIP") if compressed else open(path, "rb") as handle:
        dtype, shape = _read_header(handle, path)
        expected = dtype.itemsize
        for length in shape:
            expected *= length
        if not compressed:
            start = handle.tell()
            found = os.fstat(handle.fileno()).st_size - start
            _check_length(path, shape, expected, found)
            if not expected:
                return _shaped(np.empty(0, dtype), shape, path)
            return np.memmap(path, dtype, "r", offset=start, shape=shape)
        pieces = bytearray()
        try:
            while len(pieces) <= expected:
                piece = handle.read(_PIECE)
                if not piece:
                    break
                pieces += piece
        except OSError as error:
            raise ValueError(f"read_idx: {path} is damaged or truncated: {error}") from error
        _check_length(path, shape, expected, len(pieces))
        return _shaped(np.frombuffer(pieces, dtype), shape, path)


def idx_shape(path: str | os.PathLike[str]) -> tuple[int, ...]:
    """Return the shape of the array in an IDX file, of which only the header is read.

    Raises ValueError for a file that is not IDX.
    """
    handle: Any
    with Inflated(path, "GZIP") if str(path).endswith(".gz") else open(path, "rb") as handle:
        return tuple(_read_header(handle, path)[1])


def _shaped(values: Any, shape: tuple[int, ...], path: str | os.PathLike[str]) -> np.ndarray[Any, np.dtype[Any]]:
    try:
        array: np.ndarray[Any, np.dtype[Any]] = values.reshape(shape)
    except ValueError as error:
        # No elements, but other axes so long that NumPy has no such array.
        raise ValueError(f"read_idx: {path} says that its shape is {'x'.join(map(str, shape))}: {error}") from error
    return array


def _check_length(path: str | os.PathLike[str], shape: tuple[int, ...], expected: int, found: int) -> None:
    if found != expected:
        state = "is truncated" if found < expected else "has bytes left over"
        raise ValueError(
            f"read_idx: {path} {state}: its header says {'x'.join(map(str, shape))}, which takes {expected} bytes, "
            f"but it holds {found}{' or more' if found > expected else ''}; download or write it again"
        )


def write_idx(path: str | os.PathLike[str], array: np.ndarray[Any, np.dtype[Any]]) -> None:
    """Write an array as IDX, compressed by gzip if the name ends in `.gz`.

    Equal arrays give equal bytes. Raises TypeError for types that IDX does not have: it has uint8,
    int8, int16, int32, float32 and float64.
    """
    arguments.instance("write_idx", "array", array, np.ndarray)
    wanted = array.dtype.newbyteorder(">")
    codes = [code for code, name in _TYPES.items() if np.dtype(name) == wanted]
    if not codes:
        raise TypeError(
            f"write_idx: IDX has no type {array.dtype}; convert to uint8, int8, int16, int32, float32 or float64"
        )
    if not 1 <= array.ndim <= 8:
        raise ValueError(f"write_idx: an array of 1 to 8 axes is needed, got {array.ndim}")
    content = struct.pack(f">HBB{array.ndim}I", 0, codes[0], array.ndim, *array.shape) + array.astype(wanted).tobytes()
    write(path, gzip.compress(content, 9, mtime=0) if str(path).endswith(".gz") else content)
