"""Effects on the volume and the shape of waveforms [..., time].

Results are float64 for float64 and float32 otherwise, unless stated otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.engines.routines import are_on
from mycel._src.foundation.bounded_caches import Remembered
from mycel.dataset.audio import audio_kernels
from mycel.dataset.audio.base import (
    FLOAT_MAX,
    AudioTransform,
    check_bool,
    check_choice,
    check_float,
    check_int,
    check_positive,
    float_type,
)
from mycel.dataset.audio.enums import DensityFunction, FadeShape, GainType
from mycel.dataset.audio.filters import recursive_filter
from mycel.dataset.random_numbers.random_streams import current_stream
from mycel.dataset.rows.column_blocks import Array


def limit(array: Array) -> Array:
    """Limit values to [-1, 1]."""
    result: Array = np.clip(array, -1.0, 1.0)
    return result


class Contrast(AudioTransform):
    """Contrast enhancement, which makes a recording sound louder (SoX `contrast`).

    The result is sin(x pi/2 + c sin(2 pi x)) with c = enhancement_amount / 750, where the amount
    lies within [0, 100].

    >>> import numpy as np
    >>> from mycel.dataset import audio
    >>> audio.Contrast(0.0)(np.array([0.0, 1.0], np.float32)).tolist()
    [0.0, 1.0]
    """

    def __init__(self, enhancement_amount: float = 75.0) -> None:
        self.enhancement_amount = check_float("Contrast", "enhancement_amount", enhancement_amount, 0, 100)

    def compute(self, array: Array, lead: int) -> Array:
        angle = self.floats(array, lead) * (math.pi / 2)
        result: Array = np.sin(angle + self.enhancement_amount / 750 * np.sin(angle * 4))
        return result


class DCShift(AudioTransform):
    """A shift by `shift`, within [-2, 2], that squeezes the peaks it would clip (SoX `dcshift`).

    With l the limiter gain (default: `shift`) and t = 1 - (|shift| - l), a value x > t becomes t +
    shift + (x - t) l / (1 - t), at most t; all others become x + shift, within [-1, 1]. Negative
    shifts squeeze negative peaks symmetrically (MindSpore 2.10 moves these close to zero instead).

    >>> import numpy as np
    >>> from mycel.dataset import audio
    >>> audio.DCShift(0.5, 0.02)(np.array([0.25, -0.5])).tolist()
    [0.75, 0.0]
    """

    def __init__(self, shift: float, limiter_gain: float | None = None) -> None:
        self.shift = check_float("DCShift", "shift", shift, -2, 2)
        wide = float(np.finfo(np.float64).max)
        self.limiter_gain = check_float("DCShift", "limiter_gain", limiter_gain, -wide, wide, none=True)

    def compute(self, array: Array, lead: int) -> Array:
        values = self.floats(array, lead)
        gain = self.shift if self.limiter_gain is None else self.limiter_gain
        sign = -1.0 if self.shift < 0 else 1.0
        threshold = 1.0 - (abs(self.shift) - gain)
        if self.shift and threshold != 1.0 and are_on():
            numbers = self.shift, gain, threshold, 1 - threshold, abs(self.shift), sign
            result = np.empty_like(values, order="C")
            audio_kernels.move(np.ascontiguousarray(values), values.size, np.array(numbers, values.dtype), result)
            return result
        moved = limit(values + values.dtype.type(self.shift))
        if not self.shift or threshold == 1.0:
            return moved
        ahead = sign * values
        squeezed = (ahead - threshold) * gain / (1 - threshold) + threshold + abs(self.shift)
        return np.where(ahead > threshold, sign * np.minimum(squeezed, threshold), moved).astype(values.dtype)


_FADES: dict[FadeShape, Callable[[Array], Array]] = {
    FadeShape.LINEAR: lambda t: t,
    FadeShape.EXPONENTIAL: lambda t: np.exp2(t - 1) * t,
    FadeShape.LOGARITHMIC: lambda t: np.log10(0.1 + t) + 1,
    FadeShape.QUARTER_SINE: lambda t: np.sin(t * (math.pi / 2)),
    FadeShape.HALF_SINE: lambda t: np.sin(t * math.pi - math.pi / 2) / 2 + 0.5,
}


_fades = Remembered[tuple[FadeShape, int, int], tuple[Array, Array]]("fades", 16)


def _ramps(shape: FadeShape, into: int, out: int) -> tuple[Array, Array]:
    """Return the gains of the first `into` and of the last `out` samples, float64."""
    make = _FADES[shape]
    return make(np.linspace(0, 1, into)), make(1 - np.linspace(0, 1, out))


class Fade(AudioTransform):
    """A fade-in over the first `fade_in_len` samples and a fade-out over the last `fade_out_len`.

    With t from 0 (silence) to 1, `fade_shape` is LINEAR t, EXPONENTIAL 2^(t-1) t, LOGARITHMIC
    log10(0.1 + t) + 1 (up to 1.04), QUARTER_SINE sin(t pi/2), or HALF_SINE sin(t pi - pi/2)/2 +
    1/2. Raises RuntimeError where a fade is longer than the waveform. Without any fade the waveform
    is returned unchanged.

    >>> import numpy as np
    >>> from mycel.dataset import audio
    >>> audio.Fade(3, 2)(np.ones(6, np.float32)).tolist()
    [0.0, 0.5, 1.0, 1.0, 1.0, 0.0]
    """

    def __init__(self, fade_in_len: int = 0, fade_out_len: int = 0, fade_shape: FadeShape = FadeShape.LINEAR) -> None:
        self.fade_in_len = check_int("Fade", "fade_in_len", fade_in_len, 0)
        self.fade_out_len = check_int("Fade", "fade_out_len", fade_out_len, 0)
        self.fade_shape = check_choice("Fade", "fade_shape", fade_shape, FadeShape)

    def compute(self, array: Array, lead: int) -> Array:
        self.check(array, lead)
        length = array.shape[-1]
        into, out = self.fade_in_len, self.fade_out_len
        if max(into, out) > length:
            name, count = ("fade_in_len", into) if into > length else ("fade_out_len", out)
            raise RuntimeError(f"Fade: {name}, {count}, exceeds the length of the waveform, {length}")
        if not into and not out:
            return array
        dtype = float_type(array)
        rising, falling = _fades.recall((self.fade_shape, into, out), lambda: _ramps(self.fade_shape, into, out))
        result: Array = np.array(array, dtype, order="C")
        if into + out <= length:
            result[..., :into] *= rising.astype(dtype)
            result[..., length - out :] *= falling.astype(dtype)
            return result
        gains = np.ones(length)
        gains[:into] *= rising
        gains[length - out :] *= falling
        result *= gains.astype(dtype)
        return result


class Gain(AudioTransform):
    """Multiplication by 10^(gain_db / 20).

    >>> import numpy as np
    >>> from mycel.dataset import audio
    >>> audio.Gain(20.0)(np.array([1.0, 2.0], np.float32)).tolist()
    [10.0, 20.0]
    """

    def __init__(self, gain_db: float = 1.0) -> None:
        self.gain_db = check_float("Gain", "gain_db", gain_db)

    def compute(self, array: Array, lead: int) -> Array:
        values = self.floats(array, lead)
        result: Array = values * values.dtype.type(10 ** (self.gain_db / 20)) if self.gain_db else values
        return result


class Vol(AudioTransform):
    """Multiplication by a gain, limited to [-1, 1].

    The gain is `gain` itself (AMPLITUDE, not negative), its square root (POWER, positive), or
    10^(gain / 20) (DB).

    >>> import numpy as np
    >>> from mycel.dataset import audio
    >>> audio.Vol(2.0)(np.array([0.25, 0.75], np.float32)).tolist()
    [0.5, 1.0]
    """

    def __init__(self, gain: float, gain_type: GainType = GainType.AMPLITUDE) -> None:
        self.gain_type = check_choice("Vol", "gain_type", gain_type, GainType)
        if gain_type is GainType.POWER:
            self.gain = check_positive("Vol", "gain", gain)
        else:
            self.gain = check_float("Vol", "gain", gain, 0 if gain_type is GainType.AMPLITUDE else -FLOAT_MAX)

    def compute(self, array: Array, lead: int) -> Array:
        values = self.floats(array, lead)
        ratio = self.gain
        if self.gain_type is not GainType.AMPLITUDE:
            ratio = math.sqrt(self.gain) if self.gain_type is GainType.POWER else 10 ** (self.gain / 20)
        return limit(values * values.dtype.type(ratio))


class MuLawEncoding(AudioTransform):
    """Mu-law companding (ITU-T G.711) of values within [-1, 1] into int32 codes.

    With m = quantization_channels - 1, a code is (sign(x) log(1 + m |x|) / log(1 + m) + 1) / 2 * m
    + 0.5, rounded towards zero, within 0 .. m.

    >>> import numpy as np
    >>> from mycel.dataset import audio
    >>> audio.MuLawEncoding()(np.array([-1.0, 0.0, 1.0])).tolist()
    [0, 128, 255]
    """

    def __init__(self, quantization_channels: int = 256) -> None:
        self.quantization_channels = check_int("MuLawEncoding", "quantization_channels", quantization_channels, 1)

    def compute(self, array: Array, lead: int) -> Array:
        values = self.floats(array, lead)
        top = values.dtype.type(self.quantization_channels - 1)
        if top == 0:
            return np.zeros(values.shape, np.int32)
        companded = np.sign(values) * np.log1p(top * np.abs(values)) / np.log1p(top)
        return np.asarray((companded + 1) / 2 * top + 0.5).astype(np.int32)


class MuLawDecoding(AudioTransform):
    """The values of mu-law codes 0 .. quantization_channels - 1.

    With m = channels - 1 and y = 2 code / m - 1, a value is sign(y) ((1 + m)^|y| - 1) / m.

    >>> import numpy as np
    >>> from mycel.dataset import audio
    >>> audio.MuLawDecoding()(np.array([0, 255])).tolist()
    [-1.0, 1.0]
    """

    def __init__(self, quantization_channels: int = 256) -> None:
        self.quantization_channels = check_int("MuLawDecoding", "quantization_channels", quantization_channels, 1)

    def compute(self, array: Array, lead: int) -> Array:
        codes = self.floats(array, lead)
        top = codes.dtype.type(self.quantization_channels - 1)
        if top == 0:
            raise RuntimeError("MuLawDecoding: one quantization channel has no values; use at least 2")
        companded = codes / top * 2 - 1
        result: Array = np.sign(companded) * np.expm1(np.abs(companded) * np.log1p(top)) / top
        return result


class Overdrive(AudioTransform):
    """Distortion (SoX `overdrive`).

    x is amplified by `gain` dB, shifted by color / 200, and bent by z - z^3 / 3. Its offset is
    removed (y[n] = z[n] - z[n-1] + 0.995 y[n-1]), and the result is x / 2 + 3 y / 4, within [-1,
    1]. Both arguments lie within [0, 100].

    >>> import numpy as np
    >>> from mycel.dataset import audio
    >>> audio.Overdrive()(np.zeros((2, 3), np.float32)).shape
    (2, 3)
    """

    def __init__(self, gain: float = 20.0, color: float = 20.0) -> None:
        self.gain = check_float("Overdrive", "gain", gain, 0, 100)
        self.color = check_float("Overdrive", "color", color, 0, 100)

    def compute(self, array: Array, lead: int) -> Array:
        values = self.floats(array, lead)
        if are_on():
            result = np.empty_like(values, order="C")
            length = values.shape[-1]
            audio_kernels.bend(
                np.ascontiguousarray(values),
                values.size // max(length, 1),
                length,
                10 ** (self.gain / 20),
                self.color / 200,
                values.dtype == np.float64,
                result,
            )
            return result
        driven = np.clip(values.astype(np.float64) * 10 ** (self.gain / 20) + self.color / 200, -1, 1)
        bent = recursive_filter(driven - driven * driven * driven / 3, (1.0, -1.0), (1.0, -0.995), clamp=False)
        return limit(values * 0.5 + bent * 0.75).astype(values.dtype)


def triangle(length: int) -> Array:
    """Return the periodic Bartlett window of this length, rounded to float32 as MindSpore's."""
    places = np.arange(length)
    rising = (2 * places / max(length, 1)).astype(np.float32)
    return np.where(2 * places <= length, rising, np.float32(2) - rising)


