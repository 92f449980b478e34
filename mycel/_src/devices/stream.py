"""Streams of work and events in them, as programs for accelerators use them.

The CPU computes an operation when it is called, in the order of the program, and completes it
before it returns. So a stream is only a name for a part of the program, and everything that it
waits for has happened already. An event is a moment; the time between two events is that of the
work in between.
"""

from __future__ import annotations

import itertools
import threading
import time
from typing import Any

from mycel._src.engines.select import engine
from mycel._src.foundation import arguments
from mycel._src.foundation.log import logger

__all__ = [
    "Event",
    "Stream",
    "StreamCtx",
    "communication_stream",
    "current_stream",
    "default_stream",
    "set_cur_stream",
    "set_kernel_launch_capture",
    "set_kernel_launch_group",
]

_numbers = itertools.count()


class Stream:
    """A sequence of operations; those of all streams run in the order in which they are called.

    `priority` has no effect. Raises TypeError unless it is an int.

    >>> import mycel as ms
    >>> s = ms.runtime.Stream()
    >>> with ms.runtime.StreamCtx(s):
    ...     y = ms.Tensor(2.0) * 3
    >>> s.query(), float(y)
    (True, 6.0)
    """

    def __init__(self, priority: int = 0, **kwargs: Any) -> None:
        arguments.integer("Stream", "priority", priority, numpy=False)
        if kwargs:
            raise TypeError(f"Stream: there is no option {sorted(kwargs)[0]!r}")
        self.priority = priority
        self._number = next(_numbers)

    device_name = "CPU"
    device_id = 0

    @property
    def id(self) -> int:
        """The number of the stream."""
        return self._number

    def stream_id(self) -> int:
        """Return the number of the stream."""
        return self._number

    def query(self) -> bool:
        """Return True: all work in the stream is complete."""
        return True

    def synchronize(self) -> None:
        """Wait for the work in the stream, which is complete unless the XLA engine does it."""
        engine().synchronize()

    def record_event(self, event: Event | None = None) -> Event:
        """Record `event`, or a new event, and return it.

        Raises TypeError for anything but an event.
        """
        event = Event() if event is None else arguments.instance("record_event", "event", event, Event)
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let later work wait for an event, which has happened.

        Raises TypeError for anything but an event.
        """
        arguments.instance("wait_event", "event", event, Event)

    def wait_stream(self, stream: Stream) -> None:
        """Let later work wait for that of another stream, which is complete.

        Raises TypeError for anything but a stream.
        """
        arguments.instance("wait_stream", "stream", stream, Stream)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other._number == self._number

    def __hash__(self) -> int:
        return hash(self._number)

    def __repr__(self) -> str:
        return f"Stream(device_name=CPU, device_id:0, stream id:{self._number})"


class Event:
    """A moment between operations.

    With `enable_timing` it keeps the time; `blocking` has no effect, as there is nothing to wait
    for. Raises TypeError for anything but True and False.

    >>> import mycel as ms
    >>> start, end = ms.runtime.Event(enable_timing=True), ms.runtime.Event(enable_timing=True)
    >>> start.record()
    >>> y = ms.ops.matmul(ms.ops.ones((64, 64)), ms.ops.ones((64, 64)))
    >>> end.record()
    >>> start.elapsed_time(end) > 0
    True
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False) -> None:
        for name, value in (("enable_timing", enable_timing), ("blocking", blocking)):
            arguments.flag("Event", name, value)
        self.enable_timing, self.blocking = enable_timing, blocking
        self._time: int | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Set the event to the present moment, also if it was recorded before.

        Raises TypeError for a `stream` that is not a stream.
        """
        if stream is not None:
            arguments.instance("record", "stream", stream, Stream)
        self._time = time.perf_counter_ns()

    def wait(self, stream: Stream | None = None) -> None:
        """Let later work wait for the event, which has happened.

        Raises TypeError for a `stream` that is not a stream.
        """
        if stream is not None:
            arguments.instance("wait", "stream", stream, Stream)

    def synchronize(self) -> None:
        """Wait for the event, which has happened."""

    def query(self) -> bool:
        """Return True: all work before the event is complete."""
        return True

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds from this event to another.

        Raises TypeError for anything but an event, RuntimeError if one was not recorded or keeps no
        time.
        """
        arguments.instance("elapsed_time", "end_event", end_event, Event)
        for event in (self, end_event):
            if not event.enable_timing:
                raise RuntimeError("elapsed_time: an event keeps no time; make both with enable_timing=True")
        if self._time is None or end_event._time is None:
            raise RuntimeError("elapsed_time: an event was not recorded; call record() of both")
        return (end_event._time - self._time) / 1e6


