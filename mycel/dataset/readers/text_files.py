"""Sources of rows from text and CSV files, and of rows that pad others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel.dataset.basic_sources.generator_source import GeneratorDataset
from mycel.dataset.basic_sources.mappable_source import ArrayDataset, HeldDataset, MappableDataset
from mycel.dataset.basic_sources.modality_bases import TextBaseDataset
from mycel.dataset.execution.pass_context import Run
from mycel.dataset.execution.threaded_stages import Plan
from mycel.dataset.readers.csv_rows import Form, Rows
from mycel.dataset.readers.file_order import FileOrder, check_files, find_files
from mycel.dataset.readers.text_lines import Lines, read_text
from mycel.dataset.rows.column_blocks import Array, Block, Column, as_array
from mycel.dataset.samplers import Indices, Shuffle


class _InPieces(ArrayDataset):
    """A source of files whose rows are in memory, or read in pieces of files where there are
    `_lines`.
    """

    _lines: Lines | None = None

    def _read_lines(self, lines: Lines) -> Lines:
        """Read rows in pieces from now on."""
        self._reads_files = True
        self._lines = lines
        return lines

    def _rows_in_files(self, numbers: list[int]) -> list[Column]:
        """Return the columns of some rows, by their numbers."""
        raise NotImplementedError(f"{type(self).__name__} must define _rows_in_files")

    def _total(self) -> int:
        return super()._total() if self._lines is None else sum(self._lines.sizes)

    def _labels(self, column: str) -> Array:
        return super()._labels(column) if self._lines is None else MappableDataset._labels(self, column)

    def _plan(self, run: Run, skip: int) -> Plan:
        return super()._plan(run, skip) if self._lines is None else MappableDataset._plan(self, run, skip)

    def _inline(self, run: Run, skip: int) -> Iterator[Block]:
        return super()._inline(run, skip) if self._lines is None else MappableDataset._inline(self, run, skip)

    def _gather(self, indices: Indices) -> Block:
        if self._lines is None:
            return super()._gather(indices)
        return Block(self._rows_in_files(indices.tolist()), len(indices))


class TextFileDataset(_InPieces, HeldDataset, TextBaseDataset):
    """The non-empty lines of text files: column `text`.

    Lines end in a line feed and are UTF-8.

    Args:
        dataset_files (str | Sequence[str]): Names and patterns of files.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        shuffle (bool | Shuffle | None): Whether rows are shuffled, as they are unless it is False.
            Shuffle.FILES shuffles the files, Shuffle.INFILE the lines of each. Shuffle.PARTIAL
            shuffles pieces of files, and then the lines of as many of them as are in memory
            together: files may be larger than memory, and are read once in an epoch. Default:
            Shuffle.GLOBAL.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.

    Raises:
        ValueError: If no file matches, or one is not UTF-8.

    Examples:
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
        self.sampler: FileOrder = FileOrder("TextFileDataset", shuffle, self._sizes, num_samples, shards, True)
        if shuffle is Shuffle.PARTIAL:
            lines = self._read_lines(Lines("TextFileDataset", self.dataset_files))
            self._sizes[:] = lines.sizes
            self.sampler.pieces = lines.pieces

    def _rows_in_files(self, numbers: list[int]) -> list[Column]:
        assert self._lines is not None
        return [[np.array(self._lines.line(row)) for row in numbers]]

    def _load(self) -> dict[str, Column]:
        lines: list[Array] = []
        sizes = []
        for path in self.dataset_files:
            try:
                with read_text("TextFileDataset", path, "\n") as handle:
                    found = [line[:-1] if line.endswith("\n") else line for line in handle]
            except UnicodeDecodeError as error:
                raise ValueError(f"TextFileDataset: {path!r} is not UTF-8: {error}") from error
            rows = [np.array(line) for line in found if line]
            lines += rows
            sizes.append(len(rows))
        self._sizes[:] = sizes
        return {"text": lines}


