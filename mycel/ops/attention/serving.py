"""Attention for models in service: prompts, one new token at a time, and keys and values that are
kept in blocks.

All of them are `mycel.ops.attention.attend` with a mask of which rows and columns hold anything:
lengths of the examples of a batch, counted from the left, or from the right where a padding size is
given. Rows without a query are zeros. Keys and values of 8 bits are restored as (x + offset) *
scale; results of 8 bits are round(x * scale + offset).

A cache is blocks of tokens: (blocks, tokens, heads * size), (blocks, heads, tokens, size), or with
`PagedAttention` (blocks, tokens, heads, size). The table of an example names its blocks in order. A
slot is a token's place in the cache seen as one row of tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

import numpy as np

from mycel.base import arguments
from mycel.base import dtype as D
from mycel.base.errors import ShapeError
from mycel.core.fused import fused
from mycel.core.tensor import Tensor, cast
from mycel.ops import array, elementwise, indexed
from mycel.ops._operands import (
    constant_like,
    number_of,
    operand,
    permuted,
    reshaped,
    run,
    select,
    size_of,
    sizes_of,
    take_slice,
)
from mycel.ops.attention.training import (
    MOST,
    attend,
    attend_with_statistics,
    check_heads,
    either,
    from_heads,
    positions,
    same_types,
    sparse_mask,
    to_heads,
    truth,
)
from mycel.prims import elementwise as E
from mycel.prims import index as I

__all__ = ["fused_infer_attention_score", "incre_flash_attention", "prompt_flash_attention"]


@dataclass(frozen=True)
class Extent:
    """Where the rows or columns of each example lie: from `start`, which is a number or (batch, 1,
    1, 1), `length` of them.
    """

    start: Any
    length: Any
    whole: bool

    def own(self, place: Tensor) -> Tensor:
        """Return positions counted from the first one of each example."""
        return place if self.whole or isinstance(self.start, int) else place - self.start

    def outside(self, place: Tensor) -> Optional[Tensor]:
        """Return True at positions that hold nothing."""
        if self.whole:
            return None
        own = self.own(place)
        late = run(E.ge, own, self.length)
        return late if isinstance(self.start, int) else either(late, run(E.lt, own, constant_like(0, own)))


def _numbers(name: str, parameter: str, value: Any) -> Tensor:
    """Return whole numbers of an argument that is a tensor or a sequence."""
    if isinstance(value, (tuple, list)):
        value = np.array(sizes_of(name, parameter, value), np.int64)
    x = operand(name, value, D.int64)
    if x.ndim > 1:
        raise ShapeError(f"{name}: {parameter} must have one number for each example, not the shape {x.shape}")
    return x


def extent(name: str, parameter: str, lengths: Any, padding: Any, batch: Any, size: Any) -> Extent:
    """Return the extent of examples of `lengths` in an axis of `size`; to the right of it, before
    `padding` places, where that is given.
    """
    if lengths is None:
        return Extent(0, size, True)
    x = _numbers(name, parameter, lengths)
    if x.shape not in ((batch,), (1,), ()):
        raise ValueError(f"{name}: {parameter} must have {batch} numbers or one, not {x.shape}")
    length = reshaped(x, (x.size, 1, 1, 1))
    if padding is None:
        return Extent(0, length, False)
    pad = _numbers(name, "the padding size", padding)
    pad = run(E.maximum, reshaped(pad, (1, 1, 1, 1)), constant_like(0, pad))
    return Extent(constant_like(size, length) - pad - length, length, False)


def restored(x: Tensor, scale: Optional[Tensor], offset: Optional[Tensor]) -> Tensor:
    """Return numbers of 8 bits as (x + offset) * scale."""
    if scale is None:
        return x
    wider = cast(x, scale.dtype)
    return (wider if offset is None else wider + cast(offset, scale.dtype)) * scale


def _factor(name: str, value: Any, part: Optional[int], mode: int, x: Tensor) -> Optional[Tensor]:
    """Return a scale or an offset, of one number, of one for each channel, or of one for each
    token, shaped for (batch, heads, tokens, size).
    """
    if value is None:
        return None
    f = operand(name, value)
    if part is not None:
        if f.ndim < 1 or f.shape[0] != 2:
            raise ShapeError(
                f"{name}: antiquant_scale and antiquant_offset have a part for keys and one for values, not the shape "
                f"{f.shape}"
            )
        f = reshaped(take_slice(f, 0, part, part + 1), f.shape[1:])
    b, n, s, d = x.shape
    if mode == 1:
        wanted, shape = b * s, (b, 1, s, 1)
    else:
        wanted, shape = (1, (1, 1, 1, 1)) if f.size == 1 else (n * d, (1, n, 1, d))
    if f.size != wanted:
        raise ShapeError(
            f"{name}: a scale or offset of shape {f.shape} does not fit {n} heads of size {d} and {s} tokens in mode "
            f"{mode}"
        )
    return reshaped(f, shape)


def narrowed(name: str, x: Tensor, scale: Any, offset: Any) -> Tensor:
    """Return (batch, heads, length, size) as round(x * scale + offset) in 8 bits."""
    factor, shift = _factor(name, scale, None, 0, x), _factor(name, offset, None, 0, x)
    assert factor is not None
    y = cast(x, D.float32) * cast(factor, D.float32)
    y = elementwise.round(y if shift is None else y + cast(shift, D.float32))
    return cast(run(E.minimum, run(E.maximum, y, constant_like(-128.0, y)), constant_like(127.0, y)), D.int8)


def from_blocks(name: str, cache: Tensor, table: Tensor, heads: int) -> Tensor:
    """Return the tokens of each example out of a cache of blocks, as (batch, heads, tokens, size)."""
    if table.ndim != 2 or cache.ndim not in (3, 4):
        raise ShapeError(
            f"{name}: takes a cache of 3 or 4 dimensions and a table (batch, blocks), not {cache._type} and "
            f"{table._type}"
        )
    blocks = run(E.maximum, table, constant_like(0, table))
    found = indexed.gather(cache, blocks, 0)
    b, m = table.shape
    if cache.ndim == 3:
        return to_heads(name, reshaped(found, (b, m * cache.shape[1], cache.shape[2])), "BSH", heads)
    found = permuted(found, (0, 2, 1, 3, 4))
    return reshaped(found, (b, cache.shape[1], m * cache.shape[2], cache.shape[3]))


def _single(name: str, parameter: str, value: Any) -> list[Tensor]:
    """Return a tensor, or one of several of which each is an example."""
    if isinstance(value, (tuple, list)):
        if not value:
            raise ValueError(f"{name}: {parameter} is empty")
        return [operand(name, x) for x in value]
    return [operand(name, value)]


@dataclass(frozen=True)
class Served:
    """The arguments that calls in service have in common, beyond queries, keys and values."""

    name: str
    heads: int
    shared: int
    layout: str
    scale: float
    row_lengths: Any = None
    column_lengths: Any = None
    row_padding: Any = None
    column_padding: Any = None
    mask: Any = None
    bias: Any = None
    mode: int = 0
    before: int = MOST
    after: int = MOST
    scales: tuple[Any, Any] = (None, None)
    offsets: tuple[Any, Any] = (None, None)
    parts: tuple[Optional[int], Optional[int]] = (0, 1)
    scale_mode: int = 0
    table: Any = None
    block_size: int = 0
    result_scale: Any = None
    result_offset: Any = None
    statistics: bool = False
    one: bool = False

    def heads_of(self, x: Tensor, heads: int) -> Tensor:
        return to_heads(self.name, x, self.layout.partition("_")[0], heads)

    def mask_of(self) -> Optional[Tensor]:
        """Return the mask as (batch or 1, 1, queries, keys)."""
        if self.mask is None:
            return None
        m = truth(self.name, "the mask", self.mask)
        if self.one:
            return reshaped(m, (m.shape[0], 1, 1, m.shape[-1]))
        return reshaped(m, (m.shape[0], 1, *m.shape[1:])) if m.ndim == 3 else m

    def bias_of(self, q: Tensor, keys: Any) -> Optional[Tensor]:
        if self.bias is None:
            return None
        x = operand(self.name, self.bias)
        b, n, s, _ = q.shape
        if x.ndim != 4 or x.shape[0] not in (1, b) or x.shape[1] != n or x.shape[2] < s or x.shape[3] < keys:
            raise ShapeError(
                f"{self.name}: pse_shift must be of shape ({b} or 1, {n}, {s}, {keys}) or longer, not {x.shape}"
            )
        return take_slice(take_slice(x, 2, 0, s), 3, 0, keys)

    def __call__(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Return the attention in its layout, and the logarithm of each row's sum of exponentials,
        which is one 0 if not asked for.
        """
        name = self.name
        if query.dtype is D.int8:
            raise TypeError(f"{name}: queries of int8 are not supported; restore them, as (x + offset) * scale, before")
        q = self.heads_of(query, self.heads)
        b, n, rows, _ = q.shape
        if n != self.heads:
            raise ShapeError(f"{name}: num_heads is {self.heads}, but query has {n} heads")
        if self.table is None:
            k, v = self.heads_of(key, self.shared), self.heads_of(value, self.shared)
        else:
            if self.column_lengths is None or self.column_padding is not None:
                raise ValueError(f"{name}: with a block_table the lengths of keys must be given, and no padding size")
            size = key.shape[1] if key.ndim == 3 else key.shape[2]
            if self.block_size != size:
                raise ValueError(
                    f"{name}: block_size is {self.block_size}, but the blocks of the cache hold {size} tokens"
                )
            table = operand(name, self.table, D.int64)
            k, v = (from_blocks(name, x, table, self.shared) for x in (key, value))
        if k.shape[1] != self.shared:
            raise ShapeError(f"{name}: num_key_value_heads is {self.shared}, but key has {k.shape[1]} heads")
        if (k.dtype is D.int8) != (self.scales[0] is not None):
            raise TypeError(f"{name}: keys of int8, and those alone, go with an antiquant_scale; key is {k.dtype.name}")
        k, v = (
            cast(restored(x, _factor(name, s, p, self.scale_mode, x), _factor(name, o, p, self.scale_mode, x)), q.dtype)
            if s is not None
            else x
            for x, s, o, p in zip((k, v), self.scales, self.offsets, self.parts)
        )
        same_types(name, q, k, v)
        check_heads(name, q, k, v)
        columns = k.shape[2]
        row_extent = extent(name, "actual_seq_lengths", self.row_lengths, self.row_padding, b, rows)
        column_extent = extent(name, "actual_seq_lengths_kv", self.column_lengths, self.column_padding, b, columns)
        row, column = positions(rows, 2), positions(columns, 3)
        no_row, no_column = row_extent.outside(row), column_extent.outside(column)
        more = (
            columns - rows
            if row_extent.whole and column_extent.whole
            else _count(column_extent, row) - _count(row_extent, row)
        )
        drop = sparse_mask(
            name,
            self.mode,
            self.mask_of(),
            row_extent.own(row),
            column_extent.own(column),
            more,
            self.before,
            self.after,
        )
        if no_column is not None:
            hole = permuted(no_column, (0, 1, 3, 2))
            v = select(hole, constant_like(0.0, v), v)
        drop, bias = either(drop, no_column), self.bias_of(q, columns)
        lse = Tensor(np.zeros((1,), np.float32))
        if self.statistics:
            out, peak, total = attend_with_statistics(q, k, v, self.scale, bias=bias, drop=drop)
            lse = cast(peak + run(E.log, total), D.float32)
        else:
            out = attend(q, k, v, self.scale, bias=bias, drop=drop)
        if no_row is not None:
            out = select(no_row, constant_like(0.0, out), out)
        if self.result_scale is not None:
            out = narrowed(name, out, self.result_scale, self.result_offset)
        return from_heads(out, "BSND" if self.layout == "BNSD_BSND" else self.layout), lse


