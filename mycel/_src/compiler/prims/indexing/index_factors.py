"""The factors of gather and scatter: reads and writes at positions that are data.

The axes of indices are divided as any other. Writes at some of the positions are combined with
those at the others, unless the last one stays (`mode` "set"), which is no factor; what is written
to counts in the first part only.

The axis that is indexed is divided as well, into stretches of rows. Each part then has all indices.
It checks them against the whole axis, and drops those that name rows of others: reads give 0 there,
and are summed, and writes are left to the part that has the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Optional

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import constant
from mycel._src.compiler.prims.factors import ANYTHING, Factor, named, starts_by_axis

if TYPE_CHECKING:
    from mycel._src.compiler.ir.dims import DimLike
    from mycel._src.compiler.ir.graph import Node

__all__ = [
    "along_factors",
    "along_part",
    "checked_factors",
    "nd_factors",
    "nd_part",
    "take_add_factors",
    "take_add_part",
    "take_factors",
    "take_part",
]

Starts = Sequence[Optional["Node"]]
# How writes at some of the positions are combined with those at others.
_COMBINE = {"add": "sum", "mul": "prod", "max": "max", "min": "min"}


def checked_factors(node: Node) -> tuple[Factor, ...]:
    """Return a factor for each axis of the indices."""
    axes = range(node.type.rank)
    return named(node, [axes], [axes], padding=dict.fromkeys(axes, (0,)))


def _of_others(indices: Node, start: Node, size: DimLike, own: DimLike, axis: int, bounds: str) -> Node:
    """Return indices into the part of an axis that begins at `start` and has `own` of `size` rows.

    Those of other rows are `own`, which is to be dropped. `axis` and `bounds` are for the check.
    """
    whole, rows = constant(size, indices.dtype), constant(own, indices.dtype)
    start = start if start.dtype is indices.dtype else E.cast(start, dtype=indices.dtype)
    front = _checked(indices, size, axis, bounds)
    front = E.select(E.lt(front, 0), E.add(front, whole), front)
    local = E.sub(front, start)
    here = E.logical_and(E.logical_and(E.ge(front, start), E.lt(local, rows)), E.lt(front, whole))
    return E.select(here, local, rows)


def _checked(indices: Node, size: DimLike, axis: int, bounds: str) -> Node:
    from mycel._src.compiler.prims.indexing.index import checked

    return indices if bounds == "drop" else checked(indices, axis=axis, size=size, bounds=bounds)


def _counted_once(whole: Node, x: Node, starts: Starts) -> Node:
    """Return what is written to, in parts but the first one the neutral element of the mode."""
    mode = whole.params["mode"]
    for factor, start in zip(whole.prim.factors(whole) if whole.prim and whole.prim.factors else (), starts):
        if start is not None and factor.combine and mode in ("add", "mul"):
            x = E.select(E.eq(start, 0), x, 0 if mode == "add" else 1)
    return x


# take and take_add.


def take_factors(node: Node) -> tuple[Factor, ...]:
    """Return the axes of the rows, of the indices, and the one that is indexed."""
    x, indices = node.inputs
    axis, places = node.params["axis"], [("index", k) for k in range(indices.type.rank)]
    labels = [("row", a) for a in range(x.type.rank)]
    return named(
        node,
        [labels, places],
        [[*labels[:axis], *places, *labels[axis + 1 :]]],
        {labels[axis]: "sum"},
        padding={**dict.fromkeys(places, (None, 0)), labels[axis]: (ANYTHING, None)},
    )


def take_part(whole: Node, inputs: Any, params: Any, starts: Starts) -> Node:
    """Return the sum's share of the part that has some of the rows.

    `whole`, `inputs`, `params` and `starts` are those of `Primitive.part`.
    """
    axis, bounds = params["axis"], params.get("bounds", "wrap")
    start = starts_by_axis(whole, starts, 0).get(axis)
    assert whole.prim is not None
    if start is None:
        return whole.prim(*inputs, **params)
    x, indices = inputs
    local = _of_others(indices, start, whole.inputs[0].shape[axis], x.shape[axis], axis, bounds)
    return whole.prim(x, local, axis=axis, bounds="drop")


def take_add_factors(node: Node) -> tuple[Factor, ...]:
    """Return the axes of the rows, of the indices, which are summed, and of the rows' positions."""
    axis, places = node.params["axis"], [("index", k) for k in range(node.inputs[1].type.rank)]
    labels = [("row", a) for a in range(node.type.rank)]
    return named(
        node,
        [[*labels[:axis], *places, *labels[axis + 1 :]], places],
        [labels],
        dict.fromkeys(places, "sum"),
        {labels[axis]: (("size", -1),)},
        dict.fromkeys(places, (None, 0)),
    )


