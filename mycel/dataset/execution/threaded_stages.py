"""Stages of several nodes on one pool of threads, with an ordered, bounded output.

The stages of a `Flow` work on pieces of rows. A piece is one row or a few, as `Pace` says. Each
piece is a task of its own: a thread takes it through one stage after the other. A stage takes as
many pieces at once as its node has workers; one with a single worker takes them in their order.
Results wait in a buffer in the order of the rows, which is bounded in pieces and in bytes, and are
handed over as soon as those before them are. So a slow row holds up nobody but the rows behind it
at the exit, and the first row comes after the time of one.

Stages that are *quick*, as transforms of the library on arrays, may take less than handing pieces
to threads does. They begin in the thread that asks for rows, and go on there while rows are cheap.
So do plans for which nobody asked for workers, but some are *offered*, until rows are dear.

Where the pieces come from is *light* if it only says which rows to read: any thread then takes the
next. Otherwise it reads another part of the pipeline, which may wait, and has a thread of its own.

Invariants: no thread holds the lock while it works or waits for another part; what is raised in a
stage, of whatever class, comes out at its place in the order, after the rows before it; closing
wakes every thread.
"""

from __future__ import annotations

import contextlib
import heapq
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mycel._src.compiler.prims.linear_algebra.lapack import alone
from mycel._src.foundation.python_runtime import finalization
from mycel._src.foundation.system import locks
from mycel.dataset.execution.iterator_scope import Counter, Pace, Scope, block_size
from mycel.dataset.rows.column_blocks import Block

# A piece of rows: what there is of it, the number of its first row, and how many rows it has.
Piece = tuple[Any, int, int]
Work = Callable[[Any, int], Any]

# Bytes of rows that wait for the rows before them.
MOST_BYTES = 128 << 20
_LAST_WAIT = 2.0
# Seconds for a row below which threads gain nothing, and above which they are started unasked.
CHEAP, DEAR = 5e-6, 1e-4


# How long a thread waits before it looks whether its own flow has ended, in seconds.
_LOOK = 0.1
_own = threading.local()


def is_cancelled() -> bool:
    """Return whether the flow that this thread reads for has ended."""
    flow = getattr(_own, "flow", None)
    return flow is not None and bool(flow.closed)


class Broken(Exception):
    """The failure of a row within a piece, and what the rows before it gave (or None)."""

    def __init__(self, before: Block | None, error: BaseException) -> None:
        super().__init__(before, error)
        self.before = before
        self.error = error


def in_pieces(block: Block, start: int, pace: Pace | None, work: Callable[[Block, int], Any]) -> Iterator[Block]:
    """Yield what `work` gives for a block, in the thread that asks.

    * `start`: the number of the block's first row.
    * `pace`: how many rows are taken at once (None: all).
    * `work`: gives a block for one and the number of its first row; where it raises Broken, the
      rows before the failure come out, and then the failure.
    """
    first = 0
    while first < block.count:
        size = block.count - first if pace is None else pace.rows(block.count - first)
        failure: BaseException | None = None
        begin = time.perf_counter()
        try:
            done = work(block.slice(first, first + size), start + first)
        except Broken as broken:
            done, failure = broken.before, broken.error
        if pace is not None:
            pace.took(size, time.perf_counter() - begin)
        if done is not None:
            yield done
        if failure is not None:
            raise failure
        first += size


class Stage:
    """What one node does to pieces of rows.

    `work(piece, start)` gives the piece for the next stage. `workers` is how many threads may be in
    it at once; 0 sets no limit. `quick` says that the work never waits and may be cheap. `counter`
    counts its pieces and time.
    """

    def __init__(self, work: Work, workers: int, counter: Counter, quick: bool = False) -> None:
        self.work = work
        self.workers = workers
        self.counter = counter
        self.quick = quick
        self.waiting: list[tuple[int, _Slot]] = []
        self.active = 0
        self.next = 0


class Plan:
    """Pieces and the stages that they go through; `light` says that pieces are known at once."""

    def __init__(self, feed: Callable[[Pace], Iterator[Piece]], light: bool) -> None:
        self.feed = feed
        self.light = light
        self.stages: list[Stage] = []
        self._offered: int | None = None

    def offer(self, workers: int) -> None:
        """Say how many threads a stage may have where nobody asked for any: the least counts."""
        self._offered = workers if self._offered is None else min(self._offered, workers)

    def then(self, work: Work, workers: int, counter: Counter, apart: bool = False, quick: bool = False) -> Plan:
        """Add a stage, and return the plan.

        * `work`, `workers`, `counter`, `quick`: as in `Stage`.
        * `apart`: whether the work is done in processes.
        """
        counter.kind = "processes" if apart else "threads"
        self.stages.append(Stage(work, workers, counter, quick))
        return self

    @property
    def asked(self) -> int:
        """How many threads were asked for."""
        return sum(stage.workers for stage in self.stages)

    @property
    def workers(self) -> int:
        """How many threads there are to be: those asked for, or offered where pieces are known."""
        return self.asked or (self._offered or 0 if self.light else 0)

    @property
    def is_shared(self) -> bool:
        """Whether there are workers to share the pieces among, or processes to send them to."""
        return self.workers > 1 or any(stage.counter.kind == "processes" for stage in self.stages)

    @property
    def is_quick(self) -> bool:
        """Whether all work may be cheap."""
        return self.light and all(stage.quick for stage in self.stages)


