"""Cost and memory estimates of XLA programs.

A part is one step, as XLA decides what is computed together. Its cost has the bytes of its operands
and results, which have to be moved, and the operations of its nodes. The memory is what the graph's
values would need, each from its computation to its last use: XLA needs less where it fuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.types import TensorType
from mycel._src.engines.reference import reports as reference
from mycel._src.engines.reports import Account, Cost, Footprint, StepAccount
from mycel._src.engines.xla.preparing import is_host_step, prepared, why_on_host

__all__ = ["account", "cost_of", "footprint", "host_steps", "node_cost"]

node_cost = reference.node_cost


def _bytes(kind: Any) -> int:
    if isinstance(kind, tuple):
        return sum(map(_bytes, kind))
    return int(kind.nbytes) if isinstance(kind, TensorType) else 0


def cost_of(graph: Graph) -> Cost:
    """Return the bytes that a part moves and its floating-point operations."""
    flops = sum(node_cost(n).flops for n in graph.nodes if reference.is_step(n))
    return Cost(sum(_bytes(i.type) for i in graph.inputs), sum(_bytes(o.type) for o in graph.outputs), flops)


def account(graph: Graph, aliases: Mapping[int, int] | None = None) -> Account:
    """Return the steps of the program of a graph of static types."""
    found = prepared(graph)
    hosts = [n for n in found.nodes if is_host_step(n)]
    rest = [n for n in found.nodes if reference.is_step(n) and not is_host_step(n)]
    steps: list[StepAccount] = []
    if rest:
        names = tuple(dict.fromkeys(n.op for n in rest))
        over = set(aliases or {})
        stores = tuple((o.op, str(o.type), "a result", j in over) for j, o in enumerate(found.outputs))
        steps.append(StepAccount(1, "kernel", names, cost_of(found), "", stores, (), rest[-1].where))
    for node in hosts:
        kinds = node.type if isinstance(node.type, tuple) else (node.type,)
        stores = tuple((node.op, str(t), why_on_host(node), False) for t in kinds)
        steps.append(StepAccount(len(steps) + 1, "host", (node.op,), node_cost(node), "", stores, (), node.where))
    return Account(graph.name, steps)


def footprint(graph: Graph, aliases: Mapping[int, int] | None = None) -> Footprint:
    """Return the memory that a graph of static types needs at most."""
    return reference.footprint(prepared(graph), aliases)


def host_steps(graph: Graph) -> list[tuple[Node, str]]:
    """Return the nodes that are left to the host, with the reasons."""
    return [(n, why_on_host(n)) for n in prepared(graph).nodes if is_host_step(n)]
