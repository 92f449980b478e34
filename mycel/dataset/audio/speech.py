"""Detection of voices in recordings, and of their pitch."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from mycel._src.engines.routines import are_on
from mycel._src.foundation.bounded_caches import Remembered
from mycel.dataset.audio import audio_kernels
from mycel.dataset.audio.base import AudioTransform, check_float, check_int, check_positive, check_rate
from mycel.dataset.audio.enums import BorderType
from mycel.dataset.audio.stft import pad_ends
from mycel.dataset.rows.column_blocks import Array

EPSILON = 1e-9


class DetectPitchFrequency(AudioTransform):
    """The pitch in Hz, float32 [..., frame], of each frame of a waveform [..., time].

    It is found by normalized cross-correlation: a frame of ceil(sample_rate * frame_time) samples
    is correlated with the samples 1 .. ceil(sample_rate / freq_low) later, divided by the squared
    norms of both. The best lag from ceil(sample_rate / freq_high) on is taken; one in the shorter
    half wins if it is at least 0.99 times as good.

    Args:
        sample_rate (int): The sampling rate in Hz.
        frame_time (float): The length of a frame in seconds. Default: 0.01.
        win_length (int): The number of frames whose median smooths the lags. The result has
            win_length - 1 - (win_length - 1) // 2 fewer frames at the end. Default: 30.
        freq_low (float): The lowest pitch in Hz. Default: 85.
        freq_high (float): The highest pitch in Hz. Default: 3400.

    Raises:
        RuntimeError: For waveforms of too few frames.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import audio
        >>> wave = np.sin(2 * np.pi * 100 / 8000 * np.arange(2000))
        >>> audio.DetectPitchFrequency(8000, win_length=5)(wave)[3:5].tolist()
        [100.0, 100.0]
    """

    def __init__(
        self,
        sample_rate: int,
        frame_time: float = 0.01,
        win_length: int = 30,
        freq_low: float = 85,
        freq_high: float = 3400,
    ) -> None:
        operation = "DetectPitchFrequency"
        self.sample_rate = check_rate(operation, sample_rate)
        self.frame_time = check_positive(operation, "frame_time", frame_time)
        self.win_length = check_int(operation, "win_length", win_length, 1)
        self.freq_low = check_positive(operation, "freq_low", freq_low)
        self.freq_high = check_positive(operation, "freq_high", freq_high)

    def compute(self, array: Array, lead: int) -> Array:
        values = self.floats(array, lead)
        correlation = self._correlation(values.astype(np.float64))
        lags = self._best_lags(correlation)
        filling = (self.win_length - 1) // 2
        if lags.shape[-1] + filling < self.win_length or lags.shape[-1] <= filling:
            raise RuntimeError(
                f"DetectPitchFrequency: {lags.shape[-1]} frames are too few to smooth over {self.win_length}"
            )
        lags = np.concatenate([np.zeros((*lags.shape[:-1], filling), lags.dtype), lags], axis=-1)
        lags[..., :filling] = lags[..., filling : filling + 1]
        windows = np.lib.stride_tricks.sliding_window_view(lags, self.win_length, axis=-1)
        smooth = np.sort(windows, axis=-1)[..., (self.win_length - 1) // 2]
        return np.asarray(self.sample_rate / (EPSILON + smooth), np.float32)

    def _correlation(self, values: Array) -> Array:
        """Return how each frame correlates with itself `lag` later: [..., frame, lag - 1]."""
        lags = math.ceil(self.sample_rate / self.freq_low)
        size = math.ceil(self.sample_rate * self.frame_time)
        if lags < 1 or size < 1:
            raise RuntimeError(
                f"DetectPitchFrequency: {self.frame_time} s are less than a sample at {self.sample_rate} Hz"
            )
        length = values.shape[-1]
        count = math.ceil(length / size)
        padded = pad_ends(values, 0, lags + count * size - length, BorderType.CONSTANT)
        result = np.empty((*values.shape[:-1], count, lags))
        # As many frames at once as fit into the cache.
        some = max(1, _SAMPLES // (size * max(1, math.prod(values.shape[:-1]))))
        for first in range(0, count, some):
            last = min(first + some, count)
            here = padded[..., first * size : last * size + lags]
            _correlate(here, last - first, size, result[..., first:last, :])
        return result

    def _best_lags(self, correlation: Array) -> Array:
        first = math.ceil(self.sample_rate / self.freq_high)
        half = correlation.shape[-1] // 2
        if first >= correlation.shape[-1]:
            raise RuntimeError(
                f"DetectPitchFrequency: no pitch lies between {self.freq_low:g} and {self.freq_high:g} Hz at a rate of "
                f"{self.sample_rate}"
            )
        best = correlation[..., first:].argmax(axis=-1) + first
        if half <= first:
            return np.asarray(best + 1)
        short = correlation[..., first:half].argmax(axis=-1) + first
        best_value, short_value = (
            np.take_along_axis(correlation, place[..., None], axis=-1)[..., 0] for place in (best, short)
        )
        result: Array = np.where(short_value > 0.99 * best_value, short, best) + 1
        return result


# Samples of frames that are correlated at once.
_SAMPLES = 1 << 14


def _correlate(padded: Array, count: int, size: int, result: Array) -> None:
    """Write how `count` frames of `size` samples correlate with later ones to `result`.

    `padded` has the samples of the frames, and as many more as there are lags.
    """
    shape = (*padded.shape[:-1], count, size)
    frames = padded[..., : count * size].reshape(shape)
    norms = EPSILON + np.sqrt((frames**2).sum(axis=-1))
    for lag in range(1, result.shape[-1] + 1):
        later = padded[..., lag : lag + count * size].reshape(shape)
        later_norms = EPSILON + np.sqrt((later**2).sum(axis=-1))
        result[..., lag - 1] = (frames * later).sum(axis=-1) / norms**2 / later_norms**2


class Vad(AudioTransform):
    """Voice activity detection: the waveform [..., time] from where a voice begins.

    The first channel that has a voice decides. The algorithm is that of SoX `vad`. At regular
    moments, the spectrum of the last samples minus an estimate of the noise is transformed once
    more; the power of that cepstrum, in logarithms plus 21, measures speech. The average of this
    measure triggers the detection. Without any voice, the last search_time + pre_trigger_time +
    measure_duration seconds remain. (MindSpore 2.10 never finds a voice.) Times are in seconds and
    frequencies in Hz.

    Args:
        sample_rate (int): The sampling rate.
        trigger_level (float): What the average over `trigger_time` must reach. Default: 7.0.
        trigger_time (float): The time of that average. Default: 0.25.
        search_time (float): How far back the earliest burst is looked for, with which the result
            begins. Default: 1.0.
        allowed_gap (float): The longest gap that may follow such a burst. Default: 0.25.
        pre_trigger_time (float): How much of what precedes the burst is kept. Default: 0.0.
        boot_time (float): How long the first estimate of the noise takes. Default: 0.35.
        noise_up_time (float): The time constant of the estimate where the noise rises; ValueError
            if it is less than the next. Default: 0.1.
        noise_down_time (float): The time constant of the estimate where the noise falls. Default:
            0.01.
        noise_reduction_amount (float): How many times the estimate is subtracted. Default: 1.35.
        measure_freq (float): How often to measure in a second. Default: 20.0.
        measure_duration (float | None): Over how long to measure; None for 2 / measure_freq.
            Default: None.
        measure_smooth_time (float): The time constant that smooths the spectrum. Default: 0.4.
        hp_filter_freq (float): The lower end of the band of the spectrum. Default: 50.0.
        lp_filter_freq (float): The upper end of the band of the spectrum. Default: 6000.0.
        hp_lifter_freq (float): The lower end of the band of the cepstrum. Default: 150.0.
        lp_lifter_freq (float): The upper end of the band of the cepstrum. Default: 2000.0.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import audio
        >>> audio.Vad(600, search_time=0.0)(np.zeros((2, 100), np.float32)).shape
        (2, 60)
    """

    vectorised = False

    def __init__(
        self,
        sample_rate: int,
        trigger_level: float = 7.0,
        trigger_time: float = 0.25,
        search_time: float = 1.0,
        allowed_gap: float = 0.25,
        pre_trigger_time: float = 0.0,
        boot_time: float = 0.35,
        noise_up_time: float = 0.1,
        noise_down_time: float = 0.01,
        noise_reduction_amount: float = 1.35,
        measure_freq: float = 20.0,
        measure_duration: float | None = None,
        measure_smooth_time: float = 0.4,
        hp_filter_freq: float = 50.0,
        lp_filter_freq: float = 6000.0,
        hp_lifter_freq: float = 150.0,
        lp_lifter_freq: float = 2000.0,
    ) -> None:
        self.sample_rate = check_int("Vad", "sample_rate", sample_rate, 1)
        self.trigger_level = check_float("Vad", "trigger_level", trigger_level)
        self.trigger_time = check_float("Vad", "trigger_time", trigger_time, 0)
        self.search_time = check_float("Vad", "search_time", search_time, 0)
        self.allowed_gap = check_float("Vad", "allowed_gap", allowed_gap, 0)
        self.pre_trigger_time = check_float("Vad", "pre_trigger_time", pre_trigger_time, 0)
        self.boot_time = check_float("Vad", "boot_time", boot_time, 0)
        self.noise_up_time = check_float("Vad", "noise_up_time", noise_up_time, 0)
        self.noise_down_time = check_float("Vad", "noise_down_time", noise_down_time, 0)
        if self.noise_up_time < self.noise_down_time:
            raise ValueError(
                f"Vad: noise_up_time, {noise_up_time}, must not be less than noise_down_time, {noise_down_time}"
            )
        self.noise_reduction_amount = check_float("Vad", "noise_reduction_amount", noise_reduction_amount, 0)
        self.measure_freq = check_positive("Vad", "measure_freq", measure_freq)
        duration = check_float("Vad", "measure_duration", measure_duration, 0, none=True)
        self.measure_duration = 2.0 / self.measure_freq if duration is None else duration
        self.measure_smooth_time = check_float("Vad", "measure_smooth_time", measure_smooth_time, 0)
        self.hp_filter_freq = check_positive("Vad", "hp_filter_freq", hp_filter_freq)
        self.lp_filter_freq = check_positive("Vad", "lp_filter_freq", lp_filter_freq)
        self.hp_lifter_freq = check_positive("Vad", "hp_lifter_freq", hp_lifter_freq)
        self.lp_lifter_freq = check_positive("Vad", "lp_lifter_freq", lp_lifter_freq)

    def compute(self, array: Array, lead: int) -> Array:
        values = self.floats(array, lead)
        flat = values.reshape(-1, values.shape[-1])
        return values[..., self._begin(np.ascontiguousarray(flat, np.float64)) :]

    def _keep(self, seconds: float) -> float:
        """Return what an average over these seconds keeps of its value until the next measure."""
        return math.exp(-1.0 / (seconds * self.measure_freq)) if seconds else 0.0

    def _begin(self, waveform: Array) -> int:
        """Return the number of the first sample to keep of [channel, time]."""
        period = int(self.sample_rate / self.measure_freq + 0.5)
        meter = _Meter(self, len(waveform))
        slots = math.ceil(self.search_time * self.measure_freq)
        gap = int(self.allowed_gap * self.measure_freq + 0.5)
        measures = np.zeros((len(waveform), max(slots, 1)))
        means = [0.0] * len(waveform)
        keep = self._keep(self.trigger_time)
        least = int(self.pre_trigger_time * self.sample_rate + 0.5) + meter.length
        length: int = waveform.shape[-1]
        ends = range(meter.length, length + 1, max(period, 1))
        for turn, (end, levels) in enumerate(zip(ends, meter.levels(waveform, ends))):
            wanted = 0
            triggered = False
            for channel, level in enumerate(levels):
                if slots:
                    measures[channel, turn % slots] = level
                means[channel] = means[channel] * keep + level * (1 - keep)
                if means[channel] >= self.trigger_level:
                    triggered = True
                    recent = np.roll(measures[channel, :slots][::-1], turn % slots + 1 if slots else 0)
                    wanted = max(wanted, self._reach_back(recent, gap))
            if triggered:
                return max(end - wanted * period - least, 0)
        return int(max(length - slots * period - least, 0))

    def _reach_back(self, recent: Array, gap: int) -> int:
        """Return how many measures before the trigger belong to the voice.

        `recent` has the latest measure first.
        """
        count = len(recent)
        burst = quiet = count
        for position, level in enumerate(recent.tolist()):
            if level >= self.trigger_level and position <= burst + gap:
                burst = quiet = position
            elif level == 0 and burst >= quiet:
                quiet = position
        return min(count, quiet)


class _Meter:
    """A meter of speech in stretches of `length` samples.

    It keeps estimates of each channel's spectrum and noise.
    """

    def __init__(self, vad: Vad, channels: int) -> None:
        self.vad = vad
        self.length = int(vad.sample_rate * vad.measure_duration + 0.5)
        size = 16
        while size < self.length:
            size *= 2
        self.size = size
        self.window = _hann(self.length) * (2.0 / math.sqrt(max(self.length, 1)))
        low = max(int(vad.hp_filter_freq / vad.sample_rate * size + 0.5), 1)
        high = min(int(vad.lp_filter_freq / vad.sample_rate * size + 0.5), size // 2)
        self.band = slice(low, max(high, low))
        bins = self.band.stop - self.band.start
        self.lifter = _hann(bins) * (2.0 / math.sqrt(max(bins, 1)))
        first = math.ceil(vad.sample_rate * 0.5 / vad.lp_lifter_freq)
        last = min(math.floor(vad.sample_rate * 0.5 / vad.hp_lifter_freq), size // 4)
        if last <= first:
            raise RuntimeError(
                f"Vad: no cepstrum lies between hp_lifter_freq, {vad.hp_lifter_freq:g}, and lp_lifter_freq, "
                f"{vad.lp_lifter_freq:g} Hz, at a rate of {vad.sample_rate}"
            )
        self.quefrencies = slice(first, last)
        self.spectrum = np.zeros((channels, bins))
        self.noise = np.zeros((channels, bins))
        self.begun = 0
        # Moments of the first estimate of the noise.
        self.boot = int(vad.boot_time * vad.measure_freq - 0.5) + 1

    def levels(self, waveform: Array, ends: range) -> Iterator[list[float]]:
        """Yield how much the samples before each of `ends` resemble speech, for each channel.

        The waveform is float64 in C order. Moments are computed some at a time: few at first, as a
        voice may begin soon.
        """
        first, count = 0, _AT_FIRST
        while first < len(ends):
            some = ends[first : first + count]
            first, count = first + len(some), min(2 * count, max(_AT_FIRST, _AT_ONCE // self.size))
            shape = len(waveform), len(some), self.length
            strides = waveform.strides[0], 8 * some.step, 8
            stretches = np.ndarray(shape, np.float64, waveform, 8 * (some[0] - self.length), strides)
            found = np.abs(np.fft.rfft(stretches * self.window, self.size)[..., self.band])
            clean = self._clean(found)
            padded = np.zeros((*found.shape[:2], self.size // 2))
            padded[..., self.band] = clean * self.lifter
            cepstra = np.abs(np.fft.rfft(padded)[..., self.quefrencies]) ** 2
            yield from map(self._speech, cepstra.sum(axis=-1).T.tolist())

    def _clean(self, found: Array) -> Array:
        """Return the spectra [channel, moment, bin] of the next moments without their noise."""
        vad, count = self.vad, found.shape[1]
        up, down = vad._keep(vad.noise_up_time), vad._keep(vad.noise_down_time)
        shares, begun = np.full(count, vad._keep(vad.measure_smooth_time)), self.begun
        # The first moments are averaged evenly, and their noise is not kept.
        boot = min(max(self.boot - begun, 0), count)
        shares[:boot] = np.arange(begun, begun + boot) / (1.0 + np.arange(begun, begun + boot))
        self.begun = begun + count
        result = np.empty(found.shape)
        if are_on():
            amount, bins = vad.noise_reduction_amount, found.shape[-1]
            for channel, given in enumerate(np.ascontiguousarray(found)):
                kept = self.spectrum[channel], self.noise[channel]
                audio_kernels.smooth(given, count, bins, shares, up, down, boot, amount, *kept, result[channel])
            return result
        for moment, keep in enumerate(shares.tolist()):
            self.spectrum = self.spectrum * keep + found[:, moment] * (1 - keep)
            power = self.spectrum**2
            holding = np.where(power > self.noise, up, down) if moment >= boot else 0.0
            self.noise = self.noise * holding + power * (1 - holding)
            result[:, moment] = np.sqrt(np.maximum(power - vad.noise_reduction_amount * self.noise, 0.0))
        return result

    def _speech(self, totals: list[float]) -> list[float]:
        """Return how much channels resemble speech, at least 0, by the powers of their cepstra."""
        count = self.quefrencies.stop - self.quefrencies.start
        return [max(0.0, 21.0 + math.log(total / count)) if total > 0 else 0.0 for total in totals]


# Moments that are computed first, and samples of spectra that are computed at once.
_AT_FIRST = 16
_AT_ONCE = 1 << 16


_windows = Remembered[int, Array]("windows of Hann", 64)


def _hann(length: int) -> Array:
    """Return the periodic Hann window, which is not to be written to."""
    return _windows.recall(length, lambda: _made_hann(length))


def _made_hann(length: int) -> Array:
    return np.asarray(0.5 - 0.5 * np.cos(2 * math.pi / max(length, 1) * np.arange(length)))
