"""Pooling over windows that adapt to a given output size.

An axis of size d is cut into n windows from floor(i d / n) to ceil((i + 1) d / n), which are of
equal size where n divides d.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim, DimLike
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast
from mycel.ops._operands import (
    broadcast,
    constant_like,
    floating,
    need_room,
    numbers,
    operand,
    reshaped,
    run,
    select,
    size_of,
    take_slice,
)
from mycel.ops.gather_scatter import gather, gather_elements
from mycel.ops.pooling import MaybePair, batched, max_positions, max_windows, mean_windows, unbatched
from mycel.ops.reduction import argmax, mean

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool2d_ext",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
]


# Uneven windows are cut out one by one up to so many of them along an axis; more are gathered.
APART = 64


def _whole(name: str, value: Any) -> Any:
    """Check that the size of one axis is an int or a symbolic size, and return it."""
    return value if isinstance(value, Dim) else arguments.integer(name, "output_size", value)


def _tuple(name: str, value: Any) -> Any:
    """Check that the sizes of several axes are an int or a tuple, and return them."""
    if not isinstance(value, tuple):
        arguments.instance(name, "output_size", value, (int, Dim), "an int or a tuple of ints")
    return value


def _output_size(name: str, value: Any, spatial: tuple[DimLike, ...]) -> tuple[Any, ...]:
    rank = len(spatial)
    if value is None:
        raise arguments.wrong_type(name, "output_size", "an int or several", value)
    sizes = tuple(value) if isinstance(value, (tuple, list)) else (value,) * rank
    if len(sizes) != rank:
        raise ValueError(f"{name}: output_size must be an int or {rank} of them, not {value!r}")
    sizes = tuple(d if n is None else size_of(name, n) for n, d in zip(sizes, spatial))
    if any(isinstance(n, int) and n < 1 for n in sizes):
        raise ValueError(f"{name}: output_size must be at least 1, not {value!r}")
    return sizes


def _even(spatial: Any, sizes: Any) -> bool:
    return all(isinstance(d % n, int) and d % n == 0 for d, n in zip(spatial, sizes))


def adaptive_mean(name: str, rank: int, input: Any, output_size: Any) -> Tensor:
    """Return the means of `input` over windows that adapt to `output_size`.

    `rank` is the number of spatial axes; `name` is the operation that errors name.
    """
    x, single = batched(name, floating(name, input), rank)
    spatial = x.shape[2:]
    sizes = _output_size(name, output_size, spatial)
    if all(isinstance(n, int) and n == 1 for n in sizes):
        return unbatched(mean(x, tuple(range(2, 2 + rank)), True), single)
    if _even(spatial, sizes):
        window = tuple(d // n for d, n in zip(spatial, sizes))
        return unbatched(mean_windows(x, window, window, ((0, 0),) * rank, ((0, 0),) * rank), single)
    for axis, n in enumerate(sizes, start=2):
        if n > APART:
            x = _gathered_means(x, axis, n)
            continue
        parts = [_stretch_mean(x, axis, i, n) for i in range(n)]
        x = run(S.CONCAT, *parts, axis=axis) if n > 1 else parts[0]
    return unbatched(x, single)


def _windows_of(d: int, n: int) -> tuple[Any, Any]:
    """Return the positions of each of `n` adaptive windows of an axis of size `d`, and the sizes of
    the windows.

    Windows that are shorter than the longest repeat their last position.
    """
    count = numbers(n)
    begin = count * d // n
    end = -(-(count + 1) * d // n)
    width = int((end - begin).max())
    need_room("adaptive pooling", (n, width), D.int64)
    return np.minimum(begin[:, None] + np.arange(width), end[:, None] - 1), end - begin


def _gathered(x: Tensor, axis: int, at: Any) -> Tensor:
    """Return the elements at positions (n, width) along an axis, which is replaced by these two
    axes.
    """
    lead, rest = x.shape[:axis], x.shape[axis + 1 :]
    need_room("adaptive pooling", (*lead, *at.shape, *rest), x.dtype)
    return gather(x, Tensor(at), axis)


def _gathered_means(x: Tensor, axis: int, n: int) -> Tensor:
    at, sizes = _windows_of(int(x.shape[axis]), n)
    ones = (1,) * (x.ndim - 1 - axis)
    inside = np.arange(at.shape[1]) < sizes[:, None]
    found = select(Tensor(inside.reshape(*at.shape, *ones)), _gathered(x, axis, at), 0.0)
    total = run(R.reduce_sum, found, axes=(axis + 1,), keepdims=False)
    return run(E.div, total, as_tensor(sizes.reshape(n, *ones), total.dtype))


def _stretch(x: Tensor, axis: int, i: int, n: int) -> Tensor:
    d = x.shape[axis]
    return take_slice(x, axis, i * d // n, -(-(i + 1) * d // n))


def _stretch_mean(x: Tensor, axis: int, i: int, n: int) -> Tensor:
    part = _stretch(x, axis, i, n)
    total = run(R.reduce_sum, part, axes=(axis,), keepdims=True)
    return run(E.div, total, constant_like(part.shape[axis], total))


@fused
def adaptive_avg_pool1d(input: Any, output_size: Any) -> Tensor:
    """Return the means of (N, C, L) over windows that adapt to the length `output_size`.

    >>> import mycel as ms
    >>> ms.ops.adaptive_avg_pool1d(ms.Tensor([[[1.0, 2.0, 3.0]]]), 2).tolist()
    [[[1.5, 2.5]]]
    """
    return adaptive_mean("adaptive_avg_pool1d", 1, input, _whole("adaptive_avg_pool1d", output_size))


@fused
def adaptive_avg_pool2d(input: Any, output_size: Any) -> Tensor:
    """Return the means of (N, C, H, W) over windows that adapt to `output_size`, where None keeps
    an axis.

    >>> import mycel as ms
    >>> ms.ops.adaptive_avg_pool2d(ms.ops.ones((1, 2, 5, 7)), (2, None)).shape
    (1, 2, 2, 7)
    """
    return adaptive_mean("adaptive_avg_pool2d", 2, input, _tuple("adaptive_avg_pool2d", output_size))


adaptive_avg_pool2d_ext = adaptive_avg_pool2d


@fused
def adaptive_avg_pool3d(input: Any, output_size: Any) -> Tensor:
    """Return the means of (N, C, D, H, W) over windows that adapt to `output_size`, where None
    keeps an axis.

    >>> import mycel as ms
    >>> ms.ops.adaptive_avg_pool3d(ms.ops.ones((1, 2, 4, 4, 4)), 1).shape
    (1, 2, 1, 1, 1)
    """
    return adaptive_mean("adaptive_avg_pool3d", 3, input, _tuple("adaptive_avg_pool3d", output_size))


def adaptive_max(name: str, rank: int, input: Any, output_size: Any, positions: bool) -> MaybePair:
    """Return the maxima of `input` over windows that adapt to `output_size`.

    `rank` is the number of spatial axes. With `positions` the positions of the maxima in the
    flattened spatial axes are returned too. `name` is the operation that errors name.
    """
    x, single = batched(name, operand(name, input), rank)
    spatial = x.shape[2:]
    sizes = _output_size(name, output_size, spatial)
    none = ((0, 0),) * rank
    if _even(spatial, sizes):
        window = tuple(d // n for d, n in zip(spatial, sizes))
        best = unbatched(max_windows(x, window, window, none), single)
        return (best, unbatched(max_positions(x, window, window, none), single)) if positions else best
    if positions:
        best, place = _uneven_max(x, tuple(map(int, spatial)), tuple(map(int, sizes)))
        return unbatched(best, single), unbatched(place, single)
    for axis, n in enumerate(sizes, start=2):
        if n > APART:
            x = run(
                R.reduce_max,
                _gathered(x, axis, _windows_of(int(x.shape[axis]), n)[0]),
                axes=(axis + 1,),
                keepdims=False,
            )
            continue
        parts = [run(R.reduce_max, _stretch(x, axis, i, n), axes=(axis,), keepdims=True) for i in range(n)]
        x = run(S.CONCAT, *parts, axis=axis) if n > 1 else parts[0]
    return unbatched(x, single)


def _uneven_max(x: Tensor, spatial: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Return the largest elements of windows of different sizes, and their positions.

    All windows are gathered; shorter ones repeat their last element.
    """
    rank = len(spatial)
    flat: Any = np.zeros((1,) * (2 * rank), np.int64)
    for k, (d, n) in enumerate(zip(spatial, sizes)):
        at, _ = _windows_of(d, n)
        shape = [1] * (2 * rank)
        shape[k], shape[rank + k] = at.shape
        need_room("adaptive pooling", tuple([max(a, b) for a, b in zip(flat.shape, shape)]), D.int64)
        flat = flat * d + at.reshape(shape)
    index = Tensor(flat.reshape(math.prod(sizes), -1))
    lead = x.shape[:2]
    windows = gather(reshaped(x, (*lead, math.prod(spatial))), index, 2)
    best = argmax(windows, 3, True)
    place = gather_elements(broadcast(reshaped(index, (1, 1, *index.shape)), windows.shape), 3, best)
    return reshaped(gather_elements(windows, 3, best), (*lead, *sizes)), reshaped(place, (*lead, *sizes))


