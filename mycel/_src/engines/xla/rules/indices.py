"""XLA rules of gather, scatter and other accesses at positions that are data.

What an index out of range does is decided by `bounds` (see `prims.indexing.index`). XLA knows no
errors: an index out of range reads 0 and writes nothing, and the scope notes it, so that the
program raises the error when it ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mycel._src.compiler.ir.graph import Node
from mycel._src.engines.xla.binding import jnp, lax
from mycel._src.engines.xla.rules.elementwise import narrow

__all__ = ["RULES"]

_METHODS = {"add": "add", "mul": "multiply", "max": "max", "min": "min"}


def _inside(scope: Any, node: Node, indices: Any, axis: int, size: int, bounds: str) -> tuple[Any, Any]:
    """Return indices counted from the front, as int64, and whether each is in range."""
    front = indices.astype(jnp.int64)
    if bounds != "front" and indices.dtype.kind == "i":
        front = jnp.where(front < 0, front + size, front)
    valid = (front >= 0) & (front < size)
    if bounds != "drop":
        scope.check(node, valid, indices, axis, size, bounds == "wrap")
    return front, valid


def _several(scope: Any, node: Node, x: Any, indices: Any, bounds: str) -> tuple[list[Any], Any]:
    pairs = [_inside(scope, node, indices[..., k], k, x.shape[k], bounds) for k in range(indices.shape[-1])]
    valid = pairs[0][1]
    for _, other in pairs[1:]:
        valid = valid & other
    return [front for front, _ in pairs], valid


def _over(mask: Any, rank: int) -> Any:
    return mask.reshape(mask.shape + (1,) * (rank - mask.ndim))


def _checked(scope: Any, node: Node, indices: Any, *, axis: int, size: int, bounds: str = "wrap") -> Any:
    _inside(scope, node, indices, axis, size, bounds)
    return indices


def _gather_nd(scope: Any, node: Node, x: Any, indices: Any, *, bounds: str = "wrap") -> Any:
    depth = indices.shape[-1]
    fronts, valid = _several(scope, node, x, indices, bounds)
    if 0 in x.shape[:depth]:
        return jnp.zeros(indices.shape[:-1] + x.shape[depth:], x.dtype)
    found = x[tuple(jnp.where(valid, f, 0) for f in fronts)]
    return jnp.where(_over(valid, found.ndim), found, jnp.zeros((), x.dtype))


def _take(scope: Any, node: Node, x: Any, indices: Any, *, axis: int, bounds: str = "wrap") -> Any:
    size = x.shape[axis]
    front, valid = _inside(scope, node, indices, axis, size, bounds)
    if not size:
        return jnp.zeros(x.shape[:axis] + indices.shape + x.shape[axis + 1 :], x.dtype)
    found = jnp.take(x, jnp.where(valid, front, 0), axis=axis)
    return jnp.where(_over(valid, x.ndim - axis - 1 + valid.ndim), found, jnp.zeros((), x.dtype))


def _write(x: Any, places: list[Any], valid: Any, updates: Any, mode: str) -> Any:
    """Return `x` with updates written at places along its first axes, where they are valid."""
    depth, count = len(places), math.prod(valid.shape)
    if not count or 0 in x.shape:
        return x
    at = tuple(jnp.where(valid, p, x.shape[k]) for k, p in enumerate(places))
    if mode != "set":
        wide = x.astype(jnp.float32) if narrow(x) else x
        written = getattr(wide.at[at], _METHODS[mode])(updates.astype(wide.dtype), mode="drop")
        return written.astype(x.dtype)
    # XLA leaves open which of several writes stays: the one with the largest number shall.
    number = lax.iota(jnp.int64, count).reshape(valid.shape)
    last = jnp.full(x.shape[:depth], -1, jnp.int64).at[at].max(number, mode="drop")
    found = updates.reshape((count, *x.shape[depth:]))[jnp.maximum(last, 0)]
    return jnp.where(_over(last >= 0, x.ndim), found, x)


def _scatter_nd(scope: Any, node: Node, x: Any, indices: Any, updates: Any, *, mode: str, bounds: str = "wrap") -> Any:
    fronts, valid = _several(scope, node, x, indices, bounds)
    return _write(x, fronts, valid, updates, mode)


def _take_add(scope: Any, node: Node, ct: Any, indices: Any, *, axis: int, size: int, bounds: str = "wrap") -> Any:
    front, valid = _inside(scope, node, indices, axis, size, bounds)
    rows = jnp.moveaxis(ct, range(axis, axis + indices.ndim), range(indices.ndim))
    zeros = jnp.zeros((size, *rows.shape[indices.ndim :]), ct.dtype)
    return jnp.moveaxis(_write(zeros, [front], valid, rows, "add"), 0, axis)


RULES: dict[str, Callable[..., Any]] = {
    "checked": _checked,
    "gather_nd": _gather_nd,
    "scatter_nd": _scatter_nd,
    "take": _take,
    "take_add": _take_add,
}
