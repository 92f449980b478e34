"""Conversion between arrays of text and arrays of bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel.dataset.blocks import Array


def _check_array(operation: str, array: Any, kind: str, expected: str) -> None:
    if not isinstance(array, np.ndarray):
        raise TypeError(
            f"{operation}: expected a NumPy array of {expected}, got {array!r} of type {type(array).__name__}"
        )
    if array.dtype.kind != kind:
        raise TypeError(f"{operation}: expected an array of {expected}, got one of type {array.dtype}")


def to_str(array: Any, encoding: str = "utf8") -> Array:
    """Decode an array of bytes to text of the same shape.

    Raises TypeError for anything but an array of bytes, and UnicodeDecodeError for bytes that are
    not text in this encoding.

    >>> import numpy as np
    >>> from mycel.dataset import text
    >>> text.to_str(np.array([b"caf\\xc3\\xa9"])).tolist()
    ['café']
    """
    _check_array("to_str", array, "S", "bytes")
    return np.char.decode(array, encoding)


def to_bytes(array: Any, encoding: str = "utf8") -> Array:
    """Encode an array of text to bytes of the same shape.

    Raises TypeError for anything but an array of text, and UnicodeEncodeError for characters that
    the encoding lacks.

    >>> import numpy as np
    >>> from mycel.dataset import text
    >>> text.to_bytes(np.array(["a", "é"])).tolist()
    [b'a', b'\\xc3\\xa9']
    """
    _check_array("to_bytes", array, "U", "text")
    return np.char.encode(array, encoding)
