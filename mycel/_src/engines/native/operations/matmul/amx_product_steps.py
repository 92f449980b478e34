"""Lowering of float32 matrix products to AMX, by factors split into bfloat16.

The smaller factor is packed into `pieces` by a step of its own, once for all products that read it
in the same way; the step that multiplies packs the larger one on its way (`amx_product_kernel`).
This way is chosen where a count of operations and bytes says that it is faster than the dense
library.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from mycel._src.compiler.ir.dim_values import hint
from mycel._src.compiler.ir.dims import DimLike, is_one, is_zero, maximum, product
from mycel._src.compiler.ir.graph import Node
from mycel._src.engines.native.kernels.codegen import Kernel
from mycel._src.engines.native.kernels.kernel_function import Word
from mycel._src.engines.native.kernels.loop_nest import Buffer
from mycel._src.engines.native.kernels.strided_view import View
from mycel._src.engines.native.operations.matmul import amx_support
from mycel._src.engines.native.operations.matmul.amx_product_kernel import pieces_product_text, slot_words
from mycel._src.engines.native.operations.matmul.batch_axes import Axis, batch_axes, broadcast
from mycel._src.engines.native.operations.matmul.bfloat16_split import BLOCK_WORDS, FLAGS, GROUP, SIDE, pack_text
from mycel._src.engines.native.runtime.runtime import runtime
from mycel._src.engines.native.steps.step_builder import StepBuilder, new_target
from mycel._src.foundation import dtype as D

__all__ = ["multiply", "pieces_step", "usable"]

# Blocks of a part of the common axis.
PART_STEPS = 16
# What one core does in a second: operations of the library and of the units, and numbers that it
# packs. This way is chosen where it takes less than `GAIN` of the time.
LIBRARY_RATE, UNIT_RATE, PACK_RATE = 180e9, 330e9, 2.5e9
GAIN = 0.9
# Seconds that a block of the result takes beside its products.
BLOCK_SECONDS = 0.3e-6
# The least seconds of the library's for which it is considered, and units of work to be had.
LEAST, UNITS = 100e-6, 8
# Operations that take as long as one operation of a kernel without products.
DENSITY = 128


class _Factor(NamedTuple):
    """A factor: its place, extent, the stride of its axis that is not contiguous, those of batches.

    `left` says which factor it is, and `along` whether its common axis is contiguous.
    """

    view: View
    extent: DimLike
    stride: DimLike
    batch: tuple[DimLike, ...]
    left: bool
    along: bool

    @property
    def blocks(self) -> DimLike:
        """Rows or columns of blocks."""
        return -(-self.extent // SIDE)


class _Packed(NamedTuple):
    """A packed factor: its memory, where magnitudes and flags begin, and strides of batches."""

    buffer: Buffer
    largest: DimLike
    flags: DimLike
    batch: tuple[DimLike, ...]


def pieces_step(steps: StepBuilder, node: Node) -> bool:
    """Add the steps of a product of float32; return whether it is done this way."""
    if not usable(node):
        return False
    out = new_target(node)
    a, b = map(steps.view, node.inputs)
    if len(batch_axes(a, b, out)) > 3:
        a, b = (steps.copy(broadcast(v, out.shape[:-2])) for v in (a, b))
    if not multiply(steps, node, a, b, out):
        return False
    steps.bind(node, [out])
    return True


def usable(node: Node) -> bool:
    """Return whether a node is of float32, and the units are there."""
    return all(t.dtype is D.float32 for t in (node, *node.inputs)) and amx_support.available()


def multiply(
    steps: StepBuilder,
    node: Node,
    a: View,
    b: View,
    out: View,
    library_rate: float = LIBRARY_RATE,
    added: bool = False,
) -> bool:
    """Add the steps that write the product of the matrices `a` and `b` to `out`, or add it there.

    `steps` gets the steps for `node`; with `added` the product is added. The three are matrices, or
    batches of them over as many axes as `out` has; rows of `out` are contiguous. Returns False,
    without steps, where the library is faster, which does `library_rate` operations in a second.
    """
    *batch, rows = batch_axes(a, b, out)
    if len(batch) > 2 or not _pays(batch, rows, a.shape[-1], out.shape[-1], library_rate):
        return False
    a, b = (v if is_one(v.strides[-1]) or is_one(v.strides[-2]) else steps.copy(v) for v in (a, b))
    *batch, rows = batch_axes(a, b, out)
    near, far = sorted([_left(a, batch, rows), _right(b, batch)], key=lambda f: -_elements(f, batch))
    packed = _pack(steps, far, batch, a.shape[-1])
    kernel, slots = _product(near, far, packed, (batch, rows), a.shape[-1], out, added)
    reads = [near.view.buffer, far.view.buffer, packed.buffer, *([out.buffer] if added else [])]
    steps.step(kernel, reads, [out.buffer, slots], node)
    return True


def _left(a: View, batch: Sequence[Axis], rows: Axis) -> _Factor:
    along = is_one(a.strides[-1])
    return _Factor(a, rows.size, rows.a if along else a.strides[-1], tuple(x.a for x in batch), True, along)


def _right(b: View, batch: Sequence[Axis]) -> _Factor:
    along = not is_one(b.strides[-1])
    stride = b.strides[-1] if along else b.strides[-2]
    return _Factor(b, b.shape[-1], stride, tuple(x.b for x in batch), False, along)


def _elements(factor: _Factor, batch: Sequence[Axis]) -> int:
    """Return how many rows a factor has in all, or how many are likely."""
    sizes = [hint(axis.size) for axis, stride in zip(batch, factor.batch) if not is_zero(stride)]
    return math.prod(sizes) * hint(factor.extent)


def _pays(batch: Sequence[Axis], rows: Axis, count: DimLike, width: DimLike, rate: float) -> bool:
    """Return whether this way is faster than the library for these sizes, or for their hints.

    The result has batch axes, rows and a width, the common axis `count` steps; `rate` is the
    library's.
    """
    m, n, k = (-(-max(hint(d), 1) // SIDE) * SIDE for d in (rows.size, width, count))
    each, packed = 1, [m * k, n * k]
    for axis in batch:
        each *= hint(axis.size)
        for side, stride in enumerate((axis.a, axis.b)):
            packed[side] *= 1 if is_zero(stride) else hint(axis.size)
    library = 2 * hint(rows.size) * hint(width) * hint(count) * each / rate
    ours = each * (2 * m * n * k / UNIT_RATE + m * n / SIDE**2 * BLOCK_SECONDS) + sum(packed) / PACK_RATE
    return library > LEAST and ours < GAIN * library


def _pack(steps: StepBuilder, factor: _Factor, batch: Sequence[Axis], count: DimLike) -> _Packed:
    """Return a factor in pieces, packed here or before.

    `batch` are the axes of the product, whose common axis has `count` steps.
    """
    changing = [(axis.size, stride) for axis, stride in zip(batch, factor.batch) if not is_zero(stride)]
    blocks, depth = factor.blocks, -(-count // SIDE)
    groups, parts = -(-blocks // GROUP), _parts(depth)
    matrices = product([size for size, _ in changing])
    largest = matrices * blocks * depth * BLOCK_WORDS
    flags = largest + matrices * blocks * parts
    (_, outer), (inner_size, inner) = [(1, 0), (1, 0), *changing][-2:]
    numbers: list[DimLike] = [
        factor.extent,
        count,
        factor.stride,
        factor.view.offset,
        inner_size,
        inner,
        outer,
        blocks,
        groups,
        depth,
        parts,
        PART_STEPS,
        largest,
        flags,
    ]
    view = factor.view
    key = ("pieces", id(view.buffer), factor.left, factor.along, *numbers)
    if key not in steps.relaid:
        target = Buffer(D.int32, flags + FLAGS, "pieces")
        words: list[Word] = [*[("int", n) for n in numbers], ("pointer", view.buffer), ("pointer", target)]
        said = f"pieces of the {'left' if factor.left else 'right'} factor"
        text, work = pack_text(factor.left, factor.along), matrices * factor.extent * count
        steps.step(Kernel(text, words, matrices * groups * parts, work, said), [view.buffer], [target])
        steps.relaid[key] = view, View(target, (), ())
    strides, step = list[DimLike](), blocks
    for axis, stride in zip(reversed(batch), reversed(factor.batch)):
        strides.append(0 if is_zero(stride) else step)
        step = step if is_zero(stride) else step * axis.size
    return _Packed(steps.relaid[key][1].buffer, largest, flags, tuple(reversed(strides)))


def _parts(depth: DimLike) -> DimLike:
    """Return how many parts so many blocks are; without any there is one, whose sums are zero."""
    return maximum(-(-depth // PART_STEPS), 1)


def _units(near: int, far: int, matrices: int) -> tuple[int, int]:
    """Return how many rows of blocks a unit of work has, of the near and of the far factor.

    There are so many of each in a matrix, and so many `matrices`. A unit packs its part of the near
    factor, so it takes as much of the far one as leaves units enough.
    """
    high, wide = min(GROUP, near), far
    while -(-near // high) * -(-far // wide) * matrices < UNITS and (wide > 16 or high > 4):
        high, wide = (high, -(-wide // 2)) if wide > 16 else (-(-high // 2), wide)
    return high, wide


def _product(
    near: _Factor,
    far: _Factor,
    packed: _Packed,
    axes: tuple[Sequence[Axis], Axis],
    count: DimLike,
    out: View,
    added: bool,
) -> tuple[Kernel, Buffer]:
    """Return the kernel of a product and the memory in which it packs.

    `near` and `far` are the factors, the latter `packed` as well; `axes` are the batch and rows of
    the result `out`, `count` is the length of the common axis, and with `added` the product is
    added to the result.
    """
    batch, rows = axes
    matrices = product([axis.size for axis in batch])
    high, wide = _units(hint(near.blocks), hint(far.blocks), hint(matrices))
    near_units, far_units = -(-near.blocks // high), -(-far.blocks // wide)
    strides = [(0,) * 4, (0,) * 4, *zip(near.batch, far.batch, packed.batch, [axis.c for axis in batch])]
    outer, inner = strides[-2:]
    depth, slots = -(-count // SIDE), min(runtime().threads + 1, FLAGS)
    numbers: list[DimLike] = [
        rows.size,
        out.shape[-1],
        count,
        near.stride,
        near.view.offset,
        *((far.stride, 1) if far.along else (1, far.stride)),
        far.view.offset,
        rows.c,
        out.offset,
        batch[-1].size if batch else 1,
        *inner,
        *outer,
        near.blocks,
        far.blocks,
        near_units,
        far_units,
        high,
        wide,
        depth,
        _parts(depth),
        PART_STEPS,
        packed.largest,
        packed.flags,
        slots,
        slot_words(PART_STEPS),
        int(added),
    ]
    memory = Buffer(D.int32, slots * slot_words(PART_STEPS), "pieces")
    words: list[Word] = [("int", n) for n in numbers]
    words += [("pointer", buffer) for buffer in (near.view.buffer, far.view.buffer, packed.buffer, memory, out.buffer)]
    work = matrices * rows.size * out.shape[-1] * depth * SIDE // DENSITY
    text = pieces_product_text(near.left, near.along)
    return Kernel(text, words, matrices * near_units * far_units, work, "tiles of three pieces"), memory
