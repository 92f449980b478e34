"""Fusion rules: the domains and index maps by which reductions, windows and gathers join groups.

Group rules are for reductions, full rules for primitives that read operands at other positions. A
`Domain` is the space of positions of a group, loop k along its axis k. For kind "reduce" it is the
shape of the operand, for "window" the output's shape followed by the window's, for "product" the
output's shape followed by the contracted axis, for a convolution or gradient what
`convolution_index_maps` says, for "map" just a shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from mycel._src.compiler.ir.dims import DimLike, is_one, same
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims.convolution.window import lowest
from mycel._src.engines.native.kernels import instruction_emitter
from mycel._src.engines.native.kernels.loop_nest import ZERO, Access, Affine, Builder, Expr, Guard, Loop, Reduce, affine
from mycel._src.engines.native.operations.convolution_index_maps import (
    conv_axes,
    conv_positions,
    conv_shape,
    may_exceed,
)
from mycel._src.engines.native.operations.requantisation.requantisation_rules import is_rescaled
from mycel._src.engines.native.steps.step_builder import StepBuilder
from mycel._src.engines.native.steps.view_rules import Position, root_of
from mycel._src.foundation import dtype as D

__all__ = [
    "FULL_RULES",
    "GROUP_RULES",
    "SUMS_OF_PRODUCTS",
    "Domain",
    "Members",
    "has_full_rule",
    "is_fusible",
    "is_reduction",
    "reads_apart",
]

_REDUCES = {
    "reduce_sum": "sum",
    "reduce_prod": "prod",
    "reduce_max": "max",
    "reduce_min": "min",
    "reduce_any": "any",
    "reduce_all": "all",
    "argmax": "argmax",
    "argmin": "argmin",
}
CONVOLUTIONS = frozenset(("conv", "conv_grad_input", "conv_grad_weight", "int_conv"))
_INTEGER_SUMS = ("int_matmul", "int_conv")
SUMS_OF_PRODUCTS = frozenset(("matmul", *CONVOLUTIONS, *_INTEGER_SUMS))
_WINDOWS = {"window_max": "max", "window_sum": "sum", "window_argmax": "argmax"}
UNROLL = 32


class Members(Protocol):
    """The expressions of a fused group, as rules need them."""

    builder: Builder
    steps: StepBuilder

    def at(self, node: Node, position: Position) -> Expr:
        """Return the value of any node at a position."""


@dataclass
class Domain:
    """The positions of a group; `axes` are those that reduce (None: not yet decided)."""

    shape: tuple[DimLike, ...]
    axes: tuple[int, ...] | None
    kind: str
    keepdims: bool = False
    node: Node | None = None

    def full_position(self) -> Position:
        """Return the position with the number of loop k on axis k."""
        return tuple(ZERO if is_one(d) else affine(k) for k, d in enumerate(self.shape))

    def row_position(self) -> Position:
        """Return the position of a reduced value."""
        axes = self.axes or ()
        full = self.full_position()
        if self.keepdims:
            return tuple(ZERO if k in axes else p for k, p in enumerate(full))
        return tuple(p for k, p in enumerate(full) if k not in axes)

    def position_of(self, shape: tuple[DimLike, ...]) -> Iterator[Position]:
        """Yield the positions at which a value of this shape can be a member."""
        full = self.full_position()
        if same(shape, self.shape) and self.kind in ("map", "reduce"):
            yield full
        if self.axes is not None:
            if same(shape, tuple(d for k, d in enumerate(self.shape) if k not in self.axes)):
                yield tuple(p for k, p in enumerate(full) if k not in self.axes)
            if self.kind == "reduce" and same(
                shape, tuple(1 if k in self.axes else d for k, d in enumerate(self.shape))
            ):
                yield tuple(ZERO if k in self.axes else p for k, p in enumerate(full))

    def loops(self) -> list[Loop]:
        """Return the loops of the group's nest."""
        axes = self.axes or ()
        small = self.kind == "window" and math.prod(self.shape[k] for k in axes) <= UNROLL
        return [Loop(d, "r" if k in axes else "p", small and k in axes) for k, d in enumerate(self.shape)]

    def input_positions(self, node: Node) -> list[Position]:
        """Return the positions at which a reducing node reads its inputs."""
        full = self.full_position()
        if self.kind == "reduce":
            return [full]
        if self.kind == "product":
            rank = len(node.type.shape)
            m, n, k = affine(rank - 2), affine(rank - 1), affine(rank)
            batch = full[: rank - 2]
            a, b = (i.type.shape for i in node.inputs)
            left = tuple(ZERO if is_one(d) else p for d, p in zip(a[:-2], batch[len(batch) - len(a) + 2 :]))
            right = tuple(ZERO if is_one(d) else p for d, p in zip(b[:-2], batch[len(batch) - len(b) + 2 :]))
            return [(*left, m, k), (*right, k, n)]
        if self.kind in CONVOLUTIONS:
            return list(conv_positions(node)[0])
        return [self.window_position(node)]

    def window_position(self, node: Node) -> Position:
        """Return the position at which a node with windows reads its input."""
        p = node.params
        rank = len(p["window"])
        full = [affine(k) for k in range(len(self.shape))]
        spatial = [
            full[2 + i].scale(s) + full[2 + rank + i].shift(-low)
            for i, (s, (low, _)) in enumerate(zip(p["strides"], p["padding"]))
        ]
        return (full[0], full[1], *spatial)

    def guards(self, position: Position, node: Node) -> tuple[Guard, ...]:
        """Return the guards of a padded input's spatial positions."""
        x = node.inputs[0].type.shape
        return tuple(
            (at, d) for at, d, ends in zip(position[2:], x[2:], node.params["padding"]) if any(map(may_exceed, ends))
        )

    def reduce(self, group: Members, node: Node) -> Reduce:
        """Return the reducing statement of a node in a group of this domain."""
        b, name = group.builder, node.op
        x = node.inputs[0]
        if name in _REDUCES:
            kind = _REDUCES[name]
            value = group.at(x, self.full_position())
            position = affine(node.params["axis"]) if kind in ("argmax", "argmin") else None
            return b.reduce(kind, value, node.dtype, position)
        if name in _INTEGER_SUMS:
            return self._integer_sum(group, node)
        if name == "matmul" or name in CONVOLUTIONS:
            left, right = self.input_positions(node)
            guards = conv_positions(node)[1] if name in CONVOLUTIONS else ()
            view = group.steps.view(x)
            first = b.load(Access(view.buffer, view.access(left).offset, guards))
            second = group.at(node.inputs[1], right)
            return b.reduce("sum", b.op("mul", node.dtype, first, second), node.dtype)
        at = self.window_position(node)
        guards = self.guards(at, node)
        kind = _WINDOWS[name]
        default = 0 if kind == "sum" else lowest(x.dtype)
        if guards or not reads_apart(node):
            view = group.steps.view(x)
            value = b.load(Access(view.buffer, view.access(at).offset, guards), default)
        else:
            value = group.at(x, at)
        if kind != "argmax":
            return b.reduce(kind, value, node.dtype)
        rank = len(node.params["window"])
        number, step = ZERO, 1
        for i in reversed(range(rank)):
            number = number + affine(2 + rank + i).scale(step)
            step *= node.params["window"][i]
        made = b.reduce("argmax", value, node.dtype, number)
        if guards:
            made.valid = b.guard(guards, D.bool_)
        return made

    def _integer_sum(self, group: Members, node: Node) -> Reduce:
        """Return the sum of products of steps, each less its zero point, in int32."""
        b, p = group.builder, node.params
        left, right = self.input_positions(node)
        guards = conv_positions(node)[1] if "padding" in p else ()
        view = group.steps.view(node.inputs[0])
        zeros = (p["zero"], 0) if "zero" in p else (p["a_zero"], p["b_zero"])
        # What lies in the padding is the zero point.
        values = [b.load(Access(view.buffer, view.access(left).offset, guards), zeros[0])]
        values.append(group.at(node.inputs[1], right))
        wide = [b.op("cast", node.dtype, v) for v in values]
        wide = [b.op("sub", node.dtype, v, b.const(z, node.dtype)) if z else v for v, z in zip(wide, zeros)]
        return b.reduce("sum", b.op("mul", node.dtype, *wide), node.dtype)


