"""Losses of classes and probabilities."""

from __future__ import annotations

from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor
from mycel.nn.layer.activation import activation_of
from mycel.nn.loss.base import LossBase, same_shape
from mycel.ops._operands import input_of, need_matched
from mycel.ops.loss import softmax_entropy

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CrossEntropyLoss",
    "DiceLoss",
    "FocalLoss",
    "KLDivLoss",
    "MultiClassDiceLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "MultilabelMarginLoss",
    "NLLLoss",
    "SoftmaxCrossEntropyWithLogits",
]


class CrossEntropyLoss(LossBase):
    """The cross-entropy of softmax(logits) with labels: class numbers (N, ...) or probabilities (N,
    C, ...); see `ops.cross_entropy`.

    Args:
        weight (Tensor | None): The scale of each class, (C,); None for 1. Default: None.
        ignore_index (int): The class whose examples are left out. Default: -100.
        reduction (str): 'mean', 'sum' or 'none'. Default: "mean".
        label_smoothing (float): The part of the probability, in [0, 1], that is spread evenly over
            the classes. Default: 0.0.

    Raises:
        ValueError: For a `label_smoothing` outside [0, 1].

    Examples:
        >>> import mycel as ms
        >>> round(float(ms.nn.CrossEntropyLoss()(ms.Tensor([[0.0, 0.0]]), ms.Tensor([1]))), 3)
        0.693
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(reduction)
        self.weight = arguments.optional("CrossEntropyLoss", "weight", weight, Tensor)
        self.ignore_index = arguments.integer("CrossEntropyLoss", "ignore_index", ignore_index)
        self.label_smoothing = arguments.number(
            "CrossEntropyLoss", "label_smoothing", label_smoothing, at_least=0, at_most=1
        )

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss."""
        return ops.cross_entropy(logits, labels, self.weight, self.ignore_index, self.reduction, self.label_smoothing)


class NLLLoss(LossBase):
    """The negative log-probability of the labelled class, for log-probabilities (N, C, ...); see
    `ops.nll_loss`.

    >>> import mycel as ms
    >>> float(ms.nn.NLLLoss()(ms.Tensor([[-1.0, -2.0]]), ms.Tensor([1])))
    2.0
    """

    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = arguments.optional("NLLLoss", "weight", weight, Tensor)
        self.ignore_index = arguments.integer("NLLLoss", "ignore_index", ignore_index)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss."""
        return ops.nll_loss(logits, labels, self.weight, self.ignore_index, self.reduction)


class SoftmaxCrossEntropyWithLogits(LossBase):
    """The cross-entropy of softmax(logits), for logits (N, C), with probabilities (N, C) or, if
    `sparse`, class numbers (N,).

    The derivative by the logits is softmax(logits) - labels, as if each row of labels summed to 1;
    there is none by the labels.

    >>> import mycel as ms
    >>> loss = ms.nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    >>> round(float(loss(ms.Tensor([[0.0, 0.0]]), ms.Tensor([1]))), 3)
    0.693
    """

    def __init__(self, sparse: bool = False, reduction: str = "none") -> None:
        super().__init__(reduction)
        self.sparse = arguments.flag("SoftmaxCrossEntropyWithLogits", "sparse", sparse)

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss."""
        logits = input_of(self, logits)
        labels = input_of(self, labels)
        owner = "SoftmaxCrossEntropyWithLogits"
        if logits.ndim != 2:
            raise ValueError(f"{owner}: logits must be (N, C), not of shape {logits.shape}")
        if self.sparse:
            if labels.shape != logits.shape[:1]:
                raise ValueError(
                    f"{owner}: with sparse=True labels must be class numbers of shape {logits.shape[:1]}, not "
                    f"{labels.shape}"
                )
        elif labels.shape != logits.shape:
            raise ValueError(
                f"{owner}: labels must be probabilities of the shape of the logits, {logits.shape}, not "
                f"{labels.shape}; "
                "class numbers need sparse=True"
            )
        else:
            labels = labels if labels.dtype.is_floating else ops.cast(labels, logits.dtype)
            need_matched(type(self).__name__, logits, labels, "logits", "labels")
            return softmax_entropy(logits, ops.cast(labels, logits.dtype), self.reduction)
        return ops.cross_entropy(logits, labels, reduction=self.reduction)


