"""`mindspore.device_context.ascend`: Ascend devices, of which there are none."""

from __future__ import annotations

from typing import NoReturn

from mycel.compat.inner.device_context.ascend.op_debug import aclinit_config, debug_option, execute_timeout
from mycel.compat.inner.device_context.ascend.op_precision import (
    conv_allow_hf32,
    matmul_allow_hf32,
    op_precision_mode,
    precision_mode,
)
from mycel.compat.inner.device_context.ascend.op_tuning import aclnn_cache, aoe_job_type, aoe_tune_mode, op_compile

__all__ = ["device_count", "is_available"]


def is_available() -> bool:
    """Return False: there is no such device."""
    return False


def device_count() -> NoReturn:
    """Raise RuntimeError, as MindSpore does without such a device."""
    raise RuntimeError("device_count: there is no Ascend device; mindspore.device_context.cpu has the CPU")
