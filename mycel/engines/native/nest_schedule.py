"""How a nest's loops run: the one place where vectors, tiles, copies and shares of threads are chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from mycel.engines.native.strided import small_step
from mycel.ir.dims import hint, is_one, is_zero
from mycel.kernel.nest import Access, Nest

__all__ = ["tile_of", "turns"]

# Tiles narrower than this are mostly edge.
NARROW = 4


def turns(access: Access, tile: int, vector: int) -> bool:
    """Whether a load is contiguous along the loop `tile` and strided along the vector loop."""
    step = access.offset.coefficient(vector)
    return (
        not access.guards
        and not access.dynamic
        and is_one(access.offset.coefficient(tile))
        and not is_zero(step)
        and not is_one(step)
        and not small_step(step)
    )


def tile_of(nest: Nest, loads: Sequence[Access]) -> Optional[int]:
    """The loop to be tiled for the sake of loads that are contiguous along it; None where there is none or it does not pay."""
    vector = len(nest.loops) - 1
    if nest.scalar or nest.reduces or any(loop.kind != "p" for loop in nest.loops):
        return None
    if hint(nest.loops[vector].extent) < NARROW:
        return None
    best, most = None, 0
    for k in range(vector):
        count = sum(turns(a, k, vector) for a in loads)
        if count > most and hint(nest.loops[k].extent) >= NARROW:
            best, most = k, count
    return best
