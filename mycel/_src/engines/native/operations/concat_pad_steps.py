"""Lowering of concatenation, and of padding with gaps, to copies."""

from __future__ import annotations

from collections.abc import Callable

from mycel._src.compiler.ir.dims import Dim, DimLike, same
from mycel._src.compiler.ir.graph import Node
from mycel._src.engines.native.kernels.loop_nest import Access, Builder, Expr, Loop, Nest, Store
from mycel._src.engines.native.kernels.strided_view import contiguous_strides
from mycel._src.engines.native.steps.fill_and_copy import copy_part, positions
from mycel._src.engines.native.steps.step_builder import StepBuilder, new_target
from mycel._src.engines.native.steps.view_rules import root_of

__all__ = ["concat_step", "pad_step"]


def concat_step(steps: StepBuilder, node: Node) -> None:
    """Add the kernels that copy each operand to its part of the result, if it is not there."""
    target = steps.whole(node)
    axis, start = node.params["axis"], 0
    for x in node.inputs:
        view, offset = steps.view(x), start * target.strides[axis]
        in_place = view.buffer is target.buffer and same(view.offset, target.offset + offset)
        if x.type.size and not in_place:
            copy_part(steps, view, target, offset)
        start = start + x.type.shape[axis]
    steps.bind(node, [target])


def pad_step(steps: StepBuilder, node: Node) -> None:
    """Add the kernels of a pad with gaps: one fills the result, one writes the elements."""
    x, value = node.inputs
    p = node.params
    target = new_target(node)
    steps.fill(target, _scalar(steps, value))
    b = Builder()
    inside = positions(x.type.shape)
    outside = tuple(q.scale(m + 1).shift(low) for q, m, low in zip(inside, p["interior"], p["low"]))
    guards = tuple(
        (q, d)
        for q, d, low, high in zip(outside, target.shape, p["low"], p["high"])
        if _may_be_negative(low) or _may_be_negative(high)
    )
    place = Access(target.buffer, target.access(outside).offset, guards)
    store = Store(place, b.load(steps.view(x).access(inside)), True)
    steps.kernel(Nest([Loop(d, "p") for d in x.type.shape], [], [store], "pad"), contiguous_strides(x.type.shape))
    steps.bind(node, [target])


def _scalar(steps: StepBuilder, value: Node) -> Callable[[Builder], Expr]:
    root = root_of(value)
    if root.is_constant and root.value.size == 1:
        number = root.value.reshape(())
        return lambda b: b.const(float(number) if root.dtype.is_floating else number.item(), root.dtype)
    view = steps.view(value)
    return lambda b: b.load(view.access(()))


def _may_be_negative(amount: DimLike) -> bool:
    return (amount.bounds()[0] if isinstance(amount, Dim) else amount) < 0
