"""Loops over the values of pixels: colours, greys, tables, histograms."""

from typing import Any

from mycel._src.engines.routines import routine
from mycel._src.engines.routines.routine_language import (
    Bytes,
    Const,
    Double,
    Doubles,
    Elements,
    Floats,
    Int,
    Longs,
    f32,
    f64,
    floor,
    fused,
    i32,
    i64,
    least,
    looked_up,
    looked_up_at_once,
    most,
    rint,
    within,
)


@routine
def look_up(source: Bytes, count: Int, channels: Const, element: Const, table: Elements, result: Elements) -> None:
    """Look up `count` pixels of `source` in `table`, which has 256 values for each channel.

    `channels` is their number, `element` the type of values, and `result` the result.
    """
    _look_up(source, count, channels, element, table, result)


def _look_up(source: Bytes, count: Int, channels: Const, element: Const, table: Elements, result: Elements) -> None:
    done = i64(0)
    if element == "uint8" and looked_up_at_once() != 0 and channels <= 4:
        done = count // 64
        for n in range(done):
            for j in range(channels):
                at = (n * channels + j) * 64
                looked_up(source, at, table, channels, j * 64 % channels, result, at)
        done = done * 64
    for i in range(done, count):
        for c in range(channels):
            result[i * channels + c] = table[c * 256 + source[i * channels + c]]


@routine
def histogram(source: Bytes, count: Int, channels: Const, result: Longs) -> None:
    """Count the values of each channel of `count` pixels of `source`; adds up in `result`.

    `channels` is the number of channels.
    """
    for i in range(count):
        for c in range(channels):
            at = c * 256 + source[i * channels + c]
            result[at] = result[at] + 1


def _grey(source: Bytes, at: Int) -> Int:
    return (source[at] * 19595 + source[at + 1] * 38470 + source[at + 2] * 7471 + 32768) >> 16


@routine
def equalise(counts: Longs, channels: Int, tables: Bytes) -> None:
    """Write `tables` [channels, 256] by which histograms `counts` of the same shape become even."""
    for c in range(channels):
        at, total, first = c * 256, 0, 0
        for i in range(256):
            total += counts[at + i]
        while first < 255 and counts[at + first] == 0:
            first += 1
        rest = total - counts[at + first]
        if rest == 0:
            for i in range(256):
                tables[at + i] = i
        else:
            scale = f32(255.0 / f64(rest))
            sum = 0
            for i in range(256):
                sum += counts[at + i] if i > first else 0
                tables[at + i] = i32(within(rint(f64(f32(sum) * scale)), 0.0, 255.0))


@routine
def stretch(counts: Longs, channels: Int, cutoff: Double, tables: Bytes) -> None:
    """Write `tables` [channels, 256] by which histograms `counts` reach from 0 to 255.

    Of both ends `cutoff` percent are left out first.
    """
    for c in range(channels):
        at, total = c * 256, 0
        for i in range(256):
            total += counts[at + i]
        cut = i64(f64(total) * cutoff / 100.0)
        low, below = 0, counts[at]
        while low < 255 and below <= cut:
            low += 1
            below += counts[at + low]
        high, above = 255, counts[at + 255]
        while high > 0 and above <= cut:
            high -= 1
            above += counts[at + high]
        if high <= low:
            for i in range(256):
                tables[at + i] = i
        else:
            scale = f32(255) / f32(high - low)
            moved = f32(low) * scale
            for i in range(256):
                tables[at + i] = i32(within(f32(i) * scale - moved, 0.0, 255.0))


@routine
def greys(source: Bytes, count: Int, channels: Const, result: Bytes) -> None:
    """Write the greys of `count` colours of `source`, `channels` times, to `result`."""
    for i in range(count):
        value = _grey(source, 3 * i)
        for c in range(channels):
            result[i * channels + c] = value


@routine
def sum_of_greys(source: Bytes, count: Int, result: Longs) -> None:
    """Write the sum of the greys of `count` colours of `source` to `result`."""
    total = 0
    for i in range(count):
        total += _grey(source, 3 * i)
    result[0] = total


@routine
def saturate(source: Bytes, count: Int, factor: Double, result: Bytes) -> None:
    """Blend `count` colours of `source` with their greys.

    A `factor` of 0 gives greys, 1 the colours; `result` is the result.
    """
    for i in range(count):
        grey = f64(_grey(source, 3 * i))
        for c in range(3):
            result[3 * i + c] = _blended(f64(source[3 * i + c]), grey, factor)


@routine
def contrast(source: Bytes, count: Int, mean: Double, factor: Double, table: Bytes, result: Bytes) -> None:
    """Blend `count` values of `source` with `mean`.

    A `factor` of 0 gives the mean, 1 the values; `result` is the result, `table` memory for 256
    bytes.
    """
    if looked_up_at_once() != 0:
        for v in range(256):
            table[v] = _blended(f64(v), mean, factor)
        _look_up(source, count, 1, "uint8", table, result)
    else:
        for i in range(count):
            result[i] = _blended(f64(source[i]), mean, factor)


