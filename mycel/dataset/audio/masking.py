"""Masks over stretches of time or frequency of spectrograms [..., freq, time].

They follow Park et al., "SpecAugment" (2019).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel.dataset.audio.base import AudioTransform, check_bool, check_float, check_int
from mycel.dataset.random_numbers.random_streams import current_stream
from mycel.dataset.rows.column_blocks import Array


class _Masking(AudioTransform):
    axes = 2
    form = "<..., freq, time>"

    def fill(self, array: Array, axis: int, start: int, width: int, value: float) -> Array:
        """Return a copy of `array` with `value` at start .. start + width - 1 of an axis.

        Raises RuntimeError where these do not exist.
        """
        length = array.shape[axis]
        if start + width > length:
            raise RuntimeError(
                f"{type(self).__name__}: the mask from {start} to {start + width} exceeds the length {length} of "
                f"the axis of {'time' if axis == -1 else 'frequencies'}"
            )
        result: Array = array.copy()
        np.moveaxis(result, axis, -1)[..., start : start + width] = value
        return result


def _check_axis(operation: str, axis: Any) -> int:
    axis = check_int(operation, "axis", axis)
    if axis not in (1, 2):
        raise ValueError(f"{operation}: axis must be 1 (frequency) or 2 (time), not {axis}")
    return int(axis)


class MaskAlongAxis(_Masking):
    """A mask over frequencies or times at a given place.

    Args:
        mask_start (int): The first frequency or time under the mask.
        mask_width (int): The number of them, at least 1.
        mask_value (float): The value that replaces theirs.
        axis (int): 1 for frequencies, 2 for times.

    Raises:
        RuntimeError: If the mask goes beyond the end.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import audio
        >>> audio.MaskAlongAxis(1, 2, 0.0, 2)(np.ones((1, 4), np.float32)).tolist()
        [[1.0, 0.0, 0.0, 1.0]]
    """

    def __init__(self, mask_start: int, mask_width: int, mask_value: float, axis: int) -> None:
        self.mask_start = check_int("MaskAlongAxis", "mask_start", mask_start, 0)
        self.mask_width = check_int("MaskAlongAxis", "mask_width", mask_width, 1)
        self.mask_value = check_float("MaskAlongAxis", "mask_value", mask_value)
        self.axis = _check_axis("MaskAlongAxis", axis)

    def compute(self, array: Array, lead: int) -> Array:
        values = self.floats(array, lead)
        return self.fill(values, self.axis - 3, self.mask_start, self.mask_width, self.mask_value)


class MaskAlongAxisIID(_Masking):
    """A random mask of `mask_value` over frequencies (`axis` 1) or times (2).

    Each [freq, time] of the input has its own: the width is uniform in [0, mask_param], the start
    uniform in [0, length - width]. Raises RuntimeError where `mask_param` exceeds the length.

    >>> import numpy as np
    >>> from mycel.dataset import audio
    >>> audio.MaskAlongAxisIID(2, 0.0, 2)(np.ones((3, 2, 4), np.float32)).shape
    (3, 2, 4)
    """

    random = True
    vectorised = False

    def __init__(self, mask_param: int, mask_value: float, axis: int) -> None:
        self.mask_param = check_int("MaskAlongAxisIID", "mask_param", mask_param, 0)
        self.mask_value = check_float("MaskAlongAxisIID", "mask_value", mask_value)
        self.axis = _check_axis("MaskAlongAxisIID", axis)

    def compute(self, array: Array, lead: int) -> Array:
        return self.fill_each(self.floats(array, lead), self.axis - 3, self.mask_param, self.mask_value)

    def fill_each(self, values: Array, axis: int, most: int, value: float) -> Array:
        """Return a copy with a random mask in each of the last two axes.

        Args:
            values (numpy.ndarray[Any, numpy.dtype[Any]]): The array.
            axis (int): The axis under the mask.
            most (int): The largest width of a mask.
            value (float): The value under the mask.

        Returns:
            numpy.ndarray[Any, numpy.dtype[Any]]: The copy.
        """
        length = values.shape[axis]
        if most > length:
            raise RuntimeError(f"{type(self).__name__}: a mask of {most} exceeds the length {length} of its axis")
        result: Array = values.copy()
        stream = current_stream()
        for plane in result.reshape(-1, *values.shape[-2:]):
            width = stream.integer(0, most)
            start = stream.integer(0, length - width)
            np.moveaxis(plane, axis, -1)[..., start : start + width] = value
        return result


class _AxisMasking(MaskAlongAxisIID):
    """A random mask in each of the last two axes (`iid_masks`), or one at a given place."""

    _axis = -1
    _param = "time_mask_param"

    def _check(self, iid_masks: Any, param: Any, mask_start: Any, mask_value: Any) -> None:
        operation = type(self).__name__
        self.iid_masks = check_bool(operation, "iid_masks", iid_masks)
        setattr(self, self._param, check_int(operation, self._param, param, 0))
        self.mask_start = check_int(operation, "mask_start", mask_start, 0)
        self.mask_value = check_float(operation, "mask_value", mask_value, 0)

    def compute(self, array: Array, lead: int) -> Array:
        values = self.floats(array, lead)
        most: int = getattr(self, self._param)
        if self.iid_masks:
            return self.fill_each(values, self._axis, most, self.mask_value)
        return self.fill(values, self._axis, self.mask_start, most, self.mask_value)


class FrequencyMasking(_AxisMasking):
    """A mask over frequencies of a spectrogram [..., freq, time].

    Args:
        iid_masks (bool): Whether the width is drawn from [0, freq_mask_param], and the start too,
            for each [freq, time]. Default: False.
        freq_mask_param (int): The number of frequencies under the mask. Default: 0.
        mask_start (int): The first of them. Default: 0.
        mask_value (float): The value that replaces theirs. Default: 0.0.

    Raises:
        RuntimeError: If the mask goes beyond the end.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import audio
        >>> audio.FrequencyMasking(False, 1, 1)(np.ones((3, 2), np.float32)).tolist()
        [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]
    """

    _axis = -2
    _param = "freq_mask_param"

    def __init__(
        self, iid_masks: bool = False, freq_mask_param: int = 0, mask_start: int = 0, mask_value: float = 0.0
    ) -> None:
        self._check(iid_masks, freq_mask_param, mask_start, mask_value)


class TimeMasking(_AxisMasking):
    """A mask over times of a spectrogram [..., freq, time].

    Args:
        iid_masks (bool): Whether the width is drawn from [0, time_mask_param], and the start too,
            for each [freq, time]. Default: False.
        time_mask_param (int): The number of times under the mask. Default: 0.
        mask_start (int): The first of them. Default: 0.
        mask_value (float): The value that replaces theirs. Default: 0.0.

    Raises:
        RuntimeError: If the mask goes beyond the end.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import audio
        >>> audio.TimeMasking(False, 1, 1)(np.ones((2, 3), np.float32)).tolist()
        [[1.0, 0.0, 1.0], [1.0, 0.0, 1.0]]
    """

    def __init__(
        self, iid_masks: bool = False, time_mask_param: int = 0, mask_start: int = 0, mask_value: float = 0.0
    ) -> None:
        self._check(iid_masks, time_mask_param, mask_start, mask_value)
