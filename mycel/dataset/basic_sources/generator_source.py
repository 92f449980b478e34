"""`GeneratorDataset`: rows from the user's own objects, read by number or in their own order."""

from __future__ import annotations

import copy
import itertools
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from queue import SimpleQueue
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.logged_once import say_once
from mycel._src.foundation.python_runtime import finalization
from mycel._src.foundation.system import locks
from mycel.dataset.arguments import check_count, names
from mycel.dataset.basic_sources.mappable_source import MappableDataset
from mycel.dataset.execution.iterator_scope import TARGET, Pace, Scope
from mycel.dataset.execution.pass_context import Run
from mycel.dataset.execution.thread_safety import copies, held, is_safe
from mycel.dataset.execution.threaded_stages import Broken, Piece, Plan
from mycel.dataset.execution.worker_pool import Crew, crew_of, expected, has_processes
from mycel.dataset.nodes.mapping import check_processes
from mycel.dataset.nodes.node import Node
from mycel.dataset.pipeline_errors import InputTypeError, InputValueError, operation_failed, said
from mycel.dataset.random_numbers.random_streams import Stream, row_key, row_keys, using
from mycel.dataset.rows.array_ownership import apart
from mycel.dataset.rows.column_blocks import Array, Block, Row, as_array, drop, stack
from mycel.dataset.rows.preallocated_columns import Places
from mycel.dataset.samplers import Shuffle
from mycel.dataset.transforms.base import numpy_type


def _with(placed: dict[int, Array], values: list[Any]) -> Row:
    """Return the arrays of a row, of which some were copied."""
    return tuple([placed[c] if c in placed else as_array(v) for c, v in enumerate(apart(values))])


class _Turn:
    """Whose turn it is to read a source: two iterators must not read one at once."""

    def __init__(self) -> None:
        self.lock = locks.reentrant()


# By the numbers of sources, which live as long as those who read them.
_turns: finalization.Interned[int, _Turn] = finalization.Interned()


def _turn_of(source: Any) -> _Turn:
    return _Turn() if is_safe(source) else _turns.enter(id(source), _Turn())


class _Reading:
    """A source that is read by number, and what its rows must be.

    Its reader is alone with the source in this process: another iterator, or another dataset, that
    reads the same object waits.
    """

    def __init__(self, source: Any, names: Sequence[str], types: Sequence[Any] | None) -> None:
        self.source = source
        self.names = names
        self.types = types
        self._turn = _turn_of(source)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_turn"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._turn = _turn_of(self.source)

    @property
    def turn(self) -> Any:
        """The lock under which the source is read."""
        return self._turn.lock

    def convert(self, value: Any, places: Places) -> Row:
        """Return a row of what the source gave, at its places in a block."""
        several = isinstance(value, tuple) or (isinstance(value, list) and len(self.names) > 1)
        values = [*value] if several else [value]
        del value
        if len(values) != len(self.names):
            raise ValueError(f"the source gave {len(values)} values for {len(self.names)} columns")
        placed = places.take(values) if places.stacks or not places.count else None
        row = tuple([as_array(v) for v in apart(values)]) if not placed else _with(placed, values)
        if self.types is not None:
            self._check(row, self.types)
        places.count += 1
        return row

    def _check(self, row: Row, types: Sequence[Any]) -> None:
        for name, array, wanted in zip(self.names, row, types):
            if array.dtype != wanted:
                raise TypeError(
                    f"column {name!r} should have type {wanted} by column_types, but the source gave {array.dtype}"
                )

    def failed(self, number: int, error: Exception) -> RuntimeError:
        """Return the error of a row."""
        return operation_failed("GeneratorDataset", self.source, self.names, number, error)

    def some(
        self, numbers: Sequence[int], start: int, key: int, seeded: bool, seconds: float
    ) -> tuple[Block | None, BaseException | None]:
        """Read rows until they are all read, one fails, or a time is over.

        * `numbers`, `start`: the numbers of the rows, and the place of the first in the pass.
        * `key`, `seeded`: the key of the pass and node, and whether a seed was set.
        * `seconds`: the time, after which at least one is read.

        Returns the rows, if any, and the error of the one behind them.
        """
        stream, rows, end = Stream(0, seeded), list[Row](), time.perf_counter() + seconds
        source, convert, places = self.source, self.convert, Places(len(numbers))
        failure: BaseException | None = None
        try:
            with self.turn, using(stream):
                for number, row in zip(numbers, row_keys(key, start, len(numbers)).tolist()):
                    stream.begin(row)
                    rows.append(convert(source[number], places))
                    if time.perf_counter() > end:
                        break
        except Exception as error:
            failure = self.failed(numbers[len(rows)], error)
            failure.__cause__ = error
        except BaseException as error:
            # `SystemExit` and its like reach the consumer as they are.
            failure = error
        return places.block(rows) if rows else None, failure

    def read(self, numbers: Sequence[Any], start: int, key: int, seeded: bool) -> Block:
        """Read the rows of these `numbers`, of which the first has the place `start`.

        `key` and `seeded` are the key of the pass and node, and whether a seed was set. Raises
        Broken where a row fails.
        """
        block, failure = self.some(numbers, start, key, seeded, math.inf)
        if failure is not None:
            raise Broken(block, failure)
        assert block is not None
        return block

    def of(self, source: Any) -> _Reading:
        """Return the same of another source."""
        made = copy.copy(self)
        made.__setstate__({**made.__getstate__(), "source": source})
        return made