_default, _communication = Stream(), Stream()


class _Local(threading.local):
    stream = _default


_local = _Local()


def current_stream() -> Stream:
    """Return the stream of this thread's work.

    >>> current_stream() == default_stream()
    True
    """
    return _local.stream


def default_stream() -> Stream:
    """Return the stream of work for which no other was chosen."""
    return _default


def communication_stream() -> Stream:
    """Return the stream of communication between processes."""
    return _communication


def set_cur_stream(stream: Stream | None) -> None:
    """Choose this thread's stream; None has no effect.

    Raises TypeError for anything but a stream.
    """
    if stream is not None:
        _local.stream = arguments.instance("set_cur_stream", "stream", stream, Stream)


class StreamCtx:
    """A context that chooses this thread's stream for a block; None has no effect.

    Raises TypeError for anything but a stream.
    """

    def __init__(self, ctx_stream: Stream | None) -> None:
        if ctx_stream is not None:
            arguments.instance("StreamCtx", "ctx_stream", ctx_stream, Stream)
        self.stream = ctx_stream
        self._before: list[Stream] = []

    def __enter__(self) -> None:
        self._before.append(_local.stream)
        set_cur_stream(self.stream)

    def __exit__(self, *error: Any) -> None:
        _local.stream = self._before.pop()


_told: set[str] = set()


def _without_effect(name: str, why: str) -> None:
    if name not in _told:
        _told.add(name)
        logger.info("%s has no effect: %s", name, why)


def set_kernel_launch_group(thread_num: int = 2, kernel_group_num: int = 8) -> None:
    """Ask for several threads that dispatch operations to a device.

    It has no effect: a compiled program runs in one native loop. Raises TypeError and ValueError
    for anything but positive integers.

    >>> set_kernel_launch_group(thread_num=2, kernel_group_num=8)
    """
    for name, value in (("thread_num", thread_num), ("kernel_group_num", kernel_group_num)):
        arguments.integer("set_kernel_launch_group", name, value, 1, numpy=False)
    if kernel_group_num % thread_num:
        raise ValueError(
            f"set_kernel_launch_group: {kernel_group_num} groups cannot be shared evenly by {thread_num} threads"
        )
    _without_effect(
        "set_kernel_launch_group", "operations are not handed to a device; a compiled program runs in one native loop"
    )


def set_kernel_launch_capture(enable_capture_graph: bool, op_capture_skip: list[str] | None = None) -> None:
    """Ask to record the launches of operations and repeat them.

    It has no effect: a compiled program is such a table of steps already. Raises TypeError for
    arguments of other types.

    >>> set_kernel_launch_capture(True, ["matmul"])
    """
    arguments.flag("set_kernel_launch_capture", "enable_capture_graph", enable_capture_graph)
    if op_capture_skip is not None and (
        not isinstance(op_capture_skip, list) or not all(isinstance(name, str) for name in op_capture_skip)
    ):
        raise TypeError(f"set_kernel_launch_capture: op_capture_skip must be a list of names, not {op_capture_skip!r}")
    _without_effect("set_kernel_launch_capture", "a compiled program is a table of steps that is run again as it is")
