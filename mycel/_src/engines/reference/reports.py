"""The cost of graphs in the reference engine, and the memory that they need.

Every node is a step, and every value an array until its last use. The cost has the bytes of a
node's operands and results, and the floating-point operations of products, convolutions, and
element-wise functions (one for each element). Memory that NumPy takes inside an operation, and the
cost of nested graphs, are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.base import CONSTANT, GET_ITEM
from mycel._src.engines.reports import Account, Alive, Cost, Footprint, StepAccount, place_of, work

__all__ = ["account", "footprint", "is_step", "node_cost"]


def is_step(node: Node) -> bool:
    """Return whether a node computes anything.

    A constant does not, nor does the choice of one of several results.
    """
    return node.prim is not None and node.prim is not CONSTANT and node.prim is not GET_ITEM


def node_cost(node: Node) -> Cost:
    """Return the bytes that one node moves and its floating-point operations."""
    assert node.prim is not None
    flops = work(node)
    if node.prim.elementwise and isinstance(node.type, TensorType) and node.type.dtype.kind == "f":
        flops = int(node.type.size)
    return Cost(sum(_bytes(i.type) for i in node.inputs), _bytes(node.type), flops)


def account(graph: Graph) -> Account:
    """Return the account of a graph of static types: its nodes in the order of execution."""
    readers: dict[Node, int] = {}
    for node in graph.nodes:
        for i in node.inputs:
            readers[i] = readers.get(i, 0) + 1
    results = set(graph.outputs)
    steps: list[StepAccount] = []
    for node in filter(is_step, graph.nodes):
        name, count = node.op, readers.get(node, 0)
        why = "a result" if node in results else f"{count} operation{'s read' if count > 1 else ' reads'} it"
        kinds = node.type if isinstance(node.type, tuple) else (node.type,)
        stores = tuple((name, str(t), why, False) for t in kinds)
        steps.append(StepAccount(len(steps) + 1, "host", (name,), node_cost(node), "", stores, (), node.where))
    return Account(graph.name, steps)


def footprint(graph: Graph, aliases: Mapping[int, int] | None = None) -> Footprint:
    """Return the memory that the arrays of a graph of static types need.

    At the end, results are copied from the arrays into buffers of their own.
    """
    nodes = list(graph.nodes)
    end = len(nodes)
    last = {node: k for k, node in enumerate(nodes)}
    for k, node in enumerate(nodes):
        for i in node.inputs:
            # One of several results keeps them all.
            for owner in (i, i.inputs[0]) if i.prim is GET_ITEM else (i,):
                last[owner] = k
    for node in graph.outputs:
        last[node] = end
    first = {node: k for k, node in enumerate(nodes) if is_step(node)}
    changes = [0] * (end + 2)
    for node, k in first.items():
        changes[k] += _bytes(node.type)
        changes[last[node] + 1] -= _bytes(node.type)
    now = peak = at = 0
    for k, change in enumerate(changes):
        now += change
        if now > peak:
            peak, at = now, k
    alive = [Alive(_bytes(n.type), _what(n), n.where, k, last[n]) for n, k in first.items() if k <= at <= last[n]]
    fullest = nodes[at] if at < end else None
    moment = "the results" if fullest is None else _moment(fullest)
    return Footprint(
        graph.name,
        [_bytes(i.type) for i in graph.inputs],
        sum(_bytes(t) for j, t in enumerate(graph.output_types) if j not in (aliases or {})),
        sum(_bytes(n.type) for n in nodes if n.prim is CONSTANT),
        peak,
        peak,
        0,
        len(first),
        at,
        moment,
        sorted(alive, key=lambda a: -a.nbytes),
    )


def _what(node: Node) -> str:
    return node.op + (f" {node.type.dtype.name}" if isinstance(node.type, TensorType) else "")


def _moment(node: Node) -> str:
    return node.op + (f" from {place_of(node.where)}" if node.where is not None else "")


def _bytes(kind: Any) -> int:
    if isinstance(kind, tuple):
        return sum(map(_bytes, kind))
    return int(kind.nbytes) if isinstance(kind, TensorType) else 0
