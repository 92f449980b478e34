"""Random numbers as objects: distributions by tests of Kolmogorov and Smirnov and of moments at
fixed seeds, and sequences that begin again with the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import mycel as ms
from mycel import Tensor, ops
from mycel.ops.random_truncated import normal_quantile

LEAST = 1e-3  # the smallest p-value that passes; seeds are fixed
COUNT = 4000


def real(*values: float) -> Tensor:
    return Tensor(np.array(values))


TRUTH = Tensor(np.array([[1, 3], [0, 2]], np.int64))
# What each object draws in one call, as a function of nothing.
DRAWS: dict[str, Callable[[], Any]] = {
    "Bernoulli": lambda: ops.Bernoulli(3, 1)(ops.zeros(COUNT), Tensor(0.25)),
    "Cauchy": lambda: ops.Cauchy([COUNT], 1.0, 2.0)(),
    "Gamma": lambda: ops.Gamma(3, 1)((COUNT,), real(2.5), real(2.0)),
    "LogNormalReverse": lambda: ops.LogNormalReverse(0.5, 0.25)(ops.zeros(COUNT, ms.float64)),
    "NonDeterministicInts": lambda: ops.NonDeterministicInts()(Tensor([COUNT])),
    "ParameterizedTruncatedNormal": lambda: ops.ParameterizedTruncatedNormal(2, 3)(
        Tensor([2, COUNT]), real(0, 5), real(1, 2), real(-1, 6), real(0.5, 9)
    ),
    "Poisson": lambda: ops.Poisson(5)((COUNT, 1), real(3.0, 40.0)),
    "RandomGamma": lambda: ops.RandomGamma(7)(Tensor([COUNT]), real(0.5, 3.0)),
    "RandomPoisson": lambda: ops.RandomPoisson(8, 1)(Tensor([COUNT]), real(2.0, 30.0)),
    "TruncatedNormal": lambda: ops.TruncatedNormal(ms.float64, 4, 5)(Tensor([COUNT])),
    "Randperm": lambda: ops.Randperm(9)(Tensor([6])),
    "RandpermV2": lambda: ops.RandpermV2(3, 1)(7),
    "RandomChoiceWithMask": lambda: ops.RandomChoiceWithMask(4, 2, 2)(Tensor(np.eye(3, dtype=bool))),
    "MultinomialWithReplacement": lambda: ops.MultinomialWithReplacement(COUNT, True)(
        real(0.0, 9, 3), Tensor(2), Tensor(5)
    ),
    "LogUniformCandidateSampler": lambda: ops.LogUniformCandidateSampler(2, COUNT, False, 6, 11)(TRUTH),
    "UniformCandidateSampler": lambda: ops.UniformCandidateSampler(2, 3, True, 5, 11)(TRUTH),
    "DropoutGenMask": lambda: ops.DropoutGenMask(6, 1)((COUNT,), Tensor(0.75)),
}
CHECKED = {**{f"ops.{n}": "SciPy" for n in DRAWS}, "ops.DropoutDoMask": "NumPy"}


def drawn(name: str) -> Any:
    ms.set_seed(12)
    found = DRAWS[name]()
    return [t.asnumpy() for t in found] if isinstance(found, tuple) else found.asnumpy()


@pytest.mark.parametrize("name", list(DRAWS))
def test_a_seed_begins_the_sequence_again_in_both_modes(name: str) -> None:
    first, again = drawn(name), drawn(name)
    compiled = ms.jit(DRAWS[name])
    ms.set_seed(12)
    staged = compiled()
    for a, b, c in zip(
        *(
            v if isinstance(v, list) else [v]
            for v in (first, again, [t.asnumpy() for t in staged] if isinstance(staged, tuple) else staged.asnumpy())
        )
    ):
        np.testing.assert_array_equal(a, b)
        # Compiled code may round the arithmetic after a draw differently.
        np.testing.assert_allclose(a, c, rtol=1e-13 if a.dtype == np.float64 else 1e-6)


CUTS = stats.truncnorm(-1, 0.5), stats.truncnorm(0.5, 2, 5, 2)
SMOOTH: dict[str, list[Any]] = {
    "Cauchy": [stats.cauchy(1, 2)],
    "Gamma": [stats.gamma(2.5, scale=0.5)],
    "LogNormalReverse": [stats.lognorm(0.25, scale=np.exp(0.5))],
    "NonDeterministicInts": [stats.uniform(-(2.0**63), 2.0**64)],
    "ParameterizedTruncatedNormal": list(CUTS),
    "RandomGamma": [stats.gamma(0.5), stats.gamma(3)],
    "TruncatedNormal": [stats.truncnorm(-2, 2)],
}


@pytest.mark.parametrize("name", list(SMOOTH))
def test_distributions(name: str) -> None:
    found = drawn(name)
    columns = found if name == "ParameterizedTruncatedNormal" else found.reshape(COUNT, -1).T
    assert len(columns) == len(SMOOTH[name])
    for column, law in zip(columns, SMOOTH[name]):
        assert stats.kstest(column.astype(np.float64), law.cdf).pvalue > LEAST
        if name != "Cauchy":
            error = law.std() / np.sqrt(COUNT)
            assert abs(column.astype(np.float64).mean() - law.mean()) < 4 * error
            assert abs(column.astype(np.float64).std() / law.std() - 1) < 0.1


@pytest.mark.parametrize(("name", "means"), [("Poisson", (3, 40)), ("RandomPoisson", (2, 30))])
def test_poisson_numbers(name: str, means: Any) -> None:
    found = drawn(name)
    assert found.dtype == (np.int32 if name == "Poisson" else np.int64) and found.shape == (COUNT, 2)
    for column, mean in zip(found.T, means):
        edges = np.unique(stats.poisson(mean).ppf(np.linspace(0.1, 0.9, 7)))
        counts = np.bincount(np.searchsorted(edges, column), minlength=len(edges) + 1)
        expected = np.diff(np.concatenate([[0], stats.poisson(mean).cdf(edges), [1]])) * COUNT
        assert stats.chisquare(counts, expected).pvalue > LEAST


def test_coins_and_masks() -> None:
    coins = drawn("Bernoulli")
    assert set(np.unique(coins)) == {0.0, 1.0} and coins.dtype == np.float32
    assert stats.binomtest(int(coins.sum()), COUNT, 0.25).pvalue > LEAST
    assert (
        ops.Bernoulli()(ops.ones(3, ms.int32), 1.0).tolist() == [1, 1, 1] and ops.Bernoulli()(ops.ones(50)).sum() < 50
    )
    mask = drawn("DropoutGenMask")
    assert mask.dtype == np.uint8 and mask.shape == (512,)
    assert stats.binomtest(int(np.unpackbits(mask).sum()), 4096, 0.75).pvalue > LEAST


@pytest.mark.parametrize("shape", [(7,), (3, 50), (0, 2), (16, 8)])
def test_masks_of_dropout_hold_a_bit_for_each_element(shape: Any) -> None:
    x = np.random.default_rng(1).normal(size=shape)
    mask = ops.DropoutGenMask(3)(shape, 0.5)
    assert mask.shape == (-(-x.size // 128) * 16,)
    kept = np.unpackbits(mask.asnumpy(), bitorder="little")[: x.size].reshape(shape)
    np.testing.assert_allclose(ops.DropoutDoMask()(Tensor(x), mask, 0.5).asnumpy(), np.where(kept == 1, x * 2, 0))
    gradient = ms.grad(lambda v: ops.DropoutDoMask()(v, mask, Tensor(0.5)).sum())(Tensor(x))
    np.testing.assert_array_equal(gradient.asnumpy(), kept * 2.0)


def test_permutations() -> None:
    ms.set_seed(1)
    seen = set()
    for _ in range(60):
        found = ops.Randperm(5, -7, ms.int64)(Tensor([3])).asnumpy()
        assert sorted(found[:3]) == [0, 1, 2] and found[3:].tolist() == [-7, -7] and found.dtype == np.int64
        seen.add(tuple(found[:3]))
    assert len(seen) == 6
    assert ops.Randperm(2)(Tensor([0])).tolist() == [-1, -1] and ops.Randperm(2)(Tensor([0])).dtype is ms.int32
    found = ops.RandpermV2(dtype=ms.int32)(6)
    assert sorted(found.tolist()) == list(range(6)) and found.dtype is ms.int32


def test_samples() -> None:
    ms.set_seed(2)
    index, known = (t.asnumpy() for t in ops.RandomChoiceWithMask(5)(Tensor(np.eye(3, dtype=bool))))
    assert known.tolist() == [True, True, True, False, False] and index.dtype == np.int32
    assert sorted(map(tuple, index[:3].tolist())) == [(0, 0), (1, 1), (2, 2)] and not index[3:].any()
    found = drawn("MultinomialWithReplacement")
    assert found.dtype == np.int64 and not (found == 0).any()
    assert stats.binomtest(int((found == 1).sum()), COUNT, 0.75).pvalue > LEAST
    without = ops.MultinomialWithReplacement(3)(Tensor([[1.0, 9, 4, 0]]), Tensor(0), Tensor(0))
    assert sorted(without.tolist()[0]) == [0, 1, 2]
    sampled, of_true, of_sampled = drawn("LogUniformCandidateSampler")
    share = np.log((np.arange(6) + 2) / (np.arange(6) + 1)) / np.log(7)
    assert stats.chisquare(np.bincount(sampled, minlength=6), share * COUNT).pvalue > LEAST
    np.testing.assert_allclose(of_true, share[TRUTH.asnumpy()] * COUNT, rtol=1e-5)
    np.testing.assert_allclose(of_sampled, share[sampled] * COUNT, rtol=1e-5)
    sampled, of_true, _ = drawn("UniformCandidateSampler")
    assert len(set(sampled)) == 3 and set(sampled) <= set(range(5)) and of_true.shape == (2, 2)
    other = ops.UniformCandidateSampler(2, 1, True, 5, 1, True)(TRUTH)[0].tolist()
    assert other == [4]


@pytest.mark.parametrize(("low", "high"), [(9.0, 10.0), (-30.0, -29.0), (30.0, np.inf), (-np.inf, 0.1), (-1e-3, 1e-3)])
def test_far_bounds_of_truncated_normal_numbers(low: float, high: float) -> None:
    ms.set_seed(4)
    call = ops.ParameterizedTruncatedNormal(1)
    found = call(Tensor([1, COUNT]), *(Tensor(np.array(v)) for v in (0.0, 1.0, low, high))).asnumpy()[0]
    assert found.min() >= low and found.max() <= high
    # The survival function keeps its precision where the distribution function does not; of the
    # lower tail by symmetry.
    a, b, values = (low, high, found) if low > 0 else (-high, -low, -found)
    top, rest = stats.norm.sf(a), stats.norm.sf(b)
    assert stats.kstest((stats.norm.sf(values) - rest) / (top - rest), stats.uniform.cdf).pvalue > LEAST


def test_quantiles_of_the_normal_distribution() -> None:
    p = np.array([1e-290, 1e-100, 1e-16, 1e-3, 0.0199, 0.02, 0.3, 0.5, 0.9, 1 - 1e-10])
    np.testing.assert_allclose(normal_quantile(Tensor(p)).asnumpy(), stats.norm.ppf(p), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_types(name: str) -> None:
    kind = getattr(ms, name)
    assert ops.TruncatedNormal(kind)(Tensor([2, 2])).dtype is kind
    assert ops.LogNormalReverse()(ops.zeros((2, 0), kind)).shape == (2, 0)
    assert ops.LogNormalReverse()(ops.zeros(2, kind)).dtype is kind
    one = ops.ones(1, kind)
    assert ops.ParameterizedTruncatedNormal()(Tensor([3, 2]), one, one, one, one * 2).dtype is kind
    assert ops.RandomGamma(1)(Tensor([2]), one).dtype is kind


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ops.Cauchy(3)(), TypeError, "size must be a list"),
        (lambda: ops.Cauchy([2], 0.0, -1.0)(), ValueError, "sigma must be positive"),
        (lambda: ops.Bernoulli(-2)(ops.ones(2)), ValueError, "seed must be at least -1"),
        (lambda: ops.NonDeterministicInts(ms.int8)((2,)), TypeError, "dtype must be int64 or int32"),
        (lambda: ops.TruncatedNormal(ms.int32)((2,)), TypeError, "dtype must be float32 or float16 or float64"),
        (
            lambda: ops.ParameterizedTruncatedNormal()(Tensor([2, 2]), *[ops.ones(3)] * 4),
            ValueError,
            r"parameters must be \(\) or \(n,\)",
        ),
        (lambda: ops.DropoutDoMask()(ops.ones(3), ops.ones(3, ms.uint8), 0.5), ValueError, r"must be uint8 \(16,\)"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
