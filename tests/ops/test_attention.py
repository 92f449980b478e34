"""Attention against its definition in float64 NumPy, with every layout, mask and statistic; and
against values of PyTorch's scaled_dot_product_attention.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops
from tests.meaning import A, B, Checks

checks = Checks("NumPy")
RANDOM = np.random.default_rng(3)
BIG = Tensor(np.triu(np.ones((2048, 2048), np.uint8), 1))


def parts(q: Any, k: Any, v: Any, scale: float = 1.0, drop: Any = None, bias: Any = 0.0, first: bool = False) -> Any:
    """Attention of (B, N, S, D), and the largest score and the sum of exponentials of each row."""
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    s = q @ k.transpose(0, 1, 3, 2)
    s = (s + bias) * scale if first else s * scale + bias
    s = s if drop is None else np.where(drop, -np.inf, s)
    peak = s.max(-1, keepdims=True, initial=-np.inf)
    p = np.exp(s - np.where(np.isfinite(peak), peak, 0.0))
    total = p.sum(-1, keepdims=True)
    return p / np.where(total == 0, 1.0, total) @ v, peak, total


def attention(*args: Any, **kwargs: Any) -> Any:
    return parts(*args, **kwargs)[0]


def above(rows: int, columns: int, shift: int = 0) -> np.ndarray:
    return np.arange(columns)[None] > np.arange(rows)[:, None] + shift


def heads(x: Any, n: int) -> Any:
    return x.reshape(*x.shape[:2], n, -1).transpose(0, 2, 1, 3)


checks.add(
    "ops.flash_attention_score",
    lambda q, k, v, n, **_: attention(q, k, v, 0.3),
    (A(2, 4, 5, 8), A(2, 2, 7, 8), A(2, 2, 7, 8), 4),
    (A(1, 1, 1, 2), A(1, 1, 1, 2), A(1, 1, 1, 2), 1),
    (A(1, 3, 0, 4), A(1, 3, 2, 4), A(1, 3, 2, 4), 3),
    kwargs={"scalar_value": 0.3, "input_layout": "BNSD"},
)
checks.add(
    "ops.flash_attention_score",
    lambda q, k, v, n: heads_back(attention(heads(q, n), heads(k, 2), heads(v, 2))),
    (A(2, 5, 16), A(2, 3, 8), A(2, 3, 8), 4),
)


def heads_back(x: Any) -> Any:
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def with_mask(q: Any, k: Any, v: Any, n: int, bias: Any, mask: Any, **_: Any) -> Any:
    return attention(q, k, v, 0.5, mask | (np.arange(mask.shape[-1]) < np.arange(mask.shape[-2])[:, None] - 1), bias)


checks.add(
    "ops.flash_attention_score",
    lambda q, k, v, n, bias, a, b, mask, **_: with_mask(q, k, v, n, bias, mask),
    (A(2, 2, 4, 4), A(2, 2, 6, 4), A(2, 2, 6, 4), 2, A(2, 2, 4, 6), None, None, B(2, 1, 4, 6)),
    (A(1, 2, 3, 4), A(1, 1, 3, 4), A(1, 1, 3, 4), 2, A(1, 2, 3, 3), None, None, B(3, 3)),
    kwargs={"scalar_value": 0.5, "input_layout": "BNSD", "pre_tokens": 1},
)


def packed(q: Any, k: Any, v: Any, n: int, **_: Any) -> Any:
    out, peak, total = [], [], []
    for (i, j), (s, t) in zip(((0, 2), (2, 2), (2, 6)), ((0, 3), (3, 4), (4, 9))):
        drop = above(j - i, t - s, (t - s) - (j - i))
        found = parts(*(x[a:b].transpose(1, 0, 2)[None] for x, a, b in ((q, i, j), (k, s, t), (v, s, t))), 0.4, drop)
        for kept, x in zip((out, peak, total), found):
            kept.append(x[0].transpose(1, 0, 2))
    return tuple(np.concatenate(x) for x in (out, peak, total))


PACKED = {"input_layout": "TND", "sparse_mode": 3, "attn_mask": BIG, "scalar_value": 0.4}
checks.add(
    "ops.flash_attention_score",
    lambda *args, **kwargs: packed(*args)[0],
    (A(6, 4, 8), A(9, 2, 8), A(9, 2, 8), 4),
    kwargs={**PACKED, "actual_seq_qlen": (2, 2, 6), "actual_seq_kvlen": [3, 4, 9]},
)
checks.add(
    "ops.flash_attention_score",
    lambda *args, **kwargs: packed(*args)[0],
    (A(6, 4, 8), A(9, 2, 8), A(9, 2, 8), 4),
    kwargs={**PACKED, "actual_seq_qlen": Tensor([2, 2, 6]), "actual_seq_kvlen": Tensor([3, 4, 9])},
)


def speed(q: Any, k: Any, v: Any, n: int, layout: str, **_: Any) -> Any:
    out, peak, total = parts(q, k, v, 0.3)
    return (out, np.repeat(peak, 8, -1), np.repeat(total, 8, -1), np.zeros(0), *[np.int64(0)] * 3)


checks.add(
    "ops.speed_fusion_attention",
    speed,
    (A(2, 4, 5, 8), A(2, 2, 7, 8), A(2, 2, 7, 8), 4, "BNSD"),
    (A(1, 1, 1, 2), A(1, 1, 3, 2), A(1, 1, 3, 2), 1, "BNSD"),
    (A(3, 2, 3, 3), A(3, 1, 2, 3), A(3, 1, 2, 3), 2, "BNSD"),
    kwargs={"scale": 0.3},
)


def joined(x: Any, m: Any, s: Any, y: Any, n: Any, t: Any) -> Any:
    peak = np.maximum(m, n)
    before, after = s * np.exp(m - peak), t * np.exp(n - peak)

    def share(w: Any) -> Any:
        ratio = (w / (before + after))[..., :1].transpose(2, 0, 1, 3)
        return np.repeat(ratio, x.shape[2] // m.shape[1], 3).reshape(x.shape)

    return share(before) * x + share(after) * y, peak, before + after


def ring(s: int, b: int, n: int, d: int) -> Any:
    stat = [A(b, n, s, 8), A(b, n, s, 8, low=0.5)]
    return (A(s, b, n * d), *stat, A(s, b, n * d), *stat)


checks.add("ops.ring_attention_update", joined, ring(4, 3, 2, 5), ring(1, 1, 1, 1), ring(2, 0, 2, 3))
test_values, test_gradients = checks.tests()
CHECKED = checks.checked


def tensors(*arrays: Any) -> list[Tensor]:
    return [Tensor(x) for x in arrays]


def close(got: Tensor, want: Any, near: float = 1e-9) -> None:
    np.testing.assert_allclose(got.astype(ms.float64).asnumpy(), want, rtol=near, atol=near)


def operands(rows: int = 5, columns: int = 7) -> tuple[Any, Any, Any]:
    return (
        RANDOM.normal(size=(2, 4, rows, 8)),
        RANDOM.normal(size=(2, 2, columns, 8)),
        RANDOM.normal(size=(2, 2, columns, 8)),
    )


@pytest.mark.parametrize("shape", [(5, 7), (7, 5)])
def test_sparse_modes_are_bands_of_positions(shape: tuple[int, int]) -> None:
    q, k, v = operands(*shape)
    rows, columns = shape
    i, j = np.arange(rows)[:, None], np.arange(columns)[None]
    own = RANDOM.uniform(size=shape) < 0.3
    shift = columns - rows
    masks = {
        0: own | (j > i + 1) | (j < i - 2),
        1: own,
        2: j > i,
        3: j > i + shift,
        4: (j > i + shift + 1) | (j < i + shift - 2),
    }
    for mode, drop in masks.items():
        got = ops.flash_attention_score(
            *tensors(q, k, v),
            4,
            attn_mask=BIG if mode > 1 else Tensor(own),
            sparse_mode=mode,
            scalar_value=0.3,
            input_layout="BNSD",
            pre_tokens=2,
            next_tokens=1,
        )
        close(got, attention(q, k, v, 0.3, drop))
    prefix = np.array([1, 4])
    late = (j > i + shift) & (j >= prefix[:, None, None, None])
    whole = Tensor(np.zeros((2, 1, rows, columns), bool))
    for given in ((1, 4), Tensor([1, 4])):
        got = ops.flash_attention_score(
            *tensors(q, k, v), 4, attn_mask=whole, sparse_mode=5, prefix=given, input_layout="BNSD"
        )
        close(got, attention(q, k, v, 1.0, late))


def test_layouts_hold_the_same_numbers() -> None:
    q, k, v = operands()
    want = ops.flash_attention_score(*tensors(q, k, v), 4, input_layout="BNSD").asnumpy()
    orders = {"BSND": (0, 2, 1, 3), "BSH": (0, 2, 1, 3), "SBH": (2, 0, 1, 3)}
    for layout, order in orders.items():
        given = [x.transpose(order) for x in (q, k, v)]
        wanted = want.transpose(order)
        if layout.endswith("H"):
            given = [x.reshape(*x.shape[:2], -1) for x in given]
            wanted = wanted.reshape(*wanted.shape[:2], -1)
        close(ops.flash_attention_score(*tensors(*given), 4, input_layout=layout), wanted)


def test_rows_without_scores_are_zeros_and_have_no_gradient() -> None:
    q, k, v = operands(3, 2)
    drop = np.array([[True, True], [False, True], [True, True]])
    compute = ms.value_and_grad(
        lambda a, b, c: ops.flash_attention_score(a, b, c, 4, attn_mask=Tensor(drop), input_layout="BNSD").sum(),
        (0, 1, 2),
    )
    value, gradients = compute(*tensors(q, k, v))
    close(value, v[:, [0, 0, 1, 1], 0].sum())
    assert all(np.isfinite(g.asnumpy()).all() for g in gradients)
    assert not gradients[0].asnumpy()[:, :, [0, 2]].any()


def test_scores_of_any_size_stay_finite_and_half_types_round_once() -> None:
    q, k, v = operands()
    want = attention(q, k, v, 1000.0)
    close(ops.flash_attention_score(*tensors(q, k, v), 4, scalar_value=1000.0, input_layout="BNSD"), want, 1e-7)
    for kind, near in ((ms.float16, 1e-3), (ms.bfloat16, 8e-3)):
        given = [Tensor(x).astype(kind) for x in (q, k, v)]
        exact = attention(*(t.astype(ms.float64).asnumpy() for t in given), 0.3)
        got = ops.flash_attention_score(*given, 4, scalar_value=0.3, input_layout="BNSD")
        assert got.dtype is kind
        close(got, exact, near)


def test_dropout_keeps_what_the_bits_say_and_else_the_expectation() -> None:
    q, k, v = operands(4, 8)
    bits = RANDOM.uniform(size=(2, 4, 4, 8)) < 0.6
    s = q @ np.repeat(k, 2, 1).transpose(0, 1, 3, 2)
    p = np.exp(s - s.max(-1, keepdims=True))
    p = p / p.sum(-1, keepdims=True) * bits / 0.6
    mask = Tensor(np.packbits(bits, axis=-1, bitorder="little"))
    close(
        ops.flash_attention_score(*tensors(q, k, v), 4, drop_mask=mask, keep_prob=0.6, input_layout="BNSD"),
        p @ np.repeat(v, 2, 1),
    )
    ms.set_seed(1)
    ones = Tensor(np.ones((8, 4, 64, 8)))
    out = ops.flash_attention_score(ones, ones, ones, 4, keep_prob=0.5, input_layout="BNSD").asnumpy()
    assert abs(out.mean() - 1.0) < 0.02 and out.std() > 0.05


def test_bias_of_the_last_rows_stands_for_a_longer_one() -> None:
    length, slope = 1030, 0.01
    i, j = np.arange(length)[:, None], np.arange(length)[None]
    q, k, v = (RANDOM.normal(size=(1, 1, length, 2)) for _ in range(3))
    bias = -slope * (i - j)
    last = Tensor(bias[None, None, -1024:])
    got = ops.flash_attention_score(
        *tensors(q, k, v), 1, real_shift=last, sparse_mode=2, attn_mask=BIG, input_layout="BNSD"
    )
    close(got, attention(q, k, v, 1.0, j > i, bias))


def test_position_biases_of_speed_fusion_attention() -> None:
    q, k, v = (x.astype(np.float32).astype(np.float64) for x in operands())
    slopes = np.array([0.5, 0.25, 0.125, 0.0625], np.float32)
    i, j = np.arange(5)[:, None], np.arange(7)[None]
    for kind, offset in ((2, 0), (3, 2)):
        distance = np.abs((i + offset) - j)
        bias = -slopes[:, None, None] * (distance if kind == 2 else np.sqrt(distance))
        given = {} if not offset else {"q_start_idx": [2], "kv_start_idx": [0]}
        got = ops.speed_fusion_attention(
            *tensors(q, k, v), 4, "BNSD", pse=Tensor(slopes), pse_type=kind, scale=0.5, **given
        )
        want = parts(q, k, v, 0.5, bias=bias)
        close(got[0], want[0], 1e-6)
        close(got[1], np.repeat(want[1], 8, -1), 1e-6)
    bias = RANDOM.normal(size=(2, 4, 5, 7))
    for kind in (0, 1):
        got = ops.speed_fusion_attention(*tensors(q, k, v), 4, "BNSD", pse=Tensor(bias), pse_type=kind, scale=0.5)
        close(got[0], attention(q, k, v, 0.5, bias=bias, first=kind == 1))


def test_two_halves_of_the_keys_make_the_whole() -> None:
    q, k, v = (RANDOM.normal(size=(6, 3, 8)) for _ in range(3))
    first = ops.speed_fusion_attention(*tensors(q, k[:2], v[:2]), 3, "TND", actual_seq_qlen=(6,), actual_seq_kvlen=(2,))
    second = ops.speed_fusion_attention(
        *tensors(q, k[2:], v[2:]), 3, "TND", actual_seq_qlen=(6,), actual_seq_kvlen=(4,)
    )
    both = ops.ring_attention_update(*first[:3], *second[:3], Tensor([0, 6]), "TND")
    whole = parts(*(x.transpose(1, 0, 2)[None] for x in (q, k, v)))
    for got, want in zip(both, whole):
        close(got[..., : want.shape[-1]], want[0].transpose(1, 0, 2))


def test_agrees_with_pytorch() -> None:
    """torch.nn.functional.scaled_dot_product_attention of sin and cos of 0, 1, ..., causal, (1, 2,
    3, 2), scale 1 / sqrt(2).
    """
    n = np.arange(12.0)
    q, k, v = (x.reshape(1, 2, 3, 2) for x in (np.sin(n), np.cos(n), np.sin(2 * n)))
    got = ops.flash_attention_score(
        *tensors(q, k, v), 2, scalar_value=0.5**0.5, input_layout="BNSD", sparse_mode=2, attn_mask=BIG
    )
    close(got, np.array(TORCH).reshape(1, 2, 3, 2), 1e-12)


TORCH = [
    0.0,
    0.909297426825682,
    -0.194263660290064,
    0.604166662483487,
    -0.172128692664625,
    -0.236433453736254,
    -0.536572918000435,
    0.99060735569487,
    -0.481568489448959,
    0.605375645173838,
    0.120975223035933,
    -0.295822058520179,
]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"input_layout": "SBND"}, "must be one of"),
        ({"head_num": 3}, "head_num is 3"),
        ({"sparse_mode": 7}, "must be 0 to 5"),
        ({"sparse_mode": 2}, r"\(2048, 2048\)"),
        ({"sparse_mode": 1}, "needs a mask"),
        ({"keep_prob": 0.0}, r"in \(0, 1\]"),
        ({"padding_mask": 1}, "leave it out"),
        ({"actual_seq_qlen": (5,)}, "belong to the layout TND"),
        ({"real_shift": Tensor(np.zeros((5, 7)))}, "must be of shape"),
        ({"head_num": 0}, "must be at least 1"),
        ({"sparse_mode": 4, "attn_mask": BIG, "pre_tokens": -9, "next_tokens": 0}, "leave no band"),
    ],
)
def test_options_that_do_not_go_together(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"head_num": 4, "input_layout": "BNSD", **change}
    with pytest.raises((ValueError, TypeError), match=message):
        ops.flash_attention_score(*tensors(*operands()), **given)


def test_types_that_do_not_go_together() -> None:
    q, k, v = tensors(*operands())
    with pytest.raises(TypeError, match="one floating type"):
        ops.flash_attention_score(q.astype(ms.float32), k, v, 4, input_layout="BNSD")
    with pytest.raises(TypeError, match="must be of bool or uint8"):
        ops.flash_attention_score(q, k, v, 4, attn_mask=Tensor(np.zeros((5, 7))), input_layout="BNSD")
    with pytest.raises(ValueError, match="pse_type must be"):
        ops.speed_fusion_attention(q, k, v, 4, "BNSD", pse_type=4)
    with pytest.raises(ValueError, match="do not go together"):
        ops.flash_attention_score(q, k[:1], v[:1], 4, input_layout="BNSD")
    with pytest.raises(ValueError, match="must not fall"):
        ops.flash_attention_score(q[0], q[0], q[0], 5, input_layout="TND", actual_seq_qlen=(3,), actual_seq_kvlen=(4,))


def test_vectorised_and_for_many_lengths() -> None:
    def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return ops.flash_attention_score(q, k, v, 2, input_layout="BNSD", sparse_mode=3, attn_mask=BIG)

    q, k, v = (RANDOM.normal(size=(3, 2, 2, 4, 8)) for _ in range(3))
    mapped = ms.vmap(causal)(*tensors(q, k, v))
    for i in range(3):
        close(mapped[i], attention(q[i], k[i], v[i], 1.0, above(4, 4)))
    compiled = ms.jit(causal)
    for rows, columns in ((3, 5), (4, 6), (7, 9)):
        q, k, v = (RANDOM.normal(size=(1, 2, n, 8)) for n in (rows, columns, columns))
        close(compiled(*tensors(q, k, v)), attention(q, k, v, 1.0, above(rows, columns, columns - rows)))
