"""Creation of arrays under NumPy's names: from data, constants, ranges and random numbers."""

from __future__ import annotations

from typing import Any

import numpy as _numpy

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast
from mycel.numpy._operands import as_axis, as_kind, asarray, check_flags, kind_of, named_kind
from mycel.ops._operands import check_sizes, need_room, shape_of, size_of

__all__: list[str] = ["asarray"]

# What NumPy's arrays can have.
MOST_AXES = 64


def export(function: Any) -> Any:
    __all__.append(function.__name__)
    return function


@export
def array(obj: Any, dtype: Any = None, copy: bool = True, ndmin: int = 0) -> Tensor:
    """Return a tensor of an array-like object.

    Without `copy` a tensor `obj` may be returned itself.

    Args:
        obj (Tensor | float | list | tuple): A tensor, a number or a nested sequence.
        dtype (DType | None): The element type of the result; None for that of the input. Default:
            None.
        copy (bool): Whether the values are copied. Default: True.
        ndmin (int): The least number of dimensions. Default: 0.

    Returns:
        Tensor: The tensor.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.array([1.0, 2.0], ndmin=2).shape
        (1, 2)
    """
    made = asarray(obj, dtype)
    made = ops.deepcopy(made) if copy and made is obj else made
    missing = arguments.int64("array", "ndmin", ndmin) - made.ndim
    if missing + made.ndim > MOST_AXES:
        raise ValueError(f"array: ndmin must be at most {MOST_AXES}, the axes that an array can have, not {ndmin}")
    return ops.reshape(made, (1,) * missing + made.shape) if missing > 0 else made


@export
def asfarray(a: Any, dtype: Any = D.float32) -> Tensor:
    """Return a floating tensor of an array-like object.

    >>> import mycel.numpy as mnp
    >>> mnp.asfarray([1, 2]).tolist()
    [1.0, 2.0]
    """
    kind = named_kind(dtype)
    return asarray(a, kind if kind.is_floating else D.float32)


@export
def copy(a: Any) -> Tensor:
    """Return a copy of an array as a tensor.

    >>> import mycel.numpy as mnp
    >>> mnp.copy([1, 2]).tolist()
    [1, 2]
    """
    return ops.deepcopy(asarray(a))


@export
def zeros(shape: Any, dtype: Any = D.float32) -> Tensor:
    """Return a tensor of zeros.

    >>> import mycel.numpy as mnp
    >>> mnp.zeros(2).tolist()
    [0.0, 0.0]
    """
    return ops.zeros(shape, named_kind(dtype))


@export
def ones(shape: Any, dtype: Any = D.float32) -> Tensor:
    """Return a tensor of ones.

    >>> import mycel.numpy as mnp
    >>> mnp.ones(2).tolist()
    [1.0, 1.0]
    """
    return ops.ones(shape, named_kind(dtype))


@export
def empty(shape: Any, dtype: Any = D.float32) -> Tensor:
    """Return a tensor whose values are not specified (zeros here).

    >>> import mycel.numpy as mnp
    >>> mnp.empty((2, 3)).shape
    (2, 3)
    """
    return ops.zeros(shape, dtype)


@export
def full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """Return a tensor filled with one value.

    >>> import mycel.numpy as mnp
    >>> mnp.full(2, 3).tolist()
    [3, 3]
    """
    value = asarray(fill_value, dtype)
    return ops.broadcast_to(value, shape) if value.ndim else ops.full(shape_of("full", shape), value)


def _like(name: str, function: Any) -> Any:
    def made(a: Any, dtype: Any = None, shape: Any = None) -> Tensor:
        x = asarray(a)
        return function(x.shape if shape is None else shape, kind_of(dtype) or x.dtype)

    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"Return `{name[:-5]}` of the shape and type of `a`, unless `shape` or `dtype` are given."
    return export(made)


zeros_like, ones_like = _like("zeros_like", zeros), _like("ones_like", ones)