class _Collating(_Reading):
    """A source of which several rows become one.

    * `source`, `names`, `types`: as in `_Reading`.
    * `collate`: makes a row of a list of them; None stacks each column.
    """

    def __init__(self, source: Any, names: Sequence[str], types: Sequence[Any] | None, collate: Any) -> None:
        super().__init__(source, names, types)
        self.collate = collate

    def read(self, numbers: Sequence[Any], start: int, key: int, seeded: bool) -> Block:
        """Read the rows of lists of numbers, of which the first list has the place `start`.

        `key` and `seeded` are those of `_Reading.read`.
        """
        stream, rows = Stream(0, seeded), list[Row]()
        for place, some in enumerate(numbers, start):
            try:
                with self.turn, using(stream.begin(row_key(key, place))):
                    rows.append(self._together([self.source[number] for number in some]))
            except BaseException as error:
                failure = error
                if isinstance(error, Exception):
                    failure = operation_failed(
                        "GeneratorDataset", self.collate or self.source, self.names, f"batch {place}", error
                    )
                    failure.__cause__ = error
                raise Broken(Block.from_rows(rows) if rows else None, failure) from None
        return Block.from_rows(rows)

    def _together(self, items: list[Any]) -> Row:
        if self.collate is not None:
            return self.convert(self.collate(items), Places(1))
        alone = Places(1)
        columns = zip(*(self.convert(item, alone) for item in items))
        return tuple([stack(each, f"column {name!r}") for name, each in zip(self.names, columns)])


# How many rows a worker reads at once where each takes next to no time.
_MOST = 1024
# Rows for which there is no gain in sharing them among several workers.
_FEW = 64


