"""Which sums of products of steps go to kernels of four products at once (`dot_steps`)."""

from __future__ import annotations

from mycel.base import dtype as D
from mycel.engines.native.dense.dots import has_dots
from mycel.engines.native.llvm.target import host, target
from mycel.ir.dims import is_one
from mycel.ir.graph import Node
from mycel.prims.quantisation import int_conv, int_matmul

__all__ = ["is_dot"]

# Fewer channels leave most lanes empty.
FEWEST = 6


def is_dot(node: Node) -> bool:
    """Return whether a node is a sum of products that this processor has instructions for."""
    if node.prim not in (int_conv, int_matmul) or target() is not host() or not has_dots() or not node.type.size:
        return False
    x, w = node.inputs
    if x.dtype not in (D.int8, D.uint8) or w.dtype is not D.int8 or not w.is_constant or not w.type.size:
        return False
    if node.prim is int_matmul:
        return bool(w.type.rank == 2 and node.params["b_zero"] == 0 and w.shape[1] >= FEWEST)
    p = node.params
    return bool(
        x.type.rank == 4
        and is_one(p["groups"])
        and is_one(p["dilation"][-1])
        and w.shape[0] >= FEWEST
        and all(type(d) is int for d in x.shape[1:])
        and all(type(a) is int for pair in p["padding"] for a in pair)
    )
