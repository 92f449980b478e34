"""Recurrent layers as LLVM IR: the product of the state with its weights, and the gates.

The weights are packed before: a *panel* has, for each row of the product, the `vectors` vectors
that lie side by side in registers. On the way forward these are one vector of each gate, for the
same elements of the state, so that the gates meet where the product ends; on the way back they are
neighbouring elements. Tiles of few rows of the batch, as many as registers hold, go over a part
of a panel that a near cache holds; their sums lie on the stack between parts, and while the gates
of their rows are computed.

Rows of the batch do not meet. So one kernel takes a share of the rows through all times
(``by_columns=False``); where there are few rows for much weight, a kernel takes the panels of one
time, and a loop runs it. An element is always the sum of the same products in the same order,
however rows and panels are shared out.

Without `whole`, the last panel has elements beyond the state, which are neither read nor written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from mycel._src.engines.native.kernels.codegen import NAME
from mycel._src.engines.native.llvm.function_builder import Code
from mycel._src.engines.native.llvm.target import RememberedByTarget, target
from mycel._src.engines.native.math import function_definitions
from mycel._src.foundation.bounded_caches import SOME
from mycel._src.foundation.dtype import DType

__all__ = ["Form", "backward_text", "forward_text", "lanes_of", "names_of_words"]

_NUMBERS = ("time", "batch", "hidden", "first", "step", "ticks", "panels", "p_offset", "p_time", "p_row")
# In which order the weights' rows meet cotangents is in `prims.neural.recurrence`.
_GATES = {"tanh": 1, "relu": 1, "gru": 3, "lstm": 4}
_PARTS = {"tanh": 1, "relu": 1, "gru": 4, "lstm": 4}
# Tiles whose sums lie on the stack at once; rows of a panel that stay in a near cache meanwhile;
# and how many rows ahead weights are fetched.
TILES, DEEP, AHEAD = 8, 512, 16


@dataclass(frozen=True)
class Form:
    """What a kernel's text depends on.

    `mode`, `masked` and `given` are those of `prims.neural.recurrence`, `backward` tells the
    derivative, `dtype` is the element type. `vectors` is the number of vectors of a panel, `whole`
    says that panels end where states do, and `keeps` that the values for the derivative are
    written.
    """

    mode: str
    dtype: DType
    masked: bool
    whole: bool
    vectors: int
    by_columns: bool
    backward: bool = False
    keeps: bool = False
    given: tuple[bool, ...] = ()


def lanes_of(dtype: DType) -> int:
    """Return the number of elements of a vector."""
    return target().vector_bytes // dtype.itemsize


def names_of_words(form: Form) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of a kernel's numbers and of its buffers, in the order of its words.

    Between them lie the words of `mycel_listen` and of the status, unless it works `by_columns`,
    where the number of the step is the first buffer.
    """
    lstm, gated = form.mode == "lstm", form.mode in ("lstm", "gru")
    names = ["number"] if form.by_columns else []
    if form.backward:
        names += ["weights", "h0", "states"]
        names += ["c0", "cells"] if lstm else []
        names += ["gates"] if gated else []
        names += ["mask"] if form.masked else []
        names += [n for n, there in zip(("ct_states", "ct_h", "ct_c"), form.given) if there]
        return _NUMBERS, (*names, "parts", "dh", *(["dc"] if lstm else []))
    names += ["p", "weights", "bias", "h0", *(["c0"] if lstm else [])]
    names += ["mask"] if form.masked else []
    names += ["states", "h", *(["c"] if lstm else [])]
    kept = (["cells"] if lstm else []) + (["gates"] if gated else []) if form.keeps else []
    return _NUMBERS, (*names, *kept)


def _registers() -> int:
    return 32 if "avx512f" in target().feature_set or target().is_family("aarch64") else 16


