"""Traces of the native engine: every step of every program that runs, and memory taken and freed.

The runtime writes records (`early_exit_and_log_ir` explains them) into a log. When the log is half
full, a thread replaces it by an empty one; addresses are later looked up in the programs that were
alive. Steps inside control flow appear besides the `cond` or `while` that ran them (`Event.inner`).
Logs are reused and never freed, as a program that began during a trace may write its last record
after it.
"""

from __future__ import annotations

import ctypes
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from mycel._src.engines.native.program.program import ARENA, Program, holders, programs
from mycel._src.engines.native.report.traced_programs import NativeProgram, NativeStep
from mycel._src.engines.native.runtime.runtime import runtime
from mycel._src.engines.native.runtime.runtime_ir import RECORD
from mycel._src.engines.trace_records import Event, Move, Part, Run, Trace

__all__ = ["ALLOCATED", "PART", "RELEASED", "RUN", "STEP", "NativeTrace", "tracing"]

STEP, RUN, PART, ALLOCATED, RELEASED = range(5)
_ROOM = 1 << 19
_MOST = 1 << 22
_LOOK = 0.01


class NativeTrace(Trace):
    """A trace made of the runtime's records.

    `records` has a row (what, key, begin, end, thread) for each; `lost` counts those for which
    there was no room.
    """

    def __init__(self) -> None:
        self.records = np.zeros((0, RECORD), np.int64)
        self.lost = 0
        self.logs: list[Any] = []
        self.programs: dict[int, Program] = {}
        self._held: set[Program] = set()
        self._sorted: tuple[list[int], list[Program]] = ([], [])
        self._held_memory: list[tuple[NativeProgram, int]] = []
        self._steps: dict[int, NativeStep | None] = {}
        self._programs: dict[Program, NativeProgram] = {}

    def program_of(self, program: Program) -> NativeProgram:
        """Return a program in the form that traces show."""
        found = self._programs.get(program)
        if found is None:
            found = self._programs[program] = NativeProgram(program)
        return found

    @cached_property
    def events(self) -> list[Event]:
        found: list[Event] = []
        for _, key, begin, end, thread in self.of(STEP).tolist():
            step = self.step_at(key)
            if step is not None and step.kind != "poison":
                found.append(Event(step, begin, end, False, thread))
        _mark_inner(found)
        return found

    @property
    def missed(self) -> int:
        return int(self.lost) + sum(self.step_at(key) is None for key in self.of(STEP)[:, 1].tolist())

    @cached_property
    def runs(self) -> list[Run]:
        rows = self.of(RUN).tolist()
        known = self.programs
        return [Run(self.program_of(known[key]), b, e, t) for _, key, b, e, t in rows if key in known]

    @cached_property
    def parts(self) -> list[Part]:
        return [Part(self.step_at(key), b, e, t) for _, key, b, e, t in self.of(PART).tolist()]

    @cached_property
    def moves(self) -> list[Move]:
        chosen = np.isin(self.records[:, 0], (ALLOCATED, RELEASED))
        return [Move(what == ALLOCATED, *row) for what, *row in self.records[chosen].tolist()]

    @property
    def held(self) -> list[tuple[NativeProgram, int]]:
        return self._held_memory

    @property
    def threads(self) -> list[int]:
        return list(dict.fromkeys(self.records[:, 4].tolist()))

    def of(self, what: int) -> np.ndarray[Any, Any]:
        """Return the records of one kind."""
        found: np.ndarray[Any, Any] = self.records[self.records[:, 0] == what]
        return found

    def step_at(self, address: int) -> NativeStep | None:
        """Return the step, or its library's call, whose arguments are at an address."""
        if address not in self._steps:
            bases, owners = self._sorted
            k = bisect_right(bases, address) - 1
            step = owners[k].step_at(address) if k >= 0 else None
            if step is None:
                self._steps[address] = None
            else:
                program = owners[k]
                word = (address - program.base) // 8
                before = sum(1 for w, s in program.starts.items() if s is step and w < word)
                self._steps[address] = NativeStep(self.program_of(program), step, before)
        return self._steps[address]

    def _close(self, parts: list[np.ndarray[Any, Any]]) -> None:
        self.programs = {ctypes.addressof(p.table): p for p in self._held if hasattr(p, "table")}
        owners = sorted((p for p in self._held if hasattr(p, "base")), key=lambda p: p.base)
        self._sorted = ([p.base for p in owners], owners)
        if parts:
            self.records = np.concatenate(parts)


_HOOK = ctypes.PYFUNCTYPE(None)
_hooks: list[Any] = []
_logs: list[Any] = []
_active: list[NativeTrace] = []


def _new_log(room: int) -> Any:
    for k, log in enumerate(_logs):
        if log[0] == room:
            del _logs[k]
            break
    else:
        log = (ctypes.c_int64 * (2 + RECORD * room))()
    log[0], log[1] = room, 0
    return log


def _rows(log: Any) -> np.ndarray[Any, Any]:
    count = min(log[1], log[0])
    rows: np.ndarray[Any, Any] = np.frombuffer(log, np.int64, count * RECORD, 16).reshape(-1, RECORD).copy()
    return rows


@contextmanager
def tracing(room: int | None = None, before_run: Callable[[], None] | None = None) -> Iterator[NativeTrace]:
    """Take a trace of all threads while a block runs, as `Engine.tracing` says."""
    if _active:
        raise RuntimeError("a trace is already being taken; end it first")
    trace = NativeTrace()
    set_log = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(runtime().address["mycel_log"])
    set_hook = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(runtime().address["mycel_hook"])
    _active.append(trace)
    logs = trace.logs
    logs.append(_new_log(_ROOM if room is None else room))
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_LOOK):
            if logs[-1][1] > logs[-1][0] // 2 and sum(log[0] for log in logs) < _MOST:
                logs.append(_new_log(_ROOM))
                set_log(ctypes.addressof(logs[-1]))

    watcher = threading.Thread(target=watch, name="mycel-trace", daemon=True)
    trace._held.update(programs())
    trace._held_memory = [
        (trace.program_of(p), p.arena_bytes) for p in trace._held if hasattr(p, "table") and p.table[ARENA]
    ]
    holders.append(trace._held)
    if before_run is not None:
        # Kept for ever: a thread may be about to call it when the trace ends.
        hook = _HOOK(before_run)
        _hooks.append(hook)
        set_hook(ctypes.cast(hook, ctypes.c_void_p))
    set_log(ctypes.addressof(logs[0]))
    try:
        if room is None:
            watcher.start()
        yield trace
    finally:
        done.set()
        if room is None:
            watcher.join()
        set_log(None)
        set_hook(None)
        holders.remove(trace._held)
        _active.clear()
        trace.lost = sum(max(log[1] - log[0], 0) for log in logs)
        trace._close([_rows(log) for log in logs])
        _logs.extend(logs)
        logs.clear()


def _mark_inner(events: list[Event]) -> None:
    """Mark the events that began and ended inside a `cond` or `while` of their thread.

    That event is recorded after those that it ran.
    """
    around: dict[int, list[Event]] = {}
    for i in reversed(range(len(events))):
        event = events[i]
        outer = around.setdefault(event.thread, [])
        while outer and outer[-1].begin > event.begin:
            outer.pop()
        if outer and event.end <= outer[-1].end:
            events[i] = event._replace(inner=True)
        if event.step.kind in ("cond", "while"):
            outer.append(event)
