"""Checks of the names, schemas and rows that go into record files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mycel._src.foundation import arguments, log
from mycel._src.foundation.logged_once import no_effect
from mycel.mindrecord.errors import MRMInvalidSchemaError, MRMValidateDataError, ParamTypeError, ParamValueError
from mycel.mindrecord.file_layout import ARRAY_TYPES, FIELD_NAME, PLAIN_TYPES
from mycel.mindrecord.row_encoding import Field, Schema

# How many readers there are where nobody says how many.
CONSUMERS = 4
_FORBIDDEN = set("\\/:*?\"<>|`&';")
_TAKES: dict[str, tuple[str, ...]] = {
    "int": ("int32", "int64"),
    "float": ("float32", "float64"),
    "str": ("string",),
    "bytes": ("bytes",),
    "ndarray": ARRAY_TYPES,
    "int32": ("int32",),
    "int64": ("int64",),
    "float32": ("float32",),
    "float64": ("float64",),
}


def check_filename(path: Any) -> str:
    """Return the path of a file that may be a record file; raise ParamValueError otherwise."""
    text = arguments.text("mindrecord", "a file name", path, empty=False, error=ParamValueError)
    name = os.path.basename(text)
    if not name:
        raise ParamValueError(f"the file name {path!r} ends in '/'")
    if set(name) & _FORBIDDEN or name != name.strip(" "):
        raise ParamValueError(
            f"the file name {name!r} may not contain any of {''.join(sorted(_FORBIDDEN))}, nor begin or end with a "
            "space"
        )
    return text


def check_consumers(owner: str, num_consumer: Any) -> None:
    """Raise ParamValueError unless this is a number of readers, at most that of processors.

    It is said once that another number than MindSpore's default has no effect. `owner` is named in
    messages.
    """
    most = max(os.cpu_count() or 1, 4)
    arguments.integer(owner, "num_consumer", num_consumer, 1, most, numpy=False, error=ParamValueError)
    if num_consumer != CONSUMERS:
        no_effect(owner, "num_consumer", num_consumer, "rows are read in the thread that asks for them")


def check_schema(content: Any) -> Schema:
    """Return a copy of a schema; raise MRMInvalidSchemaError for other values."""
    if not isinstance(content, dict) or not content:
        raise MRMInvalidSchemaError(f"the schema must be a dictionary of fields, at least one, not {content!r}")
    for name, field in content.items():
        if not isinstance(name, str) or not FIELD_NAME.fullmatch(name):
            raise MRMInvalidSchemaError(f"the field {name!r} may have letters, digits and _ in its name, nothing else")
        if not isinstance(field, dict) or "type" not in field or not set(field) <= {"type", "shape"}:
            raise MRMInvalidSchemaError(
                f"the field {name!r} must be {{'type': ...}} or {{'type': ..., 'shape': [...]}}, not {field!r}"
            )
        kinds = ARRAY_TYPES if "shape" in field else PLAIN_TYPES
        if field["type"] not in kinds:
            raise MRMInvalidSchemaError(
                f"the field {name!r} has type {field['type']!r}; supported are {', '.join(kinds)}"
            )
        if not isinstance(field.get("shape", []), list):
            raise MRMInvalidSchemaError(f"the field {name!r} has shape {field['shape']!r}, which should be a list")
    return {name: dict(field) for name, field in content.items()}


def _mismatch(row: Mapping[str, Any], schema: Mapping[str, Field]) -> str | None:
    """Return what is wrong with a row, or None."""
    for name, field in schema.items():
        if name not in row:
            return f"there is no field {name!r}"
        value = row[name]
        kind = type(value).__name__
        if field["type"] not in _TAKES.get(kind, ()):
            return f"field {name!r} is of type {field['type']}, but the value is of type {kind}"
        if isinstance(value, np.ndarray):
            if "shape" not in field:
                return f"field {name!r} has no shape, but the value is an array of shape {value.shape}"
            if field["type"] != str(value.dtype):
                return f"field {name!r} is of type {field['type']}, but the value is an array of {value.dtype}"
            try:
                np.empty(value.shape, np.bool_).reshape(field["shape"])
            except ValueError:
                return f"field {name!r} has shape {field['shape']}, but the value has shape {list(value.shape)}"
        elif "shape" in field:
            return f"field {name!r} has shape {field['shape']}, but the value {value!r:.80} is no array"
    return None


def valid_rows(rows: Any, schema: Mapping[str, Field]) -> list[dict[str, Any]]:
    """Return the rows that match the schema; log why each of the others is left out.

    Raises ParamTypeError for values that are not rows, MRMValidateDataError for integers beyond
    their type, and RuntimeError where no row is left.
    """
    if not isinstance(rows, list):
        raise ParamTypeError("raw_data", "list")
    kept = []
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise ParamTypeError("raw_data item", "dict")
        wrong = _mismatch(row, schema)
        if wrong is None:
            kept.append(row)
        else:
            log.warning("write_raw_data: row %d is left out: %s", number, wrong)
    if not kept:
        raise RuntimeError(
            "write_raw_data: there are no rows that match the schema; the warnings before say what is wrong"
        )
    for name, field in schema.items():
        if field["type"] in ("int32", "int64") and "shape" not in field:
            limits = np.iinfo(field["type"])
            beyond = [row[name] for row in kept if not limits.min <= row[name] <= limits.max]
            if beyond:
                raise MRMValidateDataError(f"field {name!r} is {field['type']}, which {beyond[0]} does not fit")
    return kept


def plain_value(value: Any) -> Any:
    """Return a NumPy number as Python's own."""
    return value.item() if isinstance(value, np.generic) else value


def check_columns(columns: Sequence[str] | None, schema: Mapping[str, Field]) -> list[str] | None:
    """Return the names of columns to read; None for all.

    Raises ParamTypeError or ParamValueError where they are not fields.
    """
    if not columns:
        return None
    if not isinstance(columns, list) or any(not isinstance(name, str) for name in columns):
        raise ParamTypeError("columns", "list of str")
    missing = [name for name in columns if name not in schema]
    if missing:
        raise ParamValueError(f"there is no field {', '.join(map(repr, missing))}; the fields are {sorted(schema)}")
    return columns
