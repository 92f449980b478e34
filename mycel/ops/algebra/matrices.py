"""Matrices as operands: their triangles and diagonals, and systems of equations solved by LAPACK's
decompositions.

Matrices are the last two axes; axes before them are a batch. float16, bfloat16 and integers are
computed in float32 and float64 in its own precision.
"""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims.base import broadcast_shapes
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.compiler.prims.linear_algebra import decompositions
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops._operands import (
    broadcast,
    constant_like,
    floating,
    iota,
    operand,
    permuted,
    reshaped,
    run,
    select,
    take_slice,
)
from mycel.ops.complex_numbers import conj


def matrices(name: str, value: Any, square: bool = True) -> Tensor:
    """Return an operand of LAPACK: at least two axes, float32 or wider.

    Raises ShapeError where it has fewer axes or, if it has to be `square`, is not.
    """
    x = floating(name, value)
    if x.dtype.is_floating and x.dtype.itemsize < 4:
        x = cast(x, D.float32)
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        raise ShapeError(
            f"{name}: takes {'square ' if square else ''}matrices in the last two axes, not a tensor of shape {x.shape}"
        )
    return x


def swap(x: Tensor) -> Tensor:
    """Return `x` with its last two axes exchanged."""
    return permuted(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def adjoint_of(x: Tensor) -> Tensor:
    """Return `x` with its last two axes exchanged and complex numbers conjugated."""
    return swap(conj(x)) if x.dtype.is_complex else swap(x)


def triangle(x: Tensor, lower: bool, diagonal: float | None = None) -> Tensor:
    """Return the lower or upper triangle of matrices, with zeros elsewhere.

    The diagonal stays as it is, or is replaced by the number `diagonal`.
    """
    rows, columns = (iota(tuple(x.shape[-2:]), axis, D.int32) for axis in (0, 1))
    kept = select(run(E.gt if lower else E.lt, rows, columns), x, constant_like(0, x))
    return select(run(E.eq, rows, columns), x if diagonal is None else constant_like(diagonal, x), kept)


def diagonal_of(x: Tensor) -> Tensor:
    """Return the diagonals of matrices along a last axis."""
    rows, columns = (iota(tuple(x.shape[-2:]), axis, D.int32) for axis in (0, 1))
    least = min(x.shape[-2:])
    kept = select(run(E.eq, rows, columns), x, constant_like(0, x))
    axis = x.ndim - 2 if x.shape[-2] >= x.shape[-1] else x.ndim - 1
    return take_slice(run(R.reduce_sum, kept, axes=(axis,), keepdims=False), x.ndim - 2, 0, least)


def triangular(a: Tensor, b: Tensor, lower: bool, trans: str = "N", unit: bool = False) -> Tensor:
    """Return the solution x of a x = b for triangular matrices `a`, lower or upper.

    With `trans` "T" the transpose and with "C" the adjoint of `a` is meant; with `unit` its
    diagonal counts as ones. The axes before the last two broadcast, and types meet in their common
    type.
    """
    kind = D.promote(a.dtype, b.dtype)
    a, b = cast(a, kind), cast(b, kind)
    lead = broadcast_lead(a, b)
    a, b = broadcast(a, (*lead, *a.shape[-2:])), broadcast(b, (*lead, *b.shape[-2:]))
    return run(decompositions.triangular_solve, a, b, lower=lower, trans=trans, unit=unit)


def broadcast_lead(a: Tensor, b: Tensor) -> tuple[Any, ...]:
    """Return the shape to which the axes before the last two broadcast."""
    return broadcast_shapes(tuple(a.shape[:-2]), tuple(b.shape[:-2]), name="the batches of the matrices")


def ordered_rows(x: Tensor, order: Tensor) -> Tensor:
    """Return the rows of matrices in the order that `order` names."""
    places = reshaped(order, (*order.shape, 1))
    return run(I.take_along, x, broadcast(places, (*order.shape, x.shape[-1])), axis=x.ndim - 2)


def order_of(name: str, pivots: Any, size: int, first: int = 1) -> Tensor:
    """Return the order of `size` rows after row i was exchanged with row pivots[i], for each i in
    turn.

    Rows in `pivots` count from `first`. `name` is the operation, for errors.
    """
    given = operand(name, pivots)
    if not given.dtype.is_integer:
        raise TypeError(f"{name}: pivots must be integers, not {given.dtype.name}")
    if given.ndim == 0:
        raise ShapeError(f"{name}: pivots must have an axis for the rows, not be a single number")
    given = cast(given, D.int32) - first if first else cast(given, D.int32)
    count = given.shape[-1]
    order = broadcast(iota((size,), 0, D.int32), (*given.shape[:-1], size))
    place = iota((size,), 0, D.int32)
    for k in range(count):
        other = take_slice(given, given.ndim - 1, k, k + 1)
        mine = take_slice(order, order.ndim - 1, k, k + 1)
        its = run(I.take_along, order, other, axis=order.ndim - 1, bounds="front")
        at_other = run(E.eq, place, other)
        order = select(run(E.eq, place, constant_like(k, place)), its, select(at_other, mine, order))
    return order


def decomposed(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the LU decomposition: both triangles in one matrix, the row exchanges counted from 0,
    and the order of the rows.
    """
    packed, pivots, order = run(decompositions.lu, a)
    return packed, pivots, order


def solve(a: Tensor, b: Tensor) -> Tensor:
    """Return the solution x of a x = b for square matrices; types meet in their common type and
    batches broadcast.
    """
    kind = D.promote(a.dtype, b.dtype)
    packed, _, order = decomposed(cast(a, kind))
    lead = broadcast_lead(a, b)
    b = broadcast(cast(b, kind), (*lead, *b.shape[-2:]))
    rows = ordered_rows(b, broadcast(order, (*lead, order.shape[-1])))
    return triangular(packed, triangular(packed, rows, True, unit=True), False)
