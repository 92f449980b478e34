"""Progress and history of trainings, and the trial of learning rates."""

from __future__ import annotations

import io
import math
import random
import re
import sys
from typing import Any

import numpy as np
import pytest

import mycel as ms
import mycel.dataset as ds
from mycel import nn
from mycel.train import (
    LambdaCallback,
    LearningRateCurve,
    LossMonitor,
    Model,
    ProgressBar,
    TimeMonitor,
    TrainingHistory,
    find_learning_rate,
)
from mycel.train.callback import progress as module

CHECKED = {
    "train.ProgressBar": "the losses of steps, and text on a stream",
    "train.TrainingHistory": "the losses of steps",
    "train.find_learning_rate": "a quadratic function whose best rates are known",
    "train.LearningRateCurve": "a quadratic function whose best rates are known",
}


def make(metrics: Any = None) -> tuple[Model, Any]:
    values = np.random.default_rng(0)
    x, y = (values.normal(size=(24, n)).astype(np.float32) for n in (3, 1))
    data = ds.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False).batch(4)
    net = nn.Dense(3, 1, weight_init="ones", bias_init="zeros")
    return Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.05), metrics=metrics), data


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
def test_the_history_has_mean_losses_and_metrics(mode: int, monkeypatch) -> None:
    ms.set_context(mode=mode)
    monkeypatch.setattr(module, "FOLD", 4)
    losses: list[list[float]] = []
    see = LambdaCallback(
        on_train_epoch_begin=lambda _: losses.append([]),
        on_train_step_end=lambda c: losses[-1].append(float(c.original_args().net_outputs)),
    )
    model, data = make({"mae", "loss"})
    history = model.fit(3, data, data, 2, see)
    assert isinstance(history, TrainingHistory) and history["epoch"] == history.epoch == [1, 2, 3]
    np.testing.assert_allclose(history.loss, [np.mean(e) for e in losses], rtol=1e-6)
    assert all(s > 0 for s in history.seconds)
    assert history["mae"][0] is None and history["mae"][2] is None
    assert history["mae"][1] > 0 and history["eval_loss"][1] > 0
    again = model.train(5, data, initial_epoch=3)
    assert again.epoch == [4, 5] and set(again) == {"epoch", "loss", "seconds"}
    assert repr(again).split("\n")[0].split() == ["epoch", "loss", "seconds"]
    with pytest.raises(AttributeError, match="no 'mae'; it has epoch, loss, seconds"):
        again.mae


def test_the_history_of_sinks() -> None:
    model, data = make()
    losses: list[list[float]] = []
    see = LambdaCallback(on_train_step_end=lambda c: losses.append([float(v) for v in c.original_args().sink_outputs]))
    history = model.train(2, data, see, dataset_sink_mode=True)
    assert history.loss == [epoch[-1] for epoch in losses]  # one in eight, at least one


class Strange(nn.Cell):
    def __init__(self, result: Any) -> None:
        super().__init__()
        self.result = result

    def construct(self, x, y):
        return self.result


@pytest.mark.parametrize(
    ("result", "loss"),
    [
        (ms.Tensor([1.0, 2.0]), 1.5),
        ((ms.Tensor(2.0), ms.Tensor(7.0)), 2.0),
        (ms.Tensor(3.0, ms.float16), 3.0),
        (4, 4.0),
        ("text", None),
        (None, None),
        (ms.Tensor(float("nan")), math.nan),
    ],
)
def test_losses_of_any_form(result: Any, loss: Any) -> None:
    _, data = make()
    (found,) = Model(Strange(result)).train(1, data).loss
    assert found == loss or (loss is not None and math.isnan(loss) and math.isnan(found))


def shown(monkeypatch, stream: io.StringIO, callbacks: Any = None, **options: Any) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    model, data = make({"mae"})
    model.fit(2, data, data, callbacks=callbacks, **options)
    return stream.getvalue()


def test_lines_where_there_is_no_terminal(monkeypatch, capsys) -> None:
    lines = shown(monkeypatch, io.StringIO()).splitlines()
    assert len(lines) == 2 and capsys.readouterr().out == ""
    assert re.fullmatch(r"epoch 2/2: loss [\d.e+-]+, mae [\d.]+, [\d,.]+ rows/s, [\d.e+-]+ s", lines[1])


