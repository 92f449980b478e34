"""Normalisation: subtract a mean, divide by a spread, scale and shift.

16-bit floats are computed in float32 and rounded once. All functions normalise by the biased
variance. In training, `batch_norm` also updates the running mean and the running (unbiased)
variance in place by ``running = (1 - momentum) * running + momentum * batch``.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

from mycel._src.compiler.ir.dims import product
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims.convolution.window import window_sum
from mycel._src.compiler.prims.neural.normalization import moments
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.eager import apply
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops._operands import (
    all_axes,
    constant_like,
    floating,
    need_matched,
    number_of,
    operand,
    reshaped,
    rounded_once,
    run,
    select,
    shape_of,
    size_of,
    term,
    whole,
    wide,
)
from mycel.ops.array import concat
from mycel.ops.vector_norms import root, vector_norm

__all__ = ["batch_norm", "clip_by_global_norm", "clip_by_norm", "group_norm", "layer_norm", "lrn", "rms_norm"]


def _moments(x: Tensor, axes: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Return the deviations from the mean, and the biased variance with the reduced axes kept at
    size 1.
    """
    kept = tuple([1 if a in axes else d for a, d in enumerate(x.shape)])
    mean, variance = apply(moments, x, axes=axes)
    return run(E.sub, x, reshaped(mean, kept)), reshaped(variance, kept)


def _standardized(deviation: Tensor, spread: Tensor, eps: float) -> Tensor:
    return run(E.mul, deviation, run(E.rsqrt, spread + eps))


def _channel(name: str, parameter: str, value: Any, x: Tensor, converts: bool = False) -> Tensor:
    """Return a vector of one value for each channel in a shape that broadcasts over axis 1.

    A vector whose type differs from that of `x` in being float64 is refused, or `converts`.
    """
    v = operand(name, value)
    if not converts:
        need_matched(name, x, v, second=parameter)
    if v.ndim != 1 or v.shape[0] != x.shape[1]:
        raise ShapeError(
            f"{name}: {parameter} must have one element for each of the {x.shape[1]} channels, not shape {v.shape}"
        )
    return cast(reshaped(v, (v.shape[0], *(1,) * (x.ndim - 2))), x.dtype)


def _affine(name: str, x: Tensor, weight: Any, bias: Any, converts: bool = False) -> Tensor:
    if weight is not None:
        x = run(E.mul, x, _channel(name, "weight", weight, x, converts))
    return x if bias is None else run(E.add, x, _channel(name, "bias", bias, x, converts))


