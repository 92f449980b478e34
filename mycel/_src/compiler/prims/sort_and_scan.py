"""Sorting, scans (cumulative sums, products and extremes) along an axis, and binary search.

Sorting is stable in both directions. NaN counts as larger than every number, as in the extremes: it
is last in ascending order and first in descending order. Running extremes propagate NaN. Running
sums and products of 16-bit floats accumulate in float32; integers wrap.

The cotangent of cumprod needs the products without one factor. With y = cumprod(x), D = the sum of
ct_j y_j over j >= i, and z the first zero of x, they are y_j / x_i before z, so dx_i = D_i / x_i
there; at z itself they are the products of x with that zero replaced by 1; behind z each holds the
zero, so dx_i = 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive, Rounding, Sample, need_kind, register, same_dtype
from mycel._src.compiler.prims.convolution.conv import _differs
from mycel._src.compiler.prims.elementwise_records import NUMBERS
from mycel._src.compiler.prims.factors import Factor, named, other_axes_factors
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import arguments
from mycel._src.foundation.dtype import int32
from mycel._src.foundation.errors import ShapeError

__all__ = ["cummax", "cummin", "cumprod", "cumsum", "search_sorted", "sort", "top_k"]

Array = np.ndarray[Any, Any]


def _need_axis(name: str, axis: int, x: TensorType) -> None:
    if not 0 <= axis < x.rank:
        raise ShapeError(f"{name}: axis {axis} is not an axis of {x}")


def _need_near(name: str, axis: int, x: TensorType) -> None:
    """Raise an error for an axis too long for the 32-bit positions that sorting holds."""
    size = x.shape[axis]
    if type(size) is int and size > S.FAR:
        raise ShapeError(f"{name}: axis {axis} of {x} has more than {S.FAR} elements; order parts of it, and join them")


def _comparable(x: Any) -> Any:
    """Return `x` in a type that NumPy sorts in the same order, with NaN last."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x


# Sorting.


def _sort_infer(x: TensorType, *, axis: int, descending: bool) -> tuple[TensorType, TensorType]:
    need_kind("sort", "fiub", x)
    _need_axis("sort", axis, x)
    _need_near("sort", axis, x)
    return x, x.with_dtype(int32)


def _sort_reference(x: Any, *, axis: int, descending: bool) -> tuple[Array, Array]:
    key = _comparable(x)
    if descending:
        # Order is reversed by the value, not by the position, so that equal elements keep theirs.
        key = -key if key.dtype.kind == "f" else np.invert(key)
    order = np.argsort(key, axis=axis, kind="stable")
    if descending and key.dtype.kind == "f":
        number = np.take_along_axis(~np.isnan(key), order, axis)
        order = np.take_along_axis(order, np.argsort(number, axis=axis, kind="stable"), axis)
    return np.take_along_axis(x, order, axis), order.astype(np.int32)


def _sort_vjp(ct: Any, out: Any, x: Node, *, axis: int, descending: bool) -> tuple[Node | None]:
    if ct[0] is None:
        return (None,)
    return (I.put_along(S.full(x.shape, 0, x.dtype), out[1], ct[0], axis=axis, mode="add", bounds="drop"),)


def _sort_batch(size: DimLike, values: Sequence[Node], axes: Any, *, axis: int, descending: bool) -> Any:
    return sort(S.move_axis(values[0], axes[0], 0), axis=axis + 1, descending=descending), (0, 0)


# The first few.


def _top_infer(x: TensorType, *, k: DimLike, axis: int, largest: bool) -> tuple[TensorType, TensorType]:
    need_kind("top_k", "fiub", x)
    _need_axis("top_k", axis, x)
    _need_near("top_k", axis, x)
    size = x.shape[axis]
    if type(k) is int and (k < 0 or (type(size) is int and k > size)):
        raise ShapeError(f"top_k: k must lie between 0 and {size}, the size of axis {axis} of {x}, not {k}")
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return tensor_type(shape, x.dtype), tensor_type(shape, int32)


def _top_reference(x: Any, *, k: Any, axis: int, largest: bool) -> tuple[Array, Array]:
    values, order = _sort_reference(x, axis=axis, descending=largest)
    first = (slice(None),) * axis + (slice(0, k),)
    return values[first], order[first]


def _top_vjp(ct: Any, out: Any, x: Node, *, k: DimLike, axis: int, largest: bool) -> tuple[Node | None]:
    return _sort_vjp(ct, out, x, axis=axis, descending=largest)


def _top_batch(size: DimLike, values: Sequence[Node], axes: Any, *, k: DimLike, axis: int, largest: bool) -> Any:
    return top_k(S.move_axis(values[0], axes[0], 0), k=k, axis=axis + 1, largest=largest), (0, 0)


