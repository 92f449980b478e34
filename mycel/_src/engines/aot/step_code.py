"""LLVM IR of a library's steps: addresses, kernels, copies, loops.

Kernels are functions that take words, as in this machine's programs: addresses, sizes and strides.
Here sizes are known or computed where the function begins, so the words are written on the stack
just before the call, the kernel is made part of the function, and LLVM sees constants. Steps that
share a kernel call one function instead, which takes what differs between them
(`function_sharing`).

Where the caller divides the work, a step with much of it is a function of a part of the kernel's
range, which finds the addresses that the library was given in a block on the caller's stack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim, DimLike, product
from mycel._src.engines.aot.function_sharing import Shared
from mycel._src.engines.aot.library_plan import Form
from mycel._src.engines.aot.size_arguments import Counts, Size
from mycel._src.engines.aot.target_plan import ALIGN
from mycel._src.engines.native.kernels.codegen import PLACE, Kernel
from mycel._src.engines.native.kernels.loop_nest import Buffer, Nest, Site
from mycel._src.engines.native.kernels.strided_view import View
from mycel._src.engines.native.operations.control_flow.loop_gradient_steps import HEADER, entry_bytes
from mycel._src.engines.native.steps.step_types import Copy, Nested, Step, Tape

__all__ = ["StepWriter", "Value"]

# The work of a step, in operations, that is worth the start of several threads.
DIVIDED = 1 << 15


@dataclass(frozen=True)
class Value:
    """A tensor that a library has besides its arguments: written by the program, or constant."""

    name: str
    array: np.ndarray
    is_written: bool


class StepWriter:
    """A writer of the instructions of steps, and of the functions that they call."""

    def __init__(
        self,
        forms: Sequence[Form],
        given: int,
        values: Sequence[Value],
        name: str,
        lent: bool,
        divided: bool,
        sizes: Sequence[Size],
    ) -> None:
        """Begin the text of a function `name`.

        * `forms`: what it does, for all sizes or some.
        * `given`: how many inputs are arguments; the others are `values`.
        * `lent`: those that it writes lie in memory of the caller's.
        * `divided`: the caller divides the work.
        * `sizes`: those that are arguments.
        """
        self.forms, self.given, self.values, self.name, self.lent = forms, given, values, name, lent
        self.divided, self.sizes = divided, sizes
        self.plan = plan = forms[0].plan
        self.counts = self.new_counts()
        outputs = [k for k in range(len(plan.outputs)) if k not in plan.template.aliases]
        self.inputs = [f"%in{k}" for k in range(given)]
        self.others = [f"%out{k}" for k in outputs] + ["%arena"] + (["%state"] if lent else [])
        self.head: list[str] = []
        self.globals: list[str] = []
        self.slots: list[str] = []
        self.body: list[str] = []
        self.kernels: dict[str, str] = {}
        self.shared: dict[int, Shared] = {}
        self.functions: list[str] = []
        self.constants: dict[int, str] = {}
        self.places: list[str] = []
        self.sites: list[Site] = []
        self.rows: dict[str, str] = {}
        self.known: dict[bytes, str] = {}
        self.table_bytes = 0
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def new_counts(self, mark: str = "%count") -> Counts:
        return Counts({s.symbol: f"%size{k}" for k, s in enumerate(self.sizes)}, mark)

    def number(self, value: DimLike) -> str:
        """Return the operand of 64 bits that has a size."""
        return self.counts.number(value)

    def data(self, name: str, array: np.ndarray, constant: bool) -> str:
        raw = np.ascontiguousarray(array).tobytes() or b"\0"
        if constant and raw in self.known:
            return self.known[raw]
        if not any(raw):
            content = "zeroinitializer"
        else:
            content = 'c"' + "".join(chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02X}" for b in raw) + '"'
        kind = "constant" if constant else "global"
        self.globals.append(f"@{name} = internal {kind} [{len(raw)} x i8] {content}, align {ALIGN}")
        if constant:
            self.known[raw] = f"@{name}"
        return f"@{name}"

    # Addresses.

    def base(self, number: int) -> str:
        """Return the start of an input, an output or the arena, as relocations number them."""
        inputs, aliases = len(self.plan.lowered.inputs), self.plan.template.aliases
        if number < self.given:
            return f"%in{number}"
        if number < inputs:
            return self.places[number - self.given]
        output = number - inputs
        return self.base(aliases[output]) if output in aliases else f"%out{output}"

    def address(self, buffer: Buffer, offset: DimLike = 0) -> str:
        """Write the address of a byte of a buffer."""
        kind, where = buffer.place or ("arena", self.plan.places[id(buffer)])
        if kind == "constant":
            start = self.constants[id(buffer)]
        elif kind == "arena":
            start, offset = "%arena", offset + where
        else:
            start = self.base(where if kind == "input" else len(self.plan.lowered.inputs) + where)
        if type(offset) is int and not offset:
            return start
        place = self.fresh()
        self.body.append(f"  {place} = getelementptr i8, ptr {start}, i64 {self.number(offset)}")
        return place

    # Steps.

    def steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            data = step.data
            if isinstance(data, Copy):
                self.copy(data)
            elif isinstance(data, Nested):
                self.nested(data)
            elif isinstance(data, Tape):
                self.tape(data)
            elif isinstance(data, (Nest, Kernel)):
                self.kernel(self.plan.code[id(step)])
            else:
                raise AssertionError(f"no plan has a step of the kind {step.kind}")

    def copy(self, copy: Copy) -> None:
        size = self.number(product(copy.source.shape) * copy.source.buffer.dtype.itemsize)
        target = self.address(copy.target.buffer)
        source = self.address(copy.source.buffer, _offset(copy.source))
        self.body.append(f"  call void @llvm.memmove.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")

    def kernel(self, kernel: Kernel) -> None:
        if self.divided and self.plan.number(kernel.extent) > 1 and self.plan.number(kernel.work) >= DIVIDED:
            self.divide(kernel)
            return
        shared = self.shared.get(id(kernel))
        if shared is not None and not self.plan.target.copies:
            self.call_by_row(shared, kernel)
            return
        contents = [self.content(kind, value) for kind, value in kernel.words]
        extent = self.number(kernel.extent)
        if shared is None:
            self.slots, self.body = self.call(kernel, contents, f"i64 {extent}", self.slots, self.body)
            return
        if not shared.name:
            shared.name = f"{self.name}_shared_{len(self.functions)}"
            self.functions.append(self.function(shared, kernel, contents, extent))
        given = [contents[k] for k in shared.parameters] + ([f"i64 {extent}"] if shared.extent else [])
        self.body.append(f"  call void @{shared.name}({', '.join(given)})")

    def divide(self, kernel: Kernel) -> None:
        """Write a function of a part of a kernel's range, and the call that lets it be divided."""
        kept, self.body, outside, self.counts = self.body, [], self.counts, self.new_counts()
        contents = [self.content(kind, value) for kind, value in kernel.words]
        slots, body = self.call(kernel, contents, "i64 %end", [], self.body, "i64 %begin")
        slots = [*slots, *self.counts.lines]
        self.body, self.counts = kept, outside
        name, known = f"{self.name}_part_{len(self.functions)}", []
        for k, given in enumerate(self.names):
            known += [f"  {given}_at = getelementptr ptr, ptr %given, i64 {k}", f"  {given} = load ptr, ptr {given}_at"]
        for k in range(len(self.sizes)):
            known += [f"  %size{k}_at = getelementptr i64, ptr %sizes, i64 {k}"]
            known += [f"  %size{k} = load i64, ptr %size{k}_at"]
        head = f"define internal void @{name}(ptr %given, i64 %begin, i64 %end) nounwind {{"
        self.functions.append("\n".join([head, "entry:", *known, *self.head, *slots, *body, "  ret void", "}"]))
        extent = self.number(kernel.extent)
        self.body.append(f"  call void @{self.name}_divide(ptr %parallel, ptr @{name}, ptr %given, i64 {extent})")

    def call_by_row(self, shared: Shared, kernel: Kernel) -> None:
        """Write the call of a function that finds in a constant table what differs between steps.

        A row has numbers, places in the arena and addresses of constants; other addresses are
        arguments. So a call is an address and a branch.
        """
        if not shared.name:
            shared.name = f"{self.name}_shared_{len(self.functions)}"
            shared.row = self.row_of(shared)
            self.functions.append(self.function_of_rows(shared, kernel))
        entries, given = [], ["ptr %arena"]
        for k, form in shared.row:
            kind, value = ("int", kernel.extent) if k < 0 else kernel.words[k]
            if form == "argument":
                given.append(self.content(kind, value))
            elif form == "count":
                given.append(f"i64 {self.number(value)}")
            elif form == "ptr":
                entries.append(f"ptr {self.constants[id(value)]}")
            else:
                entries.append(f"{form.split()[-1]} {self.entry(kind, value)}")
        text = "{ " + ", ".join(entries) + " }"
        if text not in self.rows:
            self.rows[text] = f"@{self.name}_row_{len(self.rows)}"
            widths = [4 if e.startswith("ptr") else int(e[1:3]) // 8 for e in entries]
            self.table_bytes += -(-sum(widths) // 4) * 4
            kinds = "{ " + ", ".join(e.split()[0] for e in entries) + " }"
            self.globals.append(f"{self.rows[text]} = internal unnamed_addr constant {kinds} {text}, align 4")
        self.body.append(f"  call void @{shared.name}(ptr {self.rows[text]}, {', '.join(given)})")

    def entry(self, kind: str, value: Any) -> int:
        """Return a number of a row: a size, or where a buffer or view begins in the arena."""
        if kind == PLACE:
            return self.plan.places[id(value.buffer)] + int(_offset(value))
        return self.plan.places[id(value)] if kind == "pointer" else int(self.plan.number(value))

    def row_of(self, shared: Shared) -> tuple[tuple[int, str], ...]:
        """Return the words that rows have, by number (-1: the range), each with its form.

        Wide entries come first, so that no space is between them.
        """
        forms: list[tuple[int, str]] = []
        for k in [*shared.parameters, *([-1] if shared.extent else [])]:
            words: list[tuple[str, Any]] = []
            words += [("int", kernel.extent) if k < 0 else kernel.words[k] for kernel in shared.kernels]
            kind = words[0][0]
            buffers = [v.buffer if kind == PLACE else v for _, v in words] if kind in ("pointer", PLACE) else []
            places = {(b.place or ("arena",))[0] for b in buffers}
            if any(isinstance(v if kind == "int" else _offset(v) if kind == PLACE else 0, Dim) for _, v in words):
                forms.append((k, "count" if kind == "int" else "argument"))
                continue
            if kind == "int" or places == {"arena"}:
                numbers = [self.entry(*word) for word in words]
                low, high = min(numbers), max(numbers)
                form = (
                    "zext i16" if 0 <= low and high < 1 << 16 else "sext i16" if high < 1 << 15 > -low else "sext i32"
                )
                forms.append((k, form if -1 << 31 <= low and high < 1 << 31 else "sext i64"))
            else:
                forms.append((k, "ptr" if places == {"constant"} else "argument"))
        return tuple(sorted(forms, key=lambda one: ("64" not in one[1], "16" in one[1], one[0])))

    def function_of_rows(self, shared: Shared, kernel: Kernel) -> str:
        """Return the function that steps with one kernel call, each with a row."""
        mine: list[str] = []
        known = dict(shared.row)
        for k, (kind, value) in enumerate(kernel.words):
            mine.append("" if k in known else self.content(kind, value))
        rows = [f for _, f in shared.row if f not in ("argument", "count")]
        kinds = "{ " + ", ".join("ptr" if f == "ptr" else f.split()[1] for f in rows) + " }"
        body, parameters, place = [], ["ptr %row", "ptr %arena"], 0
        extent = "i64 %given_extent" if shared.extent else f"i64 {self.number(kernel.extent)}"
        for k, form in shared.row:
            found = f"%given{k}".replace("-1", "_extent")
            if form in ("argument", "count"):
                parameters.append(f"{'ptr' if form == 'argument' else 'i64'} {found}")
                if k >= 0:
                    mine[k] = parameters[-1]
                continue
            at, value = self.fresh(), self.fresh()
            kind = form.split()[-1]
            body.append(f"  {at} = getelementptr {kinds}, ptr %row, i32 0, i32 {place}")
            place += 1
            body.append(f"  {found if form == 'ptr' else value} = load {kind}, ptr {at}")
            if form == "ptr":
                mine[k] = f"ptr {found}"
                continue
            body.append(
                f"  {found} = {form.split()[0]} {kind} {value} to i64"
                if kind != "i64"
                else f"  {found} = add i64 {value}, 0"
            )
            if k < 0:
                continue
            if kernel.words[k][0] in ("pointer", PLACE):
                moved = self.fresh()
                body.append(f"  {moved} = getelementptr i8, ptr %arena, i64 {found}")
                mine[k] = f"ptr {moved}"
            else:
                mine[k] = f"i64 {found}"
        slots, body = self.call(kernel, mine, extent, [], body)
        head = f"define internal void @{shared.name}({', '.join(parameters)}) noinline nounwind {{"
        return "\n".join([head, "entry:", *slots, *body, "  ret void", "}"])

    def content(self, kind: str, value: Any) -> str:
        """Return what a kernel gets as a word, with its type."""
        if kind == "pointer":
            return f"ptr {self.address(value)}"
        if kind == PLACE:
            return f"ptr {self.address(value.buffer, _offset(value))}"
        if kind == "site":
            return f"ptr {self.site(value)}"
        if kind in ("status", "listen"):
            return f"ptr @{self.name}_{kind}"
        return f"i64 {self.number(value)}"

    def call(
        self,
        kernel: Kernel,
        contents: Sequence[str],
        extent: str,
        slots: list[str],
        body: list[str],
        begin: str = "i64 0",
    ) -> tuple[list[str], list[str]]:
        """Return the slots and the body of a function with the call of a kernel behind them.

        `contents` are the kernel's words, and `begin` and `extent` are the ends of its range.
        """
        name = self.kernels.setdefault(kernel.text, f"{self.name}_kernel_{len(self.kernels)}")
        words = self.fresh()
        slots = [*slots, f"  {words} = alloca [{max(len(contents), 1)} x i64], align 8"]
        for k, content in enumerate(contents):
            place = self.fresh()
            body += [f"  {place} = getelementptr i64, ptr {words}, i64 {k}", f"  store {content}, ptr {place}"]
        body.append(f"  call void @{name}(ptr {words}, {begin}, {extent})")
        return slots, body

    def function(self, shared: Shared, kernel: Kernel, contents: Sequence[str], extent: str) -> str:
        """Return the function that steps with one kernel call.

        * `shared`: its name and what differs from step to step; `kernel`: the kernel.
        * `contents`: the words of one of the steps; `extent`: its range.
        """
        mine, parameters = list(contents), []
        for k in shared.parameters:
            kind = contents[k].split()[0]
            mine[k] = f"{kind} %given{k}"
            parameters.append(mine[k])
        if shared.extent:
            parameters.append("i64 %extent")
        slots, body = self.call(kernel, mine, "i64 %extent" if shared.extent else f"i64 {extent}", [], [])
        head = f"define internal void @{shared.name}({', '.join(parameters)}) noinline nounwind {{"
        return "\n".join([head, "entry:", *slots, *body, "  ret void", "}"])

    def site(self, site: Site) -> str:
        self.sites.append(site)
        name = f"@{self.name}_site_{len(self.sites)}"
        self.globals.append(f"{name} = internal global {{ i64, ptr }} {{ i64 0, ptr @{self.name}_status }}, align 8")
        return name

    def nested(self, nested: Nested) -> None:
        """Write a loop or a branch, which its predicate in memory decides."""
        self.count += 1
        mark = f"n{self.count}"
        if nested.loops:
            self.body += [f"  br label %{mark}_test", f"{mark}_test:"]
            self.steps(nested.first)
            self.decide(nested, f"{mark}_body", f"{mark}_end")
            self.body.append(f"{mark}_body:")
            self.steps(nested.second)
            self.body.append(f"  br label %{mark}_test")
        else:
            self.decide(nested, f"{mark}_yes", f"{mark}_no")
            for label, steps in (("yes", nested.first), ("no", nested.second)):
                self.body.append(f"{mark}_{label}:")
                self.steps(steps)
                self.body.append(f"  br label %{mark}_end")
        self.body.append(f"{mark}_end:")

    def tape(self, tape: Tape) -> None:
        """Write what a tape does: empty it, write the states behind the last ones, or take these
        back and set the predicate where there are some.
        """
        self.count += 1
        mark, header = f"t{self.count}", self.address(tape.header)
        if tape.operation == "begin":
            self.body.append(f"  store i64 0, ptr {header}")
            return
        assert tape.operation in ("push", "pop") and tape.entry is not None, "plans have bounded tapes only"
        number, entry = self.fresh(), self.number(tape.entry)
        self.body.append(f"  {number} = load i64, ptr {header}")
        if tape.operation == "push":
            after, goes = self.fresh(), None
            self.body.append(f"  {after} = add i64 {number}, 1")
        else:
            assert tape.predicate is not None
            after, goes, byte = (self.fresh() for _ in range(3))
            place = self.address(tape.predicate)
            self.body += [f"  {goes} = icmp ne i64 {number}, 0", f"  {byte} = zext i1 {goes} to i8"]
            self.body += [
                f"  store i8 {byte}, ptr {place}",
                f"  br i1 {goes}, label %{mark}, label %{mark}_end",
                f"{mark}:",
            ]
            self.body.append(f"  {after} = sub i64 {number}, 1")
        skipped, start = self.fresh(), self.fresh()
        self.body += [
            f"  store i64 {after}, ptr {header}",
            f"  {skipped} = mul i64 {number if goes is None else after}, {entry}",
            f"  {start} = getelementptr i8, ptr {header}, i64 {skipped}",
        ]
        at: DimLike = HEADER * 8
        for state in tape.states:
            there, here = self.fresh(), self.address(state)
            self.body.append(f"  {there} = getelementptr i8, ptr {start}, i64 {self.number(at)}")
            pair = (there, here) if goes is None else (here, there)
            size = self.number(state.size * state.dtype.itemsize)
            self.body.append(f"  call void @llvm.memmove.p0.p0.i64(ptr {pair[0]}, ptr {pair[1]}, i64 {size}, i1 false)")
            at = at + entry_bytes(state)
        if goes is not None:
            self.body += [f"  br label %{mark}_end", f"{mark}_end:"]

    def decide(self, nested: Nested, yes: str, no: str) -> None:
        view, value, test = nested.predicate, self.fresh(), self.fresh()
        place = self.address(view.buffer, _offset(view))
        self.body += [
            f"  {value} = load i8, ptr {place}",
            f"  {test} = icmp ne i8 {value}, 0",
            f"  br i1 {test}, label %{yes}, label %{no}",
        ]

    @property
    def names(self) -> list[str]:
        """The addresses that parts of the work need, as a block has them: `%sizes` is the last."""
        return [*self.inputs, *self.others, *(["%sizes"] if self.sizes else [])]


def _offset(view: View) -> DimLike:
    """Return the bytes from the start of a view's buffer to its first element."""
    offset: DimLike = view.offset * view.buffer.dtype.itemsize
    return offset
