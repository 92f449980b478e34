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
from collections.abc import Callable, Sequence

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


def _searched(
    groups: Sequence[Life], unit: int, least: int, best: tuple[dict[int, int], int], tries: int
) -> tuple[dict[int, int], int]:
    """Return the best plan that is found from others by placing what lies on top earlier.

    `best` is the best plan so far, which becomes worse nowhere, and `least` what ends the search.
    """
    draw = random.Random(0)
    chosen = order = sorted(groups, key=_ORDERS[0])
    large = [life for life in order if life[1] * FEW > least] or order
    worst = -1
    for k in range(tries):
        offsets, total = _place(order, unit)
        if total < best[1]:
            best = offsets, total
        if total <= least:
            break
        if worst < 0 or total <= worst or k % 16 == 15:
            chosen, worst = order, total
        top = [life for life in order if offsets[life[0]] + _rounded(life[1], unit) == total]
        order = list(chosen)
        for life in (draw.choice(top), draw.choice(large)):
            order.remove(life)
            order.insert(draw.randrange(len(large)), life)
    return best


_ORDERS: tuple[Callable[[Life], tuple[int, ...]], ...] = (
    lambda life: (-life[1],),
    lambda life: (-life[1] * (life[3] - life[2] + 1),),
    lambda life: (-(life[3] - life[2]), -life[1]),
)
