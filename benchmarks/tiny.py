"""The four networks of MLPerf Tiny, in 8 bits, on emulated microcontrollers.

    python benchmarks/tiny.py [--targets cortex-m4 cortex-m55] [--networks keywords anomaly]

A line has the products of a call, instructions and instructions for each product, bytes of arena,
code, constants and flash, and bytes of stack; behind a slash there is what TensorFlow Lite Micro
and CMSIS-NN's kernels take, where that is known. The arena is memory beyond weights, input and
result. Results are compared with those of this machine, bit for bit. `make device` installs what it
needs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import mycel as ms
from mycel.deploy import build
from tests.deploy.boards import BOARDS, missing_tools, run
from tests.deploy.tiny import NETWORKS, Tiny, quantised

# Instructions for each product that CMSIS-NN's kernels take: of convolutions and dense layers, and
# of depthwise layers.
OTHERS = {"cortex-m4": (2.2, 8.3), "cortex-m55": (0.5, 3.0)}
COLUMNS = (
    ("instructions", 14),
    ("each", 11),
    ("arena", 15),
    ("code", 15),
    ("constants", 11),
    ("flash", 9),
    ("stack", 7),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", nargs="+", choices=list(BOARDS), default=["cortex-m4", "cortex-m55"])
    parser.add_argument("--networks", nargs="+", choices=list(NETWORKS), default=list(NETWORKS))
    options = parser.parse_args()
    if missing_tools():
        print(f"{missing_tools()} is not installed; make device installs it", file=sys.stderr)
        return 2
    print(f"{'network':<22}{'target':<12}{'products':>12}", *[f"{name:>{width}}" for name, width in COLUMNS], sep="")
    wrong = 0
    for name in options.networks:
        tiny = NETWORKS[name]
        small, x = quantised(name)
        expected = ms.jit(small)(ms.Tensor(x)).asnumpy()
        for target in options.targets:
            library = build(small, ms.Tensor(x), target=target, name="network")
            with tempfile.TemporaryDirectory() as folder:
                done = run(library, [[x]], Path(folder))
            count = done.instructions[0]
            values = (
                f"{count:,}",
                f"{count / tiny.products:.2f}/{_other(target, tiny)}",
                f"{library.arena_bytes:,}/{tiny.ram_bytes:,}",
                f"{library.code_bytes:,}/{tiny.code_bytes:,}",
                f"{library.constant_bytes:,}",
                f"{library.flash_bytes:,}",
                f"{done.stack_bytes:,}",
            )
            print(f"{name:<22}{target:<12}{tiny.products:>12,}", end="")
            print(*[f"{value:>{width}}" for value, (_, width) in zip(values, COLUMNS)], sep="", end="")
            same = np.array_equal(done.results[0][0], expected)
            print("" if same else "  WRONG", flush=True)
            wrong += not same
    return min(wrong, 100)


def _other(target: str, tiny: Tiny) -> str:
    """Return the instructions for each product that a network takes with CMSIS-NN's kernels."""
    if target not in OTHERS:
        return "-"
    plain, depthwise = OTHERS[target]
    return f"{plain + (depthwise - plain) * tiny.depthwise / tiny.products:.2f}"


if __name__ == "__main__":
    sys.exit(main())
