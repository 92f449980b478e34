"""Cuts host arrays into shards by a layout and joins them, for checkpoints and tests.

A division reshapes an axis to the stretches before, of and after the part, pads the middle one with
copies of its last index, and takes the rank's share. So padding holds numbers that the array has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.transforms.partition.tensor_sharding import Part, Sharding, view_of
from mycel._src.foundation.errors import ShapeError

__all__ = ["shard", "whole"]

Array = np.ndarray[Any, Any]


def shard(array: Array, layout: Sharding, mesh: Mesh, rank: int) -> Array:
    """Return the part of an array that a rank has; padding repeats the last elements.

    `array` is the whole one, `layout` its layout on `mesh`, and `rank` one of the mesh's devices.

    >>> from mycel._src.compiler.transforms.partition import sharding
    >>> mesh = Mesh((2,), ("x",))
    >>> [shard(np.arange(5), sharding(mesh, (5,), ("x",)), mesh, r).tolist() for r in (0, 1)]
    [[0, 1, 2], [3, 4, 4]]
    """
    done: tuple[Part, ...] = ()
    for part in layout.parts:
        before, after = view_of(part, Sharding(done))
        split = array.reshape(*array.shape[: part.axis], before, part.size, after, *array.shape[part.axis + 1 :])
        first = mesh.position(rank, part.mesh_axes) * part.length
        own = np.minimum(np.arange(first, first + part.length), part.size - 1)
        taken = np.take(split, own, axis=part.axis + 1)
        shape = (*array.shape[: part.axis], before * part.length * after, *array.shape[part.axis + 1 :])
        array, done = taken.reshape(shape), (*done, part)
    return np.array(array, copy=True, order="C")


def places_of(shape: Sequence[int], layout: Sharding, mesh: Mesh, rank: int) -> list[Array | None]:
    """Return which elements of an array of `shape` a rank has, along each axis; None for all.

    >>> from mycel._src.compiler.transforms.partition import sharding
    >>> mesh = Mesh((2,), ("x",))
    >>> places_of((3, 4), sharding(mesh, (3, 4), (None, "x")), mesh, 1)
    [None, array([2, 3])]
    """
    found: list[Array | None] = []
    for axis, size in enumerate(shape):
        own = tuple([replace(part, axis=0) for part in layout.parts if part.axis == axis])
        found.append(shard(np.arange(size), Sharding(own), mesh, rank) if own else None)
    return found


def whole(parts: Sequence[Array], layout: Sharding, mesh: Mesh) -> Array:
    """Return the array whose parts the ranks have, without their padding.

    `parts` are in the order of `mesh.devices`, `layout` is the array's layout on `mesh`. Of ranks
    that have the same elements the first is believed. Raises ShapeError where parts are not as many
    as devices, or the layout is pending.

    >>> from mycel._src.compiler.transforms.partition import sharding
    >>> mesh = Mesh((2,), ("x",))
    >>> parts = [np.array([0, 1, 2]), np.array([3, 4, 4])]
    >>> whole(parts, sharding(mesh, (5,), ("x",)), mesh).tolist()
    [0, 1, 2, 3, 4]
    """
    if len(parts) != mesh.size or layout.pending:
        raise ShapeError(f"{len(parts)} parts laid out as {layout} are no whole array of {mesh.size} devices")
    at = dict(zip(mesh.devices, parts))
    left = layout
    while left.parts:
        part = left.parts[-1]
        left = Sharding(left.parts[:-1])
        before, after = view_of(part, left)
        joined = {}
        for rank in at:
            peers = [at[r] for r in mesh.peers(rank, part.mesh_axes)]
            lead, tail = peers[0].shape[: part.axis], peers[0].shape[part.axis + 1 :]
            split = [p.reshape(*lead, before, part.length, after, *tail) for p in peers]
            cut = np.concatenate(split, part.axis + 1)[(slice(None),) * (part.axis + 1) + (slice(part.size),)]
            joined[rank] = cut.reshape(*lead, before * part.size * after, *tail)
        at = joined
    return np.array(at[mesh.devices[0]], copy=True)
