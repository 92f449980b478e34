"""Loop transformations: splitting, interchange, skewing, distribution, cutting a range in two.

Each function takes a program and returns one that computes the same, as far as the order of its
iterations allows; whether it does is asked of `loops.dependences` afterwards.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from mycel._src.compiler.ir.dim_values import substitute, symbols_in
from mycel._src.compiler.ir.dims import Dim, DimLike, maximum
from mycel._src.compiler.loops import formulas
from mycel._src.compiler.loops.access_analysis import extremes, reads_in, step_of
from mycel._src.compiler.loops.formulas import Formula
from mycel._src.compiler.loops.inequalities import Linear, System, demands, without
from mycel._src.compiler.loops.programs import (
    Array,
    For,
    If,
    Set,
    Statement,
    each_element,
    index_of,
    mapped,
    statements,
    written,
)

__all__ = [
    "CannotBe",
    "Spot",
    "ceiling",
    "chain",
    "cut",
    "find",
    "least",
    "reach",
    "reordered",
    "separated",
    "skewed",
    "split",
    "with_loop",
    "with_names",
]


class CannotBe(Exception):
    """A transformation is impossible; the text says why."""


@dataclass(frozen=True)
class Spot:
    """A loop, and the loops around it, outermost first."""

    loop: For
    around: tuple[For, ...]


def find(body: Sequence[Statement], index: str, around: tuple[For, ...] = ()) -> Spot | None:
    """Return where the loop of an index is; None if there is none."""
    for s in body:
        if isinstance(s, If):
            found = find((*s.body, *s.other), index, around)
        elif isinstance(s, For):
            found = Spot(s, around) if s.index == index else find(s.body, index, (*around, s))
        else:
            found = None
        if found is not None:
            return found
    return None


def with_loop(
    body: Sequence[Statement], index: str, make: Callable[[For], Sequence[Statement]]
) -> tuple[Statement, ...]:
    """Return statements with others in place of the loop of an index."""
    made: list[Statement] = []
    for s in body:
        if isinstance(s, For):
            made += make(s) if s.index == index else [replace(s, body=with_loop(s.body, index, make))]
        elif isinstance(s, If):
            made.append(replace(s, body=with_loop(s.body, index, make), other=with_loop(s.other, index, make)))
        else:
            made.append(s)
    return tuple(made)


def least(one: DimLike, other: DimLike) -> DimLike:
    """Return the smaller of two dimensions."""
    return one - maximum(one - other, 0)


def _renamed(body: Sequence[Statement], index: str, value: DimLike) -> tuple[Statement, ...]:
    """Return statements with a value in place of an index."""
    return mapped(body, lambda d: substitute(d, {index: value}))


def _has(value: DimLike, loops: Sequence[For]) -> bool:
    return isinstance(value, Dim) and any(loop.index in symbols_in(value) for loop in loops)


def split(spot: Spot, factor: int, outer: str, inner: str) -> For:
    """Return a loop as one over blocks of `factor` iterations, and one over those of a block.

    `spot` is the loop; `outer` and `inner` are the indices of the new ones. Where it begins at what
    loops around it decide, blocks begin at multiples of `factor`, so that they are the same blocks
    for all of these.
    """
    loop = spot.loop
    if loop.backward:
        raise CannotBe("it runs downwards")
    o, i = index_of(outer), index_of(inner)
    if _has(loop.start, spot.around):
        blocks = (loop.start // factor, (loop.stop - 1) // factor + 1)
        within = (maximum(loop.start - o * factor, 0), least(factor, loop.stop - o * factor))
        at: DimLike = o * factor + i
    else:
        extent = loop.stop - loop.start
        blocks = (0, (extent + factor - 1) // factor)
        whole = type(extent) is int and extent % factor == 0
        within = (0, factor if whole else least(factor, extent - o * factor))
        at = loop.start + o * factor + i
    body = _renamed(loop.body, loop.index, at)
    private = tuple([replace(a, shape=tuple([substitute(d, {loop.index: at}) for d in a.shape])) for a in loop.private])
    made = For(inner, *within, body, "serial", False, private, loop.where)
    return For(outer, *blocks, (made,), "serial", False, (), loop.where)


def chain(spot: Spot, innermost: str) -> list[For]:
    """Return the loops from one down to another, each the only statement of the one around it."""
    found = [spot.loop]
    while found[-1].index != innermost:
        loop = found[-1]
        if loop.private or len(loop.body) != 1 or not isinstance(loop.body[0], For):
            raise CannotBe("there are other statements between the loops; separate them first")
        found.append(loop.body[0])
    return found


def reordered(loops: Sequence[For], around: Sequence[For], order: Sequence[str]) -> For:
    """Return loops inside of each other in another order; `around` are those around them.

    Bounds that depend on other loops are found by eliminating the inner ones (C. Ancourt and
    F. Irigoin, Scanning polyhedra with DO loops, 1991).
    """
    by_name = {loop.index: loop for loop in loops}
    if any(loop.backward for loop in loops):
        raise CannotBe("a loop runs downwards")
    if any(_has(d, loops) for loop in loops for d in (loop.start, loop.stop)):
        bounds = _scanned(loops, around, order)
    else:
        bounds = {loop.index: (loop.start, loop.stop) for loop in loops}
    body, private = loops[-1].body, loops[-1].private
    made: For | None = None
    for name in reversed(order):
        start, stop = bounds[name]
        inner = body if made is None else (made,)
        made = replace(
            by_name[name], start=start, stop=stop, body=inner, private=private if made is None else (), mark=""
        )
    assert made is not None
    return made


def _scanned(loops: Sequence[For], around: Sequence[For], order: Sequence[str]) -> dict[str, tuple[DimLike, DimLike]]:
    """Return the bounds of loops in another order."""
    system, forms = _domain(loops, around)
    found: dict[str, tuple[DimLike, DimLike]] = {}
    for name in reversed(order):
        found[name] = _ends(name, forms, system)
        forms = without(forms, name)
    return found


def reach(position: DimLike, loops: Sequence[For], around: Sequence[For]) -> tuple[DimLike, DimLike]:
    """Return bounds of a position in loops by the indices of those `around`: least and greatest.

    Raises CannotBe where they are not linear.
    """
    system, forms = _domain(loops, around)
    value = index_of("position")
    names = {loop.index for loop in loops}
    difference = position - value
    if not _is_linear(difference, names):
        raise CannotBe(f"{position} is not linear")
    form = system.linear(difference)
    forms += [form, {n: -c for n, c in form.items()}]
    for loop in reversed(loops):
        forms = without(forms, loop.index)
    start, stop = _ends("position", forms, system)
    return start, stop - 1


def _is_linear(value: DimLike, names: set[str]) -> bool:
    """Return whether indices stand in a dimension by themselves, times numbers."""
    return not isinstance(value, Dim) or not any(
        names & set(symbols_in(Dim({mono: 1}))) and not (len(mono) == 1 and mono[0][1] == 1 and mono[0][0].name)
        for mono in value.terms
        if mono
    )


def _domain(loops: Sequence[For], around: Sequence[For]) -> tuple[System, list[Linear]]:
    """Return what is known of the loops around, and the inequalities of the loops themselves."""
    system: System = System()
    forms: list[Linear] = []
    for loop in around:
        system.add_positive(index_of(loop.index) - loop.start)
        system.add_positive(loop.stop - 1 - index_of(loop.index))
    names = {loop.index for loop in loops}
    for loop in loops:
        index = index_of(loop.index)
        for end in (index - loop.start, loop.stop - 1 - index, index):
            for d in demands(end):
                if not _is_linear(d, names):
                    raise CannotBe(f"the loop from {loop.start} to {loop.stop} has no linear bounds")
                forms.append(system.linear(d))
    return system, forms


def _ends(name: str, forms: Sequence[Linear], system: System) -> tuple[DimLike, DimLike]:
    """Return where a loop begins and ends by inequalities, without those that others imply."""
    mine = list({tuple(sorted(f.items())): f for f in forms if f.get(name, 0)}.values())
    rest = [f for f in forms if not f.get(name, 0)]
    for form in sorted(mine, key=lambda f: -len(f)):
        others = [f for f in mine if f is not form]
        same_side = [f for f in others if f[name] * form[name] > 0]
        tried = system.copy()
        # That an index is not negative is among the inequalities where it has to be said.
        tried.positive = [f for f in system.positive if not f.get(name, 0)] + [*others, *rest]
        if same_side and tried.says(tried.dimension(form)):
            mine = others
    starts, stops = [], []
    for form in mine:
        left = system.dimension({n: c for n, c in form.items() if n != name})
        if form[name] > 0:
            starts.append(-(left // form[name]))
        else:
            stops.append(left // -form[name] + 1)
    if not starts or not stops:
        raise CannotBe("a loop would have no end")
    start, stop = starts[0], stops[0]
    for d in starts[1:]:
        start = maximum(start, d)
    for d in stops[1:]:
        stop = least(stop, d)
    return start, stop


def skewed(spot: Spot, by: str, factor: int, name: str) -> For:
    """Return a loop whose index grows by `factor` with each iteration of a loop around it, `by`.

    `spot` is the loop and `name` its new index.
    """
    loop, shift = spot.loop, index_of(by) * factor
    body = _renamed(loop.body, loop.index, index_of(name) - shift)
    at = {loop.index: index_of(name) - shift}
    private = tuple([replace(a, shape=tuple([substitute(d, at) for d in a.shape])) for a in loop.private])
    return replace(loop, index=name, start=loop.start + shift, stop=loop.stop + shift, body=body, private=private)


def cut(spot: Spot, at: DimLike, fresh: Callable[[str], str]) -> list[For]:
    """Return a loop as one up to `at` and one from there on; `fresh` makes names for the second."""
    loop = spot.loop
    if loop.backward:
        raise CannotBe("it runs downwards")
    around = {x.index for x in spot.around}
    if isinstance(at, Dim) and any("." not in n and n not in around for n in symbols_in(at)):
        raise CannotBe("where it is cut may depend on loops around it only")
    system = System()
    for x in spot.around:
        system.add_positive(index_of(x.index) - x.start)
        system.add_positive(x.stop - 1 - index_of(x.index))
    below = at if system.says(loop.stop - at) else least(at, loop.stop)
    above = at if system.says(at - loop.start) else maximum(at, loop.start)
    first = replace(loop, stop=below)
    return [first, _copied(replace(loop, start=above), fresh)]


def _copied(loop: For, fresh: Callable[[str], str]) -> For:
    """Return a loop with other names of its index, and of loops and private arrays inside of it."""
    loops = [s for s in statements((loop,)) if isinstance(s, For)]
    indices = {s.index: fresh(s.index) for s in loops}
    return with_names(loop, indices, {a.name: fresh(a.name) for s in loops for a in s.private})


def with_names(loop: For, indices: dict[str, str], arrays: dict[str, str]) -> For:
    """Return a loop with other names of indices and of private arrays."""
    values: dict[str, DimLike] = {old: index_of(new) for old, new in indices.items()}

    def walk(body: Sequence[Statement]) -> tuple[Statement, ...]:
        made: list[Statement] = []
        for s in body:
            if isinstance(s, For):
                private = tuple([replace(a, name=arrays.get(a.name, a.name)) for a in s.private])
                made.append(replace(s, index=indices.get(s.index, s.index), body=walk(s.body), private=private))
            elif isinstance(s, If):
                made.append(replace(s, body=walk(s.body), other=walk(s.other)))
            else:
                made.append(s)
        return tuple(made)

    def element(f: Formula) -> Formula:
        return formulas.read(arrays.get(f.data, f.data), f.place, f.dtype)

    def target(s: Set) -> Set:
        return replace(s, array=arrays.get(s.array, s.array))

    (made,) = mapped(walk((loop,)), lambda d: substitute(d, values), element, target)
    assert isinstance(made, For)
    return made


def separated(spot: Spot, starts: Sequence[int], fresh: Callable[[str], str]) -> tuple[list[For], list[Array]]:
    """Return a loop as one for each part of its body, and arrays that were private and now are not.

    These have an axis for the loop in front. A part begins at each of the statements numbered
    `starts`. `fresh` makes names of indices.
    """
    loop = spot.loop
    ends = [0, *sorted(set(starts) - {0}), len(loop.body)]
    groups = [loop.body[a:b] for a, b in zip(ends, ends[1:])]
    fillings = tuple(_fillings(loop))
    body = [fillings, *groups] if fillings else groups
    parts = [written(g) | reads_in(g) | _combined(g) for g in body]
    shared = [a for a in loop.private if sum(a.name in p for p in parts) > 1]
    extent = _extent(spot) if shared else 0
    moved = []
    for a in shared:
        if any(_has(d, [loop]) for d in a.shape):
            raise CannotBe(f"the size of {a.name} differs from iteration to iteration")
        moved.append(replace(a, shape=(extent, *a.shape), fill=None))
    names = {a.name for a in shared}
    made = []
    for k, (group, touched) in enumerate(zip(body, parts)):
        private = tuple([replace(a, fill=None) for a in loop.private if a.name in touched and a.name not in names])
        part = replace(loop, body=_in_front(group, names, index_of(loop.index)), private=private)
        if k:
            part = with_names(part, {loop.index: fresh(loop.index)}, {})
        made.append(part)
    return made, moved


def _combined(body: Sequence[Statement]) -> set[str]:
    return {x.array for x in statements(body) if isinstance(x, Set) and x.mode != "set"}


def _fillings(loop: For) -> Iterator[Statement]:
    """Yield statements that fill the private arrays of a loop."""
    for a in loop.private:
        if a.fill is not None:
            yield each_element(
                a, f"{a.name}_at", functools.partial(_filling, a.name, formulas.constant(a.fill, a.dtype))
            )


def _filling(name: str, value: Formula, place: formulas.Place) -> Set:
    return Set(name, place, value)


def _in_front(body: Sequence[Statement], names: set[str], index: Dim) -> tuple[Statement, ...]:
    def element(f: Formula) -> Formula:
        return formulas.read(f.data, (index, *f.place), f.dtype) if f.data in names else f

    def target(x: Set) -> Set:
        return replace(x, place=(index, *x.place)) if x.array in names else x

    return mapped(body, lambda d: d, element, target)


def _extent(spot: Spot) -> DimLike:
    """Return a number that a loop's index never reaches, whatever the loops around it do."""
    found = ceiling(spot.loop.stop, spot.around)
    if found is None:
        raise CannotBe(f"how long the loop up to {spot.loop.stop} may be is not known")
    return found


