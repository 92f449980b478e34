"""What is asked of a transport: arrays go between ranks.

A collective is called by every rank of `ranks`, in the same order on each of them, with arrays of
one type and shape unless said otherwise. `ranks` are numbers in the world, in the order in which
the parts are concatenated. Results are new arrays that belong to the caller. Every transport adds
in the order of `ranks`, whatever comes first, so that all ranks have the same bits, and the same
ones with each transport.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

__all__ = ["REDUCTIONS", "Array", "Transport", "reduced"]

Array = np.ndarray[Any, Any]

REDUCTIONS = {
    "sum": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "prod": np.multiply,
    "any": np.logical_or,
    "all": np.logical_and,
}


def reduced(parts: Sequence[Array], op: str) -> Array:
    """Return the elements of `parts` combined by `op`, from the first part to the last."""
    result = np.array(parts[0], copy=True)
    for part in parts[1:]:
        REDUCTIONS[op](result, part, out=result, casting="unsafe")
    return result


class Transport(ABC):
    """One rank's way to the others: `rank` is its own number, `size` how many there are."""

    rank: int
    size: int

    @cached_property
    def groups(self) -> dict[str, tuple[int, ...]]:
        """The groups of ranks that this rank has created, by name."""
        return {}

    @abstractmethod
    def exchange(self, parts: Sequence[Array], ranks: Sequence[int]) -> list[Array]:
        """Send ``parts[k]`` to ``ranks[k]``, and return what each of `ranks` has sent to this one.

        Parts may differ in shape; their element types and numbers of axes are the same.
        """

    @abstractmethod
    def send(self, array: Array, rank: int, tag: int = 0) -> None:
        """Send an array to one rank, which receives it with the same `tag`.

        Returns as soon as `array` may be changed, without waiting for the receiver.
        """

    @abstractmethod
    def receive(self, rank: int, tag: int = 0) -> Array:
        """Wait for the next array that one rank has sent with this `tag`, and return it."""

    def all_reduce(self, array: Array, op: str, ranks: Sequence[int]) -> Array:
        """Return the arrays of all ranks combined element by element."""
        return reduced(self.all_gather_list(array, ranks), op)

    def all_gather_list(self, array: Array, ranks: Sequence[int]) -> list[Array]:
        """Return the arrays of all ranks, which may differ in shape."""
        return self.exchange([array] * len(ranks), ranks)

    def all_gather(self, array: Array, axis: int, ranks: Sequence[int]) -> Array:
        """Return the arrays of all ranks, concatenated along `axis`."""
        return np.concatenate(self.all_gather_list(array, ranks), axis)

    def reduce_scatter(self, array: Array, axis: int, op: str, ranks: Sequence[int]) -> Array:
        """Return this rank's part along `axis` of the `array` of all `ranks`, combined by `op`."""
        return reduced(self.exchange(np.split(array, len(ranks), axis), ranks), op)

    def all_to_all(self, array: Array, split: int, concat: int, ranks: Sequence[int]) -> Array:
        """Return the parts of each rank's `array` along `split` that are for this one of `ranks`,
        joined along `concat`.
        """
        return np.concatenate(self.exchange(np.split(array, len(ranks), split), ranks), concat)

    def barrier(self, ranks: Sequence[int]) -> None:
        """Wait until all ranks are here."""
        self.exchange([np.zeros(0, np.uint8)] * len(ranks), ranks)

    def close(self) -> None:  # noqa: B027  some have nothing to give back
        """Give back what the transport holds; others that wait for this rank are told."""
