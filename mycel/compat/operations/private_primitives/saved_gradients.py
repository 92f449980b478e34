"""Gradient primitives that go by what the forward operation gave: its result, positions, means.

They cannot be the cotangents of the forward operation, as its operand is not among their inputs.
Each is the formula of its derivative. `p` is the primitive, with its parameters as attributes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel import ops
from mycel._src.foundation.errors import Unsupported
from mycel._src.staging.derivatives import vjp
from mycel._src.tensors.core.tensor import Tensor
from mycel.communication import get_group_size
from mycel.compat.operations.private_primitives.gradients import cotangents
from mycel.ops._operands import shape_of

__all__ = ["SAVED"]

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def _scattered(dy: Any, positions: Any, x: Any, axes: int) -> Any:
    """Return zeros like `x` with `dy` added at positions within the last `axes` axes."""
    lead = x.shape[: x.ndim - axes]
    rows, places = dy.reshape((*lead, -1)), positions.reshape((*lead, -1))
    empty = ops.zeros_like(x).reshape((*lead, -1))
    return ops.tensor_scatter_elements(empty, places, rows, axis=-1, reduction="add").reshape(x.shape)


def _taken(dy: Any, positions: Any, axes: int) -> Any:
    """Return what `dy` has at positions within its last `axes` axes."""
    lead = dy.shape[: dy.ndim - axes]
    places = positions.reshape((*lead, -1))
    return ops.gather_d(dy.reshape((*lead, -1)), len(lead), places).reshape(positions.shape)


def _extreme_twice(first: Callable[..., Any]) -> Callable[..., Any]:
    def compute(p: Any, x: Any, y: Any, dx: Any, dy: Any) -> Any:
        return ops.zeros_like(x), ops.zeros_like(y), ops.where(first(x, y), dx, dy)

    return compute


def _channels(x: Any, values: Any, data_format: str = "NCHW") -> Any:
    """Return values of channels in the shape that broadcasts with `x`."""
    if data_format == "NHWC" or x.ndim == 2:
        return values
    return values.reshape((1, -1, *[1] * (x.ndim - 2)))


def _normalized(dy: Any, x: Any, scale: Any, mean: Any, inverse: Any, axes: tuple[int, ...], training: bool) -> Any:
    """Return the cotangents of input, scale and offset of a normalisation, given its statistics."""
    centred = (x - mean) * inverse
    summed, along = dy.sum(axes, keepdims=True), (dy * centred).sum(axes, keepdims=True)
    if not training:
        return dy * scale * inverse, along, summed
    count = 1
    for axis in axes:
        count *= x.shape[axis]
    return scale * inverse * (dy - summed / count - centred * along / count), along, summed


def _batch_axes(x: Any, data_format: str) -> tuple[int, ...]:
    channel = x.ndim - 1 if data_format == "NHWC" else 1
    return tuple(axis for axis in range(x.ndim) if axis != channel)


def _batch_norm(p: Any, dy: Any, x: Any, scale: Any, mean: Any, variance: Any, reserve: Any = None) -> Any:
    axes = _batch_axes(x, p.data_format)
    scale4, mean4, variance4 = (_channels(x, v, p.data_format) for v in (scale, mean, variance))
    inverse = ops.rsqrt(variance4 + p.epsilon)
    dx, ds, db = _normalized(dy, x, scale4, mean4, inverse, axes, p.is_training)
    return dx, ds.reshape(scale.shape), db.reshape(scale.shape)


def _training_update(p: Any, dy: Any, x: Any, mean: Any, variance: Any) -> Any:
    """Return the cotangents of scale and offset of a batch normalisation."""
    axes = _batch_axes(x, p.data_format)
    inverse = ops.rsqrt(_channels(x, variance, p.data_format) + p.epsilon)
    _, ds, db = _normalized(dy, x, 1.0, _channels(x, mean, p.data_format), inverse, axes, False)
    return ds.reshape(mean.shape), db.reshape(mean.shape)


def _training_reduce(p: Any, dy: Any, x: Any, ds: Any, db: Any, scale: Any, mean: Any, variance: Any) -> Any:
    """Return the cotangent of the input of a batch normalisation, given those of scale and offset.

    `ds` and `db` are these, and the others what the normalisation had.
    """
    ds, db, scale, mean, variance = (_channels(x, v, p.data_format) for v in (ds, db, scale, mean, variance))
    count = x.size // mean.size
    inverse = ops.rsqrt(variance + p.epsilon)
    return scale * inverse * (dy - db / count - (x - mean) * inverse * ds / count)


def _sync_batch_norm(p: Any, dy: Any, x: Any, scale: Any, mean: Any, variance: Any) -> Any:
    if p.device_num > 1 and get_group_size() > 1:
        raise Unsupported(f"{p.name}: statistics of several processes; use ms.grad of nn.SyncBatchNorm")
    inverse = ops.rsqrt(_channels(x, variance) + p.epsilon)
    dx, ds, db = _normalized(dy, x, _channels(x, scale), _channels(x, mean), inverse, _batch_axes(x, "NCHW"), True)
    return dx, ds.reshape(scale.shape), db.reshape(scale.shape)


def _batch_norm_twice(
    p: Any, x: Any, dy: Any, scale: Any, mean: Any, variance: Any, d_dx: Any, d_ds: Any, d_db: Any
) -> Any:
    axes = _batch_axes(x, p.data_format)
    mean4, variance4 = _channels(x, mean, p.data_format), _channels(x, variance, p.data_format)

    def forward(x: Any, dy: Any, scale: Any) -> Any:
        middle = x.mean(axes, keep_dims=True) if p.is_training else mean4
        spread = ops.square(x - middle).mean(axes, keep_dims=True) if p.is_training else variance4
        gamma = _channels(x, scale, p.data_format)
        dx, ds, db = _normalized(dy, x, gamma, middle, ops.rsqrt(spread + p.epsilon), axes, p.is_training)
        return dx, ds.reshape(scale.shape), db.reshape(scale.shape)

    return vjp(forward, x, dy, scale)[1]((d_dx, d_ds, d_db))


def _layer_norm(p: Any, x: Any, dy: Any, variance: Any, mean: Any, gamma: Any) -> Any:
    axes = tuple(range(p.begin_norm_axis % x.ndim, x.ndim))
    lead = tuple(range(p.begin_params_axis % x.ndim))
    inverse = ops.rsqrt(variance + 1e-12)
    scaled, centred = dy * gamma, x - mean
    count = 1
    for axis in axes:
        count *= x.shape[axis]
    spread = -0.5 * (scaled * centred).sum(axes, keepdims=True) * inverse * inverse * inverse
    shifted = -(inverse * scaled).sum(axes, keepdims=True) - 2.0 * spread * centred.mean(axes, keep_dims=True)
    dx = scaled * inverse + 2.0 * spread * centred / count + shifted / count
    return dx, (dy * centred * inverse).sum(lead), dy.sum(lead)


def _layer_norm_twice(
    p: Any, x: Any, dy: Any, variance: Any, mean: Any, gamma: Any, d_dx: Any, d_dg: Any, d_db: Any
) -> Any:
    axes = tuple(range(p.begin_norm_axis % x.ndim, x.ndim))

    def forward(x: Any, dy: Any, gamma: Any) -> Any:
        middle = x.mean(axes, keep_dims=True)
        return _layer_norm(p, x, dy, ops.square(x - middle).mean(axes, keep_dims=True), middle, gamma)

    return vjp(forward, x, dy, gamma)[1]((d_dx, d_dg, d_db))


def _instance_norm(p: Any, dy: Any, x: Any, gamma: Any, mean: Any, variance: Any) -> Any:
    axes, sizes = tuple(range(2, x.ndim)), (*x.shape[:2], *[1] * (x.ndim - 2))
    inverse = ops.rsqrt(variance.reshape(sizes) + p.epsilon)
    dx, ds, db = _normalized(dy, x, _channels(x, gamma), mean.reshape(sizes), inverse, axes, True)
    return dx, ds.reshape(x.shape[:2]).sum(0), db.reshape(x.shape[:2]).sum(0)


def _instance_norm_v2(
    p: Any, dy: Any, x: Any, gamma: Any, mean: Any, variance: Any, save_mean: Any, save_variance: Any
) -> Any:
    """Follow InstanceNormV2, which saves the inverse of the deviation in training."""
    if p.is_training:
        return _normalized(dy, x, gamma, save_mean, save_variance, (2, 3), True)
    return _normalized(dy, x, gamma, mean, ops.rsqrt(variance + p.epsilon), (2, 3), False)


def _l2_normalize(p: Any, x: Any, y: Any, dy: Any) -> Any:
    axes = p.axis if isinstance(p.axis, int) else tuple(p.axis)
    norm = ops.sqrt(ops.clip((x * x).sum(axes, keepdims=True), p.epsilon, None))
    return (dy - y * (y * dy).sum(axes, keepdims=True)) / norm


def _nll(p: Any, x: Any, dy: Any, labels: Any, weight: Any, total: Any) -> Any:
    reduction = "none" if p.reduction == "none" else "sum"
    forward = ops.NLLLoss(reduction, p.ignore_index)
    dx = cotangents(lambda v: forward(v, labels, weight)[0], [x], dy)
    return dx / total if p.reduction == "mean" else dx


def _pdist(p: Any, dy: Any, x: Any, y: Any) -> Any:
    """Return the cotangents of rows, given those of the distances `y` between pairs of them."""
    count = x.shape[-2]
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    first, second = (Tensor([pair[k] for pair in pairs]) for k in (0, 1))
    apart = ops.gather(x, first, x.ndim - 2) - ops.gather(x, second, x.ndim - 2)
    dy, y = ops.expand_dims(dy, -1), ops.expand_dims(y, -1)
    if p.p == float("inf"):
        each = dy * ops.sign(apart) * ops.equal(ops.abs(apart), y).astype(x.dtype)
    else:
        powers = ops.sign(apart) * ops.pow(ops.abs(apart), p.p - 1.0) / ops.pow(y, p.p - 1.0)
        each = dy * ops.where(ops.broadcast_to(y, apart.shape) == 0, ops.zeros_like(apart), powers)
    rows = each.swapaxes(0, each.ndim - 2)
    summed = ops.unsorted_segment_sum(rows, first, count) - ops.unsorted_segment_sum(rows, second, count)
    return summed.swapaxes(0, each.ndim - 2)


def _random_gamma(p: Any, alpha: Any, sample: Any) -> Any:
    """Follow "Implicit reparameterization gradients" (2018)."""
    by_alpha = cotangents(lambda a: ops.igamma(a, sample), [alpha], ops.ones_like(sample + alpha))
    density = ops.exp((alpha - 1.0) * ops.log(sample) - sample - ops.lgamma(alpha))
    return -by_alpha / density


def _bias_add(p: Any, dy: Any) -> Any:
    channel = dy.ndim - 1 if p.data_format == "NHWC" else 1
    return dy.sum(tuple(axis for axis in range(dy.ndim) if axis != channel))


def _cholesky(p: Any, factor: Any, dy: Any) -> Any:
    """Follow Murray's "Differentiation of the Cholesky decomposition" (2016)."""
    half = ops.tril(ops.matmul(factor.swapaxes(-1, -2), dy))
    half = (
        half - 0.5 * ops.diag(ops.diagonal(half)) if factor.ndim == 2 else half - 0.5 * half * ops.eye(factor.shape[-1])
    )
    inverse = ops.inverse(factor)
    middle = ops.matmul(ops.matmul(inverse.swapaxes(-1, -2), half), inverse)
    return 0.5 * (middle + middle.swapaxes(-1, -2))


