"""Which keys a query attends to, as a mask over all keys of its sequence.

The mask is made by writing ones where indices say, so products are dense, and a key that is named
twice counts once. Negative indices name nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import product
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops import array, gather_scatter
from mycel.ops._operands import constant_like, reshaped, run, select
from mycel.ops.attention.masks import positions


def positive(name: str, parameter: str, value: Any) -> int:
    """Return a positive whole number.

    Raises ValueError for any other argument.
    """
    arguments.integer(name, parameter, value, 1, numpy=False, error=ValueError)
    return value


def chosen(indices: Tensor, block: Tensor, blocks: Any) -> Tensor:
    """Return whether a query attends to each key, (batch, key heads, queries, keys).

    `indices` (..., count) names blocks of which there are `blocks`, and `block` (keys,) is the
    block of each key.
    """
    index = cast(indices, D.int64)
    nobody = run(E.lt, index, constant_like(0, index))
    inside = run(I.checked, select(nobody, constant_like(0, index), index), axis=0, size=blocks, bounds="front")
    inside = select(nobody, constant_like(blocks, index), inside)
    flat = reshaped(inside, (product(inside.shape[:-1]), inside.shape[-1]))
    rows = array.broadcast_to(reshaped(places(flat.shape[0]), (flat.shape[0], 1)), flat.shape)
    place = array.stack((rows, flat), -1)
    ones = array.broadcast_to(constant_like(1, Tensor(np.zeros((), np.int8))), flat.shape)
    none = array.broadcast_to(constant_like(0, ones), (flat.shape[0], blocks))
    marks = gather_scatter.write("sparse_attention", none, place, ones, "set", "drop")
    found = gather_scatter.gather(reshaped(marks, (*indices.shape[:-1], blocks)), block, indices.ndim - 1)
    return run(E.ne, found, constant_like(0, found))


def places(count: Any) -> Tensor:
    """Return 0, 1, ..., `count` - 1."""
    return reshaped(positions(count, 3), (count,))


def of_heads(mask: Tensor, heads: Any) -> Tensor:
    """Return a mask of key heads for the heads of queries that share them."""
    b, n, s, t = mask.shape
    if n == heads:
        return mask
    return reshaped(array.broadcast_to(reshaped(mask, (b, n, 1, s, t)), (b, n, heads // n, s, t)), (b, heads, s, t))
