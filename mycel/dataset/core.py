"""The pipeline: a tree of datasets, pulled from its root, block by block.

A node produces rows in two steps. `_columns` and `_count` answer what is known without running, `_blocks(run, skip)`
yields the rows of one pass, less the first `skip`. A `Run` carries all that a pass depends on: the seed, the epoch, and
how many rows the consumer would like at once. Invariants:

* A pass is a function of (tree, seed, epoch); nodes keep no state between passes. Hence an iterator resumes by
  asking for the same pass with a `skip`, which nodes hand down to the source where that is exact.
* Two nodes of one chain draw from different streams (their heights differ); two chains of the same form draw the same
numbers, so that features and labels kept in two datasets stay aligned when both are shuffled and then zipped.
* `skip` and block size never change which rows come out or what they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mycel.dataset import config
from mycel.dataset.blocks import Block, Row
from mycel.dataset.notices import no_effect
from mycel.dataset.randomness import Stream, generator, key_of

if TYPE_CHECKING:
    from mycel.dataset.iterators import DictIterator, TupleIterator

INT32_MAX = 2**31 - 1
LARGEST_BLOCK = 256


class Run:
    """All that one pass over a dataset depends on: `seed`, `epoch` and the number of rows wanted at once."""

    __slots__ = ("seed", "epoch", "block", "seeded")

    def __init__(self, seed: int, epoch: int = 0, block: int = 32, seeded: bool = True) -> None:
        self.seed = seed
        self.epoch = epoch
        self.block = block
        self.seeded = seeded

    def with_epoch(self, epoch: int) -> Run:
        """The same pass of another epoch."""
        return Run(self.seed, epoch, self.block, self.seeded)

    def with_block(self, block: int) -> Run:
        """The same pass, in blocks of this many rows."""
        return Run(self.seed, self.epoch, max(1, min(block, LARGEST_BLOCK)), self.seeded)

    def key(self, *parts: int) -> int:
        """A 64-bit key for this pass and these further integers."""
        return key_of(self.seed, self.epoch, *parts)

    def stream(self) -> Stream:
        """A stream for rows of this pass, which gives users' functions numbers of their own where a seed was set."""
        return Stream(0, self.seeded)

    def generator(self, *parts: int) -> np.random.Generator:
        """A generator for this pass and these further integers."""
        return generator(self.seed, self.epoch, *parts)


def names(value: str | Sequence[str], argument: str) -> list[str]:
    """A list of column names from one name or several; TypeError or ValueError otherwise."""
    found = [value] if isinstance(value, str) else list(value)
    for name in found:
        if not isinstance(name, str):
            raise TypeError(f"{argument}: column names are text, got {name!r} of type {type(name).__name__}")
        if not name:
            raise ValueError(f"{argument}: a column name is empty")
    if not found:
        raise ValueError(f"{argument}: no column names given")
    if len(set(found)) != len(found):
        raise ValueError(f"{argument}: a column is named twice in {found}")
    return found


def positions(operation: str, wanted: Sequence[str], present: Sequence[str]) -> list[int]:
    """Where the wanted columns are; ValueError naming those that are not there."""
    missing = [name for name in wanted if name not in present]
    if missing:
        raise ValueError(
            f"{operation}: there is no column {', '.join(map(repr, missing))}; the columns are {list(present)}"
        )
    return [list(present).index(name) for name in wanted]


def check_count(operation: str, argument: str, value: Any, low: int, extra: tuple[int, ...] = ()) -> int:
    """An integer at least `low` or one of `extra`; TypeError or ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{operation}: {argument} must be an integer, got {value!r} of type {type(value).__name__}")
    if value not in extra and not low <= value <= INT32_MAX:
        also = f" or {' or '.join(map(str, extra))}" if extra else ""
        raise ValueError(f"{operation}: {argument} must be within [{low}, {INT32_MAX}]{also}, got {value}")
    return int(value)


def is_hidden(name: str) -> bool:
    """Whether a column is for a program's own use: iterators leave it out unless it is named or renamed."""
    return name.startswith("_meta")


# What a dataset that reads no other has for its children.
SOURCE: Any = object()


