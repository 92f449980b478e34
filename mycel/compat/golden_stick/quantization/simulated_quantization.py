"""`mindspore_gs.quantization.simulated_quantization`."""

from __future__ import annotations

from typing import Any

from mycel._src.foundation import arguments
from mycel._src.tensors.cells.cell import Cell
from mycel.compat.golden_stick.algorithm import CompAlgo
from mycel.quantisation import quantisation_aware

__all__ = ["SimulatedQuantizationAwareTraining"]

_PAIRS = ("quant_delay", "quant_dtype", "per_channel", "symmetric", "narrow_range")
# For each option: that of values and that of weights.
_DEFAULTS: dict[str, Any] = {
    "act_quant_delay": 0,
    "weight_quant_delay": 0,
    "act_quant_dtype": None,
    "weight_quant_dtype": None,
    "act_per_channel": False,
    "weight_per_channel": True,
    "act_symmetric": False,
    "weight_symmetric": True,
    "act_narrow_range": False,
    "weight_narrow_range": False,
    "enable_fusion": False,
    "bn_fold": False,
    "freeze_bn": 10_000_000,
    "one_conv_fold": True,
}


class SimulatedQuantizationAwareTraining(CompAlgo):
    """Training of networks that round, as `mycel.quantisation.quantisation_aware` makes them.

    `config` has options by name, which the setters change as well. `quant_delay`, `quant_dtype`,
    `per_channel`, `symmetric` and `narrow_range` are two flags or values, for values and weights;
    the delays have to be one. `freeze_bn`, `bn_fold` are those of `quantisation_aware`;
    `one_conv_fold` is True only, as folding convolves once for the result. `enable_fusion` has no
    further effect: normalisations fold wherever they follow a layer. `convert` gives a network that
    rounds outside of training, of which `mycel.quantisation.quantise` makes integers.
    """

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        super().__init__(config)
        self._options = dict(_DEFAULTS)
        for name, value in (config or {}).items():
            self._configure(name, value)

    def _configure(self, name: str, value: Any) -> None:
        if name in _PAIRS:
            both = value if isinstance(value, (tuple, list)) else (value, value)
            if len(both) != 2:
                raise ValueError(f"SimulatedQuantizationAwareTraining: {name} must be one or two, not {value!r}")
            for part, one in zip(("act", "weight"), both):
                getattr(self, f"set_{part}_{name}")(one)
        elif name in ("enable_fusion", "bn_fold", "freeze_bn", "one_conv_fold"):
            getattr(self, f"set_{name}")(value)
        else:
            known = ", ".join((*_PAIRS, "enable_fusion", "bn_fold", "freeze_bn", "one_conv_fold"))
            raise ValueError(f"SimulatedQuantizationAwareTraining: there is no option {name!r}; there are {known}")

    def _flag(self, name: str, value: Any) -> None:
        self._options[name] = arguments.flag(type(self).__name__, name, value)

    def _count(self, name: str, value: Any) -> None:
        self._options[name] = arguments.integer(type(self).__name__, name, value, 0)

    def _dtype(self, name: str, value: Any) -> None:
        word = getattr(value, "name", str(value)).lower()
        if word != "int8":
            raise ValueError(f"SimulatedQuantizationAwareTraining: {name} must be INT8, not {value!r}")
        self._options[name] = value

    def set_act_quant_delay(self, act_quant_delay: int) -> None:
        """Set after how many batches values are rounded."""
        self._count("act_quant_delay", act_quant_delay)

    def set_weight_quant_delay(self, weight_quant_delay: int) -> None:
        """Set after how many batches weights are rounded."""
        self._count("weight_quant_delay", weight_quant_delay)

    def set_act_quant_dtype(self, act_quant_dtype: Any) -> None:
        """Set the type of values' steps: INT8."""
        self._dtype("act_quant_dtype", act_quant_dtype)

    def set_weight_quant_dtype(self, weight_quant_dtype: Any) -> None:
        """Set the type of weights' steps: INT8."""
        self._dtype("weight_quant_dtype", weight_quant_dtype)

    def set_act_per_channel(self, act_per_channel: bool) -> None:
        """Set whether values have a scale for each channel; only False is supported."""
        if arguments.flag(type(self).__name__, "act_per_channel", act_per_channel):
            raise ValueError("SimulatedQuantizationAwareTraining: act_per_channel must be False")

    def set_weight_per_channel(self, weight_per_channel: bool) -> None:
        """Set whether weights have a scale for each channel."""
        self._flag("weight_per_channel", weight_per_channel)

    def set_act_symmetric(self, act_symmetric: bool) -> None:
        """Set whether values have the zero point 0."""
        self._flag("act_symmetric", act_symmetric)

    def set_weight_symmetric(self, weight_symmetric: bool) -> None:
        """Set whether weights have the zero point 0; only True is supported."""
        if not arguments.flag(type(self).__name__, "weight_symmetric", weight_symmetric):
            raise ValueError("SimulatedQuantizationAwareTraining: weight_symmetric must be True")

    def set_act_narrow_range(self, act_narrow_range: bool) -> None:
        """Set whether values leave out the lowest step."""
        self._flag("act_narrow_range", act_narrow_range)

    def set_weight_narrow_range(self, weight_narrow_range: bool) -> None:
        """Set whether weights leave out the lowest step."""
        self._flag("weight_narrow_range", weight_narrow_range)

    def set_enable_fusion(self, enable_fusion: bool) -> None:
        """Set whether layers are fused first, which is so in any case."""
        self._flag("enable_fusion", enable_fusion)

    def set_bn_fold(self, bn_fold: bool) -> None:
        """Set whether normalisations fold while training."""
        self._flag("bn_fold", bn_fold)

    def set_freeze_bn(self, freeze_bn: int) -> None:
        """Set after how many batches folded normalisations use moving statistics."""
        self._count("freeze_bn", freeze_bn)

    def set_one_conv_fold(self, one_conv_fold: bool) -> None:
        """Set whether folding convolves once; only True is supported."""
        if not arguments.flag(type(self).__name__, "one_conv_fold", one_conv_fold):
            raise ValueError("SimulatedQuantizationAwareTraining: one_conv_fold must be True")

    def apply(self, network: Cell, **kwargs: Any) -> Cell:
        """Return the network with layers that round; layers are replaced in it."""
        o = self._options
        if kwargs:
            raise TypeError(f"SimulatedQuantizationAwareTraining.apply: unknown arguments {', '.join(kwargs)}")
        if o["act_quant_delay"] != o["weight_quant_delay"]:
            raise ValueError(
                "SimulatedQuantizationAwareTraining: act_quant_delay and weight_quant_delay must be equal, not "
                f"{o['act_quant_delay']} and {o['weight_quant_delay']}"
            )
        return quantisation_aware(
            network,
            quant_delay=o["act_quant_delay"],
            bn_fold=o["bn_fold"],
            freeze_bn=o["freeze_bn"],
            per_channel=(False, o["weight_per_channel"]),
            symmetric=(o["act_symmetric"], True),
            narrow_range=(o["act_narrow_range"], o["weight_narrow_range"]),
        )
