"""`mindspore_gs.quantization`: training with rounding."""

from mycel.compat.golden_stick.quantization.simulated_quantization import SimulatedQuantizationAwareTraining

__all__ = ["SimulatedQuantizationAwareTraining"]
