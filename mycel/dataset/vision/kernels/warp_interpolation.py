"""Interpolation loops of rotations and of affine and perspective warps.

They read an image at positions between its pixels. Positions are integers in units of 1/32 of a
pixel, or of whole pixels for the nearest one. What lies outside of the image is `fill`, a value for
each channel. Weights of a pixel's neighbours are in a table for each of 32 x 32 fractions: for
bytes with 15 bits, else in float64, in which sums are added up. `element` is the image's type.
"""

from typing import Any

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
    i32,
    i64,
    least,
    most,
    rint,
    soon,
    within,
)

# Results are made in tiles of so many rows and columns, as positions next to each other in a tile
# are so in the image, too: a long row may cross all rows of a large image.
TALL, WIDE = 32, 128
# Images with at least so many elements are not near the processor: what a row of a tile reads is
# asked for at once, as waiting for it pixel by pixel takes longer than all else.
LARGE = 1 << 18


def _product(value: Any, weight: Any, element: Const) -> Any:
    if element == "uint8":
        found = value * weight
    else:
        found = f64(value) * weight
    return found


def _begun(element: Const) -> Any:
    """Return a sum of nothing, with what rounds it."""
    return i32(16384) if element == "uint8" else f64(0)


def _ended(total: Any, element: Const) -> Any:
    if element == "uint8":
        found = within(total >> 15, 0, 255)
    elif element == "uint16":
        found = i32(within(rint(total), 0.0, 65535.0))
    elif element == "int16":
        found = i32(within(rint(total), -32768.0, 32767.0))
    elif element == "float32":
        found = f32(total)
    else:
        found = total
    return found


