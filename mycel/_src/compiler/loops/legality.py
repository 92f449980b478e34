"""Checks of loop programs: indices out of bounds, and iterations of parallel loops that conflict.

The absence of either is proved from bounds: a position by its least and greatest value in the loops
around it, less the conditions that hold there. What cannot be proved is tested while the program
runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mycel._src.compiler.ir.dim_values import symbols_in
from mycel._src.compiler.ir.dims import Atom, Dim, DimLike
from mycel._src.compiler.loops import formulas
from mycel._src.compiler.loops.access_analysis import Site, extremes, lone_indices, sites
from mycel._src.compiler.loops.formulas import Formula
from mycel._src.compiler.loops.inequalities import System
from mycel._src.compiler.loops.programs import Array, For, If, Program, Set, Statement, Where, index_of
from mycel._src.foundation import dtype as D

__all__ = [
    "Element",
    "conjuncts",
    "elements",
    "is_inside",
    "is_never_negative",
    "is_parallel",
    "known",
    "meeting",
    "opposite",
    "outside",
    "unwritten",
]


@dataclass(frozen=True)
class Element:
    """One place in an array as it is read or written, with the loops and conditions around it."""

    array: str
    place: formulas.Place
    loops: tuple[For, ...]
    conditions: tuple[Formula, ...]
    where: Where | None


def conjuncts(condition: Formula) -> list[Formula]:
    """Return the conditions of which one says that all hold."""
    if condition.kind == "op" and condition.data == "logical_and":
        return [c for a in condition.args for c in conjuncts(a)]
    return [condition]


def opposite(condition: Formula) -> Formula:
    """Return the condition that another one does not hold."""
    turned = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}
    if condition.kind == "op" and condition.data in turned and condition.args[0].dtype.kind in "iu":
        return formulas.operation(turned[condition.data], D.bool_, *condition.args)
    return formulas.operation("logical_not", D.bool_, condition)


def elements(
    body: Sequence[Statement], loops: tuple[For, ...] = (), held: tuple[Formula, ...] = ()
) -> Iterator[Element]:
    """Yield every place that statements touch."""
    for s in body:
        if isinstance(s, For):
            yield from elements(s.body, (*loops, s), held)
            continue
        if isinstance(s, If):
            yield from _in_formula(s.condition, loops, held, s.where)
            yield from elements(s.body, loops, (*held, *conjuncts(s.condition)))
            yield from elements(s.other, loops, (*held, opposite(s.condition)))
            continue
        yield from _in_formula(s.value, loops, held, s.where)
        for t in s.place:
            if isinstance(t, Formula):
                yield from _in_formula(t, loops, held, s.where)
        yield Element(s.array, s.place, loops, held, s.where)


def _in_formula(
    f: Formula, loops: tuple[For, ...], held: tuple[Formula, ...], where: Where | None
) -> Iterator[Element]:
    if f.kind == "op" and f.data == "select":
        yield from _in_formula(f.args[0], loops, held, where)
        yield from _in_formula(f.args[1], loops, (*held, *conjuncts(f.args[0])), where)
        yield from _in_formula(f.args[2], loops, (*held, opposite(f.args[0])), where)
        return
    if f.kind == "op" and f.data == "logical_and":
        # The second is asked only where the first holds.
        yield from _in_formula(f.args[0], loops, held, where)
        yield from _in_formula(f.args[1], loops, (*held, *conjuncts(f.args[0])), where)
        return
    for a in (*f.args, *[t for t in f.place if isinstance(t, Formula)]):
        yield from _in_formula(a, loops, held, where)
    if f.kind == "read":
        yield Element(f.data, f.place, loops, held, where)


def known(condition: Formula) -> list[DimLike]:
    """Return dimensions that a condition says are not negative."""
    if condition.kind != "op" or condition.data not in ("lt", "le", "gt", "ge", "eq"):
        return []
    ends = [_dimension(a) for a in condition.args]
    if ends[0] is None or ends[1] is None:
        return []
    difference = ends[1] - ends[0]
    return {
        "lt": [difference - 1],
        "le": [difference],
        "gt": [-difference - 1],
        "ge": [-difference],
        "eq": [difference, -difference],
    }[condition.data]


def _dimension(f: Formula) -> DimLike | None:
    if f.kind in ("index", "const") and f.dtype is D.int64:
        return f.data  # type: ignore[no-any-return]
    return None


def _least(value: DimLike, loops: Sequence[For]) -> float:
    """Return a number below which a value does not fall in the loops."""
    found = extremes(value, loops)
    if found is None:
        return float("-inf")
    low = found[0]
    return low.bounds()[0] if isinstance(low, Dim) else low


def is_never_negative(value: DimLike, loops: Sequence[For], held: Sequence[Formula]) -> bool:
    """Return whether a value is proved not to be negative in loops, where the conditions `held`
    hold.
    """
    # Bounds that are maxima, as schedules make them, are for a system of inequalities.
    simple = not any(a.operator == "max" for loop in loops for a in _atoms(loop.start, loop.stop))
    if simple and _least(value, loops) >= 0:
        return True
    facts = [d for c in held for d in known(c)]
    # A bound of a loop holds for the loops inside it, whatever their own bounds.
    facts += [d for loop in loops for d in _range_of(loop)]
    system = System()
    for d in facts:
        system.add_positive(d)
    if system.says(value):
        return True
    if not simple:
        return False
    if any(_least(value - d, loops) >= 0 for d in facts):
        return True
    return any(_least(value - a - b, loops) >= 0 for k, a in enumerate(facts) for b in facts[k:])


def _atoms(*values: DimLike) -> Iterator[Atom]:
    for value in values:
        if isinstance(value, Dim):
            yield from [a for mono in value.terms for a, _ in mono]


def _range_of(loop: For) -> list[DimLike]:
    index = index_of(loop.index)
    return [index - loop.start, loop.stop - 1 - index]


def is_inside(element: Element, array: Array) -> list[bool]:
    """Return for each axis whether a place is proved to be in the array."""
    return [
        not isinstance(t, Formula)
        and is_never_negative(t, element.loops, element.conditions)
        and is_never_negative(size - 1 - t, element.loops, element.conditions)
        for t, size in zip(element.place, array.shape)
    ]


def outside(program: Program) -> tuple[Element, int, int, int] | None:
    """Return a place that lies outside of its array, with its axis, the index and the size.

    The sizes of the program must be known; None where no place certainly does.
    """
    arrays = program.arrays
    for e in elements(program.body):
        if e.conditions:
            continue
        for axis, (t, size) in enumerate(zip(e.place, arrays[e.array].shape)):
            if isinstance(t, Formula) or isinstance(size, Dim):
                continue
            ends = extremes(t, e.loops)
            if ends is None or not _all_run(e.loops) or not _is_linear(t, e.loops):
                continue
            for i in ends:
                if type(i) is int and not 0 <= i < size:
                    return e, axis, i, size
    return None


def _is_linear(position: DimLike, loops: Sequence[For]) -> bool:
    names = {loop.index for loop in loops}
    if not isinstance(position, Dim):
        return True
    return all(len(mono) <= 1 and all(a.operator == "symbol" for a, _ in mono) for mono in position.terms) and not any(
        names & set(symbols_in(loop.start, loop.stop)) for loop in loops
    )


def _all_run(loops: Sequence[For]) -> bool:
    """Return whether every loop certainly has an iteration."""
    return all(type(loop.stop - loop.start) is int and loop.stop - loop.start > 0 for loop in loops)


def is_parallel(loop: For) -> bool:
    """Return whether a loop's iterations are proved not to meet at any element."""
    return meeting(loop) is None


