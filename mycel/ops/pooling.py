"""Pooling: maxima and means over windows that slide over (N, C, *spatial).

With `ceil_mode` a last window that starts inside the input (or the padding in front of it) may
extend beyond the end. The places beyond the end are ignored: they never win a maximum and do not
enter the count of a mean.
"""

from __future__ import annotations

import math
from typing import Any

from mycel._src.compiler.ir.dims import DimLike, maximum
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.convolution import window as window_prims
from mycel._src.compiler.prims.convolution.conv import window_output
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast
from mycel.ops._operands import (
    broadcast,
    constant_like,
    floating,
    iota,
    operand,
    reshaped,
    run,
    sizes_of,
)
from mycel.ops.convolution import Pairs, per_axis
from mycel.ops.creation import ones
from mycel.ops.vector_norms import power, root

__all__ = [
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "max_pool2d",
    "max_pool3d",
]

MaybePair = Tensor | tuple[Tensor, Tensor]


def batched(name: str, x: Tensor, rank: int) -> tuple[Tensor, bool]:
    """Return the input with a batch axis, and whether that axis had to be added."""
    if x.ndim == rank + 2:
        return x, False
    if x.ndim == rank + 1:
        return reshaped(x, (1, *x.shape)), True
    raise ShapeError(f"{name}: the input must be (N, C, *spatial) with {rank} spatial dimensions, not {x._type}")


def unbatched(x: Tensor, single: bool) -> Tensor:
    return reshaped(x, x.shape[1:]) if single else x


