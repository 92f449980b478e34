"""Collective fusion: independent collectives of one kind are sent as one message.

For each kind (collective, mesh, axes, operation, element type) in turn, a node has as depth how
many of its kind it depends on, one behind another. Those of equal depth cannot depend on each
other, so they are joined in the order in which their operands are there (the length of the longest
way from the inputs of the graph, then the order of the graph): made flat, concatenated, sent at
once, and cut apart. The next kind sees the graph with these joined, so no cycle can arise.

How many bytes a message has, `Fusing` says. Large messages have the latency of a link once, small
ones go while others are computed: a gradient waits for all that are in its message. So without a
size it is a part of all that are joined, within bounds.

All-reduces and reduce-scatters are joined wherever they are. Gathers are at the end of the graph,
where they make outputs. Those before it would have all gathered values wait for each other, and be
in memory together; so only small ones are joined there, as those of biases.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from mycel._src.compiler.ir.graph import Graph, Node, at
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.distributed import collectives

__all__ = ["ALONE", "BY_SIZE", "Fusing", "fuse"]

# Without a size: into how many messages what is joined is cut, and the bounds of their bytes.
MESSAGES, LEAST_BYTES, MOST_BYTES = 8, 1 << 20, 32 << 20
# Of gathers before the end of a graph: each, and together.
SMALL_BYTES, FEW_BYTES = 64 << 10, 1 << 20
_JOINED = (collectives.all_reduce, collectives.reduce_scatter, collectives.all_gather)


@dataclass(frozen=True)
class Fusing:
    """How many bytes of collectives are joined to one message at most.

    `sums` is for all-reduces, `scatters` for reduce-scatters and `gathers` for gathers. None is an
    eighth of what may be joined, of at least 1 MiB and at most 32 MiB; 0 joins nothing. With
    `cuts` all-reduces, numbered in the order of the graph, which for gradients is that of the
    parameters, are cut at these numbers instead: those before the first, and so on.

    >>> Fusing(sums=1 << 20, cuts=(2, 5)).gathers is None
    True
    """

    sums: int | None = None
    scatters: int | None = None
    gathers: int | None = None
    cuts: tuple[int, ...] = ()

    def room(self, prim: Any, total: int) -> int:
        """Return the most bytes of a message of a collective, of which `total` may be joined."""
        asked = {
            collectives.all_reduce: self.sums,
            collectives.reduce_scatter: self.scatters,
            collectives.all_gather: self.gathers,
        }[prim]
        return min(MOST_BYTES, max(LEAST_BYTES, -(-total // MESSAGES))) if asked is None else asked


BY_SIZE, ALONE = Fusing(), Fusing(0, 0, 0)


def fuse(graph: Graph, how: Fusing = BY_SIZE) -> Graph:
    """Return `graph` with independent collectives joined to messages.

    >>> from mycel._src.foundation.dtype import float32
    >>> from mycel._src.compiler.ir.graph import input_node
    >>> from mycel._src.compiler.ir.sharding.mesh import Mesh
    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> x, y = (input_node(tensor_type((2, 3), float32)) for _ in range(2))
    >>> p = {"mesh": Mesh((2,), ("x",)), "axes": ("x",), "op": "sum"}
    >>> made = fuse(Graph([x, y], [collectives.all_reduce(x, **p), collectives.all_reduce(y, **p)]))
    >>> sum(n.prim is collectives.all_reduce for n in made.nodes)
    1
    """
    for kind in dict.fromkeys(_kind(n) for n in graph.nodes if n.prim in _JOINED):
        graph = _fused(graph, kind, how)
    return graph


def _kind(node: Node) -> Any:
    return node.prim, node.params["mesh"], node.params["axes"], node.params.get("op"), node.dtype


def _groups(graph: Graph, kind: Any, how: Fusing) -> list[list[Node]]:
    """Return the nodes of one kind that are sent together."""
    groups: list[list[Node]] = []
    for (_, is_early), nodes in _joinable(graph, kind).items():
        if how.cuts and kind[0] is collectives.all_reduce:
            parts: dict[int, list[Node]] = {}
            for number, node in enumerate(nodes):
                parts.setdefault(bisect_right(how.cuts, number), []).append(node)
            groups.extend(parts.values())
            continue
        room = how.room(kind[0], sum(_bytes(n) for n in nodes))
        if is_early:
            room = min(room, FEW_BYTES)
        groups.extend(_filled(sorted(nodes, key=_levels(graph, nodes).__getitem__), room))
    return [g for g in groups if len(g) > 1]


def _joinable(graph: Graph, kind: Any) -> dict[tuple[int, bool], list[Node]]:
    """Return the nodes of one kind that may go together, by their depth and by whether they are
    gathers before the end.
    """
    depth: dict[Node, int] = {}
    found: dict[tuple[int, bool], list[Node]] = {}
    last = _last(graph) if kind[0] is collectives.all_gather else set(graph.nodes)
    for node in graph.nodes:
        below = max([depth.get(i, 0) for i in node.inputs], default=0)
        depth[node] = below
        if node.prim is not kind[0] or _kind(node) != kind:
            continue
        is_early = node not in last
        if is_early and _bytes(node) > SMALL_BYTES:
            continue
        depth[node] = below + 1
        found.setdefault((below, is_early), []).append(node)
    return found


def _filled(nodes: Sequence[Node], room: int) -> list[list[Node]]:
    """Return nodes in their order, cut into groups of at most `room` bytes."""
    groups: list[list[Node]] = []
    size = 0
    for node in nodes:
        own = _bytes(node)
        if not groups or size + own > room:
            groups.append([])
            size = 0
        groups[-1].append(node)
        size += own
    return groups


def _levels(graph: Graph, nodes: Collection[Node]) -> dict[Node, int]:
    """Return the lengths of the longest ways from the inputs of a graph to some of its nodes."""
    level: dict[Node, int] = {}
    for node in graph.nodes:
        level[node] = 1 + max([level.get(i, 0) for i in node.inputs], default=0)
    return {node: level[node] for node in nodes}


def _last(graph: Graph) -> set[Node]:
    """Return the nodes that nothing but views follows."""
    followed: set[Node] = set()
    last: set[Node] = set()
    for node in reversed(graph.nodes):
        if node not in followed:
            last.add(node)
        if node in followed or node.prim is None or not node.prim.view:
            followed.update(node.inputs)
    return last


def _bytes(node: Node) -> int:
    """Return the bytes of the larger of operand and result."""
    sizes = [math.prod(n.shape) for n in (node, *node.inputs)]
    return int(max(sizes) * node.dtype.itemsize)


def _fused(graph: Graph, kind: Any, how: Fusing) -> Graph:
    """Return the graph with the groups of one kind joined.

    Nodes are made again by demand, as a group stands before some nodes that its members follow.
    """
    group_of = {node: group for group in _groups(graph, kind, how) for node in group}
    if not group_of:
        return graph
    image: dict[Node, Node] = {n: n for n in graph.inputs}
    stack = list(reversed(graph.outputs))
    while stack:
        node = stack[-1]
        if node in image:
            stack.pop()
            continue
        group = group_of.get(node, [node])
        missing = [i for member in group for i in member.inputs if i not in image]
        if missing:
            stack.extend(reversed(missing))
            continue
        stack.pop()
        if node in group_of:
            image.update(zip(group, _joined(group, [image[n.inputs[0]] for n in group])))
            continue
        inputs = tuple([image[i] for i in node.inputs])
        same = all(a is b for a, b in zip(inputs, node.inputs))
        image[node] = node if same else Node(node.prim, inputs, node.params, node.type, node.where)
    return Graph(graph.inputs, [image[o] for o in graph.outputs], graph.name)


def _joined(group: Sequence[Node], operands: Sequence[Node]) -> list[Node]:
    """Return the results of collectives that are sent at once.

    The rows of the matrix that is sent are the ranks' shares, of which an all-reduce has one.
    """
    prim, params = group[0].prim, group[0].params
    assert prim is not None
    count = params["mesh"].count(params["axes"])
    before = count if prim is collectives.reduce_scatter else 1
    after = count if prim is collectives.all_gather else 1
    with at(group[0].where):
        rows = [_rows(x, node, before) for x, node in zip(operands, group)]
        whole = prim(S.concat(rows, 1), **({**params, "axis": 0} if "axis" in params else params))
    result, start = [], 0
    for node, row in zip(group, rows):
        size = int(row.shape[1])
        with at(node.where):
            share = S.slice_axis(whole, 1, start, start + size)
            assert share.shape[0] == after
            result.append(_from_rows(share, node))
        start += size
    return result


def _rows(x: Node, node: Node, count: int) -> Node:
    x = S.move_axis(x, node.params["axis"], 0) if "axis" in node.params else x
    return S.reshape(x, (count, math.prod(x.shape) // count))


def _from_rows(share: Node, node: Node) -> Node:
    shape = list(node.shape)
    if "axis" not in node.params:
        return S.reshape(share, tuple(shape))
    axis = node.params["axis"]
    return S.move_axis(S.reshape(share, (shape.pop(axis), *shape)), 0, axis)
