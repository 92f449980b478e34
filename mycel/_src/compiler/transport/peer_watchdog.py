"""Peer watchdog: ranks of one machine detect hangs and deadlocks where no launcher watches them.

Such ranks were started by `mpirun`, `srun` or a user.

Each rank has a board (`transport.startup_watchdog`), which the others open, and writes there what
`transport.rank_status` tells: whom its main thread waits for, since when, and its line. A rank that
has waited for another one for `standstill` seconds looks at that one's board and at what the system
says of it. Where its main thread has not run at all meanwhile, it and its children took less than
5 % of a core, and no bytes came to it, it stands still; and ranks may wait for each other in a
circle. Then the waiting rank says so and ends both, which who started the ranks, or the
connections, tell all others.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import Any

import numpy as np

from mycel._src.compiler.transport import rank_status, startup_watchdog
from mycel._src.compiler.transport.base import Transport
from mycel._src.compiler.transport.process_activity import activity

__all__ = ["begin"]

_SILENT = 5 * rank_status.BEAT
Facts = dict[str, Any]
Step = tuple[int, Facts, int]  # a rank, what it tells, and whom it waits for


class _Neighbours:
    """The other ranks of this machine.

    `others` has their processes and boards, by rank. After so many seconds a `standstill` is the
    end.
    """

    def __init__(self, rank: int, others: dict[int, tuple[int, int]], standstill: float) -> None:
        self.rank, self.others, self.standstill = rank, others, standstill
        self.looked = 0.0
        self.still: dict[int, tuple[float, int, float, int]] = {}

    def look(self, facts: Facts) -> None:
        """Publish this rank's status, and check the rank that it waits for."""
        now = time.monotonic()
        startup_watchdog.write(facts)
        if facts["waits"] is None or now - self.looked < 0.5:
            return
        self.looked, what = now, facts["waits"]
        # One of those that wait for a rank speaks first.
        if facts["since"] < self.standstill + 0.2 * self.rank:
            for rank in set(facts["among"] or [what[1]]) & set(self.others):
                theirs = self.told(rank)
                if theirs is not None:
                    self.seconds_still(rank, theirs)
            return
        path = self.path(self.rank, facts, [])
        if path is not None:
            told = [f"rank {k} for rank {other} in {f['waits'][0]} at {f['where']}" for k, f, other in path]
            self.end(path[0][2], f"ranks wait for each other: {'; '.join(told)}")

    def path(self, rank: int, facts: Facts, before: list[Step]) -> list[Step] | None:
        """Return a circle of ranks, of which each waits for the next, from this rank to itself.

        Ends where ranks wait, in the end, for one that stands still or has left.
        """
        for target in facts["among"] or [facts["waits"][1]]:
            theirs = self.told(target)
            if target in (rank, *[k for k, _, _ in before[1:]]):
                continue
            steps = [*before, (rank, facts, target)]
            if target == self.rank:
                # Those that are in one collective do not wait for each other.
                mine = steps[0][1]
                if not facts["among"] or facts["among"] != mine["among"]:
                    return steps
            elif theirs is None:
                continue
            elif self.waits(theirs) is None:
                self.judge(target, theirs, rank, facts)
            elif theirs["since"] >= self.standstill and not self.together(facts, theirs):
                found = self.path(target, theirs, steps)
                if found is not None:
                    return found
        return None

    def together(self, facts: Facts, theirs: Facts) -> bool:
        """Return whether two ranks are in the same collective."""
        return bool(facts["among"]) and (facts["waits"][0], list(facts["among"])) == (
            theirs["waits"][0],
            list(theirs["among"]),
        )

    def judge(self, target: int, theirs: Facts, rank: int, facts: Facts) -> None:
        """End all if `target`, for which `rank` waits, stands still or has left.

        `theirs` is what the one tells, `facts` what the other does.
        """
        if self.seconds_still(target, theirs) < self.standstill:
            return
        what = "has ended" if theirs.get("left") else f"stands still at {theirs['where'] or 'no known line'}"
        place = f"in {facts['waits'][0]} at {facts['where']}"
        self.end(target, f"rank {target} {what}, while rank {rank} waits for it {place}")

    def told(self, rank: int) -> Facts | None:
        """Return the last status of a rank of this machine; None where none can be read."""
        if rank not in self.others:
            return None
        try:
            found: Facts = json.loads(os.pread(self.others[rank][1], startup_watchdog.SIZE, 0))
        except (OSError, ValueError):
            return None
        return found

    def waits(self, facts: Facts) -> tuple[str, int] | None:
        """Return what a rank waits in, and for whom; None if it computes, or says nothing more."""
        return facts["waits"] if time.monotonic() - facts["now"] < _SILENT else None

    def seconds_still(self, rank: int, facts: Facts) -> float:
        """Return for how many seconds a rank has not run, as far as this one has seen."""
        if facts.get("left"):
            return float("inf")
        now, found = time.monotonic(), _activity(self.others[rank][0])
        if found is None:
            return 0.0
        before = self.still.get(rank)
        if before is not None:
            since, switches, used, got = before
            if switches == found[0] and found[1] - used <= 0.05 * (now - since) + 0.1 and got == facts["got"]:
                return now - since
        self.still[rank] = (now, *found, facts["got"])
        return 0.0

    def end(self, rank: int, text: str) -> None:
        """Print the reason, and end another rank and this one."""
        startup_watchdog.stop(text, [self.others[rank][0]])


def _activity(process: int) -> tuple[int, float] | None:
    """Return how active a process is, with what it and its children have used."""
    return activity(process, lambda f: str(process) in (f[0], f[2]))


def begin(way: Transport, machine: str, standstill: float) -> None:
    """Watch the ranks of this machine from now on; all ranks of `way` call it together.

    `machine` is what the ranks of one machine have in common, and `standstill` the seconds for
    which a rank may stand still, the same for all; 0 is without end.
    """
    if not standstill or not hasattr(os, "memfd_create") or way.size == 1:
        return
    mine = json.dumps([machine, os.getpid(), startup_watchdog.board()]).encode()
    found = way.all_gather_list(np.frombuffer(mine, np.uint8), range(way.size))
    others: dict[int, tuple[int, int]] = {}
    for rank, text in enumerate(found):
        place, process, file = json.loads(text.tobytes())
        if rank != way.rank and machine and place == machine:
            with suppress(OSError):  # of another user, or in another space of processes
                others[rank] = (process, os.open(f"/proc/{process}/fd/{file}", os.O_RDONLY))
    way.barrier(range(way.size))
    rank_status.also(_Neighbours(way.rank, others, standstill).look)
