"""Effects whose delay follows a slow wave: flanger and phaser.

Both read a ring buffer of past samples at a moving place, one sample after the other, as each may
depend on the one before it. A routine does it channel by channel; without routines, all channels
are computed together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.engines.routines import are_on
from mycel._src.foundation.bounded_caches import Remembered
from mycel.dataset.audio import audio_kernels
from mycel.dataset.audio.base import AudioTransform, check_bool, check_choice, check_float, check_int, check_rate
from mycel.dataset.audio.effects import limit
from mycel.dataset.audio.enums import Interpolation, Modulation
from mycel.dataset.rows.column_blocks import Array


def wave_table(kind: Modulation, size: int, low: float, high: float, phase: float) -> Array:
    """Return one period of a sine or triangle.

    * `kind`: the wave.
    * `size`: the number of values.
    * `low`, `high`: the least and the greatest value.
    * `phase`: where the period starts, in radians.
    """
    points = (np.arange(size) + int(phase / math.pi / 2 * size + 0.5)) % max(size, 1)
    if kind is Modulation.SINUSOIDAL:
        wave = (np.sin(points / max(size, 1) * 2 * math.pi) + 1) / 2
    else:
        quarter = 4 * points // max(size, 1)
        ramp = points * 2.0 / max(size, 1)
        wave = np.where(quarter == 0, ramp + 0.5, np.where(quarter == 3, ramp - 1.5, 1.5 - ramp))
    return wave * (high - low) + low


# Longer periods take too much memory to be kept.
_LONG = 1 << 20
_tables = Remembered[tuple[Any, ...], tuple[Array, Array]]("tables of delays", 16)


def _remembered(key: tuple[Any, ...], period: int, make: Callable[[], tuple[Array, Array]]) -> tuple[Array, Array]:
    return _tables.recall(key, make) if period <= _LONG else make()


def _delays(kind: Modulation, period: int, size: int) -> Array:
    """Return the delays of a phaser in samples, below `size`, for each sample of a period."""

    def make() -> tuple[Array, Array]:
        delays = np.floor(wave_table(kind, period, 1.0, size, math.pi / 2) + 0.5).astype(np.int64) % size
        return delays, delays

    return _remembered((kind, period, size), period, make)[0]


def _places(kind: Modulation, period: int, shortest: int, size: int) -> tuple[Array, Array]:
    """Return the delays of a flanger for each sample of a period: whole numbers, and fractions.

    `kind` is the wave, and the delays lie between `shortest` and `size` - 2.
    """

    def make() -> tuple[Array, Array]:
        table = wave_table(kind, period, shortest, size - 2.0, 3 * math.pi / 2)
        whole = np.floor(table)
        return whole.astype(np.int64), table - whole

    return _remembered((kind, period, shortest, size), period, make)


class Phaser(AudioTransform):
    """A waveform [..., time] mixed with its own delayed sound, which is fed back (SoX `phaser`).

    y[n] = gain_in x[n] + decay y[n - d(n)], times `gain_out` and limited to [-1, 1].

    Args:
        sample_rate (int): The sampling rate in Hz.
        gain_in (float): The gain before, within [0, 1]. Default: 0.4.
        gain_out (float): The gain after, within [0, 1e9]. Default: 0.74.
        delay_ms (float): The greatest delay d in milliseconds, within [0, 5]; the least is one
            sample. Default: 3.0.
        decay (float): The gain of the feedback, within [0, 0.99]. Default: 0.4.
        mod_speed (float): How often the delay swings in a second, within [0.1, 2]. Default: 0.5.
        sinusoidal (bool): Whether the delay follows a sine instead of a triangle. Default: True.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import audio
        >>> audio.Phaser(44100)(np.zeros((2, 3), np.float32)).shape
        (2, 3)
    """

    def __init__(
        self,
        sample_rate: int,
        gain_in: float = 0.4,
        gain_out: float = 0.74,
        delay_ms: float = 3.0,
        decay: float = 0.4,
        mod_speed: float = 0.5,
        sinusoidal: bool = True,
    ) -> None:
        self.sample_rate = check_int("Phaser", "sample_rate", sample_rate)
        self.gain_in = check_float("Phaser", "gain_in", gain_in, 0, 1)
        self.gain_out = check_float("Phaser", "gain_out", gain_out, 0, 1e9)
        self.delay_ms = check_float("Phaser", "delay_ms", delay_ms, 0, 5)
        self.decay = check_float("Phaser", "decay", decay, 0, 0.99)
        self.mod_speed = check_float("Phaser", "mod_speed", mod_speed, 0.1, 2)
        self.sinusoidal = check_bool("Phaser", "sinusoidal", sinusoidal)

    def compute(self, array: Array, lead: int) -> Array:
        values = self.floats(array, lead)
        size = int(self.delay_ms * 0.001 * self.sample_rate + 0.5)
        period = int(self.sample_rate / self.mod_speed + 0.5)
        if size < 1:
            raise RuntimeError(
                f"Phaser: a delay of {self.delay_ms} ms is less than one sample at {self.sample_rate} Hz"
            )
        kind = Modulation.SINUSOIDAL if self.sinusoidal else Modulation.TRIANGULAR
        length = values.shape[-1]
        delays = _delays(kind, period, size)
        if are_on():
            result = np.empty_like(values, order="C")
            audio_kernels.phase(
                np.ascontiguousarray(values),
                values.size // max(length, 1),
                length,
                self.gain_in,
                self.decay,
                self.gain_out,
                delays,
                period,
                np.empty(size),
                size,
                values.dtype == np.float64,
                result,
            )
            return result
        steps = np.arange(length)
        places = (steps + delays[steps % period]) % size
        samples = np.moveaxis(values, -1, 0).astype(np.float64) * self.gain_in
        ring = np.zeros((size, *samples.shape[1:]))
        for step in range(length):
            samples[step] += ring[places[step]]
            ring[(step + 1) % size] = samples[step] * self.decay
        return np.ascontiguousarray(np.moveaxis(limit(samples * self.gain_out), 0, -1)).astype(values.dtype)


class Flanger(AudioTransform):
    """A waveform [..., channel, time] mixed with its own delayed sound (SoX `flanger`).

    The delay swings, differently for each channel. Values are limited to [-1, 1]. Integers keep
    their type.

    Args:
        sample_rate (int): The sampling rate in Hz.
        delay (float): The least delay in milliseconds, within [0, 30]. Default: 0.0.
        depth (float): How much it grows, in milliseconds, within [0, 10]. Default: 2.0.
        regen (float): The percentage of the delayed sound that is fed back, within [-95, 95].
            Default: 0.0.
        width (float): The percentage of the delayed sound that is mixed in, within [0, 100].
            Default: 71.0.
        speed (float): How often the delay swings in a second, within [0.1, 10]. Default: 0.5.
        phase (float): How far channels swing apart, in percent of a period, within [0, 100].
            Default: 25.0.
        modulation (Modulation): The wave that the delay follows.
        interpolation (Interpolation): The interpolation between two samples.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import audio
        >>> audio.Flanger(44100)(np.zeros((2, 3), np.float32)).shape
        (2, 3)
    """

    axes = 2
    form = "<..., channel, time>"

    def __init__(
        self,
        sample_rate: int,
        delay: float = 0.0,
        depth: float = 2.0,
        regen: float = 0.0,
        width: float = 71.0,
        speed: float = 0.5,
        phase: float = 25.0,
        modulation: Modulation = Modulation.SINUSOIDAL,
        interpolation: Interpolation = Interpolation.LINEAR,
    ) -> None:
        self.sample_rate = check_rate("Flanger", sample_rate)
        self.delay = check_float("Flanger", "delay", delay, 0, 30)
        self.depth = check_float("Flanger", "depth", depth, 0, 10)
        self.regen = check_float("Flanger", "regen", regen, -95, 95)
        self.width = check_float("Flanger", "width", width, 0, 100)
        self.speed = check_float("Flanger", "speed", speed, 0.1, 10)
        self.phase = check_float("Flanger", "phase", phase, 0, 100)
        self.modulation = check_choice("Flanger", "modulation", modulation, Modulation)
        self.interpolation = check_choice("Flanger", "interpolation", interpolation, Interpolation)

    def compute(self, array: Array, lead: int) -> Array:
        self.check(array, lead)
        feedback = self.regen / 100
        mixed = self.width / 100
        straight = 1 / (1 + mixed)
        mixed = mixed / (1 + mixed) * (1 - abs(feedback))
        shortest = math.floor(self.delay / 1000 * self.sample_rate + 0.5)
        size = int((self.delay + self.depth) / 1000 * self.sample_rate + 0.5) + 2
        period = int(self.sample_rate / self.speed)
        if period < 1:
            raise RuntimeError(
                f"Flanger: {self.speed} swings a second are less than one sample each at {self.sample_rate} Hz"
            )
        channels, length = array.shape[-2:]
        offsets = (np.arange(channels) * period * (self.phase / 100) + 0.5).astype(np.int64)
        if are_on():
            whole, part = _places(self.modulation, period, shortest, size)
            found = np.empty(array.shape)
            audio_kernels.flange(
                np.ascontiguousarray(array, array.dtype if array.dtype in (np.float32, np.float64) else np.float64),
                array.size // max(channels * length, 1),
                channels,
                length,
                feedback,
                straight,
                mixed,
                whole,
                part,
                offsets % period,
                period,
                np.empty(size),
                size,
                self.interpolation is not Interpolation.LINEAR,
                found,
            )
            return found.astype(array.dtype, copy=False)
        table = wave_table(self.modulation, period, shortest, size - 2.0, 3 * math.pi / 2)
        samples = array.astype(np.float64).reshape(-1, channels, length)
        each = np.arange(channels)
        ring = np.zeros((len(samples), channels, size))
        last = np.zeros((len(samples), channels))
        result = np.empty_like(samples)
        place = 0
        for step in range(length):
            place = (place - 1) % size
            ring[:, :, place] = samples[:, :, step] + last * feedback
            wanted = table[(step + offsets) % period]
            whole = np.floor(wanted).astype(np.int64)
            part = wanted - whole
            first, second = (ring[:, each, (place + whole + more) % size] for more in (0, 1))
            if self.interpolation is Interpolation.LINEAR:
                last = first + (second - first) * part
            else:
                third = ring[:, each, (place + whole + 2) % size] - first
                second = second - first
                last = first + ((third * 0.5 - second) * part + second * 2 - third * 0.5) * part
            result[:, :, step] = samples[:, :, step] * straight + last * mixed
        return np.asarray(limit(result).reshape(array.shape), array.dtype)
