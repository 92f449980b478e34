"""Grid sampling (interpolated reads of images) as LLVM IR (`prims.neural.image_sampling`).

Where the elements around a position lie, and their weights, are the same for all channels. A kernel
computes them once for a block of positions, which are lanes, keeps them on the stack, and goes over
the channels. Reading gathers; adding up goes element by element, by threads that share images and
groups of channels, so that no two write to the same plane.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mycel._src.engines.native.kernels.vector_writer import Vectors
from mycel._src.engines.native.llvm.target import RememberedByTarget
from mycel._src.foundation.bounded_caches import SOME
from mycel._src.foundation.dtype import DType

__all__ = ["CHANNELS", "Form", "block_of", "names_of_words", "sampling_text"]

# The channels of a group whose planes one thread adds up.
CHANNELS = 4
# Positions beyond all images.
FAR = 4e9
_AXES = ("depth", "height", "width")


@dataclass(frozen=True)
class Form:
    """What a kernel's text depends on.

    `what` is "sample", "add" or "slopes", `rank` the number of axes of the image, and `linear` as
    in `prims.neural.image_sampling`.
    """

    what: str
    dtype: DType
    rank: int
    linear: bool


def block_of(form: Form) -> int:
    """Return the number of vectors of positions of a block."""
    return 16 if form.rank < 3 else 8


def names_of_words(form: Form) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of a kernel's numbers and of its addresses, in the order of its words.

    `parts` are the parts of an image's work: blocks of positions, or groups of channels.
    """
    numbers = ("channels", "points", "plane", "parts", *_AXES[3 - form.rank :], "offset", "by_image", "by_channel")
    values = {"sample": ("image", "made"), "add": ("ct", "made"), "slopes": ("image", "ct")}[form.what]
    places = tuple(f"at{k}" for k in range(form.rank))
    slopes = tuple(f"slope{k}" for k in range(form.rank)) if form.what == "slopes" else ()
    return numbers, ("listen", "status", *places, *values, *slopes)


