"""Who carries out a rank's graph: ranks that are processes or threads, or the devices of one
process.

A *piece* is what an executor has of a value: this rank's buffer, or the parts of all devices
together (`engines.base.Spread`). Both executors are used in the same way, so the rooms above do not
tell them apart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from mycel.core.tensor import Tensor
from mycel.distributed.apart import Held, held, hold
from mycel.engines import base, buffers
from mycel.engines.select import compile_graph, engine
from mycel.ir.graph import Graph
from mycel.ir.mesh import Mesh
from mycel.transforms.partition import Sharding, shard
from mycel.transport.place import transport

__all__ = ["Executor", "OfDevices", "OfRanks", "executor_for"]

Entry = Callable[..., tuple[Any, ...]]


class Executor(ABC):
    """Runs one rank's graph for all ranks of a mesh. `is_apart` says whether a call gives only this
    rank's part of its arguments.
    """

    is_apart: bool

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh

    @abstractmethod
    def entry(self, graph: Graph, aliases: Mapping[int, int]) -> Entry:
        """Return the function from pieces of a graph's inputs to pieces of its outputs."""

    @abstractmethod
    def cut(self, tensor: Tensor, layout: Sharding) -> Any:
        """Return the piece of a whole tensor in a layout."""

    @abstractmethod
    def own(self, piece: Any) -> Any:
        """Return the buffer of a piece that is whole on every rank."""

    def piece(self, tensor: Tensor, layout: Sharding) -> Any:
        """Return the piece of a tensor's value in a layout.

        What is there in this layout already is taken as it is; other values are whole, or become
        so, and are cut.
        """
        known = held(tensor)
        if known is not None and known.layout == layout and known.mesh == self.mesh and known.piece is not None:
            return known.piece
        return self.cut(tensor, layout)

    def keep(self, tensor: Tensor, piece: Any, layout: Sharding) -> None:
        """Give a tensor the value of a piece."""
        hold(tensor, Held(piece, layout, self.mesh))


def value_of(tensor: Tensor) -> Any:
    """Return the buffer of a tensor's value."""
    if tensor._buf is None:
        tensor._need_value("a divided function")
    return tensor._buf


class OfRanks(Executor):
    """Each rank runs its graph by itself, and exchanges values through the transport in force."""

    is_apart = True

    def entry(self, graph: Graph, aliases: Mapping[int, int]) -> Entry:
        program = compile_graph(graph, aliases)

        def run(*pieces: Any) -> tuple[Any, ...]:
            found = program(*pieces)
            return found if isinstance(found, tuple) else (found,)

        return run

    def cut(self, tensor: Tensor, layout: Sharding) -> Any:
        buffer = value_of(tensor)
        if layout.is_whole:
            return buffer
        array = buffers.to_array(buffer, tensor._type)
        return buffers.from_array(shard(array, layout, self.mesh, transport().rank))

    def own(self, piece: Any) -> Any:
        return piece


class OfDevices(Executor):
    """One program runs on all devices of this process."""

    is_apart = False

    def entry(self, graph: Graph, aliases: Mapping[int, int]) -> Entry:
        return engine().together(graph, self.mesh, aliases).entry

    def cut(self, tensor: Tensor, layout: Sharding) -> base.Spread:
        array = buffers.to_array(value_of(tensor), tensor._type)
        parts = [shard(array, layout, self.mesh, rank) for rank in sorted(self.mesh.devices)]
        return engine().spread(self.mesh, parts)

    def own(self, piece: base.Spread) -> Any:
        return buffers.from_array(piece.part(self.mesh.devices[0]))

    def keep(self, tensor: Tensor, piece: Any, layout: Sharding) -> None:
        # Whole ones stay on the devices as well.
        hold(tensor, Held(piece, layout, self.mesh), lazily=True)


def executor_for(mesh: Mesh, groups: int = 1) -> Executor:
    """Return who runs programs for a mesh, or for as many `groups` of its size: devices of this
    process where it is alone and has them, else ranks.
    """
    if transport().size == 1 and engine().device_count() >= mesh.size * groups > 1:
        return OfDevices(mesh)
    return OfRanks(mesh)
