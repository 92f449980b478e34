"""Lowers a graph with fake quantisation (`fake_quant`) to a graph of integers.

A rounded value becomes its integers (*levels* of its scale). Where what it rounds is an operation
with an arithmetic of levels, and the operands are levels as well, the levels are computed from the
operands' levels; else the value is computed in floats and quantised. So a graph is integers between
the values that have a scale, and as it was elsewhere. What stays in floats although its operands
are levels is listed, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, at, input_node
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import GET_ITEM, constant
from mycel._src.compiler.prims.convolution.conv import conv
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.prims.neural.normalization import softmax
from mycel._src.compiler.prims.neural.quantisation import dequantize, fake_quant, quantize
from mycel._src.compiler.prims.neural.recurrence import KEPT, recurrence
from mycel._src.compiler.transforms.quantise import integer_arithmetic
from mycel._src.compiler.transforms.quantise.graph_freezing import array_of, literal
from mycel._src.compiler.transforms.quantise.integer_arithmetic import Levels, Total
from mycel._src.compiler.transforms.quantise.integer_recurrence import recurrent
from mycel._src.compiler.transforms.quantise.quantisable_regions import (
    Average,
    Linear,
    Range,
    Regions,
    Sum,
    evaluated,
    state_weight_of,
)
from mycel._src.compiler.transforms.quantise.scales import Scale, levels_of
from mycel._src.foundation.dtype import float32

__all__ = ["Ends", "Lowered", "Lowering", "lowered", "scale_of"]

Array = np.ndarray[Any, Any]
# The numbers of inputs and of outputs that are levels.
Ends = tuple[frozenset[int], frozenset[int]]
# Levels for which a table is made.
MOST_ENTRIES = 256


@dataclass
class Lowered:
    """A graph of integers, what its ends stand for, and what stayed in floats.

    `inputs` and `outputs` have the scales of those that are levels, by number. `floats` has pairs
    of an operation and the reason why it is computed in floats.
    """

    graph: Graph
    inputs: dict[int, Scale] = field(default_factory=dict)
    outputs: dict[int, Scale] = field(default_factory=dict)
    floats: list[tuple[Node, str]] = field(default_factory=list)


def lowered(graph: Graph, rounding: str = "single", integer_ends: bool | Ends = False) -> Lowered:
    """Return the graph of integers of a graph with rounded values.

    `rounding` is that of `requantize`. With `integer_ends` inputs that are only rounded, and
    outputs that are rounded values, are levels themselves: all, or those with the given numbers.
    """
    if isinstance(integer_ends, bool):
        several = (graph.inputs, graph.outputs) if integer_ends else ((), ())
        integer_ends = (frozenset(range(len(several[0]))), frozenset(range(len(several[1]))))
    return Lowering(graph, rounding, integer_ends).made()


class Lowering:
    """The change of a graph of rounded values into one of integers.

    `rounding` and `ends` are as for `lowered`; `trained` are inputs that are weights.
    """

    def __init__(self, graph: Graph, rounding: str, ends: Ends, trained: frozenset[Node] = frozenset()) -> None:
        self.graph, self.rounding = graph, rounding
        self.regions = Regions(graph, trained)
        self.known: dict[Node, Levels | None] = {}
        self.real: dict[Node, Node] = {}
        self.results_of: dict[Node, tuple[Node, ...]] = {}
        self.result = Lowered(graph)
        self.inputs = list(graph.inputs)
        self.closed = ends[1]
        for k, node in enumerate(graph.inputs):
            if k in ends[0]:
                users = self.regions.users.get(node, [])
                if len(users) == 1 and node not in self.regions.results and scale_of(users[0]) is not None:
                    self._open(k, node, users[0])

    def _open(self, number: int, node: Node, user: Node) -> None:
        scale = scale_of(user)
        assert scale is not None
        self.inputs[number] = input_node(node.type.with_dtype(scale.dtype), node.params["name"])
        self.known[user] = Levels(self.inputs[number], scale)
        self.result.inputs[number] = scale

    def made(self) -> Lowered:
        for node in self.graph.inputs:
            self.real[node] = node
        # In the order of the graph, so that nothing is deep.
        for node in self.graph.nodes:
            self.levels(node)
        outputs = []
        for k, node in enumerate(self.graph.outputs):
            found = self.levels(node)
            if k in self.closed and found is not None:
                self.result.outputs[k] = found.scale
                outputs.append(found.node)
            else:
                outputs.append(self.value(node))
        self.result.graph = Graph(self.inputs, outputs, self.graph.name)
        for node in self.run(self.result.graph).nodes:
            types = node.type if isinstance(node.type, tuple) else (node.type,)
            if node.prim is None or not any(isinstance(t, TensorType) and t.dtype.is_floating for t in types):
                continue
            if node.prim in (conv, matmul):
                reason = "an operand has no scale, or its sums may not fit in 32 bits"
                if node.dtype is not float32:
                    reason = f"it is of {node.dtype.name}; networks of float32 become integers"
                self.result.floats.append((node, reason))
            elif node.prim.work is not None or node.prim is recurrence:
                self.result.floats.append((node, "no arithmetic of levels"))
        return self.result

    def run(self, graph: Graph) -> Graph:
        """Return what of a graph is computed when it runs: all of it."""
        return graph

    def value(self, node: Node) -> Node:
        """Return a value in floats; operations of floats are asked for only here."""
        pending = [node]
        while pending:
            last = pending[-1]
            missing = [] if last in self.real else [i for i in self.needs(last) if i not in self.real]
            if missing:
                pending += missing
                continue
            pending.pop()
            if last not in self.real:
                with at(last.where):
                    self.real[last] = self.value_from(last)
        return self.real[node]

    def needs(self, node: Node) -> tuple[Node, ...]:
        """Return the nodes whose values in floats the value of a node is computed from."""
        if self.known.get(node) is not None or self.total(node) is not None:
            return ()
        if node.prim is recurrence and self._state_weight(node) is not None:
            return (node.inputs[0], *node.inputs[2:])
        return node.inputs

    def _state_weight(self, node: Node) -> tuple[Array, Scale] | None:
        """Return the weights of a recurrence in levels, and the scale; None where it has none."""
        weight = state_weight_of(node)
        scale = None if weight is None else scale_of(weight)
        array = None if weight is None or scale is None else array_of(weight.inputs[0])
        if array is None or scale is None or scale.size.size not in (1, array.shape[0]) or scale.zero:
            return None
        # What only derivatives read is no result of the loop.
        kept = KEPT[node.params["mode"]]
        read = [u.params["index"] for u in self.regions.users.get(node, []) if u.prim is GET_ITEM]
        return None if any(k in kept for k in read) else (array, scale)

    def value_from(self, node: Node) -> Node:
        """Return a value in floats, given those of what it `needs`."""
        found = self.known.get(node)
        if found is not None:
            size, zero = literal(np.asarray(found.scale.size, np.float32)), constant(float(found.scale.zero), float32)
            return dequantize(found.node, size, zero)
        total = self.total(node)
        if total is not None:
            return dequantize(total.node, literal(total.size.astype(np.float32)), constant(0.0, float32))
        if node.prim is recurrence and (state := self._state_weight(node)) is not None:
            operands = tuple([self.real[i] for i in self.needs(node)])
            self.results_of[node] = recurrent(node, *state, operands)
            return self.results_of[node][0]
        if node.prim is GET_ITEM and node.inputs[0] in self.results_of:
            number: int = node.params["index"]
            return self.results_of[node.inputs[0]][number]
        given = tuple([self.real[i] for i in node.inputs])
        linear = node.prim in (conv, matmul)
        if not linear and self.regions.operands(node) and any(self.known.get(i) is not None for i in node.inputs):
            self.result.floats.append((node, "no arithmetic of levels for these operands"))
        same = all(a is b for a, b in zip(given, node.inputs))
        return node if same else Node(node.prim, given, node.params, node.type, node.where)

    def levels(self, node: Node) -> Levels | None:
        """Return the levels of a value; None where it has no scale."""
        if node not in self.known:
            with at(node.where):
                self.known[node] = self._levels(node)
        return self.known[node]

    def _levels(self, node: Node) -> Levels | None:
        scale = scale_of(node)
        if scale is None:
            return self._moved(node) if self.regions.is_move(node) else None
        inner = node.inputs[0]
        array = array_of(inner)
        if array is not None:
            return Levels(literal(levels_of(array, scale), node), scale)
        if scale.size.size != 1:
            return None
        scale = scale._replace(size=scale.size.reshape(()))
        made = self._computed(inner, scale)
        if made is None:
            p = node.params
            size, zero = (literal(np.asarray(v, np.float32)) for v in (scale.size, scale.zero))
            made = quantize(
                self.value(inner), size, zero, low=p["low"], high=p["high"], ties=p["ties"], dtype=scale.dtype
            )
        return Levels(made, scale)

    def _moved(self, node: Node) -> Levels | None:
        found = self.levels(node.inputs[0])
        if found is None or found.scale.size.size != 1:
            return None
        return self._applied(node, found)

    def _applied(self, node: Node, found: Levels) -> Levels:
        """Return a move of levels."""
        given = [found.node]
        if node.prim is S.PAD:
            array = array_of(node.inputs[1])
            assert array is not None
            given.append(literal(levels_of(array, found.scale)))
        assert node.prim is not None
        return Levels(node.prim(*given, **node.params), found.scale)

    def _computed(self, node: Node, scale: Scale) -> Node | None:
        """Return what `node` computes in the levels of `scale`, by arithmetic of levels."""
        regions = self.regions
        if regions.is_move(node) and self.levels(node) is None:
            inner = self._computed(node.inputs[0], scale)
            return None if inner is None else self._applied(node, Levels(inner, scale)).node
        root = regions.roots.get(node, node)
        ends = regions.clamp(node, root)
        if ends is not None and (root in regions.anchors or root.prim is matmul):
            return self._anchored(root, scale, ends)
        if node.prim is softmax:
            x = self.levels(node.inputs[0])
            axis = node.params["axis"]
            fits = float(scale.size) == 1 / 256 and scale[1:] == (-128, -128, 127)
            if x is not None and fits and x.scale.high - x.scale.low < MOST_ENTRIES and type(node.shape[axis]) is int:
                return integer_arithmetic.soft_maximum(x, axis, scale)
            return None
        if node.prim is S.CONCAT:
            parts = [self.levels(i) for i in node.inputs]
            if any(p is None or p.scale.size.size != 1 for p in parts):
                return None
            return S.concat(
                [integer_arithmetic.joined(p, scale, self.rounding) for p in parts if p is not None],
                node.params["axis"],
            )
        x = self.levels(root)
        if x is None or root is node:
            return None if x is None else integer_arithmetic.joined(x, scale, self.rounding)
        if x.scale.size.size != 1 or x.scale.high - x.scale.low >= MOST_ENTRIES:
            return None
        return integer_arithmetic.table(x, lambda values: evaluated(node, root, values), scale)

    def _anchored(self, node: Node, scale: Scale, ends: Range) -> Node | None:
        found = self.regions.anchors.get(node)
        if isinstance(found, Sum):
            a, b = self.levels(found.left), self.levels(found.right)
            if a is None or b is None or a.scale.size.size != 1 or b.scale.size.size != 1:
                return None
            return integer_arithmetic.summed(a, b, found.sign, scale, self.rounding, ends)
        if isinstance(found, Average):
            total = found.total
            x = self.levels(total.inputs[0])
            if x is None or x.scale.size.size != 1 or total.prim is None:
                return None
            prim, params = total.prim, total.params
            return integer_arithmetic.averaged(
                x, lambda whole: prim(whole, **params), found.factor, scale, self.rounding, ends
            )
        made = self.total(node)
        return None if made is None else integer_arithmetic.rescaled(made, scale, self.rounding, ends)

    def total(self, node: Node) -> Total | None:
        """Return a convolution or product of levels as a sum; None for other nodes."""
        found = self.regions.anchors.get(node)
        if isinstance(found, Linear):
            x, weight = self.levels(found.base.inputs[0]), found.base.inputs[1]
            scale, array = scale_of(weight), array_of(weight.inputs[0]) if weight.prim is fake_quant else None
            if x is None or scale is None or array is None or x.scale.size.size != 1:
                return None
            bias = None
            if found.bias is not None:
                held = array_of(found.bias)
                assert held is not None
                count = array.shape[0] if found.base.prim is not matmul else array.shape[1]
                bias = np.broadcast_to(held.reshape(-1), (count,))
            return integer_arithmetic.total_of(found.base, bias, x, array, scale)
        if node.prim is matmul and found is None:
            a, b = (self.levels(i) for i in node.inputs)
            if a is not None and b is not None and a.scale.size.size == 1 == b.scale.size.size:
                return integer_arithmetic.product_of(a, b)
        return None


def scale_of(node: Node) -> Scale | None:
    """Return the scale to which a node rounds, if it is constant."""
    if node.prim is not fake_quant or node.dtype is not float32:
        return None
    size, zero = (array_of(i) for i in node.inputs[1:])
    if size is None or zero is None or not zero.size or (zero != zero.reshape(-1)[0]).any():
        return None
    return Scale(size, int(zero.reshape(-1)[0]), node.params["low"], node.params["high"])