class _Writer:
    """A writer of one kernel's text."""

    def __init__(self, form: Form) -> None:
        self.form, self.code = form, Code()
        self.lanes = lanes_of(form.dtype)
        self.element = "float" if form.dtype.itemsize == 4 else "double"
        self.short = f"f{8 * form.dtype.itemsize}"
        self.bytes = form.dtype.itemsize
        self.vector, self.flags = f"<{self.lanes} x {self.element}>", f"<{self.lanes} x i1>"
        self.functions: list[tuple[str, str, int]] = []
        c = self.code
        numbers, buffers = names_of_words(form)
        between = 0 if form.by_columns else 2
        self.number = {n: c.load("i64", "%words", str(k)) for k, n in enumerate(numbers)}
        calls = [c.load("ptr", "%words", str(len(numbers) + k), "i64") for k in range(between)]
        self.calls = calls
        start = len(numbers) + between
        self.base = {n: c.load("ptr", "%words", str(start + k), "i64") for k, n in enumerate(buffers)}
        # Sums, and beside them one vector of the weights and one element of the state.
        self.rows = max((_registers() - form.vectors - 2) // form.vectors, 1)
        self.scratch = c.slot(self.element, TILES * self.rows * form.vectors * self.lanes)

    # Values.

    def splat(self, value: str, kind: str = "") -> str:
        kind = kind or self.element
        vector = f"<{self.lanes} x {kind}>"
        first = self.code.put(f"insertelement {vector} undef, {kind} {value}, i32 0")
        return self.code.put(f"shufflevector {vector} {first}, {vector} undef, <{self.lanes} x i32> zeroinitializer")

    def constant(self, value: str) -> str:
        return "<" + ", ".join([f"{self.element} {value}"] * self.lanes) + ">"

    def op(self, name: str, a: str, b: str) -> str:
        return self.code.put(f"{name} contract {self.vector} {a}, {b}")

    def add(self, a: str, b: str) -> str:
        return self.op("fadd", a, b)

    def sub(self, a: str, b: str) -> str:
        return self.op("fsub", a, b)

    def mul(self, *values: str) -> str:
        total = values[0]
        for v in values[1:]:
            total = self.op("fmul", total, v)
        return total

    def call(self, name: str, x: str) -> str:
        self.functions.append((name, self.short, self.lanes))
        symbol = function_definitions.symbol(name, self.short, self.lanes)
        return self.code.put(f"call {self.vector} @{symbol}({self.vector} {x})")

    def slope(self, y: str) -> str:
        """Return y * (1 - y), the derivative of the logistic function of value y."""
        return self.mul(y, self.sub(self.constant("1.0"), y))

    def square_slope(self, y: str) -> str:
        """Return 1 - y * y, the derivative of the hyperbolic tangent of value y."""
        return self.sub(self.constant("1.0"), self.mul(y, y))

    def choose(self, flag: str, a: str, b: str) -> str:
        return self.code.put(f"select i1 {flag}, {self.vector} {a}, {self.vector} {b}")

    # Memory.

    def place(self, base: str, *parts: tuple[str, str]) -> str:
        """Return the address of an element, at the sum of products from `base`."""
        c, total = self.code, "0"
        for a, b in parts:
            part = a if b == "1" else c.op("mul i64", a, b)
            total = part if total == "0" else c.op("add i64", total, part)
        return base if total == "0" else c.at(self.element, base, total)

    def load(self, place: str, mask: str, offset: str = "0") -> str:
        """Return a vector, `offset` elements behind `place`; "" as a mask stands for all lanes."""
        c = self.code
        place = place if offset == "0" else c.at(self.element, place, offset)
        if not mask:
            return c.load(self.vector, place, align=self.bytes)
        return c.put(
            f"call {self.vector} @llvm.masked.load.v{self.lanes}{self.short}.p0(ptr {place}, i32 {self.bytes}, "
            f"{self.flags} {mask}, {self.vector} zeroinitializer)"
        )

    def store(self, value: str, place: str, mask: str, offset: str = "0") -> None:
        """Write a vector `value`, in the lanes of `mask`, `offset` elements behind `place`."""
        c = self.code
        place = place if offset == "0" else c.at(self.element, place, offset)
        if not mask:
            c.store(self.vector, value, place, align=self.bytes)
            return
        c.do(
            f"call void @llvm.masked.store.v{self.lanes}{self.short}.p0({self.vector} {value}, ptr {place}, i32 "
            f"{self.bytes}, {self.flags} {mask})"
        )

    def lanes_below(self, start: str) -> str:
        """Return the mask of the lanes whose elements, from `start` on, are the state's; or ""."""
        if self.form.whole:
            return ""
        c, kind = self.code, f"<{self.lanes} x i64>"
        each = ", ".join(f"i64 {k}" for k in range(self.lanes))
        place = c.put(f"add {kind} {self.splat(start, 'i64')}, <{each}>")
        return c.put(f"icmp slt {kind} {place}, {self.splat(self.number['hidden'], 'i64')}")

    # Loops.

    def blocks(self, start: str, end: str) -> Iterator[tuple[str, str]]:
        """Write the block for each block of rows; yield its first row and its number of rows."""
        yield from self._parts(start, end, TILES * self.rows)

    def _parts(self, start: str, end: str, most: int) -> Iterator[tuple[str, str]]:
        c = self.code
        with c.loop(start, end, most) as first:
            left = c.op("sub i64", end, first)
            few = c.put(f"icmp slt i64 {left}, {most}")
            yield first, c.put(f"select i1 {few}, i64 {left}, i64 {most}")

    def product(self, a: str, gap: str, panel: str, depth: str, count: str, first: Sequence[str] | None = None) -> None:
        """Write the sums of a block of `count` rows, `gap` elements apart from `a` on, to scratch.

        `panel` is the address of the weights, `depth` the number of their rows, and `first` has the
        vectors that the sums of each row begin with; zeros without it.
        """
        c, vectors = self.code, self.form.vectors
        begin = first or ["zeroinitializer"] * vectors
        if first is None:
            # Nothing may be multiplied.
            with c.when(c.put(f"icmp eq i64 {depth}, 0")):
                with c.loop("0", c.op("mul i64", count, vectors)) as k:
                    self.store("zeroinitializer", self.place(self.scratch, (k, str(self.lanes))), "")
        for start, length in self._parts("0", depth, DEEP):
            weights = self.place(panel, (start, str(vectors * self.lanes)))
            for row, rows in self._parts("0", count, self.rows):
                lines = self.place(a, (row, gap), (start, "1"))
                sums = self.place(self.scratch, (row, str(vectors * self.lanes)))
                for most in range(self.rows, 0, -1):
                    with c.when(c.put(f"icmp eq i64 {rows}, {most}")):
                        self._tile(most, lines, gap, weights, (start, length), sums, begin)

    def _tile(
        self, rows: int, a: str, gap: str, weights: str, part: tuple[str, str], sums: str, begin: Sequence[str]
    ) -> None:
        """Write the sums of a tile of `rows` rows with another part of a panel.

        The elements of the rows begin at `a`, `gap` apart, and the `weights` are those of the part,
        of which the first row and the number of rows are given. `sums` is where the sums lie, which
        before the first part are `begin`.
        """
        start, depth = part
        c, vectors = self.code, range(self.form.vectors)
        lines = [self.place(a, (str(m), gap)) if m else a for m in range(rows)]
        places = [[str((m * len(vectors) + v) * self.lanes) for v in vectors] for m in range(rows)]
        totals = [[c.variable(self.vector, v) for v in begin] for _ in lines]
        with c.when(c.put(f"icmp ne i64 {start}, 0")):
            for own, kept in zip(totals, places):
                for total, k in zip(own, kept):
                    c.store(self.vector, self.load(sums, "", k), total)
        with c.loop("0", depth) as k:
            at = c.at(self.element, weights, c.op("mul i64", k, len(vectors) * self.lanes))
            for v in vectors:
                later = c.at(self.element, at, str((AHEAD * len(vectors) + v) * self.lanes))
                c.do(f"call void @llvm.prefetch.p0(ptr {later}, i32 0, i32 3, i32 1)")
            factors = [self.load(at, "", str(v * self.lanes)) for v in vectors]
            for line, own in zip(lines, totals):
                x = self.splat(c.load(self.element, line, k))
                for total, factor in zip(own, factors):
                    c.store(self.vector, self.add(c.load(self.vector, total), self.mul(x, factor)), total)
        for own, kept in zip(totals, places):
            for total, k in zip(own, kept):
                self.store(c.load(self.vector, total), sums, "", k)

    def sum_of(self, row: str, vector: str) -> str:
        """Return a vector of the sums in scratch."""
        at = self.code.op("add i64", self.code.op("mul i64", row, self.form.vectors), vector)
        return self.load(self.place(self.scratch, (at, str(self.lanes))), "")

    @contextmanager
    def times(self, count: str) -> Iterator[tuple[str, str, str, str, str, str]]:
        """Write the block for each of `count` steps.

        Yields the number of the step and its time, and the rows and panels to do: where they begin
        and end.
        """
        c, n = self.code, self.number

        def time_of(number: str) -> str:
            return c.op("add i64", n["first"], c.op("mul i64", number, n["step"]))

        if self.form.by_columns:
            number = c.load("i64", self.base["number"])
            yield number, time_of(number), "0", n["batch"], "%begin", "%end"
            return
        with c.loop("0", count) as number:
            due = c.put(f"icmp eq i64 {c.op('and i64', number, n['ticks'])}, {n['ticks']}")
            with c.when(due):
                c.leave_if(c.put(f"call i1 {self.calls[0]}(ptr {self.calls[1]})"), "void")
            yield number, time_of(number), "%begin", "%end", "0", n["panels"]

    def shown(self, time: str, row: str) -> str:
        """Return whether the step of a time is one of the sequence in a row; "" where all are."""
        if not self.form.masked:
            return ""
        c = self.code
        at = c.op("add i64", c.op("mul i64", time, self.number["batch"]), row)
        return c.put(f"icmp ne i8 {c.load('i8', self.base['mask'], at)}, 0")

    def text(self) -> str:
        c = self.code
        c.do("ret void")
        body = c.function("void", NAME, "ptr noalias readonly %words, i64 %begin, i64 %end", "")
        head, _, rest = body.partition(") {")
        kind, bits = f"v{self.lanes}{self.short}", target().vector_bytes * 8
        declares = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)\n"
        declares += (
            ""
            if self.form.whole
            else (
                f"declare {self.vector} @llvm.masked.load.{kind}.p0(ptr, i32, {self.flags}, {self.vector})\n"
                f"declare void @llvm.masked.store.{kind}.p0({self.vector}, ptr, i32, {self.flags})\n"
            )
        )
        widths = f'attributes #0 = {{ nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}" }}\n'
        return f"{head}) #0 {{{rest}\n{function_definitions.definitions(self.functions)}{declares}{widths}"


