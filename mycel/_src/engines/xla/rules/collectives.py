"""XLA rules of collectives between the devices of one program, which all run it under `shard_map`.

There the devices lie on one axis, `AXIS`, and `scope.ranks` has the rank of each place on it. A
collective names ranks by the axes of its own mesh: they become groups of places, so that any mesh
of the same ranks can be used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.engines.xla.binding import jnp, lax
from mycel._src.engines.xla.rules.elementwise import narrow
from mycel._src.foundation.errors import Unsupported

__all__ = ["AXIS", "RULES"]

AXIS = "device"
_REDUCTIONS = {"sum": "psum", "max": "pmax", "min": "pmin"}
_COMBINED = {"prod": "prod", "any": "any", "all": "all"}


def _groups(scope: Any, mesh: Mesh, axes: tuple[str, ...]) -> list[list[int]]:
    """Return the places on `AXIS` of each set of peers, in the order of their positions."""
    places = {rank: place for place, rank in enumerate(scope.ranks)}
    if set(places) != set(mesh.devices):
        raise Unsupported(
            f"a collective over the ranks {sorted(mesh.devices)} in a program for the ranks {sorted(places)}: on XLA "
            "all devices of a program take part in each collective"
        )
    found = dict.fromkeys(mesh.peers(rank, axes) for rank in scope.ranks)
    return [[places[rank] for rank in peers] for peers in found]


def _summed(x: Any, function: Callable[[Any], Any]) -> Any:
    """Return a reduction of `x`; 16-bit floats are summed in float32."""
    return function(x.astype(jnp.float32)).astype(x.dtype) if narrow(x) else function(x)


def _all_reduce(scope: Any, node: Node, x: Any, *, mesh: Mesh, axes: tuple[str, ...], op: str) -> Any:
    groups = _groups(scope, mesh, axes)
    if op in _REDUCTIONS:
        reduction = getattr(lax, _REDUCTIONS[op])
        return _summed(x, lambda v: reduction(v, AXIS, axis_index_groups=groups))
    parts = lax.all_gather(x, AXIS, axis_index_groups=groups)
    return getattr(jnp, _COMBINED[op])(parts, axis=0).astype(x.dtype)


def _all_gather(scope: Any, node: Node, x: Any, *, mesh: Mesh, axes: tuple[str, ...], axis: int) -> Any:
    return lax.all_gather(x, AXIS, axis=axis, tiled=True, axis_index_groups=_groups(scope, mesh, axes))


def _reduce_scatter(scope: Any, node: Node, x: Any, *, mesh: Mesh, axes: tuple[str, ...], axis: int, op: str) -> Any:
    groups = _groups(scope, mesh, axes)
    if op == "sum":
        return _summed(
            x,
            lambda v: lax.psum_scatter(v, AXIS, scatter_dimension=axis, tiled=True, axis_index_groups=groups),
        )
    whole = _all_reduce(scope, node, x, mesh=mesh, axes=axes, op=op)
    size = x.shape[axis] // mesh.count(axes)
    start = _mesh_position(scope, node, mesh=mesh, axes=axes) * size
    return lax.dynamic_slice_in_dim(whole, start, size, axis)


def _all_to_all(scope: Any, node: Node, x: Any, *, mesh: Mesh, axes: tuple[str, ...], split: int, concat: int) -> Any:
    groups = _groups(scope, mesh, axes)
    return lax.all_to_all(x, AXIS, split, concat, tiled=True, axis_index_groups=groups)


def _permute(
    scope: Any, node: Node, x: Any, *, mesh: Mesh, axes: tuple[str, ...], pairs: tuple[tuple[int, int], ...]
) -> Any:
    groups = _groups(scope, mesh, axes)
    return lax.ppermute(x, AXIS, [(group[source], group[target]) for group in groups for source, target in pairs])


def _spread(scope: Any, node: Node, x: Any, *, mesh: Mesh, axes: tuple[str, ...], source: int) -> Any:
    groups = _groups(scope, mesh, axes)
    here = _mesh_position(scope, node, mesh=mesh, axes=axes) == source
    if x.dtype.kind == "c":
        return lax.all_gather(x, AXIS, axis_index_groups=groups)[source]
    # As whole numbers, so that every bit arrives.
    whole = np.dtype(f"u{x.dtype.itemsize}")
    bits = x.astype(whole) if x.dtype.kind == "b" else lax.bitcast_convert_type(x, whole)
    found = lax.psum(jnp.where(here, bits, jnp.zeros((), whole)), AXIS, axis_index_groups=groups)
    return found.astype(x.dtype) if x.dtype.kind == "b" else lax.bitcast_convert_type(found, x.dtype)


def _mesh_position(scope: Any, node: Node, *, mesh: Mesh, axes: tuple[str, ...]) -> Any:
    _groups(scope, mesh, axes)
    positions = np.array([mesh.position(rank, axes) for rank in scope.ranks], np.int64)
    return jnp.asarray(positions)[lax.axis_index(AXIS)]


RULES: dict[str, Callable[..., Any]] = {
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "permute": _permute,
    "spread": _spread,
    "mesh_position": _mesh_position,
}
