"""Tensors whose values the ranks have apart: each has the part that the layout says.

A parameter that a divided program has written stays divided between calls. It becomes an ordinary
tensor, whole on every rank, when its value is asked for, which all ranks have to do at the same
place, as the parts are gathered from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Optional

import numpy as np

from mycel.core.parameter import Parameter
from mycel.core.tensor import Tensor
from mycel.engines import buffers
from mycel.engines.base import Spread
from mycel.ir.mesh import Mesh
from mycel.transforms.partition import Sharding, local_type, whole
from mycel.transport.place import transport

__all__ = ["GivenParts", "Held", "gathered", "held", "hold", "whole_value"]


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


def _gathered(tensor: Tensor, own: Held) -> np.ndarray[Any, Any]:
    mesh = own.mesh
    if own.piece is None:
        place = mesh.devices.index(transport().rank)
        return transport().receive(own.homes[0].devices[place], _MOVED)
    if isinstance(own.piece, Spread):
        if own.layout.is_whole:
            return np.asarray(own.piece.own())
        value = gathered(own.piece, own.layout, mesh)
    else:
        part = buffers.to_array(own.piece, local_type(tensor._type, own.layout))
        value = whole(transport().all_gather_list(part, mesh.devices), own.layout, mesh)
    if own.homes and not own.copies and mesh == own.homes[0]:
        place = mesh.devices.index(transport().rank)
        for other in own.groups:
            if other not in own.homes:
                transport().send(value, other.devices[place], _MOVED)
    return value


def _joined(tensor: Tensor, own: Held) -> Any:
    return buffers.from_array(_gathered(tensor, own))


_MOVED = (1 << 20) + 5  # the tag of values that a stage of a pipeline sends to others


class _Apart:
    __slots__ = ()
    _settled: type

    @property
    def _buf(self) -> Any:
        own = self.__dict__.get("_held")
        if own is not None:
            self._buf = _joined(self, own)  # type: ignore[arg-type]
        return _BUFFER.__get__(self)

    @_buf.setter
    def _buf(self, buffer: Any) -> None:
        _BUFFER.__set__(self, buffer)
        object.__setattr__(self, "__class__", self._settled)
        self.__dict__.pop("_held", None)


class ApartTensor(_Apart, Tensor):
    """A tensor that the ranks have apart; then its class is `Tensor`."""

    __slots__ = ()
    _settled = Tensor


class ApartParameter(_Apart, Parameter):
    """A parameter that the ranks have apart; then its class is `Parameter`."""

    __slots__ = ()
    _settled = Parameter


_BUFFER: Any = Tensor.__dict__["_buf"]
_CLASSES = {Tensor: ApartTensor, Parameter: ApartParameter}
for _base, _class in _CLASSES.items():
    _class.__name__ = _class.__qualname__ = _base.__name__


def held(tensor: Tensor) -> Optional[Held]:
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
        _BUFFER.__set__(tensor, None)
        object.__setattr__(tensor, "__class__", _CLASSES[kind])
    tensor.__dict__["_held"] = own


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
