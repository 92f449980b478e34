"""Channel dependence analysis: which parts of parameters can be removed together, by the graph.

Each axis of a parameter begins with a channel for each position (`channel_coupling`), and axes of
other values get theirs from operands. What an operation iterates over (`prims.factors`) says which
axes meet: their channels are joined position by position. So channels go through sums,
normalisations and activations by what primitives say of themselves, and rules here are for those
that move positions: reshapes, slices, joins, groups of convolutions, gates of recurrent layers.

An axis that is summed over may lose positions where one operand is zero there, as weights are whose
channels are masked. Any other mixing (a soft-max or mean over channels, sorting) locks its
channels, and so do data, results and constants that differ by channel. So removing a channel gives
what masking it gave, whatever the activations are.

A reshape that takes an axis apart, as into heads and their columns, keeps the channels of one part:
the outermost, or of three the second; other parts are tried where that leaves nothing to remove.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dim_values import hint
from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.base import CONSTANT, GET_ITEM
from mycel._src.compiler.prims.convolution.conv import conv, conv_grad_input
from mycel._src.compiler.prims.convolution.window import window_max
from mycel._src.compiler.prims.factors import Factor, Place, factors_of, result_types
from mycel._src.compiler.prims.indexing.index import take
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.prims.neural.attention import attention
from mycel._src.compiler.prims.neural.normalization import moments
from mycel._src.compiler.prims.neural.recurrence import recurrence
from mycel._src.compiler.prims.reduce import reduce_max, reduce_min
from mycel._src.compiler.prims.shape import BROADCAST_TO, CONCAT, RESHAPE, SLICE
from mycel.compression.channel_coupling import Axis, Channels

__all__ = ["Dependences", "dependences"]

Array = np.ndarray[Any, Any]
Axes = list[Axis | None]
_PASSES = 4
_BILINEAR = (matmul, conv, conv_grad_input)
# Besides linear operations: those whose results are zero where the operand is.
_KEEPS_ZERO = (window_max, reduce_max, reduce_min, moments)
# What a part of these computes depends on its place only along axes that are no plain factor.
_PLACED = (take, attention)


@dataclass
class Dependences:
    """The channels along the axes of every value of a graph.

    `values` has a list for each result of a node, with None for axes that lose nothing. `splits`
    are the reshapes that took an axis apart: the channels kept, and how many parts there were.
    """

    graph: Graph
    channels: Channels = field(default_factory=Channels)
    values: dict[Node, list[Axes]] = field(default_factory=dict)
    splits: dict[Node, tuple[Array, int]] = field(default_factory=dict)

    def of(self, node: Node, result: int = 0) -> Axes:
        """Return the channels along the axes of a value."""
        return self.values[node][result]

    def kept(self, node: Node, gone: Array, result: int = 0) -> list[Array | None]:
        """Return which positions along each axis stay without the channels that are `gone`.

        `gone` has a boolean for each channel, as `Channels.among` gives; None stands for axes that
        stay whole.
        """
        found: list[Array | None] = []
        for axis in self.of(node, result):
            stays = None if axis is None else ~gone[axis.channels]
            found.append(None if stays is None or stays.all() else stays)
        return found


def dependences(graph: Graph, parameters: Sequence[Node]) -> Dependences:
    """Return what can be removed together from the `parameters` of a graph, which are inputs."""
    choices: dict[Node, int] = {}
    for _ in range(_PASSES):
        found = _Pass(graph, parameters, choices).run()
        again = False
        for node, (channels, parts) in found.splits.items():
            if found.channels.locked(channels).all() and choices.get(node, 0) + 1 < parts:
                choices[node] = choices.get(node, 0) + 1
                again = True
        if not again:
            break
    return found


class _Pass:
    def __init__(self, graph: Graph, parameters: Sequence[Node], choices: dict[Node, int]) -> None:
        self.found = Dependences(graph)
        self.channels, self.values, self.choices = self.found.channels, self.found.values, choices
        self.parameters = set(parameters)

    def run(self) -> Dependences:
        graph = self.found.graph
        for node in graph.inputs:
            own = node in self.parameters and node.type.dtype.kind == "f"
            self.values[node] = [self._fresh(node.type) if own else [None] * node.type.rank]
        for node in graph.nodes:
            self.values[node] = self._results(node)
        for node in graph.outputs:
            for axes in self.values[node]:
                self._lock(axes, "it is a result of the network")
        return self.found

    def _fresh(self, kind: TensorType, zero: bool = True) -> Axes:
        return [Axis(self.channels.fresh(d), zero) if type(d) is int and d > 1 else None for d in kind.shape]

    def _lock(self, axes: Sequence[Axis | None], reason: str) -> None:
        for axis in axes:
            if axis is not None:
                self.channels.lock(axis.channels, reason)

    def _results(self, node: Node) -> list[Axes]:
        given = [self.values[i][0] for i in node.inputs]
        if node.prim is CONSTANT:
            return [self._constant(node.value)]
        if node.prim is GET_ITEM:
            return [self.values[node.inputs[0]][node.params["index"]]]
        if node.prim is RESHAPE:
            return [self._reshape(node, given[0])]
        if node.prim is BROADCAST_TO:
            return [self._broadcast(node, given[0])]
        if node.prim is SLICE:
            return [self._slice(node, given[0])]
        if node.prim is CONCAT:
            return [self._concat(node, given)]
        if node.prim in (conv, conv_grad_input) and node.params["groups"] != 1:
            return [self._grouped(node, given)]
        if node.prim is recurrence:
            return self._recurrence(node, given)
        return self._plain(node, given)

    # Rules of their own.

    def _constant(self, array: Array) -> Axes:
        """Return new channels along the axes along which a constant does not differ."""
        made: Axes = []
        for axis, size in enumerate(array.shape):
            same = size > 1 and bool((array == array.take([0], axis)).all())
            made.append(Axis(self.channels.fresh(size), bool((array == 0).all())) if same else None)
        return made

    def _broadcast(self, node: Node, given: Axes) -> Axes:
        old, new = node.inputs[0].shape, node.type.shape
        lead = len(new) - len(old)
        constant = node.inputs[0]
        zero = constant.prim is CONSTANT and not constant.value.any()
        made = self._fresh(TensorType((*new[:lead], *[1] * len(old)), node.dtype), zero)
        for k, (size, axis) in enumerate(zip(old, given)):
            wide = type(size) is int and size == 1 and type(new[lead + k]) is int and new[lead + k] != 1
            made[lead + k] = Axis(self.channels.fresh(new[lead + k]), zero) if wide else axis
        return made

    def _slice(self, node: Node, given: Axes) -> Axes:
        made: Axes = []
        for k, axis in enumerate(given):
            a, b, step = (node.params[word][k] for word in ("starts", "stops", "steps"))
            whole = type(a) is int and a == 0 and step == 1 and b == node.inputs[0].shape[k]
            if axis is None or whole:
                made.append(axis)
            elif step != 1 or type(a) is not int or type(b) is not int:
                self._lock([axis], "slice takes every few positions")
                made.append(None)
            else:
                made.append(Axis(axis.channels[a:b], axis.zero))
                if b - a == 1:
                    # An axis of one position broadcasts, and cannot lose it.
                    self._lock([made[-1]], "slice takes one position")
                    made[-1] = None
        return made

    def _concat(self, node: Node, given: list[Axes]) -> Axes:
        along = node.params["axis"]
        made: Axes = []
        for k in range(node.type.rank):
            axes = [axes[k] for axes in given]
            if k != along:
                made.append(self._met(axes, "concat"))
                continue
            parts: list[Axis] = []
            for operand, axis in zip(node.inputs, axes):
                if axis is None:
                    if type(operand.shape[k]) is not int:
                        self._lock(axes, "concat has an operand of open size")
                        parts = []
                        break
                    channels = self.channels.fresh(operand.shape[k])
                    self.channels.lock(channels, "it is joined with data")
                    axis = Axis(channels)
                parts.append(axis)
            live = [a for a in axes if a is not None]
            joined = Axis(np.concatenate([a.channels for a in parts]), all(a.zero for a in parts)) if parts else None
            made.append(joined if live else None)
        return made

    def _grouped(self, node: Node, given: list[Axes]) -> Axes:
        """Return the channels of a convolution in groups.

        Depthwise groups are removed as channels. Others lose the same positions in each group.
        """
        groups = node.params["groups"]
        x, w = given
        weight = node.inputs[1]
        back = node.prim is conv_grad_input
        made: Axes = [None] * node.type.rank
        self._lock([*w[2:], *x[2:], x[0]], "a convolution mixes positions")
        inner, size = x[1], weight.shape[1]
        if inner is None:
            self._lock([w[0], w[1]], "a convolution in groups reads data")
            return made
        if size == 1 and not back:
            # Depthwise: w[0] is (groups, multiplier).
            assert w[0] is not None
            self.channels.join(w[0].channels.reshape(groups, -1), inner.channels[:, None])
            made[1] = w[0]
            return made
        if size == 1 and back and weight.shape[0] == groups:
            assert w[0] is not None
            self.channels.join(w[0].channels, inner.channels)
            made[1] = w[0]
            return made
        if w[0] is None or w[1] is None:
            self._lock([inner, *w[:2]], "groups of one channel on one side")
            return made
        rows = w[0].channels.reshape(groups, -1)
        self.channels.join(rows, rows[:1])
        if back:
            self.channels.join(inner.channels, w[0].channels)
            self._summed(w[0], inner)
            made[1] = Axis(np.tile(w[1].channels, groups), w[1].zero)
        else:
            self._summed(w[1], inner)
            self.channels.join(inner.channels.reshape(groups, -1), w[1].channels[None])
            made[1] = w[0]
        return made

    def _summed(self, one: Axis, other: Axis) -> None:
        if not (one.zero or other.zero):
            self._lock([one, other], "a convolution sums over them")

    def _recurrence(self, node: Node, given: list[Axes]) -> list[Axes]:
        """Return the channels of a recurrent layer, whose units have a row in each gate.

        A unit whose weights are zero tells the others nothing.
        """
        hidden = node.inputs[1].shape[1]
        p, w, b = given[:3]
        if w[0] is None or w[1] is None:
            for axes in given:
                self._lock(axes, "a recurrent layer of one unit")
            return [[None] * t.rank for t in result_types(node)]
        unit = w[1].channels
        for axis in (p[2], w[0], b[0]):
            if axis is None:
                self.channels.lock(unit, "a recurrent layer reads data")
            else:
                self.channels.join(axis.channels.reshape(-1, hidden), unit[None])
        for axes in given[3 : 5 if node.params["mode"] == "lstm" else 4]:
            if axes[1] is None:
                self.channels.lock(unit, "the first state of a recurrent layer is given")
            else:
                self.channels.join(axes[1].channels, unit)
        made: list[Axes] = []
        for kind in result_types(node):
            last = Axis(np.tile(unit, kind.shape[-1] // hidden))
            made.append([*[None] * (kind.rank - 1), last])
        return made

    def _reshape(self, node: Node, given: Axes) -> Axes:
        old = [hint(d) for d in node.inputs[0].shape]
        new = [hint(d) for d in node.type.shape]
        made: Axes = [None] * len(new)
        for source, target in _runs(old, new):
            flat = self._merged([given[a] for a in source], [old[a] for a in source])
            if flat is None:
                continue
            if not all(type(node.type.shape[a]) is int for a in target):
                self._lock([flat], "reshape joins channels with an open size")
                continue
            if len(target) == 1:
                made[target[0]] = flat
            else:
                part, axis = self._split(node, flat, [new[a] for a in target])
                made[target[part]] = axis
        return made

    def _merged(self, axes: Axes, sizes: Sequence[int]) -> Axis | None:
        """Return the channels along axes that become one: those of one of them."""
        live = [k for k, axis in enumerate(axes) if axis is not None]
        free = [k for k in live if not self.channels.locked(axes[k].channels).all()]  # type: ignore[union-attr]
        if not live:
            return None
        chosen = (free or live)[0]
        self._lock([axes[k] for k in live if k != chosen], "reshape joins two axes that could shrink")
        axis = axes[chosen]
        assert axis is not None
        shape = [s if k == chosen else 1 for k, s in enumerate(sizes)]
        return Axis(np.broadcast_to(axis.channels.reshape(shape), sizes).reshape(-1), axis.zero)

    def _split(self, node: Node, axis: Axis, sizes: Sequence[int]) -> tuple[int, Axis | None]:
        """Return the part of an axis that is taken apart that keeps channels, and these."""
        channels = self.channels.roots(axis.channels).reshape(sizes)
        for part in range(len(sizes)):
            rows = np.moveaxis(channels, part, 0).reshape(sizes[part], -1)
            if (rows == rows[:, :1]).all() and len(np.unique(rows)) > 1:
                return part, Axis(rows[:, 0], axis.zero)
        order = [1, 0, *range(2, len(sizes))] if len(sizes) > 2 else [0, 1]
        part = order[self.choices.get(node, 0) % len(sizes)]
        rows = np.moveaxis(channels, part, 0).reshape(sizes[part], -1)
        self.channels.join(rows, rows[:, :1])
        kept = rows[:, 0].copy()
        self.found.splits[node] = kept, len(sizes)
        return part, Axis(kept, axis.zero)

    # By what primitives say of themselves.

    def _plain(self, node: Node, given: list[Axes]) -> list[Axes]:
        prim = node.prim
        assert prim is not None
        kinds = result_types(node)
        made: list[Axes] = [[None] * t.rank if isinstance(t, TensorType) else [] for t in kinds]
        seen: set[tuple[int, int]] = set()
        usable = prim.part is None or prim in _PLACED
        for factor in factors_of(node) if usable else ():
            members = [(k, p.axis) for k, p in enumerate(factor.operands) if p is not None]
            if not _is_plain(factor) or not any(given[k][a] is not None for k, a in members):
                continue
            seen.update(members)
            axes = [given[k][a] for k, a in members]
            joined = self._met(axes, node.op)
            if joined is None:
                continue
            if all(p is None for p in factor.results):
                product = prim in _BILINEAR and any(a is not None and a.zero for a in axes)
                if not product:
                    self._lock([joined], f"{node.op} combines all of them")
                continue
            zero = self._zero(node, given, members)
            for r, place in enumerate(factor.results):
                if place is not None:
                    made[r][place.axis] = Axis(joined.channels, zero)
                elif factor.combine:
                    self._lock([joined], f"{node.op} combines all of them")
        for k, axes in enumerate(given):
            self._lock([a for n, a in enumerate(axes) if (k, n) not in seen], f"{node.op} does not keep them apart")
        return made

    def _met(self, axes: Sequence[Axis | None], op: str) -> Axis | None:
        """Join the channels of axes that meet; None where one of them loses nothing."""
        live = [a for a in axes if a is not None]
        if len(live) < len(axes):
            self._lock(live, f"{op} meets data or constants there")
            return None
        for other in live[1:]:
            self.channels.join(live[0].channels, other.channels)
        return live[0]

    def _zero(self, node: Node, given: list[Axes], members: Sequence[tuple[int, int]]) -> bool:
        """Return whether results are zero where the members of a factor are."""
        prim = node.prim
        assert prim is not None
        here = {k for k, a in members if (axis := given[k][a]) is not None and axis.zero}
        if prim in _BILINEAR:
            return bool(here)
        if prim in (attention, take):
            return (2 if prim is attention else 0) in here
        if prim.elementwise:
            return self._zero_of_elements(node, here)
        return here == set(range(len(node.inputs))) and (prim.linear or prim in _KEEPS_ZERO)

    def _zero_of_elements(self, node: Node, here: set[int]) -> bool:
        """Try an element-wise operation with zeros for the operands in `here`."""
        assert node.prim is not None and node.prim.reference is not None
        generator = np.random.default_rng(0)
        columns = []
        for k, operand in enumerate(node.inputs):
            if k in here:
                column = np.zeros(8)
            elif operand.prim is CONSTANT and operand.value.size == 1:
                column = np.full(8, operand.value.reshape(-1)[0])
            else:
                column = generator.uniform(0.5, 2.0, 8) * np.array([1, -1] * 4)
            # Conditions are those of zeros as well as others.
            kind = operand.dtype.numpy
            columns.append(np.array([0, 1] * 4, bool) if kind == np.bool_ else column.astype(kind))
        conditions = [k for k, o in enumerate(node.inputs) if o.dtype.numpy == np.bool_]
        if not here - set(conditions):
            return False
        with np.errstate(all="ignore"):
            made = np.asarray(node.prim.reference(*columns, **node.params))
        return bool((made == 0).all())


def _is_plain(factor: Factor) -> bool:
    """Return whether a factor is an axis of each operand and result that has it."""
    places = [p for p in (*factor.operands, *factor.results) if p is not None]
    return all(_alone(p) for p in places)


def _alone(place: Place) -> bool:
    return all(type(d) is int and d == 1 for d in (place.before, place.after))


def _runs(old: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Return the shortest runs of axes of two shapes of as many elements, axes of 1 left out.

    >>> _runs([2, 6, 5], [2, 3, 1, 2, 5])
    [([0], [0]), ([1], [1, 3]), ([2], [4])]
    """
    found: list[tuple[list[int], list[int]]] = []
    a = [k for k, d in enumerate(old) if d != 1]
    b = [k for k, d in enumerate(new) if d != 1]
    if math.prod(old) == 0:
        return []
    while a and b:
        source, target = [a.pop(0)], [b.pop(0)]
        left, right = old[source[0]], new[target[0]]
        while left != right:
            if left < right:
                source.append(a.pop(0))
                left *= old[source[-1]]
            else:
                target.append(b.pop(0))
                right *= new[target[-1]]
        found.append((source, target))
    return found
