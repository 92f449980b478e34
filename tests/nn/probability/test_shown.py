"""Distributions and bijectors show their parameters as MindSpore's do."""

from __future__ import annotations

import pytest

from mycel.nn.probability import bijector as B
from mycel.nn.probability import distribution as D


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (lambda: D.Normal(0.5, 0.9), "Normal(mean = 0.5, standard deviation = 0.9)"),
        (lambda: D.Normal(), "Normal(mean = None, standard deviation = None)"),
        (lambda: D.Normal([0.9, 0.1], 1.0), "Normal(batch_shape = (2,))"),
        (lambda: D.Bernoulli(0.3), "Bernoulli(probs = 0.3)"),
        (lambda: D.Uniform(0.0, 1.0), "Uniform(low = 0.0, high = 1.0)"),
        (lambda: D.Exponential(0.9), "Exponential(rate = 0.9)"),
        (lambda: D.Categorical([0.1, 0.9]), "Categorical(probs = [0.1 0.9])"),
        (lambda: D.Cauchy(0.9, 1.0), "Cauchy(location = 0.9, scale = 1.0)"),
        (lambda: D.Logistic(), "Logistic(location = None, scale = None)"),
        (lambda: D.Poisson([0.9]), "Poisson(batch_shape = (1,))"),
        (lambda: B.Exp(), "Exp(exp)"),
        (lambda: B.PowerTransform(0.9), "PowerTransform(power = 0.9)"),
        (lambda: B.ScalarAffine(0.9, 0.1), "ScalarAffine(scale = 0.9, shift = 0.1)"),
        (lambda: B.GumbelCDF([1.0, 2.0], 1.0), "GumbelCDF(batch_shape = (2,))"),
    ],
)
def test_shown(made, text) -> None:
    assert repr(made()) == text
