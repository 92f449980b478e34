"""Operations of layers as objects: activations, normalisation, losses, convolution and pooling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims.convolution.conv import conv_grad_input
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops import (
    activation,
    adaptive_pooling,
    convolution,
    creation,
    gather_scatter,
    loss,
    margin_losses,
    normalization,
    pooling,
    reduction,
)
from mycel.ops._operands import axis_of, cast_index, floating, operand, operands, run, select, wide
from mycel.ops._operands import constant_like as like
from mycel.ops.operations.attributes import integer, integers, number, one_of, optional, real, word
from mycel.ops.operations.inputs import SIZES
from mycel.ops.operations.primitive import Primitive, need_dimensions, need_one_shape, operations_of

__all__: list[str] = []


class FastGeLU(Primitive, compute=activation.fast_gelu): ...


class FastGelu(Primitive, compute=activation.fast_gelu): ...


class HSigmoid(Primitive, compute=activation.hardsigmoid): ...


class HSwish(Primitive, compute=activation.hardswish): ...


class Mish(Primitive, compute=activation.mish): ...


class PReLU(Primitive, compute=activation.prelu): ...


class ReLU(Primitive, compute=activation.relu): ...


class ReLU6(Primitive, compute=activation.relu6): ...


class SeLU(Primitive, compute=activation.selu): ...


class Softplus(Primitive, compute=activation.softplus): ...


class Softsign(Primitive, compute=activation.softsign): ...


# Activations, normalisation and losses.


class Softmax(
    Primitive,
    compute=lambda p, x: activation.softmax(x, p.axis[0] if isinstance(p.axis, (tuple, list)) else p.axis),
    axis=integers(-1),
): ...


class LogSoftmax(Primitive, compute=lambda p, x: activation.log_softmax(x, p.axis), axis=-1): ...


class Elu(Primitive, compute=lambda p, x: activation.elu(x, p.alpha), alpha=1.0): ...


class CeLU(Primitive, compute=lambda p, x: activation.celu(x, p.alpha), alpha=1.0): ...


class GeLU(Primitive, compute=lambda x: activation.gelu(x, "tanh")):
    """The tanh form of `mycel.ops.gelu`."""


class Gelu(Primitive, compute=lambda x: activation.gelu(x, "tanh")):
    """The tanh form of `mycel.ops.gelu`."""


class GLU(Primitive, compute=lambda p, x: activation.glu(x, p.axis), axis=-1): ...


class HShrink(Primitive, compute=lambda p, x: activation.hardshrink(x, p.lambd), lambd=number(0.5)): ...


class SoftShrink(Primitive, compute=lambda p, x: activation.softshrink(x, p.lambd), lambd=number(0.5)): ...


class L2Normalize(
    Primitive, compute=lambda p, x: normalization.l2_normalize(x, p.axis, p.epsilon), axis=0, epsilon=1e-4
):
    """The elements divided by the square root of their sum of squares along `axis`, or of `epsilon`
    where that is larger.
    """


class LRN(
    Primitive,
    compute=lambda p, x: normalization.lrn(x, p.depth_radius, p.bias, p.alpha, p.beta, p.norm_region),
    depth_radius=integer(5, at_least=0),
    bias=1.0,
    alpha=1.0,
    beta=0.5,
    norm_region=word("ACROSS_CHANNELS"),
):
    """`mycel.ops.lrn` as an object: each element of (N, C, H, W) divided by
    ``(bias + alpha * squares) ** beta`` (Krizhevsky et al., 2012).

    Args:
        depth_radius (int): How far channels count on both sides in the sum of squares, at least 0.
            Default: 5.
        bias (float): What is added to the sum. Default: 1.0.
        alpha (float): The factor of the sum. Default: 1.0.
        beta (float): The exponent. Default: 0.5.
        norm_region (str): Must be "ACROSS_CHANNELS". Default: "ACROSS_CHANNELS".

    Examples:
        >>> import mycel as ms
        >>> ms.ops.LRN(bias=3.0)(ms.ops.ones((1, 1, 1, 1))).item()
        0.5
    """


class RmsNorm(Primitive, compute=lambda p, x, gamma: normalization.rms_norm(x, gamma, p.epsilon), epsilon=1e-6): ...


def _channels_first(p: Any, x: Any) -> Tensor:
    if p.data_format not in ("NCHW", "NCDHW"):
        raise ValueError(f"{p.name}: data_format {p.data_format!r} is not supported on the CPU; use 'NCHW' or 'NCDHW'")
    return operand(p.name, x)


def _layer_norm(p: Any, x: Any, gamma: Any, beta: Any) -> tuple[Tensor, Tensor, Tensor]:
    value = floating("LayerNorm", x)
    first = axis_of("LayerNorm", p.begin_norm_axis, value.ndim)
    scaled = value.shape[axis_of("LayerNorm", p.begin_params_axis, value.ndim) :]
    if gamma.shape != scaled or beta.shape != scaled:
        raise ShapeError(f"LayerNorm: gamma and beta must have the shape {scaled}, not {gamma.shape} and {beta.shape}")
    full = wide(value)
    spread, centre = reduction.var_mean(full, tuple(range(first, value.ndim)), 0, True)
    result = (full - centre) * run(E.rsqrt, spread + p.epsilon)
    return cast(result * gamma + beta, value.dtype), centre, spread


def _batch_norm(p: Any, x: Any, scale: Any, bias: Any, mean: Any, variance: Any) -> tuple[Tensor, ...]:
    value = _channels_first(p, x)
    out = normalization.batch_norm(value, mean, variance, scale, bias, p.is_training, p.momentum, p.epsilon)
    if not p.is_training:
        return out, mean, variance, mean, variance
    spread, centre = reduction.var_mean(value, (0, *range(2, value.ndim)))
    return out, creation.zeros_like(centre), creation.zeros_like(spread), centre, spread


class LayerNorm(Primitive, compute=_layer_norm, begin_norm_axis=1, begin_params_axis=1, epsilon=1e-7):
    """The tensor normalised over the axes from `begin_norm_axis` on, scaled by `gamma` and shifted
    by `beta`; with the mean and the variance.
    """


class BatchNorm(
    Primitive,
    compute=_batch_norm,
    is_training=False,
    epsilon=real(1e-5, above=0, at_most=1),
    momentum=real(0.1, at_least=0, at_most=1),
    data_format=word("NCHW", "NHWC"),
):
    """`mycel.ops.batch_norm` as an object: each channel (axis 1) of `input_x` normalised, scaled by
    `scale` and shifted by `bias` (Ioffe and Szegedy, 2015).

    It is called with (input_x, scale, bias, mean, variance), of which the last four are (C,). The
    results are the normalised tensor and four vectors (C,): `mean` and `variance` twice; in
    training zeros twice, then the mean and the biased variance of the batch.

    Args:
        is_training (bool): Whether the mean and variance are those of the batch, towards which
            `mean` and `variance` are moved in place. Default: False.
        epsilon (float): What is added to the variance, above 0 and at most 1. Default: 1e-05.
        momentum (float): The share by which they are moved, from 0 to 1. Default: 0.1.
        data_format (str): The order of the axes, "NCHW", which holds for any (N, C, ...); for
            "NHWC" a call raises ValueError. Default: "NCHW".

    Examples:
        >>> import mycel as ms
        >>> one, zero = ms.ops.ones(1), ms.ops.zeros(1)
        >>> x = ms.Tensor([[1.0], [3.0]])
        >>> [v.tolist() for v in ms.ops.BatchNorm(True)(x, one, zero, zero, one)[3:]]
        [[2.0], [1.0]]
    """


class BiasAdd(
    Primitive,
    compute=lambda p, x, b: convolution.bias_add(_channels_first(p, x), b),
    data_format=word("NCHW", "NHWC", "NCDHW"),
): ...


def _softmax_entropy(logits: Any, labels: Any) -> tuple[Tensor, Tensor]:
    x, y = operands("SoftmaxCrossEntropyWithLogits", logits, labels)
    need_dimensions("SoftmaxCrossEntropyWithLogits", 2, logits=x, labels=y)
    entropy = loss.softmax_entropy(x, cast(y, x.dtype))
    return entropy, activation.softmax(x) - y


def _sparse_entropy(p: Any, logits: Any, labels: Any) -> Tensor:
    x = floating(p.name, logits)
    if x.ndim != 2:
        raise ShapeError(f"{p.name}: takes logits (N, C) and labels (N,), not {x._type}")
    need_dimensions(p.name, 1, labels=labels)
    y = gather_scatter.inside(p.name, labels, x.shape[-1], 1)
    if p.is_grad:
        return (activation.softmax(x) - cast(creation.one_hot(y, x.shape[1]), x.dtype)) / x.shape[0]
    return loss.cross_entropy(x, y)


def _nll(p: Any, logits: Any, labels: Any, weight: Any) -> tuple[Tensor, Tensor]:
    value = loss.nll_loss(logits, labels, weight, p.ignore_index, p.reduction)
    index = cast_index("NLLLoss", labels)
    counted = cast(run(E.ne, index, like(p.ignore_index, index)), value.dtype)
    own = gather_scatter.gather(weight, select(run(E.ne, index, like(p.ignore_index, index)), index, 0), 0)
    return value, run(R.reduce_sum, own * counted, axes=tuple(range(own.ndim)), keepdims=False)


class SoftmaxCrossEntropyWithLogits(Primitive, compute=_softmax_entropy):
    """The cross-entropy of each row with probabilities, and its derivative."""


class SparseSoftmaxCrossEntropyWithLogits(Primitive, compute=_sparse_entropy, is_grad=False):
    """The mean cross-entropy of logits (N, C) with classes (N,), or with `is_grad` its derivative
    by the logits.
    """


class NLLLoss(Primitive, compute=_nll, reduction=word("mean", "none", "sum"), ignore_index=-100): ...


class BCEWithLogitsLoss(
    Primitive,
    compute=lambda p, x, y, w=None, q=None: loss.binary_cross_entropy_with_logits(x, y, w, q, p.reduction),
    reduction=word("mean", "none", "sum"),
): ...


class BinaryCrossEntropy(
    Primitive,
    compute=lambda p, x, y, w=None: loss.binary_cross_entropy(x, y, w, p.reduction),
    reduction=word("mean", "none", "sum"),
): ...


def _divergence(p: Any, x: Any, y: Any) -> Tensor:
    need_one_shape(p.name, x=x, y=y)
    return loss.kl_div(x, y, p.reduction)


class KLDivLoss(
    Primitive,
    compute=_divergence,
    reduction=one_of("mean", "none", "sum", "batchmean"),
): ...


class SmoothL1Loss(
    Primitive,
    compute=lambda p, x, y: loss.smooth_l1_loss(x, y, p.beta, p.reduction),
    beta=number(1.0),
    reduction=word("none", "mean", "sum"),
): ...


class SoftMarginLoss(
    Primitive,
    compute=lambda p, x, y: margin_losses.soft_margin_loss(x, y, p.reduction),
    reduction=word("mean", "none", "sum"),
): ...


def _sigmoid_entropy(logits: Any, labels: Any) -> Tensor:
    return loss.binary_cross_entropy_with_logits(logits, labels, reduction="none")


class SigmoidCrossEntropyWithLogits(Primitive, compute=_sigmoid_entropy):
    """The binary cross-entropy of each element, from logits."""


# Convolution and pooling. An operation's strides and sizes may come with the batch and channel
# entries of their layout.


def _convolve(rank: int) -> Callable[..., Tensor]:
    def compute(p: Any, x: Any, weight: Any) -> Tensor:
        if p.mode != 1:
            raise ValueError(f"{p.name}: mode must be 1, cross-correlation, not {p.mode}")
        padding: Any = p.pad if p.pad_mode.lower() == "pad" else 0
        value = _channels_first(p, x)
        return convolution.convolution(
            p.name, rank, value, weight, None, p.stride, p.pad_mode, padding, p.dilation, p.group
        )

    return compute


class Conv2D(
    Primitive,
    compute=_convolve(2),
    out_channel=integer(at_least=1),
    kernel_size=integers(at_least=1),
    mode=1,
    pad_mode=word("valid", "same", "pad", "VALID", "SAME", "PAD"),
    pad=integers(0),
    stride=integers(1, at_least=1),
    dilation=integers(1, at_least=1),
    group=integer(1, at_least=1),
    data_format=one_of("NCHW", "NHWC"),
):
    """The convolution of (N, C_in, H, W) with a weight (C_out, C_in / group, KH, KW), as
    `mycel.ops.conv2d` computes it.

    Args:
        out_channel (int): The number of channels of the result.
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each spatial
            axis.
        mode (int): Must be 1, cross-correlation. Default: 1.
        pad_mode (str): "valid" (no padding), "same" (ceil(size / stride) positions) or "pad".
            Default: "valid".
        pad (int | tuple[int, ...]): The padding of each side with `pad_mode` "pad": an int, or one
            for each side. Default: 0.
        stride (int | tuple[int, ...]): The step of the window: an int, or one for each spatial
            axis. Default: 1.
        dilation (int | tuple[int, ...]): The distance of the elements of the window: an int, or one
            for each spatial axis. Default: 1.
        group (str | None): The number of groups into which the channels are divided. Default: 1.
        data_format (str): The order of the axes: "NCHW" or, where it is served, "NHWC" (of volumes
            "NCDHW"). Default: "NCHW".
    """


class Conv3D(
    Primitive,
    compute=_convolve(3),
    out_channel=integer(at_least=1),
    kernel_size=integers(at_least=1),
    mode=1,
    pad_mode=word("valid", "same", "pad", "VALID", "SAME", "PAD"),
    pad=integers(0),
    stride=integers(1, at_least=1),
    dilation=integers(1, at_least=1),
    group=integer(1, at_least=1),
    data_format=one_of("NCDHW", "NDHWC"),
):
    """The convolution of (N, C_in, D, H, W) with a weight (C_out, C_in / group, KD, KH, KW), as
    `mycel.ops.conv3d` computes it.

    Args:
        out_channel (int): The number of channels of the result.
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each spatial
            axis.
        mode (int): Must be 1, cross-correlation. Default: 1.
        pad_mode (str): "valid" (no padding), "same" (ceil(size / stride) positions) or "pad".
            Default: "valid".
        pad (int | tuple[int, ...]): The padding of each side with `pad_mode` "pad": an int, or one
            for each side. Default: 0.
        stride (int | tuple[int, ...]): The step of the window: an int, or one for each spatial
            axis. Default: 1.
        dilation (int | tuple[int, ...]): The distance of the elements of the window: an int, or one
            for each spatial axis. Default: 1.
        group (str | None): The number of groups into which the channels are divided. Default: 1.
        data_format (str): The order of the axes: "NCHW" or, where it is served, "NHWC" (of volumes
            "NCDHW"). Default: "NCDHW".
    """


def _convolve_back(p: Any, ct: Any, weight: Any, input_shape: Any) -> Tensor:
    if p.mode != 1:
        raise ValueError(f"{p.name}: mode must be 1, cross-correlation, not {p.mode}")
    y, w = operands(p.name, _channels_first(p, ct), weight)
    shape = tuple(input_shape.tolist() if isinstance(input_shape, Tensor) else input_shape)
    strides, steps = (
        convolution.per_axis(p.name, k, v, 2) for k, v in (("stride", p.stride), ("dilation", p.dilation))
    )
    padding = p.pad if p.pad_mode.lower() == "pad" else 0
    pairs = convolution.paddings(p.name, p.pad_mode, padding, shape[2:], w.shape[2:], strides, steps)
    return run(conv_grad_input, y, w, input_shape=shape, strides=strides, padding=pairs, dilation=steps, groups=p.group)


class Conv2DTranspose(
    Primitive,
    compute=_convolve_back,
    out_channel=integer(at_least=1),
    kernel_size=integers(at_least=1),
    pad_mode=word("valid", "same", "pad", "VALID", "SAME", "PAD"),
    pad=integers(0),
    pad_list=optional(integers(kinds=(tuple, list))),
    mode=1,
    stride=integers(1, at_least=1),
    dilation=integers(1, at_least=1),
    group=integer(1, at_least=1),
    data_format=one_of("NCHW", "NHWC"),
    inputs=(Tensor, Tensor, SIZES),
):
    """The gradient of `Conv2D` by its input; called with the gradient of its output, the weight,
    and the shape of the input.

    Args:
        out_channel (int): The number of channels of the result.
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each spatial
            axis.
        pad_mode (str): "valid" (no padding), "same" (ceil(size / stride) positions) or "pad".
            Default: "valid".
        pad (int | tuple[int, ...]): The padding of each side with `pad_mode` "pad": an int, or one
            for each side. Default: 0.
        pad_list (int | tuple[int, ...] | None): Has no effect beside `pad`. Default: None.
        mode (int): Must be 1, cross-correlation. Default: 1.
        stride (int | tuple[int, ...]): The step of the window: an int, or one for each spatial
            axis. Default: 1.
        dilation (int | tuple[int, ...]): The distance of the elements of the window: an int, or one
            for each spatial axis. Default: 1.
        group (str | None): The number of groups into which the channels are divided. Default: 1.
        data_format (str): The order of the axes: "NCHW" or, where it is served, "NHWC" (of volumes
            "NCDHW"). Default: "NCHW".
    """


class Conv2DBackpropInput(
    Primitive,
    compute=_convolve_back,
    out_channel=integer(at_least=1),
    kernel_size=integers(at_least=1),
    pad_mode=word("valid", "same", "pad", "VALID", "SAME", "PAD"),
    pad=integers(0),
    pad_list=optional(integers(kinds=(tuple, list))),
    mode=1,
    stride=integers(1, at_least=1),
    dilation=integers(1, at_least=1),
    group=integer(1, at_least=1),
    data_format=one_of("NCHW", "NHWC"),
    inputs=(Tensor, Tensor, SIZES),
):
    """The gradient of `Conv2D` by its input; called with the gradient of its output, the weight,
    and the shape of the input.

    Args:
        out_channel (int): The number of channels of the result.
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each spatial
            axis.
        pad_mode (str): "valid" (no padding), "same" (ceil(size / stride) positions) or "pad".
            Default: "valid".
        pad (int | tuple[int, ...]): The padding of each side with `pad_mode` "pad": an int, or one
            for each side. Default: 0.
        pad_list (int | tuple[int, ...] | None): Has no effect beside `pad`. Default: None.
        mode (int): Must be 1, cross-correlation. Default: 1.
        stride (int | tuple[int, ...]): The step of the window: an int, or one for each spatial
            axis. Default: 1.
        dilation (int | tuple[int, ...]): The distance of the elements of the window: an int, or one
            for each spatial axis. Default: 1.
        group (str | None): The number of groups into which the channels are divided. Default: 1.
        data_format (str): The order of the axes: "NCHW" or, where it is served, "NHWC" (of volumes
            "NCDHW"). Default: "NCHW".
    """


def _pool(rank: int, mean: bool) -> Callable[..., Tensor]:
    def compute(p: Any, x: Any) -> Tensor:
        value = _channels_first(p, x)
        window, strides = (
            convolution.per_axis(p.name, k, v, rank)
            for k, v in (("kernel_size", p.kernel_size), ("strides", p.strides))
        )
        pairs = convolution.paddings(
            p.name, p.pad_mode, getattr(p, "pad_list", 0), value.shape[2:], window, strides, (1,) * rank
        )
        pairs = pooling.with_ceil(value.shape[2:], window, strides, pairs, bool(getattr(p, "ceil_mode", False)))
        if mean:
            return pooling.mean_windows(value, window, strides, pairs, ((0, 0),) * rank)
        return pooling.max_windows(value, window, strides, pairs)

    return compute


class MaxPool(
    Primitive,
    compute=_pool(2, False),
    kernel_size=integers(1, (2, 4), at_least=1),
    strides=integers(1, (2, 4), at_least=1),
    pad_mode=word("valid", "same", "pad", "VALID", "SAME", "PAD"),
    data_format=one_of("NCHW", "NHWC"),
):
    """The largest element of each window of (N, C, H, W).

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


