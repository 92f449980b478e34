"""Sharding propagation: chooses each node's division from those of its operands and users.

A node's operands *claim* divisions: a part of an operand that lies in one of the node's factors
says that the factor be divided there. Claims that agree are followed, without any cost. Where
claims exclude each other, each largest set of claims that does not is a candidate, and the one that
moves the fewest bytes wins, with the work that ranks do in common counted as bytes. One rule goes
before that: along a mesh axis that divides data, which are inputs that no output replaces, values
made of parameters alone give way. So weights that are stored divided are gathered where a batch
meets them, as small as that batch may be.

A sum that is partial flows on through nodes that are linear in it and do not make it larger, while
nobody else uses it; paddings may, where they put the parts of a tensor together. Then it is reduced
once for all users: scattered where a user wants it divided along these mesh axes, reduced for
everyone else.

What users want is found by a first run without wishes, and one pass backwards over its result: a
user wants each operand as its own division implies it, and where nothing divides the user, as its
users want its result. The second run hears the wishes: they decide how partial values are reduced,
and divide what no operand divides, as random numbers or updates of weights, if all users agree.

Additions by index into a partial value are taken apart from it, so that both are added up while
they are partial. Softmax and moments that have an operand divided along what they combine are
opened to simpler primitives, whose reductions can be combined; of other nodes an operand that is
divided where they have no factor is gathered. Calls of graphs are replaced by what the graphs do.
The graphs of loops and conditions are divided by themselves (`nested`), from the layouts that their
operands have.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import GET_ITEM
from mycel._src.compiler.prims.factors import Factor
from mycel._src.compiler.prims.neural.normalization import log_softmax, moments, softmax
from mycel._src.compiler.transforms.expansion import CALLS, calls_itself
from mycel._src.compiler.transforms.graph_rewriting import use_counts
from mycel._src.compiler.transforms.partition.control_flow import HOLDERS, Inside, Nested
from mycel._src.compiler.transforms.partition.node_sharding import (
    allowed,
    factor_part,
    factors_at,
    implied,
    need_division,
    result_types,
    tensor_part,
)
from mycel._src.compiler.transforms.partition.partial_sums import adds_into, terms_beside
from mycel._src.compiler.transforms.partition.resharding import route
from mycel._src.compiler.transforms.partition.tensor_sharding import WHOLE, Part, Sharding, elements, part_along, static
from mycel._src.foundation.errors import ShapeError

__all__ = ["BYTES_PER_BYTE", "BYTES_PER_FLOP", "Choice", "Problem", "choose", "flowing", "to_open"]

Layout = Sharding | tuple[Sharding, ...]
# The bytes that a rank could send in the time of one floating-point operation.
BYTES_PER_FLOP = 0.005
# And in which it makes a byte of a result.
BYTES_PER_BYTE = 0.01
# Primitives that open where operands are divided along what they combine.
OPENED = (moments, softmax, log_softmax)
MOST_CANDIDATES = 64


class Choice:
    """The layouts of all values and the divisions of all nodes of a graph.

    `layouts` has that in which a node gives its value, with what is partial; `reduced` that in
    which users other than linear ones find it. `opened` are nodes that had better be opened;
    `inside` has the nodes that hold graphs, and how these are divided.
    """

    def __init__(self) -> None:
        self.layouts: dict[Node, Layout] = {}
        self.reduced: dict[Node, Sharding] = {}
        self.divisions: dict[Node, Sharding] = {}
        self.flows: dict[Node, tuple[int, ...]] = {}
        self.opened: list[Node] = []
        self.inside: dict[Node, Inside] = {}


@dataclass(frozen=True)
class Problem:
    """A graph whose nodes are to be divided on a mesh.

    `inputs` and `outputs` are the layouts asked for, None where any will do; `tied` has, for
    outputs that must be laid out as an input, the number of that input; `plan` has the divisions of
    nodes that are decided. `parameters` are the inputs that are no data, `data_axes` the mesh axes
    that divide data, None for those that divide the other inputs. `nested` divides inner graphs.
    """

    graph: Graph
    mesh: Mesh
    inputs: Sequence[Sharding | None]
    outputs: Sequence[Sharding | None]
    tied: Mapping[int, int]
    plan: Mapping[Node, Sharding]
    parameters: frozenset[Node]
    data_axes: frozenset[str] | None
    nested: Nested


# What users want of a value along one mesh axis: a part, with whether all of them agree, or None
# for the whole.
Wish = tuple[Part, bool] | None
Wishes = dict[str, Wish]


def choose(problem: Problem) -> Choice:
    """Return the divisions of a graph's nodes."""
    graph, tied = problem.graph, problem.tied
    first = _Chooser(problem, {}).run()
    wanted = [
        _bare(first.layouts[graph.inputs[tied[k]]]) if o is None and k in tied else o
        for k, o in enumerate(problem.outputs)
    ]
    wishes = _wishes(graph, problem.mesh, first, wanted)
    return _Chooser(problem, wishes).run()


