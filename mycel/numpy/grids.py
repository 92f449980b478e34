"""Windows, grids and positions under NumPy's names.

Values that depend on sizes only are computed once, in float64, and rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as _numpy

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.numpy._operands import as_axis, as_kind, asarray, check_flags, named_kind
from mycel.ops._operands import check_sizes, need_room, numbers, shape_of, size_of

__all__ = [
    "bartlett",
    "blackman",
    "diag_indices",
    "geomspace",
    "hamming",
    "hanning",
    "indices",
    "ix_",
    "mgrid",
    "ogrid",
    "ravel_multi_index",
    "tril_indices",
    "tril_indices_from",
    "triu_indices",
    "triu_indices_from",
    "unravel_index",
]


def _window(name: str, values: Any, M: int) -> Tensor:
    arguments.integer(name, "the number of points", M, numpy=False)
    need_room(name, shape_of(name, max(M, 0)), D.float64)
    return Tensor(values(M), D.float32)


def bartlett(M: int) -> Tensor:
    """Return Bartlett's window of M points, a triangle with zeros at the ends, float32.

    >>> import mycel.numpy as mnp
    >>> mnp.bartlett(5).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return _window("bartlett", _numpy.bartlett, M)


def blackman(M: int) -> Tensor:
    """Return Blackman's window of M points, 0.42 - 0.5 cos(2 pi n / (M - 1)) + 0.08 cos(4 pi n / (M
    - 1)), float32.

    >>> import mycel.numpy as mnp
    >>> round(mnp.blackman(5)[1].item(), 4)
    0.34
    """
    return _window("blackman", _numpy.blackman, M)


def hamming(M: int) -> Tensor:
    """Return Hamming's window of M points, 0.54 - 0.46 cos(2 pi n / (M - 1)), float32.

    >>> import mycel.numpy as mnp
    >>> round(mnp.hamming(4)[1].item(), 4)
    0.77
    """
    return _window("hamming", _numpy.hamming, M)


