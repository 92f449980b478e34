"""Repeated blocks: items that look alike, as those of equal layers, are decided once.

Items begin in classes of equal tables. Each round tells items apart whose links lead to items of
different classes, in the way of colour refinement. After r rounds a class has the items whose
surroundings up to r links away are equal: the inner layers of a stack are alike, and those near an
end are not once r reaches the end. Rounds go on while the classes are few enough.
"""

from __future__ import annotations

import numpy as np

from mycel._src.planner.optimisation_problem import Link, Problem, quotient

__all__ = ["classes", "quotient"]


def classes(problem: Problem, most: int) -> list[int]:
    """Return the class of each item, at most `most` unless items differ by their tables alone."""
    colours = _numbered([_tables(problem, i) for i in range(len(problem.items))])
    links = _numbered([(k.seconds.tobytes(), _bytes(k), len(k.users)) for k in problem.links])
    while True:
        finer = _numbered([_surroundings(problem, i, colours, links) for i in range(len(colours))])
        if max(finer) == max(colours) or max(finer) >= most:
            return colours
        colours = finer


def _tables(problem: Problem, i: int) -> object:
    item = problem.items[i]
    held = tuple(sorted(np.asarray(h.bytes, float).tobytes() for h in item.holds))
    return np.asarray(item.seconds, float).tobytes(), held, item.parts


def _bytes(link: Link) -> bytes:
    return b"" if link.bytes is None else link.bytes.tobytes()


def _surroundings(problem: Problem, i: int, colours: list[int], links: list[int]) -> object:
    seen = []
    for k in problem.near(i):
        link = problem.links[k]
        ends = sorted((colours[u], w.tobytes(), u == i) for u, w in zip(link.users, link.wants))
        seen.append((links[k], link.source == i, colours[link.source], tuple(ends)))
    return colours[i], tuple(sorted(seen))


def _numbered(keys: list[object]) -> list[int]:
    numbers: dict[object, int] = {}
    return [numbers.setdefault(k, len(numbers)) for k in keys]
