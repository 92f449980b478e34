"""ONNX's shape operators, and arithmetic on known values in NumPy.

Sizes may be symbols, so arithmetic goes by Python's operators element by element where it has to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim, product
from mycel._src.compiler.prims import shape as S
from mycel._src.foundation.dtype import from_any
from mycel.formats.onnx.operation import (
    MOST_BYTES,
    Array,
    Operation,
    apply,
    host,
    is_symbolic,
    is_text,
    kind_of,
    rule,
    shape_of,
    shape_values,
    tensor,
)

__all__ = ["sizes"]


def sizes(values: Any) -> Array:
    """Return sizes as a known value, of type object where some are symbols."""
    values = list(values)
    if any(isinstance(v, Dim) for v in values):
        made = np.empty(len(values), object)
        made[:] = values
        return made
    return np.array(values, np.int64)


@rule("Shape", raw=True)
def _shape(op: Operation, x: Any) -> Array:
    return sizes(shape_of(x)[slice(op.get("start", 0), op.get("end"))])


@rule("Size", raw=True)
def _size(op: Operation, x: Any) -> Array:
    return sizes([product(shape_of(x))]).reshape(())


@rule("Constant", known=())
def _constant(op: Operation) -> Array:
    for name in ("value", "sparse_value"):
        if name in op.attributes:
            found: Array = op.attributes[name]
            return found
    for name, kind in (("value_float", np.float32), ("value_int", np.int64), ("value_ints", np.int64)):
        if name in op.attributes:
            return np.array(op.attributes[name], kind)
    if "value_floats" in op.attributes:
        return np.array(op.attributes["value_floats"], np.float32)
    if "value_string" in op.attributes:
        return np.array(op.attributes["value_string"], object)
    if "value_strings" in op.attributes:
        return np.array(op.attributes["value_strings"], object)
    raise op.wrong("a constant without a value")


host("Constant")(_constant)


@rule("ConstantOfShape", known=(0,))
def _constant_of_shape(op: Operation, shape: Array) -> Any:
    wanted = shape_values(shape)
    value = op.get("value", np.zeros(1, np.float32)).reshape(())
    if any(isinstance(d, Dim) for d in wanted):
        return apply(S.BROADCAST_TO, tensor(value), shape=tuple(wanted))
    if any(d < 0 for d in wanted) or math.prod(wanted) * value.dtype.itemsize > MOST_BYTES:
        raise op.wrong(f"the shape {wanted} is negative or too large")
    return np.full(wanted, value)


@host("ConstantOfShape")
def _host_constant_of_shape(op: Operation, shape: Array) -> Any:
    return NotImplemented if is_symbolic(shape) else _constant_of_shape(op, shape)


@rule("Range", known=(0, 1, 2))
def _range(op: Operation, start: Array, limit: Array, delta: Array) -> Any:
    first, last, step = (v.reshape(-1)[0] for v in (start, limit, delta))
    if any(isinstance(v, Dim) for v in (first, last, step)):
        if first == 0 and step == 1:
            return apply(S.iota, shape=(last,), axis=0, dtype=from_any("int64"))
        raise op.refused(f"the range from {first} to {last} by {step} of open sizes is not supported")
    kind = start.dtype
    if step == 0:
        raise op.wrong("a step of 0")
    with np.errstate(all="ignore"):
        count = max(math.ceil((float(last) - float(first)) / float(step)), 0)
    if count * kind.itemsize > MOST_BYTES:
        raise op.wrong(f"the range from {first} to {last} by {step} is too large")
    if kind.kind in "iu":
        return (np.arange(count, dtype=np.int64) * int(step) + int(first)).astype(kind)
    return (np.arange(count, dtype=np.float64) * float(step) + float(first)).astype(kind)


host("Range")(lambda op, *v: NotImplemented if any(is_symbolic(a) for a in v) else _range(op, *v))


# Known values.


def _pairwise(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def apply_(op: Operation, x: Array, y: Array) -> Any:
        if not _plain(x, y):
            return NotImplemented
        with np.errstate(all="ignore"):
            found = np.asarray(function(x, y))
        if found.dtype.kind == "O":
            return _settled(found)
        return found if found.dtype.kind == "b" else found.astype(x.dtype if x.dtype.kind != "O" else np.int64)

    return apply_


def _plain(*values: Array) -> bool:
    """Return whether values are whole numbers, sizes, or truth values."""
    return all(v.dtype.kind in "iub" or is_symbolic(v) for v in values)


def _settled(found: Array) -> Array:
    """Return an array of objects as one of numbers where no symbols are left."""
    if any(isinstance(v, Dim) for v in found.reshape(-1)):
        return found
    return found.astype(np.bool_ if found.size and isinstance(found.flat[0], (bool, np.bool_)) else np.int64)


def _quotient(x: Any, y: Any) -> Any:
    if x.dtype.kind == "O" or y.dtype.kind == "O":
        return x // y
    if np.any(y == 0):
        raise ValueError("ONNX: Div: a size is divided by 0")
    return np.sign(x) * np.sign(y) * (np.abs(x) // np.abs(y))


for _operator, _function in (
    ("Add", lambda x, y: x + y),
    ("Sub", lambda x, y: x - y),
    ("Mul", lambda x, y: x * y),
    ("Div", _quotient),
    ("Equal", lambda x, y: x == y),
    ("Less", lambda x, y: x < y),
    ("LessOrEqual", lambda x, y: x <= y),
    ("Greater", lambda x, y: x > y),
    ("GreaterOrEqual", lambda x, y: x >= y),
    ("And", np.logical_and),
    ("Or", np.logical_or),
):
    host(_operator)(_pairwise(_function))


@host("Not")
def _not(op: Operation, x: Array) -> Any:
    return np.logical_not(x)


@host("Neg")
def _neg(op: Operation, x: Array) -> Any:
    return _settled(-x) if x.dtype.kind == "O" else -x


@host("Gather")
def _gather(op: Operation, x: Array, places: Array) -> Any:
    axis = op.get("axis", 0)
    size = x.shape[axis] if -x.ndim <= axis < x.ndim else 0
    if not ((places >= -size) & (places < size)).all():
        raise op.wrong(f"the indices {places.tolist()!s:.80} are not in an axis of {size}")
    found = np.asarray(np.take(x, places, axis=axis))
    return _settled(found) if is_symbolic(x) else found


@host("Concat")
def _concat(op: Operation, *parts: Array) -> Any:
    found = np.concatenate(parts, axis=op.get("axis", 0))
    return found if found.dtype.kind != "O" or is_text(found) else _settled(found)


@host("Cast")
def _cast(op: Operation, x: Array) -> Any:
    if not is_symbolic(x):
        return NotImplemented
    kind = kind_of(op.get("to"), op)
    return x if kind in (np.int64, np.int32) else NotImplemented


@host("Unsqueeze")
def _unsqueeze(op: Operation, x: Array, axes: Array) -> Any:
    rank = x.ndim + axes.size
    return np.expand_dims(x, tuple(a % rank for a in shape_values(axes)))


@host("Squeeze")
def _squeeze(op: Operation, x: Array, axes: Any = None) -> Any:
    return np.squeeze(x, None if axes is None else tuple(shape_values(axes)))


@host("Slice")
def _slice(op: Operation, x: Array, starts: Array, ends: Array, axes: Any = None, steps: Any = None) -> Any:
    given = [starts, ends, *([axes] if axes is not None else []), *([steps] if steps is not None else [])]
    if any(is_symbolic(v) for v in given):
        return NotImplemented
    index = [slice(None)] * x.ndim
    by = [1] * starts.size if steps is None else shape_values(steps)
    along = range(starts.size) if axes is None else shape_values(axes)
    for axis, start, stop, step in zip(along, shape_values(starts), shape_values(ends), by):
        if step == 0:
            raise op.wrong("a step of 0")
        size = x.shape[axis]
        backwards = step < 0 and stop < -size
        index[axis] = slice(start, None if backwards else stop, step)
    found = np.asarray(x[tuple(index)])
    return (
        _settled(found)
        if is_symbolic(x) and found.size
        else found
        if found.size
        else found.astype(np.int64 if is_symbolic(x) else x.dtype)
    )


@host("Reshape")
def _reshape(op: Operation, x: Array, shape: Array) -> Any:
    if is_symbolic(shape):
        return NotImplemented
    wanted = shape_values(shape)
    if not op.get("allowzero", 0):
        wanted = [x.shape[i] if d == 0 and i < x.ndim else d for i, d in enumerate(wanted)]
    return x.reshape(wanted)


@host("ReduceProd", "ReduceSum", "ReduceMax", "ReduceMin")
def _reduce(op: Operation, x: Array, axes: Any = None) -> Any:
    if x.dtype.kind != "O" or x.ndim != 1 or (axes is not None and axes.tolist() not in ([0], [-1])):
        return NotImplemented
    whole: Any = shape_values(x)[0]
    for v in shape_values(x)[1:]:
        whole = whole * v if op.operator == "ReduceProd" else whole + v
    if op.operator not in ("ReduceProd", "ReduceSum"):
        return NotImplemented
    found = sizes([whole])
    return found if op.get("keepdims", 1) else found.reshape(())


@host("Where")
def _where(op: Operation, condition: Array, x: Array, y: Array) -> Any:
    found = np.where(condition, x, y)
    return _settled(found) if found.dtype.kind == "O" and not is_text(found) else found


@host("Expand")
def _expand(op: Operation, x: Array, shape: Array) -> Any:
    if is_symbolic(shape):
        return NotImplemented
    wanted = np.broadcast_shapes(x.shape, tuple(shape_values(shape)))
    if math.prod(wanted) * x.dtype.itemsize > MOST_BYTES:
        raise op.wrong(f"the shape {wanted} is too large")
    return np.broadcast_to(x, wanted)
