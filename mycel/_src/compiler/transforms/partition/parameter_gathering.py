"""Gathers sharded parameters again in the backward pass, instead of keeping the gathered values.

A parameter of which each rank has a part is gathered where it is used, and the whole lives from the
forward pass to the backward one. Gathered twice it lives for a short time in each, for a message
more.

What is made of a parameter by gathers, casts and views alone is its *path*. The nodes that use the
path's end are ordered by the length of the longest way from the inputs to them. Where the longest
stretch between two neighbours is at least `GAP`, and all behind it depend on one before it, these
get a path of their own. It begins with `after`, whose token is an operand of the first late user of
the parameter before, in the order of the backward pass: so a gather can go while the layer before
is computed, and no earlier.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

from mycel._src.compiler.ir.graph import Graph, Node, users_of
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.control_flow.recompute import after
from mycel._src.compiler.prims.distributed import collectives

__all__ = ["element_of", "gathered_again"]

# How many nodes lie between the uses of a parameter at least: in the last layer both passes meet.
GAP = 8


class _Late(NamedTuple):
    """A parameter's path, the late users of it, and what the first of them has beside it."""

    path: dict[Node, None]
    users: Collection[Node]
    level: int
    beside: Node | None


def gathered_again(graph: Graph, inputs: Collection[Node]) -> tuple[Graph, list[Node]]:
    """Return a rank's graph in which some inputs are gathered again where they are used late, and
    the gathers that there are twice.
    """
    level: dict[Node, int] = {}
    users = users_of(graph)
    for node in graph.nodes:
        level[node] = 1 + max([level.get(i, 0) for i in node.inputs], default=0)
    found = [late for node in inputs if (late := _late(graph, node, level, users)) is not None]
    found.sort(key=lambda f: f.level)
    tokens: list[Node | None] = []
    last: Node | None = None
    for late in found:
        tokens.append(late.beside if last is None else last)
        last = late.beside or last
    again = {u: k for k, late in enumerate(found) for u in late.users if tokens[k] is not None}
    if not again:
        return graph, []
    twice = [
        n for late, t in zip(found, tokens) if t is not None for n in late.path if n.prim is collectives.all_gather
    ]
    return _Copy(graph, found, tokens, sorted(graph.nodes, key=level.__getitem__)).made(), twice


def _late(graph: Graph, root: Node, level: dict[Node, int], users: dict[Node, list[Node]]) -> _Late | None:
    """Return what is late of the users of the input `root` in `graph`; None where nothing is.

    `level` has the lengths of the ways to nodes, `users` the nodes that use each.
    """
    path: dict[Node, None] = {root: None}
    gathered: set[Node] = set()
    ends: dict[Node, None] = {}
    for node in graph.nodes:
        if len(node.inputs) == 1 and node.inputs[0] in path and _is_of_path(node):
            path[node] = None
            if node.prim is collectives.all_gather or node.inputs[0] in gathered:
                gathered.add(node)
    for node in path:
        for user in users.get(node, ()):
            if node in gathered and user not in path:
                ends[user] = None
    order = sorted(ends, key=level.__getitem__)
    gaps = [(level[b] - level[a], k + 1) for k, (a, b) in enumerate(pairwise(order))]
    if not gaps or max(gaps)[0] < GAP:
        return None
    cut = max(gaps)[1]
    early, late = set(order[:cut]), order[cut:]
    behind: set[Node] = set()
    for node in graph.nodes:
        if node in early or any(i in behind for i in node.inputs):
            behind.add(node)
    if not all(any(i in behind for i in u.inputs) for u in late):
        return None
    beside = [i for i in late[0].inputs if i in behind and isinstance(i.type, TensorType) and i.type.size]
    return _Late(path, late, level[late[0]], max(beside, key=level.__getitem__, default=None))


def _is_of_path(node: Node) -> bool:
    return node.prim is not None and (node.prim.view or node.prim in (collectives.all_gather, E.cast))


class _Copy:
    """A graph made anew, in which late users have paths of their own.

    `found` are the paths and late users, `tokens` what each path waits for. `nodes` are those of
    the graph by their levels: tokens come before the late users behind them, which need not depend
    on them.
    """

    def __init__(
        self, graph: Graph, found: Sequence[_Late], tokens: Sequence[Node | None], nodes: Sequence[Node]
    ) -> None:
        self.graph, self.found, self.tokens, self.nodes = graph, found, tokens, nodes
        self.image: dict[Node, Node] = {n: n for n in graph.inputs}
        # The paths by late user, and the images of their nodes.
        self.late: dict[Node, list[int]] = {}
        for k, late in enumerate(found):
            for user in late.users if tokens[k] is not None else ():
                self.late.setdefault(user, []).append(k)
        self.paths: list[dict[Node, Node]] = [{} for _ in found]

    def made(self) -> Graph:
        """Return the graph."""
        for node in self.nodes:
            if node.prim is None:
                self.image[node] = node
                continue
            inputs = []
            for operand in node.inputs:
                k = next((k for k in self.late.get(node, ()) if operand in self.found[k].path), None)
                inputs.append(self.image[operand] if k is None else self.again(k, operand))
            same = all(a is b for a, b in zip(inputs, node.inputs))
            self.image[node] = node if same else Node(node.prim, tuple(inputs), node.params, node.type, node.where)
        return Graph(self.graph.inputs, [self.image[o] for o in self.graph.outputs], self.graph.name)

    def again(self, k: int, node: Node) -> Node:
        """Return a node of a path, made again behind the path's token."""
        made = self.paths[k]
        if node not in made:
            if node.prim is None:
                token = self.tokens[k]
                assert token is not None
                made[node] = after(node, element_of(self.image[token]))
            else:
                made[node] = Node(node.prim, (self.again(k, node.inputs[0]),), node.params, node.type, node.where)
        return made[node]


def element_of(x: Node) -> Node:
    """Return one element of a rank's tensor."""
    rank = x.type.rank
    return S.reshape(S.slice_(x, (0,) * rank, (1,) * rank), ())
