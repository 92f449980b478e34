"""Cuts out the graph of one device of a pipeline: its stages' nodes, in order, and their messages.

Every device is a group of ranks, a mesh, and has the stages d, d + p, d + 2p and so on of p.
Its graph has the nodes of its units, and what they need that has no unit. A value that another
device uses is sent when its unit has been computed, and received in front of the first unit there
that uses it, once. The messages of a device are a chain of tokens in the order of its schedule; so
engines keep that order, and as sending waits for nobody, devices never wait for each other in a
circle. Messages of the update are in the order of the graph, which is one for all devices.

The order is that of memory, too. Forward units without messages begin with a micro-batch's data,
which wait for the unit before them (`awaiting`). Sums of gradients are added up in the order in
which the schedule makes their terms, so that there is never more than one sum and one term.

An output that replaces an input, as the new value of a parameter, is on every device that uses the
input; others are on all devices.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

from mycel._src.compiler.ir.graph import Graph, Node, at, toposort
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import constant
from mycel._src.compiler.prims.distributed.point_to_point import FIRST_TAG, awaiting, messages
from mycel._src.compiler.transforms.graph_rewriting import use_counts
from mycel._src.compiler.transforms.optimisation.cse import eliminate_common_subexpressions
from mycel._src.compiler.transforms.partition.collective_fusion import BY_SIZE, Fusing, fuse
from mycel._src.compiler.transforms.pipeline_parallel.stage_assignment import Assignment, Kind, Unit
from mycel._src.foundation.dtype import int32
from mycel._src.foundation.errors import ShapeError

__all__ = ["Crossing", "Pipe", "Stage", "cut"]


@dataclass(frozen=True)
class Stage:
    """The graph of one device: which inputs and outputs of the whole graph it has.

    `graph` has one more output, a token. `sent` is the number of bytes that each rank of the device
    sends to other devices.
    """

    graph: Graph
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    sent: float


class Crossing(NamedTuple):
    """A value that one device sends to another, at the places `sent` and `received` in their
    orders.
    """

    value: Node
    source: int
    target: int
    sent: tuple[int, int, int]
    received: tuple[int, int, int]
    tag: int


def cut(
    graph: Graph,
    made: Assignment,
    orders: Sequence[Sequence[Unit]],
    base: Mesh,
    meshes: Sequence[Mesh],
    tied: Mapping[int, int],
    device: int,
    fusing: Fusing = BY_SIZE,
) -> Stage:
    """Return the graph of one device of a pipeline.

    `graph` is what a rank of the mesh `base` computes alone, and `made` has its units. `orders` has
    the forward and backward units of each device in their order, `meshes` the ranks of each device,
    `tied` the input that each output replaces; `device` is the number of the device. Collectives
    are joined as `fusing` says. Raises ShapeError where a unit uses what its order makes later.
    """
    return Pipe(graph, made, orders, base, meshes, tied).stage(device, fusing)


class Pipe:
    """What the devices of a pipeline have in common: units, places in orders, and messages."""

    def __init__(
        self,
        graph: Graph,
        made: Assignment,
        orders: Sequence[Sequence[Unit]],
        base: Mesh,
        meshes: Sequence[Mesh],
        tied: Mapping[int, int],
    ) -> None:
        """Find the messages of all devices; `graph`, `made`, `orders`, `base`, `meshes` and `tied`
        are those of `cut`.
        """
        self.base, self.meshes, self.count = base, meshes, len(meshes)
        self.place = {u: k for order in orders for k, u in enumerate(order)}
        self.last = [len(order) for order in orders]
        self.graph, self.units = _in_order(graph, dict(made.units), self.place)
        self.data, self.tied = made.data, tied
        self.number = {n: k for k, n in enumerate(self.graph.nodes)}
        self.ends = self._ends()
        self.users: dict[int, set[int]] = {}
        self._find_users()
        self.crossings = self._crossings()

    def device(self, unit: Unit) -> int:
        return unit.stage % self.count

    def at(self, unit: Unit) -> int:
        """Return the place of a unit in its device's order."""
        return self.last[self.device(unit)] if unit.kind is Kind.UPDATE else self.place[unit]

    def _ends(self) -> dict[tuple[int, int], list[Node]]:
        """Return what each backward unit gives to later units of its device, by device and
        place.
        """
        later = set(self.graph.outputs)
        for node in self.graph.nodes:
            unit = self.units.get(node)
            for i in node.inputs if unit is not None else ():
                other = self.units.get(i)
                if other is not None and unit != other and unit is not None and unit.stage == other.stage:
                    later.add(i)
        found: dict[tuple[int, int], list[Node]] = {}
        for node, unit in self.units.items():
            if node in later and unit.kind is Kind.BACKWARD:
                if isinstance(node.type, TensorType) and node.type.size:
                    found.setdefault((self.device(unit), self.place[unit]), []).append(node)
        return found

    def _find_users(self) -> None:
        """Find the devices that use each input of the graph, by its number."""
        while True:
            reached: dict[Node, set[int]] = {}
            for k, node in enumerate(self.graph.outputs if self.users else ()):
                reached.setdefault(node, set()).update(self.devices_of_output(k))
            for node in reversed(self.graph.nodes):
                unit = self.units.get(node)
                own = {self.device(unit)} if unit is not None else reached.get(node, set())
                for i in node.inputs:
                    if i not in self.units:
                        reached.setdefault(i, set()).update(own)
            before, self.users = self.users, {k: reached.get(n, set()) for k, n in enumerate(self.graph.inputs)}
            if self.users == before:
                return

    def devices_of_output(self, k: int) -> set[int]:
        """Return the devices that have an output of the graph."""
        everywhere = set(range(self.count))
        if k not in self.tied:
            return everywhere
        unit = self.units.get(self.graph.outputs[k])
        found = set(self.users[self.tied[k]])
        if unit is not None:
            found.add(self.device(unit))
        return found or everywhere

    def devices_of_input(self, k: int) -> set[int]:
        """Return the devices that may have an input of the graph in theirs."""
        return self.users[k].union(*[self.devices_of_output(o) for o, i in self.tied.items() if i == k])

    def _crossings(self) -> list[Crossing]:
        wanted: dict[tuple[Node, int], int] = {}

        def want(value: Node, target: int, place: int, user: str) -> None:
            unit = self.units.get(value)
            if unit is None:
                return
            if self.device(unit) == target:
                if self.at(unit) > place:
                    raise ShapeError(
                        f"the schedule has {user} before {_named(unit)}, whose value it uses; a loss that is not a "
                        "mean or a sum over micro-batches needs the schedule 'gpipe'"
                    )
                return
            key = (value, target)
            wanted[key] = min(place, wanted.get(key, place))

        for node in self.graph.nodes:
            unit = self.units.get(node)
            for value in node.inputs if unit is not None else ():
                assert unit is not None
                want(value, self.device(unit), self.at(unit), _named(unit))
        for k, value in enumerate(self.graph.outputs):
            for target in self.devices_of_output(k):
                want(value, target, self.last[target], "the end")
        found = []
        for tag, ((value, target), place) in enumerate(sorted(wanted.items(), key=lambda w: self._order(*w[0]))):
            unit, number = self.units[value], self.number[value]
            source = self.device(unit)
            update = unit.kind is Kind.UPDATE
            sent = (self.last[source], 0, number) if update else (self.at(unit), 1, 0)
            received = (place, 0, number if place == self.last[target] else 0)
            found.append(Crossing(value, source, target, sent, received, FIRST_TAG + tag))
        return found

    def _order(self, value: Node, target: int) -> tuple[int, int]:
        return self.number[value], target

    def stage(self, device: int, fusing: Fusing = BY_SIZE) -> Stage:
        """Return the graph of one device."""
        made = _Maker(self, device)
        made.exchange()
        numbers = tuple([k for k in range(len(self.graph.outputs)) if device in self.devices_of_output(k)])
        results = [made.image_of(self.graph.outputs[k]) for k in numbers]
        graph = Graph(self.graph.inputs, [*results, made.token], f"{self.graph.name}_{device}")
        graph = eliminate_common_subexpressions(fuse(eliminate_common_subexpressions(graph), fusing))
        used = {n for n in toposort(graph.outputs) if n.prim is None}
        kept = {self.tied[k] for k in numbers if k in self.tied}
        inputs = tuple([k for k, n in enumerate(graph.inputs) if n in used or k in kept])
        graph = Graph([graph.inputs[k] for k in inputs], graph.outputs, graph.name)
        sent = sum(float(c.value.type.nbytes) for c in self.crossings if c.source == device)
        return Stage(graph, inputs, numbers, sent)


