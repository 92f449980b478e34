"""The fork server of a program, and the connections to what it and the program start.

The server is a Python of its own, which has imported what workers need and forks them: a worker
starts in the time of a fork, from a process without threads.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
from collections.abc import Sequence
from typing import Any

from mycel._src.foundation.python_runtime import finalization
from mycel._src.foundation.system import locks, subprocesses
from mycel.dataset.execution import worker_process
from mycel.dataset.execution.shared_memory_channel import Ended

__all__ = ["GRACE", "Busy", "ForkServer", "environment", "pair", "sockets", "start_program"]

GRACE = 0.3
# Both ends of every connection, from when it is made: open in a forked child, an end of the
# program's would keep its workers alive, and one of a worker's would hide that it has died.
sockets: finalization.Living[socket.socket] = finalization.Living()


def environment() -> dict[str, str]:
    one = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL", "VECLIB_MAXIMUM")}
    return {**os.environ, **one}


def pair() -> tuple[socket.socket, socket.socket]:
    """Return the two ends of a new connection; a forked child has neither."""
    made = socket.socketpair()
    for end in made:
        sockets.add(end)
    return made


def start_program(function: str, descriptors: Sequence[int]) -> subprocess.Popen[bytes]:
    code = f"from mycel.dataset.execution import worker_process; worker_process.{function}"
    command = subprocesses.python(code, folders=subprocesses.path())
    # Ctrl-C while Python starts would be an error of its own: it waits until it is ignored there.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return subprocesses.start(command, pass_fds=descriptors, env=environment(), stdin=subprocess.DEVNULL)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Busy(Exception):
    """The server is being asked, by another thread or by this one while it was interrupted."""


def _exactly(connection: socket.socket, count: int) -> bytes:
    content = b""
    while len(content) < count:
        part = connection.recv(count - len(content))
        if not part:
            raise Ended
        content += part
    return content


class ForkServer:
    """The fork server of this process, which starts when it is first needed.

    Iterators that end ask for the state of their workers. While somebody asks the server for long,
    they kill these instead, and the server is asked of them (`left`) later.
    """

    def __init__(self) -> None:
        self.lock = locks.reentrant()
        self.asking = self.over = False
        self.left: list[int] = []
        self.control: socket.socket | None = None
        self.process: subprocess.Popen[bytes] | None = None

    def ask(self, request: dict[str, Any], descriptors: Sequence[int] = (), patience: float = -1) -> Any:
        """Send a request; start the server again where it is gone.

        Raises Busy where another thread's question takes longer than `patience` seconds (-1: any
        time), as while the server starts.
        """
        if not self.lock.acquire(timeout=patience):
            raise Busy
        try:
            if self.asking:
                raise Busy
            self.asking = True
            try:
                return self._answer(request, descriptors)
            finally:
                self.asking = False
        finally:
            self.lock.release()

    def _answer(self, request: dict[str, Any], descriptors: Sequence[int]) -> Any:
        for attempt in range(2):
            try:
                self.left = [pid for pid in self.left if self._ask({"status": pid}, ()) is None]
                return self._ask(request, descriptors)
            except (OSError, Ended):
                self.forget()
                if attempt or "status" in request:
                    raise
            except BaseException:
                # Half of an answer may be left, which would be taken for the next one.
                self.forget()
                raise
        return None

    def begin(self) -> None:
        """Start the server, without waiting for what it imports."""
        with self.lock:
            self._connected()

    def end(self) -> None:
        """Let nobody wait for the server any more, when the program ends; `forget` follows."""
        self.over = True
        control = self.control
        if control is not None:
            # Closing it would not wake a thread that waits.
            with contextlib.suppress(OSError):
                control.shutdown(socket.SHUT_RDWR)

    def _connected(self) -> socket.socket:
        if self.over:
            raise Ended
        if self.control is None:
            with contextlib.ExitStack() as stack:
                ours, theirs = map(stack.enter_context, pair())
                self.process = start_program(f"run_server({theirs.fileno()})", [theirs.fileno()])
                theirs.close()
                stack.pop_all()
                self.control = ours
        return self.control

    def _ask(self, request: dict[str, Any], descriptors: Sequence[int]) -> Any:
        control = self._connected()
        content = json.dumps(request).encode()
        socket.send_fds(control, [worker_process.LENGTH.pack(len(content))], list(descriptors))
        control.sendall(content)
        # Another thread may forget the server meanwhile, at the program's end.
        length = worker_process.LENGTH.unpack(_exactly(control, worker_process.LENGTH.size))[0]
        return json.loads(_exactly(control, length))

    def forget(self) -> None:
        """Close the connection, by which the server ends."""
        control, process = self.control, self.process
        self.control = self.process = None
        self.left = []
        if control is not None:
            control.close()
        if process is not None:
            try:
                process.wait(GRACE)
            except BaseException as error:
                # Its workers end as well: their parent is gone.
                process.kill()
                process.wait()
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