@export
def empty_like(prototype: Any, dtype: Any = None, shape: Any = None) -> Tensor:
    """Return `empty` of the shape and type of `prototype`, unless others are given.

    >>> import mycel.numpy as mnp
    >>> mnp.empty_like([[1, 2]]).shape
    (1, 2)
    """
    return zeros_like(prototype, dtype, shape)


@export
def full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Tensor:
    """Return a tensor filled with `fill_value`, of the shape and type of `a` unless `shape` and
    `dtype` are given.

    Args:
        a (Tensor | float | list | tuple): The tensor.
        fill_value (Tensor | float | list | tuple): The value.
        dtype (DType | None): The element type of the result; None for that of the input. Default:
            None.
        shape (int | Sequence[int]): The shape; None for that of `a`. Default: None.

    Returns:
        Tensor: The tensor.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.full_like([1, 2], 5).tolist()
        [5, 5]
    """
    x = asarray(a)
    return full(x.shape if shape is None else shape, fill_value, kind_of(dtype) or x.dtype)


@export
def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> Tensor:
    """Return numbers at equal distances.

    Args:
        start (Tensor | float | list | tuple): The first number, or the bound where `stop` is None.
        stop (float | None): The bound, which is not among them. Default: None.
        step (float | None): The distance; None for 1. Default: None.
        dtype (DType | None): The element type; None for int32, or float32 if one of the numbers is
            a float. Default: None.

    Returns:
        Tensor: A vector.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.arange(3).tolist()
        [0, 1, 2]
    """
    first, last = (0, start) if stop is None else (start, stop)
    made = ops.arange(first, last, 1 if step is None else step)
    return cast(made, D.from_any(dtype) if dtype is not None else D.int32 if made.dtype is D.int64 else made.dtype)


@export
def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0
) -> Any:
    """Return `num` equidistant numbers from `start` to `stop`, along the new axis `axis`.

    Args:
        start (Tensor | float | list | tuple): The first number; arrays broadcast.
        stop (Tensor | float | list | tuple): The last number; arrays broadcast.
        num (int): How many. Default: 50.
        endpoint (bool): Whether `stop` is the last of them. Default: True.
        retstep (bool): Whether the distance is returned, too. Default: False.
        dtype (DType | None): The type of the result. Default: None.
        axis (int): Where the new axis is put. Default: 0.

    Returns:
        Tensor | tuple[Tensor, Tensor]: The numbers, and with `retstep` the distance.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.linspace(0, 1, 3).tolist()
        [0.0, 0.5, 1.0]
    """
    check_flags("linspace", endpoint=endpoint, retstep=retstep)
    num = size_of("linspace", num)
    parts = num - 1 if endpoint else num
    first, last = start, stop
    if not all(isinstance(v, (int, float)) for v in (start, stop)):
        first, last = asarray(start, D.float32), asarray(stop, D.float32)
    step = (last - first) / parts if parts else float("nan")
    line = ops.linspace(first, last if endpoint else last - step, num)
    line = as_kind(ops.moveaxis(line, -1, as_axis(axis)), dtype)
    return (line, as_tensor(step, D.float32) if parts and isinstance(step, float) else step) if retstep else line


@export
def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Tensor:
    """Return powers of `base` with equidistant exponents.

    The exponents are those of `linspace` with `start`, `stop`, `num`, `endpoint` and `axis`;
    `dtype` is the type of the result.

    Args:
        start (Tensor | float | list | tuple): The exponent of the first number.
        stop (Tensor | float | list | tuple): The exponent of the last number.
        num (int): How many. Default: 50.
        endpoint (bool): Whether `stop` is the last of them. Default: True.
        base (float): The base. Default: 10.0.
        dtype (DType | None): The element type of the result; None for that of the input. Default:
            None.
        axis (int): Where the new axis is put. Default: 0.

    Returns:
        Tensor: The numbers.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.logspace(0, 2, 3, base=2.0).tolist()
        [1.0, 2.0, 4.0]
    """
    check_flags("logspace", endpoint=endpoint)
    return as_kind(
        ops.pow(arguments.number("logspace", "base", base), linspace(start, stop, num, endpoint, axis=axis)), dtype
    )


