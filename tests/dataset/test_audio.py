"""Transforms of sound, against values that the real MindSpore 2.10 gives
(tests/dataset/audio_cases.py tells how they were made), and the arguments and inputs that it takes
or refuses.

expected_audio_arguments.json has, for each parameter, what MindSpore did with each of VALUES: take
it (.), or raise TypeError (T) or ValueError (V).
"""

from __future__ import annotations

import inspect
import json
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mycel.dataset import audio
from tests.dataset.audio_cases import CASES, EXPECTED, FUNCTIONS, INPUTS, evaluate

WANTED = dict(np.load(EXPECTED))
CALLS: dict[str, list[str | None]] = {call: [None] for call in FUNCTIONS}
for _call, _name in CASES:
    CALLS.setdefault(_call, []).append(_name)

# How far values may be from MindSpore's, relative to the largest one: it computes float16 in
# float16, and rounds the coefficients of filters, windows and gains to float32 where the waveform
# is float64.
TOLERANCES = {"float16": 0.08, "float32": 2e-4, "float64": 2e-5, "int32": 0.0}


def close(found: Any, wanted: Any, call: str) -> None:
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    if call.startswith("SlidingWindowCmn"):  # MindSpore divides by the deviation of a constant window
        wanted = np.nan_to_num(wanted)
    scale = float(np.max(np.abs(wanted.astype(np.float64)), initial=0.0))
    distance = TOLERANCES[wanted.dtype.name] * min(scale, 1.0)
    if call.startswith(("MFCC", "LFCC")):
        distance = 1e-5 * scale
    if call.startswith("Dither") and wanted.dtype != np.float16:
        assert np.array_equal(found, wanted)
    relative = 2e-3 if wanted.dtype == np.float16 else 2e-4
    np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), relative, distance)


@pytest.mark.parametrize("call", list(CALLS))
def test_values_are_those_of_mindspore(call: str) -> None:
    for name in CALLS[call]:
        key = f"{call} {name or ''}".strip()
        wanted = WANTED.get(key)
        if wanted is not None and wanted.dtype.kind == "U":
            assert str(wanted) == "RuntimeError"
            with pytest.raises(RuntimeError):
                evaluate(audio, call, name)
            continue
        found = evaluate(audio, call, name)
        if isinstance(found, tuple):
            for position, part in enumerate(found):
                close(part, WANTED[f"{key} {position}"], call)
        else:
            close(found, wanted, call)


def test_inputs_are_left_as_they_are() -> None:
    for call in CALLS:
        for name in CALLS[call]:
            wanted = WANTED.get(f"{call} {name}")
            if name in ("mono", "power", "spectrum") and (wanted is None or wanted.dtype.kind != "U"):
                given = INPUTS[name].copy()
                names: dict[str, Any] = {**vars(audio), "np": np}
                eval(call, names)(given)
                assert np.array_equal(given, INPUTS[name]), call


VALUES: list[Any] = [None, "x", True, 1, 0, -1, 2, 1.0, 0.0, -1.0, 0.5, 2.0, 40.0, 101.0, 1e39, 2**31, 2**32]
ARGUMENTS = json.loads(Path(__file__).with_name("expected_audio_arguments.json").read_text())
GIVEN: dict[str, Any] = {
    "sample_rate": 16000,
    "central_freq": 1000.0,
    "center_freq": 1000.0,
    "cutoff_freq": 1000.0,
    "gain": 1.0,
    "b0": 0.1,
    "b1": 0.1,
    "b2": 0.1,
    "a0": 1.0,
    "a1": 0.1,
    "a2": 0.1,
    "ref": 1.0,
    "power": 1.0,
    "shift": 0.5,
    "a_coeffs": [1.0, 0.1],
    "b_coeffs": [0.1, 0.2],
    "n_stft": 20,
    "n_mels": 5,
    "n_mfcc": 5,
    "mask_start": 0,
    "mask_width": 1,
    "mask_value": 0.0,
    "axis": 1,
    "mask_param": 2,
    "rate": 1.5,
    "n_freqs": 20,
    "f_min": 0.0,
    "f_max": 4000.0,
    "n_filter": 5,
    "n_steps": 4,
    "phase_advance": np.zeros((5, 1)),
}
# Refused when the transform is made, not when it is first called, and of a wrong type, which
# MindSpore does not notice.
STRICTER = {
    ("MFCC", "sample_rate"): (0, 1),
    ("MFCC", "n_mfcc"): (),
    ("Resample", "beta"): ("x", True),
}


@pytest.mark.parametrize("name, parameter", [(name, p) for name, found in ARGUMENTS.items() for p in found])
def test_arguments_are_taken_and_refused_as_by_mindspore(name: str, parameter: str) -> None:
    function = getattr(audio, name)
    required = {
        p: GIVEN[p] for p, q in inspect.signature(function).parameters.items() if q.default is inspect.Parameter.empty
    }
    errors = {"T": TypeError, "V": ValueError}
    for value, wanted in zip(VALUES, ARGUMENTS[name][parameter]):
        arguments = {**required, parameter: value}
        stricter = any(value is other for other in STRICTER.get((name, parameter), ()))
        if wanted == ".":
            if stricter:
                with pytest.raises((TypeError, ValueError)):
                    function(**arguments)
            else:
                function(**arguments)
        else:
            with pytest.raises(errors[wanted]):
                function(**arguments)


