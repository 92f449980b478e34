"""Attention for models in training: softmax(scale * Q K^T + bias) V with masks, dropout, grouped
heads and packed sequences.

`mycel.ops.attention.scaled_dot_product` computes, in the layout that
`mycel.ops.attention.qkv_layouts` makes and under masks of `mycel.ops.attention.masks`.
Sequences packed end to end ("TND") are cut at their ends where those are Python numbers. Where
the ends are a tensor, scores between different sequences are masked instead, so that no value has
to be known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mycel._src.compiler.prims import elementwise as E
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, cast, scalar
from mycel.ops import array, elementwise, gather_scatter
from mycel.ops._operands import constant_like, numbers_of, operand, permuted, reshaped, run, take_slice, wide
from mycel.ops.attention.masks import MOST, SparseMask, check_band, either, positions, truth
from mycel.ops.attention.qkv_layouts import (
    LAYOUTS,
    check_heads,
    ends_of,
    from_heads,
    one_example,
    owners,
    packed_rows,
    pieces,
    same_types,
    starts_of,
    to_heads,
)
from mycel.ops.attention.scaled_dot_product import attend, attend_with_statistics, nonzero

__all__ = ["flash_attention_score", "ring_attention_update", "speed_fusion_attention"]


def unpacked_bits(name: str, bits: Any, shape: tuple[Any, ...]) -> Tensor:
    """Return the bits of bytes as truth values of `shape`, the lowest bit of a byte first."""
    packed = operand(name, bits)
    if packed.dtype is not D.uint8:
        raise TypeError(f"{name}: drop_mask must be of uint8, eight places in each, not {packed.dtype.name}")
    whole = math.prod(shape)
    if packed.size * 8 != whole:
        raise ShapeError(f"{name}: drop_mask of {packed.size} bytes does not hold the {whole} places of {shape}")
    parts = reshaped(packed, (packed.size, 1))
    single = run(E.bitwise_and, parts, Tensor(np.array([[1 << i for i in range(8)]], np.uint8)))
    return reshaped(run(E.ne, single, constant_like(0, single)), shape)


def _shift_of(name: str, bias: Any, q: Tensor, keys: Any, causal: bool) -> Tensor | None:
    """Return the bias as (batch or 1, heads, queries, keys).

    A causal bias that depends on distances alone may be given by its last 1024 rows.
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
    return gather_scatter.gather(reshaped(x, (*x.shape[:2], 1024 * keys)), Tensor(where), 2)


def _packed(
    q: Tensor, k: Tensor, v: Tensor, ends: tuple[Any, Any], mask: SparseMask, given: dict[str, Any], statistics: bool
) -> Any:
    """Return attention within packed sequences (T, N, D): the result, or with its statistics (T, N,
    1).
    """
    if isinstance(ends[0], Tensor) or isinstance(ends[1], Tensor):
        rows, columns = (numbers_of(mask.name, "the lengths", e) for e in ends)
        return _packed_at_tensors(q, k, v, rows, columns, mask, given, statistics)
    name = mask.name
    compute: Any = attend_with_statistics if statistics else attend
    row_ends = ends_of(name, "actual_seq_qlen", ends[0], q.shape[0])
    column_ends = ends_of(name, "actual_seq_kvlen", ends[1], k.shape[0])
    if len(row_ends) != len(column_ends):
        raise ValueError(f"{name}: {len(row_ends)} sequences of queries are not {len(column_ends)} sequences of keys")
    parts = []
    for (i, j), (m, n) in zip(pieces(row_ends), pieces(column_ends)):
        drop = mask.dropped(positions(j - i, 2), positions(n - m, 3), (n - m) - (j - i))
        found = compute(one_example(q, i, j), one_example(k, m, n), one_example(v, m, n), drop=drop, **given)
        parts.append(tuple(map(packed_rows, found)) if statistics else (packed_rows(found),))
    joined = tuple([array.concat(p, 0) for p in zip(*parts)])
    return joined if statistics else joined[0]