class _Maker:
    """Makes the nodes of one device."""

    def __init__(self, pipe: Pipe, device: int) -> None:
        self.pipe, self.device = pipe, device
        self.mesh = pipe.meshes[device]
        self.token = self.worked = constant(0, int32)
        self.image: dict[Node, Node] = {}
        self.awaited: dict[tuple[Node, Unit], Node] = {}

    def exchange(self) -> None:
        """Make the messages of the device in their order, and all that they send."""
        pipe = self.pipe
        groups: dict[tuple[int, int, int], tuple[list[Crossing], list[Crossing]]] = {}
        for c in pipe.crossings:
            if c.source == self.device:
                groups.setdefault(c.sent, ([], []))[0].append(c)
            if c.target == self.device:
                groups.setdefault(c.received, ([], []))[1].append(c)
        done = 0
        for key in sorted(groups):
            while done < min(key[0], pipe.last[self.device]):
                self.end(done)
                done += 1
            self.pass_on(*groups[key])

    def end(self, place: int) -> None:
        """Have what comes later wait for the end of a backward unit."""
        ends = self.pipe.ends.get((self.device, place))
        if ends:
            first, *others = [_element(self.image_of(n)) for n in ends]
            self.worked = awaiting(first, *others)

    def pass_on(self, sent: Sequence[Crossing], received: Sequence[Crossing]) -> None:
        pipe = self.pipe
        values = [self.image_of(c.value) for c in sent]
        arrivals = [
            (pipe.meshes[c.source], c.tag, tuple(int(d) for d in c.value.type.shape), c.value.dtype) for c in received
        ]
        where = (sent or received)[0].value.where
        with at(where):
            made = messages.outputs(
                *values,
                *dict.fromkeys((self.token, self.worked)),
                mesh=self.mesh,
                sent=tuple([(pipe.meshes[c.target], c.tag) for c in sent]),
                received=tuple(arrivals),
            )
        self.token = self.worked = made[-1]
        for c, arrived in zip(received, made):
            self.image[c.value] = arrived

    def image_of(self, value: Node) -> Node:
        """Return what the device has of a value."""
        image = self.image
        for node in toposort([value], stop=image):
            if node not in image:
                image[node] = node if node.prim is None else self.made(node)
        return image[value]

    def made(self, node: Node) -> Node:
        pipe, unit = self.pipe, self.pipe.units.get(node)
        assert unit is None or pipe.device(unit) == self.device, f"{node} has not been received"
        operands = [self.image[i] for i in node.inputs]
        if unit is not None and unit.kind is Kind.FORWARD and all(i not in pipe.units for i in node.inputs):
            operands = [self.later(i, o, unit) if i in pipe.data else o for i, o in zip(node.inputs, operands)]
        params = node.params if self.mesh == pipe.base else _on(self.mesh, pipe.base, node.params)
        if params is node.params and all(a is b for a, b in zip(operands, node.inputs)):
            return node
        return Node(node.prim, tuple(operands), params, node.type, node.where)

    def later(self, value: Node, image: Node, unit: Unit) -> Node:
        """Return data of a forward unit, which wait for what comes before the unit."""
        if self.worked.is_constant or not isinstance(value.type, TensorType):
            return image
        key = (value, unit)
        if key not in self.awaited:
            with at(value.where):
                self.awaited[key] = awaiting(image, self.worked)
        return self.awaited[key]


