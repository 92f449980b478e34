"""Whole numbers that stand for others: quantisation, and products of quantised tensors.

What is quantised to types that tensors have no elements of is an array.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel import ops
from mycel.base import dtype as D
from mycel.core.tensor import Tensor
from mycel.formats.onnx.operation import (
    Array,
    Operation,
    apply,
    array,
    as_type,
    broadcast,
    has_tensor,
    kind_of,
    reshaped,
    rule,
    scalar,
    sliced,
    tensor,
)
from mycel.formats.onnx.rules.casts import converted
from mycel.formats.onnx.rules.windows import convolved
from mycel.prims import elementwise as E
from mycel.prims import reduce as R

__all__: list[str] = []


def _spread(op: Operation, small: Tensor, x: Any) -> Tensor:
    """Return scales or zero points with one entry for each entry of `x`, up to broadcasting."""
    if small.ndim == 0 or all(n == 1 for n in small.shape):
        return reshaped(small, ())
    axis = op.get("axis", 1) % len(x.shape)
    if small.ndim == 1 and not op.get("block_size", 0):
        return reshaped(small, [small.shape[0] if i == axis else 1 for i in range(len(x.shape))])
    size = op.get("block_size", 0) or -(-x.shape[axis] // small.shape[axis])
    shape = tuple(small.shape)
    wide = broadcast(
        reshaped(small, (*shape[: axis + 1], 1, *shape[axis + 1 :])),
        (*shape[: axis + 1], size, *shape[axis + 1 :]),
    )
    wide = reshaped(wide, (*shape[:axis], shape[axis] * size, *shape[axis + 1 :]))
    return sliced(wide, axis, 0, x.shape[axis])


def _limits(kind: Any) -> tuple[int, int]:
    name = np.dtype(kind).name
    if name in ("int4", "uint4", "int2", "uint2"):
        bits = int(name[-1])
        return (-(1 << bits - 1), (1 << bits - 1) - 1) if name[0] == "i" else (0, (1 << bits) - 1)
    info = np.iinfo(kind)
    return int(info.min), int(info.max)


@rule("QuantizeLinear", raw=True)
def _quantize(op: Operation, x: Any, scale: Any, zero: Any = None) -> Any:
    if zero is not None:
        kind = np.dtype(getattr(zero.dtype, "numpy", zero.dtype))
    else:
        kind = kind_of(op.get("output_dtype", 0) or 2, op)
    x, scale = tensor(x), tensor(scale) if _has(scale) else tensor(_floats(array(scale)))
    code = op.get("precision", 0)
    precise = kind_of(code, op) if code else D.float32 if scale.dtype.itemsize < 4 or not _has(scale) else scale.dtype
    quotient = apply(E.div, as_type(x, precise), as_type(_spread(op, scale, x), precise))
    if kind.kind not in "iu" and not kind.name.startswith(("int", "uint")):
        return converted(op, quotient, kind, bool(op.get("saturate", 1)))
    found = apply(E.rint, quotient)
    if zero is not None:
        offset = as_type(tensor(_whole(zero)), found.dtype)
        found = apply(E.add, found, _spread(op, offset, x))
    low, high = _limits(kind)
    found = apply(E.minimum, apply(E.maximum, found, scalar(low, found)), scalar(high, found))
    return converted(op, found, kind)


def _has(value: Any) -> bool:
    return not isinstance(value, np.ndarray) or has_tensor(value.dtype)


def _floats(value: Array) -> Array:
    return value.astype(np.float32)


def _whole(value: Any) -> Any:
    """Return whole numbers of a type of less than a byte in a type that tensors have."""
    return value if _has(value) else value.astype(np.int32)


def _number(op: Operation, value: Any, kind: Any) -> Tensor:
    """Return a quantised value as numbers of a floating type."""
    if isinstance(value, np.ndarray) and not has_tensor(value.dtype):
        return as_type(tensor(_floats(value)), kind)
    found = tensor(value)
    return as_type(found, kind)


@rule("DequantizeLinear", raw=True)
def _dequantize(op: Operation, x: Any, scale: Any, zero: Any = None) -> Any:
    code = op.get("output_dtype", 0)
    source = np.dtype(getattr(scale.dtype, "numpy", scale.dtype))
    kind = kind_of(code, op) if code else source if has_tensor(source) else np.dtype(np.float32)
    wide = D.float32 if np.dtype(kind).itemsize < 4 else kind
    values = _number(op, x, wide)
    if zero is not None:
        values = apply(E.sub, values, _spread(op, _number(op, zero, wide), x))
    found = apply(E.mul, values, _spread(op, _number(op, scale, wide), x))
    return as_type(found, kind)


@rule("DynamicQuantizeLinear")
def _dynamic(op: Operation, x: Tensor) -> Any:
    zero = scalar(0, x)
    axes = tuple(range(x.ndim))
    low = apply(E.minimum, apply(R.reduce_min, x, axes=axes, keepdims=False), zero)
    high = apply(E.maximum, apply(R.reduce_max, x, axes=axes, keepdims=False), zero)
    scale = apply(E.div, apply(E.sub, high, low), scalar(255, x))
    safe = ops.where(apply(E.eq, scale, zero), scalar(1, x), scale)
    middle = _byte(apply(E.rint, apply(E.neg, apply(E.div, low, safe))))
    found = _byte(apply(E.add, apply(E.rint, apply(E.div, x, safe)), middle))
    return as_type(found, D.uint8), scale, as_type(middle, D.uint8)


def _byte(x: Tensor) -> Tensor:
    return apply(E.minimum, apply(E.maximum, x, scalar(0, x)), scalar(255, x))


def _shifted(x: Tensor, zero: Any, kind: Any, axis: int = 0) -> Tensor:
    """Return numbers less their zero point, which is one, or one for each entry of an axis."""
    wide = as_type(x, kind)
    if zero is None:
        return wide
    offset = as_type(zero, kind)
    if offset.ndim == 1:
        offset = reshaped(offset, [offset.shape[0] if i == axis % x.ndim else 1 for i in range(x.ndim)])
    return apply(E.sub, wide, offset)


@rule("MatMulInteger")
def _matmul_integer(op: Operation, x: Tensor, y: Tensor, x_zero: Any = None, y_zero: Any = None) -> Tensor:
    return ops.matmul(_shifted(x, x_zero, D.int32, -2), _shifted(y, y_zero, D.int32, -1))


def _convolution(op: Operation, x: Tensor, w: Tensor, x_zero: Any, w_zero: Any) -> Tensor:
    """Return a convolution of whole numbers, which float64 holds exactly."""
    return convolved(op, _shifted(x, x_zero, D.float64), _shifted(w, w_zero, D.float64, 0))


@rule("ConvInteger")
def _conv_integer(op: Operation, x: Tensor, w: Tensor, x_zero: Any = None, w_zero: Any = None) -> Tensor:
    return as_type(_convolution(op, x, w, x_zero, w_zero), D.int32)


def _requantized(total: Tensor, factor: Tensor, zero: Tensor) -> Tensor:
    found = apply(E.rint, apply(E.mul, total, factor))
    found = apply(E.add, found, as_type(zero, found.dtype))
    low, high = _limits(zero.dtype.numpy)
    found = apply(E.minimum, apply(E.maximum, found, scalar(low, found)), scalar(high, found))
    return as_type(found, zero.dtype)


@rule("QLinearMatMul")
def _qlinear_matmul(
    op: Operation,
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor,
    y: Tensor,
    y_scale: Tensor,
    y_zero: Tensor,
    scale: Tensor,
    zero: Tensor,
) -> Tensor:
    total = ops.matmul(_shifted(x, x_zero, D.int32, -2), _shifted(y, y_zero, D.int32, -1))

    def line(v: Tensor, axis: int) -> Tensor:
        v = as_type(v, D.float64)
        return v if v.ndim != 1 or v.shape[0] == 1 else reshaped(v, (v.shape[0], 1) if axis == -2 else v.shape)

    factor = apply(E.div, apply(E.mul, line(x_scale, -2), line(y_scale, -1)), as_type(scale, D.float64))
    return _requantized(as_type(total, D.float64), factor, zero)


@rule("QLinearConv")
def _qlinear_conv(
    op: Operation,
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor,
    w: Tensor,
    w_scale: Tensor,
    w_zero: Tensor,
    scale: Tensor,
    zero: Tensor,
    bias: Any = None,
) -> Tensor:
    total = _convolution(op, x, w, x_zero, w_zero)
    form = (-1, *[1] * (x.ndim - 2))
    if bias is not None:
        total = apply(E.add, total, reshaped(as_type(bias, D.float64), (bias.shape[0], *form[1:])))
    by = as_type(w_scale, D.float64)
    by = reshaped(by, (by.shape[0], *form[1:])) if by.ndim == 1 and by.shape[0] != 1 else reshaped(by, ())
    factor = apply(E.div, apply(E.mul, as_type(x_scale, D.float64), by), as_type(scale, D.float64))
    return _requantized(total, factor, zero)


@rule("BitCast", raw=True)
def _bit_cast(op: Operation, x: Any) -> Any:
    kind = kind_of(op.get("to"), op)
    given = array(x)
    if given.dtype.itemsize != kind.itemsize:
        raise op.wrong(f"the bits of {given.dtype} are not as many as those of {kind}")
    return np.ascontiguousarray(given).view(kind).reshape(given.shape)
