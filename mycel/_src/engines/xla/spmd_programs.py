"""SPMD programs, which run on all devices of a mesh at once under `shard_map`.

The graph is that of one rank, which its collectives join with the others. XLA runs it under
`shard_map`, and its rules for collectives exchange values between the devices. So there is one call
and one program for all ranks. They are devices of this process, or of several (`multi_process.py`),
all of which make the same calls.

The values of one input on all devices are a `Spread`: one array of jax's whose first axis counts
the mesh's devices, each of which has its own row. They stay on their devices from call to call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import InconclusiveDimension
from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import TensorType
from mycel._src.engines import base
from mycel._src.engines.xla import multi_process
from mycel._src.engines.xla.binding import jax, jnp, target
from mycel._src.engines.xla.interpret import Scope, Site, evaluate, may_stop
from mycel._src.engines.xla.preparing import EXCHANGES, prepared
from mycel._src.engines.xla.program import options, raise_noted
from mycel._src.engines.xla.rules.collectives import AXIS
from mycel._src.foundation.bounded_caches import FEW, Remembered
from mycel._src.foundation.errors import ShapeError

__all__ = ["DeviceSpread", "DeviceTogether", "Mapped", "check_inputs", "check_static", "placement", "spread"]


class DeviceSpread(base.Spread):
    """The values of all ranks of a mesh: `found` is jax's array, whose rows are the devices'."""

    __slots__ = ("mesh", "found")

    def __init__(self, mesh: Mesh, found: Any) -> None:
        self.mesh, self.found = mesh, found

    def parts(self) -> list[np.ndarray[Any, Any]]:
        """Return the value of each rank as an array of NumPy's, in the order of ranks."""
        here = {rank: np.array(shard.data)[0] for rank, shard in self._shards().items()}
        found = multi_process.gathered(here, list(self.mesh.devices))
        return [found[rank] for rank in sorted(self.mesh.devices)]

    def part(self, rank: int) -> np.ndarray[Any, Any]:
        """Return the value of one rank as an array of NumPy's, without the others' values."""
        shards = self._shards()
        if rank not in shards:
            raise ValueError(f"rank {rank} is not a device of this process, which has {sorted(shards)}")
        found: np.ndarray[Any, Any] = np.array(shards[rank].data)[0]
        return found

    def own(self) -> np.ndarray[Any, Any]:
        return self.part(next(rank for rank in self.mesh.devices if rank in multi_process.own()))

    def _shards(self) -> dict[int, Any]:
        """Return what this process has, by rank."""
        return {self.mesh.devices[shard.index[0].start or 0]: shard for shard in self.found.addressable_shards}


_placements = Remembered[Any, Any]("placements on jax's devices", FEW)


def placement(mesh: Mesh) -> Any:
    """Return jax's sharding of a `Spread`; raise ValueError where there are too few devices."""
    return _placements.recall((mesh, target(), multi_process.are_met()), lambda: _placement(mesh))


def _placement(mesh: Mesh) -> Any:
    found = multi_process.every()
    if len(found) <= max(mesh.devices):
        raise ValueError(
            f"a mesh of the ranks {min(mesh.devices)} to {max(mesh.devices)} needs as many devices, but jax has "
            f"{len(found)}: set XLA_FLAGS=--xla_force_host_platform_device_count={max(mesh.devices) + 1} before the "
            "first program for so many on the processor"
        )
    line = jax.sharding.Mesh(np.array([found[rank] for rank in mesh.devices]), (AXIS,))
    return jax.sharding.NamedSharding(line, jax.sharding.PartitionSpec(AXIS))


def spread(mesh: Mesh, parts: Sequence[Any]) -> DeviceSpread:
    """Return the values of all ranks on their devices.

    `parts` has an array for each rank, in the order of ranks, or None for those of other processes.

    Raises ShapeError where they are not as many as the ranks, or differ in shape or element type.
    """
    arrays = [None if p is None else np.asarray(p) for p in parts]
    own, order = multi_process.own(), sorted(mesh.devices)
    kinds = {(a.shape, a.dtype) for a in arrays if a is not None}
    absent = [r for r, a in zip(order, arrays) if a is None and r in own]
    if len(arrays) != mesh.size or len(kinds) != 1 or absent:
        shown = ", ".join("none" if a is None else f"{a.dtype}{list(a.shape)}" for a in arrays)
        raise ShapeError(f"spread: {mesh.size} ranks need as many arrays of one type, not {shown}")
    if not multi_process.are_met():
        rows = np.stack([np.asarray(arrays[order.index(rank)]) for rank in mesh.devices])
        return DeviceSpread(mesh, jax.device_put(rows, placement(mesh)))
    by_place = [arrays[order.index(rank)] for rank in mesh.devices]
    (shape, _), sharding = next(iter(kinds)), placement(mesh)

    def row(index: Any) -> Any:
        return np.array(by_place[index[0].start or 0])[None]

    return DeviceSpread(mesh, jax.make_array_from_callback((mesh.size, *shape), sharding, row))


def check_static(graph: Graph) -> None:
    """Raise InconclusiveDimension for a graph with inputs of unknown sizes."""
    for kind in graph.input_types:
        if isinstance(kind, TensorType) and not kind.is_static:
            raise InconclusiveDimension(f"{graph.name}: the sizes of {kind} are not known")


