"""`sync_wait`: back-pressure on a pipeline, whose rows wait for updates of the consumer.

The node counts the rows that are released and not yet taken. Where there are none, its thread waits
for `sync_update`, for the end of the iterator, or for `config.get_callback_timeout` seconds, after
which it raises. Rows pass one by one, so nodes above never hold back a row that is released; what
is below may work ahead.

An update releases as many rows as one row of the consumer is usually made of: the product of the
batches above. Nodes that leave rows out, or make one row of more or fewer, say so by `give_back`,
so that the rows released and not yet seen are always those of `num_batch` rows of the consumer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.logged_once import no_effect
from mycel._src.foundation.system import locks
from mycel.communication import get_group_size, get_rank
from mycel.communication.messages import all_gather_object
from mycel.dataset import config
from mycel.dataset.arguments import check_count
from mycel.dataset.execution.pass_context import Run
from mycel.dataset.execution.threaded_stages import is_cancelled
from mycel.dataset.nodes.node import Node
from mycel.dataset.rows.column_blocks import Block, drop

# Seconds after which a thread that waits looks whether its flow has ended.
_LOOK = 0.1


class _Gate:
    """How many rows of one node may pass: `left` of them, or all where `open` is True."""

    def __init__(self) -> None:
        self.left = 0
        self.open = False
        self.changed = locks.condition(locks.reentrant())

    def put(self, rows: int) -> None:
        """Let more rows pass."""
        with self.changed:
            self.left += rows
            self.changed.notify_all()

    def unlock(self) -> None:
        """Let all rows pass from now on."""
        with self.changed:
            self.open = True
            self.changed.notify_all()


class _Waiting:
    """A pass that waits at a gate; whoever closes its scope cancels it."""

    def __init__(self, gate: _Gate) -> None:
        self.gate = gate
        self.stopped = False

    def cancel(self) -> None:
        """End the waiting."""
        with self.gate.changed:
            self.stopped = True
            self.gate.changed.notify_all()

    def take(self, seconds: float, name: str) -> None:
        """Take one row from the gate; raise RuntimeError where none comes in so many seconds."""
        end = time.monotonic() + seconds
        gate = self.gate
        with gate.changed:
            while gate.left < 1 and not gate.open:
                if self.stopped or is_cancelled():
                    raise RuntimeError("the iterator was stopped")
                left = end - time.monotonic()
                if left <= 0:
                    raise RuntimeError(
                        f"sync_wait: no row was released for condition {name!r} within {seconds:g} seconds "
                        "(config.set_callback_timeout); call sync_update after each row or batch, or disable_sync"
                    )
                gate.changed.wait(min(left, _LOOK))
            gate.left -= 1


class SyncWaitNode(Node):
    """The rows of `input_dataset`, of which no more come than have been released.

    `condition_name`, `num_batch` and `callback` are those of `Dataset.sync_wait`.
    """

    is_synced = awaits_steps = True

    def __init__(
        self,
        input_dataset: Node,
        condition_name: str,
        num_batch: int = 1,
        callback: Callable[[Any], Any] | None = None,
    ) -> None:
        super().__init__(input_dataset)
        arguments.text("sync_wait", "condition_name", condition_name)
        if condition_name in {node.condition_name for node, _ in waits(input_dataset)}:
            raise RuntimeError(f"sync_wait: there is a condition {condition_name!r} already")
        if callback is not None:
            arguments.function("sync_wait", "callback", callback)
        self.condition_name: str = condition_name
        self.num_batch = check_count("sync_wait", "num_batch", num_batch, 1)
        self.callback = callback
        self._gate = _Gate()

    def release(self, num_batch: int | None, grouped: int, data: Any) -> None:
        """Release so many batches of `grouped` rows, and hand `data` to the callback."""
        if self.callback is not None:
            self.callback(data)
        self._gate.put((self.num_batch if num_batch is None else num_batch) * grouped)

    def put_back(self, rows: int) -> None:
        """Let so many more rows pass; negative: fewer."""
        self._gate.put(rows)

    def release_all(self) -> None:
        """Release all rows from now on."""
        self._gate.unlock()

    def _count(self) -> int:
        return self.children[0]._count()

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        scope = run.scope
        if scope is None or run.probes:
            yield from self.children[0]._blocks(run, skip)
            return
        if scope.notes.get(id(self), True):
            # A new iterator begins with the rows that come before the first update, and so does a
            # pass after one that ended early: its workers may have taken rows that nobody got.
            with self._gate.changed:
                self._gate.left = self.num_batch * run.grouped
        scope.notes[id(self)] = True
        waiting = _Waiting(self._gate)
        scope.add(waiting)
        for block in self.children[0]._blocks(run.with_block(1), skip):
            for index in range(block.count):
                waiting.take(config.get_callback_timeout(), self.condition_name)
                yield block.slice(index, index + 1)
        scope.notes[id(self)] = False


def waits(node: Node, grouped: int = 1) -> Iterator[tuple[SyncWaitNode, int]]:
    """Yield the nodes of a pipeline that wait, and how many of their rows the batches above group.

    `grouped` is how many rows of `node` the batches above it group.
    """
    if isinstance(node, SyncWaitNode):
        yield node, grouped
    for child in node.children:
        yield from waits(child, grouped * node.rows_of_one)


def give_back(node: Node, run: Run, rows: int) -> None:
    """Let others pass in the place of rows that the consumer will not see.

    * `node`, `run`: where the rows came from, and in which pass.
    * `rows`: how many; negative where the consumer sees more than were taken.
    """
    if rows and node.is_synced and run.scope is not None and not run.probes:
        for waiting, grouped in waits(node):
            waiting.put_back(rows * grouped)


def leave_out(node: Node, run: Run, blocks: Iterator[Block], count: int) -> Iterator[Block]:
    """Yield the blocks of a node without their first `count` rows, in whose place others pass.

    * `node`, `run`: the node and the pass.
    * `blocks`, `count`: as in `column_blocks.drop`.
    """
    if not node.is_synced:
        yield from drop(blocks, count)
        return
    for block in blocks:
        left_out = min(count, block.count)
        give_back(node, run, left_out)
        count -= left_out
        if left_out < block.count:
            yield block.slice(left_out, block.count)


def end_early(node: Node, run: Run, blocks: Iterator[Block]) -> None:
    """End a pass of which no more rows are wanted: some may have been taken that nobody gets.

    * `node`, `run`, `blocks`: whose pass, and its blocks.
    """
    if node.is_synced and run.scope is not None:
        blocks.close()  # type: ignore[attr-defined]
        for waiting, _ in waits(node):
            run.scope.notes[id(waiting)] = True


def update(dataset: Node, condition_name: str, num_batch: int | None, data: Any) -> None:
    """Release rows of a dataset; see `Dataset.sync_update`.

    * `dataset`: the dataset.
    * `condition_name`, `num_batch`, `data`: as there.
    """
    if num_batch is not None:
        check_count("sync_update", "num_batch", num_batch, 1)
    found = [(node, grouped) for node, grouped in waits(dataset) if node.condition_name == condition_name]
    if not found:
        known = [node.condition_name for node, _ in waits(dataset)]
        raise RuntimeError(f"sync_update: there is no condition {condition_name!r}; the conditions are {known}")
    for node, grouped in found:
        node.release(num_batch, grouped, data)


def sync_wait_for_dataset(rank_id: int, rank_size: int, current_epoch: int, obs_runtime: Any = None) -> None:
    """Wait until every rank has called this for the same epoch.

    Ranks whose files come from elsewhere call it before they begin an epoch, once theirs are there.

    Args:
        rank_id (int): The number of this rank.
        rank_size (int): The number of ranks.
        current_epoch (int): The number of the epoch that begins.
        obs_runtime (object | None): MindSpore's handle of its object store; it changes nothing
            here. Default: None.

    Raises:
        RuntimeError: If the process is another rank, or the ranks are at different epochs.

    Examples:
        >>> from mycel.dataset import sync_wait_for_dataset
        >>> sync_wait_for_dataset(rank_id=0, rank_size=1, current_epoch=0)
    """
    where = "sync_wait_for_dataset"
    check_count(where, "rank_size", rank_size, 1)
    check_count(where, "rank_id", rank_id, 0)
    check_count(where, "current_epoch", current_epoch, 0)
    if obs_runtime is not None:
        no_effect(where, "obs_runtime", obs_runtime, "ranks meet by their own communication")
    if rank_id >= rank_size:
        raise ValueError(f"{where}: rank_id must be below rank_size={rank_size}, not {rank_id}")
    if rank_size == 1:
        return
    if (get_rank(), get_group_size()) != (rank_id, rank_size):
        raise RuntimeError(
            f"{where}: this process is rank {get_rank()} of {get_group_size()}, not {rank_id} of {rank_size}; call "
            "communication.init first, and give its numbers"
        )
    epochs: list[Any] = [None] * rank_size
    all_gather_object(epochs, current_epoch)
    if any(epoch != current_epoch for epoch in epochs):
        raise RuntimeError(f"{where}: the ranks begin different epochs: {epochs}")
