"""Base class of vision transforms, and the checks of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

import numpy as np

from mycel._src.engines.routines import are_on
from mycel._src.engines.routines.element_types import ELEMENTS
from mycel._src.foundation import arguments
from mycel.dataset.rows.column_blocks import Array, as_array, is_picture
from mycel.dataset.transforms import base
from mycel.dataset.transforms.base import Transform
from mycel.dataset.vision.enums import Border

# What operations give for an image of Pillow, by their class; see `pillow_dispatch.py`.
picture_forms: dict[type, Callable[[Any, Any], Any]] = {}


def not_random(func: Any) -> Any:
    """Mark a function as one that draws no random numbers; see `transforms.not_random`."""
    return base.not_random(func)


class ImageTransform(Transform):
    """The base class of transforms of images [H, W] or [H, W, C].

    Pillow images are accepted as arrays are. Those transforms that MindSpore computes by Pillow
    give a Pillow image for one, the others an array.
    """

    vectorised = True

    def called(self, inputs: tuple[Any, ...]) -> Any:
        if len(inputs) == 1 and type(inputs[0]) is np.ndarray:
            return self.result_of(inputs[0])
        if len(inputs) == 1 and is_picture(inputs[0]):
            for kind in type(self).__mro__:
                if kind in picture_forms:
                    return picture_forms[kind](self, inputs[0])
                if "compute" in vars(kind):
                    break
        return super().called(inputs)

    def convert(self, value: Any) -> Array:
        if not isinstance(value, np.ndarray) and not is_picture(value):
            what = "a NumPy array or a picture of Pillow"
            raise arguments.wrong_type(type(self).__name__, "the input", what, value)
        return as_array(value)

    def accepts(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
        return len(shape) in (2, 3)

    @staticmethod
    def leading(array: Array, lead: int) -> int:
        """Return how many axes come before those of an image, where a batch counts as one more."""
        return max(lead, array.ndim - 3)

    def check_image(self, array: Array, lead: int, ranks: tuple[int, ...] = (2, 3)) -> None:
        """Raise ValueError unless the samples have one of these numbers of axes."""
        if array.ndim - lead not in ranks:
            forms = {2: "[H, W]", 3: "[H, W, C]"}
            raise ValueError(
                f"{type(self).__name__}: the image must be {' or '.join(forms[r] for r in ranks)}, "
                f"not of shape {array.shape[lead:]}"
            )


# Images of more channels are left to NumPy, as each number of channels has code of its own.
MOST_CHANNELS = 8
BYTE = np.dtype(np.uint8)


Dtypes = Container[np.dtype[Any]]


def dtypes_of(*names: str) -> frozenset[np.dtype[Any]]:
    """Return the element types of these names, in the order of bytes that this machine has."""
    return frozenset(map(np.dtype, names))


_BYTES = dtypes_of("uint8")
FLOATS = dtypes_of("float32", "float64")


def by_routine(array: Array, dtypes: Dtypes = _BYTES) -> bool:
    """Return whether routines compute an image [H, W] or [H, W, C] of one of these types, uint8 by
    default.
    """
    dtype = array.dtype
    if not (dtype in dtypes and dtype.isnative):
        return False
    shape = array.shape
    return (len(shape) == 2 or len(shape) == 3 and shape[2] <= MOST_CHANNELS) and array.size > 0 and are_on()


def flat_by_routine(array: Array, dtypes: Dtypes) -> bool:
    """Return whether routines compute the pixels, or values, of an array of one of these types, in
    whatever shape they are.
    """
    return array.dtype in dtypes and array.size > 0 and array.dtype.isnative and are_on()


# The element types that routines read, with their names; NumPy makes a name anew each time.
_NAMES = {np.dtype(name): name for name in ELEMENTS}


def is_read(array: Array) -> bool:
    """Return whether routines read the values of an array."""
    return array.dtype in _NAMES and array.size > 0 and are_on()


def name_of(array: Array) -> str:
    """Return the name of the element type of an array that routines read."""
    return _NAMES[array.dtype]


def channels_of(array: Array) -> int:
    """Return the number of channels of an image [H, W] or [H, W, C]."""
    return int(array.shape[2]) if array.ndim == 3 else 1


def parse_size(operation: str, size: Any) -> tuple[int, int]:
    """Return (height, width) from one integer for both, or from a pair.

    Raises TypeError or ValueError otherwise, as the functions below do.
    """
    pair = (size, size) if isinstance(size, int) and not isinstance(size, bool) else size
    if (
        not isinstance(pair, (list, tuple))
        or len(pair) != 2
        or any(isinstance(n, bool) or not isinstance(n, int) for n in pair)
    ):
        raise TypeError(f"{operation}: size must be an integer or a pair (height, width), not {size!r}")
    if any(not 1 <= n <= 2**24 for n in pair):
        raise ValueError(f"{operation}: size must be within [1, 16777216], not {size!r}")
    return pair[0], pair[1]


def parse_padding(operation: str, padding: Any) -> tuple[int, int, int, int]:
    """Return (left, top, right, bottom) from one integer, a pair, or all four.

    A pair is (left and right, top and bottom).
    """
    sides = [padding] if isinstance(padding, int) else padding
    if not isinstance(sides, (list, tuple)) or any(isinstance(n, bool) or not isinstance(n, int) for n in sides):
        raise TypeError(f"{operation}: padding must be an integer or a list of them, not {padding!r}")
    if any(n < 0 for n in sides):
        raise ValueError(f"{operation}: padding must be at least 0, not {padding!r}")
    if len(sides) == 1:
        return sides[0], sides[0], sides[0], sides[0]
    if len(sides) == 2:
        return sides[0], sides[1], sides[0], sides[1]
    if len(sides) == 4:
        return sides[0], sides[1], sides[2], sides[3]
    raise ValueError(f"{operation}: padding must have 1, 2 or 4 numbers, not {padding!r}")


def parse_fill(operation: str, fill_value: Any) -> int | tuple[int, int, int]:
    """Return a grey value or three colour values within [0, 255]."""
    values = (fill_value,) if isinstance(fill_value, int) else fill_value
    if (
        not isinstance(values, tuple)
        or len(values) not in (1, 3)
        or any(isinstance(v, bool) or not isinstance(v, int) for v in values)
    ):
        raise TypeError(f"{operation}: fill_value must be an integer or a tuple of three, not {fill_value!r}")
    if any(not 0 <= v <= 255 for v in values):
        raise ValueError(f"{operation}: fill_value must be within [0, 255], not {fill_value!r}")
    return values[0] if len(values) == 1 else (values[0], values[1], values[2])


def check_border(operation: str, padding_mode: Any) -> Border:
    """Return a Border; raise TypeError otherwise."""
    return arguments.instance(operation, "padding_mode", padding_mode, Border)
