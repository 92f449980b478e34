"""The cache server: a process that answers requests of clients about its store.

Each connection has a thread; `workers` of them are answered at once. A request that cannot be
answered gets the reason, and the connection goes on; what is no request ends its connection alone.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any

from mycel._src.foundation.system import locks, subprocesses
from mycel.dataset.caching.concurrency_limit import Turns
from mycel.dataset.caching.protocol import VERSION, Ended, Message, address, owner, receive, send
from mycel.dataset.caching.store import Cache, NoRoom, Session, Store

# What a server says first, with the number of its process.
STARTED = "started"


class Server:
    """A server at a port; `spill` is the folder for rows without room in memory, or None."""

    def __init__(self, port: int, workers: int, spill: str | None) -> None:
        self.port, self.workers = port, workers
        self.store = Store(spill)
        self._lock = locks.lock()
        self._turns = Turns(workers)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(address(port))
        self.listener.listen(128)
        self.connections = 0
        self._answers: dict[str, Callable[[Message, bytearray], Any]] = {
            "info": self._info,
            "generate": lambda message, content: {"session": self.store.generate()},
            "destroy": self._destroy,
            "sessions": self._sessions,
            "open": self._open,
            "find": self._find,
            "keep": self._keep,
            "figures": lambda message, content: self.store.session(message.get("session")).figures(),
        }

    def serve(self) -> None:
        """Answer clients until one asks the server to stop."""
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                # Closed by the request to stop.
                return
            threading.Thread(target=self._attend, args=(connection,), daemon=True).start()

    def _attend(self, connection: socket.socket) -> None:
        with connection:
            if owner(connection) != os.getuid():
                send(connection, {"error": "this cache server belongs to another user", "kind": "owner"})
                return
            self.connections += 1
            try:
                while self._answer(connection):
                    pass
            except (Ended, OSError, ValueError):
                # The client has gone, or is none.
                return
            finally:
                self.connections -= 1

    def _answer(self, connection: socket.socket) -> bool:
        message, content, descriptors = receive(connection)
        for descriptor in descriptors:
            os.close(descriptor)
        what = message.get("do")
        if what == "stop":
            send(connection, {"done": True})
            self.stop()
            return False
        if what == "file":
            self._hand_over(connection, message)
            return True
        answer = self._answers.get(str(what))
        if answer is None:
            send(connection, {"error": f"unknown request {what!r}", "kind": "request"})
            return True
        try:
            with self._turns, self._lock:
                found = answer(message, content)
        except (KeyError, NoRoom, OverflowError, TypeError, ValueError) as error:
            kinds = {KeyError: "session", NoRoom: "room"}
            found = {"error": str(error.args[0] if error.args else error), "kind": kinds.get(type(error), "request")}
        send(connection, found)
        return True

    def stop(self) -> None:
        """Give back what is held, and end `serve`."""
        with self._lock:
            self.store.close()
        # `accept` of another thread ends only so.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    # Answers.

    def _info(self, message: Message, content: bytearray) -> Message:
        return {
            "version": VERSION,
            "process": os.getpid(),
            "port": self.port,
            "workers": self.workers,
            "spilldir": self.store.folder,
            "sessions": len(self.store.sessions),
            "connections": self.connections,
            "memory": sum(session.used for session in self.store.sessions.values()),
            "disk": sum(session.spilled for session in self.store.sessions.values()),
        }

    def _destroy(self, message: Message, content: bytearray) -> Message:
        self.store.destroy(message.get("session"))
        return {"done": True}

    def _sessions(self, message: Message, content: bytearray) -> Message:
        return {"sessions": [[number, found.figures()] for number, found in sorted(self.store.sessions.items())]}

    def _open(self, message: Message, content: bytearray) -> Message:
        session = self.store.session(message.get("session"))
        limit, spills, key = int(message["size"]) << 20, bool(message["spilling"]), str(message["key"])
        if spills and self.store.folder is None:
            raise ValueError("spilling=True, but the server was started without a folder for it (--spilldir)")
        session.limit, session.folder = limit, self.store.folder if spills else None
        cache = session.caches.setdefault(key, Cache())
        return {"count": cache.count, "full": False}

    def _found(self, message: Message) -> tuple[Session, Cache]:
        session = self.store.session(message.get("session"))
        cache = session.caches.get(str(message.get("key")))
        if cache is None:
            raise KeyError("the session was made anew meanwhile; iterate again")
        return session, cache

    def _find(self, message: Message, content: bytearray) -> Message:
        _, cache = self._found(message)
        return {"places": [cache.places.get(int(row)) for row in message["rows"]], "count": cache.count}

    def _keep(self, message: Message, content: bytearray) -> Message:
        session, cache = self._found(message)
        rows, sizes = message["rows"], message["sizes"]
        if len(rows) != len(sizes) or sum(sizes) != len(content) or min(sizes, default=0) < 0:
            raise ValueError("rows and sizes that do not fit their bytes")
        at, full = 0, False
        with memoryview(content) as view:
            for row, size in zip(rows, sizes):
                full = not session.keep(cache, int(row), view[at : at + size]) or full
                at += size
        if message.get("count") is not None:
            cache.count = int(message["count"])
        return {"full": full}

    def _hand_over(self, connection: socket.socket, message: Message) -> None:
        with self._lock:
            try:
                files = self.store.session(message.get("session")).files
                number = message.get("file")
                if not isinstance(number, int) or not 0 <= number < len(files):
                    raise KeyError(f"there is no file {number!r}")
                descriptor = os.dup(files[number])
            except KeyError as error:
                send(connection, {"error": str(error.args[0]), "kind": "session"})
                return
        try:
            send(connection, {"done": True}, descriptors=[descriptor])
        finally:
            os.close(descriptor)


def run(port: int, workers: int, spill: str | None, told: int) -> int:
    """Run a server in this process; write to the file `told` that it has started, or why not.

    * `port`, `workers`, `spill`: those of `Server`.
    * `told`: an open file, which is closed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        server = Server(port, workers, spill)
    except OSError as error:
        os.write(told, f"the server cannot listen: {error}".encode())
        return 1
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    os.write(told, f"{STARTED} {os.getpid()}".encode())
    os.close(told)
    server.serve()
    return 0


def detached(arguments: Sequence[str]) -> int:
    """Run a server that outlives whoever started it; `arguments` are those of `run`, as text."""
    if subprocesses.fork():
        # The system waits for the end of the server.
        os._exit(0)
    port, workers, spill, told = arguments
    return run(int(port), int(workers), spill or None, int(told))
