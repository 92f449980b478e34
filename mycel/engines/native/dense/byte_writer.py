"""What writers of kernels of bytes have in common: words, addresses, copies, pairs and ends."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mycel.engines.native.kernels.codegen import NAME
from mycel.engines.native.llvm.builder import Code

__all__ = ["ByteWriter"]

_DECLARED = (
    "i32 @llvm.smin.i32(i32, i32)",
    "i32 @llvm.smax.i32(i32, i32)",
    "i64 @llvm.smin.i64(i64, i64)",
    "i64 @llvm.smax.i64(i64, i64)",
    "i32 @llvm.fshr.i32(i32, i32, i32)",
    "i32 @llvm.arm.sxtb16(i32)",
    "i32 @llvm.arm.smlad(i32, i32, i32)",
    "i32 @llvm.arm.smlabb(i32, i32, i32)",
    "i32 @llvm.arm.smlatt(i32, i32, i32)",
    "<16 x i1> @llvm.arm.mve.vctp8(i32)",
    "<4 x i1> @llvm.arm.mve.vctp32(i32)",
    "<16 x i8> @llvm.masked.load.v16i8.p0(ptr, i32, <16 x i1>, <16 x i8>)",
    "<4 x i8> @llvm.masked.load.v4i8.p0(ptr, i32, <4 x i1>, <4 x i8>)",
    "void @llvm.masked.store.v4i8.p0(<4 x i8>, ptr, i32, <4 x i1>)",
    "i32 @llvm.arm.mve.vmldava.v16i8(i32, i32, i32, i32, <16 x i8>, <16 x i8>)",
    "<4 x i32> @llvm.smin.v4i32(<4 x i32>, <4 x i32>)",
    "<4 x i32> @llvm.smax.v4i32(<4 x i32>, <4 x i32>)",
    "<4 x i32> @llvm.arm.mve.vmulh.v4i32(<4 x i32>, <4 x i32>, i32)",
    "<4 x i32> @llvm.arm.mve.vshl.vector.v4i32.v4i32(<4 x i32>, <4 x i32>, i32, i32, i32)",
)


class ByteWriter:
    """A writer of a kernel whose words are `numbers` and then the addresses `pointers`.

    The image is `x`, whose first element has the number `x_first`. `quads` says whether all that is
    copied is whole units of four bytes.
    """

    def __init__(self, numbers: Sequence[str], pointers: Sequence[str], quads: bool) -> None:
        c = self.code = Code("i32")
        self.quads = quads
        self.number = {n: c.put(f"trunc i64 {self._word('i64', k)} to i32") for k, n in enumerate(numbers)}
        self.base = {n: self._word("ptr", len(numbers) + k) for k, n in enumerate(pointers)}
        self.base["x"] = c.at("i8", self.base["x"], self.number["x_first"])

    def _word(self, kind: str, k: int) -> str:
        return self.code.load(kind, "%words", str(k), "i64")

    def least(self, a: str, b: str) -> str:
        return self.code.put(f"call i32 @llvm.smin.i32(i32 {a}, i32 {b})")

    def most(self, a: str, b: str) -> str:
        return self.code.put(f"call i32 @llvm.smax.i32(i32 {a}, i32 {b})")

    def moved(self, base: str, *parts: tuple[str, str]) -> str:
        """Return an address moved by the products of pairs of numbers, in bytes."""
        c, total = self.code, "0"
        for count, step in parts:
            total = c.op("add i32", total, c.op("mul i32", count, step))
        return c.at("i8", base, total)

    def filling(self) -> str:
        """Return a word whose four bytes are the zero point."""
        c = self.code
        return c.op("mul i32", c.op("and i32", self.number["zero"], "255"), str(0x01010101))

    def span(self, start: str, stop: str, goal: str, source: str, fill: str = "") -> None:
        """Write the bytes from number `start` to `stop` of `goal`: those of `source`, or `fill`."""
        c = self.code
        kind, step = ("i32", 4) if self.quads else ("i8", 1)
        value = c.put(f"trunc i32 {fill} to i8") if fill and step == 1 else fill
        with c.loop(start, stop, step) as k:
            c.store(kind, value or c.load(kind, source, k, "i8", 1), goal, k, "i8", 1)

    def pairs(self, word: str) -> list[str]:
        """Return the bytes of even number and those of odd number, each as a pair of 16 bits."""
        c = self.code
        turned = c.put(f"call i32 @llvm.fshr.i32(i32 {word}, i32 {word}, i32 8)")
        return [c.put(f"call i32 @llvm.arm.sxtb16(i32 {w})") for w in (word, turned)]

    def cut(self, found: str) -> str:
        """Return a number as a byte between the ends of the result."""
        inside = self.least(self.most(found, self.number["low"]), self.number["high"])
        return self.code.put(f"trunc i32 {inside} to i8")

    def store_lanes(self, found: str, goal: str, channel: str, mask: str) -> None:
        """Write four numbers as bytes between the ends of the result, those of a `mask` if any."""
        c, kind = self.code, "<4 x i32>"
        for name, end in (("smax", "low"), ("smin", "high")):
            found = c.put(f"call {kind} @llvm.{name}.v4i32({kind} {found}, {kind} {self.lanes(self.number[end])})")
        made, place = c.put(f"trunc {kind} {found} to <4 x i8>"), c.at("i8", goal, channel)
        if mask:
            c.do(f"call void @llvm.masked.store.v4i8.p0(<4 x i8> {made}, ptr {place}, i32 1, <4 x i1> {mask})")
        else:
            c.store("<4 x i8>", made, place, align=1)

    def lanes(self, value: str) -> str:
        """Return a vector of four equal numbers."""
        c, kind = self.code, "<4 x i32>"
        first = c.put(f"insertelement {kind} poison, i32 {value}, i32 0")
        return c.put(f"shufflevector {kind} {first}, {kind} poison, {kind} zeroinitializer")

    def text(self) -> str:
        self.code.do("ret void")
        body = self.code.function("void", NAME, "ptr noalias readonly %words, i64 %begin, i64 %end", "")
        head, _, rest = body.partition(") {")
        called = set(re.findall(r"@[\w.]+", rest))
        lines = [f"declare {d}" for d in _DECLARED if d.split("(")[0].split(" ")[-1] in called]
        return f"{head}) #0 {{{rest}\n" + "\n".join(lines) + "\nattributes #0 = { nounwind }\n"
