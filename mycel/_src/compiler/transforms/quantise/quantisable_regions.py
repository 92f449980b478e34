"""Finds what of a float graph can run in integers, and which values need a scale.

A *map* is a region of element-wise operations whose values depend on one value outside of it, its
*root*, and on numbers; so it is a function of one number, which a table of all levels gives. A map
that is a clamp needs no table where its root is a sum that is rescaled anyway: it is the ends of
the levels. An *anchor* is an operation that has an arithmetic of its own: a convolution or product
with its bias, a sum of two values, or an average. A *move* gives its operand's levels at other
places.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mycel._src.compiler.ir.dims import same
from mycel._src.compiler.ir.graph import Graph, Node, users_of
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.convolution.conv import conv
from mycel._src.compiler.prims.convolution.window import window_max, window_sum
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.prims.neural.normalization import softmax
from mycel._src.compiler.prims.neural.quantisation import dequantize, fake_quant, quantize, requantize
from mycel._src.compiler.prims.neural.recurrence import recurrence
from mycel._src.compiler.prims.reduce import reduce_max, reduce_sum
from mycel._src.compiler.transforms.graph_rewriting import use_counts
from mycel._src.compiler.transforms.quantise.batch_norm_folding import channels_of
from mycel._src.compiler.transforms.quantise.graph_freezing import array_of, is_fixed
from mycel._src.foundation.dtype import float32

__all__ = ["MOVES", "SUMS", "Average", "Linear", "Regions", "Sum", "evaluated", "state_weight_of", "weight_of"]

Array = np.ndarray[Any, Any]
MOVES = (S.RESHAPE, S.TRANSPOSE, S.SLICE, S.BROADCAST_TO, S.reverse, S.PAD, window_max, reduce_max, E.identity)
SUMS = (window_sum, reduce_sum)
_OWN = (fake_quant, quantize, dequantize, requantize)


class Linear(NamedTuple):
    """A convolution or product, with its bias as a constant where it has one."""

    base: Node
    bias: Node | None


class Sum(NamedTuple):
    """A sum of two values, or the `sign` of the second is negative."""

    left: Node
    right: Node
    sign: int


class Average(NamedTuple):
    """A sum over windows or axes, times a number, or with one for each position of windows."""

    total: Node
    factor: float | Array


@dataclass(frozen=True)
class Range:
    """The ends of a clamp."""

    low: float = -math.inf
    high: float = math.inf


def weight_of(node: Node) -> Node | None:
    """Return the weights of a convolution or product of a value with constants; None for others."""
    if node.prim not in (conv, matmul) or node.dtype is not float32:
        return None
    weight = node.inputs[1]
    return weight if is_fixed(weight) and (node.prim is conv or weight.type.rank == 2) else None


def state_weight_of(node: Node) -> Node | None:
    """Return the weights of a recurrence whose states lie between -1 and 1; None for others."""
    if node.prim is not recurrence or node.params["mode"] == "relu":
        return None
    p, weight, _, state = node.inputs[:4]
    while state.prim in (S.RESHAPE, S.TRANSPOSE, S.SLICE, S.BROADCAST_TO) and array_of(state) is None:
        state = state.inputs[0]
    begins = array_of(state)
    bounded = begins is not None and (not begins.size or float(np.abs(begins).max()) <= 1.0)
    return weight if bounded and p.dtype is float32 and is_fixed(weight) else None


def number_of(node: Node) -> float | None:
    """Return the value of a constant of one element; None for other nodes."""
    found = array_of(node)
    return float(found.reshape(-1)[0]) if found is not None and found.size == 1 and node.dtype.kind == "f" else None


def factor_of(node: Node, total: Node) -> float | Array | None:
    """Return what a sum is multiplied with or divided by: a number, or one for each position.

    `total` is the sum. Returns None for other nodes, and for numbers that are 0 or not finite.
    """
    number, array = number_of(node), array_of(node)
    if array is None or not array.size or not (np.isfinite(array).all() and array.all()):
        return None
    places = total.shape[2:]
    if number is not None or total.prim is not window_sum or any(type(d) is not int for d in places):
        return number
    is_wide = array.shape[-len(places) :] == places and all(d == 1 for d in array.shape[: -len(places)])
    return array.astype(np.float64).reshape(1, 1, *places) if is_wide else None


class Regions:
    """The maps, anchors and moves of a graph of floats.

    `trained` are inputs that are weights. What depends on them and on constants alone, `own`, is no
    value: it has no levels, and is no term of a sum of two values.
    """

    def __init__(self, graph: Graph, trained: frozenset[Node] = frozenset()) -> None:
        self.graph = graph
        self.own = _own(graph, trained)
        self.uses = use_counts(graph)
        self.anchors: dict[Node, Linear | Sum | Average] = {}
        self.roots: dict[Node, Node] = {}
        for node in graph.nodes:
            if not isinstance(node.type, TensorType):
                continue
            found = self._anchor(node)
            if found is not None:
                self.anchors[node] = found
            else:
                root = self._root(node)
                if root is not None:
                    self.roots[node] = root
        self.users = users_of(graph)
        self.results = frozenset(graph.outputs)

    def _anchor(self, node: Node) -> Linear | Sum | Average | None:
        if node.dtype is not float32:
            return None
        if weight_of(node) is not None or self.has_own_weight(node):
            return Linear(node, None)
        if node.prim in SUMS:
            return Average(node, 1.0)
        if node.prim in (E.add, E.sub):
            left, right = node.inputs
            found = self.anchors.get(left)
            if isinstance(found, Linear) and found.bias is None and self.uses[left] == 1 and node.prim is E.add:
                value = array_of(right)
                if value is not None and channels_of(value, found.base) is not None and node.type is left.type:
                    return Linear(found.base, right)
            apart = self._origin(left) is not self._origin(right) and not self.own.intersection((left, right))
            if not is_fixed(left) and not is_fixed(right) and apart:
                return Sum(left, right, 1 if node.prim is E.add else -1)
        if node.prim in (E.mul, E.div):
            first, other = node.inputs
            factor = factor_of(other, first) if isinstance(self.anchors.get(first), Average) else None
            if factor is not None and first.prim in SUMS and self.uses[first] == 1 and node.type is first.type:
                return Average(first, factor if node.prim is E.mul else 1.0 / factor)
        return None

    def has_own_weight(self, node: Node) -> bool:
        """Return whether a node is a convolution or product of a value with trained weights."""
        if node.prim not in (conv, matmul) or node.dtype is not float32 or node.inputs[0] in self.own:
            return False
        weight = node.inputs[1]
        return weight in self.own and (node.prim is conv or weight.type.rank == 2)

    def _origin(self, node: Node) -> Node:
        return self.roots.get(node, node)

    def _root(self, node: Node) -> Node | None:
        """Return the root of the map that a node belongs to; None where it is none of a map."""
        prim = node.prim
        if prim is None or not prim.elementwise or prim in _OWN or prim.effect:
            return None
        found = None
        for i in node.inputs:
            value = array_of(i)
            if value is not None:
                if value.size != 1:
                    return None
                continue
            origin = self._origin(i)
            if origin.dtype is not float32 or not same(i.shape, node.shape) or (found not in (None, origin)):
                return None
            found = origin
        return found

    def ends(self, root: Node) -> list[Node]:
        """Return the values of maps of `root` that something else uses."""
        inside = [n for n, r in self.roots.items() if r is root]
        return [
            n for n in inside if n in self.results or any(self.roots.get(u) is not root for u in self.users.get(n, ()))
        ]

    def fused_end(self, anchor: Node) -> Node:
        """Return the clamp that all of an anchor's uses lead to, else the anchor itself."""
        users = self.users.get(anchor, [])
        if anchor in self.results or not users or any(self.roots.get(u) is not anchor for u in users):
            return anchor
        ends = self.ends(anchor)
        return ends[0] if len(ends) == 1 and self.clamp(ends[0], anchor) is not None else anchor

    def clamp(self, node: Node, root: Node) -> Range | None:
        """Return the ends of the clamp that a value of a map is; None where it is another map."""
        if node is root:
            return Range()
        if node.prim in (E.maximum, E.minimum):
            for inner, other in (node.inputs, node.inputs[::-1]):
                value = number_of(other)
                found = None if value is None else self.clamp(inner, root)
                if found is not None and value is not None:
                    bound = max if node.prim is E.maximum else min
                    return Range(bound(found.low, value), bound(found.high, value))
        if node.prim is E.SELECT:
            condition, first, second = node.inputs
            return self._chosen(condition, first, second, root)
        return None

    def _chosen(self, condition: Node, first: Node, second: Node, root: Node) -> Range | None:
        """Return the clamp that a choice is of `first`, a number, beyond it, and `second`."""
        value, found = number_of(first), self.clamp(second, root)
        if value is None or found is None or condition.prim not in (E.le, E.lt, E.ge, E.gt):
            return None
        left, right = condition.inputs
        if left not in (root, second) or number_of(right) != value or not found.low <= value <= found.high:
            return None
        below = condition.prim in (E.le, E.lt)
        return Range(value, found.high) if below else Range(found.low, value)

    def is_move(self, node: Node) -> bool:
        """Return whether a node gives elements of its first operand at other places."""
        if node.prim not in MOVES or node.dtype is not float32 or is_fixed(node.inputs[0]) or node in self.own:
            return False
        return node.prim is not S.PAD or number_of(node.inputs[1]) is not None

    def source(self, node: Node) -> Node:
        """Return the value whose elements a node has."""
        while self.is_move(node):
            node = node.inputs[0]
        return node

    def is_part_of_gates(self, node: Node) -> bool:
        """Return whether a value only enters the gates of recurrences, beside their states."""
        users = [] if node in self.results else self.users.get(node, [])
        return bool(users) and all(
            self.is_part_of_gates(u)
            if self.is_move(u)
            else state_weight_of(u) is not None and node is u.inputs[0] and node not in u.inputs[1:]
            for u in users
        )

    def operands(self, node: Node) -> tuple[Node, ...]:
        """Return the values whose levels the arithmetic of a node takes; none where it has none."""
        found = self.anchors.get(node)
        if node in self.own:
            return ()
        if isinstance(found, Linear):
            return (found.base.inputs[0],)
        if isinstance(found, Sum):
            return (found.left, found.right)
        if isinstance(found, Average):
            return (found.total.inputs[0],)
        if node.prim is matmul and node.dtype is float32:
            return tuple(i for i in node.inputs if not is_fixed(i) and i not in self.own)
        if node.prim is softmax and node.dtype is float32:
            return node.inputs
        if node.prim is S.CONCAT and node.dtype is float32 and not any(is_fixed(i) for i in node.inputs):
            return () if self.own.intersection(node.inputs) else node.inputs
        return ()


def _own(graph: Graph, trained: frozenset[Node]) -> frozenset[Node]:
    """Return what depends on `trained` inputs and constants alone."""
    found = set(trained)
    if trained:
        for node in graph.nodes:
            weights = [i for i in node.inputs if array_of(i) is None]
            if weights and all(i in found for i in weights) and node.prim is not None and not node.prim.effect:
                found.add(node)
    return frozenset(found)


def evaluated(end: Node, root: Node, values: Array) -> Array:
    """Return a map at `values` of its root, in the type of its value."""
    known: dict[Node, Array] = {root: values}

    def value(node: Node) -> Array:
        found = known.get(node)
        if found is None:
            constant = array_of(node)
            if constant is not None:
                found = np.asarray(constant.reshape(-1)[0])
            else:
                assert node.prim is not None and node.prim.reference is not None
                with np.errstate(all="ignore"):
                    found = np.asarray(node.prim.reference(*[value(i) for i in node.inputs], **node.params))
            known[node] = found
        return found

    return np.broadcast_to(value(end), values.shape)
