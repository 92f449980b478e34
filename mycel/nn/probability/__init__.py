"""Probability distributions and the bijectors that transform them."""

from mycel.nn.probability import bijector as bijector
from mycel.nn.probability import distribution as distribution
