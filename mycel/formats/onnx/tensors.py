"""Arrays in ONNX files: element types, packed elements, and elements in files of their own.

Nothing is allocated before the bytes for it are there, but for repeated zeros of sparse arrays.
What a few bytes of a file may stand for is bounded for the file as a whole (`Room`), as any number
of arrays may be made of them.
"""

from __future__ import annotations

import math
import os
from typing import Any

import ml_dtypes
import numpy as np

from mycel._src.foundation.files.decompression import limit
from mycel.formats.onnx.messages import OnnxError, SparseTensor, Tensor

__all__ = ["CODES", "TYPES", "Room", "array_of", "dense", "numpy_type"]

Array = np.ndarray[Any, Any]
TYPES: dict[int, Any] = {
    1: np.dtype(np.float32),
    2: np.dtype(np.uint8),
    3: np.dtype(np.int8),
    4: np.dtype(np.uint16),
    5: np.dtype(np.int16),
    6: np.dtype(np.int32),
    7: np.dtype(np.int64),
    8: np.dtype(object),
    9: np.dtype(np.bool_),
    10: np.dtype(np.float16),
    11: np.dtype(np.float64),
    12: np.dtype(np.uint32),
    13: np.dtype(np.uint64),
    14: np.dtype(np.complex64),
    15: np.dtype(np.complex128),
    16: np.dtype(ml_dtypes.bfloat16),
    17: np.dtype(ml_dtypes.float8_e4m3fn),
    18: np.dtype(ml_dtypes.float8_e4m3fnuz),
    19: np.dtype(ml_dtypes.float8_e5m2),
    20: np.dtype(ml_dtypes.float8_e5m2fnuz),
    21: np.dtype(ml_dtypes.uint4),
    22: np.dtype(ml_dtypes.int4),
}
# Types of newer releases of ml_dtypes.
for _code, _name in (
    (23, "float4_e2m1fn"),
    (24, "float8_e8m0fnu"),
    (25, "uint2"),
    (26, "int2"),
    (27, "float6_e2m3fn"),
    (28, "float6_e3m2fn"),
):
    if hasattr(ml_dtypes, _name):
        TYPES[_code] = np.dtype(getattr(ml_dtypes, _name))
CODES: dict[Any, int] = {kind: code for code, kind in TYPES.items()}
# How many bits an element takes where it is less than a byte.
_PACKED = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2}
_SIGNED = (22, 26)
_LEAST_DENSE, _TIMES_DENSE = 16 << 20, 32
_TIMES_BESIDE = 1.5  # for weights that two arrays share
STRING = 8


