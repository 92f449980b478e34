"""Recursive filters: second-order sections and general ones.

A biquad computes a0 y[n] = b0 x[n] + b1 x[n-1] + b2 x[n-2] - a1 y[n-1] - a2 y[n-2] and limits y to
[-1, 1]. Unless stated otherwise, coefficients are those of R. Bristow-Johnson, "Cookbook formulae
for audio equalizer biquad filter coefficients", with w = 2 pi f / sample_rate and alpha = sin(w) /
(2 Q). Waveforms are [..., time] of float16, float32 or float64 and keep their type; sums are
accumulated in float64, by SciPy's `lfilter` or a routine that does the same. `sample_rate` and
frequencies are in Hz; `Q` is the quality factor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.engines.routines import are_on
from mycel._src.foundation import arguments
from mycel.dataset.audio import audio_kernels
from mycel.dataset.audio.base import AudioTransform, check_among, check_bool, check_float, check_rate
from mycel.dataset.rows.column_blocks import Array

Coefficients = tuple[Sequence[float], Sequence[float]]


def recursive_filter(array: Array, b: Sequence[float], a: Sequence[float], clamp: bool = True) -> Array:
    """Apply the filter b / a to `array` along the last axis, in float64.

    `b` and `a` are the coefficients of numerator and denominator; with `clamp` the result is
    limited to [-1, 1].
    """
    if array.size == 0:
        return array.astype(np.float64)
    if len(b) == len(a) == 3 and are_on():
        return _second_order(array, b, a, clamp, np.empty(array.shape))
    from scipy import signal

    result: Array = signal.lfilter(np.asarray(b, np.float64), np.asarray(a, np.float64), array.astype(np.float64))
    return np.clip(result, -1.0, 1.0, out=result) if clamp else result


def filtered(array: Array, b: Sequence[float], a: Sequence[float], clamp: bool = True) -> Array:
    """Return what `recursive_filter` does, in the type of `array`.

    `b`, `a` and `clamp` are its parameters.
    """
    if len(b) == len(a) == 3 and array.dtype.char in "fd" and array.size and are_on():
        return _second_order(array, b, a, clamp, np.empty(array.shape, array.dtype))
    return recursive_filter(array, b, a, clamp).astype(array.dtype, copy=False)


def _second_order(array: Array, b: Sequence[float], a: Sequence[float], clamp: bool, result: Array) -> Array:
    """Filter by a routine into `result`; the other parameters are those of `recursive_filter`."""
    first, length = float(a[0]), array.shape[-1]
    given = array if array.dtype.char in "fd" else array.astype(np.float64)
    audio_kernels.filter_rows(
        np.ascontiguousarray(given),
        array.size // length,
        length,
        float(b[0]) / first,
        float(b[1]) / first,
        float(b[2]) / first,
        float(a[1]) / first,
        float(a[2]) / first,
        clamp,
        result.dtype.char == "d",
        result,
    )
    return result


class _Section(AudioTransform):
    """A filter with the coefficients (b, a) in `_coefficients`."""

    only_floats = True
    _coefficients: Coefficients

    def compute(self, array: Array, lead: int) -> Array:
        self.check(array, lead)
        b, a = self._coefficients
        return filtered(array, b, a)

    def _start(self, sample_rate: Any, frequency: Any, q: Any, name: str = "central_freq") -> tuple[float, float]:
        """Check the arguments and return the angle w and alpha."""
        operation = type(self).__name__
        self.sample_rate = check_rate(operation, sample_rate)
        setattr(self, name, check_float(operation, name, frequency))
        self.Q = check_float(operation, "Q", q, 0.0, 1.0, above=True)
        angle = 2 * math.pi * getattr(self, name) / self.sample_rate
        return angle, math.sin(angle) / 2 / self.Q


def _shelf(angle: float, alpha: float, gain: float, sign: int) -> Coefficients:
    """Return the coefficients of a shelf of `gain` dB: low for `sign` 1, high for -1."""
    amplitude = 10 ** (gain / 40)
    cosine = sign * math.cos(angle)
    more, less, root = amplitude + 1, amplitude - 1, 2 * math.sqrt(amplitude) * alpha
    b = (
        amplitude * (more - less * cosine + root),
        sign * 2 * amplitude * (less - more * cosine),
        amplitude * (more - less * cosine - root),
    )
    a = (more + less * cosine + root, -sign * 2 * (less + more * cosine), more + less * cosine - root)
    return b, a


class AllpassBiquad(_Section):
    """A two-pole all-pass filter: (s^2 - s/Q + 1) / (s^2 + s/Q + 1).

    It turns phases and leaves magnitudes as they are.

    >>> import numpy as np
    >>> from mycel.dataset import audio
    >>> audio.AllpassBiquad(44100, 200.0)(np.ones(4, np.float32)).shape
    (4,)
    """

    def __init__(self, sample_rate: int, central_freq: float, Q: float = 0.707) -> None:
        angle, alpha = self._start(sample_rate, central_freq, Q)
        middle = -2 * math.cos(angle)
        self._coefficients = (1 - alpha, middle, 1 + alpha), (1 + alpha, middle, 1 - alpha)


class BandBiquad(_Section):
    """A two-pole band-pass filter that falls off on both sides of `central_freq` (SoX `band`).

    With r = exp(-2 pi width / sample_rate): a = 1, -4 r cos(w) / (1 + r), r.

    Args:
        sample_rate (int): The sampling rate in Hz.
        central_freq (float): The frequency in Hz.
        Q (float): The quality factor: the width is central_freq / Q. Default: 0.707.
        noise (bool): Whether the power of white noise is kept, instead of the peak being 1 for
            pitched sounds. Default: False.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import audio
        >>> audio.BandBiquad(44100, 200.0)(np.ones(4, np.float32)).shape
        (4,)
    """

    central_freq: float

    def __init__(self, sample_rate: int, central_freq: float, Q: float = 0.707, noise: bool = False) -> None:
        angle, _ = self._start(sample_rate, central_freq, Q)
        self.noise = check_bool("BandBiquad", "noise", noise)
        width = self.central_freq / self.Q
        with np.errstate(all="ignore"):
            last = np.exp(np.float64(-2 * math.pi * width / self.sample_rate))
            turn = 4 * last * math.cos(angle) ** 2 / (1 + last) ** 2
            if self.noise:
                first = np.sqrt(((1 + last) ** 2 - 4 * last * turn) * (1 - last) / (1 + last))
            else:
                first = np.sqrt(1 - turn) * (1 - last)
            middle = -4 * last / (1 + last) * math.cos(angle)
        self._coefficients = (float(first), 0.0, 0.0), (1.0, float(middle), float(last))


class BandpassBiquad(_Section):
    """A two-pole band-pass filter: (s/Q) / (s^2 + s/Q + 1), whose peak is 1.

    Args:
        sample_rate (int): The sampling rate in Hz.
        central_freq (float): The frequency in Hz.
        Q (float): The quality factor. Default: 0.707.
        const_skirt_gain (bool): Whether the filter is s / (s^2 + s/Q + 1) instead. Default: False.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import audio
        >>> audio.BandpassBiquad(44100, 200.0)(np.ones(4, np.float32)).shape
        (4,)
    """

    def __init__(
        self,
        sample_rate: int,
        central_freq: float,
        Q: float = 0.707,
        const_skirt_gain: bool = False,
    ) -> None:
        angle, alpha = self._start(sample_rate, central_freq, Q)
        self.const_skirt_gain = check_bool("BandpassBiquad", "const_skirt_gain", const_skirt_gain)
        peak = math.sin(angle) / 2 if const_skirt_gain else alpha
        self._coefficients = (peak, 0.0, -peak), (1 + alpha, -2 * math.cos(angle), 1 - alpha)


class BandrejectBiquad(_Section):
    """A two-pole band-reject filter: (s^2 + 1) / (s^2 + s/Q + 1).

    >>> import numpy as np
    >>> from mycel.dataset import audio
    >>> audio.BandrejectBiquad(44100, 200.0)(np.ones(4, np.float32)).shape
    (4,)
    """

    def __init__(self, sample_rate: int, central_freq: float, Q: float = 0.707) -> None:
        angle, alpha = self._start(sample_rate, central_freq, Q)
        middle = -2 * math.cos(angle)
        self._coefficients = (1.0, middle, 1.0), (1 + alpha, middle, 1 - alpha)


class BassBiquad(_Section):
    """A two-pole low shelf: it raises what lies below `central_freq` by `gain` dB.

    Args:
        sample_rate (int): The sampling rate in Hz.
        gain (float): The gain in dB.
        central_freq (float): The frequency in Hz. Default: 100.0.
        Q (float): The quality factor. Default: 0.707.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import audio
        >>> audio.BassBiquad(44100, 3.0)(np.ones(4, np.float32)).shape
        (4,)
    """

    def __init__(self, sample_rate: int, gain: float, central_freq: float = 100.0, Q: float = 0.707) -> None:
        angle, alpha = self._start(sample_rate, central_freq, Q)
        self.gain = check_float("BassBiquad", "gain", gain)
        self._coefficients = _shelf(angle, alpha, self.gain, 1)


class Biquad(_Section):
    """A second-order filter.

    Args:
        b0 (float): The coefficient of x[n].
        b1 (float): The coefficient of x[n - 1].
        b2 (float): The coefficient of x[n - 2].
        a0 (float): The coefficient of y[n], not 0.
        a1 (float): The coefficient of y[n - 1].
        a2 (float): The coefficient of y[n - 2].

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import audio
        >>> audio.Biquad(0.5, 0.25, 0.0, 1.0, 0.0, 0.0)(np.array([1.0, 0.0, 0.0])).tolist()
        [0.5, 0.25, 0.0]
    """

    def __init__(self, b0: float, b1: float, b2: float, a0: float, a1: float, a2: float) -> None:
        given = {"b0": b0, "b1": b1, "b2": b2, "a0": a0, "a1": a1, "a2": a2}
        values = [check_float("Biquad", name, value) for name, value in given.items()]
        if values[3] == 0:
            raise ValueError("Biquad: a0 must not be 0")
        self.b0, self.b1, self.b2, self.a0, self.a1, self.a2 = values
        self._coefficients = values[:3], values[3:]


class DeemphBiquad(_Section):
    """The de-emphasis of compact discs (IEC 60908) as a high shelf (SoX `deemph`).

    `sample_rate` is 44100 or 48000 Hz.

    >>> import numpy as np
    >>> from mycel.dataset import audio
    >>> audio.DeemphBiquad(44100)(np.ones(4, np.float32)).shape
    (4,)
    """

    def __init__(self, sample_rate: int) -> None:
        self.sample_rate = check_among("DeemphBiquad", "sample_rate", sample_rate, (44100, 48000))
        frequency, slope, gain = {44100: (5283, 0.4845, -9.477), 48000: (5356, 0.479, -9.62)}[self.sample_rate]
        angle = 2 * math.pi * frequency / self.sample_rate
        amplitude = 10 ** (gain / 40)
        alpha = math.sin(angle) / 2 * math.sqrt((amplitude + 1 / amplitude) * (1 / slope - 1) + 2)
        self._coefficients = _shelf(angle, alpha, gain, -1)


class EqualizerBiquad(_Section):
    """A two-pole peaking equalizer: it raises what lies around `center_freq` by `gain` dB.

    Args:
        sample_rate (int): The sampling rate in Hz.
        center_freq (float): The frequency in Hz.
        gain (float): The gain in dB.
        Q (float): The quality factor. Default: 0.707.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import audio
        >>> audio.EqualizerBiquad(44100, 1500.0, 5.5)(np.ones(4, np.float32)).shape
        (4,)
    """

    def __init__(self, sample_rate: int, center_freq: float, gain: float, Q: float = 0.707) -> None:
        angle, alpha = self._start(sample_rate, center_freq, Q, "center_freq")
        self.gain = check_float("EqualizerBiquad", "gain", gain)
        amplitude = 10 ** (self.gain / 40)
        middle = -2 * math.cos(angle)
        self._coefficients = (
            (1 + alpha * amplitude, middle, 1 - alpha * amplitude),
            (1 + alpha / amplitude, middle, 1 - alpha / amplitude),
        )


class HighpassBiquad(_Section):
    """A two-pole high-pass filter: s^2 / (s^2 + s/Q + 1).

    >>> import numpy as np
    >>> from mycel.dataset import audio
    >>> audio.HighpassBiquad(44100, 1500.0)(np.ones(4, np.float32)).shape
    (4,)
    """

    def __init__(self, sample_rate: int, cutoff_freq: float, Q: float = 0.707) -> None:
        angle, alpha = self._start(sample_rate, cutoff_freq, Q, "cutoff_freq")
        outer = (1 + math.cos(angle)) / 2
        self._coefficients = (outer, -2 * outer, outer), (1 + alpha, -2 * math.cos(angle), 1 - alpha)


class LowpassBiquad(_Section):
    """A two-pole low-pass filter: 1 / (s^2 + s/Q + 1).

    >>> import numpy as np
    >>> from mycel.dataset import audio
    >>> audio.LowpassBiquad(44100, 1500.0)(np.ones(4, np.float32)).shape
    (4,)
    """

    def __init__(self, sample_rate: int, cutoff_freq: float, Q: float = 0.707) -> None:
        angle, alpha = self._start(sample_rate, cutoff_freq, Q, "cutoff_freq")
        outer = (1 - math.cos(angle)) / 2
        self._coefficients = (outer, 2 * outer, outer), (1 + alpha, -2 * math.cos(angle), 1 - alpha)


_RIAA = {
    44100: ((-0.2014898, 0.9233820), (0.7083149, 0.9924091)),
    48000: ((-0.1766069, 0.9321590), (0.7396325, 0.9931330)),
    88200: ((-0.1168735, 0.9648312), (0.8590646, 0.9964002)),
    96000: ((-0.1141486, 0.9676817), (0.8699137, 0.9966946)),
}


class RiaaBiquad(_Section):
    """The equalization of vinyl records (RIAA), with a gain of 1 at 1 kHz.

    `sample_rate` is 44100, 48000, 88200 or 96000 Hz. Zeros and poles are those of SoX `riaa`.

    >>> import numpy as np
    >>> from mycel.dataset import audio
    >>> audio.RiaaBiquad(44100)(np.ones(4, np.float32)).shape
    (4,)
    """

    def __init__(self, sample_rate: int) -> None:
        self.sample_rate = check_among("RiaaBiquad", "sample_rate", sample_rate, tuple(_RIAA))
        b, a = (np.poly(roots) for roots in _RIAA[self.sample_rate])
        turn = np.exp(-2j * math.pi * 1000 / self.sample_rate * np.arange(3))
        self._coefficients = (b * abs(a @ turn) / abs(b @ turn)).tolist(), a.tolist()


class TrebleBiquad(_Section):
    """A two-pole high shelf: it raises what lies above `central_freq` by `gain` dB.

    Args:
        sample_rate (int): The sampling rate in Hz.
        gain (float): The gain in dB.
        central_freq (float): The frequency in Hz. Default: 3000.
        Q (float): The quality factor. Default: 0.707.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import audio
        >>> audio.TrebleBiquad(44100, 3.0)(np.ones(4, np.float32)).shape
        (4,)
    """

    def __init__(self, sample_rate: int, gain: float, central_freq: float = 3000, Q: float = 0.707) -> None:
        angle, alpha = self._start(sample_rate, central_freq, Q)
        self.gain = check_float("TrebleBiquad", "gain", gain)
        self._coefficients = _shelf(angle, alpha, self.gain, -1)


class _General(AudioTransform):
    only_floats = True

    def __init__(self, a_coeffs: Sequence[float], b_coeffs: Sequence[float], clamp: bool = True) -> None:
        operation = type(self).__name__
        for name, values in (("a_coeffs", a_coeffs), ("b_coeffs", b_coeffs)):
            arguments.sequence(operation, name, values)
            for position, value in enumerate(values):
                check_float(operation, f"{name}[{position}]", value)
        if len(a_coeffs) != len(b_coeffs):
            raise ValueError(
                f"{operation}: a_coeffs and b_coeffs must have the same size, not {len(a_coeffs)} and {len(b_coeffs)}; "
                "fill the shorter with zeros"
            )
        if not a_coeffs or a_coeffs[0] == 0:
            raise ValueError(f"{operation}: the first of a_coeffs must be other than 0, not {list(a_coeffs)}")
        self.a_coeffs, self.b_coeffs = list(a_coeffs), list(b_coeffs)
        self.clamp = check_bool(operation, "clamp", clamp)


class LFilter(_General):
    """The filter sum(b[k] x[n-k]) = sum(a[k] y[n-k]), limited to [-1, 1] if `clamp`.

    Both lists have the same length, lower delays first.

    >>> import numpy as np
    >>> from mycel.dataset import audio
    >>> audio.LFilter([1.0, -0.5], [1.0, 0.0])(np.array([1.0, 0.0, 0.0])).tolist()
    [1.0, 0.5, 0.25]
    """

    def compute(self, array: Array, lead: int) -> Array:
        self.check(array, lead)
        return filtered(array, self.b_coeffs, self.a_coeffs, self.clamp)


class Filtfilt(_General):
    """The filter of `LFilter` forwards, then backwards over the result, so that phases stay.

    Each pass starts from rest. Only the end result is limited to [-1, 1] (if `clamp`).

    >>> import numpy as np
    >>> from mycel.dataset import audio
    >>> audio.Filtfilt([1.0, 0.0], [0.5, 0.5])(np.array([0.0, 1.0, 0.0])).tolist()
    [0.25, 0.5, 0.25]
    """

    def compute(self, array: Array, lead: int) -> Array:
        self.check(array, lead)
        forward = recursive_filter(array, self.b_coeffs, self.a_coeffs, clamp=False)
        backward = recursive_filter(forward[..., ::-1], self.b_coeffs, self.a_coeffs, self.clamp)
        return np.ascontiguousarray(backward[..., ::-1]).astype(array.dtype)
