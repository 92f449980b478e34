"""The movement of tensors between the members of a group, from which all operations are composed.

`Alone` is a group of one process: values stay where they are. `Several` applies the primitives of
`prims.distributed.collectives` along a mesh of one axis, which has the group's members as its
devices. So operations run at once, are recorded for gradients and staged into graphs like any
other, and their derivatives are those of the primitives. As of any operation, what nobody uses of a
graph is not computed: ranks that run different graphs must use the same collectives. What has no
result to stage (sending, objects, barriers) asks for values, so that a compiled function runs in
segments there.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.distributed import collectives
from mycel._src.compiler.transport.base import alike
from mycel._src.compiler.transport.current_transport import transport
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["Alone", "Exchanges", "Several"]

_AXES = ("group",)
_OBJECTS = (1 << 20) + 2  # the tag of messages with objects
_SENT = (1 << 20) + 3


class Exchanges(Protocol):
    """The movement of values between the members of a group; ranks are those in the group."""

    def reduce(self, value: Tensor, operation: str) -> Tensor:
        """Return the sum, product, largest, smallest or mean of all members' values."""

    def gather(self, value: Tensor) -> list[Tensor]:
        """Return every member's value, in the order of ranks."""

    def gather_rows(self, value: Tensor, rows: Sequence[int]) -> Tensor:
        """Return the rows of all members' values, of which they have `rows`."""

    def scatter_rows(self, value: Tensor, rows: Sequence[int], operation: str) -> Tensor:
        """Return this process's `rows` of what `reduce` gives."""

    def exchange(self, parts: Sequence[Tensor], received: Sequence[tuple[int, ...]]) -> list[Tensor]:
        """Return the parts for this process, one from each member, of the shapes `received`."""

    def broadcast(self, value: Tensor, source: int) -> Tensor:
        """Return one member's value; all have one shape."""

    def collect(self, value: Tensor, target: int) -> list[Tensor]:
        """Return all members' values in the member of rank `target`, and nothing elsewhere.

        They have no derivative.
        """

    def at(self, place: int, value: Tensor, other: Tensor) -> Tensor:
        """Return `value` in the member of rank `place`, and `other` elsewhere.

        All members use both, as all must call what makes `value`.
        """

    def gather_objects(self, value: Any) -> list[Any]:
        """Return copies of every member's object, made by pickling."""

    def send_object(self, value: Any, target: int) -> None:
        """Send a copy of an object to a member."""

    def receive_object(self, source: int) -> Any:
        """Return the object that a member sent."""

    def send(self, value: Tensor, target: int, tag: int) -> None:
        """Send a value to a member."""

    def receive(self, like: Tensor, source: int, tag: int) -> Tensor:
        """Return the value that a member sent, which is of the type of `like`."""

    def barrier(self) -> None:
        """Wait until all members have called this."""


class Alone:
    """The movement of values in a group of one process: they stay where they are."""

    def reduce(self, value: Tensor, operation: str) -> Tensor:
        return value

    def gather(self, value: Tensor) -> list[Tensor]:
        return [value]

    def gather_rows(self, value: Tensor, rows: Sequence[int]) -> Tensor:
        return value

    def scatter_rows(self, value: Tensor, rows: Sequence[int], operation: str) -> Tensor:
        return value

    def exchange(self, parts: Sequence[Tensor], received: Sequence[tuple[int, ...]]) -> list[Tensor]:
        return list(parts)

    def broadcast(self, value: Tensor, source: int) -> Tensor:
        return value

    def collect(self, value: Tensor, target: int) -> list[Tensor]:
        return [value]

    def at(self, place: int, value: Tensor, other: Tensor) -> Tensor:
        return value

    def gather_objects(self, value: Any) -> list[Any]:
        return [pickle.loads(pickle.dumps(value))]

    def send_object(self, value: Any, target: int) -> None:
        raise AssertionError("a process does not send to itself")

    def receive_object(self, source: int) -> Any:
        raise AssertionError("a process does not receive from itself")

    def send(self, value: Tensor, target: int, tag: int) -> None:
        raise AssertionError("a process does not send to itself")

    def receive(self, like: Tensor, source: int, tag: int) -> Tensor:
        raise AssertionError("a process does not receive from itself")

    def barrier(self) -> None:
        return None


