"""Sequences and polynomials under NumPy's names: convolution, differences, phases, and polynomials
by their coefficients (highest power first).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as _numpy

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.numpy._operands import as_axis, as_kind, asarray, check_flags
from mycel.numpy.math import cov
from mycel.ops._operands import axis_of, one_by_one

__all__ = [
    "convolve",
    "corrcoef",
    "correlate",
    "cross",
    "ediff1d",
    "gradient",
    "polyadd",
    "polyder",
    "polyint",
    "polymul",
    "polysub",
    "unwrap",
]


def _float(x: Tensor) -> Tensor:
    return x if x.dtype.is_floating or x.dtype.is_complex else cast(x, D.float32)


def _vectors(name: str, a: Any, v: Any) -> tuple[Tensor, Tensor]:
    first, second = asarray(a), asarray(v)
    kind = D.promote(first.dtype, second.dtype)
    for x in (first, second):
        if x.ndim != 1 or x.shape[0] == 0:
            raise ValueError(f"{name}: both operands must be vectors that are not empty, not of shape {tuple(x.shape)}")
    return cast(first, kind), cast(second, kind)


def _slide(long: Tensor, short: Tensor, before: int, after: int) -> Tensor:
    """Return sum_j long[i + j] * short[j], with zeros beyond the ends of `long`."""
    if long.dtype.is_floating:
        row = ops.pad(long.reshape((1, 1, -1)), (before, after))
        return ops.conv1d(row, short.reshape((1, 1, -1))).reshape((-1,))
    ends = [ops.zeros((n,), long.dtype) for n in (before, after)]
    row = ops.concat((ends[0], long, ends[1]))
    width = short.shape[0]
    places = ops.expand_dims(ops.arange(row.shape[0] - width + 1), 1) + ops.arange(width)
    return cast(ops.sum(ops.gather(row, places, 0) * short, -1), long.dtype)


def _correlated(name: str, a: Tensor, v: Tensor, mode: str) -> Tensor:
    """Return sum_n a[n + k] * v[n] for the shifts k of a mode; `v` is not longer than `a`."""
    reach = v.shape[0] - 1
    arguments.one_of(name, "mode", mode, ("full", "same", "valid"))
    before = reach if mode == "full" else 0 if mode == "valid" else v.shape[0] // 2
    after = before if mode != "same" else reach - before
    return _slide(a, v, before, after)


def convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    """Return the convolution sum_m a[m] v[n - m] of two vectors.

    `mode` "full" returns all of it, "same" its middle of the longer vector's length, and "valid"
    the part that needs no zeros beyond the ends.

    >>> import mycel.numpy as mnp
    >>> mnp.convolve([1, 2, 3], [0, 1, 2]).tolist()
    [0, 1, 4, 7, 6]
    """
    first, second = _vectors("convolve", ops.atleast_1d(asarray(a)), ops.atleast_1d(asarray(v)))
    long, short = (first, second) if first.shape[0] >= second.shape[0] else (second, first)
    return _correlated("convolve", long, ops.flip(short, (0,)), mode)


def correlate(a: Any, v: Any, mode: str = "valid") -> Tensor:
    """Return the correlation sum_n a[n + k] v[n] of two vectors, with `v` conjugated if complex.

    `mode` is that of `convolve`. The result for integers is float32.

    >>> import mycel.numpy as mnp
    >>> mnp.correlate([1, 2, 3], [0, 1, 2]).tolist()
    [8.0]
    """
    arguments.text("correlate", "mode", mode)
    first, second = (_float(x) for x in _vectors("correlate", a, v))
    second = ops.conj(second) if second.dtype.is_complex else second
    if first.shape[0] >= second.shape[0]:
        return _correlated("correlate", first, second, mode)
    return ops.flip(_correlated("correlate", second, first, mode), (0,))


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, dtype: Any = None) -> Tensor:
    """Return Pearson's correlation coefficients of the variables in `x` and `y`.

    Args:
        x (Tensor | float | list | tuple): Variables; None for none.
        y (Tensor | float | list | tuple | None): More variables. Default: None.
        rowvar (bool): Whether rows are variables instead of columns. Default: True.
        dtype (DType | None): The type of the result. Default: None.

    Returns:
        Tensor: (variables, variables).

    Examples:
        >>> import mycel.numpy as mnp
        >>> [round(v, 4) for v in mnp.corrcoef([1.0, 2.0, 4.0], [3.0, 2.0, 1.0])[0].tolist()]
        [1.0, -0.982]
    """
    check_flags("corrcoef", rowvar=rowvar)
    spread = cov(_float(asarray(x)), None if y is None else _float(asarray(y)), rowvar)
    if spread.ndim == 0:
        return as_kind(spread / spread, dtype)
    deviation = ops.sqrt(ops.diagonal(spread))
    made = spread / ops.expand_dims(deviation, 1) / ops.expand_dims(deviation, 0)
    return as_kind(ops.clamp(made, -1.0, 1.0), dtype)


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Tensor:
    """Return the cross products of vectors of 2 or 3 numbers.

    A missing third number is 0; two vectors of 2 numbers give only the third number.

    Args:
        a (Tensor | float | list | tuple): Vectors.
        b (Tensor | float | list | tuple): Vectors.
        axisa (int): The axis of the vectors of `a`. Default: -1.
        axisb (int): The axis of the vectors of `b`. Default: -1.
        axisc (int): The axis of the vectors of the result. Default: -1.
        axis (int | None): Replaces the three. Default: None.

    Returns:
        Tensor: The products.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.cross([1, 2, 3], [4, 5, 6]).tolist()
        [-3, 6, -3]
    """
    axisa, axisb, axisc = map(as_axis, (axis, axis, axis) if axis is not None else (axisa, axisb, axisc))
    for parameter, value in (("axisa", axisa), ("axisb", axisb), ("axisc", axisc)):
        arguments.integer("cross", parameter, value)
    first, second = ops.moveaxis(asarray(a), axisa, -1), ops.moveaxis(asarray(b), axisb, -1)
    sizes = first.shape[-1], second.shape[-1]
    if any(size not in (2, 3) for size in sizes):
        raise ValueError(f"cross: vectors have 2 or 3 numbers, not {sizes[0]} and {sizes[1]}")
    a0, a1 = first[..., 0], first[..., 1]
    b0, b1 = second[..., 0], second[..., 1]
    last = a0 * b1 - a1 * b0
    if sizes == (2, 2):
        return last
    a2 = first[..., 2] if sizes[0] == 3 else ops.zeros_like(a0)
    b2 = second[..., 2] if sizes[1] == 3 else ops.zeros_like(b0)
    return ops.moveaxis(ops.stack((a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, last), -1), -1, axisc)


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Tensor:
    """Return the differences of neighbours of the flattened array, with `to_begin` before and
    `to_end` behind.

    >>> import mycel.numpy as mnp
    >>> mnp.ediff1d([1, 2, 4], to_begin=9).tolist()
    [9, 1, 2]
    """
    x = ops.ravel(asarray(ary))
    ends = [None if v is None else cast(ops.ravel(asarray(v)), x.dtype) for v in (to_begin, to_end)]
    parts = [v for v in (ends[0], ops.diff(x) if x.shape[0] else x, ends[1]) if v is not None]
    return ops.concat(parts)


def _slope(f: Tensor, spacing: Any, axis: int, edge_order: int) -> Tensor:
    count = f.shape[axis]
    if count < edge_order + 1:
        raise ValueError(f"gradient: axis {axis} needs at least {edge_order + 1} points, not {count}")
    y = ops.moveaxis(f, axis, -1)
    if isinstance(spacing, (int, float)) or spacing.ndim == 0:
        inner = (y[..., 2:] - y[..., :-2]) / (2.0 * spacing)
        first, last = y[..., 1:2] - y[..., :1], y[..., -1:] - y[..., -2:-1]
        if edge_order == 2:
            first = -1.5 * y[..., :1] + 2.0 * y[..., 1:2] - 0.5 * y[..., 2:3]
            last = 1.5 * y[..., -1:] - 2.0 * y[..., -2:-1] + 0.5 * y[..., -3:-2]
        first, last = first / spacing, last / spacing
    else:
        if spacing.shape != (count,):
            raise ValueError(f"gradient: {tuple(spacing.shape)} coordinates for {count} points along axis {axis}")
        step = cast(ops.diff(spacing), y.dtype)
        rise = (y[..., 1:] - y[..., :-1]) / step
        before, after = step[:-1], step[1:]
        inner = (rise[..., :-1] * after + rise[..., 1:] * before) / (before + after)
        first, last = rise[..., :1], rise[..., -1:]
        if edge_order == 2:
            bend = (rise[..., 1:] - rise[..., :-1]) / (before + after)
            first, last = first - bend[..., :1] * step[:1], last + bend[..., -1:] * step[-1:]
    return ops.moveaxis(ops.concat((first, inner, last), -1), -1, axis)


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Tensor | list[Tensor]:
    """Return slopes of sampled values along axes by central differences, one-sided of order
    `edge_order` (1 or 2) at the ends.

    The result is a list of tensors, or one tensor for one axis.

    Args:
        f (Tensor | float | list | tuple): The values.
        *varargs (Tensor | float | list | tuple): One distance for all axes, or for each axis a
            distance or the coordinates of its points.
        axis (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        edge_order (int): 1 or 2. Default: 1.

    Returns:
        Tensor | list[Tensor]: The slopes; a list for several axes.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.gradient([1, 2, 4, 7]).tolist()
        [1.0, 1.5, 2.5, 3.0]
    """
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: edge_order must be 1 or 2, not {edge_order!r}")
    x = _float(asarray(f))
    axes = tuple(range(x.ndim)) if axis is None else tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple(axis_of("gradient", k, x.ndim) for k in axes)
    spacings = [v if isinstance(v, (int, float)) else asarray(v) for v in (varargs or (1.0,))]
    if len(spacings) not in (1, len(axes)):
        raise TypeError(f"gradient: {len(spacings)} distances for {len(axes)} axes")
    spacings = spacings * len(axes) if len(spacings) == 1 else spacings
    made = [_slope(x, h, k % x.ndim, edge_order) for h, k in zip(spacings, axes)]
    return made[0] if len(made) == 1 else made


def unwrap(p: Any, discont: float = math.pi, axis: int = -1) -> Tensor:
    """Return continuous phases: jumps of more than `discont` (at least pi) along an axis are
    replaced by their complement to 2 pi.

    >>> import mycel.numpy as mnp
    >>> [round(v, 4) for v in mnp.unwrap([0.0, 6.0]).tolist()]
    [0.0, -0.2832]
    """
    x = _float(asarray(p))
    axis = axis_of("unwrap", axis, x.ndim)
    if x.shape[axis] == 0:
        return x
    y = ops.moveaxis(x, axis, -1)
    jump = y[..., 1:] - y[..., :-1]
    near = ops.floor_mod(jump + math.pi, 2 * math.pi) - math.pi
    near = ops.where(ops.logical_and(ops.equal(near, -math.pi), ops.greater(jump, 0)), math.pi, near)
    mend = ops.where(ops.less(ops.abs(jump), discont), 0.0, near - jump)
    # Whole turns: they do not change with the phases.
    made = y[..., 1:] + ops.cumsum(ops.stop_gradient(mend), -1)
    return ops.moveaxis(ops.concat((y[..., :1], cast(made, y.dtype)), -1), -1, axis)


def _coefficients(name: str, p: Any) -> Tensor:
    x = ops.atleast_1d(asarray(p))
    if x.ndim != 1:
        raise ValueError(f"{name}: coefficients must be a vector, not of shape {tuple(x.shape)}")
    return x


def _aligned(name: str, a1: Any, a2: Any) -> tuple[Tensor, Tensor]:
    first, second = _coefficients(name, a1), _coefficients(name, a2)
    kind, count = D.promote(first.dtype, second.dtype), max(first.shape[0], second.shape[0])
    made = [ops.concat((ops.zeros((count - x.shape[0],), kind), cast(x, kind))) for x in (first, second)]
    return made[0], made[1]


def polyadd(a1: Any, a2: Any) -> Tensor:
    """Return the coefficients of the sum of two polynomials.

    >>> import mycel.numpy as mnp
    >>> mnp.polyadd([1, 2], [9, 5, 4]).tolist()
    [9, 6, 6]
    """
    first, second = _aligned("polyadd", a1, a2)
    return ops.add(first, second)


def polysub(a1: Any, a2: Any) -> Tensor:
    """Return the coefficients of the difference of two polynomials.

    >>> import mycel.numpy as mnp
    >>> mnp.polysub([2, 10, -2], [3, 10, -4]).tolist()
    [-1, 0, 2]
    """
    first, second = _aligned("polysub", a1, a2)
    return ops.sub(first, second)


def polymul(a1: Any, a2: Any) -> Tensor:
    """Return the coefficients of the product of two polynomials.

    >>> import mycel.numpy as mnp
    >>> mnp.polymul([1, 2], [9, 5, 4]).tolist()
    [9, 23, 14, 8]
    """
    return convolve(_coefficients("polymul", a1), _coefficients("polymul", a2))


def _order(name: str, m: int) -> int:
    arguments.integer(name, "m", m, 0, numpy=False)
    return one_by_one(name, "steps", m)


def polyder(p: Any, m: int = 1) -> Tensor:
    """Return the coefficients of the m-th derivative of a polynomial.

    >>> import mycel.numpy as mnp
    >>> mnp.polyder([1, 1, 1, 1], 2).tolist()
    [6, 2]
    """
    x = _coefficients("polyder", p)
    degree, order = x.shape[0] - 1, _order("polyder", m)
    if order > degree:
        return ops.zeros((0,), _float(x).dtype)
    factors = [math.prod(range(k - order + 1, k + 1)) for k in range(degree, order - 1, -1)]
    return x[: degree + 1 - order] * Tensor(_numpy.asarray(factors)).astype(x.dtype)


def polyint(p: Any, m: int = 1, k: Any = None) -> Tensor:
    """Return the coefficients of the m-th integral of a polynomial.

    `k` has the constants of integration: one for each integral, one for all, or None for zeros.

    >>> import mycel.numpy as mnp
    >>> mnp.polyint([2.0, 1.0], k=3.0).tolist()
    [1.0, 1.0, 3.0]
    """
    x = _float(_coefficients("polyint", p))
    order = _order("polyint", m)
    given = ops.zeros((1,), x.dtype) if k is None else cast(ops.atleast_1d(asarray(k)), x.dtype)
    if given.shape[0] not in (1, order) and order:
        raise ValueError(f"polyint: k must be one number or {order}, not {given.shape[0]}")
    for step in range(order):
        powers = Tensor(_numpy.arange(x.shape[0], 0, -1)).astype(x.dtype)
        x = ops.concat((x / powers, given[step : step + 1] if given.shape[0] > 1 else given))
    return x
