"""Tables of what was found or made before, so that it need not be found again.

Every table of the package that may forget is a `Remembered`: it is bounded, has a name by which
`sizes` shows it, and forgets with all others when `forget` is called, or alone when one of the
settings changes that it names. Tables of what belongs to an object are `RememberedOf`, which
forget with the object. Tables that may not forget, such as registries, are plain dicts.

A table keeps two generations. `recent` is a plain dict, always the same one, in which users of a
hot path look first: a hit costs what it costs in a dict. When it holds half of what the table
may, its entries become the `earlier` ones, in place of those that were, and it begins anew. What
is found among the earlier entries becomes recent again. So a table holds `most` entries at most,
and the half of them that was used last at least.

Who looks up or enters something waits for nobody: each access is a single operation of a dict,
which no thread sees half done. Where two threads make an entry for one key, both get the one that
was entered first. What is entered while another thread begins a generation may be lost, and is
then made again; what is made while a table forgets is not kept, as it may be out of date.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Hashable
from functools import wraps
from typing import Any, Generic, Optional, TypeVar, cast
from weakref import WeakValueDictionary, ref

from mycel.base import config, locks

__all__ = ["FEW", "MANY", "SOME", "Remembered", "RememberedOf", "forget", "sizes"]

# How many entries a table may hold: large things, programs and graphs, and small things.
FEW, SOME, MANY = 64, 1024, 8192

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
F = TypeVar("F", bound=Callable[..., Any])


class Remembered(Generic[K, V]):
    """A table of at most `most` entries, which forgets those that were unused for longest.

    `forget_on` names options of `set_context`: when one of them is set, the table is emptied.
    Tables of one name are shown together. None cannot be remembered.

    >>> squares = Remembered[int, int]("squares", 4)
    >>> [squares.recall(n, lambda: n * n) for n in range(100)][-1]
    9801
    >>> len(squares), squares.get(99), squares.get(1)
    (4, 9801, None)
    """

    __slots__ = ("name", "most", "forget_on", "recent", "earlier", "since", "_changing", "__weakref__")

    def __init__(self, name: str, most: int, forget_on: Collection[str] = ()) -> None:
        self.name, self.most, self.forget_on = name, most, frozenset(forget_on)
        self.recent: dict[K, V] = {}
        self.earlier: dict[K, V] = {}
        self.since = object()
        # Held while the table begins a generation or forgets.
        self._changing = locks.reentrant()
        _tables[next(_numbers)] = self
        _events.update(self.forget_on)

    def __len__(self) -> int:
        return len(self.recent) + len(self.earlier)

    def items(self) -> list[tuple[K, V]]:
        """List what is remembered at present."""
        return list({**self.earlier, **self.recent}.items())

    def get(self, key: K) -> Optional[V]:
        """Return what is remembered under a key, or None."""
        found = self.recent.get(key)
        if found is None:
            since = self.since
            found = self.earlier.get(key)
            if found is not None:
                found = self._entered(key, found, since)
        return found

    def recall(self, key: K, make: Callable[[], V]) -> V:
        """Return what is remembered under a key; make it if there is nothing."""
        found = self.get(key)
        if found is None:
            since = self.since
            found = self._entered(key, make(), since)
        return found

    def enter(self, key: K, value: V) -> V:
        """Remember a value; return the one that was entered first."""
        return self.recall(key, lambda: value)

    def replace(self, key: K, value: V) -> None:
        """Remember a value in place of the one that was there."""
        self._make_room()
        self.recent[key] = value

    def pop(self, key: K) -> None:
        """Forget a key."""
        self.recent.pop(key, None)
        self.earlier.pop(key, None)

    def forget(self) -> None:
        """Forget everything."""
        with self._changing:
            # These end after the lock is free, as what ends with them may need other locks.
            dropped = self.recent.copy(), self.earlier
            self.earlier = {}
            self.since = object()
            self.recent.clear()
        self.emptied()
        del dropped

    def calls(self, function: F) -> F:
        """Return decorate a function so that its results are remembered by its arguments."""

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            key: Any = (args, *kwargs.items()) if kwargs else args
            return self.recall(key, lambda: function(*args, **kwargs))

        return cast(F, call)

    def emptied(self) -> None:
        """Do what has to follow when `recent` begins anew."""

    def _entered(self, key: K, value: V, since: object) -> V:
        """Enter a value unless the table forgot meanwhile; return the one that came first."""
        self._make_room()
        earlier = self.earlier
        first = earlier.get(key)
        value = self.recent.setdefault(key, value if first is None else first)
        earlier.pop(key, None)
        if self.since is not since:
            self.pop(key)
        return value

    def _make_room(self) -> None:
        """Begin a new generation if the recent one is full."""
        half = max(self.most // 2, 1)
        if len(self.recent) < half or not self._changing.acquire(blocking=False):
            return
        before = self.earlier
        try:
            # Another thread may have been first.
            if len(self.recent) >= half:
                self.earlier = self.recent.copy()
                self.recent.clear()
        finally:
            self._changing.release()
        self.emptied()
        del before


class RememberedOf(Remembered["ref[Any]", V]):
    """A table of what was made of objects, each of which is forgotten with its object.

    A value must not hold its object, which would then never be let go.

    >>> class Thing: ...
    >>> names = RememberedOf[str]("names", 4)
    >>> thing = Thing()
    >>> names.of(thing, lambda: "first"), names.of(thing, lambda: "second")
    ('first', 'first')
    >>> del thing
    >>> len(names)
    0
    """

    __slots__ = ()

    def of(self, owner: Any, make: Callable[[], V]) -> V:
        """Return what is remembered of an object; make it if there is nothing."""
        key = ref(owner)
        found = self.recent.get(key)
        if found is None:
            since = self.since
            found = self.earlier.get(key)
            found = self._entered(ref(owner, self.pop), make() if found is None else found, since)
        return found


_tables: WeakValueDictionary[int, Remembered[Any, Any]] = WeakValueDictionary()
_numbers = itertools.count()
_events: set[str] = set()


def _alive() -> list[Remembered[Any, Any]]:
    found = [get() for get in _tables.valuerefs()]
    return [table for table in found if table is not None]


def sizes() -> dict[str, tuple[int, int]]:
    """Return how many entries each table has, and how many it may have, by name."""
    found: dict[str, tuple[int, int]] = {}
    for table in _alive():
        entries, most = found.get(table.name, (0, 0))
        found[table.name] = entries + len(table), most + table.most
    return dict(sorted(found.items()))


def forget() -> None:
    """Empty all tables."""
    for table in _alive():
        table.forget()


def _on_settings(options: Collection[str]) -> None:
    if not _events.isdisjoint(options):
        for table in _alive():
            if not table.forget_on.isdisjoint(options):
                table.forget()


config.listeners.append(_on_settings)
