"""Local search: improves an assignment by changing one item at a time.

Each item takes its best alternative while the others stay as they are, in sweeps over all items and
then over those near a change. What a link costs by the alternatives of one end is a row or a column
of its table; of links of several users, the layouts that others ask for cost nothing more. Where
there is a limit of memory, no change makes a moment exceed it, or exceed it by more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.planner.optimisation_problem import Link, Problem

__all__ = ["improved"]

Array = np.ndarray[Any, Any]
SWEEPS = 3


def improved(problem: Problem, choices: Sequence[int], frozen: Sequence[int] = (), sweeps: int = SWEEPS) -> list[int]:
    """Return an assignment that is no dearer: each item has its best alternative beside the others.

    `choices` are those of `problem` to begin with, items in `frozen` stay as they are, and `sweeps`
    is how often an item is looked at again. An assignment that fits goes on to fit.
    """
    made = list(choices)
    still = set(frozen)
    state = _Improving(problem, made)
    waiting = [i for i in range(len(made)) if i not in still and problem.items[i].count > 1]
    for _ in range(sweeps):
        changed = [i for i in waiting if state.change(i)]
        if not changed:
            break
        beside = {n for i in changed for k in problem.near(i) for n in _ends(problem.links[k])}
        waiting = [i for i in sorted(beside) if i not in still and problem.items[i].count > 1]
    return made


def _ends(link: Link) -> tuple[int, ...]:
    return (link.source, *link.users)


class _Improving:
    """The choices as they change, tables of the links of one user, and the room at each moment."""

    def __init__(self, problem: Problem, made: list[int]) -> None:
        self.problem, self.made = problem, made
        self.tables: list[Array | None] = [
            k.seconds[:, k.wants[0]] if len(k.users) == 1 and k.users[0] != k.source else None for k in problem.links
        ]
        self.room = None if problem.limit is None else problem.limit - problem.profile(made)
        self.holding = [bool(i.holds) for i in problem.items]
        for link in problem.links:
            if link.bytes is not None:
                for i in _ends(link):
                    self.holding[i] = True

    def change(self, i: int) -> bool:
        """Give an item its best alternative; return whether it is another."""
        before = self.made[i]
        best = self._best(i)
        if best == before:
            return False
        self.made[i] = best
        if self.room is not None and self.holding[i]:
            self._hold(i, before, self.room)
        return True

    def _best(self, i: int) -> int:
        """Return the cheapest alternative that does not take more than the room there is."""
        problem, made, own = self.problem, self.made, self.made[i]
        cost = np.array(problem.items[i].seconds, float)
        for k in problem.near(i):
            table, link = self.tables[k], problem.links[k]
            if table is None:
                cost += self._shared(link, i)
            elif link.source == i:
                cost += table[:, made[link.users[0]]]
            else:
                cost += table[made[link.source]]
        most = cost[own] * (1 - 1e-12)
        if self.room is None or not self.holding[i]:
            best = int(cost.argmin())
            return best if cost[best] < most else own
        for a in np.argsort(cost, kind="stable"):
            if cost[a] >= most:
                break
            if self._may(i, int(a), self.room):
                return int(a)
        return own

    def _shared(self, link: Link, i: int) -> Array:
        """Return what a link costs by the alternatives of an end, but for what all of them cost."""
        others = {int(w[self.made[u]]) for u, w in zip(link.users, link.wants) if u != i}
        asked = list(others)
        if link.source == i:
            total: Array = link.seconds[:, asked].sum(axis=1)
            row = link.seconds.copy() if i in link.users else link.seconds
        else:
            row = link.seconds[self.made[link.source]].copy()
            total = np.zeros(self.problem.items[i].count)
        mine: list[Array] = []
        for u, w in zip(link.users, link.wants):
            if u != i:
                continue
            if not mine:
                row[..., asked] = 0.0
            # A layout is paid for by the first user that wants it.
            found = row[np.arange(len(w)), w] if link.source == i else row[w]
            for other in mine:
                found = np.where(other == w, 0.0, found)
            total = total + found
            mine.append(w)
        return total

    def _may(self, i: int, a: int, room: Array) -> bool:
        """Return whether the change of one item leaves no moment with less room than none."""
        before = self.made[i]
        self.made[i] = a
        after = room.copy()
        self._hold(i, before, after)
        self.made[i] = before
        worse = after < room
        return not bool((after[worse] < 0).any())

    def _hold(self, i: int, before: int, room: Array) -> None:
        """Enter into `room` that the choice of an item was `before` and is now as in `made`."""
        made = self.made
        now = made[i]
        for hold in self.problem.items[i].holds:
            room[hold.first : hold.last + 1] -= hold.bytes[now] - hold.bytes[before]
        for k in self.problem.near(i):
            link = self.problem.links[k]
            if link.bytes is None:
                continue
            held = [0.0, 0.0]
            for at, choice in enumerate((before, now)):
                made[i] = choice
                held[at] = float(sum(link.bytes[made[link.source], l] for l in link.asked(made)))
            room[link.first : link.last + 1] -= held[1] - held[0]
