"""Schedule sketches: random legal schedules, decoded from a list of numbers, for the search.

A `Tape` is a list of numbers, each of which decides one choice; where it ends, it goes on at
random. A sketch goes over the loops of a program and applies words by such choices: it computes
arrays where they are read, separates statements, and gives each nest blocks, lanes, copies in
registers and threads. A word that is not legal is refused by the schedule and left out. So every
tape is a legal schedule, and a tape with one number changed is a schedule nearby.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from mycel._src.compiler.ir.dim_values import symbols_in
from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.loops.access_analysis import reads_in
from mycel._src.compiler.loops.programs import For, Set, Statement, index_of, statements
from mycel.te.schedules import Schedule

__all__ = ["Tape", "sketch"]

T = TypeVar("T")
_LANES = (8, 16, 32, 64, 128, 256)
_ROWS = (2, 3, 4, 6, 8)
_BLOCKS = (8, 16, 32, 64, 128)


class Tape:
    """Choices, by `numbers` from 0 to 1 and then at random from `source`."""

    def __init__(self, numbers: Sequence[float], source: random.Random) -> None:
        self.numbers, self.source, self.at = list(numbers), source, 0

    def number(self) -> float:
        if self.at == len(self.numbers):
            self.numbers.append(self.source.random())
        self.at += 1
        return self.numbers[self.at - 1]

    def pick(self, options: Sequence[T]) -> T:
        return options[min(int(self.number() * len(options)), len(options) - 1)]

    def chance(self, likely: float) -> bool:
        return self.number() < likely

    def changed(self) -> Tape:
        """Return a tape with one or two of the numbers that were used drawn anew."""
        numbers = self.numbers[: self.at]
        for _ in range(self.source.choice((1, 1, 2))):
            if numbers:
                numbers[self.source.randrange(len(numbers))] = self.source.random()
        return Tape(numbers, self.source)


def sketch(s: Schedule, t: Tape) -> None:
    """Apply the transformations that a tape chooses to a schedule that has none."""
    for array in s.program.locals:
        if t.chance(0.5):
            _fused(s, t, array.name)
    for loop in [x.index for x in statements(s.program.body) if isinstance(x, For) and len(x.body) > 1]:
        if t.chance(0.3) and _has(s, loop):
            _blocked(s, t, loop) if t.chance(0.5) else _tried(partial(s.separate, index_of(loop)))
    for loop in [x.index for x in s.program.body if isinstance(x, For)]:
        if _has(s, loop):
            _nest(s, t, loop)


def _tried(word: Callable[[], T]) -> Any:
    """Return what a word returns; None where it is refused."""
    try:
        return word()
    except ValueError:
        return None


def _has(s: Schedule, index: str) -> bool:
    return any(isinstance(x, For) and x.index == index for x in statements(s.program.body))


def _loop(s: Schedule, index: str) -> For:
    return next(x for x in statements(s.program.body) if isinstance(x, For) and x.index == index)


def _band(loop: For) -> list[For]:
    """Return a loop and those inside of it that are the only statement of the one around them."""
    found = [loop]
    while len(found[-1].body) == 1 and isinstance(found[-1].body[0], For) and not found[-1].private:
        found.append(found[-1].body[0])
    return found


def _name(index: Dim) -> str:
    return next(iter(symbols_in(index)))


def _fused(s: Schedule, t: Tape, array: str) -> None:
    """Compute an array where it is read: in the blocks of the loop that reads it."""
    readers = [x for x in s.program.body if isinstance(x, For) and _reads(x, array)]
    if not readers:
        return
    loop = readers[-1]
    if t.chance(0.7):
        parts = _tried(lambda: s.split(index_of(loop.index), t.pick(_BLOCKS)))
        at = index_of(loop.index) if parts is None else parts[0]
    else:
        at = index_of(loop.index)
    _tried(lambda: s.fuse_at(array, at))


def _reads(s: Statement, array: str) -> bool:
    return array in reads_in((s,)) and not any(isinstance(x, Set) and x.array == array for x in statements((s,)))


def _blocked(s: Schedule, t: Tape, index: str) -> None:
    """Cut the sum of a recurrence where its block begins, and compute what is before it first."""
    inner = next((x for x in _loop(s, index).body if isinstance(x, For) and index in symbols_in(x.start, x.stop)), None)
    size = t.pick((2, 4, 8, 16))
    if inner is None:
        return
    parts = _tried(lambda: s.split(index_of(index), size))
    halves = parts and _tried(lambda: s.cut(index_of(inner.index), parts[0] * size))
    pieces = halves and _tried(lambda: s.separate(parts[1], *halves))
    if not pieces:
        return
    turned = len(pieces) > 1 and _tried(lambda: s.reorder(halves[0], pieces[1]) or True)
    if turned and t.chance(0.5):
        _tried(lambda: s.vectorize(pieces[1]))
    for piece in pieces:
        if size <= 8 and t.chance(0.7):
            _tried(partial(s.unroll, piece))


def _nest(s: Schedule, t: Tape, top: str) -> None:
    """Apply words to one of the program's nests."""
    band = _band(_loop(s, top))
    body = band[-1].body
    kind = t.pick(("tiles", "tiles", "lanes", "wave")) if len(band) > 1 else t.pick(("tiles", "lanes"))
    if kind == "tiles" and any(isinstance(x, Set) for x in body):
        outermost = _tiles(s, t, band)
    elif kind == "wave":
        outermost = _wave(s, t, band)
    else:
        outermost = top
    if kind == "lanes" or not any(isinstance(x, Set) for x in body):
        outermost = _lanes(s, t, outermost)
    if t.chance(0.7) and _has(s, outermost) and _tried(lambda: s.parallel(index_of(outermost)) or True) is None:
        for x in _loop(s, outermost).body:
            if isinstance(x, For) and t.chance(0.7):
                _tried(partial(s.parallel, index_of(x.index)))


