"""Resources of one iterator: counters, adaptive chunk sizes, threads and worker processes.

A `Run` carries the `Scope` of its iterator through the nodes. A pass without a scope, as one that
looks at the first row, runs in the thread that asks, with no workers. So does one whose scope is
not `ahead`, in debug mode. Closing a scope wakes whoever waits in one of its flows
(`threaded_stages.py`) or for the consumer, and ends its worker processes.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from mycel._src.foundation.python_runtime import finalization
from mycel._src.foundation.system import locks
from mycel.dataset.rows.column_blocks import Block

# Lists that get the root and the scope of each iterator that begins, while a profile is made.
watching: list[list[Any]] = []
# The time that one piece of rows should take, in seconds.
TARGET = 0.004


class Counter:
    """What one node did in the passes of a scope.

    `busy` and `waiting` are seconds: of its own work, summed over its workers, and of waiting for
    rows. `rows` and `size` (bytes) are what it gave. `queue` is how many pieces waited for it at
    most, `workers` how many it has, and `kind` what they are.
    """

    __slots__ = ("name", "depth", "busy", "waiting", "rows", "size", "queue", "workers", "kind", "apart", "asked")

    def __init__(self, name: str, depth: int) -> None:
        self.name = name
        self.depth = depth
        # `asked` is how long those who read its blocks waited for them, its own work among it.
        self.busy = self.waiting = self.asked = 0.0
        self.rows = self.size = self.queue = 0
        self.workers = 1
        self.kind = "inline"
        # Whether a flow does the work, so that whoever asks for rows only waits.
        self.apart = False

    def inline(self) -> None:
        """Note that the node has no workers."""
        self.workers, self.kind, self.apart = 1, "inline", False

    def gave(self, block: Any) -> None:
        """Count the rows and bytes of a block."""
        if isinstance(block, Block):
            self.rows += block.count
            self.size += block_size(block)


def block_size(block: Block) -> int:
    """Return about how many bytes a block holds."""
    size = 0
    for column in block.columns:
        if isinstance(column, list):
            first = column[0] if column else None
            size += len(column) * first.nbytes if isinstance(first, np.ndarray) else 0
        else:
            size += column.nbytes
    return size


class Pace:
    """How many rows to take at once, so that rows come out every few milliseconds.

    It begins with `rows` and grows fourfold at most, towards as many as take `TARGET` seconds. More
    than `group` rows are a multiple of it, so that a batch need not be joined of parts.
    """

    __slots__ = ("group", "_rows", "_each")

    def __init__(self, rows: int = 1) -> None:
        self.group = 1
        self._rows = rows
        self._each = 0.0

    def rows(self, most: int) -> int:
        """Return how many rows to take, `most` or fewer."""
        found = self._rows
        if found >= most:
            return most
        return found - found % self.group if found > self.group else found

    def took(self, rows: int, seconds: float) -> None:
        """Say how long some rows took."""
        each = seconds / max(1, rows)
        self._each = each if not self._each else 0.5 * (self._each + each)
        fits = int(TARGET / self._each) if self._each > 0 else 1 << 20
        self._rows = max(1, min(fits, self._rows * 4))


class Scope:
    """What belongs to one iterator while it lives; `ahead` says whether rows may be made ahead."""

    def __init__(self, ahead: bool = True) -> None:
        self.ahead = ahead
        self.begun = time.perf_counter()
        self.ended: float | None = None
        # Seconds that the consumer waited for rows, and numbers of workers that autotune chose.
        self.asked = 0.0
        self.tuned: dict[int, int] = {}
        # What nodes note from pass to pass, by the number of each.
        self.notes: dict[int, Any] = {}
        self.counters: dict[int, Counter] = {}
        self.closed = False
        self._paces: dict[int, Pace] = {}
        self._kept: dict[Any, Any] = {}
        self._flows: finalization.Living[Any] = finalization.Living()
        self._lock = locks.lock()

    def counter(self, node: Any) -> Counter:
        """Return the counter of a node."""
        found = self.counters.get(id(node))
        if found is None:
            name = str(getattr(node, "operation", type(node).__name__.removesuffix("Dataset") or "Dataset"))
            found = self.counters.setdefault(id(node), Counter(name.lower() if node.children else name, node._height))
        return found

    def pace(self, node: Any) -> Pace:
        """Return the pace of a node, which later epochs go on with."""
        found = self._paces.get(id(node))
        return self._paces.setdefault(id(node), Pace(node.first_piece)) if found is None else found

    def kept(self, key: Any, make: Any) -> Any:
        """Return what `make` gives for this key, once; it is closed with the scope."""
        with self._lock:
            if self.closed:
                raise RuntimeError("the iterator was stopped")
            if key not in self._kept:
                self._kept[key] = make()
            return self._kept[key]

    def release(self, node: Any) -> None:
        """End what was kept for a node, which is made again when it is needed."""
        with self._lock:
            found = [self._kept.pop(key) for key in list(self._kept) if key[0] == id(node)]
        for item in found:
            item.close()

    @property
    def seconds(self) -> float:
        """How long the iterator has been at work."""
        return (time.perf_counter() if self.ended is None else self.ended) - self.begun

    def add(self, flow: Any) -> None:
        """Cancel a flow when this scope is closed."""
        with self._lock:
            self._flows.add(flow)
            if self.closed:
                flow.cancel()

    def close(self) -> None:
        """Cancel the flows and end what was kept."""
        with self._lock:
            self.closed = True
            self.ended = self.ended or time.perf_counter()
            flows, kept = list(self._flows), list(self._kept.values())
            self._kept.clear()
        with contextlib.ExitStack() as stack:
            # All are closed, also where Ctrl-C comes meanwhile, and told before any is waited for.
            for item in kept:
                stack.callback(item.close)
            for flow in flows:
                flow.cancel()
            for item in kept:
                item.release()

    def counted(self, node: Any, blocks: Iterator[Block]) -> Iterator[Block]:
        """Yield the blocks of a node, counting them and the time that its own work takes."""
        counter = self.counter(node)
        # A dataset may stand there twice, as in `a + a`.
        below = [self.counter(child) for child in dict.fromkeys(node.children)]
        clock = time.perf_counter
        block: Block | None
        try:
            while True:
                # The time of children that run in this thread is not this node's own.
                within = 0.0
                for child in below:
                    within -= child.asked
                begin = clock()
                block = next(blocks, None)
                took = clock() - begin
                counter.asked += took
                for child in below:
                    within += child.asked
                if counter.apart:
                    counter.waiting += took - within
                else:
                    counter.busy += took - within
                    counter.waiting += within
                    if block is not None:
                        counter.rows += block.count
                        counter.size += block_size(block)
                if block is None:
                    return
                yield block
        finally:
            close = getattr(blocks, "close", None)
            if close is not None:
                close()
