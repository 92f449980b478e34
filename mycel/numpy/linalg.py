"""Products of matrices and vectors under NumPy's names."""

from __future__ import annotations

from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.tensors.core.tensor import Tensor
from mycel.numpy._operands import as_axis, as_kind, asarray, check_flags

__all__ = ["dot", "inner", "kron", "matmul", "matrix_power", "multi_dot", "norm", "outer", "tensordot", "trace"]


def dot(a: Any, b: Any) -> Tensor:
    """Return the sum of products over the last axis of `a` and the second to last (or only) axis of
    `b`.

    >>> import mycel.numpy as mnp
    >>> mnp.dot([1.0, 2.0], [3.0, 4.0]).item()
    11.0
    """
    return ops.dot(asarray(a), asarray(b))


def inner(a: Any, b: Any) -> Tensor:
    """Return the sum of products over the last axes.

    >>> import mycel.numpy as mnp
    >>> mnp.inner([1.0, 2.0], [3.0, 4.0]).item()
    11.0
    """
    return ops.inner(asarray(a), asarray(b))


def outer(a: Any, b: Any) -> Tensor:
    """Return the products of every element of `a` with every element of `b`.

    >>> import mycel.numpy as mnp
    >>> mnp.outer([1, 2], [3, 4]).tolist()
    [[3, 4], [6, 8]]
    """
    return ops.outer(ops.ravel(asarray(a)), ops.ravel(asarray(b)))


def matmul(x1: Any, x2: Any, dtype: Any = None) -> Tensor:
    """Return the matrix product over the last two axes.

    >>> import mycel.numpy as mnp
    >>> mnp.matmul([[1.0, 2.0]], [[3.0], [4.0]]).tolist()
    [[11.0]]
    """
    return as_kind(ops.matmul(asarray(x1), asarray(x2)), dtype)


def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    """Return the sum of products over pairs of axes.

    >>> import mycel.numpy as mnp
    >>> mnp.tensordot(mnp.ones((2, 3)), mnp.ones((3, 4)), 1).shape
    (2, 4)
    """
    if isinstance(axes, (str, dict)):
        raise arguments.wrong_type("tensordot", "axes", "an int or two sequences of axes", axes)
    return ops.tensor_dot(asarray(a), asarray(b), axes)


def kron(a: Any, b: Any) -> Tensor:
    """Return the Kronecker product.

    >>> import mycel.numpy as mnp
    >>> mnp.kron([1, 2], [1, 10]).tolist()
    [1, 10, 2, 20]
    """
    return ops.kron(asarray(a), asarray(b))


def matrix_power(a: Any, n: int) -> Tensor:
    """Return a square matrix multiplied by itself n times.

    >>> import mycel.numpy as mnp
    >>> mnp.matrix_power([[1, 1], [0, 1]], 3).tolist()
    [[1, 3], [0, 1]]
    """
    return ops.matrix_power(asarray(a), n)


def multi_dot(arrays: Any) -> Tensor:
    """Return the product of several matrices, from left to right.

    >>> import mycel.numpy as mnp
    >>> mnp.multi_dot([mnp.ones((2, 3)), mnp.ones((3, 4)), mnp.ones((4, 1))]).shape
    (2, 1)
    """
    values = [asarray(v) for v in arrays]
    if len(values) < 2:
        raise ValueError("multi_dot: takes at least two matrices")
    result = values[0]
    for v in values[1:]:
        result = ops.matmul(result, v)
    return result


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Tensor:
    """Return the sum of a diagonal of the matrices over `axis1` and `axis2`.

    Args:
        a (Tensor | float | list | tuple): The tensor.
        offset (int): The diagonal, 0 for the main one and positive above it. Default: 0.
        axis1 (int): The axis of the rows. Default: 0.
        axis2 (int): The axis of the columns. Default: 1.
        dtype (DType | None): The element type; None for the default, int64 of integers. Default:
            None.

    Returns:
        Tensor: The sums.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.trace([[1, 2], [3, 4]]).item()
        5
    """
    return asarray(a).trace(offset, axis1, axis2, dtype)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the norm of vectors or matrices.

    Args:
        x (Tensor | float | list | tuple): The array.
        ord (int | float | str | None): An order of `mycel.ops.norm`. Default: None.
        axis (int | tuple[int, ...] | None): The axis or axes; None for all. Default: None.
        keepdims (bool): Whether reduced axes stay with size 1. Default: False.

    Returns:
        Tensor: The norms.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.norm([3.0, 4.0]).item()
        5.0
    """
    check_flags("norm", keepdims=keepdims)
    return ops.norm(asarray(x), ord, as_axis(axis), keepdims)
