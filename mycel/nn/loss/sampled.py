"""Losses of label sequences, and of so many classes that only a sample is computed."""

from __future__ import annotations

from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.nn.loss.base import LossBase
from mycel.ops._operands import input_of

__all__ = ["CTCLoss", "SampledSoftmaxLoss"]

# Minus infinity for logits: its exponential is 0, but its product with 0 is 0 instead of NaN.
_NEVER = -1e30


class CTCLoss(LossBase):
    """The loss of connectionist temporal classification (Graves et al., 2006); see `ops.ctc_loss`.

    The reduction 'mean' first divides each loss by the length of its target. A target that is
    impossible has the loss inf, or 0 with `zero_infinity`.

    >>> import mycel as ms
    >>> log_probs = ms.ops.log(ms.Tensor([[[0.5, 0.5]], [[0.5, 0.5]]]))
    >>> loss = ms.nn.CTCLoss()(log_probs, ms.Tensor([[1]]), ms.Tensor([2]), ms.Tensor([1]))
    >>> round(float(loss), 4)
    0.2877
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        arguments.text("CTCLoss", "reduction", reduction)
        super().__init__(reduction)
        self.blank = arguments.integer("CTCLoss", "blank", blank, 0)
        self.zero_infinity = arguments.flag("CTCLoss", "zero_infinity", zero_infinity)

    def construct(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        """Return the loss of targets, given the logarithms of probabilities at each time.

        Args:
            log_probs (Tensor): (T, N, C), or (T, C) of one sequence.
            targets (Tensor): (N, S) or one after the other.
            input_lengths (Tensor | tuple[int, ...]): The lengths, (N,).
            target_lengths (Tensor | tuple[int, ...]): The lengths, (N,).

        Returns:
            Tensor: The loss, (N,) before the reduction.
        """
        log_probs = input_of(self, log_probs)
        targets = input_of(self, targets)
        if targets.dtype not in (D.int32, D.int64):
            raise TypeError(f"CTCLoss: targets must be int32 or int64, not {targets.dtype.name}")
        single = log_probs.ndim == 2
        if single:
            log_probs = ops.expand_dims(log_probs, 1)
            targets = ops.expand_dims(targets, 0) if targets.ndim == 1 else targets
            input_lengths, target_lengths = (
                ops.reshape(n, (1,)) if isinstance(n, Tensor) else n for n in (input_lengths, target_lengths)
            )
        loss, _ = ops.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )
        return ops.squeeze(loss, 0) if single and self.reduction == "none" else loss


class SampledSoftmaxLoss(LossBase):
    """The cross-entropy of a softmax over the labelled and `num_sampled` other classes instead of
    all `num_classes` (Jean et al., 2015).

    The logarithm of each class's expected count is subtracted from its logit. MindSpore 2.10
    ignores `sampled_values` and `seed` on a CPU.

    Args:
        num_sampled (int): The number of classes that are drawn.
        num_classes (int): The number of all classes.
        num_true (int): The number of labels of a row, which share the probability equally. Default:
            1.
        sampled_values (tuple[Tensor, Tensor, Tensor] | None): The sampled classes and the expected
            counts of the labelled and the sampled ones, as the candidate samplers of `ops` return
            them; None to draw them by `ops.uniform_candidate_sampler`. Default: None.
        remove_accidental_hits (bool): Whether sampled classes that are labels of a row are left out
            for it. Default: True.
        seed (int): The seed of the random numbers; None or 0 for the default generator. Default: 0.
        reduction (str): 'mean', 'sum' or 'none'. Default: "none".

    Raises:
        TypeError, ValueError: For arguments that do not fit.

    Examples:
        >>> import mycel as ms
        >>> sampled = (ms.Tensor([0, 2]), ms.Tensor([[1.0]]), ms.Tensor([1.0, 1.0]))
        >>> loss = ms.nn.SampledSoftmaxLoss(2, 3, sampled_values=sampled)
        >>> weights, biases = ms.ops.zeros((3, 4)), ms.ops.zeros(3)
        >>> loss(weights, biases, ms.Tensor([1]), ms.ops.ones((1, 4))).asnumpy().round(4)
        array([1.0986], dtype=float32)
    """

    def __init__(
        self,
        num_sampled: int,
        num_classes: int,
        num_true: int = 1,
        sampled_values: Any = None,
        remove_accidental_hits: bool = True,
        seed: int = 0,
        reduction: str = "none",
    ) -> None:
        super().__init__(reduction)
        owner = "SampledSoftmaxLoss"
        self.num_classes = arguments.integer(owner, "num_classes", num_classes, 1)
        for name, value in (("num_sampled", num_sampled), ("num_true", num_true)):
            if arguments.integer(owner, name, value, 1) > num_classes:
                raise ValueError(f"{owner}: {name} must be at most num_classes, {num_classes}, not {value}")
        self.num_sampled, self.num_true = num_sampled, num_true
        if sampled_values is not None:
            arguments.sequence(owner, "sampled_values", sampled_values)
            if len(sampled_values) != 3:
                raise ValueError(
                    f"{owner}: sampled_values must be the sampled classes and two expected counts, not "
                    f"{len(sampled_values)} values"
                )
            sampled_values = tuple(sampled_values)
        self.sampled_values = sampled_values
        self.remove_accidental_hits = arguments.flag(owner, "remove_accidental_hits", remove_accidental_hits)
        self.seed = arguments.integer(owner, "seed", seed)

    def construct(self, weights: Tensor, biases: Tensor, labels: Tensor, logits: Tensor) -> Tensor:
        """Return the loss of inputs.

        Args:
            weights (Tensor): The weights of the classes, (C, D).
            biases (Tensor): The biases of the classes, (C,).
            labels (Tensor): (N, num_true), or (N,) for one.
            logits (Tensor): The inputs (N, D).

        Returns:
            Tensor: The loss, (N,) before the reduction.
        """
        labels = input_of(self, labels)
        owner = "SampledSoftmaxLoss"
        if labels.dtype not in (D.int32, D.int64):
            raise TypeError(f"{owner}: labels must be int32 or int64, not {labels.dtype.name}")
        if labels.ndim == 1:
            labels = ops.expand_dims(labels, -1)
        if labels.ndim != 2 or labels.shape[1] != self.num_true:
            raise ValueError(f"{owner}: labels must be (N, {self.num_true}), not of shape {labels.shape}")
        if self.sampled_values is None:
            sampled, true_count, sampled_count = ops.uniform_candidate_sampler(
                labels, self.num_true, self.num_sampled, True, self.num_classes, self.seed
            )
        else:
            sampled, true_count, sampled_count = self.sampled_values
        # (N, num_true, D) by (N, 1, D), and (N, D) by (S, D).
        of_true = ops.sum(ops.gather(weights, labels, 0) * ops.expand_dims(logits, 1), -1) + ops.gather(
            biases, labels, 0
        )
        of_sampled = ops.matmul(logits, ops.swapaxes(ops.gather(weights, sampled, 0), 0, 1)) + ops.gather(
            biases, sampled, 0
        )
        of_true = of_true - ops.log(cast(true_count, of_true.dtype))
        of_sampled = of_sampled - ops.log(cast(sampled_count, of_sampled.dtype))
        if self.remove_accidental_hits:
            hit = ops.sum(cast(ops.expand_dims(labels, -1) == sampled, D.int32), 1) > 0
            of_sampled = ops.where(hit, ops.full_like(of_sampled, _NEVER), of_sampled)
        log_probabilities = ops.log_softmax(ops.concat((of_true, of_sampled), 1), 1)
        return self.get_loss(-ops.mean(log_probabilities[:, : self.num_true], 1))