class Several:
    """The movement of values between the processes of the ranks `ranks`, this one among them."""

    def __init__(self, ranks: tuple[int, ...], own: int) -> None:
        self.ranks, self.own, self.size = ranks, own, len(ranks)
        self._over = {"mesh": Mesh((self.size,), _AXES, ranks), "axes": _AXES}

    def reduce(self, value: Tensor, operation: str) -> Tensor:
        if operation != "avg":
            return eager.apply(collectives.all_reduce, _counting(value, operation), **self._over, op=operation)
        return self._mean(eager.apply(collectives.all_reduce, _floating(value), **self._over, op="sum"))

    def _mean(self, value: Tensor) -> Tensor:
        count = eager.apply(E.cast, Tensor(np.float32(self.size)), dtype=value.dtype)
        return eager.apply(E.div, value, count)

    def gather(self, value: Tensor) -> list[Tensor]:
        row = eager.apply(S.RESHAPE, value, shape=(1, *value.shape))
        whole = eager.apply(collectives.all_gather, row, **self._over, axis=0)
        return [eager.apply(S.RESHAPE, _rows(whole, k, k + 1), shape=value.shape) for k in range(self.size)]

    def gather_rows(self, value: Tensor, rows: Sequence[int]) -> Tensor:
        if len(set(rows)) == 1:
            return eager.apply(collectives.all_gather, value, **self._over, axis=0)
        copies = eager.apply(S.CONCAT, *[value] * self.size, axis=0)
        return self._exchange(copies, (rows[self.own],) * self.size, tuple(rows))

    def scatter_rows(self, value: Tensor, rows: Sequence[int], operation: str) -> Tensor:
        if len(set(rows)) != 1:
            first = sum(rows[: self.own])
            return _rows(self.reduce(value, operation), first, first + rows[self.own])
        if operation != "avg":
            return eager.apply(
                collectives.reduce_scatter, _counting(value, operation), **self._over, axis=0, op=operation
            )
        return self._mean(eager.apply(collectives.reduce_scatter, _floating(value), **self._over, axis=0, op="sum"))

    def exchange(self, parts: Sequence[Tensor], received: Sequence[tuple[int, ...]]) -> list[Tensor]:
        sizes = [int(np.prod(shape)) for shape in received]
        sent = tuple([int(np.prod(p.shape)) for p in parts])
        flat = [eager.apply(S.RESHAPE, p, shape=(n,)) for p, n in zip(parts, sent)]
        whole = self._exchange(eager.apply(S.CONCAT, *flat, axis=0), sent, tuple(sizes))
        ends = np.cumsum(sizes).tolist()
        return [
            eager.apply(S.RESHAPE, _rows(whole, end - n, end), shape=tuple(shape))
            for shape, n, end in zip(received, sizes, ends)
        ]

    def _exchange(self, value: Tensor, sent: tuple[int, ...], received: tuple[int, ...]) -> Tensor:
        return eager.apply(collectives.exchange, value, **self._over, sent=sent, received=received)

    def broadcast(self, value: Tensor, source: int) -> Tensor:
        return eager.apply(collectives.spread, value, **self._over, source=source)

    def collect(self, value: Tensor, target: int) -> list[Tensor]:
        # Nobody but one member uses the values: in a graph the others would not compute them.
        array = _value(value, "gathering")
        empty = np.empty((0, *array.shape), array.dtype)
        found = transport().exchange([array[None] if k == target else empty for k in range(self.size)], self.ranks)
        if self.own != target:
            return []
        whole = alike("gather", found, self.ranks)
        return [_created(Tensor(np.array(part[0], copy=True))) for part in whole]

    def at(self, place: int, value: Tensor, other: Tensor) -> Tensor:
        here = eager.apply(E.eq, eager.apply(collectives.mesh_position, **self._over), Tensor(np.int64(place)))
        return eager.apply(E.SELECT, here, value, other)

    def gather_objects(self, value: Any) -> list[Any]:
        _at_once("the exchange of Python objects")
        found = transport().all_gather_list(_bytes(value), self.ranks)
        return [pickle.loads(f.tobytes()) for f in found]

    def send_object(self, value: Any, target: int) -> None:
        _at_once("the exchange of Python objects")
        transport().send(_bytes(value), self.ranks[target], _OBJECTS)

    def receive_object(self, source: int) -> Any:
        _at_once("the exchange of Python objects")
        return pickle.loads(transport().receive(self.ranks[source], _OBJECTS).tobytes())

    def send(self, value: Tensor, target: int, tag: int) -> None:
        transport().send(_value(value, "sending"), self.ranks[target], _SENT + tag)

    def receive(self, like: Tensor, source: int, tag: int) -> Tensor:
        _at_once("receiving")
        found = transport().receive(self.ranks[source], _SENT + tag)
        if found.shape != tuple(like.shape) or found.dtype != like.dtype.numpy:
            raise ValueError(
                f"recv: {found.dtype.name} {found.shape} came from rank {self.ranks[source]}, where {like._type} is "
                "awaited"
            )
        return _created(Tensor(found))

    def barrier(self) -> None:
        _at_once("a barrier")
        transport().barrier(self.ranks)


def _at_once(what: str) -> None:
    """Have everything before run before this rank talks to others outside of a graph."""
    staging = eager.local.staging if eager.active else None
    if staging is not None:
        staging.settle(f"{what} between processes")


def _value(value: Tensor, what: str) -> np.ndarray[Any, Any]:
    """Return the elements of a tensor, once everything before has run."""
    _at_once(what)
    staging = eager.local.staging if eager.active else None
    array: np.ndarray[Any, Any] = value.asnumpy() if staging is None else staging.need_value(value, what)
    return array


def _created(made: Tensor) -> Tensor:
    """Return a tensor of values that have come, which a function that is staged has made."""
    return eager.local.staging.created(made) if eager.active and eager.local.staging is not None else made


def _bytes(value: Any) -> np.ndarray[Any, Any]:
    return np.frombuffer(pickle.dumps(value), np.uint8)


def _rows(value: Tensor, start: int, stop: int) -> Tensor:
    rest = value.shape[1:]
    return eager.apply(S.SLICE, value, starts=(start, *(0 for _ in rest)), stops=(stop, *rest), steps=(1,) * value.ndim)


def _floating(value: Tensor) -> Tensor:
    if not value.dtype.is_floating:
        raise TypeError(f"avg: the mean of {value._type} over several processes is no whole number; convert to a float")
    return value


def _counting(value: Tensor, operation: str) -> Tensor:
    if value.dtype is D.bool_:
        raise TypeError(f"{operation}: truth values have no {operation}; convert them, to int32")
    return value