def batch_norm(
    input_x: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any,
    bias: Any,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel (axis 1) of `input_x`, scale it by `weight` and shift it by `bias`
    (Ioffe and Szegedy, 2015).

    Args:
        input_x (Tensor): (N, C, ...).
        running_mean (Tensor | None): The running mean, (C,); in training it may be None.
        running_var (Tensor | None): The running variance, (C,); in training it may be None.
        weight (Tensor | None): The scale, (C,).
        bias (Tensor | None): The shift, (C,).
        training (bool): Whether the mean and variance are those of the batch, towards which the
            running ones are moved in place. Default: False.
        momentum (float): The share by which they are moved. Default: 0.1.
        eps (float): Added to the variance. Default: 1e-05.

    Returns:
        Tensor: The shape and type of the input.

    Raises:
        ValueError: If sizes differ.

    Examples:
        >>> import mycel as ms
        >>> one, zero = ms.ops.ones(1), ms.ops.zeros(1)
        >>> x = ms.Tensor([[1.0], [3.0]])
        >>> ms.ops.batch_norm(x, zero, one, one, zero, training=True, eps=0.0).tolist()
        [[-1.0], [1.0]]
    """
    arguments.instance("batch_norm", "momentum", momentum, float)
    arguments.instance("batch_norm", "eps", eps, float)
    arguments.flag("batch_norm", "training", training)
    x = floating("batch_norm", input_x)
    if x.ndim < 2:
        raise ShapeError(f"batch_norm: the input must be (N, C, ...), not {x._type}")
    full = wide(x)
    if not training:
        if running_mean is None or running_var is None:
            raise ValueError("batch_norm: running_mean and running_var are needed where training is off")
        centre, spread = (
            _channel("batch_norm", "running_mean", running_mean, full),
            _channel("batch_norm", "running_var", running_var, full),
        )
        return cast(_affine("batch_norm", _standardized(run(E.sub, full, centre), spread, eps), weight, bias), x.dtype)
    for running in (running_mean, running_var):
        if running is not None and not isinstance(running, Tensor):
            raise TypeError(f"batch_norm: running statistics are tensors or None, not {type(running).__name__}")
    # The result comes before the writes, which may reach a tensor that is also the weight or bias.
    result, *moved = _trained(x, running_mean, running_var, weight, bias, momentum, eps)
    for running, value in zip([r for r in (running_mean, running_var) if r is not None], moved):
        running._replace(value)
    return result


@fused
def _trained(
    x: Tensor, running_mean: Any, running_var: Any, weight: Any, bias: Any, momentum: float, eps: float
) -> tuple[Tensor, ...]:
    """Return the result in training, and the new running mean and variance where there are any."""
    full = wide(x)
    axes = (0, *builtins.range(2, x.ndim))
    count = whole(full, axes)
    deviation, spread = _moments(full, axes)
    results = [cast(_affine("batch_norm", _standardized(deviation, spread, eps), weight, bias), x.dtype)]
    if running_mean is not None:
        batch_mean = reshaped(run(R.reduce_sum, full, axes=axes, keepdims=False), (x.shape[1],)) / count
        results.append(_moved(running_mean, batch_mean, momentum))
    if running_var is not None:
        unbiased = (
            count / builtins.max(count - 1, 1)
            if isinstance(count, int)
            else constant_like(count, full) / constant_like(count - 1, full)
        )
        results.append(_moved(running_var, reshaped(spread, (x.shape[1],)) * unbiased, momentum))
    return tuple(results)


def _moved(running: Tensor, batch: Tensor, momentum: float) -> Tensor:
    batch = run(E.stop_gradient, batch)
    return cast(wide(running) * (1 - momentum) + batch * momentum, running.dtype)


@fused
def layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Normalise the last axes, scale them by `weight` and shift them by `bias` (Ba et al., 2016).

    Args:
        input (Tensor): The tensor.
        normalized_shape (int | Sequence[int]): The shape of the last axes.
        weight (Tensor | None): The scale, of that shape, or None. Default: None.
        bias (Tensor | None): The shift, of that shape, or None. Default: None.
        eps (float): Added to the variance. Default: 1e-05.

    Returns:
        Tensor: The shape and type of the input.

    Raises:
        ValueError: If the last axes have another shape.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.layer_norm(ms.Tensor([[1.0, 3.0]]), (2,), eps=0.0).tolist()
        [[-1.0, 1.0]]
    """
    arguments.instance("layer_norm", "eps", eps, float)
    x = floating("layer_norm", input)
    shape = shape_of("layer_norm", normalized_shape)
    if not shape or x.shape[x.ndim - len(shape) :] != shape or len(shape) > x.ndim:
        raise ShapeError(f"layer_norm: the last axes of {x._type} do not have the shape {shape}")
    full = wide(x)
    result = _standardized(*_moments(full, tuple(builtins.range(x.ndim - len(shape), x.ndim))), eps)
    for name, value in (("weight", weight), ("bias", bias)):
        if value is None:
            continue
        v = operand("layer_norm", value)
        if v.shape != shape:
            raise ShapeError(f"layer_norm: {name} must have the shape {shape}, not {v.shape}")
        result = run(E.mul if name == "weight" else E.add, result, cast(v, full.dtype))
    return cast(result, x.dtype)


@fused
def rms_norm(x: Any, gamma: Any, epsilon: float = 1e-6) -> tuple[Tensor, Tensor]:
    """Divide the last axes of `x`, of the shape of `gamma`, by their root mean square and scale
    them by `gamma`. Zhang and Sennrich, 2019.

    Returns the result and the reciprocal of the root mean square.

    >>> import mycel as ms
    >>> ms.ops.rms_norm(ms.Tensor([[3.0, 3.0]]), ms.Tensor([1.0, 1.0]), 0.0)[0].tolist()
    [[1.0, 1.0]]
    """
    arguments.instance("rms_norm", "epsilon", epsilon, float)
    value, scale = floating("rms_norm", x), operand("rms_norm", gamma)
    if scale.ndim < 1 or value.shape[value.ndim - scale.ndim :] != scale.shape:
        raise ShapeError(f"rms_norm: the last axes of {value._type} do not have gamma's shape {scale.shape}")
    full = wide(value)
    axes = tuple(builtins.range(value.ndim - scale.ndim, value.ndim))
    total = run(R.reduce_sum, run(E.mul, full, full), axes=axes, keepdims=True)
    inverse = run(E.rsqrt, run(E.div, total, constant_like(whole(full, axes), full)) + epsilon)
    return cast(run(E.mul, run(E.mul, full, inverse), cast(scale, full.dtype)), value.dtype), inverse


@fused
def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Normalise the channels in `num_groups` groups for each example (Wu and He, 2018).

    Args:
        input (Tensor): (N, C, ...).
        num_groups (int): The number of groups, which divides C.
        weight (Tensor | None): The scale of each channel, (C,), or None. Default: None.
        bias (Tensor | None): The shift of each channel, (C,), or None. Default: None.
        eps (float): Added to the variance. Default: 1e-05.

    Returns:
        Tensor: The shape and type of the input.

    Raises:
        ValueError: If the channels do not divide into the groups.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.group_norm(ms.Tensor([[1.0, 3.0]]), 1, eps=0.0).tolist()
        [[-1.0, 1.0]]
    """
    arguments.instance("group_norm", "eps", eps, float)
    x, groups = floating("group_norm", input), size_of("group_norm", num_groups)
    if x.ndim < 2 or groups < 1 or (isinstance(x.shape[1], int) and x.shape[1] % groups):
        raise ShapeError(f"group_norm: the channels (axis 1) of {x._type} do not divide into {groups} groups")
    full = wide(x)
    grouped = reshaped(full, (x.shape[0], groups, product(x.shape[1:]) // groups))
    result = reshaped(_standardized(*_moments(grouped, (2,)), eps), x.shape)
    # MindSpore's takes weights of another type than its input's.
    return cast(_affine("group_norm", result, weight, bias, converts=True), x.dtype)


@fused
def instance_norm(input: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Normalise each channel of each example of `input` (N, C, ...) on its own. Ulyanov et al.,
    2016.

    `weight` scales and `bias` shifts each channel; both may be None. `eps` is added to the
    variance.

    >>> import mycel as ms
    >>> from mycel.ops.normalization import instance_norm
    >>> instance_norm(ms.Tensor([[[1.0, 3.0]]]), eps=0.0).tolist()
    [[[-1.0, 1.0]]]
    """
    x = floating("instance_norm", input)
    if x.ndim < 3:
        raise ShapeError(f"instance_norm: the input must be (N, C, *spatial), not {x._type}")
    result = _standardized(*_moments(wide(x), tuple(builtins.range(2, x.ndim))), eps)
    return cast(_affine("instance_norm", result, weight, bias), x.dtype)


@fused
@rounded_once
def lrn(
    x: Any,
    depth_radius: int = 5,
    bias: float = 1.0,
    alpha: float = 1.0,
    beta: float = 0.5,
    norm_region: str = "ACROSS_CHANNELS",
) -> Tensor:
    """Divide each element by ``(bias + alpha * squares) ** beta`` (Krizhevsky et al., 2012).

    Args:
        x (Tensor): (N, C, H, W).
        depth_radius (int): How far channels count on both sides in the sum of squares. Default: 5.
        bias (float): What is added to the sum. Default: 1.0.
        alpha (float): The factor of the sum. Default: 1.0.
        beta (float): The exponent. Default: 0.5.
        norm_region (str): Has to be "ACROSS_CHANNELS". Default: "ACROSS_CHANNELS".

    Returns:
        Tensor: The shape and type of `x`.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.lrn(ms.ops.ones((1, 1, 1, 1)), bias=3.0).item()
        0.5
    """
    arguments.text("lrn", "norm_region", norm_region)
    arguments.instance("lrn", "bias", bias, float)
    arguments.instance("lrn", "alpha", alpha, float)
    arguments.instance("lrn", "beta", beta, float)
    value = floating("lrn", x)
    if norm_region != "ACROSS_CHANNELS":
        raise ValueError(f"lrn: norm_region must be 'ACROSS_CHANNELS', not {norm_region!r}")
    if value.ndim != 4:
        raise ShapeError(f"lrn: the input must be (N, C, H, W), not {value._type}")
    depth_radius = size_of("lrn", depth_radius)
    for word, number in (("bias", bias), ("alpha", alpha), ("beta", beta)):
        number_of("lrn", word, number)
    n, c = value.shape[:2]
    squares = reshaped(run(E.mul, value, value), (n, 1, c, product(value.shape[2:])))
    total = run(
        window_sum,
        squares,
        window=(2 * depth_radius + 1, 1),
        strides=(1, 1),
        padding=((depth_radius, depth_radius), (0, 0)),
    )
    return value / (reshaped(total, value.shape) * alpha + bias) ** beta


@fused
@rounded_once
def l2_normalize(x: Any, axis: Any = 0, epsilon: float = 1e-4) -> Tensor:
    """Divide the elements by the square root of the sum of squares along `axis`, which is taken to
    be at least `epsilon`.

    >>> import mycel as ms
    >>> from mycel.ops.normalization import l2_normalize
    >>> l2_normalize(ms.Tensor([[0.0, 2.0]]), 1).tolist()
    [[0.0, 1.0]]
    """
    value = floating("l2_normalize", x)
    total = run(R.reduce_sum, run(E.mul, value, value), axes=all_axes("l2_normalize", axis, value.ndim), keepdims=True)
    return run(E.mul, value, run(E.rsqrt, run(E.maximum, total, constant_like(epsilon, total))))


def clip_by_norm(x: Any, max_norm: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Any:
    """Scale a tensor `x`, or a sequence of them, so that the `norm_type`-norm of all elements
    together is at most `max_norm`.

    Args:
        x (Tensor | Sequence[Tensor]): The tensor, or tensors.
        max_norm (float): The largest norm.
        norm_type (float): The order of the norm. Default: 2.0.
        error_if_nonfinite (bool): Whether a norm that is not finite raises RuntimeError, for which
            its value is needed. Default: False.

    Returns:
        Tensor | Sequence[Tensor]: The scaled tensor or tensors, as given.

    Examples:
        >>> import mycel as ms
        >>> [round(v, 4) for v in ms.ops.clip_by_norm(ms.Tensor([3.0, 4.0]), 1.0).tolist()]
        [0.6, 0.8]
    """
    arguments.instance("clip_by_norm", "max_norm", max_norm, (int, float))
    tensors = [operand("clip_by_norm", v) for v in x] if isinstance(x, (tuple, list)) else [operand("clip_by_norm", x)]
    if not tensors:
        raise ValueError("clip_by_norm: takes at least one tensor")
    norms = [reshaped(vector_norm(v, norm_type), (1,)) for v in tensors]
    total = vector_norm(concat(norms, 0), norm_type)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(f"clip_by_norm: the norm of order {norm_type} is {total.item()}, which cannot be clipped")
    scale = max_norm / (total + 1e-6)
    scale = select(scale < 1.0, scale, 1.0)
    clipped = [v * cast(scale, v.dtype) for v in tensors]
    return type(x)(clipped) if isinstance(x, (tuple, list)) else clipped[0]


@fused
def _sum_of_squares(x: Tensor) -> Tensor:
    full = cast(x, D.float64)  # which holds the squares of all numbers of fewer bits
    return run(R.reduce_sum, run(E.mul, full, full), axes=tuple(builtins.range(x.ndim)), keepdims=False)


def clip_by_global_norm(x: Any, clip_norm: Any = 1.0, use_norm: Any | None = None) -> tuple[Tensor, ...]:
    """Scale tensors by ``clip_norm / max(norm, clip_norm)``, where norm is the 2-norm of all their
    elements. Pascanu et al., 2013.

    `use_norm` must be None. Raises ValueError otherwise.

    >>> import mycel as ms
    >>> ms.ops.clip_by_global_norm((ms.Tensor([3.0]), ms.Tensor([4.0])), 5.0)[1].tolist()
    [4.0]
    """
    arguments.instance("clip_by_global_norm", "x", x, (tuple, list, Tensor), "a tuple or a list of tensors")
    if use_norm is not None:
        raise ValueError("clip_by_global_norm: use_norm is not supported; leave it None")
    tensors = [operand("clip_by_global_norm", v) for v in x]
    if not tensors:
        raise ValueError("clip_by_global_norm: takes at least one tensor")
    total: Tensor | None = None
    for v in tensors:
        squares = _sum_of_squares(v)
        total = squares if total is None else total + squares
    assert total is not None
    norm = root(total, 2)
    scale = clip_norm / run(E.maximum, norm, term("clip_by_global_norm", clip_norm, norm.dtype))
    return tuple(v * cast(scale, v.dtype) for v in tensors)
