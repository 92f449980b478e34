"""Schedule search (auto-tuning): finds the fastest schedule of an operator for certain inputs.

Candidates are drawn at first at random, then by changes of the fastest
(`mycel.te.schedule_sketches`); all of them are legal. Each is compiled, which is not part of
its time, and then runs in turn with the fastest so far, so that what else the machine does
meets both. At the end the best few run in turn once more with the operator as it was, which
stays where none is faster by a margin.

The choice is kept in the cache of compiled code under a digest of the operator's program, the
sizes, the processor and the number of threads, as the numbers of which its schedule was drawn: a
file can name no schedule that is not legal.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.loops.integer_sets import is_exact
from mycel._src.compiler.loops.programs import Program, Set, statements
from mycel._src.engines import buffers
from mycel._src.engines.select import engine
from mycel._src.foundation.files import code_cache
from mycel._src.foundation.log import logger
from mycel.te.schedule_sketches import Tape, sketch
from mycel.te.schedule_text import as_function
from mycel.te.schedules import scheduled

__all__ = ["Found", "search"]

Run = Callable[[], Any]
# What a candidate has to save of the time of the operator as it was.
MARGIN = 0.03
# Candidates drawn at random before the fastest are changed, and how many of these there are.
_FIRST, _KEPT = 12, 4
# A candidate that takes so many times the least at first is not run again.
_HOPELESS = 1.3
# The most statements of a candidate: more take long to compile.
_MOST_STATEMENTS = 600
_KIND, _FORMAT = "schedules", "1"


@dataclass(frozen=True)
class Found:
    """The result of a search.

    `before` and `after` are the seconds of a run as the operator was and as it is now, None where
    they were not measured, as the choice was known. `tried` counts the candidates that were run,
    and `known` says whether the choice came from the cache. `schedule` is the schedule as source
    that can be used instead of the search, empty where the operator is as fast without one.
    """

    title: str
    program: Program
    before: float | None
    after: float | None
    tried: int
    known: bool
    reassociate: bool

    @property
    def schedule(self) -> str:
        """The schedule that was found as source; empty where it is none."""
        plan = self.program.plan
        return "" if plan is None else as_function(self.title, plan.words, self.reassociate)

    def __str__(self) -> str:
        if self.known:
            head = f"{self.title}: known from an earlier search"
        else:
            assert self.before is not None and self.after is not None
            head = (
                f"{self.title}: {1e6 * self.after:.4g} microseconds after {1e6 * self.before:.4g}, of "
                f"{self.tried} schedules"
            )
        return f"{head}\n{self.schedule or 'no schedule'}"

    __repr__ = __str__


@dataclass
class _Candidate:
    """A program, the tape that its schedule was drawn of, how to run it, and its least time."""

    program: Program
    tape: Tape | None
    run: Run
    least: float = math.inf


def search(
    program: Program,
    usual: Program,
    types: Sequence[TensorType],
    values: Sequence[Any],
    graph: Callable[[Program], Graph],
    options: tuple[float, bool, bool],
) -> Found:
    """Return the fastest of `usual`, which is how the operator runs now, and of schedules.

    `program` has no schedule. `types` and `values` are the types and buffers of the inputs, and
    `graph` makes a graph of a program. `options` are the seconds of the search, whether sums may be
    associated in another way, and whether to search though the choice is known.
    """
    seconds, reassociate, again = options
    digest = _digest(program, types, reassociate)
    if not again:
        kept = _kept(program, usual, digest, reassociate)
        if kept is not None:
            return Found(program.name, kept, None, None, 0, True, reassociate)
    searching = _Search(program, values, graph, reassociate)
    first = searching.candidate(usual, None)
    assert first is not None
    try:
        if program.body:
            searching.go(first, time.monotonic() + seconds)
    except KeyboardInterrupt:
        logger.info("the search for a schedule of %s was ended; the best so far is kept", program.name)
    best, before, after = searching.decided(first)
    if code_cache.is_on():
        numbers = None if best.tape is None else best.tape.numbers[: best.tape.at]
        content = {"tape": numbers, "words": "" if numbers is None else _words(best.program)}
        code_cache.write(_kind(), digest, json.dumps(content).encode())
    return Found(program.name, best.program, before, after, searching.tried, False, reassociate)


def _kind() -> str:
    return f"{_KIND}-{hashlib.sha256(engine().identity.encode()).hexdigest()[:16]}"


def _digest(program: Program, types: Sequence[TensorType], reassociate: bool) -> str:
    parts = (_FORMAT, program.lasting_text, str([str(t) for t in types]), engine().threads, reassociate, is_exact())
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _words(program: Program) -> str:
    text = "\n".join(program.plan.words) if program.plan is not None else ""
    return hashlib.sha256(text.encode()).hexdigest()


def _kept(program: Program, usual: Program, digest: str, reassociate: bool) -> Program | None:
    """Return the program with the plan that is kept; None where there is none."""
    content = code_cache.read(_kind(), digest) if code_cache.is_on() else None
    if content is None:
        return None
    try:
        found = json.loads(content)
        tape, words = found["tape"], found["words"]
    except (ValueError, KeyError, TypeError):
        return None
    if tape is None:
        return usual
    if not isinstance(tape, list) or len(tape) > 10000 or not all(type(x) is float and 0 <= x <= 1 for x in tape):
        return None
    made = _drawn(program, Tape(tape, random.Random(0)), reassociate)
    # Words may have changed since they were kept.
    return made if made is not None and _words(made) == words else None


def _drawn(program: Program, tape: Tape, reassociate: bool) -> Program | None:
    """Return the program with the schedule that a tape chooses; None where it is too long."""
    made = scheduled(program, lambda s: sketch(s, tape), reassociate)
    plan = made.plan
    assert plan is not None
    count = sum(1 for s in statements(plan.body) if isinstance(s, Set))
    return made if plan.words and count <= _MOST_STATEMENTS else None


class _Search:
    """The candidates for a program, which have run on the buffers `values`.

    `graph` makes the graph of one, and `reassociate` lets them associate sums in another way.
    """

    def __init__(
        self, program: Program, values: Sequence[Any], graph: Callable[[Program], Graph], reassociate: bool
    ) -> None:
        self.program, self.values, self.graph, self.reassociate = program, values, graph, reassociate
        self.random = random.Random(1)
        self.best: list[_Candidate] = []
        self.known: set[Program] = set()
        self.tried = 0
        self.results: list[np.ndarray[Any, Any]] = []

    def candidate(self, program: Program, tape: Tape | None) -> _Candidate | None:
        """Return a compiled candidate; None for one that does not compute the same."""
        graph = self.graph(program)
        entry = engine().compile(graph)
        values = self.values
        made = entry(*values)
        kinds = [t for t in graph.output_types if isinstance(t, TensorType)]
        arrays = [buffers.to_array(b, t) for b, t in zip(made if isinstance(made, tuple) else (made,), kinds)]
        if not self.results:
            self.results = [a.copy() for a in arrays]
        elif not all(map(_alike, arrays, self.results)):
            logger.warning("a schedule of %s gives other results, and is left out: %s", program.name, program.plan)
            return None
        return _Candidate(program, tape, lambda: entry(*values))

    def go(self, first: _Candidate, end: float) -> None:
        """Try candidates until the time `end`."""
        first.least = _seconds(first.run)
        self.best = [first]
        misses = 0
        while time.monotonic() < end and misses < 200:
            drawn = [c.tape for c in self.best[:_KEPT] if c.tape is not None]
            if self.tried >= _FIRST and drawn and self.random.random() < 0.8:
                tape = self.random.choice(drawn).changed()
            else:
                tape = Tape((), self.random)
            program = _drawn(self.program, tape, self.reassociate)
            if program is None or program in self.known:
                misses += 1
                continue
            misses = 0
            self.known.add(program)
            found = self.candidate(program, tape)
            if found is not None:
                self.tried += 1
                self.compare(found)

    def compare(self, new: _Candidate) -> None:
        """Run a candidate in turn with the fastest so far, and enter it."""
        best = self.best[0]
        new.least = min(_seconds(new.run), _seconds(new.run))
        if new.least > _HOPELESS * best.least:
            return
        for _ in range(3):
            new.least = min(new.least, _seconds(new.run))
            best.least = min(best.least, _seconds(best.run))
        self.best = sorted([*self.best, new], key=lambda c: c.least)[: 2 * _KEPT]

    def decided(self, first: _Candidate) -> tuple[_Candidate, float, float]:
        """Return the fastest candidate, the seconds of the first, and those of the fastest."""
        others = [c for c in self.best[:_KEPT] if c is not first]
        spent: dict[int, list[float]] = {id(c): [] for c in (first, *others)}
        for _ in range(7):
            for c in (first, *others):
                spent[id(c)].append(_seconds(c.run))
        middle = {number: sorted(times)[len(times) // 2] for number, times in spent.items()}
        best = min((first, *others), key=lambda c: middle[id(c)])
        if middle[id(best)] > (1 - MARGIN) * middle[id(first)]:
            best = first
        return best, middle[id(first)], middle[id(best)]


def _seconds(run: Run) -> float:
    """Return the seconds of a run; of several, where one is too short to be measured."""
    begin = time.perf_counter()
    run()
    spent = time.perf_counter() - begin
    count = min(int(2e-4 / max(spent, 1e-7)), 1000)
    if count < 2:
        return spent
    begin = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - begin) / count


def _alike(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Return whether results differ by rounding at most."""
    if one.dtype.kind not in "fV" or not one.size:
        return bool(np.array_equal(one, other))
    a, b = one.astype(np.float64), other.astype(np.float64)
    epsilon = {2: 1e-2, 4: 1e-3}.get(one.dtype.itemsize, 1e-6)
    size = np.abs(b[np.isfinite(b)]).max(initial=0)
    return bool(np.allclose(a, b, rtol=epsilon, atol=epsilon * size, equal_nan=True))
