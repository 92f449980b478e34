"""The parameters that attention kernels are specialised on."""

from __future__ import annotations

from dataclasses import dataclass

from mycel._src.engines.native.operations.attention.attention_tiles import lanes_of, vectors
from mycel._src.foundation.dtype import DType

__all__ = ["Form", "Mask", "block_of", "padded"]


@dataclass(frozen=True)
class Mask:
    """An operand that changes scores: its name, and whether it is the same for all queries."""

    name: str
    is_row: bool


@dataclass(frozen=True)
class Form:
    """What the text of a kernel depends on.

    `features` are those of queries and keys, `values` those of values; `axes` is the number of axes
    in front, of which `shared` are those where several queries have the same keys. `low` and `high`
    say which ends a band has. With `draws` the operand "state" is that of the generator which draws
    what dropout keeps.
    """

    dtype: DType
    features: int
    values: int
    axes: int
    shared: tuple[int, ...]
    masks: tuple[Mask, ...]
    low: bool
    high: bool
    fill: float
    keep: float
    draws: bool = False

    @property
    def operands(self) -> tuple[str, ...]:
        """The names of the operands that change scores."""
        return (*[m.name for m in self.masks], *(["state"] if self.draws else []))

    @property
    def replaces(self) -> bool:
        """Whether scores may become `fill`."""
        return self.low or self.high or any(m.name == "drop" for m in self.masks)

    def names(self, operands: tuple[str, ...]) -> list[str]:
        """Return the names of the argument words that are numbers."""
        made = ["queries", "keys", "low", "high", *[f"extent{a}" for a in range(self.axes)]]
        for name in operands:
            made += [f"{name}_first", f"{name}_row", f"{name}_column"]
            made += [f"{name}_{a}" for a in range(self.axes)]
        return made


def block_of(dtype: DType) -> int:
    """Return how many queries a block has."""
    return vectors()[0] * lanes_of(dtype)


def padded(size: int, dtype: DType) -> int:
    """Return a number of features rounded up to whole vectors."""
    lanes = lanes_of(dtype)
    return -(-size // lanes) * lanes
