"""Steps and programs of the native engine in traces: their names, costs, and values in arenas."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from mycel._src.compiler.ir.graph import Node
from mycel._src.engines.native.kernels.loop_nest import Buffer
from mycel._src.engines.native.onednn.binding import Plan
from mycel._src.engines.native.onednn.dense_call import DenseCall
from mycel._src.engines.native.program.program import Program
from mycel._src.engines.native.report.costs import cost, plan_costs
from mycel._src.engines.native.steps.step_types import Batch, Copy, Nested, Step
from mycel._src.engines.reports import ZERO_COST, Cost
from mycel._src.engines.trace_records import NESTING, ArenaPart, TracedProgram, TracedStep

__all__ = ["NativeProgram", "NativeStep"]


class NativeProgram(TracedProgram):
    """A program of the native engine."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.name = program.graph.name

    @cached_property
    def results(self) -> Sequence[Node]:
        return [n for j, n in enumerate(self.program.graph.outputs) if j not in self.program.template.aliases]

    @cached_property
    def single(self) -> bool:
        """Whether it has a single step besides copies."""
        return sum(not isinstance(s.data, Copy) for s in self.program.all_steps) == 1

    def arena(self) -> list[ArenaPart]:
        program = self.program
        steps = _all_steps(program.template.steps)
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        known: dict[int, Buffer] = {}
        makers: dict[int, Step] = {}
        for number, step in enumerate(steps):
            touched = [*step.reads, *step.writes]
            if id(step) in program.calls:
                touched += [v.buffer for v in program.calls[id(step)][1].values()]
            for buffer in touched:
                if id(buffer) in program.places:
                    known[id(buffer)] = buffer
                    first.setdefault(id(buffer), number)
                    last[id(buffer)] = number
            for buffer in step.writes:
                makers.setdefault(id(buffer), step)
        sizes = {i: int(program.number(b.size)) * b.dtype.itemsize for i, b in known.items()}
        moments = [sum(sizes[i] for i in known if first[i] <= n <= last[i]) for n in range(len(steps))]
        if not moments:
            return []
        full = moments.index(max(moments))
        found = [
            ArenaPart(sizes[i], NativeStep(self, makers.get(i, steps[full])), i not in makers)
            for i in known
            if first[i] <= full <= last[i]
        ]
        return sorted(found, key=lambda part: -part.nbytes)


class NativeStep(TracedStep):
    """A step of a program, or one of its calls of a library, by number."""

    program: NativeProgram

    def __init__(self, program: NativeProgram, step: Step, number: int = 0) -> None:
        self.program, self.step, self.number = program, step, number
        self.kind, self.nodes = step.kind, _nodes(step)
        self.title = step.title
        self.alone = step.kind == "kernel" and program.single
        if isinstance(step.data, DenseCall):
            self.called = step.data.node.op
            if self._plan is not None and number < len(self._plan.calls):
                if self._plan.calls[number].description.startswith("reorder"):
                    self.called = "reorder"

    @property
    def _plan(self) -> Plan | None:
        found = self.program.program.calls.get(id(self.step))
        return None if found is None else found[0]

    @cached_property
    def cost(self) -> Cost:
        if self.kind in NESTING:
            return ZERO_COST
        program = self.program.program
        if isinstance(self.step.data, DenseCall) and self._plan is not None:
            costs = plan_costs(self.step.data, self._plan, program.number)
            return costs[self.number] if self.number < len(costs) else ZERO_COST
        return cost(self.step, program.number)

    @property
    def threads(self) -> int:
        return 1 if self._plan is None else int(self._plan.threads)

    @property
    def schedule(self) -> str:
        found = self.program.program.template.code.get(id(self.step))
        return found[0].schedule if found is not None else ""


def _nodes(step: Step) -> tuple[Node, ...]:
    if isinstance(step.data, Batch):
        return tuple(n for s in step.data.members for n in _nodes(s))
    if step.members:
        return step.members
    return () if step.node is None else (step.node,)


def _all_steps(sequence: Sequence[Step]) -> list[Step]:
    """Return every step; those inside control flow come before the step that runs them."""
    found: list[Step] = []
    for step in sequence:
        if isinstance(step.data, Nested):
            found += _all_steps(step.data.first) + _all_steps(step.data.second)
        found.append(step)
    return found
