"""Meshes of devices: ranks in the order of several axes, which layouts and collectives name.

A rank has one coordinate on each axis, and the last axis varies fastest. A collective along some
axes joins the ranks whose coordinates differ on these axes only; its *position* counts them, the
last named axis fastest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mycel._src.foundation.errors import ShapeError

__all__ = ["Mesh"]


@dataclass(frozen=True)
class Mesh:
    """Devices in the order of axes, with the size and the name of each axis.

    `devices` has the rank of each device in row-major order; without it they are 0, 1, 2 and so on.
    Raises ShapeError for sizes below 1, for names that are not as many as the sizes or that come
    twice, and for devices that are not as many as the sizes ask for.

    >>> mesh = Mesh((2, 3), ("data", "model"))
    >>> mesh.size, mesh.position(4, ("model",)), mesh.peers(4, ("model",)), mesh.peers(4, ("data",))
    (6, 1, (3, 4, 5), (1, 4))
    """

    sizes: tuple[int, ...]
    names: tuple[str, ...]
    devices: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.sizes) != len(self.names) or len(set(self.names)) != len(self.names):
            raise ShapeError(f"a mesh of sizes {self.sizes} needs as many different names, not {self.names}")
        if any(s < 1 for s in self.sizes):
            raise ShapeError(f"a mesh has axes of at least one device each, not {self.sizes}")
        if not self.devices:
            object.__setattr__(self, "devices", tuple(range(self.size)))
        if len(self.devices) != self.size or len(set(self.devices)) != self.size:
            raise ShapeError(f"a mesh of sizes {self.sizes} needs {self.size} different devices, not {self.devices}")

    @property
    def lasting_text(self) -> str:
        """The text by which graphs with this mesh are known in later processes."""
        return f"mesh {self.sizes} {self.names} {self.devices}"

    @property
    def size(self) -> int:
        """The number of devices."""
        return math.prod(self.sizes)

    def count(self, axes: Sequence[str]) -> int:
        """Return how many devices lie along `axes`."""
        return math.prod([self.sizes[self._axis(a)] for a in axes])

    def coordinates(self, rank: int) -> tuple[int, ...]:
        """Return the coordinates of a rank, one for each axis."""
        place, result = self.devices.index(rank), []
        for size in reversed(self.sizes):
            place, at = divmod(place, size)
            result.append(at)
        return tuple(reversed(result))

    def position(self, rank: int, axes: Sequence[str]) -> int:
        """Return the place of a rank among its peers along `axes`."""
        coordinates, result = self.coordinates(rank), 0
        for name in axes:
            axis = self._axis(name)
            result = result * self.sizes[axis] + coordinates[axis]
        return result

    def peers(self, rank: int, axes: Sequence[str]) -> tuple[int, ...]:
        """Return the ranks that differ from `rank` along `axes` only, in the order of positions."""
        own = self.coordinates(rank)
        result = []
        for k in range(self.count(axes)):
            at = list(own)
            for name in reversed(tuple(axes)):
                axis = self._axis(name)
                k, at[axis] = divmod(k, self.sizes[axis])
            place = 0
            for size, c in zip(self.sizes, at):
                place = place * size + c
            result.append(self.devices[place])
        return tuple(result)

    def _axis(self, name: str) -> int:
        if name not in self.names:
            raise ShapeError(f"the mesh has the axes {', '.join(self.names)}; {name!r} is none of them")
        return self.names.index(name)