class _Writer(Vectors):
    def __init__(self, form: Form) -> None:
        super().__init__(form.dtype, *names_of_words(form))
        self.form = form
        self.corners = list(itertools.product((0, 1) if form.linear else (0,), repeat=form.rank))
        count = block_of(form) * self.lanes
        c = self.code
        # For each corner of each position of a block: its number in a plane, or -1, and its weight.
        self.flat = [c.slot("i32", count) for _ in self.corners]
        self.weight = [c.slot(self.element, count) for _ in self.corners] if form.linear else []
        self.parts = [c.slot(self.element, count) for _ in range(form.rank)] if form.what == "slopes" else []
        self.sizes = [self.number[name] for name in _AXES[3 - form.rank :]]

    # Positions.

    def prepare(self, line: str, first: str, count: str) -> None:
        """Write where the elements around `count` positions of an image lie, and their weights.

        `line` is where the image's positions begin, and `first` is the first of them. Positions up
        to the end of the last vector are outside.
        """
        c = self.code
        ends = [self.code.put(f"sub i64 {size}, 1") for size in self.sizes]
        last = [self.splat(c.put(f"sitofp i64 {e} to {self.element}")) for e in ends]
        with c.loop("0", count, self.lanes) as k:
            mask = self.below(k, count)
            sides = []
            for axis in range(self.form.rank):
                place = self.load(self.at(self.base[f"at{axis}"], line, first, k), mask, self.constant(-9.0))
                sides.append(self.around(axis, place, last[axis], k))
            for j, corner in enumerate(self.corners):
                self.corner(j, [side[s] for side, s in zip(sides, corner)], k)

    def around(self, axis: int, place: str, last: str, k: str) -> list[tuple[str, str, str]]:
        """Return, for both neighbours along an axis, which are inside, their numbers and weights.

        `place` are the positions, number `k` and more of the block, and `last` the last element's.
        """
        c, kind = self.code, self.kind("i32")
        # What is NaN or far away is outside, with weights that are numbers.
        near = self.compare("olt", self.unary("fabs", place), self.constant(FAR))
        place = self.choose(near, place, self.constant(-9.0))
        low = self.unary("floor", place) if self.form.linear else place
        one, zero = self.constant(1.0), self.constant(0.0)
        part = self.op("fsub", place, low)
        found = []
        for side in (0, 1) if self.form.linear else (0,):
            at = self.op("fadd", low, one) if side else low
            here = c.put(f"and {self.flags} {self.compare('oge', at, zero)}, {self.compare('ole', at, last)}")
            number = c.put(f"fptosi {self.vector} {self.choose(here, at, zero)} to {kind}")
            found.append((here, number, part if side else self.op("fsub", one, part)))
        if self.parts:
            self.store(part, self.at(self.parts[axis], k))
        return found

    def corner(self, j: int, sides: Sequence[tuple[str, str, str]], k: str) -> None:
        """Write the number and the weight of corner `j`, whose `sides` are those of each axis."""
        c, kind = self.code, self.kind("i32")
        here, flat, weight = sides[0]
        for (inside, number, side), size in zip(sides[1:], self.sizes[1:]):
            here = c.put(f"and {self.flags} {here}, {inside}")
            wide = self.splat(c.put(f"trunc i64 {size} to i32"), "i32")
            flat = c.put(f"add {kind} {c.put(f'mul {kind} {flat}, {wide}')}, {number}")
            weight = self.op("fmul", weight, side)
        flat = self.choose(here, flat, self.integers([-1] * self.lanes, "i32"), kind)
        c.store(kind, flat, c.at("i32", self.flat[j], k), align=4)
        if self.weight:
            self.store(weight, self.at(self.weight[j], k))

    # Elements.

    def gathered(self, j: int, plane: str, k: str) -> str:
        """Return the elements of a plane at corner `j` of positions; 0 outside."""
        c, kind = self.code, self.kind("i32")
        flat = c.load(kind, c.at("i32", self.flat[j], k), align=4)
        here = c.put(f"icmp sgt {kind} {flat}, {self.integers([-1] * self.lanes, 'i32')}")
        pointers = c.put(f"getelementptr {self.element}, ptr {plane}, {kind} {flat}")
        name = f"llvm.masked.gather.v{self.lanes}{self.short}.v{self.lanes}p0"
        self.declares.add(f"declare {self.vector} @{name}({self.kind('ptr')}, i32, {self.flags}, {self.vector})")
        return c.put(
            f"call {self.vector} @{name}({self.kind('ptr')} {pointers}, i32 {self.bytes}, {self.flags} {here}, "
            f"{self.vector} zeroinitializer)"
        )

    def weighted(self, j: int, k: str) -> str:
        return self.load(self.at(self.weight[j], k))

    def part(self) -> Iterator[tuple[str, str]]:
        """Write the block for each part of the work; yield its image and its number there."""
        c, parts = self.code, self.number["parts"]
        with c.loop("%begin", "%end") as item:
            yield c.op("sdiv i64", item, parts), c.op("srem i64", item, parts)

    def block(self, part: str) -> tuple[str, str]:
        """Return the first position of a block, and the number of its positions."""
        most = block_of(self.form) * self.lanes
        first = self.times(part, most)
        return first, self.least(self.code.op("sub i64", self.number["points"], first), str(most))

    def plane(self, image: str, channel: str) -> str:
        """Return where the plane of a channel of the operand that is an image begins."""
        n = self.number
        return self.at(
            self.base["image"], n["offset"], self.times(n["by_image"], image), self.times(n["by_channel"], channel)
        )

    def line(self, image: str, channel: str) -> str:
        """Return the number of the first element of a channel among those at positions."""
        n = self.number
        return self.times(self.sum(self.times(n["channels"], image), channel), n["points"])


@RememberedByTarget("kernels of sampling", SOME).calls
def sampling_text(form: Form) -> str:
    """Return the text of a kernel."""
    w = _Writer(form)
    for image, part in w.part():
        {"sample": _sample, "add": _add, "slopes": _slopes}[form.what](w, image, part)
    return w.text()


