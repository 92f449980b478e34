"""The engine that runs a primitive or a graph: functions from buffers to buffers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Optional

from mycel.engines import nonfinite
from mycel.ir.graph import Graph, at, input_node
from mycel.prims.base import Primitive, outputs_of
from mycel.prims.control import sizes_in_call

__all__ = ["compile_graph", "compile_primitive"]


def compile_primitive(primitive: Primitive, types: tuple[Any, ...], params: dict[str, Any]) -> Callable[..., Any]:
    """A function from buffers to a buffer (or a tuple of them) that runs one primitive."""
    if primitive.name in ("call", "kept_call") and (sizes := sizes_in_call(params["graph"], types)):
        from mycel.engines.native.program.instances import instances_of

        if not nonfinite.is_on():
            return instances_of(params["graph"]).entry(sizes)
    with at(None):
        inputs = [input_node(t) for t in types]
        out = outputs_of(primitive.node(*inputs, **params))
        graph = Graph(inputs, out if isinstance(out, tuple) else (out,), primitive.name)
        return compile_graph(graph, alone=True)


def compile_graph(graph: Graph, aliases: Optional[Mapping[int, int]] = None, alone: bool = False) -> Callable[..., Any]:
    """A function from buffers to a buffer (or a tuple of them) that runs a graph.

    `aliases` says which outputs are written into which inputs' memory; `alone` that the graph is one operation that the user's code runs by itself.
    """
    from mycel.engines.native.engine import compile_native

    if nonfinite.is_on():
        return nonfinite.checked(graph, compile_native(graph).entry, alone)
    return compile_native(graph, aliases).entry
