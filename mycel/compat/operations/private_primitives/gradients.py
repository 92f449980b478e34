"""What MindSpore's gradient primitives compute, by rule: the cotangents of the forward operation.

A row names the forward operation and where its operands stand among the inputs of the gradient
primitive:

* `pulled`: operands and a cotangent are inputs; the result is the cotangents of the operands.
* `pulled_sized`: the operation is linear, so the input has the operand's shape alone.
* `pushed`: an input is a tangent; the result is the tangent of the forward operation's result.

`p` is the primitive, with its parameters as attributes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel import ops
from mycel._src.staging.derivatives import jvp, vjp
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops._operands import shape_of

__all__ = ["PULLED", "cotangents", "pulled", "pulled_sized", "pushed"]

Compute = Callable[..., Any]


def cotangents(forward: Compute, operands: list[Any], cotangent: Any) -> Any:
    """Return the cotangents of `operands`, a single one by itself, for that of the result."""
    found = vjp(forward, *operands)[1](cotangent)
    return found[0] if len(operands) == 1 else found


def pulled(forward: Compute, cotangent: int, at: tuple[int, ...], rest: tuple[int, ...] = ()) -> Compute:
    """Return the gradient of `forward`, a function of the primitive and operands.

    `cotangent`, `at` and `rest` number the inputs that are the cotangent, the operands that it is
    pulled back to, and the operands after those.
    """

    def compute(p: Any, *inputs: Any) -> Any:
        others = [inputs[i] if i < len(inputs) else None for i in rest]
        return cotangents(lambda *v: forward(p, *v, *others), [inputs[i] for i in at], inputs[cotangent])

    return compute


def pulled_sized(forward: Compute, cotangent: int, shape: int, rest: tuple[int, ...] = ()) -> Compute:
    """Return the gradient of a linear `forward` of which the input `shape` has the operand's shape.

    `cotangent` and `rest` are those of `pulled`; `forward` is given the cotangent last. A tensor
    of floats in place of the shape stands for its own.
    """

    def compute(p: Any, *inputs: Any) -> Any:
        given, dy = inputs[shape], inputs[cotangent]
        sizes = given.shape if isinstance(given, Tensor) and given.is_floating_point() else shape_of(p.name, given)
        others = [inputs[i] for i in rest]
        return cotangents(lambda x: forward(p, x, *others, dy), [ops.zeros(sizes, dy.dtype)], dy)

    return compute


def pushed(forward: Compute, tangent: int, at: int) -> Compute:
    """Return the tangent of `forward`'s result for that of one operand."""

    def compute(p: Any, *inputs: Any) -> Any:
        return jvp(lambda x: forward(p, x), inputs[at], inputs[tangent])[1]

    return compute


def _reduced(values: Any, reduction: str) -> Any:
    return values.mean() if reduction == "mean" else values.sum() if reduction == "sum" else values


def _conv2d(p: Any, out_channel: int, x: Any, w: Any) -> Any:
    pad = p.pad if p.pad_mode.lower() == "pad" else 0
    op = ops.Conv2D(out_channel, p.kernel_size, 1, p.pad_mode, pad, p.stride, p.dilation, p.group, p.data_format)
    return op(x, w)


def _conv3d(p: Any, x: Any, w: Any) -> Any:
    pad = p.pad if p.pad_mode.lower() == "pad" else 0
    op = ops.Conv3D(p.out_channel, p.kernel_size, 1, p.pad_mode, pad, _three(p.stride), _three(p.dilation), p.group)
    return op(x, w)


def _three(value: Any) -> Any:
    return value[-3:] if isinstance(value, (tuple, list)) else value


def _two(value: Any) -> Any:
    return value[-2:] if isinstance(value, (tuple, list)) else value


def _depthwise(p: Any, x: Any, w: Any) -> Any:
    pad = p.pad if p.pad_mode.lower() == "pad" else 0
    channels = x.shape[1]
    weight = w.reshape((channels * p.channel_multiplier, 1, *w.shape[2:]))
    stride, dilation = _two(p.stride), _two(p.dilation)
    return ops.Conv2D(weight.shape[0], p.kernel_size, 1, p.pad_mode, pad, stride, dilation, channels)(x, weight)


def _pool2d(kind: Callable[..., Any]) -> Compute:
    return lambda p, x, *_: kind(p.kernel_size, p.strides, p.pad_mode, getattr(p, "data_format", "NCHW"))(x)


def _pool2d_v1(kind: Callable[..., Any]) -> Compute:
    def forward(p: Any, x: Any, *_: Any) -> Any:
        axes = (2, 4) if p.data_format == "NCHW" else (1, 3)
        return kind(p.kernel_size[slice(*axes)], p.strides[slice(*axes)], p.pad_mode, p.data_format)(x)

    return forward


