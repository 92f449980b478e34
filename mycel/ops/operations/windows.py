"""Operations as objects over windows of images: pooling, patches, convolution and dilation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops import adaptive_pooling, convolution, pooling
from mycel.ops._operands import constant_like, iota, operand, permuted, reshaped, shape_of, size_of
from mycel.ops.images import fractional_pooling, patches, unpooling
from mycel.ops.operations.attributes import (
    anything,
    element_type,
    integer,
    integers,
    numbers,
    one_of,
    optional,
    text,
    word,
)
from mycel.ops.operations.primitive import Primitive, only, operations_of

__all__: list[str] = []


def _channels_first(p: Any) -> bool:
    """Return whether the format has the channels first."""
    return p.data_format in ("NCHW", "NCDHW")


def _to_first(x: Tensor) -> Tensor:
    return permuted(x, (0, x.ndim - 1, *range(1, x.ndim - 1)))


def _to_last(x: Tensor) -> Tensor:
    return permuted(x, (0, *range(2, x.ndim), 1))


class AdaptiveMaxPool3D(
    Primitive,
    compute=lambda x, output_size: adaptive_pooling.adaptive_max_pool3d(
        x, tuple(output_size.tolist()) if isinstance(output_size, Tensor) and output_size.ndim else output_size, True
    ),
):
    """`mycel.ops.adaptive_max_pool3d` with positions, as an object."""


def _conv3d_transpose(p: Any, x: Any, weight: Any) -> Tensor:
    only(p, mode=1, data_format="NCDHW")
    return convolution.conv3d_transpose(
        x, weight, p.pad_mode, _six(p.pad), p.stride, p.dilation, p.group, p.output_padding
    )


class Conv3DTranspose(
    Primitive,
    compute=_conv3d_transpose,
    in_channel=integer(at_least=1),
    out_channel=integer(at_least=1),
    kernel_size=integers(at_least=1),
    mode=1,
    pad_mode=word("valid", "same", "pad", "VALID", "SAME", "PAD"),
    pad=integers(0),
    stride=integers(1, at_least=1),
    dilation=integers(1, at_least=1),
    group=integer(1, at_least=1),
    output_padding=integers(0),
    data_format=one_of("NCDHW", "NDHWC"),
):
    """`mycel.ops.conv3d_transpose` as an object: the transpose of a convolution of volumes.

    It is called with the input (N, C_in, D, H, W), which is spread over a larger volume, and the
    weight (C_in, C_out / group, KD, KH, KW), whose shape decides the channels and the size of the
    window.

    Args:
        in_channel (int): The number of channels of the input, which is not compared with it.
        out_channel (int): The number of channels of the result, which is not compared with it.
        kernel_size (int | tuple[int, ...]): The size of the window, an int or one for each spatial
            axis, which is not compared with the weight.
        mode (int): Must be 1, cross-correlation. Default: 1.
        pad_mode (str): "valid", "same" or "pad", also in capitals, as of the convolution that is
            transposed. Default: "valid".
        pad (int | tuple[int, ...]): The zeros of the convolution that is transposed with `pad_mode`
            "pad": an int, or one for each spatial axis or for both of its sides. Default: 0.
        stride (int | tuple[int, ...]): The step between windows: an int, or one for each spatial
            axis. Default: 1.
        dilation (int | tuple[int, ...]): The distance of the elements of the window: an int, or one
            for each spatial axis. Default: 1.
        group (int): The number of groups into which the channels are divided. Default: 1.
        output_padding (int | tuple[int, ...]): How much longer each axis of the result is at its
            end. Default: 0.
        data_format (str): The order of the axes, "NCDHW"; for "NDHWC" a call raises ValueError.
            Default: "NCDHW".

    Examples:
        >>> import mycel as ms
        >>> x, weight = ms.ops.ones((1, 2, 2, 2, 2)), ms.ops.ones((2, 3, 2, 2, 2))
        >>> ms.ops.Conv3DTranspose(2, 3, 2)(x, weight).shape
        (1, 3, 3, 3, 3)
    """


def _six(pad: Any) -> Any:
    return 0 if isinstance(pad, (tuple, list)) and not any(pad) else pad


def _depthwise(p: Any, value: Any, weight: Any) -> Tensor:
    only(p, mode=3)
    x, w = operand(p.name, value), operand(p.name, weight)
    kernel = convolution.per_axis(p.name, "kernel_size", p.kernel_size, 2)
    count = size_of(p.name, p.channel_multiplier)
    if p.group != 1 or x.ndim != 4 or w.shape != (count, x.shape[1], *kernel):
        raise ShapeError(
            f"{p.name}: takes (N, C, H, W), a weight ({count}, C, {kernel[0]}, {kernel[1]}) and group 1, not "
            f"{x._type}, {w._type} and {p.group}"
        )
    channels = x.shape[1]
    filters = reshaped(permuted(w, (1, 0, 2, 3)), (channels * count, 1, *kernel))
    return convolution.conv2d(x, filters, None, p.stride, p.pad_mode, p.pad, p.dilation, channels)


class DepthwiseConv2dNative(
    Primitive,
    compute=_depthwise,
    channel_multiplier=integer(at_least=1),
    kernel_size=integers(at_least=1),
    mode=3,
    pad_mode=word("valid", "same", "pad", "VALID", "SAME", "PAD"),
    pad=integers(0),
    stride=integers(1, at_least=1),
    dilation=integers(1, at_least=1),
    group=integer(1, at_least=1),
):
    """The convolution of each channel of (N, C, H, W) with its own `channel_multiplier` filters, of
    a weight (multiplier, C, KH, KW); results of a channel lie side by side.

    Args:
        channel_multiplier (int): The number of filters of each channel.
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each spatial
            axis.
        mode (int): Must be 3. Default: 3.
        pad_mode (str): "valid" (no padding), "same" (ceil(size / stride) positions) or "pad".
            Default: "valid".
        pad (int | tuple[int, ...]): The padding of each side with `pad_mode` "pad": an int, or one
            for each side. Default: 0.
        stride (int | tuple[int, ...]): The step of the window: an int, or one for each spatial
            axis. Default: 1.
        dilation (int | tuple[int, ...]): The distance of the elements of the window: an int, or one
            for each spatial axis. Default: 1.
        group (str | None): Must be 1. Default: 1.
    """


class Dilation2D(
    Primitive,
    compute=lambda p, x, filter: patches.dilation2d(x, filter, p.stride, p.dilation, p.pad_mode, p.data_format),
    stride=integers(at_least=1),
    dilation=integers(at_least=1),
    pad_mode=one_of("SAME", "VALID", "same", "valid"),
    data_format=one_of("NCHW", "NHWC"),
):
    """The largest x + filter over each window of `x` (N, C, H, W), with a `filter` (C, KH, KW).

    It is called with (x, filter). Places outside of the image do not count.

    Args:
        stride (int | tuple[int, ...]): The step of the window: an int, or one for each spatial
            axis.
        dilation (int | tuple[int, ...]): The distance of the elements of the window: an int, or one
            for each spatial axis.
        pad_mode (str): "SAME" (ceil(size / stride) positions) or "VALID" (no padding), also in
            small letters. Default: "SAME".
        data_format (str): The order of the axes, "NCHW"; for "NHWC" a call raises ValueError.
            Default: "NCHW".

    Examples:
        >>> import mycel as ms
        >>> x, filter = ms.Tensor([[[[1.0, 5.0, 2.0]]]]), ms.Tensor([[[0.0, 1.0]]])
        >>> ms.ops.Dilation2D(1, 1, "VALID")(x, filter).tolist()
        [[[[6.0, 5.0]]]]
    """


class ExtractImagePatches(
    Primitive,
    compute=lambda p, x: patches.extract_patches(p.name, x, 2, p.ksizes, p.strides, p.rates, p.padding),
    ksizes=integers(alone=False, kinds=(tuple, list)),
    strides=integers(alone=False, kinds=(tuple, list)),
    rates=integers(alone=False, kinds=(tuple, list)),
    padding="VALID",
):
    """The windows of images (N, C, H, W) as channels: (N, KH KW C, *windows), where the place in
    the window is slowest and the channel fastest.

    Args:
        ksizes (tuple[int, ...] | list[int]): The size of the window, (KH, KW), or (1, 1, KH, KW).
        strides (tuple[int, ...] | list[int]): The step of the window, in the same form.
        rates (tuple[int, ...] | list[int]): The distance of the elements of the window, in the same
            form.
        padding (str): "VALID" (no padding) or "SAME" (ceil(size / stride) positions), also in small
            letters. Default: "VALID".

    Examples:
        >>> import mycel as ms
        >>> patches = ms.ops.ExtractImagePatches([1, 2], [1, 1], [1, 1])
        >>> patches(ms.Tensor([[[[1.0, 2.0, 3.0]]]])).tolist()
        [[[[1.0, 2.0]], [[2.0, 3.0]]]]
    """


class ExtractVolumePatches(
    Primitive,
    compute=lambda p, x: patches.extract_patches(p.name, x, 3, p.kernel_size, p.strides, 1, p.padding),
    kernel_size=integers(kinds=(tuple, list)),
    strides=integers(kinds=(tuple, list)),
    padding=text(),
): ...


def _im2col(p: Any, value: Any) -> Tensor:
    x = operand(p.name, value)
    pairs = [
        v[0] if isinstance(v, (tuple, list)) and len(v) == 1 else v for v in (p.ksizes, p.strides, p.dilations, p.pads)
    ]
    kernel, strides, dilations, pads = (tuple(v) if isinstance(v, list) else v for v in pairs)
    columns = convolution.unfold(x, kernel, dilations, pads, strides)
    n, c = x.shape[:2]
    window = math.prod(convolution.per_axis(p.name, "ksizes", kernel, 2))
    return reshaped(columns, (n, c, window, columns.shape[2]))


class Im2Col(
    Primitive,
    compute=_im2col,
    ksizes=integers(kinds=(tuple, list)),
    strides=integers(1, kinds=(tuple, list)),
    dilations=integers(1, kinds=(tuple, list)),
    pads=integers(0, kinds=(tuple, list)),
):
    """The windows of (N, C, H, W) as columns: (N, C, KH KW, positions).

    Args:
        ksizes (int | tuple[int, ...]): The size of the window: an int, or one for each axis.
        strides (int | tuple[int, ...]): The step of the window: an int, or one for each spatial
            axis. Default: 1.
        dilations (int | tuple[int, ...]): The distance of the elements of the window: an int, or
            one for each axis. Default: 1.
        pads (int | tuple[int, ...]): The zeros on each side: an int, or one for each axis. Default:
            0.
    """


def _fractional(mean: bool) -> Callable[..., Any]:
    def compute(p: Any, x: Any) -> Any:
        return fractional_pooling.fractional_pool(
            p.name, x, p.pooling_ratio, p.pseudo_random, p.overlapping, p.deterministic, p.seed, p.seed2, mean
        )

    return compute


class FractionalAvgPool(
    Primitive,
    compute=_fractional(True),
    pooling_ratio=numbers(kinds=(tuple, list)),
    pseudo_random=False,
    overlapping=False,
    deterministic=False,
    seed=0,
    seed2=0,
):
    """Means of images (N, H, W, C) over random cells, and the cuts of rows and columns.

    Args:
        pooling_ratio (list[float]): How much smaller each axis becomes, at least 1; 1 for batch and
            channels.
        pseudo_random (bool): Whether cells come from a pseudo-random instead of a random sequence.
            Default: False.
        overlapping (bool): Whether neighbouring cells share their border. Default: False.
        deterministic (bool): Whether the cells are the same at every call. Default: False.
        seed (int): A seed of the random numbers. Default: 0.
        seed2 (int): A seed of the random numbers. Default: 0.
    """


class FractionalMaxPool(
    Primitive,
    compute=_fractional(False),
    pooling_ratio=numbers(kinds=(tuple, list)),
    pseudo_random=False,
    overlapping=False,
    deterministic=False,
    seed=0,
    seed2=0,
):
    """Maxima of images (N, H, W, C) over random cells, and the cuts of rows and columns.

    Args:
        pooling_ratio (list[float]): How much smaller each axis becomes, at least 1; 1 for batch and
            channels.
        pseudo_random (bool): Whether cells come from a pseudo-random instead of a random sequence.
            Default: False.
        overlapping (bool): Whether neighbouring cells share their border. Default: False.
        deterministic (bool): Whether the cells are the same at every call. Default: False.
        seed (int): A seed of the random numbers. Default: 0.
        seed2 (int): A seed of the random numbers. Default: 0.
    """


def _fixed(rank: int) -> Any:
    pool = unpooling.fractional_max_pool2d if rank == 2 else unpooling.fractional_max_pool3d

    def compute(p: Any, value: Any, random_samples: Any) -> tuple[Tensor, Tensor]:
        x = operand(p.name, value)
        first = _channels_first(p)
        found = pool(x if first else _to_first(x), p.ksize, p.output_shape, None, True, random_samples)
        return found if first else (_to_last(found[0]), _to_last(found[1]))

    return compute


class FractionalMaxPoolWithFixedKsize(
    Primitive,
    compute=_fixed(2),
    ksize=integers(count=2, at_least=1),
    output_shape=integers(count=2, at_least=1, error=ValueError),
    data_format=one_of("NCHW", "NHWC"),
):
    """`mycel.ops.fractional_max_pool2d` with positions, as an object."""


class FractionalMaxPool3DWithFixedKsize(
    Primitive,
    compute=_fixed(3),
    ksize=integers(count=3, at_least=1),
    output_shape=integers(count=3, at_least=1, error=ValueError),
    data_format=one_of("NCDHW", "NDHWC"),
):
    """`mycel.ops.fractional_max_pool3d` with positions, as an object; samples (N, C, 3) in either
    format.
    """


def _pool_with_argmax(p: Any, value: Any) -> tuple[Tensor, Tensor]:
    x = operand(p.name, value)
    first = _channels_first(p)
    x = x if first else _to_first(x)
    window = convolution.per_axis(p.name, "kernel_size", p.kernel_size, 2)
    strides = convolution.per_axis(p.name, "strides", p.strides, 2)
    pairs = convolution.paddings(p.name, p.pad_mode, 0, x.shape[2:], window, strides, (1, 1))
    best = pooling.max_windows(x, window, strides, pairs)
    place = cast(pooling.max_positions(x, window, strides, pairs), D.int32)
    channel, (c, h, w) = iota(place.shape, 1, D.int32), x.shape[1:]
    if first:
        return best, place + channel * constant_like(h * w, place)
    return _to_last(best), _to_last(place * constant_like(c, place) + channel)


def _pool2d(p: Any, x: Any) -> tuple[Tensor, Tensor]:
    best, place = pooling.max_pool2d(x, p.kernel_size, p.strides, p.pads, p.dilation, True, p.ceil_mode)
    return best, cast(place, p.argmax_type)


def _pool3d(p: Any, x: Any) -> tuple[Tensor, Tensor]:
    if p.data_format != "NCDHW":
        raise ValueError(f"{p.name}: data_format must be 'NCDHW', not {p.data_format!r}")
    best, place = pooling.max_pool3d(x, p.ksize, p.strides, p.pads, p.dilation, p.ceil_mode, True)
    return best, cast(place, p.argmax_type)


class MaxPoolWithArgmax(
    Primitive,
    compute=_pool_with_argmax,
    kernel_size=integers(1, (2, 4), at_least=1),
    strides=integers(1, (2, 4), at_least=1),
    pad_mode=word("valid", "same", "VALID", "SAME"),
    data_format=one_of("NCHW", "NHWC"),
):
    """The largest element of each window of (N, C, H, W), and its int32 position in the flattened
    image.

    Args:
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each spatial
            axis. Default: 1.
        strides (int | tuple[int, ...]): The step of the window: an int, or one for each spatial
            axis. Default: 1.
        pad_mode (str): "valid" (no padding) or "same" (ceil(size / stride) positions); of volumes
            also "pad". Default: "valid".
        data_format (str): The order of the axes: "NCHW" or, where it is served, "NHWC" (of volumes
            "NCDHW"). Default: "NCHW".
    """


class MaxPoolWithArgmaxV2(
    Primitive,
    compute=_pool2d,
    kernel_size=integers(at_least=1),
    strides=optional(integers(at_least=1)),
    pads=integers(0, at_least=0),
    dilation=integers((1, 1), at_least=1),
    ceil_mode=False,
    argmax_type=element_type(D.int64, D.int32),
):
    """`mycel.ops.max_pool2d` with positions, as an object.

    Args:
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each spatial
            axis.
        strides (int | tuple[int, ...] | None): The step of the window: an int, or one for each
            spatial axis. Default: None.
        pads (int | tuple[int, ...]): The padding of each side: an int, or one for each spatial
            axis. Default: 0.
        dilation (int | tuple[int, ...]): The distance of the elements of the window: an int, or one
            for each spatial axis. Default: (1, 1).
        ceil_mode (bool): Whether the last window may extend beyond the end. Default: False.
        argmax_type (DType): The element type of the positions: int64 or int32. Default: int64.
    """


class MaxPool3DWithArgmax(
    Primitive,
    compute=_pool3d,
    ksize=integers(count=3, at_least=1),
    strides=integers(count=3, at_least=1),
    pads=integers(count=3, at_least=0),
    dilation=integers((1, 1, 1), 3, at_least=1, error=ValueError),
    ceil_mode=False,
    data_format=word("NCDHW"),
    argmax_type=element_type(D.int64, D.int32),
):
    """`mycel.ops.max_pool3d` with positions, as an object.

    Args:
        ksize (int | tuple[int, ...]): The size of the window: an int, or one for each spatial axis.
        strides (int | tuple[int, ...]): The step of the window: an int, or one for each spatial
            axis.
        pads (int | tuple[int, ...]): The padding of each side: an int, or one for each spatial
            axis.
        dilation (int | tuple[int, ...]): The distance of the elements of the window: an int, or one
            for each spatial axis. Default: (1, 1, 1).
        ceil_mode (bool): Whether the last window may extend beyond the end. Default: False.
        data_format (str): The order of the axes: "NCHW" or, where it is served, "NHWC" (of volumes
            "NCDHW"). Default: "NCDHW".
        argmax_type (DType): The element type of the positions: int64 or int32. Default: int64.
    """


def _unpool(rank: int) -> Any:
    function = unpooling.max_unpool2d if rank == 2 else unpooling.max_unpool3d

    def compute(p: Any, value: Any, argmax: Any) -> Tensor:
        x, place = operand(p.name, value), operand(p.name, argmax)
        first = _channels_first(p)
        strides = p.strides if isinstance(p.strides, (tuple, list)) else (p.strides,)
        size = tuple(shape_of(p.name, p.output_shape))
        if not first:
            x, place = _to_first(x), _to_first(place)
            size = (size[0], size[-1], *size[1:-1]) if size else size
        found = function(x, place, p.ksize, p.strides if any(strides) else None, p.pads, size or None)
        return found if first else _to_last(found)

    return compute


class MaxUnpool2D(
    Primitive,
    compute=_unpool(2),
    ksize=integers(count=(2, 4), at_least=1),
    strides=integers(0, (2, 4), at_least=0),
    pads=integers(0, (2, 4), at_least=0),
    output_shape=integers((), alone=False, each=anything()),
    data_format=one_of("NCHW", "NHWC"),
):
    """The inverse of max-pooling, `mycel.ops.max_unpool2d`, as an object; strides of 0 are the size
    of the window.

    Args:
        ksize (int | tuple[int, ...]): The size of the window: an int, or one for each spatial axis.
        strides (int | tuple[int, ...]): The step of the window; 0 for its size. Default: 0.
        pads (int | tuple[int, ...]): The padding of each side: an int, or one for each spatial
            axis. Default: 0.
        output_shape (tuple[int, ...]): The shape of the result; () for what follows from the rest.
            Default: ().
        data_format (str): The order of the axes: "NCHW" or, where it is served, "NHWC" (of volumes
            "NCDHW"). Default: "NCHW".
    """


class MaxUnpool3D(
    Primitive,
    compute=_unpool(3),
    ksize=integers(count=(3, 5), at_least=1),
    strides=integers(0, (3, 5), at_least=0),
    pads=integers(0, (3, 5), at_least=0),
    output_shape=integers((), alone=False, each=anything()),
    data_format=one_of("NCDHW", "NDHWC"),
):
    """The inverse of max-pooling, `mycel.ops.max_unpool3d`, as an object; strides of 0 are the size
    of the window.

    Args:
        ksize (int | tuple[int, ...]): The size of the window: an int, or one for each spatial axis.
        strides (int | tuple[int, ...]): The step of the window; 0 for its size. Default: 0.
        pads (int | tuple[int, ...]): The padding of each side: an int, or one for each spatial
            axis. Default: 0.
        output_shape (tuple[int, ...]): The shape of the result; () for what follows from the rest.
            Default: ().
        data_format (str): The order of the axes: "NCHW" or, where it is served, "NHWC" (of volumes
            "NCDHW"). Default: "NCDHW".
    """


__all__.extend(operations_of(globals()))
