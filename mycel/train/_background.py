"""Background threads of training: prefetched batches, and deferred tasks run in order.

`Ahead` runs an iterator in a thread and keeps its items in a bounded queue: as many as fit into
`BYTES`, two at least. An error of the iterator comes after the items before it and is raised in the
caller with its own traceback. `Later` does tasks in a thread, in the order in which they were
given. After a task has failed those behind it are dropped, and the error is raised in the caller at
the next task or `flush`. Both end their threads when they are closed or collected; the threads hold
no reference to them.
"""

from __future__ import annotations

import atexit
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from mycel._src.foundation.log import logger
from mycel._src.foundation.python_runtime import finalization
from mycel._src.foundation.system import locks

__all__ = ["Ahead", "Later"]

BYTES = 64 << 20
PATIENCE = 60.0


class _Channel:
    """A bounded queue between two threads that either can close; its items have sizes in bytes."""

    def __init__(self, most: int, room: int = 0) -> None:
        self.most, self.room = most, room
        self.items: deque[Any] = deque()
        self.held = self.low = 0
        self.closed = self.ended = False
        self.error: BaseException | None = None
        self.pending = 0
        self.is_lost = False
        lock = locks.lock()
        self.may_read = locks.condition(lock)
        self.may_write = locks.condition(lock)

    def put(self, item: Any, size: int = 0) -> bool:
        """Wait for room and add an item; return False if the channel is closed."""
        with self.may_write:
            while not self.closed and self.error is None and self.is_full(size):
                # Woken when half of it is taken, not for each item.
                self.low = len(self.items) // 2
                self.may_write.wait()
            if self.closed or self.error is not None:
                return False
            self.items.append((item, size))
            self.held += size
            self.pending += 1
            self.may_read.notify()
            return True

    def is_full(self, size: int) -> bool:
        """Return whether an item of this size has to wait; two items always fit."""
        return len(self.items) >= self.most or (len(self.items) >= 2 and 0 < self.room < self.held + size)

    def get(self, most: int, until: Callable[[Any], bool]) -> list[Any]:
        """Wait for an item, and remove it together with those behind it.

        At most `most` items are removed, and none behind one for which `until` is true. The result
        is empty at the end.
        """
        with self.may_read:
            while not self.items and not self.ended and not self.closed:
                self.may_read.wait()
            found: list[Any] = []
            while self.items and len(found) < most and not (found and until(found[-1])):
                item, size = self.items.popleft()
                self.held -= size
                found.append(item)
            if len(self.items) <= self.low:
                self.may_write.notify_all()
            return found

    def end(self, error: BaseException | None = None) -> None:
        """Mark the end: no more items will be put."""
        with self.may_read:
            self.ended = True
            self.error = error
            self.may_read.notify_all()
            self.may_write.notify_all()

    def close(self) -> None:
        """Wake the threads that wait, and drop the items in the queue."""
        with self.may_read:
            self.closed = True
            self.items.clear()
            self.may_read.notify_all()
            self.may_write.notify_all()


_open: finalization.Living[_Channel] = finalization.Living()


@locks.in_child
def _in_child() -> None:
    """Tell waiting callers, in a forked process, that the threads stayed with the parent."""
    for channel in list(_open):
        channel.is_lost = True
        channel.ended, channel.pending = True, 0
        channel.error = RuntimeError(
            "what is made ahead in a thread cannot be had in a process that was forked meanwhile; begin anew there"
        )


@atexit.register
def _close_all() -> None:
    for channel in list(_open):
        channel.close()


def _start(target: Callable[..., None], name: str, *arguments: Any) -> threading.Thread:
    thread = threading.Thread(target=target, args=arguments, name=name, daemon=True)
    thread.start()
    return thread


def _join(thread: threading.Thread | None) -> None:
    if thread is not None and thread is not threading.current_thread():
        thread.join(PATIENCE)
        if thread.is_alive():
            logger.warning("%s: its thread has not ended within %.0f s; it waits for something", thread.name, PATIENCE)


def _produce(channel: _Channel, items: Iterator[tuple[Any, int]]) -> None:
    error: BaseException | None = None
    try:
        for item, size in items:
            if not channel.put(item, size):
                break
            del item
    except BaseException as failure:
        # Whatever it is belongs to the caller, who waits.
        error = failure
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()
        channel.end(error)


class Ahead:
    """The items of an iterator of (item, bytes), produced ahead by a thread: at most `most` items,
    and `BYTES` bytes of them.

    >>> ahead = Ahead(((n, 8) for n in range(5)), 3)
    >>> first = ahead.take(1)
    >>> first + ahead.take(1), ahead.close()
    ([0, 1], None)
    """

    def __init__(self, items: Iterator[tuple[Any, int]], most: int) -> None:
        self._channel = _Channel(max(most, 2), BYTES)
        _open.add(self._channel)
        self._finalizer = finalization.when_gone(self, self._channel.close)
        self._thread = _start(_produce, "mycel-batches", self._channel, items)

    def take(self, most: int, until: Callable[[Any], bool] = lambda item: False) -> list[Any]:
        """Return the next items that are ready, up to `most`, waiting for at least one.

        The result is empty after the last item. Raises what the iterator raised.
        """
        found = self._channel.get(most, until)
        error = self._channel.error
        if not found and error is not None:
            self.close()
            raise error
        return found

    def close(self) -> None:
        """End the thread."""
        self._finalizer()
        _join(self._thread)


def _work(channel: _Channel) -> None:
    while True:
        found = channel.get(1, lambda item: True)
        if not found:
            return
        try:
            (task, arguments), found = found[0], []
            task(*arguments)
            del task, arguments
        except BaseException as error:
            with channel.may_read:
                channel.error = error
                channel.items.clear()
        with channel.may_read:
            channel.pending = len(channel.items)
            channel.may_write.notify_all()


class Later:
    """A thread that does tasks in order; it starts with the first task.

    >>> done = []
    >>> later = Later()
    >>> for n in range(3):
    ...     later(done.append, n)
    >>> later.flush(); done
    [0, 1, 2]
    >>> later.close()
    """

    MOST = 64

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._channel: _Channel | None = None
        self._thread: threading.Thread | None = None

    def __call__(self, task: Callable[..., Any], *arguments: Any) -> None:
        """Do `task(*arguments)` after all earlier tasks.

        The call waits while `most` tasks are waiting. Raises what an earlier task has raised.
        """
        if self._channel is None or self._channel.is_lost:
            self._channel = channel = _Channel(self._most)
            _open.add(channel)
            finalization.when_gone(self, channel.close)
            self._thread = _start(_work, "mycel-later", channel)
        if not self._channel.put((task, arguments)):
            self._raise()

    def _raise(self) -> None:
        channel = self._channel
        if channel is not None and channel.error is not None:
            with channel.may_read:
                error, channel.error = channel.error, None
            if error is not None:
                raise error

    @property
    def is_idle(self) -> bool:
        """Whether no task is left to do."""
        return self._channel is None or not self._channel.pending

    def flush(self) -> None:
        """Wait until all tasks are done. Raises what one of them raised."""
        channel = self._channel
        if channel is None or channel.is_lost:
            return
        with channel.may_write:
            while channel.pending and channel.error is None and not channel.closed:
                channel.may_write.wait()
        self._raise()

    def close(self) -> None:
        """Do the remaining tasks, and end the thread. Raises what a task raised."""
        channel, thread = self._channel, self._thread
        try:
            self.flush()
        finally:
            self._channel = self._thread = None
            if channel is not None:
                channel.close()
                _join(thread)
