"""Worker threads of one pass: a fixed number of threads, each with its own queue.

Tasks are assigned by number, not to whichever thread is free, so that the order of the tasks alone
decides which worker does what. Results come in the order of the tasks. Whatever a task raises,
`SystemExit` included, is raised where its result is requested. Threads are daemons: a program may
end while a worker is inside a user's function.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from typing import Any


class _Task:
    __slots__ = ("function", "arguments", "result", "error", "done")

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.function = function
        self.arguments = arguments
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = threading.Event()


class Workers:
    """Threads that run tasks until they are closed."""

    def __init__(self, count: int, name: str) -> None:
        self.count = count
        self._queues: list[SimpleQueue[_Task | None]] = [SimpleQueue() for _ in range(count)]
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=_work, args=(queue, self._stopped), name=f"{name}-{number}", daemon=True)
            for number, queue in enumerate(self._queues)
        ]
        for thread in self._threads:
            thread.start()

    def run(self, tasks: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]]) -> Iterator[Any]:
        """Yield the results of the tasks in order; worker n modulo their number does task n."""
        waiting = [_Task(function, arguments) for function, arguments in tasks]
        for number, task in enumerate(waiting):
            self._queues[number % self.count].put(task)
        for task in waiting:
            task.done.wait()
            if task.error is not None:
                raise task.error
            yield task.result

    def close(self) -> None:
        """Drop tasks that have not begun, and wait for those that have."""
        self._stopped.set()
        for queue in self._queues:
            queue.put(None)
        for thread in self._threads:
            thread.join()


def _work(queue: SimpleQueue[_Task | None], stopped: threading.Event) -> None:
    while (task := queue.get()) is not None:
        if stopped.is_set():
            continue
        try:
            task.result = task.function(*task.arguments)
        except BaseException as error:
            task.error = error
        task.done.set()
        # A thread that waits for work keeps no row and no error alive.
        del task
