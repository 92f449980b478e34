"""Rendezvous: how ranks that use sockets find each other at a store and connect.

A rank says at the store that it comes, and on which machine it is. A number that came before is an
error, for the later of the two. Where all are on one machine they listen at Unix sockets alone, and
no port is open; else each listens also at the address by which it reaches the store, and at no
other. Every rank connects to all lower ones and greets them with its number and a secret of the
store.

Anybody may connect to where a rank listens. So greetings are read side by side, each as its bytes
come and for `_PATIENCE` seconds; who says something else, or nothing, holds up nobody.
"""

from __future__ import annotations

import json
import os
import secrets
import selectors
import socket
import struct
import time
from datetime import timedelta
from typing import Any

from mycel._src.compiler.transport import rank_status
from mycel._src.compiler.transport.tcp_store import TCPStore

__all__ = ["machine", "meet"]

_HELLO = struct.Struct("!I32s")
_PATIENCE = 10.0
_MOST_STRANGERS = 64
_BRIEFLY = 0.02
_OTHER = 5.0  # seconds in which the process that has a number already says which one it is
Connections = dict[int, socket.socket]


def machine() -> str:
    """Return what all processes that can reach each other's Unix sockets have in common, or ""."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip() + os.readlink("/proc/self/ns/net")
    except OSError:
        return ""


def meet(rank: int, size: int, store: TCPStore, name: str) -> Connections:
    """Return the connections of a rank to all others of `size`, by their numbers.

    They find each other through `store`, by keys that begin with `name`.

    Raises RuntimeError where another process has this number, or one does not come.
    """
    made: Connections = {}
    listening: list[socket.socket] = []
    meeting = _Meeting(rank, size, store, name)
    try:
        meeting.come()
        address = meeting.listen(listening)
        store.set(f"{name}/{rank}", json.dumps(address))
        for peer in range(rank):
            made[peer] = meeting.connected(peer)
        meeting.accept(listening, made)
    except BaseException:
        for one in made.values():
            one.close()
        raise
    finally:
        for one in listening:
            one.close()
    return made


class _Meeting:
    """What a `rank` knows of others while it meets them; `size`, `store`, `name`: see `meet`."""

    def __init__(self, rank: int, size: int, store: TCPStore, name: str) -> None:
        self.rank, self.size, self.store, self.name = rank, size, store, name
        self.limit = store.timeout.total_seconds()
        self.machines: list[str] = []
        self.secret = b""

    def asked(self, key: str, peer: int) -> bytes:
        """Return a value that a rank sets, once it has."""
        key = f"{self.name}/{key}"
        with rank_status.waiting("communication.init", peer):
            try:
                return self.store.get(key)
            except RuntimeError:
                if self.store.check([key]):  # an error where the store itself is gone
                    return self.store.get(key)
        raise self.absent(peer)

    def absent(self, peer: int) -> RuntimeError:
        """Return the error for a rank that has not come in time."""
        twice = f"{self.name}/twice"
        why = f" ({self.store.get(twice).decode()})" if self.store.check([twice]) else ""
        return RuntimeError(
            f"communication.init: rank {peer} of {self.size} did not come within {self.limit} s{why}; start all ranks, "
            "or give more time by MYCEL_MEETING"
        )

    def come(self) -> None:
        """Register this rank at the store, and learn the secret and the machines of all."""
        own, who = f"{self.name}/who/{self.rank}", f"process {os.getpid()} on {socket.gethostname()}"
        if self.store.add(f"{self.name}/came/{self.rank}", 1) > 1:
            other = self.store.get(own).decode() if self._has_soon(own) else "a process that is gone"
            text = f"rank {self.rank} has come twice: {other} has this number, and {who} has it, too"
            self.store.set(f"{self.name}/twice", text)
            raise RuntimeError(f"communication.init: {text}; give each process a RANK_ID of its own")
        self.store.set(own, who)
        if self.rank == 0:
            self.store.set(f"{self.name}/secret", secrets.token_hex(16))
        self.store.set(f"{self.name}/machine/{self.rank}", machine())
        self.machines = [self.asked(f"machine/{peer}", peer).decode() for peer in range(self.size)]
        self.secret = self.asked("secret", 0)

    def _has_soon(self, key: str) -> bool:
        try:
            self.store.wait([key], timedelta(seconds=_OTHER))
        except RuntimeError:
            return self.store.check([key])
        return True

    def listen(self, listening: list[socket.socket]) -> dict[str, Any]:
        """Begin to listen, and return where, as other ranks need it."""
        unix, backlog = self.machines[self.rank], self.size + _MOST_STRANGERS
        address: dict[str, Any] = {}
        if unix:
            local = socket.socket(socket.AF_UNIX)
            listening.append(local)
            address["path"] = f"mycel-{secrets.token_hex(16)}"
            local.bind("\0" + address["path"])
            local.listen(backlog)
        if not unix or any(other != unix for other in self.machines):
            host = self.store.own_address()
            tcp = socket.create_server(
                (host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=backlog
            )
            listening.append(tcp)
            address.update(host=host, port=tcp.getsockname()[1])
        return address

    def connected(self, peer: int) -> socket.socket:
        """Return a connection to a lower rank, which has been greeted."""
        address = json.loads(self.asked(str(peer), peer))
        unix, end = self.machines[self.rank], time.monotonic() + self.limit
        if unix and self.machines[peer] == unix:
            made = socket.socket(socket.AF_UNIX)
            made.settimeout(self.limit)
            while True:
                try:
                    made.connect("\0" + address["path"])
                    break
                except BlockingIOError:  # others wait there already
                    if time.monotonic() >= end:
                        made.close()
                        raise self.absent(peer) from None
                    time.sleep(_BRIEFLY)
        else:
            made = socket.create_connection((address["host"], address["port"]), self.limit)
        made.sendall(_HELLO.pack(self.rank, self.secret))
        return _ready(made)

    def accept(self, listening: list[socket.socket], made: Connections) -> None:
        """Add the connections of all higher ranks to `made`."""
        pending: dict[socket.socket, _Guest] = {}
        with selectors.DefaultSelector() as selector:
            try:
                for one in listening:
                    one.setblocking(False)
                    selector.register(one, selectors.EVENT_READ)
                while len(made) < self.size - 1:
                    missing = next(k for k in range(self.rank + 1, self.size) if k not in made)
                    with rank_status.waiting("communication.init", missing):
                        self._next(selector, pending, made, missing)
            finally:
                for one in pending:
                    one.close()

    def _next(
        self,
        selector: selectors.BaseSelector,
        pending: dict[socket.socket, _Guest],
        made: Connections,
        missing: int,
    ) -> None:
        """Accept connections and read greetings until one of them is a rank's."""
        end, count = time.monotonic() + self.limit, len(made)
        while len(made) == count:
            now = time.monotonic()
            if now >= end:
                raise self.absent(missing)
            for key, _ in selector.select(min(end - now, _PATIENCE / 10)):
                one: Any = key.fileobj
                if key.data is None:
                    _let_in(one, selector, pending)
                    continue
                peer = key.data.heard(one, self.secret)
                if peer is None:
                    continue
                selector.unregister(one)
                del pending[one]
                if self.rank < peer < self.size and peer not in made:
                    made[peer] = _ready(one)
                else:
                    one.close()
            now = time.monotonic()
            for one in [one for one, guest in pending.items() if guest.until < now]:
                _send_away(one, selector, pending)


