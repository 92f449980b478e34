"""Room on Python's stack for the interpreter of functions that are compiled."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from mycel.base import locks

__all__ = ["deep_stack"]

_STACK = 1_000_000 if sys.version_info >= (3, 11) else 12_000


class _Limits:
    """The blocks of `deep_stack` that are open, by thread, and Python's limit of recursion before the first: it is one for all threads."""

    def __init__(self) -> None:
        # A signal's handler may compile something while its own thread holds the lock.
        self.lock = locks.reentrant()
        self.open: dict[int, int] = {}
        self.before = 0

    def enter(self) -> None:
        with self.lock:
            limit = sys.getrecursionlimit()
            if not self.open:
                self.before = limit
            thread = threading.get_ident()
            self.open[thread] = self.open.get(thread, 0) + 1
            if limit < _STACK:
                sys.setrecursionlimit(_STACK)

    def leave(self) -> None:
        with self.lock:
            thread = threading.get_ident()
            # An interrupt may have come before it was entered.
            left = self.open.pop(thread, 1) - 1
            if left:
                self.open[thread] = left
            # Whoever changed it meanwhile meant it.
            if not self.open and sys.getrecursionlimit() == _STACK:
                sys.setrecursionlimit(self.before)


_limits = _Limits()


@locks.in_child
def _in_child() -> None:
    """Forget the blocks of threads that the child does not have."""
    thread = threading.get_ident()
    mine = _limits.open.get(thread)
    _limits.open = {thread: mine} if mine else {}
    if not mine and sys.getrecursionlimit() == _STACK and _limits.before:
        sys.setrecursionlimit(_limits.before)


@contextmanager
def deep_stack() -> Iterator[None]:
    """Room for the interpreter, which takes several Python calls for each call of the program."""
    try:
        _limits.enter()
        yield
    finally:
        _limits.leave()
