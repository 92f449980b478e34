"""The transport of a single process, which exchanges arrays with itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from mycel._src.compiler.transport.base import Array, Transport

__all__ = ["Alone"]


class Alone(Transport):
    """One rank, which exchanges arrays with itself."""

    rank, size = 0, 1

    def __init__(self) -> None:
        self._sent: dict[int, deque[Array]] = {}

    def exchange(self, parts: Sequence[Array], ranks: Sequence[int]) -> list[Array]:
        if tuple(ranks) != (0,):
            raise ValueError(f"this process is alone: it is rank 0 of 1, and cannot reach the ranks {tuple(ranks)}")
        return [np.array(p, copy=True) for p in parts]

    def send(self, array: Array, rank: int, tag: int = 0) -> None:
        self._known(rank)
        self._sent.setdefault(tag, deque()).append(np.array(array, copy=True))

    def receive(self, rank: int, tag: int = 0) -> Array:
        self._known(rank)
        if not self._sent.get(tag):
            raise RuntimeError(
                f"this process is alone, and has sent itself nothing with tag {tag}: it would wait for ever"
            )
        return self._sent[tag].popleft()

    def _known(self, rank: int) -> None:
        if rank != 0:
            raise ValueError(f"this process is alone: there is no rank {rank}")
