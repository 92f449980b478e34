"""Routing to experts, sums with a normalisation, rotary positions, casts and moves against float64
NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops
from tests.meaning import A, Array, Checks, I

RANDOM = np.random.default_rng(2)
checks = Checks("NumPy")


def turned(x: Any, cos: Any, sin: Any, mode: int = 0) -> Any:
    half = x.shape[-1] // 2
    first, second = (slice(None, half), slice(half, None)) if mode == 0 else (slice(0, None, 2), slice(1, None, 2))
    quarter = np.empty_like(x)
    quarter[..., first], quarter[..., second] = -x[..., second], x[..., first]
    return x * cos + quarter * sin


for mode in (0, 1):
    checks.add(
        "ops.rotary_position_embedding",
        lambda x, c, s, m: turned(x, c, s, m),
        (A(2, 3, 5, 8), A(1, 1, 5, 8), A(1, 1, 5, 8), mode),
        (A(1, 1, 1, 2), A(1, 1, 1, 2), A(1, 1, 1, 2), mode),
        (A(2, 0, 3, 4), A(1, 1, 3, 4), A(1, 1, 3, 4), mode),
    )


def layer(a: Any, b: Any, g: Any, beta: Any) -> Any:
    x = a + b
    mean, spread = x.mean(-1, keepdims=True), 1 / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return (x - mean) * spread * g + beta, mean, spread, x


def rms(a: Any, b: Any, g: Any) -> Any:
    x = a + b
    spread = 1 / np.sqrt((x * x).mean(tuple(range(x.ndim - g.ndim, x.ndim)), keepdims=True) + 1e-6)
    return x * spread * g, spread, x


checks.add(
    "ops.add_layer_norm",
    layer,
    (A(3, 5), A(3, 5), A(5), A(5)),
    (A(2, 1, 7), A(2, 1, 7), A(7), A(7)),
    (A(0, 4), A(0, 4), A(4), A(4)),
)
checks.add(
    "ops.add_rms_norm", rms, (A(3, 5), A(3, 5), A(5)), (A(2, 3, 4), A(2, 3, 4), A(3, 4)), (A(0, 4), A(0, 4), A(4))
)


def permuted(x: Any, index: Any, count: Any = None) -> Any:
    order = np.argsort(index.ravel(), kind="stable")
    return x[order // (index.size // max(len(index), 1))][: count or None], np.argsort(order, kind="stable").astype(
        np.int32
    )


checks.add("ops.moe_token_permute", permuted, (A(6, 3), I(6)), (A(5, 4), I(5, 3, dtype="int64")), (A(1, 2), I(1, 1)))
checks.add("ops.moe_token_permute", permuted, (A(5, 4), I(5, 3), 7), (A(5, 4), I(5, 3), 0), (A(5, 4), I(5, 3), 99))


def unpermuted(x: Any, where: Any, probs: Any = None) -> Any:
    found = np.concatenate((x, np.zeros((len(where), x.shape[1]))))[where]
    return found if probs is None else (found.reshape(*probs.shape, -1) * probs[..., None]).sum(1)


WHERE = Array((6,), dtype="int32", values=np.array([3, 0, 5, 1, 4, 2], np.int32))
checks.add(
    "ops.moe_token_unpermute", unpermuted, (A(6, 3), WHERE), (A(6, 1), WHERE, A(3, 2)), (A(4, 3), WHERE, A(2, 3))
)
checks.add(
    "ops.mixed_precision_cast ",
    lambda kind, x: x.astype(np.float64),
    (ms.float64, A(2, 3)),
    (ms.float64, A(0)),
    (ms.float64, A(1, 1)),
    grad=(),
)
checks.add("ops.move_to ops.MoveTo", lambda x: x, (A(2, 3),), (A(0, 2),), (A(1),))
test_values, test_gradients = checks.tests()
CHECKED = {
    **checks.checked,
    "ops.moe_init_routing_v2": "NumPy",
    "ops.recompute_block": "NumPy",
    "ops.ApplyRotaryPosEmb": "NumPy",
}


def routed(x: Any, index: Any, active: int, capacity: int, experts: int, mode: int) -> tuple[Any, Any, Any]:
    """By loops: the tokens, where each place went, and the number of each expert's."""
    places = index.ravel()
    counts = np.array([(places == e).sum() for e in range(experts)])
    if mode == 0:
        order = sorted(range(places.size), key=lambda i: (places[i], i))
        where = np.empty(places.size, int)
        where[order] = range(places.size)
        return x[np.array(order, int) // index.shape[1]][: active or None], where, counts
    out, where, used = np.zeros((experts, capacity, x.shape[1])), [], [0] * experts
    for i, e in enumerate(places):
        room = used[e] < capacity
        where.append(e * capacity + used[e] if room else -1)
        if room:
            out[e, used[e]] = x[i // index.shape[1]]
        used[e] += room
    return out, np.array(where), counts


@pytest.mark.parametrize("sizes", [(3, 3, 3, 2), (7, 2, 5, 4), (1, 1, 4, 1)])
def test_routing(sizes: tuple[int, int, int, int]) -> None:
    rows, choices, experts, capacity = sizes
    x, index = RANDOM.normal(size=(rows, 4)), RANDOM.integers(0, experts, size=(rows, choices)).astype(np.int32)
    for mode in (0, 1):
        for active in (0, 2):
            for flag in (0, 1, 2):
                want, where, counts = routed(x, index, active, capacity, experts, mode)
                options = (active, capacity, experts, mode, flag, flag > 0)
                for call in (
                    ops.moe_init_routing_v2,
                    ms.jit(lambda a, b, o=options: ops.moe_init_routing_v2(a, b, *o)),
                ):
                    got = call(Tensor(x), Tensor(index), *(options if call is ops.moe_init_routing_v2 else ()))
                    np.testing.assert_array_equal(got[0].asnumpy(), want)
                    np.testing.assert_array_equal(got[1].asnumpy(), where)
                    total = (0 * counts, np.cumsum(counts), counts)[flag] if mode == 0 else 0 * counts
                    np.testing.assert_array_equal(got[2].asnumpy(), total)
                    np.testing.assert_array_equal(got[3].asnumpy(), counts if mode and flag else 0 * counts)
                    assert [t.dtype for t in got[1:]] == [ms.int32] * 3
        weight = RANDOM.normal(size=want.shape)
        slope = ms.grad(
            lambda a, m=mode: (
                ops.moe_init_routing_v2(a, Tensor(index), 0, capacity, experts, m, 0, False)[0] ** 2
            ).sum()
        )(Tensor(x))
        ends = [(routed(x + s * 1e-6, index, 0, capacity, experts, mode)[0] ** 2).sum() for s in (1, -1)]
        filled = (
            routed(x * 0, index, 0, capacity, experts, mode)[0]
            != routed(x * 0 + 1, index, 0, capacity, experts, mode)[0]
        ).any()
        assert filled and weight.shape == want.shape
        assert abs(slope.asnumpy().sum() - (ends[0] - ends[1]) / 2e-6) < 1e-4


def test_the_example_of_the_documentation() -> None:
    """MindSpore's docstring of moe_init_routing_v2 shows these numbers."""
    x = Tensor([[0.1, 0.2, 0.3], [0.2, 0.7, 0.8], [0.3, 0.3, 0.5]], ms.float32)
    index = Tensor([[0, 1, 1], [2, 1, 1], [0, 0, 0]], ms.int32)
    out = ops.moe_init_routing_v2(x, index, 3, 2, 3, 1, 0, False)
    assert out[1].tolist() == [0, 2, 3, 4, -1, -1, 1, -1, -1]
    np.testing.assert_array_equal(out[0].asnumpy()[2], [x.asnumpy()[1], [0, 0, 0]])


def test_permuting_and_back_is_a_sum_over_choices() -> None:
    x, index = RANDOM.normal(size=(5, 4)), RANDOM.integers(0, 3, size=(5, 2))
    out, where = ops.moe_token_permute(Tensor(x), Tensor(index))
    back = ops.moe_token_unpermute(out, where, Tensor(np.full((5, 2), 0.5)))
    np.testing.assert_allclose(back.asnumpy(), x)


def test_angles_of_tokens() -> None:
    q, k = RANDOM.normal(size=(6, 12)), RANDOM.normal(size=(6, 4))
    cos, sin = RANDOM.normal(size=(2, 9, 4))
    place = RANDOM.integers(0, 9, 6)
    for form in range(4):
        rows = (cos[place], sin[place]) if form < 2 else (cos[:6], sin[:6])
        tables = (cos, sin) if form < 2 else rows
        got = ops.ApplyRotaryPosEmb(form)(Tensor(q), Tensor(k), Tensor(tables[0]), Tensor(tables[1]), Tensor(place))
        for x, out in zip((q, k), got):
            want = turned(x.reshape(6, -1, 4), *(r[:, None] for r in rows), form % 2)
            np.testing.assert_allclose(out.asnumpy(), want.reshape(x.shape), rtol=1e-12)
    batch = ops.ApplyRotaryPosEmb()(
        Tensor(q.reshape(2, 3, 12)), Tensor(k.reshape(2, 3, 4)), Tensor(cos), Tensor(sin), Tensor(place)
    )
    np.testing.assert_allclose(
        batch[0].asnumpy().reshape(6, 12),
        ops.ApplyRotaryPosEmb()(Tensor(q), Tensor(k), Tensor(cos), Tensor(sin), Tensor(place))[0].asnumpy(),
    )


def test_computing_a_block_again_changes_no_number() -> None:
    for shape in ((3,), (2, 2), (0,)):
        x = RANDOM.normal(size=shape)
        value, slope = ms.value_and_grad(lambda a: ops.recompute_block(lambda b: ops.sin(b) * b, False)(a).sum())(
            Tensor(x)
        )
        np.testing.assert_allclose(float(value), (np.sin(x) * x).sum(), atol=1e-12)
        np.testing.assert_allclose(slope.asnumpy(), np.cos(x) * x + np.sin(x), atol=1e-12)


def test_casts_reach_into_containers_and_leave_other_types() -> None:
    found = ops.mixed_precision_cast(ms.float16, {"a": (Tensor([1.5]), [Tensor([2])]), "b": "c"})
    assert found["a"][0].dtype is ms.float16 and found["a"][1][0].dtype is ms.int64 and found["b"] == "c"
    assert found["a"][0].tolist() == [1.5]


def test_sums_of_half_types_are_normalised_precisely() -> None:
    x = RANDOM.normal(size=(4, 64)) * 100
    for kind in (ms.float16, ms.bfloat16):
        half = Tensor(x).astype(kind)
        exact = half.astype(ms.float64).asnumpy()
        one, zero = ops.ones(64).astype(kind), ops.zeros(64).astype(kind)
        y, spread, total = ops.add_rms_norm(half, half, one)
        assert (y.dtype, spread.dtype, total.dtype) == (kind, ms.float32, kind)
        np.testing.assert_allclose(spread.asnumpy(), rms(exact, exact, np.ones(64))[1], rtol=1e-6)
        np.testing.assert_allclose(y.astype(ms.float64).asnumpy(), rms(exact, exact, np.ones(64))[0], rtol=1e-2)
        np.testing.assert_allclose(
            ops.add_layer_norm(half, half, one, zero)[0].astype(ms.float64).asnumpy(),
            layer(exact, exact, 1.0, 0.0)[0],
            atol=2e-2,
        )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: ops.move_to(x, "Ascend"), ValueError, "only be moved to 'CPU'"),
        (lambda x: ops.moe_token_permute(x, Tensor([0.5, 1.0])), TypeError, "whole numbers"),
        (lambda x: ops.moe_token_permute(x, Tensor([0, 1]), padded_mode=True), ValueError, "padded_mode must be False"),
        (
            lambda x: ops.moe_init_routing_v2(x, Tensor([[0], [1]]), 0, 3, 2, 1, 0, False),
            ValueError,
            r"must be in \(0, 2\]",
        ),
        (lambda x: ops.rotary_position_embedding(x, x, x), ValueError, "four dimensions"),
        (lambda x: ops.add_rms_norm(x, x, Tensor([1.0]), 2.0), ValueError, r"float in \(0, 1\]"),
        (lambda x: ops.add_layer_norm(x, x[:1], x[0], x[0]), ValueError, "same shape"),
        (lambda x: ops.recompute_block(), TypeError, "takes a block"),
    ],
)
def test_arguments_that_do_not_fit(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(Tensor(np.ones((2, 3))))
