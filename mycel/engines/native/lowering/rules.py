"""How primitives become parts of nests: views, group rules (what reduces), and full rules (what reads elsewhere).

A `Domain` is the space of positions of a group, loop k along its axis k. For kind "reduce" it is the shape of what is reduced, for "window" the
output's shape followed by the window's, for "product" the output's shape followed by the contracted axis, for "map" just a shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Optional

from mycel.base import dtype as D
from mycel.engines.native.kernels.nest import ZERO, Access, Affine, Expr, Loop, Reduce, affine
from mycel.engines.native.kernels.views import View
from mycel.ir.dims import Dim, DimLike, is_one, same
from mycel.ir.graph import Node
from mycel.prims.window import lowest

__all__ = ["FULL_RULES", "GROUP_RULES", "Domain", "is_view", "reduce_kind", "through_view", "view_position"]

VIEWS = frozenset({"reshape", "transpose", "broadcast_to", "slice", "reverse", "identity", "stop_gradient"})
_REDUCES = {
    "reduce_sum": "sum", "reduce_prod": "prod", "reduce_max": "max", "reduce_min": "min", "reduce_any": "any", "reduce_all": "all",
    "argmax": "argmax", "argmin": "argmin",
}  # fmt: skip
_WINDOWS = {"window_max": "max", "window_sum": "sum", "window_argmax": "argmax"}
UNROLL = 32
Position = tuple[Affine, ...]


def _may_exceed(amount: DimLike) -> bool:
    """Whether an amount of padding can be more than none."""
    return (amount.bounds()[1] if isinstance(amount, Dim) else amount) > 0


def is_view(node: Node) -> bool:
    """Whether a node's value is its input's, found at other positions."""
    return node.op in VIEWS


def reduce_kind(name: str) -> Optional[str]:
    """How a reducing primitive joins values."""
    return _REDUCES.get(name)


def view_position(node: Node, position: Position) -> Optional[Position]:
    """Where a view's input is read when the view is read at `position`; None if that is no affine position."""
    name, x, p = node.op, node.inputs[0].type, node.params
    if name in ("identity", "stop_gradient"):
        return position
    if name == "transpose":
        result = [ZERO] * x.rank
        for at, axis in zip(position, p["permutation"]):
            result[axis] = at
        return tuple(result)
    if name == "broadcast_to":
        behind = position[len(position) - x.rank :]
        return tuple(ZERO if is_one(d) else at for d, at in zip(x.shape, behind))
    if name == "slice":
        return tuple(at.scale(s).shift(a) for at, a, s in zip(position, p["starts"], p["steps"]))
    if name == "reverse":
        return tuple(
            at.scale(-1).shift(d - 1) if k in p["axes"] else at for k, (d, at) in enumerate(zip(x.shape, position))
        )
    return _unsplit(x.shape, node.type.shape, position)


def _unsplit(shape: tuple[DimLike, ...], parts: tuple[DimLike, ...], position: Position) -> Optional[Position]:
    """A position among `parts` as one in `shape`, of which each axis is one part or several that follow each other; None for other shapes."""
    rest = [(d, at) for d, at in zip(parts, position) if not is_one(d)]
    result = []
    for d in shape:
        place, size = ZERO, 1
        while not same(size, d):
            if not rest or (isinstance(size, int) and isinstance(d, int) and size > d):
                return None
            part, at = rest.pop(0)
            place, size = place.scale(part) + at, size * part
        result.append(place)
    return None if rest else tuple(result)


def through_view(node: Node, view: View) -> View:
    """Where a view's value lies, given where its input lies."""
    name, p = node.op, node.params
    shape = tuple(node.type.shape)
    if name in ("identity", "stop_gradient"):
        return view
    if name == "transpose":
        return View(view.buffer, shape, tuple(view.strides[a] for a in p["permutation"]), view.offset)
    if name == "broadcast_to":
        missing = len(shape) - len(view.shape)
        strides = [0] * missing + [
            0 if is_one(d) and not is_one(n) else s for d, s, n in zip(view.shape, view.strides, shape[missing:])
        ]
        return View(view.buffer, shape, tuple(strides), view.offset)
    if name == "slice":
        offset = view.offset + sum(a * s for a, s in zip(p["starts"], view.strides))
        return View(view.buffer, shape, tuple(s * t for s, t in zip(view.strides, p["steps"])), offset)
    turned = [(-s if k in p["axes"] else s) for k, s in enumerate(view.strides)]
    offset = view.offset + sum((d - 1) * s for k, (d, s) in enumerate(zip(view.shape, view.strides)) if k in p["axes"])
    return View(view.buffer, shape, tuple(turned), offset)


