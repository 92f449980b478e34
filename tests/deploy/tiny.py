"""The four networks of MLPerf Tiny, as cells and as networks of 8 bits, for tests and benchmarks.

`NETWORKS` has them by name: keyword spotting (a depthwise separable network over 49 x 10 numbers),
visual wake words (MobileNetV1 of a quarter of the width over 96 x 96 pixels), image classification
(ResNet-8 over 32 x 32 pixels), and anomaly detection (an autoencoder of 640 numbers). Weights and
data are random and the same in every run: what is measured are instructions and memory, which do
not depend on them. `quantised` gives the network of integers whose ends are integers as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import mycel as ms
from mycel import nn, ops
from mycel.quantisation import quantise

__all__ = ["NETWORKS", "Tiny", "image_classification", "anomaly", "keywords", "quantised", "wake_words"]


def _conv(inputs: int, outputs: int, size: Any, stride: int = 1, group: int = 1) -> list[Any]:
    layer = nn.Conv2d(inputs, outputs, size, stride=stride, pad_mode="same", group=group)
    return [layer, nn.BatchNorm2d(outputs)]


def keywords() -> nn.Cell:
    """Return DS-CNN: 2.7 million products."""
    cells = [*_conv(1, 64, (10, 4), 2), nn.ReLU()]
    for _ in range(4):
        cells += [*_conv(64, 64, 3, group=64), nn.ReLU(), *_conv(64, 64, 1), nn.ReLU()]
    return nn.SequentialCell(*cells, nn.AvgPool2d((25, 5)), nn.Flatten(), nn.Dense(64, 12), nn.Softmax())


def wake_words() -> nn.Cell:
    """Return MobileNetV1 of a quarter of the width: 7.5 million products."""
    cells, before = [*_conv(3, 8, 3, 2), nn.ReLU()], 8
    for channels, stride in zip((16, 32, 32, 64, 64, *(128,) * 6, 256, 256), (1, 2, 1, 2, 1, 2, *(1,) * 5, 2, 1)):
        cells += [*_conv(before, before, 3, stride, before), nn.ReLU(), *_conv(before, channels, 1), nn.ReLU()]
        before = channels
    return nn.SequentialCell(*cells, nn.AvgPool2d(3), nn.Flatten(), nn.Dense(256, 2), nn.Softmax())


class _Residual(nn.Cell):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.SequentialCell(*_conv(inputs, outputs, 3, stride), nn.ReLU())
        self.second = nn.SequentialCell(*_conv(outputs, outputs, 3))
        self.near = nn.Conv2d(inputs, outputs, 1, stride=stride, has_bias=True) if stride > 1 else nn.Identity()

    def construct(self, x: Any) -> Any:
        return ops.relu(self.near(x) + self.second(self.first(x)))


def image_classification() -> nn.Cell:
    """Return ResNet-8: 12.5 million products."""
    blocks = [_Residual(16, 16, 1), _Residual(16, 32, 2), _Residual(32, 64, 2)]
    first = [*_conv(3, 16, 3), nn.ReLU()]
    return nn.SequentialCell(*first, *blocks, nn.AvgPool2d(8), nn.Flatten(), nn.Dense(64, 10), nn.Softmax())


def anomaly() -> nn.Cell:
    """Return the autoencoder: 0.26 million products."""
    sizes = [640, 128, 128, 128, 128, 8, 128, 128, 128, 128, 640]
    cells: list[Any] = []
    for one, other in zip(sizes, sizes[1:]):
        cells += [nn.Dense(one, other), nn.BatchNorm1d(other), nn.ReLU()]
    return nn.SequentialCell(*cells[:-2])


@dataclass(frozen=True)
class Tiny:
    """A network of MLPerf Tiny: how it is made, the shape of its input, and its products.

    `ram_bytes` is the memory beyond weights that TensorFlow Lite Micro takes for it, and
    `code_bytes` a bound of the code, both as bars. `depthwise` is how many of the products are of
    depthwise layers.
    """

    make: Callable[[], nn.Cell]
    shape: tuple[int, ...]
    products: int
    ram_bytes: int
    code_bytes: int
    depthwise: int = 0


NETWORKS = {
    "keywords": Tiny(keywords, (1, 49, 10), 2_656_768, 16_000, 16 << 10, 288_000),
    "wake words": Tiny(wake_words, (3, 96, 96), 7_489_664, 49_152, 32 << 10, 798_336),
    "image classification": Tiny(image_classification, (3, 32, 32), 12_501_632, 73_728, 32 << 10),
    "anomaly": Tiny(anomaly, (640,), 264_192, 768, 16 << 10),
}


def _settled(net: nn.Cell, x: ms.Tensor) -> None:
    """Give normalisations the statistics of `x`, so that values stay of one magnitude."""
    for cell in (c for _, c in net.cells_and_names() if isinstance(c, (nn.BatchNorm1d, nn.BatchNorm2d))):
        cell.momentum = 0.0
    net.set_train(True)
    net(x)
    net.set_train(False)


def quantised(name: str, batch: int = 1) -> tuple[Any, np.ndarray[Any, Any]]:
    """Return a network of integers by its name, and integers of an input for it.

    The network is quantised after training by the framework's own method, with a scale for each
    channel of weights, and takes and gives 8 bits. The input has `batch` rows.
    """
    tiny = NETWORKS[name]
    ms.set_seed(7)
    net = tiny.make()
    data = np.random.RandomState(7).randn(4, *tiny.shape).astype(np.float32)
    _settled(net, ms.Tensor(data))
    small = quantise(net, ms.Tensor(data), integer_ends=True)
    row = np.random.RandomState(8).randn(batch, *tiny.shape).astype(np.float32)
    return small, small.quantised_input(row)
