"""The arena: offsets for buffers such that those alive at the same time do not overlap.

A buffer that may overwrite another one, which ends at that time, shares its place: both are one
life. Lives are placed one after another, each at the lowest offset that is free during all of it.
The order is by size, or by size and length of life, whichever needs less memory. No plan can need
less than `bound`: the bytes alive at the peak. Where memory is scarce, a search goes on from there:
it draws orders in which what lay on top is placed earlier, from a fixed seed.
"""

from __future__ import annotations

import random
from bisect import insort
from collections.abc import Callable, Mapping, Sequence

__all__ = ["bound", "fullest", "joined", "plan"]

ALIGNMENT = 64
# A buffer's key, its bytes, and its first and last step.
Life = tuple[int, int, int, int]
ENOUGH = 1.005
# Buffers below this part of the arena are not moved in a search.
FEW = 64


def plan(
    lives: Sequence[Life], takes: Sequence[tuple[int, int]] = (), unit: int = ALIGNMENT, tries: int = 0
) -> tuple[dict[int, int], int]:
    """Return offsets by buffer, which are multiples of `unit`, and the arena's size.

    `lives` are the buffers, each with its bytes and steps, and `takes` pairs of a buffer and one
    whose place it may take. Up to `tries` more orders are tried, as long as the size is above what
    no plan can go below.
    """
    groups, members = joined(lives, takes)
    least = bound(groups, unit)
    best: tuple[dict[int, int], int] = {}, -1
    for order in _ORDERS:
        offsets, total = _place(sorted(groups, key=order), unit)
        if best[1] < 0 or total < best[1]:
            best = offsets, total
        if total <= least * ENOUGH:
            break
    if best[1] > least and tries:
        best = _searched(groups, unit, least, best, tries)
    offsets, total = best
    return {key: offsets[group] for group, keys in members.items() for key in keys}, total


def joined(lives: Sequence[Life], takes: Sequence[tuple[int, int]]) -> tuple[list[Life], dict[int, list[int]]]:
    """Return the lives and, by the key of each, its buffers.

    Those that share a place are one life.
    """
    sizes = {key: nbytes for key, nbytes, _, _ in lives}
    owner = {key: key for key in sizes}
    members = {key: [key] for key in sizes}
    given: set[int] = set()
    for new, old in takes:
        # A buffer is made once; what it replaces can be given only once.
        if (
            owner[new] == new
            and len(members[new]) == 1
            and old not in given
            and sizes[new] == sizes[old]
            and owner[old] != new
        ):
            given.add(old)
            owner[new] = owner[old]
            members[owner[old]].append(new)
            del members[new]
    spans = {key: (first, last) for key, _, first, last in lives}
    groups = [
        (key, sizes[key], min(spans[k][0] for k in keys), max(spans[k][1] for k in keys))
        for key, keys in members.items()
    ]
    return groups, members


def bound(lives: Sequence[Life], unit: int = ALIGNMENT) -> int:
    """Return the bytes alive at the peak, each buffer rounded up to a multiple of `unit`."""
    return _fullest(lives, unit)[0]


def fullest(lives: Sequence[Life]) -> int:
    """Return the first time at which the most bytes are alive."""
    return _fullest(lives, ALIGNMENT)[1]


def _fullest(lives: Sequence[Life], unit: int) -> tuple[int, int]:
    changes: dict[int, int] = {}
    for _, nbytes, first, last in lives:
        size = _rounded(nbytes, unit)
        changes[first] = changes.get(first, 0) + size
        changes[last + 1] = changes.get(last + 1, 0) - size
    now = most = at = 0
    for time in sorted(changes):
        now += changes[time]
        if now > most:
            most, at = now, time
    return most, at


def _rounded(nbytes: int, unit: int) -> int:
    return -(-max(nbytes, 1) // unit) * unit


def _place(order: Sequence[Life], unit: int) -> tuple[dict[int, int], int]:
    offsets: dict[int, int] = {}
    placed: list[tuple[int, int, int, int]] = []
    total = 0
    for buffer, nbytes, first, last in order:
        size = _rounded(nbytes, unit)
        at = 0
        for start, end, a, b in placed:
            if a <= last and first <= b:
                if at + size <= start:
                    break
                at = max(at, end)
        insort(placed, (at, at + size, first, last))
        offsets[buffer] = at
        total = max(total, at + size)
    return offsets, total


class _Search:
    """Lives that are placed many times, each time in an order that differs little from another one.

    With each life are kept those that are alive during some of it, as they alone are in its way. So
    a life's place changes only where a life beside it was moved in the order or has another place.
    """

    def __init__(self, groups: Sequence[Life], unit: int) -> None:
        self.sizes = {life[0]: _rounded(life[1], unit) for life in groups}
        self.beside: dict[int, list[int]] = {life[0]: [] for life in groups}
        alive: list[Life] = []
        for life in sorted(groups, key=lambda life: life[2]):
            alive = [other for other in alive if other[3] >= life[2]]
            for other in alive:
                self.beside[life[0]].append(other[0])
                self.beside[other[0]].append(life[0])
            alive.append(life)

    def place(
        self, order: Sequence[Life], before: Mapping[int, tuple[int, int]], moved: Sequence[Life]
    ) -> dict[int, tuple[int, int]]:
        """Return where lives placed in an order begin and end.

        `before` has the same of an order that differs by the lives `moved`.
        """
        sizes, beside = self.sizes, self.beside
        again = {key for life in moved for key in (life[0], *beside[life[0]])}
        places: dict[int, tuple[int, int]] = {}
        for key, *_ in order:
            if key not in again:
                places[key] = before[key]
                continue
            size, at = sizes[key], 0
            for start, end in sorted([places[k] for k in beside[key] if k in places]):
                if at + size <= start:
                    break
                if end > at:
                    at = end
            places[key] = at, at + size
            if places[key] != before.get(key):
                again.update(beside[key])
        return places


def _searched(
    groups: Sequence[Life], unit: int, least: int, best: tuple[dict[int, int], int], tries: int
) -> tuple[dict[int, int], int]:
    """Return the best plan that is found from others by placing what lies on top earlier.

    `best` is the best plan so far, which becomes worse nowhere, and `least` what ends the search.
    """
    draw, search = random.Random(0), _Search(groups, unit)
    chosen = order = moved = sorted(groups, key=_ORDERS[0])
    large = [life for life in order if life[1] * FEW > least] or order
    there: dict[int, tuple[int, int]] = {}
    worst = -1
    for k in range(tries):
        places = search.place(order, there, moved)
        total = max([end for _, end in places.values()])
        if total < best[1]:
            best = {key: start for key, (start, _) in places.items()}, total
        if total <= least:
            break
        if worst < 0 or total <= worst or k % 16 == 15:
            chosen, there, worst = order, places, total
        top = [life for life in order if places[life[0]][1] == total]
        order, moved = list(chosen), [draw.choice(top), draw.choice(large)]
        for life in moved:
            order.remove(life)
            order.insert(draw.randrange(len(large)), life)
    return best


_ORDERS: tuple[Callable[[Life], tuple[int, ...]], ...] = (
    lambda life: (-life[1],),
    lambda life: (-life[1] * (life[3] - life[2] + 1),),
    lambda life: (-(life[3] - life[2]), -life[1]),
)
