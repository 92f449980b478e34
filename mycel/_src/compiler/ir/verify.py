"""The graph verifier: checks a graph's invariants between passes.

1. The inputs are distinct input nodes, and every input node that the outputs reach is one of them.
2. Each node's type is what its primitive infers from its inputs and parameters, which are hashable.
3. Each token is used at most once, and each part of a tuple that is a token is taken at most once:
   effects form chains.
4. The graphs in parameters obey the same rules; as they are closed, they use nothing of the graph
   around them.
"""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.ir.graph import GET_ITEM_OP, Graph, Node, toposort
from mycel._src.compiler.ir.printer import graphs_in, node_text, type_text
from mycel._src.compiler.ir.types import TensorType, TokenType
from mycel._src.foundation.errors import VerifyError

__all__ = ["verify"]


def verify(graph: Graph) -> None:
    """Check a graph and the graphs nested in it.

    Raises VerifyError, which names the node that violates an invariant.

    >>> from mycel._src.foundation.dtype import float32
    >>> from mycel._src.compiler.ir.graph import input_node
    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> x = input_node(tensor_type((), float32), "x")
    >>> verify(Graph([], [x], "f"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    mycel.errors.VerifyError: f: `input x: float32[]` is reached but is not an input of ...
    """
    _verify(graph, graph.name, set())


def _verify(graph: Graph, path: str, seen: set[Graph]) -> None:
    if graph in seen:
        return
    seen.add(graph)
    inputs = set(graph.inputs)
    if len(inputs) != len(graph.inputs):
        raise VerifyError(f"{path}: the graph lists an input twice")
    for node in graph.inputs:
        if node.prim is not None:
            _fail(path, node, "is listed as an input but applies a primitive")
    for node in toposort(graph.outputs):
        if node.prim is None:
            if node not in inputs:
                _fail(path, node, "is reached but is not an input of the graph")
            continue
        _verify_type(path, node)
        for name, value in node.params.items():
            for nested in graphs_in(value):
                _verify(nested, f"{path}.{name}", seen)
    _verify_tokens(graph, path)


def _verify_type(path: str, node: Node) -> None:
    prim = node.prim
    assert prim is not None
    for name, value in node.params.items():
        try:
            hash(value)
        except TypeError:
            _fail(path, node, f"has a parameter {name} that is not hashable, {value!r}")
    if not _is_type(node.type):
        _fail(path, node, f"has {node.type!r} for a type")
    try:
        inferred = prim.infer(*[i.type for i in node.inputs], **node.params)
    except Exception as error:
        raise VerifyError(f"{path}: `{node_text(node)}` does not infer: {error}") from error
    if inferred != node.type:
        _fail(path, node, f"should have type {type_text(inferred)}")


def _is_type(type: Any) -> bool:
    if isinstance(type, tuple):
        return all(_is_type(t) for t in type)
    return isinstance(type, (TensorType, TokenType))


def _verify_tokens(graph: Graph, path: str) -> None:
    spent: set[Node] = set()
    taken: set[tuple[Node, int]] = set()

    def spend(token: Node) -> None:
        if isinstance(token.type, TokenType):
            if token in spent:
                _fail(path, token, "is a token that is used twice")
            spent.add(token)

    for node in graph.nodes:
        for i in node.inputs:
            spend(i)
        if node.op == GET_ITEM_OP and isinstance(node.type, TokenType):
            part = (node.inputs[0], node.params["index"])
            if part in taken:
                _fail(path, node, "takes a token that was taken already")
            taken.add(part)
    for node in graph.outputs:
        spend(node)


def _fail(path: str, node: Node, what: str) -> None:
    raise VerifyError(f"{path}: `{node_text(node)}` {what}")