def ceiling(value: DimLike, around: Sequence[For]) -> DimLike | None:
    """Return what a dimension does not exceed, whatever the loops `around` do, if that is known."""
    index = index_of("below")
    open_ends = []
    for d in demands(value - index):
        # As steps * below <= rest.
        steps = step_of(d, "below")
        if type(steps) is int and steps < 0:
            open_ends.append((d - steps * index) // -steps)
    ends = [d for d in open_ends if not _has(d, around)]
    numbers = [d for d in ends if type(d) is int]
    if ends:
        return min(numbers) if numbers else ends[0]
    for d in open_ends:
        found = extremes(d, around)
        if found is not None and not _has(found[1], around):
            return found[1]
    return _greatest(value, around)


def _greatest(value: DimLike, around: Sequence[For]) -> DimLike | None:
    """Return what a dimension does not exceed, by elimination of the indices of loops."""
    below = demands(value - index_of("below"))
    try:
        system, forms = _domain(around, ())
    except CannotBe:
        return None
    names = {loop.index for loop in around}
    if not all(_is_linear(d, names) for d in below):
        return None
    forms += [system.linear(d) for d in below]
    for loop in reversed(around):
        forms = without(forms, loop.index)
    ends = []
    for form in forms:
        if form.get("below", 0) < 0:
            rest = system.dimension({n: c for n, c in form.items() if n != "below"})
            ends.append(rest // -form["below"])
    numbers = [d for d in ends if type(d) is int]
    return min(numbers) if numbers else ends[0] if ends else None
