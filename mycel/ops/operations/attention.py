"""Attention with caches of blocks, rotary positions and moves as objects."""

from __future__ import annotations

from typing import Any

from mycel._src.tensors.core.tensor import Tensor
from mycel.ops.attention import expert_routing, kv_cache, rotary
from mycel.ops.operations.primitive import Primitive, operations_of

__all__ = ["ApplyRotaryPosEmb", "PagedAttention", "PagedAttentionMask"]


class MoveTo(Primitive, compute=expert_routing.move_to, inputs=(Tensor, str, bool)): ...


class ReshapeAndCache(Primitive, compute=kv_cache.reshape_and_cache, inputs=(Tensor,)): ...


class ApplyRotaryPosEmb(Primitive):
    """Queries and keys turned by the angles of their positions; MindSpore documents the name alone.

    It is called with query, key (tokens, heads * size), `cos`, `sin` and `position_ids`. With
    `cos_format` 0 and 1 `cos` and `sin` are tables (positions, size), of which `position_ids` names
    the row of each token; with 2 and 3 they have a row for each token. 0 and 2 pair feature i with
    i + size / 2, 1 and 3 pair neighbours. Raises ValueError where sizes do not fit.

    >>> import mycel as ms
    >>> x, table = ms.Tensor([[1.0, 2.0]]), ms.Tensor([[1.0, 1.0], [0.0, 0.0]])
    >>> ms.ops.ApplyRotaryPosEmb()(x, x, table, 1.0 - table, ms.Tensor([1]))[0].tolist()
    [[-2.0, 1.0]]
    """

    def __init__(self, cos_format: int = 0) -> None:
        super().__init__("ApplyRotaryPosEmb")
        self.add_prim_attr("cos_format", cos_format)

    def __call__(self, query: Any, key: Any, cos: Any, sin: Any, position_ids: Any) -> tuple[Tensor, Tensor]:
        return rotary.apply_rotary_pos_emb(query, key, cos, sin, position_ids, self.attrs["cos_format"])


def _without(name: str, mend: str, **given: Any) -> None:
    """Raise ValueError for parameters that are given and not supported, with what to do instead."""
    for parameter, value in given.items():
        if value is not None:
            raise ValueError(f"{name}: {parameter} is not supported; {mend}")


class PagedAttention(Primitive):
    """Attention of one new token for each sequence to keys and values that lie in blocks of a
    cache.

    Kwon et al., 2023.

    It is called with query (sequences, heads, size), or with heads joined, key and value caches
    (blocks, tokens, kv_heads, size), `block_tables` (sequences, blocks), the blocks of each
    sequence in order, and `context_lens` (sequences,). Caches of int8 are restored as (x +
    antiquant_offset) * antiquant_scale; both are (2, kv_heads * size), a row for keys and one for
    values. `alibi_mask` is added to the scores: (sequences, tokens) or (sequences, heads, 1,
    tokens).

    Args:
        head_num (int): The number of heads of queries.
        scale_value (float): The factor of the scores.
        kv_head_num (int): The number of heads of keys.
        kv_cache_quant_mode (str): Must be left as it is. Default: "DEFAULT".
        mask_mode (str): Must be left as it is. Default: "MASK_DEFAULT".
        mla_v_dim (int): Must be left as it is. Default: 0.

    Raises:
        ValueError: For other modes and masks.

    Examples:
        >>> import mycel as ms
        >>> cache = ms.Tensor([[[[9.0]], [[9.0]]], [[[1.0]], [[2.0]]]])
        >>> attend, query = ms.ops.PagedAttention(1, 1.0, 1), ms.Tensor([[[0.0]]])
        >>> attend(query, cache, cache, ms.Tensor([[1]]), ms.Tensor([2])).ravel().tolist()
        [1.5]
    """

    def __init__(
        self,
        head_num: int,
        scale_value: float,
        kv_head_num: int,
        kv_cache_quant_mode: str = "DEFAULT",
        mask_mode: str = "MASK_DEFAULT",
        mla_v_dim: int = 0,
    ) -> None:
        super().__init__("PagedAttention")
        if kv_cache_quant_mode != "DEFAULT" or mask_mode != "MASK_DEFAULT" or mla_v_dim:
            raise ValueError(
                "PagedAttention: kv_cache_quant_mode must be 'DEFAULT', mask_mode 'MASK_DEFAULT' and mla_v_dim 0, not "
                f"{kv_cache_quant_mode!r}, {mask_mode!r} and {mla_v_dim!r}; others are not supported"
            )
        given = {"head_num": head_num, "scale_value": scale_value, "kv_head_num": kv_head_num}
        for name, value in {
            **given,
            "kv_cache_quant_mode": kv_cache_quant_mode,
            "mask_mode": mask_mode,
            "mla_v_dim": mla_v_dim,
        }.items():
            self.add_prim_attr(name, value)

    def __call__(
        self,
        query: Any,
        key_cache: Any,
        value_cache: Any = None,
        block_tables: Any = None,
        context_lens: Any = None,
        antiquant_scale: Any = None,
        antiquant_offset: Any = None,
        attn_mask: Any = None,
        q_seq_lens: Any = None,
        alibi_mask: Any = None,
    ) -> Tensor:
        _without(self.name, "add it to alibi_mask", attn_mask=attn_mask)
        _without(self.name, "there is one query a sequence", q_seq_lens=q_seq_lens)
        return _paged(
            self,
            query,
            key_cache,
            value_cache,
            block_tables,
            context_lens,
            antiquant_scale,
            antiquant_offset,
            alibi_mask,
        )