class Dataset:
    """A sequence of rows with named columns, and the operations that make new datasets of it.

    Iterating gives one epoch of lists of tensors. `children` are the datasets that this one reads.

    >>> import mycel.dataset as ds
    >>> numbers = ds.NumpySlicesDataset([1, 2, 3, 4], ["x"], shuffle=False)
    >>> doubled = numbers.map(lambda x: 2 * x, "x").batch(2)
    >>> [row["x"].tolist() for row in doubled.create_dict_iterator(num_epochs=1, output_numpy=True)]
    [[2, 4], [6, 8]]
    """

    # Whether `num_parallel_workers` says how many threads there are.
    _uses_workers = False
    # Whether it reads a list of datasets instead of one.
    _several = False

    def __init__(
        self,
        children: Dataset | Sequence[Dataset] = SOURCE,
        num_parallel_workers: int | None = None,
        cache: Any = None,
    ) -> None:
        if cache is not None:
            raise NotImplementedError(
                f"{type(self).__name__}: cache is not supported; leave it None, rows are read ahead in the background"
            )
        if num_parallel_workers is not None:
            check_count(type(self).__name__, "num_parallel_workers", num_parallel_workers, 1)
            if num_parallel_workers > 1 and not self._uses_workers:
                where = str(getattr(self, "operation", type(self).__name__))
                no_effect(where, "num_parallel_workers", num_parallel_workers, "it runs in the pipeline's own thread")
        several = self._several and isinstance(children, (tuple, list))
        group: Any = () if children is SOURCE else tuple(children) if several else (children,)
        for child in group:
            if not isinstance(child, Dataset):
                raise TypeError(
                    f"{type(self).__name__}: expected a dataset, got {child!r} of type {type(child).__name__}"
                )
        self.children: tuple[Dataset, ...] = group
        self.num_parallel_workers = num_parallel_workers
        self._height: int = 1 + max((child._height for child in group), default=-1)
        self._counted: int | None = None
        self._init_step = 0

    # What a node answers.

    def _columns(self) -> list[str]:
        return self.children[0]._columns()

    def _count(self) -> int:
        if self._counted is None:
            self._counted = sum(block.count for block in self._blocks(self._probe(), 0))
        return self._counted

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        raise NotImplementedError(f"{type(self).__name__} must define _blocks")

    def _count_is_fixed(self) -> bool:
        """Whether every epoch has `_count` rows, for certain."""
        return all(child._count_is_fixed() for child in self.children)

    def _probe(self) -> Run:
        return Run(config.get_seed(), block=1 if self._height == 0 else 32)

    def _first_row(self) -> Row:
        blocks = self._blocks(self._probe().with_block(1), 0)
        try:
            for block in blocks:
                return block.row(0)
        finally:
            close = getattr(blocks, "close", None)
            if close is not None:
                close()
        raise ValueError(f"{type(self).__name__}: the dataset has no rows, so its shapes and types are unknown")

    # Operations.

    def map(
        self,
        operations: Callable[..., Any] | Sequence[Callable[..., Any]],
        input_columns: str | Sequence[str] | None = None,
        output_columns: str | Sequence[str] | None = None,
        num_parallel_workers: int | None = None,
        **kwargs: Any,
    ) -> Dataset:
        """Apply functions to some columns of every row.

        Each operation receives the arrays that the one before it returned. `input_columns` defaults to the first
        column; `output_columns` to the input ones. With as many outputs as inputs the columns keep their places,
        otherwise the outputs come first. `num_parallel_workers` threads share the rows; their order is kept. They share
        the operations, too: one that uses an open file of its own is called by one thread, which a warning says.

        Once a seed is set, what an operation draws from `np.random` and `random` is a function of the seed, the epoch
        and the row, and takes nothing from the numbers that the program draws. (A name that was imported from `random`
        before, as in ``from random import random``, goes on drawing from the program's.)

        Raises RuntimeError from the consumer's `next` when an operation fails, naming it, its columns and the row.

        >>> import mycel.dataset as ds
        >>> pairs = ds.NumpySlicesDataset({"a": [1, 2], "b": [10, 20]}, shuffle=False)
        >>> total = pairs.map(lambda a, b: a + b, ["a", "b"], ["sum"])
        >>> [int(s) for s, in total.create_tuple_iterator(num_epochs=1, output_numpy=True)]
        [11, 22]
        """
        from mycel.dataset.mapping import MapDataset

        return MapDataset(self, operations, input_columns, output_columns, num_parallel_workers, **kwargs)

    def batch(
        self,
        batch_size: int | Callable[[Any], int],
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        **kwargs: Any,
    ) -> Dataset:
        """Stack `batch_size` consecutive rows into one, along a new first axis.

        `batch_size` may be a function of a `BatchInfo`. `per_batch_map(col1, ..., batch_info)` receives lists of arrays
        and returns the new columns; see `input_columns` and `output_columns` of `map`.

        Raises ValueError while iterating where rows differ in shape or type: see `padded_batch`; and RuntimeError where
        `per_batch_map` fails.

        >>> import mycel.dataset as ds
        >>> numbers = ds.NumpySlicesDataset([1, 2, 3], shuffle=False)
        >>> [x.tolist() for x, in numbers.batch(2).create_tuple_iterator(num_epochs=1, output_numpy=True)]
        [[1, 2], [3]]
        """
        from mycel.dataset.batching import BatchDataset

        return BatchDataset(self, batch_size, drop_remainder, num_parallel_workers, **kwargs)

    def padded_batch(
        self,
        batch_size: int | Callable[[Any], int],
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        pad_info: dict[str, Any] | None = None,
    ) -> Dataset:
        """Stack rows after padding them to one shape.

        `pad_info` maps a column to `(shape, value)`; a None in `shape`, or for it, stands for the longest of the batch.
        Longer rows are cut.

        >>> import numpy as np
        >>> import mycel.dataset as ds
        >>> ragged = ds.GeneratorDataset([np.ones(1), np.ones(2)], ["x"], shuffle=False)
        >>> padded = ragged.padded_batch(2, pad_info={"x": ([None], -1)})
        >>> next(iter(padded.create_tuple_iterator(output_numpy=True)))[0].tolist()
        [[1.0, -1.0], [1.0, 1.0]]
        """
        from mycel.dataset.batching import PaddedBatchDataset

        return PaddedBatchDataset(self, batch_size, drop_remainder, num_parallel_workers, pad_info)

    def bucket_batch_by_length(
        self,
        column_names: Sequence[str],
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        element_length_function: Callable[..., int] | None = None,
        pad_info: dict[str, Any] | None = None,
        pad_to_bucket_boundary: bool = False,
        drop_remainder: bool = False,
    ) -> Dataset:
        """Batch rows of similar length together: bucket i takes lengths in [boundary i-1, boundary i)."""
        from mycel.dataset.batching import BucketBatchByLengthDataset

        return BucketBatchByLengthDataset(
            self,
            column_names,
            bucket_boundaries,
            bucket_batch_sizes,
            element_length_function,
            pad_info,
            pad_to_bucket_boundary,
            drop_remainder,
        )

    def shuffle(self, buffer_size: int) -> Dataset:
        """Emit rows in random order from a buffer of `buffer_size` rows, refilled as they leave.

        With a buffer as large as the dataset every order is equally likely. Each epoch has its own order.
        """
        from mycel.dataset.nodes import ShuffleDataset

        return ShuffleDataset(self, buffer_size)

    def repeat(self, count: int | None = None) -> Dataset:
        """Go through the rows `count` times; without end if `count` is None or -1. Each pass shuffles anew."""
        from mycel.dataset.nodes import RepeatDataset

        return RepeatDataset(self, count)

    def take(self, count: int = -1) -> Dataset:
        """Keep the first `count` rows; all of them if `count` is -1."""
        from mycel.dataset.nodes import TakeDataset

        return self if count == -1 else TakeDataset(self, count)

    def skip(self, count: int) -> Dataset:
        """Leave out the first `count` rows."""
        from mycel.dataset.nodes import SkipDataset

        return SkipDataset(self, count)

    def filter(
        self,
        predicate: Callable[..., Any],
        input_columns: str | Sequence[str] | None = None,
        num_parallel_workers: int | None = None,
    ) -> Dataset:
        """Keep the rows for which `predicate`, called with the named columns (default: all), is true."""
        from mycel.dataset.nodes import FilterDataset

        return FilterDataset(self, predicate, input_columns, num_parallel_workers)

    def project(self, columns: str | Sequence[str]) -> Dataset:
        """Keep only these columns, in this order."""
        from mycel.dataset.nodes import ProjectDataset

        return ProjectDataset(self, columns)

    def rename(self, input_columns: str | Sequence[str], output_columns: str | Sequence[str]) -> Dataset:
        """Give columns new names; their places stay."""
        from mycel.dataset.nodes import RenameDataset

        return RenameDataset(self, input_columns, output_columns)

    def zip(self, datasets: Dataset | Sequence[Dataset]) -> Dataset:
        """Put the columns of several datasets side by side, row by row, until the shortest ends."""
        from mycel.dataset.nodes import ZipDataset

        return ZipDataset((self, *((datasets,) if isinstance(datasets, Dataset) else datasets)))

    def concat(self, datasets: Dataset | Sequence[Dataset]) -> Dataset:
        """Append the rows of other datasets with the same columns; `a + b` does the same."""
        from mycel.dataset.nodes import ConcatDataset

        return ConcatDataset((self, *((datasets,) if isinstance(datasets, Dataset) else datasets)))

    def __add__(self, datasets: Dataset) -> Dataset:
        return self.concat(datasets)

    def flat_map(self, func: Callable[..., Dataset]) -> Dataset:
        """Concatenate the datasets that `func` makes of every row's columns."""
        from mycel.dataset.nodes import FlatMapDataset

        return FlatMapDataset(self, func)

    def apply(self, apply_func: Callable[[Dataset], Dataset]) -> Dataset:
        """The dataset that `apply_func` makes of this one."""
        if not callable(apply_func):
            raise TypeError(f"apply: expected a function of a dataset, got {apply_func!r}")
        result = apply_func(self)
        if not isinstance(result, Dataset):
            raise TypeError(
                f"apply: the function must return a dataset, got {result!r} of type {type(result).__name__}"
            )
        return result

    def split(self, sizes: Sequence[int] | Sequence[float], randomize: bool = True) -> tuple[Dataset, ...]:
        """Cut into datasets that share no row, of the given sizes or fractions.

        With `randomize` rows are assigned by chance, the same in every epoch, and each part shuffles in each epoch.
        Apply random transforms to the parts: whatever comes before the split is the same in every epoch.

        >>> import mycel.dataset as ds
        >>> a, b = ds.NumpySlicesDataset(list(range(10)), shuffle=False).split([0.8, 0.2])
        >>> a.get_dataset_size(), b.get_dataset_size()
        (8, 2)
        """
        from mycel.dataset.splitting import split

        return split(self, sizes, randomize)

    # Iterating.

    def create_tuple_iterator(
        self,
        columns: str | Sequence[str] | None = None,
        num_epochs: int = -1,
        output_numpy: bool = False,
        do_copy: bool = False,
    ) -> TupleIterator:
        """Iterate over rows as lists of tensors, or of NumPy arrays with `output_numpy`.

        A `for` over the iterator is one epoch, and the next `for` the next; `num_epochs` -1 sets no limit.
        """
        from mycel.dataset.iterators import TupleIterator

        return TupleIterator(self, columns, num_epochs, output_numpy, do_copy)

    def create_dict_iterator(
        self, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False
    ) -> DictIterator:
        """Iterate over rows as dictionaries from column names; see `create_tuple_iterator`."""
        from mycel.dataset.iterators import DictIterator

        return DictIterator(self, num_epochs, output_numpy, do_copy)

    def __iter__(self) -> TupleIterator:
        return self.create_tuple_iterator(num_epochs=1)

    def set_init_step(self, init_step: int) -> None:
        """Let later iterators start after this many rows, counted over epochs of `get_dataset_size` rows each."""
        self._init_step = check_count("set_init_step", "init_step", init_step, 0)

    def get_init_step(self) -> int:
        """How many rows new iterators leave out."""
        return self._init_step

    def reset(self) -> None:
        """Let iterators created from now on start at the first row of the first epoch."""
        self._init_step = 0

    # What is known about the rows.

    def get_col_names(self) -> list[str]:
        """The names of the columns, in order."""
        return self._columns()

    def get_dataset_size(self) -> int:
        """The number of rows of one epoch (of batches, after `batch`).

        Datasets of unknown length, such as generators and filters, are run once to count.
        """
        return self._count()

    def output_shapes(self, estimate: bool = False) -> list[list[int | None]]:
        """The shape of each column in the first row; with `estimate`, None where the first 1,000 rows differ."""
        if not estimate:
            return [list(array.shape) for array in self._first_row()]
        shapes: list[list[int | None]] | None = None
        seen = 0
        for block in self._blocks(self._probe(), 0):
            for row in block.rows():
                if shapes is None:
                    shapes = [list(array.shape) for array in row]
                for column, array in enumerate(row):
                    shape = shapes[column]
                    if len(shape) != array.ndim:
                        raise ValueError(
                            f"output_shapes: column {column} has rows of {len(shape)} and of {array.ndim} axes"
                        )
                    shapes[column] = [n if n == m else None for n, m in zip(shape, array.shape)]
            seen += block.count
            if seen >= 1000:
                break
        if shapes is None:
            raise ValueError("output_shapes: the dataset has no rows")
        return shapes

    def output_types(self) -> list[np.dtype[Any]]:
        """The NumPy type of each column, read from the first row; text of any length is `<U`."""
        return [np.dtype(a.dtype.kind) if a.dtype.kind in "US" else a.dtype for a in self._first_row()]

    def get_batch_size(self) -> int:
        """The number of rows in a batch, 1 without `batch`."""
        return self.children[0].get_batch_size() if self.children else 1

    def get_repeat_count(self) -> int:
        """How often `repeat` goes through the rows; -1 without end, 1 without `repeat`."""
        return self.children[0].get_repeat_count() if self.children else 1

    def num_classes(self) -> int | None:
        """The number of classes, where the source knows it."""
        return self.children[0].num_classes() if self.children else None

    def get_class_indexing(self) -> dict[str, int]:
        """Class names and their numbers, where the source knows them; else empty."""
        return self.children[0].get_class_indexing() if self.children else {}

    def is_shuffled(self) -> bool:
        """Whether the order of rows is random."""
        return any(child.is_shuffled() for child in self.children)

    def is_sharded(self) -> bool:
        """Whether the rows are one shard of several."""
        return any(child.is_sharded() for child in self.children)
