"""Programs for another machine as steps with places, before any code.

A graph is prepared and lowered as for this machine, with the target in force, so that kernels are
written for it. What a library without a runtime cannot have is refused with the user's line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Optional

from mycel.base.errors import Unsupported
from mycel.engines.aot.striping import smallest
from mycel.engines.native.kernels.codegen import Kernel
from mycel.engines.native.kernels.nest import Nest
from mycel.engines.native.llvm.target import Target, making_for
from mycel.engines.native.lowering.steps import Copy, HostCall, Nested, Step
from mycel.engines.native.program.compiling import prepared
from mycel.engines.native.program.placed import Placed
from mycel.engines.native.program.template import Making, Template
from mycel.ir.graph import Graph
from mycel.ir.types import TensorType
from mycel.prims.rescaled import rescaled_pool

__all__ = ["ALIGN", "Plan", "plan_for"]

# Values begin at multiples of these bytes, in the arena and elsewhere.
ALIGN = 16


class Texts(Making):
    """The kernels of a template as text, which nobody compiles yet."""

    def compile(self, kernel: Kernel) -> None:
        """Leave a kernel as it is."""


class Plan(Placed):
    """A program for a target: its steps, their kernels by identity, and the places of values.

    `stripes` is the number of stripes that its first operations are divided into (0: they are not),
    and `copied_bytes` what one call copies for that.
    """

    unit, tries = ALIGN, 500
    stripes = copied_bytes = 0

    def __init__(self, template: Template, target: Target) -> None:
        self.target = target
        super().__init__(template, {})
        steps = [s for s in self.all_steps if isinstance(s.data, (Nest, Kernel))]
        self.code = dict(zip(map(id, steps), self.kernels))


def plan_for(graph: Graph, aliases: Mapping[int, int], target: Target, gain: Optional[float] = None) -> Plan:
    """Return the program of a graph for a target.

    `aliases` maps outputs to the inputs that they replace. The first operations on images are
    computed in stripes where the arena becomes less by the share `gain`; None: never. Raises
    Unsupported for symbolic sizes and for steps that need a runtime, with the operation and the
    user's line.
    """
    for kind in (*graph.input_types, *graph.output_types):
        if not isinstance(kind, TensorType) or not kind.is_static:
            raise Unsupported(f"build: {graph.name} has the size {kind}; give arguments of known sizes")
    with making_for(target):

        def planned(ready: Graph) -> Plan:
            template = Template(ready, dict(aliases), making=Texts())
            for step in template.all_steps:
                _check(step)
            return Plan(template, target)

        ready = prepared(graph)
        whole = planned(ready)
        if gain is None:
            return whole
        found = smallest(ready, whole, planned, gain)
        if any(node.prim is rescaled_pool for node in ready.nodes):
            # A sum over all rows can be added up stripe by stripe, an average cannot.
            ready = prepared(graph, averages=False)
            other = smallest(ready, planned(ready), planned, gain)
            if other.arena_bytes <= whole.arena_bytes * (1 - gain):
                found = min(found, other, key=lambda plan: plan.arena_bytes)
        return found


def _check(step: Step) -> None:
    data = step.data
    if isinstance(data, (Nest, Kernel, Copy, Nested)):
        return
    node = data.node if isinstance(data, HostCall) else step.node
    name = step.kind if node is None else node.op
    where = "" if node is None or node.where is None else f" at {node.where}"
    needs = {"host": "runs in NumPy", "tape": "keeps states of a number that is known only while it runs"}
    reason = needs.get(step.kind, f"is a step of the kind {step.kind!r}")
    raise Unsupported(f"build: {name}{where} {reason}, which a library without a runtime cannot have")
