"""`TFRecordDataset`: the `Example` messages of TFRecord files as a source."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation.files import decompression as inflate
from mycel._src.foundation.files import fsspec_files
from mycel.dataset.basic_sources.mappable_source import MappableDataset
from mycel.dataset.pipeline_errors import reading
from mycel.dataset.readers.coalesced_reads import Pieces
from mycel.dataset.readers.damaged_files import stored
from mycel.dataset.readers.file_order import FileOrder, check_files, find_files
from mycel.dataset.readers.schema import Schema
from mycel.dataset.rows.column_blocks import Array, Block, Column, Row
from mycel.dataset.samplers import Indices, Shuffle
from mycel.mindrecord.tfrecord import Places, parse_example, read_records, record_spans
from mycel.mindrecord.tfrecord_parsing import parse_rows


class TFRecordDataset(MappableDataset):
    """The `Example` messages of TFRecord files, with a column of one axis for each feature.

    Columns are int64, float32, or uint8 for bytes. Several bytes of one feature are padded with
    spaces to the longest and joined. Checksums of lengths are checked, those of contents are not.

    Args:
        dataset_files (str | Sequence[str]): Names and patterns of files.
        schema (Schema | str | None): The features to read, their types and their shapes, or the
            name of a file of them; features of type "string" are text. None for those of the first
            message. Default: None.
        columns_list (Sequence[str] | None): The columns to read, in this order. Default: None.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        shard_equal_rows (bool): Whether shards take consecutive rows instead of whole files. They
            always do for compressed files. Positions of whole files are refused by other numbers of
            shards. Default: False.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.
        compression_type (str | None): "GZIP" or "ZLIB" for compressed files, which are read into
            memory. Default: None.

    Raises:
        ValueError: For files of another format, and while iterating for features that are missing
            or do not fit.

    Examples:
        >>> import os, tempfile
        >>> import mycel.dataset as ds
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     name = os.path.join(folder, "a.tfrecord")
        ...     ds.NumpySlicesDataset({"x": [4, 5]}, shuffle=False).save(name, file_type="tfrecord")
        ...     data = ds.TFRecordDataset(name, shuffle=False)
        ...     [x.tolist() for (x,) in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
        [[4], [5]]
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
        super().__init__(num_parallel_workers, cache=cache)
        kind = "TFRecordDataset"
        shards = check_files(kind, shuffle, num_samples, num_shards, shard_id)
        for name in arguments.optional(kind, "columns_list", columns_list, list) or ():
            arguments.text(kind, "each of columns_list", name)
        arguments.flag(kind, "shard_equal_rows", shard_equal_rows)
        files = find_files(kind, dataset_files)
        if compression_type not in (None, "", "GZIP", "ZLIB"):
            raise ValueError(f"{kind}: compression_type must be '', 'GZIP' or 'ZLIB', not {compression_type!r}")
        whole = 0
        if shards is not None and not shard_equal_rows and not compression_type:
            if len(files) < shards[0]:
                raise RuntimeError(
                    f"{kind}: {len(files)} files cannot be shared by {shards[0]} shards; pass shard_equal_rows=True"
                )
            whole = shards[0]
            files, shards = files[shards[1] :: shards[0]], None
        self.schema = Schema(schema) if isinstance(schema, (str, os.PathLike)) else schema
        arguments.optional(kind, "schema", self.schema, Schema, "a Schema or the name of its file")
        self.dataset_files = files
        if compression_type and shuffle is Shuffle.PARTIAL:
            raise ValueError(f"{kind}: {shuffle} reads records by their places, which compressed files do not have")
        # Contents where files are compressed; elsewhere places: file, begin and size.
        self._contents: list[bytes] = []
        self._places = Places(files)
        self._pieces: Pieces | None = None
        spans = []
        sizes = []
        for number, path in enumerate(files):
            with stored(kind):
                if compression_type:
                    found = list(read_records(path, compression_type))
                    self._contents += found
                    sizes.append(len(found))
                    continue
                places = np.array(record_spans(path), np.int64).reshape(-1, 2)
            spans.append(np.insert(places, 0, number, axis=1))
            sizes.append(len(places))
        self._spans = np.concatenate(spans) if spans else np.zeros((0, 3), np.int64)
        self._sizes = sizes
        if num_samples is None and self.schema is not None and self.schema.num_rows:
            num_samples = self.schema.num_rows
        order = FileOrder(kind, shuffle, sizes, num_samples, shards, True, whole)
        in_place = order.by_file in (Shuffle.FILES, Shuffle.PARTIAL) or not order.shuffles
        if shuffle is Shuffle.PARTIAL or (
            in_place and not compression_type and any(map(fsspec_files.is_remote, files))
        ):
            stretches = [np.stack([rows[:, 1], rows[:, 1] + rows[:, 2]], 1) for rows in spans]
            self._pieces = order.pieces = Pieces(files, stretches, lambda _: None)
        self.sampler = order
        self._wanted = self._choose(None if columns_list is None else list(columns_list))

    def _choose(self, columns: list[str] | None) -> list[dict[str, Any]]:
        """Return the columns, with their types and shapes where these are known."""
        if self.schema is not None:
            known = {column["name"]: column for column in self.schema.columns}
        else:
            with reading("TFRecordDataset", self._file_of(0)):
                known = {name: {"name": name} for name in sorted(self._example(0))} if self._total() else {}
        missing = [name for name in columns or () if name not in known]
        if missing:
            raise ValueError(
                f"TFRecordDataset: there is no feature {', '.join(map(repr, missing))}; there are {list(known)}"
            )
        return [known[name] for name in columns or known]

    def _example(self, number: int) -> dict[str, Any]:
        return dict(parse_example(self._content(number)))

    def _content(self, number: int) -> bytes:
        if self._contents:
            return self._contents[number]
        file, start, size = self._spans[number].tolist()
        if self._pieces is not None:
            return self._pieces.content(number, start, start + size)
        return self._places.read(file, start, size)

    def _columns(self) -> list[str]:
        return [column["name"] for column in self._wanted]

    def _total(self) -> int:
        return len(self._contents) or len(self._spans)

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
        columns = self._together(indices.tolist())
        if columns is not None:
            return Block(columns, len(indices))
        return Block.from_rows([self._row(int(index)) for index in indices])

    def _together(self, numbers: list[int]) -> list[Column] | None:
        """Return the columns of several records, or None where they are to be parsed one by one."""
        if any("shape" in column or column.get("type") == "string" for column in self._wanted):
            return None
        try:
            columns = parse_rows([self._content(number) for number in numbers], self._columns())
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
