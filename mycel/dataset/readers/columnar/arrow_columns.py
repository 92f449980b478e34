"""Conversion of Arrow columns to NumPy columns of rows.

Numbers are views of Arrow's buffers, so that gathering rows is the only copy. Rows of other kinds
are made for the rows that are wanted only:

| Arrow | row |
|---|---|
| integers, floats, bool | a scalar of the same type |
| date, time, timestamp, duration | an integer, in the unit of the type |
| string | text |
| binary | bytes, uint8 [N] |
| dictionary | what its values are |
| fixed-size list, fixed-shape tensor | an array of that shape |
| list | an array; lists within lists must be rectangular in each row |
| struct | a dictionary |

Where there is a null, it is replaced by the value that the user gives, or is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mycel.dataset.rows.column_blocks import Array, Column, column_rows, of_dictionary, stack

SUPPORTED = (
    "integers, floats, bool, dates and times, string, binary, dictionary, list, fixed-size list, struct and "
    "fixed-shape tensor"
)


class _Nothing:
    """What stands for no replacement of nulls."""


NOTHING = _Nothing()


def arrow(operation: str) -> Any:
    """Return pyarrow; raise ImportError that says how to install it, for `operation`."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            f"{operation}: reading Arrow and Parquet needs pyarrow; pip install 'mycel[arrow]'"
        ) from error
    return pyarrow


def _counted(kind: Any, types: Any) -> Any | None:
    """Return the integers that dates and times are counted in, or None for other types."""
    if types.is_date32(kind) or types.is_time32(kind):
        return np.int32
    if types.is_date64(kind) or types.is_time64(kind) or types.is_timestamp(kind) or types.is_duration(kind):
        return np.int64
    return None


def _is_number(kind: Any, types: Any) -> bool:
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _is_list(kind: Any, types: Any) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_tensor(kind: Any, pa: Any) -> bool:
    return isinstance(kind, pa.FixedShapeTensorType)


