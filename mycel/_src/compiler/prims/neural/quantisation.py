"""Quantisation: real numbers as integers with a scale and a zero point, and integer arithmetic.

With a scale S and a zero point Z, the integer q (a *level*) stands for the real (q - Z) * S:

    quantize      q = clip(round(x / S) + Z, low, high), as an integer
    dequantize    (q - Z) * S
    fake_quant    the second of the first, in floats

S and Z broadcast against x, so that each channel may have its own. `ties` says how halves are
rounded: to "even", or "away" from zero as C's round does. NaN is the lowest level. The derivative
of `fake_quant` takes rounding for the identity (straight through): a cotangent passes where the
level was not clipped, and the scale's is that of the learned step size (Esser et al., 2020).

Sums of products of integers are exact in 32 bits; `requantize` takes such sums to another scale by
a multiplier of 31 bits and a shift, which stand for the real number multiplier * 2**(shift - 31).
Its `rounding` is "single" (a half is rounded up, once) or "double": bit for bit that of TFLite's
kernels, which round the product to 32 bits and then the shift. Operations of integers have no
derivative: `straight_through` gives a value that was computed with integers that of the same
computation in floats, which is never run for its value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.ir.dims import same as same_shape
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import matrix_product
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import (
    Primitive,
    Sample,
    batch_elementwise,
    broadcast_shapes,
    constant,
    need_kind,
    register,
    same_dtype,
)
from mycel._src.compiler.prims.convolution import conv
from mycel._src.compiler.prims.convolution.conv_factors import conv_factors
from mycel._src.compiler.prims.elementwise_records import unbroadcast
from mycel._src.compiler.prims.factors import Factor, elementwise_factors, named
from mycel._src.foundation import arguments
from mycel._src.foundation.dtype import DType, float32, int8, int16, int32, int64, uint8

__all__ = ["LEVELS", "dequantize", "fake_quant", "int_conv", "int_matmul", "quantize", "requantize", "straight_through"]

# The types that levels have; sums of them have int32.
LEVELS = (int8, uint8, int16)
TIES = ("even", "away")
ROUNDINGS = ("single", "double")
_FLOATS = ("float32", "float64")


def _need_levels(name: str, dtype: DType, allowed: tuple[DType, ...]) -> None:
    if dtype not in allowed:
        raise TypeError(f"{name}: levels are {', '.join(d.name for d in allowed)}, not {dtype.name}")


def _need_range(name: str, low: int, high: int, dtype: DType | None = None) -> None:
    if not low < high:
        raise ValueError(f"{name}: low must be below high, not {low} and {high}")
    if dtype is not None:
        ends = np.iinfo(dtype.numpy)
        if low < ends.min or high > ends.max:
            raise ValueError(f"{name}: {dtype.name} does not hold the levels from {low} to {high}")


def _common(name: str, *types: TensorType) -> TensorType:
    """Return the type of the first with the shape to which all broadcast."""
    return types[0].with_shape(broadcast_shapes(*[t.shape for t in types], name=name))


def _nearest(v: Node, ties: str) -> Node:
    if ties == "even":
        return E.rint(v)
    whole = E.trunc(v)
    return E.add(whole, E.select(E.ge(E.abs_(E.sub(v, whole)), 0.5), E.sign(v), E.zero_like(v)))


def _round(v: Any, ties: str) -> Any:
    if ties == "even":
        return np.rint(v)
    whole = np.trunc(v)
    return (whole + np.where(np.abs(v - whole) >= 0.5, np.sign(v), 0)).astype(v.dtype)


# fake_quant.


def _fake_infer(x: TensorType, scale: TensorType, zero: TensorType, *, low: int, high: int, ties: str) -> TensorType:
    need_kind("fake_quant", "f", x)
    same_dtype("fake_quant", x, scale, zero)
    arguments.one_of("fake_quant", "ties", ties, TIES)
    _need_range("fake_quant", low, high)
    return _common("fake_quant", x, scale, zero)


def _fake_reference(x: Any, scale: Any, zero: Any, *, low: int, high: int, ties: str) -> Any:
    with np.errstate(all="ignore"):
        levels = np.minimum(np.maximum(_round(x / scale, ties) + zero, x.dtype.type(low)), x.dtype.type(high))
        return ((levels - zero) * scale).astype(x.dtype)


def _fake_expand(x: Node, scale: Node, zero: Node, *, low: int, high: int, ties: str) -> Node:
    levels = E.minimum(E.maximum(E.add(_nearest(E.div(x, scale), ties), zero), float(low)), float(high))
    return E.mul(E.sub(levels, zero), scale)


def _fake_vjp(
    ct: Node, out: Node, x: Node, scale: Node, zero: Node, *, low: int, high: int, ties: str
) -> tuple[Node, Node, Node]:
    real = E.div(x, scale)
    levels = E.add(_nearest(real, ties), zero)
    inside = E.logical_and(E.ge(levels, float(low)), E.le(levels, float(high)))
    found = E.sub(E.minimum(E.maximum(levels, float(low)), float(high)), zero)
    by_scale = E.mul(ct, E.select(inside, E.sub(found, real), found))
    by_zero = E.select(inside, E.zero_like(ct), E.neg(E.mul(ct, scale)))
    by_x = E.select(inside, ct, E.zero_like(ct))
    return unbroadcast(by_x, x), unbroadcast(by_scale, scale), unbroadcast(by_zero, zero)


_SHAPES: tuple[Any, ...] = (((2, 3), (), ()), ((2, 3), (2, 1), (2, 1)), ((0, 2), (), ()))


def _scaled(**params: Any) -> tuple[Sample, ...]:
    """Return samples of values with a scale above zero."""
    return tuple(
        Sample(shapes, {**params, "ties": ties}, domain=(0.1, 3.0), differentiable=False)
        for shapes in _SHAPES
        for ties in TIES
    )


fake_quant: Primitive = register(
    Primitive(
        "fake_quant",
        _fake_infer,
        _fake_reference,
        _fake_vjp,
        lambda size, values, axes, **p: batch_elementwise(fake_quant, size, values, axes, p),
        _fake_expand,
        samples=_scaled(low=-7, high=4),
        dtypes=_FLOATS,
        elementwise=True,
        factors=elementwise_factors,
        doc="Values as the nearest levels of a scale, in floats; the derivative passes straight through.",
    )
)


# quantize and dequantize.


def _quantize_infer(
    x: TensorType, scale: TensorType, zero: TensorType, *, low: int, high: int, ties: str, dtype: DType
) -> TensorType:
    need_kind("quantize", "f", x)
    same_dtype("quantize", x, scale, zero)
    arguments.one_of("quantize", "ties", ties, TIES)
    _need_levels("quantize", dtype, LEVELS)
    _need_range("quantize", low, high, dtype)
    return _common("quantize", x, scale, zero).with_dtype(dtype)


def _quantize_reference(x: Any, scale: Any, zero: Any, *, low: int, high: int, ties: str, dtype: DType) -> Any:
    with np.errstate(all="ignore"):
        levels = _round(x / scale, ties) + zero
        return np.where(levels >= low, np.minimum(levels, high), low).astype(dtype.numpy)


def _quantize_expand(x: Node, scale: Node, zero: Node, *, low: int, high: int, ties: str, dtype: DType) -> Node:
    levels = E.add(_nearest(E.div(x, scale), ties), zero)
    levels = E.select(E.ge(levels, float(low)), E.minimum(levels, float(high)), constant(float(low), x.dtype))
    return E.cast(levels, dtype=dtype)


quantize: Primitive = register(
    Primitive(
        "quantize",
        _quantize_infer,
        _quantize_reference,
        lambda ct, out, x, scale, zero, **_: (None, None, None),
        lambda size, values, axes, **p: batch_elementwise(quantize, size, values, axes, p),
        _quantize_expand,
        samples=(
            *_scaled(low=-128, high=127, dtype=int8),
            *_scaled(low=0, high=9, dtype=uint8),
            *_scaled(low=-300, high=4, dtype=int16),
        ),
        dtypes=_FLOATS,
        elementwise=True,
        factors=elementwise_factors,
        doc="The nearest level of a scale, as an integer; NaN is the lowest.",
    )
)


def _dequantize_infer(q: TensorType, scale: TensorType, zero: TensorType) -> TensorType:
    _need_levels("dequantize", q.dtype, (*LEVELS, int32))
    need_kind("dequantize", "f", scale, zero)
    same_dtype("dequantize", scale, zero)
    return _common("dequantize", q, scale, zero).with_dtype(scale.dtype)


def _dequantize_vjp(ct: Node, out: Node, q: Node, scale: Node, zero: Node) -> tuple[None, Node, Node]:
    levels = E.sub(E.cast(q, dtype=scale.dtype), zero)
    return None, unbroadcast(E.mul(ct, levels), scale), unbroadcast(E.neg(E.mul(ct, scale)), zero)


dequantize: Primitive = register(
    Primitive(
        "dequantize",
        _dequantize_infer,
        lambda q, scale, zero: ((q.astype(scale.dtype) - zero) * scale).astype(scale.dtype),
        _dequantize_vjp,
        lambda size, values, axes, **p: batch_elementwise(dequantize, size, values, axes, p),
        lambda q, scale, zero: E.mul(E.sub(E.cast(q, dtype=scale.dtype), zero), scale),
        samples=tuple(
            Sample(shapes, dtypes=(levels, "*", "*"), integers=(0, 100), domain=(0.1, 3.0))
            for levels, shapes in zip(("int8", "uint8", "int16", "int32"), (*_SHAPES, _SHAPES[0]))
        ),
        dtypes=_FLOATS,
        elementwise=True,
        factors=elementwise_factors,
        doc="The real numbers that levels of a scale stand for.",
    )
)


# Sums of products.


def _matmul_infer(a: TensorType, b: TensorType, *, a_zero: int, b_zero: int) -> TensorType:
    for t, zero in ((a, a_zero), (b, b_zero)):
        _need_levels("int_matmul", t.dtype, LEVELS)
        _need_zero("int_matmul", zero, t.dtype)
    found: TensorType = matrix_product.matmul.type_of(a.with_dtype(int32), b.with_dtype(int32))
    return found


def _need_zero(name: str, zero: int, dtype: DType) -> None:
    ends = np.iinfo(dtype.numpy)
    if not ends.min <= zero <= ends.max:
        raise ValueError(f"{name}: the zero point {zero} is no {dtype.name}")


def _whole(x: Node, zero: int) -> Node:
    """Return levels as int32 numbers with their zero at 0."""
    wide = E.cast(x, dtype=int32)
    return E.sub(wide, zero) if zero else wide


def _matmul_batch(size: Any, values: Any, axes: Any, **params: Any) -> Any:
    rank = max(v.type.rank - (ax is not None) for v, ax in zip(values, axes))
    moved = []
    for v, ax in zip(values, axes):
        if ax is not None:
            v = S.move_axis(v, ax, 0)
            v = S.reshape(v, (v.shape[0],) + (1,) * (rank - v.type.rank + 1) + tuple(v.shape[1:]))
        moved.append(v)
    return int_matmul(*moved, **params), 0


def _matmul_factors(node: Node) -> tuple[Factor, ...]:
    rank, zeros = node.type.rank, (node.params["a_zero"], node.params["b_zero"])
    lead = [range(rank - i.type.rank, rank - 2) for i in node.inputs]
    labels = [(*lead[0], "row", "inner"), (*lead[1], "inner", "column")]
    return named(node, labels, [(*range(rank - 2), "row", "column")], {"inner": "sum"}, padding={"inner": zeros})


int_matmul: Primitive = register(
    Primitive(
        "int_matmul",
        _matmul_infer,
        lambda a, b, *, a_zero, b_zero: np.matmul(a.astype(np.int32) - a_zero, b.astype(np.int32) - b_zero),
        lambda ct, out, a, b, **_: (None, None),
        _matmul_batch,
        lambda a, b, *, a_zero, b_zero: matrix_product.matmul(_whole(a, a_zero), _whole(b, b_zero)),
        samples=(
            Sample(((3, 4), (4, 5)), {"a_zero": 0, "b_zero": 0}, dtypes=("int8", "int8")),
            Sample(((2, 3, 40), (40, 2)), {"a_zero": 3, "b_zero": 0}, dtypes=("uint8", "int8"), integers=(0, 100)),
            Sample(((2, 1, 3, 4), (5, 4, 2)), {"a_zero": -2, "b_zero": 5}, dtypes=("int8", "int8")),
            Sample(((0, 4), (4, 2)), {"a_zero": 1, "b_zero": 0}, dtypes=("int8", "int8")),
            Sample(((2, 4), (4, 3)), {"a_zero": 0, "b_zero": 0}, dtypes=("int16", "int8"), integers=(-100, 100)),
        ),
        dtypes=("int8",),
        factors=_matmul_factors,
        work=lambda node, number: 2 * number(node.type.size) * number(node.inputs[0].type.shape[-1]),
        doc="(a - a_zero) @ (b - b_zero) of levels, in int32.",
    )
)


def _conv_infer(
    x: TensorType, w: TensorType, *, strides: Any, padding: Any, dilation: Any, groups: DimLike, zero: int
) -> TensorType:
    for t in (x, w):
        _need_levels("int_conv", t.dtype, LEVELS)
    _need_zero("int_conv", zero, x.dtype)
    wide = conv._check("int_conv", x.with_dtype(float32), w.with_dtype(float32), strides, padding, dilation, groups)
    return wide.with_dtype(int32)


def _conv_reference(x: Any, w: Any, *, zero: int, **p: Any) -> Any:
    return conv._reference(x.astype(np.int32) - zero, w.astype(np.int32), **p)


def _conv_batch(size: Any, values: Any, axes: Any, *, groups: Any, **p: Any) -> Any:
    (x, w), (ax, aw) = values, axes
    if aw is None:
        return conv._unfold_images(int_conv(conv._fold_images(x, ax), w, groups=groups, **p), size), 0
    both = ax is not None
    x = conv._fold_channels(x, ax, groups, True) if both else x
    w = conv._fold_weight_outputs(w, aw, groups, both)
    y = int_conv(x, w, groups=size * groups if both else groups, **p)
    return conv._unfold_channels(y, size, groups, both), 0


def _conv_expand(x: Node, w: Node, *, zero: int, **p: Any) -> Node:
    return conv._expand(_whole(x, zero), _whole(w, 0), **p)


int_conv: Primitive = register(
    Primitive(
        "int_conv",
        _conv_infer,
        _conv_reference,
        lambda ct, out, x, w, **_: (None, None),
        _conv_batch,
        _conv_expand,
        samples=tuple(
            Sample((x, w), {**p, "zero": zero}, dtypes=(kind, "int8"), integers=ends)
            for (x, w, _, p), (kind, zero, ends) in zip(
                conv._CASES,
                (("int8", 3, (-5, 6)), ("uint8", 7, (0, 9)), ("int16", 0, (-99, 99)), ("int8", -2, (-5, 6))) * 2,
            )
        ),
        dtypes=("int8",),
        factors=conv_factors,
        work=lambda node, number: conv._work(node.type, node.inputs[1].type, number),
        doc="conv of levels less their zero point with whole weights, in int32.",
    )
)


# Other scales.


def _requantize_infer(
    total: TensorType,
    multiplier: TensorType,
    shift: TensorType,
    *,
    zero: int,
    low: int,
    high: int,
    rounding: str,
    dtype: DType,
) -> TensorType:
    for t in (total, multiplier, shift):
        _need_levels("requantize", t.dtype, (int32,))
    arguments.one_of("requantize", "rounding", rounding, ROUNDINGS)
    _need_levels("requantize", dtype, (*LEVELS, int32))
    _need_range("requantize", low, high, dtype)
    _need_zero("requantize", zero, dtype)
    return _common("requantize", total, multiplier, shift).with_dtype(dtype)


def _requantize_expand(
    total: Node, multiplier: Node, shift: Node, *, zero: int, low: int, high: int, rounding: str, dtype: DType
) -> Node:
    x, m, s = (E.cast(n, dtype=int64) for n in (total, multiplier, shift))
    if rounding == "single":
        places = E.sub(constant(31, int64), s)
        half = E.shift_left(constant(1, int64), E.sub(places, 1))
        found = E.shift_right(E.add(E.mul(x, m), half), places)
    else:
        left, right = E.maximum(s, 0), E.maximum(E.neg(s), 0)
        # The sum moved left is a number of 32 bits again.
        moved = E.cast(E.cast(E.shift_left(x, left), dtype=int32), dtype=int64)
        made = E.mul(moved, m)
        made = E.add(made, E.select(E.ge(made, 0), constant(1 << 30, int64), constant(1 - (1 << 30), int64)))
        made = E.shift_right(E.add(made, E.select(E.lt(made, 0), constant((1 << 31) - 1, int64), 0)), 31)
        made = E.minimum(made, (1 << 31) - 1)
        mask = E.sub(E.shift_left(constant(1, int64), right), 1)
        rest = E.bitwise_and(made, mask)
        limit = E.add(E.shift_right(mask, 1), E.cast(E.lt(made, 0), dtype=int64))
        found = E.add(E.shift_right(made, right), E.cast(E.gt(rest, limit), dtype=int64))
    return E.cast(E.minimum(E.maximum(E.add(found, zero), low), high), dtype=dtype)


def _requantize_reference(
    total: Any, multiplier: Any, shift: Any, *, zero: int, low: int, high: int, rounding: str, dtype: DType
) -> Any:
    x, m, s = (a.astype(np.int64) for a in (total, multiplier, shift))
    if rounding == "single":
        found = (x * m + (np.int64(1) << (30 - s))) >> (31 - s)
    else:
        moved = (x << np.maximum(s, 0)).astype(np.int32).astype(np.int64)
        made = moved * m
        made = made + np.where(made >= 0, np.int64(1 << 30), np.int64(1 - (1 << 30)))
        made = np.minimum(np.where(made < 0, -(-made >> 31), made >> 31), np.int64((1 << 31) - 1))
        right = np.maximum(-s, 0)
        mask = (np.int64(1) << right) - 1
        found = (made >> right) + ((made & mask) > (mask >> 1) + (made < 0))
    return np.clip(found + zero, low, high).astype(dtype.numpy)


def _rescaled() -> tuple[Sample, ...]:
    rng = np.random.default_rng(3)
    totals = rng.integers(-200_000, 200_000, (2, 3, 5)).astype(np.int32)
    whole = rng.integers(1 << 30, (1 << 31) - 1, (3, 1)).astype(np.int32)
    shifts = np.array([[-9], [-3], [1]], np.int32)
    ties = (np.arange(-10, 11) * 8).astype(np.int32)
    made = []
    for rounding in ROUNDINGS:
        wide: dict[str, Any] = {"rounding": rounding, "zero": 5, "low": -128, "high": 127, "dtype": int8}
        made.append(Sample((totals, whole, shifts), wide, dtypes=("int32",) * 3))
        half = (ties, np.array(1 << 30, np.int32), np.array(-3, np.int32))
        made.append(Sample(half, {**wide, "zero": 0}, dtypes=("int32",) * 3))
        made.append(Sample((np.zeros((0, 3, 1), np.int32), whole, shifts), wide, dtypes=("int32",) * 3))
    return tuple(made)


requantize: Primitive = register(
    Primitive(
        "requantize",
        _requantize_infer,
        _requantize_reference,
        lambda ct, out, total, multiplier, shift, **_: (None, None, None),
        lambda size, values, axes, **p: batch_elementwise(requantize, size, values, axes, p),
        _requantize_expand,
        samples=_rescaled(),
        dtypes=("int32",),
        elementwise=True,
        factors=elementwise_factors,
        doc="Sums as levels of another scale, by a multiplier of 31 bits and a shift.",
    )
)


# Values of integers with derivatives of floats.


def _through_infer(value: TensorType, stand_in: TensorType) -> TensorType:
    need_kind("straight_through", "f", value)
    same_dtype("straight_through", value, stand_in)
    if not same_shape(value.shape, stand_in.shape):
        raise TypeError(f"straight_through: the operands must have one shape, not {value} and {stand_in}")
    return value


def _through_batch(size: Any, values: Any, axes: Any) -> Any:
    both = [
        S.broadcast_to(v, (size, *v.shape)) if axis is None else S.move_axis(v, axis, 0)
        for v, axis in zip(values, axes)
    ]
    return straight_through(*both), 0


straight_through: Primitive = register(
    Primitive(
        "straight_through",
        _through_infer,
        lambda value, stand_in: value,
        lambda ct, out, value, stand_in: (None, ct),
        _through_batch,
        lambda value, stand_in: value,
        samples=(Sample(((2, 3), (2, 3)), differentiable=False), Sample(((0, 2), (0, 2)), differentiable=False)),
        dtypes=_FLOATS,
        elementwise=True,
        factors=elementwise_factors,
        doc="A value whose cotangent goes to another one, its stand-in, and not to itself.",
    )
)
