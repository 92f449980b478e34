"""`mindspore.device_context.gpu.op_precision`: settings of precision, without effect."""

from __future__ import annotations

from mycel.compat.device_settings import setting

__all__ = ["conv_allow_tf32", "matmul_allow_tf32"]

matmul_allow_tf32 = setting("GPU", "matmul_allow_tf32", bool)
conv_allow_tf32 = setting("GPU", "conv_allow_tf32", bool)
