"""Resampling by band-limited interpolation (J. O. Smith, "Digital Audio Resampling Home Page").

Each result is a sum of the samples around its place, weighted by a windowed sinc. With both rates
divided by their greatest common divisor, the weights recur after `new` results, so they are
computed only for these.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycel.dataset.audio.base import AudioTransform, check_choice, check_float, check_int, check_positive
from mycel.dataset.audio.enums import BorderType, ResampleMethod
from mycel.dataset.audio.stft import pad_ends
from mycel.dataset.blocks import Array

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
        raise RuntimeError(f"{operation}: the rates must be at least 1 Hz, got {old:g} and {new:g}")
    divisor = math.gcd(int(old), int(new))
    source, target = int(old) // divisor, int(new) // divisor
    cutoff = min(source, target) * rolloff
    reach = math.ceil(width * source / cutoff)
    length = waveform.shape[-1]
    steps = np.arange(math.ceil(target * length / source))
    whole, part = np.divmod(steps * source, target)
    phases = part[: min(target, len(steps)), None] / target
    place = np.clip((np.arange(-reach, reach + 2) - phases) * (cutoff / source), -width, width)
    if method is ResampleMethod.SINC_INTERPOLATION:
        window: Any = np.cos(place * (math.pi / width / 2)) ** 2
    else:
        shape = KAISER_BETA if beta is None else beta
        window = np.i0(shape * np.sqrt(1 - (place / width) ** 2)) / np.i0(np.float64(shape))
    weights = np.sinc(place) * window * (cutoff / source)
    padded = pad_ends(waveform.astype(np.float64), reach, reach + 2, BorderType.CONSTANT)
    found = np.zeros((*waveform.shape[:-1], len(steps)))
    for tap in range(weights.shape[1]):
        found += padded[..., whole + tap] * weights[steps % target, tap]
    return found


class Resample(AudioTransform):
    """A waveform [..., time] at another sampling rate, ceil(time * new_freq / orig_freq) long.

    * `orig_freq`, `new_freq`: the rates in Hz, taken as whole numbers as in MindSpore. If they are
      equal, the waveform is returned unchanged.
    * `resample_method`: the window of the sinc.
    * `lowpass_filter_width`: the number of zero crossings of the sinc on each side.
    * `rolloff`: its cutoff as a fraction of the lower Nyquist frequency, within (0, 1].
    * `beta`: the shape of Kaiser's window (default: 14.769656459379492).

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
        if not isinstance(rolloff, float):
            raise TypeError(f"Resample: rolloff must be a float, got {rolloff!r} of type {type(rolloff).__name__}")
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