def _log_softmax(p: Any, y: Any, dy: Any) -> Any:
    return dy - ops.exp(y) * dy.sum(p.axis, keepdims=True)


def _softmax(p: Any, y: Any, dy: Any) -> Any:
    return y * (dy - (y * dy).sum(-1, keepdims=True))


def _selu(p: Any, dy: Any, y: Any) -> Any:
    return dy * ops.where(y > 0, ops.full_like(y, _SELU_SCALE), y + _SELU_SCALE * _SELU_ALPHA)


def _rms_norm(p: Any, dy: Any, x: Any, rstd: Any, gamma: Any) -> Any:
    axes = tuple(range(x.ndim - gamma.ndim, x.ndim))
    centred, scaled = x * rstd, dy * gamma
    dx = rstd * (scaled - centred * (scaled * centred).mean(axes, keep_dims=True))
    return dx, (dy * centred).sum(tuple(range(x.ndim - gamma.ndim)))


def _lu_unpack(p: Any, d_lower: Any, d_upper: Any, packed: Any) -> Any:
    rows, columns = packed.shape[-2:]
    empty = ops.zeros_like(packed)
    lower = ops.tril(d_lower, -1) if p.L_grad_flag else None
    upper = ops.triu(d_upper) if p.U_grad_flag else None
    lead = [(0, 0)] * (packed.ndim - 2)
    spread = [
        empty if part is None else ops.pad(part, _ends(lead, rows - part.shape[-2], columns - part.shape[-1]))
        for part in (lower, upper)
    ]
    return tuple(spread)


