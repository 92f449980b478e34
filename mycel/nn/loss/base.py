"""The base of losses: weights and the reduction to a sum or a mean."""

from __future__ import annotations

from typing import Any

from mycel import ops
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops._operands import operand

__all__ = ["LossBase"]


class LossBase(Cell):
    """Base of losses; a subclass defines ``construct(logits, labels)``.

    `reduction` is 'mean', 'sum' or 'none'.

    >>> import mycel as ms
    >>> class Absolute(ms.nn.LossBase):
    ...     def construct(self, logits, labels):
    ...         return self.get_loss(ms.ops.abs(logits - labels))
    >>> float(Absolute()(ms.Tensor([1.0, 3.0]), ms.Tensor([0.0, 0.0])))
    2.0
    """

    allowed: tuple[str, ...] = ("mean", "sum", "none")

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        if not isinstance(reduction, str) or reduction not in self.allowed:
            allowed = ", ".join(map(repr, self.allowed))
            raise ValueError(f"{type(self).__name__}: reduction must be one of {allowed}, not {reduction!r}")
        self.reduction = reduction

    def get_axis(self, x: Tensor) -> tuple[int, ...]:
        """Return all axes of a tensor."""
        return tuple(range(operand(type(self).__name__, x).ndim))

    def get_loss(self, x: Tensor, weights: Any = 1.0) -> Tensor:
        """Return ``weights * x``, reduced as `reduction` says."""
        x = x * weights
        return x if self.reduction == "none" else ops.sum(x) if self.reduction == "sum" else ops.mean(x)

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """Return the loss; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} must define construct(logits, labels)")


def same_shape(owner: str, logits: Tensor, labels: Tensor) -> None:
    """Raise ValueError if two tensors differ in shape."""
    logits, labels = operand(owner, logits), operand(owner, labels)
    if logits.shape != labels.shape:
        raise ValueError(f"{owner}: logits and labels must have the same shape, not {logits.shape} and {labels.shape}")