def hanning(M: int) -> Tensor:
    """Return Hann's window of M points, 0.5 - 0.5 cos(2 pi n / (M - 1)), float32.

    >>> import mycel.numpy as mnp
    >>> mnp.hanning(5).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return _window("hanning", _numpy.hanning, M)


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Tensor:
    """Return `num` numbers from `start` to `stop` with a constant ratio.

    Args:
        start (Tensor | float | list | tuple): The first number; arrays broadcast.
        stop (Tensor | float | list | tuple): The last number; arrays broadcast.
        num (int): How many. Default: 50.
        endpoint (bool): Whether `stop` is the last of them. Default: True.
        dtype (DType | None): The type of the result. Default: None.
        axis (int): Where the new axis is put. Default: 0.

    Returns:
        Tensor: The numbers.

    Examples:
        >>> import mycel.numpy as mnp
        >>> [round(v, 4) for v in mnp.geomspace(1, 8, 4).tolist()]
        [1.0, 2.0, 4.0, 8.0]
    """
    check_flags("geomspace", endpoint=endpoint)
    arguments.integer("geomspace", "num", num, 0, numpy=False)
    first, last = (v if v.dtype.is_floating else cast(v, D.float32) for v in (asarray(start), asarray(stop)))
    kind = D.promote(first.dtype, last.dtype)
    parts = max(num - 1 if endpoint else num, 1)
    way = Tensor(numbers(num) / parts).astype(kind)
    first, ratio = ops.expand_dims(cast(first, kind), -1), ops.expand_dims(cast(last, kind) / cast(first, kind), -1)
    return as_kind(ops.moveaxis(first * ops.pow(ratio, way), -1, as_axis(axis)), dtype)


def indices(dimensions: Any, dtype: Any = D.int32, sparse: bool = False) -> Any:
    """Return, for each axis of a shape, the position of each element along that axis.

    The result is a list of tensors of that shape, as in MindSpore (NumPy stacks them); with
    `sparse` they only broadcast to it.

    >>> import mycel.numpy as mnp
    >>> [grid.tolist() for grid in mnp.indices((2, 2))]
    [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
    """
    check_flags("indices", sparse=sparse)
    kind = named_kind(dtype)
    shape = check_sizes("indices", shape_of("indices", dimensions))
    need_room("indices", (len(shape), *shape), D.int64)
    made: Any = _numpy.indices(shape, sparse=True) if sparse else _numpy.indices(shape)
    return [Tensor(_numpy.ascontiguousarray(g)).astype(kind) for g in made]


def ix_(*args: Any) -> tuple[Tensor, ...]:
    """Return vectors of positions as an open grid: the elements of the k-th lie along axis k.

    A mask stands for the positions where it is true.

    >>> import mycel.numpy as mnp
    >>> [grid.shape for grid in mnp.ix_([0, 1], [2, 4, 5])]
    [(2, 1), (1, 3)]
    """
    grids = []
    for k, arg in enumerate(args):
        x = asarray(arg)
        if x.ndim != 1:
            raise ValueError(f"ix_: every argument must be a vector, not of shape {tuple(x.shape)}")
        x = ops.nonzero(x, as_tuple=True)[0] if x.dtype is D.bool_ else x
        grids.append(ops.reshape(x, (1,) * k + (-1,) + (1,) * (len(args) - k - 1)))
    return tuple(grids)


def _count(part: Any) -> int:
    """Return the number of coordinates of a slice of a grid."""
    if not isinstance(part, slice) or part.stop is None:
        return 1
    start, step = part.start or 0, 1 if part.step is None else part.step
    if isinstance(step, complex):
        return int(abs(step))
    return max(math.ceil((part.stop - start) / step), 0) if step else 1


class _Grid:
    """Coordinates by slices: `start:stop:step`, or `start:stop:countj` for `count` points that
    include both ends.
    """

    def __init__(self, dense: bool) -> None:
        self._dense = dense

    def __getitem__(self, key: Any) -> Any:
        for entry in key if isinstance(key, tuple) else (key,):
            if not isinstance(entry, slice) or (entry.step is not None and entry.step == 0):
                raise ValueError(
                    f"mgrid, ogrid: every index is a slice start:stop:step with a step that is not 0, not {entry!r:.80}"
                )
        counts = [_count(part) for part in (key if isinstance(key, tuple) else (key,))]
        whole = counts if self._dense else [sum(counts)]
        need_room("mgrid" if self._dense else "ogrid", shape_of("mgrid", (len(counts), *whole)), D.float64)
        made = (_numpy.mgrid if self._dense else _numpy.ogrid)[key]
        return [_grid(v) for v in made] if isinstance(made, (tuple, list)) else _grid(made)


def _grid(values: Any) -> Tensor:
    kind = D.float32 if values.dtype.kind == "f" else D.int32
    return Tensor(_numpy.ascontiguousarray(values)).astype(kind)


#: The coordinates of every point of a grid, stacked: `mgrid[0:2, 0:3]` has the shape (2, 2, 3).
mgrid = _Grid(True)
#: The coordinates along each axis of a grid, in shapes that broadcast: `ogrid[0:2, 0:3]` has the
#: shapes (2, 1) and (1, 3).
ogrid = _Grid(False)


def diag_indices(n: int, ndim: int = 2) -> tuple[Tensor, ...]:
    """Return the positions of the main diagonal of an array with `ndim` axes of size n.

    >>> import mycel.numpy as mnp
    >>> [p.tolist() for p in mnp.diag_indices(3)]
    [[0, 1, 2], [0, 1, 2]]
    """
    (size, count) = (size_of("diag_indices", v) for v in (n, ndim))
    if size < 0 or not 1 <= count <= 64:
        raise ValueError(f"diag_indices: n must not be negative and ndim lie between 1 and 64, not {n} and {ndim}")
    return (Tensor(numbers(size), D.int32),) * count


def _pair(found: Any) -> tuple[Tensor, Tensor]:
    rows, columns = found
    return Tensor(rows, D.int32), Tensor(columns, D.int32)


def _triangle(name: str, n: Any, k: Any, m: Any, toward: Callable[[float], int]) -> tuple[int, int, int]:
    """Return sizes and diagonal of a triangle: fractions of sizes count as a whole row or column,
    those of the diagonal go `toward` the triangle's inside, and negative sizes are empty.
    """
    rows = max(_counted(name, "n", n, math.ceil), 0)
    columns = rows if m is None else max(_counted(name, "m", m, math.ceil), 0)
    need_room(name, (rows, columns), D.int64)
    return rows, min(max(_counted(name, "k", k, toward), -rows), columns), columns


def _counted(name: str, parameter: str, value: Any, toward: Callable[[float], int]) -> int:
    if isinstance(value, (bool, float)):
        if not math.isfinite(value):
            raise arguments.wrong_value(name, parameter, "finite", value)
        return toward(value)
    return size_of(name, value)


def tril_indices(n: float, k: float = 0, m: float | None = None) -> tuple[Tensor, Tensor]:
    """Return the rows and columns of the elements on and below the k-th diagonal of an n x m
    matrix. Sizes that are no integers count as the next larger ones.

    >>> import mycel.numpy as mnp
    >>> [p.tolist() for p in mnp.tril_indices(2)]
    [[0, 1, 1], [0, 0, 1]]
    """
    return _pair(_numpy.tril_indices(*_triangle("tril_indices", n, k, m, math.floor)))


def triu_indices(n: float, k: float = 0, m: float | None = None) -> tuple[Tensor, Tensor]:
    """Return the rows and columns of the elements on and above the k-th diagonal of an n x m
    matrix. Sizes that are no integers count as the next larger ones.

    >>> import mycel.numpy as mnp
    >>> [p.tolist() for p in mnp.triu_indices(2)]
    [[0, 0, 1], [0, 1, 1]]
    """
    return _pair(_numpy.triu_indices(*_triangle("triu_indices", n, k, m, math.ceil)))


def _sizes(name: str, arr: Any) -> Any:
    x = asarray(arr)
    if x.ndim != 2:
        raise ValueError(f"{name}: the array must be a matrix, not of shape {tuple(x.shape)}")
    return x.shape


def tril_indices_from(arr: Any, k: float = 0) -> tuple[Tensor, Tensor]:
    """Return the result of `tril_indices` for a matrix.

    >>> import mycel.numpy as mnp
    >>> [p.tolist() for p in mnp.tril_indices_from(mnp.ones((2, 2)))]
    [[0, 1, 1], [0, 0, 1]]
    """
    rows, columns = _sizes("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: Any, k: float = 0) -> tuple[Tensor, Tensor]:
    """Return the result of `triu_indices` for a matrix.

    >>> import mycel.numpy as mnp
    >>> [p.tolist() for p in mnp.triu_indices_from(mnp.ones((2, 2)))]
    [[0, 0, 1], [0, 1, 1]]
    """
    rows, columns = _sizes("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


def _order(name: str, order: str) -> bool:
    arguments.one_of(name, "order", order, ("C", "F"))
    return order == "C"


def ravel_multi_index(multi_index: Any, dims: Any, mode: str = "clip", order: str = "C") -> Tensor:
    """Return flat positions from positions along each axis of an array.

    MindSpore returns these integers as float32.

    Args:
        multi_index (Sequence[Any]): One array for each axis.
        dims (Sequence[int]): The shape.
        mode (str): What is done with positions beyond an axis: "clip" or "wrap". Default: "clip".
        order (str): "C" (row-major) or "F" (column-major). Default: "C".

    Returns:
        Tensor: The positions, int32.

    Examples:
        >>> import mycel.numpy as mnp
        >>> mnp.ravel_multi_index([[3, 6], [4, 5]], (7, 6)).tolist()
        [22, 41]
    """
    arguments.one_of("ravel_multi_index", "mode", mode, ("clip", "wrap"))
    sizes = shape_of("ravel_multi_index", dims)
    arguments.instance(
        "ravel_multi_index", "multi_index", multi_index, (tuple, list, Tensor, _numpy.ndarray), "rows of positions"
    )
    parts = [cast(asarray(p), D.int32) for p in multi_index]
    if len(parts) != len(sizes):
        raise ValueError(f"ravel_multi_index: {len(parts)} rows of positions for {len(sizes)} dimensions")
    rows = list(zip(parts, sizes))
    flat: Any = None
    for part, size in rows if _order("ravel_multi_index", order) else rows[::-1]:
        place = ops.clamp(part, 0, size - 1) if mode == "clip" else ops.floor_mod(part, size)
        flat = place if flat is None else flat * size + place
    return flat


def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Tensor, ...]:
    """Return positions along each axis from flat positions in an array of a shape.

    Negative positions count from the end, and positions beyond the array are clipped.

    >>> import mycel.numpy as mnp
    >>> [p.tolist() for p in mnp.unravel_index([22, 41], (7, 6))]
    [[3, 6], [4, 5]]
    """
    sizes = check_sizes("unravel_index", shape_of("unravel_index", shape))
    total = math.prod(sizes)
    if not 0 < total < 1 << 63:
        raise ValueError(f"unravel_index: an array of shape {sizes} has no positions that an int64 could number")
    flat = asarray(indices)
    flat = ops.where(ops.less(flat, 0), flat + total, flat)
    flat = ops.clamp(flat, 0, total - 1)
    places = []
    for size in reversed(sizes) if _order("unravel_index", order) else sizes:
        places.append(ops.floor_mod(flat, size))
        flat = ops.floor_divide(flat, size)
    return tuple(reversed(places) if order == "C" else places)