def _packed_at_tensors(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rows: Tensor,
    columns: Tensor,
    mask: SparseMask,
    given: dict[str, Any],
    statistics: bool,
) -> Any:
    """Return attention within packed sequences that end at `rows` and `columns`, as one product in
    which scores between different sequences are dropped.
    """
    queries, keys = q.shape[0], k.shape[0]
    of_row, of_column = owners(rows, queries), owners(columns, keys)
    row = positions(queries, 2) - reshaped(gather_scatter.gather(starts_of(rows), of_row, 0), (1, 1, queries, 1))
    column = positions(keys, 3) - reshaped(gather_scatter.gather(starts_of(columns), of_column, 0), (1, 1, 1, keys))
    more = gather_scatter.gather((columns - starts_of(columns)) - (rows - starts_of(rows)), of_row, 0)
    other = run(E.ne, reshaped(of_row, (1, 1, queries, 1)), reshaped(of_column, (1, 1, 1, keys)))
    inner = mask.dropped(row, column, reshaped(more, (1, 1, queries, 1)))
    found: Any = (attend_with_statistics if statistics else attend)(
        one_example(q, 0, queries),
        one_example(k, 0, keys),
        one_example(v, 0, keys),
        drop=either(other, inner),
        **given,
    )
    return tuple(map(packed_rows, found)) if statistics else packed_rows(found)


