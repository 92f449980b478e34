"""Positions at which a boolean tensor is True: a size that depends on data.

Eagerly they are found at once. While a function is staged they are a tensor whose size is a new
symbol, bound when the program runs; a mask whose values are known while staging is used as it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.prims import elementwise as E
from mycel._src.foundation.dtype import int64
from mycel._src.foundation.errors import NeedsValue
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.tensor import Tensor, as_tensor

__all__ = ["flat_positions", "is_open", "positions_in"]


def _known(mask: Tensor) -> Any | None:
    """Return the array of a mask.

    Returns None if its values are not known but its positions can be tensors (`Staging.positions`),
    and raises NeedsValue if neither is possible.
    """
    staging = eager.local.staging if eager.active else None
    if staging is None:
        return mask.asnumpy()
    try:
        return mask._value("the positions at which a mask holds")
    except NeedsValue:
        if not staging.has_positions():
            raise
        return None


def is_open(value: Tensor) -> bool:
    """Return whether the values of a mask are unknown here, while its positions can be tensors."""
    return _known(value) is None


def flat_positions(mask: Tensor, least: int = 0) -> Tensor:
    """Return the int64 positions, in row-major order, at which a mask is True.

    The caller knows that there are at least `least`.
    """
    array = _known(mask)
    if array is not None:
        return Tensor(np.flatnonzero(array).astype(np.int64))
    assert eager.local.staging is not None
    return eager.local.staging.positions(mask, least)


def positions_in(mask: Tensor) -> list[Tensor]:
    """Return, for each axis of a mask, the int64 positions along it at which the mask is True."""
    array = _known(mask)
    if array is not None:
        return [Tensor(v.astype(np.int64)) for v in np.nonzero(array)]
    flat = flat_positions(mask)
    found: list[Tensor] = []
    for size in reversed(mask.shape[1:]):
        divisor = as_tensor(size, int64)
        found.insert(0, eager.apply(E.mod, flat, divisor))
        flat = eager.apply(E.floor_div, flat, divisor)
    return [flat, *found]
