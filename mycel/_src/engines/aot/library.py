"""Compiles a library for a machine: a program's object code, its header, the memory it takes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import llvmlite.binding as llvm

from mycel._src.compiler.ir.dim_values import evaluate
from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.ir.symbol_binding import Binder
from mycel._src.compiler.ir.types import TensorType, Type, tensor_type
from mycel._src.engines.aot.account import Account, account_of
from mycel._src.engines.aot.c_header import Argument, check_name, header
from mycel._src.engines.aot.library_module import Value, write
from mycel._src.engines.aot.library_plan import Form, Staged, forms_for, plan_for
from mycel._src.engines.aot.object_emission import object_code
from mycel._src.engines.aot.size_arguments import Size
from mycel._src.engines.aot.striping import GAIN, WORTH
from mycel._src.engines.aot.target_plan import ALIGN
from mycel._src.engines.aot.targets import named
from mycel._src.foundation.errors import Unsupported
from mycel._src.foundation.files.atomic_files import write_folder

__all__ = ["Library", "library_of"]


@dataclass(frozen=True)
class Library:
    """A program for a machine without Mycel: one function of C.

    Args:
        name (str): Its name.
        target (str): The machine.
        object (bytes): The object file.
        header (str): The text of its header.
        inputs (tuple[Argument, ...]): The arguments.
        outputs (tuple[Argument, ...]): The results.
        arena_bytes (int): The memory that a caller gives the function for the time of a call.
        state_bytes (int): What it keeps in memory between calls.
        constant_bytes (int): The weights that may stay in read-only memory.
        initial_bytes (int): The values of that which are not 0 to begin with and so take flash.
        account (Account): By line of the program, what memory and arithmetic a call takes.
        table_bytes (int): A part of the code. Default: 0.
        lends (bool): Whether the caller gives the memory between calls. Default: False.
        divides (bool): Whether its function takes a function of the caller's that divides the work
            of large steps. Default: False.
        sizes (tuple[Size, ...]): The sizes that the function takes, before everything else: shapes
            have their symbols, and memory and account are those of the largest. Default: ().
        forms (int): How many programs there are for different ones. Default: 1.
    """

    name: str
    target: str
    object: bytes
    header: str
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    arena_bytes: int
    state_bytes: int
    constant_bytes: int
    initial_bytes: int
    account: Account
    table_bytes: int = 0
    lends: bool = False
    divides: bool = False
    sizes: tuple[Size, ...] = ()
    forms: int = 1

    @property
    def ram_bytes(self) -> int:
        """The memory that is written: arena and state. The stack, some 1 to 2 kB, comes to it."""
        return self.arena_bytes + self.state_bytes

    @property
    def flash_bytes(self) -> int:
        """The memory that is not lost without power: code, constants and first values."""
        return self.code_bytes + self.constant_bytes + self.initial_bytes

    @property
    def code_bytes(self) -> int:
        """The bytes of the object's sections of code, and of the tables of its calls."""
        sections = llvm.ObjectFileRef.from_data(self.object).sections()
        return sum(int(s.size()) for s in sections if s.is_text()) + self.table_bytes

    def shapes(self, *given: Sequence[int]) -> tuple[dict[str, int], list[tuple[int, ...]]]:
        """Return the sizes that the function takes, by name, for shapes of its inputs, and the
        shapes of its results.

        Raises ValueError where the inputs have other shapes, or sizes that are out of the bounds.
        """
        wanted = ", ".join(a.text for a in self.inputs)
        bind = Binder([a.type for a in self.inputs])
        actual = [tensor_type(tuple(map(int, s)), a.type.dtype) for s, a in zip(given, self.inputs)]
        if len(given) != len(self.inputs) or (found := bind(actual)) is None:
            bounds = "".join(f"; {s.text}" for s in self.sizes)
            raise ValueError(f"{self.name} takes {wanted}{bounds}; not {', '.join(map(str, given))}")
        sizes = {s.name: found[s.symbol] * s.divisor + s.remainder for s in self.sizes}
        return sizes, [tuple([evaluate(d, found) for d in a.type.shape]) for a in self.outputs]

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write the object and the header to a folder, which is made, each whole or not at all."""
        write_folder(folder, {f"{self.name}.o": self.object, f"{self.name}.h": self.header.encode()})

    def __str__(self) -> str:
        parts = {
            "arena": self.arena_bytes,
            "state": self.state_bytes,
            "constants": self.constant_bytes,
            "code": self.code_bytes,
        }
        lines = [f"{self.name} for {self.target}"]
        if self.sizes:
            programs = f", with {self.forms} programs" if self.forms > 1 else ""
            lines.append(f"  for {', '.join(s.text for s in self.sizes)}{programs}; memory is for the largest")
        return "\n".join([*lines, *[f"  {size:>12,} bytes of {what}" for what, size in parts.items()]])


def library_of(
    graph: Graph,
    names: Sequence[str],
    values: Sequence[Value],
    writes: Mapping[int, int],
    target: str,
    name: str,
    stripes: bool | None = None,
    lends: bool = False,
    parallel: bool = False,
    sizes: Sequence[Size] = (),
    staged: Staged | None = None,
) -> Library:
    """Return the library of a graph.

    * `names`: of its first inputs, the arguments; the others are `values`.
    * `writes`: outputs, and the numbers of the values that they replace.
    * `target`, `name`: the name of a machine, and of the function.
    * `stripes`: whether the first operations on images are computed in stripes where the arena
      becomes smaller; None: on processors without memory for copies, where it becomes much smaller.
    * `lends`: what the program writes lies in memory that the caller gives.
    * `parallel`: the caller divides the work of large steps.
    * `sizes`: the symbols that the graph has, which become arguments.
    * `staged`: makes the graph anew for certain sizes; None: it is good for all.

    Raises Unsupported for what a library cannot have, and for `parallel` where one thread is all
    there is, ValueError for names that C does not take.
    """
    for word in (name, *names, *[s.name for s in sizes]):
        check_name(word)
    count, machine = len(names), named(target)
    if parallel:
        if not machine.copies or machine.is_family("wasm"):
            raise Unsupported(f"build: {target} has one thread, so parallel=True would divide nothing")
        machine = replace(machine, threads=True)
    default = None if machine.copies else WORTH
    gain = default if stripes is None else GAIN if stripes else None
    aliases = {o: count + k for o, k in writes.items()}
    if sizes:
        if stripes:
            raise Unsupported("build: stripes are of images of known sizes; leave stripes=True out")
        forms = forms_for(staged or (lambda _: (graph, {})), aliases, machine, sizes)
    else:
        forms = [Form(plan_for(graph, aliases, machine, gain), {})]
    own = tuple(sizes)
    inputs = tuple(Argument(n, _tensor(t), own) for n, t in zip(names, graph.input_types))
    results = [_tensor(t) for k, t in enumerate(graph.output_types) if k not in writes]
    taken = {*names, *[s.name for s in sizes]}
    outputs = []
    for k, kind in enumerate(results):
        word = "result" if len(results) == 1 else f"result_{k}"
        while word in taken:
            word += "_"
        outputs.append(Argument(word, kind, own))
        taken.add(word)
    arena = max(form.plan.arena_bytes for form in forms)
    module = write(forms, count, values, name, lends, parallel, sizes)
    text = header(name, target, inputs, outputs, arena, ALIGN, module.slot_bytes, module.state_bytes, parallel, sizes)
    state = module.state_bytes or sum(v.array.nbytes for v in values if v.is_written)
    code = object_code(module, machine)
    first = 0 if module.state_bytes else sum(v.array.nbytes for v in values if v.is_written and v.array.any())
    account = account_of(forms[0].plan, target)
    memory = arena, state, module.constant_bytes, first
    parts: dict[str, Any] = {"table_bytes": module.table_bytes, "lends": module.state_bytes > 0, "divides": parallel}
    parts.update(sizes=own, forms=len(forms))
    return Library(name, target, code, text, inputs, tuple(outputs), *memory, account, **parts)


def _tensor(kind: Type) -> TensorType:
    assert isinstance(kind, TensorType), "plans have tensors only"
    return kind
