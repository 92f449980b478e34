"""Liveness of buffers: from the first step that writes each to the last that reads it.

Steps are numbered in order, with those inside control flow; those of a batch share a number. A
buffer from outside that a loop reads lives until the loop ends. Where a kernel may overwrite a
buffer that ends there (`inplace`), the two can share a place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.engines.native.kernels.loop_nest import Buffer
from mycel._src.engines.native.kernels.strided_view import View
from mycel._src.engines.native.onednn import binding as dense
from mycel._src.engines.native.program import arena as memory
from mycel._src.engines.native.steps.step_types import Nested, Step

__all__ = ["Ends", "Liveness"]


class Liveness:
    """The arena's buffers by id, with their first and last times.

    It also has the steps that make them, and the step of each time. `calls` has the plans of the
    dense steps, whose temporaries are in the arena too.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        calls: Mapping[int, tuple[dense.Plan, dict[str, View]]],
        takes: Mapping[int, Sequence[tuple[Buffer, Buffer]]],
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
            if id(step) in self.calls:
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
        """Return each buffer's key, bytes, first time and last time."""
        return [
            (key, number(b.size) * b.dtype.itemsize, self.first[key], self.last[key]) for key, b in self.buffers.items()
        ]

    @property
    def taking(self) -> list[tuple[int, int]]:
        """The pairs of a buffer and one that it may overwrite, as that ends where it begins."""
        return [(a, b) for time, a, b in self._taking if self.first.get(a) == time == self.last.get(b)]


class Ends:
    """The slots of a program's arena that become free after its steps.

    Steps must be asked for in their order.
    """

    def __init__(self, times: dict[int, Step], groups: Sequence[memory.Life], places: dict[int, int]) -> None:
        # Of a batch the last step has the time, and of a step that holds steps the last time is
        # when they have run.
        self.times = {id(step): time for time, step in sorted(times.items())}
        self.slots = sorted(((last, places[key], size) for key, size, _, last in groups), reverse=True)

    def until(self, steps: Sequence[Step]) -> list[tuple[int, int]]:
        """Return offsets and bytes of memory that is not needed after these steps.

        Memory returned for earlier steps is left out.
        """
        end = max(self.times.get(id(step), 0) for step in steps)
        found = []
        while self.slots and self.slots[-1][0] <= end:
            found.append(self.slots.pop()[1:])
        return found
