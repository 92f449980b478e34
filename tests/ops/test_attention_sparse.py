"""Attention to selected keys against loops over queries in float64 NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops
from tests.meaning import A, Checks
from tests.ops.test_attention import close, parts, tensors

RANDOM = np.random.default_rng(5)


def windows(x: Any, w: Any, length: int, stride: int, actual_seq_len: Any) -> Any:
    out, start = [np.zeros((0, *x.shape[1:]))], 0
    for end in actual_seq_len:
        out += [(x[s : s + length] * w[:, :, None]).sum(0)[None] for s in range(start, end - length + 1, stride)]
        start = end
    return np.concatenate(out)


checks = Checks("NumPy")
checks.add("ops.nsa_compress", windows, (A(11, 2, 4), A(4, 2), 4, 2), kwargs={"actual_seq_len": (7, 8, 11)})
checks.add("ops.nsa_compress", windows, (A(9, 3, 1), A(3, 3), 3, 3), kwargs={"actual_seq_len": [9]})
checks.add("ops.nsa_compress", windows, (A(2, 1, 2), A(4, 1), 4, 1), kwargs={"actual_seq_len": (2,)})
test_values, test_gradients = checks.tests()
CHECKED = {
    **checks.checked,
    **dict.fromkeys(
        (
            "ops.nsa_compress_attention",
            "ops.nsa_select_attention",
            "ops.lightning_indexer",
            "ops.sparse_flash_attention",
        ),
        "NumPy",
    ),
}


def one(x: Any) -> Any:
    return x.transpose(1, 0, 2)[None]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("sizes", [(32, 16, 64), (16, 16, 16), (4, 2, 8)])
def test_importance_of_blocks(sizes: tuple[int, int, int], masked: bool) -> None:
    window, stride, block = sizes
    q, k, v = RANDOM.normal(size=(5, 4, 6)), RANDOM.normal(size=(12, 2, 6)), RANDOM.normal(size=(12, 2, 3))
    q_ends, k_ends, s_ends = (2, 5), (7, 12), (4, 7)
    score_mask = RANDOM.uniform(size=(3, 7)) < 0.3 if masked else np.zeros((3, 7), bool)
    block_mask = np.eye(3, 4, dtype=bool) if masked else np.zeros((3, 4), bool)
    given = {"atten_mask": Tensor(score_mask), "topk_mask": Tensor(block_mask)} if masked else {}
    got = ops.nsa_compress_attention(
        *tensors(q, k, v),
        0.3,
        4,
        window,
        stride,
        block,
        2,
        actual_seq_qlen=q_ends,
        actual_cmp_seq_kvlen=k_ends,
        actual_sel_seq_kvlen=s_ends,
        **given,
    )
    outs, found, peaks, sums = [], [], [], []
    for (i, j), (m, n), (s, t) in zip(((0, 2), (2, 5)), ((0, 7), (7, 12)), ((0, 4), (4, 7))):
        drop = score_mask[: j - i, : n - m]
        out, peak, total = parts(one(q[i:j]), one(k[m:n]), one(v[m:n]), 0.3, drop)
        eye = np.eye(n - m)[None, :, None].repeat(2, 2)
        p = parts(one(q[i:j]), one(k[m:n]), one(eye[0]), 0.3, drop)[0][0]
        shared = p.reshape(2, 2, j - i, n - m).sum(1)
        matter = np.zeros((2, j - i, t - s))
        for b in range(t - s):
            for x in range(block // stride):
                for y in range(window // stride):
                    if 0 <= (at := block // stride * b - x - y) < n - m:
                        matter[:, :, b] += shared[:, :, at]
        matter = np.where(block_mask[: j - i, : t - s], -1e9, matter)
        found.append(np.argsort(-matter.round(12), -1, kind="stable")[..., :2].transpose(1, 0, 2))
        for kept, x in zip((outs, peaks, sums), (out, peak, total)):
            kept.append(x[0].transpose(1, 0, 2))
    close(got[0], np.concatenate(outs))
    np.testing.assert_array_equal(got[1].asnumpy(), np.concatenate(found))
    assert got[1].dtype is ms.int32
    close(got[2], np.concatenate(peaks).repeat(8, -1))
    close(got[3], np.concatenate(sums).repeat(8, -1))


@pytest.mark.parametrize("shape", [(4, 2, 3), (1, 1, 64), (6, 3, 4)])
def test_attention_to_named_blocks(shape: tuple[int, int, int]) -> None:
    heads, shared, size = shape
    q, k, v = (
        RANDOM.normal(size=(5, heads, 8)),
        RANDOM.normal(size=(17, shared, 8)),
        RANDOM.normal(size=(17, shared, 6)),
    )
    index = RANDOM.integers(0, 2, size=(5, shared, 2)).astype(np.int32)
    index[0, 0, 1] = -1
    if size == 64:
        index[:] = 0

    def compute(a: Tensor, b: Tensor, c: Tensor) -> Any:
        return ops.nsa_select_attention(
            a, b, c, Tensor(index), 0.4, heads, size, 2, actual_seq_qlen=(3, 5), actual_seq_kvlen=(9, 17)
        )

    wants: list[list[Any]] = [[], [], []]
    for (i, j), (m, n) in zip(((0, 3), (3, 5)), ((0, 9), (9, 17))):
        blocks = np.arange(n - m) // size
        named = (index[i:j, :, :, None] == blocks).any(2).transpose(1, 0, 2).repeat(heads // shared, 0)
        for kept, x in zip(wants, parts(one(q[i:j]), one(k[m:n]), one(v[m:n]), 0.4, ~named[None])):
            kept.append(x[0].transpose(1, 0, 2))
    for got in (compute(*tensors(q, k, v)), ms.jit(compute)(*tensors(q, k, v))):
        for x, want in zip(got, wants):
            whole = np.concatenate(want)
            close(x, whole if whole.shape[-1] > 1 else whole.repeat(8, -1))
    slope = ms.grad(lambda a: compute(a, *tensors(k, v))[0].sum())(Tensor(q))
    way, step = RANDOM.normal(size=q.shape), 1e-6
    ends = [float(compute(*tensors(q + s * step * way, k, v))[0].asnumpy().sum()) for s in (1, -1)]
    assert abs((slope.asnumpy() * way).sum() - (ends[0] - ends[1]) / (2 * step)) < 1e-6


def best(q: Any, k: Any, w: Any, count: int, shift: int, causal: bool) -> tuple[Any, Any]:
    """For one sequence, (S, N, D), (T, D) and (S, N): the best keys and their sums."""
    sums = np.einsum("sn,snt->st", w, np.maximum(np.einsum("snd,td->snt", q, k), 0))
    if causal:
        sums = np.where(np.arange(k.shape[0])[None] > np.arange(q.shape[0])[:, None] + shift, -np.inf, sums)
    order = np.argsort(-sums, -1, kind="stable")[:, :count]
    values = np.take_along_axis(sums, order, -1)
    order = np.where(np.isinf(values), -1, order)
    short = ((0, 0), (0, count - order.shape[1]))
    return np.pad(order, short, constant_values=-1), np.pad(values, short, constant_values=-np.inf)


@pytest.mark.parametrize("count", [1, 3, 9])
@pytest.mark.parametrize("mode", [0, 3])
def test_the_best_keys(count: int, mode: int) -> None:
    q, k, w = RANDOM.normal(size=(2, 3, 4, 5)), RANDOM.normal(size=(2, 6, 1, 5)), RANDOM.uniform(0.1, 1, (2, 3, 4))
    wants = [best(q[b], k[b, :, 0], w[b], count, 3, mode == 3) for b in range(2)]
    index, values = ops.lightning_indexer(*tensors(q, k, w), sparse_count=count, sparse_mode=mode, return_value=True)
    assert index.dtype is ms.int32
    np.testing.assert_array_equal(index.asnumpy()[:, :, 0], np.stack([x[0] for x in wants]))
    close(values[:, :, 0], np.stack([x[1] for x in wants]))
    assert ops.lightning_indexer(*tensors(q, k, w), sparse_count=count)[1].shape == (0,)
    lengths = np.array([4, 6])
    wants = [best(q[b], k[b, :n, 0], w[b], count, n - 3, mode == 3) for b, n in enumerate(lengths)]
    table, cache = np.array([[3, 1], [0, 2]]), np.zeros((4, 3, 1, 5))
    cache[table] = k.reshape(2, 2, 3, 1, 5)
    for extra in ({}, {"block_table": Tensor(table), "layout_key": "PA_BSND"}):
        keys = cache if extra else k
        got = ops.lightning_indexer(
            *tensors(q, keys, w), actual_seq_lengths_key=Tensor(lengths), sparse_count=count, sparse_mode=mode, **extra
        )
        np.testing.assert_array_equal(got[0].asnumpy()[:, :, 0], np.stack([x[0] for x in wants]))
    ends, key_ends = np.array([2, 5]), np.array([4, 9])
    pq, pk, pw = RANDOM.normal(size=(5, 4, 5)), RANDOM.normal(size=(9, 1, 5)), RANDOM.uniform(0.1, 1, (5, 4))
    wants = [
        best(pq[i:j], pk[m:n, 0], pw[i:j], count, (n - m) - (j - i), mode == 3)
        for (i, j), (m, n) in zip(((0, 2), (2, 5)), ((0, 4), (4, 9)))
    ]
    got = ops.lightning_indexer(
        *tensors(pq, pk, pw),
        actual_seq_lengths_query=Tensor(ends),
        actual_seq_lengths_key=Tensor(key_ends),
        layout_query="TND",
        layout_key="TND",
        sparse_count=count,
        sparse_mode=mode,
    )
    np.testing.assert_array_equal(got[0].asnumpy()[:, 0], np.concatenate([x[0] for x in wants]))


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("mode", [0, 3])
def test_attention_to_named_keys(mode: int, size: int) -> None:
    q, k, v = RANDOM.normal(size=(2, 3, 4, 5)), RANDOM.normal(size=(2, 6, 1, 5)), RANDOM.normal(size=(2, 6, 1, 5))
    q_rope, k_rope = RANDOM.normal(size=(2, 3, 4, 2)), RANDOM.normal(size=(2, 6, 1, 2))
    index = RANDOM.integers(-1, 6 // size, size=(2, 3, 1, 3)).astype(np.int32)
    whole_q, whole_k = np.concatenate((q, q_rope), -1), np.concatenate((k, k_rope), -1)

    def want(b: int, rows: slice, columns: int, named: Any) -> Any:
        keys = np.arange(columns)
        drop = ~(named[:, 0, :, None] == keys // size).any(1)
        if mode == 3:
            count = named.shape[0]
            drop |= keys[None] > np.arange(count)[:, None] + columns - count
        return parts(
            *(x.transpose(1, 0, 2)[None] for x in (whole_q[b, rows], whole_k[b, :columns], v[b, :columns])), 0.4, drop
        )

    extra: dict[str, Any] = {
        "sparse_block_size": size,
        "sparse_mode": mode,
        "attention_mode": 2,
        "return_softmax_lse": True,
    }
    got = ops.sparse_flash_attention(
        *tensors(q, k, v, index), 0.4, query_rope=Tensor(q_rope), key_rope=Tensor(k_rope), **extra
    )
    wants = [want(b, slice(0, 3), 6, index[b]) for b in range(2)]
    close(got[0], np.concatenate([x[0] for x in wants]).transpose(0, 2, 1, 3))
    alive = np.concatenate([x[2] for x in wants])[..., 0].transpose(0, 2, 1)[:, None]
    close(got[2], alive)
    np.testing.assert_allclose(
        got[1].asnumpy()[alive > 0],
        np.concatenate([x[1] for x in wants])[..., 0].transpose(0, 2, 1)[:, None][alive > 0],
    )
    flat = [x.reshape(-1, *x.shape[2:]) for x in (q, k, v, index, q_rope, k_rope)]
    packed = ops.sparse_flash_attention(
        *tensors(*flat[:4]),
        0.4,
        query_rope=Tensor(flat[4]),
        key_rope=Tensor(flat[5]),
        actual_seq_lengths_query=Tensor([3, 6]),
        actual_seq_lengths_kv=Tensor([6, 12]),
        layout_query="TND",
        layout_kv="TND",
        **extra,
    )
    close(packed[0], got[0].asnumpy().reshape(6, 4, 5))
    close(packed[2], alive[:, 0].reshape(1, 6, 4))
    lengths = np.array([4, 6])
    some = ops.sparse_flash_attention(
        *tensors(q, k, v, index),
        0.4,
        query_rope=Tensor(q_rope),
        key_rope=Tensor(k_rope),
        actual_seq_lengths_kv=Tensor(lengths),
        **extra,
    )
    close(
        some[0],
        np.concatenate([want(b, slice(0, 3), n, index[b])[0] for b, n in enumerate(lengths)]).transpose(0, 2, 1, 3),
    )


def test_options_that_do_not_go_together() -> None:
    x, index = Tensor(np.ones((4, 1, 2))), Tensor(np.zeros((4, 1, 1), np.int32))
    ends = {"actual_seq_qlen": (4,), "actual_seq_kvlen": (4,)}
    with pytest.raises(ValueError, match="no definition yet"):
        ops.nsa_select_attention(x, x, x, index, 1.0, 1, 2, 1, atten_mask=index, **ends)
    with pytest.raises(ValueError, match="topk_indices must be"):
        ops.nsa_select_attention(x, x, x, index, 1.0, 1, 2, 3, **ends)
    with pytest.raises(ValueError, match="must not exceed"):
        ops.nsa_compress(x, Tensor(np.ones((2, 1))), 2, 3, actual_seq_len=(4,))
    with pytest.raises(ValueError, match="must divide"):
        ops.nsa_compress_attention(
            x, x, x, 1.0, 1, 4, 3, 8, 1, actual_seq_qlen=(4,), actual_cmp_seq_kvlen=(4,), actual_sel_seq_kvlen=(4,)
        )
    with pytest.raises(ValueError, match="attention_mode must be 2"):
        ops.sparse_flash_attention(x, x, x, index, 1.0)
    with pytest.raises(ValueError, match="go with keys"):
        ops.lightning_indexer(x, x, x[:, :, 0], layout_query="TND", layout_key="BSND")
