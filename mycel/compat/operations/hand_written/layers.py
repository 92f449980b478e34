"""Convolutions, pooling, normalisation, losses, resampling and spectral transforms with the
parameters and the further results of MindSpore's kernels.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycel import mint, ops
from mycel._src.tensors.core.tensor import Tensor
from mycel.mint.nn import functional
from mycel.scipy import linalg

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_max_pool1d",
    "func_max_pool2d",
    "add_layer_norm_v2",
    "batch_norm_ext",
    "convolution",
    "convolution_str",
    "correlate",
    "cross_entropy_loss",
    "dct",
    "dctn",
    "fft_ortho",
    "fft_shape_copy",
    "idct",
    "flash_attention_score",
    "group_norm",
    "idctn",
    "layer_norm_ext",
    "layer_norm_v3",
    "linalg_qr",
    "linalg_vector_norm",
    "log_sigmoid",
    "lp_norm_v2",
    "lstsq_v2",
    "max_pool_with_indices",
    "max_pool_with_mask",
    "nll_loss2d",
    "solve_triangular",
    "upsample_bicubic2d",
    "upsample_bilinear2d",
    "upsample_linear1d",
    "upsample_nearest1d",
    "upsample_nearest2d",
]


def _convolved(input: Any, weight: Any, bias: Any, *rest: Any) -> Tensor:
    kinds = {3: functional.conv1d, 4: functional.conv2d, 5: functional.conv3d}
    return kinds[weight.ndim](input, weight, bias, *rest)


def convolution(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    transposed: bool = False,
    output_padding: Any = 0,
    groups: int = 1,
) -> Tensor:
    """Return the convolution of lines, images or volumes, by the rank of `weight`, plus `bias`.

    `input`, `stride`, `padding`, `dilation` and `groups` are those of `mint`'s convolutions.
    With `transposed` it is the transposed one of images, and `output_padding` widens the result.
    """
    if transposed:
        return functional.conv_transpose2d(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return _convolved(input, weight, bias, stride, padding, dilation, groups)


def convolution_str(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: str = "valid",
    dilation: Any = 1,
    transposed: bool = False,
    output_padding: Any = 0,
    groups: int = 1,
) -> Tensor:
    """Return `convolution` with `padding` "valid" or "same".

    `input`, `weight`, `bias`, `stride`, `dilation`, `transposed`, `output_padding` and `groups`
    are those of it.
    """
    return convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def adaptive_avg_pool1d(input: Any, output_size: Any) -> Tensor:
    """Return the means of parts of lines."""
    return functional.adaptive_avg_pool1d(input, output_size)


def adaptive_max_pool1d(input: Any, output_size: Any) -> tuple[Tensor, Tensor]:
    """Return the largest elements of parts of lines, and their places."""
    size = output_size[0] if isinstance(output_size, (tuple, list)) else output_size
    found: tuple[Tensor, Tensor] = functional.adaptive_max_pool1d(input, size, True)
    return found


def func_max_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = (1, 1),
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the largest elements under a window, and their places, whatever `return_indices` is.

    `input`, `kernel_size`, `stride`, `padding`, `dilation` and `ceil_mode` are those of
    `mint.nn.functional.max_pool2d`.
    """
    found: tuple[Tensor, Tensor] = _pooled(input, kernel_size, stride, padding, dilation, ceil_mode)
    return found


def _pooled(x: Any, kernel_size: Any, strides: Any, pads: Any, dilation: Any, ceil_mode: bool) -> Any:
    return functional.max_pool2d(x, kernel_size, strides, pads, dilation, ceil_mode, True)


