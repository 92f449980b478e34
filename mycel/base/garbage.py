"""Rest for the collector of garbage while something is compiled.

Compilation makes a great many objects, all of which stay alive until it is done; each search for
garbage would go through all of them again and find none.
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
    """Collect no garbage while any such block runs; afterwards as before.

    >>> before = gc.isenabled()
    >>> with left_alone():
    ...     gc.isenabled()
    False
    >>> gc.isenabled() == before
    True
    """
    return _collecting.block()
