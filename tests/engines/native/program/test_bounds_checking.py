"""Checks of bounds: each operand of each kind of kernel, told to be an element shorter than it is,
and what a checked process says.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims import sort_and_scan
from mycel._src.compiler.prims.convolution import conv, window
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.engines.native.kernels.bounds_instrumentation import size_of, with_checks
from mycel._src.engines.native.kernels.codegen import NAME, Kernel
from mycel._src.engines.native.kernels.loop_nest import Buffer
from mycel._src.engines.native.llvm import jit
from mycel._src.engines.native.program.bounds_checking import RECORD
from mycel._src.engines.native.program.compiling import compile_native
from mycel._src.foundation import dtype as D

F, H, B, N = D.float32, D.float16, D.bool_, D.int32


def images(x: Node, w: Node) -> Node:
    return conv.conv(x, w, strides=(1, 1), padding=((1, 1), (1, 1)), dilation=(1, 1), groups=3)


# Graphs of one kernel that reaches the last element of each of its operands.
CASES: dict[str, tuple[Callable[..., Any], list[tuple[tuple[int, ...], D.DType]]]] = {
    "a vector and its tail": (lambda x, y: E.add(x, y), [((37,), F), ((37,), F)]),
    "one element": (lambda x: E.neg(x), [((), F)]),
    "half floats": (lambda x: E.tanh(x), [((100,), H)]),
    "booleans": (lambda x, y: E.logical_and(x, y), [((65,), B), ((65,), B)]),
    "mixed types": (lambda x: E.cast(E.gt(x, 0.0), dtype=D.int64), [((50,), D.float64)]),
    "rows": (lambda x: R.reduce_sum(x, axes=(1,), keepdims=False), [((5, 33), F)]),
    "columns": (lambda x: R.reduce_max(x, axes=(0,), keepdims=False), [((33, 40), F)]),
    "the place of the largest": (lambda x: R.argmax(x, axis=0), [((99,), F)]),
    "tiles": (lambda x: S.transpose(x, (1, 0)), [((40, 35), F)]),
    "every third": (lambda x: E.neg(S.slice_(x, (0,), (100,), (3,))), [((100,), F)]),
    "backwards": (lambda x: E.neg(S.reverse(x, axes=(0,))), [((70,), F)]),
    "a running sum": (lambda x: sort_and_scan.cumsum(x, axis=0, reverse=False), [((77,), F)]),
    "a long sort": (lambda x: sort_and_scan.sort(x, axis=1, descending=False), [((2, 130), F)]),
    "a short sort": (lambda x: sort_and_scan.sort(x, axis=1, descending=True), [((3, 20), D.float64)]),
    "the first few": (lambda x: sort_and_scan.top_k(x, k=5, axis=1, largest=True), [((2, 400), F)]),
    "a search": (lambda x, y: sort_and_scan.search_sorted(x, y, side="right"), [((1, 40), F), ((1, 30), F)]),
    "a gather": (lambda x, i: I.take(x, i, axis=0), [((90,), F), ((33,), N)]),
    "padding": (lambda x: S.pad(x, 0.5, (2,), (3,)), [((60,), F)]),
    "windows": (
        lambda x: window.window_max(x, window=(2, 2), strides=(1, 1), padding=((0, 0), (0, 0))),
        [((1, 2, 9, 21), F)],
    ),
    "channels apart": (images, [((2, 3, 9, 20), F), ((3, 1, 3, 3), F)]),
}


class Run:
    """A kernel with checks, and memory for its words: arrays of as many bytes as there are,
    whatever the kernel is told.
    """

    def __init__(self, program: Any, kernel: Kernel) -> None:
        self.kernel = kernel
        self.numbers = [k for k, (kind, _) in enumerate(kernel.words) if kind == "pointer"]
        records = [k for k, (kind, _) in enumerate(kernel.words) if kind == "site"]
        text = with_checks(kernel.text, len(kernel.words), self.numbers, records)
        (code,) = jit.compile_objects([text])
        address = jit.machine().link(code, [NAME], {})[0]
        self.function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(address)
        self.extent = program.number(kernel.extent)
        self.values = [
            None if isinstance(v, Buffer) or kind == "site" else program.number(v) for kind, v in kernel.words
        ]
        self.sizes = [program.number(self.buffer(k).size) * self.buffer(k).dtype.itemsize for k in self.numbers]

    def buffer(self, word: int) -> Buffer:
        """What a word is the address of."""
        found: Buffer = self.kernel.words[word][1]
        return found

    def __call__(self, short: int | None = None) -> tuple[dict[str, int], list[Any]]:
        """What is noted, and the memory, where operand `short` is said to have an element less than
        it has.
        """
        memory = [
            np.full(size // self.buffer(k).dtype.itemsize, 1, self.buffer(k).dtype.numpy)
            for k, size in zip(self.numbers, self.sizes)
        ]
        for k, array in zip(self.numbers, memory):
            if self.buffer(k).dtype is N and self.buffer(k).place[0] == "input":
                array[-1] = 89
        record, status = (ctypes.c_int64 * len(RECORD))(), (ctypes.c_int64 * 1)()
        site = (ctypes.c_int64 * 2)(0, ctypes.addressof(status))
        words = [ctypes.addressof(site) if v is None else v for v in self.values]
        sizes = list(self.sizes)
        for n, k in enumerate(self.numbers):
            words[k] = memory[n].ctypes.data
            if n == short:
                sizes[n] -= self.buffer(k).dtype.itemsize
        held = (ctypes.c_int64 * (len(words) + 2 + len(sizes)))(*words, ctypes.addressof(record), 7, *sizes)
        self.function(ctypes.addressof(held), 0, self.extent)
        return dict(zip(RECORD, record)), memory


@pytest.mark.parametrize("name", CASES)
def test_an_operand_that_is_an_element_shorter_is_noticed(name: str) -> None:
    make, kinds = CASES[name]
    inputs = [input_node(tensor_type(shape, dtype)) for shape, dtype in kinds]
    made = make(*inputs)
    program = compile_native(Graph(inputs, list(made) if isinstance(made, tuple) else [made]))
    (kernel,) = program.kernels
    run = Run(program, kernel)
    record, whole = run()
    assert not record["noted"]
    places = [(run.buffer(k).place or ("arena", 0))[0] for k in run.numbers]
    assert places.count("input") == len(inputs) and "output" in places
    for n, word in enumerate(run.numbers):
        if places[n] == "arena":
            continue
        record, memory = run(n)
        size, item = run.sizes[n], run.buffer(word).dtype.itemsize
        assert record["noted"] == 1 and record["step"] == 7 and record["word"] == word, places[n]
        assert record["write"] == (places[n] == "output") and record["size"] == size - item
        assert record["offset"] <= size - item < record["offset"] + record["bytes"]
        if places[n] == "output":
            # What is inside is written, unless one vector without a mask reaches beyond; the last
            # element never is.
            assert memory[n][-1] == 1
            if record["bytes"] == item:
                np.testing.assert_array_equal(memory[n][:-1], whole[n][:-1])


def test_sizes_of_types() -> None:
    for kind, size in {
        "i1": 1,
        "i8": 1,
        "i128": 16,
        "half": 2,
        "double": 8,
        "ptr": 8,
        "<16 x i1>": 2,
        "<4 x float>": 16,
        "[3 x i16]": 6,
    }.items():
        assert size_of(kind) == size
    with pytest.raises(NotImplementedError, match="fp128"):
        size_of("fp128")


@pytest.mark.parametrize(
    "line",
    [
        "%v = load float, ptr @elsewhere",
        "%v = inttoptr i64 %begin to ptr",
        "call void @other(ptr %words)",
        "%p = load ptr, ptr %words\n  %q = load ptr, ptr %p\n  %v = load float, ptr %q",
    ],
)
def test_what_is_not_understood_is_an_error(line: str) -> None:
    text = (
        f"@elsewhere = global float 0.0\ndeclare void @other(ptr)\ndefine void @{NAME}(ptr %words, i64 %begin, i64 "
        f"%end) {{\nentry:\n  {line}\n  ret void\n}}\n"
    )
    with pytest.raises(NotImplementedError, match="bounds checks"):
        with_checks(text, 1, [0], [])


PROGRAM = '''
import ctypes
import numpy as np
import mycel as ms
from mycel import ops
from mycel._src.engines import buffers
from mycel._src.engines.native.program import program
from mycel.errors import BoundsError

encode = program.Program._encode

def wrong(self, step):
    """Let the second number of a kernel, the columns of a sum over rows, be larger."""
    table = encode(self, step)
    if step.kind == "kernel":
        self.words[table[0][0] + 1] += 64
    return table

@ms.jit
def rows(x):
    return x.sum(axis=1) * 2

x = ms.Tensor(np.ones((64, 48), np.float32))
program.Program._encode = wrong
try:
    rows(x)
except BoundsError as error:
    print(error)
program.Program._encode = encode
np.testing.assert_array_equal((x.sum(axis=1) * 2).asnumpy(), 96)

fresh = buffers.empty(256)
place = buffers.address(fresh)
print(set((ctypes.c_uint64 * 32).from_address(place)) == {0x7FFB7FFB7FFB7FFB})
ctypes.memset(place, 0, 256)
del fresh
print(set((ctypes.c_uint64 * 32).from_address(place)) == {0x7FFB7FFB7FFB7FFB})

@ms.jit
def steps(x):
    return ops.matmul(ops.sort(x)[0], x.T).cumsum(0), ops.matmul(x.T, x)

want = [np.cumsum(48 * np.ones((64, 64)), 0), 64 * np.ones((48, 48))]
for found, value in zip(steps(x), want):
    np.testing.assert_allclose(found.asnumpy(), value)
kinds = [s.kind for p in program.programs() for s in p.starts.values()]
print("poison" in kinds)

bad = ms.Tensor(np.arange(3, dtype=np.int32))
try:
    ms.jit(lambda x, i: x[i])(x, bad + 100)
except IndexError as error:
    print(type(error).__mro__[1].__name__)
'''


def checked(program: str, check: str = "bounds") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "MYCEL_CHECK": check},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_checked_process_names_the_access_and_poisons_memory() -> None:
    done = checked(PROGRAM)
    assert done.returncode == 0, done.stdout + done.stderr
    *message, fresh, freed, slots, index = done.stdout.splitlines()
    assert (
        "reduce_sum" in message[0]
        and "reads" in message[0]
        and "float32[3072]" in message[0]
        and "has 12288 bytes" in message[0]
    )
    assert any("MYCEL_CHECK=bounds found it" in line for line in message)
    assert (fresh, freed, slots, index) == ("True", "True", "True", "IndexError")


def test_an_unknown_check_is_refused() -> None:
    done = checked("import mycel; mycel.Tensor([1.0]) + 1", "borders")
    assert done.returncode and "MYCEL_CHECK=borders: there is no such check" in done.stderr