def _reduce_domain(node: Node) -> Domain:
    p = node.params
    if "axis" in p:
        return Domain(tuple(node.inputs[0].type.shape), (p["axis"],), "reduce")
    return Domain(tuple(node.inputs[0].type.shape), tuple(p["axes"]), "reduce", p["keepdims"])


def _window_domain(node: Node) -> Domain:
    shape, window = tuple(node.type.shape), tuple(node.params["window"])
    return Domain(shape + window, tuple(range(len(shape), len(shape) + len(window))), "window", node=node)


def _product_domain(node: Node) -> Domain:
    shape = tuple(node.type.shape)
    return Domain((*shape, node.inputs[0].type.shape[-1]), (len(shape),), "product", node=node)


def _conv_domain(node: Node) -> Domain:
    return Domain(conv_shape(node), conv_axes(node), node.op, node=node)


GROUP_RULES: dict[str, Callable[[Node], Domain]] = {
    **{name: _reduce_domain for name in _REDUCES},
    **{name: _window_domain for name in _WINDOWS},
    "matmul": _product_domain,
    **{name: _conv_domain for name in CONVOLUTIONS},
    "int_matmul": _product_domain,
}


# Members that read their inputs at other positions than their own.


def _pad(group: Members, node: Node, position: Position) -> Expr:
    x, value = node.inputs
    p = node.params
    at = tuple(q.shift(-low) for q, low in zip(position, p["low"]))
    guards = tuple((q, d) for q, d, *ends in zip(at, x.type.shape, p["low"], p["high"]) if any(map(may_exceed, ends)))
    view = group.steps.view(x)
    root = root_of(value)
    access = Access(view.buffer, view.access(at).offset, guards)
    if root.is_constant and root.value.size == 1:
        return group.builder.load(
            access, root.value.reshape(()).item() if root.dtype.name != "bfloat16" else float(root.value.reshape(()))
        )
    b = group.builder
    return b.op("select", node.dtype, b.guard(guards, D.bool_), b.load(access), group.at(value, ()))