class PagedAttentionMask(Primitive):
    """`PagedAttention` whose call takes a bias for every head, `alibi_mask` (sequences, heads, 1,
    tokens), as its last argument.

    Args:
        head_num (int): The number of heads of queries.
        scale_value (float): The factor of the scores.
        kv_head_num (int): The number of heads of keys.
        kv_cache_quant_mode (str): Must be left as it is. Default: "DEFAULT".

    Examples:
        >>> import mycel as ms
        >>> cache, query = ms.Tensor([[[[1.0]], [[2.0]]]]), ms.Tensor([[[0.0]]])
        >>> attend, bias = ms.ops.PagedAttentionMask(1, 1.0, 1), ms.Tensor([[[[0.0, -1e30]]]])
        >>> found = attend(query, cache, cache, ms.Tensor([[0]]), ms.Tensor([2]), alibi_mask=bias)
        >>> found.ravel().tolist()
        [1.0]
    """

    def __init__(
        self, head_num: int, scale_value: float, kv_head_num: int, kv_cache_quant_mode: str = "DEFAULT"
    ) -> None:
        super().__init__("PagedAttentionMask")
        if kv_cache_quant_mode != "DEFAULT":
            raise ValueError(f"PagedAttentionMask: kv_cache_quant_mode must be 'DEFAULT', not {kv_cache_quant_mode!r}")
        given = {"head_num": head_num, "scale_value": scale_value, "kv_head_num": kv_head_num}
        for name, value in {**given, "kv_cache_quant_mode": kv_cache_quant_mode}.items():
            self.add_prim_attr(name, value)

    def __call__(
        self,
        query: Any,
        key_cache: Any,
        value_cache: Any,
        block_tables: Any,
        context_lens: Any,
        antiquant_scale: Any = None,
        antiquant_offset: Any = None,
        alibi_mask: Any = None,
    ) -> Tensor:
        return _paged(
            self,
            query,
            key_cache,
            value_cache,
            block_tables,
            context_lens,
            antiquant_scale,
            antiquant_offset,
            alibi_mask,
        )


def _paged(
    primitive: Primitive,
    query: Any,
    key_cache: Any,
    value_cache: Any,
    tables: Any,
    lengths: Any,
    scale: Any,
    offset: Any,
    bias: Any,
) -> Tensor:
    """Return the attention of one of the two operations."""
    if value_cache is None or tables is None or lengths is None:
        raise ValueError(f"{primitive.name}: needs value_cache, block_tables and context_lens")
    own = primitive.attrs
    return kv_cache.paged_attention(
        primitive.name,
        own["head_num"],
        own["kv_head_num"],
        own["scale_value"],
        query,
        key_cache,
        value_cache,
        tables,
        lengths,
        scale,
        offset,
        bias,
    )


__all__.extend(operations_of(globals()))
