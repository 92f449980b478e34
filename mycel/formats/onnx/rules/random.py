"""ONNX's random numbers, from the process's generator; and its optimizers.

A node's seed has no effect: the numbers of another program's generator cannot be had. It is said
once, where a model asks for one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel import ops
from mycel._src.compiler.prims import elementwise as E
from mycel._src.foundation import dtype as D
from mycel._src.foundation.log import logger
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.onnx.operation import Operation, apply, as_type, kind_of, number, reshaped, rule, scalar

__all__: list[str] = []
_TRAINING = "ai.onnx.preview.training"
_told: list[bool] = []


def _kind(op: Operation, like: Any = None) -> Any:
    if "seed" in op.attributes and not _told:
        _told.append(True)
        logger.warning("%s: seed has no effect; numbers come from the process's generator", op.label)
    code = op.get("dtype", 0)
    return kind_of(code, op) if code else (D.float32 if like is None else like.dtype)


def _uniform(op: Operation, shape: Any, kind: Any) -> Tensor:
    low, high = op.get("low", 0.0), op.get("high", 1.0)
    return as_type(ops.rand(*shape) * (high - low) + low, kind)


def _normal(op: Operation, shape: Any, kind: Any) -> Tensor:
    return as_type(ops.randn(*shape) * op.get("scale", 1.0) + op.get("mean", 0.0), kind)


@rule("RandomUniform", folds=False)
def _random_uniform(op: Operation) -> Tensor:
    return _uniform(op, op.get("shape"), _kind(op))


@rule("RandomNormal", folds=False)
def _random_normal(op: Operation) -> Tensor:
    return _normal(op, op.get("shape"), _kind(op))


@rule("RandomUniformLike", folds=False)
def _uniform_like(op: Operation, like: Tensor) -> Tensor:
    return _uniform(op, like.shape, _kind(op, like))


@rule("RandomNormalLike", folds=False)
def _normal_like(op: Operation, like: Tensor) -> Tensor:
    return _normal(op, like.shape, _kind(op, like))


@rule("Bernoulli", folds=False)
def _bernoulli(op: Operation, x: Tensor) -> Tensor:
    kind = _kind(op, x)
    return as_type(apply(E.lt, as_type(ops.rand(*x.shape), x.dtype), x), kind)


@rule("Multinomial", folds=False)
def _multinomial(op: Operation, x: Tensor) -> Tensor:
    count = op.get("sample_size", 1)
    code = op.get("dtype", 6)
    noise = ops.rand(x.shape[0], count, x.shape[1])
    gumbel = apply(E.neg, apply(E.log, apply(E.neg, apply(E.log, noise))))
    scores = apply(E.add, reshaped(as_type(x, D.float32), (x.shape[0], 1, x.shape[1])), gumbel)
    return as_type(ops.argmax(scores, 2), kind_of(code, op))


# Optimizers.


def _groups(op: Operation, values: tuple[Tensor, ...], kinds: int) -> list[tuple[Tensor, ...]]:
    count = len(values) // kinds
    return [tuple(values[i + j * count] for j in range(kinds)) for i in range(count)]


def _joined(rows: Any) -> tuple[Tensor, ...]:
    return tuple(v for column in zip(*rows) for v in column)


def _regular(op: Operation, x: Tensor, g: Tensor) -> Tensor:
    return apply(E.add, apply(E.mul, scalar(op.get("norm_coefficient", 0.0), x), x), g)


def _mix(a: Tensor, x: float, b: Tensor, y: float) -> Tensor:
    return apply(E.add, apply(E.mul, a, scalar(x, a)), apply(E.mul, b, scalar(y, b)))


@rule("Adagrad", known=(1,), domain=_TRAINING)
def _adagrad(op: Operation, rate: Tensor, step: Any, *values: Tensor) -> Any:
    r = apply(E.div, rate, scalar(1 + float(number(step)) * op.get("decay_factor", 0.0), rate))
    rows = []
    for x, g, h in _groups(op, values, 3):
        g = _regular(op, x, g)
        new = apply(E.add, h, apply(E.mul, g, g))
        root = apply(E.add, apply(E.sqrt, new), scalar(op.get("epsilon", 0.0), x))
        rows.append((apply(E.sub, x, apply(E.div, apply(E.mul, r, g), root)), new))
    return _joined(rows)


@rule("Adam", known=(1,), domain=_TRAINING)
def _adam(op: Operation, rate: Tensor, step: Any, *values: Tensor) -> Any:
    alpha, beta, t = op.get("alpha", 0.9), op.get("beta", 0.999), float(number(step))
    factor = np.sqrt(1 - beta**t) / (1 - alpha**t) if t > 0 else 1.0
    r = apply(E.mul, rate, scalar(factor, rate))
    rows = []
    for x, g, v, h in _groups(op, values, 4):
        g = _regular(op, x, g)
        v_new, h_new = _mix(v, alpha, g, 1 - alpha), _mix(h, beta, apply(E.mul, g, g), 1 - beta)
        root = apply(E.add, apply(E.sqrt, h_new), scalar(op.get("epsilon", 1e-6), x))
        x_new = apply(E.sub, x, apply(E.div, apply(E.mul, r, v_new), root))
        x_new = apply(E.mul, x_new, scalar(1 - op.get("norm_coefficient_post", 0.0), x))
        rows.append((x_new, v_new, h_new))
    return _joined(rows)


@rule("Momentum", known=(1,), domain=_TRAINING)
def _momentum(op: Operation, rate: Tensor, step: Any, *values: Tensor) -> Any:
    alpha = op.get("alpha")
    beta = op.get("beta") if number(step) > 0 else 1.0
    rows = []
    for x, g, v in _groups(op, values, 3):
        g = _regular(op, x, g)
        new = _mix(v, alpha, g, beta)
        way = _mix(g, 1.0, new, alpha) if op.get("mode") == "nesterov" else new
        rows.append((apply(E.sub, x, apply(E.mul, rate, way)), new))
    return _joined(rows)
