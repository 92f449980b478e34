"""Samplers: which rows an epoch visits, and in which order, for sources read by number.

A sampler maps (number of rows, seed, epoch) to an array of row numbers. It keeps no state, so an
epoch can be drawn again when training resumes. A sampler with a child samples positions in what the
child chose. All shards of a `DistributedSampler` must draw the same permutation, so its seed is 0
if none was configured.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Any

import numpy as np

from mycel._src.engines.select import engine
from mycel._src.foundation import arguments
from mycel.dataset.arguments import INT32_MAX, check_count, check_counts
from mycel.dataset.constructor_arguments import MadeOf
from mycel.dataset.execution.pass_context import Begun, Run, Stretch
from mycel.dataset.execution.remaining_rows import undone
from mycel.dataset.pipeline_errors import InputValueError, said
from mycel.dataset.random_numbers.random_streams import using

Indices = np.ndarray[Any, np.dtype[np.int64]]
Labels = Callable[[str], np.ndarray[Any, np.dtype[Any]]]


class Shuffle(str, Enum):
    """The ways a source may shuffle: GLOBAL permutes all rows, FALSE none.

    Sources of files know more, and say which: FILES permutes the files, INFILE the rows of each,
    PARTIAL pieces of files and then rows within as many of them as are held together, and ADAPTIVE
    chooses between GLOBAL and PARTIAL.

    >>> import mycel.dataset as ds
    >>> data = ds.NumpySlicesDataset([5, 6, 7], shuffle=ds.Shuffle.FALSE)
    >>> [int(x) for x, in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    [5, 6, 7]
    """

    FALSE = "false"
    ADAPTIVE = "adaptive"
    GLOBAL = "global"
    PARTIAL = "partial"
    FILES = "files"
    INFILE = "infile"


def wants_shuffle(operation: str, shuffle: bool | Shuffle | None, kinds: Sequence[Shuffle] = ()) -> bool:
    """Return whether this value requests shuffling; None does, as in MindSpore.

    `operation` is named in messages, and `kinds` are what it knows besides.
    """
    if shuffle is None or shuffle is True or shuffle is Shuffle.GLOBAL:
        return True
    if shuffle is False or shuffle is Shuffle.FALSE:
        return False
    if isinstance(shuffle, Shuffle):
        known = ", ".join(map(str, (Shuffle.GLOBAL, *kinds)))
        raise NotImplementedError(f"{operation}: {shuffle} is not supported; use True, False, or {known}")
    raise arguments.wrong_type(operation, "shuffle", "a bool or a Shuffle", shuffle)


def _not_none(sampler: str, shuffle: object) -> None:
    if shuffle is None:
        raise arguments.wrong_type(sampler, "shuffle", "a bool or a Shuffle", shuffle)


class BuiltinSampler(MadeOf):
    """The base class of samplers: the number of samples and the child."""

    shuffles = False
    # From 0 on, shards may have different lengths.
    offset = -1
    # Whether it takes one of several shards itself.
    _divides = False

    def __init__(self, num_samples: int | None = None) -> None:
        if num_samples is not None:
            check_count(type(self).__name__, "num_samples", num_samples, 0)
        # As in MindSpore, 0 asks for all rows.
        self.num_samples = num_samples or None
        self.child_sampler: BuiltinSampler | None = None

    def add_child(self, sampler: BuiltinSampler) -> None:
        """Sample from what `sampler` chooses instead of from all rows.

        Raises RuntimeError if there is a child already.
        """
        if self.child_sampler is not None:
            raise RuntimeError(f"{type(self).__name__}: add_child: there is a child sampler already")
        if sampler is not None and not isinstance(sampler, BuiltinSampler):
            raise TypeError(f"{type(self).__name__}.add_child: sampler must be a sampler, not {sampler!r}")
        self.child_sampler = sampler

    def get_child(self) -> BuiltinSampler | None:
        """Return the child sampler, or None."""
        return self.child_sampler

    def get_num_samples(self) -> int | None:
        """Return the number of samples requested, here or in the child, or None for all."""
        child = None if self.child_sampler is None else self.child_sampler.get_num_samples()
        known = [count for count in (self.num_samples, child) if count is not None]
        return min(known) if known else None

    def is_shuffled(self) -> bool:
        """Return whether the order is random, here or in the child."""
        return self.shuffles or (self.child_sampler is not None and self.child_sampler.is_shuffled())

    def is_sharded(self) -> bool:
        """Return whether only one shard is visited, here or in the child."""
        return self.child_sampler is not None and self.child_sampler.is_sharded()

    def draw(self, rows: int, run: Run, labels: Labels, depth: int = 0) -> Indices:
        """Return the row numbers for one pass over a source.

        Args:
            rows (int): The number of rows of the source.
            run (Run): The pass, with its seed and epoch.
            labels (Callable[[str], numpy.ndarray[Any, numpy.dtype[Any]]]): A function that returns
                the labels in a column.
            depth (int): How many samplers have this one as their child, directly or not. Default:
                0.

        Returns:
            numpy.ndarray[Any, numpy.dtype[numpy.int64]]: The row numbers, int64.
        """
        if self.child_sampler is None:
            chosen = self._draw(rows, run, labels, depth)
        else:
            # All shards have one order of the rows below.
            common = run if run.seeded or not self._divides else Run(0, run.epoch)
            below = self.child_sampler.draw(rows, common, labels, depth + 1)
            chosen = below[self._draw(len(below), run, lambda column: labels(column)[below], depth)]
        return chosen if self.num_samples is None else chosen[: self.num_samples]

    def length(self, rows: int, labels: Labels) -> int:
        """Return how many rows one pass visits."""
        return len(self.draw(rows, Run(0), labels))

    def shards(self) -> tuple[int, int] | None:
        """Return the number of shards of all rows and the number of this one; None where this
        sampler makes none, or chooses some of its rows.
        """
        return None

    def length_after(self, rows: int, stretches: Sequence[Stretch]) -> int:
        """Return how many rows a pass visits after stretches of other numbers of shards.

        * `rows`: the number of rows of the source.
        * `stretches`: as in `Run`.
        """
        run = Run(0)
        run.begun = Begun(stretches=tuple(stretches))
        return len(self.draw(rows, run, lambda column: np.zeros(rows)))

    def _draw(self, rows: int, run: Run, labels: Labels, depth: int) -> Indices:
        raise NotImplementedError(f"{type(self).__name__} must define _draw")


class SequentialSampler(BuiltinSampler):
    """Rows in order, from `start_index` on.

    >>> import mycel.dataset as ds
    >>> data = ds.NumpySlicesDataset([5, 6, 7], sampler=ds.SequentialSampler(1))
    >>> [int(x) for x, in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    [6, 7]
    """

    def __init__(self, start_index: int | None = None, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self.start_index = 0 if start_index is None else check_count("SequentialSampler", "start_index", start_index, 0)

    def _draw(self, rows: int, run: Run, labels: Labels, depth: int) -> Indices:
        if self.start_index >= rows > 0:
            raise ValueError(
                f"SequentialSampler: start_index {self.start_index} is not below the number of rows, {rows}"
            )
        return np.arange(self.start_index, rows, dtype=np.int64)


class RandomSampler(BuiltinSampler):
    """Rows in random order, or drawn independently with `replacement`.

    There are at most as many as the source has rows.

    >>> import mycel.dataset as ds
    >>> data = ds.NumpySlicesDataset([5, 6, 7], sampler=ds.RandomSampler())
    >>> sorted(int(x) for x, in data.create_tuple_iterator(num_epochs=1, output_numpy=True))
    [5, 6, 7]
    """

    shuffles = True

    def __init__(
        self, replacement: bool = False, num_samples: int | None = None, shuffle: Shuffle = Shuffle.GLOBAL
    ) -> None:
        super().__init__(num_samples)
        arguments.flag("RandomSampler", "replacement", replacement)
        _not_none("RandomSampler", shuffle)
        wants_shuffle("RandomSampler", shuffle)
        self.replacement = replacement

    def _draw(self, rows: int, run: Run, labels: Labels, depth: int) -> Indices:
        random = run.generator(depth, 1)
        return random.integers(0, rows, rows) if self.replacement else random.permutation(rows)


class SubsetSampler(BuiltinSampler):
    """The rows with these numbers, in this order.

    Raises ValueError while iterating if a number is out of range.

    >>> import mycel.dataset as ds
    >>> data = ds.NumpySlicesDataset([5, 6, 7], sampler=ds.SubsetSampler([2, 0]))
    >>> [int(x) for x, in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    [7, 5]
    """

    def __init__(self, indices: Iterable[int] | int, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        name = type(self).__name__
        if isinstance(indices, int) and not isinstance(indices, bool):
            indices = [indices]
        if not isinstance(indices, Iterable):
            raise TypeError(f"{name}: indices must be integers, at least one, not {type(indices).__name__}")
        if isinstance(indices, range):
            if indices[INT32_MAX:]:
                raise ValueError(f"{name}: there must be at most {INT32_MAX} indices, not {indices!r:.80}")
            engine().need(f"{name}: a list of {len(indices)} indices", 40 * len(indices))
        self.indices = np.asarray([_index(name, index) for index in indices], dtype=np.int64)
        if not self.indices.size:
            raise TypeError(f"{name}: indices must be integers, at least one, not {indices!r:.80}")

    def get_num_samples(self) -> int | None:
        return min(len(self.indices), super().get_num_samples() or len(self.indices))

    def _draw(self, rows: int, run: Run, labels: Labels, depth: int) -> Indices:
        return in_range(type(self).__name__, self.indices, rows)


class SubsetRandomSampler(SubsetSampler):
    """The rows with these numbers, in random order.

    >>> import mycel.dataset as ds
    >>> data = ds.NumpySlicesDataset([5, 6, 7], sampler=ds.SubsetRandomSampler([2, 0]))
    >>> sorted(int(x) for x, in data.create_tuple_iterator(num_epochs=1, output_numpy=True))
    [5, 7]
    """

    shuffles = True

    def _draw(self, rows: int, run: Run, labels: Labels, depth: int) -> Indices:
        chosen = super()._draw(rows, run, labels, depth)
        return chosen[run.generator(depth, 2).permutation(len(chosen))]


class WeightedRandomSampler(BuiltinSampler):
    """Row i with probability proportional to `weights[i]`, with or without replacement.

    There are at most as many as the source has rows.

    >>> import mycel.dataset as ds
    >>> sampler = ds.WeightedRandomSampler([0.0, 1.0, 0.0], 2)
    >>> data = ds.NumpySlicesDataset([5, 6, 7], sampler=sampler)
    >>> [int(x) for x, in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    [6, 6]
    """

    shuffles = True

    def __init__(self, weights: Sequence[float], num_samples: int | None = None, replacement: bool = True) -> None:
        super().__init__(num_samples)
        for weight in weights if isinstance(weights, (list, np.ndarray)) else [weights]:
            arguments.instance("WeightedRandomSampler", "each of weights", weight, (int, float, np.number), "a number")
        self.weights = np.asarray(weights, dtype=np.float64)
        if self.weights.ndim != 1 or not self.weights.size:
            raise InputValueError(f"WeightedRandomSampler: weights must be a list of numbers, not {weights!r:.80}")
        if not np.isfinite(self.weights).all() or (self.weights < 0).any() or not self.weights.any():
            raise InputValueError(
                "WeightedRandomSampler: weights must be finite and not negative, and one must be positive"
            )
        self.replacement = arguments.flag("WeightedRandomSampler", "replacement", replacement)

    def _draw(self, rows: int, run: Run, labels: Labels, depth: int) -> Indices:
        if len(self.weights) > rows:
            raise InputValueError(f"WeightedRandomSampler: {len(self.weights)} weights for {rows} rows")
        random = run.generator(depth, 3)
        # As in MindSpore, at most as many as there are rows.
        count = rows if self.num_samples is None else min(self.num_samples, rows)
        if self.replacement:
            edges = np.cumsum(self.weights)
            chosen = np.searchsorted(edges, random.random(count) * edges[-1], side="right")
            bounded: Indices = np.minimum(chosen, np.flatnonzero(self.weights)[-1]).astype(np.int64)
            return bounded
        # The `count` smallest of independent exponential times with these rates (Efraimidis and
        # Spirakis, 2006). Rows of weight 0 come last.
        with np.errstate(divide="ignore"):
            times = random.exponential(size=len(self.weights)) / self.weights
        return np.argsort(times, kind="stable")[:count].astype(np.int64)


class PKSampler(BuiltinSampler):
    """`num_val` random rows of each of `num_class` classes (all by default), class by class.

    Args:
        num_val (int): The rows of each class. A class with fewer rows is sampled with replacement.
        num_class (int | None): The number of classes, the first in their order; all of them by
            default. Default: None.
        shuffle (bool): Whether the order of classes is random. Default: False.
        class_column (str): The column with the labels, which the source must know without reading
            rows. Default: "label".
        num_samples (int | None): The largest number of rows in total. Default: None.

    Examples:
        >>> import mycel.dataset as ds
        >>> rows = {"x": [1, 2, 3, 4], "label": [0, 1, 1, 1]}
        >>> data = ds.NumpySlicesDataset(rows, sampler=ds.PKSampler(2, class_column="label"))
        >>> [int(label) for _, label in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
        [0, 0, 1, 1]
    """

    def __init__(
        self,
        num_val: int,
        num_class: int | None = None,
        shuffle: bool = False,
        class_column: str = "label",
        num_samples: int | None = None,
    ) -> None:
        super().__init__(num_samples)
        self.num_val = check_count("PKSampler", "num_val", num_val, 1)
        self.num_class = None if num_class is None else check_count("PKSampler", "num_class", num_class, 1)
        self.shuffles = arguments.flag("PKSampler", "shuffle", shuffle)
        self.class_column = arguments.text("PKSampler", "class_column", class_column)

    def _draw(self, rows: int, run: Run, labels: Labels, depth: int) -> Indices:
        values = np.asarray(labels(self.class_column))
        classes = np.unique(values)
        random = run.generator(depth, 4)
        if self.shuffles:
            classes = random.permutation(classes)
        if self.num_class is not None:
            if self.num_class > len(classes):
                raise ValueError(f"PKSampler: num_class {self.num_class}, but there are {len(classes)} classes")
            classes = classes[: self.num_class]
        chosen = []
        for label in classes:
            members = np.flatnonzero(values == label)
            chosen.append(random.choice(members, self.num_val, replace=len(members) < self.num_val))
        return np.concatenate(chosen).astype(np.int64)


class DistributedSampler(BuiltinSampler):
    """One of `num_shards` shards of the rows: every `num_shards`-th row of an order they all share.

    Args:
        num_shards (int): The number of shards, and the number of this one.
        shard_id (int): The number of shards, and the number of this one.
        shuffle (bool): Whether the order is random. Default: True.
        num_samples (int | None): The largest number of rows. Default: None.
        offset (int): -1 makes all shards equally long, so the last ones may repeat the first rows.
            From 0 on, row i goes to shard `(offset + i) % num_shards`, and nothing is repeated.
            Default: -1.

    Examples:
        >>> import mycel.dataset as ds
        >>> data = ds.NumpySlicesDataset([5, 6, 7], sampler=ds.DistributedSampler(2, 1,
        ...     shuffle=False))
        >>> [int(x) for x, in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
        [6, 5]
    """

    _divides = True

    def __init__(
        self, num_shards: int, shard_id: int, shuffle: bool = True, num_samples: int | None = None, offset: int = -1
    ) -> None:
        super().__init__(num_samples)
        self.num_shards = check_count("DistributedSampler", "num_shards", num_shards, 1)
        self.shard_id = check_count("DistributedSampler", "shard_id", shard_id, 0)
        if shard_id >= num_shards:
            raise InputValueError(f"DistributedSampler: shard_id {shard_id} is not below num_shards {num_shards}")
        _not_none("DistributedSampler", shuffle)
        self.shuffles = wants_shuffle("DistributedSampler", shuffle)
        self.offset = check_count("DistributedSampler", "offset", offset, -1)
        if offset > num_shards:
            raise InputValueError(f"DistributedSampler: offset {offset} is above num_shards {num_shards}")

    def is_sharded(self) -> bool:
        return True

    def shards(self) -> tuple[int, int] | None:
        return (self.num_shards, self.shard_id) if self.num_samples is None else None

    def _draw(self, rows: int, run: Run, labels: Labels, depth: int) -> Indices:
        order = np.arange(rows, dtype=np.int64)
        if self.shuffles:
            common = run if run.seeded else Run(0, run.epoch)
            order = common.generator(depth, 5).permutation(rows)
        order = undone(order, run.stretches, run)
        rows = len(order)
        if self.offset >= 0:
            return order[(self.shard_id - self.offset) % self.num_shards :: self.num_shards]
        count = -(-rows // self.num_shards)
        places = self.shard_id + self.num_shards * np.arange(count, dtype=np.int64)
        return order[places % rows] if rows else order


class Sampler(BuiltinSampler):
    """The base class of users' samplers: `__iter__` yields row numbers.

    `dataset_size` is the number of rows and is set before each epoch. `num_samples` limits how many
    row numbers are taken.

    >>> import mycel.dataset as ds
    >>> class Backwards(ds.Sampler):
    ...     def __iter__(self):
    ...         return iter(range(self.dataset_size - 1, -1, -1))
    >>> data = ds.NumpySlicesDataset([5, 6, 7], sampler=Backwards())
    >>> [int(x) for x, in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    [7, 6, 5]
    """

    def __init__(self, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self.dataset_size = 0

    def __iter__(self) -> Iterator[int]:
        raise NotImplementedError(f"{type(self).__name__}: a sampler must define __iter__, yielding row numbers")

    def _draw(self, rows: int, run: Run, labels: Labels, depth: int) -> Indices:
        self.dataset_size = rows
        name = type(self).__name__
        chosen: list[int] = []
        with using(run.stream().begin(run.key(depth, 9))):
            for index in self._numbers():
                # One by one, so that an endless iterable stops at the first wrong number.
                chosen.append(_row(name, index, rows))
                if self.num_samples is not None and len(chosen) >= self.num_samples:
                    break
        return np.array(chosen, dtype=np.int64)

    def _numbers(self) -> Iterator[int]:
        """Yield what `__iter__` does; raise RuntimeError that names the sampler where it fails."""
        count = 0
        try:
            for number in self:
                yield number
                count += 1
        except NotImplementedError:
            raise
        except Exception as error:
            raise RuntimeError(
                f"{type(self).__name__}: the sampler failed after {count} row numbers: {said(error)}"
            ) from error


class IterSampler(Sampler):
    """The row numbers that an iterable yields.

    >>> import mycel.dataset as ds
    >>> data = ds.NumpySlicesDataset([5, 6, 7], sampler=ds.IterSampler(range(2)))
    >>> [int(x) for x, in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    [5, 6]
    """

    def __init__(self, sampler: Iterable[int], num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self.sampler = sampler

    def __iter__(self) -> Iterator[int]:
        return iter(self.sampler)


def in_range(sampler: str, indices: Indices, rows: int) -> Indices:
    """Return the indices; raise ValueError for one that no row has."""
    wrong = indices[(indices < 0) | (indices >= rows)]
    if wrong.size:
        _row(sampler, wrong[0], rows)
    return indices


def _index(sampler: str, index: Any) -> int:
    if isinstance(index, (bool, np.bool_)):
        raise TypeError(f"{sampler}: indices must be integers, not bool")
    try:
        number = operator.index(index)
    except TypeError:
        raise TypeError(f"{sampler}: indices must be integers, not {index!r:.80}") from None
    if abs(number) > INT32_MAX:
        raise InputValueError(f"{sampler}: there is no row {number!r:.80}; there can be {INT32_MAX} rows")
    return number


def _row(sampler: str, index: Any, rows: int) -> int:
    number = _index(sampler, index)
    if not 0 <= number < rows:
        raise InputValueError(f"{sampler}: there is no row {number}; rows are numbered 0 to {rows - 1}")
    return number


def select_sampler(
    operation: str,
    num_samples: int | None,
    sampler: Any,
    shuffle: bool | Shuffle | None,
    num_shards: int | None,
    shard_id: int | None,
) -> BuiltinSampler:
    """Return the sampler that the arguments of a source describe.

    `num_samples`, `sampler`, `shuffle`, `num_shards` and `shard_id` are those of `MappableDataset`;
    `operation` is named in messages. Row numbers in the place of a sampler may come with
    `num_samples`, and with `shuffle=False`. Raises InputValueError where arguments contradict each
    other.
    """
    check_counts(operation, num_samples=num_samples, num_shards=num_shards, shard_id=shard_id)
    if (num_shards is None) != (shard_id is None):
        raise InputValueError(
            f"{operation}: num_shards and shard_id must be given together, not {num_shards} and {shard_id}"
        )
    if sampler is not None:
        given = {"num_samples": num_samples, "shuffle": shuffle, "num_shards": num_shards, "shard_id": shard_id}
        listed = not isinstance(sampler, (str, type, BuiltinSampler)) and (
            isinstance(sampler, Iterable) or hasattr(sampler, "__getitem__")
        )
        if listed and shuffle is False:
            del given["shuffle"]
        if listed:
            del given["num_samples"]
        clashing = [f"{name}={value}" for name, value in given.items() if value is not None]
        if clashing:
            raise InputValueError(
                f"{operation}: a sampler was given, so {', '.join(clashing)} would have no effect; leave one out"
            )
        if isinstance(sampler, BuiltinSampler):
            return sampler
        if listed:
            return IterSampler(sampler, num_samples)
        raise arguments.wrong_type(operation, "sampler", "a sampler or row numbers", sampler)
    random = wants_shuffle(operation, shuffle)
    if num_shards is not None and shard_id is not None:
        return DistributedSampler(num_shards, shard_id, random, num_samples)
    return RandomSampler(num_samples=num_samples) if random else SequentialSampler(num_samples=num_samples)
