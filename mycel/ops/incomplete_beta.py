"""The regularized incomplete beta function, by the continued fraction of Didonato and Morris, 1992.

    I_x(a, b) = x^a (1 - x)^b / (a B(a, b)) / (1 + d_1 / (1 + d_2 / (1 + ..))),

where d_2m = m (b - m) x / ((a + 2 m - 1) (a + 2 m)) and d_2m+1 = -(a + m) (a + b + m) x / ((a + 2
m) (a + 2 m + 1)). This is used where x <= (a + 1) / (a + b + 2); elsewhere I_x(a, b) = 1 -
I_(1-x)(b, a). One loop takes two terms in each round, forwards, and rescales numerators and
denominators. It ends when nothing changes, after a few more rounds for the derivatives by a and b,
which come from the differentiation of the loop itself.
"""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims.control_flow import control
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.fused import graph_of
from mycel._src.tensors.core.tensor import Tensor, cast, scalar
from mycel.ops._operands import constant_like, floating, run, select

__all__ = ["betainc"]

ROUNDS = 2000


def _fraction(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    """Return the inverse of the continued fraction 1 + d_1 / (1 + ..)."""

    def body(m: Tensor, top: Tensor, top_1: Tensor, low: Tensor, low_1: Tensor, last: Tensor, *given: Tensor) -> Any:
        a, b, x = given[1:]
        odd = run(E.neg, (a + m) * (a + b + m) * x / ((a + m * 2.0) * (a + m * 2.0 + 1.0)))
        n = m + scalar(1.0, D.float64)
        even = n * (b - n) * x / ((a + n * 2.0 - 1.0) * (a + n * 2.0))
        top_1, top = top, top + odd * top_1
        low_1, low = low, low + odd * low_1
        top_1, top = top, top + even * top_1
        low_1, low = low, low + even * low_1
        share = run(E.stop_gradient, scalar(1.0, D.float64) / low)
        top, top_1, low, low_1 = (v * share for v in (top, top_1, low, low_1))
        found = top / low
        near = run(E.abs_, run(E.stop_gradient, found - last)) <= run(E.abs_, run(E.stop_gradient, found)) * 1e-16
        same = run(R.reduce_all, near, axes=tuple(range(near.ndim)), keepdims=False) if near.ndim else near
        settled = given[0] + select(same, scalar(1.0, D.float64), scalar(0.0, D.float64))
        return n, top, top_1, low, low_1, found, settled

    def test(m: Tensor, *rest: Tensor) -> Any:
        return (run(E.logical_and, m < scalar(float(ROUNDS), D.float64), rest[5] < scalar(4.0, D.float64)),)

    one, nothing = constant_like(1, x) + x * 0.0, x * 0.0
    # The convergents of 1 / (1 + d_1 / (1 + ..)): 0 / 1 and 1 / 1.
    zero = scalar(0.0, D.float64)
    operands = (zero + zero, one, nothing, one, one, one, zero + zero, a, b, x)
    types = [v._type for v in operands]
    graphs = {"test": graph_of(test, types), "body": graph_of(body, types)}
    return eager.apply(control.while_loop, *operands, **graphs, carried=7)[5]


def betainc(a: Any, b: Any, x: Any) -> Tensor:
    """Return I_x(a, b) for positive `a` and `b` and `x` in [0, 1], all of one shape and floating
    type.

    It is NaN for other arguments, and differentiable by all three.

    >>> import mycel as ms
    >>> from mycel.ops.incomplete_beta import betainc
    >>> betainc(ms.Tensor([1.0]), ms.Tensor([1.0]), ms.Tensor([0.25])).tolist()
    [0.25]
    """
    given = [floating("Betainc", v) for v in (a, b, x)]
    for error, kinds in ((TypeError, {v.dtype for v in given}), (ShapeError, {v.shape for v in given})):
        if len(kinds) > 1:
            raise error(
                f"Betainc: a, b and x must have one type and shape, not {', '.join(str(v._type) for v in given)}"
            )
    kind = given[0].dtype
    first, second, at = (cast(v, D.float64) for v in given)
    positive = run(E.logical_and, first > 0.0, second > 0.0)
    valid = run(E.logical_and, positive, run(E.logical_and, at >= 0.0, at <= 1.0))
    inside = run(E.logical_and, valid, run(E.logical_and, at > 0.0, at < 1.0))
    first, second, at = select(inside, first, 1.0), select(inside, second, 1.0), select(inside, at, 0.5)
    turned = at > (first + 1.0) / (first + second + 2.0)
    p, q = select(turned, second, first), select(turned, first, second)
    y = select(turned, 1.0 - at, at)
    lead = p * run(E.log, y) + q * run(E.log1p, -y)
    lead = lead + run(E.lgamma, p + q) - run(E.lgamma, p + 1.0) - run(E.lgamma, q)
    found = run(E.exp, lead) * _fraction(p, q, y)
    found = select(turned, 1.0 - found, found)
    edge = select(cast(given[2], D.float64) > 0.5, constant_like(1.0, found), constant_like(0.0, found))
    return cast(select(inside, found, select(valid, edge, float("nan"))), kind)
