"""Layouts of tensors on a mesh (`Sharding`), and the shape of each rank's part.

A tensor axis of size N is seen as a product ``before * size * after``, and a `Part` divides the
middle one among the ranks along some mesh axes: the rank at position k has the indices from
``k * length`` on, where length is the size divided by the number of ranks and rounded up. So all
ranks have equal shapes. Where the size does not divide, the last ranks have fewer elements of the
tensor, and the rest of their memory is *padding* of unspecified content.

Several parts of one axis are nested as the digits of a number: one ends before the next begins.
Parts that divide evenly have one form: each mesh axis has a part of its own, whose size is the
number of ranks along it. So equal layouts are equal values. The same records say how the *factors*
of a node are divided: then the axes are the numbers of the factors.

A value is `partial` along mesh axes where the whole is still to be made of the ranks' values, by
the operation that stands with the axis.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import TensorType
from mycel._src.foundation.errors import ShapeError

__all__ = ["WHOLE", "Part", "Sharding", "local_shape", "local_size", "part_of", "sharding", "view_of"]

Spec = Sequence[None | str | Sequence[str]]


@dataclass(frozen=True, order=True)
class Part:
    """A stretch of a tensor axis that is divided: `size` of ``before * size * after``.

    `mesh_axes` are the mesh axes along which it is divided, the last one fastest, and `count` is
    the number of ranks along them.
    """

    axis: int
    before: int
    size: int
    after: int
    mesh_axes: tuple[str, ...]
    count: int

    @property
    def length(self) -> int:
        """The indices that each rank has, of `size`."""
        return -(-self.size // self.count)

    @property
    def is_even(self) -> bool:
        return self.size % self.count == 0

    def __str__(self) -> str:
        names = "+".join(self.mesh_axes)
        return f"{self.axis}:{names}" if self.before == 1 else f"{self.axis}/{self.before}:{names}"


@dataclass(frozen=True)
class Sharding:
    """How a tensor is laid out: its divided `parts`, in order, and what is `partial`.

    `mesh_axes` are those along which it is divided.
    `partial` has pairs of a mesh axis and an operation (sum, max, min, prod, any, all), in order.
    Raises ShapeError where two parts overlap or a mesh axis is used twice.

    >>> mesh = Mesh((2, 2), ("dp", "tp"))
    >>> rows = sharding(mesh, (6, 8), ("dp", None))
    >>> print(rows, local_shape((6, 8), rows))
    0:dp (3, 8)
    """

    parts: tuple[Part, ...] = ()
    partial: tuple[tuple[str, str], ...] = ()
    mesh_axes: tuple[str, ...] = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        if not self.partial and len(self.parts) < 2:
            # Nothing to put in order, and nothing that could overlap.
            names = self.parts[0].mesh_axes if self.parts else ()
            if len(names) < 2:
                object.__setattr__(self, "mesh_axes", names)
                return
        object.__setattr__(self, "parts", tuple(sorted(self.parts)))
        object.__setattr__(self, "partial", tuple(sorted(self.partial)))
        object.__setattr__(self, "mesh_axes", tuple([a for p in self.parts for a in p.mesh_axes]))
        used = [*self.mesh_axes, *(a for a, _ in self.partial)]
        if len(set(used)) != len(used):
            raise ShapeError(f"the layout {self} uses a mesh axis twice")
        for one, two in zip(self.parts, self.parts[1:]):
            if one.axis == two.axis and two.before % (one.before * one.size):
                raise ShapeError(f"the layout {self} divides axis {one.axis} by parts that overlap")

    @property
    def is_whole(self) -> bool:
        return not self.parts and not self.partial

    @property
    def is_even(self) -> bool:
        """Whether no rank has padding."""
        return all(p.is_even for p in self.parts)

    @property
    def reduced(self) -> Sharding:
        """The same parts, with nothing partial."""
        return Sharding(self.parts) if self.partial else self

    def without(self, mesh_axes: Iterable[str]) -> Sharding:
        """Return the layout without the parts that use any of `mesh_axes`."""
        gone = set(mesh_axes)
        return Sharding(tuple(p for p in self.parts if not gone & set(p.mesh_axes)), self.partial)

    def fits(self, part: Part) -> bool:
        """Return whether `part` can be added."""
        if set(part.mesh_axes) & {*self.mesh_axes, *(a for a, _ in self.partial)}:
            return False
        for p in self.parts:
            if p.axis == part.axis:
                one, two = sorted((p, part))
                if two.before % (one.before * one.size):
                    return False
        return True

    def __str__(self) -> str:
        words = [str(p) for p in self.parts] + [f"{op}({axis})" for axis, op in self.partial]
        return " ".join(words) or "whole"


WHOLE = Sharding()


def part_of(
    mesh: Mesh, axis: int, mesh_axes: Sequence[str], size: int, before: int = 1, after: int = 1
) -> tuple[Part, ...]:
    """Return the parts that divide a stretch of a tensor axis along `mesh_axes`.

    `axis` is the tensor's, of ``before * size * after`` elements. Axes of `mesh` that have one
    device divide nothing, nor does anything divide no elements.
    """
    names = tuple(a for a in mesh_axes if mesh.count((a,)) > 1)
    count = mesh.count(names)
    if not names or size * before * after == 0:
        return ()
    if size % count:
        return (Part(axis, before, size, after, names, count),)
    result, total = [], before * size * after
    for name in names:
        n = mesh.count((name,))
        result.append(Part(axis, before, n, total // (before * n), (name,), n))
        before *= n
    return tuple(result)


def sharding(mesh: Mesh, shape: Sequence[int], axes: Spec) -> Sharding:
    """Return the layout that divides each axis of `shape` along mesh axes.

    `axes` has an entry for each tensor axis: None, the name of a mesh axis, or a tuple of names;
    entries that are missing at the end are None. Raises ShapeError for more entries than axes.
    """
    if len(axes) > len(shape):
        raise ShapeError(f"a tensor of the shape {tuple(shape)} has no {len(axes)} axes to divide by {tuple(axes)}")
    parts: list[Part] = []
    for axis, names in enumerate(axes):
        if names is not None:
            parts += part_of(mesh, axis, (names,) if isinstance(names, str) else tuple(names), shape[axis])
    return Sharding(tuple(parts))


def local_size(size: int, axis: int, layout: Sharding) -> int:
    """Return how many elements of an axis of `size` a rank has."""
    for p in layout.parts:
        if p.axis == axis:
            size = size // p.size * p.length
    return size


def local_shape(shape: Sequence[int], layout: Sharding) -> tuple[int, ...]:
    """Return the shape of a rank's part of a tensor of `shape`."""
    return tuple(local_size(size, axis, layout) for axis, size in enumerate(shape))


