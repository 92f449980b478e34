"""The bytes of one row.

The plain fields of a row (numbers and text) are a MessagePack map, with keys in order and every
number in its shortest form: a float takes four bytes where these give it exactly. The other fields
(bytes and arrays) are a *blob*: they follow each other by name, each after its length in eight
bytes, big-endian; a single field has no length. Arrays of floats are their little-endian values.
Arrays of integers are packed (`packed_integers.py`). A row without plain fields has the map
{"id": 0}, one without others four zero bytes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mycel.mindrecord.errors import MRMUnsupportedSchemaError, MRMValidateDataError
from mycel.mindrecord.packed_integers import pack_integers, unpack_arrays, unpack_integers

Field = dict[str, Any]
Schema = dict[str, Field]

NO_PLAIN_FIELDS = {"id": 0}
NO_BLOB_FIELDS = bytes(4)
_LIMITS = {"int32": 1 << 31, "int64": 1 << 63}


def blob_fields(schema: Mapping[str, Field]) -> list[str]:
    """Return the fields that are bytes or arrays, in order."""
    return sorted(name for name, field in schema.items() if field["type"] == "bytes" or "shape" in field)


def pack_map(row: Mapping[str, Any]) -> bytes:
    """Return the MessagePack form of a map from text to integers, floats and text.

    Its keys are in order.

    >>> from mycel.mindrecord.row_encoding import pack_map, unpack_map
    >>> pack_map({"x": 5, "a": 0.5}).hex()
    '82a161ca3f000000a17805'
    >>> unpack_map(pack_map({"x": -70000, "s": "abc"}))
    {'s': 'abc', 'x': -70000}
    """
    parts = [bytes([0x80 | len(row)]) if len(row) < 16 else struct.pack(">BH", 0xDE, len(row))]
    for name in sorted(row):
        parts += [_pack_text(name), _pack_value(row[name])]
    return b"".join(parts)


def _pack_text(text: str) -> bytes:
    content = text.encode()
    size = len(content)
    if size < 32:
        return bytes([0xA0 | size]) + content
    form, code = (">BB", 0xD9) if size < 2**8 else (">BH", 0xDA) if size < 2**16 else (">BI", 0xDB)
    return struct.pack(form, code, size) + content


def _pack_value(value: Any) -> bytes:
    if isinstance(value, str):
        return _pack_text(value)
    if isinstance(value, float):
        if math.isfinite(value) and abs(value) <= 3.4028234663852886e38:
            short = struct.pack(">Bf", 0xCA, value)
            if struct.unpack(">f", short[1:])[0] == value:
                return short
        return struct.pack(">Bd", 0xCB, value)
    if -32 <= value < 128:
        return struct.pack(">b", value)
    if value >= 0:
        for limit, form, code in (
            (2**8, ">BB", 0xCC),
            (2**16, ">BH", 0xCD),
            (2**32, ">BI", 0xCE),
            (2**64, ">BQ", 0xCF),
        ):
            if value < limit:
                return struct.pack(form, code, value)
    for limit, form, code in ((2**7, ">Bb", 0xD0), (2**15, ">Bh", 0xD1), (2**31, ">Bi", 0xD2), (2**63, ">Bq", 0xD3)):
        if -limit <= value < 0:
            return struct.pack(form, code, value)
    raise MRMValidateDataError(f"{value} does not fit into 64 bits")


_FIXED = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_TEXT_SIZES = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}
_MAP_SIZES = {0xDE: ">H", 0xDF: ">I"}


def unpack_map(content: bytes) -> dict[str, Any]:
    """Return the map that `pack_map` packed; raise ValueError for other bytes."""
    try:
        value, end = _unpack(content, 0)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"the {len(content)} bytes of a row are damaged: {error}") from error
    if not isinstance(value, dict) or end != len(content):
        raise ValueError(f"the {len(content)} bytes of a row are not one map")
    return value


def _unpack(content: bytes, at: int, outermost: bool = True) -> tuple[Any, int]:
    code = content[at]
    at += 1
    if code < 0x80:
        return code, at
    if code >= 0xE0:
        return code - 256, at
    if code in _FIXED:
        form = _FIXED[code]
        return struct.unpack_from(form, content, at)[0], at + struct.calcsize(form)
    if code in _CONSTANTS:
        return _CONSTANTS[code], at
    if 0xA0 <= code < 0xC0 or code in _TEXT_SIZES:
        size, at = _size(content, at, code & 31, _TEXT_SIZES.get(code))
        if at + size > len(content):
            raise IndexError("text ends beyond the row")
        return content[at : at + size].decode(), at + size
    if outermost and (code < 0x90 or code in _MAP_SIZES):
        size, at = _size(content, at, code & 15, _MAP_SIZES.get(code))
        found: dict[str, Any] = {}
        for _ in range(size):
            name, at = _unpack(content, at, False)
            if not isinstance(name, str):
                raise ValueError(f"a row has a field called {name!r}")
            found[name], at = _unpack(content, at, False)
        return found, at
    raise ValueError(f"a row has a value of kind 0x{code:02x}, which is neither number nor text")


def checked_value(name: str, value: Any, field: Mapping[str, Any]) -> Any:
    """Return a plain value in its field's type; raise ValueError for other types."""
    kind = field["type"]
    if kind == "string":
        if isinstance(value, str):
            return value
    elif kind in _LIMITS:
        if type(value) is int and -_LIMITS[kind] <= value < _LIMITS[kind]:
            return value
    elif type(value) in (int, float):
        return float(value)
    raise ValueError(f"field {name!r} is {kind}, but has the value {value!r:.80}")


