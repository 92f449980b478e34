"""Random graphs as libraries for other machines, which must compute what the reference does.

    python -m tests.deploy.random_graphs TARGET FIRST COUNT

The graphs are those of `tests.engines.random_graphs`. Libraries for x86-64 run in this process,
with canaries; modules of WebAssembly in Node; those for AArch64, ARMv7 and RISC-V in programs of C
that the system's cross compilers link and qemu runs, and those for Cortex-M on emulated boards,
many in one program. What a library refuses is counted.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mycel._src.engines.aot.library import Library, library_of
from mycel._src.engines.reference.evaluation import evaluate
from mycel._src.foundation.errors import Unsupported
from mycel.deploy import web
from mycel.deploy.emulated import MACHINES
from tests.deploy.boards import BOARDS
from tests.deploy.loaded import Loaded
from tests.deploy.random_boards import run_together
from tests.engines.random_graphs import RandomGraph, difference

__all__ = ["check_seed", "runner"]

Arrays = Sequence[np.ndarray[Any, Any]]
Run = Callable[[Library, Arrays], list[Any]]

# How many graphs one program for a board has.
TOGETHER = 100
# For a target: the compiler that links its programs, and the emulator.
EMULATED = {m.target: (m.compiler, m.emulator) for m in MACHINES.values() if m.is_hosted}
_MAIN = """
#include "f.h"
#include <stdio.h>
@BUFFERS@
static unsigned char arena[F_ARENA_BYTES + 64] __attribute__((aligned(64)));
int main(void) {
    int status;
@READ@
    for (int k = 0; k < 64; k++) arena[F_ARENA_BYTES + k] = 171;
    status = f(@ARGUMENTS@, arena);
    for (int k = 0; k < 64; k++) if (arena[F_ARENA_BYTES + k] != 171) return 99;
    if (status) return 98;
@WRITE@
    return 0;
}
"""
_SCRIPT = """
import { readFileSync, writeFileSync } from "node:fs";
import { load, inputs, outputs } from "./f.mjs";
const model = await load(readFileSync("f.wasm")), given = readFileSync("given");
model.resize(JSON.parse(readFileSync("sizes", "utf8")));
let at = 0;
const raw = (a) => new Uint8Array(a.buffer, a.byteOffset, a.byteLength);
for (const { name } of inputs) {
  const place = raw(model.inputs[name]);
  place.set(given.subarray(at, at += place.length));
}
model.call();
writeFileSync("made", Buffer.concat(outputs.map(({ name }) => raw(model.outputs[name]))));
"""


def check_seed(seed: int, target: str, run: Run) -> str:
    """What is wrong with the library of a seed's graph, or why it is none; else empty."""
    made = RandomGraph(seed)
    with np.errstate(all="ignore"):
        names = [f"x{k}" for k in range(len(made.graph.inputs))]
        try:
            library = library_of(made.graph, names, [], {}, target, "f")
        except Unsupported as error:
            return f"refused: {str(error).splitlines()[0][:70]}"
        try:
            got = run(library, made.arrays)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return _differences(made, got)


def runner(target: str, folder: Path) -> Run:
    """What runs the libraries of a target, with files in a folder."""

    def linked(library: Library, arrays: Arrays) -> list[Any]:
        got = Loaded(library)(*arrays)
        return list(got) if isinstance(got, tuple) else [got]

    def in_node(library: Library, arrays: Arrays) -> list[Any]:
        web(library).write(folder)
        (folder / "main.mjs").write_text(_SCRIPT)
        (folder / "sizes").write_text(json.dumps(library.shapes(*[a.shape for a in arrays])[0]))
        return _ran(["node", "main.mjs"], library, arrays, folder)

    def emulated(library: Library, arrays: Arrays) -> list[Any]:
        compiler, emulator = EMULATED[target]
        library.write(folder)
        (folder / "main.c").write_text(_program(library, arrays))
        subprocess.run([compiler, "-static", "-O1", "-o", "f", "main.c", "f.o", "-lm"], cwd=folder, check=True)
        return _ran([emulator, *MACHINES[target].arguments, "./f"], library, arrays, folder)

    if target in EMULATED:
        return emulated
    return in_node if target == "wasm32" else linked


def _ran(command: Sequence[str], library: Library, arrays: Arrays, folder: Path) -> list[Any]:
    """The results of a program that reads the file `given` and writes `made`."""
    (folder / "given").write_bytes(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays))
    (folder / "made").unlink(missing_ok=True)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise RuntimeError(f"exit status {done.returncode}: {done.stderr[-300:]}")
    raw, at, results = (folder / "made").read_bytes(), 0, []
    for argument, shape in zip(library.outputs, library.shapes(*[a.shape for a in arrays])[1]):
        size = math.prod(shape) * argument.type.dtype.itemsize
        results.append(np.frombuffer(raw[at : at + size], argument.type.dtype.numpy).reshape(shape))
        at += size
    assert at == len(raw)
    return results