def _top_expand(x: Node, *, k: DimLike, axis: int, largest: bool) -> tuple[Node, ...]:
    return tuple(S.slice_axis(v, axis, 0, k) for v in sort.outputs(x, axis=axis, descending=largest))


# Running reductions.


def _carried(x: Array) -> Any:
    """Return the type in which a running value is kept: float64 for float32."""
    return np.dtype(np.float64) if x.dtype == np.float32 else x.dtype


def _along(function: Callable[[Any, int], Any]) -> Callable[..., Any]:
    def run(x: Any, *, axis: int, reverse: bool) -> Any:
        wide = _comparable(x)
        with np.errstate(all="ignore"):
            if reverse:
                return np.flip(function(np.flip(wide, axis), axis), axis).astype(x.dtype)
            return function(wide, axis).astype(x.dtype)

    return run


def _cumsum_vjp(ct: Node, out: Node, x: Node, *, axis: int, reverse: bool) -> tuple[Node | None]:
    return (cumsum(ct, axis=axis, reverse=not reverse),)


def _cumprod_vjp(ct: Node, out: Node, x: Node, *, axis: int, reverse: bool) -> tuple[Node | None]:
    zero = E.eq(x, 0)
    zeros = cumsum(E.cast(zero, dtype=S.position_type(x.shape[axis])), axis=axis, reverse=reverse)
    first = E.logical_and(zero, E.eq(zeros, 1))
    without = cumprod(E.select(first, 1, x), axis=axis, reverse=reverse)
    before = E.div(cumsum(E.mul(ct, out), axis=axis, reverse=not reverse), E.select(zero, 1, x))
    at_first = cumsum(E.mul(ct, without), axis=axis, reverse=not reverse)
    return (E.select(E.eq(zeros, 0), before, E.select(first, at_first, 0)),)


def _extreme_vjp(ct: Node, out: Node, x: Node, *, axis: int, reverse: bool) -> tuple[Node | None]:
    kind = S.position_type(x.shape[axis])
    position = S.iota(shape=tuple(x.shape), axis=axis, dtype=kind)
    reached = E.eq(x, out)
    if x.dtype.is_inexact:
        reached = E.logical_or(reached, E.is_nan(x))
    if reverse:
        source = cummin(E.select(reached, position, np.iinfo(kind.numpy).max), axis=axis, reverse=True)
    else:
        source = cummax(E.select(reached, position, 0), axis=axis, reverse=False)
    return (I.put_along(S.full(x.shape, 0, x.dtype), source, ct, axis=axis, mode="add", bounds="drop"),)


def _running(
    name: str,
    function: Any,
    vjp: Any,
    kinds: str,
    doc: str,
    rounding: Rounding = Rounding.OWN,
    linear: bool = False,
    holomorphic: bool = False,
) -> Primitive:
    def infer(x: TensorType, *, axis: int, reverse: bool) -> TensorType:
        need_kind(name, kinds, x)
        _need_axis(name, axis, x)
        return x

    def batch(size: DimLike, values: Sequence[Node], axes: Any, *, axis: int, reverse: bool) -> tuple[Node, int]:
        return primitive(S.move_axis(values[0], axes[0], 0), axis=axis + 1, reverse=reverse), 0

    shapes = (((2, 5), 1), ((4, 3), 0), ((2, 3, 2), 1), ((0,), 0), ((1, 1), 0))
    samples = [Sample((s,), {"axis": a, "reverse": r}) for s, a in shapes for r in (False, True)]
    primitive = Primitive(
        name,
        infer,
        _along(function),
        vjp,
        batch,
        None,
        tuple(samples),
        NUMBERS,
        linear=linear,
        holomorphic=holomorphic,
        rounding=rounding,
        factors=lambda node: other_axes_factors(node, (node.params["axis"],)),
        doc=doc,
    )
    return register(primitive)


# Binary search.


def _search_infer(sorted_: TensorType, values: TensorType, *, side: str) -> TensorType:
    arguments.one_of("search_sorted", "side", side, ("left", "right"))
    same_dtype("search_sorted", sorted_, values)
    need_kind("search_sorted", "fiu", values)
    leads = sorted_.shape[:-1], values.shape[:-1]
    if sorted_.rank < 1 or sorted_.rank != values.rank or any(_differs(a, b) for a, b in zip(*leads)):
        raise ShapeError(
            f"search_sorted: the sorted rows {sorted_} and the values {values} must agree except in their last axis"
        )
    return tensor_type(values.shape, S.position_type(sorted_.shape[-1]))


