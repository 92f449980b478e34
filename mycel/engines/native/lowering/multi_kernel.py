"""Nodes that become several kernels: joining, spreading out, and writing at positions that are data."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Optional

from mycel.base import dtype as D
from mycel.engines.native.kernels.nest import (
    ZERO,
    Access,
    Affine,
    Buffer,
    Builder,
    Expr,
    Loop,
    Nest,
    Site,
    Store,
    affine,
)
from mycel.engines.native.kernels.views import View, contiguous_strides, like_order, row_major
from mycel.engines.native.lowering.control_steps import call_step, cond_step, while_step
from mycel.engines.native.lowering.ordering_steps import search_step, sort_step, top_step
from mycel.engines.native.lowering.running import SCANS, scan_step
from mycel.engines.native.lowering.tape_steps import while_grad_step
from mycel.engines.native.lowering.windows import can_scatter_phases, scatter_phases
from mycel.ir.dims import Dim, DimLike, is_one, same
from mycel.ir.graph import Node

__all__ = ["SPECIAL"]


def _positions(shape: Any) -> tuple[Affine, ...]:
    return tuple(ZERO if is_one(d) else affine(k) for k, d in enumerate(shape))


def _target(node: Node, name: str) -> View:
    return row_major(Buffer(node.type.dtype, node.type.size, name), node.type.shape)


def may_be(amount: DimLike, sign: int) -> bool:
    """Whether an amount can be below (-1) or above (1) zero."""
    low, high = amount.bounds() if isinstance(amount, Dim) else (amount, amount)
    return low < 0 if sign < 0 else high > 0


def _fill(lowering: Any, target: View, value: Callable[[Builder], Expr]) -> None:
    b = Builder()
    store = Store(target.access(_positions(target.shape)), value(b), True)
    lowering.kernel(Nest([Loop(d, "p") for d in target.shape], [], [store], "fill"), target.strides)


def fill_zeros(lowering: Any, target: View) -> None:
    """Write zeros everywhere."""
    _fill(lowering, target, lambda b: b.const(0, target.buffer.dtype))


def _copy(lowering: Any, source: View, target: View, offset: DimLike = 0) -> None:
    b = Builder()
    at = _positions(source.shape)
    place = target.access(at)
    store = Store(Access(place.buffer, place.offset.shift(offset)), b.load(source.access(at)), True)
    lowering.kernel(Nest([Loop(d, "p") for d in source.shape], [], [store], "copy"), target.strides)


def _concat(lowering: Any, node: Node) -> None:
    target = _target(node, "concat")
    axis, start = node.params["axis"], 0
    for x in node.inputs:
        if x.type.size:
            _copy(lowering, lowering.view(x), target, start * target.strides[axis])
        start = start + x.type.shape[axis]
    lowering.bind(node, [target])


def _scalar(lowering: Any, value: Node) -> Callable[[Builder], Expr]:
    root = lowering.root(value)
    if root.is_constant and root.value.size == 1:
        number = root.value.reshape(())
        return lambda b: b.const(float(number) if root.dtype.is_floating else number.item(), root.dtype)
    view = lowering.view(value)
    return lambda b: b.load(view.access(()))


def _pad(lowering: Any, node: Node) -> None:
    """A pad with gaps: the value everywhere, then the elements at their places."""
    x, value = node.inputs
    p = node.params
    target = _target(node, "pad")
    _fill(lowering, target, _scalar(lowering, value))
    b = Builder()
    inside = _positions(x.type.shape)
    outside = tuple(q.scale(m + 1).shift(low) for q, m, low in zip(inside, p["interior"], p["low"]))
    guards = tuple(
        (q, d)
        for q, d, low, high in zip(outside, target.shape, p["low"], p["high"])
        if may_be(low, -1) or may_be(high, -1)
    )
    place = Access(target.buffer, target.access(outside).offset, guards)
    store = Store(place, b.load(lowering.view(x).access(inside)), True)
    lowering.kernel(Nest([Loop(d, "p") for d in x.type.shape], [], [store], "pad"), contiguous_strides(x.type.shape))
    lowering.bind(node, [target])


def _scatter(
    lowering: Any, node: Node, target: View, updates: Node, indices: list[tuple[Expr, DimLike, DimLike, Optional[Site]]], fixed: tuple[Affine, ...],
    sequential: set[int], mode: str, b: Builder, value: Optional[Expr] = None,
) -> None:  # fmt: skip
    shape = updates.type.shape
    place = Access(target.buffer, target.access(fixed).offset, (), tuple(indices))
    value = value if value is not None else b.load(lowering.view(updates).access(_positions(shape)))
    loops = [Loop(d, "s" if k in sequential else "p") for k, d in enumerate(shape)]
    # Lanes that would each write to another row are slower than one element after the other.
    lanes = [k for k, d in enumerate(shape) if k not in sequential and not is_one(d)]
    apart = not lanes or not is_one(place.offset.coefficient(lanes[-1]))
    nest = Nest(loops, [], [Store(place, value, True, mode)], node.op, apart)
    lowering.kernel(nest, contiguous_strides(shape))
    lowering.bind(node, [target])


def _take_add(lowering: Any, node: Node) -> None:
    ct, indices = node.inputs
    axis, rank = node.params["axis"], indices.type.rank
    target = _target(node, "take_add")
    _fill(lowering, target, lambda b: b.const(0, node.dtype))
    b = Builder()
    at = _positions(ct.type.shape)
    index = b.load(lowering.view(indices).access(at[axis : axis + rank]))
    fixed = (*at[:axis], ZERO, *at[axis + rank :])
    where = [(index, target.strides[axis], target.shape[axis], lowering.site(node, indices, axis, target.shape[axis]))]
    _scatter(lowering, node, target, ct, where, fixed, set(range(axis, axis + rank)), "add", b)


def _put_along(lowering: Any, node: Node) -> None:
    x, indices, updates = node.inputs
    axis, mode = node.params["axis"], node.params["mode"]
    if mode not in ("set", "add"):
        lowering.host(node, f"put_along with mode {mode!r}")
        return
    target = _target(node, "put_along")
    _copy(lowering, lowering.view(x), target)
    b = Builder()
    at = _positions(updates.type.shape)
    index = b.load(lowering.view(indices).access(at))
    fixed = tuple(ZERO if k == axis else p for k, p in enumerate(at))
    where = [(index, target.strides[axis], target.shape[axis], lowering.site(node, indices, axis, target.shape[axis]))]
    _scatter(lowering, node, target, updates, where, fixed, {axis}, mode, b)


def _scatter_nd(lowering: Any, node: Node) -> None:
    x, indices, updates = node.inputs
    mode = node.params["mode"]
    if mode not in ("set", "add"):
        lowering.host(node, f"scatter_nd with mode {mode!r}")
        return
    target = _target(node, "scatter_nd")
    _copy(lowering, lowering.view(x), target)
    b = Builder()
    lead, depth = indices.type.rank - 1, indices.type.shape[-1]
    at = _positions(updates.type.shape)
    view = lowering.view(indices)
    where = [
        (
            b.load(view.access((*at[:lead], Affine((), j)))),
            target.strides[j],
            target.shape[j],
            lowering.site(node, indices, j, target.shape[j]),
        )
        for j in range(depth)  # fmt: skip
    ]
    fixed = (*([ZERO] * depth), *at[lead:])
    _scatter(lowering, node, target, updates, where, fixed, set(range(lead)), mode, b)


def _window_scatter(lowering: Any, node: Node) -> None:
    """Each value to the place of its window that the index names; windows that do not overlap write each place once."""
    if can_scatter_phases(node):
        scatter_phases(lowering, node)
        return
    ct, index = node.inputs
    p = node.params
    window, strides, padding = p["window"], p["strides"], p["padding"]
    rank = len(window)
    apart = all(s >= k for s, k in zip(strides, window))
    view, marks = lowering.view(ct), lowering.view(index)
    like = (*view.strides, *([1] * rank))
    strides_out = like_order(view.strides, node.type.shape)
    target = View(Buffer(node.type.dtype, node.type.size, "window_scatter"), tuple(node.type.shape), strides_out)
    covered = apart and all(
        s == k and low == 0 and same(n * s, d)
        for s, k, (low, _), n, d in zip(strides, window, padding, ct.type.shape[2:], node.type.shape[2:])
    )
    if not covered:
        _fill(lowering, target, lambda b: b.const(0, node.dtype))
    b = Builder()
    full = [affine(k) for k in range(2 + 2 * rank)]
    outer = tuple(full[: 2 + rank])
    spatial = tuple(
        full[2 + i].scale(s) + full[2 + rank + i].shift(-low) for i, (s, (low, _)) in enumerate(zip(strides, padding))
    )
    at = (full[0], full[1], *spatial)
    number, step = ZERO, 1
    for i in reversed(range(rank)):
        number = number + full[2 + rank + i].scale(step)
        step *= window[i]
    chosen = b.op("eq", D.bool_, b.load(marks.access(outer)), b.index(number, index.dtype))
    value = b.op("select", node.dtype, chosen, b.load(view.access(outer)), b.const(0, node.dtype))
    guards = tuple((q, d) for q, d, (low, high) in zip(spatial, node.type.shape[2:], padding) if low > 0 or high > 0)
    store = Store(Access(target.buffer, target.access(at).offset, guards), value, True, "set" if apart else "add")
    kinds = ["p", "p", *["p" if apart else "s"] * rank]
    loops = [Loop(d, k) for d, k in zip(ct.type.shape, kinds)]
    small = math.prod(window) <= 32
    loops += [Loop(d, "s", small) for d in window]
    lowering.kernel(Nest(loops, [], [store], "window_scatter"), like)
    lowering.bind(node, [target])


SPECIAL: dict[str, Callable[[Any, Node], None]] = {
    "concat": _concat,
    "pad": _pad,
    "take_add": _take_add,
    "put_along": _put_along,
    "scatter_nd": _scatter_nd,
    "window_scatter": _window_scatter,
    "sort": sort_step,
    "top_k": top_step,
    "search_sorted": search_step,
    **dict.fromkeys(SCANS, scan_step),
    "cond": cond_step,
    "while_loop": while_step,
    "while_grad": while_grad_step,
    "recursion": call_step,
    "recur": call_step,
}
