"""Small networks of every kind whose channels are pruned."""

from __future__ import annotations

from typing import Any

import mycel as ms
from mycel import nn, ops

__all__ = ["NETWORKS", "Attending", "Hard", "Residual"]


class Block(nn.Cell):
    """Two convolutions and a way around them."""

    def __init__(self, inside: int, outside: int, stride: int = 1, group: int = 1) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(inside, outside, 3, stride), nn.BatchNorm2d(outside)
        self.second, self.norm2 = nn.Conv2d(outside, outside, 3, group=group), nn.BatchNorm2d(outside)
        self.around: Any = None
        if stride != 1 or inside != outside:
            self.around = nn.SequentialCell(nn.Conv2d(inside, outside, 1, stride), nn.BatchNorm2d(outside))

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        y = self.norm2(self.second(ops.relu(self.norm(self.first(x)))))
        return ops.relu(y + (x if self.around is None else self.around(x)))


class Residual(nn.Cell):
    """A residual network; with groups, one as ResNeXt."""

    def __init__(self, group: int = 1) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)
        self.blocks = nn.SequentialCell(Block(8, 8, 1, group), Block(8, 16, 2, group), Block(16, 16, 1, group))
        self.head = nn.Dense(16, 5)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.head(self.blocks(ops.relu(self.norm(self.stem(x)))).mean((2, 3)))


class Inverted(nn.Cell):
    """A block of MobileNetV2."""

    def __init__(self, inside: int, outside: int, stride: int, multiplier: int = 1) -> None:
        super().__init__()
        wide = inside * 4
        self.layers = nn.SequentialCell(
            nn.Conv2d(inside, wide, 1),
            nn.BatchNorm2d(wide),
            nn.ReLU6(),
            nn.Conv2d(wide, wide * multiplier, 3, stride, group=wide),
            nn.BatchNorm2d(wide * multiplier),
            nn.Hardswish() if hasattr(nn, "Hardswish") else nn.HSwish(),
            nn.Conv2d(wide * multiplier, outside, 1),
            nn.BatchNorm2d(outside),
        )
        self.same = stride == 1 and inside == outside

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return x + self.layers(x) if self.same else self.layers(x)


class Dense(nn.Cell):
    """A block of DenseNet, with a transition."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3)
        self.norms = nn.CellList([nn.BatchNorm2d(8 + 4 * k) for k in range(3)])
        self.layers = nn.CellList([nn.Conv2d(8 + 4 * k, 4, 3) for k in range(3)])
        self.norm, self.down = nn.BatchNorm2d(20), nn.Conv2d(20, 10, 1)
        self.pool, self.head = nn.AvgPool2d(2, 2), nn.Dense(10 * 16, 5)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        x = self.stem(x)
        for norm, layer in zip(self.norms, self.layers):
            x = ops.cat([x, layer(ops.sigmoid(norm(x)))], 1)
        x = self.pool(self.down(ops.relu(self.norm(x))))
        return self.head(x.reshape(x.shape[0], -1))


class UNet(nn.Cell):
    """Down and up again, with what was there before joined to it."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.pool = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 12, 3), nn.MaxPool2d(2, 2)
        self.up, self.three = nn.Conv2dTranspose(12, 8, 2, 2), nn.Conv2d(16, 6, 3)
        self.deep = nn.Conv2dTranspose(6, 6, 3, group=6)
        self.last = nn.Conv2d(6, 2, 1)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        one = ops.relu(self.one(x))
        two = ops.tanh(self.two(self.pool(one)))
        return self.last(self.deep(ops.relu(self.three(ops.cat([one, self.up(two)], 1)))))


class Shuffled(nn.Cell):
    """Convolutions in groups with channels shuffled between them, halves that go their own way."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.one = nn.Conv2d(3, 8, 1), nn.Conv2d(8, 16, 3, group=2)
        self.two, self.norm = nn.Conv2d(16, 16, 3, group=2), nn.GroupNorm(4, 16)
        self.left, self.head = nn.Conv2d(8, 8, 3), nn.Dense(16, 5)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        x = ops.relu(self.one(self.stem(x)))
        n, c, h, w = x.shape
        x = x.reshape(n, 2, c // 2, h, w).swapaxes(1, 2).reshape(n, c, h, w)
        x = self.norm(self.two(x))
        a, b = ops.chunk(x, 2, 1)
        return self.head(ops.cat([self.left(a), b], 1).mean((2, 3)))


class Attending(nn.Cell):
    """Attention with heads of its own, one product for queries, keys and values, and a gate."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm((16,)), nn.Dense(16, 48), nn.Dense(16, 16)
        self.up, self.gate, self.down = nn.Dense(16, 24), nn.Dense(16, 24), nn.Dense(24, 16)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        n, t, _ = x.shape
        # Heads have four columns, however many there are.
        qkv = self.qkv(self.norm(x)).reshape(n, t, 3, -1, 4)
        q, k, v = (qkv[:, :, i].swapaxes(1, 2) for i in range(3))
        scores = ops.softmax(ops.matmul(q, k.swapaxes(2, 3)) / 2.0, -1)
        x = x + self.out(ops.matmul(scores, v).swapaxes(1, 2).reshape(n, t, -1))
        return x + self.down(self.up(x) * ops.silu(self.gate(x)))


class Recurrent(nn.Cell):
    """Two layers of an LSTM in both directions, and a GRU."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 8, 2, batch_first=True, bidirectional=True)
        self.gru, self.head = nn.GRU(16, 8, batch_first=True), nn.Dense(8, 3)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.head(self.gru(self.lstm(x)[0])[0][:, -1])


class Words(nn.Cell):
    """Embedded words, one-dimensional convolutions, and the largest of each channel."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.conv, self.head = nn.Embedding(20, 8), nn.Conv1d(8, 12, 3), nn.Dense(12, 3)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.head(ops.relu(self.conv(self.table(x).swapaxes(1, 2))).amax(-1))


class Hard(nn.Cell):
    """A network whose program has a size as a number."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 8, 3), nn.Dense(8 * 64, 5)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.head(ops.relu(self.conv(x)).reshape(-1, 512))


def _images() -> ms.Tensor:
    return ops.randn(2, 3, 8, 8)


# By name: how to make it, example inputs, and whether its Cell follows the sizes of its layers.
NETWORKS: dict[str, tuple[Any, Any, bool]] = {
    "residual": (Residual, _images, True),
    "residual in groups": (lambda: Residual(4), _images, True),
    "mobile": (
        lambda: nn.SequentialCell(
            nn.Conv2d(3, 8, 3, 2), Inverted(8, 8, 1), Inverted(8, 12, 2, 2), nn.Flatten(), nn.Dense(48, 5)
        ),
        _images,
        True,
    ),
    "dense": (Dense, _images, True),
    "u": (UNet, _images, True),
    "shuffled": (Shuffled, _images, True),
    "attending": (Attending, lambda: ops.randn(2, 5, 16), True),
    "layer of transformers": (
        lambda: nn.TransformerEncoderLayer(16, 4, 32, batch_first=True),
        lambda: ops.randn(2, 5, 16),
        False,
    ),
    "recurrent": (Recurrent, lambda: ops.randn(2, 5, 6), True),
    "words": (Words, lambda: ms.Tensor([[1, 2, 3, 4, 5], [7, 0, 19, 3, 3]]), True),
    "sizes as numbers": (Hard, _images, False),
}
