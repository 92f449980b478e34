"""Emits the object code of a library, for its target."""

from __future__ import annotations

import re

import llvmlite.binding as llvm

from mycel._src.engines.aot.library_module import Module
from mycel._src.engines.native.llvm.machine_code import LOOPS_MARK
from mycel._src.engines.native.llvm.target import Target
from mycel._src.foundation.errors import CompileError
from mycel._src.foundation.system import subprocesses

__all__ = ["object_code"]

# What kernels say of the width of vectors is for processors of several widths.
_WIDTHS = re.compile(r'"(prefer|min-legal)-vector-width"="\d+"')


def object_code(module: Module, target: Target, assembly: bool = False) -> bytes:
    """Return the object of a `module` for a `target`; its exports alone are seen from outside.

    With `assembly` it is the code in words.
    """
    machine = target.machine()
    context = llvm.create_context()

    def parsed(text: str) -> llvm.ModuleRef:
        found = llvm.parse_assembly(_WIDTHS.sub("", _hidden(text)), context=context)
        found.triple, found.data_layout = target.triple, str(machine.target_data)
        return found

    whole = parsed(module.text)
    for text in module.kernels.values():
        whole.link_in(parsed(text.removeprefix(LOOPS_MARK)))
    for function in whole.functions:
        if not function.is_declaration and function.name not in module.exports:
            function.linkage = "internal"
            if function.name in module.kernels:
                function.add_function_attribute("alwaysinline")
    whole.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    first = llvm.create_new_module_pass_manager()
    first.add_always_inliner_pass()
    # One thread runs a library, and small processors have no such loads of 64 bits.
    first.add_lower_atomic_pass()
    first.run(whole, builder)
    builder.getModulePassManager().run(whole, builder)
    if "mve" in target.features:
        return _apart(llvm.parse_assembly(_compared(str(whole)), context=context).as_bitcode(), target, assembly)
    if any(f.name == _HIDDEN for f in whole.functions):
        whole = llvm.parse_assembly(str(whole).replace(f"@{_HIDDEN}(", f"@{_DOT}("), context=context)
    code: bytes = machine.emit_assembly(whole).encode() if assembly else machine.emit_object(whole)
    return code


# LLVM stops the process where it computes this of two constants ("isa<> used on a null pointer"),
# as of padding alone. While it optimises, the instruction is a function that it does not know.
_DOT, _HIDDEN = "llvm.wasm.dot", "products_of_halves"
_PURE = "nofree nosync nounwind speculatable willreturn memory(none)"
_DECLARED = re.compile(rf"^(declare .*@){re.escape(_DOT)}(\(.*?\)).*$", re.M)


def _hidden(text: str) -> str:
    """Return a module in which products of halves on WebAssembly are those of a pure function."""
    return _DECLARED.sub(rf"\1{_HIDDEN}\2 {_PURE}", text).replace(f"@{_DOT}(", f"@{_HIDDEN}(")


_ZERO = re.compile(r"^  (%\S+) = fcmp ([a-z ]*?)(\w+) (<\d+ x (?:float|half)>) (%\S+), zeroinitializer(.*)$", re.M)
_MIRRORED = {"olt": "ogt", "ole": "oge", "uge": "ule", "ugt": "ult"}


def _compared(text: str) -> str:
    """Return a module in which vectors are compared with zero as NaN has to be.

    LLVM compares vectors of Helium with zero by conditions "lt" and "le", which hold for NaN too.
    Those for "gt" and "ge" do not, so the negative is compared; NaN is no number equal to itself.
    """
    count = 0

    def written(found: re.Match[str]) -> str:
        nonlocal count
        name, flags, condition, kind, x, rest = found.groups()
        if condition in ("uno", "ord"):
            return f"  {name} = fcmp {flags}{condition} {kind} {x}, {x}{rest}"
        if condition not in (*_MIRRORED, "one", "ueq"):
            return found[0]
        count += 1
        turned = f"%turned.{count}"
        lines = [f"  {turned} = fneg {kind} {x}"]
        if condition in _MIRRORED:
            lines.append(f"  {name} = fcmp {flags}{_MIRRORED[condition]} {kind} {turned}, zeroinitializer{rest}")
            return "\n".join(lines)
        # Above or below zero; or neither.
        signs, join = ("ogt", "or") if condition == "one" else ("ule", "and")
        flagged = f"<{kind[1:].split(' x ')[0]} x i1>"
        for part, value in (("above", x), ("below", turned)):
            lines.append(f"  %{part}.{count} = fcmp {flags}{signs} {kind} {value}, zeroinitializer{rest}")
        lines.append(f"  {name} = {join} {flagged} %above.{count}, %below.{count}")
        return "\n".join(lines)

    return _ZERO.sub(written, text)


# A module of bitcode on the standard input becomes code on the standard output.
_EMIT = """
import llvmlite.binding as llvm
triple, cpu, features, reloc, model, assembly, option = sys.argv[1:]
if option:
    llvm.set_option("", option)
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
machine = llvm.Target.from_triple(triple).create_target_machine(
    cpu=cpu, features=features, opt=2, reloc=reloc, codemodel=model)
module = llvm.parse_bitcode(sys.stdin.buffer.read())
code = machine.emit_assembly(module).encode() if assembly == "True" else machine.emit_object(module)
sys.stdout.buffer.write(code)
"""


def _apart(module: bytes, target: Target, assembly: bool) -> bytes:
    """Return the code of a module of bitcode, made in a process of its own.

    LLVM's pass for loops of Helium stops the process for some loops with predicates ("Assertion
    `!empty()'"). Then loops are branches, which that pass leaves alone.
    """
    for option in ("", "-disable-arm-loloops"):
        words = (target.triple, target.cpu, target.features, target.reloc, target.model, str(assembly), option)
        command = subprocesses.python(_EMIT, *words, folders=subprocesses.path())
        done = subprocesses.run(command, input=module, capture_output=True, check=False)
        if not done.returncode:
            code: bytes = done.stdout
            return code
    said = done.stderr.decode(errors="replace").strip().splitlines()
    raise CompileError(f"build: LLVM made no code for {target.cpu}: {said[-1] if said else done.returncode}")
