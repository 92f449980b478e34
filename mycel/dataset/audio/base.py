"""Base class of audio transforms, and the checks of their arguments and inputs.

When a transform is made, arguments of a wrong type raise TypeError and those out of range
ValueError. When it is called, an input of a wrong shape or type raises RuntimeError, and one that
is not a NumPy array TypeError. Integers must fit into 32 bits, and other numbers lie within 2^24 of
0, as in MindSpore. Time is the last axis of waveforms. All axes before it are computed
independently, so a block of rows is merely a waveform with one more axis.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.transforms.base import Keys, Transform

# Bytes of samples that are taken at once.
_PIECE = 1 << 18
INT_MAX = 2**31 - 1
FLOAT_MAX = 2.0**24


class AudioTransform(Transform):
    """The base class of audio transforms: callable on a NumPy array of the shape in `form`."""

    vectorised = True
    # Much of it is done by NumPy, for which two threads take as long as one.
    in_threads = False
    axes = 1
    form = "<..., time>"
    only_floats = False

    def convert(self, value: Any) -> Array:
        return arguments.instance(type(self).__name__, "the input", value, np.ndarray)

    def accepts(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
        return len(shape) >= self.axes and dtype.kind in "iuf"

    def apply_block(self, block: Array, keys: Keys | None) -> Array:
        # In pieces, as what lies between fits into the cache and takes no new pages then.
        size = max(1, _PIECE * len(block) // max(1, block.nbytes))
        if size >= len(block):
            return super().apply_block(block, keys)
        pieces = [self.compute(block[start : start + size], 1) for start in range(0, len(block), size)]
        return np.concatenate(pieces)

    def check(self, array: Array, lead: int) -> None:
        """Raise RuntimeError unless the samples are numbers with the axes that are needed."""
        operation = type(self).__name__
        if array.ndim - lead < self.axes:
            raise RuntimeError(f"{operation}: the input must have shape {self.form}, not {array.shape[lead:]}")
        if self.form.endswith("complex=2>") and array.shape[-1] != 2:
            raise RuntimeError(f"{operation}: the input must have shape {self.form}, not {array.shape[lead:]}")
        if array.dtype.kind not in ("f" if self.only_floats else "iufb"):
            wanted = "floating-point numbers" if self.only_floats else "numbers"
            raise RuntimeError(
                f"{operation}: the input must be {wanted}, not {array.dtype}; convert with transforms.TypeCast"
            )

    def floats(self, array: Array, lead: int) -> Array:
        """Check the samples and return them as float64 if they are so and as float32 otherwise."""
        self.check(array, lead)
        return array.astype(float_type(array), copy=False)


def float_type(array: Array) -> Any:
    """Return float64 for float64, and float32 for all other types."""
    return np.float64 if array.dtype == np.float64 else np.float32


def check_int(operation: str, name: str, value: Any, low: int = -INT_MAX - 1, none: bool = False) -> Any:
    """Return `value`, a 32-bit integer of at least `low`, or None with `none`.

    `operation` and `name` are named in messages, here and in the checks below.
    """
    if none and value is None:
        return None
    arguments.integer(operation, name, value)
    if not low <= value <= INT_MAX:
        raise ValueError(f"{operation}: {name} must be within [{low}, {INT_MAX}], not {value}")
    return int(value)


def check_float(
    operation: str,
    name: str,
    value: Any,
    low: float = -FLOAT_MAX,
    high: float = FLOAT_MAX,
    above: bool = False,
    none: bool = False,
) -> Any:
    """Return `value`, a number within [low, high], or (low, high] with `above`, or None with
    `none`.

    `operation` and `name` are named in messages.
    """
    if none and value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise arguments.wrong_type(operation, name, "a number", value)
    if not (low < value if above else low <= value) or value > high or math.isnan(value):
        bracket = "(" if above else "["
        raise ValueError(f"{operation}: {name} must be within {bracket}{low:g}, {high:g}], not {value}")
    return float(value)


def check_positive(operation: str, name: str, value: Any, none: bool = False) -> Any:
    """Return `value`, a number that is positive in float32, or None with `none`.

    Quotients by it stay within float64. `operation` and `name` are named in messages.
    """
    found = check_float(operation, name, value, 0.0, above=True, none=none)
    if found is not None and np.float32(found) == 0.0:
        raise ValueError(
            f"{operation}: {name} must be at least {np.finfo(np.float32).smallest_subnormal:g}, not {value}"
        )
    return found


def check_rate(operation: str, value: Any) -> int:
    """Return a sampling rate, which must not be zero."""
    rate = check_int(operation, "sample_rate", value)
    if rate == 0:
        raise ValueError(f"{operation}: sample_rate must not be 0")
    return int(rate)


def check_bool(operation: str, name: str, value: Any) -> bool:
    """Return a bool; raise TypeError otherwise."""
    return arguments.flag(operation, name, value)


def check_choice(operation: str, name: str, value: Any, kind: type[Enum]) -> Any:
    """Return `value`, a member of the enumeration `kind`; `operation` and `name` are named in
    messages.
    """
    return arguments.instance(operation, name, value, kind)


def check_among(operation: str, name: str, value: Any, allowed: tuple[int, ...]) -> int:
    """Return `value`, one of the `allowed` integers; `operation` and `name` are named
    in messages.
    """
    value = check_int(operation, name, value)
    if value not in allowed:
        raise ValueError(f"{operation}: {name} must be one of {list(allowed)}, not {value}")
    return int(value)
