"""Norms of vectors, of any order, and the powers and roots that they are made of.

A norm has a derivative everywhere but where all elements are 0. There it is said to be 0, as that
of an absolute value at 0 is, and so are all further ones. Elements that are 0 add nothing to the
derivative of an order below 1, for which it would be infinite.

Norms are finite wherever the type can hold them: float64 holds the squares, and the powers up to
the sixth, of every number of fewer bits; for other orders, and of float64, the elements are divided
by the largest before.
"""

from __future__ import annotations

import math
from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError, operation_called
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops._operands import all_axes, axis_of, constant_like, floating, reshaped, run, select, wide
from mycel.ops.complex_numbers import absolute_value

__all__ = ["norm", "power", "root", "vector_norm"]

# The largest whole order whose powers of every float32 are ordinary numbers of float64, and that of
# float16 in float32.
_SQUARED = 6
_HALVES = 4


def power(x: Tensor, order: float) -> Tensor:
    """Return x ** order.

    Where the derivative of the formula at 0 is infinite, or a further one of an order that is not
    whole, it is 0.
    """
    if order == 2.0:
        return run(E.mul, x, x)
    if order > 2.0 and order == int(order):
        return run(E.pow_, x, constant_like(order, x))
    empty = run(E.eq, x, constant_like(0.0, x))
    # The inner choice keeps infinities out of the derivative of the outer one.
    return select(empty, 0.0, run(E.pow_, select(empty, 1.0, x), constant_like(order, x)))


def root(total: Tensor, order: float) -> Tensor:
    """Return total ** (1 / order), with derivative 0 where `total` is 0."""
    empty = run(E.eq, total, constant_like(0.0, total))
    safe = select(empty, 1.0, total)
    found = run(E.sqrt, safe) if order == 2.0 else run(E.pow_, safe, constant_like(1.0 / order, safe))
    return select(empty, 0.0, found)


def magnitudes(x: Tensor) -> Tensor:
    """Return the absolute values of real or complex numbers."""
    return absolute_value(x) if x.dtype.is_complex else run(E.abs_, x)


