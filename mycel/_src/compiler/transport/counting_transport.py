"""A wrapper of a transport that counts the bytes and messages its rank sends, by collective.

Each collective counts what the ring algorithm sends (`transport.collective_volume`), as predictions
do, whatever the transport inside does. So counts of executed programs are comparable with
predictions and with each other. A message to the rank itself is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mycel._src.compiler.transport.base import Array, Transport
from mycel._src.compiler.transport.collective_volume import messages, sent

__all__ = ["Count", "Counted"]


@dataclass
class Count:
    """How often something was done, and the bytes and messages that one rank sent for it."""

    times: int = 0
    sent: int = 0
    messages: int = 0


class Counted(Transport):
    """Another transport, with `counts` of what its rank has sent, by kind of collective.

    >>> import numpy as np
    >>> from mycel._src.compiler.transport.single_process import Alone
    >>> way = Counted(Alone())
    >>> way.all_reduce(np.ones(3), "sum", (0,)).tolist(), way.counts
    ([1.0, 1.0, 1.0], {'all_reduce': Count(times=1, sent=0, messages=0)})
    """

    def __init__(self, inner: Transport) -> None:
        self.inner, self.rank, self.size = inner, inner.rank, inner.size
        self.groups = inner.groups
        self.counts: dict[str, Count] = {}

    @property
    def sent(self) -> int:
        """The bytes that this rank has sent in all."""
        return sum(c.sent for c in self.counts.values())

    def exchange(self, parts: Sequence[Array], ranks: Sequence[int]) -> list[Array]:
        others = [p for p, r in zip(parts, ranks) if r != self.rank]
        self._add("exchange", sum(p.nbytes for p in others), len(others))
        return self.inner.exchange(parts, ranks)

    def send(self, array: Array, rank: int, tag: int = 0) -> None:
        away = rank != self.rank
        self._add("send", array.nbytes if away else 0, int(away))
        self.inner.send(array, rank, tag)

    def receive(self, rank: int, tag: int = 0) -> Array:
        return self.inner.receive(rank, tag)

    def all_reduce(self, array: Array, op: str, ranks: Sequence[int]) -> Array:
        self._collective("all_reduce", array.nbytes, len(ranks))
        return self.inner.all_reduce(array, op, ranks)

    def all_gather(self, array: Array, axis: int, ranks: Sequence[int]) -> Array:
        result = self.inner.all_gather(array, axis, ranks)
        self._collective("all_gather", result.nbytes, len(ranks))
        return result

    def all_gather_list(self, array: Array, ranks: Sequence[int]) -> list[Array]:
        result = self.inner.all_gather_list(array, ranks)
        self._collective("all_gather", sum(a.nbytes for a in result), len(ranks))
        return result

    def reduce_scatter(self, array: Array, axis: int, op: str, ranks: Sequence[int]) -> Array:
        """Return this rank's part, along `axis`, of each `array` of `ranks` combined by `op`."""
        self._collective("reduce_scatter", array.nbytes, len(ranks))
        return self.inner.reduce_scatter(array, axis, op, ranks)

    def all_to_all(self, array: Array, split: int, concat: int, ranks: Sequence[int]) -> Array:
        """Return the parts along `split` of the `array` of all `ranks`, joined along `concat`."""
        self._collective("all_to_all", array.nbytes, len(ranks))
        return self.inner.all_to_all(array, split, concat, ranks)

    def broadcast(self, array: Array, source: int, ranks: Sequence[int]) -> Array:
        here = self.rank == source
        self._add("spread", array.nbytes * (len(ranks) - 1) if here else 0, len(ranks) - 1 if here else 0)
        return self.inner.broadcast(array, source, ranks)

    def barrier(self, ranks: Sequence[int]) -> None:
        self.inner.barrier(ranks)

    def close(self) -> None:
        self.inner.close()

    def _collective(self, kind: str, nbytes: int, count: int) -> None:
        self._add(kind, sent(kind, nbytes, count), messages(kind, count))

    def _add(self, kind: str, nbytes: int, count: int) -> None:
        found = self.counts.setdefault(kind, Count())
        found.times += 1
        found.sent += nbytes
        found.messages += count
