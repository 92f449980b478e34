"""ONNX's element-wise operators."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycel import ops
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.onnx.operation import (
    Operation,
    apply,
    as_type,
    is_text,
    reshaped,
    rule,
    same,
    scalar,
    select,
    tensor,
)
from mycel.ops import activation

_ALIKE = {
    "Abs": E.abs_,
    "Acos": E.acos,
    "Acosh": E.acosh,
    "Add": E.add,
    "And": E.logical_and,
    "Asin": E.asin,
    "Asinh": E.asinh,
    "Atan": E.atan,
    "Atanh": E.atanh,
    "BitwiseAnd": E.bitwise_and,
    "BitwiseNot": E.bitwise_not,
    "BitwiseOr": E.bitwise_or,
    "BitwiseXor": E.bitwise_xor,
    "Ceil": E.ceil,
    "Cos": E.cos,
    "Cosh": E.cosh,
    "Erf": E.erf,
    "Exp": E.exp,
    "Floor": E.floor,
    "Greater": E.gt,
    "GreaterOrEqual": E.ge,
    "IsNaN": E.is_nan,
    "Less": E.lt,
    "LessOrEqual": E.le,
    "Log": E.log,
    "Mul": E.mul,
    "Neg": E.neg,
    "Not": E.logical_not,
    "Or": E.logical_or,
    "Round": E.rint,
    "Sigmoid": E.sigmoid,
    "Sign": E.sign,
    "Sin": E.sin,
    "Sinh": E.sinh,
    "Sqrt": E.sqrt,
    "Sub": E.sub,
    "Tan": E.tan,
    "Tanh": E.tanh,
    "Xor": E.logical_xor,
}


def _enter(operator: str, primitive: Any) -> None:
    @rule(operator)
    def alike(op: Operation, *operands: Tensor) -> Tensor:
        return apply(primitive, *operands)


for _operator, _primitive in _ALIKE.items():
    _enter(_operator, _primitive)


@rule("Equal", raw=True)
def _equal(op: Operation, x: Any, y: Any) -> Any:
    if is_text(x) and is_text(y):
        return np.asarray(x == y, np.bool_)
    return apply(E.eq, tensor(x), tensor(y))


@rule("Identity", raw=True)
def _identity(op: Operation, x: Any) -> Any:
    return x


@rule("Div")
def _div(op: Operation, x: Tensor, y: Tensor) -> Tensor:
    if x.dtype.is_floating:
        return apply(E.div, x, y)
    return truncated(x, y)


def truncated(x: Tensor, y: Tensor) -> Tensor:
    """Return the quotient of whole numbers, rounded towards 0."""
    found = apply(E.floor_div, x, y)
    if not x.dtype.is_signed:
        return found
    rest = apply(E.sub, x, apply(E.mul, found, y))
    zero = scalar(0, x)
    up = apply(E.logical_and, apply(E.ne, rest, zero), apply(E.lt, found, zero))
    return apply(E.add, found, as_type(up, x.dtype))


@rule("Mod")
def _mod(op: Operation, x: Tensor, y: Tensor) -> Tensor:
    return apply(E.fmod if op.get("fmod", 0) else E.mod, x, y)


@rule("Pow")
def _pow(op: Operation, x: Tensor, y: Tensor) -> Tensor:
    if y.dtype is x.dtype:
        return apply(E.pow_, x, y)
    if x.dtype.is_floating and y.dtype.is_floating and y.dtype.itemsize <= x.dtype.itemsize:
        return apply(E.pow_, x, as_type(y, x.dtype))
    if y.dtype.is_floating:
        return as_type(apply(E.pow_, as_type(x, y.dtype), y), x.dtype)
    if x.dtype.is_floating:
        return apply(E.pow_, x, as_type(y, x.dtype))
    wide = D.int64
    return as_type(apply(E.pow_, as_type(x, wide), as_type(y, wide)), x.dtype)


@rule("BitShift")
def _shift(op: Operation, x: Tensor, y: Tensor) -> Tensor:
    return apply(E.shift_left if op.get("direction") == "LEFT" else E.shift_right, x, y)


@rule("IsInf")
def _is_inf(op: Operation, x: Tensor) -> Tensor:
    found = apply(E.is_inf, x)
    for name, comparison in (("detect_negative", E.gt), ("detect_positive", E.lt)):
        if not op.get(name, 1):
            found = apply(E.logical_and, found, apply(comparison, x, scalar(0, x)))
    return found


@rule("Reciprocal")
def _reciprocal(op: Operation, x: Tensor) -> Tensor:
    return apply(E.div, scalar(1, x), x)


def _folded(primitive: Any) -> Any:
    def several(op: Operation, *operands: Tensor) -> Tensor:
        found = operands[0]
        for operand in operands[1:]:
            found = apply(primitive, found, operand)
        return found

    return several


rule("Sum")(_folded(E.add))
rule("Max")(_folded(E.maximum))
rule("Min")(_folded(E.minimum))


@rule("Mean")
def _mean(op: Operation, *operands: Tensor) -> Tensor:
    total: Tensor = _folded(E.add)(op, *operands)
    return apply(E.div, total, scalar(len(operands), total))


@rule("Where")
def _where(op: Operation, condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return select(condition, x, y)


@rule("Clip")
def _clip(op: Operation, x: Tensor, low: Any = None, high: Any = None) -> Tensor:
    # The upper limit wins where the two contradict each other.
    if low is not None:
        x = apply(E.maximum, x, as_type(low, x.dtype))
    return x if high is None else apply(E.minimum, x, as_type(high, x.dtype))


# Activations.


def _wide(x: Tensor) -> Tensor:
    """Return a tensor of float32 where it is of 16 bits."""
    return as_type(x, D.float32) if x.dtype.itemsize < 4 else x


@rule("Relu")
def _relu(op: Operation, x: Tensor) -> Tensor:
    return ops.relu(x) if x.dtype.is_floating else apply(E.maximum, x, scalar(0, x))


@rule("LeakyRelu")
def _leaky_relu(op: Operation, x: Tensor) -> Tensor:
    return leaky(x, op.get("alpha", 0.01))


def leaky(x: Tensor, slope: float) -> Tensor:
    """Return x above 0 and x times a slope below."""
    return select(apply(E.lt, x, scalar(0, x)), apply(E.mul, x, scalar(slope, x)), x)


@rule("PRelu")
def _prelu(op: Operation, x: Tensor, slope: Tensor) -> Tensor:
    return select(apply(E.lt, x, scalar(0, x)), apply(E.mul, x, slope), x)


@rule("Elu")
def _elu(op: Operation, x: Tensor) -> Tensor:
    return elu(x, op.get("alpha", 1.0))


def elu(x: Tensor, alpha: float, scale: float = 1.0) -> Tensor:
    """Return x above 0 and ``alpha * (exp(x) - 1)`` below, times `scale`."""
    zero = scalar(0, x)
    below = apply(E.mul, apply(E.expm1, apply(E.minimum, x, zero)), scalar(alpha, x))
    found = select(apply(E.gt, x, zero), x, below)
    return found if scale == 1.0 else apply(E.mul, found, scalar(scale, x))


@rule("Selu")
def _selu(op: Operation, x: Tensor) -> Tensor:
    return elu(x, op.get("alpha", 1.67326319217681884765625), op.get("gamma", 1.05070102214813232421875))


@rule("Celu")
def _celu(op: Operation, x: Tensor) -> Tensor:
    alpha = op.get("alpha", 1.0)
    zero, a = scalar(0, x), scalar(alpha, x)
    below = apply(E.mul, a, apply(E.expm1, apply(E.div, apply(E.minimum, x, zero), a)))
    return apply(E.add, apply(E.maximum, x, zero), below)


@rule("Softplus")
def _softplus(op: Operation, x: Tensor) -> Tensor:
    return softplus(x)


def softplus(x: Tensor) -> Tensor:
    """Return log(1 + exp(x)), without overflow."""
    return activation._softplus(x)


@rule("Softsign")
def _softsign(op: Operation, x: Tensor) -> Tensor:
    return apply(E.div, x, apply(E.add, scalar(1, x), apply(E.abs_, x)))


@rule("HardSigmoid")
def _hard_sigmoid(op: Operation, x: Tensor) -> Tensor:
    return hard_sigmoid(x, op.get("alpha", 0.2), op.get("beta", 0.5))


def hard_sigmoid(x: Tensor, alpha: float, beta: float) -> Tensor:
    """Return ``alpha * x + beta``, cut to 0 to 1."""
    line = apply(E.add, apply(E.mul, x, scalar(alpha, x)), scalar(beta, x))
    return apply(E.minimum, apply(E.maximum, line, scalar(0, x)), scalar(1, x))


@rule("HardSwish")
def _hard_swish(op: Operation, x: Tensor) -> Tensor:
    return apply(E.mul, x, hard_sigmoid(x, 1 / 6, 0.5))


@rule("Swish")
def _swish(op: Operation, x: Tensor) -> Tensor:
    return swish(x, op.get("alpha", 1.0))


def swish(x: Tensor, alpha: float = 1.0) -> Tensor:
    """Return x times the sigmoid of ``alpha * x``."""
    return apply(E.mul, x, apply(E.sigmoid, x if alpha == 1.0 else apply(E.mul, x, scalar(alpha, x))))


@rule("SwiGLU")
def _swiglu(op: Operation, gate: Tensor, x: Tensor) -> Tensor:
    return apply(E.mul, swish(gate, op.get("alpha", 1.0)), x)


@rule("Mish")
def _mish(op: Operation, x: Tensor) -> Tensor:
    return apply(E.mul, x, apply(E.tanh, softplus(x)))


@rule("Gelu")
def _gelu(op: Operation, x: Tensor) -> Tensor:
    return ops.gelu(x, approximate=op.get("approximate", "none"))


@rule("ThresholdedRelu")
def _thresholded(op: Operation, x: Tensor) -> Tensor:
    return thresholded(x, op.get("alpha", 1.0))


def thresholded(x: Tensor, limit: float) -> Tensor:
    """Return x above a limit, and 0 elsewhere."""
    return select(apply(E.gt, x, scalar(limit, x)), x, scalar(0, x))


@rule("Shrink")
def _shrink(op: Operation, x: Tensor) -> Tensor:
    kind, bias, limit = x.dtype, op.get("bias", 0.0), op.get("lambd", 0.5)
    y = x if kind.is_floating else as_type(x, D.float32)
    low = apply(E.lt, y, scalar(-limit, y))
    high = apply(E.gt, y, scalar(limit, y))
    shrunk = select(high, apply(E.sub, y, scalar(bias, y)), scalar(0, y))
    return as_type(select(low, apply(E.add, y, scalar(bias, y)), shrunk), kind)


def _flat(op: Operation, x: Tensor, function: Any) -> Tensor:
    """Apply a function along the last axis, or as before version 13 along all from an axis on."""

    def plain(y: Tensor, along: int) -> Tensor:
        made: Tensor = function(y, along)
        return made

    axis = op.get("axis", -1)
    axis = axis + x.ndim if axis < 0 else axis
    if not op.get("flattened"):
        return plain(x, axis)
    shape = tuple(x.shape)
    rows, columns = math.prod(shape[:axis]), math.prod(shape[axis:])
    return reshaped(plain(reshaped(x, (rows, columns)), 1), shape)


@rule("Softmax")
def _softmax(op: Operation, x: Tensor) -> Tensor:
    return _flat(op, x, lambda y, axis: as_type(ops.softmax(_wide(y), axis), x.dtype))


@rule("LogSoftmax")
def _log_softmax(op: Operation, x: Tensor) -> Tensor:
    return _flat(op, x, lambda y, axis: as_type(ops.log_softmax(_wide(y), axis), x.dtype))


@rule("Hardmax")
def _hardmax(op: Operation, x: Tensor) -> Tensor:
    def largest(y: Tensor, axis: int) -> Tensor:
        places = apply(R.argmax, y, axis=axis)
        order = same(np.arange(y.shape[axis]), places.dtype)
        order = reshaped(order, [y.shape[axis] if i == axis else 1 for i in range(y.ndim)])
        kept = reshaped(places, [1 if i == axis else n for i, n in enumerate(y.shape)])
        return as_type(apply(E.eq, order, kept), x.dtype)

    return _flat(op, x, largest)
