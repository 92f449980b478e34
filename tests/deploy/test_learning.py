"""Training steps with networks of integers: on boards and here the losses are the JIT's."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel.deploy import Library, build
from mycel.quantisation import learning
from tests.deploy.boards import missing_tools, run
from tests.deploy.loaded import Loaded
from tests.deploy.networks import LeNet

BOARDS = pytest.mark.skipif(bool(missing_tools()), reason=f"needs {missing_tools()}: make device installs it")
HERE = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="runs code for x86-64")
# What is trained of LeNet, by words in the names of parameters, and whether it is rounded.
CHOICES: dict[str, tuple[tuple[str, ...], bool]] = {
    "last": (("fc3",), False),
    "biases": (("bias",), True),
    "rounded": (("conv2", "fc3"), True),
    "held in floats": (("conv2", "fc3"), False),
}


def _batches(count: int = 3) -> list[list[Any]]:
    random = np.random.RandomState(3)
    return [[random.randn(4, 1, 28, 28).astype("f4"), random.randint(0, 10, 4).astype("i4")] for _ in range(count)]


def _step(choice: str, floats: bool = False) -> Any:
    """Return a step of training a part of LeNet, of integers or of floats."""
    words, rounded = CHOICES[choice]
    ms.set_seed(1)
    net = LeNet().set_train(False)
    chosen = [p for p in net.trainable_params() if any(w in p.name for w in words)]
    network = net if floats else learning(net, _batches(8)[7][0], chosen, round_trained=rounded)
    update = nn.Momentum(chosen if floats else network.trainable_params(), 0.02, 0.9)
    derive = ms.value_and_grad(lambda x, y: ops.cross_entropy(network(x), y), None, update.parameters)

    def step(x: Any, y: Any) -> Any:
        loss, gradients = derive(x, y)
        update(gradients)
        return loss

    return step


def _library(choice: str, target: str, floats: bool = False) -> Library:
    return build(_step(choice, floats), *map(ms.Tensor, _batches(1)[0]), target=target, name="train")


def _losses(choice: str) -> list[float]:
    step = ms.jit(_step(choice))
    return [float(step(*map(ms.Tensor, batch))) for batch in _batches()]


@HERE
@pytest.mark.parametrize("choice", CHOICES)
def test_losses_here(choice: str) -> None:
    loaded = Loaded(_library(choice, "x86-64-v2"))
    np.testing.assert_allclose([float(loaded(*b)) for b in _batches()], _losses(choice), rtol=0, atol=1e-6)


@BOARDS
@pytest.mark.parametrize(
    ("target", "choice"),
    [*[("cortex-m4", c) for c in CHOICES], ("cortex-m55", "last"), ("cortex-m55", "biases"), ("cortex-m55", "rounded")],
)
def test_losses_on_boards(target: str, choice: str, tmp_path: Path) -> None:
    done = run(_library(choice, target), _batches(), tmp_path)
    np.testing.assert_allclose([float(r[0]) for r in done.results], _losses(choice), rtol=0, atol=1e-6)


def test_frozen_layers_take_bytes() -> None:
    small, large = (_library("last", "cortex-m4", floats) for floats in (False, True))
    assert small.arena_bytes < large.arena_bytes / 3
    assert small.constant_bytes < large.constant_bytes / 3
    small, large = (_library("biases", "cortex-m4", floats) for floats in (False, True))
    assert small.arena_bytes < large.arena_bytes / 3 and small.constant_bytes < large.constant_bytes / 3
