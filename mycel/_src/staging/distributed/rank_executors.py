"""Executors of a rank's graph: ranks as processes or threads, or devices of one or more processes.

A *piece* is what an executor has of a value: this rank's buffer, or the parts of all devices
together (`engines.base.Spread`). All executors are used in the same way, so callers do not tell
them apart.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.transforms.partition import Sharding, local_type, places_along, places_of, shard, whole
from mycel._src.compiler.transforms.partition.tensor_sharding import static
from mycel._src.compiler.transport.current_transport import transport
from mycel._src.engines import base, buffers
from mycel._src.engines.select import compile_graph, engine
from mycel._src.staging.distributed.layout_specs import one_part
from mycel._src.staging.distributed.rank_agreement import agree
from mycel._src.staging.distributed.sharded_tensors import Held, gathered, held, hold, keep_piece, kept_piece
from mycel._src.tensors.core.parameter import Declared, Reserved
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["Executor", "OfDevices", "OfProcesses", "OfRanks", "executor_for", "value_of"]

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
    def drawn(self, type: TensorType, values: Reserved, layout: Sharding) -> Any:
        """Return the piece in a layout of a tensor of a type, of values that are reserved."""

    @abstractmethod
    def own(self, piece: Any) -> Any:
        """Return the buffer of a piece that is whole on every rank."""

    @property
    @abstractmethod
    def available(self) -> int:
        """How many ranks there are."""

    @abstractmethod
    def given(self, tensor: Tensor, layout: Sharding) -> Any:
        """Return the piece of a tensor in the arguments of a call, which gives a part of it."""

    @abstractmethod
    def joined(self, tensor: Tensor, layout: Sharding) -> Tensor:
        """Return the whole of a tensor in the arguments of a call, which gives a part of it."""

    def given_count(self, axes: Sequence[str]) -> int:
        """Return how many of the parts along mesh axes a call gives."""
        return one_part(axes)

    def piece(self, tensor: Tensor, layout: Sharding, reader: Any = None) -> Any:
        """Return the piece of a tensor's value in a layout.

        What is there in this layout already is taken as it is. Of values that are still to be drawn
        only the piece is drawn, and the tensor is divided from then on. Other values are whole, or
        become so, and are cut. The piece is kept for later calls of the program `reader`, if one is
        given, which must not write it.
        """
        known = held(tensor)
        if known is not None and known.layout == layout and known.mesh == self.mesh and known.piece is not None:
            return known.piece
        if isinstance(tensor, Declared) and tensor.reserved is not None and not layout.is_whole:
            drawn = self.drawn(tensor._type, tensor.reserved, layout)
            self.keep(tensor, drawn, layout)
            return drawn
        if reader is None or (self.is_apart and layout.is_whole):
            return self.cut(tensor, layout)
        place = (layout, self.mesh, self.is_apart, transport().rank)
        piece = kept_piece(tensor, place)
        if piece is None:
            piece = self.cut(tensor, layout)
            keep_piece(tensor, place, piece, reader)
        return piece

    def draw(self, type: TensorType, values: Reserved, layout: Sharding, rank: int, part: np.ndarray[Any, Any]) -> None:
        """Fill the part that a rank has in a layout of a tensor of a type with values."""
        values.fill_part(part, static(type), places_of(static(type), layout, self.mesh, rank))

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

    def drawn(self, type: TensorType, values: Reserved, layout: Sharding) -> Any:
        own = local_type(type, layout)
        made = buffers.empty(int(own.nbytes))
        self.draw(type, values, layout, transport().rank, buffers.to_array(made, own))
        return made

    def own(self, piece: Any) -> Any:
        return piece

    @property
    def available(self) -> int:
        return transport().size

    def given(self, tensor: Tensor, layout: Sharding) -> Any:
        return value_of(tensor)

    def joined(self, tensor: Tensor, layout: Sharding) -> Tensor:
        part = buffers.to_array(value_of(tensor), tensor._type)
        return Tensor.from_numpy(whole(transport().all_gather_list(part, self.mesh.devices), layout, self.mesh))


class OfDevices(Executor):
    """One program runs on all devices of this process."""

    is_apart = False

    @property
    def available(self) -> int:
        return engine().device_count()

    def entry(self, graph: Graph, aliases: Mapping[int, int]) -> Entry:
        return engine().together(graph, self.mesh, aliases).entry

    def cut(self, tensor: Tensor, layout: Sharding) -> base.Spread:
        array, own = buffers.to_array(value_of(tensor), tensor._type), engine().own_devices()
        ranks = sorted(self.mesh.devices)
        return engine().spread(self.mesh, [shard(array, layout, self.mesh, r) if r in own else None for r in ranks])

    def drawn(self, type: TensorType, values: Reserved, layout: Sharding) -> base.Spread:
        shape, here = static(local_type(type, layout)), engine().own_devices()
        parts = {rank: np.empty(shape, type.dtype.numpy) for rank in self.mesh.devices if rank in here}
        for rank, part in parts.items():
            self.draw(type, values, layout, rank, part)
        return engine().spread(self.mesh, [parts.get(rank) for rank in sorted(self.mesh.devices)])

    def own(self, piece: base.Spread) -> Any:
        return buffers.from_array(piece.own())

    def keep(self, tensor: Tensor, piece: Any, layout: Sharding) -> None:
        # Whole ones stay on the devices as well.
        hold(tensor, Held(piece, layout, self.mesh), lazily=True)

    def given(self, tensor: Tensor, layout: Sharding) -> base.Spread:
        return self.cut(tensor, layout)

    def joined(self, tensor: Tensor, layout: Sharding) -> Tensor:
        return tensor


class OfProcesses(OfDevices):
    """One program runs on the devices of all ranks, each of which is a process with some of them.

    A call gives what the devices of its process have of its arguments. The ranks meet before each
    run, so that one that does not come, or runs something else, is named.
    """

    is_apart = True

    def entry(self, graph: Graph, aliases: Mapping[int, int]) -> Entry:
        run = super().entry(graph, aliases)
        kinds = sorted([f"{node.prim} {node.type}" for node in graph.nodes])
        number = zlib.crc32(repr((graph.name, graph.input_types, graph.output_types, kinds)).encode())

        def entry(*pieces: Any) -> tuple[Any, ...]:
            agree(number)
            return run(*pieces)

        return entry

    def given_count(self, axes: Sequence[str]) -> int:
        return len(self._places(axes))

    def _places(self, axes: Sequence[str]) -> range:
        """Return which of the parts along mesh axes the devices of this process have.

        Raises ValueError where they are not neighbours, or other processes have other numbers of
        them.
        """
        mesh, count = self.mesh, len(engine().own_devices())
        places: dict[int, set[int]] = {}
        for device in mesh.devices:
            places.setdefault(device // count, set()).add(mesh.position(device, axes))
        lines = {process: range(min(found), max(found) + 1) for process, found in places.items()}
        if any(len(lines[p]) != len(places[p]) for p in lines) or len({len(line) for line in lines.values()}) > 1:
            raise ValueError(
                f"the devices of the ranks have the parts {list(map(sorted, places.values()))} along {tuple(axes)}: a "
                "rank can give its parts of an argument where they are neighbours, and as many for each rank; give "
                "whole arguments (dataset_strategy='full_batch', or no `Layouts.parts`)"
            )
        return lines[transport().rank]

    def given(self, tensor: Tensor, layout: Sharding) -> base.Spread:
        mesh, own = self.mesh, engine().own_devices()
        here = [rank for rank in sorted(mesh.devices) if rank in own]
        array = buffers.to_array(value_of(tensor), tensor._type)
        parts = dict.fromkeys(here, array)
        for axis in {cut.axis for cut in layout.parts}:
            names = tuple([name for cut in layout.parts if cut.axis == axis for name in cut.mesh_axes])
            size = array.shape[axis] // len(self._places(names)) * mesh.count(names)
            places = {rank: places_along(size, axis, layout, mesh, rank)[0] for rank in here}
            first = min(int(found[0]) for found in places.values())
            parts = {rank: parts[rank].take(places[rank] - first, axis) for rank in here}
        return engine().spread(mesh, [parts.get(rank) for rank in sorted(mesh.devices)])

    def joined(self, tensor: Tensor, layout: Sharding) -> Tensor:
        return Tensor.from_numpy(gathered(self.given(tensor, layout), layout, self.mesh))


def executor_for(mesh: Mesh, groups: int = 1) -> Executor:
    """Return who runs programs for a mesh, or for as many `groups` of its size: devices of this
    process where it is alone and has them; those of all ranks where they work together, each has
    some of the mesh's, and there is one group; else ranks.
    """
    here, count = transport().size, engine().device_count()
    if here == 1:
        return OfDevices(mesh) if count >= mesh.size * groups > 1 else OfRanks(mesh)
    own = len(engine().own_devices())
    if groups == 1 and own < count > max(mesh.devices) and len({d // own for d in mesh.devices}) == here:
        return OfProcesses(mesh)
    return OfRanks(mesh)
