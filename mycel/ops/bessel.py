"""Bessel functions of orders 0 and 1, as Chebyshev polynomials times known factors.

Up to a bound (8; 1.25 for K) the series of the functions are entire in w = x^2 / 4: A_n(w) = sum
s^k w^k / (k! (k+n)!) gives J_n (s = -1) and I_n (s = 1) as (x/2)^n A_n (for I_n summed as it is),
and B_n, with psi(k+1) + psi(k+n+1) in each term, gives Y_n and K_n (Abramowitz and Stegun, 9.1.10,
9.1.11, 9.6.10, 9.6.11). Beyond it, K_n and the Hankel function are exp(..) / sqrt(x) times a smooth
function of 1/x, an integral over a Gaussian (9.6.23), and I_n is the mean of exp(x cos t) cos(n t).
The tables are the interpolating polynomials of these, computed when a function is first used: the
series in 40 decimal digits, the integrals by the trapezoidal rule, which converges geometrically
for them. Both branches are computed and one is selected, so that everything is differentiable.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import cache
from typing import Any

import numpy as np

from mycel._src.compiler.prims import elementwise as E
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops._operands import constant_like, floating, run, select, wide

__all__ = [
    "bessel_i0",
    "bessel_i0e",
    "bessel_i1",
    "bessel_i1e",
    "bessel_j0",
    "bessel_j1",
    "bessel_k0",
    "bessel_k0e",
    "bessel_k1",
    "bessel_k1e",
    "bessel_y0",
    "bessel_y1",
    "i0",
]

EULER = Decimal("0.57721566490153286060651209008240243104215933593992")
BOUND = 8.0
BOUND_K = 1.25


def _series(order: int, sign: int, with_psi: bool, w: float) -> float:
    """Return A_n(w), or B_n(w) `with_psi`."""
    with localcontext() as context:
        context.prec = 40
        term, total, point = Decimal(1), Decimal(0), Decimal(float(w))
        psi = -2 * EULER + order
        for k in range(80):
            total += term * psi if with_psi else term
            term *= sign * point / ((k + 1) * (k + 1 + order))
            psi += Decimal(1) / (k + 1) + Decimal(1) / (k + 1 + order)
        return float(total)


@cache
def _near(order: int, sign: int, with_psi: bool, bound: float) -> tuple[float, ...]:
    """Return the Chebyshev coefficients of A_n or B_n for x up to `bound`, over w scaled to [-1,
    1].
    """
    half = bound * bound / 8
    values = np.vectorize(lambda t: _series(order, sign, with_psi, (t + 1) * half))
    return tuple(np.polynomial.chebyshev.chebinterpolate(values, 24).tolist())


def _gaussian_integral(order: int, x: Any) -> Any:
    """Return sqrt(2 x / pi) exp(x) K_n(x) for x away from the negative axis.

    It is the integral of exp(-v^2) v^(2n) (1 + v^2 / 2x)^(n - 1/2).
    """
    v = np.arange(0, 7, 0.125)
    weight = np.exp(-v * v) * v ** (2 * order) * 0.25 / math.gamma(order + 0.5)
    weight[0] /= 2
    return (weight * (1 + v * v / (2 * np.asarray(x)[..., None])) ** (order - 0.5)).sum(-1)


@cache
def _far(kind: str, order: int) -> tuple[float, ...]:
    """Return the Chebyshev coefficients for x beyond the bound, over bound / x scaled to [-1, 1].

    `kind` says of which function: K, I, or the parts P and Q of the Hankel function.
    """

    def values(t: Any) -> Any:
        x = (BOUND_K if kind == "K" else BOUND) * 2 / (t + 1)
        if kind == "K":
            return _gaussian_integral(order, x)
        if kind == "I":
            angle = (np.arange(6000) + 0.5) * (math.pi / 6000)
            whole = np.exp(-2 * x[..., None] * np.sin(angle / 2) ** 2) * np.cos(order * angle)
            return np.sqrt(x) * whole.mean(-1)
        found = _gaussian_integral(order, -1j * x)
        return found.real if kind == "P" else found.imag

    return tuple(np.polynomial.chebyshev.chebinterpolate(values, 32).tolist())


def _chebyshev(table: tuple[float, ...], t: Tensor) -> Tensor:
    """Evaluate a Chebyshev series by Clenshaw's recurrence."""
    twice = t + t
    last, before = constant_like(table[-1], t), constant_like(0.0, t)
    for c in table[-2:0:-1]:
        last, before = twice * last - before + c, last
    return t * last - before + table[0]


