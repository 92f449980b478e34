"""Pool of worker processes of one node: starting them, handing out work, restarting, ending.

A `Crew` has as many workers as its node asks for, each with a job: what a source, a `map` or a
`per_batch_map` does to a piece of rows. Threads of a flow hand pieces to whichever worker is free
and wait. A worker that dies is noticed at once, as its connection closes; another one starts in its
place and does the rows again, once, as the system may have ended it for lack of memory. Where that
dies too, the error says how, and where it was. With the watchdog on, a worker that takes longer
than `multiprocessing_timeout_interval` is reported with its stack.

Workers start by a fork server, which is a process of its own, without the program's threads; as
fresh interpreters ("spawn"); or as copies of the program ("fork"). Those of an iterator that has
ended rest for a moment, and go on with the next one's job (`idle_workers.py`).
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

from mycel._src.foundation.log import logger
from mycel._src.foundation.logged_once import no_effect
from mycel._src.foundation.python_runtime import finalization as ends
from mycel._src.foundation.system import locks, subprocesses
from mycel.dataset import config
from mycel.dataset.execution import code_pickling, worker_process
from mycel.dataset.execution.fork_server import GRACE, Busy, ForkServer, pair, sockets, start_program
from mycel.dataset.execution.idle_workers import YOUNG, Resting
from mycel.dataset.execution.iterator_scope import Scope
from mycel.dataset.execution.shared_memory_channel import Channel, Ended, NotSent, Region, memory
from mycel.dataset.execution.threaded_stages import Broken

# What `faulthandler` adds to stacks.
_MODULES = "Extension modules: "
_crews: ends.Living[Crew] = ends.Living()


class WorkerTraceback(Exception):
    """The traceback of an error in a worker process, as text."""

    def __str__(self) -> str:
        return f"in a worker process:\n{self.args[0]}"


def has_processes(operation: str) -> bool:
    """Return whether there can be worker processes; say once where there cannot."""
    if hasattr(socket, "send_fds") and hasattr(os, "fork"):
        return True
    no_effect(operation, "python_multiprocessing", True, "this system cannot share memory with forked processes")
    return False


def expected(operation: str) -> bool:
    """Return whether a node that asks for them will have worker processes; `has_processes`.

    The fork server starts to import what they need, while the program goes on.
    """
    if not has_processes(operation):
        return False
    if config.get_multiprocessing_start_method() == "forkserver":
        _server.begin()
    return True


def crew_of(scope: Scope, node: Any, name: str, job: Callable[..., Any], subjects: Sequence[Any], count: int) -> Crew:
    """Return the worker processes of a node, which later epochs go on with.

    * `scope`, `node`: whose they are.
    * `name`, `job`, `subjects`, `count`: those of `Crew`.
    """
    crew: Crew = scope.kept((id(node), count), lambda: Crew(name, job, subjects, count))
    return crew


_server = ForkServer()
_resting = Resting()
_starting = locks.lock()


@locks.in_child
def _in_child() -> None:
    _server.control = _server.process = None
    _server.asking, _server.left = False, []
    for end in list(sockets):
        end.close()
    sockets.clear()
    _resting.forget()


def _surroundings(modules: Sequence[str]) -> dict[str, Any]:
    folder = None
    # It may have been deleted.
    with contextlib.suppress(OSError):
        folder = os.getcwd()
    return {"path": subprocesses.path(), "folder": folder, "modules": list(modules)}


class Worker:
    """A process that does a job, of which `descriptor` is the memory; a fork needs `job` alone.

    It imports `modules` first, and starts by `method`.
    """

    def __init__(self, job: Callable[..., Any], descriptor: int, modules: Sequence[str], method: str) -> None:
        self.kind = method, config.get_enable_shared_mem()
        # One after the other: a fork must not inherit the connection of a worker that starts.
        with _starting:
            self._start(job, descriptor, modules, method)
        self.begun = time.monotonic()

    def _start(self, job: Callable[..., Any], descriptor: int, modules: Sequence[str], method: str) -> None:
        self._said = 0
        with contextlib.ExitStack() as stack:
            ours, theirs = map(stack.enter_context, pair())
            numbers = []
            for _ in range(3):
                numbers.append(memory())
                stack.callback(os.close, numbers[-1])
            receiving, sending, self.trace = numbers
            self._begin(ours, theirs, (receiving, sending, self.trace, descriptor), job, modules, method)
            theirs.close()
            stack.pop_all()

    def _begin(
        self,
        ours: socket.socket,
        theirs: socket.socket,
        memories: tuple[int, int, int, int],
        job: Callable[..., Any],
        modules: Sequence[str],
        method: str,
    ) -> None:
        receiving, sending = memories[:2]
        shares = self.kind[1]
        self.channel = Channel(ours, Region(receiving), Region(sending), shares)
        self.owner = os.getpid()
        self.process: subprocess.Popen[bytes] | None = None
        self.method = method
        options = {**_surroundings(modules), "shares": shares}
        if method == "fork":
            # Not closed in the child, as the end itself is.
            number = os.dup(theirs.fileno())
            try:
                self.pid = subprocesses.fork()
                if not self.pid:
                    try:
                        worker_process.serve((number, *memories), job, shares)
                    finally:
                        os._exit(0)
            finally:
                os.close(number)
            return
        given = (theirs.fileno(), *memories)
        if method == "spawn":
            arguments = json.dumps({**options, "descriptors": given})
            self.process = start_program(f"run_spawned({arguments!r})", given)
            self.pid = self.process.pid
        else:
            self.pid = _server.ask(options, given)

    def turn_to(self, descriptor: int, modules: Sequence[str]) -> bool:
        """Give the process another job; return False where it is gone. As in `Worker`."""
        if self.status() is not None:
            return False
        try:
            self.channel.connection.settimeout(None)
            self.channel.send(_surroundings(modules))
            socket.send_fds(self.channel.connection, [b"."], [descriptor])
        except (Ended, OSError):
            return False
        return True

    def rests(self) -> bool:
        """Let the process wait for another job; return False where it has to end."""
        if self.method == "fork" or time.monotonic() - self.begun > YOUNG or os.fstat(self.trace).st_size:
            return False
        return _resting.add(self)

    def ask(self, arguments: tuple[Any, ...], name: str) -> Any:
        """Return what the job gives; raise Ended where the process dies, Broken for its errors."""
        interval = config.get_multiprocessing_timeout_interval() if config.get_enable_watchdog() else None
        self.channel.connection.settimeout(None)
        self.channel.send(arguments)
        self.channel.connection.settimeout(interval)
        begin = time.monotonic()
        while True:
            try:
                value, error, text = self.channel.receive()
                break
            except TimeoutError:
                seconds = round(time.monotonic() - begin)
                logger.warning(
                    "%s: worker process %d has been at its rows for %d seconds. It is here:\n%s",
                    *(name, self.pid, seconds, self.where()),
                )
        if error is None:
            return value
        error.__cause__ = WorkerTraceback(text)
        if isinstance(error, NotSent):
            raise error
        raise Broken(value, error)

    def where(self) -> str:
        """Return the stack of the process."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGUSR1)
        time.sleep(0.1)
        return self.said()

    def said(self) -> str:
        """Return what the process has written since it was last asked where it is, or as it died of
        a fault, without the thread that watches its parent.
        """
        begin, self._said = self._said, os.fstat(self.trace).st_size
        parts = os.pread(self.trace, self._said - begin, begin).decode(errors="replace").strip().split("\n\n")
        return "\n\n".join(part for part in parts if " in _watch\n" not in part and not part.startswith(_MODULES))

    def status(self, patience: float = -1) -> int | None:
        """Return how the process ended, negative for a signal; None while it runs.

        `patience` is that of `ForkServer.ask`.
        """
        if self.method == "forkserver":
            try:
                found: int | None = _server.ask({"status": self.pid}, patience=patience)
            except (OSError, Ended):
                return -signal.SIGKILL
            return found
        if self.process is not None:
            return self.process.poll()
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            return 0
        return os.waitstatus_to_exitcode(status) if pid else None

    def death(self) -> str:
        """Return how the process ended, in words, with its stack if it left one."""
        end = time.monotonic() + GRACE
        status = self.status()
        while status is None and time.monotonic() < end:
            time.sleep(0.005)
            status = self.status()
        if status is None:
            how = "closed its connection"
        elif status < 0:
            how = f"was ended by {signal.Signals(-status).name}"
        else:
            how = f"ended with status {status}"
        said = self.said()
        return f"{how}; it was here:\n{said}" if said else how

    def release(self) -> None:
        """Let the process end."""
        with contextlib.suppress(OSError):
            self.channel.connection.shutdown(socket.SHUT_RDWR)

    def end(self, until: float = 0.0) -> None:
        """End the process, which may do so itself until a time of the monotonic clock."""
        try:
            if self.owner == os.getpid():
                self._await_end(until)
        finally:
            self.channel.close()
            os.close(self.trace)

    def _await_end(self, until: float) -> None:
        try:
            while self.status(GRACE) is None:
                if time.monotonic() >= until:
                    self._kill()
                time.sleep(0.002)
        except Busy:
            self._kill()
            _server.left.append(self.pid)
        except BaseException:
            # Whoever is interrupted leaves no process behind.
            self._kill()
            if self.method == "forkserver":
                _server.left.append(self.pid)
            else:
                self.status()
            raise

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


