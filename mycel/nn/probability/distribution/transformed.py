"""Distributions of the images of others under a bijector: y = g(x) has the density p(g^-1(y)) |dx /
dy|.
"""

from __future__ import annotations

import math
from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor
from mycel.nn.probability.bijector import Bijector, Exp, GumbelCDF, Invert
from mycel.nn.probability.distribution import sampling
from mycel.nn.probability.distribution.base import Distribution
from mycel.nn.probability.distribution.continuous import (
    Normal,
    Uniform,
    normal_above,
    normal_below,
    normal_divergence,
    normal_log_prob,
)

__all__ = ["Gumbel", "LogNormal", "TransformedDistribution"]

_EULER = 0.5772156649015329


class TransformedDistribution(Distribution):
    """The distribution of `bijector.forward(x)` with x of `distribution`.

    Means and entropies are known where the derivative is constant.

    Args:
        bijector (Bijector): The function.
        distribution (Distribution): The distribution of what is mapped.
        seed (int | None): Starts a generator that replaces that of `distribution`; None or 0 to
            keep it. Default: None.
        name (str): The name in messages. Default: "transformed_distribution".

    Examples:
        >>> import mycel as ms
        >>> from mycel.nn.probability import bijector, distribution
        >>> made = distribution.TransformedDistribution(bijector.Exp(), distribution.Normal(0.0,
        ...     1.0))
        >>> made.cdf(ms.Tensor(1.0)).item()
        0.5
    """

    def __init__(
        self,
        bijector: Bijector,
        distribution: Distribution,
        seed: int | None = None,
        name: str = "transformed_distribution",
    ) -> None:
        arguments.text(type(self).__name__, "name", name)
        for what, value, kind in (("bijector", bijector, Bijector), ("distribution", distribution, Distribution)):
            arguments.instance(name, what, value, kind)
        super().__init__(seed, distribution.dtype, name, {"bijector": bijector, "distribution": distribution})
        self.bijector, self.distribution = bijector, distribution
        if seed:
            self.distribution._generator = self._generator
        self.broadcast_shape = distribution.broadcast_shape

    def _log_prob(self, value: Tensor, *own: Any) -> Tensor:
        inner = self.distribution.log_prob(self.bijector.inverse(value), *own)
        return inner + self.bijector.inverse_log_jacobian(value)

    def _cdf(self, value: Tensor, *own: Any) -> Tensor:
        x = self.bijector.inverse(value)
        above, below = self.distribution.survival_function(x, *own), self.distribution.cdf(x, *own)
        return ops.where(self.bijector.falls(), above, below)

    def _survival_function(self, value: Tensor, *own: Any) -> Tensor:
        x = self.bijector.inverse(value)
        above, below = self.distribution.survival_function(x, *own), self.distribution.cdf(x, *own)
        return ops.where(self.bijector.falls(), below, above)

    def _full(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        return function(*args, **kwargs)

    def _mean(self, *own: Any) -> Tensor:
        if not self.bijector.is_constant_jacobian:
            raise ValueError(f"{self.name}: the mean is known only where the bijector's derivative is constant")
        return self.bijector.forward(self.distribution.mean(*own))

    def _entropy(self, *own: Any) -> Tensor:
        if not self.bijector.is_constant_jacobian:
            raise self._undefined("entropy")
        inner = self.distribution.entropy(*own)
        return inner + self.bijector.forward_log_jacobian(ops.zeros_like(inner))

    def sample(self, shape: Any = (), *args: Any, **kwargs: Any) -> Tensor:
        """Return random values: the images of samples of the other distribution."""
        return self.bijector.forward(self.distribution.sample(shape, *args, **kwargs))

    def get_dist_type(self) -> str:
        """Return the kind of the distribution."""
        return type(self).__name__


class LogNormal(TransformedDistribution):
    """The distribution of exp(x) with x normal of mean `loc` and standard deviation `scale`.

    Args:
        loc (Tensor | float | None): The location; None to give it at each call. Default: None.
        scale (Tensor | float | None): The scale; None to give it at each call. Default: None.
        seed (int | None): The seed of its generator; None or 0 for the default one. Default: 0.
        dtype (DType | None): The element type of samples. Default: float32.
        name (str): Its name in messages. Default: "LogNormal".

    Examples:
        >>> import mycel as ms
        >>> ms.nn.probability.distribution.LogNormal(0.0, 1.0).cdf(ms.Tensor(1.0)).item()
        0.5
    """

    _names = ("loc", "scale")
    _shown = ("loc", "scale")

    def __init__(
        self,
        loc: Any = None,
        scale: Any = None,
        seed: int | None = 0,
        dtype: Any = D.float32,
        name: str = "LogNormal",
    ) -> None:
        super().__init__(Exp(), Normal(loc, scale, None, dtype), seed, name)
        self._check("Scale", scale)
        self._hold(loc=loc, scale=scale)

    _full = Distribution._full
    sample = Distribution.sample

    def _log_prob(self, value: Tensor, *own: Tensor) -> Tensor:
        inside = value > 0.0
        y = ops.log(ops.where(inside, value, 1.0))
        return ops.where(inside, normal_log_prob(y, *own) - y, -math.inf)

    def _cdf(self, value: Tensor, *own: Tensor) -> Tensor:
        return normal_below(ops.log(ops.relu(value)), *own)

    def _survival_function(self, value: Tensor, *own: Tensor) -> Tensor:
        return normal_above(ops.log(ops.relu(value)), *own)

    def _mean(self, m: Tensor, s: Tensor) -> Tensor:
        return ops.exp(m + s * s / 2.0)

    def _var(self, m: Tensor, s: Tensor) -> Tensor:
        return ops.expm1(s * s) * ops.exp(2.0 * m + s * s)

    def _mode(self, m: Tensor, s: Tensor) -> Tensor:
        return ops.exp(m - s * s)

    def _entropy(self, m: Tensor, s: Tensor) -> Tensor:
        return m + ops.log(s) + (0.5 + 0.5 * math.log(2.0 * math.pi))

    def _kl_loss(self, *both: Tensor) -> Tensor:
        return normal_divergence(*both)

    def _sample(self, shape: Any, m: Tensor, s: Tensor) -> Tensor:
        return ops.exp(sampling.standard_normal(shape, self._generator, self.parameter_type) * s + m)


class Gumbel(TransformedDistribution):
    """Gumbel's distribution of largest values, exp(-exp(-(x - loc) / scale)) (Gumbel, 1935).

    Args:
        loc (Tensor | float): The location.
        scale (Tensor | float): The scale.
        seed (int | None): The seed of its generator; None or 0 for the default one. Default: 0.
        dtype (DType | None): The element type of samples. Default: float32.
        name (str): Its name in messages. Default: "Gumbel".

    Examples:
        >>> import mycel as ms
        >>> f"{ms.nn.probability.distribution.Gumbel(0.0, 1.0).mean().item():.4f}"
        '0.5772'
    """

    _names = ("loc", "scale")
    _shown = ("loc", "scale")

    def __init__(
        self, loc: Any, scale: Any, seed: int | None = 0, dtype: Any = D.float32, name: str = "Gumbel"
    ) -> None:
        super().__init__(Invert(GumbelCDF(loc, scale)), Uniform(0.0, 1.0, None, dtype), seed, name)
        self._check("Scale", scale)
        self._hold(loc=loc, scale=scale)

    _full = Distribution._full
    sample = Distribution.sample

    def _log_prob(self, value: Tensor, m: Tensor, s: Tensor) -> Tensor:
        z = (value - m) / s
        return -z - ops.exp(-z) - ops.log(s)

    def _cdf(self, value: Tensor, m: Tensor, s: Tensor) -> Tensor:
        return ops.exp(self._log_cdf(value, m, s))

    def _log_cdf(self, value: Tensor, m: Tensor, s: Tensor) -> Tensor:
        return -ops.exp((m - value) / s)

    def _survival_function(self, value: Tensor, m: Tensor, s: Tensor) -> Tensor:
        return -ops.expm1(self._log_cdf(value, m, s))

    def _mean(self, m: Tensor, s: Tensor) -> Tensor:
        return m + s * _EULER

    def _mode(self, m: Tensor, s: Tensor) -> Tensor:
        return m

    def _sd(self, m: Tensor, s: Tensor) -> Tensor:
        return s * (math.pi / math.sqrt(6.0))

    def _entropy(self, m: Tensor, s: Tensor) -> Tensor:
        return ops.log(s) + (1.0 + _EULER)

    def _kl_loss(self, mb: Tensor, sb: Tensor, m: Tensor, s: Tensor) -> Tensor:
        ratio = s / sb
        far = ops.exp((mb - m) / sb + ops.lgamma(1.0 + ratio))
        return ops.log(sb / s) + _EULER * (ratio - 1.0) + (m - mb) / sb + far - 1.0

    def _sample(self, shape: Any, m: Tensor, s: Tensor) -> Tensor:
        noise = ops.log(sampling.exponential(shape, self._generator, D.float64)).astype(self.parameter_type)
        return m - noise * s
