"""Variable elimination: the exact minimum of a planning problem without a memory limit.

Everything that costs is a table over the choices of some items. Eliminating an item adds up the
tables that it is in and takes the minimum over its alternatives, which is a table over its
neighbours (Bertelè and Brioschi, 1972). The next item is always one whose table is the smallest. So
the work is exponential in the width of the order only, and graphs of networks, which are long and
narrow, have a small one. Where a table would be too large, the links are left out that matter
least, by the difference between their dearest and their cheapest entry, as few as will do. Then
rounds follow in which a few items, those with the most neighbours, stay as they are, so that tables
of the others are small enough, and these are solved exactly; items that stayed are free in the next
round. No round makes the assignment dearer.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.planner.optimisation_problem import Link, Problem, fixed

__all__ = ["Rounds", "eliminated", "nearly", "refined"]

Array = np.ndarray[Any, Any]
GAIN = 0.01  # share of the seconds that a round gains, or no other follows
LARGEST = 1 << 20  # entries of a table
Table = tuple[tuple[int, ...], Array]


def eliminated(problem: Problem) -> list[int] | None:
    """Return the assignment of the least seconds, None where a table would be too large.

    The limit of the problem is not looked at.
    """
    counts = [i.count for i in problem.items]
    scopes = _scopes(problem, counts)
    order = _order(counts, scopes)
    if order is None:
        return None
    tables: list[Table] = [((i,), np.asarray(item.seconds, float)) for i, item in enumerate(problem.items)]
    tables += [(scope, _table(k, scope, counts)) for k, scope in zip(problem.links, scopes)]
    having: list[set[int]] = [set() for _ in counts]
    for k, (scope, _) in enumerate(tables):
        for i in scope:
            having[i].add(k)
    # Items without a choice are in no scope but their own.
    steps: list[tuple[int, tuple[int, ...], Array]] = []
    for item in order:
        mine = sorted(having[item])
        near = tuple(sorted({i for k in mine for i in tables[k][0]} - {item}))
        scope = (*near, item)
        total = np.zeros([counts[i] for i in scope])
        for k in mine:
            total += _spread(tables[k], scope)
            for i in tables[k][0]:
                having[i].discard(k)
            tables[k] = ((), np.zeros(()))
        steps.append((item, near, np.argmin(total, axis=-1)))
        if near:
            for i in near:
                having[i].add(len(tables))
            tables.append((near, total.min(axis=-1)))
    made = [0] * len(counts)
    for item, near, best in reversed(steps):
        made[item] = int(best[tuple(made[i] for i in near)])
    return made


def nearly(problem: Problem) -> list[int]:
    """Return an assignment that is the best but for links that matter little.

    The limit of the problem is not looked at.
    """
    counts = [i.count for i in problem.items]
    spread = [float(np.ptp(k.seconds)) for k in problem.links]
    ranked = sorted(range(len(spread)), key=lambda k: (-spread[k], k))
    scopes = _scopes(problem, counts)
    few, many = 0, len(ranked)
    while few < many:
        tried = (few + many + 1) // 2
        if _order(counts, [scopes[k] for k in ranked[:tried]]) is not None:
            few = tried
        else:
            many = tried - 1
    links = tuple(problem.links[k] for k in sorted(ranked[:few]))
    found = eliminated(Problem(problem.items, links))
    assert found is not None
    return found


class Rounds:
    """The items of a problem that stay in each round, so that the others can be eliminated.

    What an item has stayed for counts against its staying again. Problems of equal items and links
    have the same rounds, whatever these cost.
    """

    def __init__(self, problem: Problem, share: float = 1.0) -> None:
        """Find the rounds of `problem`, with tables of a `share` of the most entries."""
        self._most = max(1, int(LARGEST * share))
        self._near: list[set[int]] = [set() for _ in problem.items]
        for link in problem.links:
            for i in {link.source, *link.users}:
                self._near[i].update((link.source, *link.users))
        self._counts = [i.count for i in problem.items]
        self._scopes = _scopes(problem, self._counts)
        self._stayed = [0] * len(self._near)
        self._found: list[set[int]] = []

    def still(self, number: int) -> set[int]:
        """Return the items that stay in the round of a number."""
        while len(self._found) <= number:
            found = self._next()
            for i in found:
                self._stayed[i] += 1
            self._found.append(found)
        return self._found[number]

    def _next(self) -> set[int]:
        weight = [len(n) * math.log(1 + c) / (1 + 3 * s) for n, c, s in zip(self._near, self._counts, self._stayed)]
        ranked = sorted(range(len(weight)), key=lambda i: (-weight[i], i))
        few, many = 0, len(ranked)
        while few < many:
            tried = (few + many) // 2
            if _possible(self._counts, self._scopes, set(ranked[:tried]), self._most):
                many = tried
            else:
                few = tried + 1
        return set(ranked[:few])


def refined(
    problem: Problem, choices: Sequence[int], numbers: Sequence[int] = (0, 1), rounds: Rounds | None = None
) -> list[int]:
    """Return an assignment that is no dearer: the best that agree with `choices` in part.

    `numbers` are those of the rounds, which end when one gains little, and `rounds` has the rounds
    of `problem` where they are known.
    """
    made, before = list(choices), problem.seconds(choices)
    rounds = Rounds(problem) if rounds is None else rounds
    for number in numbers:
        still = rounds.still(number)
        found = eliminated(fixed(problem, [[c] if i in still else None for i, c in enumerate(made)]))
        assert found is not None
        made = [c if i in still else n for i, (c, n) in enumerate(zip(made, found))]
        after = problem.seconds(made)
        if after >= before * (1 - GAIN):
            break
        before = after
    return made


def _scopes(problem: Problem, counts: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the ends of each link, without those that have no choice."""
    return [tuple(sorted(i for i in {k.source, *k.users} if counts[i] > 1)) for k in problem.links]


