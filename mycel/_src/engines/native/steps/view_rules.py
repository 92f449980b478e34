"""Lowering rules of views and of index sequences, which are read in place or computed.

A view's elements are its input's at other positions. Neither needs memory of its own to be read.
"""

from __future__ import annotations

from mycel._src.compiler.ir.dims import DimLike, is_one, same
from mycel._src.compiler.ir.graph import Node
from mycel._src.engines.native.kernels.loop_nest import ZERO, Affine, affine
from mycel._src.engines.native.kernels.strided_view import View

__all__ = [
    "NUMBERS",
    "VIEWS",
    "Position",
    "broadcast_position",
    "index_of",
    "is_index",
    "is_view",
    "resolve",
    "resolves",
    "root_of",
    "same_place",
    "through_view",
    "view_position",
]

# One number for each axis of a value, affine in the numbers of loops.
Position = tuple[Affine, ...]

VIEWS = frozenset({"reshape", "transpose", "broadcast_to", "slice", "reverse", "identity", "stop_gradient"})
# What is read without memory: numbers that code has, or can compute from a position.
NUMBERS = frozenset(("constant", "iota", "size"))


def is_view(node: Node) -> bool:
    """Return whether a node's elements are those of its input, at other positions."""
    return node.op in VIEWS


def root_of(node: Node) -> Node:
    """Return the node whose value `node` is a view of."""
    while is_view(node):
        node = node.inputs[0]
    return node


def view_position(node: Node, position: Position) -> Position | None:
    """Return the position of a view's input that is read for the view's `position`.

    Returns None if that is not an affine position.
    """
    name, x, p = node.op, node.inputs[0].type, node.params
    if name in ("identity", "stop_gradient"):
        return position
    if name == "transpose":
        result = [ZERO] * x.rank
        for at, axis in zip(position, p["permutation"]):
            result[axis] = at
        return tuple(result)
    if name == "broadcast_to":
        return broadcast_position(node.inputs[0], position)
    if name == "slice":
        return tuple(at.scale(s).shift(a) for at, a, s in zip(position, p["starts"], p["steps"]))
    if name == "reverse":
        return tuple(
            at.scale(-1).shift(d - 1) if k in p["axes"] else at for k, (d, at) in enumerate(zip(x.shape, position))
        )
    return _unsplit(x.shape, node.type.shape, position)


def _unsplit(shape: tuple[DimLike, ...], parts: tuple[DimLike, ...], position: Position) -> Position | None:
    """Return a position in `parts` as one in `shape`.

    Each axis of `shape` must be one or several consecutive parts; returns None for other shapes.
    """
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
    """Return the place of a view's value, given that of its input.

    This is not for `reshape`, which may need a copy.
    """
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


def broadcast_position(node: Node, position: Position) -> Position:
    """Return the position of an operand that is read for the result's `position`."""
    shape = node.type.shape
    behind = position[len(position) - len(shape) :]
    return tuple(ZERO if is_one(d) else p for d, p in zip(shape, behind))


def resolve(node: Node, position: Position) -> Position | None:
    """Return the position at which the root of a chain of views is read.

    Returns None where a view has to be in memory.
    """
    at: Position | None = position
    while is_view(node) and at is not None:
        at = view_position(node, at)
        node = node.inputs[0]
    return at


def resolves(node: Node) -> bool:
    """Return whether a chain of views can be read at all of its positions."""
    return not is_view(node) or resolve(node, tuple([affine(k) for k in range(node.type.rank)])) is not None


def same_place(node: Node, a: Position, b: Position) -> bool:
    """Return whether two positions of a value are the same element."""
    return all(p == q or is_one(d) for p, q, d in zip(a, b, node.type.shape))


def is_index(node: Node) -> bool:
    """Return whether a node's elements are numbers computed from their positions."""
    return node.op in ("iota", "size")


def index_of(node: Node, position: Position) -> Affine:
    """Return the element of an index sequence, or the size, at a position."""
    if node.op == "size":
        return Affine((), node.params["dim"])
    axis: int = node.params["axis"]
    return position[axis]
