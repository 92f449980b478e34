"""Row tiling: computes leading image operations in stripes of rows, to lower the peak of memory.

Convolutions, windows and element-wise operations need few rows of what they read for a few rows of
their result. So instead of one whole value after the other, some rows of the first one are
computed, then as many of the others as these allow, then the next rows of the first one, and whole
values between exist in no memory:

    x --conv--> a --conv--> b           from rows 0:4 of a come rows 0:3 of b
                                        rows 3:7 of b need rows 2:8 of a: 2:4 are kept, 4:8 are new

Each row is computed once: rows that the next stripe needs as well are kept (`concat` of the rows
kept and the new ones). Of a chain of element-wise operations the smallest value is kept, and what
follows is computed where it is read. A value is padded in its first and last stripe only. So every
element is computed from the same numbers by the same operation, and integers stay the same bits. A
sum of integers over all rows (`total`) is added up stripe by stripe.

A *region* has the operations up to a last value that no operation outside of it reads but through
that. Rows are axis 2 of (N, C, H, W) and of (N, C, L).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, at, users_of
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.convolution.conv import conv
from mycel._src.compiler.prims.convolution.window import window_max, window_sum
from mycel._src.compiler.prims.indexing.index import take
from mycel._src.compiler.prims.indexing.index_bounds import may_be_outside
from mycel._src.compiler.prims.neural.quantisation import int_conv
from mycel._src.compiler.prims.neural.requantised_layers import rescaled_conv, rescaled_sum
from mycel._src.compiler.prims.reduce import reduce_sum
from mycel._src.compiler.transforms.graph_rewriting import rewrite
from mycel._src.compiler.transforms.quantise.graph_freezing import array_of, literal

__all__ = ["Region", "peak_bytes", "price", "regions", "striped"]

AXIS = 2
Rows = tuple[int, int]
Needs = list[Rows | None]


@dataclass(eq=False)
class Region:
    """Operations of a graph that can be computed in stripes, in their order; the last is `last`.

    `total` is a sum over the rows of the last value that is added up stripe by stripe, None where
    the last value itself is wanted.
    """

    nodes: list[Node]
    total: Node | None = None

    @property
    def last(self) -> Node:
        """The value that the operations compute."""
        return self.nodes[-1]

    @property
    def height(self) -> int:
        """The most rows of a value of the region."""
        return max(int(n.type.shape[AXIS]) for n in self.nodes)


def regions(graph: Graph) -> list[Region]:
    """Return the regions of a graph, by their ends in the order of the graph.

    Sizes have to be known.
    """
    users = users_of(graph)
    order = {node: k for k, node in enumerate(graph.nodes)}
    results = set(graph.outputs)
    found = []
    for node in graph.nodes:
        ends = node in results or any(not _is_divisible(u) or _reads_windows(u) for u in users.get(node, ()))
        if ends and _is_divisible(node) and node.type.shape[AXIS] > 1:
            region = _region(node, users, results, order)
            total = [u for u in users.get(node, ()) if _is_total(u)]
            if region is not None:
                found.append(region)
                if len(total) == 1 and len(users[node]) == 1 and node not in results:
                    found.append(Region(region.nodes, total[0]))
    return found


def _region(last: Node, users: dict[Node, list[Node]], results: set[Node], order: dict[Node, int]) -> Region | None:
    """Return the region of a last value; None where nothing in it reads windows."""
    inside = {last}
    pending = [last]
    while pending:
        # A value that has more users is asked for again with the last of them.
        for i in pending.pop().inputs:
            if i in inside or i in results or i not in order or not _is_divisible(i):
                continue
            if all(u in inside for u in users[i]):
                inside.add(i)
                pending.append(i)
    nodes = sorted(inside, key=order.__getitem__)
    if len(nodes) < 2 or not any(_reads_windows(n) for n in nodes):
        return None
    return Region(nodes)


def striped(graph: Graph, region: Region, height: int) -> Graph:
    """Return `graph` with a region computed in stripes of `height` rows of its first values.

    >>> from mycel._src.foundation.dtype import float32
    >>> from mycel._src.compiler.ir.graph import input_node
    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> x = input_node(tensor_type((1, 1, 8, 8), float32), "x")
    >>> w = input_node(tensor_type((1, 1, 3, 3), float32), "w")
    >>> one = {"strides": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}
    >>> graph = Graph([x, w], [conv(conv(x, w, **one), w, **one)])
    >>> parts = striped(graph, regions(graph)[-1], 4)
    >>> [n.type.shape[2] for n in parts.nodes if n.prim is conv]
    [4, 3, 4, 5]
    """
    made = _Stripes(region, height).value()
    target = region.total or region.last

    def start(inner: Graph) -> Any:
        return lambda old, new: made if inner is graph and old is target else new

    return rewrite(graph, start)


def peak_bytes(region: Region, height: int) -> int:
    """Return about how many bytes are alive at one time in a region with stripes of some height.

    Element-wise operations are taken to be computed with what they read.
    """
    return _Stripes(region, height).peak_bytes()


def price(region: Region, height: int) -> tuple[int, int]:
    """Return the number of stripes of a height, and the bytes of kept rows that they copy."""
    made = _Stripes(region, height)
    return len(made.lows), made.copied_bytes()


class _Stripes:
    """The stripes of a region: what rows of which value each of them computes, reads and keeps."""

    def __init__(self, region: Region, height: int) -> None:
        self.region, self.inside = region, set(region.nodes)
        # Of each stripe, by value: the first row that is read in it, and the end of those computed.
        self.lows: list[dict[Node, int]] = []
        self.tops: list[dict[Node, int]] = [dict.fromkeys(region.nodes, 0)]
        self.feeding = {n: self._feeding(n, 0, n.type.shape[AXIS]) for n in region.nodes}
        self.firsts: list[dict[Node, int]] = []
        self.later = self._later()
        first = [n for n in region.nodes if not self.feeding[n]]
        count = -(-max(n.type.shape[AXIS] for n in first) // height)
        for k in range(count):
            self._advance({n: -(-n.type.shape[AXIS] * (k + 1) // count) for n in first})

    def _kept(self, node: Node, k: int) -> int:
        """Return the first row of a value that stripe `k` or a later one reads."""
        if not self.firsts:
            firsts: dict[Node, int] = {n: n.type.shape[AXIS] for n in self.region.nodes}
            self.firsts = [dict(firsts)]
            for low in reversed(self.lows):
                for n, row in low.items():
                    firsts[n] = min(firsts[n], row)
                self.firsts.append(dict(firsts))
            self.firsts.reverse()
        return self.firsts[k][node]

    def _feeding(self, node: Node, start: int, end: int) -> list[tuple[Node, Rows]]:
        """Return the values of the region that rows of a value are computed from, with theirs."""
        pairs = zip(node.inputs, _needs(node, start, end))
        return [(i, rows) for i, rows in pairs if rows is not None and i in self.inside]

    def _later(self) -> set[Node]:
        """Return the values that are computed when they are read, as what they are computed from is
        smaller to keep.
        """
        least: dict[Node, int] = {}
        found = set()
        for node in self.region.nodes:
            own = least[node] = int(node.type.nbytes)
            feeding = self.feeding[node]
            if feeding and not _reads_windows(node) and node is not self.region.last:
                least[node] = min(own, sum(least[i] for i in {i for i, _ in feeding}))
                if least[node] < own:
                    found.add(node)
        return found

    def _advance(self, given: dict[Node, int]) -> None:
        """Add a stripe: all rows for which there are the inputs, of some values those `given`."""
        before, ends, lows = self.tops[-1], dict(given), dict[Node, int]()
        for node in self.region.nodes:
            if node not in ends:
                feeding = [i for i, _ in self.feeding[node]]
                ends[node] = max(before[node], min(_possible(node, i, ends[i]) for i in feeding))
        wanted = dict(before)
        for node in reversed(self.region.nodes):
            if node in self.later:
                ends[node] = wanted[node]
            for i, rows in self._feeding(node, before[node], ends[node]) if ends[node] > before[node] else ():
                lows[i] = min(lows.get(i, rows[0]), rows[0])
                wanted[i] = max(wanted[i], rows[1])
        self.tops.append(ends)
        self.lows.append(lows)

    def value(self) -> Node:
        """Return the node of the whole last value, or of the total."""
        last = self.region.last
        held: dict[Node, tuple[int, Node]] = {}
        parts = []
        for k in range(len(self.lows)):
            self._stripe(k, held)
            if self.tops[k + 1][last] > self.tops[k][last]:
                parts.append(held[last][1])
        total = self.region.total
        if total is None:
            return S.concat(parts, AXIS)
        with at(total.where):
            found = _sum_of(total, parts[0])
            for part in parts[1:]:
                found = E.add(found, _sum_of(total, part))
        return found

    def peak_bytes(self) -> int:
        """Return the bytes of the rows that are kept, at their most."""
        region, last = self.region, self.region.last
        size = {n: -(-int(n.type.nbytes) // n.type.shape[AXIS]) for n in region.nodes}
        readers: dict[Node, list[Node]] = {n: [] for n in region.nodes}
        for node in region.nodes:
            for i, _ in self.feeding[node]:
                readers[i].append(node)
        stored = {n for n in region.nodes if n not in self.later and any(map(_reads_windows, readers[n]))}
        # A value that is kept for operations on elements, which are behind others by some rows.
        stored |= {n for n in region.nodes if n not in self.later and len(readers[n]) > 1}
        alive = {last: 0 if region.total is not None else int(last.type.nbytes)}
        most = 0
        for k in range(len(self.lows)):
            before, ends = self.tops[k], self.tops[k + 1]
            for node in region.nodes:
                if node in stored and ends[node] > before[node]:
                    own = (ends[node] - min(self._kept(node, k), before[node])) * size[node]
                    most = max(most, sum(alive.values()) + own)
                    alive[node] = own
            for node in list(alive):
                if node is not last and self._kept(node, k + 1) >= ends[node]:
                    del alive[node]
        return most

    def copied_bytes(self) -> int:
        """Return the bytes of all rows that are kept from one stripe for the next."""
        total = 0
        for node in self.region.nodes:
            size = -(-int(node.type.nbytes) // node.type.shape[AXIS])
            for k in range(len(self.lows)):
                first, end = self.tops[k][node], self.tops[k + 1][node]
                total += max(0, first - self._kept(node, k)) * size if end > first else 0
        return total

    def _stripe(self, k: int, held: dict[Node, tuple[int, Node]]) -> None:
        """Add the nodes of stripe `k`; `held` has the first row and the rows of each value."""
        before, ends = self.tops[k], self.tops[k + 1]
        for node in self.region.nodes:
            first, end = before[node], ends[node]
            if first == end:
                continue
            inputs = []
            for i, rows in zip(node.inputs, _needs(node, first, end)):
                if rows is None:
                    inputs.append(i)
                    continue
                low, piece = held[i] if i in self.inside else (0, i)
                axis = AXIS - node.type.rank + i.type.rank
                inputs.append(_sliced(piece, AXIS if _reads_windows(node) else axis, rows[0] - low, rows[1] - low))
            with at(node.where):
                made = _part(node, first, end, inputs)
                keep = self._kept(node, k)
                if node in held and keep < first:
                    low, piece = held[node]
                    made = S.concat([S.slice_axis(piece, AXIS, keep - low, first - low), made], AXIS)
                    first = keep
            held[node] = first, made


# What operations read for some rows of their result, and how they compute these.


def _is_image(node: Node) -> bool:
    return isinstance(node.type, TensorType) and node.type.rank > AXIS and node.type.is_static


def _sliced(node: Node, axis: int, start: int, stop: int) -> Node:
    """Return a part of a value along an axis, of constants as constants."""
    array = array_of(node)
    if array is None:
        return S.slice_axis(node, axis, start, stop)
    return literal(np.ascontiguousarray(array[(slice(None),) * axis + (slice(start, stop),)]), node)


def _reads_windows(node: Node) -> bool:
    return node.prim in (conv, int_conv, rescaled_conv, window_sum, window_max)


def _window(node: Node) -> tuple[int, int, int, int]:
    """Return the rows that a window spans, the rows between windows, and the padding."""
    p = node.params
    if "window" in p:
        span = p["window"][0]
    else:
        span = (node.inputs[1].type.shape[AXIS] - 1) * p["dilation"][0] + 1
    return span, p["strides"][0], *p["padding"][0]


def _is_divisible(node: Node) -> bool:
    """Return whether rows of a value can be computed from rows of what it reads."""
    if node.prim is None or not _is_image(node) or not all(isinstance(i.type, TensorType) for i in node.inputs):
        return False
    if _reads_windows(node):
        span, _, low, high = _window(node)
        return low < span and high < span and _is_image(node.inputs[0])
    if node.prim is take:
        return node.inputs[0].type.rank == 1 and node.inputs[1].type.rank == node.type.rank and not may_be_outside(node)
    if node.prim is S.CONCAT:
        return bool(node.params["axis"] == 1)
    # Rows of values of fewer axes lie along another one.
    if any(_is_image(i) and i.type.rank != node.type.rank and array_of(i) is None for i in node.inputs):
        return False
    each = node.prim.elementwise or node.prim is rescaled_sum
    return bool(each and node.inputs and not node.prim.effect and node.type.shape[AXIS] > 1)


def _needs(node: Node, first: int, end: int) -> Needs:
    """Return the rows of each input that rows of a value are computed from.

    The entry is None for inputs that are needed whole.
    """
    if _reads_windows(node):
        span, stride, low, _ = _window(node)
        start, stop = first * stride - low, (end - 1) * stride - low + span
        rows = max(0, start), min(node.inputs[0].type.shape[AXIS], stop)
        return [rows, *[None] * (len(node.inputs) - 1)]
    if node.prim is take:
        return [None, (first, end)]
    found: Needs = []
    for i in node.inputs:
        axis = AXIS - node.type.rank + i.type.rank
        found.append((first, end) if axis >= 0 and i.type.shape[axis] > 1 else None)
    return found


def _possible(node: Node, source: Node, end: int) -> int:
    """Return how many rows of a value can be computed when there are so many rows of a source."""
    height: int = node.type.shape[AXIS]
    if not _reads_windows(node):
        return end
    if end == source.type.shape[AXIS]:
        return height
    span, stride, low, _ = _window(node)
    return min(height, max(0, (end + low - span) // stride + 1))


def _part(node: Node, first: int, end: int, inputs: Sequence[Node]) -> Node:
    """Return some rows of a value, given those of its inputs that they need."""
    assert node.prim is not None, "inputs are in no region"
    params = dict(node.params)
    if _reads_windows(node):
        span, stride, low, _ = _window(node)
        start, stop = first * stride - low, (end - 1) * stride - low + span
        ends = max(0, -start), max(0, stop - node.inputs[0].type.shape[AXIS])
        params["padding"] = (ends, *params["padding"][1:])
    return node.prim(*inputs, **params)


def _is_total(node: Node) -> bool:
    """Return whether a node sums integers over all rows."""
    if not _is_image(node.inputs[0]) or not node.inputs[0].type.dtype.is_integer:
        return False
    if node.prim is window_sum:
        span, _, low, high = _window(node)
        return span == node.inputs[0].type.shape[AXIS] and low == high == 0
    return node.prim is reduce_sum and AXIS in node.params["axes"]


def _sum_of(total: Node, part: Node) -> Node:
    """Return the sum of a part of the rows."""
    assert total.prim is not None, "inputs are no sums"
    params = dict(total.params)
    if total.prim is window_sum:
        params["window"] = (part.type.shape[AXIS], *params["window"][1:])
    return total.prim(part, **params)