def _max_pool3d(p: Any, x: Any) -> Any:
    pads = getattr(p, "pad_list", 0)
    kernel, strides = _three(p.kernel_size), _three(p.strides)
    return ops.MaxPool3D(kernel, strides, p.pad_mode, pads)(x)


def _avg_pool3d(p: Any, x: Any, *_: Any) -> Any:
    counted = (p.ceil_mode, p.count_include_pad, p.divisor_override)
    return ops.AvgPool3D(p.kernel_size, p.strides, p.pad_mode, p.pads, *counted)(x)


def _dilation2d(p: Any, x: Any, w: Any) -> Any:
    return ops.Dilation2D(p.stride, p.dilation, p.pad_mode, p.data_format)(x, w)


def _deformable(p: Any, x: Any, offsets: Any) -> Any:
    op = ops.DeformableOffsets(p.strides, p.pads, p.kernel_size, p.dilations, p.data_format, p.deformable_groups, True)
    return op(x, offsets)


def _prelu(p: Any, x: Any, weight: Any) -> Any:
    return ops.prelu(x, weight)


def _smooth_l1(p: Any, x: Any, target: Any) -> Any:
    return ops.SmoothL1Loss(p.beta, p.reduction)(x, target)


def _kl_div(p: Any, x: Any, target: Any) -> Any:
    loss = ops.xlogy(target, target) - target * x
    return loss.sum() / x.shape[0] if p.reduction == "batchmean" else _reduced(loss, p.reduction)


def _binary_cross_entropy(p: Any, x: Any, target: Any, weight: Any) -> Any:
    return ops.binary_cross_entropy(x, target, weight, p.reduction)


def _multi_margin(p: Any, x: Any, target: Any, weight: Any) -> Any:
    return ops.MultiMarginLoss(p.p, p.margin, p.reduction)(x, target, weight)


def _multilabel_margin(p: Any, x: Any, target: Any) -> Any:
    return ops.MultilabelMarginLoss(p.reduction)(x, target)[0]


def _soft_margin(p: Any, x: Any, label: Any) -> Any:
    return ops.soft_margin_loss(x, label, p.reduction)


def _grid_sample(p: Any, x: Any, grid: Any) -> Any:
    return ops.grid_sample(x, grid, p.interpolation_mode, p.padding_mode, p.align_corners)


def _roi_align(p: Any, x: Any, rois: Any, _: Any) -> Any:
    return ops.ROIAlign(p.pooled_height, p.pooled_width, p.spatial_scale, p.sample_num)(x, rois)


def _resized(kind: str) -> Compute:
    def forward(p: Any, x: Any, dy: Any) -> Any:
        return getattr(ops, kind)(p.align_corners, p.half_pixel_centers)(x, dy.shape[2:])

    return forward


def _strided(p: Any, x: Any, begin: Any, end: Any, strides: Any, _: Any) -> Any:
    masks = (p.begin_mask, p.end_mask, p.ellipsis_mask, p.new_axis_mask, p.shrink_axis_mask)
    return ops.StridedSlice(*masks)(x, begin, end, strides)


def _padded(p: Any, x: Any, paddings: Any, mode: str) -> Any:
    return ops.PadV3(mode, p.paddings_contiguous)(x, paddings)


def _inner_shape(p: Any, dy: Any, paddings: Any) -> tuple[int, ...]:
    """Return the shape whose padded shape is that of `dy`; PyTorch's order of paddings."""
    pads = shape_of(p.name, paddings)
    pairs = list(zip(pads[::2], pads[1::2])) if p.paddings_contiguous else list(zip(*[iter(pads)] * 2))
    sizes = list(dy.shape)
    for axis, (before, after) in enumerate(pairs):
        sizes[-1 - axis] -= before + after
    return tuple(sizes)


def _pad_v3(p: Any, dy: Any, paddings: Any) -> Any:
    x = ops.zeros(_inner_shape(p, dy, paddings), dy.dtype)
    return cotangents(lambda v: _padded(p, v, paddings, p.mode), [x], dy)


def _mirror_pad(p: Any, dy: Any, paddings: Any) -> Any:
    pairs = paddings.asnumpy().tolist()
    sizes = tuple(size - before - after for size, (before, after) in zip(dy.shape, pairs))
    return cotangents(lambda v: ops.MirrorPad(p.mode)(v, paddings), [ops.zeros(sizes, dy.dtype)], dy)


def _einsum(p: Any, operands: Any, dy: Any) -> Any:
    return vjp(lambda *v: ops.einsum(p.equation, *v), *operands)[1](dy)


