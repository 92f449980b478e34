"""Many libraries in one program for an emulated microcontroller, which runs one after the other.

A linker and an emulator take longer to begin than a small graph to run: so some hundred graphs are
built, linked and run together. Each has its results and its arena in one memory, with canaries
around them, and its inputs among the constants.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mycel._src.engines.aot.library import Library
from mycel.deploy.boards import BOARDS, LINKER, SECONDS, START, constant, parts

__all__ = ["run_together"]

Arrays = Sequence["np.ndarray[Any, Any]"]
GUARD = 64


def run_together(libraries: Sequence[Library], inputs: Sequence[Arrays], folder: Path) -> list[Any]:
    """Return the results of each library with its inputs, or what is wrong with it as text.

    All are for one board, and have names of their own. `folder` gets the program. Raises
    RuntimeError where the program cannot be linked or ends early.
    """
    board = BOARDS[libraries[0].target]
    text, calls, room = [START], [], 0
    for k, (library, arrays) in enumerate(zip(libraries, inputs)):
        library.write(folder)
        text.append(f'#include "{library.name}.h"\n')
        text += [constant(f"given_{k}_{j}", a) for j, a in enumerate(arrays)]
        at, places = 0, []
        for size in [*[int(a.type.nbytes) for a in library.outputs], library.arena_bytes]:
            places.append((at + GUARD, size))
            at += GUARD + -(-size // 16) * 16
        room = max(room, at + GUARD)
        given = [f"(const void *)given_{k}_{j}" for j in range(len(arrays))]
        given += [f"(void *)(memory + {start})" for start, _ in places]
        lines = [f"static void run_{k}(void) {{ memset(memory, 0xAB, {at + GUARD});\n"]
        lines.append(f'  int status = {library.name}({", ".join(given)}); text("\\nC "); word({k}); word(status);\n')
        for start, size in places:
            lines.append(
                f"  guard({start - GUARD}, {start}); guard({start + size}, {start + size + 16 - size % 16});\n"
            )
        for start, size in places[:-1]:
            lines.append(f"  for (int k = 0; k < {size}; k += 4) word(*(uint32_t *)(memory + {start} + k));\n")
        calls.append("".join([*lines, "}\n"]))
    text.append(f"static uint8_t memory[{room}] __attribute__((aligned(16)));\n")
    text.append(
        'static void guard(int a, int b) { while (a < b) if (memory[a++] != 0xAB) { text("\\nO "); return; } }\n'
    )
    text += [
        *calls,
        "int main(void) {",
        *[f" run_{k}();" for k in range(len(libraries))],
        ' text("\\nE "); return 0; }\n',
    ]
    (folder / "main.c").write_text("".join(text))
    (folder / "board.ld").write_text(LINKER.format(flash=board.flash, ram=board.ram))
    options = ["-O1", "-ffreestanding", "-fno-builtin", "-fno-tree-loop-distribute-patterns", "-mthumb"]
    files = ["main.c", *[f"{one.name}.o" for one in libraries], "-T", "board.ld", "-nostartfiles", "-o", "program.elf"]
    command = ["arm-none-eabi-gcc", *board.flags, *options, *files, "-lm", "-lgcc"]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if built.returncode:
        raise RuntimeError(built.stderr[-600:])
    command = ["qemu-system-arm", "-M", board.machine, "-nographic", "-monitor", "none"]
    command += ["-semihosting-config", "enable=on,target=native", "-kernel", "program.elf"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    found: list[Any] = ["did not run"] * len(libraries)
    said = (done.stdout + done.stderr).splitlines()
    k = -1
    for line in said:
        if line.startswith("C "):
            k, status, *content = [int(w, 16) for w in line.split()[1:]]
            found[k] = f"status {status}" if status else parts(libraries[k], content, inputs[k])
        elif line.startswith("O ") and k >= 0:
            found[k] = "wrote outside of what it was given"
    if not any(line.startswith("E ") for line in said):
        at = next((k for k, one in enumerate(found) if isinstance(one, str) and one == "did not run"), len(found)) - 1
        if at >= 0:
            found[at] = f"the board stopped: {said[-1][:100] if said else ''}"
    return found