def _ends(lead: list[tuple[int, int]], below: int, right: int) -> list[int]:
    return [0, right, 0, below] + [0] * 2 * len(lead)


def _median(p: Any, dy: Any, x: Any, y: Any, indices: Any) -> Any:
    if p.global_median:
        same = ops.equal(x, y).astype(x.dtype)
        return dy * same / same.sum()
    if not p.keep_dims:
        dy, indices = ops.expand_dims(dy, p.axis), ops.expand_dims(indices, p.axis)
    return ops.tensor_scatter_elements(ops.zeros_like(x), indices, dy, axis=p.axis, reduction="add")


def _segments(kind: str) -> Callable[..., Any]:
    """Return the gradient of a sparse segment reduction."""

    def compute(p: Any, dy: Any, indices: Any, segments: Any, count: Any) -> Any:
        rows = ops.gather(dy, segments, 0)
        if kind != "sum":
            ones = ops.ones(segments.shape, dy.dtype)
            sizes = ops.gather(ops.unsorted_segment_sum(ones, segments, dy.shape[0]), segments, 0)
            sizes = sizes if kind == "mean" else ops.sqrt(sizes)
            rows = rows / sizes.reshape((-1, *[1] * (dy.ndim - 1)))
        return ops.unsorted_segment_sum(rows, indices, int(count))

    return compute


