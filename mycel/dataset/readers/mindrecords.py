"""`MindDataset`: the rows of record files as a source."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation.files import fsspec_files
from mycel.dataset.arguments import check_count
from mycel.dataset.basic_sources.mappable_source import MappableDataset
from mycel.dataset.execution.pass_context import Run
from mycel.dataset.readers.damaged_files import stored
from mycel.dataset.readers.sharded_files import Together
from mycel.dataset.rows.column_blocks import Array, Block, Column, Row, as_array
from mycel.dataset.samplers import (
    DistributedSampler,
    Indices,
    Labels,
    PKSampler,
    RandomSampler,
    SequentialSampler,
    Shuffle,
    SubsetRandomSampler,
    SubsetSampler,
    select_sampler,
)
from mycel.mindrecord.file_layout import Header
from mycel.mindrecord.row_reader import Records

_SAMPLERS = (SubsetRandomSampler, SubsetSampler, PKSampler, DistributedSampler, RandomSampler, SequentialSampler)


_PIECE, _MIXED = 1 << 22, 1 << 27


class _FileShuffle(Together):
    """An order of the rows of files, with the padding at the end."""

    def _draw(self, rows: int, run: Run, labels: Labels, depth: int) -> Indices:
        order = super()._draw(rows, run, labels, depth)
        return np.concatenate([order, np.arange(sum(self.files), rows, dtype=np.int64)])


class MindDataset(MappableDataset):
    """The rows of record files.

    Args:
        dataset_files (str | list[str]): One file, of which all shards are read, or a list of files.
        columns_list (list[str] | None): The fields to read as columns; by default all, in the order
            of their names. Numbers are scalars of their types, and bytes are one value of type S,
            shape (1,); there are text and arrays as well. Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random. Default: None.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        sampler (Sampler | Iterable[int] | None): What chooses rows, instead of `num_samples`,
            `shuffle`, `num_shards` and `shard_id`. Default: None.
        padded_sample (dict[str, Any] | None): A value for each of `columns_list`, for rows that
            follow those of the files. Default: None.
        num_padded (int | None): The number of such rows, for example to make shards equal. Default:
            None.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.

    Raises:
        ValueError: For arguments that do not fit.
        RuntimeError: For files that are not there.
        MRMOpenError: For damaged files.

    Examples:
        >>> import tempfile, os
        >>> import mycel.dataset as ds
        >>> from mycel.mindrecord import FileWriter
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     name = os.path.join(folder, "a.mindrecord")
        ...     writer = FileWriter(name)
        ...     writer.add_schema({"x": {"type": "int32"}, "name": {"type": "string"}})
        ...     writer.write_raw_data([{"x": n, "name": f"row {n}"} for n in range(3)])
        ...     writer.commit()
        ...     data = ds.MindDataset(name, ["x"], shuffle=False, padded_sample={"x": -1},
        ...     num_padded=1)
        ...     [int(x) for x, in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
        [0, 1, 2, -1]
    """

    _uses_workers = True
    _reads_files = True

    def __init__(
        self,
        dataset_files: str | list[str],
        columns_list: list[str] | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sampler: Any = None,
        padded_sample: dict[str, Any] | None = None,
        num_padded: int | None = None,
        num_samples: int | None = None,
        cache: Any = None,
    ) -> None:
        by_file = shuffle in (Shuffle.FILES, Shuffle.INFILE, Shuffle.PARTIAL)
        mixed = by_file or shuffle is Shuffle.ADAPTIVE
        super().__init__(
            num_parallel_workers,
            sampler,
            num_samples,
            # Files are mapped into memory, so any order will do.
            (not by_file if mixed else shuffle),
            num_shards,
            shard_id,
            cache,
        )
        if sampler is not None and not isinstance(sampler, _SAMPLERS):
            kinds = ", ".join(kind.__name__ for kind in _SAMPLERS)
            raise ValueError(f"MindDataset: sampler must be one of {kinds}, not {sampler!r}")
        if by_file and num_samples:
            raise ValueError(f"MindDataset: num_samples cannot be given with {shuffle}")
        _check_padding(columns_list, padded_sample, num_padded)
        self._records = Records("MindDataset", _of_this_machine(dataset_files), columns_list)
        names = columns_list or sorted(self._records.schema)
        self.columns_list = list(names)
        self.num_padded = num_padded or 0
        self._padding: Row = (
            tuple(self._padded(name, (padded_sample or {})[name]) for name in names) if num_padded else ()
        )
        if by_file:
            sizes = self._records.sizes()
            # Rows of a piece lie near to each other in the file.
            each = max(1, _PIECE // max(1, self._records.nbytes() // max(1, sum(sizes))))
            groups = [min(each, size - start) for size in sizes for start in range(0, size, each)]
            shuffled = _FileShuffle(Shuffle(shuffle), sizes, groups, _MIXED // _PIECE * each)
            if num_shards is not None and shard_id is not None:
                self.sampler = select_sampler("MindDataset", None, None, False, num_shards, shard_id)
                self.sampler.add_child(shuffled)
            else:
                self.sampler = shuffled

    def _padded(self, name: str, value: Any) -> Array:
        try:
            return self._value(name, value)
        except (TypeError, ValueError, OverflowError) as error:
            kind = self._records.schema[name]["type"]
            raise ValueError(f"MindDataset: padded_sample[{name!r}] is no {kind}: {error}") from error

    def _value(self, name: str, value: Any) -> Array:
        field = self._records.schema[name]
        if "shape" in field:
            return as_array(value)
        if field["type"] == "bytes":
            content = value.tobytes() if isinstance(value, np.ndarray) else value
            array: Array = np.frombuffer(content or b"\0", f"S{max(1, len(content))}").copy()
            return array
        if field["type"] == "string":
            return np.array(value)
        return np.array(value, field["type"])

    def _columns(self) -> list[str]:
        return list(self.columns_list)

    def _total(self) -> int:
        return len(self._records) + self.num_padded

    def _read(self, number: int) -> Row:
        if number >= len(self._records):
            return tuple(array.copy() for array in self._padding)
        row = self._records.row(number)
        return tuple(self._value(name, row[name]) for name in self.columns_list)

    def _gather(self, indices: Indices) -> Block:
        numbers = indices.tolist()
        if max(numbers) >= len(self._records):
            return Block.from_rows([self._read(number) for number in numbers])
        found = self._records.columns(numbers)
        return Block([self._column(name, found[name]) for name in self.columns_list], len(numbers))

    def _column(self, name: str, values: Any) -> Column:
        field = self._records.schema[name]
        if isinstance(values, np.ndarray):
            return values
        if "shape" in field or field["type"] in ("bytes", "string"):
            return [self._value(name, value) for value in values]
        return np.array(values, field["type"])

    def _labels(self, column: str) -> Array:
        if column not in self._records.schema or self._records.schema[column]["type"] == "bytes":
            raise ValueError(f"PKSampler: there is no column of labels {column!r}; the columns are {self.columns_list}")
        values = [self._records.row(number)[column] for number in range(len(self._records))]
        return np.array(values + [values[0]] * self.num_padded if values else [])

    def __getitem__(self, index: int) -> list[Array]:
        """Return a row by its number in the files, whatever the sampler."""
        check_count("MindDataset", "index", index, 0)
        if index >= self._total():
            raise IndexError(f"MindDataset: there is no row {index}; there are {self._total()}")
        return list(self._read(index))


def _of_this_machine(given: Any) -> Any:
    """Return the files, or copies of them where fsspec reaches them: their indexes are databases,
    which are read by place on this machine only.
    """

    def copied(path: str) -> str:
        made = fsspec_files.copied(path, path)
        fsspec_files.copied(_with_ending(path, ".db"), path)
        return made

    if isinstance(given, (list, tuple)):
        with stored("MindDataset"):
            return [copied(path) if fsspec_files.is_remote(path) else _local(path) for path in given]
    if not fsspec_files.is_remote(given):
        return _local(given)
    with stored("MindDataset"):
        made = copied(given)
        folder, rest = given.rpartition("/")[0], ""
        if "::" in given:
            first, _, rest = given.partition("::")
            folder, rest = first.rpartition("/")[0], f"::{rest}"
        for name in Header.read(made).addresses:
            other = f"{folder}/{os.path.basename(name)}{rest}"
            for ending in ("", ".db"):
                # All parts of a file lie in one folder.
                fsspec_files.copied(_with_ending(other, ending), given)
        return made


def _local(path: Any) -> Any:
    return fsspec_files.local_name(path) if isinstance(path, str) else path


def _with_ending(path: str, ending: str) -> str:
    first, chained, rest = path.partition("::")
    return f"{first}{ending}{chained}{rest}"


def _check_padding(columns: Any, sample: Any, count: Any) -> None:
    """Raise an error where the arguments for padding do not fit together."""
    if sample is not None:
        arguments.instance("MindDataset", "padded_sample", sample, dict)
        if not columns or count is None:
            raise RuntimeError(
                f"MindDataset: padded_sample needs {'columns_list' if not columns else 'num_padded'} too"
            )
        if set(sample) != set(columns):
            raise ValueError(f"MindDataset: padded_sample has {sorted(sample)}, but columns_list is {columns}")
    if count is not None:
        if sample is None:
            raise RuntimeError("MindDataset: num_padded is given, but padded_sample is not")
        check_count("MindDataset", "num_padded", count, 0)