class Room:
    """The memory that the arrays of one model may take, by the size of its file.

    Sparse arrays with their zeros become 32 times the file or 16 MiB, or what MYCEL_INFLATE says;
    all other arrays together what `foundation.files.decompression.limit` says, as functions make
    theirs anew at each call; and those in files of their own one and a half times these files.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.made = self.dense = self.beside = 0
        self.files: dict[str, int] = {}

    def take(self, size: int, where: str) -> None:
        """Count the bytes of an array; raise OnnxError where they are too many."""
        self.made += size
        self._check(
            self.made,
            max(limit(self.size), _TIMES_DENSE * self.size),
            where,
            f"the arrays of a file of {self.size} bytes",
        )

    def take_dense(self, size: int, where: str) -> None:
        """Count the bytes of a sparse array with its zeros, as `take` does."""
        self.dense += size
        most = limit(self.size) if os.environ.get("MYCEL_INFLATE", "").strip() else 0
        most = most or max(_LEAST_DENSE, _TIMES_DENSE * self.size)
        self._check(self.dense, most, where, f"with their zeros, the sparse arrays of a file of {self.size} bytes")

    def take_beside(self, size: int, path: str, there: int, where: str) -> None:
        """Count `size` bytes of the file `path` beside the model, of `there` bytes, as `take` does;
        `where` says in errors what names them.
        """
        self.files[path] = there
        self.beside += size
        whole = sum(self.files.values())
        if self.beside > _TIMES_BESIDE * whole:
            raise OnnxError(
                f"{where}: arrays name {self.beside} bytes of {len(self.files)} files of {whole} bytes: the same ones "
                "again and again"
            )

    @staticmethod
    def _check(size: int, most: int, where: str, what: str) -> None:
        if size > most:
            raise OnnxError(
                f"{where}: {what} become {size} bytes, more than {most}; if they are to be read, set the environment "
                'variable MYCEL_INFLATE to a size such as "8GB"'
            )


def numpy_type(code: int, where: str) -> Any:
    """Return the element type of NumPy for ONNX's number.

    Raises OnnxError, with `where` in front, for a number that stands for none.
    """
    if code not in TYPES:
        raise OnnxError(f"{where}: the element type {code} is unknown; those known are {', '.join(map(str, TYPES))}")
    return TYPES[code]


def array_of(tensor: Tensor, folder: str | None = None, room: Room | None = None) -> Array:
    """Return the array that a message holds.

    `folder` is where files of external elements lie; None refuses them. `room` is that of the
    model. Raises OnnxError where elements are missing or too many.
    """
    where = f"the array {tensor.name!r}"
    kind = numpy_type(tensor.element, where)
    dims = tensor.dims
    if any(d < 0 for d in dims):
        raise OnnxError(f"{where}: the shape {dims} has a negative size")
    count = math.prod(dims)
    if tensor.location == 1:
        content = _external(tensor, folder, where, _bytes_of(count, tensor.element), room)
        return _unpacked(content, tensor, count, where)
    if room is not None:
        given = len(tensor.raw or ()) + sum(
            map(len, (tensor.floats, tensor.doubles, tensor.int32s, tensor.int64s, tensor.uint64s, tensor.strings))
        )
        room.take(min(count, 4 * given) * kind.itemsize, where)
    if tensor.raw is not None:
        if tensor.element == STRING:
            raise OnnxError(f"{where}: strings are not held as raw bytes")
        return _unpacked(tensor.raw, tensor, count, where)
    return _listed(tensor, kind, count, where)


def _bytes_of(count: int, code: int) -> int:
    bits = _PACKED.get(code)
    return count * int(TYPES[code].itemsize) if bits is None else -(-count * bits // 8)


def _unpacked(raw: Any, tensor: Tensor, count: int, where: str) -> Array:
    code = tensor.element
    if len(raw) != _bytes_of(count, code):
        raise OnnxError(f"{where}: {len(raw)} bytes for shape {tensor.dims}, which takes {_bytes_of(count, code)}")
    kind = TYPES[code]
    if code in _PACKED:
        return _bits(np.frombuffer(raw, np.uint8), code, count).reshape(tensor.dims)
    return np.frombuffer(raw, kind.newbyteorder("<") if kind.kind in "iufc" else kind).astype(kind).reshape(tensor.dims)


def _bits(packed: Array, code: int, count: int) -> Array:
    """Return the elements of 2 or 4 bits in bytes, the lowest first."""
    bits = _PACKED[code]
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = ((packed[:, None] >> shifts) & ((1 << bits) - 1)).reshape(-1)[:count].astype(np.uint8)
    if code in _SIGNED:
        signed = (parts.astype(np.int8) << (8 - bits)) >> (8 - bits)
        return signed.astype(TYPES[code])
    return parts.view(TYPES[code]) if code == 23 else parts.astype(TYPES[code])


def _listed(tensor: Tensor, kind: Any, count: int, where: str) -> Array:
    code = tensor.element
    found: Any
    if code == STRING:
        found = tensor.strings
        if len(found) == count:
            strings = np.empty(count, object)
            strings[:] = [bytes(s).decode("utf-8", "surrogateescape") for s in found]
            return strings.reshape(tensor.dims)
    elif code in (1, 14):
        found = np.array(tensor.floats, np.float32)
        found = found.view(np.complex64) if code == 14 and len(found) % 2 == 0 else found
    elif code in (11, 15):
        found = np.array(tensor.doubles, np.float64)
        found = found.view(np.complex128) if code == 15 and len(found) % 2 == 0 else found
    elif code == 7:
        found = np.array(tensor.int64s, np.int64)
    elif code in (12, 13):
        found = np.array(tensor.uint64s, np.uint64).astype(kind)
    else:
        words = np.array(tensor.int32s, np.int64)
        if code in _PACKED:
            packed = words.astype(np.uint8)
            if len(packed) != _bytes_of(count, code):
                raise OnnxError(f"{where}: {len(packed)} bytes for shape {tensor.dims}")
            return _bits(packed, code, count).reshape(tensor.dims)
        if code in (10, 16):
            found = words.astype(np.uint16).view(kind)
        elif code in (17, 18, 19, 20, 24, 27, 28):
            found = words.astype(np.uint8).view(kind)
        else:
            found = words.astype(kind)
    if len(found) != count:
        raise OnnxError(f"{where}: {len(found)} elements for shape {tensor.dims}, which has {count}")
    array: Array = np.asarray(found).reshape(tensor.dims)
    return array


def _external(tensor: Tensor, folder: str | None, where: str, wanted: int, room: Room | None) -> Any:
    """Read the bytes of an array from its file, which lies in the model's folder or below."""
    if folder is None:
        raise OnnxError(f"{where}: its elements are in a file of their own; load the model by its path")
    known = {e.key: e.value for e in tensor.external}
    name = known.get("location", "")
    path = os.path.realpath(os.path.join(folder, name))
    inside = os.path.realpath(folder)
    if not name or os.path.commonpath([path, inside]) != inside:
        raise OnnxError(f"{where}: the file {name!r} of its elements is not in the folder of the model")
    try:
        offset, length = int(known.get("offset", "0")), int(known.get("length", str(wanted)))
    except ValueError:
        raise OnnxError(f"{where}: the place {known} of its elements is not made of numbers") from None
    if not os.path.isfile(path):
        raise OnnxError(f"{where}: the file {name!r} of its elements is missing")
    size = os.path.getsize(path)
    if offset < 0 or length != wanted or offset + length > size:
        raise OnnxError(
            f"{where}: bytes {offset} to {offset + length} of {name!r} ({size} bytes) for {wanted} bytes of elements"
        )
    if room is not None:
        room.take_beside(length, path, size, where)
    with open(path, "rb") as file:
        file.seek(offset)
        content = file.read(length)
    if len(content) != length:
        raise OnnxError(f"{where}: the file {name!r} grew shorter while it was read")
    return content


