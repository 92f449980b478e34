"""Routines of sound compute what the operations of NumPy compute that stand in for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mycel.dataset import audio, config
from mycel.dataset.audio import effects, features, filters, modulation, speech, stft
from mycel.dataset.audio.enums import BorderType, Interpolation, Modulation

from .audio_cases import INPUTS

_WAVES = ["mono", "double", "stereo", "stereo64", "batch", "loud", "single", "long64", "hum"]
_WHOLE = [*_WAVES, "whole", "half"]
_PLANES = ["power", "power64", "power2d", "stereo", "whole"]
_EXACT: list[tuple[Any, list[str]]] = [
    (audio.LowpassBiquad(8000, 1200.0), [*_WAVES, "half"]),
    (audio.Biquad(0.3, 0.2, 0.1, 2.0, -0.4, 0.2), [*_WAVES, "half"]),
    (audio.LFilter([2, -1, 0.2], [0.3, 0.2, 0.1], False), _WAVES),
    (audio.Filtfilt([2.0, -0.4, 0.2], [0.3, 0.2, 0.1]), _WAVES),
    (audio.DCShift(0.5, 0.02), _WHOLE),
    (audio.DCShift(-1.5, 0.7), _WHOLE),
    (audio.Dither(), _WHOLE),
    (audio.Dither(noise_shaping=True), _WHOLE),
    (audio.Overdrive(), _WHOLE),
    (audio.Overdrive(30.0, 50.0), _WHOLE),
    (audio.Phaser(8000), _WHOLE),
    (audio.Phaser(8000, 0.8, 0.9, 1.0, 0.5, 1.5, False), _WHOLE),
    (audio.Flanger(8000), ["stereo", "stereo64", "batch", "whole", "hum"]),
    (
        audio.Flanger(8000, 1.0, 3.0, 20.0, 50.0, 9.0, 60.0, Modulation.TRIANGULAR, Interpolation.QUADRATIC),
        ["stereo", "stereo64", "batch", "whole", "hum"],
    ),
    (audio.Vad(8000), ["long", "hum", "whole"]),
    (audio.Vad(600, 3.0, search_time=0.1), ["long64", "hum", "whole"]),
    (audio.SlidingWindowCmn(5, 2), _PLANES),
    (audio.SlidingWindowCmn(4, 3, True, True), _PLANES),
    (audio.InverseSpectrogram(n_fft=16), ["spectrum", "spectrum64"]),
    (audio.GriffinLim(16, 4, rand_init=False), ["power", "power64"]),
]


def _without_routines(monkeypatch: pytest.MonkeyPatch, call: Any, given: Any) -> Any:
    with monkeypatch.context() as patch:
        for module in (effects, features, filters, modulation, speech, stft):
            patch.setattr(module, "are_on", lambda: False)
        return call(given)


@pytest.mark.parametrize("number", range(len(_EXACT)))
def test_values_are_those_of_numpy(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    transform, names = _EXACT[number]
    for name in names:
        given = INPUTS[name].copy()
        found, wanted = transform(given), _without_routines(monkeypatch, transform, given)
        assert found.dtype == wanted.dtype and np.array_equal(found, wanted), name
        assert np.array_equal(given, INPUTS[name])
        across = np.repeat(given, 2, axis=-1)[..., ::2] if given.ndim == 2 else given
        assert np.array_equal(transform(across), found), name


def test_what_is_no_number_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    wave = np.array([[0.5, np.nan, np.inf, -np.inf, 0.25, 3.0]] * 3, np.float32)
    for transform in (audio.LowpassBiquad(8000, 1200.0), audio.DCShift(0.5, 0.02), audio.Overdrive(), audio.Dither()):
        with np.errstate(all="ignore"):
            wanted = _without_routines(monkeypatch, transform, wave)
        assert np.array_equal(transform(wave), wanted, equal_nan=True), transform


def test_sounds_without_samples_stay_so() -> None:
    for shape in ((0,), (2, 0), (0, 5)):
        given = np.zeros(shape, np.float32)
        for transform in (
            audio.LowpassBiquad(8000, 1200.0),
            audio.DCShift(0.5, 0.02),
            audio.Overdrive(),
            audio.Dither(),
            audio.Phaser(8000),
        ):
            assert transform(given).shape == shape
    assert audio.Flanger(8000)(np.zeros((0, 2, 5), np.float32)).shape == (0, 2, 5)
    assert audio.Flanger(8000)(np.zeros((2, 0), np.float32)).shape == (2, 0)


@pytest.mark.parametrize("mode", list(BorderType))
def test_slopes_are_those_of_numpy(mode: BorderType, monkeypatch: pytest.MonkeyPatch) -> None:
    for width in (3, 5, 8):
        for name in ("power", "power64", "stereo"):
            transform = audio.ComputeDeltas(width, mode)
            wanted = _without_routines(monkeypatch, transform, INPUTS[name])
            np.testing.assert_allclose(transform(INPUTS[name]), wanted, 1e-5, 1e-6)


def test_both_find_the_same_spectrogram(monkeypatch: pytest.MonkeyPatch) -> None:
    transform = audio.InverseMelScale(9, 4, 8000, max_iter=50)
    for shape in ((4, 7), (2, 4, 7)):
        given = np.abs(INPUTS["power64"]).ravel()[: int(np.prod(shape))].reshape(shape)
        seed = config.get_seed()
        config.set_seed(3)
        try:
            found = transform(given)
            config.set_seed(3)
            wanted = _without_routines(monkeypatch, transform, given)
        finally:
            config.set_seed(seed)
        np.testing.assert_allclose(found, wanted, 1e-9, 1e-12)


def test_fades_that_meet_are_multiplied() -> None:
    wave = np.ones((2, 10), np.float32)
    found = audio.Fade(8, 6)(wave)
    gains = np.ones(10)
    gains[:8] *= np.linspace(0, 1, 8)
    gains[4:] *= 1 - np.linspace(0, 1, 6)
    assert np.array_equal(found, np.broadcast_to(gains.astype(np.float32), (2, 10)))
    assert np.array_equal(
        audio.Fade(4, 6)(wave)[0], np.concatenate([np.linspace(0, 1, 4), 1 - np.linspace(0, 1, 6)]).astype(np.float32)
    )
