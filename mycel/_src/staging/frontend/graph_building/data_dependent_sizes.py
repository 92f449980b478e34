"""Data-dependent sizes: positions in a mask, as a tensor whose size is a new symbol.

The values of the mask are not known while staging; the symbol is bound when the program runs.
"""

from __future__ import annotations

import itertools

from mycel._src.compiler.ir.dims import symbol
from mycel._src.compiler.prims.nonzero_positions import positions
from mycel._src.compiler.prims.shape import RESHAPE
from mycel._src.staging.frontend.graph_building.stage_state import StageState
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.tensor import Tensor, make_staged

__all__ = ["staged_positions"]

_numbers = itertools.count()


def staged_positions(stage: StageState, mask: Tensor, least: int) -> Tensor:
    """Return the positions at which a staged mask is True; their number is a new symbol."""
    flat = mask if mask.ndim == 1 else eager.apply(RESHAPE, mask, shape=(mask.size,))
    key = ("positions", stage.node_of(mask))
    found = stage.literals.get(key)
    if found is None:
        count = symbol(f"u{next(_numbers)}", least)
        found = stage.literals[key] = stage.node_of(eager.apply(positions, flat, count=count))
    return make_staged(found)
