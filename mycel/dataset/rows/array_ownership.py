"""Copies of those arrays that a user's function returned and that something else refers to.

The arrays of a block belong to it alone (`column_blocks.py`), but a function may return one that it
keeps and writes into for the next row, one that it returned before, several views of one array, or
an array that cannot be written to. Such arrays are copied. All others are taken as they are: those
that nothing else refers to, and those that the function was given, or one view of each of them.

References are counted where the array is a variable and one container holds it (`ONE_OWNER`); so
values are in a tuple or list that is new, and whoever called the function holds nothing else of
what it returned. A count that is too high costs a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from mycel._src.foundation.python_runtime.reference_counts import ONE_OWNER
from mycel._src.tensors.core.tensor import Tensor

_CONTAINERS = {dict, list, tuple}
# Types of values that nobody can write into: those of most rows, which need not be asked more.
_SCALARS = {int, float, bool, str, bytes, *(np.dtype(char).type for char in "?bhilqBHILQefd")}


def _may_be_shared(value: Any) -> bool:
    return isinstance(value, (np.ndarray, Tensor)) or type(value) in _CONTAINERS


def owned(values: Sequence[Any], inputs: Sequence[Any]) -> Sequence[Any]:
    """Return what a function returned for a row, with copies of what others may write into.

    * `values`: a new tuple or list of them.
    * `inputs`: what it was given, which belongs to its row.
    """
    left: list[int] | None = None
    for value in values:
        if type(value) is np.ndarray:
            if value.base is None and getrefcount(value) <= ONE_OWNER and value.flags.writeable:
                continue
            if left is None:
                left = [*map(id, inputs)]
            if id(value) in left:
                left.remove(id(value))
                continue
        elif type(value) in _SCALARS or not _may_be_shared(value):
            continue
        if not _is_alone(getrefcount(value), value):
            return Given(inputs).owned(values)
    return values


def apart(values: list[Any]) -> list[Any]:
    """Return the values of a list, as a source gave them, with copies of what it still has."""
    for value in values:
        if type(value) is np.ndarray:
            if value.base is None and getrefcount(value) <= ONE_OWNER and value.flags.writeable:
                continue
        elif type(value) in _SCALARS or not _may_be_shared(value):
            continue
        # This would be one more that has it.
        value = None
        for place in range(len(values)):
            value = values[place]
            if _may_be_shared(value) and not _is_alone(getrefcount(value), value):
                values[place] = _copy(value)
        break
    return values


def _is_alone(references: int, value: Any) -> bool:
    """Return whether nothing else has a value, to which there are so many references.

    They are counted before the value becomes an argument as well.
    """
    if references > ONE_OWNER or isinstance(value, Tensor):
        # A tensor may have the memory of an array.
        return False
    if isinstance(value, np.ndarray):
        if not value.flags.writeable:
            return False
        base = value.base
        return base is None or (type(base) is np.ndarray and base.base is None and getrefcount(base) <= ONE_OWNER)
    for part in value.values() if isinstance(value, dict) else value:
        if _may_be_shared(part) and not _is_alone(getrefcount(part), part):
            return False
    return True


def _copy(value: Any) -> Any:
    if isinstance(value, (np.ndarray, Tensor)):
        return value.copy()
    if type(value) is dict:
        return {key: _copy(part) for key, part in value.items()}
    return type(value)(map(_copy, value)) if type(value) in _CONTAINERS else value


def _memory(array: Any) -> int:
    """Return a number of the memory that an array is in, which its views share."""
    return id(array) if array.base is None else id(array.base)


class Given:
    """What a function was given, as `inputs`, and what of it has been returned already."""

    def __init__(self, inputs: Sequence[Any]) -> None:
        self._whole = {id(value) for value in inputs}
        self._memory = {_memory(value) for value in inputs if isinstance(value, np.ndarray)}
        # Memory of which a view was returned, or an input as a whole.
        self._viewed: set[int] = set()
        self._taken: set[int] = set()

    def owned(self, values: Sequence[Any]) -> Sequence[Any]:
        """Return these values, with copies of what others may write into."""
        numbers = set(map(id, values))
        if not self._viewed and len(numbers) == len(values) and numbers <= self._whole:
            self._whole -= numbers
            self._taken = self._memory
            return values
        found = []
        for value in values:
            if not _may_be_shared(value) or _is_alone(getrefcount(value), value) or self._has(value):
                found.append(value)
            else:
                found.append(_copy(value))
        return found

    def _has(self, value: Any) -> bool:
        """Return whether a value is an input, or a view of one, that was not returned before."""
        is_whole = id(value) in self._whole
        self._whole.discard(id(value))
        if not isinstance(value, np.ndarray):
            return is_whole
        memory = _memory(value)
        if memory in self._viewed:
            return False
        if is_whole:
            self._taken.add(memory)
            return True
        if memory not in self._memory or memory in self._taken or not value.flags.writeable:
            return False
        self._viewed.add(memory)
        return True
