"""Clients of a cache server: one request at a time on each of a few connections.

Rows are read from the server's memory and files, which it hands over once, so afterwards it sends
places only. A process that was forked begins with connections of its own.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator, Sequence
from typing import Any

from mycel._src.foundation.python_runtime import finalization
from mycel._src.foundation.system import locks
from mycel.dataset.caching.concurrency_limit import Turns
from mycel.dataset.caching.protocol import PATIENCE, Ended, Message, address, owner, receive, send


class CacheError(RuntimeError):
    """What keeps a pipeline from its cache."""


class _Held:
    """What a process holds of a server: connections, and the files of rows."""

    def __init__(self, connections: int) -> None:
        self.process = os.getpid()
        self.free: list[socket.socket] = []
        self.turns = Turns(connections)
        self.lock = locks.lock()
        self.files: dict[int, int] = {}

    def close(self) -> None:
        for connection in self.free:
            connection.close()
        for descriptor in self.files.values():
            os.close(descriptor)
        self.free, self.files = [], {}


class Client:
    """A client of the server at `port`, with at most `connections` connections at once."""

    def __init__(self, port: int, connections: int = 1) -> None:
        self.port, self.connections = port, connections
        self._held: _Held | None = None
        self._lock = locks.lock()

    def _own(self) -> _Held:
        with self._lock:
            if self._held is None or self._held.process != os.getpid():
                self._held = _Held(self.connections)
                finalization.when_gone(self, self._held.close)
            return self._held

    def close(self) -> None:
        """Close the connections; later requests open others."""
        if self._held is not None and self._held.process == os.getpid():
            self._held.close()

    def _connected(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(PATIENCE)
        try:
            connection.connect(address(self.port))
            if owner(connection) != os.getuid():
                raise CacheError(f"DatasetCache: the server on port {self.port} belongs to another user")
        except OSError as error:
            connection.close()
            raise CacheError(
                f"DatasetCache: there is no cache server of this user on port {self.port} ({error}); "
                "start one: mycel dataset-cache --start"
            ) from error
        except BaseException:
            connection.close()
            raise
        return connection

    @contextlib.contextmanager
    def _connection(self, held: _Held) -> Iterator[socket.socket]:
        with held.turns:
            with held.lock:
                found = held.free.pop() if held.free else None
            connection = found or self._connected()
            try:
                yield connection
            except BaseException:
                connection.close()
                raise
            with held.lock:
                held.free.append(connection)

    def ask(self, what: str, content: bytes = b"", **message: Any) -> Message:
        """Return the server's answer to a request; raise CacheError where it refuses or has ended.

        * `what`: the request.
        * `content`: bytes that belong to it.
        * `message`: what else it says.
        """
        answer, descriptors = self._asked({"do": what, **message}, content)
        for descriptor in descriptors:
            os.close(descriptor)
        return answer

    def _asked(self, message: Message, content: bytes) -> tuple[Message, list[int]]:
        try:
            with self._connection(self._own()) as connection:
                send(connection, message, content)
                answer, _, descriptors = receive(connection)
        except (Ended, OSError, ValueError) as error:
            raise CacheError(
                f"DatasetCache: the cache server on port {self.port} has ended or does not answer "
                f"({type(error).__name__}: {error}); start it again, with a new session: mycel dataset-cache --start"
            ) from error
        if "error" in answer:
            raise CacheError(f"DatasetCache: {answer['error']}")
        return answer, descriptors

    def _file(self, session: int, number: int) -> int:
        held = self._own()
        with held.lock:
            found = held.files.get(number)
        if found is not None:
            return found
        _, descriptors = self._asked({"do": "file", "session": session, "file": number}, b"")
        with held.lock:
            for extra in descriptors[1:] if number not in held.files else descriptors:
                os.close(extra)
            return held.files.setdefault(number, descriptors[0])

    def contents(self, session: int, places: Sequence[Sequence[int] | None]) -> list[bytearray | None]:
        """Return the bytes at these places of a session; None stays None."""
        return [None if place is None else self._part(session, *place) for place in places]

    def _part(self, session: int, number: int, start: int, size: int) -> bytearray:
        descriptor = self._file(session, number)
        found, at = bytearray(size), 0
        with memoryview(found) as view:
            while at < size:
                count = os.preadv(descriptor, [view[at:]], start + at)
                if not count:
                    raise CacheError(f"DatasetCache: the cache ends before a row of {size} bytes at {start}")
                at += count
        return found
