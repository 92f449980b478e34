"""Simplification rules of data movement: reshape, transpose, slice, broadcast and the like.

Movements that change nothing are removed, two in a row become one, and uniform values are only
broadcast.
"""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.ir.dims import DimLike, InconclusiveDimension, product, same
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import CONSTANT
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.transforms.optimisation.rewrite_rules import Context, rule, runs_of, uniform

__all__: list[str] = []

THROUGH = 16


def _scalar(node: Node) -> Node | None:
    """Return the scalar that a tensor repeats everywhere; None for other tensors."""
    if node.prim is S.BROADCAST_TO and node.inputs[0].shape == ():
        return node.inputs[0]
    return None


def _are_ints(*groups: Any) -> bool:
    return all(type(v) is int for group in groups for v in group)


@rule(S.RESHAPE, S.TRANSPOSE, S.SLICE, S.reverse)
def _uniform(node: Node, context: Context) -> Node | None:
    scalar = _scalar(node.inputs[0])
    return None if scalar is None else context.broadcast(scalar, node.shape)


@rule(S.RESHAPE)
def _reshape(node: Node, context: Context) -> Node | None:
    (x,) = node.inputs
    if x.shape == node.shape:
        return x
    return S.RESHAPE.node(x.inputs[0], shape=node.shape) if x.prim is S.RESHAPE else None


@rule(S.RESHAPE)
def _joined_axes(node: Node, context: Context) -> Node | None:
    """Join axes before element-wise work rather than after it, where all operands allow that.

    Joining the axes of a value in memory costs nothing; where only parts of them are read, or in
    reverse order, it would take a copy.
    """
    (x,) = node.inputs
    if not x.prim or not x.prim.elementwise or node.type.rank >= x.type.rank or not context.is_single(x):
        return None
    runs = runs_of(x.shape, node.shape)
    if runs is None or any(len(new) > 1 for _, new in runs) or all(len(old) == 1 for old, _ in runs):
        return None
    inner = {a for old, _ in runs for a in old[1:]}
    if _reads_parts(x, inner | {old[0] for old, _ in runs if len(old) > 1}, inner, context, THROUGH):
        return None
    operands = []
    for i in x.inputs:
        padded = (1,) * (x.type.rank - i.type.rank) + i.shape
        shape: list[DimLike] = [1] * node.type.rank
        for old, new in runs:
            whole = [padded[a] == x.shape[a] for a in old]
            if all(whole):
                shape[new[0]] = node.shape[new[0]]
            elif any(w and d != 1 for w, d in zip(whole, [padded[a] for a in old])):
                return None
        operands.append(i if not i.type.rank else context.reshape(i, tuple(shape)))
    return x.prim.node(*operands, **x.params)


def _reads_parts(x: Node, joined: set[int], inner: set[int], context: Context, depth: int) -> bool:
    """Return whether element-wise work reads in reverse along axes to be joined, or parts of the
    inner ones.
    """
    for i in x.inputs:
        if i.shape != x.shape:
            continue
        if i.prim is S.reverse and not joined.isdisjoint(i.params["axes"]):
            return True
        if i.prim is S.SLICE and any(i.shape[a] != i.inputs[0].shape[a] for a in inner):
            return True
        if i.prim and i.prim.elementwise and depth and context.is_single(i):
            if _reads_parts(i, joined, inner, context, depth - 1):
                return True
    return False


@rule(S.TRANSPOSE)
def _transpose(node: Node, context: Context) -> Node | None:
    (x,) = node.inputs
    order = node.params["permutation"]
    if order == tuple(range(len(order))):
        return x
    if x.prim is S.TRANSPOSE:
        inner = x.params["permutation"]
        return S.TRANSPOSE.node(x.inputs[0], permutation=tuple([inner[k] for k in order]))
    if x.prim is matmul and context.is_single(x) and order == (*range(len(order) - 2), len(order) - 1, len(order) - 2):
        a, b = x.inputs
        return matmul.node(swapped(b, context), swapped(a, context))
    return _through(x, order, context)


def swapped(x: Node, context: Context) -> Node:
    """Return `x` with its last two axes exchanged."""
    rank = x.type.rank
    return context.make(S.TRANSPOSE, x, permutation=(*range(rank - 2), rank - 1, rank - 2))


