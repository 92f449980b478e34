"""Finds the parameter gradients among the nodes of a training step's graph.

A gradient of a parameter has the shape of a parameter that is written, and nothing but what is
written into parameters depends on it. What is computed forwards leads to the loss, which is an
output of its own; cotangents of activations have other shapes, or stand for a parameter of the same
shape, which then has its sums in float32 too.
"""

from __future__ import annotations

from collections.abc import Mapping

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.types import TensorType, Type

__all__ = ["gradients", "is_narrow"]


def gradients(graph: Graph, tied: Mapping[int, int]) -> set[Node]:
    """Return the gradients in a graph, of which `tied` maps outputs to the inputs that they
    replace.
    """
    shapes = {graph.inputs[i].type.shape for i in tied.values()}
    others: set[Node] = {node for k, node in enumerate(graph.outputs) if k not in tied}
    for node in reversed(graph.nodes):
        if node in others:
            others.update(node.inputs)
    found = {n for n in graph.nodes if n not in others and isinstance(n.type, TensorType) and n.type.shape in shapes}
    return found - set(graph.inputs)


def is_narrow(type: Type) -> bool:
    """Return whether a type has floating-point numbers of 16 bits."""
    return isinstance(type, TensorType) and type.dtype.kind == "f" and type.dtype.itemsize == 2
