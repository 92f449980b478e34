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
    """Return softmax(scale_value * Q K^T + pse_shift) V of whole prompts.

    Args:
        query (Tensor): (B, S, N * D) in the `input_layout` "BSH", or (B, N, S, D) in "BNSD".
        key (Tensor): (B, S, N * D) in the `input_layout` "BSH", or (B, N, S, D) in "BNSD".
        value (Tensor): (B, S, N * D) in the `input_layout` "BSH", or (B, N, S, D) in "BNSD".
        attn_mask (Tensor | None): True where scores are dropped: (S1, S2), (B or 1, S1, S2) or (B
            or 1, 1, S1, S2). Default: None.
        actual_seq_lengths (Tensor | Sequence[int] | None): How many queries of each example hold
            something; rows beyond are zeros. Default: None.
        actual_seq_lengths_kv (Tensor | Sequence[int] | None): How many keys of each example hold
            something. Default: None.
        pse_shift (Tensor | None): Added to the scores: (B or 1, N, S1, S2) or longer. Default:
            None.
        deq_scale1 (None): Must be None: queries of int8 are not supported. Default: None.
        quant_scale1 (None): Must be None: queries of int8 are not supported. Default: None.
        deq_scale2 (None): Must be None: queries of int8 are not supported. Default: None.
        quant_scale2 (Tensor | None): The scale of a result of int8, round(x * scale + offset).
            Default: None.
        quant_offset2 (Tensor | None): The offset of a result of int8. Default: None.
        num_heads (int): The number of heads of queries. Default: 1.
        scale_value (float): The factor of the scores. Default: 1.0.
        pre_tokens (int): As in `flash_attention_score`. Default: 2147483647.
        next_tokens (int): As in `flash_attention_score`. Default: 0.
        input_layout (str): "BSH" or "BNSD". Default: "BSH".
        num_key_value_heads (int): The number of heads of keys; 0 for as many as of queries.
            Default: 0.
        sparse_mode (int): As in `flash_attention_score`, 0 to 4. Default: 0.
        inner_precise (int): Has no effect. Default: 1.

    Returns:
        Tensor: The attention, in the layout and type of `query`, or int8.

    Raises:
        TypeError, ValueError: If types, shapes and options do not go together.

    Examples:
        >>> import mycel as ms
        >>> x = ms.ops.ones((1, 3, 4))
        >>> ms.ops.prompt_flash_attention(x, x, x, num_heads=2, actual_seq_lengths=(2,))[0,
        ...     2].tolist()
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

    Args:
        query (Tensor): (B, 1, N * D) in the `input_layout` "BSH", or (B, N, 1, D) in "BNSD".
        key (Tensor | list[Tensor]): A tensor, or a list of one or of one for each example.
        value (Tensor | list[Tensor]): A tensor, or a list of one or of one for each example.
        attn_mask (Tensor | None): True where scores are dropped: (B, S), (B, 1, S) or (B, 1, 1, S).
            Default: None.
        actual_seq_lengths (Tensor | Sequence[int] | None): How many of the first keys of each
            example hold something. Default: None.
        pse_shift (Tensor | None): Added to the scores: (B or 1, N, 1, S) or longer. Default: None.
        dequant_scale1 (None): Must be None: queries of int8 are not supported. Default: None.
        quant_scale1 (None): Must be None: queries of int8 are not supported. Default: None.
        dequant_scale2 (None): Must be None: queries of int8 are not supported. Default: None.
        quant_scale2 (Tensor | None): The scale of a result of int8, round(x * scale + offset).
            Default: None.
        quant_offset2 (Tensor | None): The offset of a result of int8. Default: None.
        antiquant_scale (Tensor | None): The scales of keys and values of int8, a part for each of
            the two. Default: None.
        antiquant_offset (Tensor | None): The offsets of keys and values of int8, a part for each of
            the two. Default: None.
        block_table (Tensor | None): The blocks (B, blocks) of caches that key and value are then.
            Default: None.
        num_heads (int): The number of heads of queries. Default: 1.
        input_layout (str): "BSH" or "BNSD". Default: "BSH".
        scale_value (float): The factor of the scores. Default: 1.0.
        num_key_value_heads (int): The number of heads of keys; 0 for as many as of queries.
            Default: 0.
        block_size (int): The number of tokens of a block. Default: 0.
        inner_precise (int): Has no effect. Default: 1.
        kv_padding_size (Tensor | None): How many places follow the last key of each example.
            Default: None.

    Returns:
        Tensor: The attention, in the layout of `query`.

    Raises:
        TypeError, ValueError: If types, shapes and options do not go together.

    Examples:
        >>> import mycel as ms
        >>> cache, query = ms.Tensor([[[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]]]), ms.ops.zeros((1, 1,
        ...     2))
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
    `prompt_flash_attention`.

    Args:
        query (Tensor): As in these functions.
        key (Tensor | list[Tensor]): As in these functions.
        value (Tensor | list[Tensor]): As in these functions.
        pse_shift (Tensor | None): Added to the scores: (B or 1, N, 1, S) or longer. Default: None.
        atten_mask (Tensor | None): As `attn_mask` in these functions. Default: None.
        actual_seq_lengths (Tensor | Sequence[int] | None): How many of the first keys of each
            example hold something. Default: None.
        actual_seq_lengths_kv (Tensor | Sequence[int] | None): How many keys of each example hold
            something. Default: None.
        dequant_scale1 (None): Must be None: queries of int8 are not supported. Default: None.
        quant_scale1 (None): Must be None: queries of int8 are not supported. Default: None.
        dequant_scale2 (None): Must be None: queries of int8 are not supported. Default: None.
        quant_scale2 (Tensor | None): The scale of a result of int8, round(x * scale + offset).
            Default: None.
        quant_offset2 (Tensor | None): The offset of a result of int8. Default: None.
        antiquant_scale (Tensor | None): The scales of keys and values of int8, a part for each of
            the two. Default: None.
        antiquant_offset (Tensor | None): The offsets of keys and values of int8, a part for each of
            the two. Default: None.
        key_antiquant_scale (Tensor | None): The scale or offset of keys or values of int8, in the
            place of `antiquant_scale` and `antiquant_offset`. Default: None.
        key_antiquant_offset (Tensor | None): The scale or offset of keys or values of int8, in the
            place of `antiquant_scale` and `antiquant_offset`. Default: None.
        value_antiquant_scale (Tensor | None): The scale or offset of keys or values of int8, in the
            place of `antiquant_scale` and `antiquant_offset`. Default: None.
        value_antiquant_offset (Tensor | None): The scale or offset of keys or values of int8, in
            the place of `antiquant_scale` and `antiquant_offset`. Default: None.
        block_table (Tensor | None): The blocks (B, blocks) of caches that key and value are then.
            Default: None.
        query_padding_size (Tensor | None): How many places follow the last query of each example.
            Default: None.
        kv_padding_size (Tensor | None): How many places follow the last key of each example.
            Default: None.
        key_shared_prefix (None): Must be None. Default: None.
        value_shared_prefix (None): Must be None. Default: None.
        actual_shared_prefix_len (None): Must be None. Default: None.
        num_heads (int): The number of heads of queries. Default: 1.
        scale (float): The factor of the scores. Default: 1.0.
        pre_tokens (int): As in `prompt_flash_attention`. Default: 2147483647.
        next_tokens (int): As in `prompt_flash_attention`. Default: 2147483647.
        input_layout (str): "BSH", "BNSD", "BSND", or "BNSD_BSND" for a result in another layout
            than the operands. Default: "BSH".
        num_key_value_heads (int): The number of heads of keys; 0 for as many as of queries.
            Default: 0.
        sparse_mode (int): As in `prompt_flash_attention`. Default: 0.
        inner_precise (int): Has no effect. Default: 1.
        block_size (int): The number of tokens of a block. Default: 0.
        antiquant_mode (int): 0 for one number, or one for each channel, 1 for one for each token.
            Default: 0.
        key_antiquant_mode (int): 0 for one number, or one for each channel, 1 for one for each
            token. Default: 0.
        value_antiquant_mode (int): 0 for one number, or one for each channel, 1 for one for each
            token. Default: 0.
        softmax_lse_flag (bool): Whether the second result is the logarithm of each row's sum of
            exponentials. Default: False.

    Returns:
        tuple[Tensor, Tensor]: The attention, and (B, N, S1, 1), float32, -inf for a row without
            scores; or one zero.

    Raises:
        TypeError, ValueError: If types, shapes and options do not go together.

    Examples:
        >>> import mycel as ms
        >>> x = ms.ops.ones((1, 3, 4))
        >>> out, lse = ms.ops.fused_infer_attention_score(x, x, x, num_heads=2,
        ...     softmax_lse_flag=True)
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