def _affine_grid(p: Any, dy: Any, size: Any) -> Any:
    sizes = shape_of(p.name, size)
    theta = ops.zeros((sizes[0], len(sizes) - 2, len(sizes) - 1), dy.dtype)
    return cotangents(lambda v: ops.affine_grid(v, sizes, p.align_corners), [theta], dy)


def _lstm(
    p: Any, x: Any, h: Any, c: Any, w: Any, y: Any, hy: Any, cy: Any, dy: Any, dhy: Any, dcy: Any, kept: Any
) -> Any:
    """Return the cotangents of the input, states and weights; results and `kept` are not needed."""
    sizes = (p.input_size, p.hidden_size, p.num_layers, p.has_bias, p.bidirectional, p.dropout, p.proj_size)
    op = ops.LSTM(*sizes)
    return vjp(lambda *v: op(*v)[:3], x, h, c, w)[1]((dy, dhy, dcy))


def _ctc(p: Any, dy: Any, logs: Any, targets: Any, lengths: Any, target_lengths: Any, loss: Any, alpha: Any) -> Any:
    """Return the cotangent of the logarithms; `loss` and `alpha` are not needed."""
    op = ops.CTCLossV2(p.blank, "none", p.zero_infinity)
    return cotangents(lambda v: op(v, targets, lengths, target_lengths)[0], [logs], dy)


