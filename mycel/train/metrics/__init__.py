"""Metrics: numbers that say how good a trained network is, computed batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from mycel._src.foundation import arguments
from mycel.train.metrics.base import EvaluationBase as EvaluationBase
from mycel.train.metrics.base import Metric as Metric
from mycel.train.metrics.base import rearrange_inputs as rearrange_inputs
from mycel.train.metrics.binary_rates import ConfusionMatrixMetric as ConfusionMatrixMetric
from mycel.train.metrics.classification import F1 as F1
from mycel.train.metrics.classification import Accuracy as Accuracy
from mycel.train.metrics.classification import Fbeta as Fbeta
from mycel.train.metrics.classification import Precision as Precision
from mycel.train.metrics.classification import Recall as Recall
from mycel.train.metrics.classification import Top1CategoricalAccuracy as Top1CategoricalAccuracy
from mycel.train.metrics.classification import Top5CategoricalAccuracy as Top5CategoricalAccuracy
from mycel.train.metrics.classification import TopKCategoricalAccuracy as TopKCategoricalAccuracy
from mycel.train.metrics.confusion import ConfusionMatrix as ConfusionMatrix
from mycel.train.metrics.mean_errors import MAE as MAE
from mycel.train.metrics.mean_errors import MSE as MSE
from mycel.train.metrics.mean_errors import Loss as Loss
from mycel.train.metrics.roc_curves import ROC as ROC
from mycel.train.metrics.roc_curves import auc as auc
from mycel.train.metrics.similarity import CosineSimilarity as CosineSimilarity
from mycel.train.metrics.similarity import Dice as Dice
from mycel.train.metrics.similarity import OcclusionSensitivity as OcclusionSensitivity
from mycel.train.metrics.surface_distances import HausdorffDistance as HausdorffDistance
from mycel.train.metrics.surface_distances import MeanSurfaceDistance as MeanSurfaceDistance
from mycel.train.metrics.surface_distances import RootMeanSquareDistance as RootMeanSquareDistance
from mycel.train.metrics.text import BleuScore as BleuScore
from mycel.train.metrics.text import Perplexity as Perplexity

_METRICS: dict[str, Callable[..., Any]] = {
    "F1": F1,
    "acc": Accuracy,
    "accuracy": Accuracy,
    "auc": auc,
    "bleu_score": BleuScore,
    "confusion_matrix": ConfusionMatrix,
    "confusion_matrix_metric": ConfusionMatrixMetric,
    "cosine_similarity": CosineSimilarity,
    "dice": Dice,
    "hausdorff_distance": HausdorffDistance,
    "loss": Loss,
    "mae": MAE,
    "mean_surface_distance": MeanSurfaceDistance,
    "mse": MSE,
    "occlusion_sensitivity": OcclusionSensitivity,
    "perplexity": Perplexity,
    "precision": Precision,
    "recall": Recall,
    "roc": ROC,
    "root_mean_square_distance": RootMeanSquareDistance,
    "top_1_accuracy": Top1CategoricalAccuracy,
    "top_5_accuracy": Top5CategoricalAccuracy,
    "topk": TopKCategoricalAccuracy,
}


def names() -> list[str]:
    """Return the names that `get_metric_fn` and `Model(metrics=...)` know."""
    return sorted(_METRICS)


def get_metric_fn(name: str, *args: Any, **kwargs: Any) -> Any:
    """Return a new metric by its name, constructed with the further arguments.

    ("auc" is a function and is called with them.) Raises KeyError for an unknown name.

    >>> type(get_metric_fn("accuracy", eval_type="multilabel")).__name__
    'Accuracy'
    """
    if not isinstance(name, Hashable):
        raise arguments.wrong_type("get_metric_fn", "name", "a string", name)
    if name not in _METRICS:
        raise KeyError(f"get_metric_fn: there is no metric {name!r}; known: {', '.join(names())}")
    return _METRICS[name](*args, **kwargs)


def get_metrics(metrics: Any) -> dict[str, Metric]:
    """Return metrics by name.

    `metrics` is a set of names, a dict of metrics (or names of metrics) by any name, or None for
    none.
    """
    if metrics is None:
        return {}
    if isinstance(metrics, Mapping):
        made = {name: get_metric_fn(metric) if isinstance(metric, str) else metric for name, metric in metrics.items()}
    elif isinstance(metrics, (set, frozenset, list, tuple)):
        made = {name: get_metric_fn(name) if isinstance(name, str) else name for name in metrics}
    else:
        raise arguments.wrong_type("get_metrics", "metrics", "a set of names or a dict of metrics", metrics)
    for name, metric in made.items():
        if not isinstance(name, str) or not isinstance(metric, Metric):
            raise TypeError(f"metrics[{name!r}] must be a Metric or the name of one, not {type(metric).__name__}")
    return made
