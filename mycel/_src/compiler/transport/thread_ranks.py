"""The transport between ranks that are threads of one process, for tests and trials."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from mycel._src.compiler.transport.base import Array, Transport, apart
from mycel._src.compiler.transport.current_transport import within
from mycel._src.foundation.system import locks

__all__ = ["Threads", "run"]

Result = TypeVar("Result")
# The tags of collectives are not those of messages.
_COLLECTIVE = -1


class _World:
    """Mailboxes between all pairs of ranks, and whether a rank has failed."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.changed = locks.condition()
        self.mail: dict[tuple[int, int, int], deque[tuple[str, tuple[int, ...], Array]]] = {}
        self.failed: str | None = None


class Threads(Transport):
    """One of several threads that exchange arrays through the process's memory."""

    def __init__(self, world: _World, rank: int) -> None:
        self.world, self.rank, self.size = world, rank, world.size

    def exchange(self, parts: Sequence[Array], ranks: Sequence[int]) -> list[Array]:
        return self.met("exchange", parts, ranks)

    def met(self, kind: str, parts: Sequence[Array], ranks: Sequence[int]) -> list[Array]:
        """Do what `exchange` does, for a collective whose name and parameters are `kind`."""
        group, found = tuple(ranks), []
        for part, rank in zip(parts, group):
            self._put(part, rank, _COLLECTIVE, kind, group)
        for rank in group:
            theirs, other, array = self._get(rank, _COLLECTIVE)
            if (theirs, other) != (kind, group):
                raise apart(self.rank, kind, rank, theirs)
            found.append(array)
        return found

    def send(self, array: Array, rank: int, tag: int = 0) -> None:
        self._put(array, rank, tag, "send", ())

    def receive(self, rank: int, tag: int = 0) -> Array:
        return self._get(rank, tag)[2]

    def _put(self, array: Array, rank: int, tag: int, kind: str, group: tuple[int, ...]) -> None:
        self._known(rank)
        with self.world.changed:
            mail = self.world.mail.setdefault((self.rank, rank, tag), deque())
            mail.append((kind, group, np.array(array, copy=True)))
            self.world.changed.notify_all()

    def _get(self, rank: int, tag: int) -> tuple[str, tuple[int, ...], Array]:
        self._known(rank)
        box = (rank, self.rank, tag)
        with self.world.changed:
            self.world.changed.wait_for(lambda: self.world.mail.get(box) or self.world.failed is not None)
            if not self.world.mail.get(box):
                raise RuntimeError(f"rank {self.rank} waits for rank {rank}, but {self.world.failed}")
            return self.world.mail[box].popleft()

    def _known(self, rank: int) -> None:
        if not 0 <= rank < self.size:
            raise ValueError(f"there is no rank {rank} among {self.size}")


def run(count: int, program: Callable[[int], Result]) -> list[Result]:
    """Run ``program(rank)`` in `count` threads as ranks; return what they return.

    Raises what the first of them to fail raises; ranks that wait for it are told and end.

    >>> from mycel._src.compiler.transport.current_transport import transport
    >>> run(3, lambda rank: transport().all_reduce(np.array([rank]), "sum", (0, 1, 2)).tolist())
    [[3], [3], [3]]
    """
    world = _World(count)
    results: list[Any] = [None] * count
    errors: list[BaseException] = []

    def main(rank: int) -> None:
        try:
            with within(Threads(world, rank)):
                results[rank] = program(rank)
        except BaseException as error:
            with world.changed:
                errors.append(error)
                world.failed = world.failed or f"rank {rank} has ended with {type(error).__name__}: {error}"
                world.changed.notify_all()

    threads = [threading.Thread(target=main, args=(k,), name=f"mycel-rank-{k}") for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results