PULLED: dict[str, Compute] = {
    "ACosGrad": pulled(lambda p, x: ops.acos(x), 1, (0,)),
    "AbsGrad": pulled(lambda p, x: ops.abs(x), 1, (0,)),
    "AsinGrad": pulled(lambda p, x: ops.asin(x), 1, (0,)),
    "AtanGrad": pulled(lambda p, x: ops.atan(x), 1, (0,)),
    "AdaptiveAvgPool2DGrad": pulled_sized(lambda p, x, dy: ops.adaptive_avg_pool2d(x, dy.shape[-2:]), 0, 1),
    "AdaptiveAvgPool3DGrad": pulled_sized(lambda p, x, dy: ops.adaptive_avg_pool3d(x, dy.shape[-3:]), 0, 1),
    "AffineGridGrad": _affine_grid,
    "AvgPoolGrad": pulled(_pool2d(ops.AvgPool), 2, (0,)),
    "AvgPoolGradGe": pulled(_pool2d(ops.AvgPool), 2, (0,)),
    "AvgPoolGradV1": pulled_sized(_pool2d_v1(ops.AvgPool), 1, 0),
    "AvgPool3DGrad": pulled_sized(_avg_pool3d, 1, 0),
    "BinaryCrossEntropyGrad": pulled(_binary_cross_entropy, 2, (0,), (1, 3)),
    "CTCLossV2Grad": _ctc,
    "Conv2DBackpropFilter": pulled_sized(lambda p, w, x, dy: _conv2d(p, dy.shape[1], x, w), 0, 2, (1,)),
    "Conv3DBackpropFilter": pulled_sized(lambda p, w, x, dy: _conv3d(p, x, w), 1, 2, (0,)),
    "Conv3DBackpropInput": pulled_sized(lambda p, x, w, dy: _conv3d(p, x, w), 1, 2, (0,)),
    "DeformableOffsetsGrad": pulled(_deformable, 0, (1, 2)),
    "DepthwiseConv2dNativeBackpropFilter": pulled_sized(lambda p, w, x, dy: _depthwise(p, x, w), 2, 1, (0,)),
    "DepthwiseConv2dNativeBackpropInput": pulled_sized(lambda p, x, w, dy: _depthwise(p, x, w), 2, 0, (1,)),
    "Dilation2DBackpropFilter": pulled(lambda p, w, x: _dilation2d(p, x, w), 2, (1,), (0,)),
    "Dilation2DBackpropInput": pulled(_dilation2d, 2, (0,), (1,)),
    "EinsumGrad": _einsum,
    "FastGeLUGrad": pulled(lambda p, x: ops.fast_gelu(x), 0, (1,)),
    "FlattenGrad": lambda p, dy, shape: ops.reshape(dy, shape_of(p.name, shape)),
    "GatherDGradV2": lambda p, x, dim, index, dy: cotangents(lambda v: ops.gather_d(v, dim, index), [x], dy),
    "GeLUGrad": pulled(lambda p, x: ops.gelu(x, approximate="tanh"), 0, (1,)),
    "GluGrad": pulled(lambda p, x: ops.glu(x, p.axis), 0, (1,)),
    "GridSampler2DGrad": pulled(_grid_sample, 0, (1, 2)),
    "GridSampler3DGrad": pulled(_grid_sample, 0, (1, 2)),
    "HShrinkGrad": pulled(lambda p, x: ops.hardshrink(x, p.lambd), 0, (1,)),
    "HSigmoidGrad": pulled(lambda p, x: ops.hardsigmoid(x), 0, (1,)),
    "HSwishGrad": pulled(lambda p, x: ops.hardswish(x), 0, (1,)),
    "IgammaGradA": lambda p, a, x: cotangents(lambda v: ops.igamma(v, x), [a], ops.ones_like(a + x)),
    "KLDivLossGrad": pulled(_kl_div, 0, (1,), (2,)),
    "LRNGrad": pulled(lambda p, x: ops.LRN(p.depth_radius, p.bias, p.alpha, p.beta)(x), 0, (1,)),
    "LSTMGrad": _lstm,
    "LogitGrad": pulled(lambda p, x: ops.logit(x, None if p.eps < 0 else p.eps), 0, (1,)),
    "MaskedSelectGrad": pulled(lambda p, x, mask: ops.masked_select(x, mask), 2, (0,), (1,)),
    "MaxPool3DGrad": pulled(_max_pool3d, 2, (0,)),
    "MaxPool3DGradGrad": pushed(_max_pool3d, 2, 0),
    "MaxPoolGrad": pulled(_pool2d(ops.MaxPool), 2, (0,)),
    "MaxPoolGradGrad": pushed(_pool2d(ops.MaxPool), 2, 0),
    "MaxPoolGradV1": pulled(_pool2d_v1(ops.MaxPool), 2, (0,)),
    "MaximumGrad": pulled(lambda p, x, y: ops.maximum(x, y), 2, (0, 1)),
    "MinimumGrad": pulled(lambda p, x, y: ops.minimum(x, y), 2, (0, 1)),
    "MirrorPadGrad": _mirror_pad,
    "MultiMarginLossGrad": pulled(_multi_margin, 0, (1,), (2, 3)),
    "MultilabelMarginLossGrad": pulled(_multilabel_margin, 0, (1,), (2,)),
    "MvlgammaGrad": pulled(lambda p, x: ops.mvlgamma(x, p.p), 0, (1,)),
    "PReLUGrad": pulled(_prelu, 0, (1, 2)),
    "PadV3Grad": _pad_v3,
    "ROIAlignGrad": pulled_sized(_roi_align, 0, 2, (1,)),
    "ReLU6Grad": pulled(lambda p, x: ops.relu6(x), 0, (1,)),
    "ReluGrad": pulled(lambda p, x: ops.relu(x), 0, (1,)),
    "ResizeBicubicGrad": pulled_sized(_resized("ResizeBicubic"), 0, 1),
    "ResizeBilinearGrad": pulled_sized(_resized("ResizeBilinearV2"), 0, 1),
    "ResizeLinear1DGrad": pulled_sized(
        lambda p, x, dy: ops.ResizeLinear1D(p.coordinate_transformation_mode)(x, dy.shape[2:]), 0, 1
    ),
    "SiLUGrad": pulled(lambda p, x: ops.silu(x), 0, (1,)),
    "SigmoidCrossEntropyWithLogitsGrad": pulled(
        lambda p, x, y: ops.SigmoidCrossEntropyWithLogits()(x, y), 2, (0,), (1,)
    ),
    "SliceGrad": pulled(lambda p, x, begin, size: ops.slice(x, begin, size), 0, (1,), (2, 3)),
    "SmoothL1LossGrad": pulled(_smooth_l1, 2, (0,), (1,)),
    "SoftMarginLossGrad": pulled(_soft_margin, 2, (0,), (1,)),
    "SoftShrinkGrad": pulled(lambda p, x: ops.softshrink(x, p.lambd), 0, (1,)),
    "SoftplusGrad": pulled(lambda p, x: ops.softplus(x), 0, (1,)),
    "StridedSliceGrad": pulled_sized(_strided, 0, 1, (2, 3, 4)),
    "TraceGrad": pulled_sized(lambda p, x, dy: ops.trace(x), 0, 1),
    "UpsampleNearest3DGrad": lambda p, dy, size, output=None, scales=None: cotangents(
        lambda v: ops.UpsampleNearest3D()(v, output, scales), [ops.zeros(shape_of(p.name, size), dy.dtype)], dy
    ),
    "UpsampleTrilinear3DGrad": lambda p, dy, size, output=None, scales=None: cotangents(
        lambda v: ops.UpsampleTrilinear3D(p.align_corners)(v, output, scales),
        [ops.zeros(shape_of(p.name, size), dy.dtype)],
        dy,
    ),
}