def _search_factors(node: Node) -> tuple[Factor, ...]:
    lead = range(node.type.rank - 1)
    return named(node, [lead, (*lead, "value")], [(*lead, "value")])


def _search_reference(sorted_: Any, values: Any, *, side: Any) -> Array:
    rows, wanted = _comparable(sorted_), _comparable(values)
    result = np.zeros(values.shape, S.position_type(sorted_.shape[-1]).numpy)
    for lead in np.ndindex(values.shape[:-1]):
        result[lead] = np.searchsorted(rows[lead], wanted[lead], side)
    return result


def _search_expand(sorted_: Node, values: Node, *, side: str) -> Node:
    rank = values.type.rank
    row = S.reshape(sorted_, (*sorted_.shape[:-1], 1, sorted_.shape[-1]))
    value = S.reshape(values, (*values.shape, 1))
    before = E.lt(row, value) if side == "left" else E.le(row, value)
    if values.dtype.is_floating:
        beyond = E.is_nan(value)
        if side == "left":
            beyond = E.logical_and(beyond, E.logical_not(E.is_nan(row)))
        before = E.logical_or(before, beyond)
    count = E.cast(before, dtype=S.position_type(sorted_.shape[-1]))
    return R.reduce_sum(count, axes=(rank,), keepdims=False)


def _search_batch(size: DimLike, values: Sequence[Node], axes: Any, *, side: str) -> tuple[Node, int]:
    return search_sorted(*[I._front(v, a, size) for v, a in zip(values, axes)], side=side), 0


sort: Primitive = register(
    Primitive(
        "sort",
        _sort_infer,
        _sort_reference,
        _sort_vjp,
        _sort_batch,
        samples=tuple(
            Sample((s,), {"axis": a, "descending": d})
            for s, a in (((7,), 0), ((3, 5), 1), ((4, 3), 0), ((2, 0), 1))
            for d in (False, True)
        ),
        dtypes=(*NUMBERS, "bool"),
        factors=lambda node: other_axes_factors(node, (node.params["axis"],)),
        doc="The sorted values along an axis and their int32 positions; stable in both directions, NaN above every "
        "number.",
    )
)
top_k: Primitive = register(
    Primitive(
        "top_k",
        _top_infer,
        _top_reference,
        _top_vjp,
        _top_batch,
        _top_expand,
        samples=tuple(
            Sample((s,), {"k": k, "axis": a, "largest": largest})
            for s, k, a in (
                ((7,), 3, 0),
                ((3, 5), 5, 1),
                ((4, 3), 1, 0),
                ((2, 3), 0, 1),
                ((2, 0), 0, 1),
                ((2, 90), 2, 1),
            )
            for largest in (False, True)
        ),
        dtypes=(*NUMBERS, "bool"),
        factors=lambda node: other_axes_factors(node, (node.params["axis"],)),
        doc="The k first of the sorted values along an axis and their int32 positions, as `sort` gives them.",
    )
)
cumsum: Primitive = _running(
    "cumsum",
    lambda x, axis: np.cumsum(x, axis, _carried(x)),
    _cumsum_vjp,
    "fiuc",
    "Running sums along an axis.",
    Rounding.SUM,
    linear=True,
)
cumprod: Primitive = _running(
    "cumprod",
    lambda x, axis: np.cumprod(x, axis, _carried(x)),
    E.in_floats(_cumprod_vjp),
    "fiuc",
    "Running products along an axis.",
    Rounding.SUM,
    holomorphic=True,
)
cummax: Primitive = _running(
    "cummax",
    np.maximum.accumulate,
    _extreme_vjp,
    "fiu",
    "Running maxima along an axis; the nearest of equals takes the derivative.",
)
cummin: Primitive = _running(
    "cummin",
    np.minimum.accumulate,
    _extreme_vjp,
    "fiu",
    "Running minima along an axis; the nearest of equals takes the derivative.",
)
search_sorted: Primitive = register(
    Primitive(
        "search_sorted",
        _search_infer,
        _search_reference,
        lambda ct, out, *_, **__: (None, None),
        _search_batch,
        _search_expand,
        samples=tuple(
            Sample(
                (np.sort(np.arange(8.0) % 5).reshape(1, 8).repeat(2, 0).astype(t), (2, 3)), {"side": s}, dtypes=(t, t)
            )
            for s in ("left", "right")
            for t in ("float32", "float64", "int32")
        )
        + (Sample(((0,), (3,)), {"side": "left"}), Sample(((1,), (4,)), {"side": "right"})),
        dtypes=NUMBERS,
        factors=_search_factors,
        doc="For each value, the int32 position in the ascending row at which it would keep the row sorted.",
    )
)