@dataclass
class Domain:
    """The positions of a group; `axes` reduce (None: not yet decided)."""

    shape: tuple[DimLike, ...]
    axes: Optional[tuple[int, ...]]
    kind: str
    keepdims: bool = False
    node: Optional[Node] = None

    def full_position(self) -> Position:
        return tuple(ZERO if is_one(d) else affine(k) for k, d in enumerate(self.shape))

    def row_position(self) -> Position:
        """The position of a reduced value."""
        axes = self.axes or ()
        full = self.full_position()
        if self.keepdims:
            return tuple(ZERO if k in axes else p for k, p in enumerate(full))
        return tuple(p for k, p in enumerate(full) if k not in axes)

    def position_of(self, shape: tuple[DimLike, ...]) -> Iterator[Position]:
        """The positions at which a value of this shape can be a member."""
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
        axes = self.axes or ()
        small = self.kind == "window" and math.prod(self.shape[k] for k in axes) <= UNROLL
        return [Loop(d, "r" if k in axes else "p", small and k in axes) for k, d in enumerate(self.shape)]

    def input_positions(self, node: Node) -> list[Optional[Position]]:
        """Where a reducing node reads its inputs."""
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
        if self.kind == "conv":
            return list(self._conv_positions(node))
        return [self.window_position(node)]

    def window_position(self, node: Node) -> Position:
        p = node.params
        rank = len(p["window"])
        full = [affine(k) for k in range(len(self.shape))]
        spatial = [
            full[2 + i].scale(s) + full[2 + rank + i].shift(-low)
            for i, (s, (low, _)) in enumerate(zip(p["strides"], p["padding"]))
        ]
        return (full[0], full[1], *spatial)

    def _conv_positions(self, node: Node) -> tuple[Position, Position]:
        p = node.params
        rank = len(p["strides"])
        full = [affine(k) for k in range(len(self.shape))]
        n, o, c = full[0], full[1], full[2 + rank]
        taps = full[3 + rank :]
        spatial = [
            full[2 + i].scale(s) + taps[i].scale(d).shift(-low)
            for i, (s, d, (low, _)) in enumerate(zip(p["strides"], p["dilation"], p["padding"]))
        ]
        return (n, c, *spatial), (o, c, *taps)

    def guards(self, position: Position, node: Node) -> tuple[tuple[Affine, int], ...]:
        """The checks of a padded input's spatial positions."""
        x = node.inputs[0].type.shape
        return tuple(
            (at, d) for at, d, ends in zip(position[2:], x[2:], node.params["padding"]) if any(map(_may_exceed, ends))
        )

    def reduce(self, group: Any, node: Node) -> Reduce:
        """The reducing statement of a node in a group of this domain."""
        b, name = group.builder, node.op
        x = node.inputs[0]
        if name in _REDUCES:
            kind = _REDUCES[name]
            value = group.at(x, self.full_position())
            position = affine(node.params["axis"]) if kind in ("argmax", "argmin") else None
            return b.reduce(kind, value, node.dtype, position)  # type: ignore[no-any-return]
        if name == "matmul" or name == "conv":
            left, right = self.input_positions(node)
            guards = self.guards(left, node) if name == "conv" else ()  # type: ignore[arg-type]
            view = group.lowering.view(x)
            first = b.load(Access(view.buffer, view.access(left).offset, guards))
            second = group.at(node.inputs[1], right)
            return b.reduce("sum", b.op("mul", node.dtype, first, second), node.dtype)  # type: ignore[no-any-return]
        at = self.window_position(node)
        guards = self.guards(at, node)
        kind = _WINDOWS[name]
        default = 0 if kind == "sum" else lowest(x.dtype)
        view = group.lowering.view(x)
        value = b.load(Access(view.buffer, view.access(at).offset, guards), default)
        if kind != "argmax":
            return b.reduce(kind, value, node.dtype)  # type: ignore[no-any-return]
        rank = len(node.params["window"])
        number, step = ZERO, 1
        for i in reversed(range(rank)):
            number = number + affine(2 + rank + i).scale(step)
            step *= node.params["window"][i]
        made = b.reduce("argmax", value, node.dtype, number)
        if guards:
            made.valid = b.guard(guards, D.bool_)
        return made  # type: ignore[no-any-return]


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
    shape, w = tuple(node.type.shape), tuple(node.inputs[1].type.shape)
    return Domain(shape + w[1:], tuple(range(len(shape), len(shape) + len(w) - 1)), "conv", node=node)