def _total(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    return run(R.reduce_sum, x, axes=axes, keepdims=keep)


def _signed(x: Tensor, order: float) -> Tensor:
    """Return what has the same powers of an order: the numbers themselves, or their magnitudes.

    At 0 the derivative of a magnitude is said to be 0, and so is that of its square's.
    """
    return x if order > 0 and order % 2 == 0 else run(E.abs_, x)


def _scaled(x: Tensor, order: float, axes: tuple[int, ...], keep: bool) -> Tensor:
    """Return the norm of numbers as that of their quotients by the magnitude that decides it.

    That is the largest, or for a negative order the smallest, by which the norm is 0 if that is.
    """
    extreme = R.reduce_max if order > 0 else R.reduce_min
    size = _signed(x, order)
    top = run(E.stop_gradient, run(extreme, run(E.abs_, x), axes=axes, keepdims=True))
    zero = constant_like(0.0, top)
    scale = select(run(E.logical_and, run(E.is_finite, top), run(E.gt, top, zero)), top, 1.0)
    if order > 0:
        found = root(_total(power(run(E.div, size, scale), order), axes, True), order)
    else:
        empty = run(E.eq, top, zero)
        total = _total(run(E.pow_, select(empty, 1.0, run(E.div, size, scale)), constant_like(order, size)), axes, True)
        found = select(empty, 0.0, run(E.pow_, total, constant_like(1.0 / order, total)))
    found = run(E.mul, found, scale)
    return found if keep else reshaped(found, R.reduced_shape(size._type, axes, False))


@fused
def vector_norm(x: Any, ord: Any = 2, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the norm ``sum(|x| ** ord) ** (1 / ord)`` over `axis` (None: all axes).

    The derivative of any order at 0 is 0. Norms of complex numbers are real.

    Args:
        x (Tensor): The tensor.
        ord (int | float | str | None): Any number; 0 counts, inf and -inf are the extremes.
            Default: 2.
        axis (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        keepdims (bool): Whether the axes stay with size 1. Default: False.
        dtype (DType | None): The type to compute in; None for that of `x`. Default: None.

    Returns:
        Tensor: The norms, real of complex numbers.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.vector_norm(ms.Tensor([3.0, 4.0])).item()
        5.0
    """
    value = floating("vector_norm", x)
    value = value if dtype is None else cast(value, D.from_any(dtype))
    value = absolute_value(value) if value.dtype.is_complex else value
    axes, full = all_axes("vector_norm", axis, value.ndim), wide(value)
    try:
        order = float(ord)
    except (TypeError, ValueError):
        raise TypeError(f"vector_norm: ord must be a number, not {ord!r}") from None
    keep = keepdims if isinstance(keepdims, bool) else arguments.flag(operation_called(), "keepdims", keepdims)
    if order == 0.0:
        result = _total(cast(run(E.stop_gradient, cast(full, D.bool_)), full.dtype), axes, keep)
    elif order == 1.0:
        result = _total(run(E.abs_, full), axes, keep)
    elif math.isinf(order):
        result = run(R.reduce_max if order > 0 else R.reduce_min, run(E.abs_, full), axes=axes, keepdims=keep)
    elif order in range(2, _SQUARED + 1) and full.dtype is D.float32:
        if value.dtype is not D.float16 or order > _HALVES:
            full = cast(full, D.float64)
        result = root(_total(power(_signed(full, order), order), axes, keep), order)
    else:
        result = _scaled(full, order, axes, keep)
    return cast(result, value.dtype)


@fused
def norm(A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the norm of the vectors of `A` (`dim` is one axis, or None for all elements) or of its
    matrices (`dim` is two axes).

    Without `ord` it is the 2-norm of all elements over `dim`. For vectors `ord` is any number; for
    matrices it is "fro", 1 or -1 (column sums), or inf or -inf (row sums). `keepdim` keeps the axes
    at size 1; `dtype` is the type to which `A` is converted first. Raises ValueError for other
    orders.

    >>> import mycel as ms
    >>> ms.ops.norm(ms.Tensor([[3.0], [4.0]])).item()
    5.0
    """
    x = floating("norm", A)
    axes = tuple(dim) if isinstance(dim, (tuple, list)) else None if dim is None else (dim,)
    if ord is None or (axes is not None and len(axes) == 1) or (axes is None and x.ndim == 1):
        if isinstance(ord, str):
            raise ValueError(f"norm: ord {ord!r} is a norm of matrices; give two axes in dim")
        return vector_norm(x, 2 if ord is None else ord, axes, keepdim, dtype=dtype)
    if axes is None and x.ndim != 2 or axes is not None and len(axes) != 2:
        raise ShapeError(
            f"norm: with ord {ord!r} dim must name one or two axes of a tensor of {x.ndim} dimensions, not {dim}"
        )
    rows, columns = (axis_of("norm", a, x.ndim) for a in (axes or (0, 1)))
    if ord == "fro":
        return vector_norm(x, 2, (rows, columns), keepdim, dtype=dtype)
    if ord not in (1, -1, math.inf, -math.inf):
        raise ValueError(f"norm: ord {ord!r} is not supported for matrices; use None, 'fro', 1, -1, inf or -inf")
    x = x if dtype is None else cast(x, D.from_any(dtype))
    added, chosen = (rows, columns) if ord in (1, -1) else (columns, rows)
    totals = run(R.reduce_sum, magnitudes(wide(x)), axes=(added,), keepdims=True)
    result = run(R.reduce_max if ord > 0 else R.reduce_min, totals, axes=(chosen,), keepdims=True)
    gone = tuple(sorted((rows, columns)))
    result = result if keepdim else reshaped(result, R.reduced_shape(x._type, gone, False))
    return result if x.dtype.is_complex else cast(result, x.dtype)
