"""Counts of values in bins under NumPy's names.

A value belongs to the bin whose left edge it reaches, and to the last bin if it equals the last
edge; values outside are not counted. The bin is found by binary search in the edges, so that counts
agree with the returned edges. Counts are segment sums: float32 as in MindSpore, or of the type of
the weights and differentiable with respect to them.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as _numpy

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.numpy._operands import asarray
from mycel.ops._operands import need_room, number_of, size_of

__all__ = ["digitize", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]


def _float(x: Tensor) -> Tensor:
    return x if x.dtype.is_floating else cast(x, D.float32)


def _place(edges: Tensor, x: Tensor, right: bool) -> Tensor:
    """Return the number of edges before each value; `right` includes edges equal to it."""
    kind = D.promote(edges.dtype, x.dtype)
    return ops.searchsorted(cast(edges, kind), cast(x, kind), right=right, out_int32=True)


def digitize(x: Any, bins: Any, right: bool = False) -> Tensor:
    """Return the number (int32) of the bin of each value: bins[i - 1] <= x < bins[i].

    With `right`, bins[i - 1] < x <= bins[i]. `bins` is an ascending or descending vector; if it
    descends, the inequalities are reversed.

    >>> import mycel.numpy as mnp
    >>> mnp.digitize([0.5, 2.0], [0.0, 1.0, 2.0]).tolist()
    [1, 3]
    """
    value, edges = asarray(x), asarray(bins)
    if edges.ndim != 1:
        raise ValueError(f"digitize: the bins must be a vector, not of shape {tuple(edges.shape)}")
    if edges.shape[0] == 0:
        return ops.zeros(value.shape, D.int32)
    rising = _place(edges, value, not right)
    falling = edges.shape[0] - _place(ops.flip(edges, (0,)), value, not right)
    return ops.where(ops.less_equal(edges[0], edges[-1]), rising, falling)


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Tensor:
    """Return the edges of bins.

    Args:
        a (Tensor | float | list | tuple): The values.
        bins (Tensor | float | list | tuple): A vector of edges, which is returned, or a number of
            equal parts. Default: 10.
        range (Sequence[float] | None): The ends; None for the least and the greatest value (a
            single point is widened by 0.5 on both sides). Default: None.
        weights (Tensor | float | list | tuple): Has no effect. Default: None.

    Returns:
        Tensor: The edges.

    Raises:
        TypeError: For the name of a rule.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.histogram_bin_edges([1.0, 3.0], 2).tolist()
        [1.0, 2.0, 3.0]
    """
    if isinstance(bins, (str, bool, float)):
        raise TypeError(f"histogram_bin_edges: bins must be an int or a vector of edges, not {bins!r}")
    if not isinstance(bins, int):
        edges = asarray(bins)
        if edges.ndim != 1:
            raise ValueError(f"histogram_bin_edges: the edges must be a vector, not of shape {tuple(edges.shape)}")
        return edges
    if weights is not None and asarray(weights).shape != asarray(a).shape:
        raise arguments.wrong_value("histogram_bin_edges", "weights", "of the shape of a", weights)
    count = size_of("histogram_bin_edges", bins)
    if count < 1:
        raise ValueError(f"histogram_bin_edges: there must be at least one bin, not {bins}")
    need_room("histogram_bin_edges", (count,), D.float64)
    x = _float(ops.ravel(asarray(a)))
    if range is not None:
        low, high = _range("histogram_bin_edges", range)
        low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
        return Tensor(_numpy.linspace(low, high, bins + 1)).astype(x.dtype)
    if x.shape[0] == 0:
        return Tensor(_numpy.linspace(-0.5, 0.5, bins + 1)).astype(x.dtype)
    least, most = ops.amin(x), ops.amax(x)
    point = ops.equal(least, most)
    least, most = ops.where(point, least - 0.5, least), ops.where(point, most + 0.5, most)
    way = Tensor(_numpy.arange(bins + 1) / bins).astype(x.dtype)
    inner = least + (most - least) * way
    # Rounding must not lose the largest value.
    return ops.concat((inner[:bins], ops.expand_dims(most, 0)))


def _range(name: str, value: Any) -> tuple[float, float]:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise arguments.wrong_value(name, "the range", "a pair of numbers", value)
    low, high = (float(number_of(name, "the range", v)) for v in value)
    if not -inf < low <= high < inf:
        raise ValueError(f"{name}: the range must be finite and rise, not {value!r}")
    return low, high


def _bins(name: str, x: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
    """Return the bin of each value, and whether it has one."""
    count = edges.shape[0] - 1
    if count < 1:
        raise ValueError(f"{name}: there must be at least two edges, not {count + 1}")
    found = _place(edges, x, True) - 1
    kind = D.promote(edges.dtype, x.dtype)
    at_end = ops.equal(cast(x, kind), cast(edges[-1], kind))
    found = ops.where(at_end, count - 1, found)
    return found, ops.logical_and(ops.greater_equal(found, 0), ops.less(found, count))


def _amounts(name: str, x: Tensor, weights: Any) -> Tensor:
    if weights is None:
        return ops.ones(x.shape, x.dtype if x.dtype is D.float64 else D.float32)
    amounts = _float(ops.ravel(asarray(weights)))
    if tuple(amounts.shape) != tuple(x.shape):
        raise ValueError(f"{name}: {amounts.shape[0]} weights for {x.shape[0]} values")
    return amounts


def histogram(
    a: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the number of values of `a`, or the sum of their `weights`, in each bin, and the
    edges.

    Args:
        a (Tensor | float | list | tuple): The values.
        bins (Tensor | float | list | tuple): A number of equal parts, or a vector of edges.
            Default: 10.
        range (Sequence[float] | None): The ends; None for those of the values. Default: None.
        weights (Tensor | float | list | tuple): What each counts; None for 1. Default: None.
        density (bool): Whether counts are scaled so that the integral is 1. Default: False.

    Returns:
        tuple[Tensor, Tensor]: The counts, and the edges.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.histogram([1, 2, 1], [0, 1, 2, 3])[0].tolist()
        [0.0, 2.0, 1.0]
    """
    x = ops.ravel(asarray(a))
    edges = histogram_bin_edges(x, bins, range)
    found, inside = _bins("histogram", x, edges)
    amounts = _amounts("histogram", x, weights)
    count = ops.unsorted_segment_sum(amounts, ops.where(inside, found, -1), edges.shape[0] - 1)
    if density:
        count = count / (cast(ops.diff(edges), count.dtype) * ops.sum(count))
    return count, edges