def with_ceil(
    spatial: tuple[DimLike, ...], window: tuple[int, ...], strides: tuple[int, ...], pairs: Pairs, ceil_mode: bool
) -> Pairs:
    """Return the padding of each axis, extended for `ceil_mode` by the places that the last window
    needs beyond the end.

    `spatial` is the sizes of the spatial axes, `window` and `strides` those of the sliding window,
    and `pairs` the padding, (low, high) for each axis.
    """
    if not ceil_mode:
        return pairs
    result = []
    for d, k, s, (lo, hi) in zip(spatial, window, strides, pairs):
        room = d + lo + hi - k
        count = -(-room // s) + 1
        # A window must start inside the input or the padding before it.
        beyond = (count - 1) * s - (d + lo)
        if isinstance(beyond, int) and beyond >= 0:
            count = count - 1
        # Strides longer than the window may leave more than the last window needs.
        result.append((lo, hi + maximum((count - 1) * s - room, 0)))
    return tuple(result)


def _sizes(name: str, parameter: str, value: Any, rank: int) -> tuple[int, ...]:
    """Read one int for each axis from an int or, where there are several axes, a tuple of ints."""
    if isinstance(value, list) or isinstance(value, tuple) and rank == 1:
        raise arguments.wrong_type(name, parameter, "an int" if rank == 1 else "an int or a tuple of ints", value)
    return per_axis(name, parameter, value, rank)


def _checked(name: str, window: tuple[int, ...], strides: tuple[int, ...], pads: tuple[int, ...]) -> None:
    if any(k < 1 for k in window) or any(s < 1 for s in strides):
        raise ValueError(f"{name}: kernel_size {window} and stride {strides} must be at least 1")
    if any(p < 0 or 2 * p > k for p, k in zip(pads, window)):
        raise ValueError(f"{name}: padding {pads} must lie between 0 and half the kernel_size {window}")


def _clipped(
    spatial: tuple[DimLike, ...], window: tuple[int, ...], strides: tuple[int, ...], pairs: Pairs
) -> tuple[tuple[int, ...], Pairs]:
    """Return windows and padding without the places that lie in the padding wherever the window
    stands.

    Of windows larger than the input this leaves the part that counts.
    """
    kernel, pads = list(window), list(pairs)
    for i, (d, k, s, (lo, hi)) in enumerate(zip(spatial, window, strides, pairs)):
        if all(isinstance(v, int) for v in (d, k, lo, hi)) and k > d:
            steps = (d + lo + hi - k) // s
            before = max(lo - steps * s, 0)
            after = min(max(k - lo - d, 0), hi)
            if steps >= 0 and before + after < k:
                kernel[i], pads[i] = k - before - after, (lo - before, hi - after)
    return tuple(kernel), tuple(pads)


def max_windows(x: Tensor, window: tuple[int, ...], strides: tuple[int, ...], pairs: Pairs) -> Tensor:
    """Return the largest element of each window of `x`.

    `window` and `strides` have one int for each spatial axis, and `pairs` is the padding, (low,
    high) for each.
    """
    kernel, padding = _clipped(x.shape[2:], window, strides, pairs)
    return run(window_prims.window_max, x, window=kernel, strides=strides, padding=padding)


def _sums(x: Tensor, window: tuple[int, ...], strides: tuple[int, ...], pairs: Pairs) -> Tensor:
    kernel, padding = _clipped(x.shape[2:], window, strides, pairs)
    return run(window_prims.window_sum, x, window=kernel, strides=strides, padding=padding)


def max_positions(x: Tensor, window: tuple[int, ...], strides: tuple[int, ...], pairs: Pairs) -> Tensor:
    """Return the int64 position of each window's largest element in the flattened spatial axes of
    `x`.

    `window`, `strides` and `pairs` are those of `max_windows`.
    """
    place = _wide_places(x, run(window_prims.window_argmax, x, window=window, strides=strides, padding=pairs))
    return _flat_positions(x, place, window, strides, pairs, (1,) * len(window))


def _wide_places(x: Tensor, place: Tensor) -> Tensor:
    """Return positions in windows in a type that can hold all positions of the flattened spatial
    axes.
    """
    return cast(place, S.position_type(math.prod(x.shape[2:])))


def _flat_positions(
    x: Tensor, place: Tensor, window: tuple[int, ...], strides: tuple[int, ...], pairs: Pairs, dilation: tuple[int, ...]
) -> Tensor:
    """Return positions in the flattened spatial axes, from the int32 positions in each window."""
    flat: Tensor | None = None
    for i, (k, s, (lo, _)) in enumerate(zip(window, strides, pairs)):
        inner = math.prod(window[i + 1 :])
        within = place // inner % k if i else place // inner
        at = within * dilation[i] + iota(place.shape, 2 + i, place.dtype) * s - constant_like(lo, place)
        flat = at if flat is None else flat * constant_like(x.shape[2 + i], place) + at
    assert flat is not None
    return cast(flat, D.int64)


def dilated_max(
    name: str, x: Tensor, window: tuple[int, ...], strides: tuple[int, ...], pairs: Pairs, dilation: tuple[int, ...]
) -> tuple[Tensor, Tensor]:
    """Return the largest element of each dilated window of `x`, and its int64 position in the
    flattened spatial axes.

    `dilation` is the step between the elements of a window on each axis; `window`, `strides` and
    `pairs` are those of `max_windows`. `name` is the operation that errors name.
    """
    low, high = (0, 0, *(a for a, _ in pairs)), (0, 0, *(b for _, b in pairs))
    lowest = as_tensor(window_prims.lowest(x.dtype), x.dtype)
    padded = run(S.PAD, x, lowest, low=low, high=high, interior=(0,) * x.ndim)
    out = window_output(name, padded.shape[2:], window, strides, ((0, 0),) * len(window), dilation)
    best: Tensor | None = None
    where: Tensor | None = None
    for place in range(math.prod(window)):
        starts = []
        for i, k in enumerate(window):
            starts.append(place // math.prod(window[i + 1 :]) % k * dilation[i])
        stops = tuple(a + (n - 1) * s + 1 for a, n, s in zip(starts, out, strides))
        part = run(S.SLICE, padded, starts=(0, 0, *starts), stops=(*x.shape[:2], *stops), steps=(1, 1, *strides))
        if best is None or where is None:
            best, where = part, cast(iota(part.shape, 0, D.int32) * 0, D.int32)
            continue
        better = run(E.gt, part, best)
        where = run(E.SELECT, better, broadcast(constant_like(place, where), where.shape), where)
        best = run(E.maximum, best, part)
    assert best is not None and where is not None
    return best, _flat_positions(x, _wide_places(x, where), window, strides, pairs, dilation)


def _max_pool(
    name: str,
    rank: int,
    x: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    positions: bool,
) -> MaybePair:
    arguments.flag(name, "ceil_mode", ceil_mode)
    read = _sizes if rank == 3 else per_axis
    value, single = batched(name, operand(name, x), rank)
    window = read(name, "kernel_size", kernel_size, rank)
    strides = window if stride is None else read(name, "stride", stride, rank)
    pads, steps = read(name, "padding", padding, rank), read(name, "dilation", dilation, rank)
    _checked(name, window, strides, pads)
    spans = tuple((k - 1) * e + 1 for k, e in zip(window, steps))
    pairs = with_ceil(value.shape[2:], spans, strides, tuple((p, p) for p in pads), ceil_mode)
    if any(e != 1 for e in steps):
        best, place = dilated_max(name, value, window, strides, pairs, steps)
        return (unbatched(best, single), unbatched(place, single)) if positions else unbatched(best, single)
    best = unbatched(max_windows(value, window, strides, pairs), single)
    return (best, unbatched(max_positions(value, window, strides, pairs), single)) if positions else best


@fused
def max_pool2d(
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    return_indices: bool = False,
    ceil_mode: bool = False,
) -> MaybePair:
    """Return the largest element of each window over `x` (N, C, H, W).

    Args:
        x (Tensor): (N, C, H, W).
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each spatial
            axis.
        stride (int | tuple[int, ...] | None): The step between windows; None for the window.
            Default: None.
        padding (int | tuple[int, ...]): The width of the border, which never wins. Default: 0.
        dilation (int | tuple[int, ...]): The step between the elements of a window: an int, or one
            for each spatial axis. Default: 1.
        return_indices (bool): Whether the int64 positions of the elements in H * W are returned
            too. Default: False.
        ceil_mode (bool): Whether the last window may extend beyond the end. Default: False.

    Returns:
        Tensor | tuple[Tensor, Tensor]: (N, C, H', W'), and with `return_indices` the positions.

    Raises:
        ValueError: For padding of more than half the window.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.max_pool2d(ms.ops.ones((1, 1, 4, 4)), 2).shape
        (1, 1, 2, 2)
    """
    return _max_pool("max_pool2d", 2, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@fused
def max_pool3d(
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> MaybePair:
    """Return the largest element of each window over `x` (N, C, D, H, W).

    Args:
        x (Tensor): (N, C, D, H, W).
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each spatial
            axis.
        stride (int | tuple[int, ...] | None): The step between windows; None for the window.
            Default: None.
        padding (int | tuple[int, ...]): The width of the border, which never wins. Default: 0.
        dilation (int | tuple[int, ...]): The step between the elements of a window: an int, or one
            for each spatial axis. Default: 1.
        ceil_mode (bool): Whether the last window may extend beyond the end. Default: False.
        return_indices (bool): Whether the int64 positions of the elements in D * H * W are returned
            too. Default: False.

    Returns:
        Tensor | tuple[Tensor, Tensor]: (N, C, D', H', W'), and with `return_indices` the positions.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.max_pool3d(ms.ops.ones((1, 1, 4, 4, 4)), 2).shape
        (1, 1, 2, 2, 2)
    """
    return _max_pool("max_pool3d", 3, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def mean_windows(
    x: Tensor, window: tuple[int, ...], strides: tuple[int, ...], pairs: Pairs, counted: Pairs, divisor: Any = None
) -> Tensor:
    """Return the mean of each window of `x`.

    `window`, `strides` and `pairs` are those of `max_windows`. `counted` is the part of the padding
    that enters the count of elements; a `divisor` other than None or 0 replaces the count.
    """
    total = _sums(x, window, strides, pairs)
    whole = math.prod(window)
    if divisor:
        return total / divisor
    if counted == pairs:
        return run(E.div, total, constant_like(whole, total))
    inside = ones((1, 1, *(d + a + b for d, (a, b) in zip(x.shape[2:], counted))), x.dtype)
    rest = tuple((lo - a, hi - b) for (lo, hi), (a, b) in zip(pairs, counted))
    return run(E.div, total, _sums(inside, window, strides, rest))


def _avg_pool(
    name: str,
    rank: int,
    x: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: Any,
) -> Tensor:
    arguments.flag(name, "ceil_mode", ceil_mode)
    arguments.flag(name, "count_include_pad", count_include_pad)
    by = arguments.integer(name, "divisor_override", divisor)
    value, single = batched(name, floating(name, x), rank)
    window, strides = _sizes(name, "kernel_size", kernel_size, rank), _sizes(name, "stride", stride, rank)
    if rank > 1 and isinstance(padding, (tuple, list)) and len(padding) == 2 * rank:
        given = sizes_of(name, "padding", padding)
        pairs: Pairs = tuple((given[2 * i], given[2 * i + 1]) for i in range(rank))
    else:
        read = per_axis if isinstance(padding, tuple) else _sizes
        pairs = tuple((p, p) for p in read(name, "padding", padding, rank))
    _checked(name, window, strides, tuple(int(max(a, b)) for a, b in pairs))
    full = with_ceil(value.shape[2:], window, strides, pairs, ceil_mode)
    return unbatched(
        mean_windows(value, window, strides, full, pairs if count_include_pad else ((0, 0),) * rank, by), single
    )


@fused
def avg_pool1d(
    input_x: Any,
    kernel_size: Any = 1,
    stride: Any = 1,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the mean of each window over `input_x` (N, C, L).

    Args:
        input_x (Tensor): (N, C, L).
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each spatial
            axis. Default: 1.
        stride (int | tuple[int, ...]): The step between windows: an int, or one for each spatial
            axis. Default: 1.
        padding (int | tuple[int, ...]): The number of zeros on each side. Default: 0.
        ceil_mode (bool): Whether the last window may extend beyond the end. Default: False.
        count_include_pad (bool): Whether padding enters the count. Default: True.

    Returns:
        Tensor: (N, C, L').

    Examples:
        >>> import mycel as ms
        >>> ms.ops.avg_pool1d(ms.Tensor([[[1.0, 3.0, 5.0]]]), 2).tolist()
        [[[2.0, 4.0]]]
    """
    return _avg_pool("avg_pool1d", 1, input_x, kernel_size, stride, padding, ceil_mode, count_include_pad, 0)


@fused
def avg_pool2d(
    input_x: Any,
    kernel_size: Any = 1,
    stride: Any = 1,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int = 0,
) -> Tensor:
    """Return the mean of each window over `input_x` (N, C, H, W).

    Args:
        input_x (Tensor): (N, C, H, W).
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each spatial
            axis. Default: 1.
        stride (int | tuple[int, ...]): The step between windows: an int, or one for each spatial
            axis. Default: 1.
        padding (int | tuple[int, ...]): The number of zeros: an int, one for each axis, or (top,
            bottom, left, right). Default: 0.
        ceil_mode (bool): Whether the last window may extend beyond the end. Default: False.
        count_include_pad (bool): Whether padding enters the count. Default: True.
        divisor_override (int): What replaces the count; 0 or None for nothing. Default: 0.

    Returns:
        Tensor: (N, C, H', W').

    Examples:
        >>> import mycel as ms
        >>> ms.ops.avg_pool2d(ms.ops.ones((1, 1, 4, 4)), 2, 2).shape
        (1, 1, 2, 2)
    """
    return _avg_pool(
        "avg_pool2d", 2, input_x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


@fused
def avg_pool3d(
    input_x: Any,
    kernel_size: Any = 1,
    stride: Any = 1,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int = 0,
) -> Tensor:
    """Return the mean of each window over `input_x` (N, C, D, H, W).

    Args:
        input_x (Tensor): (N, C, D, H, W).
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each spatial
            axis. Default: 1.
        stride (int | tuple[int, ...]): The step between windows: an int, or one for each spatial
            axis. Default: 1.
        padding (int | tuple[int, ...]): The number of zeros: an int, one for each axis, or two for
            each. Default: 0.
        ceil_mode (bool): Whether the last window may extend beyond the end. Default: False.
        count_include_pad (bool): Whether padding enters the count. Default: True.
        divisor_override (int): What replaces the count; 0 or None for nothing. Default: 0.

    Returns:
        Tensor: (N, C, D', H', W').

    Examples:
        >>> import mycel as ms
        >>> ms.ops.avg_pool3d(ms.ops.ones((1, 1, 4, 4, 4)), 2, 2).shape
        (1, 1, 2, 2, 2)
    """
    return _avg_pool(
        "avg_pool3d", 3, input_x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def _lp_pool(name: str, rank: int, x: Any, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool) -> Tensor:
    arguments.flag(name, "ceil_mode", ceil_mode)
    arguments.instance(name, "norm_type", norm_type, (int, float), "a number")
    value, single = batched(name, floating(name, x), rank)
    if not norm_type:
        raise ValueError(f"{name}: norm_type must not be 0")
    window = _sizes(name, "kernel_size", kernel_size, rank)
    strides = window if stride is None else _sizes(name, "stride", stride, rank)
    pairs = with_ceil(value.shape[2:], window, strides, ((0, 0),) * rank, ceil_mode)
    powers = power(value, norm_type)
    if ceil_mode:
        # A window that hangs over the end counts for a whole one, by its mean.
        total: Tensor = mean_windows(powers, window, strides, pairs, ((0, 0),) * rank) * math.prod(window)
    else:
        total = run(window_prims.window_sum, powers, window=window, strides=strides, padding=pairs)
    return unbatched(root(total, norm_type), single)


@fused
def lp_pool1d(x: Any, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """Return ``sum(x ** p) ** (1 / p)`` over each window of `x` (N, C, L), where p is `norm_type`.

    Args:
        x (Tensor): (N, C, L).
        norm_type (float): The power p.
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each spatial
            axis.
        stride (int | tuple[int, ...] | None): The step between windows; None for the window.
            Default: None.
        ceil_mode (bool): Whether the last window may extend beyond the end; its sum is then its
            mean times the size of a whole window, as in MindSpore. Default: False.

    Returns:
        Tensor: (N, C, L').

    Examples:
        >>> import mycel as ms
        >>> ms.ops.lp_pool1d(ms.Tensor([[[3.0, 4.0]]]), 2, 2).tolist()
        [[[5.0]]]
    """
    return _lp_pool(
        "lp_pool1d", 1, x, float(arguments.number("lp_pool1d", "norm_type", norm_type)), kernel_size, stride, ceil_mode
    )


@fused
def lp_pool2d(x: Any, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """Return ``sum(x ** p) ** (1 / p)`` over each window of `x` (N, C, H, W), where p is
    `norm_type`.

    Args:
        x (Tensor): (N, C, H, W).
        norm_type (float): The power p.
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each spatial
            axis.
        stride (int | tuple[int, ...] | None): The step between windows; None for the window.
            Default: None.
        ceil_mode (bool): Whether the last window may extend beyond the end; its sum is then its
            mean times the size of a whole window, as in MindSpore. Default: False.

    Returns:
        Tensor: (N, C, H', W').

    Examples:
        >>> import mycel as ms
        >>> ms.ops.lp_pool2d(ms.ops.ones((1, 1, 2, 2)), 2, 2).tolist()
        [[[[2.0]]]]
    """
    return _lp_pool(
        "lp_pool2d", 2, x, float(arguments.number("lp_pool2d", "norm_type", norm_type)), kernel_size, stride, ceil_mode
    )
