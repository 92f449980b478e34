"""Tensors made from numbers: constant fills, ranges, grids, triangles of ones, one-hot codes.

Ranges of whole numbers are the `iota` primitive, so that their lengths may be symbolic and the
operations that use them can be fused with them; floating ranges are computed in float64 and rounded
once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast, scalar
from mycel.ops._operands import (
    axis_of,
    broadcast,
    check_sizes,
    constant_like,
    iota,
    need_room,
    number_of,
    numbers,
    operand,
    reshaped,
    run,
    select,
    shape_of,
    size_of,
    term,
)

__all__ = [
    "arange",
    "empty",
    "empty_like",
    "eye",
    "fill",
    "fills",
    "full",
    "full_like",
    "linspace",
    "logspace",
    "one_hot",
    "ones",
    "ones_like",
    "range",
    "tril_indices",
    "triu_indices",
    "zeros",
    "zeros_like",
]


def _filled(shape: tuple[Any, ...], value: Any, dtype: DType) -> Tensor:
    # A tensor of no dimensions is made anew: the shared scalars must never be written to.
    return (
        broadcast(as_tensor(value, dtype) if isinstance(value, Dim) else scalar(value, dtype), shape)
        if shape
        else Tensor(value, dtype)
    )


@fused
def zeros(size: Any, dtype: Any = None) -> Tensor:
    """Return a tensor of zeros of shape `size` and type `dtype` (float32).

    Raises ValueError for negative sizes.

    >>> import mycel as ms
    >>> ms.ops.zeros((2, 3)).shape
    (2, 3)
    """
    return _filled(check_sizes("zeros", shape_of("zeros", size)), 0, D.float32 if dtype is None else D.from_any(dtype))


@fused
def ones(shape: Any, dtype: Any = None) -> Tensor:
    """Return a tensor of ones of shape `shape` and type `dtype` (float32).

    Raises ValueError for negative sizes.

    >>> import mycel as ms
    >>> ms.ops.ones(2, ms.int32).tolist()
    [1, 1]
    """
    return _filled(check_sizes("ones", shape_of("ones", shape)), 1, D.float32 if dtype is None else D.from_any(dtype))


def empty(size: Any, dtype: Any = None) -> Tensor:
    """Return a tensor whose values are not specified (zeros here), of shape `size` and type `dtype`
    (float32).

    >>> import mycel as ms
    >>> ms.ops.empty((2, 1)).shape
    (2, 1)
    """
    return zeros(size, dtype)


def _likes(name: str, input: Any) -> Tensor:
    return operand(name, input)


@fused
def zeros_like(input: Any, *, dtype: Any = None) -> Tensor:
    """Return zeros of the shape of `input`, and of its type unless `dtype` is given.

    >>> import mycel as ms
    >>> ms.ops.zeros_like(ms.Tensor([1.0, 2.0])).tolist()
    [0.0, 0.0]
    """
    x = _likes("zeros_like", input)
    return _filled(x.shape, 0, x.dtype if dtype is None else D.from_any(dtype))


@fused
def ones_like(input: Any, *, dtype: Any = None) -> Tensor:
    """Return ones of the shape of `input`, and of its type unless `dtype` is given.

    >>> import mycel as ms
    >>> ms.ops.ones_like(ms.Tensor([1.0, 2.0])).tolist()
    [1.0, 1.0]
    """
    x = _likes("ones_like", input)
    return _filled(x.shape, 1, x.dtype if dtype is None else D.from_any(dtype))


def empty_like(input: Any, *, dtype: Any = None) -> Tensor:
    """Return a tensor of the shape of `input` whose values are not specified (zeros here).

    >>> import mycel as ms
    >>> ms.ops.empty_like(ms.Tensor([1, 2])).shape
    (2,)
    """
    return zeros_like(input, dtype=dtype)


@fused
def full(size: Any, fill_value: Any, *, dtype: Any = None) -> Tensor:
    """Return a tensor of shape `size` filled with `fill_value`, a number or a tensor of one
    element.

    It has the type of `fill_value` unless `dtype` is given.

    >>> import mycel as ms
    >>> ms.ops.full((2,), 7.0)
    Tensor(shape=[2], dtype=Float32, value= [ 7.00000000e+00,  7.00000000e+00])
    """
    shape = check_sizes("full", shape_of("full", size, False))
    if isinstance(fill_value, Tensor):
        if fill_value.size != 1:
            raise ValueError(
                f"full: fill_value must be a number or a tensor of one element, not of shape {fill_value.shape}"
            )
        value = cast(fill_value, fill_value.dtype if dtype is None else D.from_any(dtype))
        return broadcast(run(E.identity, reshaped(value, ())), shape)
    arguments.instance("full", "fill_value", fill_value, (bool, int, float, complex, np.generic, Dim), "a number")
    return _filled(shape, fill_value, D.from_any(dtype) if dtype is not None else as_tensor(fill_value).dtype)


@fused
def full_like(input: Any, fill_value: Any, *, dtype: Any = None) -> Tensor:
    """Return a tensor of the shape of `input` filled with `fill_value`, of the type of `input`
    unless `dtype` is given.

    >>> import mycel as ms
    >>> ms.ops.full_like(ms.Tensor([1, 2]), 5).tolist()
    [5, 5]
    """
    x = _likes("full_like", input)
    return full(x.shape, fill_value, dtype=x.dtype if dtype is None else dtype)


def fill(type: Any, shape: Any, value: Any) -> Tensor:
    """Return a tensor of shape `shape` and element type `type` filled with `value`.

    >>> import mycel as ms
    >>> ms.ops.fill(ms.int32, (2,), 3).tolist()
    [3, 3]
    """
    return full(shape_of("fill", shape), value, dtype=type)


def fills(x: Any, value: Any) -> Tensor:
    """Return a tensor of the shape and type of `x` filled with `value`.

    >>> import mycel as ms
    >>> ms.ops.fills(ms.Tensor([1.0, 2.0]), 4).tolist()
    [4.0, 4.0]
    """
    return full_like(x, value)


def _number(name: str, value: Any) -> Any:
    """Return a bound of a range as a Python number or a symbolic size; a tensor gives its value."""
    if isinstance(value, Tensor):
        return value.item()
    if isinstance(value, (np.generic,)):
        return value.item()
    if isinstance(value, (bool, int, float, Dim)):
        return value
    raise TypeError(f"{name}: bounds are numbers, not {type(value).__name__}")


def _range(name: str, start: Any, end: Any, step: Any, dtype: DType | None) -> Tensor:
    start, end, step = _number(name, start), _number(name, end), _number(name, step)
    if not isinstance(step, Dim) and step == 0:
        raise ValueError(f"{name}: step must not be 0")
    if all(isinstance(v, (int, Dim)) for v in (start, end, step)):
        length = -((start - end) // step)
        length = max(length, 0) if isinstance(length, int) else length
        line = iota((length,), 0, dtype if dtype is not None and dtype.is_integer else D.int64)
        if step != 1:
            line = run(E.mul, line, constant_like(step, line))
        if isinstance(start, Dim) or start != 0:
            line = run(E.add, line, constant_like(start, line))
        return line if dtype is None else cast(line, dtype)
    length = (end - start) / step
    if not math.isfinite(length):
        raise ValueError(f"{name}: from {start} to {end} in steps of {step} there is no number of steps")
    values = start + step * numbers(size_of(name, max(math.ceil(length), 0)), np.float64)
    return Tensor(values, dtype or D.float32)


def arange(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None) -> Tensor:
    """Return the numbers from `start` up to but not including `end`, in steps of `step`.

    A single argument is `end`, and `start` is then 0.

    Args:
        start (float): The first number. Default: 0.
        end (float | None): The bound, which is not among them. Default: None.
        step (float): The distance between neighbours. Default: 1.
        dtype (DType | None): The element type; None for int64 where all three are whole numbers,
            else float32. Default: None.

    Returns:
        Tensor: (ceil((end - start) / step),).

    Raises:
        ValueError: For a step of 0.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.arange(1, 7, 2).tolist()
        [1, 3, 5]
    """
    for parameter, value in (("start", start), ("end", end), ("step", step)):
        if isinstance(value, bool):
            raise arguments.wrong_type("arange", parameter, "a number", value)
    start, end = (0, start) if end is None else (start, end)
    return _range("arange", start, end, step, None if dtype is None else D.from_any(dtype))


def range(start: Any, end: Any, step: Any, maxlen: int = 1000000) -> Tensor:
    """Return the numbers from `start` up to but not including `end`, in steps of `step`.

    Args:
        start (Tensor | float): The first number.
        end (Tensor | float): The bound, which is not among them.
        step (Tensor | float): The distance between neighbours.
        maxlen (int): The largest number of elements. Default: 1000000.

    Returns:
        Tensor: The numbers, a vector.

    Raises:
        ValueError: If they are more than `maxlen`.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.range(0, 4, 2).tolist()
        [0, 2]
    """
    bounds = [_number("range", v) for v in (start, end, step)]
    if all(isinstance(v, int) for v in bounds) and bounds[2]:
        length = -((bounds[0] - bounds[1]) // bounds[2])
        if length > maxlen:
            raise ValueError(f"range: {length} numbers are more than maxlen, {maxlen}")
    result = _range("range", bounds[0], bounds[1], bounds[2], None)
    if isinstance(result.shape[0], int) and result.shape[0] > maxlen:
        raise ValueError(f"range: {result.shape[0]} numbers are more than maxlen, {maxlen}")
    return result


def linspace(start: Any, end: Any, steps: Any) -> Tensor:
    """Return `steps` numbers from `start` to `end`, both included, at equal distances.

    `start` and `end` are numbers, which give float32, or tensors of one shape; the new axis comes
    last. Raises ValueError for fewer than one step.

    >>> import mycel as ms
    >>> ms.ops.linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    count = size_of("linspace", steps)
    if isinstance(count, int) and count < 1:
        raise ValueError(f"linspace: steps must be at least 1, not {count}")
    for v in (start, end):
        term("linspace", v)
    if not isinstance(start, Tensor) and not isinstance(end, Tensor) and isinstance(count, int):
        need_room("linspace", (count,), D.float64)
        return Tensor(np.linspace(start, end, count), D.float32)
    first, last = term("linspace", start, D.float32), term("linspace", end, D.float32)
    first, last = reshaped(first, (*first.shape, 1)), reshaped(last, (*last.shape, 1))
    need_room("linspace", (count,), D.float32)
    line = iota((count,), 0, D.float32)
    gaps = constant_like(count - 1 if count != 1 else 1, line)
    part = line / gaps
    return first * (1 - part) + last * part


