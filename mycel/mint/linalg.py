"""Linear algebra with `dim` and `keepdim`."""

from __future__ import annotations

from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.public_names import listing as _listing
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops.algebra import decompositions, linear_systems, norms
from mycel.ops.vector_norms import vector_norm as _vector_norm

__all__ = ["inv", "matrix_norm", "norm", "qr", "vector_norm"]


def inv(input: Any) -> Tensor:
    """Return the inverses of square matrices.

    >>> import mycel as ms
    >>> ms.mint.linalg.inv(ms.Tensor([[2.0]])).tolist()
    [[0.5]]
    """
    return linear_systems.inverse(input)


def qr(A: Any, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """Return orthonormal columns Q and an upper triangular R with Q R = A; mode "complete" gives a
    square Q, "r" an empty Q.

    >>> import mycel as ms
    >>> [t.shape for t in ms.mint.linalg.qr(ms.ops.ones((3, 2)))]
    [(3, 2), (2, 2)]
    """
    arguments.text("qr", "mode", mode)
    if mode == "r":
        _, r = decompositions.qr(A, "reduced")
        return r[..., :0, :0], r
    return decompositions.qr(A, mode)


def matrix_norm(A: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the norm of matrices.

    See `mycel.ops.matrix_norm`.

    Args:
        A (Tensor): The tensor.
        ord (int | float | str | None): "fro", "nuc", 2, -2, 1, -1, inf or -inf. Default: "fro".
        dim (int | tuple[int, ...] | None): The two axes of the matrices. Default: (-2, -1).
        keepdim (bool): Whether reduced axes stay with size 1. Default: False.
        dtype (DType | None): The type to which elements are converted first; None for none.
            Default: None.

    Returns:
        Tensor: The norms.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.linalg.matrix_norm(ms.Tensor([[3.0, 0.0], [0.0, 4.0]])).item()
        5.0
    """
    arguments.flag("matrix_norm", "keepdim", keepdim)
    return norms.matrix_norm(A, ord, dim, keepdim, dtype=dtype)


def vector_norm(x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the norm of order `ord` of `x` over `dim`, by default all axes.

    See `mycel.ops.vector_norm`.

    Args:
        x (Tensor): The tensor.
        ord (int | float | str | None): The order of the norm. Default: 2.
        dim (int | tuple[int, ...] | None): The axis or axes; None for all. Default: None.
        keepdim (bool): Whether reduced axes stay with size 1. Default: False.
        dtype (DType | None): The type to which elements are converted first; None for none.
            Default: None.

    Returns:
        Tensor: The norms.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.linalg.vector_norm(ms.Tensor([3.0, 4.0])).item()
        5.0
    """
    arguments.flag("vector_norm", "keepdim", keepdim)
    return _vector_norm(x, ord, dim, keepdim, dtype=dtype)


def norm(A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the vector norm of order `p` over axes.

    "fro" is order 2, "nuc" the nuclear norm of two axes.

    Args:
        A (Tensor): The tensor.
        ord (int | float | str | None): The order of the norm. Default: None.
        dim (int | tuple[int, ...] | None): The axis or axes; None for all. Default: None.
        keepdim (bool): Whether reduced axes stay with size 1. Default: False.
        dtype (DType | None): The type to which elements are converted first; None for none.
            Default: None.

    Returns:
        Tensor: The norms.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.linalg.norm(ms.Tensor([3.0, 4.0])).item()
        5.0
    """
    if ord is not None and not isinstance(ord, (int, float, str)):
        raise arguments.wrong_value("norm", "ord", "a number, 'fro', 'nuc' or None", ord)
    arguments.flag("norm", "keepdim", keepdim)
    return norms.norm(A, ord, dim, keepdim, dtype=dtype)


__dir__ = _listing(__name__)