def _rows_in(rows: Any, table: Any) -> Any:
    """Return for each row its number in a table, and whether it is there."""
    same = ops.equal(ops.expand_dims(rows, 1), ops.expand_dims(table, 0)).all(-1)
    return same.astype("int32").argmax(1), same.any(1)


def _at_rows(values: Any, rows: Any, table: Any) -> Any:
    places, there = _rows_in(rows, table)
    return ops.where(there, ops.gather(values, places, 0), ops.zeros((), values.dtype))


def _sparse_slice(p: Any, dy: Any, indices: Any, start: Any, kept: Any) -> Any:
    return _at_rows(dy, indices, kept + start.reshape((1, -1)))


def _fill_empty_rows(p: Any, reverse: Any, dy: Any) -> Any:
    taken = ops.gather(dy, reverse, 0)
    return taken, dy.sum() - taken.sum()


def _windows(sequence: Any, overlapping: bool, size: int) -> list[tuple[int, int]]:
    edges = [int(v) for v in sequence.asnumpy()]
    return [(a, min(b + 1, size) if overlapping else b) for a, b in zip(edges, edges[1:])]


def _fractional_average(p: Any, size: Any, dy: Any, rows: Any, columns: Any) -> Any:
    """Share each cotangent (batches, rows, columns, channels) among the cells of its window."""
    _, height, width, _ = shape_of(p.name, size)
    return _spread(
        _spread(dy, 1, _windows(rows, p.overlapping, height), height), 2, _windows(columns, p.overlapping, width), width
    )


def _spread(dy: Any, axis: int, windows: list[tuple[int, int]], size: int) -> Any:
    table = [[0.0] * len(windows) for _ in range(size)]
    for number, (start, stop) in enumerate(windows):
        for place in range(start, stop):
            table[place][number] = 1.0 / (stop - start)
    weights = Tensor(table).astype(dy.dtype)
    return ops.tensor_dot(weights, dy, ((1,), (axis,))).swapaxes(0, axis) if axis == 1 else _last(weights, dy)


def _last(weights: Any, dy: Any) -> Any:
    return ops.einsum("wj,bhjc->bhwc", weights, dy)


def _fractional_max(p: Any, x: Any, y: Any, dy: Any, rows: Any, columns: Any) -> Any:
    heights = _windows(rows, p.overlapping, x.shape[1])
    widths = _windows(columns, p.overlapping, x.shape[2])

    def forward(v: Any) -> Any:
        lines = [ops.stack([v[:, a:b, c:d, :].max((1, 2)) for c, d in widths], 1) for a, b in heights]
        return ops.stack(lines, 1)

    return cotangents(forward, [x], dy)


