"""The arena: offsets for buffers such that those alive at the same time do not overlap.

A buffer that may overwrite another one, which ends at that time, shares its place: both are one
life. Lives are placed one after another, each at the lowest offset that is free during all of it.
The order is by size, or by size and length of life, whichever needs less memory. No plan can need
less than `bound`: the bytes alive at the peak.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence

__all__ = ["bound", "fullest", "joined", "plan"]

ALIGNMENT = 64
# A buffer's key, its bytes, and its first and last step.
Life = tuple[int, int, int, int]
ENOUGH = 1.005


def plan(lives: Sequence[Life], takes: Sequence[tuple[int, int]] = ()) -> tuple[dict[int, int], int]:
    """Return offsets by buffer, and the arena's size.

    `takes` are pairs of a buffer and one whose place it may take.
    """
    groups, members = joined(lives, takes)
    least = bound(groups)
    best: tuple[dict[int, int], int] = {}, -1
    for order in _ORDERS:
        offsets, total = _place(sorted(groups, key=order))
        if best[1] < 0 or total < best[1]:
            best = offsets, total
        if total <= least * ENOUGH:
            break
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


def bound(lives: Sequence[Life]) -> int:
    """Return the bytes alive at the peak, each buffer rounded up to whole cache lines."""
    return _fullest(lives)[0]


def fullest(lives: Sequence[Life]) -> int:
    """Return the first time at which the most bytes are alive."""
    return _fullest(lives)[1]


def _fullest(lives: Sequence[Life]) -> tuple[int, int]:
    changes: dict[int, int] = {}
    for _, nbytes, first, last in lives:
        size = _rounded(nbytes)
        changes[first] = changes.get(first, 0) + size
        changes[last + 1] = changes.get(last + 1, 0) - size
    now = most = at = 0
    for time in sorted(changes):
        now += changes[time]
        if now > most:
            most, at = now, time
    return most, at


def _rounded(nbytes: int) -> int:
    return -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT


def _place(order: Sequence[Life]) -> tuple[dict[int, int], int]:
    offsets: dict[int, int] = {}
    placed: list[tuple[int, int, int, int]] = []
    total = 0
    for buffer, nbytes, first, last in order:
        size = _rounded(nbytes)
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


_ORDERS: tuple[Callable[[Life], tuple[int, ...]], ...] = (
    lambda life: (-life[1],),
    lambda life: (-life[1] * (life[3] - life[2] + 1),),
    lambda life: (-(life[3] - life[2]), -life[1]),
)
