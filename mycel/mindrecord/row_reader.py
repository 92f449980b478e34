"""Reading rows of record files by number, for `FileReader`, `MindPage` and `MindDataset`.

Files are mapped into memory, not read. Whatever a file or its index states is compared with the
file's size before it is trusted.
"""

from __future__ import annotations

import bisect
import mmap
import os
from collections.abc import Callable, Sequence
from typing import Any

from mycel.mindrecord.encryption import Plain
from mycel.mindrecord.errors import MRMOpenError, MRMUnsupportedSchemaError, failure
from mycel.mindrecord.file_layout import Header
from mycel.mindrecord.row_encoding import blob_parts, checked_value, unpack_blob, unpack_map, unpack_parts
from mycel.mindrecord.schema_checks import check_columns, check_filename
from mycel.mindrecord.sqlite_index import read_categories, read_places


class _File:
    """One open record file."""

    def __init__(self, owner: str, path: str, plain: Plain) -> None:
        for part in (path, path + ".db"):
            if not os.path.isfile(part):
                raise RuntimeError(
                    f"{owner}: there is no file {part!r}; a record file needs its index, the file of the same name "
                    "with .db behind, beside it"
                )
        self.path = path
        found = plain.path(path)
        self.index = plain.path(path + ".db")
        self.header = Header.read(found)
        self.places = read_places(self.index, os.path.basename(path))
        with open(found, "rb") as handle:
            self.content = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)

    def piece(self, page: int, start: int, end: int) -> bytes:
        """Return the part of a row that takes these bytes of a page, without its length."""
        base = self.header.header_size + page * self.header.page_size
        if page < 0 or not 0 <= start <= end - 8 or base + end > len(self.content):
            raise failure(
                MRMOpenError,
                f"{self.path!r} is cut off or damaged: bytes {start} to {end} of page {page} are not there",
            )
        size = int.from_bytes(self.content[base + start : base + start + 8], "little")
        if size != end - start - 8:
            raise failure(
                MRMOpenError,
                f"{self.path!r} is damaged: a row says that it has {size} bytes, the index {end - start - 8}",
            )
        return self.content[base + start + 8 : base + end]


class Records:
    """The rows of record files, in order.

    They are all shards of the file that `file_name` names, or just the files of a list. `owner` is
    named in messages.
    """

    def __init__(self, owner: str, file_name: str | Sequence[str], columns: Sequence[str] | None = None) -> None:
        if not isinstance(file_name, (str, tuple, list)):
            raise TypeError(f"{owner}: records are read from a file or a list of files, not {type(file_name).__name__}")
        paths = [file_name] if isinstance(file_name, str) else list(file_name)
        if not paths:
            raise ValueError(f"{owner}: records are read from at least one file")
        for path in paths:
            check_filename(path)
        self._plain = Plain()
        self._files: list[_File] = []
        try:
            if isinstance(file_name, str):
                if not os.path.isfile(file_name):
                    raise RuntimeError(f"{owner}: there is no file {file_name!r}")
                folder = os.path.dirname(file_name)
                addresses = Header.read(self._plain.path(file_name)).addresses
                paths = (
                    [file_name]
                    if len(addresses) < 2
                    else [os.path.join(folder, os.path.basename(name)) for name in addresses]
                )
            self._files = [_File(owner, path, self._plain) for path in paths]
        except BaseException:
            self.close()
            raise
        header = self._files[0].header
        for file in self._files:
            if file.header.schema != header.schema:
                self.close()
                raise failure(MRMOpenError, f"{file.path!r} has another schema than {self._files[0].path!r}")
        self.schema = header.schema
        self.index_fields = header.index_fields
        self._blobs = header.blob_fields
        try:
            self._columns = check_columns(columns, self.schema)
        except BaseException:
            self.close()
            raise
        fields = self.schema if self._columns is None else self._columns
        self._plain_fields = {name for name in fields if name not in self._blobs}
        self._wanted = [
            name for name in (self._blobs if self._columns is None else self._columns) if name in self._blobs
        ]
        self._ends: list[int] = []
        for file in self._files:
            self._ends.append(len(file.places) + (self._ends[-1] if self._ends else 0))

    def __len__(self) -> int:
        return self._ends[-1]

    def sizes(self) -> list[int]:
        """Return the number of rows of each file."""
        return [len(file.places) for file in self._files]

    def nbytes(self) -> int:
        """Return the size of the files together."""
        return sum(len(file.content) for file in self._files)

    def row(self, number: int) -> dict[str, Any]:
        """Return a row: its plain fields, then its bytes and arrays."""
        return self._row(number, lambda content: unpack_blob(content, self.schema, self._blobs, self._wanted))

    def columns(self, numbers: Sequence[int]) -> dict[str, Any]:
        """Return the fields of some rows: for each a list of values, or an array whose first axis
        is the rows.
        """
        rows = [self._row(number, lambda content: blob_parts(content, self._blobs, self._wanted)) for number in numbers]
        found = {name: [row[name] for row in rows] for name in rows[0]}
        for name in self._wanted:
            made = unpack_parts(found[name], self.schema[name])
            # One by one, where rows differ or an error has to be found.
            found[name] = [self.row(number)[name] for number in numbers] if made is None else made
        return found

    def _row(self, number: int, blob: Callable[[bytes], dict[str, Any]]) -> dict[str, Any]:
        """Return the plain fields of a row, and what `blob` makes of its other bytes."""
        shard = bisect.bisect_right(self._ends, number)
        file = self._files[shard]
        place = file.places[number - (self._ends[shard - 1] if shard else 0)]
        try:
            plain = unpack_map(file.piece(*place[:3]))
            row = {
                name: checked_value(name, plain[name], self.schema[name])
                for name in plain
                if name in self._plain_fields
            }
            if len(row) != len(self._plain_fields):
                raise ValueError(f"it has no field {', '.join(map(repr, sorted(self._plain_fields - row.keys())))}")
            if self._wanted:
                row.update(blob(file.piece(*place[3:])))
        except ValueError as error:
            raise failure(MRMOpenError, f"row {number} of {file.path!r} is damaged: {error}") from error
        except MRMUnsupportedSchemaError as error:
            raise MRMUnsupportedSchemaError(f"row {number} of {file.path!r}: {error}") from error
        return row

    def categories(self, field: str) -> dict[str, list[int]]:
        """Return the numbers of the rows for every value of an index field.

        Values are text, in its order.
        """
        found: dict[str, list[int]] = {}
        for shard, file in enumerate(self._files):
            start = self._ends[shard - 1] if shard else 0
            for value, rows in read_categories(file.index, field, len(file.places)).items():
                found.setdefault(value, []).extend(start + row for row in rows)
        return dict(sorted(found.items()))

    def close(self) -> None:
        """Close the files; no row can be read afterwards."""
        for file in self._files:
            file.content.close()
        self._plain.close()
