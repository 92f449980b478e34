"""Compiled loops over the samples of waveforms.

They are routines, and compute what the operations of NumPy beside their calls do, in the same
order.
"""

from __future__ import annotations

from mycel._src.engines.routines import routine
from mycel._src.engines.routines.routine_language import (
    Const,
    Double,
    Doubles,
    Elements,
    Int,
    Longs,
    f32,
    f64,
    floor,
    sqrt,
)

__all__ = [
    "bend",
    "centre",
    "descend",
    "dither",
    "filter_rows",
    "flange",
    "interpolate",
    "move",
    "overlap",
    "phase",
    "slopes",
    "smooth",
]


def _limited(value: Double) -> Double:
    """Return a number limited to [-1, 1]; what is not a number stays so."""
    return -1.0 if value < -1.0 else (1.0 if value > 1.0 else value)


def _kept(value: Double, double: Const) -> Double:
    """Return a float64, in float32 unless it is to stay `double`."""
    return value if double else f32(value)


@routine
def filter_rows(
    source: Elements,
    rows: Int,
    length: Int,
    b0: Double,
    b1: Double,
    b2: Double,
    a1: Double,
    a2: Double,
    clamp: Const,
    double: Const,
    result: Elements,
) -> None:
    """Write the `rows` waveforms of `source`, of `length` samples, filtered to `result`.

    The operations are those of SciPy's `lfilter`, in its order: the transposed direct form II. Two
    waveforms are computed side by side, as each sample waits for the one before it.

    * `b0`, `b1`, `b2`, `a1`, `a2`: the coefficients, with a0 = 1.
    * `clamp`: whether results are limited to [-1, 1].
    * `double`: whether they are float64, not float32.
    """
    for half in range((rows + 1) // 2):
        one = 2 * half * length
        # The last one of an odd number goes with itself.
        other = one if 2 * half + 1 == rows else one + length
        first, second = 0.0, 0.0
        third, fourth = 0.0, 0.0
        for i in range(length):
            x = f64(source[one + i])
            u = f64(source[other + i])
            y = first + b0 * x
            v = third + b0 * u
            first = second + x * b1 - y * a1
            third = fourth + u * b1 - v * a1
            second = x * b2 - y * a2
            fourth = u * b2 - v * a2
            if clamp:
                result[one + i] = _kept(_limited(y), double)
                result[other + i] = _kept(_limited(v), double)
            else:
                result[one + i] = _kept(y, double)
                result[other + i] = _kept(v, double)


@routine
def bend(
    source: Elements, rows: Int, length: Int, gain: Double, color: Double, double: Const, result: Elements
) -> None:
    """Write `rows` waveforms of `length` samples in `source`, bent as in `Overdrive`, to `result`.

    * `gain`, `color`: what samples are multiplied by, and what is added to them.
    * `double`: whether samples are float64, not float32.
    """
    for r in range(rows):
        state = 0.0
        for i in range(length):
            value = f64(source[r * length + i])
            driven = _limited(value * gain + color)
            bent = driven - driven * driven * driven / 3.0
            found = state + bent
            state = bent * -1.0 - found * -0.995
            result[r * length + i] = _kept(_limited(value * 0.5 + found * 0.75), double)


@routine
def phase(
    source: Elements,
    rows: Int,
    length: Int,
    gain: Double,
    decay: Double,
    out: Double,
    delays: Longs,
    period: Int,
    ring: Doubles,
    size: Int,
    double: Const,
    result: Elements,
) -> None:
    """Write `rows` waveforms of `length` samples to `result`, as `Phaser` says.

    * `source`: the waveforms; `double` is whether they are float64, not float32.
    * `gain`, `decay`, `out`: the gains of samples, of what is fed back, and of results.
    * `delays`, `period`: the delays, below `size`, which recur after `period` samples.
    * `ring`, `size`: memory for as many past samples.
    """
    for r in range(rows):
        for i in range(size):
            ring[i] = 0.0
        now, turn = 0, 0
        for i in range(length):
            place = now + delays[turn]
            place = place - size if place >= size else place
            value = f64(source[r * length + i]) * gain + ring[place]
            now = 0 if now + 1 == size else now + 1
            turn = 0 if turn + 1 == period else turn + 1
            ring[now] = value * decay
            result[r * length + i] = _kept(_limited(value * out), double)


@routine
def flange(
    source: Elements,
    rows: Int,
    channels: Int,
    length: Int,
    feedback: Double,
    straight: Double,
    mixed: Double,
    whole: Longs,
    part: Doubles,
    offsets: Longs,
    period: Int,
    ring: Doubles,
    size: Int,
    quadratic: Const,
    result: Doubles,
) -> None:
    """Write `rows` * `channels` waveforms of `length` samples to `result`, as in `Flanger`.

    * `source`: the waveforms.
    * `feedback`, `straight`, `mixed`: gains of what is fed back, of samples, of delayed ones.
    * `whole`, `part`: the delays in samples, at most `size` - 2, and the fractions that are left.
      They recur after `period` samples; `offsets` says where each channel begins.
    * `ring`, `size`: memory for as many past samples.
    * `quadratic`: whether to interpolate between three samples instead of two.
    """
    for r in range(rows):
        for c in range(channels):
            for i in range(size):
                ring[i] = 0.0
            base = (r * channels + c) * length
            turn = offsets[c]
            now = 0
            last = 0.0
            for i in range(length):
                now = size - 1 if now == 0 else now - 1
                value = f64(source[base + i])
                ring[now] = value + last * feedback
                p = part[turn]
                place = now + whole[turn]
                place = place - size if place >= size else place
                first = ring[place]
                place = 0 if place + 1 == size else place + 1
                second = ring[place] - first
                if quadratic:
                    place = 0 if place + 1 == size else place + 1
                    third = ring[place] - first
                    last = first + ((third * 0.5 - second) * p + second * 2.0 - third * 0.5) * p
                else:
                    last = first + second * p
                result[base + i] = _limited(value * straight + last * mixed)
                turn = 0 if turn + 1 == period else turn + 1


@routine
def move(source: Elements, count: Int, numbers: Elements, result: Elements) -> None:
    """Write `count` samples of `source`, shifted as `DCShift` says, to `result`.

    `numbers`, of the samples' type, are the shift, the gain, the threshold, what 1 leaves of that,
    how far the shift goes, and its sign.
    """
    shift, gain, threshold = numbers[0], numbers[1], numbers[2]
    rest, distance, sign = numbers[3], numbers[4], numbers[5]
    for i in range(count):
        ahead = sign * source[i]
        squeezed = (ahead - threshold) * gain / rest + threshold + distance
        least = threshold if squeezed > threshold else squeezed
        moved = _limited(source[i] + shift)
        result[i] = sign * least if ahead > threshold else moved


def _dithered(value: Double, i: Int, length: Int, double: Const) -> Double:
    """Return a sample with the noise of its place, as `triangle` has it, in steps of 16 bits."""
    rising = f32(f64(2 * i) / f64(length))
    noise = rising if 2 * i <= length else 2.0 - rising
    moved = value * 32766.0 + (f64(noise) if double else noise)
    # Halves are rounded away from zero.
    size = abs(moved)
    down = floor(size)
    rounded = down + 1.0 if size - down >= 0.5 else down
    return (rounded if moved >= 0.0 else -rounded) / 32768.0


@routine
def dither(source: Elements, rows: Int, length: Int, shaped: Const, double: Const, result: Elements) -> None:
    """Write `rows` waveforms of `length` samples, rounded after noise in a triangle, to `result`.

    * `source`: the waveforms.
    * `shaped`: whether the error of each sample is added to the next one.
    * `double`: whether samples are float64, not float32.
    """
    for r in range(rows):
        for i in range(length):
            at = r * length + i
            found = _dithered(source[at], i, length, double)
            if shaped:
                before = i - 1 if i > 0 else 0
                value = source[r * length + before]
                error = _dithered(value, before, length, double) - value
                found = found + error if i > 0 else found
            result[at] = found


@routine
def centre(
    source: Elements,
    rows: Int,
    count: Int,
    bins: Int,
    starts: Longs,
    ends: Longs,
    scaled: Const,
    double: Const,
    totals: Doubles,
    squares: Doubles,
    result: Elements,
) -> None:
    """Write features minus their means over windows to `result`, as `SlidingWindowCmn` says.

    * `source`: `rows` arrays of `count` frames of `bins` features.
    * `starts`, `ends`: the window of each frame.
    * `scaled`: whether to divide by the deviations.
    * `double`: whether features are float64, not float32.
    * `totals`, `squares`: memory for the sums over the frames before each one, and one more.
    """
    for k in range(bins):
        totals[k] = 0.0
        if scaled:
            squares[k] = 0.0
    for r in range(rows):
        for t in range(count):
            for k in range(bins):
                value = f64(source[(r * count + t) * bins + k])
                totals[(t + 1) * bins + k] = totals[t * bins + k] + value
                if scaled:
                    squares[(t + 1) * bins + k] = squares[t * bins + k] + value * value
        for t in range(count):
            first, last = starts[t] * bins, ends[t] * bins
            size = f64(ends[t] - starts[t])
            single = ends[t] - starts[t] == 1
            at = (r * count + t) * bins
            for k in range(bins):
                mean = (totals[last + k] - totals[first + k]) / size
                centred = f64(source[at + k]) - mean
                if scaled:
                    variance = (squares[last + k] - squares[first + k]) / size - mean * mean
                    deviation = sqrt(1e-20 if variance < 1e-20 else variance)
                    centred = 0.0 if single else centred / deviation
                result[at + k] = _kept(centred, double)


@routine
def slopes(padded: Elements, rows: Int, length: Int, taps: Int, weights: Elements, result: Elements) -> None:
    """Write the sums of `taps` samples times `weights` to `result`: `rows` of `length` sums.

    Rows of `padded` have as many samples more as there are taps but one.
    """
    for r in range(rows):
        to, given = r * length, r * (length + taps - 1)
        for i in range(length):
            result[to + i] = padded[given + i] * weights[0]
        for k in range(1, taps):
            weight = weights[k]
            for i in range(length):
                result[to + i] = result[to + i] + padded[given + i + k] * weight


@routine
def overlap(
    frames: Doubles, rows: Int, count: Int, size: Int, hop: Int, window: Doubles, total: Int, result: Doubles
) -> None:
    """Add up `count` frames of `size` samples, `hop` apart and times `window`, in `rows` rows.

    Each of these, in `result`, has `total` samples, which are zero before.
    """
    for r in range(rows):
        for f in range(count):
            to, given = r * total + f * hop, (r * count + f) * size
            for i in range(size):
                result[to + i] = result[to + i] + frames[given + i] * window[i]


@routine
def descend(
    wanted: Doubles,
    rows: Int,
    mels: Int,
    bins: Int,
    frames: Int,
    places: Longs,
    columns: Longs,
    weights: Doubles,
    rate: Double,
    momentum: Double,
    steps: Int,
    loss_end: Double,
    change_end: Double,
    found: Doubles,
    speed: Doubles,
    error: Doubles,
    state: Doubles,
) -> None:
    """Improve the spectra `found` by at most `steps` steps of the descent of `InverseMelScale`.

    * `wanted`: the mel spectra, [`rows`, `mels`, `frames`]; spectra have `bins` in place of `mels`.
    * `places`, `columns`, `weights`: the filters, as the rows of a sparse matrix.
    * `rate`, `momentum`, `loss_end`, `change_end`: the constants of the descent.
    * `speed`, `error`: memory of the shapes of `found` and `wanted`; the first is kept.
    * `state`: the last loss, and 1.0 once the descent has ended.
    """
    step = 0
    many = f64(rows * frames)
    while step < steps:
        step = step + 1
        loss = 0.0
        for r in range(rows):
            for m in range(mels):
                at = (r * mels + m) * frames
                for t in range(frames):
                    error[at + t] = wanted[at + t]
                for j in range(places[m], places[m + 1]):
                    weight = weights[j]
                    given = (r * bins + columns[j]) * frames
                    for t in range(frames):
                        error[at + t] = error[at + t] - weight * found[given + t]
                for t in range(frames):
                    loss = loss + error[at + t] * error[at + t]
        loss = loss / many
        change = abs(state[0] - loss)
        state[0] = loss
        if (loss < loss_end) | (change < change_end):
            state[1] = 1.0
            step = steps
        else:
            for i in range(rows * bins * frames):
                speed[i] = speed[i] * momentum
            for r in range(rows):
                for m in range(mels):
                    at = (r * mels + m) * frames
                    for j in range(places[m], places[m + 1]):
                        weight = weights[j] * (-2.0 / many)
                        given = (r * bins + columns[j]) * frames
                        for t in range(frames):
                            speed[given + t] = speed[given + t] + weight * error[at + t]
            for i in range(rows * bins * frames):
                moved = found[i] - rate * speed[i]
                found[i] = 0.0 if moved < 0.0 else moved


@routine
def smooth(
    found: Doubles,
    count: Int,
    bins: Int,
    shares: Doubles,
    up: Double,
    down: Double,
    boot: Int,
    amount: Double,
    spectrum: Doubles,
    noise: Doubles,
    result: Doubles,
) -> None:
    """Write the roots of powers without noise, for `count` spectra of `bins`, to `result`.

    * `found`: the spectra, one after the other.
    * `shares`: how much of the smooth spectrum stays, for each of them.
    * `up`, `down`: how much of the noise stays where it rises, and falls; none of it in the first
      `boot` spectra.
    * `amount`: how many times the noise is subtracted.
    * `spectrum`, `noise`: the smooth spectrum and the noise, which are read and written.
    """
    for t in range(count):
        keep = shares[t]
        for k in range(bins):
            value = spectrum[k] * keep + found[t * bins + k] * (1.0 - keep)
            power = value * value
            louder = up if power > noise[k] else down
            holding = 0.0 if t < boot else louder
            quiet = noise[k] * holding + power * (1.0 - holding)
            rest = power - amount * quiet
            spectrum[k] = value
            noise[k] = quiet
            result[t * bins + k] = sqrt(0.0 if rest < 0.0 else rest)


@routine
def interpolate(
    padded: Doubles,
    rows: Int,
    span: Int,
    weights: Doubles,
    taps: Int,
    source: Int,
    target: Int,
    count: Int,
    planes: Doubles,
    sums: Doubles,
    result: Doubles,
) -> None:
    """Write `count` results for each of `rows` waveforms to `result`.

    Result i is the sum of `taps` samples from i * source // target on, times row i % target of
    `weights`, in their order. Those of one phase, `target` apart, are computed side by side: their
    samples are `source` apart, and lie in one of as many planes.

    * `padded`: the waveforms, each of `span` * `source` samples.
    * `planes`, `sums`: memory for as many samples, and for the results of a phase.
    """
    for r in range(rows):
        for j in range(span):
            for q in range(source):
                planes[q * span + j] = padded[(r * span + j) * source + q]
        for p in range(target):
            some = (count - p + target - 1) // target
            first = p * source // target
            for k in range(some):
                sums[k] = 0.0
            for t in range(taps):
                plane = (first + t) % source * span + (first + t) // source
                weight = weights[p * taps + t]
                for k in range(some):
                    sums[k] = sums[k] + planes[plane + k] * weight
            for k in range(some):
                result[r * count + p + k * target] = sums[k]