def _element(x: Node) -> Node:
    rank = x.type.rank
    return S.reshape(S.slice_(x, (0,) * rank, (1,) * rank), ()) if rank else x


def _named(unit: Unit) -> str:
    if unit.kind is Kind.UPDATE:
        return "the update"
    return f"{unit.kind.name.lower()} of micro-batch {unit.micro} in stage {unit.stage}"


def _in_order(graph: Graph, units: dict[Node, Unit], place: Mapping[Unit, int]) -> tuple[Graph, dict[Node, Unit]]:
    """Return a graph whose sums over micro-batches add their terms in the order of the schedule.

    `units` are those of the nodes, `place` those of units in orders.
    """
    uses = use_counts(graph)
    inner: set[Node] = set()
    for node in graph.nodes:
        for i in node.inputs if _is_sum(node, units) else ():
            if uses[i] == 1 and _is_sum(i, units) and units[i].stage == units[node].stage:
                inner.add(i)
    image: dict[Node, Node] = {}
    found: dict[Node, Unit] = {}
    for node in graph.nodes:
        if node in inner:
            continue
        unit = units.get(node)
        if _is_sum(node, units):
            assert unit is not None
            terms = sorted(_terms(node, inner), key=lambda t: _when(units.get(t), place))
            image[node] = _summed(node, terms, image, units, found)
            continue
        operands = tuple(image.get(i, i) for i in node.inputs)
        same = all(a is b for a, b in zip(operands, node.inputs))
        image[node] = node if same else Node(node.prim, operands, node.params, node.type, node.where)
        if unit is not None:
            found[image[node]] = unit
    return Graph(graph.inputs, [image.get(o, o) for o in graph.outputs], graph.name), found


