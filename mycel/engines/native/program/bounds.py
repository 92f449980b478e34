"""Bounds-checked programs: with ``MYCEL_CHECK=bounds`` in the environment every access is looked at before it is made, and memory that holds nothing is poisoned.

*Kernels* are compiled with checks (`bounds_ir`): each load and store, lane by lane, must lie in the buffer that its argument word is of, as large as the lowering says it
is; the word's buffer may be an input, an output, a constant or a slot of the arena. What would lie outside is not done but noted, and raised as a BoundsError when the call ends.
*Other steps* (copies, the dense library, host steps, control flow) are given addresses and sizes that are known when a program is made, which is when they are
checked. So is that buffers fit into where they lie; and at each call, that the memory of the inputs is as large as their types.

*Poison* (`POISON`, a NaN in every float type, large in every integer type) fills what the allocator gives and takes back, the arena before a run, and each slot of the arena
when what was in it has been read for the last time. So a value that is read too early or too late is a wrong number for certain.

A process is checked or not from its start (`checking`); one that is not has none of this in its code.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from mycel.base.errors import BoundsError
from mycel.base.remembered import SOME, Remembered
from mycel.engines.native.kernels.nest import Buffer
from mycel.engines.native.runtime.checking import is_on
from mycel.ir.places import excerpt

if TYPE_CHECKING:
    from mycel.engines.native.kernels.codegen import Kernel
    from mycel.engines.native.kernels.views import View
    from mycel.engines.native.lowering.lower import Step

__all__ = ["Ends", "Watch", "text_of"]

LINE = 64
# What is noted of an access; see `bounds_ir`.
RECORD = ("noted", "step", "word", "write", "offset", "bytes", "size")
_texts = Remembered[str, str]("kernels with checks of bounds", SOME)


def text_of(kernel: Kernel) -> str:
    """The text that is compiled for a kernel."""
    if not is_on():
        return kernel.text
    found = _texts.get(kernel.text)
    if found is None:
        from mycel.engines.native.kernels.bounds_ir import with_checks

        pointers, records = (
            [k for k, (kind, _) in enumerate(kernel.words) if kind == name] for name in ("pointer", "site")
        )
        found = _texts.enter(kernel.text, with_checks(kernel.text, len(kernel.words), pointers, records))
    return found


class Watch:
    """What the checks of a program need, and of the recursive functions that it calls."""

    def __init__(self) -> None:
        self.record: Any = (ctypes.c_int64 * len(RECORD))()
        self.steps: list[tuple[Any, Step, Kernel]] = []

    # While a program is made.

    def words(self, program: Any, step: Step, kernel: Kernel) -> list[int]:
        """The words behind those of a kernel."""
        self.steps.append((program, step, kernel))
        sizes = [_bytes(program, value) for kind, value in kernel.words if kind == "pointer"]
        return [ctypes.addressof(self.record), len(self.steps) - 1, *sizes]

    def before(self, program: Any) -> list[Any]:
        """The steps that a program begins with."""
        return [_poison(program, 0, program.arena_bytes)] if program.arena_bytes else []

    def after(self, program: Any, members: Sequence[Step]) -> list[Any]:
        """The steps that follow some steps: the poisoning of what was alive until then."""
        return [_poison(program, place, size) for place, size in program.ends.until(members)]

    def verify(self, program: Any, step: Step) -> None:
        """Check what a step is given that does not look itself. Raises BoundsError."""
        for buffer in (*step.reads, *step.writes):
            room = _room(program, buffer)
            if room is not None and _bytes(program, buffer) > room:
                raise BoundsError(
                    f"{_said(step)}: {_described(buffer)} takes {_bytes(program, buffer)} bytes, and there are {room} where it lies{_mend(step)}"
                )
        for buffer, start, stop in _reaches(program, step):
            if not 0 <= start <= stop <= max(_bytes(program, buffer), 1):
                raise BoundsError(
                    f"{_said(step)}: bytes {start} to {stop} of {_described(buffer)} are used, which has {_bytes(program, buffer)}{_mend(step)}"
                )

    # While it runs.

    def inputs(self, program: Any, buffers: Sequence[Any]) -> None:
        """Check that the memory of inputs is as large as their types say. Raises BoundsError."""
        for k, (buffer, declared) in enumerate(zip(buffers, program.lowered.inputs)):
            needed, known = _bytes(program, declared), _extent(buffer)
            if known is not None and needed > known:
                raise BoundsError(
                    f"{program.graph.name}: input {k} is {_described(declared)} of {needed} bytes, and its buffer has {known}: whoever made the call is wrong"
                )

    def look(self) -> None:
        """Raise the BoundsError that is noted, if one is."""
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
            f"{_said(step)}: {verb} {found['bytes']} bytes at offset {found['offset']} of {whose}, which has {found['size']} bytes{_mend(step)}"
        )


class Ends:
    """Which slots of a program's arena are free after which of its steps, asked for in the steps' order."""

    def __init__(self, times: dict[int, Step], groups: Sequence[Any], places: dict[int, int]) -> None:
        # Of a batch the last step has the time, and of a step that holds steps the last time is when they have run.
        self.times = {id(step): time for time, step in sorted(times.items())}
        self.slots = sorted(((last, places[key], size) for key, size, _, last in groups), reverse=True)

    def until(self, steps: Sequence[Step]) -> list[tuple[int, int]]:
        """Places and bytes of what nobody needs after these steps, and was needed by them or since those asked for before."""
        end = max(self.times.get(id(step), 0) for step in steps)
        found = []
        while self.slots and self.slots[-1][0] <= end:
            found.append(self.slots.pop()[1:])
        return found


def _poison(program: Any, place: int, size: int) -> Any:
    from mycel.engines.native.lowering.lower import Step
    from mycel.engines.native.runtime.door import runtime

    start = len(program.words)
    program.starts[start] = Step("poison", [], [], None)
    program.relocations.append((start, len(program.lowered.inputs) + len(program.outputs), place))
    program.words += [0, size]
    return (start, runtime().address["mycel_poison"], 1, 0)


def _bytes(program: Any, buffer: Buffer) -> int:
    return int(program.number(buffer.size) * buffer.dtype.itemsize)


def _room(program: Any, buffer: Buffer) -> Optional[int]:
    """The bytes that there are where a buffer lies, from its start."""
    kind, where = buffer.place or ("arena", program.places[id(buffer)])
    if kind == "constant":
        return int(program.lowered.constants[id(buffer)][1].nbytes)
    if kind == "output":
        # The allocator gives no less than a line of the cache, which is where results without elements lie.
        return int(program.number(program.outputs[where].nbytes)) or LINE
    if kind == "arena":
        return int(program.arena_bytes - where)
    return _bytes(program, program.lowered.inputs[where])


def _reaches(program: Any, step: Step) -> Iterator[tuple[Buffer, int, int]]:
    """What a step uses that is no kernel: buffers, with the first byte and the one behind the last."""
    from mycel.engines.native.lowering.control_steps import Call, Nested
    from mycel.engines.native.onednn import library as library
    from mycel.engines.native.onednn.plan import Product

    if step.kind == "copy":
        target, source = step.data
        first, size = _first(program, source), prod(program.shape(source)) * source.buffer.dtype.itemsize
        yield target.buffer, 0, size
        yield source.buffer, first, first + size
    elif step.kind == "dense":
        plan, views = program.calls[id(step)]
        for call in plan._steps:
            if isinstance(call, Product):
                reaches = dict(zip(call.buffers, _product(call)))
            else:
                size_of = library.library().c.dnnl_memory_desc_get_size
                # What the library says of strided memory may reach beyond the last element.
                reaches = {n: plan.operands[n].span if n in plan.operands else size_of(d) for _, d, n in call.arguments}
            for name, size in reaches.items():
                yield views[name].buffer, _first(program, views[name]), _first(program, views[name]) + size
    elif step.kind == "host":
        _, reads, writes = step.data
        yield from (_whole(program, v) for v in (*reads, *writes))
    elif isinstance(step.data, Nested):
        yield _whole(program, step.data.predicate)
    elif isinstance(step.data, Call):
        yield from (_whole(program, v) for v in (*step.data.reads, *step.data.writes))


def _first(program: Any, view: View) -> int:
    return int(program.number(view.offset) * view.buffer.dtype.itemsize)


def _whole(program: Any, view: View) -> tuple[Buffer, int, int]:
    first = _first(program, view)
    return view.buffer, first, first + prod(program.shape(view)) * view.buffer.dtype.itemsize


def _product(call: Any) -> list[int]:
    """The bytes that a product reaches of its factors and its result."""
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
    name = getattr(step.data, "name", "")
    if name and name not in names:
        names.append(name)
    return f"a {step.kind}{' of ' if names else ''}{', '.join(dict.fromkeys(names))}"


def _mend(step: Step) -> str:
    nodes = [node for node in (step.node, *step.members) if node is not None and node.where is not None]
    place = f"\n{excerpt(nodes[0].where)}" if nodes else ""  # type: ignore[arg-type]
    return f"{place}\n  this is a defect of the compiler, not of the program; MYCEL_CHECK=bounds found it"


_CAPSULE: Any = ctypes.pythonapi.PyCapsule_GetContext
_CAPSULE.restype, _CAPSULE.argtypes = ctypes.c_void_p, [ctypes.py_object]


def _extent(buffer: Any) -> Optional[int]:
    """The bytes of memory from a buffer's start; None where nobody knows."""
    from mycel.engines.native.runtime.door import runtime

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
