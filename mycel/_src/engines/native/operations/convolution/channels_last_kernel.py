"""Kernels of NHWC convolutions and of matrix products, with fused epilogues.

A convolution of one group, or a product with a matrix, is computed by tiles of `height` positions
by `vectors` vectors of channels of the result, whose sums stay in registers. Each step reads one
word of 32 bits for each position, which all lanes share, and one of each channel's weights: a
float, four bytes or two halves (`Unit`). Weights lie in panels, which are made before the program
runs: (block of channels, step, channel, elements of a word), with zeros at the ends.

Positions are read in place where a word is a float and a position's words lie one behind the other.
Else each tile first copies what its positions read to the stack: unsigned where the instruction
wants that, widened, and with the padding. Sums begin with a number of each channel, which takes the
zero point back.

What the nest stores is computed from the sums in registers (`ChannelWriter.finish_tile`). Tiles at
the end of a line begin earlier, so that they are whole; positions twice computed get equal values.
Where a line is shorter than a tile, the last position is computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mycel._src.compiler.ir.dims import DimLike, product, same
from mycel._src.engines.native.kernels.codegen import Kernel
from mycel._src.engines.native.kernels.dot_product_instructions import Unit
from mycel._src.engines.native.kernels.instruction_emitter import memory_type
from mycel._src.engines.native.kernels.loop_nest import Access, Buffer, Guard, Nest
from mycel._src.engines.native.llvm.target import target
from mycel._src.engines.native.operations.convolution.channels_last_writer import SumWriter

__all__ = ["NEAR", "ChannelWriter", "Image", "Tile", "channel_kernel", "is_read_in_place"]

# Products of a word's elements that take as long as one operation of a kernel without them.
DENSITY = 16
# Bytes that a tile's copies may take of the nearest cache.
NEAR = 24 << 10


@dataclass(frozen=True)
class Image:
    """What a position reads: `taps` rows and columns of `channels` elements.

    `steps` are the distances in memory of rows and columns, by elements, `dilation` those of the
    taps in rows and columns. `zero` is what lies outside of the image.
    """

    taps: tuple[int, int]
    channels: int
    steps: tuple[int, int]
    dilation: tuple[int, int]
    zero: int

    @property
    def run(self) -> int:
        """Elements of one row of taps."""
        return self.taps[1] * self.channels

    @property
    def count(self) -> int:
        """Elements that a position reads."""
        return self.taps[0] * self.run


@dataclass(frozen=True)
class Tile:
    """Positions of a tile, its vectors of channels, and the channels of the result."""

    height: int
    vectors: int
    channels: int


def channel_kernel(
    nest: Nest,
    access: Access,
    guarded: Sequence[int],
    image: Image,
    tile: Tile,
    unit: Unit,
    panels: Buffer,
    first: Buffer | None,
) -> Kernel:
    """Return the kernel of a nest whose stores use one sum of products.

    * `nest`: parallel loops, of which the last is the channels' and the one before that of the
      positions of a line; its one reduction stands for the sum.
    * `access`: where a position reads its first element; its guards are those of rows and columns,
      which of them says `guarded` by 0 and 1.
    * `image`, `tile`, `unit`: what is read, and how it is computed.
    * `panels`: the weights; `first`: what sums begin with (None: 0).
    """
    writer = ChannelWriter(nest, access, image, tile, unit, panels, first)
    writer.guarded = dict(zip(guarded, access.guards))
    return writer.run()


def is_read_in_place(image: Image, unit: Unit, guarded: bool, height: int) -> bool:
    """Return whether positions are read in place: floats, where that is possible and pays.

    `guarded` says whether some of what an `image` is asked for lies outside of it, `height` is that
    of tiles of a `unit`.
    """
    if not unit.is_plain or guarded:
        return False
    joined = image.dilation[1] == 1 and image.steps[1] == image.channels
    return image.taps == (1, 1) or (joined and image.count * 4 * height > NEAR)


class ChannelWriter:
    """A writer of the kernel of a `nest`, which reads an `image` by an `access`.

    `tile` has the sizes of tiles, `unit` the kind of products, `panels` are the packed weights, and
    `first` what sums begin with.
    """

    def __init__(
        self,
        nest: Nest,
        access: Access,
        image: Image,
        tile: Tile,
        unit: Unit,
        panels: Buffer,
        first: Buffer | None,
    ) -> None:
        self.sums = SumWriter(nest, unit.sum)
        self.function, self.e, self.ix = self.sums.function, self.sums.e, self.sums.ix
        self.access, self.image, self.tiles_of, self.unit = access, image, tile, unit
        self.panels, self.first = panels, first
        self.guarded: dict[int, Guard] = {}
        self.row_bytes = -(-image.count // unit.elements) * 4
        self.steps = self.row_bytes // 4
        self.in_place = is_read_in_place(image, unit, bool(access.guards), tile.height)

    # The range of tiles.

    def run(self) -> Kernel:
        nest, e = self.sums.nest, self.e
        extent = nest.loops[self.sums.line].extent
        height = self.tiles_of.height
        tiles: DimLike = -(-extent // height)
        fits = type(extent) is int and extent >= height
        first, last = self.function.range()
        count, long = self.sums.amount(tiles), self.sums.amount(extent)
        self.base, self.weights = self.function.pointer(self.access.buffer), self.function.pointer(self.panels)
        self.starts = None if self.first is None else self.function.pointer(self.first)
        if not self.in_place:
            self.function.entry.append(f"  %scratch = alloca [{height * self.row_bytes + 64} x i8], align 64")
        with self.function.loop(first, last, 1) as number, self.sums.opened(number, count) as block:
            start = e.put(f"mul {self.ix} {block}, {height}")
            left = e.put(f"sub {self.ix} {long}, {height}")
            start = self.function.least(start, left) if fits else start
            places = [start if not m else e.put(f"add {self.ix} {start}, {m}") for m in range(height)]
            if not fits:
                end = e.put(f"sub {self.ix} {long}, 1")
                places = [p if not m else self.function.least(p, end) for m, p in enumerate(places)]
            self.tile_at(places)
        work = product([loop.extent for loop in nest.loops]) * self.steps // DENSITY
        said = f"tiles of {height} x {self.tiles_of.vectors * self.sums.lanes}, {self.unit.said}"
        return self.sums.kernel(work, said, tiles)

    # One tile.

    def tile_at(self, places: list[str]) -> None:
        e, tile = self.e, self.tiles_of
        reads = self.read_places(places)
        wide = tile.vectors * self.sums.lanes
        whole = tile.channels // wide
        block_bytes = self.steps * wide * 4
        if whole:
            with self.function.loop("0", str(whole), 1) as block:
                channel = e.put(f"mul {self.ix} {block}, {wide}")
                panel = self.sums.byte(self.weights, e.put(f"mul {self.ix} {block}, {block_bytes}"))
                self.block_at(channel, panel, reads, places, tile.vectors, 0)
        rest = tile.channels - whole * wide
        if rest:
            panel = self.sums.byte(self.weights, str(whole * block_bytes))
            self.block_at(str(whole * wide), panel, reads, places, -(-rest // self.sums.lanes), rest % self.sums.lanes)

    def block_at(
        self, channel: str, panel: str, reads: list[tuple[str, int]], places: list[str], vectors: int, lanes: int
    ) -> None:
        """Write one block of channels of a tile.

        * `channel`: the first; `panel`: the block's weights.
        * `reads`: where each position's words begin, as an address and a distance from it.
        * `places`: the positions; `vectors`: the vectors of the block.
        * `lanes`: the channels of the last vector, 0 where all are there.
        """
        e, unit, vector = self.e, self.unit, self.sums.vector
        self.sums.loops.copies = vectors
        self.sums.mask_last(lanes)
        begins = ["zeroinitializer"] * vectors
        if self.starts is not None:
            at = e.put(f"getelementptr i32, ptr {self.starts}, {self.ix} {channel}")
            begins = [
                e.put(f"load {vector}, ptr {self.sums.byte(at, str(v * self.sums.lanes * 4))}, align 4")
                for v in range(vectors)
            ]
        slots = [[self.sums.slot(b) for b in begins] for _ in places]
        rows, run = (self.image.taps[0], self.image.run) if self.in_place else (1, self.steps)
        with self.function.loop("0", str(rows), 1) as row:
            here = self.sums.byte(panel, e.put(f"mul {self.ix} {row}, {run * vectors * self.sums.lanes * 4}"))
            down = e.put(f"mul {self.ix} {row}, {self.image.steps[0] * self.image.dilation[0] * 4}")
            bases = {base: self.sums.byte(base, down) for base, _ in reads}
            with self.function.loop("0", str(run), 1) as step:
                near = self.sums.byte(here, e.put(f"mul {self.ix} {step}, {vectors * self.sums.lanes * 4}"))
                factors = [
                    unit.factor(self.sums, self.sums.byte(near, str(v * self.sums.lanes * 4))) for v in range(vectors)
                ]
                along = e.put(f"shl {self.ix} {step}, 2")
                moved = {base: self.sums.byte(start, along) for base, start in bases.items()}
                for (base, distance), slot in zip(reads, slots):
                    word = unit.word(self.sums, self.sums.byte(moved[base], str(distance)))
                    for v, factor in enumerate(factors):
                        total = e.put(f"load {vector}, ptr {slot[v]}")
                        e.do(f"store {vector} {unit.added(self.sums, total, word, factor)}, ptr {slot[v]}")
        found = [[e.put(f"load {vector}, ptr {s}") for s in slot] for slot in slots]
        self.sums.finish_tile(channel, places, found)
        self.sums.mask_last(0)

    # What positions read.

    def read_places(self, places: list[str]) -> list[tuple[str, int]]:
        """Return where each position's words begin, copied first where they have to be."""
        e, offset, size = self.e, self.access.offset, self.access.buffer.dtype.itemsize
        step = offset.coefficient(self.sums.line)
        fits = type(step) is int and all(p != places[0] for p in places[1:])
        if self.in_place:
            start = self.sums.offset_at(offset, places[0])
            base = e.put(f"getelementptr float, ptr {self.base}, {self.ix} {start}")
            if self.is_regular and fits:
                return [(base, m * int(step) * 4) for m in range(len(places))]
            found = [self.sums.offset_at(offset, p) for p in places]
            return [(e.put(f"getelementptr float, ptr {self.base}, {self.ix} {o}"), 0) for o in found]
        image, bytes_of = self.image, self.unit.bytes
        width = image.count * bytes_of
        if self.is_regular and not self.access.guards and image.taps == (1, 1) and same(step, image.channels):
            if width == self.row_bytes:
                start = self.sums.offset_at(offset, places[0])
                source = self.sums.byte(self.base, e.put(f"mul {self.ix} {start}, {size}") if size > 1 else start)
                self.copy_run("%scratch", source, image.channels * len(places))
                return [("%scratch", m * self.row_bytes) for m in range(len(places))]
        for m, place in enumerate(places):
            self.copy_position(self.sums.byte("%scratch", str(m * self.row_bytes)), place)
        return [("%scratch", m * self.row_bytes) for m in range(len(places))]

    @property
    def is_regular(self) -> bool:
        """Whether the positions of a tile follow each other."""
        extent = self.sums.nest.loops[self.sums.line].extent
        return type(extent) is int and extent >= self.tiles_of.height

    def copy_position(self, goal: str, place: str) -> None:
        """Write the copy of what one position reads to the address `goal`."""
        e, image, size = self.e, self.image, self.access.buffer.dtype.itemsize
        offset = self.sums.offset_at(self.access.offset, place)
        source = self.sums.byte(self.base, e.put(f"mul {self.ix} {offset}, {size}") if size > 1 else offset)
        bytes_of = self.unit.bytes
        guards = {}
        for axis, (position, extent) in self.guarded.items():
            guards[axis] = self.sums.offset_at(position, place), self.sums.amount(extent)
        row_goal, row_source = image.run * bytes_of, image.steps[0] * image.dilation[0] * size
        with self.function.loop("0", str(image.taps[0]), 1) as row:
            to = self.sums.byte(goal, e.put(f"mul {self.ix} {row}, {row_goal}"))
            at = self.sums.byte(source, e.put(f"mul {self.ix} {row}, {row_source}"))
            tests = []
            if 0 in guards:
                tests.append(self.inside(guards[0], row, image.dilation[0]))
            if 1 in guards:
                tests.append(self.inside(guards[1], "0", 0))
                tests.append(self.inside(guards[1], str(image.taps[1] - 1), image.dilation[1]))
            joined = image.dilation[1] == 1 and image.steps[1] == image.channels
            if not tests:
                self.copy_row(to, at, joined)
                return
            test = tests[0]
            for t in tests[1:]:
                test = e.put(f"and i1 {test}, {t}")
            fast, slow, after = (self.function.fresh(n) for n in ("whole", "edge", "copied"))
            e.do(f"br i1 {test}, label %{fast}, label %{slow}")
            e.label(fast)
            self.copy_row(to, at, joined)
            e.do(f"br label %{after}")
            e.label(slow)
            self.copy_edge(to, at, guards, row)
            e.do(f"br label %{after}")
            e.label(after)

    def inside(self, guard: tuple[str, str], tap: str, dilation: int) -> str:
        """Return whether a tap lies inside of the image."""
        e, (first, extent) = self.e, guard
        at = first if tap == "0" else e.put(f"add {self.ix} {first}, {e.put(f'mul {self.ix} {tap}, {dilation}')}")
        return e.put(f"icmp ult {self.ix} {at}, {extent}")

    def copy_row(self, goal: str, source: str, joined: bool) -> None:
        """Write the copy of a row of taps, which lie behind each other where `joined`."""
        image, size = self.image, self.access.buffer.dtype.itemsize
        if joined:
            self.copy_run(goal, source, image.run)
            return
        step = image.steps[1] * image.dilation[1] * size
        with self.function.loop("0", str(image.taps[1]), 1) as column:
            to = self.sums.byte(goal, self.e.put(f"mul {self.ix} {column}, {image.channels * self.unit.bytes}"))
            self.copy_run(to, self.sums.byte(source, self.e.put(f"mul {self.ix} {column}, {step}")), image.channels)

    def copy_edge(self, goal: str, source: str, guards: dict[int, tuple[str, str]], row: str) -> None:
        """Write the copy of a row of taps, some of which lie outside of the image, to `goal`.

        `source` is where the row begins, `guards` has the first row and column with their ends,
        `row` is the number of the row.
        """
        e, image, size = self.e, self.image, self.access.buffer.dtype.itemsize
        step = image.steps[1] * image.dilation[1] * size
        with self.function.loop("0", str(image.taps[1]), 1) as column:
            to = self.sums.byte(goal, e.put(f"mul {self.ix} {column}, {image.channels * self.unit.bytes}"))
            tests = [self.inside(guards[0], row, image.dilation[0])] if 0 in guards else []
            tests += [self.inside(guards[1], column, image.dilation[1])] if 1 in guards else []
            test = tests[0] if len(tests) == 1 else e.put(f"and i1 {tests[0]}, {tests[1]}")
            there, out, after = (self.function.fresh(n) for n in ("there", "out", "tap"))
            e.do(f"br i1 {test}, label %{there}, label %{out}")
            e.label(there)
            self.copy_run(to, self.sums.byte(source, e.put(f"mul {self.ix} {column}, {step}")), image.channels)
            e.do(f"br label %{after}")
            e.label(out)
            self.fill_run(to, image.channels)
            e.do(f"br label %{after}")
            e.label(after)

    def copy_run(self, goal: str, source: str, count: int) -> None:
        """Write the copy of `count` elements that lie behind each other."""
        kind, size = memory_type(self.access.buffer.dtype), self.access.buffer.dtype.itemsize

        def piece(start: str, n: int) -> None:
            at = self.e.put(f"getelementptr {kind}, ptr {source}, {self.ix} {start}")
            value = self.e.put(f"load <{n} x {kind}>, ptr {at}, align {size}")
            value = self.unit.entered(self.sums, value, n, self.access.buffer.dtype)
            self.put_piece(goal, start, value, n)

        self.pieces(count, piece)

    def fill_run(self, goal: str, count: int) -> None:
        """Write `count` elements of what lies outside of the image."""

        def piece(start: str, n: int) -> None:
            value = "<" + ", ".join([f"{self.unit.element} {self.image.zero}"] * n) + ">"
            self.put_piece(goal, start, "zeroinitializer" if not self.image.zero else value, n)

        self.pieces(count, piece)

    def put_piece(self, goal: str, start: str, value: str, n: int) -> None:
        """Write a `value` of `n` elements behind the first `start` ones at `goal`."""
        kind = self.unit.element
        at = self.e.put(f"getelementptr {kind}, ptr {goal}, {self.ix} {start}")
        self.e.do(f"store <{n} x {kind}> {value}, ptr {at}, align {self.unit.bytes}")

    def pieces(self, count: int, piece: Callable[[str, int], None]) -> None:
        """Write an action for vectors that cover `count` elements; the last may overlap others.

        `piece` is a function of the first element and the number of elements.
        """
        wide = target().vector_bytes // self.unit.bytes
        if count >= 4 * wide:
            with self.function.loop("0", str(count // wide * wide), wide) as start:
                piece(start, wide)
        elif count >= wide:
            for k in range(count // wide):
                piece(str(k * wide), wide)
        if count >= wide:
            if count % wide:
                piece(str(count - wide), wide)
            return
        size = 1 << (count.bit_length() - 1)
        piece("0", size)
        rest = count - size
        while rest:
            # The fewest that cover the rest, as far as there are so many elements.
            size = 1 << (rest - 1).bit_length()
            piece(str(count - size), size)
            rest = 0
