"""Attention and its derivative as kernels over blocks of queries and keys.

The lanes of vectors are queries, so that a row's largest score and sum are lanes, and keys and
values are read as they lie, element by element. A block of queries is transposed once; for each
block of keys there is a block of scores, transposed as well, which becomes weights in place:

    S^T = K Q^T          P^T = exp(S^T - largest)          O^T = O^T * shrunk + V^T P^T

The derivative goes through the same blocks with the statistics of the rows:

    dP^T = V dO^T        dS^T = P^T (dP^T - delta)         dQ^T += K^T dS^T
    dV += P^T dO         dK += dS^T Q

Here the lanes of dV and dK are features, so that blocks of queries and cotangents are kept as they
are too. A thread takes whole blocks of queries on the way forward, and on the way back all queries
of some keys, during which it asks whether the run is to end; so results do not depend on the number
of threads.

Where a band leaves out blocks of keys, they are visited only if a row has no score above `fill`
that makes their weights zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from mycel._src.engines.native.llvm.function_builder import Code
from mycel._src.engines.native.operations.attention.attention_dropout import Draw
from mycel._src.engines.native.operations.attention.attention_parameters import Form, Mask, padded
from mycel._src.engines.native.operations.attention.attention_tiles import LOWEST, Tiles, vectors

__all__ = ["KEYS", "backward_text", "forward_text"]

# Keys in a block: a multiple of the rows of each tile.
KEYS = 96
# From so many keys on a block of queries takes long enough to ask whether to go on.
MANY_KEYS = 512


class _Kernel:
    """What both kernels have: argument words, places of operands, and blocks of scores."""

    def __init__(self, form: Form, operands: tuple[str, ...]) -> None:
        self.form, self.t, self.c = form, Tiles(form.dtype), Code()
        names = form.names(operands)
        self.n = {name: self.c.load("i64", "%words", str(k)) for k, name in enumerate(names)}
        self.base = {}
        for k, name in enumerate(operands):
            pointer = self.c.load("ptr", "%words", str(len(names) + k), "i64")
            self.base[name] = self.at(pointer, self.n[f"{name}_first"], name)
        scale = self.c.load("i64", "%words", str(len(names) + len(operands)))
        self.words = len(names) + len(operands) + 1
        double = self.c.put(f"bitcast i64 {scale} to double")
        narrow = self.t.kind == "f32"
        self.scale = self.c.put(f"fptrunc double {double} to float") if narrow else double
        self.one = self.t.number(1.0)
        self.width, self.most = vectors()[0] * self.t.lanes, vectors()[0]
        self.scores = self.room(KEYS)
        self.turned = {m.name: self.room(padded(KEYS, form.dtype)) for m in form.masks if not m.is_row}
        self.draw = Draw(self.c, self.t, self.base["state"], form.keep) if form.draws else None

    # Places.

    def room(self, rows: int) -> str:
        """Return memory of the kernel for rows of a block of queries."""
        return self.c.slot(self.t.vector, rows * self.most)

    def element(self, name: str) -> str:
        return {"drop": "i8", "kept": "i8", "state": "i64"}.get(name, self.t.element)

    def at(self, base: str, index: str, name: str = "") -> str:
        return self.c.at(self.element(name), base, index)

    def mul(self, a: str, b: str | int) -> str:
        return self.c.op("mul i64", a, b)

    def add(self, a: str, b: str | int) -> str:
        return self.c.op("add i64", a, b)

    def sub(self, a: str, b: str | int) -> str:
        return self.c.op("sub i64", a, b)

    def least(self, a: str, b: str | int) -> str:
        return self.c.put(f"select i1 {self.c.put(f'icmp slt i64 {a}, {b}')}, i64 {a}, i64 {b}")

    def most_of(self, a: str, b: str | int) -> str:
        return self.c.put(f"select i1 {self.c.put(f'icmp sgt i64 {a}, {b}')}, i64 {a}, i64 {b}")

    def split(self, number: str, axes: list[int]) -> dict[int, str]:
        """Return the position on each axis of a number in row-major order."""
        found = {}
        for a in reversed(axes):
            found[a] = self.c.op("urem i64", number, self.n[f"extent{a}"])
            number = self.c.op("udiv i64", number, self.n[f"extent{a}"])
        return found

    def plane(self, name: str, position: dict[int, str], base: str = "") -> str:
        """Return the address of an operand's matrix at positions of the axes in front."""
        total = "0"
        for a, p in position.items():
            total = self.add(total, self.mul(p, self.n[f"{name}_{a}"]))
        return self.at(base or self.base[name], total, name)

    def row(self, name: str, base: str, index: str) -> str:
        return self.at(base, self.mul(index, self.n[f"{name}_row"]), name)

    def by_width(self, left: str) -> Iterator[int]:
        """Yield each width of a block in vectors, inside a branch for as many queries as fit it."""
        sizes = vectors()
        for k, width in enumerate(sizes):
            enough = self.c.put(f"icmp sle i64 {left}, {width * self.t.lanes}") if k else "true"
            more = self.c.put(f"icmp sgt i64 {left}, {sizes[k + 1] * self.t.lanes}") if k + 1 < len(sizes) else "true"
            with self.c.when(self.c.put(f"and i1 {enough}, {more}")):
                yield width

    def turn_rows(
        self, name: str, base: str, start: str, count: str, columns: int, target: str, width: int, scale: str
    ) -> None:
        """Write rows of the operand `name` from `start` on transposed, times `scale`.

        `base` is the address of its matrix, which has `columns`; `count` rows are there, and
        `target` receives rows of `width` vectors.
        """
        c, lanes = self.c, self.t.lanes
        for g in range(width):
            rows = self.row(name, base, self.add(start, g * lanes))
            left = self.sub(count, g * lanes)
            with c.loop("0", str(columns), lanes) as column:
                to = self.at(target, self.add(self.mul(column, width * lanes), g * lanes))
                size = (left, self.sub(str(columns), column))
                self.t.turn_in(c, (self.at(rows, column), self.n[f"{name}_row"]), size, (to, width * lanes), scale)

    # Scores.

    def fetch_masks(
        self, bases: dict[str, str], start: str, count: str, first: str, keys: str, width: int
    ) -> dict[str, str]:
        """Return the addresses of what masks have for a block of scores.

        `bases` are the addresses of their matrices; the block has `count` queries from `start` and
        `keys` keys from `first`, and rows of `width` vectors. Masks that differ between queries are
        transposed.
        """
        c, lanes = self.c, self.t.lanes
        found = {}
        for m in self.form.masks:
            column = self.mul(first, self.n[f"{m.name}_column"])
            if m.is_row:
                found[m.name] = self.at(bases[m.name], column, m.name)
                continue
            target = self.turned[m.name]
            flags = m.name != "bias"
            for g in range(width):
                rows = self.at(self.row(m.name, bases[m.name], self.add(start, g * lanes)), column, m.name)
                left = self.sub(count, g * lanes)
                with c.loop("0", keys, lanes) as j:
                    to = self.at(target, self.add(self.mul(j, width * lanes), g * lanes))
                    source = (self.at(rows, j, m.name), self.n[f"{m.name}_row"])
                    self.t.turn_in(c, source, (left, self.sub(keys, j)), (to, width * lanes), self.one, flags)
            found[m.name] = target
        return found

    def mask_at(self, m: Mask, place: str, j: str, width: int) -> list[str]:
        """Return what the mask `m` has for key `j` of a block: numbers, or for flags truth values.

        `place` is where what it has for the block begins, and rows are `width` vectors.
        """
        c, t = self.c, self.t
        made = []
        if m.is_row:
            value = c.load(self.element(m.name), place, self.mul(j, self.n[f"{m.name}_column"]))
            if m.name == "bias":
                return [t.splat(c, value)] * width
            return [t.splat(c, c.put(f"icmp ne i8 {value}, 0"), "i1")] * width
        for g in range(width):
            value = t.load(c, place, self.add(self.mul(j, width * t.lanes), g * t.lanes))
            zero = t.constant(0.0)
            made.append(value if m.name == "bias" else c.put(f"fcmp une {t.vector} {value}, {zero}"))
        return made

    def begin_rows(self, position: dict[int, str], start: str, width: int) -> None:
        """Tell the generator, if there is one, the rows of a block: `start` is its first query."""
        if self.draw is not None:
            number = "0"
            for a in range(self.form.axes):
                number = self.add(self.mul(number, self.n[f"extent{a}"]), position[a])
            row = self.add(self.mul(number, self.n["queries"]), start)
            self.draw.begin(row, self.n["keys"], width)

    def kept_at(self, places: dict[str, str], first: str, j: str, width: int) -> list[str]:
        """Return what dropout keeps, as truth values, for key `j` of a block from the key `first`.

        `places` are those of masks, and rows are `width` vectors.
        """
        if self.draw is not None:
            return self.draw.kept(self.add(first, j))
        kept = [m for m in self.form.masks if m.name == "kept"]
        return self.mask_at(kept[0], places["kept"], j, width) if kept else []

    def apply_masks(self, places: dict[str, str], keys: str, width: int) -> None:
        """Apply bias and flags to a block of scores in place."""
        changing = [m for m in self.form.masks if m.name != "kept"]
        if not changing:
            return
        c, t = self.c, self.t
        with c.loop("0", keys) as j:
            row = self.mul(j, width * t.lanes)
            values = [t.load(c, self.scores, self.add(row, g * t.lanes)) for g in range(width)]
            for m in changing:
                given = self.mask_at(m, places[m.name], j, width)
                if m.name == "bias":
                    values = [t.op(c, "fadd", x, b) for x, b in zip(values, given)]
                else:
                    values = [t.select(c, b, t.constant(self.form.fill), x) for x, b in zip(values, given)]
            for g, x in enumerate(values):
                t.store(c, x, self.scores, self.add(row, g * t.lanes))

    def apply_band(self, start: str, count: str, first: str, keys: str, width: int) -> None:
        """Replace the scores of a block outside of the band, if it has any.

        The block has `count` queries from `start`, `keys` keys from `first` and rows of `width`
        vectors.
        """
        form, c, t, n = self.form, self.c, self.t, self.n
        if not (form.low or form.high):
            return
        # How far keys are ahead of queries, least and most.
        least = self.sub(first, self.sub(self.add(start, count), 1))
        most = self.sub(self.sub(self.add(first, keys), 1), start)
        outside = "false"
        if form.low:
            outside = c.put(f"icmp slt i64 {least}, {n['low']}")
        if form.high:
            outside = c.put(f"or i1 {outside}, {c.put(f'icmp sgt i64 {most}, ' + n['high'])}")
        with c.when(outside):
            ends = {w: t.splat(c, c.put(f"trunc i64 {n[w]} to i32"), "i32") for w in ("low", "high")}
            base = self.sub(first, start)
            with c.loop("0", keys) as j:
                row = self.mul(j, width * t.lanes)
                ahead = t.splat(c, c.put(f"trunc i64 {self.add(base, j)} to i32"), "i32")
                for g in range(width):
                    lanes = ", ".join(f"i32 {g * t.lanes + k}" for k in range(t.lanes))
                    own = c.put(f"sub {t.numbers} {ahead}, <{lanes}>")
                    away = []
                    if form.low:
                        away.append(c.put(f"icmp slt {t.numbers} {own}, {ends['low']}"))
                    if form.high:
                        away.append(c.put(f"icmp sgt {t.numbers} {own}, {ends['high']}"))
                    mask = away[0] if len(away) == 1 else c.put(f"or {t.mask} {away[0]}, {away[1]}")
                    place = self.add(row, g * t.lanes)
                    t.store(
                        c, t.select(c, mask, t.constant(form.fill), t.load(c, self.scores, place)), self.scores, place
                    )

    @contextmanager
    def key_blocks(self, start: str, count: str, peaks: list[str]) -> Iterator[tuple[str, str]]:
        """Write the block as a loop over blocks of keys; yield the first key and their number.

        The keys that a band leaves out come last, if `peaks`, slots with the largest scores of
        `count` queries from `start`, say that they have weight.
        """
        form, c, n = self.form, self.c, self.n
        if not (form.low or form.high):
            with c.loop("0", n["keys"], KEYS) as first:
                yield first, self.least(self.sub(n["keys"], first), KEYS)
            return
        last = self.sub(self.add(start, count), 1)
        begin = self.most_of(self.add(start, n["low"]), 0) if form.low else "0"
        begin = self.least(begin, n["keys"])
        end = self.least(self.add(self.add(last, n["high"]), 1), n["keys"]) if form.high else n["keys"]
        end = self.most_of(end, begin)
        with c.loop("0", "3") as part:
            main, before = c.put(f"icmp eq i64 {part}, 0"), c.put(f"icmp eq i64 {part}, 1")
            needed = self.has_weight(count, peaks)
            low = c.put(f"select i1 {before}, i64 0, i64 {end}")
            low = c.put(f"select i1 {main}, i64 {begin}, i64 {low}")
            high = c.put(f"select i1 {before}, i64 {begin}, i64 {n['keys']}")
            high = c.put(f"select i1 {needed}, i64 {high}, i64 {low}")
            high = c.put(f"select i1 {main}, i64 {end}, i64 {high}")
            with c.loop(low, high, KEYS) as first:
                yield first, self.least(self.sub(high, first), KEYS)

    def has_weight(self, count: str, peaks: list[str]) -> str:
        """Return whether `fill` is a score that counts in one of the rows."""
        c, t = self.c, self.t
        limit = t.constant(self.form.fill - LOWEST[t.kind] if math.isfinite(self.form.fill) else self.form.fill)
        found = "false"
        for g, slot in enumerate(peaks):
            peak = c.load(t.vector, slot)
            low = c.put(f"fcmp ole {t.vector} {peak}, {limit}")
            there = t.below(c, self.sub(count, g * t.lanes))
            found = c.put(f"or i1 {found}, {t.any(c, c.put(f'and {t.mask} {low}, {there}'))}")
        return found


