"""Strided pointwise (1x1) convolutions as convolutions without strides.

Such a convolution uses only some positions of the image. For the gradient by the weights, and
forward where there are many weights, these positions are gathered first; the gradient by the image
is computed for them and then spread, with zeros between, by a kernel that writes every element
once. Both are less work than the library's algorithms for strides.
"""

from __future__ import annotations

import itertools
import math

from mycel._src.compiler.ir.dim_values import hint
from mycel._src.compiler.ir.dims import DimLike, is_one, is_zero, same
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims.convolution.conv import conv, conv_grad_weight
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.engines.native.kernels.loop_nest import Access, Buffer, Builder, Loop, Nest, Store, affine
from mycel._src.engines.native.kernels.strided_view import View, contiguous_strides
from mycel._src.engines.native.onednn.pointwise import MANY
from mycel._src.engines.native.steps.step_builder import StepBuilder

__all__ = ["channels_last", "gathered", "skips_positions", "spread"]

# More kinds of positions would make a long kernel.
MOST = 16


def channels_last(buffer: Buffer, shape: tuple[DimLike, ...]) -> View:
    """Return a view of (N, C, *spatial) with C innermost in memory."""
    n, c, *spatial = shape
    inner = contiguous_strides((*spatial, c))
    size = c
    for d in spatial:
        size = size * d
    return View(buffer, shape, (size, 1, *inner[:-1]))


def skips_positions(node: Node) -> bool:
    """Return whether a convolution or gradient is to be computed without its strides.

    Its kernel has size 1, and its strides skip positions of the image.
    """
    p = node.params
    if node.prim is matmul or (node.prim is conv and hint(node.inputs[1].type.size) < MANY):
        return False
    weights = node.type.shape if node.prim is conv_grad_weight else node.inputs[1].type.shape
    single = all(is_one(d) for d in weights[2:]) and all(is_zero(pad) for pair in p["padding"] for pad in pair)
    few = all(type(s) is int for s in p["strides"]) and 1 < math.prod(p["strides"]) <= MOST
    return single and few and bool(p["groups"] == 1)


def gathered(steps: StepBuilder, image: View, node: Node) -> View:
    """Return the positions of an image that the kernel meets, channels-last."""
    met_by = node.type if node.prim is conv else node.inputs[1].type
    shape = (*image.shape[:2], *met_by.shape[2:])
    strides = (*image.strides[:2], *[a * b for a, b in zip(image.strides[2:], node.params["strides"])])
    axes = (0, *range(2, len(shape)), 1)
    met = View(image.buffer, tuple([shape[k] for k in axes]), tuple([strides[k] for k in axes]), image.offset)
    return channels_last(steps.copy(met).buffer, shape)


def spread(steps: StepBuilder, node: Node, met: View, target: View) -> None:
    """Write the values `met` to the positions of `target` that the kernel meets, else zeros.

    `steps` gets the kernel; `node` is the gradient by the image, with its strides.
    """
    b, strides, shape = Builder(), node.params["strides"], node.type.shape
    places = tuple(affine(k) for k in range(len(shape)))
    stores = []
    for phase in itertools.product(*map(range, strides)):
        spot = tuple(q.scale(s).shift(r) for q, s, r in zip(places[2:], strides, phase))
        limits = tuple(
            (at, d)
            for at, d, n, s, r in zip(spot, shape[2:], met.shape[2:], strides, phase)
            if r and not same(n * s, d)
        )
        value = b.const(0, node.dtype) if any(phase) else b.load(met.access(places))
        stores.append(Store(Access(target.buffer, target.access((*places[:2], *spot)).offset, limits), value, True))
    steps.kernel(Nest([Loop(d, "p") for d in met.shape], [], stores, "spread"), met.strides)
