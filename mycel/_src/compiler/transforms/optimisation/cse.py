"""Common subexpression elimination: equal applications of a primitive become the first one's node.

Applications are equal if the primitive, the inputs and the parameters are. Literals are compared by
their bytes, so 0.0 and -0.0 differ; floats in parameters by their bits; nested graphs by their
structural hash and their symbolic sizes, since two graphs of one structure may have different
sizes. Operands of commutative primitives such as `add` and `mul` are compared in either order.
Effects are never joined. Nodes that no output needs are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.printer import graphs_in
from mycel._src.compiler.ir.structural_hash import structural_hash
from mycel._src.compiler.ir.types import TokenType
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.transforms.graph_rewriting import Visit, rewrite, sizes_in

__all__ = ["eliminate_common_subexpressions"]

COMMUTATIVE = frozenset(
    {
        E.add,
        E.mul,
        E.maximum,
        E.minimum,
        E.eq,
        E.ne,
        E.logical_and,
        E.logical_or,
        E.logical_xor,
        E.bitwise_and,
        E.bitwise_or,
        E.bitwise_xor,
    }
)


def eliminate_common_subexpressions(graph: Graph) -> Graph:
    """Return `graph` with each subexpression computed once.

    Returns the graph itself where none is repeated.

    >>> from mycel._src.foundation.dtype import float32
    >>> from mycel._src.compiler.ir.graph import input_node
    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> x = input_node(tensor_type((2,), float32), "x")
    >>> len(eliminate_common_subexpressions(Graph([x], [E.exp(x) + E.exp(x)])).nodes)
    2
    """
    return rewrite(graph, _start)


def _start(graph: Graph) -> Visit:
    known: dict[Any, Node] = {}
    number: dict[Node, int] = {}

    def rank(node: Node) -> int:
        return number.setdefault(node, len(number))

    def visit(old: Node, new: Node) -> Node:
        prim = new.prim
        assert prim is not None
        if prim.effect or _has_token(new.type):
            return new
        inputs = new.inputs
        if prim in COMMUTATIVE and rank(inputs[0]) > rank(inputs[1]):
            inputs = (inputs[1], inputs[0])
        # The parameters compared are those before this pass, which are complete even inside a
        # recursive graph.
        return known.setdefault((prim, inputs, _key(old.params)), new)

    return visit


def _has_token(type: Any) -> bool:
    return any(map(_has_token, type)) if isinstance(type, tuple) else isinstance(type, TokenType)


def _key(params: Mapping[str, Any]) -> Any:
    if not params:
        return ()
    if len(params) == 1:
        for value in params.values():
            return _identity(value)
    return tuple([(name, _identity(params[name])) for name in sorted(params)])


def _identity(value: Any) -> Any:
    """Return a hashable value that is equal for equal parameters."""
    kind = type(value)
    if kind is int:
        return value
    if kind is tuple:
        for v in value:
            if type(v) is not int:
                return tuple([_identity(v) for v in value])
        return value
    if kind is float:
        return (float, value.hex())
    if kind is bool:
        return (bool, value)
    if isinstance(value, np.generic):
        return (kind, value.tobytes())
    if isinstance(value, Graph):
        return _graph_identity(value)
    return value


def _graph_identity(graph: Graph) -> Any:
    try:
        digest = structural_hash(graph)
    except TypeError:
        # A Python function in it has no lasting identity: only the same graph is the same.
        return graph
    return (Graph, digest, graph.input_types, _sizes(graph, set()))


def _sizes(graph: Graph, seen: set[Graph]) -> tuple[Any, ...]:
    """Return the symbolic sizes in the parameters of a graph, in the order of its nodes."""
    if graph in seen:
        return ()
    seen.add(graph)
    found: list[Any] = []
    for node in graph.nodes:
        for name in sorted(node.params):
            value = node.params[name]
            found.extend(sizes_in(value))
            for nested in graphs_in(value):
                found.extend(_sizes(nested, seen))
    return tuple(found)