def _bare(layout: Layout) -> Sharding:
    assert isinstance(layout, Sharding)
    return layout


class _Chooser:
    def __init__(self, problem: Problem, wishes: Mapping[Node, Wishes]) -> None:
        """Begin with the layouts of the inputs.

        `wishes` is what users want of each value of the `problem` along each mesh axis.
        """
        graph, kept = problem.graph, problem.parameters
        self.graph, self.mesh, self.plan, self.wishes = graph, problem.mesh, problem.plan, wishes
        self.nested = problem.nested
        self.uses = use_counts(graph)
        self.beside = terms_beside(graph)
        self.result = Choice()
        self.moved: dict[Node, dict[Sharding, None]] = {}  # the layouts that users had of values
        self.free: set[Node] = set()
        for node, layout in zip(graph.inputs, problem.inputs):
            if layout is None:
                self.free.add(node)
            self.result.layouts[node] = layout or WHOLE
        # Values of parameters alone, and the mesh axes that divide data.
        self.parameters: set[Node] = set(kept)
        self.data_axes: set[str] = set(problem.data_axes or ())
        for node in graph.inputs if problem.data_axes is None else ():
            if node not in kept:
                self.data_axes.update(self.seen(node).mesh_axes)

    def run(self) -> Choice:
        for node in self.graph.nodes:
            self.visit(node)
        for node in self.graph.outputs:
            if self.uses[node] > 1:
                self.reduce(node)
        return self.result

    def reduce(self, value: Node) -> Sharding:
        """Return the layout in which a value is found by those that cannot have it partial."""
        layout = self.result.layouts[value]
        assert isinstance(layout, Sharding)
        if not layout.partial:
            return layout
        found = self.result.reduced.get(value)
        if found is None:
            found = layout.reduced
            partial = {a for a, _ in layout.partial}
            for axis in self.mesh.names:
                wish = self.wishes.get(value, {}).get(axis)
                if axis in partial and wish is not None and partial >= set(wish[0].mesh_axes) and found.fits(wish[0]):
                    found = Sharding((*found.parts, wish[0]))
            self.result.reduced[value] = found
        return found

    def visit(self, node: Node) -> None:
        made = self.result
        if node.inputs and all(i in self.parameters or i.is_constant for i in node.inputs):
            self.parameters.add(node)
        if node.prim is GET_ITEM:
            whole = made.layouts[node.inputs[0]]
            made.layouts[node] = whole[node.params["index"]] if isinstance(whole, tuple) else whole
            return
        if not self.touched(node):
            made.divisions[node], made.flows[node] = WHOLE, ()
            made.layouts[node] = (WHOLE,) * len(node.type) if isinstance(node.type, tuple) else WHOLE
            if node.prim in CALLS and not calls_itself(node):
                made.opened.append(node)
            return
        if node.prim in HOLDERS:
            self.hold(node)
            return
        factors = factors_at(node)
        flows: tuple[int, ...] = ()
        if node in self.plan:
            division = self.plan[node]
            need_division(node, division, self.mesh)
            if division.partial:
                flows = flowing(node, [k for k, v in enumerate(node.inputs) if self.partial(v)])
                if not flows or any(op != "sum" for _, op in division.partial):
                    raise ShapeError(f"{node.op}: what is partial in {division} is no sum that it can leave so")
        else:
            division = self.divide(node, factors)
            flows = self.flow(node, division)
            if flows:
                division = Sharding(division.parts, self.partial(node.inputs[flows[0]]))
        for k, value in enumerate(node.inputs):
            if self.partial(value) and k not in flows and self.uses[value] > 1:
                self.reduce(value)
        operands, results = implied(node, division)
        self.use(node, operands)
        made.divisions[node], made.flows[node] = division, flows
        made.layouts[node] = tuple(results) if isinstance(node.type, tuple) else results[0]

    def use(self, node: Node, operands: Sequence[Sharding]) -> None:
        """Note that a node has its operands in these layouts."""
        layouts = self.result.layouts
        for value, layout in zip(node.inputs, operands):
            if value in self.free and layout.is_even:
                layouts[value] = layout
            self.free.discard(value)
            if layout != layouts[value]:
                self.moved.setdefault(value, {})[layout] = None

    def hold(self, node: Node) -> None:
        """Divide the graphs that a node holds."""
        made = self.result
        for value in node.inputs:
            if self.partial(value) and self.uses[value] > 1:
                self.reduce(value)
        layouts = [self.seen(v) for v in node.inputs]
        stable = [v in self.parameters for v in node.inputs]
        inside = self.nested.of(node, layouts, stable, frozenset(self.data_axes))
        self.use(node, inside.operands)
        made.inside[node], made.divisions[node], made.flows[node] = inside, WHOLE, ()
        made.layouts[node] = inside.results

    def touched(self, node: Node) -> bool:
        """Return whether anything asks for a division: an operand, a user, or a plan."""
        if node in self.plan or any(self.wishes.get(node, {}).values()):
            return True
        layouts = self.result.layouts
        if any(layouts[i] != WHOLE or i in self.free for i in node.inputs):
            return True
        return node.prim in HOLDERS and self.nested.is_planned(node)

    # Claims.

    def divide(self, node: Node, factors: Sequence[Factor]) -> Sharding:
        claims: dict[Part, bool] = {}
        lost = False
        for k, value in enumerate(node.inputs):
            if not isinstance(value.type, TensorType):
                continue
            for part in self.seen(value).parts:
                claim = factor_part(part, factors, [f.operands[k] for f in factors])
                if claim is not None and allowed(node, factors, claim):
                    claims[claim] = claims.get(claim, False) or value not in self.parameters
                else:
                    lost = True
        into_partial = adds_into(node) and bool(self.partial(node.inputs[0]))
        if (lost and node.prim in OPENED) or into_partial or (node.prim in CALLS and not calls_itself(node)):
            self.result.opened.append(node)
        soft = self.asked(node, factors)
        found = [self.extended(node, factors, c, soft) for c in self.candidates(node, factors, self.firm(claims))]
        return found[0] if len(found) == 1 else min(found, key=lambda d: self.cost(node, factors, d))

    def firm(self, claims: Mapping[Part, bool]) -> list[Part]:
        """Return the claims without those of parameters that data contest; true marks data."""
        contested = {a for c, data in claims.items() if data for a in c.mesh_axes} & self.data_axes
        return [c for c, data in claims.items() if data or not contested & set(c.mesh_axes)]

    def seen(self, value: Node) -> Sharding:
        """Return the layout of a value as far as it is divided, reduced or not."""
        layout = self.result.layouts[value]
        assert isinstance(layout, Sharding)
        if not layout.partial or (self.uses[value] == 1 and value not in self.result.reduced):
            return layout.reduced
        return self.reduce(value)

    def candidates(self, node: Node, factors: Sequence[Factor], claims: list[Part]) -> list[Sharding]:
        """Return the largest sets of claims that agree, in the order of the claims."""
        whole = self.extended(node, factors, WHOLE, claims, flows=False)
        if len(whole.parts) == len(claims):
            return [whole]
        found: dict[Sharding, None] = {}

        def grow(division: Sharding, left: list[Part]) -> None:
            if len(found) >= MOST_CANDIDATES:
                return
            fitting = [c for c in left if allowed(node, factors, c, division)]
            if not fitting:
                found[division] = None
                return
            for k, claim in enumerate(fitting):
                rest = fitting[:k] + fitting[k + 1 :]
                grow(Sharding((*division.parts, claim)), rest)
                if all(self._agree(node, factors, claim, c, division) for c in rest):
                    return  # the others lose nothing by this one

        grow(Sharding(), claims)
        largest = [d for d in found if not any(set(d.parts) < set(o.parts) for o in found)]
        return largest or [Sharding()]

    def _agree(self, node: Node, factors: Sequence[Factor], one: Part, two: Part, division: Sharding) -> bool:
        return allowed(node, factors, two, Sharding((*division.parts, one)))

    def asked(self, node: Node, factors: Sequence[Factor]) -> list[Part]:
        """Return the divisions that users of the result wish for and that nothing is moved for."""
        if isinstance(node.type, tuple) or not factors:
            return []
        result = []
        partial = {a for v in node.inputs for a, _ in self.partial(v)}
        for axis in self.mesh.names:
            wish = self.wishes.get(node, {}).get(axis)
            if wish is not None and (wish[1] or axis in partial):
                claim = factor_part(wish[0], factors, [f.results[0] for f in factors])
                if claim is not None and claim not in result:
                    result.append(claim)
        return result

    def partial(self, value: Node) -> tuple[tuple[str, str], ...]:
        layout = self.result.layouts[value]
        return layout.partial if isinstance(layout, Sharding) else ()

    def extended(
        self, node: Node, factors: Sequence[Factor], division: Sharding, claims: Iterable[Part], flows: bool = True
    ) -> Sharding:
        """Return a `division` of a `node` with those of `claims` that can be added, in order.

        `factors` are those of the node. With `flows` none is added where something partial would
        otherwise flow on.
        """
        for claim in claims:
            if allowed(node, factors, claim, division) and not (flows and self.flow(node, division)):
                division = Sharding((*division.parts, claim))
        return division

    def cost(self, node: Node, factors: Sequence[Factor], division: Sharding) -> float:
        """Return the bytes that a division moves, with the time of its work as bytes."""
        operands, results = implied(node, division)
        total = 0.0
        for value, layout in zip(node.inputs, operands):
            if isinstance(value.type, TensorType):
                native = self.result.layouts[value]
                assert isinstance(native, Sharding)
                ways = [route(s, layout, value.type, self.mesh) for s in (native, *self.moved.get(value, ()))]
                total += min(sum(m.sent for m in way) for way in ways)
        for layout, type in zip(results, result_types(node)):
            if isinstance(type, TensorType):
                total += self.afterwards(node, layout, type)
        share = 1
        for p in division.parts:
            share *= p.count
        if node.prim is not None and node.prim.work is not None:
            total += node.prim.work(node, int) / share * BYTES_PER_FLOP
        return total

    def afterwards(self, node: Node, layout: Sharding, type: TensorType) -> float:
        """Return the bytes by which a result gets to where users wish it, at least reduced."""
        end = layout.reduced
        for axis in self.mesh.names:
            wish = self.wishes.get(node, {}).get(axis)
            if wish is not None and end.fits(wish[0]):
                end = Sharding((*end.parts, wish[0]))
            elif wish is not None and wish[1] and end.without((axis,)).fits(wish[0]):
                end = Sharding((*end.without((axis,)).parts, wish[0]))
        reduced = sum(m.sent for m in route(layout, end, type, self.mesh))
        return reduced + elements(static(type), layout) * type.dtype.itemsize * BYTES_PER_BYTE

    # Partial sums that flow on.

    def flow(self, node: Node, division: Sharding) -> tuple[int, ...]:
        """Return the operands that stay partial, empty where none does."""
        prim, made = node.prim, self.result
        found = [k for k, v in enumerate(node.inputs) if self.partial(v)]
        if not found or prim is None or isinstance(node.type, tuple) or node.type.dtype.kind not in "fc":
            return ()
        partial = self.partial(node.inputs[found[0]])
        axes = {a for a, _ in partial}
        if any(op != "sum" for _, op in partial) or axes & set(division.mesh_axes):
            return ()
        for k in found:
            value = node.inputs[k]
            if self.partial(value) != partial or self.uses[value] != 1 or value in made.reduced:
                return ()
        if not _is_linear(node, found) or _uses_twice(node):
            return ()
        _, results = implied(node, division)
        if results[0].partial:
            return ()
        size = elements(node.type.shape, results[0]) * node.type.dtype.itemsize
        room = 0
        for value in dict.fromkeys(node.inputs[k] for k in found):
            layout = made.layouts[value]
            assert isinstance(layout, Sharding)
            room += elements(value.type.shape, layout) * value.type.dtype.itemsize * self.beside.get(node, 1)
        return tuple(found) if size <= room else ()


