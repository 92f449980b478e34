"""Kernels of depthwise NHWC convolutions of int8, with fused epilogues.

A tile is a few positions of a line by a block of channels. An instruction adds the products of a
word, so the elements of two or four kernel rows are brought together: of each column under the tile
the rows' vectors are read once and interleaved within 128 bits, which makes as many vectors of
words as a word has elements. Positions that share a column share that work.

All sizes but that of the batch are known. Columns in the padding are constants; rows in it are read
from a line of zero points on the stack. Sums begin with a number of each channel, which takes the
zero point back.

Interleaving leaves the channels of a block in an order of its own (`order`). Instructions that
narrow two vectors to one undo it, so where all that is stored are requantised values
(`rescale_high`) of sums and of constants for channels, the constants lie in that order, and nothing
is moved. Else the sums are brought to their own order first.
"""

from __future__ import annotations

from dataclasses import dataclass

from mycel._src.compiler.ir.dims import product
from mycel._src.engines.native.kernels.codegen import Kernel
from mycel._src.engines.native.kernels.dot_product_instructions import Unit, long_product
from mycel._src.engines.native.kernels.loop_nest import Access, Buffer, Guard, Nest
from mycel._src.engines.native.operations.convolution.channels_last_kernel import Image
from mycel._src.engines.native.operations.convolution.channels_last_writer import SumWriter
from mycel._src.engines.native.operations.convolution.depthwise_channels_last_float_kernel import Line, stretches_of
from mycel._src.engines.native.operations.requantisation.vector_requantisation import high_steps, narrowed

__all__ = ["Bytes", "depthwise_bytes_kernel", "order"]

LANE = 16


@dataclass(frozen=True)
class Bytes:
    """How a depthwise convolution of bytes is computed.

    `lanes` channels are in a vector of sums, and `unit.elements` vectors in a block; `height`
    positions are a tile. With `ordered` what is stored is of channels in the order of blocks.
    """

    unit: Unit
    lanes: int
    height: int
    ordered: bool

    @property
    def block(self) -> int:
        """Channels of a block."""
        return self.lanes * self.unit.elements


