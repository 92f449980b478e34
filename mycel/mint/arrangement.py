"""Shapes, indices and joins with `dim`."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, Optional, Union

from mycel import ops
from mycel.base import dtype as D
from mycel.base.errors import ShapeError
from mycel.core.tensor import Tensor, cast
from mycel.ops._operands import axis_of, operand, reshaped, take_slice

__all__ = [
    "cat",
    "chunk",
    "clone",
    "concat",
    "diag",
    "diff",
    "flatten",
    "gather",
    "index_add",
    "index_select",
    "item",
    "meshgrid",
    "narrow",
    "nonzero",
    "permute",
    "repeat_interleave",
    "scatter",
    "scatter_add",
    "select",
    "split",
    "squeeze",
    "stack",
    "transpose",
    "where",
]


def cat(tensors: Any, dim: int = 0) -> Tensor:
    """Return the tensors joined along an axis that they have.

    >>> import mycel as ms
    >>> ms.mint.cat([ms.Tensor([1]), ms.Tensor([2])]).tolist()
    [1, 2]
    """
    return ops.cat(tensors, dim)


def concat(tensors: Any, dim: int = 0) -> Tensor:
    """Return the tensors joined along an axis that they have.

    >>> import mycel as ms
    >>> ms.mint.concat([ms.Tensor([1]), ms.Tensor([2])]).tolist()
    [1, 2]
    """
    return ops.cat(tensors, dim)


def stack(tensors: Any, dim: int = 0) -> Tensor:
    """Return the tensors joined along a new axis.

    >>> import mycel as ms
    >>> ms.mint.stack([ms.Tensor([1]), ms.Tensor([2])]).shape
    (2, 1)
    """
    return ops.stack(tensors, dim)


def chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` parts along `dim`, all but the last of one size.

    >>> import mycel as ms
    >>> [t.tolist() for t in ms.mint.chunk(ms.Tensor([1, 2, 3]), 2)]
    [[1, 2], [3]]
    """
    return ops.chunk(input, chunks, dim)


def split(tensor: Any, split_size_or_sections: Union[int, Sequence[int]], dim: int = 0) -> tuple[Tensor, ...]:
    """Return parts along `dim` of one size, the last perhaps smaller, or of the sizes given.

    >>> import mycel as ms
    >>> [t.tolist() for t in ms.mint.split(ms.Tensor([1, 2, 3]), 2)]
    [[1, 2], [3]]
    """
    return ops.split(tensor, split_size_or_sections, dim)


def clone(input: Any) -> Tensor:
    """Return a copy, through which gradients pass.

    >>> import mycel as ms
    >>> ms.mint.clone(ms.Tensor([1])).tolist()
    [1]
    """
    return operand("clone", input).copy()


