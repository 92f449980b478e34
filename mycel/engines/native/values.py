"""Views: a shape and strides over a buffer, in elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mycel.kernel.nest import Access, Affine, Buffer

__all__ = ["View", "contiguous_strides", "row_major"]


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides."""
    step = 1
    result = []
    for d in reversed(shape):
        result.append(step)
        step *= d
    return tuple(reversed(result))


@dataclass(frozen=True, eq=False)
class View:
    """A tensor's value in memory."""

    buffer: Buffer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    def access(self, position: Sequence[Affine]) -> Access:
        """The element at a position."""
        where = Affine((), self.offset)
        for p, s in zip(position, self.strides):
            where = where + p.scale(s)
        return Access(self.buffer, where)

    def is_row_major(self) -> bool:
        """Whether the value fills its buffer in row-major order."""
        if self.offset:
            return False
        step = 1
        for d, s in zip(reversed(self.shape), reversed(self.strides)):
            if d != 1 and s != step:
                return False
            step *= d
        return True


def row_major(buffer: Buffer, shape: Sequence[int]) -> View:
    """The whole buffer in row-major order."""
    return View(buffer, tuple(shape), contiguous_strides(shape))