def max_pool_with_indices(
    x: Any,
    kernel_size: Any,
    strides: Any = None,
    pads: Any = 0,
    dilation: Any = (1, 1),
    ceil_mode: bool = False,
    argmax_type: Any = ...,
) -> tuple[Tensor, Tensor]:
    """Return the largest elements under a window, and their places in the flat image.

    `x`, `kernel_size`, `strides`, `pads`, `dilation` and `ceil_mode` are those of
    `mint.nn.functional.max_pool2d`; `argmax_type` is the type of the places.
    """
    found, places = _pooled(x, kernel_size, strides, pads, dilation, ceil_mode)
    return found, places if argmax_type is ... else places.astype(argmax_type)


def max_pool_with_mask(
    x: Any,
    kernel_size: Any,
    strides: Any = None,
    pads: Any = 0,
    dilation: Any = (1, 1),
    ceil_mode: bool = False,
    argmax_type: Any = ...,
) -> tuple[Tensor, Tensor]:
    """Return the largest elements under a window, and what its gradient needs: here their
    places.

    `x`, `kernel_size`, `strides`, `pads`, `dilation`, `ceil_mode` and `argmax_type` are those of
    `max_pool_with_indices`.
    """
    return max_pool_with_indices(x, kernel_size, strides, pads, dilation, ceil_mode, argmax_type)


