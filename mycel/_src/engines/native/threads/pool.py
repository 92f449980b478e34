"""The process's thread pool: its functions, and its handling of forks.

A helper sleeps or spins in code of the pool, which therefore stays linked until the process ends.
Who forks ends the helpers that have no work first, so a process that forks has no threads that
nobody started; parent and child each make new ones when they share work.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress

from mycel._src.engines.native.llvm import jit
from mycel._src.engines.native.threads.pool_ir import MOST_THREADS, POOL_SYMBOLS, pool_text
from mycel._src.foundation.system import locks
from mycel._src.foundation.system.cpu_cores import usable_cores

__all__ = ["Pool", "default_threads", "pool", "thread_limit"]


class Pool:
    """The linked pool: the addresses of its functions by name."""

    def __init__(self) -> None:
        # The C library loads it when a thread ends early, and aborts where memory is short by then.
        with suppress(OSError):  # where there is none under this name, it is not needed
            self._unwinding = ctypes.CDLL("libgcc_s.so.1")
        machine = jit.machine()
        (code,) = jit.compile_objects([pool_text(machine.host.triple)])
        self.address = dict(zip(POOL_SYMBOLS, machine.link(code, POOL_SYMBOLS, {})))
        # Never freed, not even while the interpreter ends: helpers run it.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(machine))
        begin = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64)(self.address["pool_begin"])
        if begin(min(default_threads(), thread_limit())):
            raise OSError("the system has no key left for data of threads (pthread_key_create)")
        self._start = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(self.address["pool_start"])
        self._rest = ctypes.CFUNCTYPE(None)(self.address["pool_rest"])
        self._forked = ctypes.CFUNCTYPE(None)(self.address["pool_forked"])
        if os.environ.get("OMP_WAIT_POLICY", "").strip().lower() == "passive":
            self.spin(0, 0)

    def spin(self, helper: int, caller: int) -> None:
        """Let helpers spin so many nanoseconds for work, and callers for the end of it."""
        ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(self.address["pool_spin"])(helper, caller)

    def start(self, count: int) -> int:
        """Start the helpers of a team of `count`, and return how many threads it has."""
        return int(self._start(count))

    def rest(self) -> None:
        """End the helpers that have no work; later work makes new ones."""
        self._rest()

    def forget(self) -> None:
        """Forget all teams, whose threads a forked child has not."""
        self._forked()


def thread_limit() -> int:
    """Return the most threads that a team may have, which OMP_THREAD_LIMIT lowers.

    >>> thread_limit() >= 1
    True
    """
    asked = os.environ.get("OMP_THREAD_LIMIT", "").strip()
    return min(int(asked), MOST_THREADS) if asked.isdigit() and int(asked) else MOST_THREADS


def default_threads() -> int:
    """Return the number of threads used where none is set.

    It is the first number in OMP_NUM_THREADS, or that of usable cores.

    >>> default_threads() >= 1
    True
    """
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if asked.isdigit() and int(asked):
        return int(asked)
    return usable_cores()


_pool: list[Pool] = []
_lock = locks.lock()


def _before_fork() -> None:
    for made in _pool:
        made.rest()


@locks.in_child
def _in_child() -> None:
    for made in _pool:
        made.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)


def pool() -> Pool:
    """Return the process's pool, which is linked on first use."""
    if not _pool:
        with _lock:
            if not _pool:
                _pool.append(Pool())
    return _pool[0]
