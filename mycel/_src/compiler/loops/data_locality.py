"""Data locality: an iteration copies what it reads (cache_read) or computes it there (compute_at).

Both need the region that an iteration reads: on each axis from the least place to the greatest, by
the bounds of the loops inside.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from mycel._src.compiler.ir.dim_values import substitute, symbols_in
from mycel._src.compiler.ir.dims import Dim, DimLike, maximum, product
from mycel._src.compiler.loops import formulas
from mycel._src.compiler.loops.access_analysis import extremes, reads_in, sites, step_of
from mycel._src.compiler.loops.formulas import Formula
from mycel._src.compiler.loops.inequalities import System
from mycel._src.compiler.loops.loop_transformations import CannotBe, Spot, ceiling, find, least, reach, with_loop
from mycel._src.compiler.loops.programs import (
    Array,
    For,
    If,
    Program,
    Set,
    Statement,
    called,
    index_of,
    mapped,
    statements,
    written,
)
from mycel._src.compiler.loops.scatter_to_gather import both, perfect, within

__all__ = ["cached", "fused_at"]

# The most rows of a copy that straight code moves.
MOST_ROWS = 16


@dataclass(frozen=True)
class _Region:
    """The part of an array that an iteration reads; `order` has the axes of a copy of it."""

    array: Array
    low: tuple[DimLike, ...]
    high: tuple[DimLike, ...]
    order: tuple[int, ...]

    def copy(self, name: str, around: Sequence[For]) -> Array:
        """Return an array that has place for the region; `around` are the loops around it."""
        sizes = []
        for k in self.order:
            size = ceiling(self.high[k] - self.low[k] + 1, around)
            if size is None:
                raise CannotBe(f"how much of {self.array.name} an iteration reads has no bound that is known")
            sizes.append(size)
        return Array(name, self.array.dtype, tuple(sizes))

    def place(self, place: formulas.Place) -> formulas.Place:
        """Return where an element of the array is in the copy."""
        return tuple([place[k] - self.low[k] for k in self.order])  # type: ignore[operator]


def _region(array: Array, spot: Spot, order: Sequence[int] | None, only: formulas.Place | None = None) -> _Region:
    """Return the region that an iteration of a loop touches, at the place `only` if given."""
    loop, facts = spot.loop, System()
    for x in (*spot.around, loop):
        facts.add_positive(index_of(x.index) - x.start)
        facts.add_positive(x.stop - 1 - index_of(x.index))
    low: list[DimLike | None] = [None] * len(array.shape)
    high = list(low)
    for s in sites(loop.body):
        touched = s.read.data if s.read is not None else s.statement.array if isinstance(s.statement, Set) else ""
        if touched != array.name or only is not None and (s.read is None or s.place != only):
            continue
        for k, t in enumerate(s.place):
            if isinstance(t, Formula):
                raise CannotBe(f"data decide which elements of {array.name} an iteration reads")
            ends = extremes(t, s.loops)
            if ends is None:
                ends = reach(t, s.loops, (*spot.around, loop))
            low[k], high[k] = _smaller(low[k], ends[0], facts), _greater(high[k], ends[1], facts)
    if any(d is None for d in low):
        raise CannotBe(f"the loop does not use {array.name}")
    lows, highs = [], []
    for a, b, size in zip(low, high, array.shape):
        assert a is not None and b is not None
        # Under a condition more may be near than there is.
        lows.append(a if facts.says(a) else maximum(a, 0))
        highs.append(b if facts.says(size - 1 - b) else least(b, size - 1))
    axes = tuple(range(len(low))) if order is None else tuple(order)
    return _Region(array, tuple(lows), tuple(highs), axes)


def _smaller(one: DimLike | None, other: DimLike, facts: System) -> DimLike:
    if one is None or facts.says(one - other):
        return other
    return one if facts.says(other - one) else least(one, other)


def _greater(one: DimLike | None, other: DimLike, facts: System) -> DimLike:
    if one is None or facts.says(other - one):
        return other
    return one if facts.says(one - other) else maximum(one, other)


def _using(loop: For, region: _Region, copy: Array, only: formulas.Place | None = None) -> tuple[Statement, ...]:
    """Return the body of a loop that uses a copy in place of an array, at a place or everywhere."""

    def element(f: Formula) -> Formula:
        if f.data != region.array.name or only is not None and f.place != only:
            return f
        return formulas.read(copy.name, region.place(f.place), f.dtype)

    def target(s: Set) -> Set:
        return replace(s, array=copy.name, place=region.place(s.place)) if s.array == region.array.name else s

    return mapped(loop.body, lambda d: d, element, target)


def cached(
    program: Program,
    name: str,
    index: str,
    order: Sequence[int] | None,
    number: int | None,
    fresh: Callable[[str], str],
) -> Program:
    """Return a program in which each iteration of a loop has a copy of what it touches of an array.

    Where the loop writes the array, the copy is written back at the end of an iteration. `name` is
    the array and `index` the loop's; `order` are the axes of the copy, those of the array in their
    order if None. With `number`, only the read with this number, among the different ones in the
    loop, uses the copy. `fresh` makes names. Raises CannotBe where what it touches is not known.
    """
    spot = find(program.body, index)
    assert spot is not None
    if any(a.name == name for s in statements(spot.loop.body) if isinstance(s, For) for a in s.private):
        raise CannotBe(f"{name} is made inside of the loop")
    writes = name in written(spot.loop.body)
    if not writes and name not in reads_in(spot.loop.body):
        raise CannotBe(f"the loop does not use {name}")
    array = program.arrays[name]
    only: formulas.Place | None = None
    if number is not None:
        reads = [s.read for s in sites(spot.loop.body) if s.read is not None and s.read.data == name]
        places = list(dict.fromkeys([r.place for r in reads]))
        if writes or number >= len(places):
            raise CannotBe(f"the loop {'writes' if writes else f'has {len(places)} reads of'} {name}")
        only = places[number]
    region = _region(array, spot, order, only)
    copy = region.copy(fresh(f"{called(name)}_copy_0"), (*spot.around, spot.loop))

    def moved(back: bool) -> Statement:
        """Return the loops that fill the copy, or write it back."""
        names = [fresh("c") for _ in region.order]
        at = dict(zip(region.order, map(index_of, names)))
        here = tuple(map(index_of, names))
        there = tuple([region.low[k] + at[k] for k in range(len(region.low))])
        if back:
            made: Statement = Set(name, there, formulas.read(copy.name, here, array.dtype))
        else:
            made = Set(copy.name, here, formulas.read(name, there, array.dtype))
        marks = _marks(copy, writes)
        for n, k, mark in reversed(list(zip(names, region.order, marks))):
            made = For(n, 0, region.high[k] - region.low[k] + 1, (made,), mark=mark)
        return made

    def with_copy(loop: For) -> list[Statement]:
        back = (moved(True),) if writes else ()
        body = (moved(False), *_using(loop, region, copy, only), *back)
        return [replace(loop, body=body, private=(*loop.private, copy))]

    return replace(program, body=with_loop(program.body, index, with_copy))


def _marks(copy: Array, writes: bool) -> list[str]:
    """Return the marks of the loops that move a copy.

    A small one that is written is moved by straight code, so that it may stay in registers.
    """
    sizes = copy.shape
    small = all(type(d) is int for d in sizes) and product(sizes[:-1]) <= MOST_ROWS
    if not sizes or not writes or not small:
        return [""] * len(sizes)
    return ["unroll"] * (len(sizes) - 1) + ["vectorize"]


def fused_at(program: Program, name: str, index: str, fresh: Callable[[str], str]) -> Program:
    """Return a program in which each iteration of a loop computes what it reads of an array.

    `name` is the array, which statements of the program's body compute so far, and `index` the
    loop's. `fresh` makes names. Raises CannotBe where that would not give the same.
    """
    spot = find(program.body, index)
    assert spot is not None
    if name not in {a.name for a in program.locals}:
        raise CannotBe(f"{name} is no array between two statements: it is an input, a result or private")
    array = program.arrays[name]
    producers = [s for s in program.body if name in written((s,))]
    (root,) = [s for s in program.body if any(x is spot.loop for x in statements((s,)))]
    if root in producers:
        raise CannotBe(f"the loop writes {name}")
    others = [s for s in program.body if s is not root and s not in producers and name in reads_in((s,))]
    outside = sum(s.read is not None and s.read.data == name for s in sites((root,)))
    inside = sum(s.read is not None and s.read.data == name for s in sites(spot.loop.body))
    if others or outside != inside:
        raise CannotBe(f"{name} is read outside of the loop as well")
    first, last = program.body.index(producers[0]) if producers else 0, program.body.index(root)
    later = [s for s in program.body[first : last + 1] if s not in producers]
    needed = {n for s in producers for n in reads_in((s,))} - {name}
    if needed & written(later):
        raise CannotBe(f"{', '.join(sorted(needed & written(later)))} is written before the loop ends")
    region = _region(array, spot, None)
    copy = region.copy(fresh(name), (*spot.around, spot.loop))
    computed = list(_computed(producers, array, region, copy, fresh))

    def with_values(loop: For) -> list[Statement]:
        return [replace(loop, body=(*computed, *_using(loop, region, copy)), private=(*loop.private, copy))]

    body = with_loop(tuple([s for s in program.body if s not in producers]), index, with_values)
    return replace(program, body=body, locals=tuple([a for a in program.locals if a.name != name]))


def _computed(
    producers: Sequence[Statement], array: Array, region: _Region, copy: Array, fresh: Callable[[str], str]
) -> Iterator[Statement]:
    """Yield the statements that compute a region of an array into a copy."""
    if array.fill is not None:
        yield _over(region, fresh, lambda at: Set(copy.name, at, formulas.constant(array.fill, array.dtype)))
    for s in producers:
        nest = perfect(s)
        if nest is None:
            raise CannotBe(f"{array.name} is not computed by a single statement in loops")
        yield _over(region, fresh, functools.partial(_at, nest.loops, nest.conditions, nest.write, region, copy))


def _over(region: _Region, fresh: Callable[[str], str], make: Callable[[formulas.Place], Statement]) -> Statement:
    names = [fresh("c") for _ in region.low]
    made = make(tuple(map(index_of, names)))
    for n, low, high in reversed(list(zip(names, region.low, region.high))):
        made = For(n, 0, high - low + 1, (made,))
    return made


def _at(
    loops: Sequence[For], conditions: Sequence[Formula], write: Set, region: _Region, copy: Array, at: formulas.Place
) -> Statement:
    """Return the statement that computes the element at the place `at` of a copy."""
    values: dict[str, DimLike] = {}
    tests: list[Formula] = []
    by_name = {loop.index: loop for loop in loops}
    for t, low, c in zip(write.place, region.low, at):
        names = [n for n in symbols_in(t) if n in by_name] if isinstance(t, Dim) else []
        if isinstance(t, Formula) or len(names) != 1 or names[0] in values or step_of(t, names[0]) not in (1, -1):
            raise CannotBe(f"{region.array.name} is not computed element by element")
        (name,) = names
        rest = low + c - substitute(t, {name: 0})  # type: ignore[operator]
        values[name] = rest if step_of(t, name) == 1 else -rest
        tests += within(values[name], by_name[name].start, by_name[name].stop)
    inner = [loop for loop in loops if loop.index not in values]
    if write.mode == "set" and inner:
        raise CannotBe(f"{region.array.name} is written several times")
    if any(symbols_in(loop.start, loop.stop).keys() & by_name.keys() for loop in loops):
        raise CannotBe(f"the loops that compute {region.array.name} depend on each other")
    (moved,) = mapped((replace(write, array=copy.name, place=at),), lambda d: substitute(d, values))
    assert isinstance(moved, Set)
    made: Statement = replace(moved, place=at)
    held = [formulas.substituted(c, values) for c in conditions]
    facts = [c for c in tests if c.kind != "const"]
    for loop in reversed(inner):
        made = replace(loop, body=(made,), mark="")
    if held or facts:
        made = If(both([*facts, *held]), (made,), (), write.where)
    return made