def unsupported(kind: Any) -> Any | None:
    """Return the part of an Arrow type that cannot be read, or None."""
    pa = arrow("ArrowDataset")
    types = pa.types
    if _is_tensor(kind, pa):
        return unsupported(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return unsupported(kind.storage_type)
    if types.is_dictionary(kind) or _is_list(kind, types):
        # An array has no dictionaries in it.
        return kind if types.is_struct(kind.value_type) else unsupported(kind.value_type)
    if types.is_struct(kind):
        found = (unsupported(kind.field(place).type) for place in range(kind.num_fields))
        return next((part for part in found if part is not None), None)
    text = types.is_string(kind) or types.is_large_string(kind)
    binary = types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
    known = _is_number(kind, types) or _counted(kind, types) is not None or text or binary
    return None if known else kind


def width(kind: Any) -> float | None:
    """Return how many bytes a value of an Arrow type takes, or None where that differs."""
    pa = arrow("ArrowDataset")
    if isinstance(kind, pa.BaseExtensionType):
        return width(kind.storage_type)
    if pa.types.is_fixed_size_list(kind):
        each = width(kind.value_type)
        return None if each is None else each * float(kind.list_size)
    known = _is_number(kind, pa.types) or _counted(kind, pa.types) is not None
    return float(kind.bit_width) / 8 if known else None


def dense(array: Any) -> Array | None:
    """Return the rows of an Arrow array as one array, which may share its memory and be read-only;
    None where they are not numbers, or some are null.
    """
    pa = arrow("ArrowDataset")
    kind, types = array.type, pa.types
    if array.null_count:
        return None
    if _is_tensor(kind, pa):
        inner = dense(array.storage)
        return None if inner is None else np.asarray(array.to_numpy_ndarray())
    if isinstance(kind, pa.BaseExtensionType):
        return dense(array.storage)
    if types.is_fixed_size_list(kind):
        inner = dense(array.flatten())
        return None if inner is None else inner.reshape(len(array), kind.list_size, *inner.shape[1:])
    counted = _counted(kind, types)
    if counted is not None:
        array = array.view(pa.int32() if counted is np.int32 else pa.int64())
    elif not _is_number(kind, types):
        return None
    return np.asarray(array.to_numpy(zero_copy_only=False))


def rows(array: Any, null: Any, failed: Callable[[str], Exception]) -> Column:
    """Return the rows of an Arrow array of any type that is supported.

    `null` stands for nulls unless it is `NOTHING`; `failed` makes an error of a message. What is
    returned may share the array's memory and be read-only.
    """
    found = dense(array)
    if found is not None:
        return found
    pa = arrow("ArrowDataset")
    kind, types = array.type, pa.types
    if types.is_dictionary(kind):
        return rows(array.dictionary_decode(), null, failed)
    if isinstance(kind, pa.BaseExtensionType) and not _is_tensor(kind, pa):
        return rows(array.storage, null, failed)
    whole = _is_list(kind, types) or types.is_struct(kind) or _is_tensor(kind, pa)
    if array.null_count:
        if null is NOTHING:
            raise failed("it is null, and null= gives no value for that")
        if whole:
            raise failed(f"it is null as a whole, a {kind}; null= replaces numbers, text and bytes only")
        if _counted(kind, types) is not None:
            array = array.view(pa.int32() if _counted(kind, types) is np.int32 else pa.int64())
        array = _filled(array, null, failed)
        return rows(array, NOTHING, failed)
    if _is_tensor(kind, pa):
        # Only nulls among its values lead here.
        flat = rows(array.storage.flatten(), null, failed)
        return np.asarray(pa.ExtensionArray.from_storage(kind, _relisted(array, flat)).to_numpy_ndarray())
    if types.is_struct(kind):
        names = [kind.field(place).name for place in range(kind.num_fields)]
        parts = [column_rows(rows(part, null, failed), len(array)) for part in array.flatten()]
        return [of_dictionary({n: v.copy() for n, v in zip(names, values)}) for values in zip(*parts)]
    if _is_list(kind, types):
        return _lists(array, null, failed)
    try:
        values = array.to_pylist()
    except UnicodeDecodeError as error:
        raise failed(f"it is no UTF-8: {error}") from error
    if types.is_string(kind) or types.is_large_string(kind):
        return [np.array(value) for value in values]
    return [np.frombuffer(bytearray(value), np.uint8) for value in values]


def _filled(array: Any, null: Any, failed: Callable[[str], Exception]) -> Any:
    pa = arrow("ArrowDataset")
    try:
        value = pa.scalar(null, array.type)
        if pa.types.is_integer(array.type) and value.as_py() != null:
            # Arrow cuts off what is behind the point.
            raise ValueError("it is no whole number")
        return array.fill_null(value)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise failed(f"it is null, and null={null!r} is no {array.type}: {error}") from error


def _relisted(array: Any, flat: Any) -> Any:
    pa = arrow("ArrowDataset")
    storage = array.storage.type
    return pa.FixedSizeListArray.from_arrays(pa.array(flat, storage.value_type), storage.list_size)


def _lists(array: Any, null: Any, failed: Callable[[str], Exception]) -> Column:
    pa = arrow("ArrowDataset")
    kind, count = array.type, len(array)
    if pa.types.is_fixed_size_list(kind):
        lengths = np.full(count, kind.list_size, np.int64)
    else:
        lengths = np.diff(array.offsets.to_numpy()).astype(np.int64)
    flat = array.flatten()
    inner: Column = rows(flat, null, failed) if len(flat) else _none(kind.value_type)
    ends = np.cumsum(lengths)
    if isinstance(inner, np.ndarray):
        if count and (lengths == lengths[0]).all():
            return inner.reshape(count, int(lengths[0]), *inner.shape[1:])
        return [inner[end - size : end] for end, size in zip(ends.tolist(), lengths.tolist())]
    return [_one(inner[end - size : end], kind, failed) for end, size in zip(ends.tolist(), lengths.tolist())]


def _one(parts: list[Array], kind: Any, failed: Callable[[str], Exception]) -> Array:
    """Return the array of one list."""
    if not parts:
        return _none(kind.value_type)
    shapes = {part.shape for part in parts}
    if len(shapes) > 1:
        raise failed(f"its lists have shapes {sorted(shapes)[:4]}, which make no rectangular array")
    return stack(parts, "ArrowDataset")


def _none(kind: Any) -> Array:
    """Return an array without values of a type."""
    pa = arrow("ArrowDataset")
    shape = [0]
    if _is_tensor(kind, pa):
        shape += kind.shape
        kind = kind.value_type
    while _is_list(kind, pa.types):
        shape.append(kind.list_size if pa.types.is_fixed_size_list(kind) else 0)
        kind = kind.value_type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return np.zeros(shape, "<U1")
    counted = _counted(kind, pa.types)
    if counted is not None:
        return np.zeros(shape, counted)
    return np.zeros(shape, kind.to_pandas_dtype() if _is_number(kind, pa.types) else np.uint8)
