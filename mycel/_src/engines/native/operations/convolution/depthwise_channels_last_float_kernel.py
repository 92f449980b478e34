"""Kernels of depthwise NHWC convolutions of floats, with fused epilogues.

A tile is `height` positions of a line by one vector of channels, whose sums stay in registers. For
each kernel row that meets the image, the columns under the tile are read once each and multiplied
with the weights of the row. All sizes but that of the batch are known, so columns in the padding
are left out when the code is written: a line is the tiles at its ends and a loop over those inside.

Weights lie as (block of channels, row, column, channel).
"""

from __future__ import annotations

from mycel._src.compiler.ir.dims import product
from mycel._src.engines.native.kernels.codegen import Kernel
from mycel._src.engines.native.kernels.loop_nest import Access, Buffer, Guard, Nest
from mycel._src.engines.native.operations.convolution.channels_last_kernel import Image
from mycel._src.engines.native.operations.convolution.channels_last_writer import SumWriter

__all__ = ["Line", "depthwise_channel_kernel", "stretches_of"]


class Line:
    """How the positions of a line meet an image: `count` positions, `stride` and `low` padding.

    The image has `width` columns, the kernel `taps`, `dilation` apart.
    """

    def __init__(self, count: int, stride: int, low: int, width: int, taps: int, dilation: int) -> None:
        self.count, self.stride, self.low, self.width = count, stride, low, width
        self.taps, self.dilation = taps, dilation

    def columns(self, start: int, height: int) -> frozenset[tuple[int, int]]:
        """Return pairs of a position, counted from `start`, and a tap that meets the image."""
        return frozenset(
            (m, t)
            for m in range(height)
            for t in range(self.taps)
            if 0 <= (start + m) * self.stride - self.low + t * self.dilation < self.width
        )


def stretches_of(line: Line, height: int) -> list[tuple[int, int, frozenset[tuple[int, int]]]]:
    """Return the tiles of a line, as stretches of equal ones.

    Each is the first position, the number of tiles, and the pairs of positions and taps.
    """
    starts = [min(k, line.count - height) for k in range(0, line.count, height)]
    found: list[tuple[int, int, frozenset[tuple[int, int]]]] = []
    for start in starts:
        pairs = line.columns(start, height)
        if found and found[-1][2] == pairs and found[-1][0] + found[-1][1] * height == start:
            found[-1] = (found[-1][0], found[-1][1] + 1, pairs)
        else:
            found.append((start, 1, pairs))
    return found


def depthwise_channel_kernel(
    nest: Nest,
    access: Access,
    rows: Guard | None,
    image: Image,
    line: Line,
    height: int,
    weights: Buffer,
) -> Kernel:
    """Return the kernel of a nest whose stores use a depthwise convolution.

    * `nest`: parallel loops, of which the last is the channels' and the one before that of the
      positions of a line.
    * `access`: where a position reads its first element, without guards; `rows`: the guard of its
      rows, if there is padding above or below.
    * `image`, `line`: what is read; `height`: positions of a tile.
    * `weights`: what each channel is multiplied with.
    """
    return _Writer(nest, access, rows, image, line, height, weights).run()


