"""The main job: LeNet-5 on real digits gives the same losses eagerly, compiled, and resumed from a
checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from mycel.dataset.digits import load_digits

STEPS = 50
BATCH = 32


class LeNet5(nn.Cell):
    """The convolutional network of LeCun et al. (1998) with ReLU and max pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.fc1, self.fc2, self.fc3 = nn.Dense(400, 120), nn.Dense(120, 84), nn.Dense(84, 10)
        self.relu, self.pool, self.flatten = nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten()

    def construct(self, x: Any) -> Any:
        x = self.pool(self.relu(self.conv1(x)))
        x = self.flatten(self.pool(self.relu(self.conv2(x))))
        return self.fc3(self.relu(self.fc2(self.relu(self.fc1(x)))))


@pytest.fixture(autouse=True)
def restore_mode() -> Iterator[None]:
    mode = ms.get_context("mode")
    yield
    ms.set_context(mode=mode)


def batches() -> list[tuple[Any, Any]]:
    images, labels = load_digits(size=32)
    x = images.astype(np.float32).transpose(0, 3, 1, 2) / 255
    return [
        (ms.Tensor(x[i * BATCH : (i + 1) * BATCH]), ms.Tensor(labels[i * BATCH : (i + 1) * BATCH].astype(np.int32)))
        for i in range(STEPS)
    ]


def trainer(seed: int = 1) -> Any:
    ms.set_seed(seed)
    net = LeNet5()
    optimizer = nn.Momentum(net.trainable_params(), 0.025, 0.9)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer)
    step.set_train()
    return step


def losses(step: Any, data: list[tuple[Any, Any]]) -> Any:
    return np.array([float(step(x, y)) for x, y in data])


def test_graph_and_eager_losses_agree_over_fifty_steps() -> None:
    data = batches()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    eager = losses(trainer(), data)
    ms.set_context(mode=ms.GRAPH_MODE)
    compiled = losses(trainer(), data)
    assert eager[-10:].mean() < eager[:10].mean() - 0.05
    np.testing.assert_allclose(compiled, eager, rtol=1e-5)


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_a_resumed_run_continues_with_the_same_losses(mode: int, tmp_path: Path) -> None:
    ms.set_context(mode=mode)
    data = batches()[:20]
    whole = losses(trainer(), data)
    first = trainer()
    losses(first, data[:8])
    ms.save_checkpoint(first, str(tmp_path / "half.ckpt"))
    second = trainer(seed=99)
    missing = ms.load_param_into_net(second, ms.load_checkpoint(str(tmp_path / "half.ckpt")))
    assert missing == ([], [])
    np.testing.assert_array_equal(losses(second, data[8:]), whole[8:])


def test_the_same_seed_gives_the_same_losses_bit_for_bit() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    data = batches()[:10]
    np.testing.assert_array_equal(losses(trainer(), data), losses(trainer(), data))


def test_a_changed_mode_flag_is_one_line() -> None:
    x = batches()[0][0]
    net = LeNet5()
    results = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        results.append(net(x).asnumpy().copy())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5, atol=1e-6)


def test_a_jitted_function_inside_eager_code_is_differentiated() -> None:
    ms.set_context(mode=ms.PYNATIVE_MODE)

    @ms.jit
    def square(x: Any) -> Any:
        return x * x

    slope = ms.grad(lambda x: (square(x) * x).sum())(ms.Tensor([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(slope.asnumpy(), [3.0, 12.0, 27.0], rtol=1e-6)


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_wrong_shapes_and_types_are_named(mode: int) -> None:
    ms.set_context(mode=mode)
    net = LeNet5()
    with pytest.raises(ValueError, match=r"\(32, 1, 20, 20\)|400|inner dimensions|144|16"):
        net(ms.Tensor(np.zeros((32, 1, 20, 20), np.float32)))
    with pytest.raises(ValueError, match=r"channel|3"):
        net(ms.Tensor(np.zeros((32, 3, 32, 32), np.float32)))
    with pytest.raises((TypeError, ValueError), match="labels|target|classes"):
        nn.CrossEntropyLoss()(ms.Tensor(np.zeros((4, 10), np.float32)), ms.Tensor(np.zeros((3,), np.int32)))
