"""The current transport: the process's own, or one that a thread has put in its place.

>>> transport().size
1
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from mycel._src.compiler.transport.base import Transport
from mycel._src.compiler.transport.single_process import Alone

__all__ = ["put", "transport", "within"]


class _Thread(threading.local):
    own: Transport | None = None


_thread = _Thread()
_process: list[Transport] = [Alone()]


def transport() -> Transport:
    """Return the transport in force in this thread."""
    return _thread.own or _process[0]


def put(new: Transport) -> Transport:
    """Make `new` the process's transport, and return the one before."""
    before, _process[0] = _process[0], new
    return before


@contextmanager
def within(own: Transport) -> Iterator[None]:
    """Have this thread use `own` inside of the block."""
    before, _thread.own = _thread.own, own
    try:
        yield
    finally:
        _thread.own = before
