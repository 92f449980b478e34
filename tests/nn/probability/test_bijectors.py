"""Bijectors: values of MindSpore 2.10, inverses, and log-derivatives against differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor
from mycel.nn.probability import bijector

CHECKED = {f"nn.probability.bijector.{n}": "MindSpore 2.10" for n in bijector.__all__}
# At 0.3 and 0.7: forward, inverse, forward_log_jacobian, inverse_log_jacobian.
CASES: dict[str, Any] = {
    "Exp": (bijector.Exp(), [1.349858, 2.013753], [-1.203973, -0.356675], [0.3, 0.7], [1.203973, 0.356675]),
    "GumbelCDF": (
        bijector.GumbelCDF(1.0, 2.0),
        [0.24194, 0.312912],
        [0.628746, 3.061861],
        [-1.762211, -1.704981],
        [1.711493, 2.080752],
    ),
    "Invert": (
        bijector.Invert(bijector.Exp()),
        [-1.203973, -0.356675],
        [1.349858, 2.013753],
        [1.203973, 0.356675],
        [0.3, 0.7],
    ),
    "PowerTransform": (
        bijector.PowerTransform(0.5),
        [1.322499, 1.8225],
        [-0.904555, -0.32668],
        [0.139762, 0.300105],
        [0.601986, 0.178337],
    ),
    "ScalarAffine": (bijector.ScalarAffine(2.0, 1.0), [1.6, 2.4], [-0.35, -0.15], 0.693147, -0.693147),
    "Softplus": (
        bijector.Softplus(2.0),
        [0.518744, 0.810209],
        [-0.097935, 0.558423],
        [-0.437488, -0.220417],
        [0.79587, 0.283155],
    ),
}
METHODS = ("forward", "inverse", "forward_log_jacobian", "inverse_log_jacobian")


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    made, *wanted = CASES[name]
    x = Tensor([0.3, 0.7], ms.float32)
    for method, want in zip(METHODS, wanted):
        for got in (getattr(made, method)(x), made(method, x), ms.jit(lambda v, m=method: made(m, v))(x)):
            np.testing.assert_allclose(got.asnumpy(), want, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", CASES)
def test_inverses_and_derivatives(name: str) -> None:
    made, x = CASES[name][0], Tensor([0.2, 0.45, 0.9], ms.float64)
    np.testing.assert_allclose(made.inverse(made.forward(x)).asnumpy(), x.asnumpy(), rtol=1e-6)
    slope = ms.grad(lambda v: ms.ops.sum(made.forward(v)))(x).asnumpy()
    found = np.broadcast_to(made.forward_log_jacobian(x).asnumpy(), 3)
    np.testing.assert_allclose(found, np.log(np.abs(slope)), rtol=1e-6, atol=1e-6)
    back = np.broadcast_to(made.inverse_log_jacobian(made.forward(x)).asnumpy(), 3)
    np.testing.assert_allclose(back, -found, rtol=1e-6, atol=1e-6)


def test_a_bijector_of_the_user() -> None:
    class Cube(bijector.Bijector):
        def _forward(self, value: Tensor) -> Tensor:
            return value**3

        def _inverse(self, value: Tensor) -> Tensor:
            return value ** (1 / 3)

        def _forward_log_jacobian(self, value: Tensor) -> Tensor:
            return ms.ops.log(3 * value**2)

    made = Cube()
    np.testing.assert_allclose(made.inverse_log_jacobian(Tensor([8.0])).asnumpy(), [-np.log(12.0)], rtol=1e-6)
    assert made.name == "Cube" and bijector.Invert(bijector.Exp()).name == "InvertExp"
    with pytest.raises(NotImplementedError, match="does not define inverse; define _inverse"):
        bijector.Bijector().inverse(Tensor([1.0]))
    with pytest.raises(ValueError, match="power must be at least 0, not -1"):
        bijector.PowerTransform(-1.0)
    with pytest.raises(ValueError, match="there is no method 'nothing'"):
        bijector.Exp()("nothing", Tensor([1.0]))