class _Guest:
    """A connection before its greeting is complete: the bytes so far, and the deadline for the
    rest.
    """

    def __init__(self) -> None:
        self.said, self.until = b"", time.monotonic() + _PATIENCE

    def heard(self, one: socket.socket, secret: bytes) -> int | None:
        """Read more of the greeting; return the rank, -1 for a stranger, None if more must come."""
        try:
            came = one.recv(_HELLO.size - len(self.said))
        except BlockingIOError:
            return None
        except OSError:
            return -1
        if not came:
            return -1
        self.said += came
        if len(self.said) < _HELLO.size:
            return None
        peer, given = _HELLO.unpack(self.said)
        return int(peer) if secrets.compare_digest(given, secret) else -1


def _let_in(one: socket.socket, selector: selectors.BaseSelector, pending: dict[socket.socket, _Guest]) -> None:
    try:
        made, _ = one.accept()
    except OSError:  # who has gone again; or the system has no room for one more
        time.sleep(_BRIEFLY)
        return
    if len(pending) == _MOST_STRANGERS:
        _send_away(next(iter(pending)), selector, pending)
    made.setblocking(False)
    pending[made] = guest = _Guest()
    selector.register(made, selectors.EVENT_READ, guest)


def _send_away(one: socket.socket, selector: selectors.BaseSelector, pending: dict[socket.socket, _Guest]) -> None:
    selector.unregister(one)
    del pending[one]
    one.close()


def _ready(connection: socket.socket) -> socket.socket:
    connection.settimeout(None)
    if connection.family != getattr(socket, "AF_UNIX", None):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return connection