def _read(
    source: Elements,
    height: Int,
    width: Int,
    channels: Const,
    fill: Elements,
    weights: Elements,
    taps: Const,
    element: Const,
    column: Int,
    row: Int,
    result: Elements,
    place: Int,
    until: Int,
) -> None:
    entry = ((row & 31) * 32 + (column & 31)) * (taps * taps)
    left, top = (column >> 5) - (taps // 2 - 1), (row >> 5) - (taps // 2 - 1)
    at = (top * width + left) * channels
    pitch = width * channels
    if left >= 0 and left + taps <= width and top >= 0 and top + taps <= height:
        if channels == 3:
            # Four at once are a vector; the last one is written over by the next pixel.
            if at + (taps - 1) * (pitch + 3) + 4 <= height * pitch and place + 4 <= until:
                for q in range(4):
                    result[place + q] = _weighed(source, at + q, pitch, 3, weights, entry, taps, element)
            else:
                for c in range(channels):
                    result[place + c] = _edge(
                        source, height, width, channels, fill, weights, entry, taps, element, left, top, c
                    )
        else:
            for c in range(channels):
                result[place + c] = _weighed(source, at + c, pitch, channels, weights, entry, taps, element)
    elif left >= width or left + taps <= 0 or top >= height or top + taps <= 0:
        for c in range(channels):
            result[place + c] = fill[c]
    else:
        for c in range(channels):
            result[place + c] = _edge(
                source, height, width, channels, fill, weights, entry, taps, element, left, top, c
            )


def _weighed(
    source: Elements,
    at: Int,
    pitch: Int,
    step: Const,
    weights: Elements,
    entry: Int,
    taps: Const,
    element: Const,
) -> Any:
    total = _begun(element) + _product(source[at], weights[entry], element)
    for j in range(1, taps):
        total += _product(source[at + j * step], weights[entry + j], element)
    for i in range(1, taps):
        for k in range(taps):
            total += _product(source[at + i * pitch + k * step], weights[entry + i * taps + k], element)
    return _ended(total, element)


def _edge(
    source: Elements,
    height: Int,
    width: Int,
    channels: Const,
    fill: Elements,
    weights: Elements,
    entry: Int,
    taps: Const,
    element: Const,
    left: Int,
    top: Int,
    c: Int,
) -> Any:
    total = _begun(element)
    for u in range(taps):
        y = top + u
        for v in range(taps):
            x = left + v
            if x >= 0 and x < width and y >= 0 and y < height:
                total += _product(source[(y * width + x) * channels + c], weights[entry + u * taps + v], element)
            else:
                total += _product(fill[c], weights[entry + u * taps + v], element)
    return _ended(total, element)


def _picked(source: Elements, at: Int, channels: Const, fill: Elements, result: Elements, into: Int) -> None:
    if at < 0:
        for c in range(channels):
            result[into + c] = fill[c]
    else:
        for n in range(channels):
            result[into + n] = source[at + n]


def _outside(fill: Elements, even: Const, channels: Const, first: Int, last: Int, result: Elements, place: Int) -> None:
    if even:
        for i in range(first * channels, last * channels):
            result[place + i] = fill[0]
    else:
        for x in range(first, last):
            for c in range(channels):
                result[place + x * channels + c] = fill[c]


def _copied(source: Elements, at: Int, lanes: Const, result: Elements, into: Int) -> None:
    for q in range(lanes):
        result[into + q] = source[at + q]


def _nearest(
    source: Elements,
    end: Int,
    channels: Const,
    fill: Elements,
    even: Const,
    line: Elements,
    count: Int,
    lowest: Int,
    highest: Int,
    result: Elements,
    place: Int,
) -> None:
    # Pixels inside of the image are next to each other. A fourth element is read and written with
    # those of a pixel, but at the end of the image and of what is written.
    if lowest >= 0 and highest < end:
        lanes = 4 if channels == 3 else channels
        quick = (count - 1) // 4 * 4
        for j in range(0, quick, 4):
            for k in range(4):
                _copied(source, line[j + k], lanes, result, place + (j + k) * channels)
        for n in range(quick, count):
            _copied(source, line[n], channels, result, place + n * channels)
    elif highest < 0:
        _outside(fill, even, channels, 0, count, result, place)
    else:
        first, last = 0, count
        while first < count and line[first] < 0:
            first += 1
        while last > first and line[last - 1] < 0:
            last -= 1
        _outside(fill, even, channels, 0, first, result, place)
        for m in range(first, last):
            _picked(source, line[m], channels, fill, result, place + m * channels)
        _outside(fill, even, channels, last, count, result, place)


def _between(
    source: Elements,
    height: Int,
    width: Int,
    channels: Const,
    fill: Elements,
    weights: Elements,
    taps: Const,
    element: Const,
    line: Elements,
    count: Int,
    result: Elements,
    into: Int,
) -> None:
    pitch, until = width * channels, into + count * channels
    if pitch * height >= LARGE:
        for i in range(count):
            place = i64(line[WIDE + i] >> 5) * pitch + (line[i] >> 5) * channels
            for k in range(taps):
                soon(source, place + (k - (taps // 2 - 1)) * pitch)
    for x in range(count):
        column, row, at = line[x], line[WIDE + x], into + x * channels
        _read(source, height, width, channels, fill, weights, taps, element, column, row, result, at, until)


def _whole(value: Any, word: Const) -> Any:
    return i32(value) if word == "int32" else i64(value)


@routine
def affine(
    source: Elements,
    height: Int,
    width: Int,
    channels: Const,
    a: Double,
    b: Double,
    c: Double,
    d: Double,
    e: Double,
    f: Double,
    fill: Elements,
    even: Const,
    weights: Elements,
    taps: Const,
    element: Const,
    rows: Int,
    columns: Int,
    word: Const,
    line: Elements,
    result: Elements,
) -> None:
    """Read an image along straight lines.

    A position is the sum of what a row and a column give, rounded to 2**-10 of a pixel.

    * `source`, `height`, `width`, `channels`: the image.
    * `a`, `b`, `c`, `d`, `e`, `f`: a position (x, y) of the result is read at
      (a x + b y + c, d x + e y + f).
    * `fill`, `weights`, `taps`, `element`: as above; `taps` weights an axis.
    * `even`: whether the fills of all channels are the same.
    * `rows`, `columns`: the result's size.
    * `word`: the integers in which there is no overflow, "int32" or "int64".
    * `line`: memory for twice `WIDE` and twice `columns` of them.
    * `result`: the result.
    """
    for p in range(columns):
        line[2 * WIDE + p] = _whole(rint(a * f64(p) * 1024.0), word)
        line[2 * WIDE + columns + p] = _whole(rint(d * f64(p) * 1024.0), word)
    half = _whole(512 if taps == 1 else 16, word)
    # A last pixel has none behind it that might be read with it.
    end = height * width * channels - channels + (0 if channels == 3 else 1)
    bottom, right = _whole(height, word), _whole(width, word)
    for top in range(0, rows, TALL):
        for left in range(0, columns, WIDE):
            count = least(columns - left, WIDE)
            for y in range(top, least(top + TALL, rows)):
                across = _whole(rint((b * f64(y) + c) * 1024.0), word) + half
                down = _whole(rint((e * f64(y) + f) * 1024.0), word) + half
                into = (y * columns + left) * channels
                if taps == 1:
                    lowest, highest = right * bottom * channels, _whole(-1, word)
                    for i in range(count):
                        column, row = (
                            (across + line[2 * WIDE + left + i]) >> 10,
                            (down + line[2 * WIDE + columns + left + i]) >> 10,
                        )
                        inside = column >= 0 and column < right and row >= 0 and row < bottom
                        at = (row * right + column) * channels if inside else -1
                        line[i] = at
                        lowest, highest = least(lowest, at), most(highest, at)
                    _nearest(source, end, channels, fill, even, line, count, lowest, highest, result, into)
                else:
                    for k in range(count):
                        line[k] = (across + line[2 * WIDE + left + k]) >> 5
                        line[WIDE + k] = (down + line[2 * WIDE + columns + left + k]) >> 5
                    _between(source, height, width, channels, fill, weights, taps, element, line, count, result, into)


@routine
def perspective(
    source: Elements,
    height: Int,
    width: Int,
    channels: Const,
    matrix: Doubles,
    block: Int,
    fill: Elements,
    even: Const,
    weights: Elements,
    taps: Const,
    element: Const,
    line: Longs,
    result: Elements,
) -> None:
    """Read an image at the positions that a matrix [3, 3] gives.

    * `source`, `height`, `width`, `channels`: the image.
    * `matrix`: from positions of the result to those of the image.
    * `block`: positions are summed up from those of every column of so many.
    * `fill`, `weights`, `taps`, `element`: as above; `taps` weights an axis.
    * `even`: whether the fills of all channels are the same.
    * `line`, `result`: memory for twice `WIDE` numbers, and the result.
    """
    units = 1.0 if taps == 1 else 32.0
    end = height * width * channels - channels + (0 if channels == 3 else 1)
    for top in range(0, height, TALL):
        first = i64(0)
        while first < width:
            last = least(first + block, width)
            a = f64(first)
            for left in range(first, last, WIDE):
                count = least(last - left, WIDE)
                for y in range(top, least(top + TALL, height)):
                    b = f64(y)
                    into = (y * width + left) * channels
                    lowest, highest = height * width * channels, i64(-1)
                    for i in range(count):
                        rest = f64(left - first + i)
                        depth = ((matrix[6] * a + matrix[7] * b) + matrix[8]) + matrix[6] * rest
                        scale = f64(units) / depth if depth != 0.0 else f64(0)
                        across = (((matrix[0] * a + matrix[1] * b) + matrix[2]) + matrix[0] * rest) * scale
                        down = (((matrix[3] * a + matrix[4] * b) + matrix[5]) + matrix[3] * rest) * scale
                        column = i64(i32(rint(within(across, -1073741824.0, 1073741824.0))))
                        row = i64(i32(rint(within(down, -1073741824.0, 1073741824.0))))
                        if taps == 1:
                            inside = column >= 0 and column < width and row >= 0 and row < height
                            at = (row * width + column) * channels if inside else -1
                            line[i] = at
                            lowest, highest = least(lowest, at), most(highest, at)
                        else:
                            line[i] = column
                            line[WIDE + i] = row
                    if taps == 1:
                        _nearest(source, end, channels, fill, even, line, count, lowest, highest, result, into)
                    else:
                        _between(
                            source, height, width, channels, fill, weights, taps, element, line, count, result, into
                        )
            first += block
