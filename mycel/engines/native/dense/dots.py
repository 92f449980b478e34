"""Sums of products of bytes by instructions that take four at once, as kernels in LLVM IR.

x86's `vpdpbusd` adds to each 32-bit lane four products of an unsigned byte with a signed one. A
tile is `height` positions by `vectors` vectors of channels of the result. Each step reads four
bytes of the image for each position, which all lanes share, and four weights of each channel. The
image has its channels last, so the bytes that one row of a convolution's kernel meets lie one
behind the other: a step takes the next four of them, whatever columns and channels they are. A
product of matrices is a convolution with one row.

Weights lie in panels: (panel, kernel row, step, channel, 4), with zeros at the ends. Sums begin
with a number of each channel. Positions beyond the last are computed again from the last one.
"""

from __future__ import annotations

from dataclasses import dataclass

from mycel.base.remembered import SOME
from mycel.engines.native.kernels.codegen import NAME
from mycel.engines.native.llvm.builder import Code
from mycel.engines.native.llvm.target import RememberedByTarget, target

__all__ = ["NUMBERS", "DotTile", "dots_text", "has_dots", "tile_of"]

# The words before the addresses of the image, the weights, the first sums and the result. The
# first four count bytes of the image; those of the result count its elements.
NUMBERS = (
    "x_image",
    "x_line",
    "x_column",
    "x_row",
    "y_image",
    "y_line",
    "y_column",
    "lines",
    "columns",
    "total",
    "rows",
    "steps",
    "channels",
)
_HEIGHTS = {1: 12, 2: 10, 3: 8, 4: 6}


@dataclass(frozen=True)
class DotTile:
    """A tile: positions, vectors of channels, and lanes of a vector."""

    height: int
    vectors: int
    lanes: int

    @property
    def width(self) -> int:
        """Channels of the tile."""
        return self.vectors * self.lanes


def has_dots() -> bool:
    """Return whether the processor has the instructions."""
    return "avx512vnni" in target().feature_set and target().vector_bytes == 64


