"""Attention in service against the definition in float64 NumPy: lengths, padding on either side,
caches of blocks, and numbers of 8 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops
from mycel.ops.attention.kv_cache import reshape_and_cache
from tests.ops.test_attention import BIG, above, attention, close, heads, heads_back, operands, parts, tensors

CHECKED = dict.fromkeys(
    (
        "ops.prompt_flash_attention",
        "ops.incre_flash_attention",
        "ops.fused_infer_attention_score",
        "ops.PagedAttention",
        "ops.PagedAttentionMask",
        "ops.ReshapeAndCache",
    ),
    "NumPy",
)
RANDOM = np.random.default_rng(11)


def flat(x: Any) -> Any:
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


@pytest.mark.parametrize("shape", [(5, 7), (7, 4), (1, 1)])
def test_prompts_in_both_layouts_with_masks_of_every_shape(shape: tuple[int, int]) -> None:
    q, k, v = operands(*shape)
    drop = RANDOM.uniform(size=(2, *shape)) < 0.3
    bias = RANDOM.normal(size=(1, 4, *shape))
    want = attention(q, k, v, 0.3, drop[:, None], bias)
    for mask in (Tensor(drop), Tensor(drop[:, None].astype(np.uint8))):
        got = ops.prompt_flash_attention(
            *tensors(q, k, v),
            mask,
            pse_shift=Tensor(bias),
            num_heads=4,
            num_key_value_heads=2,
            scale_value=0.3,
            input_layout="BNSD",
            next_tokens=2147483647,
        )
        close(got, want)
    got = ops.prompt_flash_attention(
        *tensors(flat(q), flat(k), flat(v)), Tensor(drop[0]), num_heads=4, num_key_value_heads=2, sparse_mode=1
    )
    close(got, flat(attention(q, k, v, 1.0, drop[0])))


def valid(drop: Any, rows: Any, columns: Any, q_pad: Any = None, k_pad: Any = None) -> tuple[Any, Any]:
    """A mask that also drops what lies outside of each example's rows and columns, and which rows
    are inside.
    """
    _, s, t = drop.shape
    first = np.zeros(2, int) if q_pad is None else s - q_pad - rows
    start = np.zeros(2, int) if k_pad is None else t - k_pad - columns
    row, column = np.arange(s)[None, :, None], np.arange(t)[None, None]
    inside = (row >= first[:, None, None]) & (row < (first + rows)[:, None, None])
    held = (column >= start[:, None, None]) & (column < (start + columns)[:, None, None])
    return drop | ~held, inside


def test_lengths_of_prompts_and_their_causal_modes() -> None:
    q, k, v = operands(5, 6)
    rows, columns = np.array([3, 5]), np.array([6, 2])
    for mode, shift in ((2, np.zeros(2, int)), (3, columns - rows)):
        i, j = np.arange(5)[None, :, None], np.arange(6)[None, None]
        drop, inside = valid(j > i + shift[:, None, None], rows, columns)
        want = attention(q, k, v, 0.5, drop[:, None]) * inside[:, None]
        for given in ((rows.tolist(), columns.tolist()), (Tensor(rows), Tensor(columns))):
            got = ops.prompt_flash_attention(
                *tensors(q, k, v),
                BIG,
                *given,
                num_heads=4,
                num_key_value_heads=2,
                scale_value=0.5,
                input_layout="BNSD",
                sparse_mode=mode,
            )
            close(got, want)


def test_padding_on_the_left_and_the_logarithms_of_sums() -> None:
    q, k, v = operands(5, 6)
    rows, columns = np.array([3, 4]), np.array([4, 2])
    drop, inside = valid(np.zeros((2, 5, 6), bool), rows, columns, 1, 2)
    out, peak, total = parts(q, k, v, 0.5, drop[:, None])
    got, lse = ops.fused_infer_attention_score(
        *tensors(q, k, v),
        actual_seq_lengths=Tensor(rows),
        actual_seq_lengths_kv=Tensor(columns),
        query_padding_size=Tensor([1]),
        kv_padding_size=Tensor(2),
        num_heads=4,
        num_key_value_heads=2,
        scale=0.5,
        input_layout="BNSD_BSND",
        softmax_lse_flag=True,
    )
    close(got, (out * inside[:, None]).transpose(0, 2, 1, 3))
    assert lse.dtype is ms.float32 and lse.shape == (2, 4, 5, 1)
    close(lse, peak + np.log(total), 1e-6)
    assert ops.fused_infer_attention_score(*tensors(q, q, q), num_heads=4, input_layout="BNSD")[1].tolist() == [0.0]


def test_one_token_at_a_time() -> None:
    q, k, v = operands(1, 6)
    lengths = np.array([4, 6])
    drop = RANDOM.uniform(size=(2, 1, 6)) < 0.3
    bias = RANDOM.normal(size=(2, 4, 1, 6))
    hidden, _ = valid(drop, np.ones(2, int), lengths)
    want = attention(q, k, v, 0.4, hidden[:, None], bias)
    common: dict[str, Any] = {
        "num_heads": 4,
        "num_key_value_heads": 2,
        "actual_seq_lengths": Tensor(lengths),
        "pse_shift": Tensor(bias),
    }
    tq, tk, tv = tensors(flat(q), flat(k), flat(v))
    for mask in (drop[:, 0], drop, drop[:, None]):
        for keys in ((tk, tv), ([tk], [tv]), ([tk[:1], tk[1:]], (tv[:1], tv[1:]))):
            close(ops.incre_flash_attention(tq, *keys, Tensor(mask), scale_value=0.4, **common), flat(want))
    fused = ops.fused_infer_attention_score(
        *tensors(q, k, v),
        atten_mask=Tensor(drop),
        pse_shift=Tensor(bias),
        actual_seq_lengths_kv=lengths.tolist(),
        num_heads=4,
        num_key_value_heads=2,
        scale=0.4,
        input_layout="BNSD",
    )
    close(fused[0], want)
    compiled = ms.jit(
        lambda a, b, c, n: ops.incre_flash_attention(a, b, c, actual_seq_lengths=n, num_heads=4, num_key_value_heads=2)
    )
    close(
        compiled(tq, tk, tv, Tensor(lengths)),
        flat(attention(q, k, v, 1.0, valid(drop & False, np.ones(2, int), lengths)[0][:, None])),
    )


def test_blocks_of_a_cache() -> None:
    k, v = RANDOM.normal(size=(2, 5, 4, 2, 8))
    q = RANDOM.normal(size=(3, 4, 1, 8))
    table = np.array([[2, 0], [4, -1], [1, 3]])
    lengths = np.array([7, 3, 4])
    full_k, full_v = (x[np.maximum(table, 0)].reshape(3, 8, 2, 8).transpose(0, 2, 1, 3) for x in (k, v))
    drop = np.arange(8) >= lengths[:, None, None, None]
    want = attention(q, full_k, full_v, 0.3, drop)
    common: dict[str, Any] = {
        "num_heads": 4,
        "num_key_value_heads": 2,
        "scale_value": 0.3,
        "input_layout": "BNSD",
        "block_size": 4,
        "block_table": Tensor(table),
        "actual_seq_lengths": lengths.tolist(),
    }
    close(ops.incre_flash_attention(*tensors(q, k.reshape(5, 4, 16), v.reshape(5, 4, 16)), **common), want)
    close(ops.incre_flash_attention(*tensors(q, k.transpose(0, 2, 1, 3), v.transpose(0, 2, 1, 3)), **common), want)
    rest = [*tensors(k, v, table, lengths)]
    close(ops.PagedAttention(4, 0.3, 2)(Tensor(q[:, :, 0]), *rest), want[:, :, 0])
    close(ops.PagedAttention(4, 0.3, 2)(Tensor(q.reshape(3, 1, 32)), *rest), want.reshape(3, 1, 32))
    bias = RANDOM.normal(size=(3, 7))
    padded = np.pad(bias, ((0, 0), (0, 1)))[:, None, None]
    close(
        ops.PagedAttention(4, 0.3, 2)(Tensor(q[:, :, 0]), *rest, alibi_mask=Tensor(bias)),
        attention(q, full_k, full_v, 0.3, drop, padded)[:, :, 0],
    )
    each = RANDOM.normal(size=(3, 4, 1, 8))
    close(
        ops.PagedAttentionMask(4, 0.3, 2)(Tensor(q[:, :, 0]), *rest, alibi_mask=Tensor(each)),
        attention(q, full_k, full_v, 0.3, drop, each)[:, :, 0],
    )
    with pytest.raises(ValueError, match="add it to alibi_mask"):
        ops.PagedAttention(4, 0.3, 2)(Tensor(q[:, :, 0]), *rest, attn_mask=Tensor(bias))


def test_new_tokens_go_to_their_slots() -> None:
    for shape, tokens in (((3, 4, 2, 8), 5), ((1, 1, 1, 1), 1), ((2, 3, 1, 4), 0)):
        key, value = RANDOM.normal(size=(2, tokens, *shape[2:]))
        caches = [ms.Parameter(Tensor(RANDOM.normal(size=shape)), name=n) for n in "kv"]
        wants = [c.asnumpy().copy().reshape(-1, *shape[2:]) for c in caches]
        slots = RANDOM.permutation(shape[0] * shape[1])[:tokens]
        slots[1:2] = -1
        for want, new in zip(wants, (key, value)):
            for slot, row in zip(slots, new):
                if slot >= 0:
                    want[slot] = row
        out = ops.ReshapeAndCache()(
            Tensor(key.reshape(tokens, shape[2] * shape[3])), Tensor(value), *caches, Tensor(slots.astype(np.int32))
        )
        assert out.shape == (tokens, shape[2] * shape[3])
        for want, cache in zip(wants, caches):
            np.testing.assert_array_equal(cache.asnumpy().reshape(want.shape), want)
    with pytest.raises(ValueError, match="needs key_cache"):
        reshape_and_cache(Tensor([[[1.0]]]))


def test_keys_and_values_of_8_bits() -> None:
    q = RANDOM.normal(size=(2, 4, 1, 8))
    k, v = RANDOM.integers(-100, 100, size=(2, 2, 2, 6, 8)).astype(np.int8)
    scale, offset = RANDOM.uniform(0.01, 0.05, (2, 2, 1, 8)), RANDOM.uniform(-3, 3, (2, 2, 1, 8))
    real_k, real_v = ((x + o) * s for x, s, o in zip((k, v), scale, offset))
    want = attention(q, real_k, real_v, 0.3)
    common: dict[str, Any] = {"num_heads": 4, "num_key_value_heads": 2, "input_layout": "BNSD"}
    got = ops.incre_flash_attention(
        *tensors(q, k, v), antiquant_scale=Tensor(scale), antiquant_offset=Tensor(offset), scale_value=0.3, **common
    )
    close(got, want)
    got = ops.fused_infer_attention_score(
        *tensors(q, k, v),
        key_antiquant_scale=Tensor(scale[0]),
        value_antiquant_scale=Tensor(scale[1]),
        scale=0.3,
        **common,
    )[0]
    close(got, attention(q, k * scale[0], v * scale[1], 0.3))
    tokens = RANDOM.uniform(0.01, 0.05, (2, 2, 6))
    got = ops.fused_infer_attention_score(
        *tensors(q, k, v), antiquant_scale=Tensor(tokens), antiquant_mode=1, scale=0.3, **common
    )[0]
    close(got, attention(q, *(x * s[:, None, :, None] for x, s in zip((k, v), tokens)), 0.3))
    with pytest.raises(TypeError, match="keys of int8"):
        ops.incre_flash_attention(*tensors(q, k, v), **common)


def test_results_of_8_bits() -> None:
    q, k, v = operands(3, 6)
    scale, offset = RANDOM.uniform(20, 90, (4, 8)), RANDOM.uniform(-3, 3, (4, 8))
    want = np.clip(np.rint(attention(q, k, v, 0.3) * scale[:, None] + offset[:, None]), -128, 127)
    got = ops.prompt_flash_attention(
        *tensors(q, k, v),
        quant_scale2=Tensor(scale),
        quant_offset2=Tensor(offset),
        num_heads=4,
        num_key_value_heads=2,
        scale_value=0.3,
        input_layout="BNSD",
    )
    assert got.dtype is ms.int8
    np.testing.assert_array_equal(got.asnumpy(), want)


def test_half_types_and_gradients() -> None:
    q, k, v = operands(3, 6)
    given = [Tensor(x).astype(ms.float16) for x in (q, k, v)]
    got = ops.prompt_flash_attention(*given, num_heads=4, num_key_value_heads=2, scale_value=0.3, input_layout="BNSD")
    assert got.dtype is ms.float16
    close(got, attention(*(t.astype(ms.float64).asnumpy() for t in given), 0.3), 1e-3)
    slopes = ms.grad(
        lambda x: ops.prompt_flash_attention(
            x,
            *tensors(k, v),
            num_heads=4,
            num_key_value_heads=2,
            actual_seq_lengths=(3, 2),
            actual_seq_lengths_kv=(2, 6),
            input_layout="BNSD",
        ).sum()
    )(Tensor(q))
    drop, inside = valid(np.zeros((2, 3, 6), bool), np.array([3, 2]), np.array([2, 6]))
    way, step = RANDOM.normal(size=q.shape), 1e-6
    ends = [(attention(q + s * step * way, k, v, 1.0, drop[:, None]) * inside[:, None]).sum() for s in (1, -1)]
    assert abs((slopes.asnumpy() * way).sum() - (ends[0] - ends[1]) / (2 * step)) < 1e-6


def test_layout_by_rows() -> None:
    q, k, v = (RANDOM.normal(size=(2, 3, 8)) for _ in range(3))
    want = heads_back(attention(heads(q, 2), heads(k, 2), heads(v, 2), 1.0, above(3, 3)))
    close(ops.fused_infer_attention_score(*tensors(q, k, v), atten_mask=BIG, sparse_mode=2, num_heads=2)[0], want)
    by_heads = [x.reshape(2, 3, 2, 4) for x in (q, k, v)]
    got = ops.fused_infer_attention_score(
        *tensors(*by_heads), atten_mask=BIG, sparse_mode=2, num_heads=2, input_layout="BSND"
    )
    close(got[0], want.reshape(2, 3, 2, 4))


def test_a_mask_of_queries_and_keys_is_for_each_example_of_a_list() -> None:
    q, k, v = (RANDOM.normal(size=(2, 2, 8)) for _ in range(3))
    mask = np.array([[False, True], [False, False]])
    want = heads_back(attention(heads(q, 2), heads(k, 2), heads(v, 2), 1.0, mask))
    keys, values = (tensors(x[:1], x[1:]) for x in (k, v))
    got = ops.fused_infer_attention_score(*tensors(q), keys, values, atten_mask=Tensor(mask), num_heads=2)
    close(got[0], want)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_heads": 3}, "multiple of num_key_value_heads"),
        ({"input_layout": "SBH"}, "must be one of"),
        ({"sparse_mode": 5}, "must be 0 to 4"),
        ({"deq_scale1": 1}, "not supported"),
        ({"actual_seq_lengths": (1, 2, 3)}, "must have 2 numbers"),
        ({"num_heads": 2}, "query has 4 heads"),
    ],
)
def test_options_that_do_not_go_together(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"num_heads": 4, "num_key_value_heads": 2, "input_layout": "BNSD", **change}
    with pytest.raises(ValueError, match=message):
        ops.prompt_flash_attention(*tensors(*operands()), **given)


def test_a_token_needs_one_query_and_a_table_its_lengths() -> None:
    q, k, v = tensors(*operands())
    with pytest.raises(ValueError, match="one token an example"):
        ops.incre_flash_attention(q, k, v, num_heads=4, input_layout="BNSD")
    with pytest.raises(ValueError, match="lengths of keys must be given"):
        ops.incre_flash_attention(
            q[:, :, :1],
            k,
            v,
            block_table=Tensor([[0], [0]]),
            num_heads=4,
            num_key_value_heads=2,
            block_size=7,
            input_layout="BNSD",
        )
    with pytest.raises(TypeError, match="int8 are not supported"):
        ops.prompt_flash_attention(q.astype(ms.int8), k, v, num_heads=4, num_key_value_heads=2, input_layout="BNSD")