def _attention(
    operands: tuple[Any, Any, Any],
    heads: int,
    layout: str,
    scale: float,
    keep_prob: float,
    mask: SparseMask,
    ends: tuple[Any, Any],
    *,
    bias: Any = None,
    kept: Any = None,
    bias_first: bool = False,
    slopes: _Slopes | None = None,
    statistics: bool = False,
) -> Any:
    """Return the attention, or with `statistics` the attention and those, after all checks.

    `operands` are query, key and value, `ends` the ends of packed queries and keys. `kept` holds
    the bits of dropout; the bias is `bias`, added before scaling if `bias_first`, or comes of
    `slopes`.
    """
    name, mode = mask.name, mask.mode
    arguments.one_of(name, "input_layout", layout, LAYOUTS)
    arguments.integer(name, "head_num", heads, 1, numpy=False, error=ValueError)
    if mode not in range(6):
        raise ValueError(f"{name}: sparse_mode must be 0 to 5, not {mode!r}; others have no definition yet")
    if not isinstance(keep_prob, (int, float)) or not 0.0 < keep_prob <= 1.0:
        raise ValueError(f"{name}: keep_prob must be in (0, 1], not {keep_prob!r}")
    if keep_prob == 1.0 and kept is not None:
        raise ValueError(f"{name}: there is a drop_mask, but with keep_prob 1.0 nothing is dropped; leave it out")
    q, k, v = (operand(name, x) for x in operands)
    same_types(name, q, k, v)
    given: dict[str, Any] = {"scale": scale, "keep_prob": float(keep_prob), "bias_first": bias_first}
    if layout == "TND":
        if bias is not None or mask.prefix is not None or kept is not None or slopes is not None:
            raise ValueError(
                f"{name}: the layout TND takes no bias, no drop_mask and no prefix here; use BNSD for each sequence"
            )
        if q.ndim != 3 or k.ndim != 3 or v.ndim != 3 or q.shape[1] != heads:
            raise ShapeError(f"{name}: the layout TND takes (T, {heads}, D), not {q._type}, {k._type} and {v._type}")
        check_heads(name, *(one_example(x, 0, x.shape[0]) for x in (q, k, v)))
        return _packed(q, k, v, ends, mask, given, statistics)
    if any(e is not None for e in ends):
        raise ValueError(f"{name}: actual_seq_qlen and actual_seq_kvlen belong to the layout TND, not to {layout}")
    q = to_heads(name, q, layout, heads)
    if q.shape[1] != heads:
        raise ShapeError(f"{name}: head_num is {heads}, but query has {q.shape[1]} heads")
    shared = k.shape[2] // (q.shape[3] or 1) if layout in ("BSH", "SBH") and k.ndim == 3 else heads
    k, v = to_heads(name, k, layout, shared), to_heads(name, v, layout, shared)
    check_heads(name, q, k, v)
    queries, keys = q.shape[2], k.shape[2]
    if mode in (0, 4) and (mask.before < 0 or mask.after < 0):
        check_band(name, mask.before, mask.after, queries, keys)
    row, column = positions(queries, 2), positions(keys, 3)
    drop = mask.dropped(row, column, keys - queries)
    if drop is not None and drop.ndim not in (2, 4):
        raise ShapeError(
            f"{name}: the mask must be of shape ({queries}, {keys}) or (batch, heads or 1, {queries}, {keys}), not "
            f"{drop.shape}"
        )
    given["bias"] = _shift_of(name, bias, q, keys, mode in (2, 3)) if slopes is None else slopes.bias(q, row, column)
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
    it.

    If there is a mask, `sparse_mode` 0 also drops keys more than `pre_tokens` before or
    `next_tokens` after the diagonal from the upper left corner; 1 takes the mask alone. Modes 2 to
    4 ask for the mask of 2048 x 2048 and drop what is above the diagonal from the upper left corner
    (2), above the diagonal into the lower right corner (3), or outside of the band around that
    diagonal (4). Mode 5 is 3 where the first `prefix` keys of each example are never dropped. Rows
    without scores give zeros.

    Args:
        query (Tensor): Of one floating type, in the `input_layout`.
        key (Tensor): Of one floating type, in the `input_layout`.
        value (Tensor): Of one floating type, in the `input_layout`.
        head_num (int): The number N of heads of the query; key and value may have fewer heads, by a
            factor.
        real_shift (Tensor | None): Added to the scores: (B or 1, N, S1, S2), or its last 1024 rows.
            Default: None.
        drop_mask (Tensor | None): The places that dropout keeps as bits, the lowest first; None to
            draw them. Default: None.
        padding_mask (Tensor | None): Must be None. Default: None.
        attn_mask (Tensor | None): True where scores are dropped: (S1, S2) or (B, 1 or N, S1, S2).
            Default: None.
        prefix (Sequence[int] | None): How many of the first keys of each example are never dropped,
            for mode 5. Default: None.
        actual_seq_qlen (Sequence[int] | Tensor | None): The ends of the packed sequences of "TND".
            Default: None.
        actual_seq_kvlen (Sequence[int] | Tensor | None): The ends of the packed sequences of "TND".
            Default: None.
        keep_prob (float): The probability with which weights are kept. Default: 1.0.
        scalar_value (float): The factor of the scores. Default: 1.0.
        pre_tokens (int): How many keys before the diagonal count, in mode 0 and 4. Default:
            2147483647.
        next_tokens (int): How many keys after the diagonal count, in mode 0 and 4. Default:
            2147483647.
        inner_precise (int): Has no effect. Default: 0.
        input_layout (str): "BSH" (B, S, N * D), "SBH" (S, B, N * D), "BNSD", "BSND", or "TND":
            sequences packed end to end. Default: "BSH".
        sparse_mode (int): Which scores are dropped, 0 to 5. Default: 0.

    Returns:
        Tensor: The attention, in the layout and type of `query`.

    Raises:
        TypeError, ValueError: If types, shapes and options do not go together.

    Examples:
        >>> import mycel as ms
        >>> x = ms.ops.ones((1, 3, 4))
        >>> ms.ops.flash_attention_score(x, x, x, 2, scalar_value=0.5).shape
        (1, 3, 4)
    """
    name = "flash_attention_score"
    _reserved(name, padding_mask=padding_mask)
    return _attention(
        (query, key, value),
        head_num,
        input_layout,
        scalar_value,
        keep_prob,
        _mask_of(name, sparse_mode, attn_mask, pre_tokens, next_tokens, prefix),
        (actual_seq_qlen, actual_seq_kvlen),
        bias=real_shift,
        kept=drop_mask,
    )


def _mask_of(name: str, mode: int, mask: Any, before: int, after: int, prefix: Any) -> SparseMask:
    """Return a sparse mode with its mask read."""
    return SparseMask(name, mode, None if mask is None else truth(name, "the mask", mask), before, after, prefix)


def _reserved(name: str, **given: Any) -> None:
    """Raise ValueError for parameters that are given and have no meaning yet."""
    for parameter, value in given.items():
        if value is not None:
            raise ValueError(f"{name}: {parameter} has no meaning yet; leave it out")


@dataclass(frozen=True)
class _Slopes:
    """A bias by distance (ALiBi, Press et al., 2022): minus a slope of each head times the distance
    of query and key, or its square root.

    Positions of queries count from `first_row`, those of keys from `first_column`.
    """

    name: str
    slope: Tensor
    root: bool
    first_row: int
    first_column: int

    def bias(self, q: Tensor, row: Tensor, column: Tensor) -> Tensor:
        """Return the bias of scores of `q` (batch, heads, length, size)."""
        slope = self.slope
        if slope.dtype is not D.float32 or slope.shape not in ((q.shape[1],), q.shape[:2]):
            raise ShapeError(
                f"{self.name}: pse must be of float32 and shape {(q.shape[1],)} or {q.shape[:2]}, not {slope._type}"
            )
        distance = elementwise.abs(cast((row + self.first_row) - (column + self.first_column), D.float32))
        by = run(E.sqrt, distance) if self.root else distance
        return -reshaped(slope, (*(() if slope.ndim == 2 else (1,)), *slope.shape, 1, 1)) * by


def _slopes_of(name: str, pse_type: int, pse: Any, q_start: Any, kv_start: Any) -> _Slopes | None:
    """Return the bias by distance of `pse_type` 2 and 3, and None for the others."""
    if isinstance(pse_type, bool) or not isinstance(pse_type, int) or pse_type not in range(4):
        raise ValueError(f"{name}: pse_type must be 0, 1, 2 or 3, not {pse_type!r}")
    if pse_type < 2:
        return None
    if pse is None:
        raise ValueError(f"{name}: pse_type {pse_type} needs pse, a float32 slope for each head")
    first_row, first_column = (0 if x is None else int(x[0]) for x in (q_start, kv_start))
    return _Slopes(name, operand(name, pse), pse_type == 3, first_row, first_column)


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
    """Return `flash_attention_score` with the statistics of its soft-max.

    With slopes the bias is minus the slope times the distance (`pse_type` 2), or its square root
    (3), between positions counted from `q_start_idx` and `kv_start_idx` (ALiBi, Press et al.,
    2022).

    Args:
        query (Tensor): As in `flash_attention_score`.
        key (Tensor): As in `flash_attention_score`.
        value (Tensor): As in `flash_attention_score`.
        head_num (int): As in `flash_attention_score`.
        input_layout (str): As in `flash_attention_score`.
        pse (Tensor | None): The bias, (B or 1, N, S1, S2), or a float32 slope for each head, (N,)
            or (B, N). Default: None.
        padding_mask (Tensor | None): Must be None. Default: None.
        atten_mask (Tensor | None): As `attn_mask` of `flash_attention_score`. Default: None.
        scale (float): As `scalar_value` of `flash_attention_score`. Default: 1.0.
        keep_prob (float): As in `flash_attention_score`. Default: 1.0.
        pre_tokens (int): As in `flash_attention_score`. Default: 2147483647.
        next_tokens (int): As in `flash_attention_score`. Default: 2147483647.
        inner_precise (int): Has no effect. Default: 0.
        prefix (Sequence[int] | None): As in `flash_attention_score`. Default: None.
        actual_seq_qlen (Sequence[int] | Tensor | None): As in `flash_attention_score`. Default:
            None.
        actual_seq_kvlen (Sequence[int] | Tensor | None): As in `flash_attention_score`. Default:
            None.
        sparse_mode (int): As in `flash_attention_score`. Default: 0.
        gen_mask_parallel (bool): Has no effect. Default: True.
        sync (bool): Has no effect. Default: False.
        pse_type (int): 1 adds the bias before scaling, 0 after; 2 and 3 take slopes. Default: 1.
        q_start_idx (Sequence[int] | None): Where positions are counted from. Default: None.
        kv_start_idx (Sequence[int] | None): Where positions are counted from. Default: None.

    Returns:
        tuple[Tensor, ...]: The attention; of each row the largest score and the sum of exp(score -
            largest), eight times each: (B, N, S1, 8), or (T, N, 8) for "TND"; an empty tensor; and
            three whole numbers about the generator of dropout, which are 0, since places are drawn
            from the generator of Mycel.

    Raises:
        TypeError, ValueError: If types, shapes and options do not go together.

    Examples:
        >>> import mycel as ms
        >>> x = ms.ops.ones((1, 2, 3, 4))
        >>> [t.shape for t in ms.ops.speed_fusion_attention(x, x, x, 2, "BNSD")[:3]]
        [(1, 2, 3, 4), (1, 2, 3, 8), (1, 2, 3, 8)]
    """
    name = "speed_fusion_attention"
    _reserved(name, padding_mask=padding_mask)
    slopes = _slopes_of(name, pse_type, pse, q_start_idx, kv_start_idx)
    out, peak, total = _attention(
        (query, key, value),
        head_num,
        input_layout,
        scale,
        keep_prob,
        _mask_of(name, sparse_mode, atten_mask, pre_tokens, next_tokens, prefix),
        (actual_seq_qlen, actual_seq_kvlen),
        bias=pse if slopes is None else None,
        bias_first=pse_type == 1,
        slopes=slopes,
        statistics=True,
    )
    eight = [array.broadcast_to(x, (*x.shape[:-1], 8)) for x in (peak, total)]
    nothing = constant_like(0, scalar(0, D.int64))
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
    """Join the attention of the same queries to two sets of keys into the attention to both sets
    (ring attention, Liu et al., 2023).

    Args:
        prev_attn_out (Tensor): The attention to one set, (S, B, N * D) in the `layout` "SBH", or
            (T, N, D) in "TND".
        prev_softmax_max (Tensor): Its largest scores, (B, N, S, 8), or (T, N, 8).
        prev_softmax_sum (Tensor): Its sums of exponentials, (B, N, S, 8), or (T, N, 8).
        cur_attn_out (Tensor): The attention to one set, (S, B, N * D) in the `layout` "SBH", or (T,
            N, D) in "TND".
        cur_softmax_max (Tensor): Its largest scores, (B, N, S, 8), or (T, N, 8).
        cur_softmax_sum (Tensor): Its sums of exponentials, (B, N, S, 8), or (T, N, 8).
        actual_seq_qlen (Sequence[int] | Tensor | None): Asked for by "TND"; changes nothing, since
            rows are independent. Default: None.
        layout (str): "SBH" or "TND". Default: "SBH".

    Returns:
        tuple[Tensor, Tensor, Tensor]: The attention, and of each row the largest score and the sum.

    Raises:
        ValueError: If shapes do not go together or `actual_seq_qlen` is missing.

    Examples:
        >>> import mycel as ms
        >>> out, stat = ms.ops.ones((2, 1, 4)), ms.ops.ones((1, 2, 2, 8))
        >>> ms.ops.ring_attention_update(out, stat, stat, out, stat, stat)[2][0, 0, 0, 0].item()
        2.0
    """
    arguments.optional("ring_attention_update", "actual_seq_qlen", actual_seq_qlen, (Tensor, list, tuple))
    name = "ring_attention_update"
    arguments.choice(name, "layout", layout, ("SBH", "TND"))
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
    whole = nonzero(total)

    def share(part: Tensor) -> Tensor:
        ratio = take_slice(part / whole, rank - 1, 0, 1)
        if layout == "TND":
            return ratio
        b, heads, length = ratio.shape[:3]
        spread = array.broadcast_to(permuted(ratio, (2, 0, 1, 3)), (length, b, heads, x.shape[2] // heads))
        return reshaped(spread, (length, b, x.shape[2]))

    out = share(before) * wide(x) + share(after) * wide(y)
    return cast(out, x.dtype), peak, total
