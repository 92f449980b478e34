"""int8 depthwise convolutions for microcontrollers, as kernels in LLVM IR with int8 results.

The image has its channels last. As many of its rows as the kernel spans are kept in scratch memory,
with the zero point around them, and a line of the result comes of these rows alone: so every place
is computed alike, each byte is copied once, and the result may take the image's memory as far as
its lines are already copied. Row r of the padded image is in slot r modulo the number of slots.

Four channels are computed at once: in the lanes of a vector, or as two pairs of 16 bits, whose
lower and upper halves are multiplied one by one (SMLABB, SMLATT). Helium computes eight where
channels divide so, with products of the even and of the odd ones (VMULLB, VMULLT). Weights lie in
the order in which they are read: for each four or eight channels, tap by tap.
"""

from __future__ import annotations

from dataclasses import dataclass

from mycel._src.engines.native.llvm.target import RememberedByTarget
from mycel._src.engines.native.operations.microcontroller.int8_instructions import PAIRS, VECTORS
from mycel._src.engines.native.operations.microcontroller.int8_kernel_writer import ByteWriter
from mycel._src.engines.native.operations.requantisation.microcontroller_requantisation import (
    field_count,
    rescaled,
    rescaled_lanes,
)
from mycel._src.foundation.bounded_caches import SOME

__all__ = ["NUMBERS", "DepthwiseForm", "depthwise_text"]

# The words before the addresses of the image, the weights, the table, scratch and the result.
# `x_...` and `ring_row` count bytes; `width` are those of a row of the image, `left` those before.
# `rows` is the number of slots, `skip_...` are the distances of the taps in rows and in bytes.
NUMBERS = (
    "lines",
    "columns",
    "channels",
    "x_first",
    "x_image",
    "x_row",
    "step_y",
    "step_x",
    "above",
    "left",
    "height",
    "width",
    "rows",
    "skip_y",
    "skip_x",
    "ring_row",
    "zero",
    "result_zero",
    "low",
    "high",
)
POINTERS = ("x", "weights", "table", "scratch", "y")


@dataclass(frozen=True)
class DepthwiseForm:
    """What the text of a kernel depends on.

    `machine` is how bytes are multiplied; `rows` and `columns` are those of the kernel. `count`
    channels are computed at once, four or eight; `ragged` says whether channels are no multiple of
    four. `way` and `moves` say how sums are rescaled.
    """

    machine: str
    rows: int
    columns: int
    count: int
    ragged: bool
    way: str
    moves: bool

    @property
    def fields(self) -> int:
        """The numbers of a channel in the table."""
        return 1 + field_count(self.way, self.moves)

    @property
    def weight_bytes(self) -> int:
        """The bytes of the weights of four channels for a tap."""
        return 8 if self.machine == PAIRS else 4


@RememberedByTarget("kernels of depthwise layers of bytes", SOME).calls
def depthwise_text(form: DepthwiseForm) -> str:
    """Return the text of the kernel for a form; its range is over images."""
    writer = _Depthwise(form)
    writer.images()
    return writer.text()


