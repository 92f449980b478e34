"""Builds the planning problem of a graph on a mesh: possible divisions and their costs.

Each node is an item whose alternatives are its divisions, each input one whose alternatives are its
layouts; each value is a link from its maker to its users, whose table is the seconds of the way
from the maker's layout to the one that a user's division implies. An output is wanted in its
layout: that of the input it is written to, a given one, or with nothing partial.

What is stored, and when nodes run, is that of the fused kernels (`kernel_liveness`). An input is
held all the time, and a value from its node to the last user, or to the last user of what is only a
view of it. A copy in another layout is held from the first user to the last. Where values are small
and gone at once nothing is counted: what matters is what waits for the backward pass.

Element-wise nodes follow their operand of the same shape: in large problems they choose alike.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import CONSTANT, GET_ITEM, Cost
from mycel._src.compiler.transforms.graph_rewriting import use_counts
from mycel._src.compiler.transforms.partition import (
    WHOLE,
    Move,
    Sharding,
    divisions_of,
    flowing,
    implied,
    part_of,
    route,
)
from mycel._src.compiler.transforms.partition.node_sharding import factors_at
from mycel._src.foundation.errors import ShapeError
from mycel._src.planner.kernel_liveness import kernels_of
from mycel._src.planner.optimisation_problem import Hold, Item, Link, Problem
from mycel._src.planner.resharding_cost import Ways, bytes_of
from mycel._src.planner.topology import Topology

__all__ = ["Posed", "layouts_of", "pose"]

Array = np.ndarray[Any, Any]
Value = tuple[Node, int]
Asking = tuple[int, list[Sharding], int]  # an item, the layout that each alternative wants, when
Table = tuple[Array, Array, tuple[Array, ...], tuple[Sharding, ...]]
NEGLIGIBLE = 1e-6  # of the limit: bytes that are left out, by their share of the moments


@dataclass(frozen=True, eq=False)
class Posed:
    """A problem, with the node of each item and the alternatives as layouts or divisions.

    The items of the graph's inputs come first. `ties` has for each item the number of those that it
    chooses alike with.
    """

    problem: Problem
    graph: Graph
    mesh: Mesh
    nodes: tuple[Node, ...]
    alternatives: tuple[tuple[Sharding, ...], ...]
    ties: tuple[int, ...]
    values: tuple[Value, ...]
    # Of each item and alternative: the layouts of its results. Of each link: those that are wanted.
    given: tuple[Sequence[Sequence[Sharding]], ...] = ()
    wanted: tuple[tuple[Sharding, ...], ...] = ()

    def moves(self, choices: Sequence[int]) -> Iterator[tuple[Node, Move]]:
        """Give the moves of an assignment, with the node that makes what is moved."""
        for link, (node, index), layouts in zip(self.problem.links, self.values, self.wanted):
            type = node.type[index] if isinstance(node.type, tuple) else node.type
            start = self.given[link.source][choices[link.source]][index]
            for layout in link.asked(choices):
                for move in route(start, layouts[layout], type, self.mesh):
                    yield node, move


def layouts_of(type: Any, mesh: Mesh) -> list[Sharding]:
    """Return the layouts of a tensor: each mesh axis divides one of its axes, or none.

    The first is whole. What is no tensor, and axes shorter than the number of devices, are whole.
    """
    if not isinstance(type, TensorType):
        return [WHOLE]
    found: dict[Sharding, None] = {}
    for choice in itertools.product(range(-1, type.rank), repeat=len(mesh.names)):
        parts: list[Any] = []
        for axis, size in enumerate(type.shape):
            names = tuple(n for n, c in zip(mesh.names, choice) if c == axis)
            if names and mesh.count(names) > int(size):
                break
            parts += part_of(mesh, axis, names, int(size))
        else:
            found[Sharding(tuple(parts))] = None
    return list(found)


def pose(
    graph: Graph,
    topology: Topology,
    inputs: Sequence[Sharding | None] | None = None,
    outputs: Sequence[Sharding | None] | None = None,
    aliases: Mapping[int, int] | None = None,
    limit: float | None = None,
) -> Posed:
    """Return the problem of a graph of static types, as it will be partitioned.

    `inputs` and `outputs` have the layouts that are given, None for those to be found; `aliases`
    maps outputs to the inputs whose layout they must have. `topology` has the mesh and what its
    links and devices do, `limit` the bytes that each may hold. Raises ShapeError for sizes that are
    symbols.
    """
    return _Posing(graph, topology, inputs, outputs, aliases or {}, limit).posed()


class _Posing:
    """What a problem is made of: items, their alternatives and the layouts that these imply."""

    def __init__(
        self,
        graph: Graph,
        topology: Topology,
        inputs: Sequence[Sharding | None] | None,
        outputs: Sequence[Sharding | None] | None,
        aliases: Mapping[int, int],
        limit: float | None,
    ) -> None:
        """Take `graph`, `topology`, `inputs`, `outputs`, `aliases` and `limit` as `pose` does."""
        self.graph, self.topology, self.limit, self.mesh = graph, topology, limit, topology.mesh
        self.inputs = list(inputs or [None] * len(graph.inputs))
        self.outputs = list(outputs or [None] * len(graph.outputs))
        self.aliases = aliases
        named = [n for n in graph.nodes if n.prim not in (CONSTANT, GET_ITEM)]
        self.nodes = [*graph.inputs, *named]
        self.number = {n: k for k, n in enumerate(self.nodes)}
        # Nodes whose results take the place of inputs.
        self.written = {v[0] for p in aliases for v in [self.value(graph.outputs[p])] if v is not None}
        self.items: dict[Node, list[Node]] = {}
        for n in graph.nodes:
            if n.prim is GET_ITEM:
                self.items.setdefault(n.inputs[0], []).append(n)
        self.kernels = kernels_of(graph, aliases)
        self.moments = self.kernels.count
        self.alternatives: list[tuple[Sharding, ...]] = []
        # Of each item and alternative: the layouts of operands, and of results.
        self.wanted: list[list[list[Sharding]]] = []
        self.given: list[list[list[Sharding]]] = []
        self.ways = Ways(topology)
        self.kinds: dict[Any, Any] = {}
        self.tables: dict[Any, Table] = {}
        self.columns: dict[Value, tuple[Sharding, ...]] = {}
        self.may_flow = _may_flow(graph)
        self.lists: dict[Any, list[Sharding]] = {}

    def posed(self) -> Posed:
        for k, node in enumerate(self.nodes):
            self._enter(k, node)
        users = self._users()
        lasts = self._lasts(users)
        items = [self._item(k, node, lasts) for k, node in enumerate(self.nodes)]
        links = [self._link(value, asking) for value, asking in users.items()]
        kept = [(v, k) for v, k in zip(users, links) if k is not None]
        problem = Problem(tuple(items), tuple(k for _, k in kept), self.limit)
        return Posed(
            problem,
            self.graph,
            self.mesh,
            tuple(self.nodes),
            tuple(self.alternatives),
            tuple(self._ties()),
            tuple(v for v, _ in kept),
            tuple(self.given),
            tuple(self.columns[v] for v, _ in kept),
        )

    def value(self, node: Node) -> Value | None:
        """Return the node that makes a value, and the number of the result; None for constants."""
        index = 0
        if node.prim is GET_ITEM:
            node, index = node.inputs[0], node.params["index"]
        return None if node.prim is CONSTANT else (node, index)

    def _enter(self, k: int, node: Node) -> None:
        for t in node.type if isinstance(node.type, tuple) else (node.type,):
            if isinstance(t, TensorType) and not t.is_static:
                raise ShapeError(
                    f"planner: the tensor {t} has a symbolic size; plans are made for known sizes only, so "
                    "compile the function for the sizes at hand"
                )
        if node.prim is None:
            fixed = self.inputs[k]
            known = self.kinds.get((node.type, fixed))
            if known is None:
                layouts = layouts_of(node.type, self.mesh) if fixed is None else [fixed]
                known = tuple(layouts), [[] for _ in layouts], [[s] for s in layouts]
                self.kinds[node.type, fixed] = known
            self._known(known)
            return
        # Nodes that look alike have the same divisions.
        flows = self.may_flow.get(node, ())
        params = tuple(sorted(node.params.items(), key=lambda p: p[0]))
        key = (node.prim, tuple(i.type for i in node.inputs), params, flows)
        found = self.kinds.get(key)
        if found is None:
            divisions = divisions_of(node, self.mesh)
            if flows:
                divisions += _partial(node, divisions, self.mesh)
            both = [_implied(node, d, flows) for d in divisions]
            found = tuple(divisions), [b[0] for b in both], [b[1] for b in both]
            self.kinds[key] = found
        self._known(found)

    def _known(self, found: Any) -> None:
        """Enter the alternatives of an item, and the layouts that each wants and gives."""
        self.alternatives.append(found[0])
        self.wanted.append(found[1])
        self.given.append(found[2])

    def _users(self) -> dict[Value, list[Asking]]:
        """Return of each value its users: the item, the layouts it wants, and its moment."""
        found: dict[Value, list[Asking]] = {}
        for k, node in enumerate(self.nodes):
            for at, operand in enumerate(node.inputs):
                value = self.value(operand)
                if value is not None and isinstance(operand.type, TensorType):
                    found.setdefault(value, []).append((k, self._column(self.wanted[k], at), self.moment(k)))
        for place, output in enumerate(self.graph.outputs):
            value = self.value(output)
            if value is None or not isinstance(output.type, TensorType):
                continue
            source, index = self.number[value[0]], value[1]
            fixed = self.outputs[place]
            if place in self.aliases:
                user = self.aliases[place]
                asking = (user, self._column(self.given[user], 0), self.moments)
            else:
                own = self._column(self.given[source], index)
                asking = (source, [s.reduced if fixed is None else fixed for s in own], self.moments)
                self.lists[place] = asking[1]
            found.setdefault(value, []).append(asking)
        return found

    def _column(self, lists: list[list[Sharding]], at: int) -> list[Sharding]:
        """Return entry `at` of each list, as the same list whenever it is asked for."""
        known = self.lists.get((id(lists), at))
        if known is None:
            known = self.lists[id(lists), at] = [one[at] for one in lists]
        return known

    def moment(self, k: int) -> int:
        """Return the moment at which an item is computed; inputs are there from the beginning."""
        return self.kernels.moment.get(self.nodes[k], 0)

    def _lasts(self, users: Mapping[Value, Sequence[Asking]]) -> list[int]:
        lasts = [self.moment(k) for k in range(len(self.nodes))]
        for k in reversed(range(len(self.nodes))):
            node = self.nodes[k]
            if node.prim is None:
                lasts[k] = self.moments
                continue
            for index in range(len(node.type) if isinstance(node.type, tuple) else 1):
                for user, _, when in users.get((node, index), ()):
                    prim = self.nodes[user].prim
                    ends = lasts[user] if prim is not None and prim.view and user > k else when
                    lasts[k] = max(lasts[k], ends)
        return lasts

    def _item(self, k: int, node: Node, lasts: Sequence[int]) -> Item:
        reads = tuple((node, at) in self.kernels.reads for at in range(len(node.inputs)))
        stored = node.prim is None or any(v in self.kernels.stored for v in self._results(node))
        key = ("item", id(self.given[k]), reads, stored)
        divisions = self.alternatives[k]
        types = node.type if isinstance(node.type, tuple) else (node.type,)
        known = self.kinds.get(key)
        if known is None:
            held = np.array([sum(bytes_of(t, s) for t, s in zip(types, g)) for g in self.given[k]], float) * stored
            lists = zip(divisions, self.wanted[k], held)
            seconds = np.array([self._seconds(node, d, w, h, reads) for d, w, h in lists])
            parts = tuple(tuple(self._divided(d, a) for a in self.mesh.names) for d in divisions)
            known = self.kinds[key] = (seconds, held, parts)
        seconds, held, parts = known
        first, last = self.moment(k), lasts[k]
        counted = self.limit is not None and held.max() * (last - first + 1) > NEGLIGIBLE * self.limit * self.moments
        if node.prim is not None and (node.prim.view or node in self.written):
            counted = False
        name = node.op or str(node.params.get("name", "input"))
        return Item(name, seconds, (Hold(held, first, last),) if counted else (), parts)

    def _results(self, node: Node) -> list[Node]:
        return [node, *self.items.get(node, ())]

    def _divided(self, division: Sharding, axis: str) -> int:
        if any(a == axis for a, _ in division.partial):
            return -2
        return next((p.axis for p in division.parts if axis in p.mesh_axes), -1)

    def _seconds(
        self, node: Node, division: Sharding, wants: Sequence[Sharding], written: float, reads: Sequence[bool]
    ) -> float:
        """Return the seconds that a rank computes its part of a node."""
        if node.prim is None or node not in self.kernels.moment or node.prim.view:
            return 0.0
        moved = written + sum(bytes_of(i.type, s) for i, s, read in zip(node.inputs, wants, reads) if read)
        flops = 0.0
        if node.prim.work is not None:
            flops = float(node.prim.work(node, int))
            for p in division.parts:
                flops *= p.length / p.size
        types = node.type if isinstance(node.type, tuple) else (node.type,)
        dtype = next((t.dtype.name for t in types if isinstance(t, TensorType)), "float32")
        device = self.topology.device
        if node.prim.cost is Cost.HEAVY and not node.prim.elementwise:
            return device.seconds(flops, moved, f"{node.op} {dtype}")
        return moved / device.bandwidth / device.efficiency

    def _link(self, value: Value, asking: Sequence[Asking]) -> Link | None:
        node, index = value
        source = self.number[node]
        type = node.type[index] if isinstance(node.type, tuple) else node.type
        # Nodes that look alike share the lists of their layouts, and so their links.
        key = (id(self.given[source]), index, type, tuple(id(w) for _, w, _ in asking))
        known = self.tables.get(key)
        if known is None:
            known = self.tables[key] = self._table([g[index] for g in self.given[source]], type, asking)
        seconds, copies, columns, self.columns[value] = known
        if not seconds.any():
            return None
        first, last = min(m for _, _, m in asking), max(m for _, _, m in asking)
        held: Array | None = copies
        if self.limit is None or copies.max() * (last - first + 1) <= NEGLIGIBLE * self.limit * self.moments:
            held = None
        return Link(source, tuple(u for u, _, _ in asking), columns, seconds, held, first, last)

    def _table(self, own: Sequence[Sharding], type: TensorType, asking: Sequence[Asking]) -> Table:
        """Return the seconds and bytes of all ways, and the column of each user's alternatives."""
        form = self.ways.form
        layouts: dict[int, tuple[int, Sharding]] = {}
        columns = []
        for _, wants, _ in asking:
            columns.append(np.array([layouts.setdefault(form(w), (len(layouts), w))[0] for w in wants]))
        rows: dict[int, tuple[int, Sharding]] = {}
        row = np.array([rows.setdefault(form(s), (len(rows), s))[0] for s in own])
        wanted = tuple([w for _, w in layouts.values()])
        seconds, copies = self.ways.table([s for _, s in rows.values()], wanted, type)
        return seconds[row], copies[row], tuple(columns), wanted

    def _ties(self) -> list[int]:
        """Return for each item the first of those that it chooses alike with."""
        leader = list(range(len(self.nodes)))

        def find(k: int) -> int:
            while leader[k] != k:
                k = leader[k]
            return k

        for k, node in enumerate(self.nodes):
            if node.prim is None or not node.prim.elementwise or not isinstance(node.type, TensorType):
                continue
            for operand in node.inputs:
                value = self.value(operand)
                if value is None or value[0].prim is None or not value[0].prim.elementwise:
                    continue
                other = self.number[value[0]]
                if operand.type.shape == node.type.shape and self.alternatives[other] == self.alternatives[k]:
                    leader[find(k)] = find(other)
        return [find(k) for k in range(len(self.nodes))]


