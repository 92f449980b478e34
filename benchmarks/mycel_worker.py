"""Mycel's side of the comparison: python mycel_worker.py graph|pynative."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from protocol import Prepared, serve

import mycel as ms
from mycel import nn


class LeNet5(nn.Cell):
    """LeNet-5 with rectifiers and max pooling, for images [N, 1, 32, 32]."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.SequentialCell(
            nn.Conv2d(1, 6, 5, pad_mode="valid", has_bias=True),
            nn.ReLU(),
            nn.MaxPool2d(2, 2),
            nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True),
            nn.ReLU(),
            nn.MaxPool2d(2, 2),
            nn.Flatten(),
        )
        self.classifier = nn.SequentialCell(
            nn.Dense(400, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, 10)
        )

    def construct(self, x: Any) -> Any:
        return self.classifier(self.features(x))


def lenet5() -> Prepared:
    """A training step of batch 32 that ends with the loss on the host."""
    random = np.random.RandomState(0)
    images = ms.Tensor(random.randn(32, 1, 32, 32).astype(np.float32))
    labels = ms.Tensor(random.randint(0, 10, 32).astype(np.int32))
    network = LeNet5()
    optimizer = nn.Momentum(network.trainable_params(), 1e-3, 0.9)
    step = nn.TrainOneStepCell(nn.WithLossCell(network, nn.CrossEntropyLoss()), optimizer)
    step.set_train()
    size = sum(parameter.size for parameter in network.trainable_params())
    return Prepared(lambda: float(step(images, labels).asnumpy()), parameters=size)


def eager_add() -> Prepared:
    """x + y of 32 x 32 numbers, one operation at a time."""
    ms.set_context(mode=ms.PYNATIVE_MODE)
    random = np.random.RandomState(0)
    x, y = (ms.Tensor(random.randn(32, 32).astype(np.float32)) for _ in range(2))
    return Prepared(lambda: x + y, block=True, settle=lambda result: result.asnumpy())


if __name__ == "__main__":
    ms.set_context(mode=ms.GRAPH_MODE if sys.argv[1] == "graph" else ms.PYNATIVE_MODE)
    serve({"lenet5": lenet5, "eager_add": eager_add}, {"version": ms.__version__})
