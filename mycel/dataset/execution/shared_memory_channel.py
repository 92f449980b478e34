"""Channel between a pipeline and a worker process: objects, with arrays in shared memory.

A message is a header and a pickle, through a socket. Its arrays lie in a region of memory that both
processes map, one for each direction; the writer makes it larger where they do not fit. The reader
copies them out, so that the region is free for the next message. A region has no name: it is gone
when the last process that has it ends, however it ends. When the other process dies, the socket
says so at once.
"""

from __future__ import annotations

import mmap
import os
import pickle
import socket
import struct
import tempfile
from typing import Any

from mycel.dataset.execution import code_pickling

_HEADER = struct.Struct("<QQQ")
_SIZE = struct.Struct("<Q")
_ALIGNED = 64
# Below this many bytes the socket is faster.
_SMALL = 1 << 14


class Ended(Exception):
    """The other process is gone."""


def memory() -> int:
    """Return the descriptor of new memory that processes can share."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("mycel-rows")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class NotSent(RuntimeError):
    """An object cannot be pickled, or not be made again by the other process."""


class Region:
    """Memory that two processes map."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.size = 0
        self.map: mmap.mmap | None = None

    def of(self, size: int, grow: bool) -> memoryview:
        """Return the memory, at least `size` bytes of it; `grow` says that there may be too few."""
        if size > self.size or self.map is None:
            if grow:
                found = max(size, 2 * self.size, 1 << 16)
                os.ftruncate(self.descriptor, found)
            else:
                found = os.fstat(self.descriptor).st_size
            self.map = mmap.mmap(self.descriptor, found)
            self.size = found
        return memoryview(self.map)

    def close(self) -> None:
        """Give the memory back."""
        descriptor, self.descriptor, self.map = self.descriptor, -1, None
        os.close(descriptor)


def pack(region: memoryview, buffers: list[memoryview], start: int = 0) -> None:
    """Write buffers into memory, one behind the other."""
    for buffer in buffers:
        region[start : start + buffer.nbytes] = buffer
        start += -(-buffer.nbytes // _ALIGNED) * _ALIGNED


def packed_size(sizes: list[int]) -> int:
    """Return how many bytes `pack` needs for buffers of these sizes."""
    return sum(-(-size // _ALIGNED) * _ALIGNED for size in sizes)


class Channel:
    """One end of the `connection` between a pipeline and a worker.

    Arrays travel through the regions `sending` and `receiving`, or with `shares` False through the
    connection, as all else.
    """

    def __init__(self, connection: socket.socket, sending: Region, receiving: Region, shares: bool = True) -> None:
        self.connection = connection
        self.sending = sending
        self.receiving = receiving
        self.shares = shares

    def send(self, item: Any) -> None:
        """Send an object; raise Ended where the other process is gone.

        Raises NotSent, before anything is sent, for an object that cannot be pickled, and where
        there is no memory for its arrays.
        """
        try:
            content, buffers = code_pickling.dumps(item, self.shares)
        except Exception as error:
            # Whatever a class of the user's raises.
            raise NotSent(f"{type(error).__name__}: {error}") from error
        sizes = [buffer.nbytes for buffer in buffers]
        total = packed_size(sizes)
        if 0 < total < _SMALL:
            content, buffers = code_pickling.dumps(item, False)
            sizes, total = [], 0
        if total:
            try:
                region = self.sending.of(total, True)
            except (OSError, MemoryError) as error:
                raise NotSent(f"there is no shared memory for {total} bytes: {error}") from error
            pack(region, buffers)
        parts = [_HEADER.pack(len(content), len(sizes), total), *(_SIZE.pack(size) for size in sizes), content]
        try:
            self.connection.sendall(b"".join(parts))
        except OSError as error:
            raise Ended from error

    def receive(self) -> Any:
        """Return the next object; raise Ended where the other process is gone.

        Raises TimeoutError after the connection's time-out, if nothing has come, and NotSent where
        the object cannot be made again.
        """
        length, count, total = _HEADER.unpack(self._exactly(_HEADER.size, True))
        sizes = [size for (size,) in _SIZE.iter_unpack(self._exactly(_SIZE.size * count))]
        content = self._exactly(length)
        try:
            return pickle.loads(content, buffers=self._buffers(sizes, total))
        except Exception as error:
            raise NotSent(f"{type(error).__name__}: {error}") from error

    def _buffers(self, sizes: list[int], total: int) -> list[bytearray]:
        """Return copies of the buffers of a message."""
        buffers: list[bytearray] = []
        region, start = self.receiving.of(total, False) if total else memoryview(b""), 0
        for size in sizes:
            buffers.append(bytearray(region[start : start + size]))
            start += -(-size // _ALIGNED) * _ALIGNED
        return buffers

    def _exactly(self, count: int, may_time_out: bool = False) -> bytearray:
        content = bytearray(count)
        view, done = memoryview(content), 0
        while done < count:
            try:
                size = self.connection.recv_into(view[done:])
            except TimeoutError:
                if may_time_out and not done:
                    raise
                continue
            except OSError as error:
                raise Ended from error
            if not size:
                raise Ended
            done += size
        return content

    def close(self) -> None:
        """Close this end."""
        self.connection.close()
        self.sending.close()
        self.receiving.close()
