"""Bijectors: functions with an inverse and the logarithms of their derivatives."""

from mycel._src.foundation.public_names import listing as _listing
from mycel.nn.probability.bijector.base import Bijector as Bijector
from mycel.nn.probability.bijector.scalar import Exp as Exp
from mycel.nn.probability.bijector.scalar import GumbelCDF as GumbelCDF
from mycel.nn.probability.bijector.scalar import Invert as Invert
from mycel.nn.probability.bijector.scalar import PowerTransform as PowerTransform
from mycel.nn.probability.bijector.scalar import ScalarAffine as ScalarAffine
from mycel.nn.probability.bijector.scalar import Softplus as Softplus

__all__ = ["Bijector", "Exp", "GumbelCDF", "Invert", "PowerTransform", "ScalarAffine", "Softplus"]

__dir__ = _listing(__name__)
