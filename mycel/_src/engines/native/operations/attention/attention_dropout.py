"""Dropout inside attention kernels: masks drawn on the fly, as `prims/random.py` draws them.

Lanes are queries. Element (row, key) of the scores is encrypted under the key of the generator's
state, so the way forward and the way back draw the same without a mask in memory. Numbers of 32
bits are the lower halves of lanes of 64, as these are multiplied.
"""

from __future__ import annotations

import math

import numpy as np

from mycel._src.compiler.prims.random import MIXERS, MULTIPLIER, ROUNDS, WEYL
from mycel._src.engines.native.llvm.function_builder import Code
from mycel._src.engines.native.operations.attention.attention_tiles import Tiles

__all__ = ["Draw"]

_LOW = (1 << 32) - 1


class Draw:
    """The generator of a kernel that `c` writes with the vectors of `t`.

    Its state is at the address `state`, and it keeps with the probability `keep`.
    """

    def __init__(self, c: Code, t: Tiles, state: str, keep: float) -> None:
        self.c, self.t, self.kind = c, t, f"<{t.lanes} x i64>"
        # A number of 24 bits over 2**24 is below `keep`.
        self.limit = math.ceil(float(np.float32(keep)) * 2**24)
        key, counter = c.load("i64", state), c.load("i64", state, "1")
        for shift, factor in MIXERS:
            key = c.op("mul i64", c.op("xor i64", key, c.op("lshr i64", key, shift)), factor)
        key = c.op("xor i64", key, c.op("lshr i64", key, 31))
        self.offset = c.op("add i64", counter, c.op("and i64", key, _LOW << 32))
        low = c.op("and i64", key, _LOW)
        self.keys = [c.variable("i64", c.op("and i64", c.op("add i64", low, k * WEYL), _LOW)) for k in range(ROUNDS)]
        self.rows = [c.slot(self.kind) for _ in range(4)]
        self.width = 1

    def begin(self, row: str, keys: str, width: int) -> None:
        """Begin with `width` vectors of rows from `row` on, each of so many `keys`."""
        c, t = self.c, self.t
        self.width = width
        for g in range(width):
            steps = ", ".join(f"i64 {g * t.lanes + k}" for k in range(t.lanes))
            rows = c.put(f"add {self.kind} {t.splat(c, row, 'i64')}, <{steps}>")
            block = c.put(f"mul {self.kind} {rows}, {t.splat(c, keys, 'i64')}")
            block = c.put(f"add {self.kind} {block}, {t.splat(c, self.offset, 'i64')}")
            c.store(self.kind, block, self.rows[g])

    def kept(self, key: str) -> list[str]:
        """Return for each vector of rows whether the weight of a key is kept."""
        c, t = self.c, self.t
        made = []
        for g in range(self.width):
            block = c.load(self.kind, self.rows[g])
            block = c.put(f"add {self.kind} {block}, {t.splat(c, key, 'i64')}")
            left, right = self._low(block), self._high(block)
            for number in self.keys:
                whole = c.put(f"mul {self.kind} {left}, {self._all(MULTIPLIER)}")
                own = t.splat(c, c.load("i64", number), "i64")
                left = c.put(f"xor {self.kind} {self._high(whole)}, {own}")
                left = self._low(c.put(f"xor {self.kind} {left}, {right}"))
                right = whole
            bits = c.put(f"lshr {self.kind} {left}, {self._all(8)}")
            made.append(c.put(f"icmp ult {self.kind} {bits}, {self._all(self.limit)}"))
        return made

    def _all(self, number: int) -> str:
        return f"<{', '.join([f'i64 {number}'] * self.t.lanes)}>"

    def _low(self, x: str) -> str:
        return self.c.put(f"and {self.kind} {x}, {self._all(_LOW)}")

    def _high(self, x: str) -> str:
        return self.c.put(f"lshr {self.kind} {x}, {self._all(32)}")