def _through(x: Node, order: tuple[int, ...], context: Context) -> Node | None:
    """Move a transpose below element-wise work if that undoes all transposes at its leaves.

    Only a few nodes are tried.
    """
    left = THROUGH

    def moved(node: Node) -> Node | None:
        nonlocal left
        if node.shape == ():
            return node
        if node.prim is S.TRANSPOSE:
            inner = node.params["permutation"]
            return node.inputs[0] if tuple([inner[k] for k in order]) == tuple(range(len(order))) else None
        left -= 1
        if left < 0 or node.prim is None or not node.prim.elementwise or not context.is_single(node):
            return None
        operands: list[Node] = []
        for i in node.inputs:
            operand = moved(i)
            if operand is None:
                return None
            operands.append(operand)
        return node.prim.node(*operands, **node.params)

    return moved(x)


@rule(matmul)
def _rows_of_all(node: Node, context: Context) -> Node | None:
    """Multiply a row, or a column, of each example by one matrix in a single product.

    Separate products would each read the matrix again.
    """
    a, b = node.inputs
    if b.type.rank == 2 and a.type.rank > 2 and a.shape[-2] == 1:
        rows = context.reshape(a, (product(a.shape[:-1]), a.shape[-1]))
        return context.reshape(context.make(matmul, rows, b), node.shape)
    if a.type.rank == 2 and b.type.rank > 2 and b.shape[-1] == 1:
        rows = context.reshape(b, (product(b.shape[:-2]), b.shape[-2]))
        return context.reshape(context.make(matmul, rows, swapped(a, context)), node.shape)
    return None


@rule(S.BROADCAST_TO)
def _broadcast(node: Node, context: Context) -> Node | None:
    (x,) = node.inputs
    if x.shape == node.shape:
        return x
    if x.prim is S.BROADCAST_TO:
        return S.BROADCAST_TO.node(x.inputs[0], shape=node.shape)
    if x.prim is S.RESHAPE:
        source = x.inputs[0]
        extra = x.type.rank - source.type.rank
        if extra > 0 and x.shape == (1,) * extra + source.shape:
            return S.BROADCAST_TO.node(source, shape=node.shape)
    if x.prim is CONSTANT and x.type.rank and x.value.size == 1:
        return S.BROADCAST_TO.node(context.reshape(x, ()), shape=node.shape)
    return None


@rule(S.SLICE)
def _slice(node: Node, context: Context) -> Node | None:
    (x,) = node.inputs
    starts, stops, steps = node.params["starts"], node.params["stops"], node.params["steps"]
    if stops == x.shape and all(s == 1 for s in steps) and all(type(a) is int and a == 0 for a in starts):
        return x
    if not _are_ints(starts, stops, node.shape):
        return None
    if x.prim is S.SLICE and _are_ints(x.params["starts"]):
        inner, by = x.params["starts"], x.params["steps"]
        first = tuple([a + b * s for a, b, s in zip(inner, starts, by)])
        step = tuple([s * t for s, t in zip(by, steps)])
        last = tuple([a + (n - 1) * s + 1 if n else a for a, n, s in zip(first, node.shape, step)])
        if all(a <= d for a, d in zip(first, x.inputs[0].shape) if type(d) is int):
            return S.SLICE.node(x.inputs[0], starts=first, stops=last, steps=step)
    if x.prim is S.PAD:
        return _slice_of_pad(node, x)
    if x.prim is S.CONCAT:
        return _slice_of_concat(node, x, context)
    return None


def _slice_of_pad(node: Node, x: Node) -> Node | None:
    """Return a slice of a padded tensor as a slice of the tensor, if it has no padding in it."""
    source, low = x.inputs[0], x.params["low"]
    starts, stops, steps = node.params["starts"], node.params["stops"], node.params["steps"]
    if any(x.params["interior"]) or not _are_ints(low, source.shape):
        return None
    first = tuple([a - lo for a, lo in zip(starts, low)])
    last = tuple([b - lo for b, lo in zip(stops, low)])
    if any(a < 0 or b > d for a, b, d in zip(first, last, source.shape)):
        return None
    return S.SLICE.node(source, starts=first, stops=last, steps=steps)


