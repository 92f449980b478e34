"""`Dataset.save` as TFRecord files: one `Example` message a row, and a schema beside the files.

The schema, in the file's name and ".schema.json", has the types and shapes that messages cannot
say. Files appear whole under their names, or not at all.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
from collections.abc import Iterable, Sequence
from typing import IO

import numpy as np

from mycel._src.foundation.files import atomic_files
from mycel.dataset.rows.column_blocks import Array
from mycel.mindrecord.tfrecord import masked_checksum

SCHEMA = ".schema.json"
_MOST = 2**63 - 1


def _varint(value: int) -> bytes:
    value &= 0xFFFFFFFFFFFFFFFF
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _part(field: int, content: bytes) -> bytes:
    """Return a field of a message that holds bytes."""
    return _varint(field << 3 | 2) + _varint(len(content)) + content


class _Column:
    """One column: its type in the schema, its shape so far, and its values as features."""

    def __init__(self, name: str, array: Array) -> None:
        self.name, self.dtype = name, array.dtype
        self.shape: list[int] = list(array.shape)
        kind, size = array.dtype.kind, array.dtype.itemsize
        if kind == "U":
            self.type = "string"
        elif kind == "S" or array.dtype == np.uint8:
            self.type = "uint8"
            if kind == "S" and array.ndim:
                raise RuntimeError(f"save: column {name!r} holds arrays of bytes, which TFRecord cannot tell apart")
        elif kind in "biu":
            self.type = array.dtype.name
        elif kind == "f" and size <= 4:
            self.type = array.dtype.name
        else:
            raise RuntimeError(
                f"save: column {name!r} has type {array.dtype}, which TFRecord has no values for; it has integers, "
                "float32, text and bytes"
            )
        if kind == "S":
            self.shape = [-1]

    def feature(self, array: Array) -> bytes:
        """Return a row's value as a feature."""
        kind = array.dtype.kind
        if kind != self.dtype.kind or (kind not in "US" and array.dtype != self.dtype):
            raise RuntimeError(f"save: column {self.name!r} has rows of type {self.dtype} and of type {array.dtype}")
        if kind == "S":
            return _part(1, _part(1, bytes(array.item())))
        self._fits(array.shape)
        if kind == "U":
            return _part(1, b"".join(_part(1, str(text).encode()) for text in array.ravel()))
        if self.type == "uint8":
            return _part(1, _part(1, array.tobytes()))
        if kind == "f":
            return _part(2, _part(1, array.astype("<f4").tobytes()))
        values = array.ravel().tolist()
        if any(value > _MOST for value in values):
            raise RuntimeError(f"save: column {self.name!r} has numbers above 2**63 - 1, which TFRecord cannot hold")
        return _part(3, _part(1, b"".join(map(_varint, map(int, values)))))

    def _fits(self, shape: tuple[int, ...]) -> None:
        if len(shape) != len(self.shape) or shape[1:] != tuple(self.shape[1:]):
            raise RuntimeError(
                f"save: column {self.name!r} has rows of shape {self.shape} and {list(shape)}; only the first axis "
                "may vary"
            )
        if shape and shape[0] != self.shape[0]:
            self.shape[0] = -1


def _record(content: bytes) -> bytes:
    head = struct.pack("<Q", len(content))
    return b"".join(
        (head, struct.pack("<I", masked_checksum(head)), content, struct.pack("<I", masked_checksum(content)))
    )


def save_tfrecord(rows: Iterable[Sequence[Array]], names: Sequence[str], file_name: str, num_files: int) -> None:
    """Write rows to TFRecord files, in turn where there are several.

    * `rows`: the rows.
    * `names`: the names of the columns.
    * `file_name`, `num_files`: those of `Dataset.save`.
    """
    paths = [file_name] if num_files == 1 else [f"{file_name}{number}" for number in range(num_files)]
    for path in [*paths, file_name + SCHEMA]:
        if os.path.exists(path):
            raise RuntimeError(f"save: there is a file {path!r} already; remove it or choose another name")
    columns: list[_Column] = []
    count = 0
    with contextlib.ExitStack() as stack:
        files: list[IO[bytes]] = []
        for path in paths:
            draft = stack.enter_context(atomic_files.replacing(path, "saved dataset"))
            files.append(stack.enter_context(open(draft, "wb")))
        for row in rows:
            arrays = [np.asarray(value) for value in row]
            if not columns:
                columns = [_Column(name, array) for name, array in zip(names, arrays)]
            features = b"".join(
                _part(1, _part(1, column.name.encode()) + _part(2, column.feature(array)))
                for column, array in zip(columns, arrays)
            )
            files[count % num_files].write(_record(_part(1, features)))
            count += 1
        if not count:
            raise RuntimeError("save: the dataset has no rows")
        for file in files:
            file.flush()
        schema = {
            "datasetType": "TF",
            "numRows": count,
            "columns": {c.name: {"type": c.type, "rank": len(c.shape), "shape": c.shape} for c in columns},
        }
        atomic_files.write(file_name + SCHEMA, json.dumps(schema, indent=2).encode(), "schema of a saved dataset")
