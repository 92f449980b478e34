"""Short-time Fourier transforms of waveforms [..., time] and their inverse.

Spectra are [..., freq, frame]. Frame m is the window times the samples around m * hop; windows
shorter than the transform are centred in it. The inverse adds up the windowed frames and divides by
the sum of the squared windows (Griffin and Lim, 1984). Everything is computed in the precision of
the waveform, the windows in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.engines.routines import are_on
from mycel.dataset.audio import audio_kernels
from mycel.dataset.audio.base import check_choice, check_int
from mycel.dataset.audio.enums import BorderType, WindowType
from mycel.dataset.rows.column_blocks import Array

_PAD_MODES: dict[BorderType, Any] = {
    BorderType.CONSTANT: "constant",
    BorderType.EDGE: "edge",
    BorderType.REFLECT: "reflect",
    BorderType.SYMMETRIC: "symmetric",
}


def window_values(kind: WindowType, length: int) -> Array:
    """Return a periodic window of this length, float64."""
    make: dict[WindowType, Any] = {
        WindowType.BARTLETT: np.bartlett,
        WindowType.BLACKMAN: np.blackman,
        WindowType.HAMMING: np.hamming,
        WindowType.HANN: np.hanning,
        WindowType.KAISER: lambda count: np.kaiser(count, 12.0),
    }
    if length == 1:
        return np.ones(1)
    result: Array = make[kind](length + 1)[:-1]
    return result


def centred(window: Array, n_fft: int) -> Array:
    """Return the window with zeros on both sides, `n_fft` long."""
    before = (n_fft - len(window)) // 2
    return np.pad(window, (before, n_fft - len(window) - before))


def pad_ends(array: Array, before: int, after: int, mode: BorderType) -> Array:
    """Return the array with more samples at both ends of its last axis.

    `before` and `after` are their numbers, and `mode` chooses their values.
    """
    length = array.shape[-1]
    if max(before, after) >= length and mode is not BorderType.CONSTANT:
        widths = [(0, 0)] * (array.ndim - 1) + [(before, after)]
        return np.pad(array, widths, mode=_PAD_MODES[mode])
    # The same as NumPy's, which takes longer than a transform does.
    result: Array = np.empty((*array.shape[:-1], before + length + after), array.dtype)
    result[..., before : before + length] = array
    end = before + length
    if mode is BorderType.CONSTANT:
        result[..., :before], result[..., end:] = 0, 0
    elif mode is BorderType.EDGE:
        result[..., :before], result[..., end:] = array[..., :1], array[..., -1:]
    elif mode is BorderType.SYMMETRIC:
        result[..., :before] = array[..., before - 1 :: -1] if before else array[..., :0]
        result[..., end:] = array[..., : -after - 1 : -1]
    else:
        result[..., :before] = array[..., before:0:-1]
        result[..., end:] = (
            array[..., length - 2 : length - 2 - after : -1] if after + 1 < length else (array[..., length - 2 :: -1])
        )
    return result


def stft(
    operation: str,
    waveform: Array,
    n_fft: int,
    hop: int,
    window: Array,
    center: bool = True,
    pad_mode: BorderType = BorderType.REFLECT,
    onesided: bool = True,
) -> Array:
    """Return the spectrum, complex [..., freq, frame].

    `n_fft`, `center`, `pad_mode` and `onesided` are those of `Spectrogram`; `hop` is the distance
    of frames in samples, and `window` holds the weights of samples. `operation` is named in
    messages. Raises RuntimeError where the waveform is shorter than one frame.
    """
    if hop < 1:
        raise RuntimeError(f"{operation}: hop_length must be positive, not {hop}; give one, as win_length is so short")
    if center and waveform.shape[-1]:
        waveform = pad_ends(waveform, n_fft // 2, n_fft // 2, pad_mode)
    if waveform.shape[-1] < n_fft:
        raise RuntimeError(f"{operation}: a waveform of {waveform.shape[-1]} samples is shorter than n_fft, {n_fft}")
    frames = np.lib.stride_tricks.sliding_window_view(waveform, n_fft, axis=-1)[..., ::hop, :]
    weights = centred(window, n_fft).astype(waveform.dtype)
    *lead, count, _ = frames.shape
    complex_type = np.complex128 if waveform.dtype == np.float64 else np.complex64
    result: Array = np.empty((*lead, count, n_fft // 2 + 1 if onesided else n_fft), complex_type)
    transform, most = np.fft.rfft if onesided else np.fft.fft, max(1, _AT_ONCE // n_fft)
    for place in np.ndindex(*lead):
        for start in range(0, count, most):
            weighted = frames[place][start : start + most] * weights
            result[place][start : start + most] = transform(weighted.astype(np.float64))
    return np.swapaxes(result, -1, -2)


# Values of frames whose spectra are computed at once: new memory for all of them, which the system
# would have to clear, takes more time than the transforms.
_AT_ONCE = 1 << 13


def istft(
    spectrum: Array,
    n_fft: int,
    hop: int,
    window: Array,
    center: bool = True,
    length: int | None = None,
    onesided: bool = True,
) -> Array:
    """Return the waveform [..., time] of a spectrum, in float64.

    `n_fft`, `hop`, `window`, `center` and `onesided` are those of `stft`; `length` is the length of
    the waveform, and zeros follow its end where that is more.
    """
    columns = np.swapaxes(spectrum, -1, -2)
    frames = np.fft.irfft(columns, n_fft) if onesided else np.fft.ifft(columns).real
    full = centred(window, n_fft)
    count = frames.shape[-2]
    total = n_fft + hop * (count - 1)
    summed = np.zeros((*frames.shape[:-2], total))
    weight = np.zeros(total)
    if are_on() and frames.size:
        rows = frames.size // (count * n_fft)
        audio_kernels.overlap(np.ascontiguousarray(frames), rows, count, n_fft, hop, full, total, summed)
        audio_kernels.overlap(np.broadcast_to(full, (count, n_fft)).copy(), 1, count, n_fft, hop, full, total, weight)
        count = 0
    for frame in range(count):
        place = slice(frame * hop, frame * hop + n_fft)
        summed[..., place] += frames[..., frame, :] * full
        weight[place] += full**2
    start = n_fft // 2 if center else 0
    end = total - start if length is None else min(start + length, total)
    summed, weight = summed[..., start:end], weight[start:end]
    result = np.divide(summed, weight, out=summed.copy(), where=weight > 1e-11)
    missing = 0 if length is None else length - result.shape[-1]
    return pad_ends(result, 0, missing, BorderType.CONSTANT) if missing > 0 else result


class Frames:
    """The checked lengths and window of a transform.

    `n_fft`, `win_length` and `hop_length` are the lengths, and `window` is the kind of window.
    `operation` and the `name` of the window's parameter are named in messages. `least` is the
    smallest allowed length; without `hop_length` it is `win_length` divided by `share`.
    """

    def __init__(
        self,
        operation: str,
        n_fft: Any,
        win_length: Any,
        hop_length: Any,
        window: Any,
        name: str = "window",
        least: int = 1,
        share: int = 2,
    ) -> None:
        self.n_fft: int = check_int(operation, "n_fft", n_fft, 1)
        given = check_int(operation, "win_length", win_length, least, none=True)
        self.win_length: int = given if given else self.n_fft
        hop = check_int(operation, "hop_length", hop_length, least, none=True)
        self.hop_length: int = hop if hop else self.win_length // share
        kind = check_choice(operation, name, window, WindowType)
        self.operation = operation
        self.kind: WindowType = kind

    def check(self, error: type[Exception] = ValueError) -> Array:
        """Return the values of the window; raise an error if it does not fit into the transform."""
        if self.win_length > self.n_fft:
            raise error(f"{self.operation}: win_length, {self.win_length}, must not exceed n_fft, {self.n_fft}")
        return window_values(self.kind, self.win_length)
