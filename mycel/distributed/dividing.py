"""The division of one version of a function: its graph for one rank, and what it writes where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mycel.base.errors import CompileError
from mycel.compiled.version import Version
from mycel.distributed.layouts import Layouts
from mycel.ir.graph import Graph
from mycel.transforms.partition import WHOLE, Partitioned, Sharding, partition
from mycel.transforms.partition.fusing import MOST_BYTES

__all__ = ["VersionParts", "divide"]


class VersionParts(NamedTuple):
    """A version divided on a mesh.

    `graph` is what was divided, the version's graph or one that does the same. `writes` has pairs
    of a tensor, by its number among arguments and captured tensors, and the output that becomes its
    value; `tied` has them by output.
    """

    graph: Graph
    made: Partitioned
    writes: Sequence[tuple[int, int]]
    tied: Mapping[int, int]


def divide(version: Version, layouts: Layouts, count: int, apart: bool, fused_bytes: int = MOST_BYTES) -> VersionParts:
    """Divide the graph of `version`, of which `count` inputs are arguments, by `layouts`.

    `apart` says whether a call gives parts of its arguments; `fused_bytes` is as for `partition`.
    Raises CompileError where the function would change or return what ranks have parts of.
    """
    graph, captured = version.graph, version.tensors
    inputs = [
        layouts.of_input(k, node.type) if k < count else layouts.of_captured(captured[k - count], node.type)
        for k, node in enumerate(graph.inputs)
    ]
    writes = [*version.argument_writes, *((count + i, place) for i, place in version.writes)]
    tied = {place: i for i, place in writes}
    outputs = [None if k in tied else WHOLE for k in range(len(graph.outputs))]
    graph, found, plan = layouts.decided(graph, inputs, outputs, tied)
    made = partition(graph, layouts.mesh, found, outputs, tied, plan, fused_bytes)
    if apart:
        _check_parts(version, made.inputs[:count])
    return VersionParts(graph, made, writes, tied)


def _check_parts(version: Version, arguments: Sequence[Sharding]) -> None:
    """Raise CompileError where a function would change or return what ranks have parts of.

    `arguments` are the layouts of the tensors in its arguments.
    """
    changed = [i for i, _ in version.argument_writes if not arguments[i].is_whole]
    if changed or (version.returns_given and any(not s.is_whole for s in arguments)):
        raise CompileError(
            f"{version.graph.name}: it writes into arguments, or returns a list or dict that it was given, of which "
            "each rank has a part; return new tensors"
        )
