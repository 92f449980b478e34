"""Attention to the keys that an index of importance selects: Native Sparse Attention (Yuan et al.,
2025) and DeepSeek's sparse attention (DeepSeek-V3.2, 2025).

Which keys a query attends to is a mask over all keys of its sequence, made by writing ones where
the indices say: products are dense, and a key that is named twice counts once. Indices name blocks
of keys of the query's own sequence, or single keys; negative ones name nothing. Sequences are
packed ("TND"), with their ends given, or rows of a batch.
"""

from __future__ import annotations

import math
from typing import Any, Optional

import numpy as np

from mycel.base import arguments
from mycel.base import dtype as D
from mycel.base.errors import ShapeError
from mycel.core.fused import fused
from mycel.core.tensor import Tensor, cast
from mycel.ir.dims import product
from mycel.ops import array, indexed, reduction, sorting
from mycel.ops._operands import constant_like, operand, permuted, reshaped, run, select, take_slice, wide
from mycel.ops.attention.serving import from_blocks
from mycel.ops.attention.training import (
    attend_with_statistics,
    check_heads,
    either,
    ends_of,
    exponentials,
    lowest,
    one_example,
    owners,
    packed_rows,
    pieces,
    positions,
    same_types,
    scores_of,
    starts_of,
    truth,
    weighted,
)
from mycel.prims import elementwise as E
from mycel.prims import index as I
from mycel.prims import linalg as L

__all__ = [
    "lightning_indexer",
    "nsa_compress",
    "nsa_compress_attention",
    "nsa_select_attention",
    "sparse_flash_attention",
]

FAR = 2**63 - 1


def _window(name: str, parameter: str, value: Any) -> int:
    arguments.integer(name, parameter, value, 1, numpy=False, error=ValueError)
    return value


@fused
def nsa_compress(
    input: Any, weight: Any, compress_block_size: int, compress_stride: int, *, actual_seq_len: Any
) -> Tensor:
    """Return each window of a sequence as the sum of its tokens times `weight`: (T, N, D) by
    (compress_block_size, N) gives (windows, N, D).

    Windows begin every `compress_stride` tokens and lie within one of the sequences that end at
    `actual_seq_len`. ValueError where sizes do not fit.

    >>> import mycel as ms
    >>> x = ms.Tensor([[[1.0]], [[2.0]], [[3.0]]])
    >>> ms.ops.nsa_compress(x, ms.Tensor([[1.0], [10.0]]), 2, 1, actual_seq_len=(3,)).ravel().tolist()
    [21.0, 32.0]
    """
    name = "nsa_compress"
    x, w = operand(name, input), operand(name, weight)
    length, stride = (
        _window(name, "compress_block_size", compress_block_size),
        _window(name, "compress_stride", compress_stride),
    )
    if stride > length:
        raise ValueError(f"{name}: compress_stride {stride} must not exceed compress_block_size {length}")
    if x.ndim != 3 or w.shape != (length, x.shape[1]) or x.dtype is not w.dtype:
        raise ShapeError(
            f"{name}: takes input (T, N, D) and weight ({length}, N) of one type, not {x._type} and {w._type}"
        )
    ends = ends_of(name, "actual_seq_len", actual_seq_len, x.shape[0])
    first = [s for a, b in pieces(ends) for s in range(a, b - length + 1, stride)]
    where = np.asarray(first, np.int64).reshape(-1, 1) + np.arange(length)
    windows = wide(indexed.gather(x, Tensor(where), 0))
    return cast(reduction.sum(windows * wide(reshaped(w, (1, length, x.shape[1], 1))), 1), x.dtype)