_FORWARD = ("q", "k", "v")


def forward_text(form: Form) -> str:
    """Return the kernel of an attention; its range is over blocks of queries of all planes."""
    return _Forward(form).text()


class _Forward(_Kernel):
    def __init__(self, form: Form) -> None:
        super().__init__(form, (*_FORWARD, *form.operands, "out", "peak", "total"))
        self.queries, self.outs = (self.room(padded(d, form.dtype)) for d in (form.features, form.values))
        self.factors = self.room(1)

    def text(self) -> str:
        c, n = self.c, self.n
        blocks = c.op("udiv i64", self.add(n["queries"], self.width - 1), self.width)
        with c.loop("%begin", "%end") as task:
            position = self.split(c.op("udiv i64", task, blocks), list(range(self.form.axes)))
            planes = {name: self.plane(name, position) for name in self.base}
            start = self.mul(c.op("urem i64", task, blocks), self.width)
            left = self.least(self.sub(n["queries"], start), self.width)
            for width in self.by_width(left):
                self.begin_rows(position, start, width)
                self.block(planes, start, left, width)
        return self.t.text(c)

    def block(self, planes: dict[str, str], start: str, count: str, width: int) -> None:
        """Write the attention of `count` queries from `start`, which fit into `width` vectors.

        `planes` are the addresses of the operands' matrices.
        """
        c, t, n, form = self.c, self.t, self.n, self.form
        lanes, line = t.lanes, width * t.lanes
        self.turn_rows("q", planes["q"], start, count, form.features, self.queries, width, self.scale)
        peaks = [c.variable(t.vector, t.constant(-math.inf)) for _ in range(width)]
        totals = [c.variable(t.vector, "zeroinitializer") for _ in range(width)]
        begun = c.variable("i64", "0")
        with self.key_blocks(start, count, peaks) as (first, keys):
            k, v = (self.row(name, planes[name], first) for name in "kv")
            t.product(c, width, keys, (k, n["k_row"], 1), (self.queries, line), (self.scores, line), str(form.features))
            places = self.fetch_masks(planes, start, count, first, keys, width)
            self.apply_masks(places, keys, width)
            self.apply_band(start, count, first, keys, width)
            self.weigh(places, first, keys, peaks, totals, width)
            out = (self.outs, line)
            old = c.load("i64", begun)
            t.product(c, width, form.values, (v, 1, n["v_row"]), (self.scores, line), out, keys, old, self.factors)
            c.store("i64", "1", begun)
        for g in range(width):
            total, there = c.load(t.vector, totals[g]), t.below(c, self.sub(count, g * lanes))
            place = self.add(start, g * lanes)
            t.masked_store(c, c.load(t.vector, peaks[g]), self.at(planes["peak"], place), there)
            t.masked_store(c, total, self.at(planes["total"], place), there)
            none = c.put(f"fcmp oeq {t.vector} {total}, zeroinitializer")
            share = t.op(c, "fdiv", t.constant(1.0), total)
            t.store(c, t.select(c, none, t.constant(math.nan), share), self.factors)
            rows, left = self.row("out", planes["out"], place), self.sub(count, g * lanes)
            with c.loop("0", str(form.values), lanes) as column:
                source = self.at(self.outs, self.add(self.mul(column, line), g * lanes))
                size = (left, self.sub(str(form.values), column))
                t.turn_out(c, (source, line), size, (self.at(rows, column), n["out_row"]), self.factors)

    def weigh(
        self, places: dict[str, str], first: str, keys: str, peaks: list[str], totals: list[str], width: int
    ) -> None:
        """Turn a block of scores into weights, with what they do to the statistics of rows.

        `places` are those of masks for the `keys` from `first` on; `peaks` and `totals` are slots
        of the largest scores and the sums. Rows are `width` vectors.
        """
        c, t = self.c, self.t
        lanes, line = t.lanes, width * t.lanes
        largest = [c.variable(t.vector, c.load(t.vector, p)) for p in peaks]
        with c.loop("0", keys) as j:
            for g in range(width):
                value = t.load(c, self.scores, self.add(self.mul(j, line), g * lanes))
                c.store(t.vector, t.larger(c, value, c.load(t.vector, largest[g])), largest[g])
        from_, sums = [], []
        for g in range(width):
            new, old = c.load(t.vector, largest[g]), c.load(t.vector, peaks[g])
            nothing = c.put(f"fcmp oeq {t.vector} {new}, {t.constant(-math.inf)}")
            base = t.select(c, nothing, "zeroinitializer", new)
            factor = t.exp(c, t.op(c, "fsub", old, base))
            t.store(c, factor, self.factors, str(g * lanes))
            c.store(t.vector, new, peaks[g])
            from_.append(base)
            sums.append(c.variable(t.vector, t.op(c, "fmul", c.load(t.vector, totals[g]), factor)))
        with c.loop("0", keys) as j:
            flags = self.kept_at(places, first, j, width)
            for g in range(width):
                place = self.add(self.mul(j, line), g * lanes)
                p = t.exp(c, t.op(c, "fsub", t.load(c, self.scores, place), from_[g]))
                c.store(t.vector, t.op(c, "fadd", c.load(t.vector, sums[g]), p), sums[g])
                if flags:
                    p = t.select(c, flags[g], t.op(c, "fmul", p, t.constant(1 / self.form.keep)), "zeroinitializer")
                t.store(c, p, self.scores, place)
        for g in range(width):
            c.store(t.vector, c.load(t.vector, sums[g]), totals[g])