def _take(group: Members, node: Node, position: Position) -> Expr:
    indices = node.inputs[1]
    axis, rank = node.params["axis"], indices.type.rank
    index = group.at(indices, position[axis : axis + rank])
    at = (*position[:axis], ZERO, *position[axis + rank :])
    return _load_at(group, node, at, [(index, axis)])


def _take_along(group: Members, node: Node, position: Position) -> Expr:
    indices = node.inputs[1]
    axis = node.params["axis"]
    at = tuple(ZERO if k == axis else p for k, p in enumerate(position))
    return _load_at(group, node, at, [(group.at(indices, position), axis)])


def _gather_nd(group: Members, node: Node, position: Position) -> Expr:
    indices = node.inputs[1]
    lead, depth = indices.type.rank - 1, indices.type.shape[-1]
    found = [(group.at(indices, (*position[:lead], Affine((), axis))), axis) for axis in range(depth)]
    return _load_at(group, node, (*([ZERO] * depth), *position[lead:]), found)


def _load_at(group: Members, node: Node, position: Position, found: list[tuple[Expr, int]]) -> Expr:
    """Return the first operand of a node at `position`, with the indices `found` on their axes."""
    x, indices = node.inputs
    shape, view = x.type.shape, group.steps.view(x)
    dynamic = tuple(
        [(index, view.strides[k], shape[k], group.steps.site(node, indices, k, shape[k])) for index, k in found]
    )
    return group.builder.load(Access(view.buffer, view.access(position).offset, (), dynamic))


FULL_RULES: dict[str, Callable[[Members, Node, Position], Expr]] = {
    "pad": _pad,
    "take": _take,
    "take_along": _take_along,
    "gather_nd": _gather_nd,
}


def is_reduction(node: Node) -> bool:
    """Return whether a node reduces its operand over axes."""
    return node.op in _REDUCES


def reads_apart(node: Node) -> bool:
    """Return whether a node reads its operand through windows, and each value at most once."""
    p = node.params
    return node.op in _WINDOWS and all(
        (s >= k or is_one(d)) and not any(map(may_exceed, ends))
        for d, k, s, ends in zip(node.type.shape[2:], p["window"], p["strides"], p["padding"])
    )


def has_full_rule(node: Node) -> bool:
    """Return whether a node is computed by a full rule; a pad with gaps is not."""
    name = node.op
    return name in FULL_RULES and not (name == "pad" and any(node.params["interior"]))


def is_fusible(node: Node) -> bool:
    """Return whether a node can be a member of a group.

    It can if it has a group rule, a full rule or code for each element.
    """
    return (
        has_full_rule(node)
        or node.op in GROUP_RULES
        or instruction_emitter.is_supported(node.op)
        or instruction_emitter.is_cast(node)
        or node.op == "checked"
        or is_rescaled(node)
    )
