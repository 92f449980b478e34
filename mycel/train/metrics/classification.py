"""Metrics of classification: accuracy, top-k accuracy, precision, recall and the F-measure.

With tp the true positives of a class: precision is tp over the samples predicted as that class,
recall is tp over the samples of that class, and F_beta = (1 + beta^2) precision recall / (beta^2
precision + recall) (van Rijsbergen, "Information Retrieval", 1979). A ratio of zero to zero is 0.
Multilabel precision and recall are per sample, over its labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mycel._src.foundation import arguments
from mycel._src.foundation.errors import IndexRangeError
from mycel.train.metrics.base import EvaluationBase, Metric, rearrange_inputs

__all__ = [
    "F1",
    "Accuracy",
    "Fbeta",
    "Precision",
    "Recall",
    "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy",
]


class Accuracy(EvaluationBase):
    """The share of samples that are predicted correctly.

    A multilabel sample is correct if all its labels are.

    >>> import mycel as ms
    >>> Accuracy()(ms.Tensor([[0.2, 0.8], [0.9, 0.1]]), ms.Tensor([1, 1]))
    0.5
    """

    def __init__(self, eval_type: str = "classification") -> None:
        super().__init__(eval_type)
        self.clear()

    def clear(self) -> None:
        """Forget everything seen."""
        self._correct = 0
        self._total = 0
        self._class_num = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Add a batch of scores y_pred and labels y (see `EvaluationBase`).

        Raises ValueError if their shapes do not fit.
        """
        scores, labels = self._predictions(inputs)
        if self._type == "classification":
            correct = scores.argmax(axis=1) == labels
        else:
            correct = np.moveaxis(scores == labels, 1, -1).all(axis=-1)
        self._correct += int(correct.sum())
        self._total += correct.size

    def eval(self) -> float:
        """Return the accuracy, from 0 to 1.

        Raises RuntimeError if no sample was seen.
        """
        if self._total == 0:
            raise self._nothing()
        return self._correct / self._total


