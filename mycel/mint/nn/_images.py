"""Convolutions, pooling, resizing, normalisation and tables under the names and arguments of
PyTorch.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, Optional

import numpy as np

from mycel import ops
from mycel.base import dtype as D
from mycel.base.errors import ShapeError
from mycel.core.tensor import Tensor, as_tensor, cast
from mycel.derivatives import stop_gradient
from mycel.ops import adaptive_pooling
from mycel.ops._operands import (
    cast_index,
    check_sizes,
    floating,
    number_of,
    numbers,
    operand,
    reshaped,
    size_of,
    sizes_of,
)
from mycel.ops.convolution import per_axis
from mycel.ops.images import resize

__all__ = [
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "conv1d",
    "conv3d",
    "embedding",
    "grid_sample",
    "interpolate",
    "linear",
    "max_pool2d",
    "max_unpool2d",
    "normalize",
    "one_hot",
    "pad",
    "upsample",
]


def _convolved(
    function: Callable[..., Tensor], input: Any, weight: Any, bias: Any, stride: Any, padding: Any, *more: Any
) -> Tensor:
    if isinstance(padding, str):
        if padding == "same" and builtins.any(s != 1 for s in (stride if isinstance(stride, tuple) else (stride,))):
            raise ValueError(f"{function.__name__}: padding 'same' goes with stride 1, not {stride}")
        return function(input, weight, bias, stride, padding, 0, *more)
    return function(input, weight, bias, stride, "pad", padding, *more)


def conv1d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """Return the one-dimensional convolution of (N, C, L) signals.

    `input` is convolved with `weight` (C_out, C_in / groups, *kernel), and `bias` (C_out,) is
    added. `stride` and `dilation` (the distance of the kernel's elements) are an int, or one for
    each axis; `groups` is the number of groups of channels that are convolved separately. `padding`
    is a number, "valid" or "same".

    >>> import mycel as ms
    >>> ms.mint.nn.functional.conv1d(ms.ops.ones((1, 1, 4)), ms.ops.ones((1, 1, 2))).tolist()
    [[[2.0, 2.0, 2.0]]]
    """
    return _convolved(ops.conv1d, input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """Return the three-dimensional convolution of (N, C, D, H, W).

    `input` is convolved with `weight` (C_out, C_in / groups, *kernel), and `bias` (C_out,) is
    added. `stride` and `dilation` (the distance of the kernel's elements) are an int, or one for
    each axis; `groups` is the number of groups of channels that are convolved separately. `padding`
    is a number, one for each axis, "valid" or "same".

    >>> import mycel as ms
    >>> x, weight = ms.ops.ones((1, 1, 3, 3, 3)), ms.ops.ones((1, 1, 2, 2, 2))
    >>> ms.mint.nn.functional.conv3d(x, weight).shape
    (1, 1, 2, 2, 2)
    """
    return _convolved(ops.conv3d, input, weight, bias, stride, padding, dilation, groups)


def linear(input: Any, weight: Any, bias: Any = None) -> Tensor:
    """Return ``input @ weight.T + bias`` over the last axis.

    >>> import mycel as ms
    >>> ms.mint.nn.functional.linear(ms.Tensor([1.0, 2.0]), ms.Tensor([[3.0, 4.0]])).tolist()
    [11.0]
    """
    x, w = operand("linear", input), operand("linear", weight)
    if w.ndim == 1:
        result = ops.matmul(x, w)
        return result if bias is None else result + operand("linear", bias)
    if x.ndim == 1:
        return reshaped(ops.dense(reshaped(x, (1, *x.shape)), w, bias), (w.shape[0],))
    return ops.dense(x, w, bias)


# Pooling.


def avg_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the mean of each window of (N, C, L) or (C, L).

    The windows of `input` have the size `kernel_size` and lie `stride` apart (None: the window),
    with `padding` on both sides. `ceil_mode` adds a window where elements are left over at the end;
    padding counts as zeros unless `count_include_pad` is False.

    >>> import mycel as ms
    >>> ms.mint.nn.functional.avg_pool1d(ms.Tensor([[[1.0, 3.0]]]), 2).tolist()
    [[[2.0]]]
    """
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
    divisor_override: Optional[int] = None,
) -> Tensor:
    """Return the mean of each window of (N, C, H, W) or (C, H, W).

    The windows of `input` have the size `kernel_size` and lie `stride` apart (None: the window),
    with `padding` on both sides. `ceil_mode` adds a window where elements are left over at the end;
    padding counts as zeros unless `count_include_pad` is False. `divisor_override` divides the sums
    instead of the number of elements.

    >>> import mycel as ms
    >>> ms.mint.nn.functional.avg_pool2d(ms.Tensor([[[[1.0, 3.0]]]]), (1, 2)).tolist()
    [[[[2.0]]]]
    """
    strides = kernel_size if stride is None else stride
    divisor = _divisor("avg_pool2d", divisor_override)
    return ops.avg_pool2d(input, kernel_size, strides, padding, ceil_mode, count_include_pad, divisor)


def avg_pool3d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Optional[int] = None,
) -> Tensor:
    """Return the mean of each window of (N, C, D, H, W) or (C, D, H, W).

    The windows of `input` have the size `kernel_size` and lie `stride` apart (None: the window),
    with `padding` on both sides. `ceil_mode` adds a window where elements are left over at the end;
    padding counts as zeros unless `count_include_pad` is False. `divisor_override` divides the sums
    instead of the number of elements.

    >>> import mycel as ms
    >>> ms.mint.nn.functional.avg_pool3d(ms.ops.ones((1, 1, 2, 2, 2)), 2).tolist()
    [[[[[1.0]]]]]
    """
    strides = kernel_size if stride is None else stride
    divisor = _divisor("avg_pool3d", divisor_override)
    return ops.avg_pool3d(input, kernel_size, strides, padding, ceil_mode, count_include_pad, divisor)


