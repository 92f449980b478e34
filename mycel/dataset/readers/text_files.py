"""Sources of rows from text, CSV and TFRecord files, and of rows that pad others.

Files come in the order of their names and rows in the order of the files. All shards have equally
many rows: consecutive ones, from the first again after the last. All shards of a run see the same
shuffled order.
"""

from __future__ import annotations

import csv
import glob
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel.base import arguments
from mycel.base import decompression as inflate
from mycel.dataset.arguments import check_count, check_counts
from mycel.dataset.blocks import Array, Block, Column, Row, as_array
from mycel.dataset.families import TextBaseDataset
from mycel.dataset.generator import GeneratorDataset
from mycel.dataset.readers.failures import reading
from mycel.dataset.readers.schema import Schema
from mycel.dataset.run import Run
from mycel.dataset.samplers import BuiltinSampler, Indices, Labels, Shuffle, wants_shuffle
from mycel.dataset.sources import ArrayDataset, HeldDataset, MappableDataset


class FileOrder(BuiltinSampler):
    """The order of the rows of files, or of one shard of consecutive rows.

    * `operation`: the name in messages.
    * `shuffle`: how rows are shuffled, if they are.
    * `sizes`: the number of rows of each file.
    * `num_samples`: the largest number of rows.
    * `shards`: the number of shards and the number of this one.
    """

    def __init__(
        self,
        operation: str,
        shuffle: Any,
        sizes: list[int],
        num_samples: int | None,
        shards: tuple[int, int] | None,
    ) -> None:
        super().__init__(num_samples)
        self.by_file = shuffle if shuffle in (Shuffle.FILES, Shuffle.INFILE) else None
        self.shuffles = self.by_file is not None or wants_shuffle(operation, shuffle)
        self.parts = shards
        # The source fills it when it reads its files.
        self.sizes = sizes

    def is_sharded(self) -> bool:
        return self.parts is not None

    def shards(self) -> tuple[int, int] | None:
        return self.parts if self.num_samples is None else None

    def _draw(self, rows: int, run: Run, labels: Labels, depth: int) -> Indices:
        common = run if run.seeded or self.parts is None else Run(0, run.epoch)
        random = common.generator(depth, 7)
        ends = np.cumsum(self.sizes, dtype=np.int64)
        parts = [np.arange(end - size, end, dtype=np.int64) for end, size in zip(ends, self.sizes)]
        if self.by_file is Shuffle.FILES:
            parts = [parts[i] for i in random.permutation(len(parts))]
        elif self.by_file is Shuffle.INFILE:
            parts = [random.permutation(part) for part in parts]
        order = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        if self.shuffles and self.by_file is None:
            order = random.permutation(order)
        if self.parts is None or not rows:
            return order
        count, shard = self.parts
        chosen: Indices
        if not run.stretches:
            each = -(-rows // count)
            chosen = order[(shard * each + np.arange(each)) % rows]
            return chosen
        order = _left(order, *run.stretches[0])
        order = order[sum(others * each for others, each in run.stretches[1:]) :]
        # What other numbers of shards have left is dealt out in turn, so that none is without rows
        # before all are.
        places = np.arange(shard, -(-len(order) // count) * count, count)
        chosen = order[places % max(1, len(order))]
        return chosen


def _left(order: Indices, count: int, taken: int) -> Indices:
    """Return the rows of an order of which `count` shards have taken so many, each its own."""
    each = -(-len(order) // count)
    return np.concatenate([order[start + taken : start + each] for start in range(0, len(order), each)])


def find_files(operation: str, patterns: str | Sequence[str]) -> list[str]:
    """Return the files that match names or patterns, in order; ValueError if one matches none."""
    wanted: list[Any] = [patterns] if not isinstance(patterns, (tuple, list)) else list(patterns)
    if not wanted or not all(isinstance(pattern, (str, os.PathLike)) for pattern in wanted):
        raise TypeError(f"{operation}: dataset_files must be text or a list of text, at least one, got {patterns!r}")
    found: list[str] = []
    for pattern in wanted:
        matches = glob.glob(os.fspath(pattern))
        if not matches:
            raise ValueError(f"{operation}: no file matches {os.fspath(pattern)!r}")
        found += matches
    return sorted(found)


def check_files(
    operation: str, shuffle: Any, num_samples: Any, num_shards: int | None, shard_id: int | None
) -> tuple[int, int] | None:
    """Check the arguments that sources of files have in common, before any file is looked for.

    `operation` is named in messages; `shuffle`, `num_samples`, `num_shards` and `shard_id` are
    those of `TextFileDataset`. Returns (number of shards, shard), or None. Raises TypeError,
    RuntimeError or ValueError.
    """
    check_counts(operation, num_samples=num_samples, num_shards=num_shards, shard_id=shard_id)
    if not isinstance(shuffle, Shuffle):
        wants_shuffle(operation, shuffle)
    return check_shards(operation, num_shards, shard_id)


def check_shards(operation: str, num_shards: int | None, shard_id: int | None) -> tuple[int, int] | None:
    """Return (number of shards, shard), or None.

    Raises RuntimeError where one is missing, and ValueError where it is out of range.
    """
    if num_shards is None and shard_id is None:
        return None
    if num_shards is None or shard_id is None:
        raise RuntimeError(f"{operation}: num_shards and shard_id go together, got {num_shards} and {shard_id}")
    check_count(operation, "num_shards", num_shards, 1)
    check_count(operation, "shard_id", shard_id, 0)
    if shard_id >= num_shards:
        raise ValueError(f"{operation}: shard_id {shard_id} is not below num_shards {num_shards}")
    return num_shards, shard_id


class TextFileDataset(HeldDataset, TextBaseDataset):
    """The non-empty lines of text files: column `text`.

    * `dataset_files`: names and patterns of files. Lines end in a line feed and are UTF-8.
    * `shuffle`: rows are shuffled unless it is False; Shuffle.FILES shuffles the files,
      Shuffle.INFILE the lines of each.
    * `num_samples`, `num_parallel_workers`, `num_shards`, `shard_id`, `cache`: as in
      `MappableDataset`.

    Raises ValueError where no file matches, or where one is not UTF-8.

    >>> import tempfile, os
    >>> import mycel.dataset as ds
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = os.path.join(folder, "a.txt")
    ...     with open(name, "w") as handle:
    ...         _ = handle.write("first line\\n\\nsecond line\\n")
    ...     data = ds.TextFileDataset(name, shuffle=False)
    ...     [str(line) for line, in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    ['first line', 'second line']
    """

    _names = ("text",)

    def __init__(
        self,
        dataset_files: str | Sequence[str],
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = Shuffle.GLOBAL,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        super().__init__(num_parallel_workers, cache=cache)
        shards = check_files("TextFileDataset", shuffle, num_samples, num_shards, shard_id)
        self.dataset_files = find_files("TextFileDataset", dataset_files)
        self._sizes: list[int] = []
        self.sampler = FileOrder("TextFileDataset", shuffle, self._sizes, num_samples, shards)

    def _load(self) -> dict[str, Column]:
        lines: list[Array] = []
        sizes = []
        for path in self.dataset_files:
            try:
                with open(path, encoding="utf-8", newline="\n") as handle:
                    found = [line[:-1] if line.endswith("\n") else line for line in handle]
            except UnicodeDecodeError as error:
                raise ValueError(f"TextFileDataset: {path!r} is not UTF-8: {error}") from error
            rows = [np.array(line) for line in found if line]
            lines += rows
            sizes.append(len(rows))
        self._sizes[:] = sizes
        return {"text": lines}


class CSVDataset(ArrayDataset):
    """The lines of CSV files (RFC 4180), with a column for each field.

    * `dataset_files`: names and patterns of files.
    * `field_delim`: the character between fields.
    * `column_defaults`: values whose types the columns have: int32 for an integer, float32 for a
      float, text for text. Without it all columns are text.
    * `column_names`: the names of the columns; without it they are in the first line of each file.
    * `shuffle`: as in `TextFileDataset`.
    * `num_samples`, `num_parallel_workers`, `num_shards`, `shard_id`, `cache`: as in
      `MappableDataset`.

    Raises ValueError for lines with another number of values, and for values of another type.

    >>> import tempfile, os
    >>> import mycel.dataset as ds
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = os.path.join(folder, "a.csv")
    ...     with open(name, "w") as handle:
    ...         _ = handle.write("n,name\\n1,one\\n2,two\\n")
    ...     data = ds.CSVDataset(name, column_defaults=[0, ""], shuffle=False)
    ...     rows = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
    ...     [(int(n), str(name)) for n, name in rows]
    [(1, 'one'), (2, 'two')]
    """

    def __init__(
        self,
        dataset_files: str | Sequence[str],
        field_delim: str = ",",
        column_defaults: Sequence[Any] | None = None,
        column_names: Sequence[str] | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = Shuffle.GLOBAL,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        super().__init__(num_parallel_workers, cache=cache)
        shards = check_files("CSVDataset", shuffle, num_samples, num_shards, shard_id)
        if len(arguments.text("CSVDataset", "field_delim", field_delim)) != 1 or field_delim in '"\r\n':
            raise ValueError(
                f"CSVDataset: field_delim must be one letter, not a quote or the end of a line, got {field_delim!r}"
            )
        arguments.optional("CSVDataset", "column_defaults", column_defaults, list)
        for name in () if column_names is None else column_names:
            arguments.text("CSVDataset", "each of column_names", name)
        self.dataset_files = find_files("CSVDataset", dataset_files)
        names = None if column_names is None else list(column_names)
        rows: list[list[str]] = []
        sizes = []
        for path in self.dataset_files:
            found = self._lines(path, field_delim)
            if column_names is None:
                if not found:
                    raise ValueError(f"CSVDataset: {path!r} has no line of column names")
                head = found.pop(0)
                if names is not None and head != names:
                    raise ValueError(f"CSVDataset: {path!r} has the columns {head}, another file has {names}")
                names = head
            rows += found
            sizes.append(len(found))
        names = names or []
        if len(set(names)) != len(names):
            raise ValueError(f"CSVDataset: a column is named twice in {names}")
        if column_defaults is not None and len(column_defaults) != len(names):
            raise ValueError(f"CSVDataset: {len(names)} columns but {len(column_defaults)} values in column_defaults")
        for number, row in enumerate(rows):
            if len(row) != len(names):
                raise ValueError(
                    f"CSVDataset: row {number} has {len(row)} values, but there are {len(names)} columns: {row}"
                )
        kinds = [""] * len(names) if column_defaults is None else list(column_defaults)
        self._arrays: dict[str, Column] = {
            name: _converted(name, [row[position] for row in rows], kind)
            for position, (name, kind) in enumerate(zip(names, kinds))
        }
        self.sampler = FileOrder("CSVDataset", shuffle, sizes, num_samples, shards)

    @staticmethod
    def _lines(path: str, delimiter: str) -> list[list[str]]:
        try:
            with open(path, encoding="utf-8", newline="") as handle:
                return [row for row in csv.reader(handle, delimiter=delimiter, strict=True) if row]
        except (UnicodeDecodeError, csv.Error) as error:
            raise ValueError(f"CSVDataset: {path!r} cannot be read: {error}") from error

    def _data(self) -> dict[str, Column]:
        return self._arrays


def _converted(name: str, texts: Sequence[str], kind: Any) -> Column:
    if isinstance(kind, str):
        return [np.array(text) for text in texts]
    if isinstance(kind, bool) or not isinstance(kind, (int, float)):
        raise TypeError(
            f"CSVDataset: column_defaults has {kind!r} for column {name!r}; use an integer, a float or text"
        )
    try:
        return (
            np.array([int(t) for t in texts], np.int32)
            if isinstance(kind, int)
            else np.array([float(t) for t in texts], np.float32)
        )
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"CSVDataset: column {name!r} is not all {'int32' if isinstance(kind, int) else 'float32'}: {error}"
        ) from error


class TFRecordDataset(MappableDataset):
    """The `Example` messages of TFRecord files, with a column of one axis for each feature.

    Columns are int64, float32, or uint8 for bytes. Several bytes of one feature are padded with
    spaces to the longest and joined. Checksums of lengths are checked, those of contents are not.

    * `dataset_files`: names and patterns of files.
    * `schema`: a `Schema`, or the name of its file, with the features to read, their types and
      their shapes; features of type "string" are text.
    * `columns_list`: the columns to read, in this order.
    * `shuffle`: as in `TextFileDataset`.
    * `shard_equal_rows`: whether shards take consecutive rows instead of whole files. They always
      do for compressed files.
    * `compression_type`: "GZIP" or "ZLIB" for compressed files, which are read into memory.
    * `num_samples`, `num_parallel_workers`, `num_shards`, `shard_id`, `cache`: as in
      `MappableDataset`.

    Raises ValueError for files of another format, and while iterating for features that are missing
    or do not fit.
    """

    _uses_workers = True
    _reads_files = True

    def __init__(
        self,
        dataset_files: str | Sequence[str],
        schema: Any = None,
        columns_list: Sequence[str] | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = Shuffle.GLOBAL,
        num_shards: int | None = None,
        shard_id: int | None = None,
        shard_equal_rows: bool = False,
        cache: Any = None,
        compression_type: str | None = None,
    ) -> None:
        from mycel.mindrecord.tfrecord import Places, read_records, record_spans

        super().__init__(num_parallel_workers, cache=cache)
        kind = "TFRecordDataset"
        shards = check_files(kind, shuffle, num_samples, num_shards, shard_id)
        for name in arguments.optional(kind, "columns_list", columns_list, list) or ():
            arguments.text(kind, "each of columns_list", name)
        arguments.flag(kind, "shard_equal_rows", shard_equal_rows)
        files = find_files(kind, dataset_files)
        if compression_type not in (None, "", "GZIP", "ZLIB"):
            raise ValueError(f"{kind}: compression_type must be '', 'GZIP' or 'ZLIB', got {compression_type!r}")
        if shards is not None and not shard_equal_rows and not compression_type:
            if len(files) < shards[0]:
                raise RuntimeError(
                    f"{kind}: {len(files)} files cannot be shared by {shards[0]} shards; pass shard_equal_rows=True"
                )
            files, shards = files[shards[1] :: shards[0]], None
        self.schema = Schema(schema) if isinstance(schema, (str, os.PathLike)) else schema
        if self.schema is not None and not isinstance(self.schema, Schema):
            raise TypeError(f"{kind}: schema must be a Schema or the name of its file, got {schema!r}")
        self.dataset_files = files
        # Records are kept as places in files, or as contents where files are compressed.
        self._records: list[Any] = []
        self._places = Places(files)
        sizes = []
        for number, path in enumerate(files):
            found: list[Any]
            if compression_type:
                found = list(read_records(path, compression_type))
            else:
                found = [(number, start, size) for start, size in record_spans(path)]
            self._records += found
            sizes.append(len(found))
        self._sizes = sizes
        if num_samples is None and self.schema is not None and self.schema.num_rows:
            num_samples = self.schema.num_rows
        self.sampler = FileOrder(kind, shuffle, sizes, num_samples, shards)
        self._wanted = self._choose(None if columns_list is None else list(columns_list))

    def _choose(self, columns: list[str] | None) -> list[dict[str, Any]]:
        """Return the columns, with their types and shapes where these are known."""
        if self.schema is not None:
            known = {column["name"]: column for column in self.schema.columns}
        else:
            with reading("TFRecordDataset", self._file_of(0)):
                known = {name: {"name": name} for name in sorted(self._example(0))} if self._records else {}
        missing = [name for name in columns or () if name not in known]
        if missing:
            raise ValueError(
                f"TFRecordDataset: there is no feature {', '.join(map(repr, missing))}; there are {list(known)}"
            )
        return [known[name] for name in columns or known]

    def _example(self, number: int) -> dict[str, Any]:
        from mycel.mindrecord.tfrecord import parse_example

        record = self._records[number]
        if isinstance(record, bytes):
            return dict(parse_example(record))
        return dict(parse_example(self._places.read(*record)))

    def _columns(self) -> list[str]:
        return [column["name"] for column in self._wanted]

    def _total(self) -> int:
        return len(self._records)

    def _row(self, number: int) -> Row:
        with reading("TFRecordDataset", self._file_of(number)):
            example = self._example(number)
            row = []
            for column in self._wanted:
                name = column["name"]
                if name not in example:
                    raise ValueError(
                        f"TFRecordDataset: record {number} has no feature {name!r}; it has {sorted(example)}"
                    )
                row.append(_feature_array(name, example[name], column.get("type"), column.get("shape")))
            return tuple(row)

    def _file_of(self, number: int) -> str:
        ends = np.cumsum(self._sizes)
        return self.dataset_files[min(int(np.searchsorted(ends, number, side="right")), len(self.dataset_files) - 1)]

    def _gather(self, indices: Indices) -> Block:
        columns = self._together([self._records[index] for index in indices.tolist()])
        if columns is not None:
            return Block(columns, len(indices))
        return Block.from_rows([self._row(int(index)) for index in indices])

    def _together(self, records: list[Any]) -> list[Column] | None:
        """Return the columns of several records, or None where they are to be parsed one by one."""
        from mycel.mindrecord.example_index import parse_rows

        if any("shape" in column or column.get("type") == "string" for column in self._wanted):
            return None
        try:
            contents = [r if isinstance(r, bytes) else self._places.read(*r) for r in records]
            columns = parse_rows(contents, self._columns())
        except (OSError, ValueError):
            # Reading record by record, the error names the file.
            return None
        for number, column in enumerate(self._wanted):
            kind = column.get("type")
            if columns is not None and kind is not None:
                found = columns[number]
                first = found if isinstance(found, np.ndarray) else found[0]
                if first.dtype == np.uint8 and kind != "uint8":
                    return None
                columns[number] = found.astype(kind) if found is first else [row.astype(kind) for row in found]
        return columns


def _feature_array(name: str, values: Any, kind: str | None, shape: list[int] | None) -> Array:
    array: Array
    if isinstance(values, list):
        if kind == "string":
            texts = [value.decode() for value in values]
            if 4 * len(texts) * max(map(len, texts), default=0) > inflate.limit(sum(map(len, values))):
                raise ValueError(f"feature {name!r} has {len(texts)} texts, one of {max(map(len, texts))} letters")
            array = np.array(texts, np.str_)
        elif kind in (None, "uint8"):
            longest = max(map(len, values), default=0)
            if longest * len(values) > inflate.limit(sum(map(len, values))):
                raise ValueError(
                    f"feature {name!r} has {len(values)} values, which would all be filled up to {longest} bytes"
                )
            joined = b"".join(value.ljust(longest) for value in values)
            array = np.frombuffer(bytearray(joined), np.uint8)
        else:
            raise ValueError(f"TFRecordDataset: feature {name!r} is bytes, not {kind}; use uint8 or string")
    else:
        if kind == "string":
            raise ValueError(f"TFRecordDataset: feature {name!r} is {values.dtype}, not string")
        array = values.astype(kind or values.dtype)
    if shape is None:
        return array
    try:
        return array.reshape(shape)
    except ValueError as error:
        raise ValueError(
            f"TFRecordDataset: feature {name!r} has {array.size} values, which do not fit shape {shape}"
        ) from error


class PaddedDataset(GeneratorDataset):
    """Rows given as dictionaries.

    Appended to another dataset, they make its length fit the number of shards.

    >>> import numpy as np
    >>> import mycel.dataset as ds
    >>> data = ds.NumpySlicesDataset({"x": [1, 2, 3]}, shuffle=False)
    >>> data = data + ds.PaddedDataset([{"x": np.array(0)}])
    >>> [int(x) for x, in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    [1, 2, 3, 0]
    """

    def __init__(self, padded_samples: Sequence[dict[str, Any]]) -> None:
        if not padded_samples:
            raise ValueError(f"PaddedDataset: expected a list of dictionaries, at least one, got {padded_samples!r}")
        for sample in arguments.sequence("PaddedDataset", "padded_samples", padded_samples):
            arguments.instance("PaddedDataset", "each of padded_samples", sample, dict)
        names = list(padded_samples[0])
        for sample in padded_samples:
            if not sample or set(sample) != set(names):
                raise ValueError(
                    f"PaddedDataset: each sample must be a dictionary with the columns {names}, got {sample!r}"
                )
        self.padded_samples = list(padded_samples)
        rows = [tuple(as_array(sample[name]) for name in names) for sample in padded_samples]
        super().__init__(rows, names, shuffle=False)