def _program(library: Library, arrays: Arrays) -> str:
    """A program of C that calls a library, with canaries behind the arena."""
    taken, results = library.shapes(*[a.shape for a in arrays])
    counts = [math.prod(shape) for shape in [*[a.shape for a in arrays], *results]]
    every = (*library.inputs, *library.outputs)
    sizes = [count * a.type.dtype.itemsize for a, count in zip(every, counts)]
    read = ['    FILE *file = fopen("given", "rb");']
    write = ['    file = fopen("made", "wb");']
    for a, size in zip(library.inputs, sizes):
        read.append(f"    if (fread({a.name}, 1, {size}, file) != {size}) return 97;")
    given = len(library.inputs)
    write += [f"    fwrite({a.name}, 1, {size}, file);" for a, size in zip(library.outputs, sizes[given:])]
    parts = {
        "BUFFERS": "\n".join(f"static {a.c_type} {a.name}[{max(n, 1)}];" for a, n in zip(every, counts)),
        "READ": "\n".join(read),
        "ARGUMENTS": ", ".join([*map(str, taken.values()), *[a.name for a in every]]),
        "WRITE": "\n".join([*write, "    fclose(file);"]),
    }
    text = _MAIN
    for word, value in parts.items():
        text = text.replace(f"@{word}@", value)
    return text


def _checked(seeds: range, target: str, folder: Path) -> Iterator[tuple[int, str]]:
    """Check seeds one by one, or on boards many at a time."""
    if target not in BOARDS:
        run = runner(target, folder)
        for seed in seeds:
            yield seed, check_seed(seed, target, run)
    for at in range(0, len(seeds), TOGETHER) if target in BOARDS else ():
        yield from check_together(seeds[at : at + TOGETHER], target, folder)


def check_together(seeds: Sequence[int], target: str, folder: Path) -> Iterator[tuple[int, str]]:
    """What is wrong with the libraries of several seeds on a board; see `check_seed`."""
    made, libraries = {seed: RandomGraph(seed) for seed in seeds}, {}
    for seed, one in made.items():
        names = [f"x{k}" for k in range(len(one.graph.inputs))]
        try:
            libraries[seed] = library_of(one.graph, names, [], {}, target, f"f{seed}")
        except Unsupported as error:
            yield seed, f"refused: {str(error).splitlines()[0][:70]}"
    board, batch, flash = BOARDS[target], dict[int, Library](), 0
    for seed, library in [*libraries.items(), (-1, None)]:
        if library is not None:
            own = len(library.object) + sum(a.nbytes for a in made[seed].arrays)
            ram = library.ram_bytes + sum(int(a.type.nbytes) for a in library.outputs)
            if own > board.flash << 9 or ram > board.ram << 9:
                yield seed, "refused: takes more than half of the board's memory"
                continue
        if batch and (library is None or flash + own > board.flash << 9):
            found = run_together(list(batch.values()), [made[k].arrays for k in batch], folder)
            for k, got in zip(batch, found):
                with np.errstate(all="ignore"):
                    yield k, got if isinstance(got, str) else _differences(made[k], got)
            batch, flash = {}, 0
        if library is not None:
            batch[seed], flash = library, flash + own


def _differences(made: RandomGraph, got: Arrays) -> str:
    """What is wrong with the results of a graph."""
    want = evaluate(made.graph, made.arrays)
    found = [(k, d) for k, (v, g, w) in enumerate(zip(made.known, got, want)) if (d := difference(v, g, w))]
    return "; ".join(f"output {k}: {d}" for k, d in found)


def main(arguments: Sequence[str]) -> int:
    """Check seeds; the number of those that fail, at most 100."""
    target, first, count = arguments[0], int(arguments[1]), int(arguments[2])
    needed = EMULATED.get(target, ("node",) if target == "wasm32" else ())
    needed = ("arm-none-eabi-gcc", "qemu-system-arm") if target in BOARDS else needed
    if missing := [tool for tool in needed if shutil.which(tool) is None]:
        raise SystemExit(f"{target} needs {' and '.join(missing)}")
    begun, refused, failed = time.monotonic(), Counter[str](), 0
    with tempfile.TemporaryDirectory() as folder:
        for seed, wrong in _checked(range(first, first + count), target, Path(folder)):
            if wrong.startswith("refused"):
                refused[wrong] += 1
            elif wrong:
                failed += 1
                print(f"seed {seed}: {wrong}", flush=True)
    print(f"{target}: {count} graphs from {first}, {failed} failed, {refused.total()} refused, ", end="")
    print(f"{time.monotonic() - begun:.0f} s", *[f"{n} x {what}" for what, n in refused.most_common(8)], sep="\n  ")
    return min(failed, 100)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
