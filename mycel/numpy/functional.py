"""Functions applied along axes and piecewise, sets, and tests of arrays, under NumPy's names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as _numpy

from mycel import ops
from mycel._src.compiler.prims.base import broadcast_shapes
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.numpy._operands import asarray, check_flags
from mycel.numpy.arrays import isin
from mycel.ops._operands import all_axes

__all__ = [
    "apply_along_axis",
    "apply_over_axes",
    "array_equiv",
    "array_str",
    "in1d",
    "intersect1d",
    "isscalar",
    "piecewise",
    "setdiff1d",
]


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Tensor:
    """Return `func1d(vector, *args, **kwargs)` of every vector along an axis.

    The axes of its results take the place of that axis. The function is called once for each
    vector: `mycel.vmap` is faster where it can be used.

    Args:
        func1d (Callable[..., Any]): The function.
        axis (int): The axis.
        arr (Tensor | float | list | tuple): The array.
        *args (Any): Further arguments of the function.
        **kwargs (Any): Further arguments by name.

    Returns:
        Tensor: The results, in the place of the axis.

    Raises:
        ValueError: For an array without elements.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.apply_along_axis(mnp.sum, 1, mnp.ones((2, 3))).tolist()
        [3.0, 3.0]
    """
    x = asarray(arr)
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"apply_along_axis: axis {axis} is out of range for {x.ndim} dimensions")
    place = axis % x.ndim
    moved = ops.moveaxis(x, place, -1)
    around = moved.shape[:-1]
    if any(size == 0 for size in around):
        raise ValueError(f"apply_along_axis: no vectors along axis {axis} of shape {tuple(x.shape)}")
    rows = ops.unstack(moved.reshape((-1, x.shape[place])), 0)
    made = ops.stack([asarray(func1d(row, *args, **kwargs)) for row in rows])
    inner = made.shape[1:]
    made = made.reshape((*around, *inner))
    order = (*range(place), *range(len(around), len(around) + len(inner)), *range(place, len(around)))
    return ops.transpose(made, order)


def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Tensor:
    """Apply `func(array, axis)` for one axis after the other.

    An axis that the function removes is restored with size 1.

    >>> import mycel.numpy as mnp
    >>> mnp.apply_over_axes(mnp.sum, mnp.ones((2, 3, 4)), (0, 2)).tolist()
    [[[8.0], [8.0], [8.0]]]
    """
    x = asarray(a)
    arguments.function("apply_over_axes", "func", func)
    for axis in all_axes("apply_over_axes", axes, x.ndim):
        made = asarray(func(x, axis))
        made = ops.expand_dims(made, axis) if made.ndim == x.ndim - 1 else made
        if made.ndim != x.ndim:
            raise ValueError(f"apply_over_axes: the function makes {made.ndim} dimensions of {x.ndim}")
        x = made
    return x


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Tensor:
    """Return, for each element, the value of the function or number of the last condition that
    holds.

    If none holds, a further function or number counts, by default 0. The result has the common type
    of these.

    Args:
        x (Tensor | float | list | tuple): The array.
        condlist (Sequence[Any]): The conditions.
        funclist (Sequence[Any]): The functions or numbers; a further one, by default 0, is for
            where none holds. A function is applied to the whole of `x` and must work element by
            element.
        *args (Any): Further arguments of the functions.
        **kw (dict[str, Any] | None): Further arguments by name.

    Returns:
        Tensor: The shape of `x`.

    Examples:
        >>> import mycel.numpy as mnp
        >>> v = mnp.array([-1.0, 2.0])
        >>> mnp.piecewise(v, [v < 0], [lambda t: -t, 5.0]).tolist()
        [1.0, 5.0]
    """
    value = asarray(x)
    if not isinstance(condlist, (bool, Tensor, _numpy.ndarray)) and not arguments.sequence(
        "piecewise", "condlist", condlist
    ):
        raise ValueError("piecewise: condlist must hold at least one condition")
    arguments.sequence("piecewise", "funclist", funclist)
    single = isinstance(condlist, (bool, Tensor)) or not isinstance(condlist[0], (list, tuple, Tensor, _numpy.ndarray))
    # A tensor with an axis more than the array holds several conditions.
    if isinstance(condlist, Tensor) and condlist.ndim > value.ndim:
        conditions = list(ops.unstack(condlist, 0))
    elif single and not (value.ndim == 0 and isinstance(condlist, (list, tuple))):
        conditions = [asarray(condlist)]
    else:
        conditions = [asarray(c) for c in condlist]
    pieces = [f(value, *args, **kw) if callable(f) else f for f in funclist]
    if len(pieces) not in (len(conditions), len(conditions) + 1):
        raise ValueError(f"piecewise: {len(pieces)} functions for {len(conditions)} conditions")
    choices = [asarray(piece) for piece in pieces]
    kind = functools.reduce(D.promote, [choice.dtype for choice in choices])
    made = ops.zeros(value.shape, kind)
    if len(pieces) > len(conditions):
        made = ops.broadcast_to(cast(choices[-1], kind), value.shape)
    for condition, choice in zip(conditions, choices):
        made = ops.where(cast(condition, D.bool_), cast(choice, kind), made)
    return made


def array_str(a: Any) -> str:
    """Return the elements as text, as NumPy prints them.

    >>> import mycel.numpy as mnp
    >>> mnp.array_str(mnp.arange(3))
    '[0 1 2]'
    """
    return _numpy.array_str(asarray(a).asnumpy())


def array_equiv(a1: Any, a2: Any) -> Tensor:
    """Return whether two arrays broadcast to one shape and are equal there, as a bool tensor.

    >>> import mycel.numpy as mnp
    >>> mnp.array_equiv([1, 2], [[1, 2], [1, 2]]).item()
    True
    """
    first, second = asarray(a1), asarray(a2)
    try:
        broadcast_shapes(first.shape, second.shape)
    except ValueError:
        return Tensor(False)
    return ops.all(ops.equal(first, second))


def isscalar(element: Any) -> bool:
    """Return whether `element` is a number or text of Python or NumPy; a tensor is not.

    >>> import mycel.numpy as mnp
    >>> mnp.isscalar(3.0), mnp.isscalar([3.0])
    (True, False)
    """
    return isinstance(element, (bool, int, float, complex, str, bytes, _numpy.generic))


def in1d(ar1: Any, ar2: Any, invert: bool = False) -> Tensor:
    """Return, for each element of the flattened first array, whether it is in the second; with
    `invert` whether it is not.

    >>> import mycel.numpy as mnp
    >>> mnp.in1d([0, 1, 2], [0, 2]).tolist()
    [True, False, True]
    """
    return isin(ops.ravel(asarray(ar1)), ar2, invert)


def _firsts(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return a sorted vector, the original positions of its elements, and which differ from the one
    before.
    """
    values, places = ops.sort(x)
    if x.shape[0] == 0:
        return values, places, ops.zeros((0,), D.bool_)
    return values, places, ops.concat((ops.ones((1,), D.bool_), ops.not_equal(values[1:], values[:-1])))


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    """Return the elements of the first array that are not in the second.

    They are sorted and distinct; with `assume_unique` they stay in their order.

    >>> import mycel.numpy as mnp
    >>> mnp.setdiff1d([1, 2, 3, 2, 4, 1], [3, 4, 5]).tolist()
    [1, 2]
    """
    check_flags("setdiff1d", assume_unique=assume_unique)
    x, others = ops.ravel(asarray(ar1)), asarray(ar2)
    if assume_unique:
        return ops.masked_select(x, isin(x, others, True))
    values, _, first = _firsts(x)
    return ops.masked_select(values, ops.logical_and(first, isin(values, others, True)))


def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """Return the elements that are in both arrays, sorted and distinct.

    Args:
        ar1 (Tensor | float | list | tuple): An array.
        ar2 (Tensor | float | list | tuple): An array.
        assume_unique (bool): Has no effect. Default: False.
        return_indices (bool): Whether the first position of each in both arrays is returned, too.
            Default: False.

    Returns:
        Tensor | tuple[Tensor, Tensor, Tensor]: The elements, and the positions.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.intersect1d([1, 3, 4, 3], [3, 1, 2, 1]).tolist()
        [1, 3]
    """
    check_flags("intersect1d", assume_unique=assume_unique, return_indices=return_indices)
    x, y = ops.ravel(asarray(ar1)), ops.ravel(asarray(ar2))
    kind = D.promote(x.dtype, y.dtype)
    (xs, x_places, x_first), (ys, y_places, y_first) = _firsts(cast(x, kind)), _firsts(cast(y, kind))
    x_kept, y_kept = ops.logical_and(x_first, isin(xs, ys)), ops.logical_and(y_first, isin(ys, xs))
    values = ops.masked_select(xs, x_kept)
    if not return_indices:
        return values
    return values, ops.masked_select(x_places, x_kept), ops.masked_select(y_places, y_kept)