def _possible(counts: Sequence[int], scopes: Sequence[tuple[int, ...]], still: set[int], most: int) -> bool:
    """Return whether the items besides `still` can be eliminated with tables of `most` entries."""
    left = [[i for i in s if i not in still] for s in scopes]
    return _order([1 if i in still else n for i, n in enumerate(counts)], left, most) is not None


def _order(counts: Sequence[int], scopes: Sequence[Sequence[int]], largest: int = 0) -> list[int] | None:
    """Return an order of elimination, None where a table of each would be too large.

    `largest` is how many entries a table may have, by default those that it may have at all.
    """
    near: list[set[int]] = [set() for _ in counts]
    for scope in scopes:
        for i in scope:
            near[i].update(scope)
    for i, one in enumerate(near):
        one.discard(i)
    # Logarithms of the sizes of tables; what is in `waiting` with another size is out of date.
    own, most = [math.log2(n) for n in counts], math.log2(largest or LARGEST) + 1e-6
    sizes = [own[i] + sum([own[n] for n in one]) for i, one in enumerate(near)]
    waiting = [(size, i) for i, size in enumerate(sizes)]
    heapq.heapify(waiting)
    done, order = [False] * len(counts), []
    while waiting:
        size, item = heapq.heappop(waiting)
        if done[item] or size != sizes[item]:
            continue
        if size > most:
            return None
        done[item] = True
        order.append(item)
        mine = near[item]
        for n in mine:
            beside = near[n]
            beside |= mine
            beside.discard(n)
            beside.discard(item)
            size = own[n] + sum([own[i] for i in beside])
            if size != sizes[n]:
                sizes[n] = size
                heapq.heappush(waiting, (size, n))
    return order


def _table(link: Link, scope: tuple[int, ...], counts: Sequence[int]) -> Array:
    """Return what a link costs for the choices of its ends."""
    user = link.users[0]
    if len(scope) == 2 and len(link.users) == 1:
        matrix = link.seconds[:, link.wants[0]]
        return matrix if link.source < user else matrix.T
    shape = tuple(counts[i] for i in scope)
    grid = np.indices(shape)
    none = np.zeros(shape, int)
    at = {i: grid[scope.index(i)] if i in scope else none for i in (link.source, *link.users)}
    total = np.zeros(shape)
    asked: list[Array] = []
    for user, wants in zip(link.users, link.wants):
        layout = wants[at[user]]
        # A layout is paid for by the first user that wants it.
        fresh = np.ones(shape, bool)
        for other in asked:
            fresh &= other != layout
        total += np.where(fresh, link.seconds[at[link.source], layout], 0.0)
        asked.append(layout)
    return total


def _spread(table: Table, scope: tuple[int, ...]) -> Array:
    """Return a table with an axis for each item of `scope`, which is in another order than its."""
    own, values = table
    axes = sorted(range(len(own)), key=lambda k: scope.index(own[k]))
    shape = [1] * len(scope)
    for k, i in enumerate(own):
        shape[scope.index(i)] = values.shape[k]
    made: Array = values.transpose(axes).reshape(shape)
    return made
