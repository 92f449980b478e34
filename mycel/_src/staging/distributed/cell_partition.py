"""How a compiled Cell is divided among devices, for programs that ask for its layouts.

The program of a Cell is divided when it is first asked for, by the settings under which it was
staged, unless calls of the Cell have done so. Ranks need not have been started.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.transforms.partition import Sharding, local_shape
from mycel._src.foundation.settings.parallel_settings import ParallelSettings
from mycel._src.staging.compiled.function_version import Version
from mycel._src.staging.distributed.parallel_modes import OfSettings, pipeline_of
from mycel._src.staging.distributed.strategy_files import chosen
from mycel._src.staging.distributed.strategy_layouts import mesh_of
from mycel._src.staging.distributed.version_partition import VersionParts, divide
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.cells.compatibility_methods import division
from mycel._src.tensors.core.parameter import Parameter

__all__ = ["Divided", "chosen_strategies", "divided", "parameter_layouts", "version_of"]


class Divided(NamedTuple):
    """The last program that a Cell was compiled to, divided on a mesh; of a pipeline, that of one
    stage.
    """

    version: Version
    parts: VersionParts
    mesh: Mesh

    @property
    def parameters(self) -> list[tuple[Parameter, Sharding]]:
        """The parameters of the program with their layouts."""
        captured = self.version.tensors
        layouts = self.parts.made.inputs[len(self.version.graph.inputs) - len(captured) :]
        return [(t, s) for t, s in zip(captured, layouts) if isinstance(t, Parameter)]


def version_of(cell: Cell) -> Version | None:
    """Return the last program that a Cell was compiled to, or that its calls among ranks have;
    None where it was not compiled as one graph.
    """
    compiled = cell.__dict__.get("_compiled_call")
    if compiled is None:
        return None
    if compiled.divided is not None and compiled.divided[1].programs:
        known: Version = compiled.divided[1].programs[-1][0]
        return known
    found: list[Version] = [v for versions in compiled.versions.values() for v in versions[:1]]
    return found[-1] if found else None


def divided(cell: Cell) -> Divided | None:
    """Return how the last program of a Cell is divided; None where it was not compiled, or not in
    a mode that divides.

    Raises ValueError where a strategy does not fit, as calls do.
    """
    version = version_of(cell)
    settings: ParallelSettings | None = None if version is None else version.plan
    if version is None or settings is None:
        return None
    if version.divided is None:
        version.divided = _divided(cell, version, settings)
    found: Divided = version.divided
    return found


def _divided(cell: Cell, version: Version, settings: ParallelSettings) -> Divided:
    compiled = cell.__dict__["_compiled_call"]
    for known, program in compiled.divided[1].programs if compiled.divided is not None else ():
        if known is version:
            return Divided(version, program.of, compiled.divided[1].layouts.mesh)
    pipeline = pipeline_of(settings)
    mesh = mesh_of(settings.device_num // (1 if pipeline is None else pipeline.stages))
    count = len(version.graph.inputs) - len(version.tensors)
    return Divided(version, divide(version, OfSettings(mesh, settings=settings), count, False), mesh)


def parameter_layouts(cell: Cell) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the layouts of the parameters of a compiled Cell, as MindSpore has them, and the names
    of all parameters of its program.

    A layout has the grid of devices, the axes of it that cut each axis of the parameter, counted
    from the last, with -1 for none and a list for several, the shape of a part, 0, whether all
    parts have that shape, "", and the shape of the parameter.
    """
    found = divided(cell)
    if found is None:
        return {}, ()
    known = {p.name: _layout(p, layout, found.mesh) for p, layout in found.parameters if p.ndim}
    return known, tuple([p.name for p, _ in found.parameters])


def _layout(parameter: Parameter, layout: Sharding, mesh: Mesh) -> tuple[Any, ...]:
    cut: list[list[int]] = [[] for _ in range(parameter.ndim)]
    for part in layout.parts:
        cut[part.axis] += [mesh.names.index(name) for name in part.mesh_axes]
    grid, places = _joined(list(mesh.sizes), cut)
    maps: list[Any] = []
    for axes in places:
        numbers = [len(grid) - 1 - a for a in axes]
        maps.append(-1 if not numbers else numbers[0] if len(numbers) == 1 else numbers)
    shape = tuple(parameter.shape)
    return grid, maps, list(local_shape(shape, layout)), 0, layout.is_even, "", list(shape)


def _joined(grid: list[int], cut: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """Return a grid of fewer axes that says the same, where axes go together.

    `cut` has the axes of the grid that cut each axis of a tensor, the last one fastest.
    """
    used = {a for axes in cut for a in axes}
    followers = {(a, b) for axes in cut for a, b in zip(axes, axes[1:])}
    sizes: list[int] = []
    place: dict[int, int] = {}
    for a, size in enumerate(grid):
        together = a > 0 and ((a - 1, a) in followers or not {a - 1, a} & used)
        if together:
            sizes[-1] *= size
        else:
            sizes.append(size)
        place[a] = len(sizes) - 1
    return sizes, [list(dict.fromkeys([place[a] for a in axes])) for axes in cut]


def chosen_strategies(cell: Cell) -> dict[str, list[list[int]]]:
    """Return how the operators of a compiled Cell are divided (`operators.chosen`)."""
    found = divided(cell)
    return {} if found is None else chosen(found.version, found.parts)


division.layouts = parameter_layouts
