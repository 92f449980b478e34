"""MindSpore's primitives of quantisation-aware training: quantised and rescaled values, and the
statistics that ranges are taken from.

Ranges follow "Quantizing deep convolutional networks for efficient inference" (2018): a range is
moved so that zero is one of its steps. Rounding passes gradients on where a value lies in its
range. Weights and biases of folded batch normalisations are corrected as in the same paper.
`p` is the primitive, with its parameters as attributes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel import ops
from mycel._src.foundation.errors import Unsupported
from mycel._src.tensors.core.parameter import Parameter
from mycel.compat.operations.private_primitives.custom_derivative import with_gradient
from mycel.ops.operations.primitive import Primitive

__all__ = ["CLASSES", "QUANTIZATION"]


def _rounded(x: Any) -> Any:
    return ops.floor(x + 0.5)


def _along(x: Any, values: Any, axis: int) -> Any:
    """Return values of channels in the shape that broadcasts with `x`."""
    if values.ndim != 1 or values.shape[0] == 1:
        return values
    return values.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])


def _steps(p: Any) -> tuple[int, int]:
    """Return the least and the greatest quantised number."""
    symmetric = getattr(p, "symmetric", False)
    least = -(1 << (p.num_bits - 1)) if symmetric else 0
    most = (1 << (p.num_bits - 1)) - 1 if symmetric else (1 << p.num_bits) - 1
    return least + bool(p.narrow_range), most


def _nudged(p: Any, low: Any, high: Any) -> tuple[Any, Any, Any]:
    """Return a range in which zero is a step, and the step."""
    least, most = _steps(p)
    if getattr(p, "symmetric", False):
        high = ops.maximum(-low, high)
        low = -high
    scale = (high - low) / float(most - least)
    zero = _rounded(ops.clip(least - low / scale, float(least), float(most)))
    return (least - zero) * scale, (most - zero) * scale, scale


def _need_no_delay(p: Any) -> None:
    if getattr(p, "quant_delay", 0) and getattr(p, "training", True):
        raise Unsupported(
            f"{p.name}: quant_delay counts the calls of the operation, which compiled functions do not; call the "
            "network without the operation for the first steps"
        )


def _fake_quant(p: Any, x: Any, low: Any, high: Any) -> Any:
    """Return `x` in the levels of a range; what is outside takes the nearest end."""
    _need_no_delay(p)
    axis = getattr(p, "channel_axis", -1)
    low, high = _along(x, low, axis), _along(x, high, axis)
    start, end, scale = _nudged(p, low, high)
    found = _rounded((ops.clip(x, start, end) - start) / scale) * scale + start

    def bprop(x: Any, low: Any, high: Any, out: Any, dout: Any) -> Any:
        return _within(p, dout, x, low, high), ops.zeros_like(low), ops.zeros_like(high)

    return with_gradient(bprop, (x, low, high), found)


def _within(p: Any, dy: Any, x: Any, low: Any, high: Any) -> Any:
    """Return the cotangent where `x` lies in its range, and zeros elsewhere."""
    axis = getattr(p, "channel_axis", -1)
    start, end, _ = _nudged(p, _along(x, low, axis), _along(x, high, axis))
    return ops.where(ops.logical_and(x >= start, x <= end), dy, ops.zeros_like(dy))


def _variables(p: Any, x: Any, low: Any, high: Any) -> Any:
    """Return `_fake_quant` with gradients of the ends of the range."""
    start, end, scale = _nudged(p, low, high)
    found = _rounded((ops.clip(x, start, end) - start) / scale) * scale + start
    return with_gradient(lambda x, low, high, out, dout: _variables_grad(p, dout, x, low, high), (x, low, high), found)


def _variables_grad(p: Any, dy: Any, x: Any, low: Any, high: Any) -> Any:
    start, end, _ = _nudged(p, low, high)
    none = ops.zeros_like(dy)
    inside = ops.logical_and(x >= start, x <= end)
    axes = tuple(range(x.ndim)) if low.shape != x.shape[-1:] or low.shape == (1,) else tuple(range(x.ndim - 1))
    below = ops.where(x < start, dy, none).sum(axes).reshape(low.shape)
    above = ops.where(x > end, dy, none).sum(axes).reshape(high.shape)
    return ops.where(inside, dy, none), below, above


def _ends(p: Any, x: Any, low: Any, high: Any) -> Any:
    """Return the range of `x` with zero in it; with `ema` averaged with the former one."""
    kept = p.ema_decay if p.ema else 0.0
    channel = getattr(p, "channel_axis", None)
    axes = tuple(i for i in range(x.ndim) if channel is None or i != channel % x.ndim)
    new_low, new_high = (f(x, axes).reshape(low.shape) for f in (ops.amin, ops.amax))
    return (
        ops.clip(low * kept + new_low * (1 - kept), None, 0.0),
        ops.clip(high * kept + new_high * (1 - kept), 0.0, None),
    )


def _learned_parts(p: Any, x: Any, alpha: Any, quant_max: Any) -> tuple[Any, Any, Any, Any]:
    alpha = ops.where(ops.abs(alpha) >= 1e-6, alpha, ops.full_like(alpha, 1e-6))
    alpha = _along(x, alpha, getattr(p, "channel_axis", 0))
    relative = x / alpha
    low = 0.0 if p.neg_trunc else -1.0
    steps = _rounded(ops.clip(relative, low, 1.0) * quant_max) / quant_max
    outside = ops.logical_or(relative > 1.0, relative < low)
    return alpha, relative, steps, outside


def _learned(p: Any, x: Any, alpha: Any, quant_max: Any) -> Any:
    """Return `x` in steps of a range of which `alpha` is learned."""
    _need_no_delay(p)
    wide, _, steps, _ = _learned_parts(p, x, alpha, quant_max)

    def bprop(x: Any, alpha: Any, quant_max: Any, out: Any, dout: Any) -> Any:
        return (*_learned_grad(p, dout, x, alpha, quant_max), ops.zeros_like(quant_max))

    return with_gradient(bprop, (x, alpha, quant_max), steps * wide)


def _learned_each(p: Any, dy: Any, x: Any, alpha: Any, quant_max: Any) -> Any:
    _, relative, steps, outside = _learned_parts(p, x, alpha, quant_max)
    dx = ops.where(outside, ops.zeros_like(dy), dy)
    return dx, dy * ops.where(outside, ops.sign(relative), steps - relative)


def _learned_grad(p: Any, dy: Any, x: Any, alpha: Any, quant_max: Any) -> Any:
    _need_no_delay(p)
    dx, each = _learned_each(p, dy, x, alpha, quant_max)
    channel = getattr(p, "channel_axis", None)
    axes = tuple(i for i in range(x.ndim) if channel is None or i != channel % x.ndim)
    return dx, each.sum(axes).reshape(alpha.shape)


def _summed_over(p: Any, each: Any) -> Any:
    channel = getattr(p, "channel_axis", None)
    total = each.sum(tuple(i for i in range(each.ndim) if channel is None or i != channel % each.ndim))
    return total.reshape((1,)) if channel is None else total


def _corrected(p: Any, x: Any, batch_std: Any, running_std: Any) -> Any:
    return x * _along(x, batch_std / running_std, p.channel_axis)


def _corrected_grad(p: Any, dy: Any, x: Any, batch_std: Any, running_std: Any) -> Any:
    dx = _corrected(p, dy, batch_std, running_std)
    each = dy * x / _along(x, running_std, p.channel_axis)
    return dx, _summed_over(p, each)


def _others(x: Any) -> tuple[int, ...]:
    return tuple(i for i in range(x.ndim) if i != 1)


def _statistics(p: Any, x: Any) -> tuple[Any, Any, Any]:
    """Return mean, standard deviation and unbiased variance of each channel."""
    count = 1
    for axis in _others(x):
        count *= x.shape[axis]
    mean = x.mean(_others(x))
    variance = ops.square(x - _along(x, mean, 1)).mean(_others(x))
    return mean, ops.sqrt(variance + p.epsilon), variance * (count / max(count - 1, 1))


def _fold(p: Any, x: Any, mean: Any, variance: Any, step: Any) -> Any:
    """Return mean and deviation of the batch and of what ran before, which parameters keep.

    From step `freeze_bn` on, and out of training, those of the batch are 0 and 1.
    """
    batch_mean, batch_std, unbiased = _statistics(p, x)
    running_mean, running_std = mean + 0.0, ops.sqrt(variance + p.epsilon)
    live = ops.logical_and(step.reshape(-1)[0] < p.freeze_bn, bool(p.is_training))
    for kept, new in ((mean, batch_mean), (variance, unbiased)):
        if isinstance(kept, Parameter):
            ops.assign(kept, ops.where(live, p.momentum * kept + (1 - p.momentum) * new, kept))
    return (
        ops.where(live, batch_mean, ops.zeros_like(batch_mean)),
        ops.where(live, batch_std, ops.ones_like(batch_std)),
        running_mean,
        running_std,
    )


def _fold_d(p: Any, x: Any, x_sum: Any, x_square_sum: Any, mean: Any, variance: Any) -> Any:
    count = 1
    for axis in _others(x):
        count *= x.shape[axis]
    batch_mean = x_sum / count
    biased = x_square_sum / count - batch_mean * batch_mean
    unbiased = biased * (count / max(count - 1, 1))
    keep, new = p.momentum, 1.0 - p.momentum
    return (
        x,
        batch_mean,
        ops.sqrt(biased + p.epsilon),
        mean,
        ops.sqrt(variance + p.epsilon),
        batch_mean * new + mean * keep,
        unbiased * new + variance * keep,
    )


def _fold_grad_d(p: Any, d_mean: Any, d_std: Any, x: Any, mean: Any, std: Any) -> Any:
    count = 1
    for axis in _others(x):
        count *= x.shape[axis]
    d_mean, d_std, mean, std = (_along(x, v, 1) for v in (d_mean, d_std, mean, std))
    return ((x - mean) * d_std / std + d_mean) / count


def _fold_grad(p: Any, d_mean: Any, d_std: Any, x: Any, mean: Any, std: Any, step: Any) -> Any:
    live = ops.logical_and(step.reshape(-1)[0] < p.freeze_bn, bool(p.is_training))
    return ops.where(live, _fold_grad_d(p, d_mean, d_std, x, mean, std), ops.zeros_like(x))


def _fold2_d(p: Any, x: Any, beta: Any, gamma: Any, batch_std: Any, batch_mean: Any, running_std: Any) -> Any:
    factor, bias = running_std / batch_std, beta - gamma * batch_mean / batch_std
    return x * _along(x, factor, 1) + _along(x, bias, 1)


def _fold2(
    p: Any,
    x: Any,
    beta: Any,
    gamma: Any,
    batch_std: Any,
    batch_mean: Any,
    running_std: Any,
    running_mean: Any,
    step: Any,
) -> Any:
    frozen = x + _along(x, beta - gamma * running_mean / running_std, 1)
    live = _fold2_d(p, x, beta, gamma, batch_std, batch_mean, running_std)
    return ops.where(step.reshape(-1)[0] < p.freeze_bn, live, frozen)


def _fold2_grad_d(
    p: Any, dy: Any, dy_sum: Any, dyx_sum: Any, gamma: Any, batch_std: Any, batch_mean: Any, running_std: Any
) -> Any:
    d_std = (dy_sum * batch_mean * gamma - dyx_sum * running_std) / batch_std / batch_std
    d_mean, d_gamma = -dy_sum * gamma / batch_std, -dy_sum * batch_mean / batch_std
    return d_std, d_mean, d_gamma, _along(dy, running_std / batch_std, 1) * dy


def _fold2_grad(
    p: Any,
    dy: Any,
    x: Any,
    gamma: Any,
    batch_std: Any,
    batch_mean: Any,
    running_std: Any,
    running_mean: Any,
    step: Any,
) -> Any:
    total, along = dy.sum(_others(dy)), (dy * x).sum(_others(dy))
    d_std, d_mean, d_gamma, dx = _fold2_grad_d(p, dy, total, along, gamma, batch_std, batch_mean, running_std)
    live = step.reshape(-1)[0] < p.freeze_bn
    none = ops.zeros_like(total)
    frozen = -total * running_mean / running_std
    return (
        ops.where(live, d_std, none),
        ops.where(live, d_mean, none),
        total,
        ops.where(live, d_gamma, frozen),
        ops.where(live, dx, dy),
    )


_LEARNED = {
    f"FakeLearnedScaleQuantPer{kind}{ending}": work
    for kind in ("Layer", "Channel")
    for ending, work in (
        ("", _learned),
        ("Grad", _learned_grad),
        ("GradD", _learned_each),
        ("GradDReduce", _summed_over),
    )
}

QUANTIZATION: dict[str, Callable[..., Any]] = {
    **_LEARNED,
    "BatchNormFold": _fold,
    "BatchNormFold2": _fold2,
    "BatchNormFold2D": _fold2_d,
    "BatchNormFold2Grad": _fold2_grad,
    "BatchNormFold2GradD": _fold2_grad_d,
    "BatchNormFold2GradReduce": lambda p, dy, x: (dy.sum(_others(dy)), (dy * x).sum(_others(dy))),
    "BatchNormFoldD": _fold_d,
    "BatchNormFoldGrad": _fold_grad,
    "BatchNormFoldGradD": _fold_grad_d,
    "CorrectionMul": _corrected,
    "CorrectionMulGrad": _corrected_grad,
    "CorrectionMulGradReduce": _summed_over,
    "FakeQuantPerChannel": _fake_quant,
    "FakeQuantPerChannelGrad": _within,
    "FakeQuantPerLayer": _fake_quant,
    "FakeQuantPerLayerGrad": _within,
    "FakeQuantWithMinMaxVars": _variables,
    "FakeQuantWithMinMaxVarsGradient": _variables_grad,
    "FakeQuantWithMinMaxVarsPerChannel": _variables,
    "FakeQuantWithMinMaxVarsPerChannelGradient": _variables_grad,
    "MinMaxUpdatePerChannel": _ends,
    "MinMaxUpdatePerLayer": _ends,
}


class FakeQuantParam(Primitive):
    """An operation that returns its operand, and keeps how it was quantised as attributes."""

    attr_key_linear_quant_scale = "linear_quant_scale"
    attr_key_linear_quant_zero_point = "linear_quant_zero_point"
    attr_value_linear_quant_algo_name = "linear_quant_algo"

    def __init__(self, quant_dtype: Any, quant_algo_name: str, is_per_channel: bool, **kwargs: Any) -> None:
        super().__init__("FakeQuantParam")
        self.add_prim_attr("quant_dtype", quant_dtype.value())
        self.add_prim_attr("quant_algo_name", quant_algo_name)
        self.add_prim_attr("is_per_channel", is_per_channel)
        for name, value in kwargs.items():
            self.add_prim_attr(name, value)

    @classmethod
    def linear_quant_param(
        cls, quant_dtype: Any, scale: Any, zp: Any, is_per_channel: bool = False, **kwargs: Any
    ) -> FakeQuantParam:
        """Return an object for linear quantisation.

        `quant_dtype` is the type of the quantised numbers; `scale` and `zp` are a step and the
        number that zero has, or several of each; `is_per_channel` says that there is one for each
        channel; `kwargs` are further attributes.
        """
        kwargs[cls.attr_key_linear_quant_scale] = scale if isinstance(scale, (list, tuple)) else [scale]
        kwargs[cls.attr_key_linear_quant_zero_point] = zp if isinstance(zp, (list, tuple)) else [zp]
        return cls(quant_dtype, cls.attr_value_linear_quant_algo_name, is_per_channel, **kwargs)

    def __call__(self, input_x: Any) -> Any:
        return input_x


CLASSES: dict[str, type] = {"FakeQuantParam": FakeQuantParam}
