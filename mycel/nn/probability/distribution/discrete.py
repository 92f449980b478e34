"""Distributions of whole numbers: Bernoulli, categorical, geometric, Poisson.

A value that is no whole number has the probability 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycel import ops
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor
from mycel.errors import ShapeError
from mycel.nn.probability.distribution import sampling
from mycel.nn.probability.distribution.base import NUMBERS, Distribution
from mycel.ops.random_rejection import poisson_numbers
from mycel.ops.special import igamma, igammac

__all__ = ["Bernoulli", "Categorical", "Geometric", "Poisson"]


def _whole(value: Tensor, good: Tensor) -> tuple[Tensor, Tensor]:
    """Return whether a value is a whole number and good, and the value, replaced by 0 where not."""
    held = ops.logical_and(good, ops.equal(value, ops.floor(value)))
    return held, ops.where(held, value, 0.0)


class Bernoulli(Distribution):
    """The distribution of 1 with probability `probs` and else 0.

    Args:
        probs (Tensor | float | None): The probability, or probabilities. Default: None.
        seed (int | None): The seed of its generator; None or 0 for the default one. Default: None.
        dtype (DType | None): The element type of samples. Default: int32.
        name (str): Its name in messages. Default: "Bernoulli".

    Raises:
        ValueError: Unless 0 < probs < 1.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.probability.distribution.Bernoulli(0.25).mean().item()
        0.25
    """

    _names = ("probs",)
    _types = NUMBERS
    _shown = ("probs",)

    def __init__(
        self, probs: Any = None, seed: int | None = None, dtype: Any = D.int32, name: str = "Bernoulli"
    ) -> None:
        super().__init__(seed, dtype, name, {"probs": probs})
        self._check("Probabilities", probs, 0.0, 1.0)
        self._hold(probs=probs)

    def _log_prob(self, value: Tensor, p: Tensor) -> Tensor:
        held, k = _whole(value, ops.logical_and(value >= 0.0, value <= 1.0))
        return ops.where(held, ops.where(k > 0.5, ops.log(p), ops.log1p(-p)), -math.inf)

    def _cdf(self, value: Tensor, p: Tensor) -> Tensor:
        return ops.where(value < 0.0, 0.0, ops.where(value < 1.0, 1.0 - p, 1.0))

    def _survival_function(self, value: Tensor, p: Tensor) -> Tensor:
        return ops.where(value < 0.0, 1.0, ops.where(value < 1.0, p, 0.0))

    def _mean(self, p: Tensor) -> Tensor:
        return p

    def _var(self, p: Tensor) -> Tensor:
        return p * (1.0 - p)

    def _mode(self, p: Tensor) -> Tensor:
        return p > 0.5

    def _entropy(self, p: Tensor) -> Tensor:
        return -ops.xlogy(p, p) - ops.xlogy(1.0 - p, 1.0 - p)

    def _kl_loss(self, pb: Tensor, p: Tensor) -> Tensor:
        return p * ops.log(p / pb) + (1.0 - p) * ops.log((1.0 - p) / (1.0 - pb))

    def _sample(self, shape: Any, p: Tensor) -> Tensor:
        return sampling.unit(shape, self._generator, self.parameter_type) < p


class Geometric(Distribution):
    """The geometric distribution (1 - probs)^k probs for k = 0, 1, ...: the number of failures
    before the first success.

    Args:
        probs (Tensor | float | None): The probability, or probabilities. Default: None.
        seed (int | None): The seed of its generator; None or 0 for the default one. Default: None.
        dtype (DType | None): The element type of samples. Default: int32.
        name (str): Its name in messages. Default: "Geometric".

    Examples:
        >>> import mycel as ms
        >>> ms.nn.probability.distribution.Geometric(0.5).prob(ms.Tensor(1.0)).item()
        0.25
    """

    _names = ("probs",)
    _types = NUMBERS
    _shown = ("probs",)

    def __init__(
        self, probs: Any = None, seed: int | None = None, dtype: Any = D.int32, name: str = "Geometric"
    ) -> None:
        super().__init__(seed, dtype, name, {"probs": probs})
        self._check("Probabilities", probs, 0.0, 1.0)
        self._hold(probs=probs)

    def _log_prob(self, value: Tensor, p: Tensor) -> Tensor:
        held, k = _whole(value, value >= 0.0)
        return ops.where(held, k * ops.log1p(-p) + ops.log(p), -math.inf)

    def _cdf(self, value: Tensor, p: Tensor) -> Tensor:
        return -ops.expm1(self._log_survival(value, p))

    def _survival_function(self, value: Tensor, p: Tensor) -> Tensor:
        return ops.exp(self._log_survival(value, p))

    def _log_survival(self, value: Tensor, p: Tensor) -> Tensor:
        return ops.relu(ops.floor(value) + 1.0) * ops.log1p(-p)

    def _mean(self, p: Tensor) -> Tensor:
        return (1.0 - p) / p

    def _var(self, p: Tensor) -> Tensor:
        return (1.0 - p) / ops.square(p)

    def _mode(self, p: Tensor) -> Tensor:
        return ops.zeros_like(p)

    def _entropy(self, p: Tensor) -> Tensor:
        return -ops.log(p) - (1.0 - p) * ops.log1p(-p) / p

    def _kl_loss(self, pb: Tensor, p: Tensor) -> Tensor:
        return ops.log(p / pb) + (1.0 - p) / p * ops.log((1.0 - p) / (1.0 - pb))

    def _sample(self, shape: Any, p: Tensor) -> Tensor:
        drawn = sampling.exponential(shape, self._generator, D.float64)
        return ops.floor(drawn / -ops.log1p(-p.astype(D.float64)))


class Poisson(Distribution):
    """The Poisson distribution rate^k exp(-rate) / k! for k = 0, 1, ...

    Args:
        rate (Tensor | float | None): The rate; None to give it at each call. Default: None.
        seed (int | None): The seed of its generator; None or 0 for the default one. Default: None.
        dtype (DType | None): The element type of samples. Default: float32.
        name (str): Its name in messages. Default: "Poisson".

    Examples:
        >>> import mycel as ms
        >>> ms.nn.probability.distribution.Poisson([2.0]).mean().item()
        2.0
    """

    _names = ("rate",)
    _types = NUMBERS
    _single = False
    _shown = ("rate",)

    def __init__(
        self, rate: Any = None, seed: int | None = None, dtype: Any = D.float32, name: str = "Poisson"
    ) -> None:
        super().__init__(seed, dtype, name, {"rate": rate})
        self._check("Rate", rate)
        self._hold(rate=rate)

    def _log_prob(self, value: Tensor, rate: Tensor) -> Tensor:
        held, k = _whole(value, value >= 0.0)
        return ops.where(held, ops.xlogy(k, rate) - rate - ops.lgamma(k + 1.0), -math.inf)

    def _cdf(self, value: Tensor, rate: Tensor) -> Tensor:
        k = ops.floor(value)
        return ops.where(k < 0.0, 0.0, igammac(ops.relu(k) + 1.0, rate))

    def _survival_function(self, value: Tensor, rate: Tensor) -> Tensor:
        k = ops.floor(value)
        return ops.where(k < 0.0, 1.0, igamma(ops.relu(k) + 1.0, rate))

    def _mean(self, rate: Tensor) -> Tensor:
        return rate

    def _var(self, rate: Tensor) -> Tensor:
        return rate

    def _mode(self, rate: Tensor) -> Tensor:
        return ops.floor(rate)

    def _kl_loss(self, rate_b: Tensor, rate: Tensor) -> Tensor:
        return ops.xlogy(rate, rate / rate_b) + rate_b - rate

    def _sample(self, shape: Any, rate: Tensor) -> Tensor:
        return poisson_numbers(shape, rate, self._generator, self.parameter_type)


class Categorical(Distribution):
    """The distribution of the numbers 0 to C - 1 with probabilities `probs` (..., C).

    The axes before the last are the batch; means, modes, variances and deviations keep the last
    axis with size 1.

    Args:
        probs (Tensor | float | None): The probabilities, (..., C). Default: None.
        seed (int | None): The seed of its generator; None or 0 for the default one. Default: None.
        dtype (DType | None): The element type of samples. Default: int32.
        name (str): Its name in messages. Default: "Categorical".

    Raises:
        ValueError: For probabilities that do not sum to 1.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.probability.distribution.Categorical([0.25, 0.75]).prob(ms.Tensor(1.0)).item()
        0.75
    """

    _names = ("probs",)
    _types = NUMBERS
    _shown = ("probs",)

    def __init__(
        self, probs: Any = None, seed: int | None = None, dtype: Any = D.int32, name: str = "Categorical"
    ) -> None:
        super().__init__(seed, dtype, name, {"probs": probs})
        self._check("Probabilities", probs, 0.0, 1.0, True)
        plain = probs is not None and not isinstance(probs, Tensor) and np.ndim(probs)
        if plain and not np.allclose(np.sum(probs, -1), 1.0, atol=1e-5):
            raise ValueError(f"{name}: the probabilities must sum to 1 along the last axis, not {probs!r}")
        self._hold(probs=probs)
        if self._held[0] is not None:
            self._classes(self._held[0])
        self.broadcast_shape = self.broadcast_shape[:-1]

    def _classes(self, p: Tensor) -> None:
        if not p.ndim or p.shape[-1] == 0:
            raise ShapeError(f"{self.name}: the probabilities need an axis of classes, which {p._type} has not")

    def _given(self, args: tuple[Any, ...], kwargs: dict[str, Any], suffix: str = "") -> list[Tensor]:
        found = super()._given(args, kwargs, suffix)
        self._classes(found[0])
        return found

    def _batch(self, own: list[Tensor]) -> tuple[Any, ...]:
        return tuple(own[0].shape[:-1])

    def _full(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        own = self._given(args, kwargs)
        last = () if function == self._entropy else (1,)
        return ops.broadcast_to(function(*own), (*self._batch(own), *last))

    def _numbers(self, p: Tensor) -> Tensor:
        return ops.arange(p.shape[-1]).astype(self.parameter_type)

    def _prob(self, value: Tensor, p: Tensor) -> Tensor:
        return ops.sum(ops.where(ops.equal(ops.expand_dims(value, -1), self._numbers(p)), p, 0.0), -1)

    def _log_prob(self, value: Tensor, p: Tensor) -> Tensor:
        return ops.log(self._prob(value, p))

    def _cdf(self, value: Tensor, p: Tensor) -> Tensor:
        return ops.sum(ops.where(self._numbers(p) <= ops.expand_dims(value, -1), p, 0.0), -1)

    def _survival_function(self, value: Tensor, p: Tensor) -> Tensor:
        return ops.sum(ops.where(self._numbers(p) > ops.expand_dims(value, -1), p, 0.0), -1)

    def _mean(self, p: Tensor) -> Tensor:
        return ops.sum(p * self._numbers(p), -1, True)

    def _var(self, p: Tensor) -> Tensor:
        return ops.sum(p * ops.square(self._numbers(p) - self._mean(p)), -1, True)

    def _mode(self, p: Tensor) -> Tensor:
        return ops.argmax(p, -1, True)

    def _entropy(self, p: Tensor) -> Tensor:
        return -ops.sum(ops.xlogy(p, p), -1)

    def _kl_loss(self, pb: Tensor, p: Tensor) -> Tensor:
        return ops.sum(ops.xlogy(p, p) - ops.xlogy(p, pb), -1)

    def _sample(self, shape: Any, p: Tensor) -> Tensor:
        # The largest of log p plus Gumbel noise: Gumbel, 1954.
        noise = sampling.exponential((*shape, p.shape[-1]), self._generator, D.float64)
        return ops.argmax(ops.log(p.astype(D.float64)) - ops.log(noise), -1)
