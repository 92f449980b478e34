"""Partitioning of control flow: of the graphs of loops, conditions and gradients of loops.

A loop's carried values have one layout at the beginning of every round, and what the body gives is
moved into it at the round's end. The layouts are a fixed point. They begin as those of the operands
and grow: where the body gives a value divided along a mesh axis that divides nothing of it yet, it
is divided so from the start, as are states that begin as zeros. A fixed operand that the body would
send into another layout each round may be brought there once, before the loop. Where a round sends
anything, candidates are compared by the bytes of all rounds, with the time of work as bytes: with
fixed operands brought, or as they are, without the parts of values that the body does not keep, and
with all operands whole.

The gradient of a loop takes the layouts of the loop, so that both have equal bodies on a rank and
engines find that they belong together. Its cotangents are carried backwards by the same fixed
point. What is added up over the rounds for fixed operands, as weights, may be partial: a sum of
sums is reduced once, behind the loop.

The branches of a condition take operands as they are and give results in one layout: parts that
either gives, and what is partial in both alike.

Every rank has to take the same way through graphs that exchange values. Tests and conditions are
whole, and those that come of whole numbers alone are equal everywhere. Where floats decide, which
machines may round differently, ranks agree by one more message: a loop goes on while all would.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mycel._src.compiler.ir.graph import Graph, Node, toposort
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.control_flow.trip_count import known_rounds
from mycel._src.compiler.prims.control_flow.while_gradient import while_grad
from mycel._src.compiler.prims.custom_derivatives import all_nodes
from mycel._src.compiler.prims.distributed import collectives
from mycel._src.compiler.transforms.partition.partition_records import Divided, Message, Task, repeated
from mycel._src.compiler.transforms.partition.resharding import route
from mycel._src.compiler.transforms.partition.tensor_sharding import WHOLE, Sharding

__all__ = ["HOLDERS", "LIKELY_ROUNDS", "Inside", "Nested", "agreed"]

HOLDERS = (control.while_loop, control.cond, while_grad)
# How often loops are taken to run where data decide it.
LIKELY_ROUNDS = 16
Layouts = tuple[Sharding, ...]


@dataclass(frozen=True)
class Inside:
    """How a node that holds graphs is divided.

    `operands` and `results` are the layouts of its own, `params` its parameters on a rank, and
    `messages` what its graphs send; `again` is what a gradient sends besides, where it has to run
    the loop itself. With `agrees` ranks have to agree on the first operand.
    """

    operands: Layouts
    results: Layouts
    params: Mapping[str, Any]
    messages: tuple[Message, ...]
    again: tuple[Message, ...] = ()
    agrees: bool = False


@dataclass(frozen=True)
class _Given:
    """What is known of a node's operands: layouts, which are of parameters alone, and data axes."""

    layouts: Layouts
    stable: tuple[bool, ...]
    data_axes: frozenset[str]


def agreed(value: Node, mesh: Mesh) -> Node:
    """Return whether a boolean holds on all ranks of a mesh."""
    return collectives.all_reduce(value, mesh=mesh, axes=mesh.names, op="all")


