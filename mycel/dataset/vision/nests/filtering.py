"""Loops over the neighbours of each pixel: blurs, and resizing by many weights."""

from typing import Any

from mycel.engines.routines import routine
from mycel.engines.routines.words import (
    Bytes,
    Const,
    Double,
    Elements,
    Int,
    Ints,
    Longs,
    f32,
    f64,
    i32,
    most,
    rint,
    within,
)


@routine
def blur(
    source: Bytes,
    height: Int,
    width: Int,
    channels: Int,
    places: Longs,
    weights: Ints,
    count: Const,
    columns: Longs,
    column_weights: Ints,
    column_count: Const,
    line: Elements,
    part: Elements,
    result: Bytes,
) -> None:
    """Sum up the neighbours of each pixel with weights of 8 bits, along rows and then columns.

    * `source`, `height`, `width`, `channels`: the image.
    * `places`, `weights`, `count`: for each of height + count - 1 rows of the image that is
      continued at its edges, which row it is, and the weights along columns.
    * `columns`, `column_weights`, `column_count`: the same along rows.
    * `line`: memory for one row that is continued, `part` for all rows, of 16 bits.
    * `result`: the result.
    """
    pitch = width * channels
    for y in range(height):
        row = y * pitch
        half = column_count // 2
        for x in range(half):
            for c in range(channels):
                line[x * channels + c] = source[row + columns[x] * channels + c]
                after = half + width + x
                line[after * channels + c] = source[row + columns[after] * channels + c]
        for i in range(pitch):
            line[half * channels + i] = source[row + i]
        for i in range(pitch):
            total = line[half * channels + i] * column_weights[half]
            for k in range(column_count // 2):
                total += (line[i + k * channels] + line[i + (column_count - 1 - k) * channels]) * column_weights[k]
            part[row + i] = total
    for y in range(height):
        middle = places[y + count // 2] * pitch
        for i in range(pitch):
            sum = part[middle + i] * weights[count // 2] + 32768
            for k in range(count // 2):
                sum += (part[places[y + k] * pitch + i] + part[places[y + count - 1 - k] * pitch + i]) * weights[k]
            result[y * pitch + i] = within(sum >> 16, 0, 255)


@routine
def sharpen(source: Bytes, height: Int, width: Int, channels: Int, factor: Double, result: Bytes) -> None:
    """Blend an image with its mean over 3 x 3 pixels, of which the middle one counts five times.

    * `source`, `height`, `width`, `channels`: the image.
    * `factor`: 0 for the mean, 1 for the image.
    * `result`: the result, whose edges are not written.
    """
    pitch = width * channels
    for y in range(1, height - 1):
        for i in range(channels, pitch - channels):
            at = y * pitch + i
            above, below = at - pitch, at + pitch
            total = 5 * source[at] + source[at - channels] + source[at + channels]
            total += source[above] + source[above - channels] + source[above + channels]
            total += source[below] + source[below - channels] + source[below + channels]
            soft = f64((total + 6) // 13)
            sharp = soft + (f64(source[at]) - soft) * factor
            result[at] = i32(within(rint(sharp), 0.0, 255.0))


def _sums(
    source: Elements,
    row: Int,
    places: Longs,
    weights: Elements,
    taps: Int,
    fixed: Const,
    first: Int,
    channels: Const,
    lanes: Const,
    kind: Const,
    result: Elements,
    into: Int,
) -> None:
    at = row + places[first] * channels
    if kind == "float":
        a, b, c, d = f32(0), f32(0), f32(0), f32(0)
    else:
        a, b, c, d = i32(0), i32(0), i32(0), i32(0)
    weight = weights[first]
    a = _times(source[at], weight, kind)
    if lanes > 1:
        b = _times(source[at + 1], weight, kind)
    if lanes > 2:
        c = _times(source[at + 2], weight, kind)
    if lanes > 3:
        d = _times(source[at + 3], weight, kind)
    for k in range(1, taps if fixed == 0 else fixed):
        at = row + places[first + k] * channels
        weight = weights[first + k]
        a += _times(source[at], weight, kind)
        if lanes > 1:
            b += _times(source[at + 1], weight, kind)
        if lanes > 2:
            c += _times(source[at + 2], weight, kind)
        if lanes > 3:
            d += _times(source[at + 3], weight, kind)
    result[into] = _ended(a, kind)
    if lanes > 1:
        result[into + 1] = _ended(b, kind)
    if lanes > 2:
        result[into + 2] = _ended(c, kind)
    if lanes > 3:
        result[into + 3] = _ended(d, kind)


def _times(value: Any, weight: Any, kind: Const) -> Any:
    return f32(value) * weight if kind == "float" or kind == "rounded" else value * weight


def _ended(total: Any, kind: Const) -> Any:
    return within((total + 2097152) >> 22, 0, 255) if kind == "bytes" else total


@routine
def along_rows(
    source: Elements,
    size: Int,
    height: Int,
    width: Int,
    channels: Const,
    places: Longs,
    weights: Elements,
    taps: Int,
    fixed: Const,
    kind: Const,
    target: Int,
    result: Elements,
) -> None:
    """Sum up places of each row with weights.

    * `source`, `size`, `height`, `width`, `channels`: the image, and how many elements it has.
    * `places`, `weights`, `taps`: which columns make a column of the result, in increasing order,
      and the weights; `fixed` is their number, too, where they are few, else 0.
    * `kind`: "float" and "sum" for the sums as they are, "bytes" for those of 22 bits rounded.
    * `target`, `result`: the number of columns of the result, and the result, with room for 4
      elements more.
    """
    if fixed != 0:
        taps = fixed
    for y in range(height):
        row = y * width * channels
        if channels == 3 and row + most(places[taps - 1], places[target * taps - 1]) * channels + 4 <= size:
            for x in range(target):
                into = (y * target + x) * channels
                _sums(source, row, places, weights, taps, fixed, x * taps, channels, 4, kind, result, into)
        else:
            for i in range(target):
                for c in range(channels):
                    into = (y * target + i) * channels + c
                    _sums(source, row + c, places, weights, taps, fixed, i * taps, channels, 1, kind, result, into)


@routine
def along_columns(
    source: Elements,
    pitch: Int,
    places: Longs,
    weights: Elements,
    taps: Int,
    fixed: Const,
    kind: Const,
    target: Int,
    part: Elements,
    result: Elements,
) -> None:
    """Sum up places of each column with weights.

    * `source`, `pitch`: the image, and how many elements a row has.
    * `places`, `weights`, `taps`: which rows make a row of the result, and the weights; `fixed` is
      their number, too, where they are few, else 0.
    * `kind`: "float" for floats as they are, "rounded" for floats that become bytes, "sum" and
      "bytes" for sums of 22 bits, which become bytes.
    * `target`, `part`, `result`: the number of rows of the result, memory for a row of sums, and
      the result.
    """
    for y in range(target):
        first = places[y * taps] * pitch
        one = weights[y * taps]
        if fixed == 2:
            last = places[2 * y + 1] * pitch
            two = weights[2 * y + 1]
            for j in range(pitch):
                total = _times(source[first + j], one, kind) + _times(source[last + j], two, kind)
                result[y * pitch + j] = _rounded(total, kind)
        elif fixed == 4:
            a, b, c = places[4 * y + 1] * pitch, places[4 * y + 2] * pitch, places[4 * y + 3] * pitch
            d, e, f = weights[4 * y + 1], weights[4 * y + 2], weights[4 * y + 3]
            for j in range(pitch):
                total = _times(source[first + j], one, kind) + _times(source[a + j], d, kind)
                total = total + _times(source[b + j], e, kind) + _times(source[c + j], f, kind)
                result[y * pitch + j] = _rounded(total, kind)
        else:
            for i in range(pitch):
                part[i] = _times(source[first + i], one, kind)
            for k in range(1, taps):
                row = places[y * taps + k] * pitch
                for i in range(pitch):
                    part[i] = part[i] + _times(source[row + i], weights[y * taps + k], kind)
            for i in range(pitch):
                result[y * pitch + i] = _rounded(part[i], kind)


def _rounded(total: Any, kind: Const) -> Any:
    if kind == "float":
        found = total
    elif kind == "rounded":
        found = i32(within(rint(total), 0.0, 255.0))
    else:
        found = within((total + 2097152) >> 22, 0, 255)
    return found


@routine
def cells(
    source: Bytes,
    down: Int,
    across: Int,
    channels: Const,
    height: Int,
    width: Int,
    sums: Ints,
    share: Double,
    result: Bytes,
) -> None:
    """Average cells of pixels.

    * `source`: the image.
    * `down`, `across`: the size of a cell.
    * `channels`, `height`, `width`, `result`: the result.
    * `sums`: memory for a row of the result.
    * `share`: one over the number of pixels in a cell.
    """
    for y in range(height):
        if down == 2 and across == 2:
            upper = 4 * y * width * channels
            lower = upper + 2 * width * channels
            for x in range(width):
                for c in range(channels):
                    one, other = upper + 2 * x * channels + c, lower + 2 * x * channels + c
                    four = source[one] + source[one + channels] + source[other] + source[other + channels]
                    result[(y * width + x) * channels + c] = (four + 2) >> 2
        else:
            for i in range(width * channels):
                sums[i] = 0
            for j in range(down):
                row = (y * down + j) * width * across * channels
                for x in range(width):
                    for k in range(across):
                        for c in range(channels):
                            at = row + (x * across + k) * channels + c
                            sums[x * channels + c] = sums[x * channels + c] + source[at]
            for i in range(width * channels):
                result[y * width * channels + i] = i32(within(rint(f64(sums[i]) * share), 0.0, 255.0))
