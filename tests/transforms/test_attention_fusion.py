"""Attention that programs write themselves is recognised, and means the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import ops
from mycel._src.compiler.prims.neural.attention import attention, attention_grad
from mycel._src.compiler.transforms.attention_fusion import FEW
from mycel._src.engines.select import engine

B, H, S, D = 2, 3, 24, 8
RNG = np.random.default_rng(1)


def tensor(*shape: int) -> Any:
    return ms.Tensor(RNG.standard_normal(shape).astype(np.float32))


MASK = ms.Tensor((RNG.random((S, S)) < 0.7) | np.eye(S, dtype=bool))
BIAS, HEAT = tensor(H, S, S), tensor(H, 1, 1)
PADDING = ms.Tensor(((RNG.random((B, 1, 1, S)) < 0.2) * -1e4).astype(np.float32))


def scores(q: Any, k: Any) -> Any:
    return ops.matmul(q, k.swapaxes(-1, -2))


def plain(q: Any, k: Any, v: Any) -> Any:
    return ops.matmul(ops.softmax(scores(q, k) / D**0.5, -1), v)


def masked(q: Any, k: Any, v: Any) -> Any:
    return ops.softmax(ops.masked_fill(scores(q, k) / D**0.5, MASK == 0, -1e9), -1) @ v


def biased(q: Any, k: Any, v: Any) -> Any:
    return ops.softmax(scores(q / D**0.5, k) + BIAS + PADDING, -1) @ v


def causal(q: Any, k: Any, v: Any) -> Any:
    i = ops.arange(S)
    return ops.softmax(ops.where(i[None, :] > i[:, None], -np.inf, scores(q, k) * 0.3), -1) @ v


def causal_sum(q: Any, k: Any, v: Any) -> Any:
    mask = ops.triu(ops.full((S, S), -float("inf"), dtype=ms.float32), 1)
    p = ops.softmax(scores(q, k) / ops.sqrt(ops.cast(ms.Tensor(8), ms.float32)) + mask + PADDING, -1)
    return ops.bmm(p.reshape(B * H, S, S), v.reshape(B * H, S, D))


def joined(q: Any, k: Any, v: Any) -> Any:
    q, k, v = (x.reshape(B * H, S, D) for x in (q, k, v))
    s = ops.bmm(q, k.swapaxes(-1, -2)).reshape(B, H, S, S) + PADDING
    s = ops.masked_fill(s, ops.logical_not(ops.tril(ops.ones((S, S), ms.bool_))), -1e9)
    return ops.bmm(ops.softmax(s.reshape(B * H, S, S), -1), v)


def window(q: Any, k: Any, v: Any) -> Any:
    i = ops.arange(S)
    near = ops.logical_and(i[None, :] <= i[:, None], i[None, :] > i[:, None] - 5)
    return ops.softmax(ops.where(near, scores(q, k), -1e30), -1) @ v


def einsum(q: Any, k: Any, v: Any) -> Any:
    s = ops.einsum("bhqd,bhkd->bhqk", q, k) * 0.3
    return ops.einsum("bhqk,bhkd->bhqd", ops.softmax(s, -1), v)


def shared_keys(q: Any, k: Any, v: Any) -> Any:
    return ops.softmax((scores(q, k[:, :1]) + BIAS) * HEAT, -1) @ v[:, :1]


def dropout(q: Any, k: Any, v: Any) -> Any:
    return ops.matmul(ops.dropout(ops.softmax(scores(q, k), -1), 0.3, True), v)


def masked_dropout(q: Any, k: Any, v: Any) -> Any:
    p = ops.softmax(ops.masked_fill(scores(q, k) / D**0.5, MASK == 0, -1e9), -1)
    return ops.dropout(p, 0.3, True) @ v


def biased_dropout(q: Any, k: Any, v: Any) -> Any:
    return ops.dropout(ops.softmax(scores(q, k) * 0.3 + BIAS + PADDING, -1), 0.3, True) @ v


def weights_used(q: Any, k: Any, v: Any) -> Any:
    p = ops.softmax(scores(q, k), -1)
    return ops.matmul(p, v) + p.mean()


def other_axis(q: Any, k: Any, v: Any) -> Any:
    return ops.softmax(scores(q, k), -2) @ v


def mask_inside(q: Any, k: Any, v: Any) -> Any:
    return ops.softmax(ops.masked_fill(scores(q, k), MASK == 0, -7.0) + BIAS, -1) @ v


WITH = (plain, masked, biased, causal, causal_sum, joined, window, einsum, shared_keys, dropout) + (
    masked_dropout,
    biased_dropout,
)


def counted(monkeypatch: pytest.MonkeyPatch) -> dict[Any, int]:
    """Count the applications of both primitives in graphs as they are compiled."""
    from mycel._src.engines.native.program import compiling

    counts = {attention: 0, attention_grad: 0}
    before = compiling.expand

    def seen(graph: Any) -> Any:
        for node in graph.nodes:
            if node.prim in counts:
                counts[node.prim] += 1
        return before(graph)

    monkeypatch.setattr(compiling, "expand", seen)
    monkeypatch.setattr(compiling.program_cache, "key_of", lambda *_: None)
    return counts


@pytest.mark.parametrize("function", [*WITH, weights_used, other_axis, mask_inside])
@pytest.mark.parametrize("few", [False, True])
def test_what_is_recognised_means_the_same(
    function: Callable[..., Any], few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine().name != "native":
        pytest.skip("the reference engine recognises nothing")
    # Without the first nothing pays, and with the second everything.
    monkeypatch.setattr(
        "mycel._src.compiler.transforms.attention_fusion.FEW"
        if few
        else "mycel._src.compiler.transforms.attention_fusion.FEWEST",
        0 if few else S + 1,
    )
    q, k, v = (tensor(B, H, S, D) for _ in range(3))
    ms.set_seed(3)
    w = tensor(*function(q, k, v).shape)

    def loss(q: Any, k: Any, v: Any) -> Any:
        return (function(q, k, v) * w).sum()

    def run(f: Any) -> list[Any]:
        ms.set_seed(3)
        found = f(q, k, v)
        return [x.asnumpy() for x in (found if isinstance(found, tuple) else (found,))]

    value, grads = run(function), run(ms.grad(loss, (0, 1, 2)))
    counts = counted(monkeypatch)
    np.testing.assert_allclose(run(ms.jit(lambda *x: function(*x)))[0], value[0], atol=1e-5, rtol=1e-5)
    assert counts == {attention: int(function in WITH), attention_grad: 0}
    for a, b in zip(run(ms.jit(lambda *x: ms.grad(loss, (0, 1, 2))(*x))), grads):
        np.testing.assert_allclose(a, b, atol=1e-5, rtol=1e-5)
    assert counts[attention_grad] == int(function in WITH and few)
    assert counts[attention] <= int(function in WITH) * (1 + few)


@pytest.mark.parametrize(
    ("length", "features", "kind", "pays"),
    [
        (64, 32, "plain", True),
        (64, 64, "plain", False),
        (300, 64, "plain", True),
        (64, 64, "causal", True),
        (64, 128, "causal", False),
        (64, 128, "masked", True),
        (64, 64, "padded", False),
        (16, 32, "causal", False),
    ],
)
def test_short_rows_keep_their_weights_where_that_is_less_work(
    length: int, features: int, kind: str, pays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine().name != "native":
        pytest.skip("the reference engine recognises nothing")
    q, k, v, w = (tensor(1, 2, length, features) for _ in range(4))
    differing, same = tensor(length, length), tensor(1, length)

    def loss(q: Any, k: Any, v: Any, w: Any) -> Any:
        s = scores(q, k)
        if kind == "causal":
            s = ops.where(ops.arange(length)[None, :] <= ops.arange(length)[:, None], s, -1e9)
        elif kind != "plain":
            s = s + (differing if kind == "masked" else same)
        return (ops.softmax(s, -1) @ v * w).sum()

    expected = ms.grad(loss, (0, 1, 2))(q, k, v, w)
    counts = counted(monkeypatch)
    found = ms.jit(lambda *x: ms.grad(loss, (0, 1, 2))(*x))(q, k, v, w)
    assert counts[attention_grad] == int(pays)
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("seed", range(12))
def test_dropout_draws_what_the_mask_in_memory_has(seed: int) -> None:
    draw = np.random.default_rng(seed)
    lead = int(draw.integers(1, 4)), int(draw.integers(1, 4))
    s, t = (int(n) for n in draw.choice([12, 13, 31, 64, 97, 130, 200], 2))
    d, e = (int(n) for n in draw.choice([1, 3, 16, 33, 64], 2))
    kind, rate, banded = (np.float32, np.float64)[seed % 2], float(draw.choice([0.1, 0.5, 0.73])), seed % 3 == 0
    q, k, v, w = (ms.Tensor(draw.normal(size=x).astype(kind)) for x in ((s, d), (t, d), (t, e), (s, e)))
    shift = ms.Tensor(draw.normal(size=(*lead, 1, 1)).astype(kind))
    bias = ms.Tensor(draw.normal(size=(s, t)).astype(kind)) if seed % 4 == 1 else None
    mask = ms.Tensor(draw.random((s, t)) < 0.8) if seed % 4 == 2 else None

    def loss(q: Any, k: Any, v: Any) -> Any:
        p = scores(q + shift, k + ops.zeros_like(shift)) / 3.0
        if banded:
            p = ops.where(ops.arange(t)[None, :] <= ops.arange(s)[:, None], p, -1e9)
        if bias is not None:
            p = p + bias
        if mask is not None:
            p = ops.where(mask, p, -1e9)
        return (ops.dropout(ops.softmax(p, -1), rate) @ (v + shift) * w).sum()

    def run(f: Any) -> list[Any]:
        ms.set_seed(seed)
        value, grads = f(q, k, v)
        return [value.asnumpy(), *[g.asnumpy() for g in grads]]

    both = ms.value_and_grad(loss, (0, 1, 2))
    for a, b in zip(run(ms.jit(lambda *x: both(*x))), run(both)):
        np.testing.assert_allclose(a, b, atol=1e-3 if kind is np.float32 else 1e-9, rtol=1e-3)


def test_dropout_has_no_mask_in_memory() -> None:
    if engine().name != "native":
        pytest.skip("the reference engine has all scores")
    q, k, v = (tensor(1, 4, 1024, 16) for _ in range(3))
    step = ms.jit(lambda *x: ms.grad(lambda *y: (dropout(*y) ** 2).sum(), (0, 1, 2))(*x))
    before = ms.runtime.memory_allocated()
    ms.runtime.reset_peak_memory_stats()
    step(q, k, v)
    assert ms.runtime.max_memory_allocated() - before < 4 * 1024 * 1024


def test_one_program_serves_all_lengths() -> None:
    f = ms.jit(lambda q, k, v: ms.grad(lambda *x: (plain(*x) ** 2).sum(), (0, 1, 2))(q, k, v))
    for s, t in ((300, 310), (400, 280), (FEW + 5, 290), (7, 3), (1, 40), (333, 517)):
        q, k, v = tensor(1, 2, s, D), tensor(1, 2, t, D), tensor(1, 2, t, D)
        for a, b in zip(f(q, k, v), ms.grad(lambda *x: (plain(*x) ** 2).sum(), (0, 1, 2))(q, k, v)):
            np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), atol=2e-5, rtol=1e-5)
