"""Loops that read an image at positions between its pixels.

Positions are integers in units of 1/32 of a pixel, or of whole pixels for the nearest one. What
lies outside of the image is `fill`, a value for each channel. Weights of a pixel's neighbours are
in a table for each of 32 x 32 fractions: for bytes with 15 bits, else in float64, in which sums are
added up. `element` is the image's type.
"""

from typing import Any

from mycel.engines.routines import routine
from mycel.engines.routines.words import (
    Const,
    Doubles,
    Elements,
    Int,
    Ints,
    f32,
    f64,
    i32,
    i64,
    least,
    most,
    rint,
    within,
)


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
    room: Int,
) -> None:
    if taps == 1:
        if column >= 0 and column < width and row >= 0 and row < height:
            at = (row * width + column) * channels
            for c in range(channels):
                result[place + c] = source[at + c]
        else:
            for c in range(channels):
                result[place + c] = fill[c]
    else:
        entry = ((row & 31) * 32 + (column & 31)) * (taps * taps)
        left, top = (column >> 5) - (taps // 2 - 1), (row >> 5) - (taps // 2 - 1)
        at = (top * width + left) * channels
        pitch = width * channels
        if left >= 0 and left + taps <= width and top >= 0 and top + taps <= height:
            if channels == 3:
                # Four at once are a vector; the last one is written over by the next pixel.
                if at + (taps - 1) * (pitch + 3) + 4 <= height * pitch and place + 4 <= room:
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


def _nearest_row(
    source: Elements,
    end: Int,
    channels: Const,
    fill: Elements,
    even: Const,
    line: Elements,
    columns: Int,
    ahead: Int,
    result: Elements,
    place: Int,
) -> None:
    # Pixels inside of the image are next to each other. A fourth element is read and written with
    # those of a pixel, but at the end of the image and, where none is `ahead`, of the result.
    # The line has a place before and after those of the row.
    first, last = 0, columns
    while first < columns and line[first + 1] < 0:
        first += 1
    while last > first and line[last] < 0:
        last -= 1
    _outside(fill, even, channels, 0, first, result, place)
    quick = least(last, ahead)
    for j in range(first, quick):
        at = line[j + 1]
        if at < end:
            for q in range(4 if channels == 3 else channels):
                result[place + j * channels + q] = source[at + q]
        else:
            _picked(source, at, channels, fill, result, place + j * channels)
    for k in range(most(first, quick), last):
        _picked(source, line[k + 1], channels, fill, result, place + k * channels)
    _outside(fill, even, channels, last, columns, result, place)


def _whole(value: Any, word: Const) -> Any:
    return i32(value) if word == "int32" else i64(value)


@routine
def affine(
    source: Elements,
    height: Int,
    width: Int,
    channels: Const,
    matrix: Doubles,
    fill: Elements,
    even: Const,
    weights: Elements,
    taps: Const,
    element: Const,
    rows: Int,
    columns: Int,
    word: Const,
    along: Elements,
    line: Elements,
    result: Elements,
) -> None:
    """Read an image along straight lines.

    A position is the sum of what a row and a column give, rounded to 2**-10 of a pixel.

    * `source`, `height`, `width`, `channels`: the image.
    * `matrix`: [2, 3], from positions (x, y, 1) of the result to those of the image.
    * `fill`, `weights`, `taps`, `element`: as above; `taps` weights an axis.
    * `even`: whether the fills of all channels are the same.
    * `rows`, `columns`: the result's size.
    * `word`: the integers in which there is no overflow, "int32" or "int64".
    * `along`, `line`: memory for twice as many of them as `columns`, and for two more.
    * `result`: the result.
    """
    room = rows * columns * channels
    for p in range(columns):
        along[p] = _whole(rint(matrix[0] * f64(p) * 1024.0), word)
        along[columns + p] = _whole(rint(matrix[3] * f64(p) * 1024.0), word)
    half = 512 if taps == 1 else 16
    # A last pixel has none behind it that might be read or written with it.
    end = height * width * channels - channels + (0 if channels == 3 else 1)
    bottom, right = _whole(height, word), _whole(width, word)
    for y in range(rows):
        across = _whole(rint((matrix[1] * f64(y) + matrix[2]) * 1024.0), word) + half
        down = _whole(rint((matrix[4] * f64(y) + matrix[5]) * 1024.0), word) + half
        if taps == 1:
            for i in range(columns):
                c, r = (across + along[i]) >> 10, (down + along[columns + i]) >> 10
                inside = c >= 0 and c < right and r >= 0 and r < bottom
                line[i + 1] = (r * right + c) * channels if inside else -1
            ahead = columns - (1 if y == rows - 1 else 0)
            _nearest_row(source, end, channels, fill, even, line, columns, ahead, result, y * columns * channels)
        else:
            for x in range(columns):
                column, row = (across + along[x]) >> 5, (down + along[columns + x]) >> 5
                place = (y * columns + x) * channels
                _read(source, height, width, channels, fill, weights, taps, element, column, row, result, place, room)


@routine
def perspective(
    source: Elements,
    height: Int,
    width: Int,
    channels: Const,
    matrix: Doubles,
    fill: Elements,
    weights: Elements,
    taps: Const,
    element: Const,
    line: Ints,
    result: Elements,
) -> None:
    """Read an image at the positions that a matrix [3, 3] gives.

    * `source`, `height`, `width`, `channels`: the image.
    * `matrix`: from positions of the result to those of the image.
    * `fill`, `weights`, `taps`, `element`: as above; `taps` weights an axis.
    * `line`, `result`: along for the positions of a row, and the result.
    """
    units = 1.0 if taps == 1 else 32.0
    room = height * width * channels
    for y in range(height):
        b = f64(y)
        for i in range(width):
            a = f64(i)
            depth = (matrix[6] * a + matrix[7] * b) + matrix[8]
            scale = f64(units) / depth if depth != 0.0 else f64(0)
            across = ((matrix[0] * a + matrix[1] * b) + matrix[2]) * scale
            down = ((matrix[3] * a + matrix[4] * b) + matrix[5]) * scale
            line[i] = i32(rint(within(across, -1073741824.0, 1073741824.0)))
            line[width + i] = i32(rint(within(down, -1073741824.0, 1073741824.0)))
        for x in range(width):
            column, row = i64(line[x]), i64(line[width + x])
            place = (y * width + x) * channels
            _read(source, height, width, channels, fill, weights, taps, element, column, row, result, place, room)
