"""Element-wise functions with a removable singularity.

Where an argument is singular they first replace it by a harmless one, which keeps NaN out of their
derivatives, and close to it they use a series, whose derivatives do not cancel.
"""

from __future__ import annotations

import math
from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops._operands import constant_like, floating, rounded_once, run, select, terms, wide
from mycel.ops.complex_numbers import absolute_value

__all__ = ["hypot", "sinc", "xdivy", "xlogy"]

# Up to here ten terms of the series of sinc are exact in float64.
_NEAR = 0.25


@fused
@rounded_once
def xlogy(input: Any, other: Any) -> Tensor:
    """Return x * log(y), and 0 where x is 0 and y is not NaN.

    The derivative by x where that is 0 is log(y) for positive y, and 0 for others.

    >>> import mycel as ms
    >>> ms.ops.xlogy(ms.Tensor([0.0, 2.0]), ms.Tensor([0.0, 1.0])).tolist()
    [0.0, 0.0]
    """
    return _times("xlogy", input, other, lambda y: run(E.log, y), E.gt)


@fused
@rounded_once
def xdivy(x: Any, y: Any) -> Tensor:
    """Return x / y, and 0 where x is 0 and y is not NaN.

    The derivative by x where that is 0 is 1 / y, and 0 where y is 0 as well.

    >>> import mycel as ms
    >>> ms.ops.xdivy(ms.Tensor([0.0, 2.0]), ms.Tensor([0.0, 4.0])).tolist()
    [0.0, 0.5]
    """
    return _times("xdivy", x, y, lambda v: 1.0 / v, E.ne)


def _times(name: str, input: Any, other: Any, function: Any, is_inside: Any) -> Tensor:
    """Return x f(y), and 0 where x is 0 and y lies where f has no number: is infinite, or does not
    compare to 0 as `is_inside` says.
    """
    x, y = terms(name, input, other)
    x, y = floating(name, x), floating(name, y)
    is_inside = E.ne if y.dtype.is_complex else is_inside
    finite = run(E.logical_and, run(is_inside, y, constant_like(0.0, y)), run(E.is_finite, y))
    known = run(E.logical_or, finite, run(E.is_nan, y))
    empty = run(E.logical_and, run(E.eq, x, constant_like(0.0, x)), run(E.logical_not, known))
    found = select(empty, 0.0, run(E.mul, x, function(select(empty, 1.0, y))))
    # -0 as 0, with the same derivatives
    return found - run(E.stop_gradient, select(run(E.eq, found, constant_like(0.0, found)), found, 0.0))


@fused
@rounded_once
def hypot(input: Any, other: Any) -> Tensor:
    """Return sqrt(x**2 + y**2) without overflow; the derivative at the origin is 0.

    >>> import mycel as ms
    >>> ms.ops.hypot(ms.Tensor([3.0]), ms.Tensor([4.0])).tolist()
    [5.0]
    """
    a, b = terms("hypot", input, other)
    a, b = run(E.abs_, floating("hypot", a)), run(E.abs_, floating("hypot", b))
    top = run(E.stop_gradient, run(E.maximum, a, b))
    plain = run(E.logical_and, run(E.is_finite, top), run(E.gt, top, constant_like(0.0, top)))
    scale = select(plain, top, 1.0)
    p, q = select(plain, a / scale, 1.0), select(plain, b / scale, 0.0)
    infinite = run(E.logical_or, run(E.is_inf, a), run(E.is_inf, b))
    return select(plain, run(E.sqrt, p * p + q * q) * scale, select(infinite, math.inf, run(E.maximum, a, b)))


@fused
def sinc(input: Any) -> Tensor:
    """Return sin(pi x) / (pi x), and 1 at 0.

    >>> import mycel as ms
    >>> ms.ops.sinc(ms.Tensor([0.0])).tolist()
    [1.0]
    """
    given = floating("sinc", input)
    x = wide(given)
    size = absolute_value(x) if x.dtype.is_complex else run(E.abs_, x)
    small = run(E.lt, size, constant_like(_NEAR, size))
    # sin has the period 2 in x: the rest is exact, so that the zeros are, and no large number is
    # multiplied by pi.
    angle = (x if x.dtype.is_complex else x - 2.0 * run(E.rint, x * 0.5)) * math.pi
    value = run(E.sin, select(small, 1.0, angle)) / select(small, 1.0, x * math.pi)
    # The derivatives of the quotient cancel near 0; those of the series do not.
    near = select(small, x, 0.0) * math.pi
    square, series = near * near, constant_like(0.0, x)
    for k in range(9, -1, -1):
        series = series * square + (-1.0) ** k / math.factorial(2 * k + 1)
    return cast(select(small, series, value), given.dtype)