def take_add_part(whole: Node, inputs: Any, params: Any, starts: Starts) -> Node:
    """Return the rows of the part.

    `whole`, `inputs`, `params` and `starts` are those of `Primitive.part`.
    """
    axis, bounds = params["axis"], params.get("bounds", "wrap")
    start = starts_by_axis(whole, starts).get(axis)
    assert whole.prim is not None
    if start is None:
        return whole.prim(*inputs, **params)
    local = _of_others(inputs[1], start, whole.params["size"], params["size"], axis, bounds)
    return whole.prim(inputs[0], local, axis=axis, size=params["size"], bounds="drop")


# take_along and put_along.


def along_factors(node: Node) -> tuple[Factor, ...]:
    """Return all axes; rows and indices have different ones along the axis that is indexed."""
    axis, mode = node.params["axis"], node.params.get("mode")
    rows = list(range(node.inputs[0].type.rank))
    places: list[Any] = ["index" if a == axis else a for a in rows]
    if mode is None:
        padding: Any = {**dict.fromkeys(places, (None, 0)), axis: (ANYTHING, None)}
        return named(node, [rows, places], [places], {axis: "sum"}, padding=padding)
    if mode not in _COMBINE:
        places[axis] = None
    padding = dict.fromkeys(places, (None, 0, None))
    return named(node, [rows, places, places], [rows], {"index": _COMBINE.get(mode, "")}, padding=padding)


def along_part(whole: Node, inputs: Any, params: Any, starts: Starts) -> Node:
    """Return what is read of the part's rows, or the part's rows after the writes.

    `whole`, `inputs`, `params` and `starts` are those of `Primitive.part`.
    """
    assert whole.prim is not None
    params, (x, indices, *updates) = dict(params), inputs
    axis = params["axis"]
    start = starts_by_axis(whole, starts, 0).get(axis)
    if start is not None:
        size, bounds = whole.inputs[0].shape[axis], params.get("bounds", "wrap")
        indices = _of_others(indices, start, size, x.shape[axis], axis, bounds)
        params["bounds"] = "drop"
    if updates:
        x = _counted_once(whole, x, starts)
    return whole.prim(x, indices, *updates, **params)


# gather_nd and scatter_nd.


def nd_factors(node: Node) -> tuple[Factor, ...]:
    """Return the axes of x, the first of which are indexed, and those of the indices."""
    x, indices = node.inputs[:2]
    depth, mode = indices.shape[-1], node.params.get("mode")
    rows = [("row", a) for a in range(x.type.rank)]
    places: list[Any] = [("index", k) for k in range(indices.type.rank - 1)]
    inside, rest = rows[:depth], rows[depth:]
    if mode is None:
        padding: Any = {**dict.fromkeys(places, (None, 0)), **dict.fromkeys(inside, (ANYTHING, None))}
        return named(node, [rows, places], [[*places, *rest]], dict.fromkeys(inside, "sum"), padding=padding)
    combine = dict.fromkeys(places, _COMBINE.get(mode, ""))
    if mode not in _COMBINE:
        places = [None] * len(places)
    padding = dict.fromkeys(places, (None, 0, None))
    return named(node, [rows, places, [*places, *rest]], [rows], combine, padding=padding)


def nd_part(whole: Node, inputs: Any, params: Any, starts: Starts) -> Node:
    """Return what is read of the part's rows, or the part's rows after the writes.

    `whole`, `inputs`, `params` and `starts` are those of `Primitive.part`.
    """
    assert whole.prim is not None
    params, (x, indices, *updates) = dict(params), inputs
    last = indices.type.rank - 1
    divided = {a: s for a, s in starts_by_axis(whole, starts, 0).items() if a < indices.shape[-1]}
    if divided:
        bounds = params.get("bounds", "wrap")
        columns = []
        for a in range(indices.shape[-1]):
            column, size = S.slice_axis(indices, last, a, a + 1), whole.inputs[0].shape[a]
            if a in divided:
                columns.append(_of_others(column, divided[a], size, x.shape[a], a, bounds))
            else:
                columns.append(_checked(column, size, a, bounds))
        indices, params["bounds"] = S.concat(columns, last), "drop"
    if updates:
        x = _counted_once(whole, x, starts)
    return whole.prim(x, indices, *updates, **params)