def local_type(type: TensorType, layout: Sharding) -> TensorType:
    """Return the type of a rank's part of a tensor."""
    return type.with_shape(local_shape(static(type), layout)) if layout.parts else type


def static(type: TensorType) -> tuple[int, ...]:
    """Return a shape as integers; raise ShapeError where a size is a symbol."""
    if not type.is_static:
        raise ShapeError(
            f"partition: the tensor {type} has a symbolic size; graphs are divided for known sizes only, "
            "so compile the function for the sizes at hand"
        )
    return type.shape  # type: ignore[return-value]


def need_fit(layout: Sharding, sizes: Sequence[int], mesh: Mesh, what: str) -> None:
    """Raise ShapeError, with `what` in front, unless a layout on `mesh` divides axes of `sizes`."""
    for p in layout.parts:
        if p.axis >= len(sizes) or p.before * p.size * p.after != sizes[p.axis]:
            found = f"axis {p.axis} as {p.before} * {p.size} * {p.after}"
            raise ShapeError(f"{what}: the layout {layout} divides {found}, the sizes are {tuple(sizes)}")
        if p.count != mesh.count(p.mesh_axes):
            raise ShapeError(f"{what}: the layout {layout} was made for another mesh than that of sizes {mesh.sizes}")


def view_of(part: Part, layout: Sharding) -> tuple[int, int]:
    """Return what comes before and after a part in its axis as a rank has it.

    `layout` holds the other parts of the axis that are divided already.
    """
    before, after = part.before, part.after
    for p in layout.parts:
        if p.axis == part.axis and p != part:
            if p.before < part.before:
                before = before // p.size * p.length
            else:
                after = after // p.size * p.length
    return before, after


def part_along(layout: Sharding, mesh_axis: str) -> Part | None:
    """Return the part that uses a mesh axis, or None."""
    return next((p for p in layout.parts if mesh_axis in p.mesh_axes), None)


def elements(shape: Sequence[int], layout: Sharding) -> int:
    """Return how many elements a rank has."""
    total = math.prod(shape)
    for p in layout.parts:
        total = total // p.size * p.length
    return total
