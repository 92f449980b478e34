"""Distributions with a location and a scale, and the uniform one.

Throughout, z is (x - location) / scale; formulas are those of Johnson, Kotz and Balakrishnan.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycel import ops
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor
from mycel.nn.probability.distribution import sampling
from mycel.nn.probability.distribution.base import FLOATS, Distribution, values_of
from mycel.ops.random_rejection import gamma_numbers

__all__ = ["Cauchy", "HalfNormal", "Laplace", "Logistic", "Normal", "StudentT", "Uniform"]

_ROOT_2 = math.sqrt(2.0)
_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)


def normal_log_prob(x: Tensor, m: Tensor, s: Tensor) -> Tensor:
    return -0.5 * ops.square((x - m) / s) - ops.log(s) - _LOG_ROOT_2PI


def normal_below(x: Tensor, m: Tensor, s: Tensor) -> Tensor:
    return 0.5 * ops.erfc((m - x) / (s * _ROOT_2))


def normal_above(x: Tensor, m: Tensor, s: Tensor) -> Tensor:
    return 0.5 * ops.erfc((x - m) / (s * _ROOT_2))


def normal_divergence(mb: Tensor, sb: Tensor, m: Tensor, s: Tensor) -> Tensor:
    """Return KL(N(m, s) || N(mb, sb)) for the means `m`, `mb` and standard deviations `s`, `sb`."""
    return ops.log(sb / s) + 0.5 * (ops.square(s / sb) + ops.square((m - mb) / sb)) - 0.5


class _Located(Distribution):
    """Base of distributions with a `mean` and an `sd`, or a `loc` and a `scale`.

    Raises ValueError for an `sd` or `scale` that is not positive.
    """

    def _located(self, location: Any, scale: Any) -> None:
        first, second = self._names[-2:]
        self._check("Standard deviation" if second == "sd" else "Scale", scale)
        self._hold(**{first: location, second: scale})


class Normal(_Located):
    """The normal distribution with a `mean` and a standard deviation `sd`.

    Args:
        mean (Tensor | float | None): The mean; None to give it at each call. Default: None.
        sd (Tensor | float | None): The standard deviation; None to give it at each call. Default:
            None.
        seed (int | None): The seed of its generator; None or 0 for the default one. Default: None.
        dtype (DType | None): The element type of samples. Default: float32.
        name (str): Its name in messages. Default: "Normal".

    Examples:
        >>> import mycel as ms
        >>> f"{ms.nn.probability.distribution.Normal(0.0, 1.0).cdf(ms.Tensor(1.0)).item():.4f}"
        '0.8413'
    """

    _names = ("mean", "sd")
    _types = FLOATS
    _shown = ("mean", "standard deviation")

    def __init__(
        self, mean: Any = None, sd: Any = None, seed: int | None = None, dtype: Any = D.float32, name: str = "Normal"
    ) -> None:
        super().__init__(seed, dtype, name, {"mean": mean, "sd": sd})
        self._located(mean, sd)

    def _log_prob(self, value: Tensor, *own: Tensor) -> Tensor:
        return normal_log_prob(value, *own)

    def _cdf(self, value: Tensor, *own: Tensor) -> Tensor:
        return normal_below(value, *own)

    def _survival_function(self, value: Tensor, *own: Tensor) -> Tensor:
        return normal_above(value, *own)

    def _mean(self, m: Tensor, s: Tensor) -> Tensor:
        return m

    def _mode(self, m: Tensor, s: Tensor) -> Tensor:
        return m

    def _sd(self, m: Tensor, s: Tensor) -> Tensor:
        return s

    def _entropy(self, m: Tensor, s: Tensor) -> Tensor:
        return ops.log(s) + (_LOG_ROOT_2PI + 0.5)

    def _kl_loss(self, *both: Tensor) -> Tensor:
        return normal_divergence(*both)

    def _sample(self, shape: Any, m: Tensor, s: Tensor) -> Tensor:
        return sampling.standard_normal(shape, self._generator, self.parameter_type) * s + m


class HalfNormal(_Located):
    """The distribution of mean + |x| with x normal of mean 0 and standard deviation `sd`.

    Args:
        mean (Tensor | float | None): Where the distribution begins; None to give it at each call.
            Default: None.
        sd (Tensor | float | None): The scale; None to give it at each call. Default: None.
        seed (int | None): The seed of its generator; None or 0 for the default one. Default: None.
        dtype (DType | None): The element type of samples. Default: float32.
        name (str): Its name in messages. Default: "HalfNormal".

    Examples:
        >>> import mycel as ms
        >>> f"{ms.nn.probability.distribution.HalfNormal(0.0, 1.0).prob(ms.Tensor(0.0)).item():.4f}"
        '0.7979'
    """

    _names = ("mean", "sd")
    _types = FLOATS

    def __init__(
        self,
        mean: Any = None,
        sd: Any = None,
        seed: int | None = None,
        dtype: Any = D.float32,
        name: str = "HalfNormal",
    ) -> None:
        super().__init__(seed, dtype, name, {"mean": mean, "sd": sd})
        self._located(mean, sd)

    def _log_prob(self, value: Tensor, m: Tensor, s: Tensor) -> Tensor:
        return ops.where(value >= m, normal_log_prob(value, m, s) + math.log(2.0), -math.inf)

    def _cdf(self, value: Tensor, m: Tensor, s: Tensor) -> Tensor:
        return ops.erf(ops.relu(value - m) / (s * _ROOT_2))

    def _survival_function(self, value: Tensor, m: Tensor, s: Tensor) -> Tensor:
        return ops.erfc(ops.relu(value - m) / (s * _ROOT_2))

    def _mean(self, m: Tensor, s: Tensor) -> Tensor:
        return m + s * math.sqrt(2.0 / math.pi)

    def _mode(self, m: Tensor, s: Tensor) -> Tensor:
        return m

    def _sd(self, m: Tensor, s: Tensor) -> Tensor:
        return s * math.sqrt(1.0 - 2.0 / math.pi)

    def _entropy(self, m: Tensor, s: Tensor) -> Tensor:
        return ops.log(s) + 0.5 * math.log(math.pi / 2.0) + 0.5

    def _sample(self, shape: Any, m: Tensor, s: Tensor) -> Tensor:
        return ops.abs(sampling.standard_normal(shape, self._generator, self.parameter_type)) * s + m


class Laplace(_Located):
    """The Laplace distribution exp(-|z|) / (2 scale) with location `mean`.

    As in MindSpore `sd` is the scale; the standard deviation is sqrt(2) times it.

    Args:
        mean (Tensor | float | None): The location; None to give it at each call. Default: None.
        sd (Tensor | float | None): The scale; None to give it at each call. Default: None.
        seed (int | None): The seed of its generator; None or 0 for the default one. Default: None.
        dtype (DType | None): The element type of samples. Default: float32.
        name (str): Its name in messages. Default: "Laplace".

    Examples:
        >>> import mycel as ms
        >>> ms.nn.probability.distribution.Laplace(0.0, 1.0).prob(ms.Tensor(0.0)).item()
        0.5
    """

    _names = ("mean", "sd")
    _types = FLOATS

    def __init__(
        self,
        mean: Any = None,
        sd: Any = None,
        seed: int | None = None,
        dtype: Any = D.float32,
        name: str = "Laplace",
    ) -> None:
        super().__init__(seed, dtype, name, {"mean": mean, "sd": sd})
        self._located(mean, sd)

    def _log_prob(self, value: Tensor, m: Tensor, s: Tensor) -> Tensor:
        return -ops.abs(value - m) / s - ops.log(s * 2.0)

    def _cdf(self, value: Tensor, m: Tensor, s: Tensor) -> Tensor:
        tail = 0.5 * ops.exp(-ops.abs(value - m) / s)
        return ops.where(value < m, tail, 1.0 - tail)

    def _survival_function(self, value: Tensor, m: Tensor, s: Tensor) -> Tensor:
        return self._cdf(m * 2.0 - value, m, s)

    def _mean(self, m: Tensor, s: Tensor) -> Tensor:
        return m

    def _mode(self, m: Tensor, s: Tensor) -> Tensor:
        return m

    def _sd(self, m: Tensor, s: Tensor) -> Tensor:
        return s * _ROOT_2

    def _entropy(self, m: Tensor, s: Tensor) -> Tensor:
        return ops.log(s * 2.0) + 1.0

    def _kl_loss(self, mb: Tensor, sb: Tensor, m: Tensor, s: Tensor) -> Tensor:
        far = ops.abs(m - mb)
        return ops.log(sb / s) + (far + s * ops.exp(-far / s)) / sb - 1.0

    def _sample(self, shape: Any, m: Tensor, s: Tensor) -> Tensor:
        u = sampling.open_uniform(shape, self._generator) - 0.5
        drawn = -ops.sign(u) * ops.log1p(-2.0 * ops.abs(u))
        return drawn.astype(self.parameter_type) * s + m


class Cauchy(_Located):
    """The Cauchy distribution with median `loc` and a `scale`.

    It has neither a mean nor a variance: both raise ValueError.

    Args:
        loc (Tensor | float | None): The location; None to give it at each call. Default: None.
        scale (Tensor | float | None): The scale; None to give it at each call. Default: None.
        seed (int | None): The seed of its generator; None or 0 for the default one. Default: None.
        dtype (DType | None): The element type of samples. Default: float32.
        name (str): Its name in messages. Default: "Cauchy".

    Examples:
        >>> import mycel as ms
        >>> ms.nn.probability.distribution.Cauchy(0.0, 1.0).cdf(ms.Tensor(0.0)).item()
        0.5
    """

    _names = ("loc", "scale")
    _types = FLOATS
    _shown = ("location", "scale")

    def __init__(
        self,
        loc: Any = None,
        scale: Any = None,
        seed: int | None = None,
        dtype: Any = D.float32,
        name: str = "Cauchy",
    ) -> None:
        super().__init__(seed, dtype, name, {"loc": loc, "scale": scale})
        self._located(loc, scale)

    def _log_prob(self, value: Tensor, m: Tensor, s: Tensor) -> Tensor:
        return -ops.log1p(ops.square((value - m) / s)) - ops.log(s * math.pi)

    def _cdf(self, value: Tensor, m: Tensor, s: Tensor) -> Tensor:
        return ops.atan2(s, m - value) / math.pi

    def _survival_function(self, value: Tensor, m: Tensor, s: Tensor) -> Tensor:
        return ops.atan2(s, value - m) / math.pi

    def _mean(self, *own: Tensor) -> Tensor:
        raise ValueError("mean is undefined for the Cauchy distribution; its median is mode()")

    def _sd(self, *own: Tensor) -> Tensor:
        raise ValueError("sd is undefined for the Cauchy distribution")

    def _var(self, *own: Tensor) -> Tensor:
        raise ValueError("var is undefined for the Cauchy distribution")

    def _mode(self, m: Tensor, s: Tensor) -> Tensor:
        return m

    def _entropy(self, m: Tensor, s: Tensor) -> Tensor:
        return ops.log(s * (4.0 * math.pi))

    def _kl_loss(self, mb: Tensor, sb: Tensor, m: Tensor, s: Tensor) -> Tensor:
        return ops.log((ops.square(s + sb) + ops.square(m - mb)) / (4.0 * s * sb))

    def _sample(self, shape: Any, m: Tensor, s: Tensor) -> Tensor:
        drawn = ops.tan((sampling.open_uniform(shape, self._generator) - 0.5) * math.pi)
        return drawn.astype(self.parameter_type) * s + m


class Logistic(_Located):
    """The logistic distribution with location `loc` and a `scale`, whose distribution function is
    the sigmoid of z.

    Args:
        loc (Tensor | float | None): The location; None to give it at each call. Default: None.
        scale (Tensor | float | None): The scale; None to give it at each call. Default: None.
        seed (int | None): The seed of its generator; None or 0 for the default one. Default: None.
        dtype (DType | None): The element type of samples. Default: float32.
        name (str): Its name in messages. Default: "Logistic".

    Examples:
        >>> import mycel as ms
        >>> ms.nn.probability.distribution.Logistic(0.0, 1.0).cdf(ms.Tensor(0.0)).item()
        0.5
    """

    _names = ("loc", "scale")
    _types = FLOATS
    _shown = ("location", "scale")

    def __init__(
        self,
        loc: Any = None,
        scale: Any = None,
        seed: int | None = None,
        dtype: Any = D.float32,
        name: str = "Logistic",
    ) -> None:
        super().__init__(seed, dtype, name, {"loc": loc, "scale": scale})
        self._located(loc, scale)

    def _log_prob(self, value: Tensor, m: Tensor, s: Tensor) -> Tensor:
        z = (value - m) / s
        return ops.logsigmoid(z) + ops.logsigmoid(-z) - ops.log(s)

    def _cdf(self, value: Tensor, m: Tensor, s: Tensor) -> Tensor:
        return ops.sigmoid((value - m) / s)

    def _log_cdf(self, value: Tensor, m: Tensor, s: Tensor) -> Tensor:
        return ops.logsigmoid((value - m) / s)

    def _survival_function(self, value: Tensor, m: Tensor, s: Tensor) -> Tensor:
        return ops.sigmoid((m - value) / s)

    def _log_survival(self, value: Tensor, m: Tensor, s: Tensor) -> Tensor:
        return ops.logsigmoid((m - value) / s)

    def _mean(self, m: Tensor, s: Tensor) -> Tensor:
        return m

    def _mode(self, m: Tensor, s: Tensor) -> Tensor:
        return m

    def _sd(self, m: Tensor, s: Tensor) -> Tensor:
        return s * (math.pi / math.sqrt(3.0))

    def _entropy(self, m: Tensor, s: Tensor) -> Tensor:
        return ops.log(s) + 2.0

    def _sample(self, shape: Any, m: Tensor, s: Tensor) -> Tensor:
        u = sampling.open_uniform(shape, self._generator)
        return (ops.log(u) - ops.log1p(-u)).astype(self.parameter_type) * s + m


class StudentT(_Located):
    """Student's distribution with `df` degrees of freedom, location `mean` and scale `sd`, which is
    not the standard deviation.

    The mean is NaN for df <= 1; the variance is NaN for df <= 1 and infinite for 1 < df <= 2.

    Args:
        df (Tensor | float | None): The degrees of freedom; None to give it at each call. Default:
            None.
        mean (Tensor | float | None): The location; None to give it at each call. Default: None.
        sd (Tensor | float | None): The scale; None to give it at each call. Default: None.
        seed (int | None): The seed of its generator; None or 0 for the default one. Default: None.
        dtype (DType | None): The element type of samples. Default: float32.
        name (str): Its name in messages. Default: "StudentT".

    Examples:
        >>> import mycel as ms
        >>> student = ms.nn.probability.distribution.StudentT(3.0, 0.0, 1.0)
        >>> f"{student.prob(ms.Tensor(0.0)).item():.4f}"
        '0.3676'
    """

    _names = ("df", "mean", "sd")
    _types = FLOATS

    def __init__(
        self,
        df: Any = None,
        mean: Any = None,
        sd: Any = None,
        seed: int | None = None,
        dtype: Any = D.float32,
        name: str = "StudentT",
    ) -> None:
        super().__init__(seed, dtype, name, {"df": df, "mean": mean, "sd": sd})
        self._check("Degrees of freedom", df)
        self._hold(df=df)
        self._located(mean, sd)

    def _log_prob(self, value: Tensor, v: Tensor, m: Tensor, s: Tensor) -> Tensor:
        z = (value - m) / s
        half = (v + 1.0) / 2.0
        constant = ops.lgamma(half) - ops.lgamma(v / 2.0) - 0.5 * ops.log(v * math.pi) - ops.log(s)
        return constant - half * ops.log1p(z * z / v)

    def _mean(self, v: Tensor, m: Tensor, s: Tensor) -> Tensor:
        return ops.where(v > 1.0, m, math.nan)

    def _var(self, v: Tensor, m: Tensor, s: Tensor) -> Tensor:
        found = ops.where(v > 2.0, s * s * v / ops.where(v > 2.0, v - 2.0, 1.0), math.inf)
        return ops.where(v > 1.0, found, math.nan)

    def _mode(self, v: Tensor, m: Tensor, s: Tensor) -> Tensor:
        return ops.where(v > 0.0, m, m)

    def _entropy(self, v: Tensor, m: Tensor, s: Tensor) -> Tensor:
        half = (v + 1.0) / 2.0
        beta = ops.lgamma(v / 2.0) + 0.5 * math.log(math.pi) - ops.lgamma(half)
        return half * (ops.digamma(half) - ops.digamma(v / 2.0)) + 0.5 * ops.log(v) + beta + ops.log(s)

    def _sample(self, shape: Any, v: Tensor, m: Tensor, s: Tensor) -> Tensor:
        normal = sampling.standard_normal(shape, self._generator, self.parameter_type)
        half = gamma_numbers(shape, v / 2.0, self._generator, self.parameter_type)
        return normal * ops.sqrt(v / 2.0 / half) * s + m


class Uniform(Distribution):
    """The uniform distribution over [low, high].

    Args:
        low (Tensor | float | None): A bound; None to give it at each call. Default: None.
        high (Tensor | float | None): A bound; None to give it at each call. Default: None.
        seed (int | None): The seed of its generator; None or 0 for the default one. Default: None.
        dtype (DType | None): The element type of samples. Default: float32.
        name (str): Its name in messages. Default: "Uniform".

    Raises:
        ValueError: Unless low < high.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.probability.distribution.Uniform(0.0, 2.0).prob(ms.Tensor(1.0)).item()
        0.5
    """

    _names = ("low", "high")
    _types = FLOATS
    _shown = ("low", "high")

    def __init__(
        self,
        low: Any = None,
        high: Any = None,
        seed: int | None = None,
        dtype: Any = D.float32,
        name: str = "Uniform",
    ) -> None:
        super().__init__(seed, dtype, name, {"low": low, "high": high})
        for word, value in (("low", low), ("high", high)):
            self._of_numbers(word, value)
        least, most = values_of(low), values_of(high)
        if least is not None and most is not None and not np.all(np.asarray(least) < np.asarray(most)):
            raise ValueError(f"{name}: low must be less than high, not {low} and {high}")
        self._hold(low=low, high=high)

    def _inside(self, value: Tensor, low: Tensor, high: Tensor) -> Tensor:
        return ops.logical_and(value >= low, value <= high)

    def _log_prob(self, value: Tensor, low: Tensor, high: Tensor) -> Tensor:
        return ops.where(self._inside(value, low, high), -ops.log(high - low), -math.inf)

    def _prob(self, value: Tensor, low: Tensor, high: Tensor) -> Tensor:
        return ops.where(self._inside(value, low, high), 1.0 / (high - low), 0.0)

    def _cdf(self, value: Tensor, low: Tensor, high: Tensor) -> Tensor:
        return ops.clamp((value - low) / (high - low), 0.0, 1.0)

    def _mean(self, low: Tensor, high: Tensor) -> Tensor:
        return (low + high) / 2.0

    def _sd(self, low: Tensor, high: Tensor) -> Tensor:
        return (high - low) / math.sqrt(12.0)

    def _entropy(self, low: Tensor, high: Tensor) -> Tensor:
        return ops.log(high - low)

    def _kl_loss(self, low_b: Tensor, high_b: Tensor, low: Tensor, high: Tensor) -> Tensor:
        within = ops.logical_and(low_b <= low, high <= high_b)
        return ops.where(within, ops.log((high_b - low_b) / (high - low)), math.inf)

    def _sample(self, shape: Any, low: Tensor, high: Tensor) -> Tensor:
        return sampling.unit(shape, self._generator, self.parameter_type) * (high - low) + low
