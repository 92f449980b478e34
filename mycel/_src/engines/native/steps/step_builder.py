"""The step builder, which adds a graph's steps and tracks each value's buffer and strides.

A value is a `View`, strides over a buffer. Transposes, slices, broadcasts and most reshapes cost
nothing; steps that need a value in row-major order call `contiguous`, which copies where it has to.
A function that adds the steps of a node gets the views of the node's inputs (`view`), adds steps
(`kernel`, `step`, `host`) and sets the places of the results (`bind`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from mycel._src.compiler.ir.dims import Dim, DimLike, is_one, same
from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.base import GET_ITEM
from mycel._src.compiler.prims.shape import CONCAT, RESHAPE
from mycel._src.compiler.transforms.loop_residuals import loop_pairs
from mycel._src.engines.native.kernels.loop_nest import Buffer, Builder, Expr, Loop, Nest, Site, Store, affine
from mycel._src.engines.native.kernels.loop_order import arrange
from mycel._src.engines.native.kernels.strided_view import (
    View,
    contiguous_strides,
    element_count,
    like_order,
    row_major,
)
from mycel._src.engines.native.llvm.target import target
from mycel._src.engines.native.steps.step_types import Action, Copy, HostCall, Lowered, Step, Tape
from mycel._src.engines.native.steps.view_rules import NUMBERS, index_of, is_view, root_of, through_view
from mycel._src.foundation import dtype as D

__all__ = ["StepBuilder", "new_target", "new_views", "result_types"]


class StepBuilder:
    """The steps of a graph, as they are made, and the places of its values.

    `lower` adds all steps of a builder's graph to it. For a graph nested in another one, `operands`
    are the places of its inputs and `outer` is the builder of the graph around it. `own` are the
    nodes whose buffers hold nothing that is needed once their value is not; `last_readers` has the
    number of the last unit that reads a value in memory, and `unit` that of the unit whose steps
    are being added.
    """

    def __init__(
        self,
        graph: Graph,
        lower: Callable[[StepBuilder], object],
        operands: list[View] | None = None,
        outer: StepBuilder | None = None,
    ) -> None:
        self.graph = graph
        self.lowered = Lowered([], [], [])
        self.views: dict[Node, View] = {}
        self.results = {root_of(o) for o in graph.outputs}
        self.pairs = loop_pairs(graph)
        self.tapes: dict[Node, Tape] = {}
        self.own: set[Node] = set()
        self.last_readers: dict[Node, int] = {}
        # The input whose memory a result is to be in, by the result.
        self.over: dict[Node, Node] = {}
        self.unit = 0
        self.relaid: dict[Hashable, tuple[View, View]] = {}
        self._lower = lower
        self._sites: dict[Hashable, tuple[Node, Site]] = {}
        self._items: dict[Node, list[Node]] = {}
        # The concatenation that a value is a part of, and where it begins there.
        self._joined = {} if target().threads else joined_parts(graph)
        self._wholes: dict[Node, View] = {}
        self._is_nested = operands is not None
        # The places that were chosen for results of a graph over slices.
        self._slices: dict[Node, View] = {}
        # Who is told of each step.
        self.added: Callable[[Step], object] | None = None if outer is None else outer.added
        for user in graph.nodes:
            if user.prim is GET_ITEM:
                self._items.setdefault(user.inputs[0], []).append(user)
        if outer is not None:
            self.lowered.constants = outer.lowered.constants
            self.lowered.fallbacks = outer.lowered.fallbacks
        if operands is not None:
            self.views.update(zip(graph.inputs, operands))
        else:
            self._place_inputs()

    def _place_inputs(self) -> None:
        for node in self.graph.inputs:
            if isinstance(node.type, TensorType):
                buffer = Buffer(node.type.dtype, node.type.size, "input")
                self.views[node] = row_major(buffer, node.type.shape)
            else:
                buffer = Buffer(D.bool_, 1, "token")
            self.lowered.inputs.append(buffer)

    def nested(self, graph: Graph, operands: list[View], own: Sequence[View] = ()) -> StepBuilder:
        """Lower a nested graph over memory of this one; return its builder.

        Steps added to that builder later come after those of the graph. `own` are the operands that
        the graph may overwrite.
        """
        inner = StepBuilder(graph, self._lower, operands, self)
        buffers = {id(v.buffer) for v in own}
        inner.own.update(i for i, v in zip(graph.inputs, operands) if id(v.buffer) in buffers)
        self._lower(inner)
        return inner

    def over_slices(self, graph: Graph, operands: list[View], into: Sequence[View]) -> None:
        """Add the steps of a small graph over parts of the memory of this one, whose results go
        `into` parts of it.
        """
        inner = StepBuilder(graph, self._lower, operands, self)
        inner._slices.update(zip(graph.outputs, into))
        self._lower(inner)
        for output, place in zip(graph.outputs, into):
            assert inner.views[output] is place, "a result is not in its place"
        # Who is told of steps has heard of these.
        self.lowered.steps.extend(inner.lowered.steps)

    @property
    def is_sliced(self) -> bool:
        """Whether the graph is one over parts of the memory of another."""
        return bool(self._slices)

    def finish(self) -> None:
        """Set the places of the graph's outputs; those of the outermost graph are contiguous."""
        for out in self.graph.outputs:
            view = self.view(out)
            self.lowered.outputs.append(view if self._is_nested else self.contiguous(view))

    # Values in memory.

    def view(self, node: Node) -> View:
        """Return the place of a node's value; the steps that compute it must have been added."""
        found = self.views.get(node)
        if found is None:
            found = self.views[node] = self._placed(node)
        return found

    def _placed(self, node: Node) -> View:
        if node.is_constant:
            array = np.array(node.value, order="C")
            buffer = Buffer(node.type.dtype, array.size, "constant")
            self.lowered.constants[id(buffer)] = (buffer, array)
            return row_major(buffer, node.type.shape)
        if node.op in NUMBERS or (isinstance(node.type, TensorType) and node.type.size == 0):
            return self._computed(node)
        if node.prim is RESHAPE:
            return self._reshaped(self.view(node.inputs[0]), node.type.shape)
        if is_view(node):
            return through_view(node, self.view(node.inputs[0]))
        raise AssertionError(f"{node} has no place in memory")

    def _computed(self, node: Node) -> View:
        """Write an index sequence, a size, or a tensor without elements into memory."""
        target = row_major(Buffer(node.type.dtype, element_count(node.type.shape), "iota"), node.type.shape)
        if node.type.size:
            position = tuple(affine(k) for k in range(len(node.type.shape)))
            index = index_of(node, position)
            self.fill(target, lambda b: b.index(index, node.type.dtype), "iota")
        return target

    def _reshaped(self, view: View, shape: tuple[DimLike, ...]) -> View:
        strides = regroup(view, shape)
        if strides is None:
            view = self.contiguous(view)
            strides = contiguous_strides(shape)
        return View(view.buffer, shape, strides, view.offset)

    def contiguous(self, view: View) -> View:
        """Return the value in row-major order, copied if it is in another order."""
        if view.is_row_major():
            return view
        return self.copy(view)

    def copy(self, view: View, target: View | None = None) -> View:
        """Copy a value by a kernel and return the copy's place.

        It is `target`, or a new buffer in row-major order.
        """
        target = target or row_major(Buffer(view.buffer.dtype, element_count(view.shape), "copy"), view.shape)
        position = tuple(affine(k) for k in range(len(view.shape)))
        self.fill(target, lambda b: b.load(view.access(position)), "copy")
        return target

    def fill(self, target: View, value: Callable[[Builder], Expr], name: str = "fill") -> None:
        """Add a kernel that writes an expression to each element; loop k runs along axis k."""
        position = tuple(affine(k) for k in range(len(target.shape)))
        store = Store(target.access(position), value(Builder()), True)
        self.kernel(Nest([Loop(d, "p") for d in target.shape], [], [store], name), target.strides)

    def copy_into(self, source: View, target: View) -> None:
        """Copy a value into a buffer that other steps read, such as the variable of a loop."""
        if math.prod(source.shape):
            source = self.contiguous(source)
            self.step(Copy(target, source), [source.buffer], [target.buffer])

    def overwritten(self, node: Node) -> View | None:
        """Return the place of a node's first operand, for its result to replace that.

        Returns None where the operand's value is needed afterwards, or by the node's other operands
        while it is replaced.
        """
        source, *others = node.inputs
        needed = self.last_readers.get(source, self.unit) > self.unit or source in self.results
        if source not in self.own or needed or source in map(root_of, others):
            return None
        place = self.view(source)
        self.relaid = {key: pair for key, pair in self.relaid.items() if pair[0].buffer is not place.buffer}
        return place

    def whole(self, node: Node, like: Sequence[DimLike] | None = None) -> View:
        """Return the memory of a concatenation, which its parts may be computed in.

        Who asks first decides the order of axes in it: that of the strides `like`, or row-major.
        """
        found = self._wholes.get(node)
        if found is None:
            shape = tuple(node.type.shape)
            strides = contiguous_strides(shape) if like is None else like_order(like, shape)
            found = self.part(node, strides) or View(Buffer(node.type.dtype, node.type.size, node.op), shape, strides)
            self._wholes[node] = found
        return found

    def part(self, node: Node, like: Sequence[DimLike]) -> View | None:
        """Return the memory of a value inside of a concatenation, or the part of a value that it
        is; None where it has its own.

        Its axes should lie in the order of the strides `like`, and may lie in another.
        """
        if node in self._slices:
            return self._slices[node]
        if node not in self._joined:
            return None
        user, start = self._joined[node]
        whole = self.whole(user, like)
        offset = whole.offset + start * whole.strides[user.params["axis"]]
        return View(whole.buffer, tuple(node.type.shape), whole.strides, offset)

    def is_read(self, node: Node, index: int) -> bool:
        """Return whether the graph reads a result of a node that has several."""
        return any(user.params["index"] == index for user in self._items.get(node, ()))

    def bind(self, node: Node, values: Sequence[View]) -> None:
        """Set the places of a node's results."""
        if not isinstance(node.type, tuple):
            self.views[node] = values[0]
            return
        for user in self._items.get(node, ()):
            self.views[user] = values[user.params["index"]]

    # Steps.

    def step(
        self,
        data: Action,
        reads: Sequence[Buffer],
        writes: Sequence[Buffer],
        node: Node | None = None,
        members: tuple[Node, ...] = (),
    ) -> None:
        """Add a step.

        `data` is its action, `reads` and `writes` are the buffers that it touches, `node` is the
        node that it runs for, and `members` are all nodes that a kernel computes.
        """
        self.add(Step(data, list(reads), list(writes), node, members))

    def add(self, step: Step) -> None:
        """Add a step that is already made."""
        self.lowered.steps.append(step)
        if self.added is not None:
            self.added(step)

    def kernel(
        self, nest: Nest, like: Sequence[DimLike], node: Node | None = None, members: tuple[Node, ...] = ()
    ) -> None:
        """Add a nest as a step, with its loops ordered and merged for the strides `like`.

        `node` is the node that it runs for, `members` are all nodes that it computes.
        """
        arranged = arrange(nest, like)
        reads, writes = buffers_of(arranged)
        self.step(arranged, reads, writes, node, members)

    def host(self, node: Node, why: str) -> None:
        """Add a step that runs a node in the reference engine, with the reason."""
        self.lowered.fallbacks.append((node, why))
        reads = [self.contiguous(self.view(i)) for i in node.inputs]
        writes = new_views(result_types(node), "host")
        self.step(HostCall(node, reads, writes), [v.buffer for v in reads], [v.buffer for v in writes], node)
        self.bind(node, writes)

    def site(self, node: Node, indices: Node, axis: int, size: DimLike) -> Site | None:
        """Return the site at which the `indices` of a node are checked, for axis `axis` of `size`.

        Returns None where no check is needed, or another node checks the same indices for the same
        size.
        """
        bounds = node.params.get("bounds", "wrap")
        if bounds == "drop":
            return None
        key = (indices, axis, size, bounds, indices.type.shape[-1] if node.op.endswith("_nd") else None)
        owner, site = self._sites.setdefault(key, (node, Site(node, axis, size, bounds == "wrap")))
        return site if owner is node else None