def importance(compressed: int, selected: int, block: int, window: int, stride: int) -> np.ndarray:
    """Return how often each compressed key counts for each selectable block: over m below block /
    stride and n below window / stride, key block / stride * j - m - n.
    """
    counts = np.zeros((compressed, selected))
    blocks = np.arange(selected)
    for back, times in enumerate(np.convolve(np.ones(block // stride), np.ones(window // stride))):
        place = block // stride * blocks - back
        inside = (place >= 0) & (place < compressed)
        counts[place[inside], blocks[inside]] += times
    return counts


def nsa_compress_attention(
    query: Any,
    key: Any,
    value: Any,
    scale_value: float,
    head_num: int,
    compress_block_size: int,
    compress_stride: int,
    select_block_size: int,
    select_block_count: int,
    *,
    topk_mask: Any = None,
    atten_mask: Any = None,
    actual_seq_qlen: Any,
    actual_cmp_seq_kvlen: Any,
    actual_sel_seq_kvlen: Any,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return attention to compressed keys, and which blocks of keys matter most: the result (T1,
    N1, D2), int32 indices (T1, N2, select_block_count), and its statistics.

    Query (T1, N1, D1), key (T2, N2, D1) and value (T2, N2, D2) hold packed sequences that end at
    `actual_seq_qlen` and `actual_cmp_seq_kvlen`; those of selectable blocks end at
    `actual_sel_seq_kvlen`. A block's importance is the sum of the weights of the windows that lie
    in it, over the heads that share a key (eq. 9 and 10 of the paper). `atten_mask` (S1, S2) and
    `topk_mask` (S1, blocks) are True where scores, or blocks, are dropped; dropped blocks come
    last. The statistics are the largest score and the sum of exponentials of each row, (T1, N1, 8).

    ValueError where sizes do not fit, or a sequence has fewer blocks than are to be selected.

    >>> import mycel as ms
    >>> q, k = ms.ops.ones((2, 2, 4)), ms.ops.ones((3, 1, 4))
    >>> out = ms.ops.nsa_compress_attention(q, k, k, 0.5, 2, 16, 16, 16, 1, actual_seq_qlen=(2,), actual_cmp_seq_kvlen=(3,), actual_sel_seq_kvlen=(3,))
    >>> [t.shape for t in out]
    [(2, 2, 4), (2, 1, 1), (2, 2, 8), (2, 2, 8)]
    """
    name = "nsa_compress_attention"
    q, k, v = _packed_operands(name, query, key, value, head_num)
    window, stride = (
        _window(name, "compress_block_size", compress_block_size),
        _window(name, "compress_stride", compress_stride),
    )
    block, count = (
        _window(name, "select_block_size", select_block_size),
        _window(name, "select_block_count", select_block_count),
    )
    if window % stride or block % stride or block < window:
        raise ValueError(
            f"{name}: compress_stride {stride} must divide compress_block_size {window} and select_block_size {block}, "
            "which must not be smaller"
        )
    rows = ends_of(name, "actual_seq_qlen", actual_seq_qlen, q.shape[0])
    columns = ends_of(name, "actual_cmp_seq_kvlen", actual_cmp_seq_kvlen, k.shape[0])
    blocks = [int(e) for e in actual_sel_seq_kvlen]
    if len({len(rows), len(columns), len(blocks)}) > 1:
        raise ValueError(
            f"{name}: there must be as many sequences of queries as of keys and blocks, not {len(rows)}, "
            f"{len(columns)}, {len(blocks)}"
        )
    score_mask = None if atten_mask is None else truth(name, "atten_mask", atten_mask)
    block_mask = None if topk_mask is None else truth(name, "topk_mask", topk_mask)
    parts = []
    for (i, j), (m, n), (s, t) in zip(pieces(rows), pieces(columns), pieces(blocks)):
        if count > t - s:
            raise ValueError(f"{name}: select_block_count {count} is more than the {t - s} blocks of a sequence")
        part, own, values = one_example(q, i, j), one_example(k, m, n), one_example(v, m, n)
        scores = scores_of(part, own)
        drop = None if score_mask is None else _corner(name, "atten_mask", score_mask, j - i, n - m)
        p, peak, total = exponentials(scores * constant_like(float(scale_value), scores), drop)
        p = p / select(run(E.eq, total, constant_like(0.0, total)), constant_like(1.0, total), total)
        out = packed_rows(cast(weighted(p, values), q.dtype))
        shared = reduction.sum(reshaped(p, (k.shape[1], q.shape[1] // k.shape[1], j - i, n - m)), 1)
        counts = Tensor(importance(n - m, t - s, block, window, stride)).astype(shared.dtype)
        matter = run(L.matmul, shared, array.broadcast_to(counts, (k.shape[1], *counts.shape)))
        if block_mask is not None:
            matter = select(_corner(name, "topk_mask", block_mask, j - i, t - s), lowest(matter), matter)
        found = permuted(sorting.topk(matter, count)[1], (1, 0, 2))
        parts.append((out, found, packed_rows(peak), packed_rows(total)))
    out, found, peak, total = (array.concat(p, 0) for p in zip(*parts))
    return out, cast(found, D.int32), _eight(peak), _eight(total)


def _eight(x: Tensor) -> Tensor:
    return array.broadcast_to(x, (*x.shape[:-1], 8))


def _corner(name: str, parameter: str, mask: Tensor, rows: int, columns: int) -> Tensor:
    if mask.ndim != 2 or mask.shape[0] < rows or mask.shape[1] < columns:
        raise ShapeError(
            f"{name}: {parameter} must have at least {rows} rows and {columns} columns, not the shape {mask.shape}"
        )
    return take_slice(take_slice(mask, 0, 0, rows), 1, 0, columns)


def _packed_operands(name: str, query: Any, key: Any, value: Any, heads: Any) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = operand(name, query), operand(name, key), operand(name, value)
    same_types(name, q, k, v)
    if q.ndim != 3 or k.ndim != 3 or v.ndim != 3:
        raise ShapeError(f"{name}: query, key and value are (T, N, D), not {q._type}, {k._type} and {v._type}")
    if q.shape[1] != heads:
        raise ShapeError(f"{name}: head_num is {heads!r}, but query has {q.shape[1]} heads")
    check_heads(name, *(one_example(x, 0, x.shape[0]) for x in (q, k, v)))
    return q, k, v


def chosen(indices: Tensor, block: Tensor, blocks: Any) -> Tensor:
    """Return whether a query attends to each key: (batch, key heads, queries, keys), from indices
    of blocks (..., count) and the block of each key (keys,).
    """
    index = cast(indices, D.int64)
    nobody = run(E.lt, index, constant_like(0, index))
    inside = run(I.checked, select(nobody, constant_like(0, index), index), axis=0, size=blocks, bounds="front")
    inside = select(nobody, constant_like(blocks, index), inside)
    flat = reshaped(inside, (product(inside.shape[:-1]), inside.shape[-1]))
    rows = array.broadcast_to(reshaped(_iota(flat.shape[0]), (flat.shape[0], 1)), flat.shape)
    place = array.stack((rows, flat), -1)
    ones = array.broadcast_to(constant_like(1, Tensor(np.zeros((), np.int8))), flat.shape)
    none = array.broadcast_to(constant_like(0, ones), (flat.shape[0], blocks))
    marks = indexed.write("sparse_attention", none, place, ones, "set", "drop")
    found = indexed.gather(reshaped(marks, (*indices.shape[:-1], blocks)), block, indices.ndim - 1)
    return run(E.ne, found, constant_like(0, found))


def _iota(count: Any) -> Tensor:
    return reshaped(positions(count, 3), (count,))


@fused
def nsa_select_attention(
    query: Any,
    key: Any,
    value: Any,
    topk_indices: Any,
    scale_value: float,
    head_num: int,
    select_block_size: int,
    select_block_count: int,
    *,
    atten_mask: Any = None,
    actual_seq_qlen: Any,
    actual_seq_kvlen: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return attention of each query to the blocks of `select_block_size` keys that `topk_indices`
    (T1, N2, select_block_count) names in its own sequence.

    Query (T1, N1, D1), key (T2, N2, D1) and value (T2, N2, D2) hold packed sequences that end at
    `actual_seq_qlen` and `actual_seq_kvlen`. Results are the attention (T1, N1, D2), and of each
    row the largest score and the sum of exponentials, (T1, N1, 8). A block that is named twice
    counts once.

    ValueError where sizes do not fit, or for an `atten_mask`, which has no definition yet.

    >>> import mycel as ms
    >>> x = ms.Tensor([[[1.0]], [[2.0]], [[3.0]], [[4.0]]])
    >>> blocks = ms.Tensor([[[1]], [[0]], [[1]], [[0]]], ms.int32)
    >>> out = ms.ops.nsa_select_attention(x * 0.0, x, x, blocks, 1.0, 1, 2, 1, actual_seq_qlen=(4,), actual_seq_kvlen=(4,))
    >>> out[0].ravel().tolist()
    [3.5, 1.5, 3.5, 1.5]
    """
    name = "nsa_select_attention"
    if atten_mask is not None:
        raise ValueError(f"{name}: atten_mask has no definition yet; leave it out")
    q, k, v = _packed_operands(name, query, key, value, head_num)
    index = operand(name, topk_indices)
    size = _window(name, "select_block_size", select_block_size)
    if index.shape != (q.shape[0], k.shape[1], select_block_count) or not index.dtype.is_integer:
        raise ShapeError(
            f"{name}: topk_indices must be whole numbers of shape {(q.shape[0], k.shape[1], select_block_count)}, not "
            f"{index._type}"
        )
    rows = ends_of(name, "actual_seq_qlen", actual_seq_qlen, q.shape[0])
    columns = ends_of(name, "actual_seq_kvlen", actual_seq_kvlen, k.shape[0])
    if len(rows) != len(columns):
        raise ValueError(f"{name}: {len(rows)} sequences of queries are not {len(columns)} sequences of keys")
    parts = []
    for (i, j), (m, n) in zip(pieces(rows), pieces(columns)):
        named = permuted(take_slice(index, 0, i, j), (1, 0, 2))
        named = reshaped(named, (1, *named.shape))
        block = Tensor(np.arange(n - m) // size)
        drop = _of_heads(run(E.logical_not, chosen(named, block, max(-(-(n - m) // size), 1))), q.shape[1])
        found = attend_with_statistics(
            one_example(q, i, j), one_example(k, m, n), one_example(v, m, n), scale_value, drop=drop
        )
        parts.append(tuple(map(packed_rows, found)))
    out, peak, total = (array.concat(p, 0) for p in zip(*parts))
    return out, _eight(peak), _eight(total)


def _of_heads(mask: Tensor, heads: Any) -> Tensor:
    """Return a mask of key heads for the heads of queries that share them."""
    b, n, s, t = mask.shape
    if n == heads:
        return mask
    return reshaped(array.broadcast_to(reshaped(mask, (b, n, 1, s, t)), (b, n, heads // n, s, t)), (b, heads, s, t))


# DeepSeek's sparse attention, of which queries and keys lie in the same layouts.


class Laid:
    """Queries and keys of a layout, as (batch, heads, length, size), with what belongs together.

    `drop` is True for keys of other sequences, past a sequence's end, or after the query's own
    place; `start` is where a query's sequence begins among the keys.
    """

    def __init__(
        self,
        name: str,
        query: Tensor,
        keys: list[Tensor],
        rows: Any,
        columns: Any,
        table: Any,
        layout: str,
        key_layout: str,
        mode: int,
    ) -> None:
        arguments.one_of(name, "layout_query", layout, ("BSND", "TND"))
        arguments.one_of(name, "the layout of keys", key_layout, ("BSND", "TND", "PA_BSND"))
        if mode not in (0, 3):
            raise ValueError(f"{name}: sparse_mode must be 0 or 3, not {mode!r}")
        if key_layout != layout and not (layout == "BSND" and key_layout == "PA_BSND"):
            raise ValueError(
                f"{name}: queries of layout {layout} go with keys of the same layout, or BSND with PA_BSND, not with "
                f"{key_layout}"
            )
        rank = 3 if layout == "TND" else 4
        if query.ndim != rank or any(k.ndim != (3 if key_layout == "TND" else 4) for k in keys):
            raise ShapeError(
                f"{name}: {query._type} and {keys[0]._type} are not of the layouts {layout} and {key_layout}"
            )
        self.name, self.layout = name, layout
        self.packed = layout == "TND"
        if self.packed and (rows is None or columns is None):
            raise ValueError(f"{name}: the layout TND needs the ends of the sequences of queries and of keys")
        if key_layout == "PA_BSND" and (table is None or columns is None):
            raise ValueError(f"{name}: the layout PA_BSND needs block_table and the lengths of keys")
        self.query = self.heads(query)
        if key_layout == "PA_BSND":
            blocks = operand(name, table, D.int64)
            self.keys = [
                from_blocks(name, reshaped(k, (*k.shape[:2], k.shape[2] * k.shape[3])), blocks, k.shape[2])
                for k in keys
            ]
        else:
            self.keys = [self.heads(k) for k in keys]
        queries, count = self.query.shape[2], self.keys[0].shape[2]
        row, column = positions(queries, 2), positions(count, 3)
        self.block_of = _iota(count)
        self.start: Optional[Tensor] = None
        if self.packed:
            ends, key_ends = operand(name, rows, D.int64), operand(name, columns, D.int64)
            of_row, of_column = owners(ends, queries), owners(key_ends, count)
            firsts = starts_of(key_ends)
            self.start = reshaped(indexed.gather(firsts, of_row, 0), (1, 1, queries, 1))
            self.block_of = self.block_of - indexed.gather(firsts, of_column, 0)
            more = indexed.gather((key_ends - firsts) - (ends - starts_of(ends)), of_row, 0)
            corner = row - reshaped(indexed.gather(starts_of(ends), of_row, 0), (1, 1, queries, 1))
            corner = corner + reshaped(more, (1, 1, queries, 1))
            own = column - self.start
            beyond: Optional[Tensor] = run(
                E.ne, reshaped(of_row, (1, 1, queries, 1)), reshaped(of_column, (1, 1, 1, count))
            )
            self.no_row: Optional[Tensor] = None
        else:
            lengths = None if rows is None else reshaped(operand(name, rows, D.int64), (query.shape[0], 1, 1, 1))
            held = None if columns is None else reshaped(operand(name, columns, D.int64), (query.shape[0], 1, 1, 1))
            own = column
            corner = row + (constant_like(count, row) if held is None else held)
            corner = corner - (constant_like(queries, row) if lengths is None else lengths)
            beyond = None if held is None else run(E.ge, column, held)
            self.no_row = None if lengths is None else run(E.ge, row, lengths)
        self.drop = either(beyond, run(E.gt, own, corner) if mode == 3 else None)

    def heads(self, x: Tensor) -> Tensor:
        return one_example(x, 0, x.shape[0]) if self.packed else permuted(x, (0, 2, 1, 3))

    def back(self, x: Tensor) -> Tensor:
        """Return (batch, heads, queries, size) in the layout of queries."""
        return packed_rows(x) if self.packed else permuted(x, (0, 2, 1, 3))


@fused
def lightning_indexer(
    query: Any,
    key: Any,
    weights: Any,
    *,
    actual_seq_lengths_query: Any = None,
    actual_seq_lengths_key: Any = None,
    block_table: Any = None,
    layout_query: str = "BSND",
    layout_key: str = "BSND",
    sparse_count: int = 2048,
    sparse_mode: int = 3,
    pre_tokens: int = FAR,
    next_tokens: int = FAR,
    return_value: bool = False,
) -> tuple[Tensor, Tensor]:
    """For each query the `sparse_count` keys with the largest sum over heads of weight * relu(q .
    k), best first: int32 indices, -1 where there are no more.

    Layouts are "BSND" (B, S, N, D) with weights (B, S, N), "TND" (T, N, D) with (T, N), sequences
    packed end to end whose ends are the lengths, and for keys also "PA_BSND", blocks of a cache
    that `block_table` names. There is one head of keys. `sparse_mode` 3 leaves out keys after the
    query's own place, counted from the end of its sequence; 0 leaves out none. Indices are (B, S,
    1, count) or (T, 1, count); with `return_value` their sums come too, -inf where there are no
    more, else an empty tensor.

    ValueError where layouts and sizes do not go together.

    >>> import mycel as ms
    >>> q, k, w = ms.Tensor([[[[1.0]]]]), ms.Tensor([[[[1.0]], [[3.0]], [[2.0]]]]), ms.Tensor([[[1.0]]])
    >>> ms.ops.lightning_indexer(q, k, w, sparse_count=2)[0].ravel().tolist()
    [1, 2]
    """
    name = "lightning_indexer"
    if pre_tokens != FAR or next_tokens != FAR:
        raise ValueError(f"{name}: pre_tokens and next_tokens can only be what they are by default")
    count = _window(name, "sparse_count", sparse_count)
    q, k, w = operand(name, query), operand(name, key), operand(name, weights)
    same_types(name, q, k, w)
    if w.shape != q.shape[:-1]:
        raise ShapeError(f"{name}: weights must be of shape {q.shape[:-1]}, one for each head, not {w.shape}")
    laid = Laid(
        name,
        q,
        [k],
        actual_seq_lengths_query,
        actual_seq_lengths_key,
        block_table,
        layout_query,
        layout_key,
        sparse_mode,
    )
    if laid.keys[0].shape[1] != 1:
        raise ShapeError(f"{name}: there must be one head of keys, not {laid.keys[0].shape[1]}")
    factors = laid.heads(reshaped(w, (*w.shape, 1)))
    hits = scores_of(laid.query, laid.keys[0])
    hits = run(E.maximum, hits, constant_like(0.0, hits))
    sums = reduction.sum(hits * wide(factors), 1, True)
    drop = either(laid.drop, laid.no_row)
    least = constant_like(-math.inf, sums)
    if drop is not None:
        sums = select(drop, least, sums)
    keys = sums.shape[3]
    values, found = sorting.topk(sums, min(count, keys))
    index = cast(found, D.int64)
    if laid.start is not None:
        index = index - laid.start
    index = select(run(E.eq, values, least), constant_like(-1, index), index)
    if count > keys:
        short = (*index.shape[:3], count - keys)
        index = array.concat((index, array.broadcast_to(constant_like(-1, index), short)), 3)
        values = array.concat((values, array.broadcast_to(least, short)), 3)
    out = laid.back(cast(values, q.dtype)) if return_value else Tensor(np.zeros((0,), np.float32)).astype(q.dtype)
    return laid.back(cast(index, D.int32)), out


@fused
def sparse_flash_attention(
    query: Any,
    key: Any,
    value: Any,
    sparse_indices: Any,
    scale_value: float,
    *,
    block_table: Any = None,
    actual_seq_lengths_query: Any = None,
    actual_seq_lengths_kv: Any = None,
    query_rope: Any = None,
    key_rope: Any = None,
    sparse_block_size: int = 1,
    layout_query: str = "BSND",
    layout_kv: str = "BSND",
    sparse_mode: int = 3,
    pre_tokens: int = FAR,
    next_tokens: int = FAR,
    attention_mode: int = 0,
    return_softmax_lse: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return attention of each query to the keys that `sparse_indices` names, as
    `lightning_indexer` finds them, with rotated parts of their own (multi-head latent attention).

    Scores are scale_value * (q . k + q_rope . k_rope). Layouts are those of `lightning_indexer`;
    indices (B, S, N2, count) or (T, N2, count) name blocks of `sparse_block_size` keys in the
    query's own sequence, negative ones nothing. `attention_mode` must be 2, with `query_rope` and
    `key_rope`. Results are the attention in the layout of `query`, and, with `return_softmax_lse`,
    of each row the largest score and the sum of exponentials, (B, N2, S, N1 / N2) or (N2, T, N1 /
    N2); else two empty tensors. Rows without keys give zeros.

    ValueError where layouts and sizes do not go together.

    >>> import mycel as ms
    >>> x, rope = ms.Tensor([[[[1.0]], [[3.0]]]]), ms.ops.zeros((1, 2, 1, 1))
    >>> index = ms.Tensor([[[[0]], [[1]]]], ms.int32)
    >>> out = ms.ops.sparse_flash_attention(x, x, x, index, 1.0, query_rope=rope, key_rope=rope, attention_mode=2)
    >>> out[0].ravel().tolist()
    [1.0, 3.0]
    """
    name = "sparse_flash_attention"
    if attention_mode != 2 or query_rope is None or key_rope is None:
        raise ValueError(f"{name}: attention_mode must be 2, with query_rope and key_rope, not {attention_mode!r}")
    if pre_tokens != FAR or next_tokens != FAR:
        raise ValueError(f"{name}: pre_tokens and next_tokens can only be what they are by default")
    size = _window(name, "sparse_block_size", sparse_block_size)
    if size > 128 or size & (size - 1):
        raise ValueError(f"{name}: sparse_block_size must be a power of two up to 128, not {size}")
    q, k, v, index = (operand(name, x) for x in (query, key, value, sparse_indices))
    q_rope, k_rope = operand(name, query_rope), operand(name, key_rope)
    same_types(name, q, k, v, q_rope, k_rope)
    if q_rope.shape[:-1] != q.shape[:-1] or k_rope.shape[:-1] != k.shape[:-1]:
        raise ShapeError(f"{name}: query_rope and key_rope must be like query and key but for the last axis")
    joined = [array.concat((a, b), a.ndim - 1) for a, b in ((q, q_rope), (k, k_rope))]
    laid = Laid(
        name,
        joined[0],
        [joined[1], v],
        actual_seq_lengths_query,
        actual_seq_lengths_kv,
        block_table,
        layout_query,
        layout_kv,
        sparse_mode,
    )
    keys, values = laid.keys
    check_heads(name, laid.query, keys, values)
    shared, heads = keys.shape[1], laid.query.shape[1]
    if index.shape[:-1] != (*q.shape[:-2], shared) or not index.dtype.is_integer:
        raise ShapeError(
            f"{name}: sparse_indices must be whole numbers of shape {(*q.shape[:-2], shared)} and a count, not "
            f"{index._type}"
        )
    block = run(E.floor_div, laid.block_of, constant_like(size, laid.block_of))
    named = chosen(laid.heads(index), block, -(-keys.shape[2] // size))
    drop = either(_of_heads(run(E.logical_not, named), heads), laid.drop)
    out, peak, total = attend_with_statistics(laid.query, keys, values, scale_value, drop=drop)
    if laid.no_row is not None:
        out = select(laid.no_row, constant_like(0.0, out), out)
    empty = Tensor(np.zeros((0,), np.float32)).astype(peak.dtype)
    if not return_softmax_lse:
        return laid.back(out), empty, empty

    def by_group(x: Tensor) -> Tensor:
        b, n, s, _ = x.shape
        grouped = permuted(reshaped(x, (b, shared, n // shared, s)), (0, 1, 3, 2))
        return reshaped(grouped, grouped.shape[1:]) if laid.packed else grouped

    return laid.back(out), by_group(peak), by_group(total)
