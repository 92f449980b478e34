"""The SPMD partitioner: makes the one graph that every rank runs from a graph and layouts.

All ranks run the same graph; where a rank's place matters, the node `mesh_position` says it. First
`choose` finds a division of every node. Then nodes are made in the order of the graph: operands are
brought into the layouts that the division implies, each layout of a value once, along the route
that sends least from a layout that is there already; of a view it is rather what it is of that is
moved, which others may use. Nodes without factors, as effects, run whole on every rank, with whole
operands. The graphs that loops and conditions hold are divided in the same way.

The result depends on the graph and the layouts only, so that every rank finds the same one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from mycel._src.compiler.ir.graph import Graph, Node, Where, at, input_node
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import GET_ITEM, outputs_of
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.control_flow.recompute import after
from mycel._src.compiler.prims.control_flow.trip_count import known_rounds
from mycel._src.compiler.prims.custom_derivatives import all_nodes
from mycel._src.compiler.prims.distributed.collectives import all_gather
from mycel._src.compiler.prims.neural.normalization import moments, moments_apart
from mycel._src.compiler.transforms.grad import expanded
from mycel._src.compiler.transforms.graph_rewriting import use_counts
from mycel._src.compiler.transforms.loop_residuals import loop_pairs
from mycel._src.compiler.transforms.optimisation.cse import eliminate_common_subexpressions
from mycel._src.compiler.transforms.partition.block_messages import in_blocks
from mycel._src.compiler.transforms.partition.collective_fusion import BY_SIZE, Fusing, fuse
from mycel._src.compiler.transforms.partition.control_flow import HOLDERS, LIKELY_ROUNDS, Inside, Nested, agreed
from mycel._src.compiler.transforms.partition.gradient_detection import gradients, is_narrow
from mycel._src.compiler.transforms.partition.node_sharding import (
    Local,
    check_static,
    factor_part,
    factors_at,
    implied,
    local_outputs,
)
from mycel._src.compiler.transforms.partition.parameter_gathering import gathered_again
from mycel._src.compiler.transforms.partition.partial_sums import adds_into, regrouped, taken_apart
from mycel._src.compiler.transforms.partition.partition_records import Divided, Message, Task
from mycel._src.compiler.transforms.partition.resharding import Move, apply, route
from mycel._src.compiler.transforms.partition.sharding_propagation import (
    BYTES_PER_BYTE,
    BYTES_PER_FLOP,
    Choice,
    Layout,
    Problem,
    choose,
    to_open,
)
from mycel._src.compiler.transforms.partition.tensor_sharding import (
    WHOLE,
    Sharding,
    elements,
    local_type,
    need_fit,
    static,
)
from mycel._src.foundation.dtype import float32
from mycel._src.foundation.errors import ShapeError

__all__ = ["Partitioned", "opened", "partition"]


@dataclass(frozen=True)
class Partitioned:
    """A rank's graph, whose inputs and outputs are the rank's parts, and their layouts.

    `divisions` has that of each node of the graph that was divided, after some nodes were opened:
    `opened` is that graph.
    """

    graph: Graph
    mesh: Mesh
    inputs: tuple[Sharding, ...]
    outputs: tuple[Sharding, ...]
    messages: tuple[Message, ...]
    opened: Graph
    divisions: Mapping[Node, Sharding]

    @property
    def sent(self) -> float:
        """The bytes that each rank sends, in one round of loops whose rounds data decide."""
        return sum(m.sent * (1 if m.times is None else m.times) for m in self.messages)


def partition(
    graph: Graph,
    mesh: Mesh,
    inputs: Sequence[Sharding | None],
    outputs: Sequence[Sharding | None] | None = None,
    tied: Mapping[int, int] | None = None,
    plan: Mapping[Node, Sharding] | None = None,
    fusing: Fusing = BY_SIZE,
    again: Collection[int] = (),
    wide_sums: str = "",
) -> Partitioned:
    """Return the graph that each rank of a mesh runs in place of `graph`.

    `inputs` has the layout of each input; None leaves it open, and it is whole or divided as its
    first user has it. `outputs` has what is asked of each output; None is as it comes, with nothing
    partial. `tied` maps outputs to inputs whose layouts they must have, as a parameter's new value
    has that of the parameter. `plan` has the divisions (layouts over factors) of nodes for which
    they are decided. Collectives that do not depend on each other are joined as `fusing` says.
    Inputs with the numbers `again` are gathered for the backward pass once more instead of kept.
    `wide_sums` says which sums of floats of 16 bits ranks make in float32: "gradients", "all" of
    them, or "" for none.

    Raises ShapeError for symbolic sizes, for layouts that are not as many as inputs and outputs or
    do not fit them, for inputs that are partial, and for divisions of nodes that cannot have them
    or are not in the graph.

    >>> from mycel._src.foundation.dtype import float32
    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> from mycel._src.compiler.prims.matrix_product import matmul
    >>> from mycel._src.compiler.transforms.partition import sharding
    >>> x, w = (input_node(tensor_type(s, float32)) for s in ((8, 6), (6, 4)))
    >>> mesh = Mesh((2,), ("x",))
    >>> columns = sharding(mesh, (8, 6), (None, "x"))
    >>> made = partition(Graph([x, w], [matmul(x, w)]), mesh, [columns, None])
    >>> print(*made.inputs, *made.outputs, [m.kind for m in made.messages])
    1:x 0:x whole ['all_reduce']
    """
    outputs = [None] * len(graph.outputs) if outputs is None else list(outputs)
    tied = dict(tied or {})
    if len(inputs) != len(graph.inputs) or len(outputs) != len(graph.outputs):
        raise ShapeError(
            f"partition: {len(graph.inputs)} inputs and {len(graph.outputs)} outputs need as many layouts, "
            f"not {len(inputs)} and {len(outputs)}"
        )
    check_static(graph)
    if any(layout is not None and layout.partial for layout in inputs):
        raise ShapeError(f"partition: inputs cannot be partial, as one of {', '.join(map(str, inputs))} is")
    for kind, nodes, given in (("input", graph.inputs, inputs), ("output", graph.outputs, outputs)):
        for k, (node, layout) in enumerate(zip(nodes, given)):
            if layout is not None and layout.parts:
                sizes = static(node.type) if isinstance(node.type, TensorType) else ()
                need_fit(layout, sizes, mesh, f"partition: {kind} {k} ({node.params.get('name', node.op)})")
    plan = dict(plan or {})
    if unknown := set(plan) - set(all_nodes(graph)) if plan else ():
        raise ShapeError(
            f"partition: the plan divides {len(unknown)} nodes, as {min(map(repr, unknown))}, that the graph has not; "
            "make the plan of the graph that is divided"
        )
    if not plan:
        graph = eliminate_common_subexpressions(graph)
    asked, kept = _Asked(fusing, wide_sums), frozenset(graph.inputs[k] for k in tied.values())
    nested = Nested(mesh, plan, lambda task: _of_task(task, mesh, plan, nested, asked))
    problem = Problem(graph, mesh, list(inputs), outputs, tied, plan, kept, None, nested)
    result = _divided(problem, asked, again)
    opened, divisions = result.opened, result.divisions
    return Partitioned(result.graph, mesh, result.inputs, result.outputs, result.messages, opened, divisions)


@dataclass(frozen=True)
class _Asked:
    """What is asked of the messages of a graph and of those inside of it, as of `partition`."""

    fusing: Fusing
    wide_sums: str


def _divided(problem: Problem, asked: _Asked, again: Collection[int] = (), loose: Sequence[bool] = ()) -> _Made:
    """Return the graph of a rank, with messages as `asked`.

    Inputs with the numbers `again` are gathered twice. `loose` says of which outputs of the
    `problem` something may stay partial.
    """
    graph, left = problem.graph, math.inf
    while True:
        choice = choose(problem)
        # Sums that a plan divides are as it says.
        sums, needless = ({}, math.inf) if choice.opened else regrouped(graph, choice.layouts, problem.plan)
        if not choice.opened and (not sums or needless >= left):
            break
        left = needless
        graph, plan = _rewritten(graph, choice.opened, sums, problem.plan, choice.layouts)
        problem = replace(problem, graph=graph, plan=plan)
    wide = set(graph.nodes) if asked.wide_sums == "all" else set()
    if asked.wide_sums == "gradients":
        wide = gradients(graph, problem.tied)
    maker = _Maker(graph, problem.mesh, choice, wide)
    made = maker.run(problem.outputs, problem.tied, loose)
    often = [made.graph.inputs[k] for k in again]
    local, twice = gathered_again(made.graph, often)
    local = in_blocks(local, often)
    local = eliminate_common_subexpressions(fuse(eliminate_common_subexpressions(local), asked.fusing))
    return replace(made, graph=local, messages=(*made.messages, *[maker.gathers[g] for g in twice]))


def _of_task(task: Task, mesh: Mesh, plan: Mapping[Node, Sharding], nested: Nested, asked: _Asked) -> Divided:
    """Return a graph inside of a node divided on `mesh`, with messages as `asked`.

    `plan` has the divisions of nodes that are decided, `nested` divides the graphs in it.
    """
    graph = task.graph
    own = {n: plan[n] for n in graph.nodes if n in plan} if plan else {}
    stable = frozenset([n for n, s in zip(graph.inputs, task.stable) if s])
    problem = Problem(graph, mesh, task.inputs, task.outputs, {}, own, stable, task.data_axes, nested)
    made = _divided(problem, asked, loose=task.loose)
    sent = sum(m.sent * (LIKELY_ROUNDS if m.times is None else m.times) for m in made.messages)
    return Divided(made.graph, made.outputs, made.messages, made.wanted, sent + _work(made.graph))


def _work(graph: Graph) -> float:
    """Return the time of a graph's work as bytes; its loops count as often as they are taken to."""
    total = 0.0
    for node in graph.nodes:
        if node.prim is not None and node.prim.work is not None:
            total += node.prim.work(node, int) * BYTES_PER_FLOP
        for type in node.type if isinstance(node.type, tuple) else (node.type,):
            if isinstance(type, TensorType):
                total += elements(static(type), WHOLE) * type.dtype.itemsize * BYTES_PER_BYTE
        rounds = known_rounds(node) if node.prim in HOLDERS else None
        for value in node.params.values() if node.prim in HOLDERS else ():
            if isinstance(value, Graph):
                total += _work(value) * (
                    1 if node.prim is control.cond else LIKELY_ROUNDS if rounds is None else rounds
                )
    return total


