"""XLA rules of constants, positions, and data movement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.engines.xla.binding import jnp, lax
from mycel._src.foundation.dtype import DType, bool_

__all__ = ["RULES"]


def _iota(*, shape: tuple[int, ...], axis: int, dtype: DType) -> Any:
    if dtype is bool_:
        return lax.broadcasted_iota(np.int32, shape, axis) != 0
    return lax.broadcasted_iota(dtype.numpy, shape, axis)


def _pad(x: Any, value: Any, *, low: Any, high: Any, interior: Any) -> Any:
    return lax.pad(x, value.astype(x.dtype), tuple(zip(low, high, interior)))


RULES: dict[str, Callable[..., Any]] = {
    "constant": lambda *, value: jnp.asarray(value.array),
    "iota": _iota,
    "broadcast_to": lambda x, *, shape: jnp.broadcast_to(x, shape),
    "reshape": lambda x, *, shape: jnp.reshape(x, shape),
    "transpose": lambda x, *, permutation: lax.transpose(x, permutation),
    "reverse": lambda x, *, axes: lax.rev(x, axes),
    "concat": lambda *parts, axis: lax.concatenate(parts, axis),
    "slice": lambda x, *, starts, stops, steps: lax.slice(x, starts, stops, steps),
    "pad": _pad,
}
