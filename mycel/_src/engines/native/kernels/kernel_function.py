"""The function of a kernel while it is written: argument words, the entry block and control flow.

Words are loaded at the function's entry, each under its own name; what many places need is loaded
once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mycel._src.compiler.ir.dims import Dim
from mycel._src.engines.native.kernels.instruction_emitter import Emitter
from mycel._src.engines.native.llvm.target import target
from mycel._src.engines.native.math import function_definitions as vector_math

__all__ = ["TICKS", "KernelFunction", "Word"]

Word = tuple[str, Any]
# Iterations of the loops of a long row between two questions whether the run is to end.
TICKS = 1 << 20


class KernelFunction:
    """The text of a kernel's function.

    `e` has the instructions behind the entry block, whose own are `entry`; `words` are the argument
    words so far. Positions have `bits` bits, as the type `ix`. `lanes` is the width of vectors, and
    with `is_long` loops ask from time to time whether the run is to end.
    """

    def __init__(self, lanes: int, is_long: bool) -> None:
        self.lanes, self.is_long = lanes, is_long
        self.e = Emitter(lanes)
        self.bits = target().index_bits
        self.ix = f"i{self.bits}"
        self.words: list[Word] = []
        self.entry: list[str] = []
        # Whether code that is not expected to run is marked.
        self.has_sites = False
        self._known: dict[Any, str] = {}
        self._labels = 0

    # Words.

    def word(self, kind: str, value: Any) -> str:
        """Return the SSA name of an argument word, loaded at the function's entry."""
        name = f"%w{len(self.words)}"
        index = len(self.words)
        self.words.append((kind, value))
        self.entry.append(f"  {name}p = getelementptr i64, ptr %words, i64 {index}")
        if kind != "int" or self.ix == "i64":
            self.entry.append(f"  {name} = load {'i64' if kind == 'int' else 'ptr'}, ptr {name}p")
        else:
            self.entry += [f"  {name}l = load i64, ptr {name}p", f"  {name} = trunc i64 {name}l to {self.ix}"]
        return name

    def word_once(self, key: Any, value: Any, kind: str = "int") -> str:
        """Return the word of `value`, the same one whenever it is asked for by `key`."""
        if key not in self._known:
            self._known[key] = self.word(kind, value)
        return self._known[key]

    def pointer(self, buffer: Any) -> str:
        """Return the address of a buffer."""
        return self.word_once(id(buffer), buffer, "pointer")

    def number(self, value: Any) -> str:
        """Return a number as a literal, or the word of one that a symbolic size decides."""
        return self.word_once(("number", value), value) if isinstance(value, Dim) else str(value)

    def range(self) -> tuple[str, str]:
        """Return the ends of the range that the function is called for, as positions."""
        return self.resized("%begin", "i64", self.bits), self.resized("%end", "i64", self.bits)

    # Numbers.

    def resized(self, value: str, kind: str, bits: int, wide: bool = False) -> str:
        """Return `value`, an index of type `kind`, in `bits` bits; vectors where `wide`."""
        other, e = f"i{bits}", self.e
        if other == kind:
            return value
        how = "trunc" if bits < int(kind[1:]) else "sext"
        return e.put(f"{how} {e.vector(kind) if wide else kind} {value} to {e.vector(other) if wide else other}")

    def most(self, one: str, other: str) -> str:
        return self.e.intrinsic(self.ix, f"llvm.smax.{self.ix}", [self.ix, self.ix], [one, other])

    def least(self, one: str, other: str) -> str:
        return self.e.intrinsic(self.ix, f"llvm.smin.{self.ix}", [self.ix, self.ix], [one, other])

    def iota(self, kind: str, first: int = 0, step: int = 1) -> str:
        """Return the vector of the lanes' numbers, times `step`, from `first` on."""
        return "<" + ", ".join(f"{kind} {first + i * step}" for i in range(self.lanes)) + ">"

    def repeated(self, kind: str, text: str) -> str:
        """Return the vector of a literal in all lanes."""
        return "<" + ", ".join([f"{kind} {text}"] * self.lanes) + ">"

    def all_true(self) -> str:
        return self.repeated("i1", "true")

    # Control.

    def fresh(self, name: str) -> str:
        """Return a name that no other label or slot has."""
        self._labels += 1
        return f"{name}{self._labels}"

    @contextmanager
    def loop(self, start: str, end: str, step: int) -> Iterator[str]:
        """Write a loop from `start` to `end`; yields the position."""
        e = self.e
        head, body, latch, leave = (self.fresh(n) for n in ("head", "body", "latch", "leave"))
        e.do(f"br label %{head}")
        before = e.block
        e.label(head)
        iv, following = e.name(), e.name()
        e.do(f"{iv} = phi {self.ix} [ {start}, %{before} ], [ {following}, %{latch} ]")
        e.do(f"br i1 {e.put(f'icmp slt {self.ix} {iv}, {end}')}, label %{body}, label %{leave}")
        e.label(body)
        yield iv
        if self.is_long:
            self._listen()
        e.do(f"br label %{latch}")
        e.label(latch)
        e.do(f"{following} = add {self.ix} {iv}, {step}")
        e.do(f"br label %{head}")
        e.label(leave)

    def _listen(self) -> None:
        """Write, at the end of an iteration of very long rows, a test whether the run is to end.

        The test runs from time to time, and ends the kernel.
        """
        e = self.e
        if "ticks" not in self._known:
            self._known["ticks"] = "%ticks"
            self.entry += ["  %ticks = alloca i64", f"  store i64 {TICKS}, ptr %ticks"]
        ask, stop, on = (self.fresh(n) for n in ("ask", "stop", "on"))
        left = e.put(f"sub i64 {e.put('load i64, ptr %ticks')}, 1")
        e.do(f"store i64 {left}, ptr %ticks")
        e.do(f"br i1 {e.put(f'icmp sgt i64 {left}, 0')}, label %{on}, label %{ask}")
        e.label(ask)
        e.do(f"store i64 {TICKS}, ptr %ticks")
        asks, status = self.word_once("listen", 0, "listen"), self.word_once("status", 0, "status")
        e.do(f"br i1 {e.put(f'call i1 {asks}(ptr {status})')}, label %{stop}, label %{on}")
        e.label(stop)
        e.do("ret void")
        e.label(on)

    @contextmanager
    def stretches(self, start: str, end: str, extent: str) -> Iterator[tuple[str, str, str]]:
        """Write a loop over a flat range of rows by the number of the outer iteration.

        Yields that number, and where its rows begin and end.
        """
        e = self.e
        head, body, latch, leave = (self.fresh(n) for n in ("head", "body", "latch", "leave"))
        e.do(f"br label %{head}")
        before = e.block
        e.label(head)
        p, following = e.name(), e.name()
        e.do(f"{p} = phi {self.ix} [ {start}, %{before} ], [ {following}, %{latch} ]")
        e.do(f"br i1 {e.put(f'icmp slt {self.ix} {p}, {end}')}, label %{body}, label %{leave}")
        e.label(body)
        number = e.put(f"udiv {self.ix} {p}, {extent}")
        first = e.put(f"sub {self.ix} {p}, {e.put(f'mul {self.ix} {number}, {extent}')}")
        reach = e.put(f"add {self.ix} {first}, {e.put(f'sub {self.ix} {end}, {p}')}")
        less = e.put(f"icmp slt {self.ix} {reach}, {extent}")
        stop = e.put(f"select i1 {less}, {self.ix} {reach}, {self.ix} {extent}")
        yield number, first, stop
        e.do(f"br label %{latch}")
        e.label(latch)
        done = e.put(f"sub {self.ix} {stop}, {first}")
        e.do(f"{following} = add {self.ix} {p}, {done}")
        e.do(f"br label %{head}")
        e.label(leave)

    def text(self, name: str) -> str:
        """Return the text of the module whose function has the name `name`."""
        e = self.e
        body = "\n".join([*self.entry, *e.lines])
        parts = [f"define void @{name}(ptr noalias readonly %words, i64 %begin, i64 %end) #0 {{", "entry:", body, "}"]
        bits = target().vector_bytes * 8
        if self.has_sites:
            # What lies outside is code that is not expected to run.
            parts.append('!0 = !{!"branch_weights", i32 1048576, i32 1}')
        parts.append(f'attributes #0 = {{ nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}" }}')
        if e.math:
            parts.append(vector_math.definitions(sorted(e.math)))
        known = "\n".join(parts)
        parts.extend(d for d in sorted(e.declares) if d not in known)
        return "\n".join(parts) + "\n"
