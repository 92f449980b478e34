"""Sharded tensors and parameters: each rank holds its shard; the whole is gathered when asked for.

A parameter that a divided program has written stays divided between calls. It becomes an ordinary
tensor, whole on every rank, when its value is asked for, which all ranks have to do at the same
place, as the parts are gathered from them.

Of a tensor that a divided program reads and does not write there may be pieces beside the value.
Whoever asks for its buffer may change what is in it, now or later, so the pieces are dropped then.
They are kept only while nothing but the tensor refers to the buffer: no array, view or recording.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.transforms.partition import Sharding, joined, local_type, whole
from mycel._src.compiler.transforms.partition.tensor_sharding import static
from mycel._src.compiler.transport.current_transport import transport
from mycel._src.engines import buffers
from mycel._src.engines.base import Spread
from mycel._src.foundation.errors import ShapeError
from mycel._src.foundation.python_runtime.reference_counts import ONE_OWNER
from mycel._src.tensors.core.absent_values import value_later
from mycel._src.tensors.core.parameter import Declared, Parameter
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["GivenParts", "Held", "gathered", "held", "hold", "keep_piece", "kept_piece", "whole_value"]


class Held(NamedTuple):
    """What there is of a tensor here, and how the tensor is laid out on a mesh.

    A `piece` is the buffer of this rank's part, or the parts of the devices of this process. In a
    pipeline `groups` are the meshes of all stages, of which `homes` have the tensor; elsewhere
    there is no piece. Where the stages are devices of this process, `copies` has the parts on each
    of the `homes`, and `piece` those on the first.
    """

    piece: Any
    layout: Sharding
    mesh: Mesh
    homes: tuple[Mesh, ...] = ()
    groups: tuple[Mesh, ...] = ()
    copies: tuple[Spread, ...] = ()

    @property
    def is_everywhere(self) -> bool:
        """Whether every rank has all of the tensor."""
        return self.layout.is_whole and self.homes == self.groups


def _gathered(tensor: Tensor, own: Held, into: np.ndarray[Any, Any] | None = None) -> np.ndarray[Any, Any]:
    """Return all of a tensor's value, in the array `into` if one is given."""
    mesh = own.mesh
    if own.piece is None:
        place = mesh.devices.index(transport().rank)
        return transport().receive(own.homes[0].devices[place], _MOVED)
    if isinstance(own.piece, Spread):
        if own.layout.is_whole:
            return np.asarray(own.piece.own())
        value = gathered(own.piece, own.layout, mesh)
    else:
        value = _of_ranks(tensor, own, into)
    if own.homes and not own.copies and mesh == own.homes[0]:
        place = mesh.devices.index(transport().rank)
        for other in own.groups:
            if other not in own.homes:
                transport().send(value, other.devices[place], _MOVED)
    return value


# What ranks exchange at once of a tensor: at most so many bytes of all, and a share of a large one.
_LEAST, _MOST, _SHARE = 1 << 20, 1 << 23, 32


