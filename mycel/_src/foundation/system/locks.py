"""Fork-safe locks, which are free in a forked child.

A child has only the thread that forked: a lock that another thread held at that moment would stay
locked for ever. So every lock of the library comes from here, and is released in each child. The
data that a lock guarded may then be half written: code whose lock guards more than single writes
into tables registers a function with `in_child`, which repairs the data once all locks are free.

Native libraries have locks of their own, which cannot be released from outside. `quiet` names the
locks under which they are called: the thread that forks acquires these first, so that no other
thread is inside. In the same way it lets other threads finish their imports. It waits `PATIENCE`
seconds at most, as a thread that imports may need a lock that was acquired for the fork earlier; a
child forgets a module that was half imported, and imports it anew.
"""

from __future__ import annotations

import _imp as imp
import functools
import importlib
import logging  # noqa: F401  its lock is taken for a fork too: by who registers first, last
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["condition", "in_child", "lock", "quiet", "reentrant"]

PATIENCE = 10.0
L = TypeVar("L")
_known: dict[int, weakref.ref[Any]] = {}
_quiet: list[Callable[[], Any]] = []
_taken: list[Any] = []
_tasks: list[Callable[[], None]] = []


def _registered(made: L) -> L:
    number = id(made)
    # A function of C, in which no handler of a signal runs: see `finalization.py`.
    _known[number] = weakref.ref(made, functools.partial(_known.pop, number))
    return made


def lock() -> Any:
    """Make a `threading.Lock`."""
    return _registered(threading.Lock())


def reentrant() -> Any:
    """Make a `threading.RLock`."""
    return _registered(threading.RLock())


def condition(lock: Any = None) -> threading.Condition:
    """Make a `threading.Condition`; a child has none of its waiters."""
    return _registered(threading.Condition(reentrant() if lock is None else lock))


def in_child(task: Callable[[], None]) -> Callable[[], None]:
    """Run `task` in each forked child once its locks are free."""
    _tasks.append(task)
    return task


def quiet(find: Callable[[], Any]) -> None:
    """Fork only while no other thread holds the lock that `find` returns (None: no lock yet)."""
    _quiet.append(find)


def _before() -> None:
    for find in _quiet:
        found = find()
        if found is not None and found.acquire(timeout=PATIENCE):
            _taken.append(found)

    _wait_for_imports()


def _wait_for_imports() -> None:
    """Keep other threads from starting an import until the fork is done.

    Imports that already run may need this lock to finish first.
    """
    limit = time.monotonic() + PATIENCE
    imp.acquire_lock()
    while _imported_elsewhere() and time.monotonic() < limit:
        imp.release_lock()
        time.sleep(0.0005)
        imp.acquire_lock()


def _imported_elsewhere() -> list[str]:
    """List the modules that other threads are in the middle of importing."""
    held = {name: ref() for name, ref in list(_module_locks().items())}
    return [name for name, lock in held.items() if getattr(lock, "owner", None) not in (None, threading.get_ident())]


def _module_locks() -> dict[str, Any]:
    return getattr(importlib._bootstrap, "_module_locks", {})


def _in_parent() -> None:
    imp.release_lock()
    while _taken:
        _taken.pop().release()


def _in_child() -> None:
    for name in _imported_elsewhere():
        sys.modules.pop(name, None)
        _module_locks().pop(name, None)
    # Python opens its lock of imports in a child but for who had it, which is this thread.
    imp.release_lock()
    while _taken:
        _taken.pop()._at_fork_reinit()
    for ref in list(_known.values()):
        found = ref()
        waiters = getattr(found, "_waiters", None)
        if waiters is not None:
            waiters.clear()
        elif found is not None:
            found._at_fork_reinit()
    for task in _tasks:
        task()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