class GeneratorDataset(MappableDataset):
    """Rows from a Python object.

    Args:
        source (Callable[[], Iterable] | Iterable | object): A function that returns an iterable, an
            iterable, or an object with `__getitem__` and `__len__`. Only the last is read by
            number: it can be sampled, and is shuffled unless `shuffle` is False. A row is a tuple
            with a value for each column, or the value of the only column.
        column_names (str | Sequence[str] | None): The names of the columns. Default: None.
        column_types (Sequence[Any] | None): The types that columns must have; values are checked,
            never converted. Default: None.
        schema (Schema | str | None): Must be None: others raise NotImplementedError. Default: None.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int): The number of threads that read; None for that of the settings.
            Default: 1.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for yes, where they
            are read by number. Default: None.
        sampler (Sampler | Iterable[int] | None): What chooses rows; an iterable gives their
            numbers. Default: None.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        python_multiprocessing (bool): Whether several workers are processes, as they are by
            default, or threads, whose copies are made when an epoch begins. What a source changes
            of itself, its own worker alone sees. Default: True.
        max_rowsize (int | list[int] | None): Changes nothing, as shared memory grows with the rows.
            Default: None.
        batch_sampler (Iterable[Sequence[int]] | None): Yields lists of row numbers, of which each
            is one row; workers take one list each. Default: None.
        collate_fn (Callable[[list[Any]], Any] | None): Makes that row of what the source gives for
            such a list; without it columns are stacked, also those of dictionaries. Default: None.

    Raises:
        RuntimeError: From the consumer's `next` when the source fails; the message names the row.

    Examples:
        >>> import mycel.dataset as ds
        >>> def squares():
        ...     for i in range(3):
        ...         yield i, i * i
        >>> data = ds.GeneratorDataset(squares, ["n", "square"])
        >>> [int(row["square"]) for row in data.create_dict_iterator(num_epochs=1,
        ...     output_numpy=True)]
        [0, 1, 4]
    """

    _uses_workers = True
    _in_memory = True
    _gave_rows = False

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
        arguments.optional("GeneratorDataset", "python_multiprocessing", python_multiprocessing, bool)
        if max_rowsize is not None:
            arguments.integer("GeneratorDataset", "max_rowsize", max_rowsize, -1)
        check_processes("GeneratorDataset", bool(python_multiprocessing), max_rowsize)
        self.python_multiprocessing = bool(python_multiprocessing)
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
                f"GeneratorDataset: source must be a function, an iterable, or have __getitem__ and __len__, "
                f"not {source!r} of type {type(source).__name__}"
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
            others = {"num_samples": num_samples, "sampler": sampler, "num_shards": num_shards, "shuffle": shuffle}
            for argument, other in others.items():
                if other is not None:
                    raise ValueError(
                        f"GeneratorDataset: batch_sampler decides on the rows, so {argument} cannot be given with it"
                    )
        if collate_fn is not None and batch_sampler is None:
            raise ValueError("GeneratorDataset: collate_fn goes with batch_sampler, which is missing")
        self.batch_sampler = batch_sampler
        self.collate_fn = collate_fn
        self._reading = _Reading(source, self.column_names, self.column_types)
        if batch_sampler is not None:
            self._reading = _Collating(source, self.column_names, self.column_types, collate_fn)
        if self._by_number and self.python_multiprocessing and (self.num_parallel_workers or 1) > 1:
            expected("GeneratorDataset")

    def reads_by_number(self) -> bool:
        return self._by_number and self.batch_sampler is None

    def get_batch_size(self) -> int:
        """Return -1 with `batch_sampler`, whose batches may differ in size, and 1 without."""
        return 1 if self.batch_sampler is None else -1

    def is_shuffled(self) -> bool:
        return self.reads_by_number() and super().is_shuffled()

    def called(self) -> Sequence[Any]:
        return (self.source,)

    def _columns(self) -> list[str]:
        return list(self.column_names)

    def _total(self) -> int:
        try:
            return len(self.source)
        except Exception as error:
            kind = {TypeError: InputTypeError, ValueError: InputValueError}.get(type(error), RuntimeError)
            raise kind(
                f"GeneratorDataset: the source, of class {type(self.source).__name__}, does not say its length: "
                f"{said(error)}"
            ) from error

    def _count(self) -> int:
        if self.reads_by_number():
            return super()._count()
        length = getattr(self.batch_sampler, "__len__", None)
        if length is not None:
            return int(length())
        if self.batch_sampler is not None:
            return sum(1 for _ in self._batches(self._probe(), 0))
        return Node._count(self)

    def _count_is_fixed(self) -> bool:
        return self.reads_by_number()

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        if self._by_number:
            return self._sampled(run, skip)
        return drop(self._streamed(run), skip)

    def _plan(self, run: Run, skip: int) -> Plan:
        workers = self._asked(run)
        if not run.ahead or not self._by_number or workers < 2:
            return Node._plan(self, run, skip)
        assert run.scope is not None
        order = self.sampler.draw(self._total(), run, self._labels) if self.batch_sampler is None else None
        key, seeded = run.key(self._height, 9), run.seeded
        crew = self._crew(workers, run.scope)
        most = workers if order is None else min(workers, len(order) - skip)
        readers = self._readers(max(1, most)) if crew is None else []
        if len(readers) == 1:
            return Node._plan(self, run, skip)
        free: SimpleQueue[_Reading] = SimpleQueue()
        for reader in readers:
            free.put(reader)

        count = len(readers) if crew is None else crew.count

        def feed(pace: Pace) -> Iterator[Piece]:
            if order is None:
                for place, some in enumerate(self._batches(run, skip), skip):
                    yield [some], place, 1
                return
            start = skip
            while start < len(order):
                left = len(order) - start
                # The last rows are for all workers.
                size = pace.rows(min(_MOST, left, max(_FEW, -(-left // count))))
                yield order[start : start + size].tolist(), start, size
                start += size

        def send(numbers: list[Any], start: int) -> Any:
            assert crew is not None
            return crew.call(numbers, start, key, seeded)

        def work(numbers: list[Any], start: int) -> Block:
            reader = free.get()
            try:
                return reader.read(numbers, start, key, seeded)
            finally:
                free.put(reader)

        counter = run.scope.counter(self)
        if crew is not None:
            return Plan(feed, light=True).then(send, crew.count, counter, apart=True)
        return Plan(feed, light=True).then(work, len(readers), counter)

    def _reader(self, run: Run) -> Callable[[list[int], int], Block]:
        key, seeded = run.key(self._height, 9), run.seeded
        workers = self._asked(run) if run.ahead else 0
        crew = None if workers < 2 or run.scope is None else self._crew(workers, run.scope)

        def read(numbers: list[int], start: int) -> Block:
            if crew is not None:
                block: Block = crew.call(numbers, start, key, seeded)
                return block
            return self._reading.read(numbers, start, key, seeded)

        return read

    def _crew(self, workers: int, scope: Scope) -> Crew | None:
        """Return worker processes that read; None where threads do, from copies of the source."""
        if not self.python_multiprocessing or not has_processes("GeneratorDataset") or held(self.source):
            return None
        try:
            return crew_of(scope, self, "GeneratorDataset", self._reading.read, [self.source], workers)
        except TypeError:
            # No process can be sent it: nor can threads have copies, which is said below.
            return None

    def _readers(self, workers: int) -> list[_Reading]:
        """Return readers for several threads, each with its copy of the source, or one."""
        with self._reading.turn:
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
        return [self._reading.of(source) for source in sources]

    def _sampled(self, run: Run, skip: int) -> Iterator[Block]:
        plan = self._plan(run, skip)
        return self._flow(plan, run) if plan.is_shared else self._in_turn(run, skip)

    def _in_turn(self, run: Run, skip: int) -> Iterator[Block]:
        if self.batch_sampler is not None:
            yield from self._collated(run, skip)
            return
        order = self.sampler.draw(self._total(), run, self._labels).tolist()
        key = run.key(self._height, 9)
        self._alone(run)
        while skip < len(order):
            # Small blocks where rows are slow.
            block, failure = self._reading.some(order[skip : skip + run.block], skip, key, run.seeded, TARGET)
            if block is not None:
                yield block
                skip += block.count
            if failure is not None:
                raise failure

    def _streamed(self, run: Run) -> Iterator[Block]:
        places = Places(run.block)
        return _in_blocks(itertools.islice(self._stream(run, places), self._num_samples), places)

    def _stream(self, run: Run, places: Places) -> Iterator[Row]:
        number = 0
        key, stream = run.key(self._height, 9), run.stream()
        try:
            with using(stream.begin(row_key(key, 0))):
                items = self.source() if callable(self.source) and not hasattr(self.source, "__next__") else self.source
                once = hasattr(items, "__next__")
                items = iter(items) if hasattr(items, "__iter__") else _until_stop(items)
            while True:
                with using(stream):
                    came = [next(items, _END)]
                if came[0] is _END:
                    break
                # Not held here meanwhile: what nothing else refers to is not copied.
                row = self._reading.convert(came.pop(), places)
                self._gave_rows = True
                yield row
                number += 1
                stream.begin(row_key(key, number))
        except Exception as error:
            raise self._reading.failed(number, error) from error
        if not number and self._gave_rows and once and not callable(self.source):
            raise RuntimeError(
                "GeneratorDataset: the source is an iterator that was read to its end before; "
                "give a function that returns a new one"
            )

    def _batches(self, run: Run, skip: int) -> Iterator[list[int]]:
        """Yield the numbers of each batch, without those of the first `skip` batches."""
        place, key, stream = 0, run.key(self._height, 10), run.stream()
        try:
            with using(stream.begin(row_key(key, 0))):
                left = iter(self.batch_sampler or ())
            while True:
                with using(stream):
                    some = next(left, None)
                if some is None:
                    return
                if place >= skip:
                    yield [int(number) for number in some]
                place += 1
                stream.begin(row_key(key, place))
        except Exception as error:
            raise operation_failed(
                "GeneratorDataset", self.batch_sampler, self.column_names, f"batch {place}", error
            ) from error

    def _collated(self, run: Run, skip: int) -> Iterator[Block]:
        key = run.key(self._height, 9)
        self._alone(run)
        for place, some in enumerate(self._batches(run, skip), skip):
            try:
                yield self._reading.read([some], place, key, run.seeded)
            except Broken as broken:
                raise broken.error from broken.error.__cause__


_END = object()


def _until_stop(source: Any) -> Iterator[Any]:
    """Yield the values of an object that has only `__next__`."""
    while True:
        try:
            value = next(source)
        except StopIteration:
            return
        yield value


def _in_blocks(rows: Iterable[Row], places: Places) -> Iterator[Block]:
    """Yield rows in blocks, small where rows are slow; those before one that fails come out."""
    waiting: list[Row] = []
    left = iter(rows)
    first = 0.0
    while True:
        try:
            if not waiting:
                first = time.perf_counter()
            row = next(left)
        except StopIteration:
            break
        except BaseException:
            if waiting:
                yield places.block(waiting)
            raise
        waiting.append(row)
        if len(waiting) == places.most or time.perf_counter() - first > TARGET:
            full, waiting = waiting, []
            yield places.block(full)
    if waiting:
        yield places.block(waiting)
