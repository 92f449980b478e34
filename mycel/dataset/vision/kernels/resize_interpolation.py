"""Loops that copy or interpolate the pixels of a crop, flip or resize into a result.

An image is bytes with a first place, a step from row to row and a step from pixel to pixel, so that
parts and flips cost nothing. What a loop finds for a pixel goes into the result by
`pixel_store.put`: as it is, or looked up in a table of 256 values for each channel, pixel by pixel
or channel by channel.

Bilinear interpolation is OpenCV's: weights of 11 bits, exact sums along a row, of which the lower
bits are dropped, and rounded sums of two rows. Rows are filtered once, in the order in which
results want them.
"""

from typing import Any

from mycel._src.engines.routines import routine
from mycel._src.engines.routines.routine_language import (
    Bytes,
    Const,
    Elements,
    Int,
    Longs,
    Shorts,
    f32,
    f64,
    floor,
    i32,
    i64,
    least,
    neighbours,
    placed,
    rint,
    soon,
    taken,
    upper_half,
    within,
)
from mycel.dataset.vision.kernels.pixel_store import PIXELS, put

# The elements of two pixels of three or four channels, those of a channel next to each other.
_OF_THREE, _OF_FOUR = (0, 3, 1, 4, 2, 5, 2, 5), (0, 4, 1, 5, 2, 6, 3, 7)
_PAIRS = (0, 1) * 4


@routine
def pick(
    source: Elements,
    start: Int,
    row_step: Int,
    pixel_step: Const,
    height: Int,
    width: Int,
    channels: Const,
    table: Elements,
    form: Const,
    result: Elements,
    place: Int,
) -> None:
    """Put the pixels of a part of an image, which may be flipped, into a result.

    * `source`, `start`, `row_step`, `pixel_step`: the image, and where its rows and pixels are.
    * `height`, `width`, `channels`: the size of the part.
    * `table`, `form`, `result`, `place`: as in `put`.
    """
    for y in range(height):
        row = start + y * row_step
        for x in range(width):
            for c in range(channels):
                put(result, place, table, form, channels, height, width, y, x, c, source[row + x * pixel_step + c])


@routine
def nearest(
    source: Elements,
    start: Int,
    rows: Longs,
    columns: Longs,
    height: Int,
    width: Int,
    channels: Const,
    table: Elements,
    form: Const,
    result: Elements,
    place: Int,
) -> None:
    """Put the pixels at given rows and columns into a result.

    * `source`, `start`: the image, and where offsets begin.
    * `rows`, `columns`: the offset of each row and column of the result.
    * `height`, `width`, `channels`: the size of the result.
    * `table`, `form`, `result`, `place`: as in `put`.
    """
    for y in range(height):
        row = start + rows[y]
        for x in range(width):
            at = row + columns[x]
            for c in range(channels):
                put(result, place, table, form, channels, height, width, y, x, c, source[at + c])


def _two_taps(
    source: Bytes,
    size: Int,
    row: Int,
    following: Int,
    columns: Longs,
    weights: Shorts,
    width: Int,
    channels: Const,
    part: Shorts,
    into: Int,
) -> None:
    first, last = width, width
    if channels == 3 or channels == 4:
        # Pixels made of two neighbours, after which there is room: all but some at the ends.
        first = 0
        while first < width - 1 and not _is_wide(size, row, columns, first, channels):
            first += 1
        while last > first and not _is_wide(size, row, columns, last - 1, channels):
            last -= 1
        # Four at once are a vector; of three the last one is written over by the next pixel.
        for x in range(first, last):
            # Rows of a large image come from far away.
            soon(source, following + columns[2 * x])
            both = taken(source, row + columns[2 * x], 8, _OF_THREE if channels == 3 else _OF_FOUR)
            total = neighbours(both, taken(weights, 2 * x, 2, _PAIRS))
            placed(part, into + x * channels, total >> 4)
    _two_of(source, row, columns, weights, 0, first, channels, part, into)
    _two_of(source, row, columns, weights, last, width, channels, part, into)


def _is_wide(size: Int, row: Int, columns: Longs, x: Int, channels: Const) -> Any:
    return columns[2 * x + 1] - columns[2 * x] == channels and row + columns[2 * x] + 8 <= size


def _two_of(
    source: Bytes,
    row: Int,
    columns: Longs,
    weights: Shorts,
    first: Int,
    last: Int,
    channels: Const,
    part: Shorts,
    into: Int,
) -> None:
    for x in range(first, last):
        one, other = row + columns[2 * x], row + columns[2 * x + 1]
        for c in range(channels):
            sum = source[one + c] * weights[2 * x] + source[other + c] * weights[2 * x + 1]
            part[into + x * channels + c] = sum >> 4


