"""Layers without weights.

Each is one row of a table: a function of `mycel.mint.nn.functional` and the arguments that its
constructor takes.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor
from mycel.mint.nn import functional

__all__: list[str] = []

Check = Callable[[str, str, Any], Any]
_NEEDED: Any = inspect.Parameter.empty


def _arguments(function: Callable[..., Any], parameters: Mapping[str, Any]) -> str:
    """Return the section `Args` of a layer with these parameters and defaults: what the docstring
    of its function says of them.
    """
    listed = inspect.cleandoc(function.__doc__ or "").partition("\nArgs:\n")[2].partition("\n\n")[0]
    known = {entry.split()[0]: entry for entry in re.split(r"\n(?=    \S)", listed) if entry}
    text = "Args:"
    for name, default in parameters.items():
        entry = known.get(name, "")
        text += f"\n{entry}"
        if default is not _NEEDED and "Default:" not in entry:
            text += f"\n        Default: {default!r}."
    return text


def _define(
    name: str,
    function: Callable[..., Any],
    text: str,
    example: tuple[str, str],
    checks: Mapping[str, Check] | None = None,
    **parameters: Any,
) -> None:
    """Define a Cell that keeps its arguments as attributes and calls ``function(*inputs,
    **arguments)``.

    Functions with a parameter `training` are called in training only; otherwise the layer returns
    its input. `text` and `example` make its docstring, of more than three parameters with what the
    function's says of them. `checks` has those of arguments that the constructor makes; the
    function checks the others.
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
            setattr(self, k, v if checks is None or k not in checks else checks[k](name, k, v))

    def construct(self: Cell, *inputs: Any, **named: Any) -> Any:
        if phase:
            if not self.training and len(inputs) == 1 and not named:
                return inputs[0]
            named["training"] = self.training
        return function(*inputs, **{k: getattr(self, k) for k in parameters}, **named)

    def extend_repr(self: Cell) -> str:
        shown = ((k, getattr(self, k)) for k in parameters)
        return ", ".join(f"{k}={v.shape if isinstance(v, Tensor) else v!r}" for k, v in shown)

    call, result = example
    shown = f">>> import mycel as ms\n>>> ms.mint.nn.{call}\n{result}"
    if len(parameters) > 3:
        shown = f"{_arguments(function, parameters)}\n\nExamples:\n{textwrap.indent(shown, '    ')}"
    doc = f"{text}\n\n{textwrap.indent(shown, '    ')}\n    "
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
    return functional.interpolate(input, size, scale_factor, "bilinear", True)


def _nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Tensor:
    return functional.interpolate(input, size, scale_factor, "nearest")


def _reduction(name: str, parameter: str, value: Any) -> str:
    return arguments.choice(name, parameter, value, ("none", "mean", "sum"))


