"""Bounds-checked programs: with ``MYCEL_CHECK=bounds`` every access is checked before it is made.

*Kernels* are compiled with checks (`kernels.bounds_instrumentation`): each load and store, lane by
lane, must lie in the buffer of its argument word, with the size that the lowering gave it; the
buffer may be an input, an output, a constant or a slot of the arena. An access outside is not made
but recorded, and raised as a BoundsError when the call ends.

*Other steps* (copies, the dense library, host steps, control flow) have addresses and sizes that
are known when a program is made, and are checked then. It is also checked that buffers fit into
their places and, at each call, that the memory of the inputs is as large as their types.

*Poison* (`POISON`, a NaN in every float type, large in every integer type) fills memory that the
allocator gives and takes back, the arena before a run, and each slot of the arena after its value
was read for the last time. So a value that is read too early or too late is certainly a wrong
number.

The environment variable is read when a process starts (`bounds_check_setting`); code without checks
has no overhead.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from mycel._src.compiler.ir.source_locations import excerpt
from mycel._src.engines.native.kernels.codegen import Kernel
from mycel._src.engines.native.kernels.loop_nest import Buffer, Nest
from mycel._src.engines.native.kernels.strided_view import View
from mycel._src.engines.native.onednn import c_interface
from mycel._src.engines.native.onednn.dense_call import DenseCall
from mycel._src.engines.native.onednn.plan import Product
from mycel._src.engines.native.program.placed_template import Placed
from mycel._src.engines.native.runtime.runtime import runtime
from mycel._src.engines.native.steps.step_types import Call, Copy, HostCall, Nested, Step
from mycel._src.foundation.errors import BoundsError

__all__ = ["Watch"]

LINE = 64
# What is noted of an access; see `bounds_instrumentation`.
RECORD = ("noted", "step", "word", "write", "offset", "bytes", "size")


class Watch:
    """The record for the checks of a program and of the recursive functions that it calls."""

    def __init__(self) -> None:
        self.record: Any = (ctypes.c_int64 * len(RECORD))()
        self.steps: list[tuple[Placed, Step, Kernel]] = []

    # While a program is made.

    def words(self, program: Placed, step: Step, kernel: Kernel) -> list[int]:
        """Return the words that follow those of a kernel."""
        self.steps.append((program, step, kernel))
        sizes = [program.nbytes(value) for kind, value in kernel.words if kind == "pointer"]
        return [ctypes.addressof(self.record), len(self.steps) - 1, *sizes]

    def verify(self, program: Placed, step: Step) -> None:
        """Check the addresses and sizes of a step without checks of its own.

        Raises BoundsError.
        """
        for buffer in (*step.reads, *step.writes):
            room = _room(program, buffer)
            if room is not None and program.nbytes(buffer) > room:
                raise BoundsError(
                    f"{_said(step)}: {_described(buffer)} takes {program.nbytes(buffer)} bytes, and there are {room} "
                    f"where it lies{_mend(step)}"
                )
        for buffer, start, stop in _reaches(program, step):
            if not 0 <= start <= stop <= max(program.nbytes(buffer), 1):
                raise BoundsError(
                    f"{_said(step)}: bytes {start} to {stop} of {_described(buffer)} are used, which has "
                    f"{program.nbytes(buffer)}{_mend(step)}"
                )

    # While it runs.

    def inputs(self, program: Placed, buffers: Sequence[Any]) -> None:
        """Check that the memory of inputs is as large as their types.

        Raises BoundsError.
        """
        for k, (buffer, declared) in enumerate(zip(buffers, program.lowered.inputs)):
            needed, known = program.nbytes(declared), _extent(buffer)
            if known is not None and needed > known:
                raise BoundsError(
                    f"{program.graph.name}: input {k} is {_described(declared)} of {needed} bytes, and its buffer has "
                    f"{known}: whoever made the call is wrong"
                )

    def look(self) -> None:
        """Raise BoundsError if an access outside was recorded."""
        if not self.record[0]:
            return
        found = dict(zip(RECORD, self.record))
        self.record[0] = 0
        program, step, kernel = self.steps[found["step"]]
        word = found["word"]
        if word < 0:
            whose = "memory of its own"
        else:
            buffer = kernel.words[word][1]
            place = (buffer.place or ("arena",))[0]
            number = [k for k, (kind, _) in enumerate(kernel.words) if kind == "pointer"].index(word)
            whose = f"operand {number}, {_described(buffer)} in the {place} memory of {program.graph.name}"
        verb = "writes" if found["write"] else "reads"
        raise BoundsError(
            f"{_said(step)}: {verb} {found['bytes']} bytes at offset {found['offset']} of {whose}, which has "
            f"{found['size']} bytes{_mend(step)}"
        )


def _room(program: Placed, buffer: Buffer) -> int | None:
    """Return the bytes of memory from a buffer's start to the end of its place; None if unknown."""
    kind, where = buffer.place or ("arena", program.places[id(buffer)])
    if kind == "constant":
        return int(program.lowered.constants[id(buffer)][1].nbytes)
    if kind == "output":
        # The allocator gives no less than a line of the cache, which is where results without
        # elements lie.
        return int(program.number(program.outputs[where].nbytes)) or LINE
    if kind == "arena":
        return int(program.arena_bytes - where)
    return program.nbytes(program.lowered.inputs[where])


