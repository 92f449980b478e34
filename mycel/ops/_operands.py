"""Readers of arguments that may be tensors or symbolic sizes: operands, axes and shapes.

Everything here looks at types alone, so that it works while a function is being staged. What needs
neither tensors nor symbolic sizes is checked by `foundation.arguments`.
"""

from __future__ import annotations

import operator
import typing
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

import ml_dtypes
import numpy as np

from mycel._src.compiler.ir.dims import Dim, InconclusiveDimension, product, same
from mycel._src.compiler.ir.types import MOST_BYTES, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive, normalize_axis
from mycel._src.engines.select import engine
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType
from mycel._src.foundation.errors import NotAnIndex, ShapeError, SizeError, operation_called
from mycel._src.tensors.core import eager, precision
from mycel._src.tensors.core.binary_operators import pair as _pair
from mycel._src.tensors.core.binary_operators import promoted
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast, scalar

__all__ = [
    "Axis",
    "Shape",
    "all_axes",
    "apply",
    "axis_of",
    "broadcast",
    "constant_like",
    "flat",
    "floating",
    "matched",
    "move_axis",
    "need_matched",
    "need_room",
    "number_of",
    "numbers",
    "numbers_of",
    "one_by_one",
    "operand",
    "operands",
    "reshaped",
    "rounded_once",
    "select",
    "shape_of",
    "sizes_of",
    "take_slice",
    "term",
    "terms",
    "whole",
    "wide",
]

Axis = int | Sequence[int] | None
Shape = tuple[Any, ...]
apply = eager.apply
F = TypeVar("F", bound=Callable[..., Any])
# What a floating type can hold; 16-bit types of ml_dtypes are among those it knows.
finfo: Callable[[Any], Any] = ml_dtypes.finfo
_NUMBERS = (bool, int, float, complex, np.generic, Dim)
_TERMS = (Tensor, *_NUMBERS)


def operand(name: str, value: Any, dtype: DType | None = None) -> Tensor:
    """Check that `value` is a tensor, and return it, of element type `dtype` if that is given."""
    if not isinstance(value, Tensor):
        raise arguments.wrong_type(name, "an operand", "a tensor", value)
    if precision.active and dtype is None:
        value = precision.met(value)
    return value if dtype is None or value.dtype is dtype else cast(value, dtype)


def term(name: str, value: Any, dtype: DType | None = None) -> Tensor:
    """Make a tensor of an operand that may also be a number or a symbolic size.

    It has the element type `dtype` if that is given. Raises TypeError for anything else, such as a
    list or an array.
    """
    if isinstance(value, _NUMBERS):
        return as_tensor(value, dtype)
    if not isinstance(value, Tensor):
        raise arguments.wrong_type(name, "an operand", "a tensor or a number", value)
    return operand(name, value, dtype)


def input_of(layer: object, value: Any) -> Tensor:
    """Check that the input of a layer is a tensor, and return it. A TypeError names the layer."""
    return value if isinstance(value, Tensor) else operand(type(layer).__name__, value)


def floating(name: str, value: Any) -> Tensor:
    """Return a tensor for a function of real numbers: booleans and integers become float32."""
    x = operand(name, value)
    return promoted(x, D.float32) if x.dtype.kind in "iub" else x


