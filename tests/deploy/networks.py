"""Networks and training steps that tests and benchmarks make libraries of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import mycel as ms
from mycel import nn, ops

__all__ = ["PROGRAMS", "LeNet", "dense", "images", "training_step"]


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


class Attention(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.norm = nn.Embedding(11, 8), nn.LayerNorm((8,))
        self.query, self.key, self.value = nn.Dense(8, 8), nn.Dense(8, 8), nn.Dense(8, 8)

    def construct(self, tokens: Any) -> Any:
        x = self.norm(self.words(tokens))
        scores = ops.softmax(ops.matmul(self.query(x), self.key(x).transpose(0, 2, 1)) / 8**0.5, -1)
        return ops.gelu(ops.matmul(scores, self.value(x)))


class Recurrent(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(5, 6, batch_first=True)

    def construct(self, x: Any) -> Any:
        return self.layer(x)[0]


def dense(*sizes: int) -> nn.Cell:
    """Return layers from each size to the next."""
    return nn.SequentialCell(*[c for n, m in zip(sizes, sizes[1:]) for c in (nn.Dense(n, m), nn.ReLU())])


def padded(channels: int) -> nn.Cell:
    """Return convolutions with padding, strides and channels apart."""
    return nn.SequentialCell(
        nn.Conv2d(2, channels, 3, stride=2, has_bias=True),
        nn.ReLU(),
        nn.Conv2d(channels, channels, 3, group=channels),
        nn.Conv2d(channels, channels, 5, pad_mode="pad", padding=2, dilation=1),
        nn.Conv2d(channels, 3, (3, 2), pad_mode="pad", padding=(0, 2, 3, 1), dilation=(2, 1)),
        nn.AvgPool2d(3, 2, pad_mode="same"),
    )


def _looped(x: Any) -> Any:
    k = ops.full((), 0, dtype=ms.int32)
    while k < 5:
        x = x * 1.5 if x.sum() < 20 else x - 1
        k = k + 1
    return x


def _joined(x: Any) -> Any:
    y = ops.exp(x)
    z = ops.concat([y + 1, x, ops.concat([y, y * x], 0)], 0)
    return ops.concat([y, y], 1), z, ops.concat([z, z], 1).sum(1), ops.concat([x, y.cumsum(0)], 1), y


def images(*shape: int) -> ms.Tensor:
    return ms.Tensor(np.random.RandomState(0).randn(*shape).astype("f4"))


PROGRAMS: dict[str, tuple[Callable[[], Any], tuple[Any, ...]]] = {
    "lenet": (LeNet, (images(1, 1, 28, 28),)),
    "batch": (LeNet, (images(3, 1, 28, 28),)),
    "depthwise": (
        lambda: nn.SequentialCell(nn.Conv2d(4, 4, 3, group=4), nn.BatchNorm2d(4), nn.ReLU6(), nn.Conv2d(4, 6, 1)),
        (images(2, 4, 9, 7),),
    ),
    "padded": (lambda: padded(4), (images(2, 2, 9, 11),)),
    "alike": (lambda: dense(16, 16, 16, 16, 16), (images(3, 16),)),
    "widths": (lambda: dense(8, 16, 24, 32, 40, 9), (images(2, 8),)),
    "transposed": (lambda: nn.Conv2dTranspose(3, 4, 3, stride=2), (images(1, 3, 5, 5),)),
    "attention": (Attention, (ms.Tensor([[3, 1, 10, 0], [2, 2, 7, 5]], ms.int32),)),
    "recurrent": (Recurrent, (images(2, 4, 5),)),
    "branches and loops": (lambda: _looped, (images(3, 4),)),
    "joined": (lambda: _joined, (images(3, 4),)),
    "orders": (lambda: lambda x: (ops.sort(x, 1)[0], x.argmax(1), ops.cumsum(x, 0)), (images(4, 9),)),
    "integers": (lambda: lambda x: (x // 3, x % 5, (x << 2).astype(ms.int8)), (ms.Tensor([[7, -8, 9]], ms.int32),)),
    "elementary": (
        lambda: lambda x: ops.tanh(x) + ops.exp(-x * x) * ops.erf(x) + ops.log(ops.abs(x) + 1),
        (images(5, 7),),
    ),
}


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
