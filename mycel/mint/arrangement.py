"""Shapes, indices and joins with `dim`."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.mint._arguments import number, whole
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
    """Return the tensors joined along an existing axis.

    >>> import mycel as ms
    >>> ms.mint.cat([ms.Tensor([1]), ms.Tensor([2])]).tolist()
    [1, 2]
    """
    if isinstance(tensors, Tensor):
        raise arguments.wrong_type("cat", "tensors", "a tuple or a list", tensors)
    return ops.cat(tensors, dim)


def concat(tensors: Any, dim: int = 0) -> Tensor:
    """Return the tensors joined along an existing axis, as `cat`.

    >>> import mycel as ms
    >>> ms.mint.concat([ms.Tensor([1]), ms.Tensor([2])]).tolist()
    [1, 2]
    """
    if isinstance(tensors, Tensor):
        raise arguments.wrong_type("concat", "tensors", "a tuple or a list", tensors)
    return ops.cat(tensors, dim)


def stack(tensors: Any, dim: int = 0) -> Tensor:
    """Return the tensors joined along a new axis.

    >>> import mycel as ms
    >>> ms.mint.stack([ms.Tensor([1]), ms.Tensor([2])]).shape
    (2, 1)
    """
    if isinstance(tensors, Tensor):
        raise arguments.wrong_type("stack", "tensors", "a tuple or a list", tensors)
    return ops.stack(tensors, dim)


def chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split a tensor along `dim` into at most `chunks` parts, all but the last of the same size.

    >>> import mycel as ms
    >>> [t.tolist() for t in ms.mint.chunk(ms.Tensor([1, 2, 3]), 2)]
    [[1, 2], [3]]
    """
    return ops.chunk(input, whole("chunk", "chunks", chunks), dim)


