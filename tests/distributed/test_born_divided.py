"""Parameters of parallel modes: each rank draws its part, which is that of one device."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.transport import thread_ranks
from mycel._src.engines import buffers
from mycel.common.initializer import Initializer, initializer

_making = threading.Lock()
_random = np.random.default_rng(0)
X, Y = (_random.normal(size=s).astype(np.float32) for s in ((8, 64), (8, 32)))


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    mode = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=mode)
    ms.reset_auto_parallel_context()


class Own(Initializer):
    def _initialize(self, arr: Any) -> None:
        arr[...] = np.linspace(-0.1, 0.1, arr.size).reshape(arr.shape)


class Net(nn.Cell):
    def __init__(self, first: Any, second: Any, kind: Any) -> None:
        super().__init__()
        self.w = ms.Parameter(initializer(kind, [64, 96]), name="w")
        self.v = ms.Parameter(initializer(kind, [96, 32]), name="v")
        self.b = ms.Parameter(initializer("normal", [32]), name="b")
        self.first, self.second = ops.MatMul(), ops.MatMul()
        if first is not None:
            self.first.shard(first)
            self.second.shard(second)

    def construct(self, x: Any) -> Any:
        return self.second(ops.tanh(self.first(x, self.w)), self.v) + self.b


def made(first: Any, second: Any, kind: Any, optimizer: Any) -> tuple[Net, nn.Cell]:
    ms.set_seed(17)
    net = Net(first, second, kind)
    return net, nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer(net.trainable_params()))


def values(step: nn.Cell) -> list[Any]:
    return [float(step(ms.Tensor(X), ms.Tensor(Y))) for _ in range(3)]


LAYOUTS = [
    (((1, 1), (1, 4)), ((1, 4), (4, 1))),
    (((1, 4), (4, 1)), ((1, 1), (1, 4))),
    (((2, 1), (1, 2)), ((2, 2), (2, 1))),
]
OPTIMIZERS = {
    "momentum": lambda p: nn.Momentum(p, 0.1, 0.9),
    "adam": lambda p: nn.AdamWeightDecay(p, 1e-2),
    "ftrl": lambda p: nn.FTRL(p, learning_rate=0.1),
}


# Initializer, number of the layout, optimizer, and whether the optimizer shards what is whole.
CASES = [
    ("normal", 0, "momentum", False),
    ("he_uniform", 1, "adam", True),
    ("TruncatedNormal", 2, "ftrl", False),
    ("orthogonal", 0, "adam", True),
    ("zeros", 2, "momentum", True),
    (Own(), 1, "momentum", False),
]


@pytest.mark.parametrize("kind, layout, optimizer, sharded", CASES, ids=str)
def test_ranks_begin_and_go_on_as_one_device(kind: Any, layout: int, optimizer: str, sharded: bool) -> None:
    first, second = LAYOUTS[layout]
    _, step = made(None, None, kind, OPTIMIZERS[optimizer])
    alone = values(step)
    ms.set_auto_parallel_context(
        parallel_mode="semi_auto_parallel",
        device_num=4,
        full_batch=True,
        enable_parallel_optimizer=sharded,
        parallel_optimizer_config={"parallel_optimizer_threshold": 0},
    )

    def rank(own: int) -> tuple[list[float], bool, np.ndarray[Any, Any]]:
        with _making:
            net, step = made(first, second, kind, OPTIMIZERS[optimizer])
        declared = net.w.has_init
        return values(step), declared, net.w.asnumpy()

    for found, declared, weight in thread_ranks.run(4, rank):
        np.testing.assert_allclose(found, alone, rtol=2e-5)
        # An initializer of the program's draws at once, as nobody knows from where.
        assert declared == (not isinstance(kind, Own)) and weight.shape == (64, 96)


def test_a_rank_never_has_more_than_its_part() -> None:
    asked = []
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=4, full_batch=True)
    empty, least = buffers.empty, 64 * 96 * 4

    def watched(nbytes: int) -> Any:
        asked.append(nbytes)
        return empty(nbytes)

    def rank(own: int) -> float:
        with _making:
            net, step = made(*LAYOUTS[0], "normal", OPTIMIZERS["momentum"])
        return float(step(ms.Tensor(X), ms.Tensor(Y)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buffers, "empty", watched)
        thread_ranks.run(4, rank)
    assert least // 4 in asked and max(asked) < least


def test_networks_read_as_they_were_drawn_where_nothing_was_trained() -> None:
    ms.set_seed(17)
    whole = Net(None, None, "normal")
    expected = whole(ms.Tensor(X)).asnumpy()
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=4, full_batch=True)

    def rank(own: int) -> tuple[Any, ...]:
        with _making:
            ms.set_seed(17)
            net = Net(*LAYOUTS[0], "normal")
        first, second = net(ms.Tensor(X)).asnumpy(), net(ms.Tensor(X)).asnumpy()
        return first, second, net.w.is_in_parallel, net.w.asnumpy()

    for first, second, divided, weight in thread_ranks.run(4, rank):
        np.testing.assert_allclose(first, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(first, second)
        assert divided
        np.testing.assert_array_equal(weight, whole.w.asnumpy())


def test_many_devices_are_compiled_for_without_values() -> None:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=64, global_rank=3, full_batch=True)

    class Large(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w = ms.Parameter(initializer("normal", [1 << 20, 1 << 20]), name="w")
            self.product = ops.MatMul().shard(((1, 1), (1, 64)))

        def construct(self, x: Any) -> Any:
            return self.product(x, self.w)

    net = Large()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9))
    x = ms.Tensor(np.ones((2, 1 << 20), np.float32))
    net.compile(x)
    step.compile(x, x)
    assert net.w.has_init and net.parameter_layout_dict["w"][2] == [1 << 20, 1 << 14]
