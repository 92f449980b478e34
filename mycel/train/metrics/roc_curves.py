"""Receiver operating characteristics and areas under curves.

At a threshold, the true-positive rate is the share of positive samples whose score reaches it, the
false-positive rate that of negative ones (Fawcett, "An introduction to ROC analysis", Pattern
Recognition Letters 27, 2006). Areas are by the trapezoidal rule.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mycel._src.foundation import arguments
from mycel.train.metrics.base import Metric, as_array, rearrange_inputs

__all__ = ["ROC", "auc"]

Array = NDArray[Any]


class ROC(Metric):
    """The receiver operating characteristic: false-positive rates, true-positive rates, and their
    thresholds in descending order.

    The first threshold is the highest score plus 1, which no score reaches.

    `update` takes scores [N] and labels [N], of which `pos_label` (default 1) is the positive one.
    With `class_num` it takes scores [N, C] and labels [N], and `eval` then gives three lists of one
    array for each class. Scores and labels of all batches count (in MindSpore those of the last
    batch only). Raises TypeError for options that are not integers, ValueError if all samples are
    positive or all are negative.

    >>> import mycel as ms
    >>> fpr, tpr, thresholds = ROC()(ms.Tensor([0.1, 0.4, 0.8]), ms.Tensor([0, 1, 1]))
    >>> fpr.tolist(), tpr.tolist()
    ([0.0, 0.0, 0.0, 1.0], [0.0, 0.5, 1.0, 1.0])
    """

    def __init__(self, class_num: int | None = None, pos_label: int | None = None) -> None:
        super().__init__()
        for name, value in (("class_num", class_num), ("pos_label", pos_label)):
            if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
                raise TypeError(f"ROC: {name} must be an integer or None, not {value!r}")
        self.class_num, self.pos_label = class_num, pos_label
        self.clear()

    def clear(self) -> None:
        """Forget everything seen."""
        self._scores: list[Array] = []
        self._labels: list[Array] = []

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Add a batch of scores and labels."""
        scores, labels = self._arrays(inputs, "y_pred", "y")
        several = self.class_num is not None and self.class_num > 1
        if several and scores.ndim >= 2 and scores.shape[1] != self.class_num:
            raise ValueError(
                f"ROC.update: y_pred of shape {scores.shape} has not the {self.class_num} classes of class_num"
            )
        if several:
            columns = np.moveaxis(scores, 1, -1) if scores.ndim > 2 else scores
            if columns.shape[:-1] != labels.shape:
                raise ValueError(f"ROC.update: y_pred of shape {scores.shape} does not fit y of shape {labels.shape}")
            scores = columns.reshape(-1, self.class_num or 1)
        elif scores.shape != labels.shape:
            raise ValueError(
                f"ROC.update: y_pred of shape {scores.shape} and y of shape {labels.shape} differ; give class_num for "
                "scores of several classes"
            )
        else:
            scores = scores.reshape(-1)
        self._scores.append(scores)
        self._labels.append(labels.reshape(-1))

    def eval(self) -> Any:
        """Return the rates and thresholds."""
        if not any(scores.size for scores in self._scores):
            raise self._nothing()
        scores, labels = np.concatenate(self._scores), np.concatenate(self._labels)
        if scores.ndim == 1:
            return _curve(scores, labels == (1 if self.pos_label is None else self.pos_label))
        found = [_curve(scores[:, k], labels == k) for k in range(scores.shape[1])]
        return tuple([list(part) for part in zip(*found)])


def _curve(scores: Array, positive: Array) -> tuple[Array, Array, Array]:
    order = np.argsort(-scores, kind="stable")
    scores, positive = scores[order], positive[order]
    last = np.append(np.flatnonzero(np.diff(scores)), scores.size - 1)
    true = np.cumsum(positive, dtype=np.float64)[last]
    false = 1 + last - true
    for count, kind in ((true[-1], "positive"), (false[-1], "negative")):
        if count == 0:
            raise ValueError(
                f"ROC.eval: there is no {kind} sample, so that the rates of {kind} samples have no meaning"
            )
    start = np.zeros(1)
    thresholds = np.append(scores[:1] + 1, scores[last])
    return np.append(start, false / false[-1]), np.append(start, true / true[-1]), thresholds


def auc(x: Any, y: Any, reorder: bool = False) -> Any:
    """Return the area under a curve through points, by the trapezoidal rule.

    `x`, float [N], ascends or descends, or with `reorder` is sorted first; `y` is float [N]. Raises
    TypeError unless both are vectors, ValueError for fewer than two points, different lengths, or x
    in no order.

    >>> import numpy as np
    >>> float(auc(np.array([0.0, 0.5, 1.0]), np.array([0.0, 1.0, 1.0])))
    0.75
    """
    arguments.flag("auc", "reorder", reorder)
    a, b = as_array(x, "auc", "x"), as_array(y, "auc", "y")
    if a.ndim != 1 or b.ndim != 1 or a.size != b.size or a.size < 2:
        raise ValueError(
            f"auc: x and y must be vectors of one length, at least 2, not of shapes {a.shape} and {b.shape}"
        )
    if reorder:
        order = np.lexsort((b, a))
        a, b = a[order], b[order]
    steps = np.diff(a)
    if (steps > 0).any() and (steps < 0).any():
        raise ValueError(f"auc: x must ascend or descend, not go up and down as {a.tolist()}; or pass reorder=True")
    sign = -1 if (steps < 0).any() else 1
    return sign * (steps * (b[1:] + b[:-1]) / 2).sum()
