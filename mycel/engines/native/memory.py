"""The arena: offsets for buffers such that those alive at one time do not overlap.

Buffers are placed largest first, each at the lowest offset that is free during all of its life.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence

__all__ = ["plan"]

ALIGNMENT = 64


def plan(lives: Sequence[tuple[int, int, int, int]]) -> tuple[dict[int, int], int]:
    """Offsets by buffer, and the arena's size; each entry is a buffer's key, its bytes, and its first and last step."""
    offsets: dict[int, int] = {}
    placed: list[tuple[int, int, int, int]] = []
    total = 0
    order = sorted(lives, key=lambda life: -life[1])
    for buffer, nbytes, first, last in order:
        size = -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT
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
