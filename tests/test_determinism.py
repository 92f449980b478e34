"""Training gives the same bits each time: in one process twice, and in another process, eagerly and
compiled.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel.dataset.digits import load_digits

STEPS = 4


class LeNet(nn.Cell):
    """LeNet-5 for the digits that are bundled."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, pad_mode="valid"), nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.pool, self.flatten = nn.MaxPool2d(2, 2), nn.Flatten()
        self.fc1, self.fc2 = nn.Dense(400, 84), nn.Dense(84, 10)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        x = self.pool(ops.relu(self.conv1(x)))
        x = self.pool(ops.relu(self.conv2(x)))
        return self.fc2(ops.relu(self.fc1(self.flatten(x))))


class Block(nn.Cell):
    """A transformer layer with dropout, over embedded tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.drop = nn.Embedding(50, 32), nn.Dropout(p=0.2)
        self.qkv, self.out = nn.Dense(32, 96), nn.Dense(32, 32)
        self.norm, self.head = nn.LayerNorm((32,)), nn.Dense(32, 5)

    def construct(self, tokens: ms.Tensor) -> ms.Tensor:
        x = self.drop(self.embed(tokens))
        b, t, d = x.shape
        q, k, v = ops.split(self.qkv(x).reshape(b, t, 3, 4, 8).transpose(2, 0, 3, 1, 4), 1, 0)
        scores = ops.softmax(ops.matmul(q[0], k[0].transpose(0, 1, 3, 2)) / 8**0.5, -1)
        mixed = ops.matmul(self.drop(scores), v[0]).transpose(0, 2, 1, 3).reshape(b, t, d)
        return self.head(self.norm(x + self.out(mixed)).mean(1))


class Normed(nn.Cell):
    """Batch normalisation between convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3)
        self.bn1, self.bn2 = nn.BatchNorm2d(8), nn.BatchNorm2d(8)
        self.head = nn.Dense(8, 4)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        y = ops.relu(self.bn1(self.conv1(x)))
        return self.head(ops.relu(self.bn2(self.conv2(y)) + y).mean((2, 3)))


def digits() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    images, labels = load_digits(size=32)
    return images[:48].transpose(0, 3, 1, 2).astype(np.float32) / 255, labels[:48]


def tokens() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(1)
    return rng.integers(0, 50, (16, 24)).astype(np.int32), rng.integers(0, 5, 16).astype(np.int32)


def pictures() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(2)
    return rng.normal(size=(8, 3, 18, 18)).astype(np.float32), rng.integers(0, 4, 8).astype(np.int32)


TASKS: dict[str, tuple[Callable[[], nn.Cell], Callable[[], Any], str]] = {
    "lenet": (LeNet, digits, "momentum"),
    "transformer": (Block, tokens, "adam"),
    "batch_norm": (Normed, pictures, "momentum"),
}


def train(task: str, mode: int) -> list[str]:
    """The losses of some steps, exactly, and a digest of all parameters after them."""
    make, load, kind = TASKS[task]
    ms.set_context(mode=mode)
    ms.set_seed(7)
    net = make()
    x, y = (ms.Tensor(a) for a in load())
    parameters = net.trainable_params()
    optimizer = nn.Adam(parameters, 0.01) if kind == "adam" else nn.Momentum(parameters, 0.05, 0.9)
    criterion = nn.CrossEntropyLoss()
    net.set_train()
    gradients = ms.value_and_grad(lambda x, y: criterion(net(x), y), None, optimizer.parameters)

    def step(x: ms.Tensor, y: ms.Tensor) -> ms.Tensor:
        loss, grads = gradients(x, y)
        optimizer(grads)
        return loss

    run = ms.jit(step) if mode == ms.GRAPH_MODE else step
    losses = [float(run(x, y).asnumpy()).hex() for _ in range(STEPS)]
    state = hashlib.sha256(b"".join(p.asnumpy().tobytes() for p in net.get_parameters())).hexdigest()
    return [*losses, state]


@pytest.fixture(autouse=True)
def settings() -> Any:
    before = ms.get_context("mode")
    yield
    ms.set_context(mode=before)


def trained_elsewhere(before: str) -> dict[str, list[str]]:
    """What another process finds that runs `before` first."""
    code = (
        "import json\n"
        f"import {__name__} as t\n"
        f"{before}\n"
        "print('found', json.dumps({f'{task} {mode}': t.train(task, mode) for task in t.TASKS for mode in (0, 1)}))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("found ")]
    result: dict[str, list[str]] = json.loads(line[6:])
    return result


@pytest.fixture(scope="module")
def elsewhere() -> dict[str, list[str]]:
    """What another process finds."""
    return trained_elsewhere("")


def use_other_sizes() -> None:
    """Run all tasks eagerly on batches of other sizes."""
    ms.set_context(mode=ms.PYNATIVE_MODE)
    for make, load, _ in TASKS.values():
        net, (x, _) = make().set_train(), load()
        gradients = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())  # noqa: B023
        for count in (5, 5, 6, 6, 7, 7):
            gradients(ms.Tensor(x[:count]))


