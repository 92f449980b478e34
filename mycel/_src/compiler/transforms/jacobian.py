"""Jacobians: derivatives along all directions of a basis at once, by `transforms.vmap`.

Rows come from pulling back the unit vectors of an output, columns from pushing forward those of an
input. Both give, for an output of shape s and an input of shape t, a node of shape s + t.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mycel._src.compiler.ir.graph import Node, input_node
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.transforms.grad import Own, vjp
from mycel._src.compiler.transforms.jvp import jvp
from mycel._src.compiler.transforms.vmap import batch
from mycel._src.foundation.dtype import int64

__all__ = ["basis", "columns", "rows"]


def basis(like: Node) -> Node:
    """Return the unit vectors of a node's type, stacked along a new first axis."""
    size: Any = math.prod(like.shape)
    row, column = (S.iota(shape=(size, size), axis=axis, dtype=int64) for axis in (0, 1))
    return S.reshape(E.cast(E.eq(row, column), dtype=like.dtype), (size, *like.shape))


def _along_basis(results: Sequence[Node | None], direction: Node) -> list[Node | None]:
    """Return `results` for every unit vector in place of `direction`, along a new first axis.

    `results` are linear in `direction`.
    """
    size: Any = math.prod(direction.shape)
    present = [r for r in results if r is not None]
    found = iter(batch(present, {direction: (basis(direction), 0)}, size))
    whole: list[Node | None] = []
    for r in results:
        if r is None:
            whole.append(None)
            continue
        value, axis = next(found)
        spread = S.broadcast_to(value, (size, *r.shape)) if axis is None else S.move_axis(value, axis, 0)
        whole.append(spread)
    return whole


def rows(output: Node, wrt: Sequence[Node], own: Own | None = None) -> list[Node | None]:
    """Return the Jacobians of an output by each of `wrt`, computed row by row.

    A Jacobian is None where the output does not depend on the node. `own` replaces rules as in
    `transforms.grad.vjp`.
    """
    seed = input_node(output.type, "cotangent")
    found = _along_basis(vjp([output], [seed], wrt, own), seed)
    return [None if f is None else S.reshape(f, (*output.shape, *w.shape)) for f, w in zip(found, wrt)]


def columns(outputs: Sequence[Node], by: Node) -> list[Node | None]:
    """Return the Jacobians of each output by one node, computed column by column.

    A Jacobian is None where the output does not depend on the node.
    """
    seed = input_node(by.type, "tangent")
    found = _along_basis(jvp(outputs, [by], [seed])[1], seed)
    return [
        None if f is None else S.reshape(S.move_axis(f, 0, f.type.rank - 1), (*o.shape, *by.shape))
        for f, o in zip(found, outputs)
    ]
