"""`mindspore.device_context.gpu.op_tuning`: the algorithms of convolutions, without effect."""

from __future__ import annotations

from mycel.compat.device_settings import setting

__all__ = ["conv_dgrad_algo", "conv_fprop_algo", "conv_wgrad_algo"]

_ANY = ("normal", "performance")
_FORWARD = ("implicit_gemm", "precomp_gemm", "gemm", "direct", "fft", "fft_tiling", "winograd", "winograd_nonfused")
_INPUT = ("algo_0", "algo_1", "fft", "fft_tiling", "winograd", "winograd_nonfused")
_WEIGHT = ("algo_0", "algo_1", "fft", "algo_3", "fft_tiling", "winograd_nonfused")
conv_fprop_algo = setting("GPU", "conv_fprop_algo", str, (*_ANY, *_FORWARD), "mode")
conv_dgrad_algo = setting("GPU", "conv_dgrad_algo", str, (*_ANY, *_INPUT), "mode")
conv_wgrad_algo = setting("GPU", "conv_wgrad_algo", str, (*_ANY, *_WEIGHT), "mode")
