"""Turns nests of derivatives that scatter-add into nests that gather.

`tidied` splits loops whose statements do not depend on each other, removes what nobody reads, and
turns a nest that adds to elements at sums of indices into one that goes over these elements and
adds what belongs to each. There one index follows from the element: ``d[i + k] += ...`` over i and
k becomes ``d[p] += ...`` over p and k with i = p - k. With a step, as in ``d[2 * i + k]``, elements
are taken by their remainder, p = 2 * q + r, and k = 2 * t + r, i = q - t: no iteration is wasted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mycel._src.compiler.ir.dim_values import substitute, symbols_in
from mycel._src.compiler.ir.dims import Dim, DimLike, is_zero
from mycel._src.compiler.loops import formulas
from mycel._src.compiler.loops.access_analysis import lone_indices, reads_in, step_of
from mycel._src.compiler.loops.formulas import Formula
from mycel._src.compiler.loops.programs import (
    Array,
    For,
    If,
    Program,
    Set,
    Statement,
    index_of,
    mapped,
    statements,
    written,
)
from mycel._src.foundation import dtype as D

__all__ = ["Perfect", "both", "perfect", "split", "tidied", "within"]


def tidied(program: Program) -> Program:
    """Return a program that computes the same by nests that gather, without what is not needed."""
    body = split(program.body)
    arrays = program.arrays
    gathered: list[Statement] = []
    for s in body:
        gathered += _gathered(s, arrays)
    results = {a.name for a in program.outputs}
    body = tuple(gathered)
    while True:
        used = reads_in(body) | results
        kept = _needed(body, used)
        if kept == body:
            break
        body = kept
    used = reads_in(body) | written(body)
    return replace(program, body=body, locals=tuple([a for a in program.locals if a.name in used]))


def _needed(body: Sequence[Statement], used: set[str]) -> tuple[Statement, ...]:
    """Return the statements that write arrays in `used`."""
    made: list[Statement] = []
    for s in body:
        if isinstance(s, Set):
            if s.array in used:
                made.append(s)
        elif isinstance(s, If):
            parts = [_needed(b, used) for b in (s.body, s.other)]
            if any(parts):
                made.append(replace(s, body=parts[0], other=parts[1]))
        elif inner := _needed(s.body, used):
            touched = written(inner) | reads_in(inner)
            made.append(replace(s, body=inner, private=tuple([a for a in s.private if a.name in touched])))
    return tuple(made)


# Splitting.


def split(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """Return statements with a loop of its own for each part that does not depend on the others."""
    made: list[Statement] = []
    for s in body:
        if isinstance(s, For):
            inner = split(s.body)
            made += [_with(s, part) for part in _parts(inner)]
        elif isinstance(s, If) and not s.other:
            made += [replace(s, body=(part,)) for part in split(s.body)] if _apart(s) else [s]
        else:
            made.append(s)
    return tuple(made)


def _apart(s: If) -> bool:
    """Return whether the statements of a branch may be put under conditions of their own."""
    return not ({r.data for r in formulas.reads_of(s.condition)} & written(s.body))


def _with(loop: For, part: tuple[Statement, ...]) -> For:
    touched = written(part) | reads_in(part)
    return replace(loop, body=part, private=tuple([a for a in loop.private if a.name in touched]))


def _parts(body: Sequence[Statement]) -> list[tuple[Statement, ...]]:
    """Return statements in groups between which no order need be kept."""
    groups: list[list[int]] = []
    facts = [(_touched(s), written((s,)), _added(s)) for s in body]
    for k in range(len(body)):
        mine = [g for g in groups if any(_depend(facts[k], facts[j]) for j in g)]
        merged = sorted([j for g in mine for j in g] + [k])
        groups = [g for g in groups if g not in mine] + [merged]
    return [tuple([body[k] for k in g]) for g in sorted(groups)]


def _touched(s: Statement) -> set[str]:
    return written((s,)) | reads_in((s,))


def _added(s: Statement) -> set[str]:
    """Return the arrays to which a statement only adds, and which it does not read."""
    modes: dict[str, set[str]] = {}
    for x in statements((s,)):
        if isinstance(x, Set):
            modes.setdefault(x.array, set()).add(x.mode)
    return {name for name, found in modes.items() if found == {"add"}} - reads_in((s,))


def _depend(one: tuple[set[str], set[str], set[str]], other: tuple[set[str], set[str], set[str]]) -> bool:
    shared = (one[1] & other[0]) | (one[0] & other[1])
    return bool(shared - (one[2] & other[2]))


# Nests.


class Perfect:
    """Loops around one `Set`, with the conditions under which it runs."""

    def __init__(self, loops: list[For], conditions: list[Formula], write: Set) -> None:
        self.loops, self.conditions, self.write = loops, conditions, write

    def statement(self) -> Statement:
        made: Statement = self.write
        if self.conditions:
            made = If(both(self.conditions), (made,), (), self.write.where)
        for loop in reversed(self.loops):
            made = replace(loop, body=(made,), backward=False)
        return made


def both(conditions: Sequence[Formula]) -> Formula:
    """Return the condition that all of some hold."""
    made = conditions[0]
    for c in conditions[1:]:
        made = formulas.operation("logical_and", D.bool_, made, c)
    return made


def perfect(s: Statement) -> Perfect | None:
    """Return a statement as loops around one `Set`; None if it is something else.

    The array written is not read, and no array is private, so that the iterations have no order.
    """
    loops: list[For] = []
    conditions: list[Formula] = []
    while not isinstance(s, Set):
        if isinstance(s, For):
            if s.private:
                return None
            loops.append(s)
        elif s.other:
            return None
        else:
            conditions.append(s.condition)
        if len(s.body) != 1:
            return None
        s = s.body[0]
    reads = formulas.reads_of(s.value, *conditions, *[t for t in s.place if isinstance(t, Formula)])
    if any(r.data == s.array for r in reads):
        return None
    return Perfect(loops, conditions, s)


def within(position: DimLike, low: DimLike, high: DimLike) -> list[Formula]:
    """Return the conditions that a position lies in ``[low, high)`` that may fail."""
    made: list[Formula] = []
    for name, difference in (("ge", position - low), ("lt", position - high)):
        least, most = difference.bounds() if isinstance(difference, Dim) else (difference, difference)
        if (least < 0) if name == "ge" else (most >= 0):
            made.append(formulas.operation(name, D.bool_, formulas.index(difference), formulas.constant(0, D.int64)))
    return made


def _gathered(s: Statement, arrays: dict[str, Array]) -> list[Statement]:
    """Return a statement as a nest that gathers, where it is one that scatters; else as it is."""
    nest = perfect(s)
    if nest is None or nest.write.mode != "add":
        return [s]
    made = _solved(nest, arrays[nest.write.array].shape)
    return [s if made is None else made.statement()]


def _solved(nest: Perfect, shape: Sequence[DimLike]) -> Perfect | None:
    """Return a nest whose places are its first indices; None where it is so, or cannot be."""
    place = nest.write.place
    if any(isinstance(t, Formula) for t in place):
        return None
    names = {loop.index for loop in nest.loops}
    alone = lone_indices(place, nest.loops)
    used = {n for t in place for n in (symbols_in(t) if isinstance(t, Dim) else ())} & names
    if used <= set(alone):
        return None
    if any(names & set(symbols_in(loop.start, loop.stop)) for loop in nest.loops):
        return None
    open_loops = {loop.index: loop for loop in nest.loops}
    values: dict[str, DimLike] = {}
    outer: list[For] = []
    inner: list[For] = []
    conditions: list[Formula] = []
    for axis, (t, size) in enumerate(zip(place, shape)):
        position = substitute(t, values)  # type: ignore[arg-type]
        mine = [n for n in open_loops if isinstance(position, Dim) and n in symbols_in(position)]
        if not mine:
            if isinstance(position, Dim) and set(symbols_in(position)) & {loop.index for loop in outer}:
                return None
            continue
        steps = {n: step_of(position, n) for n in mine}
        if not all(type(c) is int and c for c in steps.values()):
            return None
        solved = _axis(axis, position, size, mine, steps, open_loops)  # type: ignore[arg-type]
        if solved is None:
            return None
        loops, more, found, guards = solved
        outer += loops
        inner += more
        conditions += guards
        for n, v in found.items():
            loop = open_loops.pop(n)
            conditions += within(v, loop.start, loop.stop)
        values = {n: substitute(v, found) for n, v in values.items()} | found
    inner = [*[loop for loop in nest.loops if loop.index in open_loops], *inner]

    def position_of(d: DimLike) -> DimLike:
        return substitute(d, values)

    (write,) = mapped((nest.write,), position_of)
    held = [formulas.substituted(c, values) for c in nest.conditions]
    assert isinstance(write, Set)
    return Perfect([*outer, *inner], [*conditions, *held], write)


Solved = tuple[list[For], list[For], dict[str, DimLike], list[Formula]]


def _axis(
    axis: int, position: DimLike, size: DimLike, mine: Sequence[str], steps: dict[str, int], loops: dict[str, For]
) -> Solved | None:
    """Return how the indices of one axis follow from the element's position on it.

    `position` has the indices `mine`, which grow it by `steps` and have `loops`. The result has the
    loops over the axis, further inner loops, values of indices, and conditions.
    """
    name = _new(f"p{axis}", loops)
    element = index_of(name)
    units = [n for n in mine if abs(steps[n]) == 1]
    strided = [n for n in mine if abs(steps[n]) > 1]
    if units and len(mine) == 2 and len(strided) == 1 and steps[strided[0]] > 1 and steps[units[0]] == 1:
        return _by_remainder(axis, position, size, strided[0], units[0], steps[strided[0]], loops)
    if not units:
        if len(mine) != 1:
            return None
        n, step = mine[0], steps[mine[0]]
        rest = element - substitute(position, {n: 0})
        exact = (
            formulas.operation("eq", D.bool_, formulas.index(rest % step), formulas.constant(0, D.int64))
            if step > 1
            else None
        )
        if exact is None:
            return None
        return [For(name, 0, size, ())], [], {n: rest // step}, [exact]
    # The longest loop is the one that follows, so that what is left to add is short.
    chosen = max(units, key=lambda n: (_length(loops[n]), -mine.index(n)))
    rest = element - substitute(position, {chosen: 0})
    return [For(name, 0, size, ())], [], {chosen: rest if steps[chosen] == 1 else -rest}, []


def _by_remainder(
    axis: int, position: DimLike, size: DimLike, long: str, short: str, step: int, loops: dict[str, For]
) -> Solved | None:
    """Return how the indices of ``step * long + short + rest`` follow from the position."""
    rest = substitute(position, {long: 0, short: 0})
    if type(rest) is not int or not is_zero(loops[short].start):
        return None
    names = [_new(f"{x}{axis}", loops) for x in ("q", "r", "t")]
    q, r, t = map(index_of, names)
    offset = rest // step
    # Elements from 0: the first blocks may begin before.
    first = -(offset + 1) if rest % step else -offset
    element = (q + first + offset) * step + r + rest % step
    blocks = (size - (first + offset) * step - rest % step + step - 1) // step
    outer = [For(names[0], 0, blocks, ()), For(names[1], 0, step, ())]
    inner = [For(names[2], 0, (loops[short].stop + step - 1) // step, ())]
    values = {short: t * step + r, long: q + first - t}
    return outer, inner, values, within(element, 0, size)


def _new(name: str, loops: dict[str, For]) -> str:
    """Return a name that no loop's index has."""
    while name in loops:
        name += "'"
    return name


def _length(loop: For) -> float:
    """Return a guess of a loop's length: what is not known is long."""
    count = loop.stop - loop.start
    return float("inf") if isinstance(count, Dim) else count
