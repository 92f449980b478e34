"""The properties of a tensor: its element type, its shape and size; and the tensor itself in
another type.
"""

from __future__ import annotations

import builtins
from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType
from mycel._src.tensors.core.tensor import Tensor, as_tensor
from mycel.ops._operands import operand, run, term
from mycel.ops.array import stack

__all__ = [
    "cast",
    "deepcopy",
    "dtype",
    "dyn_shape",
    "identity",
    "is_complex",
    "is_floating_point",
    "is_nonzero",
    "numel",
    "rank",
    "shape",
    "size",
    "type_as",
]


def cast(input: Any, dtype: Any) -> Tensor:
    """Convert `input` to another element type: to integers by truncation, to booleans by x != 0.

    Raises TypeError unless `dtype` is an element type.

    >>> import mycel as ms
    >>> ms.ops.cast(ms.Tensor([1.7, 0.0]), ms.int32).tolist()
    [1, 0]
    """
    if dtype is None:
        raise TypeError("cast: needs a data type, not None")
    x, kind = term("cast", input), D.from_any(dtype)
    return x if x.dtype is kind else run(E.cast, x, dtype=kind)


def type_as(input: Any, other: Tensor) -> Tensor:
    """Return `input` in the element type of `other`.

    >>> import mycel as ms
    >>> ms.ops.type_as(ms.Tensor([1.5]), ms.Tensor([1])).dtype
    mindspore.int64
    """
    return cast(input, operand("type_as", other).dtype)


def identity(x: Any) -> Any:
    """Return the argument itself.

    >>> import mycel as ms
    >>> ms.ops.identity(3)
    3
    """
    return x


def deepcopy(input_x: Any) -> Tensor:
    """Return a copy of a tensor that shares nothing with it.

    >>> import mycel as ms
    >>> ms.ops.deepcopy(ms.Tensor([1, 2])).tolist()
    [1, 2]
    """
    return run(E.identity, operand("deepcopy", input_x))


def shape(input_x: Any) -> tuple[Any, ...]:
    """Return the sizes of the dimensions as a tuple.

    >>> import mycel as ms
    >>> ms.ops.shape(ms.ops.ones((2, 3)))
    (2, 3)
    """
    return operand("shape", input_x).shape


def dyn_shape(input_x: Any) -> Tensor:
    """Return the sizes of the dimensions as an int64 tensor.

    >>> import mycel as ms
    >>> ms.ops.dyn_shape(ms.ops.ones((2, 3))).tolist()
    [2, 3]
    """
    sizes = operand("dyn_shape", input_x).shape
    if builtins.all(isinstance(d, int) for d in sizes):
        return Tensor(list(sizes), D.int64)
    return stack([as_tensor(d, D.int64) for d in sizes])


def size(input_x: Any) -> Any:
    """Return the number of elements.

    >>> import mycel as ms
    >>> ms.ops.size(ms.ops.ones((2, 3)))
    6
    """
    return operand("size", input_x).size


def numel(input: Any) -> Any:
    """Return the number of elements.

    >>> import mycel as ms
    >>> ms.ops.numel(ms.ops.ones((2, 3)))
    6
    """
    return operand("numel", input).size


def rank(input_x: Any) -> int:
    """Return the number of dimensions.

    >>> import mycel as ms
    >>> ms.ops.rank(ms.ops.ones((2, 3)))
    2
    """
    return operand("rank", input_x).ndim


def dtype(x: Tensor) -> DType:
    """Return the element type.

    >>> import mycel as ms
    >>> ms.ops.dtype(ms.ops.ones(1))
    mindspore.float32
    """
    return operand("dtype", x).dtype


def is_floating_point(input: Tensor) -> bool:
    """Return whether the element type is floating.

    >>> import mycel as ms
    >>> ms.ops.is_floating_point(ms.Tensor([1.0]))
    True
    """
    return operand("is_floating_point", input).dtype.is_floating


def is_complex(input: Tensor) -> bool:
    """Return whether the element type is complex.

    >>> import mycel as ms
    >>> ms.ops.is_complex(ms.Tensor([1.0]))
    False
    """
    return operand("is_complex", input).dtype.is_complex


def is_nonzero(input: Tensor) -> bool:
    """Return whether the only element is not 0. The value is needed.

    Raises ValueError for more than one element.

    >>> import mycel as ms
    >>> ms.ops.is_nonzero(ms.Tensor([2.0]))
    True
    """
    x = term("is_nonzero", input)
    if x.size != 1:
        raise ValueError(f"is_nonzero: takes a tensor of one element, not one of shape {x.shape}")
    return bool(x)