def diag(input: Any, diagonal: int = 0) -> Tensor:
    """Return a vector as the diagonal of a matrix, or the diagonal of a matrix.

    Above the main one if `diagonal` is positive.

    >>> import mycel as ms
    >>> ms.mint.diag(ms.Tensor([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    x = operand("diag", input)
    if x.ndim == 1:
        return ops.diag_embed(x, diagonal)
    if x.ndim != 2:
        raise ShapeError(f"diag: takes a vector or a matrix, not a tensor of shape {x.shape}")
    return ops.diagonal(x, diagonal, 0, 1)


def diff(input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Return the differences of neighbours along `dim`, taken `n` times, after joining `prepend`
    and `append`.

    >>> import mycel as ms
    >>> ms.mint.diff(ms.Tensor([1, 4, 9])).tolist()
    [3, 5]
    """
    return ops.diff(input, n, dim, prepend, append)


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Return the axes from `start_dim` to `end_dim` as one.

    >>> import mycel as ms
    >>> ms.mint.flatten(ms.ops.ones((2, 3))).shape
    (6,)
    """
    x = operand("flatten", input)
    return reshaped(x, (1,)) if x.ndim == 0 else ops.flatten(x, start_dim=start_dim, end_dim=end_dim)


def gather(input: Any, dim: int, index: Any) -> Tensor:
    """Return the elements whose place along `dim` is given by `index`, at each place of it.

    >>> import mycel as ms
    >>> ms.mint.gather(ms.Tensor([[1, 2]]), 1, ms.Tensor([[1]])).tolist()
    [[2]]
    """
    return ops.gather_elements(input, dim, index)


def index_select(input: Any, dim: int, index: Any) -> Tensor:
    """Return the slices at the places `index` along `dim`.

    >>> import mycel as ms
    >>> ms.mint.index_select(ms.Tensor([[1, 2]]), 1, ms.Tensor([1])).tolist()
    [[2]]
    """
    return ops.index_select(input, dim, index)


def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Tensor:
    """Return `input` with the slices of `source`, times `alpha`, added at the places `index` along
    `dim`; equal places add up.

    >>> import mycel as ms
    >>> ms.mint.index_add(ms.Tensor([1.0, 2.0]), 0, ms.Tensor([0, 0]), ms.Tensor([1.0, 1.0])).tolist()
    [3.0, 2.0]
    """
    given = operand("index_add", source)
    return ops.index_add(input, cast(operand("index_add", index), D.int32), given if alpha == 1 else given * alpha, dim)


def scatter(input: Any, dim: int, index: Any, src: Any) -> Tensor:
    """Return `input` with elements of `src`, a tensor or a number, written where `index` says along
    `dim`.

    >>> import mycel as ms
    >>> ms.mint.scatter(ms.Tensor([1, 2]), 0, ms.Tensor([1]), 7).tolist()
    [1, 7]
    """
    return ops.scatter(input, dim, index, src)


def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Tensor:
    """Return `input` with elements of `src` added where `index` says along `dim`; equal places add
    up.

    >>> import mycel as ms
    >>> ms.mint.scatter_add(ms.Tensor([1, 2]), 0, ms.Tensor([1, 1]), ms.Tensor([7, 1])).tolist()
    [1, 10]
    """
    x, places, given = operand("scatter_add", input), operand("scatter_add", index), operand("scatter_add", src)
    if tuple(places.shape) != tuple(given.shape):
        # More may be given than there are places.
        if given.ndim != places.ndim:
            raise ShapeError(
                f"scatter_add: index {places._type} and src {given._type} have different numbers of dimensions"
            )
        for axis, size in enumerate(places.shape):
            given = take_slice(given, axis, 0, size)
    return ops.tensor_scatter_elements(x, places, given, dim, "add")


def item(input: Any) -> Any:
    """Return the one element as a Python number; ValueError unless there is exactly one.

    >>> import mycel as ms
    >>> ms.mint.item(ms.Tensor([3]))
    3
    """
    return operand("item", input).item()


def meshgrid(*tensors: Any, indexing: Optional[str] = None) -> tuple[Tensor, ...]:
    """Return the coordinates of a grid of vectors.

    The first is for the rows, or the columns if `indexing` is "xy".

    >>> import mycel as ms
    >>> ms.mint.meshgrid(ms.Tensor([1, 2]), ms.Tensor([3]))[0].tolist()
    [[1], [2]]
    """
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    return ops.meshgrid(*given, indexing="ij" if indexing is None else indexing)


def narrow(input: Any, dim: int, start: int, length: int) -> Tensor:
    """Return the part of `length` from `start` on along `dim`.

    >>> import mycel as ms
    >>> ms.mint.narrow(ms.Tensor([1, 2, 3]), 0, 1, 2).tolist()
    [2, 3]
    """
    return ops.narrow(input, dim, start, length)


def nonzero(input: Any, as_tuple: bool = False) -> Any:
    """Return the places of elements that are not 0, one row for each; with `as_tuple` one tensor
    for each axis.

    >>> import mycel as ms
    >>> ms.mint.nonzero(ms.Tensor([0, 5])).tolist()
    [[1]]
    """
    return ops.nonzero(input, as_tuple=as_tuple)


def permute(input: Any, dims: Any) -> Tensor:
    """Return the axes in another order.

    >>> import mycel as ms
    >>> ms.mint.permute(ms.ops.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    return ops.permute(input, dims)


def transpose(input: Any, dim0: int, dim1: int) -> Tensor:
    """Return two axes exchanged.

    >>> import mycel as ms
    >>> ms.mint.transpose(ms.ops.ones((2, 3)), 0, 1).shape
    (3, 2)
    """
    return ops.swapaxes(input, dim0, dim1)


def repeat_interleave(
    input: Any, repeats: Any, dim: Optional[int] = None, *, output_size: Optional[int] = None
) -> Tensor:
    """Return each element repeated, `repeats` a number or one for each place along `dim`; without
    `dim` the elements of all axes.

    `output_size` is accepted and not needed.

    >>> import mycel as ms
    >>> ms.mint.repeat_interleave(ms.Tensor([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    """
    return ops.repeat_interleave(input, repeats, dim)


def select(input: Any, dim: int, index: Any) -> Tensor:
    """Return the slice at place `index` along `dim`, without that axis.

    >>> import mycel as ms
    >>> ms.mint.select(ms.Tensor([[1, 2], [3, 4]]), 0, 1).tolist()
    [3, 4]
    """
    x = operand("select", input)
    axis = axis_of("select", dim, x.ndim)
    return x[(builtins.slice(None),) * axis + (index,)]


def squeeze(input: Any, dim: Any = None) -> Tensor:
    """Without axes of size 1: all of them, or those of `dim` (one or several) that have it.

    >>> import mycel as ms
    >>> ms.mint.squeeze(ms.ops.ones((1, 2, 1)), 0).shape
    (2, 1)
    """
    x = operand("squeeze", input)
    if dim is None:
        return ops.squeeze(x)
    axes = [axis_of("squeeze", a, builtins.max(x.ndim, 1)) for a in (dim if isinstance(dim, (tuple, list)) else (dim,))]
    kept = tuple(n for a, n in enumerate(x.shape) if not (a in axes and n == 1))
    return reshaped(x, kept)


def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """Return `input` where the condition holds, else `other`; with the condition alone the places
    where it holds, one tensor for each axis.

    >>> import mycel as ms
    >>> ms.mint.where(ms.Tensor([True, False]), 1.0, 2.0).tolist()
    [1.0, 2.0]
    """
    if input is None and other is None:
        return ops.nonzero(condition, as_tuple=True)
    if input is None or other is None:
        raise TypeError("where: takes the condition alone, or with both input and other")
    return ops.where(condition, input, other)
