"""The probability distributions."""

from mycel._src.foundation.public_names import listing as _listing
from mycel.nn.probability.distribution.base import Distribution as Distribution
from mycel.nn.probability.distribution.continuous import Cauchy as Cauchy
from mycel.nn.probability.distribution.continuous import HalfNormal as HalfNormal
from mycel.nn.probability.distribution.continuous import Laplace as Laplace
from mycel.nn.probability.distribution.continuous import Logistic as Logistic
from mycel.nn.probability.distribution.continuous import Normal as Normal
from mycel.nn.probability.distribution.continuous import StudentT as StudentT
from mycel.nn.probability.distribution.continuous import Uniform as Uniform
from mycel.nn.probability.distribution.discrete import Bernoulli as Bernoulli
from mycel.nn.probability.distribution.discrete import Categorical as Categorical
from mycel.nn.probability.distribution.discrete import Geometric as Geometric
from mycel.nn.probability.distribution.discrete import Poisson as Poisson
from mycel.nn.probability.distribution.positive import Beta as Beta
from mycel.nn.probability.distribution.positive import Exponential as Exponential
from mycel.nn.probability.distribution.positive import Gamma as Gamma
from mycel.nn.probability.distribution.transformed import Gumbel as Gumbel
from mycel.nn.probability.distribution.transformed import LogNormal as LogNormal
from mycel.nn.probability.distribution.transformed import TransformedDistribution as TransformedDistribution

__all__ = [
    "Bernoulli",
    "Beta",
    "Categorical",
    "Cauchy",
    "Distribution",
    "Exponential",
    "Gamma",
    "Geometric",
    "Gumbel",
    "HalfNormal",
    "Laplace",
    "LogNormal",
    "Logistic",
    "Normal",
    "Poisson",
    "StudentT",
    "TransformedDistribution",
    "Uniform",
]

__dir__ = _listing(__name__)
