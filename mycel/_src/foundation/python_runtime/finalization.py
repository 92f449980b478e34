"""Finalizers and weak-reference callbacks that run no Python code where Ctrl-C could be lost.

Callbacks of weak references, finalizers and `__del__` run between any two steps of a program. A
signal's handler may run within them, and what it raises there, as KeyboardInterrupt, is printed and
lost. So nothing of the package's runs there that is written in Python: no `__del__`, no
`weakref.finalize`, none of the classes of `weakref`. Instead

* `Living` and `Interned` are tables of which dead objects are dropped by functions of C, in which
  no handler runs, or when the table is used next;
* `at_end` calls other functions of C;
* `when_gone` does what takes Python in a thread, which signals do not reach.
"""

from __future__ import annotations

import _thread
import atexit
import itertools
import operator
import sys
import threading
import types
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from typing import Any, Generic, TypeVar
from weakref import ref

from mycel._src.foundation.system import locks

__all__ = ["Interned", "Living", "Method", "Task", "at_end", "settle", "when_gone"]

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Living(Generic[T]):
    """A set of objects, held weakly.

    >>> class Thing: ...
    >>> things, thing = Living[Thing](), Thing()
    >>> things.add(thing)
    >>> len(things), thing in things, things.members() == [thing]
    (1, True, True)
    >>> del thing
    >>> len(things)
    0
    """

    __slots__ = ("_refs", "__weakref__")

    def __init__(self) -> None:
        self._refs: set[ref[T]] = set()

    def add(self, item: T) -> None:
        """Add an object; again does nothing."""
        self._refs.add(ref(item, self._refs.discard))

    def discard(self, item: T) -> None:
        """Remove an object, if it is there."""
        self._refs.discard(ref(item))

    def clear(self) -> None:
        """Remove all objects."""
        self._refs.clear()

    def members(self) -> list[T]:
        """Return the objects that are alive."""
        found = [get() for get in list(self._refs)]
        return [item for item in found if item is not None]

    def __iter__(self) -> Iterator[T]:
        return iter(self.members())

    def __contains__(self, item: Any) -> bool:
        return ref(item) in self._refs

    def __len__(self) -> int:
        return len(self._refs)


class _Keyed(ref[V]):
    __slots__ = ("key",)

    key: Any


class Interned(Generic[K, V]):
    """A table of objects by keys, which it does not keep alive.

    The key of an object that is gone may stay until the next one is entered.

    >>> class Thing: ...
    >>> things, thing = Interned[str, Thing](), Thing()
    >>> things.enter("a", thing) is thing, things.enter("a", Thing()) is thing
    (True, True)
    >>> del thing
    >>> things.get("a") is None
    True
    """

    __slots__ = ("_refs", "_gone", "_lock")

    def __init__(self) -> None:
        self._refs: dict[K, _Keyed[V]] = {}
        self._gone: deque[_Keyed[V]] = deque()
        self._lock = locks.reentrant()

    def get(self, key: K) -> V | None:
        """Return the object of a key, or None."""
        found = self._refs.get(key)
        return None if found is None else found()

    def enter(self, key: K, value: V) -> V:
        """Return the object of a key: the one that is alive, or else this one."""
        with self._lock:
            self._clean()
            known = self.get(key)
            if known is not None:
                return known
            made = _Keyed(value, self._gone.append)
            made.key = key
            self._refs[key] = made
            return value

    def keys(self) -> list[K]:
        """Return the keys of the objects that are alive."""
        return [key for key, get in list(self._refs.items()) if get() is not None]

    def __len__(self) -> int:
        return len(self.keys())

    def _clean(self) -> None:
        while self._gone:
            dead = self._gone.popleft()
            if self._refs.get(dead.key) is dead:
                del self._refs[dead.key]


class Method:
    """A reference to a bound method, which does not keep its object alive.

    >>> class Thing:
    ...     def name(self): return "thing"
    >>> thing = Thing()
    >>> method = Method(thing.name)
    >>> method()()
    'thing'
    >>> del thing
    >>> method() is None
    True
    """

    __slots__ = ("_owner", "_function")

    def __init__(self, method: types.MethodType) -> None:
        self._owner, self._function = ref(method.__self__), method.__func__

    def __call__(self) -> types.MethodType | None:
        """Return the method, or None where its object is gone."""
        owner = self._owner()
        return None if owner is None else types.MethodType(self._function, owner)


# By the number of an owner: references that have to outlive it.
_held: dict[int, list[ref[Any]]] = {}


def at_end(owner: Any, function: Callable[[ref[Any]], Any]) -> None:
    """Call a function of C when an object is gone, the last one first.

    It gets a dead reference, behind the arguments of a `partial`.
    """
    number = id(owner)
    held = _held.get(number)
    if held is None:
        held = _held[number] = []
        held.append(ref(owner, partial(_held.pop, number)))
    held.append(ref(owner, function))


_numbers = itertools.count()
_waiting: dict[int, Task] = {}
# Held while something is done.
_doing = locks.reentrant()


class _End(ref[Any]):
    """A reference at whose end a thread begins, by functions of C alone."""

    __slots__ = ("begin",)

    begin: Callable[[], Any]


_begin = operator.methodcaller("begin")
_nothing = partial(bool, None)
_over = False


class Task:
    """What is done once, `task(*arguments)`: when it is called, or by a thread that begins when its
    `owner` is gone.

    With `at_exit` it is done when the program ends at the latest.
    """

    __slots__ = ("number", "at_exit", "_end", "_task", "_arguments")

    def __init__(self, owner: Any, at_exit: bool, task: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.number, self.at_exit = next(_numbers), at_exit
        self._task, self._arguments = task, arguments
        self._end = _End(owner, _begin)
        # No thread begins while Python ends.
        self._end.begin = _nothing if _over else partial(_thread.start_new_thread, _do, (self.number,))
        _waiting[self.number] = self

    def __call__(self) -> None:
        """Do it now, unless it was done."""
        if _waiting.pop(self.number, None) is not None:
            self._task(*self._arguments)

    def cancel(self) -> None:
        """Never do it."""
        _waiting.pop(self.number, None)

    @property
    def alive(self) -> bool:
        """Whether it is still to be done."""
        return self.number in _waiting

    @property
    def due(self) -> bool:
        """Whether its owner is gone."""
        return self._end() is None


def when_gone(owner: Any, task: Callable[..., Any], *arguments: Any, at_exit: bool = True) -> Task:
    """Have a thread do `task(*arguments)` when an object is gone; `Task`.

    >>> class Thing: ...
    >>> thing, done = Thing(), []
    >>> _ = when_gone(thing, done.append, 1)
    >>> del thing
    >>> settle(); done
    [1]
    """
    return Task(owner, at_exit, task, arguments)


def _do(number: int) -> None:
    with _doing:
        task = _waiting.get(number)
        if task is None:
            return
        try:
            task()
        except BaseException:
            # Nobody waits for it.
            kind, error, trace = sys.exc_info()
            threading.excepthook(threading.ExceptHookArgs((kind, error, trace, threading.current_thread())))


def settle() -> None:
    """Wait until all is done that there was to do for objects that are gone."""
    with _doing:
        for number, task in list(_waiting.items()):
            if task.due:
                _do(number)


@atexit.register
def _at_exit() -> None:
    global _over
    _over = True
    for number, task in list(_waiting.items())[::-1]:
        if task.at_exit:
            _do(number)
        else:
            task.cancel()
