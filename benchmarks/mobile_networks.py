"""Networks of phones for `mobile.py`, in Mycel; those of `mobile_torch.py` have their parameters.

Weights and statistics are drawn so that values keep the size that those of trained networks have.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import mycel as ms
from mycel import nn, ops

__all__ = ["NETWORKS", "example", "parameters", "settled"]

# Expansion, channels, blocks and stride of the stages of MobileNetV2.
STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def convolved(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> list[nn.Cell]:
    """Return a convolution and its normalisation."""
    made = nn.Conv2d(inputs, outputs, kernel, stride, pad_mode="pad", padding=kernel // 2, group=groups)
    return [made, nn.BatchNorm2d(outputs)]


class Inverted(nn.Cell):
    """A block of MobileNetV2: wider, each channel by itself, narrow again."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = inputs * expansion
        cells = [] if expansion == 1 else [*convolved(inputs, wide, 1), nn.ReLU6()]
        cells += [*convolved(wide, wide, 3, stride, wide), nn.ReLU6(), *convolved(wide, outputs, 1)]
        self.body, self.adds = nn.SequentialCell(cells), stride == 1 and inputs == outputs

    def construct(self, x: Any) -> Any:
        return x + self.body(x) if self.adds else self.body(x)


class MobileNetV2(nn.Cell):
    """MobileNetV2 1.0 for 224 by 224."""

    def __init__(self) -> None:
        super().__init__()
        cells: list[nn.Cell] = [*convolved(3, 32, 3, 2), nn.ReLU6()]
        width = 32
        for expansion, channels, blocks, stride in STAGES:
            for k in range(blocks):
                cells.append(Inverted(width, channels, stride if k == 0 else 1, expansion))
                width = channels
        self.features = nn.SequentialCell([*cells, *convolved(width, 1280, 1), nn.ReLU6()])
        self.head = nn.Dense(1280, 1000)

    def construct(self, x: Any) -> Any:
        return self.head(self.features(x).mean((2, 3)))


class Residual(nn.Cell):
    """A block of ResNet-18."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        cells = [*convolved(inputs, outputs, 3, stride), nn.ReLU(), *convolved(outputs, outputs, 3)]
        self.body = nn.SequentialCell(cells)
        self.down = nn.SequentialCell(convolved(inputs, outputs, 1, stride)) if stride > 1 else None

    def construct(self, x: Any) -> Any:
        return ops.relu(self.body(x) + (x if self.down is None else self.down(x)))


class ResNet18(nn.Cell):
    """ResNet-18 for 224 by 224."""

    def __init__(self) -> None:
        super().__init__()
        cells: list[nn.Cell] = [*convolved(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)]
        width = 64
        for outputs in (64, 128, 256, 512):
            for stride in (1 if outputs == 64 else 2, 1):
                cells.append(Residual(width, outputs, stride))
                width = outputs
        self.features, self.head = nn.SequentialCell(cells), nn.Dense(512, 1000)

    def construct(self, x: Any) -> Any:
        return self.head(self.features(x).mean((2, 3)))


class Encoder(nn.Cell):
    """A block of a transformer of 128 tokens and 256 channels."""

    def __init__(self) -> None:
        super().__init__()
        self.near, self.far = nn.LayerNorm((256,)), nn.LayerNorm((256,))
        self.query, self.key, self.value, self.out = (nn.Dense(256, 256) for _ in range(4))
        self.wide, self.narrow = nn.Dense(256, 1024), nn.Dense(1024, 256)

    def construct(self, x: Any) -> Any:
        y = self.near(x)
        q, k, v = (f(y).reshape(-1, 128, 4, 64).transpose(0, 2, 1, 3) for f in (self.query, self.key, self.value))
        weights = ops.softmax(ops.matmul(q, k.swapaxes(2, 3)) * 0.125, -1)
        x = x + self.out(ops.matmul(weights, v).transpose(0, 2, 1, 3).reshape(-1, 128, 256))
        return x + self.narrow(ops.relu(self.wide(self.far(x))))


class Transformer(nn.Cell):
    """Four such blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.SequentialCell([Encoder() for _ in range(4)])

    def construct(self, x: Any) -> Any:
        return self.blocks(x)


class Recurrent(nn.Cell):
    """An LSTM of 50 steps and 128 units, and a dense layer."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(64, 128, batch_first=True), nn.Dense(128, 10)

    def construct(self, x: Any) -> Any:
        start = ops.zeros((1, 1, 128), x.dtype)
        return self.head(self.lstm(x, (start, start))[0][:, -1])


NETWORKS = {"mobilenet": MobileNetV2, "resnet": ResNet18, "transformer": Transformer, "lstm": Recurrent}
_SHAPES = {"mobilenet": (1, 3, 224, 224), "resnet": (1, 3, 224, 224), "transformer": (1, 128, 256), "lstm": (1, 50, 64)}


def example(name: str, seed: int = 0) -> np.ndarray:
    """Return an argument of a network."""
    return np.random.default_rng(seed).standard_normal(_SHAPES[name]).astype(np.float32)


def settled(name: str) -> nn.Cell:
    """Return a network outside of training, with drawn parameters."""
    net, rng = NETWORKS[name](), np.random.default_rng(7)
    for p in net.get_parameters():
        values = rng.standard_normal(p.shape)
        word = p.name.rsplit(".", 1)[-1]
        if word in ("gamma", "moving_variance"):
            values = 1 + 0.2 * np.abs(values)
        elif word in ("beta", "moving_mean", "bias") or p.ndim == 1:
            values = 0.1 * values
        else:
            values = values / np.sqrt(np.prod(p.shape[1:]))
        p.set_data(ms.Tensor(values.astype(np.float32)))
    net.set_train(False)
    return net


def parameters(net: nn.Cell) -> list[np.ndarray]:
    """Return the values of the parameters of a network, in its order."""
    return [p.asnumpy() for p in net.get_parameters()]
