"""Compiled functions on many batches at once: the same bits as call by call, and what is called one
by one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.foundation.errors import NonFiniteError
from mycel._src.staging.compiled.repeated_execution import Repeater
from tests.demo.test_lenet import LeNet5, batches


@pytest.fixture(autouse=True)
def graph_mode() -> Iterator[None]:
    mode = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=mode, check_nan=False)


class Noisy(LeNet5):
    """LeNet-5 with what makes steps depend on each other: random numbers and running means."""

    def __init__(self) -> None:
        super().__init__()
        self.drop, self.norm = nn.Dropout(p=0.3), nn.BatchNorm2d(1)

    def construct(self, x: Any) -> Any:
        return super().construct(self.drop(self.norm(x)))


class Accumulating(nn.Cell):
    """Updates the parameters with the sum of the gradients of every three batches."""

    def __init__(self, network: nn.Cell, optimizer: Any) -> None:
        super().__init__(auto_prefix=False)
        self.network, self.optimizer = network, optimizer
        self.weights = optimizer.parameters
        self.sums = self.weights.clone("sum", "zeros")
        self.count = ms.Parameter(ms.Tensor(0, ms.int32), name="count")

    def construct(self, x: Any, y: Any) -> Any:
        loss, grads = ms.value_and_grad(self.network, None, self.weights)(x, y)
        for total, grad in zip(self.sums, grads):
            ops.assign_add(total, grad)
        ops.assign_add(self.count, ms.Tensor(1, ms.int32))
        if self.count % 3 == 0:
            self.optimizer(tuple(self.sums))
            for total in self.sums:
                ops.assign(total, ops.zeros_like(total))
        return loss


def plain() -> Any:
    net = LeNet5()
    return nn.TrainOneStepCell(
        nn.WithLossCell(net, nn.CrossEntropyLoss()), nn.Momentum(net.trainable_params(), 0.02, 0.9)
    )


def scheduled() -> Any:
    net = Noisy()
    rates = nn.cosine_decay_lr(0.001, 0.01, 40, 10, 4)
    return nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), nn.Adam(net.trainable_params(), rates))


def scaled() -> Any:
    net = nn.SequentialCell(nn.Flatten(), nn.Dense(1024, 10))
    manager = ms.DynamicLossScaleManager(2.0**18, 2, 3)
    return ms.amp.build_train_network(
        net, nn.Momentum(net.trainable_params(), 0.02, 0.9), nn.CrossEntropyLoss(), "O2", loss_scale_manager=manager
    )


def accumulating() -> Any:
    net = LeNet5()
    return Accumulating(nn.WithLossCell(net, nn.CrossEntropyLoss()), nn.SGD(net.trainable_params(), 0.02))


def state(cell: Any) -> list[Any]:
    return [p.asnumpy().copy() for p in cell.get_parameters()]


def first(value: Any) -> Any:
    return np.array((value[0] if isinstance(value, tuple) else value).asnumpy())


@pytest.mark.parametrize("make", [plain, scheduled, scaled, accumulating])
def test_steps_at_once_give_the_bits_of_steps_one_by_one(make: Any) -> None:
    data = batches()[:14]
    ms.set_seed(5)
    one = make().set_train()
    expected = [first(one(x, y)) for x, y in data]
    ms.set_seed(5)
    other = make().set_train()
    run = Repeater(other._compiled())
    given = [run(data[:1]), run(data[1:9]), run(data[9:])]
    assert not run.told and not other._compiled().lives
    np.testing.assert_array_equal([first(r) for results in given for r in results], expected)
    before, after = state(one), state(other)
    assert len(before) == len(after) > 4
    for a, b in zip(before, after):
        np.testing.assert_array_equal(a, b)
    assert expected[0] != expected[-1]


def test_the_loss_scale_moves_within_a_run() -> None:
    step = scaled().set_train()
    run = Repeater(step._compiled())
    scales = {float(result[2]) for result in run(batches()[:12])}
    assert len(scales) > 1


def test_state_that_is_no_parameter_is_carried() -> None:
    count = ms.Tensor([0.0, 0.0])
    seen = count.asnumpy()

    @ms.jit
    def add(x: Any) -> Any:
        count[0] = count[0] + x.sum()
        count[1] = count[1] * 2 + 1
        return count * 1

    data = [(ms.Tensor([float(k), 1.0]),) for k in range(5)]
    run = Repeater(add)
    results = run(data)
    assert not run.told
    np.testing.assert_array_equal(count.asnumpy(), [15, 31])
    np.testing.assert_array_equal([r.asnumpy() for r in results], [[1, 1], [3, 3], [6, 7], [10, 15], [15, 31]])
    np.testing.assert_array_equal(results[-1].asnumpy(), results[4].asnumpy())
    assert len(results) == 5 and seen.tolist() in ([0, 0], [15, 31])
    with pytest.raises(IndexError, match="there are 5 results"):
        results[5]


def test_a_derivative_of_a_loop_runs_at_once() -> None:
    w = ms.Parameter(ms.Tensor(0.5), name="w")

    def loss(x: Any) -> Any:
        while x < 10:
            x = x * (1 + w)
        return x

    @ms.jit
    def step(x: Any) -> Any:
        value, slope = ms.value_and_grad(loss, None, w)(x)
        ops.assign_sub(w, slope * 1e-4)
        return value

    data = [(ms.Tensor(1.0 + k),) for k in range(6)]
    values = [float(step(*x)) for x in data]
    end = float(w)
    w.set_data(ms.Tensor(0.5))
    run = Repeater(step)
    assert [float(r) for r in run(data)] == values and float(w) == end != 0.5 and not run.told


def test_batches_of_other_types_in_between() -> None:
    total = ms.Parameter(ms.Tensor(0.0), name="total")

    @ms.jit
    def add(x: Any) -> Any:
        ops.assign_add(total, x.sum().astype(ms.float32))
        return x.shape[0]

    sizes = [4, 4, 3, 4, 4, 2, 2, 2]
    data = [(ms.ops.ones(n),) for n in sizes] + [(ms.ops.ones(2, ms.int32),)] * 2
    assert list(Repeater(add)(data)) == [*sizes, 2, 2]
    assert float(total) == sum(sizes) + 4


def test_large_results_are_kept_only_where_that_is_asked_for() -> None:
    data = [(ms.ops.full((500, 500), float(k)),) for k in range(4)]
    double = ms.jit(lambda x: (x * 2, x[0, 0]))
    results = Repeater(double)(data)
    assert float(results[-1][0][3, 3]) == 6
    with pytest.raises(LookupError, match="only the last result of float32"):
        results[1]
    kept = Repeater(double)(data, keep=True)
    assert [float(r[0][7, 9]) for r in kept] == [0, 2, 4, 6]


def warnings_of(caplog: Any, text: str) -> int:
    return sum(text in r.getMessage() for r in caplog.records)


def test_what_is_not_one_graph_is_called_one_by_one_and_that_is_said_once(caplog: Any) -> None:
    caplog.set_level(logging.WARNING, "mycel")
    seen = []

    @ms.jit
    def step(x: Any) -> Any:
        seen.append(float(x.sum()))
        return x + 1

    run = Repeater(step)
    data = [(ms.Tensor([float(k)]),) for k in range(3)]
    assert [float(r) for r in run(data)] == [1, 2, 3] and [float(r) for r in run(data)] == [1, 2, 3]
    assert seen == [0, 1, 2, 0, 1, 2] and warnings_of(caplog, "is not one graph") == 1


def test_effects_on_objects_are_made_one_by_one(caplog: Any) -> None:
    caplog.set_level(logging.WARNING, "mycel")

    class Keeps(nn.Cell):
        last: Any = None

        def construct(self, x: Any) -> Any:
            self.last = x * 3
            return x

    cell = Keeps()
    run = Repeater(cell._compiled())
    run([(ms.Tensor([1.0]),), (ms.Tensor([2.0]),)])
    assert float(cell.last) == 6 and warnings_of(caplog, "runs step by step, with Python in between") == 1


def test_a_batch_that_the_function_changes_is_not_shared() -> None:
    w = ms.Tensor([1.0])

    @ms.jit
    def step(x: Any) -> Any:
        x[0] = x[0] + w[0]
        return x * 1

    batch = (ms.Tensor([0.0]),)
    assert [float(r) for r in Repeater(step)([batch, batch, batch])] == [1, 2, 3] and float(batch[0]) == 3


def test_checked_programs_run_one_by_one() -> None:
    ms.set_context(check_nan=True)
    invert = ms.jit(lambda x: 1 / x)
    run = Repeater(invert)
    assert [float(r) for r in run([(ms.Tensor([1.0]),), (ms.Tensor([2.0]),)])] == [1, 0.5] and run.told
    with pytest.raises(NonFiniteError, match="div|reciprocal"):
        run([(ms.Tensor([1.0]),), (ms.Tensor([0.0]),)])


def test_inside_a_gradient_calls_are_recorded() -> None:
    run = Repeater(ms.jit(lambda x: x * x))
    slope = ms.grad(lambda x: sum(run([(x,), (x,)]), ms.Tensor(0.0)))(ms.Tensor(3.0))
    assert float(slope) == 12


def test_a_step_that_fails_leaves_the_state_of_the_steps_before() -> None:
    total = ms.Parameter(ms.Tensor(0.0), name="total")
    count = ms.Tensor([0.0])

    def deep(n: Any) -> Any:
        if n < 1:
            return n
        return deep(n - 1) + 1

    @ms.jit
    def step(x: Any) -> Any:
        ops.assign_add(total, x)
        count[0] = count[0] + 1
        return deep(x)

    data = [(ms.Tensor(v),) for v in (1.0, 2.0, 3.0, 1e6, 4.0)]
    run = Repeater(step)
    with pytest.raises(RecursionError):
        run(data)
    assert not run.told and float(total) == 1 + 2 + 3 and float(count[0]) == 3
