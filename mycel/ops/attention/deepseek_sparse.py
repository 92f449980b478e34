"""DeepSeek's sparse attention (DeepSeek-V3.2, 2025): attention to the keys that an index of
importance selects.

Sequences are packed ("TND"), with their ends given, or rows of a batch. Indices name single keys or
blocks of keys of the query's own sequence; negative ones name nothing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycel._src.compiler.prims import elementwise as E
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops import array, gather_scatter, reduction, sorting
from mycel.ops._operands import constant_like, numbers_of, operand, permuted, reshaped, run, select, wide
from mycel.ops.attention.key_selection import chosen, of_heads, places, positive
from mycel.ops.attention.masks import either, positions
from mycel.ops.attention.qkv_layouts import check_heads, one_example, owners, packed_rows, same_types, starts_of
from mycel.ops.attention.scaled_dot_product import attend_with_statistics, scores_of
from mycel.ops.attention.serving_core import from_blocks

__all__ = ["lightning_indexer", "sparse_flash_attention"]

FAR = 2**63 - 1


class Laid:
    """Queries and keys of a layout, as (batch, heads, length, size), and which of them belong
    together.

    `name` is the operation, for errors. `query` and `keys` are of the layouts `layout` and
    `key_layout`; `rows` and `columns` are the lengths of queries and of keys, or the ends of packed
    ones, and `table` names the blocks of a cache. `mode` 3 drops keys after the query's own place,
    0 none.

    `drop` is True for keys of other sequences, past a sequence's end, or after the query's own
    place; `no_row` for queries past the end of theirs. `start` is where a query's sequence begins
    among the keys, and `block_of` the place of each key in its own sequence.
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
        self.block_of = places(self.keys[0].shape[2])
        self.start: Tensor | None = None
        self.no_row: Tensor | None = None
        lengths, held = (None if x is None else numbers_of(name, "the lengths", x) for x in (rows, columns))
        outside: Tensor | None
        if lengths is not None and held is not None and self.packed:
            own, corner, outside = self._in_sequences(lengths, held)
        else:
            own, corner, outside = self._in_batch(lengths, held)
        self.drop = either(outside, run(E.gt, own, corner) if mode == 3 else None)

    def _in_sequences(self, ends: Tensor, key_ends: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return, for packed sequences, the places of keys and the own places of queries, both in
        the query's sequence, and which keys are of other sequences.
        """
        queries, count = self.query.shape[2], self.keys[0].shape[2]
        row, column = positions(queries, 2), positions(count, 3)
        of_row, of_column = owners(ends, queries), owners(key_ends, count)
        firsts = starts_of(key_ends)
        self.start = reshaped(gather_scatter.gather(firsts, of_row, 0), (1, 1, queries, 1))
        self.block_of = self.block_of - gather_scatter.gather(firsts, of_column, 0)
        more = gather_scatter.gather((key_ends - firsts) - (ends - starts_of(ends)), of_row, 0)
        corner = row - reshaped(gather_scatter.gather(starts_of(ends), of_row, 0), (1, 1, queries, 1))
        corner = corner + reshaped(more, (1, 1, queries, 1))
        other = run(E.ne, reshaped(of_row, (1, 1, queries, 1)), reshaped(of_column, (1, 1, 1, count)))
        return column - self.start, corner, other

    def _in_batch(self, lengths: Tensor | None, held: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return, for rows of a batch, the places of keys, the own places of queries, and which
        keys are past the end of their example.
        """
        batch, _, queries, _ = self.query.shape
        count = self.keys[0].shape[2]
        row, column = positions(queries, 2), positions(count, 3)
        lengths, held = (None if x is None else reshaped(x, (batch, 1, 1, 1)) for x in (lengths, held))
        corner = row + (constant_like(count, row) if held is None else held)
        corner = corner - (constant_like(queries, row) if lengths is None else lengths)
        self.no_row = None if lengths is None else run(E.ge, row, lengths)
        return column, corner, None if held is None else run(E.ge, column, held)

    def heads(self, x: Tensor) -> Tensor:
        """Return `x` in the layout of queries as (batch, heads, length, size)."""
        return one_example(x, 0, x.shape[0]) if self.packed else permuted(x, (0, 2, 1, 3))

    def back(self, x: Tensor) -> Tensor:
        """Return (batch, heads, queries, size) in the layout of queries."""
        return packed_rows(x) if self.packed else permuted(x, (0, 2, 1, 3))

    def by_group(self, x: Tensor) -> Tensor:
        """Return statistics (batch, heads, queries, 1) as (batch, key heads, queries, heads that
        share a key), without the batch where sequences are packed.
        """
        b, n, s, _ = x.shape
        shared = self.keys[0].shape[1]
        grouped = permuted(reshaped(x, (b, shared, n // shared, s)), (0, 1, 3, 2))
        return reshaped(grouped, grouped.shape[1:]) if self.packed else grouped


def _check_no_band(name: str, before: int, after: int) -> None:
    """Raise ValueError for a band, which this attention has not."""
    if before != FAR or after != FAR:
        raise ValueError(f"{name}: pre_tokens and next_tokens can only be what they are by default")


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
    """Return for each query the `sparse_count` keys with the largest sum over heads of weight *
    relu(q . k), best first.

    Args:
        query (Tensor): "BSND" (B, S, N, D), or "TND" (T, N, D), sequences packed end to end.
        key (Tensor): In one of these layouts with one head, or "PA_BSND", blocks of a cache.
        weights (Tensor): The weights of the heads, (B, S, N) or (T, N).
        actual_seq_lengths_query (Tensor | Sequence[int] | None): The lengths of the examples of a
            batch, or the ends of packed sequences. Default: None.
        actual_seq_lengths_key (Tensor | Sequence[int] | None): The lengths of the examples of a
            batch, or the ends of packed sequences. Default: None.
        block_table (Tensor | None): The blocks of each example. Default: None.
        layout_query (str): The layout of `query`. Default: "BSND".
        layout_key (str): The layout of `key`. Default: "BSND".
        sparse_count (int): How many keys are chosen. Default: 2048.
        sparse_mode (int): 3 leaves out keys after the query's own place, counted from the end of
            its sequence; 0 leaves out none. Default: 3.
        pre_tokens (int): Must be left as it is. Default: 9223372036854775807.
        next_tokens (int): Must be left as it is. Default: 9223372036854775807.
        return_value (bool): Whether the sums are returned as well. Default: False.

    Returns:
        tuple[Tensor, Tensor]: The indices, (B, S, 1, count) or (T, 1, count), int32, -1 where there
            are no more; and their sums, -inf where there are no more, or an empty tensor.

    Raises:
        ValueError: If layouts and sizes do not go together.

    Examples:
        >>> import mycel as ms
        >>> q, w = ms.Tensor([[[[1.0]]]]), ms.Tensor([[[1.0]]])
        >>> k = ms.Tensor([[[[1.0]], [[3.0]], [[2.0]]]])
        >>> ms.ops.lightning_indexer(q, k, w, sparse_count=2)[0].ravel().tolist()
        [1, 2]
    """
    name = "lightning_indexer"
    _check_no_band(name, pre_tokens, next_tokens)
    count = positive(name, "sparse_count", sparse_count)
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
    `lightning_indexer` finds them (multi-head latent attention).

    Scores are scale_value * (q . k + q_rope . k_rope). Rows without keys give zeros.

    Args:
        query (Tensor): In the layout `layout_query`.
        key (Tensor): In the layout `layout_kv`.
        value (Tensor): In the layout `layout_kv`.
        sparse_indices (Tensor): Blocks of keys in the query's own sequence, negative numbers for
            nothing, (B, S, N2, count) or (T, N2, count).
        scale_value (float): The factor of the scores.
        block_table (Tensor | None): The blocks of each example. Default: None.
        actual_seq_lengths_query (Tensor | Sequence[int] | None): The lengths of the examples of a
            batch, or the ends of packed sequences. Default: None.
        actual_seq_lengths_kv (Tensor | Sequence[int] | None): The lengths of the examples of a
            batch, or the ends of packed sequences. Default: None.
        query_rope (Tensor | None): The rotated part. Default: None.
        key_rope (Tensor | None): The rotated part. Default: None.
        sparse_block_size (int): The number of keys of a block. Default: 1.
        layout_query (str): As in `lightning_indexer`. Default: "BSND".
        layout_kv (str): As in `lightning_indexer`. Default: "BSND".
        sparse_mode (int): As in `lightning_indexer`. Default: 3.
        pre_tokens (int): As in `lightning_indexer`. Default: 9223372036854775807.
        next_tokens (int): As in `lightning_indexer`. Default: 9223372036854775807.
        attention_mode (int): Must be 2. Default: 0.
        return_softmax_lse (bool): Whether the statistics are returned as well. Default: False.

    Returns:
        tuple[Tensor, Tensor, Tensor]: The attention in the layout of `query`, and of each row the
            largest score and the sum of exponentials, (B, N2, S, N1 / N2) or (N2, T, N1 / N2), or
            two empty tensors.

    Raises:
        ValueError: If layouts and sizes do not go together.

    Examples:
        >>> import mycel as ms
        >>> x, rope = ms.Tensor([[[[1.0]], [[3.0]]]]), ms.ops.zeros((1, 2, 1, 1))
        >>> options = {"query_rope": rope, "key_rope": rope, "attention_mode": 2}
        >>> index = ms.Tensor([[[[0]], [[1]]]], ms.int32)
        >>> ms.ops.sparse_flash_attention(x, x, x, index, 1.0, **options)[0].ravel().tolist()
        [1.0, 3.0]
    """
    name = "sparse_flash_attention"
    if attention_mode != 2 or query_rope is None or key_rope is None:
        raise ValueError(f"{name}: attention_mode must be 2, with query_rope and key_rope, not {attention_mode!r}")
    _check_no_band(name, pre_tokens, next_tokens)
    size = positive(name, "sparse_block_size", sparse_block_size)
    if size > 128 or size & (size - 1):
        raise ValueError(f"{name}: sparse_block_size must be a power of two up to 128, not {size}")
    q, k, v, index = (operand(name, x) for x in (query, key, value, sparse_indices))
    q_rope, k_rope = operand(name, query_rope), operand(name, key_rope)
    same_types(name, q, k, v, q_rope, k_rope)
    if q_rope.shape[:-1] != q.shape[:-1] or k_rope.shape[:-1] != k.shape[:-1]:
        raise ShapeError(f"{name}: query_rope and key_rope must be like query and key but for the last axis")
    joined = [array.concat((a, b), a.ndim - 1) for a, b in ((q, q_rope), (k, k_rope))]
    lengths = (actual_seq_lengths_query, actual_seq_lengths_kv)
    laid = Laid(name, joined[0], [joined[1], v], *lengths, block_table, layout_query, layout_kv, sparse_mode)
    keys, values = laid.keys
    check_heads(name, laid.query, keys, values)
    lead = (*q.shape[:-2], keys.shape[1])
    if index.shape[:-1] != lead or not index.dtype.is_integer:
        raise ShapeError(f"{name}: sparse_indices must be whole numbers of shape {lead} and a count, not {index._type}")
    block = run(E.floor_div, laid.block_of, constant_like(size, laid.block_of))
    named = chosen(laid.heads(index), block, -(-keys.shape[2] // size))
    drop = either(of_heads(run(E.logical_not, named), laid.query.shape[1]), laid.drop)
    out, peak, total = attend_with_statistics(laid.query, keys, values, scale_value, drop=drop)
    if laid.no_row is not None:
        out = select(laid.no_row, constant_like(0.0, out), out)
    empty = Tensor(np.zeros((0,), np.float32)).astype(peak.dtype)
    if not return_softmax_lse:
        return laid.back(out), empty, empty
    return laid.back(out), laid.by_group(peak), laid.by_group(total)
