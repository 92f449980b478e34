"""`batch` and its relatives: several rows become one, along a new first axis.

`BatchNode` asks its input for blocks of the batch size, so that a stacked column usually passes
through without a copy. Invariant: a batch never mixes shapes or types; rows are padded only on
request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation.logged_once import no_effect
from mycel.dataset import config
from mycel.dataset.arguments import check_count, names, positions
from mycel.dataset.execution.pass_context import Run
from mycel.dataset.execution.thread_safety import threads_for
from mycel.dataset.execution.threaded_stages import Piece, Plan
from mycel.dataset.execution.worker_pool import crew_of, expected, has_processes
from mycel.dataset.nodes.mapping import check_processes, place_outputs
from mycel.dataset.nodes.node import Node
from mycel.dataset.nodes.sync_wait import give_back, leave_out
from mycel.dataset.pipeline_errors import operation_failed
from mycel.dataset.random_numbers.random_streams import Stream, row_key, using
from mycel.dataset.rows.array_ownership import Given
from mycel.dataset.rows.column_blocks import (
    Array,
    Block,
    Column,
    Reader,
    as_array,
    column_rows,
    join,
    plain,
    stack,
    user_rows,
)
from mycel.dataset.rows.padded_stacking import check_pad_info, pad_stack


class BatchInfo:
    """The batch that a function is called for: its number in the epoch, and the epoch's."""

    __slots__ = ("_batch", "_epoch")

    def __init__(self, batch: int = 0, epoch: int = 0) -> None:
        self._batch = batch
        self._epoch = epoch

    def get_batch_num(self) -> int:
        """Return the number of the batch within the epoch, from 0."""
        return self._batch

    def get_epoch_num(self) -> int:
        """Return the number of the epoch, from 0."""
        return self._epoch


