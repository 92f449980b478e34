"""The CTC loss and its derivative as LLVM IR (`prims.neural.ctc`).

One kernel takes sequences of the batch through all times. States are lanes, in two rows: those of
the blanks, number 0 to L, and those of the labels, number 0 to L - 1. A step needs the same place
of both rows and the one beside it, so rows are changed in place: forwards from the last block of
states to the first, as a state is entered from below, and backwards from the first to the last.
What a label may not do (be entered over a blank, last) is NEVER in a row that is added. Each row
has a vector on either side and is NEVER where there is no state, so that no lane is masked but
those of alpha, in which the two rows alternate.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mycel._src.engines.native.kernels.vector_writer import Vectors
from mycel._src.engines.native.llvm.target import RememberedByTarget
from mycel._src.foundation.bounded_caches import SOME
from mycel._src.foundation.dtype import DType

__all__ = ["NAMES", "NUMBERS", "ROWS", "backward_text", "forward_text"]

NEVER = -1e30
# The words of both kernels: numbers, and addresses (`alpha` is missing where it is not asked for).
NUMBERS = ("time", "batch", "classes", "labels", "padded", "blank", "offset", "by_time", "by_row", "ticks")
NAMES = {
    "forward": ("log_probs", "targets", "inputs", "lengths", "total", "alpha", "scratch"),
    "backward": ("ct", "log_probs", "targets", "inputs", "lengths", "total", "alpha", "made", "scratch"),
}
# The rows of scratch memory of a sequence, each of `padded` elements and a vector on either side.
_ROWS = ("blanks", "labels", "said", "enters", "lasts", "shares")
ROWS = len(_ROWS)


class _Writer(Vectors):
    """The writer of a kernel for elements of type `dtype`.

    `way` is "forward" or "backward", `merge` is that of `prims.neural.ctc`, and `keeps` tells
    whether alpha is one of the kernel's operands.
    """

    def __init__(self, dtype: DType, way: str, merge: bool, keeps: bool) -> None:
        names = [n for n in NAMES[way] if keeps or n != "alpha"]
        super().__init__(dtype, NUMBERS, ("listen", "status", *names))
        self.merge, self.keeps = merge, keeps
        self.never, self.nowhere = self.constant(NEVER), self.constant(float("-inf"))
        n = self.number
        self.states = self.sum(self.times(n["labels"], 2), 1)

    def sequence(self, row: str) -> None:
        """Begin with a sequence: its lengths, its labels and its rows."""
        c, n = self.code, self.number
        gap = self.sum(n["padded"], 2 * self.lanes)
        memory = self.at(self.base["scratch"], self.times(self.times(gap, ROWS), row))
        self.rows = {name: self.at(memory, self.times(gap, k), self.lanes) for k, name in enumerate(_ROWS)}
        self.probs = self.at(self.base["log_probs"], n["offset"], self.times(n["by_row"], row))
        self.targets = c.at("i32", self.base["targets"], self.times(n["labels"], row))
        self.steps = c.put(f"sext i32 {c.load('i32', self.base['inputs'], row)} to i64")
        self.length = c.put(f"sext i32 {c.load('i32', self.base['lengths'], row)} to i64")
        # A target that is longer than its row has no end.
        beyond = c.put(f"icmp sgt i64 {self.length}, {n['labels']}")
        self.last = c.put(f"select i1 {beyond}, i64 -9, i64 {self.length}")
        if self.keeps:
            self.table = self.at(self.base["alpha"], self.times(self.times(n["time"], self.states), row))
        self.prepare()

    def label(self, k: str) -> str:
        """Return the class of a label, which lies among the classes."""
        c = self.code
        found = c.put(f"sext i32 {c.load('i32', self.targets, k)} to i64")
        inside = c.put(f"icmp ult i64 {found}, {self.number['classes']}")
        return c.put(f"select i1 {inside}, i64 {found}, i64 0")

    def prepare(self) -> None:
        """Write NEVER everywhere, and 0 for what the labels may do."""
        c, n = self.code, self.number
        first = self.at(self.rows["blanks"], -self.lanes)
        self.fill(first, self.times(self.sum(n["padded"], 2 * self.lanes), ROWS), NEVER)
        before = c.variable("i64", n["blank"])
        zero, never = self.scalar(0.0), self.scalar(NEVER)
        with c.loop("0", n["labels"]) as k:
            label = self.label(k)
            silent = c.put(f"icmp eq i64 {label}, {n['blank']}")
            stays_out = silent
            if self.merge:
                again = c.put(f"icmp eq i64 {label}, {c.load('i64', before)}")
                stays_out = c.op("or i1", silent, again)
                c.store("i64", label, before)
            else:
                lasts = c.put(f"select i1 {silent}, {self.element} {zero}, {self.element} {never}")
                c.store(self.element, lasts, self.rows["lasts"], k)
            enters = c.put(f"select i1 {stays_out}, {self.element} {never}, {self.element} {zero}")
            c.store(self.element, enters, self.rows["enters"], k)

    def emit(self, line: str) -> str:
        """Write what the labels say at a time, whose probabilities begin at `line`; return what
        blanks say.
        """
        c = self.code
        with c.loop("0", self.number["labels"]) as k:
            c.store(self.element, self.not_below(c.load(self.element, line, self.label(k))), self.rows["said"], k)
        return self.splat(self.not_below(c.load(self.element, line, self.number["blank"])))

    def not_below(self, x: str) -> str:
        never = self.scalar(NEVER)
        low = self.code.put(f"fcmp olt {self.element} {x}, {never}")
        return self.code.put(f"select i1 {low}, {self.element} {never}, {self.element} {x}")

    def joined(self, *values: str) -> str:
        """Return the logarithm of the sum of the values' exponentials."""
        top = values[0]
        for v in values[1:]:
            top = self.larger(top, v)
        if len(values) == 2:
            # One of both exponentials is 1.
            gap = self.op("fsub", values[0], values[1])
            away = self.op("fsub", self.constant(-0.0), self.unary("fabs", gap))
            total = self.op("fadd", self.constant(1.0), self.call("exp", away))
        else:
            total = self.op("fadd", *[self.call("exp", self.op("fsub", v, top)) for v in values])
        return self.op("fadd", top, self.call("log", total))

    def row(self, name: str, k: str, away: int = 0) -> str:
        return self.load(self.at(self.rows[name], k, away))

    def put_row(self, name: str, k: str, value: str) -> None:
        self.store(value, self.at(self.rows[name], k))

    def lasting(self, k: str, label: str) -> str:
        return label if self.merge else self.op("fadd", label, self.row("lasts", k))

    def line(self, time: str) -> str:
        """Return where alpha of a time begins."""
        return self.at(self.table, self.times(self.states, time))

    def shuffled(self, a: str, b: str, order: list[int]) -> str:
        indices = self.integers(order, "i32")
        return self.code.put(f"shufflevector {self.vector} {a}, {self.vector} {b}, <{self.lanes} x i32> {indices}")

    @contextmanager
    def blocks(self, backwards: bool) -> Iterator[str]:
        """Write the block for each block of states; yield the first state's number."""
        c, padded = self.code, self.number["padded"]
        with c.loop("0", padded, self.lanes) as k:
            yield c.op("sub i64", c.op("sub i64", padded, self.lanes), k) if backwards else k