def _size(content: bytes, at: int, short: int, form: str | None) -> tuple[int, int]:
    if form is None:
        return short, at
    return struct.unpack_from(form, content, at)[0], at + struct.calcsize(form)


def pack_blob(row: Mapping[str, Any], schema: Mapping[str, Field], names: Sequence[str]) -> tuple[bytes, int]:
    """Return the blob of a row, and how many bytes packing integers saved."""
    parts = []
    saved = 0
    for name in names:
        value, kind = row[name], schema[name]["type"]
        if isinstance(value, bytes):
            content = value
        else:
            content = np.ascontiguousarray(value, kind).tobytes()
            if kind in ("int32", "int64"):
                plain = len(content)
                content = pack_integers(np.asarray(value))
                saved += plain - len(content)
        parts.append(content)
    if len(parts) == 1:
        return parts[0], saved
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts) or NO_BLOB_FIELDS, saved


def unpack_blob(
    content: bytes, schema: Mapping[str, Field], names: Sequence[str], wanted: Sequence[str]
) -> dict[str, Any]:
    """Return the `wanted` fields of a blob.

    `content` are its bytes, `names` its fields in order, and `schema` holds their types.
    """
    found = blob_parts(content, names, wanted)
    return {name: _unpack_field(name, found[name], schema[name]) for name in wanted}


def blob_parts(content: bytes, names: Sequence[str], wanted: Sequence[str]) -> dict[str, bytes]:
    """Return the bytes of the `wanted` fields of a blob, which has all `names`."""
    if len(names) == 1:
        return {names[0]: content}
    found = {}
    at = 0
    for name in names:
        size = int.from_bytes(content[at : at + 8], "big")
        at += 8
        if at + size > len(content):
            raise ValueError(f"field {name!r} ends beyond the row's {len(content)} bytes")
        if name in wanted:
            found[name] = content[at : at + size]
        at += size
    return found


def unpack_parts(parts: Sequence[bytes], field: Field) -> Any:
    """Return what a field of several rows holds, of its bytes in each: bytes, or the rows of an
    array; None where one of them is damaged.
    """
    if "shape" not in field:
        return parts
    kind, shape = field["type"], field["shape"]
    if -1 in shape:
        # Rows may differ in length.
        return None
    count = math.prod(shape)
    if kind in ("int32", "int64"):
        flat = unpack_arrays(parts, count, kind)
        return None if flat is None else flat.reshape(len(parts), *shape)
    size = count * np.dtype(kind).itemsize
    if any(len(part) != size for part in parts):
        return None
    return np.frombuffer(bytearray().join(parts), kind).reshape(len(parts), *shape)


def _unpack_field(name: str, content: bytes, field: Field) -> Any:
    if "shape" not in field:
        return content
    kind = field["type"]
    flat = unpack_integers(content, kind) if kind in ("int32", "int64") else np.frombuffer(bytearray(content), kind)
    try:
        return flat.reshape(field["shape"])
    except ValueError as error:
        raise MRMUnsupportedSchemaError(
            f"field {name!r} has {flat.size} values, which do not fit shape {field['shape']}"
        ) from error
