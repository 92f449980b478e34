"""Libraries that train for fifty steps, with many optimizers, networks and losses: as the JIT."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel.deploy import build
from tests.deploy.boards import missing_tools, run
from tests.deploy.loaded import Loaded

STEPS, BATCH, CLASSES = 50, 4, 3


def _image(x: ms.Tensor) -> ms.Tensor:
    return x.reshape(BATCH, 1, 6, 6)


class Convolutions(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(1, 4, 3, has_bias=True), nn.BatchNorm2d(4)
        self.depthwise, self.last = nn.Conv2d(4, 4, 3, group=4), nn.Dense(36, CLASSES)

    def construct(self, x: Any) -> Any:
        x = ops.relu(self.norm(self.first(_image(x))))
        x = ops.max_pool2d(ops.relu(self.depthwise(x)), 2, 2)
        return self.last(x.reshape(BATCH, 36))


class Sequence(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.norm, self.last = nn.GRU(6, 5, batch_first=True), nn.LayerNorm((5,)), nn.Dense(5, CLASSES)

    def construct(self, x: Any) -> Any:
        return self.last(self.norm(self.layer(x.reshape(BATCH, 6, 6))[0][:, -1]))


class Attentive(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = nn.Dense(6, 4), nn.Dense(6, 4), nn.Dense(6, 4)
        self.last = nn.Dense(4, CLASSES)

    def construct(self, x: Any) -> Any:
        x = x.reshape(BATCH, 6, 6)
        scores = ops.softmax(ops.matmul(self.query(x), self.key(x).transpose(0, 2, 1)) / 2, -1)
        return self.last(ops.gelu(ops.matmul(scores, self.value(x))).mean(1))


NETWORKS: dict[str, Any] = {
    "dense": lambda: nn.SequentialCell(nn.Dense(36, 8), nn.Tanh(), nn.Dense(8, CLASSES)),
    "convolutions": Convolutions,
    "sequence": Sequence,
    "attention": Attentive,
}
LOSSES: dict[str, Any] = {
    "cross entropy": ops.cross_entropy,
    "smoothed": lambda z, y: ops.cross_entropy(z, y, label_smoothing=0.1),
    "squares": lambda z, y: ops.mse_loss(ops.sigmoid(z), ops.one_hot(y, CLASSES, 1.0, 0.0)),
    "huber": lambda z, y: ops.huber_loss(z, ops.one_hot(y, CLASSES, 2.0, -1.0)),
}
OPTIMIZERS: dict[str, Any] = {
    "sgd": lambda p: nn.SGD(p, 0.05),
    "sgd with momentum and decay": lambda p: nn.SGD(p, 0.05, momentum=0.9, weight_decay=1e-3, nesterov=True),
    "momentum, cosine": lambda p: nn.Momentum(p, nn.CosineDecayLR(0.001, 0.05, 40), 0.9, weight_decay=1e-3),
    "momentum, list of rates": lambda p: nn.Momentum(p, [0.05] * 10 + [0.01] * 40, 0.9),
    "adam": lambda p: nn.Adam(p, 0.005),
    "adam, exponential": lambda p: nn.Adam(p, nn.ExponentialDecayLR(0.01, 0.9, 5), use_nesterov=True),
    "adamw, warm-up": lambda p: nn.AdamWeightDecay(p, nn.WarmUpLR(0.01, 10), weight_decay=0.01),
    "adamw": lambda p: ms.experimental.optim.AdamW(p, lr=0.005),
    "rmsprop": lambda p: nn.RMSProp(p, 0.005, centered=True),
    "adagrad": lambda p: nn.Adagrad(p, learning_rate=0.02),
    "lamb": lambda p: nn.Lamb(p, nn.PolynomialDecayLR(0.01, 0.001, 40, 0.5)),
}
NETS, KINDS, RULES = list(NETWORKS), list(LOSSES), list(OPTIMIZERS)
# Each optimizer with two networks, losses in turn, every second one with clipped gradients.
COMBINATIONS = [
    (NETS[(k + shift) % 4], KINDS[(k + k // 4 + shift) % 4], rule, (k + shift // 2) % 2 == 0)
    for k, rule in enumerate(RULES)
    for shift in (0, 2)
]


def _made(network: str, loss: str, rule: str, clip: bool) -> Any:
    ms.set_seed(7)
    net = NETWORKS[network]().set_train()
    update, compare = OPTIMIZERS[rule](net.trainable_params()), LOSSES[loss]
    derive = ms.value_and_grad(lambda x, y: compare(net(x), y), None, update.parameters)

    def step(x: Any, y: Any) -> Any:
        value, gradients = derive(x, y)
        update(ops.clip_by_global_norm(gradients, 0.5) if clip else gradients)
        return value

    return step


def _batches() -> list[list[Any]]:
    random = np.random.RandomState(2)
    found = []
    for _ in range(STEPS):
        y = random.randint(0, CLASSES, BATCH).astype("i4")
        found.append([(random.randn(BATCH, 36) + y[:, None] * np.linspace(-1, 1, 36)).astype("f4"), y])
    return found


def _compared(found: list[float], combination: Any) -> None:
    step = ms.jit(_made(*combination))
    wanted = [float(step(*map(ms.Tensor, batch))) for batch in _batches()]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    assert np.std(wanted) > 0.01


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="runs code for x86-64")
@pytest.mark.parametrize("combination", COMBINATIONS, ids=str)
def test_here(combination: Any) -> None:
    library = build(_made(*combination), *map(ms.Tensor, _batches()[0]), target="x86-64-v2", name="train")
    loaded = Loaded(library)
    _compared([float(loaded(*batch)) for batch in _batches()], combination)


@pytest.mark.skipif(bool(missing_tools()), reason=f"needs {missing_tools()}: make device installs it")
@pytest.mark.parametrize("combination", COMBINATIONS[::3], ids=str)
def test_on_a_board(combination: Any, tmp_path: Path) -> None:
    library = build(_made(*combination), *map(ms.Tensor, _batches()[0]), target="cortex-m4", name="train")
    done = run(library, _batches(), tmp_path)
    _compared([float(r[0]) for r in done.results], combination)
