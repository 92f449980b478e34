"""Which engine runs a single primitive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel.ir.graph import Graph
from mycel.prims.base import Primitive


def compile_primitive(primitive: Primitive, types: tuple[Any, ...], params: dict[str, Any]) -> Callable[..., Any]:
    """A function from buffers to a buffer (or a tuple of them) that runs one primitive."""
    from mycel.engines.reference.evaluate import apply

    def run(*buffers: Any) -> Any:
        return apply(primitive, buffers, params)

    return run


def compile_graph(graph: Graph) -> Callable[..., Any]:
    """A function from buffers to a buffer (or a tuple of them) that runs a graph."""
    from mycel.engines.reference.evaluate import evaluate

    def run(*buffers: Any) -> Any:
        results = evaluate(graph, buffers)
        return results[0] if len(results) == 1 else results

    return run
