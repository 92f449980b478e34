"""Norms and condition numbers of matrices."""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims.linear_algebra import spectral
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops._operands import axis_of, floating, permuted, reshaped, run, take_slice
from mycel.ops.algebra.linear_systems import inverse
from mycel.ops.algebra.matrices import matrices
from mycel.ops.vector_norms import norm as plain_norm
from mycel.ops.vector_norms import vector_norm

__all__ = ["cond", "matrix_norm", "norm"]


def matrix_norm(A: Any, ord: Any = "fro", axis: Any = (-2, -1), keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the norm of matrices.

    Args:
        A (Tensor): The matrices.
        ord (int | float | str | None): "fro" (Frobenius), "nuc" (sum of singular values), 2 or -2
            (largest or smallest singular value), 1 or -1 (largest or smallest sum of a column), inf
            or -inf (of a row). Default: "fro".
        axis (int | tuple[int, ...] | None): The two axes of the matrices. Default: (-2, -1).
        keepdims (bool): Whether these axes stay with size 1. Default: False.
        dtype (DType | None): The type to compute in; None for that of `A`. Default: None.

    Returns:
        Tensor: The norms.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.matrix_norm(ms.Tensor([[3.0, 0.0], [0.0, 4.0]]), 2).item()
        4.0
    """
    arguments.sequence("matrix_norm", "axis", axis)
    keepdims = bool(keepdims)
    x = floating("matrix_norm", A)
    x = x if dtype is None else cast(x, D.from_any(dtype))
    if not isinstance(axis, (tuple, list)) or len(axis) != 2:
        raise ShapeError(f"matrix_norm: axis must be two axes, not {axis!r}")
    rows, columns = (axis_of("matrix_norm", a, x.ndim) for a in axis)
    if rows == columns:
        raise ShapeError(f"matrix_norm: axis {axis} names one axis twice")
    if ord == "fro":
        return vector_norm(x, 2, (rows, columns), keepdims)
    if ord not in ("nuc", 2, -2):
        if isinstance(ord, str):
            raise ValueError(f"matrix_norm: ord must be 'fro', 'nuc', 2, -2, 1, -1, inf or -inf, not {ord!r}")
        return plain_norm(x, ord, (rows, columns), keepdims)
    rest = [a for a in range(x.ndim) if a not in (rows, columns)]
    values = run(
        spectral.svd,
        matrices("matrix_norm", permuted(x, (*rest, rows, columns)), square=False),
        full=False,
        vectors=False,
    )
    reduce = R.reduce_sum if ord == "nuc" else R.reduce_max if ord == 2 else R.reduce_min
    found = cast(run(reduce, values, axes=(values.ndim - 1,), keepdims=False), x.dtype)
    if keepdims:
        found = reshaped(found, tuple(1 if a in (rows, columns) else x.shape[a] for a in range(x.ndim)))
    return found


def norm(A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the norm of vectors (one axis, or all elements) or of matrices (two axes).

    Args:
        A (Tensor): The tensor.
        ord (int | float | str | None): Any number for vectors, an order of `matrix_norm` for
            matrices; None for the 2-norm of all elements over `dim`. Default: None.
        dim (int | tuple[int, ...] | None): The axis, or axes; None for all elements. Default: None.
        keepdim (bool): Whether axes stay with size 1. Default: False.
        dtype (DType | None): The type to compute in; None for that of the tensor. Default: None.

    Returns:
        Tensor: The norms.

    Raises:
        ValueError: For other orders.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.norm(ms.Tensor([[3.0], [4.0]])).item()
        5.0
    """
    keepdim = bool(keepdim) if ord is None else keepdim
    if ord in ("nuc", 2, -2) and (ord == "nuc" or not isinstance(ord, str)):
        x = floating("norm", A)
        axes = tuple(dim) if isinstance(dim, (tuple, list)) else dim
        if (axes is None and x.ndim == 2) or (isinstance(axes, tuple) and len(axes) == 2):
            return matrix_norm(x, ord, axes or (0, 1), keepdim, dtype=dtype)
    return plain_norm(A, ord, dim, keepdim, dtype=dtype)


def cond(A: Any, p: Any = None) -> Tensor:
    """Return the condition number ||A|| ||A^-1|| in the norm `p` of `matrix_norm`.

    By default it is the ratio of the largest to the smallest singular value.

    >>> import mycel as ms
    >>> ms.ops.cond(ms.Tensor([[2.0, 0.0], [0.0, 1.0]])).item()
    2.0
    """
    x = matrices("cond", A, square=p not in (None, 2, -2))
    if p in (None, 2, -2):
        values = run(spectral.svd, x, full=False, vectors=False)
        last = values.ndim - 1
        ends = [
            reshaped(take_slice(values, last, k, k + 1), tuple(values.shape[:-1])) for k in (0, values.shape[-1] - 1)
        ]
        return run(E.div, *(reversed(ends) if p == -2 else ends))
    return run(E.mul, matrix_norm(x, p), matrix_norm(inverse(x), p))