def opened(graph: Graph) -> Graph:
    """Return a graph in which what could not be divided as it is has been replaced by what it does.

    Plans are made of such graphs: calls are opened, and so are moments of batches.
    """
    if not to_open(graph):
        return graph
    while nodes := to_open(graph):
        graph, _ = _rewritten(graph, nodes, {}, {}, {})
    return eliminate_common_subexpressions(graph)


def _single(layout: Layout) -> Sharding:
    return layout if isinstance(layout, Sharding) else WHOLE


def _rewritten(
    graph: Graph,
    opened: Sequence[Node],
    sums: Mapping[Node, list[list[Node]]],
    plan: Mapping[Node, Sharding],
    layouts: Mapping[Node, Layout],
) -> tuple[Graph, dict[Node, Sharding]]:
    """Return a graph with some nodes opened and some sums in another order, and its plan.

    `opened` are replaced by their definitions, `sums` by the sums of their groups of terms; `plan`
    has divisions of nodes of `graph`, `layouts` the layouts of its values as far as they are known.
    """
    image: dict[Node, Node] = {}
    results: dict[Node, tuple[Node, ...]] = {}
    gone, kept = set(opened), {}
    for node in graph.nodes:
        operands = tuple(image.get(i, i) for i in node.inputs)
        if node in gone:
            assert node.prim is not None
            with at(node.where):
                results[node] = _opened(node, operands, layouts)
            if not isinstance(node.type, tuple):
                image[node] = results[node][0]
        elif node in sums:
            with at(node.where):
                image[node] = reduce(E.add, [reduce(E.add, [image.get(t, t) for t in g]) for g in sums[node]])
        elif node.prim is GET_ITEM and node.inputs[0] in results:
            image[node] = results[node.inputs[0]][node.params["index"]]
        elif any(a is not b for a, b in zip(operands, node.inputs)):
            image[node] = Node(node.prim, operands, node.params, node.type, node.where)
        if node in plan and node not in gone and node not in sums:
            kept[image.get(node, node)] = plan[node]
    return Graph(graph.inputs, [image.get(o, o) for o in graph.outputs], graph.name), kept


