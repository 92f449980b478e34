"""The networks in PyTorch, with the weights that every framework starts from."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
import torch.nn.functional as F
from cases import initial_weight
from torch import nn

__all__ = ["bfloat16", "networks"]


class LeNet5(nn.Module):
    """LeNet-5 with rectifiers and max pooling, for images of 32 x 32."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x: Any) -> Any:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class Bottleneck(nn.Module):
    """A block of ResNet-50: 1 x 1, 3 x 3 and 1 x 1 convolutions beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        inner = outputs // 4
        self.conv1, self.bn1 = nn.Conv2d(inputs, inner, 1, bias=False), nn.BatchNorm2d(inner)
        self.conv2, self.bn2 = nn.Conv2d(inner, inner, 3, stride, 1, bias=False), nn.BatchNorm2d(inner)
        self.conv3, self.bn3 = nn.Conv2d(inner, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        self.down: Any = None
        if stride != 1 or inputs != outputs:
            self.down = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Any) -> Any:
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return F.relu(y + (x if self.down is None else self.down(x)))


class ResNet50(nn.Module):
    """ResNet-50 for 1000 classes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        blocks, width = [], 64
        for count, outputs, stride in ((3, 256, 1), (4, 512, 2), (6, 1024, 2), (3, 2048, 2)):
            for i in range(count):
                blocks.append(Bottleneck(width, outputs, stride if i == 0 else 1))
                width = outputs
        self.blocks, self.fc = nn.Sequential(*blocks), nn.Linear(2048, 1000)

    def forward(self, x: Any) -> Any:
        x = F.max_pool2d(F.relu(self.bn(self.conv(x))), 3, 2)
        return self.fc(self.blocks(x).mean((2, 3)))


class Encoder(nn.Module):
    """A transformer layer that normalises after each part."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        b, t, d = x.shape
        q, k, v = (f(x).view(b, t, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d)
        x = self.norm1(x + self.o(y))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class BertSmall(nn.Module):
    """Token and place embeddings, 4 layers of 256, and scores over 8000 words."""

    def __init__(self) -> None:
        super().__init__()
        self.pos = nn.Parameter(torch.zeros(128, 256))
        self.embed = nn.Embedding(8000, 256)
        self.layers, self.out = nn.Sequential(*(Encoder(256, 4) for _ in range(4))), nn.Linear(256, 8000)

    def forward(self, x: Any) -> Any:
        return self.out(self.layers(self.embed(x) + self.pos)).flatten(0, 1)


def _started(kind: Any) -> Any:
    net = kind()
    with torch.no_grad():
        for name, p in net.named_parameters():
            p.copy_(torch.from_numpy(initial_weight(name, tuple(p.shape))))
    return net.train()


networks = {
    "lenet5": lambda: _started(LeNet5),
    "bert_small": lambda: _started(BertSmall),
    "resnet50": lambda: _started(ResNet50),
}


def bfloat16(wanted: bool) -> Any:
    """Return autocasting to bfloat16, where wanted."""
    return torch.autocast("cpu", torch.bfloat16) if wanted else contextlib.nullcontext()
