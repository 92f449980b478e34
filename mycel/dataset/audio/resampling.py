"""Resampling by band-limited interpolation (J. O. Smith, "Digital Audio Resampling Home Page").

Each result is a sum of the samples around its place, weighted by a windowed sinc. With both rates
divided by their greatest common divisor, the weights recur after `new` results, so they are
computed only for these.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycel._src.engines.routines import are_on
from mycel._src.foundation import arguments
from mycel._src.foundation.bounded_caches import FEW, Remembered
from mycel.dataset.audio import audio_kernels
from mycel.dataset.audio.base import AudioTransform, check_choice, check_float, check_int, check_positive
from mycel.dataset.audio.enums import BorderType, ResampleMethod
from mycel.dataset.audio.stft import pad_ends
from mycel.dataset.rows.column_blocks import Array

KAISER_BETA = 14.769656459379492


def resample(
    operation: str,
    waveform: Array,
    old: float,
    new: float,
    method: ResampleMethod = ResampleMethod.SINC_INTERPOLATION,
    width: int = 6,
    rolloff: float = 0.99,
    beta: float | None = None,
) -> Array:
    """Return the waveform [..., time] at another rate, ceil(new / old * time) long, in float64.

    * `operation`: the name in messages.
    * `old`, `new`: the rates, which are whole numbers.
    * `method`, `width`, `rolloff`, `beta`: the last four parameters of `Resample`.
    """
    if old == new:
        return waveform
    if int(old) < 1 or int(new) < 1:
        raise RuntimeError(f"{operation}: the rates must be at least 1 Hz, not {old:g} and {new:g}")
    divisor = math.gcd(int(old), int(new))
    source, target = int(old) // divisor, int(new) // divisor
    count = math.ceil(target * waveform.shape[-1] / source)
    options = (source, target, min(target, count), method, width, rolloff, beta)
    # Few phases are worth remembering.
    reach, weights = _filters.recall(options, lambda: _weights(*options)) if target <= _FEW else _weights(*options)
    if count and waveform.size and are_on():
        return _side_by_side(waveform, source, target, count, reach, weights)
    return _tap_by_tap(waveform, source, target, count, reach, weights)


_FEW = 1024
_filters = Remembered[tuple[Any, ...], tuple[int, Array]]("filters of resampling", FEW)


def _weights(
    source: int, target: int, phases: int, method: ResampleMethod, width: int, rolloff: float, beta: float | None
) -> tuple[int, Array]:
    """Return how far samples reach to the left, and the weights of those around each phase.

    * `source`, `target`: the rates without their common divisor.
    * `phases`: how many phases there are.
    * `method`, `width`, `rolloff`, `beta`: as in `resample`.
    """
    cutoff = min(source, target) * rolloff
    reach = math.ceil(width * source / cutoff)
    part = np.arange(phases)[:, None] * source % target / target
    place = np.clip((np.arange(-reach, reach + 2) - part) * (cutoff / source), -width, width)
    if method is ResampleMethod.SINC_INTERPOLATION:
        window: Any = np.cos(place * (math.pi / width / 2)) ** 2
    else:
        shape = KAISER_BETA if beta is None else beta
        window = np.i0(shape * np.sqrt(1 - (place / width) ** 2)) / np.i0(np.float64(shape))
    return reach, np.sinc(place) * window * (cutoff / source)


def _tap_by_tap(waveform: Array, source: int, target: int, count: int, reach: int, weights: Array) -> Array:
    """Return `count` results by operations of NumPy; parameters as in `_weights`."""
    steps = np.arange(count)
    whole = steps * source // target
    padded = pad_ends(waveform.astype(np.float64), reach, reach + 2, BorderType.CONSTANT)
    found = np.zeros((*waveform.shape[:-1], count))
    for tap in range(weights.shape[1]):
        found += padded[..., whole + tap] * weights[steps % target, tap]
    return found


def _side_by_side(waveform: Array, source: int, target: int, count: int, reach: int, weights: Array) -> Array:
    """Return the same by a routine, for a waveform that has samples."""
    length, taps = waveform.shape[-1], weights.shape[1]
    rows = waveform.size // length
    most = -(-count // target)
    # Enough for the samples, and for those of all results side by side.
    span = max(-(-(reach + length) // source), (source + taps) // source + most + 1)
    padded = np.zeros((rows, span * source))
    padded[:, reach : reach + length] = waveform.reshape(rows, length)
    found = np.empty((*waveform.shape[:-1], count))
    memory = np.empty(span * source), np.empty(most)
    audio_kernels.interpolate(padded, rows, span, weights, taps, source, target, count, *memory, found)
    return found


class Resample(AudioTransform):
    """A waveform [..., time] at another sampling rate, ceil(time * new_freq / orig_freq) long.

    Args:
        orig_freq (float): The rate in Hz, taken as a whole number as in MindSpore. Default: 16000.
        new_freq (float): The rate of the result, likewise; if it is equal, the waveform is returned
            unchanged. Default: 16000.
        resample_method (ResampleMethod): The window of the sinc.
        lowpass_filter_width (int): The number of zero crossings of the sinc on each side. Default:
            6.
        rolloff (float): Its cutoff as a fraction of the lower Nyquist frequency, within (0, 1].
            Default: 0.99.
        beta (float | None): The shape of Kaiser's window (default: 14.769656459379492). Default:
            None.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import audio
        >>> audio.Resample(16000, 8000)(np.ones((2, 9), np.float32)).shape
        (2, 5)
    """

    def __init__(
        self,
        orig_freq: float = 16000,
        new_freq: float = 16000,
        resample_method: ResampleMethod = ResampleMethod.SINC_INTERPOLATION,
        lowpass_filter_width: int = 6,
        rolloff: float = 0.99,
        beta: float | None = None,
    ) -> None:
        operation = "Resample"
        self.orig_freq = check_positive(operation, "orig_freq", orig_freq)
        self.new_freq = check_positive(operation, "new_freq", new_freq)
        self.resample_method = check_choice(operation, "resample_method", resample_method, ResampleMethod)
        self.lowpass_filter_width = check_int(operation, "lowpass_filter_width", lowpass_filter_width, 1)
        arguments.instance("Resample", "rolloff", rolloff, float)
        self.rolloff = check_float(operation, "rolloff", rolloff, 0, 1, above=True)
        wide = float(np.finfo(np.float64).max)
        self.beta = check_float(operation, "beta", beta, -wide, wide, none=True)

    def compute(self, array: Array, lead: int) -> Array:
        self.check(array, lead)
        if self.orig_freq == self.new_freq:
            return array
        values = self.floats(array, lead)
        found = resample(
            "Resample",
            values,
            self.orig_freq,
            self.new_freq,
            self.resample_method,
            self.lowpass_filter_width,
            self.rolloff,
            self.beta,
        )
        return found.astype(values.dtype)
