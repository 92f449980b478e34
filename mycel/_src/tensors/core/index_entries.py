"""Parsing of indices: one entry for each axis of a tensor, by NumPy's rules.

Ints, slices, None and "..." are *basic*; tensors, arrays, sequences of ints and masks are
*advanced*: a mask of k axes stands for its k vectors of positions.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim, DimLike, InconclusiveDimension
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import IndexRangeError, NeedsValue, ShapeError
from mycel._src.tensors.core.eager import apply
from mycel._src.tensors.core.mask_indices import positions_in
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast

__all__ = ["Axes", "Entry", "Mask", "entry_of", "expanded", "inside", "limited"]

Entry = Any


class Axes:
    """The effect of an index on the axes of a tensor, in order.

    `steps` holds one record for each axis of the tensor, ("slice", start, stop, step), ("at",
    position) or ("advanced", tensor), and one ("new",) for each new axis.
    """

    def __init__(self, shape: tuple[DimLike, ...], index: Any) -> None:
        self.steps: list[tuple[Any, ...]] = []
        self.shape = shape
        entries = expanded(index, len(shape))
        axis = 0
        for entry in entries:
            if entry is None:
                self.steps.append(("new",))
                continue
            if isinstance(entry, Mask):
                for positions in entry.positions(shape[axis : axis + entry.rank], axis):
                    self.steps.append(("advanced", positions))
                axis += entry.rank
                continue
            self.steps.append(_step(entry, shape[axis], axis))
            axis += 1

    def advanced(self) -> bool:
        return any(s[0] == "advanced" for s in self.steps)


class Mask:
    """A boolean entry of at least one axis. Its positions depend on its value."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.rank = value.ndim

    def positions(self, shape: tuple[DimLike, ...], axis: int) -> list[Tensor]:
        if tuple(self.value.shape) != tuple(shape):
            raise IndexError(
                f"a boolean index of shape {tuple(self.value.shape)} does not fit the axes of sizes {tuple(shape)} at "
                f"axis {axis}"
            )
        if isinstance(self.value, Tensor):
            return positions_in(self.value)
        return [Tensor(v.astype(np.int64)) for v in np.nonzero(self.value)]


