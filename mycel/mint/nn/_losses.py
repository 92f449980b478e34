"""Losses under the names and arguments of PyTorch; `reduction` is "none", "mean" or "sum"."""

from __future__ import annotations

from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor
from mycel.mint._arguments import real
from mycel.ops._operands import operand

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
]


def binary_cross_entropy(input: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Tensor:
    """Return the binary cross-entropy ``-(y log x + (1 - y) log(1 - x))`` of probabilities x and y,
    times `weight`.

    Args:
        input (Tensor): The probabilities x.
        target (Tensor): The labels y, of the same shape.
        weight (Tensor | None): The scale of each element; None for 1. Default: None.
        reduction (str): How the losses are joined: "mean", "sum" or "none". Default: "mean".

    Returns:
        Tensor: A number, or the shape of the input without reduction.

    Examples:
        >>> import mycel as ms
        >>> loss = ms.mint.nn.functional.binary_cross_entropy(ms.Tensor([0.5]), ms.Tensor([1.0]))
        >>> round(loss.item(), 4)
        0.6931
    """
    arguments.text("binary_cross_entropy", "reduction", reduction)
    return ops.binary_cross_entropy(input, target, weight, reduction)


def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, reduction: str = "mean", pos_weight: Any = None
) -> Tensor:
    """Return `binary_cross_entropy` of the sigmoid of the input.

    Args:
        input (Tensor): The logits.
        target (Tensor): The labels y, of the same shape.
        weight (Tensor | None): The scale of each element; None for 1. Default: None.
        reduction (str): How the losses are joined: "mean", "sum" or "none". Default: "mean".
        pos_weight (Tensor | None): The scale of the term of positive labels; None for 1. Default:
            None.

    Returns:
        Tensor: A number, or the shape of the input without reduction.

    Examples:
        >>> import mycel as ms
        >>> loss = ms.mint.nn.functional.binary_cross_entropy_with_logits
        >>> round(loss(ms.Tensor([0.0]), ms.Tensor([1.0])).item(), 4)
        0.6931
    """
    arguments.text("binary_cross_entropy_with_logits", "reduction", reduction)
    return ops.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """Return ``1 - cos`` where `target` is 1 and ``max(0, cos - margin)`` where it is -1.

    cos is the cosine of the angle between the vectors of `input1` and `input2`, and `reduction` is
    "none", "mean" or "sum".

    Args:
        input1 (Tensor): Vectors along the last axis.
        input2 (Tensor): Vectors along the last axis.
        target (Tensor): 1 for pairs that should be alike, -1 for others.
        margin (float): The cosine that the others may have. Default: 0.0.
        reduction (str): How the losses are joined: "mean", "sum" or "none". Default: "mean".

    Returns:
        Tensor: A number, or one for each pair.

    Examples:
        >>> import mycel as ms
        >>> x, one = ms.Tensor([[1.0, 0.0]]), ms.Tensor([1])
        >>> ms.mint.nn.functional.cosine_embedding_loss(x, x, one).item()
        0.0
    """
    arguments.text("cosine_embedding_loss", "reduction", reduction)
    real("cosine_embedding_loss", "margin", margin)
    return ops.cosine_embedding_loss(input1, input2, target, margin, reduction)


def l1_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """Return the absolute difference of `input` and `target`; `reduction` is "none", "mean" or
    "sum".

    >>> import mycel as ms
    >>> ms.mint.nn.functional.l1_loss(ms.Tensor([3.0]), ms.Tensor([1.0])).item()
    2.0
    """
    return ops.l1_loss(input, target, arguments.text("l1_loss", "reduction", reduction))


def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """Return the squared difference of `input` and `target`; `reduction` is "none", "mean" or
    "sum".

    >>> import mycel as ms
    >>> ms.mint.nn.functional.mse_loss(ms.Tensor([3.0]), ms.Tensor([1.0])).item()
    4.0
    """
    return ops.mse_loss(input, target, arguments.text("mse_loss", "reduction", reduction))


