"""Convolutions, resizing, normalisation and tables under the names and arguments of PyTorch."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.staging.derivatives import stop_gradient
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.mint._arguments import number, real
from mycel.ops._operands import (
    floating,
    number_of,
    numbers,
    operand,
    reshaped,
    size_of,
)
from mycel.ops.images import resize

__all__ = [
    "batch_norm",
    "conv1d",
    "conv3d",
    "embedding",
    "grid_sample",
    "interpolate",
    "linear",
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

    Args:
        input (Tensor): (N, C, L).
        weight (Tensor): (C_out, C / groups, *kernel).
        bias (Tensor | None): (C_out,), or None. Default: None.
        stride (int | tuple[int, ...]): The step of the kernel: an int, or one for each axis.
            Default: 1.
        padding (int | str | tuple[int, ...]): The zeros on each side: a number, "valid" or "same".
            Default: 0.
        dilation (int | tuple[int, ...]): The distance of the kernel's elements: an int, or one for
            each axis. Default: 1.
        groups (int): The number of groups of channels that are convolved separately. Default: 1.

    Returns:
        Tensor: (N, C_out, L').

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nn.functional.conv1d(ms.ops.ones((1, 1, 4)), ms.ops.ones((1, 1, 2))).tolist()
        [[[2.0, 2.0, 2.0]]]
    """
    return _convolved(ops.conv1d, input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """Return the three-dimensional convolution of (N, C, D, H, W).

    Args:
        input (Tensor): (N, C, *spatial).
        weight (Tensor): (C_out, C / groups, *kernel).
        bias (Tensor | None): (C_out,), or None. Default: None.
        stride (int | tuple[int, ...]): The step of the kernel: an int, or one for each axis.
            Default: 1.
        padding (int | str | tuple[int, ...]): The zeros on each side: a number, one for each axis,
            "valid" or "same". Default: 0.
        dilation (int | tuple[int, ...]): The distance of the kernel's elements: an int, or one for
            each axis. Default: 1.
        groups (int): The number of groups of channels that are convolved separately. Default: 1.

    Returns:
        Tensor: (N, C_out, *positions).

    Examples:
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


# Sizes.


def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Tensor:
    """Return an input (N, C, *spatial) with 1 to 3 spatial axes resized.

    Cubic weights are Keys' with a = -3/4, and the edge is repeated outside (PyTorch's definition).

    Args:
        input (Tensor): (N, C, *spatial), with 1 to 3 spatial axes.
        size (int | tuple[int, ...] | None): The new size. Default: None.
        scale_factor (float | tuple[float, ...] | None): The factor, instead of it. Default: None.
        mode (str): A mode of `mycel.ops.interpolate`. Default: "nearest".
        align_corners (bool | None): Whether corner elements stay in place. Default: None.
        recompute_scale_factor (bool | None): Whether the factor is computed from the sizes.
            Default: None.

    Returns:
        Tensor: (N, C, *size).

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nn.functional.interpolate(ms.Tensor([[[1.0, 3.0]]]), size=4).tolist()
        [[[1.0, 1.0, 3.0, 3.0]]]
    """
    x = operand("interpolate", input)
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        raise ValueError(f"interpolate: align_corners is for the linear and cubic modes, not for {mode!r}")
    if size is not None and recompute_scale_factor:
        raise ValueError("interpolate: recompute_scale_factor needs a scale_factor instead of a size")
    align_corners = None if align_corners is None else bool(align_corners)
    recompute_scale_factor = None if recompute_scale_factor is None else bool(recompute_scale_factor)
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
    steps = None if recompute_scale_factor or scales is None else tuple(scales)
    return _cubic(floating("interpolate", x), tuple(sizes), steps)


@fused
def _cubic(x: Tensor, sizes: tuple[int, ...], scales: tuple[float, ...] | None) -> Tensor:
    """Return images at other sizes by cubic convolution; the edge is repeated outside.

    A step between positions is 1 / scale, or what makes the sizes of one those of the other.
    """
    for axis, out in enumerate(sizes, 2):
        size = int(x.shape[axis])
        at = (numbers(out) + 0.5) * (size / out if scales is None else 1 / scales[axis - 2]) - 0.5
        low = np.floor(at)
        places = [np.clip(low + k, 0, size - 1) for k in (-1, 0, 1, 2)]
        x = resize.blend(x, axis, places, resize.cubic_weights(at - low, -0.75))
    return x


def upsample(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """Return `input` resized: `interpolate` under an older name.

    Args:
        input (Tensor): (N, C, *spatial), with 1 to 3 spatial axes.
        size (int | tuple[int, ...] | None): The new size. Default: None.
        scale_factor (float | tuple[float, ...] | None): The factor, instead of it. Default: None.
        mode (str): A mode of `mycel.ops.interpolate`. Default: "nearest".
        align_corners (bool | None): Whether corner elements stay in place. Default: None.

    Returns:
        Tensor: (N, C, *size).

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nn.functional.upsample(ms.Tensor([[[1.0, 3.0]]]), size=4).tolist()
        [[[1.0, 1.0, 3.0, 3.0]]]
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


