"""Array expansion: gives private arrays one element per iteration that needs one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.loops import formulas
from mycel._src.compiler.loops.access_analysis import extremes, highest
from mycel._src.compiler.loops.formulas import Formula, Place
from mycel._src.compiler.loops.programs import Array, For, If, Set, Statement, each_element, index_of, mapped
from mycel._src.foundation.errors import Unsupported

__all__ = ["extents", "spread"]

Loops = tuple[For, ...]


def spread(
    body: Sequence[Statement], wanted: Callable[[Array], bool], within: Callable[[Loops], Loops], title: str
) -> tuple[tuple[Statement, ...], list[Array]]:
    """Return statements with the private arrays `wanted` expanded, and the expanded arrays.

    `body` are the statements. Each array has the axes of the loops that `within` returns, of those
    around it, in front of its own, which are as long as they ever become. `title` names the program
    for errors. Raises Unsupported where an extent has no bound that is known.
    """
    found: list[Array] = []

    def walk(body: Sequence[Statement], loops: Loops) -> tuple[Statement, ...]:
        made: list[Statement] = []
        for s in body:
            if isinstance(s, For):
                inside = (*loops, s)
                inner = walk(s.body, inside)
                mine = [a for a in s.private if wanted(a)]
                around = within(inside)
                front = tuple([index_of(loop.index) for loop in around])
                outer = inside[: inside.index(around[0])] if around else ()
                for a in mine:
                    longest = [_longest(d, inside, title) for d in a.shape]
                    found.append(Array(a.name, a.dtype, (*extents(around, title, outer), *longest)))
                inner = _behind(inner, {a.name for a in mine}, front)
                fillings = [_filled(a, front) for a in mine if a.fill is not None]
                kept = tuple([a for a in s.private if not wanted(a)])
                made.append(replace(s, body=(*fillings, *inner), private=kept))
            elif isinstance(s, If):
                made.append(replace(s, body=walk(s.body, loops), other=walk(s.other, loops)))
            else:
                made.append(s)
        return tuple(made)

    return walk(body, ()), found


def extents(loops: Sequence[For], title: str, outer: Loops = ()) -> list[DimLike]:
    """Return how many places the indices of loops need, which are inside of the loops `outer`.

    `title` names the program for errors. Raises Unsupported where a loop has no greatest length
    that is known.
    """
    made = []
    for k, loop in enumerate(loops):
        extent = highest(loop, (*outer, *loops[:k]))
        if extent is None:
            raise Unsupported(
                f"{title}: the values of a loop up to {loop.stop} are needed later, and how long it may be is not known"
            )
        made.append(extent)
    return made


def _longest(size: DimLike, loops: Loops, title: str) -> DimLike:
    found = extremes(size, loops)
    if found is None:
        raise Unsupported(f"{title}: an array of size {size} in a loop has no greatest size that is known")
    return found[1]


def _behind(body: Sequence[Statement], names: set[str], front: Place) -> tuple[Statement, ...]:
    """Return statements with `front` before the places in the arrays `names`."""

    def element(f: Formula) -> Formula:
        return formulas.read(f.data, (*front, *f.place), f.dtype) if f.data in names else f

    def target(s: Set) -> Set:
        return replace(s, place=(*front, *s.place)) if s.array in names else s

    return mapped(body, lambda d: d, element, target)


def _filled(array: Array, front: Place) -> Statement:
    """Return the loops that fill an array whose places have `front` in front."""
    assert array.fill is not None
    value = formulas.constant(array.fill, array.dtype)
    return each_element(array, array.name, lambda place: Set(array.name, (*front, *place), value))
