"""Cuts host arrays into shards by a layout and joins them, for checkpoints and tests.

A part is what lies at certain places along each axis (`places_of`). A division reshapes an axis to
the stretches before, of and after the part, pads the middle one with copies of its last index, and
takes the rank's share. So padding holds numbers that the array has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.transforms.partition.tensor_sharding import Part, Sharding, local_shape, view_of
from mycel._src.foundation.errors import ShapeError

__all__ = ["blocks", "joined", "places_along", "places_of", "shard", "whole"]

Array = np.ndarray[Any, Any]


def shard(array: Array, layout: Sharding, mesh: Mesh, rank: int) -> Array:
    """Return the part of an array that a rank has; padding repeats the last elements.

    `array` is the whole one, `layout` its layout on `mesh`, and `rank` one of the mesh's devices.

    >>> from mycel._src.compiler.transforms.partition import sharding
    >>> mesh = Mesh((2,), ("x",))
    >>> [shard(np.arange(5), sharding(mesh, (5,), ("x",)), mesh, r).tolist() for r in (0, 1)]
    [[0, 1, 2], [3, 4, 4]]
    """
    part = array
    for axis, own in enumerate(places_of(array.shape, layout, mesh, rank)):
        part = part if own is None else part.take(own, axis)
    return np.array(array, copy=True, order="C") if part is array else part


def places_of(shape: Sequence[int], layout: Sharding, mesh: Mesh, rank: int) -> list[Array | None]:
    """Return which elements of an array of `shape` a rank has in a `layout`, along each axis; None
    for all.

    >>> from mycel._src.compiler.transforms.partition import sharding
    >>> mesh = Mesh((2,), ("x",))
    >>> places_of((3, 4), sharding(mesh, (3, 4), (None, "x")), mesh, 1)
    [None, array([2, 3])]
    """
    cut = {part.axis for part in layout.parts}
    return [places_along(size, k, layout, mesh, rank)[0] if k in cut else None for k, size in enumerate(shape)]


def places_along(size: int, axis: int, layout: Sharding, mesh: Mesh, rank: int) -> tuple[Array, Array]:
    """Return which elements along an `axis` of `size` a `rank` of the `mesh` has in a `layout`, and
    of each whether it is no padding.
    """
    found, is_own = np.arange(size), np.ones(size, np.bool_)
    done: tuple[Part, ...] = ()
    for part in [p for p in layout.parts if p.axis == axis]:
        shape = (view_of(part, Sharding(done))[0], part.size, -1)
        first = mesh.position(rank, part.mesh_axes) * part.length
        own = np.arange(first, first + part.length)
        last = np.minimum(own, part.size - 1)
        found = found.reshape(shape).take(last, 1).reshape(-1)
        is_own = (is_own.reshape(shape).take(last, 1) & (own < part.size)[:, None]).reshape(-1)
        done = (*done, part)
    return found, is_own


def blocks(shape: Sequence[int], most: int) -> Iterator[tuple[slice, ...]]:
    """Yield the slices of an array of `shape`, in row-major order, that cut it into blocks of at
    most `most` elements.

    >>> [[(s.start, s.stop) for s in block] for block in blocks((2, 5), 3)]
    [[(0, 1), (0, 3)], [(0, 1), (3, 5)], [(1, 2), (0, 3)], [(1, 2), (3, 5)]]
    """
    if not shape:
        yield ()
        return
    size, inner = shape[0], math.prod(shape[1:])
    step = max(1, most // max(1, inner))
    for start in range(0, size, step):
        own = slice(start, min(size, start + step))
        for rest in blocks(shape[1:], most) if inner > most else [tuple([slice(0, n) for n in shape[1:]])]:
            yield (own, *rest)


def _stretch(places: Array) -> tuple[Any, Any]:
    """Return what selects the places that are no padding: of the part, and of the whole axis."""
    there = np.flatnonzero(places >= 0)
    own = places[there]
    step = int(own[1] - own[0]) if len(own) > 1 else 1
    if not len(own):
        return slice(0, 0), slice(0, 0)
    if step < 1 or (np.diff(own) != step).any() or (np.diff(there) != 1).any():
        return there, own
    return slice(int(there[0]), int(there[-1]) + 1), slice(int(own[0]), int(own[-1]) + 1, step)


def _put(made: Array, part: Array, places: Sequence[Array]) -> None:
    """Write a part into the whole, without its padding."""
    chosen = [_stretch(own) for own in places]
    if all(isinstance(own, slice) for own, _ in chosen):
        made[tuple([goal for _, goal in chosen])] = part[tuple([own for own, _ in chosen])]
    else:
        sizes = zip(part.shape, made.shape)
        lists = [(np.arange(n)[own], np.arange(m)[goal]) for (own, goal), (n, m) in zip(chosen, sizes)]
        made[np.ix_(*[goal for _, goal in lists])] = part[np.ix_(*[own for own, _ in lists])]


def joined(made: Array, layout: Sharding, mesh: Mesh, most: int, gather: Callable[[tuple[slice, ...]], Any]) -> None:
    """Fill the array `made` from the parts that the devices of a mesh have of it in a `layout`,
    block by block.

    `gather` is called with the slices of each block of at most `most` elements of a part, in the
    same order on all ranks, and returns what the devices have there, in the order of
    `mesh.devices`. Of ranks that have the same elements the first is believed.
    """
    shape = local_shape(made.shape, layout)
    holders: dict[tuple[int, ...], int] = {}
    for number, rank in enumerate(mesh.devices):
        holders.setdefault(tuple([mesh.position(rank, part.mesh_axes) for part in layout.parts]), number)
    places: dict[int, list[Array]] = {}
    for number in holders.values():
        along = [places_along(size, k, layout, mesh, mesh.devices[number]) for k, size in enumerate(made.shape)]
        places[number] = [np.where(is_own, found, -1) for found, is_own in along]
    for block in blocks(shape, most):
        found = gather(block)
        for number, own in places.items():
            _put(made, found[number], [of_axis[s] for of_axis, s in zip(own, block)])


def whole(parts: Sequence[Array], layout: Sharding, mesh: Mesh) -> Array:
    """Return the array whose parts the ranks have, without their padding.

    `parts` are in the order of `mesh.devices`, `layout` is the array's layout on `mesh`. Of ranks
    that have the same elements the first is believed. Raises ShapeError where parts are not as many
    as devices, or the layout is partial.

    >>> from mycel._src.compiler.transforms.partition import sharding
    >>> mesh = Mesh((2,), ("x",))
    >>> parts = [np.array([0, 1, 2]), np.array([3, 4, 4])]
    >>> whole(parts, sharding(mesh, (5,), ("x",)), mesh).tolist()
    [0, 1, 2, 3, 4]
    """
    if len(parts) != mesh.size or layout.partial:
        raise ShapeError(f"{len(parts)} parts laid out as {layout} are no whole array of {mesh.size} devices")
    shape = list(parts[0].shape)
    for part in layout.parts:
        shape[part.axis] = shape[part.axis] // part.length * part.size
    made = np.empty(shape, parts[0].dtype)
    joined(made, layout, mesh, max(1, parts[0].size), lambda block: parts)
    return made
