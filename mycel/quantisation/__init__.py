"""Quantisation of networks: after training, or in training."""

from mycel._src.foundation.public_names import listing as _listing
from mycel.quantisation.bit_allocation import Mixed, mixed_bits
from mycel.quantisation.fake_quantisation import fake_quant
from mycel.quantisation.integer_conversion import integers
from mycel.quantisation.on_device_training import Learning, learning
from mycel.quantisation.post_training import Refused, quantise
from mycel.quantisation.quantisation_aware_training import quantisation_aware
from mycel.quantisation.quantised_network import Quantised, Report
from mycel.quantisation.weight_only import quantise_weights

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
