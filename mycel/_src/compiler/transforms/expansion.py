"""Expansion: replaces nodes by their definitions, also in the graphs that nodes hold.

The caller gives a replacement for each node: mostly its definition, which is expanded in turn until
nothing is left to expand. Engines expand what they do not claim, and graphs are partitioned with
calls of graphs expanded.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from mycel._src.compiler.ir.graph import Graph, Node, at, toposort
from mycel._src.compiler.ir.printer import graphs_in
from mycel._src.compiler.prims.base import GET_ITEM
from mycel._src.compiler.prims.control_flow.control import call
from mycel._src.compiler.prims.control_flow.recompute import recompute
from mycel._src.compiler.prims.custom_derivatives import all_nodes, custom, kept_call

__all__ = ["CALLS", "by_definition", "calls_itself", "opened", "without_calls"]

# Primitives that stand for the graph that they hold.
CALLS = (call, recompute, custom, kept_call)
Opening = Callable[[Node, tuple[Node, ...]], tuple[Node, ...] | None]


def opened(graph: Graph, opening: Opening) -> Graph:
    """Return `graph` with nodes expanded: replaced by what `opening` gives.

    `opening` takes a node and its operands, which are opened already, and returns a node for each
    output, opened as well, or None where the node stays.

    >>> from mycel._src.foundation.dtype import float32
    >>> from mycel._src.compiler.ir.graph import input_node
    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> from mycel._src.compiler.prims.neural.normalization import softmax
    >>> x = input_node(tensor_type((2, 3), float32))
    >>> opening = lambda node, inputs: by_definition(node, inputs, opening)
    >>> made = opened(Graph([x], [softmax(x, axis=1)]), opening)
    >>> any(n.prim is softmax for n in made.nodes)
    False
    """
    image: dict[Node, Node] = {}
    several: dict[Node, tuple[Node, ...]] = {}
    given = set(graph.inputs)
    # What lies behind the inputs of an opened node is opened already.
    for node in toposort((*graph.inputs, *graph.outputs), stop=given):
        if node.prim is None or node in given:
            image[node] = node
            continue
        inputs = tuple([image[i] for i in node.inputs])
        if node.prim is GET_ITEM and node.inputs[0] in several:
            image[node] = several[node.inputs[0]][node.params["index"]]
            continue
        found = opening(node, inputs)
        if found is not None:
            image[node] = node if isinstance(node.type, tuple) else found[0]
            if isinstance(node.type, tuple):
                several[node] = found
            continue
        params = node.params
        if any(isinstance(v, Graph) for v in params.values()):
            params = {k: opened(v, opening) if isinstance(v, Graph) else v for k, v in params.items()}
        same = all(params[k] is v for k, v in node.params.items()) and all(a is b for a, b in zip(inputs, node.inputs))
        image[node] = node if same else Node(node.prim, inputs, params, node.type, node.where)
    return Graph(graph.inputs, [image[o] for o in graph.outputs], graph.name)


def by_definition(node: Node, inputs: tuple[Node, ...], opening: Opening) -> tuple[Node, ...] | None:
    """Return the outputs of a node by its definition, itself opened; None where it has none.

    `inputs` are the operands in place of those of `node`, `opening` is as for `opened`.
    """
    if node.prim is None or node.prim.expand is None:
        return None
    # Graphs of eager operations are made without positions.
    with nullcontext() if node.where is None else at(node.where):
        result = node.prim.expand(*inputs, **node.params)
    if result is None:
        return None
    return opened(Graph(inputs, result if isinstance(result, tuple) else (result,)), opening).outputs


def without_calls(graph: Graph) -> Graph:
    """Return `graph` with graphs in place of their calls; those that call themselves stay."""
    return opened(graph, _calls) if any(n.prim in CALLS for n in all_nodes(graph)) else graph


def _calls(node: Node, inputs: tuple[Node, ...]) -> tuple[Node, ...] | None:
    return by_definition(node, inputs, _calls) if node.prim in CALLS and not calls_itself(node) else None


def calls_itself(node: Node) -> bool:
    """Return whether a graph of a node is met again inside of itself."""
    left = [g for v in node.params.values() for g in graphs_in(v)]
    outer, seen = set(left), set()
    while left:
        graph = left.pop()
        for inner in (g for n in graph.nodes for v in n.params.values() for g in graphs_in(v)):
            if inner in outer:
                return True
            if inner not in seen:
                seen.add(inner)
                left.append(inner)
    return False
