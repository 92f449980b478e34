"""Prepares a graph for XLA: every node has a rule of jax, or is a host step.

Primitives without a rule open through `expand`, and calls are inlined. What remains without a rule
has only a `reference`: a *host step*, which runs in NumPy between two programs of XLA. Inside of
control flow there is no between, so there it is refused, and so is recursion anywhere.
"""

from __future__ import annotations

from collections.abc import Collection

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.source_locations import excerpt
from mycel._src.compiler.prims.base import GET_ITEM, Primitive
from mycel._src.compiler.prims.control_flow.recursion import recur, recursion
from mycel._src.compiler.prims.distributed.collectives import COLLECTIVES, exchange, mesh_position
from mycel._src.compiler.prims.distributed.point_to_point import messages
from mycel._src.compiler.transforms.expansion import by_definition, opened
from mycel._src.compiler.transforms.optimisation.passes import optimize
from mycel._src.engines.xla.rules import RULES, SCOPED
from mycel._src.foundation.errors import Unsupported

__all__ = ["EXCHANGES", "is_claimed", "is_host_step", "prepared", "why_on_host"]

_RECURSIVE = (recursion, recur)
# What ranks exchange, and what depends on their places.
EXCHANGES = (*COLLECTIVES, mesh_position)


def is_claimed(node: Node) -> bool:
    """Return whether XLA computes a node as it is, on one device."""
    if node.prim in EXCHANGES:
        return False
    return node.prim is GET_ITEM or node.op in RULES or node.op in SCOPED


def is_host_step(node: Node) -> bool:
    """Return whether a node of an opened graph is left to the host on one device."""
    return node.prim is not None and not is_claimed(node)


def why_on_host(node: Node) -> str:
    """Return the reason why a node is left to the host."""
    if node.prim in EXCHANGES or node.prim is messages:
        return f"{node.op} goes through the transport of this process"
    return f"XLA has no {node.op}"


def prepared(graph: Graph, exchanges: Collection[Primitive] = ()) -> Graph:
    """Return the graph as it is run: opened and optimised.

    In a program for several devices `exchanges` are the primitives of exchanging values, which it
    computes as they stand. Raises Unsupported for what XLA cannot have.
    """
    found = opened(graph, _opening)
    if len(found.nodes) > 1:
        found = optimize(found)
    _check(found, exchanges, False)
    return found


def _opening(node: Node, inputs: tuple[Node, ...]) -> tuple[Node, ...] | None:
    return None if is_claimed(node) and not (node.prim and node.prim.opens) else by_definition(node, inputs, _opening)


def _check(graph: Graph, exchanges: Collection[Primitive], nested: bool) -> None:
    """Raise Unsupported for what XLA cannot have."""
    for node in graph.nodes:
        if node.prim in _RECURSIVE:
            raise _refused(node, "recursion, which XLA cannot have; write a loop, or use the native engine")
        if node.prim in exchanges and node.prim is not exchange:
            continue
        if is_host_step(node) and (nested or exchanges):
            place = "inside of control flow" if nested else "in a program for several devices"
            raise _refused(
                node, f"{node.op} {place}: XLA has no such operation, and the host runs it only between programs"
            )
        for value in node.params.values():
            if isinstance(value, Graph):
                _check(value, exchanges, True)


def _refused(node: Node, what: str) -> Unsupported:
    text = f"the XLA engine cannot run {what}"
    return Unsupported(text if node.where is None else f"{text}\n{excerpt(node.where)}")
