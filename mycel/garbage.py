"""Rest for the collector of garbage while something is compiled.

Compilation makes a great many objects, all of which stay alive until it is done; each search for garbage would go through all of them again and find none.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["left_alone"]


class _Pauses:
    """How many blocks are open in all threads, and whether the collector ran before the first."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.open = 0
        self.was_on = False


_pauses = _Pauses()


def _in_child() -> None:
    """Go on without the blocks that other threads of the parent were in."""
    if _pauses.open and _pauses.was_on:
        gc.enable()
    _pauses.__init__()  # type: ignore[misc]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


@contextmanager
def left_alone() -> Iterator[None]:
    """Collect no garbage while any such block runs; afterwards as before.

    >>> with left_alone():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    with _pauses.lock:
        if _pauses.open == 0:
            _pauses.was_on = gc.isenabled()
            gc.disable()
        _pauses.open += 1
    try:
        yield
    finally:
        with _pauses.lock:
            # A child that was forked inside such a block counts anew.
            _pauses.open = max(_pauses.open - 1, 0)
            if _pauses.open == 0 and _pauses.was_on:
                gc.enable()
