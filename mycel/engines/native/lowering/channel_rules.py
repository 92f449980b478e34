"""Which sums of products are kernels over images with channels last (`channel_steps`)."""

from __future__ import annotations

from mycel.base import dtype as D
from mycel.engines.native.dense.words import unit_for
from mycel.ir.dims import is_one
from mycel.ir.graph import Node
from mycel.prims.conv import conv
from mycel.prims.linalg import matmul
from mycel.prims.quantisation import int_conv, int_matmul

__all__ = ["is_channelled", "is_depthwise"]

# Fewer channels leave most lanes empty.
FEWEST = 6
# Bytes of the stack that copies of what a tile reads may take.
MOST_BYTES = 48 << 10


def is_channelled(node: Node) -> bool:
    """Return whether a node is a sum of products with constant weights that a kernel of channels
    computes.
    """
    if node.prim not in (conv, int_conv, matmul, int_matmul) or not node.type.size:
        return False
    x, w = node.inputs
    if not w.is_constant or not w.type.size or not x.type.size or w.dtype not in (D.int8, D.float32):
        return False
    if unit_for(x.dtype) is None or (x.dtype is D.float32) != (w.dtype is D.float32):
        return False
    if node.prim in (matmul, int_matmul):
        plain = node.prim is matmul or node.params["b_zero"] == 0
        return bool(plain and w.type.rank == 2 and type(x.shape[-1]) is int and w.shape[1] >= FEWEST)
    p = node.params
    if not (x.type.rank == 4 and w.shape[0] >= FEWEST):
        return False
    if is_depthwise(node):
        known = all(type(d) is int for d in (*x.shape[1:], *node.type.shape[2:]))
        # Lines of zero points are on the stack.
        return known and (x.dtype is D.float32 or x.shape[1] * x.shape[3] <= MOST_BYTES)
    return bool(
        is_one(p["groups"])
        and w.type.size * x.dtype.itemsize <= MOST_BYTES * w.shape[0]
        and all(type(d) is int for d in x.shape[1:])
        and all(type(a) is int for pair in p["padding"] for a in pair)
    )


def is_depthwise(node: Node) -> bool:
    """Return whether a convolution has a group for each channel, with one result."""
    if node.prim not in (conv, int_conv):
        return False
    x, w = node.inputs
    fixed = all(type(d) is int for d in (x.shape[1], node.params["groups"]))
    return bool(fixed and node.params["groups"] == w.shape[0] == x.shape[1] > 1 and w.shape[1] == 1)
