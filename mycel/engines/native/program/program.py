"""Programs: a lowered graph as a table that the native runtime runs.

A `Template` is what all sizes share: the steps, and the code of the kernels. A `Program` is made from it for actual sizes: the numbers, the arena and the dense
library's plans. Every step's arguments are words in one block of memory. Words that hold addresses of inputs, outputs or the arena are filled in at each run
(`relocations`); the rest is fixed. A program keeps all that its words point to alive: kernels, dense plans, constants, callbacks.
"""

from __future__ import annotations

import ctypes
import math
import types
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from mycel.base import locks
from mycel.base.errors import SizeError
from mycel.base.spans import timed
from mycel.engines.capacity import check_needs
from mycel.engines.failures import index_out_of_range, note_host_step
from mycel.engines.native.kernels.codegen import NAME, Kernel, generate, grain
from mycel.engines.native.kernels.nest import FAR, Buffer, Site
from mycel.engines.native.kernels.views import View, room, row_major
from mycel.engines.native.llvm import jit
from mycel.engines.native.lowering.control_steps import Call, Nested
from mycel.engines.native.lowering.inplace import may_take, takes
from mycel.engines.native.lowering.lower import Lowered, Step, lower
from mycel.engines.native.lowering.tape_steps import Tape, encode_tape
from mycel.engines.native.onednn import binding as dense
from mycel.engines.native.program import arena as memory
from mycel.engines.native.program import bounds
from mycel.engines.native.program.batch import batches, encode_batch, without_shared
from mycel.engines.native.program.liveness import Liveness
from mycel.engines.native.program.step_order import schedule
from mycel.engines.native.runtime import checking
from mycel.engines.native.runtime.door import runtime
from mycel.engines.native.runtime.recursion_ir import LEVELS, RECORD_BYTES
from mycel.engines.native.runtime.runtime_ir import PROGRAM
from mycel.ir.dims import Dim, DimLike, InconclusiveDimension, evaluate, evaluator, hint, is_zero, same
from mycel.ir.graph import Graph, at
from mycel.ir.types import MOST_BYTES, TensorType, tensor_type
from mycel.transforms.specialize import concrete

if TYPE_CHECKING:
    from mycel.engines.native.program.recursion import Routine

__all__ = ["Program", "Template", "build", "program_of"]

_kernels: dict[str, int] = {}
_lock = locks.lock()
_programs: weakref.WeakSet[Program] = weakref.WeakSet()
_by_table: weakref.WeakValueDictionary[int, Program] = weakref.WeakValueDictionary()
# Who wants all programs that are made from now on to be kept.
holders: list[set[Program]] = []


def programs() -> list[Program]:
    """The programs that are alive."""
    return list(_programs)


def release_arenas() -> None:
    """Free the arenas that programs keep for their next run; those that run now keep theirs."""
    for program in programs():
        runtime().drop_arena(ctypes.addressof(program.table))


HEAVY_BYTES = 1 << 18
HEAVY_WORK = 1 << 20
PAGE = 4096
OWN_ARENA_BYTES = 1 << 20  # a larger arena goes back after a run, for other programs to use
ARENA, STATUS = PROGRAM.index("arena"), PROGRAM.index("status")
# What a run's status says beside 0 (all is well) and 1 (too deep).
OUT_OF_MEMORY, FAILED = 2, 3
Table = list[tuple[int, int, int, int]]
HOST = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


@locks.in_child
def _in_child() -> None:
    """Open the native locks, too, that threads of the parent held when it forked; the child has none of these threads."""
    for program in _programs:
        ctypes.memset(program.mutex, 0, ctypes.sizeof(program.mutex))


def build(graph: Graph, aliases: Optional[Mapping[int, int]] = None) -> Program:
    """The program of an optimized graph of static types."""
    for kind in graph.input_types:
        if isinstance(kind, TensorType) and not kind.is_static:
            raise InconclusiveDimension(f"{graph.name}: the sizes of {kind} are not known")
    return Program(Template(graph, dict(aliases or {})))


def kernel_addresses(kernels: Sequence[Kernel]) -> list[int]:
    """The entry points of kernels, compiled together where they are new."""
    with _lock:
        missing = {k.text: k for k in kernels if k.text not in _kernels}
        if missing:
            host = jit.machine()
            for text, code in zip(missing, jit.compile_objects([bounds.text_of(k) for k in missing.values()])):
                _kernels[text] = host.link(code, [NAME], {})[0]
        return [_kernels[k.text] for k in kernels]


