"""What the native engine did and when: every step of every program that runs while a trace is being taken, and the memory that was taken and given back.

The runtime writes records (see `runtime_ir`) into a log. When the log is half full a thread puts an empty one in its place; afterwards addresses are looked up in the
programs that were alive. Steps inside control flow appear as well as the `cond` or `while` that ran them (`Event.inner`). Logs are used again and never freed, as
a program that began during a trace may write its last record after it.
"""

from __future__ import annotations

import ctypes
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple, Optional

import numpy as np

from mycel.engines.native.lowering.lower import Step
from mycel.engines.native.program.program import Program, holders, programs
from mycel.engines.native.runtime.door import runtime
from mycel.engines.native.runtime.runtime_ir import RECORD

__all__ = ["ALLOCATED", "PART", "RELEASED", "RUN", "STEP", "Event", "Run", "Trace", "tracing"]

STEP, RUN, PART, ALLOCATED, RELEASED = range(5)
_ROOM = 1 << 19
_MOST = 1 << 22
_LOOK = 0.01


class Event(NamedTuple):
    """One run of one step, or of one of the calls that it consists of (`call`); times are nanoseconds of the monotonic clock, as `time.monotonic_ns` gives them."""

    program: Program
    step: Step
    begin: int
    end: int
    inner: bool
    thread: int = 0
    call: int = 0

    @property
    def schedule(self) -> str:
        """How the loops of a kernel run; empty for what is no kernel of loops."""
        found = self.program.template.code.get(id(self.step))
        return found[0].schedule if found is not None else ""


class Run(NamedTuple):
    """One run of one program."""

    program: Program
    begin: int
    end: int
    thread: int


class Trace:
    """What a trace holds when it has been taken.

    `records` has a row (what, key, begin, end, thread) for each record; `events` are the steps in order of their end, `runs` the programs'; `lost` counts the records
    for which there was no room.
    """

    def __init__(self) -> None:
        self.records = np.zeros((0, RECORD), np.int64)
        self.lost = 0
        self.logs: list[Any] = []
        self.programs: dict[int, Program] = {}
        self._held: set[Program] = set()
        self._sorted: tuple[list[int], list[Program]] = ([], [])
        self._places: dict[int, Optional[tuple[Program, Step, int]]] = {}

    @cached_property
    def events(self) -> list[Event]:
        found: list[Event] = []
        for _, key, begin, end, thread in self.of(STEP).tolist():
            place = self.step_at(key)
            if place is not None and place[1].kind != "poison":
                program, step, call = place
                found.append(Event(program, step, begin, end, False, thread, call))
        _mark_inner(found)
        return found

    @property
    def missed(self) -> int:
        """The records for which there was no room, and the steps whose programs are gone."""
        return int(self.lost) + sum(self.step_at(key) is None for key in self.of(STEP)[:, 1].tolist())

    @cached_property
    def runs(self) -> list[Run]:
        """The runs of programs, in order of their end."""
        rows = self.of(RUN).tolist()
        return [Run(self.programs[key], b, e, t) for _, key, b, e, t in rows if key in self.programs]

    def of(self, what: int) -> np.ndarray[Any, Any]:
        """The records of one kind."""
        found: np.ndarray[Any, Any] = self.records[self.records[:, 0] == what]
        return found

    def step_at(self, address: int) -> Optional[tuple[Program, Step, int]]:
        """The program and step that have their arguments at an address, and the number of the call among those of the step."""
        if address not in self._places:
            bases, owners = self._sorted
            k = bisect_right(bases, address) - 1
            step = owners[k].step_at(address) if k >= 0 else None
            if step is None:
                self._places[address] = None
            else:
                program = owners[k]
                word = (address - program.base) // 8
                before = sum(1 for w, s in program.starts.items() if s is step and w < word)
                self._places[address] = (program, step, before)
        return self._places[address]

    def _close(self, parts: list[np.ndarray[Any, Any]]) -> None:
        self.programs = {ctypes.addressof(p.table): p for p in self._held if hasattr(p, "table")}
        owners = sorted((p for p in self._held if hasattr(p, "base")), key=lambda p: p.base)
        self._sorted = ([p.base for p in owners], owners)
        if parts:
            self.records = np.concatenate(parts)


_HOOK = ctypes.PYFUNCTYPE(None)
_hooks: list[Any] = []
_logs: list[Any] = []
_active: list[Trace] = []


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
def tracing(room: Optional[int] = None, before_run: Optional[Callable[[], None]] = None) -> Iterator[Trace]:
    """Take a trace while the block runs, in all threads; not two at once. `room` bounds the records (by default, some four million).

    `before_run` is called before each run of a program, by the thread that is about to run it.
    """
    if _active:
        raise RuntimeError("a trace is already being taken; end it first")
    trace = Trace()
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
    """Mark what began and ended inside a `cond` or `while` of its thread, which is noted after what it ran."""
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