def _powers(order: int, w: Tensor) -> Tensor:
    """Return A_n(w) for s = 1. Its terms are all positive, so that the sum loses no digits."""
    total = constant_like(0.0, w)
    for k in range(26, -1, -1):
        total = total * w + 1 / (math.factorial(k) * math.factorial(k + order))
    return total


def _parts(x: Tensor, bound: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return whether x is near, x where it is near, its scaled square, and x where it is far.

    No x is negative.
    """
    near = run(E.le, x, constant_like(bound, x))
    low = select(near, x, constant_like(bound / 2, x))
    return near, low, low * low * (2 / (bound * bound)) - 1.0, select(near, constant_like(2 * bound, x), x)


def _log_half(x: Tensor) -> Tensor:
    """Return log(x / 2), where the half of a subnormal number would lose its last digit."""
    small = run(E.lt, x, constant_like(1.0, x))
    return run(E.log, x * select(small, constant_like(1.0, x), 0.5)) - select(
        small, constant_like(math.log(2.0), x), 0.0
    )


def _modified(order: int, x: Tensor, scaled: bool) -> Tensor:
    size = run(E.abs_, x)
    near = run(E.le, size, constant_like(BOUND, x))
    low = select(near, x, constant_like(BOUND / 2, x))
    high = select(near, constant_like(2 * BOUND, x), size)
    small = _powers(order, low * low * 0.25)
    large = _chebyshev(_far("I", order), 2 * BOUND / high - 1.0) * run(E.rsqrt, high)
    if order:
        small = small * low * 0.5
        large = large * run(E.sign, x)
    if scaled:
        return select(near, small * run(E.exp, -run(E.abs_, low)), large)
    # exp in two halves, which does not overflow before the result does.
    half = run(E.exp, high * 0.5)
    return select(near, small, large * half * half)


def _second_modified(order: int, x: Tensor, scaled: bool) -> Tensor:
    near, low, t, high = _parts(x, BOUND_K)
    first = _chebyshev(_near(order, 1, False, BOUND_K), t)
    rest = _chebyshev(_near(order, 1, True, BOUND_K), t)
    log = _log_half(low)
    small = rest * 0.5 - log * first if order == 0 else 1.0 / low + (log * first - rest * 0.5) * low * 0.5
    large = _chebyshev(_far("K", order), 2 * BOUND_K / high - 1.0) * run(E.rsqrt, high) * math.sqrt(math.pi / 2)
    found = select(near, small * run(E.exp, low) if scaled else small, large if scaled else large * run(E.exp, -high))
    return select(run(E.eq, x, constant_like(0.0, x)), math.inf, found)


def _wave(order: int, high: Tensor) -> tuple[Tensor, Tensor]:
    """Return J_n and Y_n for large x, from the amplitude and the phase of the Hankel function."""
    t = 2 * BOUND / high - 1.0
    p, q = _chebyshev(_far("P", order), t), _chebyshev(_far("Q", order), t)
    finite = select(run(E.is_inf, high), 1.0, high)
    sine, cosine = run(E.sin, finite), run(E.cos, finite)
    # x less pi/4 (3 pi/4 for order 1) without rounding the difference.
    turned = (cosine + sine, sine - cosine) if order == 0 else (sine - cosine, -(sine + cosine))
    scale = run(E.rsqrt, high) * math.sqrt(1 / math.pi)
    return (turned[0] * p - turned[1] * q) * scale, (turned[1] * p + turned[0] * q) * scale


def _first(order: int, x: Tensor) -> Tensor:
    size = run(E.abs_, x)
    near = run(E.le, size, constant_like(BOUND, x))
    low = select(near, x, constant_like(BOUND / 2, x))
    small = _chebyshev(_near(order, -1, False, BOUND), low * low * (2 / (BOUND * BOUND)) - 1.0)
    large = _wave(order, select(near, constant_like(2 * BOUND, x), size))[0]
    return select(near, small * low * 0.5, large * run(E.sign, x)) if order else select(near, small, large)


def _second(order: int, x: Tensor) -> Tensor:
    near, low, t, high = _parts(x, BOUND)
    first = _chebyshev(_near(order, -1, False, BOUND), t)
    rest = _chebyshev(_near(order, -1, True, BOUND), t)
    small = (2 * _log_half(low) * first - rest) * (1 / math.pi)
    if order:
        small = small * low * 0.5 - (2 / math.pi) / low
    return select(run(E.eq, x, constant_like(0.0, x)), -math.inf, select(near, small, _wave(order, high)[1]))


def _function(
    name: str, compute: Callable[[Tensor], Tensor], summary: str, shown: str, at: str = "1.0", parameter: str = "x"
) -> Callable[[Any], Tensor]:
    def result(value: Any) -> Tensor:
        given = floating(name, value)
        return cast(compute(wide(given)), given.dtype)

    def of_x(x: Any) -> Tensor:
        return result(x)

    def of_input(input: Any) -> Tensor:
        return result(input)

    function = of_x if parameter == "x" else of_input
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{summary}

    The result has the floating type of the argument; float32 for integers. Abramowitz and Stegun,
    chapter 9.

    >>> import mycel as ms
    >>> round(ms.ops.{name}(ms.Tensor([{at}])).item(), 4)
    {shown}
    """
    return fused(function)


bessel_i0 = _function(
    "bessel_i0",
    lambda x: _modified(0, x, False),
    "Return the modified Bessel function of the first kind, order 0.",
    "1.2661",
)
bessel_i0e = _function("bessel_i0e", lambda x: _modified(0, x, True), "Return exp(-|x|) times `bessel_i0`.", "0.4658")
bessel_i1 = _function(
    "bessel_i1",
    lambda x: _modified(1, x, False),
    "Return the modified Bessel function of the first kind, order 1.",
    "0.5652",
)
bessel_i1e = _function("bessel_i1e", lambda x: _modified(1, x, True), "Return exp(-|x|) times `bessel_i1`.", "0.2079")
bessel_k0 = _function(
    "bessel_k0",
    lambda x: _second_modified(0, x, False),
    "Return the modified Bessel function of the second kind, order 0; inf at 0, NaN below.",
    "0.421",
)
bessel_k0e = _function(
    "bessel_k0e", lambda x: _second_modified(0, x, True), "Return exp(x) times `bessel_k0`.", "1.1445"
)
bessel_k1 = _function(
    "bessel_k1",
    lambda x: _second_modified(1, x, False),
    "Return the modified Bessel function of the second kind, order 1; inf at 0, NaN below.",
    "0.6019",
)
bessel_k1e = _function(
    "bessel_k1e", lambda x: _second_modified(1, x, True), "Return exp(x) times `bessel_k1`.", "1.6362"
)
bessel_j0 = _function(
    "bessel_j0", lambda x: _first(0, x), "Return the Bessel function of the first kind, order 0.", "0.7652"
)
bessel_j1 = _function(
    "bessel_j1", lambda x: _first(1, x), "Return the Bessel function of the first kind, order 1.", "0.4401"
)
bessel_y0 = _function(
    "bessel_y0",
    lambda x: _second(0, x),
    "Return the Bessel function of the second kind, order 0; -inf at 0, NaN below.",
    "0.0883",
)
bessel_y1 = _function(
    "bessel_y1",
    lambda x: _second(1, x),
    "Return the Bessel function of the second kind, order 1; -inf at 0, NaN below.",
    "-0.7812",
)
i0 = _function(
    "i0",
    lambda x: _modified(0, x, False),
    "Return the modified Bessel function of the first kind, order 0.",
    "1.2661",
    parameter="input",
)
