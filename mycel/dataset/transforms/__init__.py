"""Transforms for any data; the names are MindSpore's."""

from mycel._src.foundation.public_names import listing as _listing
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
from mycel.dataset.transforms.plugin import Plugin

__all__ = [
    "Compose",
    "Concatenate",
    "Duplicate",
    "Fill",
    "Mask",
    "OneHot",
    "PadEnd",
    "Plugin",
    "RandomApply",
    "RandomChoice",
    "RandomOrder",
    "Relational",
    "Slice",
    "TypeCast",
    "Unique",
    "not_random",
]

__dir__ = _listing(__name__)
