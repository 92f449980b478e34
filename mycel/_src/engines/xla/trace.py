"""Traces of the XLA engine: an event for each part of a program and for each host step.

While a trace is taken, a run waits for the results of each part, so that times are those of the
work and not of its beginning. What XLA keeps in memory inside of a part is its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.engines.reference.reports import is_step
from mycel._src.engines.reference.trace import ReferenceTrace, active
from mycel._src.engines.reports import Cost
from mycel._src.engines.trace_records import Event, TracedProgram, TracedStep
from mycel._src.engines.xla.binding import jax
from mycel._src.engines.xla.reports import cost_of, node_cost

__all__ = ["Record", "XlaProgram"]


class PartStep(TracedStep):
    """One part: what XLA compiled as one function."""

    def __init__(self, program: XlaProgram, graph: Graph, alone: bool) -> None:
        self.program, self.graph, self.kind, self.alone = program, graph, "kernel", alone
        self.nodes = tuple(filter(is_step, graph.nodes))

    @cached_property
    def cost(self) -> Cost:
        return cost_of(self.graph)


class HostStep(TracedStep):
    """One operation in NumPy."""

    def __init__(self, program: XlaProgram, node: Node) -> None:
        self.program, self.kind, self.nodes, self.called = program, "host", (node,), node.op

    @cached_property
    def cost(self) -> Cost:
        return node_cost(self.nodes[0])


class XlaProgram(TracedProgram):
    """A graph that the engine runs, in `parts`: none where the whole graph is one."""

    def __init__(self, graph: Graph, aliases: Mapping[int, int], parts: Sequence[Graph]) -> None:
        self.graph, self.name, self.aliases = graph, graph.name, aliases
        self.parts = [PartStep(self, p, not parts) for p in (parts or [graph])]
        self.hosts: dict[Node, HostStep] = {}

    @property
    def results(self) -> Sequence[Node]:
        return [n for j, n in enumerate(self.graph.outputs) if j not in self.aliases]


class Record:
    """The record of one run of a program, in the trace that is being taken, if any."""

    __slots__ = ("program", "trace", "parts", "start", "begin")

    def __init__(self, program: XlaProgram) -> None:
        self.program, self.parts = program, iter(program.parts)
        self.trace: ReferenceTrace | None = active[0] if active else None
        self.start = self.begin = 0 if self.trace is None else self.trace.begin_run()

    def ends(self) -> None:
        """Record that the run is over."""
        if self.trace is not None:
            self.trace.end_run(self.program, self.start)

    def _event(self, step: TracedStep) -> None:
        if self.trace is not None:
            now = time.monotonic_ns()
            self.trace.note(self.trace._events, Event(step, self.begin, now, False, threading.get_ident()))
            self.begin = now

    def part_ended(self, values: Any) -> None:
        """Record that the next part has run."""
        if self.trace is not None:
            jax.block_until_ready(values)
            self._event(next(self.parts))

    def host_step_ended(self, node: Node) -> None:
        """Record that a host step has run."""
        if self.trace is not None:
            step = self.program.hosts.get(node)
            if step is None:
                step = self.program.hosts[node] = HostStep(self.program, node)
            self._event(step)