_BACKWARD = ("ct", "q", "k", "v", "peak", "total", "delta")


def backward_text(form: Form) -> str:
    """Return the kernel of the derivative of an attention; its range is over planes of keys."""
    return _Backward(form).text()


class _Backward(_Kernel):
    def __init__(self, form: Form) -> None:
        super().__init__(form, (*_BACKWARD, *form.operands, "dq", "dk", "dv"))
        self.d, self.e = padded(form.features, form.dtype), padded(form.values, form.dtype)
        self.turned_q, self.turned_dq, self.turned_ct = (self.room(x) for x in (self.d, self.d, self.e))
        self.cotangents = self.room(KEYS)
        # Queries and cotangents as they are, in whole vectors.
        self.plain_q = self.c.slot(self.t.vector, self.width * self.d // self.t.lanes)
        self.plain_ct = self.c.slot(self.t.vector, self.width * self.e // self.t.lanes)
        self.factors = self.room(1)
        for k in range(2):
            place = self.c.at("i64", "%words", str(self.words + k))
            self.c.do(f"%w{k} = load ptr, ptr {place}")

    def listen(self) -> None:
        """Write a test, where there are many keys, whether the run is to end."""
        c = self.c
        with c.when(c.put(f"icmp sge i64 {self.n['keys']}, {MANY_KEYS}")):
            c.leave_if(c.put("call i1 %w1(ptr %w0)"), "void")

    def text(self) -> str:
        c, n, form = self.c, self.n, self.form
        shared = list(form.shared)
        own = [a for a in range(form.axes) if a not in shared]
        several = "1"
        for a in shared:
            several = self.mul(several, n[f"extent{a}"])
        with c.loop("%begin", "%end") as task:
            position = self.split(task, own)
            outer = {name: self.plane(name, position) for name in self.base}
            for name, columns in (("dk", self.d), ("dv", self.e)):
                with c.loop("0", n["keys"]) as j, c.loop("0", str(columns), self.t.lanes) as column:
                    self.t.store(c, "zeroinitializer", self.at(self.row(name, outer[name], j), column))
            with c.loop("0", several) as number:
                inner = self.split(number, shared)
                planes = {name: self.plane(name, inner, base) for name, base in outer.items()}
                with c.loop("0", n["queries"], self.width) as start:
                    self.listen()
                    left = self.least(self.sub(n["queries"], start), self.width)
                    for width in self.by_width(left):
                        self.begin_rows({**position, **inner}, start, width)
                        self.block(planes, start, left, width)
        return self.t.text(c)

    def plain(self, name: str, base: str, start: str, count: str, columns: int, target: str, scale: str) -> None:
        """Copy rows of the operand `name` into whole vectors at `target`, times `scale`.

        `base` is the address of its matrix, which has `columns`; there are `count` rows from
        `start`.
        """
        c, t = self.c, self.t
        wide = padded(columns, self.form.dtype)
        factor = t.splat(c, scale)
        with c.loop("0", count) as i:
            row = self.row(name, base, self.add(start, i))
            with c.loop("0", str(columns), t.lanes) as column:
                mask = t.below(c, self.sub(str(columns), column))
                value = t.op(c, "fmul", t.masked_load(c, self.at(row, column), mask), factor)
                t.store(c, value, target, self.add(self.mul(i, wide), column))

    def block(self, planes: dict[str, str], start: str, count: str, width: int) -> None:
        """Write what `count` queries from `start`, which fit into `width` vectors, add to the
        cotangents.

        `planes` are the addresses of the operands' matrices.
        """
        c, t, n, form = self.c, self.t, self.n, self.form
        lanes, line = t.lanes, width * t.lanes
        self.turn_rows("q", planes["q"], start, count, form.features, self.turned_q, width, self.scale)
        self.turn_rows("ct", planes["ct"], start, count, form.values, self.turned_ct, width, self.one)
        self.plain("q", planes["q"], start, count, form.features, self.plain_q, self.scale)
        self.plain("ct", planes["ct"], start, count, form.values, self.plain_ct, self.one)
        peaks, shares, deltas = [], [], []
        for g in range(width):
            there = t.below(c, self.sub(count, g * lanes))
            place = self.add(start, g * lanes)
            peak, total, delta = (
                t.masked_load(c, self.at(planes[w], place), there) for w in ("peak", "total", "delta")
            )
            peaks.append(c.variable(t.vector, peak))
            share = t.op(c, "fdiv", t.constant(1.0), total)
            shares.append(t.select(c, there, share, "zeroinitializer"))
            deltas.append(delta)
        with c.loop("0", str(self.d * line), lanes) as at:
            t.store(c, "zeroinitializer", self.turned_dq, at)
        with self.key_blocks(start, count, peaks) as (first, keys):
            k, v = (self.row(name, planes[name], first) for name in "kv")
            t.product(
                c, width, keys, (k, n["k_row"], 1), (self.turned_q, line), (self.scores, line), str(form.features)
            )
            places = self.fetch_masks(planes, start, count, first, keys, width)
            self.apply_masks(places, keys, width)
            self.apply_band(start, count, first, keys, width)
            t.product(
                c, width, keys, (v, n["v_row"], 1), (self.turned_ct, line), (self.cotangents, line), str(form.values)
            )
            self.differentiate(places, first, keys, peaks, shares, deltas, width)
            self.gather("dv", planes, (self.scores, line, 1), self.plain_ct, self.e, first, keys, count)
            self.gather("dk", planes, (self.cotangents, line, 1), self.plain_q, self.d, first, keys, count)
            turned = (self.cotangents, line)
            t.product(c, width, form.features, (k, 1, n["k_row"]), turned, (self.turned_dq, line), keys, 1)
        t.store(c, t.splat(c, self.scale), self.factors)
        for g in range(width):
            rows = self.row("dq", planes["dq"], self.add(start, g * lanes))
            with c.loop("0", str(form.features), lanes) as column:
                source = self.at(self.turned_dq, self.add(self.mul(column, line), g * lanes))
                size = (self.sub(count, g * lanes), self.sub(str(form.features), column))
                t.turn_out(c, (source, line), size, (self.at(rows, column), n["dq_row"]), self.factors)

    def gather(
        self,
        name: str,
        planes: dict[str, str],
        weights: tuple[str, int, int],
        given: str,
        columns: int,
        first: str,
        keys: str,
        count: str,
    ) -> None:
        """Add the product of weights and rows of a block to the cotangent of keys or values.

        `name` is that of the cotangent among the `planes`; `given` has `count` rows of `columns`,
        and the `keys` begin at `first`.
        """
        t = self.t
        rows = self.row(name, planes[name], first)
        at, left = 0, columns // t.lanes
        for width in vectors():
            while left >= width:
                b, out = (self.at(x, str(at)) for x in (given, rows))
                t.product(self.c, width, keys, weights, (b, columns), (out, self.n[f"{name}_row"]), count, 1)
                at, left = at + width * t.lanes, left - width

    def differentiate(
        self,
        places: dict[str, str],
        first: str,
        keys: str,
        peaks: list[str],
        shares: list[str],
        deltas: list[str],
        width: int,
    ) -> None:
        """Turn scores into weights, and the cotangents of weights into those of scores.

        `places` are those of masks for the `keys` from `first` on; `peaks`, `shares` and `deltas`
        have the largest scores, the inverse sums and the sums of cotangent times result of the
        rows, which are `width` vectors.
        """
        c, t, form = self.c, self.t, self.form
        with c.loop("0", keys) as j:
            flags = self.kept_at(places, first, j, width)
            for g in range(width):
                place = self.add(self.mul(j, width * t.lanes), g * t.lanes)
                score, dp = t.load(c, self.scores, place), t.load(c, self.cotangents, place)
                p = t.exp(c, t.op(c, "fsub", score, c.load(t.vector, peaks[g])))
                p = thin = t.op(c, "fmul", p, shares[g])
                if flags:
                    factor = t.constant(1 / form.keep)
                    thin, dp = (t.select(c, flags[g], t.op(c, "fmul", x, factor), "zeroinitializer") for x in (p, dp))
                ds = t.op(c, "fmul", p, t.op(c, "fsub", dp, deltas[g]))
                if form.replaces:
                    filled = c.put(f"fcmp oeq {t.vector} {score}, {t.constant(form.fill)}")
                    ds = t.select(c, filled, "zeroinitializer", ds)
                t.store(c, thin, self.scores, place)
                t.store(c, ds, self.cotangents, place)
