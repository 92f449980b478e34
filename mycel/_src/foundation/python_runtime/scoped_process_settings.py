"""Scoped process-wide settings (recursion limit, garbage collector), changed in `with` blocks.

Python has one recursion limit and one garbage collector for all threads. The first block to open
changes such a setting, the last one to end restores it. A block ends with its `with` statement or,
where an interrupt came between its beginning and the statement's body, with its object. A forked
child keeps the blocks of the thread that forked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from mycel._src.foundation.python_runtime import finalization
from mycel._src.foundation.system import locks

__all__ = ["Block", "WhileOpen"]

T = TypeVar("T")


class WhileOpen(Generic[T]):
    """A setting of the process and the blocks, of all threads, in which it has another value.

    `get` and `put` read and change it; `within` computes the value in blocks from the one outside.
    A change made within a block by other code is deliberate and stays.

    >>> state = {"level": 1}
    >>> raised = WhileOpen(lambda: state["level"], lambda n: state.update(level=n), lambda n: 9)
    >>> with raised.block(), raised.block():
    ...     state["level"]
    9
    >>> state["level"]
    1
    """

    def __init__(self, get: Callable[[], T], put: Callable[[T], None], within: Callable[[T], T]) -> None:
        self.get, self.put, self.within = get, put, within
        # A signal's handler may open a block, and an object's end close one, while their own
        # thread holds the lock.
        self.lock = locks.reentrant()
        # The thread of each open block.
        self.open: dict[int, int] = {}
        self._ends: dict[int, finalization.Task] = {}
        self.before = self.during = get()
        locks.in_child(self._in_child)

    def block(self) -> Block:
        """Make a block, to be entered by `with`."""
        return Block(self)

    def enter(self, block: Block) -> None:
        """Open a block."""
        number = id(block)
        self._ends[number] = finalization.when_gone(block, self.leave, number, at_exit=False)
        with self.lock:
            now = self.get()
            during = self.within(now)
            if not self.open:
                self.before, self.during = now, during
            self.open[number] = threading.get_ident()
            if now != during:
                self.put(during)

    def leave(self, number: int) -> None:
        """End the block of this number, if it is open."""
        end = self._ends.pop(number, None)
        if end is not None:
            end.cancel()
        if number in self.open:
            with self.lock:
                if len(self.open) == 1:
                    self._restore()
                self.open.pop(number, None)

    def _restore(self) -> None:
        if self.get() == self.during:
            self.put(self.before)

    def _in_child(self) -> None:
        """Forget the blocks of threads that the child does not have."""
        thread = threading.get_ident()
        mine = {number: owner for number, owner in self.open.items() if owner == thread}
        if self.open and not mine:
            self._restore()
        self.open = mine


class Block:
    """A `with` block in which a setting of the process has another value."""

    __slots__ = ("_setting", "__weakref__")

    def __init__(self, setting: WhileOpen[Any]) -> None:
        self._setting = setting

    def __enter__(self) -> None:
        self._setting.enter(self)

    def __exit__(self, *error: object) -> None:
        self._setting.leave(id(self))
