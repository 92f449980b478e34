"""Inserts fake quantisation: chooses the values that get a scale, and rounds these and the weights.

`points` chooses values: what anchors, maps, soft-maxes and joins compute and what they take, back
through moves. `inserted` rounds these and the weights (`fake_quant`), which is the graph that
quantised training trains and that `integer_lowering` turns into integer arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, at
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import constant
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.prims.neural.quantisation import fake_quant
from mycel._src.compiler.prims.reduce import reduce_max
from mycel._src.compiler.transforms.quantise.graph_freezing import array_of, is_fixed, literal
from mycel._src.compiler.transforms.quantise.quantisable_regions import Linear, Regions, state_weight_of
from mycel._src.compiler.transforms.quantise.scales import LEAST, Scale, weight_scale
from mycel._src.foundation.dtype import float32

__all__ = ["WeightScale", "inserted", "points", "recurrences_of", "rounded", "rounded_now", "weight_axis", "weights_of"]

Array = np.ndarray[Any, Any]
WeightScale = Callable[[Node, Array], tuple[Array, Scale] | None]


def points(graph: Graph, skipped: frozenset[Node] = frozenset(), trained: frozenset[Node] = frozenset()) -> list[Node]:
    """Return the values of a graph of floats that get a scale, in their order.

    Anchors in `skipped` stay operations of floats. `trained` are inputs that are weights: what is
    computed with them gets a scale only where other operations read it as levels.
    """
    regions = Regions(graph, trained)
    chosen: dict[Node, None] = {}

    def is_rounded(node: Node) -> bool:
        """Whether a value has a scale already, also behind moves of it."""
        users = [] if node in regions.results else regions.users.get(node, [])
        moved = [u for u in users if regions.is_move(u)]
        return node.prim is fake_quant or (
            bool(users) and all(u.prim is fake_quant or (u in moved and is_rounded(u)) for u in users)
        )

    def need(node: Node) -> None:
        source = regions.source(node)
        if source.dtype is float32 and not is_fixed(source) and source not in regions.own and not is_rounded(source):
            chosen[source] = None

    def is_met(node: Node) -> bool:
        """Whether trained numbers are in what an anchor computes, or meet its result next."""
        users = regions.users.get(node, ())
        return regions.has_own_weight(node) or any(regions.own.intersection(u.inputs) for u in users)

    for node in graph.nodes:
        operands = () if node in skipped else regions.operands(node)
        if operands and not _is_inner(regions, node):
            for i in operands:
                need(i)
            end = regions.fused_end(node) if node in regions.anchors else node
            # Gates take sums in 32 bits.
            if not is_rounded(end) and not is_met(node) and not regions.is_part_of_gates(end):
                chosen[end] = None
    # Maps of values that have levels by now, in their order, which is that of the graph.
    for node in graph.nodes:
        root = regions.roots.get(node)
        if root is not None and node.dtype is float32 and _has_scale(regions.source(root), chosen):
            if node in regions.ends(root) and regions.fused_end(root) is not node and not is_rounded(node):
                chosen[node] = None
    order = {n: k for k, n in enumerate((*graph.inputs, *graph.nodes))}
    return sorted(chosen, key=lambda n: order[n])


def _has_scale(node: Node, chosen: Mapping[Node, None]) -> bool:
    return node in chosen or node.prim is fake_quant


def _is_inner(regions: Regions, node: Node) -> bool:
    """Return whether an anchor is only a part of another, as a product before its bias."""
    return any(
        isinstance(found, Linear)
        and found.base is node is not user
        or getattr(found, "total", user) is node is not user
        for user in regions.users.get(node, ())
        for found in (regions.anchors.get(user),)
    )


def weights_of(graph: Graph, trained: frozenset[Node] = frozenset()) -> list[Node]:
    """Return the convolutions and products of a graph with constant or `trained` weights, in their
    order.
    """
    anchors = Regions(graph, trained).anchors
    return [n for n, found in anchors.items() if isinstance(found, Linear) and found.base is n]


def weight_axis(node: Node) -> int:
    """Return the axis of the results of a layer in its weights."""
    return -1 if node.prim is matmul else 0


def recurrences_of(graph: Graph) -> list[Node]:
    """Return the recurrences of a graph whose states can be levels."""
    return [n for n in graph.nodes if state_weight_of(n) is not None]


def rounded(node: Node, scale: Scale, ties: str = "even") -> Node:
    """Return a value rounded to the levels of a scale."""
    with at(node.where):
        size, zero = literal(np.asarray(scale.size, np.float32)), constant(float(scale.zero), float32)
        return fake_quant(node, size, zero, low=scale.low, high=scale.high, ties=ties)


def rounded_now(node: Node, axis: int | None, bits: int = 8) -> Node:
    """Return trained weights rounded by the magnitudes that they have when the graph runs.

    Each channel along `axis` has a scale, or (None) all have one, in `bits` bits. The derivative
    takes scales for constants.
    """
    last = (1 << (bits - 1)) - 1
    axes = tuple(k for k in range(node.type.rank) if axis is None or k != axis % node.type.rank)
    with at(node.where):
        largest = reduce_max(E.abs_(E.stop_gradient(node)), axes=axes, keepdims=True)
        size = E.maximum(E.div(largest, float(last)), LEAST)
        return fake_quant(node, size, constant(0.0, float32), low=-last, high=last, ties="even")


def inserted(
    graph: Graph,
    scales: Mapping[Node, Scale],
    weight: WeightScale | None = None,
    ties: str = "even",
    trained: frozenset[Node] = frozenset(),
    own_weight: Callable[[Node], Node] = lambda node: node.inputs[1],
) -> Graph:
    """Return `graph` with the values in `scales` rounded, and the weights of what reads these.

    `weight` gives, for a convolution or product and the array of its weights, the weights to round
    and their scale, or None where they stay; without it each channel is symmetric in 8 bits. `ties`
    is as for `fake_quant`. `trained` are inputs that are weights, and `own_weight` gives what
    stands for such weights of a convolution or product.
    """
    weight = weight or (lambda node, array: (array, weight_scale(array, weight_axis(node))))
    linear = {*weights_of(graph, trained), *recurrences_of(graph)}
    image: dict[Node, Node] = {}

    def enter(node: Node, made: Node) -> None:
        image[node] = rounded(made, scales[node], ties) if node in scales else made

    for node in graph.inputs:
        enter(node, node)
    for node in graph.nodes:
        given = [image[i] for i in node.inputs]
        if node in linear:
            array = array_of(node.inputs[1])
            found = None if array is None else weight(node, array)
            if found is not None:
                given[1] = rounded(literal(found[0], node.inputs[1]), found[1])
            elif array is None and trained:
                given[1] = own_weight(node)
        same = all(a is b for a, b in zip(given, node.inputs))
        enter(node, node if same else Node(node.prim, tuple(given), node.params, node.type, node.where))
    return Graph(graph.inputs, [image[o] for o in graph.outputs], graph.name)
