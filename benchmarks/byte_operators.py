"""Single operators in 8 bits and in floats as libraries, in counted instructions.

    python benchmarks/byte_operators.py [--targets cortex-m4 aarch64] [--operators NAME ...]

A line has an operator's products (or elements, where it has none) and for each target the
instructions of a call for each of them: in 8 bits / in floats, and how many times fewer in 8 bits.
Operators are quantised with integer ends, so that only integers are counted. What stays in floats
is marked `f`. Boards run in qemu-system-arm; other processors in qemu's user emulation with a
plugin that counts. Needs the emulators and cross compilers.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import mycel as ms
from mycel import nn, ops
from mycel._src.engines.aot.library import Library
from mycel._src.foundation.errors import CompileError, Unsupported
from mycel.deploy import build
from mycel.deploy.boards import BOARDS, BoardError, run
from mycel.deploy.emulated import MACHINES
from mycel.quantisation import quantise

# The compiler and the emulator of other targets, with what it is told.
EMULATED = {
    **{m.target: (m.compiler, m.emulator, *m.arguments) for m in MACHINES.values() if m.is_hosted},
    **dict.fromkeys(("x86-64-v2", "x86-64-v3"), ("gcc", "qemu-x86_64", "-cpu", "max")),
}
SHAPE = (1, 32, 12, 12)
_MAIN = """#include "f.h"
#include <string.h>
static unsigned char x[{x}] __attribute__((aligned(64))), y[{y}] __attribute__((aligned(64)));
static unsigned char arena[F_ARENA_BYTES + 64] __attribute__((aligned(64)));
int main(int count, char **words) {{
    memset(x, 3, sizeof x);
    for (int k = 0; k < count; k++) f((void *)x, (void *)y, arena);
    return 0;
}}
"""
# A plugin of qemu's user emulation that counts the instructions that a program executes.
_PLUGIN = r"""
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PUBLIC __attribute__((visibility("default")))

struct qemu_plugin_tb;
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t, void (*)(uint64_t, struct qemu_plugin_tb *));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int, void *, uint64_t);
void qemu_plugin_register_atexit_cb(uint64_t, void (*)(uint64_t, void *), void *);

PUBLIC int qemu_plugin_version = 1;
static uint64_t count;

static void translated(uint64_t id, struct qemu_plugin_tb *block) {
    qemu_plugin_register_vcpu_tb_exec_inline(block, 0, &count, qemu_plugin_tb_n_insns(block));
}

static void finished(uint64_t id, void *nothing) {
    fprintf(stderr, "instructions %llu\n", (unsigned long long)count);
}

PUBLIC int qemu_plugin_install(uint64_t id, const void *about, int argc, char **argv) {
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, finished, NULL);
    return 0;
}
"""


def conv(count: int = 32, kernel: Any = 3, **more: Any) -> nn.Cell:
    """Return a convolution of 32 channels."""
    return nn.Conv2d(32, count, kernel, has_bias=True, **more)


def behind(cell: Any) -> nn.Cell:
    """Return a layer with something behind it."""
    return nn.SequentialCell(conv(32, 1), cell)


class Of(nn.Cell):
    """A function as a network."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def construct(self, x: Any) -> Any:
        """Return what the function gives."""
        return self.function(x)


class Branches(nn.Cell):
    """Two layers of one image, whose results are joined."""

    def __init__(self, join: Callable[..., Any]) -> None:
        super().__init__()
        self.join, self.one, self.other = join, conv(16, 1), conv(16, 1)

    def construct(self, x: Any) -> Any:
        """Return both results, joined."""
        return self.join(self.one(x), self.other(x))


def upsampled(x: Any) -> Any:
    """Return an image twice as large, each element four times."""
    n, c, h, w = x.shape
    return ops.broadcast_to(x.reshape(n, c, h, 1, w, 1), (n, c, h, 2, w, 2)).reshape(n, c, 2 * h, 2 * w)


