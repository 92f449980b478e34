"""Schedules drawn at random for a loop program."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.loops.loop_versioning import finished
from mycel._src.compiler.loops.programs import For, Program, index_of, statements
from mycel.te.schedules import Schedule

__all__ = ["planned"]


def planned(program: Program, seed: int, words: int = 8) -> tuple[Program, Counter[str]]:
    """Return a program with a plan by random words, and how often each was right and refused."""
    r = random.Random(seed)
    schedule = Schedule(program)
    count: Counter[str] = Counter()
    for _ in range(words):
        word = r.choice(("split", "tile", "reorder", "skew", "cut", "separate", "cache", "fuse_at", *MARKS, *MARKS))
        before = schedule.program
        try:
            if _run(schedule, word, r):
                count[word] += 1
        except ValueError:
            assert schedule.program is before
            count[f"no {word}"] += 1
    return replace(program, plan=finished(schedule.program)), count


MARKS = ("parallel", "vectorize", "unroll")


def _run(s: Schedule, word: str, r: random.Random) -> bool:
    loops = [index_of(x.index) for x in statements(s.program.body) if isinstance(x, For)]
    if not loops:
        return False
    one, other = r.choice(loops), r.choice(loops)
    if word == "split":
        s.split(one, r.choice((1, 2, 3, 4, 7)))
    elif word == "tile":
        inner = _inside(s, one)
        if not inner:
            return False
        s.tile(one, r.choice(inner), r.choice((2, 3)), r.choice((1, 2, 4)))
    elif word == "reorder":
        chosen = [one, *_inside(s, one)][: r.choice((2, 3))]
        r.shuffle(chosen)
        s.reorder(*chosen)
    elif word == "skew":
        inner = _inside(s, one)
        if not inner:
            return False
        s.skew(r.choice(inner), one, r.choice((1, 2)))
    elif word == "cut":
        s.cut(one, r.choice((1, 2, 3, other)))
    elif word == "separate":
        s.separate(one)
    elif word in ("cache", "fuse_at"):
        name = r.choice(list(s.program.arrays))
        if word == "fuse_at":
            s.fuse_at(name, one)
        else:
            axes = list(range(len(s.program.arrays[name].shape)))
            r.shuffle(axes)
            s.cache(name, one, axes if r.random() < 0.5 else None)
    else:
        getattr(s, word)(one)
    return True


def _inside(s: Schedule, loop: Dim) -> list[Dim]:
    """Return the loops inside of a loop, each the only statement of the one around it."""
    found = []
    here = s._spot("test", loop).loop
    while len(here.body) == 1 and isinstance(here.body[0], For):
        here = here.body[0]
        found.append(index_of(here.index))
    return found
