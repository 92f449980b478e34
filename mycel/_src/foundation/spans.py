"""Profiling spans of Python code: the time of each phase, recorded while a profile asks for it.

`timed` marks a function as a phase. A profile puts a list into `sinks`, and while it is there each
call adds a `Span` to it; otherwise a call costs one comparison more.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar, cast

__all__ = ["Span", "sinks", "span", "timed"]


class Span(NamedTuple):
    """A phase of a thread, from `begin` to `end` in nanoseconds of the monotonic clock.

    `detail` says what was worked on, such as the name of a function.
    """

    phase: str
    detail: str
    begin: int
    end: int
    thread: int


sinks: list[list[Span]] = []
Function = TypeVar("Function", bound=Callable[..., Any])


def note(phase: str, detail: str, begin: int) -> None:
    """Record a span that ends now; `begin` is in nanoseconds of the monotonic clock."""
    found = Span(phase, detail, begin, time.monotonic_ns(), threading.get_ident())
    for sink in sinks:
        sink.append(found)


def timed(phase: str, detail: Callable[..., str] | None = None) -> Callable[[Function], Function]:
    """Decorate a function so that its calls are spans of a phase.

    `detail` is called with the arguments and gives the span's detail.

    >>> @timed("rest")
    ... def twice(x):
    ...     return 2 * x
    >>> found = []
    >>> sinks.append(found)
    >>> twice(3)
    6
    >>> sinks.remove(found)
    >>> [s.phase for s in found]
    ['rest']
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not sinks:
                return function(*args, **kwargs)
            begin = time.monotonic_ns()
            try:
                return function(*args, **kwargs)
            finally:
                note(phase, "" if detail is None else detail(*args, **kwargs), begin)

        return cast(Function, call)

    return decorate


@contextmanager
def span(phase: str, detail: str = "") -> Iterator[None]:
    """Record a block as a span of a phase."""
    begin = time.monotonic_ns()
    try:
        yield
    finally:
        if sinks:
            note(phase, detail, begin)
