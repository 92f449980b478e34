"""`Dataset.save`: the rows of a pipeline as files of records."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel.dataset.arguments import check_count, is_hidden
from mycel.dataset.nodes.node import Node
from mycel.dataset.nodes.saving_tfrecords import save_tfrecord
from mycel.dataset.pipeline_errors import in_pipeline
from mycel.dataset.rows.column_blocks import Array
from mycel.mindrecord.filewriter import FileWriter, abandon

# The types of fields, by those of columns.
_FIELDS = {
    **dict.fromkeys(("bool", "int8", "uint8", "int16", "uint16", "int32"), "int32"),
    **dict.fromkeys(("uint32", "int64", "uint64"), "int64"),
    **dict.fromkeys(("float16", "float32"), "float32"),
    "float64": "float64",
}
_AT_ONCE = 1000
MOST_FILES = 1000


def check_files(file_name: Any, num_files: Any, file_type: Any) -> None:
    """Raise TypeError or ValueError for arguments that `Dataset.save` does not take."""
    arguments.text("save", "file_name", file_name)
    if not 1 <= check_count("save", "num_files", num_files, -(2**31)) <= MOST_FILES:
        raise ValueError(f"save: num_files must be within [1, {MOST_FILES}], not {num_files}")
    arguments.one_of("save", "file_type", file_type, ("mindrecord", "tfrecord"))


def _field(name: str, array: Array) -> dict[str, Any]:
    kind = array.dtype.kind
    if kind in "US":
        if array.ndim:
            raise RuntimeError(f"save: column {name!r} holds arrays of text, which MindRecord has no field for")
        return {"type": "string" if kind == "U" else "bytes"}
    field = _FIELDS.get(array.dtype.name)
    if field is None:
        raise RuntimeError(f"save: column {name!r} has type {array.dtype}, which MindRecord has no field for")
    return {"type": field, "shape": [-1, *array.shape[1:]]} if array.ndim else {"type": field}


def _cell(array: Array, field: dict[str, Any]) -> Any:
    if field["type"] == "string":
        return str(array)
    if field["type"] == "bytes":
        return array.item()
    stored = array.astype(field["type"])
    return stored if array.ndim else stored.item()


def save(dataset: Node, file_name: str, num_files: int, file_type: str = "mindrecord") -> None:
    """Write one epoch of a dataset; see `Dataset.save`.

    * `dataset`, `file_name`, `num_files`, `file_type`: as there.
    """
    try:
        with in_pipeline():
            _write(dataset, file_name, num_files, file_type)
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        # A full disk says nothing of where it is.
        raise OSError(error.errno, f"cannot write saved dataset: {error.strerror}", file_name) from error


def _write(dataset: Node, file_name: str, num_files: int, file_type: str) -> None:
    names = dataset.get_col_names()
    kept = [place for place, name in enumerate(names) if not is_hidden(name)]
    if file_type == "tfrecord":
        blocks = dataset._blocks(dataset._probe(), 0)
        rows = ([row[place] for place in kept] for block in blocks for row in block.rows())
        save_tfrecord(rows, [names[place] for place in kept], file_name, num_files)
        return
    writer: FileWriter | None = None
    schema: dict[str, dict[str, Any]] = {}
    waiting: list[dict[str, Any]] = []
    with contextlib.ExitStack() as stack:
        for block in dataset._blocks(dataset._probe(), 0):
            for row in block.rows():
                if writer is None:
                    schema = {names[place]: _field(names[place], np.asarray(row[place])) for place in kept}
                    writer = FileWriter(file_name, num_files)
                    # At once where the pipeline fails or Ctrl-C comes.
                    stack.callback(abandon, writer)
                    writer.add_schema(schema, "saved dataset")
                waiting.append({names[place]: _cell(np.asarray(row[place]), schema[names[place]]) for place in kept})
                if len(waiting) == _AT_ONCE:
                    writer.write_raw_data(waiting)
                    waiting = []
        if writer is None:
            raise RuntimeError("save: the dataset has no rows")
        if waiting:
            writer.write_raw_data(waiting)
        writer.commit()
