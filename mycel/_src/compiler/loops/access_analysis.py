"""Access analysis: which elements loop programs read and write, and whether values stay unchanged.

An array is *settled* where it is read if no later statement of its scope changes the element: then
its value may be taken at any later time, as derivatives do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mycel._src.compiler.ir.dim_values import substitute, symbols_in
from mycel._src.compiler.ir.dims import Atom, Dim, DimLike, same
from mycel._src.compiler.loops.formulas import Formula, Place, reads_of
from mycel._src.compiler.loops.programs import Array, For, If, Set, Statement, index_of

__all__ = [
    "Site",
    "extremes",
    "formulas_of",
    "highest",
    "is_overwritten",
    "is_settled",
    "lone_indices",
    "reads_in",
    "sites",
    "step_of",
]


@dataclass(frozen=True)
class Site:
    """A `Set`, or a read in a statement, with what is around it.

    `path` has the numbers of the statements on the way from the outermost body, with -1 and -2 for
    the branches of a condition, and `loops` the loops on it; `read` is None for the write itself.
    """

    statement: Statement
    path: tuple[int, ...]
    loops: tuple[For, ...]
    read: Formula | None = None

    @property
    def place(self) -> Place:
        if self.read is not None:
            return self.read.place
        assert isinstance(self.statement, Set)
        return self.statement.place


def formulas_of(s: Statement) -> list[Formula]:
    """Return the formulas of a statement itself."""
    if isinstance(s, If):
        return [s.condition]
    if isinstance(s, Set):
        return [s.value, *[t for t in s.place if isinstance(t, Formula)]]
    return []


def reads_in(body: Sequence[Statement]) -> set[str]:
    """Return the names of the arrays that statements read, but for what a `Set` combines."""
    return {r.read.data for r in sites(body) if r.read is not None}


def sites(body: Sequence[Statement], path: tuple[int, ...] = (), loops: tuple[For, ...] = ()) -> Iterator[Site]:
    """Yield every read and write in statements, in their order; reads come before the write."""
    for k, s in enumerate(body):
        here = (*path, k)
        for f in reads_of(*formulas_of(s)):
            yield Site(s, here, loops, f)
        if isinstance(s, Set):
            yield Site(s, here, loops)
        elif isinstance(s, If):
            # One branch comes before the other, though never both run.
            yield from sites(s.body, (*here, -1), loops)
            yield from sites(s.other, (*here, -2), loops)
        else:
            yield from sites(s.body, here, (*loops, s))


def step_of(position: DimLike, name: str) -> DimLike | None:
    """Return how much a position grows with an index; None where it is not linear."""
    if not isinstance(position, Dim) or name not in symbols_in(position):
        return 0
    first = substitute(position, {name: 1}) - substitute(position, {name: 0})
    grown = substitute(position, {name: index_of(name) + 1}) - position
    return first if same(first, grown) and name not in symbols_in(first) else None


def lone_indices(place: Place, loops: Sequence[For] = ()) -> dict[str, int]:
    """Return the indices that an element determines: iterations that differ in one touch other
    elements.

    Such an index is alone on an axis, or together with others of which each step passes over all
    that the shorter ones reach, as in ``2 * i + r`` with r below 2; `loops` has their extents. The
    result has the axis of each.
    """
    extents = {loop.index: loop.stop - loop.start for loop in loops}
    found: dict[str, int] = {}
    for axis, t in enumerate(place):
        if not isinstance(t, Dim):
            continue
        names = [n for n in symbols_in(t) if "." not in n and (n in extents or not loops)]
        steps = {n: step_of(t, n) for n in names}
        if not names or not all(type(c) is int and c for c in steps.values()):
            continue
        reach = 0
        for n in sorted(names, key=lambda n: abs(steps[n])):  # type: ignore[arg-type]
            step, extent = abs(steps[n]), extents.get(n)  # type: ignore[arg-type]
            if step <= reach:
                break
            found.setdefault(n, axis)
            reach = reach + (extent - 1) * step if type(extent) is int else 1 << 62
        else:
            continue
        for n in names:
            if found.get(n) == axis:
                del found[n]
    return found


def extremes(position: DimLike, loops: Sequence[For]) -> tuple[DimLike, DimLike] | None:
    """Return bounds of a position inside of loops: its least and greatest value, if it is linear.

    Both are dimensions without these loops' indices; None where they cannot be told.
    """
    low: DimLike | None = position
    high: DimLike | None = position
    for loop in reversed(loops):
        low = None if low is None else _end(low, loop, False)
        high = None if high is None else _end(high, loop, True)
    return None if low is None or high is None else (low, high)


def _end(value: DimLike, loop: For, largest: bool) -> DimLike | None:
    """Return a dimension's least or largest value in a loop; None where it is unknown."""
    step = step_of(value, loop.index)
    if step is None:
        return _rough_end(value, loop, largest)
    if isinstance(step, Dim):
        if step.bounds()[0] < 0:
            return None
        rises = True
    else:
        rises = step >= 0
    return substitute(value, {loop.index: loop.stop - 1 if rises is largest else loop.start})


