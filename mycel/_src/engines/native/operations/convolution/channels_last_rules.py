"""Claims of NHWC kernels: the convolutions and products for `channels_last_steps`."""

from __future__ import annotations

from mycel._src.compiler.ir.dims import is_one
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims.convolution.conv import conv
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.prims.neural.quantisation import int_conv, int_matmul
from mycel._src.engines.native.kernels.dot_product_instructions import unit_for
from mycel._src.engines.native.llvm.target import target
from mycel._src.foundation import dtype as D

__all__ = ["is_channelled", "is_depthwise"]

# Fewer channels leave most lanes empty.
FEWEST = 6
# Bytes of the stack beside what a kernel copies there.
SPARE = 512


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
        shaped = w.type.rank == 2 and type(x.shape[-1]) is int and w.shape[1] >= FEWEST
        return bool(plain and shaped and _is_stacked(node))
    p = node.params
    if not (x.type.rank == 4 and w.shape[0] >= FEWEST):
        return False
    if is_depthwise(node):
        known = all(type(d) is int for d in (*x.shape[1:], *node.type.shape[2:]))
        # Lines of zero points are on the stack.
        return known and (x.dtype is D.float32 or x.shape[1] * x.shape[3] <= target().stack - SPARE)
    return bool(
        is_one(p["groups"])
        and _is_stacked(node)
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


def _is_stacked(node: Node) -> bool:
    """Return whether a copy of what a position reads fits on the stack, with 16-bit elements."""
    x, w = node.inputs
    count = w.type.size // (w.shape[1] if w.type.rank == 2 else w.shape[0])
    return bool(count * (4 if x.dtype is D.float32 else 2) <= target().stack - SPARE)
