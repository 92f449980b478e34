"""The layer that scales tensors down to a norm."""

from __future__ import annotations

from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops._operands import input_of, wide

__all__ = ["ClipByNorm", "clipped"]


def clipped(x: Tensor, axes: tuple[int, ...], largest: Any) -> Tensor:
    """Return ``x * largest / max(norm, largest)`` with the 2-norm over `axes`, computed in float32
    at least.
    """
    value = wide(x)
    bound = cast(wide(largest), value.dtype) if isinstance(largest, Tensor) else largest
    return cast(value * bound / ops.maximum(ops.vector_norm(value, 2, axes, True), bound), x.dtype)


class ClipByNorm(Cell):
    """The layer ``x * clip_norm / max(norm, clip_norm)`` with the 2-norm of x over `axis`, by
    default all axes.

    `clip_norm`, a positive number or a tensor, must broadcast to x. (MindSpore 2.10's own norms
    along single axes are wrong on a CPU.) Raises TypeError for an `axis` that is neither an int nor
    a tuple of ints.

    >>> import mycel as ms
    >>> ms.nn.ClipByNorm()(ms.Tensor([3.0, 4.0]), ms.Tensor(10.0)).tolist()
    [3.0, 4.0]
    """

    def __init__(self, axis: Any = None) -> None:
        super().__init__()
        given = axis if isinstance(axis, (tuple, list)) else () if axis is None else (axis,)
        self.axis = tuple(arguments.integer("ClipByNorm", "axis", a) for a in given)

    def construct(self, x: Tensor, clip_norm: Any) -> Tensor:
        """Return the clipped tensor."""
        x = input_of(self, x)
        return clipped(x, self.axis or tuple(range(x.ndim)), input_of(self, clip_norm))
