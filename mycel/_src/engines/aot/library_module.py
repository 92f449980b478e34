"""LLVM IR of a library: its data, and one function that runs all steps.

Sizes that are arguments are checked before anything else. What depends on them is computed where
the function begins. Where there are several forms of the program (`plan.forms_for`), each is a
function, of which the first that serves the sizes is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mycel._src.engines.aot.function_sharing import shared_kernels
from mycel._src.engines.aot.library_plan import Form
from mycel._src.engines.aot.size_arguments import Counts, Size
from mycel._src.engines.aot.state_persistence import MOST, TRAILER, identity_of, keeping_text
from mycel._src.engines.aot.step_code import StepWriter, Value
from mycel._src.engines.aot.target_plan import ALIGN
from mycel._src.engines.native.kernels.codegen import NAME

__all__ = ["OUT_OF_BOUNDS", "Module", "Value", "write"]

# What the function returns where a size is out of its bounds.
OUT_OF_BOUNDS = 2


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


class _Writer(StepWriter):
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
        self.head, self.state_bytes = head, at
        declared = ["declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"]
        declared.append("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        start = f"define void @{self.name}_begin(ptr %state) nounwind {{"
        return [*declared, start, "entry:", *head, *body, "  ret void", "}"]

    def block(self) -> list[str]:
        """Return the instructions that write the addresses that were given into a block."""
        lines = [f"  %sizes = alloca [{len(self.sizes)} x i64], align 8"] if self.sizes else []
        for k in range(len(self.sizes)):
            lines += [f"  %size{k}_to = getelementptr i64, ptr %sizes, i64 {k}"]
            lines += [f"  store i64 %size{k}, ptr %size{k}_to"]
        lines.append(f"  %given = alloca [{len(self.names)} x ptr], align 8")
        for k, name in enumerate(self.names):
            lines += [f"  {name}_to = getelementptr ptr, ptr %given, i64 {k}", f"  store ptr {name}, ptr {name}_to"]
        return lines

    def parameters(self) -> list[str]:
        """Return the function's parameters, but for sizes."""
        parameters = [f"ptr noalias readonly {name}" for name in self.inputs]
        parameters += [f"ptr noalias {name}" for name in self.others]
        return parameters + (["ptr readonly %parallel"] if self.divided else [])

    def instructions(self, form: Form) -> list[str]:
        """Return what runs a form: first what takes memory on the stack."""
        self.plan, self.counts, self.shared = form.plan, self.new_counts(), shared_kernels(form.plan)
        self.slots, self.body = list(self.head), []
        for identity, (_, array) in form.plan.lowered.constants.items():
            self.constants[identity] = self.data(f"{self.name}_constant_{len(self.constants)}", array, True)
        self.steps(form.plan.template.steps)
        block = self.block() if self.divided else []
        return [*block, *self.slots, *self.counts.lines, *self.body]

    def checks(self) -> list[str]:
        """Return what takes sizes, and leaves where one is out of its bounds."""
        lines, within = [], Counts({}, "%check")
        bits = []
        for k, size in enumerate(self.sizes):
            given = within.put(f"sub i32 %given_size{k}, {size.remainder}")
            if size.divisor > 1:
                rest = within.put(f"srem i32 {given}, {size.divisor}")
                bits.append(within.put(f"icmp eq i32 {rest}, 0"))
                given = within.put(f"sdiv i32 {given}, {size.divisor}")
            above = within.put(f"sub i32 {given}, {size.low}")
            bits.append(within.put(f"icmp ule i32 {above}, {size.high - size.low}"))
            lines.append(f"  %size{k} = zext i32 {given} to i64")
        good = bits[0]
        for bit in bits[1:]:
            good = within.put(f"and i1 {good}, {bit}")
        leave = [f"  br i1 {good}, label %run, label %bounds", "bounds:", f"  ret i32 {OUT_OF_BOUNDS}", "run:"]
        return [*within.lines, *leave, *lines]

    def several(self) -> list[str]:
        """Return what calls the first form that serves the sizes, and write the forms."""
        counts, lines = self.new_counts(), list[str]()
        sizes = [f"i64 %size{k}" for k in range(len(self.sizes))]
        given = [p.rsplit(" ", 1)[1] for p in self.parameters()]
        for k, form in enumerate(self.forms):
            head = f"define internal void @{self.name}_form_{k}({', '.join([*sizes, *self.parameters()])})"
            text = [head + " noinline nounwind {", "entry:", *self.instructions(form), "  ret void", "}"]
            self.functions.append("\n".join(text))
            call = f"  call void @{self.name}_form_{k}({', '.join([*sizes, *[f'ptr {v}' for v in given]])})"
            if form.decided:
                counts.lines = []
                serves = counts.hold(form.decided)
                lines += [*counts.lines, f"  br i1 {serves}, label %form{k}, label %not{k}", f"form{k}:"]
                lines += [call, "  br label %done", f"not{k}:"]
            else:
                lines += [call, "  br label %done", "done:"]
        return lines

    def module(self) -> Module:
        plan = self.plan
        state = self.begin_state() if self.lent else []
        if not self.lent:
            self.places = [self.data(f"{self.name}_{k}", v.array, not v.is_written) for k, v in enumerate(self.values)]
        if not self.sizes:
            body = self.instructions(self.forms[0])
        elif len(self.forms) == 1:
            body = self.instructions(self.forms[0])
            stack = [line for line in body if " = alloca " in line]
            body = [*stack, *self.checks(), *[line for line in body if " = alloca " not in line]]
        else:
            body = [*self.checks(), *self.several()]
        if self.divided:
            self.functions.append(_DIVIDE.format(name=self.name))
        parameters = [f"i32 %given_size{k}" for k in range(len(self.sizes))] + self.parameters()
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
            *body,
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
    forms: Sequence[Form],
    given: int,
    values: Sequence[Value],
    name: str,
    lent: bool = False,
    divided: bool = False,
    sizes: Sequence[Size] = (),
) -> Module:
    """Return the text of a library whose function is `name`.

    The inputs of the programs `forms` are the `given` arguments and then `values`. With `lent` the
    values that the program writes are in memory of the caller's, which a function fills with the
    first ones. With `divided` the caller's function divides the work of large steps. Without
    `sizes` that are arguments there is one form.
    """
    return _Writer(forms, given, values, name, lent and any(v.is_written for v in values), divided, sizes).module()
