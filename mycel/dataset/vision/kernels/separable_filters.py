"""Separable convolutions over the pixels of images: blurs, and resizing by many weights."""

from typing import Any

from mycel._src.engines.routines import routine
from mycel._src.engines.routines.routine_language import (
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
    i64,
    least,
    neighbours,
    placed,
    rint,
    soon,
    taken,
    within,
)

# The elements of four pixels of three or four channels, those of a channel in two of them next to
# each other.
_FIRST_OF_THREE, _LAST_OF_THREE = (0, 3, 1, 4, 2, 5, 2, 5), (6, 9, 7, 10, 8, 11, 8, 11)
_FIRST_OF_FOUR, _LAST_OF_FOUR = (0, 4, 1, 5, 2, 6, 3, 7), (8, 12, 9, 13, 10, 14, 11, 15)
_PAIRS = (0, 1) * 4
_FOUR, _ALIKE = (0, 1, 2, 3), (0, 0, 0, 0)


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


def _sum(
    source: Elements,
    row: Int,
    places: Longs,
    weights: Elements,
    taps: Int,
    fixed: Const,
    first: Int,
    channels: Const,
    kind: Const,
) -> Any:
    total = _times(source[row + places[first] * channels], weights[first], kind)
    for k in range(1, taps if fixed == 0 else fixed):
        total += _times(source[row + places[first + k] * channels], weights[first + k], kind)
    return _ended(total, kind)


def _four_sums(
    source: Elements,
    row: Int,
    places: Longs,
    weights: Elements,
    taps: Int,
    fixed: Const,
    first: Int,
    channels: Const,
    kind: Const,
) -> Any:
    """Sum up four channels at once, where `fixed` places follow each other."""
    at = row + places[first] * channels
    fours = _times(taken(source, at, 4, _FOUR), taken(weights, first, 1, _ALIKE), kind)
    for k in range(1, taps if fixed == 0 else fixed):
        at = at + channels if fixed != 0 else row + places[first + k] * channels
        fours += _times(taken(source, at, 4, _FOUR), taken(weights, first + k, 1, _ALIKE), kind)
    return _ended(fours, kind)


def _times(value: Any, weight: Any, kind: Const) -> Any:
    return (
        f32(value) * weight
        if kind == "float" or kind == "uint8" or kind == "uint16" or kind == "int16"
        else i32(value) * i32(weight)
    )


def _ended(total: Any, kind: Const) -> Any:
    return within((total + 2097152) >> 22, 0, 255) if kind == "bytes" else total


def _filtered_row(
    source: Elements,
    size: Int,
    row: Int,
    following: Int,
    channels: Const,
    places: Longs,
    weights: Elements,
    taps: Int,
    fixed: Const,
    kind: Const,
    target: Int,
    result: Elements,
    into: Int,
) -> None:
    if channels == 3 or channels == 4:
        # Pixels after which there is room, and made of neighbours: all but some at the ends.
        room = 16 if kind == "sum" and fixed == 4 else (taps - 1) * channels + 4
        first, last = i64(0), target
        while first < target - 1 and not _is_wide(size, row, channels, places, taps, fixed, first, room):
            first += 1
        while last > first and not _is_wide(size, row, channels, places, taps, fixed, last - 1, room):
            last -= 1
        for j in range(first, last):
            # Rows of a large image come from far away.
            soon(source, following + places[j * taps] * channels)
            if kind == "sum" and fixed == 4:
                begin = row + places[4 * j] * channels
                one = taken(source, begin, 16, _FIRST_OF_THREE if channels == 3 else _FIRST_OF_FOUR)
                two = taken(source, begin, 16, _LAST_OF_THREE if channels == 3 else _LAST_OF_FOUR)
                total = neighbours(one, taken(weights, 4 * j, 2, _PAIRS))
                placed(result, into + j * channels, total + neighbours(two, taken(weights, 4 * j + 2, 2, _PAIRS)))
            else:
                sums = _four_sums(source, row, places, weights, taps, fixed, j * taps, channels, kind)
                placed(result, into + j * channels, sums)
        _one_by_one(source, row, channels, places, weights, taps, fixed, kind, 0, first, result, into)
        _one_by_one(source, row, channels, places, weights, taps, fixed, kind, last, target, result, into)
    else:
        _one_by_one(source, row, channels, places, weights, taps, fixed, kind, 0, target, result, into)


def _is_wide(size: Int, row: Int, channels: Const, places: Longs, taps: Int, fixed: Const, x: Int, room: Int) -> Any:
    begin, end = places[x * taps], places[x * taps + taps - 1]
    return (fixed == 0 or end - begin == fixed - 1) and row + begin * channels + room <= size


def _one_by_one(
    source: Elements,
    row: Int,
    channels: Const,
    places: Longs,
    weights: Elements,
    taps: Int,
    fixed: Const,
    kind: Const,
    first: Int,
    last: Int,
    result: Elements,
    into: Int,
) -> None:
    for i in range(first, last):
        for c in range(channels):
            found = _sum(source, row + c, places, weights, taps, fixed, i * taps, channels, kind)
            result[into + i * channels + c] = found


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
        into = y * target * channels
        _filtered_row(
            source,
            size,
            y * width * channels,
            (y + 1) * width * channels,
            channels,
            places,
            weights,
            taps,
            fixed,
            kind,
            target,
            result,
            into,
        )


