"""Products that a processor has instructions for, by words of 32 bits.

A `Unit` says how elements lie in a word, and writes the sum of a word's products with a channel's
weights: one float, four bytes (x86's `vpdpbusd`, where those of the image are unsigned; AArch64's
`sdot`), or two halves of 32 bits (`pmaddwd`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Protocol

import numpy as np

from mycel.base import dtype as D
from mycel.base.dtype import DType
from mycel.engines.native.kernels.emit import Emitter
from mycel.engines.native.llvm.target import target

__all__ = ["Unit", "Writer", "unit_for"]


class Writer(Protocol):
    """What units write with."""

    e: Emitter
    lanes: int
    vector: str


@dataclass(frozen=True)
class Unit:
    """A kind of product: `elements` of the LLVM type `element` in a word, and the type of a `sum`.

    `instruction` is the name of the intrinsic, "" for floats. `turned` is the type of bytes whose
    upper bit the instruction wants turned.
    """

    said: str
    elements: int
    element: str
    sum: str
    instruction: str = ""
    turned: Optional[DType] = None

    @property
    def bytes(self) -> int:
        """Bytes of an element."""
        return 4 // self.elements

    @property
    def is_plain(self) -> bool:
        """Whether a word is an element of floats."""
        return self.elements == 1

    def moved(self, dtype: DType) -> int:
        """Return what is added to each element of a type."""
        if dtype is not self.turned:
            return 0
        return 128 if dtype is D.int8 else -128

    @property
    def weights(self) -> type[np.generic]:
        """The type of a weight in memory."""
        return np.float32 if self.is_plain else np.int8 if self.elements == 4 else np.int16

    def entered(self, w: Writer, value: str, n: int, dtype: DType) -> str:
        """Return `n` elements, a `value` of a `dtype`, as those of words; `w` writes the code."""
        if dtype is self.turned:
            ones = "<" + ", ".join(["i8 -128"] * n) + ">"
            return w.e.put(f"xor <{n} x i8> {value}, {ones}")
        if self.elements == 2:
            return w.e.put(f"{'sext' if dtype is D.int8 else 'zext'} <{n} x i8> {value} to <{n} x i16>")
        return value

    def word(self, w: Writer, place: str) -> str:
        """Return the word at an address in all lanes."""
        return w.e.splat(w.e.put(f"load {self.sum}, ptr {place}, align {self.bytes}"), self.sum)

    def factor(self, w: Writer, place: str) -> str:
        """Return the words of weights of a vector of channels."""
        return w.e.put(f"load {w.vector}, ptr {place}, align 4")

    def added(self, w: Writer, total: str, word: str, factor: str) -> str:
        """Return `total` with the products of a `word` and a `factor`, weights; `w` writes it."""
        e, vector = w.e, w.vector
        if self.is_plain:
            part = e.put(f"fmul contract {vector} {word}, {factor}")
            return e.put(f"fadd contract {vector} {total}, {part}")
        if self.elements == 2:
            kind = f"<{w.lanes * 2} x i16>"
            a, b = (e.put(f"bitcast {vector} {v} to {kind}") for v in (word, factor))
            part = e.intrinsic(vector, self.instruction, [kind, kind], [a, b])
            return e.put(f"add {vector} {total}, {part}")
        if self.turned is D.int8:
            return e.intrinsic(vector, self.instruction, [vector] * 3, [total, word, factor])
        kind = f"<{w.lanes * 4} x i8>"
        a, b = (e.put(f"bitcast {vector} {v} to {kind}") for v in (factor, word))
        return e.intrinsic(vector, self.instruction, [vector, kind, kind], [total, a, b])


_FLOATS = Unit("floats", 1, "float", "float")


def unit_for(dtype: DType, wide: int = 0) -> Optional[Unit]:
    """Return the products of a type of elements that the processor in force has; None if none.

    Vectors have `wide` bytes, or where that is 0 those of the processor.
    """
    machine = target()
    has, wide = machine.feature_set, wide or machine.vector_bytes
    x86 = machine.is_family("x86_64")
    if machine.scalar or not (x86 or machine.is_family("aarch64") or machine.is_family("arm64")):
        return None
    if dtype is D.float32:
        return _FLOATS
    if dtype not in (D.int8, D.uint8):
        return None
    if not x86:
        known = "dotprod" in has
        return Unit("four bytes", 4, "i8", "i32", "llvm.aarch64.neon.sdot.v4i32.v16i8", D.uint8) if known else None
    bits = wide * 8
    if "avx512vnni" in has and (wide == 64 or "avx512vl" in has) and machine.vector_bytes == 64:
        return Unit("four bytes", 4, "i8", "i32", f"llvm.x86.avx512.vpdpbusd.{bits}", D.int8)
    if "avxvnni" in has and wide <= 32 <= machine.vector_bytes:
        return Unit("four bytes", 4, "i8", "i32", f"llvm.x86.avx512.vpdpbusd.{bits}", D.int8)
    names = {16: "llvm.x86.sse2.pmadd.wd", 32: "llvm.x86.avx2.pmadd.wd"}
    if wide == 64 and "avx512bw" in has:
        return Unit("two halves", 2, "i16", "i32", "llvm.x86.avx512.pmaddw.d.512")
    if wide == 16 or (wide == 32 and "avx2" in has):
        return Unit("two halves", 2, "i16", "i32", names[wide])
    return None
