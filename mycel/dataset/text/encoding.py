"""Conversion between arrays of text and arrays of bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel.dataset.rows.column_blocks import Array

# NumPy's functions take longer for so few.
_FEW = 16


def _check_array(operation: str, array: Any, kind: str, expected: str, error: type[Exception]) -> None:
    if not isinstance(array, np.ndarray):
        raise arguments.wrong_type(operation, "the input", f"a NumPy array of {expected}", array, error)
    if array.dtype.kind != kind:
        raise TypeError(f"{operation}: the input must be an array of {expected}, not of type {array.dtype}")


def to_str(array: Any, encoding: str = "utf8") -> Array:
    """Decode an array of bytes to text of the same shape.

    Raises TypeError for anything but an array of bytes, and UnicodeDecodeError for bytes that are
    not text in this encoding.

    >>> import numpy as np
    >>> from mycel.dataset import text
    >>> text.to_str(np.array([b"caf\\xc3\\xa9"])).tolist()
    ['café']
    """
    _check_array("to_str", array, "S", "bytes", TypeError)
    if 0 < array.size <= _FEW and isinstance(encoding, str):
        decoded: Array = np.array([text.decode(encoding) for text in array.ravel().tolist()]).reshape(array.shape)
        return decoded
    return np.char.decode(array, encoding)


def to_bytes(array: Any, encoding: str = "utf8") -> Array:
    """Encode an array of text to bytes of the same shape.

    Raises ValueError for what is no array, TypeError for one of another kind, and
    UnicodeEncodeError for characters that the encoding lacks.

    >>> import numpy as np
    >>> from mycel.dataset import text
    >>> text.to_bytes(np.array(["a", "é"])).tolist()
    [b'a', b'\\xc3\\xa9']
    """
    _check_array("to_bytes", array, "U", "text", ValueError)
    if 0 < array.size <= _FEW and isinstance(encoding, str):
        encoded: Array = np.array([text.encode(encoding) for text in array.ravel().tolist()]).reshape(array.shape)
        return encoded
    return np.char.encode(array, encoding)