@pytest.mark.parametrize("sink", [False, True])
def test_a_bar_in_a_terminal(monkeypatch, capsys, sink: bool) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(module, "INTERVAL", 0.0)
    monkeypatch.setattr(module, "SHARE", 0)
    say = LambdaCallback(on_train_epoch_end=lambda _: print("from the program"))
    text = shown(monkeypatch, Terminal(), say, dataset_sink_mode=sink)
    assert "6/6" in text and "left" in text and "epoch 2/2: loss" in text
    assert text.endswith("\x1b[?25h") or "\x1b[?25h" in text.rpartition("\x1b[?25l")[2]
    assert "from the program" in capsys.readouterr().out + text


def test_a_terminal_is_left_clean_by_an_error(monkeypatch) -> None:
    monkeypatch.setenv("TERM", "xterm")

    def fail(_: Any) -> None:
        raise KeyboardInterrupt

    stream = Terminal()
    before = sys.stdout
    with pytest.raises(KeyboardInterrupt):
        shown(monkeypatch, stream, LambdaCallback(on_train_step_end=fail))
    assert sys.stdout is before and sys.stderr is stream
    assert "\x1b[?25h" in stream.getvalue().rpartition("\x1b[?25l")[2]


@pytest.mark.parametrize("callbacks", [LossMonitor(), TimeMonitor(), [ProgressBar(bar=False)]])
def test_nothing_is_shown_twice(monkeypatch, callbacks: Any) -> None:
    own = isinstance(callbacks, list)
    assert len(shown(monkeypatch, io.StringIO(), callbacks).splitlines()) == (2 if own else 0)


def test_whether_it_is_shown_can_be_chosen(monkeypatch) -> None:
    assert shown(monkeypatch, io.StringIO(), progress=False) == ""
    assert len(shown(monkeypatch, io.StringIO(), LossMonitor(0), progress=True).splitlines()) == 2
    monkeypatch.setattr(module, "get_rank", lambda: 1)
    assert shown(monkeypatch, io.StringIO()) == ""
    with pytest.raises(TypeError, match="progress must be"):
        shown(monkeypatch, io.StringIO(), progress="yes")


def test_streams_that_are_gone(monkeypatch) -> None:
    closed = io.StringIO()
    closed.close()
    for stream in (None, object()):
        monkeypatch.setattr(sys, "stderr", stream)
        assert not module._is_terminal()
    monkeypatch.setattr(sys, "stderr", closed)
    assert not module._is_terminal()
    monkeypatch.setattr(sys, "stderr", None)
    model, data = make()
    assert model.train(1, data).epoch == [1]


class Quadratic(nn.Cell):
    """The loss w**2 / 2, for which gradient descent converges for rates below 2."""

    def __init__(self) -> None:
        super().__init__()
        self.w = ms.Parameter(ms.Tensor(np.full(3, 5.0, np.float32)), name="w")
        self.drop = nn.Dropout(p=0.1)

    def construct(self, x, y):
        return (self.drop(self.w) ** 2).sum() / 2


@pytest.mark.parametrize("optimizer", [nn.SGD, nn.Adam], ids=["sgd", "adam"])
def test_a_learning_rate_is_found(optimizer: Any) -> None:
    _, data = make()
    net = Quadratic()
    model = Model(net, None, optimizer(net.trainable_params(), 0.5))
    before = {p.name: p.asnumpy().copy() for p in model.train_network.get_parameters()}
    net.set_train(False)
    draws = [(np.random.seed(1), random.seed(1), ms.set_seed(1))]
    expected = [np.random.random(), random.random(), ms.ops.rand(2).tolist()]
    draws = [(np.random.seed(1), random.seed(1), ms.set_seed(1))]
    curve = find_learning_rate(model, data, 1e-4, 100.0, steps=60)
    assert draws and isinstance(curve, LearningRateCurve)
    assert [np.random.random(), random.random(), ms.ops.rand(2).tolist()] == expected
    assert all(np.array_equal(p.asnumpy(), before[p.name]) for p in model.train_network.get_parameters())
    assert not net.training
    assert len(curve.rates) == len(curve.losses) == len(curve.smoothed) <= 60
    assert np.allclose(np.diff(np.log(curve.rates)), np.log(1e6) / 59)
    assert 1e-3 < curve.suggestion < 2.0


def test_learning_rates_that_cannot_be_tried() -> None:
    model, data = make()
    with pytest.raises(ValueError, match="high must be greater than low"):
        find_learning_rate(model, data, 1.0, 0.5)
    with pytest.raises(ValueError, match="steps must be"):
        find_learning_rate(model, data, steps=1)
    net = nn.Dense(3, 1)
    scheduled = nn.SGD(net.trainable_params(), nn.ExponentialDecayLR(0.1, 0.9, 2))
    with pytest.raises(ValueError, match="one constant learning rate"):
        find_learning_rate(Model(net, nn.MSELoss(), scheduled), data)
