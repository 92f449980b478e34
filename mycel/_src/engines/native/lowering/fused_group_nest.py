"""The loop nest of a fused group: the expressions of its members, and its stores."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from mycel._src.compiler.ir.dim_values import hint
from mycel._src.compiler.ir.dims import DimLike, is_one
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims.indexing.index import checked
from mycel._src.engines.native.kernels.half_rounding import rounded
from mycel._src.engines.native.kernels.loop_nest import Affine, Buffer, Builder, Expr, Nest, Reduce, Store
from mycel._src.engines.native.kernels.loop_order import SHORT
from mycel._src.engines.native.kernels.strided_view import View, contiguous_strides, row_major
from mycel._src.engines.native.lowering.fusion import Fusion, Unit
from mycel._src.engines.native.lowering.relayout import along_lanes
from mycel._src.engines.native.operations.convolution.channels_last_rules import is_channelled
from mycel._src.engines.native.operations.convolution.channels_last_steps import ChannelDomain, channel_step
from mycel._src.engines.native.operations.fusion_rules import FULL_RULES, GROUP_RULES, Domain
from mycel._src.engines.native.operations.requantisation.requantisation_rules import is_rescaled, rescaled, settled
from mycel._src.engines.native.steps.step_builder import StepBuilder
from mycel._src.engines.native.steps.view_rules import (
    NUMBERS,
    Position,
    broadcast_position,
    index_of,
    is_index,
    is_view,
    resolve,
    root_of,
    view_position,
)

__all__ = ["group_step"]

# Domains that end with an image's positions, before what is summed over.
IMAGES = ("conv", "conv_grad_input")


def group_step(fusion: Fusion, steps: StepBuilder, unit: Unit, domain: Domain) -> None:
    """Add the kernel of the group `unit` over `domain`; none if it stores nothing.

    `fusion` says which values are stored, and `steps` gets the kernel.
    """
    channels = ChannelDomain.of(domain) if domain.node is not None and is_channelled(domain.node) else None
    group = _Group(fusion, steps, unit, channels or domain)
    stores = []
    targets: dict[Node, View] = {}
    for node, position in unit.members.items():
        if node not in fusion.stored:
            continue
        full = group.is_full(node)
        own = _new_value(node, position, group.like)
        target = targets[node] = steps.part(node, own.strides) or own
        stores.append(Store(target.access(position), group.member(node), full or not domain.axes))
    if not stores:
        return
    name = next(iter(unit.members)).op
    if channels is not None:
        channel_step(steps, channels, stores, tuple(unit.members), name)
        steps.views.update(targets)
        return
    nest = Nest(domain.loops(), [], stores, name)
    nest.reduces = _reachable_reduces(nest)
    steps.kernel(nest, group.like, next(reversed(unit.members)), tuple(unit.members))
    steps.views.update(targets)


class _Group:
    """The expressions of one group.

    `fusion` says which nodes belong to the group `unit`, whose positions are `domain`; `steps`
    knows the places of other values. The attribute `like` has the strides, by loop, that the order
    of loops and the layouts of results follow.
    """

    def __init__(self, fusion: Fusion, steps: StepBuilder, unit: Unit, domain: Domain) -> None:
        self.fusion, self.steps, self.unit, self.domain = fusion, steps, unit, domain
        self.builder = Builder()
        self.values: dict[Node, Expr] = {}
        self.memo: dict[tuple[Node, Position], Expr] = {}
        self.reduces: dict[Node, Reduce] = {}
        self.like = self.reference_strides()

    def is_full(self, node: Node) -> bool:
        """Return whether a member has a value at every position, also along the reducing axes."""
        axes = self.domain.axes or ()
        sized = {a for a in axes if not is_one(self.domain.shape[a])}
        used = {k for p in self.unit.members[node] for k, _ in p.terms}
        return bool(sized) and sized <= used and node not in self.reduces

    def reference_strides(self) -> tuple[int, ...]:
        """Return the strides, by loop, of the largest value that the group reads."""
        if isinstance(self.domain, ChannelDomain):
            return self.domain.like()
        if self.domain.kind in IMAGES:
            return self.image_strides()
        best: tuple[int, ...] | None = None
        score = (-1, -1)
        rank = len(self.domain.shape)
        if not self.domain.axes and not self.fusion.results.isdisjoint(self.unit.members):
            return _hints(contiguous_strides(self.domain.shape))
        for node in self.unit.members:
            for i, p in self.reads(node, self.input_positions(node)):
                view = self.steps.view(i)
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
            return _hints(contiguous_strides(self.domain.shape))
        return best

    def image_strides(self) -> tuple[int, ...]:
        """Return strides that put what is summed over outside of a result's positions.

        Images are contiguous along these, and neither they nor weights are along the channels.
        """
        shape, axes = self.domain.shape, self.domain.axes or ()
        order = [*axes, *[k for k in range(len(shape)) if k not in axes]]
        if math.prod(hint(shape[k]) for k in order[len(axes) + 2 :]) < SHORT:
            return _hints(contiguous_strides(shape))
        strides = contiguous_strides(tuple(shape[k] for k in order))
        return _hints([strides[order.index(k)] for k in range(len(shape))])

    def reads(self, node: Node, positions: Sequence[Position]) -> Iterator[tuple[Node, Position]]:
        """Yield the values that computing a node reads from memory, and their positions.

        The node's inputs are needed at `positions`.
        """
        for i, p in zip(node.inputs, positions):
            root = root_of(i)
            if root in self.unit.members or root.op in NUMBERS:
                continue
            if root in self.fusion.again:
                at = resolve(i, p)
                assert at is not None
                yield from self.reads(root, [broadcast_position(k, at) for k in root.inputs])
            else:
                yield i, p

    def input_positions(self, node: Node) -> list[Position]:
        """Return the positions at which a member reads its inputs.

        The list is empty where the member computes the positions from data.
        """
        if node.op in GROUP_RULES:
            return self.domain.input_positions(node)
        if node.op in FULL_RULES:
            return []
        return [broadcast_position(i, self.unit.members[node]) for i in node.inputs]

    def member(self, node: Node) -> Expr:
        """Return the expression of a member at its own position."""
        found = self.values.get(node)
        if found is None:
            value = self.compute(node, self.unit.members[node])
            found = self.values[node] = rounded(self.builder, node, value)
        return found

    def at(self, node: Node, position: Position) -> Expr:
        """Return the value of any node at a position."""
        while is_view(node) and node not in self.steps.views:
            moved = view_position(node, position)
            if moved is None:
                break
            node, position = node.inputs[0], moved
        if node in self.unit.members:
            return self.member(node)
        if node.is_constant and node.value.size == 1:
            number = node.value.reshape(())
            is_narrow = node.dtype.name in ("bfloat16", "float16")
            return self.builder.const(float(number) if is_narrow else number.item(), node.dtype)
        if is_index(node):
            return self.builder.index(index_of(node, position), node.dtype)
        if node in self.fusion.again:
            key = (node, position)
            if key not in self.memo:
                args = [self.at(i, broadcast_position(i, position)) for i in node.inputs]
                self.memo[key] = rounded(self.builder, node, self.applied(node, position, args))
            return self.memo[key]
        view = self.steps.view(node)
        if self.domain.axes:
            view = along_lanes(self.steps, view, position, self.like)
        return self.builder.load(view.access(position))

    def compute(self, node: Node, position: Position) -> Expr:
        """Return the expression of a member at a position, before rounding."""
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
        if node.prim is checked:
            site = self.steps.site(node, node.inputs[0], node.params["axis"], node.params["size"])
            return args[0] if site is None else self.builder.check(args[0], site)
        return self.applied(node, position, args)

    def applied(self, node: Node, position: Position, args: list[Expr]) -> Expr:
        """Return an element-wise operation on the expressions `args` at a position."""
        if not is_rescaled(node):
            return self.builder.op(node.op, node.dtype, *args)
        shift = settled(node)
        if shift is not node.inputs[2]:
            args[2] = self.at(shift, broadcast_position(shift, position))
        return rescaled(self.builder, node, *args)


def _new_value(node: Node, position: Position, like: Sequence[int]) -> View:
    """Return a buffer for a member, whose axes have the order in memory of their loops."""
    shape = node.type.shape
    buffer = Buffer(node.type.dtype, node.type.size, node.op)
    if len(shape) < 2 or not like or any(like[_loop_of(p)] == 0 for p in position if p.terms):
        return row_major(buffer, shape)
    weight = [(-like[_loop_of(p)] if p.terms else 0, axis) for axis, p in enumerate(position)]
    strides: list[DimLike] = [0] * len(shape)
    step: DimLike = 1
    for _, axis in reversed(sorted(weight)):
        strides[axis] = step
        step = step * shape[axis]
    return View(buffer, tuple(shape), tuple(strides), 0)


def _loop_of(place: Affine) -> int:
    """Return the first loop on which an affine number depends."""
    return place.terms[0][0]


def _hints(sizes: Sequence[DimLike]) -> tuple[int, ...]:
    """Return the expected values of sizes."""
    return tuple(hint(s) for s in sizes)


def _reachable_reduces(nest: Nest) -> list[Reduce]:
    """Return the reductions that the stores use, each after those that it uses."""
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
