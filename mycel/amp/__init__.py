"""Mixed precision: networks that compute partly in 16-bit floats, and loss scales that keep their
gradients from vanishing.
"""

from mycel._src.foundation.public_names import listing as _listing
from mycel._src.staging.compiled.jit import jit as jit
from mycel._src.staging.frontend.specialization.mutable_numbers import mutable as mutable
from mycel._src.tensors.core.parameter import Parameter as Parameter
from mycel._src.tensors.core.tensor import Tensor as Tensor
from mycel.amp.build import build_train_network as build_train_network
from mycel.amp.levels import auto_mixed_precision as auto_mixed_precision
from mycel.amp.levels import custom_mixed_precision as custom_mixed_precision
from mycel.amp.levels import get_black_list as get_black_list
from mycel.amp.levels import get_white_list as get_white_list
from mycel.amp.managers import DynamicLossScaleManager as DynamicLossScaleManager
from mycel.amp.managers import FixedLossScaleManager as FixedLossScaleManager
from mycel.amp.managers import LossScaleManager as LossScaleManager
from mycel.amp.scalers import AllFinite as AllFinite
from mycel.amp.scalers import DynamicLossScaler as DynamicLossScaler
from mycel.amp.scalers import LossScaler as LossScaler
from mycel.amp.scalers import StaticLossScaler as StaticLossScaler
from mycel.amp.scalers import all_finite as all_finite
from mycel.common.markers import constexpr as constexpr
from mycel.common.markers import jit_class as jit_class

__dir__ = _listing(__name__)
