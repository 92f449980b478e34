"""`device_que`: prefetch queue between a pipeline and the training that consumes its rows.

`send` starts a thread that reads the pipeline and puts rows into the queue, which holds as many as
`config.get_prefetch_size` says. `stop_send` lets it pause, `continue_send` go on, `release` end.
In each epoch it stops at the limit of `config.set_sending_batches` until that is raised.

Invariants: rows come out in their order, and what the pipeline raises comes after them; the thread
holds no reference to the dataset's node, and ends with it.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation.python_runtime import finalization
from mycel._src.foundation.system import locks
from mycel.dataset import config
from mycel.dataset.execution.pass_context import Run
from mycel.dataset.execution_options import sending
from mycel.dataset.iteration.iterators import TupleIterator
from mycel.dataset.nodes.node import Node
from mycel.dataset.rows.column_blocks import Block

_EPOCH_END = object()


class _Times:
    """How often something took place, and how long it took: in all, at least, at most."""

    def __init__(self) -> None:
        self.count = 0
        self.total = self.most = 0.0
        self.least = float("inf")

    def add(self, seconds: float) -> None:
        self.count += 1
        self.total += seconds
        self.least, self.most = min(self.least, seconds), max(self.most, seconds)

    def summary(self) -> list[float]:
        """Return the mean, the least and the greatest time in milliseconds."""
        if not self.count:
            return [0.0, 0.0, 0.0]
        return [1000 * self.total / self.count, 1000 * self.least, 1000 * self.most]


class _Sender:
    """The queue, and what its thread does; `rows` is the iterator that it reads."""

    def __init__(self, rows: TupleIterator, size: int) -> None:
        self.rows = rows
        self.size = size
        self.items: deque[Any] = deque()
        self.changed = locks.condition(locks.reentrant())
        self.paused = self.closed = self.ended = False
        self.error: BaseException | None = None
        self.info: tuple[list[Any], list[Any]] | None = None
        self.fetched, self.pushed = _Times(), _Times()
        self.thread: threading.Thread | None = None
        self.process = os.getpid()

    def run(self) -> None:
        """Read the rows and put them into the queue, until the end."""
        try:
            epoch = 0
            while not self.closed and (self.rows.num_epochs == -1 or epoch < self.rows.num_epochs):
                number = 0
                begin = time.perf_counter()
                for row in self.rows:
                    self.fetched.add(time.perf_counter() - begin)
                    if not sending.wait(number, lambda: self.closed) or not self.put(row):
                        return
                    number += 1
                    begin = time.perf_counter()
                epoch += 1
                if not self.put(_EPOCH_END):
                    return
        except BaseException as error:
            # Whatever the pipeline raises belongs to whoever takes the rows.
            if not self.closed:
                self.error = error
        finally:
            with self.changed:
                self.ended = True
                self.changed.notify_all()

    def put(self, row: Any) -> bool:
        """Wait for room and add a row; return False once the queue is closed."""
        begin = time.perf_counter()
        with self.changed:
            while not self.closed and (self.paused or len(self.items) >= self.size):
                self.changed.wait()
            if self.closed:
                return False
            self.items.append(row)
            if row is not _EPOCH_END:
                arrays = [np.asarray(value) for value in row]
                self.info = ([array.dtype for array in arrays], [list(array.shape) for array in arrays])
                self.pushed.add(time.perf_counter() - begin)
            self.changed.notify_all()
            return True

    def get(self) -> Any:
        """Wait for a row and take it."""
        if self.process != os.getpid():
            raise RuntimeError("device_que: the queue stayed with the process that sends; send again in this one")
        with self.changed:
            while not self.items and not self.ended and not self.closed:
                self.changed.wait()
            if self.items and not self.closed:
                item = self.items.popleft()
                self.changed.notify_all()
                return item
        if self.error is not None:
            raise self.error
        raise RuntimeError("device_que: the queue was released, or all epochs that were sent are taken; send again")

    def pause(self, pauses: bool) -> None:
        """Let the thread pause, or go on."""
        with self.changed:
            self.paused = pauses
            self.changed.notify_all()

    def close(self) -> None:
        """End the thread and drop the rows in the queue."""
        with self.changed:
            self.closed = True
            self.items.clear()
            self.changed.notify_all()
        sending.wake()
        self.rows.stop()
        if self.thread is not None and self.thread is not threading.current_thread():
            self.thread.join(config.get_callback_timeout())


class Received:
    """An iterator over the rows of a queue: one epoch for each loop over it.

    Where the queue has no marks of epochs, one loop goes on through all of them.
    """

    def __init__(self, sender: _Sender, marks: bool, columns: list[str]) -> None:
        self._sender, self._marks, self._columns = sender, marks, columns

    def __iter__(self) -> Iterator[list[Any]]:
        return self

    def __next__(self) -> list[Any]:
        while True:
            row = self._sender.get()
            if row is not _EPOCH_END:
                found: list[Any] = row
                return found
            if self._marks:
                raise StopIteration

    def get_col_names(self) -> list[str]:
        """Return the names of the columns, in order."""
        return list(self._columns)

    def begin_after(self, rows: int) -> None:
        """Raise RuntimeError unless `rows` is 0: what was sent cannot be sent again."""
        if rows:
            raise RuntimeError("device_que: a queue cannot go back to an earlier row; give the dataset itself")

    def stop(self) -> None:
        """Release the queue."""
        self._sender.close()


class TransferNode(Node):
    """The rows of `input_dataset` in a queue.

    `send_epoch_end`, `create_data_info_queue` and `queue_name` are those of `Dataset.device_que`.
    """

    operation = "device_que"
    _row_for_row = True

    def __init__(
        self,
        input_dataset: Node,
        send_epoch_end: bool = True,
        create_data_info_queue: bool = False,
        queue_name: str = "",
    ) -> None:
        super().__init__(input_dataset)
        for name, value in (("send_epoch_end", send_epoch_end), ("create_data_info_queue", create_data_info_queue)):
            arguments.flag("device_que", name, value)
        arguments.text("device_que", "queue_name", queue_name)
        self.send_epoch_end = send_epoch_end
        self.create_data_info_queue = create_data_info_queue
        self.queue_name = queue_name or secrets.token_hex(16)
        self._sender: _Sender | None = None

    def _count(self) -> int:
        return self.children[0]._count()

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        return self.children[0]._blocks(run, skip)

    def _sends(self, num_epochs: int) -> _Sender:
        """Start sending, unless it has begun and goes on."""
        if self._sender is None or self._sender.closed:
            rows = TupleIterator(self.children[0], num_epochs=num_epochs, output_numpy=True)
            sender = _Sender(rows, config.get_prefetch_size())
            sender.thread = threading.Thread(target=sender.run, name="mycel-send", daemon=True)
            finalization.when_gone(self, sender.close)
            # Whoever closes it waits for the thread, which has to be there.
            sender.thread.start()
            self._sender = sender
        return self._sender

    def get_mbuf_queue_size(self) -> int:
        """Return how many rows wait in the queue."""
        return 0 if self._sender is None else sum(item is not _EPOCH_END for item in list(self._sender.items))

    def get_data_info(self) -> tuple[list[Any], list[Any]]:
        """Return the types and shapes of the columns of the last row that was sent.

        Raises RuntimeError without `create_data_info_queue`, and before a row was sent.
        """
        if not self.create_data_info_queue:
            raise RuntimeError("get_data_info: set create_data_info_queue=True in device_que")
        if self._sender is None or self._sender.info is None:
            raise RuntimeError("get_data_info: no row has been sent yet; call send first")
        return self._sender.info

    def get_send_info(self) -> list[list[float]]:
        """Return how many rows were sent, and summaries of the times of reading and sending them.

        A summary is the mean, the least and the greatest time in milliseconds. Raises RuntimeError
        before `send`.
        """
        if self._sender is None:
            raise RuntimeError("get_send_info: nothing is being sent; call send first")
        return [[float(self._sender.pushed.count)], self._sender.fetched.summary(), self._sender.pushed.summary()]

    def stop_send(self) -> None:
        """Let sending pause; rows in the queue stay."""
        if self._sender is not None:
            self._sender.pause(True)

    def continue_send(self) -> None:
        """Let sending go on after `stop_send`."""
        if self._sender is not None:
            self._sender.pause(False)

    def release(self) -> None:
        """End sending, and drop the rows in the queue."""
        if self._sender is not None:
            self._sender.close()
            self._sender = None


# Rows from one rank to another.
