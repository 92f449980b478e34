"""Runs a graph one operation at a time, each as a program of its own, as eager execution does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.prims.base import CONSTANT, GET_ITEM, outputs_of
from mycel._src.engines import buffers
from mycel._src.engines.base import current

__all__ = ["OneByOne", "several"]


def several(values: Any) -> tuple[Any, ...]:
    """Return a program's result as a tuple."""
    return values if type(values) is tuple else (values,)


class OneByOne:
    """A runner of nodes and graphs on buffers.

    It keeps its programs as long as it lives; they are never checked for NaN.
    """

    def __init__(self) -> None:
        self.programs: dict[Any, Callable[..., Any]] = {}

    def run(self, node: Node, given: Sequence[Any]) -> Any:
        """Return the value of one node, or a tuple of values, given those of its inputs."""
        if node.prim is CONSTANT:
            return buffers.from_array(np.array(node.value))
        if node.prim is GET_ITEM:
            return given[0][node.params["index"]]
        assert node.prim is not None
        key = (node.prim, tuple(i.type for i in node.inputs), tuple(sorted(node.params.items())))
        program = self.programs.get(key)
        if program is None:
            inputs = [input_node(i.type) for i in node.inputs]
            outputs = several(outputs_of(node.prim.node(*inputs, **node.params)))
            program = self.programs[key] = current().compile(Graph(inputs, outputs, node.op))
        result = program(*given)
        return several(result) if type(node.type) is tuple else result

    def program_of(self, graph: Graph) -> Callable[..., Any]:
        """Return the program of a whole graph."""
        if graph not in self.programs:
            self.programs[graph] = current().compile(graph)
        return self.programs[graph]