class PerBatch:
    """A function of whole batches: of the columns `inputs`, giving `outputs`, by name."""

    def __init__(self, function: Callable[..., Any], inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self.function = function
        self.inputs = inputs
        self.outputs = outputs

    def of(self, rows: Block, number: int, epoch: int, key: int, seeded: bool) -> list[Column]:
        """Return the columns for the rows of a batch.

        * `rows`: the columns `inputs` of the rows.
        * `number`, `epoch`: those of `BatchInfo`.
        * `key`, `seeded`: the key of the batch, and whether a seed was set.
        """
        lists = [list(user_rows(column, rows.count)) for column in rows.columns]
        try:
            with using(Stream(0, seeded).begin(key)):
                result = self.function(*lists, BatchInfo(number, epoch))
            columns = [*result] if isinstance(result, tuple) else [result]
            del result
            return _made_columns(columns, self.outputs, [row for rows in lists for row in rows])
        except Exception as error:
            raise operation_failed("batch", self.function, self.inputs, f"batch {number}", error) from error


def _check_batch_size(operation: str, batch_size: Any) -> Any:
    return batch_size if callable(batch_size) else check_count(operation, "batch_size", batch_size, 1)


class BatchNode(Node):
    """The rows of `input_dataset` stacked in groups.

    `batch_size`, `drop_remainder`, `num_parallel_workers`, `per_batch_map`, `input_columns`,
    `output_columns`, `python_multiprocessing` and `max_rowsize` are those of `Dataset.batch`.
    """

    operation = "batch"
    _uses_workers = True
    _row_for_row = True

    def __init__(
        self,
        input_dataset: Node,
        batch_size: int | Callable[[BatchInfo], int],
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        per_batch_map: Callable[..., Any] | None = None,
        input_columns: str | Sequence[str] | None = None,
        output_columns: str | Sequence[str] | None = None,
        python_multiprocessing: bool = False,
        max_rowsize: Any = None,
    ) -> None:
        super().__init__(input_dataset, num_parallel_workers)
        check_processes(self.operation, python_multiprocessing, max_rowsize)
        self.batch_size = _check_batch_size(self.operation, batch_size)
        self.rows_of_one = 1 if callable(batch_size) else batch_size
        arguments.flag(self.operation, "drop_remainder", drop_remainder)
        self.drop_remainder = drop_remainder
        if per_batch_map is not None:
            arguments.function(self.operation, "per_batch_map", per_batch_map)
        if per_batch_map is None and (input_columns is not None or output_columns is not None):
            raise ValueError(
                f"{self.operation}: input_columns and output_columns go with per_batch_map, which is missing"
            )
        self.per_batch_map = per_batch_map
        present = input_dataset._columns()
        self.inputs = list(present) if input_columns is None else names(input_columns, "batch: input_columns")
        self.outputs = list(self.inputs) if output_columns is None else names(output_columns, "batch: output_columns")
        self._input_places = positions(self.operation, self.inputs, present)
        self.columns, self._places = place_outputs(self.operation, present, self.inputs, self.outputs)
        self.python_multiprocessing = python_multiprocessing
        if python_multiprocessing and per_batch_map is None:
            no_effect(self.operation, "python_multiprocessing", True, "there is no per_batch_map for processes to call")
        elif python_multiprocessing:
            expected("batch")
        self._is_plain = per_batch_map is None and type(self)._batched is BatchNode._batched
        self._per_batch = None if per_batch_map is None else PerBatch(per_batch_map, self.inputs, self.outputs)

    def called(self) -> Sequence[Any]:
        return () if self.per_batch_map is None else (self.per_batch_map,)

    def _columns(self) -> list[str]:
        return list(self.columns)

    def _count(self) -> int:
        rows = self.children[0]._count()
        if not callable(self.batch_size):
            size = int(self.batch_size)
            return rows // size if self.drop_remainder else -(-rows // size)
        number, run = 0, self._probe()
        while rows > 0:
            rows -= self._size(number, run)
            if rows >= 0 or not self.drop_remainder:
                number += 1
        return number

    def row_for_row(self) -> bool:
        return not callable(self.batch_size)

    def hands_over(self) -> bool:
        # What `stack` makes is new, and so are columns that sources and transforms give as arrays.
        return self._is_plain

    def get_batch_size(self) -> int:
        # As in MindSpore, -1 where a function decides.
        return -1 if callable(self.batch_size) else int(self.batch_size)

    def _size(self, number: int, run: Run) -> int:
        if not callable(self.batch_size):
            return int(self.batch_size)
        with using(run.stream().begin(run.key(self._height, 10, number))):
            found = self.batch_size(BatchInfo(number, run.epoch))
        count: int = check_count(self.operation, "the result of batch_size", found, 1)
        return count

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        skipped = sum(self._size(number, run) for number in range(skip)) if callable(self.batch_size) else 0
        if not callable(self.batch_size):
            skipped = skip * self.batch_size
        plan = self._plan_of_groups(run, skip, skipped)
        if plan is not None and plan.is_shared:
            return self._flow(plan, run)
        self._alone(run)
        if self._is_plain and not callable(self.batch_size):
            return self._at_once(run, self.batch_size, skipped)
        return (self._made(block, number, run) for block, number, _ in self._groups(run, skip, skipped))

    # Whether a batch is nothing but its rows, stacked.
    _is_plain = False

    def _at_once(self, run: Run, size: int, skipped: int) -> Iterator[Block]:
        """Yield batches of `size` rows: where rows come as arrays, all of a block in one."""
        reader = Reader(self.children[0]._blocks(self._below(run, size), skipped))
        while True:
            rows = reader.groups(size, run.block)
            if rows is None or self._left_out(rows, size, run):
                return
            if rows.count > size and any(isinstance(c, list) or c.dtype.char == "O" for c in rows.columns):
                for start in range(0, rows.count, size):
                    yield self._stacked_rows(rows.slice(start, start + size))
            else:
                yield self._stacked_rows(rows, max(1, rows.count // size))
            if rows.count < size:
                return

    def _left_out(self, rows: Block, size: int, run: Run) -> bool:
        """Return whether rows are too few for a batch of `size`."""
        missing = size - rows.count
        if missing > 0:
            # What is released for a batch is more or less than it took.
            give_back(self.children[0], run, (self.rows_of_one if self.drop_remainder else 0) - missing)
        return missing > 0 and self.drop_remainder

    def _stacked_rows(self, rows: Block, count: int = 1) -> Block:
        columns = [self._stacked(rows.columns[i], name) for i, name in enumerate(self.columns)]
        size = rows.count // count
        return Block([[c] if c.dtype.char == "O" else c.reshape((count, size, *c.shape[1:])) for c in columns], count)

    def _plan(self, run: Run, skip: int) -> Plan:
        if callable(self.batch_size):
            return super()._plan(run, skip)
        return self._plan_of_groups(run, skip, skip * self.batch_size) or super()._plan(run, skip)

    def _plan_of_groups(self, run: Run, skip: int, skipped: int) -> Plan | None:
        workers = self._asked(run) if run.ahead else 0
        apart = run.ahead and self.per_batch_map is not None and self.python_multiprocessing and has_processes("batch")
        if apart and not workers:
            workers = config.get_num_parallel_workers()
        if not workers or run.scope is None:
            return None
        if not apart and self.per_batch_map is not None:
            workers = threads_for("batch", [self.per_batch_map], workers)
        plan = Plan(lambda pace: self._groups(run, skip, skipped), light=False)
        counter = run.scope.counter(self)
        if not apart:
            return plan.then(lambda block, number: self._made(block, number, run), workers, counter)
        assert self._per_batch is not None
        crew = crew_of(run.scope, self, self.operation, self._per_batch.of, [self.per_batch_map], workers)

        def send(block: Block, number: int) -> Block:
            made = crew.call(block.pick(self._input_places), number, run.epoch, self._key(number, run), run.seeded)
            return self._of_columns(self._placed(made, block))

        return plan.then(send, workers, counter, apart=True)

    def _groups(self, run: Run, skip: int, skipped: int) -> Iterator[Piece]:
        """Yield the rows of each batch, with the number of the batch."""
        child = self.children[0]
        number = skip
        reader = Reader(child._blocks(self._below(run, self._size(number, run)), skipped))
        while True:
            size = self._size(number, run)
            block = reader.read(self.rows_of_one if child.is_synced else size)
            if block is not None and self.rows_of_one < size and child.is_synced:
                # A function decides on the size, and an update releases one row.
                give_back(child, run, size - 1)
                more = reader.read(size - 1)
                block = block if more is None else join([block, more])
            if block is None or self._left_out(block, size, run):
                return
            yield block, number, 1
            if block.count < size:
                return
            number += 1

    def _below(self, run: Run, size: int) -> Run:
        """Return the pass of the rows for batches of about `size`."""
        below = run.with_block(size)
        below.grouped *= self.rows_of_one
        return below

    def _made(self, block: Block, number: int, run: Run) -> Block:
        return self._of_columns(self._batched(block, number, run))

    @staticmethod
    def _of_columns(columns: Sequence[Array]) -> Block:
        return Block([[column] for column in columns], 1)

    def _key(self, number: int, run: Run) -> int:
        return run.key(self._height, 9, number)

    def _batched(self, block: Block, number: int, run: Run) -> list[Array]:
        if self._per_batch is None:
            return [self._stacked(block.columns[i], name) for i, name in enumerate(self.columns)]
        rows = block.pick(self._input_places)
        made = self._per_batch.of(rows, number, run.epoch, self._key(number, run), run.seeded)
        return self._placed(made, block)

    def _placed(self, made: list[Column], block: Block) -> list[Array]:
        available = made + block.columns
        return [self._stacked(available[p], name) for p, name in zip(self._places, self.columns)]

    def _stacked(self, column: Column, name: str) -> Array:
        return column if isinstance(column, np.ndarray) else stack(column, f"{self.operation}: column {name!r}")


def _made_columns(columns: list[Any], outputs: Sequence[str], inputs: list[Any]) -> list[Column]:
    """Return the columns that a `per_batch_map` returned: one for each output, made of `inputs`.

    Each column is an array, a list of rows, or a dictionary, which is the whole batch of its
    column. Rows that are dictionaries become a dictionary of lists.
    """
    kinds = _kinds(columns)
    if len(columns) != len(outputs):
        raise ValueError(
            f"per_batch_map returned {len(columns)} columns, {kinds}, for {len(outputs)} output columns "
            f"{list(outputs)}; return a tuple with a list of rows, or an array, for each, and set output_columns"
        )
    made: list[Column] = []
    given = Given(inputs)
    for name in outputs:
        column = columns.pop(0)
        if isinstance(column, list) and column and all(isinstance(row, dict) for row in column):
            column = {key: [row[key] for row in column] for key in column[0]}
        if hasattr(column, "asnumpy"):
            column = as_array(column)
        if (
            isinstance(column, np.ndarray)
            and not column.ndim
            or not isinstance(column, (np.ndarray, list, tuple, dict))
        ):
            raise TypeError(
                f"per_batch_map returned {kinds} for the columns {list(outputs)}: column {name!r} must be a list of "
                "rows or an array whose first axis is the rows"
            )
        if not isinstance(column, dict) and not len(column):
            raise ValueError(f"per_batch_map returned no rows for column {name!r}")
        is_whole = isinstance(column, (np.ndarray, dict))
        # What the function keeps is referred to from elsewhere than this list.
        values = [column] if is_whole else [*column]
        del column
        arrays = [as_array(value) for value in given.owned(values)]
        made.append(arrays[0] if is_whole else arrays)
    return made


def _kinds(values: Sequence[Any]) -> str:
    return ", ".join(f"a {type(value).__name__}" for value in values) or "none"


class PaddedBatchNode(BatchNode):
    """The rows of `input_dataset` padded to one shape and stacked.

    `batch_size`, `drop_remainder`, `num_parallel_workers` and `pad_info` are those of
    `Dataset.padded_batch`.
    """

    operation = "padded_batch"

    def __init__(
        self,
        input_dataset: Node,
        batch_size: int | Callable[[BatchInfo], int],
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        pad_info: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(input_dataset, batch_size, drop_remainder, num_parallel_workers)
        self.pad_info = check_pad_info(self.operation, pad_info, self.columns)

    def _stacked(self, column: Column, name: str) -> Array:
        if self.pad_info is not None and name not in self.pad_info:
            return super()._stacked(column, name)
        shape, value = (None, None) if self.pad_info is None else self.pad_info[name]
        count = len(column)
        return pad_stack(column_rows(column, count), shape, value, f"{self.operation}: column {name!r}")


class BucketBatchNode(Node):
    """Batches of rows of `input_dataset` that have similar lengths.

    `column_names`, `bucket_boundaries`, `bucket_batch_sizes`, `element_length_function`,
    `pad_info`, `pad_to_bucket_boundary` and `drop_remainder` are those of
    `Dataset.bucket_batch_by_length`.
    """

    def __init__(
        self,
        input_dataset: Node,
        column_names: Sequence[str],
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        element_length_function: Callable[..., int] | None = None,
        pad_info: dict[str, Any] | None = None,
        pad_to_bucket_boundary: bool = False,
        drop_remainder: bool = False,
    ) -> None:
        super().__init__(input_dataset)
        where = "bucket_batch_by_length"
        columns = input_dataset._columns()
        self.column_names = names(column_names, f"{where}: column_names")
        self._places = positions(where, self.column_names, columns)
        self.boundaries = [check_count(where, "a bucket boundary", b, 1) for b in bucket_boundaries]
        if not self.boundaries or any(a >= b for a, b in zip(self.boundaries, self.boundaries[1:])):
            raise ValueError(f"{where}: bucket_boundaries must be strictly increasing, not {list(bucket_boundaries)}")
        self.sizes = [check_count(where, "a bucket batch size", s, 1) for s in bucket_batch_sizes]
        if len(self.sizes) != len(self.boundaries) + 1:
            raise ValueError(
                f"{where}: {len(self.boundaries)} boundaries make {len(self.boundaries) + 1} buckets, "
                f"but there are {len(self.sizes)} batch sizes"
            )
        if element_length_function is None and len(self.column_names) != 1:
            raise ValueError(f"{where}: without element_length_function name one column, not {self.column_names}")
        self.length = element_length_function
        self.pad_info = check_pad_info(where, pad_info, columns)
        self.pad_to_boundary = pad_to_bucket_boundary
        self.drop_remainder = drop_remainder

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        return leave_out(self, run, self._batches(run), skip)

    def _count_is_fixed(self) -> bool:
        return False

    def _batches(self, run: Run) -> Iterator[Block]:
        buckets: list[list[tuple[Array, ...]]] = [[] for _ in self.sizes]
        number = 0
        key, stream = run.key(self._height, 9), run.stream()
        for block in self.children[0]._blocks(run, 0):
            for row in block.rows():
                with using(stream.begin(row_key(key, number))):
                    length = self._length_of(row, number)
                bucket = int(np.searchsorted(self.boundaries, length, side="right"))
                number += 1
                buckets[bucket].append(row)
                if len(buckets[bucket]) == self.sizes[bucket]:
                    yield self._batch(buckets[bucket], bucket)
                    buckets[bucket] = []
                else:
                    give_back(self.children[0], run, 1)
        if not self.drop_remainder:
            for bucket, rows in enumerate(buckets):
                if rows:
                    give_back(self.children[0], run, -1)
                    yield self._batch(rows, bucket)

    def _length_of(self, row: tuple[Array, ...], number: int) -> int:
        values = plain([row[p] for p in self._places])
        if self.length is None:
            return len(values[0])
        try:
            return int(self.length(*values))
        except Exception as error:
            raise operation_failed("bucket_batch_by_length", self.length, self.column_names, number, error) from error

    def _batch(self, rows: list[tuple[Array, ...]], bucket: int) -> Block:
        made: list[Column] = []
        for name, column in zip(self._columns(), zip(*rows)):
            where = f"bucket_batch_by_length: column {name!r}"
            if self.pad_info is not None and name not in self.pad_info:
                made.append([stack(column, where)])
                continue
            shape, value = (None, None) if self.pad_info is None else self.pad_info[name]
            # As in MindSpore, a shape that is not given is that of the longest row.
            if self.pad_to_boundary and shape is not None and None in shape:
                if bucket == len(self.boundaries):
                    raise ValueError(
                        f"{where}: a row is longer than the last boundary, {self.boundaries[-1]}, to pad to"
                    )
                # The longest row that a bucket admits is one less than its boundary.
                shape = [self.boundaries[bucket] - 1 if n is None else n for n in shape]
            made.append([pad_stack(column, shape, value, where)])
        return Block(made, 1)
