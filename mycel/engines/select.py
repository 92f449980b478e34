"""The engine that runs a primitive or a graph: functions from buffers to buffers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Optional

from mycel.ir.graph import Graph, input_node
from mycel.prims.base import Primitive, outputs_of

__all__ = ["compile_graph", "compile_primitive"]


def compile_primitive(primitive: Primitive, types: tuple[Any, ...], params: dict[str, Any]) -> Callable[..., Any]:
    """A function from buffers to a buffer (or a tuple of them) that runs one primitive."""
    inputs = [input_node(t) for t in types]
    out = outputs_of(primitive.node(*inputs, **params))
    return compile_graph(Graph(inputs, out if isinstance(out, tuple) else (out,), primitive.name))


def compile_graph(graph: Graph, aliases: Optional[Mapping[int, int]] = None) -> Callable[..., Any]:
    """A function from buffers to a buffer (or a tuple of them) that runs a graph.

    `aliases` says which outputs are written into which inputs' memory.
    """
    from mycel.engines.native.engine import compile_native

    return compile_native(graph, aliases).entry