def _count(of: Extent, like: Tensor) -> Tensor:
    return constant_like(of.length, like) if of.whole else of.length


def _counts(name: str, heads: Any, shared: Any) -> tuple[int, int]:
    """Return the heads of queries and of keys; ValueError where they do not go together."""
    arguments.integer(name, "num_heads", heads, numpy=False)
    arguments.integer(name, "num_key_value_heads", shared, numpy=False)
    if heads <= 0 or shared < 0 or heads % (shared or heads):
        raise ValueError(f"{name}: num_heads {heads} must be positive, and a multiple of num_key_value_heads {shared}")
    return heads, shared or heads


def _without(name: str, mend: str, **given: Any) -> None:
    for parameter, value in given.items():
        if value is not None:
            raise ValueError(f"{name}: {parameter} is not supported; {mend}")


_INT8 = "computing with integers alone is not: restore the operands as (x + offset) * scale and leave it out"


@fused
def prompt_flash_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    actual_seq_lengths: Any = None,
    actual_seq_lengths_kv: Any = None,
    pse_shift: Any = None,
    deq_scale1: Any = None,
    quant_scale1: Any = None,
    deq_scale2: Any = None,
    quant_scale2: Any = None,
    quant_offset2: Any = None,
    num_heads: int = 1,
    scale_value: float = 1.0,
    pre_tokens: int = MOST,
    next_tokens: int = 0,
    input_layout: str = "BSH",
    num_key_value_heads: int = 0,
    sparse_mode: int = 0,
    inner_precise: int = 1,
) -> Tensor:
    """Return softmax(scale_value * Q K^T + pse_shift) V of whole prompts, in the layout "BSH" (B,
    S, N * D) or "BNSD" and the type of `query`.

    Examples hold `actual_seq_lengths` queries and `actual_seq_lengths_kv` keys; rows beyond are
    zeros. `attn_mask` is True where scores are dropped: (S1, S2), (B or 1, S1, S2) or (B or 1, 1,
    S1, S2). `sparse_mode` 0 to 4 are those of `flash_attention_score`. With `quant_scale2` (one
    number, or one for each channel) and `quant_offset2` the result is int8. Always computed
    precisely, whatever `inner_precise`. Queries of int8 are not supported.

    TypeError and ValueError where types, shapes and options do not go together.

    >>> import mycel as ms
    >>> x = ms.ops.ones((1, 3, 4))
    >>> ms.ops.prompt_flash_attention(x, x, x, num_heads=2, actual_seq_lengths=(2,))[0, 2].tolist()
    [0.0, 0.0, 0.0, 0.0]
    """
    name = "prompt_flash_attention"
    _without(name, _INT8, deq_scale1=deq_scale1, quant_scale1=quant_scale1, deq_scale2=deq_scale2)
    arguments.one_of(name, "input_layout", input_layout, ("BSH", "BNSD"))
    if sparse_mode not in range(5):
        raise ValueError(f"{name}: sparse_mode must be 0 to 4, not {sparse_mode!r}")
    heads, shared = _counts(name, num_heads, num_key_value_heads)
    served = Served(
        name,
        heads,
        shared,
        input_layout,
        scale_value,
        actual_seq_lengths,
        actual_seq_lengths_kv,
        mask=_by_row(attn_mask),
        bias=pse_shift,
        mode=sparse_mode,
        before=pre_tokens,
        after=next_tokens,
        result_scale=quant_scale2,
        result_offset=quant_offset2,
    )
    return served(operand(name, query), operand(name, key), operand(name, value))[0]


