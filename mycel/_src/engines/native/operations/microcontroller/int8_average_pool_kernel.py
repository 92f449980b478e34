"""int8 average pooling for microcontrollers: sums over windows, requantised.

The image has its channels last, and windows are cut at its edges, so no padding is read. A sum
begins with the zero point, negative, times the bytes that it has. Four channels are summed at once:
by Helium in the lanes of a vector, by the DSP extension two in a word, where 16 bits hold the sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from mycel._src.engines.native.llvm.target import RememberedByTarget
from mycel._src.engines.native.operations.microcontroller.int8_instructions import VECTORS
from mycel._src.engines.native.operations.microcontroller.int8_kernel_writer import ByteWriter
from mycel._src.engines.native.operations.requantisation.microcontroller_requantisation import (
    field_count,
    rescaled,
    rescaled_lanes,
)
from mycel._src.foundation.bounded_caches import SOME

__all__ = ["NARROW", "NUMBERS", "PoolForm", "pool_text"]

# Sums of so many bytes have 16 bits.
NARROW = 256
# The words before the addresses of the image and the result. `x_...` count bytes; `field_...` are
# the numbers with which sums are rescaled.
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
    "taps",
    "zero",
    "result_zero",
    "low",
    "high",
    "field_1",
    "field_2",
    "field_3",
    "field_4",
)


@dataclass(frozen=True)
class PoolForm:
    """What the text of a kernel depends on.

    `machine` is how bytes are multiplied; `ragged` says whether channels are no multiple of four.
    With `narrow` sums have 16 bits, in pairs. `way` and `moves` say how sums are rescaled, and
    `by_count` whether by numbers of their own for each number of bytes, from a table.
    """

    machine: str
    ragged: bool
    narrow: bool
    way: str
    moves: bool
    by_count: bool

    @property
    def fields(self) -> int:
        """The numbers with which sums are rescaled."""
        return field_count(self.way, self.moves)


@RememberedByTarget("kernels of averages of bytes", SOME).calls
def pool_text(form: PoolForm) -> str:
    """Return the text of the kernel for a form; its range is over images."""
    writer = _Pool(form)
    writer.images()
    return writer.text()


class _Window(NamedTuple):
    """What of a window is in the image, in values of the code.

    `start` is the address of its first place; it has `rows` and `columns`. Sums begin with `first`,
    and are rescaled with the numbers `fields`.
    """

    start: str
    rows: str
    columns: str
    first: str
    fields: list[str]


class _Pool(ByteWriter):
    """A writer of the kernel's text."""

    window: _Window

    def __init__(self, form: PoolForm) -> None:
        self.form = form
        pointers = ("x", "table", "y") if form.by_count else ("x", "y")
        super().__init__(NUMBERS, pointers, not form.ragged, form.machine == VECTORS)

    def images(self) -> None:
        c, n = self.code, self.number
        begin, end = self.ends()
        with c.loop(begin, end) as image, c.loop("0", n["lines"]) as line, c.loop("0", n["columns"]) as column:
            top, bottom = self.inside(line, "step_y", "above", "rows", "height")
            left, right = self.inside(column, "step_x", "left", "taps", "width")
            count = c.op("mul i32", c.op("sub i32", bottom, top), c.op("sub i32", right, left))
            first = c.op("sub i32", "0", c.op("mul i32", count, n["zero"]))
            fields = self.fields_of(count)
            start = self.moved(self.base["x"], (image, n["x_image"]), (top, n["x_row"]), (left, n["channels"]))
            self.window = _Window(start, c.op("sub i32", bottom, top), c.op("sub i32", right, left), first, fields)
            place = c.op("add i32", c.op("mul i32", c.op("mul i32", image, n["lines"]), n["columns"]), column)
            place = c.op("add i32", place, c.op("mul i32", line, n["columns"]))
            self.channels(self.moved(self.base["y"], (place, n["channels"])))

    def inside(self, place: str, step: str, before: str, size: str, end: str) -> tuple[str, str]:
        """Return the part of a window that is inside of the image, along one axis.

        `place` is its number; `step`, `before`, `size` and `end` are the names of numbers.
        """
        c, n = self.code, self.number
        start = c.op("sub i32", c.op("mul i32", place, n[step]), n[before])
        low, high = self.most(start, "0"), self.least(c.op("add i32", start, n[size]), n[end])
        return low, self.most(high, low)

    def fields_of(self, count: str) -> list[str]:
        """Return the numbers with which a sum of so many bytes is rescaled."""
        c, size = self.code, self.form.fields
        if not self.form.by_count:
            return [self.number[f"field_{k + 1}"] for k in range(size)]
        row = self.moved(self.base["table"], (count, str(4 * size)))
        return [c.load("i32", c.at("i8", row, str(4 * k))) for k in range(size)]

    def channels(self, goal: str) -> None:
        """Write all channels of a place, behind `goal`."""
        c, n, form = self.code, self.number, self.form
        if form.machine == VECTORS:
            with c.loop("0", n["channels"], 4) as channel:
                self.lane(goal, channel)
            return
        whole = c.op("and i32", n["channels"], "-4")
        with c.loop("0", whole, 4) as channel:
            for k, total in enumerate(self.pairs_of(channel) if form.narrow else self.bytes_of(channel, 4)):
                self.result(total, goal, c.op("add i32", channel, str(k)))
        if form.ragged:
            with c.loop(whole, n["channels"]) as channel:
                self.result(self.bytes_of(channel, 1)[0], goal, channel)

    def lane(self, goal: str, channel: str) -> None:
        """Write four channels from `channel` on, behind `goal`, in the lanes of a vector."""
        c, form, kind = self.code, self.form, "<4 x i32>"
        mask = self.mask(channel) if form.ragged else ""
        total = c.variable(kind, self.lanes(self.window.first))
        with self.taps(channel) as at:
            c.store(kind, c.op(f"add {kind}", c.load(kind, total), self.bytes(at, mask)), total)
        fields = [self.lanes(f) for f in self.window.fields]
        found = rescaled_lanes(c, form.way, form.moves, c.load(kind, total), fields, self.number["result_zero"])
        self.store_lanes(found, goal, channel, mask)

    def bytes_of(self, channel: str, count: int) -> list[str]:
        """Return the sums of `count` channels from `channel` on."""
        c = self.code
        sums = [c.variable("i32", self.window.first) for _ in range(count)]
        with self.taps(channel) as at:
            for k, total in enumerate(sums):
                value = c.put(f"sext i8 {c.load('i8', c.at('i8', at, str(k)))} to i32")
                c.store("i32", c.op("add i32", c.load("i32", total), value), total)
        return [c.load("i32", total) for total in sums]

    def pairs_of(self, channel: str) -> list[str]:
        """Return the sums of four channels, from `channel` on, which were added two in a word."""
        c = self.code
        sums = [c.variable("i32", "0") for _ in range(2)]
        with self.taps(channel) as at:
            word = c.load("i32", at, align=1)
            turned = c.put(f"call i32 @llvm.fshr.i32(i32 {word}, i32 {word}, i32 8)")
            for total, value in zip(sums, (word, turned)):
                c.store("i32", c.put(f"call i32 @llvm.arm.sxtab16(i32 {c.load('i32', total)}, i32 {value})"), total)
        even, odd = (c.load("i32", total) for total in sums)
        low = [c.op("ashr i32", c.op("shl i32", v, 16), 16) for v in (even, odd)]
        high = [c.op("ashr i32", v, 16) for v in (even, odd)]
        return [c.op("add i32", v, self.window.first) for v in (*low, *high)]

    @contextmanager
    def taps(self, channel: str) -> Iterator[str]:
        """Write the block for each place of the window; yield the address of a channel there."""
        c, n, window = self.code, self.number, self.window
        with c.loop("0", window.rows) as row:
            at = c.variable("ptr", self.moved(window.start, (row, n["x_row"]), (channel, "1")))
            with c.loop("0", window.columns):
                here = c.load("ptr", at)
                yield here
                c.store("ptr", self.moved(here, (n["channels"], "1")), at)

    def result(self, total: str, goal: str, channel: str) -> None:
        """Write a sum, `total`, as the byte of a `channel` behind `goal`."""
        c, form = self.code, self.form
        found = rescaled(c, form.way, form.moves, total, self.window.fields, self.number["result_zero"])
        c.store("i8", self.cut(found), goal, channel)
