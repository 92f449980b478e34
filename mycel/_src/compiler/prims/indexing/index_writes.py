"""Scatter: the NumPy reference and the derivatives of writes at positions that are data.

With a = the value at a place, u = an update that is written there, the cotangents are:

    set   da = 0 where written          du = ct at the place for the update that stays, else 0
    add   da = ct                       du = ct at the place
    mul   da = ct * product of u        du = ct * a * product of the other u
    max   da and du share ct equally among those that equal the result; min likewise
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import DimLike, product
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.foundation.dtype import float64, int32

__all__ = ["MODES", "write_at", "write_vjp"]

Shape = tuple[DimLike, ...]
MODES = ("set", "add", "mul", "max", "min")
_WRITE: dict[str, Any] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def write_at(x: Any, where: Any, updates: Any, mode: str) -> Any:
    """Return a copy of `x` with `updates` written at the positions `where`, in order.

    `where` is an index as NumPy takes it; `mode` is one of `MODES`, the way in which an update is
    combined with the value at its place.
    """
    narrow = x.dtype.itemsize == 2 and x.dtype.kind not in "iu"
    result = x.astype(np.float32) if narrow else x.copy()
    with np.errstate(all="ignore"):
        if mode == "set":
            result[where] = updates
        else:
            _WRITE[mode].at(result, where, updates.astype(result.dtype))
    return result.astype(x.dtype)


def write_vjp(
    ct: Node,
    out: Node,
    x: Node,
    updates: Node,
    mode: str,
    slots: Shape,
    writes: Shape,
    gather: Callable[[Node], Node],
    scatter: Callable[[Node, Node, str], Node],
) -> tuple[Node | None, Node | None]:
    """Return the cotangents of `x`, which is written to, and of `updates`.

    `ct` is the cotangent of the result `out`. `slots` is the shape of the places that an index can
    name, the leading axes of `x`; `writes` is the shape of the indices, the leading axes of
    `updates`. `gather(value)` reads `value` at the same indices, and `scatter(base, updates, mode)`
    writes there; `mode` is that of the operation.
    """
    if mode == "add":
        return ct, gather(ct)
    if mode == "set":
        number = S.reshape(S.iota(shape=(product(writes),), axis=0, dtype=int32), writes)
        last = gather(scatter(S.full(slots, -1, int32), number, "set"))
        stays = S.reshape(E.eq(last, number), (*writes, *(1,) * (updates.type.rank - len(writes))))
        zeros = S.full(updates.shape, 0, ct.dtype)
        return scatter(ct, zeros, "set"), E.select(stays, gather(ct), 0)
    if not x.dtype.is_inexact:
        a, b, c, d = [E.cast(n, dtype=float64) for n in (ct, out, x, updates)]
        by_x, by_updates = write_vjp(a, b, c, d, mode, slots, writes, gather, scatter)
        assert by_x is not None and by_updates is not None
        return E.cast(by_x, dtype=x.dtype), E.cast(by_updates, dtype=x.dtype)
    if mode == "mul":
        ones = S.full(x.shape, 1, x.dtype)
        zero = E.eq(updates, 0)
        zeros = gather(scatter(S.full(x.shape, 0, x.dtype), E.cast(zero, dtype=x.dtype), "add"))
        rest = gather(scatter(ones, E.select(zero, 1, updates), "mul"))
        alone = E.select(E.eq(zeros, 1), rest, 0)
        others = E.select(zero, alone, E.select(E.eq(zeros, 0), E.div(rest, E.select(zero, 1, updates)), 0))
        return E.mul(ct, scatter(ones, updates, "mul")), E.mul(gather(E.mul(ct, x)), others)
    kept = E.cast(E.eq(x, out), dtype=x.dtype)
    hit = E.cast(E.eq(updates, gather(out)), dtype=x.dtype)
    share = E.div(ct, scatter(kept, hit, "add"))
    return E.mul(share, kept), E.mul(gather(share), hit)