@RememberedByTarget("kernels of labellings", SOME).calls
def forward_text(dtype: DType, merge: bool, keeps: bool) -> str:
    """Return the text of the kernel that gives the labellings' log-probabilities and, with `keeps`,
    alpha.
    """
    w = _Writer(dtype, "forward", merge, keeps)
    c, n = w.code, w.number
    with c.loop("%begin", "%end") as row:
        w.sequence(row)
        first = w.emit(w.probs)
        c.store(w.element, c.put(f"extractelement {w.vector} {first}, i32 0"), w.rows["blanks"])
        some = c.put(f"icmp ne i64 {w.length}, 0")
        with c.when(c.op("and i1", some, c.put(f"icmp ne i64 {n['labels']}, 0"))):
            c.store(w.element, c.load(w.element, w.rows["said"]), w.rows["labels"])
        stop = w.least(w.steps, n["time"])
        if keeps:
            with c.when(c.put(f"icmp sgt i64 {w.steps}, 0")), w.blocks(False) as k:
                _keep(w, w.line("0"), k, w.row("blanks", k), w.row("labels", k))
        with c.loop("1", stop) as time:
            w.listen(time, n["ticks"])
            silence = w.emit(w.at(w.probs, w.times(n["by_time"], time)))
            with w.blocks(True) as k:
                blank, label, below = w.row("blanks", k), w.row("labels", k), w.row("labels", k, -1)
                over = w.op("fadd", below, w.row("enters", k))
                new = w.joined(w.lasting(k, label), blank, over)
                new = w.larger(w.op("fadd", new, w.row("said", k)), w.never)
                other = w.larger(w.op("fadd", w.joined(blank, below), silence), w.never)
                w.put_row("labels", k, new)
                w.put_row("blanks", k, other)
                if keeps:
                    _keep(w, w.line(time), k, other, new)
        if keeps:
            rest = w.most(stop, "0")
            count = w.times(c.op("sub i64", n["time"], rest), w.states)
            w.fill(w.line(rest), count, float("-inf"))
        ends = [_end(w, "blanks", w.last), _end(w, "labels", c.op("sub i64", w.last, 1))]
        total = w.joined(*ends)
        c.store(w.element, c.put(f"extractelement {w.vector} {total}, i32 0"), w.base["total"], row)
    return w.text()


