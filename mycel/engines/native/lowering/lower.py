"""From a graph to steps: which nodes become kernels together, which calls go to the dense library, where values lie.

1. Nodes that have no code here are opened through `expand`; what cannot be opened runs in the reference engine as a host step.
2. Views (transpose, slice, broadcast, ...) cost nothing: a value is a `View`, strides over a buffer.
3. Fusion. A group is one nest over a domain of positions, some axes of which reduce. Its members are "full" (a value for each
   position) or "row" (one for each position of the other axes); a node joins the group of a producer when it can be computed at the very
   position where the producer's value is, and when joining makes no cycle among groups. Only values that something outside needs are stored.
   Sizes may be symbolic: what has to be so for all sizes is asked of their expressions, what is only a matter of speed of their hints.
4. Groups and calls are ordered; each buffer lives from its first to its last step, which is what the arena is planned by.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

import numpy as np

from mycel.base import dtype as D
from mycel.base.spans import timed
from mycel.engines.native.kernels import emit
from mycel.engines.native.kernels.nest import (
    ZERO,
    Affine,
    Buffer,
    Builder,
    Expr,
    Loop,
    Nest,
    Reduce,
    Site,
    Store,
    affine,
)
from mycel.engines.native.kernels.rounding import rounded
from mycel.engines.native.kernels.views import View, contiguous_strides, room, row_major
from mycel.engines.native.lowering.joining import join_maps
from mycel.engines.native.lowering.multi_kernel import SPECIAL
from mycel.engines.native.lowering.recompute import choose
from mycel.engines.native.lowering.relayout import along_lanes
from mycel.engines.native.lowering.rules import (
    FULL_RULES,
    GROUP_RULES,
    Domain,
    has_full_rule,
    is_view,
    through_view,
    view_position,
)
from mycel.engines.native.lowering.tape_steps import pair
from mycel.engines.native.onednn import binding as dense
from mycel.ir.dims import DimLike, hint, is_one, same
from mycel.ir.graph import Graph, Node
from mycel.ir.types import TensorType
from mycel.prims.base import GET_ITEM

__all__ = ["Lowered", "Step", "lower"]

# Longer groups gain nothing, and their code would take ever longer to write.
LARGEST = 128
# What needs no memory to be read.
NUMBERS = frozenset(("constant", "iota", "size"))


@dataclass
class Step:
    """One thing to run: kind is kernel, dense, host, copy, fill, cond, while or call.

    `members` are the nodes that a kernel computes. Neighbours of one `batch` run at one time.
    """

    kind: str
    reads: list[Buffer]
    writes: list[Buffer]
    data: Any
    node: Optional[Node] = None
    members: tuple[Node, ...] = ()
    batch: Optional[int] = None


@dataclass
class Lowered:
    """The steps of a graph and where its inputs and outputs lie."""

    steps: list[Step]
    inputs: list[Buffer]
    outputs: list[View]
    constants: dict[int, tuple[Buffer, np.ndarray[Any, Any]]] = field(default_factory=dict)
    fallbacks: list[tuple[Node, str]] = field(default_factory=list)


@dataclass(eq=False)
class Unit:
    """A group of fused nodes, or a single node that is run on its own."""

    number: int
    domain: Optional[Domain] = None
    members: dict[Node, tuple[Affine, ...]] = field(default_factory=dict)
    node: Optional[Node] = None
    before: int = 0
    is_needed: bool = False


@timed("lowering", lambda graph: graph.name)
def lower(graph: Graph) -> Lowered:
    """The steps that compute a graph; with symbolic sizes, inside decisions that have a hint for each symbol."""
    return _Lowering(graph).run()


def is_dense(node: Node) -> bool:
    """Whether a node goes to the dense library."""
    name = node.op
    if name not in ("matmul", "conv", "conv_grad_input", "conv_grad_weight") or not dense.available():
        return False
    if name == "matmul" and is_vector_product(node):
        return False
    return (
        node.type.dtype in (D.float32, D.bfloat16, D.float16)
        and _is_countable(node)
        and all(i.type.size for i in node.inputs)
        and node.type.size
    )


def _is_countable(node: Node) -> bool:
    """Whether no size or number of the window that is known is too large for the library."""
    shapes = (node.type.shape, *[i.type.shape for i in node.inputs])
    numbers = [node.params[k] for k in ("strides", "dilation") if k in node.params]
    numbers += node.params.get("padding", ())
    return all(d <= dense.MOST_SIZE for sizes in (*shapes, *numbers) for d in sizes if type(d) is int)


def is_vector_product(node: Node) -> bool:
    """Whether a product is that of a matrix and a vector or of two vectors: each element is used once, and memory is all that counts."""
    a, b = (i.type.shape for i in node.inputs)
    return is_one(a[-2]) or is_one(a[-1]) or is_one(b[-1])


class _Lowering:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.views: dict[Node, View] = {}
        self.units: list[Unit] = []
        self.unit_of: dict[Node, Unit] = {}
        self.stored: set[Node] = set()
        self.again: set[Node] = set()
        self.result = Lowered([], [], [])
        self.relaid: dict[Any, tuple[View, View]] = {}
        self.siblings: dict[Any, Unit] = {}
        self.bound: Optional[list[View]] = None
        self.pairs: Optional[dict[Node, Node]] = None
        self.tapes: dict[Node, Buffer] = {}
        self.results = {self.root(o) for o in graph.outputs}
        self.sites: dict[Any, tuple[Node, Site]] = {}
        self.items: dict[Node, list[Node]] = {}
        for user in graph.nodes:
            if user.prim is GET_ITEM:
                self.items.setdefault(user.inputs[0], []).append(user)

    # Fusion.

    def run(self) -> Lowered:
        graph = self.graph
        for k, node in enumerate(graph.inputs):
            if self.bound is not None:
                self.views[node] = self.bound[k]
                continue
            buffer = (
                Buffer(node.type.dtype, node.type.size, "input")
                if isinstance(node.type, TensorType)
                else Buffer(D.bool_, 1, "token")
            )
            self.result.inputs.append(buffer)
            if isinstance(node.type, TensorType):
                self.views[node] = row_major(buffer, node.type.shape)
        for node in graph.nodes:
            self.place(node)
        for out in graph.outputs:
            self.need(out)
        join_maps(self, LARGEST)
        for _ in range(2):
            choose(self)
            self.merge_siblings()
        for unit in self.ordered():
            self.emit(unit)
        for out in graph.outputs:
            view = self.view(out)
            self.result.outputs.append(view if self.bound is not None else self.contiguous(view))
        return self.result

    def root(self, node: Node) -> Node:
        """The node whose value `node` is a view of."""
        while is_view(node):
            node = node.inputs[0]
        return node

    def need(self, node: Node) -> None:
        """Ask for the value of a node in memory."""
        self.stored.add(self.root(node))

    def place(self, node: Node) -> None:
        """Put a node into a group or a unit of its own."""
        name = node.op
        if is_view(node) or name in NUMBERS or node.prim is GET_ITEM:
            return
        if node.type.size == 0 if isinstance(node.type, TensorType) else False:
            return
        empty = any(isinstance(i.type, TensorType) and i.type.size == 0 for i in node.inputs)
        if (
            not empty
            and not is_dense(node)
            and (
                has_full_rule(node)
                or name in GROUP_RULES
                or emit.is_supported(name)
                or emit.is_cast(node)
                or name == "checked"
            )
        ):
            self.join(node)
            return
        unit = Unit(len(self.units), node=node)
        self.units.append(unit)
        self.unit_of[node] = unit
        for i in node.inputs:
            self.need(i)
            self.depend(unit, self.root(i))
        if name in ("while_loop", "while_grad"):
            pair(self, node)

    def depend(self, unit: Unit, root: Node) -> None:
        other = self.unit_of.get(root.inputs[0] if root.prim is GET_ITEM else root)
        if other is not None and other is not unit:
            before = unit.before | other.before | 1 << other.number
            other.is_needed = True
            if before != unit.before:
                unit.before = before
                for u in self.units if unit.is_needed else ():
                    if u.before >> unit.number & 1:
                        u.before |= before

    def join(self, node: Node) -> None:
        name = node.op
        rule = GROUP_RULES.get(name)
        if rule is not None:
            domain = rule(node)
            key = (domain.shape, domain.axes, self.root(node.inputs[0]), domain.kind)
            candidates = [self.siblings.get(key)] if key in self.siblings else []
            if domain.kind == "reduce":
                candidates += self.producer_units(node)
            for unit in candidates:
                if unit is not None and self.try_reduce(unit, node, domain):
                    self.siblings[key] = unit
                    return
            unit = self.new_group(domain)
            self.siblings[key] = unit
            self.add(unit, node, domain.row_position())
            return
        for unit in self.producer_units(node):
            position = unit.domain.position_of(node.type.shape) if unit.domain is not None else None
            for p in position or ():
                if self.fits(unit, node, p):
                    self.add(unit, node, p)
                    return
        domain = Domain(tuple(node.type.shape), None, "map")
        unit = self.new_group(domain)
        self.add(unit, node, domain.full_position())

    def producer_units(self, node: Node) -> list[Unit]:
        """The groups of the node's inputs, latest first."""
        found = {
            u.number: u
            for i in node.inputs
            if (u := self.unit_of.get(self.root(i))) is not None and u.domain is not None
        }
        return [found[k] for k in sorted(found, reverse=True)]

    def new_group(self, domain: Domain) -> Unit:
        unit = Unit(len(self.units), domain=domain)
        self.units.append(unit)
        return unit

    def try_reduce(self, unit: Unit, node: Node, domain: Domain) -> bool:
        mine = unit.domain
        if len(unit.members) >= LARGEST:
            return False
        if mine is None or not same(mine.shape, domain.shape) or mine.axes not in (None, domain.axes):
            return False
        if mine.kind != domain.kind and (mine.kind, domain.kind) != ("map", "reduce"):
            return False
        if any(not self.acyclic(unit, i) for i in node.inputs):
            return False
        if domain.kind == "reduce":
            if not self.inputs_meet(unit, node, [domain.full_position()] * len(node.inputs)):
                return False
        elif any(self.unit_of.get(self.root(i)) is unit for i in node.inputs):
            return False
        mine.axes, mine.kind = domain.axes, domain.kind
        self.add(unit, node, domain.row_position())
        return True

    def fits(self, unit: Unit, node: Node, position: tuple[Affine, ...]) -> bool:
        """Whether a node can be computed in a group at this position."""
        if len(unit.members) >= LARGEST or any(not self.acyclic(unit, i) for i in node.inputs):
            return False
        name = node.op
        if name in FULL_RULES:
            return all(self.unit_of.get(self.root(i)) is not unit for i in node.inputs)
        return self.inputs_meet(unit, node, [broadcast_position(i, position) for i in node.inputs])

    def inputs_meet(self, unit: Unit, node: Node, positions: Sequence[tuple[Affine, ...]]) -> bool:
        """Whether every input in the group is wanted just where the group has it."""
        for i, p in zip(node.inputs, positions):
            root = self.root(i)
            if self.unit_of.get(root) is unit:
                at = resolve(i, p)
                if at is None or not same_place(root, at, unit.members[root]):
                    return False
        return True

    def acyclic(self, unit: Unit, node: Node) -> bool:
        root = self.root(node)
        other = self.unit_of.get(root.inputs[0] if root.prim is GET_ITEM else root)
        return other is None or other is unit or not other.before >> unit.number & 1

    def add(self, unit: Unit, node: Node, position: tuple[Affine, ...]) -> None:
        unit.members[node] = position
        self.unit_of[node] = unit
        for i in node.inputs:
            root = self.root(i)
            if self.unit_of.get(root) is not unit:
                self.stored.add(root)
                self.depend(unit, root)

    def merge_siblings(self) -> None:
        """Let reductions of one domain that read the same memory share a pass over it."""
        known: dict[Any, list[Unit]] = {}
        for unit in list(self.units):
            domain = unit.domain
            if domain is None or domain.kind != "reduce" or not domain.axes:
                continue
            others = known.setdefault((domain.shape, domain.axes), [])
            reads = self.large_reads(unit)
            for other in others:
                apart = not (other.before >> unit.number | unit.before >> other.number) & 1
                small = len(unit.members) + len(other.members) <= LARGEST
                if apart and small and not reads.isdisjoint(self.large_reads(other)):
                    self.merge(other, unit)
                    break
            else:
                others.append(unit)

    def large_reads(self, unit: Unit) -> set[Node]:
        """What a group reads that is as large as its domain."""
        assert unit.domain is not None
        size = hint(math.prod(unit.domain.shape))
        found: set[Node] = set()

        def visit(node: Node) -> None:
            for i in node.inputs:
                root = self.root(i)
                if root in unit.members:
                    continue
                if root in self.again:
                    visit(root)
                elif isinstance(root.type, TensorType) and hint(root.type.size) == size:
                    found.add(root)

        for node in unit.members:
            visit(node)
        return found

    def merge(self, unit: Unit, other: Unit) -> None:
        """Make the members of another group, neither of which needs the other, members of a group."""
        unit.members.update(other.members)
        self.unit_of.update(dict.fromkeys(other.members, unit))
        self.units.remove(other)
        unit.before |= other.before
        unit.is_needed |= other.is_needed
        here, gone = 1 << unit.number, 1 << other.number
        for u in self.units:
            if u.before & gone:
                u.before = u.before & ~gone | here
            if u.before & here:
                u.before |= unit.before

    def ordered(self) -> list[Unit]:
        """Units such that each comes after what it needs."""
        order: list[Unit] = []
        done = 0
        pending = list(self.units)
        while pending:
            rest = []
            for unit in pending:
                if unit.before & ~done == 0:
                    order.append(unit)
                    done |= 1 << unit.number
                else:
                    rest.append(unit)
            if len(rest) == len(pending):
                raise AssertionError("groups depend on each other in a cycle")
            pending = rest
        return order

    # Values in memory.

    def site(self, node: Node, indices: Node, axis: int, size: DimLike) -> Optional[Site]:
        """Where the indices of a node are looked at; None where they need not be, or another node looks at the same ones for the same size."""
        bounds = node.params.get("bounds", "wrap")
        if bounds == "drop":
            return None
        key = (indices, axis, size, bounds, indices.type.shape[-1] if node.op.endswith("_nd") else None)
        owner, site = self.sites.setdefault(key, (node, Site(node, axis, size, bounds == "wrap")))
        return site if owner is node else None

    def view(self, node: Node) -> View:
        """Where a node's value lies; it must have been computed."""
        found = self.views.get(node)
        if found is not None:
            return found
        name = node.op
        if name == "constant":
            array = np.array(node.value, order="C")
            buffer = Buffer(node.type.dtype, array.size, "constant")
            self.result.constants[id(buffer)] = (buffer, array)
            made = row_major(buffer, node.type.shape)
        elif name in NUMBERS or (isinstance(node.type, TensorType) and node.type.size == 0):
            made = self.computed(node)
        elif name == "reshape":
            made = self.reshaped(self.view(node.inputs[0]), node.type.shape)
        elif is_view(node):
            made = through_view(node, self.view(node.inputs[0]))
        else:
            raise AssertionError(f"{node} has no place in memory")
        self.views[node] = made
        return made

    def reshaped(self, view: View, shape: tuple[DimLike, ...]) -> View:
        strides = regroup(view, shape)
        if strides is None:
            view = self.contiguous(view)
            strides = contiguous_strides(shape)
        return View(view.buffer, shape, strides, view.offset)

    def contiguous(self, view: View) -> View:
        """The value in row-major order, copied if it lies otherwise."""
        if view.is_row_major():
            return view
        return self.copy(view)

    def copy(self, view: View, target: Optional[View] = None) -> View:
        target = target or row_major(Buffer(view.buffer.dtype, room(view.shape), "copy"), view.shape)
        b = Builder()
        position = tuple(affine(k) for k in range(len(view.shape)))
        value = b.load(view.access(position))
        nest = Nest([Loop(d, "p") for d in view.shape], [], [Store(target.access(position), value, True)], "copy")
        self.kernel(nest, target.strides)
        return target

    def computed(self, node: Node) -> View:
        """An index sequence, a size, or a tensor of nothing, in memory."""
        target = row_major(Buffer(node.type.dtype, room(node.type.shape), "iota"), node.type.shape)
        if node.type.size:
            b = Builder()
            position = tuple(affine(k) for k in range(len(node.type.shape)))
            value = b.index(index_of(node, position), node.type.dtype)
            nest = Nest(
                [Loop(d, "p") for d in node.type.shape], [], [Store(target.access(position), value, True)], "iota"
            )
            self.kernel(nest, target.strides)
        return target

    # Steps.

    def emit(self, unit: Unit) -> None:
        if unit.domain is not None:
            self.emit_group(unit)
            return
        node = unit.node
        assert node is not None
        name = node.op
        if is_dense(node):
            from mycel.engines.native.lowering.dense_steps import dense_step

            dense_step(self, node)
        elif name in SPECIAL:
            SPECIAL[name](self, node)
        else:
            self.host(node, "no native code")

    def host(self, node: Node, why: str) -> None:
        """Run a node in the reference engine."""
        self.result.fallbacks.append((node, why))
        reads = [self.contiguous(self.view(i)) for i in node.inputs]
        types = node.type if isinstance(node.type, tuple) else (node.type,)
        writes = [row_major(Buffer(t.dtype, room(t.shape), "host"), t.shape) for t in types]
        self.step("host", [v.buffer for v in reads], [v.buffer for v in writes], (node, reads, writes), node)
        self.bind(node, writes)

    def bind(self, node: Node, values: Sequence[View]) -> None:
        """Say where a node's outputs lie."""
        if not isinstance(node.type, tuple):
            self.views[node] = values[0]
            return
        for user in self.items.get(node, ()):
            self.views[user] = values[user.params["index"]]

    def step(
        self, kind: str, reads: Sequence[Buffer], writes: Sequence[Buffer], data: Any, node: Optional[Node] = None
    ) -> None:
        self.result.steps.append(Step(kind, list(reads), list(writes), data, node))

    def kernel(self, nest: Nest, like: Sequence[DimLike], node: Optional[Node] = None) -> None:
        """Order and merge a nest's loops and add it as a step."""
        from mycel.engines.native.kernels.loops import arrange

        arranged = arrange(nest, like)
        reads, writes = buffers_of(arranged)
        self.step("kernel", reads, writes, arranged, node)

    def emit_group(self, unit: Unit) -> None:
        domain = unit.domain
        assert domain is not None
        group = _Group(self, unit, domain)
        stores = []
        strides_like = group.like = group.reference_strides()
        targets: dict[Node, View] = {}
        for node, position in unit.members.items():
            if node not in self.stored:
                continue
            full = group.is_full(node)
            target = self.new_value(node, position, strides_like)
            targets[node] = target
            value = group.member(node)
            stores.append(Store(target.access(position), value, full or not domain.axes))
        if not stores:
            return
        loops = domain.loops()
        nest = Nest(loops, [r for r in group.reduces.values()], stores, next(iter(unit.members)).op)
        nest.reduces = reachable_reduces(nest)
        self.kernel(nest, strides_like, next(reversed(unit.members)))
        self.result.steps[-1].members = tuple(unit.members)
        self.views.update(targets)

    def new_value(self, node: Node, position: tuple[Affine, ...], like: Sequence[int]) -> View:
        """A buffer for a node, its axes ordered in memory as the loops they run along."""
        shape = node.type.shape
        buffer = Buffer(node.type.dtype, node.type.size, node.op)
        if len(shape) < 2 or not like:
            return row_major(buffer, shape)
        weight = []
        for axis, p in enumerate(position):
            loop = p.terms[0][0] if p.terms else None
            weight.append((-(like[loop] if loop is not None and like[loop] else 0), axis))
        if any(like[p.terms[0][0]] == 0 for p in position if p.terms):
            return row_major(buffer, shape)
        axes = [axis for _, axis in sorted(weight)]
        strides: list[DimLike] = [0] * len(shape)
        step: DimLike = 1
        for axis in reversed(axes):
            strides[axis] = step
            step = step * shape[axis]
        return View(buffer, tuple(shape), tuple(strides), 0)


