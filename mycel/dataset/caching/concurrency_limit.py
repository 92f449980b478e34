"""Semaphore: a context manager that only so many threads enter at once, while others wait."""

from __future__ import annotations

from mycel._src.foundation.system import locks


class Turns:
    """A context manager that lets `count` threads in at once; others wait."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._changed = locks.condition(locks.reentrant())

    def __enter__(self) -> Turns:
        with self._changed:
            while not self._left:
                self._changed.wait()
            self._left -= 1
        return self

    def __exit__(self, *error: object) -> None:
        with self._changed:
            self._left += 1
            self._changed.notify()
