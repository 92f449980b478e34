"""Limits the arenas that glibc's `malloc` keeps for threads.

The C library of most Linux systems (glibc) gives threads heaps of their own, up to eight for each
processor. What a thread frees stays in its heap. Threads of pipelines come and go and take turns at
the heaps, so over hours each heap grows to what the hungriest thread ever had. They gain nothing by
it: they allocate under Python's lock. With two heaps for all of them memory stays what it was after
the first minute. Threads of ranks that carry messages are such threads, too, and each heap takes 64
MiB of what `ulimit -v` leaves.
"""

from __future__ import annotations

import ctypes
import os
import sys

__all__ = ["share_heaps"]

_MOST = 2
# M_ARENA_MAX of malloc.h.
_ARENA_MAX = -8


_answer: list[bool] = []


def share_heaps() -> bool:
    """Let all threads of this process share two heaps from now on; return whether it was asked for.

    Nothing changes where the environment says how many heaps there are (`MALLOC_ARENA_MAX`, or
    `glibc.malloc.arena_max` in `GLIBC_TUNABLES`), nor with other C libraries. Heaps that there are
    stay, and a C library that has more than eight already makes more. The first call alone does
    anything: what a program sets later stays.
    """
    if not _answer:
        _answer.append(_asked())
    return _answer[0]


def _asked() -> bool:
    told = os.environ.get("MALLOC_ARENA_MAX") or "glibc.malloc.arena_max" in os.environ.get("GLIBC_TUNABLES", "")
    if told or sys.platform != "linux":
        return False
    library = ctypes.CDLL(None)
    return hasattr(library, "gnu_get_libc_version") and bool(library.mallopt(_ARENA_MAX, _MOST))
