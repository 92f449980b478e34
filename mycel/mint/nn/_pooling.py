"""Pooling under the names and arguments of PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel import ops
from mycel._src.compiler.ir.dims import Dim
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor
from mycel.mint._arguments import whole
from mycel.ops import adaptive_pooling
from mycel.ops._operands import cast_index, check_sizes, operand, reshaped, sizes_of
from mycel.ops.convolution import per_axis

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "max_pool2d",
    "max_unpool2d",
]


def avg_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the mean of each window of (N, C, L) or (C, L).

    Args:
        input (Tensor): The images or signals.
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each axis.
        stride (int | tuple[int, ...] | None): The step of the window; None for its size. Default:
            None.
        padding (int | tuple[int, ...]): The padding on both sides: an int, or one for each axis.
            Default: 0.
        ceil_mode (bool): Whether a window is added where elements are left over at the end.
            Default: False.
        count_include_pad (bool): Whether padding counts as zeros. Default: True.

    Returns:
        Tensor: The means.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nn.functional.avg_pool1d(ms.Tensor([[[1.0, 3.0]]]), 2).tolist()
        [[[2.0]]]
    """
    _check_flags("avg_pool1d", ceil_mode, count_include_pad)
    return ops.avg_pool1d(
        input, kernel_size, kernel_size if stride is None else stride, padding, ceil_mode, count_include_pad
    )


def avg_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of each window of (N, C, H, W) or (C, H, W).

    Args:
        input (Tensor): The images or signals.
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each axis.
        stride (int | tuple[int, ...] | None): The step of the window; None for its size. Default:
            None.
        padding (int | tuple[int, ...]): The padding on both sides: an int, or one for each axis.
            Default: 0.
        ceil_mode (bool): Whether a window is added where elements are left over at the end.
            Default: False.
        count_include_pad (bool): Whether padding counts as zeros. Default: True.
        divisor_override (int | None): What sums are divided by instead of the number of elements.
            Default: None.

    Returns:
        Tensor: The means.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nn.functional.avg_pool2d(ms.Tensor([[[[1.0, 3.0]]]]), (1, 2)).tolist()
        [[[[2.0]]]]
    """
    kernel, strides, pads = _windows(kernel_size, kernel_size if stride is None else stride, padding)
    divisor = _divisor("avg_pool2d", divisor_override)
    _check_count("avg_pool2d", 2, kernel_size=kernel_size, stride=stride, padding=padding)
    _check_flags("avg_pool2d", ceil_mode, count_include_pad)
    return ops.avg_pool2d(input, kernel, strides, pads, ceil_mode, count_include_pad, divisor)


def avg_pool3d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of each window of (N, C, D, H, W) or (C, D, H, W).

    Args:
        input (Tensor): The images or signals.
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each axis.
        stride (int | tuple[int, ...] | None): The step of the window; None for its size. Default:
            None.
        padding (int | tuple[int, ...]): The padding on both sides: an int, or one for each axis.
            Default: 0.
        ceil_mode (bool): Whether a window is added where elements are left over at the end.
            Default: False.
        count_include_pad (bool): Whether padding counts as zeros. Default: True.
        divisor_override (int | None): What sums are divided by instead of the number of elements.
            Default: None.

    Returns:
        Tensor: The means.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nn.functional.avg_pool3d(ms.ops.ones((1, 1, 2, 2, 2)), 2).tolist()
        [[[[[1.0]]]]]
    """
    kernel, strides, pads = _windows(kernel_size, kernel_size if stride is None else stride, padding)
    divisor = _divisor("avg_pool3d", divisor_override)
    _check_count("avg_pool3d", 3, kernel_size=kernel_size, stride=stride, padding=padding)
    _check_flags("avg_pool3d", ceil_mode, count_include_pad)
    return ops.avg_pool3d(input, kernel, strides, pads, ceil_mode, count_include_pad, divisor)


def _windows(*sizes: Any) -> tuple[Any, ...]:
    """Return sizes with tuples in place of lists, which `mycel.ops` does not take."""
    return tuple([tuple(v) if isinstance(v, list) else v for v in sizes])


def _divisor(name: str, value: int | None) -> int:
    if value is None:
        return 0
    if whole(name, "divisor_override", value) == 0:
        raise ValueError(f"{name}: divisor_override must not be 0")
    return value


