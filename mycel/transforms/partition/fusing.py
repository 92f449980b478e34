"""All-reduces joined: those of one kind that do not depend on each other become one message.

For each kind (mesh, axes, operation, element type) in turn, an all-reduce has as depth how many of
its kind it depends on, one behind another. Those of equal depth cannot depend on each other, so
they are joined in the order of the graph, up to a number of bytes: flattened, concatenated, reduced
at once, and cut apart. The next kind sees the graph with these joined, so no cycle can arise.
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


def fuse(graph: Graph, most: int = MOST_BYTES) -> Graph:
    """Return `graph` with independent all-reduces joined to messages of at most `most` bytes.

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
    for kind in dict.fromkeys(_kind(n) for n in graph.nodes if n.prim is C.all_reduce):
        graph = _fused(graph, kind, most)
    return graph


def _kind(node: Node) -> Any:
    return node.params["mesh"], node.params["axes"], node.params["op"], node.dtype


def _groups(graph: Graph, kind: Any, most: int) -> list[list[Node]]:
    depth: dict[Node, int] = {}
    open_: dict[int, list[Node]] = {}
    groups: list[list[Node]] = []
    for node in graph.nodes:
        below = max([depth.get(i, 0) for i in node.inputs], default=0)
        depth[node] = below
        if node.prim is not C.all_reduce or _kind(node) != kind:
            continue
        depth[node] = below + 1
        group = open_.get(below)
        if group is None or sum(_bytes(n) for n in group) + _bytes(node) > most:
            group = open_[below] = []
            groups.append(group)
        group.append(node)
    return [g for g in groups if len(g) > 1]


def _bytes(node: Node) -> int:
    return int(math.prod(node.shape) * node.dtype.itemsize)


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
    result, start = [], 0
    with at(group[0].where):
        flat = S.concat([S.reshape(x, (math.prod(x.shape),)) for x in operands], 0)
        whole = C.all_reduce(flat, **group[0].params)
    for node in group:
        size = math.prod(node.shape)
        with at(node.where):
            result.append(S.reshape(S.slice_axis(whole, 0, start, start + size), tuple(node.shape)))
        start += size
    return result
