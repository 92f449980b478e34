"""Memory over time: the blocks that the allocator gave out and took back while a profile ran, above
the memory in use before.

A block belongs to the program run during which it was taken: the first blocks of a run are its
results, in order, and then its arena. A block that no run took holds data from Python. The arena in
use at the peak is listed in detail: what its buffers held at the step when most of it was in use.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mycel._src.compiler.ir.graph import Node
from mycel._src.engines.trace_records import Run, TracedProgram
from mycel.profiler.collect import Recording
from mycel.profiler.names import label, lines_of, name_of

__all__ = ["Block", "Memory", "arena_contents"]


@dataclass
class Block:
    """A piece of memory: its purpose, source line, size in bytes, and when it was taken and given
    back.

    Times are seconds from the beginning of the profile; `end` is None while the block is in use.
    """

    name: str
    line: str
    nbytes: int
    begin: float
    end: float | None = None


class Content(NamedTuple):
    """A buffer in an arena at its fullest step."""

    name: str
    line: str
    nbytes: int


class Memory:
    """The memory of a profile: the `blocks` taken while it ran.

    `baseline` bytes were in use before it, listed by name in `before`. `timeline` has (seconds,
    bytes in use), `peak` the most bytes in use and `alive` the blocks in use then. `arena` lists
    the content of the largest arena of the programs that ran. `allocator` has the bytes that the
    allocator had given out at the end, and those that it held in all.
    """

    def __init__(self, recording: Recording, operations: Any) -> None:
        self.before = [(h.name, h.nbytes) for h in sorted(recording.before, key=lambda h: -h.nbytes)]
        self.baseline = sum(h.nbytes for h in recording.before)
        self.allocator = dict(recording.allocator)
        self.allocations = self.frees = self.allocated = 0
        self.blocks: list[Block] = []
        self.timeline: list[tuple[float, int]] = [(0.0, self.baseline)]
        self.peak, self.peak_time = self.baseline, 0.0
        self.alive: list[Block] = []
        self.arena: list[Content] = []
        self._owners: dict[int, TracedProgram] = {}
        self._fill(recording, operations)

    def _fill(self, recording: Recording, operations: Any) -> None:
        trace = recording.trace
        runs: dict[int, list[Run]] = {}
        for ran in trace.runs:
            runs.setdefault(ran.thread, []).append(ran)
        starts = {t: [r.begin for r in sorted(rows, key=lambda r: r.begin)] for t, rows in runs.items()}
        for rows in runs.values():
            rows.sort(key=lambda r: r.begin)
        taken: dict[tuple[int, int], int] = {}
        current: dict[int, Block] = {}
        now = self.baseline
        for is_taken, key, time, nbytes, thread, node in sorted(trace.moves, key=lambda m: m.time):
            seconds = (time - recording.begin) / 1e9
            if is_taken:
                self.allocations += 1
                self.allocated += nbytes
                k = bisect.bisect_right(starts.get(thread, []), time) - 1
                run = runs[thread][k] if k >= 0 and runs[thread][k].end >= time else None
                number = 0
                if run is not None and node is None:
                    number = taken.get((thread, run.begin), 0)
                    taken[thread, run.begin] = number + 1
                if node is not None:
                    block = Block(*_named(node), nbytes, seconds)
                else:
                    block = self._block(run, number, nbytes, seconds, operations, thread, time)
                self.blocks.append(block)
                current[key] = block
                now += nbytes
            else:
                self.frees += 1
                freed = current.pop(key, None)
                # Blocks from before the profile are not known by their addresses.
                if freed is None:
                    continue
                freed.end = seconds
                now -= freed.nbytes
            self.timeline.append((seconds, now))
            if now > self.peak:
                self.peak, self.peak_time = now, seconds
        self.timeline.append(((recording.end - recording.begin) / 1e9, now))
        at = self.peak_time
        self.alive = sorted(
            (b for b in self.blocks if b.begin <= at and (b.end is None or b.end > at)), key=lambda b: -b.nbytes
        )
        arenas = [(b.nbytes, self._owners[id(b)]) for b in self.alive if id(b) in self._owners]
        active = {id(r.program) for r in recording.trace.runs}
        arenas += [(h.nbytes, h.program) for h in recording.before if h.program is not None and id(h.program) in active]
        if arenas:
            self.arena = arena_contents(max(arenas, key=lambda a: a[0])[1])

    def _block(
        self, run: Run | None, number: int, nbytes: int, seconds: float, operations: Any, thread: int, time: int
    ) -> Block:
        if run is None:
            return Block("data from Python", "", nbytes, seconds)
        asked = operations.at(thread, time)
        line = asked.line if asked is not None else ""
        program = run.program
        if number < len(program.results):
            found = _named(program.results[number])
            return Block(found[0], found[1] or line, nbytes, seconds)
        block = Block(f"the arena of {program.name}", line, nbytes, seconds)
        self._owners[id(block)] = program
        return block


def _named(node: Node) -> tuple[str, str]:
    lines: Sequence[str] = lines_of([node])
    text = label(node)
    if node.where is not None and node.where.gradient:
        text = f"grad {text}"
    return text, lines[0] if lines else ""


def arena_contents(program: TracedProgram) -> list[Content]:
    """Return the content of a program's arena at the step when most of it is in use, the largest
    first.
    """
    found = []
    for nbytes, step, scratch in program.arena():
        lines = () if scratch else lines_of(step.nodes)
        name = f"scratch of {name_of(step)}" if scratch else name_of(step)
        found.append(Content(name, lines[0] if lines else "", nbytes))
    return found
