"""Loops that read an image at positions between its pixels.

Positions are integers in units of 1/32 of a pixel, or of whole pixels for the nearest one. What
lies outside of the image is `fill`, a value for each channel. Weights of a pixel's neighbours are
in a table for each of 32 x 32 fractions, with 15 bits.
"""

from mycel.engines.routines import routine
from mycel.engines.routines.words import Bytes, Const, Doubles, Int, Ints, Longs, f64, i64, rint, within


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
        if left >= 0 and left + taps <= width and top >= 0 and top + taps <= height:
            at = (top * width + left) * channels
            for c in range(channels):
                total = 16384 + source[at + c] * weights[entry]
                for j in range(1, taps):
                    total += source[at + j * channels + c] * weights[entry + j]
                for i in range(1, taps):
                    for k in range(taps):
                        total += source[at + (i * width + k) * channels + c] * weights[entry + i * taps + k]
                result[place + c] = within(total >> 15, 0, 255)
        elif left >= width or left + taps <= 0 or top >= height or top + taps <= 0:
            for c in range(channels):
                result[place + c] = fill[c]
        else:
            for c in range(channels):
                sum = 16384 + fill[c] * 0
                for i in range(taps):
                    for k in range(taps):
                        y, x = top + i, left + k
                        if x >= 0 and x < width and y >= 0 and y < height:
                            sum += source[(y * width + x) * channels + c] * weights[entry + i * taps + k]
                        else:
                            sum += fill[c] * weights[entry + i * taps + k]
                result[place + c] = within(sum >> 15, 0, 255)


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
    result: Bytes,
) -> None:
    """Read an image along straight lines.

    * `source`, `height`, `width`, `channels`: the image.
    * `along`, `down`: what a position (x, y) is the sum of, for each column and row of the result,
      with `shift` bits too many.
    * `fill`, `weights`, `taps`: as above; `taps` weights an axis.
    * `rows`, `columns`, `result`: the result.
    """
    for y in range(rows):
        for x in range(columns):
            column = (down[y] + along[x]) >> shift
            row = (down[rows + y] + along[columns + x]) >> shift
            _read(
                source, height, width, channels, fill, weights, taps, column, row, result, (y * columns + x) * channels
            )


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
    result: Bytes,
) -> None:
    """Read an image at the positions that a matrix [3, 3] gives.

    * `source`, `height`, `width`, `channels`: the image.
    * `matrix`: from positions of the result to those of the image.
    * `fill`, `weights`, `taps`: as above; `taps` weights an axis.
    * `result`: the result.
    """
    units = 1.0 if taps == 1 else 32.0
    for y in range(height):
        for x in range(width):
            a, b = f64(x), f64(y)
            depth = (matrix[6] * a + matrix[7] * b) + matrix[8]
            some = depth if depth != 0.0 else f64(1)
            scale = f64(units) / some if depth != 0.0 else f64(0)
            across = ((matrix[0] * a + matrix[1] * b) + matrix[2]) * scale
            down = ((matrix[3] * a + matrix[4] * b) + matrix[5]) * scale
            column = i64(rint(within(across, -1073741824.0, 1073741824.0)))
            row = i64(rint(within(down, -1073741824.0, 1073741824.0)))
            _read(source, height, width, channels, fill, weights, taps, column, row, result, (y * width + x) * channels)
