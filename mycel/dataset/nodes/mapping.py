"""`map`: applying operations to columns, by whole blocks where the result is the same.

What is done to a block is in `map_execution.py`, and is the same wherever it is done: in the thread
that asks for rows, in small pieces so that rows come out as they are done; on threads, where
workers were asked for or a flow below has workers anyway and no function of the user's is called;
or in worker processes. A `Compose` counts as the operations in it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.log import logger
from mycel._src.foundation.logged_once import no_effect
from mycel.dataset import config
from mycel.dataset.arguments import names, positions
from mycel.dataset.callback import Calls, check_callbacks
from mycel.dataset.execution.pass_context import Run
from mycel.dataset.execution.thread_safety import threads_for
from mycel.dataset.execution.threaded_stages import Broken, Piece, Plan, in_pieces
from mycel.dataset.execution.worker_pool import crew_of, expected, has_processes
from mycel.dataset.execution_options import ErrorSamplesMode
from mycel.dataset.nodes.cached_rows import blocks_of, check_cached, plan_of
from mycel.dataset.nodes.map_execution import Applied
from mycel.dataset.nodes.node import Node
from mycel.dataset.nodes.sync_wait import give_back, leave_out
from mycel.dataset.pipeline_errors import InputValueError
from mycel.dataset.rows.column_blocks import Block
from mycel.dataset.transforms.base import Compose, Transform


def flatten(operations: Any) -> list[Callable[..., Any]]:
    """Return the operations as one list, with those of each `Compose` in its place.

    Raises ValueError, as MindSpore does, for what cannot be called and for a class of transforms.
    """
    group = list(operations) if isinstance(operations, (list, tuple)) else [operations]
    flat: list[Callable[..., Any]] = []
    for operation in group:
        if isinstance(operation, Compose):
            flat.extend(flatten(operation.transforms))
        elif isinstance(operation, type) and issubclass(operation, Transform):
            raise InputValueError(
                f"map: operations must be functions or transforms, not the class {operation}; call it to make one"
            )
        elif callable(operation):
            flat.append(operation)
        else:
            raise ValueError(
                f"map: operations must be functions or transforms, not {operation!r} of type {type(operation).__name__}"
            )
    if not flat:
        raise InputValueError("map: the list of operations is empty")
    return flat


def _in_library(operation: Any) -> bool:
    """Return whether an operation is a transform of this package that calls no users' function."""
    if not isinstance(operation, Transform) or not type(operation).__module__.startswith("mycel."):
        return False
    values = [value for held in vars(operation).values() for value in _flat(held)]
    return all(isinstance(value, type) or not callable(value) or _in_library(value) for value in values)


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _flat(part)
    else:
        yield value


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
        raise InputValueError(
            f"{operation}: the columns would be {columns}, with a name used twice; change output_columns"
        )
    return columns, places


def check_processes(operation: str, python_multiprocessing: Any, max_rowsize: Any) -> None:
    """Raise TypeError unless `python_multiprocessing` is a bool; `max_rowsize` is not needed."""
    arguments.flag(operation, "python_multiprocessing", python_multiprocessing)
    if max_rowsize is not None:
        no_effect(operation, "max_rowsize", max_rowsize, "the memory that processes share grows with the rows", True)


