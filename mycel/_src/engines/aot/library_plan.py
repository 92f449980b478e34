"""Plans of libraries: the steps of a program for another machine, with offsets, before any code.

A graph is prepared and lowered as for this machine, with the target in force, so that kernels are
written for it. What a library without a runtime cannot have is refused with the user's line.

Where sizes are arguments, a graph has symbols, and what lowering decides by the sizes at hand holds
for some sizes only. So there are several `Form`s of a program, made one after the other for the
largest sizes that none serves yet, until all are served. What depends on sizes alone is computed as
the library runs; places in the arena are those of the largest values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dimension_guards import Decisions, deciding
from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.neural.requantised_layers import rescaled_pool
from mycel._src.engines.aot.size_arguments import Decided, Points, Size, said
from mycel._src.engines.aot.striping import smallest
from mycel._src.engines.aot.target_plan import Plan, Texts
from mycel._src.engines.native.kernels.codegen import Kernel
from mycel._src.engines.native.kernels.loop_nest import FAR, Nest
from mycel._src.engines.native.llvm.target import Target, making_for
from mycel._src.engines.native.program.compiling import prepared
from mycel._src.engines.native.program.template import Template
from mycel._src.engines.native.steps.step_types import Copy, HostCall, Nested, Step, Tape
from mycel._src.foundation.errors import ShapeError, Unsupported

__all__ = ["Form", "Staged", "forms_for", "plan_for"]

# Each form is code of its own.
MOST_FORMS = 8
# From sizes by symbol to a graph, and what was decided by them while it was made.
Staged = Callable[[Mapping[str, int]], tuple[Graph, Decided]]


@dataclass(frozen=True)
class Form:
    """A program for the sizes for which `decided` holds, and no earlier form's does.

    Of the last form it is empty.
    """

    plan: Plan
    decided: Decided


def plan_for(graph: Graph, aliases: Mapping[int, int], target: Target, gain: float | None = None) -> Plan:
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


def forms_for(staged: Staged, aliases: Mapping[int, int], target: Target, sizes: Sequence[Size]) -> list[Form]:
    """Return programs for a `target` that together serve all sizes within the bounds of `sizes`.

    `staged` gives the graph that is made for certain sizes, `aliases` maps its outputs to the
    inputs that they replace. Raises Unsupported where many programs would be needed, with what was
    decided, and for steps that need a runtime.
    """
    points = Points(sizes)
    left = np.ones(points.count, bool)
    found: list[Form] = []
    while left.any():
        hints = points.at(points.largest(left))
        if len(found) == MOST_FORMS:
            reasons = list(dict.fromkeys(said(f.decided, sizes) for f in found))
            raise Unsupported(
                f"build: there would be more than {MOST_FORMS} programs for different sizes; none yet serves "
                f"{_named(sizes, hints)}. Those there are serve sizes where " + "; or where ".join(reasons)
            )
        try:
            template, first, decisions = _lowered(staged, hints, aliases, target)
        except Unsupported as error:
            if not found:
                raise
            raise Unsupported(f"{error}; this is for {_named(sizes, hints)}, which no other program serves") from None
        decided = {**first, **decisions.guards}
        serves = points.hold(decided) & left
        if not serves[points.largest(left)]:
            raise AssertionError(f"the program for {hints} does not serve them: {said(decided, sizes)}")

        def most(value: DimLike, among: np.ndarray[Any, Any] = serves) -> int:
            return points.most(value, among)

        plan = Plan(template, target, hints, most)
        if plan.most_elements() > FAR:
            raise Unsupported(f"build: a value of more than {FAR:,} elements at the bounds; give lower ones")
        found.append(Form(plan, {} if (serves == left).all() else decided))
        left &= ~serves
    return found


def _named(sizes: Sequence[Size], hints: Mapping[str, int]) -> str:
    """Return sizes by symbol as text, by their names."""
    return ", ".join(f"{s.name}={hints[s.symbol] * s.divisor + s.remainder}" for s in sizes)


def _lowered(
    staged: Staged, hints: Mapping[str, int], aliases: Mapping[int, int], target: Target
) -> tuple[Template, Decided, Decisions]:
    """Return the steps of a program for the sizes `hints`, and what was decided by them while it
    was staged, and then.

    `staged`, `aliases` and `target` are as for `forms_for`.
    """
    graph, first = staged(hints)
    # A program for each order of adding up would be as much code again.
    decisions = Decisions(hints)
    with making_for(target), deciding(decisions):
        template = Template(_ready(graph), dict(aliases), making=Texts())
        for step in template.all_steps:
            _check(step)
    return template, first, decisions


def _ready(graph: Graph) -> Graph:
    """Return a graph with symbols as it is lowered.

    Passes compare sizes by their form, without decisions, unless types fit only by decisions.
    """
    try:
        with deciding(None):
            return prepared(graph)
    except ShapeError:
        return prepared(graph)


def _check(step: Step) -> None:
    data = step.data
    if isinstance(data, (Nest, Kernel, Copy, Nested)) or isinstance(data, Tape) and data.entry is not None:
        return
    node = data.node if isinstance(data, HostCall) else step.node
    name = step.kind if node is None else node.op
    where = "" if node is None or node.where is None else f" at {node.where}"
    needs = {"host": "runs in NumPy", "tape": "keeps states of a loop whose rounds have no bound"}
    reason = needs.get(step.kind, f"is a step of the kind {step.kind!r}")
    raise Unsupported(f"build: {name}{where} {reason}, which a library without a runtime cannot have")
