"""Prints graphs as Python-like text: a statement for each node, with its type and source line.

Scalar constants and the parts of tuples are written where they are used. A graph in a parameter is
printed as a function before the first statement that names it. Names are unique within a text.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterator
from typing import Any

from mycel._src.compiler.ir.graph import GET_ITEM_OP, Graph, Node
from mycel._src.foundation.dtype import DType

__all__ = ["node_text", "to_text"]

_SHOWN_ELEMENTS = 8


def to_text(graph: Graph) -> str:
    """Return the text of a graph and of the graphs nested in it.

    >>> from mycel._src.foundation.dtype import float32
    >>> from mycel._src.compiler.ir.graph import input_node
    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> from mycel._src.compiler.prims import elementwise as E
    >>> x = input_node(tensor_type((2,), float32), "x")
    >>> print(to_text(Graph([x], [E.exp(x) * 2.0], "f")))
    def f(x: float32[2]) -> float32[2]:
        v0: float32[2] = exp(x)
        v1: float32[2] = mul(v0, 2.0)
        return v1
    """
    return "\n".join(_Writer().graph(graph, 0))


def node_text(node: Node) -> str:
    """Return one node as a statement; its inputs appear as their types."""
    if node.prim is None:
        return f"input {node.params.get('name', 'input')}: {type_text(node.type)}"
    writer = _Writer()
    for i in node.inputs:
        writer.names[i] = f"<{type_text(i.type)}>"
    text = f"{type_text(node.type)} = {writer.call(node)}"
    return f"{text}  # {node.where}" if node.where else text


def type_text(type: Any) -> str:
    """Return the text of a type; a tuple of types is in parentheses."""
    if isinstance(type, tuple):
        return f"({', '.join(map(type_text, type))}{',' if len(type) == 1 else ''})"
    return str(type)


class _Writer:
    def __init__(self) -> None:
        self.names: dict[Node, str] = {}
        self.graphs: dict[Graph, str] = {}
        self.used: set[str] = set()
        self.count = 0

    def fresh(self, wanted: str) -> str:
        base = wanted if wanted.isidentifier() and not keyword.iskeyword(wanted) else "x"
        name, i = base, 1
        while name in self.used:
            name, i = f"{base}_{i}", i + 1
        self.used.add(name)
        return name

    def graph(self, graph: Graph, depth: int) -> Iterator[str]:
        indent = "    " * depth
        name = self.graphs[graph] = self.fresh(graph.name)
        for node in graph.inputs:
            self.names[node] = self.fresh(str(node.params.get("name", "x")))
        inputs = ", ".join(f"{self.names[n]}: {type_text(n.type)}" for n in graph.inputs)
        outputs = graph.output_types
        result = type_text(outputs[0]) if len(outputs) == 1 else type_text(outputs)
        yield f"{indent}def {name}({inputs}) -> {result}:"
        for node in graph.nodes:
            if not self.is_inline(node):
                yield from self.statement(node, depth + 1)
        returned = ", ".join(self.value(n) for n in graph.outputs)
        yield f"{indent}    return {returned}" if returned else f"{indent}    return ()"

    def statement(self, node: Node, depth: int) -> Iterator[str]:
        for value in node.params.values():
            if hasattr(value, "listing") and value not in self.graphs:
                self.graphs[value] = self.fresh(value.name)
                yield from [f"{'    ' * depth}{line}" for line in value.listing()]
            for nested in graphs_in(value):
                if nested not in self.graphs:
                    yield from self.graph(nested, depth)
        call = self.call(node)
        while (name := f"v{self.count}") in self.used:
            self.count += 1
        self.used.add(name)
        self.names[node] = name
        comment = f"  # {node.where}" if node.where else ""
        yield f"{'    ' * depth}{name}: {type_text(node.type)} = {call}{comment}"

    def is_inline(self, node: Node) -> bool:
        return node.op == GET_ITEM_OP or (node.is_constant and node.value.ndim == 0)

    def value(self, node: Node) -> str:
        name = self.names.get(node)
        if name is not None:
            return name
        if node.is_constant:
            return str(node.params["value"])
        if node.op == GET_ITEM_OP:
            return f"{self.value(node.inputs[0])}[{node.params['index']}]"
        return f"<{node.params.get('name', 'input')}, which is not an input>"

    def call(self, node: Node) -> str:
        if node.is_constant:
            array = node.value
            return f"constant({array.tolist() if array.size <= _SHOWN_ELEMENTS else '...'})"
        arguments = [self.value(i) for i in node.inputs]
        arguments += [f"{k}={self.parameter(v)}" for k, v in node.params.items()]
        return f"{node.op}({', '.join(arguments)})"

    def parameter(self, value: Any) -> str:
        if isinstance(value, Graph) or hasattr(value, "listing"):
            return str(self.graphs.get(value, value.name))
        if isinstance(value, DType):
            return value.name
        if isinstance(value, tuple):
            return f"({', '.join(map(self.parameter, value))}{',' if len(value) == 1 else ''})"
        return repr(value)


def graphs_in(value: Any) -> Iterator[Graph]:
    """Yield the graphs in a parameter: the parameter itself, or those inside tuples."""
    if isinstance(value, Graph):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from graphs_in(item)
