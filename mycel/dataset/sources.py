"""Sources: arrays in memory, the user's own objects, and the files of the MNIST family.

A `MappableDataset` reads rows by number, in the order that its sampler chooses. The arrays it hands out are copies, so
that an operation may write into them. `GeneratorDataset` also reads iterables, which have an order of their own.
"""

from __future__ import annotations

import copy
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mycel.base.idx import read_idx
from mycel.dataset import config
from mycel.dataset.bases import VisionBaseDataset
from mycel.dataset.blocks import Array, Block, Column, Row, as_array, drop
from mycel.dataset.core import SOURCE, Dataset, Run, check_count, names
from mycel.dataset.failure import operation_failed
from mycel.dataset.mapping import check_processes
from mycel.dataset.notices import say_once
from mycel.dataset.randomness import Stream, row_key, using
from mycel.dataset.samplers import BuiltinSampler, Indices, Shuffle, select_sampler
from mycel.dataset.sharing import copies
from mycel.dataset.workers import Workers


class MappableDataset(Dataset):
    """The base of sources that read rows by number."""

    def __init__(
        self,
        num_parallel_workers: int | None = None,
        sampler: Any = None,
        num_samples: int | None = None,
        shuffle: bool | Shuffle | None = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        super().__init__(SOURCE, num_parallel_workers, cache)
        self.sampler: BuiltinSampler = select_sampler(
            type(self).__name__, num_samples, sampler, shuffle, num_shards, shard_id
        )

    def reads_by_number(self) -> bool:
        """Whether rows can be read in any order."""
        return True

    def with_sampler(self, sampler: BuiltinSampler) -> MappableDataset:
        """The same source, visited as another sampler says."""
        other = copy.copy(self)
        other.sampler = sampler
        other._counted = None
        return other

    def use_sampler(self, new_sampler: BuiltinSampler) -> None:
        """Replace the sampler."""
        if not isinstance(new_sampler, BuiltinSampler):
            raise TypeError(
                f"use_sampler: expected a sampler, got {new_sampler!r} of type {type(new_sampler).__name__}"
            )
        self.sampler = new_sampler
        self._counted = None

    def add_sampler(self, new_sampler: BuiltinSampler) -> None:
        """Let `new_sampler` sample from what the present sampler chooses."""
        new_sampler.add_child(self.sampler)
        self.use_sampler(new_sampler)

    def is_shuffled(self) -> bool:
        return self.sampler.is_shuffled()

    def is_sharded(self) -> bool:
        return self.sampler.is_sharded()

    def _total(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} must define _total")

    def _gather(self, indices: Indices) -> Block:
        raise NotImplementedError(f"{type(self).__name__} must define _gather")

    def _labels(self, column: str) -> np.ndarray[Any, np.dtype[Any]]:
        raise ValueError(f"{type(self).__name__}: PKSampler needs labels that can be read without reading rows")

    def _count(self) -> int:
        return self.sampler.length(self._total(), self._labels)

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        order = self.sampler.draw(self._total(), run, self._labels)
        for start in range(skip, len(order), run.block):
            yield self._gather(order[start : start + run.block])


class ArrayDataset(MappableDataset):
    """A source whose columns are arrays, or lists of arrays of different shapes."""

    def _data(self) -> dict[str, Column]:
        raise NotImplementedError(f"{type(self).__name__} must define _data")

    def _columns(self) -> list[str]:
        return list(self._data())

    def _total(self) -> int:
        return len(next(iter(self._data().values())))

    def _labels(self, column: str) -> np.ndarray[Any, np.dtype[Any]]:
        data = self._data()
        if column not in data:
            raise ValueError(f"PKSampler: there is no column {column!r}; the columns are {list(data)}")
        return np.asarray(data[column])

    def _gather(self, indices: Indices) -> Block:
        columns: list[Column] = []
        for data in self._data().values():
            columns.append([data[i].copy() for i in indices] if isinstance(data, list) else data[indices])
        return Block(columns, len(indices))


class NumpySlicesDataset(ArrayDataset):
    """The slices of arrays along their first axis.

    `data` is an array or list (one column), a tuple of them, or a dictionary from column names. Columns are called
    `column_0`, ... by default. Shuffled unless `shuffle` is False. Raises ValueError where columns differ in length or
    are empty.

    >>> import mycel.dataset as ds
    >>> data = ds.NumpySlicesDataset({"x": [[1, 2], [3, 4]], "y": [0, 1]}, shuffle=False)
    >>> [(x.tolist(), int(y)) for x, y in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    [([1, 2], 0), ([3, 4], 1)]
    """

    def __init__(
        self,
        data: Any,
        column_names: str | Sequence[str] | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = 1,
        shuffle: bool | Shuffle | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
    ) -> None:
        super().__init__(num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id)
        if isinstance(data, dict):
            group, default = list(data.values()), list(data)
        else:
            group = list(data) if isinstance(data, tuple) else [data]
            default = [f"column_{i}" for i in range(len(group))]
        if not group:
            raise ValueError("NumpySlicesDataset: data is empty")
        labels = default if column_names is None else names(column_names, "NumpySlicesDataset: column_names")
        if len(labels) != len(group):
            raise ValueError(f"NumpySlicesDataset: {len(group)} columns of data, but {len(labels)} names {labels}")
        if not all(isinstance(name, str) for name in labels):
            raise TypeError(f"NumpySlicesDataset: the names of columns are strings, not {labels}")
        columns = [_slices(value, name) for value, name in zip(group, labels)]
        lengths = {name: len(column) for name, column in zip(labels, columns)}
        if len(set(lengths.values())) != 1:
            raise ValueError(f"NumpySlicesDataset: columns differ in length: {lengths}")
        if not len(columns[0]):
            raise ValueError("NumpySlicesDataset: data is empty")
        self._arrays = dict(zip(labels, columns))

    def _data(self) -> dict[str, Column]:
        return self._arrays


def _slices(value: Any, name: str) -> Column:
    if not hasattr(value, "__len__") and not hasattr(value, "__array__"):
        raise TypeError(f"NumpySlicesDataset: column {name!r}: expected an array or list, got {value!r}")
    convert = getattr(value, "asnumpy", None)
    try:
        array = np.asarray(convert() if convert is not None else value)
    except ValueError:
        # Rows of different shapes, which NumPy refuses to hold in one array.
        return [as_array(row) for row in value]
    if array.dtype == object:
        return [as_array(row) for row in value]
    if not array.ndim:
        raise TypeError(f"NumpySlicesDataset: column {name!r} is the single value {value!r}; wrap it in a list")
    return array


class GeneratorDataset(MappableDataset):
    """Rows from a Python object.

    `source` is a function that returns an iterable, an iterable, or an object with `__getitem__` and `__len__`; only
    the latter can be sampled, and is shuffled unless `shuffle` is False. A row is a tuple with a value for each of
    `column_names`, or the value of the only one. `column_types` are checked, never converted. With
    `num_parallel_workers` above 1, threads read by number, each from a copy of the source that is made when an epoch
    begins; a source that cannot be copied, as it holds an open file, is read by one thread, which a warning says.
    `batch_sampler` yields lists of row numbers, and `collate_fn` makes one row of what the source gives for a list.

    Raises RuntimeError from the consumer's `next` when the source fails, naming the row.

    >>> import mycel.dataset as ds
    >>> def squares():
    ...     for i in range(3):
    ...         yield i, i * i
    >>> data = ds.GeneratorDataset(squares, ["n", "square"])
    >>> [int(row["square"]) for row in data.create_dict_iterator(num_epochs=1, output_numpy=True)]
    [0, 1, 4]
    """

    _uses_workers = True

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
        check_processes("GeneratorDataset", python_multiprocessing if several else False, max_rowsize)
        if schema is not None:
            raise NotImplementedError("GeneratorDataset: schema is not supported; give column_names and column_types")
        if column_names is None:
            raise ValueError("GeneratorDataset: column_names are missing")
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
        if column_types is not None:
            from mycel.dataset.transforms.base import numpy_type

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
        return Dataset._count(self)

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
                message="GeneratorDataset: num_parallel_workers=%d has no effect for a source of class %s: threads must not share it, and %s; one "
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
    """The values of an object that has `__next__` alone."""
    while True:
        try:
            value = next(source)
        except StopIteration:
            return
        yield value


def _in_blocks(rows: Iterable[Row], size: int) -> Iterator[Block]:
    """Rows in blocks; rows before one that fails still come out."""
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


class MnistDataset(ArrayDataset, VisionBaseDataset):
    """The MNIST files of a directory: columns `image`, uint8 [28, 28, 1], and `label`, uint32.

    `usage` is "train", "test", or "all" (the default): first the test, then the training images, or those of the two
    that the directory has. Files may be compressed (`.gz`). Shuffled unless `shuffle` is False. Raises ValueError for a
    missing directory or file, and for truncated files.

    >>> import tempfile
    >>> import mycel.dataset as ds
    >>> from mycel.dataset import digits
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     digits.write_idx(folder)
    ...     data = ds.MnistDataset(folder, usage="train")
    ...     data.get_dataset_size(), data.output_shapes()
    (1438, [[28, 28, 1], []])
    """

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        super().__init__(num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id, cache)
        kind = type(self).__name__
        if usage not in (None, "train", "test", "all"):
            raise ValueError(f"{kind}: usage must be 'train', 'test' or 'all', got {usage!r}")
        if not isinstance(dataset_dir, (str, os.PathLike)):
            raise TypeError(f"{kind}: the directory must be a path, not {type(dataset_dir).__name__}")
        if not os.path.isdir(dataset_dir):
            raise ValueError(f"{kind}: there is no directory {os.fspath(dataset_dir)!r}")
        self.dataset_dir = os.fspath(dataset_dir)
        self.usage = usage or "all"
        parts = {"train": ["train"], "test": ["t10k"], "all": ["t10k", "train"]}[self.usage]
        if len(parts) > 1 and any(map(self._has, parts)):
            parts = [part for part in parts if self._has(part)]
        loaded = [self._load(part) for part in parts]
        self._arrays: dict[str, Column] = {
            "image": loaded[0][0] if len(loaded) == 1 else np.concatenate([images for images, _ in loaded]),
            "label": np.concatenate([labels for _, labels in loaded]),
        }

    def _data(self) -> dict[str, Column]:
        return self._arrays

    def _load(self, part: str) -> tuple[Array, Array]:
        kind = type(self).__name__
        images = np.asarray(read_idx(self._find(part, "images", 3)))
        labels = np.asarray(read_idx(self._find(part, "labels", 1)))
        if images.ndim != 3 or images.dtype != np.uint8 or labels.ndim != 1 or labels.dtype != np.uint8:
            raise ValueError(
                f"{kind}: the {part} files of {self.dataset_dir!r} hold {images.dtype} of {images.ndim} axes and "
                f"{labels.dtype} of {labels.ndim}; expected uint8 of 3 and of 1"
            )
        if len(images) != len(labels):
            raise ValueError(
                f"{kind}: {len(images)} images but {len(labels)} labels in the {part} files of {self.dataset_dir!r}"
            )
        return images[..., None], labels.astype(np.uint32)

    def _has(self, part: str) -> bool:
        """Whether any file of a part is there: half a part is an error, none of it is another usage."""
        names = self._candidates(part, "images", 3) + self._candidates(part, "labels", 1)
        return any(Path(self.dataset_dir, name).is_file() for name in names)

    @staticmethod
    def _candidates(part: str, content: str, axes: int) -> list[str]:
        plain = f"{part}-{content}-idx{axes}-ubyte"
        return [name + end for name in (plain, plain.replace("-idx", ".idx")) for end in ("", ".gz")]

    def _find(self, part: str, content: str, axes: int) -> Path:
        candidates = self._candidates(part, content, axes)
        for name in candidates:
            path = Path(self.dataset_dir, name)
            if path.is_file():
                return path
        raise ValueError(
            f"{type(self).__name__}: {self.dataset_dir!r} has no file {' or '.join(candidates)}, "
            f"needed for usage={self.usage!r}"
        )


class FashionMnistDataset(MnistDataset):
    """The Fashion-MNIST files of a directory (Xiao, Rasul and Vollgraf, 2017); see `MnistDataset`."""


class KMnistDataset(MnistDataset):
    """The Kuzushiji-MNIST files of a directory (Clanuwat et al., 2018); see `MnistDataset`."""