class Dither(AudioTransform):
    """Rounding to 16 bits after adding noise, so that rounding errors do not follow the signal.

    The waveform is multiplied by 2^15 - 2, receives noise, is rounded, and is divided by 2^15. The
    noise is a triangle over time (TPDF, a Bartlett window), or drawn from the waveform itself: one
    sample minus a half (RPDF), or the mean of six (GPDF). With `noise_shaping`, the error of each
    sample is added to the next one.

    >>> import numpy as np
    >>> from mycel.dataset import audio
    >>> bool(abs(audio.Dither()(np.full(4, 0.5)) - 0.5).max() < 1e-3)
    True
    """

    random = True
    vectorised = False

    def __init__(self, density_function: DensityFunction = DensityFunction.TPDF, noise_shaping: bool = False) -> None:
        self.density_function = check_choice("Dither", "density_function", density_function, DensityFunction)
        self.noise_shaping = check_bool("Dither", "noise_shaping", noise_shaping)

    def compute(self, array: Array, lead: int) -> Array:
        values = self.floats(array, lead)
        if not values.size:
            return values
        length = values.shape[-1]
        if self.density_function is DensityFunction.TPDF and are_on():
            result = np.empty_like(values, order="C")
            rows, double = values.size // length, values.dtype == np.float64
            audio_kernels.dither(np.ascontiguousarray(values), rows, length, self.noise_shaping, double, result)
            return result
        moved = values * values.dtype.type(2**15 - 2) + self._noise(values)
        # Halves are rounded away from zero.
        size = np.abs(moved)
        down = np.floor(size)
        dithered = np.copysign(down + (size - down >= 0.5), moved) / values.dtype.type(2**15)
        if self.noise_shaping:
            error = dithered - values
            error[..., 1:] = error[..., :-1]
            error[..., 0] = 0
            dithered = dithered + error
        return np.asarray(dithered, values.dtype)

    def _noise(self, values: Array) -> Any:
        length = values.shape[-1]
        if self.density_function is DensityFunction.TPDF:
            return triangle(length)
        stream = current_stream()
        rows = values.reshape(-1, length)
        count = 1 if self.density_function is DensityFunction.RPDF else 6
        row = stream.integer(0, len(rows) - 1)
        drawn = [float(rows[row, stream.integer(0, length - 1)]) for _ in range(count)]
        return drawn[0] - 0.5 if count == 1 else sum(drawn) / count
