"""Resharding cost: seconds and bytes between pairs of layouts of a tensor, as tables.

Which moves a way has depends on the *forms* of its two layouts, which have of each part the tensor
axis and the mesh axes, and sizes only where it does not divide evenly. So tensors of all shapes
share them. A move takes a share of the tensor's bytes, and what it costs is remembered by these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.transforms.partition import Move, Sharding, route
from mycel._src.compiler.transforms.partition.tensor_sharding import elements
from mycel._src.planner.topology import Topology

__all__ = ["Ways", "bytes_of", "seconds_of_route"]

Array = np.ndarray[Any, Any]
Leg = tuple[str, tuple[str, ...], int, int]  # a kind, mesh axes, and a share of the bytes
FREE = ("slice", "mask")  # moves in which a rank sends nothing


def bytes_of(type: Any, layout: Sharding) -> int:
    """Return the bytes that a rank holds of a tensor of `type`, 0 for what is no tensor."""
    if not isinstance(type, TensorType):
        return 0
    return elements(type.shape, layout) * type.dtype.itemsize  # type: ignore[arg-type]


def seconds_of_route(moves: Sequence[Move], type: TensorType, topology: Topology) -> float:
    """Return the seconds of moves of a tensor of `type` over the links of a topology."""
    total = 0.0
    for move in moves:
        if move.kind in FREE:
            total += topology.device.seconds(0, 2 * bytes_of(type, move.after))
        else:
            larger = max(bytes_of(type, move.before), bytes_of(type, move.after))
            total += topology.seconds(move.kind, larger, move.mesh_axes)
    return total


def _share(layout: Sharding) -> tuple[int, int]:
    """Return the share of a tensor that a rank holds; the division is exact for each tensor."""
    return math.prod([p.length for p in layout.parts]), math.prod([p.size for p in layout.parts])


class Ways:
    """The ways between layouts on the mesh of a topology."""

    def __init__(self, topology: Topology) -> None:
        self.topology, self.mesh = topology, topology.mesh
        self._forms: dict[Any, int] = {}
        self._shares: list[tuple[int, int]] = []  # by form
        self._known: dict[int, tuple[Sharding, int]] = {}  # by identity
        self._legs: dict[tuple[int, int], list[Leg]] = {}
        self._ways: dict[tuple[int, int, int], float] = {}
        self._moves: dict[tuple[str, tuple[str, ...], int], float] = {}
        self._tables: dict[Any, tuple[Array, Array]] = {}

    def form(self, layout: Sharding) -> int:
        """Return the number of a layout's form; layouts of one tensor are equal if these are."""
        known = self._known.get(id(layout))
        if known is None:
            parts = [
                (p.axis, p.before, p.mesh_axes)
                if p.size == p.count
                else (p.axis, p.before, p.mesh_axes, p.size, p.after, p.count)
                for p in layout.parts
            ]
            number = self._forms.setdefault((tuple(parts), layout.partial), len(self._forms))
            if number == len(self._shares):
                self._shares.append(_share(layout))
            known = self._known[id(layout)] = (layout, number)
        return known[1]

    def table(self, starts: Sequence[Sharding], ends: Sequence[Sharding], type: TensorType) -> tuple[Array, Array]:
        """Return the seconds of the ways from each layout to each, and the bytes of the copies.

        A row is of one of `starts`, a column of one of `ends`; all are layouts of a tensor of
        `type`. A way to the same layout takes no time and makes no copy.
        """
        size = bytes_of(type, Sharding())
        rows, columns = tuple([self.form(s) for s in starts]), tuple([self.form(s) for s in ends])
        found = self._tables.get((rows, columns, size))
        if found is not None:
            return found
        ways, seconds = self._ways, []
        for start, row in zip(starts, rows):
            for end, column in zip(ends, columns):
                known = ways.get((row, column, size))
                if known is None:
                    known = ways[row, column, size] = self._seconds(row, column, start, end, size, type)
                seconds.append(known)
        shares = [self._shares[c] for c in columns]
        made = np.array([size * part // whole for part, whole in shares], float)
        same = np.array(rows)[:, None] == np.array(columns)
        copies = np.where(same, 0.0, made)
        found = self._tables[rows, columns, size] = np.array(seconds).reshape(len(rows), len(columns)), copies
        return found

    def _seconds(self, row: int, column: int, start: Sharding, end: Sharding, size: int, type: TensorType) -> float:
        """Return the seconds of a way between layouts, and forms, of a tensor of `size` bytes."""
        if row == column:
            return 0.0
        legs = self._legs.get((row, column))
        if legs is None:
            legs = self._legs[row, column] = [_leg(m) for m in route(start, end, type, self.mesh)]
        total = 0.0
        for kind, axes, part, whole in legs:
            key = (kind, axes, size * part // whole)
            known = self._moves.get(key)
            if known is None:
                if kind in FREE:
                    known = self.topology.device.seconds(0, 2 * key[2])
                else:
                    known = self.topology.seconds(kind, key[2], axes)
                self._moves[key] = known
            total += known
        return total


def _leg(move: Move) -> Leg:
    before, after = _share(move.before), _share(move.after)
    part, whole = after if move.kind in FREE else max(before, after, key=lambda s: Fraction(*s))
    return move.kind, move.mesh_axes, part, whole
