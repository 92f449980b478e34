"""Four-step FFT of one contiguous sequence after the other, as LLVM IR.

n = a b numbers are a table of a rows. As many columns as there are lanes are transformed side by
side, straight from memory, and written to a table in scratch memory; as many of its rows are turned
round in registers, multiplied by W_n^(j k), transformed, and written where the terms belong, which
is contiguous again. All of it stays in near caches, and memory is read and written in order. Where
the lanes of the last columns would reach beyond the end, they go back and repeat some.

Real numbers are taken in pairs, as `fourier_batch_kernel` says, with the lanes along the terms: a
second vector is read in reverse.
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

__all__ = ["TableForm", "table_numbers", "table_text"]

NUMBERS = ("in_row", "re_first", "im_first", "out_row")


@dataclass(frozen=True)
class TableForm:
    """What a kernel's text depends on.

    `kind`, `given`, `swapped` and `scaled` are as in `fourier_batch_kernel.Form`; `first` are the
    factors of the columns' size, `second` those of the rows'.
    """

    dtype: DType
    kind: str
    first: tuple[int, ...]
    second: tuple[int, ...]
    given: str
    swapped: bool
    scaled: bool


class _Layout:
    """The sizes of a table, and where the parts of its numbers begin."""

    def __init__(self, form: TableForm) -> None:
        lanes = vector_lanes(form.dtype)
        self.down, self.across = (int(np.prod(radices)) for radices in (form.first, form.second))
        self.size = self.down * self.across
        self.parts: list[list[int]] = []
        at = 8
        for radices in (form.first, form.second):
            done, starts = 1, []
            for radix in radices:
                starts.append(at)
                at += 2 * (radix - 1) * done if done > 1 else 0
                done *= radix
            self.parts.append(starts)
        self.turns = -(-at // 16) * 16
        self.blocks = -(-self.down // lanes)
        self.halves = self.turns + 2 * lanes * self.blocks * self.across
        self.end = self.halves + (2 * (self.size + 1) if form.kind != "whole" else 0)


def table_numbers(form: TableForm, scale: float) -> Array:
    """Return the table of a kernel's numbers; `scale` multiplies results."""
    layout, lanes = _Layout(form), vector_lanes(form.dtype)
    found = np.zeros(layout.end)
    found[0] = scale
    for radices, starts in zip((form.first, form.second), layout.parts):
        done = 1
        for radix, start in zip(radices, starts):
            if done > 1:
                write_turns(found, start, np.outer(np.arange(done), np.arange(1, radix)), done * radix)
            done *= radix
    first = np.minimum(np.arange(layout.blocks) * lanes, layout.down - lanes)
    rows = (first[:, None] + np.arange(lanes))[:, None, :] * np.arange(layout.across)[None, :, None]
    angles = rows % layout.size * (2 * np.pi / layout.size)
    found[layout.turns : layout.halves] = np.stack([np.cos(angles), -np.sin(angles)], 2).reshape(-1)
    if form.kind != "whole":
        angles = np.arange(layout.size + 1) * (np.pi / layout.size)
        found[layout.halves :] = np.concatenate([np.cos(angles), -np.sin(angles)])
    return found.astype(form.dtype.numpy)


