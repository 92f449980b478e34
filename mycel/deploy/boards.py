"""Runs libraries on emulated microcontrollers (qemu-system-arm's MPS2), and counts instructions.

A program of C is written around a library: the inputs of each call as constants, the arena with
canaries around it, and a stack that is painted. It is linked without any library of C but the
compiler's own arithmetic and the mathematical one, so a call of malloc would be an error of the
linker. On the board it calls the function, prints results, status and counts through semihosting,
and stops.

With `-icount shift=0` an instruction takes a nanosecond of the board's time, and SysTick counts 25
million ticks a second: 40 instructions each, which is how exact the counts are.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mycel._src.engines.aot.c_header import Argument
from mycel._src.engines.aot.library import Library
from mycel._src.foundation.system import subprocesses

__all__ = ["BOARDS", "Board", "BoardError", "Run", "missing_tools", "run"]

Arrays = Sequence["np.ndarray[Any, Any]"]
TICK, SECONDS = 40, 300


class BoardError(RuntimeError):
    """An error: a program is not linked, faults, or writes outside of what it was given."""


@dataclass(frozen=True)
class Board:
    """A board of qemu's: its `machine`, the compiler's `flags`, and its memories in KiB."""

    target: str
    machine: str
    flags: tuple[str, ...]
    flash: int = 4096
    ram: int = 4096


_HARD = "-mfloat-abi=hard"
BOARDS = {
    b.target: b
    for b in (
        Board("cortex-m3", "mps2-an385", ("-mcpu=cortex-m3",)),
        Board("cortex-m4", "mps2-an386", ("-mcpu=cortex-m4", _HARD, "-mfpu=fpv4-sp-d16")),
        Board("cortex-m7", "mps2-an500", ("-mcpu=cortex-m7", _HARD, "-mfpu=fpv5-sp-d16")),
        Board("cortex-m55", "mps3-an547", ("-mcpu=cortex-m55", _HARD), 512, 512),
    )
}

LINKER = """MEMORY {{ F (rx) : ORIGIN = 0x0, LENGTH = {flash}K
  R (rwx) : ORIGIN = 0x20000000, LENGTH = {ram}K }}
ENTRY(reset)
SECTIONS {{
  .text : {{ KEEP(*(.vectors)) *(.text*) *(.rodata*) }} > F
  .ARM.exidx : {{ *(.ARM.exidx*) }} > F
  .data : {{ . = ALIGN(16); *(.data*) }} > R
  .bss : {{ . = ALIGN(16); bss_start = .; *(.bss*) *(COMMON) . = ALIGN(16); bss_end = .; }} > R
  stack_top = ORIGIN(R) + LENGTH(R);
}}
"""

MEMORY = r"""
#include <stddef.h>
#include <stdint.h>
void *memset(void *p, int c, size_t n) { char *a = p; while (n--) *a++ = c; return p; }
void *memcpy(void *p, const void *q, size_t n) { char *a = p; const char *b = q; while (n--) *a++ = *b++; return p; }
void *memmove(void *p, const void *q, size_t n) {
  char *a = p; const char *b = q;
  if (a <= b) while (n--) *a++ = *b++; else while (n--) a[n] = b[n];
  return p;
}
"""

_BOARD = r"""
extern char bss_start[], bss_end[], stack_top[];
int main(void);
int *__errno(void) { static int number; return &number; }
static int host(int number, const void *argument) {
  register int r0 __asm("r0") = number;
  register const void *r1 __asm("r1") = argument;
  __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}
static void text(const char *s) { host(4, s); }
static void word(uint32_t v) {
  char b[10]; for (int k = 0; k < 8; k++) b[k] = "0123456789abcdef"[v >> (28 - 4 * k) & 15];
  b[8] = ' '; b[9] = 0; text(b);
}
static void leave(uint32_t code) { uint32_t a[2] = {0x20026, code}; host(0x20, a); for (;;) ; }
static void fault(void) { text("fault\n"); leave(99); }
#define SYST ((volatile uint32_t *)0xE000E010)
static volatile uint32_t turns;
static void tick(void) { turns++; }
static uint64_t ticks(void) { uint32_t t, c; do { t = turns; c = SYST[2]; } while (t != turns);
  return ((uint64_t)t << 24) + (0xFFFFFF - c); }
void reset(void) {
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
  *(volatile uint32_t *)0xE000ED88 |= 0xF << 20; __asm volatile("dsb\nisb");
#endif
  for (char *p = bss_start; p < bss_end; p++) *p = 0;
  for (char *p = bss_end; p < (char *)__builtin_frame_address(0) - 256; p++) *p = 0x5A;
  SYST[1] = 0xFFFFFF; SYST[2] = 0; SYST[0] = 7;
  main(); leave(0);
}
__attribute__((section(".vectors"), used)) void *const vectors[16] = {stack_top, reset, fault, fault, fault, fault,
  fault, 0, 0, 0, 0, fault, fault, 0, fault, tick};