def batch_norm_ext(
    input: Any,
    weight: Any = None,
    bias: Any = None,
    running_mean: Any = None,
    runnning_var: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    epsilon: float = 1e-5,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the normalised batch, and the mean and inverse deviation of each channel that it
    was normalised with.

    `input`, `weight`, `bias`, `running_mean`, `runnning_var`, `training` and `momentum` are
    those of `mint.nn.functional.batch_norm`, `epsilon` its `eps`.
    """
    axes = tuple(a for a in range(input.ndim) if a != 1)
    if training or running_mean is None:
        mean = input.mean(axes)
        inverse = ops.rsqrt(ops.var(input, axes, 0) + epsilon)
    else:
        mean, inverse = running_mean, ops.rsqrt(runnning_var + epsilon)
    mean, inverse = ops.stop_gradient(mean) + 0, ops.stop_gradient(inverse) + 0
    found = functional.batch_norm(input, running_mean, runnning_var, weight, bias, training, momentum, epsilon)
    return found, mean, inverse


def _statistics(layers: Any, eps: float) -> tuple[Tensor, Tensor]:
    """Return the means and the inverse deviations of the rows of a matrix."""
    mean = layers.mean(-1, keep_dims=True)
    return mean, ops.rsqrt(ops.square(layers - mean).mean(-1, keep_dims=True) + eps)


def layer_norm_ext(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor]:
    """Return layers normalised, their means, and their inverse deviations.

    `input`, `normalized_shape`, `weight`, `bias` and `eps` are those of
    `mint.nn.functional.layer_norm`.
    """
    rank = len(normalized_shape)
    lead = input.shape[: input.ndim - rank]
    mean, inverse = _statistics(input.reshape((*lead, -1)), eps)
    shape = (*lead, *[1] * rank)
    found = functional.layer_norm(input, normalized_shape, weight, bias, eps)
    return found, mean.reshape(shape), inverse.reshape(shape)


def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor]:
    """Return groups of channels normalised, their means, and their inverse deviations.

    `input`, `num_groups`, `weight`, `bias` and `eps` are those of
    `mint.nn.functional.group_norm`.
    """
    shape = (input.shape[0], num_groups)
    mean, inverse = _statistics(input.reshape((*shape, -1)), eps)
    found = functional.group_norm(input, num_groups, weight, bias, eps)
    return found, mean.reshape(shape), inverse.reshape(shape)


def log_sigmoid(input: Any) -> tuple[Tensor, Tensor]:
    """Return the logarithm of the sigmoid, and the exponential of minus the magnitude."""
    return functional.logsigmoid(input), ops.exp(-ops.abs(input))


def flash_attention_score(
    query: Any,
    key: Any,
    value: Any,
    real_shift: Any = None,
    drop_mask: Any = None,
    padding_mask: Any = None,
    attn_mask: Any = None,
    prefix: Any = None,
    actual_seq_qlen: Any = None,
    actual_seq_kvlen: Any = None,
    head_num: int = 1,
    keep_prob: float = 1.0,
    scale_value: float = 1.0,
    pre_tokens: int = 2147483647,
    next_tokens: int = 2147483647,
    inner_precise: int = 0,
    input_layout: str = "BSH",
    sparse_mode: int = 0,
) -> tuple[None, None, None, Tensor]:
    """Return the attention as the last of four results; the others, which the gradient kernel of
    Ascend devices wants, are None.

    `query`, `key`, `value`, `real_shift`, `drop_mask`, `padding_mask`, `attn_mask`, `prefix`,
    `actual_seq_qlen`, `actual_seq_kvlen`, `head_num`, `keep_prob`, `pre_tokens`, `next_tokens`,
    `inner_precise`, `input_layout` and `sparse_mode` are those of `ops.flash_attention_score`,
    and `scale_value` is its `scalar_value`.
    """
    masks = (real_shift, drop_mask, padding_mask, attn_mask, prefix, actual_seq_qlen, actual_seq_kvlen)
    rest = (keep_prob, scale_value, pre_tokens, next_tokens, inner_precise, input_layout, sparse_mode)
    return None, None, None, ops.flash_attention_score(query, key, value, head_num, *masks, *rest)


def layer_norm_v3(
    input_x: Any,
    gamma: Any,
    beta: Any,
    begin_norm_axis: int = 1,
    begin_params_axis: int = 1,
    epsilon: float = 1e-7,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return `input_x` normalised, times `gamma` plus `beta`, its means and inverse deviations.

    `begin_norm_axis`, `begin_params_axis` and `epsilon` are those of `ops.LayerNorm`.
    """
    found, mean, variance = ops.LayerNorm(begin_norm_axis, begin_params_axis, epsilon)(input_x, gamma, beta)
    return found, mean, ops.rsqrt(variance + epsilon)


def nll_loss2d(
    input: Any, target: Any, weight: Any, reduction: str = "mean", ignore_index: int = -100
) -> tuple[Tensor, Tensor]:
    """Return the negative log-likelihood of images of labels, and the weight of all labels.

    `input`, `target`, `weight`, `reduction` and `ignore_index` are those of `ops.nll_loss`.
    """
    taken = ops.gather(weight, ops.clamp(target, 0, weight.shape[0] - 1), 0)
    total = ops.where(target != ignore_index, taken, ops.zeros_like(taken)).sum()
    return functional.nll_loss(input, target, weight, ignore_index, reduction), total


def cross_entropy_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    lse_square_scale_for_zloss: float = 0.0,
    return_zloss: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the loss, the logarithms of the probabilities, and the two results of the z-loss,
    which is zero here.

    `input`, `target`, `weight`, `reduction`, `ignore_index` and `label_smoothing` are those of
    `ops.cross_entropy`; `lse_square_scale_for_zloss` must be 0 and `return_zloss` False.
    """
    if lse_square_scale_for_zloss or return_zloss:
        raise ValueError("CrossEntropyLoss: the z-loss is not supported; add its square to the loss")
    loss = ops.cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)
    return loss, ops.log_softmax(input, -1), ops.zeros((1,), input.dtype), ops.logsumexp(input, -1)


def _resized(x: Any, output_size: Any, scales: Any, mode: str, align_corners: bool | None) -> Tensor:
    size = None if output_size is None else tuple(output_size)
    factors = None if scales is None else tuple(scales)
    return functional.interpolate(x, size, factors, mode, align_corners)


def upsample_nearest1d(x: Any, output_size: Any = None, scales: Any = None) -> Tensor:
    """Return lines of `output_size`, or `scales` times as long, by the nearest elements."""
    return _resized(x, output_size, scales, "nearest", None)


def upsample_nearest2d(x: Any, output_size: Any = None, scales: Any = None) -> Tensor:
    """Return images of `output_size`, or `scales` times as large, by the nearest elements."""
    return _resized(x, output_size, scales, "nearest", None)


def upsample_linear1d(x: Any, output_size: Any = None, scales: Any = None, align_corners: bool = False) -> Tensor:
    """Return lines `x` of `output_size`, or `scales` times as long, linear between elements.

    With `align_corners` ends lie on ends.
    """
    return _resized(x, output_size, scales, "linear", align_corners)


def upsample_bilinear2d(x: Any, output_size: Any = None, scales: Any = None, align_corners: bool = False) -> Tensor:
    """Return images `x` of `output_size`, or `scales` times as large, bilinear between elements.

    With `align_corners` corners lie on corners.
    """
    return _resized(x, output_size, scales, "bilinear", align_corners)


def upsample_bicubic2d(x: Any, output_size: Any = None, scales: Any = None, align_corners: bool = False) -> Tensor:
    """Return images `x` of `output_size`, or `scales` times as large, bicubic between elements.

    With `align_corners` corners lie on corners.
    """
    return _resized(x, output_size, scales, "bicubic", align_corners)


def linalg_qr(A: Any, mode: str = "reduced") -> Any:
    """Return the factors Q and R of a matrix."""
    return mint.linalg.qr(A, mode)


def linalg_vector_norm(x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """Return the norm of order `ord` of the vectors of `x` along `dim`; `keepdim` and `dtype`
    are those of `mint.linalg.vector_norm`.
    """
    return mint.linalg.vector_norm(x, ord, dim, keepdim, dtype=dtype)


def lp_norm_v2(input: Any, p: Any = 2, dim: Any = None, keepdim: bool = False, epsilon: float = 1e-12) -> Tensor:
    """Return the norm of order `p` of `input` along `dim`; `keepdim` keeps it with size 1, and
    `epsilon` has no effect.
    """
    return mint.linalg.vector_norm(input, p, dim, keepdim)


def solve_triangular(a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False) -> Tensor:
    """Return the solution of a triangular system, or by `trans` of its transpose.

    `a` is the matrix, `b` the right side; `lower` and `unit_diagonal` say what `a` is.
    """
    return linalg.solve_triangular(a, b, trans, lower, unit_diagonal)


def correlate(a: Any, v: Any, pad_mode: str = "valid") -> Tensor:
    """Return the correlation of two lines; `pad_mode` is "valid", "same" or "full"."""
    count, taps = a.shape[0], v.shape[0]
    if count < taps:
        return ops.flip(correlate(v, a, pad_mode), (0,))
    left, right = {"valid": (0, 0), "full": (taps - 1, taps - 1), "same": (taps // 2, (taps - 1) // 2)}[pad_mode]
    line = ops.pad(a.reshape((1, 1, -1)), [left, right])
    return functional.conv1d(line, v.reshape((1, 1, -1))).reshape(-1)


def _cosines(size: int, inverse: bool) -> np.ndarray:
    """Return the matrix that a line is multiplied by from the right for its cosine transform."""
    places, waves = np.arange(size)[:, None], np.arange(size)[None, :]
    table = 2 * np.cos(np.pi * (2 * places + 1) * waves / (2 * size))
    table *= np.sqrt(np.where(waves == 0, 1 / (4 * size), 1 / (2 * size)))
    return table.T if inverse else table


def _transformed(x: Any, size: int | None, axis: int, inverse: bool) -> Tensor:
    x = x if x.is_floating_point() else x.astype("float32")
    count = x.shape[axis] if size is None else int(size)
    moved = ops.swapaxes(x, axis, -1)
    if count != moved.shape[-1]:
        moved = moved[..., :count] if count < moved.shape[-1] else ops.pad(moved, [0, count - moved.shape[-1]])
    table = Tensor(_cosines(count, inverse)).astype(x.dtype)
    return ops.swapaxes(ops.matmul(moved, table), axis, -1)


def dct(x: Any, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None) -> Tensor:
    """Return the orthogonal cosine transform of type 2 of `x` along `axis`, cut or filled to `n`
    elements.

    Raises ValueError for another `type`, and for a `norm` that is not "ortho".
    """
    _orthogonal("DCT", type, norm)
    return _transformed(x, n, axis, False)


def idct(x: Any, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None) -> Tensor:
    """Return the inverse of `dct`, with its `x`, `type`, `n`, `axis` and `norm`."""
    _orthogonal("IDCT", type, norm)
    return _transformed(x, n, axis, True)


def dctn(x: Any, type: int = 2, s: Any = None, axes: Any = None, norm: Any = None) -> Tensor:
    """Return `dct` of `x` along several axes, `s` elements of each; `type` and `norm` are those
    of it.
    """
    _orthogonal("DCTN", type, norm)
    return _along(x, s, axes, False)


def idctn(x: Any, type: int = 2, s: Any = None, axes: Any = None, norm: Any = None) -> Tensor:
    """Return `idct` of `x` along several axes, `s` elements of each; `type` and `norm` are those
    of it.
    """
    _orthogonal("IDCTN", type, norm)
    return _along(x, s, axes, True)


def _orthogonal(name: str, type: int, norm: Any) -> None:
    if type != 2:
        raise ValueError(f"{name}: type must be 2, not {type!r}")
    if norm not in (None, "ortho", "ORTHO"):
        raise ValueError(f"{name}: norm must be 'ortho' or None, which means that too, not {norm!r}")


def _along(x: Any, sizes: Any, axes: Any, inverse: bool) -> Tensor:
    if axes is None:
        axes = range(x.ndim) if sizes is None else range(x.ndim - len(sizes), x.ndim)
    for number, axis in enumerate(axes):
        x = _transformed(x, None if sizes is None else sizes[number], axis, inverse)
    return x


def fft_ortho(input: Any, axes: Any = None, forward: bool = True) -> Tensor:
    """Return `input` scaled as an orthogonal cosine transform along `axes` is: forward, or back."""
    for axis in axes or ():
        count = input.shape[axis]
        shape = [1] * input.ndim
        shape[axis] = count
        scales = np.full(count, math.sqrt(1 / (2 * count)))
        scales[0] = math.sqrt(1 / (4 * count))
        table = Tensor(scales if forward else 1 / scales).astype(input.dtype).reshape(tuple(shape))
        input = input * table
    return input


def fft_shape_copy(dout: Any, shape: Any) -> Tensor:
    """Return `dout` cut, or filled with zeros, to `shape`."""
    for axis, size in enumerate(shape):
        have = dout.shape[axis]
        if size < have:
            dout = ops.narrow(dout, axis, 0, size)
        elif size > have:
            missing = [*dout.shape[:axis], size - have, *dout.shape[axis + 1 :]]
            dout = ops.cat([dout, ops.zeros(tuple(missing), dout.dtype)], axis)
    return dout


def add_layer_norm_v2(
    x1: Any, x2: Any, gamma: Any, beta: Any, epsilon: float = 1e-5, additionalOut: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the sum of `x1` and `x2` normalised, times `gamma` plus `beta`, its means, its
    inverse deviations, and the sum, all of them whatever `additionalOut` is; `epsilon` is added
    to variances.
    """
    return ops.add_layer_norm(x1, x2, gamma, beta, epsilon, additionalOut)


def lstsq_v2(A: Any, B: Any, driver: Any = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the solution of least squares of ``A x = B`` by the pseudo-inverse of `A`, its rank
    between two empty tensors of residuals and singular values; `driver` has no effect.
    """
    values = ops.svd(A, compute_uv=False)
    rank = (values > values[..., :1] * 1.1920929e-07 * max(A.shape[-2:])).sum(-1)
    solution = ops.matmul(ops.pinv(A), B)
    return solution, ops.zeros((0,), A.dtype), rank, ops.zeros((0,), A.dtype)