@fused
def adaptive_max_pool1d(input: Any, output_size: Any) -> Tensor:
    """Return the maxima of (N, C, L) over windows that adapt to the length `output_size`.

    >>> import mycel as ms
    >>> ms.ops.adaptive_max_pool1d(ms.Tensor([[[1.0, 2.0, 3.0]]]), 2).tolist()
    [[[2.0, 3.0]]]
    """
    found: Any = adaptive_max("adaptive_max_pool1d", 1, input, _whole("adaptive_max_pool1d", output_size), False)
    return found


@fused
def adaptive_max_pool2d(input: Any, output_size: Any, return_indices: bool = False) -> MaybePair:
    """Return the maxima of (N, C, H, W) over windows that adapt to `output_size`, where None keeps
    an axis.

    With `return_indices` their positions in H * W are returned too.

    >>> import mycel as ms
    >>> ms.ops.adaptive_max_pool2d(ms.ops.ones((1, 2, 4, 4)), 2).shape
    (1, 2, 2, 2)
    """
    arguments.flag("adaptive_max_pool2d", "return_indices", return_indices)
    return adaptive_max("adaptive_max_pool2d", 2, input, output_size, return_indices)


@fused
def adaptive_max_pool3d(input: Any, output_size: Any, return_indices: bool = False) -> MaybePair:
    """Return the maxima of (N, C, D, H, W) over windows that adapt to `output_size`, where None
    keeps an axis.

    With `return_indices` their int32 positions in D * H * W are returned too.

    >>> import mycel as ms
    >>> ms.ops.adaptive_max_pool3d(ms.ops.ones((1, 2, 4, 4, 4)), 2).shape
    (1, 2, 2, 2, 2)
    """
    found = adaptive_max("adaptive_max_pool3d", 3, input, output_size, return_indices)
    return (found[0], cast(found[1], D.int32)) if isinstance(found, tuple) else found