@routine
def filtered(
    source: Elements,
    size: Int,
    start: Int,
    step: Int,
    channels: Const,
    columns: Longs,
    column_weights: Elements,
    column_taps: Int,
    column_fixed: Const,
    across: Const,
    rows: Longs,
    row_weights: Elements,
    row_taps: Int,
    row_fixed: Const,
    down: Const,
    height: Int,
    target: Int,
    held: Longs,
    lines: Elements,
    part: Elements,
    result: Elements,
) -> None:
    """Sum up places of each row with weights, and then of each column.

    Rows are filtered when a row of the result wants them, and kept while the next ones do: a row is
    kept in the place of its number, counted round `row_taps`. Rows that make one of the result are
    next to each other, so no two of them have the same place.

    * `source`, `size`, `channels`: the image, and how many elements it has.
    * `start`, `step`: where the part of it that counts begins, and how many elements a row has.
    * `columns`, `column_weights`, `column_taps`, `column_fixed`, `across`: those of `along_rows`.
    * `rows`, `row_weights`, `row_taps`, `row_fixed`, `down`: those of `along_columns`.
    * `height`, `target`: the numbers of rows and columns of the result.
    * `held`, `lines`, `part`: memory for `row_taps` numbers, as many rows of the result, each with
      4 elements more, and one row.
    * `result`: the result.
    """
    pitch = target * channels
    if column_fixed != 0:
        column_taps = column_fixed
    for i in range(row_taps):
        held[i] = -1
    for y in range(height):
        for k in range(row_taps):
            row = rows[y * row_taps + k]
            place = row % row_taps
            if held[place] != row:
                held[place] = row
                following = rows[least(y * row_taps + k + 1, height * row_taps - 1)]
                _filtered_row(
                    source,
                    size,
                    start + row * step,
                    start + following * step,
                    channels,
                    columns,
                    column_weights,
                    column_taps,
                    column_fixed,
                    across,
                    target,
                    lines,
                    place * (pitch + 4),
                )
        _summed_rows(
            lines, pitch, pitch + 4, row_taps, rows, row_weights, y, row_taps, row_fixed, down, part, result, y * pitch
        )


def _summed_rows(
    source: Elements,
    pitch: Int,
    step: Int,
    around: Int,
    places: Longs,
    weights: Elements,
    y: Int,
    taps: Int,
    fixed: Const,
    kind: Const,
    part: Elements,
    result: Elements,
    into: Int,
) -> None:
    first = (places[y * taps] % around) * step
    one = weights[y * taps]
    if fixed == 2:
        last = (places[2 * y + 1] % around) * step
        two = weights[2 * y + 1]
        for j in range(pitch):
            total = _times(source[first + j], one, kind) + _times(source[last + j], two, kind)
            result[into + j] = _rounded(total, kind)
    elif fixed == 4:
        a = (places[4 * y + 1] % around) * step
        b, c = (places[4 * y + 2] % around) * step, (places[4 * y + 3] % around) * step
        d, e, f = weights[4 * y + 1], weights[4 * y + 2], weights[4 * y + 3]
        for j in range(pitch):
            total = _times(source[first + j], one, kind) + _times(source[a + j], d, kind)
            total = total + _times(source[b + j], e, kind) + _times(source[c + j], f, kind)
            result[into + j] = _rounded(total, kind)
    else:
        for i in range(pitch):
            part[i] = _times(source[first + i], one, kind)
        for k in range(1, taps):
            row = (places[y * taps + k] % around) * step
            for i in range(pitch):
                part[i] = part[i] + _times(source[row + i], weights[y * taps + k], kind)
        for i in range(pitch):
            result[into + i] = _rounded(part[i], kind)


@routine
def along_columns(
    source: Elements,
    height: Int,
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

    * `source`, `height`, `pitch`: the image, and how many elements a row has.
    * `places`, `weights`, `taps`: which rows make a row of the result, and the weights.
    * `kind`: "float" for floats as they are, an integer's type for floats that are rounded to it,
      "sum" and "bytes" for sums of 22 bits, which become bytes.
    * `target`, `part`, `result`: the number of rows of the result, memory for a row of sums, and
      the result.
    """
    for y in range(target):
        _summed_rows(source, pitch, pitch, height, places, weights, y, taps, 0, kind, part, result, y * pitch)


def _rounded(total: Any, kind: Const) -> Any:
    if kind == "float":
        found = total
    elif kind == "uint8":
        found = i32(within(rint(total), 0.0, 255.0))
    elif kind == "uint16":
        found = i32(within(rint(total), 0.0, 65535.0))
    elif kind == "int16":
        found = i32(within(rint(total), -32768.0, 32767.0))
    else:
        found = within((total + 2097152) >> 22, 0, 255)
    return found


@routine
def cells(
    source: Bytes,
    start: Int,
    step: Int,
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

    * `source`, `start`, `step`: the image, where it begins, and how many elements a row has.
    * `down`, `across`: the size of a cell.
    * `channels`, `height`, `width`, `result`: the result.
    * `sums`: memory for a row of the result.
    * `share`: one over the number of pixels in a cell.
    """
    for y in range(height):
        if down == 2 and across == 2:
            upper = start + 2 * y * step
            lower = upper + step
            for x in range(width):
                for c in range(channels):
                    one, other = upper + 2 * x * channels + c, lower + 2 * x * channels + c
                    four = source[one] + source[one + channels] + source[other] + source[other + channels]
                    result[(y * width + x) * channels + c] = (four + 2) >> 2
        else:
            for i in range(width * channels):
                sums[i] = 0
            for j in range(down):
                row = start + (y * down + j) * step
                for x in range(width):
                    for k in range(across):
                        for c in range(channels):
                            at = row + (x * across + k) * channels + c
                            sums[x * channels + c] = sums[x * channels + c] + source[at]
            for i in range(width * channels):
                result[y * width * channels + i] = i32(within(rint(f64(sums[i]) * share), 0.0, 255.0))