class _Slot:
    __slots__ = ("number", "start", "count", "value", "stage", "done", "error", "size", "spent")

    def __init__(self, number: int, piece: Piece) -> None:
        self.number = number
        self.value, self.start, self.count = piece
        self.stage = 0
        self.done = False
        self.error: BaseException | None = None
        self.size = 0
        self.spent = 0.0


class Flow:
    """A plan that runs; `results` yields what comes out of the last stage, in order.

    `scope` ends it, `pace` counts what the consumer waits for, and `feed` gives the pieces where
    the plan's own are not wanted.
    """

    def __init__(self, plan: Plan, scope: Scope, pace: Pace, feed: Iterator[Piece] | None = None) -> None:
        self.stages = plan.stages
        self.pace = pace
        self.light = plan.light
        self.count = max(1, plan.workers)
        self.window = max(64, 8 * self.count)
        self.feed = plan.feed(pace) if feed is None else feed
        self.slots: deque[_Slot] = deque()
        self.number = self.idle = self.held = self.average = 0
        self.feeding = self.exhausted = self.closed = False
        lock = locks.reentrant()
        self.work, self.out, self.room = (locks.condition(lock) for _ in range(3))
        for stage in self.stages:
            stage.counter.apart = True
            stage.counter.kind = "threads" if stage.counter.kind == "inline" else stage.counter.kind
            stage.counter.workers = stage.workers or self.count
        # Threads that compute at once must not share out products among BLAS threads as well.
        self.alone = contextlib.ExitStack()
        if any(stage.counter.kind == "threads" for stage in self.stages):
            self.alone.enter_context(alone())
        scope.add(self)
        _flows.add(self)
        self.threads = [
            threading.Thread(target=self._run, name=f"mycel-rows-{number}", daemon=True) for number in range(self.count)
        ]
        if not self.light:
            self.threads.append(threading.Thread(target=self._read, name="mycel-rows-read", daemon=True))
        for thread in self.threads:
            thread.start()

    # What threads do.

    def _has_room(self) -> bool:
        waiting = len(self.slots)
        return not waiting or (waiting < self.window and self.held + self.average * waiting < MOST_BYTES)

    def _pick(self) -> Stage | Flow | None:
        """Return a stage with a piece to work on, or this flow where pieces are to be taken."""
        for stage in reversed(self.stages):
            if stage.waiting and (not stage.workers or stage.active < stage.workers):
                if stage.workers != 1 or stage.waiting[0][0] == stage.next:
                    return stage
        may_take = self.light and not self.feeding and not self.exhausted and self._has_room()
        return self if may_take else None

    def _run(self) -> None:
        while True:
            with self.work:
                found = self._pick()
                while found is None and not self.closed:
                    self.idle += 1
                    begin = time.perf_counter()
                    self.work.wait()
                    self.stages[0].counter.waiting += time.perf_counter() - begin
                    self.idle -= 1
                    found = self._pick()
                if self.closed or found is None:
                    return
                if isinstance(found, Stage):
                    slot = heapq.heappop(found.waiting)[1]
                    found.active += 1
                else:
                    self.feeding = True
                if self.idle:
                    self.work.notify()
            if isinstance(found, Stage):
                self._do(found, slot)
            else:
                self._take()

    def _take(self) -> bool:
        """Take the next piece; return False where there is none."""
        piece: Piece | None = None
        failure: BaseException | None = None
        try:
            piece = next(self.feed, None)
        except BaseException as error:
            # Whatever the user's source raises belongs to the consumer.
            failure = error
        with self.work:
            self.feeding = False
            if piece is None and failure is None:
                self.exhausted = True
                self.out.notify_all()
                self.work.notify_all()
                return False
            slot = _Slot(self.number, piece or (None, 0, 0))
            self.number += 1
            self.slots.append(slot)
            if failure is not None:
                self.exhausted, slot.done, slot.error = True, True, failure
                self.out.notify_all()
                return False
            self._enter(slot)
            self.work.notify()
            return True

    def _enter(self, slot: _Slot) -> None:
        stage = self.stages[slot.stage]
        heapq.heappush(stage.waiting, (slot.number, slot))
        stage.counter.queue = max(stage.counter.queue, len(stage.waiting))

    def _do(self, stage: Stage, slot: _Slot) -> None:
        begin = time.perf_counter()
        value, failure = None, slot.error
        try:
            value = stage.work(slot.value, slot.start)
        except Broken as broken:
            value, failure = broken.before, broken.error
        except BaseException as error:
            failure = error
        took = time.perf_counter() - begin
        with self.work:
            stage.active -= 1
            stage.next = slot.number + 1
            stage.counter.busy += took
            stage.counter.gave(value)
            slot.value, slot.error = value, failure
            slot.spent += took
            slot.stage += 1
            if value is not None and slot.stage < len(self.stages):
                self._enter(slot)
                return
            if self.closed:
                return
            slot.done = True
            slot.size = block_size(value) if isinstance(value, Block) else 0
            self.held += slot.size
            self.average = (3 * self.average + slot.size) // 4 if self.average else slot.size
            self.pace.took(slot.count, slot.spent)
            if slot is self.slots[0]:
                self.out.notify_all()

    def _read(self) -> None:
        """Take pieces from another part of the pipeline, in a thread of its own."""
        _own.flow = self
        try:
            while True:
                with self.room:
                    while not self._has_room() and not self.closed:
                        self.room.wait()
                    if self.closed:
                        return
                if not self._take():
                    return
        finally:
            self._close_feed()

    def _close_feed(self) -> None:
        close = getattr(self.feed, "close", None)
        if close is not None:
            close()

    # What the consumer does.

    def results(self) -> Iterator[Block]:
        """Yield the results in order, and end the threads."""
        # Whether it is another flow that reads them, which may end before.
        reads_on = hasattr(_own, "flow")
        try:
            while True:
                with self.out:
                    while not (self.slots and self.slots[0].done):
                        if self.closed or is_cancelled():
                            raise RuntimeError("the iterator was stopped")
                        if self.exhausted and not self.slots:
                            return
                        self.out.wait(_LOOK if reads_on else None)
                    slot = self.slots.popleft()
                    self.held -= slot.size
                    self.room.notify()
                    self.work.notify()
                if slot.value is not None:
                    yield slot.value
                if slot.error is not None:
                    raise slot.error
                del slot
        finally:
            self.close()

    def cancel(self) -> None:
        """Let every thread and the consumer end, without waiting for them."""
        with self.work:
            self.closed = True
            for condition in (self.work, self.out, self.room):
                condition.notify_all()

    def close(self) -> None:
        """End the threads; one that is within a user's function for long is left behind."""
        self.cancel()
        end = time.monotonic() + _LAST_WAIT
        try:
            for thread in self.threads:
                if thread is not threading.current_thread():
                    thread.join(max(0.0, end - time.monotonic()))
        finally:
            # Also where Ctrl-C comes meanwhile.
            self.alone.close()
            if self.light:
                self._close_feed()
            self.slots.clear()
            for stage in self.stages:
                stage.waiting.clear()


