"""Quantised training: the forward pass in integers, with straight-through gradients in floats.

Forward it is what `integer_lowering` makes: levels are computed from levels. Wherever levels become
floats for something that is not forward arithmetic, a gradient, they are `straight_through`: the
floats that the levels stand for, with the derivative of a stand-in. The stand-in of a value is the
operation of floats that it rounds, of operands that are such values themselves:

    value(y)       straight_through(dequantize(q), select(inside, conv(value(x), w), 0))

So the stand-in is there to be differentiated, and its own value is never asked for: its gradient
reads the levels of its operands, which are all that a training step keeps of the forward pass. A
clamp (ReLU) is differentiated by its result: a cotangent passes where the level lies `inside` of
the clamp. What is computed in floats and rounded passes where it is not clipped either.

Trained weights are floats. In a convolution or product of levels they are rounded when the graph
runs; the sum becomes floats, to which trained biases are added.
"""

from __future__ import annotations

import math

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import constant
from mycel._src.compiler.prims.convolution.conv import conv
from mycel._src.compiler.prims.neural.quantisation import (
    dequantize,
    fake_quant,
    int_conv,
    int_matmul,
    quantize,
    straight_through,
)
from mycel._src.compiler.transforms.graph_rewriting import rewrite
from mycel._src.compiler.transforms.quantise import integer_arithmetic
from mycel._src.compiler.transforms.quantise.graph_freezing import array_of, literal
from mycel._src.compiler.transforms.quantise.integer_arithmetic import INT32, Levels, Total
from mycel._src.compiler.transforms.quantise.integer_lowering import Ends, Lowered, Lowering
from mycel._src.compiler.transforms.quantise.quantisable_regions import Linear, Range
from mycel._src.compiler.transforms.quantise.scales import Scale
from mycel._src.foundation.dtype import float32

__all__ = ["lowered_for_training", "without_stand_ins"]


def lowered_for_training(graph: Graph, trained: frozenset[Node], rounding: str = "single") -> Lowered:
    """Return the graph of integers of a graph with rounded values, with derivatives of floats.

    `trained` are the inputs that are weights; `rounding` is that of `requantize`.
    """
    return _Learning(graph, rounding, (frozenset(), frozenset()), trained).made()


def without_stand_ins(graph: Graph) -> Graph:
    """Return what of a graph is computed when it runs; the graph itself where that is all."""
    return rewrite(graph, lambda _: lambda old, new: new.inputs[0] if old.prim is straight_through else new)


class _Learning(Lowering):
    """The change of a graph, whose values in floats have derivatives.

    `graph`, `rounding`, `ends` and `trained` are as for `Lowering`.
    """

    def __init__(self, graph: Graph, rounding: str, ends: Ends, trained: frozenset[Node]) -> None:
        super().__init__(graph, rounding, ends, trained)
        self.totals: dict[Node, Total | None] = {}

    def total(self, node: Node) -> Total | None:
        """Return a sum of levels, the same one each time."""
        if node not in self.totals:
            self.totals[node] = super().total(node)
        return self.totals[node]

    def run(self, graph: Graph) -> Graph:
        return without_stand_ins(graph)

    def needs(self, node: Node) -> tuple[Node, ...]:
        found = self.known.get(node)
        if found is None or self.regions.is_move(node):
            return node.inputs
        return () if array_of(node.inputs[0]) is not None else (self._source(node)[0],)

    def value_from(self, node: Node) -> Node:
        found = self.known.get(node)
        if found is not None:
            plain = super().value_from(node)
            if self.regions.is_move(node):
                return straight_through(plain, self._in_floats(node))
            if array_of(node.inputs[0]) is not None:
                return plain
            return straight_through(plain, self._stand_in(node, found))
        total = self.total(node)
        if total is not None:
            return straight_through(super().value_from(node), self._in_floats(node))
        own = self._with_trained_weights(node)
        if own is not None:
            # Trained weights are in memory as floats: gradients of what they meet read those.
            x, weight = self.real[node.inputs[0]], self.real[node.inputs[1].inputs[0]]
            return straight_through(own, Node(node.prim, (x, weight), node.params, node.type, node.where))
        return super().value_from(node)

    def _in_floats(self, node: Node) -> Node:
        """Return an operation of floats, of operands that are rounded where they have levels."""
        given = tuple([self.real[i] for i in node.inputs])
        same = all(a is b for a, b in zip(given, node.inputs))
        return node if same else Node(node.prim, given, node.params, node.type, node.where)

    def _source(self, node: Node) -> tuple[Node, Range | None]:
        """Return what a rounded value is differentiated as, and the clamp between them, if any."""
        inner = node.inputs[0]
        root = self.regions.roots.get(inner, inner)
        ends = self.regions.clamp(inner, root)
        return (inner, None) if ends is None else (root, ends)

    def _stand_in(self, node: Node, found: Levels) -> Node:
        source, ends = self._source(node)
        real, scale = self.real[source], found.scale
        low, high = (scale.low, scale.high) if ends is None else integer_arithmetic.cut(scale, ends)
        # A value of floats may be anything; a sum of levels was seen to fit, but for its clamp.
        floats = found.node.prim is quantize
        inside: Node | None = None
        if floats or (ends is not None and not math.isinf(ends.low)):
            inside = E.gt(found.node, constant(low, scale.dtype))
        if floats or (ends is not None and not math.isinf(ends.high)):
            below = E.lt(found.node, constant(high, scale.dtype))
            inside = below if inside is None else E.logical_and(inside, below)
        return real if inside is None else E.select(inside, real, E.zero_like(real))

    def _with_trained_weights(self, node: Node) -> Node | None:
        """Return a product of levels with weights that are rounded now; None for other nodes."""
        found = self.regions.anchors.get(node)
        if not isinstance(found, Linear) or found.base is not node or not self.regions.has_own_weight(node):
            return None
        weight, x = node.inputs[1], self.levels(node.inputs[0])
        if weight.prim is not fake_quant or x is None or x.scale.size.size != 1:
            return None
        value, size, zero = self.real[weight].inputs
        low, high = weight.params["low"], weight.params["high"]
        is_conv = node.prim is conv
        count = math.prod(weight.shape[1:]) if is_conv else weight.shape[0]
        reach = max(x.scale.high - x.scale.zero, x.scale.zero - x.scale.low)
        if count * high * reach > INT32[1]:
            return None
        kind = Scale(np.float32(1).reshape(()), 0, low, high).dtype
        levels = quantize(value, size, zero, low=low, high=high, ties="even", dtype=kind)
        if is_conv:
            total = int_conv(x.node, levels, zero=x.scale.zero, **node.params)
        else:
            total = int_matmul(x.node, levels, a_zero=x.scale.zero, b_zero=0)
        # A factor for each channel, along the axis of channels.
        places = () if size.type.size == 1 else (size.type.size,) + (1,) * (node.type.rank - 2 if is_conv else 0)
        factor = E.mul(S.reshape(size, places), literal(np.asarray(x.size, np.float32)))
        return dequantize(total, factor, constant(0.0, float32))