def _by_row(mask: Any) -> Any:
    """Return a mask of (S1, S2) as one of four dimensions, so that it is not taken for one of
    (batch, S2).
    """
    return reshaped(mask, (1, 1, *mask.shape)) if isinstance(mask, Tensor) and mask.ndim == 2 else mask


def _each(served: Any, query: Tensor, keys: list[Tensor], values: list[Tensor], table: Any) -> tuple[Tensor, Tensor]:
    """Return calls for keys that come as one tensor or as one for each example."""
    if len(keys) == 1 and len(values) == 1:
        return served(slice(None), query, keys[0], values[0])
    if len(keys) != len(values) or len(keys) != query.shape[0] or table is not None:
        raise ValueError(
            f"{served.__name__}: {len(keys)} keys and {len(values)} values must be one tensor, or one for each of the "
            f"{query.shape[0]} "
            "examples and without a block_table"
        )
    found = [
        served(slice(i, i + 1), take_slice(query, 0, i, i + 1), k, v) for i, (k, v) in enumerate(zip(keys, values))
    ]
    outs, stats = zip(*found)
    return array.concat(outs, 0), array.concat(stats, 0) if stats[0].ndim == 4 else stats[0]


def _part(value: Any, which: slice, batch: Any) -> Any:
    """Return an example's part of an argument that has one part for each; of others all."""
    if which == slice(None) or value is None:
        return value
    if isinstance(value, (tuple, list)):
        return value[which] if len(value) == batch else value
    if isinstance(value, Tensor) and value.ndim and value.shape[0] == batch and batch != 1:
        return take_slice(value, 0, which.start, which.stop)
    return value


