"""Scales of values (decibels, complex numbers) and of frequencies (filter banks, cosines)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation.bounded_caches import Remembered
from mycel.dataset.audio.base import (
    AudioTransform,
    check_choice,
    check_float,
    check_int,
    check_positive,
)
from mycel.dataset.audio.enums import MelType, NormMode, NormType, ScaleType
from mycel.dataset.rows.column_blocks import Array


class AmplitudeToDB(AudioTransform):
    """The decibels of a spectrogram [..., freq, time].

    A value is k log10(max(x, amin) / max(ref_value, amin)), with k = 10 or 20.

    Args:
        stype (ScaleType): Whether the values are powers (POWER, k = 10) or magnitudes (MAGNITUDE, k
            = 20).
        ref_value (float): The value of 0 dB. Default: 1.0.
        amin (float): The least value; smaller ones count as this. Default: 1e-10.
        top_db (float): The greatest distance from the loudest value of each [channel, freq, time];
            quieter values are raised to it. Default: 80.0.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import audio
        >>> audio.AmplitudeToDB()(np.array([[1.0, 100.0]])).round(3).tolist()
        [[0.0, 20.0]]
    """

    axes = 2
    form = "<..., freq, time>"
    vectorised = False

    def __init__(
        self, stype: ScaleType = ScaleType.POWER, ref_value: float = 1.0, amin: float = 1e-10, top_db: float = 80.0
    ) -> None:
        self.stype = check_choice("AmplitudeToDB", "stype", stype, ScaleType)
        self.ref_value = check_positive("AmplitudeToDB", "ref_value", ref_value)
        self.amin = check_positive("AmplitudeToDB", "amin", amin)
        self.top_db = check_positive("AmplitudeToDB", "top_db", top_db)

    def compute(self, array: Array, lead: int) -> Array:
        values = self.floats(array, lead)
        return decibels(values, 10.0 if self.stype is ScaleType.POWER else 20.0, self.ref_value, self.amin, self.top_db)


def decibels(values: Array, factor: float, reference: float, amin: float, top: float) -> Array:
    """Return the decibels of [..., channel, freq, time].

    * `values`, `factor`, `reference`, `amin`: as in `AmplitudeToDB`, where the factor is k.
    * `top`: the greatest distance from the loudest value of each [channel, freq, time].
    """
    number = values.dtype.type
    found = number(factor) * np.log10(np.maximum(values, number(amin)))
    found = found - number(factor * math.log10(max(reference, amin)))
    if not found.size:
        return np.asarray(found)
    axes = tuple(range(-min(found.ndim, 3), 0))
    result: Array = np.maximum(found, found.max(axis=axes, keepdims=True) - number(top))
    return result


class DBToAmplitude(AudioTransform):
    """The powers (`power` 1) or amplitudes (1/2) of decibels: ref * (10^(x / 10))^power.

    >>> import numpy as np
    >>> from mycel.dataset import audio
    >>> audio.DBToAmplitude(2.0, 1.0)(np.array([0.0, 10.0], np.float32)).tolist()
    [2.0, 20.0]
    """

    def __init__(self, ref: float, power: float) -> None:
        self.ref = check_float("DBToAmplitude", "ref", ref)
        self.power = check_float("DBToAmplitude", "power", power)

    def compute(self, array: Array, lead: int) -> Array:
        values = self.floats(array, lead)
        number = values.dtype.type
        result: Array = number(self.ref) * np.power(number(10), values * number(0.1 * self.power))
        return result


class _ComplexTransform(AudioTransform):
    form = "<..., complex=2>"


class Angle(_ComplexTransform):
    """The angles [...] of complex numbers [..., 2].

    >>> import numpy as np
    >>> from mycel.dataset import audio
    >>> audio.Angle()(np.array([[1.0, 0.0], [-2.0, 0.0]])).round(3).tolist()
    [0.0, 3.142]
    """

    def compute(self, array: Array, lead: int) -> Array:
        values = self.floats(array, lead)
        result: Array = np.arctan2(values[..., 1], values[..., 0])
        return result


def _norms(values: Array, power: float) -> Array:
    result: Array = (values[..., 0] ** 2 + values[..., 1] ** 2) ** values.dtype.type(power / 2)
    return result


class ComplexNorm(_ComplexTransform):
    """The magnitudes [...] of complex numbers [..., 2], raised to a non-negative power.

    >>> import numpy as np
    >>> from mycel.dataset import audio
    >>> audio.ComplexNorm(2.0)(np.array([[3.0, 4.0]])).tolist()
    [25.0]
    """

    def __init__(self, power: float = 1.0) -> None:
        self.power = check_float("ComplexNorm", "power", power, 0)

    def compute(self, array: Array, lead: int) -> Array:
        return _norms(self.floats(array, lead), self.power)


class Magphase(_ComplexTransform):
    """The magnitudes to a power and the angles, both [...], of complex numbers [..., 2].

    >>> import numpy as np
    >>> from mycel.dataset import audio
    >>> size, angle = audio.Magphase()(np.array([[3.0, 4.0]]))
    >>> size.tolist(), angle.round(3).tolist()
    ([5.0], [0.927])
    """

    vectorised = False

    def __init__(self, power: float = 1.0) -> None:
        self.power = check_float("Magphase", "power", power, 0)

    def compute(self, array: Array, lead: int) -> Any:
        values = self.floats(array, lead)
        return np.asarray(_norms(values, self.power)), np.asarray(np.arctan2(values[..., 1], values[..., 0]))


def _to_mel(frequency: float, kind: MelType) -> float:
    if kind is MelType.HTK:
        return 2595.0 * math.log10(1.0 + frequency / 700.0)
    if frequency < 1000:
        return frequency * 3 / 200
    return 15 + math.log(frequency / 1000) / (math.log(6.4) / 27)


def _from_mel(mels: Array, kind: MelType) -> Array:
    if kind is MelType.HTK:
        return np.asarray(700.0 * (10.0 ** (mels / 2595.0) - 1.0))
    return np.where(mels < 15, mels * 200 / 3, 1000 * np.exp((mels - 15) * (math.log(6.4) / 27)))


def _triangles(frequencies: Array, corners: Array) -> Array:
    """Return triangles [freq, filter]: filter k rises from corner k to k + 1 and falls to k + 2."""
    widths = np.diff(corners)
    distances = corners - frequencies[:, None]
    down = -distances[:, :-2] / widths[:-1]
    up = distances[:, 2:] / widths[1:]
    result: Array = np.maximum(0.0, np.minimum(down, up)) + 0.0
    return result


def mel_bank(
    n_freqs: int, f_min: float, f_max: float, n_mels: int, sample_rate: int, norm: NormType, mel_type: MelType
) -> Array:
    """Return the mel filters [n_freqs, n_mels], float64.

    `f_min`, `f_max`, `sample_rate`, `norm` and `mel_type` are those of `melscale_fbanks`.
    """
    low, high = _to_mel(f_min, mel_type), _to_mel(f_max, mel_type)
    corners = _from_mel(np.linspace(low, high, n_mels + 2), mel_type)
    bank = _triangles(np.linspace(0, sample_rate // 2, n_freqs), corners)
    if norm is NormType.SLANEY:
        bank = bank * (2.0 / (corners[2:] - corners[:-2]))
    return bank


def check_band(operation: str, f_min: float, f_max: float | None, sample_rate: int, equal: bool = False) -> float:
    """Return the upper end of a band of frequencies from `f_min` on: `f_max`, or by default half of
    `sample_rate`.

    `operation` is named in messages. Raises ValueError where the band is empty; `equal` allows both
    ends to be equal.
    """
    top = float(sample_rate // 2) if f_max is None else f_max
    if f_min > top or (f_min == top and not equal):
        raise ValueError(
            f"{operation}: f_min must be {'at most' if equal else 'below'} f_max, not {f_min:g} and {top:g}"
        )
    return top


def melscale_fbanks(
    n_freqs: int,
    f_min: float,
    f_max: float,
    n_mels: int,
    sample_rate: int,
    norm: NormType = NormType.NONE,
    mel_type: MelType = MelType.HTK,
) -> Array:
    """Return triangular filters that are evenly spaced on the mel scale.

    Args:
        n_freqs (int): The number of frequencies of a spectrum, from 0 to sample_rate / 2.
        f_min (float): The lower end of the band that the filters cover, in Hz.
        f_max (float): The upper end of that band, in Hz.
        n_mels (int): The number of filters.
        sample_rate (int): The sampling rate in Hz.
        norm (NormType): With `NormType.SLANEY`, each filter is divided by half of its width.
        mel_type (MelType): The mel scale.

    Returns:
        numpy.ndarray[Any, numpy.dtype[Any]]: The filters, float32 [n_freqs, n_mels].

    Raises:
        TypeError, ValueError: For wrong arguments.

    Examples:
        >>> from mycel.dataset import audio
        >>> audio.melscale_fbanks(9, 0.0, 4000.0, 3, 8000).shape
        (9, 3)
    """
    operation = "melscale_fbanks"
    check_int(operation, "n_freqs", n_freqs, 0)
    check_float(operation, "f_min", f_min, 0)
    check_positive(operation, "f_max", f_max)
    check_int(operation, "n_mels", n_mels, 1)
    check_int(operation, "sample_rate", sample_rate, 1)
    check_band(operation, f_min, f_max, sample_rate, equal=True)
    check_choice(operation, "norm", norm, NormType)
    check_choice(operation, "mel_type", mel_type, MelType)
    return mel_bank(n_freqs, f_min, f_max, n_mels, sample_rate, norm, mel_type).astype(np.float32)


def linear_fbanks(n_freqs: int, f_min: float, f_max: float, n_filter: int, sample_rate: int) -> Array:
    """Return triangular filters that are evenly spaced.

    Args:
        n_freqs (int): The number of frequencies of a spectrum, from 0 to sample_rate / 2.
        f_min (float): The lower end of the band that the filters cover, in Hz.
        f_max (float): The upper end of that band, in Hz.
        n_filter (int): The number of filters.
        sample_rate (int): The sampling rate in Hz.

    Returns:
        numpy.ndarray[Any, numpy.dtype[Any]]: The filters, float32 [n_freqs, n_filter].

    Examples:
        >>> from mycel.dataset import audio
        >>> audio.linear_fbanks(5, 0.0, 4000.0, 3, 8000)[:, 1].tolist()
        [0.0, 0.0, 1.0, 0.0, 0.0]
    """
    operation = "linear_fbanks"
    check_int(operation, "n_freqs", n_freqs, 0)
    check_float(operation, "f_min", f_min, 0)
    check_positive(operation, "f_max", f_max)
    check_int(operation, "n_filter", n_filter, 1)
    check_int(operation, "sample_rate", sample_rate, 1)
    check_band(operation, f_min, f_max, sample_rate, equal=True)
    return linear_bank(n_freqs, f_min, f_max, n_filter, sample_rate).astype(np.float32)


def linear_bank(n_freqs: int, f_min: float, f_max: float, n_filter: int, sample_rate: int) -> Array:
    """Return the linear filters [n_freqs, n_filter], float64.

    `f_min`, `f_max` and `sample_rate` are those of `linear_fbanks`.
    """
    return _triangles(np.linspace(0, sample_rate // 2, n_freqs), np.linspace(f_min, f_max, n_filter + 2))


def create_dct(n_mfcc: int, n_mels: int, norm: NormMode = NormMode.NONE) -> Array:
    """Return the discrete cosine transform (DCT-II) as float32 [n_mels, n_mfcc].

    It multiplies rows of `n_mels` values from the right. Column k is 2 cos(pi / n_mels (n + 1/2)
    k); with `NormMode.ORTHO` it is divided by sqrt(2 n_mels), and once more by sqrt(2) for k = 0.

    >>> from mycel.dataset import audio
    >>> audio.create_dct(2, 2, audio.NormMode.ORTHO).round(3).tolist()
    [[0.7070000171661377, 0.7070000171661377], [0.7070000171661377, -0.7070000171661377]]
    """
    for name, value in (("n_mfcc", n_mfcc), ("n_mels", n_mels)):
        arguments.integer("create_dct", name, value, flags=True, numpy=False)
        if value > 2**31 - 1:
            raise TypeError(f"create_dct: {name} must fit into 32 bits, not {value}")
        if value <= 0:
            raise ValueError(f"create_dct: {name} must be positive, not {value}")
    check_choice("create_dct", "norm", norm, NormMode)
    return cosines(n_mfcc, n_mels, norm).astype(np.float32)


def cosines(n_mfcc: int, n_mels: int, norm: NormMode) -> Array:
    """Return the DCT-II as float64 [n_mels, n_mfcc], which is not to be written to."""
    return _cosines.recall((n_mfcc, n_mels, norm), lambda: _made_cosines(n_mfcc, n_mels, norm))


_cosines = Remembered[tuple[int, int, NormMode], Array]("cosine transforms", 16)


def _made_cosines(n_mfcc: int, n_mels: int, norm: NormMode) -> Array:
    angles = math.pi / n_mels * (np.arange(n_mels)[:, None] + 0.5) * np.arange(n_mfcc)
    matrix: Array = 2.0 * np.cos(angles)
    if norm is NormMode.ORTHO:
        matrix = matrix / math.sqrt(2.0 * n_mels)
        matrix[:, :1] /= math.sqrt(2.0)
    return matrix
