"""The inverse of max-pooling, and pooling over windows at random places.

`max_unpool` writes each element to the position that `max_pool` with `return_indices` gave, among
zeros. Fractional pooling (Graham, "Fractional Max-Pooling", 2014) divides an axis of size d, for n
windows of size k, into steps of alpha = (d - k) / (n - 1): window i starts at floor((i + u) alpha)
- floor(u alpha), u uniform in [0, 1) for each channel and axis, and the last one ends where the
axis does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycel._src.compiler.prims import elementwise as E
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast
from mycel.ops import gather_scatter, random, reduction
from mycel.ops._operands import broadcast, cast_index, number_of, numbers, operand, reshaped, run, sizes_of
from mycel.ops.convolution import per_axis
from mycel.ops.creation import zeros

__all__ = ["fractional_max_pool2d", "fractional_max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d"]


def _max_unpool(
    name: str, rank: int, x: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> Tensor:
    """Return the elements of `x` at `indices` of an output, zeros elsewhere."""
    value, index = operand(name, x), cast_index(name, indices)
    for parameter, given_sizes in (("kernel_size", kernel_size), ("stride", stride), ("padding", padding)):
        if isinstance(given_sizes, list):
            raise arguments.wrong_type(name, parameter, "an int or a tuple of ints", given_sizes)
    if value.ndim not in (rank + 1, rank + 2) or value.shape != index.shape:
        raise ShapeError(
            f"{name}: takes ([N,] C, *spatial) of {rank} spatial dimensions and indices of the same shape, not "
            f"{value._type} and {index._type}"
        )
    kernel = per_axis(name, "kernel_size", kernel_size, rank)
    strides = kernel if stride is None else per_axis(name, "stride", stride, rank)
    pads = per_axis(name, "padding", padding, rank)
    lead, spatial = value.shape[:-rank], value.shape[-rank:]
    natural = tuple((d - 1) * s - 2 * p + k for d, s, p, k in zip(spatial, strides, pads, kernel))
    given = () if output_size is None else sizes_of(name, "output_size", output_size)
    if not given:
        sizes = natural
    else:
        sizes = given[-rank:]
        if len(given) not in (rank, value.ndim) or any(
            not n - s < d < n + s for d, n, s in zip(sizes, natural, strides)
        ):
            raise ValueError(
                f"{name}: output_size {given} must lie within a stride {strides} of the natural size {natural}"
            )
    rows, count = math.prod(lead), math.prod(spatial)
    flat = zeros((rows, math.prod(sizes)), value.dtype)
    places = reshaped(index, (rows, count))
    written = gather_scatter.write_elements(name, flat, places, reshaped(value, (rows, count)), 1, "none", "front")
    return reshaped(written, (*lead, *sizes))


def max_unpool1d(
    x: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Return the elements of `x` ([N,] C, L) at the positions `indices` that `max_pool1d` found,
    zeros elsewhere.

    Args:
        x (Tensor): The elements, ([N,] C, *spatial).
        indices (Tensor): Their positions, of the shape of `x`.
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each spatial
            axis.
        stride (int | tuple[int, ...] | None): The step of the windows; None for the window.
            Default: None.
        padding (int | tuple[int, ...]): The padding of the windows. Default: 0.
        output_size (int | tuple[int, ...] | None): The size of the result, less than a stride away
            from (L - 1) stride - 2 padding + kernel_size, the default. Default: None.

    Returns:
        Tensor: ([N,] C, *output_size).

    Examples:
        >>> import mycel as ms
        >>> ms.ops.max_unpool1d(ms.Tensor([[[2.0, 4.0]]]), ms.Tensor([[[1, 2]]]), 2).tolist()
        [[[0.0, 2.0, 4.0, 0.0]]]
    """
    return _max_unpool("max_unpool1d", 1, x, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    x: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Return the elements of `x` ([N,] C, H, W) at the positions `indices` in the flattened image
    that `max_pool2d` found, zeros elsewhere.

    Args:
        x (Tensor): The elements, ([N,] C, *spatial).
        indices (Tensor): Their positions, of the shape of `x`.
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each spatial
            axis.
        stride (int | tuple[int, ...] | None): The step of the windows; None for the window.
            Default: None.
        padding (int | tuple[int, ...]): The padding of the windows. Default: 0.
        output_size (int | tuple[int, ...] | None): The size of the result, less than a stride away
            from (L - 1) stride - 2 padding + kernel_size, the default. Default: None.

    Returns:
        Tensor: ([N,] C, *output_size).

    Examples:
        >>> import mycel as ms
        >>> ms.ops.max_unpool2d(ms.Tensor([[[[5.0]]]]), ms.Tensor([[[[3]]]]), 2).tolist()
        [[[[0.0, 0.0], [0.0, 5.0]]]]
    """
    return _max_unpool("max_unpool2d", 2, x, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    x: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Return the elements of `x` ([N,] C, D, H, W) at the positions `indices` in the flattened
    volume that `max_pool3d` found, zeros elsewhere.

    Args:
        x (Tensor): The elements, ([N,] C, *spatial).
        indices (Tensor): Their positions, of the shape of `x`.
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each spatial
            axis.
        stride (int | tuple[int, ...] | None): The step of the windows; None for the window.
            Default: None.
        padding (int | tuple[int, ...]): The padding of the windows. Default: 0.
        output_size (int | tuple[int, ...] | None): The size of the result, less than a stride away
            from (L - 1) stride - 2 padding + kernel_size, the default. Default: None.

    Returns:
        Tensor: ([N,] C, *output_size).

    Examples:
        >>> import mycel as ms
        >>> ms.ops.max_unpool3d(ms.Tensor([[[[[5.0]]]]]), ms.Tensor([[[[[7]]]]]), 2).sum().item()
        5.0
    """
    return _max_unpool("max_unpool3d", 3, x, indices, kernel_size, stride, padding, output_size)


def _fractional(
    name: str,
    rank: int,
    input: Any,
    kernel_size: Any,
    output_size: Any,
    output_ratio: Any,
    samples: Any,
    backwards: bool,
) -> tuple[Tensor, Tensor]:
    """Return the largest elements of windows at random places and their flat positions.

    `backwards` says that the first random number belongs to the last axis.
    """
    x = operand(name, input)
    if x.ndim not in (rank + 1, rank + 2):
        raise ShapeError(f"{name}: takes ([N,] C, *spatial) of {rank} spatial dimensions, not {x._type}")
    if (output_size is None) == (output_ratio is None):
        raise ValueError(
            f"{name}: give exactly one of output_size and output_ratio, not {output_size} and {output_ratio}"
        )
    kernel = per_axis(name, "kernel_size", kernel_size, rank)
    lead, spatial = x.shape[:-rank], tuple(int(d) for d in x.shape[-rank:])
    if output_size is not None:
        sizes = per_axis(name, "output_size", output_size, rank)
    else:
        ratios = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * rank
        if len(ratios) != rank or any(not 0 < number_of(name, "output_ratio", r) < 1 for r in ratios):
            raise ValueError(f"{name}: output_ratio must be one number in (0, 1) or {rank} of them, not {output_ratio}")
        sizes = tuple(int(d * r) for d, r in zip(spatial, ratios))
    if any(n < 1 or n + k - 1 > d for d, n, k in zip(spatial, sizes, kernel)):
        raise ValueError(f"{name}: {sizes} windows of {kernel} do not fit into {spatial}")
    kind = x.dtype if x.dtype in (D.float32, D.float64) else D.float32
    whole = lead if len(lead) == 2 else (1, *lead)
    drawn = random.rand(*whole, rank, dtype=kind) if samples is None else operand(name, samples)
    if drawn.shape != (*whole, rank):
        raise ShapeError(f"{name}: _random_samples must have the shape {(*whole, rank)}, not {drawn.shape}")
    rows, area = math.prod(lead), math.prod(sizes) * math.prod(kernel)
    drawn = reshaped(drawn, (rows, rank))
    flat: Tensor | None = None
    for k in range(rank):
        d, n, w = spatial[k], sizes[k], kernel[k]
        u = gather_scatter.gather(drawn, as_tensor([rank - 1 - k if backwards else k]), 1)
        step = (d - w) / (n - 1) if n > 1 else 0.0
        place = as_tensor(numbers(n).reshape(1, n), drawn.dtype)
        starts = cast(run(E.trunc, (place + u) * step), D.int64) - cast(run(E.trunc, u * step), D.int64)
        last = as_tensor(np.arange(n).reshape(1, n) == n - 1)
        starts = run(
            E.SELECT, broadcast(last, starts.shape), broadcast(as_tensor(d - w, D.int64), starts.shape), starts
        )
        shape = [rows, *(1,) * (2 * rank)]
        shape[1 + k] = n
        within = numbers(w).reshape([w if j == rank + k else 1 for j in range(2 * rank)])
        at = reshaped(starts, tuple(shape)) + as_tensor(within[None])
        flat = at if flat is None else flat * d + at
    assert flat is not None
    index = reshaped(broadcast(flat, (rows, *sizes, *kernel)), (rows, area))
    values = gather_scatter.gather(reshaped(x, (rows, math.prod(spatial))), index, 1, 1)
    windows = (rows, math.prod(sizes), math.prod(kernel))
    best = reduction.argmax(reshaped(values, windows), 2, True)
    value = gather_scatter.gather_elements(reshaped(values, windows), 2, best)
    found = gather_scatter.gather_elements(reshaped(index, windows), 2, best)
    return reshaped(value, (*lead, *sizes)), reshaped(found, (*lead, *sizes))


def fractional_max_pool2d(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:
    """Return the largest elements of windows at random places.

    Exactly one of `output_size` and `output_ratio` is given. ``_random_samples`` (N, C, 2), the u
    of width and height, replaces random numbers.

    Args:
        input (Tensor): ([N,] C, H, W).
        kernel_size (int | tuple[int, ...]): The size of the windows.
        output_size (int | tuple[int, ...] | None): The number of windows along each axis. Default:
            None.
        output_ratio (float | tuple[float, ...] | None): That number over the input's size, in (0,
            1). Default: None.
        return_indices (bool): Whether the flat positions are returned as well. Default: False.

    Returns:
        Tensor | tuple[Tensor, Tensor]: The elements, ([N,] C, H', W'), and with `return_indices`
            their positions.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.fractional_max_pool2d(ms.ops.ones((1, 1, 5, 5)), 2, (3, 3)).shape
        (1, 1, 3, 3)
    """
    arguments.flag("fractional_max_pool2d", "return_indices", return_indices)
    name = "fractional_max_pool2d"
    found = _fractional(name, 2, input, kernel_size, output_size, output_ratio, _random_samples, True)
    return found if return_indices else found[0]


def fractional_max_pool3d(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:
    """Return the largest elements of windows at random places.

    Exactly one of `output_size` and `output_ratio` is given. ``_random_samples`` (N, C, 3), the u
    of depth, height and width, replaces random numbers.

    Args:
        input (Tensor): ([N,] C, D, H, W).
        kernel_size (int | tuple[int, ...]): The size of the windows.
        output_size (int | tuple[int, ...] | None): The number of windows along each axis. Default:
            None.
        output_ratio (float | tuple[float, ...] | None): That number over the input's size, in (0,
            1). Default: None.
        return_indices (bool): Whether the flat positions are returned as well. Default: False.

    Returns:
        Tensor | tuple[Tensor, Tensor]: The elements, ([N,] C, D', H', W'), and with
            `return_indices` their positions.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.fractional_max_pool3d(ms.ops.ones((1, 1, 5, 5, 5)), 2, (3, 3, 3)).shape
        (1, 1, 3, 3, 3)
    """
    arguments.flag("fractional_max_pool3d", "return_indices", return_indices)
    name = "fractional_max_pool3d"
    found = _fractional(name, 3, input, kernel_size, output_size, output_ratio, _random_samples, False)
    return found if return_indices else found[0]
