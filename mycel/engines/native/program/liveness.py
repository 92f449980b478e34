"""When the buffers of a program are alive: from the step that first writes to the last that reads.

Steps are numbered through those inside control flow; those of a batch share a number. What a loop's inside reads from outside lives until the loop ends. Where a kernel may write what it
makes over a buffer that ends there (`taking`), the two can share a place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mycel.engines.native.kernels.nest import Buffer
from mycel.engines.native.lowering.control_steps import Nested
from mycel.engines.native.program import arena as memory
from mycel.ir.dims import DimLike

if TYPE_CHECKING:
    from mycel.engines.native.lowering.lower import Step

__all__ = ["Liveness"]


class Liveness:
    """The arena's buffers by id, their first and last times, the steps that make them, and the step of each time.

    `calls` has the plans of the dense steps, whose temporaries are the arena's too.
    """

    def __init__(
        self, steps: Sequence[Step], calls: Mapping[int, Any], takes: Mapping[int, Sequence[tuple[Buffer, Buffer]]]
    ) -> None:
        self.calls, self.takes = calls, takes
        self.buffers: dict[int, Buffer] = {}
        self.first: dict[int, int] = {}
        self.last: dict[int, int] = {}
        self.makers: dict[int, Step] = {}
        self.times: dict[int, Step] = {}
        self.clock = 0
        self._taking: list[tuple[int, int, int]] = []
        self._walk(steps)

    def _walk(self, steps: Sequence[Step]) -> None:
        batch = None
        for step in steps:
            if batch is None or step.batch != batch:
                self.clock += 1
            batch = step.batch
            start = self.clock
            self.times[start] = step
            nested = step.data if isinstance(step.data, Nested) else None
            if nested is not None:
                for buffer in step.writes:
                    self._note(buffer, start, step)
                self._note(nested.predicate.buffer, start, step)
                self._walk(nested.first)
                self._note(nested.predicate.buffer, self.clock, step)
                self._walk(nested.second)
                self.clock += 1
                self.times[self.clock] = step
                for buffer in (*step.reads, *step.writes):
                    if buffer.place is None and nested.loops and self.first.get(id(buffer), self.clock) <= start:
                        self.last[id(buffer)] = self.clock
            for buffer in (*step.reads, *step.writes) if nested is None else step.reads:
                self._note(buffer, self.clock, step)
            for made, old in self.takes.get(id(step), ()):
                self._taking.append((self.clock, id(made), id(old)))
            if step.kind == "dense":
                for view in self.calls[id(step)][1].values():
                    self._note(view.buffer, self.clock, step)

    def _note(self, buffer: Buffer, time: int, step: Step) -> None:
        if buffer.place is None:
            key = id(buffer)
            self.buffers[key] = buffer
            self.first.setdefault(key, time)
            self.makers.setdefault(key, step)
            self.last[key] = max(self.last.get(key, time), time)

    def lives(self, number: Callable[[DimLike], int]) -> list[memory.Life]:
        """Each buffer's key, bytes, first and last time."""
        return [
            (key, number(b.size) * b.dtype.itemsize, self.first[key], self.last[key]) for key, b in self.buffers.items()
        ]

    @property
    def taking(self) -> list[tuple[int, int]]:
        """Pairs of a buffer and one that it may be written over, as that ends where it begins."""
        return [(a, b) for time, a, b in self._taking if self.first.get(a) == time == self.last.get(b)]
