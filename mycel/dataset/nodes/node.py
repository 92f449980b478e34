"""Base class of the nodes of a pipeline's graph, and the protocol between them.

A node produces rows in two steps. `_columns` and `_count` answer what is known without running.
`_blocks(run, skip)` yields the rows of one pass, without the first `skip`. A `Run` holds all that a
pass depends on: the seed, the epoch, and how many rows the consumer would like at once. Invariants:

* A pass is a function of (tree, seed, epoch), and nodes keep no state between passes. Hence an
  iterator resumes by asking for the same pass with a `skip`, which nodes hand down to the source
  where that is exact.
* Two nodes of one chain draw from different streams, as their heights differ. Two chains of the
  same form draw the same numbers, so that features and labels in two datasets stay aligned when
  both are shuffled and then zipped.
* `skip` and block size never change which rows come out or what they hold.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation.logged_once import no_effect
from mycel.dataset import config
from mycel.dataset.arguments import check_count, check_workers
from mycel.dataset.caching.dataset_cache import check_cache
from mycel.dataset.constructor_arguments import MadeOf
from mycel.dataset.execution.iterator_scope import Pace, Scope
from mycel.dataset.execution.pass_context import FRESH, Begun, Run, Spot
from mycel.dataset.execution.threaded_stages import Piece, Plan, results
from mycel.dataset.pipeline_errors import in_pipeline
from mycel.dataset.rows.column_blocks import Array, Block, Row


def _shape(array: Array) -> list[int | None]:
    """Return the shape of a column's value; as in MindSpore a dictionary has [0]."""
    return [0] if array.dtype.kind == "O" else list(array.shape)


def _counted(blocks: Callable[[Any, Run, int], Iterator[Block]]) -> Callable[[Any, Run, int], Iterator[Block]]:
    @functools.wraps(blocks)
    def _blocks(self: Any, run: Run, skip: int) -> Iterator[Block]:
        found = blocks(self, run, skip)
        return found if run.scope is None else run.scope.counted(self, found)

    return _blocks


# What a node that reads no other has for its children.
SOURCE: Any = object()


