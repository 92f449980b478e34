"""Ranks as processes that exchange arrays through sockets.

Every two ranks have one connection: a Unix socket on one machine, TCP between machines. They find
each other through a store. A thread for each connection reads whatever comes and puts it into the
mailbox of its sender and tag; so a rank may send as much as it likes before it receives, and no
order of sizes can stop both sides. Sending returns once the system has the bytes.

A message is a header (tag, number, what it is for, element type, shape) and the elements. The parts
of a collective carry a number that both sides count for each group of ranks, so that ranks that
meet in different collectives get an error, and never each other's arrays.

Reductions of large arrays go through memory that the ranks of one machine share
(`mycel.transport.windows`). Where there is none they go in two rounds: each rank combines one part
of all arrays, in the order of ranks, and sends the result to all. The bits are those of combining
whole arrays in this order.

A connection that ends makes every wait for its rank an error that names the rank and, where it had
time to say so, its reason. A forked child is no rank: it closes its copies of the connections.
"""

from __future__ import annotations

import itertools
import json
import os
import queue
import secrets
import socket
import struct
import threading
import weakref
import zlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Optional

import numpy as np

from mycel.base import locks
from mycel.base.dtype import from_any
from mycel.transport import watch
from mycel.transport.base import Array, Transport, alike, apart, reduced
from mycel.transport.store import TCPStore
from mycel.transport.windows import LEAST, Windows, opened

__all__ = ["LostRank", "Sockets", "machine"]

_COLLECTIVE = -1
_LEFT = -2
_HEADER = struct.Struct("!qQ24s16sBQ")
_HELLO = struct.Struct("!I32s")
SMALL = 32 * 1024
_TOGETHER = 64 * 1024
_PIECE = 4 << 20
_all: weakref.WeakSet[Sockets] = weakref.WeakSet()


class LostRank(RuntimeError):
    """Raised by a rank that waits for another one which has ended; `lost_rank` is its number."""

    def __init__(self, message: str, lost_rank: int) -> None:
        super().__init__(message)
        self.lost_rank = lost_rank


Message = tuple[int, str, Optional[Array]]


