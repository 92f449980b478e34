"""The gamma function's relatives: incomplete, multivariate and polygamma functions, and Hurwitz's
zeta function.

`zeta` sums its first terms and adds the others by the Euler-Maclaurin formula. Each incomplete
gamma function is an integral: with t = x e^(-+s) the smaller of the two is x^a e^-x / gamma(a)
times the integral over s >= 0 of exp(-h(s)), where h is convex, h(0) = 0, and h'(0) = |x - a|. It
is cut off where h is 37 and computed by Gauss-Legendre quadrature. For a < 1 this is done at a + 1,
and the recurrence leads back. Everything consists of elementary functions, so that derivatives by
every operand are those of the integral.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims.base import broadcast_shapes
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast
from mycel.ops._operands import (
    broadcast,
    constant_like,
    floating,
    one_by_one,
    operand,
    operands,
    reshaped,
    run,
    select,
    wide,
)

__all__ = ["igamma", "igammac", "mvlgamma", "polygamma", "population_count", "zeta"]

TERMS = 12
SHIFTS = 32
NODES = 48
# Bernoulli numbers of even index from 2 on.
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)


def _hurwitz(s: Tensor, q: Tensor) -> Tensor:
    """Return the sum over k >= 0 of (q + k)^-s, for s > 1 and q > 0."""
    total = run(E.pow_, q, -s)
    for k in range(1, TERMS):
        total = total + run(E.pow_, q + float(k), -s)
    w = q + float(TERMS)
    last = run(E.pow_, w, -s)
    total = total + last * w / (s - 1.0) + last * 0.5
    factor, square = s * last / w, 1.0 / (w * w)
    for j, bernoulli in enumerate(BERNOULLI):
        total = total + factor * (bernoulli / math.factorial(2 * j + 2))
        factor = factor * (s + (2.0 * j + 1)) * (s + (2.0 * j + 2)) * square
    return total


def _shifted(s: Tensor, q: Tensor) -> Tensor:
    """Return `_hurwitz` for whole s and for q above -SHIFTS that is not whole: the terms at q, q +
    1, ... below 1 are added one by one.
    """
    steps = run(E.maximum, -run(E.floor, q), constant_like(0.0, q))
    total = _hurwitz(s, q + steps)
    odd = run(E.ne, s - 2.0 * run(E.floor, s * 0.5), constant_like(0.0, s))
    for k in range(SHIFTS):
        wanted = run(E.gt, steps, constant_like(float(k), steps))
        term = select(wanted, q + float(k), 1.0)
        power = run(E.pow_, run(E.abs_, term), -s) * select(run(E.logical_and, odd, term < 0.0), -1.0, 1.0)
        total = total + select(wanted, power, 0.0)
    return total


@fused
def zeta(input: Any, other: Any) -> Tensor:
    """Return Hurwitz's zeta function: the sum over k >= 0 of (other + k)^-input.

    It is inf where `input` is 1 or a term is infinite, and NaN for `input` below 1, and for `other`
    below 0 where `input` is not whole or `other` is below -32. Operands broadcast.

    >>> import mycel as ms
    >>> round(ms.ops.zeta(ms.Tensor([2.0]), ms.Tensor([1.0])).item(), 4)
    1.6449
    """
    a, b = operands("zeta", input, other)
    s, q = floating("zeta", a), floating("zeta", b)
    kind = s.dtype
    s, q = wide(s), wide(q)
    shape = broadcast_shapes(s.shape, q.shape)
    s, q = broadcast(s, shape), broadcast(q, shape)
    one, none = constant_like(1.0, s), constant_like(0.0, q)
    usable, pole = run(E.gt, s, one), run(E.eq, s, one)
    infinite = run(E.logical_and, run(E.le, q, none), run(E.eq, q, run(E.floor, q)))
    negative = run(E.lt, q, none)
    whole = run(E.eq, s, run(E.floor, s))
    beyond = run(E.lt, q, constant_like(-float(SHIFTS), q))
    bad = run(E.logical_and, negative, run(E.logical_or, run(E.logical_not, whole), beyond))
    bad = run(E.logical_or, run(E.logical_and, bad, run(E.logical_not, infinite)), run(E.lt, s, one))
    plain = run(E.logical_and, usable, run(E.logical_not, run(E.logical_or, infinite, bad)))
    found = _shifted(select(plain, s, 2.0), select(plain, q, 1.0))
    return cast(
        select(plain, found, select(run(E.logical_and, bad, run(E.logical_not, pole)), math.nan, math.inf)), kind
    )


@fused
def polygamma(n: Any, input: Any) -> Tensor:
    """Return the `n`-th derivative of `digamma` at each element, (-1)^(n+1) n! zeta(n + 1, x)
    (Abramowitz and Stegun, 6.4.10).

    `n` is a whole number of at least 0, or a tensor of integers that broadcasts with the input. The
    result is NaN below -32.

    >>> import mycel as ms
    >>> round(ms.ops.polygamma(ms.Tensor(1), ms.Tensor([1.0])).item(), 4)
    1.6449
    """
    x = floating("polygamma", input)
    order = operand("polygamma", n)
    if not order.dtype.is_integer:
        raise TypeError(f"polygamma: n must be an integer, not {order.dtype.name}")
    kind = x.dtype
    x = wide(x)
    order = cast(order, x.dtype)
    shape = broadcast_shapes(order.shape, x.shape)
    order, x = broadcast(order, shape), broadcast(x, shape)
    even = run(E.eq, order, 2.0 * run(E.floor, order * 0.5))
    size = run(E.exp, run(E.lgamma, order + 1.0)) * zeta(select(order > 0.0, order, 1.0) + 1.0, x)
    return cast(select(run(E.eq, order, constant_like(0.0, order)), run(E.digamma, x), select(even, -size, size)), kind)


@fused
def mvlgamma(input: Any, p: int) -> Tensor:
    """Return the logarithm of the multivariate gamma function of dimension `p`.

    It is p(p - 1)/4 log pi plus the sum over j < p of lgamma(x - j/2).

    >>> import mycel as ms
    >>> round(ms.ops.mvlgamma(ms.Tensor([3.0]), 2).item(), 4)
    1.5502
    """
    arguments.integer("mvlgamma", "p", p)
    x = floating("mvlgamma", input)
    arguments.integer("mvlgamma", "p", p, 1, numpy=False, error=ValueError)
    one_by_one("mvlgamma", "terms", p)
    total = run(E.lgamma, x)
    for j in range(1, p):
        total = total + run(E.lgamma, x - 0.5 * j)
    return total + p * (p - 1) / 4 * math.log(math.pi)


def _incomplete(name: str, input: Any, other: Any, upper: bool) -> Tensor:
    a, x = operands(name, input, other)
    a, x = floating(name, a), floating(name, x)
    kind = a.dtype
    a, x = wide(a), wide(x)
    shape = broadcast_shapes(a.shape, x.shape)
    a, x = broadcast(a, shape), broadcast(x, shape)
    zero, endless = constant_like(0.0, x), constant_like(math.inf, x)
    inside = run(E.logical_and, run(E.gt, a, zero), run(E.gt, x, zero))
    inside = run(E.logical_and, inside, run(E.logical_and, run(E.lt, a, endless), run(E.lt, x, endless)))
    a0, x0 = select(inside, a, 1.0), select(inside, x, 1.0)
    small = run(E.lt, a0, constant_like(1.0, a0))
    raised = select(small, a0 + 1.0, a0)
    log_factor = raised * run(E.log, x0) - x0 - run(E.lgamma, raised)
    above = run(E.gt, x0, raised)
    tail = run(E.exp, log_factor) * _tail(raised, x0, above)
    # P(a, x) = P(a + 1, x) + x^a e^-x / gamma(a + 1).
    step = select(small, run(E.exp, log_factor - run(E.log, x0)), 0.0)
    if upper:
        found = select(above, tail, 1.0 - tail) - step
    else:
        found = select(above, 1.0 - tail, tail) + step
    # What is left: x = 0, x = inf, a = 0, a = inf; the rest is no number.
    at_zero, at_end = (1.0, 0.0) if upper else (0.0, 1.0)
    valid = run(E.logical_and, run(E.ge, a, zero), run(E.ge, x, zero))
    started = run(E.logical_or, run(E.eq, x, zero), run(E.eq, a, endless))
    both = run(
        E.logical_or,
        run(E.logical_and, run(E.eq, a, zero), run(E.eq, x, zero)),
        run(E.logical_and, run(E.eq, a, endless), run(E.eq, x, endless)),
    )
    edge = select(run(E.logical_or, run(E.logical_not, valid), both), math.nan, select(started, at_zero, at_end))
    return cast(select(inside, found, edge), kind)


def _tail(a: Tensor, x: Tensor, above: Tensor) -> Tensor:
    """Return the integral of exp(-h(s)) over s >= 0, with h(s) = x (e^(+-s) - 1) -+ a s.

    The upper sign is taken where x is above a.
    """
    free_a, free_x = run(E.stop_gradient, a), run(E.stop_gradient, x)
    signed = select(above, 1.0, constant_like(-1.0, x))
    # Newton's method from the right for h(s) = 37, h being convex and increasing.
    slope = run(E.abs_, free_x - free_a)
    end = 37.0 / run(E.maximum, slope, run(E.maximum, free_a * 0.08, constant_like(0.5, a)))
    bend = run(E.sqrt, 2 * 37.0 / run(E.maximum, free_x, constant_like(1e-3, x)))
    end = run(E.minimum, end, select(above, bend, end))
    for _ in range(6):
        power = run(E.exp, signed * end)
        height = free_x * (power - 1.0) - signed * free_a * end
        rate = signed * (free_x * power - free_a)
        end = end + (37.0 - height) / run(E.maximum, rate, constant_like(1e-6, rate))
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    lead = (*a.shape, 1)
    place = as_tensor((nodes + 1) / 2, a.dtype)
    weight = as_tensor(weights / 2, a.dtype)
    end_, a_, x_, way = reshaped(end, lead), reshaped(a, lead), reshaped(x, lead), reshaped(signed, lead)
    s = end_ * place * way
    height = x_ * run(E.expm1, s) - a_ * s
    total = run(R.reduce_sum, run(E.exp, -height) * weight, axes=(len(lead) - 1,), keepdims=False)
    return total * end


@fused
def igamma(input: Any, other: Any) -> Tensor:
    """Return the regularized lower incomplete gamma function P(input, other). Abramowitz and
    Stegun, 6.5.1.

    Operands broadcast. The result is NaN where an operand is negative.

    >>> import mycel as ms
    >>> round(ms.ops.igamma(ms.Tensor([1.0]), ms.Tensor([1.0])).item(), 4)
    0.6321
    """
    return _incomplete("igamma", input, other, False)


@fused
def igammac(input: Any, other: Any) -> Tensor:
    """Return the regularized upper incomplete gamma function, 1 - `igamma`, exact where it is
    small.

    >>> import mycel as ms
    >>> round(ms.ops.igammac(ms.Tensor([1.0]), ms.Tensor([1.0])).item(), 4)
    0.3679
    """
    return _incomplete("igammac", input, other, True)


_UNSIGNED = {1: D.uint8, 2: D.uint16, 4: D.uint32, 8: D.uint64}


@fused
def population_count(input_x: Any) -> Tensor:
    """Return the number of bits that are 1 in each integer, as uint8.

    Raises TypeError for tensors of other types.

    >>> import mycel as ms
    >>> ms.ops.population_count(ms.Tensor([0, 3, 255], ms.int16)).tolist()
    [0, 2, 8]
    """
    x = operand("population_count", input_x)
    if not x.dtype.is_integer:
        raise TypeError(f"population_count: takes integers, not {x.dtype.name}")
    bits = 8 * x.dtype.itemsize
    kind = _UNSIGNED[x.dtype.itemsize]
    x = cast(x, kind)
    width = 1
    # Counts of neighbouring fields of 1, 2, 4, ... bits are added.
    while width < bits:
        mask = constant_like(sum(((1 << width) - 1) << k for k in range(0, bits, 2 * width)), x)
        high = run(E.shift_right, x, constant_like(width, x))
        x = run(E.add, run(E.bitwise_and, x, mask), run(E.bitwise_and, high, mask))
        width *= 2
    return cast(x, D.uint8)