def _columns(sample: Any) -> list[Tensor]:
    if isinstance(sample, (list, tuple)):
        columns = [asarray(v) for v in sample]
        if any(x.ndim > 1 for x in columns):
            raise ValueError(f"histogramdd: takes vectors, not arrays of shapes {[x.shape for x in columns]}")
        return [ops.ravel(x) for x in columns]
    x = asarray(sample)
    if x.ndim == 1:
        return [x]
    if x.ndim != 2:
        raise ValueError(f"histogramdd: the sample must be (N, D) or a sequence of D vectors, not {tuple(x.shape)}")
    return list(ops.unstack(x, 1))


def _listed(parameter: str, value: Any) -> list[Any]:
    return list(
        value if isinstance(value, (Tensor, _numpy.ndarray)) else arguments.sequence("histogramdd", parameter, value)
    )


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool = False
) -> tuple[Tensor, list[Tensor]]:
    """Return the histogram of points in D dimensions, and a list of D vectors of edges.

    Args:
        sample (Tensor | float | list | tuple): (N, D) or a sequence of D vectors.
        bins (Tensor | float | list | tuple): An int, or for each dimension an int or a vector of
            edges. Default: 10.
        range (Sequence[float] | None): The ends for each dimension, or None. Default: None.
        weights (Tensor | float | list | tuple): What each counts; None for 1. Default: None.
        density (bool): Whether counts are scaled so that the integral is 1. Default: False.

    Returns:
        tuple[Tensor, list[Tensor]]: The counts, and the edges.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.histogramdd([[0.0, 1.0], [0.0, 1.0]], 2)[0].tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    columns = _columns(sample)
    rank = len(columns)
    if not columns or any(x.shape != columns[0].shape for x in columns):
        raise ValueError(f"histogramdd: takes vectors of one size, not of {[x.shape[0] for x in columns]}")
    each = [bins] * rank if isinstance(bins, int) else _listed("bins", bins)
    ranges = [None] * rank if range is None else _listed("range", range)
    if len(each) != rank or len(ranges) != rank:
        raise ValueError(f"histogramdd: {len(each)} bins and {len(ranges)} ranges for {rank} dimensions")
    edges = [histogram_bin_edges(x, b, r) for x, b, r in zip(columns, each, ranges)]
    sizes = [e.shape[0] - 1 for e in edges]
    flat: Any = 0
    all_inside: Tensor | None = None
    for x, e, size in zip(columns, edges, sizes):
        found, inside = _bins("histogramdd", x, e)
        flat = flat * size + found
        all_inside = inside if all_inside is None else ops.logical_and(all_inside, inside)
    total = 1
    for size in sizes:
        total = total * size
    amounts = _amounts("histogramdd", columns[0], weights)
    count = ops.unsorted_segment_sum(amounts, ops.where(all_inside, flat, -1), total).reshape(tuple(sizes))
    if density:
        count = count / ops.sum(count)
        for k, e in enumerate(edges):
            width = cast(ops.diff(e), count.dtype)
            count = count / width.reshape((1,) * k + (-1,) + (1,) * (rank - k - 1))
    return count, edges


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the histogram of pairs (bins of x, bins of y), and both vectors of edges.

    Args:
        x (Tensor | float | list | tuple): The first numbers of the pairs.
        y (Tensor | float | list | tuple): The second numbers of the pairs.
        bins (Tensor | float | list | tuple): An int, a vector of edges for both, or a pair of ints
            or vectors. Default: 10.
        range (Sequence[float] | None): The ends; None for those of the values. Default: None.
        weights (Tensor | float | list | tuple): What each counts; None for 1. Default: None.
        density (bool): Whether counts are scaled so that the integral is 1. Default: False.

    Returns:
        tuple[Tensor, Tensor, Tensor]: The counts, and the edges.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.histogram2d([0.0, 1.0], [0.0, 1.0], 2)[0].tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    pair = bins if isinstance(bins, int) or (isinstance(bins, (list, tuple)) and len(bins) == 2) else (bins, bins)
    count, (first, second) = histogramdd((x, y), pair, range, weights, density)
    return count, first, second
