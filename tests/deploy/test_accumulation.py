"""Gradients of several small batches, added up on the device: one update, and no power lost."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel.boost import GradientAccumulation
from mycel.deploy import build
from tests.deploy.boards import missing_tools, run
from tests.deploy.loaded import Loaded
from tests.deploy.networks import LeNet
from tests.deploy.test_state_persistence import Device, Store, _slot

HERE = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="runs code for x86-64")
PARTS = 4
RANDOM = np.random.RandomState(0)
X, Y = RANDOM.randn(20, 1, 28, 28).astype("f4"), RANDOM.randint(0, 10, 20).astype("i4")
OPTIMIZERS: dict[str, Any] = {
    "momentum": lambda p: nn.Momentum(p, 0.05, 0.9),
    "adam": lambda p: nn.Adam(p, 1e-3),
    "scheduled": lambda p: nn.SGD(p, nn.ExponentialDecayLR(0.1, 0.5, 2)),
}


def _step(kind: str, parts: int) -> Any:
    """Return a training step that gives the loss and a number of each weight."""
    ms.set_seed(0)
    net = LeNet()
    update = OPTIMIZERS[kind](net.trainable_params())
    collect: Any = GradientAccumulation(parts, update) if parts > 1 else None
    derive = ms.value_and_grad(lambda x, y: ops.cross_entropy(net(x), y), None, update.parameters)

    def step(x: Any, y: Any) -> Any:
        loss, gradients = derive(x, y)
        if collect is None:
            update(gradients)
        else:
            collect(loss, gradients)
        return loss, ops.stack([(p * p).sum() for p in update.parameters])

    return step


def _library(kind: str, parts: int, target: str) -> Any:
    size = PARTS if parts == 1 else 1
    return build(_step(kind, parts), ms.Tensor(X[:size]), ms.Tensor(Y[:size]), target=target, name="train")


@HERE
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_parts_of_a_batch_are_the_batch(kind: str) -> None:
    whole, parts = Loaded(_library(kind, 1, "x86-64-v2")), Loaded(_library(kind, PARTS, "x86-64-v2"))
    compiled = ms.jit(_step(kind, PARTS))
    for k in range(0, len(X), PARTS):
        wanted, weights = whole(X[k : k + PARTS], Y[k : k + PARTS])
        some = [parts(X[j : j + 1], Y[j : j + 1]) for j in range(k, k + PARTS)]
        same = [compiled(ms.Tensor(X[j : j + 1]), ms.Tensor(Y[j : j + 1])) for j in range(k, k + PARTS)]
        assert abs(np.mean([float(loss) for loss, _ in some]) - float(wanted)) < 1e-6
        assert max(abs(float(a[0]) - float(b[0])) for a, b in zip(some, same)) < 1e-6
        np.testing.assert_allclose(some[-1][1], weights, rtol=1e-5)
        # Before the last part nothing has moved.
        assert k == 0 or (some[0][1] == some[-2][1]).all()


def test_the_arena_is_that_of_one_example() -> None:
    ms.set_seed(0)
    net = LeNet()
    update = nn.Momentum(net.trainable_params(), 0.05, 0.9)
    derive = ms.value_and_grad(lambda x, y: ops.cross_entropy(net(x), y), None, update.parameters)
    collect = GradientAccumulation(PARTS, update)

    def one(x: Any, y: Any) -> Any:
        loss, gradients = derive(x, y)
        update(gradients)
        return loss

    def part(x: Any, y: Any) -> Any:
        return collect(*derive(x, y))

    plain, made = (build(f, ms.Tensor(X[:1]), ms.Tensor(Y[:1]), target="cortex-m4", name="train") for f in (one, part))
    assert made.arena_bytes == plain.arena_bytes < 32 * 1024
    assert made.state_bytes < 1.51 * plain.state_bytes


@HERE
def test_power_is_lost_between_parts() -> None:
    library, random = _library("momentum", PARTS, "x86-64-v2"), np.random.RandomState(1)
    steady, device, store = Device(library), Device(library), Store(_slot(library))
    assert device.save(store) == 0
    for k in range(len(X)):
        wanted = [v.tobytes() for v in steady(X[k : k + 1], Y[k : k + 1])]
        while True:
            found = [v.tobytes() for v in device(X[k : k + 1], Y[k : k + 1])]
            assert found == wanted
            store.budget = int(random.randint(2 * _slot(library)))
            status = device.save(store)
            store.budget = float("inf")
            if status == 0:
                break
            # Another device goes on from what was saved last: before this part.
            device = Device(library)
            assert device.load(store) == 0


@pytest.mark.skipif(bool(missing_tools()), reason=f"needs {missing_tools()}: make device installs it")
def test_on_a_board(tmp_path: Path) -> None:
    done = run(_library("momentum", PARTS, "cortex-m4"), [[X[k : k + 1], Y[k : k + 1]] for k in range(8)], tmp_path)
    step = ms.jit(_step("momentum", 1))
    for k in (0, PARTS):
        loss, weights = step(ms.Tensor(X[k : k + PARTS]), ms.Tensor(Y[k : k + PARTS]))
        assert abs(np.mean([float(r[0]) for r in done.results[k : k + PARTS]]) - float(loss)) < 1e-6
        np.testing.assert_allclose(done.results[k + PARTS - 1][1], weights.asnumpy(), rtol=1e-5)
