"""Caches of keys and values in blocks of tokens: (blocks, tokens, heads, size).

A slot is a token's place in the cache seen as one row of tokens. A table names the blocks of each
sequence in order.
"""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops import array, gather_scatter
from mycel.ops._operands import constant_like, number_of, operand, reshaped, run, select, size_of
from mycel.ops.attention.serving_core import Lengths, Served, Stored


def reshape_and_cache(
    key: Any, value: Any = None, key_cache: Any = None, value_cache: Any = None, slot_mapping: Any = None
) -> Tensor:
    """Write new keys and values into slots of their caches, and return the key.

    `key` and `value` are (tokens, heads, size), or with heads joined; `key_cache` and `value_cache`
    (blocks, tokens, heads, size) are changed in place. `slot_mapping` has the slot of each token;
    tokens of negative slots are left out. `value` and `value_cache` may be left out together.

    Raises ValueError where shapes do not fit.

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
        rows = gather_scatter.write(name, reshaped(cache, (count, width)), place, update, "set", "drop")
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
    """Return attention of one query for each sequence to the first `context_lens` tokens that the
    table `block_tables` (sequences, blocks) finds in caches.

    `name` is the operation, for errors. `query` is (sequences, heads, size), or with heads joined;
    `key_cache` and `value_cache` are (blocks, tokens, shared, size), where `shared` is the number
    of heads of keys. `scale` multiplies scores, and `bias`, (sequences or 1, tokens) or (sequences
    or 1, heads or 1, 1, tokens), is added to them. Keys and values of int8 are restored by
    `antiquant_scale` and `antiquant_offset`.
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
        columns=Lengths(lengths),
        bias=bias,
        stored=Stored.together(antiquant_scale, antiquant_offset),
        table=tables,
        block_size=caches[0].shape[1],
    )
    found = served(reshaped(q, (count, heads, 1, size)), *kept)[0]
    if caches[1].shape[3] == size:
        return reshaped(found, q.shape)
    return reshaped(found, (count, heads, caches[1].shape[3]))
