"""Rank agreement: a slow search runs on rank 0 alone, which sends its result to the others.

Rank 0 searches and sends the result, or why there is none, to the others, which wait for it. All
ranks say what they search by a number, so that ranks with different programs are told.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from mycel._src.compiler.transport.current_transport import transport

__all__ = ["agree", "are_together", "found_by_one", "together"]

FOUND, NOTHING = 0, 1


class _Here(threading.local):
    together = False


_here = _Here()


@contextmanager
def together() -> Iterator[None]:
    """Record that all ranks are in this block, in this thread."""
    before, _here.together = _here.together, True
    try:
        yield
    finally:
        _here.together = before


def are_together() -> bool:
    """Return whether all ranks, of which there are several, are in a block of `together`."""
    return _here.together and transport().size > 1


def _check_alike(verb: str, numbers: Sequence[int]) -> None:
    own = transport().rank
    differing = [rank for rank, number in enumerate(numbers) if number != numbers[own]]
    if differing:
        raise RuntimeError(
            f"rank {own} {verb} another program than rank {differing[0]}; all ranks must call the same functions in "
            "the same order, for inputs of the same types"
        )


def agree(number: int) -> None:
    """Wait for all ranks, which have to give the same `number` of what they run next.

    Raises RuntimeError where they do not.

    >>> agree(7)
    """
    here = transport()
    parts = here.all_gather_list(np.array([number], np.int64), range(here.size))
    _check_alike("runs", [int(part[0]) for part in parts])


def found_by_one(search: Callable[[], Sequence[int]], number: int) -> Sequence[int]:
    """Return what `search` returns on rank 0; every rank calls this.

    Raises ValueError on all ranks where the search did, and RuntimeError where ranks have other
    values of `number`.

    >>> found_by_one(lambda: [3, 1, 2], 7)
    [3, 1, 2]
    """
    here, error = transport(), None
    found: Sequence[int] = []
    if here.rank == 0:
        try:
            content = [FOUND, *search()]
        except ValueError as refusal:
            error = refusal
            content = [NOTHING, *str(refusal).encode()]
    else:
        content = []
    own = np.array([number, *content], np.int64)
    parts = here.all_gather_list(own, range(here.size))
    _check_alike("divides", [int(part[0]) for part in parts])
    kind, *found = [int(n) for n in parts[0][1:]]
    if kind == NOTHING:
        raise error or ValueError(bytes(found).decode())
    return found
