"""The common base of int8 kernel writers: argument words, addresses, copies, pairs and ends."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mycel._src.engines.native.kernels.codegen import NAME
from mycel._src.engines.native.llvm.function_builder import Code

__all__ = ["ByteWriter"]

_DECLARED = (
    "i32 @llvm.smin.i32(i32, i32)",
    "i32 @llvm.smax.i32(i32, i32)",
    "i64 @llvm.smin.i64(i64, i64)",
    "i64 @llvm.smax.i64(i64, i64)",
    "i32 @llvm.fshr.i32(i32, i32, i32)",
    "i32 @llvm.arm.sxtb16(i32)",
    "i32 @llvm.arm.sxtab16(i32, i32)",
    "i32 @llvm.arm.smlad(i32, i32, i32)",
    "i32 @llvm.arm.smlabb(i32, i32, i32)",
    "i32 @llvm.arm.smlatt(i32, i32, i32)",
    "<16 x i1> @llvm.arm.mve.vctp8(i32)",
    "<4 x i1> @llvm.arm.mve.vctp32(i32)",
    "<16 x i8> @llvm.masked.load.v16i8.p0(ptr, i32, <16 x i1>, <16 x i8>)",
    "<4 x i8> @llvm.masked.load.v4i8.p0(ptr, i32, <4 x i1>, <4 x i8>)",
    "void @llvm.masked.store.v16i8.p0(<16 x i8>, ptr, i32, <16 x i1>)",
    "void @llvm.masked.store.v4i32.p0(<4 x i32>, ptr, i32, <4 x i1>)",
    "void @llvm.masked.store.v4i8.p0(<4 x i8>, ptr, i32, <4 x i1>)",
    "i32 @llvm.arm.mve.vmldava.v16i8(i32, i32, i32, i32, <16 x i8>, <16 x i8>)",
    "<4 x i32> @llvm.smin.v4i32(<4 x i32>, <4 x i32>)",
    "<4 x i32> @llvm.smax.v4i32(<4 x i32>, <4 x i32>)",
    "<4 x i32> @llvm.arm.mve.vmull.v4i32.v8i16(<8 x i16>, <8 x i16>, i32, i32)",
    "<4 x i32> @llvm.arm.mve.vmulh.v4i32(<4 x i32>, <4 x i32>, i32)",
    "<4 x i32> @llvm.arm.mve.vshl.vector.v4i32.v4i32(<4 x i32>, <4 x i32>, i32, i32, i32)",
)


class ByteWriter:
    """A writer of a kernel whose words are `numbers` and then the addresses `pointers`.

    The image is `x`, whose first element has the number `x_first`. `quads` says whether all that is
    copied is whole units of four bytes, `vectors` whether it is copied in vectors.
    """

    def __init__(self, numbers: Sequence[str], pointers: Sequence[str], quads: bool, vectors: bool) -> None:
        self.vectors = vectors
        c = self.code = Code("i32")
        self.quads = quads
        self.number = {n: c.put(f"trunc i64 {self._word('i64', k)} to i32") for k, n in enumerate(numbers)}
        self.base = {n: self._word("ptr", len(numbers) + k) for k, n in enumerate(pointers)}
        self.base["x"] = c.at("i8", self.base["x"], self.number["x_first"])

    def _word(self, kind: str, k: int) -> str:
        return self.code.load(kind, "%words", str(k), "i64")

    def ends(self) -> tuple[str, str]:
        """Return the ends of the kernel's range."""
        begin, end = (self.code.put(f"trunc i64 {name} to i32") for name in ("%begin", "%end"))
        return begin, end

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
        """Write the bytes from number `start` to `stop` of `goal`: those of `source`, or `fill`.

        Accesses are volatile, or LLVM would call memcpy, which is slower for so few bytes.
        """
        c = self.code
        if self.vectors:
            value = self.filled(c.put(f"trunc i32 {fill} to i8")) if fill else ""
            with c.loop(start, stop, 16) as k:
                mask = self.mask_of_bytes(c.op("sub i32", stop, k))
                found = value or self.some_bytes(c.at("i8", source, k), mask)
                c.do(
                    f"call void @llvm.masked.store.v16i8.p0(<16 x i8> {found}, ptr {c.at('i8', goal, k)}, i32 1, "
                    f"<16 x i1> {mask})"
                )
            return
        kind, step = ("i32", 4) if self.quads else ("i8", 1)
        value = c.put(f"trunc i32 {fill} to i8") if fill and step == 1 else fill
        with c.loop(start, stop, step) as k:
            self.copied(kind, value or self.read(kind, c.at("i8", source, k)), c.at("i8", goal, k))

    def read(self, kind: str, place: str) -> str:
        return self.code.put(f"load volatile {kind}, ptr {place}, align 1")

    def copied(self, kind: str, value: str, place: str) -> None:
        self.code.do(f"store volatile {kind} {value}, ptr {place}, align 1")

    def mask_of_bytes(self, left: str) -> str:
        """Return the mask of sixteen bytes of which there are only so many."""
        return self.code.put(f"call <16 x i1> @llvm.arm.mve.vctp8(i32 {left})")

    def some_bytes(self, place: str, mask: str) -> str:
        """Return sixteen bytes, zeros where they are not in a mask."""
        given = f"ptr {place}, i32 1, <16 x i1> {mask}, <16 x i8> zeroinitializer"
        return self.code.put(f"call <16 x i8> @llvm.masked.load.v16i8.p0({given})")

    def filled(self, byte: str) -> str:
        """Return a vector of sixteen equal bytes."""
        c, kind = self.code, "<16 x i8>"
        first = c.put(f"insertelement {kind} poison, i8 {byte}, i32 0")
        return c.put(f"shufflevector {kind} {first}, {kind} poison, <16 x i32> zeroinitializer")

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
        """Write four numbers, `found`, as bytes between the ends of the result.

        The first is that of a `channel` of the place at `goal`; with a `mask`, its numbers only.
        """
        c = self.code
        made = c.put(f"trunc <4 x i32> {self.cut_lanes(found)} to <4 x i8>")
        place = c.at("i8", goal, channel)
        if mask:
            c.do(f"call void @llvm.masked.store.v4i8.p0(<4 x i8> {made}, ptr {place}, i32 1, <4 x i1> {mask})")
        else:
            c.store("<4 x i8>", made, place, align=1)

    def cut_lanes(self, found: str) -> str:
        """Return four numbers between the ends of the result."""
        kind = "<4 x i32>"
        for name, end in (("smax", "low"), ("smin", "high")):
            limit = self.lanes(self.number[end])
            found = self.code.put(f"call {kind} @llvm.{name}.v4i32({kind} {found}, {kind} {limit})")
        return found

    def lanes(self, value: str) -> str:
        """Return a vector of four equal numbers."""
        c, kind = self.code, "<4 x i32>"
        first = c.put(f"insertelement {kind} poison, i32 {value}, i32 0")
        return c.put(f"shufflevector {kind} {first}, {kind} poison, {kind} zeroinitializer")

    def mask(self, channel: str) -> str:
        """Return the mask of four lanes from a channel on that there are."""
        left = self.code.op("sub i32", self.number["channels"], channel)
        return self.code.put(f"call <4 x i1> @llvm.arm.mve.vctp32(i32 {left})")

    def bytes(self, place: str, mask: str) -> str:
        """Return four bytes as the lanes of a vector, those of a `mask` if any."""
        c = self.code
        if mask:
            given = f"ptr {place}, i32 1, <4 x i1> {mask}, <4 x i8> zeroinitializer"
            found = c.put(f"call <4 x i8> @llvm.masked.load.v4i8.p0({given})")
        else:
            found = c.load("<4 x i8>", place, align=1)
        return c.put(f"sext <4 x i8> {found} to <4 x i32>")

    def text(self) -> str:
        self.code.do("ret void")
        body = self.code.function("void", NAME, "ptr noalias readonly %words, i64 %begin, i64 %end", "")
        head, _, rest = body.partition(") {")
        called = set(re.findall(r"@[\w.]+", rest))
        lines = [f"declare {d}" for d in _DECLARED if d.split("(")[0].split(" ")[-1] in called]
        return f"{head}) #0 {{{rest}\n" + "\n".join(lines) + "\nattributes #0 = { nounwind }\n"
