"""Numbers from truncated normal distributions, by inversion: x = the quantile of Phi(a) + u (Phi(b)
- Phi(a)).

An interval above the mean is mirrored, so that probabilities are those of a lower tail and keep
their precision. There the quantile starts from its asymptotic expansion and is refined by Newton's
method on log Phi, which is concave. Arithmetic is in float64. Bounds may lie up to 37 standard
deviations from the mean.
"""

from __future__ import annotations

import math
from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import random
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.common.generator import Generator
from mycel.ops._operands import broadcast, constant_like, run, select
from mycel.ops.random import draw

__all__ = ["normal_quantile", "truncated_normal_numbers"]

NEWTON = 4


def _below(x: Tensor) -> Tensor:
    """Return Phi(x)."""
    return run(E.erfc, x * -math.sqrt(0.5)) * 0.5


def normal_quantile(p: Tensor) -> Tensor:
    """Return the x with Phi(x) = `p`, for `p` in (0, 1) of type float64.

    >>> import mycel as ms
    >>> from mycel.ops.random_truncated import normal_quantile
    >>> round(normal_quantile(ms.Tensor([0.975])).item(), 6)
    1.959964
    """
    low = p < 0.02
    tail = select(low, p, 0.01)
    square = run(E.log, tail) * -2.0
    far = -run(E.sqrt, square - run(E.log, square) - math.log(2 * math.pi))
    near = run(E.erfinv, select(low, 0.5, p) * 2.0 - 1.0) * math.sqrt(2.0)
    x = far
    for _ in range(NEWTON):
        share = _below(x)
        density = run(E.exp, x * x * -0.5) * (1 / math.sqrt(2 * math.pi))
        x = x - (run(E.log, share) - run(E.log, tail)) * share / density
    return select(low, x, near)


def truncated_normal_numbers(shape: Any, generator: Generator, dtype: Any, *parameters: Tensor) -> Tensor:
    """Return numbers from normal distributions truncated to an interval.

    `parameters` are the mean, the standard deviation and the two bounds, which broadcast to
    `shape`.
    """
    centre, spread, first, last = (broadcast(cast(v, D.float64), shape) for v in parameters)
    a, b = (first - centre) / spread, (last - centre) / spread
    turned = a > 0.0
    a, b = select(turned, -b, a), select(turned, -a, b)
    u = draw(random.uniform, shape, generator, dtype=D.float64)
    under, over = _below(a), _below(b)
    # u is at least 0 and less than 1: half a step keeps both ends out.
    p = under + (over - under) * (u + 2.0**-54)
    p = run(E.minimum, run(E.maximum, p, constant_like(1e-300, p)), constant_like(1 - 2.0**-53, p))
    x = run(E.minimum, run(E.maximum, normal_quantile(p), a), b)
    x = select(turned, -x, x) * spread + centre
    return cast(run(E.minimum, run(E.maximum, x, first), last), dtype)