def _opened(node: Node, operands: tuple[Node, ...], layouts: Mapping[Node, Layout]) -> tuple[Node, ...]:
    """Return what a node is replaced by, of other operands; `layouts` are as for `_rewritten`."""
    assert node.prim is not None
    if adds_into(node):
        return taken_apart(node, operands)
    if node.prim is moments:
        # Where nothing is known of layouts, what is divided will be the batch.
        (x,) = node.inputs
        apart = [p.axis for p in _single(layouts[x]).parts] if x in layouts else [0]
        return moments_apart(operands[0], node.params["axes"], tuple(apart))
    return expanded(node.prim, operands, node.params)


def _operands(node: Node) -> tuple[Node, ...]:
    """Return the operands of a node.

    The token of `after` is any element of what it was taken from.
    """
    if node.prim is not after:
        return node.inputs
    x, token = node.inputs
    while token.prim is not None and token.prim.view and len(token.inputs) == 1:
        token = token.inputs[0]
    return x, token


def _left_partial(end: Sharding, native: Sharding, type: object) -> Sharding:
    """Return a layout with the sums that a value of this `type` may leave partial.

    `end` has the parts, `native` what is partial.
    """
    if not isinstance(type, TensorType) or type.dtype.kind not in "fc":
        return end.reduced
    if any(op != "sum" for _, op in native.partial):
        return end.reduced
    return Sharding(end.parts, tuple([(a, op) for a, op in native.partial if a not in end.mesh_axes]))


