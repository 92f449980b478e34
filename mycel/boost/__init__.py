"""Training that does less work or needs less memory for the same model, by freezing, accumulating
or centralizing gradients.
"""

from __future__ import annotations

from mycel._src.foundation.public_names import listing as _listing
from mycel.boost.base import OptimizerProcess as OptimizerProcess
from mycel.boost.base import ParameterProcess as ParameterProcess
from mycel.boost.grad_accumulation import GradientAccumulation as GradientAccumulation
from mycel.boost.grad_freeze import FreezeOpt as FreezeOpt
from mycel.boost.grad_freeze import GradientFreeze as GradientFreeze
from mycel.boost.grad_freeze import freeze_cell as freeze_cell
from mycel.boost.steps import BoostTrainOneStepCell as BoostTrainOneStepCell
from mycel.boost.steps import BoostTrainOneStepWithLossScaleCell as BoostTrainOneStepWithLossScaleCell

__all__ = [
    "BoostTrainOneStepCell",
    "BoostTrainOneStepWithLossScaleCell",
    "FreezeOpt",
    "GradientAccumulation",
    "GradientFreeze",
    "OptimizerProcess",
    "ParameterProcess",
    "freeze_cell",
]

__dir__ = _listing(__name__)
