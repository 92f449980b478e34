"""Binary classification rates: ratios of true and false positives and negatives (Fawcett, 2006).

Source: Pattern Recognition Letters 27.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mycel._src.foundation import arguments
from mycel.train.metrics.base import Metric, rearrange_inputs

__all__ = ["ConfusionMatrixMetric"]

Array = NDArray[Any]
Rate = Callable[[Array, Array, Array, Array], Array]


def _sensitivity(tp: Array, fp: Array, tn: Array, fn: Array) -> Array:
    return tp / (tp + fn)


def _specificity(tp: Array, fp: Array, tn: Array, fn: Array) -> Array:
    return tn / (tn + fp)


def _precision(tp: Array, fp: Array, tn: Array, fn: Array) -> Array:
    return tp / (tp + fp)


def _negative_value(tp: Array, fp: Array, tn: Array, fn: Array) -> Array:
    return tn / (tn + fn)


def _threshold(tp: Array, fp: Array, tn: Array, fn: Array) -> Array:
    right, wrong = _sensitivity(tp, fp, tn, fn), 1 - _specificity(tp, fp, tn, fn)
    return (np.sqrt(right * wrong) - wrong) / (right - wrong)


def _correlation(tp: Array, fp: Array, tn: Array, fn: Array) -> Array:
    return (tp * tn - fp * fn) / np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))


_RATES: dict[str, Rate] = {
    "sensitivity recall hit_rate true_positive_rate tpr": _sensitivity,
    "specificity selectivity true_negative_rate tnr": _specificity,
    "precision positive_predictive_value ppv": _precision,
    "negative_predictive_value npv": _negative_value,
    "miss_rate false_negative_rate fnr": lambda *c: 1 - _sensitivity(*c),
    "fall_out false_positive_rate fpr": lambda *c: 1 - _specificity(*c),
    "false_discovery_rate fdr": lambda *c: 1 - _precision(*c),
    "false_omission_rate for": lambda *c: 1 - _negative_value(*c),
    "prevalence_threshold pt": _threshold,
    "threat_score critical_success_index ts csi": lambda tp, fp, tn, fn: tp / (tp + fn + fp),
    "accuracy acc": lambda tp, fp, tn, fn: (tp + tn) / (tp + fp + tn + fn),
    "balanced_accuracy ba": lambda *c: (_sensitivity(*c) + _specificity(*c)) / 2,
    "f1_score f1": lambda tp, fp, tn, fn: 2 * tp / (2 * tp + fn + fp),
    "matthews_correlation_coefficient mcc": _correlation,
    "fowlkes_mallows_index fm": lambda *c: np.sqrt(_precision(*c) * _sensitivity(*c)),
    "informedness bookmaker_informedness bm": lambda *c: _sensitivity(*c) + _specificity(*c) - 1,
    "markedness deltap mk": lambda *c: _precision(*c) + _negative_value(*c) - 1,
}
_BY_NAME = {name: rate for names, rate in _RATES.items() for name in names.split()}
_DECREASES = ("none", "mean", "sum", "mean_batch", "sum_batch", "mean_channel", "sum_channel")


class ConfusionMatrixMetric(Metric):
    """One rate of predictions of zeros and ones against labels of zeros and ones, both [N, C, ...].

    Rates of zero over zero are NaN and are left out.

    Args:
        skip_channel (bool): Whether the first channel is left out if there are several (in
            MindSpore 2.10 it is left out if `skip_channel` is False). Default: True.
        metric_name (str): One of sensitivity, specificity, precision, negative_predictive_value,
            miss_rate, fall_out, false_discovery_rate, false_omission_rate, prevalence_threshold,
            threat_score, accuracy, balanced_accuracy, f1_score, matthews_correlation_coefficient,
            fowlkes_mallows_index, informedness and markedness, or another of its names ("recall",
            "tpr", "mcc", ...). Default: "sensitivity".
        calculation_method (bool): Whether the rate of each channel of each sample is computed;
            otherwise counts are summed over everything seen and `eval` gives an array of one rate.
            Default: False.
        decrease (str): How rates of samples are reduced: "mean" (over channels, then samples) and
            "sum" give a number, of several updates the mean weighted by their numbers of values;
            "mean_batch" and "sum_batch" reduce the samples, "mean_channel" and "sum_channel" the
            channels, "none" nothing. Default: "mean".

    Raises:
        TypeError, ValueError: For other options.
        NotImplementedError: For an unknown rate.

    Examples:
        >>> import mycel as ms
        >>> predictions = ms.Tensor([[[0], [1]], [[1], [0]]])
        >>> ConfusionMatrixMetric()(predictions, ms.Tensor([[[0], [1]], [[0], [1]]]))
        array([0.5])
    """

    def __init__(
        self,
        skip_channel: bool = True,
        metric_name: str = "sensitivity",
        calculation_method: bool = False,
        decrease: str = "mean",
    ) -> None:
        super().__init__()
        for title, value in (("skip_channel", skip_channel), ("calculation_method", calculation_method)):
            arguments.flag("ConfusionMatrixMetric", title, value)
        arguments.text("ConfusionMatrixMetric", "metric_name", metric_name)
        arguments.choice("ConfusionMatrixMetric", "decrease", decrease, _DECREASES)
        found = _BY_NAME.get(metric_name.strip().lower().replace(" ", "_"))
        if found is None:
            raise NotImplementedError(
                f"ConfusionMatrixMetric: there is no rate {metric_name!r}; known: {', '.join(sorted(_BY_NAME))}"
            )
        self.skip_channel, self.metric_name = skip_channel, metric_name
        self.calculation_method, self.decrease = calculation_method, decrease
        self._rate = found
        self.clear()

    def clear(self) -> None:
        """Forget everything seen."""
        self._counts: list[Array] = []

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Add a batch of predictions and labels."""
        predicted, true = self._arrays(inputs, "y_pred", "y")
        if predicted.ndim < 2 or predicted.shape != true.shape:
            raise ValueError(
                f"ConfusionMatrixMetric.update: y_pred and y have one shape [N, C, ...], not {predicted.shape} and "
                f"{true.shape}"
            )
        for title, array in (("y_pred", predicted), ("y", true)):
            if not ((array == 0) | (array == 1)).all():
                raise ValueError(f"ConfusionMatrixMetric.update: {title} must hold zeros and ones only")
        if self.skip_channel and predicted.shape[1] > 1:
            predicted, true = predicted[:, 1:], true[:, 1:]
        yes, right = predicted.astype(bool), true.astype(bool)
        axes = tuple(range(2, yes.ndim))
        self._counts.append(
            np.stack([(a & b).sum(axis=axes) for a, b in ((yes, right), (yes, ~right), (~yes, ~right), (~yes, right))])
        )

    def eval(self) -> Any:
        """Return the rate: an array of one, or with `calculation_method` the reduction by
        `decrease`.
        """
        if not self._counts:
            raise self._nothing()
        with np.errstate(divide="ignore", invalid="ignore"):
            if not self.calculation_method:
                total = sum(c.sum(axis=(1, 2)) for c in self._counts)
                return np.atleast_1d(self._rate(*np.asarray(total, np.float64)))
            rates = [self._rate(*c.astype(np.float64)) for c in self._counts]
        if self.decrease not in ("mean", "sum"):
            return self._reduced(np.concatenate(rates))
        parts = [_mean(r) if self.decrease == "mean" else (np.nansum(r), int((~np.isnan(r)).sum())) for r in rates]
        weight = sum(count for _, count in parts)
        if weight == 0:
            raise self._nothing()
        return float(sum(value * count for value, count in parts) / weight)

    def _reduced(self, rates: Array) -> Array:
        if self.decrease == "none":
            return rates
        how, over = self.decrease.split("_")
        axis = 0 if over == "batch" else 1
        known = ~np.isnan(rates)
        total, count = np.where(known, rates, 0).sum(axis=axis), known.sum(axis=axis)
        return total if how == "sum" else np.where(count > 0, total / np.maximum(count, 1), 0)


def _mean(rates: Array) -> tuple[float, int]:
    """Return the mean over samples of the means over channels, and the number of samples in it."""
    known = ~np.isnan(rates)
    count = known.sum(axis=1)
    rows = np.where(known, rates, 0).sum(axis=1)[count > 0] / count[count > 0]
    return (float(rows.mean()) if rows.size else 0.0), int(rows.size)
