"""The processes of ranks as the system sees them: whether they run, and how they are ended.

A launcher is two processes, so that nobody is left behind when one of them is killed. The one that
the user has started passes signals on, and waits. The other one, in a session of its own, starts
and ends the ranks. Where the first ends, the second ends the ranks; where the second is killed, the
system kills the ranks, and all that these had started become children of the first, which ends
them. This takes a system with subreapers (Linux).
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from mycel._src.compiler.transport.process_activity import activity as of_process
from mycel._src.compiler.transport.process_activity import statistics
from mycel._src.foundation.system import subprocesses

__all__ = ["activity", "adopt", "end_all", "guarded"]

_PATIENCE = 2.0


def activity(session: int) -> tuple[int, float] | None:
    """Return how active a session's first process is, with what all processes of it have used."""
    return of_process(session, lambda f: f[4] == str(session))


def _signal_group(leader: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # nobody of it is left
        os.killpg(leader, number)


def _adopted() -> list[int]:
    """Return the children of this process, with those that it has taken over."""
    try:
        return [int(f[0]) for f in statistics() if f[2] == str(os.getpid()) and f[1] != "Z"]
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
    _end_adopted()


def _end_adopted() -> None:
    """End all children of this process, those that it has taken over among them."""
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


def adopt() -> None:
    """Have processes whose parents end become children of this one, where the system can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER


_FORWARDED = (signal.SIGINT, signal.SIGTERM, *((signal.SIGHUP,) if hasattr(signal, "SIGHUP") else ()))


def guarded(name: str, work: Callable[[], int]) -> int:
    """Run `work` in a process of its own, and return the status that it returns.

    An interrupt, SIGTERM and SIGHUP are passed on to that process. `name` is that of the command,
    for the message where that process is killed.
    """
    adopt()
    sys.stdout.flush()
    sys.stderr.flush()
    asked: list[int] = []
    child = 0

    def forward(number: int, _: Any) -> None:
        asked.append(number)
        if child:
            with suppress(ProcessLookupError):
                os.kill(child, number)

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    own = os.getpid()
    child = subprocesses.fork()
    if child == 0:
        for number, handler in before.items():
            signal.signal(number, handler)
        _run_apart(work, own)
    for number in asked[:]:  # which came before there was a child
        os.kill(child, number)
    try:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        _end_adopted()
        if status < 0:
            print(f"{name}: its own process was ended by signal {-status}, and all ranks with it", file=sys.stderr)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return status if status >= 0 else 128 - status


def _run_apart(work: Callable[[], int], parent: int) -> None:
    """Run `work` in a forked child, which ends with its parent, and never return."""
    status = 1
    try:
        os.setsid()
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
        if os.getppid() == parent:
            status = work()
        sys.stdout.flush()
        sys.stderr.flush()
    except KeyboardInterrupt:
        status = 130
    except BrokenPipeError:
        status = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)
