"""What tests of compiled functions share."""

from __future__ import annotations

from typing import Any

import pytest

import mycel as ms
from mycel import nn
from mycel._src.foundation.errors import CompileError


def tensor(*values: float) -> Any:
    return ms.Tensor(list(values)) if len(values) != 1 else ms.Tensor(values[0])


def count(jitted: Any) -> int:
    return sum(map(len, jitted.versions.values()))


class Box:
    def __init__(self, k: Any) -> None:
        self.k = k

    def scaled(self, x: Any) -> Any:
        return x * self.k


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
        self.scale = 2.0
        self.sizes = [1, 2]
        self.seen: Any = 0

    def construct(cell, x: Any) -> Any:
        y = x * cell.w * cell.scale + len(cell.sizes)
        return y * 2 if cell.training else y


def refused(fn: Any, *args: Any) -> str:
    with pytest.raises(CompileError) as found:
        ms.jit(fn, fullgraph=True)(*args)
    return str(found.value)
