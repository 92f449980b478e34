"""Loops over images whose sums are exact to float64: of floats, and of integers beyond bytes.

Sums are added up in the order in which NumPy's code does, so the bits are the same. `element` is
the image's type, to which results are brought.
"""

from typing import Any

from mycel._src.engines.routines import routine
from mycel._src.engines.routines.routine_language import (
    Bytes,
    Const,
    Double,
    Doubles,
    Elements,
    Int,
    Longs,
    cos,
    f32,
    f64,
    i32,
    least,
    log,
    most,
    rint,
    sqrt,
    within,
)


def converted(value: Any, element: Const) -> Any:
    """Return a value in the type `element`, to whose integers it is rounded and limited."""
    if element == "float64":
        found = f64(value)
    elif element == "float32":
        found = f32(value)
    elif element == "uint8":
        found = i32(within(rint(value), 0.0, 255.0))
    elif element == "int8":
        found = i32(within(rint(value), -128.0, 127.0))
    elif element == "uint16":
        found = i32(within(rint(value), 0.0, 65535.0))
    elif element == "int16":
        found = i32(within(rint(value), -32768.0, 32767.0))
    else:
        found = i32(within(rint(value), -2147483648.0, 2147483647.0))
    return found


def _at_edge(
    source: Elements,
    at: Int,
    columns: Longs,
    x: Int,
    channels: Int,
    weights: Doubles,
    count: Int,
    into: Doubles,
    to: Int,
) -> None:
    """Sum up the neighbours of a pixel near the ends of a row, which is continued."""
    for c in range(channels):
        total = f64(0) + weights[0] * f64(source[at + columns[x] * channels + c])
        for k in range(1, count):
            total = total + weights[k] * f64(source[at + columns[x + k] * channels + c])
        into[to + x * channels + c] = total


def _summed(
    source: Elements,
    at: Int,
    columns: Longs,
    weights: Doubles,
    count: Int,
    few: Const,
    width: Int,
    channels: Int,
    result: Doubles,
    into: Int,
) -> None:
    """Sum up an odd number of neighbours of each pixel of a row with weights."""
    half = count // 2
    first = least(half, width)
    last = most(width - half, first)
    for e in range(first):
        _at_edge(source, at, columns, e, channels, weights, count, result, into)
    for e in range(last, width):
        _at_edge(source, at, columns, e, channels, weights, count, result, into)
    begin = at - half * channels
    if few != 0:
        for x in range(first * channels, last * channels):
            total = f64(0) + weights[0] * f64(source[begin + x])
            for n in range(1, few):
                total = total + weights[n] * f64(source[begin + x + n * channels])
            result[into + x] = total
    else:
        for i in range(first * channels, last * channels):
            result[into + i] = f64(0) + weights[0] * f64(source[begin + i])
        for k in range(1, count, 2):
            one, other = weights[k], weights[k + 1]
            for i in range(first * channels, last * channels):
                there = begin + i + k * channels
                more = result[into + i] + one * f64(source[there])
                result[into + i] = more + other * f64(source[there + channels])


def _summed_rows(
    lines: Doubles,
    pitch: Int,
    rows: Longs,
    y: Int,
    weights: Doubles,
    count: Int,
    few: Const,
    total: Doubles,
    element: Const,
    result: Elements,
) -> None:
    """Sum up rows that are kept, and write a row of the result."""
    if few != 0:
        for x in range(pitch):
            whole = f64(0) + weights[0] * lines[(rows[y] % few) * pitch + x]
            for n in range(1, few):
                whole = whole + weights[n] * lines[(rows[y + n] % few) * pitch + x]
            result[y * pitch + x] = converted(whole, element)
    else:
        top = (rows[y] % count) * pitch
        for i in range(pitch):
            total[i] = f64(0) + weights[0] * lines[top + i]
        for k in range(1, count, 2):
            at, other = (rows[y + k] % count) * pitch, (rows[y + k + 1] % count) * pitch
            weight, more = weights[k], weights[k + 1]
            for i in range(pitch):
                total[i] = (total[i] + weight * lines[at + i]) + more * lines[other + i]
        for i in range(pitch):
            result[y * pitch + i] = converted(total[i], element)


@routine
def blur(
    source: Elements,
    element: Const,
    height: Int,
    width: Int,
    channels: Int,
    rows: Longs,
    weights: Doubles,
    count: Int,
    few: Const,
    columns: Longs,
    column_weights: Doubles,
    column_count: Int,
    column_few: Const,
    held: Longs,
    lines: Doubles,
    total: Doubles,
    result: Elements,
) -> None:
    """Sum up the neighbours of each pixel with weights, along rows and then columns.

    Rows are filtered when they are wanted, and kept in the place of their number, counted round
    `count`.

    * `source`, `element`, `height`, `width`, `channels`: the image.
    * `rows`, `weights`, `count`: for each of height + count - 1 rows of the image that is continued
      at its edges, which row it is, and the weights along columns.
    * `columns`, `column_weights`, `column_count`: the same along rows.
    * `few`, `column_few`: `count` and `column_count` where there is to be code for them, else 0.
    * `held`, `lines`, `total`: memory for `count` numbers, `count` rows, and one row, which is that
      of the image before it has sums.
    * `result`: the result.
    """
    pitch = width * channels
    if few != 0:
        count = few
    if column_few != 0:
        column_count = column_few
    for i in range(count):
        held[i] = -1
    for y in range(height):
        for k in range(count):
            row = rows[y + k]
            place = row % count
            if held[place] != row:
                held[place] = row
                to = place * pitch
                # Elements are converted once for all sums.
                for i in range(pitch):
                    total[i] = f64(source[row * pitch + i])
                _summed(total, 0, columns, column_weights, column_count, column_few, width, channels, lines, to)
        _summed_rows(lines, pitch, rows, y, weights, count, few, total, element, result)


