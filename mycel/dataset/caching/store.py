"""Storage of a cache server: sessions, the caches in them, and the bytes of their rows.

The rows of a session lie one after the other in segments of memory without names, which clients
read themselves. Where a session's limit is reached, rows go to a file without a name in the spill
folder, or are not kept. A row once kept never moves or changes.

Invariants: `places` has a row only when all its bytes are there; when the process ends, however it
does, the system takes back segments and files.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from typing import Any

# A place of a row: the number of the segment or file, where in it, and how many bytes.
Place = tuple[int, int, int]
_SEGMENT = 64 << 20


class NoRoom(Exception):
    """There is no memory or no disk for rows."""


class Cache:
    """The places of the rows of one pipeline, by their numbers; `count` is how many there are."""

    def __init__(self) -> None:
        self.places: dict[int, Place] = {}
        self.count: int | None = None
        self.in_memory = self.on_disk = self.bytes = 0


class Session:
    """The caches of one session, which share its memory.

    `limit` is how many bytes of memory it may have (0: any), `folder` where it spills rows to
    (None: nowhere).
    """

    def __init__(self) -> None:
        self.limit = 0
        self.folder: str | None = None
        self.caches: dict[str, Cache] = {}
        self.files: list[int] = []
        self._ends: list[int] = []
        self._memory: int | None = None
        self._disk: int | None = None
        self.used = self.spilled = 0

    def _opened(self, spills: bool, size: int) -> int:
        number = self._disk if spills else self._memory
        if number is not None and (spills or self._ends[number] + size <= max(_SEGMENT, size)):
            return number
        if spills:
            descriptor = _unnamed(str(self.folder))
            self._disk = len(self.files)
        else:
            # Memory that nothing is written to yet costs nothing.
            descriptor = os.memfd_create("mycel-dataset-cache", os.MFD_CLOEXEC)
            self._memory = len(self.files)
        self.files.append(descriptor)
        self._ends.append(0)
        return len(self.files) - 1

    def keep(self, cache: Cache, row: int, content: memoryview) -> bool:
        """Keep a row, unless it is there; return False where there is no room for it."""
        if row in cache.places:
            return True
        size = len(content)
        spills = 0 < self.limit < self.used + size
        if spills and self.folder is None:
            return False
        try:
            number = self._opened(spills, size)
            start, at = self._ends[number], 0
            while at < size:
                at += os.pwrite(self.files[number], content[at:], start + at)
        except (OSError, MemoryError) as error:
            what = f"the disk of {self.folder}" if spills else "memory"
            raise NoRoom(f"no room in {what} for a row of {size} bytes: {error}") from error
        self._ends[number] = start + size
        cache.places[row] = (number, start, size)
        cache.bytes += size
        if spills:
            cache.on_disk += 1
            self.spilled += size
        else:
            cache.in_memory += 1
            self.used += size
        return True

    def close(self) -> None:
        """Give back memory and files."""
        for descriptor in self.files:
            os.close(descriptor)
        self.files, self._ends, self.caches = [], [], {}
        self._memory = self._disk = None

    def figures(self) -> dict[str, int]:
        """Return how many rows are in memory and on disk, and their mean size."""
        caches = list(self.caches.values())
        rows = sum(len(cache.places) for cache in caches)
        size = sum(cache.bytes for cache in caches)
        return {
            "num_mem_cached": sum(cache.in_memory for cache in caches),
            "num_disk_cached": sum(cache.on_disk for cache in caches),
            "avg_cache_sz": size // rows if rows else 0,
        }


def _unnamed(folder: str) -> int:
    """Return a new file that has no name, and so goes with the process."""
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError:
        # Not all file systems have files without names.
        descriptor, name = tempfile.mkstemp(prefix="mycel-dataset-cache-", dir=folder)
        os.unlink(name)
        return descriptor


class Store:
    """All sessions of a server; `folder` is where they may spill rows to."""

    def __init__(self, folder: str | None = None) -> None:
        self.folder = folder
        self.sessions: dict[int, Session] = {}

    def generate(self) -> int:
        """Make a session and return its number."""
        while (number := secrets.randbelow(2**31 - 1) + 1) in self.sessions:
            pass
        self.sessions[number] = Session()
        return number

    def session(self, number: Any) -> Session:
        """Return a session; KeyError, with the numbers of those there are, for others."""
        if number not in self.sessions:
            known = ", ".join(map(str, sorted(self.sessions))) or "none"
            raise KeyError(f"there is no session {number}; the sessions are: {known}")
        return self.sessions[number]

    def destroy(self, number: Any) -> None:
        """End a session and give back what it holds."""
        self.session(number).close()
        del self.sessions[number]

    def close(self) -> None:
        """End all sessions."""
        for number in list(self.sessions):
            self.destroy(number)
