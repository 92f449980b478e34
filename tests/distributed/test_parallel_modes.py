"""Parallel modes: Cells whose operators have strategies train as on one device, with threads as
ranks.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.prims.custom_derivatives import all_nodes
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.transport import thread_ranks
from mycel._src.foundation.settings.parallel_settings import current
from mycel._src.planner import planning
from mycel._src.staging.distributed.parallel_modes import distributed
from mycel._src.staging.distributed.rank_agreement import found_by_one
from mycel._src.staging.distributed.strategy_layouts import mesh_of
from mycel.parallel import Layout

_making = threading.Lock()
_random = np.random.default_rng(0)
X, Y = (_random.normal(size=s).astype(np.float32) for s in ((12, 8), (12, 4)))
W, V = (0.3 * _random.normal(size=s).astype(np.float32) for s in ((8, 16), (16, 4)))
MESH = Layout((2, 2), ("rows", "columns"))


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    mode = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=mode)
    ms.reset_auto_parallel_context()


class Net(nn.Cell):
    def __init__(self, first: Any = None, second: Any = None) -> None:
        super().__init__()
        self.w, self.v = ms.Parameter(ms.Tensor(W), name="w"), ms.Parameter(ms.Tensor(V), name="v")
        self.first, self.relu, self.second = ops.MatMul(), ops.ReLU(), ops.MatMul()
        if first is not None:
            self.first.shard(first)
        if second is not None:
            self.second.shard(second)

    def construct(self, x: Any) -> Any:
        return self.second(self.relu(self.first(x, self.w)), self.v)


def training(net: nn.Cell) -> nn.Cell:
    update = nn.Adam(net.trainable_params(), 1e-2)
    return nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), update)


def losses(count: int, first: Any, second: Any, full: bool = False, **settings: Any) -> list[list[float]]:
    """The losses of every rank under the semi-automatic mode."""
    strategy: Any = "full_batch" if full else "data_parallel"
    ms.set_auto_parallel_context(
        **{"parallel_mode": "semi_auto_parallel", "device_num": count, "dataset_strategy": strategy, **settings}
    )

    def rank(own: int) -> list[float]:
        with _making:
            step = training(Net(first, second))
        size = len(X) // count
        given = slice(None) if full else slice(own * size, (own + 1) * size)
        return [float(step(ms.Tensor(X[given]), ms.Tensor(Y[given]))) for _ in range(3)]

    return thread_ranks.run(count, rank)


@pytest.fixture(scope="module")
def alone() -> list[float]:
    mode = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE)
    step = training(Net())
    found = [float(step(ms.Tensor(X), ms.Tensor(Y))) for _ in range(3)]
    ms.set_context(mode=mode)
    return found


CASES: list[tuple[int, Any | None, Any | None, bool]] = [
    (4, None, None, False),
    (4, ((2, 1), (1, 2)), ((2, 2), (2, 1)), False),
    (4, ((1, 1), (1, 4)), ((1, 4), (4, 1)), True),
    (6, ((2, 1), (1, 3)), ((2, 3), (3, 1)), False),
    (3, ((1, 1), (1, 3)), None, True),
    (4, (MESH("rows", "None"), MESH("None", "columns")), (MESH("rows", "columns"), MESH("columns", "None")), False),
]


@pytest.mark.parametrize("count, first, second, full", CASES)
def test_strategies_change_no_loss(count: int, first: Any, second: Any, full: bool, alone: list[float]) -> None:
    for found in losses(count, first, second, full):
        np.testing.assert_allclose(found, alone, rtol=1e-5)


def test_parameters_and_states_are_divided_by_the_parallel_optimizer(alone: list[float]) -> None:
    config = {"parallel_optimizer_threshold": 0}
    found = losses(4, None, None, enable_parallel_optimizer=True, parallel_optimizer_config=config)
    for own in found:
        np.testing.assert_allclose(own, alone, rtol=1e-5)


def test_batches_are_divided_as_the_dataset_is() -> None:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=4, dataset_strategy=((2, 2),))

    def rank(own: int) -> Any:
        row, column = divmod(own, 2)
        part = X[row * 6 : row * 6 + 6, column * 4 : column * 4 + 4]

        class Total(nn.Cell):
            def construct(self, x: Any) -> Any:
                return x.sum(0)

        with _making:
            total = Total()
        return total(ms.Tensor(part)).asnumpy()

    for found in thread_ranks.run(4, rank):
        np.testing.assert_allclose(found, X.sum(0), rtol=1e-5, atol=1e-5)


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(ValueError, match=r"MatMul-op0: .*axis 0 of input 1 into 4 parts"):
        losses(4, ((1, 2), (4, 1)), None)
    ms.reset_auto_parallel_context()
    with pytest.raises(ValueError, match="device_num is 8, and 2 ranks"):
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=8)
        thread_ranks.run(2, lambda own: Net()(ms.Tensor(X)))


def test_alone_a_network_runs_as_it_is(alone: list[float]) -> None:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=8, global_rank=3)
    step = training(Net(((2, 1), (1, 4)), ((2, 4), (4, 1))))
    found = [float(step(ms.Tensor(X), ms.Tensor(Y))) for _ in range(3)]
    np.testing.assert_allclose(found, alone, rtol=1e-6)


def test_meshes_of_primes() -> None:
    assert [mesh_of(n).sizes for n in (1, 2, 6, 8, 12, 7)] == [(1,), (2,), (2, 3), (2, 2, 2), (2, 2, 3), (7,)]


def test_a_program_is_kept_while_settings_are() -> None:
    from mycel._src.foundation.settings.parallel_settings import current
    from mycel._src.staging.compiled.jit import Jit

    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=2)
    jit = Jit(lambda x: x)
    assert distributed(jit, current()) is distributed(jit, current())
    before = distributed(jit, current())
    ms.set_auto_parallel_context(enable_parallel_optimizer=True)
    assert distributed(jit, current()) is not before


class Inside(nn.Cell):
    """A product with a strategy, in a loop or in a region that is recomputed."""

    def __init__(self, looped: bool) -> None:
        super().__init__()
        self.w = ms.Parameter(ms.Tensor(W[:8, :8]), name="w")
        self.product = ops.MatMul().shard(((1, 1), (1, 2)))
        self.looped = looped
        if not looped:
            self.recompute()

    def construct(self, x: Any, count: Any) -> Any:
        if not self.looped:
            return self.product(x, self.w)
        while count > 0:
            x = ops.tanh(self.product(x, self.w))
            count = count - 1
        return x


@pytest.mark.parametrize("looped", [True, False], ids=["loop", "recomputed"])
def test_strategies_reach_into_loops_and_regions(looped: bool) -> None:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=2, dataset_strategy="full_batch")
    given = ms.Tensor(X), ms.Tensor(2, ms.int64)

    def rank(_: int) -> Any:
        with _making:
            net = Inside(looped)
            step = ms.jit(lambda x, n: ms.value_and_grad(lambda x: (net(x, n) ** 2).sum(), None, [net.w])(x))
        value, (slope,) = step(*given)
        graph = distributed(step, current()).planned(*given).graph
        widths = {n.shape[1] for n in all_nodes(graph) if n.prim is matmul and n.inputs[0].shape == (12, 8)}
        return float(value), slope.asnumpy(), widths

    found = thread_ranks.run(2, rank)
    x, w = X.astype(np.float64), W[:8, :8].astype(np.float64)
    y = np.tanh(np.tanh(x @ w) @ w) if looped else x @ w
    for value, slope, widths in found:
        np.testing.assert_allclose(value, (y**2).sum(), rtol=1e-5)
        assert widths == {4}, "each rank computes its columns"
        np.testing.assert_array_equal(slope, found[0][1])


def test_one_rank_searches_for_all(alone: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans are found once, and inside of the stages of pipelines as well."""
    counts: list[str] = []
    search = planning.search
    monkeypatch.setattr(planning, "search", lambda *a, **k: [counts.append(""), search(*a, **k)][1])
    for found in losses(4, None, None, True, parallel_mode="auto_parallel"):
        np.testing.assert_allclose(found, alone, rtol=1e-5)
    assert len(counts) == 1
    ms.set_auto_parallel_context(pipeline_stages=2)

    def rank(own: int) -> list[float]:
        with _making:
            net = Net()
            cell = nn.PipelineCell(nn.WithLossCell(net, nn.MSELoss()), 2)
            step = nn.TrainOneStepCell(cell, nn.Adam(net.trainable_params(), 1e-2))
        return [float(step(ms.Tensor(X), ms.Tensor(Y))) for _ in range(3)]

    found = thread_ranks.run(4, rank)
    assert len(counts) == 2
    # The loss of a pipeline is the sum of those of its micro-batches; Adam does not mind.
    np.testing.assert_allclose(found, [[2 * v for v in alone]] * 4, rtol=1e-4)


def test_ranks_with_different_programs_are_told() -> None:
    with pytest.raises(RuntimeError, match="divides another program than rank"):
        thread_ranks.run(2, lambda own: found_by_one(lambda: [1], own))
    with pytest.raises(ValueError, match="no plan"):
        thread_ranks.run(2, lambda own: found_by_one(_refusing, 1))


def _refusing() -> list[int]:
    raise ValueError("no plan")