# The way forward.


@RememberedByTarget("kernels of recurrences", SOME).calls
def forward_text(form: Form) -> str:
    """Return the text of the kernel of a recurrence."""
    w = _Writer(form)
    c, n, base, gates = w.code, w.number, w.base, _GATES[form.mode]
    hidden, all_ = n["hidden"], c.op("mul i64", n["batch"], n["hidden"])
    last = c.op("sub i64", n["time"], 1)
    if not form.by_columns:
        _unchanged(w)
    with w.times(n["time"]) as (number, time, first_row, end_row, first_panel, end_panel):
        begins, ends = c.put(f"icmp eq i64 {number}, 0"), c.put(f"icmp eq i64 {number}, {last}")
        before = w.place(base["states"], (c.op("sub i64", time, n["step"]), all_))
        before = c.put(f"select i1 {begins}, ptr {base['h0']}, ptr {before}")
        now = w.place(base["states"], (time, all_))
        given = w.place(base["p"], (n["p_offset"], "1"), (time, n["p_time"]))
        cell = c.put(f"select i1 {begins}, ptr {base['c0']}, ptr {base['c']}") if form.mode == "lstm" else ""
        with c.loop(first_panel, end_panel) as panel:
            weights = w.place(base["weights"], (c.op("mul i64", panel, hidden), str(gates * w.lanes)))
            column = c.op("mul i64", panel, w.lanes)
            mask = w.lanes_below(column)
            bias = [
                w.load(w.place(base["bias"], (column, "1")), mask, "0" if not k else c.op("mul i64", hidden, k))
                for k in range(_PARTS[form.mode])
            ]
            # The parts of a GRU are those of the new state, twice, around the gates.
            begin = [bias[1], bias[2], bias[0]] if form.mode == "gru" else bias
            for row, count in w.blocks(first_row, end_row):
                w.product(w.place(before, (row, hidden)), hidden, weights, hidden, count, begin)
                with c.loop("0", count) as m:
                    at = c.op("add i64", row, m)
                    element = (c.op("mul i64", at, hidden), "1"), (column, "1")
                    line = w.place(given, (at, n["p_row"]), (column, "1"))
                    parts = [w.load(line, mask, "0" if not k else c.op("mul i64", hidden, k)) for k in range(gates)]
                    sums = [w.sum_of(m, str(k)) for k in range(gates)]
                    old = w.place(before, *element)
                    if form.mode == "gru":
                        parts[2] = w.add(parts[2], bias[3])
                    inner = w.place(cell, *element) if cell else ""
                    h, c_new, kept = _gates_forward(w, parts, sums, old, inner, mask)
                    shown = w.shown(time, at)
                    if shown:
                        h = w.choose(shown, h, w.load(old, mask))
                    w.store(h, w.place(now, *element), mask)
                    with c.when(ends):
                        w.store(h, w.place(base["h"], *element), mask)
                    if c_new:
                        if shown:
                            c_new = w.choose(shown, c_new, w.load(w.place(cell, *element), mask))
                        w.store(c_new, w.place(base["c"], *element), mask)
                        if form.keeps:
                            w.store(c_new, w.place(base["cells"], (time, all_), *element), mask)
                    if form.keeps and kept:
                        _keep(w, kept, time, all_, at, column, mask)
    return w.text()


