"""Exact reductions of a planning problem, which keep its best assignments.

Links of one user are matrices between two items. An item with no matrix left takes its cheapest
alternative. One with a single neighbour costs, for each choice of the neighbour, its cheapest
answer, which is added to the neighbour's own seconds. One with two neighbours becomes a matrix
between them. These are the exact rules of partitioned boolean quadratic problems (Scholz and
Eckstein, 2002); they solve chains, trees and series-parallel graphs wholly. An alternative goes
where another is never dearer, whatever its neighbours choose.

Items that hold different numbers of bytes, and those at links of several users or with bytes, stay:
the rules compare seconds only. What stays is the *core*; the choices of the others follow from its
own, in the reverse order.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mycel._src.planner.optimisation_problem import Hold, Item, Link, Problem

__all__ = ["reduced"]

Array = np.ndarray[Any, Any]
MOST = 1 << 19  # sums that an item of two neighbours may ask for


class _Reducing:
    """The state: seconds of items, matrices between pairs, and links that stay as they are."""

    def __init__(self, problem: Problem, memory: bool) -> None:
        self.problem = problem
        self.seconds = [np.array(i.seconds, float) for i in problem.items]
        self.matrices: dict[tuple[int, int], Array] = {}
        self.around: list[set[int]] = [set() for _ in problem.items]
        self.kept: list[Link] = []
        self.gone: set[int] = set()
        self.held = [memory and any(np.ptp(h.bytes) > 0 for h in i.holds) for i in problem.items]
        self.bound = list(self.held)
        for link in problem.links:
            self._enter(link, memory)
        # An item removed, its neighbours, and its choice by theirs.
        self.steps: list[tuple[int, list[int], Array]] = []
        self.tables: list[list[int]] = [[] for _ in problem.items]  # the steps that ask for an item

    def _enter(self, link: Link, memory: bool) -> None:
        bytes_matter = memory and link.bytes is not None and bool(np.any(link.bytes))
        if not bytes_matter and not np.any(link.seconds):
            return
        if bytes_matter or len(link.users) > 1:
            self.kept.append(link)
            for i in {link.source, *link.users}:
                self.bound[i] = True
            return
        matrix, user = link.seconds[:, link.wants[0]], link.users[0]
        if user == link.source:
            self.seconds[user] += np.diagonal(matrix)
        else:
            self.add(link.source, user, matrix)

    def add(self, a: int, b: int, matrix: Array) -> None:
        """Add a matrix between two items."""
        if a > b:
            a, b, matrix = b, a, matrix.T
        known = self.matrices.get((a, b))
        self.matrices[a, b] = np.array(matrix, float) if known is None else known + matrix
        self.around[a].add(b)
        self.around[b].add(a)

    def between(self, a: int, b: int) -> Array:
        """Return the matrix with a row for each alternative of `a`."""
        return self.matrices[a, b] if a < b else self.matrices[b, a].T

    def taken(self, a: int, b: int) -> Array:
        """Return the matrix between two items and remove it."""
        matrix = self.between(a, b)
        del self.matrices[min(a, b), max(a, b)]
        self.around[a].discard(b)
        self.around[b].discard(a)
        return matrix

    def eliminate(self) -> set[int]:
        """Remove items of at most two neighbours until none is left; return those removed."""
        gone: set[int] = set()
        waiting = [(len(near), i) for i, near in enumerate(self.around)]
        heapq.heapify(waiting)
        while waiting:
            degree, item = heapq.heappop(waiting)
            near = sorted(self.around[item])
            if item in self.gone or self.bound[item] or degree != len(near) or degree > 2:
                continue
            if degree == 2 and self.seconds[item].size * self.seconds[near[0]].size * self.seconds[near[1]].size > MOST:
                continue
            gone.add(item)
            self.gone.add(item)
            self._remove(item, near)
            for n in near:
                heapq.heappush(waiting, (len(self.around[n]), n))
        return gone

    def _remove(self, item: int, near: list[int]) -> None:
        cost = self.seconds[item]
        if not near:
            table = np.argmin(cost)
        elif len(near) == 1:
            total = cost[:, None] + self.taken(item, near[0])
            table = np.argmin(total, axis=0)
            self.seconds[near[0]] = self.seconds[near[0]] + total.min(axis=0)
        else:
            three = (cost[:, None] + self.taken(item, near[0]))[:, :, None] + self.taken(item, near[1])[:, None, :]
            table = np.argmin(three, axis=0)
            self.add(near[0], near[1], three.min(axis=0))
        for n in near:
            self.tables[n].append(len(self.steps))
        self.steps.append((item, near, np.asarray(table)))

    def undominated(self, item: int, links: Sequence[Link], memory: bool) -> list[int]:
        """Return the alternatives of an item without those that another makes needless."""
        cost = self.seconds[item]
        worst = cost[None, :] - cost[:, None]  # [a, b]: how much dearer b may be than a
        for n in sorted(self.around[item]):
            matrix = self.between(item, n)
            worst = worst + (matrix[None, :, :] - matrix[:, None, :]).max(axis=2)
        for link in links:
            worst = worst + _worst(link, item, len(cost), link.seconds)
            if memory and link.bytes is not None:
                worst = np.where(_worst(link, item, len(cost), link.bytes) > 0, np.inf, worst)
        if memory:
            for hold in self.problem.items[item].holds:
                worst = np.where(hold.bytes[None, :] > hold.bytes[:, None], np.inf, worst)
        keep: list[int] = []
        alive = np.ones(len(cost), bool)
        for a in range(len(cost)):
            others = alive.copy()
            others[a] = False
            if (worst[a][others] <= 0).any():
                alive[a] = False
            else:
                keep.append(a)
        return keep


def _worst(link: Link, item: int, count: int, table: Array) -> Array:
    """Bound how much a link may rise when an item takes alternative b in place of a, as [a, b]."""
    rise = np.zeros((count, count))
    if item == link.source:
        rise += np.maximum(table[None, :, :] - table[:, None, :], 0).sum(axis=2)
    for user, wants in zip(link.users, link.wants):
        if user == item:
            rise += np.where(wants[None, :] == wants[:, None], 0.0, table.max(axis=0)[wants][None, :])
    return rise


def reduced(problem: Problem, memory: bool) -> tuple[Problem, Callable[[Sequence[int]], list[int]]]:
    """Return the core of a problem, and what makes assignments of the core ones of the problem.

    With `memory` the bytes of all assignments are kept as well; without it they are left out of the
    core. The seconds of an assignment of the core are those of the best that agree with it.
    """
    state = _Reducing(problem, memory)
    keep = [list(range(len(s))) for s in state.seconds]
    state.eliminate()
    while _prune(state, keep, memory) and state.eliminate():
        pass
    gone = state.gone
    left = [i for i in range(len(state.seconds)) if i not in gone]
    number = {i: k for k, i in enumerate(left)}
    items = []
    for i in left:
        holds = state.problem.items[i].holds if memory else ()
        items.append(Item(problem.items[i].name, state.seconds[i], holds))
    # Bytes that do not depend on a choice belong to the first item of the core.
    constant = [
        Hold(np.full(items[0].count, h.bytes[0]), h.first, h.last)
        for i in sorted(gone)
        for h in state.problem.items[i].holds
        if memory and items
    ]
    if constant:
        items[0] = replace(items[0], holds=(*items[0].holds, *constant))
    links = [
        replace(k, source=number[k.source], users=tuple(number[u] for u in k.users), bytes=k.bytes if memory else None)
        for k in state.kept
    ]
    for (a, b), matrix in sorted(state.matrices.items()):
        links.append(Link(number[a], (number[b],), (np.arange(matrix.shape[1]),), matrix))
    core = Problem(tuple(items), tuple(links), problem.limit if memory else None)

    def whole(choices: Sequence[int]) -> list[int]:
        made = {i: int(choices[k]) for i, k in number.items()}
        for item, near, table in reversed(state.steps):
            made[item] = int(table[tuple(made[n] for n in near)])
        return [keep[i][made[i]] for i in range(len(problem.items))]

    return core, whole


def _prune(state: _Reducing, keep: list[list[int]], memory: bool) -> bool:
    """Remove dominated alternatives of the items that are left; return whether there were any."""
    links: list[list[int]] = [[] for _ in keep]
    for k, link in enumerate(state.kept):
        for i in {link.source, *link.users}:
            links[i].append(k)
    changed = False
    items = list(state.problem.items)
    for i in range(len(keep)):
        if i in state.gone or len(keep[i]) == 1:
            continue
        left = state.undominated(i, [state.kept[k] for k in links[i]], memory)
        if len(left) == len(keep[i]):
            continue
        changed = True
        keep[i] = [keep[i][a] for a in left]
        state.seconds[i] = state.seconds[i][left]
        for n in sorted(state.around[i]):
            key = (min(i, n), max(i, n))
            state.matrices[key] = state.matrices[key][left] if i < n else state.matrices[key][:, left]
        for k in links[i]:
            state.kept[k] = _narrowed(state.kept[k], i, left)
        holds = tuple(replace(h, bytes=h.bytes[left]) for h in items[i].holds)
        items[i] = replace(items[i], holds=holds)
        for k in state.tables[i]:
            item, near, table = state.steps[k]
            state.steps[k] = (item, near, np.take(table, left, axis=near.index(i)))
    state.problem = Problem(tuple(items), state.problem.links, state.problem.limit)
    return changed


def _narrowed(link: Link, item: int, left: list[int]) -> Link:
    if link.source == item:
        moved = None if link.bytes is None else link.bytes[left]
        link = replace(link, seconds=link.seconds[left], bytes=moved)
    wants = tuple(w[left] if u == item else w for u, w in zip(link.users, link.wants))
    return replace(link, wants=wants)
