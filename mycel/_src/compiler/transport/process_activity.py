"""Process activity from /proc: how often processes were scheduled, and the CPU time they used."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress

__all__ = ["activity", "statistics"]


def statistics() -> Iterator[list[str]]:
    """Give the fields of /proc/PID/stat of every process: the number first, without the name."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError), open(f"/proc/{entry}/stat") as file:
                yield [entry, *file.read().rpartition(") ")[2].split()]


def activity(process: int, counts: Callable[[list[str]], bool]) -> tuple[int, float] | None:
    """Return how often a process's first thread was scheduled, and the seconds of a processor that
    all processes have used whose `statistics` the function `counts` takes.

    None where the process has gone, or the system does not tell.
    """
    try:
        with open(f"/proc/{process}/task/{process}/status") as file:
            switches = sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
        ticks = sum(int(f[12]) + int(f[13]) for f in statistics() if counts(f))
    except (OSError, IndexError, ValueError):
        return None
    return switches, ticks / os.sysconf("SC_CLK_TCK")
