"""Substitutes actual sizes for symbols: in types, in parameters, and in whole graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mycel._src.compiler.ir.dim_values import substitute
from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.ir.graph import Graph, Node, input_node, toposort
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims.base import SERVICES

__all__ = ["concrete", "inner_sizes", "specialize"]


def inner_sizes(value: Any) -> tuple[Dim, ...]:
    """Return the symbolic dimensions in a parameter, type, node or graph, also in nested graphs."""
    if isinstance(value, Dim):
        return (value,)
    if isinstance(value, TensorType):
        return () if value.is_static else tuple([d for d in value.shape if isinstance(d, Dim)])
    if type(value) is tuple:
        return tuple([s for v in value if type(v) is not int for s in inner_sizes(v)])
    if isinstance(value, Node):
        return (*inner_sizes(value.type), *[s for v in value.params.values() for s in inner_sizes(v)])
    if isinstance(value, Graph):
        return tuple(dict.fromkeys([s for n in (*value.inputs, *value.nodes) for s in inner_sizes(n)]))
    return ()


def concrete(value: Any, sizes: Mapping[str, int]) -> Any:
    """Return a parameter or type with sizes in place of symbols; symbols without a size stay."""
    if isinstance(value, Dim):
        return substitute(value, sizes)
    if isinstance(value, TensorType):
        return value if value.is_static else tensor_type(concrete(value.shape, sizes), value.dtype)
    if type(value) is tuple:
        return tuple([v if type(v) is int else concrete(v, sizes) for v in value])
    if isinstance(value, Graph):
        return specialize(value, sizes)
    return value


def specialize(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """Return the graph for actual sizes of its symbols, or of some of them.

    >>> from mycel._src.foundation.dtype import float32
    >>> from mycel._src.compiler.ir.dims import symbol
    >>> from mycel._src.compiler.prims import elementwise as E
    >>> x = input_node(tensor_type((symbol("n"), 3), float32), "x")
    >>> specialize(Graph([x], [E.exp(x)]), {"n": 4}).outputs
    (<exp: float32[4, 3]>,)
    """
    image: dict[Node, Node] = {}
    for node in toposort((*graph.inputs, *graph.outputs)):
        kind = concrete(node.type, sizes)
        if node.prim is None:
            image[node] = input_node(kind, node.params.get("name", "input"), node.where)
            continue
        params = {k: concrete(v, sizes) for k, v in node.params.items()}
        image[node] = Node(node.prim, tuple([image[i] for i in node.inputs]), params, kind, node.where)
    return Graph([image[i] for i in graph.inputs], [image[o] for o in graph.outputs], graph.name)


SERVICES.concrete, SERVICES.specialize = concrete, specialize
