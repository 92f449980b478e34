"""`GeneratorDataset`: rows from the user's own objects, read by number or in their own order."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from mycel.base import arguments
from mycel.dataset import config
from mycel.dataset.arguments import check_count, names
from mycel.dataset.blocks import Block, Row, as_array, drop
from mycel.dataset.failure import operation_failed
from mycel.dataset.mapping import check_processes
from mycel.dataset.node import Node
from mycel.dataset.notices import say_once
from mycel.dataset.randomness import Stream, row_key, using
from mycel.dataset.run import Run
from mycel.dataset.samplers import Shuffle
from mycel.dataset.sharing import copies
from mycel.dataset.sources import MappableDataset
from mycel.dataset.transforms.base import numpy_type
from mycel.dataset.workers import Workers


class GeneratorDataset(MappableDataset):
    """Rows from a Python object.

    * `source`: a function that returns an iterable, an iterable, or an object with `__getitem__`
      and `__len__`. Only the last is read by number: it can be sampled, and is shuffled unless
      `shuffle` is False. A row is a tuple with a value for each column, or the value of the only
      column.
    * `column_names`: the names of the columns.
    * `column_types`: the types that columns must have; values are checked, never converted.
    * `num_parallel_workers`: the number of threads that read by number, each from a copy of the
      source that is made when an epoch begins. A source that cannot be copied, as it holds an open
      file, is read by one thread, and a warning says so.
    * `num_samples`: the largest number of rows in an epoch.
    * `shuffle`, `sampler`, `num_shards`, `shard_id`: as in `MappableDataset`.
    * `batch_sampler`: yields lists of row numbers; `collate_fn` makes one row of what the source
      gives for such a list.
    * `python_multiprocessing`, `max_rowsize`: without effect, as workers are threads. `schema`
      raises NotImplementedError.

    Raises RuntimeError from the consumer's `next` when the source fails; the message names the row.

    >>> import mycel.dataset as ds
    >>> def squares():
    ...     for i in range(3):
    ...         yield i, i * i
    >>> data = ds.GeneratorDataset(squares, ["n", "square"])
    >>> [int(row["square"]) for row in data.create_dict_iterator(num_epochs=1, output_numpy=True)]
    [0, 1, 4]
    """

    _uses_workers = True
    _in_memory = True

    def __init__(
        self,
        source: Any,
        column_names: str | Sequence[str] | None = None,
        column_types: Sequence[Any] | None = None,
        schema: Any = None,
        num_samples: int | None = None,
        num_parallel_workers: int = 1,
        shuffle: bool | Shuffle | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        python_multiprocessing: bool = True,
        max_rowsize: Any = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        collate_fn: Callable[[list[Any]], Any] | None = None,
    ) -> None:
        super().__init__(num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id)
        # True is the default: only who asks for several workers expects anything of it.
        several = self.num_parallel_workers is not None and self.num_parallel_workers > 1
        arguments.optional("GeneratorDataset", "python_multiprocessing", python_multiprocessing, bool)
        if max_rowsize is not None:
            arguments.integer("GeneratorDataset", "max_rowsize", max_rowsize, -1)
        check_processes("GeneratorDataset", bool(python_multiprocessing and several), max_rowsize)
        if schema is not None and not isinstance(schema, (str, os.PathLike)) and not hasattr(schema, "columns"):
            raise arguments.wrong_value("GeneratorDataset", "schema", "a Schema or the name of its file", schema)
        if schema is not None:
            raise NotImplementedError("GeneratorDataset: schema is not supported; give column_names and column_types")
        if column_names is None:
            raise ValueError("GeneratorDataset: column_names are missing")
        arguments.instance("GeneratorDataset", "column_names", column_names, (str, list))
        self.column_names = names(column_names, "GeneratorDataset: column_names")
        if not (
            callable(source)
            or hasattr(source, "__getitem__")
            or hasattr(source, "__iter__")
            or hasattr(source, "__next__")
        ):
            raise TypeError(
                f"GeneratorDataset: source must be a function, an iterable, or have __getitem__ and __len__; "
                f"got {source!r} of type {type(source).__name__}"
            )
        self.source = source
        self._by_number = hasattr(source, "__getitem__") and not isinstance(source, type)
        if self._by_number and not hasattr(source, "__len__"):
            raise RuntimeError(
                f"GeneratorDataset: a source with __getitem__ needs __len__ too; {type(source).__name__} has none"
            )
        if not self._by_number:
            for argument, value in (("sampler", sampler), ("num_shards", num_shards), ("batch_sampler", batch_sampler)):
                if value is not None:
                    raise ValueError(f"GeneratorDataset: {argument} needs a source with __getitem__ and __len__")
        self._num_samples = (
            None if num_samples is None else check_count("GeneratorDataset", "num_samples", num_samples, 0) or None
        )
        self.column_types = None
        arguments.optional("GeneratorDataset", "column_types", column_types, list)
        if column_types is not None:
            self.column_types = [numpy_type("GeneratorDataset: column_types", t) for t in column_types]
            if len(self.column_types) != len(self.column_names):
                raise ValueError(
                    f"GeneratorDataset: {len(self.column_names)} column names but {len(self.column_types)} column types"
                )
        if batch_sampler is not None:
            for argument, other in (
                ("num_samples", num_samples),
                ("sampler", sampler),
                ("num_shards", num_shards),
                ("shuffle", shuffle),
            ):
                if other is not None:
                    raise ValueError(
                        f"GeneratorDataset: batch_sampler decides on the rows, so {argument} cannot be given with it"
                    )
        if collate_fn is not None and batch_sampler is None:
            raise ValueError("GeneratorDataset: collate_fn goes with batch_sampler, which is missing")
        self.batch_sampler = batch_sampler
        self.collate_fn = collate_fn
        self._gave_rows = False

    def reads_by_number(self) -> bool:
        return self._by_number and self.batch_sampler is None

    def is_shuffled(self) -> bool:
        return self.reads_by_number() and super().is_shuffled()

    def _columns(self) -> list[str]:
        return list(self.column_names)

    def _total(self) -> int:
        return len(self.source)

    def _count(self) -> int:
        if self.reads_by_number():
            return super()._count()
        length = getattr(self.batch_sampler, "__len__", None)
        if length is not None:
            return int(length())
        return Node._count(self)

    def _count_is_fixed(self) -> bool:
        return self.reads_by_number()

    def _convert(self, value: Any, number: int) -> Row:
        several = isinstance(value, tuple) or (isinstance(value, list) and len(self.column_names) > 1)
        values = tuple(value) if several else (value,)
        if len(values) != len(self.column_names):
            raise ValueError(f"the source gave {len(values)} values for {len(self.column_names)} columns")
        # Copied where it is the source's own array, so that operations may write into it.
        row = tuple(v.copy() if isinstance(v, np.ndarray) else as_array(v) for v in values)
        for name, array, wanted in zip(self.column_names, row, self.column_types or ()):
            if array.dtype != wanted:
                raise TypeError(
                    f"column {name!r} should have type {wanted} by column_types, but the source gave {array.dtype}"
                )
        return row

    def _failed(self, number: int, error: Exception) -> RuntimeError:
        return operation_failed("GeneratorDataset", self.source, self.column_names, number, error)

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        if self.batch_sampler is not None:
            return drop(self._collated(self.batch_sampler, run), skip)
        if self._by_number:
            return self._sampled(run, skip)
        return drop(self._streamed(run), skip)

    def _sampled(self, run: Run, skip: int) -> Iterator[Block]:
        order = self.sampler.draw(self._total(), run, self._labels).tolist()
        key = run.key(self._height, 9)
        workers = min(self.num_parallel_workers or 1, max(1, len(order) - skip))
        if config.get_debug_mode() or run.block == 1:
            workers = 1
        sources, reason = copies(self.source, workers)
        if reason:
            kind = type(self.source)
            say_once(
                "GeneratorDataset",
                kind,
                message="GeneratorDataset: num_parallel_workers=%d has no effect for a source of class %s: threads "
                "must not share it, and %s; one "
                "thread reads. Open files where they are used, or in __setstate__",
                arguments=(workers, kind.__name__, reason),
            )
        if len(sources) == 1:
            stream = run.stream()
            reads = (
                self._read(self.source, order[place], stream.begin(row_key(key, place)))
                for place in range(skip, len(order))
            )
            yield from _in_blocks(reads, run.block)
            return
        pool = Workers(workers, "mycel-source")
        streams = [run.stream() for _ in range(workers)]
        try:
            # Whole rounds, so that a worker and its copy read the same rows whatever the block.
            step = -(-run.block // workers) * workers
            for start in range(skip, len(order), step):
                places = range(start, min(start + step, len(order)))
                tasks = [
                    (self._read_keyed, (sources[n % workers], order[place], streams[n % workers], row_key(key, place)))
                    for n, place in enumerate(places)
                ]
                yield from _in_blocks(pool.run(tasks), run.block)
        finally:
            pool.close()

    def _read_keyed(self, source: Any, number: int, stream: Stream, key: int) -> Row:
        return self._read(source, number, stream.begin(key))

    def _read(self, source: Any, number: int, stream: Stream) -> Row:
        try:
            with using(stream):
                return self._convert(source[number], number)
        except Exception as error:
            raise self._failed(number, error) from error

    def _streamed(self, run: Run) -> Iterator[Block]:
        return _in_blocks(itertools.islice(self._stream(run), self._num_samples), run.block)

    def _stream(self, run: Run) -> Iterator[Row]:
        number = 0
        key, stream = run.key(self._height, 9), run.stream()
        try:
            with using(stream.begin(row_key(key, 0))):
                items = self.source() if callable(self.source) and not hasattr(self.source, "__next__") else self.source
                once = hasattr(items, "__next__")
                items = iter(items) if hasattr(items, "__iter__") else _until_stop(items)
            while True:
                with using(stream):
                    value = next(items, _END)
                if value is _END:
                    break
                row = self._convert(value, number)
                self._gave_rows = True
                yield row
                number += 1
                stream.begin(row_key(key, number))
        except Exception as error:
            raise self._failed(number, error) from error
        if not number and self._gave_rows and once and not callable(self.source):
            raise RuntimeError(
                "GeneratorDataset: the source is an iterator that was read to its end before; "
                "give a function that returns a new one"
            )

    def _collated(self, batches: Iterable[Sequence[int]], run: Run) -> Iterator[Block]:
        number = 0
        key, stream = run.key(self._height, 9), run.stream()
        with using(stream.begin(row_key(key, 0))):
            left = iter(batches)
        while True:
            try:
                with using(stream):
                    indices = next(left, None)
                    if indices is None:
                        return
                    row = self._collate([self.source[int(i)] for i in indices], number)
            except Exception as error:
                raise operation_failed(
                    "GeneratorDataset", self.collate_fn or self.source, self.column_names, f"batch {number}", error
                ) from error
            yield Block.from_rows([row])
            number += 1
            stream.begin(row_key(key, number))

    def _collate(self, items: list[Any], number: int) -> Row:
        if self.collate_fn is not None:
            return self._convert(self.collate_fn(items), number)
        rows = [self._convert(item, number) for item in items]
        return tuple(np.stack(column) for column in zip(*rows))


_END = object()


def _until_stop(source: Any) -> Iterator[Any]:
    """Yield the values of an object that has only `__next__`."""
    while True:
        try:
            value = next(source)
        except StopIteration:
            return
        yield value


def _in_blocks(rows: Iterable[Row], size: int) -> Iterator[Block]:
    """Yield rows in blocks; the rows before one that fails still come out."""
    waiting: list[Row] = []
    left = iter(rows)
    while True:
        try:
            row = next(left)
        except StopIteration:
            break
        except BaseException:
            if waiting:
                yield Block.from_rows(waiting)
            raise
        waiting.append(row)
        if len(waiting) == size:
            full, waiting = waiting, []
            yield Block.from_rows(full)
    if waiting:
        yield Block.from_rows(waiting)
