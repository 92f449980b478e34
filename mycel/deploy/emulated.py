"""Runs libraries under qemu-user emulation: AArch64, ARMv7, 64-bit and 32-bit RISC-V.

The vectors of RISC-V need version 8: version 7 ends where floats become integers of another width.

A program of C is written around a library as for boards (`boards`): inputs are constants, and the
arena and results have canaries around them. For processors with Linux it is linked with a library
of C; for 32-bit RISC-V it has none, and asks the emulator to write and to stop. These emulators do
not count instructions.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mycel._src.engines.aot.library import Library
from mycel._src.foundation.system import subprocesses
from mycel.deploy.boards import MEMORY, SECONDS, Arrays, BoardError, main_text, parts

__all__ = ["MACHINES", "Machine", "missing_tools", "run"]


@dataclass(frozen=True)
class Machine:
    """An emulated machine: the `compiler` with its `flags`, the `emulator`, and how it begins.

    `start` is what comes before the program, `options` how it is linked, and `arguments` what the
    emulator is told.
    """

    target: str
    compiler: str
    emulator: str
    flags: tuple[str, ...]
    start: str
    options: tuple[str, ...]
    arguments: tuple[str, ...] = ()

    @property
    def is_hosted(self) -> bool:
        """Whether programs have a library of C."""
        return self.start == _HOSTED


_HOSTED = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void text(const char *s) { fputs(s, stdout); }
static void word(uint32_t v) { printf("%08x ", (unsigned)v); }
static void leave(int code) { fflush(stdout); exit(code); }
static uint64_t ticks(void) { return 0; }
"""

_BARE_RISCV = (
    MEMORY
    + r"""
int main(void);
static long ask(long number, long a, long b, long c) {
  register long a7 __asm("a7") = number, a0 __asm("a0") = a, a1 __asm("a1") = b, a2 __asm("a2") = c;
  __asm volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2) : "memory");
  return a0;
}
static void text(const char *s) { long n = 0; while (s[n]) n++; ask(64, 1, (long)s, n); }
static void word(uint32_t v) {
  char b[10]; for (int k = 0; k < 8; k++) b[k] = "0123456789abcdef"[v >> (28 - 4 * k) & 15];
  b[8] = ' '; b[9] = 0; text(b);
}
static void leave(int code) { for (;;) ask(93, code, 0, 0); }
static uint64_t ticks(void) { return 0; }
void begin(void) { leave(main()); }
__asm(".globl _start\n_start:\n.option push\n.option norelax\nla gp, __global_pointer$\n.option pop\n"
  "andi sp, sp, -16\ncall begin\n");
"""
)

_LINKED = ("-static", "-lm")
_FREE = ("-ffreestanding", "-fno-builtin", "-fno-tree-loop-distribute-patterns", "-nostdlib", "-static")
_RISCV = "riscv64-linux-gnu-gcc"
_VECTORS = "rv64,v=true,vlen=128,vext_spec=v1.0"
MACHINES = {
    m.target: m
    for m in (
        Machine("aarch64", "aarch64-linux-gnu-gcc", "qemu-aarch64", (), _HOSTED, _LINKED),
        Machine("aarch64-dot", "aarch64-linux-gnu-gcc", "qemu-aarch64", (), _HOSTED, _LINKED),
        Machine("armv7-a", "arm-linux-gnueabihf-gcc", "qemu-arm", (), _HOSTED, _LINKED),
        Machine("riscv64", _RISCV, "qemu-riscv64", (), _HOSTED, _LINKED),
        Machine("riscv64-v", _RISCV, "qemu-riscv64", (), _HOSTED, _LINKED, ("-cpu", _VECTORS)),
        Machine("riscv32", _RISCV, "qemu-riscv32", ("-march=rv32imafc", "-mabi=ilp32f"), _BARE_RISCV, _FREE),
    )
}


def missing_tools(target: str) -> str:
    """Return the name of a tool that a target needs and that is not installed, or nothing."""
    machine = MACHINES[target]
    return next((t for t in (machine.compiler, machine.emulator) if shutil.which(t) is None), "")


def run(library: Library, calls: Sequence[Arrays], folder: Path) -> list[list[np.ndarray[Any, Any]]]:
    """Return the results of calls of a library with these inputs, in the emulator of its target.

    Each of `calls` has the inputs of one. `folder` gets the program. Raises BoardError where it
    stops otherwise than at its end or writes outside of what it was given, IndexError where an
    index was out of range, ValueError for a target without an emulator, FileNotFoundError where a
    tool is not installed.
    """
    if library.target not in MACHINES:
        raise ValueError(f"run: there is no emulator for {library.target}; there are {', '.join(MACHINES)}")
    if tool := missing_tools(library.target):
        raise FileNotFoundError(f"run: {tool} is not installed; `make device` installs it")
    machine = MACHINES[library.target]
    library.write(folder)
    text = machine.start + f'#include "{library.name}.h"\n' + main_text(library, calls, stack=False)
    (folder / "main.c").write_text(text)
    files = ["main.c", f"{library.name}.o", "-o", "program", *machine.options]
    command = [machine.compiler, "-O1", *machine.flags, *files]
    built = subprocesses.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if built.returncode:
        raise BoardError(f"{library.name} for {library.target}: {built.stderr}")
    command = [machine.emulator, *machine.arguments, "./program"]
    done = subprocesses.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise BoardError(f"{library.name} on {library.target}: {done.returncode}, {done.stdout}{done.stderr}")
    results: list[list[np.ndarray[Any, Any]]] = []
    for line in done.stdout.splitlines():
        if line.startswith("C "):
            status, _, *content = [int(w, 16) for w in line.split()[1:]]
            if status:
                raise IndexError(status)
            results.append(parts(library, content, calls[len(results)]))
    return results