class Nested:
    """Divides the graphs of nodes on one mesh; what was found is kept for equal questions."""

    def __init__(self, mesh: Mesh, planned: Container[Node], divide: Callable[[Task], Divided]) -> None:
        """Divide graphs on `mesh` by `divide`; `planned` nodes have divisions already."""
        self.mesh, self.planned, self._divide = mesh, planned, divide
        self._divided: dict[Task, Divided] = {}
        self._found: dict[Any, Inside] = {}

    def of(self, node: Node, layouts: Sequence[Sharding], stable: Sequence[bool], data_axes: frozenset[str]) -> Inside:
        """Return how a node is divided whose operands have `layouts`.

        `stable` says which operands are made of parameters alone, `data_axes` are the mesh axes
        that divide data.
        """
        given = _Given(tuple(layouts), tuple(stable), data_axes)
        sure, rounds = _sure(node), known_rounds(node)
        graphs = tuple([v for v in node.params.values() if isinstance(v, Graph)])
        key = (node.prim, graphs, node.params.get("free"), given, sure, rounds)
        if key not in self._found:
            if node.prim is control.cond:
                self._found[key] = self._cond(node, given, sure)
            elif node.prim is while_grad:
                self._found[key] = self._gradient(node, given, sure, rounds)
            else:
                self._found[key] = self._loop(node, given, sure, rounds)
        return self._found[key]

    def is_planned(self, node: Node) -> bool:
        """Return whether the division of a node inside of a node is decided."""
        graphs = [v for v in node.params.values() if isinstance(v, Graph)]
        return any(inner in self.planned for graph in graphs for inner in all_nodes(graph))

    def divide(
        self,
        graph: Graph,
        inputs: Sequence[Sharding],
        given: _Given,
        outputs: Sequence[Sharding | None],
        loose: Sequence[bool] | None = None,
    ) -> Divided:
        """Return `graph` divided.

        `inputs` and `outputs` are layouts, None for any; `given` has the rest of the operands;
        `loose` says of which outputs something may be left partial, none without it.
        """
        free = tuple(loose) if loose is not None else (False,) * len(graph.outputs)
        task = Task(graph, tuple(inputs), tuple(outputs), given.stable, given.data_axes, free)
        if task not in self._divided:
            self._divided[task] = self._divide(task)
        return self._divided[task]

    # Loops.

    def _loop(self, node: Node, given: _Given, sure: bool, rounds: int | None) -> Inside:
        layouts, given = self._of_rounds(node, given, rounds)
        params, messages = self._round(node, layouts, given, sure, rounds)
        return Inside(layouts, layouts[: node.params["carried"]], {**node.params, **params}, messages)

    def _of_rounds(self, node: Node, given: _Given, rounds: int | None) -> tuple[Layouts, _Given]:
        """Return the layouts of the operands of a loop, and what is known of them in each round."""
        body, carried = node.params["body"], node.params["carried"]
        count = len(body.inputs)
        stable = _kept(body, carried, given.stable[:count], lambda n: True)
        inner = _Given(given.layouts[:count], stable, given.data_axes)
        types = [n.type for n in body.inputs]
        turns = _Turns(self, body, 0, carried, range(carried, count), types)
        return turns.best(inner, node.params["test"], rounds or LIKELY_ROUNDS), inner

    def _round(
        self, node: Node, layouts: Layouts, given: _Given, sure: bool, rounds: int | None
    ) -> tuple[dict[str, Graph], tuple[Message, ...]]:
        """Return the test and the body of a loop on a rank, and what they send in all `rounds`.

        `layouts` are those of the operands at the beginning of a round, of which `given` has the
        rest; `sure` says whether ranks agree on the test by themselves.
        """
        params = node.params
        body = self.divide(params["body"], layouts, given, layouts[: params["carried"]])
        test = self.divide(params["test"], layouts, given, [WHOLE])
        graph, messages = test.graph, test.messages
        if not sure and self.mesh.size > 1 and any(s.parts for s in layouts):
            (going,) = test.graph.outputs
            graph = Graph(graph.inputs, [agreed(going, self.mesh)], graph.name)
            messages = (*messages, self._agreement(params["test"].outputs[0]))
        asked = repeated(messages, None if rounds is None else rounds + 1)
        return {"test": graph, "body": body.graph}, (*asked, *repeated(body.messages, rounds))

    def _agreement(self, value: Node) -> Message:
        n = self.mesh.size
        return Message("all_reduce", self.mesh.names, 2 * (n - 1) / n, value.type, WHOLE, WHOLE, value.where)

    # Gradients of loops.

    def _gradient(self, node: Node, given: _Given, sure: bool, rounds: int | None) -> Inside:
        params = node.params
        body, backward, carried = params["body"], params["backward"], params["carried"]
        smooth, free, count = params["smooth"], params["free"], len(body.inputs)
        layouts, loop = self._of_rounds(node, given, rounds)
        # Cotangents lie as their values do, and those of fixed operands as these.
        cts = [layouts[i] for i in smooth]
        sums = [layouts[carried + i] for i in free]
        stable = (*loop.stable, *[False] * len(cts))
        inner = _Given((*layouts, *cts), stable, given.data_axes)
        types = [n.type for n in backward.inputs]
        turns = _Turns(self, backward, count, len(cts), range(0), types, tuple(sums))
        whole = turns.best(inner, None, rounds or LIKELY_ROUNDS)
        made = turns.divided(whole, inner)
        forward, again = self._round(node, layouts, loop, sure, rounds)
        inside = {**params, **forward, "backward": made.graph}
        return Inside(whole, made.outputs, inside, repeated(made.messages, rounds), again)

    # Conditions.

    def _cond(self, node: Node, given: _Given, sure: bool) -> Inside:
        operands = given.layouts[1:]
        inner = _Given(operands, given.stable[1:], given.data_axes)
        graphs = [node.params["true"], node.params["false"]]
        loose = (True,) * len(node.type)
        first = [self.divide(g, operands, inner, (None,) * len(node.type), loose) for g in graphs]
        layouts = tuple([_common(a, b) for a, b in zip(*[d.outputs for d in first])])
        partial = [bool(s.partial) for s in layouts]
        true, false = (self.divide(g, operands, inner, layouts, partial) for g in graphs)
        messages = (*true.messages, *false.messages)
        agrees = bool(messages) and not sure and self.mesh.size > 1
        if agrees:
            messages = (*messages, self._agreement(node.inputs[0]))
        params = {"true": true.graph, "false": false.graph}
        return Inside((WHOLE, *operands), layouts, params, messages, agrees=agrees)


