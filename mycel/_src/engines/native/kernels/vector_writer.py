"""A helper for kernels written by hand in LLVM IR: vectors of one element type, with masks.

A kernel is given words: numbers first, then addresses. Values are vectors of as many elements as a
register has; a mask names the lanes that are moved.
"""

from __future__ import annotations

from collections.abc import Sequence

from mycel._src.engines.native.kernels.codegen import NAME
from mycel._src.engines.native.kernels.instruction_emitter import literal
from mycel._src.engines.native.llvm.function_builder import Code
from mycel._src.engines.native.llvm.target import target
from mycel._src.engines.native.math import function_definitions
from mycel._src.foundation.dtype import DType

__all__ = ["Vectors", "lanes_of"]


def lanes_of(dtype: DType) -> int:
    """Return the number of elements of a vector."""
    return target().vector_bytes // dtype.itemsize


class Vectors:
    """A writer of a kernel's text whose vectors are of the floating type `dtype`.

    `numbers` and `addresses` are the names of the words, in their order.
    """

    def __init__(self, dtype: DType, numbers: Sequence[str], addresses: Sequence[str]) -> None:
        self.code, self.dtype = Code(), dtype
        self.lanes, self.bytes = lanes_of(dtype), dtype.itemsize
        self.element, self.short = ("float", "f32") if dtype.itemsize == 4 else ("double", "f64")
        self.vector, self.flags = f"<{self.lanes} x {self.element}>", f"<{self.lanes} x i1>"
        self.functions: list[tuple[str, str, int]] = []
        self.declares: set[str] = set()
        c = self.code
        self.number = {n: c.load("i64", "%words", str(k)) for k, n in enumerate(numbers)}
        self.base = {n: c.load("ptr", "%words", str(len(numbers) + k), "i64") for k, n in enumerate(addresses)}

    # Numbers.

    def sum(self, *parts: str | int) -> str:
        """Return a sum of integers."""
        total = "0"
        for p in map(str, parts):
            total = p if total == "0" else total if p == "0" else self.code.op("add i64", total, p)
        return total

    def times(self, a: str, b: str | int) -> str:
        return self.code.op("mul i64", a, b)

    def least(self, a: str, b: str, kind: str = "i64") -> str:
        """Return the smaller one of two integers of a type."""
        return self.code.put(f"select i1 {self.code.put(f'icmp slt {kind} {a}, {b}')}, {kind} {a}, {kind} {b}")

    def most(self, a: str, b: str) -> str:
        return self.code.put(f"select i1 {self.code.put(f'icmp sgt i64 {a}, {b}')}, i64 {a}, i64 {b}")

    # Values.

    def kind(self, element: str) -> str:
        """Return the type of vectors of elements of a type."""
        return f"<{self.lanes} x {element}>"

    def splat(self, value: str, element: str = "") -> str:
        element = element or self.element
        vector = self.kind(element)
        first = self.code.put(f"insertelement {vector} undef, {element} {value}, i32 0")
        return self.code.put(f"shufflevector {vector} {first}, {vector} undef, <{self.lanes} x i32> zeroinitializer")

    def scalar(self, value: float) -> str:
        """Return a floating number as it is written in the text."""
        return literal(value, self.dtype)

    def constant(self, value: float) -> str:
        return "<" + ", ".join([f"{self.element} {self.scalar(value)}"] * self.lanes) + ">"

    def integers(self, values: Sequence[int], element: str = "i64") -> str:
        return "<" + ", ".join(f"{element} {v}" for v in values) + ">"

    def op(self, name: str, *values: str) -> str:
        """Return an operation of floats (fadd, fsub, fmul) on the values, from left to right."""
        total = values[0]
        for v in values[1:]:
            total = self.code.put(f"{name} {self.vector} {total}, {v}")
        return total

    def call(self, name: str, x: str) -> str:
        """Return a function of the library of a vector."""
        self.functions.append((name, self.short, self.lanes))
        symbol = function_definitions.symbol(name, self.short, self.lanes)
        return self.code.put(f"call {self.vector} @{symbol}({self.vector} {x})")

    def unary(self, name: str, x: str) -> str:
        """Return an intrinsic of a vector."""
        suffix = f"v{self.lanes}{self.short}"
        self.declares.add(f"declare {self.vector} @llvm.{name}.{suffix}({self.vector})")
        return self.code.put(f"call {self.vector} @llvm.{name}.{suffix}({self.vector} {x})")

    def compare(self, how: str, a: str, b: str) -> str:
        return self.code.put(f"fcmp {how} {self.vector} {a}, {b}")

    def choose(self, flags: str, a: str, b: str, kind: str = "") -> str:
        """Return the lanes of `a` where the `flags` hold, else those of `b`.

        `kind` is their type, where it is not that of the floats.
        """
        kind = kind or self.vector
        return self.code.put(f"select {self.flags} {flags}, {kind} {a}, {kind} {b}")

    def larger(self, a: str, b: str) -> str:
        """Return the larger values; a NaN in `a` stays."""
        return self.choose(self.compare("olt", a, b), b, a)

    def total(self, x: str) -> str:
        """Return the sum of the lanes."""
        suffix = f"v{self.lanes}{self.short}"
        name = f"llvm.vector.reduce.fadd.{suffix}"
        self.declares.add(f"declare {self.element} @{name}({self.element}, {self.vector})")
        zero = self.scalar(0.0)
        return self.code.put(f"call reassoc {self.element} @{name}({self.element} {zero}, {self.vector} {x})")

    # Memory.

    def at(self, base: str, *parts: str | int) -> str:
        """Return the address of the element at a sum of numbers from `base`."""
        return self.code.at(self.element, base, self.sum(*parts))

    def load(self, place: str, mask: str = "", other: str = "zeroinitializer") -> str:
        """Return a vector; lanes without a flag in the mask, where there is one, are `other`'s."""
        if not mask:
            return self.code.load(self.vector, place, align=self.bytes)
        name = f"llvm.masked.load.v{self.lanes}{self.short}.p0"
        self.declares.add(f"declare {self.vector} @{name}(ptr, i32, {self.flags}, {self.vector})")
        return self.code.put(
            f"call {self.vector} @{name}(ptr {place}, i32 {self.bytes}, {self.flags} {mask}, {self.vector} {other})"
        )

    def store(self, value: str, place: str, mask: str = "") -> None:
        if not mask:
            self.code.store(self.vector, value, place, align=self.bytes)
            return
        name = f"llvm.masked.store.v{self.lanes}{self.short}.p0"
        self.declares.add(f"declare void @{name}({self.vector}, ptr, i32, {self.flags})")
        self.code.do(f"call void @{name}({self.vector} {value}, ptr {place}, i32 {self.bytes}, {self.flags} {mask})")

    def below(self, start: str, end: str) -> str:
        """Return the mask of the lanes whose numbers, from `start` on, are below `end`."""
        c, kind = self.code, self.kind("i64")
        place = c.put(f"add {kind} {self.splat(start, 'i64')}, {self.integers(range(self.lanes))}")
        return c.put(f"icmp slt {kind} {place}, {self.splat(end, 'i64')}")

    def fill(self, place: str, count: str, value: float) -> None:
        """Write a number to `count` elements from `place` on."""
        c = self.code
        whole = c.op("and i64", count, -self.lanes)
        with c.loop("0", whole, self.lanes) as k:
            self.store(self.constant(value), self.at(place, k))
        with c.loop(whole, count) as k:
            c.store(self.element, self.scalar(value), place, k)

    def listen(self, number: str, ticks: str) -> None:
        """Write a test, at numbers whose bits in `ticks` are set, whether the run is to end."""
        c = self.code
        with c.when(c.put(f"icmp eq i64 {c.op('and i64', number, ticks)}, {ticks}")):
            c.leave_if(c.put(f"call i1 {self.base['listen']}(ptr {self.base['status']})"), "void")

    def text(self) -> str:
        """Return the text of the kernel, which ends here."""
        c = self.code
        c.do("ret void")
        body = c.function("void", NAME, "ptr noalias readonly %words, i64 %begin, i64 %end", "")
        head, _, rest = body.partition(") {")
        bits = target().vector_bytes * 8
        widths = f'attributes #0 = {{ nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}" }}\n'
        declares = "".join(f"{line}\n" for line in sorted(self.declares))
        return f"{head}) #0 {{{rest}\n{function_definitions.definitions(self.functions)}{declares}{widths}"