# Sums that are partial and flow on.


def _may_flow(graph: Graph) -> dict[Node, tuple[int, ...]]:
    """Return the nodes between values that may be partial and an addition in which two of them
    meet, with the operands that flow on.

    Elsewhere nothing is gained by settling a sum later. A value is followed while it has one user,
    through views, products with numbers and additions.
    """
    uses = use_counts(graph)
    partial: set[Node] = set()
    through: dict[Node, tuple[int, ...]] = {}
    meeting: list[Node] = []
    for node in graph.nodes:
        if isinstance(node.type, tuple) or node.type.dtype.kind not in "fc":
            continue
        own = [k for k, v in enumerate(node.inputs) if v in partial and uses[v] == 1]
        flows = flowing(node, own) if own and _keeps(node) else ()
        if set(own) & set(flows):
            through[node] = flows
            partial.add(node)
            if len(own) > 1:
                meeting.append(node)
        elif any(f.combine == "sum" and f.results[0] is None for f in factors_at(node)):
            partial.add(node)
    found: dict[Node, tuple[int, ...]] = {}
    while meeting:
        node = meeting.pop()
        if node in through and node not in found:
            found[node] = through[node]
            meeting += [i for i in node.inputs if i in through and uses[i] == 1]
    return found


def _keeps(node: Node) -> bool:
    """Return whether a node is an addition, a view, or a product with a number."""
    assert node.prim is not None
    if node.prim.view or node.prim in (E.add, E.sub, E.neg):
        return True
    return node.prim in (E.mul, E.div) and any(i.type.size == 1 for i in node.inputs)


def _partial(node: Node, divisions: Sequence[Sharding], mesh: Mesh) -> list[Sharding]:
    """Return divisions with sums partial along mesh axes that they leave free."""
    combined = [f.combine for f in factors_at(node)]
    result = []
    for division in divisions:
        if any(combined[p.axis] for p in division.parts):
            continue
        free = [a for a in mesh.names if a not in division.mesh_axes and mesh.count((a,)) > 1]
        for count in range(1, len(free) + 1):
            for axes in itertools.combinations(free, count):
                result.append(Sharding(division.parts, tuple([(a, "sum") for a in axes])))
    return result


def _implied(node: Node, division: Sharding, flows: Sequence[int]) -> tuple[list[Sharding], list[Sharding]]:
    operands, results = implied(node, division)
    if division.partial:
        operands = [Sharding(s.parts, division.partial) if k in flows else s for k, s in enumerate(operands)]
    return operands, results
