"""Layers without weights: each is one row of a table, a function of `mycel.mint.nn.functional` and
the arguments that its constructor takes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from mycel.cells.cell import Cell
from mycel.core.tensor import Tensor
from mycel.mint.nn import functional as F

__all__: list[str] = []

_NEEDED: Any = inspect.Parameter.empty


def _define(name: str, function: Callable[..., Any], text: str, example: tuple[str, str], **parameters: Any) -> None:
    """A Cell that keeps its arguments as attributes and calls ``function(*inputs, **arguments)``,
    with the phase where that has a `training`.
    """
    given = [inspect.Parameter(k, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=v) for k, v in parameters.items()]
    signature = inspect.Signature(given)
    phase = "training" in inspect.signature(function).parameters

    def start(self: Cell, *args: Any, **named: Any) -> None:
        Cell.__init__(self)
        try:
            bound = signature.bind(*args, **named)
        except TypeError as error:
            raise TypeError(f"{name}: {error}; the parameters are {signature}") from None
        bound.apply_defaults()
        for k, v in bound.arguments.items():
            setattr(self, k, v)

    def construct(self: Cell, *inputs: Any, **named: Any) -> Any:
        if phase:
            named["training"] = self.training
        return function(*inputs, **{k: getattr(self, k) for k in parameters}, **named)

    def extend_repr(self: Cell) -> str:
        shown = ((k, getattr(self, k)) for k in parameters)
        return ", ".join(f"{k}={v.shape if isinstance(v, Tensor) else v!r}" for k, v in shown)

    call, result = example
    doc = f"{text}\n\n    >>> import mycel as ms\n    >>> ms.mint.nn.{call}\n    {result}\n    "
    members = {
        "__init__": start,
        "construct": construct,
        "extend_repr": extend_repr,
        "__doc__": doc,
        "__module__": __name__,
        "__signature__": signature,
    }
    globals()[name] = type(name, (Cell,), members)
    __all__.append(name)


def _bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Tensor:
    return F.interpolate(input, size, scale_factor, "bilinear", True)


def _nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Tensor:
    return F.interpolate(input, size, scale_factor, "nearest")


def _zeros(rank: int) -> Callable[..., Tensor]:
    def padded(input: Any, padding: Any) -> Tensor:
        amounts = tuple(padding) if isinstance(padding, (tuple, list)) else (padding,) * (2 * rank)
        if len(amounts) != 2 * rank:
            raise ValueError(f"ZeroPad{rank}d: padding must be an int or {2 * rank} of them, not {padding!r}")
        return F.pad(input, amounts)

    return padded


_WINDOWS: dict[str, Any] = {
    "kernel_size": _NEEDED,
    "stride": None,
    "padding": 0,
    "ceil_mode": False,
    "count_include_pad": True,
}
_BLOCKS: dict[str, Any] = {"kernel_size": _NEEDED, "dilation": 1, "padding": 0, "stride": 1}
_PAIR = "(ms.Tensor([1.0, 3.0]))"

_define(
    "ELU",
    F.elu,
    "x where it is positive, else ``alpha * (exp(x) - 1)`` (Clevert et al., 2015).",
    ("ELU(0.0)(ms.Tensor([2.0])).tolist()", "[2.0]"),
    alpha=1.0,
    inplace=False,
)
_define(
    "GELU",
    F.gelu,
    "The Gaussian error linear unit; `approximate` is 'none' or 'tanh' (Hendrycks and Gimpel, 2016).",
    ("GELU()(ms.Tensor([0.0])).tolist()", "[0.0]"),
    approximate="none",
)
_define(
    "GLU",
    F.glu,
    "The first half along `dim` times the sigmoid of the second (Dauphin et al., 2016).",
    ("GLU()(ms.Tensor([4.0, 0.0])).tolist()", "[2.0]"),
    dim=-1,
)
_define(
    "Hardshrink",
    F.hardshrink,
    "0 where x is within [-lambd, lambd], else x.",
    ("Hardshrink()(ms.Tensor([0.25, 2.0])).tolist()", "[0.0, 2.0]"),
    lambd=0.5,
)
_define(
    "Hardsigmoid",
    F.hardsigmoid,
    "min(max(x / 6 + 1 / 2, 0), 1).",
    ("Hardsigmoid()(ms.Tensor([0.0])).tolist()", "[0.5]"),
)
_define(
    "Hardswish",
    F.hardswish,
    "x min(max(x + 3, 0), 6) / 6 (Howard et al., 2019).",
    ("Hardswish()(ms.Tensor([-4.0, 4.0])).tolist()", "[-0.0, 4.0]"),
)
_define(
    "Hardtanh",
    F.hardtanh,
    "x, but at least `min_val` and at most `max_val`.",
    ("Hardtanh()(ms.Tensor([-3.0, 0.5])).tolist()", "[-1.0, 0.5]"),
    min_val=-1.0,
    max_val=1.0,
    inplace=False,
)
_define(
    "LogSoftmax",
    F.log_softmax,
    "The logarithm of the soft-max along `dim`; see `mycel.mint.nn.functional.softmax` for the axis where it is None.",
    ("LogSoftmax()(ms.Tensor([0.0])).tolist()", "[0.0]"),
    dim=None,
)
_define(
    "Softmax",
    F.softmax,
    "exp(x) over its sum along `dim`; see `mycel.mint.nn.functional.softmax` for the axis where it is None.",
    ("Softmax()(ms.Tensor([1.0, 1.0])).tolist()", "[0.5, 0.5]"),
    dim=None,
)
_define(
    "ReLU6", F.relu6, "min(max(x, 0), 6).", ("ReLU6()(ms.Tensor([-1.0, 8.0])).tolist()", "[0.0, 6.0]"), inplace=False
)
_define(
    "SELU",
    F.selu,
    "A scaled ELU that keeps mean and variance (Klambauer et al., 2017).",
    ("SELU()(ms.Tensor([0.0])).tolist()", "[0.0]"),
)
_define(
    "SiLU",
    F.silu,
    "x times its sigmoid (Elfwing et al., 2017).",
    ("SiLU()(ms.Tensor([0.0])).tolist()", "[0.0]"),
    inplace=False,
)
_define(
    "Softshrink",
    F.softshrink,
    "x drawn towards 0 by `lambd`, and 0 where it would pass it.",
    ("Softshrink()(ms.Tensor([0.25, 2.0])).tolist()", "[0.0, 1.5]"),
    lambd=0.5,
)
_define(
    "Threshold",
    F.threshold,
    "x where it is above `threshold`, else `value`.",
    ("Threshold(2.0, 9.0)(ms.Tensor([1.0, 3.0])).tolist()", "[9.0, 3.0]"),
    threshold=_NEEDED,
    value=_NEEDED,
    inplace=False,
)
_define(
    "Dropout",
    F.dropout,
    "In training each element is 0 with probability `p`, and the others are divided by 1 - p (Srivastava et al., 2014).",
    (f"Dropout(){_PAIR}.tolist()", "[1.0, 3.0]"),
    p=0.5,
    inplace=False,
)
_define(
    "Dropout2d",
    F.dropout2d,
    "`Dropout` of whole channels of (N, C, H, W) or (C, H, W).",
    ("Dropout2d()(ms.ops.ones((1, 2, 3, 3))).shape", "(1, 2, 3, 3)"),
    p=0.5,
    inplace=False,
)

_define(
    "AdaptiveMaxPool1d",
    F.adaptive_max_pool1d,
    "(N, C, L) pooled by maxima to length `output_size`; with `return_indices` also their positions.",
    ("AdaptiveMaxPool1d(1)(ms.Tensor([[[1.0, 3.0]]])).tolist()", "[[[3.0]]]"),
    output_size=_NEEDED,
    return_indices=False,
)
_define(
    "AdaptiveMaxPool2d",
    F.adaptive_max_pool2d,
    "(N, C, H, W) pooled by maxima to `output_size`; with `return_indices` also positions in H * W.",
    ("AdaptiveMaxPool2d(1)(ms.Tensor([[[[1.0, 3.0]]]])).tolist()", "[[[[3.0]]]]"),
    output_size=_NEEDED,
    return_indices=False,
)
_define(
    "AvgPool1d",
    F.avg_pool1d,
    "Means over the windows of (N, C, L); the stride is the window where it is None.",
    ("AvgPool1d(2)(ms.Tensor([[[1.0, 3.0]]])).tolist()", "[[[2.0]]]"),
    **_WINDOWS,
)
_define(
    "AvgPool2d",
    F.avg_pool2d,
    "Means over the windows of (N, C, H, W); `divisor_override` divides instead of the number of elements.",
    ("AvgPool2d((1, 2))(ms.Tensor([[[[1.0, 3.0]]]])).tolist()", "[[[[2.0]]]]"),
    **_WINDOWS,
    divisor_override=None,
)
_define(
    "AvgPool3d",
    F.avg_pool3d,
    "Means over the windows of (N, C, D, H, W); `divisor_override` divides instead of the number of elements.",
    ("AvgPool3d(2)(ms.ops.ones((1, 1, 2, 2, 2))).tolist()", "[[[[[1.0]]]]]"),
    **_WINDOWS,
    divisor_override=None,
)
_define(
    "MaxPool2d",
    F.max_pool2d,
    "The largest element of each window of (N, C, H, W); with `return_indices` also its position in H * W.",
    ("MaxPool2d((1, 2))(ms.Tensor([[[[1.0, 3.0]]]])).tolist()", "[[[[3.0]]]]"),
    kernel_size=1,
    stride=None,
    padding=0,
    dilation=1,
    return_indices=False,
    ceil_mode=False,
)
_define(
    "MaxUnpool2d",
    F.max_unpool2d,
    "The maxima of `MaxPool2d` back at their positions in an image of zeros; called with them, the indices and "
    "optionally `output_size`.",
    ("MaxUnpool2d((1, 2))(ms.Tensor([[[[3.0]]]]), ms.Tensor([[[[1]]]])).tolist()", "[[[[0.0, 3.0]]]]"),
    kernel_size=_NEEDED,
    stride=None,
    padding=0,
)
_define(
    "Fold",
    F.fold,
    "Blocks, the columns of (N, C * block, L), added up where they overlap in images of `output_size`.",
    ("Fold((2, 2), 1)(ms.ops.ones((1, 1, 4))).shape", "(1, 1, 2, 2)"),
    output_size=_NEEDED,
    **_BLOCKS,
)
_define(
    "Unfold",
    F.unfold,
    "The blocks of images (N, C, H, W) as columns of (N, C * block, L).",
    ("Unfold(2)(ms.ops.ones((1, 1, 2, 2))).shape", "(1, 4, 1)"),
    **_BLOCKS,
)
_define(
    "ZeroPad1d",
    _zeros(1),
    "The last axis padded with zeros by (left, right), or one int for both.",
    ("ZeroPad1d(1)(ms.Tensor([[[1.0]]])).tolist()", "[[[0.0, 1.0, 0.0]]]"),
    padding=_NEEDED,
)
_define(
    "ZeroPad3d",
    _zeros(3),
    "The last three axes padded with zeros by (left, right, top, bottom, front, back), or one int for all.",
    ("ZeroPad3d(1)(ms.ops.ones((1, 1, 1, 1))).shape", "(1, 3, 3, 3)"),
    padding=_NEEDED,
)
_define(
    "Upsample",
    F.interpolate,
    "An input (N, C, *spatial) at another size, as `mycel.mint.nn.functional.interpolate`.",
    ("Upsample(4)(ms.Tensor([[[1.0, 3.0]]])).tolist()", "[[[1.0, 1.0, 3.0, 3.0]]]"),
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
)
_define(
    "UpsamplingBilinear2d",
    _bilinear,
    "Images (N, C, H, W) at another size by bilinear interpolation with aligned corners.",
    ("UpsamplingBilinear2d((1, 3))(ms.Tensor([[[[1.0, 3.0]]]])).tolist()", "[[[[1.0, 2.0, 3.0]]]]"),
    size=None,
    scale_factor=None,
)
_define(
    "UpsamplingNearest2d",
    _nearest,
    "Images (N, C, H, W) at another size by the nearest element.",
    ("UpsamplingNearest2d((1, 4))(ms.Tensor([[[[1.0, 3.0]]]])).tolist()", "[[[[1.0, 1.0, 3.0, 3.0]]]]"),
    size=None,
    scale_factor=None,
)

_define(
    "BCEWithLogitsLoss",
    F.binary_cross_entropy_with_logits,
    "Binary cross entropy of the sigmoid of the input; `pos_weight` multiplies the part of the positive class.",
    ("BCEWithLogitsLoss()(ms.Tensor([0.0]), ms.Tensor([1.0])).asnumpy().round(3).item()", "0.6930000185966492"),
    weight=None,
    reduction="mean",
    pos_weight=None,
)
_define(
    "KLDivLoss",
    F.kl_div,
    "``y (log y - x)`` for log-probabilities x and probabilities y, or their logarithms with `log_target`.",
    ("KLDivLoss()(ms.Tensor([0.0]), ms.Tensor([1.0])).item()", "0.0"),
    reduction="mean",
    log_target=False,
)
_define(
    "SmoothL1Loss",
    F.smooth_l1_loss,
    "``d**2 / (2 beta)`` for differences |d| below `beta`, else ``|d| - beta / 2`` (Girshick, 2015).",
    ("SmoothL1Loss()(ms.Tensor([3.0]), ms.Tensor([0.0])).item()", "2.5"),
    reduction="mean",
    beta=1.0,
)
