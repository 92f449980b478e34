"""The text of a library: values in memory, and one function that runs all steps.

Kernels are functions that take words, as in this machine's programs: addresses, sizes and strides.
Here all sizes are known, so the words are written on the stack just before the call, the kernel is
made part of the function, and LLVM sees constants. Steps that share a kernel call one function
instead, which takes what differs between them (`sharing`).

Where the caller divides the work, a step with much of it is a function of a part of the kernel's
range, which finds the addresses that the library was given in a block on the caller's stack.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mycel.engines.aot.keeping import MOST, TRAILER, identity_of, keeping_text
from mycel.engines.aot.plan import ALIGN, Plan
from mycel.engines.aot.sharing import Shared, shared_kernels
from mycel.engines.native.kernels.codegen import NAME, PLACE, Kernel
from mycel.engines.native.kernels.nest import Buffer, Nest, Site
from mycel.engines.native.lowering.steps import Copy, Nested, Step

__all__ = ["Module", "Value", "write"]

# The work of a step, in operations, that is worth the start of several threads.
DIVIDED = 1 << 15


@dataclass(frozen=True)
class Value:
    """A tensor that a library has besides its arguments: written by the program, or constant."""

    name: str
    array: np.ndarray
    is_written: bool


@dataclass
class Module:
    """The text of the function and its data, and the kernels by the names that it calls them.

    `exports` are the names that are seen from outside. `slot_bytes` is what a state takes in a
    store, 0 where the library has no functions for one. `table_bytes` are those of the tables that
    calls of shared functions have, `constant_bytes` those of constants, of which equal ones are
    there once, and `state_bytes` those of the memory for state that the caller gives.
    """

    text: str = ""
    kernels: dict[str, str] = field(default_factory=dict)
    exports: tuple[str, ...] = ()
    slot_bytes: int = 0
    table_bytes: int = 0
    constant_bytes: int = 0
    state_bytes: int = 0


class _Writer:
    def __init__(self, plan: Plan, given: int, values: Sequence[Value], name: str, lent: bool, divided: bool) -> None:
        """Begin the text of a function `name` for `plan`, whose inputs are `given` arguments and
        then `values`; with `lent`, those that it writes lie in memory of the caller's, and with
        `divided` the caller divides the work.
        """
        self.plan, self.given, self.values, self.name, self.lent = plan, given, values, name, lent
        self.divided = divided
        outputs = [k for k in range(len(plan.outputs)) if k not in plan.template.aliases]
        self.inputs = [f"%in{k}" for k in range(given)]
        self.others = [f"%out{k}" for k in outputs] + ["%arena"] + (["%state"] if lent else [])
        self.head: list[str] = []
        self.globals: list[str] = []
        self.slots: list[str] = []
        self.body: list[str] = []
        self.kernels: dict[str, str] = {}
        self.shared = shared_kernels(plan)
        self.functions: list[str] = []
        self.constants: dict[int, str] = {}
        self.sites: list[Site] = []
        self.rows: dict[str, str] = {}
        self.known: dict[bytes, str] = {}
        self.table_bytes = 0
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

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

    def address(self, buffer: Buffer, offset: int = 0) -> str:
        """Write the address of a byte of a buffer."""
        kind, where = buffer.place or ("arena", self.plan.places[id(buffer)])
        if kind == "constant":
            start = self.constants[id(buffer)]
        elif kind == "arena":
            start, offset = "%arena", offset + where
        else:
            start = self.base(where if kind == "input" else len(self.plan.lowered.inputs) + where)
        if not offset:
            return start
        place = self.fresh()
        self.body.append(f"  {place} = getelementptr i8, ptr {start}, i64 {offset}")
        return place

    # Steps.

    def steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            data = step.data
            if isinstance(data, Copy):
                self.copy(data)
            elif isinstance(data, Nested):
                self.nested(data)
            elif isinstance(data, (Nest, Kernel)):
                self.kernel(self.plan.code[id(step)])
            else:
                raise AssertionError(f"no plan has a step of the kind {step.kind}")

    def copy(self, copy: Copy) -> None:
        size = math.prod(self.plan.shape(copy.source)) * copy.source.buffer.dtype.itemsize
        target = self.address(copy.target.buffer)
        source = self.address(copy.source.buffer, self.plan.offset(copy.source))
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
        extent = self.plan.number(kernel.extent)
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
        kept, self.body = self.body, []
        contents = [self.content(kind, value) for kind, value in kernel.words]
        slots, body = self.call(kernel, contents, "i64 %end", [], self.body, "i64 %begin")
        self.body = kept
        name, known = f"{self.name}_part_{len(self.functions)}", []
        for k, given in enumerate([*self.inputs, *self.others]):
            known += [f"  {given}_at = getelementptr ptr, ptr %given, i64 {k}", f"  {given} = load ptr, ptr {given}_at"]
        head = f"define internal void @{name}(ptr %given, i64 %begin, i64 %end) nounwind {{"
        self.functions.append("\n".join([head, "entry:", *known, *self.head, *slots, *body, "  ret void", "}"]))
        extent = self.plan.number(kernel.extent)
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
            return self.plan.places[id(value.buffer)] + self.plan.offset(value)
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
        kinds = "{ " + ", ".join("ptr" if f == "ptr" else f.split()[1] for _, f in shared.row if f != "argument") + " }"
        body, parameters, place = [], ["ptr %row", "ptr %arena"], 0
        extent = f"i64 {self.plan.number(kernel.extent)}"
        for k, form in shared.row:
            found = f"%given{k}".replace("-1", "_extent")
            if form == "argument":
                parameters.append(f"ptr {found}")
                mine[k] = f"ptr {found}"
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
                extent = f"i64 {found}"
            elif kernel.words[k][0] in ("pointer", PLACE):
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
            return f"ptr {self.address(value.buffer, self.plan.offset(value))}"
        if kind == "site":
            return f"ptr {self.site(value)}"
        if kind in ("status", "listen"):
            return f"ptr @{self.name}_{kind}"
        return f"i64 {value if type(value) is int else self.plan.number(value)}"

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

    def function(self, shared: Shared, kernel: Kernel, contents: Sequence[str], extent: int) -> str:
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

    def decide(self, nested: Nested, yes: str, no: str) -> None:
        view, value, test = nested.predicate, self.fresh(), self.fresh()
        place = self.address(view.buffer, self.plan.offset(view))
        self.body += [
            f"  {value} = load i8, ptr {place}",
            f"  {test} = icmp ne i8 {value}, 0",
            f"  br i1 {test}, label %{yes}, label %{no}",
        ]

    def begin_state(self) -> list[str]:
        """Place written values in memory of the caller's, and return the function that fills it."""
        head, body, at = [], [], 0
        self.places = []
        for k, v in enumerate(self.values):
            if not v.is_written:
                self.places.append(self.data(f"{self.name}_{k}", v.array, True))
                continue
            self.places.append(f"%state{k}")
            head.append(f"  %state{k} = getelementptr i8, ptr %state, i64 {at}")
            size = v.array.nbytes
            if v.array.any():
                first = self.data(f"{self.name}_first_{k}", v.array, True)
                body.append(f"  call void @llvm.memcpy.p0.p0.i64(ptr %state{k}, ptr {first}, i64 {size}, i1 false)")
            elif size:
                body.append(f"  call void @llvm.memset.p0.i64(ptr %state{k}, i8 0, i64 {size}, i1 false)")
            at += -(-size // ALIGN) * ALIGN
        self.slots, self.head, self.state_bytes = list(head), head, at
        declared = ["declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"]
        declared.append("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        start = f"define void @{self.name}_begin(ptr %state) nounwind {{"
        return [*declared, start, "entry:", *head, *body, "  ret void", "}"]

    def block(self) -> list[str]:
        """Return the instructions that write the addresses that were given into a block."""
        names = [*self.inputs, *self.others]
        lines = [f"  %given = alloca [{len(names)} x ptr], align 8"]
        for k, name in enumerate(names):
            lines += [f"  {name}_to = getelementptr ptr, ptr %given, i64 {k}", f"  store ptr {name}, ptr {name}_to"]
        return lines

    def module(self) -> Module:
        plan = self.plan
        state = self.begin_state() if self.lent else []
        if not self.lent:
            self.places = [self.data(f"{self.name}_{k}", v.array, not v.is_written) for k, v in enumerate(self.values)]
        for k, (identity, (_, array)) in enumerate(plan.lowered.constants.items()):
            self.constants[identity] = self.data(f"{self.name}_constant_{k}", array, True)
        self.steps(plan.template.steps)
        parameters = [f"ptr noalias readonly {name}" for name in self.inputs]
        parameters += [f"ptr noalias {name}" for name in self.others]
        if self.divided:
            parameters.append("ptr readonly %parallel")
            self.slots = [*self.block(), *self.slots]
            self.functions.append(_DIVIDE.format(name=self.name))
        text = [
            f"@{self.name}_status = internal global i64 0, align 8",
            *self.globals,
            "declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)",
            *[f"declare void @{n}(ptr, i64, i64)" for n in self.kernels.values()],
            f"define internal i1 @{self.name}_listen(ptr %status) {{\n  ret i1 false\n}}",
            *self.functions,
            *state,
            f"define i32 @{self.name}({', '.join(parameters)}) nounwind {{",
            "entry:",
            *self.slots,
            *self.body,
        ]
        if self.sites:
            text += [
                f"  %status = load i64, ptr @{self.name}_status",
                f"  store i64 0, ptr @{self.name}_status",
                "  %outside = icmp ne i64 %status, 0",
                "  %result = zext i1 %outside to i32",
                "  ret i32 %result",
            ]
        else:
            text.append("  ret i32 0")
        text.append("}")
        named = {name: body.replace(f"@{NAME}(", f"@{name}(", 1) for body, name in self.kernels.items()}
        made = Module("\n".join(text), named, (self.name,), table_bytes=self.table_bytes)
        made.constant_bytes = sum(len(raw) for raw in self.known)
        kept = [(place, v) for place, v in zip(self.places, self.values) if v.is_written and v.array.nbytes]
        total = sum(v.array.nbytes for _, v in kept)
        if self.lent:
            made.state_bytes = self.state_bytes
            made.exports += (f"{self.name}_begin",)
        elif kept and total < MOST and not plan.target.is_family("wasm"):
            identity = identity_of(self.name, [f"{v.array.dtype}{v.array.shape}" for _, v in kept])
            made.text += keeping_text(self.name, [(place, v.array.nbytes) for place, v in kept], identity)
            made.exports += (f"{self.name}_save", f"{self.name}_load")
            made.slot_bytes = total + TRAILER
        return made


# Lets the caller divide a range, or runs it here where no function was given for that.
_DIVIDE = """define internal void @{name}_divide(ptr %parallel, ptr %part, ptr %given, i64 %count) noinline nounwind {{
entry:
  %alone = icmp eq ptr %parallel, null
  br i1 %alone, label %here, label %there
here:
  call void %part(ptr %given, i64 0, i64 %count)
  ret void
there:
  %pool = load ptr, ptr %parallel
  %run_at = getelementptr ptr, ptr %parallel, i64 1
  %run = load ptr, ptr %run_at
  call void %run(ptr %pool, i64 %count, ptr %part, ptr %given)
  ret void
}}"""


def write(
    plan: Plan, given: int, values: Sequence[Value], name: str, lent: bool = False, divided: bool = False
) -> Module:
    """Return the text of a library whose function is `name`.

    The inputs of `plan` are the `given` arguments and then `values`. With `lent` the values that
    the program writes are in memory of the caller's, which a function fills with the first ones.
    With `divided` the caller's function divides the work of large steps.
    """
    return _Writer(plan, given, values, name, lent and any(v.is_written for v in values), divided).module()
