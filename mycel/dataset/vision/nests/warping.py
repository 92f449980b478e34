"""Loops that read an image at positions between its pixels.

Positions are integers in units of 1/32 of a pixel, or of whole pixels for the nearest one. What
lies outside of the image is `fill`, a value for each channel. Weights of a pixel's neighbours are
in a table for each of 32 x 32 fractions, with 15 bits.
"""

from mycel.engines.routines import routine
from mycel.engines.routines.words import Bytes, Const, Doubles, Int, Ints, Longs, f64, i32, i64, rint, within


def _read(
    source: Bytes,
    height: Int,
    width: Int,
    channels: Const,
    fill: Bytes,
    weights: Ints,
    taps: Const,
    column: Int,
    row: Int,
    result: Bytes,
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
                        result[place + q] = _weighed(source, at + q, pitch, 3, weights, entry, taps)
                else:
                    for c in range(channels):
                        result[place + c] = _edge(
                            source, height, width, channels, fill, weights, entry, taps, left, top, c
                        )
            else:
                for c in range(channels):
                    result[place + c] = _weighed(source, at + c, pitch, channels, weights, entry, taps)
        elif left >= width or left + taps <= 0 or top >= height or top + taps <= 0:
            for c in range(channels):
                result[place + c] = fill[c]
        else:
            for c in range(channels):
                result[place + c] = _edge(source, height, width, channels, fill, weights, entry, taps, left, top, c)


def _weighed(source: Bytes, at: Int, pitch: Int, step: Const, weights: Ints, entry: Int, taps: Const) -> Int:
    total = source[at] * weights[entry] + source[at + step] * weights[entry + 1]
    for j in range(2, taps):
        total += source[at + j * step] * weights[entry + j]
    for i in range(1, taps):
        for k in range(taps):
            total += source[at + i * pitch + k * step] * weights[entry + i * taps + k]
    return within((total + 16384) >> 15, 0, 255)


def _edge(
    source: Bytes,
    height: Int,
    width: Int,
    channels: Const,
    fill: Bytes,
    weights: Ints,
    entry: Int,
    taps: Const,
    left: Int,
    top: Int,
    c: Int,
) -> Int:
    total = i32(16384)
    for u in range(taps):
        y = top + u
        for v in range(taps):
            x = left + v
            if x >= 0 and x < width and y >= 0 and y < height:
                total += source[(y * width + x) * channels + c] * weights[entry + u * taps + v]
            else:
                total += fill[c] * weights[entry + u * taps + v]
    return within(total >> 15, 0, 255)


def _picked(source: Bytes, at: Int, channels: Const, fill: Bytes, result: Bytes, into: Int) -> None:
    if at < 0:
        for c in range(channels):
            result[into + c] = fill[c]
    else:
        for n in range(channels):
            result[into + n] = source[at + n]


@routine
def affine(
    source: Bytes,
    height: Int,
    width: Int,
    channels: Const,
    along: Longs,
    down: Longs,
    shift: Int,
    fill: Bytes,
    weights: Ints,
    taps: Const,
    rows: Int,
    columns: Int,
    line: Longs,
    result: Bytes,
) -> None:
    """Read an image along straight lines.

    * `source`, `height`, `width`, `channels`: the image.
    * `along`, `down`: what a position (x, y) is the sum of, for each column and row of the result,
      with `shift` bits too many.
    * `fill`, `weights`, `taps`: as above; `taps` weights an axis.
    * `rows`, `columns`, `line`, `result`: the result's size, memory for a row, and the result.
    """
    room = rows * columns * channels
    # A last pixel has none behind it that might be read or written with it.
    end = height * width * channels - (1 if channels == 3 else 0)
    for y in range(rows):
        if taps == 1:
            for i in range(columns):
                c, r = (down[y] + along[i]) >> shift, (down[rows + y] + along[columns + i]) >> shift
                inside = c >= 0 and c < width and r >= 0 and r < height
                line[i] = (r * width + c) * channels if inside else -1
            quick = columns - (1 if y == rows - 1 else 0)
            for j in range(quick):
                at, into = line[j], (y * columns + j) * channels
                if at >= 0 and at + channels <= end:
                    for q in range(4 if channels == 3 else channels):
                        result[into + q] = source[at + q]
                else:
                    _picked(source, at, channels, fill, result, into)
            for k in range(quick, columns):
                _picked(source, line[k], channels, fill, result, (y * columns + k) * channels)
        else:
            for x in range(columns):
                column = (down[y] + along[x]) >> shift
                row = (down[rows + y] + along[columns + x]) >> shift
                place = (y * columns + x) * channels
                _read(source, height, width, channels, fill, weights, taps, column, row, result, place, room)


@routine
def perspective(
    source: Bytes,
    height: Int,
    width: Int,
    channels: Const,
    matrix: Doubles,
    fill: Bytes,
    weights: Ints,
    taps: Const,
    line: Ints,
    result: Bytes,
) -> None:
    """Read an image at the positions that a matrix [3, 3] gives.

    * `source`, `height`, `width`, `channels`: the image.
    * `matrix`: from positions of the result to those of the image.
    * `fill`, `weights`, `taps`: as above; `taps` weights an axis.
    * `line`, `result`: memory for the positions of a row, and the result.
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
            _read(source, height, width, channels, fill, weights, taps, column, row, result, place, room)
