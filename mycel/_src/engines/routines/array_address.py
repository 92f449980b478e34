"""The address of a NumPy array's memory."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from mycel._src.foundation.python_runtime import interpreter_checks

__all__ = ["address"]

# Where CPython's NumPy has the address of an array's elements: behind the head of the object.
_PLACE = object.__basicsize__
_word = ctypes.c_size_t.from_address


def _asked(array: np.ndarray[Any, Any]) -> int:
    return int(array.ctypes.data)


def _read(array: np.ndarray[Any, Any]) -> int:
    return _word(id(array) + _PLACE).value


_sample = np.zeros(3)
_reads = interpreter_checks.is_known() and _read(_sample) == _asked(_sample)


# Reading it takes a tenth of the time of asking for it.
address = _read if _reads else _asked
