"""Native Sparse Attention (Yuan et al., 2025): keys compressed by windows, and attention to the
blocks of keys that are found to matter most.

Sequences are packed ("TND") with their ends given, and are cut apart. Indices name blocks of keys
of the query's own sequence.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import matrix_product
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops import array, gather_scatter, reduction, sorting
from mycel.ops._operands import constant_like, operand, permuted, reshaped, run, select, take_slice, wide
from mycel.ops.attention.key_selection import chosen, of_heads, positive
from mycel.ops.attention.masks import truth
from mycel.ops.attention.qkv_layouts import check_heads, ends_of, one_example, packed_rows, pieces, same_types
from mycel.ops.attention.scaled_dot_product import (
    attend_with_statistics,
    exponentials,
    lowest,
    nonzero,
    scores_of,
    weighted,
)

__all__ = ["nsa_compress", "nsa_compress_attention", "nsa_select_attention"]


@fused
def nsa_compress(
    input: Any, weight: Any, compress_block_size: int, compress_stride: int, *, actual_seq_len: Any
) -> Tensor:
    """Return each window of a sequence as the sum of its tokens times `weight`.

    Args:
        input (Tensor): (T, N, D).
        weight (Tensor): (compress_block_size, N).
        compress_block_size (int): The number of tokens of a window.
        compress_stride (int): How many tokens after each other windows begin.
        actual_seq_len (Sequence[int] | Tensor | None): The ends of the sequences within which
            windows lie.

    Returns:
        Tensor: (windows, N, D).

    Raises:
        ValueError: If sizes do not fit.

    Examples:
        >>> import mycel as ms
        >>> x = ms.Tensor([[[1.0]], [[2.0]], [[3.0]]])
        >>> weight = ms.Tensor([[1.0], [10.0]])
        >>> ms.ops.nsa_compress(x, weight, 2, 1, actual_seq_len=(3,)).ravel().tolist()
        [21.0, 32.0]
    """
    name = "nsa_compress"
    x, w = operand(name, input), operand(name, weight)
    length = positive(name, "compress_block_size", compress_block_size)
    stride = positive(name, "compress_stride", compress_stride)
    if stride > length:
        raise ValueError(f"{name}: compress_stride {stride} must not exceed compress_block_size {length}")
    if x.ndim != 3 or w.shape != (length, x.shape[1]) or x.dtype is not w.dtype:
        raise ShapeError(
            f"{name}: takes input (T, N, D) and weight ({length}, N) of one type, not {x._type} and {w._type}"
        )
    ends = ends_of(name, "actual_seq_len", actual_seq_len, x.shape[0])
    first = [s for a, b in pieces(ends) for s in range(a, b - length + 1, stride)]
    where = np.asarray(first, np.int64).reshape(-1, 1) + np.arange(length)
    windows = wide(gather_scatter.gather(x, Tensor(where), 0))
    return cast(reduction.sum(windows * wide(reshaped(w, (1, length, x.shape[1], 1))), 1), x.dtype)


def importance(compressed: int, selected: int, block: int, window: int, stride: int) -> np.ndarray:
    """Return how often each of `compressed` keys counts for each of `selected` blocks.

    A window has `window` tokens and begins every `stride` tokens, a block has `block` tokens. For
    block j these are the compressed keys block / stride * j - m - n, over m below block / stride
    and n below window / stride.
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
    """Return attention to compressed keys, and which blocks of keys matter most.

    A block's importance is the sum of the weights of the windows that lie in it, over the heads
    that share a key (eq. 9 and 10 of the paper).

    Args:
        query (Tensor): (T1, N1, D1), sequences packed end to end.
        key (Tensor): (T2, N2, D1).
        value (Tensor): (T2, N2, D2).
        scale_value (float): The factor of the scores.
        head_num (int): The number N1 of heads of queries.
        compress_block_size (int): The number of tokens of a window.
        compress_stride (int): How many tokens after each other windows begin.
        select_block_size (int): The number of tokens of a block.
        select_block_count (int): How many blocks are selected.
        topk_mask (Tensor | None): True where blocks are dropped, which come last, (S1, blocks).
            Default: None.
        atten_mask (Tensor | None): True where scores are dropped, (S1, S2). Default: None.
        actual_seq_qlen (Sequence[int] | Tensor | None): The ends of the sequences of queries.
        actual_cmp_seq_kvlen (Sequence[int] | Tensor | None): The ends of the sequences of
            compressed keys.
        actual_sel_seq_kvlen (Sequence[int] | Tensor | None): The ends of the sequences of blocks
            that may be selected.

    Returns:
        tuple[Tensor, Tensor, Tensor, Tensor]: The attention, (T1, N1, D2); the blocks, (T1, N2,
            select_block_count), int32; and of each row the largest score and the sum of
            exponentials, (T1, N1, 8).

    Raises:
        ValueError: If sizes do not fit, or a sequence has fewer blocks than are to be selected.

    Examples:
        >>> import mycel as ms
        >>> q, k = ms.ops.ones((2, 2, 4)), ms.ops.ones((3, 1, 4))
        >>> ends = {"actual_seq_qlen": (2,), "actual_cmp_seq_kvlen": (3,), "actual_sel_seq_kvlen": (
        ...     3,)}
        >>> out = ms.ops.nsa_compress_attention(q, k, k, 0.5, 2, 16, 16, 16, 1, **ends)
        >>> [t.shape for t in out]
        [(2, 2, 4), (2, 1, 1), (2, 2, 8), (2, 2, 8)]
    """
    name = "nsa_compress_attention"
    q, k, v = _packed_operands(name, query, key, value, head_num)
    window = positive(name, "compress_block_size", compress_block_size)
    stride = positive(name, "compress_stride", compress_stride)
    block = positive(name, "select_block_size", select_block_size)
    count = positive(name, "select_block_count", select_block_count)
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
        p = p / nonzero(total)
        out = packed_rows(cast(weighted(p, values), q.dtype))
        shared = reduction.sum(reshaped(p, (k.shape[1], q.shape[1] // k.shape[1], j - i, n - m)), 1)
        counts = Tensor(importance(n - m, t - s, block, window, stride)).astype(shared.dtype)
        matter = run(matrix_product.matmul, shared, array.broadcast_to(counts, (k.shape[1], *counts.shape)))
        if block_mask is not None:
            matter = select(_corner(name, "topk_mask", block_mask, j - i, t - s), lowest(matter), matter)
        found = permuted(sorting.topk(matter, count)[1], (1, 0, 2))
        parts.append((out, found, packed_rows(peak), packed_rows(total)))
    out, found, peak, total = (array.concat(p, 0) for p in zip(*parts))
    return out, cast(found, D.int32), _eight(peak), _eight(total)


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
    """Return attention of each query to selected blocks of keys.

    Args:
        query (Tensor): (T1, N1, D1), sequences packed end to end.
        key (Tensor): (T2, N2, D1).
        value (Tensor): (T2, N2, D2).
        topk_indices (Tensor): The blocks of each query in its own sequence, (T1, N2,
            select_block_count); one that is named twice counts once.
        scale_value (float): The factor of the scores.
        head_num (int): The number N1 of heads of queries.
        select_block_size (int): The number of tokens of a block.
        select_block_count (int): How many blocks are selected.
        atten_mask (None): Must be None: it has no definition yet. Default: None.
        actual_seq_qlen (Sequence[int] | Tensor | None): The ends of the sequences of queries.
        actual_seq_kvlen (Sequence[int] | Tensor | None): The ends of the sequences of keys.

    Returns:
        tuple[Tensor, Tensor, Tensor]: The attention, (T1, N1, D2), and of each row the largest
            score and the sum of exponentials, (T1, N1, 8).

    Raises:
        ValueError: If sizes do not fit, and for an `atten_mask`.

    Examples:
        >>> import mycel as ms
        >>> x = ms.Tensor([[[1.0]], [[2.0]], [[3.0]], [[4.0]]])
        >>> blocks = ms.Tensor([[[1]], [[0]], [[1]], [[0]]], ms.int32)
        >>> ends = {"actual_seq_qlen": (4,), "actual_seq_kvlen": (4,)}
        >>> out = ms.ops.nsa_select_attention(x * 0.0, x, x, blocks, 1.0, 1, 2, 1, **ends)
        >>> out[0].ravel().tolist()
        [3.5, 1.5, 3.5, 1.5]
    """
    name = "nsa_select_attention"
    if atten_mask is not None:
        raise ValueError(f"{name}: atten_mask has no definition yet; leave it out")
    q, k, v = _packed_operands(name, query, key, value, head_num)
    index = operand(name, topk_indices)
    size = positive(name, "select_block_size", select_block_size)
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
        drop = of_heads(run(E.logical_not, chosen(named, block, max(-(-(n - m) // size), 1))), q.shape[1])
        found = attend_with_statistics(
            one_example(q, i, j), one_example(k, m, n), one_example(v, m, n), scale_value, drop=drop
        )
        parts.append(tuple(map(packed_rows, found)))
    out, peak, total = (array.concat(p, 0) for p in zip(*parts))
    return out, _eight(peak), _eight(total)


def _packed_operands(name: str, query: Any, key: Any, value: Any, heads: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Return packed queries, keys and values (T, N, D) after checking that they go together."""
    q, k, v = operand(name, query), operand(name, key), operand(name, value)
    same_types(name, q, k, v)
    if q.ndim != 3 or k.ndim != 3 or v.ndim != 3:
        raise ShapeError(f"{name}: query, key and value are (T, N, D), not {q._type}, {k._type} and {v._type}")
    if q.shape[1] != heads:
        raise ShapeError(f"{name}: head_num is {heads!r}, but query has {q.shape[1]} heads")
    check_heads(name, *(one_example(x, 0, x.shape[0]) for x in (q, k, v)))
    return q, k, v


def _corner(name: str, parameter: str, mask: Tensor, rows: int, columns: int) -> Tensor:
    """Return the upper left corner of a mask.

    Raises ShapeError where the mask is smaller.
    """
    if mask.ndim != 2 or mask.shape[0] < rows or mask.shape[1] < columns:
        raise ShapeError(
            f"{name}: {parameter} must have at least {rows} rows and {columns} columns, not the shape {mask.shape}"
        )
    return take_slice(take_slice(mask, 0, 0, rows), 1, 0, columns)


def _eight(x: Tensor) -> Tensor:
    """Return statistics eight times each, as MindSpore has them."""
    return array.broadcast_to(x, (*x.shape[:-1], 8))
