"""Spectra of waveforms, their inverses, and changes of speed and pitch.

A waveform is [..., time], a spectrogram [..., freq, frame]; a complex spectrogram has a last axis
of (real, imaginary).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel.dataset.audio.base import (
    AudioTransform,
    check_bool,
    check_choice,
    check_float,
    check_int,
    check_positive,
)
from mycel.dataset.audio.enums import BorderType, WindowType
from mycel.dataset.audio.resampling import resample
from mycel.dataset.audio.stft import Frames, istft, pad_ends, stft
from mycel.dataset.random_numbers.random_streams import current_stream
from mycel.dataset.rows.column_blocks import Array


def as_complex(array: Array) -> Array:
    """Convert a last axis of (real, imaginary) to complex numbers."""
    pairs = np.ascontiguousarray(array, np.float64)
    result: Array = pairs.view(np.complex128)[..., 0]
    return result


def as_pairs(array: Array) -> Array:
    """Convert complex numbers to a last axis of (real, imaginary)."""
    return np.stack([array.real, array.imag], axis=-1)


class Spectrogram(AudioTransform):
    """The spectrogram [..., freq, frame] of a waveform [..., time].

    Args:
        n_fft (int): The length of the transform. Default: 400.
        win_length (int | None): The length of the window; None for `n_fft`. Default: None.
        hop_length (int | None): The distance of frames; None for half of `win_length`. Default:
            None.
        pad (int): The number of zeros added at both ends first. Default: 0.
        window (WindowType): The window.
        power (float): The power of |STFT|; 0 gives complex pairs. Default: 2.0.
        normalized (bool): Whether to divide by the root of the sum of the squared window. Default:
            False.
        center (bool): Whether the first frame is centred at the first sample; `pad_mode` gives the
            values before it. Default: True.
        pad_mode (BorderType): How ends are padded.
        onesided (bool): Whether freq is n_fft // 2 + 1 instead of n_fft. Default: True.

    Raises:
        RuntimeError: For waveforms shorter than a frame.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import audio
        >>> audio.Spectrogram(n_fft=8)(np.ones((2, 16), np.float32)).shape
        (2, 5, 5)
    """

    def __init__(
        self,
        n_fft: int = 400,
        win_length: int | None = None,
        hop_length: int | None = None,
        pad: int = 0,
        window: WindowType = WindowType.HANN,
        power: float = 2.0,
        normalized: bool = False,
        center: bool = True,
        pad_mode: BorderType = BorderType.REFLECT,
        onesided: bool = True,
    ) -> None:
        operation = type(self).__name__
        self._frames = Frames(operation, n_fft, win_length, hop_length, window)
        self._window = self._frames.check()
        self.n_fft, self.win_length, self.hop_length = n_fft, self._frames.win_length, self._frames.hop_length
        self.pad = check_int(operation, "pad", pad, 0)
        self.window = window
        self.power = check_float(operation, "power", power, 0)
        self.normalized = check_bool(operation, "normalized", normalized)
        self.center = check_bool(operation, "center", center)
        self.pad_mode = check_choice(operation, "pad_mode", pad_mode, BorderType)
        self.onesided = check_bool(operation, "onesided", onesided)

    def compute(self, array: Array, lead: int) -> Array:
        values = self.floats(array, lead)
        if self.pad:
            values = pad_ends(values, self.pad, self.pad, BorderType.CONSTANT)
        found = stft(
            type(self).__name__,
            values,
            self.n_fft,
            self.hop_length,
            self._window,
            self.center,
            self.pad_mode,
            self.onesided,
        )
        if self.normalized:
            found = found / values.dtype.type(math.sqrt(float((self._window**2).sum())))
        if self.power == 0:
            return as_pairs(found)
        result: Array = np.abs(found)
        return result if self.power == 1 else result ** values.dtype.type(self.power)


class InverseSpectrogram(AudioTransform):
    """The waveform [..., time] of a complex spectrogram [..., freq, frame, 2], by least squares.

    The parameters are those of the `Spectrogram` that made it. Unlike MindSpore 2.10, this honours
    `pad`, `center` and `onesided` where they differ from their defaults.

    Args:
        length (int | None): The length of the waveform; None for all of it. Default: None.
        n_fft (int): The length of a frame. Default: 400.
        win_length (int | None): The length of the window; None for `n_fft`. Default: None.
        hop_length (int | None): The distance between frames; None for half of the window. Default:
            None.
        pad (int): The number of zeros added at both ends first. Default: 0.
        window (WindowType): The window.
        normalized (bool): Whether the spectrum is divided by the norm of the window. Default:
            False.
        center (bool): Whether frames are centred, with the ends padded. Default: True.
        pad_mode (BorderType): How ends are padded.
        onesided (bool): Whether frequencies above the half are left out. Default: True.

    Raises:
        RuntimeError: If freq does not fit `n_fft` and `onesided`.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import audio
        >>> wave = np.sin(np.arange(32.0))
        >>> spectrum = audio.Spectrogram(n_fft=8, power=0.0)(wave)
        >>> bool(np.allclose(audio.InverseSpectrogram(n_fft=8)(spectrum), wave))
        True
    """

    axes = 3
    form = "<..., freq, time, complex=2>"

    def __init__(
        self,
        length: int | None = None,
        n_fft: int = 400,
        win_length: int | None = None,
        hop_length: int | None = None,
        pad: int = 0,
        window: WindowType = WindowType.HANN,
        normalized: bool = False,
        center: bool = True,
        pad_mode: BorderType = BorderType.REFLECT,
        onesided: bool = True,
    ) -> None:
        operation = "InverseSpectrogram"
        self.length = check_int(operation, "length", length, 0, none=True)
        frames = Frames(operation, n_fft, win_length, hop_length, window)
        self._window = frames.check()
        self.n_fft, self.win_length, self.hop_length = n_fft, frames.win_length, frames.hop_length
        self.pad = check_int(operation, "pad", pad, 0)
        self.window = window
        self.normalized = check_bool(operation, "normalized", normalized)
        self.center = check_bool(operation, "center", center)
        self.pad_mode = check_choice(operation, "pad_mode", pad_mode, BorderType)
        self.onesided = check_bool(operation, "onesided", onesided)

    def compute(self, array: Array, lead: int) -> Array:
        values = self.floats(array, lead)
        wanted = self.n_fft // 2 + 1 if self.onesided else self.n_fft
        if values.shape[-3] != wanted:
            raise RuntimeError(
                f"InverseSpectrogram: the input must have {wanted} frequencies for n_fft {self.n_fft}, not shape "
                f"{values.shape[lead:]}"
            )
        if self.hop_length < 1:
            raise RuntimeError(f"InverseSpectrogram: hop_length must be positive, not {self.hop_length}")
        spectrum = as_complex(values.astype(np.float64))
        if self.normalized:
            spectrum = spectrum * math.sqrt(float((self._window**2).sum()))
        length = None if not self.length else self.length + 2 * self.pad
        result = istft(spectrum, self.n_fft, self.hop_length, self._window, self.center, length, self.onesided)
        if self.pad:
            result = result[..., self.pad : result.shape[-1] - self.pad]
        return result.astype(values.dtype)


class GriffinLim(AudioTransform):
    """A waveform [..., time] whose spectrogram is close to a given one [..., freq, frame].

    This is the fast Griffin-Lim algorithm (Perraudin, Balazs and Sondergaard, 2013). In each step
    the phases become those of the spectrum of the current waveform minus m / (1 + 2 m) times the
    one before, where m is `momentum`.

    Args:
        n_fft (int): The length of a frame. Default: 400.
        n_iter (int): The number of steps. Default: 32.
        win_length (int | None): The length of the window; None for `n_fft`. Default: None.
        hop_length (int | None): The distance between frames; None for half of the window. Default:
            None.
        window_type (WindowType): The window.
        power (float): The power of the given spectrogram. Default: 2.0.
        momentum (float): The m of the formula. Default: 0.99.
        length (int | None): The length of the waveform (default: all of it). Default: None.
        rand_init (bool): Whether phases start at random instead of at 0. Default: True.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import audio
        >>> audio.GriffinLim(n_fft=8)(np.ones((5, 9), np.float32)).shape
        (32,)
    """

    random = True
    vectorised = False
    axes = 2
    form = "<..., freq, time>"

    def __init__(
        self,
        n_fft: int = 400,
        n_iter: int = 32,
        win_length: int | None = None,
        hop_length: int | None = None,
        window_type: WindowType = WindowType.HANN,
        power: float = 2.0,
        momentum: float = 0.99,
        length: int | None = None,
        rand_init: bool = True,
    ) -> None:
        operation = "GriffinLim"
        self._frames = Frames(operation, n_fft, win_length, hop_length, window_type, "window_type", least=0)
        self.n_fft, self.win_length, self.hop_length = n_fft, self._frames.win_length, self._frames.hop_length
        self.n_iter = check_int(operation, "n_iter", n_iter, 1)
        self.window_type = window_type
        self.power = check_positive(operation, "power", power)
        self.momentum = check_float(operation, "momentum", momentum, 0)
        self.length = check_int(operation, "length", length, 0, none=True)
        self.rand_init = check_bool(operation, "rand_init", rand_init)

    def compute(self, array: Array, lead: int) -> Array:
        values = self.floats(array, lead)
        window = self._frames.check(RuntimeError)
        if values.shape[-2] != self.n_fft // 2 + 1:
            raise RuntimeError(
                f"GriffinLim: the input must have {self.n_fft // 2 + 1} frequencies for n_fft {self.n_fft}, not shape "
                f"{values.shape[lead:]}"
            )
        size = values.astype(np.float64) ** (1 / self.power)
        length = self.length or None
        phases = np.ones(size.shape, np.complex128)
        if self.rand_init:
            generator = np.random.Generator(np.random.PCG64(current_stream().bits()))
            phases = generator.random(size.shape) + 1j * generator.random(size.shape)
        before: Any = 0.0
        inertia = self.momentum / (1 + 2 * self.momentum)
        for _ in range(self.n_iter):
            wave = istft(size * phases, self.n_fft, self.hop_length, window, length=length)
            rebuilt = stft("GriffinLim", wave, self.n_fft, self.hop_length, window)
            phases = rebuilt - before * inertia
            phases = phases / (np.abs(phases) + 1e-16)
            before = rebuilt
        return istft(size * phases, self.n_fft, self.hop_length, window, length=length).astype(values.dtype)


def stretch(spectrum: Array, rate: float, phase_advance: Array) -> Array:
    """Read a complex spectrum `rate` times as fast; its phases advance as they did."""
    if rate == 1.0:
        return spectrum
    steps = np.arange(0, spectrum.shape[-1], rate)
    whole = steps.astype(np.int64)
    part = steps - whole
    longer = np.concatenate([spectrum, np.zeros((*spectrum.shape[:-1], 2), spectrum.dtype)], axis=-1)
    first, second = longer[..., whole], longer[..., whole + 1]
    change = np.angle(second) - np.angle(first) - phase_advance
    change = change - 2 * math.pi * np.round(change / (2 * math.pi)) + phase_advance
    start = np.angle(spectrum[..., :1])
    phase = np.cumsum(np.concatenate([start, change[..., :-1]], axis=-1), axis=-1)
    size = part * np.abs(second) + (1 - part) * np.abs(first)
    result: Array = size * np.exp(1j * phase)
    return result


class PhaseVocoder(AudioTransform):
    """A complex spectrogram [..., freq, frame, 2] made `rate` times as fast at the same pitch.

    `phase_advance`, [freq, 1] and of the input's type, is how much the phase of each bin is
    expected to grow from frame to frame (Flanagan and Golden, 1966).

    >>> import numpy as np
    >>> from mycel.dataset import audio
    >>> advance = np.linspace(0, 4 * np.pi, 5)[:, None]
    >>> audio.PhaseVocoder(2.0, advance)(np.ones((5, 8, 2))).shape
    (5, 4, 2)
    """

    axes = 3
    form = "<..., freq, num_frame, complex=2>"

    def __init__(self, rate: float, phase_advance: np.ndarray[Any, Any]) -> None:
        self.rate = check_positive("PhaseVocoder", "rate", rate)
        arguments.instance("PhaseVocoder", "phase_advance", phase_advance, np.ndarray)
        self.phase_advance = phase_advance

    def compute(self, array: Array, lead: int) -> Array:
        values = self.floats(array, lead)
        if self.phase_advance.shape != (values.shape[-3], 1):
            raise RuntimeError(
                f"PhaseVocoder: phase_advance must have shape {(values.shape[-3], 1)} for an input of shape "
                f"{values.shape[lead:]}, not {self.phase_advance.shape}"
            )
        spectrum = as_complex(values.astype(np.float64))
        return as_pairs(stretch(spectrum, self.rate, self.phase_advance.astype(np.float64))).astype(values.dtype)


class TimeStretch(AudioTransform):
    """A complex spectrogram [..., freq, frame, 2] made faster at the same pitch.

    It is the `PhaseVocoder` of rate `fixed_rate` (default: 1) with the phase advances of `n_freq`
    bins for `hop_length` samples (default: n_freq - 1).

    >>> import numpy as np
    >>> from mycel.dataset import audio
    >>> audio.TimeStretch(4, 5, 2.0)(np.ones((5, 8, 2))).shape
    (5, 4, 2)
    """

    axes = 3
    form = "<..., freq, num_frame, complex=2>"

    def __init__(self, hop_length: int | None = None, n_freq: int = 201, fixed_rate: float | None = None) -> None:
        self.n_freq = check_int("TimeStretch", "n_freq", n_freq, 1)
        hop = check_int("TimeStretch", "hop_length", hop_length, 1, none=True)
        self.hop_length = self.n_freq - 1 if hop is None else hop
        rate = check_positive("TimeStretch", "fixed_rate", fixed_rate, none=True)
        self.fixed_rate = 1.0 if rate is None else rate

    def compute(self, array: Array, lead: int) -> Array:
        values = self.floats(array, lead)
        if self.fixed_rate == 1.0:
            return values
        if values.shape[-3] != self.n_freq:
            raise RuntimeError(f"TimeStretch: n_freq is {self.n_freq}, but the input has shape {values.shape[lead:]}")
        advance = np.linspace(0, math.pi * self.hop_length, self.n_freq)[:, None]
        return as_pairs(stretch(as_complex(values.astype(np.float64)), self.fixed_rate, advance)).astype(values.dtype)


class PitchShift(AudioTransform):
    """A waveform [..., time] of the same length, its pitch raised by `n_steps`.

    It is stretched in time by 2^(n_steps / bins_per_octave) with a phase vocoder and resampled to
    its old length.

    Args:
        sample_rate (int): The sampling rate in Hz.
        n_steps (int): The number of steps.
        bins_per_octave (int): The number of steps that double the pitch. Default: 12.
        n_fft (int): The length of a frame. Default: 512.
        win_length (int | None): The length of the window; None for `n_fft`. Default: None.
        hop_length (int | None): The distance between frames; None for a quarter of `win_length`.
            Default: None.
        window (WindowType): The window.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import audio
        >>> audio.PitchShift(16000, 4, n_fft=16)(np.ones((2, 40), np.float32)).shape
        (2, 40)
    """

    def __init__(
        self,
        sample_rate: int,
        n_steps: int,
        bins_per_octave: int = 12,
        n_fft: int = 512,
        win_length: int | None = None,
        hop_length: int | None = None,
        window: WindowType = WindowType.HANN,
    ) -> None:
        operation = "PitchShift"
        self.sample_rate = check_int(operation, "sample_rate", sample_rate, 0)
        self.n_steps = check_int(operation, "n_steps", n_steps)
        self.bins_per_octave = check_int(operation, "bins_per_octave", bins_per_octave)
        if self.bins_per_octave == 0:
            raise ValueError("PitchShift: bins_per_octave must not be 0")
        frames = Frames(operation, n_fft, win_length, hop_length, window, share=4)
        self._frames = frames
        self.n_fft, self.win_length, self.hop_length = frames.n_fft, frames.win_length, frames.hop_length
        self.window = window

    def compute(self, array: Array, lead: int) -> Array:
        values = self.floats(array, lead)
        window = self._frames.check(RuntimeError)
        length = values.shape[-1]
        octaves = -self.n_steps / self.bins_per_octave
        if abs(octaves) >= 32:
            raise RuntimeError(f"PitchShift: {-octaves:g} octaves are beyond the rates that 32 bits can hold")
        rate = 2.0**octaves
        spectrum = stft("PitchShift", values.astype(np.float64), self.n_fft, self.hop_length, window)
        advance = np.linspace(0, math.pi * self.hop_length, spectrum.shape[-2])[:, None]
        stretched = stretch(spectrum, rate, advance)
        longer = istft(stretched, self.n_fft, self.hop_length, window, length=round(length / rate))
        shifted = resample("PitchShift", longer, int(self.sample_rate / rate), self.sample_rate)[..., :length]
        return pad_ends(shifted, 0, length - shifted.shape[-1], BorderType.CONSTANT).astype(values.dtype)