def test_training_gives_the_same_bits_after_other_sizes(elsewhere: dict[str, list[str]]) -> None:
    """Programs that other sizes have made meanwhile serve these as well."""
    assert trained_elsewhere("t.use_other_sizes()") == elsewhere


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
@pytest.mark.parametrize("task", list(TASKS))
def test_training_gives_the_same_bits(task: str, mode: int, elsewhere: dict[str, list[str]]) -> None:
    first = train(task, mode)
    assert train(task, mode) == first
    assert elsewhere[f"{task} {mode}"] == first
    losses = [float.fromhex(text) for text in first[:-1]]
    assert all(np.isfinite(losses)) and losses[-1] < losses[0]


@pytest.mark.parametrize("task", ["lenet", "batch_norm"])
def test_modes_agree_but_for_rounding(task: str) -> None:
    graph, eager = (train(task, mode)[:-1] for mode in (ms.GRAPH_MODE, ms.PYNATIVE_MODE))
    for a, b in zip(graph, eager):
        assert float.fromhex(a) == pytest.approx(float.fromhex(b), rel=1e-5)


def test_dropout_draws_anew_in_each_step_and_the_same_in_each_run() -> None:
    def masks(seed: int) -> list[bytes]:
        ms.set_seed(seed)
        drop = nn.Dropout(p=0.5)
        drop.set_train()
        x = ms.Tensor(np.ones((64, 64), np.float32))
        return [drop(x).asnumpy().tobytes() for _ in range(3)]

    first = masks(3)
    assert masks(3) == first and len(set(first)) == 3
    assert masks(4) != first


def test_scattered_sums_do_not_depend_on_how_work_is_shared_out() -> None:
    rng = np.random.default_rng(0)
    index = ms.Tensor(rng.integers(0, 7, 4000).astype(np.int32))
    rows = ms.Tensor(rng.normal(size=(4000, 33)).astype(np.float32))

    def gradient(table: ms.Tensor) -> ms.Tensor:
        return ms.grad(lambda t: (ops.gather(t, index, 0) * rows).sum())(table)

    table = ms.Tensor(np.zeros((7, 33), np.float32))
    wanted = np.zeros((7, 33))
    np.add.at(wanted, index.asnumpy(), rows.asnumpy().astype(np.float64))
    before = ms.get_context("runtime_num_threads")
    found = []
    try:
        for threads in (1, 2, 3):
            ms.set_context(runtime_num_threads=threads)
            found.append(ms.jit(gradient)(table).asnumpy().copy())
            np.testing.assert_array_equal(gradient(table).asnumpy(), gradient(table).asnumpy())
    finally:
        ms.set_context(runtime_num_threads=before)
    for a in found:
        np.testing.assert_array_equal(a, found[0])
        np.testing.assert_allclose(a, wanted, rtol=1e-4, atol=1e-3)


SUMS: dict[str, Callable[[ms.Tensor], ms.Tensor]] = {
    "rows": lambda x: x.sum(-1),
    "all": lambda x: x.sum(),
    "variance": lambda x: ops.var(x, 1),
    "softmax": lambda x: ops.softmax(x, -1),
    "running": lambda x: ops.cumsum(x, 1),
    "grouped": lambda x: ops.group_norm(x.reshape(x.shape[0], 3, -1, 2), 1),
}


@pytest.mark.parametrize("name", list(SUMS))
def test_sums_do_not_depend_on_sizes_that_came_before(name: str) -> None:
    """Programs that serve many sizes add up in the order of one that was made for a size."""
    ms.set_context(mode=ms.PYNATIVE_MODE)
    rng = np.random.default_rng(4)
    shapes = [(9, 36), (3, 12), (12, 6), (40, 132), (2, 78), (17, 6), (9, 234), (5, 600)]
    given = [ms.Tensor(rng.normal(size=shape).astype(np.float32)) for shape in shapes]
    alone = []
    for x in given:
        ms.runtime.forget()
        alone.append(SUMS[name](x).asnumpy().tobytes())
    ms.runtime.forget()
    for x in given:
        SUMS[name](x)
    assert [SUMS[name](x).asnumpy().tobytes() for x in given] == alone
