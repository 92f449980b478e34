"""ONNX's normalisations, dropout and losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel import ops
from mycel._src.compiler.ir.dims import product
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims.convolution import window
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.compiler.prims.neural import normalization
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.onnx.operation import (
    Operation,
    apply,
    as_type,
    broadcast,
    kind_of,
    number,
    pad,
    reshaped,
    rule,
    same,
    scalar,
    select,
)
from mycel.formats.onnx.rules.data_movement import axis_of
from mycel.formats.onnx.rules.reductions import mean

__all__ = ["standardized"]


def _stash(op: Operation, x: Tensor) -> Tensor:
    """Return a tensor in the type in which a normalisation computes."""
    code = op.get("stash_type", 1)
    return as_type(x, kind_of(code, op)) if x.dtype is not D.float64 or code == 11 else x


def standardized(x: Tensor, axes: tuple[int, ...], epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return a tensor with mean 0 and variance 1 along axes, the mean and the inverse deviation."""
    kept = [1 if i in axes else n for i, n in enumerate(x.shape)]
    middle, spread = (reshaped(v, kept) for v in apply(normalization.moments, x, axes=axes))
    apart = apply(E.sub, x, middle)
    inverse = apply(E.rsqrt, apply(E.add, spread, scalar(epsilon, x)))
    return apply(E.mul, apart, inverse), middle, inverse


@rule("LayerNormalization")
def _layer_norm(op: Operation, x: Tensor, scale: Tensor, bias: Any = None) -> Any:
    axis = axis_of(op, op.get("axis", -1), x.ndim)
    axes = tuple(range(axis, x.ndim))
    made, middle, inverse = standardized(_stash(op, x), axes, op.get("epsilon", 1e-5))
    found = apply(E.mul, as_type(made, x.dtype), scale)
    return (found if bias is None else apply(E.add, found, bias)), middle, inverse


@rule("RMSNormalization")
def _rms_norm(op: Operation, x: Tensor, scale: Tensor) -> Tensor:
    axes = tuple(range(axis_of(op, op.get("axis", -1), x.ndim), x.ndim))
    wide = _stash(op, x)
    power = mean(apply(E.mul, wide, wide), axes)
    inverse = apply(E.rsqrt, apply(E.add, power, scalar(op.get("epsilon", 1e-5), wide)))
    return apply(E.mul, as_type(apply(E.mul, wide, inverse), x.dtype), scale)


@rule("BatchNormalization")
def _batch_norm(op: Operation, x: Tensor, scale: Tensor, bias: Tensor, middle: Tensor, spread: Tensor) -> Any:
    epsilon, keep = op.get("epsilon", 1e-5), op.get("momentum", 0.9)
    form = [1] * x.ndim
    form[min(1, x.ndim - 1)] = x.shape[min(1, x.ndim - 1)]
    if not op.get("training_mode", 0):
        line = form[1:]
        wide = as_type(x, spread.dtype)
        apart = apply(E.sub, wide, reshaped(middle, line))
        inverse = apply(E.rsqrt, apply(E.add, reshaped(spread, line), scalar(epsilon, spread)))
        found = apply(E.mul, apply(E.mul, apart, inverse), reshaped(as_type(scale, wide.dtype), line))
        return as_type(apply(E.add, found, reshaped(as_type(bias, wide.dtype), line)), x.dtype)
    axes = tuple(i for i in range(x.ndim) if i != 1)
    wide = as_type(x, middle.dtype)
    made, now, _ = standardized(wide, axes, epsilon)
    apart = apply(E.sub, wide, now)
    power = mean(apply(E.mul, apart, apart), axes)

    def kept(old: Tensor, new: Tensor) -> Tensor:
        new = reshaped(new, old.shape)
        return apply(E.add, apply(E.mul, old, scalar(keep, old)), apply(E.mul, new, scalar(1 - keep, old)))

    found = apply(E.add, apply(E.mul, made, reshaped(as_type(scale, made.dtype), form)), reshaped(bias, form))
    return as_type(found, x.dtype), kept(middle, now), kept(spread, power)


