"""Writing record files.

Rows go into temporary files beside the requested ones. `commit` completes these with their headers
and indexes and then renames them, so that a file under its final name is whole; a writer that is
dropped before leaves nothing behind. Appending writes a copy of the file in the same way.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from typing import IO, Any

from mycel._src.foundation import arguments
from mycel._src.foundation.files.atomic_files import Draft
from mycel._src.foundation.python_runtime import finalization
from mycel.mindrecord.encryption import Plain, encrypted, encryption_function, encryption_key
from mycel.mindrecord.errors import (
    MRMAddIndexError,
    MRMAddSchemaError,
    MRMDefineIndexError,
    MRMGetMetaError,
    MRMInvalidHeaderSizeError,
    MRMInvalidPageSizeError,
    MRMOpenError,
    MRMOpenForAppendError,
    ParamTypeError,
    ParamValueError,
    failure,
)
from mycel.mindrecord.file_layout import (
    MAX_HEADER_SIZE,
    MAX_PAGE_SIZE,
    MAX_SHARD_COUNT,
    MIN_HEADER_SIZE,
    MIN_PAGE_SIZE,
    Header,
    Place,
    ShardWriter,
)
from mycel.mindrecord.row_encoding import (
    NO_PLAIN_FIELDS,
    Field,
    Schema,
    blob_fields,
    pack_blob,
    pack_map,
    unpack_map,
)
from mycel.mindrecord.schema_checks import check_filename, check_schema, plain_value, valid_rows
from mycel.mindrecord.sqlite_index import same_columns, write_index


class _Draft:
    """A file and its index in the making: temporary files beside the final ones."""

    def __init__(self, path: str, header: Header, source: str | None = None) -> None:
        self.path = path
        self._files: list[Draft] = []
        try:
            self._files.append(Draft(path, "record file", 0o600))
            self.handle: IO[bytes] = open(self._files[0].path, "w+b")
        except OSError as error:
            for draft in self._files:
                draft.discard()
            raise failure(MRMOpenError, f"{path!r} cannot be written: {error}") from error
        self._clean = finalization.when_gone(self, _remove, self.handle, self._files)
        if source is not None:
            with open(source, "rb") as before:
                shutil.copyfileobj(before, self.handle)
        self.writer = ShardWriter(self.handle, header)
        self.rows = 0

    def finish(self, schema: Schema) -> None:
        """Complete the temporary files."""
        self.writer.finish()
        header = self.writer.header
        places = self.writer.places()
        index = Draft(self.path + ".db", "index", 0o600)
        self._files.append(index)
        write_index(
            os.fspath(index.path), os.path.basename(self.path), header.index_fields, schema, self._plain(places)
        )
        self.handle.close()
        self._files[:] = [encrypted(draft) for draft in self._files]

    def _plain(self, places: Sequence[Place]) -> Iterator[tuple[Place, dict[str, Any]]]:
        header = self.writer.header
        for place in places:
            self.handle.seek(header.header_size + place.raw_page * header.page_size + place.raw[0] + 8)
            yield place, unpack_map(self.handle.read(place.raw[1] - place.raw[0] - 8))

    def publish(self) -> None:
        """Give the files their final names."""
        for draft in self._files:
            draft.publish()

    def discard(self) -> None:
        """Remove the temporary files that still exist."""
        self._clean()


def _remove(handle: IO[bytes], files: Sequence[Draft]) -> None:
    handle.close()
    for draft in files:
        draft.discard()


class FileWriter:
    """A writer of rows into `shard_num` record files.

    Rows are dictionaries of the fields of a schema. Types are int32, int64, float32, float64,
    string and bytes, and arrays of the four numeric types with their `shape`, of which one entry
    may be -1. One shard is called `file_name`; several have a number at the end. The files exist,
    whole, after `commit`; without `overwrite`, existing files are refused. The layout is
    MindSpore's: either reads the other's files.

    Raises ParamValueError for arguments out of range.

    >>> import tempfile, os, numpy as np
    >>> from mycel.mindrecord import FileReader, FileWriter
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = os.path.join(folder, "numbers.mindrecord")
    ...     writer = FileWriter(name)
    ...     fields = {"label": {"type": "int32"}, "x": {"type": "float32", "shape": [-1]}}
    ...     writer.add_schema(fields, "two fields")
    ...     writer.add_index(["label"])
    ...     rows = [{"label": i, "x": np.full(i, 0.5, np.float32)} for i in range(3)]
    ...     writer.write_raw_data(rows)
    ...     writer.commit()
    ...     reader = FileReader(name)
    ...     rows = [(row["label"], row["x"].tolist()) for row in reader.get_next()]
    ...     reader.close()
    >>> rows
    [(0, []), (1, [0.5]), (2, [0.5, 0.5])]
    """

    def __init__(self, file_name: str, shard_num: int = 1, overwrite: bool = False) -> None:
        self._file_name = check_filename(file_name)
        arguments.integer("FileWriter", "shard_num", shard_num, 1, MAX_SHARD_COUNT, numpy=False, error=ParamValueError)
        arguments.flag("FileWriter", "overwrite", overwrite, error=ParamValueError)
        if shard_num > 1 and encryption_key() is not None:
            raise RuntimeError(
                "FileWriter: encrypted files cannot be sharded; leave shard_num 1 or call set_enc_key(None)"
            )
        digits = len(str(shard_num - 1))
        self._paths = [file_name] if shard_num == 1 else [f"{file_name}{i:0{digits}d}" for i in range(shard_num)]
        self._overwrite = overwrite
        self._append = False
        self._schema: Schema | None = None
        self._description = ""
        self._index_fields: list[str] = []
        self._header_size, self._page_size = 1 << 24, 1 << 25
        self._drafts: list[_Draft] | None = None
        self._committed = False
        self._parallel: bool | None = None
        self._calls = 0

    @classmethod
    def open_for_append(cls, file_name: str) -> FileWriter:
        """Return a writer that adds rows to a file; its schema, index fields and sizes stay.

        Raises MRMOpenForAppendError for a file that does not exist or is one of several shards.
        """
        check_filename(file_name)
        for path in (file_name, file_name + ".db"):
            if not os.path.isfile(path):
                raise failure(MRMOpenForAppendError, f"There is no file {path!r}.")
        plain = Plain()
        try:
            header = Header.read(plain.path(file_name))
        finally:
            plain.close()
        if len(header.addresses) != 1:
            raise failure(
                MRMOpenForAppendError,
                f"{file_name!r} is one of {len(header.addresses)} shards; write new files instead.",
            )
        writer = cls(file_name)
        writer._append = True
        writer._schema, writer._description = header.schema, header.description
        writer._index_fields = header.index_fields
        writer._header_size, writer._page_size = header.header_size, header.page_size
        return writer

    def add_schema(self, content: dict[str, Field], desc: str | None = None) -> None:
        """Set the fields of rows, {name: {"type": ...}} or {name: {"type": ..., "shape": [...]}}.

        `desc` describes them in words. Raises MRMInvalidSchemaError for other forms, and
        MRMAddSchemaError for a second schema.
        """
        schema = check_schema(content)
        if self._schema is not None:
            raise failure(MRMAddSchemaError, "There is a schema already.")
        self._schema, self._description = schema, desc or ""

    def add_index(self, index_fields: list[str]) -> None:
        """Choose the fields by which `MindPage` finds rows; all plain fields if this is not called.

        Raises ParamTypeError unless it is a list of text, MRMGetMetaError without a schema,
        MRMDefineIndexError for bytes and arrays, and MRMAddIndexError for fields that the schema
        lacks or that are named twice.
        """
        if not index_fields or not isinstance(index_fields, list):
            raise ParamTypeError("index_fields", "list")
        schema = self._known_schema()
        for field in index_fields:
            if not isinstance(field, str):
                raise ParamTypeError("index field", "str")
            if field in blob_fields(schema):
                raise MRMDefineIndexError(
                    f"the field {field!r} is bytes or an array; an index field is a number or text"
                )
            if field not in schema:
                raise failure(MRMAddIndexError, f"The schema has no field {field!r}; its fields are {sorted(schema)}.")
            if field in self._index_fields or index_fields.count(field) > 1:
                raise failure(MRMAddIndexError, f"The field {field!r} is named twice.")
        self._index_fields = [*self._index_fields, *index_fields]

    def _known_schema(self) -> Schema:
        if self._schema is None:
            raise failure(MRMGetMetaError, "There is no schema; call add_schema first.")
        return self._schema

    def set_header_size(self, header_size: int) -> None:
        """Set the bytes reserved for the header, before rows are written.

        They are a multiple of 4 from 16 KiB to 128 MiB (16 MiB by default). Raises
        MRMInvalidHeaderSizeError otherwise.
        """
        self._header_size = self._checked_size(header_size, MIN_HEADER_SIZE, MAX_HEADER_SIZE, MRMInvalidHeaderSizeError)

    def set_page_size(self, page_size: int) -> None:
        """Set the bytes of a page, before rows are written; no row may be larger.

        They are a multiple of 4 from 32 KiB to 256 MiB (32 MiB by default). Raises
        MRMInvalidPageSizeError otherwise.
        """
        self._page_size = self._checked_size(page_size, MIN_PAGE_SIZE, MAX_PAGE_SIZE, MRMInvalidPageSizeError)

    def _checked_size(
        self, size: Any, low: int, high: int, kind: type[MRMInvalidHeaderSizeError] | type[MRMInvalidPageSizeError]
    ) -> int:
        if isinstance(size, bool) or not isinstance(size, int):
            raise TypeError(f"FileWriter: the size of headers and pages must be an int, not {type(size).__name__}")
        if not low <= size <= high or size % 4:
            raise failure(kind, f"It must be a multiple of 4 within [{low}, {high}], not {size!r}.")
        if self._drafts is not None or self._append:
            raise failure(kind, "Rows are written already.")
        return size

    def _opened(self) -> list[_Draft]:
        if self._drafts is not None:
            return self._drafts
        schema = self._known_schema()
        if encryption_key() is not None:
            encryption_function()
        if self._append:
            plain = Plain()
            try:
                source = plain.path(self._file_name)
                self._drafts = [_Draft(self._file_name, Header.read(source), source)]
            finally:
                plain.close()
            return self._drafts
        for path in self._paths:
            if not self._overwrite and (os.path.exists(path) or os.path.exists(path + ".db")):
                raise failure(
                    MRMOpenError,
                    f"{path!r} or its index is there already; remove it, or pass overwrite=True to FileWriter.",
                )
        blobs = blob_fields(schema)
        index_fields = self._index_fields or sorted(set(schema) - set(blobs))
        if twice := same_columns(index_fields):
            raise failure(
                MRMAddIndexError,
                f"The index fields {', '.join(map(repr, twice))} are one name in SQLite, or one of the index's own; "
                "rename them, or add_index others.",
            )
        addresses = [os.path.basename(path) for path in self._paths]
        self._drafts = [
            _Draft(
                path,
                Header(
                    schema, blobs, self._description, index_fields, addresses, shard, self._header_size, self._page_size
                ),
            )
            for shard, path in enumerate(self._paths)
        ]
        return self._drafts

    def write_raw_data(self, raw_data: list[dict[str, Any]], parallel_writer: bool = False) -> None:
        """Write rows.

        Consecutive rows go to one shard, so that shards grow evenly; with `parallel_writer` all
        rows of a call go to one shard, in turn. Rows that do not match the schema are left out,
        with a warning in the log. Raises ParamTypeError unless the rows are a list of dictionaries,
        MRMValidateDataError for integers beyond their type, MRMWriteDatasetError for rows larger
        than a page, and RuntimeError where no row is left.
        """
        arguments.flag("write_raw_data", "parallel_writer", parallel_writer)
        if self._parallel not in (None, parallel_writer):
            raise RuntimeError("write_raw_data: parallel_writer must be the same in every call")
        if self._committed and not self._append:
            raise RuntimeError("write_raw_data: the files are committed; write before commit, or use open_for_append")
        self._parallel = parallel_writer
        schema = self._known_schema()
        rows = valid_rows(raw_data, schema)
        drafts = self._opened()
        blobs = blob_fields(schema)
        others = sorted(set(schema) - set(blobs))
        start = 0
        for draft, count in zip(drafts, self._shares(drafts, len(rows))):
            plain, packed = [], []
            for row in rows[start : start + count]:
                plain.append(pack_map({name: plain_value(row[name]) for name in others} or NO_PLAIN_FIELDS))
                blob, saved = pack_blob(row, schema, blobs)
                packed.append(blob)
                draft.writer.header.saved += saved
            draft.writer.append(plain, packed)
            draft.rows += count
            start += count
        self._calls += 1

    def _shares(self, drafts: Sequence[_Draft], count: int) -> list[int]:
        """Return how many rows each shard takes: equally many.

        The remaining ones go to the shards with the fewest rows.
        """
        if self._parallel:
            return [count if shard == self._calls % len(drafts) else 0 for shard in range(len(drafts))]
        each, left = divmod(count, len(drafts))
        poorest = set(sorted(range(len(drafts)), key=lambda shard: (drafts[shard].rows, shard))[:left])
        return [each + (shard in poorest) for shard in range(len(drafts))]

    def commit(self) -> None:
        """Complete the files and their indexes and rename them; a failure leaves nothing behind."""
        if self._committed and self._drafts is None:
            raise RuntimeError("commit: the files are committed already")
        drafts = self._opened()
        schema = self._known_schema()
        try:
            for draft in drafts:
                draft.finish(schema)
            for draft in drafts:
                # Readers refuse an index without its file, but not a file with another's index.
                if os.path.exists(draft.path + ".db"):
                    os.remove(draft.path + ".db")
            for draft in drafts:
                draft.publish()
        finally:
            for draft in drafts:
                draft.discard()
            self._drafts = None
            self._committed = True


def abandon(writer: FileWriter) -> None:
    """Drop what a writer has written and not committed."""
    for draft in writer._drafts or ():
        draft.discard()
    writer._drafts = None
