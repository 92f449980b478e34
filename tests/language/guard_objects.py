"""Objects whose changes are guarded."""

from __future__ import annotations

import enum
import types
from typing import Any

from mycel import Parameter, Tensor, nn


def _defaults(x: Any, k: Any = [1.0], *, table: Any = {"a": 2.0}) -> Any:  # noqa: B006
    return x * k[0] * table["a"]


class Held:
    """An object with a value."""

    def __init__(self, k: Any) -> None:
        self.k = k

    def scaled(self, x: Any) -> Any:
        return x * self.k


def _one(x: Any) -> Any:
    return x + 1


def _two(x: Any) -> Any:
    return x + 2


class Color(enum.Enum):
    RED = 1.0
    BLUE = 2.0


# Cells.


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.k, self.values, self.options, self.table = 1.0, [1.0], types.SimpleNamespace(k=2.0), {"f": 2.0}
        self.inner = nn.CellList([nn.ReLU()])
        self.w = Parameter(Tensor([1.0, 2.0, 3.0]), name="w")

    def construct(self, x: Any) -> Any:
        y = x * self.k * self.values[0] * self.options.k * self.table["f"] + self.w
        if self.training:
            y = -y
        for cell in self.inner:
            y = cell(y)
        return y