def tile_of(channels: int) -> DotTile:
    """Return the tile for a number of channels: the one that computes fewest in vain."""
    lanes = 16
    vectors = -(-channels // lanes)
    best = min((4, 3, 2, 1), key=lambda n: (-(-vectors // n) * n, -n))
    return DotTile(_HEIGHTS[best], best, lanes)


@RememberedByTarget("kernels of products of bytes", SOME).calls
def dots_text(tile: DotTile) -> str:
    """Return the text of the kernel for a tile; its range is over the lines of all images."""
    writer = _Dots(tile)
    writer.lines()
    return writer.text()


class _Dots:
    """A writer of the kernel's text."""

    def __init__(self, tile: DotTile) -> None:
        self.code, self.tile = Code(), tile
        self.vector = f"<{tile.lanes} x i32>"
        c = self.code
        self.number = {n: c.load("i64", "%words", str(k)) for k, n in enumerate(NUMBERS)}
        self.base = [c.load("ptr", "%words", str(len(NUMBERS) + k), "i64") for k in range(4)]

    def moved(self, kind: str, base: str, *parts: tuple[str, str]) -> str:
        """Return an address moved by the products of pairs of numbers, in elements of a type."""
        c, total = self.code, "0"
        for count, step in parts:
            total = c.op("add i64", total, c.op("mul i64", count, step))
        return c.at(kind, base, total)

    def least(self, a: str, b: str) -> str:
        return self.code.put(f"call i64 @llvm.smin.i64(i64 {a}, i64 {b})")

    def lines(self) -> None:
        c, n, tile = self.code, self.number, self.tile
        x, w, first, y = self.base
        row_bytes = c.op("mul i64", n["steps"], str(tile.width * 4))
        panel_bytes = c.op("mul i64", row_bytes, n["rows"])
        with c.loop("%begin", "%end") as unit:
            image, line = c.op("udiv i64", unit, n["lines"]), c.op("urem i64", unit, n["lines"])
            source = self.moved("i8", x, (image, n["x_image"]), (line, n["x_line"]))
            goal = self.moved("i32", y, (image, n["y_image"]), (line, n["y_line"]))
            left = c.op("sub i64", n["total"], c.op("mul i64", line, n["columns"]))
            count = self.least(n["columns"], left)
            with c.loop("0", n["channels"], tile.width) as channel:
                panel = c.op("udiv i64", channel, str(tile.width))
                weights = self.moved("i8", w, (panel, panel_bytes))
                begin = c.at("i32", first, channel)
                with c.loop("0", count, tile.height) as column:
                    self.tile_at(source, goal, weights, begin, row_bytes, channel, column, count)

    def tile_at(
        self, source: str, goal: str, weights: str, begin: str, row_bytes: str, channel: str, column: str, count: str
    ) -> None:
        """Write one tile.

        `source` and `goal` are the lines of the image and of the result, `weights` is the panel and
        `begin` the first sums, `row_bytes` the size of a row of the panel. The tile lies at
        `channel` and `column`, of which there are `count`.
        """
        c, n, tile = self.code, self.number, self.tile
        last = c.op("sub i64", count, "1")
        places = [self.least(c.op("add i64", column, str(m)), last) for m in range(tile.height)]
        starts = [c.load(self.vector, begin, str(v * tile.lanes), "i32", 4) for v in range(tile.vectors)]
        slots = [[c.variable(self.vector, s) for s in starts] for _ in places]
        offsets = [c.op("mul i64", p, n["x_column"]) for p in places]
        with c.loop("0", n["rows"]) as row:
            line = self.moved("i8", source, (row, n["x_row"]))
            reads = [c.at("i8", line, o) for o in offsets]
            panel = self.moved("i8", weights, (row, row_bytes))
            with c.loop("0", n["steps"]) as step:
                near = self.moved("i8", panel, (step, str(tile.width * 4)))
                factors = [c.load(self.vector, near, str(v * tile.lanes), "i32", 4) for v in range(tile.vectors)]
                at = c.op("shl i64", step, "2")
                for m, read in enumerate(reads):
                    four = self.splat(c.load("i32", read, at, "i8", 1))
                    for v, factor in enumerate(factors):
                        total = c.load(self.vector, slots[m][v])
                        made = c.put(
                            f"call {self.vector} @llvm.x86.avx512.vpdpbusd.512({self.vector} {total}, "
                            f"{self.vector} {four}, {self.vector} {factor})"
                        )
                        c.store(self.vector, made, slots[m][v])
        masks = [self.lanes_below(c.op("sub i64", n["channels"], channel), v) for v in range(tile.vectors)]
        for m, place in enumerate(places):
            line = c.at("i32", self.moved("i32", goal, (place, n["y_column"])), channel)
            for v, mask in enumerate(masks):
                c.do(
                    f"call void @llvm.masked.store.v{tile.lanes}i32.p0({self.vector} "
                    f"{c.load(self.vector, slots[m][v])}, ptr {c.at('i32', line, str(v * tile.lanes))}, i32 4, "
                    f"<{tile.lanes} x i1> {mask})"
                )

    def splat(self, value: str, kind: str = "i32") -> str:
        vector = f"<{self.tile.lanes} x {kind}>"
        first = self.code.put(f"insertelement {vector} poison, {kind} {value}, i32 0")
        zeros = f"<{self.tile.lanes} x i32> zeroinitializer"
        return self.code.put(f"shufflevector {vector} {first}, {vector} poison, {zeros}")

    def lanes_below(self, count: str, v: int) -> str:
        """Return the mask of the lanes of vector `v` whose channels are below `count`."""
        numbers = ", ".join(f"i64 {v * self.tile.lanes + k}" for k in range(self.tile.lanes))
        return self.code.put(f"icmp slt <{self.tile.lanes} x i64> <{numbers}>, {self.splat(count, 'i64')}")

    def text(self) -> str:
        self.code.do("ret void")
        body = self.code.function("void", NAME, "ptr noalias readonly %words, i64 %begin, i64 %end", "")
        head, _, rest = body.partition(") {")
        lanes, vector = self.tile.lanes, self.vector
        return (
            f"{head}) #0 {{{rest}\n"
            "declare i64 @llvm.smin.i64(i64, i64)\n"
            f"declare {vector} @llvm.x86.avx512.vpdpbusd.512({vector}, {vector}, {vector})\n"
            f"declare void @llvm.masked.store.v{lanes}i32.p0({vector}, ptr, i32, <{lanes} x i1>)\n"
            'attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }\n'
        )