def _reaches(program: Placed, step: Step) -> Iterator[tuple[Buffer, int, int]]:
    """Yield the memory that a step other than a kernel uses.

    There are buffers, each with its first byte and the one after its last.
    """
    data = step.data
    if isinstance(data, Copy):
        target, source = data.target, data.source
        first, size = program.offset(source), prod(program.shape(source)) * source.buffer.dtype.itemsize
        yield target.buffer, 0, size
        yield source.buffer, first, first + size
    elif isinstance(data, DenseCall):
        plan, views = program.calls[id(step)]
        for call in plan._steps:
            if isinstance(call, Product):
                reaches = dict(zip(call.buffers, _product(call)))
            else:
                size_of = c_interface.library().c.dnnl_memory_desc_get_size
                # What the library says of strided memory may reach beyond the last element.
                reaches = {n: plan.operands[n].span if n in plan.operands else size_of(d) for _, d, n in call.arguments}
            for name, size in reaches.items():
                yield views[name].buffer, program.offset(views[name]), program.offset(views[name]) + size
    elif isinstance(data, Nested):
        yield _whole(program, data.predicate)
    elif isinstance(data, (HostCall, Call)):
        yield from (_whole(program, v) for v in (*data.reads, *data.writes))


def _whole(program: Placed, view: View) -> tuple[Buffer, int, int]:
    first = program.offset(view)
    return view.buffer, first, first + prod(program.shape(view)) * view.buffer.dtype.itemsize


def _product(call: Product) -> list[int]:
    """Return how many bytes a product uses of its factors and its result."""
    m, n, k = call.sizes
    lies = [(k, m) if call.transposed[0] else (m, k), (n, k) if call.transposed[1] else (k, n), (m, n)]
    return [
        4 * ((call.count - 1) * step + (rows - 1) * gap + columns)
        for (rows, columns), gap, step in zip(lies, call.rows, call.steps)
    ]


def _described(buffer: Buffer) -> str:
    return f"{buffer.name or 'a value'!s} {buffer.dtype.name}[{buffer.size}]"


def _said(step: Step) -> str:
    names = [node.op for node in (step.members or ([step.node] if step.node is not None else ())) if node.prim]
    if isinstance(step.data, Nest) and step.data.name not in names:
        names.append(step.data.name)
    return f"a {step.kind}{' of ' if names else ''}{', '.join(dict.fromkeys(names))}"


def _mend(step: Step) -> str:
    places = [node.where for node in (step.node, *step.members) if node is not None and node.where is not None]
    place = f"\n{excerpt(places[0])}" if places else ""
    return f"{place}\n  this is a defect of the compiler, not of the program; MYCEL_CHECK=bounds found it"


_CAPSULE: Any = ctypes.pythonapi.PyCapsule_GetContext
_CAPSULE.restype, _CAPSULE.argtypes = ctypes.c_void_p, [ctypes.py_object]


def _extent(buffer: Any) -> int | None:
    """Return the bytes of memory from a buffer's start; None where that is unknown."""
    start = runtime().data_address(buffer)
    owner = _CAPSULE(buffer)
    if not owner:
        return int(ctypes.c_int64.from_address(start - 40).value)
    whole = ctypes.cast(owner, ctypes.py_object).value
    if isinstance(whole, np.ndarray):
        return int(whole.__array_interface__["data"][0] + whole.nbytes - start) if whole.flags.c_contiguous else None
    if type(whole) is type(buffer):
        inner = _extent(whole)
        return None if inner is None else int(runtime().data_address(whole) + inner - start)
    return None
