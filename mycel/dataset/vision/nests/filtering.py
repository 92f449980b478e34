"""Loops over the neighbours of each pixel: blurs, and resizing by many weights."""

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


@routine
def along_rows(
    source: Elements,
    height: Int,
    width: Int,
    channels: Const,
    places: Longs,
    weights: Elements,
    taps: Int,
    kind: Const,
    target: Int,
    result: Elements,
) -> None:
    """Sum up places of each row with weights.

    * `source`, `height`, `width`, `channels`: the image.
    * `places`, `weights`, `taps`: which columns make a column of the result, and the weights.
    * `kind`: "float" and "sum" for the sums as they are, "bytes" for those of 22 bits rounded.
    * `target`, `result`: the number of columns of the result, and the result.
    """
    for y in range(height):
        row = y * width * channels
        for x in range(target):
            for c in range(channels):
                first = source[row + places[x * taps] * channels + c]
                if kind == "float":
                    whole = f32(first) * weights[x * taps]
                    for k in range(1, taps):
                        whole += f32(source[row + places[x * taps + k] * channels + c]) * weights[x * taps + k]
                    result[(y * target + x) * channels + c] = whole
                else:
                    total = first * weights[x * taps]
                    for k in range(1, taps):
                        total += source[row + places[x * taps + k] * channels + c] * weights[x * taps + k]
                    if kind == "bytes":
                        total = within((total + 2097152) >> 22, 0, 255)
                    result[(y * target + x) * channels + c] = total


@routine
def along_columns(
    source: Elements,
    pitch: Int,
    places: Longs,
    weights: Elements,
    taps: Int,
    kind: Const,
    target: Int,
    part: Elements,
    result: Elements,
) -> None:
    """Sum up places of each column with weights.

    * `source`, `pitch`: the image, and how many elements a row has.
    * `places`, `weights`, `taps`: which rows make a row of the result, and the weights.
    * `kind`: "float" for floats as they are, "rounded" for floats that become bytes, "sum" and
      "bytes" for sums of 22 bits, which become bytes.
    * `target`, `part`, `result`: the number of rows of the result, memory for a row of sums, and
      the result.
    """
    for y in range(target):
        first = places[y * taps] * pitch
        for i in range(pitch):
            if kind == "float" or kind == "rounded":
                part[i] = f32(source[first + i]) * weights[y * taps]
            else:
                part[i] = source[first + i] * weights[y * taps]
        for k in range(1, taps):
            row = places[y * taps + k] * pitch
            for i in range(pitch):
                if kind == "float" or kind == "rounded":
                    part[i] = part[i] + f32(source[row + i]) * weights[y * taps + k]
                else:
                    part[i] = part[i] + source[row + i] * weights[y * taps + k]
        for i in range(pitch):
            if kind == "float":
                result[y * pitch + i] = part[i]
            elif kind == "rounded":
                result[y * pitch + i] = i32(within(rint(part[i]), 0.0, 255.0))
            else:
                result[y * pitch + i] = within((part[i] + 2097152) >> 22, 0, 255)


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
        for i in range(width * channels):
            sums[i] = 0
        for j in range(down):
            row = (y * down + j) * width * across * channels
            for x in range(width):
                for k in range(across):
                    for c in range(channels):
                        sums[x * channels + c] = sums[x * channels + c] + source[row + (x * across + k) * channels + c]
        for i in range(width * channels):
            if down == 2 and across == 2:
                result[y * width * channels + i] = (sums[i] + 2) >> 2
            else:
                result[y * width * channels + i] = i32(within(rint(f64(sums[i]) * share), 0.0, 255.0))
