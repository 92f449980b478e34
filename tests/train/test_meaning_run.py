"""A run of `Model.fit` with its callbacks, and its files, against what MindSpore does with the same
network, data and callbacks (values/run.json, stored).
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
import mycel.dataset as ds
from mycel import Tensor, nn, train
from tests.train.support import X, Y

STORED = json.loads((Path(__file__).parent / "values" / "run.json").read_text())
NAMES = (
    "Callback CheckpointConfig History LambdaCallback LearningRateScheduler LossMonitor Model ModelCheckpoint "
    "RunContext get_metrics load_checkpoint "
    "load_param_into_net save_checkpoint ckpt_to_safetensors safetensors_to_ckpt"
)
CHECKED = {f"train.{name}": "MindSpore" for name in NAMES.split()}
HOOKS = [
    f"on_{run}_{when}"
    for run in ("train", "eval")
    for when in ("begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end")
]


@pytest.fixture(params=[ms.GRAPH_MODE, ms.PYNATIVE_MODE], ids=["graph", "eager"], autouse=True)
def mode(request: Any) -> Iterator[None]:
    before = ms.get_context("mode")
    ms.set_context(mode=request.param)
    yield
    ms.set_context(mode=before)


def data() -> Any:
    return ds.NumpySlicesDataset((X, Y), ["x", "y"], shuffle=False).batch(4)


def model() -> Any:
    network = nn.Dense(2, 1, weight_init="ones", bias_init="zeros")
    optimizer = nn.Momentum(network.trainable_params(), 0.05, 0.9)
    return train.Model(network, nn.MSELoss(), optimizer, metrics={"mse", "mae"})


def tracer(trace: list[Any]) -> Any:
    class Tracer(train.Callback):
        pass

    def note(hook: str) -> Any:
        def method(self: Any, context: Any) -> None:
            params = context.original_args()
            trace.append([hook, params.get("cur_epoch_num"), params.get("cur_step_num") if "step" in hook else None])

        return method

    for hook in HOOKS:
        setattr(Tracer, hook, note(hook))
    return Tracer()


def test_a_run_of_fit(capsys: Any) -> None:
    trace: list[Any] = []
    rates: list[Any] = []
    calls: list[Any] = []

    def rate_after(rate: float, step: int) -> float:
        rates.append([rate, step])
        return rate * 0.9 if step % 2 else rate

    history = train.History()
    functions = train.LambdaCallback(
        on_train_epoch_end=lambda context: calls.append(context.original_args().cur_epoch_num),
        on_eval_end=lambda context: calls.append("eval"),
    )
    trained = model()
    trained.fit(
        3,
        data(),
        data(),
        valid_frequency=2,
        callbacks=[tracer(trace), history, train.LearningRateScheduler(rate_after), train.LossMonitor(2), functions],
    )
    assert trace == STORED["hooks"]
    np.testing.assert_allclose(rates, STORED["rates"], rtol=1e-6)
    # MindSpore's fit does not call functions of a LambdaCallback around evaluations.
    assert [call for call in calls if call != "eval"] == STORED["calls"]
    assert calls.count("eval") == 1
    for line, wanted in zip(capsys.readouterr().out.splitlines(), STORED["printed"].splitlines(), strict=True):
        place, _, rest = line.partition("is " if "loss" in line else "metrics: ")
        stored_place, _, stored = wanted.partition("is " if "loss" in wanted else "metrics: ")
        assert place == stored_place
        assert eval(rest) == pytest.approx(eval(stored), rel=1e-4)
    assert history.epoch == STORED["epoch"]
    assert set(history.history) == set(STORED["history"])
    for name, values in STORED["history"].items():
        np.testing.assert_allclose(np.asarray(history.history[name], np.float64), values, rtol=1e-4)
    weights = {p.name: p.asnumpy() for p in trained.train_network.get_parameters()}
    assert set(weights) == set(STORED["weights"])
    for name, value in STORED["weights"].items():
        np.testing.assert_allclose(weights[name], value, rtol=2e-5)
    assert trained.eval(data()) == pytest.approx(STORED["eval"], rel=1e-4)


def test_a_run_that_is_stopped() -> None:
    trace: list[Any] = []

    def stop(context: Any) -> None:
        if context.original_args().cur_step_num == 4:
            context.request_stop()

    model().train(3, data(), [tracer(trace), train.LambdaCallback(on_train_step_end=stop)])
    assert trace == STORED["stopped"]


@pytest.mark.parametrize("options, files", STORED["files"], ids=range(len(STORED["files"])))
def test_files_of_checkpoints(tmp_path: Path, options: dict[str, Any], files: list[str]) -> None:
    config = train.CheckpointConfig(**options)
    model().train(2, data(), train.ModelCheckpoint("net", str(tmp_path), config))
    assert sorted(os.listdir(tmp_path)) == files


def _compare(loaded: Any) -> None:
    for name, (kind, values) in STORED["saved"].items():
        assert str(loaded[name].dtype) == kind
        np.testing.assert_array_equal(loaded[name].asnumpy(), np.asarray(values, loaded[name].asnumpy().dtype))


@pytest.mark.parametrize("format", ["ckpt", "safetensors"])
def test_files_of_mindspore(tmp_path: Path, format: str) -> None:
    other = {"ckpt": "safetensors", "safetensors": "ckpt"}[format]
    path = tmp_path / f"a.{format}"
    path.write_bytes(base64.b64decode(STORED[format]))
    loaded = ms.load_checkpoint(path, format=format, crc_check=format == "ckpt")
    _compare(loaded)
    if format == "ckpt":
        extra = {
            n: v if isinstance(v, str) else v.asnumpy().item() for n, v in loaded.items() if n not in STORED["saved"]
        }
        assert extra == {"epoch": 3, "rate": 0.25, "done": True, "who": "mycel"}
    resumed = model()
    assert ms.load_param_into_net(resumed.train_network, loaded)[0] == []
    _compare({p.name: p for p in resumed.train_network.get_parameters()})
    numbers = {name: value for name, value in loaded.items() if not isinstance(value, str)}
    ms.save_checkpoint(numbers, tmp_path / "b", format=format)
    convert = ms.ckpt_to_safetensors if format == "ckpt" else ms.safetensors_to_ckpt
    convert(tmp_path / f"b.{format}")
    _compare(ms.load_checkpoint(tmp_path / f"b.{other}", format=other))


def test_a_file_like_mindspores(tmp_path: Path) -> None:
    path = tmp_path / "a.ckpt"
    path.write_bytes(base64.b64decode(STORED["ckpt"]))
    numbers = dict(ms.load_checkpoint(path))
    extra = {"epoch": 3, "rate": 0.25, "done": True, "who": "mycel"}
    named = [{"name": name, "data": numbers[name]} for name in STORED["saved"]]
    ms.save_checkpoint(named, tmp_path / "b.ckpt", append_dict=extra, crc_check=True)
    assert (tmp_path / "b.ckpt").read_bytes() == path.read_bytes()


class _Two(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Dense(2, 3)
        self.b = nn.Dense(3, 1)


@pytest.mark.parametrize("given, report", STORED["reports"], ids=range(len(STORED["reports"])))
def test_reports_of_loading(given: dict[str, list[int]], report: tuple[list[str], list[str]]) -> None:
    values = {name: ms.Parameter(Tensor(np.zeros(shape, np.float32))) for name, shape in given.items()}
    network = _Two()
    missing, unused = ms.load_param_into_net(network, values)
    assert missing == report[0]
    # Behind a prefix MindSpore loads values and reports them as unused all the same.
    assert unused == [
        name
        for name in report[1]
        if name.removeprefix("net.") not in set(dict(network.parameters_and_names())) - set(missing)
    ]