def incre_flash_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    actual_seq_lengths: Any = None,
    pse_shift: Any = None,
    dequant_scale1: Any = None,
    quant_scale1: Any = None,
    dequant_scale2: Any = None,
    quant_scale2: Any = None,
    quant_offset2: Any = None,
    antiquant_scale: Any = None,
    antiquant_offset: Any = None,
    block_table: Any = None,
    num_heads: int = 1,
    input_layout: str = "BSH",
    scale_value: float = 1.0,
    num_key_value_heads: int = 0,
    block_size: int = 0,
    inner_precise: int = 1,
    kv_padding_size: Any = None,
) -> Tensor:
    """Return softmax(scale_value * Q K^T + pse_shift) V of one new token an example: `query` (B, 1,
    N * D) in the layout "BSH", or (B, N, 1, D) in "BNSD".

    `key` and `value` are a tensor, or a list of one or of one for each example. Of each example
    `actual_seq_lengths` keys hold something: the first, or, with `kv_padding_size`, the last before
    so many places. `attn_mask`, (B, S), (B, 1, S) or (B, 1, 1, S), is True where scores are
    dropped. With `block_table` (B, blocks) key and value are caches of blocks of `block_size`
    tokens. Keys and values of int8 are restored by `antiquant_scale` and `antiquant_offset`, which
    have a part for keys and one for values. With `quant_scale2` the result is int8.

    TypeError and ValueError where types, shapes and options do not go together.

    >>> import mycel as ms
    >>> cache = ms.Tensor([[[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]]])
    >>> ms.ops.incre_flash_attention(ms.ops.zeros((1, 1, 2)), [cache], [cache], actual_seq_lengths=[2]).tolist()
    [[[2.0, 3.0]]]
    """
    name = "incre_flash_attention"
    _without(name, _INT8, dequant_scale1=dequant_scale1, quant_scale1=quant_scale1, dequant_scale2=dequant_scale2)
    arguments.one_of(name, "input_layout", input_layout, ("BSH", "BNSD"))
    heads, shared = _counts(name, num_heads, num_key_value_heads)
    q = operand(name, query)
    if q.ndim < 3 or q.shape[1 if input_layout == "BSH" else 2] != 1:
        raise ShapeError(f"{name}: query must hold one token an example, not {q._type}; see prompt_flash_attention")
    batch = q.shape[0]

    def call(which: slice, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        served = Served(
            name,
            heads,
            shared,
            input_layout,
            scale_value,
            None,
            _part(actual_seq_lengths, which, batch),
            None,
            kv_padding_size,
            _part(attn_mask, which, batch),
            _part(pse_shift, which, batch),
            scales=(antiquant_scale, antiquant_scale),
            offsets=(antiquant_offset, antiquant_offset),
            table=block_table,
            block_size=block_size,
            result_scale=quant_scale2,
            result_offset=quant_offset2,
            one=True,
        )
        return served(q, k, v)

    call.__name__ = name
    return _each(call, q, _single(name, "key", key), _single(name, "value", value), block_table)[0]


def fused_infer_attention_score(
    query: Any,
    key: Any,
    value: Any,
    *,
    pse_shift: Any = None,
    atten_mask: Any = None,
    actual_seq_lengths: Any = None,
    actual_seq_lengths_kv: Any = None,
    dequant_scale1: Any = None,
    quant_scale1: Any = None,
    dequant_scale2: Any = None,
    quant_scale2: Any = None,
    quant_offset2: Any = None,
    antiquant_scale: Any = None,
    antiquant_offset: Any = None,
    key_antiquant_scale: Any = None,
    key_antiquant_offset: Any = None,
    value_antiquant_scale: Any = None,
    value_antiquant_offset: Any = None,
    block_table: Any = None,
    query_padding_size: Any = None,
    kv_padding_size: Any = None,
    key_shared_prefix: Any = None,
    value_shared_prefix: Any = None,
    actual_shared_prefix_len: Any = None,
    num_heads: int = 1,
    scale: float = 1.0,
    pre_tokens: int = MOST,
    next_tokens: int = MOST,
    input_layout: str = "BSH",
    num_key_value_heads: int = 0,
    sparse_mode: int = 0,
    inner_precise: int = 1,
    block_size: int = 0,
    antiquant_mode: int = 0,
    key_antiquant_mode: int = 0,
    value_antiquant_mode: int = 0,
    softmax_lse_flag: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return `incre_flash_attention` where there is one query an example, else
    `prompt_flash_attention`: the attention, and the statistics of its soft-max.

    Layouts are "BSH", "BNSD", "BSND", and "BNSD_BSND" for a result in another one than the
    operands. With `softmax_lse_flag` the second result is the logarithm of each row's sum of
    exponentials, float32 (B, N, S1, 1), -inf for a row without scores; else one zero.
    `query_padding_size` and `kv_padding_size` say how many places lie behind the last query and key
    of examples whose lengths are given. Scales for keys and values may come together, or each by
    itself; mode 1 is a scale for each token.

    TypeError and ValueError where types, shapes and options do not go together.

    >>> import mycel as ms
    >>> x = ms.ops.ones((1, 3, 4))
    >>> out, lse = ms.ops.fused_infer_attention_score(x, x, x, num_heads=2, scale=0.5, softmax_lse_flag=True)
    >>> out.shape, lse.shape
    ((1, 3, 4), (1, 2, 3, 1))
    """
    name = "fused_infer_attention_score"
    _without(name, _INT8, dequant_scale1=dequant_scale1, quant_scale1=quant_scale1, dequant_scale2=dequant_scale2)
    _without(
        name,
        "it has no meaning yet",
        key_shared_prefix=key_shared_prefix,
        value_shared_prefix=value_shared_prefix,
        actual_shared_prefix_len=actual_shared_prefix_len,
    )
    arguments.one_of(name, "input_layout", input_layout, ("BSH", "BNSD", "BSND", "BNSD_BSND"))
    if sparse_mode not in range(5):
        raise ValueError(f"{name}: sparse_mode must be 0 to 4, not {sparse_mode!r}")
    heads, shared = _counts(name, num_heads, num_key_value_heads)
    q = operand(name, query)
    if q.ndim < 3:
        raise ShapeError(f"{name}: query of {q._type} is not of the layout {input_layout}")
    one, batch = q.shape[2 if input_layout.startswith("BNSD") else 1] == 1, q.shape[0]
    if not one:
        _without(name, "it belongs to one query an example", block_table=block_table)
    parts: tuple[Optional[int], Optional[int]] = (0, 1)
    scales, offsets, mode = (antiquant_scale,) * 2, (antiquant_offset,) * 2, antiquant_mode
    if key_antiquant_scale is not None or value_antiquant_scale is not None:
        if antiquant_scale is not None or key_antiquant_scale is None or value_antiquant_scale is None:
            raise ValueError(
                f"{name}: scales come together, as antiquant_scale, or as key_antiquant_scale and value_antiquant_scale"
            )
        if key_antiquant_mode != value_antiquant_mode:
            raise ValueError(
                f"{name}: key_antiquant_mode {key_antiquant_mode} and value_antiquant_mode {value_antiquant_mode} "
                "differ"
            )
        scales, offsets = (key_antiquant_scale, value_antiquant_scale), (key_antiquant_offset, value_antiquant_offset)
        parts, mode = (None, None), key_antiquant_mode
    padded = query_padding_size is not None or kv_padding_size is not None
    free = one or (sparse_mode == 0 and padded)

    def call(which: slice, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        mask, lengths = _part(atten_mask, which, batch), _part(actual_seq_lengths, which, batch)
        served = Served(
            name,
            heads,
            shared,
            input_layout,
            scale,
            None if one else lengths,
            _part(actual_seq_lengths_kv, which, batch),
            None if one else query_padding_size,
            kv_padding_size,
            mask if one else _by_row(mask),
            _part(pse_shift, which, batch),
            0 if one else sparse_mode,
            MOST if free else pre_tokens,
            MOST if free else next_tokens,
            scales,
            offsets,
            parts,
            mode,
            block_table,
            block_size,
            quant_scale2,
            quant_offset2,
            softmax_lse_flag,
            one,
        )
        return served(q, k, v)

    call.__name__ = name
    return _each(call, q, _single(name, "key", key), _single(name, "value", value), block_table)


# Caches of blocks, as operations on them.


def reshape_and_cache(
    key: Any, value: Any = None, key_cache: Any = None, value_cache: Any = None, slot_mapping: Any = None
) -> Tensor:
    """Write new keys (and values), (tokens, heads, size) or with heads joined, into slots of caches
    (blocks, tokens, heads, size); the key.

    Negative slots are nobody's: their tokens are left out. ValueError where shapes do not fit.

    >>> import mycel as ms
    >>> cache = ms.ops.zeros((1, 2, 1, 1))
    >>> _ = reshape_and_cache(ms.Tensor([[[7.0]]]), key_cache=cache, slot_mapping=ms.Tensor([1]))
    >>> cache.ravel().tolist()
    [0.0, 7.0]
    """
    name = "ReshapeAndCache"
    if key_cache is None or slot_mapping is None or (value is None) != (value_cache is None):
        raise ValueError(f"{name}: needs key_cache and slot_mapping, and value_cache with value")
    slots = operand(name, slot_mapping, D.int64)
    for new, cache in ((key, key_cache), (value, value_cache)):
        if new is None:
            continue
        x = operand(name, new)
        if not isinstance(cache, Tensor) or cache.ndim < 3:
            raise TypeError(
                f"{name}: a cache is a parameter or tensor (blocks, tokens, heads, size), not "
                f"{getattr(cache, '_type', cache)}"
            )
        width, count = cache[0, 0].size, cache.shape[0] * cache.shape[1]
        if x.dtype is not cache.dtype or slots.ndim != 1 or x.size != slots.size * width:
            raise ShapeError(f"{name}: {x._type} for {slots.size} slots does not fit a cache of {cache._type}")
        beyond = run(E.lt, slots, constant_like(0, slots))
        inside = run(I.checked, select(beyond, constant_like(0, slots), slots), axis=0, size=count, bounds="front")
        place = reshaped(select(beyond, constant_like(count, slots), inside), (slots.size, 1))
        update = reshaped(x, (slots.size, width))
        rows = indexed.write(name, reshaped(cache, (count, width)), place, update, "set", "drop")
        cache._replace(reshaped(rows, cache.shape))
    return operand(name, key)


def paged_attention(
    name: str,
    heads: int,
    shared: int,
    scale: float,
    query: Any,
    key_cache: Any,
    value_cache: Any,
    block_tables: Any,
    context_lens: Any,
    antiquant_scale: Any,
    antiquant_offset: Any,
    bias: Any,
) -> Tensor:
    """Return attention of one query a sequence, (tokens, heads, size) or with heads joined, to the
    first `context_lens` tokens that a table finds in caches.
    """
    q, tables, lengths = operand(name, query), operand(name, block_tables, D.int64), operand(name, context_lens)
    caches = [operand(name, c) for c in (key_cache, value_cache)]
    heads, shared, scale = size_of(name, heads), size_of(name, shared), number_of(name, "scale_value", scale)
    if any(c.ndim != 4 or c.shape[2] != shared for c in caches):
        raise ShapeError(
            f"{name}: caches are (blocks, tokens, {shared}, size), not {caches[0]._type} and {caches[1]._type}"
        )
    if tables.ndim != 2 or lengths.ndim != 1:
        raise ShapeError(
            f"{name}: block_tables are (sequences, blocks) and context_lens (sequences,), not {tables._type} and "
            f"{lengths._type}"
        )
    size = caches[0].shape[3]
    count = tables.shape[0]
    if q.size != count * heads * size:
        raise ShapeError(
            f"{name}: query {q._type} is not one of {heads} heads of size {size} for each of the {count} rows of "
            "block_tables"
        )
    kept = [reshaped(c, (*c.shape[:2], shared * c.shape[3])) for c in caches]
    if bias is not None:
        b = operand(name, bias)
        b = reshaped(b, (b.shape[0], 1, 1, b.shape[1])) if b.ndim == 2 else b
        total = tables.shape[1] * caches[0].shape[1]
        if (
            b.ndim != 4
            or b.shape[0] not in (1, count)
            or b.shape[1] not in (1, heads)
            or b.shape[2] != 1
            or b.shape[3] > total
        ):
            raise ShapeError(
                f"{name}: alibi_mask is a bias for {count} sequences of at most {total} tokens, not {b._type}"
            )
        short = total - b.shape[3]
        if short:
            b = array.concat((b, array.broadcast_to(constant_like(0.0, b), (*b.shape[:3], short))), 3)
        bias = array.broadcast_to(b, (b.shape[0], heads, 1, total))
    served = Served(
        name,
        heads,
        shared,
        "BNSD",
        scale,
        None,
        lengths,
        bias=bias,
        scales=(antiquant_scale,) * 2,
        offsets=(antiquant_offset,) * 2,
        table=tables,
        block_size=caches[0].shape[1],
    )
    found = served(reshaped(q, (count, heads, 1, size)), *kept)[0]
    if caches[1].shape[3] == size:
        return reshaped(found, q.shape)
    return reshaped(found, (count, heads, caches[1].shape[3]))
