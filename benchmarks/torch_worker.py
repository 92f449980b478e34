"""PyTorch's side of the comparison: python torch_worker.py eager|compile THREADS."""

from __future__ import annotations

import sys

import numpy as np
import torch
from protocol import Prepared, serve
from torch import nn


def lenet5(compiled: bool) -> Prepared:
    """A training step of batch 32 that ends with the loss on the host."""
    random = np.random.RandomState(0)
    images = torch.from_numpy(random.randn(32, 1, 32, 32).astype(np.float32))
    labels = torch.from_numpy(random.randint(0, 10, 32))
    features = [nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)]
    classifier = [nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)]
    network = nn.Sequential(*features, nn.Flatten(), *classifier)
    optimizer = torch.optim.SGD(network.parameters(), 1e-3, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    forward = torch.compile(network) if compiled else network

    def step() -> float:
        loss = criterion(forward(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return Prepared(step, parameters=sum(parameter.numel() for parameter in network.parameters()))


def eager_add() -> Prepared:
    """x + y of 32 x 32 numbers, one operation at a time."""
    random = np.random.RandomState(0)
    x, y = (torch.from_numpy(random.randn(32, 32).astype(np.float32)) for _ in range(2))
    return Prepared(lambda: x + y, block=True, settle=lambda result: result.numpy())


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[2]))
    mode = sys.argv[1]
    workloads = {"lenet5": lambda: lenet5(mode == "compile")}
    if mode == "eager":
        workloads["eager_add"] = eager_add
    serve(workloads, {"version": torch.__version__})
