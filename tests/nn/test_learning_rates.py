"""Learning rates as lists and as schedules; expected numbers are MindSpore's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn

CHECKED = dict.fromkeys(
    """nn.cosine_decay_lr nn.exponential_decay_lr nn.inverse_decay_lr nn.natural_exp_decay_lr
    nn.piecewise_constant_lr nn.polynomial_decay_lr nn.warmup_lr nn.CosineDecayLR
    nn.ExponentialDecayLR nn.InverseDecayLR nn.NaturalExpDecayLR nn.PolynomialDecayLR
    nn.WarmUpLR""".split(),
    "MindSpore 2.10",
)

LISTS: list[tuple[Callable[[], list[float]], list[float]]] = [
    (lambda: nn.exponential_decay_lr(0.1, 0.9, 6, 2, 1), [0.1, 0.1, 0.09, 0.09, 0.081, 0.081]),
    (lambda: nn.exponential_decay_lr(0.1, 0.9, 6, 2, 2, True), [0.1, 0.1, 0.1, 0.1, 0.09, 0.09]),
    (
        lambda: nn.natural_exp_decay_lr(0.1, 0.9, 6, 2, 2),
        [0.1, 0.1, 0.04065696597, 0.04065696597, 0.01652988882, 0.01652988882],
    ),
    (lambda: nn.natural_exp_decay_lr(0.1, 0.9, 6, 2, 2, True), [0.1, 0.1, 0.1, 0.1, 0.01652988882, 0.01652988882]),
    (lambda: nn.inverse_decay_lr(0.1, 0.5, 6, 1, 1), [0.1, 0.2 / 3, 0.05, 0.04, 0.1 / 3, 0.2 / 7]),
    (lambda: nn.inverse_decay_lr(0.1, 0.5, 6, 2, 3, True), [0.1] * 6),
    (lambda: nn.cosine_decay_lr(0.01, 0.1, 6, 2, 2), [0.1, 0.1, 0.055, 0.055, 0.01, 0.01]),
    (lambda: nn.polynomial_decay_lr(0.1, 0.01, 6, 2, 2, 0.5), [0.1, 0.1, 0.0736396103, 0.0736396103, 0.01, 0.01]),
    (lambda: nn.polynomial_decay_lr(0.1, 0.01, 6, 2, 2, 0.5, True), [0.1, 0.1, 0.0736396103, 0.0736396103, 0.01, 0.01]),
    (lambda: nn.piecewise_constant_lr([2, 5, 10], [0.1, 0.05, 0.01]), [0.1] * 2 + [0.05] * 3 + [0.01] * 5),
    (lambda: nn.warmup_lr(0.1, 6, 2, 2), [0.0, 0.0, 0.05, 0.05, 0.1, 0.1]),
]


@pytest.mark.parametrize("make, expected", LISTS)
def test_lists(make: Callable[[], list[float]], expected: list[float]) -> None:
    np.testing.assert_allclose(make(), expected, rtol=1e-9)


# The rate at steps 0, 1, 3, 4, 6 and 9.
SCHEDULES: list[tuple[Callable[[], nn.Cell], list[float]]] = [
    (lambda: nn.ExponentialDecayLR(0.1, 0.9, 4), [0.1, 0.09740037, 0.09240211, 0.09, 0.0853815, 0.0788943]),
    (lambda: nn.ExponentialDecayLR(0.1, 0.9, 4, True), [0.1, 0.1, 0.1, 0.09, 0.09, 0.081]),
    (
        lambda: nn.NaturalExpDecayLR(0.1, 0.9, 4),
        [0.1, 0.04065697, 0.006720554, 0.002732373, 0.0004516584, 3.035394e-05],
    ),
    (lambda: nn.NaturalExpDecayLR(0.1, 0.9, 4, True), [0.1, 0.1, 0.1, 0.002732373, 0.002732373, 7.465862e-05]),
    (lambda: nn.InverseDecayLR(0.1, 0.9, 4), [0.1, 0.08163265, 0.0597015, 0.05263158, 0.04255319, 0.03305785]),
    (lambda: nn.InverseDecayLR(0.1, 0.9, 4, True), [0.1, 0.1, 0.1, 0.05263158, 0.05263158, 0.03571429]),
    (lambda: nn.CosineDecayLR(0.01, 0.1, 4), [0.1, 0.08681981, 0.02318019, 0.01, 0.01, 0.01]),
    (lambda: nn.PolynomialDecayLR(0.1, 0.01, 4, 0.5), [0.1, 0.08794229, 0.055, 0.01, 0.01, 0.01]),
    (lambda: nn.PolynomialDecayLR(0.1, 0.01, 4, 0.5, True), [0.1, 0.08794229, 0.055, 0.01, 0.055, 0.055]),
    (lambda: nn.WarmUpLR(0.1, 4), [0.0, 0.025, 0.075, 0.1, 0.1, 0.1]),
]


@pytest.mark.parametrize("make, expected", SCHEDULES)
def test_schedules(make: Callable[[], nn.Cell], expected: list[float]) -> None:
    schedule = make()
    found = [float(schedule(ms.Tensor(step, ms.int32))) for step in (0, 1, 3, 4, 6, 9)]
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-9)


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda: nn.piecewise_constant_lr([2, 5], [0.1]), ValueError, "2 milestones and 1 learning rates"),
        (lambda: nn.piecewise_constant_lr([5, 2], [0.1, 0.2]), ValueError, r"milestone\[1\] is 2 after 5"),
        (lambda: nn.piecewise_constant_lr(5, 0.1), TypeError, "milestone must be a tuple or a list, not int"),
        (lambda: nn.cosine_decay_lr(0.1, 0.01, 6, 2, 2), ValueError, "max_lr must be above min_lr"),
        (lambda: nn.exponential_decay_lr(-0.1, 0.9, 6, 2, 1), ValueError, "learning_rate must be above 0, not -0.1"),
        (lambda: nn.exponential_decay_lr(0.1, 0.9, 0, 2, 1), ValueError, "total_step must be at least 1, not 0"),
        (lambda: nn.exponential_decay_lr(0.1, 0.9, 6, 2, 1.0), TypeError, "decay_epoch must be an int, not float"),
        (lambda: nn.warmup_lr(0.1, 6, 2, 0), ValueError, "warmup_epoch must be at least 1, not 0"),
        (lambda: nn.CosineDecayLR(0.1, 0.01, 4), ValueError, "max_lr must be above min_lr"),
        (lambda: nn.ExponentialDecayLR(0.1, 0.5, 0), ValueError, "decay_steps must be at least 1, not 0"),
        (lambda: nn.WarmUpLR(0.1, 2.0), TypeError, "warmup_steps must be an int, not float"),
    ],
)
def test_bad_arguments(make: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()