def _keep(w: _Writer, kept: Sequence[str], time: str, all_: str, row: str, column: str, mask: str) -> None:
    """Write the four values of each element of a row that the derivative reads."""
    c, hidden = w.code, w.number["hidden"]
    wide = c.op("mul i64", all_, 4)
    line = w.place(w.base["gates"], (time, wide), (c.op("mul i64", row, hidden), "4"), (column, "1"))
    for k, value in enumerate(kept):
        w.store(value, line, mask, "0" if not k else c.op("mul i64", hidden, k))


def _gates_forward(
    w: _Writer, parts: Sequence[str], sums: Sequence[str], old: str, cell: str, mask: str
) -> tuple[str, str, Sequence[str]]:
    """Return the next h, the next c of an LSTM, and what is kept.

    `parts` and `sums` are the two addends of the gates, `old` and `cell` the addresses of h and c
    before the step, and `mask` has the lanes in use.
    """
    mode = w.form.mode
    if mode == "gru":
        r, z = (w.call("sigmoid", w.add(parts[k], sums[k])) for k in range(2))
        m = sums[2]
        n = w.call("tanh", w.add(parts[2], w.mul(r, m)))
        return w.add(n, w.mul(z, w.sub(w.load(old, mask), n))), "", (r, z, n, m)
    total = [w.add(p, s) for p, s in zip(parts, sums)]
    if mode == "lstm":
        i, f, g, o = (w.call(name, x) for name, x in zip(("sigmoid", "sigmoid", "tanh", "sigmoid"), total))
        c = w.add(w.mul(f, w.load(cell, mask)), w.mul(i, g))
        return w.mul(o, w.call("tanh", c)), c, (i, f, g, o)
    if mode == "tanh":
        return w.call("tanh", total[0]), "", ()
    # A NaN is not below zero, and stays.
    below = w.code.put(f"fcmp olt {w.vector} {total[0]}, zeroinitializer")
    return w.code.put(f"select {w.flags} {below}, {w.vector} zeroinitializer, {w.vector} {total[0]}"), "", ()


