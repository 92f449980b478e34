"""Pooling layers with padding on both sides, whose stride is by default the window; each keeps its
arguments and calls a function of `mycel.ops`.
"""

from __future__ import annotations

from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["AvgPool1dExt", "AvgPool2dExt", "AvgPool3dExt", "MaxPool2dExt"]


class _Windows(Cell):
    """Base of the layers.

    `kernel_size` and `stride` (None: the window) are an int, or one for each axis; `padding` is
    added on both sides, and `ceil_mode` adds a window where elements are left over at the end.
    """

    def __init__(self, kernel_size: Any, stride: Any, padding: Any, ceil_mode: Any) -> None:
        super().__init__()
        self.kernel_size, self.padding = kernel_size, padding
        self.stride = kernel_size if stride is None else stride
        self.ceil_mode = arguments.flag(type(self).__name__, "ceil_mode", ceil_mode)


class AvgPool1dExt(_Windows):
    """The mean of each window of (N, C, L) or (C, L).

    Args:
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each axis.
        stride (int | tuple[int, ...] | None): The step of the window: an int, or one for each axis;
            None, where it may be, for that of the window. Default: None.
        padding (int | tuple[int, ...]): The elements added on both sides: an int, or one for each
            axis. Default: 0.
        ceil_mode (bool): Whether a window is added where elements are left over at the end.
            Default: False.
        count_include_pad (bool): Whether padding counts as zeros in the mean. Default: True.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.AvgPool1dExt(2)(ms.Tensor([[[1.0, 3.0]]])).tolist()
        [[[2.0]]]
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode)
        self.count_include_pad = arguments.flag("AvgPool1dExt", "count_include_pad", count_include_pad)

    def construct(self, input: Tensor) -> Tensor:
        """Return the means."""
        return ops.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )


class _Divided(_Windows):
    """Base of means over windows.

    `kernel_size` and `stride` (None: the window) are an int, or one for each axis; `padding` is
    added on both sides, and `ceil_mode` adds a window where elements are left over at the end.
    Padding counts as zeros unless `count_include_pad` is False. `divisor_override` divides the sum
    instead of the count.
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode)
        owner = type(self).__name__
        self.count_include_pad = arguments.flag(owner, "count_include_pad", count_include_pad)
        if divisor_override is not None and arguments.integer(owner, "divisor_override", divisor_override) == 0:
            raise ValueError(f"{owner}: divisor_override must not be 0")
        self.divisor_override = divisor_override


class AvgPool2dExt(_Divided):
    """The mean of each window of (N, C, H, W) or (C, H, W).

    Args:
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each axis.
        stride (int | tuple[int, ...] | None): The step of the window: an int, or one for each axis;
            None, where it may be, for that of the window. Default: None.
        padding (int | tuple[int, ...]): The elements added on both sides: an int, or one for each
            axis. Default: 0.
        ceil_mode (bool): Whether a window is added where elements are left over at the end.
            Default: False.
        count_include_pad (bool): Whether padding counts as zeros in the mean. Default: True.
        divisor_override (int | None): What sums are divided by instead of the count; None for the
            count. Default: None.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.AvgPool2dExt((1, 2))(ms.Tensor([[[[1.0, 3.0]]]])).tolist()
        [[[[2.0]]]]
    """

    def construct(self, input: Tensor) -> Tensor:
        """Return the means."""
        return ops.avg_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override or 0,
        )


class AvgPool3dExt(_Divided):
    """The mean of each window of (N, C, D, H, W) or (C, D, H, W).

    Args:
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each axis.
        stride (int | tuple[int, ...] | None): The step of the window: an int, or one for each axis;
            None, where it may be, for that of the window. Default: None.
        padding (int | tuple[int, ...]): The elements added on both sides: an int, or one for each
            axis. Default: 0.
        ceil_mode (bool): Whether a window is added where elements are left over at the end.
            Default: False.
        count_include_pad (bool): Whether padding counts as zeros in the mean. Default: True.
        divisor_override (int | None): What sums are divided by instead of the count; None for the
            count. Default: None.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.AvgPool3dExt(2)(ms.ops.ones((1, 1, 2, 2, 2))).tolist()
        [[[[[1.0]]]]]
    """

    def construct(self, input: Tensor) -> Tensor:
        """Return the means."""
        return ops.avg_pool3d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override or 0,
        )


class MaxPool2dExt(_Windows):
    """The largest element of each window of (N, C, H, W) or (C, H, W); with `return_indices` also
    its position in H * W.

    Args:
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each axis.
            Default: 1.
        stride (int | tuple[int, ...] | None): The step of the window: an int, or one for each axis;
            None, where it may be, for that of the window. Default: None.
        padding (int | tuple[int, ...]): The elements added on both sides: an int, or one for each
            axis. Default: 0.
        dilation (int | tuple[int, ...]): The distance of a window's elements. Default: 1.
        return_indices (bool): Whether the positions of the elements are returned as well. Default:
            False.
        ceil_mode (bool): Whether a window is added where elements are left over at the end.
            Default: False.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.MaxPool2dExt((1, 2), return_indices=True)(ms.Tensor([[[[1.0, 3.0]]]]))[1].tolist()
        [[[[1]]]]
    """

    def __init__(
        self,
        kernel_size: Any = 1,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode)
        self.dilation = dilation
        self.return_indices = arguments.flag("MaxPool2dExt", "return_indices", return_indices)

    def construct(self, input: Tensor) -> Any:
        """Return the maxima, and their positions if asked for."""
        return ops.max_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.return_indices, self.ceil_mode
        )
