"""What writes into the tensor that it is given, and returns it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycel import ops
from mycel._src.tensors.core.tensor import Tensor
from mycel.compat.operations.hand_written import shapes

__all__ = [
    "inner_inplace_index_put",
    "inplace_fill_scalar",
    "inplace_fill_tensor",
    "inplace_matmul_add",
    "inplace_scatter_src",
    "inplace_scatter_src_reduce",
    "inplace_scatter_value",
    "inplace_scatter_value_reduce",
    "inplace_stop_gradient",
]


def inner_inplace_index_put(input: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Tensor:
    """Return `input` after writing `values` at `indices`, or adding them with `accumulate`."""
    return input.index_put_(indices, values, accumulate)


def inplace_fill_scalar(input: Any, value: Any) -> Tensor:
    """Return the tensor after writing a number everywhere."""
    return input.fill_(value)


def inplace_fill_tensor(input: Any, value: Any) -> Tensor:
    """Return the tensor after writing the element of a tensor everywhere."""
    return input.fill_(value)


def inplace_matmul_add(x: Any, weight: Any, C: Any) -> Tensor:
    """Return `C` after adding the product of the transposed `x` and `weight`."""
    return C.add_(ops.matmul(ops.transpose(x, (1, 0)), weight).astype(C.dtype))


def inplace_scatter_src(input: Any, dim: int, index: Any, src: Any) -> Tensor:
    """Return `input` after writing the elements of `src` at `index` along `dim`."""
    return input.copy_(shapes.scatter(input, dim, index, src))


def inplace_scatter_value(input: Any, dim: int, index: Any, value: Any) -> Tensor:
    """Return `input` after writing a number (`value`) at `index` along `dim`."""
    return input.copy_(shapes.scatter(input, dim, index, value))


def inplace_scatter_src_reduce(input: Any, dim: int, index: Any, src: Any, reduce: str) -> Tensor:
    """Return `input` after combining it with the elements of `src` at `index` along `dim`, as
    `reduce` says: "add" or "multiply".
    """
    return input.copy_(shapes.scatter(input, dim, index, src, reduce))


def inplace_scatter_value_reduce(input: Any, dim: int, index: Any, value: Any, reduce: str) -> Tensor:
    """Return `input` after combining it with a number (`value`) at `index` along `dim`, as
    `reduce` says: "add" or "multiply".
    """
    return input.copy_(shapes.scatter(input, dim, index, value, reduce))


def inplace_stop_gradient(input: Any) -> Tensor:
    """Return the tensor, through which no gradient passes from here on."""
    return ops.stop_gradient_(input)
