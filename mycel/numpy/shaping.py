"""Shaping functions of one array that forward to `mycel.ops`, with NumPy's parameter names."""

from __future__ import annotations

from typing import Any

from mycel import ops
from mycel._src.tensors.core.tensor import Tensor
from mycel.numpy._operands import as_axis, asarray
from mycel.ops._operands import sizes_of

__all__ = [
    "argwhere",
    "array_split",
    "dsplit",
    "expand_dims",
    "fliplr",
    "flipud",
    "hsplit",
    "moveaxis",
    "ravel",
    "swapaxes",
    "vsplit",
]


def ravel(x: Any) -> Tensor:
    """Flatten an array in row-major order.

    >>> import mycel.numpy as mnp
    >>> mnp.ravel([[1, 2], [3, 4]]).tolist()
    [1, 2, 3, 4]
    """
    return ops.ravel(asarray(x))


def moveaxis(a: Any, source: Any, destination: Any) -> Tensor:
    """Move axes to other positions; the others keep their order.

    >>> import mycel.numpy as mnp
    >>> mnp.moveaxis(mnp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    return ops.moveaxis(asarray(a), source, destination)


def swapaxes(x: Any, axis1: int, axis2: int) -> Tensor:
    """Exchange two axes.

    >>> import mycel.numpy as mnp
    >>> mnp.swapaxes(mnp.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    return ops.swapaxes(asarray(x), axis1, axis2)


def expand_dims(a: Any, axis: Any) -> Tensor:
    """Insert axes of size 1 at one or several positions of the result.

    >>> import mycel.numpy as mnp
    >>> mnp.expand_dims([1, 2], 0).shape
    (1, 2)
    """
    x = asarray(a)
    if isinstance(axis, int):
        return ops.expand_dims(x, axis)
    places = sizes_of("expand_dims", "axis", axis)
    rank = x.ndim + len(places)
    for place in sorted(k + rank if k < 0 else k for k in places):
        x = ops.expand_dims(x, place)
    return x


def fliplr(m: Any) -> Tensor:
    """Reverse the order along axis 1.

    >>> import mycel.numpy as mnp
    >>> mnp.fliplr([[1, 2]]).tolist()
    [[2, 1]]
    """
    return ops.fliplr(asarray(m))


def flipud(m: Any) -> Tensor:
    """Reverse the order along axis 0.

    >>> import mycel.numpy as mnp
    >>> mnp.flipud([[1], [2]]).tolist()
    [[2], [1]]
    """
    return ops.flipud(asarray(m))


def argwhere(a: Any) -> Tensor:
    """Return the positions of elements that are not zero, int64 of shape (count, number of axes).

    >>> import mycel.numpy as mnp
    >>> mnp.argwhere([[1, 0], [0, 2]]).tolist()
    [[0, 0], [1, 1]]
    """
    return ops.argwhere(asarray(a))


def array_split(x: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """Split an array into parts of nearly equal size along an axis, or at positions.

    >>> import mycel.numpy as mnp
    >>> [part.shape for part in mnp.array_split(mnp.arange(5), 2)]
    [(3,), (2,)]
    """
    return ops.tensor_split(asarray(x), indices_or_sections, as_axis(axis))


def hsplit(x: Any, indices_or_sections: Any) -> Any:
    """Split an array along axis 1, or a vector along axis 0.

    >>> import mycel.numpy as mnp
    >>> [part.shape for part in mnp.hsplit(mnp.ones((2, 4)), 2)]
    [(2, 2), (2, 2)]
    """
    return ops.hsplit(asarray(x), indices_or_sections)


def vsplit(x: Any, indices_or_sections: Any) -> Any:
    """Split an array along axis 0.

    >>> import mycel.numpy as mnp
    >>> [part.shape for part in mnp.vsplit(mnp.ones((2, 4)), 2)]
    [(1, 4), (1, 4)]
    """
    return ops.vsplit(asarray(x), indices_or_sections)


def dsplit(x: Any, indices_or_sections: Any) -> Any:
    """Split an array along axis 2.

    >>> import mycel.numpy as mnp
    >>> [part.shape for part in mnp.dsplit(mnp.ones((1, 1, 4)), 2)]
    [(1, 1, 2), (1, 1, 2)]
    """
    return ops.dsplit(asarray(x), indices_or_sections)