class _Turns:
    """A graph whose outputs replace inputs, round by round.

    The first `count` outputs replace the inputs from number `first` on; the others are added up,
    in the layouts `sums`, and may be partial. `movable` are the inputs that can be had in another
    layout, and `types` those of the inputs.
    """

    def __init__(
        self,
        nested: Nested,
        graph: Graph,
        first: int,
        count: int,
        movable: range,
        types: Sequence[Any],
        sums: Layouts = (),
    ) -> None:
        """Take the graph; the arguments are as the class says, of the mesh of `nested`."""
        self.nested, self.graph, self.first, self.count = nested, graph, first, count
        self.movable, self.types, self.sums = movable, types, sums
        self.loose = [False] * count + [True] * len(sums)

    def divided(self, layouts: Sequence[Sharding], given: _Given, free: bool = False) -> Divided:
        """Return a round from `layouts` back to them, or with `free` to any."""
        carried = layouts[self.first : self.first + self.count]
        asked = [None] * self.count if free else carried
        return self.nested.divide(self.graph, layouts, given, [*asked, *self.sums], self.loose)

    def best(self, given: _Given, test: Graph | None, rounds: int) -> Layouts:
        """Return the layouts of the inputs in each round.

        `given` has those before the first one; a loop of about so many `rounds` has a `test`.
        """
        grown = self.grown(given)
        made, asked = self.divided(grown, given), None
        if test is not None:
            asked = self.nested.divide(test, grown, given, [WHOLE])
        if not made.messages and not (asked is not None and asked.messages):
            return grown
        moved = self.grown(given, True)
        candidates = dict.fromkeys([moved, grown, self.shrunk(grown, given), self.whole(given)])
        if len(candidates) == 1:
            return grown

        def cost(layouts: Layouts) -> float:
            round_ = self.divided(layouts, given).cost
            if test is not None:
                round_ += self.nested.divide(test, layouts, given, [WHOLE]).cost
            return rounds * round_ + self.entering(layouts, given)

        return min(candidates, key=cost)

    def grown(self, given: _Given, moving: bool = False) -> Layouts:
        """Return the layouts that grow from those `given`.

        With `moving`, what can be had in another layout is had in that which the round wants.
        """
        layouts = list(given.layouts)
        stable = False
        while not stable:
            made, stable = self.divided(layouts, given, free=True), True
            for k in range(self.count):
                bigger = _joined(layouts[self.first + k], made.outputs[k])
                stable &= bigger == layouts[self.first + k]
                layouts[self.first + k] = bigger
            if stable and moving:
                made = self.divided(layouts, given)
                for i in self.movable:
                    wanted = made.wanted[i]
                    if wanted is not None and wanted != layouts[i]:
                        # Once moved and still not right: then whole, which all others are cut from.
                        layouts[i] = wanted if layouts[i] == given.layouts[i] else WHOLE
                        stable = False
        return tuple(layouts)

    def shrunk(self, layouts: Layouts, given: _Given) -> Layouts:
        """Return layouts without the parts that a round does not keep."""
        found = list(layouts)
        while True:
            made, before = self.divided(found, given, free=True), list(found)
            for k in range(self.count):
                own = found[self.first + k]
                kept = tuple([p for p in own.parts if p in made.outputs[k].parts])
                found[self.first + k] = Sharding(kept)
            if found == before:
                return tuple(found)

    def whole(self, given: _Given) -> Layouts:
        fixed = (*range(self.first, self.first + self.count), *self.movable)
        return tuple([WHOLE if i in fixed else s for i, s in enumerate(given.layouts)])

    def entering(self, layouts: Layouts, given: _Given) -> float:
        total = 0.0
        for type, start, end in zip(self.types, given.layouts, layouts):
            if isinstance(type, TensorType):
                total += sum(m.sent for m in route(start, end, type, self.nested.mesh))
        return total