def _slice_of_concat(node: Node, x: Node, context: Context) -> Node | None:
    """Return a slice of joined tensors as a slice of one of them, if it lies in one."""
    axis = x.params["axis"]
    start, stop = node.params["starts"][axis], node.params["stops"][axis]
    position = 0
    for part in x.inputs:
        size = part.shape[axis]
        if type(size) is not int:
            return None
        if position <= start and stop <= position + size and start < stop:
            starts, stops = list(node.params["starts"]), list(node.params["stops"])
            starts[axis], stops[axis] = start - position, stop - position
            return S.SLICE.node(part, starts=tuple(starts), stops=tuple(stops), steps=node.params["steps"])
        position += size
    return None


@rule(I.take, I.take_add)
def _all_in_order(node: Node, context: Context) -> Node | None:
    """Remove reading all rows in their order, as windows do that are as long as the axis, and its
    transpose.
    """
    x, indices = node.inputs
    axis = node.params["axis"]
    if indices.prim is not S.iota or indices.type.rank != 1:
        return None
    size = node.params["size"] if node.prim is I.take_add else x.shape[axis]
    return x if x.shape == node.shape and same(size, indices.shape[0]) else None


@rule(S.PAD)
def _pad(node: Node, context: Context) -> Node | None:
    x, value = node.inputs
    low, high, interior = node.params["low"], node.params["high"], node.params["interior"]
    if any(interior) or not _are_ints(low, high):
        return None
    if not any(low) and not any(high):
        return x
    if _are_ints(x.shape) and all(v <= 0 for v in (*low, *high)):
        starts = tuple([-v for v in low])
        stops = tuple([d + v for d, v in zip(x.shape, high)])
        if all(a <= b for a, b in zip(starts, stops)):
            return S.SLICE.node(x, starts=starts, stops=stops, steps=(1,) * x.type.rank)
    inner, around = uniform(x), uniform(value)
    if inner is not None and around is not None and inner.tobytes() == around.tobytes():
        return context.broadcast(value, node.shape)
    return None


@rule(E.add)
def _neighbours(node: Node, context: Context) -> Node | None:
    """Join tensors that are added up at places beside each other, among zeros.

    So the cotangents of the times of a sequence are written once, and not added up as a whole.
    """
    x, y = node.inputs
    axis = _padded_axis(x)
    if axis is None or axis != _padded_axis(y) or x.shape != y.shape:
        return None
    if not (context.is_single(x) and context.is_single(y)):
        return None
    if x.params["low"][axis] > y.params["low"][axis]:
        x, y = y, x
    if x.params["low"][axis] + x.inputs[0].shape[axis] != y.params["low"][axis]:
        return None
    parts: list[Node] = []
    for part in (x.inputs[0], y.inputs[0]):
        whole = part.prim is S.CONCAT and part.params["axis"] == axis and context.is_single(part)
        parts += part.inputs if whole else (part,)
    joined = S.CONCAT.node(*parts, axis=axis)
    return S.PAD.node(joined, x.inputs[1], **{**x.params, "high": y.params["high"]})


def _padded_axis(x: Node) -> int | None:
    """Return the one axis along which a node pads by zeros; None for any other node."""
    if x.prim is not S.PAD or uniform(x.inputs[1]) != 0 or any(x.params["interior"]):
        return None
    low, high = x.params["low"], x.params["high"]
    if not _are_ints(low, high, x.shape) or any(v < 0 for v in (*low, *high)):
        return None
    axes = [a for a, ends in enumerate(zip(low, high)) if any(ends)]
    return axes[0] if len(axes) == 1 else None


@rule(S.CONCAT)
def _concat(node: Node, context: Context) -> Node | None:
    axis = node.params["axis"]
    if len(node.inputs) == 1:
        return node.inputs[0]
    kept = [i for i in node.inputs if not (type(i.shape[axis]) is int and i.shape[axis] == 0)] or [node.inputs[0]]
    return S.CONCAT.node(*kept, axis=axis) if len(kept) < len(node.inputs) else None


@rule(S.reverse)
def _reverse(node: Node, context: Context) -> Node | None:
    (x,) = node.inputs
    axes = node.params["axes"]
    turned = tuple([a for a in axes if not _is_one(x.shape[a])])
    if not turned:
        return x
    if x.prim is S.reverse:
        inner = x.params["axes"]
        both = tuple(sorted(set(inner) ^ set(axes)))
        return S.reverse.node(x.inputs[0], axes=both)
    return S.reverse.node(x, axes=turned) if turned != axes else None


def _is_one(size: Any) -> bool:
    try:
        return bool(size <= 1)
    except InconclusiveDimension:
        return False