# Each operator and the products of a call; 0 where its elements are counted.
P = 144
OPERATORS: dict[str, tuple[Callable[[], Any], int]] = {
    "conv 1x1": (lambda: conv(32, 1), P * 32 * 32),
    "conv 3x3": (lambda: conv(32, 3), P * 32 * 32 * 9),
    "conv 3x3, stride 2": (lambda: conv(32, 3, stride=2), P // 4 * 32 * 32 * 9),
    "conv 1x5": (lambda: conv(32, (1, 5)), P * 32 * 32 * 5),
    "conv 5x1": (lambda: conv(32, (5, 1)), P * 32 * 32 * 5),
    "conv 3x3, dilation 2": (lambda: conv(32, 3, dilation=2), P * 32 * 32 * 9),
    "conv 3x3, 4 groups": (lambda: conv(32, 3, group=4), P * 32 * 8 * 9),
    "conv 1x1, 2 groups": (lambda: conv(32, 1, group=2), P * 32 * 16),
    "conv 3x3, 33 outputs": (lambda: conv(33, 3), P * 33 * 32 * 9),
    "depthwise 3x3": (lambda: conv(32, 3, group=32), P * 32 * 9),
    "depthwise 5x5": (lambda: conv(32, 5, group=32), P * 32 * 25),
    "depthwise 7x7": (lambda: conv(32, 7, group=32), P * 32 * 49),
    "depthwise, dilation 2": (lambda: conv(32, 3, group=32, dilation=2), P * 32 * 9),
    "depthwise, 2 each": (lambda: conv(64, 3, group=32), P * 64 * 9),
    "transposed 3x3, stride 2": (lambda: nn.Conv2dTranspose(32, 32, 3, stride=2, has_bias=True), P * 32 * 32 * 9),
    "dense 4608 to 32": (lambda: nn.SequentialCell(nn.Flatten(), nn.Dense(4608, 32)), 4608 * 32),
    "average 3x3": (lambda: behind(nn.AvgPool2d(3, stride=1, pad_mode="same")), P * 32 * 32),
    "average 3x3, inside": (lambda: behind(nn.AvgPool2d(3, stride=1, pad_mode="valid")), P * 32 * 32),
    "average of all": (lambda: Of(lambda x: x.mean((2, 3))), 0),
    "average of channels": (lambda: Of(lambda x: x.mean(1)), 0),
    "maximum 3x3, stride 2": (lambda: behind(nn.MaxPool2d(3, stride=2, pad_mode="same")), P * 32 * 32),
    "sum of two": (lambda: Branches(lambda a, b: a + b), P * 32 * 32),
    "concat of two": (lambda: Branches(lambda a, b: ops.cat((a, b), 1)), P * 32 * 32),
    "product of two": (lambda: Branches(lambda a, b: a * b), P * 32 * 32),
    "nearest, twice": (lambda: behind(Of(upsampled)), P * 32 * 32),
    "relu": (lambda: behind(nn.ReLU()), P * 32 * 32),
    "sigmoid": (lambda: behind(nn.Sigmoid()), P * 32 * 32),
    "hard swish": (lambda: behind(nn.HSwish()), P * 32 * 32),
    "softmax": (lambda: behind(nn.Softmax(1)), P * 32 * 32),
}


def counted(library: Library, folder: Path) -> float:
    """Return the instructions of a call of a library on its target."""
    (x,), (y,) = library.inputs, library.outputs
    if library.target in BOARDS:
        given = np.full(x.type.shape, 3, x.type.dtype.numpy)
        return run(library, [[given]], folder).instructions[0]
    compiler, *emulator = EMULATED[library.target]
    library.write(folder)
    (folder / "main.c").write_text(_MAIN.format(x=int(x.type.nbytes), y=int(y.type.nbytes)))
    subprocess.run([compiler, "-static", "-O1", "-o", "f", "main.c", "f.o", "-lm"], cwd=folder, check=True)
    plugin = folder / "count.so"
    (folder / "count.c").write_text(_PLUGIN)
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", plugin, folder / "count.c"], check=True)
    found = []
    for calls in (1, 5):
        program = [*emulator, "-plugin", str(plugin), "./f"]
        done = subprocess.run(program + ["x"] * (calls - 1), cwd=folder, capture_output=True, text=True, check=True)
        found.append(int(done.stderr.rsplit("instructions ", 1)[1]))
    return (found[1] - found[0]) / 4


def measured(net: Any, x: np.ndarray, target: str) -> float:
    """Return the instructions of a call of a network on a target; nan where it cannot be built."""
    try:
        library = build(net, ms.Tensor(x), target=target, name="f")
        with tempfile.TemporaryDirectory() as folder:
            return counted(library, Path(folder))
    except (BoardError, CompileError, Unsupported) as error:
        print(f"{target}: {str(error)[:200]}", file=sys.stderr)
        return float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", nargs="+", choices=[*BOARDS, *EMULATED], default=["cortex-m4", "cortex-m55"])
    parser.add_argument("--operators", nargs="+", choices=list(OPERATORS), default=list(OPERATORS))
    options = parser.parse_args()
    print(f"{'operator':26}{'products':>12}", *[f"{t:>26}" for t in options.targets], sep="", flush=True)
    for name in options.operators:
        make, products = OPERATORS[name]
        ms.set_seed(1)
        net = make().set_train(False)
        x = np.random.default_rng(1).standard_normal(SHAPE).astype(np.float32)
        count = products or x.size
        print(f"{name:26}{count:>12,}", end="", flush=True)
        try:
            small = quantise(net, ms.Tensor(x), integer_ends=True)
        except Unsupported:
            print("  stays in floats", flush=True)
            continue
        steps = small.quantised_input(x)
        mark = "f" if small.report.floats else ""
        for target in options.targets:
            ours, floats = measured(small, steps, target), measured(net, x, target)
            line = f"{ours / count:.2f}{mark}/{floats / count:.2f} {floats / ours:.2f}x"
            print(f"{line:>26}", end="", flush=True)
        print(flush=True)


if __name__ == "__main__":
    main()
