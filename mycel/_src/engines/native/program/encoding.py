"""Encodes steps for the runtime: argument words, and tables of the functions that take them.

Every step's arguments are words in one block of memory. Words that hold addresses of inputs,
outputs or the arena are filled in at each run (`relocations`); the others are fixed. The object
that owns the words keeps alive what they point to: kernels' constants, plans and callbacks.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.transforms.specialize import concrete
from mycel._src.compiler.transport.async_channel import Started, channel
from mycel._src.engines.error_messages import note_host_step
from mycel._src.engines.native.kernels.codegen import Kernel, grain
from mycel._src.engines.native.kernels.loop_nest import FAR, Buffer, Nest, Site
from mycel._src.engines.native.kernels.strided_view import View
from mycel._src.engines.native.onednn import binding as dense
from mycel._src.engines.native.onednn.dense_call import DenseCall
from mycel._src.engines.native.program.bounds_checking import Watch
from mycel._src.engines.native.program.kernel_batching import UNIT
from mycel._src.engines.native.program.placed_template import Placed
from mycel._src.engines.native.program.template import Template
from mycel._src.engines.native.runtime import bounds_check_setting
from mycel._src.engines.native.runtime.recursion_ir import ROUTINE
from mycel._src.engines.native.runtime.runtime import runtime
from mycel._src.engines.native.runtime.runtime_ir import PROGRAM
from mycel._src.engines.native.steps.step_types import Batch, Call, Copy, HostCall, Nested, Poison, Step, Tape, touched
from mycel._src.engines.reference.evaluation import apply

__all__ = ["FAILED", "Encoded", "Routine", "Table", "TableEntry", "signed"]

PAGE = 4096
STATUS = PROGRAM.index("status")
# What a run's status says where a host step has raised something.
FAILED = 3
HOST = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class TableEntry(NamedTuple):
    """A step in a table.

    It has the number of the step's first word, its function, the range that threads divide, and the
    smallest part worth a thread. In the table of a batch `grain` is where the member's share of the
    range begins.
    """

    start: int
    function: int
    extent: int = 1
    grain: int = 0


Table = list[TableEntry]


class Encoded(Placed):
    """A template for actual sizes as words and tables.

    For a recursive function they are part of those of `owner`. `starts` has the step by the number
    of its first word, `tables` the inner tables by the number of the word that holds their address,
    `work` the largest work of a kernel.
    """

    def __init__(
        self,
        template: Template,
        sizes: Mapping[str, int] | None = None,
        owner: Encoded | None = None,
    ) -> None:
        super().__init__(template, sizes or {})
        template.link()
        self.table = (ctypes.c_int64 * len(PROGRAM))()
        self.errors: list[BaseException] = [] if owner is None else owner.errors
        # The exchanges under way, by number, with the types of what they send.
        self.started: dict[int, tuple[Started, Sequence[TensorType]]] = {}
        self.watch: Watch | None = (
            owner.watch if owner is not None else Watch() if bounds_check_setting.is_on() else None
        )
        self.status: Any = (
            ctypes.c_int64.from_address(ctypes.addressof(self.table) + 8 * STATUS) if owner is None else owner.status
        )
        self.sites: dict[int, tuple[Site, int]] = {} if owner is None else owner.sites
        self.routines: dict[str, Routine] = {} if owner is None else dict(owner.routines)
        self.words: list[int] = []
        self.relocations: list[tuple[int, int, int]] = []
        self.tables: list[tuple[int, Table]] = []
        self.starts: dict[int, Step] = {}
        self.work = 0
        self._alive: list[object] = []

    # Words.

    def pointer(self, buffer: Buffer, offset: int = 0) -> None:
        """Append a word for an address in a buffer, `offset` bytes from its start."""
        kind, where = buffer.place or ("arena", self.places[id(buffer)])
        if kind == "constant":
            _, array = self.lowered.constants[id(buffer)]
            self._alive.append(array)
            self.words.append(array.__array_interface__["data"][0] + offset)
        elif kind == "arena":
            self.arena_pointer(where + offset)
        else:
            base = where if kind == "input" else len(self.lowered.inputs) + where
            self.relocations.append((len(self.words), base, offset))
            self.words.append(0)

    def arena_pointer(self, place: int) -> None:
        """Append a word that will hold the address of a place in the arena."""
        self.relocations.append((len(self.words), len(self.lowered.inputs) + len(self.outputs), place))
        self.words.append(0)

    def view_pointer(self, view: View) -> None:
        """Append a word that will hold the address of a view's first element."""
        self.pointer(view.buffer, self.offset(view))

    def record(self, site: Site) -> int:
        """Return the address of a site's record.

        A record has an index that was out of range, and the address of the status.
        """
        made = (ctypes.c_int64 * 2)(0, ctypes.addressof(self.status))
        self._alive.append(made)
        self.sites[ctypes.addressof(made)] = site, self.number(site.size)
        return ctypes.addressof(made)

    # Tables.

    def encode_all(self, steps: Sequence[Step]) -> Table:
        """Append the words of steps, with each batch as one step; return their table."""
        table: Table = [self._poison(0, self.arena_bytes)] if self.ends is not None and self.arena_bytes else []
        for number, members in groupby(steps, lambda s: s.batch):
            alone = list(members)
            if number is None:
                for step in alone:
                    table += [*self.encode(step), *self.ended([step])]
            else:
                entries = [entry for step in alone for entry in self.encode(step)]
                table += [self._encode_batch(alone, entries), *self.ended(alone)]
        return table

    def ended(self, steps: Sequence[Step]) -> Table:
        """Append the steps to run after some steps: those that poison memory no longer needed."""
        return [] if self.ends is None else [self._poison(place, size) for place, size in self.ends.until(steps)]

    def _poison(self, place: int, size: int) -> TableEntry:
        start = len(self.words)
        self.starts[start] = Step(Poison(), [], [])
        self.arena_pointer(place)
        self.words.append(size)
        return TableEntry(start, runtime().address["mycel_poison"])

    def encode(self, step: Step) -> Table:
        """Append a step's words; return its entries, one for each native function that it calls."""
        if self.watch is not None:
            self.watch.verify(self, step)
        table = self._encode(step)
        for entry in table:
            self.starts[entry.start] = step
        return table

    def _encode(self, step: Step) -> Table:
        data = step.data
        if isinstance(data, (Nest, Kernel)):
            return [self._encode_kernel(step)]
        if isinstance(data, Copy):
            return [self._encode_copy(data)]
        if isinstance(data, DenseCall):
            return self._encode_dense(step)
        if isinstance(data, Nested):
            return [self._encode_nested(step, data)]
        if isinstance(data, Tape):
            return [self._encode_tape(data)]
        if isinstance(data, Call):
            return [self._encode_call(step, data)]
        if isinstance(data, HostCall):
            return [self._encode_host(data)]
        raise AssertionError(f"lowering makes no {step.kind}")

    def _encode_kernel(self, step: Step) -> TableEntry:
        kernel, address = self.template.code[id(step)]
        start, number, words = len(self.words), self.number, self.words
        if self.sizes and any(number(value) > FAR for _, value in kernel.words if isinstance(value, Dim)):
            raise dense.Unsupported(
                f"{self.graph.name}: positions are numbers of 32 bits in code for all sizes, and these are larger"
            )
        for kind, value in kernel.words:
            if kind == "pointer":
                self.pointer(value)
            elif kind == "site":
                words.append(self.record(value))
            elif kind == "status":
                words.append(ctypes.addressof(self.status))
            elif kind == "listen":
                words.append(runtime().address["mycel_listen"])
            else:
                words.append(value if type(value) is int else number(value))
        if self.watch is not None:
            words += self.watch.words(self, step, kernel)
        extent, work = number(kernel.extent), number(kernel.work)
        self.work = max(self.work, work)
        return TableEntry(start, address, extent, grain(extent, work))

    def _encode_batch(self, members: Sequence[Step], entries: Sequence[TableEntry]) -> TableEntry:
        """Append the words of a batch, given the entries of its members."""
        table: Table = []
        place = work = 0
        for step, entry in zip(members, entries):
            own = self.number(self.template.code[id(step)][0].work)
            table.append(entry._replace(grain=place))
            place += max(own // UNIT, 1)
            work += own
        start = len(self.words)
        self.tables.append((start, table))
        self.words += [0, len(table), place]
        reads, writes = touched(members)
        self.starts[start] = Step(Batch(tuple(members)), reads, writes, members[-1].node)
        return TableEntry(start, runtime().address["mycel_batch"], place, grain(place, work))

    def _encode_copy(self, copy: Copy) -> TableEntry:
        start = len(self.words)
        self.pointer(copy.target.buffer)
        self.view_pointer(copy.source)
        size = math.prod(self.shape(copy.source)) * copy.source.buffer.dtype.itemsize
        self.words.append(size)
        pages = -(-size // PAGE)
        return TableEntry(start, runtime().address["mycel_copy"], pages, grain(pages, size // 8))

    def _encode_dense(self, step: Step) -> Table:
        plan, views = self.calls[id(step)]
        self._alive.append(plan)
        symbols = dense.symbols()
        encoded: Table = []
        for call in plan.calls:
            if isinstance(call, dense.Product):
                encoded.append(TableEntry(len(self.words), runtime().address["mycel_product"]))
                self.words += [
                    symbols["dnnl_sgemm"],
                    symbols.get("omp_set_num_threads", 0),
                    plan.threads,
                    *call.words(),
                ]
                for name in call.buffers:
                    self.view_pointer(views[name])
                continue
            encoded.append(TableEntry(len(self.words), runtime().address["mycel_dense"]))
            self.words += [
                symbols["dnnl_primitive_execute"],
                symbols["dnnl_memory_set_data_handle"],
                call.primitive,
                dense.stream(),
                len(call.memories),
                call.exec_args,
                symbols.get("omp_set_num_threads", 0),
                plan.threads,
            ]
            for handle, name in zip(call.memories, call.buffers):
                self.words.append(handle)
                self.view_pointer(views[name])
        return encoded

    def _encode_nested(self, step: Step, nested: Nested) -> TableEntry:
        tables = [
            [entry for s in part for entry in (*self.encode(s), *self.ended([s]))]
            for part in (nested.first, nested.second)
        ]
        start = len(self.words)
        self.view_pointer(nested.predicate)
        for table in tables:
            self.tables.append((len(self.words), table))
            self.words += [0, len(table)]
        self.words.append(ctypes.addressof(self.status))
        return TableEntry(start, runtime().address[f"mycel_{step.kind}"])

    def _encode_tape(self, tape: Tape) -> TableEntry:
        start = len(self.words)
        sizes = [self.nbytes(b) for b in tape.states]
        self.pointer(tape.header)
        # Memory of no bytes cannot be told from none; where the derivative reads no state, rounds
        # are counted by a byte each.
        self.words += [max(sum(sizes), 1), int(tape.root), ctypes.addressof(self.status)]
        if tape.predicate is None:
            self.words.append(0)
        else:
            self.pointer(tape.predicate)
        self.words.append(len(sizes))
        for buffer, size in zip(tape.states, sizes):
            self.pointer(buffer)
            self.words.append(size)
        return TableEntry(start, runtime().address[f"mycel_tape_{tape.operation}"])

    def _encode_call(self, step: Step, call: Call) -> TableEntry:
        if call.graph is not None:
            routine = Routine(self, call.label, self.template.bodies[id(step)])
        else:
            routine = self.routines[call.label]
        self._alive.append(routine)
        start = len(self.words)
        self.words += [ctypes.addressof(routine.descriptor), ctypes.addressof(self.status)]
        for view in (*call.reads, *call.writes):
            self.view_pointer(view)
        return TableEntry(start, runtime().address["mycel_recursion"])

    # Host steps.

    def _encode_host(self, called: HostCall) -> TableEntry:
        start, node = len(self.words), called.node
        views = (*called.reads, *called.writes)
        for view in views:
            self.view_pointer(view)
        types = [tensor_type(self.shape(v), v.buffer.dtype) for v in views]
        params = {k: concrete(v, self.sizes) for k, v in node.params.items()} if self.sizes else dict(node.params)
        runs = {"": self._run_host, HostCall.BEGIN: self._begin_exchange, HostCall.END: self._end_exchange}
        run = runs[called.phase]

        def call(words: int, begin: int, end: int) -> None:
            if self.errors:
                return
            try:
                run(called, params, words, types)
            except BaseException as error:
                self.errors.append(error)
                self.status.value = self.status.value or FAILED

        callback = HOST(call)
        self._alive.append(callback)
        return TableEntry(start, ctypes.cast(callback, ctypes.c_void_p).value or 0)

    def _run_host(self, called: HostCall, params: dict[str, Any], words: int, types: Sequence[TensorType]) -> None:
        """Run one node in the reference engine on memory.

        `words` is the address of its argument words, `types` are those of its operands.
        """
        node, count = called.node, len(called.reads)
        prim = node.prim
        assert prim is not None
        arrays = _arrays_at(words, types)
        try:
            if prim.exchanges:
                results = channel().call(lambda: apply(prim, arrays[:count], params))
            else:
                results = apply(prim, arrays[:count], params)
        except Exception as error:
            note_host_step(error, node, types[:count])
            raise
        _write(results, arrays[count:])

    def _begin_exchange(
        self, called: HostCall, params: dict[str, Any], words: int, types: Sequence[TensorType]
    ) -> None:
        """Start an exchange of copies of the operands, beside the steps that follow."""
        prim = called.node.prim
        assert prim is not None
        copies = [np.array(a, copy=True) for a in _arrays_at(words, types)]
        self.started[called.number] = channel().start(lambda: apply(prim, copies, params)), types

    def _end_exchange(self, called: HostCall, params: dict[str, Any], words: int, types: Sequence[TensorType]) -> None:
        """Wait for the results of an exchange, and write them."""
        started, given = self.started.pop(called.number)
        try:
            results = started.result()
        except Exception as error:
            note_host_step(error, called.node, given)
            raise
        _write(results, _arrays_at(words, types))


class Routine(Encoded):
    """The body of a recursive function for actual sizes; calls of it point to `descriptor`.

    It is encoded like a program, but all addresses in it are relative to the record of each
    activation; `recursion_ir` explains how the runtime runs it.
    """

    def __init__(self, owner: Encoded, label: str, template: Template) -> None:
        super().__init__(template, owner.sizes, owner)
        self.descriptor = (ctypes.c_int64 * len(ROUTINE))()
        self.routines[label] = self
        self._finish(self.encode_all(template.steps))
        template.note(self._new)

    def _finish(self, table: Table) -> None:
        """Write the beginning of each activation's record, and its description."""
        bases = len(self.lowered.inputs) + len(self.outputs)
        header = _rounded(8 * (bases + 2))
        tables: list[tuple[int | None, Table]] = [(None, table), *self.tables]
        places = []
        size = header + 8 * len(self.words)
        for _, entries in tables:
            places.append(size)
            size += 32 * len(entries)
        arena = _rounded(size)
        block = (ctypes.c_int64 * (arena // 8))()
        block[header // 8 : header // 8 + len(self.words)] = [signed(w) for w in self.words]
        relocations = [(header + 8 * word, number, offset) for word, number, offset in self.relocations]
        for (word, entries), place in zip(tables, places):
            if word is not None:
                relocations.append((header + 8 * word, bases + 1, place))
            for k, (start, function, extent, least) in enumerate(entries):
                at = place // 8 + 4 * k
                block[at : at + 4] = [signed(function), 0, extent, least]
                relocations.append((place + 32 * k + 8, bases + 1, header + 8 * start))
        flattened = [number for relocation in relocations for number in relocation]
        held = (ctypes.c_int64 * max(len(flattened), 1))(*flattened)
        sizes = (ctypes.c_int64 * max(len(self.output_bytes), 1))(*self.output_bytes)
        described = {
            "template": ctypes.addressof(block),
            "template_bytes": arena,
            "record_bytes": max(arena + _rounded(self.arena_bytes), 64),
            "relocations": len(relocations),
            "relocation_table": ctypes.addressof(held),
            "bases": bases,
            "arena": arena,
            "steps": places[0],
            "step_count": len(table),
            "inputs": len(self.lowered.inputs),
            "output_bytes": ctypes.addressof(sizes),
        }
        self.descriptor[:] = [described[name] for name in ROUTINE]
        self._alive += [block, held, sizes]


def _rounded(size: int) -> int:
    return -(-size // 64) * 64


def signed(value: int) -> int:
    """Return a number of 64 bits as signed."""
    return value - (1 << 64) if value >= 1 << 63 else value


def _arrays_at(words: int, types: Sequence[TensorType]) -> list[np.ndarray[Any, Any]]:
    """Return the values whose addresses lie at an address, one behind the other."""
    addresses = (ctypes.c_int64 * len(types)).from_address(words)
    return [_array_at(a, t) for a, t in zip(addresses, types)]


def _write(results: Any, targets: Sequence[np.ndarray[Any, Any]]) -> None:
    for target, value in zip(targets, results if isinstance(results, tuple) else (results,)):
        if target.size:
            target[...] = value


def _array_at(address: int, type: TensorType) -> np.ndarray[Any, Any]:
    """Return the value of a type at an address, which must stay valid."""
    count = int(type.size) * type.dtype.itemsize
    raw = (ctypes.c_uint8 * max(count, 1)).from_address(address)
    array: np.ndarray[Any, Any] = np.ctypeslib.as_array(raw)[:count].view(type.dtype.numpy)
    return array.reshape(type.shape)
