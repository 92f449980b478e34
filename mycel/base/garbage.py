"""Rest for the collector of garbage while something is compiled.

Compilation makes a great many objects, all of which stay alive until it is done; each search for garbage would go through all of them again and find none.
A pause ends with its block or, where an interrupt came between its beginning and its block, with its object.
"""

from __future__ import annotations

import gc

from mycel.base import locks

__all__ = ["left_alone"]


class _Pauses:
    """The pauses that are open in all threads, by identity, and whether the collector ran before the first."""

    def __init__(self) -> None:
        # An object may end, and so its pause, while its own thread holds the lock.
        self.lock = locks.reentrant()
        self.open: set[int] = set()
        self.was_on = False


_pauses = _Pauses()


@locks.in_child
def _in_child() -> None:
    """Go on without the blocks that other threads of the parent were in."""
    if _pauses.open and _pauses.was_on:
        gc.enable()
    _pauses.__init__()  # type: ignore[misc]


class left_alone:
    """Collect no garbage while any such block runs; afterwards as before.

    >>> before = gc.isenabled()
    >>> with left_alone():
    ...     gc.isenabled()
    False
    >>> gc.isenabled() == before
    True
    """

    def __enter__(self) -> None:
        with _pauses.lock:
            if not _pauses.open:
                _pauses.was_on = gc.isenabled()
                gc.disable()
            _pauses.open.add(id(self))

    def __exit__(self, *error: object) -> None:
        self._end()

    def __del__(self) -> None:
        self._end()

    def _end(self) -> None:
        with _pauses.lock:
            if id(self) in _pauses.open:
                _pauses.open.discard(id(self))
                if not _pauses.open and _pauses.was_on:
                    gc.enable()
