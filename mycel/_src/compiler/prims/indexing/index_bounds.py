"""Checks of indices against the size of an axis, by the rules in `prims.indexing.index`."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Node, Where, current_where
from mycel._src.compiler.ir.source_locations import position_in
from mycel._src.foundation.errors import IndexRangeError, operation_called

__all__ = ["BOUNDS", "inside", "may_be_outside", "out_of_range", "place_checked", "wrapped"]

_OPERATIONS = ("mycel.ops", "mycel.nn", "mycel.mint", "mycel.numpy", "mycel.scipy", "mycel.experimental")


BOUNDS = ("wrap", "front", "drop")


def out_of_range(name: str, index: int, axis: int, size: int, bounds: str = "wrap") -> IndexRangeError:
    """Return the error for `index`, which is out of range along an axis.

    `name` is that of the operation, `size` that of the axis number `axis`; `bounds` is "wrap",
    "front" or "drop".
    """
    mend = f"use one in [{0 if bounds == 'front' else -size}, {size})" if size else "the axis has no elements"
    return IndexRangeError(f"{name}: index {index} is out of range for axis {axis} of size {size}; {mend}")


def inside(name: str, indices: Any, axis: int, size: int, bounds: str) -> tuple[Any, Any]:
    """Return `indices` counted from the front, and whether each is in range.

    `name` is that of the operation, `size` that of the axis number `axis`; `bounds` is "wrap",
    "front" or "drop". Raises IndexRangeError for an index out of range, unless `bounds` is "drop".
    """
    front = indices
    if bounds != "front" and indices.dtype.kind == "i":
        front = np.where(indices < 0, indices.astype(np.int64) + size, indices)
    valid = (front >= 0) & (front < size)
    if bounds != "drop" and not valid.all():
        raise out_of_range(name, int(indices[~valid].flat[0]), axis, size, bounds)
    return front, valid


def wrapped(name: str, indices: Any, axis: int, size: int, bounds: str) -> tuple[Any, Any]:
    """Return `indices` counted from the front, and whether each is in range.

    Those out of range become 0, which is safe to read. `name` is that of the operation, `size` that
    of the axis number `axis`; `bounds` is "wrap", "front" or "drop". Raises IndexRangeError as
    `inside` does.
    """
    front, valid = inside(name, indices, axis, size, bounds)
    return np.where(valid, front, 0), valid


def place_checked(traps: Any) -> Where | None:
    """Return the place, with the name of the operation, for a node that checks indices, as `traps`
    of its primitive says; None for any other node.

    Where no code of the user's is being staged, as in a layer that is compiled by itself, the place
    is that in this package's operation.
    """
    if traps is not may_be_outside:
        return None
    where = current_where()
    if where is None:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and not str(frame.f_globals.get("__name__")).startswith(_OPERATIONS):
            frame = frame.f_back
        if frame is None:
            return None
        where = position_in(frame)
    return where._replace(operation=operation_called())


def may_be_outside(node: Node) -> bool:
    """Return whether an index out of range stops the program."""
    return bool(node.params.get("bounds", "wrap") != "drop")
