"""From a graph to steps.

1. What fuses, and in which order groups and single nodes run (`fusion`, `joining`, `recompute`).
2. The steps: a kernel for each group (`groups`), calls of the dense library (`dense_steps`), and
   what has steps of its own (`step_rules`); where values lie is the builder's business (`builder`).
   A node that the native engine has no code for runs in the reference engine.

Nodes were opened through `expand` before. Each buffer lives from its first to its last step, which
is what the arena is planned by.
"""

from __future__ import annotations

from mycel.base.spans import timed
from mycel.engines.native.lowering.builder import StepBuilder
from mycel.engines.native.lowering.dense_rules import is_dense
from mycel.engines.native.lowering.dense_steps import dense_step
from mycel.engines.native.lowering.fusion import Fusion, Unit
from mycel.engines.native.lowering.groups import group_step
from mycel.engines.native.lowering.joining import join_maps
from mycel.engines.native.lowering.recompute import choose
from mycel.engines.native.lowering.step_rules import STEP_RULES
from mycel.engines.native.lowering.steps import Lowered
from mycel.ir.graph import Graph, Node

__all__ = ["lower", "lower_explained"]


@timed("lowering", lambda graph: graph.name)
def lower(graph: Graph) -> Lowered:
    """Return the steps that compute a graph; with symbolic sizes, inside decisions that have a hint
    for each symbol.
    """
    return lower_explained(graph)[0].lowered


def lower_explained(graph: Graph) -> tuple[StepBuilder, Fusion]:
    """Lower a graph and return its steps with what was decided: where values lie, and what was
    fused.
    """
    steps = StepBuilder(graph, _lower_into)
    return steps, _lower_into(steps)


def _lower_into(steps: StepBuilder) -> Fusion:
    """Add all steps of a builder's graph."""
    fusion = Fusion(steps.graph, steps.pairs)
    join_maps(fusion)
    for _ in range(2):
        choose(fusion)
        fusion.merge_siblings()
    for unit in fusion.ordered():
        _add_unit(fusion, steps, unit)
    steps.finish()
    return fusion


def _add_unit(fusion: Fusion, steps: StepBuilder, unit: Unit) -> None:
    if unit.domain is not None:
        group_step(fusion, steps, unit, unit.domain)
    elif unit.node is not None:
        _add_node(steps, unit.node)


def _add_node(steps: StepBuilder, node: Node) -> None:
    """Add what computes a node that is not fused."""
    if is_dense(node):
        dense_step(steps, node)
    elif node.op in STEP_RULES:
        STEP_RULES[node.op](steps, node)
    else:
        steps.host(node, "no native code")
