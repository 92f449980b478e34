"""Imports QDQ graphs: `quantize` and `dequantize` pairs of files become `fake_quant`.

`integer_lowering` takes the result. A value that is dequantised after it was quantised to the same
scale is rounded. Constants that are dequantised are rounded constants, and their zero point 0:
levels of 16 bits where they have none in 8. Inputs that are levels, and outputs that are, become
rounded values of floats.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, input_node, users_of
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.base import CONSTANT, constant
from mycel._src.compiler.prims.neural.quantisation import dequantize, fake_quant, quantize
from mycel._src.compiler.transforms.quantise.graph_freezing import array_of, computed, literal
from mycel._src.foundation.dtype import float32

__all__ = ["Read", "read_levels"]

Array = np.ndarray[Any, Any]


@dataclass
class Read:
    """A graph of rounded values, and the numbers of its inputs and outputs that were levels."""

    graph: Graph
    inputs: frozenset[int] = field(default_factory=frozenset)
    outputs: frozenset[int] = field(default_factory=frozenset)


def read_levels(graph: Graph) -> Read:
    """Return a graph with constants that is `graph` with rounded values in place of levels.

    Raises ValueError where an input of levels has no scale of its own.
    """
    users = users_of(graph)
    image: dict[Node, Node] = {}
    inputs, opened = [], set()
    for number, node in enumerate(graph.inputs):
        made = _input(node, users.get(node, []))
        if made is None:
            image[node] = node
        else:
            opened.add(number)
            for user in users[node]:
                image[user] = made
        inputs.append(node if made is None else made.inputs[0])
    for node in graph.nodes:
        if node not in image:
            given = tuple([image[i] for i in node.inputs])
            image[node] = _node(node, given)
    outputs, closed = [], set()
    for number, node in enumerate(graph.outputs):
        found = image[node]
        if found.prim is quantize and found.dtype is not float32:
            closed.add(number)
            found = _rounded(found)
        outputs.append(found)
    made_graph = Graph(inputs, computed(outputs, inputs), graph.name)
    return Read(made_graph, frozenset(opened), frozenset(closed))


def _input(node: Node, users: list[Node]) -> Node | None:
    """Return an input of levels as a rounded value of floats; None where it is none of levels."""
    if not users or any(u.prim is not dequantize or u.inputs[0] is not node for u in users):
        return None
    first = users[0]
    if first.dtype is not float32 or not all(_same_scale(u, first) for u in users):
        return None
    ends = np.iinfo(node.dtype.numpy)
    made = input_node(node.type.with_dtype(float32), node.params["name"])
    given = (made, *first.inputs[1:])
    return fake_quant(*given, low=int(ends.min), high=int(ends.max), ties="even")


def _same_scale(a: Node, b: Node) -> bool:
    """Return whether two nodes of levels have one scale."""
    for x, y in zip(a.inputs[1:], b.inputs[1:]):
        left, right = array_of(x), array_of(y)
        if left is None or right is None:
            if x is not y:
                return False
        elif left.size != right.size or (left.reshape(-1) != right.reshape(-1)).any():
            return False
    return True


def _rounded(node: Node) -> Node:
    """Return the rounded value of which a node has the levels."""
    return fake_quant(*node.inputs, **{k: node.params[k] for k in ("low", "high", "ties")})


def _signed(node: Node) -> Node:
    """Return `_rounded`, of levels with a sign where theirs have none: the same numbers."""
    made = _rounded(node)
    zero = array_of(node.inputs[2])
    if node.params["low"] != 0 or node.params["high"] != 255 or zero is None or zero.size != 1:
        return made
    offset = constant(float(zero.reshape(-1)[0]) - 128, float32)
    return fake_quant(*node.inputs[:2], offset, low=-128, high=127, ties=node.params["ties"])


def _node(node: Node, given: tuple[Node, ...]) -> Node:
    assert node.prim is not None or not node.inputs
    if node.prim is dequantize and node.dtype is float32:
        source = given[0]
        made = node if given == node.inputs else Node(node.prim, given, node.params, node.type, node.where)
        if source.prim is quantize and _same_scale(source, made):
            return _signed(source)
        array = array_of(source)
        if array is not None:
            return _constant(array, made)
    if node.prim is CONSTANT or given == node.inputs:
        return node
    assert node.prim is not None
    return Node(node.prim, given, node.params, node.type, node.where)


def _constant(levels: Array, node: Node) -> Node:
    """Return constant levels as rounded constants whose zero point is 0."""
    size, zero = (array_of(i) for i in node.inputs[1:])
    if size is None or zero is None:
        return node
    whole = levels.astype(np.int64) - np.rint(zero).astype(np.int64)
    real = (whole * size.astype(np.float64)).astype(np.float32)
    if levels.dtype == np.int32 or (whole != np.clip(whole, -(1 << 15), (1 << 15) - 1)).any():
        return literal(real, node)
    narrow = bool(((whole >= -128) & (whole <= 127)).all())
    low, high = (-128, 127) if narrow else (-(1 << 15), (1 << 15) - 1)
    held = literal(np.asarray(real.reshape(node.shape), order="C"), node)
    made: Node = fake_quant(held, node.inputs[1], constant(0.0, float32), low=low, high=high, ties="even")
    assert isinstance(made.type, TensorType)
    return made
