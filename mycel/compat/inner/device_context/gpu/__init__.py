"""`mindspore.device_context.gpu`: GPUs, of which there are none."""

from __future__ import annotations

from typing import NoReturn

from mycel.compat.inner.device_context.gpu.op_precision import conv_allow_tf32, matmul_allow_tf32
from mycel.compat.inner.device_context.gpu.op_tuning import conv_dgrad_algo, conv_fprop_algo, conv_wgrad_algo

__all__ = ["device_count", "is_available"]


def is_available() -> bool:
    """Return False: there is no such device."""
    return False


def device_count() -> NoReturn:
    """Raise RuntimeError, as MindSpore does without such a device."""
    raise RuntimeError("device_count: there is no GPU; mindspore.device_context.cpu has the CPU")