def grid_sample(
    input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """Return an input (N, C, [D,] H, W) at the positions of `grid`, as `mycel.ops.grid_sample`.

    Args:
        input (Tensor): (N, C, [D,] H, W).
        grid (Tensor): The positions, (N, [D',] H', W', 2 or 3).
        mode (str): "bilinear" or "nearest". Default: "bilinear".
        padding_mode (str): "zeros", "border" or "reflection". Default: "zeros".
        align_corners (bool | None): Whether -1 and 1 are the centres of corner elements. Default:
            None.

    Returns:
        Tensor: (N, C, [D',] H', W').

    Examples:
        >>> import mycel as ms
        >>> x, middle = ms.Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), ms.Tensor([[[[0.0, 0.0]]]])
        >>> ms.mint.nn.functional.grid_sample(x, middle).item()
        2.5
    """
    arguments.text("grid_sample", "mode", mode)
    arguments.text("grid_sample", "padding_mode", padding_mode)
    arguments.optional("grid_sample", "align_corners", align_corners, bool)
    return resize.grid_sample(input, grid, mode, padding_mode, align_corners)


def pad(input: Any, pad: Any, mode: str = "constant", value: Any = None) -> Tensor:
    """Return `input` with elements added at the ends of its last axes.

    Args:
        input (Tensor): The tensor.
        pad (int | tuple[int, ...]): Two numbers for each axis, from the last axis on.
        mode (str): "constant", "reflect", "replicate" or "circular". Default: "constant".
        value (float | None): The constant; None for 0. Default: None.

    Returns:
        Tensor: The padded tensor.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nn.functional.pad(ms.Tensor([1.0]), (1, 2)).tolist()
        [0.0, 1.0, 0.0, 0.0]
    """
    amounts = pad if isinstance(pad, Tensor) else arguments.sequence("pad", "pad", pad)
    return ops.pad(input, amounts, mode, None if value is None else _fill(value))


def _fill(value: Any) -> Any:
    return value if isinstance(value, bool) else number("pad", "value", value)


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
    """Return each channel (axis 1) normalised, scaled and shifted (Ioffe and Szegedy, 2015).

    Args:
        input (Tensor): (N, C, ...).
        running_mean (Tensor | None): A running statistic, (C,).
        running_var (Tensor | None): A running statistic, (C,).
        weight (Tensor | None): The scale, (C,), or None. Default: None.
        bias (Tensor | None): The shift, (C,), or None. Default: None.
        training (bool): Whether statistics are those of the input, towards which the running ones
            are moved. Default: False.
        momentum (float): The share by which they are moved. Default: 0.1.
        eps (float): Added to the variance. Default: 1e-05.

    Returns:
        Tensor: The shape of the input.

    Examples:
        >>> import mycel as ms
        >>> one, zero = ms.ops.ones(1), ms.ops.zeros(1)
        >>> x = ms.Tensor([[1.0], [3.0]])
        >>> ms.mint.nn.functional.batch_norm(x, zero, one, training=True, eps=0.0).tolist()
        [[-1.0], [1.0]]
    """
    if training is not False:
        arguments.flag("batch_norm", "training", training)
    real("batch_norm", "momentum", momentum)
    real("batch_norm", "eps", eps)
    return ops.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def normalize(input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Tensor:
    """Return the input divided by its norm of order `p` along `dim`, or by `eps` where the norm is
    smaller.

    Args:
        input (Tensor): The tensor.
        p (float): The order of the norm. Default: 2.0.
        dim (int | tuple[int, ...] | None): The axis or axes. Default: 1.
        eps (float): The least divisor. Default: 1e-12.

    Returns:
        Tensor: The shape of the input.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nn.functional.normalize(ms.Tensor([3.0, 4.0]), dim=0).asnumpy().round(1).tolist(
        ...     )
        [0.6000000238418579, 0.800000011920929]
    """
    if not isinstance(p, (int, float, str)):
        raise arguments.wrong_value("normalize", "p", "a number", p)
    x = floating("normalize", input)
    length = ops.vector_norm(x, p, dim, True)
    return x / ops.clamp(length, eps)


def embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
) -> Tensor:
    """Return rows of a table.

    Rows whose norm of order `norm_type` is above `max_norm` are scaled to it in the result;
    derivatives ignore that, and the table keeps its values.

    Args:
        input (Tensor): The numbers of rows.
        weight (Tensor): The table, (rows, size).
        padding_idx (int | None): The row that gets no gradient; None for none. Default: None.
        max_norm (float | None): The norm to which longer rows are scaled in the result, not in the
            table; derivatives ignore that. None for no limit. Default: None.
        norm_type (float): The order of the norm. Default: 2.0.
        scale_grad_by_freq (bool): Whether the gradient of a row is divided by the number of times
            that it is looked up. Default: False.

    Returns:
        Tensor: The shape of the numbers, with `size` as a new last axis.

    Examples:
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
