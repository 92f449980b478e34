"""Layers under the names and arguments of PyTorch, and the functions behind them."""

# isort: skip_file
from __future__ import annotations

from mycel._src.foundation.public_names import listing as _listing

from typing import Any

from mycel.nn import (
    BCELoss as BCELoss,
    Cell as Cell,
    CrossEntropyLoss as CrossEntropyLoss,
    Flatten as Flatten,
    Identity as Identity,
    L1Loss as L1Loss,
    Linear as Linear,
    LogSigmoid as LogSigmoid,
    MSELoss as MSELoss,
    Mish as Mish,
    NLLLoss as NLLLoss,
    PixelShuffle as PixelShuffle,
    ReLU as ReLU,
    Sigmoid as Sigmoid,
    Tanh as Tanh,
)
from mycel.mint.nn import functional as functional
from mycel.mint.nn._layers import *  # noqa: F403
from mycel.mint.nn._padding import (
    ConstantPad1d as ConstantPad1d,
    ConstantPad2d as ConstantPad2d,
    ConstantPad3d as ConstantPad3d,
    ReflectionPad1d as ReflectionPad1d,
    ReflectionPad2d as ReflectionPad2d,
    ReflectionPad3d as ReflectionPad3d,
    ReplicationPad1d as ReplicationPad1d,
    ReplicationPad2d as ReplicationPad2d,
    ReplicationPad3d as ReplicationPad3d,
    ZeroPad1d as ZeroPad1d,
    ZeroPad2d as ZeroPad2d,
    ZeroPad3d as ZeroPad3d,
)
from mycel.mint.nn._weighted import (
    BatchNorm1d as BatchNorm1d,
    BatchNorm2d as BatchNorm2d,
    BatchNorm3d as BatchNorm3d,
    Conv1d as Conv1d,
    Conv2d as Conv2d,
    Conv3d as Conv3d,
    ConvTranspose2d as ConvTranspose2d,
    Embedding as Embedding,
    GroupNorm as GroupNorm,
    LayerNorm as LayerNorm,
    PReLU as PReLU,
    SyncBatchNorm as SyncBatchNorm,
)
from mycel.mint.nn.functional import cross_entropy as cross_entropy
from mycel._src.tensors.core.tensor import Tensor as _Tensor

# The same under the names of MindSpore's operations.
kl_div_ext, mse_loss_ext, nllloss = functional.kl_div, functional.mse_loss, functional.nll_loss


def upsample_nearest2d_op(x: Any, output_size: Any = None, scales: Any = None) -> _Tensor:
    """Return images (N, C, H, W) resized to `output_size`, or by the factors `scales`, by the
    nearest element.

    >>> import mycel as ms
    >>> ms.mint.nn.upsample_nearest2d_op(ms.Tensor([[[[1.0, 3.0]]]]), (1, 4)).tolist()
    [[[[1.0, 1.0, 3.0, 3.0]]]]
    """
    return functional.interpolate(x, output_size, scales if output_size is None else None, "nearest")


def upsample_bilinear2d_op(x: Any, output_size: Any = None, scales: Any = None, align_corners: bool = False) -> _Tensor:
    """Return images resized by bilinear interpolation.

    Args:
        x (Tensor): (N, C, H, W).
        output_size (int | tuple[int, ...] | None): The new size. Default: None.
        scales (tuple[float, float] | None): The factors, instead of it. Default: None.
        align_corners (bool): Whether corner elements stay in place. Default: False.

    Returns:
        Tensor: (N, C, *output_size).

    Examples:
        >>> import mycel as ms
        >>> x = ms.Tensor([[[[1.0, 3.0]]]])
        >>> ms.mint.nn.upsample_bilinear2d_op(x, (1, 3), align_corners=True).tolist()
        [[[[1.0, 2.0, 3.0]]]]
    """
    return functional.interpolate(x, output_size, scales if output_size is None else None, "bilinear", align_corners)


__dir__ = _listing(__name__)
