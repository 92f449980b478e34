"""A network for `third_party_explain`: rewriting, in MindSpore, wants a class in a module."""

from typing import Any

from mindspore import nn


class LeNet(nn.Cell):
    """Two convolutions with normalization and a dense layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, pad_mode="valid")
        self.bn1 = nn.BatchNorm2d(4)
        self.conv2 = nn.Conv2d(4, 8, 3, pad_mode="valid")
        self.bn2 = nn.BatchNorm2d(8)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.dense = nn.Dense(32, 5)

    def construct(self, x: Any) -> Any:
        x = self.conv1(x)
        x = self.bn1(x)
        x = self.relu(x)
        x = self.pool(x)
        x = self.conv2(x)
        x = self.bn2(x)
        x = self.relu(x)
        x = self.pool(x)
        x = self.flatten(x)
        return self.dense(x)
