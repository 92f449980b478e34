"""The confusion matrix: sample counts by actual class (rows) and predicted class (columns)."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel.train.metrics.base import Metric, rearrange_inputs

__all__ = ["ConfusionMatrix"]

_NORMS = {"no_norm": None, "target": 1, "prediction": 0, "all": (0, 1)}


class ConfusionMatrix(Metric):
    """The numbers of samples by actual class (rows) and predicted class (columns).

    `num_classes` is the number of classes C. `normalize` divides by the row's sum ("target"), the
    column's ("prediction") or the total ("all"); a sum of zero gives zeros. A binary score of
    `threshold` or more counts as class 1. Raises TypeError or ValueError for other arguments.

    >>> import mycel as ms
    >>> ConfusionMatrix(2)(ms.Tensor([1, 0, 1, 0]), ms.Tensor([1, 0, 0, 1]))
    array([[1., 1.], [1., 1.]])
    """

    def __init__(self, num_classes: int, normalize: str = "no_norm", threshold: float = 0.5) -> None:
        super().__init__()
        arguments.integer("ConfusionMatrix", "num_classes", num_classes, 1, numpy=False)
        arguments.one_of("ConfusionMatrix", "normalize", normalize, _NORMS)
        arguments.instance("ConfusionMatrix", "threshold", threshold, float)
        if num_classes > 1 << 16:
            raise ValueError(f"ConfusionMatrix: a matrix of {num_classes} classes does not fit in memory")
        self.num_classes = num_classes
        self.normalize = normalize
        self.threshold = threshold
        self.clear()

    def clear(self) -> None:
        """Forget everything seen."""
        self.confusion_matrix = np.zeros((self.num_classes, self.num_classes), np.int64)
        self._is_update = False

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Add a batch of predictions and classes int [N].

        Predictions are classes int [N], scores float [N, C] or, for two classes, scores float [N].
        """
        predicted, actual = self._arrays(inputs, "y_pred", "y")
        if predicted.ndim == actual.ndim + 1 > 1:
            predicted = predicted.argmax(axis=1)
        elif predicted.dtype.kind == "f" and self.num_classes == 2:
            predicted = predicted >= self.threshold
        if predicted.shape != actual.shape:
            raise ValueError(
                f"ConfusionMatrix.update: y_pred of shape {predicted.shape} does not fit y of shape {actual.shape}"
            )
        rows, columns = actual.astype(np.int64).reshape(-1), predicted.astype(np.int64).reshape(-1)
        for title, classes in (("y_pred", columns), ("y", rows)):
            if classes.size and not 0 <= classes.min() <= classes.max() < self.num_classes:
                raise ValueError(
                    f"ConfusionMatrix.update: {title} holds classes from {classes.min()} to {classes.max()}, outside "
                    "the "
                    f"{self.num_classes} of this matrix"
                )
        size = self.num_classes**2
        counts = np.bincount(rows * self.num_classes + columns, minlength=size)
        self.confusion_matrix += counts.reshape(self.num_classes, self.num_classes)
        self._is_update = True

    def eval(self) -> Any:
        """Return the matrix, float64 [C, C].

        Raises RuntimeError if `update` was not called.
        """
        if not self._is_update:
            raise self._nothing()
        matrix = self.confusion_matrix.astype(np.float64)
        if self.normalize == "no_norm":
            return matrix
        total = matrix.sum(axis=_NORMS[self.normalize], keepdims=True)
        return np.divide(matrix, total, out=np.zeros_like(matrix), where=total != 0)