def logspace(start: Any, end: Any, steps: Any, base: Any = 10, *, dtype: Any = D.float32) -> Tensor:
    """Return `steps` numbers from ``base ** start`` to ``base ** end``, both included, at equal
    ratios.

    Args:
        start (Tensor | float): The exponent of the first number.
        end (Tensor | float): The exponent of the last number.
        steps (int): How many numbers.
        base (int): The base. Default: 10.
        dtype (DType | None): The element type; None for float32. Default: float32.

    Returns:
        Tensor: (steps,).

    Examples:
        >>> import mycel as ms
        >>> ms.ops.logspace(0.0, 2.0, 3).tolist()
        [1.0, 10.0, 100.0]
    """
    for parameter, value in (("start", start), ("end", end)):
        arguments.instance("logspace", parameter, value, (float, Tensor))
    arguments.integer("logspace", "base", base)
    exponents = linspace(start, end, steps)
    return cast(
        run(
            E.pow_,
            broadcast(constant_like(float(number_of("logspace", "base", base)), exponents), exponents.shape),
            exponents,
        ),
        D.from_any(dtype),
    )


def eye(n: Any, m: Any = None, dtype: Any = None) -> Tensor:
    """Return an `n` x `m` matrix (n x n without `m`) with ones on the diagonal and zeros elsewhere.

    It is float32 unless `dtype` is given.

    >>> import mycel as ms
    >>> ms.ops.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    rows = size_of("eye", n)
    shape = check_sizes("eye", (rows, rows if m is None else size_of("eye", m)))
    need_room("eye", shape, D.float32 if dtype is None else D.from_any(dtype))
    kind = S.position_type(max(shape)) if all(isinstance(d, int) for d in shape) else D.int32
    return cast(
        run(E.eq, iota(shape, 0, kind), iota(shape, 1, kind)), D.float32 if dtype is None else D.from_any(dtype)
    )


def _triangle_indices(row: int, col: int, offset: int, upper: bool, dtype: Any) -> Tensor:
    name = "triu_indices" if upper else "tril_indices"
    row, col, offset = size_of(name, row), size_of(name, col), size_of(name, offset)
    check_sizes(name, (row, col))
    need_room(name, (row, col), D.int64)
    offset = max(min(offset, col), -row)
    mask = np.triu(np.ones((row, col), bool), offset) if upper else np.tril(np.ones((row, col), bool), offset)
    return Tensor(np.stack(np.nonzero(mask)), D.from_any(dtype))


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = D.int64) -> Tensor:
    """Return the row and column indices (2 x count) of the elements of a `row` x `col` matrix on
    and below a diagonal.

    Args:
        row (int): The number of rows.
        col (int): The number of columns.
        offset (int): The diagonal, 0 for the main one and positive above it. Default: 0.
        dtype (DType | None): The element type; None for int64. Default: int64.

    Returns:
        Tensor: (2, count).

    Examples:
        >>> import mycel as ms
        >>> ms.ops.tril_indices(2, 2).tolist()
        [[0, 1, 1], [0, 0, 1]]
    """
    return _triangle_indices(row, col, offset, False, dtype)


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = D.int64) -> Tensor:
    """Return the row and column indices (2 x count) of the elements of a `row` x `col` matrix on
    and above a diagonal.

    Args:
        row (int): The number of rows.
        col (int): The number of columns.
        offset (int): The diagonal, 0 for the main one and positive above it. Default: 0.
        dtype (DType | None): The element type; None for int64. Default: int64.

    Returns:
        Tensor: (2, count).

    Examples:
        >>> import mycel as ms
        >>> ms.ops.triu_indices(2, 2).tolist()
        [[0, 0, 1], [0, 1, 1]]
    """
    return _triangle_indices(row, col, offset, True, dtype)


def one_hot(indices: Any, depth: Any, on_value: Any = 1, off_value: Any = 0, axis: int = -1) -> Tensor:
    """Return the one-hot code of indices along a new axis.

    Indices outside [0, depth) give only `off_value`.

    Args:
        indices (Tensor): The positions, integers.
        depth (int): The size of the new axis.
        on_value (Tensor | float): The value at the index. Default: 1.
        off_value (Tensor | float): The value elsewhere. Default: 0.
        axis (int): Where the new axis is inserted; -1 for the end. Default: -1.

    Returns:
        Tensor: The shape of the indices with the new axis, in the common type of the two values
            (int64 for Python ints).

    Raises:
        TypeError: For indices that are not integers.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.one_hot(ms.Tensor([0, 2]), 3).tolist()
        [[1, 0, 0], [0, 0, 1]]
    """
    index = operand("one_hot", indices)
    if not index.dtype.is_integer:
        raise TypeError(f"one_hot: indices must be integers, not {index.dtype.name}")
    size = size_of("one_hot", depth)
    if isinstance(size, int) and size < 0:
        raise arguments.wrong_value("one_hot", "depth", "at least 0", size, ShapeError)
    place = axis_of("one_hot", axis, index.ndim + 1)
    shape = (*index.shape[:place], 1, *index.shape[place:])
    # Narrower types might not have all positions.
    index = index if index.dtype.itemsize >= 4 else cast(index, D.int32)
    line = iota((size,) + (1,) * (index.ndim - place), 0, index.dtype)
    on = on_value if isinstance(on_value, Tensor) else as_tensor(on_value)
    return select(run(E.eq, reshaped(index, shape), line), on, off_value)