class Sockets(Transport):
    """One of `size` processes that meet at `store` and exchange arrays through sockets.

    `store` has the addresses, under keys with the prefix `name`. `timeout` is how many seconds a
    rank waits for another one before it raises an error, None without end.
    """

    def __init__(
        self, rank: int, size: int, store: TCPStore, timeout: Optional[float] = None, name: str = "ranks"
    ) -> None:
        self.rank, self.size, self.timeout = rank, size, timeout
        self._boxes: dict[tuple[int, int], queue.SimpleQueue[Optional[Message]]] = {}
        self._lost: dict[int, str] = {}
        self._numbers: dict[tuple[int, ...], itertools.count[int]] = {}
        self._targets: dict[tuple[int, int], Array] = {}
        self._connections: dict[int, socket.socket] = {}
        self._sending = {k: locks.lock() for k in range(size)}
        self._windows: dict[tuple[int, ...], Optional[Windows]] = {}
        self._open = True
        try:
            self._meet(store, name)
        except BaseException:
            self.abandon()
            raise
        unix = getattr(socket, "AF_UNIX", None)
        self._near = {peer for peer, made in self._connections.items() if made.family == unix}
        for peer in self._connections:
            threading.Thread(target=self._read, args=(peer,), name=f"mycel-from-{peer}", daemon=True).start()
        _all.add(self)

    # Meeting.

    def _meet(self, store: TCPStore, name: str) -> None:
        """Connect to every lower rank, and accept the higher ones."""
        secret = secrets.token_hex(16).encode()
        if self.rank == 0:
            store.set(f"{name}/secret", secret)
        else:
            with watch.waiting("communication.init", 0):
                secret = store.get(f"{name}/secret")
        unix, listening = machine(), []
        address: dict[str, Any] = {"machine": unix, "host": store.own_address()}
        tcp = socket.create_server(("", 0), backlog=self.size)
        listening.append(tcp)
        address["port"] = tcp.getsockname()[1]
        if unix:
            local = socket.socket(socket.AF_UNIX)
            address["path"] = f"mycel-{secrets.token_hex(16)}"
            local.bind("\0" + address["path"])
            local.listen(self.size)
            listening.append(local)
        try:
            store.set(f"{name}/{self.rank}", json.dumps(address))
            for peer in range(self.rank):
                with watch.waiting("communication.init", peer):
                    found = json.loads(store.get(f"{name}/{peer}"))
                self._connections[peer] = _connected(found, unix, store.timeout.total_seconds())
                self._connections[peer].sendall(_HELLO.pack(self.rank, secret))
            self._accept(listening, secret, store.timeout.total_seconds())
        finally:
            for one in listening:
                one.close()

    def _accept(self, listening: list[socket.socket], secret: bytes, limit: float) -> None:
        import selectors

        with selectors.DefaultSelector() as selector:
            for one in listening:
                selector.register(one, selectors.EVENT_READ)
            while len(self._connections) < self.size - 1:
                missing = next(k for k in range(self.rank + 1, self.size) if k not in self._connections)
                with watch.waiting("communication.init", missing):
                    ready = selector.select(limit)
                if not ready:
                    raise RuntimeError(
                        f"communication.init: rank {missing} of {self.size} did not come within {limit} s; start all "
                        "ranks, or give more time by MYCEL_MEETING"
                    )
                for key, _ in ready:
                    made, _ = key.fileobj.accept()  # type: ignore[union-attr]
                    made.settimeout(10)
                    try:
                        peer, said = _HELLO.unpack(_exactly(made, _HELLO.size))
                    except OSError:
                        said = b""
                    if said != secret or not self.rank < peer < self.size:
                        made.close()  # a stranger at this port
                        continue
                    self._connections[peer] = _ready(made)

    # Reading.

    def _read(self, peer: int) -> None:
        connection = self._connections[peer]
        try:
            while True:
                tag, number, kind, name, axes, size = _HEADER.unpack(_exactly(connection, _HEADER.size))
                text = kind.rstrip(b"\0").decode()
                if tag == _LEFT:
                    self._lose(peer, _exactly(connection, size).decode() or "has ended")
                    return
                array = self._array(connection, (peer, number), name.rstrip(b"\0").decode(), axes, size)
                self._box(peer, tag).put((number, text, array))
        except (OSError, ValueError) as error:
            self._lose(peer, f"is gone: its connection ended ({error})")
        finally:
            with suppress(OSError):  # which it is where both sides have ended it
                connection.shutdown(socket.SHUT_RDWR)
            with self._sending[peer]:
                connection.close()

    def _array(self, connection: socket.socket, key: tuple[int, int], name: str, axes: int, size: int) -> Array:
        kind = from_any(name).numpy
        if size <= _TOGETHER:
            data = _exactly(connection, size)
            shape = struct.unpack_from(f"!{axes}q", data)
            return np.frombuffer(data, np.uint8, offset=8 * axes).view(kind).reshape(shape)
        shape = struct.unpack(f"!{axes}q", _exactly(connection, 8 * axes))
        target = self._targets.pop(key, None)
        if target is None or target.shape != shape or target.dtype != kind:
            target = np.empty(shape, kind)
        _fill(connection, _bytes(target))
        return target

    def _lose(self, peer: int, why: str) -> None:
        self._lost[peer] = why
        for (sender, _), box in list(self._boxes.items()):
            if sender == peer:
                box.put(None)

    def _box(self, peer: int, tag: int) -> queue.SimpleQueue[Optional[Message]]:
        found = self._boxes.get((peer, tag))
        return self._boxes.setdefault((peer, tag), queue.SimpleQueue()) if found is None else found

    # Messages.

    def _put(self, array: Array, peer: int, tag: int, number: int, kind: str) -> None:
        if peer == self.rank:
            self._box(peer, tag).put((number, kind, np.array(array, copy=True)))
            return
        whole = np.ascontiguousarray(array)
        shape = struct.pack(f"!{array.ndim}q", *array.shape)
        name = from_any(whole.dtype).name.encode()
        head = _HEADER.pack(tag, number, kind.encode(), name, array.ndim, len(shape) + whole.nbytes)
        data = _bytes(whole)
        try:
            with self._sending[peer]:
                if len(data) <= _TOGETHER:
                    self._connections[peer].sendall(b"".join((head, shape, data)))
                else:
                    self._connections[peer].sendall(head + shape)
                    self._connections[peer].sendall(data)
        except OSError as error:
            self._check_open()
            raise self._lost_rank(peer, kind, str(error)) from None

    def _get(self, peer: int, tag: int, kind: str) -> Message:
        box = self._box(peer, tag)
        try:
            message = box.get_nowait()
        except queue.Empty:
            self._check_open()
            if peer in self._lost and box.empty():
                raise self._lost_rank(peer, kind, "") from None
            with watch.waiting(kind, peer):
                try:
                    message = box.get(timeout=self.timeout)
                except queue.Empty:
                    raise RuntimeError(
                        f"{kind}: rank {self.rank} has waited for rank {peer} for {self.timeout} s, the time that "
                        "MYCEL_TIMEOUT gives"
                    ) from None
        if message is None:
            box.put(None)
            raise self._lost_rank(peer, kind, "")
        return message

    def _lost_rank(self, peer: int, kind: str, why: str) -> LostRank:
        told = self._lost.get(peer) or f"is gone: {why}"
        return LostRank(f"{kind}: rank {self.rank} waits for rank {peer}, which {told}", peer)

    def _check_open(self) -> None:
        if not self._open:
            raise RuntimeError(
                f"communication: rank {self.rank} has been released, or this is a process forked from it; "
                "communication.init begins anew"
            )

    def send(self, array: Array, rank: int, tag: int = 0) -> None:
        self._known(rank)
        self._put(array, rank, tag, 0, "send")

    def receive(self, rank: int, tag: int = 0) -> Array:
        self._known(rank)
        found = self._get(rank, tag, "receive")[2]
        assert found is not None
        return found if found.flags.writeable else found.copy()

    def _known(self, rank: int) -> None:
        if not 0 <= rank < self.size:
            raise ValueError(f"there is no rank {rank} among {self.size}")

    # Collectives.

    def exchange(self, parts: Sequence[Array], ranks: Sequence[int]) -> list[Array]:
        return self.met("exchange", parts, ranks)

    def met(
        self, kind: str, parts: Sequence[Array], ranks: Sequence[int], into: Optional[Sequence[Array]] = None
    ) -> list[Array]:
        """Send one of `parts` to each of `ranks`, and return what they sent.

        `kind` says of which collective it is; what comes lies in the arrays `into`, if given.
        """
        members = tuple(ranks)
        if self.rank not in members:
            raise ValueError(f"{kind}: rank {self.rank} is none of the ranks {members}")
        count = next(self._numbers.setdefault(members, itertools.count()))
        number = zlib.crc32(repr(members).encode()) << 32 | count & 0xFFFFFFFF
        own = members.index(self.rank)
        if into is not None:
            for rank, target in zip(members, into):
                self._targets[rank, number] = target
        for k in range(1, len(members)):
            at = (own + k) % len(members)
            self._put(parts[at], members[at], _COLLECTIVE, number, kind)
        found = []
        for at, rank in enumerate(members):
            if rank == self.rank:
                array = parts[at] if into is not None else np.array(parts[at], copy=True)
            else:
                array = self._part(rank, number, kind)
            if into is not None:
                self._targets.pop((rank, number), None)
                if array.shape != into[at].shape or array.dtype != into[at].dtype:
                    alike(kind, [parts[own], array], (self.rank, rank))
                if array is not into[at]:
                    np.copyto(into[at], array)
            found.append(array)
        return found

    def _part(self, rank: int, number: int, kind: str) -> Array:
        came, other, array = self._get(rank, _COLLECTIVE, kind)
        if (came, other) != (number, kind):
            raise apart(self.rank, kind, rank, other)
        assert array is not None
        return array

    def all_reduce(self, array: Array, op: str, ranks: Sequence[int]) -> Array:
        kind, count = f"all_reduce {op}", len(ranks)
        if array.nbytes <= SMALL or count == 1:
            return super().all_reduce(array, op, ranks)
        flat = np.ascontiguousarray(array).reshape(-1)
        if array.nbytes >= LEAST:
            kind = f"{kind} (large)"
            self._compare(kind, array, ranks)
            windows = self._shared(kind, ranks)
            if windows is not None:
                meet = lambda sent: self.met(kind, [sent] * count, ranks)
                shared: Array = windows.all_reduce(flat, op, meet).reshape(array.shape)
                return shared
        ends = [flat.size * k // count for k in range(count + 1)]
        parts = [flat[a:b] for a, b in zip(ends, ends[1:])]
        own = reduced(alike(kind, self.met(kind, parts, ranks), ranks), op)
        result = np.empty_like(flat)
        self.met(kind, [own] * count, ranks, [result[a:b] for a, b in zip(ends, ends[1:])])
        whole: Array = result.reshape(array.shape)
        return whole

    def _shared(self, kind: str, ranks: Sequence[int]) -> Optional[Windows]:
        """Return the memory that some ranks of one machine share; None where they share none."""
        members = tuple(ranks)
        if members not in self._windows:
            near = all(r == self.rank or r in self._near for r in members)
            meet = lambda sent: self.met(kind, [sent] * len(members), members)
            self._windows[members] = opened(members.index(self.rank), meet) if near else None
        return self._windows[members]

    def _compare(self, kind: str, array: Array, ranks: Sequence[int]) -> None:
        """Raise ValueError unless all ranks have arrays of one type and shape."""
        head = np.array([array.nbytes, zlib.crc32(f"{array.dtype.name}{array.shape}".encode())])
        for found, rank in zip(self.met(kind, [head] * len(ranks), ranks), ranks):
            if not np.array_equal(found, head):
                raise ValueError(
                    f"{kind}: rank {rank} has another array than rank {self.rank}, which has {array.dtype.name} "
                    f"{array.shape}; all must be alike"
                )

    def all_gather(self, array: Array, axis: int, ranks: Sequence[int]) -> Array:
        if axis or array.nbytes <= SMALL:
            return super().all_gather(array, axis, ranks)
        result = np.empty((len(ranks), *array.shape), array.dtype)
        self.met(f"all_gather (axis {axis})", [array] * len(ranks), ranks, list(result))
        whole: Array = result.reshape(-1, *array.shape[1:])
        return whole

    # The end.

    def close(self) -> None:
        """Tell the others that this rank leaves, with its reason where there is one."""
        if not self._open:
            return
        self._open = False
        why = f"has ended with {watch.reason()}" if watch.reason() else "has ended"
        text = why.encode()[:4096]
        for connection in self._connections.values():
            with suppress(OSError):  # which it is where the other side has gone before
                connection.settimeout(1.0)
                connection.sendall(_HEADER.pack(_LEFT, 0, b"", b"", 0, len(text)) + text)
                connection.shutdown(socket.SHUT_WR)

    def abandon(self) -> None:
        """Close the connections without a word: in a forked child, its copies of them."""
        self._open = False
        for connection in self._connections.values():
            connection.close()


@locks.in_child
def _abandon_all() -> None:
    for one in list(_all):
        one.abandon()


def machine() -> str:
    """Return what all processes that can reach each other's Unix sockets have in common, or ""."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip() + os.readlink("/proc/self/ns/net")
    except OSError:
        return ""


def _connected(address: dict[str, Any], machine: str, limit: float) -> socket.socket:
    if machine and address["machine"] == machine:
        made = socket.socket(socket.AF_UNIX)
        made.settimeout(limit)
        made.connect("\0" + address["path"])
    else:
        made = socket.create_connection((address["host"], address["port"]), limit)
    return _ready(made)


def _ready(connection: socket.socket) -> socket.socket:
    connection.settimeout(None)
    if connection.family != socket.AF_UNIX:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return connection


def _bytes(array: Array) -> memoryview:
    raw: Any = array.reshape(-1).view(np.uint8)
    return memoryview(raw)


def _exactly(connection: socket.socket, count: int) -> bytearray:
    data = bytearray(count)
    _fill(connection, memoryview(data))
    return data


def _fill(connection: socket.socket, view: memoryview) -> None:
    done = 0
    while done < len(view):
        came = connection.recv_into(view[done : done + _PIECE], 0, socket.MSG_WAITALL)
        if not came:
            raise ConnectionError("the other side closed it")
        done += came
        watch.came(came)