def to_open(graph: Graph) -> list[Node]:
    """Return the nodes that are opened before all nodes of a graph are given divisions.

    They are calls of graphs, and moments along the first axis, which is that of batches.
    """
    return [
        n
        for n in graph.nodes
        if (n.prim in CALLS and not calls_itself(n)) or (n.prim is moments and 0 in n.params["axes"])
    ]


def _uses_twice(node: Node) -> bool:
    return len(set(node.inputs)) != len(node.inputs)


def flowing(node: Node, partial: Sequence[int] = ()) -> tuple[int, ...]:
    """Return the operands in which a node is linear together, so that sums of them may be partial.

    Of a product it is one, of those in `partial` if there are any. Empty where there is none.
    """
    if node.prim is None or isinstance(node.type, tuple) or node.type.dtype.kind not in "fc" or _uses_twice(node):
        return ()
    if node.prim in (E.mul, E.div):
        sides = (0, 1) if node.prim is E.mul else (0,)
        return tuple(([k for k in partial if k in sides] or [0])[:1])
    found = tuple([k for k, v in enumerate(node.inputs) if v.dtype.kind in "fc" and not _is_zero(v)])
    return found if _is_linear(node, found) else ()


def _is_linear(node: Node, found: Sequence[int]) -> bool:
    """Return whether a node is linear in the operands `found` together."""
    prim = node.prim
    assert prim is not None
    if prim is E.mul:
        return len(found) == 1
    if prim is E.div:
        return list(found) == [0]
    if not prim.linear:
        return False
    data = [k for k, v in enumerate(node.inputs) if v.dtype.kind in "fc" and not _is_zero(v)]
    return data == list(found)


