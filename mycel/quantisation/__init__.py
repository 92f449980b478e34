"""Networks of few bits: quantised after training, or trained to be."""

from mycel._src.foundation.public_names import listing as _listing
from mycel.quantisation.from_steps import integers
from mycel.quantisation.layers import fake_quant
from mycel.quantisation.mixed import Mixed, mixed_bits
from mycel.quantisation.network import Quantised, Report
from mycel.quantisation.on_device import Learning, learning
from mycel.quantisation.post_training import Refused, quantise
from mycel.quantisation.training import quantisation_aware
from mycel.quantisation.weights import quantise_weights

__all__ = [
    "Learning",
    "Mixed",
    "Quantised",
    "Refused",
    "Report",
    "fake_quant",
    "integers",
    "learning",
    "mixed_bits",
    "quantisation_aware",
    "quantise",
    "quantise_weights",
]

__dir__ = _listing(__name__)
