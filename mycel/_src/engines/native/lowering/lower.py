"""Lowering of a graph to steps: fusion first, then the steps of groups and of single nodes.

1. Fusion chooses groups of nodes and the order of groups and single nodes (`fusion`,
   `group_merging`, `fusion_recompute`).
2. Steps are added: a kernel for each group (`fused_group_nest`), calls of the dense library
   (`dense_steps`), both by blocks of rows for large products (`blocked_products`), and special
   steps of some primitives (`step_rules`). `step_builder` chooses the places of values. A node that
   the native engine has no code for runs in the reference engine.

Nodes were expanded before (`expand`). Each buffer lives from its first to its last step, by which
the arena is planned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.engines.native.lowering.blocked_products import blocked_products
from mycel._src.engines.native.lowering.fused_group_nest import group_step
from mycel._src.engines.native.lowering.fusion import Fusion, Unit
from mycel._src.engines.native.lowering.fusion_recompute import choose
from mycel._src.engines.native.lowering.group_merging import join_maps
from mycel._src.engines.native.lowering.step_rules import STEP_RULES
from mycel._src.engines.native.operations.dense_rules import is_dense
from mycel._src.engines.native.operations.dense_steps import dense_step
from mycel._src.engines.native.steps.step_builder import StepBuilder
from mycel._src.engines.native.steps.step_types import Lowered, Step
from mycel._src.foundation.spans import timed

__all__ = ["lower", "lower_explained"]


@timed("lowering", lambda graph, *_: graph.name)
def lower(
    graph: Graph, aliases: Mapping[int, int] | None = None, added: Callable[[Step], object] | None = None
) -> Lowered:
    """Return the steps that compute a graph.

    `aliases` maps outputs to the inputs whose memory receives them. `added` is called with
    each step as soon as there is one. With symbolic sizes, decisions with a hint for each symbol
    must be in force.
    """
    return lower_explained(graph, aliases, added)[0].lowered


def lower_explained(
    graph: Graph, aliases: Mapping[int, int] | None = None, added: Callable[[Step], object] | None = None
) -> tuple[StepBuilder, Fusion]:
    """Lower a graph as `lower` does; return the builder, which has the steps, and the fusion."""
    steps = StepBuilder(graph, _lower_into)
    steps.added = added
    for output, i in (aliases or {}).items():
        steps.own.add(graph.inputs[i])
        steps.over[graph.outputs[output]] = graph.inputs[i]
    return steps, _lower_into(steps)


def _lower_into(steps: StepBuilder) -> Fusion:
    """Add all steps of a builder's graph."""
    fusion = Fusion(steps.graph, steps.pairs, steps.results)
    join_maps(fusion)
    for _ in range(2):
        choose(fusion)
        fusion.merge_siblings()
    order = fusion.ordered()
    steps.last_readers = dict(fusion.reads(order))
    blocked = blocked_products(fusion, steps, order)
    later = {node for group in blocked.values() for node in group.nodes}
    for number, unit in enumerate(order):
        steps.unit = number
        if unit.number in blocked:
            blocked[unit.number].add(fusion, steps)
        elif unit.node not in later:
            _add_unit(fusion, steps, unit)
    steps.finish()
    return fusion


def _add_unit(fusion: Fusion, steps: StepBuilder, unit: Unit) -> None:
    if unit.domain is not None:
        group_step(fusion, steps, unit, unit.domain)
    elif unit.node is not None:
        _add_node(steps, unit.node)


def _add_node(steps: StepBuilder, node: Node) -> None:
    """Add the steps of a node that is not fused."""
    if is_dense(node):
        dense_step(steps, node)
    elif node.op in STEP_RULES:
        STEP_RULES[node.op](steps, node)
    else:
        steps.host(node, "no native code")