def expanded(index: Any, rank: int) -> list[Entry]:
    """Return the entries of an index, one for each axis.

    Full slices take the place of "..." and of missing entries, arrays become tensors, and masks
    become `Mask`.
    """
    entries = [entry_of(e) for e in (index if isinstance(index, tuple) else (index,))]
    used = sum(e.rank if isinstance(e, Mask) else 0 if e is None or e is Ellipsis else 1 for e in entries)
    dots = [i for i, e in enumerate(entries) if e is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can hold only one '...'")
    if used > rank:
        raise IndexError(f"too many indices: the tensor has {rank} dimensions, {used} were indexed")
    place = dots[0] if dots else len(entries)
    entries[place : place + len(dots)] = [slice(None)] * (rank - used)
    return entries


def entry_of(entry: Any) -> Entry:
    if entry is None or entry is Ellipsis or isinstance(entry, (slice, Dim)):
        return entry
    if isinstance(entry, (bool, np.bool_)):
        return _scalar_mask(bool(entry))
    if isinstance(entry, Tensor):
        if entry.dtype is D.bool_:
            return Mask(entry) if entry.ndim else _scalar_mask(bool(entry))
        if not entry.dtype.is_integer:
            raise IndexError(f"tensors used as indices must be integers or booleans, not {entry.dtype.name}")
        return entry if entry.dtype in (D.int32, D.int64) else cast(limited(entry), D.int64)
    if isinstance(entry, (list, range, np.ndarray, tuple)):
        if isinstance(entry, (list, tuple)) and any(isinstance(v, Tensor) for v in entry):
            parts = [apply(S.RESHAPE, as_tensor(v, D.int64), shape=(1,)) for v in entry]
            return apply(S.CONCAT, *parts, axis=0) if len(parts) > 1 else parts[0]
        array = np.asarray(entry)
        if array.size == 0 and array.dtype.kind == "f":
            array = array.astype(np.int64)
        if array.dtype.kind == "b":
            return Mask(array) if array.ndim else _scalar_mask(bool(array))
        if array.dtype.kind not in "iu":
            raise IndexError(f"arrays used as indices must be integers or booleans, not {array.dtype}")
        return array.astype(np.int64) if array.ndim else int(array)
    try:
        return operator.index(entry)
    except NeedsValue:
        raise
    except TypeError:
        raise IndexError(
            "an index must be an int, a slice, None, '...', an integer or boolean tensor, or a sequence of ints, not "
            f"{type(entry).__name__}"
        ) from None


def _scalar_mask(value: bool) -> None:
    """Return the entry for True, a new axis of size 1; raises IndexError for False."""
    if not value:
        raise IndexError("the index False, which selects nothing, is not supported; use an empty slice such as [:0]")
    return None


def _step(entry: Entry, size: DimLike, axis: int) -> tuple[Any, ...]:
    if isinstance(entry, slice):
        return ("slice", *_bounds(entry, size))
    if isinstance(entry, (int, Dim)):
        return ("at", inside(entry, size, axis))
    if isinstance(entry, Tensor):
        return ("advanced", entry)
    if isinstance(size, int):
        wrong = entry[(entry < -size) | (entry >= size)]
        if wrong.size:
            raise IndexRangeError(f"index {int(wrong[0])} is out of range for axis {axis} of size {size}")
    return ("advanced", Tensor(entry))


def inside(position: DimLike, size: DimLike, axis: int) -> DimLike:
    try:
        if position < -size or position >= size:
            raise IndexRangeError(f"index {position} is out of range for axis {axis} of size {size}")
        return position + size if position < 0 else position
    except InconclusiveDimension:
        return position + size if isinstance(position, int) and position < 0 else position


def _bounds(entry: slice, size: DimLike) -> tuple[DimLike, DimLike, int]:
    """Return start, stop and step of a slice within an axis of this size.

    For a negative step they are those of the same elements in ascending order.
    """
    for bound in (entry.start, entry.stop, entry.step):
        if not (bound is None or isinstance(bound, Dim) or hasattr(bound, "__index__")):
            raise TypeError(f"the bounds of a slice are ints or None, not {type(bound).__name__}")
    step = 1 if entry.step is None else operator.index(entry.step)
    if step == 0:
        raise ValueError("slice step must not be 0")
    start, stop = (
        None if v is None else v if isinstance(v, Dim) else operator.index(v) for v in (entry.start, entry.stop)
    )
    if isinstance(size, int) and not isinstance(start, Dim) and not isinstance(stop, Dim):
        first, last, step = slice(start, stop, step).indices(size)
        count = len(range(first, last, step))
        if step > 0:
            return (first, first + (count - 1) * step + 1, step) if count else (0, 0, step)
        return (first + (count - 1) * step, first + 1, step) if count else (0, 0, step)
    if step > 0:
        return _clamped(0 if start is None else start, size), _clamped(size if stop is None else stop, size), step
    if start is None and stop is None:
        every: DimLike = -(-size // -step)
        return size - 1 - (every - 1) * -step, size, step
    raise ShapeError(f"a slice with step {step} of an axis of unknown size {size} must leave out both bounds")


def _clamped(bound: DimLike, size: DimLike) -> DimLike:
    if isinstance(bound, int) and bound < 0:
        return size + bound
    try:
        return size if bound > size else bound
    except InconclusiveDimension:
        return bound


def limited(index: Tensor) -> Tensor:
    """Return an index with the values of a uint64 tensor limited to int64.

    Without that the largest would become negative, which means counted from the end.
    """
    if index.dtype is not D.uint64:
        return index
    return apply(E.minimum, index, as_tensor(2**63 - 1, D.uint64))