def split(tensor: Any, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Split a tensor along `dim` into parts of one size, the last perhaps smaller, or of the given
    sizes.

    >>> import mycel as ms
    >>> [t.tolist() for t in ms.mint.split(ms.Tensor([1, 2, 3]), 2)]
    [[1, 2], [3]]
    """
    return ops.split(tensor, split_size_or_sections, dim)


def clone(input: Any) -> Tensor:
    """Return a copy; gradients pass through it.

    >>> import mycel as ms
    >>> ms.mint.clone(ms.Tensor([1])).tolist()
    [1]
    """
    return operand("clone", input).copy()


def diag(input: Any, diagonal: int = 0) -> Tensor:
    """Return the matrix with a given diagonal for a vector, or the diagonal of a matrix.

    `diagonal` counts the diagonals above the main one, or below if it is negative.

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
    """Return the differences of adjacent elements of `input` along `dim`, taken `n` times.

    Args:
        input (Tensor): The tensor.
        n (int): How many times differences are taken. Default: 1.
        dim (int): The axis. Default: -1.
        prepend (Tensor | None): What is joined to the front first. Default: None.
        append (Tensor | None): What is joined to the end first. Default: None.

    Returns:
        Tensor: `n` elements less along the axis.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.diff(ms.Tensor([1, 4, 9])).tolist()
        [3, 5]
    """
    arguments.optional("diff", "prepend", prepend, Tensor)
    arguments.optional("diff", "append", append, Tensor)
    return ops.diff(input, n, dim, prepend, append)


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Join the axes from `start_dim` to `end_dim` into one.

    >>> import mycel as ms
    >>> ms.mint.flatten(ms.ops.ones((2, 3))).shape
    (6,)
    """
    x = operand("flatten", input)
    return reshaped(x, (1,)) if x.ndim == 0 else ops.flatten(x, start_dim=start_dim, end_dim=end_dim)


def gather(input: Any, dim: int, index: Any) -> Tensor:
    """Return the elements of `input` at the positions `index` along `dim`; the result has the shape
    of `index`.

    >>> import mycel as ms
    >>> ms.mint.gather(ms.Tensor([[1, 2]]), 1, ms.Tensor([[1]])).tolist()
    [[2]]
    """
    return ops.gather_elements(input, dim, index)


def index_select(input: Any, dim: int, index: Any) -> Tensor:
    """Return the slices at the positions `index` along `dim`.

    >>> import mycel as ms
    >>> ms.mint.index_select(ms.Tensor([[1, 2]]), 1, ms.Tensor([1])).tolist()
    [[2]]
    """
    return ops.index_select(input, dim, index)


def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Tensor:
    """Return `input` with the slices of `source`, times `alpha`, added at the positions `index`
    along `dim`.

    Slices with equal positions add up.

    Args:
        input (Tensor): The tensor.
        dim (int): The axis.
        index (Tensor): The positions, a vector.
        source (Tensor): The slices.
        alpha (float): Their factor. Default: 1.

    Returns:
        Tensor: The shape and type of the input.

    Examples:
        >>> import mycel as ms
        >>> x, ones = ms.Tensor([1.0, 2.0]), ms.Tensor([1.0, 1.0])
        >>> ms.mint.index_add(x, 0, ms.Tensor([0, 0]), ones).tolist()
        [3.0, 2.0]
    """
    given = operand("index_add", source)
    alpha = number("index_add", "alpha", alpha)
    places = operand("index_add", index)
    if places.ndim > 1:
        raise ShapeError(f"index_add: index must be a vector, not a tensor of shape {places.shape}")
    return ops.index_add(input, cast(places, D.int32), given if alpha == 1 else given * alpha, dim)


def scatter(input: Any, dim: int, index: Any, src: Any) -> Tensor:
    """Return `input` with the elements of `src`, a tensor or a number, written at the positions
    `index` along `dim`.

    Args:
        input (Tensor): The tensor.
        dim (int): The axis.
        index (Tensor): The positions.
        src (Tensor | float): The elements, or a number.

    Returns:
        Tensor: The shape and type of the input.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.scatter(ms.Tensor([1, 2]), 0, ms.Tensor([1]), 7).tolist()
        [1, 7]
    """
    return ops.scatter(input, dim, index, src)


def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Tensor:
    """Return `input` with the elements of `src` added at the positions `index` along `dim`.

    Elements with equal positions add up.

    Args:
        input (Tensor): The tensor.
        dim (int): The axis.
        index (Tensor): The positions.
        src (Tensor): The elements.

    Returns:
        Tensor: The shape and type of the input.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.scatter_add(ms.Tensor([1, 2]), 0, ms.Tensor([1, 1]), ms.Tensor([7, 1])).tolist()
        [1, 10]
    """
    x, places, given = operand("scatter_add", input), operand("scatter_add", index), operand("scatter_add", src)
    if tuple(places.shape) != tuple(given.shape):
        # `src` may be larger than `index`; its surplus is ignored.
        if given.ndim != places.ndim:
            raise ShapeError(
                f"scatter_add: index {places._type} and src {given._type} have different numbers of dimensions"
            )
        for axis, size in enumerate(places.shape):
            given = take_slice(given, axis, 0, size)
    return ops.tensor_scatter_elements(x, places, given, dim, "add")


def item(input: Any) -> Any:
    """Return the only element as a Python number; raises ValueError unless there is exactly one.

    >>> import mycel as ms
    >>> ms.mint.item(ms.Tensor([3]))
    3
    """
    return operand("item", input).item()


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Return the coordinates of the grid that vectors span.

    The first vector runs over the rows, or over the columns if `indexing` is "xy".

    >>> import mycel as ms
    >>> ms.mint.meshgrid(ms.Tensor([1, 2]), ms.Tensor([3]))[0].tolist()
    [[1], [2]]
    """
    if indexing is not None:
        arguments.choice("meshgrid", "indexing", indexing, ("ij", "xy"))
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    given = [operand("meshgrid", t) for t in given]
    if builtins.any(t.ndim > 1 for t in given):
        raise ShapeError(f"meshgrid: takes vectors, not tensors of shapes {[t.shape for t in given]}")
    return ops.meshgrid(*given, indexing="ij" if indexing is None else indexing)


def narrow(input: Any, dim: int, start: int, length: int) -> Tensor:
    """Return a slice along an axis.

    Args:
        input (Tensor): The tensor.
        dim (int): The axis.
        start (int): The first position.
        length (int): How many elements.

    Returns:
        Tensor: `length` elements along the axis.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.narrow(ms.Tensor([1, 2, 3]), 0, 1, 2).tolist()
        [2, 3]
    """
    return ops.narrow(input, dim, start, length)


def nonzero(input: Any, as_tuple: bool = False) -> Any:
    """Return the positions of elements that are not 0, one row for each; with `as_tuple` one tensor
    for each axis.

    >>> import mycel as ms
    >>> ms.mint.nonzero(ms.Tensor([0, 5])).tolist()
    [[1]]
    """
    arguments.flag("nonzero", "as_tuple", as_tuple)
    return ops.nonzero(input, as_tuple=as_tuple)


def permute(input: Any, dims: Any) -> Tensor:
    """Return the tensor with its axes in the order `dims`.

    >>> import mycel as ms
    >>> ms.mint.permute(ms.ops.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    return ops.permute(input, arguments.sequence("permute", "dims", dims))


def transpose(input: Any, dim0: int, dim1: int) -> Tensor:
    """Return the tensor with two axes exchanged.

    >>> import mycel as ms
    >>> ms.mint.transpose(ms.ops.ones((2, 3)), 0, 1).shape
    (3, 2)
    """
    return ops.swapaxes(input, dim0, dim1)


def repeat_interleave(input: Any, repeats: Any, dim: int | None = None, *, output_size: int | None = None) -> Tensor:
    """Return a tensor with each element repeated.

    Args:
        input (Tensor): The tensor.
        repeats (int | Tensor): A number, or one for each position.
        dim (int | None): The axis; None for all elements in one. Default: None.
        output_size (int | None): Has no effect. Default: None.

    Returns:
        Tensor: The repeated elements.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.repeat_interleave(ms.Tensor([1, 2]), 2).tolist()
        [1, 1, 2, 2]
    """
    return ops.repeat_interleave(input, repeats, dim)


def select(input: Any, dim: int, index: Any) -> Tensor:
    """Return the slice at position `index` along `dim`, without that axis.

    >>> import mycel as ms
    >>> ms.mint.select(ms.Tensor([[1, 2], [3, 4]]), 0, 1).tolist()
    [3, 4]
    """
    x = operand("select", input)
    axis = axis_of("select", dim, x.ndim)
    return x[(builtins.slice(None),) * axis + (whole("select", "index", index),)]


def squeeze(input: Any, dim: Any = None) -> Tensor:
    """Remove axes of size 1; `dim`, an axis or several, limits which.

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
    """Return `input` where the condition holds, else `other`.

    With the condition alone, return the positions where it holds, one tensor for each axis.

    >>> import mycel as ms
    >>> ms.mint.where(ms.Tensor([True, False]), 1.0, 2.0).tolist()
    [1.0, 2.0]
    """
    if input is None and other is None:
        return ops.nonzero(condition, as_tuple=True)
    if input is None or other is None:
        raise TypeError("where: takes the condition alone, or with both input and other")
    return ops.where(condition, input, other)
