"""The search of the cheapest assignment of a problem.

Small problems are solved exactly: `reduction` takes out what can be decided without loss, and the
integer program of the core is solved to a gap of zero. First the limit of memory is left out; if
the solution fits all the same, it is the optimum, and else the program has the limit in it.

In large problems the items of repeated blocks choose alike (`repeats`), and the smaller problem is
solved so, to a gap of a thousandth. The result is improved item by item without that tie, until no
single change gains. Candidates given from outside, as data parallelism, are improved in the same
way, and the cheapest that fits is the answer, so it is never dearer than any of them.

Modes are MindSpore's: "dynamic_programming" is the search above, and "recursive_programming"
decides one axis of the mesh after the other, what was decided of earlier ones being fixed.
"sharding_propagation" is the search by the seconds of links; those of items decide among equals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Optional

import numpy as np

from mycel.base import arguments
from mycel.planner.integer import solve
from mycel.planner.model import Link, Problem, fixed
from mycel.planner.reduction import reduced
from mycel.planner.repeats import classes, quotient

__all__ = ["MODES", "Answer", "greedy", "improved", "search"]

Array = np.ndarray[Any, Any]
MODES = ("dynamic_programming", "recursive_programming", "sharding_propagation")
SMALL = 120  # items up to which a problem is solved exactly
CLASSES = 160
SECONDS = 60.0
SWEEPS = 20


@dataclass(frozen=True)
class Answer:
    """The choices of a search, their seconds and bytes, and whether they are proved the best."""

    choices: list[int]
    seconds: float
    bytes: float
    exact: bool


def search(
    problem: Problem,
    mode: str = "dynamic_programming",
    candidates: Sequence[Sequence[int]] = (),
    small: int = SMALL,
    most: int = CLASSES,
) -> Answer:
    """Return the cheapest assignment of a problem that holds no more than its limit.

    `mode` is one of `MODES`, `candidates` are assignments that the answer may not be dearer than.
    Problems of at most `small` items are solved exactly, larger ones with at most about `most`
    classes of items. Raises ValueError where no assignment fits, with the least bytes that are
    known to do.
    """
    arguments.one_of("search", "mode", mode, MODES)
    if mode == "recursive_programming":
        return _recursive(problem, candidates, small, most)
    if mode == "sharding_propagation":
        answer = _searched(_by_links(problem), candidates, small, most)
        return replace(answer, seconds=problem.seconds(answer.choices))
    return _searched(problem, candidates, small, most)


def _searched(problem: Problem, candidates: Sequence[Sequence[int]], small: int, most: int) -> Answer:
    exact = len(problem.items) <= small
    tied = list(range(len(problem.items))) if exact else classes(problem, most)
    smaller = problem if exact else quotient(problem, tied)
    found = _solved(smaller, 0.0 if exact else 1e-3)
    if found is not None and exact:
        return _answer(problem, found, True)
    known = [list(c) for c in candidates]
    if found is not None:
        known.append([found[c] for c in tied])
    if not exact:
        known.append(greedy(problem))
        known = [improved(problem, c) for c in known]
    fitting = [c for c in known if problem.fits(c)]
    if not fitting:
        least = min((problem.memory(c)[0] for c in [*known, _leanest(problem)]), default=0.0)
        raise ValueError(
            f"no plan holds at most {problem.limit or 0:.4g} bytes on each device; the least that was found "
            f"is {least:.4g} bytes. Use more devices, a smaller batch, recomputation, or devices with more memory"
        )
    return _answer(problem, min(fitting, key=problem.seconds), False)


def _answer(problem: Problem, choices: list[int], exact: bool) -> Answer:
    return Answer(choices, problem.seconds(choices), problem.memory(choices)[0], exact)


def _solved(problem: Problem, gap: float) -> Optional[list[int]]:
    """Return the solution of the integer program, None where the time is over or nothing fits."""
    core, whole = reduced(problem, False)
    found = solve(core, gap, SECONDS)
    if found.choices is not None:
        choices = whole(found.choices)
        if problem.fits(choices):
            return choices if found.ended else None
    core, whole = reduced(problem, True)
    moments = [] if found.choices is None else [problem.memory(choices)[1]]
    found = solve(core, gap, SECONDS, moments)
    return None if found.choices is None else whole(found.choices)


def _by_links(problem: Problem) -> Problem:
    items = tuple(replace(i, seconds=i.seconds * 1e-6) for i in problem.items)
    return Problem(items, problem.links, problem.limit)


def _recursive(problem: Problem, candidates: Sequence[Sequence[int]], small: int, most: int) -> Answer:
    """Decide axis after axis: at each, alternatives differ from those chosen along that axis only."""
    parts = [i.parts or ((),) * i.count for i in problem.items]
    axes = max((len(p) for one in parts for p in one), default=0)
    allowed = [list(range(i.count)) for i in problem.items]
    answer: Optional[Answer] = None
    for axis in range(axes):
        narrow = [[a for a in can if _whole_after(p, a, axis)] or can for p, can in zip(parts, allowed)]
        last = axis == axes - 1
        part = fixed(problem, narrow)
        answer = _searched(part if last else replace(part, limit=None, _near=[]), (), small, most)
        chosen = [n[c] for n, c in zip(narrow, answer.choices)]
        allowed = [
            [a for a in can if p[a][: axis + 1] == p[c][: axis + 1]] for p, can, c in zip(parts, allowed, chosen)
        ]
        answer = _answer(problem, chosen, False)
    known = [answer] if answer is not None else []
    known += [_answer(problem, list(c), False) for c in candidates if problem.fits(c)]
    if not known:
        return _searched(problem, candidates, small, most)
    return min(known, key=lambda a: a.seconds)


def _whole_after(parts: Sequence[tuple[int, ...]], a: int, axis: int) -> bool:
    return all(p == -1 for p in parts[a][axis + 1 :])


def greedy(problem: Problem, given: Optional[dict[int, int]] = None) -> list[int]:
    """Decide item after item, each by what the links from those before it cost.

    `given` has the choices of some items. The order of the items is that of the graph.
    """
    choices = [-1] * len(problem.items)
    for i, c in (given or {}).items():
        choices[i] = c
    for i, item in enumerate(problem.items):
        if choices[i] >= 0:
            continue
        cost = np.array(item.seconds, float)
        for k in problem.near(i):
            link = problem.links[k]
            if choices[link.source] >= 0:
                for u, w in zip(link.users, link.wants):
                    if u == i:
                        cost += link.seconds[choices[link.source]][w]
            elif link.source == i:
                for u, w in zip(link.users, link.wants):
                    if choices[u] >= 0:
                        cost += link.seconds[:, w[choices[u]]]
        choices[i] = int(np.argmin(cost))
    return choices


def improved(problem: Problem, choices: Sequence[int], frozen: Sequence[int] = ()) -> list[int]:
    """Change one item after the other to its best alternative while the others stay.

    Where there is a limit, an assignment that fits goes on to fit, and one that does not first
    becomes smaller. Items in `frozen` stay as they are.
    """
    made = list(choices)
    still = set(frozen)
    waiting = [i for i in range(len(made)) if i not in still and problem.items[i].count > 1]
    room = None if problem.limit is None else problem.limit - problem.profile(made)
    for _ in range(SWEEPS):
        changed: set[int] = set()
        for i in waiting:
            best = _best(problem, made, i, room)
            if best != made[i]:
                before = made[i]
                made[i] = best
                if room is not None:
                    _hold(problem, made, i, before, room)
                changed.add(i)
        if not changed:
            break
        beside = {n for i in changed for k in problem.near(i) for n in _ends(problem.links[k])}
        waiting = [i for i in sorted(beside | changed) if i not in still and problem.items[i].count > 1]
    return made


def _ends(link: Link) -> tuple[int, ...]:
    return (link.source, *link.users)


def _best(problem: Problem, made: list[int], i: int, room: Optional[Array]) -> int:
    """Return the cheapest alternative of an item that does not take more than the room there is."""
    item = problem.items[i]
    cost = np.array(item.seconds, float)
    for k in problem.near(i):
        cost += _of_link(problem.links[k], made, i, item.count)
    order = np.argsort(cost, kind="stable")
    own = made[i]
    for a in order:
        if cost[a] >= cost[own] * (1 - 1e-12):
            return own
        if room is None or _may(problem, made, i, int(a), room):
            return int(a)
    return own


def _of_link(link: Link, made: list[int], i: int, count: int) -> Array:
    """Return the seconds of a link for each alternative of one of its ends."""
    if len(link.users) == 1 and link.users[0] != link.source:
        if link.source == i:
            return np.asarray(link.seconds[:, link.wants[0][made[link.users[0]]]])
        return np.asarray(link.seconds[made[link.source]][link.wants[0]])
    result = np.zeros(count)
    before = made[i]
    for a in range(count):
        made[i] = a
        result[a] = sum(link.seconds[made[link.source], l] for l in link.asked(made))
    made[i] = before
    return result


def _may(problem: Problem, made: list[int], i: int, a: int, room: Array) -> bool:
    """Return whether the change of one item leaves no moment with less room than none."""
    before = made[i]
    made[i] = a
    after = room.copy()
    _hold(problem, made, i, before, after)
    made[i] = before
    worse = after < room
    return not bool((after[worse] < 0).any())


def _hold(problem: Problem, made: list[int], i: int, before: int, room: Array) -> None:
    """Enter into `room` that the choice of an item was `before` and is now as in `made`."""
    now = made[i]
    for hold in problem.items[i].holds:
        room[hold.first : hold.last + 1] -= hold.bytes[now] - hold.bytes[before]
    for k in problem.near(i):
        link = problem.links[k]
        if link.bytes is None:
            continue
        held = [0.0, 0.0]
        for at, choice in enumerate((before, now)):
            made[i] = choice
            held[at] = float(sum(link.bytes[made[link.source], l] for l in link.asked(made)))
        room[link.first : link.last + 1] -= held[1] - held[0]


def _leanest(problem: Problem) -> list[int]:
    """Return the assignment in which each item holds the least by itself."""
    return [int(np.argmin(np.sum([h.bytes for h in i.holds], axis=0) if i.holds else i.seconds)) for i in problem.items]
