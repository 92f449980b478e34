"""Pooling layers over (N, C, *spatial), or (C, *spatial) without a batch.

`pad_mode` "valid" adds no padding, "same" enough for ceil(size / stride) positions, "pad" `padding`
on both sides. A mean with "same" never counts padding in one and two dimensions, and in three it
does unless `count_include_pad` is False.
"""

from __future__ import annotations

from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor
from mycel.nn.layer.conv import as_image
from mycel.ops import convolution, pooling

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
]


class _Pool(Cell):
    """Base of pooling layers; `rank` is the number of spatial axes.

    `kernel_size` and `stride` are an int, or one for each axis. `pad_mode` is "valid", "same" or
    "pad", which adds `padding` elements on both sides, at most half of the window. `ceil_mode` adds
    a window where elements are left over at the end. `data_format` must be "NCHW".
    """

    rank = 2

    def __init__(
        self, kernel_size: Any, stride: Any, pad_mode: Any, padding: Any, ceil_mode: Any, data_format: str
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        miscounted = TypeError if self.rank == 1 else ValueError
        self.window = arguments.sizes(owner, "kernel_size", kernel_size, self.rank, lists=False, miscounted=miscounted)
        self.strides = arguments.sizes(owner, "stride", stride, self.rank, lists=False, miscounted=miscounted)
        mode = arguments.text(owner, "pad_mode", pad_mode).lower()
        self.pad_mode = arguments.choice(owner, "pad_mode", mode, ("valid", "same", "pad")).upper()
        self.padding = arguments.sizes(owner, "padding", padding, self.rank, 0)
        self._only_with_pad("padding", padding, any(self.padding))
        # As in MindSpore, what is false stands for False where nothing is padded.
        unset = self.rank < 3 and self.pad_mode != "PAD" and not ceil_mode
        self.ceil_mode = False if unset else arguments.flag(owner, "ceil_mode", ceil_mode)
        if data_format != "NCHW":
            raise ValueError(f"{owner}: data_format {data_format!r} is not supported; transpose the input to 'NCHW'")
        if any(2 * p > k for p, k in zip(self.padding, self.window)):
            raise ValueError(f"{owner}: padding {self.padding} must be at most half of kernel_size {self.window}")
        self.kernel_size = (1, *self.window) if self.rank == 1 else kernel_size
        self.stride = (1, *self.strides) if self.rank == 1 else stride

    def _only_with_pad(self, name: str, value: Any, given: bool) -> None:
        if given and self.pad_mode != "PAD":
            raise ValueError(
                f"{type(self).__name__}: {name} {value} goes with pad_mode 'pad', not {self.pad_mode.lower()!r}"
            )

    def _pairs(self, spatial: tuple[Any, ...]) -> Any:
        if self.pad_mode == "SAME":
            return convolution.same_padding(spatial, self.window, self.strides, (1,) * self.rank)
        return tuple((p, p) for p in self.padding)

    def extend_repr(self) -> str:
        """Return the arguments."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode}"


class _MaxPool(_Pool):
    """Base of maximum pooling layers.

    `kernel_size` and `stride` are an int, or one for each axis. `pad_mode` is "valid", "same" or
    "pad", which adds `padding` elements on both sides, at most half of the window. `ceil_mode` adds
    a window where elements are left over at the end. `dilation` is the distance of a window's
    elements; it, `ceil_mode` and `return_indices` need `pad_mode` "pad". `data_format` must be
    "NCHW".
    """

    def __init__(
        self,
        kernel_size: Any = 1,
        stride: Any = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
        data_format: str = "NCHW",
    ) -> None:
        padded = not isinstance(pad_mode, str) or pad_mode.lower() == "pad"
        if not padded and not isinstance(padding, Tensor) and padding not in (0, (0,) * self.rank):
            raise ValueError(f"{type(self).__name__}: padding {padding!r} goes with pad_mode 'pad', not {pad_mode!r}")
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode if padded else bool(ceil_mode), data_format)
        self.return_indices = bool(return_indices)
        self._only_with_pad("dilation", dilation, dilation not in (1, (1,) * self.rank))
        self._only_with_pad("return_indices", return_indices, self.return_indices)
        self._only_with_pad("ceil_mode", ceil_mode, self.ceil_mode)
        self.dilation = arguments.sizes(type(self).__name__, "dilation", dilation, self.rank)

    def construct(self, x: Tensor) -> Any:
        """Return the largest element of each window; with `return_indices` also its position."""
        value, single = pooling.batched(type(self).__name__, x, self.rank)
        if self.pad_mode == "PAD":
            return self._padded(value, single)
        return pooling.unbatched(
            pooling.max_windows(value, self.window, self.strides, self._pairs(value.shape[2:])), single
        )

    def _padded(self, x: Tensor, single: bool) -> Any:
        # A line is an image of height 1, so positions along it are those in the image.
        rank = self.rank
        x = ops.expand_dims(x, 2) if self.rank == 1 else x
        function = ops.max_pool3d if self.rank == 3 else ops.max_pool2d
        out: Any = function(
            x,
            as_image(rank, 1, self.window),
            as_image(rank, 1, self.strides),
            as_image(rank, 0, self.padding),
            as_image(rank, 1, self.dilation),
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )
        parts = out if self.return_indices else (out,)
        lowered = tuple(pooling.unbatched(ops.squeeze(y, 2) if rank == 1 else y, single) for y in parts)
        return lowered if self.return_indices else lowered[0]


class MaxPool1d(_MaxPool):
    """The largest element of each window over (N, C, L); with `return_indices` also its position
    along L.

    Args:
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each axis.
            Default: 1.
        stride (int | tuple[int, ...]): The step of the window: an int, or one for each axis; None,
            where it may be, for that of the window. Default: 1.
        pad_mode (str): "valid", "same" or "pad", which adds `padding` elements on both sides, at
            most half of the window. Default: "valid".
        padding (int | tuple[int, ...]): The elements added on both sides, at most half of the
            window: an int, or one for each axis. Default: 0.
        dilation (int | tuple[int, ...]): The distance of a window's elements; other than 1 it needs
            `pad_mode` "pad". Default: 1.
        return_indices (bool): Whether the positions are returned as well; needs `pad_mode` "pad".
            Default: False.
        ceil_mode (bool): Whether a window is added where elements are left over at the end; needs
            `pad_mode` "pad". Default: False.

    Raises:
        TypeError, ValueError: For arguments that do not fit together.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.MaxPool1d(2, 2)(ms.Tensor([[[1.0, 3.0, 2.0, 0.0]]])).tolist()
        [[[3.0, 2.0]]]
    """

    rank = 1

    def __init__(
        self,
        kernel_size: Any = 1,
        stride: Any = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, dilation, return_indices, ceil_mode)


class MaxPool2d(_MaxPool):
    """The largest element of each window over (N, C, H, W); with `return_indices` also its position
    in H * W.

    Args:
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each axis.
            Default: 1.
        stride (int | tuple[int, ...]): The step of the window: an int, or one for each axis; None,
            where it may be, for that of the window. Default: 1.
        pad_mode (str): "valid", "same" or "pad", which adds `padding` elements on both sides, at
            most half of the window. Default: "valid".
        padding (int | tuple[int, ...]): The elements added on both sides, at most half of the
            window: an int, or one for each axis. Default: 0.
        dilation (int | tuple[int, ...]): The distance of a window's elements; other than 1 it needs
            `pad_mode` "pad". Default: 1.
        return_indices (bool): Whether the positions are returned as well; needs `pad_mode` "pad".
            Default: False.
        ceil_mode (bool): Whether a window is added where elements are left over at the end; needs
            `pad_mode` "pad". Default: False.
        data_format (str): Must be "NCHW". Default: "NCHW".

    Raises:
        TypeError, ValueError: For arguments that do not fit together.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.MaxPool2d(2, 2)(ms.ops.ones((1, 3, 6, 6))).shape
        (1, 3, 3, 3)
    """

    def __init__(
        self,
        kernel_size: Any = 1,
        stride: Any = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, dilation, return_indices, ceil_mode, data_format)


class MaxPool3d(_MaxPool):
    """The largest element of each window over (N, C, D, H, W); with `return_indices` also its
    position in D * H * W.

    Args:
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each axis.
            Default: 1.
        stride (int | tuple[int, ...]): The step of the window: an int, or one for each axis; None,
            where it may be, for that of the window. Default: 1.
        pad_mode (str): "valid", "same" or "pad", which adds `padding` elements on both sides, at
            most half of the window. Default: "valid".
        padding (int | tuple[int, ...]): The elements added on both sides, at most half of the
            window: an int, or one for each axis. Default: 0.
        dilation (int | tuple[int, ...]): The distance of a window's elements; other than 1 it needs
            `pad_mode` "pad". Default: 1.
        return_indices (bool): Whether the positions are returned as well; needs `pad_mode` "pad".
            Default: False.
        ceil_mode (bool): Whether a window is added where elements are left over at the end; needs
            `pad_mode` "pad". Default: False.

    Raises:
        TypeError, ValueError: For arguments that do not fit together.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.MaxPool3d(2, 2)(ms.ops.ones((1, 3, 4, 4, 4))).shape
        (1, 3, 2, 2, 2)
    """

    rank = 3

    def __init__(
        self,
        kernel_size: Any = 1,
        stride: Any = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, dilation, return_indices, ceil_mode)


class _AvgPool(_Pool):
    """Base of mean pooling layers.

    `kernel_size` and `stride` are an int, or one for each axis. `pad_mode` is "valid", "same" or
    "pad", which adds `padding` elements on both sides, at most half of the window. `ceil_mode` adds
    a window where elements are left over at the end. Padding counts as zeros unless
    `count_include_pad` is False. `divisor_override` divides the sum instead of the count.
    `data_format` must be "NCHW".
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any,
        pad_mode: Any,
        padding: Any,
        ceil_mode: Any,
        count_include_pad: Any,
        divisor_override: Any = None,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode, data_format)
        owner = type(self).__name__
        self.count_include_pad = arguments.flag(owner, "count_include_pad", count_include_pad)
        if divisor_override is not None:
            arguments.integer(owner, "divisor_override", divisor_override, 1)
        self.divisor_override = divisor_override

    def construct(self, x: Tensor) -> Tensor:
        """Return the mean of each window."""
        value, single = pooling.batched(type(self).__name__, x, self.rank)
        spatial = value.shape[2:]
        pairs = self._pairs(spatial)
        none = ((0, 0),) * self.rank
        counted = pairs if self.count_include_pad and (self.pad_mode == "PAD" or self.rank == 3) else none
        covered = pooling.with_ceil(spatial, self.window, self.strides, pairs, self.ceil_mode)
        out = pooling.mean_windows(value, self.window, self.strides, covered, counted, self.divisor_override)
        return pooling.unbatched(out, single)


