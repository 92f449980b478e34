"""Reading the data in a pickle without running anything, for CIFAR's files.

A pickle is a program, and NumPy's own constructors are enough to make it a harmful one: an array of
objects over given bytes is an array of pointers. So none of them is called. The operations are
inspected first: those that make objects of classes, and position numbers larger than the file, are
refused. What stands for NumPy's names then only keeps its arguments, and arrays of numbers are made
of bytes whose count fits their shape.
"""

from __future__ import annotations

import io
import math
import pickle
from typing import Any

import numpy as np

__all__ = ["load"]

_REFUSED = frozenset(
    "INST OBJ NEWOBJ NEWOBJ_EX PERSID BINPERSID EXT1 EXT2 EXT4 BYTEARRAY8 NEXT_BUFFER READONLY_BUFFER".split()
)
_PLACES = frozenset(("PUT", "BINPUT", "LONG_BINPUT", "FRAME"))
_NUMBERS = frozenset(f"{kind}{size}" for kind in "iuf" for size in (1, 2, 4, 8)) - {"f1"} | {"b1"}


def load(content: bytes) -> Any:
    """Return the dictionaries, lists, texts, numbers and arrays of numbers in a pickle.

    Raises ValueError for a pickle that holds anything else, or is damaged.
    """
    import pickletools

    try:
        for operation, argument, _ in pickletools.genops(content):
            if operation.name in _REFUSED:
                raise ValueError(f"the operation {operation.name} has no place in a file of CIFAR")
            if operation.name in _PLACES and int(argument or 0) > len(content):
                raise ValueError(f"it counts to {argument} in {len(content)} bytes")
        return _plain(_Unpickler(io.BytesIO(content), encoding="bytes").load())
    except UnicodeError as error:
        raise ValueError(f"it is damaged: {error}") from error
    except (ValueError, MemoryError):
        raise
    except Exception as error:
        raise ValueError(f"it is damaged: {error or type(error).__name__}") from error


class _Type:
    """A placeholder for an element type while its pickle is read."""

    __slots__ = ("name", "order")

    def __init__(self, name: Any, *_: Any) -> None:
        self.name = name.decode("ascii") if isinstance(name, bytes) else name
        self.order = "|"

    def __setstate__(self, state: Any) -> None:
        order = state[1]
        self.order = order.decode("ascii") if isinstance(order, bytes) else order

    def value(self) -> np.dtype[Any]:
        if self.name not in _NUMBERS or self.order not in ("<", ">", "|", "="):
            raise ValueError(f"elements of type {self.name!r:.40} are no numbers")
        return np.dtype(f"{self.order}{self.name}")


class _Array:
    """A placeholder for an array while its pickle is read."""

    __slots__ = ("state",)

    def __init__(self, *_: Any) -> None:
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def value(self) -> np.ndarray[Any, Any]:
        if type(self.state) is not tuple or len(self.state) != 5:
            raise ValueError("an array has no elements")
        _, shape, kind, is_fortran, content = self.state
        if type(shape) is not tuple or len(shape) > 8 or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError(f"an array has the shape {shape!r:.60}")
        if type(kind) is not _Type or type(content) is not bytes:
            raise ValueError("an array is not one of numbers")
        element = kind.value()
        if math.prod(shape) * element.itemsize != len(content):
            raise ValueError(f"an array of shape {shape} and {element} has {len(content)} bytes")
        return np.frombuffer(content, element).reshape(shape, order="F" if is_fortran else "C")


def _encode(text: Any, *_: Any) -> bytes:
    # Python 3 writes bytes as text in Latin-1 for readers of Python 2.
    if type(text) is not str:
        raise ValueError("what is no text is encoded")
    return text.encode("latin-1")


_KNOWN = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Type,
    ("_codecs", "encode"): _encode,
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _KNOWN:
            raise ValueError(f"{module}.{name} has no place in a file of CIFAR")
        return _KNOWN[module, name]


def _plain(found: Any) -> Any:
    """Replace placeholders by arrays, at the top or in a dictionary."""
    if type(found) is dict:
        return {key: value.value() if type(value) is _Array else value for key, value in found.items()}
    return found.value() if type(found) is _Array else found
