"""Batch-norm folding: folds normalisations, and other per-channel factors and terms, into weights.

Outside of training a normalisation is a factor and a term for each channel. Behind a convolution or
a product with constant weights the factor becomes part of the weights, and the terms one bias:

    (conv(x, w) - mean) * factor + shift  =  conv(x, w * factor) + (shift - mean * factor)

A chain of such operations is folded where each value has one user.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.convolution.conv import conv
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.prims.neural.quantisation import fake_quant
from mycel._src.compiler.transforms.graph_rewriting import use_counts
from mycel._src.compiler.transforms.quantise.graph_freezing import array_of, is_fixed, literal

__all__ = ["channel_axis", "channels_of", "fold_normalisations"]

Array = np.ndarray[Any, Any]


def channel_axis(node: Node) -> int:
    """Return the axis of the channels in the result of a convolution or product, from the end."""
    return 1 - node.type.rank if node.prim is conv else -1


def channels_of(array: Array, node: Node) -> Array | None:
    """Return what a constant has for each channel of the result of `node`, as a vector.

    Returns None where it differs along other axes too.
    """
    axis, count = channel_axis(node), node.shape[channel_axis(node)]
    if array.size == 1:
        return np.full(count, array.reshape(-1)[0], array.dtype)
    if array.ndim < -axis or array.size != array.shape[axis] or array.shape[axis] != count:
        return None
    return array.reshape(-1)


@dataclass
class _Chain:
    """What a value is: a factor and a term for each channel of a convolution or product."""

    base: Node
    factor: Array
    term: Array


def fold_normalisations(graph: Graph) -> Graph:
    """Return `graph` with factors and terms of channels in the weights and biases before them.

    Weights have to be constants (`frozen`). Folded weights are computed in float64 and rounded.

    >>> from mycel._src.foundation.dtype import float32
    >>> from mycel._src.compiler.ir.graph import input_node
    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> x = input_node(tensor_type((1, 2), float32), "x")
    >>> w = literal(np.ones((2, 3), np.float32))
    >>> folded = fold_normalisations(Graph([x], [(matmul(x, w) + 1.0) * 2.0]))
    >>> [n.op for n in folded.nodes if not n.is_constant]
    ['matmul', 'add']
    """
    uses = use_counts(graph)
    chains: dict[Node, _Chain] = {}
    image: dict[Node, Node] = {i: i for i in graph.inputs}

    def real(node: Node) -> Node:
        found = image.get(node)
        if found is None:
            found = image[node] = _written(chains[node], node)
        return found

    for node in graph.nodes:
        chain = _extended(node, chains, uses)
        if chain is not None:
            chains[node] = chain
            if node.prim in (conv, matmul):
                # Its operands as they are now.
                base = Node(node.prim, tuple([real(i) for i in node.inputs]), node.params, node.type, node.where)
                chains[node] = _Chain(base, chain.factor, chain.term)
            continue
        given = tuple([real(i) for i in node.inputs])
        same = all(a is b for a, b in zip(given, node.inputs))
        image[node] = node if same else Node(node.prim, given, node.params, node.type, node.where)
    return Graph(graph.inputs, [real(o) for o in graph.outputs], graph.name)


def _extended(node: Node, chains: dict[Node, _Chain], uses: dict[Node, int]) -> _Chain | None:
    if node.prim in (conv, matmul):
        if not is_fixed(node.inputs[1]) or not node.dtype.is_floating or node.dtype.itemsize < 4:
            return None
        if node.prim is matmul and node.inputs[1].type.rank != 2:
            return None
        count = node.shape[channel_axis(node)]
        return _Chain(node, np.ones(count), np.zeros(count))
    if node.prim not in (E.add, E.sub, E.mul, E.div) or len(node.inputs) != 2:
        return None
    place = 0 if node.inputs[0] in chains else 1
    inner, other = node.inputs[place], array_of(node.inputs[1 - place])
    if inner not in chains or other is None or uses[inner] != 1 or node.type is not inner.type:
        return None
    chain = chains[inner]
    found = channels_of(other, chain.base)
    if found is None or (node.prim is E.div and place == 1):
        return None
    value = found.astype(np.float64)
    if node.prim is E.mul:
        return _Chain(chain.base, chain.factor * value, chain.term * value)
    if node.prim is E.div:
        with np.errstate(all="ignore"):
            return _Chain(chain.base, chain.factor / value, chain.term / value)
    if node.prim is E.add:
        return _Chain(chain.base, chain.factor, chain.term + value)
    sign = -1.0 if place == 1 else 1.0
    return _Chain(chain.base, chain.factor * sign, (chain.term - value) * sign)


def _scaled(weight: Node, factor: Array) -> Node:
    """Return constant weights times factors; those that are rounded keep their levels."""
    if weight.prim is fake_quant:
        held, size, zero = weight.inputs
        return fake_quant(_scaled(held, factor), _scaled(size, factor), zero, **weight.params)
    array = array_of(weight)
    assert array is not None
    return literal((array.astype(np.float64) * factor).astype(array.dtype), weight)


def _written(chain: _Chain, node: Node) -> Node:
    """Return a chain as a convolution or product with a bias."""
    base = chain.base
    if not (chain.factor == 1).all():
        weight = base.inputs[1]
        shape = (-1,) + (1,) * (weight.type.rank - 1) if base.prim is conv else (1, -1)
        scaled = _scaled(weight, chain.factor.reshape(shape))
        base = Node(base.prim, (base.inputs[0], scaled), base.params, base.type, base.where)
    if not chain.term.any():
        return base
    term = chain.term.astype(node.dtype.numpy)
    shape = (-1,) + (1,) * (base.type.rank - 2) if base.prim is conv else (-1,)
    return Node(E.add, (base, literal(term.reshape(shape), node)), {}, node.type, node.where)
