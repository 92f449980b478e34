"""Random networks of 8 bits as libraries for microcontrollers, against the reference's integers.

    python -m tests.deploy.random_bytes TARGET FIRST COUNT

A network is a chain of layers of levels over an image: convolutions of all kinds, dense layers,
sums, averages, maxima, and views of what came before. Zero points, ends and multipliers are random,
those at the ends of their ranges included. Boards run in qemu (`tests.deploy.boards`), other
targets as `tests.deploy.random_graphs` runs them.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import constant
from mycel._src.compiler.prims.convolution.window import window_max, window_sum
from mycel._src.compiler.prims.neural.quantisation import int_conv, int_matmul, requantize
from mycel._src.compiler.prims.reduce import reduce_sum
from mycel._src.compiler.transforms.quantise.scales import multipliers
from mycel._src.engines.aot.library import library_of
from mycel._src.engines.reference import evaluate
from mycel._src.foundation.dtype import int8, int32
from tests.deploy.boards import BOARDS, run
from tests.deploy.random_graphs import runner

__all__ = ["RandomBytes", "check_seed"]

Array = np.ndarray[Any, Any]
# Sizes that are one, few, and around multiples of the sizes of tiles and vectors.
CHANNELS = (1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 20, 24, 33)


class RandomBytes:
    """A graph of a seed, and the arrays of its inputs."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        # What came later draws from another one, so that seeds keep their networks.
        self.later = np.random.default_rng((seed, 1))
        shape = (self.pick(1, 1, 2, 3), self.pick(*CHANNELS), self.pick(*range(1, 12)), self.pick(*range(1, 12)))
        self.arrays = [self.bytes_of(shape)]
        x = input_node(tensor_type(shape, int8), "x")
        self.inputs, self.kept = [x], []
        for _ in range(self.pick(1, 2, 3, 4)):
            x = self.layer(x)
            if self.pick(0, 0, 1):
                self.kept.append(x)
        self.graph = Graph(self.inputs, [*{id(n): n for n in (*self.kept, x)}.values()], f"bytes {seed}")

    def pick(self, *of: Any) -> Any:
        return of[int(self.rng.integers(len(of)))]

    def bytes_of(self, shape: Sequence[int], low: int = -128) -> Array:
        ends = self.rng.choice([low, 127, *range(-9, 9)], shape)
        return np.where(self.rng.random(shape) < 0.5, ends, self.rng.integers(low, 128, shape)).astype(np.int8)

    def layer(self, x: Node) -> Node:
        if x.type.rank == 2:
            return self.pick(self.dense, self.summed)(x)
        kinds = [self.convolution] * 4 + [self.depthwise] * 3 + [self.dense, self.summed, self.view, self.pooled]
        return self.pick(*kinds, self.averaged, self.meaned)(x)

    def rescaled(self, total: Node, terms: int, channels: int, axis: int) -> Node:
        """Return a sum of so many products in the levels of a scale, or of one for each channel."""
        spread = [1] * total.type.rank
        spread[axis] = channels
        size = 60.0 / (terms**0.5 * 60 * 60) * self.rng.uniform(0.3, 3.0, spread if self.pick(0, 1) else ())
        if self.pick(0, 0, 0, 1):
            size = size * self.pick(200.0, 1e-3)
        whole, shift = multipliers(np.asarray(size))
        low, high = self.pick((-128, 127), (-128, 127), (-20, 90), (0, 1))
        return requantize(
            total,
            constant(whole),
            constant(shift),
            zero=self.pick(-128, 127, 0, int(self.rng.integers(-128, 128))),
            low=low,
            high=high,
            rounding=self.pick("single", "single", "double"),
            dtype=int8,
        )

    def biased(self, total: Node, channels: int, axis: int) -> Node:
        if not self.pick(0, 1, 1):
            return total
        shape = [1] * total.type.rank
        shape[axis] = channels
        bias = constant(self.rng.integers(-5000, 5000, shape).astype(np.int32))
        return E.add(total, bias) if self.pick(0, 1, 1) else E.add(bias, total)

    def zero(self) -> int:
        return int(self.pick(-128, 127, 0, int(self.rng.integers(-128, 128))))

    def window(self, x: Node, most: int) -> tuple[tuple[int, ...], dict[str, Any]]:
        """Return a kernel that fits, and the parameters of how it moves."""
        p: dict[str, Any] = {"strides": (self.pick(1, 1, 2, 3), self.pick(1, 1, 2, 3))}
        p["padding"] = tuple((self.pick(0, 0, 1, 2), self.pick(0, 0, 1, 2)) for _ in range(2))
        fits = [min(most, d + sum(e)) for d, e in zip(x.shape[2:], p["padding"])]
        return tuple(int(self.rng.integers(1, f + 1)) for f in fits), p

    def dilated(self, x: Node, kernel: Sequence[int], p: dict[str, Any]) -> tuple[int, ...]:
        """Return distances of the taps with which a kernel fits."""
        sizes = [d + sum(e) for d, e in zip(x.shape[2:], p["padding"])]
        return tuple(self.pick(*[d for d in (1, 1, 2, 3) if (k - 1) * d < size]) for k, size in zip(kernel, sizes))

    def convolution(self, x: Node) -> Node:
        groups = self.pick(*[g for g in (1, 1, 1, 2, 3, 4) if x.shape[1] % g == 0])
        kernel, p = self.window(x, 4)
        if self.pick(0, 1, 1):
            kernel, p = (1, 1), {"strides": (1, 1), "padding": ((0, 0), (0, 0))}
        p["dilation"] = self.dilated(x, kernel, p)
        outputs = groups * self.pick(*CHANNELS)
        w = self.bytes_of((outputs, x.shape[1] // groups, *kernel), -127)
        total = int_conv(x, constant(w), groups=groups, zero=self.zero(), **p)
        return self.rescaled(self.biased(total, outputs, 1), w[0].size, outputs, 1)

    def depthwise(self, x: Node) -> Node:
        kernel, p = self.window(x, self.pick(4, 4, 7))
        p["dilation"], outputs = self.dilated(x, kernel, p), x.shape[1] * self.pick(1, 1, 1, 2, 3)
        w = self.bytes_of((outputs, 1, *kernel), self.pick(-127, -127, -128))
        total = int_conv(x, constant(w), groups=x.shape[1], zero=self.zero(), **p)
        return self.rescaled(self.biased(total, outputs, 1), w[0].size, outputs, 1)

    def dense(self, x: Node) -> Node:
        inputs, outputs = int(np.prod(x.shape[1:])), self.pick(*CHANNELS)
        rows = S.reshape(x, (x.shape[0], inputs)) if x.type.rank != 2 else x
        total = int_matmul(rows, constant(self.bytes_of((inputs, outputs), -127)), a_zero=self.zero(), b_zero=0)
        if self.pick(0, 0, 0, 1):
            # The sums are read as well.
            self.kept.append(total)
        return self.rescaled(self.biased(total, outputs, 1), inputs, outputs, 1)

    def summed(self, x: Node) -> Node:
        """Return the sum of two values, as `transforms.quantise.integer_arithmetic.summed` writes
        it.
        """
        other = input_node(x.type, f"x{len(self.inputs)}")
        self.inputs.append(other)
        self.arrays.append(self.bytes_of(x.shape))
        parts = []
        rounding = self.pick("single", "double")
        for value in (x, other):
            wide = E.sub(E.cast(value, dtype=int32), self.zero())
            whole, shift = multipliers(np.asarray(self.rng.uniform(0.05, 0.5) * self.pick(1, 1, -1)))
            ends = {"low": -(1 << 31), "high": (1 << 31) - 1, "zero": 0, "dtype": int32}
            moved = E.shift_left(wide, 20)
            parts.append(requantize(moved, constant(whole), constant(shift), rounding=rounding, **ends))
        whole, shift = multipliers(np.asarray(self.rng.uniform(0.5, 3.0) / (1 << 20)))
        last = {"low": self.pick(-128, -7), "high": 127, "zero": self.zero(), "dtype": int8}
        return requantize(E.add(*parts), constant(whole), constant(shift), rounding=rounding, **last)

    def total(self, x: Node) -> Node:
        wide, zero = E.cast(x, dtype=int32), self.zero()
        return E.sub(wide, zero) if zero else wide

    def averaged(self, x: Node) -> Node:
        kernel, p = self.window(x, 9)
        total = window_sum(self.total(x), window=kernel, **p)
        return self.mean(total, int(np.prod(kernel)), self.factors(x, total, kernel, p))

    def factors(self, x: Node, total: Node, kernel: tuple[int, ...], p: dict[str, Any]) -> Array | float:
        """Return what the sums of windows are multiplied with, beside the same for all.

        Some have a number for each count of places in the image, or any for each position.
        """
        kind = int(self.later.integers(4))
        if kind > 1:
            return 1.0
        if kind:
            return self.later.uniform(0.3, 3.0, (1, 1, *total.shape[2:]))
        (ones,) = evaluate(_sums_of_ones(x.shape[2:], kernel, p), [])
        return np.prod(kernel) / np.maximum(ones, 1)

    def meaned(self, x: Node) -> Node:
        keep = self.pick(True, False)
        return self.mean(reduce_sum(self.total(x), axes=(2, 3), keepdims=keep), int(np.prod(x.shape[2:])))

    def mean(self, total: Node, count: int, factors: Array | float = 1.0) -> Node:
        whole, shift = multipliers(np.asarray(self.rng.uniform(0.3, 2.0) / count * factors))
        ends = {"low": -128, "high": self.pick(127, 40), "zero": self.zero(), "dtype": int8}
        return requantize(total, constant(whole), constant(shift), rounding=self.pick("single", "double"), **ends)

    def pooled(self, x: Node) -> Node:
        kernel, p = self.window(x, 3)
        p["padding"] = tuple((min(a, k - 1), min(b, k - 1)) for (a, b), k in zip(p["padding"], kernel))
        return window_max(x, window=kernel, **p)

    def view(self, x: Node) -> Node:
        if self.pick(0, 1):
            return S.transpose(x, (0, *self.pick((1, 3, 2), (2, 3, 1), (3, 1, 2))))
        starts = [self.pick(0, min(1, d - 1)) for d in x.shape]
        return S.SLICE(x, starts=tuple(starts), stops=tuple(x.shape), steps=(1, 1, 1, self.pick(1, 2)))


def _sums_of_ones(size: Sequence[int], kernel: tuple[int, ...], p: dict[str, Any]) -> Graph:
    ones = constant(np.ones((1, 1, *size), np.int32))
    return Graph([], [window_sum(ones, window=kernel, **p)], "ones")


def check_seed(seed: int, target: str, folder: Path) -> str:
    """What is wrong with the library of a seed's graph on its target; else empty."""
    made = RandomBytes(seed)
    want = evaluate(made.graph, made.arrays)
    names = [f"x{k}" for k in range(len(made.inputs))]
    library = library_of(made.graph, names, [], {}, target, "f")
    if target in BOARDS:
        got = run(library, [made.arrays], folder).results[0]
    else:
        got = runner(target, folder)(library, made.arrays)
    wrong = [k for k, (a, b) in enumerate(zip(got, want)) if not np.array_equal(a, b)]
    return f"outputs {wrong} of {made.graph.outputs}" if wrong else ""


def main(arguments: Sequence[str]) -> int:
    """Check seeds; the number of those that fail, at most 100."""
    target, first, count = arguments[0], int(arguments[1]), int(arguments[2])
    begun, failed = time.monotonic(), 0
    for seed in range(first, first + count):
        with tempfile.TemporaryDirectory() as folder:
            try:
                wrong = check_seed(seed, target, Path(folder))
            except Exception as error:
                wrong = f"{type(error).__name__}: {str(error)[-300:]}"
        if wrong:
            failed += 1
            print(f"seed {seed}: {wrong}", flush=True)
    print(f"{target}: {count} networks from {first}, {failed} failed, {time.monotonic() - begun:.0f} s")
    return min(failed, 100)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
