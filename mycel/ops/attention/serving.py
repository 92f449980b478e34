"""Attention for models in service: whole prompts, one new token at a time, and keys and values
that are kept in blocks.

The functions check their options; `mycel.ops.attention.serving_core.Served` computes.
"""

from __future__ import annotations

from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops import array
from mycel.ops._operands import operand, take_slice
from mycel.ops.attention.masks import MOST
from mycel.ops.attention.serving_core import Lengths, Served, Stored

__all__ = ["fused_infer_attention_score", "incre_flash_attention", "prompt_flash_attention"]


def _tensors(name: str, **given: Any) -> None:
    """Check that optional arguments are tensors."""
    for parameter, value in given.items():
        arguments.optional(name, parameter, value, Tensor)


def _single(name: str, parameter: str, value: Any) -> list[Tensor]:
    """Return the tensors of an argument: one, or one for each example."""
    if isinstance(value, (tuple, list)):
        if not value:
            raise ValueError(f"{name}: {parameter} is empty")
        return [operand(name, x) for x in value]
    return [operand(name, value)]


def _counts(name: str, heads: Any, shared: Any) -> tuple[int, int]:
    """Return the heads of queries and of keys.

    Raises ValueError where they do not go together.
    """
    arguments.integer(name, "num_heads", heads, numpy=False)
    arguments.integer(name, "num_key_value_heads", shared, numpy=False)
    if heads <= 0 or shared < 0 or heads % (shared or heads):
        raise ValueError(f"{name}: num_heads {heads} must be positive, and a multiple of num_key_value_heads {shared}")
    return heads, shared or heads


def _without(name: str, mend: str, **given: Any) -> None:
    """Raise ValueError for parameters that are given and not supported, with what to do instead."""
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
    """Return softmax(scale_value * Q K^T + pse_shift) V of whole prompts, in the layout and type of
    `query`.

    `query`, `key` and `value` are of the `input_layout` "BSH" (B, S, N * D) or "BNSD", with
    `num_heads` heads of queries and `num_key_value_heads` of keys (0 for as many). Examples hold
    `actual_seq_lengths` queries and `actual_seq_lengths_kv` keys; rows beyond are zeros.
    `attn_mask` is True where scores are dropped: (S1, S2), (B or 1, S1, S2) or (B or 1, 1, S1, S2).
    `sparse_mode` 0 to 4, `pre_tokens` and `next_tokens` are those of `flash_attention_score`.
    `pse_shift` is (B or 1, N, S1, S2) or longer.

    With `quant_scale2` (one number, or one for each channel) and perhaps `quant_offset2` the result
    is int8: round(x * scale + offset). `deq_scale1`, `quant_scale1` and `deq_scale2` must be None:
    queries of int8 are not supported. `inner_precise` has no effect.

    Raises TypeError and ValueError where types, shapes and options do not go together.

    >>> import mycel as ms
    >>> x = ms.ops.ones((1, 3, 4))
    >>> ms.ops.prompt_flash_attention(x, x, x, num_heads=2, actual_seq_lengths=(2,))[0, 2].tolist()
    [0.0, 0.0, 0.0, 0.0]
    """
    name = "prompt_flash_attention"
    _without(name, _INT8, deq_scale1=deq_scale1, quant_scale1=quant_scale1, deq_scale2=deq_scale2)
    arguments.one_of(name, "input_layout", input_layout, ("BSH", "BNSD"))
    _check_mode(name, sparse_mode)
    served = Served(
        name,
        *_counts(name, num_heads, num_key_value_heads),
        input_layout,
        scale_value,
        Lengths(actual_seq_lengths),
        Lengths(actual_seq_lengths_kv),
        attn_mask,
        pse_shift,
        sparse_mode,
        pre_tokens,
        next_tokens,
        result_scale=quant_scale2,
        result_offset=quant_offset2,
    )
    return served(operand(name, query), operand(name, key), operand(name, value))[0]


def _check_mode(name: str, mode: Any) -> None:
    """Raise ValueError for modes of masks that there are not in service."""
    if mode not in range(5):
        raise ValueError(f"{name}: sparse_mode must be 0 to 4, not {mode!r}")


