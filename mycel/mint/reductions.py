"""Reductions, sorting and running reductions with `dim` and `keepdim`; positions are int64."""

from __future__ import annotations

import math
from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops._operands import axis_of, flat, floating, operand, reshaped, take_slice
from mycel.ops.algebra.norms import matrix_norm
from mycel.ops.sorting import Chosen, kthvalue
from mycel.ops.vector_norms import root, vector_norm

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "argsort",
    "count_nonzero",
    "cummax",
    "cummin",
    "cumsum",
    "kthvalue",
    "max",
    "mean",
    "median",
    "min",
    "nansum",
    "norm",
    "prod",
    "sort",
    "std",
    "std_mean",
    "sum",
    "topk",
    "unique",
    "var",
    "var_mean",
]


def _chosen(values: Tensor, indices: Tensor) -> Chosen:
    return Chosen(values, cast(indices, D.int64))


def all(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Return whether all elements are true (not 0) over `dim`, an axis or several, by default all
    axes.

    >>> import mycel as ms
    >>> ms.mint.all(ms.Tensor([1, 0])).item()
    False
    """
    if keepdim is not False:
        arguments.flag("all", "keepdim", keepdim)
    return ops.all(cast(operand("all", input), D.bool_), dim, keepdim)


def any(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Return whether any element is true (not 0) over `dim`, an axis or several, by default all
    axes.

    >>> import mycel as ms
    >>> ms.mint.any(ms.Tensor([1, 0])).item()
    True
    """
    if keepdim is not False:
        arguments.flag("any", "keepdim", keepdim)
    return ops.any(cast(operand("any", input), D.bool_), dim, keepdim)


def amax(input: Any, dim: Any = (), keepdim: bool = False) -> Tensor:
    """Return the largest elements over `dim`, by default all axes; equal elements share the
    derivative.

    >>> import mycel as ms
    >>> ms.mint.amax(ms.Tensor([1.0, 3.0])).item()
    3.0
    """
    if keepdim is not False:
        arguments.flag("amax", "keepdim", keepdim)
    if dim is None:
        raise arguments.wrong_type("amax", "dim", "an int or a sequence of ints", dim)
    return ops.amax(input, dim, keepdim)


def amin(input: Any, dim: Any = (), keepdim: bool = False) -> Tensor:
    """Return the smallest elements over `dim`, by default all axes; equal elements share the
    derivative.

    >>> import mycel as ms
    >>> ms.mint.amin(ms.Tensor([1.0, 3.0])).item()
    1.0
    """
    if keepdim is not False:
        arguments.flag("amin", "keepdim", keepdim)
    if dim is None:
        raise arguments.wrong_type("amin", "dim", "an int or a sequence of ints", dim)
    return ops.amin(input, dim, keepdim)


def argmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Return the position of the first largest element along `dim`, or among all elements in
    row-major order.

    >>> import mycel as ms
    >>> ms.mint.argmax(ms.Tensor([1.0, 3.0])).item()
    1
    """
    if keepdim is not False:
        arguments.flag("argmax", "keepdim", keepdim)
    return _position(ops.argmax, input, dim, keepdim)


def argmin(input: Any, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Return the position of the first smallest element along `dim`, or among all elements in
    row-major order.

    >>> import mycel as ms
    >>> ms.mint.argmin(ms.Tensor([1.0, 3.0])).item()
    0
    """
    if keepdim is not False:
        arguments.flag("argmin", "keepdim", keepdim)
    return _position(ops.argmin, input, dim, keepdim)


def _position(function: Any, input: Any, dim: int | None, keepdim: bool) -> Tensor:
    x = operand(function.__name__, input)
    if dim is None:
        found = function(flat(x), 0)
        return cast(reshaped(found, (1,) * x.ndim) if keepdim else found, D.int64)
    if x.ndim == 0:
        axis_of(function.__name__, dim, 1)
        return cast(function(flat(x), 0), D.int64)
    return cast(function(x, dim, keepdim), D.int64)


def max(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """Return the largest element of all, the largest elements along `dim`, or the larger elements
    of two tensors.

    `max(input)` returns one element, `max(input, dim, keepdim)` (values, indices), and `max(input,
    other)` the element-wise maximum.

    Args:
        input (Tensor): The tensor.
        dim (int | None): The axis; without it one element is returned. Default: None.
        keepdim (bool): Whether reduced axes stay with size 1. Default: False.
        other (Tensor | float | None): A second tensor, instead of `dim`: the result is element by
            element. Default: None.

    Returns:
        Tensor | tuple[Tensor, Tensor]: The elements, and along an axis their positions, int64.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.max(ms.Tensor([[1.0, 3.0]]), 1).indices.tolist()
        [1]
    """
    return _extreme("max", input, dim, keepdim, other)


def min(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """Return the smallest element of all, the smallest elements along `dim`, or the smaller
    elements of two tensors.

    `min(input)` returns one element, `min(input, dim, keepdim)` (values, indices), and `min(input,
    other)` the element-wise minimum.

    Args:
        input (Tensor): The tensor.
        dim (int | None): The axis; without it one element is returned. Default: None.
        keepdim (bool): Whether reduced axes stay with size 1. Default: False.
        other (Tensor | float | None): A second tensor, instead of `dim`: the result is element by
            element. Default: None.

    Returns:
        Tensor | tuple[Tensor, Tensor]: The elements, and along an axis their positions, int64.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.min(ms.Tensor([[1.0, 3.0]]), 1).indices.tolist()
        [0]
    """
    return _extreme("min", input, dim, keepdim, other)


def _extreme(name: str, input: Any, dim: Any, keepdim: bool, other: Any) -> Any:
    if keepdim is not False:
        arguments.flag(name, "keepdim", keepdim)
        if dim is None or isinstance(dim, Tensor):
            raise arguments.wrong_type(name, "dim", "an int where keepdim is given", dim)
    if isinstance(dim, Tensor) or other is not None:
        return (ops.maximum if name == "max" else ops.minimum)(input, dim if other is None else other)
    x = operand(name, input)
    if dim is None:
        return (ops.amax if name == "max" else ops.amin)(x)
    positions = _position(ops.argmax if name == "max" else ops.argmin, x, dim, True)
    if x.ndim == 0:
        return Chosen(x, positions)
    axis = axis_of(name, dim, x.ndim)
    values = ops.gather_elements(x, axis, positions)
    if keepdim:
        return Chosen(values, positions)
    return Chosen(ops.squeeze(values, axis), ops.squeeze(positions, axis))


def mean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the mean over axes.

    Args:
        input (Tensor): The tensor.
        dim (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        keepdim (bool): Whether reduced axes stay with size 1. Default: False.
        dtype (DType | None): The type to which elements are converted first; None for none.
            Default: None.

    Returns:
        Tensor: The results, without the axes unless `keepdim`.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.mean(ms.Tensor([1.0, 3.0])).item()
        2.0
    """
    if keepdim is not False:
        arguments.flag("mean", "keepdim", keepdim)
    x = operand("mean", input)
    return ops.mean(x if dtype is None else cast(x, D.from_any(dtype)), dim, keepdim)


def sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the sum over axes.

    Args:
        input (Tensor): The tensor.
        dim (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        keepdim (bool): Whether reduced axes stay with size 1. Default: False.
        dtype (DType | None): The type to which elements are converted first; None for none.
            Default: None.

    Returns:
        Tensor: The results, without the axes unless `keepdim`.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.sum(ms.Tensor([1, 3])).item()
        4
    """
    if keepdim is not False:
        arguments.flag("sum", "keepdim", keepdim)
    return ops.sum(_counted(operand("sum", input), dtype), dim, keepdim)


def prod(input: Any, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the product over axes.

    Args:
        input (Tensor): The tensor.
        dim (int | None): The axis; None for all. Default: None.
        keepdim (bool): Whether reduced axes stay with size 1. Default: False.
        dtype (DType | None): The type to which elements are converted first; None for int64 of
            integers and booleans. Default: None.

    Returns:
        Tensor: The products.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.prod(ms.Tensor([2, 3])).item()
        6
    """
    if keepdim is not False:
        arguments.flag("prod", "keepdim", keepdim)
    if isinstance(dim, (tuple, list)):
        raise arguments.wrong_type("prod", "dim", "an int or None", dim)
    return ops.prod(_counted(operand("prod", input), dtype), dim, keepdim)


def _counted(x: Tensor, dtype: Any) -> Tensor:
    if dtype is not None:
        return cast(x, D.from_any(dtype))
    return cast(x, D.int64) if x.dtype.kind in "iub" else x


def nansum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the sum over axes, with NaN as 0.

    Args:
        input (Tensor): The tensor.
        dim (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        keepdim (bool): Whether reduced axes stay with size 1. Default: False.
        dtype (DType | None): The type to which elements are converted first; None for none.
            Default: None.

    Returns:
        Tensor: The results, without the axes unless `keepdim`.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.nansum(ms.Tensor([1.0, float("nan")])).item()
        1.0
    """
    if keepdim is not False:
        arguments.flag("nansum", "keepdim", keepdim)
    return ops.nansum(_counted(operand("nansum", input), dtype), dim, keepdim)


def _spread(name: str, input: Any, dim: Any, correction: Any, keepdim: bool) -> tuple[Tensor, Tensor]:
    """Return variances and means; variances are sums of squares divided by the count less
    `correction`.
    """
    if keepdim is not False:
        arguments.flag(name, "keepdim", keepdim)
    correction = arguments.integer(name, "correction", correction)
    x = floating(name, input)
    average = ops.mean(x, dim, True)
    squares = ops.mean(ops.square(x - average), dim, keepdim)
    axes = (
        range(x.ndim)
        if dim is None or dim == ()
        else [axis_of(name, a, x.ndim) for a in (dim if isinstance(dim, (tuple, list)) else (dim,))]
    )
    count = math.prod(x.shape[a] for a in axes)
    left = count - correction
    scale = count / left if left > 0 else math.nan if count <= 1 and left == 0 else math.inf
    if not keepdim:
        average = reshaped(average, tuple(squares.shape))
    return squares * scale, average


def var(input: Any, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> Tensor:
    """Return the variance over axes: the sum of squared distances from the mean, divided by the
    count less `correction`.

    Args:
        input (Tensor): The tensor.
        dim (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        correction (int): What is subtracted from the count. Default: 1.
        keepdim (bool): Whether reduced axes stay with size 1. Default: False.

    Returns:
        Tensor: The results, without the axes unless `keepdim`.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.var(ms.Tensor([1.0, 3.0])).item()
        2.0
    """
    return _spread("var", input, dim, correction, keepdim)[0]


def std(input: Any, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> Tensor:
    """Return the standard deviation over axes: the square root of `var` with the same `correction`.

    Args:
        input (Tensor): The tensor.
        dim (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        correction (int): What is subtracted from the count. Default: 1.
        keepdim (bool): Whether reduced axes stay with size 1. Default: False.

    Returns:
        Tensor: The results, without the axes unless `keepdim`.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.std(ms.Tensor([1.0, 3.0]), correction=0).item()
        1.0
    """
    return root(_spread("std", input, dim, correction, keepdim)[0], 2)


def var_mean(input: Any, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return the variance, divided by the count less `correction`, and the mean over axes.

    Args:
        input (Tensor): The tensor.
        dim (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        correction (int): What is subtracted from the count. Default: 1.
        keepdim (bool): Whether reduced axes stay with size 1. Default: False.

    Returns:
        tuple[Tensor, Tensor]: The results and the means.

    Examples:
        >>> import mycel as ms
        >>> [t.item() for t in ms.mint.var_mean(ms.Tensor([1.0, 3.0]))]
        [2.0, 2.0]
    """
    return _spread("var_mean", input, dim, correction, keepdim)


def std_mean(input: Any, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return the standard deviation, with the `correction` of `var`, and the mean over axes.

    Args:
        input (Tensor): The tensor.
        dim (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        correction (int): What is subtracted from the count. Default: 1.
        keepdim (bool): Whether reduced axes stay with size 1. Default: False.

    Returns:
        tuple[Tensor, Tensor]: The results and the means.

    Examples:
        >>> import mycel as ms
        >>> [t.item() for t in ms.mint.std_mean(ms.Tensor([1.0, 3.0]), correction=0)]
        [1.0, 2.0]
    """
    variance, average = _spread("std_mean", input, dim, correction, keepdim)
    return root(variance, 2), average


def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the vector norm of order `p` over axes.

    "fro" is order 2, "nuc" the nuclear norm of two axes.

    Args:
        input (Tensor): The tensor.
        p (float | str): The order. Default: "fro".
        dim (int | tuple[int, ...] | None): The axes; None for all. Default: None.
        keepdim (bool): Whether reduced axes stay with size 1. Default: False.
        dtype (DType | None): The type to which elements are converted first; None for none.
            Default: None.

    Returns:
        Tensor: The results, without the axes unless `keepdim`.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.norm(ms.Tensor([3.0, 4.0])).item()
        5.0
    """
    if keepdim is not False:
        arguments.flag("norm", "keepdim", keepdim)
    if not isinstance(p, (int, float, str)):
        raise arguments.wrong_value("norm", "p", "a number, 'fro' or 'nuc'", p)
    if p == "nuc":
        x = floating("norm", input)
        return matrix_norm(x, "nuc", tuple(range(x.ndim)) if dim is None else dim, keepdim, dtype=dtype)
    if isinstance(p, str) and p != "fro":
        raise ValueError(f"norm: p must be a number, 'fro' or 'nuc', not {p!r}")
    return vector_norm(input, 2 if p == "fro" else p, dim, keepdim, dtype=dtype)


def count_nonzero(input: Any, dim: Any = None) -> Tensor:
    """Return the number of elements that are not 0 over `dim`, by default all axes, in int64.

    >>> import mycel as ms
    >>> ms.mint.count_nonzero(ms.Tensor([1.0, 0.0])).item()
    1
    """
    return sum(ops.ne(operand("count_nonzero", input), 0), dim)


def argsort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Return the positions that sort `input` along `dim`, in ascending order or `descending`.

    NaN counts as the largest.

    Args:
        input (Tensor): The tensor.
        dim (int): The axis. Default: -1.
        descending (bool): Whether the order is descending. Default: False.
        stable (bool): Has no effect: equal elements keep their order always. Default: False.

    Returns:
        Tensor: The positions, int64, of the shape of the input.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.argsort(ms.Tensor([3.0, 1.0])).tolist()
        [1, 0]
    """
    if descending is not False:
        arguments.flag("argsort", "descending", descending)
    if stable is not False:
        arguments.flag("argsort", "stable", stable)
    return sort(input, dim=dim, descending=descending).indices


def sort(input: Any, *, dim: int = -1, descending: bool = False, stable: bool = False) -> Chosen:
    """Return the elements of `input` sorted along `dim`, in ascending order or `descending`, with
    their positions.

    NaN counts as the largest.

    Args:
        input (Tensor): The tensor.
        dim (int): The axis. Default: -1.
        descending (bool): Whether the order is descending. Default: False.
        stable (bool): Has no effect: equal elements keep their order always. Default: False.

    Returns:
        tuple[Tensor, Tensor]: The elements, and their positions, int64.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.sort(ms.Tensor([3.0, 1.0])).values.tolist()
        [1.0, 3.0]
    """
    if descending is not False:
        arguments.flag("sort", "descending", descending)
    if stable is not False:
        arguments.flag("sort", "stable", stable)
    x = operand("sort", input)
    if x.ndim == 0:
        axis_of("sort", dim, 1)
        return Chosen(x, ops.zeros((), D.int64))
    return _chosen(*ops.sort(x, dim, descending))


def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Chosen:
    """Return the `k` largest elements along an axis, with their positions.

    NaN counts as the largest.

    Args:
        input (Tensor): The tensor.
        k (int): How many.
        dim (int): The axis. Default: -1.
        largest (bool): Whether they are the largest instead of the smallest. Default: True.
        sorted (bool): Has no effect: they are in order always. Default: True.

    Returns:
        tuple[Tensor, Tensor]: The elements, and their positions, int64.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.topk(ms.Tensor([3.0, 1.0, 2.0]), 2).indices.tolist()
        [0, 2]
    """
    if largest is not True:
        arguments.flag("topk", "largest", largest)
    if sorted is not True:
        arguments.flag("topk", "sorted", sorted)
    arguments.integer("topk", "dim", dim)
    return _chosen(*ops.topk(input, k, dim, largest, sorted))


def median(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the median of all elements, or the medians along `dim` with their positions.

    Of two elements in the middle it is the smaller one; it is NaN if an element is NaN.

    >>> import mycel as ms
    >>> ms.mint.median(ms.Tensor([3.0, 1.0, 2.0])).item()
    2.0
    """
    if keepdim is not False:
        arguments.flag("median", "keepdim", keepdim)
    x = operand("median", input)
    if dim is None:
        return _middle(flat(x), 0, False).values
    if x.ndim == 0:
        axis_of("median", dim, 1)
        return Chosen(x, ops.zeros((), D.int64))
    return _middle(x, axis_of("median", dim, x.ndim), keepdim)


def _middle(x: Tensor, axis: int, keepdim: bool) -> Chosen:
    if x.shape[axis] == 0:
        raise ShapeError(f"median: axis {axis} of a tensor of shape {x.shape} has no elements")
    found = kthvalue(x, (x.shape[axis] + 1) // 2, axis, True)
    if x.dtype.is_floating:
        last = kthvalue(x, x.shape[axis], axis, True)
        bad = ops.isnan(last.values)
        place = cast(ops.argmax(cast(ops.isnan(x), D.int32), axis, True), D.int64)
        found = Chosen(ops.where(bad, last.values, found.values), ops.where(bad, place, found.indices))
    return found if keepdim else Chosen(ops.squeeze(found.values, axis), ops.squeeze(found.indices, axis))


def cummax(input: Any, dim: int) -> Chosen:
    """Return the running maxima along `dim` and their positions, the last of equal elements.

    From the first NaN on they are NaN.

    >>> import mycel as ms
    >>> ms.mint.cummax(ms.Tensor([1.0, 3.0, 2.0]), 0).values.tolist()
    [1.0, 3.0, 3.0]
    """
    return _chosen(*ops.cummax(input, dim))


def cummin(input: Any, dim: int) -> Chosen:
    """Return the running minima along `dim` and their positions, the last of equal elements.

    From the first NaN on they are NaN.

    >>> import mycel as ms
    >>> ms.mint.cummin(ms.Tensor([3.0, 1.0, 2.0]), 0).values.tolist()
    [3.0, 1.0, 1.0]
    """
    least, place = ops.cummin(input, dim)
    return _chosen(least, cast(place, D.int64))


def cumsum(input: Any, dim: int, dtype: Any = None) -> Tensor:
    """Return the running sums along `dim`; integers and booleans are summed in int64.

    >>> import mycel as ms
    >>> ms.mint.cumsum(ms.Tensor([1, 2]), 0).tolist()
    [1, 3]
    """
    return ops.cumsum(_counted(operand("cumsum", input), dtype), dim)


def unique(
    input: Any,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the distinct elements, or slices along an axis, in ascending (lexicographic) order.

    Args:
        input (Tensor): The tensor.
        sorted (bool): Has no effect: elements are in order always. Default: True.
        return_inverse (bool): Whether the position of each element in the result is returned,
            int64. Default: False.
        return_counts (bool): Whether the number of times that each occurs is returned, int64.
            Default: False.
        dim (int | None): The axis of the slices; None for all elements. Default: None.

    Returns:
        Tensor | tuple[Tensor, ...]: The elements, and what else is asked for.

    Examples:
        >>> import mycel as ms
        >>> ms.mint.unique(ms.Tensor([3, 1, 3])).tolist()
        [1, 3]
    """
    if sorted is not True:
        arguments.flag("unique", "sorted", sorted)
    if return_inverse is not False:
        arguments.flag("unique", "return_inverse", return_inverse)
    if return_counts is not False:
        arguments.flag("unique", "return_counts", return_counts)
    x = operand("unique", input)
    if dim is not None:
        return _unique_slices(x, axis_of("unique", dim, x.ndim), return_inverse, return_counts)
    order = sort(flat(x), dim=0)
    found = ops.unique_consecutive(order.values, return_inverse, return_counts)
    parts = list(found) if isinstance(found, (tuple, list)) else [found]
    if return_inverse:
        back = ops.scatter(ops.zeros_like(order.indices), 0, order.indices, cast(parts[1], D.int64))
        parts[1] = reshaped(back, tuple(x.shape))
    if return_counts:
        parts[-1] = cast(parts[-1], D.int64)
    return tuple(parts) if len(parts) > 1 else parts[0]


def _unique_slices(x: Tensor, axis: int, return_inverse: bool, return_counts: bool) -> Any:
    rows = ops.movedim(x, axis, 0)
    table = ops.reshape(rows, (rows.shape[0], -1))
    order = ops.arange(rows.shape[0], dtype=D.int64)
    # Stable sorts by each column, from the last to the first, give the lexicographic order.
    for k in range(table.shape[1] - 1, -1, -1):
        column = ops.gather(take_slice(table, 1, k, k + 1), order, 0)
        order = ops.gather(order, sort(flat(column), dim=0).indices, 0)
    found = ops.unique_consecutive(ops.gather(rows, order, 0), return_inverse, return_counts, 0)
    parts = list(found) if isinstance(found, (tuple, list)) else [found]
    parts[0] = ops.movedim(parts[0], 0, axis)
    if return_inverse:
        parts[1] = ops.scatter(ops.zeros_like(order), 0, order, cast(parts[1], D.int64))
    if return_counts:
        parts[-1] = cast(parts[-1], D.int64)
    return tuple(parts) if len(parts) > 1 else parts[0]
