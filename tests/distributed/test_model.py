"""`Model` and its callbacks on ranks, which are threads here; programs of processes are in
tests/parallel.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, train
from mycel._src.compiler.transport import thread_ranks
from mycel._src.foundation.errors import CompileError
from mycel._src.staging.distributed.sharded_tensors import held
from mycel.parallel.auto_parallel import AutoParallel
from mycel.train.callback.base import CallbackParameters

_making = threading.Lock()
_random = np.random.default_rng(0)
X, Y = _random.normal(size=(12, 8)).astype("f4"), _random.normal(size=(12, 4)).astype("f4")
DIVIDED = {
    "parallel_mode": "semi_auto_parallel",
    "device_num": 2,
    "enable_parallel_optimizer": True,
    "parallel_optimizer_config": {"parallel_optimizer_threshold": 0},
}


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    mode = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=mode)
    ms.reset_auto_parallel_context()


def network() -> nn.Cell:
    with _making:
        ms.set_seed(3)
        return nn.SequentialCell(nn.Dense(8, 16, activation="tanh"), nn.Dense(16, 4))


def part(own: int, count: int = 2) -> tuple[ms.Tensor, ms.Tensor]:
    rows = slice(own * len(X) // count, (own + 1) * len(X) // count)
    return ms.Tensor(X[rows]), ms.Tensor(Y[rows])


def trained(net: nn.Cell, batch: Any, **options: Any) -> train.Model:
    model = train.Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9), **options)
    for _ in range(3):
        model.train(*batch)
    return model


@pytest.fixture(scope="module")
def alone() -> list[np.ndarray]:
    mode = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE)
    net = network()
    trained(net, (ms.Tensor(X), ms.Tensor(Y)))
    ms.set_context(mode=mode)
    return [p.asnumpy() for p in net.get_parameters()]


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE], ids=["graph", "eager"])
def test_both_modes_train_what_ranks_divide(mode: int, alone: list[np.ndarray]) -> None:
    ms.set_context(mode=mode)
    ms.set_auto_parallel_context(**DIVIDED)

    def rank(own: int) -> list[np.ndarray]:
        net = network()
        model = trained(net, part(own))
        assert any(held(p) is not None for p in model.train_network.get_parameters())
        return [p.asnumpy() for p in net.get_parameters()]

    for found in thread_ranks.run(2, rank):
        for value, wanted in zip(found, alone):
            np.testing.assert_allclose(value, wanted, atol=1e-6)


def test_a_network_with_settings_of_its_own(alone: list[np.ndarray]) -> None:
    ms.set_auto_parallel_context(device_num=2)

    def rank(own: int) -> list[np.ndarray]:
        net = AutoParallel(network())
        net.dataset_strategy("data_parallel")
        net.hsdp(threshold=0)
        model = trained(net, part(own))
        assert any(held(p) is not None for p in model.train_network.get_parameters())
        step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params()))
        with pytest.raises(RuntimeError, match="would not be divided here"):
            step(*part(own))
        return [p.asnumpy() for p in net.get_parameters()]

    for found in thread_ranks.run(2, rank):
        for value, wanted in zip(found, alone):
            np.testing.assert_allclose(value, wanted, atol=1e-6)


def test_what_would_be_of_one_rank_alone_is_refused() -> None:
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_auto_parallel_context(**DIVIDED)

    loss = lambda x: (x * x).sum()
    derivative = ms.jit(ms.grad(loss))
    # Staged once, before there are threads.
    ms.explain(derivative, ms.Tensor(X[:2]), parallel=True)

    def rank(own: int) -> None:
        x = ms.Tensor(X[:2])
        with pytest.raises(RuntimeError, match="one rank's data alone"):
            ms.grad(loss)(x)
        assert derivative(x).shape == (4, 8)

    thread_ranks.run(2, rank)


def test_an_optimizer_takes_the_whole_gradients_of_a_divided_function(alone: list[np.ndarray]) -> None:
    ms.set_auto_parallel_context(**DIVIDED)

    def rank(own: int) -> list[np.ndarray]:
        net = network()
        loss = nn.MSELoss()
        optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
        derive = ms.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)
        for _ in range(3):
            optimizer(derive(*part(own))[1])
        return [p.asnumpy() for p in net.get_parameters()]

    for found in thread_ranks.run(2, rank):
        for value, wanted in zip(found, alone):
            np.testing.assert_allclose(value, wanted, atol=1e-6)


def test_results_that_are_arguments_are_whole() -> None:
    ms.set_auto_parallel_context(**DIVIDED)

    def rank(own: int) -> Any:
        @ms.jit
        def given(x: Any, y: Any) -> Any:
            return x.sum(), y, x

        return [v.asnumpy() for v in given(*part(own))]

    for total, y, x in thread_ranks.run(2, rank):
        np.testing.assert_allclose(total, X.sum(), rtol=1e-5)
        np.testing.assert_array_equal(y, Y)
        np.testing.assert_array_equal(x, X)


def test_arguments_of_which_ranks_have_parts_are_not_written() -> None:
    ms.set_auto_parallel_context(**DIVIDED)

    def rank(own: int) -> None:
        @ms.jit
        def change(x: Any) -> Any:
            x[0] = 1
            return x.sum()

        with pytest.raises(CompileError, match="writes into"):
            change(part(own)[0])

    thread_ranks.run(2, rank)


def test_data_parallel_ranks_watch_one_value() -> None:
    ms.set_auto_parallel_context(parallel_mode="data_parallel", device_num=2)

    def rank(own: int) -> Any:
        watcher = train.EarlyStopping("loss")
        params = CallbackParameters(net_outputs=ms.Tensor(1.0 + own))
        return watcher._watched(train.RunContext(params))

    assert thread_ranks.run(2, rank) == [1.5, 1.5]


def test_a_rank_that_fails_saves_its_parts(tmp_path: Path) -> None:
    ms.set_auto_parallel_context(**DIVIDED)

    def rank(own: int) -> None:
        net = network()
        model = trained(net, part(own))
        config = train.CheckpointConfig(save_checkpoint_steps=100, exception_save=True)
        saver = train.ModelCheckpoint("net", str(tmp_path / f"rank_{own}"), config)

        def fail(context: Any) -> None:
            raise ZeroDivisionError

        callbacks = [saver, train.LambdaCallback(on_train_step_end=fail)]
        if own == 0:
            with pytest.raises(ZeroDivisionError):
                model.train(1, Batches(own), callbacks)
        else:
            model.train(1, Batches(own))

    thread_ranks.run(2, rank)
    saved = ms.load_checkpoint(str(tmp_path / "rank_0" / "net-1_1_breakpoint.ckpt"))
    assert saved["0.weight"].shape == (8, 8)


class Batches:
    """A dataset of one batch."""

    def __init__(self, own: int) -> None:
        self.own = own

    def get_dataset_size(self) -> int:
        return 1

    def create_tuple_iterator(self, num_epochs: int = -1) -> Any:
        return [part(self.own)]