def meeting(loop: For) -> str | None:
    """Return an array at which a loop's iterations may meet; None where there is none.

    Each array that the loop writes, but for private ones, must be touched at an axis by the loop's
    index alone, so that iterations touch different elements.
    """
    found = list(sites((loop,)))
    own = {a.name for s in found for inner in s.loops for a in inner.private}
    targets = [s.statement.array for s in found if s.read is None and isinstance(s.statement, Set)]
    for name in dict.fromkeys(targets):
        if name in own:
            continue
        axes: dict[int, formulas.Term] | None = None
        for s in found:
            touched = s.read.data if s.read is not None else getattr(s.statement, "array", None)
            if touched != name:
                continue
            alone = lone_indices(s.place, s.loops)
            mine = {a: s.place[a] for n, a in alone.items() if n == loop.index}
            axes = mine if axes is None else {a: t for a, t in axes.items() if mine.get(a) == t}
        if not axes:
            return name
    return None


def unwritten(program: Program) -> Iterator[tuple[str, Where]]:
    """Yield the arrays of which an element is certainly read before any is written."""
    found = list(sites(program.body))
    bare = {a.name for a in program.arrays.values() if a.fill is None} - {a.name for a in program.inputs}
    for k, s in enumerate(found):
        if s.read is not None:
            name = s.read.data
        elif isinstance(s.statement, Set) and s.statement.mode != "set":
            name = s.statement.array
        else:
            continue
        if name not in bare or any(_writes(w, name) for w in found[:k]):
            continue
        later = [w for w in found[k + 1 :] if _writes(w, name)]
        if not any(loop is other for w in later for loop in w.loops for other in s.loops):
            yield name, s.statement.where or ("", 0)


def _writes(s: Site, name: str) -> bool:
    return s.read is None and isinstance(s.statement, Set) and s.statement.array == name