class AvgPool(
    Primitive,
    compute=_pool(2, True),
    kernel_size=integers(1, (2, 4)),
    strides=integers(1, (2, 4)),
    pad_mode=word("VALID", "SAME", "valid", "same"),
    data_format=word("NCHW", "NHWC"),
):
    """The mean of each window of (N, C, H, W), without the zeros around the image.

    Args:
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each spatial
            axis. Default: 1.
        strides (int | tuple[int, ...]): The step of the window: an int, or one for each spatial
            axis. Default: 1.
        pad_mode (str): "valid" (no padding) or "same" (ceil(size / stride) positions); of volumes
            also "pad". Default: "VALID".
        data_format (str): The order of the axes: "NCHW" or, where it is served, "NHWC" (of volumes
            "NCDHW"). Default: "NCHW".
    """


class MaxPool3D(
    Primitive,
    compute=_pool(3, False),
    kernel_size=integers(1, (3, 5), at_least=1),
    strides=integers(1, (3, 5), at_least=1),
    pad_mode=word("VALID", "SAME", "PAD", "valid", "same", "pad"),
    pad_list=integers(0, (3, 6), at_least=0),
    ceil_mode=optional(False),
    data_format=one_of("NCDHW"),
):
    """The largest element of each window of (N, C, D, H, W).

    Args:
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each spatial
            axis. Default: 1.
        strides (int | tuple[int, ...]): The step of the window: an int, or one for each spatial
            axis. Default: 1.
        pad_mode (str): "valid" (no padding) or "same" (ceil(size / stride) positions); of volumes
            also "pad". Default: "VALID".
        pad_list (int | tuple[int, ...] | None): The padding with `pad_mode` "pad": an int, or one
            for each axis or each side. Default: 0.
        ceil_mode (bool): Whether the last window may extend beyond the end. Default: False.
        data_format (str): The order of the axes: "NCHW" or, where it is served, "NHWC" (of volumes
            "NCDHW"). Default: "NCDHW".
    """


