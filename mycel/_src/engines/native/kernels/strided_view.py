"""Views: buffers with a shape and with strides counted in elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mycel._src.compiler.ir.dim_values import hint
from mycel._src.compiler.ir.dims import Dim, DimLike, is_one, is_zero, product, same
from mycel._src.engines.native.kernels.loop_nest import Access, Affine, Buffer

__all__ = ["View", "contiguous_strides", "element_count", "like_order", "row_major"]


def element_count(shape: Sequence[DimLike]) -> DimLike:
    """Return the number of elements of a buffer for a shape; at least one where that is known."""
    size: DimLike = product(shape)
    return size if isinstance(size, Dim) else max(size, 1)


def contiguous_strides(shape: Sequence[DimLike]) -> tuple[DimLike, ...]:
    """Return row-major strides."""
    step: DimLike = 1
    result: list[DimLike] = []
    for d in reversed(shape):
        result.append(step)
        step = step * d
    return tuple(reversed(result))


@dataclass(frozen=True, eq=False)
class View:
    """The place of a tensor's value in memory."""

    buffer: Buffer
    shape: tuple[DimLike, ...]
    strides: tuple[DimLike, ...]
    offset: DimLike = 0

    def access(self, position: Sequence[Affine]) -> Access:
        """Return the access of the element at a position."""
        where = Affine((), self.offset)
        for p, s in zip(position, self.strides):
            where = where + p.scale(s)
        return Access(self.buffer, where)

    def is_row_major(self) -> bool:
        """Return whether the value fills its buffer in row-major order."""
        if not is_zero(self.offset):
            return False
        step: DimLike = 1
        for d, s in zip(reversed(self.shape), reversed(self.strides)):
            if not is_one(d) and not same(s, step):
                return False
            step = step * d
        return True


def row_major(buffer: Buffer, shape: Sequence[DimLike]) -> View:
    """Return a view of the whole buffer in row-major order."""
    return View(buffer, tuple(shape), contiguous_strides(shape))


def like_order(strides: Sequence[DimLike], shape: Sequence[DimLike]) -> tuple[DimLike, ...]:
    """Return strides without gaps for a shape, with its axes in the order of other strides."""
    axes = sorted(range(len(shape)), key=lambda k: (-abs(hint(strides[k])), k))
    result: list[DimLike] = [0] * len(shape)
    step: DimLike = 1
    for axis in reversed(axes):
        result[axis] = step
        step = step * shape[axis]
    return tuple(result)