def joined_parts(graph: Graph) -> dict[Node, tuple[Node, DimLike]]:
    """Return the values that are computed as parts of a concatenation, and where they begin."""
    found: dict[Node, tuple[Node, DimLike]] = {}
    taken = {root_of(o) for o in graph.outputs}
    for node in graph.nodes:
        if node.prim is CONCAT:
            start: DimLike = 0
            for x in node.inputs:
                if x.prim is not None and x not in taken:
                    found[x] = node, start
                taken.add(x)
                start = start + x.type.shape[node.params["axis"]]
    return found


def result_types(node: Node) -> tuple[TensorType, ...]:
    """Return the types of a node's results."""
    return node.type if isinstance(node.type, tuple) else (node.type,)


def new_target(node: Node) -> View:
    """Return a new buffer for a node's value, in row-major order."""
    return row_major(Buffer(node.type.dtype, node.type.size, node.op), node.type.shape)


def new_views(types: Sequence[TensorType], name: str) -> list[View]:
    """Return new buffers for values of these types, in row-major order."""
    return [row_major(Buffer(t.dtype, element_count(t.shape), name), t.shape) for t in types]


def regroup(view: View, shape: tuple[DimLike, ...]) -> tuple[DimLike, ...] | None:
    """Return strides for a view's memory in another shape; None where there are none."""
    old = [(d, s) for d, s in zip(view.shape, view.strides) if not is_one(d)]
    result: list[DimLike] = []
    # Walk both shapes from the back, splitting or joining runs that are contiguous.
    runs: list[list[DimLike]] = []
    for d, s in reversed(old):
        if runs and same(s, runs[-1][0] * runs[-1][1]):
            runs[-1][0] = runs[-1][0] * d
        else:
            runs.append([d, s])
    position = 0
    remaining, step = runs[0] if runs else (1, 1)
    for d in reversed(shape):
        if is_one(d):
            result.append(step)
            continue
        while is_one(remaining):
            position += 1
            if position >= len(runs):
                return None
            remaining, step = runs[position]
        rest = remaining % d
        # Whether one symbol's multiple divides another is not worth a decision.
        if isinstance(rest, Dim) and isinstance(d, Dim) or rest:
            return None
        result.append(step)
        remaining = remaining // d
        step = step * d
    return tuple(reversed(result))


def buffers_of(nest: Nest) -> tuple[list[Buffer], list[Buffer]]:
    """Return the buffers that a nest reads, and those that it writes."""
    reads: dict[int, Buffer] = {}
    seen: set[int] = set()

    def visit(x: Expr) -> None:
        if id(x) in seen:
            return
        seen.add(id(x))
        if x.kind == "load":
            reads[id(x.data[0].buffer)] = x.data[0].buffer
        for a in x.args:
            visit(a)

    for r in nest.reduces:
        visit(r.value)
    for s in nest.stores:
        visit(s.value)
        for x, *_ in s.target.dynamic:
            visit(x)
        if s.mode == "add":
            reads[id(s.target.buffer)] = s.target.buffer
    return list(reads.values()), list({id(s.target.buffer): s.target.buffer for s in nest.stores}.values())