def _end(w: _Writer, name: str, at: str) -> str:
    """Return the value of a state, NEVER where there is none."""
    c = w.code
    there = c.put(f"icmp sge i64 {at}, 0")
    value = c.load(w.element, w.rows[name], w.most(at, "0"))
    return w.splat(c.put(f"select i1 {there}, {w.element} {value}, {w.element} {w.scalar(NEVER)}"))


def _keep(w: _Writer, line: str, k: str, blank: str, label: str) -> None:
    """Write a block of alpha, where the states of blanks and labels take turns."""
    lanes = w.lanes
    limit = w.sum(w.times(w.length, 2), 1)
    low = w.constant(NEVER / 2)
    for half in (0, 1):
        order = [j // 2 + (lanes if j % 2 else 0) for j in range(half * lanes, (half + 1) * lanes)]
        value = w.shuffled(blank, label, order)
        place = w.sum(w.times(k, 2), half * lanes)
        # What is NaN is not below.
        there = w.code.put(f"and {w.flags} {w.compare('ugt', value, low)}, {w.below(place, limit)}")
        w.store(w.choose(there, value, w.nowhere), w.at(line, place), w.below(place, w.states))


@RememberedByTarget("kernels of labellings, backwards", SOME).calls
def backward_text(dtype: DType, merge: bool) -> str:
    """Return the text of the kernel that gives the cotangents of logarithms of probabilities."""
    w = _Writer(dtype, "backward", merge, True)
    c, n = w.code, w.number
    with c.loop("%begin", "%end") as row:
        w.sequence(row)
        made = w.at(w.base["made"], w.times(n["classes"], row))
        by_time = w.times(n["classes"], n["batch"])
        ct, total = (w.splat(c.load(w.element, w.base[name], row)) for name in ("ct", "total"))
        known = c.op(
            "xor i1", c.put(f"extractelement {w.flags} {w.compare('ole', total, w.constant(NEVER / 2))}, i32 0"), "true"
        )
        steps = w.least(w.most(w.steps, "1"), n["time"])
        last = c.op("sub i64", steps, 1)
        with c.loop("0", n["time"]) as k:
            w.listen(k, n["ticks"])
            time = c.op("sub i64", c.op("sub i64", n["time"], 1), k)
            slot = w.at(made, w.times(by_time, time))
            w.fill(slot, n["classes"], 0.0)
            here = c.op("and i1", known, c.put(f"icmp slt i64 {time}, {steps}"))
            with c.when(here):
                ends = w.splat(c.put(f"icmp eq i64 {time}, {last}"), "i1")
                _back(w, time, ends, (ct, total), slot)
    return w.text()


def _back(w: _Writer, time: str, ends: str, given: tuple[str, str], slot: str) -> None:
    """Write a time of the way back; its cotangents begin at `slot`.

    `ends` tells in each lane whether it is the last time, and `given` are the cotangent of the
    result and the result.
    """
    c, n, (ct, total) = w.code, w.number, given
    silence = w.emit(w.at(w.probs, w.times(n["by_time"], time)))
    line = w.line(time)
    silent = c.variable(w.vector, "zeroinitializer")
    with w.blocks(False) as k:
        blank, label = w.row("blanks", k), w.row("labels", k)
        beyond = w.op("fadd", w.row("labels", k, 1), w.row("enters", k, 1))
        betas = [w.joined(blank, label), w.joined(w.lasting(k, label), w.row("blanks", k, 1), beyond)]
        place = c.put(f"add {w.kind('i64')} {w.splat(k, 'i64')}, {w.integers(range(w.lanes))}")
        halves = []
        for half in (0, w.lanes):
            at = w.sum(w.times(k, 2), half)
            halves.append(w.load(w.at(line, at), w.below(at, w.states), w.nowhere))
        for j, (beta, said) in enumerate(zip(betas, (silence, w.row("said", k)))):
            final = w.splat(c.op("sub i64", w.last, j), "i64")
            final = c.put(f"icmp eq {w.kind('i64')} {place}, {final}")
            beta = w.choose(ends, w.choose(final, "zeroinitializer", w.never), beta)
            alpha = w.shuffled(halves[0], halves[1], [2 * i + j for i in range(w.lanes)])
            share = w.call("exp", w.op("fsub", w.op("fadd", alpha, beta), total))
            share = w.op("fmul", share, ct)
            if j:
                w.put_row("shares", k, share)
            else:
                c.store(w.vector, w.op("fadd", c.load(w.vector, silent), share), silent)
            w.put_row("labels" if j else "blanks", k, w.larger(w.op("fadd", beta, said), w.never))
    _added(w, slot, n["blank"], w.total(c.load(w.vector, silent)))
    with c.loop("0", n["labels"]) as k:
        _added(w, slot, w.label(k), c.load(w.element, w.rows["shares"], k))


def _added(w: _Writer, slot: str, at: str, value: str) -> None:
    c = w.code
    c.store(w.element, c.put(f"fadd {w.element} {c.load(w.element, slot, at)}, {value}"), slot, at)