def _rough_end(value: DimLike, loop: For, largest: bool) -> DimLike | None:
    """Return a bound of a sum in which an index also stands in quotients and remainders."""
    assert isinstance(value, Dim)
    total: DimLike = 0
    for mono, c in value.terms.items():
        part: DimLike = Dim({mono: 1}) if mono else 1
        up = (c > 0) is largest
        end: DimLike | None
        if step_of(part, loop.index) is not None:
            end = _end(part, loop, up)
        elif len(mono) == 1 and mono[0][1] == 1:
            end = _quotient_end(mono[0][0], loop, up)
        else:
            end = None
        if end is None:
            return None
        total = total + end * c
    return total


def _quotient_end(atom: Atom, loop: For, largest: bool) -> DimLike | None:
    """Return a bound of a quotient or a remainder by a positive number."""
    left, right = atom.operands
    if type(right) is not int or right < 1 or atom.operator not in ("//", "%"):
        return None
    if atom.operator == "%":
        return right - 1 if largest else 0
    end = _end(left, loop, largest)
    return None if end is None else end // right


def highest(loop: For, around: Sequence[For]) -> DimLike | None:
    """Return the number of places that a loop's index needs, whatever the loops around it do."""
    found = extremes(loop.stop, around)
    return None if found is None else found[1]


def _writes(name: str, body: Sequence[Statement]) -> list[Site]:
    return [s for s in sites(body) if s.read is None and isinstance(s.statement, Set) and s.statement.array == name]


def is_settled(array: Array, body: Sequence[Statement]) -> bool:
    """Return whether an array of the scope `body` is settled wherever it is read.

    What is read of an array without a filling was written before; where it is written once, that
    was its last value.
    """
    name = array.name
    writes = _writes(name, body)
    reads = [s for s in sites(body) if s.read is not None and s.read.data == name]
    if array.fill is None and len(writes) == 1 and not is_overwritten(name, body) and _mode(writes[0]) == "set":
        return True
    return all(_comes_before(w, r) for w in writes for r in reads)


def is_overwritten(name: str, body: Sequence[Statement]) -> bool:
    """Return whether a statement may set an element that was written before."""
    writes = _writes(name, body)
    for w in writes:
        alone = lone_indices(w.place, w.loops)
        if _mode(w) == "set" and not all(loop.index in alone for loop in w.loops):
            return True
    for k, late in enumerate(writes):
        if _mode(late) == "set" and any(not _exclude(early, late) for early in writes[:k]):
            return True
    return False


def _mode(site: Site) -> str:
    assert isinstance(site.statement, Set)
    return site.statement.mode


def _parting(one: Site, other: Site) -> int:
    """Return the number of steps that two paths have in common."""
    common = 0
    for a, b in zip(one.path, other.path):
        if a != b:
            break
        common += 1
    return common


def _exclude(one: Site, other: Site) -> bool:
    """Return whether two statements, for one element, are in both branches of a condition."""
    k = _parting(one, other)
    ends = k == min(len(one.path), len(other.path))
    return not ends and one.path[k] < 0 and other.path[k] < 0 and one.place == other.place


def _comes_before(write: Site, read: Site) -> bool:
    """Return whether a write of an element always comes before a read of the same element."""
    k = _parting(write, read)
    if k == min(len(write.path), len(read.path)):
        return False
    branches = write.path[k] < 0 and read.path[k] < 0
    if write.path[k] > read.path[k] and not branches:
        return False
    shared = [loop for loop, other in zip(write.loops, read.loops) if loop is other]
    mine, theirs = lone_indices(write.place), lone_indices(read.place)
    return all(
        loop.index in mine
        and mine[loop.index] == theirs.get(loop.index)
        and write.place[mine[loop.index]] == read.place[mine[loop.index]]
        for loop in shared
    )
