"""`mindspore`: what it shows at its top of its modules' own machinery."""

from __future__ import annotations

from mycel._src.staging.derivatives.custom_functions import CustomFunction as _Function
from mycel._src.staging.derivatives.custom_functions import no_gradients as _no_grad
from mycel.compat.inner._c_expression.typing import TypeNull as _NullType
from mycel.compat.inner._c_expression.typing import kTypeNull as _null
from mycel.compat.inner.common.api import flops_collection
from mycel.compat.inner.common.dtype import hifloat8, qint4x2
from mycel.compat.inner.common.file_system import mindio_preload

__all__ = ["_Function", "_NullType", "_no_grad", "_null", "flops_collection", "hifloat8", "mindio_preload", "qint4x2"]
