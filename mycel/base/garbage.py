"""Garbage collection, switched off while something is compiled.

Compilation makes a great many objects, all of which stay alive until it is done; each garbage
collection would go through all of them again and free none.
"""

from __future__ import annotations

import gc

from mycel.base.while_open import Block, WhileOpen

__all__ = ["left_alone"]


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