def test_sampling_rates_that_filters_know() -> None:
    for make in (audio.DeemphBiquad, audio.RiaaBiquad):
        with pytest.raises(ValueError, match="must be one of"):
            make(16000)
        with pytest.raises(TypeError, match="must be an int, not"):
            make(44100.0)


def test_coefficients_must_fit_together() -> None:
    with pytest.raises(ValueError, match="same size"):
        audio.LFilter([1.0], [1.0, 0.0])
    with pytest.raises(TypeError, match=r"a_coeffs\[1\]"):
        audio.Filtfilt([1.0, "x"], [1.0, 0.0])
    with pytest.raises(ValueError, match="must be other than 0"):
        audio.LFilter([0.0], [1.0])


def test_gains_of_each_kind() -> None:
    audio.Vol(-3.0, audio.GainType.DB)
    with pytest.raises(ValueError):
        audio.Vol(0.0, audio.GainType.POWER)
    with pytest.raises(ValueError):
        audio.Vol(-1.0)


@pytest.mark.parametrize(
    "transform",
    [
        audio.Gain(),
        audio.LowpassBiquad(8000, 100.0),
        audio.Spectrogram(8),
        audio.Vad(8000),
        audio.Overdrive(),
        audio.Fade(),
    ],
)
def test_wrong_inputs(transform: Any) -> None:
    with pytest.raises(RuntimeError, match=r"<\.\.\., time>"):
        transform(np.array(1.0, np.float32))
    with pytest.raises(RuntimeError, match="numbers"):
        transform(np.array(["a", "b"]))
    with pytest.raises(TypeError, match="NumPy array"):
        transform([1.0, 2.0])


@pytest.mark.parametrize(
    "transform, shape, message",
    [
        (audio.Flanger(8000), (9,), "channel"),
        (audio.AmplitudeToDB(), (9,), "freq"),
        (audio.TimeMasking(), (9,), "freq"),
        (audio.TimeMasking(False, 30), (9, 7), "exceeds"),
        (audio.FrequencyMasking(True, 30), (9, 7), "exceeds"),
        (audio.MaskAlongAxis(1, 30, 0.5, 1), (9, 7), "exceeds"),
        (audio.ComplexNorm(), (9, 7), "complex=2"),
        (audio.Angle(), (9, 7), "complex=2"),
        (audio.Magphase(), (9, 7), "complex=2"),
        (audio.MelScale(n_stft=20), (9, 7), "n_stft"),
        (audio.InverseMelScale(n_stft=20), (9, 7), "n_mels"),
        (audio.GriffinLim(), (9, 7), "frequencies"),
        (audio.InverseSpectrogram(), (9, 7, 2), "frequencies"),
        (audio.TimeStretch(n_freq=5, fixed_rate=1.5), (9, 7, 2), "n_freq"),
        (audio.PhaseVocoder(1.3, np.zeros((5, 1))), (9, 7, 2), "phase_advance"),
        (audio.Spectrogram(8, center=False), (5,), "shorter"),
        (audio.DetectPitchFrequency(8000), (500,), "too few"),
    ],
)
def test_inputs_of_wrong_shapes(transform: Any, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        transform(np.ones(shape, np.float32))


def test_enumerations_have_mindspores_members() -> None:
    wanted = {
        "BorderType": "CONSTANT=constant EDGE=edge REFLECT=reflect SYMMETRIC=symmetric",
        "DensityFunction": "TPDF=TPDF RPDF=RPDF GPDF=GPDF",
        "FadeShape": "QUARTER_SINE=quarter_sine HALF_SINE=half_sine LINEAR=linear LOGARITHMIC=logarithmic "
        "EXPONENTIAL=exponential",
        "GainType": "AMPLITUDE=amplitude POWER=power DB=db",
        "Interpolation": "LINEAR=linear QUADRATIC=quadratic",
        "MelType": "HTK=htk SLANEY=slaney",
        "Modulation": "SINUSOIDAL=sinusoidal TRIANGULAR=triangular",
        "NormMode": "ORTHO=ortho NONE=none",
        "NormType": "SLANEY=slaney NONE=none",
        "ResampleMethod": "SINC_INTERPOLATION=sinc_interpolation KAISER_WINDOW=kaiser_window",
        "ScaleType": "POWER=power MAGNITUDE=magnitude",
        "WindowType": "BARTLETT=bartlett BLACKMAN=blackman HAMMING=hamming HANN=hann KAISER=kaiser",
    }
    found = {
        name: " ".join(f"{member.name}={member.value}" for member in value)
        for name in audio.__all__
        if isinstance(value := getattr(audio, name), type) and issubclass(value, Enum) and issubclass(value, str)
    }
    assert found == wanted


def test_every_public_name_is_tested_here() -> None:
    texts = " ".join([*CALLS, *ARGUMENTS, "InverseMelScale", "DeemphBiquad", "RiaaBiquad"])
    kinds = [
        n for n in audio.__all__ if not (isinstance(getattr(audio, n), type) and issubclass(getattr(audio, n), Enum))
    ]
    assert not [name for name in kinds if f"{name}(" not in texts and name not in texts.split()]
