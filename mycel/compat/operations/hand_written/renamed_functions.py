"""Public functions that serve names of which no rule of spelling tells it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel import mint, ops
from mycel.mint.nn import functional

__all__ = ["OTHER_NAMES"]

OTHER_NAMES: dict[str, Callable[..., Any]] = {
    "adds_ext": mint.add,
    "avg_pool2d": functional.avg_pool2d,
    "batch_mat_mul_ext": mint.bmm,
    "bool_not": ops.bool_not,
    "col2im_ext": functional.fold,
    "conv1d_padding": functional.conv1d,
    "conv2d_padding": functional.conv2d,
    "conv3d_padding": functional.conv3d,
    "count_nonzero": mint.count_nonzero,
    "div_mod": mint.div,
    "div_mods": mint.div,
    "divs": mint.div,
    "fill_scalar": mint.full,
    "fill_tensor": mint.full,
    "floor_div_scalar": mint.floor_divide,
    "floor_divides": mint.floor_divide,
    "im2col_ext": functional.unfold,
    "inner_moe_token_unpermute": ops.moe_token_unpermute,
    "matrix_inverse_ext": mint.inverse,
    "max": mint.max,
    "max_dim": mint.max,
    "median_dim": mint.median,
    "min": mint.min,
    "min_dim": mint.min,
    "muls": mint.mul,
    "npu_gelu": mint.npu_gelu,
    "repeat_interleave_int": mint.repeat_interleave,
    "repeat_interleave_tensor": mint.repeat_interleave,
}
