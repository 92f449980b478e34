"""Accumulated gradients: k micro-batches are one large batch, for losses that are means and
networks without batch statistics, in both modes, and as NumPy computes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
import mycel.dataset as ds
from mycel import Tensor, nn, ops, train

rng = np.random.default_rng(6)
X, Y = rng.normal(size=(24, 4)), rng.normal(size=(24, 2))
W, B = rng.normal(size=(2, 4)), rng.normal(size=2)
RATE, MOMENTUM, LARGE = 0.0625, 0.875, 12  # exact in float32, as optimizers keep them


@pytest.fixture(params=[ms.GRAPH_MODE, ms.PYNATIVE_MODE], ids=["graph", "eager"], autouse=True)
def mode(request: Any) -> Iterator[None]:
    before = ms.get_context("mode")
    ms.set_context(mode=request.param)
    yield
    ms.set_context(mode=before)


def expected(epochs: int) -> tuple[Any, Any]:
    """Weight and bias after steps on large batches of the mean squared error, in float64."""
    weight, bias, moments = W.copy(), B.copy(), [np.zeros((2, 4)), np.zeros(2)]
    for start in list(range(0, 24, LARGE)) * epochs:
        x, y = X[start : start + LARGE], Y[start : start + LARGE]
        error = 2 * (x @ weight.T + bias - y) / (LARGE * 2)
        for i, gradient in enumerate((error.T @ x, error.sum(0))):
            moments[i] = MOMENTUM * moments[i] + gradient
        weight, bias = weight - RATE * moments[0], bias - RATE * moments[1]
    return weight, bias


def network() -> nn.Cell:
    return nn.Dense(4, 2, weight_init=Tensor(W), bias_init=Tensor(B), dtype=ms.float64)


def optimizer(net: nn.Cell, **options: Any) -> Any:
    return nn.Momentum(net.trainable_params(), RATE, MOMENTUM, **options)


def batches(size: int) -> Any:
    return ds.NumpySlicesDataset((X, Y), ["x", "y"], shuffle=False).batch(size)


def compare(net: Any, epochs: int) -> None:
    for found, wanted in zip((net.weight, net.bias), expected(epochs)):
        np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-10)


def test_the_large_batch() -> None:
    net = network()
    train.Model(net, nn.MSELoss(), optimizer(net)).train(3, batches(LARGE))
    compare(net, 3)


@pytest.mark.parametrize("parts", [1, 2, 4, 12])
@pytest.mark.parametrize("sink", [False, True], ids=["steps", "sinks"])
def test_a_cell_that_cuts_the_batch(parts: int, sink: bool) -> None:
    net = network()
    # The cell gives the sum of the parts' means; the optimizer divides by their number.
    cut = nn.GradAccumulationCell(nn.WithLossCell(net, nn.MSELoss()), parts)
    model = train.Model(cut, optimizer=optimizer(net, loss_scale=float(parts)))
    model.train(3, batches(LARGE), dataset_sink_mode=sink)
    compare(net, 3)


class Accumulating(nn.TrainOneStepCell):
    """The training step that programs write: sums of gradients beside the parameters, and an update
    every `count` calls.
    """

    def __init__(self, net: Any, optimizer: Any, count: int) -> None:
        super().__init__(net, optimizer)
        self.count = count
        self.sums = self.weights.clone(prefix="sums", init="zeros")
        self.number = ms.Parameter(Tensor(0, ms.int32), name="number", requires_grad=False)
        self.gradient = ops.value_and_grad(self.network, None, self.weights)
        self.map = ops.HyperMap()

    def construct(self, *inputs: Any) -> Any:
        loss, gradients = self.gradient(*inputs)
        self.map(ops.partial(_add, Tensor(1.0 / self.count, ms.float64)), self.sums, gradients)
        ops.assign_add(self.number, Tensor(1, ms.int32))
        if self.number % self.count == 0:
            self.optimizer(self.sums)
            self.map(_clear, self.sums)
        return loss


_add = ops.MultitypeFuncGraph("add")
_clear = ops.MultitypeFuncGraph("clear")


@_add.register("Tensor", "Tensor", "Tensor")
def _add_gradient(factor: Any, total: Any, gradient: Any) -> Any:
    return ops.assign_add(total, gradient * factor)


@_clear.register("Tensor")
def _clear_sum(total: Any) -> Any:
    return ops.assign(total, ops.zeros_like(total))


@pytest.mark.parametrize("parts", [1, 3, 4])
@pytest.mark.parametrize("sink", [False, True], ids=["steps", "sinks"])
def test_a_step_that_sums_gradients(parts: int, sink: bool) -> None:
    net = network()
    step = Accumulating(nn.WithLossCell(net, nn.MSELoss()), optimizer(net), parts)
    train.Model(step).train(3, batches(LARGE // parts), dataset_sink_mode=sink)
    compare(net, 3)
    assert int(step.number) == 6 * parts


@pytest.mark.parametrize("parts", [1, 3, 4])
def test_a_function_that_sums_gradients(parts: int) -> None:
    net = network()
    update, loss_of = optimizer(net), nn.MSELoss()
    gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y) / parts, None, update.parameters)
    total = None
    for number, (x, y) in enumerate(batches(LARGE // parts).create_tuple_iterator()):
        _, found = gradient(x, y)
        total = found if total is None else tuple(a + b for a, b in zip(total, found))
        if (number + 1) % parts == 0:
            update(total)
            total = None
    compare(net, 1)


@pytest.mark.parametrize("parts", [2, 4])
def test_accumulation_under_a_loss_scale(parts: int) -> None:
    net = network()
    cut = nn.GradAccumulationCell(nn.WithLossCell(net, nn.MSELoss()), parts)
    manager = train.DynamicLossScaleManager(2.0**12, 2, 100)
    model = train.Model(cut, optimizer=optimizer(net, loss_scale=float(parts)), loss_scale_manager=manager)
    model.train(3, batches(LARGE))
    compare(net, 3)