def results(plan: Plan, scope: Scope, pace: Pace) -> Iterator[Block]:
    """Yield what comes out of the last stage of a plan, in order.

    * `plan`: the pieces and stages.
    * `scope`, `pace`: those of the node that it is for.
    """
    if not plan.asked and plan.workers:
        return _inline_while(plan, scope, pace, DEAR)
    return _inline_while(plan, scope, pace, CHEAP) if plan.is_quick else Flow(plan, scope, pace).results()


def _inline_while(plan: Plan, scope: Scope, pace: Pace, cheap: float) -> Iterator[Block]:
    """Yield rows that are made in this thread, and by a flow from where they take more than `cheap`
    seconds each.
    """
    feed, dear = plan.feed(pace), 0
    for stage in plan.stages:
        stage.counter.inline()
    # The first piece may wait for a routine to be compiled, and says nothing yet.
    while dear < 2:
        piece = next(feed, None)
        if piece is None:
            return
        begin = time.perf_counter()
        value, failure = _through(plan.stages, *piece[:2])
        took = time.perf_counter() - begin
        pace.took(piece[2], took)
        dear = dear + 1 if took > cheap * piece[2] else 0
        if value is not None:
            yield value
        if failure is not None:
            raise failure
    yield from Flow(plan, scope, pace, feed).results()


def _through(stages: Sequence[Stage], value: Any, start: int) -> tuple[Any, BaseException | None]:
    """Return what stages make of a piece in this thread, and an error of the rows behind that."""
    failure: BaseException | None = None
    for number, stage in enumerate(stages, 1):
        begin = time.perf_counter()
        try:
            value = stage.work(value, start)
        except Broken as broken:
            value, failure = broken.before, broken.error
        if number < len(stages):
            # The last one is counted by whoever asks for its rows.
            stage.counter.busy += time.perf_counter() - begin
            stage.counter.gave(value)
        if value is None:
            break
    return value, failure


_flows: finalization.Living[Flow] = finalization.Living()


@locks.in_child
def _in_child() -> None:
    for flow in list(_flows):
        flow.closed = True
        flow.threads = []
        flow.feed = iter(())
    _flows.clear()


def cancel_all() -> None:
    """Cancel every flow, when the program ends."""
    for flow in _flows:
        flow.cancel()