class CSVDataset(_InPieces):
    """The lines of CSV files (RFC 4180), with a column for each field.

    A byte order mark is part of the first value, as in MindSpore.

    Args:
        dataset_files (str | Sequence[str]): Names and patterns of files.
        field_delim (str): The character between fields. Default: ",".
        column_defaults (list[int | float | str] | None): Values whose types the columns have: int32
            for an integer, float32 for a float, text for text; None for text in all columns.
            Default: None.
        column_names (Sequence[str] | None): The names of the columns; None where they are in the
            first line of each file. Default: None.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        shuffle (bool | Shuffle | None): How rows are shuffled, as in `TextFileDataset`. With
            Shuffle.PARTIAL files are read once when the dataset is made, to find and check their
            rows, and only then may they be larger than memory. Default: Shuffle.GLOBAL.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.

    Raises:
        ValueError: For lines with another number of values, and for values of another type, with
            the file and the row, as for empty ones where an integer or a float is wanted.

    Examples:
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
                f"CSVDataset: field_delim must be one letter, no quote nor end of a line, not {field_delim!r}"
            )
        arguments.optional("CSVDataset", "column_defaults", column_defaults, list)
        for name in () if column_names is None else column_names:
            arguments.text("CSVDataset", "each of column_names", name)
        self.dataset_files = find_files("CSVDataset", dataset_files)
        self._defaults = column_defaults
        self._form = Form("CSVDataset", field_delim, column_names)
        self._rows: Rows | None = None
        self._arrays: dict[str, Column] = {}
        if shuffle is Shuffle.PARTIAL:
            self._rows = Rows(self.dataset_files, self._form, self._checked, self._made)
            sizes = self._read_lines(self._rows.lines).sizes
        else:
            rows = [[row for row, _, _ in self._form.rows(path)] for path in self.dataset_files]
            sizes = [len(found) for found in rows]
            parts = [self._checked(path, 0, found) for path, found in zip(self.dataset_files, rows)]
            self._arrays = dict(zip(self._columns(), map(_joined, zip(*parts))))
        self.sampler = FileOrder("CSVDataset", shuffle, sizes, num_samples, shards, True)
        self.sampler.pieces = None if self._lines is None else self._lines.pieces

    def _columns(self) -> list[str]:
        names = self._form.names or []
        if len(set(names)) != len(names):
            raise ValueError(f"CSVDataset: a column is named twice in {names}")
        if self._defaults is not None and len(self._defaults) != len(names):
            raise ValueError(f"CSVDataset: {len(names)} columns but {len(self._defaults)} values in column_defaults")
        return list(names)

    def _checked(self, path: str, first: int, rows: list[list[str]]) -> list[Column]:
        """Return the columns of rows of a file, of which the first has this number.

        Raises ValueError for others, with the file and the row.
        """
        names = self._columns()
        for number, row in enumerate(rows, first):
            if len(row) != len(names):
                raise ValueError(
                    f"CSVDataset: {path!r}, row {number} has {len(row)} values, but there are {len(names)} columns: "
                    f"{row!r:.300}"
                )
        return self._made(rows, lambda place: f"{path!r}, row {first + place}")

    def _made(self, rows: list[list[str]], where: Callable[[int], str]) -> list[Column]:
        """Return the columns of rows; `where` says where one of them lies, by its place."""
        names = self._columns()
        kinds = [""] * len(names) if self._defaults is None else list(self._defaults)
        return [
            _converted(name, [row[position] for row in rows], kind, where)
            for position, (name, kind) in enumerate(zip(names, kinds))
        ]

    def _rows_in_files(self, numbers: list[int]) -> list[Column]:
        assert self._rows is not None
        return self._rows.columns(numbers)

    def _data(self) -> dict[str, Column]:
        return self._arrays


def _joined(parts: Sequence[Column]) -> Column:
    """Return one column of those of several files."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], list):
        return [value for part in parts for value in part]
    return np.concatenate(parts)


def _converted(name: str, texts: Sequence[str], kind: Any, where: Callable[[int], str]) -> Column:
    if isinstance(kind, str):
        return [np.array(text) for text in texts]
    if isinstance(kind, bool) or not isinstance(kind, (int, float)):
        raise TypeError(
            f"CSVDataset: column_defaults has {kind!r} for column {name!r}; use an integer, a float or text"
        )
    read, dtype = (int, np.dtype(np.int32)) if isinstance(kind, int) else (float, np.dtype(np.float32))
    try:
        return np.array([read(text) for text in texts], dtype)
    except (ValueError, OverflowError):
        for place, text in enumerate(texts):
            try:
                np.array(read(text), dtype)
            except (ValueError, OverflowError) as error:
                raise ValueError(f"CSVDataset: {where(place)}, column {name!r}: {text!r:.80} is no {dtype}") from error
        raise


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
            raise ValueError(
                f"PaddedDataset: padded_samples must be dictionaries, at least one, not {padded_samples!r}"
            )
        for sample in arguments.sequence("PaddedDataset", "padded_samples", padded_samples):
            arguments.instance("PaddedDataset", "each of padded_samples", sample, dict)
        names = list(padded_samples[0])
        for sample in padded_samples:
            if not sample or set(sample) != set(names):
                raise ValueError(
                    f"PaddedDataset: each sample must be a dictionary with the columns {names}, not {sample!r}"
                )
        self.padded_samples = list(padded_samples)
        rows = [tuple(as_array(sample[name]) for name in names) for sample in padded_samples]
        super().__init__(rows, names, shuffle=False)
