"""Kernels that fill a value with one number, or copy a value into part of a larger one."""

from __future__ import annotations

from mycel._src.compiler.ir.dims import DimLike, is_one
from mycel._src.engines.native.kernels.loop_nest import ZERO, Access, Affine, Builder, Loop, Nest, Store, affine
from mycel._src.engines.native.kernels.strided_view import View
from mycel._src.engines.native.steps.step_builder import StepBuilder

__all__ = ["copy_part", "fill_zeros", "positions"]


def positions(shape: tuple[DimLike, ...]) -> tuple[Affine, ...]:
    """Return the position with the number of loop k on axis k; 0 on axes of size 1."""
    return tuple(ZERO if is_one(d) else affine(k) for k, d in enumerate(shape))


def fill_zeros(steps: StepBuilder, target: View) -> None:
    """Add a kernel that writes zeros everywhere."""
    steps.fill(target, lambda b: b.const(0, target.buffer.dtype))


def copy_part(steps: StepBuilder, source: View, target: View, offset: DimLike = 0) -> None:
    """Add a kernel that copies a value to the same positions of a larger value.

    `steps` gets the kernel; in `target` the positions of `source` are `offset` elements further on.
    """
    b = Builder()
    at = positions(source.shape)
    place = target.access(at)
    store = Store(Access(place.buffer, place.offset.shift(offset)), b.load(source.access(at)), True)
    steps.kernel(Nest([Loop(d, "p") for d in source.shape], [], [store], "copy"), target.strides)