"""
START = MEMORY + _BOARD


@dataclass(frozen=True)
class Run:
    """What calls on a board gave: results and instructions of each call, and the bytes of stack."""

    results: list[list[np.ndarray[Any, Any]]]
    instructions: list[int]
    stack_bytes: int
    flash_bytes: int


def missing_tools() -> str:
    """Return the name of a tool that is not installed, or nothing."""
    return next((t for t in ("arm-none-eabi-gcc", "qemu-system-arm") if shutil.which(t) is None), "")


def constant(name: str, array: np.ndarray[Any, Any]) -> str:
    """Return an array as a constant of C."""
    raw = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
    return f"static const uint8_t {name}[] __attribute__((aligned(16))) = {{{','.join(map(str, raw.tolist()))}}};\n"


def main_text(library: Library, calls: Sequence[Arrays], stack: bool = True) -> str:
    """Return the function of C that calls a library; with `stack` it prints how much that took."""
    lines = ["#define GUARD 64\n"]
    for k, arrays in enumerate(calls):
        lines += [constant(f"given_{k}_{j}", a) for j, a in enumerate(arrays)]
    largest = [a.nbytes for a in library.outputs] + [library.arena_bytes]
    for j, size in enumerate(largest):
        rounded = -(-size // 4) * 4
        lines.append(f"static uint8_t m{j}[GUARD + {rounded} + GUARD] __attribute__((aligned(16)));\n")
    lines.append("int main(void) {\n")
    for k, arrays in enumerate(calls):
        taken, results = library.shapes(*[a.shape for a in arrays])
        sizes = [_bytes(a, shape) for a, shape in zip(library.outputs, results)] + [library.arena_bytes]
        for j in range(len(sizes)):
            lines.append(f"  memset(m{j}, 0xAB, sizeof m{j});\n")
        given = [*map(str, taken.values()), *[f"(const void *)given_{k}_{j}" for j in range(len(arrays))]]
        given += [f"(void *)(m{j} + GUARD)" for j in range(len(sizes))]
        lines.append("  { uint64_t before = ticks();\n")
        lines.append(f"  int status = {library.name}({', '.join(given)}); uint64_t after = ticks();\n")
        lines.append('  text("\\nC "); word(status); word(after - before);\n')
        for j, size in enumerate(sizes):
            rounded = -(-size // 4) * 4
            lines.append(f"  for (int k = 0; k < GUARD; k++) if (m{j}[k] != 0xAB ||\n")
            lines.append(f'    m{j}[GUARD + {size} + k] != 0xAB) {{ text("outside\\n"); leave(98); }}\n')
            if j < len(sizes) - 1:
                lines.append(f"  for (int k = 0; k < {rounded}; k += 4) word(*(uint32_t *)(m{j} + GUARD + k));\n")
        lines.append("  }\n")
    if stack:
        lines.append("  char *p = bss_end; while (*p == 0x5A) p++;\n")
        lines.append('  text("\\nS "); word(stack_top - p);\n')
    lines.append('  text("\\n"); return 0;\n}\n')
    return "".join(lines)


def run(library: Library, calls: Sequence[Arrays], folder: Path) -> Run:
    """Return what calls of a library with these inputs give on the board of its target.

    Each of `calls` has the inputs of one. `folder` gets the program. Raises BoardError where it
    faults, or writes outside of what it was given, IndexError where an index was out of range,
    ValueError for a target without a board, FileNotFoundError where a tool is not installed.
    """
    if library.target not in BOARDS:
        raise ValueError(f"run: there is no board with {library.target}; there are {', '.join(BOARDS)}")
    if tool := missing_tools():
        raise FileNotFoundError(f"run: {tool} is not installed; `make device` installs it")
    board = BOARDS[library.target]
    library.write(folder)
    (folder / "main.c").write_text(START + f'#include "{library.name}.h"\n' + main_text(library, calls))
    (folder / "board.ld").write_text(LINKER.format(flash=board.flash, ram=board.ram))
    options = ["-O2", "-ffreestanding", "-fno-builtin", "-fno-tree-loop-distribute-patterns", "-mthumb", "-nostdlib"]
    files = ["main.c", f"{library.name}.o", "-T", "board.ld", "-o", "program.elf", "-lm", "-lgcc"]
    built = subprocesses.run(
        ["arm-none-eabi-gcc", *board.flags, *options, *files], cwd=folder, capture_output=True, text=True, check=False
    )
    if built.returncode:
        raise BoardError(f"{library.name} for {library.target}: {built.stderr}")
    command = ["qemu-system-arm", "-M", board.machine, "-nographic", "-monitor", "none", "-icount", "shift=0"]
    command += ["-semihosting-config", "enable=on,target=native", "-kernel", "program.elf"]
    done = subprocesses.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    said = done.stdout + done.stderr
    if done.returncode:
        raise BoardError(f"{library.name} on {library.target}: {said}")
    results: list[list[np.ndarray[Any, Any]]] = []
    instructions: list[int] = []
    stack = 0
    for line in said.splitlines():
        words = [int(w, 16) for w in line.split()[1:]] if line[:2] in ("C ", "S ") else []
        if line.startswith("S "):
            stack = words[0]
        elif words:
            status, count, *content = words
            if status:
                raise IndexError(status)
            instructions.append(count * TICK)
            results.append(parts(library, content, calls[len(results)]))
    size = subprocesses.run(
        ["arm-none-eabi-size", "program.elf"], cwd=folder, capture_output=True, text=True, check=True
    )
    return Run(results, instructions, stack, int(size.stdout.splitlines()[1].split()[0]))


def parts(library: Library, content: list[int], arrays: Arrays) -> list[np.ndarray[Any, Any]]:
    """Return the results of a call with `arrays` from the words that a board has printed."""
    raw, found, at = np.array(content, "<u4").tobytes(), [], 0
    for argument, shape in zip(library.outputs, library.shapes(*[a.shape for a in arrays])[1]):
        size = _bytes(argument, shape)
        found.append(np.frombuffer(raw[at : at + size], argument.type.dtype.numpy).reshape(shape))
        at += -(-size // 4) * 4
    return found


def _bytes(argument: Argument, shape: Sequence[int]) -> int:
    return math.prod(shape) * argument.type.dtype.itemsize
