"""Transforms of sound that draw at random, by their properties, and those of which MindSpore 2.10
gives no right values, against definitions and SciPy.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import signal

import mycel.dataset as ds
from mycel.dataset import audio
from mycel.dataset.audio import BorderType, DensityFunction, MelType, NormType, WindowType
from tests.dataset.audio_cases import INPUTS, _voice


@pytest.fixture(autouse=True)
def seeded() -> None:
    ds.set_seed(3)


def test_random_masks_are_stretches_of_at_most_the_width() -> None:
    for make, axis in (
        (lambda: audio.MaskAlongAxisIID(4, 7.0, 1), 1),
        (lambda: audio.MaskAlongAxisIID(4, 7.0, 2), 2),
        (lambda: audio.FrequencyMasking(True, 4, 0, 7.0), 1),
        (lambda: audio.TimeMasking(True, 4, 0, 7.0), 2),
    ):
        given = np.zeros((60, 9, 8), np.float32)
        masked = make()(given) == 7
        assert not given.any()
        lines = masked.all(axis=3 - axis)
        assert np.array_equal(masked, np.broadcast_to(np.expand_dims(lines, 3 - axis), masked.shape))
        widths = lines.sum(axis=1)
        assert widths.min() == 0 and 2 <= widths.max() <= 4
        starts = {int(row.argmax()) for row in lines if row.any()}
        assert len(starts) > 2
        for row in lines:
            assert np.count_nonzero(np.diff(row.astype(int)) == 1) + int(row[0]) <= 1


@pytest.mark.parametrize("kind", list(DensityFunction))
@pytest.mark.parametrize("shaping", [False, True])
@pytest.mark.parametrize("name", ["mono", "stereo64", "batch"])
def test_dither_stays_within_its_noise_on_levels_of_16_bits(kind: DensityFunction, shaping: bool, name: str) -> None:
    wave = INPUTS[name]
    found = audio.Dither(kind, shaping)(wave)
    assert found.dtype == wave.dtype and found.shape == wave.shape
    limit = (2.0 if shaping else 1.0) * (3 + 2 * abs(wave).max()) / 2**15
    assert abs(found - wave).max() <= limit
    if not shaping:
        levels = found.astype(np.float64) * 2**15
        assert np.array_equal(levels, np.rint(levels))


def test_noise_shaping_adds_the_error_of_the_sample_before() -> None:
    wave = INPUTS["stereo64"]
    plain = audio.Dither()(wave)
    shaped = audio.Dither(noise_shaping=True)(wave)
    np.testing.assert_allclose(shaped[:, 1:], plain[:, 1:] + (plain - wave)[:, :-1], atol=1e-12)
    np.testing.assert_allclose(shaped[:, 0], plain[:, 0])


def test_griffin_lim_finds_a_waveform_of_the_spectrogram() -> None:
    wave = np.sin(0.3 * np.arange(400)) + 0.5 * np.sin(1.1 * np.arange(400))
    wanted = audio.Spectrogram(64, hop_length=16)(wave)
    found = audio.GriffinLim(64, 60, hop_length=16)(wanted)
    again = audio.Spectrogram(64, hop_length=16)(found)
    error = np.linalg.norm(np.sqrt(again) - np.sqrt(wanted)) / np.linalg.norm(np.sqrt(wanted))
    assert found.shape == (400,) and error < 0.2


@pytest.mark.parametrize("norm, kind", [(NormType.NONE, MelType.HTK), (NormType.SLANEY, MelType.SLANEY)])
def test_inverse_mel_scale_finds_a_spectrogram_of_the_mels(norm: NormType, kind: MelType) -> None:
    spectrum = np.abs(INPUTS["power64"])
    forward = audio.MelScale(4, 8000, n_stft=9, norm=norm, mel_type=kind)
    wanted = forward(spectrum) * (1000.0 if norm is NormType.SLANEY else 1.0)
    bank = audio.melscale_fbanks(9, 0.0, 4000.0, 4, 8000, norm, kind)
    steps = {"sgd_lr": 0.1 / max(float((bank**2).sum()), 1e-12)}
    found = audio.InverseMelScale(9, 4, 8000, max_iter=5000, sgdargs=steps, norm=norm, mel_type=kind)(wanted)
    assert found.shape == (2, 9, 7) and found.dtype == np.float64 and found.min() >= 0
    assert abs(forward(found) - wanted).max() < 0.03 * wanted.max()
    plain = audio.InverseMelScale(9, 4, 8000, max_iter=1)(forward(spectrum[0]).astype(np.float32))
    assert plain.shape == (1, 9, 7) and plain.dtype == np.float32


@pytest.mark.parametrize("window", [WindowType.HANN, WindowType.HAMMING, WindowType.BLACKMAN, WindowType.KAISER])
@pytest.mark.parametrize("onesided", [True, False])
@pytest.mark.parametrize("pad", [0, 3])
def test_inverse_spectrogram_inverts(window: WindowType, onesided: bool, pad: int) -> None:
    for name in ("long64", "stereo64"):
        wave = INPUTS[name]
        forward = audio.Spectrogram(16, 12, 4, pad, window, 0.0, True, True, BorderType.REFLECT, onesided)
        backward = audio.InverseSpectrogram(wave.shape[-1], 16, 12, 4, pad, window, True, onesided=onesided)
        np.testing.assert_allclose(backward(forward(wave)), wave, atol=1e-9)


def test_inverse_spectrogram_of_uncentred_frames() -> None:
    wave = INPUTS["stereo64"][:, :48]
    spectrum = audio.Spectrogram(16, hop_length=4, window=WindowType.HAMMING, power=0.0, center=False)(wave)
    found = audio.InverseSpectrogram(None, 16, hop_length=4, window=WindowType.HAMMING, center=False)(spectrum)
    np.testing.assert_allclose(found, wave, atol=1e-9)


@pytest.mark.parametrize("name", ["double", "long64"])
def test_spectrograms_are_scipys(name: str) -> None:
    wave = INPUTS[name]
    found = audio.Spectrogram(16, 16, 4, power=0.0, center=False)(wave)
    window = signal.get_window("hann", 16)
    _, _, wanted = signal.stft(wave, nperseg=16, noverlap=12, window=window, boundary=None, padded=False)
    np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], wanted * window.sum(), atol=1e-12)


def test_mel_spectrograms_of_float64_are_those_of_float32() -> None:
    for call in (audio.MelSpectrogram(8000, 64, n_mels=6), audio.MFCC(8000, 4, melkwargs={"n_fft": 64, "n_mels": 6})):
        found = call(INPUTS["long64"])
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, call(INPUTS["long"]), rtol=1e-3, atol=1e-3)


def test_options_that_are_left_out_have_their_defaults() -> None:
    wave = INPUTS["long"]
    whole = {"n_fft": 64, "win_length": 64, "hop_length": 32, "n_mels": 6, "f_min": 0.0, "f_max": 4000.0, "power": 2.0}
    found = audio.MFCC(8000, 4, melkwargs={"n_fft": 64, "n_mels": 6})(wave)
    assert np.array_equal(found, audio.MFCC(8000, 4, melkwargs=whole)(wave))
    found = audio.LFCC(8000, 6, 4, speckwargs={"n_fft": 64})(wave)
    assert np.array_equal(found, audio.LFCC(8000, 6, 4, speckwargs={"n_fft": 64, "hop_length": 32, "pad": 0})(wave))
    with pytest.raises(ValueError, match="n_ftt"):
        audio.MFCC(8000, 4, melkwargs={"n_ftt": 64})


def test_negative_shifts_squeeze_negative_peaks() -> None:
    wave = INPUTS["stereo64"]
    assert np.array_equal(audio.DCShift(-0.5, 0.02)(wave), -audio.DCShift(0.5, 0.02)(-wave))


def reference_start(wave: Any, rate: int, level: float, search: float, gap: float, before: float) -> int:
    """Where SoX's detector lets [channel, time] begin, with its other settings at their defaults,
    sample by sample.
    """
    frequency, size = 20.0, 16
    length = int(rate * 0.1 + 0.5)
    while size < length:
        size *= 2
    period, slots = int(rate / frequency + 0.5), math.ceil(search * frequency)
    fixed = int(before * rate + 0.5)
    window = signal.get_window("hann", length) * 2 / math.sqrt(length)
    low, high = max(int(50 / rate * size + 0.5), 1), min(int(6000 / rate * size + 0.5), size // 2)
    lifter = signal.get_window("hann", high - low) * 2 / math.sqrt(high - low)
    first, last = math.ceil(rate * 0.5 / 2000), min(math.floor(rate * 0.5 / 150), size // 4)
    channels = range(len(wave))
    spectrum, noise = np.zeros((len(wave), high - low)), np.zeros((len(wave), high - low))
    measures, means = np.zeros((len(wave), slots)), np.zeros(len(wave))
    timer, boot, index = length, 0, 0
    for place in range(wave.shape[1]):
        timer -= 1
        if timer:
            continue
        flush, triggered = 0, False
        for c in channels:
            bins = abs(np.fft.rfft(wave[c, place + 1 - length : place + 1] * window, size))[low:high]
            mult = boot / (1 + boot) if boot >= 0 else math.exp(-1 / (0.4 * frequency))
            spectrum[c] = spectrum[c] * mult + bins * (1 - mult)
            power = spectrum[c] ** 2
            for b in range(high - low):
                rising = power[b] > noise[c, b]
                mult = 0.0 if boot >= 0 else math.exp(-1 / ((0.1 if rising else 0.01) * frequency))
                noise[c, b] = noise[c, b] * mult + power[b] * (1 - mult)
            buffer = np.zeros(size // 2)
            buffer[low:high] = np.sqrt(np.maximum(0, power - 1.35 * noise[c])) * lifter
            total = float((abs(np.fft.rfft(buffer))[first:last] ** 2).sum())
            measure = max(0.0, 21 + math.log(total / (last - first))) if total > 0 else 0.0
            measures[c, index] = measure
            mult = math.exp(-1 / (0.25 * frequency))
            means[c] = means[c] * mult + measure * (1 - mult)
            if means[c] >= level:
                triggered = True
                trigger = zero = slots
                k = index
                for j in range(slots):
                    if measures[c, k] >= level and j <= trigger + int(gap * frequency + 0.5):
                        zero = trigger = j
                    elif measures[c, k] == 0 and trigger >= zero:
                        zero = j
                    k = (k + slots - 1) % slots
                flush = max(flush, min(slots, zero))
        if triggered:
            return max(place + 1 - length - fixed - flush * period, 0)
        timer, index = period, (index + 1) % slots
        if boot >= 0:
            boot = -1 if boot == int(0.35 * frequency - 0.5) else boot + 1
    return max(wave.shape[1] - length - fixed - slots * period, 0)


@pytest.mark.parametrize(
    "level, search, gap, before", [(7.0, 1.0, 0.25, 0.0), (4.0, 0.3, 0.1, 0.1), (30.0, 0.5, 0.25, 0.0)]
)
def test_voice_detection_is_soxs_algorithm(level: float, search: float, gap: float, before: float) -> None:
    for wave in (_voice(), _voice()[:1] * 3, np.roll(_voice(), -3000, axis=1)):
        found = audio.Vad(8000, level, search_time=search, allowed_gap=gap, pre_trigger_time=before)(wave)
        start = reference_start(wave.astype(np.float64), 8000, level, search, gap, before)
        assert np.array_equal(found, wave[:, start:])


def test_voice_detection_finds_where_the_hum_begins() -> None:
    wave = _voice()
    begin = wave.shape[1] - audio.Vad(8000)(wave).shape[1]
    assert 7000 - 1200 <= begin <= 7000
    assert np.array_equal(audio.Vad(8000)(wave[0]), wave[0, begin:])


ROWS = [
    audio.LowpassBiquad(8000, 1200.0),
    audio.Gain(3.0),
    audio.Fade(4, 3),
    audio.Phaser(8000),
    audio.Resample(16000, 8000),
    audio.Spectrogram(16),
    audio.MelSpectrogram(8000, 16, n_mels=3),
    audio.DetectPitchFrequency(8000, 0.0025, 1, 2000, 3400),
    audio.MuLawEncoding(),
    audio.Contrast(),
    audio.Overdrive(),
    audio.Vol(0.5),
    audio.SpectralCentroid(8000, 16),
    audio.PitchShift(8000, 3, n_fft=16),
    audio.DCShift(0.5, 0.1),
    audio.MFCC(8000, 2, melkwargs={"n_fft": 16, "n_mels": 4}),
    audio.Filtfilt([1.0, 0.2], [0.4, 0.1]),
    audio.Dither(),
]


@pytest.mark.parametrize("transform", ROWS, ids=lambda t: type(t).__name__)
def test_blocks_of_rows_are_computed_as_each_row(transform: Any) -> None:
    rows = np.concatenate([INPUTS["batch"][:, 0], 0.1 * INPUTS["batch"][:, 1]])
    data = ds.NumpySlicesDataset({"wave": rows}, shuffle=False).map(transform, "wave")
    found = [row["wave"] for row in data.create_dict_iterator(num_epochs=1, output_numpy=True)]
    assert len(found) == len(rows)
    for row, wave in zip(found, rows):
        np.testing.assert_allclose(row, transform(wave), rtol=1e-5, atol=1e-5)


def test_empty_waveforms_stay_empty() -> None:
    empty = np.zeros((2, 0), np.float32)
    for transform in (
        audio.Gain(),
        audio.LowpassBiquad(8000, 100.0),
        audio.Contrast(),
        audio.Dither(),
        audio.Phaser(8000),
    ):
        assert transform(empty).shape == (2, 0)


def test_mindspores_paths_lead_here() -> None:
    from mycel.compat.import_system.module_paths import sources

    for path in ("dataset.audio", "dataset.audio.transforms", "dataset.audio.utils"):
        assert sources(path)[0] == "mycel.dataset.audio"