def _matrix(name: str, rows: Any, columns: Any, diagonal: Any) -> tuple[int, int, int]:
    """Return the sizes of a matrix, and its diagonal limited to the corners."""
    height = size_of(name, rows)
    width = height if columns is None else size_of(name, columns)
    check_sizes(name, (height, width))
    need_room(name, (height, width), D.float64)
    return height, width, min(max(size_of(name, diagonal), -height), width)


@export
def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = D.float32) -> Tensor:
    """Return an `N` x `M` matrix with ones on the `k`-th diagonal and zeros elsewhere, of type
    `dtype`.

    Args:
        N (int): The number of rows.
        M (int | None): The number of columns; None for `N`. Default: None.
        k (int): The diagonal, 0 for the main one and positive above it. Default: 0.
        dtype (DType | None): The element type. Default: float32.

    Returns:
        Tensor: (N, M).

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.eye(2, k=1).tolist()
        [[0.0, 1.0], [0.0, 0.0]]
    """
    rows, columns, place = _matrix("eye", N, M, k)
    return Tensor(_numpy.eye(rows, columns, place), named_kind(dtype))


@export
def identity(n: int, dtype: Any = D.float32) -> Tensor:
    """Return an n x n identity matrix.

    >>> import mycel.numpy as mnp
    >>> mnp.identity(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return ops.eye(n, n, named_kind(dtype))


@export
def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = D.float32) -> Tensor:
    """Return an `N` x `M` matrix with ones on and below the `k`-th diagonal and zeros elsewhere, of
    type `dtype`.

    Args:
        N (int): The number of rows.
        M (int | None): The number of columns; None for `N`. Default: None.
        k (int): The diagonal, 0 for the main one and positive above it. Default: 0.
        dtype (DType | None): The element type. Default: float32.

    Returns:
        Tensor: (N, M).

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.tri(2).tolist()
        [[1.0, 0.0], [1.0, 1.0]]
    """
    rows, columns, place = _matrix("tri", N, M, k)
    return Tensor(_numpy.tri(rows, columns, place), named_kind(dtype))


def _drawn_type(name: str, dtype: Any, kinds: str) -> D.DType:
    """Read the type of random numbers, of one of `kinds`. Raises ValueError for anything else."""
    try:
        kind = named_kind(dtype)
    except TypeError:
        kind = D.bool_
    if kind.kind not in kinds:
        raise arguments.wrong_value(name, "dtype", f"a type of {'floats' if kinds == 'f' else 'ints'}", dtype)
    return kind


@export
def rand(*shape: Any, dtype: Any = D.float32) -> Tensor:
    """Return random numbers of the uniform distribution over [0, 1).

    >>> import mycel.numpy as mnp
    >>> mnp.rand(2, 3).shape
    (2, 3)
    """
    return ops.rand(*shape, dtype=_drawn_type("rand", dtype, "f"))


@export
def randn(*shape: Any, dtype: Any = D.float32) -> Tensor:
    """Return random numbers of the standard normal distribution.

    >>> import mycel.numpy as mnp
    >>> mnp.randn(2, 3).shape
    (2, 3)
    """
    return ops.randn(*shape, dtype=_drawn_type("randn", dtype, "f"))


@export
def randint(minval: int, maxval: int | None = None, shape: Any = None, dtype: Any = D.int32) -> Tensor:
    """Return uniform random integers.

    Args:
        minval (int): The lower bound, or the upper one where `maxval` is None.
        maxval (int | None): The upper bound, which is not among them. Default: None.
        shape (int | Sequence[int]): The shape. Default: None.
        dtype (DType | None): The element type. Default: int32.

    Returns:
        Tensor: The integers.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.randint(1, 2, (2,)).tolist()
        [1, 1]
    """
    low, high = (0, minval) if maxval is None else (minval, maxval)
    for parameter, value in (("minval", minval), ("maxval", maxval)):
        if isinstance(value, Tensor) and value.ndim:
            raise arguments.wrong_type("randint", parameter, "an int", value)
    size = () if shape is None else shape_of("randint", shape)
    return ops.randint(low, high, size, dtype=_drawn_type("randint", dtype, "iu"))