def _check_flags(name: str, ceil_mode: Any, count_include_pad: Any) -> None:
    if ceil_mode is not False:
        arguments.flag(name, "ceil_mode", ceil_mode)
    if count_include_pad is not True:
        arguments.flag(name, "count_include_pad", count_include_pad)


def max_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window of (N, C, H, W) or (C, H, W).

    Args:
        input (Tensor): The images or signals.
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each axis.
        stride (int | tuple[int, ...] | None): The step of the window; None for its size. Default:
            None.
        padding (int | tuple[int, ...]): The padding on both sides: an int, or one for each axis.
            Default: 0.
        dilation (int | tuple[int, ...]): The distance of a window's elements. Default: 1.
        ceil_mode (bool): Whether a window is added where elements are left over at the end.
            Default: False.
        return_indices (bool): Whether positions in H * W are returned too. Default: False.

    Returns:
        Tensor | tuple[Tensor, Tensor]: The elements, and with `return_indices` their positions,
            int64.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nn.functional.max_pool2d(ms.Tensor([[[[1.0, 3.0]]]]), (1, 2)).tolist()
        [[[[3.0]]]]
    """
    for parameter, value in (("kernel_size", kernel_size), ("padding", padding), ("dilation", dilation)):
        _check_pair("max_pool2d", parameter, value)
    if stride is not None:
        _check_pair("max_pool2d", "stride", stride)
    if ceil_mode is not False:
        arguments.flag("max_pool2d", "ceil_mode", ceil_mode)
    if return_indices is not False:
        arguments.flag("max_pool2d", "return_indices", return_indices)
    return ops.max_pool2d(input, kernel_size, stride, padding, dilation, return_indices, ceil_mode)


def _check_pair(name: str, parameter: str, value: Any) -> None:
    if isinstance(value, (tuple, list)):
        if len(value) not in (1, 2):
            raise arguments.wrong_value(name, parameter, "an int or two of them", value, TypeError)
    elif not isinstance(value, (int, np.integer, Dim)):
        raise arguments.wrong_value(name, parameter, "an int or two of them", value)


def _check_count(name: str, rank: int, **sizes: Any) -> None:
    for parameter, value in sizes.items():
        if isinstance(value, (tuple, list)) and len(value) not in (1, rank):
            raise arguments.wrong_value(name, parameter, "an int" + f" or {rank} of them" * (rank > 1), value)


def adaptive_avg_pool1d(input: Any, output_size: Any) -> Tensor:
    """Return the means of `output_size` nearly equal windows of (N, C, L) or (C, L).

    >>> import mycel as ms
    >>> ms.mint.nn.functional.adaptive_avg_pool1d(ms.Tensor([[[1.0, 3.0]]]), 1).tolist()
    [[[2.0]]]
    """
    if output_size is None:
        raise arguments.wrong_type("adaptive_avg_pool1d", "output_size", "an int", output_size)
    _check_count("adaptive_avg_pool1d", 1, output_size=output_size)
    return adaptive_pooling.adaptive_mean("adaptive_avg_pool1d", 1, input, output_size)


def adaptive_avg_pool2d(input: Any, output_size: Any) -> Tensor:
    """Return the means of nearly equal windows of (N, C, H, W) or (C, H, W).

    `output_size` is the number of windows, an int or two, where None keeps an axis.

    >>> import mycel as ms
    >>> ms.mint.nn.functional.adaptive_avg_pool2d(ms.ops.ones((1, 2, 5, 5)), 2).shape
    (1, 2, 2, 2)
    """
    if not isinstance(output_size, (int, np.integer, tuple, list)):
        raise arguments.wrong_value("adaptive_avg_pool2d", "output_size", "an int or two", output_size)
    return adaptive_pooling.adaptive_mean("adaptive_avg_pool2d", 2, input, output_size)


def adaptive_avg_pool3d(input: Any, output_size: Any) -> Tensor:
    """Return the means of nearly equal windows of (N, C, D, H, W) or (C, D, H, W).

    `output_size` is the number of windows, an int or three, where None keeps an axis.

    >>> import mycel as ms
    >>> ms.mint.nn.functional.adaptive_avg_pool3d(ms.ops.ones((1, 2, 5, 5, 5)), 2).shape
    (1, 2, 2, 2, 2)
    """
    if output_size is None:
        raise arguments.wrong_type("adaptive_avg_pool3d", "output_size", "an int or three", output_size)
    _check_count("adaptive_avg_pool3d", 3, output_size=output_size)
    return adaptive_pooling.adaptive_mean("adaptive_avg_pool3d", 3, input, output_size)


def adaptive_max_pool1d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Return the largest elements of `output_size` nearly equal windows of (N, C, L) or (C, L);
    with `return_indices` also their positions.

    >>> import mycel as ms
    >>> x = ms.Tensor([[[1.0, 2.0, 3.0]]])
    >>> ms.mint.nn.functional.adaptive_max_pool1d(x, 1, True)[1].tolist()
    [[[2]]]
    """
    if output_size is None:
        raise arguments.wrong_type("adaptive_max_pool1d", "output_size", "an int", output_size)
    _check_count("adaptive_max_pool1d", 1, output_size=output_size)
    arguments.flag("adaptive_max_pool1d", "return_indices", return_indices)
    return adaptive_pooling.adaptive_max("adaptive_max_pool1d", 1, input, output_size, return_indices)


