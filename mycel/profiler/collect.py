"""The collector of a profile: what is noted while it runs.

The engine's trace has every step, every run of a program and all memory. The engine calls
`Collector._before_run` before each run, which notes the source line that Python is at.
`foundation.spans` has the phases of compilation. Wrappers around calls of compiled functions and of
Cells are put in place when a profile begins and removed when it ends, so that they cost nothing at
other times. Gradients of eager code are compiled once more, with the source lines of their
operations (unless `gradient_lines` is False).
"""

from __future__ import annotations

import bisect
import gc
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mycel._src.compiler.ir.graph import current_where
from mycel._src.compiler.ir.source_locations import caller, is_library
from mycel._src.devices import runtime
from mycel._src.engines.select import engine
from mycel._src.engines.trace_records import Trace, TracedProgram
from mycel._src.foundation.spans import Span, sinks
from mycel._src.staging.compiled import jit as compiled_functions
from mycel._src.staging.compiled.jit import Jit
from mycel._src.staging.frontend.parallelism.cell_path import path_in
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.autograd.recorded_node import Recorded
from mycel._src.tensors.core.tensor import Tensor
from mycel.dataset.execution.iterator_scope import watching
from mycel.dataset.profiling import PipelineProfile, of_scope

__all__ = ["Asked", "Collector", "Held", "Recording"]


# The most records of each kind that a profile keeps, so that a long one does not exhaust memory;
# the trace has a bound of its own.
_MOST = 1 << 20


class Asked(NamedTuple):
    """A request of Python, from which line and in which Cell.

    `kind` is "operation" (the run of a program), "function" (a call of a compiled function) or
    "cell" (a call of a Cell).
    """

    kind: str
    name: str
    begin: int
    end: int
    thread: int
    line: str
    cell: str


class Held(NamedTuple):
    """Memory that was in use before the profile began."""

    name: str
    nbytes: int
    program: TracedProgram | None = None


@dataclass
class Recording:
    """What was noted in one profile.

    Times are nanoseconds of the monotonic clock; `thread` is the thread that began the profile.
    """

    begin: int = 0
    end: int = 0
    thread: int = 0
    spans: list[Span] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    trace: Trace = field(default_factory=Trace)
    thread_names: dict[int, str] = field(default_factory=dict)
    before: list[Held] = field(default_factory=list)
    plans: dict[int, tuple[Any, int]] = field(default_factory=dict)
    marks: list[tuple[int, int, str]] = field(default_factory=list)
    allocator: dict[str, int] = field(default_factory=dict)
    # The pipelines whose iterators began within the profile.
    pipelines: list[PipelineProfile] = field(default_factory=list)


class _Local(threading.local):
    cells: tuple[tuple[Any, str], ...] = ()


_local = _Local()