GROUP_RULES: dict[str, Callable[[Node], Domain]] = {
    **{name: _reduce_domain for name in _REDUCES},
    **{name: _window_domain for name in _WINDOWS},
    "matmul": _product_domain,
    "conv": _conv_domain,
}


# Members that read their inputs at other positions than their own.


def _pad(group: Any, node: Node, position: Position) -> Expr:
    x, value = node.inputs
    p = node.params
    at = tuple(q.shift(-low) for q, low in zip(position, p["low"]))
    guards = tuple((q, d) for q, d, *ends in zip(at, x.type.shape, p["low"], p["high"]) if any(map(_may_exceed, ends)))
    view = group.lowering.view(x)
    root = group.lowering.root(value)
    access = Access(view.buffer, view.access(at).offset, guards)
    if root.is_constant and root.value.size == 1:
        return group.builder.load(  # type: ignore[no-any-return]
            access, root.value.reshape(()).item() if root.dtype.name != "bfloat16" else float(root.value.reshape(()))
        )
    b = group.builder
    return b.op("select", node.dtype, b.guard(guards, D.bool_), b.load(access), group.at(value, ()))  # type: ignore[no-any-return]


def _take(group: Any, node: Node, position: Position) -> Expr:
    x, indices = node.inputs
    axis, rank = node.params["axis"], indices.type.rank
    index = group.at(indices, position[axis : axis + rank])
    view = group.lowering.view(x)
    at = (*position[:axis], ZERO, *position[axis + rank :])
    where = (
        index,
        view.strides[axis],
        x.type.shape[axis],
        group.lowering.site(node, indices, axis, x.type.shape[axis]),
    )
    access = Access(view.buffer, view.access(at).offset, (), (where,))
    return group.builder.load(access)  # type: ignore[no-any-return]


def _take_along(group: Any, node: Node, position: Position) -> Expr:
    x, indices = node.inputs
    axis = node.params["axis"]
    index = group.at(indices, position)
    view = group.lowering.view(x)
    at = tuple(ZERO if k == axis else p for k, p in enumerate(position))
    where = (
        index,
        view.strides[axis],
        x.type.shape[axis],
        group.lowering.site(node, indices, axis, x.type.shape[axis]),
    )
    access = Access(view.buffer, view.access(at).offset, (), (where,))
    return group.builder.load(access)  # type: ignore[no-any-return]


def _gather_nd(group: Any, node: Node, position: Position) -> Expr:
    x, indices = node.inputs
    lead, depth = indices.type.rank - 1, indices.type.shape[-1]
    view = group.lowering.view(x)
    dynamic = tuple(
        (
            group.at(indices, (*position[:lead], Affine((), j))),
            view.strides[j],
            x.type.shape[j],
            group.lowering.site(node, indices, j, x.type.shape[j]),
        )
        for j in range(depth)  # fmt: skip
    )
    at = (*([ZERO] * depth), *position[lead:])
    return group.builder.load(Access(view.buffer, view.access(at).offset, (), dynamic))  # type: ignore[no-any-return]


FULL_RULES: dict[str, Callable[[Any, Node, Position], Expr]] = {
    "pad": _pad,
    "take": _take,
    "take_along": _take_along,
    "gather_nd": _gather_nd,
}


def has_full_rule(node: Node) -> bool:
    """Whether a node is computed by a full rule; a pad with gaps is not."""
    name = node.op
    return name in FULL_RULES and not (name == "pad" and any(node.params["interior"]))