def adaptive_max_pool2d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Return the largest elements of nearly equal windows of (N, C, H, W) or (C, H, W).

    `output_size` is the number of windows, an int or two, where None keeps an axis; with
    `return_indices` positions in H * W are returned too.

    >>> import mycel as ms
    >>> ms.mint.nn.functional.adaptive_max_pool2d(ms.ops.ones((1, 2, 5, 5)), 2).shape
    (1, 2, 2, 2)
    """
    if output_size is None:
        raise arguments.wrong_type("adaptive_max_pool2d", "output_size", "an int or two", output_size)
    arguments.flag("adaptive_max_pool2d", "return_indices", return_indices)
    return ops.adaptive_max_pool2d(input, output_size, return_indices)


def max_unpool2d(
    input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Return an image of zeros with the maxima of `max_pool2d` at their positions.

    Args:
        input (Tensor): The maxima, ([N,] C, H, W).
        indices (Tensor): Their positions.
        kernel_size (int | tuple[int, ...]): The size of the windows.
        stride (int | tuple[int, ...] | None): Their step; None for their size. Default: None.
        padding (int | tuple[int, ...]): Their padding. Default: 0.
        output_size (int | tuple[int, ...] | None): The size of the result; None for what follows
            from the windows. Default: None.

    Returns:
        Tensor: ([N,] C, *output_size).

    Raises:
        ShapeError: If the indices have another shape.

    Examples:
        >>> import mycel as ms
        >>> x, indices = ms.Tensor([[[[3.0]]]]), ms.Tensor([[[[1]]]])
        >>> ms.mint.nn.functional.max_unpool2d(x, indices, (1, 2)).tolist()
        [[[[0.0, 3.0]]]]
    """
    name = "max_unpool2d"
    x, place = operand(name, input), cast_index(name, indices)
    if x.ndim not in (3, 4) or place.shape != x.shape:
        raise ShapeError(
            f"max_unpool2d: takes (N, C, H, W) or (C, H, W) with indices of that shape, not {x._type} and {place._type}"
        )
    window = per_axis(name, "kernel_size", kernel_size, 2)
    steps = window if stride is None else per_axis(name, "stride", stride, 2)
    pads = check_sizes(name, per_axis(name, "padding", padding, 2))
    if output_size is None:
        size = tuple((d - 1) * s - 2 * p + k for d, s, p, k in zip(x.shape[-2:], steps, pads, window))
    else:
        size = sizes_of(name, "output_size", output_size)
        if len(size) not in (2, x.ndim):
            raise ValueError(f"{name}: output_size must be (H, W) or all sizes of the image, not {output_size!r:.80}")
        size = size[-2:]
    check_sizes(name, size)
    flat = (*x.shape[:-2], x.shape[-2] * x.shape[-1])
    image = ops.zeros((*x.shape[:-2], size[0] * size[1]), dtype=x.dtype)
    filled = ops.scatter(image, -1, reshaped(place, flat), reshaped(x, flat))
    return reshaped(filled, (*x.shape[:-2], *size))
