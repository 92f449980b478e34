"""A run: all that one pass over a dataset depends on."""

from __future__ import annotations

import numpy as np

from mycel.dataset.randomness import Stream, generator, key_of

LARGEST_BLOCK = 256


class Run:
    """All that one pass over a dataset depends on: `seed`, `epoch` and the number of rows wanted at once."""

    __slots__ = ("seed", "epoch", "block", "seeded")

    def __init__(self, seed: int, epoch: int = 0, block: int = 32, seeded: bool = True) -> None:
        self.seed = seed
        self.epoch = epoch
        self.block = block
        self.seeded = seeded

    def with_epoch(self, epoch: int) -> Run:
        """The same pass of another epoch."""
        return Run(self.seed, epoch, self.block, self.seeded)

    def with_block(self, block: int) -> Run:
        """The same pass, in blocks of this many rows."""
        return Run(self.seed, self.epoch, max(1, min(block, LARGEST_BLOCK)), self.seeded)

    def key(self, *parts: int) -> int:
        """A 64-bit key for this pass and these further integers."""
        return key_of(self.seed, self.epoch, *parts)

    def stream(self) -> Stream:
        """A stream for rows of this pass, which gives users' functions numbers of their own where a seed was set."""
        return Stream(0, self.seeded)

    def generator(self, *parts: int) -> np.random.Generator:
        """A generator for this pass and these further integers."""
        return generator(self.seed, self.epoch, *parts)
