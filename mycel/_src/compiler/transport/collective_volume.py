"""Communication volume of collectives by ring algorithms, which send the least that is possible.

`nbytes` is that of the larger side: the operand of an all-reduce, a reduce-scatter and an
all-to-all, the result of an all-gather, and the value of a permute. `count` ranks take part. Where
a share is not a whole number of bytes it is rounded up.

>>> sent("all_reduce", 1000, 4), sent("all_gather", 1000, 4), sent("permute", 1000, 4)
(1500, 750, 1000)
>>> messages("all_reduce", 4), messages("all_to_all", 4)
(6, 3)
"""

from __future__ import annotations

__all__ = ["KINDS", "messages", "sent"]

# The rounds of each collective among n ranks, as (rounds for each other rank, other rounds). In a
# round of the former each rank sends one nth of the bytes, in one of the latter all of them.
_ROUNDS = {
    "all_reduce": (2, 0),
    "all_gather": (1, 0),
    "reduce_scatter": (1, 0),
    "all_to_all": (1, 0),
    "permute": (0, 1),
    "send": (0, 1),
}
KINDS = tuple(_ROUNDS)


def sent(kind: str, nbytes: int, count: int) -> int:
    """Return the bytes that one of `count` ranks sends in a collective.

    `kind` names the collective, one of `KINDS`; `nbytes` are those of its larger side.
    """
    each, whole = _rounds(kind)
    if count == 1:
        return 0
    return -(-each * (count - 1) * nbytes // count) + whole * nbytes


def messages(kind: str, count: int) -> int:
    """Return how many messages one of `count` ranks sends, one after the other, in a collective."""
    each, whole = _rounds(kind)
    return 0 if count == 1 else each * (count - 1) + whole


def _rounds(kind: str) -> tuple[int, int]:
    if kind not in _ROUNDS:
        raise ValueError(f"there is no collective {kind!r}; there are {', '.join(KINDS)}")
    return _ROUNDS[kind]
