"""The MPI transport: ranks started by `mpirun` exchange arrays by mpi4py.

Every collective begins with a packet of one size that says which it is and what this rank has, and
has the elements where they are few: so ranks that differ find it out, and do not meet in different
calls of MPI. Reductions of many elements exchange parts, which each rank combines in the order of
ranks, so that the bits are those of every other transport. A wait is a loop over
`Test`, so that an interrupt of the keyboard is heard. MPI has no way to tell others of an error: a
rank that raises ends all of them (`MPI_Abort`).
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np

from mycel._src.compiler.transport import rank_status
from mycel._src.compiler.transport.base import Array, Transport, alike, apart, reduced
from mycel._src.foundation.dtype import from_any

__all__ = ["Mpi"]

SMALL = 32 * 1024
_TINY, _KIND = 256, 24  # bytes of a packet: elements, and the name of the collective
_HEADER = 16  # whole numbers: the place of the element type, axes, and up to 14 sizes
_EAGER = 200  # looks at a request without rest, before the loop begins to sleep


def _library() -> Any:
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise RuntimeError(
            "communication.init: MPI is asked for, and mpi4py is not installed; `pip install 'mycel[mpi]'` installs it "
            "with MPICH, and MS_SCHED_HOST and MS_SCHED_PORT choose sockets instead"
        ) from error
    return MPI


class Mpi(Transport):
    """This process as a rank of MPI's world."""

    def __init__(self) -> None:
        self._mpi = _library()
        self._world = self._mpi.COMM_WORLD.Dup()
        self.rank, self.size = self._world.Get_rank(), self._world.Get_size()
        self._groups: dict[tuple[int, ...], Any] = {tuple(range(self.size)): self._world}
        self._sent: list[tuple[Any, Any]] = []
        self._own: dict[int, deque[Array]] = {}
        self._process = os.getpid()
        before = sys.excepthook

        def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            before(kind, error, trace)
            sys.stderr.flush()
            self._mpi.COMM_WORLD.Abort(1)

        sys.excepthook = hook

    def _communicator(self, ranks: Sequence[int]) -> Any:
        """Return the communicator of some ranks, which these make together at their first use."""
        if os.getpid() != self._process:
            raise RuntimeError("communication: this is a process forked from a rank, which is no rank itself")
        members = tuple(ranks)
        if self.rank not in members:
            raise ValueError(f"collective: rank {self.rank} is none of the ranks {members}")
        if members not in self._groups:
            group = self._world.Get_group().Incl(list(members))
            self._groups[members] = self._world.Create_group(group)
        return self._groups[members]

    def _wait(self, request: Any, what: str, rank: int, among: Sequence[int] = ()) -> None:
        """Wait for a request; look at it more and more seldom, as ranks may share cores."""
        looks = 0
        with rank_status.waiting(what, rank, among):
            while not request.Test():
                looks += 1
                time.sleep(0 if looks < _EAGER else min(0.0005, 1e-6 * looks))

    def exchange(self, parts: Sequence[Array], ranks: Sequence[int]) -> list[Array]:
        return self.met("exchange", parts, ranks)

    def met(self, kind: str, parts: Sequence[Array], ranks: Sequence[int]) -> list[Array]:
        """Do what `exchange` does, for a collective whose name and parameters are `kind`."""
        self._announced(kind, np.empty(0, np.uint8), ranks)
        return self._exchange(kind, parts, ranks)

    def _exchange(self, kind: str, parts: Sequence[Array], ranks: Sequence[int]) -> list[Array]:
        """Exchange parts with ranks that have agreed about it."""
        way = self._communicator(ranks)
        heads = np.array([_head(p) for p in parts], np.int64)
        came = np.empty_like(heads)
        other = ranks[0] if ranks[0] != self.rank else ranks[-1]
        self._wait(way.Ialltoall(heads, came), kind, other, ranks)
        found = [_of_head(h) for h in came]
        requests, own = [], ranks.index(self.rank)
        for k, array in enumerate(found):
            if k != own:
                requests.append((way.Irecv(_bytes(array), k, 1), ranks[k]))
        kept = [np.ascontiguousarray(p) for p in parts]
        for k, part in enumerate(kept):
            if k != own:
                requests.append((way.Isend(_bytes(part), k, 1), ranks[k]))
        for request, rank in requests:
            self._wait(request, kind, rank)
        found[own] = np.array(parts[own], copy=True)
        return found

    def all_reduce(self, array: Array, op: str, ranks: Sequence[int]) -> Array:
        kind, count = f"all_reduce {op}", len(ranks)
        parts = self._announced(kind, array, ranks)
        if parts is not None:
            return reduced(parts, op)
        if array.nbytes <= SMALL:
            return reduced(self._exchange(kind, [array] * count, ranks), op)
        flat = np.ascontiguousarray(array).reshape(-1)
        ends = [flat.size * k // count for k in range(count + 1)]
        own = reduced(self._exchange(kind, [flat[a:b] for a, b in zip(ends, ends[1:])], ranks), op)
        whole: Array = np.concatenate(self._exchange(kind, [own] * count, ranks)).reshape(array.shape)
        return whole

    def all_gather(self, array: Array, axis: int, ranks: Sequence[int]) -> Array:
        kind = f"all_gather (axis {axis})"
        parts = self._announced(kind, array, ranks)
        return np.concatenate(self._exchange(kind, [array] * len(ranks), ranks) if parts is None else parts, axis)

    def _announced(self, kind: str, array: Array, ranks: Sequence[int]) -> list[Array] | None:
        """Compare what all ranks do; return their arrays where these fit into the packet."""
        way, head = self._communicator(ranks), np.array(_head(array), np.int64).view(np.uint8)
        start, fits = _KIND + head.size, array.nbytes <= _TINY
        packet = np.zeros(start + _TINY, np.uint8)
        packet[:_KIND] = np.frombuffer(kind.encode().ljust(_KIND, b"\0"), np.uint8)
        packet[_KIND:start] = head
        if fits:
            packet[start : start + array.nbytes] = _bytes(np.ascontiguousarray(array))
        came = np.empty((len(ranks), packet.size), np.uint8)
        other = ranks[0] if ranks[0] != self.rank else ranks[-1]
        self._wait(way.Iallgather(packet, came), kind, other, ranks)
        heads = []
        for rank, one in zip(ranks, came):
            theirs = one[:_KIND].tobytes().rstrip(b"\0").decode()
            if theirs != kind:
                raise apart(self.rank, kind, rank, theirs)
            heads.append(one[_KIND:start])
        if any(not np.array_equal(h, head) for h in heads):
            shown = [_of_head(h.view(np.int64)) for h in heads]
            own = ranks.index(self.rank)
            alike(kind, [shown[own], *shown], [self.rank, *ranks])
        if not fits:
            return None
        whole = came[:, start : start + array.nbytes]
        return [one.copy().view(array.dtype).reshape(array.shape) for one in whole]

    def barrier(self, ranks: Sequence[int]) -> None:
        self._announced("barrier", np.empty(0, np.uint8), ranks)

    def send(self, array: Array, rank: int, tag: int = 0) -> None:
        self._known(rank)
        if rank == self.rank:
            self._own.setdefault(tag, deque()).append(np.array(array, copy=True))
            return
        self._sent = [(r, kept) for r, kept in self._sent if not r.Test()]
        data = np.frombuffer(np.array(_head(array), np.int64).tobytes() + array.tobytes(), np.uint8)
        self._sent.append((self._world.Isend(data, rank, 2 + tag), data))

    def receive(self, rank: int, tag: int = 0) -> Array:
        self._known(rank)
        if rank == self.rank:
            if not self._own.get(tag):
                raise RuntimeError(f"rank {rank} has sent itself nothing with tag {tag}: it would wait for ever")
            return self._own[tag].popleft()
        status, looks = self._mpi.Status(), 0
        with rank_status.waiting("receive", rank):
            while not self._world.Iprobe(rank, 2 + tag, status):
                looks += 1
                time.sleep(0 if looks < _EAGER else min(0.0005, 1e-6 * looks))
        data = np.empty(status.Get_count(self._mpi.BYTE), np.uint8)
        self._world.Recv(data, rank, 2 + tag)
        result = _of_head(data[: 8 * _HEADER].view(np.int64))
        _bytes(result)[:] = data[8 * _HEADER :]
        return result

    def _known(self, rank: int) -> None:
        if not 0 <= rank < self.size:
            raise ValueError(f"there is no rank {rank} among {self.size}")

    def close(self) -> None:
        """Wait until what was sent has gone, unless this rank fails."""
        if os.getpid() == self._process and not rank_status.reason():
            for request, _ in self._sent:
                request.Wait()
            self._sent = []


_NAMES = (
    "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 bfloat16 float32 float64 complex64 complex128"
).split()


def _head(array: Array) -> list[int]:
    if array.ndim > _HEADER - 2:
        raise ValueError(f"MPI: arrays of up to {_HEADER - 2} axes go between ranks, not {array.ndim}")
    name = from_any(array.dtype).name
    if name not in _NAMES:
        raise TypeError(f"MPI: elements of type {name} do not go between ranks; sockets carry them")
    return [_NAMES.index(name), array.ndim, *array.shape, *[0] * (_HEADER - 2 - array.ndim)]


def _of_head(head: Array) -> Array:
    kind, axes, *sizes = head.tolist()
    return np.empty(tuple(sizes[:axes]), from_any(_NAMES[kind]).numpy)


def _bytes(array: Array) -> Array:
    raw: Array = array.reshape(-1).view(np.uint8)
    return raw
