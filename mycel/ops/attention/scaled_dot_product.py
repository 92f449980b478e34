"""softmax(scale * Q K^T + bias) V of queries, keys and values as (batch, heads, length, size).

Heads of the queries that share a key are rows of one product. 16-bit floats are computed in float32
from the products on and rounded once. A row of scores that is masked as a whole gives zeros, not an
average.
"""

from __future__ import annotations

import math

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import matrix_product, random
from mycel._src.compiler.prims.neural import attention
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.eager import apply
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.common.generator import seeded_generator
from mycel.ops import reduction
from mycel.ops._operands import constant_like, permuted, reshaped, run, select, wide
from mycel.ops.random import draw

LOWEST = -math.ldexp(1.0 - math.ldexp(1.0, -24), 128)
Stats = tuple[Tensor, Tensor, Tensor]


def scores_of(q: Tensor, k: Tensor) -> Tensor:
    """Return Q K^T for heads that may share keys: (batch, heads, queries, keys), in float32 for
    16-bit floats.
    """
    b, n, s, d = q.shape
    m = k.shape[1]
    rows = q if n == m else reshaped(q, (b, m, (n // m) * s, d))
    return reshaped(run(matrix_product.matmul, wide(rows), permuted(wide(k), (0, 1, 3, 2))), (b, n, s, k.shape[2]))


def weighted(p: Tensor, v: Tensor) -> Tensor:
    """Return values `v` weighted by `p`, for heads that may share values: (batch, heads, queries,
    size).
    """
    b, n, s, t = p.shape
    m = v.shape[1]
    rows = p if n == m else reshaped(p, (b, m, (n // m) * s, t))
    return reshaped(run(matrix_product.matmul, rows, wide(v)), (b, n, s, v.shape[3]))


def lowest(x: Tensor) -> Tensor:
    """Return the smallest finite number of the type of `x`."""
    return constant_like(LOWEST if x.dtype is D.float32 else -1.0e300, x)


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float,
    *,
    bias: Tensor | None = None,
    drop: Tensor | None = None,
    bias_first: bool = False,
    keep_prob: float = 1.0,
    kept: Tensor | None = None,
) -> Tensor:
    """Return the attention of queries `q`, keys `k` and values `v`, (batch, heads, length, size),
    in the type of `q`.

    `scale` multiplies the scores; `bias` is added to them after that, or before it with
    `bias_first`. `drop` is True where scores are dropped. `keep_prob` is the probability with which
    dropout keeps a weight, and `kept` its mask, which is drawn if it is None.
    """
    out, _, _ = _attended(q, k, v, scale, bias, drop, bias_first, keep_prob, kept)
    if drop is None:
        return out
    return select(reduction.all(drop, -1, True), constant_like(0.0, out), out)


@fused
def opened(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return a mask that is added to scores with zeros in the rows that hide every key, and which
    rows these are, (..., 1).

    Softmax of nothing but infinities is NaN. Where a row is opened instead, and its result then
    replaced by 0, neither it nor its derivative reaches others.
    """
    hidden = run(E.eq, mask, constant_like(-math.inf, mask))
    empty = reduction.all(hidden, -1, True)
    return select(empty, 0.0, mask), empty


def attend_with_statistics(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float,
    *,
    bias: Tensor | None = None,
    drop: Tensor | None = None,
    bias_first: bool = False,
    keep_prob: float = 1.0,
    kept: Tensor | None = None,
) -> Stats:
    """Return the attention, and of each row the largest score and the sum of exp(score - largest),
    (batch, heads, queries, 1).

    `q`, `k`, `v`, `scale`, `bias`, `drop`, `bias_first`, `keep_prob` and `kept` are those of
    `attend`. Of a row without scores the statistics are the smallest finite number and 0.
    """
    out, peak, total = _attended(q, k, v, scale, bias, drop, bias_first, keep_prob, kept)
    if drop is None:
        return out, peak, total
    empty = reduction.all(drop, -1, True)
    out, total = (select(empty, constant_like(0.0, x), x) for x in (out, total))
    return out, peak, total


def exponentials(s: Tensor, drop: Tensor | None) -> Stats:
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


def _attended(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float,
    bias: Tensor | None,
    drop: Tensor | None,
    bias_first: bool,
    keep_prob: float,
    kept: Tensor | None,
) -> Stats:
    """Return what the primitive gives for the operands of `attend`.

    A row of scores that are dropped as a whole has weights that are all the same.
    """
    b, n, s, d = q.shape
    m, t = k.shape[1], k.shape[2]
    kind = D.float32 if q.dtype.itemsize == 2 else q.dtype
    masks: dict[str, Tensor] = {}
    if bias is not None:
        bias = cast(bias, kind)
        masks["bias"] = bias * constant_like(float(scale), bias) if bias_first else bias
    if drop is not None:
        masks["drop"] = drop
    if keep_prob != 1.0:
        if kept is None:
            kept = draw(random.bernoulli, (b, n, s, t), seeded_generator(None), probability=keep_prob)
        masks["kept"] = kept
    # Heads that share keys are an axis of their own; where each has one query, they are its rows.
    shared = (b, m, n // m, s) if n != m and s != 1 else (b, m, n // m) if n != m else (b, n, s)
    if n != m:
        q = reshaped(q, (*shared, d))
        masks = {w: _shared(x, m, n // m, s == 1) for w, x in masks.items()}
        if s != 1:
            k, v = (reshaped(x, (b, m, 1, *x.shape[2:])) for x in (k, v))
    found = apply(
        attention.attention,
        q,
        k,
        v,
        *masks.values(),
        scale=float(scale),
        operands=tuple(masks),
        band=None,
        fill=LOWEST if kind is D.float32 else -1.0e300,
        keep=float(keep_prob),
    )
    out, peak, total = (reshaped(x, (b, n, s, x.shape[-1])) for x in found)
    return out, peak, total


def _shared(mask: Tensor, m: int, group: int, rows: bool) -> Tensor:
    """Return a mask of (batch, heads, queries, keys) with an axis for the heads that share keys.

    There are `m` groups of `group` heads; with `rows` each has one query, and its heads are rows.
    """
    *lead, heads, queries, keys = (1,) * (4 - mask.ndim) + tuple(mask.shape)
    axes = (1, 1) if heads == 1 else (m, group)
    return reshaped(mask, (*lead, *axes, keys) if rows else (*lead, *axes, queries, keys))