def _unpooled(axes: int) -> Callable[..., Any]:
    """Return the gradient of the inverse of a pooling: what the cotangent has at the positions."""
    return lambda p, x, dy, positions: _taken(dy, positions, axes)


def _unique(p: Any, given: Any, found: Any) -> Any:
    return ops.gather(given[0], found[1], 0)


SAVED: dict[str, Callable[..., Any]] = {
    "AcoshGrad": lambda p, y, dy: dy / ops.sinh(y),
    "AsinhGrad": lambda p, y, dy: dy / ops.cosh(y),
    "AdaptiveMaxPool2DGrad": lambda p, dy, x, places: _scattered(dy, places, x, 2),
    "AdaptiveMaxPool3DGrad": lambda p, dy, x, places: _scattered(dy, places, x, 3),
    "BNTrainingReduceGrad": _training_reduce,
    "BNTrainingUpdateGrad": _training_update,
    "BatchNormGrad": _batch_norm,
    "BatchNormGradGrad": _batch_norm_twice,
    "BiasAddGrad": _bias_add,
    "CholeskyGrad": _cholesky,
    "DropoutGrad": lambda p, dy, mask: dy * mask.astype(dy.dtype) / p.keep_prob,
    "EluGrad": lambda p, dy, y: ops.where(y < 0, dy * (y + 1), dy),
    "FractionalAvgPoolGrad": _fractional_average,
    "FractionalMaxPoolGrad": _fractional_max,
    "FractionalMaxPool3DGradWithFixedKsize": lambda p, x, dy, places: _scattered(dy, places, x, 3),
    "FractionalMaxPoolGradWithFixedKsize": lambda p, x, dy, places: _scattered(dy, places, x, 2),
    "InstanceNormGrad": _instance_norm,
    "InstanceNormV2Grad": _instance_norm_v2,
    "InvGrad": lambda p, y, dy: -dy * y * y,
    "L2NormalizeGrad": _l2_normalize,
    "LayerNormGrad": _layer_norm,
    "LayerNormGradGrad": _layer_norm_twice,
    "LogSoftmaxGrad": _log_softmax,
    "LuUnpackGrad": _lu_unpack,
    "MaxPool3DGradWithArgmax": lambda p, x, dy, places: _scattered(dy, places, x, 3),
    "MaxPoolGradWithArgmax": lambda p, x, dy, places: _scattered(dy, places, x, 3),
    "MaxPoolGradWithArgmaxV2": lambda p, x, dy, places: _scattered(dy, places, x, 2),
    "MaxPoolGradGradWithArgmax": lambda p, x, dx, places: _taken(dx, places, 3),
    "MaxUnpool2DGrad": _unpooled(2),
    "MaxUnpool3DGrad": _unpooled(3),
    "MaximumGradGrad": _extreme_twice(lambda x, y: x >= y),
    "MedianGrad": _median,
    "MinimumGradGrad": _extreme_twice(lambda x, y: x <= y),
    "NLLLossGrad": _nll,
    "PdistGrad": _pdist,
    "RandomGammaGrad": _random_gamma,
    "ReciprocalGrad": lambda p, y, dy: -dy * y * y,
    "RmsNormGrad": _rms_norm,
    "RsqrtGrad": lambda p, y, dy: -0.5 * dy * y * y * y,
    "SeluGrad": _selu,
    "SigmoidGrad": lambda p, y, dy: dy * y * (1 - y),
    "SoftmaxGrad": _softmax,
    "SparseAddGrad": lambda p, dy, first, second, total: (_at_rows(dy, first, total), _at_rows(dy, second, total)),
    "SparseFillEmptyRowsGrad": _fill_empty_rows,
    "SparseSegmentMeanGrad": _segments("mean"),
    "SparseSegmentSqrtNGrad": _segments("sqrt"),
    "SparseSegmentSumGrad": _segments("sum"),
    "SparseSliceGrad": _sparse_slice,
    "SqrtGrad": lambda p, y, dy: 0.5 * dy / y,
    "SyncBatchNormGrad": _sync_batch_norm,
    "TanhGrad": lambda p, y, dy: dy * (1 - y * y),
    "UniqueGrad": _unique,
}
