"""Distributions and bijectors are shown with their parameters, as MindSpore 2.10 shows them."""

from __future__ import annotations

from typing import Any

import pytest

from mycel.nn.probability import bijector as b
from mycel.nn.probability import distribution as d

SHOWN: list[tuple[Any, str]] = [
    (lambda: d.Normal(0.0, 1.0), "Normal(mean = 0.0, standard deviation = 1.0)"),
    (lambda: d.Normal([1.0, 2.0], 3.0), "Normal(batch_shape = (2,))"),
    (lambda: d.Normal(), "Normal(mean = None, standard deviation = None)"),
    (lambda: d.Bernoulli(0.5), "Bernoulli(probs = 0.5)"),
    (lambda: d.Categorical([0.2, 0.8]), "Categorical(probs = [0.2 0.8])"),
    (lambda: d.Uniform(0.0, 1.0), "Uniform(low = 0.0, high = 1.0)"),
    (lambda: d.Exponential(2.0), "Exponential(rate = 2.0)"),
    (lambda: d.Geometric(0.5), "Geometric(probs = 0.5)"),
    (lambda: d.Logistic(0.0, 1.0), "Logistic(location = 0.0, scale = 1.0)"),
    (lambda: d.Cauchy(0.0, 1.0), "Cauchy(location = 0.0, scale = 1.0)"),
    (lambda: d.Poisson([1.0]), "Poisson(batch_shape = (1,))"),
    (lambda: d.StudentT([1.0], [0.0], [1.0]), "StudentT()"),
    (lambda: b.Exp(), "Exp(exp)"),
    (lambda: b.ScalarAffine(2.0, 1.0), "ScalarAffine(scale = 2.0, shift = 1.0)"),
    (lambda: b.PowerTransform(2.0), "PowerTransform(power = 2.0)"),
    (lambda: b.GumbelCDF(), "GumbelCDF(loc = 0.0, scale = 1.0)"),
]


@pytest.mark.parametrize("make, shown", SHOWN, ids=[shown for _, shown in SHOWN])
def test_what_is_shown(make: Any, shown: str) -> None:
    assert str(make()) == shown