@routine
def sharpen(
    source: Elements, element: Const, height: Int, width: Int, channels: Int, factor: Double, result: Elements
) -> None:
    """Blend an image with its mean over 3 x 3 pixels, of which the middle one counts five times.

    * `source`, `element`, `height`, `width`, `channels`: the image; means of integers are rounded.
    * `factor`: 0 for the mean, 1 for the image. Pixels at the edges are their own means.
    * `result`: the result.
    """
    pitch = width * channels
    for y in range(height):
        if y == 0 or y == height - 1:
            for i in range(pitch):
                _blend(source, y * pitch + i, f64(source[y * pitch + i]), factor, element, result)
        else:
            for j in range(channels):
                _blend(source, y * pitch + j, f64(source[y * pitch + j]), factor, element, result)
                last = y * pitch + pitch - channels + j
                _blend(source, last, f64(source[last]), factor, element, result)
            for i in range(channels, pitch - channels):
                at = y * pitch + i
                total = 4.0 * f64(source[at])
                for row in range(-1, 2):
                    for column in range(-1, 2):
                        total = total + f64(source[at + row * pitch + column * channels])
                soft = total / 13.0
                if element == "float32" or element == "float64":
                    _blend(source, at, soft, factor, element, result)
                else:
                    _blend(source, at, rint(soft), factor, element, result)


def _blend(source: Elements, at: Int, simple: Double, factor: Double, element: Const, result: Elements) -> None:
    result[at] = converted(simple + (f64(source[at]) - simple) * factor, element)


@routine
def blend(source: Elements, element: Const, count: Int, simple: Double, factor: Double, result: Elements) -> None:
    """Blend `count` values of `source` with the number `simple`, which a `factor` of 0 gives.

    `element` is the image's type, `result` the result.
    """
    for i in range(count):
        _blend(source, i, simple, factor, element, result)


def _grey(source: Elements, at: Int) -> Double:
    return (f64(source[at]) * 0.299 + f64(source[at + 1]) * 0.587) + f64(source[at + 2]) * 0.114


@routine
def greys(source: Elements, count: Int, result: Doubles) -> None:
    """Write the greys of `count` colours of `source` to `result`."""
    for i in range(count):
        result[i] = _grey(source, 3 * i)


@routine
def saturate(source: Elements, element: Const, count: Int, factor: Double, result: Elements) -> None:
    """Blend `count` colours of `source` with their greys, which a `factor` of 0 gives.

    `element` is the image's type, `result` the result.
    """
    for i in range(count):
        grey = _grey(source, 3 * i)
        for c in range(3):
            _blend(source, 3 * i + c, grey, factor, element, result)


@routine
def add(
    source: Elements,
    element: Const,
    count: Int,
    red: Double,
    green: Double,
    blue: Double,
    repeated: Doubles,
    result: Elements,
) -> None:
    """Add a number to each of three channels.

    * `source`, `element`, `count`: the image, and how many values it has.
    * `red`, `green`, `blue`: the numbers.
    * `repeated`: memory for 192 numbers.
    * `result`: the result. Bytes are limited and cut, and other integers cut, to their lower bits.
    """
    length = 192
    for i in range(64):
        repeated[3 * i] = red
        repeated[3 * i + 1] = green
        repeated[3 * i + 2] = blue
    for block in range((count + length - 1) // length):
        start = block * length
        for i in range(length if start + length <= count else count - start):
            total = f64(source[start + i]) + repeated[i]
            if element == "uint8":
                result[start + i] = i32(within(total, 0.0, 255.0))
            elif element == "uint16" or element == "int16":
                result[start + i] = i32(total)
            else:
                result[start + i] = converted(total, element)


@routine
def weigh(source: Elements, element: Const, count: Int, channels: Const, red: Const, result: Elements) -> None:
    """Write the greys of `count` colours of `source`, computed in its type, to `result`.

    `element` is that type, `channels` the number of channels of a pixel, and `red` which of the
    first three is red.
    """
    blue = 2 - red
    for i in range(count):
        at = i * channels
        if element == "float32":
            one, two, three = f32(0.299), f32(0.587), f32(0.114)
        else:
            one, two, three = f64(0.299), f64(0.587), f64(0.114)
        result[i] = one * source[at + red] + two * source[at + 1] + three * source[at + blue]


@routine
def normals(uniform: Doubles, count: Int, turn: Double, result: Doubles) -> None:
    """Write normal numbers made of pairs of uniform ones (Box and Muller, 1958).

    * `uniform`, `count`: the numbers, twice as many as `count`.
    * `turn`: twice pi.
    * `result`: the result.
    """
    for i in range(count):
        result[i] = sqrt(-2.0 * log(1.0 - uniform[2 * i])) * cos(turn * uniform[2 * i + 1])


@routine
def solarise(source: Bytes, count: Int, low: Int, high: Int, result: Bytes) -> None:
    """Invert those of `count` values of `source` that are from `low` to `high`; write `result`."""
    first, last = i32(low), i32(high)
    for i in range(count):
        value = source[i]
        result[i] = 255 - value if value >= first and value <= last else value
