"""ONNX's quantisation operators, and products of quantised tensors.

What is quantised to types that tensors have no elements of is an array.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel import ops
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims.neural import quantisation
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import from_any
from mycel._src.tensors.core.tensor import Tensor
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
from mycel.formats.onnx.rules.convolution_pooling import convolved, windows_of

__all__ = ["known_zero", "stepped", "sums_of_product"]
# The types of levels that there are primitives for, and of what they stand for.
_STEPS = ("int8", "uint8", "int16")
_FLOATS = (D.float32, D.float64)


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
    sizes = as_type(_spread(op, scale, x), precise)
    if kind.name in _STEPS and as_type(x, precise).dtype in _FLOATS:
        offset = scalar(0, sizes) if zero is None else as_type(_spread(op, tensor(zero), x), precise)
        low, high = _limits(kind)
        more = {"low": low, "high": high, "ties": "even", "dtype": from_any(kind)}
        return apply(quantisation.quantize, as_type(x, precise), sizes, offset, **more)
    quotient = apply(E.div, as_type(x, precise), sizes)
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
    if isinstance(x, np.ndarray) and x.dtype.name in ("int4", "uint4", "int2", "uint2"):
        x = x.astype(np.int8)
    if np.dtype(getattr(x.dtype, "numpy", x.dtype)).name in (*_STEPS, "int32") and from_any(wide) in _FLOATS:
        sizes = _spread(op, _number(op, scale, wide), x)
        offset = scalar(0, sizes) if zero is None else _spread(op, _number(op, zero, wide), x)
        return as_type(apply(quantisation.dequantize, tensor(x), sizes, offset), kind)
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


@rule("QLinearMatMul", raw=True)
def _qlinear_matmul(
    op: Operation,
    x: Any,
    x_scale: Any,
    x_zero: Any,
    y: Any,
    y_scale: Any,
    y_zero: Any,
    scale: Any,
    zero: Any,
) -> Tensor:
    x, y, x_scale, y_scale, scale = (tensor(v) for v in (x, y, x_scale, y_scale, scale))

    def line(v: Tensor, axis: int) -> Tensor:
        if all(n == 1 for n in v.shape):
            return reshaped(v, ())
        return v if v.ndim != 1 else reshaped(v, (v.shape[0], 1) if axis == -2 else v.shape)

    factor = apply(E.div, apply(E.mul, line(x_scale, -2), line(y_scale, -1)), reshaped(scale, ()))
    return stepped(sums_of_product(x, x_zero, y, y_zero), factor, zero)


def sums_of_product(x: Tensor, x_zero: Any, y: Tensor, y_zero: Any) -> Tensor:
    """Return a product of matrices of levels, `x` and `y`, in int32.

    `x_zero` and `y_zero` are their zero points.
    """
    whole = known_zero(x_zero)
    if whole is None or x.ndim < 2 or y.ndim < 2:
        return ops.matmul(_shifted(x, tensor(x_zero), D.int32, -2), _shifted(y, tensor(y_zero), D.int32, -1))
    return apply(quantisation.int_matmul, x, centred(y, y_zero, -1), a_zero=whole, b_zero=0)


def sums_of_conv(op: Operation, x: Tensor, x_zero: Any, w: Tensor, w_zero: Any) -> Tensor:
    """Return a convolution of levels as whole numbers: in integers where the zero point of `x` is
    known, else in float64.

    `op` is the operation of the file, `w` are its weights, `x_zero` and `w_zero` the zero points.
    """
    at = windows_of(op, x.shape[2:], w.shape[2:])
    plain = all(isinstance(p, int) and p >= 0 for pair in at.padding for p in pair)
    whole = known_zero(x_zero)
    if whole is None or not plain or x.ndim > 5:
        return _convolution(op, x, w, tensor(x_zero), tensor(w_zero))
    return apply(
        quantisation.int_conv,
        x,
        centred(w, w_zero, 0),
        zero=whole,
        strides=at.strides,
        padding=at.padding,
        dilation=at.dilations,
        groups=op.get("group", 1),
    )


def known_zero(zero: Any) -> int | None:
    """Return a zero point that is one known number; None for another."""
    if zero is None:
        return 0
    known = isinstance(zero, np.ndarray) and zero.dtype.kind in "iu" and zero.size == 1
    return int(zero.reshape(-1)[0]) if known else None


def centred(w: Tensor, zero: Any, axis: int) -> Tensor:
    """Return weights less their zero points, in 8 bits where these are 0, else in 16."""
    if zero is None or (isinstance(zero, np.ndarray) and not zero.any()):
        return w
    return as_type(_shifted(w, tensor(zero), D.int32, axis), D.int16)


def stepped(total: Tensor, factor: Tensor, zero: Any) -> Tensor:
    """Return sums in levels of another scale, `factor` of theirs, of the type of its zero point."""
    kind = np.dtype(getattr(zero.dtype, "numpy", zero.dtype))
    if total.dtype is not D.int32:
        return _requantized(total, as_type(factor, D.float64), tensor(zero))
    low, high = _limits(kind)
    real = apply(quantisation.dequantize, total, factor, scalar(0, factor))
    one, offset = scalar(1, factor), as_type(reshaped(tensor(zero), ()), factor.dtype)
    return apply(quantisation.quantize, real, one, offset, low=low, high=high, ties="even", dtype=from_any(kind))


@rule("QLinearConv", raw=True)
def _qlinear_conv(
    op: Operation,
    x: Any,
    x_scale: Any,
    x_zero: Any,
    w: Any,
    w_scale: Any,
    w_zero: Any,
    scale: Any,
    zero: Any,
    bias: Any = None,
) -> Tensor:
    x, w, x_scale, w_scale, scale, bias = (tensor(v) for v in (x, w, x_scale, w_scale, scale, bias))
    total = sums_of_conv(op, x, x_zero, w, w_zero)
    form = [1] * (x.ndim - 2)
    if bias is not None:
        total = apply(E.add, total, reshaped(as_type(bias, total.dtype), (bias.shape[0], *form)))
    by = reshaped(w_scale, (w_scale.shape[0], *form) if w_scale.ndim == 1 and w_scale.shape[0] != 1 else ())
    factor = apply(E.div, apply(E.mul, reshaped(x_scale, ()), by), reshaped(scale, ()))
    return stepped(total, factor, zero)


@rule("BitCast", raw=True)
def _bit_cast(op: Operation, x: Any) -> Any:
    kind = kind_of(op.get("to"), op)
    given = array(x)
    if given.dtype.itemsize != kind.itemsize:
        raise op.wrong(f"the bits of {given.dtype} are not as many as those of {kind}")
    return np.ascontiguousarray(given).view(kind).reshape(given.shape)
