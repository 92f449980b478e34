"""LeNet-5 trained for a moment on the bundled digits, for tests of quantisation."""

from __future__ import annotations

from typing import Any

import numpy as np

import mycel as ms
from mycel import nn
from mycel.demo.data import bundled
from mycel.demo.lenet import LeNet5

__all__ = ["HELD_OUT", "HELD_OUT_LABELS", "IMAGES", "LABELS", "accuracy", "trained", "training"]

_DATA = bundled()


def _floats(images: np.ndarray) -> np.ndarray:
    return (images[:, None] / 255.0).astype(np.float32)


IMAGES, LABELS = _floats(_DATA.train_images), _DATA.train_labels
HELD_OUT, HELD_OUT_LABELS = _floats(_DATA.held_out_images), _DATA.held_out_labels


def accuracy(net: Any) -> float:
    """The share of held-out digits that a network tells."""
    found = net(ms.Tensor(HELD_OUT)).asnumpy()
    return float((found.argmax(1) == HELD_OUT_LABELS).mean())


def training(net: Any, epochs: int, rate: float = 1e-3) -> None:
    """Train a network on the digits, in place."""
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Adam(net.trainable_params(), rate))
    step.set_train()
    rng = np.random.default_rng(0)
    for _ in range(epochs):
        order = rng.permutation(len(IMAGES))
        for i in range(0, len(IMAGES) - 63, 64):
            rows = order[i : i + 64]
            step(ms.Tensor(IMAGES[rows]), ms.Tensor(LABELS[rows]))


def trained(net: Any = None, epochs: int = 6) -> Any:
    """A network that tells some 97 of 100 held-out digits."""
    ms.set_seed(1)
    net = LeNet5() if net is None else net
    training(net, epochs)
    net.set_train(False)
    return net
