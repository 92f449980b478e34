"""Shaping, joining and selecting arrays under NumPy's names."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as _numpy

from mycel import ops
from mycel._src.compiler.prims.base import broadcast_shapes
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.numpy._operands import as_axis, asarray, check_flags, named_kind
from mycel.ops._operands import axis_of, shape_of, size_of

__all__: list[str] = []


def export(function: Any) -> Any:
    __all__.append(function.__name__)
    return function


@export
def reshape(x: Any, new_shape: Any) -> Tensor:
    """Return the same elements in another shape.

    >>> import mycel.numpy as mnp
    >>> mnp.reshape([1, 2, 3, 4], (2, -1)).shape
    (2, 2)
    """
    return ops.reshape(asarray(x), shape_of("reshape", new_shape))


@export
def transpose(a: Any, axes: Any = None) -> Tensor:
    """Permute the axes of `a`; `axes` has their new order, by default the reverse.

    >>> import mycel.numpy as mnp
    >>> mnp.transpose(mnp.ones((2, 3))).shape
    (3, 2)
    """
    x = asarray(a)
    return ops.transpose(x, tuple(reversed(builtins.range(x.ndim))) if axes is None else shape_of("transpose", axes))


@export
def squeeze(a: Any, axis: Any = None) -> Tensor:
    """Remove axes of size 1; `axis` limits which.

    >>> import mycel.numpy as mnp
    >>> mnp.squeeze(mnp.ones((1, 2))).shape
    (2,)
    """
    return ops.squeeze(asarray(a), axis)


@export
def broadcast_to(array: Any, shape: Any) -> Tensor:
    """Broadcast an array to a shape.

    >>> import mycel.numpy as mnp
    >>> mnp.broadcast_to([1, 2], (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    return ops.broadcast_to(asarray(array), shape)


@export
def broadcast_arrays(*args: Any) -> list[Tensor]:
    """Broadcast arrays to their common shape.

    >>> import mycel.numpy as mnp
    >>> [a.shape for a in mnp.broadcast_arrays([1, 2], [[3], [4]])]
    [(2, 2), (2, 2)]
    """
    values = [asarray(v) for v in args]
    shape = broadcast_shapes(*[v.shape for v in values])
    return [ops.broadcast_to(v, shape) for v in values]


@export
def concatenate(arrays: Any, axis: int | None = 0) -> Tensor:
    """Concatenate arrays along an axis; None flattens them first.

    >>> import mycel.numpy as mnp
    >>> mnp.concatenate(([1, 2], [3])).tolist()
    [1, 2, 3]
    """
    arguments.instance("concatenate", "arrays", arrays, (tuple, list, Tensor), "a sequence of arrays")
    values = [asarray(v) for v in arrays]
    return ops.concat([ops.ravel(v) for v in values]) if axis is None else ops.concat(values, axis)


@export
def append(arr: Any, values: Any, axis: int | None = None) -> Tensor:
    """Append values to an array along an axis; without an axis both are flattened.

    >>> import mycel.numpy as mnp
    >>> mnp.append([1, 2], 3).tolist()
    [1, 2, 3]
    """
    return concatenate((arr, values), axis)


def _rows(arrays: Any) -> Any:
    return list(arrays) if isinstance(arrays, (Tensor, _numpy.ndarray)) and arrays.ndim else arrays


def _joiner(name: str, parameter: str, function: Any) -> Any:
    def made(tup: Any) -> Tensor:
        return function([asarray(v) for v in arguments.sequence(name, parameter, _rows(tup))])

    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"Return `mycel.ops.{function.__name__}` of the array-like elements of `tup`."
    return export(made)


hstack, vstack = _joiner("hstack", "tup", ops.hstack), _joiner("vstack", "tup", ops.vstack)
dstack, column_stack = _joiner("dstack", "tup", ops.dstack), _joiner("column_stack", "tup", ops.column_stack)


@export
def stack(arrays: Any, axis: int = 0) -> Tensor:
    """Stack arrays of one shape along a new axis.

    >>> import mycel.numpy as mnp
    >>> mnp.stack(([1, 2], [3, 4])).shape
    (2, 2)
    """
    members = _rows(arrays)
    if not isinstance(members, (tuple, list)):
        raise arguments.wrong_value("stack", "arrays", "a sequence of arrays", arrays)
    return ops.stack([asarray(v) for v in members], as_axis(axis))


@export
def split(x: Any, indices_or_sections: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """Split `x` into equal parts along an axis, or at positions.

    Raises ValueError if the size is not divisible.

    >>> import mycel.numpy as mnp
    >>> [p.tolist() for p in mnp.split([1, 2, 3, 4], 2)]
    [[1, 2], [3, 4]]
    """
    value = asarray(x)
    axis = axis_of("split", as_axis(axis), value.ndim)
    if isinstance(indices_or_sections, int) and indices_or_sections > 0 and value.shape[axis] % indices_or_sections:
        raise ValueError(
            f"split: axis {axis} of size {value.shape[axis]} does not divide into {indices_or_sections} parts; use "
            "array_split"
        )
    return ops.tensor_split(value, indices_or_sections, axis)


@export
def atleast_1d(*arys: Any) -> Any:
    """Return arrays with at least one dimension.

    >>> import mycel.numpy as mnp
    >>> mnp.atleast_1d(3).shape
    (1,)
    """
    return _single([ops.atleast_1d(asarray(v)) for v in arys])


@export
def atleast_2d(*arys: Any) -> Any:
    """Return arrays with at least two dimensions.

    >>> import mycel.numpy as mnp
    >>> mnp.atleast_2d([3]).shape
    (1, 1)
    """
    return _single([ops.atleast_2d(asarray(v)) for v in arys])


@export
def atleast_3d(*arys: Any) -> Any:
    """Return arrays with at least three dimensions.

    >>> import mycel.numpy as mnp
    >>> mnp.atleast_3d([3]).shape
    (1, 1, 1)
    """
    return _single([ops.atleast_3d(asarray(v)) for v in arys])


def _single(values: list[Tensor]) -> Any:
    return values[0] if len(values) == 1 else values


@export
def tile(a: Any, reps: Any) -> Tensor:
    """Repeat a whole array along each axis.

    >>> import mycel.numpy as mnp
    >>> mnp.tile([1, 2], 2).tolist()
    [1, 2, 1, 2]
    """
    return ops.tile(asarray(a), shape_of("tile", reps))


@export
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Tensor:
    """Repeat each element.

    >>> import mycel.numpy as mnp
    >>> mnp.repeat([1, 2], 2).tolist()
    [1, 1, 2, 2]
    """
    return ops.repeat_interleave(asarray(a), repeats, axis)


@export
def flip(m: Any, axis: Any = None) -> Tensor:
    """Reverse the order along axes; along all without `axis`.

    >>> import mycel.numpy as mnp
    >>> mnp.flip([1, 2]).tolist()
    [2, 1]
    """
    x = asarray(m)
    axes = tuple(builtins.range(x.ndim)) if axis is None else as_axis(axis)
    return ops.flip(x, (axes,) if isinstance(axes, int) else axes)


@export
def rot90(a: Any, k: int = 1, axes: Any = (0, 1)) -> Tensor:
    """Rotate an array by `k` quarter turns in the plane of two axes.

    >>> import mycel.numpy as mnp
    >>> mnp.rot90([[1, 2], [3, 4]]).tolist()
    [[2, 4], [1, 3]]
    """
    if not isinstance(axes, (tuple, list, Tensor)):
        raise arguments.wrong_type("rot90", "axes", "a pair of axes", axes)
    return ops.rot90(asarray(a), arguments.integer("rot90", "k", k), axes)


@export
def roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
    """Shift elements along an axis; those beyond the end continue at the start.

    >>> import mycel.numpy as mnp
    >>> mnp.roll([1, 2, 3], 1).tolist()
    [3, 1, 2]
    """
    if isinstance(shift, (tuple, list)) and not isinstance(axis, (tuple, list)):
        # Several shifts along one axis, or of the flat array, are their sum.
        return ops.roll(asarray(a), builtins.sum(size_of("roll", s) for s in shift), axis)
    if isinstance(axis, (tuple, list)) and len(axis) == 1 and isinstance(shift, (tuple, list)):
        axis = tuple(axis) * len(shift)
    return ops.roll(asarray(a), shift, axis)


@export
def rollaxis(x: Any, axis: int, start: int = 0) -> Tensor:
    """Return an axis moved before the axis `start`.

    >>> import mycel.numpy as mnp
    >>> mnp.rollaxis(mnp.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    value = asarray(x)
    source = axis_of("rollaxis", axis, value.ndim)
    target = start + value.ndim if size_of("rollaxis", start) < 0 else start
    return ops.moveaxis(value, source, target - 1 if source < target else target)


@export
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Return `x` where the condition holds, else `y`; without both, return the positions where it
    holds.

    >>> import mycel.numpy as mnp
    >>> mnp.where([True, False], [1, 2], 0).tolist()
    [1, 0]
    """
    held = asarray(condition)
    if x is None and y is None:
        return ops.nonzero(held, as_tuple=True)
    if x is None or y is None:
        raise TypeError("where: give both x and y, or neither")
    return ops.where(held, *(v if isinstance(v, Tensor) else asarray(v) for v in (x, y)))


@export
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Tensor:
    """Return, for each position, the choice of the first condition that holds, else `default`.

    >>> import mycel.numpy as mnp
    >>> mnp.select([[True, False], [True, True]], [[1, 2], [3, 4]]).tolist()
    [1, 4]
    """
    conditions, choices = _rows(condlist), _rows(choicelist)
    for parameter, given in (("condlist", conditions), ("choicelist", choices)):
        if given is None or isinstance(given, str):
            raise arguments.wrong_type("select", parameter, "a sequence of arrays", given)
        if not isinstance(given, (tuple, list)) or not given:
            raise arguments.wrong_value("select", parameter, "a sequence of arrays", given)
    if len(conditions) != len(choices):
        raise ValueError(f"select: there are {len(choices)} choices for {len(conditions)} conditions")
    result: Any = default
    for condition, choice in reversed(list(zip(conditions, choices))):
        result = ops.where(asarray(condition), asarray(choice), result)
    return asarray(result)


@export
def take(a: Any, indices: Any, axis: int | None = None, mode: str = "clip") -> Tensor:
    """Return elements at positions along an axis.

    Args:
        a (Tensor | float | list | tuple): The tensor.
        indices (Tensor | float | list | tuple): The positions.
        axis (int | None): The axis; None for the flattened array. Default: None.
        mode (str): What is done with positions beyond the axis: "clip", "wrap", or "raise" for an
            error. Default: "clip".

    Returns:
        Tensor: The axis replaced by those of the positions.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.take([1, 2, 3], [2, 0]).tolist()
        [3, 1]
    """
    return asarray(a).take(asarray(indices), axis, arguments.text("take", "mode", mode))


@export
def take_along_axis(arr: Any, indices: Any, axis: int | None) -> Tensor:
    """Return the elements at positions along an axis, with positions of their own for each row.

    The other axes broadcast.

    >>> import mycel.numpy as mnp
    >>> mnp.take_along_axis([[1, 2]], [[1]], 1).tolist()
    [[2]]
    """
    x, index = asarray(arr), asarray(indices)
    if axis is None:
        return ops.gather_elements(ops.ravel(x), 0, ops.ravel(index))
    axis = arguments.index("take_along_axis", "axis", axis)
    if not -x.ndim <= axis < x.ndim or index.ndim != x.ndim:
        raise ValueError(
            f"take_along_axis: axis {axis} and indices of {index.ndim} axes do not fit an array of {x.ndim}"
        )
    at = axis % x.ndim
    whole = _numpy.broadcast_shapes(
        (*x.shape[:at], 1, *x.shape[at + 1 :]), (*index.shape[:at], 1, *index.shape[at + 1 :])
    )
    x = ops.broadcast_to(x, (*whole[:at], x.shape[at], *whole[at + 1 :]))
    return ops.gather_elements(x, at, ops.broadcast_to(index, (*whole[:at], index.shape[at], *whole[at + 1 :])))


@export
def choose(a: Any, choices: Any, mode: str = "clip") -> Tensor:
    """Return, at each position, the element of the choice whose number the integer array `a` has
    there.

    >>> import mycel.numpy as mnp
    >>> mnp.choose([0, 1], [[1, 2], [3, 4]]).tolist()
    [1, 4]
    """
    members = arguments.sequence("choose", "choices", _rows(choices))
    return asarray(a).choose([asarray(c) for c in members], mode)


@export
def diag(v: Any, k: int = 0) -> Tensor:
    """Return a matrix with a vector on its k-th diagonal, or the k-th diagonal of a matrix.

    >>> import mycel.numpy as mnp
    >>> mnp.diag([[1, 2], [3, 4]]).tolist()
    [1, 4]
    """
    x = asarray(v)
    return ops.diag_embed(x, k) if x.ndim == 1 else ops.diagonal(x, k)


@export
def diagflat(v: Any, k: int = 0) -> Tensor:
    """Return a matrix with the elements of an array on its k-th diagonal.

    >>> import mycel.numpy as mnp
    >>> mnp.diagflat([[1], [2]]).tolist()
    [[1, 0], [0, 2]]
    """
    return ops.diag_embed(ops.ravel(asarray(v)), k)


@export
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Return a diagonal of the matrices over the axes `axis1` and `axis2`.

    Args:
        a (Tensor | float | list | tuple): The tensor.
        offset (int): The diagonal, 0 for the main one and positive above it. Default: 0.
        axis1 (int): The axis of the rows. Default: 0.
        axis2 (int): The axis of the columns. Default: 1.

    Returns:
        Tensor: The diagonals, as a new last axis.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.diagonal([[1, 2], [3, 4]], 1).tolist()
        [2]
    """
    return ops.diagonal(asarray(a), offset, axis1, axis2)


@export
def tril(m: Any, k: int = 0) -> Tensor:
    """Return the matrix with zeros above the k-th diagonal.

    >>> import mycel.numpy as mnp
    >>> mnp.tril([[1, 2], [3, 4]]).tolist()
    [[1, 0], [3, 4]]
    """
    return ops.tril(asarray(m), k)


@export
def triu(m: Any, k: int = 0) -> Tensor:
    """Return the matrix with zeros below the k-th diagonal.

    >>> import mycel.numpy as mnp
    >>> mnp.triu([[1, 2], [3, 4]]).tolist()
    [[1, 2], [0, 4]]
    """
    return ops.triu(asarray(m), k)


@export
def meshgrid(*xi: Any, sparse: bool = False, indexing: str = "xy") -> list[Tensor]:
    """Return the coordinates of a grid, one array for each vector; with `sparse` they only
    broadcast to the grid.

    >>> import mycel.numpy as mnp
    >>> [g.shape for g in mnp.meshgrid([1, 2], [3, 4, 5])]
    [(3, 2), (3, 2)]
    """
    check_flags("meshgrid", sparse=sparse)
    arguments.text("meshgrid", "indexing", indexing)
    lines = [ops.ravel(asarray(v)) for v in xi]
    if not sparse:
        return list(ops.meshgrid(*lines, indexing=indexing))
    order = list(builtins.range(len(lines)))
    if indexing == "xy" and len(lines) > 1:
        order[:2] = [1, 0]
    return [
        ops.reshape(v, tuple(-1 if order[j] == i else 1 for j in builtins.range(len(lines))))
        for i, v in enumerate(lines)
    ]


@export
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Tensor:
    """Return the positions at which values keep a sorted vector in order.

    Args:
        a (Tensor | float | list | tuple): The sorted vector.
        v (Tensor | float | list | tuple): The values.
        side (str): "left" is before equal elements, "right" behind them. Default: "left".
        sorter (Tensor | None): The positions that sort `a`. Default: None.

    Returns:
        Tensor: Int32, of the shape of `v`.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.searchsorted([1, 3, 5], [3, 4]).tolist()
        [1, 2]
    """
    arguments.one_of("searchsorted", "side", side, ("left", "right"))
    if isinstance(sorter, (bool, int, float)):
        raise arguments.wrong_type("searchsorted", "sorter", "an array of positions", sorter)
    return ops.searchsorted(
        asarray(a), asarray(v), side=side, sorter=None if sorter is None else asarray(sorter), out_int32=True
    )


@export
def unique(x: Any, return_inverse: bool = False) -> Any:
    """Return the distinct elements in increasing order, with `return_inverse` also the position of
    each element among them.

    The values must be known.

    >>> import mycel.numpy as mnp
    >>> mnp.unique([2, 1, 2]).tolist()
    [1, 2]
    """
    values, inverse = asarray(x).unique(return_inverse=True)
    return (values, inverse.astype(D.int32)) if return_inverse else values


@export
def bincount(x: Any, weights: Any = None, minlength: int = 0, length: int | None = None) -> Tensor:
    """Return how often each of the numbers 0, 1, and so on occurs.

    occurs in `x` (float32), or the sum of its `weights`.

    The result has at least `minlength` elements, or exactly `length`.

    Args:
        x (Tensor | float | list | tuple): The tensor.
        weights (Tensor | float | list | tuple): What each counts; None for 1. Default: None.
        minlength (int): The least length of the result. Default: 0.
        length (int | None): The length; None for the largest number and one. Default: None.

    Returns:
        Tensor: A vector.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.bincount([1, 1, 2]).tolist()
        [0.0, 2.0, 1.0]
    """
    numbers, amounts = asarray(x), None if weights is None else asarray(weights)
    if numbers.ndim != 1 or amounts is not None and amounts.shape != numbers.shape:
        raise ValueError(f"bincount: x must be a vector and weights as long, not {x!r:.80} and {weights!r:.80}")
    minlength = int(arguments.number("bincount", "minlength", minlength))
    if length is not None:
        arguments.integer("bincount", "length", length, 0)
    made = ops.bincount(numbers, amounts, builtins.max(minlength, length or 0))
    made = made if length is None else made[:length]
    return cast(made, D.float32) if weights is None else made


@export
def size(a: Any, axis: int | None = None) -> Any:
    """Return the number of elements, in total or along an axis.

    >>> import mycel.numpy as mnp
    >>> mnp.size([[1, 2], [3, 4]])
    4
    """
    x = asarray(a)
    return x.size if axis is None else x.shape[axis_of("size", as_axis(axis), x.ndim)]


@export
def shape(a: Any) -> tuple[Any, ...]:
    """Return the shape of an array.

    >>> import mycel.numpy as mnp
    >>> mnp.shape([[1, 2]])
    (1, 2)
    """
    return asarray(a).shape


@export
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the matrix of powers of a vector, in descending order unless `increasing`.

    >>> import mycel.numpy as mnp
    >>> mnp.vander([2, 3]).tolist()
    [[2, 1], [3, 1]]
    """
    check_flags("vander", increasing=increasing)
    made = ops.vander(asarray(x), N)
    return ops.flip(made, (1,)) if increasing else made


@export
def isin(element: Any, test_elements: Any, invert: bool = False) -> Tensor:
    """Return whether each element is among `test_elements`, or with `invert` whether it is not.

    >>> import mycel.numpy as mnp
    >>> mnp.isin([1, 2], [2, 5]).tolist()
    [False, True]
    """
    x, others = asarray(element), ops.ravel(asarray(test_elements))
    found = ops.any(ops.equal(ops.expand_dims(x, -1), others), -1)
    return ops.logical_not(found) if invert else found


def _named_type(kind: Any) -> D.DType:
    """Return the data type of one of our names or one of NumPy's ("i2")."""
    try:
        return named_kind(kind)
    except TypeError:
        try:
            return D.from_any(_numpy.dtype(kind).type)
        except TypeError:
            raise TypeError(f"result_type: {kind!r} is no data type") from None


@export
def result_type(*arrays_and_dtypes: Any) -> D.DType:
    """Return the type that the types of arrays, and types, are promoted to.

    >>> import mycel.numpy as mnp
    >>> mnp.result_type(mnp.float32, mnp.int32)
    mindspore.float32
    """
    kinds = [
        v if isinstance(v, D.DType) else _named_type(v) if isinstance(v, (str, type)) else asarray(v).dtype
        for v in arrays_and_dtypes
    ]
    if not kinds:
        raise ValueError("result_type: takes at least one array or type")
    result = kinds[0]
    for k in kinds[1:]:
        result = _promoted(result, k)
    return result


@export
def promote_types(type1: Any, type2: Any) -> D.DType:
    """Return the type that two types are promoted to.

    It is that of operands, but float64 for uint64 and a signed type. Python's `int` is int32.

    >>> import mycel.numpy as mnp
    >>> mnp.promote_types("int32", "float16")
    mindspore.float16
    """
    return _promoted(named_kind(type1), named_kind(type2))


def _promoted(a: D.DType, b: D.DType) -> D.DType:
    return D.float64 if D.uint64 in (a, b) and "i" in (a.kind, b.kind) else D.promote(a, b)