def _averaged(p: Any, x: Any) -> Tensor:
    value = _channels_first(p, x)
    window, strides = (
        convolution.per_axis(p.name, k, v, 3) for k, v in (("kernel_size", p.kernel_size), ("strides", p.strides))
    )
    pairs = convolution.paddings(
        p.name, p.pad_mode, p.pad if p.pad_mode.lower() == "pad" else 0, value.shape[2:], window, strides, (1, 1, 1)
    )
    full = pooling.with_ceil(value.shape[2:], window, strides, pairs, p.ceil_mode)
    return pooling.mean_windows(
        value, window, strides, full, pairs if p.count_include_pad else ((0, 0),) * 3, p.divisor_override
    )


class AvgPool3D(
    Primitive,
    compute=_averaged,
    kernel_size=integers(1, (3, 5), at_least=1),
    strides=integers(1, (3, 5), at_least=1),
    pad_mode=word("valid", "same", "pad", "VALID", "SAME", "PAD"),
    pad=integers(0, 6, at_least=0),
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=integer(0, at_least=0),
    data_format=one_of("NCDHW"),
):
    """The mean of each window of (N, C, D, H, W); with `count_include_pad` the zeros around it
    count as elements.

    Args:
        kernel_size (int | tuple[int, ...]): The size of the window: an int, or one for each spatial
            axis. Default: 1.
        strides (int | tuple[int, ...]): The step of the window: an int, or one for each spatial
            axis. Default: 1.
        pad_mode (str): "valid" (no padding), "same" (ceil(size / stride) positions) or "pad".
            Default: "valid".
        pad (int | tuple[int, ...]): The padding of each side with `pad_mode` "pad": an int, or one
            for each side. Default: 0.
        ceil_mode (bool): Whether the last window may extend beyond the end. Default: False.
        count_include_pad (bool): Whether zeros of the padding count in the averages. Default: True.
        divisor_override (int | None): What sums are divided by instead of the size of the window.
            Default: 0.
        data_format (str): The order of the axes: "NCHW" or, where it is served, "NHWC" (of volumes
            "NCDHW"). Default: "NCDHW".
    """


class AdaptiveAvgPool2D(
    Primitive,
    compute=lambda p, x: adaptive_pooling.adaptive_avg_pool2d(x, p.output_size),
    output_size=integers(count=2, each=optional(integer(at_least=0))),
): ...


class AdaptiveAvgPool3D(
    Primitive,
    compute=lambda p, x: adaptive_pooling.adaptive_avg_pool3d(x, p.output_size),
    output_size=integers(each=optional(integer(at_least=0))),
): ...


class AdaptiveMaxPool2D(
    Primitive,
    compute=lambda p, x: adaptive_pooling.adaptive_max_pool2d(x, p.output_size, True),
    output_size=integers(alone=False, kinds=(tuple, list), each=optional(integer())),
): ...


__all__.extend(operations_of(globals()))
