"""Gradient operations: the cotangents of a forward operation's inputs for that of its result.

A row of the table below has the name of the operation with its parameters, the inputs that the
result is for, and the forward operation as a function of those inputs and of the other
parameters that it names. The parameter that is neither and is in `_COTANGENTS` is the cotangent.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from mycel import ops
from mycel._src.staging.derivatives import vjp
from mycel._src.tensors.core.tensor import Tensor
from mycel.compat.operations.hand_written import layers, shapes
from mycel.mint.nn import functional

__all__ = [
    "GRADIENTS",
    "adaptive_avg_pool2d_grad_ext",
    "adaptive_avg_pool3d_grad_ext",
    "batch_norm_grad_ext",
    "cdist_grad",
    "convolution_grad",
    "convolution_str_grad",
    "cross_entropy_loss_grad",
    "elu_grad_ext",
    "embedding_dense_backward",
    "group_norm_grad",
    "layer_norm_grad_ext",
    "layer_norm_grad_v3",
    "leaky_relu_grad_ext",
    "log_sigmoid_grad",
    "max_pool_grad_with_indices",
    "max_pool_grad_with_mask",
    "moe_token_permute_grad",
    "moe_token_unpermute_grad",
    "nll_loss2d_grad",
    "repeat_interleave_grad",
    "resize_nearest_neighbor_grad",
    "resize_nearest_neighbor_v2_grad",
    "rotary_position_embedding_grad",
    "softmax_backward",
    "trace_v2_grad",
]

_COTANGENTS = ("dout", "dy", "grad", "grad_output", "grads", "input_grad", "y_grad")


def pulled(forward: Callable[..., Any], cotangent: Any, *inputs: Any) -> Any:
    """Return the cotangents of inputs for that of what `forward` gives, a single one by itself."""
    found = vjp(forward, *inputs)[1](cotangent)
    return found[0] if len(inputs) == 1 else found


def _gradient(parameters: str, inputs: str, forward: Callable[..., Any]) -> Callable[..., Any]:
    """Return the gradient operation of a row of the table."""
    names = parameters.split()
    taken = inputs.split()
    others = [n for n in inspect.signature(forward).parameters if n not in taken]
    cotangent = next(n for n in names if n in _COTANGENTS and n not in taken)

    def gradient(*values: Any) -> Any:
        given = dict(zip(names, values))
        fixed = {n: given[n] for n in others}
        kept = [n for n in taken if given[n] is not None]
        absent = {n: None for n in taken if given[n] is None}

        def of_inputs(*operands: Any) -> Any:
            return forward(**dict(zip(kept, operands)), **absent, **fixed)

        return pulled(of_inputs, given[cotangent], *(given[n] for n in kept))

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    vars(gradient)["__signature__"] = inspect.Signature([inspect.Parameter(n, kind) for n in names])
    return gradient


def _resized(kind: Callable[..., Any]) -> Callable[..., Any]:
    """Return the gradient of a resampling, which is linear, so that sizes alone are needed."""

    def gradient(dy: Any, input_size: Any, output_size: Any = None, scales: Any = None, *corners: Any) -> Any:
        return pulled(lambda x: kind(x, output_size, scales, *corners), dy, ops.zeros(tuple(input_size), dy.dtype))

    names = "dy input_size output_size scales".split()
    names += ["align_corners"] * ("align_corners" in inspect.signature(kind).parameters)
    position = inspect.Parameter.POSITIONAL_OR_KEYWORD
    vars(gradient)["__signature__"] = inspect.Signature([inspect.Parameter(n, position) for n in names])
    return gradient


_POOL = "kernel_size stride padding ceil_mode count_include_pad divisor_override"

GRADIENTS: dict[str, Callable[..., Any]] = {
    "avg_pool2d_grad": _gradient(
        f"grad image {_POOL}",
        "image",
        lambda image, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: (
            functional.avg_pool2d(image, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        ),
    ),
    "avg_pool3d_grad_ext": _gradient(
        f"grad input {_POOL}",
        "input",
        lambda input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: (
            functional.avg_pool3d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        ),
    ),
    "binary_cross_entropy_with_logits_backward": _gradient(
        "grad_output input target weight posWeight reduction",
        "input",
        lambda input, target, weight, posWeight, reduction: functional.binary_cross_entropy_with_logits(
            input, target, weight, reduction, posWeight
        ),
    ),
    "gelu_grad_ext": _gradient(
        "grad input approximate", "input", lambda input, approximate: functional.gelu(input, approximate=approximate)
    ),
    "hardtanh_grad": _gradient(
        "dout input min_val max_val",
        "input",
        lambda input, min_val, max_val: functional.hardtanh(input, min_val, max_val),
    ),
    "kl_div_grad": _gradient(
        "grad_output input target reduction log_target",
        "input",
        lambda input, target, reduction, log_target: functional.kl_div(input, target, reduction, log_target),
    ),
    "l1_loss_backward_ext": _gradient(
        "grad_output input target reduction",
        "input",
        lambda input, target, reduction: functional.l1_loss(input, target, reduction),
    ),
    "mish_grad_ext": _gradient("dout x", "x", lambda x: functional.mish(x)),
    "mse_loss_grad_ext": _gradient(
        "dout x target reduction", "x", lambda x, target, reduction: functional.mse_loss(x, target, reduction)
    ),
    "reflection_pad1d_grad": _gradient("grad_output input padding", "input", shapes.reflection_pad1d),
    "reflection_pad2d_grad": _gradient("grad_output input padding", "input", shapes.reflection_pad2d),
    "reflection_pad3d_grad": _gradient("grad_output input padding", "input", shapes.reflection_pad3d),
    "replication_pad1d_grad": _gradient("grad_output input padding", "input", shapes.replication_pad1d),
    "replication_pad2d_grad": _gradient("grad_output input padding", "input", shapes.replication_pad2d),
    "replication_pad3d_grad": _gradient("grad_output input padding", "input", shapes.replication_pad3d),
    "softplus_grad_ext": _gradient(
        "dout x beta threshold", "x", lambda x, beta, threshold: functional.softplus(x, beta, threshold)
    ),
    "swiglu_grad": _gradient("grad_output input dim", "input", lambda input, dim: ops.swiglu(input, dim)),
    "threshold_grad": _gradient(
        "grad_output input threshold", "input", lambda input, threshold: functional.threshold(input, threshold, 0.0)
    ),
    "upsample_bicubic2d_grad": _resized(layers.upsample_bicubic2d),
    "upsample_bilinear2d_grad": _resized(layers.upsample_bilinear2d),
    "upsample_linear1d_grad": _resized(layers.upsample_linear1d),
    "upsample_nearest1d_grad": _resized(layers.upsample_nearest1d),
    "upsample_nearest2d_grad": _resized(layers.upsample_nearest2d),
}


def adaptive_avg_pool2d_grad_ext(grad_output: Any, x: Any) -> Tensor:
    """Return the cotangent of `x` for that of its means over parts of images."""
    return pulled(lambda v: ops.adaptive_avg_pool2d(v, grad_output.shape[-2:]), grad_output, x)


def adaptive_avg_pool3d_grad_ext(input_grad: Any, input: Any) -> Tensor:
    """Return the cotangent of `input` for that of its means over parts of volumes."""
    return pulled(lambda v: ops.adaptive_avg_pool3d(v, input_grad.shape[-3:]), input_grad, input)


def elu_grad_ext(dout: Any, x_or_out: Any, alpha: float = 1.0, is_result: bool = False) -> Tensor:
    """Return the cotangent of the input of `elu` with `alpha`, given `x_or_out`, that input, or
    with `is_result` what `elu` gave, and `dout`, the cotangent of that.
    """
    if is_result:
        return ops.where(x_or_out > 0, dout, dout * (x_or_out + alpha))
    return pulled(lambda x: functional.elu(x, alpha), dout, x_or_out)


def leaky_relu_grad_ext(dy: Any, input: Any, negative_slope: float = 0.01, is_result: bool = False) -> Tensor:
    """Return the cotangent of the input of a leaky ReLU of `negative_slope`, given that `input`,
    or with `is_result` what it gave, which has the same sign. `dy` is the cotangent of that.
    """
    return ops.where(input > 0, dy, dy * negative_slope)


def log_sigmoid_grad(dy: Any, input: Any, buffer: Any) -> Tensor:
    """Return the cotangent of the input of the logarithm of the sigmoid; `buffer` has no effect."""
    return dy * ops.sigmoid(-input)


def softmax_backward(dout: Any, out: Any, dim: int = -1) -> Tensor:
    """Return the cotangent of the input of a softmax along `dim`, given its result `out`."""
    return out * (dout - (dout * out).sum(dim, keepdims=True))


def trace_v2_grad(dout: Any, shape: Any, offset: int = 0, axis1: int = 1, axis2: int = 0) -> Tensor:
    """Return the cotangent of the operand of a trace: `dout` along a diagonal of zeros of
    `shape`.

    `offset`, `axis1` and `axis2` say which diagonal.
    """
    sizes = tuple(int(v) for v in (shape.asnumpy() if isinstance(shape, Tensor) else shape))
    return pulled(lambda x: ops.diagonal(x, offset, axis1, axis2).sum(-1), dout, ops.zeros(sizes, dout.dtype))


def embedding_dense_backward(
    grad: Any, indices: Any, num_weights: int, padding_idx: Any = None, scale_grad_by_freq: bool = False
) -> Tensor:
    """Return the cotangent of the `num_weights` rows of a table of which `indices` were taken.

    `grad` is the cotangent of the rows taken. `padding_idx` is a row that gets none;
    `scale_grad_by_freq` divides by how often a row was taken.
    """
    flat, rows = indices.reshape(-1), grad.reshape((-1, grad.shape[-1]))
    if scale_grad_by_freq:
        counts = ops.unsorted_segment_sum(ops.ones(flat.shape, rows.dtype), flat, num_weights)
        rows = rows / ops.gather(counts, flat, 0).reshape((-1, 1))
    if padding_idx is not None and padding_idx >= 0:
        rows = ops.where((flat == padding_idx).reshape((-1, 1)), ops.zeros_like(rows), rows)
    return ops.unsorted_segment_sum(rows, flat, num_weights)


def cdist_grad(grad: Any, input_x: Any, input_y: Any, cdist: Any, p: float = 2.0) -> Tensor:
    """Return the cotangent of `input_x` for `grad`, that of the distances `cdist` of order `p`
    from its rows to those of `input_y`.
    """
    return pulled(lambda x: ops.cdist(x, input_y, p), grad, input_x)


def layer_norm_grad_ext(
    dy: Any,
    x: Any,
    normalized_shape: Any,
    mean: Any,
    variance: Any,
    gamma: Any,
    beta: Any,
    output_mask: Any = (1, 1, 1),
) -> Any:
    """Return the cotangents of the input, `gamma` and `beta` of a normalisation of layers.

    `dy` is the cotangent of its result, `x` its input, `normalized_shape` the shape of a layer,
    `mean` its means and `variance` its inverse deviations; `output_mask` says which are wanted,
    and the others are None.
    """
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    lead = tuple(range(x.ndim - len(normalized_shape)))
    centred, scaled = (x - mean) * variance, dy * gamma
    spread = (scaled * centred).mean(axes, keep_dims=True)
    dx = variance * (scaled - scaled.mean(axes, keep_dims=True) - centred * spread)
    found = (dx, (dy * centred).sum(lead), dy.sum(lead))
    return tuple(v if wanted else None for v, wanted in zip(found, output_mask))


def max_pool_grad_with_indices(
    x: Any,
    grad: Any,
    argmax: Any,
    kernel_size: Any,
    strides: Any = None,
    pads: Any = 0,
    dilation: Any = (1, 1),
    ceil_mode: bool = False,
    argmax_type: Any = ...,
) -> Tensor:
    """Return the cotangent of `x` for that of what pooling took at the places `argmax`.

    `grad` is the cotangent of the result; `kernel_size`, `strides`, `pads`, `dilation`,
    `ceil_mode` and `argmax_type` have no effect, as the places say it all.
    """
    flat = (*x.shape[:-2], -1)
    empty = ops.zeros_like(x).reshape(flat)
    found = ops.tensor_scatter_elements(empty, argmax.reshape(flat), grad.reshape(flat), -1, "add")
    return found.reshape(x.shape)


def max_pool_grad_with_mask(
    x: Any,
    grad: Any,
    mask: Any,
    kernel_size: Any,
    strides: Any = None,
    pads: Any = 0,
    dilation: Any = (1, 1),
    ceil_mode: bool = False,
    argmax_type: Any = ...,
) -> Tensor:
    """Return `max_pool_grad_with_indices` for the `mask` of `max_pool_with_mask`.

    `x`, `grad`, `kernel_size`, `strides`, `pads`, `dilation`, `ceil_mode` and `argmax_type` are
    those of it.
    """
    return max_pool_grad_with_indices(x, grad, mask, kernel_size)


def nll_loss2d_grad(
    loss_grad: Any, input: Any, target: Any, weight: Any, reduction: str, ignore_index: int, total_weight: Any
) -> Tensor:
    """Return the cotangent of the input of `nll_loss2d` for `loss_grad`, that of its loss.

    `input`, `target`, `weight`, `reduction` and `ignore_index` are those of it; `total_weight`
    is its second result.
    """
    return pulled(lambda x: functional.nll_loss(x, target, weight, ignore_index, reduction), loss_grad, input)


def _resized_back(grads: Any, size: Any, align_corners: bool, half_pixel_centers: bool) -> Tensor:
    sizes = tuple(int(v) for v in (size.asnumpy() if isinstance(size, Tensor) else size))
    resize = ops.ResizeNearestNeighborV2(align_corners, half_pixel_centers)
    start = ops.zeros((*grads.shape[:2], *sizes), grads.dtype)
    return pulled(lambda x: resize(x, Tensor(list(grads.shape[2:]), "int32")), grads, start)


def resize_nearest_neighbor_grad(
    grads: Any, size: Any, align_corners: bool = False, half_pixel_centers: bool = False
) -> Tensor:
    """Return the cotangent of images of `size` for that of the resized ones, by nearest
    elements.

    `grads` is the latter; `align_corners` and `half_pixel_centers` say how places are found.
    """
    return _resized_back(grads, size, align_corners, half_pixel_centers)


def resize_nearest_neighbor_v2_grad(
    grads: Any, size: Any, align_corners: bool = False, half_pixel_centers: bool = False
) -> Tensor:
    """Return `resize_nearest_neighbor_grad`, with its `grads`, `size`, `align_corners` and
    `half_pixel_centers`.
    """
    return _resized_back(grads, size, align_corners, half_pixel_centers)


def convolution_grad(
    dout: Any,
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = (1, 1),
    transposed: bool = False,
    output_padding: Any = 0,
    groups: int = 1,
    output_mask: Any = (),
) -> Any:
    """Return the cotangents of `input`, `weight` and `bias` of a convolution.

    `dout` is the cotangent of its result; `stride`, `padding`, `dilation`, `transposed`,
    `output_padding` and `groups` are those of `layers.convolution`; `output_mask` says which are
    wanted, and the others are None.
    """
    mask = tuple(output_mask) or (True, True, True)
    rest = (stride, padding, dilation, transposed, output_padding, groups)
    by_input, by_weight = pulled(lambda x, w: layers.convolution(x, w, None, *rest), dout, input, weight)
    by_bias = dout.sum(tuple(a for a in range(dout.ndim) if a != 1))
    return tuple(v if wanted else None for v, wanted in zip((by_input, by_weight, by_bias), mask))


def convolution_str_grad(
    dout: Any,
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: str = "valid",
    dilation: Any = 1,
    transposed: bool = False,
    output_padding: Any = 0,
    groups: int = 1,
    output_mask: Any = (),
) -> Any:
    """Return `convolution_grad` with `padding` "valid" or "same".

    `dout`, `input`, `weight`, `bias`, `stride`, `dilation`, `transposed`, `output_padding`,
    `groups` and `output_mask` are those of it.
    """
    return convolution_grad(
        dout, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, output_mask
    )


def batch_norm_grad_ext(
    dout: Any,
    input: Any,
    weight: Any = None,
    running_mean: Any = None,
    running_var: Any = None,
    saved_mean: Any = None,
    saved_rstd: Any = None,
    output_mask: Any = (1, 1, 1),
    training: bool = False,
    eps: float = 1e-5,
) -> Any:
    """Return the cotangents of the input, weight and bias of a normalised batch.

    `dout` is the cotangent of its result, `saved_mean` and `saved_rstd` what it was normalised
    with in `training`; otherwise `running_mean` and `running_var`, with `eps`. `output_mask`
    says which are wanted, and the others are None.
    """
    axes, shape = tuple(a for a in range(input.ndim) if a != 1), (1, -1, *[1] * (input.ndim - 2))
    mean, inverse = (saved_mean, saved_rstd) if training else (running_mean, ops.rsqrt(running_var + eps))
    inverse = inverse.reshape(shape)
    centred = (input - mean.reshape(shape)) * inverse
    scale = inverse if weight is None else inverse * weight.reshape(shape)
    summed, along = dout.mean(axes, keep_dims=True), (dout * centred).mean(axes, keep_dims=True)
    dx = scale * (dout - summed - centred * along) if training else scale * dout
    found = (dx, (dout * centred).sum(axes), dout.sum(axes))
    return tuple(v if wanted else None for v, wanted in zip(found, output_mask))


def layer_norm_grad_v3(
    x: Any, dy: Any, variance: Any, mean: Any, gamma: Any, begin_norm_axis: int = 1, begin_params_axis: int = 1
) -> Any:
    """Return the cotangents of the input, `gamma` and beta of a normalisation of layers.

    `x` is its input, `dy` the cotangent of its result, `variance` its inverse deviations and
    `mean` its means; layers begin at `begin_norm_axis`, their parameters at `begin_params_axis`.
    """
    shape = x.shape[begin_norm_axis % x.ndim :]
    return layer_norm_grad_ext(dy, x, shape, mean, variance, gamma, None)


def group_norm_grad(
    dy: Any,
    x: Any,
    mean: Any,
    rstd: Any,
    gamma_opt: Any,
    num_groups: int,
    dx_is_require: bool = True,
    dgamma_is_require: bool = True,
    dbeta_is_require: bool = True,
) -> Any:
    """Return the cotangents of the input, weight and bias of a normalisation of `num_groups`
    groups.

    `dy` is the cotangent of its result, `x` its input, `gamma_opt` its weight, and `mean` and
    `rstd` what it was normalised with. `dx_is_require`, `dgamma_is_require` and
    `dbeta_is_require` say which are wanted, and the others are None.
    """
    axes, shape = tuple(a for a in range(x.ndim) if a != 1), (1, -1, *[1] * (x.ndim - 2))
    groups = (x.shape[0], num_groups, -1)
    middle, inverse = mean.reshape((*groups[:2], 1)), rstd.reshape((*groups[:2], 1))
    centred = (x.reshape(groups) - middle) * inverse
    scaled = (dy if gamma_opt is None else dy * gamma_opt.reshape(shape)).reshape(groups)
    along = (scaled * centred).mean(-1, keep_dims=True)
    dx = (inverse * (scaled - scaled.mean(-1, keep_dims=True) - centred * along)).reshape(x.shape)
    found = (dx, (dy * centred.reshape(x.shape)).sum(axes), dy.sum(axes))
    wanted = (dx_is_require, dgamma_is_require, dbeta_is_require)
    return tuple(v if kept else None for v, kept in zip(found, wanted))


def cross_entropy_loss_grad(
    grad_loss: Any,
    log_prob: Any,
    target: Any,
    weight: Any = None,
    grad_zloss: Any = None,
    lse_for_zloss: Any = None,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    lse_square_scale_for_zloss: float = 0.0,
) -> Tensor:
    """Return the cotangent of the input of `cross_entropy_loss` for `grad_loss`, that of its
    loss.

    `log_prob` is its second result; `target`, `weight`, `reduction`, `ignore_index` and
    `label_smoothing` are those of it. `grad_zloss`, `lse_for_zloss` and
    `lse_square_scale_for_zloss` belong to the z-loss, which is zero.
    """
    rest = (target, weight, ignore_index, reduction, label_smoothing)
    return pulled(lambda x: ops.cross_entropy(x, *rest), grad_loss, log_prob)


def repeat_interleave_grad(input: Any, repeats: Any, dim: int) -> Tensor:
    """Return the sums of the elements of `input` that came of one, `repeats` of each along
    `dim`.
    """
    counts = [int(v) for v in repeats.reshape(-1).asnumpy()]
    owners = Tensor([k for k, count in enumerate(counts) for _ in range(count)], "int32")
    moved = ops.swapaxes(input, dim, 0)
    return ops.swapaxes(ops.unsorted_segment_sum(moved, owners, len(counts)), dim, 0)


def rotary_position_embedding_grad(dy: Any, cos: Any, sin: Any, dx: Any = None, mode: int = 0) -> Any:
    """Return the cotangents of the input, `cos` and `sin` of a rotation in `mode`.

    `dy` is the cotangent of its result and `dx` its input; without it those of `cos` and `sin`
    are zeros.
    """

    def turned(x: Any, c: Any, s: Any) -> Any:
        return ops.rotary_position_embedding(x, c, s, mode)

    by_input, by_cos, by_sin = pulled(turned, dy, ops.zeros_like(dy) if dx is None else dx, cos, sin)
    return by_input, by_cos, by_sin


def moe_token_permute_grad(
    permuted_tokens_grad: Any, sorted_indices: Any, num_topk: int = 1, padded_mode: bool = False
) -> Tensor:
    """Return the cotangent of tokens for `permuted_tokens_grad`, that of the permuted ones: the
    sum over the `num_topk` places of each, which `sorted_indices` has. `padded_mode` must be
    False.
    """
    if padded_mode:
        raise ValueError("MoeTokenPermuteGrad: padded_mode must be False")
    taken = ops.moe_token_unpermute(permuted_tokens_grad, sorted_indices)
    return taken.reshape((-1, num_topk, taken.shape[-1])).sum(1)


def moe_token_unpermute_grad(
    permuted_tokens: Any,
    unpermuted_tokens_grad: Any,
    sorted_indices: Any,
    probs: Any = None,
    padded_mode: bool = False,
    restore_shape: Any = None,
) -> Any:
    """Return the cotangents of permuted tokens and of `probs` (None without them) for that of
    their inverse permutation, `unpermuted_tokens_grad`.

    `permuted_tokens`, `sorted_indices`, `padded_mode` and `restore_shape` are those of
    `ops.moe_token_unpermute`.
    """
    rest = (padded_mode, restore_shape)
    if probs is None:
        forward = lambda x: ops.moe_token_unpermute(x, sorted_indices, None, *rest)
        return pulled(forward, unpermuted_tokens_grad, permuted_tokens), None
    return pulled(
        lambda x, p: ops.moe_token_unpermute(x, sorted_indices, p, *rest),
        unpermuted_tokens_grad,
        permuted_tokens,
        probs,
    )
