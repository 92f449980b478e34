"""The `positions` primitive: where a mask is true. It alone has a result whose size data decides.

Everything else of such a size (`nonzero`, boolean indexing, `masked_select`, `unique`) gathers at
these positions. The number of positions is the symbol `count`, which the program binds when it has
computed them; positions are integers, so there is no derivative.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive, Sample, constant, register
from mycel._src.compiler.prims.sort_and_scan import sort
from mycel._src.foundation.dtype import bool_, int64
from mycel._src.foundation.errors import ShapeError

__all__ = ["positions"]


def _infer(mask: TensorType, *, count: DimLike) -> TensorType:
    if mask.dtype is not bool_ or mask.rank != 1:
        raise ShapeError(f"positions: the mask must be a vector of booleans, not {mask}")
    if type(count) is int and type(mask.shape[0]) is int and count > mask.shape[0]:
        raise ShapeError(f"positions: {mask} cannot hold at {count} places")
    return tensor_type((count,), int64)


def _reference(mask: Any, *, count: int) -> Any:
    found = np.flatnonzero(mask).astype(np.int64)
    if len(found) != count:
        raise ShapeError(f"positions: the mask holds at {len(found)} places, not at {count}")
    return found


def _batch(size: Any, values: Any, axes: Any, *, count: DimLike) -> Any:
    if not isinstance(count, int):
        raise NotImplementedError(
            "vmap of positions: each example would have a size of its own; use `where` with a mask instead"
        )
    mask = S.move_axis(values[0], axes[0], 0)
    place = E.select(mask, S.iota(shape=mask.shape, axis=1, dtype=int64), constant(mask.shape[1], int64))
    ordered, _ = sort.outputs(place, axis=1, descending=False)
    return S.slice_axis(ordered, 1, 0, count), 0


positions: Primitive = register(
    Primitive(
        "positions",
        _infer,
        _reference,
        lambda ct, out, mask, *, count: (None,),
        _batch,
        samples=(Sample((np.array([True, False, True]),), {"count": 2}, dtypes=("*",)),),
        dtypes=("bool",),
        doc="The positions at which a mask holds, in order; there are `count` of them.",
    )
)
