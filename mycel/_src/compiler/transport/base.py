"""The interface of transports: collectives and messages of arrays between ranks.

A collective is called by every rank of `ranks`, in the same order on each of them, with arrays of
one type and shape unless said otherwise. A rank that meets another one in another collective, or
with another array, gets an error that says who does what. `ranks` are numbers in the world, in the
order in which the parts are concatenated. Results are new arrays that belong to the caller. Every
transport adds in the order of `ranks`, whatever comes first, so that all ranks have the same bits,
and the same ones with each transport.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

__all__ = ["REDUCTIONS", "Array", "Transport", "alike", "apart", "reduced"]

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


def alike(kind: str, arrays: Sequence[Array], ranks: Sequence[int]) -> list[Array]:
    """Return the arrays of `ranks` for a collective; raise ValueError unless they are alike."""
    first = arrays[0]
    for array, rank in zip(arrays, ranks):
        if array.shape != first.shape or array.dtype != first.dtype:
            raise ValueError(
                f"{kind}: rank {ranks[0]} has {first.dtype.name} {first.shape} and rank {rank} has "
                f"{array.dtype.name} {array.shape}; all must be alike"
            )
    return list(arrays)


def apart(own: int, mine: str, rank: int, theirs: str) -> RuntimeError:
    """Return the error of the rank `own`, which is in the collective `mine` while `rank`, which it
    meets, is in `theirs`.
    """
    more = "" if theirs != mine else " of another group, or another time"
    return RuntimeError(
        f"rank {own} is in {mine} and rank {rank} in {theirs}{more}: all ranks of a group must call the same "
        "collectives in the same order"
    )


class Transport(ABC):
    """One rank's way to the others: `rank` is its own number, `size` how many there are.

    `channel` has the order of its exchanges, where some run beside others
    (`transport.async_channel`).
    """

    rank: int
    size: int
    channel: Any = None

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

    def met(self, kind: str, parts: Sequence[Array], ranks: Sequence[int]) -> list[Array]:
        """Do what `exchange` does, for a collective whose name and parameters are `kind`.

        They are those of all ranks, and have at most 24 characters.
        """
        return self.exchange(parts, ranks)

    def all_reduce(self, array: Array, op: str, ranks: Sequence[int]) -> Array:
        """Return the arrays of all ranks combined element by element."""
        kind = f"all_reduce {op}"
        return reduced(alike(kind, self.met(kind, [array] * len(ranks), ranks), ranks), op)

    def all_gather_list(self, array: Array, ranks: Sequence[int]) -> list[Array]:
        """Return the arrays of all ranks, which may differ in shape."""
        return self.met("all_gather_list", [array] * len(ranks), ranks)

    def all_gather(self, array: Array, axis: int, ranks: Sequence[int]) -> Array:
        """Return the arrays of all ranks, concatenated along `axis`."""
        kind = f"all_gather (axis {axis})"
        return np.concatenate(alike(kind, self.met(kind, [array] * len(ranks), ranks), ranks), axis)

    def reduce_scatter(self, array: Array, axis: int, op: str, ranks: Sequence[int]) -> Array:
        """Return this rank's part along `axis` of the `array` of all `ranks`, combined by `op`."""
        kind = f"reduce_scatter {op} ({axis})"
        return reduced(alike(kind, self.met(kind, np.split(array, len(ranks), axis), ranks), ranks), op)

    def all_to_all(self, array: Array, split: int, concat: int, ranks: Sequence[int]) -> Array:
        """Return the parts of each rank's `array` along `split` that are for this one of `ranks`,
        joined along `concat`.
        """
        kind = f"all_to_all ({split} to {concat})"
        parts = self.met(kind, np.split(array, len(ranks), split), ranks)
        return np.concatenate(alike(kind, parts, ranks), concat)

    def broadcast(self, array: Array, source: int, ranks: Sequence[int]) -> Array:
        """Return the array of the rank `source`; those of others say its type and shape."""
        kind, own = f"broadcast from {source}", array if self.rank == source else np.empty(0, array.dtype)
        found = self.met(kind, [own] * len(ranks), ranks)[ranks.index(source)]
        return alike(kind, [array, found], (self.rank, source))[1]

    def barrier(self, ranks: Sequence[int]) -> None:
        """Wait until all ranks are here."""
        self.met("barrier", [np.zeros(0, np.uint8)] * len(ranks), ranks)

    def close(self) -> None:  # noqa: B027  some have nothing to give back
        """Release what the transport holds; ranks that wait for this one get an error."""
