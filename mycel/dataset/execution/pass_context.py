"""The context of one pass over a dataset: seed, epoch, block size, resume point.

Every node receives it as a `Run` and hands it on to the nodes that it reads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mycel.dataset.execution.iterator_scope import Scope
from mycel.dataset.random_numbers.random_streams import Stream, generator, key_of

LARGEST_BLOCK = 256
# A number of shards, and how many rows each of them took: the first ones, or those that a shuffle
# gave first, of which the size of the buffer and the node's height follow.
Stretch = tuple[int, ...]


class Begun(NamedTuple):
    """Where an epoch goes on that other numbers of shards have begun (`elastic_resumption.py`).

    `number` is that of the pass of those below, `stretches` what is done of it, and `left` has how
    many rows each `take` still gives, from the source up.
    """

    number: int = 0
    stretches: tuple[Stretch, ...] = ()
    left: tuple[int, ...] = ()


FRESH = Begun()


class Spot(NamedTuple):
    """What is done of an epoch after some rows of a node.

    `number` is that of the pass, `goes_on` whether it is the one that `Begun` was in, `rows` how
    many rows of the source were taken from it. `left` has for each `take` how many rows of the
    source it would still ask for, and `shuffled` the buffer and height of a shuffle.
    """

    number: int
    goes_on: bool
    rows: int
    left: tuple[int, ...] = ()
    shuffled: tuple[int, ...] = ()


class Run:
    """All that one pass over a dataset depends on.

    It has the seed, the epoch, and in `block` how many rows are wanted at once, at most
    `LARGEST_BLOCK` of the `group` that becomes one batch. `seeded` is False where no seed was set,
    so that users' functions draw from the program's generators. `probes` is True outside of any
    epoch, where only shapes, types or the number of rows are wanted. `scope` is that of the
    iterator, if there is one: without it no workers are used.

    Below `repeat` an epoch of the consumer has several passes, and `epoch` counts these. `round` is
    the consumer's epoch, `passed` how many passes of it are over, and `is_last` whether no other
    follows in it. `grouped` is how many rows the batches above make one of. `begun` says where
    this epoch goes on that other numbers of shards have begun.
    """

    __slots__ = (
        *("seed", "epoch", "block", "group", "seeded", "probes"),
        *("scope", "round", "passed", "is_last", "grouped", "begun"),
    )

    def __init__(
        self,
        seed: int,
        epoch: int = 0,
        block: int = 32,
        seeded: bool = True,
        probes: bool = False,
        scope: Scope | None = None,
    ) -> None:
        self.seed = seed
        self.epoch = epoch
        self.block = block
        self.group = block
        self.seeded = seeded
        self.probes = probes
        self.scope = scope
        self.round = epoch
        self.passed = 0
        self.is_last = True
        self.grouped = 1
        self.begun = FRESH

    def _copied(self) -> Run:
        made = Run(self.seed, self.epoch, self.block, self.seeded, self.probes, self.scope)
        made.group, made.grouped, made.begun = self.group, self.grouped, self.begun
        made.round, made.passed, made.is_last = self.round, self.passed, self.is_last
        return made

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """What other numbers of shards have done of this pass."""
        return self.begun.stretches

    def of_pass(self, number: int, count: int, begun: Begun = FRESH) -> Run:
        """Return this pass for pass `number` of `count` below a `repeat`; -1 passes have no end.

        `begun` is where that pass goes on.
        """
        times = max(1, count)
        made = self._copied()
        made.begun = begun
        made.epoch = self.epoch * times + number
        made.passed = self.passed * times + number
        made.is_last = self.is_last and number == count - 1
        return made

    def first(self) -> Run:
        """Return the pass over the same rows in every epoch, for what is chosen among them."""
        made = self._copied()
        made.seed = made.epoch = made.round = made.passed = 0
        made.seeded = made.is_last = True
        return made

    def with_block(self, block: int) -> Run:
        """Return this pass in blocks of this many rows."""
        made = self._copied()
        made.block, made.group = max(1, min(block, LARGEST_BLOCK)), max(1, block)
        return made

    @property
    def ahead(self) -> bool:
        """Whether rows may be made ahead, by workers."""
        return self.scope is not None and self.scope.ahead

    def key(self, *parts: int) -> int:
        """Return a 64-bit key made of this pass and further integers."""
        done = [number for stretch in self.stretches for number in stretch]
        if self.begun.number:
            done.append(self.begun.number)
        return key_of(self.seed, self.epoch, *parts, *done)

    def stream(self) -> Stream:
        """Return a stream for rows of this pass, for users' functions too if a seed was set."""
        return Stream(0, self.seeded)

    def generator(self, *parts: int) -> np.random.Generator:
        """Return NumPy's generator for this pass and further integers."""
        return generator(self.seed, self.epoch, *parts)
