"""Marks that a program sets itself; they appear in the profile that is being taken, if any."""

from __future__ import annotations

import itertools
import time
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.log import logger
from mycel.profiler import profiled

__all__ = ["add", "mstx"]

_numbers = itertools.count(1)
_open: dict[int, tuple[int, str]] = {}


def add(begin: int, end: int, name: str) -> None:
    """Add a mark from `begin` to `end`, in nanoseconds of the monotonic clock."""
    current = profiled._current
    if current is not None and current._collector is not None:
        current._collector.recording.marks.append((begin, end, name))


class mstx:
    """Marks and ranges that a program sets itself, as with MindSpore's `mstx`.

    They are noted while a profile is being taken.

    >>> number = mstx.range_start("loading")
    >>> mstx.range_end(number)
    """

    enable = False

    @staticmethod
    def mark(message: str, stream: Any = None, domain: str = "default") -> None:
        """Mark this moment."""
        now = time.monotonic_ns()
        add(now, now, _named("mark", message, stream, domain))

    @staticmethod
    def range_start(message: str, stream: Any = None, domain: str = "default") -> int:
        """Begin a range and return its number, for `range_end`.

        The number is 0 while no profile is being taken.
        """
        name = _named("range_start", message, stream, domain)
        if profiled._current is None:
            return 0
        number = next(_numbers)
        _open[number] = (time.monotonic_ns(), name)
        return number

    @staticmethod
    def range_end(range_id: int, domain: str = "default") -> None:
        """End a range."""
        arguments.instance("mstx.range_end", "range_id", range_id, int, "a number that range_start gave")
        found: tuple[int, str] | None = _open.pop(range_id, None)
        if found is not None:
            add(found[0], time.monotonic_ns(), found[1])


def _named(what: str, message: str, stream: Any, domain: str) -> str:
    if not isinstance(message, str) or not message:
        raise TypeError(f"mstx.{what}: message must be a text, not {message!r}")
    if stream is not None:
        logger.warning("mstx.%s: stream has no effect: there are no streams of an accelerator on a CPU", what)
    return message if domain == "default" else f"{domain}: {message}"
