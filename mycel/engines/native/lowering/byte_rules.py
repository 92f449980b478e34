"""Which layers of steps go to kernels of bytes for small processors (`byte_steps`)."""

from __future__ import annotations

import numpy as np

from mycel.base import dtype as D
from mycel.engines.native.dense.byte_machine import byte_machine, has_many_registers
from mycel.ir.graph import Node
from mycel.prims.rescaled import rescaled_conv, rescaled_pool, rescaled_sum
from mycel.transforms.quantise.freezing import array_of

__all__ = ["gives_sums", "has_byte_kernel", "is_depthwise"]

# Depthwise kernels of so many places are written out.
MOST_TAPS = 49


def has_byte_kernel(node: Node) -> bool:
    """Return whether a node is a layer of steps that the processor in force has a kernel for."""
    if not byte_machine():
        return False
    if node.prim is rescaled_pool:
        return _has_pool(node)
    if node.prim is rescaled_sum:
        known = all(type(d) is int for d in node.shape) and node.type.size
        return bool(known) and all(t is D.int8 for t in (node.params["dtype"], *[i.dtype for i in node.inputs]))
    if node.prim is not rescaled_conv:
        return False
    x, w, *numbers = node.inputs
    p = node.params
    sizes = (*x.shape, *w.shape, *node.shape, *p["strides"], *p["dilation"], *[a for e in p["padding"] for a in e])
    if x.type.rank != 4 or any(type(d) is not int for d in (*sizes, p["groups"])) or not node.type.size:
        return False
    if x.dtype is not D.int8 or w.dtype is not D.int8 or (p["dtype"] is not D.int8 and not gives_sums(node)):
        return False
    if not all(array_of(n) is not None for n in (w, *numbers)) or min(sizes[8:]) < 0:
        return False
    if is_depthwise(node):
        # Nests are faster where addresses have 64 bits.
        return bool(w.shape[2] * w.shape[3] <= MOST_TAPS and not has_many_registers())
    return True


def gives_sums(node: Node) -> bool:
    """Return whether the steps of a layer are its sums themselves, in 32 bits."""
    p, numbers = node.params, [array_of(n) for n in node.inputs[3:]]
    ends = np.iinfo(np.int32)
    whole = (p["dtype"], p["low"], p["high"], p["result_zero"], p["groups"]) == (D.int32, ends.min, ends.max, 0, 1)
    return whole and all(n is not None and bool((n == v).all()) for n, v in zip(numbers, (1 << 30, 1)))


def _has_pool(node: Node) -> bool:
    x, *numbers = node.inputs
    p = node.params
    sizes = (*x.shape, *node.shape, *p["window"], *p["strides"], *[a for e in p["padding"] for a in e])
    if x.type.rank != 4 or any(type(d) is not int for d in sizes) or not node.type.size:
        return False
    bytes_only = x.dtype is D.int8 and p["dtype"] is D.int8
    return bytes_only and all(array_of(n) is not None for n in numbers) and min(sizes[8:]) >= 0


def is_depthwise(node: Node) -> bool:
    """Return whether a layer has kernels of their own for each of several channels."""
    return bool(node.params["groups"] > 1 and node.inputs[1].shape[1] == 1)
