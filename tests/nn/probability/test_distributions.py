"""Distributions against SciPy's by values, derivatives and the statistics of samples.

Divergences as MindSpore 2.10 gives them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import mycel as ms
from mycel import Tensor
from mycel.nn.probability import bijector, distribution

P1, P2 = np.array([0.3, 0.6]), np.array([1.0, 2.0])
LOC, SCALE = {"loc": [0.0, 1.0], "scale": [1.0, 2.0]}, {"mean": [0.0, 1.0], "sd": [1.0, 2.0]}
REAL = np.array([-1.7, 0.3, 1.4, 5.0])[:, None]
POSITIVE = np.array([-0.5, 0.05, 0.7, 1.6, 9.0])[:, None]
WHOLE = np.array([-1.0, 0.0, 1.0, 3.0, 12.0])[:, None]
UNIT = np.array([-0.2, 0.05, 0.5, 0.93])[:, None]
KNOWN = "prob log_prob cdf log_cdf survival_function log_survival".split()
# Name: parameters, the same of SciPy, values.
TABLE: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "Bernoulli": ({"probs": P1}, stats.bernoulli(P1), WHOLE),
    "Beta": ({"concentration1": [2.0, 3.0], "concentration0": [1.5, 4.0]}, stats.beta([2, 3], [1.5, 4]), UNIT),
    "Cauchy": (LOC, stats.cauchy([0, 1], [1, 2]), REAL),
    "Exponential": ({"rate": P2}, stats.expon(scale=1 / P2), POSITIVE),
    "Gamma": ({"concentration": [2.0, 3.5], "rate": P2}, stats.gamma([2, 3.5], scale=1 / P2), POSITIVE),
    "Geometric": ({"probs": P1}, stats.geom(P1, loc=-1), WHOLE),
    "Gumbel": (LOC, stats.gumbel_r([0, 1], [1, 2]), REAL),
    "HalfNormal": (SCALE, stats.halfnorm([0, 1], [1, 2]), REAL),
    "Laplace": (SCALE, stats.laplace([0, 1], [1, 2]), REAL),
    "LogNormal": (LOC, stats.lognorm([1, 2], scale=np.exp([0, 1])), POSITIVE),
    "Logistic": (LOC, stats.logistic([0, 1], [1, 2]), REAL),
    "Normal": (SCALE, stats.norm([0, 1], [1, 2]), REAL),
    "Poisson": ({"rate": P2 * 1.5}, stats.poisson(P2 * 1.5), WHOLE),
    "StudentT": ({"df": [3.0, 5.0], **SCALE}, stats.t([3, 5], [0, 1], [1, 2]), REAL),
    "Uniform": ({"low": [0.0, 1.0], "high": [1.0, 3.0]}, stats.uniform([0, 1], [1, 2]), REAL),
}
DISCRETE = ("Bernoulli", "Geometric", "Poisson")
CHECKED = {
    f"nn.probability.distribution.{n}": "SciPy"
    for n in (*TABLE, "Categorical", "TransformedDistribution", "Distribution")
}
# MindSpore 2.10: divergence and cross entropy to another distribution, for the parameters of the
# table unless named.
DIVERGENCES: dict[str, Any] = {
    "Bernoulli": ((0.5,), [0.082283, 0.020136], [0.693147, 0.693147]),
    "Beta": ((1.2, 2.5), [0.615362, 0.230583], [0.507311, -0.113762]),
    "Cauchy": ((0.5, 1.5), [0.080043, 0.040822], [2.611067, 3.264993]),
    "Exponential": ((1.5,), [0.094535, 0.037682], [1.094535, 0.344535]),
    "Geometric": ((0.5,), [0.274276, 0.033559], [2.310491, 1.155245]),
    "Gumbel": ((0.5, 1.5), [0.139609, 0.091187], [1.716825, 2.36155]),
    "LogNormal": ((0.5, 1.5), [0.183243, 0.156762], [1.602181, 3.268848]),
    "Normal": ((0.5, 1.5), [0.183243, 0.156762], [1.602181, 2.268848]),
    "Uniform": ((0.0, 4.0), [1.386294, 0.693147], [1.386294, 1.386294]),
}


def make(name: str, dtype: Any = ms.float32, **more: Any) -> Any:
    kind = {} if name in ("Bernoulli", "Geometric") else {"dtype": dtype}
    return getattr(distribution, name)(**TABLE[name][0], **kind, **more)


def close(got: Any, want: Any, near: float = 2e-5) -> None:
    np.testing.assert_allclose(got.asnumpy(), want, rtol=near, atol=near)


def expected(method: str, of: Any, discrete: bool, x: Any) -> Any:
    names = {
        "prob": "pmf" if discrete else "pdf",
        "log_prob": "logpmf" if discrete else "logpdf",
        "cdf": "cdf",
        "log_cdf": "logcdf",
        "survival_function": "sf",
        "log_survival": "logsf",
    }
    with np.errstate(divide="ignore"):
        return getattr(of, names[method])(x)


@pytest.mark.parametrize("method", KNOWN)
@pytest.mark.parametrize("name", TABLE)
def test_values(name: str, method: str) -> None:
    made, (_, of, x) = make(name), TABLE[name]
    if name in ("Beta", "StudentT") and method not in ("prob", "log_prob"):
        with pytest.raises(NotImplementedError, match="is not implemented for the"):
            getattr(made, method)(Tensor(x, ms.float32))
        return
    want = expected(method, of, name in DISCRETE, x)
    value = Tensor(x, ms.float32)
    close(getattr(made, method)(value), want)
    close(made(method, value), want)
    if method in ("log_prob", "cdf"):
        close(ms.jit(lambda v: made(method, v))(value), want)
    if name not in DISCRETE:
        close(getattr(make(name, ms.float64), method)(Tensor(x)), want, 1e-9)
    given = [Tensor(np.asarray(v), ms.float32) for v in TABLE[name][0].values()]
    if name != "Gumbel":
        close(getattr(getattr(distribution, name)(), method)(value, *given), want)
        close(getattr(getattr(distribution, name)(), method)(value, **dict(zip(TABLE[name][0], given))), want)


@pytest.mark.parametrize("name", TABLE)
def test_moments(name: str) -> None:
    made, of = make(name), TABLE[name][1]
    if name == "Cauchy":
        for method in ("mean", "sd", "var"):
            with pytest.raises(ValueError, match=f"{method} is undefined"):
                getattr(made, method)()
    else:
        close(made.mean(), of.mean())
        close(made.sd(), of.std())
        close(made.var(), of.var())
        close(ms.jit(lambda: made("var"))(), of.var())
    if name == "Poisson":
        with pytest.raises(
            NotImplementedError, match="entropy is not implemented for the Poisson distribution; defined are"
        ):
            made.entropy()
    else:
        close(made.entropy(), of.entropy())
    if name == "Uniform":
        with pytest.raises(NotImplementedError, match="mode is not implemented"):
            made.mode()
    else:
        place = made.mode().asnumpy().astype(np.float64)
        near = [place - 1, place + 1] if name in DISCRETE else [place - 1e-3, place + 1e-3]
        density = of.pmf if name in DISCRETE else of.pdf
        assert all(np.all(density(place) >= density(n)) for n in near)


@pytest.mark.parametrize("name", TABLE)
def test_samples(name: str) -> None:
    made, of = make(name, seed=5), TABLE[name][1]
    drawn = made.sample((4000,))
    assert drawn.shape == (4000, 2) and drawn.dtype is made.dtype
    array = drawn.asnumpy().astype(np.float64)
    for k in range(2):
        cdf = lambda v, k=k: of.cdf(np.asarray(v)[..., None])[..., k]
        if name in DISCRETE:
            top = int(array[:, k].max())
            counts = np.bincount(array[:, k].astype(int), minlength=top + 1)
            chances = np.diff(np.concatenate(([0.0], cdf(np.arange(top)), [1.0])))
            # The numbers from where fewer than ten are expected are counted together.
            last = int(np.argmax(1 - np.cumsum(chances) < 10 / 4000))
            pooled = [np.append(v[:last], v[last:].sum()) for v in (counts, chances * 4000)]
            assert stats.chisquare(*pooled).pvalue > 1e-4
        else:
            assert stats.kstest(array[:, k], cdf).pvalue > 1e-4
    again = make(name, seed=5)
    np.testing.assert_array_equal(again.sample((4000,)).asnumpy(), drawn.asnumpy())
    assert not np.array_equal(again.sample((4000,)).asnumpy(), drawn.asnumpy())
    assert made.sample().shape == (2,) and made("sample", (3, 1)).shape == (3, 1, 2)
    assert ms.jit(lambda: made.sample((3,)))().shape == (3, 2)


@pytest.mark.parametrize("name", DIVERGENCES)
def test_divergences(name: str) -> None:
    other, divergence, cross = DIVERGENCES[name]
    made, others = make(name), [Tensor(v, ms.float32) for v in DIVERGENCES[name][0]]
    close(made.kl_loss(name, *others), divergence)
    close(made.cross_entropy(name, *others), cross)
    close(made("kl_loss", name, *others), divergence)
    named = {f"{n}_b": t for n, t in zip(TABLE[name][0], others)}
    close(made.kl_loss(name, **named), divergence)
    with pytest.raises(ValueError, match="the other distribution must be"):
        made.kl_loss("Other", *others)


def test_divergences_by_sums() -> None:
    x = np.linspace(-60, 60, 400001)[:, None]
    p, q = stats.laplace([0, 1], [1, 2]), stats.laplace(0.5, 1.5)
    want = np.sum(p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), 0) * 3e-4
    close(make("Laplace").kl_loss("Laplace", Tensor(0.5), Tensor(1.5)), want, 1e-4)
    k = np.arange(60)[:, None]
    rates = P2 * 1.5
    want = np.sum(stats.poisson(rates).pmf(k) * (stats.poisson(rates).logpmf(k) - stats.poisson(2.0).logpmf(k)), 0)
    close(make("Poisson").kl_loss("Poisson", Tensor(2.0)), want)
    t = np.linspace(1e-6, 60, 400001)[:, None]
    g, h = stats.gamma([2, 3.5], scale=1 / P2), stats.gamma(1.5, scale=0.5)
    want = np.sum(g.pdf(t) * (g.logpdf(t) - h.logpdf(t)), 0) * (t[1] - t[0])
    close(make("Gamma").kl_loss("Gamma", Tensor(1.5), Tensor(2.0)), want, 1e-4)


def test_categories() -> None:
    p = np.array([[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]])
    made = distribution.Categorical(p, seed=3)
    value = Tensor([0.0, 2.0])
    close(made.prob(value), [0.2, 0.0])
    close(made.cdf(value), [0.2, 1.0])
    close(made.survival_function(value), [0.8, 0.0])
    close(distribution.Categorical().log_prob(Tensor([0.0, 1.0]), Tensor([0.25, 0.75])), np.log([0.25, 0.75]))
    close(made.mean(), [[1.3], [0.4]])
    close(made.var(), [[0.61], [0.24]])
    close(made.sd(), np.sqrt([[0.61], [0.24]]))
    close(made.entropy(), stats.entropy(p, axis=-1))
    other = np.array([0.5, 0.25, 0.25])
    close(made.kl_loss("Categorical", Tensor(other, ms.float32)), [0.218012, stats.entropy(p[1], other)])
    close(made.cross_entropy("Categorical", Tensor(other, ms.float32)), -(p * np.log(other)).sum(-1))
    assert made.mode().tolist() == [[2], [0]] and made.mode().dtype is ms.int32
    drawn = made.sample((5000,)).asnumpy()
    assert drawn.shape == (5000, 2) and drawn.dtype == np.int32
    assert stats.chisquare(np.bincount(drawn[:, 0]), p[0] * 5000).pvalue > 1e-4
    assert stats.chisquare(np.bincount(drawn[:, 1]), p[1][:2] * 5000).pvalue > 1e-4
    with pytest.raises(ValueError, match="must sum to 1"):
        distribution.Categorical([0.2, 0.2])


def test_transformed() -> None:
    normal = distribution.Normal([0.5, -1.0], [1.0, 2.0], seed=2)
    x = np.array([[0.4], [2.5]])
    made = bijector.Exp()(normal)
    assert isinstance(made, distribution.TransformedDistribution)
    of = stats.lognorm([1, 2], scale=np.exp([0.5, -1.0]))
    for method in KNOWN:
        close(getattr(made, method)(Tensor(x, ms.float32)), expected(method, of, False, x))
    assert stats.kstest(made.sample((4000,)).asnumpy()[:, 0], lambda v: of.cdf(v[:, None])[:, 0]).pvalue > 1e-4
    with pytest.raises(ValueError, match="known only where the bijector's derivative is constant"):
        made.mean()
    turned = distribution.TransformedDistribution(bijector.ScalarAffine(-2.0, 1.0), normal)
    of = stats.norm([0.0, 3.0], [2.0, 4.0])
    for method in KNOWN:
        close(getattr(turned, method)(Tensor(x, ms.float32)), expected(method, of, False, x))
    close(turned.mean(), [0.0, 3.0])
    close(turned.entropy(), of.entropy())


def test_derivatives() -> None:
    x = Tensor([0.3, -1.2], ms.float64)
    by_mean, by_sd = ms.grad(lambda m, s: ms.ops.sum(distribution.Normal(dtype=ms.float64).log_prob(x, m, s)), (0, 1))(
        Tensor(0.5, ms.float64), Tensor(2.0, ms.float64)
    )
    z = (x.asnumpy() - 0.5) / 2
    np.testing.assert_allclose([by_mean.item(), by_sd.item()], [(z / 2).sum(), ((z * z - 1) / 2).sum()])
    normal = distribution.Normal(0.0, 1.0, seed=1)
    assert ms.grad(lambda m: ms.ops.sum(normal.sample((5,), m, Tensor(2.0))))(Tensor(0.5)).item() == 5.0


def test_a_distribution_of_the_user() -> None:
    class Dice(distribution.Distribution):
        def __init__(self) -> None:
            super().__init__(None, ms.int32, "Dice", {"sides": 6})

        def _prob(self, value: Tensor) -> Tensor:
            return ms.ops.where((value >= 1) & (value <= 6), 1 / 6, 0.0)

    close(Dice().log_prob(Tensor([2.0])), [np.log(1 / 6)])
    close(Dice()("prob", Tensor([2.0, 7.0])), [1 / 6, 0.0])
    with pytest.raises(NotImplementedError, match="mean is not implemented for the Dice distribution"):
        Dice().mean()


def test_what_is_wrong_is_told() -> None:
    with pytest.raises(ValueError, match="Standard deviation must be greater than 0"):
        distribution.Normal(0.0, -1.0)
    with pytest.raises(ValueError, match="Probabilities must be greater than 0 and less than 1, not 1.5"):
        distribution.Bernoulli(1.5)
    with pytest.raises(ValueError, match="low must be less than high"):
        distribution.Uniform(2.0, 1.0)
    with pytest.raises(TypeError, match="the parameter mean is needed"):
        distribution.Normal().prob(Tensor([1.0]))
    with pytest.raises(ValueError, match="there is no method 'nothing'"):
        distribution.Normal(0.0, 1.0)("nothing")
    with pytest.raises(ValueError, match="seed must be at least 0"):
        distribution.Normal(0.0, 1.0, seed=-1)
