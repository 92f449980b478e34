"""Options of `mindspore_gs.ptq`."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

from mycel._src.foundation import dtype as D
from mycel.compat.golden_stick.common import BackendTarget

__all__ = [
    "GPTQQuantConfig",
    "OutliersSuppressionType",
    "PTQConfig",
    "PTQMode",
    "PrecisionRecovery",
    "QuantGranularity",
]


class PTQMode(enum.Enum):
    """Whether a network is quantised, or is made to load one that was."""

    QUANTIZE = "quantize"
    DEPLOY = "deploy"


class OutliersSuppressionType(enum.Enum):
    """How values are made easier to round."""

    SMOOTH = "smooth"
    AWQ = "awq"
    OUTLIER_SUPPRESSION_PLUS = "outlier-suppression+"
    OUTLIER_SUPPRESSION_LITE = "outlier-suppression-lite"
    NONE = "none"


class PrecisionRecovery(enum.Enum):
    """How weights are rounded, where not to the nearest step."""

    GPTQ = "gptq"
    NONE = "none"


class QuantGranularity(enum.Enum):
    """What has a scale of its own."""

    PER_TENSOR = "per_tensor"
    PER_CHANNEL = "per_channel"
    PER_TOKEN = "per_token"
    PER_GROUP = "per_group"


@dataclass
class GPTQQuantConfig:
    """Options of GPTQ; the order of inputs and the damping are those of Mycel."""

    block_size: int = 128
    desc_act: bool = False
    damp_percent: float = 0.01
    static_groups: bool = False


@dataclass
class PTQConfig:
    """What `PTQ` and `RoundToNearest` make of a network's dense layers.

    Names and defaults are those of the golden stick 1.4.1.
    """

    mode: PTQMode = PTQMode.QUANTIZE
    backend: BackendTarget = BackendTarget.ASCEND
    opname_blacklist: list[str] = field(default_factory=list)
    algo_args: Any = field(default_factory=dict)
    weight_quant_dtype: Any = D.int8
    kvcache_quant_dtype: Any = None
    act_quant_dtype: Any = None
    precision_recovery: PrecisionRecovery = PrecisionRecovery.NONE
    outliers_suppression: OutliersSuppressionType = OutliersSuppressionType.NONE
    weight_quant_granularity: QuantGranularity = QuantGranularity.PER_CHANNEL
    kvcache_quant_granularity: QuantGranularity = QuantGranularity.PER_CHANNEL
    act_quant_granularity: QuantGranularity = QuantGranularity.PER_TENSOR
    group_size: int = 0
    weight_clip: bool = False