def _divisor(name: str, value: Optional[int]) -> int:
    if value == 0:
        raise ValueError(f"{name}: divisor_override must not be 0")
    return 0 if value is None else value


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

    The windows of `input` have the size `kernel_size` and lie `stride` apart (None: the window),
    with `padding` on both sides; `dilation` is the distance of a window's elements. `ceil_mode`
    adds a window where elements are left over at the end. With `return_indices` positions in H * W
    are returned too.

    >>> import mycel as ms
    >>> ms.mint.nn.functional.max_pool2d(ms.Tensor([[[[1.0, 3.0]]]]), (1, 2)).tolist()
    [[[[3.0]]]]
    """
    return ops.max_pool2d(input, kernel_size, stride, padding, dilation, return_indices, ceil_mode)


def adaptive_max_pool1d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Return the largest elements of `output_size` nearly equal windows of (N, C, L) or (C, L);
    with `return_indices` also their positions.

    >>> import mycel as ms
    >>> x = ms.Tensor([[[1.0, 2.0, 3.0]]])
    >>> ms.mint.nn.functional.adaptive_max_pool1d(x, 1, True)[1].tolist()
    [[[2]]]
    """
    if not return_indices:
        return ops.adaptive_max_pool1d(input, output_size)
    return adaptive_pooling.adaptive_max("adaptive_max_pool1d", 1, input, output_size, True)


