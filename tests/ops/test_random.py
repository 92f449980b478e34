"""Generators, the global seed, distributions by their moments, and dropout."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import mycel as ms
from mycel import Tensor, ops
from mycel.common import generator
from mycel.common.seed import get_seed, initializer_rng, set_seed

from .checks import close


@pytest.fixture(autouse=True)
def _seeded() -> None:
    set_seed(7)


DRAWS = {
    "rand": (lambda: ops.rand(20000), stats.uniform()),
    "randn": (lambda: ops.randn(20000), stats.norm()),
    "standard_normal": (lambda: ops.standard_normal((100, 200)), stats.norm()),
    "normal": (lambda: ops.normal((20000,), 2.0, 3.0), stats.norm(2, 3)),
    "uniform": (lambda: ops.uniform((20000,), Tensor(-1.0), Tensor(3.0)), stats.uniform(-1, 4)),
    "standard_laplace": (lambda: ops.standard_laplace((20000,)), stats.laplace()),
    "laplace": (lambda: ops.laplace((20000,), Tensor(1.0), Tensor(2.0)), stats.laplace(1, 2)),
    "exponential_": (lambda: ops.zeros(20000).exponential_(2.0), stats.expon(scale=0.5)),
    "uniform_": (lambda: ops.zeros(20000).uniform_(1, 3), stats.uniform(1, 2)),
    "normal_": (lambda: ops.zeros(20000).normal_(1, 3), stats.norm(1, 3)),
}

CHECKED = {f"Tensor.{n}" if n.endswith("_") else f"ops.{n}": "SciPy's distributions" for n in DRAWS} | {
    **dict.fromkeys(("ops.randint", "ops.bernoulli", "ops.multinomial", "ops.random_categorical"), "frequencies"),
    **dict.fromkeys(("ops.randint_like", "Tensor.random_", "ops.randperm", "ops.shuffle", "ops.rrelu"), "definition"),
    **dict.fromkeys(
        ("ops.dropout", "ops.dropout1d", "ops.dropout2d", "ops.dropout3d", "ops.gumbel_softmax"), "definition"
    ),
    **dict.fromkeys(("manual_seed", "initial_seed", "get_rng_state", "set_rng_state", "Generator"), "repeated draws"),
    **dict.fromkeys(("get_seed", "set_seed"), "repeated draws"),
}


@pytest.mark.parametrize("name", DRAWS)
def test_distributions(name: str) -> None:
    draw, distribution = DRAWS[name]
    first = draw().asnumpy().ravel()
    assert stats.kstest(first.astype(np.float64), distribution.cdf).pvalue > 1e-4
    assert not np.array_equal(first, draw().asnumpy().ravel())
    set_seed(7)
    np.testing.assert_array_equal(draw().asnumpy().ravel(), first)


def test_integers() -> None:
    x = ops.randint(-3, 4, (7000,)).asnumpy()
    assert x.dtype == np.int64
    counts = np.bincount(x + 3)
    assert counts.shape == (7,) and stats.chisquare(counts).pvalue > 1e-4
    y = ops.uniform((7000,), Tensor(2, ms.int32), Tensor(5, ms.int32), dtype=ms.int32)
    assert y.dtype is ms.int32 and set(np.unique(y.asnumpy())) == {2, 3, 4}
    assert ops.randint_like(Tensor([1, 2]), 5, 6).tolist() == [5, 5]
    assert set(np.unique(ops.zeros(1000, ms.int32).random_(1, 4).asnumpy())) == {1, 2, 3}
    with pytest.raises(ValueError, match="must hold a value"):
        ops.randint(3, 3, (2,))
    with pytest.raises(TypeError, match="rand: dtype must be floating, not int32"):
        ops.rand(2, dtype=ms.int32)


def test_coins_and_choices() -> None:
    x = ops.bernoulli(ops.zeros(10000), 0.3)
    assert x.dtype is ms.float32 and set(np.unique(x.asnumpy())) == {0.0, 1.0}
    assert abs(x.asnumpy().mean() - 0.3) < 0.02
    p = np.linspace(0, 1, 10000, dtype=np.float32)
    assert abs((ops.bernoulli(ops.zeros(10000), Tensor(p)).asnumpy() - p).mean()) < 0.02
    order = ops.randperm(50).asnumpy()
    assert order.dtype == np.int64 and sorted(order) == list(range(50)) and list(order) != list(range(50))
    assert sorted(ops.shuffle(Tensor(np.arange(50))).tolist()) == list(range(50))
    weights = np.array([[1.0, 0.0, 3.0], [0.0, 2.0, 0.0]], np.float32)
    drawn = ops.multinomial(Tensor(weights), 5000).asnumpy()
    assert drawn.dtype == np.int32 and abs((drawn[0] == 2).mean() - 0.75) < 0.03
    assert set(drawn[0]) == {0, 2} and set(drawn[1]) == {1}
    alone = ops.multinomial(Tensor([1.0, 5.0, 0.5, 2.0]), 4, False).asnumpy()
    assert sorted(alone) == [0, 1, 2, 3]
    logits = np.log(np.array([[0.2, 0.8]]))
    assert abs(ops.random_categorical(Tensor(logits), 5000).asnumpy().mean() - 0.8) < 0.03
    with pytest.raises(ValueError, match="5 samples without replacement"):
        ops.multinomial(Tensor([1.0, 1.0]), 5, False)


def test_dropout_keeps_the_mean_and_its_gradient_is_the_mask() -> None:
    x = Tensor(np.ones((100, 100)))
    out = ops.dropout(x, 0.25)
    values = out.asnumpy()
    assert set(np.unique(values)) == {0.0, 1 / 0.75} and abs((values == 0).mean() - 0.25) < 0.02
    assert ops.dropout(x, 0.25, training=False) is x
    assert ops.dropout(x, 0.0) is x and not ops.dropout(x, 1.0).asnumpy().any()
    value, slope = ms.value_and_grad(lambda t: (ops.dropout(t, 0.5) * t).sum())(Tensor(np.full(64, 3.0)))
    kept = slope.asnumpy() != 0
    np.testing.assert_allclose(slope.asnumpy()[kept], 2 * 2 * 3.0)
    assert 0 < kept.sum() < 64 and float(value) == 18.0 * kept.sum()
    with pytest.raises(ValueError, match=r"dropout: p must lie in \[0, 1\], not 1.5"):
        ops.dropout(x, 1.5)


@pytest.mark.parametrize(
    ("name", "shape"), [("dropout1d", (8, 6, 5)), ("dropout2d", (8, 6, 2, 3)), ("dropout3d", (8, 6, 1, 2, 3))]
)
def test_dropout_of_channels(name: str, shape: tuple) -> None:
    values = getattr(ops, name)(ops.ones(shape), 0.5).asnumpy().reshape(48, -1)
    assert (values == values[:, :1]).all() and set(np.unique(values)) == {0.0, 2.0}


def test_noisy_activations() -> None:
    x = ops.rrelu(Tensor(np.full(1000, -1.0)), 0.1, 0.3).asnumpy()
    assert -0.3 <= x.min() < -0.29 and -0.11 < x.max() <= -0.1
    hard = ops.gumbel_softmax(Tensor(np.log(np.array([[0.9, 0.1]] * 4000))), hard=True).asnumpy()
    np.testing.assert_allclose(hard.sum(1), 1)
    assert abs(hard[:, 0].mean() - 0.9) < 0.02
    slope = ms.grad(lambda t: (ops.gumbel_softmax(t, 0.5, True) * Tensor([1.0, 2.0])).sum())(
        Tensor([0.3, 0.1])
    ).asnumpy()
    np.testing.assert_allclose(slope.sum(), 0, atol=1e-6)
    assert slope[1] > 0


def test_operations_with_a_seed_of_their_own() -> None:
    first, second = ops.rand(4, seed=5).asnumpy(), ops.rand(4, seed=5).asnumpy()
    assert not np.array_equal(first, second)
    ops.rand(3)
    set_seed(7)
    np.testing.assert_array_equal(ops.rand(4, seed=5).asnumpy(), first)
    with pytest.raises(ValueError, match="seed must be at least 0, not -1"):
        ops.rand(4, seed=-1)


def test_generators() -> None:
    g, h = generator.Generator().manual_seed(3), generator.Generator().manual_seed(3)
    x = ops.zeros(5)
    first = x.uniform_(generator=g).asnumpy().copy()
    state = g.get_state()
    assert state.dtype is ms.uint8 and state.shape == (16,)
    second = x.uniform_(generator=g).asnumpy().copy()
    np.testing.assert_array_equal(ops.zeros(5).uniform_(generator=h).asnumpy(), first)
    h.set_state(state)
    assert h.initial_seed() == 3
    np.testing.assert_array_equal(ops.zeros(5).uniform_(generator=h).asnumpy(), second)
    assert g.seed() == g.initial_seed()
    with pytest.raises(ValueError, match="the state must be 16 bytes"):
        g.set_state(np.zeros(3, np.uint8))
    with pytest.raises(TypeError, match="the seed must be an int, not float"):
        g.manual_seed(1.5)


def test_the_default_generator() -> None:
    assert generator.manual_seed(11) is generator.default_generator and generator.initial_seed() == 11
    state = generator.get_rng_state()
    first = ops.rand(3).asnumpy()
    generator.set_rng_state(state)
    np.testing.assert_array_equal(ops.rand(3).asnumpy(), first)
    generator.manual_seed(11)
    np.testing.assert_array_equal(ops.rand(3).asnumpy(), first)


def test_the_global_seed_reaches_numpy_and_initializers() -> None:
    set_seed(5)
    assert get_seed() == 5
    first = np.random.rand(2), initializer_rng().random(2), initializer_rng().random(2)
    assert not np.array_equal(first[1], first[2])
    set_seed(5)
    for a, b in zip(first, (np.random.rand(2), initializer_rng().random(2), initializer_rng().random(2))):
        np.testing.assert_array_equal(a, b)
    for wrong, error in ((-1, ValueError), (2**32, ValueError), (1.5, TypeError), (None, TypeError), (True, TypeError)):
        with pytest.raises(error, match="set_seed: the seed must"):
            set_seed(wrong)


def test_one_draw_does_not_depend_on_its_shape() -> None:
    generator.manual_seed(3)
    flat = ops.randn(12).asnumpy()
    generator.manual_seed(3)
    close(ops.randn(3, 4), flat.reshape(3, 4))