def dense(tensor: SparseTensor, folder: str | None, room: Room) -> Array:
    """Return a sparse array with its zeros; the rest is as in `array_of`."""
    if tensor.values is None or tensor.indices is None:
        raise OnnxError("a sparse array without values or indices")
    values, places = (array_of(t, folder, room) for t in (tensor.values, tensor.indices))
    dims = tensor.dims
    count = math.prod(dims)
    if any(d < 0 for d in dims):
        raise OnnxError(f"the sparse array {tensor.values.name!r}: the shape {dims} has a negative size")
    room.take_dense(count * values.dtype.itemsize, f"the sparse array {tensor.values.name!r} of shape {dims}")
    if places.ndim == 2 and places.shape == (len(values), len(dims)):
        if ((places < 0) | (places >= np.array(dims))).any():
            raise OnnxError(f"the sparse array {tensor.values.name!r} has indices outside of {dims}")
        places = np.ravel_multi_index(tuple(places.T), tuple(dims)) if len(dims) else places.reshape(-1)
    if places.shape != values.shape or ((places < 0) | (places >= count)).any():
        raise OnnxError(f"the sparse array {tensor.values.name!r} has indices that do not fit {dims}")
    out = np.zeros(count, values.dtype)
    out[places] = values
    return out.reshape(dims)