def check_inputs(name: str, types: Sequence[Any], mesh: Mesh, arrays: Sequence[Any]) -> None:
    """Raise TypeError unless `arrays` are inputs of the graph `name`: its `types` on a `mesh`."""
    if len(arrays) != len(types):
        raise TypeError(f"{name} takes {len(types)} inputs, {len(arrays)} were given")
    for array, kind in zip(arrays, types):
        if array.shape[1:] != kind.shape or array.dtype != kind.dtype.numpy or len(array) != mesh.size:
            raise TypeError(f"{name} takes {kind} on {mesh.size} devices, not {array.dtype}{array.shape}")


class Mapped:
    """A prepared graph of one rank as a function of jax's arrays with a row for each device.

    `aliases` maps outputs to the inputs whose memory is donated to them.
    """

    def __init__(self, graph: Graph, mesh: Mesh, aliases: Mapping[int, int]) -> None:
        self.graph, self.mesh, self.aliases = graph, mesh, dict(aliases)
        self.sites: list[Site] = []
        self.stops = may_stop(graph)
        self.donated = sorted(set(self.aliases.values()))
        self.kept = [i for i in range(len(graph.inputs)) if i not in set(self.donated)]
        sharding = placement(mesh)
        rows = sharding.spec
        mapped = jax.shard_map(self._of_one, mesh=sharding.mesh, in_specs=(rows, rows), out_specs=rows, check_vma=False)
        self.function = jax.jit(mapped, donate_argnums=(0,), compiler_options=options())

    def _of_one(self, donated: Sequence[Any], kept: Sequence[Any]) -> list[Any]:
        """Return the rows of one device's results, and of its note, given those of its inputs."""
        arrays: list[Any] = [None] * len(self.graph.inputs)
        for places, values in ((self.donated, donated), (self.kept, kept)):
            for i, value in zip(places, values):
                arrays[i] = value[0]
        sites: list[Site] = []
        scope = Scope(sites, self.mesh.devices)
        results = evaluate(self.graph, arrays, scope)
        if self.stops:
            # What stops one device stops all.
            note = jax.lax.all_gather(scope.noted(), AXIS)
            first = note[jnp.argmax(note[:, 0] != 0)]
            for j, i in self.aliases.items():
                results[j] = jnp.where(first[0] == 0, results[j], arrays[i])
            results.append(first)
            self.sites = sites
        return [r[None] for r in results]

    def run(self, arrays: Sequence[Any]) -> tuple[list[Any], Any | None]:
        """Return the results, and the notes of what stopped the devices if it may stop."""
        found = self.function([arrays[i] for i in self.donated], [arrays[i] for i in self.kept])
        return (found[:-1], found[-1]) if self.stops else (found, None)

    def look(self, note: Any) -> None:
        """Raise the error of a note, if it is one."""
        raise_noted(self.sites, np.asarray(note.addressable_shards[0].data)[0])

    def text(self) -> str:
        """Return the program as XLA compiled it."""
        kinds: list[Any] = list(self.graph.input_types)
        rows = [jax.ShapeDtypeStruct((self.mesh.size, *t.shape), t.dtype.numpy) for t in kinds]
        lowered = self.function.lower([rows[i] for i in self.donated], [rows[i] for i in self.kept])
        return str(lowered.compile().as_text())


class DeviceTogether(base.Together):
    """The program of a graph of one rank, for all ranks of a mesh.

    `aliases` maps outputs to the inputs whose memory they take; those `Spread`s have the results
    afterwards. Raises Unsupported for what XLA cannot have, host steps included, and ValueError
    where the mesh has more devices than jax.
    """

    def __init__(self, graph: Graph, mesh: Mesh, aliases: Mapping[int, int]) -> None:
        check_static(graph)
        self.mesh, self.aliases, self.types = mesh, dict(aliases), list(graph.input_types)
        self.program = Mapped(prepared(graph, EXCHANGES), mesh, aliases)
        self.name, self.count = graph.name, len(graph.outputs)

    def entry(self, *given: Any) -> tuple[DeviceSpread, ...]:
        """Return the outputs of all ranks, given their inputs.

        Raises what the program of one rank raises, and TypeError for inputs of other types.
        """
        arrays = [g.found for g in given]
        check_inputs(self.name, self.types, self.mesh, arrays)
        for i in self.program.donated:
            if sum(a is arrays[i] for a in arrays) > 1:
                arrays[i] = jnp.copy(arrays[i])
        found, note = self.program.run(arrays)
        seen = {id(a) for a in arrays}
        results: list[DeviceSpread] = []
        for j, value in enumerate(found):
            if id(value) in seen:
                value = jnp.copy(value)
            seen.add(id(value))
            if j in self.aliases:
                given[self.aliases[j]].found = value
                results.append(given[self.aliases[j]])
            else:
                results.append(DeviceSpread(self.mesh, value))
        if note is not None:
            self.program.look(note)
        return tuple(results)

    def text(self) -> str:
        """Return the program as XLA compiled it, in which its communication can be counted."""
        return self.program.text()
