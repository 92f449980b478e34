"""Sums of bytes over windows for small processors, rescaled to bytes: kernels of averages.

The image has its channels last, and windows are cut at its edges, so no padding is read. A sum
begins with the zero point, negative, times the bytes that it has. Helium sums four channels at
once, in the lanes of a vector.
"""

from __future__ import annotations

from dataclasses import dataclass

from mycel.base.remembered import SOME
from mycel.engines.native.dense.byte_machine import VECTORS
from mycel.engines.native.dense.byte_writer import ByteWriter
from mycel.engines.native.dense.rescaling import field_count, rescaled, rescaled_lanes
from mycel.engines.native.llvm.target import RememberedByTarget

__all__ = ["NUMBERS", "PoolForm", "pool_text"]

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
POINTERS = ("x", "y")


@dataclass(frozen=True)
class PoolForm:
    """What the text of a kernel depends on.

    `machine` is how bytes are multiplied; `ragged` says whether channels are no multiple of four.
    `way` and `moves` say how sums are rescaled.
    """

    machine: str
    ragged: bool
    way: str
    moves: bool

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


class _Pool(ByteWriter):
    """A writer of the kernel's text."""

    def __init__(self, form: PoolForm) -> None:
        self.form = form
        super().__init__(NUMBERS, POINTERS, not form.ragged, form.machine == VECTORS)

    def images(self) -> None:
        c, n = self.code, self.number
        begin, end = self.ends()
        with c.loop(begin, end) as image, c.loop("0", n["lines"]) as line, c.loop("0", n["columns"]) as column:
            top, bottom = self.inside(line, "step_y", "above", "rows", "height")
            left, right = self.inside(column, "step_x", "left", "taps", "width")
            count = c.op("mul i32", c.op("sub i32", bottom, top), c.op("sub i32", right, left))
            first = c.op("sub i32", "0", c.op("mul i32", count, n["zero"]))
            base = self.moved(self.base["x"], (image, n["x_image"]))
            place = c.op("add i32", c.op("mul i32", c.op("mul i32", image, n["lines"]), n["columns"]), column)
            place = c.op("add i32", place, c.op("mul i32", line, n["columns"]))
            goal = self.moved(self.base["y"], (place, n["channels"]))
            lanes = self.form.machine == VECTORS
            with c.loop("0", n["channels"], 4 if lanes else 1) as channel:
                kind = "<4 x i32>" if lanes else "i32"
                total = c.variable(kind, self.lanes(first) if lanes else first)
                mask = self.mask(channel) if lanes and self.form.ragged else ""
                with c.loop(top, bottom) as y:
                    near = self.moved(base, (y, n["x_row"]), (left, n["channels"]), (channel, "1"))
                    at = c.variable("ptr", near)
                    with c.loop(left, right):
                        here = c.load("ptr", at)
                        value = self.bytes(here, mask) if lanes else c.put(f"sext i8 {c.load('i8', here)} to i32")
                        c.store(kind, c.op(f"add {kind}", c.load(kind, total), value), total)
                        c.store("ptr", self.moved(here, (n["channels"], "1")), at)
                self.result(c.load(kind, total), goal, channel, mask)

    def inside(self, place: str, step: str, before: str, size: str, end: str) -> tuple[str, str]:
        """Return the part of a window that is inside of the image, along one axis.

        `place` is its number; `step`, `before`, `size` and `end` are the names of numbers.
        """
        c, n = self.code, self.number
        start = c.op("sub i32", c.op("mul i32", place, n[step]), n[before])
        low, high = self.most(start, "0"), self.least(c.op("add i32", start, n[size]), n[end])
        return low, self.most(high, low)

    def result(self, total: str, goal: str, channel: str, mask: str) -> None:
        """Write `total` as a byte of a `channel` behind `goal`; of lanes, those of `mask`."""
        c, n, form = self.code, self.number, self.form
        fields = [n[f"field_{k + 1}"] for k in range(form.fields)]
        if form.machine == VECTORS:
            found = rescaled_lanes(c, form.way, form.moves, total, [self.lanes(f) for f in fields], n["result_zero"])
            self.store_lanes(found, goal, channel, mask)
        else:
            found = rescaled(c, form.way, form.moves, total, fields, n["result_zero"])
            c.store("i8", self.cut(found), goal, channel)
