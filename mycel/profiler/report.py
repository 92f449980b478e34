"""The meaning of what a profile noted: kernels with their bounds, source lines, Cells, phases.

* A kernel's time is its own: for a branch or loop, the time that its steps do not take.
* `bytes` and `flops` are the engine's figures for a step (`TracedStep.cost`). `least` is the time
  that the machine's measured bandwidth and arithmetic allow for them on the threads that ran. The
  larger of the two names the bound, unless the fixed cost of a step is most of the kernel's mean
  time: then the bound is "overhead". Efficiency is `least` / time.
* Phases divide the wall time of the thread that took the profile: each instant belongs to the
  innermost phase noted then, and instants without one to Python.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from mycel._src.engines.reports import Cost
from mycel._src.engines.trace_records import NESTING, Event, TracedStep
from mycel.dataset.profiling import PipelineProfile
from mycel.profiler.collect import Asked, Recording
from mycel.profiler.limits import Machine
from mycel.profiler.limits import machine as this_machine
from mycel.profiler.memory import Memory
from mycel.profiler.names import cells_of, lines_of, name_of

__all__ = ["Kernel", "Phase", "Place", "Report", "Segments"]


@dataclass
class Kernel:
    """All runs of one kernel: its name and origin, its seconds, bytes and floating-point operations
    in all, and its bound.

    `kind` is "kernel" (generated code), "dense" (oneDNN), "host" (NumPy), "copy", "cond", "while",
    "call" or "tape". `bound` is "memory", "compute", "overhead", or "" where bytes and operations
    are unknown. `efficiency` is the least time that the machine would need, as a part of the
    kernel's time.
    """

    name: str
    kind: str
    lines: tuple[str, ...]
    cell: str
    primitives: tuple[str, ...]
    count: int = 0
    seconds: float = 0.0
    bytes: int = 0
    flops: int = 0
    threads: int = 1
    least: float = 0.0
    bound: str = ""
    share: float = 0.0

    @property
    def mean(self) -> float:
        return self.seconds / self.count if self.count else 0.0

    @property
    def bytes_per_second(self) -> float:
        return self.bytes / self.seconds if self.seconds else 0.0

    @property
    def flops_per_second(self) -> float:
        return self.flops / self.seconds if self.seconds else 0.0

    @property
    def efficiency(self) -> float:
        return min(self.least / self.seconds, 1.0) if self.seconds else 0.0


@dataclass
class Place:
    """The kernels of one source line, or of one Cell: their seconds, number, bytes and operations,
    and the names that took most of the time.
    """

    name: str
    count: int = 0
    seconds: float = 0.0
    bytes: int = 0
    flops: int = 0
    share: float = 0.0
    names: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Phase:
    """A part of the wall time of the thread that took the profile."""

    name: str
    count: int
    seconds: float
    share: float


class Segments(NamedTuple):
    """A function that ran as compiled segments with Python in between: its calls, the segments of
    the last one, and the places where Python went on.
    """

    function: str
    calls: int
    segments: int
    breaks: tuple[str, ...]


class Slice(NamedTuple):
    """One run of a kernel, for time lines; seconds from the beginning."""

    kernel: Kernel
    begin: float
    end: float
    thread: int
    inner: bool


class Report:
    """The meaning of a recording on a machine (by default this one, measured when first needed)."""

    def __init__(self, recording: Recording, limits: Machine | None = None) -> None:
        self.recording = recording
        self._limits = limits
        self._operations = _Operations(recording.asked)

    @cached_property
    def machine(self) -> Machine:
        return self._limits or this_machine()

    @property
    def seconds(self) -> float:
        """The wall time of the profile."""
        return (self.recording.end - self.recording.begin) / 1e9

    @property
    def pipelines(self) -> list[PipelineProfile]:
        """What the pipelines did whose iterators began within the profile, the busiest first."""
        return sorted(self.recording.pipelines, key=lambda found: -sum(node.busy for node in found.nodes))

    @property
    def missed(self) -> int:
        """The number of records that were lost: there was no room for them, their program is gone,
        or they are inside of a recursive function.
        """
        return self.recording.trace.missed

    @property
    def outrun(self) -> bool:
        """Whether kernels are clearly faster than the machine was measured to be, which means that
        something else ran during that measurement.
        """
        beyond = sum(k.seconds for k in self.kernels if k.bound in ("memory", "compute") and k.least > 1.25 * k.seconds)
        return beyond > 0.05 * self.kernel_seconds

    @cached_property
    def memory(self) -> Memory:
        return Memory(self.recording, self._operations)

    @cached_property
    def kernels(self) -> list[Kernel]:
        """The kernels, the one that took most time first."""
        return self._kernels[0]

    @cached_property
    def slices(self) -> list[Slice]:
        """Every run of every kernel, in order of their end."""
        return self._kernels[1]

    @property
    def kernel_seconds(self) -> float:
        return sum(k.seconds for k in self.kernels)

    @cached_property
    def _kernels(self) -> tuple[list[Kernel], list[Slice]]:
        trace, limits = self.recording.trace, self.machine
        events = trace.events
        own = _own_times(events)
        parts: dict[TracedStep | None, int] = {}
        for part in trace.parts:
            parts[part.step] = parts.get(part.step, 0) + 1
        counts: dict[TracedStep, int] = {}
        for e in events:
            counts[e.step] = counts.get(e.step, 0) + 1
        found: dict[Any, Kernel] = {}
        described: dict[Any, tuple[Kernel, Cost, int]] = {}
        slices: list[Slice] = []
        for e, seconds in zip(events, own):
            asked = self._operations.at(e.thread, e.begin)
            key = (e.step, asked and (asked.line, asked.cell))
            known = described.get(key)
            if known is None:
                made, moved = _describe(e.step, asked), e.step.cost
                threads = max(e.step.threads, -(-parts.get(e.step, 0) // counts[e.step]), 1)
                kernel = found.setdefault((made.name, made.kind, made.lines, made.cell), made)
                known = described[key] = (kernel, moved, threads)
            kernel, moved, threads = known
            kernel.count += 1
            kernel.seconds += seconds
            kernel.bytes += moved.bytes
            kernel.flops += moved.flops
            kernel.threads = max(kernel.threads, threads)
            if moved.bytes or moved.flops:
                kernel.least += limits.least_seconds(moved.bytes, moved.flops, threads)
            begin = (e.begin - self.recording.begin) / 1e9
            slices.append(Slice(kernel, begin, begin + (e.end - e.begin) / 1e9, e.thread, e.inner))
        kernels = sorted(found.values(), key=lambda k: -k.seconds)
        whole = sum(k.seconds for k in kernels)
        for k in kernels:
            k.share = k.seconds / whole if whole else 0.0
            k.bound = _bound(k, limits)
        return kernels, slices

    @cached_property
    def lines(self) -> list[Place]:
        """Time by source line; a kernel that several lines share is divided among them equally."""
        return self._grouped(lambda k: k.lines or ("(no line)",))

    @cached_property
    def cells(self) -> list[Place]:
        """Time by Cell."""
        return self._grouped(lambda k: (k.cell.partition(":")[0] or "(no Cell)",))

    def _grouped(self, places: Any) -> list[Place]:
        found: dict[str, Place] = {}
        for k in self.kernels:
            names = places(k)
            for name in names:
                place = found.setdefault(name, Place(name))
                part = k.seconds / len(names)
                place.count += k.count
                place.seconds += part
                place.bytes += k.bytes // len(names)
                place.flops += k.flops // len(names)
                place.share += k.share / len(names)
                place.names[k.name] = place.names.get(k.name, 0.0) + part
        return sorted(found.values(), key=lambda p: -p.seconds)

    @cached_property
    def phases(self) -> list[Phase]:
        """The wall time by phase, the longest first."""
        recording = self.recording
        intervals = [(s.begin, s.end, s.phase) for s in recording.spans if s.thread == recording.thread]
        intervals += [
            (a.begin, a.end, _ASKED[a.kind])
            for a in recording.asked
            if a.thread == recording.thread and a.kind in _ASKED
        ]
        intervals += [(r.begin, r.end, "run") for r in recording.trace.runs if r.thread == recording.thread]
        intervals += [
            (e.begin, e.end, "host steps")
            for e in recording.trace.events
            if e.step.kind == "host" and e.thread == recording.thread
        ]
        seconds, counts = exclusive(intervals, recording.begin, recording.end)
        whole = max(recording.end - recording.begin, 1)
        rest = whole - sum(seconds.values())
        rows = [Phase(name, counts[name], t / 1e9, t / whole) for name, t in seconds.items()]
        rows.append(Phase("Python between", 1, rest / 1e9, rest / whole))
        return sorted(rows, key=lambda p: -p.seconds)

    @cached_property
    def segments(self) -> list[Segments]:
        """The functions that ran as segments."""
        return [
            Segments(
                plan.refusal.function,
                calls,
                len(plan.segments),
                tuple(str(b) for b in plan.breaks) or (str(plan.refusal),),
            )
            for plan, calls in self.recording.plans.values()
        ]

    @property
    def host_steps(self) -> list[Kernel]:
        """The kernels that ran in NumPy."""
        return [k for k in self.kernels if k.kind == "host"]


_ASKED = {"function": "calls of compiled functions"}


class _Operations:
    """The runs of programs, by thread and time."""

    def __init__(self, asked: Iterable[Asked]) -> None:
        self._by_thread: dict[int, tuple[list[int], list[Asked]]] = {}
        for a in sorted((a for a in asked if a.kind == "operation"), key=lambda a: a.begin):
            begins, rows = self._by_thread.setdefault(a.thread, ([], []))
            begins.append(a.begin)
            rows.append(a)

    def at(self, thread: int, time: int) -> Asked | None:
        """Return the operation that a thread was running at a time."""
        begins, rows = self._by_thread.get(thread, ([], []))
        k = bisect.bisect_right(begins, time) - 1
        return rows[k] if k >= 0 and rows[k].end >= time else None


def _describe(step: TracedStep, asked: Asked | None) -> Kernel:
    nodes = step.nodes
    name, lines, cells = name_of(step), lines_of(nodes), cells_of(nodes)
    if asked is not None and not lines:
        if step.alone:
            name = asked.name
        elif asked.name not in name:
            name = f"{asked.name}: {name}"
        lines = (asked.line,) if asked.line else ()
        cells = (asked.cell,) if asked.cell else ()
    primitives = tuple(n.op for n in nodes if n.prim is not None)
    return Kernel(name, step.kind, lines, cells[0] if cells else "", primitives)


def _bound(k: Kernel, limits: Machine) -> str:
    if not k.bytes and not k.flops:
        return ""
    fixed = limits.shared_overhead if k.threads > 1 else limits.overhead
    least = k.least / k.count
    if least < fixed / 1e9 or (k.mean < 3 * fixed / 1e9 and least < 0.5 * k.mean):
        return "overhead"
    moving = k.bytes / k.count / limits.bytes_per_second(k.bytes // k.count, k.threads)
    computing = k.flops / k.count / limits.flops_per_second(k.threads)
    return "memory" if moving >= computing else "compute"


def _own_times(events: Sequence[Event]) -> list[float]:
    """Return the seconds of each event, less those of the events inside it.

    An event comes after those inside it.
    """
    result = [(e.end - e.begin) / 1e9 for e in events]
    open_: dict[int, list[int]] = {}
    for i, e in enumerate(events):
        waiting = open_.setdefault(e.thread, [])
        if e.step.kind in NESTING:
            while waiting and events[waiting[-1]].begin >= e.begin:
                inside = events[waiting.pop()]
                result[i] -= (inside.end - inside.begin) / 1e9
        waiting.append(i)
    return [max(t, 0.0) for t in result]


def exclusive(intervals: Iterable[tuple[int, int, str]], begin: int, end: int) -> tuple[dict[str, int], dict[str, int]]:
    """Return nanoseconds and the number of intervals, both by name.

    Intervals may be nested; each instant belongs to the innermost one.

    >>> exclusive([(0, 10, "a"), (2, 5, "b"), (3, 4, "a")], 0, 100)
    ({'a': 8, 'b': 2}, {'a': 2, 'b': 1})
    """
    seconds: dict[str, int] = {}
    counts: dict[str, int] = {}
    stack: list[tuple[int, str]] = []
    now = begin

    def until(time: int) -> None:
        nonlocal now
        if stack and time > now:
            seconds[stack[-1][1]] = seconds.get(stack[-1][1], 0) + time - now
        now = max(now, time)

    for first, last, name in _ordered(intervals, begin, end):
        while stack and stack[-1][0] <= first:
            until(stack[-1][0])
            stack.pop()
        until(first)
        counts[name] = counts.get(name, 0) + 1
        seconds.setdefault(name, 0)
        stack.append((min(last, stack[-1][0]) if stack else last, name))
    while stack:
        until(stack[-1][0])
        stack.pop()
    return seconds, counts


def _ordered(intervals: Iterable[tuple[int, int, str]], begin: int, end: int) -> Iterator[tuple[int, int, str]]:
    cut = [(max(a, begin), min(b, end), n) for a, b, n in intervals if b > begin and a < end]
    return iter(sorted(cut, key=lambda i: (i[0], -i[1])))