def _each(served: Served, query: Tensor, key: Any, value: Any) -> tuple[Tensor, Tensor]:
    """Return attention to keys and values that are one tensor, or one for each example."""
    keys, values = _single(served.name, "key", key), _single(served.name, "value", value)
    if len(keys) == 1 and len(values) == 1:
        return served(query, keys[0], values[0])
    batch = query.shape[0]
    if len(keys) != len(values) or len(keys) != batch or served.table is not None:
        raise ValueError(
            f"{served.name}: {len(keys)} keys and {len(values)} values must be one tensor, or one for each of the "
            f"{batch} examples and without a block_table"
        )
    found = [
        served.of_example(i, batch)(take_slice(query, 0, i, i + 1), k, v) for i, (k, v) in enumerate(zip(keys, values))
    ]
    outs, stats = zip(*found)
    return array.concat(outs, 0), array.concat(stats, 0) if stats[0].ndim == 4 else stats[0]


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
    """Return softmax(scale_value * Q K^T + pse_shift) V of one new token for each example.

    `query` is (B, 1, N * D) in the `input_layout` "BSH", or (B, N, 1, D) in "BNSD", with
    `num_heads` heads of queries and `num_key_value_heads` of keys (0 for as many). `key` and
    `value` are a tensor, or a list of one or of one for each example. Of each example
    `actual_seq_lengths` keys hold something: the first ones, or, with `kv_padding_size`, the last
    ones before that many places. `attn_mask`, (B, S), (B, 1, S) or (B, 1, 1, S), is True where
    scores are dropped. `pse_shift` is (B or 1, N, 1, S) or longer. With `block_table` (B, blocks)
    key and value are caches of blocks of `block_size` tokens.

    Keys and values of int8 are restored by `antiquant_scale` and `antiquant_offset`, which have a
    part for keys and one for values. With `quant_scale2`, and perhaps `quant_offset2`, the result
    is int8. `dequant_scale1`, `quant_scale1` and `dequant_scale2` must be None: queries of int8 are
    not supported. `inner_precise` has no effect.

    Raises TypeError and ValueError where types, shapes and options do not go together.

    >>> import mycel as ms
    >>> cache, query = ms.Tensor([[[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]]]), ms.ops.zeros((1, 1, 2))
    >>> ms.ops.incre_flash_attention(query, [cache], [cache], actual_seq_lengths=[2]).tolist()
    [[[2.0, 3.0]]]
    """
    _tensors(
        "incre_flash_attention",
        dequant_scale1=dequant_scale1,
        quant_scale1=quant_scale1,
        dequant_scale2=dequant_scale2,
        quant_scale2=quant_scale2,
        quant_offset2=quant_offset2,
        antiquant_scale=antiquant_scale,
        antiquant_offset=antiquant_offset,
    )
    name = "incre_flash_attention"
    _without(name, _INT8, dequant_scale1=dequant_scale1, quant_scale1=quant_scale1, dequant_scale2=dequant_scale2)
    arguments.one_of(name, "input_layout", input_layout, ("BSH", "BNSD"))
    heads, shared = _counts(name, num_heads, num_key_value_heads)
    q = operand(name, query)
    if q.ndim < 3 or q.shape[1 if input_layout == "BSH" else 2] != 1:
        raise ShapeError(f"{name}: query must hold one token an example, not {q._type}; see prompt_flash_attention")
    served = Served(
        name,
        heads,
        shared,
        input_layout,
        scale_value,
        columns=Lengths(actual_seq_lengths, kv_padding_size),
        mask=attn_mask,
        bias=pse_shift,
        stored=Stored.together(antiquant_scale, antiquant_offset),
        table=block_table,
        block_size=block_size,
        result_scale=quant_scale2,
        result_offset=quant_offset2,
        one=True,
    )
    return _each(served, q, key, value)[0]


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
    """Return `incre_flash_attention` where each example has one query, else
    `prompt_flash_attention`: the attention, and the statistics of its soft-max.

    `query`, `key`, `value`, `pse_shift`, `atten_mask` (there `attn_mask`), `scale` (there
    `scale_value`), `num_heads`, `num_key_value_heads`, `pre_tokens`, `next_tokens`, `sparse_mode`,
    `block_table`, `block_size`, `quant_scale2` and `quant_offset2` are those of these functions.
    `input_layout` is "BSH", "BNSD", "BSND", or "BNSD_BSND" for a result in another layout than the
    operands. `query_padding_size` and `kv_padding_size` say how many places follow the last
    query and key of examples whose lengths `actual_seq_lengths` and `actual_seq_lengths_kv` give.
    With `softmax_lse_flag` the second result is the logarithm of each row's sum of exponentials,
    float32 (B, N, S1, 1), -inf for a row without scores; else one zero.

    Keys and values of int8 are restored by `antiquant_scale` and `antiquant_offset`, which have a
    part for keys and one for values, in the mode `antiquant_mode`: 0 for one number, or one for
    each channel, 1 for one for each token. Or they have their own: `key_antiquant_scale`,
    `key_antiquant_offset`, `key_antiquant_mode`, `value_antiquant_scale`, `value_antiquant_offset`,
    `value_antiquant_mode`. `dequant_scale1`, `quant_scale1`, `dequant_scale2`, `key_shared_prefix`,
    `value_shared_prefix` and `actual_shared_prefix_len` must be None; `inner_precise` has no
    effect. Raises TypeError and ValueError where types, shapes and options do not go together.

    >>> import mycel as ms
    >>> x = ms.ops.ones((1, 3, 4))
    >>> out, lse = ms.ops.fused_infer_attention_score(x, x, x, num_heads=2, softmax_lse_flag=True)
    >>> out.shape, lse.shape
    ((1, 3, 4), (1, 2, 3, 1))
    """
    name = "fused_infer_attention_score"
    _without(name, _INT8, dequant_scale1=dequant_scale1, quant_scale1=quant_scale1, dequant_scale2=dequant_scale2)
    prefixes = {"key_shared_prefix": key_shared_prefix, "value_shared_prefix": value_shared_prefix}
    _without(name, "it has no meaning yet", **prefixes, actual_shared_prefix_len=actual_shared_prefix_len)
    q, one = _query_of(name, query, input_layout)
    _check_mode(name, sparse_mode)
    if not one:
        _without(name, "it belongs to one query an example", block_table=block_table)
    padded = query_padding_size is not None or kv_padding_size is not None
    free = one or (sparse_mode == 0 and padded)
    common = (antiquant_scale, antiquant_offset, antiquant_mode)
    of_key = (key_antiquant_scale, key_antiquant_offset, key_antiquant_mode)
    of_value = (value_antiquant_scale, value_antiquant_offset, value_antiquant_mode)
    served = Served(
        name,
        *_counts(name, num_heads, num_key_value_heads),
        input_layout,
        scale,
        Lengths() if one else Lengths(actual_seq_lengths, query_padding_size),
        Lengths(actual_seq_lengths_kv, kv_padding_size),
        atten_mask,
        pse_shift,
        0 if one else sparse_mode,
        MOST if free else pre_tokens,
        MOST if free else next_tokens,
        _stored_of(name, common, of_key, of_value),
        block_table,
        block_size,
        quant_scale2,
        quant_offset2,
        softmax_lse_flag,
        one,
    )
    return _each(served, q, key, value)