def _is_zero(value: Node) -> bool:
    return value.is_constant and not value.value.any()


# What users want.


def _wishes(graph: Graph, mesh: Mesh, first: Choice, outputs: Sequence[Sharding | None]) -> dict[Node, Wishes]:
    """Return what the users of each value want along each mesh axis.

    `first` is the choice without wishes, `outputs` the layouts that are asked of outputs.
    """
    heard: dict[Node, dict[str, list[Wish]]] = {}
    done: dict[Node, Wishes] = {}

    def say(value: Node, axis: str, wish: Wish) -> None:
        heard.setdefault(value, {}).setdefault(axis, []).append(wish)

    for node, layout in zip(graph.outputs, outputs):
        for axis in mesh.names if layout is not None else ():
            part = part_along(layout, axis) if layout is not None else None
            say(node, axis, None if part is None else (part, True))
    for node in reversed(graph.nodes):
        own = done[node] = {axis: _joined(wishes) for axis, wishes in heard.get(node, {}).items()}
        if node.prim is GET_ITEM or node not in first.divisions:
            continue
        _ask_operands(node, mesh, first, own, say)
    for node in graph.inputs:
        done[node] = {axis: _joined(wishes) for axis, wishes in heard.get(node, {}).items()}
    return done


def _ask_operands(node: Node, mesh: Mesh, first: Choice, own: Wishes, say: object) -> None:
    if node in first.inside:
        for value, layout in zip(node.inputs, first.inside[node].operands):
            for axis in mesh.names:
                part = part_along(layout, axis)
                say(value, axis, None if part is None else (part, True))  # type: ignore[operator]
        return
    factors = factors_at(node)
    division, sure = first.divisions[node].reduced, {}
    for axis in mesh.names:
        wish = own.get(axis)
        if part_along(division, axis) is None and wish is not None and not isinstance(node.type, tuple):
            claim = factor_part(wish[0], factors, [f.results[0] for f in factors])
            if claim is not None and allowed(node, factors, claim, division):
                division = Sharding((*division.parts, claim))
                sure[axis] = wish[1]
    for k, value in enumerate(node.inputs):
        for axis in mesh.names:
            part = part_along(division, axis)
            place = None if part is None else factors[part.axis].operands[k]
            if part is not None and place is not None:
                say(value, axis, (tensor_part(part, place), sure.get(axis, True)))  # type: ignore[operator]
            elif part is not None or not factors or (axis in own and own[axis] is None and not _shrinks(node, value)):
                say(value, axis, None)  # type: ignore[operator]


def _shrinks(node: Node, value: Node) -> bool:
    """Return whether a node makes so little of an operand that it does not mind a divided one."""
    types = [t for t in (*result_types(node), value.type) if isinstance(t, TensorType)]
    sizes = [math.prod(static(t)) for t in types]
    return 4 * max(sizes[:-1], default=0) <= sizes[-1]


def _joined(wishes: Sequence[Wish]) -> Wish:
    """Return the part that most users want, with whether all want it for sure."""
    counts: dict[Part, int] = {}
    for wish in wishes:
        if wish is not None:
            counts[wish[0]] = counts.get(wish[0], 0) + 1
    if not counts:
        return None
    best = max(counts, key=lambda p: counts[p])
    return best, all(w is not None and w[0] == best and w[1] for w in wishes)
