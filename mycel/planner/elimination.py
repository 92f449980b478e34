"""The exact minimum of a problem without a limit, by eliminating one item after the other.

Everything that costs is a table over the choices of some items. Eliminating an item adds up the
tables that it is in and takes the minimum over its alternatives, which is a table over its
neighbours (Bertelè and Brioschi, 1972). The next item is always one whose table is the smallest. So
the work is exponential in the width of the order only, and graphs of networks, which are long and
narrow, have a small one. Where a table would be too large nothing is done, as the integer program
then serves better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np

from mycel.planner.model import Link, Problem

__all__ = ["eliminated"]

Array = np.ndarray[Any, Any]
LARGEST = 1 << 22  # entries of a table
Table = tuple[tuple[int, ...], Array]


def eliminated(problem: Problem) -> Optional[list[int]]:
    """Return the assignment of the least seconds, None where a table would be too large.

    The limit of the problem is not looked at.
    """
    counts = [i.count for i in problem.items]
    scopes = [tuple(sorted({k.source, *k.users})) for k in problem.links]
    if any(math.prod(counts[i] for i in s) > LARGEST for s in scopes):
        return None
    order = _order(counts, scopes)
    if order is None:
        return None
    tables: list[Table] = [((i,), np.asarray(item.seconds, float)) for i, item in enumerate(problem.items)]
    tables += [(scope, _table(k, scope, counts)) for k, scope in zip(problem.links, scopes)]
    having: list[set[int]] = [set() for _ in counts]
    for k, (scope, _) in enumerate(tables):
        for i in scope:
            having[i].add(k)
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


def _order(counts: Sequence[int], scopes: Sequence[tuple[int, ...]]) -> Optional[list[int]]:
    """Return an order of elimination, None where a table of each would be too large."""
    near: list[set[int]] = [set() for _ in counts]
    for scope in scopes:
        for i in scope:
            near[i].update(scope)
    for i, one in enumerate(near):
        one.discard(i)
    sizes = [math.prod(counts[n] for n in one) * counts[i] for i, one in enumerate(near)]
    left, order = set(range(len(counts))), []
    while left:
        item = min(left, key=lambda i: (sizes[i], i))
        if sizes[item] > LARGEST:
            return None
        left.discard(item)
        order.append(item)
        for n in near[item]:
            near[n].update(near[item])
            near[n] -= {n, item}
        for n in near[item]:
            sizes[n] = math.prod(counts[i] for i in near[n]) * counts[n]
    return order


def _table(link: Link, scope: tuple[int, ...], counts: Sequence[int]) -> Array:
    """Return what a link costs for the choices of its ends."""
    shape = tuple(counts[i] for i in scope)
    grid = np.indices(shape)
    at = {i: grid[k] for k, i in enumerate(scope)}
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
    return values.transpose(axes).reshape(shape)
