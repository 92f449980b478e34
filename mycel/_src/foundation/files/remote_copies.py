"""The local cache of remote files: its size limit, and eviction safe for several processes.

Each copy is a folder named by a key, with the file and those beside it. A process notes the keys
that it uses in a file of its own, which it keeps locked (`flock`) as long as it lives; the lock of
a process that has ended is gone. Where a new copy would make the folder larger than `limit`, copies
that no living process uses are removed, those longest unused first. Notes and removals take turns,
so no copy goes between the look at it and its use. Where the system has no such locks, nothing is
removed.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator

from mycel._src.foundation.files.atomic_files import HAS_LOCKS, holds
from mycel._src.foundation.settings.config import memory_size
from mycel._src.foundation.system import locks

_KEY = re.compile(r"[0-9a-f]{32}")
_USERS, _TURN = ".users", ".turn"
_DEFAULT = 100 << 30


class NoRoom(OSError):
    """There is no room for another copy."""


def limit() -> int:
    """Return how many bytes copies may take: MYCEL_COPIES, or 100 GB.

    Raises ValueError where MYCEL_COPIES is not a size.
    """
    chosen = os.environ.get("MYCEL_COPIES", "").strip()
    try:
        return memory_size(chosen) if chosen else _DEFAULT
    except ValueError as error:
        raise ValueError(f"MYCEL_COPIES: {error}") from None


class _Notes:
    """What this process uses: its file in each folder of copies, and the keys in it."""

    def __init__(self) -> None:
        self.files: dict[str, int] = {}
        self.keys: set[tuple[str, str]] = set()
        self.lock = locks.lock()


_notes = _Notes()


@contextlib.contextmanager
def _turn(folder: str) -> Iterator[None]:
    handle = os.open(os.path.join(folder, _TURN), os.O_CREAT | os.O_RDWR | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        holds(handle, True)
        yield
    finally:
        os.close(handle)


def use(folder: str, key: str) -> str:
    """Note that this process uses a copy, and return its folder, which exists."""
    place = os.path.join(folder, key)
    with _notes.lock:
        if (folder, key) in _notes.keys and os.path.isdir(place):
            return place
        os.makedirs(os.path.join(folder, _USERS), mode=0o700, exist_ok=True)
        with _turn(folder):
            if folder not in _notes.files:
                name = os.path.join(folder, _USERS, f"{os.getpid()}-{secrets.token_hex(6)}")
                flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
                _notes.files[folder] = os.open(name, flags, 0o600)
                holds(_notes.files[folder], True)
            os.write(_notes.files[folder], f"{key}\n".encode())
            os.makedirs(place, mode=0o700, exist_ok=True)
        _notes.keys.add((folder, key))
    return place


def make_room(folder: str, size: int, path: str) -> None:
    """Remove copies that nobody uses until there is room for one more.

    * `folder`, `size`: the folder of copies, and how many bytes the new one has.
    * `path`: what is to be copied, for messages.

    Raises NoRoom where there is none.
    """
    most = limit()
    with _turn(folder):
        found = {entry.name: _facts(entry.path) for entry in os.scandir(folder) if _KEY.fullmatch(entry.name)}
        total = sum(taken for taken, _ in found.values())
        if total + size <= most:
            return
        used = _used(folder)
        for key in sorted(found, key=lambda key: found[key][1]):
            if total + size <= most:
                return
            if used is not None and key not in used:
                shutil.rmtree(os.path.join(folder, key), ignore_errors=True)
                total -= found[key][0] - _facts(os.path.join(folder, key))[0]
        if total + size <= most:
            return
    raise NoRoom(
        f"there is no room for a copy of {path!r}: it has {size >> 20} MiB, copies that are in use have "
        f"{total >> 20}, and {most >> 20} MiB are allowed; MYCEL_COPIES sets how much"
    )


def _facts(place: str) -> tuple[int, float]:
    """Return how many bytes a copy takes on the disk, and when it was used last."""
    taken, last = 0, 0.0
    with contextlib.suppress(FileNotFoundError):
        for entry in os.scandir(place):
            with contextlib.suppress(FileNotFoundError):
                facts = entry.stat(follow_symlinks=False)
                taken += max(facts.st_size, getattr(facts, "st_blocks", 0) * 512)
                last = max(last, facts.st_mtime)
    return taken, min(last, time.time())


def _used(folder: str) -> set[str] | None:
    """Return the keys that living processes use, or None where that cannot be known."""
    if not HAS_LOCKS:
        return None
    found: set[str] = set()
    for entry in os.scandir(os.path.join(folder, _USERS)):
        with open(entry.path, "rb") as file:
            if not holds(file.fileno(), False):
                found.update(file.read().decode("ascii", "replace").split())
                continue
        # Its process has ended.
        os.unlink(entry.path)
    return found
