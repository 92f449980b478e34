"""Metrics and callbacks that steer training, against what MindSpore's own compute from the same
numbers (values/train.json, stored).

Predictions, labels and losses are drawn here by the formulas with which the stored values were
made. Where MindSpore's value is NaN (a class was not there), and where `EarlyStopping` differs by
intention (no patience, and baselines), the definitions are checked instead, in the tests next to
this one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, nn, train
from mycel.train.callback.base import CallbackParameters

STORED = json.loads((Path(__file__).parent / "values" / "train.json").read_text())
METRICS = (
    "Accuracy ConfusionMatrix F1 Fbeta Loss MAE MSE Precision Recall Top1CategoricalAccuracy Top5CategoricalAccuracy "
    "TopKCategoricalAccuracy names EarlyStopping ReduceLROnPlateau"
)
CHECKED = {f"train.{name}": "MindSpore" for name in METRICS.split()}


class Inputs:
    """What the metrics are given: `rows` samples of `classes` classes in two batches."""

    def __init__(self, seed: int, rows: int, classes: int) -> None:
        scores = np.random.RandomState(seed).rand(rows, classes).astype(np.float32)
        self.scores = scores / scores.sum(1, keepdims=True)
        self.labels = np.random.RandomState(seed + 50).randint(0, classes, rows).astype(np.int32)
        self.onehot = np.eye(classes)[self.labels].astype(np.float32)
        self.predicted = np.random.RandomState(seed + 70).randint(0, classes, rows)
        random = np.random.RandomState(seed + 90)
        self.some = random.randint(0, 2, (rows, classes)).astype(np.float32)
        self.others = random.randint(0, 2, (rows, classes)).astype(np.float32)

    def batches(self, kind: str) -> list[tuple[Any, ...]]:
        columns = {
            "": (self.scores, self.labels),
            "onehot": (self.scores, self.onehot),
            "multilabel": (self.some, self.others),
            "errors": (self.some * self.scores, self.others),
            "both": (self.some * self.scores, self.others * self.scores),
            "labels": (self.predicted, self.labels),
            "chances": (self.scores[:, 1], self.labels),
        }[kind]
        half = len(self.labels) // 2
        if kind in ("both", "labels", "chances"):
            return [columns]
        return [(columns[0][:half], columns[1][:half]), (columns[0][half:], columns[1][half:])]


def _made(name: str, classes: int) -> tuple[Any, str, tuple[Any, ...]]:
    """The metric that a stored row is of, the kind of its inputs, and the arguments of eval."""
    words = name.split()
    first = words[0]
    kind = next((word for word in words if word in ("onehot", "multilabel")), "")
    average = (words[-1] == "True",) if words[-2:-1] == ["average"] else ()
    if first in ("accuracy", "precision", "recall"):
        maker = {"accuracy": train.Accuracy, "precision": train.Precision, "recall": train.Recall}[first]
        return maker("multilabel" if kind == "multilabel" else "classification"), kind, average
    if first == "fbeta":
        return train.Fbeta(float(words[1])), kind, (True,) if words[-1] == "average" else ()
    if first == "f1":
        return train.F1(), kind, ()
    if first in ("mae", "mae2", "mse"):
        return (train.MSE if first == "mse" else train.MAE)(), "both" if first == "mae" else "errors", ()
    if first == "confusion" and words[1] in ("scores", "scores3"):
        return train.ConfusionMatrix(2, "no_norm", 0.3 if words[1] == "scores3" else 0.5), "chances", ()
    if first == "confusion":
        norm = {} if words[1] == "labels" else {"normalize": words[1], "threshold": float(words[2])}
        return train.ConfusionMatrix(classes, **norm), "labels" if words[1] == "labels" else "", ()
    return train.TopKCategoricalAccuracy(int(first[3:])), kind, ()


@pytest.mark.parametrize("row", STORED["metrics"], ids=lambda row: f"{row[3]} {row[1]}x{row[2]}".replace(" ", "_"))
def test_metrics(row: Any) -> None:
    seed, rows, classes, name, stored = row
    wanted = np.asarray(stored, np.float64)
    inputs = Inputs(seed, rows, classes)
    if name == "loss":
        metric = train.Loss()
        for value in inputs.scores[0]:
            metric.update(Tensor(float(value), ms.float32))
        assert metric.eval() == pytest.approx(float(wanted), rel=1e-6)
        return
    metric, kind, arguments = _made(name, classes)
    for wrap in (np.asarray, Tensor):
        metric.clear()
        for batch in inputs.batches(kind):
            metric.update(*[wrap(column) for column in batch])
        found = np.asarray(metric.eval(*arguments), np.float64)
        assert found.shape == wanted.shape
        defined = ~np.isnan(wanted)
        np.testing.assert_allclose(found[defined], wanted[defined], rtol=2e-6, atol=1e-7)


def test_the_named_ks() -> None:
    for seed, rows, classes in ((0, 7, 5), (1, 20, 9), (3, 33, 7)):
        inputs = Inputs(seed, rows, classes)
        order = np.argsort(-inputs.scores, axis=1)
        for k, metric in ((1, train.Top1CategoricalAccuracy()), (5, train.Top5CategoricalAccuracy())):
            hits = (order[:, :k] == inputs.labels[:, None]).any(1)
            for batch in inputs.batches(""):
                metric.update(*batch)
            assert metric.eval() == pytest.approx(hits.mean())


def test_names() -> None:
    assert set(train.names()) == set(STORED["names"])


def _losses(seed: int) -> list[float]:
    random = np.random.RandomState(seed)
    return [round(float(v), 3) for v in 2 / (1 + np.arange(12)) + 0.3 * random.randn(12)]


class _Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = ms.Parameter(Tensor(0.0), name="w")

    def construct(self, x: Any) -> Any:
        """A product."""
        return x * self.w


def _trace(callback: Any, seed: int, monitor: str) -> tuple[list[tuple[bool, float]], float]:
    """After each epoch whether training stops, and the learning rate; at the end the weight, which
    was each epoch's number.
    """
    network = _Net()
    optimizer = nn.SGD(network.trainable_params(), 0.1)
    params = CallbackParameters(train_network=network, network=network, optimizer=optimizer, batch_num=1, epoch_num=99)
    params.update(cur_epoch_num=1, cur_step_num=0)
    context = train.RunContext(params)
    callback.on_train_begin(context)
    trace = []
    for epoch, loss in enumerate(_losses(seed), 1):
        network.w.set_data(Tensor(float(epoch)))
        results = {} if monitor == "loss" else {monitor: loss}
        params.update(cur_epoch_num=epoch, cur_step_num=epoch, eval_results=results, metrics=results)
        params["net_outputs"] = Tensor(loss if monitor == "loss" else 0.0, ms.float32)
        callback.on_train_epoch_end(context)
        trace.append((context.get_stop_requested(), float(optimizer.learning_rate.asnumpy())))
        if trace[-1][0]:
            break
    callback.on_train_end(context)
    return trace, float(network.w.asnumpy())


@pytest.mark.parametrize("seed, options, epochs, stopped, weight", STORED["early"])
def test_early_stopping(seed: int, options: dict[str, Any], epochs: int, stopped: bool, weight: float) -> None:
    trace, last = _trace(train.EarlyStopping(**options), seed, options.get("monitor", "eval_loss"))
    assert (len(trace), trace[-1][0], last) == (epochs, stopped, weight)


@pytest.mark.parametrize("seed, options, rates", STORED["plateau"])
def test_reduce_on_plateau(seed: int, options: dict[str, Any], rates: list[float]) -> None:
    trace, _ = _trace(train.ReduceLROnPlateau(**options), seed, options.get("monitor", "eval_loss"))
    np.testing.assert_allclose([rate for _, rate in trace], rates, rtol=1e-6)
