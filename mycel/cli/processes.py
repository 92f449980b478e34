"""The processes of ranks as the system sees them: whether they run, and how they are ended."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Optional

__all__ = ["activity", "end_all"]

_PATIENCE = 2.0


def _statistics() -> Iterator[list[str]]:
    """Give the fields of /proc/PID/stat of every process: the number first, without the name."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError), open(f"/proc/{entry}/stat") as file:
                yield [entry, *file.read().rpartition(") ")[2].split()]


def activity(session: int) -> Optional[tuple[int, float]]:
    """Return how often the first thread of a session's first process was scheduled, and how many
    seconds of a processor all processes of the session have used.

    None where the process has gone, or the system does not tell.
    """
    try:
        with open(f"/proc/{session}/task/{session}/status") as file:
            switches = sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
        ticks = sum(int(f[12]) + int(f[13]) for f in _statistics() if f[4] == str(session))
    except (OSError, IndexError, ValueError):
        return None
    return switches, ticks / os.sysconf("SC_CLK_TCK")


def _signal_group(leader: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # nobody of it is left
        os.killpg(leader, number)


def _adopted() -> list[int]:
    """Return the children of this process, with those that it has taken over."""
    try:
        return [int(f[0]) for f in _statistics() if f[2] == str(os.getpid()) and f[1] != "Z"]
    except FileNotFoundError:
        return []


def end_all(ranks: Sequence[subprocess.Popen[Any]]) -> None:
    """End the ranks, each of which leads a session, and all processes that they have started."""
    for process in ranks:
        _signal_group(process.pid, signal.SIGTERM)
    limit = time.monotonic() + _PATIENCE
    while time.monotonic() < limit and any(p.poll() is None for p in ranks):
        time.sleep(0.02)
    for process in ranks:
        _signal_group(process.pid, signal.SIGKILL)
    for process in ranks:
        process.wait()
    limit = time.monotonic() + _PATIENCE
    while time.monotonic() < limit:
        for number in _adopted():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return  # there are none any more
        time.sleep(0.02)
