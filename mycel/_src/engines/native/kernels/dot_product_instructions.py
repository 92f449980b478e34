"""Dot-product instructions: the element layout of 32-bit words, and the instruction for each type.

A `Unit` says how elements lie in a word, and writes the sum of a word's products with a channel's
weights: one float, four bytes (x86's `vpdpbusd`, where those of the image are unsigned; AArch64's
`sdot`), or two halves of 32 bits (`pmaddwd`, WebAssembly's `i32x4.dot_i16x8_s`).

NEON without `sdot` multiplies eight bytes to products of 16 bits, adds eight more of them, and adds
neighbours to sums of 32 bits: three instructions for the products of a word with four channels. The
first two elements of a word meet the lower half of a vector of weights, which has two of each
channel, the others the upper half (`halved`). Two products fit in 16 bits unless both weights are
-128, so weights with that number take one more instruction (`careful`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mycel._src.engines.native.kernels.instruction_emitter import Emitter
from mycel._src.engines.native.llvm.target import target
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType

__all__ = ["FAMILIES", "Unit", "Writer", "long_product", "unit_for"]

Array = np.ndarray[Any, Any]
# The word of a position, or of a vector of weights: one vector, or two halves.
Words = tuple[str, ...]
# Processors whose vectors kernels with channels last are written for, by their triples.
FAMILIES = ("x86_64", "aarch64", "arm64", "armv7", "wasm32")


class Writer(Protocol):
    """What units write with."""

    e: Emitter
    lanes: int
    vector: str


@dataclass(frozen=True)
class Unit:
    """A kind of product: `elements` of the LLVM type `element` in a word, and the type of a `sum`.

    `instruction` is the name of the intrinsic, "" for floats. `turned` is the type of bytes whose
    upper bit the instruction wants turned. `halved` says that a vector of weights has the first two
    elements of all its channels before the others, and `careful` that a weight may be -128.
    """

    said: str
    elements: int
    element: str
    sum: str
    instruction: str = ""
    turned: DType | None = None
    halved: bool = False
    careful: bool = False

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

    def placed(self, words: Array) -> Array:
        """Return weights (..., channel, element) as words of vectors of four channels want them."""
        if not self.halved:
            return words
        fours = words.reshape(*words.shape[:-2], -1, 4, 2, 2)
        return np.asarray(np.swapaxes(fours, -3, -2).reshape(words.shape))

    def entered(self, w: Writer, value: str, n: int, dtype: DType) -> str:
        """Return `n` elements, a `value` of a `dtype`, as those of words; `w` writes the code."""
        if dtype is self.turned:
            ones = "<" + ", ".join(["i8 -128"] * n) + ">"
            return w.e.put(f"xor <{n} x i8> {value}, {ones}")
        if self.element == "i16":
            return w.e.put(f"{'sext' if dtype is D.int8 else 'zext'} <{n} x i8> {value} to <{n} x i16>")
        return value

    def word(self, w: Writer, place: str) -> Words:
        """Return the word at an address in all lanes."""
        e = w.e
        value = e.put(f"load {self.sum}, ptr {place}, align {self.bytes}")
        if not self.halved:
            return (e.splat(value, self.sum),)
        lane = e.put(f"insertelement {w.vector} poison, i32 {value}, i32 0")
        wide = e.put(f"bitcast {w.vector} {lane} to <16 x i8>")
        orders = [", ".join(f"i32 {2 * k + n % 2}" for n in range(8)) for k in (0, 1)]
        return tuple([e.put(f"shufflevector <16 x i8> {wide}, <16 x i8> poison, <8 x i32> <{o}>") for o in orders])

    def factor(self, w: Writer, place: str) -> Words:
        """Return the words of weights of a vector of channels."""
        e = w.e
        if not self.halved:
            return (e.put(f"load {w.vector}, ptr {place}, align 4"),)
        places = (place, e.put(f"getelementptr i8, ptr {place}, i32 8"))
        return tuple([e.put(f"load <8 x i8>, ptr {p}, align 4") for p in places])

    def added(self, w: Writer, total: str, words: Words, factors: Words) -> str:
        """Return `total` with the products of `words` and weights, `factors`; `w` writes it."""
        e, vector = w.e, w.vector
        if self.halved:
            return self._added_by_halves(w, total, words, factors)
        (word,), (factor,) = words, factors
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

    def _added_by_halves(self, w: Writer, total: str, words: Words, factors: Words) -> str:
        """Return `total` with the products of a word and weights; `w` writes it."""
        e, bytes_of, products = w.e, "<8 x i8>", "<8 x i16>"
        names = _NEON_32 if target().is_family("armv7") else _NEON
        parts = [e.intrinsic(products, names[0], [bytes_of] * 2, [a, b]) for a, b in zip(words, factors)]
        if not self.careful:
            parts = [e.put(f"add {products} {parts[0]}, {parts[1]}")]
        for part in parts:
            if names is _NEON:
                pair = e.intrinsic(w.vector, names[1], [products], [part])
                total = e.put(f"add {w.vector} {total}, {pair}")
            else:
                total = e.intrinsic(w.vector, names[1], [w.vector, products], [total, part])
        return total


# Long products of bytes, and sums of neighbours: AArch64's, and those of 32-bit processors.
_NEON = ("llvm.aarch64.neon.smull.v8i16", "llvm.aarch64.neon.saddlp.v4i32.v8i16")
_NEON_32 = ("llvm.arm.neon.vmulls.v8i16", "llvm.arm.neon.vpadals.v4i32.v8i16")


def long_product() -> str:
    """Return NEON's instruction for the products of eight bytes with 16 bits."""
    return (_NEON_32 if target().is_family("armv7") else _NEON)[0]


_FLOATS = Unit("floats", 1, "float", "float")


def unit_for(dtype: DType, wide: int = 0) -> Unit | None:
    """Return the products of a type of elements that the processor in force has; None if none.

    Vectors have `wide` bytes, or where that is 0 those of the processor.
    """
    machine = target()
    has, wide = machine.feature_set, wide or machine.vector_bytes
    family = next((f for f in FAMILIES if machine.is_family(f)), "")
    if machine.scalar or not family:
        return None
    if dtype is D.float32:
        return _FLOATS
    if dtype not in (D.int8, D.uint8):
        return None
    if family == "wasm32":
        return Unit("two halves", 2, "i16", "i32", "llvm.wasm.dot")
    if family != "x86_64":
        if "dotprod" in has:
            return Unit("four bytes", 4, "i8", "i32", "llvm.aarch64.neon.sdot.v4i32.v16i8", D.uint8)
        return Unit("pairs of bytes", 4, "i8", "i32", "neon", D.uint8, halved=True, careful=True)
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
