"""AdaSum of gradients and of changes, on threads as ranks, against NumPy."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.transport import thread_ranks

CHECKED = dict.fromkeys(("nn.AdaSumByDeltaWeightWrapCell", "nn.AdaSumByGradWrapCell"), "NumPy")
_making = threading.Lock()
_random = np.random.default_rng(2)
W = [_random.normal(size=s) for s in ((4, 3), (3,))]
X = _random.normal(size=(4, 5, 4))


def adasum(values: list[Any]) -> Any:
    """The definition: halves are combined, and then their results."""
    if len(values) == 1:
        return values[0]
    half = len(values) // 2
    a, b = adasum(values[0::2]), adasum(values[1::2])
    if half == 1:
        a, b = values
    dot = (a * b).sum()
    return (1 - dot / (2 * (a * a).sum())) * a + (1 - dot / (2 * (b * b).sum())) * b


def hypercube(values: list[Any]) -> Any:
    """Neighbours are combined first."""
    while len(values) > 1:
        values = [adasum(values[k : k + 2]) for k in range(0, len(values), 2)]
    return values[0]


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w, self.b = (ms.Parameter(ms.Tensor(v), name=n) for v, n in zip(W, "wb"))

    def construct(self, x: Any) -> Any:
        return (ops.tanh(ops.matmul(x, self.w) + self.b) ** 2).sum()


def gradients(weights: list[Any], x: Any) -> list[Any]:
    y = np.tanh(x @ weights[0] + weights[1])
    slope = 2 * y * (1 - y * y)
    return [x.T @ slope, slope.sum(0)]


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    yield
    ms.reset_auto_parallel_context()


def trained(wrap: Callable[[Any], Any], steps: int = 3) -> Callable[[int], list[Any]]:
    def run(rank: int) -> list[Any]:
        with _making:
            net = Net()
            step = ms.jit(nn.TrainOneStepCell(net, wrap(nn.Momentum(net.trainable_params(), 0.1, 0.9))))
        for _ in range(steps):
            step(ms.Tensor(X[rank]))
        return [p.asnumpy() for p in net.get_parameters()]

    return run


@pytest.mark.parametrize("ranks", [2, 4])
def test_gradients_are_combined(ranks: int) -> None:
    found = thread_ranks.run(ranks, trained(nn.AdaSumByGradWrapCell))
    weights, velocity = [w.copy() for w in W], [0 * w for w in W]
    for _ in range(3):
        each = [gradients(weights, X[r]) for r in range(ranks)]
        for k in range(2):
            velocity[k] = 0.9 * velocity[k] + hypercube([g[k] for g in each])
            weights[k] = weights[k] - 0.1 * velocity[k]
    for values in found:
        for value, expected in zip(values, weights):
            np.testing.assert_allclose(value, expected, rtol=1e-5)


@pytest.mark.parametrize("ranks", [2, 4])
def test_changes_are_combined(ranks: int) -> None:
    found = thread_ranks.run(ranks, trained(nn.AdaSumByDeltaWeightWrapCell))
    weights, velocity = [w.copy() for w in W], [[0 * w for w in W] for _ in range(ranks)]
    for _ in range(3):
        each = [gradients(weights, X[r]) for r in range(ranks)]
        for k in range(2):
            for r in range(ranks):
                velocity[r][k] = 0.9 * velocity[r][k] + each[r][k]
            weights[k] = weights[k] - hypercube([0.1 * velocity[r][k] for r in range(ranks)])
    for values in found:
        for value, expected in zip(values, weights):
            np.testing.assert_allclose(value, expected, rtol=1e-5)


@pytest.mark.parametrize("mean", [False, True])
def test_servers_are_combined_after_sums_inside(mean: bool) -> None:
    ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=mean)
    found = thread_ranks.run(4, trained(lambda optimizer: nn.AdaSumByGradWrapCell(optimizer, server_size=2), 1))
    each = [gradients(W, X[r]) for r in range(4)]
    for k in range(2):
        servers = [each[0][k] + each[1][k], each[2][k] + each[3][k]]
        expected = W[k] - 0.1 * adasum([s / 2 if mean else s for s in servers])
        for values in found:
            np.testing.assert_allclose(values[k], expected, rtol=1e-5)


def test_other_numbers_of_processes_are_refused() -> None:
    optimizer = nn.SGD(Net().trainable_params(), 0.1)
    with pytest.raises(RuntimeError, match="there is one; use the optimizer itself"):
        nn.AdaSumByGradWrapCell(optimizer)
    with pytest.raises(ValueError, match="3 processes are 3 servers of 1; AdaSum combines 2, 4, 8"):
        thread_ranks.run(3, lambda rank: nn.AdaSumByGradWrapCell(optimizer))
    with pytest.raises(ValueError, match="4 processes are 1 servers of 4"):
        thread_ranks.run(4, lambda rank: nn.AdaSumByDeltaWeightWrapCell(optimizer, 4))
    with pytest.raises(TypeError, match="optimizer must be"):
        nn.AdaSumByGradWrapCell(Net())  # type: ignore[arg-type]
