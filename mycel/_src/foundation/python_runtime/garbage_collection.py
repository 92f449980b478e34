"""Garbage collection paused during compilation, and made rarer during recording.

Compilation makes a great many objects, all of which stay alive until it is done; each garbage
collection would go through all of them again and free none. Recordings of gradients do so too, but
run the user's code, whose garbage may not be left for ever: there all objects of the process are
gone through after a million and a half new ones only.
"""

from __future__ import annotations

import gc

from mycel._src.foundation.python_runtime.scoped_process_settings import Block, WhileOpen

__all__ = ["left_alone", "seldom"]

FULL = 200  # collections of younger objects before one of all objects


def _switch(on: bool) -> None:
    if on:
        gc.enable()
    else:
        gc.disable()


_collecting = WhileOpen(gc.isenabled, _switch, lambda _: False)


def left_alone() -> Block:
    """Return a block without garbage collection; the last such block to end restores the setting.

    >>> before = gc.isenabled()
    >>> with left_alone():
    ...     gc.isenabled()
    False
    >>> gc.isenabled() == before
    True
    """
    return _collecting.block()


_rarely = WhileOpen(gc.get_threshold, lambda now: gc.set_threshold(*now), lambda now: (*now[:2], max(now[2], FULL)))


def seldom() -> Block:
    """Return a block in which all objects are seldom looked through for garbage.

    Young objects are as often as ever. The last such block to end restores the setting.

    >>> before = gc.get_threshold()
    >>> with seldom():
    ...     gc.get_threshold()[2] >= FULL
    True
    >>> gc.get_threshold() == before
    True
    """
    return _rarely.block()
