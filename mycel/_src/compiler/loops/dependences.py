"""Dependence analysis: whether a schedule keeps the order of accesses to the same element.

A schedule is right if every two accesses to an element, of which one writes, keep their order.
`numbered` notes, in each statement, which one it is and in which iteration it runs. Schedules
replace the indices of these notes with all others, so that afterwards `reversal` can ask, of two
statements as they now are, whether they may meet in an element in another order than before. That
is a system of inequalities for each two levels of loops at which they may follow one another.

Updates that commute need no order: those by max and min, those of integers, and, where sums of
floats may be associated in another way, all that combine by one mode.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mycel._src.compiler.ir.dim_values import substitute, symbols_in
from mycel._src.compiler.ir.dims import Dim, DimLike
from mycel._src.compiler.loops import legality
from mycel._src.compiler.loops.access_analysis import formulas_of
from mycel._src.compiler.loops.formulas import Formula, Place, reads_of, substituted
from mycel._src.compiler.loops.inequalities import System
from mycel._src.compiler.loops.integer_sets import is_certainly_empty
from mycel._src.compiler.loops.programs import Array, For, If, Instance, Set, Statement, Where, called, index_of

__all__ = ["Clash", "carried", "numbered", "plain", "reversal"]

# What leads to a statement: numbers of statements in their bodies, and loops.
Path = tuple[int | For, ...]


@dataclass(frozen=True)
class Access:
    """One place of an array as a statement touches it; `mode` is "read" or the mode of a `Set`."""

    array: str
    place: Place
    mode: str


@dataclass(frozen=True)
class Event:
    """A statement with the way to it, the conditions that hold there, and what it touches."""

    path: Path
    conditions: tuple[Formula, ...]
    accesses: tuple[Access, ...]
    instance: Instance | None
    where: Where | None

    @property
    def loops(self) -> list[For]:
        return [step for step in self.path if isinstance(step, For)]


@dataclass(frozen=True)
class Clash:
    """Two accesses that must keep an order, which is not kept.

    `first` and `second` are in the order that was. `directions` has, for each loop around both, by
    its name, whether the second comes in a later ("<"), the same ("=") or an earlier (">")
    iteration.
    """

    array: str
    first: str
    second: str
    first_where: Where | None
    second_where: Where | None
    directions: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        signs = ", ".join(f"{called(name)}: {sign}" for name, sign in self.directions)
        lines = [f" at line {w[1]}" if w is not None else "" for w in (self.first_where, self.second_where)]
        return f"{self.first}{lines[0]} and then {self.second}{lines[1]} ({signs})"


def numbered(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """Return statements each of which notes its number and its iteration."""
    count = itertools.count()

    def walk(body: Sequence[Statement], indices: tuple[DimLike, ...]) -> tuple[Statement, ...]:
        made: list[Statement] = []
        for s in body:
            if isinstance(s, For):
                made.append(replace(s, body=walk(s.body, (*indices, index_of(s.index)))))
            elif isinstance(s, If):
                note = (next(count), indices)
                inner = [walk(part, indices) for part in (s.body, s.other)]
                made.append(replace(s, body=inner[0], other=inner[1], instance=note))
            else:
                made.append(replace(s, instance=(next(count), indices)))
        return tuple(made)

    return walk(body, ())


def plain(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """Return statements without notes."""
    made: list[Statement] = []
    for s in body:
        if isinstance(s, For):
            made.append(replace(s, body=plain(s.body)))
        elif isinstance(s, If):
            made.append(replace(s, body=plain(s.body), other=plain(s.other), instance=None))
        else:
            made.append(replace(s, instance=None))
    return tuple(made)


def _events(body: Sequence[Statement], path: Path = (), held: tuple[Formula, ...] = ()) -> Iterator[Event]:
    """Yield every `Set` and every condition of statements."""
    for k, s in enumerate(body):
        here = (*path, k)
        if isinstance(s, For):
            yield from _events(s.body, (*here, s), held)
            continue
        accesses = [Access(r.data, r.place, "read") for r in reads_of(*formulas_of(s))]
        if isinstance(s, Set):
            yield Event(here, held, (*accesses, Access(s.array, s.place, s.mode)), s.instance, s.where)
            continue
        yield Event((*here, 0), held, tuple(accesses), s.instance, s.where)
        yield from _events(s.body, (*here, 1), (*held, *legality.conjuncts(s.condition)))
        yield from _events(s.other, (*here, 2), (*held, legality.opposite(s.condition)))


class _Order:
    """The question in which order two statements, as they are in one program, touch an element.

    Those of the first have a prime in the names of its indices, those of the second have two.
    """

    def __init__(self, one: Event, other: Event, shared: Sequence[For]) -> None:
        self.events = (one, other)
        fixed = {loop.index for loop in shared}
        self.names: list[dict[str, DimLike]] = [
            {loop.index: index_of(loop.index + mark) for loop in e.loops if loop.index not in fixed}
            for e, mark in zip(self.events, ("'", "''"))
        ]
        self.system = System()
        for loop in shared:
            self.bounds(loop, {})
        for e, names in zip(self.events, self.names):
            for loop in e.loops:
                self.bounds(loop, names)
            for c in e.conditions:
                for d in legality.known(substituted(c, names)):
                    self.system.add_positive(d)

    def bounds(self, loop: For, names: dict[str, DimLike]) -> None:
        index = substitute(index_of(loop.index), names)
        self.system.add_positive(index - substitute(loop.start, names))
        self.system.add_positive(substitute(loop.stop, names) - 1 - index)

    def difference(self, one: DimLike, other: DimLike) -> DimLike:
        """Return the second's value less the first's, of dimensions in the indices of each."""
        found: DimLike = substitute(other, self.names[1]) - substitute(one, self.names[0])
        return found

    def meeting(self, one: Access, other: Access, owners: Sequence[For]) -> System:
        """Return the system in which two accesses are of one element.

        `owners` are the loops in each iteration of which the array is another one.
        """
        made = self.system.copy()
        for loop in owners:
            index = index_of(loop.index)
            made.add_zero(self.difference(index, index))
        for s, t in zip(one.place, other.place):
            if not isinstance(s, Formula) and not isinstance(t, Formula):
                made.add_zero(self.difference(s, t))
        return made


# Pairs of indices that are the same, then one that is less in the first than in the second, or
# greater, in a loop that runs downwards.
Following = tuple[list[tuple[DimLike, DimLike]], tuple[tuple[DimLike, DimLike], bool] | None]


def _following(one: Path, other: Path, mine: Sequence[DimLike], theirs: Sequence[DimLike]) -> Iterator[Following]:
    """Yield the ways in which a statement runs before another one.

    `one` and `other` are what leads to them, and `mine` and `theirs` the values of the loops on it.
    """
    equal: list[tuple[DimLike, DimLike]] = []
    for a, b in zip(one, other):
        if isinstance(a, For) and isinstance(b, For):
            pair = (mine[len(equal)], theirs[len(equal)])
            yield list(equal), (pair, a.backward)
            equal.append(pair)
        elif a != b:
            assert isinstance(a, int) and isinstance(b, int)
            if a < b:
                yield list(equal), None
            return


def _commute(one: Access, other: Access, array: Array, reassociate: bool) -> bool:
    if one.mode == other.mode == "read":
        return True
    return one.mode == other.mode != "set" and (
        reassociate or one.mode in ("max", "min") or array.dtype.kind in "iub" and one.mode != "read"
    )


def _owners(name: str, event: Event) -> list[For]:
    """Return the loops in each of whose iterations an array is another one."""
    found: list[For] = []
    for loop in event.loops:
        found.append(loop)
        if any(a.name == name for a in loop.private):
            return found
    return []


def _with(system: System, order: _Order, found: Following, turned: bool) -> System:
    """Return a system in which one statement runs before the other: the second where `turned`."""
    made = system.copy()
    equal, less = found

    def step(pair: tuple[DimLike, DimLike]) -> DimLike:
        return -order.difference(pair[1], pair[0]) if turned else order.difference(*pair)

    for pair in equal:
        made.add_zero(step(pair))
    if less is not None:
        pair, backward = less
        made.add_positive((-step(pair) if backward else step(pair)) - 1)
    return made


def _indices(event: Event) -> list[DimLike]:
    return [index_of(loop.index) for loop in event.loops]


def reversal(
    before: Sequence[Statement],
    after: Sequence[Statement],
    shared: Sequence[For],
    arrays: dict[str, Array],
    reassociate: bool,
) -> Clash | None:
    """Return two accesses that are in another order after a schedule than before; None if none are.

    `before` are the statements as `numbered` gave them, `after` what a schedule made of them.
    `shared` are the loops around them, and `arrays` all arrays that `after` touches by name.
    `reassociate` says whether updates of floats by one mode commute.
    """
    old = {e.instance[0]: e for e in _events(before) if e.instance is not None}
    events = [e for e in _events(after) if e.instance is not None]
    for one, other in itertools.product(events, events):
        assert one.instance is not None and other.instance is not None
        first, second = old[one.instance[0]], old[other.instance[0]]
        pairs = [
            (a, b)
            for a, b in itertools.product(one.accesses, other.accesses)
            if a.array == b.array and not _commute(a, b, arrays[a.array], reassociate)
        ]
        turned = list(_following(other.path, one.path, _indices(other), _indices(one))) if pairs else []
        if not turned:
            continue
        earlier = list(_following(first.path, second.path, one.instance[1], other.instance[1]))
        order = _Order(one, other, shared)
        for a, b in dict.fromkeys(pairs):
            meeting = order.meeting(a, b, _owners(a.array, one))
            for was in earlier:
                before_system = _with(meeting, order, was, False)
                if before_system.is_empty():
                    continue
                for now in turned:
                    system = _with(before_system, order, now, True)
                    if not system.is_empty() and not is_certainly_empty(system):
                        common = [
                            (x.index, s, t)
                            for x, y, s, t in zip(first.loops, second.loops, one.instance[1], other.instance[1])
                            if x is y
                        ]
                        return _clash(a, b, one, other, order, before_system, common)
    return None


def carried(loop: For, shared: Sequence[For], arrays: dict[str, Array], reassociate: bool) -> Clash | None:
    """Return two accesses of one element in different iterations of a loop; None if there are none.

    `shared` are the loops around it, `arrays` has arrays by name, and `reassociate` says whether
    updates of floats by one mode commute.
    """
    events = list(_events(loop.body, (0, loop)))
    index = index_of(loop.index)
    for one, other in itertools.product(events, events):
        pairs = [
            (a, b)
            for a, b in itertools.product(one.accesses, other.accesses)
            if a.array == b.array and not _commute(a, b, arrays[a.array], reassociate)
        ]
        if not pairs:
            continue
        order = _Order(one, other, shared)
        for a, b in dict.fromkeys(pairs):
            system = order.meeting(a, b, _owners(a.array, one))
            system.add_positive(order.difference(index, index) - 1)
            if not system.is_empty() and not is_certainly_empty(system):
                common = [(x.index, index_of(x.index), index_of(x.index)) for x in one.loops if x in other.loops]
                return _clash(a, b, one, other, order, system, common)
    return None


def _clash(
    a: Access,
    b: Access,
    one: Event,
    other: Event,
    order: _Order,
    system: System,
    common: Sequence[tuple[str, DimLike, DimLike]],
) -> Clash:
    """Return the clash of two accesses, by the system in which they meet.

    `a` is of `one` and `b` of `other`; `order` made the system. `common` has, for each loop around
    both, its name and the values of its index in both.
    """
    signs = []
    for name, mine, theirs in common:
        step = order.difference(mine, theirs)
        possible = ""
        for sign, demand in (("<", step - 1), ("=", None), (">", -step - 1)):
            tried = system.copy()
            tried.add_zero(step) if demand is None else tried.add_positive(demand)
            possible += "" if tried.is_empty() else sign
        signs.append((name, possible))
    return Clash(a.array, _told(a), _told(b), one.where, other.where, tuple(signs))


def _told(access: Access) -> str:
    place = ", ".join([_readable(t) for t in access.place])
    verb = "reads" if access.mode == "read" else "writes"
    return f"{verb} {called(access.array)}[{place}]"


def _readable(term: DimLike | Formula) -> str:
    if isinstance(term, Dim):
        names: dict[str, DimLike] = {n: index_of(called(n)) for n in symbols_in(term)}
        return repr(substitute(term, names))
    return repr(term)
