"""Divisions: along which axes a tensor is cut, and over which axes of a mesh.

A `Division` has for each axis the number of parts. One that was made of a `Layout` also has the
mesh, and for each axis the names of the mesh's axes along which it is cut, of which the last varies
fastest; one that was made of numbers leaves to the partitioner which devices have which part. An
axis need not be a multiple of its number of parts, but has at least as many elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mycel._src.compiler.ir.dims import Dim, DimLike
from mycel._src.compiler.ir.sharding.layout import Layout
from mycel._src.compiler.ir.sharding.mesh import Mesh

__all__ = ["Division", "division_of"]


@dataclass(frozen=True)
class Division:
    """How one tensor is divided: the number of parts of each axis, and by a layout, over what.

    >>> from mycel._src.compiler.ir.sharding.layout import Layout
    >>> made = division_of(Layout((2, 4), ("dp", "mp"))("dp", ("None")))
    >>> made.cuts, made.axes, made.mesh.size
    ((2, 1), (('dp',), ()), 8)
    >>> division_of((2, 4)).parts
    8
    """

    cuts: tuple[int, ...]
    mesh: Mesh | None = None
    axes: tuple[tuple[str, ...], ...] = ()

    @property
    def parts(self) -> int:
        """The number of different parts."""
        return math.prod(self.cuts)

    def with_axis(self, axis: int) -> Division:
        """Return the division of tensors that have one more axis, which is whole."""
        cuts = (*self.cuts[:axis], 1, *self.cuts[axis:])
        axes = (*self.axes[:axis], (), *self.axes[axis:]) if self.mesh is not None else ()
        return Division(cuts, self.mesh, axes)

    def misfit(self, shape: Sequence[DimLike], devices: int) -> str:
        """Return why a tensor of a shape cannot be divided so among `devices`; "" where it can."""
        if len(self.cuts) != len(shape):
            return f"it has {len(self.cuts)} entries, and the tensor has {len(shape)} axes"
        for axis, (cut, size) in enumerate(zip(self.cuts, shape)):
            if cut < 1:
                return f"axis {axis} is cut into {cut} parts; 1 leaves it whole"
            if not isinstance(size, Dim) and cut > max(size, 1):
                return f"axis {axis} of size {size} is cut into {cut} parts, more than it has elements"
        if self.parts > devices:
            return f"it makes {self.parts} parts, and there are {devices} devices (device_num)"
        if devices % self.parts:
            return f"it makes {self.parts} parts, which do not divide {devices} devices (device_num) equally"
        if self.mesh is not None and self.mesh.size != devices:
            return f"its layout is of {self.mesh.size} devices, and there are {devices} (device_num)"
        return ""

    def __str__(self) -> str:
        if self.mesh is None:
            return str(self.cuts)
        return f"{self.cuts} over {dict(zip(self.mesh.names, self.mesh.sizes))}"


def division_of(given: Any) -> Division:
    """Return the division that a tuple of numbers of parts or a `Layout` of a tensor says.

    Raises ValueError for a layout that says nothing of a tensor.
    """
    if not isinstance(given, Layout):
        return Division(tuple([int(n) for n in given]))
    known = given.to_dict()
    sizes, names = known["device_matrix"], known["alias_name"]
    # A layout counts the axes of its grid from the last.
    axes = []
    for entry in known["tensor_map"]:
        places = entry if isinstance(entry, tuple) else (entry,)
        axes.append(tuple([names[len(names) - 1 - p] for p in places if p != -1]))
    mesh = Mesh(sizes, names, tuple(known["rank_list"]))
    return Division(tuple([mesh.count(a) for a in axes]), mesh, tuple(axes))