class _Depthwise(ByteWriter):
    """A writer of the kernel's text."""

    def __init__(self, form: DepthwiseForm) -> None:
        self.form = form
        super().__init__(NUMBERS, POINTERS, not form.ragged, form.machine == VECTORS)

    def images(self) -> None:
        c, n = self.code, self.number
        begin, end = self.ends()
        fill = self.filling()
        ring = self.base["scratch"]
        line_bytes = c.op("mul i32", n["columns"], n["channels"])
        with c.loop(begin, end) as image:
            base = self.moved(self.base["x"], (image, n["x_image"]))
            goal = self.moved(self.base["y"], (image, c.op("mul i32", n["lines"], line_bytes)))
            self.span("0", c.op("mul i32", n["ring_row"], n["rows"]), ring, ring, fill)
            known = c.variable("i32", "0")
            with c.loop("0", n["lines"]) as line:
                first = c.op("mul i32", line, n["step_y"])
                last = c.op("add i32", first, n["rows"])
                with c.loop(self.most(c.load("i32", known), first), last) as row:
                    self.fetch(base, row, fill)
                c.store("i32", last, known)
                taps = [c.op("mul i32", n["skip_y"], str(k)) for k in range(self.form.rows)]
                slots = [self.slot(c.op("add i32", first, tap)) for tap in taps]
                self.line(slots, self.moved(goal, (line, line_bytes)))

    def slot(self, row: str) -> str:
        """Return the address of a row of the padded image."""
        n = self.number
        return self.moved(self.base["scratch"], (self.code.op("urem i32", row, n["rows"]), n["ring_row"]))

    def fetch(self, base: str, row: str, fill: str) -> None:
        """Copy a row of the padded image into its slot; around it there is the zero point."""
        c, n = self.code, self.number
        y = c.op("sub i32", row, n["above"])
        inside = c.op("icmp ult i32", y, n["height"])
        goal = c.at("i8", self.slot(row), n["left"])
        width = c.put(f"select i1 {inside}, i32 {n['width']}, i32 0")
        self.span("0", width, goal, self.moved(base, (y, n["x_row"])))
        self.span(width, n["width"], goal, goal, fill)

    def line(self, slots: list[str], goal: str) -> None:
        """Write a line of the result from the rows that it meets."""
        c, n, form = self.code, self.number, self.form
        step = c.op("mul i32", n["step_x"], n["channels"])
        taps = form.rows * form.columns
        with c.loop("0", n["columns"]) as column:
            at, offset = self.moved(goal, (column, n["channels"])), c.op("mul i32", column, step)
            with c.loop("0", n["channels"], form.count) as channel:
                place = c.op("add i32", offset, channel)
                reads = [self.moved(s, (place, "1"), (str(k), n["skip_x"])) for s in slots for k in range(form.columns)]
                weights = self.moved(self.base["weights"], (channel, str(taps * form.weight_bytes // 4)))
                table = self.moved(self.base["table"], (channel, str(4 * form.fields)))
                if form.count == 8:
                    self.eight(reads, weights, table, at, channel)
                elif form.machine == VECTORS:
                    self.vector(reads, weights, table, at, channel)
                else:
                    self.four(reads, weights, table, at, channel)

    def vector(self, reads: list[str], weights: str, table: str, goal: str, channel: str) -> None:
        """Write four channels of a place from four lanes.

        `reads` are the addresses of the taps, `weights` and `table` those of the numbers of the
        channels, `goal` is that of the place, and `channel` the number of the first.
        """
        c, n, form = self.code, self.number, self.form
        kind = "<4 x i32>"
        mask = self.mask(channel) if form.ragged else ""
        fields = [c.load(kind, table, str(4 * f), "i32", 4) for f in range(form.fields)]
        total = fields[0]
        for t, read in enumerate(reads):
            factors = self.bytes(read, mask), self.bytes(c.at("i8", weights, str(4 * t)), "")
            total = c.op(f"add {kind}", total, c.op(f"mul {kind}", *factors))
        found = rescaled_lanes(c, form.way, form.moves, total, fields[1:], n["result_zero"])
        self.store_lanes(found, goal, channel, mask)

    def eight(self, reads: list[str], weights: str, table: str, goal: str, channel: str) -> None:
        """Write eight channels of a place: those of even number in one vector, the others in one.

        The arguments, `reads`, `weights`, `table`, `goal` and `channel`, are as for `vector`.
        """
        c, n, form = self.code, self.number, self.form
        kind, half = "<4 x i32>", "<8 x i16>"
        fields = [
            [c.load(kind, table, str(4 * (part * form.fields + f)), "i32", 4) for f in range(form.fields)]
            for part in range(2)
        ]
        totals = [f[0] for f in fields]
        for t, read in enumerate(reads):
            x, w = (
                c.put(f"sext <8 x i8> {c.load('<8 x i8>', place, align=1)} to {half}")
                for place in (read, c.at("i8", weights, str(8 * t)))
            )
            for part in range(2):
                made = c.put(f"call {kind} @llvm.arm.mve.vmull.v4i32.v8i16({half} {x}, {half} {w}, i32 0, i32 {part})")
                totals[part] = c.op(f"add {kind}", totals[part], made)
        parts = []
        for total, numbers in zip(totals, fields):
            found = rescaled_lanes(c, form.way, form.moves, total, numbers[1:], n["result_zero"])
            parts.append(c.put(f"bitcast {kind} {self.cut_lanes(found)} to {half}"))
        order = ", ".join(f"i32 {k}" for k in (0, 8, 2, 10, 4, 12, 6, 14))
        both = c.put(f"shufflevector {half} {parts[0]}, {half} {parts[1]}, <8 x i32> <{order}>")
        c.store("<8 x i8>", c.put(f"trunc {half} {both} to <8 x i8>"), c.at("i8", goal, channel), align=1)

    def four(self, reads: list[str], weights: str, table: str, goal: str, channel: str) -> None:
        """Write four channels of a place one by one.

        The arguments, `reads`, `weights`, `table`, `goal` and `channel`, are as for `vector`.
        """
        c, n, form = self.code, self.number, self.form
        fields = [[c.load("i32", table, str(i * form.fields + f)) for f in range(form.fields)] for i in range(4)]
        totals = [f[0] for f in fields]
        for t, read in enumerate(reads):
            if form.machine == PAIRS:
                halves = self.pairs(c.load("i32", read, align=1))
                factors = [c.load("i32", weights, str(2 * t + j)) for j in range(2)]
                for i in range(4):
                    name = "smlatt" if i > 1 else "smlabb"
                    totals[i] = c.put(
                        f"call i32 @llvm.arm.{name}(i32 {halves[i % 2]}, i32 {factors[i % 2]}, i32 {totals[i]})"
                    )
            else:
                for i in range(4):
                    x, w = (
                        c.put(f"sext i8 {c.load('i8', base, str(k))} to i32")
                        for base, k in ((read, i), (weights, 4 * t + i))
                    )
                    totals[i] = c.op("add i32", totals[i], c.op("mul i32", x, w))
        for i, (total, numbers) in enumerate(zip(totals, fields)):
            at = c.op("add i32", channel, str(i))
            found = self.cut(rescaled(c, form.way, form.moves, total, numbers[1:], n["result_zero"]))
            if form.ragged and i:
                with c.when(c.op("icmp slt i32", at, n["channels"])):
                    c.store("i8", found, goal, at)
            else:
                c.store("i8", found, goal, at)