def _resized(
    source: Bytes,
    size: Int,
    start: Int,
    rows: Longs,
    row_weights: Shorts,
    columns: Longs,
    column_weights: Shorts,
    height: Int,
    width: Int,
    channels: Const,
    part: Shorts,
    table: Elements,
    form: Const,
    result: Elements,
    place: Int,
) -> None:
    upper, lower = 0, width * channels + 4
    upper_row, lower_row = -1, -1
    for y in range(height):
        first, second = rows[2 * y], rows[2 * y + 1]
        if first == lower_row:
            upper, lower = lower, upper
            upper_row, lower_row = lower_row, upper_row
        if first != upper_row:
            _two_taps(
                source, size, start + first, start + second, columns, column_weights, width, channels, part, upper
            )
            upper_row = first
        if second != lower_row:
            following = start + rows[least(2 * y + 2, 2 * height - 2)]
            _two_taps(source, size, start + second, following, columns, column_weights, width, channels, part, lower)
            lower_row = second
        above, below = row_weights[2 * y], row_weights[2 * y + 1]
        if form == PIXELS:
            for i in range(width * channels):
                both = upper_half(part[upper + i], above) + upper_half(part[lower + i], below)
                result[place + y * width * channels + i] = within((both + 2) >> 2, 0, 255)
        else:
            for x in range(width):
                for c in range(channels):
                    at = x * channels + c
                    two = upper_half(part[upper + at], above) + upper_half(part[lower + at], below)
                    put(result, place, table, form, channels, height, width, y, x, c, within((two + 2) >> 2, 0, 255))


@routine
def bilinear(
    source: Bytes,
    size: Int,
    start: Int,
    rows: Longs,
    row_weights: Shorts,
    columns: Longs,
    column_weights: Shorts,
    height: Int,
    width: Int,
    channels: Const,
    part: Shorts,
    table: Elements,
    form: Const,
    result: Elements,
    place: Int,
) -> None:
    """Put a part of an image, resized, into a result.

    * `source`, `size`, `start`: the image, how many elements it has, and where offsets begin.
    * `rows`, `row_weights`, `columns`, `column_weights`: two offsets and weights for each row and
      column of the result.
    * `height`, `width`, `channels`: the size of the result.
    * `part`: memory for two rows that are filtered, with room for 4 more each.
    * `table`, `form`, `result`, `place`: as in `put`.
    """
    _resized(
        source,
        size,
        start,
        rows,
        row_weights,
        columns,
        column_weights,
        height,
        width,
        channels,
        part,
        table,
        form,
        result,
        place,
    )


@routine
def bilinear_of_all(
    source: Bytes,
    size: Int,
    count: Int,
    step: Int,
    rows: Longs,
    row_weights: Shorts,
    columns: Longs,
    column_weights: Shorts,
    height: Int,
    width: Int,
    channels: Const,
    part: Shorts,
    table: Elements,
    form: Const,
    result: Elements,
) -> None:
    """Put images of one size, resized, into a result, one behind the other.

    * `source`, `size`: the images, and how many elements they have in all.
    * `count`, `step`: how many images there are, and how many elements each has.
    * `rows`, `row_weights`, `columns`, `column_weights`, `height`, `width`, `channels`, `part`,
      `table`, `form`, `result`: as for `bilinear`.
    """
    for n in range(count):
        _resized(
            source,
            size,
            n * step,
            rows,
            row_weights,
            columns,
            column_weights,
            height,
            width,
            channels,
            part,
            table,
            form,
            result,
            n * height * width * channels,
        )


@routine
def two_taps(source: Int, target: Int, step: Int, exact: Const, places: Longs, weights: Elements) -> None:
    """Write which two places of an axis, and in which parts, each place of a result is made of.

    * `source`, `target`: the lengths of the axis before and after.
    * `step`: the offset from one place to the next.
    * `exact`: whether weights are float32, else they are of 11 bits.
    * `places`, `weights`: what is written, offsets and weights [target, 2].
    """
    scale = f64(source) / f64(target)
    for i in range(target):
        centre = f32((f64(i) + 0.5) * scale - 0.5)
        first = i64(floor(centre))
        fraction = f64(centre) - f64(first)
        places[2 * i] = within(first, 0, source - 1) * step
        places[2 * i + 1] = within(first + 1, 0, source - 1) * step
        if exact:
            weights[2 * i] = f32(1.0 - fraction)
            weights[2 * i + 1] = f32(fraction)
        else:
            weights[2 * i] = i32(rint(f32(1.0 - fraction) * f32(2048)))
            weights[2 * i + 1] = i32(rint(f32(fraction) * f32(2048)))
