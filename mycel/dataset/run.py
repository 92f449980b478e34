"""A run: all that one pass over a dataset depends on."""

from __future__ import annotations

from typing import Optional

import numpy as np

from mycel.dataset.randomness import Stream, generator, key_of
from mycel.dataset.scope import Scope

LARGEST_BLOCK = 256


class Run:
    """All that one pass over a dataset depends on.

    It has the seed, the epoch, and in `block` how many rows are wanted at once. `seeded` is False
    where no seed was set, so that users' functions draw from the program's generators. `probes` is
    True outside of any epoch, where only shapes, types or the number of rows are wanted. `scope` is
    that of the iterator, if there is one: without it no workers are used.
    """

    __slots__ = ("seed", "epoch", "block", "seeded", "probes", "scope")

    def __init__(
        self,
        seed: int,
        epoch: int = 0,
        block: int = 32,
        seeded: bool = True,
        probes: bool = False,
        scope: Optional[Scope] = None,
    ) -> None:
        self.seed = seed
        self.epoch = epoch
        self.block = block
        self.seeded = seeded
        self.probes = probes
        self.scope = scope

    def with_epoch(self, epoch: int) -> Run:
        """Return this pass for another epoch."""
        return Run(self.seed, epoch, self.block, self.seeded, self.probes, self.scope)

    def with_block(self, block: int) -> Run:
        """Return this pass in blocks of this many rows."""
        return Run(self.seed, self.epoch, max(1, min(block, LARGEST_BLOCK)), self.seeded, self.probes, self.scope)

    @property
    def ahead(self) -> bool:
        """Whether rows may be made ahead, by workers."""
        return self.scope is not None and self.scope.ahead

    def key(self, *parts: int) -> int:
        """Return a 64-bit key made of this pass and further integers."""
        return key_of(self.seed, self.epoch, *parts)

    def stream(self) -> Stream:
        """Return a stream for rows of this pass, for users' functions too if a seed was set."""
        return Stream(0, self.seeded)

    def generator(self, *parts: int) -> np.random.Generator:
        """Return NumPy's generator for this pass and further integers."""
        return generator(self.seed, self.epoch, *parts)
