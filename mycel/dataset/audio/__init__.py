"""Transforms of sound: filters, effects, spectra and features of waveforms [..., time].

The names are MindSpore's.

>>> import numpy as np
>>> from mycel.dataset import audio
>>> wave = np.sin(np.arange(800, dtype=np.float32)).reshape(2, 400)
>>> audio.MelSpectrogram(8000, 64, n_mels=8)(audio.LowpassBiquad(8000, 2000.0)(wave)).shape
(2, 8, 13)
"""

from mycel._src.foundation.public_names import listing as _listing
from mycel.dataset.audio.effects import (
    Contrast,
    DCShift,
    Dither,
    Fade,
    Gain,
    MuLawDecoding,
    MuLawEncoding,
    Overdrive,
    Vol,
)
from mycel.dataset.audio.enums import (
    BorderType,
    DensityFunction,
    FadeShape,
    GainType,
    Interpolation,
    MelType,
    Modulation,
    NormMode,
    NormType,
    ResampleMethod,
    ScaleType,
    WindowType,
)
from mycel.dataset.audio.features import (
    LFCC,
    MFCC,
    ComputeDeltas,
    InverseMelScale,
    MelScale,
    MelSpectrogram,
    SlidingWindowCmn,
    SpectralCentroid,
)
from mycel.dataset.audio.filters import (
    AllpassBiquad,
    BandBiquad,
    BandpassBiquad,
    BandrejectBiquad,
    BassBiquad,
    Biquad,
    DeemphBiquad,
    EqualizerBiquad,
    Filtfilt,
    HighpassBiquad,
    LFilter,
    LowpassBiquad,
    RiaaBiquad,
    TrebleBiquad,
)
from mycel.dataset.audio.masking import (
    FrequencyMasking,
    MaskAlongAxis,
    MaskAlongAxisIID,
    TimeMasking,
)
from mycel.dataset.audio.modulation import Flanger, Phaser
from mycel.dataset.audio.resampling import Resample
from mycel.dataset.audio.scales import (
    AmplitudeToDB,
    Angle,
    ComplexNorm,
    DBToAmplitude,
    Magphase,
    create_dct,
    linear_fbanks,
    melscale_fbanks,
)
from mycel.dataset.audio.spectra import (
    GriffinLim,
    InverseSpectrogram,
    PhaseVocoder,
    PitchShift,
    Spectrogram,
    TimeStretch,
)
from mycel.dataset.audio.speech import DetectPitchFrequency, Vad

__all__ = [
    "AllpassBiquad",
    "AmplitudeToDB",
    "Angle",
    "BandBiquad",
    "BandpassBiquad",
    "BandrejectBiquad",
    "BassBiquad",
    "Biquad",
    "BorderType",
    "ComplexNorm",
    "ComputeDeltas",
    "Contrast",
    "DBToAmplitude",
    "DCShift",
    "DeemphBiquad",
    "DensityFunction",
    "DetectPitchFrequency",
    "Dither",
    "EqualizerBiquad",
    "Fade",
    "FadeShape",
    "Filtfilt",
    "Flanger",
    "FrequencyMasking",
    "Gain",
    "GainType",
    "GriffinLim",
    "HighpassBiquad",
    "Interpolation",
    "InverseMelScale",
    "InverseSpectrogram",
    "LFCC",
    "LFilter",
    "LowpassBiquad",
    "MFCC",
    "Magphase",
    "MaskAlongAxis",
    "MaskAlongAxisIID",
    "MelScale",
    "MelSpectrogram",
    "MelType",
    "Modulation",
    "MuLawDecoding",
    "MuLawEncoding",
    "NormMode",
    "NormType",
    "Overdrive",
    "PhaseVocoder",
    "Phaser",
    "PitchShift",
    "Resample",
    "ResampleMethod",
    "RiaaBiquad",
    "ScaleType",
    "SlidingWindowCmn",
    "SpectralCentroid",
    "Spectrogram",
    "TimeMasking",
    "TimeStretch",
    "TrebleBiquad",
    "Vad",
    "Vol",
    "WindowType",
    "create_dct",
    "linear_fbanks",
    "melscale_fbanks",
]

__dir__ = _listing(__name__)
