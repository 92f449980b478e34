"""Networks and training steps that tests and benchmarks make libraries of."""

from __future__ import annotations

from typing import Any

import numpy as np

import mycel as ms
from mycel import nn, ops

__all__ = ["LeNet", "training_step"]


class LeNet(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, pad_mode="valid"), nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.pool, self.flat = nn.MaxPool2d(2, 2), nn.Flatten()
        self.fc1, self.fc2, self.fc3 = nn.Dense(256, 120), nn.Dense(120, 84), nn.Dense(84, 10)

    def construct(self, x: Any) -> Any:
        x = self.pool(ops.relu(self.conv1(x)))
        x = self.flat(self.pool(ops.relu(self.conv2(x))))
        return self.fc3(ops.relu(self.fc2(ops.relu(self.fc1(x)))))


def training_step() -> Any:
    """Return a step of LeNet's training with momentum, which gives the loss."""
    ms.set_seed(2)
    np.random.seed(2)
    net = LeNet()
    update = nn.Momentum(net.trainable_params(), 0.05, 0.9)
    derive = ms.value_and_grad(lambda x, y: ops.cross_entropy(net(x), y), None, update.parameters)

    def step(x: Any, y: Any) -> Any:
        loss, gradients = derive(x, y)
        update(gradients)
        return loss

    return step
