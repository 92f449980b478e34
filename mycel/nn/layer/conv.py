"""Convolution layers, for images of shape (N, C, *spatial).

`pad_mode` "same" adds zeros so that there are ceil(size / stride) positions, "valid" none, "pad"
`padding` on each side (an int, or low and high for each axis). One-dimensional layers keep their
weights as two-dimensional ones of height 1. By default weights start as ``HeUniform(sqrt(5))``,
biases as ``Uniform(1 / sqrt(fan_in))``.
"""

from __future__ import annotations

import math
from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.common.initializer import HeUniform, Uniform, initializer
from mycel.ops import convolution

__all__ = ["Conv1d", "Conv1dTranspose", "Conv2d", "Conv2dTranspose", "Conv3d", "Conv3dTranspose"]

_AXES = {1: "L", 2: "HW", 3: "DHW"}


def _sizes(owner: str, name: str, value: Any, rank: int) -> tuple[int, ...]:
    return arguments.sizes(owner, name, value, rank, lists=False, miscounted=ValueError if rank == 3 else TypeError)


def _padding(owner: str, padding: Any, rank: int, pad_mode: str) -> Any:
    if isinstance(padding, tuple):
        if len(padding) != 2 * rank:
            raise arguments.wrong_value(
                owner,
                "padding",
                f"an int or {2 * rank} of them (low and high of each axis)",
                padding,
                TypeError if rank == 1 else ValueError,
            )
        given: Any = tuple(arguments.integer(owner, "each of padding", p, 0) for p in padding)
    else:
        given = arguments.integer(owner, "padding", padding, 0)
    if pad_mode != "pad" and any(given if isinstance(given, tuple) else (given,)):
        raise ValueError(f"{owner}: padding {padding} goes with pad_mode 'pad', not {pad_mode!r}")
    return given


