"""Modules of `mindspore.common`."""

from __future__ import annotations

from mycel._src.staging.derivatives.custom_functions import CustomFunction as _Function
from mycel._src.staging.derivatives.custom_functions import no_gradients as _no_grad

__all__ = ["_Function", "_no_grad"]
