"""Preallocated batch arrays into which large row arrays are copied once.

A block of rows has one array for each column, and a large array of a row is copied to its place in
it as soon as the row comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel.dataset.rows.column_blocks import Array, Block, Row, aligned, as_array

__all__ = ["LARGE", "Places"]

# Bytes of an array from which on a copy costs more than its place, and of those that share memory.
LARGE, _TOGETHER = 1 << 14, 1 << 23


class Places:
    """Places of large arrays in the next block of `most` rows or fewer.

    Each column of them is one array, to which a row is copied when it comes: it is the last copy of
    the row where `batch` follows.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.count = 0
        # By columns, and how many rows have their place there.
        self.stacks: dict[int, tuple[Array, int]] = {}

    def take(self, values: list[Any]) -> dict[int, Array]:
        """Return copies of large arrays of the next row at their places, by columns.

        `values` are those of the row; those that were copied are None afterwards.
        """
        placed: dict[int, Array] = {}
        # The first row says which columns have places.
        for column in [*self.stacks] if self.count else range(len(values)):
            value = values[column]
            if isinstance(value, np.ndarray) and value.nbytes >= LARGE:
                made = self._copied(column, as_array(value))
                if made is not None:
                    placed[column], values[column] = made, None
        return placed

    def _copied(self, column: int, array: Array) -> Array | None:
        """Return a copy of an array at its place; None if there is none."""
        found = self.stacks.pop(column, None)
        if not self.count and 1 < self.most <= _TOGETHER // array.nbytes and array.dtype.kind in "biufc":
            found = aligned((self.most, *array.shape), array.dtype), 0
        if found is None or found[1] != self.count:
            return None
        stacked = found[0]
        if (array.shape, array.dtype) != (stacked.shape[1:], stacked.dtype):
            return None
        self.stacks[column] = stacked, self.count + 1
        place: Array = stacked[self.count]
        place[...] = array
        return place

    def block(self, rows: Sequence[Row]) -> Block:
        """Return the block of the rows so far, and begin the next one."""
        made = Block.from_rows(rows)
        for column, (array, count) in self.stacks.items():
            if count == len(rows):
                made.columns[column] = array[:count]
        self.count, self.stacks = 0, {}
        return made
