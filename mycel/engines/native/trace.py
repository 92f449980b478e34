"""What the native engine did and when: every step of every program that runs while a trace is being taken.

The runtime writes the address of a step's arguments and two times into a log; afterwards the addresses are looked up in the programs that are alive. Steps
inside control flow appear as well as the `cond` or `while` that ran them (`Event.inner`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Optional

from mycel.engines.native.lower import Step
from mycel.engines.native.program import Program, programs
from mycel.engines.native.runtime import runtime

__all__ = ["Event", "Trace", "tracing"]

_ROOM = 1 << 20


class Event(NamedTuple):
    """One run of one step; times are nanoseconds of the monotonic clock, as `time.monotonic_ns` gives them."""

    program: Program
    step: Step
    begin: int
    end: int
    inner: bool


class Trace:
    """The events of a trace, in order of their end; `missed` counts those for which there was no room, or whose programs are gone."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.missed = 0


@contextmanager
def tracing(room: int = _ROOM) -> Iterator[Trace]:
    """Take a trace of up to `room` steps while the block runs, in all threads; not two at once."""
    trace = Trace()
    log = (ctypes.c_int64 * (2 + 3 * room))(room, 0)
    set_log = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(runtime().address["mycel_log"])
    if _active:
        raise RuntimeError("a trace is already being taken; end it first")
    _active.append(log)
    set_log(ctypes.addressof(log))
    try:
        yield trace
    finally:
        set_log(None)
        _active.clear()
        _read(log, room, trace)


_active: list[Any] = []


def _read(log: Any, room: int, trace: Trace) -> None:
    count = min(log[1], room)
    trace.missed = log[1] - count
    known: dict[int, Optional[tuple[Program, Step]]] = {}
    alive = programs()
    for k in range(2, 2 + 3 * count, 3):
        address, begin, end = log[k : k + 3]
        if address not in known:
            known[address] = next(((p, s) for p in alive if (s := p.step_at(address)) is not None), None)
        found = known[address]
        if found is None:
            trace.missed += 1
        else:
            trace.events.append(Event(*found, begin, end, False))
    _mark_inner(trace.events)


def _mark_inner(events: list[Event]) -> None:
    """Mark what began and ended inside a `cond` or `while`, which is noted after what it ran."""
    around: list[Event] = []
    for i in reversed(range(len(events))):
        event = events[i]
        while around and around[-1].begin > event.begin:
            around.pop()
        if around and event.end <= around[-1].end:
            events[i] = event._replace(inner=True)
        if event.step.kind in ("cond", "while"):
            around.append(event)