def _joined(layout: Sharding, other: Sharding) -> Sharding:
    """Return a layout with those parts of another that can be added."""
    for p in other.parts:
        if layout.fits(p):
            layout = Sharding((*layout.parts, p))
    return layout


def _common(one: Sharding, two: Sharding) -> Sharding:
    """Return the layout for what comes in either of two."""
    partial = tuple([p for p in one.partial if p in two.partial]) if one.parts == two.parts else ()
    busy = {a for a, _ in partial}
    merged = _joined(one.reduced, two.reduced)
    return Sharding(tuple([p for p in merged.parts if not busy & set(p.mesh_axes)]), partial)


# What values come of.


def _kept(body: Graph, carried: int, flags: Sequence[bool], own: Callable[[Node], bool]) -> tuple[bool, ...]:
    """Return which inputs of a loop's body have a property in every round.

    Those with `flags` have it in the first one, and a node has it where all its operands do and
    `own` holds of it.
    """
    found = list(flags)
    while True:
        has = _having(body.inputs, found, body.outputs, own)
        after = [f and (k >= carried or body.outputs[k] in has) for k, f in enumerate(found)]
        if after == found:
            return tuple(found)
        found = after


def _having(
    inputs: Sequence[Node], flags: Sequence[bool], outputs: Iterable[Node], own: Callable[[Node], bool]
) -> set[Node]:
    has = {n for n, f in zip(inputs, flags) if f}
    for node in toposort(outputs):
        if node.prim is not None and own(node) and all(i in has for i in node.inputs):
            has.add(node)
    return has


def _is_whole_numbers(node: Node) -> bool:
    types = node.type if isinstance(node.type, tuple) else (node.type,)
    return all(isinstance(t, TensorType) and t.dtype.kind in "biu" for t in types)


def _is_exact(value: Node) -> bool:
    """Return whether a value comes of whole numbers alone, as far as the graph shows."""
    return all(n.prim is None or _is_whole_numbers(n) for n in toposort([value])) and _is_whole_numbers(value)


def _sure(node: Node) -> bool:
    """Return whether the test or condition of a node comes of whole numbers alone."""
    if node.prim is control.cond:
        return _is_exact(node.inputs[0])
    test, body, carried = node.params["test"], node.params["body"], node.params["carried"]
    flags = [_is_exact(n) for n in node.inputs[: len(body.inputs)]]
    flags = list(_kept(body, carried, flags, _is_whole_numbers))
    return test.outputs[0] in _having(test.inputs, flags, test.outputs, _is_whole_numbers)