def _blended(value: Double, simple: Double, factor: Double) -> Int:
    return i32(within(rint(simple + (value - simple) * factor), 0.0, 255.0))


@routine
def weigh(source: Bytes, count: Int, channels: Const, red: Int, green: Int, blue: Int, result: Bytes) -> None:
    """Sum up three channels with weights of 15 bits.

    * `source`, `count`, `channels`: the pixels, how many, and of how many channels.
    * `red`, `green`, `blue`: the weights of the first three channels.
    * `result`: the sums, rounded.
    """
    first, second, third = i32(red), i32(green), i32(blue)
    for i in range(count):
        at = i * channels
        result[i] = (source[at] * first + source[at + 1] * second + source[at + 2] * third + 16384) >> 15


@routine
def reorder(source: Elements, count: Int, channels: Const, order: Const, opaque: Const, result: Elements) -> None:
    """Put the channels of pixels in another order.

    * `source`, `count`, `channels`: the pixels, how many, and of how many channels.
    * `order`: for each channel of the result, which channel it is.
    * `opaque`: the value of a channel that is not there.
    * `result`: the result.
    """
    for i in range(count):
        for c in range(len(order)):
            if order[c] < channels:
                result[i * len(order) + c] = source[i * channels + order[c]]
            else:
                result[i * len(order) + c] = opaque


@routine
def brighten(source: Bytes, count: Int, factor: Double, table: Bytes, result: Bytes) -> None:
    """Multiply `count` values of `source` by `factor`, in float32, and round them to `result`.

    `table` is memory for 256 bytes.
    """
    if looked_up_at_once() != 0:
        for v in range(256):
            table[v] = _scaled(f32(v), factor)
        _look_up(source, count, 1, "uint8", table, result)
    else:
        for i in range(count):
            result[i] = _scaled(f32(source[i]), factor)


def _scaled(value: Any, factor: Double) -> Int:
    return i32(within(rint(value * f32(factor)), 0.0, 255.0))


@routine
def rescale(source: Elements, count: Int, factor: Double, shift: Double, result: Floats) -> None:
    """Multiply `count` values of `source` by `factor` and add `shift`, in float32, to `result`."""
    for i in range(count):
        value = f32(source[i]) * f32(factor)
        if shift == 0.0:
            result[i] = value
        else:
            result[i] = value + f32(shift)


@routine
def normalise(
    source: Elements, count: Int, channels: Const, means: Floats, stds: Floats, more: Const, result: Floats
) -> None:
    """Subtract the mean from `count` pixels of `source`, and divide by the standard deviation.

    There are one of `means` and `stds` for each of the `channels`. `result` is the result, which
    has `more` channels of zeros.
    """
    for i in range(count):
        for c in range(channels):
            result[i * (channels + more) + c] = (f32(source[i * channels + c]) - means[c]) / stds[c]
        for c in range(more):
            result[i * (channels + more) + channels + c] = 0.0


def _choice(k: Int, a: Int, b: Int, c: Int, d: Int, e: Int, f: Int) -> Int:
    return b if k == 1 else c if k == 2 else d if k == 3 else e if k == 4 else f if k == 5 else a


def _over_255(value: Int) -> Int:
    # Rounded down, of less than 2**24.
    return (value + 1 + ((value + 1 + (value >> 8)) >> 8)) >> 8


def _part(value: Int, share: Int) -> Int:
    return _over_255(_over_255(value * share + 32512))


@routine
def turn_hue(source: Bytes, count: Int, turn: Int, result: Bytes) -> None:
    """Turn the hue of `count` colours of `source` by `turn`, of which 256 are a whole turn.

    Hue and saturation are bytes, made as OpenCV makes them, by one over each value with 12 bits:
    quotients of float32, which are those numbers for all bytes. Colours are what float64 gives,
    rounded: quotients by 255 and its square are never halves, so integers give the same.

    * `result`: the result.
    """
    for i in range(count):
        red, green, blue = source[3 * i], source[3 * i + 1], source[3 * i + 2]
        value = most(red, most(green, blue))
        span = value - least(red, least(green, blue))
        others = blue - red + 2 * span if value == green else red - green + 4 * span
        angle = green - blue if value == red else others
        turns = i32(f32(1048576.0 / 6.0) / f32(most(span, 1)) + f32(0.5))
        shares = i32(f32(1044480.0) / f32(most(value, 1)) + f32(0.5))
        hue = (((angle * turns + 2048) >> 12) + i32(turn)) & 255
        saturation = (span * shares + 2048) >> 12
        sector = _over_255(6 * hue)
        rest = 6 * hue - 255 * sector
        part = value * saturation
        low = value - _over_255(part + 127)
        falling, rising = value - _part(part, rest), value - _part(part, 255 - rest)
        # A hue of 255 is a whole turn.
        result[3 * i] = _choice(sector, value, falling, low, low, rising, value)
        result[3 * i + 1] = _choice(sector, rising, value, value, falling, low, low)
        result[3 * i + 2] = _choice(sector, low, low, rising, value, value, falling)


