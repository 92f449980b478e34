"""`mindspore.common._utils`: questions about shapes that are not known yet."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

__all__: list[str] = []


def is_shape_unknown(shape: Sequence[Any]) -> bool:
    """Return whether a shape has sizes that are not known, which are -1, or -2 for all of them."""
    return any(size in (-1, -2) for size in shape)


def is_dim_unknown(shape: Sequence[Any]) -> bool:
    """Return whether not even the number of a shape's dimensions is known."""
    return -2 in tuple(shape)


def get_func(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function behind a bound method, and any other function as it is."""
    return getattr(func, "__func__", func)


def load_lib(lib_path: str) -> bool:
    """Return whether a shared library can be loaded."""
    try:
        ctypes.CDLL(lib_path)
    except OSError:
        return False
    return True
