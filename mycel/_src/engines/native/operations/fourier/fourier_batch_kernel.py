"""Batched FFT (Stockham), with one sequence per vector lane, as LLVM IR.

The lanes of vectors are sequences. A block of as many sequences as there are lanes is brought into
scratch memory, element by element a vector of real and one of imaginary parts; there it takes one
pass for each factor of the size, in Stockham's order, which needs no reversal of digits. After
passes with the product P of factors, element k (n / P) + j is term k of the transform of the
elements at j, j + n / P, ...; a pass with the factor r and L = n / (P r) makes of that

    y[(k + P t) L + j] = sum over i < r of W_r^(i t) W_(P r)^(i k) x[k r L + i L + j]

by the straight code of `fourier_codelets`. The numbers W_(P r)^(i k) come from a table of scalars.

Sequences that lie side by side ("columns": the lanes are contiguous) are read and written by the
first and last passes where they lie. Where sequences themselves are contiguous ("lines"), square
tiles are turned round in registers on the way. Parts lie in pairs, or apart.

n real numbers are m = n / 2 complex ones, those of even and odd places. Their transform Z gives
that of the real numbers by X[k] = (Z[k] + conj Z[m - k]) / 2 - i W_n^k (Z[k] - conj Z[m - k]) / 2
("half"), and the way back ("from_half") is the same in reverse. The inverse is the forward
transform with real and imaginary parts exchanged before and after.

Where a transform is the second half of a longer one, element j of the sequence in place k is
turned by W_N^(j k) as it is read; the factor is a product of two, of tables by the place of a block
and by the lane.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mycel._src.engines.native.llvm.target import RememberedByTarget
from mycel._src.engines.native.operations.fourier.fourier_codelets import Number
from mycel._src.engines.native.operations.fourier.fourier_passes import (
    Array,
    Load,
    Store,
    Vectors,
    vector_lanes,
    write_turns,
)
from mycel._src.foundation.bounded_caches import SOME
from mycel._src.foundation.dtype import DType

__all__ = ["NUMBERS", "Form", "fourier_text", "pointers_of", "scratch_elements", "tables"]

NUMBERS = (
    "units",
    "parts",
    "blocks",
    "lanes",
    "in_outer",
    "in_lane",
    "in_element",
    "re_first",
    "im_first",
    "out_outer",
    "out_lane",
    "out_element",
    "out_first",
)
POINTERS = ("re", "im", "turns", "out", "scratch")


@dataclass(frozen=True)
class Form:
    """What a kernel's text depends on.

    `kind` is "whole", "half" or "from_half", `size` the number of complex numbers that are
    transformed, and `radices` are its factors in the order of passes. `source` and `target` say
    whether "lines" or "columns" are read and written, `given` how the parts lie: in "pairs",
    "apart", or "real" alone. `swapped` exchanges real and imaginary parts, `scaled` multiplies the
    result by the first number of the table, and `turned` tells a second half. With `stack` the
    scratch memory is on the stack.
    """

    dtype: DType
    kind: str
    size: int
    radices: tuple[int, ...]
    source: str
    target: str
    given: str
    swapped: bool
    scaled: bool
    turned: bool
    stack: bool


def scratch_elements(form: Form) -> int:
    """Return the elements of the scratch memory of a block: two copies of it."""
    return 4 * vector_lanes(form.dtype) * (form.size + 1)


def pointers_of(form: Form) -> tuple[str, ...]:
    """Return the names of the buffers whose addresses follow the numbers of a form's words."""
    return tuple(n for n in POINTERS if not (n == "scratch" and form.stack))


