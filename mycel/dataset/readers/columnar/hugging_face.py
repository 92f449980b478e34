"""`HuggingFaceDataset`: datasets of the library `datasets`, and objects like them, as a source.

The library is not imported. What is asked of an object is what it has:

* A table of Arrow inside (`data.table`, or it is one): rows are read from it by number, as from
  files of Arrow, without a Python object for each value.
* `__getitem__` and `__len__`: rows are asked for by number, several at once where `__getitems__`
  is there. So are those with a transform or a format of tensors, or features that only the
  library decodes.
* `__iter__`: a stream, which is read in its order, from its first row wherever it goes on.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from mycel._src.foundation.logged_once import no_effect
from mycel.dataset.arguments import names
from mycel.dataset.basic_sources.mappable_source import MappableDataset
from mycel.dataset.execution.pass_context import Run
from mycel.dataset.nodes.node import Node
from mycel.dataset.pipeline_errors import operation_failed
from mycel.dataset.readers.columnar.arrow import TableRows
from mycel.dataset.readers.columnar.arrow_columns import NOTHING, unsupported
from mycel.dataset.rows.column_blocks import Array, Block, Row, as_array, is_picture
from mycel.dataset.samplers import Indices, Shuffle
from mycel.dataset.vision.codecs.image_io import decode_image
from mycel.dataset.vision.enums import ImageReadMode

_OWN = "HuggingFaceDataset"
# Rows of a stream that are handed on at once.
_MOST = 32
# Formats in which rows are parts of a table, of whatever library.
_TABLES = (None, "arrow", "pandas", "polars")


def _table_of(dataset: Any) -> Any:
    """Return the table of Arrow in a dataset whose rows are those of the table, or None."""
    if hasattr(dataset, "to_batches") and hasattr(dataset, "column_names"):
        return dataset
    form = getattr(dataset, "format", None)
    table = getattr(getattr(dataset, "data", None), "table", None)
    plain = isinstance(form, dict) and form.get("type") in _TABLES and not form.get("format_kwargs")
    return table if plain and hasattr(table, "to_batches") and hasattr(dataset, "_indices") else None


def _is_transformed(dataset: Any) -> bool:
    """Return whether rows have gone through a function, which gives whatever it likes."""
    form = getattr(dataset, "format", None)
    return isinstance(form, dict) and form.get("type") == "custom"


def _kind(feature: Any) -> str:
    """Return what has to be decoded of a feature: nothing, an "Image", or another kind of it."""
    if isinstance(feature, dict):
        inner = {_kind(part) for part in feature.values()} - {""}
        return "" if not inner else "within"
    inner_feature = getattr(feature, "feature", None)
    if isinstance(feature, (list, tuple)) or inner_feature is not None:
        parts = feature if isinstance(feature, (list, tuple)) else [inner_feature]
        return "" if not any(map(_kind, parts)) else "within"
    decodes = getattr(feature, "decode", False) is True and hasattr(feature, "decode_example")
    return type(feature).__name__ if decodes else ""


class HuggingFaceDataset(MappableDataset):
    """The rows of a dataset of Hugging Face's library `datasets`, or of an object like one.

    Types are those of Arrow, as on the page "Data sources"; images are decoded to uint8 [H, W, C].
    Datasets with a transform or a format of tensors, or with sound, are asked for rows, whose
    values are converted.

    Args:
        dataset (object): A `Dataset` or `IterableDataset` of that library, a table of Arrow, an
            object with `__getitem__` and `__len__`, or one with `__iter__`. Rows are dictionaries
            by column, or tuples.
        columns_list (list[str] | None): The columns; by default all, in their order. Objects whose
            rows are tuples need it. Default: None.
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
        null (object | dict[str, object]): What stands for nulls, as in `ArrowDataset`. Default:
            None.

    Raises:
        TypeError: For other objects.
        ValueError: For columns that there are not, and for nulls without `null`.

    Examples:
        >>> import mycel.dataset as ds
        >>> class Squares:
        ...     column_names = ["n", "square"]
        ...     def __len__(self):
        ...         return 3
        ...     def __getitem__(self, number):
        ...         return {"n": number, "square": number * number}
        >>> data = ds.HuggingFaceDataset(Squares(), shuffle=False)
        >>> [int(square) for _, square in data.create_tuple_iterator(num_epochs=1,
        ...     output_numpy=True)]
        [0, 1, 4]
    """

    _uses_workers = True
    _in_memory = True

    def __init__(
        self,
        dataset: Any,
        columns_list: list[str] | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
        null: Any = None,
    ) -> None:
        if isinstance(dataset, dict):
            raise TypeError(f"{_OWN}: these are several datasets, {sorted(map(str, dataset))}; give one of them")
        self.dataset = dataset
        self.source = dataset
        table = _table_of(dataset)
        self._by_number = table is not None or (hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__"))
        if not self._by_number and not hasattr(dataset, "__iter__"):
            raise TypeError(
                f"{_OWN}: dataset must be one with __getitem__ and __len__, or with __iter__, not {dataset!r:.80} "
                f"of type {type(dataset).__name__}"
            )
        if not self._by_number:
            for name, value in (("sampler", sampler), ("cache", cache)):
                if value is not None:
                    raise ValueError(
                        f"{_OWN}: {name} needs a dataset with __getitem__ and __len__, and this is a stream"
                    )
            if shuffle not in (None, False, Shuffle.FALSE):
                raise ValueError(f"{_OWN}: a stream keeps its order; call its own shuffle(seed, buffer_size) before")
            shuffle = False
        super().__init__(num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id, cache)
        self.columns_list = self._chosen(columns_list)
        self._null = null
        self._stream_shards = (1, 0) if num_shards is None or shard_id is None else (num_shards, shard_id)
        self._table: TableRows | None = None
        self._indices: Indices | None = None
        self._images: list[str] = []
        if table is not None and self._is_plain(table):
            self._read_from(table)
        self._reads_files = self._table is not None
        if self._table is None and (num_parallel_workers or 1) > 1:
            no_effect(_OWN, "num_parallel_workers", num_parallel_workers, "one thread reads an object without a table")

    def _chosen(self, columns: list[str] | None) -> list[str]:
        there: Any = getattr(self.dataset, "column_names", None)
        form = getattr(self.dataset, "format", None)
        if _is_transformed(self.dataset) and len(self.dataset):
            there = None
        elif isinstance(form, dict) and form.get("columns") is not None:
            # A format has some of the columns.
            there = form["columns"]
        if there is None and columns is None:
            first = self.dataset[0] if self._by_number and len(self.dataset) else next(iter(self.dataset), None)
            if not isinstance(first, dict):
                raise ValueError(f"{_OWN}: rows are no dictionaries, so columns_list has to name their values")
            there = list(first)
        wanted = names(list(there or ()) if columns is None else columns, f"{_OWN}: columns_list")
        missing = [name for name in wanted if there is not None and name not in there]
        if missing:
            raise ValueError(
                f"{_OWN}: there is no column {', '.join(map(repr, missing))}; the columns are {list(there)}"
            )
        return wanted

    def _feature(self, name: str) -> str:
        features = getattr(self.dataset, "features", None)
        return _kind(features.get(name)) if isinstance(features, dict) else ""

    def _is_plain(self, table: Any) -> bool:
        """Return whether rows are those of the table, but for images."""
        kinds = {self._feature(name) for name in self.columns_list}
        parts = [unsupported(table.schema.field(name).type) for name in self.columns_list]
        return kinds <= {"", "Image"} and all(part is None for part in parts)

    def _read_from(self, table: Any) -> None:
        self._images = [name for name in self.columns_list if self._feature(name) == "Image"]
        plain = [name for name in self.columns_list if name not in self._images]
        name = f"the table of a {type(self.dataset).__name__}"
        rest = table.select(plain) if plain else table
        self._table = TableRows(_OWN, rest, name, plain, self._null) if plain else None
        self._pictures = [table.column(name) for name in self._images]
        if self._table is None:
            # A dataset of images alone is read by rows of the others that it has: none.
            self._images, self._pictures = [], []
        chosen = getattr(self.dataset, "_indices", None)
        if chosen is not None:
            self._indices = np.asarray(chosen.column(0).to_numpy()).astype(np.int64)

    def reads_by_number(self) -> bool:
        return self._by_number

    def is_shuffled(self) -> bool:
        return self._by_number and super().is_shuffled()

    def _data(self) -> Any:
        """Return what tells rows in a cache from others."""
        return getattr(self.dataset, "_fingerprint", self.dataset), self.columns_list, self._null

    def _columns(self) -> list[str]:
        return list(self.columns_list)

    def _total(self) -> int:
        if self._table is not None:
            return self._table._total() if self._indices is None else len(self._indices)
        return len(self.dataset)

    def _count(self) -> int:
        return super()._count() if self._by_number else Node._count(self)

    def _count_is_fixed(self) -> bool:
        return self._by_number

    # Rows by number.

    def _inline(self, run: Run, skip: int) -> Iterator[Block]:
        if self._table is None or self._images:
            return super()._inline(run, skip)
        return self._in_large_blocks(run, skip, self._table.row_bytes)

    def _gather(self, indices: Indices) -> Block:
        if self._table is None:
            return Block.from_rows(self._rows(indices.tolist()))
        inner = indices if self._indices is None else self._indices[indices]
        found = self._table.rows(inner)
        columns = dict(zip(self._table.columns_list, found.columns))
        for name, column in zip(self._images, self._pictures):
            columns[name] = [self._picture(name, number, column[number].as_py()) for number in inner.tolist()]
        return Block([columns[name] for name in self.columns_list], len(indices))

    def _picture(self, name: str, number: int, value: Any) -> Array:
        where = f"{_OWN}: row {number}, column {name!r}"
        try:
            if value is None:
                raise ValueError("it is null")
            content = value["bytes"]
            if content is None:
                with open(value["path"], "rb") as handle:
                    content = handle.read()
            return decode_image(content, _OWN, ImageReadMode.UNCHANGED)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{where}: it is no image: {error}") from error

    def _rows(self, numbers: list[int]) -> list[Row]:
        several = getattr(self.dataset, "__getitems__", None)
        try:
            found = [self.dataset[number] for number in numbers] if several is None else list(several(numbers))
        except Exception as error:
            raise operation_failed(_OWN, self.dataset, self.columns_list, f"rows {numbers[:4]}", error) from error
        return [self._row(value, number) for number, value in zip(numbers, found)]

    def _row(self, value: Any, number: int) -> Row:
        if isinstance(value, dict):
            missing = [name for name in self.columns_list if name not in value]
            if missing:
                raise ValueError(f"{_OWN}: row {number} has no {', '.join(map(repr, missing))}; it has {list(value)}")
            values = [value[name] for name in self.columns_list]
        else:
            values = list(value) if isinstance(value, (tuple, list)) else [value]
            if len(values) != len(self.columns_list):
                raise ValueError(f"{_OWN}: row {number} has {len(values)} values for {len(self.columns_list)} columns")
        return tuple(self._value(name, part, number) for name, part in zip(self.columns_list, values))

    def _value(self, name: str, value: Any, number: int) -> Array:
        where = f"{_OWN}: row {number}, column {name!r}"
        if value is None:
            filled = self._null.get(name, NOTHING) if isinstance(self._null, dict) else self._null
            if filled is None or filled is NOTHING:
                raise ValueError(f"{where}: it is null, and null= gives no value for that")
            value = filled
        features = None if _is_transformed(self.dataset) else getattr(self.dataset, "features", None)
        feature = features.get(name) if isinstance(features, dict) else None
        if is_picture(value):
            pixels = np.array(value)
            return pixels if pixels.ndim == 3 else pixels[..., None]
        try:
            found = np.frombuffer(bytearray(value), np.uint8) if isinstance(value, bytes) else as_array(value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{where}: {error}") from error
        # Values of Python have lost their types.
        kind = getattr(feature, "dtype", None)
        if isinstance(value, (bool, int, float)) and isinstance(kind, str) and kind in _NUMBERS:
            converted = found.astype(kind)
            if converted.dtype.kind in "iu" and converted != found:
                raise ValueError(f"{where}: {value!r} is no {kind}")
            return converted
        return found.copy() if found is value else found

    # Streams.

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        return super()._blocks(run, skip) if self._by_number else self._streamed(run, skip)

    def _streamed(self, run: Run, skip: int) -> Iterator[Block]:
        number, (shards, shard) = skip, self._stream_shards
        most = self.sampler.num_samples
        stream = iter(self._stream(run, skip * shards + shard))
        try:
            while most is None or number < most:
                rows: list[Row] = []
                size = min(run.block, _MOST) if most is None else min(run.block, _MOST, most - number)
                for value in islice(stream, 0, size * shards, shards):
                    rows.append(self._row(value, number + len(rows)))
                # What `islice` leaves behind belongs to other shards.
                if not rows:
                    return
                yield Block.from_rows(rows)
                if len(rows) < size:
                    return
                number += size
        except (ValueError, RuntimeError):
            raise
        except Exception as error:
            raise operation_failed(_OWN, self.dataset, self.columns_list, number, error) from error

    def _stream(self, run: Run, skip: int) -> Any:
        """Return the stream of an epoch without its first rows."""
        stream = self.dataset
        if hasattr(stream, "set_epoch"):
            stream = copy.copy(stream)
            stream.set_epoch(run.epoch)
        if hasattr(stream, "__next__"):
            raise ValueError(f"{_OWN}: an iterator can be read once; give what makes it, an object with __iter__")
        # Not its own `skip`: one that shuffles in a buffer leaves out other rows.
        return islice(stream, skip, None)

    def _labels(self, column: str) -> Array:
        if column not in self.columns_list:
            raise ValueError(f"PKSampler: there is no column {column!r}; the columns are {self.columns_list}")
        alone = HuggingFaceDataset(self.dataset, [column], shuffle=False, null=self._null)
        total = alone._total()
        return (
            np.array([np.asarray(row[0]) for row in alone._gather(np.arange(total)).rows()]) if total else np.zeros(0)
        )


_NUMBERS = {"bool", "float16", "float32", "float64"} | {f"{s}int{n}" for s in ("", "u") for n in (8, 16, 32, 64)}
