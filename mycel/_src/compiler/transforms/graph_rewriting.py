"""Graph rewriting: the bottom-up traversal by which all passes rebuild a graph and nested graphs.

A pass provides, for each graph, a function from (a node, the same node with rebuilt inputs) to the
node that replaces it. Each node and each nested graph is visited once, so a pass is linear.
Unchanged parts are shared: a pass that changes nothing returns the graph object that it was given.
Inputs always stay. A graph that calls itself is replaced by a new one that calls the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.ir.graph import Graph, Node

__all__ = ["Visit", "holds_graphs", "rewrite", "sizes_in", "use_counts"]

Visit = Callable[[Node, Node], Node]


def rewrite(graph: Graph, start: Callable[[Graph], Visit]) -> Graph:
    """Return `graph` with every node replaced by a visitor, which `start` makes for each graph.

    >>> from mycel._src.foundation.dtype import float32
    >>> from mycel._src.compiler.ir.graph import input_node
    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> from mycel._src.compiler.prims import elementwise as E
    >>> x = input_node(tensor_type((2,), float32), "x")
    >>> swapped = rewrite(Graph([x], [E.sin(x)]), lambda graph: lambda old, new: E.cos(*new.inputs))
    >>> swapped.outputs
    (<cos: float32[2]>,)
    """
    return _Walk(start).graph(graph)


class _Walk:
    def __init__(self, start: Callable[[Graph], Visit]) -> None:
        self.start = start
        self.done: dict[Graph, Graph] = {}
        self.open: dict[Graph, Graph] = {}
        self.recursive: set[Graph] = set()

    def graph(self, graph: Graph) -> Graph:
        found = self.done.get(graph)
        if found is not None:
            return found
        if graph in self.open:
            self.recursive.add(graph)
            return self.open[graph]
        result = self.open[graph] = Graph(graph.inputs, (), graph.name)
        visit = self.start(graph)
        image: dict[Node, Node] = {}
        for node in graph.nodes:
            new = self.over(node, image)
            made = visit(node, new)
            if made is not node:
                image[node] = made
        del self.open[graph]
        if graph not in self.recursive and not any(o in image for o in graph.outputs):
            result = graph
        else:
            result.outputs = tuple([image.get(o, o) for o in graph.outputs])
        self.done[graph] = result
        return result

    def over(self, node: Node, image: Mapping[Node, Node]) -> Node:
        """Return `node` with the images of its inputs and nested graphs.

        Returns the node itself where nothing changed.
        """
        inputs = node.inputs
        for i in inputs:
            if i in image:
                inputs = tuple([image.get(j, j) for j in inputs])
                break
        params = node.params
        for value in params.values():
            if holds_graphs(value):
                params = self.params(params)
                break
        if inputs is node.inputs and params is node.params:
            return node
        return Node(node.prim, inputs, params, node.type, node.where)

    def params(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        new = {name: self.value(value) for name, value in params.items()}
        return params if all(new[name] is value for name, value in params.items()) else new

    def value(self, value: Any) -> Any:
        if isinstance(value, Graph):
            return self.graph(value)
        if isinstance(value, tuple):
            new = tuple([self.value(v) for v in value])
            return value if all(a is b for a, b in zip(new, value)) else new
        return value


def holds_graphs(value: Any) -> bool:
    """Return whether a parameter is a graph, or a tuple with graphs in it."""
    if type(value) is tuple:
        for v in value:
            if type(v) is not int and holds_graphs(v):
                return True
        return False
    return isinstance(value, Graph)


def use_counts(graph: Graph) -> dict[Node, int]:
    """Return how often each node of a graph is used, as an input of another node or an output."""
    uses: dict[Node, int] = {}
    for node in graph.nodes:
        for i in node.inputs:
            uses[i] = uses.get(i, 0) + 1
    for o in graph.outputs:
        uses[o] = uses.get(o, 0) + 1
    return uses


def sizes_in(value: Any) -> tuple[Dim, ...]:
    """Return the symbolic dimensions in a parameter, in order."""
    if isinstance(value, Dim):
        return (value,)
    if type(value) is not tuple:
        return ()
    return tuple([s for v in value if type(v) is not int for s in sizes_in(v)])