class _Uses:
    """The steps that read and write each buffer, with their numbers, and the buffers that are results."""

    def __init__(self, steps: Sequence[Step], outputs: Sequence[View]) -> None:
        self.readers: dict[int, list[tuple[int, Step]]] = {}
        self.writers: dict[int, list[tuple[int, Step]]] = {}
        for k, step in enumerate(steps):
            for buffer in step.reads:
                self.readers.setdefault(id(buffer), []).append((k, step))
            for buffer in step.writes:
                self.writers.setdefault(id(buffer), []).append((k, step))
        self.results = {id(view.buffer) for view in outputs}


class Template:
    """The steps and kernels of a graph, with sizes that may be symbolic; `lowerings` counts all that were ever made."""

    lowerings = 0

    @timed("lowering", lambda _, graph, *__: graph.name)
    def __init__(self, graph: Graph, aliases: dict[int, int]) -> None:
        Template.lowerings += 1
        self.arrange(graph, aliases)
        nests = [s for s in self.all_steps if s.kind == "kernel"]
        self.kernels = [s.data if isinstance(s.data, Kernel) else generate(s.data) for s in nests]
        self.code = dict(zip(map(id, nests), zip(self.kernels, kernel_addresses(self.kernels))))
        self.bodies = {
            id(s): Template(s.data.graph, {}) for s in self.all_steps if isinstance(s.data, Call) and s.data.graph
        }
        self._dims: dict[Dim, None] = {}
        self._values: Optional[Callable[..., tuple[int, ...]]] = None

    def arrange(self, graph: Graph, aliases: dict[int, int], lowered: Optional[Lowered] = None) -> None:
        """Lower the graph, and find the order of the steps and where values lie; no code is made."""
        self.graph, self.aliases = graph, aliases
        self.lowered: Lowered = lowered or lower(graph)
        self.steps = self.ordered(aliases)
        self.final_places(self.steps, aliases)
        self.steps, found = batches(self.steps, aliases, hint)
        self.all_steps = list(_flat(self.steps))
        self.takes = without_shared(takes(self.all_steps), found)

    def numbers(self, sizes: Mapping[str, int]) -> dict[Any, int]:
        """The values of the dimensions that programs have needed so far."""
        if not sizes or not self._dims:
            return {}
        if self._values is None:
            self._values = evaluator(list(self._dims), list(sizes))
        return dict(zip(self._dims, self._values(*sizes.values())))

    def note(self, dims: Sequence[Dim]) -> None:
        """Remember dimensions that a program needed."""
        if dims:
            self._dims.update(dict.fromkeys(dims))
            self._values = None

    def ordered(self, aliases: Mapping[int, int]) -> list[Step]:
        """The steps in the order in which they are run."""
        inputs, outputs = self.lowered.inputs, [v.buffer for v in self.lowered.outputs]
        over = {id(outputs[j]): inputs[i] for j, i in aliases.items() if outputs[j] not in inputs}
        kept = [*inputs, *outputs, *[b for b, _ in self.lowered.constants.values()]]
        return schedule(self.lowered.steps, kept, over, hint)

    # Places.

    def final_places(self, steps: list[Step], aliases: dict[int, int]) -> None:
        """Give outputs their memory: the buffer that they are computed in where that is theirs alone, else a copy at the end."""
        inputs = self.lowered.inputs
        for i, buffer in enumerate(inputs):
            buffer.place = ("input", i)
        for buffer, _ in self.lowered.constants.values():
            buffer.place = ("constant", 0)
        uses = _Uses(steps, self.lowered.outputs)
        plain: list[Step] = []
        last: list[Step] = []
        for j, view in enumerate(self.lowered.outputs):
            buffer = view.buffer
            direct = buffer.place is None and is_zero(view.offset) and same(buffer.size, room(view.shape))
            if direct and j in aliases and not self.may_write(uses, buffer, inputs[aliases[j]]):
                direct = False
            if direct:
                buffer.place = ("output", j)
                continue
            size = room(view.shape)
            target = Buffer(buffer.dtype, size, "output")
            target.place = ("output", j)
            if j in aliases:
                if buffer is inputs[aliases[j]] and is_zero(view.offset):
                    continue
                if buffer in inputs:
                    # Another output may be copied over this input first.
                    held = row_major(Buffer(buffer.dtype, size, "held"), view.shape)
                    plain.append(Step("copy", [buffer], [held.buffer], (held, view)))
                    view = held
                last.append(Step("copy", [view.buffer], [target], (row_major(target, view.shape), view)))
            else:
                plain.append(Step("copy", [buffer], [target], (row_major(target, view.shape), view)))
        steps.extend(plain + last)

    def may_write(self, uses: _Uses, output: Buffer, source: Buffer) -> bool:
        """Whether an output may be written over an input: no step reads the input after, and none but element by element at once."""
        writers = uses.writers.get(id(output))
        if not writers:
            return False
        for k, step in uses.readers.get(id(source), ()):
            if k > writers[0][0] or (k == writers[0][0] and not may_take(step, output, source)):
                return False
        return id(source) not in uses.results


