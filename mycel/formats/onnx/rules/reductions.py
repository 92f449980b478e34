"""ONNX's reductions, sorting, and cumulative operators."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import product
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims import sort_and_scan
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.onnx.operation import (
    Array,
    Operation,
    apply,
    as_type,
    number,
    reshaped,
    rule,
    scalar,
    select,
    shape_values,
    sliced,
)
from mycel.formats.onnx.rules.data_movement import axis_of

__all__ = ["mean"]


def _axes(op: Operation, x: Tensor, axes: Any) -> Any:
    """Return the axes of a reduction, or None where the operand is the result."""
    if axes is None or not axes.size:
        return None if op.get("noop_with_empty_axes", 0) else tuple(range(x.ndim))
    return tuple(sorted({axis_of(op, a, x.ndim) for a in shape_values(axes)}))


def _reduced(primitive: Any, x: Tensor, axes: Any, keep: Any) -> Tensor:
    return apply(primitive, x, axes=axes, keepdims=bool(keep))


def mean(x: Tensor, axes: tuple[int, ...], keep: bool = True) -> Tensor:
    """Return the mean over axes."""
    total = _reduced(R.reduce_sum, x, axes, keep)
    count = product(x.shape[a] for a in axes)
    if not isinstance(count, int):
        return apply(E.div, total, as_type(apply(S.SIZE, dim=count, dtype=D.int64), x.dtype))
    return apply(E.div, total, scalar(count, total))


def _sum_of(before: Any, after: Any) -> Any:
    def reduction(op: Operation, x: Tensor, axes: Any = None) -> Tensor:
        x = before(x)
        along = _axes(op, x, axes)
        found: Tensor = after(x if along is None else _reduced(R.reduce_sum, x, along, op.get("keepdims", 1)))
        return found

    return reduction


def _square(x: Tensor) -> Tensor:
    return apply(E.mul, x, x)


def _root(x: Tensor) -> Tensor:
    if x.dtype.is_floating:
        return apply(E.sqrt, x)
    return as_type(apply(E.sqrt, as_type(x, D.float64)), x.dtype)


def _logarithm(x: Tensor) -> Tensor:
    if x.dtype.is_floating:
        return apply(E.log, x)
    return as_type(apply(E.log, as_type(x, D.float64)), x.dtype)


rule("ReduceSum", known=(1,))(_sum_of(lambda x: x, lambda x: x))
rule("ReduceL1", known=(1,))(_sum_of(lambda x: apply(E.abs_, x), lambda x: x))
rule("ReduceL2", known=(1,))(_sum_of(_square, _root))
rule("ReduceSumSquare", known=(1,))(_sum_of(_square, lambda x: x))
rule("ReduceLogSum", known=(1,))(_sum_of(lambda x: x, _logarithm))


@rule("ReduceMean", known=(1,))
def _reduce_mean(op: Operation, x: Tensor, axes: Any = None) -> Tensor:
    along = _axes(op, x, axes)
    if along is None:
        return x
    if x.dtype.is_floating:
        return mean(x, along, bool(op.get("keepdims", 1)))
    return as_type(mean(as_type(x, D.float64), along, bool(op.get("keepdims", 1))), x.dtype)


@rule("ReduceProd", known=(1,))
def _reduce_prod(op: Operation, x: Tensor, axes: Any = None) -> Tensor:
    along = _axes(op, x, axes)
    return x if along is None else _reduced(R.reduce_prod, x, along, op.get("keepdims", 1))


@rule("ReduceMax", "ReduceMin", known=(1,))
def _reduce_most(op: Operation, x: Tensor, axes: Any = None) -> Tensor:
    along, largest, keep = _axes(op, x, axes), op.operator == "ReduceMax", op.get("keepdims", 1)
    if along is None:
        return x
    if x.dtype is D.bool_:
        return _reduced(R.reduce_any if largest else R.reduce_all, x, along, keep)
    if any(isinstance(x.shape[a], int) and x.shape[a] == 0 for a in along):
        ends: Any = limits_of(x)
        kept = [1 if i in along else n for i, n in enumerate(x.shape) if i not in along or keep]
        return apply(S.BROADCAST_TO, scalar(ends[0] if largest else ends[1], x), shape=tuple(kept))
    return _reduced(R.reduce_max if largest else R.reduce_min, x, along, keep)


def limits_of(x: Tensor) -> tuple[Any, Any]:
    """Return the smallest and the largest number of a tensor's element type."""
    if x.dtype.is_floating:
        return -math.inf, math.inf
    info = np.iinfo(x.dtype.numpy)
    return int(info.min), int(info.max)


@rule("ReduceLogSumExp", known=(1,))
def _log_sum_exp(op: Operation, x: Tensor, axes: Any = None) -> Tensor:
    along, keep = _axes(op, x, axes), bool(op.get("keepdims", 1))
    if along is None:
        return x
    kind = x.dtype
    x = x if kind.is_floating else as_type(x, D.float64)
    if any(isinstance(x.shape[a], int) and x.shape[a] == 0 for a in along):
        kept = [1 if i in along else n for i, n in enumerate(x.shape) if i not in along or keep]
        return apply(S.BROADCAST_TO, scalar(-math.inf, x), shape=tuple(kept))
    top = _reduced(R.reduce_max, x, along, True)
    top = select(apply(E.is_finite, top), top, scalar(0, x))
    total = _reduced(R.reduce_sum, apply(E.exp, apply(E.sub, x, top)), along, True)
    found = apply(E.add, apply(E.log, total), top)
    if not keep:
        found = reshaped(found, [n for i, n in enumerate(x.shape) if i not in along])
    return as_type(found, kind)


@rule("ArgMax", "ArgMin")
def _arg(op: Operation, x: Tensor) -> Tensor:
    axis = axis_of(op, op.get("axis", 0), x.ndim)
    primitive = R.argmax if op.operator == "ArgMax" else R.argmin
    if op.get("select_last_index", 0):
        found = apply(primitive, apply(S.reverse, x, axes=(axis,)), axis=axis)
        found = apply(E.sub, scalar(x.shape[axis] - 1, found), found)
    else:
        found = apply(primitive, x, axis=axis)
    found = as_type(found, D.int64)
    return reshaped(found, [1 if i == axis else n for i, n in enumerate(x.shape)]) if op.get("keepdims", 1) else found


@rule("CumSum", "CumProd", known=(1,))
def _cumulative(op: Operation, x: Tensor, axis: Array) -> Tensor:
    along = axis_of(op, int(number(axis)), x.ndim)
    total = op.operator == "CumSum"
    back = bool(op.get("reverse", 0))
    found = apply(sort_and_scan.cumsum if total else sort_and_scan.cumprod, x, axis=along, reverse=back)
    if not op.get("exclusive", 0):
        return found
    n = x.shape[along]
    first = scalar(0 if total else 1, x)
    rest = sliced(found, along, 1, n) if back else sliced(found, along, 0, n - 1)
    low, high = [0] * x.ndim, [0] * x.ndim
    (high if back else low)[along] = 1
    return apply(S.PAD, rest, first, low=tuple(low), high=tuple(high), interior=(0,) * x.ndim)


@rule("TopK", known=(1,))
def _top_k(op: Operation, x: Tensor, k: Array) -> Any:
    axis = axis_of(op, op.get("axis", -1), x.ndim)
    values, places = apply(sort_and_scan.top_k, x, k=number(k), axis=axis, largest=bool(op.get("largest", 1)))
    return values, as_type(places, D.int64)