def _tiles(s: Schedule, t: Tape, band: Sequence[For]) -> str:
    """Give a nest blocks of rows and of lanes; return its outermost loop."""
    target = next(x for x in statements(band[-1:]) if isinstance(x, Set))
    rows = [x for x in band if any(isinstance(d, Dim) and x.index in symbols_in(d) for d in target.place)]
    if not rows:
        return band[0].index
    sums = [index_of(x.index) for x in band if x not in rows]
    lane = rows[-1] if t.chance(0.85) else t.pick(rows)
    blocked = [x for x in rows if x is not lane]
    row = t.pick(blocked) if blocked and t.chance(0.8) else None
    outer: list[Dim] = [index_of(x.index) for x in rows if x is not lane and x is not row]
    inner: list[Dim] = []
    wide = _tried(lambda: s.split(index_of(lane.index), t.pick(_LANES)))
    if wide is None:
        return band[0].index
    if row is not None:
        high = _tried(lambda: s.split(index_of(row.index), t.pick(_ROWS)))
        if high is not None:
            outer.append(high[0])
            inner.append(high[1])
        else:
            outer.append(index_of(row.index))
    outer.append(wide[0])
    if t.chance(0.3):
        outer = outer[-1:] + outer[:-1]
    inner.append(wide[1])
    depth: list[Dim] = []
    if sums and t.chance(0.3):
        # A part of the sum at a time, so that what it reads stays in the cache.
        parts = _tried(lambda: s.split(sums[0], t.pick((64, 128, 256))))
        if parts is not None:
            depth, sums = [parts[0]], [parts[1], *sums[1:]]
    place = t.pick((0, len(outer)))
    order = [*outer[:place], *depth, *outer[place:], *sums, *inner]
    if _tried(lambda: s.reorder(*order) or True) is None:
        _tried(lambda: s.reorder(*outer, *inner, *depth, *sums))
    if sums and t.chance(0.8):
        around = (depth or outer)[-1] if place else outer[-1]
        _tried(lambda: s.cache(target.array, around))
    _tried(lambda: s.vectorize(inner[-1]))
    if len(inner) > 1 and t.chance(0.8):
        _tried(lambda: s.unroll(inner[0]))
    return next(x.index for x in s.program.body if isinstance(x, For) and _around(x, _name(wide[1])))


def _around(loop: For, index: str) -> bool:
    return any(isinstance(x, For) and x.index == index for x in statements((loop,)))


def _wave(s: Schedule, t: Tape, band: Sequence[For]) -> str:
    """Run a nest along its diagonals; return its outermost loop."""
    place = t.pick(range(len(band) - 1))
    outer, inner = index_of(band[place].index), index_of(band[place + 1].index)
    wave = s.skew(inner, outer, t.pick((1, 1, 2)))
    if _tried(lambda: s.reorder(wave, outer) or True) is None:
        return band[0].index
    if t.chance(0.9):
        _tried(lambda: s.vectorize(outer))
    return band[0].index if place else _name(wave)


def _lanes(s: Schedule, t: Tape, top: str) -> str:
    """Give the innermost loops of a nest lanes where that is legal; return its outermost loop."""
    loops = [x for x in statements((_loop(s, top),)) if isinstance(x, For)]
    innermost = [x for x in loops if not any(isinstance(y, For) for y in statements(x.body))]
    for x in innermost:
        if t.chance(0.6):
            _tried(partial(s.vectorize, index_of(x.index)))
    outer = [x.index for x in loops if x not in innermost and x.index != top]
    if outer and t.chance(0.3):
        _tried(lambda: s.vectorize(index_of(t.pick(outer))))
    if t.chance(0.3) and len(loops) > 1:
        parts = _tried(lambda: s.split(index_of(top), t.pick(_ROWS)))
        return top if parts is None else _name(parts[0])
    return top