def _element(x: Node) -> Node:
    """Return one element of a rank's tensor."""
    rank = x.type.rank
    return S.reshape(S.slice_(x, (0,) * rank, (1,) * rank), ())


def _sent(moves: Sequence[Move]) -> float:
    return sum(m.sent for m in moves)


def _behind_view(value: Node, layout: Sharding) -> tuple[Node, Sharding, Sharding] | None:
    """Return what a view is of, the layout it must have, and the division of the view.

    The view is made in `layout` then. None where `value` is no view, or is of something larger.
    """
    if value.prim is None or not value.prim.view or len(value.inputs) != 1:
        return None
    (base,) = value.inputs
    factors = factors_at(value)
    parts = [factor_part(p, factors, [f.results[0] for f in factors]) for p in layout.parts]
    division = Sharding(tuple([p for p in parts if p is not None]))
    operands, results = implied(value, division)
    if (
        len(division.parts) < len(parts)
        or results[0] != layout
        or elements(static(base.type), WHOLE) > elements(static(value.type), WHOLE)
    ):
        return None
    return base, operands[0], division


@dataclass(frozen=True)
class _Made:
    """A rank's graph and the layouts of its inputs and outputs, as in `Partitioned`.

    `wanted` has, for each input that is sent into another layout, that layout.
    """

    graph: Graph
    inputs: tuple[Sharding, ...]
    outputs: tuple[Sharding, ...]
    messages: tuple[Message, ...]
    opened: Graph
    divisions: Mapping[Node, Sharding]
    wanted: tuple[Sharding | None, ...]