class _Group:
    """The expressions of one fused group."""

    def __init__(self, lowering: _Lowering, unit: Unit, domain: Domain) -> None:
        self.lowering, self.unit, self.domain = lowering, unit, domain
        self.builder = Builder()
        self.values: dict[Node, Expr] = {}
        self.memo: dict[tuple[Node, tuple[Affine, ...]], Expr] = {}
        self.reduces: dict[Node, Reduce] = {}
        self.like: tuple[int, ...] = ()

    def is_full(self, node: Node) -> bool:
        """Whether a member has a value at every position, the reducing axes included."""
        axes = self.domain.axes or ()
        sized = {a for a in axes if not is_one(self.domain.shape[a])}
        used = {k for p in self.unit.members[node] for k, _ in p.terms}
        return bool(sized) and sized <= used and node not in self.reduces

    def reference_strides(self) -> tuple[int, ...]:
        """The strides, by loop, of the largest value that the group reads: what loop order and layouts follow."""
        best: Optional[tuple[int, ...]] = None
        score = (-1, -1)
        rank = len(self.domain.shape)
        if not self.domain.axes and not self.lowering.results.isdisjoint(self.unit.members):
            return hints(contiguous_strides(self.domain.shape))
        for node in self.unit.members:
            for i, p in self.reads(node, self.input_positions(node)):
                view = self.lowering.view(i)
                offset = view.access(p).offset
                strides = tuple(abs(hint(offset.coefficient(k))) for k in range(rank))
                covered = math.prod(hint(d) for d, s in zip(self.domain.shape, strides) if s)
                candidate = (covered, 0 if view.is_row_major() else 1)
                if candidate > score:
                    best, score = strides, candidate
        if best is None or any(
            s == 0 and hint(d) > 1 and (not self.domain.axes or k not in self.domain.axes)
            for k, (s, d) in enumerate(zip(best, self.domain.shape))
        ):
            return hints(contiguous_strides(self.domain.shape))
        return best

    def reads(
        self, node: Node, positions: Sequence[Optional[tuple[Affine, ...]]]
    ) -> Iterator[tuple[Node, tuple[Affine, ...]]]:
        """What computing a node reads from memory, and where; its inputs are wanted at `positions`."""
        for i, p in zip(node.inputs, positions):
            root = self.lowering.root(i)
            if p is None or root in self.unit.members or root.op in NUMBERS:
                continue
            if root in self.lowering.again:
                at = resolve(i, p)
                assert at is not None
                yield from self.reads(root, [broadcast_position(k, at) for k in root.inputs])
            else:
                yield i, p

    def input_positions(self, node: Node) -> list[Optional[tuple[Affine, ...]]]:
        name = node.op
        if name in GROUP_RULES:
            return self.domain.input_positions(node)
        if name in FULL_RULES:
            return [None] * len(node.inputs)
        return [broadcast_position(i, self.unit.members[node]) for i in node.inputs]

    def member(self, node: Node) -> Expr:
        """The expression of a member at its own position."""
        found = self.values.get(node)
        if found is None:
            value = self.compute(node, self.unit.members[node])
            found = self.values[node] = rounded(self.builder, node, value)
        return found

    def at(self, node: Node, position: tuple[Affine, ...]) -> Expr:
        """The value of any node at a position."""
        while is_view(node) and node not in self.lowering.views:
            moved = resolve_once(node, position)
            if moved is None:
                break
            node, position = node.inputs[0], moved
        if node in self.unit.members:
            return self.member(node)
        name = node.op
        if name == "constant" and node.value.size == 1:
            return self.builder.const(
                node.value.reshape(()).item()
                if node.dtype.name not in ("bfloat16", "float16")
                else float(node.value.reshape(())),
                node.dtype,
            )
        if name in ("iota", "size"):
            return self.builder.index(index_of(node, position), node.dtype)
        if node in self.lowering.again:
            key = (node, position)
            if key not in self.memo:
                args = [self.at(i, broadcast_position(i, position)) for i in node.inputs]
                self.memo[key] = rounded(self.builder, node, self.builder.op(name, node.dtype, *args))
            return self.memo[key]
        view = self.lowering.view(node)
        if self.domain.axes:
            view = along_lanes(self.lowering, view, position, self.like)
        return self.builder.load(view.access(position))

    def compute(self, node: Node, position: tuple[Affine, ...]) -> Expr:
        name = node.op
        if name in GROUP_RULES:
            reduce = self.domain.reduce(self, node)
            self.reduces[node] = reduce
            if reduce.result.dtype is not node.dtype:
                return self.builder.op("cast", node.dtype, reduce.result)
            return reduce.result
        if name in FULL_RULES:
            return FULL_RULES[name](self, node, position)
        args = [self.at(i, broadcast_position(i, position)) for i in node.inputs]
        if name == "checked":
            site = self.lowering.site(node, node.inputs[0], node.params["axis"], node.params["size"])
            return args[0] if site is None else self.builder.check(args[0], site)
        return self.builder.op(name, node.dtype, *args)


