"""`map`: applying operations to columns, by whole blocks where the result is the same.

Operations that are `Transform`s of this package and declare `vectorised` receive a stacked column
at once: the result is what they would give row by row, several times faster. Everything else is
called once for each row, by a pool of threads if one was asked for, and receives what the one
before it returned: only what leaves `map` becomes an array. A `Compose` counts as the operations in
it. Random operations receive, for every row, the key (seed, epoch, node, row, operation), so
neither the form of the call nor the number of threads changes what they draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mycel.base.log import logger
from mycel.dataset import config, debug
from mycel.dataset.arguments import names, positions
from mycel.dataset.blocks import Array, Block, Column, as_array, drop, is_picture, plain, try_stack, user_rows
from mycel.dataset.callback import Calls, check_callbacks
from mycel.dataset.failure import operation_failed, operation_name
from mycel.dataset.node import Node
from mycel.dataset.notices import no_effect, say_once
from mycel.dataset.options import ErrorSamplesMode
from mycel.dataset.randomness import Stream, operation_keys, row_keys, using
from mycel.dataset.run import Run
from mycel.dataset.sharing import held
from mycel.dataset.transforms.base import Compose, Transform
from mycel.dataset.workers import Workers

Keys = np.ndarray[Any, np.dtype[np.uint64]]


def flatten(operations: Any) -> list[Callable[..., Any]]:
    """Return the operations as one list, with those of each `Compose` in its place.

    Raises TypeError for what cannot be called.
    """
    group = list(operations) if isinstance(operations, (list, tuple)) else [operations]
    flat: list[Callable[..., Any]] = []
    for operation in group:
        if isinstance(operation, Compose):
            flat.extend(flatten(operation.transforms))
        elif callable(operation):
            flat.append(operation)
        else:
            raise TypeError(
                f"map: expected functions or transforms, got {operation!r} of type {type(operation).__name__}"
            )
    if not flat:
        raise ValueError("map: the list of operations is empty")
    return flat


def place_outputs(
    operation: str, present: Sequence[str], inputs: Sequence[str], outputs: Sequence[str]
) -> tuple[list[str], list[int]]:
    """Return the columns after an operation, and the place of each in outputs + present.

    As many outputs as inputs take the inputs' places; otherwise the outputs come first, followed by
    the remaining columns. `operation` is named in messages.
    """
    count = len(outputs)
    if count == len(inputs):
        into = dict(zip(inputs, range(count)))
        columns = [outputs[into[name]] if name in into else name for name in present]
        places = [into.get(name, count + i) for i, name in enumerate(present)]
    else:
        kept = [i for i, name in enumerate(present) if name not in inputs]
        columns = [*outputs, *(present[i] for i in kept)]
        places = [*range(count), *(count + i for i in kept)]
    if len(set(columns)) != len(columns):
        raise ValueError(f"{operation}: the columns would be {columns}, with a name used twice; change output_columns")
    return columns, places


_NOTHING = "the function returned None; it must return the new value"


def as_values(result: Any) -> tuple[Any, ...]:
    """Return what an operation returned for one row by columns, of which a tuple has several."""
    if not isinstance(result, tuple):
        if result is None:
            raise TypeError(_NOTHING)
        return (result,)
    if any(value is None for value in result):
        raise TypeError(_NOTHING)
    return result


def as_columns(result: Any) -> tuple[Array, ...]:
    """Convert what an operation returned for one row into arrays; a tuple is several columns."""
    if isinstance(result, np.ndarray):
        return (result,)
    return tuple([as_array(value) for value in as_values(result)])


def check_processes(operation: str, python_multiprocessing: Any, max_rowsize: Any) -> None:
    """Warn that arguments meant for worker processes have no effect; TypeError if not a bool."""
    if not isinstance(python_multiprocessing, bool):
        raise TypeError(f"{operation}: python_multiprocessing must be a bool, got {python_multiprocessing!r}")
    if python_multiprocessing:
        no_effect(operation, "python_multiprocessing", True, "workers are threads of this process")
    if max_rowsize is not None:
        no_effect(operation, "max_rowsize", max_rowsize, "threads share rows of any size")


class MapNode(Node):
    """The rows of `input_dataset` with `operations` applied to some columns.

    `input_columns`, `output_columns`, `num_parallel_workers`, `python_multiprocessing`, `cache`,
    `callbacks`, `max_rowsize` and `offload` are those of `Dataset.map`.
    """

    _uses_workers = True

    def __init__(
        self,
        input_dataset: Node,
        operations: Any = None,
        input_columns: str | Sequence[str] | None = None,
        output_columns: str | Sequence[str] | None = None,
        num_parallel_workers: int | None = None,
        python_multiprocessing: bool = False,
        cache: Any = None,
        callbacks: Any = None,
        max_rowsize: Any = None,
        offload: bool | None = None,
    ) -> None:
        super().__init__(input_dataset, num_parallel_workers, cache)
        check_processes("map", python_multiprocessing, max_rowsize)
        self.callbacks = check_callbacks(callbacks)
        if offload is not None and not isinstance(offload, bool):
            raise TypeError(f"map: offload must be a bool, got {offload!r}")
        if offload:
            no_effect("map", "offload", True, "operations run on the CPU")
        self.operations = flatten(operations)
        present = input_dataset._columns()
        self.inputs = present[:1] if input_columns is None else names(input_columns, "map: input_columns")
        self.outputs = list(self.inputs) if output_columns is None else names(output_columns, "map: output_columns")
        self._input_places = positions("map", self.inputs, present)
        self.columns, self._places = place_outputs("map", present, self.inputs, self.outputs)
        self._random = any(getattr(op, "random", True) for op in self.operations)

    def _columns(self) -> list[str]:
        return list(self.columns)

    def _count(self) -> int:
        if config.get_error_samples_mode() is ErrorSamplesMode.SKIP:
            return super()._count()
        return self.children[0]._count()

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        crew = _Crew(1 if config.get_debug_mode() else config.workers_or_default(self.num_parallel_workers))
        mode = config.get_error_samples_mode()
        try:
            if mode is not ErrorSamplesMode.RETURN:
                yield from drop(self._row_by_row(run, 0, crew, mode), skip)
            elif self.callbacks and not run.probes:
                yield from self._row_by_row(run, skip, crew, mode)
            else:
                start = skip
                for block in self.children[0]._blocks(run, skip):
                    yield self._through(block, start, run, crew)
                    start += block.count
        finally:
            crew.close()

    def _row_by_row(self, run: Run, skip: int, crew: _Crew, mode: ErrorSamplesMode) -> Iterator[Block]:
        """Yield rows one by one, with the callbacks of each.

        Rows for which an operation fails are left out unless `mode` is RETURN; with REPLACE the
        first ones that do not fail stand for them at the end.
        """
        callbacks = [] if run.probes else self.callbacks
        before = run.epoch * self.children[0]._count() if callbacks and run.epoch else 0
        calls = Calls(callbacks, run.epoch, before, skip)
        calls.begin()
        start, failed = skip, 0
        for block in self.children[0]._blocks(run, skip):
            for index in range(block.count):
                calls.step_begin()
                try:
                    done = self._through(block.slice(index, index + 1), start + index, run, crew)
                except RuntimeError as error:
                    if mode is ErrorSamplesMode.RETURN:
                        raise
                    logger.warning("%s; the row is left out, as set_error_samples_mode asks", error)
                    failed += 1
                    continue
                calls.step_end()
                yield done
            start += block.count
        calls.end()
        while failed and mode is ErrorSamplesMode.REPLACE:
            found = False
            for block in self._row_by_row(run, 0, crew, ErrorSamplesMode.SKIP):
                found = True
                yield block
                failed -= 1
                if not failed:
                    break
            if not found:
                raise RuntimeError("map: an operation failed for every row, so there is none to take their places")

    def _through(self, block: Block, start: int, run: Run, crew: _Crew) -> Block:
        """Return a block, whose first row is number `start`, with the operations applied to it."""
        keys = row_keys(run.key(self._height, 6), start, block.count) if self._random else None
        columns: list[Column] = [block.columns[p] for p in self._input_places]
        hooks = config.debug_hooks()
        final = len(self.operations) - 1
        previous: Callable[..., Any] | None = None
        for number, operation in enumerate(self.operations):
            if hooks and not number:
                columns = _seen(hooks, operation, True, columns, block.count)
            if previous is not None and not isinstance(previous, Transform):
                columns = _as_it_takes(operation, columns)
            previous = operation
            draws = keys is not None and getattr(operation, "random", True)
            own = operation_keys(keys, number) if draws and keys is not None else None
            done = _apply_stacked(operation, columns, own)
            if done is None:
                keep = as_columns if number == final else as_values
                crew.prepare(self, block.count)
                done = self._apply_rows(operation, columns, block.count, own, start, run.seeded, crew, keep)
            columns = done
            if hooks:
                columns = _seen(hooks, operation, False, columns, block.count)
        if len(columns) != len(self.outputs):
            raise RuntimeError(
                f"map: the operations returned {len(columns)} columns for {len(self.outputs)} output columns "
                f"{self.outputs}; set output_columns"
            )
        available = columns + block.columns
        return Block([available[p] for p in self._places], block.count)

    def _sharing(self, workers: int) -> int:
        """Return how many threads may call the operations: one if any uses an open file."""
        for operation in self.operations:
            reason = "" if isinstance(operation, Transform) else held(operation)
            if reason:
                name = operation_name(operation)
                say_once(
                    "map",
                    name,
                    message="map: num_parallel_workers=%d has no effect: threads must not share %s, as %s; one "
                    "thread calls it. Open files where they are used",
                    arguments=(workers, name, reason),
                )
                return 1
        return workers

    def _apply_rows(
        self,
        operation: Callable[..., Any],
        columns: list[Column],
        count: int,
        keys: Keys | None,
        start: int,
        seeded: bool,
        crew: _Crew,
        keep: Callable[[Any], tuple[Any, ...]],
    ) -> list[Column]:
        seeds = keys.tolist() if keys is not None else None
        rows = list(zip(*(user_rows(column, count) for column in columns)))

        def work(first: int, last: int) -> list[tuple[Any, ...]]:
            results = []
            index = first
            try:
                with using(Stream(0, seeded) if seeds is not None else None) as stream:
                    for index in range(first, last):
                        if stream is not None and seeds is not None:
                            stream.begin(seeds[index])
                        results.append(keep(operation(*rows[index])))
            except Exception as error:
                raise operation_failed("map", operation, self.inputs, start + index, error) from error
            return results

        if crew.pool is None:
            done = work(0, count)
        else:
            piece = -(-count // crew.workers)
            pieces = [(work, (i, min(i + piece, count))) for i in range(0, count, piece)]
            done = [row for part in crew.pool.run(pieces) for row in part]
        widths = {len(row) for row in done}
        if len(widths) != 1:
            raise RuntimeError(f"map: operation {operation!r} returned {sorted(widths)} columns for different rows")
        return [list(column) for column in zip(*done)]


class _Crew:
    """The threads of one pass, which start when rows are first shared out."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.pool: Workers | None = None

    def prepare(self, node: MapNode, count: int) -> None:
        """Start the threads if a block of `count` rows is to be shared out."""
        if self.pool is None and self.workers > 1 and count > 1:
            self.workers = node._sharing(self.workers)
            self.pool = Workers(self.workers, "mycel-map") if self.workers > 1 else None

    def close(self) -> None:
        """End the threads."""
        if self.pool is not None:
            self.pool.close()


