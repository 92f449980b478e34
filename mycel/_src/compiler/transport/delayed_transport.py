"""A wrapper of a transport that simulates a slow link: each exchange is delayed first.

The time is slept, so no core works for it, as with a network card. Exchanges of one rank go one
after the other, as they do over one link.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from mycel._src.compiler.transport.base import Array, Transport

__all__ = ["Slowed"]


class Slowed(Transport):
    """Another transport, whose exchanges take `seconds(kind, nbytes, count)` more.

    `kind` is the name of a collective, or "send", `nbytes` the bytes of the larger of what a rank
    gives and gets, and `count` the number of its ranks.

    >>> import numpy as np
    >>> from mycel._src.compiler.transport.single_process import Alone
    >>> way = Slowed(Alone(), lambda kind, nbytes, count: nbytes / 1e9)
    >>> way.all_reduce(np.ones(3), "sum", (0,)).tolist()
    [1.0, 1.0, 1.0]
    """

    def __init__(self, inner: Transport, seconds: Callable[[str, int, int], float]) -> None:
        self.inner, self.rank, self.size, self._seconds = inner, inner.rank, inner.size, seconds
        self.groups = inner.groups

    def _take(self, kind: str, nbytes: int, count: int) -> None:
        time.sleep(self._seconds(kind, nbytes, count))

    def exchange(self, parts: Sequence[Array], ranks: Sequence[int]) -> list[Array]:
        self._take("all_to_all", sum(p.nbytes for p in parts), len(ranks))
        return self.inner.exchange(parts, ranks)

    def send(self, array: Array, rank: int, tag: int = 0) -> None:
        self._take("send", array.nbytes, 2)
        self.inner.send(array, rank, tag)

    def receive(self, rank: int, tag: int = 0) -> Array:
        return self.inner.receive(rank, tag)

    def all_reduce(self, array: Array, op: str, ranks: Sequence[int]) -> Array:
        self._take("all_reduce", array.nbytes, len(ranks))
        return self.inner.all_reduce(array, op, ranks)

    def all_gather(self, array: Array, axis: int, ranks: Sequence[int]) -> Array:
        self._take("all_gather", array.nbytes * len(ranks), len(ranks))
        return self.inner.all_gather(array, axis, ranks)

    def all_gather_list(self, array: Array, ranks: Sequence[int]) -> list[Array]:
        self._take("all_gather", array.nbytes * len(ranks), len(ranks))
        return self.inner.all_gather_list(array, ranks)

    def reduce_scatter(self, array: Array, axis: int, op: str, ranks: Sequence[int]) -> Array:
        """Return this rank's part, along `axis`, of each `array` of `ranks` combined by `op`."""
        self._take("reduce_scatter", array.nbytes, len(ranks))
        return self.inner.reduce_scatter(array, axis, op, ranks)

    def all_to_all(self, array: Array, split: int, concat: int, ranks: Sequence[int]) -> Array:
        """Return the parts along `split` of the `array` of all `ranks`, joined along `concat`."""
        self._take("all_to_all", array.nbytes, len(ranks))
        return self.inner.all_to_all(array, split, concat, ranks)

    def barrier(self, ranks: Sequence[int]) -> None:
        self._take("all_to_all", 0, len(ranks))
        self.inner.barrier(ranks)

    def close(self) -> None:
        self.inner.close()
