"""Calls of audio transforms whose values are known, and the inputs they are given.

`python -m tests.dataset.audio_cases`, where the real MindSpore 2.10 is installed, evaluates every
call with it and writes expected_audio.npz: for each call an array, or an array for each result.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

EXPECTED = Path(__file__).with_name("expected_audio.npz")


def _wave(*shape: int, scale: float = 0.6) -> Any:
    """Sines of several pitches and a little drift, the same everywhere."""
    n = np.arange(int(np.prod(shape)), dtype=np.float64)
    values = np.sin(0.31 * n) + 0.5 * np.sin(1.7 * n + 0.3) + 0.3 * np.sin(0.013 * n * n) + 0.1
    return scale * values.reshape(shape)


def _voice() -> Any:
    """A second of faint noise-like sines at 8 kHz, then half a second of a loud hum with overtones,
    two channels.
    """
    n = np.arange(12000, dtype=np.float64)
    faint = 1e-3 * np.sin(0.013 * n * n)
    loud = 0.4 * np.sin(2 * np.pi * 200 / 8000 * n) + 0.2 * np.sin(2 * np.pi * 600 / 8000 * n)
    mono = faint + loud * (n >= 7000)
    return np.stack([mono, 0.5 * mono]).astype(np.float32)


INPUTS: dict[str, Any] = {
    "mono": _wave(60).astype(np.float32),
    "double": _wave(60),
    "stereo": _wave(2, 50).astype(np.float32),
    "stereo64": _wave(2, 50),
    "batch": _wave(2, 3, 40).astype(np.float32),
    "loud": _wave(2, 50, scale=3.0).astype(np.float32),
    "whole": np.round(_wave(2, 40) * 100).astype(np.int32),
    "half": _wave(40).astype(np.float16),
    "single": _wave(1).astype(np.float32),
    "long": _wave(2, 500).astype(np.float32),
    "long64": _wave(2, 500),
    "hum": _voice()[:, 8000:9600],
    "hum64": _voice()[:, 8000:9600].astype(np.float64),
    "complex": _wave(3, 5, 2).astype(np.float32),
    "complex64": _wave(3, 5, 2),
    "pairs": np.round(_wave(4, 2) * 10).astype(np.int32),
    "power": (_wave(2, 9, 7) ** 2).astype(np.float32),
    "power64": _wave(2, 9, 7) ** 2,
    "power2d": (_wave(9, 7) ** 2).astype(np.float32),
    "spectrum": _wave(2, 9, 7, 2).astype(np.float32),
    "spectrum64": _wave(2, 9, 7, 2),
    "spectrum3d": _wave(9, 7, 2).astype(np.float32),
    "codes": (np.arange(40).reshape(2, 20) * 13 % 256).astype(np.int32),
    "codes32": (np.arange(40).reshape(2, 20) * 13 % 256).astype(np.float32),
}

_RATE = ("mono", "stereo64", "batch", "loud", "whole", "half", "single")
_FILTERS = """
AllpassBiquad(8000, 1200.0, 0.5)
BandBiquad(8000, 1200.0)
BandBiquad(8000, 1200.0, 0.3, True)
BandpassBiquad(8000, 1200.0)
BandpassBiquad(8000, 1200.0, 0.5, True)
BandrejectBiquad(8000, 1200.0)
BassBiquad(8000, 6.0)
BassBiquad(8000, -6.0, 300.0, 0.5)
Biquad(0.3, 0.2, 0.1, 1.0, -0.4, 0.2)
Biquad(0.3, 0.2, 0.1, 2.0, -0.4, 0.2)
DeemphBiquad(44100)
DeemphBiquad(48000)
EqualizerBiquad(8000, 1200.0, 6.0)
HighpassBiquad(8000, 1200.0)
LowpassBiquad(8000, 1200.0, 0.5)
RiaaBiquad(44100)
RiaaBiquad(48000)
RiaaBiquad(88200)
RiaaBiquad(96000)
TrebleBiquad(8000, 6.0)
TrebleBiquad(8000, -6.0, 2000.0, 0.5)
LFilter([1.0, -0.4, 0.2], [0.3, 0.2, 0.1])
LFilter([2.0, -0.4, 0.2, 0.1], [0.3, 0.2, 0.1, 0.5], False)
Filtfilt([1.0, -0.4, 0.2], [0.3, 0.2, 0.1])
Filtfilt([2.0, -0.4, 0.2], [0.3, 0.2, 0.1], False)
"""
_EFFECTS = """
Contrast()
Contrast(20.0)
DCShift(0.5)
DCShift(0.5, 0.02)
DCShift(0.0, 0.02)
Fade()
Fade(1, 1)
Fade(10, 10)
Fade(10, 40)
Fade(10, 7, FadeShape.QUARTER_SINE)
Fade(10, 7, FadeShape.HALF_SINE)
Fade(10, 7, FadeShape.LINEAR)
Fade(10, 7, FadeShape.LOGARITHMIC)
Fade(10, 7, FadeShape.EXPONENTIAL)
Gain()
Gain(-3.5)
MuLawEncoding()
MuLawEncoding(10)
MuLawDecoding()
MuLawDecoding(10)
Overdrive()
Overdrive(30.0, 50.0)
Phaser(8000)
Phaser(8000, 0.8, 0.9, 1.0, 0.5, 1.5, False)
Vol(0.5)
Vol(2.5, GainType.AMPLITUDE)
Vol(2.5, GainType.POWER)
Vol(-6.0, GainType.DB)
SlidingWindowCmn(5, 2)
SlidingWindowCmn(5, 3, False, True)
SlidingWindowCmn(5, 3, True, False)
SlidingWindowCmn(4, 3, True, True)
SlidingWindowCmn()
ComputeDeltas()
ComputeDeltas(7, BorderType.REFLECT)
ComputeDeltas(3, BorderType.CONSTANT)
ComputeDeltas(3, BorderType.SYMMETRIC)
Dither()
"""
_OTHERS: list[tuple[str, tuple[str, ...]]] = [
    ("SlidingWindowCmn(5, 2)", ("power", "power64", "power2d")),
    ("SlidingWindowCmn(5, 3, False, True)", ("power", "power64", "power2d")),
    ("SlidingWindowCmn(4, 3, True, True)", ("power", "power64", "power2d")),
    ("Flanger(8000)", ("stereo", "stereo64", "batch", "long", "loud", "whole", "half")),
    (
        "Flanger(8000, 1.0, 3.0, 20.0, 50.0, 2.0, 60.0, Modulation.TRIANGULAR, Interpolation.QUADRATIC)",
        ("long", "stereo64", "batch"),
    ),
    ("Flanger(8000, 0.5, 1.0, -20.0, 80.0, 5.0, 10.0, Modulation.SINUSOIDAL, Interpolation.QUADRATIC)", ("long",)),
    ("Phaser(8000)", ("long",)),
    ("Phaser(8000, sinusoidal=False, decay=0.8)", ("long64",)),
    ("Angle()", ("complex", "complex64", "pairs")),
    ("ComplexNorm()", ("complex", "complex64", "pairs")),
    ("ComplexNorm(2.0)", ("complex", "complex64", "spectrum")),
    ("ComplexNorm(0.0)", ("complex",)),
    ("Magphase()", ("complex", "complex64", "spectrum", "pairs")),
    ("Magphase(2.0)", ("complex",)),
    ("AmplitudeToDB()", ("power", "power64", "power2d", "codes")),
    ("AmplitudeToDB(ScaleType.MAGNITUDE, 0.5, 1e-3, 20.0)", ("power", "power64", "power2d")),
    ("AmplitudeToDB(ScaleType.POWER, 2.0, 1e-6, 10.0)", ("power",)),
    ("DBToAmplitude(2.0, 0.5)", ("mono", "double", "whole", "power", "half")),
    ("DBToAmplitude(1.0, 1.0)", ("mono",)),
    ("MuLawDecoding()", ("codes", "codes32")),
    ("MaskAlongAxis(1, 3, 0.5, 1)", ("power", "power64", "power2d", "codes")),
    ("MaskAlongAxis(0, 3, 0.5, 2)", ("power", "power64", "power2d", "codes")),
    ("FrequencyMasking(False, 3, 2, 5.0)", ("power", "power2d", "power64")),
    ("TimeMasking(False, 3, 2, 5.0)", ("power", "power2d", "power64")),
    ("FrequencyMasking()", ("power",)),
    ("TimeMasking()", ("power",)),
    ("TimeStretch(4, 9, 1.3)", ("spectrum", "spectrum64", "spectrum3d")),
    ("TimeStretch(4, 9, 0.7)", ("spectrum", "spectrum64")),
    ("TimeStretch(None, 9)", ("spectrum", "spectrum64")),
    ("PhaseVocoder(1.3, np.linspace(0, 12.0, 9, dtype=np.float32)[:, None])", ("spectrum", "spectrum3d")),
    ("PhaseVocoder(0.6, np.linspace(0, 12.0, 9)[:, None])", ("spectrum64",)),
    ("Spectrogram(16)", ("mono", "double", "stereo", "stereo64", "batch", "whole", "half")),
    ("Spectrogram(16, 10, 3, 2, WindowType.BARTLETT, 1.0, True)", ("mono", "stereo64")),
    ("Spectrogram(16, 10, 3, 2, WindowType.BLACKMAN, 0.0)", ("mono", "stereo64")),
    ("Spectrogram(16, 10, 3, 2, WindowType.HAMMING, 0.5, False, False)", ("mono", "stereo64")),
    ("Spectrogram(16, 12, 5, 0, WindowType.KAISER, 3.0, True, True, BorderType.CONSTANT, False)", ("mono", "stereo64")),
    ("Spectrogram(15, 15, 5, 0, WindowType.HANN, 2.0, False, True, BorderType.EDGE, False)", ("mono", "stereo64")),
    ("Spectrogram(15, 11, 5, 0, WindowType.HANN, 0.0, True, True, BorderType.SYMMETRIC, True)", ("mono", "stereo64")),
    ("InverseSpectrogram(n_fft=16)", ("inverse", "inverse64")),
    ("InverseSpectrogram(30, 16, 12, 4)", ("inverse", "inverse64")),
    ("InverseSpectrogram(60, 16, 12, 4)", ("inverse",)),
    ("GriffinLim(16, 4, rand_init=False)", ("power", "power64", "power2d")),
    ("GriffinLim(16, 3, 12, 5, WindowType.HAMMING, 1.0, 0.5, 33, False)", ("power", "power64")),
    ("GriffinLim(16, 3, 12, 4, momentum=0.0, rand_init=False)", ("power",)),
    ("MelScale(5, 8000, 100.0, 3500.0, 9)", ("power", "power64", "power2d")),
    ("MelScale(4, 8000, n_stft=9, norm=NormType.SLANEY, mel_type=MelType.SLANEY)", ("power", "power64")),
    ("MelSpectrogram(8000, 64, n_mels=6)", ("long", "mono")),
    (
        "MelSpectrogram(8000, 64, 50, 20, 100.0, 3000.0, 3, 6, WindowType.HAMMING, 1.0, True, False, "
        "BorderType.EDGE, True, NormType.SLANEY, MelType.SLANEY)",
        ("long",),
    ),
    ("MFCC(8000, 4, melkwargs={**_MEL, 'n_fft': 64, 'win_length': 64, 'hop_length': 32, 'n_mels': 6})", ("long",)),
    (
        "MFCC(8000, 4, 2, NormMode.NONE, True, {**_MEL, 'n_fft': 64, 'win_length': 64, 'hop_length': 20, 'n_mels': 6})",
        ("long",),
    ),
    ("LFCC(8000, 6, 4, speckwargs={**_SPECTRUM, 'n_fft': 64, 'win_length': 64, 'hop_length': 32})", ("long",)),
    (
        "LFCC(8000, 6, 4, 100.0, 3000.0, 2, NormMode.NONE, True, {**_SPECTRUM, 'n_fft': 64, 'win_length': 50, "
        "'hop_length': 20})",
        ("long",),
    ),
    ("MFCC(8000)", ("hum",)),
    ("LFCC(8000)", ("hum",)),
    ("MelSpectrogram(8000)", ("hum",)),
    ("SpectralCentroid(8000, 16)", ("mono", "stereo", "stereo64", "batch", "whole")),
    ("SpectralCentroid(8000, 16, 10, 3, 2, WindowType.HAMMING)", ("mono", "stereo64")),
    ("Resample(16000, 8000)", ("mono", "double", "stereo", "stereo64", "batch", "whole", "half")),
    ("Resample(3, 7)", ("mono", "stereo64")),
    ("Resample(7.5, 3.2)", ("mono", "stereo64")),
    ("Resample()", ("mono", "whole", "double")),
    ("Resample(8000, 6000, ResampleMethod.KAISER_WINDOW)", ("mono", "stereo64")),
    ("Resample(8000, 12000, ResampleMethod.KAISER_WINDOW, 4, 0.8, 6.0)", ("mono", "stereo64")),
    ("Resample(8000, 12000, ResampleMethod.SINC_INTERPOLATION, 4, 0.8)", ("mono", "stereo64")),
    ("PitchShift(8000, 4, n_fft=64)", ("long", "long64")),
    ("PitchShift(8000, -3, 12, 64, 50, 10, WindowType.HAMMING)", ("long", "long64", "mono")),
    ("DetectPitchFrequency(8000)", ("hum", "hum64")),
    ("DetectPitchFrequency(8000, 0.005, 3, 100, 2000)", ("hum", "long")),
    ("Vad(8000)", ("long", "long64")),
    (
        "Vad(8000, 1e3, search_time=0.02, measure_freq=100.0, pre_trigger_time=0.005, measure_duration=0.02)",
        ("long", "long64"),
    ),
]
INPUTS["inverse"] = _wave(2, 9, 8, 2).astype(np.float32)
INPUTS["inverse64"] = _wave(2, 9, 8, 2)
CASES: list[tuple[str, str]] = [
    (call, name) for text in (_FILTERS, _EFFECTS) for call in text.split("\n") if call for name in _RATE
]
CASES += [(call, name) for call, names in _OTHERS for name in names]
FUNCTIONS = """
create_dct(4, 6)
create_dct(6, 4, NormMode.ORTHO)
create_dct(1, 1, NormMode.ORTHO)
linear_fbanks(9, 100.0, 3500.0, 5, 8000)
linear_fbanks(9, 0.0, 4000.0, 3, 8000)
melscale_fbanks(17, 0.0, 4000.0, 5, 8000)
melscale_fbanks(17, 100.0, 3500.0, 5, 8000, NormType.SLANEY, MelType.SLANEY)
melscale_fbanks(17, 100.0, 3500.0, 5, 8000, NormType.NONE, MelType.SLANEY)
melscale_fbanks(17, 100.0, 3500.0, 5, 8000, NormType.SLANEY, MelType.HTK)
""".split("\n")[1:-1]
_SPECTRUM = (
    "dict(pad=0, window=WindowType.HANN, power=2.0, normalized=False, center=True, "
    "pad_mode=BorderType.REFLECT, onesided=True)"
)
_MEL = "dict(f_min=0.0, f_max=4000.0, norm=NormType.NONE, mel_scale=MelType.HTK)"


def evaluate(audio: Any, call: str, name: str | None = None) -> Any:
    """What a transform or function of `audio` gives, for the input of this name."""
    names: dict[str, Any] = {**vars(audio), "np": np}
    names["_SPECTRUM"] = eval(_SPECTRUM, names)
    names["_MEL"] = {**names["_SPECTRUM"], **eval(_MEL, names)}
    found = eval(call, names)
    return found if name is None else found(INPUTS[name].copy())


def main() -> None:
    """Write the values of the real MindSpore."""
    from mindspore.dataset import audio

    values: dict[str, Any] = {}
    for call, name in [*CASES, *((call, None) for call in FUNCTIONS)]:
        key = f"{call} {name or ''}".strip()
        try:
            found = evaluate(audio, call, name)
        except Exception as error:
            values[key] = np.array(type(error).__name__)
            continue
        for position, array in enumerate(found if isinstance(found, tuple) else (found,)):
            values[f"{key} {position}" if isinstance(found, tuple) else key] = array
    np.savez_compressed(EXPECTED, **values)


if __name__ == "__main__":
    main()
