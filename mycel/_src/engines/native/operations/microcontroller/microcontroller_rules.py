"""Claims of microcontroller kernels: the quantised layers for `microcontroller_steps`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims.neural.requantised_layers import rescaled_conv, rescaled_pool, rescaled_sum
from mycel._src.compiler.transforms.quantise.graph_freezing import array_of
from mycel._src.engines.native.operations.microcontroller.int8_instructions import byte_machine, has_many_registers
from mycel._src.foundation import dtype as D

__all__ = ["by_count", "gives_sums", "has_byte_kernel", "is_depthwise"]

Array = np.ndarray[Any, Any]
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
    if x.dtype is not D.int8 or p["dtype"] is not D.int8 or min(sizes[8:]) < 0:
        return False
    arrays = [array_of(n) for n in numbers]
    return all(a is not None and not a.ndim for a in arrays) or by_count(node) is not None


def by_count(node: Node) -> Array | None:
    """Return the multiplier and the shift of an average for each number of places that a window has
    in the image, (count, 2); None where they depend on something else.

    Numbers that no window has are those of another one.
    """
    p = node.params
    arrays = [array_of(n) for n in node.inputs[1:]]
    if any(a is None for a in arrays):
        return None
    inside = []
    given = zip(node.inputs[0].shape[2:], node.shape[2:], p["window"], p["strides"], p["padding"])
    for size, places, window, stride, (low, _) in given:
        starts = np.arange(places) * stride - low
        inside.append(np.maximum(np.minimum(starts + window, size) - np.maximum(starts, 0), 0))
    counts = np.multiply.outer(*inside).reshape(-1)
    pairs = np.stack([np.broadcast_to(a, node.shape[2:]).reshape(-1) for a in arrays if a is not None], 1)
    _, first = np.unique(counts, return_index=True)
    table = np.tile(pairs[first[-1]], (math.prod(p["window"]) + 1, 1))
    table[counts[first]] = pairs[first]
    return table if (table[counts] == pairs).all() else None


def is_depthwise(node: Node) -> bool:
    """Return whether a layer has kernels of their own for each of several channels."""
    return bool(node.params["groups"] > 1 and node.inputs[1].shape[1] == 1)
