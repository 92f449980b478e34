"""Pairs each loop of a graph with its gradient, for which the loop records its states."""

from __future__ import annotations

from collections.abc import Hashable

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.structural_hash import structural_hash
from mycel._src.compiler.prims.control_flow.control import while_loop
from mycel._src.compiler.prims.control_flow.while_gradient import while_grad

__all__ = ["loop_pairs"]


def loop_pairs(graph: Graph) -> dict[Node, Node]:
    """Return the loops of a graph by their gradients, and the gradients by their loops."""
    gradients: dict[Hashable, Node] = {}
    for node in graph.nodes:
        if node.prim is while_grad and node.params["keep"] == "all":
            gradients.setdefault(_key(node), node)
    pairs: dict[Node, Node] = {}
    for node in graph.nodes if gradients else ():
        if node.prim is while_loop and (gradient := gradients.pop(_key(node), None)) is not None:
            pairs[node], pairs[gradient] = gradient, node
    return pairs


def _key(node: Node) -> Hashable:
    """Return a key that is equal for a loop and its gradient."""
    body = node.params["body"]
    operands = node.inputs[: len(body.inputs)]
    return tuple(map(id, operands)), structural_hash(node.params["test"]), structural_hash(body)
