"""Schema: the names, types and shapes of columns, in the form of JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel.dataset.transforms.base import numpy_type

_TYPES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "string",
)


def _type_name(de_type: Any) -> str:
    """Return the name of a type given by name, as NumPy's or as the framework's.

    Raises TypeError for others.
    """
    name = de_type if isinstance(de_type, str) else getattr(de_type, "__name__", None) or str(de_type)
    name = {"bool_": "bool", "str_": "string"}.get(name.lower(), name.lower())
    if name not in _TYPES:
        name = "" if isinstance(de_type, str) else numpy_type("Schema", de_type).name
    if name not in _TYPES:
        raise TypeError(f"Schema: {de_type!r} is not the type of a column; these are {', '.join(_TYPES)}")
    return name


class Schema:
    """The names, types and shapes of columns.

    They are read from a JSON file if `schema_file` names one. A column's shape may be left open,
    and so may one of its lengths, with -1.

    >>> import mycel.dataset as ds
    >>> schema = ds.Schema()
    >>> schema.add_column("x", "float32", [2])
    >>> print(schema.to_json().replace("\\n", " ").replace("  ", ""))
    { "columns": [ { "name": "x", "rank": 1, "shape": [ 2 ], "type": "float32" } ] }
    """

    def __init__(self, schema_file: str | os.PathLike[str] | None = None) -> None:
        if schema_file is not None:
            arguments.path("Schema", "schema_file", schema_file)
        self.schema_file = os.fspath(schema_file or "")
        self.columns: list[dict[str, Any]] = []
        self.dataset_type: str | None = None
        self.num_rows = 0
        if self.schema_file:
            try:
                with open(self.schema_file, encoding="utf-8") as handle:
                    content = json.load(handle)
            except (OSError, ValueError, RecursionError) as error:
                raise ValueError(f"Schema: {self.schema_file!r} cannot be read as JSON: {error}") from error
            self.from_json(content)

    def add_column(self, name: str, de_type: Any, shape: Sequence[int] | None = None) -> None:
        """Add a column.

        Raises TypeError for what is not a name, type or shape, and ValueError for a repeated name.
        """
        arguments.text("add_column", "the name", name)
        if any(column["name"] == name for column in self.columns):
            raise ValueError(f"add_column: there is a column {name!r} already")
        column: dict[str, Any] = {"name": name, "rank": 1}
        if shape is not None:
            if not isinstance(shape, (list, tuple)) or any(
                isinstance(n, bool) or not isinstance(n, (int, np.integer)) for n in shape
            ):
                raise TypeError(f"add_column: the shape must be a list of integers, not {shape!r}")
            if any(not -1 <= n < 2**63 for n in shape):
                raise ValueError(f"add_column: the shape must be of lengths, or -1 for what is open, not {shape!r}")
            column.update(rank=len(shape), shape=[int(n) for n in shape])
        self.columns.append({**column, "type": _type_name(de_type)})

    def parse_columns(self, columns: Any) -> None:
        """Replace the columns by those of a list or a dictionary.

        The list holds {"name", "type", "shape"}, the dictionary {"type", "shape"} by name. Raises
        RuntimeError for anything else and for a column without name or type.
        """
        if isinstance(columns, dict):
            wrong = [column for column in columns.values() if not isinstance(column, dict)]
            if wrong:
                raise RuntimeError(f"parse_columns: each column must be a dictionary with a type, not {wrong[0]!r}")
            columns = [{**column, "name": name} for name, column in sorted(columns.items())]
        if not isinstance(columns, list):
            raise RuntimeError(f"parse_columns: columns must be a list or a dictionary, not {columns!r}")
        self.columns = []
        for column in columns:
            if not isinstance(column, dict) or "name" not in column or "type" not in column:
                raise RuntimeError(f"parse_columns: each column must have a name and a type, not {column!r}")
            self.add_column(column["name"], column["type"], column.get("shape"))

    def from_json(self, json_obj: Any) -> None:
        """Read {"columns": ..., "datasetType": ..., "numRows": ...}.

        Raises RuntimeError where columns are missing.
        """
        if not isinstance(json_obj, dict) or "columns" not in json_obj:
            raise RuntimeError('from_json: json_obj must be a dictionary with "columns"')
        self.parse_columns(json_obj["columns"])
        self.dataset_type = json_obj.get("datasetType")
        rows = json_obj.get("numRows") or 0
        if isinstance(rows, bool) or not isinstance(rows, int) or not 0 <= rows < 2**31:
            raise RuntimeError(f"from_json: numRows must be a number of rows, not {rows!r}")
        self.num_rows = rows

    def to_json(self) -> str:
        """Return the schema as JSON."""
        content: dict[str, Any] = {"columns": self.columns}
        if self.dataset_type is not None:
            content["datasetType"] = self.dataset_type
        if self.num_rows:
            content["numRows"] = self.num_rows
        return json.dumps(content, indent=2)

    def __str__(self) -> str:
        return self.to_json()

    @staticmethod
    def get_num_rows(schema: Schema) -> int:
        """Return the number of rows that a schema states, or 0 if it states none."""
        return schema.num_rows