class Program:
    """A template for actual sizes (by symbol); `entry(*buffers)` runs it."""

    @timed("program", lambda _, template, *__: template.graph.name)
    def __init__(
        self,
        template: Template,
        sizes: Optional[Mapping[str, int]] = None,
        owner: Optional[Program] = None,
        routines: Optional[Mapping[str, Routine]] = None,
    ) -> None:
        self.template, self.sizes = template, dict(sizes or {})
        self.graph, self.lowered, self.kernels = template.graph, template.lowered, template.kernels
        self.all_steps = template.all_steps
        self.errors: list[BaseException] = [] if owner is None else owner.errors
        self.watch: Optional[bounds.Watch] = (
            owner.watch if owner is not None else bounds.Watch() if checking.is_on() else None
        )
        self.table = (ctypes.c_int64 * len(PROGRAM))()
        self.status: Any = (
            ctypes.c_int64.from_address(ctypes.addressof(self.table) + 8 * STATUS) if owner is None else owner.status
        )
        self.sites: dict[int, tuple[Site, int]] = {} if owner is None else owner.sites
        self.routines = dict(routines or {})
        self._alive: list[Any] = []
        self._numbers = template.numbers(self.sizes)
        self._new: list[Dim] = []
        self.outputs = self.graph.output_types
        self.output_bytes = [max(self.number(t.nbytes), 1) for t in self.outputs]  # type: ignore[union-attr]
        if max(self.output_bytes, default=0) > MOST_BYTES:
            raise self.too_large()
        self.calls = {id(s): s.data.plan(self.number) for s in self.all_steps if s.kind == "dense"}
        self.places: dict[int, int] = {}
        self.place_arena(template.steps)
        self.words: list[int] = []
        self.relocations: list[tuple[int, int, int]] = []
        self.tables: list[tuple[int, Table]] = []
        self.starts: dict[int, Step] = {}
        self.work = 0
        table = self.encode_all(template.steps)
        self.finish(table, template.aliases)
        template.note(self._new)

    def number(self, value: DimLike) -> int:
        """A dimension's value here."""
        if type(value) is int:
            return value
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = evaluate(value, self.sizes)
            if isinstance(value, Dim):
                self._new.append(value)
        return found

    def too_large(self) -> SizeError:
        """The error for sizes with which something in the graph passes what can be counted in 63 bits."""
        for node in self.graph.nodes:
            for kind in node.type if isinstance(node.type, tuple) else (node.type,):
                try:
                    with at(node.where):
                        concrete(kind, self.sizes)
                except SizeError as error:
                    error.raised_in(node.op if node.prim is not None else self.graph.name)
                    return error
        sizes = ", ".join(f"{name} = {size}" for name, size in self.sizes.items())
        return SizeError(
            f"{self.graph.name} counts more than 2**63 - 1 elements or bytes in one step{' for ' if sizes else ''}{sizes}"
        )

    def shape(self, view: View) -> tuple[int, ...]:
        """A view's sizes here."""
        return tuple([self.number(d) for d in view.shape])

    # Places.

    def place_arena(self, steps: list[Step]) -> None:
        """Lay out the buffers that live only inside a run."""
        new = sum(n for j, n in enumerate(self.output_bytes) if j not in self.template.aliases)
        check_needs(self.graph, new, self.sizes)
        live = Liveness(steps, self.calls, self.template.takes)
        lives = live.lives(self.number)
        if max((nbytes for _, nbytes, _, _ in lives), default=0) > MOST_BYTES:
            raise self.too_large()
        self.places, self.arena_bytes = memory.plan(lives, live.taking)
        if self.watch is not None:
            self.ends = bounds.Ends(live.times, memory.joined(lives, live.taking)[0], self.places)
        check_needs(self.graph, self.arena_bytes + new, self.sizes)

    # Words.

    def pointer(self, buffer: Buffer, offset: int = 0) -> None:
        """Append a word that will hold an address inside a buffer, `offset` bytes from its start."""
        kind, where = buffer.place or ("arena", self.places[id(buffer)])
        inputs = len(self.lowered.inputs)
        if kind == "constant":
            _, array = self.lowered.constants[id(buffer)]
            self._alive.append(array)
            self.words.append(array.__array_interface__["data"][0] + offset)
            return
        base = {"input": where, "output": inputs + where, "arena": inputs + len(self.outputs)}[kind]
        self.relocations.append((len(self.words), base, offset + (where if kind == "arena" else 0)))
        self.words.append(0)

    def record(self, site: Site) -> int:
        """The address of a site's record: an index that was out of range, and the address of the status."""
        made = (ctypes.c_int64 * 2)(0, ctypes.addressof(self.status))
        self._alive.append(made)
        self.sites[ctypes.addressof(made)] = site, self.number(site.size)
        return ctypes.addressof(made)

    def view_pointer(self, view: View) -> None:
        """Append a word that will hold the address of a view's first element."""
        self.pointer(view.buffer, self.number(view.offset) * view.buffer.dtype.itemsize)

    def encode_all(self, steps: Sequence[Step]) -> Table:
        """Append the words of steps, batches as one."""
        table: Table = [] if self.watch is None else self.watch.before(self)
        for number, members in groupby(steps, lambda s: s.batch):
            alone = list(members)
            if number is None:
                for step in alone:
                    table += [*self.encode(step), *self.ended([step])]
            else:
                entries = [entry for step in alone for entry in self.encode(step)]
                table += [encode_batch(self, alone, entries), *self.ended(alone)]
        return table

    def ended(self, steps: Sequence[Step]) -> Table:
        """What is run after some steps have been."""
        return [] if self.watch is None else self.watch.after(self, steps)

    def encode(self, step: Step) -> Table:
        """Append a step's words; for each native step, where they start, its function, extent and grain."""
        if self.watch is not None:
            self.watch.verify(self, step)
        table = self._encode(step)
        for entry in table:
            self.starts[entry[0]] = step
        return table

    def step_at(self, address: int) -> Optional[Step]:
        """The step whose argument words start at an address, if it is one of this program's."""
        word, rest = divmod(address - self.base, 8)
        return self.starts.get(word) if rest == 0 else None

    def _encode(self, step: Step) -> Table:
        start = len(self.words)
        if step.kind == "kernel":
            kernel, address = self.template.code[id(step)]
            number, words = self.number, self.words
            if self.sizes and any(number(value) > FAR for kind, value in kernel.words if isinstance(value, Dim)):
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
            return [(start, address, extent, grain(extent, work))]
        if step.kind == "copy":
            target, source = step.data
            self.pointer(target.buffer)
            self.view_pointer(source)
            size = math.prod(self.shape(source)) * source.buffer.dtype.itemsize
            self.words.append(size)
            pages = -(-size // PAGE)
            return [(start, runtime().address["mycel_copy"], pages, grain(pages, size // 8))]
        if step.kind == "dense":
            return self.encode_dense(step)
        if isinstance(step.data, Nested):
            return self.encode_nested(step, step.data)
        if isinstance(step.data, Tape):
            return encode_tape(self, step.data)  # type: ignore[no-any-return]
        if isinstance(step.data, Call):
            return self.encode_call(step, step.data)
        return [(start, self.encode_host(step), 1, 0)]

    def encode_nested(self, step: Step, nested: Nested) -> Table:
        tables = [
            [entry for s in part for entry in (*self.encode(s), *self.ended([s]))]
            for part in (nested.first, nested.second)
        ]
        start = len(self.words)
        predicate = nested.predicate
        self.view_pointer(predicate)
        for table in tables:
            self.tables.append((len(self.words), table))
            self.words += [0, len(table)]
        self.words.append(ctypes.addressof(self.status))
        return [(start, runtime().address[f"mycel_{step.kind}"], 1, 0)]

    def encode_call(self, step: Step, call: Call) -> Table:
        if call.graph is not None:
            from mycel.engines.native.program.recursion import Routine

            routine = Routine(self, call.label, self.template.bodies[id(step)])
        else:
            routine = self.routines[call.label]
        self._alive.append(routine)
        start = len(self.words)
        self.words += [ctypes.addressof(routine.descriptor), ctypes.addressof(self.status)]
        for view in (*call.reads, *call.writes):
            self.view_pointer(view)
        return [(start, runtime().address["mycel_recursion"], 1, 0)]

    def encode_dense(self, step: Step) -> Table:
        plan, views = self.calls[id(step)]
        self._alive.append(plan)
        symbols = dense.symbols()
        encoded = []
        for call in plan.calls:
            if isinstance(call, dense.Product):
                encoded.append((len(self.words), runtime().address["mycel_product"], 1, 0))
                self.words += [
                    symbols["dnnl_sgemm"],
                    symbols.get("omp_set_num_threads", 0),
                    plan.threads,
                    *call.words(),
                ]
                for name in call.buffers:
                    self.view_pointer(views[name])
                continue
            encoded.append((len(self.words), runtime().address["mycel_dense"], 1, 0))
            self.words += [
                symbols["dnnl_primitive_execute"], symbols["dnnl_memory_set_data_handle"], call.primitive, dense.stream(),
                len(call.memories), call.exec_args, symbols.get("omp_set_num_threads", 0), plan.threads,
            ]  # fmt: skip
            for handle, name in zip(call.memories, call.buffers):
                self.words.append(handle)
                self.view_pointer(views[name])
        return encoded

    def encode_host(self, step: Step) -> int:
        node, reads, writes = step.data
        for view in (*reads, *writes):
            self.view_pointer(view)
        types = [tensor_type(self.shape(v), v.buffer.dtype) for v in (*reads, *writes)]
        params = {k: concrete(v, self.sizes) for k, v in node.params.items()} if self.sizes else dict(node.params)

        def call(words: int, begin: int, end: int) -> None:
            try:
                self.run_host(node, params, words, types, len(reads))
            except BaseException as error:
                self.errors.append(error)
                self.status.value = self.status.value or FAILED

        callback = HOST(call)
        self._alive.append(callback)
        return ctypes.cast(callback, ctypes.c_void_p).value or 0

    def run_host(self, node: Any, params: dict[str, Any], words: int, types: Sequence[TensorType], count: int) -> None:
        """Run one node in the reference engine over memory."""
        from mycel.engines.reference.evaluate import apply

        if self.errors:
            return
        addresses = (ctypes.c_int64 * len(types)).from_address(words)
        arrays = [_array_at(a, t) for a, t in zip(addresses, types)]
        try:
            results = apply(node.prim, arrays[:count], params)
        except Exception as error:
            note_host_step(error, node, types[:count])
            raise
        for target, value in zip(arrays[count:], results if isinstance(results, tuple) else (results,)):
            if target.size:
                target[...] = value

    # The table.

    def finish(self, table: Table, aliases: dict[int, int]) -> None:
        if not _programs:
            runtime().raise_outside(outside_error)
        if not runtime().begun:
            runtime().begin_team()
        # Ctypes would cut off the upper bits of a number that does not fit.
        extents = [extent for entries in (table, *[t for _, t in self.tables]) for _, _, extent, _ in entries]
        if max(*self.words, *extents, 0, 0) > MOST_BYTES or min(*self.words, 0, 0) < -MOST_BYTES:
            raise self.too_large()
        words = (ctypes.c_int64 * max(len(self.words), 1))(*self.words)
        base = self.base = ctypes.addressof(words)
        steps = _table(table, base)
        for word, inner in self.tables:
            made = _table(inner, base)
            self._alive.append(made)
            words[word] = ctypes.addressof(made)
        relocations = (ctypes.c_int64 * max(3 * len(self.relocations), 1))()
        for k, (word, number, offset) in enumerate(self.relocations):
            relocations[3 * k : 3 * k + 3] = [base + 8 * word, number, offset]
        count = len(self.outputs)
        sizes = (ctypes.c_int64 * max(count, 1))(*self.output_bytes)
        alias = (ctypes.c_int64 * max(count, 1))(*[aliases.get(j, -1) for j in range(count)])
        mutex = (ctypes.c_int64 * 16)()
        moved = sum(self.number(s.writes[0].size) * s.writes[0].dtype.itemsize for s in self.all_steps)
        recursive = any(isinstance(s.data, (Call, Tape)) for s in self.all_steps)
        hosted = recursive or self.watch is not None or any(s.kind == "host" for s in self.all_steps)
        heavy = (
            hosted or moved > HEAVY_BYTES or self.work > HEAVY_WORK or any(s.kind == "while" for s in self.all_steps)
        )
        self.table[:] = [
            len(self.lowered.inputs), count, ctypes.addressof(sizes), ctypes.addressof(alias), len(self.relocations),
            ctypes.addressof(relocations), self.arena_bytes, len(table), ctypes.addressof(steps), int(heavy),
            ctypes.addressof(mutex), 0, int(not self.sizes and self.arena_bytes <= OWN_ARENA_BYTES), 0,
            # What is written over its own inputs is written whole: it does not end between steps.
            int(not aliases),
        ]  # fmt: skip
        self._alive += [words, steps, relocations, sizes, alias]
        self.mutex: Any = mutex
        _programs.add(self)
        for held in holders:
            held.add(self)
        _by_table[ctypes.addressof(self.table)] = self
        self.hosted = hosted
        self.lock: Any = locks.lock() if hosted else None
        # At exit the operating system takes the memory.
        weakref.finalize(self, _release_arena, self.table, runtime().release).atexit = False

    @property
    def entry(self) -> Callable[..., Any]:
        """A function from buffers to a buffer, or a tuple of them; it keeps the program alive."""
        run = runtime().entry(self, ctypes.addressof(self.table))
        return self.checked(run) if self.hosted else run

    def checked(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """The entry, raising what a host step raised, or that a recursion was too deep."""

        def call(*buffers: Any) -> Any:
            if self.watch is not None:
                self.watch.inputs(self, buffers)
            return self.guarded(lambda: run(*buffers))

        call.__dict__["program"] = self
        return call

    def guarded(self, run: Callable[[], Any]) -> Any:
        """What `run` gives, which runs this program; raises what a host step raised, or that a recursion was too deep."""
        if self.lock is None:
            return run()
        with self.lock:
            self.status.value = 0
            try:
                result = run()
            finally:
                status, self.status.value = self.status.value, 0
                errors, self.errors[:] = list(self.errors), []
                if self.watch is not None:
                    self.watch.look()
            if errors:
                raise errors[0]
            if status == OUT_OF_MEMORY:
                raise MemoryError(
                    "the gradient of a loop: there is no memory for the states of its rounds; call the loop through ms.recompute, which keeps few"
                )
            if status:
                raise RecursionError(
                    f"a recursive function was called more than {LEVELS} levels deep, or its calls took more than {RECORD_BYTES >> 30} GiB; "
                    "end the recursion earlier, or write it as a loop"
                )
            return result


def outside_error(table: int, record: int, index: int) -> BaseException:
    """The exception for an index that a kernel of the program with this table found out of range."""
    try:
        site, size = _by_table[table].sites[record]
        return index_out_of_range(site.node, site.axis, size, index, site.wraps)
    except BaseException as error:
        return error


def program_of(entry: Callable[..., Any]) -> Optional[Program]:
    """The program that an entry runs; None for other functions."""
    found = getattr(entry, "__dict__", {}).get("program")
    if found is None and type(entry) is types.BuiltinFunctionType and type(entry.__self__).__name__ == "PyCapsule":
        found = _by_table.get(runtime().data_address(entry.__self__))
    return found


def _release_arena(table: Any, release: Callable[[int], None]) -> None:
    if table[ARENA]:
        release(table[ARENA])


def _table(entries: Table, base: int) -> Any:
    """Steps as the runtime reads them."""
    steps = (ctypes.c_int64 * max(4 * len(entries), 1))()
    for k, (start, function, extent, least) in enumerate(entries):
        steps[4 * k : 4 * k + 4] = [signed(function), base + 8 * start, extent, least]
    return steps


def _flat(steps: Sequence[Step]) -> Iterator[Step]:
    """Every step, those inside control flow included."""
    for step in steps:
        yield step
        if isinstance(step.data, Nested):
            yield from _flat(step.data.first)
            yield from _flat(step.data.second)


def signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _array_at(address: int, type: TensorType) -> np.ndarray[Any, Any]:
    count = int(type.size)
    raw = (ctypes.c_uint8 * max(count * type.dtype.itemsize, 1)).from_address(address)
    return (
        np.frombuffer(raw, dtype=np.uint8, count=count * type.dtype.itemsize).view(type.dtype.numpy).reshape(type.shape)
    )
