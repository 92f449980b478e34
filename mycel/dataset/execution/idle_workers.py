"""Pool of idle worker processes, kept for a second between one iterator and the next.

Programs that make an iterator for each epoch would start all their workers anew each time, which
takes longer than an epoch of cheap rows. So a worker that is idle when its iterator ends waits here
for another job, for `REST` seconds, after which a thread of this module ends it. Its next job is
made anew from the pipeline's own objects, as in a process that has just started. What a job leaves
behind in a process is bounded: workers that have lived for `YOUNG` seconds end with their iterator,
since starting them again takes little beside that.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from mycel._src.foundation.system import locks

REST = 1.0
YOUNG = 10.0
# How many may rest at once.
_MOST = 32


class Resting:
    """Workers that wait for another job, and the thread that ends those for which there is none.

    The thread runs while there is a crew that may use it, or a worker that rests. `add` and `leave`
    may be called while garbage is collected, anywhere: they start no thread and only take a
    reentrant lock.
    """

    def __init__(self) -> None:
        self._changed = locks.condition(locks.reentrant())
        self._workers: list[tuple[float, Any]] = []
        self._thread: threading.Thread | None = None
        self._crews: set[int] = set()
        self._closed = False

    def begin(self, crew: Any) -> None:
        """Start the thread for a crew, unless there is one; without it, no worker rests."""
        with self._changed:
            self._crews.add(id(crew))
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="mycel-workers", daemon=True)
                self._thread.start()

    def add(self, worker: Any) -> bool:
        """Let a worker rest; return False where it has to end."""
        with self._changed:
            if self._thread is None or self._closed or len(self._workers) >= _MOST:
                return False
            self._workers.append((time.monotonic() + REST, worker))
            self._changed.notify_all()
            return True

    def take(self, kind: Any) -> Any:
        """Return a worker of this kind that rests no more, or None."""
        with self._changed:
            for place, (_, worker) in enumerate(self._workers):
                if worker.kind == kind:
                    del self._workers[place]
                    return worker
        return None

    def leave(self, crew: Any) -> None:
        """Note that a crew is closed."""
        with self._changed:
            self._crews.discard(id(crew))
            self._changed.notify_all()

    def count(self) -> int:
        """Return how many rest."""
        return len(self._workers)

    def _run(self) -> None:
        while True:
            with self._changed:
                now = time.monotonic()
                due = [worker for end, worker in self._workers if end <= now or self._closed]
                self._workers = [(end, worker) for end, worker in self._workers if worker not in due]
                if not due:
                    if self._closed or not (self._workers or self._crews):
                        self._thread = None
                        return
                    self._changed.wait(self._workers[0][0] - now if self._workers else None)
                    continue
            _end(due)

    def close(self) -> None:
        """End all, when the program ends."""
        with self._changed:
            self._closed = True
            due = [worker for _, worker in self._workers]
            self._workers = []
            self._changed.notify_all()
        _end(due)

    def forget(self) -> None:
        """Forget all, in a forked child, to which they do not belong."""
        self._workers, self._crews, self._thread = [], set(), None


def _end(workers: list[Any]) -> None:
    for worker in workers:
        worker.release()
    end = time.monotonic() + 0.3
    for worker in workers:
        worker.end(end)
