"""From the server to the microcontroller and back: a network of digits is trained, made of
integers, built for a Cortex-M55 and run there on digits held out; learns there from rotated
digits, with integers but for its head; and the server takes the mean of what two devices learned.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel.dataset.digits import load_digits, stratified_split
from mycel.deploy import Aggregator, Library, build, client_round, client_step
from mycel.quantisation import learning, quantise
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
    client = learning(net, images[:256], net.head.trainable_params())
    server = client.trainable_params()
    weights = [ms.Tensor(p.asnumpy().copy()) for p in server]
    update = nn.SGD(server, 0.003)
    step = client_step(lambda x, y: ops.cross_entropy(client(x), y), update, clip=5.0)
    before, moved = accuracy(client(ms.Tensor(held_turned)).asnumpy(), held_labels), []
    first = [ms.Tensor(0, ms.int32), ms.Tensor(turned[:BATCH]), ms.Tensor(labels[:BATCH]), *weights]
    library = build(step, *first, target=TARGET, name="learn")
    assert _fits(library)
    for device in range(2):
        rows = np.arange(device, len(turned), 2)[: BATCH * ROUNDS].reshape(ROUNDS, BATCH)
        held_by = [w.asnumpy() for w in weights]
        calls = [[np.array(k, np.int32), turned[r], labels[r], *held_by] for k, r in enumerate(rows)]
        folder = tmp_path / f"device{device}"
        folder.mkdir()
        done = run(library, calls, folder)
        batches = [(ms.Tensor(turned[r]), ms.Tensor(labels[r])) for r in rows]
        losses, wanted = client_round(ms.jit(step), batches, weights)
        np.testing.assert_allclose([float(r[0]) for r in done.results], [float(v) for v in losses], rtol=1e-4)
        for one, other in zip(done.results[-1][1:], wanted):
            np.testing.assert_allclose(one, other.asnumpy(), atol=1e-5)
        moved.append(done.results[-1][1:])

    # The server takes their mean.
    for p, weight in zip(server, weights):
        p.set_data(weight)
    Aggregator(server)(moved, counts=[BATCH * ROUNDS] * 2)
    assert accuracy(client(ms.Tensor(held_turned)).asnumpy(), held_labels) > before + 0.1
