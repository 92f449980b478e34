"""Transforms for any data; the names are MindSpore's."""

from typing import TYPE_CHECKING, Any

from mycel.dataset.transforms.base import Compose, not_random
from mycel.dataset.transforms.generic import (
    Concatenate,
    Duplicate,
    Fill,
    Mask,
    OneHot,
    PadEnd,
    RandomApply,
    RandomChoice,
    RandomOrder,
    Relational,
    Slice,
    TypeCast,
    Unique,
)

__all__ = [
    "Compose",
    "Concatenate",
    "Duplicate",
    "Fill",
    "Mask",
    "OneHot",
    "PadEnd",
    "RandomApply",
    "RandomChoice",
    "RandomOrder",
    "Relational",
    "Slice",
    "TypeCast",
    "Unique",
    "not_random",
]

# To type checkers a name that is not there is a mistake.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name == "Plugin":
            raise AttributeError(
                "transforms.Plugin is not supported: it loads libraries of C++ classes for MindSpore's compiled core; "
                "give map a function in Python that calls the library, by ctypes for example"
            )
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