class _Writer(Vectors):
    """A writer of one kernel's text."""

    def __init__(self, form: TableForm) -> None:
        super().__init__(form.dtype)
        self.form, self.layout = form, _Layout(form)
        c, layout, lanes = self.code, self.layout, self.lanes
        self.number = {n: c.load("i64", "%words", str(k)) for k, n in enumerate(NUMBERS)}
        start = len(NUMBERS)
        base = {n: c.load("ptr", "%words", str(start + k), "i64") for k, n in enumerate(("re", "im", "turns", "out"))}
        self.base, self.table = base, base["turns"]
        longest = max(layout.down, layout.across)
        self.near, self.far = (c.slot(self.element, 2 * lanes * longest) for _ in range(2))
        # Rows lie a vector further apart than they are long, so that they do not meet in caches.
        self.row = layout.across + lanes
        self.grid = [c.slot(self.element, layout.down * self.row) for _ in range(2)]
        # Of real numbers, all terms; their parts apart.
        self.whole = [c.slot(self.element, layout.size + 2 * lanes) for _ in range(2)] if form.kind != "whole" else []

    def at(self, base: str, index: str) -> str:
        return self.code.at(self.element, base, index)

    def vector_at(self, base: str, index: str) -> str:
        return self.code.load(self.vector, self.at(base, index), align=self.bytes)

    def keep(self, value: str, base: str, index: str) -> None:
        self.code.store(self.vector, value, self.at(base, index), align=self.bytes)

    def exchanged(self, x: Number) -> Number:
        return (x[1], x[0]) if self.form.swapped else x

    def starts(self, count: int) -> Iterator[tuple[str, str]]:
        """Write the block for each block of lanes of `count`; yield its first and its number."""
        c = self.code
        with c.loop("0", str(-(-count // self.lanes))) as block:
            first = c.op("mul i64", block, self.lanes)
            yield (first if count % self.lanes == 0 else self.least(first, str(count - self.lanes))), block

    # Memory.

    def read(self, index: str) -> Number:
        """Return the numbers of the sequence from `index` on."""
        if self.form.given == "pairs":
            place = self.at(self.re, self.product(index, 2))
            a, b = (self.code.load(self.vector, place, str(k * self.lanes), self.element, self.bytes) for k in (0, 1))
            even, odd = (self.shuffled(a, b, [2 * k + p for k in range(self.lanes)]) for p in (0, 1))
            return even, odd
        re = self.vector_at(self.re, index)
        return re, "zeroinitializer" if self.form.given == "real" else self.vector_at(self.im, index)

    def write(self, index: str, value: Number) -> None:
        """Write terms from `index` on, as pairs."""
        n, place = self.lanes, self.at(self.out, self.product(index, 2))
        for k in (0, 1):
            mixed = self.shuffled(*value, [(k * n + j) // 2 + n * (j % 2) for j in range(n)])
            self.code.store(self.vector, mixed, place, str(k * n), self.element, self.bytes)

    def scaled(self, x: Number) -> Number:
        if not self.form.scaled:
            return x
        factor = self.v.splat(self.code.load(self.element, self.table))
        return self.v.mul(x[0], factor), self.v.mul(x[1], factor)

    def reversed(self, x: str) -> str:
        return self.shuffled(x, x, list(range(self.lanes - 1, -1, -1)))

    # The transform.

    def chain(self, radices: tuple[int, ...], starts: list[int], load: Load, store: Store) -> None:
        """Write passes by `radices` from `load` to `store`; their numbers begin at `starts`."""
        size, done = int(np.prod(radices)), 1
        here, there = self.near, self.far
        for number, radix in enumerate(radices):
            get = load if number == 0 else self.loads(here)
            put = store if number == len(radices) - 1 else self.stores(there)
            self.between(radix, done, size // (done * radix), starts[number], get, put)
            done *= radix
            here, there = there, here

    def loads(self, block: str) -> Load:
        return lambda k: self.get(block, k)

    def stores(self, block: str) -> Store:
        return lambda k, x: self.put(block, k, x)

    def columns(self, load: Load) -> None:
        """Write the transforms of the columns of the table that `load` reads."""
        layout = self.layout
        for first, _ in self.starts(layout.across):

            def get(row: str, first: str = first) -> Number:
                return load(self.sum(self.code.op("mul i64", row, layout.across), first))

            def put(row: str, value: Number, first: str = first) -> None:
                place = self.sum(self.code.op("mul i64", row, self.row), first)
                for part, base in zip(value, self.grid):
                    self.keep(part, base, place)

            self.chain(self.form.first, layout.parts[0], get, put)

    def rows(self, store: Store) -> None:
        """Write the transforms of the rows, whose terms `store` writes."""
        c, layout = self.code, self.layout
        for first, block in self.starts(layout.down):
            turns = c.op("mul i64", block, 2 * self.lanes * layout.across)
            turns = self.at(self.table, self.sum(str(layout.turns), turns))
            for column, _ in self.starts(layout.across):
                parts = []
                for base in self.grid:
                    lines = [
                        self.sum(c.op("mul i64", self.sum(first, str(k)), self.row), column) for k in range(self.lanes)
                    ]
                    parts.append(self.turned_round([self.vector_at(base, line) for line in lines]))
                for k, value in enumerate(zip(*parts)):
                    index = self.sum(column, str(k))
                    place = self.product(index, 2 * self.lanes)
                    turn = (self.vector_at(turns, place), self.vector_at(turns, self.sum(place, str(self.lanes))))
                    self.put(self.near, index, self.v.times((value[0], value[1]), turn))

            def put(column: str, value: Number, first: str = first) -> None:
                store(self.sum(c.op("mul i64", column, layout.down), first), value)

            # The rows lie in the first of the two blocks, which the first pass reads.
            self.chain(self.form.second, layout.parts[1], lambda k: self.get(self.near, k), put)

    def kept(self, index: str, value: Number) -> None:
        """Write numbers to the terms that are kept."""
        for part, base in zip(value, self.whole):
            self.keep(part, base, index)

    def both_ends(self, read: Load, sign: int) -> Iterator[tuple[str, str, Number, Number]]:
        """Write the block for the terms from k and, in reverse, to m - k; yield both places, and
        the sum and difference of which their results are made.
        """
        c, m, v = self.code, self.layout.size, self.v
        half = -(-(m // 2 + 1) // self.lanes) * self.lanes
        with c.loop("0", str(half), self.lanes) as low:
            high = c.op("sub i64", str(m - self.lanes + 1), low)
            a, b = read(low), read(high)
            b = self.reversed(b[0]), self.reversed(b[1])
            even = v.add(a[0], b[0]), v.sub(a[1], b[1])
            gap = v.sub(a[0], b[0]), v.add(a[1], b[1])
            place = self.sum(str(self.layout.halves), low)
            w = self.vector_at(self.table, place), self.vector_at(self.table, self.sum(place, str(m + 1)))
            # -i w or i conj w.
            turn = (w[1], v.neg(w[0])) if sign < 0 else (w[1], w[0])
            yield low, high, even, v.times(gap, turn)

    def mirrored(self, even: Number, odd: Number) -> tuple[Number, Number]:
        """Return the results for k, and those for m - k in their order there."""
        v = self.v
        other = v.sub(even[0], odd[0]), v.sub(odd[1], even[1])
        return v.plus(even, odd), (self.reversed(other[0]), self.reversed(other[1]))

    def unpack(self) -> None:
        """Write the terms of real numbers from those of their pairs."""
        c, m = self.code, self.layout.size
        for base in self.whole:
            c.store(self.element, c.load(self.element, base), base, str(m))

        def read(index: str) -> Number:
            return self.vector_at(self.whole[0], index), self.vector_at(self.whole[1], index)

        half = self.v.constant(0.5)
        for low, high, even, odd in self.both_ends(read, -1):
            for place, x in zip((low, high), self.mirrored(even, odd)):
                self.write(place, self.scaled((self.v.mul(x[0], half), self.v.mul(x[1], half))))

    def pack(self) -> None:
        """Write the pairs' terms from those of real numbers to the terms that are kept."""
        c, m = self.code, self.layout.size
        for low, high, even, odd in self.both_ends(self.read, 1):
            # The same value from both ends where they meet.
            for place, x in zip((low, high), self.mirrored(even, odd)):
                self.kept(place, self.exchanged(x))
        step = 2 if self.form.given == "pairs" else 1
        first, last = (c.load(self.element, self.re, str(step * k)) for k in (0, m))
        sides = [c.put(f"{op} {self.element} {first}, {last}") for op in ("fadd", "fsub")]
        for value, base in zip(self.exchanged((sides[0], sides[1])), self.whole):
            c.store(self.element, value, base)

    def text(self) -> str:
        """Return the module."""
        c, form = self.code, self.form
        with c.loop("%begin", "%end") as sequence:
            move = c.op("mul i64", sequence, self.number["in_row"])
            self.re = self.at(self.base["re"], self.sum(self.number["re_first"], move))
            self.im = self.at(self.base["im"], self.sum(self.number["im_first"], move))
            self.out = self.at(self.base["out"], c.op("mul i64", sequence, self.number["out_row"]))
            if form.kind == "from_half":
                self.pack()
                self.columns(lambda k: (self.vector_at(self.whole[0], k), self.vector_at(self.whole[1], k)))
            else:
                self.columns(lambda k: self.exchanged(self.read(k)))
            if form.kind == "half":
                self.rows(self.kept)
                self.unpack()
            else:
                self.rows(lambda k, x: self.write(k, self.scaled(self.exchanged(x))))
        return self.module("")


@RememberedByTarget("kernels of tables of Fourier transforms", SOME).calls
def table_text(form: TableForm) -> str:
    """Return the text of the kernel of a form.

    The words are `NUMBERS`, and the addresses of real and imaginary parts, of the table of numbers
    and of the results; threads share sequences.
    """
    return _Writer(form).text()