def hurry() -> None:
    """Let nobody wait for worker processes to start, when the program ends."""
    _server.end()


@atexit.register
def _end_all() -> None:
    hurry()
    for crew in _crews:
        crew.close()
    _resting.close()
    _server.forget()


class _Seat:
    def __init__(self) -> None:
        self.worker: Worker | None = None
        self.asks = False


class Crew:
    """The worker processes of one node.

    * `name`: what messages call the node.
    * `job`: what workers do, a function of a piece of rows.
    * `subjects`: the users' objects in it, whose modules workers import first.
    * `count`: how many there are.

    Raises TypeError where the job cannot be sent to a process.
    """

    def __init__(self, name: str, job: Callable[..., Any], subjects: Sequence[Any], count: int) -> None:
        self.name = name
        self.count = count
        self.method = config.get_multiprocessing_start_method()
        self.job = job
        self.closed = False
        self._lock = locks.reentrant()
        self.owner = os.getpid()
        self.descriptor = -1
        if self.method != "fork":
            try:
                self.descriptor = worker_process.write_job(job)
            except Exception as error:
                raise TypeError(
                    f"{name}: it cannot be sent to worker processes ({type(error).__name__}: {error}); make what it "
                    "holds where it is used, set python_multiprocessing=False, or choose "
                    "set_multiprocessing_start_method('fork')"
                ) from error
        self.modules = [module for subject in subjects for module in code_pickling.modules(subject)]
        _crews.add(self)
        self._seats = [_Seat() for _ in range(count)]
        self._free: SimpleQueue[_Seat] = SimpleQueue()
        for seat in self._seats:
            self._free.put(seat)

    def call(self, *arguments: Any) -> Any:
        """Return what the job gives in a worker; raise Broken for what it raises."""
        seat = self._free.get()
        try:
            for attempt in range(2):
                present = self._present(seat, attempt > 0)
                try:
                    return present.ask(arguments, self.name)
                except NotSent as error:
                    raise RuntimeError(
                        f"{self.name}: rows cannot be sent between processes ({error}); give arrays, text, bytes or "
                        "dictionaries of what can be pickled, or set python_multiprocessing=False"
                    ) from error
                except (Ended, OSError):
                    with self._lock:
                        if self.closed or _server.over:
                            # Whoever closed the crew, or ends the program, ends the process.
                            raise RuntimeError("the iterator was stopped") from None
                        seat.worker = None
                    how = present.death()
                    present.end()
                except Broken:
                    raise
                except BaseException:
                    # Half of an answer may be left, which would be taken for the next one.
                    with self._lock:
                        ends = not self.closed
                        if ends:
                            seat.worker = None
                    if ends:
                        present.end()
                    raise
                if not attempt:
                    logger.warning("%s: worker process %d %s. Its rows are done again", self.name, present.pid, how)
            raise RuntimeError(f"{self.name}: two worker processes died of the same rows; the last one {how}")
        finally:
            with self._lock:
                seat.asks = False
            self._free.put(seat)

    def _present(self, seat: _Seat, fresh: bool) -> Worker:
        """Return the worker of a seat, which is asked from now on; a new process if `fresh`."""
        with self._lock:
            if self.closed:
                raise RuntimeError("the iterator was stopped")
            seat.asks = True
            found = seat.worker
        return found or self._started(seat, fresh)

    def _started(self, seat: _Seat, fresh: bool) -> Worker:
        """Start a worker, unless the crew is closed before or meanwhile."""
        descriptor = -1
        try:
            with self._lock:
                if self.closed:
                    raise RuntimeError("the iterator was stopped")
                if self.descriptor >= 0:
                    descriptor = os.dup(self.descriptor)
            # What ended the last one may be ending those that rest.
            rested = None if fresh else self._rested(descriptor)
            made = rested or Worker(self.job, descriptor, self.modules, self.method)
        except OSError as error:
            raise OSError(error.errno, f"{self.name}: no worker process can be started: {error.strerror}") from error
        except Ended as error:
            raise RuntimeError(
                f"{self.name}: no worker process can be started: the fork server, {sys.executable!r}, ended; what it "
                "wrote says why. Mend that, choose set_multiprocessing_start_method('fork'), or set "
                "python_multiprocessing=False"
            ) from error
        finally:
            if descriptor >= 0:
                os.close(descriptor)
        if not self._seated(seat, made):
            made.end()
            raise RuntimeError("the iterator was stopped")
        return made

    def _rested(self, descriptor: int) -> Worker | None:
        """Return a worker of an iterator that has ended, with this job, or None."""
        if descriptor < 0:
            return None
        _resting.begin(self)
        kind = self.method, config.get_enable_shared_mem()
        found: Worker | None = _resting.take(kind)
        while found is not None and not found.turn_to(descriptor, self.modules):
            found.end()
            found = _resting.take(kind)
        return found

    def _seated(self, seat: _Seat, made: Worker) -> bool:
        with self._lock:
            if not self.closed:
                seat.worker = made
            return not self.closed

    def pids(self) -> list[int]:
        """Return the numbers of the processes."""
        return [seat.worker.pid for seat in self._seats if seat.worker is not None]

    def release(self) -> None:
        """Let the processes end, without waiting for them; idle ones may rest instead."""
        with self._lock:
            idle = [] if self.closed else [seat for seat in self._seats if not seat.asks]
            self.closed = True
            for seat in idle:
                if seat.worker is not None and seat.worker.rests():
                    seat.worker = None
            workers = [seat.worker for seat in self._seats if seat.worker is not None]
        for found in workers:
            found.release()

    def close(self) -> None:
        """End the processes."""
        self.release()
        with self._lock:
            workers = [seat.worker for seat in self._seats if seat.worker is not None]
            for seat in self._seats:
                seat.worker = None
            descriptor, self.descriptor = self.descriptor, -1
        end = time.monotonic() + GRACE
        with contextlib.ExitStack() as stack:
            # All of it, also where Ctrl-C comes meanwhile.
            if descriptor >= 0:
                stack.callback(os.close, descriptor)
            stack.callback(_resting.leave, self)
            for found in workers:
                stack.callback(found.end, end)