def operands(name: str, x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Check that two operands are tensors, and return them in a common type."""
    if not isinstance(x, Tensor) or not isinstance(y, Tensor):
        raise arguments.wrong_type(name, "an operand", "a tensor", y if isinstance(x, Tensor) else x)
    found = _pair(x, y)
    assert found is not None
    return found


def matched(name: str, x: Any, y: Any, first: str = "input", second: str = "other") -> tuple[Tensor, Tensor]:
    """Return the `operands` `x` and `y` of the operation `name`, where float64 does not meet a
    shorter type of floats.

    Where it did, everything behind would be computed in float64 without a word. `first` and
    `second` are what the operands are called. Raises TypeError.
    """
    need_matched(name, x, y, first, second)
    return operands(name, x, y)


def need_matched(name: str, x: Any, y: Any, first: str = "input", second: str = "other") -> None:
    """Raise the TypeError of `matched`, for the same `name`, `x`, `y`, `first` and `second`."""
    if not isinstance(x, Tensor) or not isinstance(y, Tensor) or x.dtype is y.dtype:
        return
    a, b = operands(name, x, y)
    if a.dtype is not D.float64 and a.dtype is not D.complex128:
        return
    kinds = [(precision.met(v) if precision.active else v).dtype for v in (x, y)]
    if any(k.kind not in "fc" for k in kinds) or all(k in (D.float64, D.complex128) for k in kinds):
        return
    wide_one, place = (first, 0) if kinds[0] in (D.float64, D.complex128) else (second, 1)
    raise TypeError(
        f"{name}: {first} has type {kinds[0].name} and {second} {kinds[1].name}, which do not mix here; convert "
        f"{wide_one} by .astype({kinds[1 - place].name}) (arrays of NumPy are float64 unless told otherwise), or make "
        "both float64"
    )


def terms(name: str, x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Make tensors of one common type of two operands that may also be numbers.

    Raises TypeError for anything else, such as a list or an array.
    """
    if not isinstance(x, Tensor):
        x = term(name, x) if not isinstance(y, Tensor) or not isinstance(x, _NUMBERS) else x
    if not isinstance(y, _TERMS):
        raise arguments.wrong_type(name, "an operand", "a tensor or a number", y)
    found = _pair(x, y)
    if found is None:
        bad = y if isinstance(x, Tensor) else x
        raise arguments.wrong_type(name, "an operand", "a tensor or a number", bad)
    return found


def wide(x: Tensor) -> Tensor:
    """Widen 16-bit floats to float32, in which sums and exponentials keep their digits."""
    return cast(x, D.float32) if x.dtype.is_floating and x.dtype.itemsize == 2 else x


def rounded_once(function: F) -> F:
    """Decorate an operation to compute in float32 and round once where its operands share a 16-bit
    type.

    However many primitives it is composed of, the operation then rounds only once, at the end.
    """

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        kind = _narrow_type((*args, *kwargs.values()))
        if kind is None:
            return function(*args, **kwargs)
        result = function(*[_widened(a) for a in args], **{k: _widened(v) for k, v in kwargs.items()})
        return cast(result, kind) if result.dtype is D.float32 else result

    return typing.cast(F, call)


def _narrow_type(values: Sequence[Any]) -> DType | None:
    """Find the 16-bit floating type that all floating tensors among the arguments share, if there
    is one.
    """
    kind: DType | None = None
    for value in values:
        if isinstance(value, (np.ndarray, np.generic)):
            return None
        if isinstance(value, Tensor) and value.dtype.kind not in "iub":
            dtype = (precision.met(value) if precision.active else value).dtype
            if dtype.itemsize != 2 or not dtype.is_floating or kind not in (None, dtype):
                return None
            kind = dtype
    return kind


def _widened(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    return wide(precision.met(value) if precision.active else value)


def constant_like(value: Any, x: Tensor) -> Tensor:
    """Make a scalar tensor of a number or a symbolic size, in the element type of `x`."""
    if isinstance(value, Dim):
        return as_tensor(value, x.dtype)
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (int, float, complex, Tensor)):
        raise TypeError(f"expected a number beside a tensor of {x.dtype.name}, not {type(value).__name__}")
    return scalar(value, x.dtype)


def select(condition: Tensor, x: Any, y: Any) -> Tensor:
    """Choose `x` where the condition holds, else `y`, in their common type."""
    a, b = terms("where", x, y)
    return apply(E.SELECT, condition, a, b)


def axis_of(name: str, axis: Any, rank: int) -> int:
    """Count one axis from the front. Raises ShapeError where it is out of range."""
    if axis is True or axis is False:
        raise arguments.wrong_type(name, "axis", "an int", axis)
    number = arguments.index(name, "axis", axis)
    if not -rank <= number < rank:
        raise ShapeError(
            f"{name}: axis {number} is out of range for a tensor of {rank} dimensions; use a value in [{-rank}, {rank})"
        )
    return normalize_axis(number, rank)


def all_axes(name: str, axis: Any, rank: int) -> tuple[int, ...]:
    """Sort the axes of a reduction; None and the empty tuple stand for all axes."""
    if axis is None or (isinstance(axis, (tuple, list)) and not axis):
        return tuple(range(rank))
    if isinstance(axis, Tensor):
        axis = axis.tolist()
    given = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    if rank == 0 and all(a in (0, -1) for a in given):
        return ()
    found = sorted(axis_of(name, a, rank) for a in given)
    if len(set(found)) != len(found):
        raise ShapeError(f"{name}: axis {given} names a dimension twice")
    return tuple(found)


def shape_of(name: str, shape: Any, single: bool = True) -> Shape:
    """Read a shape from a sequence of sizes or a tensor of them, with `single` also from an int."""
    if isinstance(shape, Tensor):
        if shape.ndim > 1:
            raise NotAnIndex(f"{name}: sizes must be a tensor of one dimension, not {shape._type}")
        shape = shape.tolist()
    if single and isinstance(shape, (int, np.integer, Dim)):
        shape = (shape,)
    if not isinstance(shape, (tuple, list)):
        raise arguments.wrong_type(
            name, "a shape", "an int or a sequence of ints" if single else "a sequence of ints", shape
        )
    found = tuple([size_of(name, d) for d in shape])
    whole = 1
    for d in found:
        whole *= abs(d) or 1 if isinstance(d, int) else 1
    if whole > MOST_BYTES:
        raise SizeError(f"a tensor of the shape {found} would have more than 2**63 - 1 elements", name)
    return found


def size_of(name: str, size: Any) -> Any:
    """Check that `size` is one size: an int or a symbolic size. Raises TypeError otherwise."""
    if isinstance(size, Dim):
        return size
    if isinstance(size, bool):
        raise arguments.wrong_type(name, "a size", "an int", size)
    found = arguments.index(name, "a size", size)
    if abs(found) > MOST_BYTES:
        raise SizeError(f"a size of {found} is beyond 2**63 - 1", name)
    return found


def need_room(name: str, shape: Shape, dtype: DType) -> None:
    """Raise SizeError or MemoryError for a tensor that is too large, before work on it begins."""
    kind = tensor_type(tuple(shape), dtype)
    if kind.is_static:
        engine().need(f"{name}: a tensor {kind}", int(kind.nbytes))


# What a graph's operation, or a tensor and its view, take at least.
_EACH = 2048


def one_by_one(name: str, what: str, count: Any, each: int = _EACH) -> int:
    """Check that there is memory for `count` objects of `each` bytes, made one by one.

    `name` is the operation and `what` the plural noun for the objects, both for errors. Returns the
    count as an int. Raises SizeError or MemoryError where there is no room.
    """
    found = arguments.index(name, f"the number of {what}", count)
    if found > MOST_BYTES:
        raise SizeError(f"there cannot be {found!r:.80} {what}", name)
    engine().need(f"{name}: making {found} {what}", found * each)
    return found


def numbers(count: Any, dtype: Any = np.int64) -> Any:
    """Make the array 0, 1, ..., count - 1, from which tables of positions are built.

    Raises MemoryError where there is no room for it.
    """
    found = operator.index(count)
    engine().need(f"{operation_called()}: a table of {found} positions", found * np.dtype(dtype).itemsize)
    return np.arange(found, dtype=dtype)


def sizes_of(name: str, parameter: str, value: Any) -> tuple[Any, ...]:
    """Check that `value` is several sizes, in a sequence, an array or a tensor. Raises TypeError
    for a single size.
    """
    if isinstance(value, (Tensor, np.ndarray)):
        value = value.tolist()
    if not isinstance(value, (tuple, list)):
        raise arguments.wrong_type(name, parameter, "a sequence of ints", value)
    return tuple([size_of(name, v) for v in value])


def numbers_of(name: str, parameter: str, value: Any) -> Tensor:
    """Make an int64 tensor of whole numbers, given as a tensor or as a tuple or list of ints."""
    if isinstance(value, Tensor):
        return operand(name, value, D.int64)
    return as_tensor(np.array(sizes_of(name, parameter, value), np.int64))


def number_of(name: str, parameter: str, value: Any) -> Any:
    """Check that `value` is a number, a symbolic size or a tensor. Raises TypeError otherwise."""
    if not isinstance(value, (int, float, np.number, Tensor, Dim)):
        raise arguments.wrong_type(name, parameter, "a number", value)
    return value


def check_sizes(name: str, shape: Shape) -> Shape:
    """Check that no size is negative. Raises ShapeError otherwise."""
    for d in shape:
        if isinstance(d, int) and d < 0:
            raise arguments.wrong_value(name, "every size", "at least 0", shape, ShapeError)
    return shape


def certainly(condition: Callable[[], Any]) -> bool:
    """Tell whether a comparison of sizes certainly holds; one that depends on a symbolic size does
    not.
    """
    try:
        return bool(condition())
    except InconclusiveDimension:
        return False


# Movements with the short cuts that the graph's own have.


def reshaped(x: Tensor, shape: Shape) -> Tensor:
    """Reshape `x` to a shape without -1."""
    return x if same(x.shape, shape) else apply(S.RESHAPE, x, shape=shape)


def flat(x: Tensor) -> Tensor:
    """Flatten `x` to one axis."""
    return reshaped(x, (product(x.shape),))


def permuted(x: Tensor, order: tuple[int, ...]) -> Tensor:
    """Permute axes: axis i of the result is axis order[i] of `x`."""
    return x if order == tuple(range(x.ndim)) else apply(S.TRANSPOSE, x, permutation=order)


def move_axis(x: Tensor, source: int, target: int) -> Tensor:
    """Move one axis; `source` and `target` count from the front."""
    order = [i for i in range(x.ndim) if i != source]
    order.insert(target, source)
    return permuted(x, tuple(order))


def broadcast(x: Tensor, shape: Shape) -> Tensor:
    """Broadcast `x` to `shape`."""
    return x if x.shape == shape else apply(S.BROADCAST_TO, x, shape=shape)


def take_slice(x: Tensor, axis: int, start: Any, stop: Any, step: int = 1) -> Tensor:
    """Take `x[start:stop:step]` along one axis, with bounds inside it and a positive step."""
    if step == 1 and start == 0 and stop == x.shape[axis]:
        return x
    starts, stops, steps = [0] * x.ndim, list(x.shape), [1] * x.ndim
    starts[axis], stops[axis], steps[axis] = start, stop, step
    return apply(S.SLICE, x, starts=tuple(starts), stops=tuple(stops), steps=tuple(steps))


def whole(x: Tensor, axes: tuple[int, ...]) -> Any:
    """Count the elements of `x` that a reduction over `axes` combines into one."""
    return product(x.shape[a] for a in axes)


def iota(shape: Shape, axis: int, dtype: DType) -> Tensor:
    """Make a tensor of `shape` that holds each element's index along `axis`."""
    return apply(S.iota, shape=shape, axis=axis, dtype=dtype)


def cast_index(name: str, indices: Any) -> Tensor:
    """Make int32 or int64 indices. Raises TypeError where they are not integers."""
    index = operand(name, indices)
    if not index.dtype.is_integer:
        raise TypeError(f"{name}: indices must be integers, not {index.dtype.name}")
    if index.dtype is D.uint64:
        # The largest would become negative numbers, which count from the end.
        index = run(E.minimum, index, constant_like(2**63 - 1, index))
    return index if index.dtype in (D.int32, D.int64) else cast(index, D.int64)


def run(primitive: Primitive, *inputs: Tensor, **params: Any) -> Tensor:
    """Apply a primitive that has one result."""
    return apply(primitive, *inputs, **params)
