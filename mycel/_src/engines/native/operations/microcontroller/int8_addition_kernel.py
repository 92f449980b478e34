"""int8 addition for microcontrollers: operands and sum are each requantised.

Operands and result are contiguous and in one order, so they are read as one row: four at once in
the lanes of vectors, else one by one. Every number but the bytes is a word of the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

from mycel._src.engines.native.llvm.target import RememberedByTarget
from mycel._src.engines.native.operations.microcontroller.int8_instructions import VECTORS
from mycel._src.engines.native.operations.microcontroller.int8_kernel_writer import ByteWriter
from mycel._src.engines.native.operations.requantisation.microcontroller_requantisation import (
    field_count,
    rescaled,
    rescaled_lanes,
)
from mycel._src.foundation.bounded_caches import SOME

__all__ = ["NUMBERS", "SumForm", "sum_text"]

_PARTS = ("a", "b", "last")
# The words before the addresses of the operands and the result; `channels` counts all elements.
NUMBERS = (
    "channels",
    "x_first",
    "second_first",
    "room",
    "a_zero",
    "b_zero",
    "result_zero",
    "low",
    "high",
    *[f"{part}_{k}" for part in _PARTS for k in range(1, 5)],
)
POINTERS = ("x", "second", "y")


@dataclass(frozen=True)
class SumForm:
    """What the text of a kernel depends on.

    `machine` is how bytes are multiplied; `ragged` says whether elements are no multiple of four.
    `ways` are the ways of rescaling of both operands and of the sum, each with whether it moves.
    """

    machine: str
    ragged: bool
    ways: tuple[tuple[str, bool], ...]


@RememberedByTarget("kernels of sums of bytes", SOME).calls
def sum_text(form: SumForm) -> str:
    """Return the text of the kernel for a form; its range is 1."""
    writer = _Sum(form)
    writer.elements()
    return writer.text()


class _Sum(ByteWriter):
    """A writer of the kernel's text."""

    def __init__(self, form: SumForm) -> None:
        self.form = form
        super().__init__(NUMBERS, POINTERS, not form.ragged, False)
        self.base["second"] = self.code.at("i8", self.base["second"], self.number["second_first"])

    def elements(self) -> None:
        c, n = self.code, self.number
        lanes = self.form.machine == VECTORS
        kind = "<4 x i32>" if lanes else "i32"
        with c.loop("0", n["channels"], 4 if lanes else 1) as k:
            mask = self.mask(k) if lanes and self.form.ragged else ""
            parts = []
            for name, base in (("a", "x"), ("b", "second")):
                place = c.at("i8", self.base[base], k)
                value = self.bytes(place, mask) if lanes else c.put(f"sext i8 {c.load('i8', place)} to i32")
                whole = c.op(f"sub {kind}", value, self.spread(n[f"{name}_zero"]))
                parts.append(self.scaled(name, c.op(f"shl {kind}", whole, self.spread(n["room"])), "0"))
            found = self.scaled("last", c.op(f"add {kind}", *parts), n["result_zero"])
            if lanes:
                self.store_lanes(found, self.base["y"], k, mask)
            else:
                c.store("i8", self.cut(found), self.base["y"], k)

    def spread(self, value: str) -> str:
        return self.lanes(value) if self.form.machine == VECTORS else value

    def scaled(self, name: str, total: str, zero: str) -> str:
        """Return a value, or four of them, rescaled as the part `name` says."""
        c, n = self.code, self.number
        way, moves = self.form.ways[_PARTS.index(name)]
        fields = [self.spread(n[f"{name}_{k + 1}"]) for k in range(field_count(way, moves))]
        write = rescaled_lanes if self.form.machine == VECTORS else rescaled
        return write(c, way, moves, total, fields, zero)
