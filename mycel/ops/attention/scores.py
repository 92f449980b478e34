"""softmax(scale * Q K^T + bias) V of queries, keys and values as (batch, heads, length, size).

Heads of the queries that share a key are rows of one product. 16-bit floats are computed in float32
from the products on and rounded once. A row of scores that is masked as a whole gives zeros, not an
average.
"""

from __future__ import annotations

import math
from typing import Optional

from mycel.base import dtype as D
from mycel.common.generator import seeded_generator
from mycel.core.tensor import Tensor, cast
from mycel.ops import reduction
from mycel.ops._operands import constant_like, permuted, reshaped, run, select, wide
from mycel.ops.random import draw
from mycel.prims import elementwise as E
from mycel.prims import linalg as L
from mycel.prims import normalization as N
from mycel.prims import random as P

Stats = tuple[Tensor, Tensor, Tensor]


def scores_of(q: Tensor, k: Tensor) -> Tensor:
    """Return Q K^T for heads that may share keys: (batch, heads, queries, keys), in float32 for
    16-bit floats.
    """
    b, n, s, d = q.shape
    m = k.shape[1]
    rows = q if n == m else reshaped(q, (b, m, (n // m) * s, d))
    return reshaped(run(L.matmul, wide(rows), permuted(wide(k), (0, 1, 3, 2))), (b, n, s, k.shape[2]))


def weighted(p: Tensor, v: Tensor) -> Tensor:
    """Return values `v` weighted by `p`, for heads that may share values: (batch, heads, queries,
    size).
    """
    b, n, s, t = p.shape
    m = v.shape[1]
    rows = p if n == m else reshaped(p, (b, m, (n // m) * s, t))
    return reshaped(run(L.matmul, rows, wide(v)), (b, n, s, v.shape[3]))


def lowest(x: Tensor) -> Tensor:
    """Return the smallest finite number of the type of `x`."""
    return constant_like(-math.ldexp(1.0 - math.ldexp(1.0, -24), 128) if x.dtype is D.float32 else -1.0e300, x)


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float,
    *,
    bias: Optional[Tensor] = None,
    drop: Optional[Tensor] = None,
    bias_first: bool = False,
    keep_prob: float = 1.0,
    kept: Optional[Tensor] = None,
) -> Tensor:
    """Return the attention of queries `q`, keys `k` and values `v`, (batch, heads, length, size),
    in the type of `q`.

    `scale` multiplies the scores; `bias` is added to them after that, or before it with
    `bias_first`. `drop` is True where scores are dropped. `keep_prob` is the probability with which
    dropout keeps a weight, and `kept` its mask, which is drawn if it is None.
    """
    s = _biased(scores_of(q, k), scale, bias, bias_first)
    if drop is None:
        p = run(N.softmax, s, axis=3)
    else:
        p = run(N.softmax, select(drop, lowest(s), s), axis=3)
        p = select(reduction.all(drop, -1, True), constant_like(0.0, p), p)
    return cast(weighted(_thinned(p, keep_prob, kept), v), q.dtype)


def attend_with_statistics(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float,
    *,
    bias: Optional[Tensor] = None,
    drop: Optional[Tensor] = None,
    bias_first: bool = False,
    keep_prob: float = 1.0,
    kept: Optional[Tensor] = None,
) -> Stats:
    """Return the attention, and of each row the largest score and the sum of exp(score - largest),
    (batch, heads, queries, 1).

    `q`, `k`, `v`, `scale`, `bias`, `drop`, `bias_first`, `keep_prob` and `kept` are those of
    `attend`. Of a row without scores the statistics are the smallest finite number and 0.
    """
    p, peak, total = exponentials(_biased(scores_of(q, k), scale, bias, bias_first), drop)
    out = weighted(_thinned(p, keep_prob, kept), v) / nonzero(total)
    return cast(out, q.dtype), peak, total


def exponentials(s: Tensor, drop: Optional[Tensor]) -> Stats:
    """Return exp(s - largest) with zeros where scores are dropped, the largest score of each row,
    and the sum of each row.
    """
    if drop is not None:
        s = select(drop, lowest(s), s)
    peak = reduction.amax(s, -1, True)
    p = run(E.exp, s - peak)
    if drop is not None:
        p = select(drop, constant_like(0.0, p), p)
    return p, peak, reduction.sum(p, -1, True)


def nonzero(total: Tensor) -> Tensor:
    """Return sums to divide by: 1 instead of 0."""
    return select(run(E.eq, total, constant_like(0.0, total)), constant_like(1.0, total), total)


def _biased(s: Tensor, scale: float, bias: Optional[Tensor], first: bool) -> Tensor:
    """Return scores times `scale`, with a bias added before that if `first`, else after it."""
    factor = constant_like(float(scale), s)
    if bias is None:
        return s * factor
    bias = cast(bias, s.dtype)
    return (s + bias) * factor if first else s * factor + bias


def _thinned(p: Tensor, keep_prob: float, kept: Optional[Tensor]) -> Tensor:
    """Return weights after dropout by the mask `kept`, or by a mask that is drawn."""
    if keep_prob == 1.0:
        return p
    if kept is None:
        kept = draw(P.bernoulli, p.shape, seeded_generator(None), probability=keep_prob)
    return select(kept, p * constant_like(1.0 / keep_prob, p), constant_like(0.0, p))