def order(lanes: int, elements: int) -> list[int]:
    """Return the channel of each place of a block's vectors, as interleaving leaves them."""
    each = 4 * elements
    return [q * each + 4 * v + i for v in range(elements) for q in range(lanes // 4) for i in range(4)]


def depthwise_bytes_kernel(
    nest: Nest,
    access: Access,
    rows: Guard | None,
    image: Image,
    line: Line,
    how: Bytes,
    weights: Buffer,
    first: Buffer,
) -> Kernel:
    """Return the kernel of a nest whose stores use a depthwise convolution of bytes.

    * `nest`, `access`, `rows`, `image`, `line`: as for `depthwise_channel_kernel`.
    * `how`: blocks and tiles; `first`: what sums begin with.
    * `weights`: the words of each channel, or by taps (block, column, row, channel).
    """
    writer = (_ByTaps if how.unit.halved else _Writer)(nest, how)
    writer.access, writer.rows_guard, writer.image, writer.of = access, rows, image, line
    writer.weights_in, writer.first_in = weights, first
    return writer.run()


class _Writer:
    access: Access
    rows_guard: Guard | None
    image: Image
    of: Line
    weights_in: Buffer
    first_in: Buffer

    def __init__(self, nest: Nest, how: Bytes) -> None:
        self.sums = SumWriter(nest, "i32", how.lanes)
        self.function, self.e, self.ix = self.sums.function, self.sums.e, self.sums.ix
        self.how, self.unit = how, how.unit
        self.bytes = f"<{how.block} x i8>"

    def run(self) -> Kernel:
        nest = self.sums.nest
        first, last = self.function.range()
        self.base, self.weights = self.function.pointer(self.access.buffer), self.function.pointer(self.weights_in)
        self.starts = self.function.pointer(self.first_in)
        if self.rows_guard is not None:
            self.fill_line()
        with self.function.loop(first, last, 1) as number, self.sums.opened(number, "1"):
            self.line_at()
        taps = self.image.taps[0] * self.image.taps[1]
        work = product([loop.extent for loop in nest.loops]) * (1 + taps // 8)
        said = f"tiles of {self.how.height} x {self.how.block}, depthwise, {self.unit.said}"
        return self.sums.kernel(work, said)

    def fill_line(self) -> None:
        """Fill a line on the stack with zero points."""
        e, channels = self.e, int(str(self.sums.nest.loops[self.sums.parts.form.vector_loop].extent))
        # A single column may have any step.
        size = (self.of.width - 1) * self.image.steps[1] + channels
        whole = -(-size // LANE) * LANE
        self.function.entry.append(f"  %outside = alloca [{whole} x i8], align 64")
        zeros = "<" + ", ".join([f"i8 {self.image.zero}"] * LANE) + ">"
        with self.function.loop("0", str(whole), LANE) as at:
            e.do(f"store <{LANE} x i8> {zeros}, ptr {self.sums.byte('%outside', at)}, align 16")

    def line_at(self) -> None:
        """Write one line of the result."""
        e, ix, image = self.e, self.ix, self.image
        start = self.sums.offset_at(self.access.offset, "0")
        sources = []
        for row in range(image.taps[0]):
            at = start if not row else e.put(f"add {ix} {start}, {row * image.dilation[0] * image.steps[0]}")
            source = self.sums.byte(self.base, at)
            if self.rows_guard is not None:
                position, size = self.rows_guard
                y = self.sums.loops.place(position, 0, self.function.bits, False)
                y = y if not row else e.put(f"add {ix} {y}, {row * image.dilation[0]}")
                there = e.put(f"icmp ult {ix} {y}, {size}")
                outside = self.sums.byte("%outside", str(-self.of.low * image.steps[1]))
                source = e.put(f"select i1 {there}, ptr {source}, ptr {outside}")
            sources.append(source)
        channels = int(str(self.sums.nest.loops[self.sums.parts.form.vector_loop].extent))
        whole, rest = divmod(channels, self.how.block)
        if whole:
            with self.function.loop("0", str(whole * self.how.block), self.how.block) as channel:
                self.block_at(channel, sources, 0)
        if rest:
            self.block_at(str(whole * self.how.block), sources, rest)

    def block_at(self, channel: str, sources: list[str], rest: int) -> None:
        """Write one block of channels of a line, whose kernel rows begin at `sources`.

        The block has `rest` channels, 0 for all.
        """
        height = self.how.height
        for start, tiles, pairs in stretches_of(self.of, height):
            if tiles == 1:
                self.tile_at(str(start), channel, sources, pairs, rest)
                continue
            with self.function.loop(str(start), str(start + tiles * height), height) as place:
                self.tile_at(place, channel, sources, pairs, rest)

    def tile_at(
        self, place: str, channel: str, sources: list[str], pairs: frozenset[tuple[int, int]], rest: int
    ) -> None:
        """Write one tile.

        * `place`, `channel`: its first position and channel.
        * `sources`: the kernel rows; `pairs`: the positions and taps that meet the image.
        * `rest`: the channels that there are, 0 for all of a block.
        """
        e, ix, image, line, vector = self.e, self.ix, self.image, self.of, self.sums.vector
        count, taps, lanes = self.unit.elements, image.taps[1], self.sums.lanes
        groups = -(-image.taps[0] // count)
        moved = e.put(f"mul {ix} {place}, {line.stride * image.steps[1]}")
        moved = e.put(f"add {ix} {moved}, {channel}")
        reads = [self.sums.byte(s, moved) for s in sources]
        size = groups * taps * 4
        weights = self.sums.byte(self.weights, e.put(f"mul {ix} {channel}, {size}"))
        at = e.put(f"getelementptr i32, ptr {self.starts}, {ix} {channel}")
        begins = [e.put(f"load {vector}, ptr {self.sums.byte(at, str(v * lanes * 4))}, align 4") for v in range(count)]
        mask = None
        if rest:
            mask = "<" + ", ".join(f"i1 {'true' if k < rest else 'false'}" for k in range(self.how.block)) + ">"
        sums = [list(begins) for _ in range(self.how.height)]
        columns = sorted({m * line.stride + t * line.dilation for m in range(self.how.height) for t in range(taps)})
        for column in columns:
            uses = [
                (m, t)
                for m in range(self.how.height)
                for t in range(taps)
                if m * line.stride + t * line.dilation == column
            ]
            for g in range(groups):
                inside = uses[0] in pairs
                words = self.words_of(reads[g * count : (g + 1) * count], column, mask, inside)
                for m, t in uses:
                    for v in range(count):
                        near = self.sums.byte(weights, str(((g * taps + t) * count + v) * lanes * 4))
                        factor = self.unit.factor(self.sums, near)
                        sums[m][v] = self.unit.added(self.sums, sums[m][v], (words[v],), factor)
        places = [place if not m else e.put(f"add {ix} {place}, {m}") for m in range(self.how.height)]
        if self.how.ordered:
            self.finish_steps(channel, places, sums, mask)
            return
        self.sums.loops.copies = -(-(rest or self.how.block) // lanes)
        self.sums.mask_last(rest % lanes)
        self.sums.finish_tile(channel, places, [self.own_order(s)[: self.sums.loops.copies] for s in sums])
        self.sums.mask_last(0)

    def words_of(self, reads: list[str], column: int, mask: str | None, inside: bool) -> list[str]:
        """Return the vectors of words of a column, for kernel rows that begin at `reads`.

        `mask` are the channels that there are (None: all), and `inside` says whether the column
        lies in the image.
        """
        unit = self.unit
        values = [self.values_of(read, column, mask, inside) for read in reads]
        # Weights of rows that there are not are 0.
        values += [values[-1]] * (unit.elements - len(values))
        if unit.elements == 2:
            return self.interleaved(values[0], values[1], 16, 16)
        near, far = (self.interleaved(values[k], values[k + 1], 8, 8) for k in (0, 2))
        return [w for a, b in zip(near, far) for w in self.interleaved(a, b, 8, 16)]

    def values_of(self, read: str, column: int, mask: str | None, inside: bool) -> str:
        """Return the vector of a column of a kernel row that begins at `read`.

        `column`, `mask` and `inside` are as for `words_of`.
        """
        e, n = self.e, self.how.block
        at = self.sums.byte(read, str(column * self.image.steps[1]))
        if not inside:
            value = "<" + ", ".join([f"i8 {self.image.zero}"] * n) + ">"
        elif mask is None:
            value = e.put(f"load {self.bytes}, ptr {at}, align 1")
        else:
            kinds = ["ptr", "i32", f"<{n} x i1>", self.bytes]
            name = f"llvm.masked.load.v{n}i8.p0"
            value = e.intrinsic(self.bytes, name, kinds, [at, "1", mask, "zeroinitializer"])
        return self.unit.entered(self.sums, value, n, self.access.buffer.dtype)

    def interleaved(self, a: str, b: str, given: int, bits: int) -> list[str]:
        """Return elements of two vectors in turns, of the lower and upper halves of each 128 bits.

        The vectors, `a` and `b`, have elements of `given` bits; they are taken as elements of
        `bits`, and given as words or, where elements of 8 bits are, as these.
        """
        e, size = self.e, self.sums.lanes * 32
        total, each = size // bits, 128 // bits
        kind, made = f"<{total} x i{bits}>", f"<{size // given} x i{given}>"
        if given != bits:
            a, b = (e.put(f"bitcast {made} {v} to {kind}") for v in (a, b))
        found = []
        for upper in (0, each // 2):
            places = [
                q * each + upper + i + side * total
                for q in range(total // each)
                for i in range(each // 2)
                for side in (0, 1)
            ]
            mask = ", ".join(f"i32 {p}" for p in places)
            both = e.put(f"shufflevector {kind} {a}, {kind} {b}, <{total} x i32> <{mask}>")
            found.append(both if bits == 8 else e.put(f"bitcast {kind} {both} to {self.sums.vector}"))
        return found

    def own_order(self, sums: list[str]) -> list[str]:
        """Return sums in the order of their channels."""
        e, lanes = self.e, self.sums.lanes
        places = order(lanes, len(sums))
        if places == list(range(len(places))):
            return sums
        at = {channel: k for k, channel in enumerate(places)}
        while len(sums) > 1:
            width = lanes * len(places) // lanes // len(sums)
            wide = ", ".join(f"i32 {k}" for k in range(2 * width))
            kind = f"<{width} x i32>"
            sums = [
                e.put(f"shufflevector {kind} {a}, {kind} {b}, <{2 * width} x i32> <{wide}>")
                for a, b in zip(sums[::2], sums[1::2])
            ]
        kind, found = f"<{len(places)} x i32>", []
        for v in range(len(places) // lanes):
            mask = ", ".join(f"i32 {at[v * lanes + k]}" for k in range(lanes))
            found.append(e.put(f"shufflevector {kind} {sums[0]}, {kind} poison, <{lanes} x i32> <{mask}>"))
        return found

    def finish_steps(self, channel: str, places: list[str], sums: list[list[str]], mask: str | None) -> None:
        """Write steps of `sums`, whose channels are in the order of blocks, at each of `places`.

        `channel` is the first of the block, and `mask` says which are there (None: all).
        """
        e, parts, (s,) = self.e, self.sums.parts, self.sums.nest.stores
        parts.loops.copies = self.unit.elements
        ends = [int(x.data[0]) for x in s.value.args[4:]]

        def finish() -> None:
            operands = [parts.values.widened(x, True) for x in s.value.args[:4]]
            made = [
                high_steps(e, self.sums.vector, *[o[v if len(o) > 1 else 0] for o in operands])
                for v in range(self.unit.elements)
            ]
            value = narrowed(e, made, s.target.buffer.dtype, (ends[0], ends[1]))
            at = parts.loops.address(s.target, 0)
            if mask is None:
                e.do(f"store {self.bytes} {value}, ptr {at}, align 1")
            else:
                parts.memory.store_masked(self.bytes, value, at, 1, mask, str(mask.count("true")))

        self.sums.finish_tile(channel, places, sums, finish)


class _ByTaps(_Writer):
    """A writer for processors that add products of neighbours only (`Unit.halved`).

    Nothing is interleaved: the products of eight channels with a tap have 16 bits, those of the
    next tap are added, and both are added to the sums of 32 bits, unless weights are `careful`.
    """

    def tile_at(
        self, place: str, channel: str, sources: list[str], pairs: frozenset[tuple[int, int]], rest: int
    ) -> None:
        """Write one tile.

        `place`, `channel`, `sources`, `pairs` and `rest` are as for `_Writer.tile_at`.
        """
        e, ix, image, line, vector = self.e, self.ix, self.image, self.of, self.sums.vector
        rows, taps, block, height = *image.taps, self.how.block, self.how.height
        moved = e.put(f"add {ix} {e.put(f'mul {ix} {place}, {line.stride * image.steps[1]}')}, {channel}")
        reads = [self.sums.byte(s, moved) for s in sources]
        weights = self.sums.byte(self.weights, e.put(f"mul {ix} {channel}, {rows * taps}"))
        at = e.put(f"getelementptr i32, ptr {self.starts}, {ix} {channel}")
        begins = [e.put(f"load {vector}, ptr {self.sums.byte(at, str(v * 16))}, align 4") for v in range(block // 4)]
        mask = None
        if rest:
            mask = "<" + ", ".join(f"i1 {'true' if k < rest else 'false'}" for k in range(block)) + ">"
        sums = [list(begins) for _ in range(height)]
        waiting: list[list[str]] = [[] for _ in sums]
        uses = [(m * line.stride + t * line.dilation, m, t) for m in range(height) for t in range(taps)]
        for column in sorted({c for c, _, _ in uses}):
            here = [(m, t) for c, m, t in uses if c == column]
            for row in range(rows):
                values = self.eights(self.values_of(reads[row], column, mask, here[0] in pairs))
                for m, t in here:
                    near = self.sums.byte(weights, str((t * rows + row) * block))
                    self.multiply(values, near, sums[m], waiting[m])
        for total, products in zip(sums, waiting):
            self.add(total, products)
        places = [place if not m else e.put(f"add {ix} {place}, {m}") for m in range(height)]
        if self.how.ordered:
            self.finish_steps(channel, places, sums, mask)
            return
        self.sums.loops.copies = -(-(rest or block) // 4)
        self.sums.mask_last(rest % 4)
        self.sums.finish_tile(channel, places, [s[: self.sums.loops.copies] for s in sums])
        self.sums.mask_last(0)

    def eights(self, value: str) -> list[str]:
        """Return the vectors of eight channels of a block."""
        n = self.how.block
        if n == 8:
            return [value]
        orders = [", ".join(f"i32 {k}" for k in range(start, start + 8)) for start in range(0, n, 8)]
        kind = self.bytes
        return [self.e.put(f"shufflevector {kind} {value}, {kind} poison, <8 x i32> <{o}>") for o in orders]

    def multiply(self, values: list[str], near: str, total: list[str], waiting: list[str]) -> None:
        """Multiply the `values` of a tap with the weights at `near`.

        The products are added to those that are `waiting`, and with them to the `total`, or wait.
        """
        e, kind, products = self.e, "<8 x i8>", "<8 x i16>"
        factors = [self.sums.byte(near, str(8 * k)) for k in range(len(values))]
        factors = [e.put(f"load {kind}, ptr {f}, align 8") for f in factors]
        name = long_product()
        made = [e.intrinsic(products, name, [kind] * 2, [a, b]) for a, b in zip(values, factors)]
        if waiting:
            made = [e.put(f"add {products} {a}, {b}") for a, b in zip(waiting, made)]
        elif not self.unit.careful:
            waiting[:] = made
            return
        self.add(total, made)
        waiting.clear()

    def add(self, total: list[str], products: list[str]) -> None:
        """Add vectors of eight `products` of 16 bits, or none, to the vectors of a `total`."""
        e, v = self.e, 0
        for value in products:
            for start in (0, 4):
                order = ", ".join(f"i32 {start + k}" for k in range(4))
                half = e.put(f"shufflevector <8 x i16> {value}, <8 x i16> poison, <4 x i32> <{order}>")
                wide = e.put(f"sext <4 x i16> {half} to <4 x i32>")
                total[v] = e.put(f"add <4 x i32> {total[v]}, {wide}")
                v += 1
