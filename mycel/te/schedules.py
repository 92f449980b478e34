"""Schedules by hand: how the loops of an operator run.

A `Schedule` holds an operator's loop program. Each of its words replaces the program by one with
other loops, and asks whether every two accesses to an element, of which one writes, keep their
order (`loops.dependences`). An error names the two accesses and the line of the schedule.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NoReturn, TypeVar

from mycel._src.compiler.ir.dim_values import symbols_in
from mycel._src.compiler.ir.dimension_guards import deciding
from mycel._src.compiler.ir.dims import Dim, DimLike, same
from mycel._src.compiler.loops.data_locality import cached, fused_at
from mycel._src.compiler.loops.dependences import Clash, carried, numbered, plain, reversal
from mycel._src.compiler.loops.integer_sets import is_exact
from mycel._src.compiler.loops.loop_transformations import (
    CannotBe,
    Spot,
    chain,
    cut,
    find,
    reordered,
    separated,
    skewed,
    split,
    with_loop,
)
from mycel._src.compiler.loops.loop_versioning import MOST_COPIES, finished
from mycel._src.compiler.loops.programs import Array, For, Program, Statement, called, index_of, statements
from mycel._src.foundation import arguments
from mycel.te import schedule_text
from mycel.te.schedule_text import word

__all__ = ["Schedule", "scheduled"]

Loop = str | Dim
T = TypeVar("T")


class Schedule:
    """The loops of an operator, and the methods (*words*) that change them.

    A loop is named as the operator names its variable, or by what a word returned, which may be
    used in sums and products as the index it stands for.
    """

    def __init__(self, program: Program, reassociate: bool = False) -> None:
        self.program = program
        self.reassociate = reassociate
        self.words: list[str] = []
        self.given: set[str] = set()
        self.speaking = False
        self.count = sum(1 for s in statements(program.body)) + len(program.arrays)

    def __repr__(self) -> str:
        return f"<schedule of {self.program.name}>"

    def __str__(self) -> str:
        return str(self.program)

    # Names.

    def __getitem__(self, name: str) -> Dim:
        """Return the loop over a variable; the first one where there are several."""
        return self.loops(name)[0]

    def loops(self, *names: str) -> tuple[Dim, ...]:
        """Return the loops over variables, in the order of the names, and of the program for each.

        Raises ValueError where there is none.
        """
        found: list[Dim] = []
        for name in names:
            mine = [x.index for x in statements(self.program.body) if isinstance(x, For) and called(x.index) == name]
            if not mine:
                self._refuse("loops", f"there is no loop over {name}; there are {self._names()}")
            found += [index_of(n) for n in dict.fromkeys(mine)]
        return tuple(found)

    def _names(self) -> str:
        loops = dict.fromkeys([called(x.index) for x in statements(self.program.body) if isinstance(x, For)])
        return ", ".join(loops) or "none"

    def _spot(self, word: str, loop: Loop) -> Spot:
        if isinstance(loop, str):
            found = self.loops(loop)
            if len(found) > 1:
                self._refuse(word, f"there are {len(found)} loops over {loop}; say which one of loops({loop!r})")
            loop = found[0]
        names = list(symbols_in(loop)) if isinstance(loop, Dim) else []
        spot = find(self.program.body, names[0]) if len(names) == 1 and same(loop, index_of(names[0])) else None
        if spot is None:
            self._refuse(word, f"{loop} is no loop of the program as it is now; there are {self._names()}")
        return spot

    def _fresh(self, name: str) -> str:
        self.count += 1
        return f"{called(name)}_{self.count}"

    # Words.

    @word
    def split(self, loop: Loop, factor: int) -> tuple[Dim, Dim]:
        """Make two loops of one: over blocks of `factor` iterations, and over those of a block.

        Returns both. It is always right, and changes nothing by itself.
        """
        factor = arguments.integer("split", "factor", factor, 1)
        spot = self._spot("split", loop)
        outer, inner = (self._fresh(f"{called(spot.loop.index)}_{part}") for part in ("outer", "inner"))
        made = self._try("split", lambda: split(spot, factor, outer, inner))
        self._put(spot, [made])
        return index_of(outer), index_of(inner)

    @word
    def tile(self, one: Loop, other: Loop, first: int, second: int) -> tuple[Dim, Dim, Dim, Dim]:
        """Split two loops, one inside of the other, and run block by block.

        Args:
            one (Loop): The outer loop.
            other (Loop): The inner one.
            first (int): How many iterations of the outer loop a block has.
            second (int): How many of the inner one.

        Returns:
            tuple[Dim, Dim, Dim, Dim]: The loops over blocks of both, then those inside of a block.

        Raises:
            ValueError: If that would turn a dependence round.
        """
        outer, inner = self.split(one, first)
        across, along = self.split(other, second)
        self.reorder(outer, across, inner, along)
        return outer, across, inner, along

    @word
    def reorder(self, *loops: Loop) -> None:
        """Nest loops in another order, the first one outermost.

        Between the outermost of them and the innermost there are no other statements; loops that
        are not named keep their place. Raises ValueError where a dependence would be turned round.
        """
        spots = [self._spot("reorder", loop) for loop in loops]
        names = [s.loop.index for s in spots]
        if len(set(names)) != len(names) or not names:
            self._refuse("reorder", "name each loop once")
        top = min(spots, key=lambda s: len(s.around))
        last = max(spots, key=lambda s: len(s.around))
        band = self._try("reorder", lambda: chain(top, last.loop.index))
        here = [loop.index for loop in band]
        if not set(names) <= set(here):
            self._refuse("reorder", "the loops are not inside of each other")
        given = iter(names)
        order = [next(given) if n in names else n for n in here]
        innermost = last.loop.index
        self._proved("reorder", top, lambda spot: ([reordered(chain(spot, innermost), spot.around, order)], ()))

    @word
    def skew(self, loop: Loop, by: Loop, factor: int = 1) -> Dim:
        """Let a loop's index grow by `factor` with each iteration of a loop around it, `by`.

        Returns the loop with the new index. It is always right; a `reorder` or `tile` that was not
        may be after it, as iterations that depend on each other then lie in one direction.
        """
        factor = arguments.integer("skew", "factor", factor, 1)
        spot, outer = self._spot("skew", loop), self._spot("skew", by)
        if outer.loop.index not in {x.index for x in spot.around}:
            self._refuse("skew", f"{called(outer.loop.index)} is not around {called(spot.loop.index)}")
        name = self._fresh(spot.loop.index)
        self._put(spot, [skewed(spot, outer.loop.index, factor, name)])
        return index_of(name)

    @word
    def cut(self, loop: Loop, at: DimLike) -> tuple[Dim, Dim]:
        """Make two loops of one, one after the other: up to the index `at`, and from there on.

        Returns both.
        """
        spot = self._spot("cut", loop)
        made = self._try("cut", lambda: cut(spot, at, self._fresh))
        self._put(spot, made)
        return index_of(made[0].index), index_of(made[1].index)

    @word
    def separate(self, loop: Loop, *starts: Loop) -> tuple[Dim, ...]:
        """Give each statement of a loop's body a loop of its own, one after the other.

        With `starts`, which are loops in the body, a part begins at each of these only. Variables
        that several parts use get a place for each iteration. Returns the loops. Raises ValueError
        where a statement needs what a later one computed in an earlier iteration.
        """
        spot = self._spot("separate", loop)
        body = spot.loop.body
        numbers = list(range(len(body)))
        if starts:
            first = {self._spot("separate", x).loop for x in starts}
            numbers = [k for k, s in enumerate(body) if s in first]
            if len(numbers) != len(first):
                self._refuse("separate", "a part begins at a loop that is a statement of the body itself")
        made: list[For] = []

        def make(spot: Spot) -> tuple[Sequence[Statement], Sequence[Array]]:
            parts, moved = separated(spot, numbers, self._fresh)
            made.extend(parts)
            return parts, moved

        self._proved("separate", spot, make)
        return tuple([index_of(x.index) for x in made])

    @word
    def cache(self, array: str, at: Loop, axes: Sequence[int] | None = None, read: int | None = None) -> str:
        """Copy, in each iteration of a loop, what it touches of an array, and use the copy.

        What the loop writes is copied back at the end of the iteration.

        Args:
            array (str): The name of the array.
            at (Loop): The loop.
            axes (Sequence[int] | None): The array's axes in the order of the copy's, so that it may
                be transposed. Default: None.
            read (int | None): The number of the one place at which the loop reads the array that
                uses the copy; None for all. Default: None.

        Returns:
            str: The copy's name.

        Raises:
            ValueError: If a loop around it is parallel, and its iterations would copy one element.
        """
        spot, name = self._spot("cache", at), self._array("cache", array)
        rank = len(self.program.arrays[name].shape)
        if axes is not None and sorted(axes) != list(range(rank)):
            self._refuse("cache", f"axes must be each of 0 to {rank - 1} once, not {tuple(axes)}")
        before = {a for a in self.program.arrays}
        program = self._try("cache", lambda: cached(self.program, name, spot.loop.index, axes, read, self._fresh))
        self._still("cache", program, spot)
        return next(a for a in self.program.arrays if a not in before)

    @word
    def fuse_at(self, array: str, at: Loop) -> str:
        """Compute, in each iteration of the loop `at`, what it reads of an array.

        `array` is one between two statements; it is no longer computed as a whole. Values that
        several iterations read are computed by each. Returns the name of the part. Raises
        ValueError where others read the array as well.
        """
        spot, name = self._spot("fuse_at", at), self._array("fuse_at", array)
        before = {a for a in self.program.arrays}
        program = self._try("fuse_at", lambda: fused_at(self.program, name, spot.loop.index, self._fresh))
        self._still("fuse_at", program, spot)
        return next(a for a in self.program.arrays if a not in before)

    @word
    def parallel(self, loop: Loop) -> None:
        """Let threads share the iterations of an outermost loop, or of one right inside of it.

        Threads wait for each other after each round of the loop around, so that its rounds should
        be long. Raises ValueError for loops further inside, where the loop around has a mark, and
        where an iteration depends on another one.
        """
        around = self._spot("parallel", loop).around
        if len(around) > 1 or any(x.mark for x in around):
            text = (
                "threads share outermost loops and those right inside; reorder the loops, or separate this one, first"
            )
            self._refuse("parallel", text)
        self._mark("parallel", loop)

    @word
    def vectorize(self, loop: Loop) -> None:
        """Run the iterations of a loop side by side, as the lanes of vectors.

        Raises ValueError where an iteration depends on another one; sums of floats do, unless they
        may be reassociated.
        """
        self._mark("vectorize", loop)

    @word
    def unroll(self, loop: Loop) -> None:
        """Write out the iterations of a loop of known length, as of one inside of a block."""
        spot = self._spot("unroll", loop)
        length = spot.loop.stop - spot.loop.start
        if type(length) is int and length > MOST_COPIES:
            self._refuse("unroll", f"at most {MOST_COPIES} iterations are written out, not {length}; split the loop")
        self._put(spot, [replace(spot.loop, mark="unroll")])

    # What they share.

    def _mark(self, word: str, loop: Loop) -> None:
        spot = self._spot(word, loop)
        arrays = self.program.arrays
        reassociate = self.reassociate and word == "vectorize"
        clash = carried(spot.loop, spot.around, arrays, reassociate)
        if clash is not None:
            hint = ""
            if word == "vectorize" and carried(spot.loop, spot.around, arrays, True) is None:
                hint = "; a sum in another order may round otherwise: allow it with schedule(reassociate=True)"
            self._clashed(word, clash, f"iterations of {called(spot.loop.index)} depend on each other", hint)
        self._put(spot, [replace(spot.loop, mark=word)])

    def _still(self, word: str, program: Program, spot: Spot) -> None:
        """Take over a program if the marked loops around a changed one may keep their marks."""
        for loop in (*spot.around, spot.loop):
            if loop.mark in ("parallel", "vectorize"):
                now = find(program.body, loop.index)
                assert now is not None
                clash = carried(now.loop, now.around, program.arrays, self.reassociate and loop.mark == "vectorize")
                if clash is not None:
                    text = f"iterations of {called(loop.index)}, which is {loop.mark}, would depend on each other"
                    self._clashed(word, clash, text, "")
        self.program = program

    def _array(self, word: str, name: str) -> str:
        arrays = self.program.arrays
        found = [a for a in arrays if a == name] or [a for a in arrays if called(a) == name]
        if len(found) != 1:
            known = ", ".join(dict.fromkeys(map(called, arrays)))
            self._refuse(
                word, f"there {'is no array' if not found else 'are several arrays'} {name}; there are {known}"
            )
        return found[0]

    def _put(self, spot: Spot, made: Sequence[Statement], moved: Sequence[Array] = ()) -> None:
        """Replace a loop by other statements, with arrays `moved` around them."""
        index = spot.loop.index
        body = with_loop(self.program.body, index, lambda loop: made)
        if moved and spot.around:
            around = spot.around[-1].index
            body = with_loop(body, around, lambda loop: [replace(loop, private=(*loop.private, *moved))])
        elif moved:
            self.program = replace(self.program, locals=(*self.program.locals, *moved))
        self.program = replace(self.program, body=body)

    def _proved(
        self, word: str, spot: Spot, make: Callable[[Spot], tuple[Sequence[Statement], Sequence[Array]]]
    ) -> None:
        """Replace a loop by the statements that `make` returns, with the arrays around them.

        They must keep the order of all that depends on each other.
        """
        before = numbered((spot.loop,))
        (loop,) = before
        assert isinstance(loop, For)
        made, moved = self._try(word, lambda: make(Spot(loop, spot.around)))
        arrays = {**self.program.arrays, **{a.name: a for a in moved}}
        arrays.update({a.name: a for x in statements(tuple(made)) if isinstance(x, For) for a in x.private})
        clash = reversal(before, made, spot.around, arrays, self.reassociate)
        if clash is not None:
            self._clashed(word, clash, "it would turn a dependence round", "")
        self._put(spot, plain(made), moved)

    def _try(self, word: str, make: Callable[[], T]) -> T:
        try:
            return make()
        except CannotBe as error:
            self._refuse(word, str(error))

    def _clashed(self, word: str, clash: Clash, text: str, hint: str) -> NoReturn:
        if not is_exact() and not hint:
            hint = " (islpy, if installed, may prove more: pip install mycel[polyhedra])"
        self._refuse(word, f"{text}: {clash}{hint}")

    def _refuse(self, word: str, text: str) -> NoReturn:
        raise ValueError(f"{self.program.name}: {word}: {text}{_line()}")


def _line() -> str:
    """Return where the schedule that called a word stands."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename in (__file__, schedule_text.__file__):
        frame = frame.f_back
    return "" if frame is None else f"\n  in {frame.f_code.co_filename}:{frame.f_lineno}"


def scheduled(program: Program, function: Callable[[Schedule], None], reassociate: bool) -> Program:
    """Return a program with the plan that a function makes of its loops.

    `reassociate` says whether sums of floats may be associated in another way.
    """
    schedule = Schedule(program, reassociate)
    # A schedule is no part of what a compiled function computes, and is not followed.
    watcher = sys.getprofile()
    if callable(watcher):
        sys.setprofile(None)
    try:
        with deciding(None):
            function(schedule)
    finally:
        if callable(watcher):
            sys.setprofile(watcher)
    plan = replace(finished(schedule.program), reassociate=reassociate, words=tuple(schedule.words))
    return replace(program, plan=plan)
