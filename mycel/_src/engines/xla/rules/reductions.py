"""XLA rules of reductions, scans and sorting. 16-bit floats accumulate in float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.engines.xla.binding import jnp, lax
from mycel._src.engines.xla.rules.elementwise import is_floating, wide

__all__ = ["RULES"]


def _reduction(name: str, typed: bool = False) -> Callable[..., Any]:
    def rule(x: Any, *, axes: tuple[int, ...], keepdims: bool) -> Any:
        kind = {"dtype": x.dtype} if typed else {}
        return getattr(jnp, name)(x, axis=tuple(axes), keepdims=keepdims, **kind)

    return wide(rule)


def _extreme(name: str, end: float) -> Callable[..., Any]:
    """Return the rule of a maximum or minimum; of no elements it is the `end` of the type."""

    def start(x: Any) -> Any:
        if is_floating(x):
            return end
        if x.dtype.kind == "b":
            return end > 0
        limits = np.iinfo(x.dtype)
        return np.asarray(limits.max if end > 0 else limits.min, x.dtype)[()]

    def rule(x: Any, *, axes: tuple[int, ...], keepdims: bool) -> Any:
        return getattr(jnp, name)(x, axis=tuple(axes), keepdims=keepdims, initial=start(x))

    return wide(rule)


def _position(name: str) -> Callable[..., Any]:
    return wide(lambda x, *, axis: getattr(jnp, name)(x, axis).astype(jnp.int32))


def _running(name: str) -> Callable[..., Any]:
    return wide(lambda x, *, axis, reverse: getattr(lax, name)(x, axis=axis, reverse=reverse))


def _sort(x: Any, *, axis: int, descending: bool) -> tuple[Any, Any]:
    """Stable in both directions; NaN is larger than every number, and equal to other NaN."""
    places = lax.broadcasted_iota(jnp.int32, x.shape, axis)
    if not descending:
        found = lax.sort((x, places), dimension=axis, is_stable=True, num_keys=1)
        return found[0], found[1]
    if is_floating(x):
        # The order is reversed by the value, as equal elements keep theirs.
        key = jnp.where(jnp.isnan(x), -jnp.inf, -x.astype(jnp.float32 if x.dtype.itemsize == 2 else x.dtype))
        first = jnp.where(jnp.isnan(x), 0, 1).astype(jnp.int32)
        _, _, order = lax.sort((first, key, places), dimension=axis, is_stable=True, num_keys=2)
    else:
        _, order = lax.sort((jnp.invert(x), places), dimension=axis, is_stable=True, num_keys=1)
    return jnp.take_along_axis(x, order, axis), order


RULES: dict[str, Callable[..., Any]] = {
    "reduce_sum": _reduction("sum", True),
    "reduce_prod": _reduction("prod", True),
    "reduce_max": _extreme("max", -np.inf),
    "reduce_min": _extreme("min", np.inf),
    "reduce_all": _reduction("all"),
    "reduce_any": _reduction("any"),
    "argmax": _position("argmax"),
    "argmin": _position("argmin"),
    "cumsum": _running("cumsum"),
    "cumprod": _running("cumprod"),
    "cummax": _running("cummax"),
    "cummin": _running("cummin"),
    "sort": _sort,
}