def _steps(count: Int, hwc: Const) -> tuple[Int, Int]:
    return (3, 1) if hwc else (1, count)


def _three(source: Elements, at: Int, step: Int) -> tuple[Double, Double, Double]:
    return f64(source[at]), f64(source[at + step]), f64(source[at + 2 * step])


def _inverse(value: Double, element: Const) -> Double:
    """Return one over a value: rounded, and for small integers with as many bits as they need."""
    if element == "uint8" or element == "uint16":
        near = f64(f32(1) / f32(value))
        found = fused(near, fused(-near, value, 1.0), near)
    else:
        found = 1.0 / value
    return found


def _ratio(one: Double, other: Double, inverse: Double, element: Const) -> Double:
    """Return a quotient as division rounds it, made of one over the divisor (Markstein, 1990).

    Where the inverse was rounded, the correction of a quotient that is at most one bit off is
    right; what the first product gives may be two bits off, but for a sixth. Quotients of small
    integers are far from the middle between two numbers, so inverses of 47 bits are enough. Numbers
    of float64 may be so small that what a quotient leaves is none.
    """
    if element == "float64":
        found = one / other
    else:
        near = one * inverse
        better = fused(fused(-near, other, one), inverse, near)
        if element == "float32":
            best = fused(fused(-better, other, one), inverse, better)
            # Zeros keep their signs.
            found = best if near != 0.0 else near
        else:
            found = better
    return found


@routine
def to_hsv(source: Elements, element: Const, count: Int, hwc: Const, result: Doubles, large: Longs) -> None:
    """Write hue, saturation and value, from 0 to 1, of `count` colours of `source` to `result`.

    `element` is the type of the colours. Channels are next to each other with `hwc`, else pixels
    are. Where one of them is no number or so large that halves of it are none, `large` becomes 1,
    and the result is not right.
    """
    pixel, channel = _steps(count, hwc)
    beyond = i64(0)
    for i in range(count):
        red, green, blue = _three(source, pixel * i, channel)
        high = most(red, most(green, blue))
        span = high - least(red, least(green, blue))
        beyond |= _beyond(red, green, blue)
        safe = span if span != 0.0 else f64(1)
        # Of the three distances from the highest only two are wanted: adding 0 changes no bit.
        is_red, is_green = red == high, green == high
        one = blue if is_red else red if is_green else green
        other = green if is_red else blue if is_green else red
        first = f64(0) if is_red else f64(2) if is_green else f64(4)
        inverse = _inverse(safe, element)
        turned = (first + _ratio(high - one, safe, inverse, element)) - _ratio(high - other, safe, inverse, element)
        turn = _ratio(turned, f64(6), f64(1.0 / 6.0), "float64" if element == "float64" else "sixth")
        # Hues are from -1/6 to 1.
        hue = turn + 1.0 if turn < 0.0 else turn
        top = high if high != 0.0 else f64(1)
        result[pixel * i] = hue if span != 0.0 else f64(0)
        result[pixel * i + channel] = _ratio(span, top, _inverse(top, element), element)
        result[pixel * i + 2 * channel] = high
    large[0] = beyond


def _beyond(one: Double, two: Double, three: Double) -> Int:
    fine = abs(one) < 1e14 and abs(two) < 1e14 and abs(three) < 1e14
    return i64(0) if fine else i64(1)


def _chosen(k: Double, a: Double, b: Double, c: Double, d: Double, e: Double, f: Double) -> Double:
    return b if k == 1.0 else c if k == 2.0 else d if k == 3.0 else e if k == 4.0 else f if k == 5.0 else a


@routine
def from_hsv(source: Elements, count: Int, hwc: Const, result: Doubles, large: Longs) -> None:
    """Write the colours of `count` hues, saturations and values of `source` to `result`.

    Channels are next to each other with `hwc`, else pixels are. Where one of them is no number or
    so large that its sector is no integer, `large` becomes 1, and the result is not right.
    """
    pixel, channel = _steps(count, hwc)
    beyond = i64(0)
    for i in range(count):
        hue, s, v = _three(source, pixel * i, channel)
        turn = hue * 6.0
        beyond |= _beyond(turn, s, v)
        sector = floor(turn)
        rest = turn - sector
        p, q, t = v * (1.0 - s), v * (1.0 - s * rest), v * (1.0 - s * (1.0 - rest))
        # Sectors are far below 2**53, and so the quotients' floors are right.
        k = sector - 6.0 * floor(sector / 6.0)
        result[pixel * i] = _chosen(k, v, q, p, p, t, v)
        result[pixel * i + channel] = _chosen(k, t, v, v, q, p, p)
        result[pixel * i + 2 * channel] = _chosen(k, p, p, t, v, v, q)
    large[0] = beyond