class AvgPool1d(_AvgPool):
    """The mean of each window over (N, C, L).

    Args:
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each axis.
            Default: 1.
        stride (int | tuple[int, ...]): The step of the window: an int, or one for each axis; None,
            where it may be, for that of the window. Default: 1.
        pad_mode (str): "valid", "same" or "pad", which adds `padding` elements on both sides, at
            most half of the window. Default: "valid".
        padding (int | tuple[int, ...]): The elements added on both sides, at most half of the
            window: an int, or one for each axis. Default: 0.
        ceil_mode (bool): Whether a window is added where elements are left over at the end.
            Default: False.
        count_include_pad (bool): Whether padding counts as zeros in the mean. Default: True.

    Raises:
        TypeError, ValueError: For arguments that do not fit together.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.AvgPool1d(2, 2)(ms.Tensor([[[1.0, 3.0, 2.0, 0.0]]])).tolist()
        [[[2.0, 1.0]]]
    """

    rank = 1

    def __init__(
        self,
        kernel_size: Any = 1,
        stride: Any = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode, count_include_pad)


class AvgPool2d(_AvgPool):
    """The mean of each window over (N, C, H, W).

    Args:
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each axis.
            Default: 1.
        stride (int | tuple[int, ...]): The step of the window: an int, or one for each axis; None,
            where it may be, for that of the window. Default: 1.
        pad_mode (str): "valid", "same" or "pad", which adds `padding` elements on both sides, at
            most half of the window. Default: "valid".
        padding (int | tuple[int, ...]): The elements added on both sides, at most half of the
            window: an int, or one for each axis. Default: 0.
        ceil_mode (bool): Whether a window is added where elements are left over at the end.
            Default: False.
        count_include_pad (bool): Whether padding counts as zeros in the mean. Default: True.
        divisor_override (int | None): What sums are divided by instead of the count; None for the
            count. Default: None.
        data_format (str): Must be "NCHW". Default: "NCHW".

    Raises:
        TypeError, ValueError: For arguments that do not fit together.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.AvgPool2d(2, 2)(ms.ops.ones((1, 3, 6, 6))).shape
        (1, 3, 3, 3)
    """

    def __init__(
        self,
        kernel_size: Any = 1,
        stride: Any = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__(
            kernel_size, stride, pad_mode, padding, ceil_mode, count_include_pad, divisor_override, data_format
        )


class AvgPool3d(_AvgPool):
    """The mean of each window over (N, C, D, H, W).

    Args:
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each axis.
            Default: 1.
        stride (int | tuple[int, ...]): The step of the window: an int, or one for each axis; None,
            where it may be, for that of the window. Default: 1.
        pad_mode (str): "valid", "same" or "pad", which adds `padding` elements on both sides, at
            most half of the window. Default: "valid".
        padding (int | tuple[int, ...]): The elements added on both sides, at most half of the
            window: an int, or one for each axis. Default: 0.
        ceil_mode (bool): Whether a window is added where elements are left over at the end.
            Default: False.
        count_include_pad (bool): Whether padding counts as zeros in the mean. Default: True.
        divisor_override (int | None): What sums are divided by instead of the count; None for the
            count. Default: None.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.AvgPool3d(2, 2)(ms.ops.ones((1, 3, 4, 4, 4))).shape
        (1, 3, 2, 2, 2)
    """

    rank = 3

    def __init__(
        self,
        kernel_size: Any = 1,
        stride: Any = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode, count_include_pad, divisor_override)


class AdaptiveAvgPool1d(Cell):
    """The mean over `output_size` nearly equal windows of (N, C, L).

    >>> import mycel as ms
    >>> ms.nn.AdaptiveAvgPool1d(2)(ms.Tensor([[[1.0, 3.0, 2.0, 0.0]]])).tolist()
    [[[2.0, 1.0]]]
    """

    def __init__(self, output_size: int) -> None:
        super().__init__()
        self.output_size = arguments.integer("AdaptiveAvgPool1d", "output_size", output_size, 1)

    def construct(self, input: Tensor) -> Tensor:
        """Return the mean of each window."""
        return ops.adaptive_avg_pool1d(input, self.output_size)


def _adaptive_size(owner: str, size: Any) -> Any:
    """Check that `size` is an int or a tuple of ints and None, none of them negative."""
    for each in size if isinstance(size, tuple) else (size,):
        if each is not None or not isinstance(size, tuple):
            arguments.integer(owner, "output_size (an int or a tuple)", each, 0)
    return size


class AdaptiveAvgPool2d(Cell):
    """The mean over nearly equal windows of (N, C, H, W).

    `output_size` is the number of windows, an int or a tuple of two, of which None stands for the
    input's own size.

    >>> import mycel as ms
    >>> ms.nn.AdaptiveAvgPool2d((2, None))(ms.ops.ones((1, 3, 5, 4))).shape
    (1, 3, 2, 4)
    """

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = _adaptive_size("AdaptiveAvgPool2d", output_size)
        if isinstance(output_size, tuple) and len(output_size) != 2:
            raise arguments.wrong_value("AdaptiveAvgPool2d", "output_size", "an int or two of them", output_size)

    def construct(self, input: Tensor) -> Tensor:
        """Return the mean of each window."""
        return ops.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(Cell):
    """The mean over nearly equal windows of (N, C, D, H, W).

    `output_size` is the number of windows, an int or a tuple of three, of which None stands for the
    input's own size.

    >>> import mycel as ms
    >>> ms.nn.AdaptiveAvgPool3d(2)(ms.ops.ones((1, 3, 5, 4, 4))).shape
    (1, 3, 2, 2, 2)
    """

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = _adaptive_size("AdaptiveAvgPool3d", output_size)

    def construct(self, input: Tensor) -> Tensor:
        """Return the mean of each window."""
        return ops.adaptive_avg_pool3d(input, self.output_size)


class AdaptiveMaxPool1d(Cell):
    """The largest element of each of `output_size` nearly equal windows of (N, C, L).

    >>> import mycel as ms
    >>> ms.nn.AdaptiveMaxPool1d(2)(ms.Tensor([[[1.0, 3.0, 2.0, 0.0]]])).tolist()
    [[[3.0, 2.0]]]
    """

    def __init__(self, output_size: int) -> None:
        super().__init__()
        self.output_size = arguments.integer("AdaptiveMaxPool1d", "output_size", output_size, 1)

    def construct(self, input: Tensor) -> Tensor:
        """Return the largest element of each window."""
        return ops.adaptive_max_pool1d(input, self.output_size)


class AdaptiveMaxPool2d(Cell):
    """The largest element of nearly equal windows of (N, C, H, W); with `return_indices` also its
    position in H * W.

    >>> import mycel as ms
    >>> ms.nn.AdaptiveMaxPool2d(2)(ms.ops.ones((1, 3, 4, 4))).shape
    (1, 3, 2, 2)
    """

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = arguments.flag("AdaptiveMaxPool2d", "return_indices", return_indices)

    def construct(self, input: Tensor) -> Any:
        """Return the largest element of each window."""
        return ops.adaptive_max_pool2d(input, self.output_size, self.return_indices)
