"""Sums of products of steps with constant weights, as steps with a kernel of four at once.

The image is packed with its channels last and its padding around it, as unsigned bytes: signed ones
plus 128, which the first sums take back, as they do the zero point:

    sum (x - Z) w  =  sum (x + 128) w  -  (128 + Z) sum w

What lies in the padding is Z + 128. Weights are packed into panels when the step is made. The
result has its channels last. Which sums go this way says `is_dot` (`dot_rules`); others are nests.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel.base import dtype as D
from mycel.engines.native.dense.dots import DotTile, dots_text, tile_of
from mycel.engines.native.kernels.codegen import Kernel
from mycel.engines.native.kernels.nest import Access, Affine, Buffer, Builder, Guard, Loop, Nest, Store, affine
from mycel.engines.native.kernels.values import Word
from mycel.engines.native.kernels.views import View, row_major
from mycel.engines.native.lowering.builder import StepBuilder
from mycel.ir.dim_values import hint
from mycel.ir.dims import DimLike, product
from mycel.ir.graph import Node
from mycel.prims.quantisation import int_matmul

__all__ = ["dot_step"]

Array = np.ndarray[Any, Any]
# Bytes behind a packed image that may be read with the last ones.
BEHIND = 64
# Rows of a matrix that are one line.
LINE = 48
# Products of four that take as long as one operation of a kernel without them.
DENSITY = 64


def dot_step(steps: StepBuilder, node: Node) -> None:
    """Add the steps of a node for which `is_dot` holds."""
    (_matrix_step if node.prim is int_matmul else _image_step)(steps, node)


def _panels(weights: Array, tile: DotTile) -> Array:
    """Return weights (rows, bytes, channels) in panels."""
    rows, count, channels = weights.shape
    deep, wide = -(-count // 4), -(-channels // tile.width)
    padded = np.zeros((rows, deep * 4, wide * tile.width), np.int8)
    padded[:, :count, :channels] = weights
    found = padded.reshape(rows, deep, 4, wide, tile.width).transpose(3, 0, 1, 4, 2)
    return np.ascontiguousarray(found).reshape(-1)


def _constant(steps: StepBuilder, array: Array, dtype: D.DType) -> Buffer:
    buffer = Buffer(dtype, array.size, "constant")
    steps.lowered.constants[id(buffer)] = (buffer, array)
    return buffer


def _packed(steps: StepBuilder, x: View, shape: tuple[DimLike, ...], position: Any, zero: int, name: str) -> Buffer:
    """Return a value as unsigned bytes in another order.

    `position` gives, of a position of `shape`, that in `x` and its guards, outside of which there
    is the `zero` point.
    """
    buffer = Buffer(D.uint8, product(shape) + BEHIND, name)
    goal = row_major(buffer, shape)
    loops = tuple(affine(k) for k in range(len(shape)))
    at, guards = position(loops)
    b = Builder()
    value = b.load(Access(x.buffer, x.access(at).offset, guards), zero)
    if x.buffer.dtype is D.int8:
        value = b.op("cast", D.uint8, b.op("add", D.int8, value, b.const(-128, D.int8)))
    steps.kernel(Nest([Loop(d, "p") for d in shape], [], [Store(goal.access(loops), value, True)], name), goal.strides)
    return buffer


def _first_sums(weights: Array, zero: int, dtype: D.DType, tile: DotTile) -> Array:
    """Return what the sums of each channel begin with, for weights (rows, bytes, channels)."""
    offset = zero + 128 if dtype is D.int8 else zero
    sums = -offset * weights.astype(np.int64).sum((0, 1))
    padded = np.zeros(-(-sums.size // tile.width) * tile.width, np.int32)
    padded[: sums.size] = sums
    return padded


def _add(
    steps: StepBuilder, node: Node, packed: Buffer, weights: Array, zero: int, numbers: list[DimLike], units: DimLike
) -> Buffer:
    """Add the kernel and return the buffer of its result.

    `packed` is the image, `weights` are (rows, bytes, channels), `zero` is the zero point,
    `numbers` are the words up to the number of positions, and `units` is the range.
    """
    rows, count, channels = weights.shape
    tile = tile_of(channels)
    panels = _constant(steps, _panels(weights, tile), D.int8)
    first = _constant(steps, _first_sums(weights, zero, node.inputs[0].dtype, tile), D.int32)
    out = Buffer(D.int32, node.type.size, node.op)
    words: list[Word] = [("int", n) for n in (*numbers, rows, -(-count // 4), channels)]
    words += [("pointer", b) for b in (packed, panels, first, out)]
    work = product(node.type.shape) * rows * count // DENSITY
    said = f"tiles of {tile.height} x {tile.width}, products of four bytes"
    kernel = Kernel(dots_text(tile), words, units, work, said)
    steps.step(kernel, [packed, panels, first], [out], node)
    return out


def _matrix_step(steps: StepBuilder, node: Node) -> None:
    a, w, zero = steps.view(node.inputs[0]), node.inputs[1].value, node.params["a_zero"]
    count, channels = w.shape
    *lead, rows, _ = a.shape
    packed = _packed(steps, a, tuple(a.shape), lambda loops: (loops, ()), zero, "bytes")
    total = product(lead) * rows
    line = min(LINE, hint(total))
    lines = -(-total // line)
    numbers: list[DimLike] = [0, line * count, count, 0, 0, line * channels, channels, lines, line, total]
    out = _add(steps, node, packed, w.reshape(1, count, channels), zero, numbers, lines)
    steps.bind(node, [row_major(out, tuple(node.type.shape))])


def _image_step(steps: StepBuilder, node: Node) -> None:
    x, p, zero = steps.view(node.inputs[0]), node.params, node.params["zero"]
    # (O, C, rows, columns) as (rows, columns and C, O).
    w = np.moveaxis(node.inputs[1].value, (0, 1), (-1, -2))
    weights = w.reshape(w.shape[0], -1, w.shape[-1])
    n, channels = x.shape[:2]
    height, width = (d + low + high for d, (low, high) in zip(x.shape[2:], p["padding"]))

    def position(loops: tuple[Affine, ...]) -> tuple[tuple[Affine, ...], tuple[Guard, ...]]:
        places = [q.shift(-low) for q, (low, _) in zip(loops[1:], p["padding"])]
        guards = tuple((q, d) for q, d, ends in zip(places, x.shape[2:], p["padding"]) if any(ends))
        return (loops[0], loops[-1], *places), guards

    packed = _packed(steps, x, (n, height, width, channels), position, zero, "bytes")
    line, (lines, columns) = width * channels, node.type.shape[2:]
    outputs = w.shape[-1]
    numbers: list[DimLike] = [
        height * line,
        p["strides"][0] * line,
        p["strides"][1] * channels,
        p["dilation"][0] * line,
        lines * columns * outputs,
        columns * outputs,
        outputs,
        lines,
        columns,
        lines * columns,
    ]
    out = _add(steps, node, packed, weights, zero, numbers, n * lines)
    strides = (lines * columns * outputs, 1, columns * outputs, outputs)
    steps.bind(node, [View(out, tuple(node.type.shape), strides)])