def kl_div(input: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """Return the divergence ``y (log y - x)`` of log-probabilities x and probabilities y (Kullback
    and Leibler, 1951).

    Args:
        input (Tensor): The log-probabilities x.
        target (Tensor): The probabilities y.
        reduction (str): "mean", "sum", "none" or "batchmean": the sum divided by the size of axis
            0. Default: "mean".
        log_target (bool): Whether `target` has the logarithms of y. Default: False.

    Returns:
        Tensor: A number, or the shape of the input without reduction.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nn.functional.kl_div(ms.Tensor([0.0]), ms.Tensor([0.0]), log_target=True).item()
        0.0
    """
    arguments.text("kl_div", "reduction", reduction)
    if not arguments.flag("kl_div", "log_target", log_target):
        return ops.kl_div(input, target, reduction)
    arguments.one_of("kl_div", "reduction", reduction, ("none", "mean", "sum", "batchmean"))
    x, y = operand("kl_div", input), operand("kl_div", target)
    loss = ops.exp(y) * (y - x)
    if reduction == "none":
        return loss
    if reduction == "mean":
        return ops.mean(loss)
    return ops.sum(loss) if reduction == "sum" else ops.sum(loss) / (loss.shape[0] if loss.ndim else 1)


def nll_loss(input: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> Tensor:
    """Return the negative of the log-probabilities at the classes.

    Targets equal to `ignore_index` are left out, and `reduction` is "none", "mean" or "sum".

    Args:
        input (Tensor): Log-probabilities, (N, C, ...).
        target (Tensor): Classes, (N, ...).
        weight (Tensor | None): The scale of each class; None for 1. Default: None.
        ignore_index (int): The class whose examples do not count. Default: -100.
        reduction (str): How the losses are joined: "mean", "sum" or "none". Default: "mean".

    Returns:
        Tensor: A number, or (N, ...) without reduction.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nn.functional.nll_loss(ms.Tensor([[-1.0, -2.0]]), ms.Tensor([1])).item()
        2.0
    """
    return ops.nll_loss(input, target, weight, ignore_index, reduction)


def _alike(name: str, input: Any, target: Any) -> tuple[Tensor, Tensor]:
    x, y = operand(name, input), operand(name, target)
    if x.shape != y.shape:
        raise ShapeError(f"{name}: input and target must have the same shape, not {x.shape} and {y.shape}")
    return x, y


def soft_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """Return ``log(1 + exp(-y x))`` of the numbers x of `input` and y of `target`, which are 1 or
    -1.

    `reduction` is "none", "mean" or "sum".

    >>> import mycel as ms
    >>> x, y = ms.Tensor([0.0]), ms.Tensor([1.0])
    >>> round(ms.mint.nn.functional.soft_margin_loss(x, y).item(), 4)
    0.6931
    """
    arguments.text("soft_margin_loss", "reduction", reduction)
    return ops.soft_margin_loss(*_alike("soft_margin_loss", input, target), reduction)


def smooth_l1_loss(input: Any, target: Any, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Return ``d**2 / (2 beta)`` for differences |d| below `beta`, else ``|d| - beta / 2``
    (Girshick, 2015); |d| where `beta` is 0.

    d is the difference of `input` and `target`, and `reduction` is "none", "mean" or "sum".

    Args:
        input (Tensor): The values.
        target (Tensor): The expected values.
        reduction (str): How the losses are joined: "mean", "sum" or "none". Default: "mean".
        beta (float): Where the loss becomes linear. Default: 1.0.

    Returns:
        Tensor: A number, or the shape of the input without reduction.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nn.functional.smooth_l1_loss(ms.Tensor([3.0]), ms.Tensor([0.0])).item()
        2.5
    """
    arguments.text("smooth_l1_loss", "reduction", reduction)
    x, y = _alike("smooth_l1_loss", input, target)
    if beta == 0:
        return ops.l1_loss(x, y, reduction)
    return ops.smooth_l1_loss(x, y, beta, reduction)