class TopKCategoricalAccuracy(Metric):
    """The share of samples whose class is among the `k` highest scores.

    Of equal scores the first counts as the highest.

    >>> import mycel as ms
    >>> TopKCategoricalAccuracy(2)(ms.Tensor([[0.2, 0.5, 0.3], [0.1, 0.2, 0.7]]), ms.Tensor([2, 0]))
    0.5
    """

    def __init__(self, k: int) -> None:
        super().__init__()
        arguments.integer(type(self).__name__, "k", k, 1, numpy=False)
        self.k = k
        self.clear()

    def clear(self) -> None:
        """Forget everything seen."""
        self._correct = 0
        self._samples = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Add a batch of scores float [N, C] and classes int [N] or one-hot [N, C].

        Raises ValueError if they do not fit.
        """
        scores, labels = self._arrays(inputs, "y_pred", "y")
        if scores.ndim == 2 and labels.shape == scores.shape:
            labels = labels.argmax(axis=1)
        if scores.ndim != 2 or labels.shape != scores.shape[:1]:
            raise ValueError(
                f"{type(self).__name__}.update: y_pred must be [N, C] and y [N] or [N, C], not {scores.shape} and "
                f"{labels.shape}"
            )
        if self.k > scores.shape[1]:
            raise ValueError(
                f"{type(self).__name__}.update: k is {self.k}, and y_pred has only {scores.shape[1]} classes"
            )
        highest = np.argsort(-scores.astype(np.float64), axis=1, kind="stable")[:, : self.k]
        self._correct += int((highest == labels[:, None]).any(axis=1).sum())
        self._samples += len(labels)

    def eval(self) -> float:
        """Return the top-k accuracy, from 0 to 1.

        Raises RuntimeError if no sample was seen.
        """
        if self._samples == 0:
            raise self._nothing()
        return self._correct / self._samples


class Top1CategoricalAccuracy(TopKCategoricalAccuracy):
    """`TopKCategoricalAccuracy` with k = 1."""

    def __init__(self) -> None:
        super().__init__(1)


class Top5CategoricalAccuracy(TopKCategoricalAccuracy):
    """`TopKCategoricalAccuracy` with k = 5."""

    def __init__(self) -> None:
        super().__init__(5)


class _Counts(EvaluationBase):
    """The numbers of true positives, predicted positives and actual positives: per class, or per
    sample for multilabel.
    """

    def __init__(self, eval_type: str = "classification") -> None:
        super().__init__(eval_type)
        self.clear()

    def clear(self) -> None:
        """Forget everything seen."""
        self._class_num = 0
        self._counts: NDArray[np.int64] = np.zeros((3, 0), np.int64)

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Add a batch of scores y_pred and labels y (see `EvaluationBase`).

        Raises ValueError if they do not fit.
        """
        scores, labels = self._predictions(inputs)
        if self._type == "classification":
            classes = scores.shape[1]
            labels = labels.astype(np.int64).reshape(-1)
            predicted = scores.argmax(axis=1).reshape(-1)
            if labels.size and not 0 <= labels.min() <= labels.max() < classes:
                raise IndexRangeError(
                    f"{type(self).__name__}.update: y holds classes from {labels.min()} to {labels.max()}, y_pred has "
                    f"{classes}"
                )
            batch = [
                np.bincount(chosen, minlength=classes) for chosen in (labels[labels == predicted], predicted, labels)
            ]
            self._counts = np.array(batch) + (self._counts if self._counts.size else 0)
        else:
            scores, labels = (np.moveaxis(a, 1, -1).reshape(-1, self._class_num).astype(bool) for a in (scores, labels))
            batch = [found.sum(axis=1) for found in (scores & labels, scores, labels)]
            self._counts = np.concatenate([self._counts, np.array(batch)], axis=1)

    def _ratios(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return precision and recall of each class or sample."""
        if self._counts.size == 0:
            raise self._nothing()
        hits, predicted, actual = self._counts
        return _ratio(hits, predicted), _ratio(hits, actual)


class Precision(_Counts):
    """The precision of each class: the share of the samples predicted as the class that belong to
    it.

    >>> import mycel as ms
    >>> Precision()(ms.Tensor([[0.2, 0.8], [0.9, 0.1], [0.3, 0.7]]), ms.Tensor([1, 0, 0]))
    array([1. , 0.5])
    """

    def eval(self, average: bool = False) -> Any:
        """Return the precisions, float64 [C] (multilabel: [N]), or their mean with `average`.

        Raises RuntimeError if no sample was seen.
        """
        arguments.flag("Precision.eval", "average", average)
        precision, _ = self._ratios()
        return float(precision.mean()) if average else precision


class Recall(_Counts):
    """The recall of each class: the share of the samples of the class that are predicted as it.

    >>> import mycel as ms
    >>> Recall()(ms.Tensor([[0.2, 0.8], [0.9, 0.1], [0.3, 0.7]]), ms.Tensor([1, 0, 0]))
    array([0.5, 1. ])
    """

    def eval(self, average: bool = False) -> Any:
        """Return the recalls, float64 [C] (multilabel: [N]), or their mean with `average`.

        Raises RuntimeError if no sample was seen.
        """
        arguments.flag("Recall.eval", "average", average)
        _, recall = self._ratios()
        return float(recall.mean()) if average else recall


class Fbeta(_Counts):
    """The weighted harmonic mean of precision and recall of each class; recall weighs `beta` times
    as much as precision.

    >>> import mycel as ms
    >>> Fbeta(1)(ms.Tensor([[0.2, 0.8], [0.9, 0.1], [0.3, 0.7]]), ms.Tensor([1, 0, 0])).round(3)
    array([0.667, 0.667])
    """

    def __init__(self, beta: float) -> None:
        super().__init__("classification")
        arguments.instance("Fbeta", "beta", beta, (int, float), "a number")
        if not 0 < beta < 1e150:
            raise ValueError(f"Fbeta: beta must be greater than 0 and below 1e150, not {beta}")
        self.beta = beta

    def eval(self, average: bool = False) -> Any:
        """Return the measures, float64 [C], or their mean with `average`.

        Raises RuntimeError if no sample was seen.
        """
        arguments.flag(f"{type(self).__name__}.eval", "average", average)
        precision, recall = self._ratios()
        weight = self.beta**2
        measure = _ratio((1 + weight) * precision * recall, weight * precision + recall)
        return float(measure.mean()) if average else measure


class F1(Fbeta):
    """`Fbeta` with beta = 1: the harmonic mean of precision and recall."""

    def __init__(self) -> None:
        super().__init__(1.0)


def _ratio(part: NDArray[Any], whole: NDArray[Any]) -> NDArray[np.float64]:
    ratio = np.zeros(len(whole), np.float64)
    np.divide(part, whole, out=ratio, where=whole != 0)
    return ratio
