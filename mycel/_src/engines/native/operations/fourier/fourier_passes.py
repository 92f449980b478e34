"""The common part of FFT kernels: vectors in scratch memory, and passes over it.

A vector of complex numbers is a vector of real and one of imaginary parts, one behind the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.engines.native.kernels.codegen import NAME
from mycel._src.engines.native.llvm.function_builder import Code
from mycel._src.engines.native.llvm.target import target
from mycel._src.engines.native.operations.fourier.fourier_codelets import Lanes, Number
from mycel._src.foundation.dtype import DType

__all__ = ["Array", "Load", "Store", "Vectors", "vector_lanes", "write_turns"]

Array = np.ndarray[Any, Any]
Load = Callable[[str], Number]
Store = Callable[[str, Number], None]


def vector_lanes(dtype: DType) -> int:
    """Return the number of elements of a vector."""
    return target().vector_bytes // dtype.itemsize


def write_turns(table: Array, start: int, turns: Array, total: int) -> None:
    """Write the numbers exp(-2 pi i turn / total) of `turns` to a `table`, from `start` on."""
    angles = turns.reshape(-1) % total * (2 * np.pi / total)
    table[start : start + 2 * angles.size] = np.stack([np.cos(angles), -np.sin(angles)], 1).reshape(-1)


class Vectors:
    """A writer of code over vectors of complex numbers in scratch memory.

    `table` is the address of a table of numbers; subclasses set it.
    """

    def __init__(self, dtype: DType) -> None:
        self.code = Code()
        self.bytes = dtype.itemsize
        self.element = "float" if self.bytes == 4 else "double"
        self.lanes = vector_lanes(dtype)
        self.v = Lanes(self.code, self.element, self.lanes)
        self.vector, self.align = self.v.vector, self.lanes * self.bytes
        self.table = ""

    # Scratch memory and tables.

    def get(self, block: str, index: str) -> Number:
        """Return a complex number of scratch memory."""
        c, place = self.code, self.slot(block, index)
        return c.load(self.vector, place, align=self.align), c.load(
            self.vector, place, str(self.lanes), self.element, self.align
        )

    def put(self, block: str, index: str, value: Number) -> None:
        """Write a complex number to scratch memory."""
        c, place = self.code, self.slot(block, index)
        c.store(self.vector, value[0], place, align=self.align)
        c.store(self.vector, value[1], place, str(self.lanes), self.element, self.align)

    def slot(self, block: str, index: str) -> str:
        return self.code.at(self.element, block, self.code.op("mul i64", index, 2 * self.lanes))

    def turn(self, start: str) -> Number:
        """Return a number of the table, in all lanes."""
        c = self.code
        re, im = (c.load(self.element, self.table, c.op("add i64", start, k) if k else start) for k in (0, 1))
        return self.v.splat(re), self.v.splat(im)

    def sum(self, *terms: str) -> str:
        total = terms[0]
        for term in terms[1:]:
            total = term if total == "0" else total if term == "0" else self.code.op("add i64", total, term)
        return total

    def product(self, a: str, b: str | int) -> str:
        return a if b in (1, "1") else self.code.op("mul i64", a, b)

    def least(self, a: str, b: str) -> str:
        return self.code.put(f"select i1 {self.code.put(f'icmp slt i64 {a}, {b}')}, i64 {a}, i64 {b}")

    def shuffled(self, a: str, b: str, places: list[int]) -> str:
        each = ", ".join(f"i32 {k}" for k in places)
        return self.code.put(f"shufflevector {self.vector} {a}, {self.vector} {b}, <{len(places)} x i32> <{each}>")

    def turned_round(self, values: list[str]) -> list[str]:
        """Return a square tile with rows and columns exchanged."""
        n, half = self.lanes, 1
        while half < n:
            low = [k + n - half if k & half else k for k in range(n)]
            high = [k + n if k & half else k + half for k in range(n)]
            after = list(values)
            for k in range(n):
                if not k & half:
                    after[k] = self.shuffled(values[k], values[k + half], low)
                    after[k + half] = self.shuffled(values[k], values[k + half], high)
            values, half = after, 2 * half
        return values

    def butterfly(self, x: list[Number], radix: int, start: str) -> list[Number]:
        """Return the transform of numbers, of which all but the first are turned before.

        `start` is the place of these turns in the table; "" where there are none.
        """
        if start:
            x = [x[0], *(self.v.times(x[i], self.turn(self.sum(start, str(2 * i - 2)))) for i in range(1, radix))]
        return self.v.transform(x)

    def between(self, radix: int, done: int, rest: int, table: int, load: Load, store: Store) -> None:
        """Write a pass with the factor `radix`.

        `done` is the product of the factors before, `rest` that of those after, `table` the place
        of its numbers; `load` and `store` read and write element k.
        """
        c = self.code
        with c.loop("0", str(done)) as k:
            turns = ""
            if done > 1:
                turns = self.sum(str(table), c.op("mul i64", k, 2 * (radix - 1)))
            with c.loop("0", str(rest)) as j:
                begin = self.sum(c.op("mul i64", k, radix * rest), j)
                x = [load(self.sum(begin, str(i * rest))) for i in range(radix)]
                begin = self.sum(c.op("mul i64", k, rest), j)
                for t, y in enumerate(self.butterfly(x, radix, turns)):
                    store(self.sum(begin, str(t * done * rest)), y)

    def module(self, declares: str) -> str:
        """Return the text of the kernel whose body is written, with declarations."""
        self.code.do("ret void")
        body = self.code.function("void", NAME, "ptr noalias readonly %words, i64 %begin, i64 %end", "")
        head, _, rest = body.partition(") {")
        bits = target().vector_bytes * 8
        widths = f'attributes #0 = {{ nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}" }}\n'
        return f"{head}) #0 {{{rest}\n{declares}{widths}"
