"""Plan search: finds the cheapest assignment of a planning problem.

Small problems are solved exactly: `problem_reduction` takes out what can be decided without loss,
and the integer program of the core is solved to a gap of zero. First the limit of memory is left
out; if the solution fits all the same, it is the optimum, and else the program has the limit in it.

In large problems items that are tied choose alike, and in very large ones those of repeated blocks
(`repeated_blocks`) too. What is left is solved by `variable_elimination`. Where the result does not
fit, bytes at the fullest moments get a price (Lagrange's relaxation; Everett, 1963): the optimum
under a price is the best of all assignments that hold as little, and the lowest price is wanted
that makes it fit. Each of the *starts*, as data parallelism, in which some items are fixed, is
completed with repeated blocks alike and then item by item (`local_search`). The cheapest of all is
improved item by item without ties, and is the answer, so it is never dearer than any of these.

Modes are MindSpore's: "dynamic_programming" is the search above, and "recursive_programming"
decides one axis of the mesh after the other, what was decided of earlier ones being fixed.
"sharding_propagation" is the search by the seconds of links; those of items decide among equals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.planner.integer_program import solve
from mycel._src.planner.local_search import improved
from mycel._src.planner.optimisation_problem import Problem, fixed
from mycel._src.planner.problem_reduction import reduced
from mycel._src.planner.repeated_blocks import classes, quotient
from mycel._src.planner.variable_elimination import Rounds, eliminated, nearly, refined

__all__ = ["MODES", "Answer", "search"]

Array = np.ndarray[Any, Any]
Prices = tuple[tuple[int, ...], float]  # moments, and the seconds that a byte costs at each
MODES = ("dynamic_programming", "recursive_programming", "sharding_propagation")
SMALL = 60  # items up to which a problem is solved exactly
CLASSES = 12_000
ROUGH = 600  # classes in which starts are completed
SECONDS = 60.0
PRICES = 5  # prices tried
SHARE = 0.25  # of the largest tables, while prices are tried


@dataclass(frozen=True)
class Answer:
    """The choices of a search, their seconds and bytes, and whether they are proved the best.

    `starts` has the seconds of each start, completed, None for those that do not fit; it is empty
    where the choices are proved the best.
    """

    choices: list[int]
    seconds: float
    bytes: float
    exact: bool
    starts: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class _Way:
    """How to search: up to which size exactly, with how many classes, and what is tied."""

    small: int
    most: int
    ties: Sequence[int]
    starts: Sequence[Mapping[int, int]] = ()
    polish: bool = True


def search(
    problem: Problem,
    mode: str = "dynamic_programming",
    starts: Sequence[Mapping[int, int]] = (),
    ties: Sequence[int] | None = None,
    small: int = SMALL,
    most: int = CLASSES,
) -> Answer:
    """Return the cheapest assignment of a problem that holds no more than its limit.

    `mode` is one of `MODES`. `starts` have the choices of some items; the answer is not dearer than
    what is found with any of them. Problems of at most `small` items are solved exactly. In larger
    ones items of the same number in `ties` choose alike, and if there are more than `most` such,
    those of repeated blocks. Raises ValueError where no assignment fits, with the least bytes that
    are known to do.
    """
    arguments.one_of("search", "mode", mode, MODES)
    way = _Way(small, most, range(len(problem.items)) if ties is None else ties, starts)
    if mode == "recursive_programming":
        return _recursive(problem, way)
    if mode == "sharding_propagation":
        answer = _searched(_by_links(problem), way)
        return replace(answer, seconds=problem.seconds(answer.choices))
    return _searched(problem, way)


def _searched(problem: Problem, way: _Way) -> Answer:
    if len(problem.items) <= way.small:
        proved = _exact(problem)
        if proved is not None:
            return _answer(problem, proved, True)
    numbers: dict[int, int] = {}
    tied = [numbers.setdefault(t, len(numbers)) for t in way.ties]
    smaller = quotient(problem, tied)
    if len(smaller.items) > way.most:
        alike = classes(smaller, way.most)
        tied, smaller = [alike[t] for t in tied], quotient(smaller, alike)
    first, prices = _within(smaller)
    named = _named(problem, smaller, tied, way, prices)
    found = [[first[k] for k in tied], *[c for c in named if c is not None]]
    fitting = [c for c in found if problem.fits(c)]
    if not fitting:
        least = min(problem.memory(c)[0] for c in [*found, _leanest(problem)])
        raise ValueError(
            f"no plan holds at most {problem.limit or 0:.4g} bytes on each device; the least that was found "
            f"is {least:.4g} bytes. Use more devices, a smaller batch, recomputation, or devices with more memory"
        )
    best = min(fitting, key=problem.seconds)
    if way.polish:
        # What was found without a start has not been improved yet.
        kept = [best] if best is fitting[0] else [fitting[0], best]
        best = min([improved(problem, c) for c in kept], key=problem.seconds)
    answer = replace(
        _answer(problem, best, False), starts=tuple([None if c is None else problem.seconds(c) for c in named])
    )
    # The promise of this module: the answer is never dearer than a start.
    assert all(s is None or answer.seconds <= s * (1 + 1e-9) for s in answer.starts), (answer.seconds, answer.starts)
    return answer


def _named(
    problem: Problem, smaller: Problem, classes_of: Sequence[int], way: _Way, prices: Prices | None
) -> list[list[int] | None]:
    """Return a good assignment for each start of `way`, None where none is found that fits.

    `smaller` is the problem of the classes of items of `problem`, which `classes_of` numbers, and
    `prices` are those of bytes under which an assignment fits, if there are any.
    """
    if not way.starts:
        return []
    if len(smaller.items) > ROUGH:
        alike = classes(smaller, ROUGH)
        classes_of, smaller = [alike[k] for k in classes_of], quotient(smaller, alike)
    return [_completed(problem, smaller, classes_of, start, prices) for start in way.starts]


def _completed(
    problem: Problem, smaller: Problem, classes_of: Sequence[int], start: Mapping[int, int], prices: Prices | None
) -> list[int] | None:
    """Return a good assignment of `problem` that agrees with `start`, as `_named` finds it."""
    allowed: list[list[int] | None] = [None] * len(smaller.items)
    for item, choice in start.items():
        allowed[classes_of[item]] = [choice]
    part = fixed(smaller, allowed)
    one = _cheapest(_priced(part, *prices) if prices else part, rough=True)
    one = [c if k is None else k[c] for k, c in zip(allowed, one)]
    made = improved(problem, [start.get(k, one[c]) for k, c in enumerate(classes_of)], list(start))
    return made if problem.fits(made) else None


def _answer(problem: Problem, choices: list[int], exact: bool) -> Answer:
    return Answer(choices, problem.seconds(choices), problem.memory(choices)[0], exact)


def _exact(problem: Problem) -> list[int] | None:
    """Return the best assignment, None where the time is over or nothing fits."""
    core, whole = reduced(problem, False)
    found = solve(core, 0.0, SECONDS)
    if found.choices is None or not found.ended:
        return None
    choices = whole(found.choices)
    if problem.fits(choices):
        return choices
    core, whole = reduced(problem, True)
    found = solve(core, 0.0, SECONDS, [problem.memory(choices)[1]])
    if found.choices is None or not found.ended:
        return None
    choices = whole(found.choices)
    return choices if problem.fits(choices) else None  # with nothing left to choose, nothing fits


# Large problems.


def _cheapest(problem: Problem, rough: bool = False) -> list[int]:
    """Return the best assignment without a limit, or nearly the best; less nearly if `rough`."""
    core, whole = reduced(problem, False)
    choices = eliminated(core)
    if choices is not None:
        return whole(choices)
    apart, back = reduced(_apart(core), False)
    choices = eliminated(apart)
    if choices is None:
        choices = nearly(apart)
    choices = back(choices)
    return whole(choices if rough else refined(core, choices))


def _apart(problem: Problem) -> Problem:
    """Return the problem in which each user of a link pays for its own copy."""
    links = [replace(k, users=(u,), wants=(w,)) for k in problem.links for u, w in zip(k.users, k.wants)]
    return Problem(problem.items, tuple(links), problem.limit)


def _within(problem: Problem) -> tuple[list[int], Prices | None]:
    """Return a good assignment that fits, and the prices of bytes by which it was found, if any.

    Where none was found, return the one that holds the least. From one price to the next an
    assignment is changed by rounds of `refined`, which see how whole chains of items change.
    """
    choices = _cheapest(problem)
    if problem.fits(choices):
        return choices, None
    assert problem.limit is not None
    rounds, held = Rounds(problem, SHARE), problem.memory(choices)
    moments, least, best = [held[1]], (held[0], choices), None
    low, high, price = 0.0, np.inf, problem.seconds(choices) / max(problem.limit, 1.0)
    for number in range(PRICES):
        start = choices if best is None else best
        made = refined(_priced(problem, moments, price), start, [number % 2], rounds)
        held = problem.memory(made)
        least = min(least, (held[0], made), key=lambda h: h[0])
        if problem.fits(made):
            high = price
            best = made if best is None else min(best, made, key=problem.seconds)
        else:
            low = price
            if held[1] not in moments:
                moments.append(held[1])
            if best is None:
                choices = made
        if high < 1.4 * low:
            break
        price = price * 8 if best is None else (low * high) ** 0.5 if low else high / 8
    return (least[1] if best is None else best), (tuple(moments), min(high, price))


def _priced(problem: Problem, moments: Sequence[int], price: float) -> Problem:
    """Return the problem in which a byte at each of `moments` costs `price` seconds."""
    if not moments:
        return problem
    items = []
    for item in problem.items:
        seconds = np.array(item.seconds, float)
        for hold in item.holds:
            times = sum(hold.first <= m <= hold.last for m in moments)
            if times:
                seconds += price * times * hold.bytes
        items.append(replace(item, seconds=seconds))
    links = []
    for link in problem.links:
        times = sum(link.first <= m <= link.last for m in moments)
        if link.bytes is not None and times:
            link = replace(link, seconds=link.seconds + price * times * link.bytes)
        links.append(link)
    return Problem(tuple(items), tuple(links), problem.limit)


def _by_links(problem: Problem) -> Problem:
    items = tuple(replace(i, seconds=i.seconds * 1e-6) for i in problem.items)
    return Problem(items, problem.links, problem.limit)


def _recursive(problem: Problem, way: _Way) -> Answer:
    """Decide axis after axis: what was chosen along the axes before stays."""
    parts = [i.parts or ((),) * i.count for i in problem.items]
    axes = max((len(p) for one in parts for p in one), default=0)
    allowed = [list(range(i.count)) for i in problem.items]
    way = replace(way, polish=False, starts=())
    answer = None
    for axis in range(axes):
        narrow = [[a for a in can if _whole_after(p, a, axis)] or can for p, can in zip(parts, allowed)]
        part = fixed(problem, narrow)
        last = axis == axes - 1
        answer = _searched(part if last else Problem(part.items, part.links), way)
        chosen = [n[c] for n, c in zip(narrow, answer.choices)]
        allowed = [
            [a for a in can if p[a][: axis + 1] == p[c][: axis + 1]] for p, can, c in zip(parts, allowed, chosen)
        ]
    if answer is None:
        return _searched(problem, way)
    return _answer(problem, chosen, False)


def _whole_after(parts: Sequence[tuple[int, ...]], a: int, axis: int) -> bool:
    return all(p == -1 for p in parts[a][axis + 1 :])


def _leanest(problem: Problem) -> list[int]:
    """Return the assignment in which each item holds the least by itself."""
    return [int(np.argmin(np.sum([h.bytes for h in i.holds], axis=0) if i.holds else i.seconds)) for i in problem.items]
