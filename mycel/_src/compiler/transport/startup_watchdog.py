"""Startup watchdog: detects ranks that end or hang before `init`, where no launcher watches them.

A process that the environment calls a rank has a *board*, a file in memory (memfd) that other
processes of its user can read. From the import of the library on a thread shows there where the
main thread is, and whether it has come to `init`. A rank in `init` waits for the others of this
machine before it meets them (`await_others`): MPI and stores can only wait. It finds them among the
system's processes by their environments, so also those that have not imported the library. It looks
for them from its own import on, as one may have ended before this rank comes to `init`.

A rank that has not come *stands still* where none of its processes has run at all for `standstill`
seconds, or it has *ended*. Then the waiting ranks say so and end. One that runs is waited for; who
does not come in the time for meeting is left to the meeting itself. What cannot be seen, such as
processes of another user or machine, is taken for one that has come.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from typing import Any

from mycel._src.compiler.transport import rank_status
from mycel._src.compiler.transport.process_activity import activity
from mycel._src.compiler.transport.rank_environment import World, world
from mycel._src.foundation.system import locks

__all__ = ["SIZE", "await_others", "board", "show", "stop", "twins", "write"]

SIZE = 8192  # the bytes of a board
_NAME = "mycel-board"
_SHOWN = "MYCEL_SHOWN"  # the children of a rank are no ranks themselves
_LOOK = 0.25
_lock = locks.lock()
_board: int | None = None
_is_here = False
_seen: set[int] = set()  # the ranks that this one has found so far
_twins: set[int] = set()  # the other processes with its number
_SHARE = 0.02  # of a core, at most, to look for others before `init`
Identity = tuple[Any, ...]


def board() -> int:
    """Return the descriptor of this process's board, the file in memory that others read."""
    global _board
    if _board is None:
        _board = os.memfd_create(_NAME)
        os.ftruncate(_board, SIZE)
    return _board


def show() -> None:
    """Begin to publish this process's status, if it is a rank that no launcher of ours watches."""
    if _SHOWN in os.environ or not hasattr(os, "memfd_create"):
        return
    try:
        found = world()
    except RuntimeError:
        return  # `init` says what is wrong
    if found.rank is None or found.size == 1 or found.scheduler:
        return
    os.environ[_SHOWN] = "1"
    if rank_status.PIPE not in os.environ and not rank_status.launched():
        board()
        identity, after = _identity(found, os.getpid()), 0.0

        def look(facts: dict[str, Any]) -> None:
            nonlocal after
            write(facts)
            began = time.monotonic()
            if not _is_here and began >= after:
                _note(_ranks(found.size, identity), found.rank or 0)
                after = began + max(rank_status.BEAT, (time.monotonic() - began) / _SHARE)

        look({"where": "", "waits": None, "got": 0, "among": ()})
        rank_status.also(look)


def _note(found: dict[int, list[int]], own: int) -> None:
    """Remember which ranks there are, and other processes with the number of this one."""
    _seen.update(found)
    _twins.update(p for p in found.get(own, ()) if p not in _twins and _is_rank_apart(p))


def twins() -> list[int]:
    """Return the processes of this machine that had the number of this rank, too."""
    return sorted(_twins)


def write(facts: dict[str, Any]) -> None:
    """Write this process's status to its board, with the present time."""
    with _lock:  # what is written last was also read last
        text = json.dumps({**facts, "now": time.monotonic(), "arrived": _is_here}).encode()
        os.pwrite(board(), text.ljust(SIZE, b"\n"), 0)


def stop(text: str, processes: list[int]) -> None:
    """Print the reason, and end other processes and this one."""
    print(f"mycel: {text}", file=sys.stderr, flush=True)
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)
    os._exit(1)


def await_others(own: World, standstill: float, longest: float) -> None:
    """Wait until the other ranks of this machine have come to `init`, for `longest` seconds at
    most; end all if one of them has ended, or stands still for `standstill` seconds.
    """
    global _is_here
    _is_here = True
    if own.rank is None or not standstill or not hasattr(os, "memfd_create"):
        return
    if _board is None:
        rank_status.also(write)
    looking = _Looking(own, own.rank, standstill)
    # Now, as MPI may keep the thread that does it from running.
    write({"where": looking.place, "waits": None, "got": 0, "among": ()})
    began = time.monotonic()
    while time.monotonic() - began < longest:
        missing = looking.missing()
        if missing is None:
            return
        with rank_status.waiting("communication.init", missing):
            time.sleep(_LOOK)


