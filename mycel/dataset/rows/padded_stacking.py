"""Padding: bringing arrays of one rank to one shape and stacking them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel.dataset.arguments import check_count, positions
from mycel.dataset.rows.column_blocks import Array


def check_pad_info(operation: str, pad_info: Any, columns: Sequence[str]) -> dict[str, tuple[Any, Any]] | None:
    """Return `pad_info` as a dictionary from columns to (shape or None, value or None).

    None where every column is padded to its longest row: without `pad_info`, or for an empty one.
    Raises TypeError or ValueError for other forms and for unknown `columns`.
    """
    if pad_info is None or pad_info == {}:
        return None
    arguments.instance(operation, "pad_info", pad_info, dict)
    positions(f"{operation}: pad_info", list(pad_info), columns)
    checked: dict[str, tuple[Any, Any]] = {}
    for name, entry in pad_info.items():
        if entry is None:
            entry = (None, None)
        if not isinstance(entry, tuple) or len(entry) != 2:
            raise TypeError(f"{operation}: pad_info[{name!r}] must be a tuple (shape, value), not {entry!r}")
        shape, value = entry
        if shape is not None:
            shape = [
                None if n is None or n == -1 else check_count(operation, "a length to pad to", n, 0) for n in shape
            ]
        checked[name] = (shape, value)
    return checked


def pad_stack(arrays: Sequence[Array], shape: Sequence[int | None] | None, value: Any, where: str) -> Array:
    """Pad arrays of equal rank and type at their ends, or cut them, to one shape, and stack them.

    * `shape`: the shape; a None in it, or in its place, is the largest length among the arrays.
    * `value`: what to pad with; 0 or empty text by default.
    * `where`: what messages call the operation and column.
    """
    rank, dtype = arrays[0].ndim, arrays[0].dtype
    if dtype.kind == "O":
        raise ValueError(f"{where}: dictionaries cannot be padded; use batch, or a map that takes what they hold")
    for position, array in enumerate(arrays):
        if array.ndim != rank:
            raise ValueError(f"{where}: row {position} has {array.ndim} axes but the first row of the batch has {rank}")
        if array.dtype != dtype and not (array.dtype.kind == dtype.kind and dtype.kind in "US"):
            raise ValueError(
                f"{where}: row {position} has type {array.dtype} but the first row of the batch has type {dtype}"
            )
    if shape is None:
        shape = [None] * rank
    if len(shape) != rank:
        raise ValueError(f"{where}: the shape to pad to, {list(shape)}, has {len(shape)} axes but rows have {rank}")
    full = [max(a.shape[axis] for a in arrays) if n is None else n for axis, n in enumerate(shape)]
    if dtype.kind in "US":
        value = "" if value is None else value
        dtype = np.result_type(*arrays, np.array(value, dtype=dtype.kind))
    result = np.empty([len(arrays), *full], dtype)
    try:
        result[...] = 0 if value is None else value
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{where}: {value!r:.80} is no value to pad {dtype} with: {error}") from None
    for target, array in zip(result, arrays) if rank else ():
        part = tuple(slice(0, min(a, b)) for a, b in zip(array.shape, full))
        target[part] = array[part]
    if not rank:
        result[:] = arrays
    return result