def as_image(rank: int, one: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return sizes as those of an image: where `rank` is 1, the size of a line after the height
    `one`.
    """
    return (one, *sizes) if rank == 1 else sizes


def _lifted_weight(owner: str, weight: Tensor) -> Tensor:
    """Return the weight of a line's convolution with an axis of size 1 for images."""
    if weight.ndim != 3:
        raise ValueError(f"{owner}: weight_init must have 3 dimensions, not shape {weight.shape}")
    return ops.expand_dims(weight, 2)


class _Conv(Cell):
    """Base of the layers; `rank` is the number of spatial axes of the image.

    `in_channels` and `out_channels` are the numbers of channels, which `group` divides into groups
    that are convolved separately. `kernel_size`, `stride` and `dilation` (the distance of the
    kernel's elements) are an int, or one for each axis. `pad_mode` is "same", "valid" or "pad",
    which adds `padding` zeros on each side (an int, or low and high for each axis). `has_bias` adds
    a bias. `weight_init` and `bias_init` are initializers (None: those of the module docstring),
    `dtype` is the element type of the parameters. `data_format` must be "NC" with the spatial axes;
    `output_padding` adds zeros at the end of a transposed convolution.
    """

    rank = 2
    transposed = False

    def __init__(
        self,
        in_channels: Any,
        out_channels: Any,
        kernel_size: Any,
        stride: Any,
        pad_mode: str,
        padding: Any,
        dilation: Any,
        group: Any,
        has_bias: Any,
        weight_init: Any,
        bias_init: Any,
        dtype: Any,
        data_format: str,
        output_padding: Any = 0,
    ) -> None:
        super().__init__()
        owner, rank = type(self).__name__, self.rank
        self.in_channels = arguments.integer(owner, "in_channels", in_channels, 1)
        self.out_channels = arguments.integer(owner, "out_channels", out_channels, 1)
        self.group = arguments.integer(owner, "group", group, 1)
        if in_channels % group or out_channels % group:
            raise ValueError(
                f"{owner}: {in_channels} input and {out_channels} output channels do not both divide into {group} "
                "groups"
            )
        usual = "NC" + _AXES[rank]
        self.data_format = data_format
        if data_format != usual:
            raise ValueError(f"{owner}: data_format {data_format!r} is not supported; transpose the image to {usual!r}")
        one_of = arguments.one_of if self.transposed else arguments.choice
        self.pad_mode = one_of(owner, "pad_mode", pad_mode, ("same", "valid", "pad"))
        padding = _padding(owner, padding, rank, pad_mode)
        output_padding = arguments.sizes(owner, "output_padding", output_padding, rank, 0, lists=False)
        if any(output_padding) and pad_mode != "pad":
            raise ValueError(f"{owner}: output_padding {output_padding} goes with pad_mode 'pad', not {pad_mode!r}")
        self.kernel_size = as_image(rank, 1, _sizes(owner, "kernel_size", kernel_size, rank))
        self.stride = as_image(rank, 1, _sizes(owner, "stride", stride, rank))
        self.dilation = as_image(rank, 1, _sizes(owner, "dilation", dilation, rank))
        self.output_padding = as_image(rank, 0, output_padding)
        if rank == 1:
            low, high = padding if isinstance(padding, tuple) else (padding, padding)
            padding = (0, 0, low, high)
        self.padding = padding
        self.has_bias = arguments.flag(owner, "has_bias", has_bias)
        outer = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        shape = (outer[0], outer[1] // group, *self.kernel_size)
        fan_in = shape[1] * math.prod(self.kernel_size)
        self.weight_init = HeUniform(math.sqrt(5)) if weight_init is None else weight_init
        if rank == 1 and isinstance(weight_init, Tensor):
            self.weight_init = _lifted_weight(owner, weight_init)
        self.weight = Parameter(initializer(self.weight_init, shape, dtype), name="weight")
        self.bias_init = (Uniform(1 / math.sqrt(fan_in)) if bias_init is None else bias_init) if has_bias else bias_init
        self.bias = Parameter(initializer(self.bias_init, (out_channels,), dtype), name="bias") if has_bias else None

    def _lifted(self, x: Tensor) -> Tensor:
        if x.ndim != self.rank + 2:
            raise ValueError(
                f"{type(self).__name__}: the input must be (N, C, {', '.join(_AXES[self.rank])}), not of shape "
                f"{x.shape}"
            )
        return ops.expand_dims(x, 2) if self.rank == 1 else x

    def _lowered(self, y: Tensor) -> Tensor:
        return ops.squeeze(y, 2) if self.rank == 1 else y

    def construct(self, x: Tensor) -> Tensor:
        """Return the convolution of an image."""
        function = ops.conv3d if self.rank == 3 else ops.conv2d
        y = function(
            self._lifted(x), self.weight, self.bias, self.stride, self.pad_mode, self.padding, self.dilation, self.group
        )
        return self._lowered(y)

    def extend_repr(self) -> str:
        """Return the arguments."""
        return (
            f"input_channels={self.in_channels}, output_channels={self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, pad_mode={self.pad_mode}, padding={self.padding}, dilation={self.dilation}, "
            f"group={self.group}, "
            f"has_bias={self.has_bias}, weight_init={self.weight_init}, bias_init={self.bias_init}, "
            f"format={'NCDHW' if self.rank == 3 else 'NCHW'}"
        )


class _Transposed(_Conv):
    transposed = True

    def construct(self, x: Tensor) -> Tensor:
        """Return the transposed convolution of an image."""
        name, x = type(self).__name__, self._lifted(x)
        spans = tuple((k - 1) * d + 1 for k, d in zip(self.kernel_size, self.dilation))
        extra = self.output_padding
        if self.pad_mode == "same":
            pairs: Any = tuple(
                (max(span - s, 0) // 2, max(span - s, 0) - max(span - s, 0) // 2) for span, s in zip(spans, self.stride)
            )
        else:
            pairs = convolution.paddings(
                name, self.pad_mode, self.padding, x.shape[2:], self.kernel_size, self.stride, self.dilation
            )
        if self.pad_mode != "pad":
            extra = tuple(max(s - span, 0) for span, s in zip(spans, self.stride))
        if self.rank == 2 and self.pad_mode == "pad" and any(extra):
            y = convolution.transposed(
                name, x, self.weight, self.bias, self.stride, pairs, (0, 0), self.dilation, self.group
            )
            return ops.pad(y, [0, extra[1], 0, extra[0]])
        y = convolution.transposed(
            name, x, self.weight, self.bias, self.stride, pairs, extra, self.dilation, self.group
        )
        return self._lowered(y)


class Conv1d(_Conv):
    """The cross-correlation of (N, C_in, L) with a weight of shape (C_out, C_in / group, 1,
    kernel_size), plus a bias if asked for.

    The result is (N, C_out, L').

    Args:
        in_channels (int): The number of channels of the input, which `group` divides.
        out_channels (int): The number of channels of the result, which `group` divides.
        kernel_size (int | tuple[int, ...]): The size of the kernel: an int, or one for each axis.
        stride (int | tuple[int, ...]): The step of the kernel: an int, or one for each axis.
            Default: 1.
        pad_mode (str): "same", "valid" or "pad", which adds `padding` zeros on each side. Default:
            "same".
        padding (int | tuple[int, ...]): The zeros on each side with `pad_mode` "pad": an int, or
            low and high for each axis. Default: 0.
        dilation (int | tuple[int, ...]): The distance of the kernel's elements: an int, or one for
            each axis. Default: 1.
        group (int): The number of groups of channels that are convolved separately. Default: 1.
        has_bias (bool): Whether a bias is added. Default: False.
        weight_init (Tensor | str | Initializer | float | None): The initializer of the weight; None
            for ``HeUniform(sqrt(5))``. Default: None.
        bias_init (Tensor | str | Initializer | float | None): The initializer of the bias; None for
            ``Uniform(1 / sqrt(fan_in))``. Default: None.
        dtype (DType | None): The element type of the parameters. Default: float32.

    Raises:
        TypeError, ValueError: For arguments that do not fit together.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.Conv1d(3, 4, 5, stride=2)(ms.ops.ones((1, 3, 8))).shape
        (1, 4, 4)
    """

    rank = 1

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        pad_mode: str = "same",
        padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        dtype: Any = D.float32,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            pad_mode,
            padding,
            dilation,
            group,
            has_bias,
            weight_init,
            bias_init,
            dtype,
            "NCL",
        )


class Conv2d(_Conv):
    """The cross-correlation of (N, C_in, H, W) with a weight of shape (C_out, C_in / group,
    *kernel_size), plus a bias if asked for.

    The result is (N, C_out, H', W').

    Args:
        in_channels (int): The number of channels of the input, which `group` divides.
        out_channels (int): The number of channels of the result, which `group` divides.
        kernel_size (int | tuple[int, ...]): The size of the kernel: an int, or one for each axis.
        stride (int | tuple[int, ...]): The step of the kernel: an int, or one for each axis.
            Default: 1.
        pad_mode (str): "same", "valid" or "pad", which adds `padding` zeros on each side. Default:
            "same".
        padding (int | tuple[int, ...]): The zeros on each side with `pad_mode` "pad": an int, or
            low and high for each axis. Default: 0.
        dilation (int | tuple[int, ...]): The distance of the kernel's elements: an int, or one for
            each axis. Default: 1.
        group (int): The number of groups of channels that are convolved separately. Default: 1.
        has_bias (bool): Whether a bias is added. Default: False.
        weight_init (Tensor | str | Initializer | float | None): The initializer of the weight; None
            for ``HeUniform(sqrt(5))``. Default: None.
        bias_init (Tensor | str | Initializer | float | None): The initializer of the bias; None for
            ``Uniform(1 / sqrt(fan_in))``. Default: None.
        data_format (str): Must be "NCHW"; by position it may also stand before `has_bias`. Default:
            "NCHW".
        dtype (DType | None): The element type of the parameters. Default: float32.

    Raises:
        TypeError, ValueError: For arguments that do not fit together.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.Conv2d(3, 4, 5, stride=2)(ms.ops.ones((1, 3, 8, 8))).shape
        (1, 4, 4, 4)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        pad_mode: str = "same",
        padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        data_format: str = "NCHW",
        dtype: Any = D.float32,
    ) -> None:
        # Programs of MindSpore's first release pass the format before `has_bias`.
        if isinstance(has_bias, str):
            data_format, has_bias, weight_init, bias_init = has_bias, weight_init, bias_init, data_format
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            pad_mode,
            padding,
            dilation,
            group,
            has_bias,
            weight_init,
            bias_init,
            dtype,
            data_format,
        )


class Conv3d(_Conv):
    """The cross-correlation of (N, C_in, D, H, W) with a weight of shape (C_out, C_in / group,
    *kernel_size), plus a bias if asked for.

    The result is (N, C_out, D', H', W').

    Args:
        in_channels (int): The number of channels of the input, which `group` divides.
        out_channels (int): The number of channels of the result, which `group` divides.
        kernel_size (int | tuple[int, ...]): The size of the kernel: an int, or one for each axis.
        stride (int | tuple[int, ...]): The step of the kernel: an int, or one for each axis.
            Default: 1.
        pad_mode (str): "same", "valid" or "pad", which adds `padding` zeros on each side. Default:
            "same".
        padding (int | tuple[int, ...]): The zeros on each side with `pad_mode` "pad": an int, or
            low and high for each axis. Default: 0.
        dilation (int | tuple[int, ...]): The distance of the kernel's elements: an int, or one for
            each axis. Default: 1.
        group (int): The number of groups of channels that are convolved separately. Default: 1.
        has_bias (bool): Whether a bias is added. Default: False.
        weight_init (Tensor | str | Initializer | float | None): The initializer of the weight; None
            for ``HeUniform(sqrt(5))``. Default: None.
        bias_init (Tensor | str | Initializer | float | None): The initializer of the bias; None for
            ``Uniform(1 / sqrt(fan_in))``. Default: None.
        data_format (str): Must be "NCDHW". Default: "NCDHW".
        dtype (DType | None): The element type of the parameters. Default: float32.

    Raises:
        TypeError, ValueError: For arguments that do not fit together.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.Conv3d(2, 4, 3, stride=2)(ms.ops.ones((1, 2, 4, 6, 8))).shape
        (1, 4, 2, 3, 4)
    """

    rank = 3

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        pad_mode: str = "same",
        padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        data_format: str = "NCDHW",
        dtype: Any = D.float32,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            pad_mode,
            padding,
            dilation,
            group,
            has_bias,
            weight_init,
            bias_init,
            dtype,
            data_format,
        )


class Conv1dTranspose(_Transposed):
    """The transpose of `Conv1d` as a function of its input: (N, C_in, L) with a weight of shape
    (C_in, C_out / group, 1, kernel_size).

    "same" gives L * stride positions, "valid" the larger of (L - 1) * stride + span and L * stride.

    Args:
        in_channels (int): The number of channels of the input, which `group` divides.
        out_channels (int): The number of channels of the result, which `group` divides.
        kernel_size (int | tuple[int, ...]): The size of the kernel: an int, or one for each axis.
        stride (int | tuple[int, ...]): The step of the kernel: an int, or one for each axis.
            Default: 1.
        pad_mode (str): "same", "valid" or "pad", which removes `padding` elements from each side of
            the result. Default: "same".
        padding (int | tuple[int, ...]): The elements removed from each side with `pad_mode` "pad":
            an int, or low and high for each axis. Default: 0.
        dilation (int | tuple[int, ...]): The distance of the kernel's elements: an int, or one for
            each axis. Default: 1.
        group (int): The number of groups of channels that are convolved separately. Default: 1.
        has_bias (bool): Whether a bias is added. Default: False.
        weight_init (Tensor | str | Initializer | float | None): The initializer of the weight; None
            for ``HeUniform(sqrt(5))``. Default: None.
        bias_init (Tensor | str | Initializer | float | None): The initializer of the bias; None for
            ``Uniform(1 / sqrt(fan_in))``. Default: None.
        dtype (DType | None): The element type of the parameters. Default: float32.

    Raises:
        TypeError, ValueError: As `Conv1d`.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.Conv1dTranspose(3, 4, 5, stride=2)(ms.ops.ones((1, 3, 8))).shape
        (1, 4, 16)
    """

    rank = 1

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        pad_mode: str = "same",
        padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        dtype: Any = D.float32,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            pad_mode,
            padding,
            dilation,
            group,
            has_bias,
            weight_init,
            bias_init,
            dtype,
            "NCL",
        )


class Conv2dTranspose(_Transposed):
    """The transpose of `Conv2d` as a function of its input: (N, C_in, H, W) with a weight of shape
    (C_in, C_out / group, *kernel_size).

    "same" gives H * stride rows, "valid" the larger of (H - 1) * stride + span and H * stride.

    Args:
        in_channels (int): The number of channels of the input, which `group` divides.
        out_channels (int): The number of channels of the result, which `group` divides.
        kernel_size (int | tuple[int, ...]): The size of the kernel: an int, or one for each axis.
        stride (int | tuple[int, ...]): The step of the kernel: an int, or one for each axis.
            Default: 1.
        pad_mode (str): "same", "valid" or "pad", which removes `padding` elements from each side of
            the result. Default: "same".
        padding (int | tuple[int, ...]): The elements removed from each side with `pad_mode` "pad":
            an int, or low and high for each axis. Default: 0.
        output_padding (int | tuple[int, ...]): The zeros added at the end with `pad_mode` "pad".
            Default: 0.
        dilation (int | tuple[int, ...]): The distance of the kernel's elements: an int, or one for
            each axis. Default: 1.
        group (int): The number of groups of channels that are convolved separately. Default: 1.
        has_bias (bool): Whether a bias is added. Default: False.
        weight_init (Tensor | str | Initializer | float | None): The initializer of the weight; None
            for ``HeUniform(sqrt(5))``. Default: None.
        bias_init (Tensor | str | Initializer | float | None): The initializer of the bias; None for
            ``Uniform(1 / sqrt(fan_in))``. Default: None.
        dtype (DType | None): The element type of the parameters. Default: float32.

    Raises:
        TypeError, ValueError: As `Conv2d`.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.Conv2dTranspose(3, 4, 5, stride=2)(ms.ops.ones((1, 3, 8, 8))).shape
        (1, 4, 16, 16)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        pad_mode: str = "same",
        padding: Any = 0,
        output_padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        dtype: Any = D.float32,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            pad_mode,
            padding,
            dilation,
            group,
            has_bias,
            weight_init,
            bias_init,
            dtype,
            "NCHW",
            output_padding,
        )


class Conv3dTranspose(_Transposed):
    """The transpose of `Conv3d` as a function of its input: (N, C_in, D, H, W) with a weight of
    shape (C_in, C_out / group, *kernel_size).

    Sizes are those of `Conv2dTranspose` for three axes.

    Args:
        in_channels (int): The number of channels of the input, which `group` divides.
        out_channels (int): The number of channels of the result, which `group` divides.
        kernel_size (int | tuple[int, ...]): The size of the kernel: an int, or one for each axis.
        stride (int | tuple[int, ...]): The step of the kernel: an int, or one for each axis.
            Default: 1.
        pad_mode (str): "same", "valid" or "pad", which removes `padding` elements from each side of
            the result. Default: "same".
        padding (int | tuple[int, ...]): The elements removed from each side with `pad_mode` "pad":
            an int, or low and high for each axis. Default: 0.
        dilation (int | tuple[int, ...]): The distance of the kernel's elements: an int, or one for
            each axis. Default: 1.
        group (int): The number of groups of channels that are convolved separately. Default: 1.
        output_padding (int | tuple[int, ...]): With "pad", `output_padding` adds positions at the
            end. Default: 0.
        has_bias (bool): Whether a bias is added. Default: False.
        weight_init (Tensor | str | Initializer | float | None): The initializer of the weight; None
            for ``HeUniform(sqrt(5))``. Default: None.
        bias_init (Tensor | str | Initializer | float | None): The initializer of the bias; None for
            ``Uniform(1 / sqrt(fan_in))``. Default: None.
        data_format (str): Must be "NCDHW". Default: "NCDHW".
        dtype (DType | None): The element type of the parameters. Default: float32.

    Examples:
        >>> import mycel as ms
        >>> ms.nn.Conv3dTranspose(2, 3, 3, stride=2)(ms.ops.ones((1, 2, 2, 2, 2))).shape
        (1, 3, 4, 4, 4)
    """

    rank = 3

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        pad_mode: str = "same",
        padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        output_padding: Any = 0,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        data_format: str = "NCDHW",
        dtype: Any = D.float32,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            pad_mode,
            padding,
            dilation,
            group,
            has_bias,
            weight_init,
            bias_init,
            dtype,
            data_format,
            output_padding,
        )
