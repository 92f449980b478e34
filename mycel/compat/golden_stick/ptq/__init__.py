"""`mindspore_gs.ptq`: quantisation after training."""

from mycel.compat.golden_stick.ptq.config import (
    GPTQQuantConfig,
    OutliersSuppressionType,
    PrecisionRecovery,
    PTQConfig,
    PTQMode,
    QuantGranularity,
)
from mycel.compat.golden_stick.ptq.ptq import PTQ, RoundToNearest

__all__ = [
    "GPTQQuantConfig",
    "OutliersSuppressionType",
    "PTQ",
    "PTQConfig",
    "PTQMode",
    "PrecisionRecovery",
    "QuantGranularity",
    "RoundToNearest",
]
