"""A program is an ordinary function of tensors, declared with `program` and the arguments to call
it with; what the programs of this folder share.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

import mycel as ms

PROGRAMS: list[Any] = []
X = np.array([0.5, -1.5, 2.0], np.float32)
Y = np.array([1.0, 3.0, -2.0], np.float32)
P, N = np.float32(2.5), np.float32(-1.5)
SCALE = 1.5
OFFSETS = [0.1, 0.2, 0.3]
TABLE = {"a": 2.0, "b": [1.0, 3.0]}
CONSTANT = ms.Tensor([1.0, 2.0, 3.0])
Point = namedtuple("Point", "x y")


def program(*calls: Any, grad: bool = True) -> Any:
    def add(fn: Any) -> Any:
        PROGRAMS.append((fn, calls, grad))
        return fn

    return add


class Accumulator:
    step = 2

    def __init__(self, start):
        self.total = start
        self.__hidden = 3

    @property
    def doubled(self):
        return self.total * 2

    @staticmethod
    def plus(a, b):
        return a + b

    @classmethod
    def make(cls, value):
        return cls(value)

    def __call__(self, t):
        self.total = self.plus(self.total, t * self.step) * self.__hidden
        return self

    def __add__(self, other):
        return self.total + other
