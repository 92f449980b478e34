"""Collectives joined: those of one kind that do not depend on each other become one message.

For each kind (collective, mesh, axes, operation, element type) in turn, a node has as depth how
many of its kind it depends on, one behind another. Those of equal depth cannot depend on each
other, so they are joined in the order of the graph, up to a number of bytes: made flat,
concatenated, sent at once, and cut apart. The next kind sees the graph with these joined, so no
cycle can arise.

All-reduces and reduce-scatters are joined wherever they are. Gathers are at the end of the graph,
where they make outputs. Those before it would have all gathered values wait for each other, and be
in memory together; so only small ones are joined there, as those of biases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mycel.ir.graph import Graph, Node, at
from mycel.prims import collectives as C
from mycel.prims import shape as S

__all__ = ["MOST_BYTES", "fuse"]

MOST_BYTES = 32 << 20
# Of gathers before the end of a graph: each, and together.
SMALL_BYTES, FEW_BYTES = 64 << 10, 1 << 20
_JOINED = (C.all_reduce, C.reduce_scatter, C.all_gather)


def fuse(graph: Graph, most: int = MOST_BYTES) -> Graph:
    """Return `graph` with independent collectives joined to messages of at most `most` bytes.

    >>> from mycel.base.dtype import float32
    >>> from mycel.ir.graph import input_node
    >>> from mycel.ir.mesh import Mesh
    >>> from mycel.ir.types import tensor_type
    >>> x, y = (input_node(tensor_type((2, 3), float32)) for _ in range(2))
    >>> p = {"mesh": Mesh((2,), ("x",)), "axes": ("x",), "op": "sum"}
    >>> made = fuse(Graph([x, y], [C.all_reduce(x, **p), C.all_reduce(y, **p)]))
    >>> sum(n.prim is C.all_reduce for n in made.nodes)
    1
    """
    for kind in dict.fromkeys(_kind(n) for n in graph.nodes if n.prim in _JOINED):
        graph = _fused(graph, kind, most)
    return graph


def _kind(node: Node) -> Any:
    return node.prim, node.params["mesh"], node.params["axes"], node.params.get("op"), node.dtype


def _groups(graph: Graph, kind: Any, most: int) -> list[list[Node]]:
    depth: dict[Node, int] = {}
    open_: dict[tuple[int, bool], list[Node]] = {}
    groups: list[list[Node]] = []
    last = _last(graph) if kind[0] is C.all_gather else set(graph.nodes)
    for node in graph.nodes:
        below = max([depth.get(i, 0) for i in node.inputs], default=0)
        depth[node] = below
        is_early = node not in last
        if node.prim is not kind[0] or _kind(node) != kind or (is_early and _bytes(node) > SMALL_BYTES):
            continue
        depth[node] = below + 1
        group = open_.get((below, is_early))
        room = min(most, FEW_BYTES) if is_early else most
        if group is None or sum(_bytes(n) for n in group) + _bytes(node) > room:
            group = open_[below, is_early] = []
            groups.append(group)
        group.append(node)
    return [g for g in groups if len(g) > 1]


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


def _fused(graph: Graph, kind: Any, most: int) -> Graph:
    """Return the graph with the groups of one kind joined.

    Nodes are made again by demand, as a group stands before some nodes that its members follow.
    """
    group_of = {node: group for group in _groups(graph, kind, most) for node in group}
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
    before = count if prim is C.reduce_scatter else 1
    after = count if prim is C.all_gather else 1
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
