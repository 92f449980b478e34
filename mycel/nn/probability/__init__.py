"""Probability distributions and the bijectors that transform them."""

from mycel._src.foundation.public_names import listing as _listing
from mycel.nn.probability import bijector as bijector
from mycel.nn.probability import distribution as distribution

__dir__ = _listing(__name__)
