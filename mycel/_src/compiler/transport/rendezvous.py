"""Rendezvous: how ranks that use sockets find each other at a store and connect.

A rank says at the store that it comes, and on which machine it is. A number that came before is an
error, for the later of the two. Where all are on one machine they listen at Unix sockets alone, and
no port is open; else each listens also at one address, that by which it reaches the store or that
of MYCEL_INTERFACE. Every rank connects to all lower ones, and gives its number.

Anybody may connect to where a rank listens, so both sides first show that they have the key of the
launch and a secret of the store (`transport.authentication`). Those that have not hold up nobody.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from datetime import timedelta
from typing import Any

from mycel._src.compiler.transport import addresses, authentication, rank_status
from mycel._src.compiler.transport.tcp_store import TCPStore
from mycel._src.foundation.system.malloc_arenas import share_heaps

__all__ = ["machine", "meet"]

_GREETING = b"mycel rank 1\n\0\0\0"
_BACKLOG = 64  # for strangers, beside ranks
# An end that the network does not tell of is found after about ten seconds.
_ALIVE = (("TCP_KEEPIDLE", 4), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 3))
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
    # Threads that carry messages and make their operands allocate from now on.
    share_heaps()
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
        self.addresses: list[str] = []
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
        self.store.set(f"{self.name}/machine/{self.rank}", json.dumps([machine(), self.store.own_address()]))
        found = [json.loads(self.asked(f"machine/{peer}", peer)) for peer in range(self.size)]
        self.machines, self.addresses = [m for m, _ in found], [a for _, a in found]
        self.secret = authentication.key() + self.asked("secret", 0)

    def _has_soon(self, key: str) -> bool:
        try:
            self.store.wait([key], timedelta(seconds=_OTHER))
        except RuntimeError:
            return self.store.check([key])
        return True

    def listen(self, listening: list[socket.socket]) -> dict[str, Any]:
        """Begin to listen, and return where, as other ranks need it."""
        unix, backlog = self.machines[self.rank], self.size + _BACKLOG
        address: dict[str, Any] = {}
        if unix:
            local = socket.socket(socket.AF_UNIX)
            listening.append(local)
            address["path"] = f"mycel-{secrets.token_hex(16)}"
            local.bind("\0" + address["path"])
            local.listen(backlog)
        if not unix or any(other != unix for other in self.machines):
            host = self.reached()
            tcp = socket.create_server(
                (host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=backlog
            )
            listening.append(tcp)
            address.update(host=host, port=tcp.getsockname()[1])
        return address

    def reached(self) -> str:
        """Return the address of this machine at which the others reach it.

        The machine of the store may know that one by an inner address of its own name.
        """
        own = self.addresses[self.rank]
        others = [a for m, a in zip(self.machines, self.addresses) if m != self.machines[self.rank]]
        outer = [a for a in others if not addresses.is_loopback(a)]
        return addresses.towards(outer[0]) if outer and addresses.is_loopback(own) else own

    def connected(self, peer: int) -> socket.socket:
        """Return a connection to a lower rank, which knows who this is."""
        address = json.loads(self.asked(str(peer), peer))
        end = time.monotonic() + self.limit
        with rank_status.waiting("communication.init", peer):
            while True:
                made = self._connection(peer, address, end)
                try:
                    authentication.authenticate(made, _GREETING, self.rank, self.secret, end)
                    return _ready(made)
                except authentication.Refused as error:
                    made.close()
                    raise RuntimeError(f"communication.init: what listens for rank {peer} is none: {error}") from None
                except OSError:  # strangers that were there in masses have taken this one's place
                    made.close()
                    if time.monotonic() + _BRIEFLY >= end:
                        raise self.absent(peer) from None
                    time.sleep(_BRIEFLY)

    def _connection(self, peer: int, address: dict[str, Any], end: float) -> socket.socket:
        """Return a connection to where a lower rank listens.

        Raises RuntimeError where it does so no more.
        """
        unix = self.machines[self.rank]
        near = bool(unix) and self.machines[peer] == unix
        while True:
            left = max(end - time.monotonic(), 0.001)
            try:
                if not near:
                    return socket.create_connection((address["host"], address["port"]), left)
                made = socket.socket(socket.AF_UNIX)
                made.settimeout(left)
                try:
                    made.connect("\0" + address["path"])
                    return made
                except BaseException:
                    made.close()
                    raise
            except (BlockingIOError, TimeoutError):  # others wait there already
                if time.monotonic() + _BRIEFLY >= end:
                    raise self.absent(peer) from None
                time.sleep(_BRIEFLY)
            except OSError as error:
                raise RuntimeError(
                    f"communication.init: rank {peer} is not reached at {address.get('host', 'its Unix socket')}: "
                    f"{error}; where a machine has several addresses, MYCEL_INTERFACE says which one the others reach"
                ) from error

    def accept(self, listening: list[socket.socket], made: Connections) -> None:
        """Add the connections of all higher ranks to `made`."""
        reception = authentication.Reception(listening, _GREETING, self.secret)
        try:
            while len(made) < self.size - 1:
                missing = next(k for k in range(self.rank + 1, self.size) if k not in made)
                with rank_status.waiting("communication.init", missing):
                    self._next(reception, made, missing)
        finally:
            reception.close()

    def _next(self, reception: authentication.Reception, made: Connections, missing: int) -> None:
        """Wait until another rank has come."""
        end, count = time.monotonic() + self.limit, len(made)
        while len(made) == count:
            left = end - time.monotonic()
            if left <= 0:
                raise self.absent(missing)
            for connection, peer in reception.next(left):
                if self.rank < peer < self.size and peer not in made:
                    made[peer] = _ready(connection)
                else:
                    connection.close()


def _ready(connection: socket.socket) -> socket.socket:
    connection.settimeout(None)
    if connection.family != getattr(socket, "AF_UNIX", None):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _ALIVE:
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return connection