class MapNode(Node):
    """The rows of `input_dataset` with `operations` applied to some columns.

    `input_columns`, `output_columns`, `num_parallel_workers`, `python_multiprocessing`, `cache`,
    `callbacks`, `max_rowsize` and `offload` are those of `Dataset.map`.
    """

    operation = "map"
    _uses_workers = True
    _row_for_row = True

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
        self.calls_back = self.calls_back or bool(self.callbacks)
        self.awaits_steps = self.awaits_steps or any(callback.awaits_steps for callback in self.callbacks)
        self.python_multiprocessing = python_multiprocessing
        arguments.optional("map", "offload", offload, bool)
        self.offload = offload
        self.operations = flatten(operations)
        present = input_dataset._columns()
        self.inputs = present[:1] if input_columns is None else names(input_columns, "map: input_columns")
        self.outputs = list(self.inputs) if output_columns is None else names(output_columns, "map: output_columns")
        self._input_places = positions("map", self.inputs, present)
        self.columns, self._places = place_outputs("map", present, self.inputs, self.outputs)
        self.applied = Applied(self.operations, self.inputs, self.outputs, self._input_places, self._places)
        # Whether no function of the user's is called, so that threads may share the operations.
        self._in_library = all(map(_in_library, self.operations))
        if self._in_library and all(op.vectorised for op in self.operations if isinstance(op, Transform)):
            self.first_piece = 32
        if python_multiprocessing and self._in_library:
            no_effect("map", "python_multiprocessing", True, "transforms of the library run in threads")
        elif python_multiprocessing:
            expected("map")

        if self.cache is not None:
            check_cached(self, "map")

    def called(self) -> Sequence[Any]:
        return self.operations

    def _columns(self) -> list[str]:
        return list(self.columns)

    def _count(self) -> int:
        if config.get_error_samples_mode() is ErrorSamplesMode.SKIP:
            return super()._count()
        return self.children[0]._count()

    def _goes_alone(self) -> bool:
        """Return whether rows are made one by one: callbacks see them, or some are left out."""
        return bool(self.callbacks) or config.get_error_samples_mode() is not ErrorSamplesMode.RETURN

    def _may_share(self, run: Run) -> bool:
        """Return whether the rows may be made ahead of each other, as a stage of a larger flow."""
        return run.ahead and not self._goes_alone()

    def _workers(self, run: Run) -> int:
        """Return how many workers were asked for; 0 where rows are made in the thread that asks."""
        if not run.ahead:
            return 0
        if self._apart:
            return self._asked(run) or config.get_num_parallel_workers()
        return self.threads(self._asked(run))

    def _offered(self) -> int:
        """Return how many threads may call the operations where nobody asked for any."""
        gains = self._in_library and all(op.in_threads for op in self.operations if isinstance(op, Transform))
        return config.offered_workers() if gains else 0

    def threads(self, workers: int) -> int:
        """Return how many of so many threads may call the operations."""
        own = [operation for operation in self.operations if not isinstance(operation, Transform)]
        return threads_for("map", own, workers)

    @property
    def _apart(self) -> bool:
        """Whether processes call the operations; those of the library gain nothing by it."""
        return self.python_multiprocessing and not self._in_library and has_processes("map")

    def _plan(self, run: Run, skip: int) -> Plan:
        if self.cache is not None and self._may_share(run):
            return plan_of(self, run, skip, "map") or super()._plan(run, skip)
        if not self._may_share(run) or not (self._workers(run) or self._in_library):
            return super()._plan(run, skip)
        return self._shared_plan(run, skip)

    def _shared_plan(self, run: Run, skip: int) -> Plan:
        workers = self._workers(run)
        assert run.scope is not None
        plan = self.children[0]._plan(run, skip)
        counter, work = run.scope.counter(self), self._work(run, workers)
        plan.offer(self._offered())
        return plan.then(work, workers, counter, apart=self._apart, quick=self._in_library and not self._apart)

    def _work(self, run: Run, workers: int) -> Callable[[Block, int], Block]:
        """Return what workers do to the rows of a piece, given the number of its first row."""
        key, applied, seeded = run.key(self._height, 6), self.applied, run.seeded
        if not self._apart:
            return lambda block, start: applied.through(block, start, key, seeded)
        assert run.scope is not None
        crew = crew_of(run.scope, self, "map", applied.through, self.operations, workers)
        return lambda block, start: crew.call(block, start, key, seeded)

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        mode = config.get_error_samples_mode()
        if mode is not ErrorSamplesMode.RETURN:
            if self.cache is not None:
                no_effect("map", "cache", self.cache, "rows that may be left out are not kept")
            return leave_out(self, run, self._one_by_one(run, 0, mode), skip)
        kept = blocks_of(self, run, skip, "map", lambda start: self._uncached(run, start))
        return self._uncached(run, skip) if kept is None else kept

    def _uncached(self, run: Run, skip: int) -> Iterator[Block]:
        mode = ErrorSamplesMode.RETURN
        if self.callbacks and not run.probes:
            return self._one_by_one(run, skip, mode)
        if self._workers(run) or (run.ahead and self._in_library):
            plan = self._shared_plan(run, skip)
            if plan.is_shared:
                return self._flow(plan, run)
        return self._inline(run, skip)

    def _inline(self, run: Run, skip: int) -> Iterator[Block]:
        """Yield the rows in the thread that asks for them, as they are done."""
        pace = self._alone(run)
        key = run.key(self._height, 6)
        hooks = config.debug_hooks()
        start = skip
        for block in self.children[0]._blocks(run, skip):
            yield from in_pieces(
                block, start, pace, lambda rows, at: self.applied.through(rows, at, key, run.seeded, hooks)
            )
            start += block.count

    def _one_by_one(self, run: Run, skip: int, mode: ErrorSamplesMode) -> Iterator[Block]:
        """Yield rows one by one, with the callbacks of each.

        Rows for which an operation fails are left out unless `mode` is RETURN; with REPLACE the
        first ones that do not fail stand for them at the end.
        """
        calls = Calls([] if run.probes else self.callbacks, self, run, skip)
        calls.begin()
        failed = 0
        results = self._results(calls, run, skip)
        for done in results:
            if isinstance(done, Block):
                calls.step_end()
                yield done
                continue
            if mode is ErrorSamplesMode.RETURN or not isinstance(done, RuntimeError):
                results.close()
                raise done
            logger.warning("%s; the row is left out, as set_error_samples_mode asks", done)
            failed += 1
            give_back(self.children[0], run, 1)
        calls.end()
        while failed and mode is ErrorSamplesMode.REPLACE:
            found = False
            for block in self._good(run):
                found = True
                yield block
                failed -= 1
                if not failed:
                    break
            if not found:
                raise RuntimeError("map: an operation failed for every row, so there is none to take their places")

    def _good(self, run: Run) -> Iterator[Block]:
        """Yield the rows again for which no operation fails, without callbacks."""
        for done in self._results(Calls((), self, run, 0), run, 0):
            if isinstance(done, Block):
                yield done

    def _results(self, calls: Calls, run: Run, skip: int) -> Generator[Any, None, None]:
        """Yield for each row a block, or the error of an operation; steps begin on the way."""

        def rows(_: Any = None) -> Iterator[Piece]:
            start = skip
            for block in self.children[0]._blocks(run, skip):
                for index in range(block.count):
                    calls.step_begin()
                    yield block.slice(index, index + 1), start, 1
                    start += 1

        def done(row: Block, number: int) -> Any:
            try:
                return work(row, number)
            except Broken as broken:
                return broken.error

        workers = self._workers(run)
        if workers > 1 or (workers and self._apart):
            assert run.scope is not None
            work = self._work(run, workers)
            plan = Plan(rows, light=False).then(done, workers, run.scope.counter(self), apart=self._apart)
            yield from self._flow(plan, run)
            return
        self._alone(run)
        work = functools.partial(
            self.applied.through, key=run.key(self._height, 6), seeded=run.seeded, hooks=config.debug_hooks()
        )
        for row, number, _ in rows():
            yield done(row, number)
