"""Attention: softmax(scale * Q K^T + bias) V with masks, dropout, grouped heads and packed
sequences.

Every layout is brought to (batch, heads, length, size), which moves no element, and `attend`
computes there. Heads of the queries that share a key are rows of one product. 16-bit floats are
computed in float32 from the products on and rounded once. A row of scores that is masked as a whole
gives zeros, not an average.

A mask is a tensor of truth values, True where a score is dropped, that broadcasts to (batch, heads,
queries, keys). Modes that MindSpore calls sparse are made from positions, so that the content of
the 2048 x 2048 mask that they ask for is never read. Sequences packed end to end ("TND") are cut at
their ends where those are Python numbers, and are masked by sequence where those are a tensor, so
that no value has to be known.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np

from mycel.base import arguments
from mycel.base import dtype as D
from mycel.base.errors import ShapeError
from mycel.common.generator import seeded_generator
from mycel.core.fused import fused
from mycel.core.tensor import Tensor, cast
from mycel.ops import array, elementwise, indexed, reduction, sorting
from mycel.ops._operands import (
    constant_like,
    iota,
    operand,
    permuted,
    reshaped,
    run,
    select,
    sizes_of,
    take_slice,
    wide,
)
from mycel.ops.random import draw
from mycel.prims import elementwise as E
from mycel.prims import linalg as L
from mycel.prims import normalization as N
from mycel.prims import random as P

__all__ = ["flash_attention_score", "ring_attention_update", "speed_fusion_attention"]

LAYOUTS = ("BSH", "BNSD", "SBH", "BSND", "TND")
MOST = 2147483647
COMPRESSED = 2048
Stats = tuple[Tensor, Tensor, Tensor]


# Layouts.


def to_heads(name: str, x: Tensor, layout: str, heads: int) -> Tensor:
    """Return `x` of a layout with a batch as (batch, heads, length, size)."""
    ranks = {"BSH": 3, "SBH": 3, "BNSD": 4, "BSND": 4}
    if x.ndim != ranks[layout]:
        raise ShapeError(f"{name}: the layout {layout} takes {ranks[layout]} dimensions, not {x._type}")
    if layout in ("BSH", "SBH"):
        if heads <= 0 or x.shape[2] % heads:
            raise ShapeError(f"{name}: {x.shape[2]} features do not divide into {heads} heads")
        x = reshaped(x, (*x.shape[:2], heads, x.shape[2] // heads))
    return permuted(x, {"BSH": (0, 2, 1, 3), "BSND": (0, 2, 1, 3), "SBH": (1, 2, 0, 3), "BNSD": (0, 1, 2, 3)}[layout])


def from_heads(x: Tensor, layout: str) -> Tensor:
    """Return (batch, heads, length, size) in a layout."""
    order = {"BSH": (0, 2, 1, 3), "BSND": (0, 2, 1, 3), "SBH": (2, 0, 1, 3), "BNSD": (0, 1, 2, 3)}[layout]
    x = permuted(x, order)
    return reshaped(x, (*x.shape[:2], x.shape[2] * x.shape[3])) if layout in ("BSH", "SBH") else x


def check_heads(name: str, q: Tensor, k: Tensor, v: Tensor) -> None:
    """Raise ShapeError unless (batch, heads, length, size) of queries, keys and values go together."""
    if q.shape[0] != k.shape[0] or k.shape[:3] != v.shape[:3] or q.shape[3] != k.shape[3]:
        raise ShapeError(
            f"{name}: as (batch, heads, length, size), query {q.shape}, key {k.shape} and value {v.shape} do not go "
            "together: batches "
            "and lengths of key and value must be the same, and the sizes of query and key"
        )
    if not k.shape[1] or q.shape[1] % k.shape[1]:
        raise ShapeError(f"{name}: {q.shape[1]} heads of the query are no multiple of the {k.shape[1]} of the key")


def same_types(name: str, *tensors: Tensor) -> None:
    """Raise TypeError unless all are of one floating type."""
    kinds = [t.dtype for t in tensors]
    if len(set(kinds)) > 1 or not kinds[0].is_floating:
        raise TypeError(
            f"{name}: query, key and value must be of one floating type, not {', '.join(k.name for k in kinds)}"
        )


# Masks.


def truth(name: str, parameter: str, mask: Any) -> Tensor:
    """Return a mask as truth values.

    Raises TypeError for floating types, whose meaning would be another.
    """
    m = operand(name, mask)
    if m.dtype.is_floating and m.dtype is not D.float16:
        raise TypeError(
            f"{name}: {parameter} must be of bool or uint8, True or 1 where a score is dropped, not {m.dtype.name}"
        )
    return m if m.dtype is D.bool_ else run(E.ne, m, constant_like(0, m))


def either(*masks: Optional[Tensor]) -> Optional[Tensor]:
    """Return dropped by any of the masks."""
    found: Optional[Tensor] = None
    for m in masks:
        if m is not None:
            found = m if found is None else run(E.logical_or, found, m)
    return found


def positions(length: Any, axis: int) -> Tensor:
    """Return 0, 1, ... along the queries (axis 2) or the keys (axis 3) of scores."""
    return iota(tuple([length if a == axis else 1 for a in range(4)]), axis, D.int64)


def band(row: Tensor, column: Tensor, before: Any, after: Any) -> Optional[Tensor]:
    """Return dropped outside of the keys from `before` places before a row's own to `after` places
    after it.
    """
    late = None if after >= MOST else run(E.gt, column, row + constant_like(after, row))
    early = None if before >= MOST else run(E.lt, column, row - constant_like(before, row))
    return either(late, early)


def sparse_mask(
    name: str,
    mode: int,
    mask: Optional[Tensor],
    row: Tensor,
    column: Tensor,
    shift: Any,
    before: int,
    after: int,
    prefix: Any = None,
) -> Optional[Tensor]:
    """Return the mask of a sparse mode; `shift` is how many more keys than queries there are."""
    if mode in (2, 3, 4) and (mask is None or mask.shape[-2:] != (COMPRESSED, COMPRESSED)):
        found = "none" if mask is None else f"one of shape {mask.shape}"
        raise ShapeError(
            f"{name}: sparse_mode {mode} takes a mask of shape ({COMPRESSED}, {COMPRESSED}), ones above the diagonal, "
            f"not {found}"
        )
    if mode in (1, 5) and mask is None:
        raise ValueError(f"{name}: sparse_mode {mode} needs a mask")
    if mode == 0:
        return None if mask is None else either(mask, band(row, column, before, after))
    if mode == 1:
        return mask
    if mode == 2:
        return band(row, column, MOST, 0)
    corner = row + (shift if isinstance(shift, Tensor) else constant_like(shift, row))
    if mode == 3:
        return band(corner, column, MOST, 0)
    if mode == 4:
        return band(corner, column, before, after)
    late = band(corner, column, MOST, 0)
    assert late is not None
    if prefix is None:
        raise ValueError(f"{name}: sparse_mode 5 needs prefix, a length for each example of the batch")
    given = prefix if isinstance(prefix, Tensor) else np.array(sizes_of(name, "prefix", prefix), np.int64)
    lengths = operand(name, given, D.int64)
    beyond = run(E.ge, column, reshaped(lengths, (*lengths.shape, 1, 1, 1)))
    return either(run(E.logical_and, late, beyond), mask)


def check_band(name: str, before: int, after: int, queries: Any, keys: Any) -> None:
    """Raise ValueError where `pre_tokens` and `next_tokens` leave no band."""
    empty = (
        (before < 0 and after < 0)
        or (before < 0 and (after < -before or -before >= keys))
        or (after < 0 and (-after > before or -after >= queries))
    )
    if empty:
        raise ValueError(
            f"{name}: pre_tokens {before} and next_tokens {after} leave no band in {queries} queries by {keys} keys"
        )


# The computation.


def scores_of(q: Tensor, k: Tensor) -> Tensor:
    """Return Q K^T for heads that may share keys: (batch, heads, queries, keys), in float32 for
    16-bit floats.
    """
    b, n, s, d = q.shape
    m = k.shape[1]
    rows = q if n == m else reshaped(q, (b, m, (n // m) * s, d))
    return reshaped(run(L.matmul, wide(rows), permuted(wide(k), (0, 1, 3, 2))), (b, n, s, k.shape[2]))


def weighted(p: Tensor, v: Tensor) -> Tensor:
    """Return the values of shared heads weighted by `p`: (batch, heads, queries, size)."""
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
    """Return the attention of (batch, heads, length, size) in the type of `q`, without the
    statistics of its soft-max.
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

    Of a row without scores they are the smallest finite number and 0.
    """
    p, peak, total = exponentials(_biased(scores_of(q, k), scale, bias, bias_first), drop)
    out = weighted(_thinned(p, keep_prob, kept), v) / _nonzero(total)
    return cast(out, q.dtype), peak, total


def exponentials(s: Tensor, drop: Optional[Tensor]) -> Stats:
    """Return exp(s - largest) with zeros where dropped, the largest of each row, and the sum of
    each row.
    """
    if drop is not None:
        s = select(drop, lowest(s), s)
    peak = reduction.amax(s, -1, True)
    p = run(E.exp, s - peak)
    if drop is not None:
        p = select(drop, constant_like(0.0, p), p)
    return p, peak, reduction.sum(p, -1, True)


def _nonzero(total: Tensor) -> Tensor:
    return select(run(E.eq, total, constant_like(0.0, total)), constant_like(1.0, total), total)


def _biased(s: Tensor, scale: float, bias: Optional[Tensor], first: bool) -> Tensor:
    factor = constant_like(float(scale), s)
    if bias is None:
        return s * factor
    bias = cast(bias, s.dtype)
    return (s + bias) * factor if first else s * factor + bias


def _thinned(p: Tensor, keep_prob: float, kept: Optional[Tensor]) -> Tensor:
    """Return weights after dropout: by the mask `kept`, or by one that is drawn."""
    if keep_prob == 1.0:
        return p
    if kept is None:
        kept = draw(P.bernoulli, p.shape, seeded_generator(None), probability=keep_prob)
    return select(kept, p * constant_like(1.0 / keep_prob, p), constant_like(0.0, p))


def unpacked_bits(name: str, bits: Any, shape: tuple[Any, ...]) -> Tensor:
    """Return the truth values that bytes hold, the lowest bit first."""
    packed = operand(name, bits)
    if packed.dtype is not D.uint8:
        raise TypeError(f"{name}: drop_mask must be of uint8, eight places in each, not {packed.dtype.name}")
    whole = math.prod(shape)
    if packed.size * 8 != whole:
        raise ShapeError(f"{name}: drop_mask of {packed.size} bytes does not hold the {whole} places of {shape}")
    parts = reshaped(packed, (packed.size, 1))
    single = run(E.bitwise_and, parts, Tensor(np.array([[1 << i for i in range(8)]], np.uint8)))
    return reshaped(run(E.ne, single, constant_like(0, single)), shape)


def _shift_of(name: str, bias: Any, q: Tensor, keys: Any, causal: bool) -> Optional[Tensor]:
    """Return the bias as (batch or 1, heads, queries, keys).

    The last 1024 rows stand for all of a longer causal one that depends on distances alone.
    """
    if bias is None:
        return None
    x = operand(name, bias)
    if x.dtype is not q.dtype:
        raise TypeError(f"{name}: the bias must be of the type of query, {q.dtype.name}, not {x.dtype.name}")
    b, n, s = q.shape[0], q.shape[1], q.shape[2]
    if x.ndim != 4 or x.shape[0] not in (1, b) or x.shape[1] != n or x.shape[3] != keys:
        raise ShapeError(f"{name}: the bias must be of shape ({b} or 1, {n}, {s}, {keys}), not {x.shape}")
    if x.shape[2] == s:
        return x
    if x.shape[2] != 1024 or s < 1024 or not causal:
        raise ShapeError(
            f"{name}: the bias must have {s} rows, not {x.shape[2]}; 1024 stand for more where sparse_mode is 2 or 3"
        )
    row, column = np.arange(s)[:, None], np.arange(keys)[None, :]
    known = row - (s - 1024)
    where = np.maximum(known, 0) * keys + np.minimum(column + np.maximum(-known, 0), keys - 1)
    return indexed.gather(reshaped(x, (*x.shape[:2], 1024 * keys)), Tensor(where), 2)


# Sequences packed end to end.


def ends_of(name: str, parameter: str, ends: Any, total: Any) -> list[int]:
    """Return the ends of packed sequences; ValueError unless they rise to `total`."""
    if ends is None:
        raise ValueError(f"{name}: packed sequences need {parameter}, the end of each, the last of them {total}")
    found = list(sizes_of(name, parameter, ends))
    if not found or found[-1] != total or any(a > b for a, b in itertools.pairwise([0, *found])):
        raise ValueError(f"{name}: {parameter} {found} must not fall, and end with {total}")
    return found


def pieces(ends: Sequence[int]) -> list[tuple[int, int]]:
    """Return the start and the end of each packed sequence."""
    return list(itertools.pairwise([0, *ends]))


def one_example(x: Tensor, start: Any, stop: Any) -> Tensor:
    """Return one of several packed sequences, (length, heads, size), as (1, heads, length, size)."""
    part = take_slice(x, 0, start, stop)
    return permuted(reshaped(part, (1, *part.shape)), (0, 2, 1, 3))


def packed_rows(x: Tensor) -> Tensor:
    """Return (1, heads, length, size) as (length, heads, size)."""
    return reshaped(permuted(x, (0, 2, 1, 3)), (x.shape[2], x.shape[1], x.shape[3]))


def owners(ends: Tensor, total: Any) -> Tensor:
    """To which of the packed sequences that end at `ends` each of `total` places belongs."""
    return sorting.searchsorted(ends, iota((total,), 0, ends.dtype), right=True)


def starts_of(ends: Tensor) -> Tensor:
    """Return where packed sequences begin that end at `ends`."""
    return array.concat((constant_like(0, ends)[None], take_slice(ends, 0, 0, ends.shape[0] - 1)), 0)


def _packed(
    name: str,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    q_ends: Any,
    k_ends: Any,
    mode: int,
    mask: Optional[Tensor],
    before: int,
    after: int,
    given: dict[str, Any],
    statistics: bool,
) -> Any:
    """Return attention within packed sequences (T, N, D): the result, or with its statistics (T, N,
    1).
    """
    compute: Any = attend_with_statistics if statistics else attend
    if isinstance(q_ends, Tensor) or isinstance(k_ends, Tensor):
        rows, columns = (operand(name, e, D.int64) for e in (q_ends, k_ends))
        of_row, of_column = owners(rows, q.shape[0]), owners(columns, k.shape[0])
        row = positions(q.shape[0], 2) - reshaped(indexed.gather(starts_of(rows), of_row, 0), (1, 1, q.shape[0], 1))
        column = positions(k.shape[0], 3) - reshaped(
            indexed.gather(starts_of(columns), of_column, 0), (1, 1, 1, k.shape[0])
        )
        more = indexed.gather((columns - starts_of(columns)) - (rows - starts_of(rows)), of_row, 0)
        other = run(E.ne, reshaped(of_row, (1, 1, q.shape[0], 1)), reshaped(of_column, (1, 1, 1, k.shape[0])))
        inner = sparse_mask(name, mode, mask, row, column, reshaped(more, (1, 1, q.shape[0], 1)), before, after)
        found = compute(
            one_example(q, 0, q.shape[0]),
            one_example(k, 0, k.shape[0]),
            one_example(v, 0, k.shape[0]),
            drop=either(other, inner),
            **given,
        )
        return tuple(map(packed_rows, found)) if statistics else packed_rows(found)
    row_ends = ends_of(name, "actual_seq_qlen", q_ends, q.shape[0])
    column_ends = ends_of(name, "actual_seq_kvlen", k_ends, k.shape[0])
    if len(row_ends) != len(column_ends):
        raise ValueError(f"{name}: {len(row_ends)} sequences of queries are not {len(column_ends)} sequences of keys")
    parts = []
    for (i, j), (m, n) in zip(pieces(row_ends), pieces(column_ends)):
        drop = sparse_mask(name, mode, mask, positions(j - i, 2), positions(n - m, 3), (n - m) - (j - i), before, after)
        found = compute(one_example(q, i, j), one_example(k, m, n), one_example(v, m, n), drop=drop, **given)
        parts.append(tuple(map(packed_rows, found)) if statistics else (packed_rows(found),))
    joined = tuple([array.concat(p, 0) for p in zip(*parts)])
    return joined if statistics else joined[0]


def _attention(
    name: str,
    query: Any,
    key: Any,
    value: Any,
    heads: int,
    bias: Any,
    mask: Any,
    kept: Any,
    prefix: Any,
    q_ends: Any,
    k_ends: Any,
    keep_prob: float,
    scale: float,
    before: int,
    after: int,
    layout: str,
    mode: int,
    statistics: bool,
    bias_first: bool = False,
    slopes: Any = None,
) -> Any:
    """Return what the two public functions for training share."""
    arguments.one_of(name, "input_layout", layout, LAYOUTS)
    arguments.integer(name, "head_num", heads, 1, numpy=False, error=ValueError)
    if mode not in range(6):
        raise ValueError(f"{name}: sparse_mode must be 0 to 5, not {mode!r}; others have no definition yet")
    if not isinstance(keep_prob, (int, float)) or not 0.0 < keep_prob <= 1.0:
        raise ValueError(f"{name}: keep_prob must be in (0, 1], not {keep_prob!r}")
    if keep_prob == 1.0 and kept is not None:
        raise ValueError(f"{name}: there is a drop_mask, but with keep_prob 1.0 nothing is dropped; leave it out")
    q, k, v = operand(name, query), operand(name, key), operand(name, value)
    same_types(name, q, k, v)
    m = None if mask is None else truth(name, "the mask", mask)
    given: dict[str, Any] = {"scale": scale, "keep_prob": float(keep_prob), "bias_first": bias_first}
    if layout == "TND":
        if bias is not None or prefix is not None or kept is not None or slopes is not None:
            raise ValueError(
                f"{name}: the layout TND takes no bias, no drop_mask and no prefix here; use BNSD for each sequence"
            )
        if q.ndim != 3 or k.ndim != 3 or v.ndim != 3 or q.shape[1] != heads:
            raise ShapeError(f"{name}: the layout TND takes (T, {heads}, D), not {q._type}, {k._type} and {v._type}")
        check_heads(name, *(one_example(x, 0, x.shape[0]) for x in (q, k, v)))
        return _packed(name, q, k, v, q_ends, k_ends, mode, m, before, after, given, statistics)
    if q_ends is not None or k_ends is not None:
        raise ValueError(f"{name}: actual_seq_qlen and actual_seq_kvlen belong to the layout TND, not to {layout}")
    q = to_heads(name, q, layout, heads)
    if q.shape[1] != heads:
        raise ShapeError(f"{name}: head_num is {heads}, but query has {q.shape[1]} heads")
    shared = k.shape[2] // (q.shape[3] or 1) if layout in ("BSH", "SBH") and k.ndim == 3 else heads
    k, v = to_heads(name, k, layout, shared), to_heads(name, v, layout, shared)
    check_heads(name, q, k, v)
    queries, keys = q.shape[2], k.shape[2]
    if mode in (0, 4) and (before < 0 or after < 0):
        check_band(name, before, after, queries, keys)
    row, column = positions(queries, 2), positions(keys, 3)
    drop = sparse_mask(name, mode, m, row, column, keys - queries, before, after, prefix)
    if drop is not None and drop.ndim not in (2, 4):
        raise ShapeError(
            f"{name}: the mask must be of shape ({queries}, {keys}) or (batch, heads or 1, {queries}, {keys}), not "
            f"{drop.shape}"
        )
    given["bias"] = _shift_of(name, bias, q, keys, mode in (2, 3)) if slopes is None else slopes(q, row, column)
    if kept is not None:
        given["kept"] = unpacked_bits(name, kept, (q.shape[0], heads, queries, keys))
    found: Any = (attend_with_statistics if statistics else attend)(q, k, v, drop=drop, **given)
    if statistics:
        return (from_heads(found[0], layout), *found[1:])
    return from_heads(found, layout)


@fused
def flash_attention_score(
    query: Any,
    key: Any,
    value: Any,
    head_num: int,
    real_shift: Any = None,
    drop_mask: Any = None,
    padding_mask: Any = None,
    attn_mask: Any = None,
    prefix: Any = None,
    actual_seq_qlen: Any = None,
    actual_seq_kvlen: Any = None,
    keep_prob: float = 1.0,
    scalar_value: float = 1.0,
    pre_tokens: int = MOST,
    next_tokens: int = MOST,
    inner_precise: int = 0,
    input_layout: str = "BSH",
    sparse_mode: int = 0,
) -> Tensor:
    """Return dropout(softmax(scalar_value * Q K^T + real_shift)) V, as Dao et al., 2022, compute
    it; in the layout and type of `query`.

    `query`, `key` and `value` are of one floating type and in the layout "BSH" (B, S, N * D), "SBH"
    (S, B, N * D), "BNSD", "BSND", or "TND": sequences packed end to end, which `actual_seq_qlen`
    and `actual_seq_kvlen` say the ends of. Key and value may have fewer heads than query, by a
    factor. `attn_mask` is True where scores are dropped: (S1, S2) or (B, 1 or N, S1, S2).
    `sparse_mode` 0 also drops what is more than `pre_tokens` before or `next_tokens` after the
    diagonal from the upper left corner, if there is a mask; 1 takes the mask alone; 2 to 4 ask for
    the mask of 2048 x 2048 and drop what is above the diagonal from the upper left corner (2),
    above that into the lower right corner (3), or outside of the band around the latter (4); 5 is 3
    where the first `prefix` keys are never dropped. `drop_mask` holds the places that dropout keeps
    as bits, the lowest first; without it they are drawn. `real_shift` is (B or 1, N, S1, S2), or
    its last 1024 rows. Rows without scores give zeros.

    TypeError and ValueError where types, shapes and options do not go together.

    >>> import mycel as ms
    >>> x = ms.ops.ones((1, 3, 4))
    >>> ms.ops.flash_attention_score(x, x, x, 2, scalar_value=0.5).shape
    (1, 3, 4)
    """
    _reserved("flash_attention_score", padding_mask=padding_mask)
    return _attention(
        "flash_attention_score",
        query,
        key,
        value,
        head_num,
        real_shift,
        attn_mask,
        drop_mask,
        prefix,
        actual_seq_qlen,
        actual_seq_kvlen,
        keep_prob,
        scalar_value,
        pre_tokens,
        next_tokens,
        input_layout,
        sparse_mode,
        False,
    )


def _reserved(name: str, **given: Any) -> None:
    for parameter, value in given.items():
        if value is not None:
            raise ValueError(f"{name}: {parameter} has no meaning yet; leave it out")


@fused
def speed_fusion_attention(
    query: Any,
    key: Any,
    value: Any,
    head_num: int,
    input_layout: str,
    *,
    pse: Any = None,
    padding_mask: Any = None,
    atten_mask: Any = None,
    scale: float = 1.0,
    keep_prob: float = 1.0,
    pre_tokens: int = MOST,
    next_tokens: int = MOST,
    inner_precise: int = 0,
    prefix: Any = None,
    actual_seq_qlen: Any = None,
    actual_seq_kvlen: Any = None,
    sparse_mode: int = 0,
    gen_mask_parallel: bool = True,
    sync: bool = False,
    pse_type: int = 1,
    q_start_idx: Any = None,
    kv_start_idx: Any = None,
) -> tuple[Tensor, ...]:
    """Return `flash_attention_score` with the statistics of its soft-max: seven results.

    They are the attention; of each row the largest score and the sum of exp(score - largest), eight
    times each: (B, N, S1, 8), or (T, N, 8) for "TND"; an empty tensor; and three whole numbers
    about the generator of dropout, which are 0, since places are drawn from the generator of Mycel.
    `pse_type` 1 (the default) adds `pse` before scaling, 0 after. With 2 and 3 `pse` is a float32
    slope for each head, (N,) or (B, N), and the bias is minus the slope times the distance, or its
    square root, between positions counted from `q_start_idx` and `kv_start_idx` (ALiBi, Press et
    al., 2022).

    TypeError and ValueError where types, shapes and options do not go together.

    >>> import mycel as ms
    >>> x = ms.ops.ones((1, 2, 3, 4))
    >>> [t.shape for t in ms.ops.speed_fusion_attention(x, x, x, 2, "BNSD")[:3]]
    [(1, 2, 3, 4), (1, 2, 3, 8), (1, 2, 3, 8)]
    """
    name = "speed_fusion_attention"
    _reserved(name, padding_mask=padding_mask)
    if isinstance(pse_type, bool) or not isinstance(pse_type, int) or pse_type not in range(4):
        raise ValueError(f"{name}: pse_type must be 0, 1, 2 or 3, not {pse_type!r}")
    biases: Any = None
    if pse_type in (2, 3):
        if pse is None:
            raise ValueError(f"{name}: pse_type {pse_type} needs pse, a float32 slope for each head")
        slope = operand(name, pse)
        first_row, first_column = (0 if x is None else int(x[0]) for x in (q_start_idx, kv_start_idx))

        def by_distance(q: Tensor, row: Tensor, column: Tensor) -> Tensor:
            if slope.dtype is not D.float32 or slope.shape not in ((q.shape[1],), q.shape[:2]):
                raise ShapeError(
                    f"{name}: pse must be of float32 and shape {(q.shape[1],)} or {q.shape[:2]}, not {slope._type}"
                )
            distance = elementwise.abs(cast((row + first_row) - (column + first_column), D.float32))
            by = run(E.sqrt, distance) if pse_type == 3 else distance
            return -reshaped(slope, (*(() if slope.ndim == 2 else (1,)), *slope.shape, 1, 1)) * by

        biases = by_distance

    out, peak, total = _attention(
        name,
        query,
        key,
        value,
        head_num,
        None if biases else pse,
        atten_mask,
        None,
        prefix,
        actual_seq_qlen,
        actual_seq_kvlen,
        keep_prob,
        scale,
        pre_tokens,
        next_tokens,
        input_layout,
        sparse_mode,
        True,
        pse_type == 1,
        biases,
    )
    eight = [array.broadcast_to(x, (*x.shape[:-1], 8)) for x in (peak, total)]
    nothing = constant_like(0, operand(name, 0, D.int64))
    return out, *eight, Tensor(np.zeros((0,), np.float32)).astype(out.dtype), nothing, nothing, nothing


@fused
def ring_attention_update(
    prev_attn_out: Any,
    prev_softmax_max: Any,
    prev_softmax_sum: Any,
    cur_attn_out: Any,
    cur_softmax_max: Any,
    cur_softmax_sum: Any,
    actual_seq_qlen: Any = None,
    layout: str = "SBH",
) -> tuple[Tensor, Tensor, Tensor]:
    """Return attention to two sets of keys joined to attention to both: the result and its
    statistics. Liu et al., 2023.

    Results are (S, B, N * D) with statistics (B, N, S, 8), or for "TND" (T, N, D) with (T, N, 8).
    As rows are independent, `actual_seq_qlen`, which "TND" asks for, changes nothing. ValueError
    where shapes do not go together or it is missing.

    >>> import mycel as ms
    >>> out, stat = ms.ops.ones((2, 1, 4)), ms.ops.ones((1, 2, 2, 8))
    >>> ms.ops.ring_attention_update(out, stat, stat, out, stat, stat)[2][0, 0, 0, 0].item()
    2.0
    """
    name = "ring_attention_update"
    arguments.one_of(name, "layout", layout, ("SBH", "TND"))
    if layout == "TND" and actual_seq_qlen is None:
        raise ValueError(f"{name}: the layout TND needs actual_seq_qlen")
    x, y = operand(name, prev_attn_out), operand(name, cur_attn_out)
    m, s, n, t = (operand(name, z) for z in (prev_softmax_max, prev_softmax_sum, cur_softmax_max, cur_softmax_sum))
    if x.shape != y.shape or x.dtype is not y.dtype or len({m.shape, s.shape, n.shape, t.shape}) > 1:
        raise ShapeError(f"{name}: the results {x._type} and {y._type}, and all statistics, must be of the same type")
    rank = 3 if layout == "TND" else 4
    if x.ndim != 3 or m.ndim != rank or m.shape[-1] != 8:
        raise ShapeError(
            f"{name}: the layout {layout} takes 3 dimensions and statistics of {rank}, the last of size 8, not "
            f"{x._type} and {m._type}"
        )
    peak = run(E.maximum, m, n)
    before, after = s * run(E.exp, m - peak), t * run(E.exp, n - peak)
    total = before + after
    whole = _nonzero(total)

    def share(part: Tensor) -> Tensor:
        ratio = take_slice(part / whole, rank - 1, 0, 1)
        if layout == "TND":
            return ratio
        b, heads, length = ratio.shape[:3]
        spread = array.broadcast_to(permuted(ratio, (2, 0, 1, 3)), (length, b, heads, x.shape[2] // heads))
        return reshaped(spread, (length, b, x.shape[2]))

    out = share(before) * wide(x) + share(after) * wide(y)
    return cast(out, x.dtype), peak, total