def _seen(
    hooks: Sequence[Any], operation: Callable[..., Any], is_first: bool, columns: list[Column], count: int
) -> list[Column]:
    """Return the columns as debug hooks at an operation give them; see `debug.at`."""
    name = operation_name(operation)
    for hook in hooks:
        rows = [debug.at(hook, name, is_first, plain(row)) for row in Block(columns, count).rows()]
        columns = [list(column) for column in zip(*map(as_values, rows))]
    return columns


def _as_it_takes(operation: Callable[..., Any], columns: list[Column]) -> list[Column]:
    """Return what a function returned as the operation after it takes it: pictures as arrays where
    MindSpore would not compute it in Python.
    """
    if not isinstance(operation, Transform) or operation.in_python:
        return columns
    return [
        [as_array(value) if is_picture(value) else value for value in column] if isinstance(column, list) else column
        for column in columns
    ]


def _apply_stacked(operation: Callable[..., Any], columns: list[Column], keys: Keys | None) -> list[Column] | None:
    """Apply an operation to whole columns; return None if it must see the rows one by one."""
    if not isinstance(operation, Transform) or not operation.vectorised or len(columns) != 1:
        return None
    column = columns[0]
    if isinstance(column, list) and not all(isinstance(value, np.ndarray) for value in column):
        # What a function returned: pictures stay pictures.
        if any(map(is_picture, column)):
            return None
        try:
            column = [as_array(value) for value in column]
        except (TypeError, ValueError):
            return None
    block = try_stack(column)
    if block is None or not operation.accepts(block.shape[1:], block.dtype):
        return None
    try:
        return [operation.apply_block(block, keys)]
    except (ValueError, TypeError, IndexError):
        # Row by row, the same error comes with the number of its row.
        return None