def adaptive_max_pool2d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Return the largest elements of nearly equal windows of (N, C, H, W) or (C, H, W).

    `output_size` is the number of windows, an int or two, where None keeps an axis; with
    `return_indices` positions in H * W are returned too.

    >>> import mycel as ms
    >>> ms.mint.nn.functional.adaptive_max_pool2d(ms.ops.ones((1, 2, 5, 5)), 2).shape
    (1, 2, 2, 2)
    """
    return ops.adaptive_max_pool2d(input, output_size, return_indices)


def max_unpool2d(
    input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Return an image of zeros with the maxima `input` of `max_pool2d` at their positions
    `indices`.

    `kernel_size`, `stride` (None: the window) and `padding` are those of the pooling. The image is
    as small as possible, or of `output_size`: (H, W), or all of its sizes. Raises ShapeError where
    the indices have another shape.

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
    pads = per_axis(name, "padding", padding, 2)
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


# Sizes.


def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
    recompute_scale_factor: Optional[bool] = None,
) -> Tensor:
    """Return an input (N, C, *spatial) with 1 to 3 spatial axes resized.

    `size`, `scale_factor`, `mode`, `align_corners` and `recompute_scale_factor` are those of
    `mycel.ops.interpolate`. Cubic weights are Keys' with a = -3/4, and the edge is repeated outside
    (PyTorch's definition).

    >>> import mycel as ms
    >>> ms.mint.nn.functional.interpolate(ms.Tensor([[[1.0, 3.0]]]), size=4).tolist()
    [[[1.0, 1.0, 3.0, 3.0]]]
    """
    x = operand("interpolate", input)
    if mode == "linear" and x.ndim == 3:
        # A line is resized as an image of height 1.
        given = {"size": size, "scale_factor": scale_factor}
        pair = {k: None if v is None else (1, *resize.per_axis("interpolate", k, v, 1)) for k, v in given.items()}
        image = ops.expand_dims(x, 2)
        return ops.squeeze(
            resize.interpolate(
                image,
                mode="bilinear",
                align_corners=align_corners,
                recompute_scale_factor=recompute_scale_factor,
                **pair,
            ),
            2,
        )
    one_given = (size is None) != (scale_factor is None)
    if mode != "bicubic" or align_corners or x.ndim != 4 or not one_given:
        return resize.interpolate(x, size, scale_factor, mode, align_corners, recompute_scale_factor)
    sizes, scales = resize.wanted("interpolate", x, size, scale_factor, recompute_scale_factor)
    y = floating("interpolate", x)
    for axis, out in enumerate(sizes, 2):
        ratio = int(x.shape[axis]) / out if scales is None or recompute_scale_factor else 1 / scales[axis - 2]
        y = _cubic(y, axis, out, ratio)
    return y


def _cubic(x: Tensor, axis: int, out: int, ratio: float) -> Tensor:
    """Return the cubic convolution along an axis, with `ratio` input elements for each output
    element.

    The edge is repeated outside.
    """
    at = (numbers(out) + 0.5) * ratio - 0.5
    low = np.floor(at)
    total: Optional[Tensor] = None
    for k in (-1, 0, 1, 2):
        far = np.abs(at - low - k)
        near = (1.25 * far - 2.25) * far * far + 1
        away = ((-0.75 * far + 3.75) * far - 6.0) * far + 3.0
        weight = np.where(far <= 1, near, away).reshape((-1,) + (1,) * (x.ndim - 1 - axis))
        places = np.clip(low + k, 0, x.shape[axis] - 1).astype(np.int32)
        part = ops.gather(x, Tensor(places), axis) * as_tensor(weight, x.dtype)
        total = part if total is None else total + part
    assert total is not None
    return total


def upsample(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Optional[bool] = None
) -> Tensor:
    """Return `input` resized: `interpolate` under an older name.

    `size`, `scale_factor`, `mode` and `align_corners` are those of `interpolate`.

    >>> import mycel as ms
    >>> ms.mint.nn.functional.upsample(ms.Tensor([[[1.0, 3.0]]]), size=4).tolist()
    [[[1.0, 1.0, 3.0, 3.0]]]
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


def grid_sample(
    input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: Optional[bool] = None
) -> Tensor:
    """Return an input (N, C, [D,] H, W) at the positions of `grid`, as `mycel.ops.grid_sample`.

    `mode` is "bilinear" or "nearest". Outside of the input `padding_mode` takes "zeros", the
    "border" element or its "reflection". With `align_corners` the positions -1 and 1 are the
    centres of the outermost elements, else their outer edges.

    >>> import mycel as ms
    >>> x, middle = ms.Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), ms.Tensor([[[[0.0, 0.0]]]])
    >>> ms.mint.nn.functional.grid_sample(x, middle).item()
    2.5
    """
    return resize.grid_sample(input, grid, mode, padding_mode, align_corners)


def pad(input: Any, pad: Any, mode: str = "constant", value: Any = None) -> Tensor:
    """Return `input` with elements added at the ends of its last axes.

    `pad` is (low, high) of the last axis, then of the one before, and so on. `mode` "constant" adds
    `value` (None: 0), "reflect" mirrors without the edge, "replicate" repeats the edge, "circular"
    continues at the other end; see `mycel.ops.pad`.

    >>> import mycel as ms
    >>> ms.mint.nn.functional.pad(ms.Tensor([1.0]), (1, 2)).tolist()
    [0.0, 1.0, 0.0, 0.0]
    """
    return ops.pad(input, pad, mode, value)


# Normalisation and tables.


def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Return each channel (axis 1) of `input` normalised, scaled by `weight` and shifted by `bias`
    (Ioffe and Szegedy, 2015).

    In `training` the statistics are those of the batch, and `running_mean` and `running_var` follow
    them with the weight `momentum`; otherwise these are used. `eps` is added to the variance. See
    `mycel.ops.batch_norm`.

    >>> import mycel as ms
    >>> one, zero = ms.ops.ones(1), ms.ops.zeros(1)
    >>> x = ms.Tensor([[1.0], [3.0]])
    >>> ms.mint.nn.functional.batch_norm(x, zero, one, training=True, eps=0.0).tolist()
    [[-1.0], [1.0]]
    """
    return ops.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def normalize(input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Tensor:
    """Return the input divided by its norm of order `p` along `dim`, or by `eps` where the norm is
    smaller.

    >>> import mycel as ms
    >>> ms.mint.nn.functional.normalize(ms.Tensor([3.0, 4.0]), dim=0).asnumpy().round(1).tolist()
    [0.6000000238418579, 0.800000011920929]
    """
    x = floating("normalize", input)
    length = ops.vector_norm(x, p, dim, True)
    return x / ops.clamp(length, eps)


def embedding(
    input: Any,
    weight: Any,
    padding_idx: Optional[int] = None,
    max_norm: Optional[float] = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
) -> Tensor:
    """Return the rows of a table `weight` at the whole numbers `input`.

    The row `padding_idx` gets no gradient. Rows whose norm of order `norm_type` is above `max_norm`
    are scaled to it in the result; derivatives ignore that, and the table keeps its values. With
    `scale_grad_by_freq` the gradient of a row is divided by the number of times that it is looked
    up.

    >>> import mycel as ms
    >>> ms.mint.nn.functional.embedding(ms.Tensor([1, 0]), ms.Tensor([[1.0], [3.0]])).tolist()
    [[3.0], [1.0]]
    """
    index, table = operand("embedding", input), operand("embedding", weight)
    rows = ops.embedding(index, table, padding_idx)
    if scale_grad_by_freq:
        ones = ops.ones(index.shape, dtype=rows.dtype)
        named = ops.unsorted_segment_sum(
            reshaped(ones, (index.size,)), reshaped(cast(index, D.int32), (index.size,)), table.shape[0]
        )
        share = ops.expand_dims(1.0 / ops.gather(named, index, 0), -1)
        rows = rows * share + stop_gradient(rows) * (1 - share)
    if max_norm is not None:
        fixed = stop_gradient(rows)
        length = ops.vector_norm(fixed, norm_type, -1, True)
        max_norm = number_of("embedding", "max_norm", max_norm)
        limit = ops.where(length > max_norm, max_norm / (length + 1e-7), ops.ones_like(length))
        rows = fixed * limit + (rows - fixed)
    return rows


def one_hot(tensor: Any, num_classes: int = -1) -> Tensor:
    """Return int64 rows of zeros with a one at the position that each whole number of the tensor
    gives.

    With `num_classes` -1 the number of classes is one more than the largest number. It depends on
    the values of the tensor, so that a compiled function continues in a second graph.

    >>> import mycel as ms
    >>> ms.mint.nn.functional.one_hot(ms.Tensor([1, 0])).tolist()
    [[0, 1], [1, 0]]
    """
    index = operand("one_hot", tensor)
    if index.dtype.kind not in "iu":
        raise TypeError(f"one_hot: takes whole numbers, not {index.dtype}")
    classes = size_of("one_hot", num_classes)
    if classes < -1 or classes == 0:
        raise ValueError(f"one_hot: num_classes must be -1 or at least 1, not {num_classes}")
    if classes == -1:
        classes = int(ops.max(reshaped(index, (index.size,)))[0]) + 1
    places = ops.arange(0, classes, 1, dtype=index.dtype)
    return cast(ops.equal(ops.expand_dims(index, -1), places), D.int64)
