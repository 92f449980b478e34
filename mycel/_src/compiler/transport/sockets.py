"""The socket transport: ranks are processes connected by Unix sockets or TCP.

Every two ranks have one connection: a Unix socket on one machine, TCP between machines. How they
find each other is in `transport.rendezvous`. A thread for each connection reads whatever comes
and puts it into the mailbox of its sender and tag; so a rank may send as much as it likes before it
receives, and no order of sizes can stop both sides. Sending returns once the system has the bytes.

A message is a header (tag, number, what it is for, element type, shape) and the elements. The parts
of a collective carry a number that both sides count for each group of ranks, so that ranks that
meet in different collectives get an error, and never each other's arrays.

Reductions of large arrays go through memory that the ranks of one machine share
(`transport.shared_memory_windows`). Where there is none they go in two rounds: each rank combines
one part of all arrays, in the order of ranks, and sends the result to all. The bits are those of
combining whole arrays in this order.

A connection that ends makes every wait for its rank an error that names the rank and, where it had
time to say so, its reason. A rank that has no memory for a message reads past it, and fails itself
when it comes to receive it. A forked child is no rank: it closes its copies of the connections.
"""

from __future__ import annotations

import itertools
import math
import queue
import socket
import struct
import threading
import zlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from mycel._src.compiler.transport import rank_status
from mycel._src.compiler.transport.base import Array, Transport, alike, apart, reduced
from mycel._src.compiler.transport.rendezvous import meet
from mycel._src.compiler.transport.shared_memory_windows import LEAST, Windows, opened
from mycel._src.compiler.transport.tcp_store import TCPStore
from mycel._src.foundation.dtype import from_any
from mycel._src.foundation.python_runtime import finalization as ends
from mycel._src.foundation.system import locks

__all__ = ["LostRank", "Sockets"]

_COLLECTIVE = -1
_LEFT = -2
_HEADER = struct.Struct("!qQ24s16sBQ")
SMALL = 32 * 1024
_TOGETHER = 64 * 1024
_PIECE = 4 << 20
_SKIPPED = 64 * 1024
_LONGEST = 4096
_all: ends.Living[Sockets] = ends.Living()


class LostRank(RuntimeError):
    """Raised by a rank that waits for another one which has ended; `lost_rank` is its number."""

    def __init__(self, message: str, lost_rank: int) -> None:
        super().__init__(message)
        self.lost_rank = lost_rank


Message = tuple[int, str, Array | None]
# What a mailbox has instead: that nothing more comes, or why a message could not be taken.
Item = Message | MemoryError | None


class Sockets(Transport):
    """One of `size` processes that meet at `store` and exchange arrays through sockets.

    `store` has the addresses, under keys with the prefix `name`. `timeout` is how many seconds a
    rank waits for another one before it raises an error, None without end.
    """

    def __init__(
        self, rank: int, size: int, store: TCPStore, timeout: float | None = None, name: str = "ranks"
    ) -> None:
        self.rank, self.size, self.timeout = rank, size, timeout
        self._boxes: dict[tuple[int, int], queue.SimpleQueue[Item]] = {}
        self._lost: dict[int, str] = {}
        self._numbers: dict[tuple[int, ...], itertools.count[int]] = {}
        self._targets: dict[tuple[int, int], Array] = {}
        self._sending = {k: locks.lock() for k in range(size)}
        self._windows: dict[tuple[int, ...], Windows | None] = {}
        self._open = True
        self._connections = meet(rank, size, store, name)
        unix = getattr(socket, "AF_UNIX", None)
        self._near = {peer for peer, made in self._connections.items() if made.family == unix}
        for peer in self._connections:
            threading.Thread(target=self._read, args=(peer,), name=f"mycel-from-{peer}", daemon=True).start()
        _all.add(self)

    # Reading.

    def _read(self, peer: int) -> None:
        connection = self._connections[peer]
        try:
            while True:
                tag, number, kind, name, axes, size = _HEADER.unpack(_exactly(connection, _HEADER.size))
                text = kind.rstrip(b"\0").decode()
                if tag == _LEFT:
                    self._lose(peer, _exactly(connection, min(size, _LONGEST)).decode() or "has ended")
                    return
                array = self._array(connection, (peer, number), name.rstrip(b"\0").decode(), axes, size)
                self._box(peer, tag).put(array if isinstance(array, MemoryError) else (number, text, array))
        except MemoryError:
            self._lose(peer, "has sent a message that cannot be read: this rank has no memory left")
        except (OSError, ValueError, TypeError) as error:
            self._lose(peer, f"is gone: its connection ended ({error})")
        finally:
            with suppress(OSError):  # which it is where both sides have ended it
                connection.shutdown(socket.SHUT_RDWR)
            with self._sending[peer]:
                connection.close()

    def _array(
        self, connection: socket.socket, key: tuple[int, int], name: str, axes: int, size: int
    ) -> Array | MemoryError:
        """Return the array of a message; the error where there is no memory for it, whose bytes are
        read nevertheless.
        """
        kind = from_any(name).numpy
        if size <= _TOGETHER:
            data = _exactly(connection, size)
            shape = struct.unpack_from(f"!{axes}q", data)
            return np.frombuffer(data, np.uint8, offset=8 * axes).view(kind).reshape(shape)
        shape = struct.unpack(f"!{axes}q", _exactly(connection, 8 * axes))
        if min(shape, default=0) < 0 or math.prod(shape) * kind.itemsize != size - 8 * axes:
            raise ValueError(f"a message of {size} bytes that says to be {name} {shape}")
        target = self._targets.pop(key, None)
        if target is None or target.shape != shape or target.dtype != kind:
            try:
                target = np.empty(shape, kind)
            except MemoryError:
                _skip(connection, size - 8 * axes)
                return MemoryError(
                    f"rank {self.rank} has no memory for what rank {key[0]} has sent: {name} {shape}, "
                    f"{size - 8 * axes:,} bytes"
                )
        _fill(connection, _bytes(target))
        return target

    def _lose(self, peer: int, why: str) -> None:
        self._lost[peer] = why
        for (sender, _), box in list(self._boxes.items()):
            if sender == peer:
                box.put(None)

    def _box(self, peer: int, tag: int) -> queue.SimpleQueue[Item]:
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
            with rank_status.waiting(kind, peer):
                try:
                    message = box.get(timeout=self.timeout)
                except queue.Empty:
                    raise RuntimeError(
                        f"{kind}: rank {self.rank} has waited for rank {peer} for {self.timeout} s, the time that "
                        "MYCEL_TIMEOUT gives"
                    ) from None
        if isinstance(message, tuple):
            return message
        if message is not None:
            raise MemoryError(f"{kind}: {message}")
        box.put(None)
        raise self._lost_rank(peer, kind, "")

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
        self, kind: str, parts: Sequence[Array], ranks: Sequence[int], into: Sequence[Array] | None = None
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

    def _shared(self, kind: str, ranks: Sequence[int]) -> Windows | None:
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
        why = f"has ended with {rank_status.reason()}" if rank_status.reason() else "has ended"
        text = why.encode()[:_LONGEST]
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
        rank_status.came(came)


def _skip(connection: socket.socket, count: int) -> None:
    view = memoryview(bytearray(min(count, _SKIPPED)))
    while count:
        part = view[: min(count, len(view))]
        _fill(connection, part)
        count -= len(part)
