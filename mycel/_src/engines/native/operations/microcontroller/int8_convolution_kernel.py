"""int8 convolutions for microcontrollers, as kernels in LLVM IR with requantised int8 results.

A tile is a few places of the result by a few of its channels, whose sums lie in registers. The
bytes that a place meets, its *patch*, lie one behind the other, and so do the weights of a channel,
which were put in order when the library was made: a product of matrices with bytes that are
contiguous. Patches are gathered into scratch memory once for all channels, with the zero point
where they meet the padding; a patch that lies contiguous in the image is read there. Sums begin
with the bias less the zero point times the weights, so bytes are multiplied as they are.

    vectors    Helium's VMLADAVA: sixteen products added to a sum
    pairs      SXTB16 makes of four bytes two pairs of 16 bits, SMLAD adds the products of a pair;
               patches are kept as pairs, so only weights are taken apart for each tile, but for
               the single patch of a dense layer, which would take more memory than it saves time
    plain      bytes one by one

What is summed over has a fixed order in memory: runs of contiguous bytes of the image, one for each
row of the kernel (and channel, where the image has its channels first; and column, where columns of
the kernel are apart). Positions beyond the last are computed again from the last one.

Groups of channels are computed one after the other: tiles of all places for each of them, whose
runs begin at the group's channels.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mycel._src.engines.native.llvm.target import RememberedByTarget
from mycel._src.engines.native.operations.microcontroller.int8_instructions import PAIRS, PLAIN, VECTORS
from mycel._src.engines.native.operations.microcontroller.int8_kernel_writer import ByteWriter
from mycel._src.engines.native.operations.requantisation.microcontroller_requantisation import (
    SUMS,
    field_count,
    rescaled,
    rescaled_lanes,
)
from mycel._src.foundation.bounded_caches import SOME

__all__ = ["NUMBERS", "ByteForm", "products_text"]

# The words before the addresses of the image, the weights, the table, scratch and the result.
# `depth` counts the bytes of a patch, `x_...`, `skip_x` and `run` bytes of the image. `planes` are
# its channels or, where columns of the kernel are apart by `skip_x`, these. A group of `channels`
# has `tiles`; its weights, and its part of the table, begin so many bytes behind those before.
NUMBERS = (
    "total",
    "lines",
    "columns",
    "channels",
    "depth",
    "x_first",
    "x_image",
    "x_plane",
    "x_row",
    "step_y",
    "step_x",
    "skip_y",
    "skip_x",
    "above",
    "left",
    "height",
    "width",
    "planes",
    "rows",
    "run",
    "zero",
    "result_zero",
    "low",
    "high",
    "all_channels",
    "tiles",
    "x_group",
    "weights_group",
    "table_group",
)
POINTERS = ("x", "weights", "table", "scratch", "y")


@dataclass(frozen=True)
class ByteForm:
    """What the text of a kernel depends on.

    `machine` is how bytes are multiplied; a tile has `places` by `channels`. `gathers` says whether
    patches are gathered, `ragged` whether the last tile has fewer channels, `whole` whether a patch
    is whole units of four bytes (of sixteen for vectors), `quads` whether the runs are, and `long`
    whether these have sixteen bytes. `way` and `moves` say how sums are rescaled, and whether they
    are written as they are. `apart` says
    whether planes are columns of the kernel, `grouped` whether there are groups.
    """

    machine: str
    places: int
    channels: int
    gathers: bool
    ragged: bool
    whole: bool
    quads: bool
    long: bool
    way: str
    moves: bool
    apart: bool = False
    grouped: bool = False

    @property
    def direct(self) -> bool:
        """Whether a patch is read in the image although it is taken apart into pairs.

        For a single place that costs little, and takes no memory.
        """
        return self.machine == PAIRS and self.places == 1 and self.whole and not self.gathers

    @property
    def lanes(self) -> bool:
        """Whether sums are rescaled as the lanes of a vector."""
        return self.machine == VECTORS and self.channels == 4

    @property
    def fields(self) -> int:
        """The numbers of a channel in the table."""
        return 1 + field_count(self.way, self.moves)


@RememberedByTarget("kernels of layers of bytes", SOME).calls
def products_text(form: ByteForm) -> str:
    """Return the text of the kernel for a form; its range is over tiles of places."""
    writer = _Products(form)
    writer.tiles()
    return writer.text()


class _Products(ByteWriter):
    """A writer of the kernel's text."""

    def __init__(self, form: ByteForm) -> None:
        self.form = form
        super().__init__(NUMBERS, POINTERS, form.quads, form.machine == VECTORS and form.long)
        self.left = self.number["left"]

    # Tiles of places.

    def tiles(self) -> None:
        c, n, form = self.code, self.number, self.form
        begin, end = self.ends()
        last = c.op("sub i32", n["total"], "1")
        weights, table = self.base["weights"], self.base["table"]
        with c.loop(begin, end) as tile:
            result = self.base["y"]
            if form.grouped:
                group, tile = c.op("udiv i32", tile, n["tiles"]), c.op("urem i32", tile, n["tiles"])
                self.base["weights"] = self.moved(weights, (group, n["weights_group"]))
                self.base["table"] = self.moved(table, (group, n["table_group"]))
                self.left = c.op("sub i32", n["left"], c.op("mul i32", group, n["x_group"]))
                result = self.moved(result, (group, n["channels"]))
            first = c.op("mul i32", tile, str(form.places))
            with self.each_place() as k:
                self.patch(self.least(c.op("add i32", first, k), last), k)
            places = [self.least(c.op("add i32", first, str(k)), last) for k in range(form.places)]
            patches = [self.patch_of(p, k) for k, p in enumerate(places)]
            goals = [self.moved(result, (p, n["all_channels"])) for p in places]
            self.channels(patches, goals)

    @contextmanager
    def each_place(self) -> Iterator[str]:
        """Write the block once for each place of a tile, whose number it gets."""
        if self.form.places == 1:
            yield "0"
        else:
            with self.code.loop("0", str(self.form.places)) as k:
                yield k

    def padded_depth(self, unit: int) -> str:
        """Return the bytes of a patch, in whole units."""
        c, depth = self.code, self.number["depth"]
        return depth if self.form.whole else c.op("and i32", c.op("add i32", depth, str(unit - 1)), str(-unit))

    def patch_of(self, place: str, k: int) -> str:
        """Return the address of the patch of place number `k` of the tile."""
        form = self.form
        if form.machine == PAIRS and not form.direct:
            return self.code.at("i8", self.base["scratch"], str(8 * k))
        if form.gathers:
            return self.moved(self.base["scratch"], (str(k), self.padded_depth(16)))
        return self.moved(self.base["x"], (place, self.number["depth"]))

    def patch(self, place: str, k: str) -> None:
        """Write the patch of a place, which is number `k` of its tile, into scratch memory."""
        n, form = self.number, self.form
        if form.machine != PAIRS or form.direct:
            if form.gathers:
                self.gather(place, self.moved(self.base["scratch"], (k, self.padded_depth(16))))
            return
        source = self.moved(self.base["x"], (place, n["depth"]))
        if form.gathers:
            # Bytes are gathered behind the pairs.
            source = self.moved(self.base["scratch"], (self.padded_depth(4), str(2 * form.places)))
            self.gather(place, source)
        self.widen(source, self.moved(self.base["scratch"], (k, "8")))

    def widen(self, source: str, goal: str) -> None:
        """Write the bytes of a patch as pairs: those of even number, then those of odd number."""
        c, n = self.code, self.number
        quads = c.op("lshr i32", n["depth"], "2")
        step = str(8 * self.form.places)

        def write(word: str, k: str) -> None:
            near = self.moved(goal, (k, step))
            for j, pair in enumerate(self.pairs(word)):
                c.store("i32", pair, near, str(j))

        with c.loop("0", quads) as k:
            write(c.load("i32", source, k, "i32", 1), k)
        if not self.form.whole:
            rest, word = c.op("and i32", n["depth"], "3"), c.variable("i32", "0")
            with c.loop("0", rest) as j:
                at = c.op("add i32", c.op("shl i32", quads, "2"), j)
                byte = c.put(f"zext i8 {c.load('i8', source, at)} to i32")
                c.store(
                    "i32", c.op("or i32", c.load("i32", word), c.op("shl i32", byte, c.op("shl i32", j, "3"))), word
                )
            with c.when(c.op("icmp ne i32", rest, "0")):
                write(c.load("i32", word), quads)

    # Patches.

    def gather(self, place: str, goal: str) -> None:
        """Copy what a place meets of the image to `goal`, run by run."""
        c, n, form = self.code, self.number, self.form
        line, column = c.op("udiv i32", place, n["columns"]), c.op("urem i32", place, n["columns"])
        image, line = c.op("udiv i32", line, n["lines"]), c.op("urem i32", line, n["lines"])
        start = c.op("sub i32", c.op("mul i32", column, n["step_x"]), self.left)
        top = c.op("sub i32", c.op("mul i32", line, n["step_y"]), n["above"])
        base = self.moved(self.base["x"], (image, n["x_image"]), (start, "1"))
        inside = [c.op("icmp sge i32", v, "0") for v in (start, top)]
        last = c.op("add i32", top, c.op("mul i32", c.op("sub i32", n["rows"], "1"), n["skip_y"]))
        inside.append(c.op("icmp slt i32", last, n["height"]))
        # A run is copied in whole words, and may not end behind the row.
        end = c.op("and i32", c.op("add i32", n["run"], "3"), "-4")
        if form.apart:
            end = c.op("add i32", end, c.op("mul i32", c.op("sub i32", n["planes"], "1"), n["skip_x"]))
        inside.append(c.op("icmp sle i32", c.op("add i32", start, end), n["width"]))
        whole = inside[0]
        for test in inside[1:]:
            whole = c.op("and i1", whole, test)
        with c.when(whole):
            with self.runs(base, top, goal) as (source, here, *_):
                if self.vectors:
                    self.span("0", n["run"], here, source)
                else:
                    with c.loop("0", n["run"], 4) as k:
                        self.copied("i32", self.read("i32", c.at("i8", source, k)), c.at("i8", here, k))
        with c.when(c.op("xor i1", whole, "true")):
            self.gather_cut(base, start, top, goal)

    @contextmanager
    def runs(self, base: str, top: str, goal: str) -> Iterator[tuple[str, str, str, str]]:
        """Write the block once for each run of a patch.

        It gets the run's address in the image, that in the patch, the row of the image, and the
        number of the plane. `base` is the patch's first column in the image and `top` its first
        row, `goal` is the patch.
        """
        c, n = self.code, self.number
        at = c.variable("ptr", goal)
        with c.loop("0", n["planes"]) as plane:
            plane_base = self.moved(base, (plane, n["x_plane"]))
            with c.loop("0", n["rows"]) as row:
                y = c.op("add i32", top, c.op("mul i32", row, n["skip_y"]))
                here = c.load("ptr", at)
                yield self.moved(plane_base, (y, n["x_row"])), here, y, plane
                c.store("ptr", c.at("i8", here, n["run"]), at)

    def gather_cut(self, base: str, start: str, top: str, goal: str) -> None:
        """Copy a patch that meets the padding, or ends near the end of a row.

        `base`, `top` and `goal` are as for `runs`, `start` is the number of the first column.
        """
        c, n = self.code, self.number
        fill = self.filling()
        cut = self.cut_of(start)
        with self.runs(base, top, goal) as (source, here, y, plane):
            if self.form.apart:
                cut = self.cut_of(c.op("add i32", start, c.op("mul i32", plane, n["skip_x"])))
            inside = c.op("icmp ult i32", y, n["height"])
            low, high = (c.put(f"select i1 {inside}, i32 {v}, i32 {n['run']}") for v in cut)
            self.span("0", low, here, source, fill)
            self.span(low, high, here, source)
            self.span(high, n["run"], here, source, fill)

    def cut_of(self, start: str) -> tuple[str, str]:
        """Return which bytes of a run that begins at byte `start` of a row lie in the image."""
        c, n = self.code, self.number
        before = self.least(self.most(c.op("sub i32", "0", start), "0"), n["run"])
        return before, self.most(self.least(c.op("sub i32", n["width"], start), n["run"]), before)

    # Tiles of channels.

    def channels(self, patches: list[str], goals: list[str]) -> None:
        c, n, form = self.code, self.number, self.form
        count = form.channels
        depth = n["depth"] if form.machine == PLAIN else self.padded_depth(4 if form.machine == PAIRS else 16)
        with c.loop("0", n["channels"], count) as channel:
            weights = self.moved(self.base["weights"], (channel, depth))
            table = self.moved(self.base["table"], (channel, str(4 * form.fields)))
            starts = [self.field(table, i, 0) for i in range(count)]
            sums = [[c.variable("i32", s) for s in starts] for _ in patches]
            {VECTORS: self.by_vectors, PAIRS: self.by_pairs, PLAIN: self.one_by_one}[form.machine](
                patches, weights, depth, sums
            )
            if form.lanes:
                self.results_of_lanes(channel, table, sums, goals)
            for i in () if form.lanes else range(count):
                at = c.op("add i32", channel, str(i))
                if form.ragged and i:
                    with c.when(c.op("icmp slt i32", at, n["channels"])):
                        self.results(at, i, table, sums, goals)
                else:
                    self.results(at, i, table, sums, goals)

    def field(self, table: str, i: int, f: int) -> str:
        form = self.form
        return self.code.load("i32", table, str(4 * f + i if form.lanes else i * form.fields + f))

    def results_of_lanes(self, channel: str, table: str, sums: list[list[str]], goals: list[str]) -> None:
        """Write the results of a tile of four channels, which are the lanes of vectors.

        `channel` is the number of the first, `table` the address of their numbers, `sums` are the
        addresses of the sums by place and channel, and `goals` those of the places.
        """
        c, n, form, kind = self.code, self.number, self.form, "<4 x i32>"
        mask = self.mask(channel) if form.ragged else ""
        fields = [c.load(kind, table, str(4 * f), "i32", 4) for f in range(1, form.fields)]
        for row, goal in zip(sums, goals):
            totals = "poison"
            for i, slot in enumerate(row):
                totals = c.put(f"insertelement {kind} {totals}, i32 {c.load('i32', slot)}, i32 {i}")
            if form.way == SUMS:
                self.store_sums(totals, goal, channel, mask)
                continue
            found = rescaled_lanes(c, form.way, form.moves, totals, fields, n["result_zero"])
            self.store_lanes(found, goal, channel, mask)

    def store_sums(self, totals: str, goal: str, channel: str, mask: str) -> None:
        """Write four sums, `totals`, at `goal` from a `channel` on; those in a `mask`, if any."""
        c, place = self.code, self.code.at("i32", goal, channel)
        if mask:
            c.do(f"call void @llvm.masked.store.v4i32.p0(<4 x i32> {totals}, ptr {place}, i32 4, <4 x i1> {mask})")
        else:
            c.store("<4 x i32>", totals, place, align=4)

    def results(self, channel: str, i: int, table: str, sums: list[list[str]], goals: list[str]) -> None:
        """Write the results of `channel`, which is number `i` of the tile.

        `table`, `sums` and `goals` are as for `results_of_lanes`.
        """
        c, n, form = self.code, self.number, self.form
        fields = [self.field(table, i, f) for f in range(1, form.fields)]
        for row, goal in zip(sums, goals):
            if form.way == SUMS:
                c.store("i32", c.load("i32", row[i]), goal, channel)
                continue
            found = rescaled(c, form.way, form.moves, c.load("i32", row[i]), fields, n["result_zero"])
            cut = self.least(self.most(found, n["low"]), n["high"])
            c.store("i8", c.put(f"trunc i32 {cut} to i8"), goal, channel)

    def by_pairs(self, patches: list[str], weights: str, depth: str, sums: list[list[str]]) -> None:
        """Add the products of a tile to `sums`, two at a time.

        `patches` are the addresses of what each place reads, `weights` is that of the weights of
        the tile's channels, and `depth` the number of products of a sum.
        """
        c, form = self.code, self.form
        with c.loop("0", c.op("lshr i32", depth, "2")) as k:
            near = self.moved(weights, (k, str(4 * form.channels)))
            if form.direct:
                values = [list(self.pairs(c.load("i32", p, k, "i32", 1))) for p in patches]
            else:
                at = [self.moved(p, (k, str(8 * form.places))) for p in patches]
                values = [[c.load("i32", a, str(j)) for j in range(2)] for a in at]
            for i in range(form.channels):
                for j, factor in enumerate(self.pairs(c.load("i32", near, str(i)))):
                    for row, value in zip(sums, values):
                        total = c.load("i32", row[i])
                        made = c.put(f"call i32 @llvm.arm.smlad(i32 {value[j]}, i32 {factor}, i32 {total})")
                        c.store("i32", made, row[i])

    def by_vectors(self, patches: list[str], weights: str, depth: str, sums: list[list[str]]) -> None:
        """Add the products of a tile to `sums`, sixteen at a time.

        `patches`, `weights` and `depth` are as for `by_pairs`.
        """
        c, form = self.code, self.form
        kind = "<16 x i8>"
        with c.loop("0", depth, 16) as k:
            near = self.moved(weights, (k, str(form.channels)))
            if form.whole:
                values = [c.load(kind, p, k, "i8", 1) for p in patches]
            else:
                mask = self.mask_of_bytes(c.op("sub i32", self.number["depth"], k))
                values = [self.some_bytes(c.at("i8", p, k), mask) for p in patches]
            for i in range(form.channels):
                factor = c.load(kind, near, str(16 * i), "i8", 16)
                for row, value in zip(sums, values):
                    total = c.load("i32", row[i])
                    made = c.put(
                        f"call i32 @llvm.arm.mve.vmldava.v16i8(i32 0, i32 0, i32 0, i32 {total}, {kind} {value}, "
                        f"{kind} {factor})"
                    )
                    c.store("i32", made, row[i])

    def one_by_one(self, patches: list[str], weights: str, depth: str, sums: list[list[str]]) -> None:
        """Add the products of a tile to `sums`, with `patches`, `weights` and `depth` as above."""
        c, form = self.code, self.form
        with c.loop("0", depth) as k:
            near = self.moved(weights, (k, str(form.channels)))
            values = [c.put(f"sext i8 {c.load('i8', p, k)} to i32") for p in patches]
            for i in range(form.channels):
                factor = c.put(f"sext i8 {c.load('i8', near, str(i))} to i32")
                for row, value in zip(sums, values):
                    c.store("i32", c.op("add i32", c.load("i32", row[i]), c.op("mul i32", value, factor)), row[i])
