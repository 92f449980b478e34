"""`mindspore.parallel.strategy`: the layouts of parameters in compiled Cells, by rank."""

from __future__ import annotations

from typing import Any, Optional

from mycel._src.compiler.ir.sharding.layout import Layout
from mycel._src.foundation import arguments
from mycel._src.foundation.settings.ignored_settings import without_effect
from mycel._src.staging.distributed.cell_partition import divided
from mycel._src.tensors.cells.cell import Cell

__all__: list[str] = []


def get_current_strategy_metadata(network: Any) -> dict[int, dict[str, list[tuple[Any, str, str]]]] | None:
    """Return, for the rank of the settings, the layout of each parameter of a network that was
    compiled in a parallel mode, with its name and element type; None before.

    >>> import mycel as ms
    >>> from mycel.compat.inner.parallel.strategy import get_current_strategy_metadata
    >>> get_current_strategy_metadata(ms.nn.Dense(2, 2)) is None
    True
    """
    found = divided(arguments.instance("get_current_strategy_metadata", "network", network, Cell))
    if found is None or found.version.plan is None:
        return None
    return get_strategy_metadata(network, found.version.plan.global_rank)


def get_strategy_metadata(
    network: Any, rank_id: int | None = None
) -> dict[int, dict[str, list[tuple[Any, str, str]]]] | None:
    """Return, by ranks, the layout of each parameter of a network that was compiled in a parallel
    mode, with its name and element type; None before. With `rank_id` they are of that rank alone.

    Raises TypeError for what is no Cell or no rank, ValueError for a rank that there is not.
    """
    owner = "get_strategy_metadata"
    arguments.instance(owner, "network", network, Cell)
    if rank_id is not None:
        arguments.integer(owner, "rank_id", rank_id)
    found = divided(network)
    if found is None:
        return None
    mesh = found.mesh
    if rank_id is not None and not 0 <= rank_id < mesh.size:
        raise arguments.wrong_value(owner, "rank_id", f"a rank from 0 to {mesh.size - 1}", rank_id)
    grid = Layout(mesh.sizes, mesh.names)
    known: dict[str, list[tuple[Any, str, str]]] = {}
    for parameter, layout in found.parameters:
        names: list[list[str]] = [[] for _ in range(parameter.ndim)]
        for part in layout.parts:
            names[part.axis] += part.mesh_axes
        said = [tuple(n) if len(n) > 1 else n[0] if n else "None" for n in names]
        known[parameter.name] = [(grid(*said) if said else grid, parameter.name, str(parameter.dtype))]
    return {rank: known for rank in (range(mesh.size) if rank_id is None else [rank_id])}


def enable_save_strategy_online() -> None:
    """Note, once, that layouts are known without being asked for before compilation."""
    without_effect("enable_save_strategy_online", "layouts are known of every compiled network")


def clear_strategy_metadata() -> None:
    """Do nothing: layouts are kept by the networks."""