def _threshold(name: str, parameter: str, value: Any) -> float:
    return arguments.instance(name, parameter, value, (int, float), "a number")


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
    functional.elu,
    "x where it is positive, else ``alpha * (exp(x) - 1)`` (Clevert et al., 2015).",
    ("ELU(0.0)(ms.Tensor([2.0])).tolist()", "[2.0]"),
    alpha=1.0,
    inplace=False,
)
_define(
    "GELU",
    functional.gelu,
    "The Gaussian error linear unit; `approximate` is 'none' or 'tanh' (Hendrycks and Gimpel, 2016).",
    ("GELU()(ms.Tensor([0.0])).tolist()", "[0.0]"),
    approximate="none",
)
_define(
    "GLU",
    functional.glu,
    "The first half along `dim` times the sigmoid of the second (Dauphin et al., 2016).",
    ("GLU()(ms.Tensor([4.0, 0.0])).tolist()", "[2.0]"),
    dim=-1,
)
_define(
    "Hardshrink",
    functional.hardshrink,
    "0 where x is within [-lambd, lambd], else x.",
    ("Hardshrink()(ms.Tensor([0.25, 2.0])).tolist()", "[0.0, 2.0]"),
    {"lambd": _threshold},
    lambd=0.5,
)
_define(
    "Hardsigmoid",
    functional.hardsigmoid,
    "The piecewise linear approximation min(max(x / 6 + 1 / 2, 0), 1) of the sigmoid.",
    ("Hardsigmoid()(ms.Tensor([0.0])).tolist()", "[0.5]"),
)
_define(
    "Hardswish",
    functional.hardswish,
    "The piecewise approximation x min(max(x + 3, 0), 6) / 6 of `SiLU` (Howard et al., 2019).",
    ("Hardswish()(ms.Tensor([-4.0, 4.0])).tolist()", "[-0.0, 4.0]"),
)
_define(
    "Hardtanh",
    functional.hardtanh,
    "x limited to [`min_val`, `max_val`].",
    ("Hardtanh()(ms.Tensor([-3.0, 0.5])).tolist()", "[-1.0, 0.5]"),
    min_val=-1.0,
    max_val=1.0,
    inplace=False,
)
_define(
    "LogSoftmax",
    functional.log_softmax,
    "The logarithm of the soft-max along `dim`; see `mycel.mint.nn.functional.softmax` for the axis where it is None.",
    ("LogSoftmax()(ms.Tensor([0.0])).tolist()", "[0.0]"),
    dim=None,
)
_define(
    "Softmax",
    functional.softmax,
    "The normalised exponential along `dim`; see `mycel.mint.nn.functional.softmax` for the axis where it is None.",
    ("Softmax()(ms.Tensor([1.0, 1.0])).tolist()", "[0.5, 0.5]"),
    dim=None,
)
_define(
    "ReLU6",
    functional.relu6,
    "The rectified linear unit with an upper limit, min(max(x, 0), 6).",
    ("ReLU6()(ms.Tensor([-1.0, 8.0])).tolist()", "[0.0, 6.0]"),
    inplace=False,
)
_define(
    "SELU",
    functional.selu,
    "A scaled ELU that keeps mean and variance (Klambauer et al., 2017).",
    ("SELU()(ms.Tensor([0.0])).tolist()", "[0.0]"),
)
_define(
    "SiLU",
    functional.silu,
    "x times its sigmoid (Elfwing et al., 2017).",
    ("SiLU()(ms.Tensor([0.0])).tolist()", "[0.0]"),
    inplace=False,
)
_define(
    "Softshrink",
    functional.softshrink,
    "x moved towards 0 by `lambd`, and 0 where that would pass it.",
    ("Softshrink()(ms.Tensor([0.25, 2.0])).tolist()", "[0.0, 1.5]"),
    lambd=0.5,
)
_define(
    "Threshold",
    functional.threshold,
    "x where it is above `threshold`, else `value`.",
    ("Threshold(2.0, 9.0)(ms.Tensor([1.0, 3.0])).tolist()", "[9.0, 3.0]"),
    threshold=_NEEDED,
    value=_NEEDED,
    inplace=False,
)
_define(
    "Dropout",
    functional.dropout,
    "A layer that sets each element to 0 with probability `p` in training, and divides the others by 1 - p "
    "(Srivastava et al., 2014).",
    (f"Dropout(){_PAIR}.tolist()", "[1.0, 3.0]"),
    p=0.5,
    inplace=False,
)
_define(
    "Dropout2d",
    functional.dropout2d,
    "`Dropout` of whole channels of (N, C, H, W) or (C, H, W).",
    ("Dropout2d()(ms.ops.ones((1, 2, 3, 3))).shape", "(1, 2, 3, 3)"),
    p=0.5,
    inplace=False,
)