@rule("InstanceNormalization")
def _instance_norm(op: Operation, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    made, _, _ = standardized(x, tuple(range(2, x.ndim)), op.get("epsilon", 1e-5))
    form = (x.shape[1], *[1] * (x.ndim - 2))
    return apply(E.add, apply(E.mul, made, reshaped(scale, form)), reshaped(bias, form))


@rule("GroupNormalization")
def _group_norm(op: Operation, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    groups = op.get("num_groups")
    n, c, rest = x.shape[0], x.shape[1], x.shape[2:]
    apart = reshaped(_stash(op, x), (n, groups, product((c // groups, *rest))))
    made, _, _ = standardized(apart, (2,), op.get("epsilon", 1e-5))
    if op.get("by_group"):
        form: Any = (groups, 1)
        made = apply(E.add, apply(E.mul, made, reshaped(scale, form)), reshaped(bias, form))
        return as_type(reshaped(made, x.shape), x.dtype)
    made = as_type(reshaped(made, x.shape), x.dtype)
    form = (c, *[1] * len(rest))
    return apply(E.add, apply(E.mul, made, reshaped(scale, form)), reshaped(bias, form))


@rule("MeanVarianceNormalization")
def _mean_variance(op: Operation, x: Tensor) -> Tensor:
    axes = tuple(sorted(axis_of(op, a, x.ndim) for a in op.get("axes") or (0, 2, 3)))
    middle = mean(x, axes)
    apart = apply(E.sub, x, middle)
    spread = mean(apply(E.mul, apart, apart), axes)
    return apply(E.div, apart, apply(E.add, apply(E.sqrt, spread), scalar(1e-9, x)))


@rule("LpNormalization")
def _lp_norm(op: Operation, x: Tensor) -> Tensor:
    axes = (axis_of(op, op.get("axis", -1), x.ndim),)
    if op.get("p", 2) == 1:
        size = apply(R.reduce_sum, apply(E.abs_, x), axes=axes, keepdims=True)
    else:
        size = apply(E.sqrt, apply(R.reduce_sum, apply(E.mul, x, x), axes=axes, keepdims=True))
    zero = apply(E.eq, size, scalar(0, x))
    return select(zero, scalar(0, x), apply(E.div, x, select(zero, scalar(1, x), size)))


@rule("LRN")
def _lrn(op: Operation, x: Tensor) -> Tensor:
    size, alpha, beta = op.get("size"), op.get("alpha", 1e-4), op.get("beta", 0.75)
    shape = tuple(x.shape)
    lines = reshaped(apply(E.mul, x, x), (shape[0], 1, shape[1], product(shape[2:])))
    low = (size - 1) // 2
    wide = pad(lines, (0, 0, low, 0), (0, 0, size - 1 - low, 0))
    total = apply(window.window_sum, wide, window=(size, 1), strides=(1, 1), padding=((0, 0), (0, 0)))
    base = apply(E.add, apply(E.mul, reshaped(total, shape), scalar(alpha / size, x)), scalar(op.get("bias", 1.0), x))
    return apply(E.div, x, apply(E.pow_, base, scalar(beta, x)))


@rule("Dropout", known=(1, 2), folds=False)
def _dropout(op: Operation, x: Tensor, ratio: Any = None, training: Any = None) -> Any:
    rate = 0.5 if ratio is None else float(number(ratio))
    if op.get("inference") or training is None or not number(training) or rate == 0.0:
        return x, same(np.ones((), np.bool_), D.bool_) if op.count < 2 else broadcast(same(True, D.bool_), x.shape)
    kept = apply(E.ge, ops.rand(*x.shape), same(rate, D.float32))
    scaled = apply(E.mul, x, scalar(1 / (1 - rate), x))
    return select(kept, scaled, scalar(0, x)), kept


# Losses.


def _chosen(op: Operation, scores: Tensor, target: Tensor, weight: Any, reduction: str, ignored: Any) -> Tensor:
    """Return minus the score of the target class, weighted and reduced.

    `scores` are (N, C, ...), `target` (N, ...), `weight` (C) or None, and targets that are
    `ignored` count nothing.
    """
    at = as_type(target, D.int64)
    left_out = None if ignored is None else apply(E.eq, at, same(ignored, D.int64))
    safe = at if left_out is None else select(left_out, same(0, D.int64), at)
    places = reshaped(safe, (at.shape[0], 1, *at.shape[1:]))
    picked = reshaped(apply(I.take_along, scores, places, axis=1), at.shape)
    found = apply(E.neg, picked)
    each = None
    if weight is not None:
        each = apply(I.take, weight, safe, axis=0)
    if left_out is not None:
        one = broadcast(scalar(1, scores), at.shape) if each is None else each
        each = select(left_out, scalar(0, scores), one)
    if each is not None:
        found = (
            select(left_out, scalar(0, found), apply(E.mul, found, each))
            if left_out is not None
            else apply(E.mul, found, each)
        )
    if reduction == "none":
        return found
    axes = tuple(range(found.ndim))
    total = apply(R.reduce_sum, found, axes=axes, keepdims=False)
    if reduction == "sum":
        return total
    if each is None:
        return mean(found, axes, False)
    return apply(E.div, total, apply(R.reduce_sum, each, axes=axes, keepdims=False))


@rule("NegativeLogLikelihoodLoss")
def _nll(op: Operation, scores: Tensor, target: Tensor, weight: Any = None) -> Tensor:
    return _chosen(op, scores, target, weight, op.get("reduction", "mean"), op.get("ignore_index"))


@rule("SoftmaxCrossEntropyLoss")
def _cross_entropy(op: Operation, scores: Tensor, target: Tensor, weight: Any = None) -> Any:
    logs = ops.log_softmax(scores, 1)
    return _chosen(op, logs, target, weight, op.get("reduction", "mean"), op.get("ignore_index")), logs