def _unchanged(w: _Writer) -> None:
    """Write the copy of the first states to the last ones where there is no time."""
    c, hidden = w.code, w.number["hidden"]
    with c.when(c.put(f"icmp eq i64 {w.number['time']}, 0")):
        start, end = (c.op("mul i64", v, hidden) for v in ("%begin", "%end"))
        for source, target in (("h0", "h"), ("c0", "c")):
            if target in w.base:
                with c.loop(start, end) as k:
                    c.store(w.element, c.load(w.element, w.base[source], k), w.base[target], k)


# The way back.


@RememberedByTarget("kernels of derivatives of recurrences", SOME).calls
def backward_text(form: Form) -> str:
    """Return the text of the kernel of a recurrence's derivative.

    Behind the last step there is one more, which gives the cotangent of the first h.
    """
    w = _Writer(form)
    c, n, base = w.code, w.number, w.base
    hidden, all_ = n["hidden"], c.op("mul i64", n["batch"], n["hidden"])
    width = c.op("mul i64", hidden, _PARTS[form.mode])
    depth = c.op("mul i64", hidden, _GATES[form.mode])
    source = base["cells" if form.mode == "lstm" else "states"]
    last = c.op("sub i64", n["time"], 1)
    with w.times(c.op("add i64", n["time"], 1)) as (number, time, first_row, end_row, first_panel, end_panel):
        begins, over = c.put(f"icmp eq i64 {number}, 0"), c.put(f"icmp eq i64 {number}, {n['time']}")
        goes_on = c.put(f"icmp slt i64 {number}, {n['time']}")
        # Before the first step there is nothing to multiply.
        long = c.put(f"select i1 {begins}, i64 0, i64 {depth}")
        met = w.place(base["parts"], (c.op("sub i64", time, n["step"]), c.op("mul i64", n["batch"], width)))
        met = c.put(f"select i1 {begins}, ptr {base['parts']}, ptr {met}")
        earlier = w.place(source, (c.op("add i64", time, n["step"]), all_))
        final = c.put(f"icmp eq i64 {number}, {last}")
        earlier = c.put(f"select i1 {final}, ptr {base['c0' if form.mode == 'lstm' else 'h0']}, ptr {earlier}")
        with c.loop(first_panel, end_panel) as panel:
            weights = w.place(base["weights"], (c.op("mul i64", panel, depth), str(form.vectors * w.lanes)))
            for row, count in w.blocks(first_row, end_row):
                w.product(w.place(met, (row, width)), width, weights, long, count)
                with c.loop("0", count) as m:
                    at = c.op("add i64", row, m)
                    shown = ""
                    with c.loop("0", str(form.vectors)) as v:
                        column = c.op("mul i64", c.op("add i64", c.op("mul i64", panel, form.vectors), v), w.lanes)
                        mask = w.lanes_below(column)
                        element = (c.op("mul i64", at, hidden), "1"), (column, "1")
                        beside = w.load(w.place(base["dh"], *element), mask)
                        given = w.load(w.place(base["ct_h"], *element), mask) if "ct_h" in base else "zeroinitializer"
                        dh = w.add(w.sum_of(m, v), w.choose(begins, given, beside))
                        with c.when(over):
                            w.store(dh, w.place(base["dh"], *element), mask)
                            if "dc" in base:
                                w.store(_cell_cotangent(w, element, mask, begins), w.place(base["dc"], *element), mask)
                        with c.when(goes_on):
                            shown = w.shown(time, at)
                            places = tuple(w.place(s, *element) for s in (w.place(source, (time, all_)), earlier))
                            _gates_backward(w, dh, places, (time, all_), at, column, element, mask, shown, begins)
    return w.text()


