"""Partitioning of one version of a function: one rank's graph, and what it writes where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.ir.symbol_binding import Binder
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.transforms.partition import WHOLE, Fusing, Partitioned, Sharding, partition
from mycel._src.compiler.transforms.specialize import specialize
from mycel._src.foundation.errors import CompileError, ShapeError
from mycel._src.staging.compiled.function_version import Version
from mycel._src.staging.distributed.layout_specs import Layouts
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["VersionParts", "divide", "is_static", "sizes_of"]


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

    @property
    def types(self) -> tuple[Any, ...]:
        """The types of the whole outputs."""
        return self.graph.output_types


def is_static(version: Version) -> bool:
    """Return whether the types of a version's inputs have no symbols."""
    return all(isinstance(t, TensorType) and t.is_static for t in version.graph.input_types)


def sizes_of(version: Version, tensors: Sequence[Tensor]) -> dict[str, int]:
    """Return the sizes of the symbols in the types of a version, as declared inputs have.

    `tensors` are those in the arguments of a call. Sizes that data decide are not among them.
    Raises ShapeError where they do not fit the version.
    """
    if is_static(version):
        return {}
    wanted = version.graph.input_types
    found = Binder(wanted)([t._type for t in (*tensors, *version.tensors)])
    if found is None:
        raise ShapeError(f"{version.graph.name}: the sizes of a call do not fit its declared inputs")
    return found


def divide(
    version: Version,
    layouts: Layouts,
    count: int,
    apart: bool,
    fusing: Fusing | None = None,
    sizes: Mapping[str, int] | None = None,
) -> VersionParts:
    """Divide the graph of `version`, of which `count` inputs are arguments, by `layouts`.

    `apart` says whether a call gives parts of its arguments; without `fusing` collectives are
    joined as `layouts` says. `sizes` are those of the symbols in the version's types. Raises
    CompileError where the function would change or return what ranks have parts of, and ShapeError
    where data decide sizes.
    """
    graph, captured = version.graph, version.tensors
    graph = specialize(graph, sizes) if sizes else graph
    inputs = [
        layouts.of_input(k, node.type) if k < count else layouts.of_captured(captured[k - count], node.type)
        for k, node in enumerate(graph.inputs)
    ]
    writes = [*version.argument_writes, *((count + i, place) for i, place in version.writes)]
    tied = {place: i for i, place in writes}
    outputs = [None if k in tied else WHOLE for k in range(len(graph.outputs))]
    graph, found, plan = layouts.decided(graph, inputs, outputs, tied)
    again = [count + k for k, tensor in enumerate(captured) if layouts.again(tensor)]
    made = partition(
        graph, layouts.mesh, found, outputs, tied, plan, fusing or layouts.fusing, again, layouts.wide_sums
    )
    if apart:
        _check_parts(version, made.inputs[:count])
    parts = VersionParts(graph, made, writes, tied)
    layouts.made(version, parts)
    return parts


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
