"""Flops against counts by hand, two for each multiplication and addition, and what is printed of
them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
import mycel.dataset as ds
from mycel import Tensor, nn, ops, train
from mycel.train.callback.flops import step_flops

CHECKED = {"train.FlopsUtilizationCollector": "counts by hand"}


@pytest.fixture(params=[ms.GRAPH_MODE, ms.PYNATIVE_MODE], ids=["graph", "eager"], autouse=True)
def mode(request: Any) -> Iterator[None]:
    before = ms.get_context("mode")
    ms.set_context(mode=request.param)
    yield
    ms.set_context(mode=before)


def data(rows: int = 64) -> Any:
    x, y = np.zeros((rows, 10), np.float32), np.zeros(rows, np.int32)
    return ds.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False).batch(32)


def model(net: Any) -> Any:
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    return train.Model(net, loss, nn.Momentum(net.trainable_params(), 0.01, 0.9), metrics={"accuracy"})


@pytest.mark.parametrize("sink", [False, True])
def test_what_is_printed(capsys: Any, sink: bool) -> None:
    collector = train.FlopsUtilizationCollector(2, computility=10e6)
    model(nn.Dense(10, 5)).train(2, data(96), collector, dataset_sink_mode=sink)
    first, *lines = capsys.readouterr().out.splitlines()
    # The product, and the gradient of the weight; the data have none. MindSpore's own documentation
    # counts 6400 here.
    assert first == (
        "Full model flops is 6400, Full hardware flops is 6400, Shard model flops is 6400, Shard hardware flops is "
        "6400."
    )
    assert len(lines) == (2 if sink else 3)
    for line in lines:
        found = re.fullmatch(r"Train per step time: +(\d+\.\d{3}) ms mfu:(\d+\.\d\d)% hfu:(\d+\.\d\d)%", line)
        assert found
        assert float(found[2]) * float(found[1]) == pytest.approx(100 * 6400 / 10e6 * 1000, rel=0.05)
        assert found[2] == found[3]


def test_evaluations_and_shards(capsys: Any) -> None:
    collector = train.FlopsUtilizationCollector(1, full_flops=False)
    model(nn.Dense(10, 5)).eval(data(), collector)
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == "Shard model flops is 3200, Shard hardware flops is 3200."
    assert [line.split()[0] for line in lines] == ["Eval", "Eval"]


def test_what_is_recomputed() -> None:
    inner = nn.SequentialCell(nn.Dense(10, 20), nn.Tanh())
    inner.recompute()
    net = nn.SequentialCell(inner, nn.Dense(20, 5))
    step = model(net).train_network
    counted = step_flops(step, Tensor(np.zeros((32, 10), np.float32)), Tensor(np.zeros(32, np.int32)))
    first, second = 2 * 32 * 10 * 20, 2 * 32 * 20 * 5
    assert counted == (2 * first + 3 * second, 3 * first + 3 * second)


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("size", [6, 9])
def test_convolutions_and_batched_products(group: int, size: int) -> None:
    conv = nn.Conv2d(4, 8, 3, pad_mode="valid", group=group)
    x = Tensor(np.zeros((2, 4, size, size), np.float32))
    count = 2 * 2 * 8 * (size - 2) ** 2 * 9 * 4 // group
    assert step_flops(conv, x) == (count, count)
    gradient = ms.grad(lambda x: ops.sum(conv(x) ** 2), None, conv.trainable_params())
    assert step_flops(gradient, x)[0] == 2 * count
    a, b = Tensor(np.zeros((3, 4, size, 5), np.float32)), Tensor(np.zeros((3, 1, 5, 7), np.float32))
    assert step_flops(ops.matmul, a, b)[0] == 2 * 3 * 4 * size * 5 * 7


def test_files_of_the_collector(tmp_path: Any, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setenv("MA_LOG_DIR", str(tmp_path))
    model(nn.Dense(10, 5)).train(1, data(), train.FlopsUtilizationCollector(1, enable_ma_collector=True))
    assert capsys.readouterr().out == ""
    lines = (tmp_path / "flops_rank_0.txt").read_text().splitlines()
    assert [re.fullmatch(r'flops\{type="(\w+)", rank_id="0"\} (\d+) \d+', line).groups() for line in lines] == [
        ("model_flops", "6400"),
        ("hardware_flops", "6400"),
    ]
    text = (tmp_path / "time_step_rank_0.txt").read_text()
    assert re.fullmatch(r'time_monitor\{type="per_step_time", rank_id="0"\} \d+\.\d+ \d+\n', text)


def test_refusals() -> None:
    for arguments, error, text in (
        ((1.5,), TypeError, "data_size must be an int"),
        ((0,), ValueError, "data_size must be at least 1"),
        ((1, 0), ValueError, "computility must be a positive number"),
        ((1, 1, 3), TypeError, "full_flops must be a bool"),
    ):
        with pytest.raises(error, match=text):
            train.FlopsUtilizationCollector(*arguments)
    with pytest.raises(ValueError, match="where a step is one graph"):
        step_flops(lambda x: x * float(x.sum()), Tensor([1.0, 2.0]))
