"""Traces of the XLA engine: an event for each part of a program and for each host step.

While a trace is taken, a run waits for the results of each part, so that times are those of the
work and not of its beginning. What XLA keeps in memory inside of a part is its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Optional

from mycel.engines.reference.reports import is_step
from mycel.engines.reference.trace import ReferenceTrace, active
from mycel.engines.reports import Cost
from mycel.engines.tracing import Event, TracedProgram, TracedStep
from mycel.engines.xla.binding import jax
from mycel.engines.xla.reports import cost_of, node_cost
from mycel.ir.graph import Graph, Node

__all__ = ["Record", "XlaProgram", "recorded"]


class PartStep(TracedStep):
    """One part: what XLA compiled as one function."""

    def __init__(self, program: XlaProgram, graph: Graph, alone: bool) -> None:
        self.program, self.graph, self.kind, self.alone = program, graph, "kernel", alone
        self.nodes = tuple(filter(is_step, graph.nodes))
        self.title = graph.name

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
    """The record of one run; `trace` is None where none is taken."""

    def __init__(self, program: XlaProgram, trace: Optional[ReferenceTrace]) -> None:
        self.program, self.trace, self.begin = program, trace, 0
        self.parts = iter(program.parts)

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


@contextmanager
def recorded(program: XlaProgram) -> Iterator[Record]:
    """Record the run of a program inside of the block, if a trace is being taken."""
    trace = active[0] if active else None
    record = Record(program, trace)
    begin = record.begin = trace.begin_run() if trace is not None else 0
    try:
        yield record
    finally:
        if trace is not None:
            trace.end_run(program, begin)
