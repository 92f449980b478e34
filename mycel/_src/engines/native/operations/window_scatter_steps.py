"""Lowering of `window_scatter` (as the gradient of max-pooling), as a gather into each element.

With J = j + low, a place j of the input lies in window w at place k of the window where J = w *
stride + k. So all places with J = q * stride + r for one residue r ("a phase") meet the same places
k = r + m * stride of the windows q - m. A kernel over (N, C, q) writes every phase: each element
once, complete, in an order independent of the data, and by rows that threads share. Positions in no
window are zero. Where windows have very many places, each value is written to its place instead.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from mycel._src.compiler.ir.dims import DimLike, is_zero, same
from mycel._src.compiler.ir.graph import Node
from mycel._src.engines.native.kernels.loop_nest import (
    ZERO,
    Access,
    Affine,
    Buffer,
    Builder,
    Expr,
    Loop,
    Nest,
    Store,
    affine,
)
from mycel._src.engines.native.kernels.strided_view import View, like_order
from mycel._src.engines.native.steps.fill_and_copy import fill_zeros
from mycel._src.engines.native.steps.step_builder import StepBuilder
from mycel._src.foundation import dtype as D

__all__ = ["window_scatter_step"]

# Larger windows would make kernels that take long to compile.
MOST_PLACES = 64


def window_scatter_step(steps: StepBuilder, node: Node) -> None:
    """Add the kernels that write each value to the place of its window that the index names.

    Where windows do not overlap, each place is written once.
    """
    if _has_few_places(node):
        _scatter_phases(steps, node)
        return
    ct, index = node.inputs
    p = node.params
    window, strides, padding = p["window"], p["strides"], p["padding"]
    rank = len(window)
    apart = all(s >= k for s, k in zip(strides, window))
    view, marks = steps.view(ct), steps.view(index)
    like = (*view.strides, *([1] * rank))
    strides_out = like_order(view.strides, node.type.shape)
    target = View(Buffer(node.type.dtype, node.type.size, "window_scatter"), tuple(node.type.shape), strides_out)
    covered = apart and all(
        s == k and low == 0 and same(n * s, d)
        for s, k, (low, _), n, d in zip(strides, window, padding, ct.type.shape[2:], node.type.shape[2:])
    )
    if not covered:
        fill_zeros(steps, target)
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
    steps.kernel(Nest(loops, [], [store], "window_scatter"), like)
    steps.bind(node, [target])


def _has_few_places(node: Node) -> bool:
    """Return whether a `window_scatter` has few enough places and phases for one kernel."""
    p = node.params
    return bool(math.prod(p["window"]) <= MOST_PLACES and math.prod(p["strides"]) <= MOST_PLACES)


def _scatter_phases(steps: StepBuilder, node: Node) -> None:
    """Add the kernel of a `window_scatter` in which each place reads from its windows."""
    ct, index = node.inputs
    p = node.params
    window, strides, padding = p["window"], p["strides"], p["padding"]
    rank, shape = len(window), tuple(node.type.shape)
    view, marks = steps.view(ct), steps.view(index)
    order = like_order(view.strides, shape)
    target = View(Buffer(node.type.dtype, node.type.size, "window_scatter"), shape, order)
    counts = [-(-(d + low) // s) for d, s, (low, _) in zip(shape[2:], strides, padding)]
    inside = [
        is_zero(low) and same(n * s, d) for d, s, n, (low, _) in zip(shape[2:], strides, counts, padding)
    ]  # whether every phase of every q is a place of the input
    wide = D.float32 if node.dtype.is_floating and node.dtype.itemsize == 2 else node.dtype
    b = Builder()
    places = tuple(affine(k) for k in range(2 + rank))
    zero = b.const(0, wide)
    stores = []
    for phase in itertools.product(*map(range, strides)):
        total: Expr = zero
        for behind in itertools.product(
            *(range((k - r + s - 1) // s) if r < k else () for k, r, s in zip(window, phase, strides))
        ):
            at, guards = _window_at(places, behind, ct.type.shape, counts)
            number = 0
            for k, r, m, s in zip(window, phase, behind, strides):
                number = number * k + r + m * s
            mark = b.load(Access(marks.buffer, marks.access(at).offset, guards), -1)
            value = b.load(Access(view.buffer, view.access(at).offset, guards))
            value = value if wide is node.dtype else b.op("cast", wide, value)
            chosen = b.op("eq", D.bool_, mark, b.const(number, index.dtype))
            part = b.op("select", wide, chosen, value, zero)
            total = part if total is zero else b.op("add", wide, total, part)
        spot = tuple(q.scale(s).shift(r).shift(-low) for q, s, r, (low, _) in zip(places[2:], strides, phase, padding))
        limits = tuple((q, d) for q, d, fits in zip(spot, shape[2:], inside) if not fits)
        total = total if wide is node.dtype else b.op("cast", node.dtype, total)
        stores.append(Store(Access(target.buffer, target.access((*places[:2], *spot)).offset, limits), total, True))
    loops = [Loop(d, "p") for d in (*shape[:2], *counts)]
    steps.kernel(Nest(loops, [], stores, "window_scatter"), view.strides)
    steps.bind(node, [target])


def _window_at(
    places: tuple[Affine, ...], behind: tuple[int, ...], windows: Sequence[DimLike], counts: Sequence[DimLike]
) -> tuple[tuple[Affine, ...], tuple[tuple[Affine, DimLike], ...]]:
    """Return the window `behind` places before each q, and the guards that it exists."""
    at = list(places[:2])
    guards = []
    for q, m, n, count in zip(places[2:], behind, windows[2:], counts):
        here = q.shift(-m)
        at.append(here)
        if m or not same(count, n):
            guards.append((here, n))
    return tuple(at), tuple(guards)
