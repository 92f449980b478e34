"""Networks of few bits: quantised after training, or trained to be."""

from mycel.quantisation.network import Quantised, Report
from mycel.quantisation.post_training import Refused, quantise

__all__ = ["Quantised", "Refused", "Report", "quantise"]