class Node(MadeOf):
    """A node of a pipeline: a sequence of rows with named columns.

    `children` are the nodes whose rows this one reads; a source has none. Users chain and iterate
    over a `Dataset`, which is a node with methods for that.
    """

    # Whether `num_parallel_workers` says how many threads there are.
    _uses_workers = False
    # Whether rows wait for the consumer's `sync_update`, and whether a `map` has callbacks.
    is_synced = False
    calls_back = False
    # Whether rows wait for the end of the training's steps, by either.
    awaits_steps = False
    # How many rows it treats at once before it is known how long they take.
    first_piece = 1
    # How many rows it reads for each that it gives, where that is known.
    rows_of_one = 1
    # Whether it reads a list of datasets instead of one.
    _several = False
    # Whether each row that it gives is made of the next `rows_of_one` rows that it reads.
    _row_for_row = False
    # Whether it knows besides which rows it has read for those that it gave (`_spot`).
    _knows_spots = False
    # Whether its rows are those that it reads, or some of their columns.
    _passes_on = False
    # Where iterators begin that go on for others.
    _init_state: Any = None
    # How many iterators have gone through, since when, and the seed of training's: see
    # `iterator_seeds.py`.
    _iterated: tuple[tuple[int, int], int] = ((0, 0), 0)
    _trained: tuple[tuple[int, int], int, int] | None = None
    _input_indexs: Any = ()

    def __init__(
        self,
        children: Node | Sequence[Node] = SOURCE,
        num_parallel_workers: int | None = None,
        cache: Any = None,
    ) -> None:
        where = str(getattr(self, "operation", type(self).__name__))
        check_cache(where, cache)
        self.cache = cache
        if num_parallel_workers is not None:
            check_workers(where, num_parallel_workers)
            if num_parallel_workers > 1 and not self._uses_workers:
                no_effect(where, "num_parallel_workers", num_parallel_workers, "it runs in the pipeline's own thread")
        group: Any
        if children is SOURCE:
            group = ()
        elif self._several and isinstance(children, (tuple, list)):
            group = tuple(children)
        else:
            group = (children,)
        for child in group:
            arguments.instance(type(self).__name__, "each input", child, Node, "a dataset")
        self.children: tuple[Node, ...] = group
        self.num_parallel_workers = num_parallel_workers
        self._height: int = 1 + max((child._height for child in group), default=-1)
        self._counted: int | None = None
        self._init_step = 0
        # How many nodes below are a `take`.
        self._takes: int = max((child._takes for child in group), default=0)
        self.is_synced = self.is_synced or any(child.is_synced for child in group)
        self.calls_back = any(child.calls_back for child in group)
        self.awaits_steps = self.awaits_steps or any(child.awaits_steps for child in group)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "_blocks" in cls.__dict__:
            cls._blocks = _counted(cls.__dict__["_blocks"])  # type: ignore[method-assign,assignment]

    # What a node answers.

    def called(self) -> Sequence[Any]:
        """Return the operations and functions that it calls, for messages."""
        return ()

    def _columns(self) -> list[str]:
        """Return the names of the columns as a list of the caller's own."""
        return self.children[0]._columns()

    def _count(self) -> int:
        """Return the number of rows in one epoch; without another way to know it, run and count."""
        if self._counted is None:
            self._counted = sum(block.count for block in self._blocks(self._probe(), 0))
        return self._counted

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        """Yield the rows of one pass in blocks, without the first `skip`."""
        raise NotImplementedError(f"{type(self).__name__} must define _blocks")

    def _plan(self, run: Run, skip: int) -> Plan:
        """Return the rows of one pass as pieces, and the stages of this node and those below it.

        A piece has consecutive rows, and the number of its first. By default the pieces are those
        of `_blocks`, without stages.
        """

        def feed(pace: Pace) -> Iterator[Piece]:
            start = skip
            for block in self._blocks(run, skip):
                first = 0
                while first < block.count:
                    size = pace.rows(block.count - first)
                    yield block.slice(first, first + size), start, size
                    first, start = first + size, start + size

        return Plan(feed, light=False)

    def _asked(self, run: Run) -> int:
        """Return how many workers this node shall have; 0 where nobody said."""
        if run.scope is not None and id(self) in run.scope.tuned:
            return run.scope.tuned[id(self)]
        return config.workers_or_none(self.num_parallel_workers)

    def _alone(self, run: Run) -> Pace | None:
        """Note that this node has no workers in a pass, and return its pace, if it has a scope."""
        if run.scope is None:
            return None
        run.scope.counter(self).inline()
        return self._pace(run, run.scope)

    def _pace(self, run: Run, scope: Scope) -> Pace:
        pace = scope.pace(self)
        pace.group = run.group
        return pace

    def _flow(self, plan: Plan, run: Run) -> Iterator[Block]:
        """Run a plan, and yield its blocks in order."""
        assert run.scope is not None
        return results(plan, run.scope, self._pace(run, run.scope))

    def _count_is_fixed(self) -> bool:
        """Return whether every epoch is certain to have `_count` rows."""
        return all(child._count_is_fixed() for child in self.children)

    def _is_endless(self) -> bool:
        """Return whether an epoch has no end."""
        return self.children[0]._is_endless() if self.children else False

    def _probe(self) -> Run:
        """Return a run for looking at rows outside of any epoch."""
        return Run(config.get_seed(), block=1 if self._height == 0 else 32, probes=True)

    def _first_row(self) -> Row:
        """Return the first row; no values if there are no rows, as in MindSpore."""
        with in_pipeline():
            blocks = self._blocks(self._probe().with_block(1), 0)
            try:
                for block in blocks:
                    return block.row(0)
            finally:
                close = getattr(blocks, "close", None)
                if close is not None:
                    close()
        return ()

    # Where iterators start.

    def row_for_row(self) -> bool:
        """Return whether each row that it gives is made of the next `rows_of_one` that it reads."""
        return self._row_for_row

    def _unit(self) -> int:
        """Return how many rows of the source are in one row."""
        return self.rows_of_one * (self.children[0]._unit() if self.children else 1)

    def _passes(self) -> int:
        """Return how many passes over the source are in one epoch."""
        return self.children[0]._passes() if self.children else 1

    def _rest(self, begun: Begun) -> int:
        """Return how many rows there are in an epoch that goes on."""
        if begun == FRESH:
            return self._count()
        rows = self.children[0]._rest(begun)
        return rows // self.rows_of_one if getattr(self, "drop_remainder", False) else -(-rows // self.rows_of_one)

    def _spot(self, begun: Begun, step: int) -> Spot:
        """Return what is done after `step` rows of an epoch that went on at `begun`."""
        if not self.children:
            return Spot(begun.number, True, step)
        child = self.children[0]
        return child._spot(begun, min(step * self.rows_of_one, child._rest(begun)))

    def hands_over(self) -> bool:
        """Return whether nobody but who reads its rows has their arrays, so that tensors may be
        made of them without a copy: rows of `batch`, and no function of the user's has seen them.
        """
        return self._passes_on and self.children[0].hands_over()

    def words(self) -> str:
        """Return what messages call this node."""
        name = type(self).__name__
        return str(getattr(self, "operation", name.removesuffix("Dataset").lower() if self.children else name))

    @property
    def input_indexs(self) -> Any:
        """What was set for this dataset, or for the first of those that it reads, or ().

        It is how data sinks of other devices order columns. It has no effect here, where the order
        of columns is that of `project`, and this is said once when it is set.

        >>> import mycel.dataset as ds
        >>> ds.NumpySlicesDataset([1, 2]).batch(2).input_indexs
        ()
        """
        if self._input_indexs != ():
            return self._input_indexs
        return next((found for found in (child.input_indexs for child in self.children) if found != ()), ())

    @input_indexs.setter
    def input_indexs(self, value: Any) -> None:
        no_effect("Dataset", "input_indexs", value, "columns are in the order of project", True)
        self._input_indexs = value

    def set_init_step(self, init_step: int) -> None:
        """Start later iterators after this many rows.

        They are counted over epochs of `get_dataset_size` rows each.
        """
        self._init_step, self._init_state = check_count("set_init_step", "init_step", init_step, 0), None

    def get_init_step(self) -> int:
        """Return how many rows a new iterator leaves out."""
        return self._init_step

    def reset(self) -> None:
        """Start later iterators at the first row of the first epoch."""
        self._init_step, self._init_state = 0, None

    # What is known about the rows.

    def get_col_names(self) -> list[str]:
        """Return the names of the columns, in order."""
        return self._columns()

    def get_dataset_size(self) -> int:
        """Return the number of rows in one epoch; after `batch`, the number of batches.

        A dataset of unknown length, such as a generator or a filter, is run once to count its rows.
        """
        with in_pipeline():
            return self._count()

    def __len__(self) -> int:
        """Return the number of rows in one epoch; a dataset without rows is false."""
        return self.get_dataset_size()

    def output_shapes(self, estimate: bool = False) -> list[list[int | None]]:
        """Return the shape of each column in the first row.

        With `estimate`, a length is None where the first 1,000 rows differ in it.
        """
        if not estimate:
            return [_shape(array) for array in self._first_row()]
        with in_pipeline():
            return self._estimated()

    def _estimated(self) -> list[list[int | None]]:
        shapes: list[list[int | None]] | None = None
        seen = 0
        for block in self._blocks(self._probe(), 0):
            for row in block.rows():
                if shapes is None:
                    shapes = [_shape(array) for array in row]
                for column, array in enumerate(row):
                    shape, found = shapes[column], _shape(array)
                    if len(shape) != len(found):
                        raise ValueError(
                            f"output_shapes: column {column} has rows of {len(shape)} and of {len(found)} axes"
                        )
                    shapes[column] = [n if n == m else None for n, m in zip(shape, found)]
            seen += block.count
            if seen >= 1000:
                break
        return shapes or []

    def output_types(self) -> list[np.dtype[Any]]:
        """Return the NumPy type of each column in the first row; text of any length is `<U`."""
        return [np.dtype(a.dtype.kind) if a.dtype.kind in "US" else a.dtype for a in self._first_row()]

    def get_batch_size(self) -> int:
        """Return the number of rows in a batch, or 1 without `batch`.

        Of datasets side by side or one after the other the last one answers, as in MindSpore.
        """
        return self.children[-1].get_batch_size() if self.children else 1

    def get_repeat_count(self) -> int:
        """Return the count of the last `repeat`: -1 for no end, 1 without `repeat`.

        Of datasets side by side or one after the other the last one answers, as in MindSpore.
        """
        return self.children[-1].get_repeat_count() if self.children else 1

    def num_classes(self) -> int | None:
        """Return the number of classes, or None where the source does not know it.

        Of datasets side by side or one after the other the last one answers, as in MindSpore.
        """
        return self.children[-1].num_classes() if self.children else None

    def get_class_indexing(self) -> dict[str, int]:
        """Return the number of each class by name; empty where the source has none."""
        return self.children[0].get_class_indexing() if self.children else {}

    def is_shuffled(self) -> bool:
        """Return whether the order of rows is random."""
        return any(child.is_shuffled() for child in self.children)

    def is_sharded(self) -> bool:
        """Return whether the rows are one of several shards."""
        return any(child.is_sharded() for child in self.children)