class _Maker:
    """Makes a rank's nodes: `found` has, for each value, what the rank has of it by layout."""

    def __init__(self, graph: Graph, mesh: Mesh, choice: Choice, wide: Collection[Node]) -> None:
        """Make one rank's graph of `graph` for a `mesh` by a `choice`; nodes of `wide` that have 16
        bits are summed in float32.
        """
        self.graph, self.mesh, self.choice, self.wide = graph, mesh, choice, wide
        self.uses = use_counts(graph)
        self.found: dict[Node, dict[Sharding, Node]] = {}
        self.several: dict[Node, tuple[Node, ...]] = {}
        self.messages: list[Message] = []
        self.wanted: dict[Node, Sharding] = {}
        self.pairs = loop_pairs(graph)
        self.gathers: dict[Node, Message] = {}

    def run(self, outputs: Sequence[Sharding | None], tied: Mapping[int, int], loose: Sequence[bool] = ()) -> _Made:
        """Return the rank's graph.

        `outputs` has the layouts asked for, `tied` the inputs by the outputs that are laid out as
        they are; where `loose` is true of an output, what is partial stays so.
        """
        layouts = []
        inputs = []
        for node in self.graph.inputs:
            layout = self.native(node)
            layouts.append(layout)
            whole = isinstance(node.type, TensorType) and layout.parts
            local = node
            if whole:
                local = input_node(local_type(node.type, layout), node.params.get("name", "input"), node.where)
            self.found[node] = {layout: local}
            inputs.append(local)
        needed = self.needed()
        for node in self.graph.nodes:
            if node in needed:
                with at(node.where):
                    self.make(node)
        results, ends = [], []
        for k, node in enumerate(self.graph.outputs):
            end = outputs[k]
            if end is None:
                end = layouts[tied[k]] if k in tied else self.choice.reduced.get(node, self.native(node).reduced)
                if k < len(loose) and loose[k] and node not in self.choice.reduced:
                    end = self.native(node)
            if k < len(loose) and loose[k]:
                end = _left_partial(end, self.native(node), node.type)
            ends.append(end)
            with at(node.where):
                results.append(self.get(node, end, node.where))
        graph = Graph(inputs, results, self.graph.name)
        wanted = tuple([self.wanted.get(n) for n in self.graph.inputs])
        divisions = self.choice.divisions
        return _Made(graph, tuple(layouts), tuple(ends), tuple(self.messages), self.graph, divisions, wanted)

    def native(self, node: Node) -> Sharding:
        return _single(self.choice.layouts[node])

    def needed(self) -> set[Node]:
        """Return the nodes that outputs need, without those that only make tokens for `after`."""
        result = set(self.graph.outputs)
        for node in reversed(self.graph.nodes):
            if node in result:
                result.update(_operands(node))
        return result

    def make(self, node: Node) -> None:
        if node.prim is GET_ITEM and node.inputs[0] in self.several:
            self.found[node] = {self.native(node): self.several[node.inputs[0]][node.params["index"]]}
            return
        inside = self.choice.inside.get(node)
        if inside is not None:
            self.hold(node, inside)
            return
        division = self.choice.divisions[node]
        layouts, _ = implied(node, division)
        operands = []
        for k, (value, layout) in enumerate(zip(_operands(node), layouts)):
            if value is not node.inputs[k]:
                operands.append(_element(next(iter(self.found[value].values()))))
                continue
            if k in self.choice.flows[node]:
                layout = Sharding(layout.parts, division.partial)
            operands.append(self.get(value, layout, node.where))
        made: Local = local_outputs(node, division, operands, self.mesh)
        if isinstance(node.type, tuple):
            self.several[node] = made if isinstance(made, tuple) else (made,)
        else:
            assert isinstance(made, Node)
            self.found[node] = {self.native(node): made}

    def hold(self, node: Node, inside: Inside) -> None:
        """Make a node that holds graphs."""
        assert node.prim is not None
        operands = [self.get(v, s, node.where) for v, s in zip(node.inputs, inside.operands)]
        if inside.agrees:
            operands[0] = agreed(operands[0], self.mesh)
        self.several[node] = outputs_of(node.prim.node(*operands, **inside.params))
        sent = inside.messages if node in self.pairs else (*inside.again, *inside.messages)
        self.messages += [m if m.where is not None else replace(m, where=node.where) for m in sent]

    def get(self, value: Node, layout: Sharding, user: Where | None) -> Node:
        """Return a value in a layout; the moves towards it are noted with the line `user`."""
        if not isinstance(value.type, TensorType):
            return next(iter(self.found[value].values()))
        found = self.found[value]
        native = self.native(value)
        if layout in found:
            return found[layout]
        if native.partial and not layout.partial and self.uses[value] > 1:
            reduced = self.choice.reduced[value]
            if reduced not in found:
                self.move(value, native, route(native, reduced, value.type, self.mesh), user)
            if layout in found:
                return found[layout]
        start, moves = self.way(value, layout)
        behind = None if native.partial or not _sent(moves) else _behind_view(value, layout)
        if behind is not None:
            base, wanted, division = behind
            if wanted in self.found[base] or _sent(self.way(base, wanted)[1]) <= _sent(moves):
                operand = self.get(base, wanted, user)
                with at(value.where or user):
                    made = local_outputs(value, division, [operand], self.mesh)
                assert isinstance(made, Node)
                found[layout] = made
                return made
        return self.move(value, start, moves, user)

    def way(self, value: Node, layout: Sharding) -> tuple[Sharding, list[Move]]:
        """Return the layout from which a value gets into another with the fewest bytes, and how."""
        found = self.found[value]
        wanted = set(layout.partial)
        starts = [s for s in found if s.partial and wanted and wanted <= set(s.partial)]
        starts = starts or [s for s in found if not s.partial] or list(found)
        ways = [(s, route(s, layout, value.type, self.mesh)) for s in starts]
        return min(ways, key=lambda w: _sent(w[1]))

    def move(self, value: Node, start: Sharding, moves: Sequence[Move], user: Where | None) -> Node:
        """Return a `value` after `moves` from the layout `start`; note them.

        `user` is the line that is given where the value itself has none.
        """
        found = self.found[value]
        node = found[start]
        if value.prim is None and _sent(moves):
            self.wanted[value] = moves[-1].after
        for move in moves:
            if move.after in found:
                node = found[move.after]
                continue
            sums = move.kind in ("all_reduce", "reduce_scatter") and move.op == "sum"
            wide = sums and value in self.wide and is_narrow(value.type)
            with at(value.where or user):
                if wide:
                    node = E.cast(node, dtype=float32)
                node = apply(node, [move], value.type, self.mesh)
                if wide:
                    node = E.cast(node, dtype=value.type.dtype)
            if move.kind not in ("slice", "mask"):
                sent = move.sent * (2 if wide else 1)
                self.messages.append(
                    Message(move.kind, move.mesh_axes, sent, value.type, move.before, move.after, value.where or user)
                )
                if move.kind == "all_gather":
                    self.gathers[_gather(node)] = self.messages[-1]
            found[move.after] = node
        return node


def _gather(node: Node) -> Node:
    """Return the gather of which a node is a view."""
    while node.prim is not all_gather:
        node = node.inputs[0]
    return node