def _of_ranks(tensor: Tensor, own: Held, into: np.ndarray[Any, Any] | None) -> np.ndarray[Any, Any]:
    """Return all of a tensor's value from the parts of ranks, which exchange it block by block, so
    that there is little more than the value.
    """
    part = buffers.to_array(own.piece, local_type(tensor._type, own.layout))
    made = np.empty(static(tensor._type), part.dtype) if into is None else into
    if own.layout.partial:
        raise ShapeError(f"parts laid out as {own.layout} are no whole tensor yet")
    most = min(_MOST, max(_LEAST, made.nbytes // _SHARE)) // (own.mesh.size * part.itemsize)
    devices = own.mesh.devices
    joined(made, own.layout, own.mesh, max(1, most), lambda at: transport().all_gather_list(part[at], devices))
    return made


def _joined(tensor: Tensor, own: Held) -> Any:
    if own.piece is None or isinstance(own.piece, Spread):
        return buffers.from_array(_gathered(tensor, own))
    made = buffers.empty(int(tensor._type.nbytes))
    _gathered(tensor, own, buffers.to_array(made, tensor._type))
    return made


_MOVED = (1 << 20) + 5  # the tag of values that a stage of a pipeline sends to others


class _Apart:
    __slots__ = ()
    _settled: type

    @property
    def _buf(self) -> Any:
        later = value_later(self)  # type: ignore[arg-type]
        if later is not None:
            return later
        own = self.__dict__.get("_held")
        if own is not None:
            self._buf = _joined(self, own)  # type: ignore[arg-type]
        else:
            _settle(self)
        return _BUFFER.__get__(self)

    @_buf.setter
    def _buf(self, buffer: Any) -> None:
        _BUFFER.__set__(self, buffer)
        _settle(self)


def _settle(tensor: Any) -> None:
    object.__setattr__(tensor, "__class__", tensor._settled)
    tensor.__dict__.pop("_held", None)
    tensor.__dict__.pop("_pieces", None)


class ApartTensor(_Apart, Tensor):
    """A tensor that the ranks have apart; then its class is `Tensor`."""

    __slots__ = ()
    _settled = Tensor


class ApartParameter(_Apart, Parameter):
    """A parameter that the ranks have apart; then its class is `Parameter`."""

    __slots__ = ()
    _settled = Parameter


_BUFFER: Any = Tensor.__dict__["_buf"]
_CLASSES: dict[type, type[_Apart]] = {Tensor: ApartTensor, Parameter: ApartParameter, Declared: ApartParameter}
for _class in _CLASSES.values():
    _class.__name__ = _class.__qualname__ = _class._settled.__name__


def held(tensor: Tensor) -> Held | None:
    """Return this rank's part of a tensor that the ranks have apart; None for any other."""
    return tensor.__dict__.get("_held") if isinstance(tensor, _Apart) else None


def gathered(piece: Spread, layout: Sharding, mesh: Mesh) -> np.ndarray[Any, Any]:
    """Return all of a value whose parts are on the devices of a mesh."""
    by_rank = dict(zip(sorted(mesh.devices), piece.parts()))
    return whole([by_rank[rank] for rank in mesh.devices], layout, mesh)


def whole_value(tensor: Tensor) -> np.ndarray[Any, Any]:
    """Return all of a tensor's value as an array.

    Where the ranks have it apart all of them have to ask, and it stays divided.
    """
    own = held(tensor)
    return tensor.asnumpy() if own is None else _gathered(tensor, own)


def hold(tensor: Tensor, own: Held, lazily: bool = False) -> None:
    """Give a tensor a value of which there is a piece here.

    A whole one is its value at once, unless it may be fetched `lazily`.
    """
    kind = type(tensor)
    if own.is_everywhere and not lazily:
        tensor._buf = own.piece
        return
    if kind not in (*_CLASSES, *_CLASSES.values()):
        tensor._buf = _joined(tensor, own)
        return
    if kind in _CLASSES:
        object.__setattr__(tensor, "__class__", _CLASSES[kind])
    _BUFFER.__set__(tensor, None)
    for name in ("_pieces", "init", "reserved"):
        tensor.__dict__.pop(name, None)
    tensor.__dict__["_held"] = own


def kept_piece(tensor: Tensor, place: Hashable) -> Any:
    """Return the piece of a tensor's present value that was kept for `place`; None where there is
    none.
    """
    found = tensor.__dict__.get("_pieces") if isinstance(tensor, _Apart) else None
    known = None if found is None else found.get(place)
    return None if known is None else known[0]


def keep_piece(tensor: Tensor, place: Hashable, piece: Any, program: Any) -> None:
    """Keep a piece for a `place` until the value may be another, or `program` is gone.

    It is not kept where others than the tensor refer to the value's buffer.
    """
    kind = type(tensor)
    if kind not in (*_CLASSES, *_CLASSES.values()) or kind is Declared or held(tensor) is not None:
        return
    buffer = _BUFFER.__get__(tensor)
    if sys.getrefcount(buffer) > ONE_OWNER or not buffers.is_own(buffer) or buffers.is_shared(buffer):
        return
    if kind in _CLASSES:
        tensor.__dict__["_pieces"] = {}
        object.__setattr__(tensor, "__class__", _CLASSES[kind])
    pieces = tensor.__dict__["_pieces"]
    pieces[place] = (piece, weakref.ref(program, functools.partial(pieces.pop, place)))


class GivenParts(list[Any]):
    """The tensors of a call of which ranks give parts; one that is a result is joined."""

    def __init__(
        self, tensors: list[Tensor], layouts: Sequence[Sharding], join: Callable[[Tensor, Sharding], Tensor]
    ) -> None:
        super().__init__(tensors)
        self.layouts, self.join = layouts, join

    def __getitem__(self, k: Any) -> Any:
        tensor = super().__getitem__(k)
        return tensor if self.layouts[k].is_whole else self.join(tensor, self.layouts[k])