class _Looking:
    """What one rank has seen of the others that have not come."""

    def __init__(self, own: World, rank: int, standstill: float) -> None:
        self.own, self.rank, self.standstill = own, rank, standstill
        self.place = rank_status.place_of(sys._getframe(2))
        self.began = time.monotonic()
        self.identity = _identity(own, os.getpid())
        self.here: set[int] = set()
        self.known = _seen - {rank}
        self.gone: dict[int, float] = {}
        self.still: dict[int, tuple[float, int, float]] = {}

    def missing(self) -> int | None:
        """Return a rank that has not come, None where all have; end all if one will not come."""
        found = _ranks(self.own.size, self.identity)
        _note(found, self.rank)
        found.pop(self.rank, None)
        self.known.update(found)
        self.here.update(k for k, processes in found.items() if any(_has_come(p) for p in processes))
        left, now = sorted(self.known - self.here), time.monotonic()
        for rank in left:
            processes = found.get(rank, [])
            if processes:
                self.gone.pop(rank, None)
                if self._seconds_still(processes) >= self.standstill and self._is_my_turn:
                    where = next(filter(None, [_told(p).get("where") for p in processes]), "no known line")
                    self._stop(f"rank {rank} stands still at {where}", processes)
            elif now - self.gone.setdefault(rank, now) >= 1.0 + 0.2 * self.rank:
                self._stop(f"rank {rank} has ended", [])
        if left:
            return left[0]
        # Those that mpirun starts all begin at once; of others nobody knows who is to come.
        local = self.own.local[1] if self.own.kind == "mpi" and self.own.local is not None else 0
        if len(self.known) + 1 >= local:
            return None
        if now - self.began >= self.standstill + 0.2 * self.rank:
            absent = [k for k in range(self.own.size) if k != self.rank and k not in self.known]
            self._stop(f"rank {' or '.join(map(str, absent))} has ended", [])
        return next(k for k in range(self.own.size) if k != self.rank and k not in self.known)

    @property
    def _is_my_turn(self) -> bool:
        """Whether this rank may speak: one of those that wait speaks first."""
        return time.monotonic() - self.began >= self.standstill + 0.2 * self.rank

    def _stop(self, what: str, processes: list[int]) -> None:
        stop(f"{what}, while rank {self.rank} waits for it in communication.init at {self.place}", processes)

    def _seconds_still(self, processes: list[int]) -> float:
        """Return for how many seconds no process of a rank has run, as far as this one has seen."""
        now, least = time.monotonic(), float("inf")
        for process in processes:
            found = activity(process, lambda f, own=str(process): own in (f[0], f[2]))  # type: ignore[misc]
            before = self.still.get(process)
            if found is None:
                return 0.0
            if before is None or before[1] != found[0] or found[1] - before[2] > 0.05 * (now - before[0]) + 0.1:
                self.still[process] = (now, *found)
                least = 0.0
            else:
                least = min(least, now - before[0])
        return least


def _environment(process: int) -> dict[str, str]:
    """Return the environment with which a process began; empty where it cannot be read."""
    try:
        with open(f"/proc/{process}/environ", "rb") as file:
            lines = file.read().decode(errors="replace").split("\0")
    except OSError:
        return {}
    return dict(line.split("=", 1) for line in lines if "=" in line)


def _of(process: int) -> World | None:
    """Return which rank a process is by its environment, None if it is none."""
    variables = _environment(process)
    if not variables:
        return None
    try:
        found = world(variables)
    except RuntimeError:
        return None
    return None if found.rank is None or found.size == 1 or found.scheduler else found


def _identity(found: World, process: int) -> Identity:
    """Return what the ranks of one program have in common: where they meet, or who started them."""
    job = (found.size, found.kind)
    if found.kind != "mpi":
        return (*job, found.host, found.port)
    while True:
        process = _parent(process)
        above = _of(process) if process else None
        if above is None or above.rank != found.rank:
            return (*job, process)


def _parent(process: int) -> int:
    try:
        with open(f"/proc/{process}/stat") as file:
            return int(file.read().rpartition(") ")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def _ranks(size: int, identity: Identity) -> dict[int, list[int]]:
    """Return the processes of each rank of a program that are on this machine."""
    result: dict[int, list[int]] = {}
    for process in sorted(int(e) for e in os.listdir("/proc") if e.isdigit()):
        found = _of(process)
        if found is not None and found.rank is not None and found.size == size:
            if _identity(found, process) == identity:
                result.setdefault(found.rank, []).append(process)
    return result


def _board_of(process: int) -> str:
    """Return the path of a process's board; "" where it has none, or has ended.

    Raises PermissionError where it cannot be seen.
    """
    folder = f"/proc/{process}/fd"
    with suppress(FileNotFoundError, ProcessLookupError):
        for entry in os.listdir(folder):
            with suppress(FileNotFoundError, ProcessLookupError):
                if os.readlink(f"{folder}/{entry}").startswith(f"/memfd:{_NAME}"):
                    return f"{folder}/{entry}"
    return ""


def _told(process: int) -> dict[str, Any]:
    """Return what a process shows on its board; nothing where it has none, or has ended.

    Raises PermissionError where it cannot be seen.
    """
    path = _board_of(process)
    with suppress(FileNotFoundError, ProcessLookupError):
        with open(path, "rb") as file:
            text = file.read().rstrip(b"\n\0")
        with suppress(ValueError):  # it is being written
            found: dict[str, Any] = json.loads(text)
            return found
    return {}


def _is_rank_apart(process: int) -> bool:
    """Return whether a process has a board of its own: a forked child has that of its rank."""
    try:
        path = _board_of(process)
        return bool(path) and os.stat(path).st_ino != os.fstat(board()).st_ino
    except (PermissionError, FileNotFoundError, ProcessLookupError):
        return False


def _has_come(process: int) -> bool:
    try:
        return bool(_told(process).get("arrived"))
    except PermissionError:
        return True
