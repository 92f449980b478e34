"""Sources that read rows by number, and arrays in memory.

A `MappableDataset` reads rows by number, in the order that its sampler chooses. The arrays that it
returns are copies, so operations may write into them.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation.system import locks
from mycel.dataset.arguments import names
from mycel.dataset.execution.iterator_scope import Pace
from mycel.dataset.execution.pass_context import Begun, Run
from mycel.dataset.execution.threaded_stages import Broken, Piece, Plan
from mycel.dataset.nodes.cached_rows import blocks_of, plan_of
from mycel.dataset.nodes.node import SOURCE
from mycel.dataset.nodes.splitting import Places
from mycel.dataset.pipeline import Dataset
from mycel.dataset.rows.column_blocks import Array, Block, Column, aligned, as_array, join
from mycel.dataset.samplers import (
    BuiltinSampler,
    Indices,
    RandomSampler,
    SequentialSampler,
    Shuffle,
    SubsetRandomSampler,
    SubsetSampler,
    select_sampler,
)


class MappableDataset(Dataset):
    """The base class of sources that read rows by number.

    Args:
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        sampler (Sampler | Iterable[int] | None): What chooses rows, instead of `num_samples`,
            `shuffle`, `num_shards` and `shard_id`. Default: None.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random. Default: None.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.
    """

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
        """Return whether rows can be read in any order."""
        return True

    def with_sampler(self, sampler: BuiltinSampler) -> MappableDataset:
        """Return this source with another sampler."""
        other = copy.copy(self)
        other.sampler = sampler
        other._counted = None
        return other

    def use_sampler(self, new_sampler: BuiltinSampler) -> None:
        """Replace the sampler."""
        arguments.instance("use_sampler", "new_sampler", new_sampler, BuiltinSampler, "a sampler")
        self.sampler = new_sampler
        self._counted = None

    def add_sampler(self, new_sampler: BuiltinSampler) -> None:
        """Let `new_sampler` sample from the rows that the present sampler chooses."""
        new_sampler.add_child(self.sampler)
        self.use_sampler(new_sampler)

    def is_shuffled(self) -> bool:
        return self.sampler.is_shuffled()

    def is_sharded(self) -> bool:
        return self.sampler.is_sharded()

    def _total(self) -> int:
        """Return how many rows the source has, whatever the sampler."""
        raise NotImplementedError(f"{type(self).__name__} must define _total")

    def _gather(self, indices: Indices) -> Block:
        """Return the rows of these numbers."""
        raise NotImplementedError(f"{type(self).__name__} must define _gather")

    def _labels(self, column: str) -> np.ndarray[Any, np.dtype[Any]]:
        """Return the labels of all rows in a column."""
        raise ValueError(f"{type(self).__name__}: PKSampler needs labels that can be read without reading rows")

    def _count(self) -> int:
        return self.sampler.length(self._total(), self._labels)

    def _rest(self, begun: Begun) -> int:
        return self.sampler.length_after(self._total(), begun.stretches) if begun.stretches else self._count()

    # Whether reading a row takes time, so that it is worth doing in workers and in small pieces.
    _reads_files = False

    def _free(self) -> bool:
        """Return whether any number of threads may read, though none were asked for."""
        return self._reads_files

    def _plan(self, run: Run, skip: int) -> Plan:
        kept = plan_of(self, run, skip, type(self).__name__) if run.ahead else None
        if kept is not None:
            return kept
        workers = self._asked(run) if run.ahead and self._reads_files else 0
        if not workers and not (run.ahead and self._free()):
            return super()._plan(run, skip)
        assert run.scope is not None
        order = self.sampler.draw(self._total(), run, self._labels)

        def feed(pace: Pace) -> Iterator[Piece]:
            start = skip
            while start < len(order):
                size = pace.rows(min(run.block, len(order) - start))
                yield order[start : start + size], start, size
                start += size

        return Plan(feed, light=True).then(self._read_piece, workers, run.scope.counter(self))

    def _reader(self, run: Run) -> Callable[[list[int], int], Block]:
        """Return what reads the rows of some numbers for a cache, in any thread of a pass.

        It is also given the number by which rows draw.
        """
        return lambda numbers, start: self._read_piece(np.asarray(numbers), start)

    def _read_piece(self, indices: Indices, start: int) -> Block:
        """Read the rows of these numbers; raise Broken with those before one that fails."""
        try:
            return self._gather(indices)
        except Exception as error:
            if len(indices) == 1:
                raise
            failure: BaseException = error
        rows: list[Block] = []
        try:
            for index in range(len(indices)):
                rows.append(self._gather(indices[index : index + 1]))
        except Exception as error:
            failure = error
        raise Broken(join(rows) if rows else None, failure)

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        kept = blocks_of(self, run, skip, type(self).__name__, lambda start: self._inline(run, start))
        if kept is not None:
            return kept
        if self._reads_files and run.ahead:
            plan = self._plan(run, skip)
            if plan.is_shared:
                return self._flow(plan, run)
        return self._inline(run, skip)

    def _inline(self, run: Run, skip: int) -> Iterator[Block]:
        order = self.sampler.draw(self._total(), run, self._labels)
        pace = self._alone(run) if self._reads_files else None
        start = skip
        while start < len(order):
            size = run.block if pace is None else pace.rows(run.block)
            begin = time.perf_counter()
            block = self._gather(order[start : start + size])
            if pace is not None:
                pace.took(block.count, time.perf_counter() - begin)
            yield block
            start += size

    def _in_large_blocks(self, run: Run, skip: int, each: float) -> Iterator[Block]:
        """Yield the rows of a pass like `_inline`, many batches at once after the first: where rows
        share work, as those of one group of a file.

        `each` is about how many bytes a row has.
        """
        order = self.sampler.draw(self._total(), run, self._labels)
        pace = self._alone(run)
        fits = max(1, min(MOST_ROWS, int(_SHARING // max(1.0, each)))) if run.ahead else 1
        most = max(run.block, fits - fits % run.group)
        start, size = skip, run.block
        while start < len(order):
            begin = time.perf_counter()
            failure: BaseException | None = None
            block: Block | None
            try:
                block = self._read_piece(order[start : start + size], start)
            except Broken as broken:
                block, failure = broken.before, broken.error
            if block is not None:
                if pace is not None:
                    pace.took(block.count, time.perf_counter() - begin)
                yield block
            if failure is not None:
                raise failure
            start += size
            size = min(4 * size, most)

    def _part(self, part: Places, randomize: bool) -> Dataset:
        own = self.sampler
        every_row = self.reads_by_number() and own.num_samples is None and own.child_sampler is None
        in_order = isinstance(own, SequentialSampler) and not own.start_index
        # Rows are assigned at random anyway, so shuffling all of them before changes nothing.
        permuted = isinstance(own, RandomSampler) and not own.replacement
        if not every_row or not (in_order or (permuted and randomize)):
            return super()._part(part, randomize)
        return self.with_sampler(SubsetRandomSampler(part.tolist()) if randomize else SubsetSampler(part.tolist()))


# How many rows in memory are taken at once, and about how many bytes: what is made of them should
# lie in the cache until it is used.
MOST_ROWS = 1024
_PIECE = 1 << 18
_SHARING = 1 << 22
_LARGE = 1 << 15


class ArrayDataset(MappableDataset):
    """A source whose columns are arrays, or lists of arrays of different shapes."""

    def _data(self) -> dict[str, Column]:
        """Return the columns by name."""
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

    def _most(self, run: Run) -> int:
        """Return how many rows are taken at once: whole batches, in about `_PIECE` bytes."""
        held = self._data().values()
        each = sum(d.nbytes // max(1, len(d)) if isinstance(d, np.ndarray) else d[0].nbytes for d in held if len(d))
        fits = max(1, min(MOST_ROWS, _PIECE // max(1, each)))
        return fits - fits % run.group if fits > run.group else fits

    def _plan(self, run: Run, skip: int) -> Plan:
        if self.cache is not None:
            return super()._plan(run, skip)
        order = self.sampler.draw(self._total(), run, self._labels)
        most = self._most(run)

        def feed(pace: Pace) -> Iterator[Piece]:
            # Copying rows is short work, for whichever thread is free: no thread of its own reads.
            start = skip
            while start < len(order):
                size = pace.rows(min(most, len(order) - start))
                block = self._gather(order[start : start + size])
                if run.scope is not None:
                    run.scope.counter(self).gave(block)
                yield block, start, size
                start += size

        return Plan(feed, light=True)

    def _inline(self, run: Run, skip: int) -> Iterator[Block]:
        order = self.sampler.draw(self._total(), run, self._labels)
        self._alone(run)
        start, size = skip, run.block
        most = max(size, self._most(run)) if run.ahead else size
        while start < len(order):
            yield self._gather(order[start : start + size])
            start += size
            # The first rows come soon; then many share the cost of a block.
            size = min(4 * size, most)

    def _gather(self, indices: Indices) -> Block:
        columns: list[Column] = []
        for data in self._data().values():
            if isinstance(data, list):
                columns.append([data[i].copy() for i in indices])
            else:
                columns.append(_taken(data, indices))
        return Block(columns, len(indices))


def _taken(data: Array, indices: Indices) -> Array:
    first, count = int(indices[0]), len(indices)
    # Most often the rows of a file or array in their order, which are copied at once where it pays.
    if data.nbytes // len(data) * count > _LARGE and int(indices[-1]) - first == count - 1:
        if (np.diff(indices) == 1).all():
            if data.dtype.kind not in "biufc":
                copied: Array = data[first : first + count].copy()
                return copied
            found = aligned((count, *data.shape[1:]), data.dtype)
            found[...] = data[first : first + count]
            return found
    if data.dtype.kind in "biufc" and data.nbytes // len(data) * count > _LARGE:
        if int(indices.min()) < 0 or int(indices.max()) >= len(data):
            raise IndexError(f"there is no row {int(indices.max())}; there are {len(data)}")
        # With "raise" NumPy would write elsewhere first.
        return np.take(data, indices, axis=0, out=aligned((count, *data.shape[1:]), data.dtype), mode="clip")
    return data.take(indices, axis=0)


_reading = locks.lock()


class HeldDataset(ArrayDataset):
    """A source of files whose columns are read, and then held, when a row is first asked for.

    `num_parallel_workers`, `sampler`, `num_samples`, `shuffle`, `num_shards`, `shard_id` and
    `cache` are those of `MappableDataset`. Copies with other samplers share what was read.
    """

    _names: Sequence[str] = ("image", "label")

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
        super().__init__(num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id, cache)
        self._held: dict[str, Column] = {}

    def _load(self) -> dict[str, Column]:
        """Read the columns, under the names of `_names`."""
        raise NotImplementedError(f"{type(self).__name__} must define _load")

    def _length(self) -> int:
        """Return how many rows there are, from headers or lengths of files if they tell."""
        return super()._total()

    def _columns(self) -> list[str]:
        return list(self._names)

    def _total(self) -> int:
        return super()._total() if self._held else self._length()

    def _data(self) -> dict[str, Column]:
        with _reading:
            if not self._held:
                self._held.update(self._load())
        return self._held


class NumpySlicesDataset(ArrayDataset):
    """The slices of arrays along their first axis.

    Args:
        data (numpy.ndarray | Sequence | dict[str, Sequence]): An array or list (one column), a
            tuple of them, or a dictionary by column name.
        column_names (str | Sequence[str] | None): The names of the columns; `column_0`, `column_1`,
            ... by default. Default: None.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: 1.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random. Default: None.
        sampler (Sampler | Iterable[int] | None): What chooses rows, instead of `num_samples`,
            `shuffle`, `num_shards` and `shard_id`. Default: None.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.

    Raises:
        ValueError: If columns differ in length or are empty.

    Examples:
        >>> import mycel.dataset as ds
        >>> data = ds.NumpySlicesDataset({"x": [[1, 2], [3, 4]], "y": [0, 1]}, shuffle=False)
        >>> rows = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
        >>> [(x.tolist(), int(y)) for x, y in rows]
        [([1, 2], 0), ([3, 4], 1)]
    """

    _in_memory = True

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
        arguments.instance("NumpySlicesDataset", "data", data, (list, tuple, dict, np.ndarray))
        arguments.optional("NumpySlicesDataset", "column_names", column_names, (str, list))
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
        raise TypeError(f"NumpySlicesDataset: column {name!r} must be an array or a list, not {value!r}")
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
