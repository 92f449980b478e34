"""The exponential, gamma and beta distributions."""

from __future__ import annotations

import math
from typing import Any

from mycel import ops
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor
from mycel.nn.probability.distribution import sampling
from mycel.nn.probability.distribution.base import FLOATS, Distribution
from mycel.ops.random_rejection import gamma_numbers
from mycel.ops.special import igamma, igammac

__all__ = ["Beta", "Exponential", "Gamma"]


class Exponential(Distribution):
    """The exponential distribution rate * exp(-rate x) for x >= 0.

    Args:
        rate (Tensor | float | None): The rate; None to give it at each call. Default: None.
        seed (int | None): The seed of its generator; None or 0 for the default one. Default: None.
        dtype (DType | None): The element type of samples. Default: float32.
        name (str): Its name in messages. Default: "Exponential".

    Examples:
        >>> import mycel as ms
        >>> ms.nn.probability.distribution.Exponential(2.0).mean().item()
        0.5
    """

    _names = ("rate",)
    _types = FLOATS
    _shown = ("rate",)

    def __init__(
        self, rate: Any = None, seed: int | None = None, dtype: Any = D.float32, name: str = "Exponential"
    ) -> None:
        super().__init__(seed, dtype, name, {"rate": rate})
        self._check("Rate", rate)
        self._hold(rate=rate)

    def _log_prob(self, value: Tensor, rate: Tensor) -> Tensor:
        return ops.where(value >= 0.0, ops.log(rate) - rate * value, -math.inf)

    def _cdf(self, value: Tensor, rate: Tensor) -> Tensor:
        return -ops.expm1(-rate * ops.relu(value))

    def _survival_function(self, value: Tensor, rate: Tensor) -> Tensor:
        return ops.exp(self._log_survival(value, rate))

    def _log_survival(self, value: Tensor, rate: Tensor) -> Tensor:
        return -rate * ops.relu(value)

    def _mean(self, rate: Tensor) -> Tensor:
        return 1.0 / rate

    def _sd(self, rate: Tensor) -> Tensor:
        return 1.0 / rate

    def _mode(self, rate: Tensor) -> Tensor:
        return ops.zeros_like(rate)

    def _entropy(self, rate: Tensor) -> Tensor:
        return 1.0 - ops.log(rate)

    def _kl_loss(self, rate_b: Tensor, rate: Tensor) -> Tensor:
        return ops.log(rate / rate_b) + rate_b / rate - 1.0

    def _sample(self, shape: Any, rate: Tensor) -> Tensor:
        return sampling.exponential(shape, self._generator, self.parameter_type) / rate


class Gamma(Distribution):
    """The gamma distribution with a shape (`concentration`) and a `rate`.

    The mode is NaN for a concentration below 1. Samples are differentiable with respect to the rate
    only.

    Args:
        concentration (Tensor | float | None): The shape; None to give it at each call. Default:
            None.
        rate (Tensor | float | None): The rate; None to give it at each call. Default: None.
        seed (int | None): The seed of its generator; None or 0 for the default one. Default: None.
        dtype (DType | None): The element type of samples. Default: float32.
        name (str): Its name in messages. Default: "Gamma".

    Examples:
        >>> import mycel as ms
        >>> ms.nn.probability.distribution.Gamma([3.0], [2.0]).mean().item()
        1.5
    """

    _names = ("concentration", "rate")
    _types = FLOATS
    _single = False
    _shown = ("concentration", "rate")

    def __init__(
        self,
        concentration: Any = None,
        rate: Any = None,
        seed: int | None = None,
        dtype: Any = D.float32,
        name: str = "Gamma",
    ) -> None:
        super().__init__(seed, dtype, name, {"concentration": concentration, "rate": rate})
        self._check("Concentration", concentration)
        self._check("Rate", rate)
        self._hold(concentration=concentration, rate=rate)

    def _log_prob(self, value: Tensor, c: Tensor, rate: Tensor) -> Tensor:
        inside = value >= 0.0
        x = ops.where(inside, value, 1.0)
        return ops.where(inside, ops.xlogy(c, rate) + ops.xlogy(c - 1.0, x) - rate * x - ops.lgamma(c), -math.inf)

    def _cdf(self, value: Tensor, c: Tensor, rate: Tensor) -> Tensor:
        return igamma(c, rate * ops.relu(value))

    def _survival_function(self, value: Tensor, c: Tensor, rate: Tensor) -> Tensor:
        return igammac(c, rate * ops.relu(value))

    def _mean(self, c: Tensor, rate: Tensor) -> Tensor:
        return c / rate

    def _var(self, c: Tensor, rate: Tensor) -> Tensor:
        return c / ops.square(rate)

    def _mode(self, c: Tensor, rate: Tensor) -> Tensor:
        return ops.where(c >= 1.0, (c - 1.0) / rate, math.nan)

    def _entropy(self, c: Tensor, rate: Tensor) -> Tensor:
        return c - ops.log(rate) + ops.lgamma(c) + (1.0 - c) * ops.digamma(c)

    def _kl_loss(self, cb: Tensor, rate_b: Tensor, c: Tensor, rate: Tensor) -> Tensor:
        return (
            (c - cb) * ops.digamma(c)
            - ops.lgamma(c)
            + ops.lgamma(cb)
            + cb * ops.log(rate / rate_b)
            + c * (rate_b / rate - 1.0)
        )

    def _sample(self, shape: Any, c: Tensor, rate: Tensor) -> Tensor:
        return gamma_numbers(shape, c, self._generator, self.parameter_type) / rate


