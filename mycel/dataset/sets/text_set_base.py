"""The base classes of text datasets.

A dataset defines which file each usage has and how a file becomes rows: lines, values separated by
commas, words with tags in columns, or JSON. Files are read when a row is first requested. Rows are
kept as Python text and become arrays when they are requested. Files come in the order of their
names and rows in the order of the files; see `FileOrder` for shuffling and shards.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation.system import locks
from mycel.dataset.basic_sources.mappable_source import MappableDataset
from mycel.dataset.basic_sources.modality_bases import TextBaseDataset
from mycel.dataset.readers.file_order import FileOrder, check_shards
from mycel.dataset.rows.column_blocks import Array, Block
from mycel.dataset.samplers import Indices, Shuffle
from mycel.dataset.sets.folder_checks import check_folder, read_lines

Cells = tuple[Any, ...]


# The largest value of a 32-bit signed integer, which every platform's csv module takes.
LONGEST_FIELD = 2**31 - 1


def cell_array(value: Any) -> Array:
    """Return an array of a text, of a list of texts or integers, or of an integer, as uint32."""
    if isinstance(value, str) or (isinstance(value, list) and value and all(isinstance(v, str) for v in value)):
        return np.array(value, np.str_)
    return np.array(value, np.int64).astype(np.uint32)


def checked_cell(value: Any) -> Any:
    """Return a value that `cell_array` accepts; raise ValueError otherwise."""
    array = cell_array(value)
    if array.dtype.kind not in "Uu" or array.ndim > 1:
        raise ValueError(f"{value!r:.80} is neither text nor an integer nor a list of these")
    return value


def read_csv(operation: str, path: str, width: int) -> list[Cells]:
    """Return the rows of a CSV file without a heading.

    Raises ValueError for rows that do not have `width` values.
    """
    limit = csv.field_size_limit(LONGEST_FIELD)
    try:
        with open(path, encoding="utf-8", newline="") as handle:
            rows = [tuple(row) for row in csv.reader(handle, strict=True) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{operation}: {path!r} cannot be read: {error}") from error
    finally:
        csv.field_size_limit(limit)
    for number, row in enumerate(rows):
        if len(row) != width:
            raise ValueError(f"{operation}: row {number} of {path!r} has {len(row)} values instead of {width}")
    return rows


def read_tagged(operation: str, path: str, separator: str, width: int) -> list[Cells]:
    """Return the sentences of the file `path`, which has a word and its tags in each line.

    A line has `width` values with `separator` between them, and an empty line follows each
    sentence. `operation` is named in messages.
    """
    rows: list[Cells] = []
    words: list[list[str]] = []
    for number, line in enumerate([*read_lines(operation, path), ""]):
        if line.strip():
            words.append(line.split(separator))
            if len(words[-1]) != width:
                raise ValueError(f"{operation}: line {number} of {path!r} has not {width} values: {line!r}")
        elif words:
            rows.append(tuple(list(column) for column in zip(*words)))
            words = []
    return rows


class TextRows(MappableDataset, TextBaseDataset):
    """The base class of text datasets: rows of Python values, under the names of `_names`."""

    _names: Sequence[str] = ()
    _parts: Callable[[], Iterable[list[Cells]]]
    _held: list[list[Cells]]
    _sizes: list[int]

    def _columns(self) -> list[str]:
        return list(self._names)

    def _total(self) -> int:
        return len(self._cells())

    def _gather(self, indices: Indices) -> Block:
        cells = self._cells()
        return Block.from_rows([tuple(cell_array(value) for value in cells[int(i)]) for i in indices])

    def _cells(self) -> list[Cells]:
        """Return all rows, which are read when they are first asked for and then held."""
        with _reading:
            if not self._held:
                groups = list(self._parts())
                self._sizes[:] = [len(group) for group in groups]
                self._held.append([row for group in groups for row in group])
        if not self._held[0]:
            raise ValueError(f"{type(self).__name__}: the files hold no rows")
        return self._held[0]

    def _take(
        self,
        parts: Callable[[], Iterable[list[Cells]]],
        shuffle: Any,
        num_samples: int | None,
        num_shards: int | None,
        shard_id: int | None,
    ) -> None:
        """Take the rows of the files that `parts` reads.

        `shuffle`, `num_samples`, `num_shards` and `shard_id` are those of `MappableDataset`.
        """
        kind = type(self).__name__
        self._parts, self._held, self._sizes = parts, [], []
        shards = check_shards(kind, num_shards, shard_id)
        self.sampler = FileOrder(kind, shuffle, self._sizes, num_samples, shards)


_reading = locks.lock()


class TextSet(TextRows):
    """The base class of text datasets with a file for each `usage`.

    `dataset_dir` is the folder of the files. `num_samples`, `num_parallel_workers`, `shuffle`,
    `num_shards`, `shard_id` and `cache` are those of `MappableDataset`.
    """

    _files: ClassVar[dict[str, str]] = {"train": "train.csv", "test": "test.csv"}
    _default = "all"

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = Shuffle.GLOBAL,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        super().__init__(num_parallel_workers, cache=cache)
        self.dataset_dir = check_folder(type(self).__name__, dataset_dir)
        self._read(usage, shuffle, num_samples, num_shards, shard_id)

    def _read(
        self, usage: str | None, shuffle: Any, num_samples: int | None, num_shards: int | None, shard_id: int | None
    ) -> None:
        kind = type(self).__name__
        known = (*self._files, *(["all"] if self._default == "all" else []))
        if usage is not None:
            arguments.one_of(kind, "usage", usage, known)
        self.usage = usage or self._default
        names = sorted(self._files.values()) if self.usage == "all" else [self._files[self.usage]]
        paths = [os.path.join(self.dataset_dir, name) for name in names]
        self._take(lambda: [self._rows(path) for path in paths], shuffle, num_samples, num_shards, shard_id)

    def _rows(self, path: str) -> list[Cells]:
        return read_csv(type(self).__name__, path, len(self._names))


class TextSetWorkersLast(TextSet):
    """`TextSet` with `num_parallel_workers` near the end of the parameters.

    These are `dataset_dir`, `usage`, `num_samples`, `shuffle`, `num_shards`, `shard_id`,
    `num_parallel_workers` and `cache`.
    """

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        usage: str | None = None,
        num_samples: int | None = None,
        shuffle: bool | Shuffle | None = Shuffle.GLOBAL,
        num_shards: int | None = None,
        shard_id: int | None = None,
        num_parallel_workers: int | None = None,
        cache: Any = None,
    ) -> None:
        super().__init__(dataset_dir, usage, num_samples, num_parallel_workers, shuffle, num_shards, shard_id, cache)