def index_of(node: Node, position: tuple[Affine, ...]) -> Affine:
    """The number that an index sequence or a size is at a position."""
    if node.op == "size":
        return Affine((), node.params["dim"])
    axis: int = node.params["axis"]
    return position[axis]


def broadcast_position(node: Node, position: tuple[Affine, ...]) -> tuple[Affine, ...]:
    """Where an operand is read when the result is at `position`."""
    shape = node.type.shape
    behind = position[len(position) - len(shape) :]
    return tuple(ZERO if is_one(d) else p for d, p in zip(shape, behind))


def resolve_once(node: Node, position: tuple[Affine, ...]) -> Optional[tuple[Affine, ...]]:
    """Where the input of a view is read; None where the view has to lie in memory."""
    return view_position(node, position)


def resolve(node: Node, position: tuple[Affine, ...]) -> Optional[tuple[Affine, ...]]:
    """Where the root of a chain of views is read."""
    at: Optional[tuple[Affine, ...]] = position
    while is_view(node):
        at = resolve_once(node, at)  # type: ignore[arg-type]
        if at is None:
            return None
        node = node.inputs[0]
    return at


def same_place(node: Node, a: tuple[Affine, ...], b: tuple[Affine, ...]) -> bool:
    return all(p == q or is_one(d) for p, q, d in zip(a, b, node.type.shape))


def hints(sizes: Sequence[DimLike]) -> tuple[int, ...]:
    """The numbers that sizes are expected to be."""
    return tuple(hint(s) for s in sizes)


def regroup(view: View, shape: tuple[DimLike, ...]) -> Optional[tuple[DimLike, ...]]:
    """Strides for the same memory under another shape; None where there are none."""
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
        if remaining % d:
            return None
        result.append(step)
        remaining = remaining // d
        step = step * d
    return tuple(reversed(result))


def buffers_of(nest: Nest) -> tuple[list[Buffer], list[Buffer]]:
    """What a nest reads and what it writes."""
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


def reachable_reduces(nest: Nest) -> list[Reduce]:
    """The reductions that the stores use, each after those that it uses."""
    order: list[Reduce] = []
    seen: set[int] = set()

    def visit(x: Expr) -> None:
        if id(x) in seen:
            return
        seen.add(id(x))
        for a in x.args:
            visit(a)
        if x.kind == "reduced":
            order.append(x.data)

    for s in nest.stores:
        visit(s.value)
    return order
