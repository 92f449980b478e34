"""MindSpore's private primitives of layers: normalisations, recurrences, sparse updates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel import ops
from mycel._src.foundation.errors import Unsupported
from mycel._src.staging.derivatives import vjp
from mycel._src.tensors.core.parameter import Parameter
from mycel.communication import get_group_size
from mycel.compat.operations.private_primitives.custom_derivative import with_gradient

__all__ = ["LAYERS"]

Work = Callable[..., Any]


def _instance_norm_v2(p: Any, x: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
    """Return the normalised input, and means and inverse deviations of the batch in training."""
    if not p.is_training:
        y = (x - mean) * ops.rsqrt(variance + p.epsilon) * gamma + beta
        return y, ops.zeros_like(mean), ops.zeros_like(variance)
    middle = x.mean((2, 3), keep_dims=True)
    inverse = ops.rsqrt(ops.square(x - middle).mean((2, 3), keep_dims=True) + p.epsilon)
    return (x - middle) * inverse * gamma + beta, middle, inverse


def _moved(kept: Any, new: Any, momentum: float) -> None:
    if isinstance(kept, Parameter):
        ops.assign(kept, kept * (1 - momentum) + new * momentum)


def _instance_norm(p: Any, x: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
    axes, sizes = tuple(range(2, x.ndim)), (1, -1, *[1] * (x.ndim - 2))
    middle = x.mean(axes, keep_dims=True)
    spread = ops.square(x - middle).mean(axes, keep_dims=True)
    y = (x - middle) * ops.rsqrt(spread + p.epsilon) * gamma.reshape(sizes) + beta.reshape(sizes)
    count = x.size // (x.shape[0] * x.shape[1])
    _moved(mean, middle.mean(0).reshape(mean.shape), p.momentum)
    _moved(variance, (spread.mean(0) * (count / max(count - 1, 1))).reshape(variance.shape), p.momentum)
    return y, middle.reshape(-1), spread.reshape(-1)


def _sync_batch_norm(p: Any, x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
    if p.device_num > 1 and get_group_size() > 1:
        raise Unsupported(f"{p.name}: statistics of several processes; use nn.SyncBatchNorm")
    y, *kept = ops.BatchNorm(True, p.epsilon, p.momentum)(x, scale, offset, mean, variance)
    return (y, *kept)


def _pool_v1(kind: Callable[..., Any]) -> Work:
    return lambda p, x: kind(p.kernel_size, p.strides, p.pad_mode, p.data_format)(x)


def _softmax_loss(p: Any, x: Any, labels: Any) -> Any:
    """Return the loss of each row, and its gradient."""
    logs = ops.log_softmax(x, -1)
    hot = ops.one_hot(labels, x.shape[-1], ops.ones((), x.dtype), ops.zeros((), x.dtype))
    return -(logs * hot).sum(-1), ops.exp(logs) - hot


def _wkv(u: Any, w: Any, k: Any, v: Any, sp: Any, sq: Any, sm: Any) -> Any:
    """Follow "RWKV: Reinventing RNNs for the Transformer era" (2023).

    Keys and values are (batches, steps, width).
    """
    found = []
    for step in range(k.shape[1]):
        key, value = k[:, step], v[:, step]
        most = ops.maximum(sm, u + key)
        old, new = ops.exp(sm - most), ops.exp(u + key - most)
        found.append((old * sp + new * value) / (old * sq + new))
        most = ops.maximum(w + sm, key)
        old, new = ops.exp(w + sm - most), ops.exp(key - most)
        sp, sq, sm = old * sp + new * value, old * sq + new, most
    return ops.stack(found, 1), sp, sq, sm


def _wkv_grad(p: Any, u: Any, w: Any, k: Any, v: Any, dy: Any) -> Any:
    none = ops.zeros((k.shape[0], k.shape[2]), k.dtype)
    dw, du, dk, dv = vjp(lambda w, u, k, v: _wkv(u, w, k, v, none, none, none - 1e38)[0], w, u, k, v)[1](dy)
    return dw, du, dk, dv


def _set_rows(parameter: Any, indices: Any, rows: Any) -> Any:
    ops.scatter_update(parameter, indices, rows)
    return parameter


def _sparse_momentum(p: Any, var: Any, accum: Any, lr: Any, grad: Any, indices: Any, momentum: Any) -> Any:
    moved = ops.gather(accum, indices, 0) * momentum + grad
    _set_rows(accum, indices, moved)
    step = grad + moved * momentum if p.use_nesterov else moved
    return _set_rows(var, indices, ops.gather(var, indices, 0) - step * lr)


def _sparse_centered(
    p: Any,
    var: Any,
    mg: Any,
    ms: Any,
    mom: Any,
    lr: Any,
    rho: Any,
    momentum: Any,
    epsilon: Any,
    grad: Any,
    indices: Any,
) -> Any:
    square, mean, moved, rows = (ops.gather(v, indices, 0) for v in (ms, mg, mom, var))
    square = rho * square + (1 - rho) * grad * grad
    mean = rho * mean + (1 - rho) * grad
    moved = momentum * moved + lr * grad * ops.rsqrt(square - mean * mean + epsilon)
    for parameter, new in ((ms, square), (mg, mean), (mom, moved)):
        _set_rows(parameter, indices, new)
    return _set_rows(var, indices, rows - moved)


def _shrunk(x: Any, by: Any) -> Any:
    return ops.sign(x) * ops.relu(ops.abs(x) - by)


def _sparse_proximal(p: Any, var: Any, alpha: Any, l1: Any, l2: Any, grad: Any, indices: Any) -> Any:
    rows = ops.gather(var, indices, 0) - alpha * grad
    return _set_rows(var, indices, _shrunk(rows, alpha * l1) / (1 + alpha * l2))


def _sparse_dual(
    p: Any, var: Any, total: Any, squares: Any, grad: Any, indices: Any, lr: Any, l1: Any, l2: Any, step: Any
) -> Any:
    """Follow "Adaptive subgradient methods" (2011), regularised dual averaging."""
    step = step.astype(grad.dtype)
    kept = ops.gather(total, indices, 0) + grad
    square = ops.gather(squares, indices, 0) + grad * grad
    _set_rows(total, indices, kept)
    _set_rows(squares, indices, square)
    return _set_rows(var, indices, -lr * _shrunk(kept, l1 * step) / (l2 * step * lr + ops.sqrt(square)))


def _any_infinite(p: Any, gradients: Any) -> Any:
    """Return whether any element is infinite or no number, as this primitive does."""
    found = [ops.logical_not(ops.isfinite(g).all()) for g in gradients]
    return ops.stack(found).any().reshape((1,))


def _divided(p: Any, x: Any) -> Any:
    """Return `x`, of which gradients are divided."""
    return with_gradient(lambda x, out, dout: (dout / p.divisor,), (x,), x + 0) if p.divisor else x


LAYERS: dict[str, Work] = {
    "AllFinite": _any_infinite,
    "AvgPoolV1": _pool_v1(ops.AvgPool),
    "InstanceNorm": _instance_norm,
    "InstanceNormV2": _instance_norm_v2,
    "MaxPoolV1": _pool_v1(ops.MaxPool),
    "ReLUV3": lambda p, x: ops.relu(x),
    "SparseApplyAdagradDA": _sparse_dual,
    "SparseApplyCenteredRMSProp": _sparse_centered,
    "SparseApplyMomentum": _sparse_momentum,
    "SparseApplyProximalGradientDescent": _sparse_proximal,
    "SparseSoftmaxCrossEntropyWithLogitsV2": _softmax_loss,
    "SyncBatchNorm": _sync_batch_norm,
    "WKV": lambda p, u, w, k, v, sp, sq, sm: _wkv(u, w, k, v, sp, sq, sm),
    "WKVGrad": _wkv_grad,
    "_VirtualDiv": _divided,
}
