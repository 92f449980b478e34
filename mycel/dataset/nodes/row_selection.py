"""Nodes that choose and order rows and columns: `skip`, `take`, `repeat`, `shuffle`, `filter`.

They change nothing of what rows hold.

Each `_blocks` hands `skip` on to its child if the skipped rows are known in advance, and drops them
itself otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mycel._src.foundation import arguments
from mycel.dataset.arguments import check_count, names, positions
from mycel.dataset.execution.pass_context import FRESH, Begun, Run, Spot
from mycel.dataset.execution.thread_safety import threads_for
from mycel.dataset.execution.threaded_stages import Broken, Plan, in_pieces
from mycel.dataset.nodes.node import Node
from mycel.dataset.nodes.sync_wait import end_early, give_back, leave_out
from mycel.dataset.pipeline_errors import InputValueError, operation_failed
from mycel.dataset.random_numbers.random_streams import Stream, row_key, using
from mycel.dataset.rows.column_blocks import Block, Reader, Row, drain, drop, plain


class ShuffleNode(Node):
    """Rows in random order from a buffer of `buffer_size`; see `Dataset.shuffle`."""

    _knows_spots = True

    def __init__(self, input_dataset: Node, buffer_size: int) -> None:
        super().__init__(input_dataset)
        if input_dataset.is_synced:
            raise RuntimeError("shuffle: rows cannot be shuffled after sync_wait, whose order they have; shuffle first")
        self.buffer_size = check_count("shuffle", "buffer_size", buffer_size, 2)

    def _count(self) -> int:
        return self.children[0]._count()

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        return drop(self._shuffled(run), skip)

    def _shuffled(self, run: Run) -> Iterator[Block]:
        random = run.generator(self._height)
        reader = Reader(self.children[0]._blocks(run, 0))
        first = reader.read(self.buffer_size)
        if first is None:
            return
        upcoming = reader.some(run.block)
        if upcoming is None:
            order = random.permutation(first.count)
            for start in range(0, first.count, run.block):
                yield first.select(order[start : start + run.block])
            return
        # Copies, so that one row waiting in the buffer does not keep the memory of its whole block.
        buffer: list[Row] = [tuple(a.copy() for a in row) for row in first.rows()]
        del first
        while upcoming is not None:
            places = random.integers(0, len(buffer), upcoming.count).tolist()
            out: list[Row] = []
            for place, row in zip(places, upcoming.rows()):
                out.append(buffer[place])
                buffer[place] = tuple(a.copy() for a in row)
            yield Block.from_rows(out)
            upcoming = reader.some(run.block)
        rest = random.permutation(len(buffer)).tolist()
        for start in range(0, len(rest), run.block):
            yield Block.from_rows([buffer[i] for i in rest[start : start + run.block]])

    def is_shuffled(self) -> bool:
        return True

    def _spot(self, begun: Begun, step: int) -> Spot:
        return super()._spot(begun, step)._replace(shuffled=(self.buffer_size, self._height))


# As many passes as one without an end has, for those above it.
_ENDLESS = 1 << 40


class RepeatNode(Node):
    """The rows `count` times over: pass i of epoch e is epoch e * count + i of the input."""

    _passes_on = True
    _knows_spots = True

    def __init__(self, input_dataset: Node, count: int | None = None) -> None:
        super().__init__(input_dataset)
        self.count = -1 if count is None else check_count("repeat", "count", count, 1, (-1,))

    def _count(self) -> int:
        return self.children[0]._count() * max(1, self.count)

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        child = self.children[0]
        if skip and not child._count_is_fixed():
            yield from leave_out(self, run, self._blocks(run, 0), skip)
            return
        number, begun = self._at(run.begun)
        if skip and skip >= (size := child._rest(begun)):
            whole = child._count()
            more, skip = divmod(skip - size, whole) if whole else (0, 0)
            number, begun = number + 1 + more, FRESH
        while self.count == -1 or number < self.count:
            empty = True
            for block in child._blocks(run.of_pass(number, self.count, begun), skip):
                empty = False
                yield block
            if empty and not skip and begun == FRESH:
                return
            number, skip, begun = number + 1, 0, FRESH

    def _passes(self) -> int:
        return self._times() * self.children[0]._passes()

    def _times(self) -> int:
        return _ENDLESS if self.count == -1 else self.count

    def _at(self, begun: Begun) -> tuple[int, Begun]:
        """Return the pass in which an epoch goes on, and where that one does."""
        number, inner = divmod(begun.number, self.children[0]._passes())
        return number, begun._replace(number=inner) if inner or begun.stretches else FRESH

    def _rest(self, begun: Begun) -> int:
        number, first = self._at(begun)
        later = self._times() - number - 1
        child = self.children[0]
        return child._rest(first) + later * child._count()

    def _spot(self, begun: Begun, step: int) -> Spot:
        child = self.children[0]
        number, first = self._at(begun)
        size = child._rest(first)
        goes_on = step < size or number + 1 == self.count
        if not goes_on:
            more, step = divmod(step - size, max(1, child._count()))
            number, first = number + 1 + more, FRESH
            if number == self.count:
                # The end of the last pass.
                number, step = number - 1, child._count()
        spot = child._spot(first, step)
        return spot._replace(number=number * child._passes() + spot.number, goes_on=goes_on and spot.goes_on)

    def get_repeat_count(self) -> int:
        return self.count

    def _is_endless(self) -> bool:
        return self.count == -1 or super()._is_endless()


class TakeNode(Node):
    """The first `count` rows."""

    _passes_on = True
    _knows_spots = True

    def __init__(self, input_dataset: Node, count: int) -> None:
        super().__init__(input_dataset)
        self.count = check_count("take", "count", count, 1)
        self._number = self._takes
        self._takes += 1

    def _count(self) -> int:
        child = self.children[0]
        if child._is_endless():
            return self.count if child._count() else 0
        return min(self.count, child._count())

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        left = self._most(run.begun) - skip
        if left <= 0:
            return
        child = self.children[0]
        blocks = child._blocks(run.with_block(min(run.block, left)), skip)
        for block in blocks:
            yield block.slice(0, left)
            left -= block.count
            if left <= 0:
                if child.calls_back and not child.awaits_steps and not child._is_endless():
                    # Callbacks see the whole epoch, as in MindSpore.
                    drain(blocks)
                end_early(child, run, blocks)
                return

    def _is_endless(self) -> bool:
        return False

    def _most(self, begun: Begun) -> int:
        return self.count if begun == FRESH else begun.left[self._number]

    def _rest(self, begun: Begun) -> int:
        return self._count() if begun == FRESH else min(self._most(begun), self.children[0]._rest(begun))

    def _spot(self, begun: Begun, step: int) -> Spot:
        spot = super()._spot(begun, step)
        return spot._replace(left=(*spot.left, (self._most(begun) - step) * self._unit()))


class SkipNode(Node):
    """All but the first `count` rows."""

    _passes_on = True
    _knows_spots = True

    def __init__(self, input_dataset: Node, count: int) -> None:
        super().__init__(input_dataset)
        self.count = check_count("skip", "count", count, 0)

    def _count(self) -> int:
        return max(0, self.children[0]._count() - self.count)

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        if self.children[0].calls_back and not self.children[0].awaits_steps:
            # Callbacks see the rows that are left out, as in MindSpore.
            return drop(self.children[0]._blocks(run, skip), self._left_out(run.begun))
        return self.children[0]._blocks(run, skip + self._left_out(run.begun))

    def _left_out(self, begun: Begun) -> int:
        # Whoever began the epoch has left them out.
        return self.count if begun == FRESH else 0

    def _rest(self, begun: Begun) -> int:
        return self._count() if begun == FRESH else self.children[0]._rest(begun)

    def _spot(self, begun: Begun, step: int) -> Spot:
        return super()._spot(begun, step + self._left_out(begun) if step else 0)


class Chosen:
    """A predicate of some columns, `wanted` by name, which are at `places`.

    `refused` is told how many rows do not satisfy it.
    """

    def __init__(
        self,
        predicate: Callable[..., Any],
        wanted: Sequence[str],
        places: Sequence[int],
        refused: Callable[[int], None],
    ) -> None:
        self.predicate = predicate
        self.wanted = wanted
        self.places = places
        self.refused = refused

    def of(self, block: Block, start: int, key: int, seeded: bool) -> Block | None:
        """Return the rows that satisfy the predicate, or None; raise Broken where it fails.

        * `block`, `start`: the rows, and the number of the first.
        * `key`, `seeded`: the key of the pass and node, and whether a seed was set.
        """
        keep: list[int] = []
        index = 0
        failure: BaseException | None = None
        try:
            with using(Stream(0, seeded)) as stream:
                assert stream is not None
                for index, row in enumerate(block.pick(self.places).rows()):
                    stream.begin(row_key(key, start + index))
                    if self.predicate(*plain(row)):
                        keep.append(index)
        except Exception as error:
            failure = operation_failed("filter", self.predicate, self.wanted, start + index, error)
            failure.__cause__ = error
        except BaseException as error:
            # `SystemExit` and its like reach the consumer as they are.
            failure = error
        kept = None if not keep else block if len(keep) == block.count else block.select(keep)
        if failure is not None:
            raise Broken(kept, failure)
        self.refused(block.count - len(keep))
        return kept


class FilterNode(Node):
    """The rows of `input_dataset` that satisfy `predicate`, a function of `input_columns`.

    `input_columns` and `num_parallel_workers` are those of `Dataset.filter`.
    """

    operation = "filter"
    _uses_workers = True

    def __init__(
        self,
        input_dataset: Node,
        predicate: Callable[..., Any],
        input_columns: str | Sequence[str] | None = None,
        num_parallel_workers: int | None = None,
    ) -> None:
        super().__init__(input_dataset, num_parallel_workers)
        arguments.function("filter", "predicate", predicate)
        self.predicate = predicate
        self.input_columns = None if input_columns is None else names(input_columns, "filter: input_columns")

    def called(self) -> Sequence[Any]:
        return (self.predicate,)

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        return leave_out(self, run, self._kept(run), skip)

    def _count_is_fixed(self) -> bool:
        return False

    def _kept(self, run: Run) -> Iterator[Block]:
        present = self.children[0]._columns()
        wanted = self.input_columns or present
        child = self.children[0]
        chosen = Chosen(
            self.predicate, wanted, positions("filter", wanted, present), lambda rows: give_back(child, run, rows)
        )
        key, seeded = run.key(self._height, 9), run.seeded
        workers = self._asked(run) if run.ahead else 0
        workers = threads_for("filter", [self.predicate], workers)
        if workers:
            assert run.scope is not None
            plan = child._plan(run, 0)
            plan.then(lambda block, start: chosen.of(block, start, key, seeded), workers, run.scope.counter(self))
            if plan.is_shared:
                return self._flow(plan, run)
        return self._in_turn(chosen, key, run)

    def _in_turn(self, chosen: Chosen, key: int, run: Run) -> Iterator[Block]:
        number = 0
        pace = self._alone(run)
        for block in self.children[0]._blocks(run, 0):
            yield from in_pieces(block, number, pace, lambda rows, at: chosen.of(rows, at, key, run.seeded))
            number += block.count


class ProjectNode(Node):
    """Some of the columns, in a given order."""

    _row_for_row = True
    _passes_on = True

    def __init__(self, input_dataset: Node, columns: str | Sequence[str]) -> None:
        super().__init__(input_dataset)
        self.columns = names(columns, "project: columns")
        self._places = positions("project", self.columns, input_dataset._columns())

    def _columns(self) -> list[str]:
        return list(self.columns)

    def _count(self) -> int:
        return self.children[0]._count()

    def _plan(self, run: Run, skip: int) -> Plan:
        plan = self.children[0]._plan(run, skip)
        if not plan.stages or run.scope is None:
            return super()._plan(run, skip)
        return plan.then(lambda block, start: block.pick(self._places), 0, run.scope.counter(self), quick=True)

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        return (block.pick(self._places) for block in self.children[0]._blocks(run, skip))


class RenameNode(Node):
    """The same rows under other column names."""

    _row_for_row = True
    _passes_on = True

    def __init__(
        self, input_dataset: Node, input_columns: str | Sequence[str], output_columns: str | Sequence[str]
    ) -> None:
        super().__init__(input_dataset)
        old = names(input_columns, "rename: input_columns")
        new = names(output_columns, "rename: output_columns")
        if len(old) != len(new):
            raise ValueError(f"rename: {len(old)} input columns {old} but {len(new)} output columns {new}")
        self.columns = input_dataset._columns()
        for place, name in zip(positions("rename", old, self.columns), new):
            self.columns[place] = name
        if len(set(self.columns)) != len(self.columns):
            raise InputValueError(f"rename: the columns would be {self.columns}, with a name used twice")

    def _columns(self) -> list[str]:
        return list(self.columns)

    def _count(self) -> int:
        return self.children[0]._count()

    def _plan(self, run: Run, skip: int) -> Plan:
        return self.children[0]._plan(run, skip)

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        return self.children[0]._blocks(run, skip)