class _Writer:
    """A writer of the kernel of a `nest`, which reads the lines of an `image` by an `access`.

    `rows` guards rows outside of it, `line` has the sizes of a line, `height` is the number of
    rows that are computed at once, and `weights` has the factors.
    """

    def __init__(
        self,
        nest: Nest,
        access: Access,
        rows: Guard | None,
        image: Image,
        line: Line,
        height: int,
        weights: Buffer,
    ) -> None:
        self.sums = SumWriter(nest, "float")
        self.function, self.e, self.ix = self.sums.function, self.sums.e, self.sums.ix
        self.access, self.rows_guard, self.image = access, rows, image
        self.of, self.height, self.weights_in = line, height, weights

    def run(self) -> Kernel:
        nest = self.sums.nest
        first, last = self.function.range()
        self.base, self.weights = self.function.pointer(self.access.buffer), self.function.pointer(self.weights_in)
        with self.function.loop(first, last, 1) as number, self.sums.opened(number, "1"):
            self.line_at()
        taps = self.image.taps[0] * self.image.taps[1]
        work = product([loop.extent for loop in nest.loops]) * (1 + taps // 8)
        said = f"tiles of {self.height} x {self.sums.lanes}, depthwise"
        return self.sums.kernel(work, said)

    def line_at(self) -> None:
        """Write one line of the result."""
        e, ix = self.e, self.ix
        kernel_rows, dilation = self.image.taps[0], self.image.dilation[0]
        low, high = "0", str(kernel_rows)
        if self.rows_guard is not None:
            position, size = self.rows_guard
            at = self.sums.loops.place(position, 0, self.function.bits, False)
            before = e.put(f"sub {ix} {dilation - 1}, {at}")
            behind = e.put(f"sub {ix} {int(str(size)) + dilation - 1}, {at}")
            if dilation > 1:
                before, behind = (e.put(f"sdiv {ix} {v}, {dilation}") for v in (before, behind))
            low, high = self.function.most(low, before), self.function.least(high, behind)
        channels = int(str(self.sums.nest.loops[self.sums.parts.form.vector_loop].extent))
        whole, rest = divmod(channels, self.sums.lanes)
        if whole:
            with self.function.loop("0", str(whole * self.sums.lanes), self.sums.lanes) as channel:
                self.block_at(channel, low, high)
        if rest:
            self.sums.mask_last(rest)
            self.block_at(str(whole * self.sums.lanes), low, high)
            self.sums.mask_last(0)

    def block_at(self, channel: str, low: str, high: str) -> None:
        """Write one block of channels of a line, of the kernel rows from `low` to `high`."""
        for start, tiles, pairs in stretches_of(self.of, self.height):
            if tiles == 1:
                self.tile_at(str(start), channel, (low, high), pairs)
                continue
            with self.function.loop(str(start), str(start + tiles * self.height), self.height) as place:
                self.tile_at(place, channel, (low, high), pairs)

    def tile_at(self, place: str, channel: str, rows: tuple[str, str], pairs: frozenset[tuple[int, int]]) -> None:
        """Write one tile at the position `place` from the channel `channel` on.

        `rows` are the kernel rows, `pairs` the positions and taps that meet the image.
        """
        e, image, line, vector = self.e, self.image, self.of, self.sums.vector
        taps, step = image.taps[1], image.steps[1]
        start = self.sums.offset_at(self.access.offset, place)
        start = e.put(f"add {self.ix} {start}, {channel}")
        at = e.put(f"getelementptr float, ptr {self.base}, {self.ix} {start}")
        near = e.put(f"mul {self.ix} {channel}, {image.taps[0] * taps}")
        weights = e.put(f"getelementptr float, ptr {self.weights}, {self.ix} {near}")
        slots = [self.sums.slot("zeroinitializer") for _ in range(self.height)]
        with self.function.loop(*rows, 1) as row:
            moved = e.put(f"mul {self.ix} {row}, {image.steps[0] * image.dilation[0]}")
            source = e.put(f"getelementptr float, ptr {at}, {self.ix} {moved}")
            here = e.put(f"mul {self.ix} {row}, {taps * self.sums.lanes * 4}")
            factors = []
            for t in range(taps):
                tap = self.sums.byte(self.sums.byte(weights, here), str(t * self.sums.lanes * 4))
                factors.append(e.put(f"load {vector}, ptr {tap}, align 4"))
            values: dict[int, str] = {}
            for m in range(self.height):
                total = e.put(f"load {vector}, ptr {slots[m]}")
                for t in range(taps):
                    if (m, t) not in pairs:
                        continue
                    column = m * line.stride + t * line.dilation
                    if column not in values:
                        values[column] = self.read(source, column * step)
                    part = e.put(f"fmul contract {vector} {values[column]}, {factors[t]}")
                    total = e.put(f"fadd contract {vector} {total}, {part}")
                e.do(f"store {vector} {total}, ptr {slots[m]}")
        sums = [[e.put(f"load {vector}, ptr {slot}")] for slot in slots]
        places = [place if not m else e.put(f"add {self.ix} {place}, {m}") for m in range(self.height)]
        self.sums.loops.copies = 1
        self.sums.finish_tile(channel, places, sums)

    def read(self, source: str, offset: int) -> str:
        """Return a vector of channels, `offset` elements from `source`."""
        e, vector, at = self.e, self.sums.vector, self.sums.byte(source, str(offset * 4))
        if self.sums.loops.mask is None:
            return e.put(f"load {vector}, ptr {at}, align 4")
        return e.intrinsic(
            vector,
            f"llvm.masked.load.v{self.sums.lanes}f32.p0",
            ["ptr", "i32", f"<{self.sums.lanes} x i1>", vector],
            [at, "4", self.sums.loops.mask, "zeroinitializer"],
        )
