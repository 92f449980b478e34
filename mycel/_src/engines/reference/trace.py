"""Traces of the reference engine: an event for each operation, and the arrays taken and dropped.

Graphs nested in an operation are not recorded, nor are the buffers that results are copied into
when a run ends.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.engines.error_messages import name_index_error, note_host_step
from mycel._src.engines.reference.evaluation import Watch
from mycel._src.engines.reference.reports import is_step, node_cost
from mycel._src.engines.reports import Cost
from mycel._src.engines.trace_records import Event, Move, Run, Trace, TracedProgram, TracedStep
from mycel._src.foundation.errors import IndexRangeError

__all__ = ["ReferenceProgram", "Watching", "active", "tracing"]

_MOST = 1 << 22
active: list[ReferenceTrace] = []


class ReferenceStep(TracedStep):
    """One operation."""

    def __init__(self, program: ReferenceProgram, node: Node) -> None:
        self.program, self.kind, self.nodes = program, "host", (node,)
        self.alone = program.single
        self.called = node.op

    @cached_property
    def cost(self) -> Cost:
        return node_cost(self.nodes[0])


class ReferenceProgram(TracedProgram):
    """A graph that the engine runs."""

    def __init__(self, graph: Graph, aliased: Sequence[int]) -> None:
        self.graph, self.name = graph, graph.name
        self.aliased = frozenset(aliased)
        self.single = sum(map(is_step, graph.nodes)) == 1
        self._steps: dict[Node, ReferenceStep] = {}

    @property
    def results(self) -> Sequence[Node]:
        return [n for j, n in enumerate(self.graph.outputs) if j not in self.aliased]

    def step(self, node: Node) -> ReferenceStep:
        """Return the step that computes a node."""
        found = self._steps.get(node)
        if found is None:
            found = self._steps[node] = ReferenceStep(self, node)
        return found


class ReferenceTrace(Trace):
    """A trace, and the time when it is taken; `room` limits each kind of records."""

    def __init__(self, room: int, before_run: Callable[[], None] | None) -> None:
        self.room, self.before_run = room, before_run
        self._events: list[Event] = []
        self._runs: list[Run] = []
        self._moves: list[Move] = []
        self._missed = 0

    def note(self, records: list[Any], record: Any) -> None:
        """Add a record where there is room for it."""
        if len(records) < self.room:
            records.append(record)
        else:
            self._missed += 1

    def begin_run(self) -> int:
        """Record that a program is about to run; return the time."""
        if self.before_run is not None:
            self.before_run()
        return time.monotonic_ns()

    def end_run(self, program: TracedProgram, begin: int) -> None:
        """Record that a program has run since the time `begin`."""
        self.note(self._runs, Run(program, begin, time.monotonic_ns(), threading.get_ident()))

    @property
    def events(self) -> Sequence[Event]:
        return self._events

    @property
    def runs(self) -> Sequence[Run]:
        return self._runs

    @property
    def moves(self) -> Sequence[Move]:
        return self._moves

    @property
    def missed(self) -> int:
        return self._missed

    @property
    def threads(self) -> Sequence[int]:
        return list(dict.fromkeys(r.thread for r in self._runs))


class Watching(Watch):
    """An observer that adds the failed operation to errors, and records one run in the trace."""

    def __init__(self, program: ReferenceProgram, trace: ReferenceTrace | None) -> None:
        self.program, self.trace = program, trace
        self.begin = 0
        self.thread = threading.get_ident()
        self.blocks: dict[Node, tuple[int, int]] = {}

    def begins(self, node: Node) -> None:
        self.begin = time.monotonic_ns() if self.trace is not None else 0

    def ended(self, node: Node, value: Any) -> None:
        trace = self.trace
        if trace is None or not is_step(node):
            return
        now = time.monotonic_ns()
        trace.note(trace._events, Event(self.program.step(node), self.begin, now, False, self.thread))
        nbytes = sum(v.nbytes for v in (value if isinstance(value, tuple) else (value,)) if isinstance(v, np.ndarray))
        # The node is alive as long as its program is in the trace; runs of it differ by when they
        # began.
        self.blocks[node] = (hash((id(node), self.thread, self.begin)), nbytes)
        trace.note(trace._moves, Move(True, self.blocks[node][0], now, nbytes, self.thread, node))

    def dropped(self, node: Node) -> None:
        block = self.blocks.pop(node, None)
        if block is not None and self.trace is not None:
            moves, (key, nbytes) = self.trace._moves, block
            self.trace.note(moves, Move(False, key, time.monotonic_ns(), nbytes, self.thread, node))

    def failed(self, node: Node, types: Sequence[Any], error: Exception) -> None:
        if isinstance(error, IndexRangeError):
            name_index_error(error, node)
            return
        if isinstance(error, RecursionError):
            error.args = (
                f"a recursive function went deeper than Python's {sys.getrecursionlimit()} calls, on which the "
                "reference engine depends; "
                "sys.setrecursionlimit allows more, and the native engine needs none",
            )
        note_host_step(error, node, types)

    def ends(self) -> None:
        """Record that the run is over.

        Its results are in buffers, and its other arrays are dropped.
        """
        for node in list(self.blocks):
            self.dropped(node)


@contextmanager
def tracing(room: int | None = None, before_run: Callable[[], None] | None = None) -> Iterator[ReferenceTrace]:
    """Take a trace of all threads while a block runs, as `Engine.tracing` says."""
    if active:
        raise RuntimeError("a trace is already being taken; end it first")
    trace = ReferenceTrace(_MOST if room is None else room, before_run)
    active.append(trace)
    try:
        yield trace
    finally:
        active.remove(trace)
