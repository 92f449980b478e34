"""A key-value store over TCP: one process serves it, in threads of its own, and all are clients.

Who connects shows that it has the key of the launch, and so does the server
(`transport.authentication`). Until then it is a stranger, which counts for nothing; one thread
receives all strangers, and drops who says anything else. A client that says what none says is sent
away.

A request is a frame of one letter and two byte strings; a reply is one of one letter and one byte
string. Lengths are 32 bits, big-endian. The server answers each connection in a thread, under one
lock. It delays the answer to a request for a missing key until the key exists, the client's time is
up, or the client has gone. Nothing is unpickled: clients send bytes and numbers in decimal digits.
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mycel._src.compiler.transport import addresses
from mycel._src.foundation import arguments
from mycel._src.foundation.log import logger
from mycel._src.foundation.system import locks

if TYPE_CHECKING:
    import socket

__all__ = ["TCPStore"]

MOST_KEY, MOST_VALUE = 4096, 2**30
_GREETING = b"mycel store 2\n\0\0"
_BACKLOG = 1024
_GLANCE = 1.0  # seconds between looks whether a client that waits is still there
_HEAD = struct.Struct("!cII")
_REPLY = struct.Struct("!cI")


class _Malformed(ValueError):
    """A request that no client of a store sends."""


def _exactly(connection: socket.socket, count: int) -> bytes:
    """Return so many bytes; they are taken as they come, so that a length promised takes no
    memory.
    """
    parts = []
    while count:
        part = connection.recv(min(count, 1 << 20))
        if not part:
            raise ConnectionError("the other side closed the connection")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


class _Server:
    """The values, and a thread for each connection."""

    def __init__(self, host: str, port: int) -> None:
        # Most programs have no store and need not wait for these modules.
        import socket

        from mycel._src.compiler.transport import authentication

        secret = authentication.key()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        self.reception = authentication.Reception([self.listener], _GREETING, secret)
        self.values: dict[bytes, bytes] = {}
        self.changed = locks.condition()
        self.clients = 0
        self.open = True
        self.connections: set[socket.socket] = set()
        self.thread = threading.Thread(target=self._receive, name="mycel-store", daemon=True)
        self.thread.start()

    def _receive(self) -> None:
        while self.open:
            for connection, _ in self.reception.next():
                with self.changed:
                    self.connections.add(connection)
                    self.clients += 1
                    self.changed.notify_all()
                made = threading.Thread(target=self._serve, args=(connection,), name="mycel-store-client", daemon=True)
                try:
                    made.start()
                except RuntimeError:  # the system has no room for a thread
                    self._forget(connection)
        self.reception.close()

    def _serve(self, connection: socket.socket) -> None:
        try:
            while self.open:
                letter, key_size, size = _HEAD.unpack(_exactly(connection, _HEAD.size))
                if key_size > MOST_KEY or size > MOST_VALUE:
                    break
                key, value = _exactly(connection, key_size), _exactly(connection, size)
                status, reply = self._answer(letter, key, value, connection)
                connection.sendall(_REPLY.pack(status, len(reply)) + reply)
        except (OSError, ValueError) as error:
            logger.debug("TCPStore: a connection has ended: %s", error)
        finally:
            self._forget(connection)

    def _forget(self, connection: socket.socket) -> None:
        with self.changed:
            self.connections.discard(connection)
            self.changed.notify_all()
        connection.close()

    def _awaited(self, is_there: Callable[[], bool], seconds: float, connection: socket.socket) -> bool:
        """Wait, under the lock, for what a client wants; return whether it is there in time.

        Raises ConnectionError where the client has gone meanwhile.
        """
        end = time.monotonic() + seconds
        while True:
            left = end - time.monotonic()
            if self.changed.wait_for(lambda: is_there() or not self.open, max(min(left, _GLANCE), 0)):
                return is_there()
            if left <= 0:
                return False
            if _has_gone(connection):
                raise ConnectionError("the client has gone while it waited")

    def _answer(self, letter: bytes, key: bytes, value: bytes, connection: socket.socket) -> tuple[bytes, bytes]:
        with self.changed:
            if letter == b"g":
                there = self._awaited(lambda: key in self.values, _seconds(value), connection)
                return (b"o", self.values[key]) if there else (b"t", b"")
            if letter == b"w":
                wanted = key.split(b"\0")
                there = self._awaited(lambda: all(k in self.values for k in wanted), _seconds(value), connection)
                return (b"o" if there else b"t"), b""
            if letter == b"n":
                return b"o", str(len(self.values)).encode()
            if letter == b"c":
                return b"o", (b"1" if all(k in self.values for k in key.split(b"\0")) else b"0")
            if letter == b"d":
                return b"o", (b"0" if self.values.pop(key, None) is None else b"1")
            if letter == b"a":
                amount = _whole(value)
                if amount is None:
                    raise _Malformed(f"{value[:40]!r} is no whole number")
                there_is = _whole(self.values.get(key, b"0"))
                if there_is is None:
                    return b"v", self.values[key][:100]
                self.values[key] = value = str(there_is + amount).encode()
            elif letter == b"s":
                self.values[key] = value
            else:
                raise _Malformed(f"there is no request {letter!r}")
            self.changed.notify_all()
            return b"o", value if letter == b"a" else b""

    def close(self) -> None:
        import socket

        self.open = False
        with self.changed:
            self.changed.notify_all()
            connections = list(self.connections)
        self.reception.wake()
        self.thread.join()
        for one in connections:
            with suppress(OSError):  # which it is where the other side has closed it already
                one.shutdown(socket.SHUT_RDWR)
            one.close()


def _has_gone(connection: socket.socket) -> bool:
    """Return whether the other side has closed a connection of which nothing is read now."""
    import selectors
    import socket

    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        return bool(selector.select(0)) and not connection.recv(1, socket.MSG_PEEK)


def _seconds(value: bytes) -> float:
    """Return the time that a request gives, as long as the system can wait at most."""
    try:
        found = float(value)
    except ValueError:
        raise _Malformed(f"{value[:40]!r} is no time") from None
    if found != found:
        raise _Malformed("the time is no number")
    return min(max(found, 0.0), threading.TIMEOUT_MAX)


def _whole(value: bytes) -> int | None:
    try:
        return int(value)
    except ValueError:
        return None


class TCPStore:
    """A client of keys and values that processes share, or their server.

    Keys have up to 4096 bytes, values less than 1 GiB. The server ends with `close`, with the
    ``with`` statement, or with the process. Where the variable MYCEL_KEY has a key, who has another
    one is refused.

    Args:
        host_name (str): The host of the server.
        port (int): Its port; 0 takes a free one, which the attribute `port` has.
        world_size (int | None): How many processes the server waits for, itself included; None for
            none. Default: None.
        is_master (bool): Whether this one is the server. Default: False.
        timeout (timedelta): How long a client waits for the server. Default:
            datetime.timedelta(seconds=300).
        wait_for_workers (bool): Whether the server waits. Default: True.
        multi_tenant (bool): Has no effect, as in MindSpore. Default: False.
        master_listen_fd (int | None): Has no effect, as in MindSpore. Default: None.
        use_libuv (bool): Has no effect, as in MindSpore. Default: True.

    Raises:
        TypeError: For arguments of other types.
        ValueError: For an impossible port or size.
        RuntimeError: When the time is up or the port is in use.

    Examples:
        >>> with TCPStore("127.0.0.1", 0, is_master=True) as store:
        ...     store.set("a", "1")
        ...     store.add("a", 2), store.get("a"), store.delete_key("a"), store.num_keys()
        (3, b'3', True, 0)
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = timedelta(seconds=300),
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        arguments.text("TCPStore", "host_name", host_name)
        for name, value in (("port", port), *((("world_size", world_size),) if world_size is not None else ())):
            arguments.integer("TCPStore", name, value, numpy=False)
        if not isinstance(timeout, timedelta):
            raise TypeError(f"TCPStore: timeout must be a timedelta, not {type(timeout).__name__}")
        if not 0 <= port < 65536 or (port == 0 and not is_master):
            raise ValueError(f"TCPStore: port must be in 1 to 65535, or 0 for a server to take a free one, not {port}")
        if world_size is not None and world_size < 1:
            raise ValueError(f"TCPStore: world_size must be positive, not {world_size}")
        self.host_name, self.world_size, self.is_master = host_name, world_size, bool(is_master)
        self.timeout = timeout
        self._server: _Server | None = None
        self._lock = locks.lock()
        limit = time.monotonic() + timeout.total_seconds()
        if is_master:
            try:
                self._server = _Server(host_name, port)
            except OSError as error:
                raise RuntimeError(
                    f"TCPStore: cannot listen at {host_name}:{port}: {error}; choose another port"
                ) from error
            port = self._server.listener.getsockname()[1]
        self.port = port
        self._connection = self._connect(limit)
        if self._server is not None and world_size is not None and wait_for_workers:
            self._await_workers(self._server, world_size, limit)

    def _await_workers(self, server: _Server, world_size: int, limit: float) -> None:
        with server.changed:
            left = max(limit - time.monotonic(), 0)
            complete = server.changed.wait_for(lambda: server.clients >= world_size, left)
        if not complete:
            found = server.clients
            self.close()
            raise RuntimeError(
                f"TCPStore: {found} of {world_size} processes connected within {self.timeout.total_seconds()} s; start "
                "all of them, or pass "
                "wait_for_workers=False"
            )

    def _connect(self, limit: float) -> socket.socket:
        import socket

        while True:
            left = max(limit - time.monotonic(), 0.001)
            try:
                connection = socket.create_connection((self.host_name, self.port), left)
            except OSError as error:
                if time.monotonic() + 0.05 >= limit:
                    raise RuntimeError(
                        f"TCPStore: no server at {self.host_name}:{self.port} within {self.timeout.total_seconds()} s: "
                        f"{error}; "
                        "one process must be the master"
                    ) from error
                time.sleep(0.05)
                continue
            if self._greets(connection, limit):
                connection.settimeout(None)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection

    def _greets(self, connection: socket.socket, limit: float) -> bool:
        """Return whether the server takes this client; False where it has gone before it could say
        so.
        """
        from mycel._src.compiler.transport import authentication

        place = f"{self.host_name}:{self.port}"
        try:
            authentication.authenticate(connection, _GREETING, 0, authentication.key(), limit)
        except authentication.Refused as error:
            connection.close()
            if error.answer:
                raise RuntimeError(
                    f"TCPStore: what listens at {place} is no store: it says {error.answer!r}; choose another port"
                ) from error
            raise RuntimeError(
                f"TCPStore: the server at {place} has another key than this process; {authentication.KEY} must be the "
                "same for all processes of a launch"
            ) from error
        except OSError as error:
            connection.close()
            if time.monotonic() + 0.05 >= limit:
                raise RuntimeError(
                    f"TCPStore: what listens at {place} did not answer as a store within "
                    f"{self.timeout.total_seconds()} s: {error}; choose another port"
                ) from error
            time.sleep(0.05)
            return False
        return True

    def _ask(self, function: str, letter: bytes, key: bytes, value: bytes = b"") -> bytes:
        if len(key) > MOST_KEY or len(value) >= MOST_VALUE:
            raise ValueError(
                f"TCPStore.{function}: a key has up to {MOST_KEY} bytes and a value less than {MOST_VALUE}, not "
                f"{len(key)} and {len(value)}"
            )
        with self._lock:
            try:
                self._connection.sendall(_HEAD.pack(letter, len(key), len(value)) + key + value)
                status, size = _REPLY.unpack(_exactly(self._connection, _REPLY.size))
                reply = _exactly(self._connection, size)
            except OSError as error:
                raise RuntimeError(
                    f"TCPStore.{function}: the server at {self.host_name}:{self.port} is gone: {error}"
                ) from error
        if status == b"t":
            raise RuntimeError(
                f"TCPStore.{function}: {key.decode().split(chr(0))} was not set within {float(value)} s; set it, or "
                "wait longer"
            )
        if status == b"v":
            raise RuntimeError(f"TCPStore.{function}: the value {reply!r} of {key.decode()!r} is not a whole number")
        return reply

    def set(self, key: str, value: str | bytes) -> None:
        """Set the value of a key.

        Raises TypeError for other types.
        """
        arguments.instance("TCPStore.set", "value", value, (str, bytes))
        self._ask("set", b"s", _key("set", key), value.encode() if isinstance(value, str) else value)

    def get(self, key: str) -> bytes:
        """Wait for a key, and return its value.

        Raises RuntimeError when the store's time for waiting is up.
        """
        return self._ask("get", b"g", _key("get", key), repr(self.timeout.total_seconds()).encode())

    def add(self, key: str, amount: int) -> int:
        """Add to the number that a key has, 0 at first, and return the sum.

        Raises RuntimeError if the value is not a whole number.
        """
        arguments.integer("TCPStore.add", "amount", amount, numpy=False)
        return int(self._ask("add", b"a", _key("add", key), str(amount).encode()))

    def delete_key(self, key: str) -> bool:
        """Delete a key, and return whether it existed."""
        return self._ask("delete_key", b"d", _key("delete_key", key)) == b"1"

    def num_keys(self) -> int:
        """Return the number of keys."""
        return int(self._ask("num_keys", b"n", b""))

    def check(self, keys: list[str]) -> bool:
        """Return whether all of several keys exist."""
        return self._ask("check", b"c", b"\0".join(_key("check", k) for k in keys)) == b"1" if keys else True

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Wait until all of several keys exist.

        Raises RuntimeError after `timeout`, by default that of the store.
        """
        if keys:
            seconds = (self.timeout if timeout is None else timeout).total_seconds()
            self._ask("wait", b"w", b"\0".join(_key("wait", k) for k in keys), repr(seconds).encode())

    def await_departures(self, count: int) -> None:
        """Wait, in the server, until `count` clients have come and all but its own have left."""
        server = self._server
        assert server is not None
        with server.changed:
            server.changed.wait_for(lambda: server.clients >= count and len(server.connections) <= 1)

    def limit_answers(self, seconds: float) -> None:
        """Have requests fail, as where the server is gone, that it does not answer in so long."""
        self._connection.settimeout(None if seconds == float("inf") else seconds)

    def own_address(self) -> str:
        """Return the address of this machine that MYCEL_INTERFACE chooses, or else the one from
        which it reaches the server.
        """
        return addresses.chosen() or str(self._connection.getsockname()[0])

    def close(self) -> None:
        """End the connection; in the master, the server too."""
        self._connection.close()
        if self._server is not None:
            self._server.close()

    def __enter__(self) -> TCPStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _key(function: str, key: Any) -> bytes:
    if not isinstance(key, str):
        raise arguments.wrong_type(f"TCPStore.{function}", "key", "a string", key)
    if "\0" in key:
        raise ValueError(f"TCPStore.{function}: the key {key!r} must not hold a zero character")
    return key.encode()
