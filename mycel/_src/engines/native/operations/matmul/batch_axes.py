"""Batch axes of matrix products, merged to as few as their strides allow."""

from __future__ import annotations

from typing import NamedTuple

from mycel._src.compiler.ir.dims import DimLike, is_one, is_zero, same
from mycel._src.engines.native.kernels.strided_view import View

__all__ = ["Axis", "batch_axes", "broadcast"]


class Axis(NamedTuple):
    """A batch axis: its size, and the strides of the factors and of the result."""

    size: DimLike
    a: DimLike
    b: DimLike
    c: DimLike


def broadcast(view: View, batch: tuple[DimLike, ...]) -> View:
    """Return a view whose matrices are repeated to the shape `batch`."""
    strides = [_stride(view, k - len(batch) - 2) for k in range(len(batch))]
    return View(view.buffer, (*batch, *view.shape[-2:]), (*strides, *view.strides[-2:]), view.offset)


def batch_axes(a: View, b: View, out: View) -> list[Axis]:
    """Return the fewest batch axes of a product, outermost first, and the rows as the last one."""
    rank, found = len(out.shape), list[Axis]()
    for k, size in enumerate(out.shape[:-2]):
        axis = Axis(size, _stride(a, k - rank), _stride(b, k - rank), out.strides[k])
        if is_one(size):
            continue
        joined = _joined(found[-1], axis) if found else None
        found[-1:] = [joined] if joined else [*found[-1:], axis]
    rows = Axis(out.shape[-2], a.strides[-2], 0, out.strides[-2])
    while found and is_zero(found[-1].b) and (joined := _joined(found[-1], rows)):
        found.pop()
        rows = joined
    return [*found, rows]


def _stride(view: View, axis: int) -> DimLike:
    return 0 if -axis > len(view.shape) or is_one(view.shape[axis]) else view.strides[axis]


def _joined(outer: Axis, inner: Axis) -> Axis | None:
    """Return one axis in place of two; None where some strides do not allow it."""
    if is_one(inner.size):
        return outer
    if all(same(far, inner.size * near) for far, near in zip(outer[1:], inner[1:])):
        return inner._replace(size=outer.size * inner.size)
    return None