def _query_of(name: str, query: Any, layout: str) -> tuple[Tensor, bool]:
    """Return the query, and whether it holds one token for each example."""
    arguments.one_of(name, "input_layout", layout, ("BSH", "BNSD", "BSND", "BNSD_BSND"))
    q = operand(name, query)
    if q.ndim < 3:
        raise ShapeError(f"{name}: query of {q._type} is not of the layout {layout}")
    return q, q.shape[2 if layout.startswith("BNSD") else 1] == 1


_Quantized = tuple[Any, Any, int]


def _stored_of(name: str, common: _Quantized, of_key: _Quantized, of_value: _Quantized) -> Stored:
    """Return how keys and values are restored by scale, offset and mode, which come together or
    each by itself.
    """
    if of_key[0] is None and of_value[0] is None:
        return Stored.together(*common)
    if common[0] is not None or of_key[0] is None or of_value[0] is None:
        raise ValueError(
            f"{name}: scales come together, as antiquant_scale, or as key_antiquant_scale and value_antiquant_scale"
        )
    if of_key[2] != of_value[2]:
        raise ValueError(f"{name}: key_antiquant_mode {of_key[2]} and value_antiquant_mode {of_value[2]} differ")
    return Stored((of_key[0], of_value[0]), (of_key[1], of_value[1]), (None, None), of_key[2])
