"""Programs: a lowered graph as a table that the native runtime runs.

A `Program` is made of a `Template` for actual sizes: the numbers and the arena (`placed_template`),
and the words and tables (`encoding`), which it passes to the runtime. It keeps everything alive
that its words point to: kernels, dense plans, constants, callbacks.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

from mycel._src.compiler.ir.dims import InconclusiveDimension
from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.ir.types import MOST_BYTES, TensorType
from mycel._src.compiler.transport.async_channel import channel
from mycel._src.engines.error_messages import index_out_of_range
from mycel._src.engines.native.program.encoding import Encoded, Table, signed
from mycel._src.engines.native.program.template import Template
from mycel._src.engines.native.runtime.recursion_ir import LEVELS, RECORD_BYTES
from mycel._src.engines.native.runtime.runtime import runtime
from mycel._src.engines.native.runtime.runtime_ir import PROGRAM
from mycel._src.engines.native.steps.step_types import Call, HostCall, Nested, Step, Tape
from mycel._src.foundation.python_runtime import finalization
from mycel._src.foundation.spans import timed
from mycel._src.foundation.system import locks

__all__ = ["ARENA", "Program", "build", "holders", "program_of", "programs", "release_arenas", "template_of"]

_programs: finalization.Living[Program] = finalization.Living()
_by_table: finalization.Interned[int, Program] = finalization.Interned()
# Who wants all programs that are made from now on to be kept.
holders: list[set[Program]] = []

HEAVY_BYTES = 1 << 18
HEAVY_WORK = 1 << 20
OWN_ARENA_BYTES = 1 << 20  # a larger arena goes back after a run, for other programs to use
ARENA = PROGRAM.index("arena")
# What a run's status says beside 0 (all is well) and 1 (too deep).
OUT_OF_MEMORY = 2


def programs() -> list[Program]:
    """Return the programs that are alive."""
    return _programs.members()


def release_arenas() -> None:
    """Free the arenas that programs keep for their next run; running programs keep theirs."""
    for program in programs():
        runtime().drop_arena(ctypes.addressof(program.table))


@locks.in_child
def _in_child() -> None:
    """Release the native locks that threads of the parent held when it forked.

    The child has none of these threads.
    """
    for program in _programs:
        ctypes.memset(program.mutex, 0, ctypes.sizeof(program.mutex))


def build(graph: Graph, aliases: Mapping[int, int] | None = None) -> Program:
    """Return the program of an optimized graph of static types."""
    return Program(template_of(graph, aliases))


def template_of(graph: Graph, aliases: Mapping[int, int] | None = None) -> Template:
    """Return the template of an optimized graph of static types."""
    for kind in graph.input_types:
        if isinstance(kind, TensorType) and not kind.is_static:
            raise InconclusiveDimension(f"{graph.name}: the sizes of {kind} are not known")
    return Template(graph, dict(aliases or {}))


class Program(Encoded):
    """A template for actual sizes, by symbol; `entry(*buffers)` runs it."""

    @timed("program", lambda _, template, *__: template.graph.name)
    def __init__(self, template: Template, sizes: Mapping[str, int] | None = None) -> None:
        super().__init__(template, sizes)
        self._finish(self.encode_all(template.steps), template.aliases)
        template.note(self._new)

    def _finish(self, table: Table, aliases: Mapping[int, int]) -> None:
        """Write words and tables into memory, and make the table that the runtime runs."""
        if not _programs:
            runtime().raise_outside(outside_error)
        if not runtime().begun:
            runtime().begin_team()
        # Ctypes would cut off the upper bits of a number that does not fit.
        extents = [entry.extent for entries in (table, *[t for _, t in self.tables]) for entry in entries]
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
        self.hosted = self.watch is not None or any(isinstance(s.data, (Call, Tape, HostCall)) for s in self.all_steps)
        described = {
            "inputs": len(self.lowered.inputs),
            "outputs": count,
            "output_bytes": ctypes.addressof(sizes),
            "output_alias": ctypes.addressof(alias),
            "relocations": len(self.relocations),
            "relocation_table": ctypes.addressof(relocations),
            "arena_bytes": self.arena_bytes,
            "steps": len(table),
            "step_table": ctypes.addressof(steps),
            "heavy": int(self.hosted or self._is_heavy()),
            "mutex": ctypes.addressof(mutex),
            "arena": 0,
            "keeps": int(not self.sizes and self.arena_bytes <= OWN_ARENA_BYTES),
            "status": 0,
            # What is written over its own inputs is written whole: it does not end between steps.
            "polls": int(not aliases),
        }
        self.table[:] = [described[name] for name in PROGRAM]
        self._alive += [words, steps, relocations, sizes, alias]
        self.mutex: Any = mutex
        _programs.add(self)
        for held in holders:
            held.add(self)
        _by_table.enter(ctypes.addressof(self.table), self)
        self.lock: Any = locks.lock() if self.hosted else None
        self._twins: list[tuple[Program, Callable[..., Any]]] = []
        # A function of C; at exit the operating system takes the memory.
        finalization.at_end(self, functools.partial(runtime().end_program, self.table, mutex))

    def _is_heavy(self) -> bool:
        """Return whether a run takes long enough to release Python's lock for it."""
        moved = sum(self.nbytes(s.writes[0]) for s in self.all_steps)
        loops = any(isinstance(s.data, Nested) and s.data.loops for s in self.all_steps)
        return loops or moved > HEAVY_BYTES or self.work > HEAVY_WORK

    def step_at(self, address: int) -> Step | None:
        """Return the step of this program whose argument words start at an address, or None."""
        word, rest = divmod(address - self.base, 8)
        return self.starts.get(word) if rest == 0 else None

    @property
    def entry(self) -> Callable[..., Any]:
        """A function from buffers to a buffer, or a tuple of them.

        The function keeps the program alive.
        """
        run = runtime().entry(self, ctypes.addressof(self.table))
        return self.checked(run) if self.hosted else run

    def checked(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """Return the entry with its errors.

        These are those of host steps, and of a recursion that is too deep. A host step may wait for
        another thread that runs the same program, as ranks that are threads do: each thread that
        finds the program running gets a twin of it.
        """

        def call(*buffers: Any) -> Any:
            program, entry = self._vacant(run)
            try:
                if program.watch is not None:
                    program.watch.inputs(program, buffers)
                return program._guarded(lambda: entry(*buffers))
            finally:
                program.lock.release()

        call.__dict__["program"] = self
        return call

    def _vacant(self, run: Callable[..., Any]) -> tuple[Program, Callable[..., Any]]:
        """Return this program or a twin that no thread runs, locked, with its entry."""
        if self.lock.acquire(blocking=False):
            return self, run
        for twin, entry in list(self._twins):
            if twin.lock.acquire(blocking=False):
                return twin, entry
        made = Program(self.template, self.sizes)
        made.lock.acquire()
        entry = runtime().entry(made, ctypes.addressof(made.table))
        self._twins.append((made, entry))
        return made, entry

    def guarded(self, run: Callable[[], Any]) -> Any:
        """Return the result of `run`, which runs this program.

        Raises the error of a host step, or of a recursion that is too deep.
        """
        if self.lock is None:
            return run()
        with self.lock:
            return self._guarded(run)

    def _guarded(self, run: Callable[[], Any]) -> Any:
        self.status.value = 0
        try:
            result = run()
        finally:
            status, self.status.value = self.status.value, 0
            errors, self.errors[:] = list(self.errors), []
            self._settle(errors[0] if errors else sys.exc_info()[1])
            if self.watch is not None:
                self.watch.look()
        if errors:
            raise errors[0]
        if status == OUT_OF_MEMORY:
            raise MemoryError(
                "the gradient of a loop: there is no memory for the states of its rounds; call the loop through "
                "ms.recompute, which keeps few"
            )
        if status:
            raise RecursionError(
                f"a recursive function was called more than {LEVELS} levels deep, or its calls took more than "
                f"{RECORD_BYTES >> 30} GiB; "
                "end the recursion earlier, or write it as a loop"
            )
        return result

    def _settle(self, failure: BaseException | None) -> None:
        """Wait, where a run has failed, for the exchanges that it has begun: ranks that fail alike
        have begun the same ones. An interrupt does not wait.
        """
        if self.started:
            self.started.clear()
            if isinstance(failure, Exception):
                channel().settle()


def outside_error(table: int, record: int, index: int) -> BaseException:
    """Return the error for an index that a kernel found out of range.

    `table` is the address of the program's table, `record` that of the index's site.
    """
    try:
        found = _by_table.get(table)
        assert found is not None
        site, size = found.sites[record]
        return index_out_of_range(site.node, site.axis, size, index, site.wraps)
    except BaseException as error:
        return error


def program_of(entry: Callable[..., Any]) -> Program | None:
    """Return the program that an entry runs; None for other functions."""
    found = getattr(entry, "__dict__", {}).get("program")
    if found is None and type(entry) is types.BuiltinFunctionType and type(entry.__self__).__name__ == "PyCapsule":
        found = _by_table.get(runtime().data_address(entry.__self__))
    return found


def _table(entries: Table, base: int) -> Any:
    """Return a table in the form that the runtime reads."""
    steps = (ctypes.c_int64 * max(4 * len(entries), 1))()
    for k, (start, function, extent, least) in enumerate(entries):
        steps[4 * k : 4 * k + 4] = [signed(function), base + 8 * start, extent, least]
    return steps