def _sample(w: _Writer, image: str, part: str) -> None:
    c, n = w.code, w.number
    first, count = w.block(part)
    w.prepare(w.times(n["points"], image), first, count)
    with c.loop("0", n["channels"]) as channel:
        w.listen(channel, "1023")
        plane = w.plane(image, channel)
        line = w.at(w.base["made"], w.line(image, channel), first)
        with c.loop("0", count, w.lanes) as k:
            found = [w.gathered(j, plane, k) for j in range(len(w.corners))]
            if w.form.linear:
                found = [w.op("fmul", x, w.weighted(j, k)) for j, x in enumerate(found)]
            w.store(w.op("fadd", *found), w.at(line, k), w.below(k, count))


def _slopes(w: _Writer, image: str, part: str) -> None:
    c, n, rank = w.code, w.number, w.form.rank
    first, count = w.block(part)
    lines = w.times(n["points"], image)
    w.prepare(lines, first, count)
    with c.loop("0", count, w.lanes) as k:
        w.listen(k, str(-w.lanes))
        mask = w.below(k, count)
        totals = [c.variable(w.vector, "zeroinitializer") for _ in range(rank)]
        parts = [w.load(w.at(p, k)) for p in w.parts]
        rests = [w.op("fsub", w.constant(1.0), p) for p in parts]
        with c.loop("0", n["channels"]) as channel:
            plane = w.plane(image, channel)
            ct = w.load(w.at(w.base["ct"], w.line(image, channel), first, k), mask)
            values = dict(zip(w.corners, [w.gathered(j, plane, k) for j in range(len(w.corners))]))
            for axis, total in enumerate(totals):
                slope = w.op("fmul", _slope(w, values, axis, parts, rests), ct)
                c.store(w.vector, w.op("fadd", c.load(w.vector, total), slope), total)
        for axis, total in enumerate(totals):
            w.store(c.load(w.vector, total), w.at(w.base[f"slope{axis}"], lines, first, k), mask)


def _slope(
    w: _Writer, values: dict[tuple[int, ...], str], axis: int, parts: Sequence[str], rests: Sequence[str]
) -> str:
    """Return the derivatives by the positions along an axis.

    `values` are the elements at the corners; `parts` and `rests` the weights of their upper and
    lower sides.
    """
    found = {
        corner[:axis] + corner[axis + 1 :]: w.op("fsub", values[corner[:axis] + (1,) + corner[axis + 1 :]], low)
        for corner, low in values.items()
        if not corner[axis]
    }
    for other in (k for k in range(w.form.rank) if k != axis):
        found = {
            corner[1:]: w.op(
                "fadd",
                w.op("fmul", low, rests[other]),
                w.op("fmul", found[(1,) + corner[1:]], parts[other]),
            )
            for corner, low in found.items()
            if not corner[0]
        }
    return found[()]


def _add(w: _Writer, image: str, part: str) -> None:
    c, n = w.code, w.number
    most = block_of(w.form) * w.lanes
    begin = w.times(part, CHANNELS)
    end = w.least(w.sum(begin, CHANNELS), n["channels"])
    planes = w.times(w.sum(w.times(n["channels"], image), begin), n["plane"])
    w.fill(w.at(w.base["made"], planes), w.times(c.op("sub i64", end, begin), n["plane"]), 0.0)
    with c.loop("0", n["points"], most) as first:
        w.listen(c.op("sdiv i64", first, str(most)), "255")
        count = w.least(c.op("sub i64", n["points"], first), str(most))
        w.prepare(w.times(n["points"], image), first, count)
        with c.loop(begin, end) as channel:
            plane = w.at(w.base["made"], w.times(w.sum(w.times(n["channels"], image), channel), n["plane"]))
            line = w.at(w.base["ct"], w.line(image, channel), first)
            with c.loop("0", count) as k:
                ct = c.load(w.element, line, k)
                for j in range(len(w.corners)):
                    _add_corner(w, j, plane, k, ct)


def _add_corner(w: _Writer, j: int, plane: str, k: str, ct: str) -> None:
    """Add an element to corner `j` of a position, if it is inside."""
    c = w.code
    flat = c.load("i32", w.flat[j], k)
    with c.when(c.put(f"icmp sgt i32 {flat}, -1")):
        at = c.put(f"sext i32 {flat} to i64")
        if w.weight:
            ct = c.put(f"fmul {w.element} {ct}, {c.load(w.element, w.weight[j], k)}")
        c.store(w.element, c.put(f"fadd {w.element} {c.load(w.element, plane, at)}, {ct}"), plane, at)