def _log_beta(a: Tensor, b: Tensor) -> Tensor:
    return ops.lgamma(a) + ops.lgamma(b) - ops.lgamma(a + b)


class Beta(Distribution):
    """The beta distribution x^(a - 1) (1 - x)^(b - 1) / B(a, b) on [0, 1], with a =
    `concentration1` and b = `concentration0`.

    The mode is NaN unless both are above 1.

    Args:
        concentration1 (Tensor | float | None): The shape; None to give it at each call. Default:
            None.
        concentration0 (Tensor | float | None): The shape; None to give it at each call. Default:
            None.
        seed (int | None): The seed of its generator; None or 0 for the default one. Default: None.
        dtype (DType | None): The element type of samples. Default: float32.
        name (str): Its name in messages. Default: "Beta".

    Examples:
        >>> import mycel as ms
        >>> ms.nn.probability.distribution.Beta(1.0, 3.0).mean().item()
        0.25
    """

    _names = ("concentration1", "concentration0")
    _types = FLOATS
    _shown = ("concentration1", "concentration0")

    def __init__(
        self,
        concentration1: Any = None,
        concentration0: Any = None,
        seed: int | None = None,
        dtype: Any = D.float32,
        name: str = "Beta",
    ) -> None:
        super().__init__(seed, dtype, name, {"concentration1": concentration1, "concentration0": concentration0})
        self._check("Concentration1", concentration1)
        self._check("Concentration0", concentration0)
        self._hold(concentration1=concentration1, concentration0=concentration0)

    def _log_prob(self, value: Tensor, a: Tensor, b: Tensor) -> Tensor:
        inside = ops.logical_and(value >= 0.0, value <= 1.0)
        x = ops.where(inside, value, 0.5)
        return ops.where(inside, ops.xlogy(a - 1.0, x) + ops.xlogy(b - 1.0, 1.0 - x) - _log_beta(a, b), -math.inf)

    def _mean(self, a: Tensor, b: Tensor) -> Tensor:
        return a / (a + b)

    def _var(self, a: Tensor, b: Tensor) -> Tensor:
        return a * b / (ops.square(a + b) * (a + b + 1.0))

    def _mode(self, a: Tensor, b: Tensor) -> Tensor:
        held = ops.logical_and(a > 1.0, b > 1.0)
        return ops.where(held, (a - 1.0) / ops.where(held, a + b - 2.0, 1.0), math.nan)

    def _entropy(self, a: Tensor, b: Tensor) -> Tensor:
        total = (a + b - 2.0) * ops.digamma(a + b)
        return _log_beta(a, b) - (a - 1.0) * ops.digamma(a) - (b - 1.0) * ops.digamma(b) + total

    def _kl_loss(self, ab: Tensor, bb: Tensor, a: Tensor, b: Tensor) -> Tensor:
        moved = (a - ab) * ops.digamma(a) + (b - bb) * ops.digamma(b) + (ab - a + bb - b) * ops.digamma(a + b)
        return _log_beta(ab, bb) - _log_beta(a, b) + moved

    def _sample(self, shape: Any, a: Tensor, b: Tensor) -> Tensor:
        # In float64 the ratio is accurate even where both numbers are tiny.
        first = gamma_numbers(shape, a, self._generator, D.float64)
        second = gamma_numbers(shape, b, self._generator, D.float64)
        return first / (first + second)