class BCELoss(LossBase):
    """The binary cross-entropy ``-(y log p + (1 - y) log(1 - p))`` of probabilities p and labels y
    in [0, 1].

    It is scaled by `weight`, then reduced.

    >>> import mycel as ms
    >>> round(float(ms.nn.BCELoss()(ms.Tensor([0.5]), ms.Tensor([1.0]))), 3)
    0.693
    """

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss."""
        return ops.binary_cross_entropy(logits, labels, self.weight, self.reduction)


class BCEWithLogitsLoss(LossBase):
    """`BCELoss` of sigmoid(logits), without overflow; `pos_weight` scales the term of positive
    labels.

    >>> import mycel as ms
    >>> round(float(ms.nn.BCEWithLogitsLoss()(ms.Tensor([0.0]), ms.Tensor([1.0]))), 3)
    0.693
    """

    def __init__(self, reduction: str = "mean", weight: Tensor | None = None, pos_weight: Tensor | None = None) -> None:
        arguments.text("BCEWithLogitsLoss", "reduction", reduction)
        super().__init__(reduction)
        self.weight, self.pos_weight = weight, pos_weight

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss."""
        return ops.binary_cross_entropy_with_logits(logits, labels, self.weight, self.pos_weight, self.reduction)


class KLDivLoss(LossBase):
    """The divergence ``y * (log y - x)`` of log-probabilities x and probabilities y (Kullback and
    Leibler, 1951).

    `reduction` may also be 'batchmean', the sum divided by the batch size. Raises ValueError for
    different shapes.

    >>> import mycel as ms
    >>> float(ms.nn.KLDivLoss()(ms.Tensor([0.0]), ms.Tensor([1.0])))
    0.0
    """

    allowed = ("mean", "sum", "none", "batchmean")

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss."""
        same_shape("KLDivLoss", logits, labels)
        return ops.kl_div(logits, labels, self.reduction)


class MultiLabelSoftMarginLoss(LossBase):
    """The mean over classes of the binary cross-entropy of sigmoid(x), for (N, C), scaled by
    `weight` and reduced.

    >>> import mycel as ms
    >>> round(float(ms.nn.MultiLabelSoftMarginLoss()(ms.Tensor([[0.0]]), ms.Tensor([[1.0]]))), 3)
    0.693
    """

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = weight

    def construct(self, x: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return ops.multilabel_soft_margin_loss(x, target, self.weight, self.reduction)


class MultiMarginLoss(LossBase):
    """The mean over the other classes of ``max(0, margin - x[target] + x[i])**p``, for (N, C) and
    class numbers.

    Args:
        p (int): The exponent, 1 or 2. Default: 1.
        margin (float): The distance that classes should keep. Default: 1.0.
        reduction (str): 'mean', 'sum' or 'none'. Default: "mean".
        weight (Tensor | None): The scale of the terms of each target class, (C,); None for 1.
            Default: None.

    Examples:
        >>> import mycel as ms
        >>> float(ms.nn.MultiMarginLoss()(ms.Tensor([[0.0, 0.5]]), ms.Tensor([0])))
        0.75
    """

    def __init__(self, p: int = 1, margin: float = 1.0, reduction: str = "mean", weight: Tensor | None = None) -> None:
        super().__init__(reduction)
        arguments.integer("MultiMarginLoss", "p", p, 1, 2)
        self.p, self.margin, self.weight = p, arguments.real("MultiMarginLoss", "margin", margin), weight

    def construct(self, x: Tensor, target: Tensor, weight: Any = None) -> Tensor:
        """Return the loss."""
        return ops.multi_margin_loss(
            x, target, self.p, self.margin, self.weight if weight is None else weight, self.reduction
        )


class MultilabelMarginLoss(LossBase):
    """The hinge loss of several classes for each row of (N, C), reduced; see
    `ops.multilabel_margin_loss`.

    >>> import mycel as ms
    >>> float(ms.nn.MultilabelMarginLoss()(ms.Tensor([[0.0, 0.5]]), ms.Tensor([[0, -1]], ms.int32)))
    0.75
    """

    def construct(self, x: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return ops.multilabel_margin_loss(x, target, self.reduction)


class DiceLoss(LossBase):
    """One minus Dice's coefficient: ``1 - 2 * sum(x * y) / (sum(x**2) + sum(y**2) + smooth)``
    (Milletari et al., 2016).

    Raises ValueError for a `smooth` that is not positive, or for different shapes.

    >>> import mycel as ms
    >>> x = ms.Tensor([1.0, 0.0])
    >>> float(ms.nn.DiceLoss(smooth=2.0)(x, x))
    0.5
    """

    def __init__(self, smooth: float = 1e-5) -> None:
        super().__init__()
        self.smooth = arguments.real("DiceLoss", "smooth", smooth, above=0)

    def construct(self, logits: Tensor, label: Tensor) -> Tensor:
        """Return the loss."""
        same_shape("DiceLoss", logits, label)
        common = ops.sum(logits * label)
        whole = ops.sum(logits * logits) + ops.sum(label * label)
        return 1 - 2 * common / (whole + self.smooth)


class MultiClassDiceLoss(LossBase):
    """The sum of `DiceLoss` of activation(logits) for each class (axis 1), divided by the number of
    classes (Milletari et al., 2016).

    Logits and labels have the same shape (N, C, ...). `weights`, (C, D), scale the classes and give
    D losses; the class `ignore_indiex` (spelt as in MindSpore) is left out. `activation` is a name,
    a Cell or None. Raises ValueError for shapes that do not fit.

    >>> import mycel as ms
    >>> x = ms.Tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> round(float(ms.nn.MultiClassDiceLoss(activation=None)(x, x)), 4)
    0.0
    """

    def __init__(self, weights: Tensor | None = None, ignore_indiex: Any = None, activation: Any = "softmax") -> None:
        super().__init__()
        weights = arguments.optional("MultiClassDiceLoss", "weights", weights, Tensor)
        if weights is not None and weights.ndim != 2:
            raise ValueError(f"MultiClassDiceLoss: weights must be (classes, D), not of shape {weights.shape}")
        self.weights = weights
        if ignore_indiex is not None:
            arguments.integer("MultiClassDiceLoss", "ignore_indiex", ignore_indiex)
        self.ignore_indiex = ignore_indiex
        self.binarydiceloss = DiceLoss(1e-5)
        self.activation = activation_of("MultiClassDiceLoss", activation)

    def construct(self, logits: Tensor, label: Tensor) -> Any:
        """Return the loss."""
        logits = input_of(self, logits)
        label = input_of(self, label)
        same_shape("MultiClassDiceLoss", logits, label)
        if logits.ndim < 2:
            raise ValueError(f"MultiClassDiceLoss: logits must be (N, C, ...), not of shape {logits.shape}")
        classes = int(label.shape[1])
        if self.weights is not None and self.weights.shape[0] != classes:
            raise ValueError(f"MultiClassDiceLoss: weights of shape {self.weights.shape} do not fit {classes} classes")
        if self.activation is not None:
            logits = self.activation(logits)
        total: Any = 0.0
        for i in range(classes):
            if i != self.ignore_indiex:
                loss = self.binarydiceloss(logits[:, i], label[:, i])
                total = total + (loss if self.weights is None else loss * self.weights[i])
        return total / classes


class FocalLoss(LossBase):
    """The cross-entropy of softmax(logits) scaled by ``(1 - p)**gamma``, where p is the probability
    of the labelled class (Lin et al., 2017).

    Logits are (N, C, ...), labels class numbers (N, 1, ...) or one-hot of the shape of the logits;
    `weight` scales each class.

    >>> import mycel as ms
    >>> round(float(ms.nn.FocalLoss()(ms.Tensor([[0.0, 0.0]]), ms.Tensor([[1]]))), 4)
    0.1733
    """

    def __init__(self, weight: Tensor | None = None, gamma: float = 2.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.gamma = arguments.real("FocalLoss", "gamma", gamma)
        weight = arguments.optional("FocalLoss", "weight", weight, Tensor)
        if weight is not None and weight.ndim != 1:
            raise ValueError("FocalLoss: weight must be a tensor of one dimension, one element for each class")
        self.weight = weight

    def construct(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss."""
        logits = input_of(self, logits)
        labels = input_of(self, labels)
        if logits.ndim < 2 or logits.ndim != labels.ndim or labels.shape[1] not in (1, logits.shape[1]):
            raise ValueError(
                "FocalLoss: logits must be (N, C, ...) and labels (N, 1, ...) or (N, C, ...), not of shapes "
                f"{logits.shape} and "
                f"{labels.shape}"
            )
        classes = logits.shape[1]
        logp = ops.log_softmax(logits, 1)
        if labels.shape[1] == 1 and classes != 1:
            positions = ops.reshape(ops.arange(classes, dtype=D.int32), (classes, *(1,) * (logits.ndim - 2)))
            chosen = ops.cast(ops.cast(labels, D.int32) == positions, logits.dtype)
        else:
            chosen = ops.cast(labels, logits.dtype)
        loss = -ops.pow(1 - ops.exp(logp), self.gamma) * logp * chosen
        if self.weight is not None:
            loss = loss * ops.reshape(self.weight, (classes, *(1,) * (logits.ndim - 2)))
        return self.get_loss(ops.sum(loss, 1))