class _Layout:
    """Where the parts of a form's table begin."""

    def __init__(self, form: Form) -> None:
        self.passes: list[int] = []
        at, done = 8, 1
        for radix in form.radices:
            self.passes.append(at)
            at += 2 * (radix - 1) * done if done > 1 else 0
            done *= radix
        self.halves = at
        at += 2 * (form.size // 2 + 1) if form.kind != "whole" else 0
        self.lanes = -(-at // 16) * 16
        at = self.lanes + (2 * form.size * vector_lanes(form.dtype) if form.turned else 0)
        self.blocks = self.size = at


def tables(form: Form, scale: float, count: int) -> Array:
    """Return the table of a kernel's numbers.

    `scale` multiplies results; where the form is turned, `count` is the number of sequences.
    """
    layout, m = _Layout(form), form.size
    lanes = vector_lanes(form.dtype)
    head = np.zeros(layout.size)
    head[0] = scale
    done = 1
    for start, radix in zip(layout.passes, form.radices):
        if done > 1:
            turns = np.outer(np.arange(done), np.arange(1, radix))
            write_turns(head, start, turns, done * radix)
        done *= radix
    if form.kind != "whole":
        write_turns(head, layout.halves, np.arange(m // 2 + 1), 2 * m)
    rest = np.zeros(0)
    if form.turned:
        total = m * count
        near = np.outer(np.arange(m), np.arange(lanes)) * (2 * np.pi / total)
        head[layout.lanes :] = np.stack([np.cos(near), -np.sin(near)], 1).reshape(-1)
        first = np.minimum(np.arange(-(-count // lanes)) * lanes, count - lanes)
        rest = np.zeros(2 * m * len(first))
        write_turns(rest, 0, np.outer(first, np.arange(m)), total)
    return np.concatenate([head, rest]).astype(form.dtype.numpy)


class _Writer(Vectors):
    """A writer of one kernel's text."""

    def __init__(self, form: Form) -> None:
        super().__init__(form.dtype)
        self.form, self.layout = form, _Layout(form)
        self.masks: set[str] = set()
        c = self.code
        self.number = {n: c.load("i64", "%words", str(k)) for k, n in enumerate(NUMBERS)}
        start = len(NUMBERS)
        self.base = {n: c.load("ptr", "%words", str(start + k), "i64") for k, n in enumerate(pointers_of(form))}
        self.table = self.base["turns"]
        # Complex numbers of a tile, by the way that they lie in memory.
        self.width = self.lanes // 2 if form.given == "pairs" else self.lanes
        self.half = form.size + 1 if form.kind == "half" else form.size
        block = 2 * self.lanes * (form.size + 1)
        if form.stack:
            first = c.slot(self.element, 2 * block)
        else:
            first = c.at(self.element, self.base["scratch"], c.op("mul i64", "%begin", 2 * block))
        self.near, self.far = first, c.at(self.element, first, str(block))
        self.tile = c.slot(self.element, max(form.radices) * self.lanes * self.lanes * 2)
        self.rows = {"in": c.slot("i64", self.lanes), "out": c.slot("i64", self.lanes)}

    def exchanged(self, x: Number) -> Number:
        return (x[1], x[0]) if self.form.swapped else x

    def result(self, x: Number) -> Number:
        """Return a number of the transform as it is written."""
        re, im = self.exchanged(x)
        if self.form.scaled:
            factor = self.v.splat(self.code.load(self.element, self.table))
            re, im = self.v.mul(re, factor), self.v.mul(im, factor)
        return re, im

    # Memory of operands and results.

    def place_sequences(self, unit: str) -> None:
        """Set the addresses of the block with number `unit`."""
        c, n = self.code, self.number
        outer, block = c.op("udiv i64", unit, n["blocks"]), c.op("urem i64", unit, n["blocks"])
        self.block = block
        first = c.op("mul i64", block, self.lanes)
        if "columns" in (self.form.source, self.form.target):
            # The last block goes back where its lanes would reach beyond the end.
            first = self.least(first, c.op("sub i64", n["lanes"], self.lanes))
        start = {side: c.op("mul i64", outer, n[f"{side}_outer"]) for side in ("in", "out")}
        for side, way in (("in", self.form.source), ("out", self.form.target)):
            if way == "columns":
                start[side] = self.sum(start[side], c.op("mul i64", first, n[f"{side}_lane"]))
                continue
            last = c.op("sub i64", n["lanes"], 1)
            for k in range(self.lanes):
                # Lanes beyond the end repeat the last sequence.
                lane = self.least(self.sum(first, str(k)), last)
                row = self.sum(start[side], c.op("mul i64", lane, n[f"{side}_lane"]))
                c.store("i64", row, self.rows[side], str(k))
        self.re = c.at(self.element, self.base["re"], self.sum(n["re_first"], start["in"]))
        self.im = c.at(self.element, self.base["im"], self.sum(n["im_first"], start["in"]))
        self.out = c.at(self.element, self.base["out"], self.sum(n["out_first"], start["out"]))
        if self.form.source == "lines":
            self.re = c.at(self.element, self.base["re"], n["re_first"])
            self.im = c.at(self.element, self.base["im"], n["im_first"])
        if self.form.target == "lines":
            self.out = c.at(self.element, self.base["out"], n["out_first"])

    def column(self, index: str) -> Number:
        """Return element `index` of sequences that lie side by side."""
        c, offset = self.code, self.code.op("mul i64", index, self.number["in_element"])
        place = c.at(self.element, self.re, offset)
        if self.form.given != "pairs":
            re = c.load(self.vector, place, align=self.bytes)
            if self.form.given == "real":
                return re, "zeroinitializer"
            return re, c.load(self.vector, c.at(self.element, self.im, offset), align=self.bytes)
        for k in (2, 3):
            # The columns of the next block.
            later = c.at(self.element, place, str(k * self.lanes))
            c.do(f"call void @llvm.prefetch.p0(ptr {later}, i32 0, i32 2, i32 1)")
        parts = [c.load(self.vector, place, str(k * self.lanes), self.element, self.bytes) for k in (0, 1)]
        even, odd = (self.shuffled(parts[0], parts[1], [2 * k + p for k in range(self.lanes)]) for p in (0, 1))
        return even, odd

    def put_column(self, index: str, value: Number) -> None:
        """Write element `index` of sequences that lie side by side."""
        c, n = self.code, self.lanes
        place = c.at(self.element, self.out, c.op("mul i64", index, self.number["out_element"]))
        for k in (0, 1):
            later = c.at(self.element, place, str((k + 2) * n))
            c.do(f"call void @llvm.prefetch.p0(ptr {later}, i32 1, i32 2, i32 1)")
            mixed = self.shuffled(*value, [(k * n + j) // 2 + n * (j % 2) for j in range(n)])
            c.store(self.vector, mixed, place, str(k * n), self.element, self.bytes)

    def read_tile(self, start: str, target: str, count: int) -> None:
        """Read `count` elements, from `start` on, of each sequence into scratch at `target`."""
        if self.form.given == "pairs":
            values = self._lines(self.re, self.product(start, 2), 2 * count)
            pairs = list(zip(values[::2], values[1::2]))
        else:
            re = self._lines(self.re, start, count)
            im = ["zeroinitializer"] * self.lanes if self.form.given == "real" else self._lines(self.im, start, count)
            pairs = list(zip(re, im))
        for k, pair in enumerate(pairs[:count]):
            self.put(target, str(k), pair)

    def _lines(self, base: str, start: str, count: int) -> list[str]:
        """Return the columns of a tile that has `count` elements, from `start` on, of each line."""
        c = self.code
        values = []
        for k in range(self.lanes):
            offset = self.sum(c.load("i64", self.rows["in"], str(k)), start)
            values.append(self._some(c.at(self.element, base, offset), count))
        return self.turned_round(values)

    def _mask(self, count: int) -> str:
        return "<" + ", ".join(f"i1 {'true' if k < count else 'false'}" for k in range(self.lanes)) + ">"

    def _some(self, place: str, count: int) -> str:
        if count >= self.lanes:
            return self.code.load(self.vector, place, align=self.bytes)
        kind = f"v{self.lanes}f{8 * self.bytes}"
        self.masks.add("load")
        return self.code.put(
            f"call {self.vector} @llvm.masked.load.{kind}.p0(ptr {place}, i32 {self.bytes}, <{self.lanes} x i1> "
            f"{self._mask(count)}, {self.vector} zeroinitializer)"
        )

    def write_tile(self, start: str, source: str, count: int) -> None:
        """Write `count` elements of scratch at `source` to each sequence, from `start` on."""
        c, kind = self.code, f"v{self.lanes}f{8 * self.bytes}"
        values = ["zeroinitializer"] * self.lanes
        for k in range(count):
            values[2 * k], values[2 * k + 1] = self.get(source, str(k))
        offset = self.product(start, 2)
        for k, row in enumerate(self.turned_round(values)):
            place = c.at(self.element, self.out, self.sum(c.load("i64", self.rows["out"], str(k)), offset))
            if 2 * count >= self.lanes:
                c.store(self.vector, row, place, align=self.bytes)
                continue
            self.masks.add("store")
            c.do(
                f"call void @llvm.masked.store.{kind}.p0({self.vector} {row}, ptr {place}, i32 {self.bytes}, "
                f"<{self.lanes} x i1> {self._mask(2 * count)})"
            )

    def tiles(self, count: int, width: int) -> Iterator[tuple[str, int]]:
        """Write the block for tiles of `width` of `count` elements; yield the first and how many.

        The last tile goes back where it would reach beyond the end.
        """
        width = min(width, count)
        with self.code.loop("0", str(count), width) as start:
            yield (start if count % width == 0 else self.least(start, str(count - width))), width

    # Passes.

    def steps(self) -> None:
        """Write the transform of one block."""
        form = self.form
        block = self.near if form.kind != "from_half" else self.pack()
        ready = form.kind == "from_half"
        done, last = 1, len(form.radices) - 1
        for number, radix in enumerate(form.radices):
            rest = form.size // (done * radix)
            first, ends = number == 0 and not ready, number == last and form.kind != "half"
            if first and form.source == "lines" and rest < self.width:
                for start, count in self.tiles(form.size, self.width):
                    self.read_tile(start, self.slot(block, start), count)
                first = False
            elif first:
                block = self.far
            other = self.far if block is self.near else self.near
            if first and form.source == "lines":
                self.first_lines(radix, rest, other)
            elif ends and form.target == "lines" and done >= self.lanes // 2 and not first:
                self.last_lines(radix, done, block)
            else:
                load = self.entering if first else self.loader(block, number == 0)
                store = self.storer(other)
                if ends:
                    store = self.finisher(other)
                self.between(radix, done, rest, self.layout.passes[number], load, store)
                if ends and form.target == "lines":
                    self.write_all(other, form.size)
            block = other
            done *= radix
        if form.kind == "half":
            self.unpack(block)

    def entering(self, index: str) -> Number:
        return self.exchanged(self.column(index))

    def storer(self, block: str) -> Store:
        return lambda k, x: self.put(block, k, x)

    def finisher(self, block: str) -> Store:
        if self.form.target == "columns":
            return lambda k, x: self.put_column(k, self.result(x))
        return lambda k, x: self.put(block, k, self.result(x))

    def loader(self, block: str, begins: bool) -> Load:
        """Return how a pass reads scratch memory; the first one exchanges parts and turns."""
        if not begins or self.form.kind == "from_half":
            return lambda k: self.get(block, k)
        return lambda k: self.entered(self.get(block, k), k)

    def entered(self, x: Number, index: str) -> Number:
        """Return element `index` of the sequences as the transform takes it."""
        x = self.exchanged(x)
        if not self.form.turned:
            return x
        c, m, layout = self.code, self.form.size, self.layout
        far = self.turn(
            self.sum(str(layout.blocks), c.op("mul i64", self.sum(c.op("mul i64", self.block, m), index), 2))
        )
        line = self.slot(c.at(self.element, self.table, str(layout.lanes)), index)
        near = tuple(c.load(self.vector, line, str(k * self.lanes), self.element, self.bytes) for k in (0, 1))
        return self.v.times(x, self.v.times((near[0], near[1]), far))

    def write_all(self, block: str, size: int) -> None:
        for start, count in self.tiles(size, self.lanes // 2):
            self.write_tile(start, self.slot(block, start), count)

    def first_lines(self, radix: int, rest: int, block: str) -> None:
        """Write the first pass over lines, which brings tiles to `block`."""
        c = self.code
        for start, width in self.tiles(rest, self.width):
            with c.loop("0", str(radix)) as i:
                target = self.slot(self.tile, c.op("mul i64", i, width))
                self.read_tile(self.sum(c.op("mul i64", i, rest), start), target, width)
            with c.loop("0", str(width)) as j:
                at = self.sum(start, j)
                x = [
                    self.entered(self.get(self.tile, self.sum(j, str(i * width))), self.sum(at, str(i * rest)))
                    for i in range(radix)
                ]
                for t, y in enumerate(self.butterfly(x, radix, "")):
                    self.put(block, self.sum(at, str(t * rest)), y)

    def last_lines(self, radix: int, done: int, block: str) -> None:
        """Write the last pass over `block`, whose results are written as lines."""
        c = self.code
        for start, width in self.tiles(done, self.lanes // 2):
            with c.loop("0", str(width)) as j:
                k = self.sum(start, j)
                turns = self.sum(str(self.layout.passes[-1]), c.op("mul i64", k, 2 * (radix - 1)))
                begin = c.op("mul i64", k, radix)
                x = [self.get(block, self.sum(begin, str(m))) for m in range(radix)]
                for t, y in enumerate(self.butterfly(x, radix, turns)):
                    self.put(self.tile, self.sum(j, str(t * width)), self.result(y))
            with c.loop("0", str(radix)) as i:
                source = self.slot(self.tile, c.op("mul i64", i, width))
                self.write_tile(self.sum(c.op("mul i64", i, done), start), source, width)

    # Real numbers.

    def pack(self) -> str:
        """Write Z[k] of half of a transform to scratch memory; return the place."""
        c, m, form = self.code, self.form.size, self.form
        load: Load = self.column
        if form.source == "lines":
            for start, count in self.tiles(m + 1, self.width):
                self.read_tile(start, self.slot(self.far, start), count)
            load = lambda k: self.get(self.far, k)
        low, high = load("0")[0], load(str(m))[0]
        self.put(self.near, "0", self.exchanged((self.v.add(low, high), self.v.sub(low, high))))
        with c.loop("1", str(m // 2 + 1)) as k:
            opposite = c.op("sub i64", str(m), k)
            a, b = load(k), load(opposite)
            even = self.v.add(a[0], b[0]), self.v.sub(a[1], b[1])
            gap = self.v.sub(a[0], b[0]), self.v.add(a[1], b[1])
            w = self.turn(self.sum(str(self.layout.halves), c.op("mul i64", k, 2)))
            # i times the gap times the conjugate of w.
            odd = self.v.times(gap, (w[1], w[0]))
            self.put(self.near, k, self.exchanged(self.v.plus(even, odd)))
            mirrored = self.v.sub(even[0], odd[0]), self.v.sub(odd[1], even[1])
            self.put(self.near, opposite, self.exchanged(mirrored))
        return self.near

    def unpack(self, block: str) -> None:
        """Write the terms X[k] that Z in `block` has, as results."""
        c, m, form = self.code, self.form.size, self.form
        z = self.get(block, "0")
        self.put(block, str(m), z)
        store: Store = self.put_column if form.target == "columns" else lambda k, x: self.put(block, k, x)
        half = self.v.constant(0.5)
        with c.loop("0", str(m // 2 + 1)) as k:
            opposite = c.op("sub i64", str(m), k)
            a, b = self.get(block, k), self.get(block, opposite)
            even = self.v.add(a[0], b[0]), self.v.sub(a[1], b[1])
            gap = self.v.sub(a[0], b[0]), self.v.add(a[1], b[1])
            w = self.turn(self.sum(str(self.layout.halves), c.op("mul i64", k, 2)))
            # -i times the gap times w.
            odd = self.v.times(gap, (w[1], self.v.neg(w[0])))
            x = self.v.plus(even, odd)
            y = self.v.sub(even[0], odd[0]), self.v.sub(odd[1], even[1])
            factor = half
            if form.scaled:
                factor = self.v.mul(half, self.v.splat(c.load(self.element, self.table)))
            store(k, (self.v.mul(x[0], factor), self.v.mul(x[1], factor)))
            store(opposite, (self.v.mul(y[0], factor), self.v.mul(y[1], factor)))
        if form.target == "lines":
            self.write_all(block, m + 1)

    def text(self) -> str:
        """Return the module."""
        c, n = self.code, self.number
        if self.form.stack:
            with c.loop("%begin", "%end") as unit:
                self.place_sequences(unit)
                self.steps()
        else:
            start, end = (c.op("sdiv i64", c.op("mul i64", n["units"], at), n["parts"]) for at in ("%begin", "%end"))
            with c.loop(start, end) as unit:
                self.place_sequences(unit)
                self.steps()
        kind, flags = f"v{self.lanes}f{8 * self.bytes}", f"<{self.lanes} x i1>"
        declares = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)\n"
        if "load" in self.masks:
            declares += f"declare {self.vector} @llvm.masked.load.{kind}.p0(ptr, i32, {flags}, {self.vector})\n"
        if "store" in self.masks:
            declares += f"declare void @llvm.masked.store.{kind}.p0({self.vector}, ptr, i32, {flags})\n"
        return self.module(declares)


@RememberedByTarget("kernels of Fourier transforms", SOME).calls
def fourier_text(form: Form) -> str:
    """Return the text of the kernel of a form."""
    writer = _Writer(form)
    return writer.text()
