"""The ranks of one machine: started, watched, and ended together.

Each rank is a session of its own, and has a pipe to tell what it does (`transport.rank_status`).
The launch ends when all ranks have, or when one has failed:

* it ended with another status than 0, by a signal or an exception;
* it *stands still*: others have waited for it for `standstill` seconds, in which its main thread
  has not run at all (the system counts how often a thread is scheduled), its processes together
  took less than 5 % of a core, and no bytes came from other ranks. So a rank that computes, reads,
  or looks for a file now and then may take its time, and one in an endless sleep may not;
* it has ended, with status 0, and others still wait for it;
* ranks wait for each other in a circle;
* others have waited for it for `timeout` seconds, whatever it does.

Then the others get a second to say what they lack, and every process of every rank is ended, with
SIGTERM and after two seconds SIGKILL. Processes that left their session become children of this
one, a subreaper, and are ended too. If this process is killed the system kills the ranks
(`mycel.cli.processes`).

A rank that runs, and keeps others waiting, is named from `_NOTICE` seconds on, with its line.

Launchers of several machines tell each other for whom their ranks wait, and the first failure
(`mycel.cli.heartbeats`). What is said of main threads needs Linux; elsewhere only `timeout` ends a
standstill.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any

from mycel._src.compiler.transport import rank_status
from mycel._src.compiler.transport.tcp_store import TCPStore
from mycel._src.foundation.system import subprocesses
from mycel.cli.heartbeats import Heartbeats
from mycel.cli.lines import Lines, Piped, front_of, writer
from mycel.cli.processes import activity, adopt, end_all

__all__ = ["Job", "Supervisor"]

_GRACE = 2.0
_TICK = 0.1
_SILENT = 5 * rank_status.BEAT
_NOTICE = 30.0


@dataclass
class Job:
    """What is launched: `command` by `local` of `size` ranks, from number `first` on.

    `node` is the place of this machine among `nodes`, and `machine` its name for messages (empty:
    that of the system). `environment` are the variables of all ranks and `of_rank` those of one.
    `logs` gives the file of a rank's output, or is None for this process's own, in whole lines,
    with the rank in front if `prefix`; `shown` are the ranks whose files are also copied to it.
    """

    name: str
    command: list[str]
    size: int
    local: int
    first: int = 0
    node: int = 0
    nodes: int = 1
    host: str = "127.0.0.1"
    port: int = 0
    timeout: float = 600.0
    standstill: float = 8.0
    environment: dict[str, str] = field(default_factory=dict)
    of_rank: Callable[[int], dict[str, str]] = lambda _: {}
    logs: Callable[[int], str] | None = None
    shown: tuple[int, ...] = ()
    prefix: bool = True
    machine: str = ""


class _Rank:
    """One rank: its `number` and `process`, what it has told through `pipe`, and since when its
    main thread has not run. `front` stands before its lines.
    """

    def __init__(self, number: int, process: subprocess.Popen[bytes], pipe: int, front: str) -> None:
        self.number, self.process, self.pipe = number, process, pipe
        self.rest = b""
        self.where = ""
        self.said: tuple[str, int] | None = None
        self.since = self.moved = self.heard = time.monotonic()
        self.got = 0
        self.error: dict[str, Any] | None = None
        self.threads: list[dict[str, Any]] = []
        self.noticed = _NOTICE
        self.still: tuple[float, int, float] | None = None
        self.log: IO[bytes] | None = None
        self.lines = Lines(front, writer(1))

    def hear(self) -> None:
        """Read what the rank has written."""
        while True:
            try:
                data = os.read(self.pipe, 65536)
            except BlockingIOError:
                return
            if not data:
                return
            *lines, self.rest = (self.rest + data).split(b"\n")
            for line in lines:
                self._take(json.loads(line))

    def _take(self, facts: dict[str, Any]) -> None:
        if "failed" in facts:
            self.error = self.error or facts
            return
        if "thread" in facts:
            self.threads.append(facts)
            return
        now = self.heard = time.monotonic()
        self.where = facts["where"] or self.where
        self.said = None if facts["waits"] is None else (str(facts["waits"][0]), int(facts["waits"][1]))
        self.since = now - facts.get("since", 0.0)
        if facts["got"] != self.got:
            self.got, self.moved = facts["got"], now

    @property
    def waits(self) -> tuple[str, int] | None:
        """What it waits in, and for whom; None where it computes, or says nothing any more."""
        return self.said if time.monotonic() - self.heard < _SILENT else None

    @property
    def place(self) -> str:
        """Where it is, and which of its threads have failed."""
        failed = "".join(f"; its thread {t['thread']} has failed: {t['error']} at {t['where']}" for t in self.threads)
        return (self.where or "no known line") + failed

    @property
    def waited(self) -> float:
        """The seconds for which it has waited and nothing has come."""
        return time.monotonic() - max(self.since, self.moved)


@dataclass(frozen=True)
class _Failure:
    text: str
    status: int
    elsewhere: bool = False


class Supervisor:
    """Starts the ranks of a job on this machine and ends with them; `run` returns the status."""

    def __init__(self, job: Job, store: TCPStore) -> None:
        self.job, self.store = job, store
        self.ranks: dict[int, _Rank] = {}
        self.looked = 0.0
        limit = max(3.0, job.standstill - 3.0) if job.standstill else float("inf")
        own = range(job.first, job.first + job.local)
        self.others = Heartbeats(store, job.node, job.nodes, job.machine, own, self._waits_elsewhere, limit)
        # The output of several ranks; one alone has that of this process.
        self.piped = Piped() if job.logs is None and job.size > 1 else None

    def run(self) -> int:
        """Run the job and return the exit status: 0, or that of the first failure."""
        adopt()
        before = {s: signal.signal(s, _interrupted) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        failure: _Failure | None = None
        try:
            for k in range(self.job.local):
                self._start(self.job.first + k)
            if self.piped is not None:
                self.piped.begin()
            failure = self._watch()
        except KeyboardInterrupt:
            failure = _Failure("interrupted", 130)
        finally:
            for number in before:
                signal.signal(number, signal.SIG_IGN)  # it ends already
            left = [r for r in self.ranks.values() if r.process.poll() is None]
            if failure is not None:
                self._say(failure.text)
                if not failure.elsewhere:
                    self.others.tell(failure.text)
            end_all([r.process for r in self.ranks.values()])
            if self.piped is not None:
                self.piped.end()
            if failure is not None and left:
                self._say(f"ended the {'ranks' if len(left) > 1 else 'rank'} {', '.join(str(r.number) for r in left)}")
            self._copy_logs()
            for rank in self.ranks.values():
                rank.lines.end()
            self.others.close()
            for number, handler in before.items():
                signal.signal(number, handler)
        return 0 if failure is None else failure.status

    def _say(self, text: str) -> None:
        writer(2)(f"{self.job.name}: {text}\n".encode(errors="replace"))

    def _start(self, number: int) -> None:
        job = self.job
        ours, theirs = os.pipe()
        os.set_blocking(ours, False)
        variables = {
            **os.environ,
            **job.environment,
            "MS_ROLE": "MS_WORKER",
            "MS_WORKER_NUM": str(job.size),
            "MS_NODE_ID": str(number),
            "RANK_ID": str(number),
            "RANK_SIZE": str(job.size),
            "MS_LOCAL_RANK": str(number - job.first),
            "MS_LOCAL_WORKER_NUM": str(job.local),
            "MS_SCHED_HOST": job.host,
            "MS_SCHED_PORT": str(self.store.port),
            rank_status.PIPE: str(theirs),
            **job.of_rank(number),
        }
        output = None if job.logs is None else open(job.logs(number), "wb")
        try:
            process = subprocesses.start(
                job.command,
                env=variables,
                pass_fds=(theirs,),
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if self.piped is not None else output,
                stderr=subprocess.PIPE if self.piped is not None else None if output is None else subprocess.STDOUT,
            )
        finally:
            os.close(theirs)
            if output is not None:
                output.close()
        front = front_of(number) if job.prefix else ""
        self.ranks[number] = made = _Rank(number, process, ours, front)
        if self.piped is not None:
            self.piped.add(front, process)
        if job.logs is not None and number in job.shown:
            made.log = open(job.logs(number), "rb")

    def _copy_logs(self) -> None:
        for rank in self.ranks.values():
            if rank.log is not None:
                data = rank.log.read()
                if data:
                    rank.lines.add(data)

    # Watching.

    def _watch(self) -> _Failure | None:
        with selectors.DefaultSelector() as selector:
            for rank in self.ranks.values():
                selector.register(rank.pipe, selectors.EVENT_READ, rank)
            limit: float | None = None
            while True:
                for key, _ in selector.select(_TICK):
                    key.data.hear()
                    if key.data.process.poll() is not None:
                        selector.unregister(key.fileobj)
                self._copy_logs()
                statuses = [r.process.poll() for r in self.ranks.values()]
                if all(s == 0 for s in statuses):
                    return self._from(self.others.finish())
                now = time.monotonic()
                if limit is None and (any(statuses) or any(r.error for r in self.ranks.values())):
                    limit = now + _GRACE
                if limit is not None and (now >= limit or all(s is not None for s in statuses)):
                    return self._first_failure()
                if limit is None and now - self.looked >= 1.0:
                    self.looked = now
                    found = self._elsewhere() or self._standing()
                    if found is not None:
                        return found

    def _first_failure(self) -> _Failure:
        """Return the failure that no other one has caused."""
        for rank in self.ranks.values():
            rank.hear()
        failed = [r for r in self.ranks.values() if r.process.poll() or r.error]
        own = [r for r in failed if not (r.error and r.error["lost"] is not None)]
        # Of ranks that have lost each other the one that has lost a rank elsewhere knows the cause.
        outer = [r for r in failed if r.error and r.error["lost"] not in self.ranks]
        rank = (own or outer or failed)[0]
        if not own and rank.error is not None and rank.error["lost"] not in self.ranks:
            limit = time.monotonic() + _GRACE  # the launcher of the rank that was lost knows more
            while time.monotonic() < limit:
                found = self._elsewhere()
                if found is not None:
                    return found
                time.sleep(_TICK)
        if not own and rank.error is not None:
            lost = self.ranks.get(rank.error["lost"])
            if lost is not None and lost.process.poll() == 0:
                return _Failure(
                    f"rank {lost.number} has ended, with status 0, while others wait for it: {rank.error['failed']} at "
                    f"{rank.error['where']}",
                    1,
                )
        status = rank.process.poll()
        if rank.error is not None:
            where = rank.error["where"]
            text = f"has failed: {rank.error['failed']}" + (f" at {where}" if where else "")
            place = "" if rank.error["lost"] is None else self.others.has(rank.error["lost"])
            text += f"; rank {rank.error['lost']} was {place}" if place else ""
        elif status is not None and status < 0:
            text = f"was ended by {_signal_name(-status)}" + (f"; it was last at {rank.where}" if rank.where else "")
        else:
            text = f"has ended with status {status}" + (f"; it was last at {rank.where}" if rank.where else "")
        if not status:
            return _Failure(f"rank {rank.number} {text}", 1 if rank.error is None else rank.error["status"])
        return _Failure(f"rank {rank.number} {text}", 128 - status if status < 0 else status)

    def _waiting(self) -> dict[int, tuple[int, float]]:
        """Return the ranks that others wait for, with one of these and its seconds."""
        found = dict(self.others.elsewhere)
        for target, (waiter, seconds) in self._own_waiting().items():
            if target not in found or found[target][1] < seconds:
                found[target] = (waiter, seconds)
        return found

    def _own_waiting(self) -> dict[int, tuple[int, float]]:
        """Return the same of those that ranks of this machine wait for."""
        found: dict[int, tuple[int, float]] = {}
        for rank in list(self.ranks.values()):
            waits = rank.waits
            if waits is not None and rank.process.poll() is None:
                if waits[1] not in found or found[waits[1]][1] < rank.waited:
                    found[waits[1]] = (rank.number, rank.waited)
        return found

    def _standing(self) -> _Failure | None:
        for target, (waiter, seconds) in self._waiting().items():
            rank = self.ranks.get(target)
            if rank is None:
                continue
            waits = self._of_waiter(waiter, target)
            if rank.process.poll() is not None:
                if seconds >= _GRACE:
                    return _Failure(f"rank {target} has ended, with status 0{waits}", 1)
                continue
            still = self._still(rank)
            if rank.waits is not None:
                found = self._circle(rank)
                if found is not None:
                    return found
                continue
            if self.job.timeout and seconds >= self.job.timeout:
                return _Failure(
                    f"rank {target} has kept others waiting for {seconds:.0f} s, the longest that --timeout allows; it "
                    f"is at {rank.place}{waits}",
                    1,
                )
            if self.job.standstill and min(still, seconds) >= self.job.standstill:
                return _Failure(f"rank {target} stands still at {rank.place}{waits}", 1)
            if seconds >= rank.noticed:
                rank.noticed *= 2
                self._say(f"rank {target} has run for {seconds:.0f} s; it is at {rank.place}{waits}")
            elif seconds < _NOTICE:
                rank.noticed = _NOTICE
        return None

    def _of_waiter(self, waiter: int, target: int) -> str:
        rank = self.ranks.get(waiter)
        if rank is None or rank.waits is None:
            return f", while rank {waiter} waits for it"
        return f", while rank {waiter} waits for it in {rank.waits[0]} at {rank.where}"

    def _circle(self, rank: _Rank) -> _Failure | None:
        """Return the failure of ranks that have waited for each other for too long."""
        path: list[_Rank] = []
        while rank not in path:
            if rank.waits is None or rank.waited < self.job.standstill or not self.job.standstill:
                return None
            path.append(rank)
            following = self.ranks.get(rank.waits[1])
            if following is None or following.process.poll() is not None:
                return None
            rank = following
        told = [f"rank {r.number} for rank {r.waits[1]} in {r.waits[0]} at {r.where}" for r in path if r.waits]
        return _Failure(f"ranks wait for each other: {'; '.join(told)}", 1)

    def _still(self, rank: _Rank) -> float:
        """Return for how many seconds a rank's main thread has not run."""
        now, found = time.monotonic(), activity(rank.process.pid)
        if found is None:
            return 0.0
        switches, used = found
        if rank.still is not None:
            since, before, base = rank.still
            if switches == before and used - base <= 0.05 * (now - since) + 0.1 and rank.moved <= since:
                return now - since
        rank.still = (now, switches, used)
        return 0.0

    # Several machines.

    def _elsewhere(self) -> _Failure | None:
        return self._from(self.others.failure())

    def _from(self, text: str) -> _Failure | None:
        return _Failure(text, 1, elsewhere=True) if text else None

    def _waits_elsewhere(self) -> dict[int, tuple[int, float]]:
        """Return the ranks of other machines that ranks of this one wait for; any thread asks."""
        return {k: v for k, v in self._own_waiting().items() if k not in self.ranks}


def _interrupted(number: int, _: Any) -> None:
    raise KeyboardInterrupt


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
