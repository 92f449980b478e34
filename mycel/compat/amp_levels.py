"""`mindspore.train.amp`: the levels of mixed precision as settings, and the functions that apply
them, for libraries that build their own training steps.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any

from mycel import nn, ops
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.precision import Precision
from mycel.amp import get_black_list, get_white_list
from mycel.amp.build import WideLoss
from mycel.amp.levels import custom_mixed_precision, keep_wide
from mycel.amp.managers import DynamicLossScaleManager

__all__: list[str] = []

_config_level: dict[str, dict[str, Any]] = {
    "O0": {"keep_batchnorm_fp32": False, "cast_model_type": D.float32, "loss_scale_manager": None},
    "O1": {"keep_batchnorm_fp32": False, "cast_model_type": D.float32, "loss_scale_manager": None},
    "O2": {"keep_batchnorm_fp32": True, "cast_model_type": D.float16, "loss_scale_manager": DynamicLossScaleManager()},
    "O3": {"keep_batchnorm_fp32": False, "cast_model_type": D.float16, "loss_scale_manager": None},
    "auto": {"keep_batchnorm_fp32": False, "cast_model_type": D.float32, "loss_scale_manager": None},
}


def _named(names: str) -> list[Any]:
    return [getattr(ops, name) for name in names.split() if hasattr(ops, name)]


AMP_WHITE_LIST, AMP_BLACK_LIST = get_white_list(), get_black_list()
_INNER_AMP_BLACK_LIST: list[Any] = []
MS_AMP_BY_REWRITE = False
# The operations that the level "auto" computes in the narrow type, and those that it does not.
AMP_AUTO_WHITE_LIST = _named(
    "Conv2D Conv3D ConvTranspose2D Conv2DTranspose Conv3DTranspose MatMul BatchMatMul PReLU Einsum Dense"
)
AMP_AUTO_BLACK_LIST = _named(
    "Pow ACos Asin Cosh Erfinv Exp Expm1 Log Log1p Log2 Reciprocal Rsqrt Sinh Tan Softplus LayerNorm BatchNorm "
    "GroupNorm KLDivLoss SmoothL1Loss MultilabelMarginLoss SoftMarginLoss TripletMarginLoss MultiMarginLoss "
    "BCEWithLogitsLoss Cdist Renorm ReduceProd Softmax LogSoftmax CumProd CumSum NLLLoss"
)
AMP_PRIM_ARG_TABLE: dict[Any, list[int]] = collections.defaultdict(list)


def _do_keep_batchnorm_fp32(network: Cell) -> None:
    """Set normalization layers to compute in float32."""
    keep_wide(network, get_black_list(), D.float16)


def _add_loss_network(network: Cell, loss_fn: Cell, cast_model_type: Any) -> Cell:
    """Return a network with its loss, which is computed in float32 if the network is not."""
    return WideLoss(network, loss_fn) if cast_model_type is D.float16 else nn.WithLossCell(network, loss_fn)


def _auto_black_list(network: Cell, black_list: Sequence[type[Cell]], dtype: DType) -> Cell:
    """Set a network to compute in `dtype`, but the layers of a list below it, and return it.

    Listed layers compute in float32 and give `dtype`, as the network does. The network itself is
    not looked up in the list.
    """
    network.to_float(dtype)
    for cell in network.cells():
        if isinstance(cell, tuple(black_list)):
            cell.to_float(D.float32)
            cell._cast_to = Precision(D.float32, dtype)
        else:
            _auto_black_list(cell, black_list, dtype)
    return network


def _auto_mixed_precision_rewrite(
    network: Cell,
    dtype: DType,
    *,
    white_list: list[Any] | None = None,
    black_list: list[Any] | None = None,
) -> Cell:
    """Set a network to compute in mixed precision by one of two lists of classes, and return it.

    It is changed in place, where MindSpore writes another. `dtype` is the narrow type. The classes
    of `white_list` compute in it, or all but those of `black_list`.
    """
    return custom_mixed_precision(network, white_list=white_list, black_list=black_list, dtype=dtype)