class Collector:
    """One profile in the making; `start` and `stop` are called once each."""

    def __init__(self, gradient_lines: bool = True) -> None:
        self.recording = Recording()
        self.gradient_lines = gradient_lines
        self._undo: list[Callable[[], None]] = []
        self._begun: list[Any] = []
        self._tracing = engine().tracing(before_run=self._before_run)
        self._runs: dict[int, list[tuple[int, str, str]]] = {}
        self._codes: dict[Any, bool] = {}

    def start(self) -> None:
        recording = self.recording
        recording.before = list(_in_use())
        recording.trace = self._tracing.__enter__()
        recording.before += [Held(f"the arena of {p.name}", nbytes, p) for p, nbytes in recording.trace.held]
        recording.thread = threading.get_ident()
        self._replace(Jit, "__call__", self._function)
        self._replace(Cell, "__call__", self._cell)
        self._replace(compiled_functions, "run_live", self._live)
        if self.gradient_lines:
            self._replace(Recorded, "__init__", self._recorded)
        sinks.append(recording.spans)
        watching.append(self._begun)
        recording.begin = time.monotonic_ns()

    def stop(self) -> Recording:
        recording = self.recording
        recording.end = time.monotonic_ns()
        # By identity: two lists without spans are equal.
        sinks[:] = [s for s in sinks if s is not recording.spans]
        watching[:] = [begun for begun in watching if begun is not self._begun]
        recording.pipelines = [of_scope(dataset, scope) for dataset, scope in self._begun]
        self._begun = []
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()
        recording.thread_names.update({t.ident: t.name for t in threading.enumerate() if t.ident is not None})
        self._tracing.__exit__(None, None, None)
        recording.allocator = {"in use": runtime.memory_allocated(), "reserved": runtime.memory_reserved()}
        recording.asked += self._operations()
        return recording

    def _replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        original = owner.__dict__[name]
        setattr(owner, name, make(original))
        self._undo.append(lambda: setattr(owner, name, original))

    # What Python asks for.

    def _line(self, depth: int) -> str:
        """Return the innermost line outside of this package."""
        frame: types.FrameType | None = sys._getframe(depth)
        codes = self._codes
        while frame is not None:
            code = frame.f_code
            library = codes.get(code)
            if library is None:
                library = codes[code] = is_library(code.co_filename)
            if not library:
                return f"{code.co_filename}:{frame.f_lineno}"
            frame = frame.f_back
        return ""

    def _note(self, kind: str, name: str, begin: int, line: str) -> None:
        cells = _local.cells
        path = cells[-1][1] if cells else ""
        if len(self.recording.asked) < _MOST:
            self.recording.asked.append(
                Asked(kind, name, begin, time.monotonic_ns(), threading.get_ident(), line, path)
            )

    def _function(self, original: Any) -> Any:
        def __call__(compiled: Any, *args: Any, **kwargs: Any) -> Any:
            if eager.active and (context := eager.local.context) is not None and context.is_staging:
                return original(compiled, *args, **kwargs)
            line, begin = self._line(2), time.monotonic_ns()
            try:
                return original(compiled, *args, **kwargs)
            finally:
                self._note("function", compiled.__qualname__, begin, line)

        return __call__

    def _cell(self, original: Any) -> Any:
        def __call__(cell: Any, *args: Any, **kwargs: Any) -> Any:
            if eager.active and (context := eager.local.context) is not None and context.is_staging:
                return original(cell, *args, **kwargs)
            before = _local.cells
            outer, base = before[-1] if before else (None, "")
            path = path_in(base, outer, cell) if "_params" in cell.__dict__ else type(cell).__name__
            line, begin = self._line(2), time.monotonic_ns()
            _local.cells = (*before, (cell, path))
            try:
                return original(cell, *args, **kwargs)
            finally:
                self._note("cell", path, begin, line)
                _local.cells = before

        return __call__

    def _live(self, original: Any) -> Any:
        def run_live(plan: Any, *args: Any, **kwargs: Any) -> Any:
            plans = self.recording.plans
            plans[id(plan)] = (plan, plans.get(id(plan), (plan, 0))[1] + 1)
            return original(plan, *args, **kwargs)

        return run_live

    def _recorded(self, original: Any) -> Any:
        def __init__(node: Any, *args: Any) -> None:
            original(node, *args)
            where = node.where or current_where() or caller(2)
            cells = _local.cells
            if where is not None and cells and not where.cell:
                where = where._replace(cell=cells[-1][1])
            node.where = where

        return __init__

    def _before_run(self) -> None:
        """Note the line that makes a program run, and its Cell."""
        cells = _local.cells
        thread = threading.get_ident()
        if thread not in self._runs:
            self._runs[thread] = []
            self.recording.thread_names[thread] = threading.current_thread().name
        if len(self._runs[thread]) < _MOST:
            self._runs[thread].append((time.monotonic_ns(), self._line(2), cells[-1][1] if cells else ""))

    def _operations(self) -> Iterator[Asked]:
        """Yield the runs of programs, each with the last line that its thread noted before it."""
        for run in self.recording.trace.runs:
            noted = self._runs.get(run.thread, [])
            k = bisect.bisect_right(noted, (run.begin + 1,)) - 1
            if k >= 0:
                yield Asked("operation", run.program.name.strip("_"), run.begin, run.end, run.thread, *noted[k][1:])


def _buffer(tensor: Tensor) -> Any:
    """Return the buffer that a tensor has now, None where it would have to be computed."""
    try:
        return _BUFFER.__get__(tensor)
    except AttributeError:
        return None


_BUFFER: Any = Tensor.__dict__["_buf"]


def _in_use() -> Any:
    """Yield the memory of all tensors that exist now, each buffer once."""
    seen: set[int] = set()
    kinds = [Tensor]
    for kind in kinds:
        kinds += kind.__subclasses__()
    tensors = frozenset(kinds)
    # By type: a weak proxy may stand for what is gone. There may be millions of other objects.
    for found in [one for one in gc.get_objects() if type(one) in tensors]:
        # What has no buffer is not to make one.
        if _buffer(found) is None or id(found._buf) in seen:
            continue
        seen.add(id(found._buf))
        name = found.__dict__.get("name") if hasattr(found, "__dict__") else None
        yield Held(str(name or "a tensor"), int(found._type.nbytes))
