"""Tensors whose values the ranks have apart: each has the part that the layout says.

A parameter that a divided program has written stays divided between calls. It becomes an ordinary
tensor, whole on every rank, when its value is asked for, which all ranks have to do at the same
place, as the parts are gathered from them.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

from mycel.core.parameter import Parameter
from mycel.core.tensor import Tensor
from mycel.engines import buffers
from mycel.ir.mesh import Mesh
from mycel.transforms.partition import Sharding, local_type, shard, whole
from mycel.transport.place import transport

__all__ = ["Held", "buffer_of", "held", "hold", "part_of_value"]


class Held(NamedTuple):
    """A rank's part of a tensor: its buffer, and how the tensor is laid out on a mesh.

    In a pipeline `groups` are the meshes of all stages, of which `homes` have the tensor; elsewhere
    the buffer is None.
    """

    buffer: Any
    layout: Sharding
    mesh: Mesh
    homes: tuple[Mesh, ...] = ()
    groups: tuple[Mesh, ...] = ()

    @property
    def is_everywhere(self) -> bool:
        """Whether every rank has all of the tensor."""
        return self.layout.is_whole and self.homes == self.groups


def _joined(tensor: Tensor, own: Held) -> Any:
    kind = tensor._type
    if own.buffer is None:
        place = own.mesh.devices.index(transport().rank)
        return buffers.from_array(transport().receive(own.homes[0].devices[place], _MOVED))
    part = buffers.to_array(own.buffer, local_type(kind, own.layout))
    parts = transport().all_gather_list(part, own.mesh.devices)
    value = whole(parts, own.layout, own.mesh)
    if own.homes and own.mesh == own.homes[0]:
        place = own.mesh.devices.index(transport().rank)
        for mesh in own.groups:
            if mesh not in own.homes:
                transport().send(value, mesh.devices[place], _MOVED)
    return buffers.from_array(value)


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


def hold(tensor: Tensor, own: Held) -> None:
    """Give a tensor a value of which this rank has a part; a whole one is its value at once."""
    kind = type(tensor)
    if own.is_everywhere or kind not in (*_CLASSES, *_CLASSES.values()):
        tensor._buf = own.buffer if own.is_everywhere else _joined(tensor, own)
        return
    if kind in _CLASSES:
        _BUFFER.__set__(tensor, None)
        object.__setattr__(tensor, "__class__", _CLASSES[kind])
    tensor.__dict__["_held"] = own


def buffer_of(tensor: Tensor) -> Any:
    """Return the buffer of a tensor's value as this rank has it."""
    if tensor._buf is None:
        tensor._need_value("a divided function")
    return tensor._buf


def part_of_value(tensor: Tensor, layout: Sharding, mesh: Mesh) -> Any:
    """Return a buffer of this rank's part of a tensor's value in a layout.

    What the ranks have in this layout already is taken as it is; other values are whole on every
    rank, or become so, and are cut.
    """
    own = held(tensor)
    if own is not None and own.layout == layout and own.mesh == mesh and own.buffer is not None:
        return own.buffer
    buffer = buffer_of(tensor)
    if layout.is_whole:
        return buffer
    return buffers.from_array(shard(buffers.to_array(buffer, tensor._type), layout, mesh, transport().rank))
