"""Freezing: replaces some inputs of a graph by constants, and folds all that depends on constants.

Constants of any size are computed here, unlike in `transforms.optimisation.constant_folding`,
since they are the weights that are quantised; what depends on a symbolic size, has an effect
or draws random numbers stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, substitute, toposort
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.base import CONSTANT, Literal, Primitive, constant
from mycel._src.compiler.prims.distributed.collectives import COLLECTIVES
from mycel._src.compiler.prims.elementwise import SELECT
from mycel._src.compiler.prims.neural.quantisation import fake_quant
from mycel._src.compiler.prims.random import random_bits
from mycel._src.compiler.prims.shape import BROADCAST_TO, RESHAPE, TRANSPOSE
from mycel._src.compiler.transforms.expansion import without_calls
from mycel._src.compiler.transforms.graph_rewriting import holds_graphs, sizes_in

__all__ = ["array_of", "frozen", "is_fixed", "literal"]

Array = np.ndarray[Any, Any]
# Levels of constants are what the constants are made for.
_LEFT = (random_bits, fake_quant, *COLLECTIVES)


def literal(array: Array, like: Node | None = None) -> Node:
    """Return a constant node of an array, at the position of `like`."""
    made = constant(array)
    return made if like is None else Node(CONSTANT, (), {"value": Literal(array)}, made.type, like.where)


def array_of(node: Node) -> Array | None:
    """Return the value of a constant, also of one that is broadcast; None for other nodes."""
    if node.prim is CONSTANT:
        return node.value
    if node.prim is BROADCAST_TO and node.inputs[0].prim is CONSTANT and node.type.is_static:
        return np.broadcast_to(node.inputs[0].value, node.shape)
    return None


def is_fixed(node: Node) -> bool:
    """Return whether a node is a constant, or a constant in the levels of a scale."""
    return array_of(node) is not None or (node.prim is fake_quant and all(array_of(i) is not None for i in node.inputs))


def frozen(graph: Graph, values: Mapping[Node, Array], kept: tuple[Primitive, ...] = ()) -> Graph:
    """Return `graph` with `values` in place of inputs, which it no longer takes.

    `values` are arrays by input, and what applies primitives in `kept` stays. Whatever else depends
    on constants alone is computed, and a choice by a constant condition is made.

    >>> from mycel._src.foundation.dtype import float32
    >>> from mycel._src.compiler.ir.graph import input_node
    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> x, w = (input_node(tensor_type((2,), float32), n) for n in "xw")
    >>> made = frozen(Graph([x, w], [x + w * w]), {w: np.array([2.0, 3.0], np.float32)})
    >>> len(made.inputs), made.outputs[0].inputs[1].value
    (1, array([4., 9.], dtype=float32))
    """
    inputs = [i for i in graph.inputs if i not in values]
    known = {i: literal(v, i) for i, v in values.items()}
    graph = without_calls(Graph(inputs, substitute(graph.outputs, known), graph.name))
    return Graph(inputs, computed(graph.outputs, inputs, kept), graph.name)


def computed(outputs: Sequence[Node], inputs: Sequence[Node], kept: tuple[Primitive, ...] = ()) -> list[Node]:
    """Return nodes with those that depend on constants alone replaced by their values, but for what
    applies primitives in `kept`.
    """
    image: dict[Node, Node] = {i: i for i in inputs}
    for node in toposort(outputs):
        if node in image:
            continue
        if node.prim is None or node.prim is CONSTANT:
            image[node] = node
            continue
        given = tuple([image[i] for i in node.inputs])
        image[node] = _made(node, given, kept)
    return [image[o] for o in outputs]


def _moved(node: Node, rounded: Node) -> Node | None:
    """Return rounded constants at other places as rounded constants; None where they are not."""
    array, size, zero = (array_of(i) for i in rounded.inputs)
    assert array is not None and size is not None and zero is not None
    shape = node.params.get("shape")
    if node.prim is TRANSPOSE:
        axes = node.params["permutation"]
        scales = [v if v.size == 1 else v.transpose(axes) for v in (size, zero) if v.size == 1 or v.ndim == len(axes)]
        array = array.transpose(axes)
    elif node.prim is RESHAPE and shape is not None and all(type(d) is int for d in shape):
        first = array.shape[:1] == shape[:1]
        scales = [
            v.reshape(()) if v.size == 1 else v.reshape(-1, *[1] * (len(shape) - 1))
            for v in (size, zero)
            if v.size == 1 or (first and v.shape[:1] == shape[:1] and v.size == shape[0])
        ]
        array = array.reshape(shape)
    else:
        return None
    if len(scales) != 2:
        return None
    parts = [literal(np.asarray(v, order="C"), i) for v, i in zip((array, *scales), rounded.inputs)]
    return Node(fake_quant, tuple(parts), rounded.params, node.type, rounded.where)


def _made(node: Node, given: tuple[Node, ...], kept: tuple[Primitive, ...]) -> Node:
    prim = node.prim
    assert prim is not None
    if prim is SELECT and given[0].prim is CONSTANT and given[0].value.size:
        if given[0].value.all() or not given[0].value.any():
            chosen = given[1] if given[0].value.all() else given[2]
            if chosen.type is node.type or chosen.shape == node.shape:
                return chosen
    arrays = [array_of(i) for i in given]
    fits = isinstance(node.type, TensorType) and node.type.is_static and prim is not BROADCAST_TO
    known = fits and bool(given) and all(a is not None for a in arrays) and prim.reference is not None
    if (
        known
        and not prim.effect
        and prim not in (*_LEFT, *kept)
        and not any(sizes_in(v) or holds_graphs(v) for v in node.params.values())
    ):
        assert prim.reference is not None
        with np.errstate(all="ignore"):
            return literal(np.asarray(prim.reference(*arrays, **node.params), order="C"), node)
    if given and given[0].prim is fake_quant and is_fixed(given[0]):
        moved = _moved(node, given[0])
        if moved is not None:
            return moved
    same = all(a is b for a, b in zip(given, node.inputs))
    return node if same else Node(prim, given, node.params, node.type, node.where)
