"""Features of sound: mel and linear spectra, cepstral coefficients, and operations on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.engines.routines import are_on
from mycel._src.foundation import arguments
from mycel.dataset.audio import audio_kernels
from mycel.dataset.audio.base import (
    AudioTransform,
    check_bool,
    check_choice,
    check_float,
    check_int,
    check_positive,
    float_type,
)
from mycel.dataset.audio.enums import BorderType, MelType, NormMode, NormType, WindowType
from mycel.dataset.audio.scales import check_band, cosines, decibels, linear_bank, mel_bank
from mycel.dataset.audio.single_thread_products import Filters, filtered
from mycel.dataset.audio.spectra import Spectrogram
from mycel.dataset.audio.stft import pad_ends
from mycel.dataset.random_numbers.random_streams import current_stream
from mycel.dataset.rows.column_blocks import Array


class MelScale(AudioTransform):
    """The mel spectrogram [..., n_mels, time] of a spectrogram [..., n_stft, time].

    It is the product with `melscale_fbanks`.

    Args:
        n_mels (int): The number of mel filters. Default: 128.
        sample_rate (int): The sampling rate in Hz. Default: 16000.
        f_min (float): The lower end of the band, in Hz. Default: 0.0.
        f_max (float | None): The upper end of the band, in Hz; None for half of the sampling rate.
            Default: None.
        n_stft (int): The number of frequencies of the spectrogram. Default: 201.
        norm (NormType): The normalisation of filters: with `NormType.SLANEY` each is divided by
            half of its width.
        mel_type (MelType): The mel scale.

    Raises:
        RuntimeError: If the input does not have `n_stft` frequencies.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import audio
        >>> audio.MelScale(4, 8000, n_stft=9)(np.ones((2, 9, 3), np.float32)).shape
        (2, 4, 3)
    """

    axes = 2
    form = "<..., freq, time>"

    def __init__(
        self,
        n_mels: int = 128,
        sample_rate: int = 16000,
        f_min: float = 0.0,
        f_max: float | None = None,
        n_stft: int = 201,
        norm: NormType = NormType.NONE,
        mel_type: MelType = MelType.HTK,
    ) -> None:
        operation = "MelScale"
        self.n_mels = check_int(operation, "n_mels", n_mels, 1)
        self.sample_rate = check_int(operation, "sample_rate", sample_rate, 1)
        self.f_min = check_float(operation, "f_min", f_min)
        self.f_max = check_band(
            operation, self.f_min, check_positive(operation, "f_max", f_max, none=True), self.sample_rate
        )
        self.n_stft = check_int(operation, "n_stft", n_stft, 1)
        self.norm = check_choice(operation, "norm", norm, NormType)
        self.mel_type = check_choice(operation, "mel_type", mel_type, MelType)
        bank = mel_bank(self.n_stft, self.f_min, self.f_max, self.n_mels, self.sample_rate, self.norm, self.mel_type)
        self._filters = Filters(bank.T)

    def compute(self, array: Array, lead: int) -> Array:
        values = self.floats(array, lead)
        if values.shape[-2] != self.n_stft:
            raise RuntimeError(f"MelScale: n_stft is {self.n_stft}, but the input has shape {values.shape[lead:]}")
        return self._filters.of(values)


class InverseMelScale(AudioTransform):
    """A non-negative spectrogram [..., n_stft, time] with a given mel spectrogram.

    Its own mel spectrogram is close to the given one, [..., n_mels, time]. The squared error,
    summed over filters and averaged over time, is minimised by gradient descent with momentum from
    a random start. Negative values become 0 after each step. A spectrogram without axes before
    [n_mels, time] gives [1, n_stft, time], as in MindSpore.

    Args:
        n_stft (int): The number of frequencies.
        n_mels (int): The number of mel filters. Default: 128.
        sample_rate (int): The sampling rate in Hz. Default: 16000.
        f_min (float): The lower end of the band, in Hz. Default: 0.0.
        f_max (float | None): The upper end of the band, in Hz; None for half of the sampling rate.
            Default: None.
        max_iter (int): The largest number of steps. Default: 100000.
        tolerance_loss (float): The error below which the descent stops. Default: 1e-05.
        tolerance_change (float): The change of the error below which the descent stops. Default:
            1e-08.
        sgdargs (dict[str, float] | None): A dictionary that may hold sgd_lr (default 0.1) and
            sgd_momentum (default 0.9). Default: None.
        norm (NormType): The normalisation of filters: with `NormType.SLANEY` each is divided by
            half of its width.
        mel_type (MelType): The mel scale.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import audio
        >>> audio.InverseMelScale(9, 4, 8000, max_iter=10)(np.ones((2, 4, 3), np.float32)).shape
        (2, 9, 3)
    """

    random = True
    vectorised = False
    axes = 2
    form = "<..., freq, time>"

    def __init__(
        self,
        n_stft: int,
        n_mels: int = 128,
        sample_rate: int = 16000,
        f_min: float = 0.0,
        f_max: float | None = None,
        max_iter: int = 100000,
        tolerance_loss: float = 1e-5,
        tolerance_change: float = 1e-8,
        sgdargs: dict[str, float] | None = None,
        norm: NormType = NormType.NONE,
        mel_type: MelType = MelType.HTK,
    ) -> None:
        operation = "InverseMelScale"
        self.n_stft = check_int(operation, "n_stft", n_stft, 1)
        self.n_mels = check_int(operation, "n_mels", n_mels, 1)
        self.sample_rate = check_int(operation, "sample_rate", sample_rate, 1)
        self.f_min = check_float(operation, "f_min", f_min)
        self.f_max = check_band(
            operation, self.f_min, check_positive(operation, "f_max", f_max, none=True), self.sample_rate
        )
        self.max_iter = check_int(operation, "max_iter", max_iter, 1)
        self.tolerance_loss = check_positive(operation, "tolerance_loss", tolerance_loss)
        self.tolerance_change = check_positive(operation, "tolerance_change", tolerance_change)
        steps = _check_options(operation, "sgdargs", sgdargs, ("sgd_lr", "sgd_momentum"))
        self.sgd_lr = check_float(operation, "sgd_lr", steps.get("sgd_lr", 0.1), 0)
        self.sgd_momentum = check_float(operation, "sgd_momentum", steps.get("sgd_momentum", 0.9), 0)
        self.norm = check_choice(operation, "norm", norm, NormType)
        self.mel_type = check_choice(operation, "mel_type", mel_type, MelType)
        bank = mel_bank(self.n_stft, self.f_min, self.f_max, self.n_mels, self.sample_rate, self.norm, self.mel_type)
        self._filters, self._back = Filters(bank.T), Filters(bank)

    def compute(self, array: Array, lead: int) -> Array:
        values = self.floats(array, lead)
        if values.shape[-2] != self.n_mels:
            raise RuntimeError(
                f"InverseMelScale: n_mels is {self.n_mels}, but the input has shape {values.shape[lead:]}"
            )
        # One spectrum alone comes back as a batch of one, as MindSpore's does.
        lead_shape: tuple[int, ...] = values.shape[:-2] or (1,)
        if not values.size:
            return np.zeros((*lead_shape, self.n_stft, values.shape[-1]), values.dtype)
        wanted = values.reshape(-1, *values.shape[-2:]).astype(np.float64)
        rows, frames = len(wanted), wanted.shape[-1]
        generator = np.random.Generator(np.random.PCG64(current_stream().bits()))
        found = generator.random((rows, self.n_stft, frames))
        if are_on():
            self._descend(np.ascontiguousarray(wanted), found)
        else:
            found = self._descended(wanted, found)
        return found.reshape(*lead_shape, self.n_stft, frames).astype(values.dtype)

    def _descend(self, wanted: Array, found: Array) -> None:
        """Descend by a routine, from the spectra `found`, which become the result."""
        rows, mels, frames = wanted.shape
        columns, places, weights = self._filters.rows()
        speed, error, state = np.zeros_like(found), np.empty_like(wanted), np.array([np.inf, 0.0])
        # Few enough at once for an interrupt to come through soon.
        some = max(1, _WORK // (found.size + wanted.size + rows * frames * len(weights)))
        for first in range(0, self.max_iter, some):
            audio_kernels.descend(
                wanted,
                rows,
                mels,
                self.n_stft,
                frames,
                places,
                columns,
                weights,
                self.sgd_lr,
                self.sgd_momentum,
                min(some, self.max_iter - first),
                self.tolerance_loss,
                self.tolerance_change,
                found,
                speed,
                error,
                state,
            )
            if state[1]:
                break

    def _descended(self, wanted: Array, found: Array) -> Array:
        """Return what the descent makes of the spectra `found`, by operations of NumPy."""
        rows, frames = len(wanted), wanted.shape[-1]
        speed = np.zeros_like(found)
        loss = np.inf
        for _ in range(self.max_iter):
            error = wanted - self._filters.of(found)
            before, loss = loss, float((error**2).sum(axis=-2).mean())
            if loss < self.tolerance_loss or abs(before - loss) < self.tolerance_change:
                break
            gradient = self._back.of(error) * (-2.0 / (rows * frames))
            speed = speed * self.sgd_momentum + gradient
            found = np.maximum(found - self.sgd_lr * speed, 0.0)
        return found


# Multiplications of steps that are taken at once.
_WORK = 1 << 24


def _check_options(operation: str, name: str, given: Any, known: tuple[str, ...]) -> dict[str, Any]:
    """Return a dictionary that has only known options; None stands for an empty one."""
    if given is None:
        return {}
    found: dict[str, Any] = arguments.instance(operation, name, given, dict)
    unknown = [key for key in found if key not in known]
    if unknown:
        raise ValueError(f"{operation}: the keys of {name} must be among {', '.join(known)}, not {unknown}")
    return found


class MelSpectrogram(AudioTransform):
    """The mel spectrogram [..., n_mels, frame] of a waveform [..., time].

    `Spectrogram` comes first, then the filters of `melscale_fbanks`.

    Args:
        sample_rate (int): The sampling rate in Hz. Default: 16000.
        n_fft (int): The length of a frame. Default: 400.
        win_length (int | None): The length of the window; None for `n_fft`. Default: None.
        hop_length (int | None): The distance between frames; None for half of the window. Default:
            None.
        f_min (float): The lower end of the band, in Hz. Default: 0.0.
        f_max (float | None): The upper end of the band, in Hz; None for half of the sampling rate.
            Default: None.
        pad (int): The number of zeros added at both ends first. Default: 0.
        n_mels (int): The number of mel filters. Default: 128.
        window (WindowType): The window.
        power (float): The power of magnitudes: 1 or 2. Default: 2.0.
        normalized (bool): Whether the spectrum is divided by the norm of the window. Default:
            False.
        center (bool): Whether frames are centred, with the ends padded. Default: True.
        pad_mode (BorderType): How ends are padded.
        onesided (bool): Whether frequencies above the half are left out. Default: True.
        norm (NormType): The normalisation of filters: with `NormType.SLANEY` each is divided by
            half of its width.
        mel_scale (MelType): The mel scale.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import audio
        >>> audio.MelSpectrogram(8000, 16, n_mels=4)(np.ones((2, 32), np.float32)).shape
        (2, 4, 5)
    """

    def __init__(
        self,
        sample_rate: int = 16000,
        n_fft: int = 400,
        win_length: int | None = None,
        hop_length: int | None = None,
        f_min: float = 0.0,
        f_max: float | None = None,
        pad: int = 0,
        n_mels: int = 128,
        window: WindowType = WindowType.HANN,
        power: float = 2.0,
        normalized: bool = False,
        center: bool = True,
        pad_mode: BorderType = BorderType.REFLECT,
        onesided: bool = True,
        norm: NormType = NormType.NONE,
        mel_scale: MelType = MelType.HTK,
    ) -> None:
        operation = "MelSpectrogram"
        self.sample_rate = check_int(operation, "sample_rate", sample_rate, 0)
        arguments.instance("MelSpectrogram", "f_min", f_min, float)
        self.f_min = check_float(operation, "f_min", f_min)
        top = check_float(operation, "f_max", f_max, 0, none=True)
        if top is None or top == 0:
            top = check_band(operation, self.f_min, None, self.sample_rate)
        self.f_max = check_band(operation, self.f_min, top, self.sample_rate, equal=True)
        self.n_mels = check_int(operation, "n_mels", n_mels, 0)
        check_positive(operation, "power", power)
        self.norm = check_choice(operation, "norm", norm, NormType)
        self.mel_scale = check_choice(operation, "mel_scale", mel_scale, MelType)
        self.spectrogram = Spectrogram(
            n_fft, win_length, hop_length, pad, window, power, normalized, center, pad_mode, onesided
        )
        bins = n_fft // 2 + 1 if onesided else n_fft
        bank = mel_bank(bins, self.f_min, self.f_max, self.n_mels, self.sample_rate, self.norm, self.mel_scale)
        self._filters = Filters(bank.T)

    def compute(self, array: Array, lead: int) -> Array:
        self.check(array, lead)
        return self._filters.of(self.spectrogram.compute(array, lead))


_SPECTRUM_OPTIONS = (
    "n_fft",
    "win_length",
    "hop_length",
    "pad",
    "window",
    "power",
    "normalized",
    "center",
    "pad_mode",
    "onesided",
)


def _check_dct(operation: str, dct_type: Any) -> int:
    if isinstance(dct_type, bool) or dct_type != 2:
        raise ValueError(f"{operation}: dct_type must be 2, not {dct_type!r}")
    return 2


def _cepstrum(bands: Array, matrix: Array, log: bool) -> Array:
    """Compute [..., coefficient, frame] from powers [..., band, frame]."""
    levels = np.log(bands + bands.dtype.type(1e-6)) if log else decibels(bands, 10.0, 1.0, 1e-10, 80.0)
    return filtered(matrix.T, levels)


class MFCC(AudioTransform):
    """Mel-frequency cepstral coefficients of a waveform [..., time] (Davis and Mermelstein, 1980).

    The mel spectrogram in decibels (at most 80 apart) is multiplied by `create_dct`. The result is
    [..., n_mfcc, frame].

    Args:
        sample_rate (int): The sampling rate in Hz. Default: 16000.
        n_mfcc (int): The number of coefficients. Default: 40.
        dct_type (int): The type of the discrete cosine transform; only 2 is supported. Default: 2.
        norm (NormMode): The normalization of the transform.
        log_mels (bool): Whether to use log(x + 1e-6) instead of decibels. Default: False.
        melkwargs (dict[str, Any] | None): A dictionary of arguments of `MelSpectrogram`; others
            have their defaults there. Default: None.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import audio
        >>> transform = audio.MFCC(8000, 3, melkwargs={"n_fft": 16, "n_mels": 4})
        >>> transform(np.ones((2, 32), np.float32)).shape
        (2, 3, 5)
    """

    vectorised = False

    def __init__(
        self,
        sample_rate: int = 16000,
        n_mfcc: int = 40,
        dct_type: int = 2,
        norm: NormMode = NormMode.ORTHO,
        log_mels: bool = False,
        melkwargs: dict[str, Any] | None = None,
    ) -> None:
        operation = "MFCC"
        self.sample_rate = check_int(operation, "sample_rate", sample_rate, 0)
        self.n_mfcc = check_int(operation, "n_mfcc", n_mfcc, 0)
        self.dct_type = _check_dct(operation, dct_type)
        self.norm = check_choice(operation, "norm", norm, NormMode)
        self.log_mels = check_bool(operation, "log_mels", log_mels)
        known = (*_SPECTRUM_OPTIONS, "f_min", "f_max", "n_mels", "norm", "mel_scale")
        options = _check_options(operation, "melkwargs", melkwargs, known)
        if self.n_mfcc > options.get("n_mels", 128):
            raise ValueError(f"MFCC: n_mfcc, {n_mfcc}, must not exceed n_mels, {options.get('n_mels', 128)}")
        self._bands = MelSpectrogram(self.sample_rate, **options)

    def compute(self, array: Array, lead: int) -> Array:
        self.check(array, lead)
        bands = self._bands.compute(array, lead)
        return _cepstrum(bands, cosines(self.n_mfcc, self._bands.n_mels, self.norm), self.log_mels)


class LFCC(AudioTransform):
    """Linear-frequency cepstral coefficients [..., n_lfcc, frame] of a waveform [..., time].

    Args:
        sample_rate (int): The sampling rate in Hz. Default: 16000.
        n_filter (int): The number of filters. Default: 128.
        n_lfcc (int): The number of coefficients. Default: 40.
        f_min (float): The lower end of the band, in Hz. Default: 0.0.
        f_max (float | None): The upper end of the band, in Hz; None for half of the sampling rate.
            Default: None.
        dct_type (int): The type of the discrete cosine transform; only 2 is supported. Default: 2.
        norm (NormMode): The normalization of the transform.
        log_lf (bool): Whether to use log(x + 1e-6) instead of decibels. Default: False.
        speckwargs (dict[str, Any] | None): A dictionary of arguments of `Spectrogram`. Default:
            None.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import audio
        >>> audio.LFCC(8000, 4, 3, speckwargs={"n_fft": 16})(np.ones((2, 32), np.float32)).shape
        (2, 3, 5)
    """

    vectorised = False

    def __init__(
        self,
        sample_rate: int = 16000,
        n_filter: int = 128,
        n_lfcc: int = 40,
        f_min: float = 0.0,
        f_max: float | None = None,
        dct_type: int = 2,
        norm: NormMode = NormMode.ORTHO,
        log_lf: bool = False,
        speckwargs: dict[str, Any] | None = None,
    ) -> None:
        operation = "LFCC"
        self.sample_rate = check_int(operation, "sample_rate", sample_rate, 1)
        self.n_filter = check_int(operation, "n_filter", n_filter, 1)
        self.n_lfcc = check_int(operation, "n_lfcc", n_lfcc, 1)
        self.f_min = check_float(operation, "f_min", f_min, 0)
        top = check_float(operation, "f_max", f_max, 0, none=True)
        self.f_max = check_band(operation, self.f_min, top or None, self.sample_rate, equal=bool(top))
        self.dct_type = _check_dct(operation, dct_type)
        self.norm = check_choice(operation, "norm", norm, NormMode)
        self.log_lf = check_bool(operation, "log_lf", log_lf)
        options = _check_options(operation, "speckwargs", speckwargs, _SPECTRUM_OPTIONS)
        self._spectrogram = Spectrogram(**options)
        bins = self._spectrogram.n_fft // 2 + 1 if self._spectrogram.onesided else self._spectrogram.n_fft
        self._filters = Filters(linear_bank(bins, self.f_min, self.f_max, self.n_filter, self.sample_rate).T)
        self._matrix = cosines(self.n_lfcc, self.n_filter, self.norm)

    def compute(self, array: Array, lead: int) -> Array:
        self.check(array, lead)
        bands = self._filters.of(self._spectrogram.compute(array, lead))
        return _cepstrum(bands, self._matrix, self.log_lf)


class SpectralCentroid(AudioTransform):
    """The mean frequency [..., 1, frame] of each frame of a waveform, weighted by magnitudes.

    Args:
        sample_rate (int): The sampling rate in Hz.
        n_fft (int): The length of a frame. Default: 400.
        win_length (int | None): The length of the window; None for `n_fft`. Default: None.
        hop_length (int | None): The distance between frames; None for half of the window. Default:
            None.
        pad (int): The number of zeros added at both ends first. Default: 0.
        window (WindowType): The window.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import audio
        >>> audio.SpectralCentroid(8000, 16)(np.ones((2, 32), np.float32)).shape
        (2, 1, 5)
    """

    def __init__(
        self,
        sample_rate: int,
        n_fft: int = 400,
        win_length: int | None = None,
        hop_length: int | None = None,
        pad: int = 0,
        window: WindowType = WindowType.HANN,
    ) -> None:
        self.sample_rate = check_int("SpectralCentroid", "sample_rate", sample_rate, 0)
        self.spectrogram = Spectrogram(n_fft, win_length, hop_length, pad, window, 1.0)

    def compute(self, array: Array, lead: int) -> Array:
        self.check(array, lead)
        size = self.spectrogram.compute(array, lead)
        frequencies = np.linspace(0, self.sample_rate // 2, size.shape[-2]).astype(size.dtype)
        total = size.sum(axis=-2, keepdims=True)
        weighted = (size * frequencies[:, None]).sum(axis=-2, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            result: Array = weighted / total
        return result


class ComputeDeltas(AudioTransform):
    """The slopes over time of a spectrogram [..., freq, time], fitted over `win_length` frames.

    With n = (win_length - 1) // 2, at least 1: sum(k x[t + k], k = -n .. n) / sum(k^2, k = -n ..
    n). `pad_mode` gives the values beyond the ends.

    >>> import numpy as np
    >>> from mycel.dataset import audio
    >>> audio.ComputeDeltas()(np.arange(6.0)[None]).round(3).tolist()
    [[0.5, 0.8, 1.0, 1.0, 0.8, 0.5]]
    """

    axes = 2
    form = "<..., freq, time>"

    def __init__(self, win_length: int = 5, pad_mode: BorderType = BorderType.EDGE) -> None:
        self.win_length = check_int("ComputeDeltas", "win_length", win_length, 3)
        self.pad_mode = check_choice("ComputeDeltas", "pad_mode", pad_mode, BorderType)

    def compute(self, array: Array, lead: int) -> Array:
        values = self.floats(array, lead)
        if not values.size:
            return values
        reach = (self.win_length - 1) // 2
        weights = np.arange(-reach, reach + 1)
        weights = (weights / (weights**2).sum()).astype(values.dtype)
        padded = pad_ends(values, reach, reach, self.pad_mode)
        if are_on():
            found = np.empty_like(values, order="C")
            length = values.shape[-1]
            audio_kernels.slopes(
                np.ascontiguousarray(padded), values.size // length, length, len(weights), weights, found
            )
            return found
        frames = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1, axis=-1)
        result: Array = np.einsum("...k,k->...", frames, weights)
        return result


class SlidingWindowCmn(AudioTransform):
    """Features [..., time, freq] minus their mean over a sliding window (Kaldi's sliding CMN).

    Args:
        cmn_window (int): The number of frames in the window. Default: 600.
        min_cmn_window (int): The least number, if there are so many frames, where the window ends
            at the frame. Default: 100.
        center (bool): Whether the window is around each frame instead of ending at it. Default:
            False.
        norm_vars (bool): Whether to divide by the standard deviation in the window as well. The
            result is 0 for a window of one frame or of equal ones. Default: False.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import audio
        >>> audio.SlidingWindowCmn(2, 2)(np.array([[1.0], [3.0], [5.0]])).tolist()
        [[-1.0], [1.0], [2.0]]
    """

    axes = 2
    form = "<..., time, freq>"

    def __init__(
        self, cmn_window: int = 600, min_cmn_window: int = 100, center: bool = False, norm_vars: bool = False
    ) -> None:
        self.cmn_window = check_int("SlidingWindowCmn", "cmn_window", cmn_window, 0)
        self.min_cmn_window = check_int("SlidingWindowCmn", "min_cmn_window", min_cmn_window, 0)
        self.center = check_bool("SlidingWindowCmn", "center", center)
        self.norm_vars = check_bool("SlidingWindowCmn", "norm_vars", norm_vars)

    def compute(self, array: Array, lead: int) -> Array:
        values = self.floats(array, lead)
        if not values.size:
            return values
        count = values.shape[-2]
        frames = np.arange(count)
        start = frames - (self.cmn_window // 2 if self.center else self.cmn_window)
        end = start + self.cmn_window if self.center else frames + 1
        end = end - np.minimum(start, 0)
        start = np.maximum(start, 0)
        if not self.center:
            end = np.where(end > frames, np.maximum(frames + 1, self.min_cmn_window), end)
        start = np.maximum(start - np.maximum(end - count, 0), 0)
        end = np.minimum(end, count)
        if are_on():
            return self._centred(values, start, end)
        size = (end - start)[:, None]

        def window_sum(terms: Array) -> Array:
            totals = np.concatenate([np.zeros_like(terms[..., :1, :]), np.cumsum(terms, axis=-2)], axis=-2)
            result: Array = totals[..., end, :] - totals[..., start, :]
            return result

        exact = values.astype(np.float64)
        mean = window_sum(exact) / size
        centred = exact - mean
        if self.norm_vars:
            variance = np.maximum(window_sum(exact**2) / size - mean**2, 1e-20)
            centred = np.where(size == 1, 0.0, centred / np.sqrt(variance))
        return np.asarray(centred, float_type(array))

    def _centred(self, values: Array, start: Array, end: Array) -> Array:
        """Return the same by a routine; windows begin at `start` and end before `end`."""
        count, bins = values.shape[-2:]
        result = np.empty_like(values, order="C")
        audio_kernels.centre(
            np.ascontiguousarray(values),
            values.size // (count * bins),
            count,
            bins,
            np.ascontiguousarray(start, np.int64),
            np.ascontiguousarray(end, np.int64),
            self.norm_vars,
            values.dtype == np.float64,
            np.empty((count + 1, bins)),
            np.empty((count + 1, bins) if self.norm_vars else 0),
            result,
        )
        return result
