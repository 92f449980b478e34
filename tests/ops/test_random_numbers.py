"""Gamma and Poisson numbers, candidate samplers and random choices, against SciPy's distributions
and by definition.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import mycel as ms
from mycel import Tensor, ops
from mycel.common.seed import set_seed

CHECKED = (
    {f"ops.{n}": "SciPy" for n in "gamma poisson random_gamma random_poisson".split()}
    | {f"Tensor.{n}": "SciPy" for n in "cauchy log_normal random_categorical".split()}
    | {
        f"ops.{n}": "definition"
        for n in "log_uniform_candidate_sampler uniform_candidate_sampler multinomial_with_replacement".split()
    }
)
N = 20000


@pytest.fixture(autouse=True)
def _seeded() -> None:
    set_seed(11)


def fits(counts: Any, chances: Any) -> bool:
    """Whether counts agree with chances, where at least five are expected."""
    total = counts.sum()
    keep = chances * total > 5
    pooled = np.append(counts[keep], counts[~keep].sum()), np.append(chances[keep], 1 - chances[keep].sum()) * total
    few = pooled[1][-1] < 5
    observed, wanted = (pooled[0][:-1], pooled[1][:-1]) if few else pooled
    return bool(stats.chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue > 1e-4)


@pytest.mark.parametrize("dtype", [ms.float32, ms.float64])
@pytest.mark.parametrize("alpha", [0.2, 0.8, 1.0, 2.5, 60.0])
def test_gamma(alpha: float, dtype: Any) -> None:
    draw = lambda: ops.gamma((N,), Tensor(alpha, dtype), Tensor(2.0, dtype))
    x = draw()
    assert x.dtype is dtype and x.shape == (N,)
    array = x.asnumpy().astype(np.float64)
    assert stats.kstest(array, stats.gamma(alpha, scale=0.5).cdf).pvalue > 1e-4
    assert not np.array_equal(draw().asnumpy(), x.asnumpy())
    set_seed(11)
    np.testing.assert_array_equal(draw().asnumpy(), x.asnumpy())
    set_seed(11)
    np.testing.assert_array_equal(ms.jit(draw)().asnumpy(), x.asnumpy())


@pytest.mark.parametrize("mean", [0.0, 0.4, 3.0, 9.9, 10.0, 40.0, 3000.0])
def test_poisson(mean: float) -> None:
    draw = lambda: ops.poisson((N,), Tensor(mean))
    x = draw()
    assert x.dtype is ms.float32
    array = x.asnumpy().astype(int)
    if mean == 0.0:
        assert not array.any()
        return
    of = stats.poisson(mean)
    edges = np.unique(of.ppf(np.linspace(0.001, 0.999, 40)).astype(int))
    cdf = np.concatenate(([0.0], of.cdf(edges), [1.0]))
    assert fits(np.histogram(array, np.concatenate(([-np.inf], edges + 0.5, [np.inf])))[0], np.diff(cdf))
    set_seed(11)
    np.testing.assert_array_equal(ms.jit(draw)().asnumpy(), x.asnumpy())


def test_shapes_and_types() -> None:
    assert ops.gamma((3, 1, 2), ops.ones((2, 2)), Tensor([1.0])).shape == (3, 2, 2)
    assert ops.random_gamma(Tensor([7, 5], ms.int32), Tensor([0.5, 1.5])).shape == (7, 5, 2)
    assert ops.poisson((4, 1), Tensor([5.0, 10.0])).shape == (4, 2)
    x = ops.random_poisson((2, 2), Tensor([[5.0, 10.0], [5.0, 1.0]]), dtype=ms.int64)
    assert x.shape == (2, 2, 2, 2) and x.dtype is ms.int64
    assert ops.gamma((0,), Tensor(1.0), Tensor(1.0)).shape == (0,) and ops.poisson((), Tensor(1.0)).shape == ()
    both = ops.random_gamma((N,), Tensor([0.5, 4.0])).asnumpy()
    assert stats.kstest(both[:, 0].astype(float), stats.gamma(0.5).cdf).pvalue > 1e-4
    assert stats.kstest(both[:, 1].astype(float), stats.gamma(4.0).cdf).pvalue > 1e-4
    many = ops.random_poisson((N,), Tensor([2.0, 30.0])).asnumpy()
    np.testing.assert_allclose(many.mean(0), [2.0, 30.0], rtol=0.03)
    np.testing.assert_allclose(many.var(0), [2.0, 30.0], rtol=0.06)


def test_the_derivative_by_the_rate() -> None:
    f = lambda rate: ops.sum(ops.gamma((5,), Tensor(2.0), rate))
    value = f(Tensor(4.0)).item()
    set_seed(11)
    assert ms.grad(f)(Tensor(4.0)).item() == pytest.approx(-value / 4.0, rel=1e-5)


def test_methods_of_tensors() -> None:
    x = ops.zeros(N)
    assert stats.kstest(x.cauchy(1.0, 2.0).asnumpy().astype(float), stats.cauchy(1, 2).cdf).pvalue > 1e-4
    assert (
        stats.kstest(x.log_normal(0.5, 0.7).asnumpy().astype(float), stats.lognorm(0.7, scale=np.exp(0.5)).cdf).pvalue
        > 1e-4
    )
    logits = np.log([[0.1, 0.2, 0.7]])
    drawn = Tensor(logits, ms.float32).random_categorical(N)
    assert drawn.dtype is ms.int64 and fits(np.bincount(drawn.asnumpy()[0]), np.array([0.1, 0.2, 0.7]))
    with pytest.raises(ValueError, match="cauchy: sigma must be positive, not 0"):
        x.cauchy(0.0, 0)
    with pytest.raises(ValueError, match="log_normal: std must be positive, not -1"):
        x.log_normal(0.0, -1)


TRUE = Tensor([[1, 7], [0, 4], [3, 3]])
RANKED = np.log((np.arange(100) + 2) / (np.arange(100) + 1)) / np.log(101)


def test_log_uniform_candidates() -> None:
    # MindSpore 2.10 expects the same of the true classes.
    sampled, of_true, of_sampled = ops.log_uniform_candidate_sampler(TRUE, 2, 5, False, 100)
    np.testing.assert_allclose(
        of_true.asnumpy(), [[0.439279, 0.127606], [0.750952, 0.197526], [0.241753, 0.241753]], rtol=1e-5
    )
    np.testing.assert_allclose(of_sampled.asnumpy(), 5 * RANKED[sampled.asnumpy()], rtol=1e-5)
    assert fits(
        np.bincount(ops.log_uniform_candidate_sampler(TRUE, 2, N, False, 100)[0].asnumpy(), minlength=100), RANKED
    )
    for call in (ops.log_uniform_candidate_sampler, ms.jit(ops.log_uniform_candidate_sampler)):
        sampled, of_true, of_sampled = (x.asnumpy() for x in call(TRUE, 2, 20, True, 100))
        assert len(set(sampled)) == 20 and sampled.min() >= 0 and sampled.max() < 100 and sampled.dtype == np.int64
        tries = np.log1p(-of_true.astype(np.float64)) / np.log1p(-RANKED[TRUE.asnumpy()])
        np.testing.assert_allclose(tries, np.round(tries[0, 0]), rtol=1e-3)
        assert tries[0, 0] > 19.5
        np.testing.assert_allclose(of_sampled, 1 - (1 - RANKED[sampled]) ** np.round(tries[0, 0]), rtol=1e-4)


def test_uniform_candidates() -> None:
    sampled, of_true, of_sampled = ops.uniform_candidate_sampler(TRUE, 2, N, False, 8)
    assert fits(np.bincount(sampled.asnumpy(), minlength=8), np.full(8, 1 / 8))
    assert np.all(of_true.asnumpy() == N / 8) and of_true.shape == (3, 2) and np.all(of_sampled.asnumpy() == N / 8)
    assert sorted(ops.uniform_candidate_sampler(TRUE, 2, 8, True, 8, 5)[0].tolist()) == list(range(8))
    narrow = Tensor([[1], [3]], ms.int32)
    sampled = ops.uniform_candidate_sampler(narrow, 1, 3, True, 4, 1, True)[0]
    assert sampled.dtype is ms.int32 and sorted(sampled.tolist()) == [-1, 0, 2]
    with pytest.raises(ValueError, match="5 different samples of 4 classes cannot be drawn"):
        ops.uniform_candidate_sampler(narrow, 1, 5, True, 4)
    with pytest.raises(ValueError, match=r"the true classes must be \(batch, 2\)"):
        ops.uniform_candidate_sampler(narrow, 2, 3, True, 4)


def test_choices() -> None:
    weights = Tensor([0.0, 9.0, 3.0, 0.0])
    drawn = ops.multinomial_with_replacement(weights, -1, 0, N, True)
    assert drawn.dtype is ms.int64 and fits(np.bincount(drawn.asnumpy(), minlength=4), np.array([0, 0.75, 0.25, 0]))
    assert sorted(ops.multinomial_with_replacement(weights, 2, 5, 2, False).tolist()) == [1, 2]
