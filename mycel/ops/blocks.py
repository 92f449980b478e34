"""Rearrangements in blocks and of sequences, `renorm`, and neighbouring floating-point numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import product
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import broadcast_shapes
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops import arrange, creation, gather_scatter
from mycel.ops import vector_norms as lengths
from mycel.ops._operands import (
    axis_of,
    broadcast,
    cast_index,
    constant_like,
    floating,
    iota,
    number_of,
    operand,
    operands,
    permuted,
    reshaped,
    run,
    select,
    size_of,
    sizes_of,
    take_slice,
)
from mycel.ops.convolution import fold

__all__ = [
    "batch_to_space_nd",
    "col2im",
    "nextafter",
    "padding",
    "renorm",
    "reverse_sequence",
    "space_to_batch_nd",
    "tensor_range",
]


def _block(
    name: str, x: Tensor, block: Any, pairs: Any, what: str
) -> tuple[tuple[int, ...], list[tuple[int, int]], int]:
    """Return the sizes of the block, the pairs of each axis, and the first axis that is cut into
    blocks.
    """
    pairs = pairs.tolist() if isinstance(pairs, (Tensor, np.ndarray)) else pairs
    if not isinstance(pairs, (tuple, list)) or not all(isinstance(p, (tuple, list)) and len(p) == 2 for p in pairs):
        raise TypeError(f"{name}: {what} must be pairs of ints, one for each axis, not {pairs!r:.80}")
    given = [(size_of(name, a), size_of(name, b)) for a, b in pairs]
    sizes = (block,) * len(given) if isinstance(block, int) else sizes_of(name, "the block", block)
    if (
        len(sizes) != len(given)
        or x.ndim <= len(sizes)
        or any(b < 1 for b in sizes)
        or any(v < 0 for p in given for v in p)
    ):
        raise ValueError(f"{name}: blocks {sizes} of at least 1 and {what} {given} of at least 0 do not fit {x._type}")
    return sizes, given, x.ndim - len(sizes)


def space_to_batch_nd(input_x: Any, block_size: Any, paddings: Any) -> Tensor:
    """Cut the last axes, padded with zeros, into blocks, and move the places within a block to the
    batch axis.

    The result has the shape (N prod(block), ..., d / block, ...).

    >>> import mycel as ms
    >>> ms.ops.space_to_batch_nd(ms.ops.ones((1, 1, 2, 4)), [2, 2], [[0, 0], [0, 0]]).shape
    (4, 1, 1, 2)
    """
    name = "space_to_batch_nd"
    x = operand(name, input_x)
    sizes, pairs, first = _block(name, x, block_size, paddings, "paddings")
    low, high = ((0,) * first + tuple(p[k] for p in pairs) for k in (0, 1))
    x = run(S.PAD, x, constant_like(0, x), low=low, high=high, interior=(0,) * x.ndim)
    if any(d % b for d, b in zip(x.shape[first:], sizes)):
        raise ValueError(f"{name}: padded sizes {x.shape[first:]} do not divide into blocks {sizes}")
    split = [v for d, b in zip(x.shape[first:], sizes) for v in (d // b, b)]
    count, n = len(sizes), x.shape[0]
    x = reshaped(x, (*x.shape[:first], *split))
    order = (*(first + 2 * k + 1 for k in range(count)), *range(first), *(first + 2 * k for k in range(count)))
    x = permuted(x, order)
    return reshaped(x, (n * product(sizes), *x.shape[count + 1 :]))


def batch_to_space_nd(input_x: Any, block_shape: Any, crops: Any) -> Tensor:
    """Invert `space_to_batch_nd`: batches become places within blocks, and `crops` are cut off.

    >>> import mycel as ms
    >>> ms.ops.batch_to_space_nd(ms.ops.ones((4, 1, 1, 2)), [2, 2], [[0, 0], [0, 1]]).shape
    (1, 1, 2, 3)
    """
    name = "batch_to_space_nd"
    x = operand(name, input_x)
    sizes, pairs, first = _block(name, x, block_shape, crops, "crops")
    whole, count = product(sizes), len(sizes)
    if x.shape[0] % whole:
        raise ValueError(f"{name}: the batch of {x._type} does not divide into blocks {sizes}")
    n = x.shape[0] // whole
    x = reshaped(x, (*sizes, n, *x.shape[1:]))
    order = [*range(count, count + first)]
    for k in range(count):
        order += [count + first + k, k]
    spatial = [d * b for d, b in zip(x.shape[count + first :], sizes)]
    x = reshaped(permuted(x, tuple(order)), (*x.shape[count : count + first], *spatial))
    for axis, (low, high) in enumerate(pairs, first):
        size = x.shape[axis]
        if low + high > size:
            raise ValueError(f"{name}: crops {(low, high)} are more than the size {size}")
        x = take_slice(x, axis, low, size - high)
    return x


def col2im(input_x: Any, output_size: Any, kernel_size: Any, dilation: Any, padding_value: Any, stride: Any) -> Tensor:
    """Add columns up into images, as `fold` does.

    Args:
        input_x (Tensor): (N, C, KH KW, positions).
        output_size (Tensor): The size of the images, (H, W).
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each axis.
        dilation (int | tuple[int, ...]): The distance of its elements: an int, or one for each
            axis.
        padding_value (int | tuple[int, ...]): The number of zeros that were added on each side.
        stride (int | tuple[int, ...]): The step of the window: an int, or one for each axis.

    Returns:
        Tensor: The images, (N, C, H, W).

    Examples:
        >>> import mycel as ms
        >>> ms.ops.col2im(ms.ops.ones((1, 1, 4, 4)), (3, 3), 2, 1, 0, 1).sum().item()
        16.0
    """
    x = operand("col2im", input_x)
    if x.ndim != 4:
        raise ShapeError(f"col2im: the input must be (N, C, KH KW, positions), not {x._type}")
    n, c, places, positions = x.shape
    return fold(reshaped(x, (n, c * places, positions)), output_size, kernel_size, dilation, padding_value, stride)


def renorm(input: Any, p: Any, axis: int, maxnorm: float) -> Tensor:
    """Scale down the slices of `input` along `axis` whose `p`-norm is above `maxnorm`, so that it
    is `maxnorm`.

    Args:
        input (Tensor): The tensor.
        p (float): The order of the norm.
        axis (int): The axis.
        maxnorm (float): The largest norm.

    Returns:
        Tensor: The shape and type of the input.

    Examples:
        >>> import mycel as ms
        >>> round(ms.ops.renorm(ms.Tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0).sum().item(), 4)
        2.1
    """
    arguments.integer("renorm", "p", p)
    arguments.instance("renorm", "maxnorm", maxnorm, float)
    x = floating("renorm", input)
    if number_of("renorm", "p", p) <= 0 or number_of("renorm", "maxnorm", maxnorm) < 0:
        raise ValueError(f"renorm: p must be positive and maxnorm not negative, not {p} and {maxnorm}")
    where = axis_of("renorm", axis, x.ndim)
    rest = tuple(a for a in range(x.ndim) if a != where)
    size = lengths.vector_norm(x, p, rest, True) if rest else run(E.abs_, x)
    over = run(E.gt, size, constant_like(float(maxnorm), size))
    return x * select(over, float(maxnorm) / (select(over, size, 1.0) + 1e-7), 1.0)


def reverse_sequence(x: Any, seq_lengths: Any, seq_dim: int, batch_dim: int = 0) -> Tensor:
    """Reverse the first `seq_lengths[i]` elements of each sequence i.

    Args:
        x (Tensor): The tensor.
        seq_lengths (Tensor): How many elements are reversed, for each i along `batch_dim`.
        seq_dim (int): The axis along which they are.
        batch_dim (int): The axis of the sequences. Default: 0.

    Returns:
        Tensor: The shape and type of `x`.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.reverse_sequence(ms.Tensor([[1, 2, 3]]), ms.Tensor([2]), 1).tolist()
        [[2, 1, 3]]
    """
    name = "reverse_sequence"
    value, lengths = operand(name, x), cast_index(name, seq_lengths)
    along, batch = axis_of(name, seq_dim, value.ndim), axis_of(name, batch_dim, value.ndim)
    if along == batch or lengths.shape != (value.shape[batch],):
        raise ShapeError(
            f"{name}: takes two axes and {value.shape[batch]} lengths, not {seq_dim}, {batch_dim} and {lengths._type}"
        )
    rest = [a for a in range(value.ndim) if a not in (batch, along)]
    order = (batch, along, *rest)
    moved = permuted(value, order)
    size = moved.shape[1]
    place = iota((moved.shape[0], size), 1, lengths.dtype)
    column = reshaped(lengths, (lengths.shape[0], 1))
    at = select(run(E.lt, place, column), column - place - constant_like(1, place), place)
    found = gather_scatter.gather(moved, at, 1, 1)
    return permuted(found, tuple(int(i) for i in np.argsort(order)))


def padding(x: Any, pad_dim_size: int = 8) -> Tensor:
    """Extend a last axis of size 1 with zeros to the size `pad_dim_size`.

    >>> import mycel as ms
    >>> ms.ops.padding(ms.Tensor([[8.0]]), 3).tolist()
    [[8.0, 0.0, 0.0]]
    """
    arguments.integer("padding", "pad_dim_size", pad_dim_size)
    value = operand("padding", x)
    if value.ndim < 2 or value.shape[-1] != 1 or pad_dim_size < 1:
        raise ShapeError(
            f"padding: takes (..., 1) of at least 2 dimensions and a positive size, not {value._type} and "
            f"{pad_dim_size}"
        )
    return arrange.pad(value, (0, pad_dim_size - 1))


def tensor_range(start: Any, end: Any, step: Any) -> Tensor:
    """Return start, start + step, ... before `end`, as `range` does.

    >>> import mycel as ms
    >>> ms.ops.tensor_range(ms.Tensor(1), ms.Tensor(9), ms.Tensor(3)).tolist()
    [1, 4, 7]
    """
    return creation.range(start, end, step)


@fused
def nextafter(input: Any, other: Any) -> Tensor:
    """Return the next floating-point number from each element of `input` towards `other`.

    The derivative by `input` is 1, and 0 by `other`.

    >>> import mycel as ms
    >>> ms.ops.nextafter(ms.Tensor([1.0]), ms.Tensor([2.0])).item() - 1.0 == 2.0**-23
    True
    """
    x, y = operands("nextafter", input, other)
    if x.dtype not in (D.float32, D.float64):
        raise TypeError(f"nextafter: takes float32 or float64, not {x.dtype.name}")
    shape = broadcast_shapes(x.shape, y.shape)
    given = broadcast(x, shape)
    x, y = (run(E.stop_gradient, broadcast(v, shape)) for v in (x, y))
    info = np.finfo(x.dtype.numpy)
    u, tiny, least = float(info.eps) / 2, float(info.tiny), float(info.smallest_subnormal)
    size = run(E.abs_, x)
    up = run(E.lt, x, y)
    outward = run(E.eq, up, run(E.ge, x, constant_like(0.0, x)))
    edge = run(E.eq, size, constant_like(2 * tiny, x))
    small = run(E.logical_or, size < 2 * tiny, run(E.logical_and, edge, run(E.logical_not, outward)))
    # |x| (u + 2 u^2) lies between half and one and a half times the spacing above x, so that adding
    # it rounds to the neighbour (Rump et al., "Computing predecessor and successor in rounding to
    # nearest", 2009). Near 0 the spacing is the smallest number.
    step = select(small, least, size * (u * (1 + 2 * u)) + least)
    # The largest number is next to infinity, where the step would be infinite.
    endless = run(E.is_inf, x)
    most = constant_like(float(info.max), x)
    largest = select(run(E.gt, x, constant_like(0.0, x)), most, -most)
    moved = select(endless, largest, select(up, x + step, x - step))
    found = select(run(E.eq, x, y), y, moved)
    found = select(run(E.logical_or, run(E.is_nan, x), run(E.is_nan, y)), float("nan"), found)
    # x - x, with the derivative of x; taking away 0 keeps the sign of 0.
    return select(run(E.is_finite, x), found - (x - given), found)