_define(
    "AdaptiveAvgPool1d",
    functional.adaptive_avg_pool1d,
    "The means of `output_size` nearly equal windows of (N, C, L).",
    ("AdaptiveAvgPool1d(1)(ms.Tensor([[[1.0, 3.0]]])).tolist()", "[[[2.0]]]"),
    output_size=_NEEDED,
)
_define(
    "AdaptiveAvgPool2d",
    functional.adaptive_avg_pool2d,
    "The means of nearly equal windows of (N, C, H, W), whose number is `output_size`.",
    ("AdaptiveAvgPool2d(1)(ms.Tensor([[[[1.0, 3.0]]]])).tolist()", "[[[[2.0]]]]"),
    output_size=_NEEDED,
)
_define(
    "AdaptiveAvgPool3d",
    functional.adaptive_avg_pool3d,
    "The means of nearly equal windows of (N, C, D, H, W), whose number is `output_size`.",
    ("AdaptiveAvgPool3d(1)(ms.ops.ones((1, 1, 2, 2, 2))).tolist()", "[[[[[1.0]]]]]"),
    output_size=_NEEDED,
)
_define(
    "AdaptiveMaxPool1d",
    functional.adaptive_max_pool1d,
    "The largest elements of `output_size` nearly equal windows of (N, C, L); with `return_indices` also their "
    "positions.",
    ("AdaptiveMaxPool1d(1)(ms.Tensor([[[1.0, 3.0]]])).tolist()", "[[[3.0]]]"),
    output_size=_NEEDED,
    return_indices=False,
)
_define(
    "AdaptiveMaxPool2d",
    functional.adaptive_max_pool2d,
    "The largest elements of nearly equal windows of (N, C, H, W), whose number is `output_size`; with "
    "`return_indices` also their positions in H * W.",
    ("AdaptiveMaxPool2d(1)(ms.Tensor([[[[1.0, 3.0]]]])).tolist()", "[[[[3.0]]]]"),
    output_size=_NEEDED,
    return_indices=False,
)
_define(
    "AvgPool1d",
    functional.avg_pool1d,
    "The mean of each window of (N, C, L), by `mycel.mint.nn.functional.avg_pool1d`.",
    ("AvgPool1d(2)(ms.Tensor([[[1.0, 3.0]]])).tolist()", "[[[2.0]]]"),
    **_WINDOWS,
)
_define(
    "AvgPool2d",
    functional.avg_pool2d,
    "The mean of each window of (N, C, H, W), by `mycel.mint.nn.functional.avg_pool2d`.",
    ("AvgPool2d((1, 2))(ms.Tensor([[[[1.0, 3.0]]]])).tolist()", "[[[[2.0]]]]"),
    **_WINDOWS,
    divisor_override=None,
)
_define(
    "AvgPool3d",
    functional.avg_pool3d,
    "The mean of each window of (N, C, D, H, W), by `mycel.mint.nn.functional.avg_pool3d`.",
    ("AvgPool3d(2)(ms.ops.ones((1, 1, 2, 2, 2))).tolist()", "[[[[[1.0]]]]]"),
    **_WINDOWS,
    divisor_override=None,
)
_define(
    "MaxPool2d",
    functional.max_pool2d,
    "The largest element of each window of (N, C, H, W), by `mycel.mint.nn.functional.max_pool2d`; with "
    "`return_indices` also its position in H * W.",
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
    functional.max_unpool2d,
    "An image of zeros with the maxima of `MaxPool2d` at their positions; called with the maxima, the positions and "
    "optionally `output_size`.",
    ("MaxUnpool2d((1, 2))(ms.Tensor([[[[3.0]]]]), ms.Tensor([[[[1]]]])).tolist()", "[[[[0.0, 3.0]]]]"),
    kernel_size=_NEEDED,
    stride=None,
    padding=0,
)
_define(
    "Fold",
    functional.fold,
    "Images of `output_size` from blocks of `kernel_size`, the columns of (N, C * block, L), which add up where they "
    "overlap. Blocks lie `stride` apart, in images with `padding` on both sides.",
    ("Fold((2, 2), 1)(ms.ops.ones((1, 1, 4))).shape", "(1, 1, 2, 2)"),
    output_size=_NEEDED,
    **_BLOCKS,
)
_define(
    "Unfold",
    functional.unfold,
    "The blocks of `kernel_size` of images (N, C, H, W) as columns of (N, C * block, L). Blocks lie `stride` apart, "
    "in images with `padding` on both sides.",
    ("Unfold(2)(ms.ops.ones((1, 1, 2, 2))).shape", "(1, 4, 1)"),
    **_BLOCKS,
)
_define(
    "Upsample",
    functional.interpolate,
    "An input (N, C, *spatial) resized by `mycel.mint.nn.functional.interpolate`.",
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
    "Images (N, C, H, W) resized by bilinear interpolation with aligned corners.",
    ("UpsamplingBilinear2d((1, 3))(ms.Tensor([[[[1.0, 3.0]]]])).tolist()", "[[[[1.0, 2.0, 3.0]]]]"),
    size=None,
    scale_factor=None,
)
_define(
    "UpsamplingNearest2d",
    _nearest,
    "Images (N, C, H, W) resized by the nearest element.",
    ("UpsamplingNearest2d((1, 4))(ms.Tensor([[[[1.0, 3.0]]]])).tolist()", "[[[[1.0, 1.0, 3.0, 3.0]]]]"),
    size=None,
    scale_factor=None,
)

_define(
    "BCEWithLogitsLoss",
    functional.binary_cross_entropy_with_logits,
    "The binary cross-entropy of the sigmoid of the input; `pos_weight` scales the term of positive labels.",
    ("BCEWithLogitsLoss()(ms.Tensor([0.0]), ms.Tensor([1.0])).asnumpy().round(3).item()", "0.6930000185966492"),
    {"reduction": _reduction},
    weight=None,
    reduction="mean",
    pos_weight=None,
)
_define(
    "KLDivLoss",
    functional.kl_div,
    "The divergence ``y (log y - x)`` of log-probabilities x and probabilities y, or their logarithms with "
    "`log_target`.",
    ("KLDivLoss()(ms.Tensor([0.0]), ms.Tensor([1.0])).item()", "0.0"),
    reduction="mean",
    log_target=False,
)
_define(
    "SmoothL1Loss",
    functional.smooth_l1_loss,
    "``d**2 / (2 beta)`` for differences |d| below `beta`, else ``|d| - beta / 2`` (Girshick, 2015).",
    ("SmoothL1Loss()(ms.Tensor([3.0]), ms.Tensor([0.0])).item()", "2.5"),
    reduction="mean",
    beta=1.0,
)
_define(
    "CosineEmbeddingLoss",
    functional.cosine_embedding_loss,
    "``1 - cos`` where the target is 1 and ``max(0, cos - margin)`` where it is -1, with the cosine of the angle "
    "between two vectors.",
    ("CosineEmbeddingLoss()(ms.Tensor([[1.0, 0.0]]), ms.Tensor([[1.0, 0.0]]), ms.Tensor([1])).item()", "0.0"),
    margin=0.0,
    reduction="mean",
)
_define(
    "SoftMarginLoss",
    functional.soft_margin_loss,
    "``log(1 + exp(-y x))`` of numbers x and targets y, which are 1 or -1.",
    ("SoftMarginLoss()(ms.Tensor([0.0]), ms.Tensor([1.0])).asnumpy().round(3).item()", "0.6930000185966492"),
    reduction="mean",
)
