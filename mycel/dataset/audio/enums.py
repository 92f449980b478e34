"""The choices that audio transforms offer."""

from __future__ import annotations

from enum import Enum


class BorderType(str, Enum):
    """The values beyond the ends of a signal: zeros, its last value, or its mirror image.

    The mirror image repeats the last value (SYMMETRIC) or does not (REFLECT).

    >>> from mycel.dataset.audio import BorderType
    >>> BorderType.REFLECT.value
    'reflect'
    """

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


class DensityFunction(str, Enum):
    """The noise of `Dither`: triangular, rectangular or nearly Gaussian."""

    TPDF = "TPDF"
    RPDF = "RPDF"
    GPDF = "GPDF"


class FadeShape(str, Enum):
    """The curve along which `Fade` goes from silence to full volume."""

    QUARTER_SINE = "quarter_sine"
    HALF_SINE = "half_sine"
    LINEAR = "linear"
    LOGARITHMIC = "logarithmic"
    EXPONENTIAL = "exponential"


class GainType(str, Enum):
    """The unit of the gain in `Vol`: a ratio of amplitudes, a ratio of powers, or decibels."""

    AMPLITUDE = "amplitude"
    POWER = "power"
    DB = "db"


class Interpolation(str, Enum):
    """The interpolation between two samples in `Flanger`."""

    LINEAR = "linear"
    QUADRATIC = "quadratic"


class MelType(str, Enum):
    """The mel scale: 2595 log10(1 + f / 700), or Slaney's.

    Slaney's is linear below 1 kHz and logarithmic above.
    """

    HTK = "htk"
    SLANEY = "slaney"


class Modulation(str, Enum):
    """The wave that modulates the delay of an effect."""

    SINUSOIDAL = "sinusoidal"
    TRIANGULAR = "triangular"


class NormMode(str, Enum):
    """The normalization of a discrete cosine transform: orthonormal or none."""

    ORTHO = "ortho"
    NONE = "none"


class NormType(str, Enum):
    """The normalization of mel filters: triangles of equal areas (SLANEY) or of equal heights."""

    SLANEY = "slaney"
    NONE = "none"


class ResampleMethod(str, Enum):
    """The window of the sinc filter of `Resample`: a squared cosine, or Kaiser's."""

    SINC_INTERPOLATION = "sinc_interpolation"
    KAISER_WINDOW = "kaiser_window"


class ScaleType(str, Enum):
    """The kind of values: powers or magnitudes."""

    POWER = "power"
    MAGNITUDE = "magnitude"


class WindowType(str, Enum):
    """The windows of short-time Fourier transforms, all periodic; Kaiser's has a beta of 12."""

    BARTLETT = "bartlett"
    BLACKMAN = "blackman"
    HAMMING = "hamming"
    HANN = "hann"
    KAISER = "kaiser"
