"""Execution of a `map` on a block of rows, vectorised, fused or row by row.

Operations that are `Transform`s of this package and declare `vectorised` receive a stacked column
at once: the result is what they would give row by row, several times faster. Everything else is
called once for each row and receives what the one before it returned: only what leaves `map`
becomes an array. Random operations receive, for every row, the key (seed, epoch, node, row,
operation), so the form of the call changes nothing of what they draw. Transforms of images that
follow one another are computed at once where they can be (`vision/fused_transforms.py`), and so are
those of text (`text/fused_transforms.py`). All this is the same in the pipeline's thread, on
threads and in a worker process. Where an operation fails for a row, the rows before it go through
the operations that are left, and come out before the error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from mycel._src.foundation.python_runtime.reference_counts import ONE_OWNER
from mycel.dataset import debug
from mycel.dataset.execution.threaded_stages import Broken
from mycel.dataset.pipeline_errors import operation_failed, operation_name
from mycel.dataset.random_numbers.random_streams import Stream, operation_keys, row_keys, using
from mycel.dataset.rows.array_ownership import owned
from mycel.dataset.rows.column_blocks import Block, Column, as_array, is_picture, plain, try_stack, user_rows
from mycel.dataset.transforms.base import Joined, Transform
from mycel.dataset.vision.fused_transforms import steps

Keys = np.ndarray[Any, np.dtype[np.uint64]]
_NOTHING = "the function returned None; it must return the new value"


def as_values(result: Any) -> tuple[Any, ...]:
    """Return what an operation returned for one row by columns, of which a tuple has several, as a
    new tuple.
    """
    if not isinstance(result, tuple):
        if result is None:
            raise TypeError(_NOTHING)
        return (result,)
    if any([value is None for value in result]):
        raise TypeError(_NOTHING)
    return (*result,)


class Applied:
    """The `operations` of a `map` on some columns: `inputs` and `outputs` by name.

    `input_places` says where the inputs are in a block, `places` where each column of the result is
    in outputs + block.
    """

    def __init__(
        self,
        operations: Sequence[Callable[..., Any]],
        inputs: Sequence[str],
        outputs: Sequence[str],
        input_places: Sequence[int],
        places: Sequence[int],
    ) -> None:
        self.operations = operations
        self.inputs = inputs
        self.outputs = outputs
        self.input_places = input_places
        self.places = places
        self.random = any(getattr(op, "random", True) for op in operations)
        self.steps = _with_chains(steps(operations))

    def through(self, block: Block, start: int, key: int, seeded: bool, hooks: Sequence[Any] = ()) -> Block:
        """Return a block with the operations applied to it.

        * `start`: the number of its first row.
        * `key`, `seeded`: the key of the pass and node, and whether a seed was set.
        * `hooks`: what sees the rows in debug mode.

        Raises Broken where an operation fails.
        """
        keys = row_keys(key, start, block.count) if self.random else None
        columns: list[Column] = [block.columns[p] for p in self.input_places]
        final = len(self.operations) - 1
        previous: Callable[..., Any] | None = None
        failure: BaseException | None = None
        left: list[tuple[int, Any]] = list(enumerate(self.operations)) if hooks else [*self.steps]
        left.reverse()
        while left:
            number, operation = left.pop()
            if isinstance(operation, Joined):
                found = operation.apply(columns, block.count, keys)
                if found is None:
                    left += reversed(list(enumerate(operation.operations, number)))
                else:
                    columns, previous = found, operation.operations[-1]
                continue
            if hooks and not number:
                columns = _seen(hooks, operation, True, columns, block.count)
            if previous is not None and not isinstance(previous, Transform):
                columns = _as_it_takes(operation, columns)
            previous = operation
            draws = keys is not None and getattr(operation, "random", True)
            own = operation_keys(keys, number) if draws and keys is not None else None
            done = _apply_stacked(operation, columns, own)
            if done is None:
                done, error = self._row_by_row(operation, columns, block.count, own, start, seeded, number == final)
                if error is not None:
                    failure, count = error, len(done[0]) if done else 0
                    if not count:
                        raise Broken(None, failure)
                    block, keys = block.slice(0, count), keys[:count] if keys is not None else None
            columns = done
            if hooks:
                columns = _seen(hooks, operation, False, columns, block.count)
        if len(columns) != len(self.outputs):
            raise RuntimeError(
                f"map: the operations returned {len(columns)} columns for {len(self.outputs)} output columns "
                f"{self.outputs}; set output_columns"
            )
        available = columns + block.columns
        result = Block([available[p] for p in self.places], block.count)
        if failure is not None:
            raise Broken(result, failure)
        return result

    def _row_by_row(
        self,
        operation: Callable[..., Any],
        columns: list[Column],
        count: int,
        keys: Keys | None,
        start: int,
        seeded: bool,
        is_last: bool,
    ) -> tuple[list[Column], BaseException | None]:
        """Call an operation for each row; return the columns up to a row that fails, and why."""
        seeds = keys.tolist() if keys is not None else None
        rows = list(zip(*(user_rows(column, count) for column in columns)))
        results: list[Sequence[Any]] = []
        failure: BaseException | None = None
        try:
            with using(Stream(0, seeded) if seeds is not None else None) as stream:
                for index in range(count):
                    if stream is not None and seeds is not None:
                        stream.begin(seeds[index])
                    given = rows[index]
                    result = operation(*given)
                    # An array that nothing else refers to, or the only one given: most functions.
                    if type(result) is np.ndarray and result.dtype.char != "O":
                        if result.base is None and result.flags.writeable and getrefcount(result) < ONE_OWNER:
                            results.append((result,))
                            continue
                        if result is given[0] and len(given) == 1:
                            results.append(given)
                            continue
                    values = as_values(result)
                    result = None
                    kept = owned(values, given)
                    results.append([as_array(value) for value in kept] if is_last else kept)
        except Exception as error:
            failure = operation_failed("map", operation, self.inputs, start + len(results), error)
            failure.__cause__ = error
        except BaseException as error:
            # `SystemExit` and its like reach the consumer as they are.
            failure = error
        widths = {len(row) for row in results}
        if len(widths) > 1:
            raise RuntimeError(f"map: operation {operation!r} returned {sorted(widths)} columns for different rows")
        return [list(column) for column in zip(*results)], failure


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


def _with_chains(found: Sequence[tuple[int, Any]]) -> list[tuple[int, Any]]:
    """Return the operations with their numbers, those that transforms join as one."""
    result: list[tuple[int, Any]] = []
    place = 0
    while place < len(found):
        number, first = found[place]
        then = found[place + 1][1] if place + 1 < len(found) else None
        following = [operation for _, operation in found[place + 2 :]]
        joined = then.chained(first, following) if isinstance(then, Transform) else None
        result.append((number, first if joined is None else joined))
        place += 1 if joined is None else len(joined.operations)
    return result


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
    except Exception:
        # Row by row, the same error comes with the number of its row.
        return None
