"""`ArrowDataset`: the rows of Parquet and Arrow files as a source.

A row group of a Parquet file, or a record batch of an Arrow file, is read as a whole when the first
of its rows is asked for, and held. Invariants:

* The groups that are held have at most `held_bytes` bytes, or are one for each reading thread.
  Two threads never read one group at once.
* A row is a function of its number. Whether a group is held changes only the time it takes.
* Numbers are gathered by one call of NumPy a column; nothing in Python is done for each.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mycel._src.foundation.files import fsspec_files
from mycel.dataset.arguments import check_count, names
from mycel.dataset.basic_sources.mappable_source import MappableDataset
from mycel.dataset.execution.pass_context import Run
from mycel.dataset.readers import sharded_files
from mycel.dataset.readers.columnar import ipc_decompressed_size, parquet_decompressed_size
from mycel.dataset.readers.columnar.arrow_columns import NOTHING, SUPPORTED, arrow, dense, rows, unsupported, width
from mycel.dataset.readers.read_cache import Held
from mycel.dataset.rows.column_blocks import Array, Block, Column, join
from mycel.dataset.samplers import Indices, Shuffle

_OWN = "ArrowDataset"
_ENDINGS = (".parquet", ".pq", ".arrow", ".feather", ".ipc")
_HELD = 1 << 28
# As many groups of which rows are taken one after the other.
_FEW = 2


class _Group(NamedTuple):
    """A row group: its file, number there, number of rows, and that of the first in the file."""

    file: int
    number: int
    length: int
    first: int


@contextmanager
def _reading(path: str, part: str = "", owner: str = _OWN) -> Iterator[None]:
    pa = arrow(owner)
    try:
        yield
    except (
        pa.ArrowException,
        OSError,
        UnicodeDecodeError,
        parquet_decompressed_size.Refused,
        ipc_decompressed_size.Refused,
    ) as error:
        where = f"{owner}: {path!r}, {part}" if part else f"{owner}: {path!r}"
        if isinstance(error, (parquet_decompressed_size.Refused, ipc_decompressed_size.Refused)):
            raise ValueError(f"{where}: {error}") from error
        if isinstance(error, MemoryError):
            raise MemoryError(f"{where} is damaged, or needs more memory than there is: {error}") from error
        raise ValueError(f"{where} is damaged or cannot be read: {str(error)[:300]}") from error


class _Parquet:
    """A Parquet file."""

    unit = "row group"

    def __init__(self, path: str) -> None:
        import pyarrow.parquet

        self.path = path
        with _reading(path), fsspec_files.opened(path) as handle, pyarrow.parquet.ParquetFile(handle) as file:
            self.metadata, self.schema = file.metadata, file.schema_arrow
            count, columns = self.metadata.num_row_groups, self.metadata.num_columns
            self._chunks = parquet_decompressed_size.chunks_of(handle, fsspec_files.size_of(path), count, columns)
            self.counts = [self.metadata.row_group(number).num_rows for number in range(count)]

    def bytes_of(self, columns: Sequence[str]) -> list[int]:
        """Return about how many bytes columns take in each group, as Arrow holds them."""
        widths = {field.name: width(field.type) for field in self.schema}
        # Encodings change the size of numbers.
        each = sum(widths[name] or 0 for name in columns)
        unpacked = self._chunks.unpacked([name for name in columns if widths[name] is None])
        return [math.ceil(each * rows) + size for rows, size in zip(self.counts, unpacked)]

    def read(self, number: int, columns: list[str]) -> Any:
        """Read columns of a group as a table."""
        import pyarrow.parquet

        options = {"metadata": self.metadata, "page_checksum_verification": True}
        with fsspec_files.opened(self.path) as handle:
            size = fsspec_files.size_of(self.path)
            kept = parquet_decompressed_size.check_group(
                handle, size, self.metadata.schema, self._chunks.of(number), columns
            )
            source, mapped = (handle, False) if fsspec_files.is_remote(self.path) else (self.path, True)
            with pyarrow.parquet.ParquetFile(source, read_dictionary=kept, memory_map=mapped, **options) as file:
                return file.read_row_group(number, columns=columns, use_threads=False).select(columns)


class _Ipc:
    """An Arrow file, with random access to its record batches."""

    unit = "record batch"

    def __init__(self, path: str) -> None:
        self.path = path
        with _reading(path):
            with fsspec_files.opened(path) as handle:
                self._tables = ipc_decompressed_size.Sizes(handle, fsspec_files.size_of(path))
            with self._opened() as (file, handle):
                self.schema = file.schema
                batches = (self._batch(file, handle, number) for number in range(file.num_record_batches))
                found = [(batch.num_rows, self._bytes(batch)) for batch in batches]
            self.counts, self._sizes = [rows for rows, _ in found], [sizes for _, sizes in found]

    def _batch(self, file: Any, handle: Any, number: int) -> Any:
        self._tables.check(handle, number)
        batch = file.get_batch(number)
        # Columns of other lengths than the batch says would have rows that there are not.
        batch.validate()
        return batch

    @staticmethod
    def _bytes(batch: Any) -> dict[str, int]:
        return {name: part.get_total_buffer_size() for name, part in zip(batch.schema.names, batch.columns)}

    def bytes_of(self, columns: Sequence[str]) -> list[int]:
        """Return how many bytes columns take in each batch."""
        return [sum(sizes[name] for name in columns) for sizes in self._sizes]

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        pa = arrow(_OWN)
        if fsspec_files.is_remote(self.path):
            with fsspec_files.opened(self.path) as handle, pa.ipc.open_file(pa.PythonFile(handle, "r")) as file:
                yield file, handle
            return
        with pa.memory_map(self.path) as mapped, pa.ipc.open_file(mapped) as file:
            yield file, mapped

    def read(self, number: int, columns: list[str]) -> Any:
        """Read columns of a batch as a table, which shares the memory of the file."""
        pa = arrow(_OWN)
        with self._opened() as (file, handle):
            table = pa.Table.from_batches([self._batch(file, handle, number)]).select(columns)
            # Offsets of a damaged file would lead to memory that is not the file's.
            table.validate(full=True)
            return table


def _opened(path: str) -> _Parquet | _Ipc:
    with _reading(path), fsspec_files.opened(path) as handle:
        start = handle.read(8)
    if start[:4] == b"PAR1":
        return _Parquet(path)
    if start[:6] == b"ARROW1":
        return _Ipc(path)
    raise ValueError(
        f"{_OWN}: {path!r} begins with {start!r}, so it is neither a Parquet file (PAR1) nor an Arrow file (ARROW1); "
        "streams of Arrow have no table of their batches: write them with pyarrow.ipc.new_file"
    )


class ArrowDataset(MappableDataset):
    """The rows of Parquet files, and of Arrow files (Feather, version 2).

    It needs pyarrow.

    Rows are described on the page "Data sources" by Arrow's types.

    Args:
        dataset_files (str | os.PathLike[str] | Sequence[str]): A file, a folder or a list of them;
            text may have wildcards and braces, such as `part-{000..012}.parquet`. All files must
            have the same columns of the same types.
        columns_list (list[str] | None): The columns to read; all by default. Others are not read
            from the disk. Default: None.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random. Default: None.
        sampler (Sampler | Iterable[int] | None): What chooses rows, instead of `num_samples`,
            `shuffle`, `num_shards` and `shard_id`. Default: None.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.
        null (object | dict[str, object]): What stands for nulls: a value for all columns, or a
            dictionary by column; without it a null is an error. Default: None.
        held_bytes (int): How many bytes of row groups stay in memory, about; 256 MiB by default.
            Default: 268435456.

    Raises:
        ValueError: For files that are missing, damaged or differ in their columns, for types that
            have no rows here, and for nulls without `null`.
        ImportError: Without pyarrow.

    Examples:
        >>> import mycel.dataset as ds
        >>> try:
        ...     ds.ArrowDataset("there_is_none.parquet")
        ... except (ValueError, ImportError) as error:
        ...     print(error)
        ArrowDataset: ...
    """

    # Whose rows these are, for messages.
    _owner = _OWN
    _uses_workers = True
    _reads_files = True

    def __init__(
        self,
        dataset_files: Any,
        columns_list: list[str] | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
        null: Any = None,
        held_bytes: int = _HELD,
    ) -> None:
        arrow(_OWN)
        check_count(_OWN, "held_bytes", held_bytes, 1)
        kept = isinstance(shuffle, Shuffle) and shuffle not in (Shuffle.GLOBAL, Shuffle.FALSE)
        adaptive = shuffle is Shuffle.ADAPTIVE or (shuffle is None and sampler is None)
        super().__init__(
            num_parallel_workers, sampler, num_samples, None if kept else shuffle, num_shards, shard_id, cache
        )
        self._shards = sharded_files.files_of(_OWN, dataset_files, _ENDINGS)
        sizes = self._open([_opened(path) for path in self._shards], columns_list, null, held_bytes)
        fits = sum(sizes) <= held_bytes
        kind = (Shuffle.GLOBAL if fits else Shuffle.PARTIAL) if adaptive else shuffle
        if kind in (Shuffle.PARTIAL, Shuffle.FILES, Shuffle.INFILE):
            if num_samples:
                raise ValueError(f"{_OWN}: num_samples cannot be given with {kind}; use take")
            # Half of what can be held, as the next rows are read while these are in use.
            mixed = self._total() * held_bytes // max(1, 2 * sum(sizes))
            counts = [sum(file.counts) for file in self._files]
            groups = [group.length for group in self._table]
            order = sharded_files.Together(Shuffle(kind), counts, groups, mixed)
            self.sampler = sharded_files.together(_OWN, order, num_shards, shard_id)

    def _open(self, files: Sequence[Any], columns: list[str] | None, null: Any, held_bytes: int) -> list[int]:
        """Take the groups of files, and return how many bytes each group has.

        `columns`, `null` and `held_bytes` are those of the constructor.
        """
        self._files = list(files)
        self.columns_list = self._chosen(columns)
        self._nulls = self._replacements(null)
        self._table: list[_Group] = []
        sizes: list[int] = []
        for place, file in enumerate(self._files):
            first = 0
            for number, (count, size) in enumerate(zip(file.counts, file.bytes_of(self.columns_list))):
                if count:
                    self._table.append(_Group(place, number, count, first))
                    sizes.append(size)
                first += count
        self._ends = np.cumsum(np.array([group.length for group in self._table], np.int64))
        self._groups: Held[list[Any]] = Held(self._read, held_bytes)
        # About how many bytes a row has.
        self.row_bytes = sum(sizes) / max(1, self._total())
        return sizes

    def _chosen(self, columns: list[str] | None) -> list[str]:
        """Return the columns to read, which all files have, with the same types."""
        schema = self._files[0].schema
        with _reading(self._files[0].path, owner=self._owner):
            wanted = names(columns if columns is not None else schema.names, f"{self._owner}: columns_list")
        for file in self._files:
            path = file.path
            # Names in a damaged file may be no UTF-8.
            with _reading(path, owner=self._owner):
                self._check(path, file.schema, wanted)
        return wanted

    def _check(self, path: str, schema: Any, wanted: list[str]) -> None:
        """Raise ValueError unless a file has the columns, with the types of the first file."""
        for name in wanted:
            if schema.names.count(name) != 1:
                how = "no column" if name not in schema.names else "several columns"
                raise ValueError(f"{self._owner}: {path!r} has {how} {name!r}; its columns are {schema.names}")
            kind, first = schema.field(name).type, self._files[0].schema.field(name).type
            if kind != first:
                raise ValueError(
                    f"{self._owner}: column {name!r} is {kind} in {path!r}, but {first} in {self._files[0].path!r}"
                )
            part = unsupported(kind)
            if part is not None:
                raise ValueError(
                    f"{self._owner}: column {name!r} has type {kind}, and {part} has no rows here; there are rows of "
                    f"{SUPPORTED}. Leave it out with columns_list"
                )

    def _replacements(self, null: Any) -> list[Any]:
        if not isinstance(null, dict):
            return [NOTHING if null is None else null] * len(self.columns_list)
        unknown = [name for name in null if name not in self.columns_list]
        if unknown:
            raise ValueError(f"{self._owner}: null names columns {unknown}; the columns are {self.columns_list}")
        return [null.get(name, NOTHING) for name in self.columns_list]

    def _columns(self) -> list[str]:
        return list(self.columns_list)

    def _total(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def _read(self, place: int) -> tuple[list[Any], int]:
        """Read a group: its columns, and how many bytes they take."""
        group = self._table[place]
        file = self._files[group.file]
        part = f"{file.unit} {group.number}"
        with _reading(file.path, part, self._owner):
            table = file.read(group.number, self.columns_list).unify_dictionaries()
            # Joining copies, even one chunk.
            columns = [c.chunk(0) if c.num_chunks == 1 else c.combine_chunks() for c in table.columns]
        if table.num_rows != group.length:
            raise ValueError(
                f"{self._owner}: {file.path!r}, {part} has {table.num_rows} rows, where {group.length} were promised: "
                "the file is damaged, or was changed meanwhile"
            )
        found: list[Any] = []
        for column in columns:
            numbers = dense(column)
            found.append(column if numbers is None else numbers)
        return found, int(table.get_total_buffer_size())

    def _inline(self, run: Run, skip: int) -> Iterator[Block]:
        return self._in_large_blocks(run, skip, self.row_bytes)

    def _gather(self, indices: Indices) -> Block:
        places = np.searchsorted(self._ends, indices, "right")
        if (places == places[0]).all():
            return self._rows(int(places[0]), indices)
        order = np.argsort(places, kind="stable")
        cuts = np.flatnonzero(np.diff(places[order])) + 1
        groups = [(int(places[part[0]]), indices[part]) for part in np.split(order, cuts)]
        found = self._of_many(groups, len(indices)) if len(groups) > _FEW else None
        if found is None:
            found = join([self._rows(place, part) for place, part in groups])
        return found.select(np.argsort(order))

    def _of_many(self, groups: list[tuple[int, Indices]], count: int) -> Block | None:
        """Return rows of many groups, some of each, with one conversion a column.

        Returns None where one by one has to be done: for a column that has nulls in some of the
        groups, and where a value cannot be had, of which the error then names the row.
        """
        pa = arrow(_OWN)
        held = [self._groups.part(place) for place, _ in groups]
        local = [part - (self._ends[place] - self._table[place].length) for place, part in groups]
        columns: list[Column] = []
        for number, null in enumerate(self._nulls):
            parts = [columns_of[number] for columns_of in held]
            if all(isinstance(part, np.ndarray) for part in parts):
                columns.append(np.concatenate([part.take(rows, axis=0) for part, rows in zip(parts, local)]))
                continue
            if any(isinstance(part, (np.ndarray, pa.ExtensionArray)) for part in parts):
                return None
            taken = []
            for part, numbers in zip(parts, local):
                few = part.slice(int(numbers[0]), 1) if len(numbers) == 1 else part.take(pa.array(numbers))
                taken.append(few.dictionary_decode() if pa.types.is_dictionary(few.type) else few)
            try:
                columns.append(_owned(rows(pa.concat_arrays(taken), null, ValueError)))
            except (ValueError, pa.ArrowException):
                return None
        return Block(columns, count)

    def _rows(self, place: int, indices: Indices) -> Block:
        """Return rows of one group."""
        group = self._table[place]
        local = indices - (self._ends[place] - group.length)
        columns: list[Column] = []
        for name, null, held in zip(self.columns_list, self._nulls, self._groups.part(place)):
            if isinstance(held, np.ndarray):
                columns.append(held.take(local, axis=0))
                continue
            path = self._files[group.file].path
            with _reading(path, f"column {name!r}", self._owner):
                taken = held.take(arrow(_OWN).array(local))
                columns.append(
                    _owned(
                        rows(
                            taken,
                            null,
                            partial(_failed, f"{self._owner}: {os.fspath(path)!r}", name, group.first + local, taken),
                        )
                    )
                )
        return Block(columns, len(indices))

    def _labels(self, column: str) -> Array:
        if column not in self.columns_list:
            raise ValueError(f"PKSampler: there is no column {column!r}; the columns are {self.columns_list}")
        null = self._nulls[self.columns_list.index(column)]
        options = {} if null is NOTHING else {"null": null}
        alone = ArrowDataset(self._shards, [column], shuffle=False, held_bytes=self._groups.most, **options)
        blocks = [alone._rows(place, np.arange(end - group.length, end)) for place, (group, end) in alone._listed()]
        parts = [np.asarray(block.columns[0]) for block in blocks]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def _listed(self) -> Iterator[tuple[int, tuple[_Group, int]]]:
        return enumerate(zip(self._table, self._ends.tolist()))


class _Batches:
    """A table in memory, by its batches."""

    unit = "batch"

    def __init__(self, table: Any, name: str) -> None:
        self.path, self.schema = name, table.schema
        # They are in memory, or mapped into it, whether they are held or not.
        self._table, self._batches = table, table.to_batches()
        self.counts = [batch.num_rows for batch in self._batches]

    def bytes_of(self, columns: Sequence[str]) -> list[int]:
        """Return how many bytes columns take beside the table: none."""
        return [0] * len(self.counts)

    def read(self, number: int, columns: list[str]) -> Any:
        """Return columns of a batch as a table, which shares its memory."""
        table = arrow(_OWN).Table.from_batches([self._batches[number]]).select(columns)
        # Whoever mapped it from a file may not have looked at its offsets.
        table.validate(full=True)
        return table


class TableRows(ArrowDataset):
    """The rows of a table of Arrow, for another source.

    * `owner`: the name of that source.
    * `table`, `name`: the table, and what messages call it.
    * `columns`, `null`: as `columns_list` and `null` of `ArrowDataset`.
    """

    _in_memory = True

    def __init__(self, owner: str, table: Any, name: str, columns: list[str], null: Any) -> None:
        MappableDataset.__init__(self, shuffle=False)
        self._owner = owner
        # Arrays of NumPy and Arrow that share the memory of batches take little of their own.
        self._open([_Batches(table, name)], columns, null, 1 << 62)
        self.row_bytes = table.nbytes / max(1, table.num_rows)

    def rows(self, indices: Indices) -> Block:
        """Return the rows of these numbers."""
        return self._gather(indices)


def _owned(column: Column) -> Column:
    """Return a column whose arrays belong to nobody else and may be written into."""
    if isinstance(column, np.ndarray):
        return np.array(column)
    return [row if row.flags.owndata and row.flags.writeable else row.copy() for row in column]


def _failed(whose: str, name: str, numbers: Array, taken: Any, message: str) -> ValueError:
    """Return the error of a column, with the row if the row itself is null.

    * `whose`, `name`: the source and its file, and the column.
    * `numbers`, `taken`: the numbers and values of the rows.
    """
    if taken.null_count:
        first = int(np.flatnonzero(taken.is_null().to_numpy(zero_copy_only=False))[0])
        where = f"row {int(numbers[first])}"
    else:
        where = f"row {int(numbers[0])}" if len(numbers) == 1 else f"one of rows {numbers.min()} to {numbers.max()}"
    return ValueError(f"{whose}, {where}, column {name!r}: {message}")