def _cell_cotangent(w: _Writer, element: tuple[tuple[str, str], ...], mask: str, begins: str) -> str:
    """Return the cotangent of c after a step: the given one where the way back `begins`."""
    given = w.load(w.place(w.base["ct_c"], *element), mask) if "ct_c" in w.base else "zeroinitializer"
    return w.choose(begins, given, w.load(w.place(w.base["dc"], *element), mask))


def _gates_backward(
    w: _Writer,
    dh: str,
    places: tuple[str, ...],
    time: tuple[str, str],
    row: str,
    column: str,
    element: tuple[tuple[str, str], ...],
    mask: str,
    shown: str,
    begins: str,
) -> None:
    """Write the cotangents of the gates of one vector, and what goes on beside the product.

    `dh` is the cotangent of h without that of all states, `places` are those of the state after
    the step and before it, `time` is the offset of the time's states, and `element` that of the
    vector in them, which is in `row` and begins at `column`. `mask` has the lanes in use, `shown`
    tells whether the step is one of the sequence, and `begins` whether it is the first one back.
    """
    c, base, mode, hidden = w.code, w.base, w.form.mode, w.number["hidden"]
    if "ct_states" in base:
        dh = w.add(dh, w.load(w.place(base["ct_states"], time, *element), mask))
    count = _PARTS[mode]
    wide = c.op("mul i64", time[1], count)
    offsets = ["0", *[c.op("mul i64", hidden, k) for k in range(1, count)]]
    line = (time[0], wide), (c.op("mul i64", row, hidden), str(count)), (column, "1")
    gates = [w.load(w.place(base["gates"], *line), mask, k) for k in offsets] if count > 1 else []
    now, before = (w.load(p, mask) for p in places)
    beside, dc, old = "zeroinitializer", "", ""
    one = w.constant("1.0")
    if mode == "gru":
        r, z, n, m = gates
        dn = w.mul(dh, w.sub(one, z), w.square_slope(n))
        parts = [w.mul(dn, r), w.mul(dn, m, w.slope(r)), w.mul(dh, w.sub(before, n), w.slope(z)), dn]
        beside = w.mul(dh, z)
    elif mode == "lstm":
        i, f, g, o = gates
        t = w.call("tanh", now)
        old = _cell_cotangent(w, element, mask, begins)
        inner = w.add(old, w.mul(dh, o, w.square_slope(t)))
        parts = [
            w.mul(inner, g, w.slope(i)),
            w.mul(inner, before, w.slope(f)),
            w.mul(inner, i, w.square_slope(g)),
            w.mul(dh, t, w.slope(o)),
        ]
        dc = w.mul(inner, f)
    elif mode == "tanh":
        parts = [w.mul(dh, w.square_slope(now))]
    else:
        above = c.put(f"fcmp ogt {w.vector} {now}, zeroinitializer")
        parts = [c.put(f"select {w.flags} {above}, {w.vector} {dh}, {w.vector} zeroinitializer")]
    if shown:
        parts = [w.choose(shown, p, "zeroinitializer") for p in parts]
        beside = w.choose(shown, beside, dh)
        dc = w.choose(shown, dc, old) if dc else ""
    target = w.place(base["parts"], *line)
    for value, k in zip(parts, offsets):
        w.store(value, target, mask, k)
    w.store(beside, w.place(base["dh"], *element), mask)
    if dc:
        w.store(dc, w.place(base["dc"], *element), mask)
