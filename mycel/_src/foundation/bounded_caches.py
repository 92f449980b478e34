"""Bounded in-memory caches: tables of results that may be evicted and made again.

Every table of the package that may forget is a `Remembered`: it is bounded, has a name by which
`sizes` shows it, and is emptied by `forget`, together with all others, or alone when one of the
settings in its `forget_on` changes. Tables keyed by an object are `RememberedOf`, whose entries end
with the object. Tables that may not forget, such as registries, are plain dicts.

A table keeps two generations. `recent` is a plain dict, always the same one, in which hot paths
look first: a hit costs what it costs in a dict. When it holds half of the table's limit, its
entries become the `earlier` generation, the former earlier entries are evicted, and `recent` begins
empty. An earlier entry that is found becomes recent again. So a table holds at most `most` entries,
and always the half of them that was used last.

Looking up and entering take no lock: each access is a single operation of a dict, which no thread
sees half done. Where two threads make an entry for one key, both get the one that was entered
first. An entry made while another thread begins a generation may be lost, and is then made again;
one made while the table is emptied is not kept, as it may be out of date.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from functools import partial, wraps
from typing import Any, Generic, TypeVar, cast
from weakref import ref

from mycel._src.foundation.python_runtime import finalization
from mycel._src.foundation.settings import config
from mycel._src.foundation.system import locks

__all__ = ["FEW", "MANY", "SOME", "Remembered", "RememberedOf", "forget", "sizes"]

# How many entries a table may hold: large things, programs and graphs, and small things.
FEW, SOME, MANY = 64, 1024, 8192

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
F = TypeVar("F", bound=Callable[..., Any])


class Remembered(Generic[K, V]):
    """A table of at most `most` entries, from which those unused for longest are evicted.

    `forget_on` names options of `set_context`: when one of them is set, the table is emptied.
    `sizes` adds up tables of one `name`. None cannot be a value.

    >>> squares = Remembered[int, int]("squares", 4)
    >>> [squares.recall(n, lambda: n * n) for n in range(100)][-1]
    9801
    >>> len(squares), squares.get(99), squares.get(1)
    (4, 9801, None)
    """

    __slots__ = ("name", "most", "forget_on", "recent", "earlier", "since", "_changing", "_ends", "__weakref__")

    def __init__(self, name: str, most: int, forget_on: Collection[str] = ()) -> None:
        self.name, self.most, self.forget_on = name, most, frozenset(forget_on)
        self.recent: dict[K, V] = {}
        self.earlier: dict[K, V] = {}
        self.since = object()
        # References by whose callbacks entries leave with an object.
        self._ends: dict[K, list[ref[Any]]] = {}
        # Held while the table begins a generation or forgets.
        self._changing = locks.reentrant()
        _tables.add(self)
        _events.update(self.forget_on)

    def __len__(self) -> int:
        return len(self.recent) + len(self.earlier)

    def items(self) -> list[tuple[K, V]]:
        """List the entries that the table holds at present."""
        return list({**self.earlier, **self.recent}.items())

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        found = self.recent.get(key)
        if found is None:
            since = self.since
            found = self.earlier.get(key)
            if found is not None:
                found = self._entered(key, found, since)
        return found

    def recall(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of a key; make it where there is none."""
        found = self.get(key)
        if found is None:
            since = self.since
            found = self._entered(key, make(), since)
        return found

    def enter(self, key: K, value: V) -> V:
        """Enter a value for a key; return the value that was entered first."""
        return self.recall(key, lambda: value)

    def replace(self, key: K, value: V) -> None:
        """Enter a value for a key, in place of any that was there."""
        self._make_room()
        self.recent[key] = value

    def pop(self, key: K) -> None:
        """Remove a key."""
        self.recent.pop(key, None)
        self.earlier.pop(key, None)

    def leaves_with(self, key: K, owner: Any) -> None:
        """Remove the entry of a key when an object is gone; the key must have a hash of C's."""
        if key not in self._ends:
            tables: tuple[dict[K, Any], ...] = (self.recent, self.earlier, self._ends)
            # No step of Python's: see `finalization.py`.
            self._ends[key] = [ref(owner, partial(table.pop, key)) for table in tables]

    def forget(self) -> None:
        """Empty the table."""
        with self._changing:
            # These end after the lock is free, as what ends with them may need other locks.
            dropped = self.recent.copy(), self.earlier.copy(), self._ends.copy()
            self.since = object()
            for table in (self.earlier, self.recent, self._ends):
                table.clear()
        self.emptied()
        del dropped

    def calls(self, function: F) -> F:
        """Decorate a function so that its results are remembered by its arguments."""

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            key: Any = (args, *kwargs.items()) if kwargs else args
            return self.recall(key, lambda: function(*args, **kwargs))

        return cast(F, call)

    def is_full(self) -> bool:
        """Return whether the recent generation holds half of what the table may hold."""
        return len(self.recent) >= max(self.most // 2, 1)

    def emptied(self) -> None:
        """Do, in subclasses, what has to follow when `recent` was emptied."""

    def _entered(self, key: K, value: V, since: object) -> V:
        """Enter a value unless the table was emptied meanwhile; return the one that came first."""
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
        if not self.is_full() or not self._changing.acquire(blocking=False):
            return
        before = self.earlier.copy()
        try:
            # Another thread may have been first.
            if self.is_full():
                # Both stay the same dicts, for `leaves_with`, and no entry is missing meanwhile.
                recent = self.recent.copy()
                self.earlier.update(recent)
                for key in before:
                    if key not in recent:
                        self.earlier.pop(key, None)
                        self._ends.pop(key, None)
                self.recent.clear()
        finally:
            self._changing.release()
        self.emptied()
        del before


class RememberedOf(Remembered["ref[Any]", V]):
    """A table of values made of objects; each entry ends with its object.

    A value must not refer to its object, which would then never be freed.

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
        """Return the value for an object; make it where there is none."""
        key = ref(owner)
        found = self.recent.get(key)
        if found is None:
            since = self.since
            found = self.earlier.get(key)
            found = self._entered(key, make() if found is None else found, since)
            self.leaves_with(key, owner)
        return found


_tables = finalization.Living["Remembered[Any, Any]"]()
_events: set[str] = set()


def sizes() -> dict[str, tuple[int, int]]:
    """Return the number of entries of each table and its limit, by name."""
    found: dict[str, tuple[int, int]] = {}
    for table in _tables.members():
        entries, most = found.get(table.name, (0, 0))
        found[table.name] = entries + len(table), most + table.most
    return dict(sorted(found.items()))


def forget() -> None:
    """Empty all tables."""
    for table in _tables.members():
        table.forget()


def _on_settings(options: Collection[str]) -> None:
    if not _events.isdisjoint(options):
        for table in _tables.members():
            if not table.forget_on.isdisjoint(options):
                table.forget()


config.listeners.append(_on_settings)
