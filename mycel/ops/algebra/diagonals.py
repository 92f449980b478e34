"""Diagonals of batches of matrices: bands, reading and writing many diagonals at once, and
scattering into one.

Several diagonals k0 <= k <= k1 of (..., rows, columns) are the rows of one tensor, k1 first, each
as long as the longest; `align` says at which end the shorter ones lie: "RIGHT_LEFT" puts those
above the main one to the right and those below it to the left. One diagonal alone has no such axis.
Every function works by positions that are known beforehand, so each is a gather and a selection.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.prims import elementwise as E
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor, as_tensor
from mycel.ops import arrange, gather_scatter
from mycel.ops._operands import broadcast, need_room, operand, permuted, reshaped, run, select, size_of, term

__all__ = ["diagflat", "diagonal_scatter", "matrix_band_part", "matrix_diag", "matrix_diag_part", "matrix_set_diag"]

ALIGNS = ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")


def _ints(name: str, value: Any) -> tuple[int, ...]:
    """Return the whole numbers of an argument: one, several, or a tensor of them."""
    value = value.tolist() if isinstance(value, Tensor) else value
    return tuple(size_of(name, v) for v in (value if isinstance(value, (tuple, list)) else (value,)))


def _int(name: str, parameter: str, value: Any) -> int:
    """Return the one whole number of an argument."""
    found = _ints(name, value)
    if len(found) != 1:
        raise ValueError(f"{name}: {parameter} must be one int, not {value!r:.80}")
    return found[0]


def _bounds(name: str, k: Any, align: str) -> tuple[int, int]:
    """Return the lowest and the highest diagonal of `k`."""
    arguments.choice(name, "align", align, ALIGNS)
    found = _ints(name, k)
    low, high = (found[0], found[-1]) if len(found) in (1, 2) else (1, 0)
    if low > high:
        raise ValueError(f"{name}: k must be one diagonal or a pair (lowest, highest), not {found}")
    return low, high


def _length(rows: int, columns: int, k: int) -> int:
    """Return the number of elements of diagonal `k`."""
    return min(rows + min(k, 0), columns - max(k, 0))


def _inside(name: str, rows: int, columns: int, low: int, high: int) -> None:
    """Raise ValueError unless the diagonals lie in the matrices."""
    if rows and columns and not (-rows < low and high < columns):
        raise ValueError(
            f"{name}: diagonals {low} to {high} do not lie in matrices of {rows} rows and {columns} columns"
        )


def _layout(rows: int, columns: int, low: int, high: int, align: str) -> tuple[Any, Any, Any, Any]:
    """Return, for each diagonal and place in it, the row and column of the matrix and whether there
    is one; and where each diagonal begins, (high - low + 1,).
    """
    need_room("matrix_diag", (rows, columns), D.int64)
    longest = max(_length(rows, columns, k) for k in range(low, high + 1))
    ks = np.arange(high, low - 1, -1)
    lengths = np.array([_length(rows, columns, int(k)) for k in ks])
    upper, lower = align.split("_")
    right = np.where(ks >= 0, upper == "RIGHT", lower == "RIGHT")
    begins = np.where(right, longest - lengths, 0)
    place = np.arange(longest)[None] - begins[:, None]
    inside = (place >= 0) & (place < lengths[:, None])
    row = np.where(inside, place + np.maximum(-ks, 0)[:, None], 0)
    column = np.where(inside, place + np.maximum(ks, 0)[:, None], 0)
    return row, column, inside, begins


def matrix_band_part(x: Any, lower: Any, upper: Any) -> Tensor:
    """Return matrices (..., M, N) with zeros outside of a band.

    The band has `lower` diagonals below the main one and `upper` above it; negative numbers mean
    all.

    >>> import mycel as ms
    >>> ms.ops.matrix_band_part(ms.ops.ones((3, 3)), 0, 1).tolist()
    [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]
    """
    for parameter, value in (("lower", lower), ("upper", upper)):
        if not isinstance(value, Tensor):
            arguments.integer("matrix_band_part", parameter, value)
    value = operand("matrix_band_part", x)
    if value.ndim < 2:
        raise ShapeError(f"matrix_band_part: takes matrices (..., M, N), not {value._type}")
    rows, columns = int(value.shape[-2]), int(value.shape[-1])
    away = as_tensor(np.arange(columns)[None] - np.arange(rows)[:, None])
    below, above = (term("matrix_band_part", v, away.dtype) for v in (lower, upper))
    if below.ndim or above.ndim:
        raise ShapeError(f"matrix_band_part: lower and upper must be numbers, not {below._type} and {above._type}")
    kept = run(
        E.logical_and,
        run(E.logical_or, below < 0, run(E.ge, away, -below)),
        run(E.logical_or, above < 0, run(E.le, away, above)),
    )
    return select(kept, value, 0)


def matrix_diag_part(x: Any, k: Any, padding_value: Any, align: str = "RIGHT_LEFT") -> Tensor:
    """Return the diagonals of matrices.

    Args:
        x (Tensor): (..., M, N).
        k (int | tuple[int, int] | Tensor): A diagonal, or a pair (lowest, highest).
        padding_value (float): What stands where shorter diagonals hold nothing.
        align (str): At which end of shorter diagonals the padding is: "LEFT_RIGHT", "RIGHT_LEFT",
            "LEFT_LEFT" or "RIGHT_RIGHT", the first word for the upper ones. Default: "RIGHT_LEFT".

    Returns:
        Tensor: (..., longest), or (..., diagonals, longest) for several.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.matrix_diag_part(ms.Tensor([[1, 2], [3, 4]]), (0, 1), 9).tolist()
        [[9, 2], [1, 4]]
    """
    name = "matrix_diag_part"
    value = operand(name, x)
    if value.ndim < 2:
        raise ShapeError(f"{name}: takes matrices (..., M, N), not {value._type}")
    low, high = _bounds(name, k, align)
    *lead, rows, columns = value.shape
    rows, columns = int(rows), int(columns)
    _inside(name, rows, columns, low, high)
    row, column, inside, _ = _layout(rows, columns, low, high, align)
    flat = reshaped(value, (*lead, rows * columns))
    found = gather_scatter.gather(flat, as_tensor(row * columns + column), -1)
    found = select(as_tensor(inside), found, term(name, padding_value, value.dtype))
    return found if high > low else reshaped(found, (*lead, row.shape[1]))


def _spread(
    name: str, diagonals: Tensor, rows: int, columns: int, low: int, high: int, align: str
) -> tuple[Tensor, Tensor]:
    """Return matrices (..., rows, columns) with diagonals (..., longest) or (..., diagonals,
    longest) written in, and where these lie.
    """
    row, _, _, begins = _layout(rows, columns, low, high, align)
    lead = diagonals.shape[: -2 if high > low else -1]
    if diagonals.shape != (*lead, *(row.shape if high > low else row.shape[1:])):
        raise ShapeError(
            f"{name}: diagonals {low} to {high} of {rows} by {columns} matrices are "
            f"{(*lead, *(row.shape if high > low else row.shape[1:]))}, not {diagonals.shape}"
        )
    away = np.arange(columns)[None] - np.arange(rows)[:, None]
    there = (away >= low) & (away <= high)
    which = np.where(there, high - away, 0)
    place = np.minimum(np.arange(rows)[:, None], np.arange(columns)[None]) + begins[which]
    source = np.where(there, which * row.shape[1] + place, 0)
    flat = reshaped(diagonals, (*lead, row.size))
    return gather_scatter.gather(flat, as_tensor(source), -1), as_tensor(there)


def matrix_diag(
    x: Any, k: Any = 0, num_rows: Any = -1, num_cols: Any = -1, padding_value: Any = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """Return matrices with `x` on the diagonals `k` and `padding_value` elsewhere.

    Args:
        x (Tensor): (..., longest) for one diagonal, (..., diagonals, longest) for several.
        k (int | tuple[int, int] | Tensor): A diagonal, or a pair (lowest, highest). Default: 0.
        num_rows (int): The size; -1 for the smallest that holds the diagonals. Default: -1.
        num_cols (int): The size; -1 for the smallest that holds the diagonals. Default: -1.
        padding_value (float): What stands elsewhere. Default: 0.
        align (str): At which end of shorter diagonals the padding is: "LEFT_RIGHT", "RIGHT_LEFT",
            "LEFT_LEFT" or "RIGHT_RIGHT", the first word for the upper ones. Default: "RIGHT_LEFT".

    Returns:
        Tensor: The matrices, (..., num_rows, num_cols).

    Examples:
        >>> import mycel as ms
        >>> ms.ops.matrix_diag(ms.Tensor([1, 2]), 1).tolist()
        [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    """
    name = "matrix_diag"
    value = operand(name, x)
    low, high = _bounds(name, k, align)
    if value.ndim < (2 if high > low else 1):
        raise ShapeError(f"{name}: {high - low + 1} diagonals cannot be {value._type}")
    longest = int(value.shape[-1])
    rows, columns = _int(name, "num_rows", num_rows), _int(name, "num_cols", num_cols)
    least_rows, least_columns = longest - min(high, 0), longest + max(low, 0)
    if rows < 0 and columns < 0:
        rows = columns = max(least_rows, least_columns)
    elif rows < 0:
        rows = least_rows
    elif columns < 0:
        columns = least_columns
    _inside(name, rows, columns, low, high)
    found, there = _spread(name, value, rows, columns, low, high, align)
    return select(there, found, term(name, padding_value, value.dtype))


def matrix_set_diag(x: Any, diagonal: Any, k: Any = 0, align: str = "RIGHT_LEFT") -> Tensor:
    """Return matrices with the diagonals `k` replaced.

    Args:
        x (Tensor): (..., M, N).
        diagonal (Tensor): The new diagonals, as `matrix_diag_part` gives them.
        k (int | tuple[int, int] | Tensor): A diagonal, or a pair (lowest, highest). Default: 0.
        align (str): At which end of shorter diagonals the padding is: "LEFT_RIGHT", "RIGHT_LEFT",
            "LEFT_LEFT" or "RIGHT_RIGHT", the first word for the upper ones. Default: "RIGHT_LEFT".

    Returns:
        Tensor: (..., M, N).

    Examples:
        >>> import mycel as ms
        >>> ms.ops.matrix_set_diag(ms.ops.zeros((2, 2)), ms.Tensor([1.0, 2.0])).tolist()
        [[1.0, 0.0], [0.0, 2.0]]
    """
    name = "matrix_set_diag"
    value = operand(name, x)
    new = operand(name, diagonal, value.dtype)
    if value.ndim < 2:
        raise ShapeError(f"{name}: takes matrices (..., M, N), not {value._type}")
    low, high = _bounds(name, k, align)
    rows, columns = int(value.shape[-2]), int(value.shape[-1])
    _inside(name, rows, columns, low, high)
    found, there = _spread(name, new, rows, columns, low, high, align)
    if found.shape != value.shape:
        raise ShapeError(f"{name}: diagonals {new._type} do not fit {value._type}")
    return select(there, found, value)


def diagflat(input: Any, offset: int = 0) -> Tensor:
    """Return the matrix with all elements of the input on the diagonal `offset`.

    >>> import mycel as ms
    >>> ms.ops.diagflat(ms.Tensor([[1, 2]]), 1).tolist()
    [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    """
    value = operand("diagflat", input)
    return arrange.diag_embed(reshaped(value, (value.size,)), offset)


def diagonal_scatter(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return the input with `src` on the diagonal `offset` of the matrices over the axes `dim1` and
    `dim2`.

    Args:
        input (Tensor): The tensor.
        src (Tensor): The new diagonals, of the shape that `diagonal` gives.
        offset (int): The diagonal, 0 for the main one and positive above it. Default: 0.
        dim1 (int): The axis of the rows of the matrices. Default: 0.
        dim2 (int): The axis of their columns. Default: 1.

    Returns:
        Tensor: The shape and type of the input.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.diagonal_scatter(ms.ops.zeros((2, 2)), ms.Tensor([1.0, 2.0])).tolist()
        [[1.0, 0.0], [0.0, 2.0]]
    """
    name = "diagonal_scatter"
    value = operand(name, input)
    line = arrange.diagonal(value, offset, dim1, dim2)
    new = operand(name, src, value.dtype)
    if new.shape != line.shape:
        raise ShapeError(f"{name}: src must have the shape {line.shape} of the diagonal, not {new.shape}")
    if not new.size:
        return run(E.identity, value)
    first, second = dim1 % value.ndim, dim2 % value.ndim
    order = (*(a for a in range(value.ndim) if a not in (first, second)), first, second)
    found, there = _spread(name, new, int(value.shape[first]), int(value.shape[second]), offset, offset, "LEFT_LEFT")
    matrices = select(broadcast(there, found.shape), found, permuted(value, order))
    return permuted(matrices, tuple(int(i) for i in np.argsort(order)))
