"""Staging of derivatives that a program defines itself (a Cell's `bprop`, hooks).

The rule is staged where it appears, as a closed graph of the values, the cotangents and the tensors
that it reads from outside. That graph is a parameter of the node, also in branches, loops and
compiled functions that are differentiated as a whole. A rule with effects cannot be such a graph;
it is called when a gradient that is taken in the same function reaches it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycel._src.compiler.ir.graph import Graph, Node, current_where, input_node, set_where
from mycel._src.compiler.prims.base import outputs_of
from mycel._src.compiler.prims.custom_derivatives import Rule, custom
from mycel._src.foundation.errors import Unsupported
from mycel._src.staging.frontend.control_flow.conditionals import closed, free_nodes
from mycel._src.staging.frontend.graph_building.stage import Stage
from mycel._src.staging.frontend.graph_building.stage_state import Scope
from mycel._src.staging.frontend.source_code.tracebacks import keep_position
from mycel._src.tensors.core.tensor import Tensor, make_staged

__all__ = ["attach"]


def attach(stage: Stage, values: Sequence[Tensor], operands: Sequence[Tensor], rule: Rule) -> list[Tensor]:
    """Return copies of `values`, in `stage`, whose derivative by `operands` is `rule`."""
    live: Any = stage
    by_value = live.is_live and not stage.scope.is_branch and not (stage.depth or stage.taken)
    if by_value and live.outer is None:
        # No gradient can get here.
        return list(values)
    outs = [stage.node_of(v) for v in values]
    inputs = [stage.node_of(t) for t in operands]
    backward: Graph | None = None
    captured: list[Node] = []
    wanted: tuple[int, ...] = ()
    if not rule.refusal:
        try:
            backward, captured, wanted = _staged(stage, outs, inputs, rule)
        except Exception as error:
            # An error of the rule matters only if a gradient reaches it, and is raised then.
            rule.refusal = str(error) or type(error).__name__
    if (
        backward is None
        and stage.scope.is_branch
        and (stage.depth or stage.taken or (live.is_live and live.outer is not None))
    ):
        raise Unsupported(f"{current_where()}: a derivative that the program gives itself is no graph: {rule.refusal}")
    if backward is None and by_value:
        live.end_segment((*outs, *inputs))
        return list(live.outer.differentiating.attach(values, operands, rule))
    params = {"count": len(outs), "backward": backward, "wanted": wanted, "rule": rule}
    nodes = (*outs, *inputs, *captured)
    node = Node(custom, nodes, params, custom.type_of(*[n.type for n in nodes], **params))
    items = outputs_of(node)
    stage.scope.own.add(node)
    stage.scope.own.update(items)
    return [make_staged(i) for i in items]


def _staged(
    stage: Stage, outs: Sequence[Node], inputs: Sequence[Node], rule: Rule
) -> tuple[Graph, list[Node], tuple[int, ...]]:
    """Return the rule as a graph of (operands, values, cotangents).

    Returns as well the nodes from outside, which are operands after `inputs`, and the positions of
    the operands whose cotangents the graph computes.
    """
    place = current_where()
    scope = Scope(True)
    with stage.inside(scope):
        try:
            values = [input_node(o.type, "value") for o in outs]
            cts = [input_node(o.type, "cotangent") for o in outs if o.dtype.is_differentiable]
            scope.own.update((*values, *cts))
            found = rule.function(tuple(map(make_staged, values)), [make_staged(c) for c in cts])
            results = [None if f is None else stage.node_of(f) for f in found]
        except Exception as error:
            keep_position(error)
            raise
        finally:
            changes = scope.take_back(stage)
            set_where(place)
    if changes:
        effect = next(iter(changes.values()))[0]
        raise Unsupported(f"it changes {effect}")
    wanted = tuple([i for i, r in enumerate(results) if r is not None])
    outputs = [r for r in results if r is not None]
    used, _ = free_nodes(stage, outputs, [*values, *cts])
    captured = [n for n in used if n not in inputs]
    return _graph(outputs, [*inputs, *captured], values, cts), captured, wanted


def _graph(outputs: Sequence[Node], operands: Sequence[Node], values: Sequence[Node], cts: Sequence[Node]) -> Graph:
    """Return a closed graph; an operand that is given twice is used in its first place."""
    distinct = list(dict.fromkeys([*operands, *values, *cts]))
    inner = closed(outputs, distinct, "backward")
    by_node = dict(zip(distinct, inner.inputs))
    inputs, seen = [], set()
    for n in (*operands, *values, *cts):
        inputs.append(by_node[n] if n not in seen else input_node(n.type, "operand"))
        seen.add(n)
    return Graph(inputs, inner.outputs, "backward")
