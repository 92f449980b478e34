"""Buffers: the memory behind tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel.ir.types import TensorType


def from_array(array: np.ndarray[Any, Any]) -> Any:
    """A buffer with the contents of a C-contiguous array; may share its memory."""
    return np.ascontiguousarray(array).reshape(np.shape(array))


def to_array(buffer: Any, type: TensorType) -> np.ndarray[Any, Any]:
    """The buffer's memory as a writable NumPy array."""
    array: np.ndarray[Any, Any] = buffer
    return array


def copy(buffer: Any, type: TensorType) -> Any:
    """A new buffer with the same contents."""
    return np.array(buffer)
