"""Functions written on graph nodes, applied to tensors.

Some compositions of primitives live below tensors (the distributions of `prims.random`).
`compose` builds such a function's graph once for each combination of types and parameters. In plain
eager execution, and for inputs that no recording tracks, the graph runs as one compiled program;
otherwise its nodes are applied one by one, so that they are recorded or staged like any others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel._src.compiler.ir.graph import Graph, Node, input_node, toposort
from mycel._src.compiler.prims.base import GET_ITEM, freeze
from mycel._src.engines.error_messages import out_of_memory
from mycel._src.engines.select import compile_graph
from mycel._src.foundation.bounded_caches import SOME, Remembered
from mycel._src.foundation.settings import config
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.tensor import Tensor, make

_graphs = Remembered[Any, list[Any]]("compositions", SOME, config.COMPILED_ANEW)


def compose(function: Callable[..., Node], *tensors: Tensor, **params: Any) -> Tensor:
    """Apply `function`, written on graph nodes, to `tensors`; the result is one tensor.

    `params` are the function's further parameters; with the types of the tensors they decide which
    graph is reused.
    """
    types = tuple([t._type for t in tensors])
    key = (function, types, freeze(params))
    found = _graphs.recent.get(key)
    if found is None and (found := _graphs.get(key)) is None:
        inputs = tuple(input_node(t) for t in types)
        graph = Graph(inputs, (function(*inputs, **params),), function.__name__)
        found = _graphs.enter(key, [graph, None])
    context = eager.local.context if eager.active else None
    if context is None or not (context.is_staging or any(t._node is not None for t in tensors)):
        if found[1] is None:
            found[1] = compile_graph(found[0])
        for t in tensors:
            if t._buf is None:
                t._need_value(function.__name__)
        try:
            return make(found[0].outputs[0].type, found[1](*[t._buf for t in tensors]))
        except MemoryError:
            raise out_of_memory(found[0]) from None
    return _replay(found[0], tensors)


def _replay(graph: Graph, tensors: tuple[Tensor, ...]) -> Tensor:
    known: dict[Node, Any] = dict(zip(graph.inputs, tensors))
    for node in toposort(graph.outputs):
        if node in known:
            continue
        if node.prim is GET_ITEM:
            known[node] = known[node.inputs[0]][node.params["index"]]
        else:
            assert node.prim is not None
            known[node] = eager.apply(node.prim, *[known[i] for i in node.inputs], **node.params)
    return known[graph.outputs[0]]
