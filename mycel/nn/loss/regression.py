"""Losses of numbers: differences, rankings, angles and likelihoods."""

from __future__ import annotations

from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.tensors.core.tensor import Tensor
from mycel.nn.loss.base import LossBase, same_shape
from mycel.ops._operands import input_of
from mycel.ops.vector_norms import root

__all__ = [
    "CosineEmbeddingLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "L1Loss",
    "MAELoss",
    "MSELoss",
    "MarginRankingLoss",
    "PoissonNLLLoss",
    "RMSELoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class L1Loss(LossBase):
    """The absolute difference ``|logits - labels|``, reduced.

    >>> import mycel as ms
    >>> float(ms.nn.L1Loss()(ms.Tensor([1.0, 3.0]), ms.Tensor([0.0, 0.0])))
    2.0
    """

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss."""
        return ops.l1_loss(logits, labels, self.reduction)


class MAELoss(LossBase):
    """The mean absolute difference; see `L1Loss`.

    >>> import mycel as ms
    >>> float(ms.nn.MAELoss()(ms.Tensor([1.0, 3.0]), ms.Tensor([0.0, 0.0])))
    2.0
    """

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        """Return the loss."""
        return self.get_loss(ops.abs(input_of(self, logits) - input_of(self, label)))


class MSELoss(LossBase):
    """The squared difference ``(logits - labels)**2``, reduced.

    >>> import mycel as ms
    >>> float(ms.nn.MSELoss()(ms.Tensor([1.0, 3.0]), ms.Tensor([0.0, 0.0])))
    5.0
    """

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss."""
        return ops.mse_loss(logits, labels, self.reduction)


class RMSELoss(LossBase):
    """The square root of the mean squared difference.

    >>> import mycel as ms
    >>> float(ms.nn.RMSELoss()(ms.Tensor([3.0, 3.0]), ms.Tensor([0.0, 0.0])))
    3.0
    """

    def __init__(self) -> None:
        super().__init__()

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        """Return the loss."""
        return root(ops.mse_loss(logits, label), 2)


class SmoothL1Loss(LossBase):
    """With d the absolute difference, ``d**2 / (2 * beta)`` if d < `beta`, else ``d - beta / 2``
    (Girshick, 2015).

    Raises RuntimeError for a `beta` that is not positive, ValueError for different shapes.

    >>> import mycel as ms
    >>> ms.nn.SmoothL1Loss()(ms.Tensor([1.0, 3.0]), ms.Tensor([0.0, 0.0])).tolist()
    [0.5, 2.5]
    """

    def __init__(self, beta: float = 1.0, reduction: str = "none") -> None:
        super().__init__(reduction)
        self.beta = arguments.number("SmoothL1Loss", "beta", beta)
        if not self.beta > 0:
            raise arguments.wrong_value("SmoothL1Loss", "beta", "above 0", beta, RuntimeError)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss."""
        same_shape("SmoothL1Loss", logits, labels)
        return ops.smooth_l1_loss(logits, labels, self.beta, self.reduction)


class HuberLoss(LossBase):
    """With d the absolute difference, ``d**2 / 2`` if d <= `delta`, else ``delta * (d - delta /
    2)`` (Huber, 1964).

    Raises ValueError for a `delta` that is not positive.

    >>> import mycel as ms
    >>> float(ms.nn.HuberLoss()(ms.Tensor([1.0, 3.0]), ms.Tensor([0.0, 0.0])))
    1.5
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = arguments.number("HuberLoss", "delta", delta, above=0)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss."""
        return ops.huber_loss(logits, labels, self.reduction, self.delta)


class SoftMarginLoss(LossBase):
    """The logistic loss ``log(1 + exp(-labels * logits))`` for labels 1 and -1, reduced.

    >>> import mycel as ms
    >>> round(float(ms.nn.SoftMarginLoss()(ms.Tensor([0.0]), ms.Tensor([1.0]))), 3)
    0.693
    """

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss."""
        return ops.soft_margin_loss(logits, labels, self.reduction)


class CosineEmbeddingLoss(LossBase):
    """``1 - cos(a, b)`` where the label is 1, ``max(0, cos(a, b) - margin)`` where it is -1,
    reduced.

    The vectors a and b lie along axis 1. Raises ValueError for a `margin` outside [-1, 1].

    >>> import mycel as ms
    >>> a = ms.Tensor([[1.0, 0.0]])
    >>> float(ms.nn.CosineEmbeddingLoss()(a, a, ms.Tensor([-1])))
    1.0
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = arguments.real("CosineEmbeddingLoss", "margin", margin, at_least=-1, at_most=1)

    def construct(self, logits_x1: Tensor, logits_x2: Tensor, labels: Tensor) -> Tensor:
        """Return the loss."""
        return ops.cosine_embedding_loss(logits_x1, logits_x2, labels, self.margin, self.reduction)


class MarginRankingLoss(LossBase):
    """The ranking loss ``max(0, -target * (a - b) + margin)`` for targets 1 and -1, reduced.

    >>> import mycel as ms
    >>> float(ms.nn.MarginRankingLoss()(ms.Tensor([1.0]), ms.Tensor([3.0]), ms.Tensor([1.0])))
    2.0
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = arguments.real("MarginRankingLoss", "margin", margin)

    def construct(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return ops.margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


class HingeEmbeddingLoss(LossBase):
    """The input x where the label is 1, ``max(0, margin - x)`` where it is -1, reduced.

    >>> import mycel as ms
    >>> float(ms.nn.HingeEmbeddingLoss()(ms.Tensor([0.25]), ms.Tensor([-1.0])))
    0.75
    """

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = arguments.number("HingeEmbeddingLoss", "margin", margin)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss."""
        return ops.hinge_embedding_loss(logits, labels, self.margin, self.reduction)


class TripletMarginLoss(LossBase):
    """``max(0, d(x, positive) - d(x, negative) + margin)`` with the p-norm as the distance d
    (Schroff et al., 2015), reduced.

    Args:
        p (int): The order of the norm. Default: 2.
        swap (bool): Whether d(x, negative) is replaced by d(positive, negative) where that is
            smaller. Default: False.
        eps (float): Added to differences, against norms of 0. Default: 1e-06.
        reduction (str): 'mean', 'sum' or 'none'. Default: "mean".
        margin (float): How much farther the negative should be than the positive. Default: 1.0.

    Examples:
        >>> import mycel as ms
        >>> x = ms.Tensor([[0.0, 0.0]])
        >>> round(float(ms.nn.TripletMarginLoss()(x, ms.Tensor([[3.0, 4.0]]), x)), 3)
        6.0
    """

    def __init__(
        self, p: int = 2, swap: bool = False, eps: float = 1e-6, reduction: str = "mean", margin: float = 1.0
    ) -> None:
        super().__init__(reduction)
        self.p = arguments.integer("TripletMarginLoss", "p", p)
        self.swap = arguments.flag("TripletMarginLoss", "swap", swap)
        self.eps = arguments.real("TripletMarginLoss", "eps", eps)
        self.margin = arguments.number("TripletMarginLoss", "margin", margin)

    def construct(self, x: Tensor, positive: Tensor, negative: Tensor, margin: Any = None) -> Tensor:
        """Return the loss.

        Args:
            x (Tensor): The anchors, (N, D).
            positive (Tensor): Examples of the same class, (N, D).
            negative (Tensor): Examples of other classes, (N, D).
            margin (float | None): Replaces that of the constructor. Default: None.

        Returns:
            Tensor: The loss, (N,) before the reduction.
        """
        margin = self.margin if margin is None else margin
        return ops.triplet_margin_loss(x, positive, negative, margin, self.p, self.eps, self.swap, self.reduction)


class TripletMarginWithDistanceLoss(LossBase):
    """``max(0, d(x, positive) - d(x, negative) + margin)`` with a given distance d, reduced.

    Args:
        distance_function (Callable[[Tensor, Tensor], Tensor] | None): Maps two tensors to their
            distances; None for the 2-norm of the difference along axis 1. Default: None.
        swap (bool): Whether d(x, negative) is replaced by d(positive, negative) where that is
            smaller. Default: False.
        reduction (str): 'mean', 'sum' or 'none'. Default: "mean".
        margin (float): How much farther the negative should be than the positive. Default: 1.0.

    Examples:
        >>> import mycel as ms
        >>> x = ms.Tensor([[0.0, 0.0]])
        >>> float(ms.nn.TripletMarginWithDistanceLoss()(x, ms.Tensor([[3.0, 4.0]]), x))
        6.0
    """

    def __init__(
        self, distance_function: Any = None, swap: bool = False, reduction: str = "mean", margin: float = 1.0
    ) -> None:
        super().__init__(reduction)
        if distance_function is not None:
            arguments.function(
                "TripletMarginWithDistanceLoss", "distance_function", distance_function, "a function or None"
            )
        self.distance_function = _distance if distance_function is None else distance_function
        self.swap = arguments.flag("TripletMarginWithDistanceLoss", "swap", swap)
        self.margin = arguments.real("TripletMarginWithDistanceLoss", "margin", margin)

    def construct(self, x: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Return the loss."""
        x, positive, negative = (input_of(self, t) for t in (x, positive, negative))
        near, far = self.distance_function(x, positive), self.distance_function(x, negative)
        if self.swap:
            far = ops.minimum(far, self.distance_function(positive, negative))
        return self.get_loss(ops.relu(near - far + self.margin))


def _distance(x: Tensor, y: Tensor) -> Tensor:
    """Return the 2-norm of the difference along axis 1."""
    return ops.vector_norm(x - y, 2, 1)


class PoissonNLLLoss(LossBase):
    """The negative log-likelihood of counts y for log-rates x: ``exp(x) - y * x``.

    Args:
        log_input (bool): Whether the input is the log-rate; else it is the rate: ``x - y * log(x +
            eps)``. Default: True.
        full (bool): Whether the Stirling term ``y * log(y) - y + log(2 * pi * y) / 2`` is added
            where y > 1. Default: False.
        eps (float): Added to the rate before its logarithm. Default: 1e-08.
        reduction (str): 'mean', 'sum' or 'none'. Default: "mean".

    Examples:
        >>> import mycel as ms
        >>> float(ms.nn.PoissonNLLLoss()(ms.Tensor([0.0]), ms.Tensor([3.0])))
        1.0
    """

    def __init__(self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.log_input, self.full, self.eps = bool(log_input), bool(full), eps
        if not self.log_input:
            arguments.number("PoissonNLLLoss", "eps", eps)

    def construct(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        input, target = input_of(self, input), input_of(self, target)
        loss = ops.exp(input) - target * input if self.log_input else input - target * ops.log(input + self.eps)
        if self.full:
            large = target > 1
            y = ops.where(large, target, ops.ones_like(target))
            stirling = y * ops.log(y) - y + 0.5 * ops.log(6.283185307179586 * y)
            loss = loss + ops.where(large, stirling, ops.zeros_like(stirling))
        return self.get_loss(loss)


class GaussianNLLLoss(LossBase):
    """The negative log-likelihood ``(log v + (x - y)**2 / v) / 2`` with v = max(var, eps) (Nix and
    Weigend, 1994), reduced.

    With `full` log(2 pi) / 2 is added.

    >>> import mycel as ms
    >>> one = ms.Tensor([1.0])
    >>> float(ms.nn.GaussianNLLLoss()(one, ms.Tensor([3.0]), one))
    2.0
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.full = arguments.flag("GaussianNLLLoss", "full", full)
        self.eps = arguments.real("GaussianNLLLoss", "eps", eps, above=0)

    def construct(self, logits: Tensor, labels: Tensor, var: Tensor) -> Tensor:
        """Return the loss."""
        return ops.gaussian_nll_loss(logits, labels, var, self.full, self.eps, self.reduction)
