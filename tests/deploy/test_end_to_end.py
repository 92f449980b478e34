"""From the server to the microcontroller and back: a network of digits is trained, made of
integers, built for a Cortex-M55 and run there on digits held out; learns there from rotated digits;
and what two devices learned is averaged on the server.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel.dataset.digits import load_digits, stratified_split
from mycel.deploy import Library, build
from mycel.quantisation import quantise
from tests.deploy.boards import missing_tools, run

pytestmark = pytest.mark.skipif(bool(missing_tools()), reason=f"needs {missing_tools()}: make device installs it")
TARGET = "cortex-m55"
BATCH, ROUNDS = 8, 40


def _digits() -> tuple[Any, Any, Any, Any]:
    images, labels = load_digits(size=8)
    images = images.transpose(0, 3, 1, 2).astype(np.float32) / 255
    train, test = stratified_split(labels)
    return images[train], labels[train], images[test], labels[test]


def _rotated(images: Any, degrees: float) -> Any:
    turn = np.deg2rad(degrees)
    theta = np.array([[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0]], np.float32)
    shape = images.shape
    grid = ops.affine_grid(ms.Tensor(np.tile(theta, (len(images), 1, 1))), shape, align_corners=False)
    return ops.grid_sample(ms.Tensor(images), grid, align_corners=False).asnumpy()


class Digits(nn.Cell):
    """Features and a head, which a device goes on training."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.SequentialCell(
            nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.MaxPool2d(2, 2)
        )
        self.head = nn.Dense(64, 10)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.head(self.features(x).reshape(x.shape[0], 64))


def _trained(images: Any, labels: Any) -> Digits:
    ms.set_seed(0)
    net = Digits()
    step = nn.TrainOneStepCell(
        nn.WithLossCell(net, nn.CrossEntropyLoss()), nn.Adam(net.trainable_params(), learning_rate=3e-3)
    )
    order = np.random.default_rng(0)
    for _ in range(12):
        for rows in order.permutation(len(images))[: len(images) // 32 * 32].reshape(-1, 32):
            step(ms.Tensor(images[rows]), ms.Tensor(labels[rows]))
    net.set_train(False)
    return net


def _client(features: Any, head: Any) -> Any:
    """One step of training the head on features of integers; the server and the devices run it."""
    update = nn.SGD(head.trainable_params(), 0.003)

    def loss_of(x: ms.Tensor, y: ms.Tensor) -> ms.Tensor:
        return ops.cross_entropy(head(features(x).reshape(BATCH, 64)), y)

    derive = ms.value_and_grad(loss_of, None, update.parameters)

    def step(x: ms.Tensor, y: ms.Tensor) -> Any:
        loss, gradients = derive(x, y)
        update(gradients)
        return loss, head.weight + 0, head.bias + 0

    return step


def _copy_of(head: Any) -> Any:
    made = nn.Dense(64, 10)
    made.weight.set_data(ms.Tensor(head.weight.asnumpy().copy()))
    made.bias.set_data(ms.Tensor(head.bias.asnumpy().copy()))
    return made


def _fits(library: Library) -> bool:
    """Whether a library is one for a small part."""
    return library.ram_bytes < 64 << 10 and library.flash_bytes < 128 << 10


def test_a_network_of_digits_goes_to_a_device_and_comes_back(tmp_path: Path) -> None:
    images, labels, held, held_labels = _digits()
    net = _trained(images, labels)

    def accuracy(scores: Any, of: Any) -> float:
        return float((np.asarray(scores).argmax(-1) == of).mean())

    floats = accuracy(net(ms.Tensor(held)).asnumpy(), held_labels)
    assert floats > 0.95

    # Integers, on the device.
    small = quantise(net, ms.Tensor(images[:256]))
    library = build(small, ms.Tensor(held[:1]), target=TARGET, name="digits")
    assert _fits(library)
    (tmp_path / "inference").mkdir()
    done = run(library, [[x[None]] for x in held[:60]], tmp_path / "inference")
    found = np.concatenate([r[0] for r in done.results])
    np.testing.assert_array_equal(found.argmax(1), small(ms.Tensor(held[:60])).asnumpy().argmax(1))
    assert accuracy(small(ms.Tensor(held)).asnumpy(), held_labels) > floats - 0.01
    assert accuracy(found, held_labels[:60]) > floats - 0.05

    # Two devices learn from rotated digits, each from its own.
    turned, held_turned = _rotated(images, 30), _rotated(held, 30)
    features = quantise(net.features, ms.Tensor(turned[:256]))

    def score(head: Any) -> float:
        return accuracy(head(features(ms.Tensor(held_turned)).reshape(-1, 64)).asnumpy(), held_labels)

    before, learned = score(net.head), []
    for device in range(2):
        rows = np.arange(device, len(turned), 2)[: BATCH * ROUNDS].reshape(ROUNDS, BATCH)
        calls = [[turned[r], labels[r]] for r in rows]
        library = build(_client(features, _copy_of(net.head)), *map(ms.Tensor, calls[0]), target=TARGET, name="learn")
        assert _fits(library)
        folder = tmp_path / f"device{device}"
        folder.mkdir()
        done = run(library, calls, folder)
        step = ms.jit(_client(features, _copy_of(net.head)))
        wanted = [float(step(*map(ms.Tensor, call))[0]) for call in calls]
        np.testing.assert_allclose([float(r[0]) for r in done.results], wanted, rtol=1e-4)
        learned.append(done.results[-1][1:])

    # The server takes their mean.
    weight, bias = (np.mean([parts[k] for parts in learned], axis=0) for k in (0, 1))
    net.head.weight.set_data(ms.Tensor(weight))
    net.head.bias.set_data(ms.Tensor(bias))
    assert score(net.head) > before + 0.1