def _when(unit: Unit | None, place: Mapping[Unit, int]) -> tuple[int, int]:
    return (-1, 0) if unit is None else (unit.micro, place.get(unit, 0))


def _is_sum(node: Node, units: Mapping[Node, Unit]) -> bool:
    """Return whether a node adds up terms of several micro-batches in one stage."""
    unit = units.get(node)
    if node.prim is not E.add or unit is None or unit.kind is not Kind.BACKWARD:
        return False
    if any(i.type != node.type for i in node.inputs):
        return False
    below = [units.get(i) for i in node.inputs]
    return all(u is not None and u.kind is Kind.BACKWARD and u.stage == unit.stage for u in below) and (
        len({u.micro for u in below if u is not None}) > 1
    )


def _terms(node: Node, inner: Collection[Node]) -> list[Node]:
    left, found = [node], []
    while left:
        one = left.pop()
        if one is node or one in inner:
            left += reversed(one.inputs)
        else:
            found.append(one)
    return found


def _summed(
    node: Node, terms: Sequence[Node], image: Mapping[Node, Node], units: Mapping[Node, Unit], found: dict[Node, Unit]
) -> Node:
    """Return the sum of `terms` in their order, in place of `node`; its partial sums have the units
    of their last terms, which are entered in `found`.

    `image` and `units` are those of nodes of the graph before.
    """
    stage, micro = units[node].stage, -1

    def add(total: tuple[Node, int], term: Node) -> tuple[Node, int]:
        micro = max(total[1], units[term].micro)
        made = E.add(total[0], image.get(term, term))
        found[made] = Unit(Kind.BACKWARD, stage, micro)
        return made, micro

    with at(node.where):
        micro = units[terms[0]].micro
        return reduce(add, terms[1:], (image.get(terms[0], terms[0]), micro))[0]


def _on(mesh: Mesh, base: Mesh, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return parameters with `mesh` in place of `base`, also in the graphs among them."""
    found = {k: _graph_on(mesh, base, v) if isinstance(v, Graph) else v for k, v in params.items()}
    if found.get("mesh") == base:
        found["mesh"] = mesh
    return params if all(found[k] is v for k, v in params.items()) else found


def _graph_on(mesh: Mesh, base: Mesh, graph: Graph) -> Graph:
    image: dict[Node, Node] = {}
    for node in graph.nodes:
        operands = tuple([image.get(i, i) for i in node.inputs])
        params = _on(mesh, base, node.params)
        if params is not node.params or any(a is not b for a, b in zip(operands, node.inputs)):
            image[node] = Node(node.prim, operands, params, node.type, node.where)
    return Graph(graph.inputs, [image.get(o, o) for o in graph.outputs], graph.name) if image else graph
