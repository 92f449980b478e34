"""`mindspore.device_context.ascend.op_precision`: settings of precision, without effect."""

from __future__ import annotations

from mycel.compat.device_settings import setting

__all__ = ["conv_allow_hf32", "matmul_allow_hf32", "op_precision_mode", "precision_mode"]

_MODES = (
    "force_fp16",
    "allow_fp32_to_fp16",
    "allow_mix_precision",
    "must_keep_origin_dtype",
    "force_fp32",
    "allow_fp32_to_bf16",
    "allow_mix_precision_fp16",
    "allow_mix_precision_bf16",
)
precision_mode = setting("Ascend", "precision_mode", str, _MODES, "mode")
op_precision_mode = setting("Ascend", "op_precision_mode", str, title="path")
matmul_allow_hf32 = setting("Ascend", "matmul_allow_hf32", bool)
conv_allow_hf32 = setting("Ascend", "conv_allow_hf32", bool)
