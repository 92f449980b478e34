"""Worker threads of one pass: a fixed number of threads, each with a queue of its own.

Tasks are handed out by number, not to whoever is free, so that which worker does what is a function of the order of the
tasks alone. Results come in the order of the tasks; whatever a task raises, be it `SystemExit`, is raised where its
result is asked for. Threads are daemons: a program may end while a worker is inside of a user's function.
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
    """Threads that run tasks until `close`."""

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
        """The results of the tasks in order; task n is done by worker n modulo their count."""
        waiting = [_Task(function, arguments) for function, arguments in tasks]
        for number, task in enumerate(waiting):
            self._queues[number % self.count].put(task)
        for task in waiting:
            task.done.wait()
            if task.error is not None:
                raise task.error
            yield task.result

    def close(self) -> None:
        """Leave out what was not begun, and wait until what was begun has ended."""
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
